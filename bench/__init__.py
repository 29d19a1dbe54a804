"""Benchmarks: ratios against a raw equivalent in the same run, never bare seconds."""

"""Caring for the log: verifying it, and what is derived from it."""

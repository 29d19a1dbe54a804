"""Verify: working everything out again from the log, and saying what does not agree."""

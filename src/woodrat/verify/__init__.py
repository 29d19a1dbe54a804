"""Verify: computing everything again from the log, and reporting mismatches."""

"""Keeping: caring for a log as a whole."""

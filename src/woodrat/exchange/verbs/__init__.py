"""Logs written to files and read from them, copied, and synced."""

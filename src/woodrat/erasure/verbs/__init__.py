"""What an erasure does: to the log, to what arrives, and to the files."""

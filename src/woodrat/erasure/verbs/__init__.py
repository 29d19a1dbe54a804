"""The effects of an erasure: on the log, on arriving entries, and on the files."""

"""What an erasure reads: all that is to go, and what other copies were asked to forget."""

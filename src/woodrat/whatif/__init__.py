"""What if: recorded decisions made again with something changed."""

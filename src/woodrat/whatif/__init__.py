"""What-if: recorded decisions, made again under a supposition."""

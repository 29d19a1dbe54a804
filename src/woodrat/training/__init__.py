"""Training: recorded runs as training data."""

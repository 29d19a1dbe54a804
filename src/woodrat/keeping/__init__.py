"""Keeping: caring for a log. Verifying it, keys, checkpoints, proofs and capsules."""

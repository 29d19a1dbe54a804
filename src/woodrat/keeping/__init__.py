"""Keeping: caring for a log. Keys, checkpoints, proofs and capsules."""

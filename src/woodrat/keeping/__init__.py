"""Keeping: caring for a log. Verifying it, keys, checkpoints, proofs, capsules, and lawful forgetting."""

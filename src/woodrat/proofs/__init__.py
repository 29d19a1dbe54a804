"""Proofs: keys, checkpoints, inclusion proofs and capsules."""

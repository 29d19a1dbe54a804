"""Log: the shape of the ground truth. Pure: entries, the Merkle tree over them, checkpoints."""

"""Keys, the signer that remembers, and the proofs that are handed out."""

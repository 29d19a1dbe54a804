"""The reads of an erasure: everything to remove, and the erasures of other copies."""

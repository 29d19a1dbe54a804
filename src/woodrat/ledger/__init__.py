"""The ledger: one write path and one read path, which every surface calls."""

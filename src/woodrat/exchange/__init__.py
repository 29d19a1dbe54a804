"""Exchange: logs that leave a ledger, come into one, and meet."""

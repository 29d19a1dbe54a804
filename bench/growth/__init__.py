"""Growth: how the cost of every verb grows with what a ledger holds."""

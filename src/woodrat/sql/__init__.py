"""SQL: a read-only look at one tenant through documented tables."""

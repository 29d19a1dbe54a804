"""Between two ledgers: the peers of a sync, here and behind a server."""

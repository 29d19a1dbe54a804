"""The SQLite engine: one file, any number of tenants, several processes."""

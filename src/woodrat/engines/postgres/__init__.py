"""The PostgreSQL engine: one database, any number of tenants, processes and machines."""

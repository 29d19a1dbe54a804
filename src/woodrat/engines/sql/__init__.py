"""What SQLite and PostgreSQL share: the order of tables, the codec of rows, statements, views and writes."""

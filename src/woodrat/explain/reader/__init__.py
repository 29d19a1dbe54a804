"""Reading what led to what: the tracer, and the answers of lineage, impact and stale."""

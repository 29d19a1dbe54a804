"""Explain: lineage, impact and stale decisions."""

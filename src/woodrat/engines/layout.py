"""Layout: the number of the tables that a version of woodrat makes, and works with alone."""

from __future__ import annotations

from woodrat.errors import Fault

TABLES = "tables.sql"
"""The file of an engine with all its tables."""


def other(place: str, found: int, ours: int) -> Fault:
    """Return what is wrong with a database whose tables another version made, and what to do."""
    problem = f"{place} has layout {found}, and this version of woodrat knows layout {ours} alone"
    remedy = (
        "Use the version that wrote it, or run `woodrat export log` with that version and `woodrat import log` with "
        "this one, for each tenant, into a new database."
    )
    return Fault("db", problem, remedy)

"""Settings: what a server, a database and the connections to it are set to, for whoever looks after them."""

from __future__ import annotations

from typing import Any, Final, Protocol

from woodrat.engines.postgres.connection import SCHEMA, layout
from woodrat.engines.postgres.vectors import EXTENSION, is_there
from woodrat.engines.postgres.wire import Connection

_SHOWN: Final = (
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "max_connections",
)
"""Settings that say how durable an answer is and how long a call may take."""
_PGVECTOR: Final = f"SELECT extversion FROM pg_extension WHERE extname = '{EXTENSION}'"
_UNFORCED: Final = (
    f"SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class "
    f"WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' AND relname <> 'layout' "
    "AND NOT (relrowsecurity AND relforcerowsecurity)"
)


class Pool(Protocol):
    """The connections of a process."""

    def get_stats(self) -> dict[str, int]:
        """Return how many there are, and what became of them."""


def settings(connection: Connection, pool: Pool) -> dict[str, Any]:
    """Return what holds for a connection, as people read it."""

    def one(statement: str) -> Any:
        row = connection.execute(statement, prepare=False).fetchone()
        assert row is not None, "one row is asked for"
        return row[0]

    held = pool.get_stats()
    size, free, most = (held.get(name, 0) for name in ("pool_size", "pool_available", "pool_max"))
    unforced = one(_UNFORCED)
    return {
        "server": one("SHOW server_version"),
        "login": one("SELECT session_user"),
        "role": one("SELECT current_user"),
        **{name: one(f"SHOW {name}") for name in _SHOWN},
        "replica": one("SELECT pg_is_in_recovery()"),
        "layout": layout(connection),
        "pgvector": one(_PGVECTOR) if is_there(connection) else "not used",
        "row_level_security": f"not forced on {unforced}" if unforced else "forced on every table",
        "connections": one(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'woodrat%'"
        ),
        "pool": f"{size} open, {free} free, {most} at most",
    }

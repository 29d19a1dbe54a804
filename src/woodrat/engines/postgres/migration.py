"""Migration: the roles, the schema and the tables that a database is set up with."""

from __future__ import annotations

from typing import Any

import psycopg

from woodrat.engines import layout as layouts
from woodrat.engines.postgres import vectors
from woodrat.engines.postgres.connection import (
    CONNECT_SECONDS,
    LAYOUT,
    OWNER,
    ROLES,
    SCHEMA,
    addresses,
    layout,
    shown_address,
    sql,
    translation,
)
from woodrat.errors import Fault, Refused
from woodrat.records import dataclass

_TURN = 0x57524154
"""Whom a migration waits for: another one of the same database."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did."""

    db: str
    """The database, without a password."""
    before: int
    """The layout it had; 0 for none."""
    after: int
    """The layout it has."""
    roles: tuple[str, ...]
    """The roles that were made."""
    pgvector: str
    """Whether the server multiplies vectors; if not, why not."""


def migrate(url: str) -> Migrated:
    """Set a database up, all of it in one transaction; return what was done. Refuse one of another layout."""
    url, _ = addresses(url)  # a replica follows by itself
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, application_name="woodrat migrate") as connection:
            run = connection.execute
            run("SELECT pg_advisory_xact_lock(%s)", (_TURN,))
            before = layout(connection)
            if before not in (None, LAYOUT):
                raise Refused([layouts.other(shown_address(url), before, LAYOUT)], "Nothing was changed.")
            roles = _make_roles(connection)
            if before is None:
                run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION {OWNER}")
                run(f"SET LOCAL ROLE {OWNER}")
                run(f"SET LOCAL search_path = {SCHEMA}")
                run(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {', '.join(ROLES[1:])}")
                run(sql(layouts.TABLES).encode())
                run("INSERT INTO layout (number) VALUES (%s)", (LAYOUT,))
            return Migrated(shown_address(url), before or 0, LAYOUT, roles, vectors.add(connection))
    except psycopg.Error as error:
        ours = translation(error, url, "Nothing was changed.")
        if ours is None:
            raise
        raise ours from error


def _make_roles(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    """Make the roles that are not there, and take part in them; refuse where an administrator has to."""
    there = {
        row[0] for row in connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", (list(ROLES),))
    }
    found = connection.execute(
        "SELECT rolname, rolsuper, rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    assert found is not None, "whoever is logged in has a role"
    user, is_super, may = found
    missing = tuple(role for role in ROLES if role not in there)
    if missing and not may:
        wanted = "; ".join([*(f"CREATE ROLE {role}" for role in missing), f'GRANT {", ".join(ROLES)} TO "{user}"'])
        problem = f"{user} may not create roles, and {', '.join(missing)} are not there"
        raise Refused([Fault("db", problem, f"Have an administrator run `{wanted}`.")], "Nothing was changed.")
    for role in missing:
        connection.execute(f"CREATE ROLE {role} NOLOGIN")
    if missing and not is_super:
        connection.execute(f"GRANT {', '.join(missing)} TO CURRENT_USER")
    return missing

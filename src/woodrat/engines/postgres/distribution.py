"""Distribution: the DDL that spreads the tables over the nodes of Citus by tenant, and what the layout must keep to.

All that belongs to a tenant lies on one node, and a statement goes to one node. For that the tenant leads every primary
key and unique index, nothing refers across tenants, and nothing runs beside the statements. `violations` looks into the
catalogue of a database, so that an index which somebody added is seen too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg

from woodrat.engines.postgres.connection import (
    CONNECT_SECONDS,
    ROLES,
    SCHEMA,
    layout,
    shown_address,
    translation,
)
from woodrat.errors import Fault, Refused

FIRST: Final = "head"
"""The table that all others are placed with."""
EVERYWHERE: Final = ("layout",)
"""Tables without a tenant: small, and the same on every node."""

_WITHIN: Final = f"'{SCHEMA}'::regnamespace"
_TABLE: Final = f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = {_WITHIN} AND c.relkind IN ('r', 'p')"
_RULES: Final = (
    (
        "{} has no column tenant that is text and never null",
        f"{_TABLE} AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant' "
        "AND a.attnotnull AND a.atttypid = 'text'::regtype)",
    ),
    (
        "{} has no primary key",
        f"{_TABLE} AND NOT EXISTS (SELECT 1 FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary)",
    ),
    (
        "{} has a unique index that does not begin with the tenant: {}",
        "SELECT c.relname, i.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid "
        "JOIN pg_class i ON i.oid = x.indexrelid "
        "LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0] "
        f"WHERE c.relnamespace = {_WITHIN} AND (x.indisunique OR x.indisexclusion) "
        "AND a.attname IS DISTINCT FROM 'tenant'",
    ),
    (
        "{} has a trigger: {}",
        "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        f"WHERE c.relnamespace = {_WITHIN} AND NOT t.tgisinternal",
    ),
    (
        "{} has a rewrite rule: {}",
        "SELECT c.relname, r.rulename FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class "
        f"WHERE c.relnamespace = {_WITHIN} AND c.relkind <> 'v'",
    ),
    (
        "{} has a foreign key: {}",
        "SELECT c.relname, k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
        f"WHERE c.relnamespace = {_WITHIN} AND k.contype = 'f'",
    ),
    (
        "{} is a sequence, which crosses tenants",
        f"SELECT relname FROM pg_class WHERE relnamespace = {_WITHIN} AND relkind = 'S'",
    ),
    (
        "{} is a part of another table, or has parts",
        f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = {_WITHIN} AND (c.relkind = 'p' OR EXISTS ("
        "SELECT 1 FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)))",
    ),
    (
        "{} does not force row-level security",
        f"{_TABLE} AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
    ),
    (
        "{} has a policy for everyone that does not ask for the tenant: {}",
        "SELECT c.relname, p.polname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid "
        f"WHERE c.relnamespace = {_WITHIN} AND p.polroles = '{{0}}' AND ("
        "coalesce(pg_get_expr(p.polqual, p.polrelid), '') NOT LIKE '%%tenant = current_setting(%%' "
        "OR coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '') NOT LIKE '%%tenant = current_setting(%%')",
    ),
)
"""What is wrong, and the rows of the catalogue that show it, the table first."""


def violations(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield what stands in the way of spreading the tables by tenant."""
    for problem, asked in _RULES:
        for row in connection.execute(asked.replace("%%", "%").encode()):
            if row[0] not in EVERYWHERE:
                yield problem.format(*row)


def ddl(url: str) -> str:
    """Return the statements that spread the tables of a database; refuse one whose layout does not permit it."""
    shown = shown_address(url)
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, application_name="woodrat migrate") as connection:
            if layout(connection) is None:
                problem = f"the database at {shown} has no tables of woodrat"
                raise Refused(
                    [Fault("db", problem, f"Run `woodrat migrate --db {shown}` first.")], "Nothing was printed."
                )
            if found := list(violations(connection)):
                remedy = "Take it away, or keep it on a copy that is not distributed."
                raise Refused([Fault("db", each, remedy) for each in found], "Nothing was printed.")
            tables = [
                name
                for (name,) in connection.execute(f"{_TABLE} ORDER BY 1")
                if name != FIRST and name not in EVERYWHERE
            ]
            return statements(connection.info.dbname, tables)
    except psycopg.Error as error:
        ours = translation(error, url, "Nothing was changed.")
        if ours is None:
            raise
        raise ours from error


def statements(database: str, tables: list[str]) -> str:
    """Return the statements that spread tables, besides the first one and those that are everywhere."""
    name = database.replace('"', '""')
    lines = [
        "-- Spreads the tables of woodrat over the nodes of Citus by tenant. Run it once, on the coordinator, as an",
        "-- administrator, after `woodrat migrate` and before the first write: psql -1 -v ON_ERROR_STOP=1 -f FILE",
        "-- docs/guide/distributed-postgresql.md says what to set up before, and what was tried.",
        "CREATE EXTENSION IF NOT EXISTS citus;",
        "-- Nodes must know for which tenant and as which role a transaction is.",
        f"ALTER DATABASE \"{name}\" SET citus.propagate_set_commands = 'local';",
        "-- Connections between nodes are made as the role that acts.",
        *(f"ALTER ROLE {role} LOGIN;" for role in ROLES),
        "-- The same on every node.",
        *(f"SELECT create_reference_table('{SCHEMA}.{each}');" for each in EVERYWHERE),
        "-- By tenant; all rows of a tenant on one node.",
        f"SELECT create_distributed_table('{SCHEMA}.{FIRST}', 'tenant', colocate_with => 'none');",
        *(
            f"SELECT create_distributed_table('{SCHEMA}.{each}', 'tenant', colocate_with => '{SCHEMA}.{FIRST}');"
            for each in tables
        ),
    ]
    return "\n".join(lines) + "\n"

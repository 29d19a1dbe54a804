"""Vectors: where the extension pgvector is there, the server multiplies, and no process needs to hold them.

It is no part of the layout, since a database may be without it. `migrate` adds it where it can, whenever it is run.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from woodrat.engines.postgres.connection import OWNER, SCHEMA, sql
from woodrat.engines.postgres.view import PostgresView
from woodrat.engines.records import Mismatch

EXTENSION: Final = "vector"
"""What the extension calls itself."""
USED: Final = "used"
_IS_THERE: Final = (
    f"SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('{SCHEMA}.index_row') AND attname = 'vector' "
    "AND NOT attisdropped"
)
_SCHEMA_OF: Final = f"SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = '{EXTENSION}'"
_IS_AVAILABLE: Final = f"SELECT 1 FROM pg_available_extensions WHERE name = '{EXTENSION}'"


class VectorView(PostgresView):
    """Reading of one tenant, in a database that multiplies vectors."""

    multiplies = True

    def products(self, index: str, vector: bytes) -> tuple[bytes, bytes]:
        ((keys, products),) = self.select("products", name=index, vector=vector)
        return keys or b"", products or b""

    def squares(self, index: str, after: bytes = b"") -> tuple[bytes, bytes]:
        ((keys, squares),) = self.select("squares", name=index, after=after)
        return keys or b"", squares or b""

    def structure(self) -> list[Mismatch]:
        odd = (name for (name,) in self.comparing("odd_vectors"))
        problem = "has a vector that is not what its bytes say"
        return [*super().structure(), *(Mismatch("vectors", None, None, f"the index {name} {problem}") for name in odd)]


def is_there(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the tables have the column."""
    return connection.execute(_IS_THERE, prepare=False).fetchone() is not None


def add(connection: psycopg.Connection[Any]) -> str:
    """Add the column where the server has pgvector and lets us; return whether it is used, and if not, why not.

    The table is written anew for it, and its rows have their vectors then.
    """
    if is_there(connection):
        return USED
    if connection.execute(_IS_AVAILABLE).fetchone() is None:
        return "not used: the server does not have it"
    try:
        with connection.transaction():
            # Where whoever is logged in would have it: others in the database may use it too.
            connection.execute("RESET ROLE")
            connection.execute("SET LOCAL search_path TO DEFAULT")
            connection.execute(f"CREATE EXTENSION IF NOT EXISTS {EXTENSION}")
            found = connection.execute(_SCHEMA_OF).fetchone()
            assert found is not None, "it was just made, or was there"
            connection.execute(f"SET LOCAL ROLE {OWNER}")
            connection.execute(f"SET LOCAL search_path = {SCHEMA}, {found[0]}")
            connection.execute(sql("vectors.sql").encode())
    except psycopg.DatabaseError as error:  # whatever the server has against it: all else works without
        if connection.closed:
            raise
        return f"not used: {str(error).splitlines()[0]}"
    return USED

"""Storage: the rows of a tenant, to be searched after an erasure. The files are the server's, and out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from woodrat.engines.postgres.connection import SCHEMA

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.connection import Connection

HEAD_BYTES: Final = 8
"""How many bytes of a digest the tables keep as a number."""


class Readable(Protocol):
    """The engine of the database, as far as its tables are searched."""

    def owner(self) -> AbstractContextManager[Connection]:
        """Give a connection that acts as the owner of the tables."""

    def translated(self, outcome: str = ...) -> AbstractContextManager[None]:
        """Turn the driver's exceptions into ours."""


class PostgresStorage:
    """What a database holds, as far as one tenant is concerned."""

    def __init__(self, engine: Readable, tenant: TenantId) -> None:
        self._engine, self._tenant = engine, tenant

    @property
    def shared(self) -> bool:
        """Whether the tables hold other tenants too."""
        with self._engine.translated("Nothing was changed."), self._engine.owner() as connection:
            found = connection.execute("SELECT 1 FROM head WHERE tenant <> %b AND size > 0 LIMIT 1", (self._tenant,))
            return found.fetchone() is not None

    def files(self) -> Sequence[str]:
        return ()

    def read(self, path: str, offset: int, size: int) -> bytes:
        raise AssertionError("there are no files")

    def holding(self, data: bytes, *, others: bool) -> int:
        number = int.from_bytes(data, "big", signed=True) if len(data) == HEAD_BYTES else None
        whose = "tenant <> %(tenant)b AND tenant NOT LIKE 'woodrat.%%'" if others else "tenant = %(tenant)b"
        found = 0
        with self._engine.translated("Nothing was changed."), self._engine.owner() as connection:
            columns: dict[str, list[str]] = {}
            for table, column, kind in connection.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns "
                f"WHERE table_schema = '{SCHEMA}' AND table_name <> 'migration' ORDER BY 1, 2"
            ):
                if kind == "bytea":
                    columns.setdefault(table, []).append(f"position(%(data)b in {column}) > 0")
                elif kind == "text":
                    columns.setdefault(table, []).append(f"position(%(data)b in convert_to({column}, 'UTF8')) > 0")
                elif column in ("digest", "target"):
                    columns.setdefault(table, []).append(f"{column} = %(number)b::bigint")
            for table, conditions in columns.items():
                asked = f"SELECT count(*) FROM {table} WHERE {whose} AND ({' OR '.join(conditions)})"
                row = connection.execute(asked, {"tenant": self._tenant, "data": data, "number": number}).fetchone()
                found += 0 if row is None else int(row[0])
        return found

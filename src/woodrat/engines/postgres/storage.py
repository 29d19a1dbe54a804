"""Storage: the rows of a tenant, to be searched after an erasure. The files are the server's, and out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from woodrat.engines.engine import Storage
from woodrat.engines.postgres.connection import SCHEMA

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.wire import Connection

HEAD_BYTES: Final = 8
"""How many bytes of a digest the tables keep as a number."""


class Readable(Protocol):
    """The engine of the database, as far as its tables are searched."""

    def owner(self) -> AbstractContextManager[Connection]:
        """Give a connection that acts as the owner of the tables."""

    def translated(self, outcome: str = ...) -> AbstractContextManager[None]:
        """Turn the driver's exceptions into ours."""


class PostgresStorage(Storage):
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
                "JOIN information_schema.tables USING (table_schema, table_name) "
                f"WHERE table_schema = '{SCHEMA}' AND table_type = 'BASE TABLE' AND table_name <> 'layout' "
                "ORDER BY 1, 2"
            ):
                if kind == "bytea":
                    columns.setdefault(table, []).append(f"position(%(data)b in {column}) > 0")
                elif kind in ("text", "jsonb"):
                    spelled = f"convert_to({column}::text, 'UTF8')"
                    columns.setdefault(table, []).append(f"position(%(data)b in {spelled}) > 0")
                elif column in ("digest", "target"):
                    columns.setdefault(table, []).append(f"{column} = %(number)b::bigint")
            for table, conditions in columns.items():
                asked = f"SELECT count(*) FROM {table} WHERE {whose} AND ({' OR '.join(conditions)})"
                row = connection.execute(asked, {"tenant": self._tenant, "data": data, "number": number}).fetchone()
                found += 0 if row is None else int(row[0])
        return found

    def beyond_reach(self) -> Sequence[tuple[str, str]]:
        with self._engine.translated("Nothing was changed."), self._engine.owner() as connection:
            row = connection.execute(_AROUND).fetchone()
        assert row is not None, "one row is asked for"
        wal, archives, replicas, slots, logs_values = row
        found = [
            (
                f"the server's write-ahead log up to {wal}",
                "old values stand in it, also in segments that are recycled: these get new names and keep their bytes,"
                " so `pg_switch_wal()` and `CHECKPOINT` alone do not remove them. Set wal_recycle to off, then switch"
                ' and checkpoint until no segment of now is left, by the statements under "Erasing" in'
                " docs/reference/postgresql.md; no replication slot may hold segments back"
                + (f" ({slots} of them exist now)" if slots else " (none exists now)"),
            ),
            (
                "archived write-ahead log" if archives else "archived write-ahead log, if there ever was any",
                ("archive_mode is on: " if archives else "archive_mode is off now: where segments were archived, ")
                + f"delete those from before {wal}, together with the base backups that need them",
            ),
            (
                "base backups, dumps and snapshots of disks made before",
                "they hold everything: delete them, or restore none without `woodrat erase --again`",
            ),
            (
                f"replicas ({replicas} connected now)" if replicas else "replicas, if there are any",
                f"their tables forget when they have replayed {wal}, and their own write-ahead log has to be emptied as"
                " above; one that is behind or cut off still answers with what was erased",
            ),
        ]
        if logs_values:
            why = (
                "statements are logged with their values (log_statement or log_min_duration_statement): delete the logs"
            )
            found.append(("the server's own log", why))
        return found


_AROUND: Final = """
    SELECT pg_current_wal_lsn()::text, current_setting('archive_mode') <> 'off',
           (SELECT count(*) FROM pg_stat_replication), (SELECT count(*) FROM pg_replication_slots),
           current_setting('log_parameter_max_length') <> '0' AND (
               current_setting('log_statement') IN ('mod', 'all')
               OR current_setting('log_min_duration_statement') <> '-1')
"""
"""What a server says of the copies around it."""

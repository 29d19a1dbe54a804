"""Migration: what a step to the present layout does beside its SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw

from woodrat.canon.ids import Ref
from woodrat.engines.sql import codec
from woodrat.merge.packing import UNREADABLE
from woodrat.state import entry_rows, schema
from woodrat.state.meaning import Meaning, step_of

_ENTRIES: Final = """
SELECT entry.id, entry.kind, body.body FROM entry JOIN body ON body.id = entry.id
WHERE entry.kind <> 1 AND body.body IS NOT NULL
"""
_RELATIONS: Final = """SELECT tenant, type, key, first FROM entity WHERE first >= 0 AND substr(key, 1, 2) = '["'"""
_VALUES: Final = """
SELECT sharing.tenant, sharing.type, rule, value, entity.key FROM sharing JOIN entity ON entity.id = sharing.entity
"""
_PUT: Final = "INSERT OR IGNORE INTO index_row (tenant, name, key, since, value) VALUES (?, ?, ?, ?, ?)"


def move_rows(connection: apsw.Connection) -> None:
    """Put the rows that the entries of all logs ask for, and identifying values, into the ordered indexes.

    A body that cannot be read is left to `verify`.
    """
    connection.executemany(_PUT, list(_entry_rows(connection)))
    connection.executemany(_PUT, list(_values(connection)))


def _entry_rows(connection: apsw.Connection) -> Iterator[tuple[int, str, bytes, int, bytes]]:
    for id, number, body in connection.execute(_ENTRIES):
        tenant, position = id >> codec.TENANT_BITS, id & ((1 << codec.TENANT_BITS) - 1)
        kind = codec.KINDS[number]
        try:
            meaning: Meaning = schema.stored(body) if kind == "schema" else step_of(kind, body)
        except UNREADABLE:
            continue
        for name, key, value in entry_rows.rows_of(kind, body, meaning, position):
            yield tenant, name, key, position, value
    for tenant, type, key, first in connection.execute(_RELATIONS):
        for name, place, value in entry_rows.relation_rows(Ref(type, key), first):
            yield tenant, name, place, first, value


def _values(connection: apsw.Connection) -> Iterator[tuple[int, str, bytes, int, bytes]]:
    for tenant, *names in connection.execute(_VALUES):
        yield tenant, "sharing", b"".join(b"%b\0" % name.encode() for name in names), 0, b""

"""Indexes: named ordered indexes of one tenant, as they are and as they were.

Rows that are true now stand in one table, those that ended in another. The present is read from the first alone; for a
position of the past both are gone through side by side, in the order of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from woodrat.engines.port import IndexRow, next_prefix
from woodrat.engines.sql.tables import ALL, Tables
from woodrat.merge.packing import garbled


class Indexes(Tables):
    """The ordered indexes of one tenant."""

    def scan(
        self,
        index: str,
        prefix: bytes = b"",
        *,
        through: int | None = None,
        after: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Sequence[tuple[bytes, bytes]]:
        asked = _within(prefix, after, reverse=reverse)
        if through is not None:
            asked["through"] = through
        query = ("scan" if through is None else "scan_past") + ("_reversed" if reverse else "")
        count = ALL if limit is None else limit
        rows = self.select(query, tenant=self.tenant_number, name=index, limit=count, **asked)
        return _read(index, rows)

    def count(self, index: str, prefix: bytes = b"", *, through: int | None = None) -> int:
        asked = _within(prefix)
        if through is not None:
            asked["through"] = through
        query = "count" if through is None else "count_past"
        return int(self.value(query, tenant=self.tenant_number, name=index, **asked))

    def find(self, index: str, prefixes: Sequence[bytes], *, limit: int | None = None) -> Sequence[tuple[bytes, bytes]]:
        if len(prefixes) == 1:
            return self.scan(index, prefixes[0], limit=limit)
        asked = self.ranges_of([(prefix, next_prefix(prefix)) for prefix in sorted(prefixes)])
        if limit is not None:
            asked["limit"] = limit
        query = "find" if limit is None else "find_some"
        return _read(index, self.select(query, tenant=self.tenant_number, name=index, **asked))

    def lives(self, index: str, prefix: bytes = b"") -> Sequence[IndexRow]:
        rows = self.select("lives", tenant=self.tenant_number, name=index, **_within(prefix))
        return [IndexRow(index, key, since, value, until) for key, since, value, until in rows]

    def at_hand(self, index: str) -> dict[Any, Any]:
        found = self.memory.at_hand.get(index)
        if found is None:
            found = self.memory.at_hand[index] = {}
        return found

    def meta(self, name: str) -> bytes | None:
        found: bytes | None = self.value("meta", tenant=self.tenant_number, name=name)
        return found


def _read(index: str, rows: Iterable[tuple[Any, ...]]) -> list[tuple[bytes, bytes]]:
    found = [(key, value) for key, value in rows]
    if not all(type(key) is bytes and type(value) is bytes for key, value in found):
        raise garbled(f"The index {index}")
    return found


def _within(prefix: bytes, after: bytes | None = None, *, reverse: bool = False) -> dict[str, Any]:
    """Return the keys between which a scan goes: from the first to before the last."""
    first, last = prefix, next_prefix(prefix)
    if after is not None and reverse:
        last = min(last, after)
    elif after is not None:
        first = max(first, after + b"\0")  # nothing stands between a key and this
    return {"first": first, "last": last}

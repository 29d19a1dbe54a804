"""Index: the tables of named ordered indexes, as they are and as they were, and of notes about derived data.

Rows that are true now stand in one table, those that ended in another. The present is read from the first alone; for a
position of the past both are gone through side by side, in the order of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from woodrat.engines.records import IndexRow, next_prefix
from woodrat.engines.tables import ALL, Tables, WritableTables
from woodrat.merge.packing import garbled


class Indexes(Tables):
    """Reading of ordered indexes and notes."""

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
        """Return the rows of an index whose keys begin with a prefix, as (key, value), by key.

        With `through`, those that were true at that position, otherwise those that are now. With `after`, those that
        come after a key in that order, or before it with `reverse`; at most `limit` of them. A page costs what it
        returns and, for a position of the past, what it passes that was not true then.
        """
        asked = within(prefix, after, reverse=reverse)
        if through is not None:
            asked["through"] = through
        query = ("scan" if through is None else "scan_past") + ("_reversed" if reverse else "")
        count = ALL if limit is None else limit
        rows = self.select(query, tenant=self.tenant_number, name=index, limit=count, **asked)
        return _read(index, rows)

    def scan_each(
        self,
        index: str,
        prefixes: Sequence[bytes],
        *,
        through: int | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Sequence[Sequence[tuple[bytes, bytes]]]:
        """Return for each prefix what `scan` returns, in one look."""
        query = ("scan" if through is None else "scan_past") + ("_reversed" if reverse else "")
        more = {} if through is None else {"through": through}
        asked = {"tenant": self.tenant_number, "name": index, "limit": ALL if limit is None else limit, **more}
        found = self.select_each(query, [{**asked, **within(prefix)} for prefix in prefixes])
        return [_read(index, rows) for rows in found]

    def count(self, index: str, prefix: bytes = b"", *, through: int | None = None) -> int:
        """Return how many rows of an index have keys that begin with a prefix, now or at a position."""
        asked = within(prefix)
        if through is not None:
            asked["through"] = through
        query = "count" if through is None else "count_past"
        return int(self.value(query, tenant=self.tenant_number, name=index, **asked))

    def find(self, index: str, prefixes: Sequence[bytes], *, limit: int | None = None) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows of an index that are true now and begin with any of these prefixes, as (key, value), by key.

        With `limit`, at most so many for each prefix. No prefix begins another.
        """
        if len(prefixes) == 1:
            return self.scan(index, prefixes[0], limit=limit)
        asked = self.ranges_of(ranges(prefixes))
        if limit is not None:
            asked["limit"] = limit
        query = "find" if limit is None else "find_some"
        return _read(index, self.select(query, tenant=self.tenant_number, name=index, **asked))

    def lives(self, index: str, prefix: bytes = b"") -> Sequence[IndexRow]:
        """Return every row of an index whose key begins with a prefix, those that ended too, by key and `since`."""
        rows = self.select("lives", tenant=self.tenant_number, name=index, **within(prefix))
        return [IndexRow(index, key, since, value, until) for key, since, value, until in rows]

    def at_hand(self, index: str) -> dict[Any, Any]:
        """Return where readers keep what they made of an index; it is empty again once any row of the index changed.

        An engine that has nowhere to keep it gives an empty one each time.
        """
        found = self.memory.at_hand.get(index)
        if found is None:
            found = self.memory.at_hand[index] = {}
        return found

    def meta(self, name: str) -> bytes | None:
        """Return what is noted under a name about the derived data, such as how far an index goes."""
        found: bytes | None = self.value("meta", tenant=self.tenant_number, name=name)
        return found

    def index_names(self) -> Sequence[str]:
        """Return the names of the ordered indexes that have rows."""
        names = [row[0] for row in self.comparing("index_names", tenant=self.tenant_number)]
        return [name for name in names if isinstance(name, str)]

    def notes(self) -> Mapping[str, bytes]:
        """Return what is noted about the derived data, by name."""
        return dict(map(tuple, self.comparing("notes", tenant=self.tenant_number)))


class IndexWrites(WritableTables, Indexes):
    """Writing of ordered indexes and notes."""

    def put(self, rows: Iterable[IndexRow]) -> None:
        """Add rows to indexes. One that is true now, under a key that has such a row already, changes nothing."""
        tenant, at_hand = self.tenant_number, self.memory.at_hand
        present: list[tuple[Any, ...]] = []
        past: list[tuple[Any, ...]] = []
        for name, key, since, value, until in rows:
            assert key[:1] != b"\xff", "no key begins so"
            at_hand.pop(name, None)
            if until is None:
                present.append((tenant, name, key, since, value))
            else:
                past.append((tenant, name, key, since, until, value))
        if present:
            present.sort()  # the index is in this order
            self.many("add_index_row", present)
        if past:
            self.many("add_index_past", past)

    def end(self, position: int, rows: Iterable[tuple[str, bytes]]) -> None:
        """End rows, by index and key: they are no longer true from a position on. Those that are not there are not.

        One that began at the position itself was never true, and is forgotten. To name a row twice is to name it once.
        """
        tenant = self.tenant_number
        ending = sorted({(tenant, index, key) for index, key in rows})
        if ending:
            for index in {row[1] for row in ending}:
                self.memory.at_hand.pop(index, None)
            self.many("end_index_row", [(position, *row, position) for row in ending])
            self.many("drop_index_row", ending)

    def drop(self, index: str, prefix: bytes = b"") -> None:
        """Forget every row of an index whose key begins with a prefix, those that ended too."""
        self.memory.at_hand.pop(index, None)
        self.run("drop_index_rows", tenant=self.tenant_number, name=index, first=prefix, last=next_prefix(prefix))

    def set_meta(self, name: str, value: bytes | None) -> None:
        """Note something about the derived data under a name, or with none nothing any more."""
        if value is None:
            self.run("drop_meta", tenant=self.tenant_number, name=name)
        else:
            self.run("set_meta", tenant=self.tenant_number, name=name, value=value)


def ranges(prefixes: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Return between which keys those stand that begin with any of some prefixes."""
    return [(prefix, next_prefix(prefix)) for prefix in sorted(prefixes)]


def _read(index: str, rows: Iterable[tuple[Any, ...]]) -> list[tuple[bytes, bytes]]:
    found = [(key, value) for key, value in rows]
    if not all(type(key) is bytes and type(value) is bytes for key, value in found):
        raise garbled(f"The index {index}")
    return found


def within(prefix: bytes, after: bytes | None = None, *, reverse: bool = False) -> dict[str, Any]:
    """Return the keys between which a scan goes: from the first to before the last."""
    first, last = prefix, next_prefix(prefix)
    if after is not None and reverse:
        last = min(last, after)
    elif after is not None:
        first = max(first, after + b"\0")  # nothing stands between a key and this
    return {"first": first, "last": last}

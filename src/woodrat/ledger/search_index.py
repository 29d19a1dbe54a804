"""The rows of words, as a search reads them: for each word and type a list of entities, in the order of their ids.

A search of several words joins such lists, and a page costs the rows that it passes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from woodrat.canon.ids import Ref, parse_ref
from woodrat.engines.records import Scan
from woodrat.ledger.state_rows import ID_BYTES, RELATION_WORD, ROOT, WORD, fields_of, id_text, text_of
from woodrat.merge.packing import garbled
from woodrat.state import tokens

if TYPE_CHECKING:
    from woodrat.engines.view import View

LISTS_MAX: Final = 64
"""How many lists of the words under one beginning are joined; with more all their rows are read."""
ROWS_MIN: Final = 8
ROWS_MAX: Final = 512
"""How many rows of a list are read at a time: few at first and after a leap, more and more along the list."""

FIRST_ROWS: Final = 128
"""How many rows of each word a search asks for at first; a word with fewer needs no other look."""

Fields = frozenset[str]
Rows = Sequence[tuple[bytes, bytes]]


def row_prefixes(texts: Iterable[str], types: Iterable[str]) -> set[bytes]:
    """Return the beginnings of the rows of the words of some texts, in entities of some types."""
    found = {token.encode() for text in texts for token in tokens.tokens(text)}
    return {b"%b\0%b\0" % (token, type.encode()) for type in types for token in found}


def has_row(view: View, prefix: bytes) -> bool:
    """Return True if a row of a word begins with a prefix, now or in the past."""
    return any(view.scan(name, prefix, limit=1) or view.lives(name, prefix) for name in (WORD, RELATION_WORD))


def _split(key: bytes) -> tuple[bytes, bytes]:
    """Return the word and the type of a row."""
    # Exact names stand between two NULs; no other word holds any.
    try:
        end = key.index(b"\0", key.index(b"\0", 1) + 1) if key.startswith(b"\0") else key.index(b"\0")
    except ValueError as error:
        raise garbled("The search index") from error
    return key[:end], key[end + 1 : -ID_BYTES - 1]


def list_prefixes(
    view: View, index: str, beginning: str, type: str | None, through: int | None, known: Ends
) -> list[bytes] | None:
    """Return the prefixes of the lists of the words that begin so; `None` if there are too many."""
    found: list[bytes] = []
    after: bytes | None = None
    wanted = None if type is None else type.encode()
    keys = [key for key, _ in known.first]
    while True:
        at = 0 if after is None else bisect_right(keys, after)
        if at < len(keys):
            key = keys[at]
        elif after is not None and known.last and known.last[0][0] <= after:
            return found
        elif rows := view.scan(index, beginning.encode(), after=after, through=through, limit=1):
            key = rows[0][0]
        else:
            return found
        if len(found) == LISTS_MAX:
            return None
        token, kind = _split(key)
        if wanted is not None and kind != wanted:
            # Types of a word stand in order: the one asked for comes later, or this word has none.
            after = token + b"\0" + (wanted + b"\0" if kind < wanted else b"\xff")
            continue
        found.append(b"%b\0%b\0" % (token, kind))
        after = found[-1] + b"\xff" * ID_BYTES


class Stream(Protocol):
    """Ids of entities in order, as they stand in rows."""

    def seek(self, id: bytes) -> bytes | None:
        """Return the first id not before one; None after the last. Ids that are asked for never go back."""

    def fields(self, id: bytes) -> Fields:
        """Return the fields that the word stands in, of the entity that was found last."""


class ListStream:
    """The ids of one list."""

    def __init__(self, view: View, index: str, prefix: bytes, through: int | None, first: Rows) -> None:
        """`first` are the first rows of words that begin as this one: those of this list need not be asked for."""
        self._view, self._index, self._prefix, self._through = view, index, prefix, through
        self._rows: Rows = [row for row in first if row[0].startswith(prefix)]
        self._at, self._size = 0, ROWS_MIN
        self._is_last = bool(self._rows) and self._rows[-1] != first[-1]

    def seek(self, id: bytes) -> bytes | None:
        """Return the first id not before one."""
        rows, key = self._rows, self._prefix + id
        if not rows or rows[-1][0] < key:
            if self._is_last:
                return None
            # Right after what was read it goes on along the list; anywhere else it has leapt.
            goes_on = bool(rows) and self._at >= len(rows) - 1
            self._size = min(2 * self._size, ROWS_MAX) if goes_on else ROWS_MIN
            number = int.from_bytes(id, "big")
            after = None if not number else self._prefix + (number - 1).to_bytes(ID_BYTES, "big")
            self._rows = rows = self._view.scan(
                self._index, self._prefix, after=after, through=self._through, limit=self._size
            )
            self._is_last, self._at = len(rows) < self._size, 0
            if not rows:
                return None
        while rows[self._at][0] < key:
            self._at += 1
        return rows[self._at][0][-ID_BYTES:]

    def fields(self, id: bytes) -> Fields:
        """Return the fields that the word stands in, of the entity that was found last."""
        return fields_of(self._rows[self._at][1])


class UnionStream:
    """The ids of any of some streams, each once."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._streams = streams
        self._heap: list[tuple[bytes, int]] | None = None

    def seek(self, id: bytes) -> bytes | None:
        """Return the first id not before one."""
        heap = self._heap
        if heap is None:
            first = ((stream.seek(id), number) for number, stream in enumerate(self._streams))
            heap = self._heap = [(found, number) for found, number in first if found is not None]
            heapify(heap)
        while heap and heap[0][0] < id:
            number = heap[0][1]
            found = self._streams[number].seek(id)
            if found is None:
                heap[0] = heap[-1]
                heap.pop()
                heapify(heap)
            else:
                heapreplace(heap, (found, number))
        return heap[0][0] if heap else None

    def fields(self, id: bytes) -> Fields:
        """Return the fields that any of the words stands in, of the entity that was found last."""
        assert self._heap is not None, "an entity was found"
        return Fields().union(*(self._streams[number].fields(id) for found, number in self._heap if found == id))


class SortedStream:
    """Ids that are at hand, with their fields."""

    def __init__(self, found: Mapping[bytes, Fields]) -> None:
        self._found = found
        self._ids = sorted(found, reverse=True)

    def seek(self, id: bytes) -> bytes | None:
        """Return the first id not before one."""
        while self._ids and self._ids[-1] < id:
            self._ids.pop()
        return self._ids[-1] if self._ids else None

    def fields(self, id: bytes) -> Fields:
        """Return the fields that the word stands in, of the entity that was found last."""
        return self._found[id]


def joined(streams: Sequence[Stream], after: bytes | None) -> Iterator[bytes]:
    """Yield the ids that all streams have, after one, in order: each in turn leaps to what the others have next."""
    wanted: bytes | None = bytes(ID_BYTES) if after is None else following(after)
    agreed = 0
    at = 0
    while wanted is not None:
        found = streams[at].seek(wanted)
        if found is None:
            return
        agreed = agreed + 1 if found == wanted else 1
        wanted = found
        if agreed >= len(streams):
            yield found
            wanted, agreed = following(found), 0
        at = (at + 1) % len(streams)


def following(id: bytes) -> bytes | None:
    """Return the next bytes after an id; None after the last."""
    number = int.from_bytes(id, "big") + 1
    return None if number >> (8 * ID_BYTES) else number.to_bytes(ID_BYTES, "big")


def first_scans(index: str, beginnings: Iterable[str]) -> Iterator[Scan]:
    """Yield where `ends` looks."""
    for word in beginnings:
        yield Scan(index, word.encode("utf-8", "replace"), FIRST_ROWS)
        yield Scan(index, word.encode("utf-8", "replace"), 1, reverse=True)


class Ends(NamedTuple):
    """The rows of the words that begin in one way, from both ends."""

    first: Rows
    """The first rows."""
    last: Rows
    """The last row, if there is any."""

    @property
    def is_all(self) -> bool:
        """Whether there are no others."""
        return len(self.first) < FIRST_ROWS


def ends(view: View, index: str, beginnings: Sequence[str], through: int | None) -> dict[str, Ends]:
    """Return both ends of the rows of words by how these begin, in one look at each end."""
    prefixes = [word.encode() for word in beginnings]
    first = view.scan_each(index, prefixes, through=through, limit=FIRST_ROWS)
    last = view.scan_each(index, prefixes, through=through, limit=1, reverse=True)
    return dict(zip(beginnings, map(Ends, first, last), strict=True))


def fields_by_id(rows: Rows, type: str | None) -> dict[bytes, Fields]:
    """Return the entities of rows by id, and the fields that the words stand in."""
    found: dict[bytes, Fields] = {}
    wanted = None if type is None else type.encode()
    for key, value in rows:
        if wanted is None or _split(key)[1] == wanted:
            id, fields = key[-ID_BYTES:], fields_of(value)
            known = found.get(id)
            found[id] = fields if known is None else known | fields
    return found


def all_rows(
    view: View, index: str, beginning: str, type: str | None, through: int | None, limit: int | None = None
) -> dict[bytes, Fields] | None:
    """Return the entities with a word that begins so, by id, and the fields such words stand in.

    `None` if there are more rows than `limit`.
    """
    found: dict[bytes, Fields] = {}
    after: bytes | None = None
    count = 0
    size = ROWS_MAX * 2 if limit is None else min(limit + 1, ROWS_MAX * 2)
    while True:
        rows = view.scan(index, beginning.encode(), after=after, through=through, limit=size)
        count += len(rows)
        if limit is not None and count > limit:
            return None
        for id, fields in fields_by_id(rows, type).items():
            known = found.get(id)
            found[id] = fields if known is None else known | fields
        if len(rows) < size:
            return found
        after = rows[-1][0]


def refs_of(view: View, ids: Collection[bytes], through: int | None) -> dict[bytes, Ref]:
    """Return the entities with the ids of rows, in the order of the ids."""
    said = view.entities_of_ids([id_text(id) for id in ids]) if ids else {}
    found: dict[bytes, Ref] = {}
    for id in ids:
        ref = said.get(id_text(id))
        if ref is None:
            rows = view.scan(ROOT, id, through=through, limit=1)
            ref = parse_ref(text_of(rows[0][1])) if rows else None
        if ref is None:
            raise garbled("The search index")
        found[id] = ref
    return found

"""The search index: where the words of every fold stand, in the order in which a search returns what it finds.

A row is one word of one fold: the word, the type, how many fields it stands in (more first), which fields these are,
the entity's id. The rows of one word in the same fields of one type are a list in the order of ids. A search of several
words joins such lists, and a page costs the rows that it passes. Keys of relations repeat those of both ends; they
stand in an index of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from woodrat.canon.ids import Ref, parse_ref
from woodrat.ledger.state_index import Fold, Rows, StateIndex
from woodrat.merge import fold
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import garbled
from woodrat.merge.rules import Rules
from woodrat.state import relation, tokens
from woodrat.state.tokens import Words

if TYPE_CHECKING:
    from woodrat.engines.port import View

WORDS: Final = "word"
"""The index of words of entities that are no relations."""
RELATION_WORDS: Final = "word.relation"
"""The index of words of relations."""
ROOTS: Final = "word.root"
"""The smallest entities of groups by id: nothing may ever have been said of them."""
LISTS_MAX: Final = 64
"""How many lists of the words under one beginning are told apart; with more all their rows are read."""
ROWS_MIN: Final = 8
ROWS_MAX: Final = 512
"""How many rows of a list are read at a time: few at first and after a leap, more and more along the list."""

PREFIX: Final = "ent_"
"""What ids of entities begin with; keys leave it out."""
_FIELDS_MAX: Final = 254
_TEXTLESS: Final = frozenset({int, float, bool, type(None)})
_NAMES_MAX: Final = 4_096
_ID_BYTES: Final = 17
_ID_CHARACTERS: Final = 26
_ID_SHIFT: Final = _ID_BYTES * 8 - _ID_CHARACTERS * 5
# Texts sort digits before letters, base32 counts them after: rows sort as the texts do.
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuv"
_TO_DIGITS: Final = str.maketrans("234567abcdefghijklmnopqrstuvwxyz", _DIGITS)
_CHARACTERS: Final = "234567abcdefghijklmnopqrstuvwxyz"
_PAIRS: Final = [one + other for one in _CHARACTERS for other in _CHARACTERS]
_PLACES: Final = range(5 * _ID_CHARACTERS - 10, -10, -10)


def id_bytes(id: str) -> bytes:
    """Return the id of an entity as it stands in a row: bytes that sort as ids do."""
    return (int(id[len(PREFIX) :].translate(_TO_DIGITS), 32) << _ID_SHIFT).to_bytes(_ID_BYTES, "big")


def id_text(id: bytes) -> str:
    """Return the id of an entity, given how it stands in a row."""
    number = int.from_bytes(id, "big") >> _ID_SHIFT
    return PREFIX + "".join([_PAIRS[number >> at & 1023] for at in _PLACES])


class List(NamedTuple):
    """The rows of one word of one type in the same fields."""

    name: str
    """Of the index."""
    prefix: bytes
    """What its keys begin with."""
    token: bytes
    """The word."""
    type: str
    fields: frozenset[str]
    """The fields the word stands in."""


def words_of(state: MergeState, rules: Rules) -> Words:
    """Return the tokens of a fold; one that is deleted or does not exist has none, nor does a deleted member's key."""
    return _words(Fold(state.members[0], state, rules))


def _words(found: Fold) -> Words:
    if not found.is_shown:
        return {}
    state = found.state
    members = [member for member in state.members if not fold.is_deleted(state, member)] if state.markers else None
    return tokens.words(members or state.members, found.values, found.rules.schema.searchable)


def _same(one: Fold, other: Fold) -> bool:
    """Return whether two folds of a lone entity have the same texts."""
    before, after = one.values, other.values
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old is not new and old != new and not (type(old) in _TEXTLESS and type(new) in _TEXTLESS):
            return False
    return True


def rows(found: Fold) -> Rows:
    """Return the rows of a fold."""
    root, state = found.root, found.state
    index = WORDS if relation.endpoints(root) is None else RELATION_WORDS
    type, id = root.type.encode(), id_bytes(root.id)
    made = {
        (index, b"%b\0%b\0%b%b" % (token.encode(), type, _spelled(frozenset(fields)), id)): b""
        for token, fields in _words(found).items()
    }
    if made and len(state.members) > 1:
        made[ROOTS, id] = str(root).encode()
    return made


def row_prefixes(texts: Iterable[str], types: Iterable[str]) -> set[bytes]:
    """Return what the rows of the words of some texts begin with, in entities of some types."""
    found = {token.encode() for text in texts for token in tokens.tokens(text)}
    return {b"%b\0%b\0" % (token, type.encode()) for type in types for token in found}


def has_row(view: View, prefix: bytes) -> bool:
    """Return True if a row of a word begins with a prefix, now or in the past."""
    for name in (WORDS, RELATION_WORDS):
        if next(iter(view.scan(name, prefix, limit=1)), None) is not None or view.lives(name, prefix):
            return True
    return False


def _alike(one: Rules, other: Rules) -> bool:
    return (one.merging, one.schema.searchable) == (other.merging, other.schema.searchable)


INDEX: Final = StateIndex("search", (WORDS, RELATION_WORDS, ROOTS), rows, _alike, same=_same)
"""What a search is answered from."""


@lru_cache(maxsize=_NAMES_MAX)
def _spelled(fields: frozenset[str]) -> bytes:
    """Return how the fields of a word stand in a row: how many, more first, and each by its name."""
    names = b"".join([b"%b\0" % name.encode() for name in sorted(fields)])
    return b"%c%b" % (255 - min(len(fields), _FIELDS_MAX), names)


@lru_cache(maxsize=_NAMES_MAX)
def _fields(spelled: bytes) -> frozenset[str]:
    try:
        return frozenset(name.decode() for name in spelled[1:].split(b"\0")[:-1])
    except ValueError as error:
        raise garbled("The search index") from error


def _split(key: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the word, the type and the fields of a row, these as they are spelled."""
    # A whole key stands between two NULs; no other word holds any.
    try:
        end = key.index(b"\0", key.index(b"\0", 1) + 1) if key.startswith(b"\0") else key.index(b"\0")
        type_end = key.index(b"\0", end + 1)
    except ValueError as error:
        raise garbled("The search index") from error
    return key[:end], key[end + 1 : type_end], key[type_end + 1 : -_ID_BYTES]


def lists(view: View, index: str, beginning: str, type: str | None, through: int | None) -> list[List] | None:
    """Return the lists of the words that begin so; `None` where there are too many to be told apart."""
    found: list[List] = []
    prefix = beginning.encode()
    after: bytes | None = None
    wanted = None if type is None else type.encode()
    while True:
        rows = view.scan(index, prefix, after=after, through=through, limit=1)
        if not rows:
            return found
        if len(found) == LISTS_MAX:
            return None
        token, kind, spelled = _split(rows[0][0])
        if wanted is not None and kind != wanted:
            # Types of a word stand in order: the one asked for comes later, or this word has none.
            after = token + b"\0" + (wanted + b"\0" if kind < wanted else b"\xff")
            continue
        one = b"%b\0%b\0%b" % (token, kind, spelled)
        found.append(List(index, one, token, kind.decode(), _fields(spelled)))
        after = one + b"\xff" * _ID_BYTES


class Stream(Protocol):
    """Ids of entities in order, as they stand in rows."""

    def seek(self, id: bytes) -> bytes | None:
        """Return the first id not before one; none after the last. Ids that are asked for never go back."""


class ListStream:
    """The ids of one list."""

    __slots__ = ("_at", "_ids", "_is_last", "_list", "_size", "_through", "_view")

    def __init__(self, view: View, one: List, through: int | None) -> None:
        self._view, self._list, self._through = view, one, through
        self._ids: list[bytes] = []
        self._at, self._size, self._is_last = 0, ROWS_MIN, False

    def seek(self, id: bytes) -> bytes | None:
        """Return the first id not before one."""
        ids = self._ids
        if not ids or ids[-1] < id:
            if self._is_last:
                return None
            # Right after what was read it goes on along the list; anywhere else it has leapt.
            goes_on = bool(ids) and self._at >= len(ids) - 1
            self._size = min(2 * self._size, ROWS_MAX) if goes_on else ROWS_MIN
            number = int.from_bytes(id, "big")
            after = None if not number else self._list.prefix + (number - 1).to_bytes(_ID_BYTES, "big")
            rows = self._view.scan(
                self._list.name, self._list.prefix, after=after, through=self._through, limit=self._size
            )
            ids = self._ids = [key[-_ID_BYTES:] for key, _ in rows]
            self._is_last, self._at = len(rows) < self._size, 0
            return ids[0] if ids else None
        self._at = bisect_left(ids, id, self._at)
        return ids[self._at]


class UnionStream:
    """The ids of any of some streams, each once."""

    __slots__ = ("_heap", "_streams")

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


def joined(streams: Sequence[Stream], after: bytes | None) -> Iterator[bytes]:
    """Yield the ids that all streams have, after one, in order: each in turn leaps to what the others have next."""
    wanted: bytes | None = bytes(_ID_BYTES) if after is None else following(after)
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
    """Return what no id lies between another and this; none after the last."""
    number = int.from_bytes(id, "big") + 1
    return None if number >> (8 * _ID_BYTES) else number.to_bytes(_ID_BYTES, "big")


def all_postings(
    view: View, index: str, beginning: str, type: str | None, through: int | None, limit: int | None = None
) -> dict[bytes, frozenset[str]] | None:
    """Return the entities with a word that begins so, by id, and the fields such words stand in.

    `None` where there are more rows than `limit`.
    """
    found: dict[bytes, frozenset[str]] = {}
    wanted = None if type is None else type.encode()
    after: bytes | None = None
    count = 0
    size = ROWS_MAX * 2 if limit is None else min(limit + 1, ROWS_MAX * 2)
    while True:
        rows = view.scan(index, beginning.encode(), after=after, through=through, limit=size)
        count += len(rows)
        if limit is not None and count > limit:
            return None
        for key, _ in rows:
            _, kind, spelled = _split(key)
            if wanted is None or kind == wanted:
                id, fields = key[-_ID_BYTES:], _fields(spelled)
                known = found.get(id)
                found[id] = fields if known is None else known | fields
        if len(rows) < size:
            return found
        after = rows[-1][0]


def ref_of(view: View, id: bytes, text: str, through: int | None) -> Ref | None:
    """Return the entity with the id of a row, which is also given as text."""
    found = view.entity(text)
    if found is None:
        rows = view.scan(ROOTS, id, through=through, limit=1)
        found = parse_ref(rows[0][1].decode()) if rows else None
    return found


def both(one: Mapping[bytes, frozenset[str]], other: Mapping[bytes, frozenset[str]]) -> dict[bytes, frozenset[str]]:
    """Return the entities that two words both found, with the fields of either."""
    return {id: fields | other[id] for id, fields in one.items() if id in other}

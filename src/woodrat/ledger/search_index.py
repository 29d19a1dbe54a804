"""The search index: where the words of every fold stand, in the order in which a search returns what it finds.

A row is one word of one fold: the word, the type, how many fields it stands in (more first), the entity's id; its value
names the fields. So a word that stands alone under its beginning is answered from the first rows of one list, however
many there are. Keys of relations repeat those of both ends; they stand in an index of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from woodrat.canon.ids import Ref, parse_ref
from woodrat.ledger.trailing import Rows, StateIndex
from woodrat.merge import fold, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import UNREADABLE, garbled
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
LISTS_MAX: Final = 16
"""How many words under one beginning are told apart; with more all their rows are read."""
ROWS_MAX: Final = 4_000
"""How many rows are read to rank them; beyond that a search that can goes by the order of one list."""
PAGE_ROWS: Final = 256
"""How many rows of a list are read at a time."""

PREFIX: Final = "ent_"
"""What ids of entities begin with; keys leave it out."""
_FIELDS_MAX: Final = 254
_NAMES_MAX: Final = 4_096


class List(NamedTuple):
    """The rows of one word of one type."""

    name: str
    """Of the index."""
    prefix: bytes
    """What its keys begin with."""


class Posting(NamedTuple):
    """One word of one entity."""

    rank: bytes
    """How many fields it stands in, more first, and the entity's id."""
    fields: frozenset[str]

    @property
    def id(self) -> str:
        """The entity's id."""
        return PREFIX + self.rank[1:].decode()


def words_of(state: MergeState, rules: Rules) -> Words:
    """Return the tokens of a fold; one that is deleted or does not exist has none, nor does a deleted member's key."""
    if state.deleted or not state.exists:
        return {}
    members = [member for member in state.members if not fold.is_deleted(state, member)]
    return tokens.words(members, snapshot.fields_of(state, rules), rules.schema.searchable)


def rows(root: Ref, state: MergeState, rules: Rules) -> Rows:
    """Return the rows of a fold."""
    index = WORDS if relation.endpoints(root) is None else RELATION_WORDS
    type, id = root.type.encode(), root.id.removeprefix(PREFIX).encode()
    found = {
        (index, b"%b\0%b\0%c%b" % (token.encode(), type, 255 - min(len(fields), _FIELDS_MAX), id)): _spelled(
            tuple(sorted(fields))
        )
        for token, fields in words_of(state, rules).items()
    }
    if found and len(state.members) > 1:
        found[ROOTS, id] = str(root).encode()
    return found


def _alike(one: Rules, other: Rules) -> bool:
    before, after = one.schema, other.schema
    return (before.searchable, before.policies, before.properties, before.beyond) == (
        *(after.searchable, after.policies, after.properties, after.beyond),
    )


INDEX: Final = StateIndex("search", (WORDS, RELATION_WORDS, ROOTS), rows, _alike)
"""What a search is answered from."""


@lru_cache(maxsize=_NAMES_MAX)
def _spelled(fields: tuple[str, ...]) -> bytes:
    return orjson.dumps(fields)


@lru_cache(maxsize=_NAMES_MAX)
def _fields(spelled: bytes) -> frozenset[str]:
    try:
        found = orjson.loads(spelled)
        if isinstance(found, list) and all(isinstance(name, str) for name in found):
            return frozenset(found)
    except UNREADABLE:
        pass
    raise garbled("The search index")


def lists(view: View, index: str, beginning: str, type: str | None, through: int | None) -> list[List] | None:
    """Return the lists of the words that begin so; `None` where there are too many to be told apart."""
    found: list[List] = []
    prefix = beginning.encode()
    after: bytes | None = None
    while True:
        rows = view.scan(index, prefix, after=after, through=through, limit=1)
        if not rows:
            return found
        token, kind = _parts(rows[0][0])
        if type is None:
            found.append(List(index, b"%b\0%b\0" % (token, kind)))
            after = found[-1].prefix + b"\xff\xff"
        else:
            one = List(index, b"%b\0%b\0" % (token, type.encode()))
            if kind == type.encode() or view.scan(index, one.prefix, through=through, limit=1):
                found.append(one)
            after = token + b"\0\xff"
        if len(found) > LISTS_MAX:
            return None


def _parts(key: bytes) -> tuple[bytes, bytes]:
    """Return the word and the type of a row."""
    # A whole key stands between two NULs; no other word holds any.
    end = key.index(b"\0", key.index(b"\0", 1) + 1) if key.startswith(b"\0") else key.index(b"\0")
    return key[:end], key[end + 1 : key.index(b"\0", end + 1)]


def postings(view: View, one: List, through: int | None, after: bytes | None = None) -> Iterator[Posting]:
    """Yield the rows of a list, in order, from after a rank on."""
    last = None if after is None else one.prefix + after
    start = len(one.prefix)
    while True:
        found = view.scan(one.name, one.prefix, after=last, through=through, limit=PAGE_ROWS)
        for key, value in found:
            yield Posting(key[start:], _fields(value))
        if len(found) < PAGE_ROWS:
            return
        last = found[-1][0]


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
    while True:
        rows = view.scan(index, beginning.encode(), after=after, through=through, limit=PAGE_ROWS * 4)
        count += len(rows)
        if limit is not None and count > limit:
            return None
        for key, value in rows:
            if wanted is not None and _parts(key)[1] != wanted:
                continue
            id = key[key.rindex(b"\0") + 2 :]
            fields = found.get(id)
            found[id] = _fields(value) if fields is None else fields | _fields(value)
        if len(rows) < PAGE_ROWS * 4:
            return found
        after = rows[-1][0]


def ref_of(view: View, id: bytes, through: int | None) -> Ref | None:
    """Return the entity with the id of a row."""
    found = view.entity_by_id(PREFIX + id.decode())
    if found is None:
        rows = view.scan(ROOTS, id, through=through, limit=1)
        found = parse_ref(rows[0][1].decode()) if rows else None
    return found


def both(one: Mapping[bytes, frozenset[str]], other: Mapping[bytes, frozenset[str]]) -> dict[bytes, frozenset[str]]:
    """Return the entities that two words both found, with the fields of either."""
    return {id: fields | other[id] for id, fields in one.items() if id in other}


def first_ids(view: View, one: List, through: int | None, limit: int) -> list[bytes] | None:
    """Return the ids of a list; `None` where it has more than `limit`."""
    rows = view.scan(one.name, one.prefix, through=through, limit=limit + 1)
    return None if len(rows) > limit else [key[len(one.prefix) + 1 :] for key, _ in rows]


def is_ordered(view: View, one: List, through: int | None) -> bool:
    """Return whether the rows of a list stand in the order of a search: no word stands in more fields than are told."""
    rows = view.scan(one.name, one.prefix, through=through, limit=1)
    return not rows or rows[0][0][len(one.prefix)] > 255 - _FIELDS_MAX


def rank_bytes(fields: int, id: str) -> bytes:
    """Return how a row ends: how many fields the word stands in, and the entity's id."""
    return b"%c%b" % (255 - min(fields, _FIELDS_MAX), id.removeprefix(PREFIX).encode())

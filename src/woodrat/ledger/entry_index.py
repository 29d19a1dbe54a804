"""Entry index: runs, sources, schemas and relations, found by the rows that entries ask for (`state/entry_rows.py`).

Rows are put with their entries, in one transaction, and so are those that rooms list (`log_rows.py`). Nothing else
appends to the log, so that neither ever trails it. What is made of an index
again and again, such as the schema in force, is kept at hand as long as no row of it changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from typing import Any, Final

from woodrat.canon import ids
from woodrat.canon.digest import unbase32
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View
from woodrat.ledger.log_rows import Concerned, LogEntry
from woodrat.log.check import Row
from woodrat.log.entry import Entry, Write
from woodrat.merge.packing import garbled
from woodrat.state import entry_rows, schema
from woodrat.state.entry_rows import (
    BLOCK,
    BLOCKS,
    POSITION_BYTES,
    RELATION,
    RUN,
    SCHEMA,
    SOURCE,
    position_key,
    position_of,
    relation_index,
)
from woodrat.state.meaning import RUN_KINDS, Meaning, meaning_of
from woodrat.state.observation import Observation
from woodrat.state.relation import SAME_AS
from woodrat.state.schema import Schema

SCHEMAS_MAX: Final = 1_024
"""How many schemas a process keeps parsed."""
UNJOINED_MAX: Final = 10_000
"""How many entities that no `same_as` names are remembered."""
_IDS_PAGE: Final = 64
_RELATIONS_PAGE: Final = 64
"""How many relations of an entity are looked up at first; each time twice as many, up to `_RELATIONS_PAGE_MAX`."""
_RELATIONS_PAGE_MAX: Final = 1_024
BLOCKS_MAX: Final = 10_000
"""Of how many blocks it is remembered that their rows are there."""
_make: Final = tuple.__new__
"""Makes an `IndexRow` in half the time."""
_JOINS: Final = None
"""Under what it is kept at hand whether any `same_as` was ever said; entities stand beside it by their digests."""


def append(write: Transaction, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
    """Add writes at the end of the log, with the rows that their entries ask for, and those that rooms list."""
    if len(writes) == 1:
        kinds: Sequence[str] = writes[0].kinds
        bodies: Sequence[bytes | None] = writes[0].bodies
    else:
        kinds = [kind for one in writes for kind in one.kinds]
        bodies = [body for one in writes for body in one.bodies]
    first = writes[0].first
    last = first + len(kinds) - 1
    entries = list(zip(range(first, last + 1), kinds, bodies, meanings, strict=True))
    alone_at = [one.recorded_at if len(one.kinds) == 1 else None for one in writes for _ in one.kinds]
    # Whatever has to be looked up for the rows is asked before anything is changed: then it costs no round trip more.
    concerned = Concerned(write, entries)
    known = write.at_hand(BLOCKS)
    rows = [*_rows(entries, alone_at, known), *concerned.rows()]
    concerned.narrow(write)
    write.append(writes, meanings)
    if rows:
        write.put(rows)
        begun = {row.key: True for row in rows if row.name is BLOCKS}
        if begun:
            write.at_hand(BLOCKS).update({**known, **begun} if len(known) < BLOCKS_MAX else begun)
    concerned.follow(write, first - 1, last)


def derive(write: Transaction, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
    """Note again what rows of the log mean, as `append` did; `log_rows.follow_all` comes after the last of them."""
    write.derive(rows, meanings)
    write.put(_asked(write, rows, meanings))


def forget(write: Transaction, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
    """Forget the rows that entries asked for, before what is left of them is derived again, and `renew_blocks`."""
    for row in _asked(write, rows, meanings):
        if row.name is not BLOCKS:
            write.drop(row.name, row.key)


def renew_blocks(write: Transaction, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
    """Put the rows again that entries asked for together with others of their blocks, of which some were erased."""
    keys = {
        key
        for row, meaning, alone in zip(rows, meanings, _alone_at(rows), strict=True)
        if isinstance(meaning, Observation)
        for _, key, _ in entry_rows.block_rows(meaning, row.position, alone)
    }
    for key in keys:
        write.drop(BLOCKS, key)
    for block in sorted({row.position // BLOCK for row in rows}):
        left = list(write.rows(block * BLOCK - 1, block * BLOCK + BLOCK - 1))
        means = [meaning_of(row.kind, row.body) if row.kind == "observation" else None for row in left]
        write.put([row for row in _asked(write, left, means) if row.name is BLOCKS and row.key in keys])


def _alone_at(rows: Sequence[Row]) -> list[str | None]:
    return [row.recorded_at if row.length == 1 else None for row in rows]


def _asked(view: View, rows: Sequence[Row], meanings: Sequence[Meaning]) -> list[IndexRow]:
    """Return the rows that rows of the log ask for by themselves."""
    entries = [(row.position, row.kind, row.body, meaning) for row, meaning in zip(rows, meanings, strict=True)]
    return [*_rows(entries, _alone_at(rows), ()), *Concerned(view, entries).rows()]


def _rows(entries: Sequence[LogEntry], alone_at: Sequence[str | None], known: Container[bytes]) -> Iterator[IndexRow]:
    """Yield the rows of the ledger that entries ask for; a block has one, and none if it is `known` to be there."""
    blocks: set[bytes] = set()
    for (position, kind, body, meaning), alone in zip(entries, alone_at, strict=True):
        for name, key, value in entry_rows.rows_of(kind, body, meaning, position, alone):
            if name is BLOCKS:
                if key in blocks or key in known:
                    continue
                blocks.add(key)
            yield _make(IndexRow, (name, key, position, value, None))


def _positions(view: View, index: str, prefix: bytes) -> list[int]:
    """Return the positions that the keys with a prefix end in, in order, where nothing else follows the prefix."""
    size = len(prefix) + POSITION_BYTES
    return [position_of(key) for key, _ in view.scan(index, prefix) if len(key) == size]


# Runs


def run_entries(view: View, id: str, through: int, after: int = BEFORE_ALL) -> list[Entry]:
    """Return the entries of one run, by position."""
    prefix = entry_rows.text_prefix(id)
    start = None if after < 0 else prefix + position_key(after)
    size = len(prefix) + POSITION_BYTES
    rows = view.scan(RUN, prefix, after=start)
    return _entries(view, [position_of(key) for key, _ in rows if len(key) == size], through, RUN_KINDS)


def has_run(view: View, id: str, through: int) -> bool:
    """Return whether any entry belongs to a run."""
    prefix = entry_rows.text_prefix(id)
    rows = view.scan(RUN, prefix, limit=1)
    if not rows or len(rows[0][0]) == len(prefix) + POSITION_BYTES:
        return bool(rows) and position_of(rows[0][0]) <= through
    return bool(run_entries(view, id, through))


def last_of_run(view: View, id: str) -> Entry | None:
    """Return the last entry of a run; none of one that there is not."""
    prefix = entry_rows.text_prefix(id)
    rows = view.scan(RUN, prefix, reverse=True, limit=1)
    if not rows or len(rows[0][0]) == len(prefix) + POSITION_BYTES:
        return view.entry(position_of(rows[0][0])) if rows else None
    return next(reversed(run_entries(view, id, view.head().position)), None)


def _entries(view: View, positions: list[int], through: int, kinds: Any) -> list[Entry]:
    found = (view.entry(position) for position in positions if position <= through)
    return [entry for entry in found if entry is not None and entry.kind in kinds]


# Sources


def source_position(view: View, digest: bytes) -> int | None:
    """Return the position of a source's content."""
    rows = view.scan(SOURCE, entry_rows.digest_prefix(digest), limit=1)
    return position_of(rows[0][0]) if rows else None


def source_by_id(view: View, id: str) -> bytes | None:
    """Return the digest of the source with this short id."""
    # 16 characters are 10 whole bytes: more than enough to tell sources apart, and all of the id is compared.
    beginning = unbase32(id[4:20])
    if beginning is not None:
        for key, _ in view.scan(SOURCE, entry_rows.digest_prefix(beginning)):
            if ids.id_of("source", found := entry_rows.digest_of(key)) == id:
                return found
    return None


def source_ids(view: View, prefix: str, limit: int) -> list[str]:
    """Return the ids of sources that begin with a prefix, at most `limit`, in the order of their digests."""
    found: list[str] = []
    after: bytes | None = entry_rows.digest_prefix(_lowest(prefix[4:]))
    while after is not None:
        rows = view.scan(SOURCE, after=after, limit=_IDS_PAGE)
        for key, _ in rows:
            id = ids.id_of("source", entry_rows.digest_of(key))
            if not id.startswith(prefix):
                return found
            if id not in found:
                found.append(id)
                if len(found) == limit:
                    return found
        after = rows[-1][0] if len(rows) == _IDS_PAGE else None
    return found


def _lowest(text: str) -> bytes:
    """Return what stands before every digest whose base32 begins so, and after all that come before those."""
    for length in range(len(text) + 8, len(text) - 1, -1):
        found = unbase32(text.ljust(length, "a"))
        if found is not None:
            return found
    return b""


# Schemas


def schemas(view: View, type: str, through: int) -> list[Schema]:
    """Return the schemas registered for a type, by position."""
    positions, found, _ = _registered(view, type)
    return list(found[: bisect_right(positions, through)])


def schema_of(view: View, type: str, through: int) -> Schema | None:
    """Return the schema in force for a type: the highest of those registered."""
    positions, found, highest = _registered(view, type)
    if not positions or positions[-1] <= through:
        return highest
    return schema.winning(found[: bisect_right(positions, through)])


def schema_types(view: View, through: int) -> list[str]:
    """Return the types that have a schema, sorted."""
    found: dict[bytes, None] = {}
    for key, _ in view.scan(SCHEMA):
        if position_of(key) <= through:
            found[key[: -POSITION_BYTES - 1]] = None
    return sorted(name.decode() for name in found)


def _registered(view: View, type: str) -> tuple[list[int], list[Schema], Schema | None]:
    """Return the positions of the schemas of a type, the schemas, and the highest of them."""
    at_hand = view.at_hand(SCHEMA)
    known: tuple[list[int], list[Schema], Schema | None] | None = at_hand.get(type)
    if known is None:
        positions = _positions(view, SCHEMA, entry_rows.text_prefix(type))
        found: list[Schema] = []
        for position in positions:
            entry = view.entry(position)
            if entry is None or entry.body is None or entry.kind != "schema":
                raise garbled(f"The index {SCHEMA}")
            found.append(_parsed(entry.body))
        known = at_hand[type] = positions, found, schema.winning(found)
    return known


@lru_cache(maxsize=SCHEMAS_MAX)
def _parsed(body: bytes) -> Schema:
    return schema.stored(body)


# Relations


def relations(view: View, entity: bytes, type: str | None, through: int) -> list[ids.Ref]:
    """Return the relation entities that name this entity as an endpoint, by first mention."""
    if type is None:
        prefix = entry_rows.digest_prefix(entity)
        rows = [*view.scan(RELATION, prefix), *view.scan(SAME_AS, prefix)]
    else:
        rows = [*view.scan(relation_index(type), entry_rows.relation_prefix(entity, type))]
    try:
        found = [(position_of(value), entry_rows.relation_of(key)) for key, value in rows]
    except ValueError as error:
        raise garbled(f"The index {RELATION}") from error
    found.sort(key=_first)
    return [ref for first, ref in found if first <= through]


def relations_in_order(
    view: View, entities: Iterable[ids.Ref], type: str | None, through: int, after: ids.Ref | None = None
) -> Iterator[ids.Ref]:
    """Yield the relation entities that name any of some entities, of a type, as they read; from after one on.

    Each comes once. It costs one look for each entity, and then what was yielded: types have only characters that stand
    behind a slash, so the order of keys is that of the references as text.
    """
    indexes = (RELATION, SAME_AS) if type is None else (relation_index(type),)
    last: bytes | None = None
    found = merge(*(_rows_in_order(view, index, ref, type, after) for ref in entities for index in indexes))
    for name, first in found:
        if name != last and first <= through:
            last = name
            try:
                ref = entry_rows.relation_named(name)
            except ValueError as error:
                raise garbled(f"The index {RELATION}") from error
            yield ref


def _rows_in_order(
    view: View, index: str, entity: ids.Ref, type: str | None, after: ids.Ref | None
) -> Iterator[tuple[bytes, int]]:
    """Yield the relations that name an entity in an index, as the ends of their keys, and where each was first said."""
    begin = entry_rows.digest_prefix(entity.digest)
    prefix = begin if type is None else entry_rows.relation_prefix(entity.digest, type)
    last = None if after is None else begin + entry_rows.relation_name(after)
    if last is not None and not last.startswith(prefix):
        if last > prefix:
            return  # the whole type lies before it
        last = None
    count = _RELATIONS_PAGE
    while True:
        rows = view.scan(index, prefix, after=last, limit=count)
        for key, value in rows:
            yield key[len(begin) :], position_of(value)
        if len(rows) < count:
            return
        last, count = rows[-1][0], min(2 * count, _RELATIONS_PAGE_MAX)


def _first(found: tuple[int, ids.Ref]) -> int:
    return found[0]


def joins(view: View) -> bool:
    """Return whether any `same_as` was ever said."""
    at_hand = view.at_hand(SAME_AS)
    found: bool | None = at_hand.get(_JOINS)
    if found is None:
        found = at_hand[_JOINS] = bool(view.scan(SAME_AS, limit=1))
    return found


def joined_among(view: View, entities: Sequence[bytes]) -> Collection[bytes]:
    """Return those of these entities that any `same_as` ever named, in one look; `joined` says it of one."""
    if not joins(view):
        return ()
    at_hand = view.at_hand(SAME_AS)
    prefixes = {entry_rows.digest_prefix(entity): entity for entity in entities if entity not in at_hand}
    size = len(entry_rows.digest_prefix(bytes(32)))
    found = {prefixes[key[:size]] for key, _ in view.find(SAME_AS, list(prefixes))} if prefixes else set()
    for entity in prefixes.values():
        if entity not in found:
            _note_unjoined(at_hand, entity)
    return found


def joined(view: View, entity: bytes) -> bool:
    """Return whether any `same_as` ever named this entity; wrongly true costs time, wrongly false an answer."""
    at_hand = view.at_hand(SAME_AS)
    some = at_hand.get(_JOINS)
    if some is False or entity in at_hand or not (some or joins(view)):
        return False
    if view.scan(SAME_AS, entry_rows.digest_prefix(entity), limit=1):
        return True
    _note_unjoined(at_hand, entity)
    return False


def _note_unjoined(at_hand: dict[Any, Any], entity: bytes) -> None:
    if len(at_hand) >= UNJOINED_MAX:
        at_hand.clear()
        at_hand[_JOINS] = True
    at_hand[entity] = False

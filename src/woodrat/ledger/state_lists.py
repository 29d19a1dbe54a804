"""State lists: fields in conflict and identifying values that several entities have, one after the other.

The definitions fold every entity (`reads.conflicts_of`, `find.duplicates`). Where the rows of the state index cover a
type they lead to its conflicts and duplicates instead, and a page costs what it returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import Ref
from woodrat.ledger import find, reads
from woodrat.ledger.find import READER_FOLDS, Duplicate
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import Coverage, coverage
from woodrat.ledger.state_rows import (
    ARRIVAL,
    CONFLICT,
    DUPLICATE,
    IDENTITY,
    INDEX,
    conflict_key,
    duplicate_key,
    identifying_values,
    split_entry,
    split_names,
    type_prefix,
)

if TYPE_CHECKING:
    from woodrat.ledger.reads import EntityConflict

Place = tuple[Any, ...]


def conflicts(
    reader: Reader, type: str | None, place: Place | None, *, arrival: bool
) -> Iterator[tuple[Place, EntityConflict]]:
    """Yield the fields in conflict, or decided only by arrival, by entity and field, from after a place on."""
    last = None if place is None else Ref(place[0], place[1])
    if place is not None and last is not None:
        # The page before may have ended between two fields of one entity.
        rest = [each for each in reads.conflicts_of(reader, last, arrival) if each.field > place[2]]
        yield from (((last.type, last.key, each.field), each) for each in rest)
    rows = coverage(reader, INDEX)
    if rows is None:
        walked = find.folds_in_order(reader, type, last)
        yield from _conflicts_of(((ref, fresh) for ref, _, fresh in walked), arrival)
        return
    for name in find.types_in_order(reader, type):
        if last is None or name.encode() >= last.type.encode():
            after = last if last is not None and last.type == name else None
            yield from _conflicts_of(_contested(reader, rows, name, after, ARRIVAL if arrival else CONFLICT), arrival)


def _conflicts_of(found: Iterator[tuple[Ref, Reader]], arrival: bool) -> Iterator[tuple[Place, EntityConflict]]:
    for ref, fresh in found:
        for each in reads.conflicts_of(fresh, ref, arrival):
            yield (ref.type, ref.key, each.field), each


def _contested(
    reader: Reader, rows: Coverage, type: str, after: Ref | None, index: str
) -> Iterator[tuple[Ref, Reader]]:
    """Yield the entities of a type that may have fields in conflict, by key, and who is to read them."""
    if not rows.covers(type):
        for ref, _, fresh in find.folds_in_order(reader, type, after):
            yield ref, fresh
        return
    start = None if after is None else conflict_key(type, after.key) + b"\xff"
    listed = (key for key in _keys(reader, rows, index, type, start) if Ref(type, key) not in rows.laid_over)
    over = [root.key for root in rows.roots if root.type == type and _follows(root, after)]
    for some in find.chunks(Ref(type, key) for key in merge(listed, over, key=str.encode)):
        fresh = Reader(reader.view, reader.asof, reader.policies)  # a reader keeps all it has folded
        fresh.gather(some)
        yield from ((ref, fresh) for ref in some if fresh.exists(ref))


def _follows(ref: Ref, after: Ref | None) -> bool:
    return after is None or ref.key.encode() > after.key.encode()


def _keys(reader: Reader, rows: Coverage, index: str, type: str, after: bytes | None) -> Iterator[str]:
    """Yield the keys of entities with rows of an index of fields, each once."""
    last = ""
    for row in scan_all(reader, rows, index, type_prefix(type), after):
        _, key, _ = split_names(row)
        if key != last:
            yield key
            last = key


def scan_all(reader: Reader, rows: Coverage, index: str, prefix: bytes, after: bytes | None = None) -> Iterator[bytes]:
    """Yield the keys of rows that begin with a prefix, from after one on, reading some at a time."""
    count = 64
    while True:
        found = reader.view.scan(index, prefix, through=rows.through, after=after, limit=count)
        yield from (key for key, _ in found)
        if len(found) < count:
            return
        after, count = found[-1][0], min(2 * count, READER_FOLDS)


def duplicates(reader: Reader, type: str | None, place: Place | None) -> Iterator[tuple[Place, Duplicate]]:
    """Yield the identifying values that several entities have, by type, rule and value, from after a place on."""
    rows = coverage(reader, INDEX)
    for name in find.types_in_order(reader, type):
        if place is not None and name.encode() < str(place[0]).encode():
            continue
        if rows is None or not rows.covers(name):
            found: Iterator[Duplicate] = iter(find.duplicates(reader, name))
        else:
            after = None if place is None or place[0] != name else duplicate_key(*place)
            found = _shared(reader, rows, name, after)
        for each in found:
            where = each.type, each.rule, each.value
            if place is None or where > place:
                yield where, each


def _shared(reader: Reader, rows: Coverage, type: str, after: bytes | None) -> Iterator[Duplicate]:
    """Yield the values of a type that several entities have: those that rows list, and those laid over them."""
    over: dict[bytes, list[Ref]] = {}
    for root in rows.roots:
        if root.type == type:
            for rule, value in identifying_values(root, reader.state(root), reader.rules(type)):
                over.setdefault(duplicate_key(type, rule, value), []).append(root)
    more = sorted(key for key in over if after is None or key > after)
    last = b""
    for prefix in merge(scan_all(reader, rows, DUPLICATE, type_prefix(type), after), more):
        if prefix == last:
            continue
        last = prefix
        keys = (split_entry(row, prefix)[1] for row in scan_all(reader, rows, IDENTITY, prefix))
        refs = [ref for key in keys if (ref := Ref(type, key)) not in rows.laid_over] + over.get(prefix, [])
        if len(refs) > 1:
            _, rule, value = split_names(prefix)
            yield Duplicate(type, rule, value, tuple(sorted(refs, key=lambda ref: ref.key.encode())))

"""State lists: fields in conflict and identifying values that several entities have, one after the other.

The definitions fold every entity (`reads.conflicts_of`, `find.duplicates`). Where the rows of the state index cover a
type they lead to its conflicts and duplicates instead, and a page costs what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import Ref
from woodrat.ledger import find, reads
from woodrat.ledger.find import Duplicate
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import Coverage, coverage
from woodrat.ledger.state_rows import (
    ARRIVAL,
    CONFLICT,
    DUPLICATE,
    IDENTITY,
    MAY_BE,
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
    rows = coverage(reader)
    if rows is None:
        walked = find.folds_in_order(reader, type, last)
        yield from _conflicts_of(((ref, fresh) for ref, _, fresh in walked), arrival)
        return
    for name in find.types_in_order(reader, type):
        if last is None or name.encode() >= last.type.encode():
            after = last if last is not None and last.type == name else None
            if rows.covers(name):
                yield from _listed_conflicts(reader, rows, name, after, arrival)
            else:
                walked = find.folds_in_order(reader, name, after)
                yield from _conflicts_of(((ref, fresh) for ref, _, fresh in walked), arrival)


def _conflicts_of(found: Iterator[tuple[Ref, Reader]], arrival: bool) -> Iterator[tuple[Place, EntityConflict]]:
    for ref, fresh in found:
        for each in reads.conflicts_of(fresh, ref, arrival):
            yield (ref.type, ref.key, each.field), each


def _listed_conflicts(
    reader: Reader, rows: Coverage, type: str, after: Ref | None, arrival: bool
) -> Iterator[tuple[Place, EntityConflict]]:
    """Yield the conflicts of a type that rows list, and those of entities that are laid over them, by key and field.

    What rows list is in conflict, so only its state is looked up; who claims what is worked out when it is asked for.
    """
    index = ARRIVAL if arrival else CONFLICT
    start = None if after is None else conflict_key(type, after.key) + b"\xff"
    listed = (
        (key, fields)
        for key, fields in _fields(reader, rows, index, type, start)
        if Ref(type, key) not in rows.laid_over
    )
    over = sorted((root.key for root in rows.roots if root.type == type and _follows(root, after)), key=str.encode)
    entities = merge(listed, ((key, None) for key in over), key=_key)
    while some := list(islice(entities, find.GATHERED)):
        fresh = Reader(reader.view, reader.asof, reader.policies)  # a reader keeps all it has folded
        fresh.gather(Ref(type, key) for key, _ in some)
        for key, fields in some:
            ref = Ref(type, key)
            if fields is not None:
                conflicts = reads.listed_conflicts_of(fresh, ref, fields, arrival)
            else:
                conflicts = reads.conflicts_of(fresh, ref, arrival) if fresh.exists(ref) else []
            for each in conflicts:
                yield (type, key, each.field), each


def _key(entity: tuple[str, object]) -> bytes:
    return entity[0].encode()


def _follows(ref: Ref, after: Ref | None) -> bool:
    return after is None or ref.key.encode() > after.key.encode()


def _fields(
    reader: Reader, rows: Coverage, index: str, type: str, after: bytes | None
) -> Iterator[tuple[str, list[str] | None]]:
    """Yield the entities with rows of an index of fields, each with these; none where they have to be looked at."""
    last, fields, is_sure = "", list[str](), True
    for row, value in find.scan_all(reader, rows, index, type_prefix(type), after):
        _, key, name = split_names(row)
        if key != last:
            if fields:
                yield last, fields if is_sure else None
            last, fields, is_sure = key, [], True
        fields.append(name)
        is_sure = is_sure and value != MAY_BE
    if fields:
        yield last, fields if is_sure else None


def duplicates_of(reader: Reader, ref: Ref, type: str | None, place: Place | None) -> Iterator[tuple[Place, Duplicate]]:
    """Yield the identifying values that an entity shares with others, by rule and value, from after a place on.

    Where rows cover its type, it costs what they list for the values that it has.
    """
    root = reads.spoken_of(reader, ref)[0]
    if type not in (None, root.type):
        return
    rows = coverage(reader)
    if rows is None or not rows.covers(root.type):
        found: Iterator[Duplicate] = (each for each in _folded(reader, rows, root.type) if root in each.entities)
    else:
        values = sorted(identifying_values(root, reader.state(root), reader.rules(root.type)))
        prefixes = (duplicate_key(root.type, rule, value) for rule, value in values)
        found = _sharing(reader, rows, prefixes, _laid_over(reader, rows, root.type))
    for each in found:
        where = each.type, each.rule, each.value
        if place is None or where > place:
            yield where, each


def duplicates(reader: Reader, type: str | None, place: Place | None) -> Iterator[tuple[Place, Duplicate]]:
    """Yield the identifying values that several entities have, by type, rule and value, from after a place on."""
    rows = coverage(reader)
    for name in find.types_in_order(reader, type):
        if place is not None and name.encode() < str(place[0]).encode():
            continue
        if rows is None or not rows.covers(name):
            found: Iterator[Duplicate] = iter(_folded(reader, rows, name))
        else:
            after = None if place is None or place[0] != name else duplicate_key(*place)
            found = _shared(reader, rows, name, after)
        for each in found:
            where = each.type, each.rule, each.value
            if place is None or where > place:
                yield where, each


def _folded(reader: Reader, rows: Coverage | None, type: str) -> tuple[Duplicate, ...]:
    """Return the duplicates of a type by folding every entity."""
    folds = find.folds(reader, type)
    return find.duplicates(reader, folds if rows is None else find.at_most(type, folds))


def _shared(reader: Reader, rows: Coverage, type: str, after: bytes | None) -> Iterator[Duplicate]:
    """Yield the values of a type that several entities have: those that rows list, and those laid over them."""
    over = _laid_over(reader, rows, type)
    more = sorted(key for key in over if after is None or key > after)
    rows_listed = find.scan_all(reader, rows, DUPLICATE, type_prefix(type), after)
    listed = merge((key for key, _ in rows_listed), more)
    return _sharing(reader, rows, (prefix for prefix, _ in groupby(listed)), over)


def _laid_over(reader: Reader, rows: Coverage, type: str) -> dict[bytes, list[Ref]]:
    """Return which entities of a type that rows say nothing of by now have which identifying values."""
    over: dict[bytes, list[Ref]] = {}
    for root in rows.roots:
        if root.type == type:
            for rule, value in identifying_values(root, reader.state(root), reader.rules(type)):
                over.setdefault(duplicate_key(type, rule, value), []).append(root)
    return over


def _sharing(
    reader: Reader, rows: Coverage, prefixes: Iterable[bytes], over: Mapping[bytes, list[Ref]]
) -> Iterator[Duplicate]:
    """Yield those of some identifying values that several entities have, each with all who have it."""
    for prefix in prefixes:
        type, rule, value = split_names(prefix)
        keys = (split_entry(row, prefix)[1] for row, _ in find.scan_all(reader, rows, IDENTITY, prefix))
        refs = [ref for key in keys if (ref := Ref(type, key)) not in rows.laid_over] + over.get(prefix, [])
        if len(refs) > 1:
            yield Duplicate(type, rule, value, tuple(sorted(refs, key=lambda ref: ref.key.encode())))

"""Query: entities by type, by what holds of their fields, in the order of keys or of a field.

The definition folds every entity of a type and looks. Where the rows of a state index cover what is asked
(`state_index.py`), they lead to those that may fulfil it instead, in order: each is still folded and looked at, so rows
can be too many, and the answer is the same. What they cannot answer for is folded and laid over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge, nsmallest
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_bytes, order_key
from woodrat.engines.records import Scan
from woodrat.errors import Fault, shown
from woodrat.ledger.conditions import (
    EQ,
    EXISTS,
    GT,
    GTE,
    IN,
    LT,
    LTE,
    PREFIX,
    Condition,
    all_hold,
    collects,
    read_conditions,
)
from woodrat.ledger.find import (
    READER_FOLDS,
    chunks,
    folds_in_order,
    text_or_none,
    type_faults,
    types_in_order,
)
from woodrat.ledger.pages import PageRequest, page_request, place_in
from woodrat.ledger.read import LAST_KEY, Reader
from woodrat.ledger.state_index import Coverage, coverage
from woodrat.ledger.state_rows import (
    ABSENT,
    ARRAY,
    ELEMENT,
    ELEMENTS_MAX,
    FIELD,
    LARGE,
    VALUE_BYTES_MAX,
    entry_key,
    field_prefix,
    is_cut,
    lists_all,
    split_entry,
    text_of,
    unindexed_bytes,
    value_bytes,
)
from woodrat.merge import snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state import observation

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.merge.snapshot import Snapshot

SCAN_ROWS: Final = 64
"""How many rows a scan asks for at first; each time it asks for twice as many, up to `READER_FOLDS`."""
KEYS_MAX: Final = 5_000
"""How many candidates are gathered to be put in the order of their keys; with more all entities are walked through."""
MATCHES_MAX: Final = 1_000
"""How many candidates are folded to be put in the order of a field; with more its rows lead."""
SORTED_MAX: Final = 10_000
"""How many entities are kept in order at most when every entity had to be folded for it."""
PAST_ALL: Final = b"\xff\xff"
"""Sorts after all that begins with a value."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, checked."""

    type: str | None
    where: tuple[Condition, ...]
    """What must hold, all of it."""
    sort: str | None
    descending: bool
    page: PageRequest
    """Which page; its place is the last item of the page before."""


def ask_query(
    context: Context,
    entity_type: object,
    where: object,
    sort: object,
    descending: object,
    limit: object,
    cursor: object,
) -> Query:
    """Return a query once everything about it is in order; `Refused` says all that is not."""
    faults = type_faults(entity_type)
    conditions = read_conditions(where, faults)
    if sort is not None:
        if isinstance(sort, str):
            faults += observation.field_name_faults(sort, "sort")
        else:
            faults.append(Fault("sort", f"expected a field, got {shown(sort)}", "Send the field's name as text."))
    if not isinstance(descending, bool):
        faults.append(Fault("descending", f"got {shown(descending)}", "Send true or false."))
    asked: list[Json] = [condition.question() for condition in conditions]
    question: list[Json] = ["query", text_or_none(entity_type), asked, text_or_none(sort), descending is True]
    page = page_request(context, question, limit, cursor, faults)
    return Query(text_or_none(entity_type), tuple(conditions), text_or_none(sort), descending is True, page)


def first_scans(entity_type: object, where: object, sort: object, descending: object, cursor: object) -> Sequence[Scan]:
    """Return where a page of a query will look first, as far as that can be told without schemas."""
    if not isinstance(entity_type, str) or type_faults(entity_type):
        return ()
    place = place_in(cursor)
    key = place[-1].encode() if sort is None and place and isinstance(place[-1], str) else None
    faults: list[Fault] = []
    found: list[Scan] = []
    for condition in read_conditions(where, faults):
        if condition.op == EQ and not isinstance(condition.operand, list | dict):
            prefix = field_prefix(entity_type, condition.field) + value_bytes(condition.operand) + b"\0"
            after = None if key is None else prefix + key + b"\0"
            found.append(Scan(FIELD, prefix, SCAN_ROWS, descending is True and sort is None, after))
    return () if faults else found


# Order


class _Turned:
    """A value that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __lt__(self, other: _Turned) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Turned) and other.key == self.key

    __hash__ = None  # type: ignore[assignment]


Rank = tuple[Any, ...]
Ranked = tuple[Rank, Ref, Reader]
"""An entity with its place, and who read it."""


def _rank(asked: Query, ref: Ref, state: MergeState, rules: Rules) -> Rank:
    """Return the place of an entity: by the field asked for, those without it last, then by type and key."""
    name = ref.type.encode(), ref.key.encode()
    if asked.sort is None:
        return (_Turned(name) if asked.descending else name,)
    values = snapshot.fields_of(state, rules, (asked.sort,))
    if asked.sort not in values:
        return True, (), name
    key = order_key(values[asked.sort])
    return False, _Turned(key) if asked.descending else key, name


def _by_rank(item: Ranked) -> Rank:
    return item[0]


# Answers


class Answer:
    """The entities that fulfil a query, in order, from after one on."""

    def __init__(self, reader: Reader, asked: Query, after: Ref | None) -> None:
        self._reader, self._asked, self._after = reader, asked, after
        self._view: View = reader.view
        self._rows = coverage(reader) if asked.sort is not None or asked.where else None
        self._place: Rank | None = None
        if after is not None:
            self._place = _rank(asked, after, reader.state(after), reader.rules(after.type))
        self._fresh, self._folds = reader, 0

    def _types(self) -> Iterator[str]:
        """Yield the types to look at, in order."""
        reverse = self._asked.descending and self._asked.sort is None
        return types_in_order(self._reader, self._asked.type, reverse=reverse)

    def is_walked(self) -> bool:
        """Return whether items are found one after the other; otherwise all of a type is folded for each page."""
        return self._asked.sort is None or all(self._leads(type) for type in self._types())

    def _leads(self, type: str) -> bool:
        """Return whether rows lead through a type in the order of the field asked for."""
        sort, rules = self._asked.sort, self._reader.rules(type)
        if self._rows is None or not self._rows.covers(type) or sort is None:
            return False
        return sort in rules.schema.indexed or lists_all(rules.schema, sort)

    def snapshots(self) -> Iterator[tuple[Ref, Snapshot]]:
        """Yield the entities with what is believed of them, in order."""
        if self._asked.sort is None:
            found = (item for type in self._types() if not self._is_past(type) for item in self._by_key(type))
        else:
            limit = self._asked.page.limit + 1
            found = merge(*(self._sorted(type, limit) for type in self._types()), key=_by_rank)
        yield from ((ref, reader.snapshot(ref)) for _, ref, reader in found)

    def first(self, count: int) -> list[Ref]:
        """Return the first entities, where every entity of a type is folded for them."""
        found = (item for type in self._types() for item in self._sorted(type, count))
        return [ref for _, ref, _ in nsmallest(count, found, key=_by_rank)]

    def _is_past(self, type: str) -> bool:
        """Return whether all of a type comes before the place to go on from."""
        if self._after is None or type == self._after.type:
            return False
        return (type.encode() < self._after.type.encode()) is not self._asked.descending

    def _look(self, ref: Ref) -> Ranked | None:
        """Return an entity with its place, if it fulfils the query and comes after the place to go on from."""
        state, rules = self._fresh.state(ref), self._fresh.rules(ref.type)
        if not state.exists or state.deleted or not all_hold(state, rules, self._asked.where):
            return None
        rank = _rank(self._asked, ref, state, rules)
        return (rank, ref, self._fresh) if self._place is None or self._place < rank else None

    def _renew(self, count: int) -> None:
        """Take a new reader after many folds, before so many more: a reader keeps all it has folded."""
        self._folds += count
        if self._folds > READER_FOLDS:
            self._fresh, self._folds = Reader(self._view, self._reader.asof, self._reader.policies), count

    def _fold_all(self, type: str) -> Iterator[Ranked]:
        """Yield what fulfils the query of all entities of a type, folded one after the other, by key."""
        after = self._after if self._asked.sort is None and self._after and self._after.type == type else None
        reverse = self._asked.descending and self._asked.sort is None
        for ref, state, fresh in folds_in_order(self._reader, type, after, reverse=reverse):
            rules = fresh.rules(type)
            if all_hold(state, rules, self._asked.where):
                rank = _rank(self._asked, ref, state, rules)
                if self._place is None or self._place < rank:
                    yield rank, ref, fresh

    # By key

    def _by_key(self, type: str) -> Iterator[Ranked]:
        """Yield what fulfils the query of a type, by key."""
        rows = self._rows
        keys = None if rows is None or not rows.covers(type) else self._keys(TypeRows(self._reader, rows, type))
        if rows is None or keys is None:
            yield from self._fold_all(type)
            return
        yield from merge(self._candidates(rows, type, keys), self._laid_over(rows, type), key=_by_rank)

    def _candidates(self, rows: Coverage, type: str, keys: Iterable[str]) -> Iterator[Ranked]:
        """Yield what fulfils the query of that which rows lead to, looked up some at a time."""
        refs = (ref for key in keys if (ref := Ref(type, key)) not in rows.laid_over)
        for some in chunks(refs):
            self._renew(len(some))
            self._fresh.gather(some)
            yield from (item for ref in some if (item := self._look(ref)) is not None)

    def _laid_over(self, rows: Coverage, type: str) -> list[Ranked]:
        """Return what fulfils the query of that which the rows are not asked about, in order."""
        found: list[Ranked] = []
        for some in chunks(root for root in rows.roots if root.type == type):
            self._renew(len(some))
            self._fresh.gather(some)
            found += (item for root in some if (item := self._look(root)) is not None)
        return sorted(found, key=_by_rank)

    def _keys(self, rows: TypeRows) -> Iterator[str] | None:
        """Return the keys of candidates in order, each once; none when no condition leads to them."""
        after = self._after.key if self._after is not None and self._after.type == rows.type else None
        conditions = rows.indexed(self._asked.where)
        points = [condition for condition in conditions if rows.is_point(condition)]
        if points:
            chosen = points[0] if len(points) == 1 else min(points, key=rows.count)
            return rows.keys_at(chosen, after, reverse=self._asked.descending)
        for condition in conditions:
            gathered = rows.gather(condition, conditions, KEYS_MAX)
            if gathered is not None:
                keys = (key for key in gathered if after is None or self._comes_after(key, after))
                return iter(sorted(keys, key=str.encode, reverse=self._asked.descending))
        return None

    def _comes_after(self, key: str, after: str) -> bool:
        return key.encode() < after.encode() if self._asked.descending else key.encode() > after.encode()

    # By a field

    def _sorted(self, type: str, count: int) -> Iterator[Ranked]:
        """Yield what fulfils the query of a type, by the field asked for; without rows only the first so many."""
        if not self._leads(type):
            return iter(nsmallest(count, self._fold_all(type), key=_by_rank))
        assert self._rows is not None
        rows = TypeRows(self._reader, self._rows, type)
        return merge(self._led(rows), self._laid_over(self._rows, type), key=_by_rank)

    def _led(self, rows: TypeRows) -> Iterator[Ranked]:
        """Yield what fulfils the query, of that which the rows of a type lead to."""
        coverage, sort = rows.coverage, self._asked.sort
        assert sort is not None
        conditions = rows.indexed(self._asked.where)
        for condition in conditions:
            if condition.field != sort:
                gathered = rows.gather(condition, conditions, MATCHES_MAX)
                if gathered is not None:
                    yield from sorted(self._candidates(coverage, rows.type, gathered), key=_by_rank)
                    return
        start = self._start(rows, sort)
        for keys, is_ordered in rows.groups(sort, conditions, self._asked.descending, start):
            items = self._candidates(coverage, rows.type, keys)
            yield from items if is_ordered else sorted(items, key=_by_rank)
        needs_value = any(
            each.field == sort and (each.op != EXISTS or each.operand is True) for each in self._asked.where
        )
        if not rows.has_absent(sort) and not needs_value:
            yield from self._lacking(rows, None if start is None or start[0] < ABSENT else start[1])

    def _lacking(self, rows: TypeRows, after: str | None) -> Iterator[Ranked]:
        """Yield what fulfils the query and has no value to sort by, by key: of all entities, from after one on."""
        last = None if after is None else Ref(rows.type, after)
        for ref, state, fresh in folds_in_order(self._reader, rows.type, last):
            rules = fresh.rules(rows.type)
            if ref in rows.coverage.laid_over or not all_hold(state, rules, self._asked.where):
                continue
            rank = _rank(self._asked, ref, state, rules)
            if rank[0] and (self._place is None or self._place < rank):
                yield rank, ref, fresh

    def _start(self, rows: TypeRows, sort: str) -> tuple[bytes, str] | None:
        """Return the value to go on from, as its row has it, and the key after which to go on in it."""
        if self._after is None:
            return None
        state = self._reader.state(self._after)
        values = snapshot.fields_of(state, self._reader.rules(self._after.type), (sort,))
        spell = field_bytes if rows.has_absent(sort) else unindexed_bytes
        value = spell(values[sort]) if sort in values else ABSENT
        if rows.type == self._after.type:
            return value, self._after.key
        return value, "" if rows.type.encode() > self._after.type.encode() else LAST_KEY


def field_bytes(value: Json) -> bytes:
    """Return how a value stands in a row of `field`, its size counted in."""
    return LARGE if isinstance(value, list) and len(value) > ELEMENTS_MAX else value_bytes(value)


class TypeRows:
    """The rows of the indexed fields of one type, as of the position of a reader."""

    def __init__(self, reader: Reader, coverage: Coverage, type: str) -> None:
        self.type, self.coverage = type, coverage
        self._view, self._rules = reader.view, reader.rules(type)
        self._large: dict[bytes, bool] = {}

    def indexed(self, conditions: Iterable[Condition]) -> list[Condition]:
        """Return the conditions that rows of their fields lead to."""
        return [condition for condition in conditions if self._is_led(condition)]

    def has_absent(self, name: str) -> bool:
        """Return whether entities without a value of a field have rows of it too."""
        return name in self._rules.schema.indexed

    def _is_led(self, condition: Condition) -> bool:
        name, op, operand = condition
        if self.has_absent(name):
            return True
        if not lists_all(self._rules.schema, name):
            return False
        if op == EXISTS:
            return operand is True
        values = operand if op == IN and isinstance(operand, list) else [operand]
        return not any(isinstance(value, list | dict) for value in values)

    @staticmethod
    def is_point(condition: Condition) -> bool:
        """Return whether rows of a few values, each by key, lead to all that fulfil a condition."""
        return condition.op in (EQ, IN) or (condition.op == EXISTS and condition.operand is False)

    def _scan(
        self,
        index: str,
        prefix: bytes,
        after: bytes | None = None,
        *,
        reverse: bool = False,
        before: bytes | None = None,
    ) -> Iterator[bytes]:
        """Yield the keys of rows that begin with a prefix, in order, from after one on and up to before another."""
        count = SCAN_ROWS
        while True:
            rows = self._view.scan(
                index, prefix, through=self.coverage.through, after=after, reverse=reverse, limit=count
            )
            for key, _ in rows:
                if before is not None and (key <= before if reverse else key >= before):
                    return
                yield key
            if len(rows) < count:
                return
            after, count = rows[-1][0], min(2 * count, READER_FOLDS)

    def _points(self, condition: Condition) -> list[tuple[str, bytes]]:
        """Return the values that lead to all that fulfil a condition, as indexes and what their rows begin with."""
        prefix = field_prefix(self.type, condition.field)
        if condition.op == EXISTS:
            return [(FIELD, prefix + ABSENT + b"\0")]
        values = [condition.operand] if condition.op == EQ else condition.operand
        assert isinstance(values, list)
        spell = field_bytes if self.has_absent(condition.field) else unindexed_bytes
        points = {(FIELD, prefix + spell(value) + b"\0") for value in values}
        if collects(self._rules, condition.field):
            points.update((ELEMENT, prefix + value_bytes(value) + b"\0") for value in values)
            points.add((ELEMENT, prefix + LARGE + b"\0"))
        return sorted(points)

    def count(self, condition: Condition) -> int:
        """Return how many rows lead to what fulfils a condition, of many only that they are many."""
        through = self.coverage.through
        scans = (
            self._view.scan(index, prefix, through=through, limit=SCAN_ROWS)
            for index, prefix in self._points(condition)
        )
        return sum(map(len, scans))

    def keys_at(self, condition: Condition, after: str | None, *, reverse: bool) -> Iterator[str]:
        """Yield the keys of all that may fulfil a condition that is a point, in order, each once."""

        def keys(index: str, prefix: bytes) -> Iterator[bytes]:
            start = None if after is None else prefix + after.encode() + b"\0"
            for row in self._scan(index, prefix, start, reverse=reverse):
                yield row[len(prefix) : -1]

        last: bytes | None = None
        for key in merge(*(keys(index, prefix) for index, prefix in self._points(condition)), reverse=reverse):
            if key != last:
                yield text_of(key)
                last = key

    def _span(self, conditions: Iterable[Condition]) -> tuple[bytes, bytes]:
        """Return between which bytes the values lie that fulfil conditions which are no points."""
        low, high = b"", ABSENT
        for _, op, operand in conditions:
            if op == EXISTS:
                continue
            whole = order_bytes(operand)
            cut = whole[:VALUE_BYTES_MAX]
            kind = whole[:1]
            if op == PREFIX:
                cut = whole[:-1][:VALUE_BYTES_MAX]
                bounds = cut, cut + PAST_ALL
            elif op in (LT, LTE):
                bounds = kind, cut if op == LT and cut == whole else cut + PAST_ALL
            else:
                assert op in (GT, GTE), f"{op} leads to no range of values"
                bounds = cut + b"\0\xff" if op == GT and cut == whole else cut, kind + PAST_ALL
            low, high = max(low, bounds[0]), min(high, bounds[1])
        return low, high

    def gather(self, condition: Condition, conditions: Iterable[Condition], count: int) -> set[str] | None:
        """Return the keys of all that may fulfil a condition; none if they are more than so many."""
        found: set[str] = set()
        if self.is_point(condition):
            for key in self.keys_at(condition, None, reverse=False):
                found.add(key)
                if len(found) > count:
                    return None
            return found
        prefix = field_prefix(self.type, condition.field)
        is_collection = collects(self._rules, condition.field)
        together = [condition]
        if not is_collection:  # of a collection one element may fulfil one condition, another the other
            together = [each for each in conditions if each.field == condition.field and not self.is_point(each)]
        low, high = self._span(together)
        spans = [(FIELD, prefix + low, prefix + high)]
        if is_collection:
            large = prefix + LARGE
            spans += [(ELEMENT, prefix + low, prefix + high), (ELEMENT, large, large + PAST_ALL)]
        for index, first, last in spans:
            for row in self._scan(index, prefix, first, before=last):
                found.add(split_entry(row, prefix)[1])
                if len(found) > count:
                    return None
        return found

    # In the order of a field

    def groups(
        self, name: str, conditions: Iterable[Condition], descending: bool, start: tuple[bytes, str] | None
    ) -> Iterator[tuple[Iterator[str], bool]]:
        """Yield the keys of entities by the value of a field, those without it last, and whether they are in order.

        `start` is the value to begin with and the key to begin after in it.
        """
        prefix = field_prefix(self.type, name)
        low, high, without = b"", ABSENT, True
        if not collects(self._rules, name):
            asked = [each for each in conditions if each.field == name]
            ranges = [each for each in asked if not self.is_point(each)]
            without = not asked or any(each.op == EXISTS and each.operand is False for each in asked)
            if ranges:
                low, high = self._span(ranges)
        if start is None or start[0] < ABSENT:
            values = self._down if descending else self._up
            yield from values(prefix, low, high, start)
            start = None
        if without:
            first = None if start is None else entry_key(prefix, ABSENT, start[1])
            rows = self._scan(FIELD, prefix + ABSENT, first)
            yield (split_entry(row, prefix)[1] for row in rows), True

    def _has_large(self, prefix: bytes) -> bool:
        found = self._large.get(prefix)
        if found is None:
            rows = self._view.scan(FIELD, prefix + LARGE, through=self.coverage.through, limit=1)
            found = self._large[prefix] = bool(rows)
        return found

    def _group_of(self, prefix: bytes, value: bytes) -> bytes | None:
        """Return what the rows of a value begin with, if they say too little to be in order; among such, all arrays."""
        # A page may begin at a large collection of another type, where this type has none.
        if value == LARGE or (value.startswith(ARRAY) and self._has_large(prefix)):
            return prefix + ARRAY
        return prefix + value if is_cut(value) else None

    def _up(
        self, prefix: bytes, low: bytes, high: bytes, start: tuple[bytes, str] | None
    ) -> Iterator[tuple[Iterator[str], bool]]:
        """Yield groups of keys by ascending value."""
        first = prefix + low
        if start is not None:
            whole = self._group_of(prefix, start[0])
            # Of a group that is out of order all is looked at again; what came before is left out by its place.
            first = max(first, entry_key(prefix, *start) if whole is None else whole)
        while True:
            group: bytes | None = None
            run: list[str] = []
            for row in self._scan(FIELD, prefix, first, before=prefix + high):
                value, key = split_entry(row, prefix)
                group = self._group_of(prefix, value) if is_cut(value) or value.startswith(ARRAY) else None
                if group is not None:
                    break
                run.append(key)
                first = row
                if len(run) >= SCAN_ROWS:
                    yield iter(run), True
                    run = []
            if run:
                yield iter(run), True
            if group is None:
                return
            yield (split_entry(row, prefix)[1] for row in self._scan(FIELD, group)), False
            first = group + PAST_ALL

    def _down(
        self, prefix: bytes, low: bytes, high: bytes, start: tuple[bytes, str] | None
    ) -> Iterator[tuple[Iterator[str], bool]]:
        """Yield groups of keys by descending value; within a value they ascend."""
        last = prefix + high
        if start is not None:
            group = self._group_of(prefix, start[0])
            if group is None:
                group = prefix + start[0] + b"\0"
                rows = self._scan(FIELD, group, entry_key(prefix, *start))
                yield (split_entry(row, prefix)[1] for row in rows), True
            else:
                yield (split_entry(row, prefix)[1] for row in self._scan(FIELD, group)), False
            last = min(last, group)
        while True:
            below = self._view.scan(
                FIELD, prefix, through=self.coverage.through, after=last, reverse=True, limit=SCAN_ROWS
            )
            run: list[str] = []
            end: bytes | None = None
            values = [
                (value, [split_entry(key, prefix)[1] for key, _ in some])
                for value, some in groupby(below, key=lambda row: split_entry(row[0], prefix)[0])
            ]
            for number, (value, keys) in enumerate(values):
                if entry_key(prefix, value, keys[0]) <= prefix + low:
                    end = b""
                    break
                group = self._group_of(prefix, value)
                is_whole = number < len(values) - 1 or len(below) < SCAN_ROWS
                if group is not None or (not is_whole and not run):
                    end = prefix + value + b"\0" if group is None else group
                    break
                if is_whole:
                    run += reversed(keys)
                    last = prefix + value + b"\0"
            if run:
                yield iter(run), True
            if end:
                last = end
                ordered = self._group_of(prefix, value) is None
                yield (split_entry(row, prefix)[1] for row in self._scan(FIELD, end)), ordered
            elif end is not None or len(below) < SCAN_ROWS:
                return

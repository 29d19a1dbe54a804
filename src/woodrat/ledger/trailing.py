"""Trailing indexes of state: rows of every fold, from write to write, made after the writes and out of their way.

A trailing index goes through the log write by write. What a write changed is folded before and after it; rows that are
no longer so end at the last position of the write, new ones begin there. So any moment at which the index has arrived
can be asked about, and what it does not cover (later entries, the inside of a write) is folded instead.

The rows of a step are worked out in a view and written in a transaction of their own, which refuses to go on if
somebody else went on meanwhile: no writer waits for a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.port import IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger import index as log_index
from woodrat.ledger.read import Reader
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state import relation, schema
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, View
    from woodrat.ledger.progress import Progress
    from woodrat.merge import Policy

STEP_ENTRIES: Final = 1_000
"""How many entries one step takes in, or one write where that is longer."""

Rows = Mapping[tuple[str, bytes], bytes]
"""Rows of a fold: values by index and key."""


@dataclass(frozen=True, slots=True)
class StateIndex:
    """Which rows a fold has in a trailing index."""

    name: str
    """Under it the engine notes how far the index goes."""
    indexes: tuple[str, ...]
    """The ordered indexes its rows stand in."""
    rows: Callable[[Ref, MergeState, Rules], Rows]
    """Returns the rows of a fold that exists, under its smallest entity."""
    alike: Callable[[Rules, Rules], bool]
    """Returns whether folds of a type have the same rows under two sets of rules."""


def write_floor(view: View, position: int) -> int:
    """Return the last position not after one at which a write ends; the one before all if there is none."""
    following = view.entry(position + 1)
    if following is None or following.envelope.write > position:
        return position
    return following.envelope.write - 1


def writes_between(view: View, after: int, through: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last position of each write between two ends of writes."""
    first = last = after + 1
    for row in view.rows(after, through):
        if row.write != first:
            yield first, last
            first = row.position
        last = row.position
    if first <= through:
        yield first, last


def spoken_of(view: View, index: StateIndex, policies: Mapping[str, Policy], first: int, last: int) -> set[Ref]:
    """Return the entities whose rows a write may change: those it speaks of, joins or parts, and of types it alters."""
    found = set(view.touched(first - 1, last))
    for ref in list(found):
        found.update(relation.joined(ref) or ())
    before = after = None
    for entry in view.entries(first - 1, last, {"schema"}):
        if entry.body is not None:
            type = schema.stored(entry.body).type
            before = before or Reader(view, AsOf(first - 1), policies)
            after = after or Reader(view, AsOf(last), policies)
            if not index.alike(before.rules(type), after.rules(type)):
                found.update(view.entities(type, last))
    return found


def rows_at(reader: Reader, index: StateIndex, ref: Ref) -> Rows:
    """Return the rows that stand under an entity at a reader's moment; only the smallest of a group has any."""
    if reader.group(ref)[0] != ref:
        return {}
    state = reader.state(ref)
    return index.rows(ref, state, reader.rules(ref.type)) if state.exists else {}


class Step:
    """What one step of an index adds and ends."""

    def __init__(self, view: View, index: StateIndex, policies: Mapping[str, Policy], entries_max: int) -> None:
        self.index = index
        self.before = log_index.covered(view, index.name)
        head = view.head().position
        end = write_floor(view, min(head, self.before + entries_max))
        if end <= self.before < head:  # one write is longer than that
            begun = view.entry(self.before + 1)
            assert begun is not None and begun.envelope.length is not None
            end = self.before + begun.envelope.length
        self.after = end
        """How far the index goes after the step."""
        self._present: dict[Ref, Rows] = {}
        self._begun: dict[tuple[str, bytes], tuple[int, bytes]] = {}
        self._ended: list[tuple[int, str, bytes]] = []
        self._past: list[IndexRow] = []
        for first, last in writes_between(view, self.before, end):
            self._take(view, policies, first, last)

    def _take(self, view: View, policies: Mapping[str, Policy], first: int, last: int) -> None:
        before, after = Reader(view, AsOf(first - 1), policies), Reader(view, AsOf(last), policies)
        spoken = spoken_of(view, self.index, policies, first, last)
        stale = {member for one in spoken for member in (*before.group(one), *after.group(one))}
        for ref in stale:
            cancellation.check()
            old = self._present.get(ref)
            if old is None:
                # The smallest of a group may be one that nothing was ever said of.
                known = view.version(ref.digest, first - 1) is not None or view.joined(ref.digest)
                old = rows_at(before, self.index, ref) if known else {}
            new = self._present[ref] = rows_at(after, self.index, ref)
            for place, value in old.items():
                if new.get(place) != value:
                    self._end(place, value, last)
            for place, value in new.items():
                if old.get(place) != value:
                    self._begun[place] = (last, value)

    def _end(self, place: tuple[str, bytes], value: bytes, position: int) -> None:
        begun = self._begun.pop(place, None)
        if begun is None:
            self._ended.append((position, *place))
        elif begun[0] < position:
            self._past.append(IndexRow(place[0], place[1], begun[0], value, position))

    def write(self, engine: Engine, tenant: TenantId) -> bool:
        """Write the step, unless somebody else went on with the index meanwhile; return whether it was written."""
        with engine.transaction(tenant) as write:
            if log_index.covered(write, self.index.name) != self.before:
                return False
            for position in sorted({position for position, _, _ in self._ended}):
                write.end(position, [(name, key) for at, name, key in self._ended if at == position])
            write.put([IndexRow(name, key, at, value) for (name, key), (at, value) in self._begun.items()])
            write.put(self._past)
            log_index.cover(write, self.index.name, self.after)
        return True


def catch_up(
    engine: Engine,
    tenant: TenantId,
    index: StateIndex,
    policies: Mapping[str, Policy],
    entries_max: int | None = None,
    *,
    progress: Progress | None = None,
) -> int:
    """Bring an index up to date, a bounded step at a time, or on by about so many entries; return how many it lacks.

    One that cannot be written to now stays behind: what it lacks is folded by each question.
    """
    first: int | None = None
    while True:
        with engine.view(tenant) as view:
            head, done = view.head().position, log_index.covered(view, index.name)
            first = done if first is None else first
            if done >= head or (entries_max is not None and done - first >= entries_max):
                return head - done
            step = Step(view, index, policies, STEP_ENTRIES)
        if progress is not None and head - first > STEP_ENTRIES:
            progress(done - first, head - first)
        try:
            step.write(engine, tenant)
        except Unavailable:
            return head - done


def lives(view: View, index: StateIndex, policies: Mapping[str, Policy], ref: Ref, through: int) -> Iterable[IndexRow]:
    """Return every row that an entity had in an index up to a position, those that ended too: by the definition.

    Its folds are compared at the end of each write that may have changed them. `verify` asks for this.
    """
    open_rows: dict[tuple[str, bytes], tuple[int, bytes]] = {}
    found: list[IndexRow] = []
    for position in _write_ends(view, index, policies, ref, through):
        now = rows_at(Reader(view, AsOf(position), policies), index, ref)
        for place, (since, value) in list(open_rows.items()):
            if now.get(place) != value:
                found.append(IndexRow(*place, since, value, position))
                del open_rows[place]
        for place, value in now.items():
            if place not in open_rows:
                open_rows[place] = (position, value)
    found += [IndexRow(*place, since, value) for place, (since, value) in open_rows.items()]
    return found


def _write_ends(view: View, index: StateIndex, policies: Mapping[str, Policy], ref: Ref, through: int) -> list[int]:
    """Return the last positions of the writes that may have changed an entity's rows."""
    ends: set[int] = set()
    met, waiting = {ref}, [ref]
    while waiting:
        one = waiting.pop()
        ends.update(_write_end(view, stored.position) for stored in view.observations(one.digest, -1, through))
        if view.joined(one.digest):
            for edge in view.relations(one.digest, relation.SAME_AS, through):
                for other in (edge, *(relation.joined(edge) or ())):
                    if other not in met:
                        met.add(other)
                        waiting.append(other)
    for entry in view.entries(kinds={"schema"}, through=through):
        if entry.body is not None and schema.stored(entry.body).type == ref.type:
            first, last = entry.envelope.write, _write_end(view, entry.position)
            before = Reader(view, AsOf(first - 1), policies).rules(ref.type)
            if not index.alike(before, Reader(view, AsOf(last), policies).rules(ref.type)):
                ends.add(last)
    return sorted(end for end in ends if end <= through)


def _write_end(view: View, position: int) -> int:
    entry = view.entry(position)
    assert entry is not None
    begun = view.entry(entry.envelope.write)
    assert begun is not None and begun.envelope.length is not None
    return entry.envelope.write + begun.envelope.length - 1


def uncovered(view: View, index: StateIndex, policies: Mapping[str, Policy], through: int) -> tuple[int, set[Ref]]:
    """Return the position an index answers for, not after another, and the entities that may differ between the two."""
    base = write_floor(view, min(through, log_index.covered(view, index.name)))
    if base >= through:
        return through, set()
    then, now = Reader(view, AsOf(base), policies), Reader(view, AsOf(through), policies)
    spoken = spoken_of(view, index, policies, base + 1, through)
    return base, {member for ref in spoken for member in (*then.group(ref), *now.group(ref))}

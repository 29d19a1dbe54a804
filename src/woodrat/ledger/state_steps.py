"""Steps of state indexes: the next part of the log, folded once for all indexes that stand at the same place.

A step reads some writes of the log, follows what they say of each entity, and works out in a view which rows begin and
end with each write. It is written in a short transaction, which does nothing if somebody else went on meanwhile: no
writer waits for a fold. A write that brings a schema is a step of its own; where the schema changes what an index says
of a type, the entities of the type are taken in by the steps that follow, some at a time.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.port import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger import entry_index, refold, state_rows
from woodrat.ledger.before import Before, extend_all
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.read import LAST_KEY, Reader
from woodrat.ledger.state_index import NOTHING, Fold, Place, Progress, Rows, StateIndex, WriteEnds, progress_of, rows_of
from woodrat.ledger.state_rows import DUPLICATE, FIELD, IDENTITY, UNSPOKEN, field_prefix, unspoken_key, value_prefix
from woodrat.ledger.transitions import touched
from woodrat.merge import Policy, fold
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.records import replace
from woodrat.state import observation, schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, Transaction, View
    from woodrat.ledger.progress import Progress as ProgressTold

STEP_ENTRIES: Final = 1_000
"""How many entries one step takes in, or one write where that is longer."""
STEP_ENTITIES: Final = 500
"""How many entities of a type with a new schema one step takes in."""
CATCH_UP_ENTRIES: Final = 200_000
"""How much of the log one read takes in at most before it answers."""
LAID_OVER_FEW: Final = 16
"""So many entries behind, a read does not even begin to catch up."""


class Event(NamedTuple):
    """Rows that begin and end with a write."""

    position: int
    """The end of the write."""
    gained: Rows
    """Rows that are true from there on."""
    lost: Rows
    """Rows that are no longer true from there on."""


def _event(position: int, old: Rows, new: Rows) -> Event | None:
    if old == new:
        return None
    gained = {place: value for place, value in new.items() if old.get(place) != value}
    return Event(position, gained, {place: value for place, value in old.items() if new.get(place) != value})


class EntityRows:
    """The rows of an entity that was never joined with another, followed along what is said of it."""

    def __init__(
        self,
        view: View,
        policies: Mapping[str, Policy],
        indexes: Sequence[StateIndex],
        ends: WriteEnds,
        state: MergeState,
        rules: Rules,
    ) -> None:
        """Begin with a state."""
        (self._ref,) = state.members
        self._view, self._policies, self._indexes, self._ends, self._rules = view, policies, indexes, ends, rules
        self._state: MergeState | None = state
        self._known = Before(view, state.members, BEFORE_ALL)
        self._last: int | None = None
        self._fold = Fold(self._ref, state, rules)
        self._rows: list[Rows] = [index.rows(self._fold) if state.exists else {} for index in indexes]
        """The rows it had in each index at the end of the last write."""
        self.events: list[Event] = []
        """What became of them."""

    def add(self, said: Stored) -> None:
        """Take in the next observation of it."""
        if self._last is not None and said.position > self._ends.end(self._last):
            self._settle()
        self._last, self._known.through = said.position, said.position - 1
        if self._state is not None:
            self._state = fold.extend(self._state, said.observation, self._rules, self._known)

    def close(self) -> list[Event]:
        """Return what became of the rows, once all was said."""
        if self._last is not None:
            self._settle()
            self._last = None
        return self.events

    def state(self) -> MergeState:
        """Return the state after what was said last."""
        if self._state is None:
            assert self._last is not None
            self._state = Reader(self._view, AsOf(self._last), self._policies).state(self._ref)
        return self._state

    def fold(self) -> Fold:
        """Return the fold after what was said last."""
        return self._fold if self._last is None else Fold(self._ref, self.state(), self._rules)

    def turn(self, state: MergeState, rules: Rules, position: int) -> None:
        """Go on under other rules, from a position on."""
        self._rules, self._state, self._last = rules, state, None
        self._note(position, Fold(self._ref, state, rules), renewed=True)

    def _settle(self) -> None:
        assert self._last is not None
        self._note(self._ends.end(self._last), Fold(self._ref, self.state(), self._rules))

    def _note(self, position: int, fold: Fold, *, renewed: bool = False) -> None:
        before, self._fold = self._fold, fold
        can_be_same = not renewed and before.is_shown and fold.is_shown
        for at, index in enumerate(self._indexes):
            if can_be_same and index.same is not None and index.same(before, fold):
                continue
            rows = index.rows(fold) if fold.state.exists else {}
            event = _event(position, self._rows[at], rows)
            if event is not None:
                self.events.append(event)
                self._rows[at] = rows


def state_before(reader: Reader, ref: Ref) -> MergeState:
    """Return the state of a lone entity at the as-of of a reader, in the least time."""
    view, position, rules = reader.view, reader.asof.position, reader.rules(ref.type)
    if position == BEFORE_ALL or view.entity(ref.digest, position) is None:
        return fold.empty((ref,), rules)
    kept = view.kept(ref, position, rules)
    if kept is not None and kept.state.members != (ref,):
        kept = None
    base = fold.empty((ref,), rules) if kept is None else kept.state
    since = view.observations(ref.digest, BEFORE_ALL if kept is None else kept.position, position)
    return extend_all(base, since, rules, Before(view, (ref,), BEFORE_ALL)) or reader.state(ref)


def group_rows(reader: Reader, indexes: Sequence[StateIndex], refs: Iterable[Ref]) -> dict[Place, bytes]:
    """Return the rows of the folds that some entities are in."""
    found: dict[Place, bytes] = {}
    names_unspoken = any(UNSPOKEN in index.indexes for index in indexes)
    for root in {reader.group(ref)[0] for ref in refs}:
        cancellation.check()
        state = reader.state(root)
        found.update(rows_of(indexes, Fold(root, state, reader.rules(root.type))))
        is_group = names_unspoken and state.exists and len(state.members) > 1
        if is_group and reader.view.version(root.digest, reader.asof.position) is None:
            found[UNSPOKEN, unspoken_key(root)] = b""
    return found


def group_events(
    view: View,
    policies: Mapping[str, Policy],
    indexes: Sequence[StateIndex],
    ends: WriteEnds,
    spoken: Iterable[tuple[int, Ref]],
) -> Iterator[Event]:
    """Yield what became of the rows of groups, and of entities that joined or parted, write by write.

    `spoken` says at which positions something was said of such entities, or of a `same_as` between two.
    """
    writes: dict[int, list[Ref]] = {}
    for position, ref in sorted(spoken):
        writes.setdefault(ends.end(position), []).append(ref)
    for end, said in writes.items():
        refs = [ref for ref in touched(said) if ref.type != SAME_AS]  # each of these is followed by itself
        event = refolded(view, policies, indexes, ends.bounds(end)[0] - 1, end, refs)
        if event is not None:
            yield event


def refolded(
    view: View, policies: Mapping[str, Policy], indexes: Sequence[StateIndex], before: int, end: int, refs: list[Ref]
) -> Event | None:
    """Return what a write made of the rows of entities, folded before and after it."""
    old = group_rows(Reader(view, AsOf(before), policies), indexes, refs)
    return _event(end, old, group_rows(Reader(view, AsOf(end), policies), indexes, refs))


def is_lone(view: View, ref: Ref) -> bool:
    """Return whether an entity was never joined with another, nor can be."""
    return ref.type == SAME_AS or not entry_index.joined(view, ref.digest)


class Step:
    """What one step of some indexes, which stand at the same place, adds and ends."""

    def __init__(
        self, view: View, indexes: Sequence[StateIndex], policies: Mapping[str, Policy], entries_max: int | None = None
    ) -> None:
        self._view, self._policies, self._indexes = view, policies, indexes
        self._listed = [index for index in indexes if index.keep is None]
        self._kept = [index for index in indexes if index.keep is not None]
        self._ends = WriteEnds(view)
        self._events: list[Event] = []
        self._present: dict[Ref, Rows] = {}
        self._head = view.head().position
        self.before = progress_of(view, indexes[0].name)
        """How far the indexes went."""
        self.after: dict[str, Progress] = {}
        """How far each goes after the step."""
        if self.before.filling:
            self._fill()
        elif not self._listed and self.before.position == BEFORE_ALL:
            self._begin()
        else:
            self._advance(STEP_ENTRIES if entries_max is None else entries_max)
        self._events += shared_values(view, self._events)
        self._fresh, self._ended = lives(self._events)
        self._events.clear()  # what they come to is what is written; of a long write they take tens of megabytes

    # The next writes

    def _window(self, entries_max: int) -> tuple[int, set[str]]:
        """Return through which end of a write to go, and the types of which that write brings schemas."""
        after, ends, view = self.before.position, self._ends, self._view
        limit = min(view.head().position, after + entries_max)
        first, through = ends.bounds(limit)
        if through > limit and first > after + 1:
            through = first - 1
        types: set[str] = set()
        for entry in view.entries(after, through, {"schema"}):
            if entry.body is not None:
                if not types:
                    first, through = ends.bounds(entry.position)
                    if first > after + 1:  # what comes before it goes first
                        return first - 1, set()
                if entry.position <= through:
                    types.add(schema.stored(entry.body).type)
        return through, types

    def _advance(self, entries_max: int) -> None:
        """Take in the next writes."""
        view, policies, before = self._view, self._policies, self.before.position
        through, types = self._window(entries_max)
        spoken: dict[Ref, list[Stored]] = {}
        for row in view.rows(before, through):
            if row.write == row.position:
                self._ends.note(row.position, row.position + (row.length or 1) - 1)
            if row.kind == "observation" and row.body is not None:
                said = observation.stored(row.body)
                spoken.setdefault(said.entity, []).append(Stored(row.position, said))
        old, new = Reader(view, AsOf(before), policies), Reader(view, AsOf(through), policies)
        others: list[tuple[int, Ref]] = []
        if self._kept and not self._listed:
            new.gather(spoken)
        for ref, several in spoken.items():
            cancellation.check()
            if ref.type in types or not is_lone(view, ref):
                others += [(said.position, ref) for said in several]
                continue
            if self._listed:
                self._follow(old, ref, several)
            else:
                self._present[ref] = rows_of(self._kept, Fold(ref, new.state(ref), new.rules(ref.type)))
            if ref.type == SAME_AS:
                others += [(said.position, ref) for said in several]
        if others and self._listed:
            self._events += group_events(view, policies, self._listed, self._ends, others)
            edges = [ref for _, ref in others if ref.type == SAME_AS in types]
            event = refolded(view, policies, self._listed, before, through, edges) if edges else None
            self._events += [event] if event is not None else []
        if others:
            self._note_present(old, new, touched(ref for _, ref in others))
        for index in self._indexes:
            filling = self._filling(index, types, old, new)
            self.after[index.name] = Progress(through, before, filling) if filling else Progress(through)

    def _filling(
        self, index: StateIndex, types: Iterable[str], old: Reader, new: Reader
    ) -> tuple[tuple[str, str], ...]:
        """Return the types with entities that an index says something else of from the end of this write on."""
        position = new.asof.position
        return tuple(
            (type, "")
            for type in sorted(types)
            if not index.alike(old.rules(type), new.rules(type))
            and self._view.entities(type, position, limit=1)
            and not self._only_adds_unused(index, old, new, type)
        )

    def _only_adds_unused(self, index: StateIndex, old: Reader, new: Reader, type: str) -> bool:
        """Return whether the new schema of a type only describes further fields, of which no fold has a value.

        The rows of state before it say so; where these do not reach, it is taken in entity by entity.
        """
        view, before, described = self._view, old.asof.position, new.rules(type).schema
        added = described.additions(old.rules(type).schema)
        if added is None or (index.lists_absent and not added.isdisjoint(described.indexed)):
            return False
        known = progress_of(view, state_rows.INDEX.name)
        if known.position < before or not known.covers(type, before):
            return False
        return not any(view.scan(FIELD, field_prefix(type, name), through=before, limit=1) for name in added)

    def _follow(self, reader: Reader, ref: Ref, said: Sequence[Stored]) -> None:
        """Follow a lone entity through the step."""
        rules = reader.rules(ref.type)
        rows = EntityRows(self._view, self._policies, self._listed, self._ends, state_before(reader, ref), rules)
        for one in said:
            rows.add(one)
        self._events += rows.close()
        if self._kept:
            self._present[ref] = rows_of(self._kept, rows.fold())

    def _note_present(self, old: Reader, new: Reader, refs: Iterable[Ref]) -> None:
        """Note what entities, and all that they were or are joined with, have in indexes of the present alone."""
        if self._kept:
            refs = list(refs)
            new.gather(refs)
            for member in {member for ref in refs for member in (*old.group(ref), *new.group(ref))}:
                is_root = new.group(member)[0] == member
                self._present[member] = group_rows(new, self._kept, (member,)) if is_root else {}

    # Types with a new schema, and the first time

    def _begin(self) -> None:
        """Begin with the present: what speaks of nothing else need not follow the log to it."""
        view, head = self._view, self._view.head().position
        types: list[tuple[str, str]] = []
        while refs := view.entities(None, head, after=Ref(types[-1][0], LAST_KEY) if types else None, limit=1):
            types.append((refs[0].type, ""))
        done = Progress(head, NOTHING, tuple(types)) if types else Progress(head)
        self.after = {index.name: done for index in self._indexes}

    def _fill(self) -> None:
        """Take in a new schema for the next entities of its type."""
        view, policies, before = self._view, self._policies, self.before
        (type, last), *rest = before.filling
        after = Ref(type, last) if last else None
        refs = list(view.entities(type, before.position, after=after, limit=STEP_ENTITIES))
        base = max(before.base, BEFORE_ALL)
        event = refolded(view, policies, self._listed, base, before.position, refs) if self._listed else None
        if event is not None:
            self._events.append(event)
        old, new = Reader(view, AsOf(base), policies), Reader(view, AsOf(before.position), policies)
        self._note_present(old, new, refs)
        if len(refs) == STEP_ENTITIES:
            rest.insert(0, (type, refs[-1].key))
        done = replace(before, filling=tuple(rest)) if rest else Progress(before.position)
        self.after = {index.name: done for index in self._indexes}

    def write(self, engine: Engine, tenant: TenantId) -> bool:
        """Write the step, unless somebody else went on with an index meanwhile, or anything was erased.

        Return whether there may be more to do.
        """
        with engine.transaction(tenant) as write:
            if any(progress_of(write, index.name) != self.before for index in self._indexes):
                return False
            if not erased_since(write, self._head):
                self.put_down(write)
        return True

    def put_down(self, write: Transaction) -> None:
        """Let rows begin and end, and note how far they go then."""
        for position, places in sorted(self._ended.items()):
            write.end(position, places)
        write.put(self._fresh)
        for index in self._indexes:
            after = self.after[index.name]
            if index.keep is None:
                write.set_meta(index.name, after.to_bytes())
            else:
                index.keep(write, self._present, after)


def lives(events: Iterable[Event]) -> tuple[list[IndexRow], dict[int, list[Place]]]:
    """Return the rows that some events make, with their ends, and what they end that stood before, by position."""
    opened: dict[Place, tuple[int, bytes]] = {}
    ended: dict[int, list[Place]] = {}
    rows: list[IndexRow] = []
    for position, gained, lost in sorted(events, key=lambda event: event.position):
        for place, value in lost.items():
            begun = opened.pop(place, None)
            if begun is None:
                ended.setdefault(position, []).append(place)
            elif begun[0] < position:
                rows.append(IndexRow(*place, begun[0], value, position))
        for place, value in gained.items():
            opened.setdefault(place, (position, value))
    return [*rows, *(IndexRow(*place, since, value) for place, (since, value) in opened.items())], ended


def shared_values(view: View, events: Iterable[Event]) -> Iterator[Event]:
    """Yield where identifying values begin and end to be those of several entities, given what entities gain and lose.

    The rows of the index before the events say who has them.
    """
    changes: dict[bytes, dict[int, tuple[set[bytes], set[bytes]]]] = {}
    for position, *sides in events:
        for side, rows in enumerate(sides):
            for index, key in rows:
                if index == IDENTITY:
                    changes.setdefault(value_prefix(key), {}).setdefault(position, (set(), set()))[side].add(key)
    for prefix, steps in changes.items():
        count = sum(len(lost) for _, lost in steps.values()) + 2
        holders = {key for key, _ in view.scan(IDENTITY, prefix, limit=count)}
        if len(holders) == count:
            continue  # whoever loses it, several are left
        was = len(holders) > 1
        row = {(DUPLICATE, prefix): b""}
        for position in sorted(steps):
            gained, lost = steps[position]
            holders = (holders - lost) | gained
            if (len(holders) > 1) is not was:
                yield Event(position, {} if was else row, row if was else {})
                was = not was


# Bringing indexes up to date


def go_on(
    engine: Engine,
    tenant: TenantId,
    policies: Mapping[str, Policy],
    indexes: Sequence[StateIndex],
    entries_max: int | None = None,
) -> bool:
    """Take one step with the indexes that are furthest behind, together; return whether one was taken.

    One thread of a process does so at a time for a tenant: of several that work out the same step one is of use.
    """
    with _turn(engine, tenant):
        with engine.view(tenant) as view:
            known = {index.name: progress_of(view, index.name) for index in indexes}
            first = min(known.values(), key=lambda one: (one.position, not one.filling))
            if not first.filling and first.position >= view.head().position:
                return False
            together = [index for index in indexes if known[index.name] == first]
            step = Step(view, together, policies, entries_max)
        return step.write(engine, tenant)


_TURNS: weakref.WeakKeyDictionary[Engine, dict[TenantId, threading.Lock]] = weakref.WeakKeyDictionary()
"""Whose turn it is to take a step, by engine and tenant."""
_TURNS_LOCK: Final = threading.Lock()


def _turn(engine: Engine, tenant: TenantId) -> threading.Lock:
    with _TURNS_LOCK:
        return _TURNS.setdefault(engine, {}).setdefault(tenant, threading.Lock())


def catch_up(
    engine: Engine,
    tenant: TenantId,
    policies: Mapping[str, Policy],
    indexes: Sequence[StateIndex],
    *,
    through: int | None = None,
    entries_max: int | None = None,
    few: int = LAID_OVER_FEW,
    told: ProgressTold | None = None,
) -> int:
    """Bring indexes up to date, or to a position, if they are well behind; return how many entries they lack then.

    They go on a bounded step at a time, and with a limit in all by about so many entries. One that cannot be written
    to now stays behind: what it lacks is folded by each question.
    """
    first: int | None = None
    filled = 0
    while True:
        with engine.view(tenant) as view:
            head = view.head().position
            known = [progress_of(view, index.name) for index in indexes]
            end = head if through is None else min(head, through)
            done = min(one.position for one in known)
            # A schema is one entry, and what each question would fold for it is a whole type.
            waits = next(view.entries(done, end, {"schema"}), None) is not None
        filling = any(one.filling for one in known)
        first = done if first is None else first
        is_short = not filling and not waits and end - done <= (few if done == first else 0)
        if is_short or (entries_max is not None and done - first + filled >= entries_max):
            return max(end - done, int(filling))
        if told is not None and end - first > STEP_ENTRIES:
            told(done - first, end - first)
        try:
            if filling and refold.go_on(
                engine, tenant, policies
            ):  # states kept anew need not be folded by each question
                filled += refold.STEP_ENTITIES
                continue
            go_on(engine, tenant, policies, indexes)
        except Unavailable:
            return max(end - done, int(filling))
        filled += STEP_ENTITIES if filling else 0

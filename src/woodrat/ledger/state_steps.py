"""Steps of the state index: the next part of the log, each entity folded once.

A step reads some writes of the log, follows what they say of each entity, and works out in a view which rows begin and
end with each write. It is written in a short transaction, which does nothing if somebody else went on meanwhile: no
writer waits for a fold. A write that brings a schema is a step of its own; where the schema changes the rows of a type,
the entities of the type are taken in before it, some in each step.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.canon.ids import Ref
from woodrat.clock import monotonic
from woodrat.engines import cancellation
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger import collector, entry_index, refold, state_index, state_rows
from woodrat.ledger.before import Before, extend_all
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import Fold, Place, Progress, Rows, WriteEnds, progress_of
from woodrat.ledger.state_rows import DUPLICATE, FIELD, IDENTITY, field_prefix, value_prefix
from woodrat.ledger.transitions import touched
from woodrat.merge import Policy, fold
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state import observation, schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.engine import Engine
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View

STEP_ENTRIES: Final = 1_000
"""How many entries one step takes in, or one write where that is longer."""
STEP_ENTITIES: Final = 500
"""How many entities of a type with a new schema one step takes in."""
CATCH_UP_ENTRIES: Final = 200_000
"""How much of the log one read takes in at most before it answers."""
_make: Final = tuple.__new__
LAID_OVER_FEW: Final = 16
"""So many entries behind, a read does not even begin to catch up."""


BATCH_FACTOR: Final = 4
"""By how many times its own entries a batch brings on an index that was behind."""


class Event(NamedTuple):
    """Rows that begin and end with a write."""

    position: int
    """The end of the write."""
    gained: Sequence[tuple[Place, bytes]]
    """Rows that are true from there on."""
    lost: Sequence[tuple[Place, bytes]]
    """Rows that are no longer true from there on."""


def _difference(old: Rows, new: Rows) -> tuple[list[tuple[Place, bytes]], list[tuple[Place, bytes]]]:
    """Return the rows of one state that another does not have, and the other way round."""
    if not old or not new:
        return list(new.items()), list(old.items())
    gained = [row for row in new.items() if old.get(row[0]) != row[1]]
    return gained, [row for row in old.items() if new.get(row[0]) != row[1]]


class EntityRows:
    """The rows of an entity that was never joined with another, followed along what is said of it."""

    def __init__(
        self,
        view: View,
        policies: Mapping[str, Policy],
        ends: WriteEnds,
        state: MergeState,
        rules: Rules,
        *,
        words: bool = True,
    ) -> None:
        """Begin with a state."""
        (self._ref,) = state.members
        self._words = words
        self._view, self._policies, self._ends, self._rules = view, policies, ends, rules
        self._state: MergeState | None = state
        self._known = Before(view, state.members, BEFORE_ALL)
        self._last: int | None = None
        self._rows = state_rows.FoldRows(Fold(self._ref, state, rules), words=words)
        """The rows it had at the end of the last write."""
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

    def turn(self, state: MergeState, rules: Rules, position: int) -> None:
        """Go on under other rules, from a position on."""
        self._rules, self._state, self._last = rules, state, None
        self._note(position, state)

    def _settle(self) -> None:
        assert self._last is not None
        if self._state is None:
            self._state = Reader(self._view, AsOf(self._last), self._policies).state(self._ref)
        self._note(self._ends.end(self._last), self._state)

    def _note(self, position: int, state: MergeState) -> None:
        before = self._rows
        after = self._rows = state_rows.FoldRows(Fold(self._ref, state, self._rules), before, words=self._words)
        gained, lost = _difference(before.values, after.values)
        if before.words is not after.words:
            more, less = _difference(before.words, after.words)
            gained, lost = gained + more, lost + less
        if gained or lost:
            self.events.append(Event(position, gained, lost))


def _states_before(reader: Reader, refs: Sequence[Ref]) -> Iterator[MergeState]:
    """Yield the states of lone entities at the as-of of a reader, looked up at once."""
    view, position = reader.view, reader.asof.position
    rules = {type: reader.rules(type) for type in {ref.type for ref in refs}}
    for ref, standing in zip(refs, view.standings(refs, position, rules), strict=True):
        kept = None if standing is None else standing.kept
        if kept is not None and kept.state.members == (ref,):
            base, after = kept.state, kept.position
        else:
            base, after = fold.empty((ref,), rules[ref.type]), BEFORE_ALL
        if standing is None or standing.version <= after:
            yield base
            continue
        since = view.observations(ref.digest, after, position)
        yield extend_all(base, since, rules[ref.type], Before(view, (ref,), BEFORE_ALL)) or reader.state(ref)


def group_rows(reader: Reader, refs: Iterable[Ref], *, words: bool = True) -> dict[Place, bytes]:
    """Return the rows of the folds that some entities are in."""
    found: dict[Place, bytes] = {}
    for root in {reader.group(ref)[0] for ref in refs}:
        cancellation.check()
        rows = state_rows.FoldRows(Fold(root, reader.state(root), reader.rules(root.type)), words=words)
        found.update(rows.values)
        found.update(rows.words)
    return found


def group_events(
    view: View,
    policies: Mapping[str, Policy],
    ends: WriteEnds,
    spoken: Iterable[tuple[int, Ref]],
    *,
    words: bool = True,
) -> Iterator[Event]:
    """Yield what became of the rows of groups, and of entities that joined or parted, write by write.

    `spoken` says at which positions something was said of such entities, or of a `same_as` between two.
    """
    writes: dict[int, list[Ref]] = {}
    for position, ref in sorted(spoken):
        writes.setdefault(ends.end(position), []).append(ref)
    for end, said in writes.items():
        refs = [ref for ref in touched(said) if ref.type != SAME_AS]  # each of these is followed by itself
        event = refolded(view, policies, ends.bounds(end)[0] - 1, end, refs, words=words)
        if event is not None:
            yield event


def refolded(
    view: View, policies: Mapping[str, Policy], before: int, end: int, refs: Iterable[Ref], *, words: bool = True
) -> Event | None:
    """Return what a write made of the rows of entities, folded before and after it."""
    refs = list(refs)
    old, new = (group_rows(Reader(view, AsOf(at), policies), refs, words=words) for at in (before, end))
    gained, lost = _difference(old, new)
    return Event(end, gained, lost) if gained or lost else None


def is_lone(view: View, ref: Ref) -> bool:
    """Return whether an entity was never joined with another, nor can be."""
    return ref.type == SAME_AS or not entry_index.joined(view, ref.digest)


class Step:
    """The rows that one step adds and ends."""

    def __init__(
        self, view: View, policies: Mapping[str, Policy], entries_max: int | None = None, *, words: bool = True
    ) -> None:
        self._view, self._policies, self._words = view, policies, words
        self._ends = WriteEnds(view)
        self._fresh: list[IndexRow] = []
        self._ended: dict[int, list[Place]] = {}
        self._holders: dict[bytes, dict[int, Holders]] = {}
        self._head = view.head().position
        self.before = progress_of(view)
        """How far the rows went."""
        through, types = self._window(STEP_ENTRIES if entries_max is None else entries_max)
        filling = self.before.filling or self._filling(types, through)
        if filling:
            filling = self._fill(filling, through)
        if filling:
            self.after = Progress(self.before.position, filling)
            """How far they go after the step."""
        else:
            self._advance(through, types)
            self.after = Progress(through)
        self._take(list(shared_values(view, self._holders)))

    def _take(self, events: Sequence[Event]) -> None:
        """Take the events of one entity, or of several that share rows."""
        for position, gained, lost in events:
            _note_holders(self._holders, position, gained, lost)
        if len(events) == 1:
            ((position, gained, lost),) = events
            # As `IndexRow(…)`, in half the time: of most entities there are some dozens.
            self._fresh += [_make(IndexRow, (*place, position, value, None)) for place, value in gained]
            if lost:
                self._ended.setdefault(position, []).extend([place for place, _ in lost])
        elif events:
            fresh, ended = lives(events)
            self._fresh += fresh
            for position, places in ended.items():
                self._ended.setdefault(position, []).extend(places)

    def _window(self, entries_max: int) -> tuple[int, set[str]]:
        """Return the last position to take in, the end of a write, and the types of which that write brings schemas."""
        after, ends, view = self.before.position, self._ends, self._view
        limit = min(self._head, after + entries_max)
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

    # Types with a new schema

    def _filling(self, types: Iterable[str], through: int) -> tuple[tuple[str, str, int], ...]:
        """Return the types with entities whose rows are others from the end of this write on."""
        if not types:
            return ()
        before = self.before.position
        old, new = Reader(self._view, AsOf(before), self._policies), Reader(self._view, AsOf(through), self._policies)
        return tuple(
            (type, "", 0)
            for type in sorted(types)
            if not state_rows.are_alike(old.rules(type), new.rules(type))
            and self._view.entities(type, before, limit=1)
            and not self._only_adds_unused(old, new, type)
        )

    def _only_adds_unused(self, old: Reader, new: Reader, type: str) -> bool:
        """Return whether the new schema of a type only describes further fields, of which no entity has a value."""
        described = new.rules(type).schema
        added = described.additions(old.rules(type).schema)
        if added is None or not added.isdisjoint(described.indexed):
            return False
        return not any(
            self._view.scan(FIELD, field_prefix(type, name), through=old.asof.position, limit=1) for name in added
        )

    def _fill(self, filling: tuple[tuple[str, str, int], ...], through: int) -> tuple[tuple[str, str, int], ...]:
        """Take in the schemas of a write for the next entities of their types; return which types are left."""
        (type, last, done), *rest = filling
        after = Ref(type, last) if last else None
        refs = self._view.entities(type, through, after=after, limit=STEP_ENTITIES)
        event = refolded(self._view, self._policies, self.before.position, through, refs, words=self._words)
        if event is not None:
            self._take([event])
        return ((type, refs[-1].key, done + len(refs)), *rest) if len(refs) == STEP_ENTITIES else tuple(rest)

    # The next writes

    def _advance(self, through: int, types: Iterable[str]) -> None:
        """Take in the next writes."""
        view, policies, before = self._view, self._policies, self.before.position
        spoken: dict[Ref, list[Stored]] = {}
        for row in view.rows(before, through):
            if row.write == row.position:
                self._ends.note(row.position, row.position + (row.length or 1) - 1)
            if row.kind == "observation" and row.body is not None:
                said = observation.stored(row.body)
                spoken.setdefault(said.entity, []).append(Stored(row.position, said))
        reader = Reader(view, AsOf(before), policies)
        joined = entry_index.joined_among(view, [ref.digest for ref in spoken if ref.type != SAME_AS])
        alone = [ref for ref in spoken if ref.type not in types and ref.digest not in joined]
        for ref, state in zip(alone, _states_before(reader, alone), strict=True):
            cancellation.check()
            rows = EntityRows(view, policies, self._ends, state, reader.rules(ref.type), words=self._words)
            for one in spoken[ref]:
                rows.add(one)
            self._take(rows.close())
        grouped = [ref for ref in spoken if ref.type in types or ref.type == SAME_AS or ref.digest in joined]
        if grouped:
            positions = ((one.position, ref) for ref in grouped for one in spoken[ref])
            events = list(group_events(view, policies, self._ends, positions, words=self._words))
            edges = [ref for ref in grouped if ref.type == SAME_AS in types]
            event = refolded(view, policies, before, through, edges, words=self._words) if edges else None
            self._take([*events, event] if event is not None else events)

    def write(self, engine: Engine, tenant: TenantId) -> bool:
        """Write the step, unless somebody else went on meanwhile, or anything was erased.

        Return whether there may be more to do.
        """
        with engine.transaction(tenant) as write:
            if progress_of(write) != self.before:
                return False
            if not erased_since(write, self._head):
                self.put_down(write)
        return True

    def put_down(self, write: Transaction) -> None:
        """Let rows begin and end, and note how far they go then."""
        for position, places in sorted(self._ended.items()):
            write.end(position, places)
        write.put(self._fresh)
        write.set_meta(state_index.NAME, self.after.to_bytes())


def finish_filling(write: Transaction, policies: Mapping[str, Policy]) -> None:
    """Take in the rest of the schemas that are being taken in, within a write that changes the past of entities."""
    while progress_of(write).filling:
        Step(write, policies).put_down(write)


def lives(events: Iterable[Event]) -> tuple[list[IndexRow], dict[int, list[Place]]]:
    """Return the rows that some events make, with their ends, and what they end that stood before, by position."""
    opened: dict[Place, tuple[int, bytes]] = {}
    ended: dict[int, list[Place]] = {}
    rows: list[IndexRow] = []
    for position, gained, lost in sorted(events, key=lambda event: event.position):
        for place, value in lost:
            begun = opened.pop(place, None)
            if begun is None:
                ended.setdefault(position, []).append(place)
            elif begun[0] < position:
                rows.append(IndexRow(*place, begun[0], value, position))
        for place, value in gained:
            opened.setdefault(place, (position, value))
    return [*rows, *(IndexRow(*place, since, value) for place, (since, value) in opened.items())], ended


Holders = tuple[set[bytes], set[bytes]]
"""Rows of an identifying value that begin, and those that end."""


def _note_holders(
    holders: dict[bytes, dict[int, Holders]],
    position: int,
    gained: Iterable[tuple[Place, bytes]],
    lost: Iterable[tuple[Place, bytes]],
) -> None:
    """Note who gains or loses an identifying value."""
    for side, rows in enumerate((gained, lost)):
        for key in [place[1] for place, _ in rows if place[0] == IDENTITY]:
            holders.setdefault(value_prefix(key), {}).setdefault(position, (set(), set()))[side].add(key)


def shared_values(view: View, changes: Mapping[bytes, Mapping[int, Holders]]) -> Iterator[Event]:
    """Yield where identifying values begin and end to be those of several entities, given who gains and loses them.

    The rows of the index before say who has them, looked up at once.
    """
    if not changes:
        return
    count = max(sum(len(lost) for _, lost in steps.values()) for steps in changes.values()) + 2
    before: dict[bytes, set[bytes]] = {}
    for key, _ in view.find(IDENTITY, list(changes), limit=count):
        before.setdefault(value_prefix(key), set()).add(key)
    for prefix, steps in changes.items():
        holders = before.get(prefix, set())
        if len(holders) == count:
            continue  # whoever loses it, several are left
        was = len(holders) > 1
        row = [((DUPLICATE, prefix), b"")]
        for position in sorted(steps):
            gained, lost = steps[position]
            holders = (holders - lost) | gained
            if (len(holders) > 1) is not was:
                yield Event(position, [] if was else row, row if was else [])
                was = not was


# Bringing the index up to date


def go_on(
    engine: Engine,
    tenant: TenantId,
    policies: Mapping[str, Policy],
    entries_max: int | None = None,
    *,
    words: bool = True,
) -> bool:
    """Take one step, without the rows of words where nobody compares them; return whether one was taken.

    One thread of a process does so at a time for a tenant: of several that work out the same step one is of use.
    """
    with _turn(engine, tenant):
        with engine.view(tenant) as view:
            lacking = view.head().position - progress_of(view).position
        if lacking <= 0:
            return False
        with collector.held_off(min(lacking, STEP_ENTRIES)):  # it makes some dozens of rows for each entity
            with engine.view(tenant) as view:
                step = Step(view, policies, entries_max, words=words)
            return step.write(engine, tenant)


_TURNS: weakref.WeakKeyDictionary[Engine, dict[TenantId, threading.Lock]] = weakref.WeakKeyDictionary()
"""Whose turn it is to take a step, by engine and tenant."""
_TURNS_LOCK: Final = threading.Lock()


def _turn(engine: Engine, tenant: TenantId) -> threading.Lock:
    with _TURNS_LOCK:
        return _TURNS.setdefault(engine, {}).setdefault(tenant, threading.Lock())


def index_batch(context: Context, count: int) -> None:
    """Bring the index up to date after a batch of so many entries, unless a server does it.

    An index that was further behind goes on by a few times as much.
    """
    if not context.served and context.stand_in is None:
        catch_up(context.engine, context.tenant, context.policies, entries_max=BATCH_FACTOR * count)


def is_behind(view: View) -> bool:
    """Return whether the index is so far behind the end of the log that `catch_up` would bring it on for any list."""
    head, known = view.head().position, progress_of(view)
    if known.filling or head - known.position > LAID_OVER_FEW or refold.is_due(view):
        return True
    return bool(state_index.schemas_between(view, known.position, head))


def catch_up(
    engine: Engine,
    tenant: TenantId,
    policies: Mapping[str, Policy],
    *,
    through: int | None = None,
    entries_max: int | None = None,
    types: Collection[str] | None = (),
    deadline: float | None = None,
) -> int:
    """Bring the index up to date, or to a position, if it is well behind; return how many entries it lacks then.

    It goes on a bounded step at a time, and with a limit in all by about so many entries. The limit does not hold for
    new schemas of `types` (None: of all types): those are taken in to the end, and so is their job (`refold.py`). No
    new schema is taken in after a `deadline` of the monotonic clock. An index that cannot be written to now stays
    behind: what it lacks is folded by each question.
    """
    first: int | None = None
    schemas: Sequence[tuple[int, str]] = ()
    end, filled = BEFORE_ALL, 0
    while True:
        with engine.view(tenant) as view:
            known, head = progress_of(view), view.head().position
            done, goal = known.position, head if through is None else min(head, through)
            if goal != end:
                end, schemas = goal, state_index.schemas_between(view, done, goal)
            jobs = {one.type for one in refold.waiting(view) if one.position <= end} if refold.is_due(view) else set()
        first = done if first is None else first
        waiting = {type for position, type in schemas if position > done}
        wanted = waiting | jobs if types is None else (waiting | jobs).intersection(types)
        if not wanted:
            # A schema is one entry, and what each question would fold for it is a whole type.
            is_short = not waiting and end - done <= (LAID_OVER_FEW if done == first else 0)
            is_enough = entries_max is not None and done - first + filled >= entries_max
            if is_short or is_enough or done >= end:
                return max(end - done, 0)
        if engine.readonly or (waiting and deadline is not None and monotonic() >= deadline):
            return max(end - done, 0)
        # States kept anew need not be folded by each step.
        refolded = jobs.intersection({type for type, *_ in known.filling[:1]} | wanted)
        try:
            if refolded and refold.go_on(engine, tenant, policies, refolded):
                filled += refold.STEP_ENTITIES
            else:
                go_on(engine, tenant, policies)
                filled += STEP_ENTITIES if known.filling else 0
        except Unavailable:
            return max(end - done, 0)

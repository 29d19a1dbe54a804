"""State index: the rows that states ask for, kept in ordered indexes which trail the log.

No write waits for them. They are brought up to date a part of the log at a time (`step`), and how far they go is noted
beside them. Each row is true from the end of the write that made it true to the end of the write that ended it, so the
rows as of a position are those of the last write that ended there or before; whoever reads at a moment inside a write,
or at one the rows have not come to, folds what was said since and lays it over them (`Coverage`).

A new schema of a type ends all that is known of the type: its rows are made anew, from the state after the write that
brought the schema on. Earlier moments of it are not covered then, and are folded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import BEFORE_ALL, Engine, IndexRow, Transaction, View
from woodrat.errors import Refused, Unavailable
from woodrat.ledger.before import Before
from woodrat.ledger.read import Reader
from woodrat.ledger.state_rows import DUPLICATE, IDENTITY, INDEXES, StateRow, rows_of, type_prefix
from woodrat.ledger.transitions import touched
from woodrat.merge import Policy, fold
from woodrat.merge.fold import MergeState
from woodrat.merge.incremental import Laying
from woodrat.merge.packing import garbled
from woodrat.merge.rules import Rules
from woodrat.records import dataclass, field, replace
from woodrat.state import schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.relation import SAME_AS

META: Final = "state_rows"
"""What the progress is noted under."""
STEP_ENTRIES: Final = 500
"""How much of the log one transaction takes in at most, unless a write is longer; writers wait no longer."""
STEP_ENTITIES: Final = 500
"""How many entities of a type with a new schema one transaction takes in at most."""
CATCH_UP_ENTRIES: Final = 200_000
"""How much of the log one read takes in at most before it answers."""
LAID_OVER_MAX: Final = 10_000
"""How many entries a read lays over the rows at most; when they are further behind, it does without them."""
LAID_OVER_FEW: Final = 32
"""So many entries behind, a read does not even begin a transaction to catch up."""


# How far the rows go


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the rows go."""

    position: int = BEFORE_ALL
    """They are true for the log through this position, the end of a write."""
    since: Mapping[str, int] = field(default_factory=dict)
    """By type, the position from which on its rows are known; from the beginning where it is not listed."""
    filling: tuple[tuple[str, str], ...] = ()
    """Types with a new schema whose rows are made anew, each with the last key that is done; empty before the first."""

    def covers(self, type: str, position: int) -> bool:
        """Return whether the rows of a type are known as of a position, not after the one they go to."""
        return position >= self.since.get(type, BEFORE_ALL) and all(type != name for name, _ in self.filling)

    def to_bytes(self) -> bytes:
        """Return the progress as it is noted."""
        filling = [list(each) for each in self.filling]
        return form.serialise({"filling": filling, "position": self.position, "since": dict(self.since)})


def progress(view: View) -> Progress:
    """Return how far the rows go."""
    noted = view.meta(META)
    if noted is None:
        return Progress()
    try:
        stated: Any = form.decode(noted)
        found = Progress(
            stated["position"], dict(stated["since"]), tuple((type, key) for type, key in stated["filling"])
        )
    except (Refused, KeyError, TypeError, ValueError) as error:
        raise garbled("The progress of the state index") from error
    numbers = (found.position, *found.since.values())
    texts = [text for pair in found.filling for text in pair]
    if any(type(number) is not int for number in numbers) or not all(isinstance(text, str) for text in texts):
        raise garbled("The progress of the state index")
    return found


# What becomes of rows along the log


class Event(NamedTuple):
    """Rows that begin and end with a write."""

    position: int
    """The end of the write."""
    gained: Collection[StateRow]
    """Rows that are true from there on."""
    lost: Collection[StateRow]
    """Rows that are no longer true from there on."""


class WriteEnds:
    """Where the writes of a log end; what was looked up once is known for all positions of a write."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def bounds(self, position: int) -> tuple[int, int]:
        """Return the first and the last position of the write that a position belongs to."""
        at = bisect_right(self._firsts, position) - 1
        if at >= 0 and self._lasts[at] >= position:
            return self._firsts[at], self._lasts[at]
        row = next(self._view.rows(position - 1, position))
        opening = row if row.write == position else next(self._view.rows(row.write - 1, row.write))
        first, last = row.write, row.write + (opening.length or 1) - 1
        self.note(first, last)
        return first, last

    def note(self, first: int, last: int) -> None:
        """Remember a write."""
        at = bisect_left(self._firsts, first)
        if at == len(self._firsts) or self._firsts[at] != first:
            self._firsts.insert(at, first)
            self._lasts.insert(at, last)

    def end(self, position: int) -> int:
        """Return the last position of the write that a position belongs to."""
        return self.bounds(position)[1]


class EntityRows:
    """The rows of an entity that was never joined with another, followed along what is said of it."""

    def __init__(
        self, view: View, policies: Mapping[str, Policy], ends: WriteEnds, state: MergeState, rules: Rules
    ) -> None:
        """Begin with a state."""
        (self._ref,) = state.members
        self._view, self._policies, self._ends, self._rules = view, policies, ends, rules
        self._laying: Laying | None = Laying(state, rules)
        self._known = Before(view, state.members, BEFORE_ALL)
        self._last: int | None = None
        self.rows = rows_of(self._ref, state, rules)
        """The rows it had at the end of the last write that changed any."""
        self.events: list[Event] = []
        """What became of them."""

    def add(self, said: Stored) -> None:
        """Take in the next observation of it."""
        if self._last is not None:
            self._settle(said.position)
        self._last, self._known.through = said.position, said.position - 1
        if self._laying is not None and not self._laying.add(said.observation, self._known):
            self._laying = None

    def close(self) -> list[Event]:
        """Return what became of the rows, once all was said."""
        if self._last is not None:
            self._settle(None)
            self._last = None
        return self.events

    def _settle(self, following: int | None) -> None:
        """Note how the rows have changed, unless more of the same write follows."""
        assert self._last is not None
        if self._laying is None:
            state = Reader(self._view, AsOf(self._last), self._policies).state(self._ref)
            self._laying = Laying(state, self._rules)
        rows = rows_of(self._ref, self._laying.state(), self._rules)
        if rows != self.rows:
            end = self._ends.end(self._last)
            if following is None or following > end:
                self.events.append(Event(end, rows - self.rows, self.rows - rows))
                self.rows = rows


def group_events(
    view: View, policies: Mapping[str, Policy], ends: WriteEnds, spoken: Iterable[tuple[int, Ref]]
) -> list[Event]:
    """Return what became of the rows of groups, and of entities that joined or parted, write by write.

    `spoken` says at which positions something was said of such entities, or of a `same_as` between two.
    """
    writes: dict[int, list[tuple[int, Ref]]] = {}
    for position, ref in sorted(spoken):
        writes.setdefault(ends.end(position), []).append((position, ref))
    events: list[Event] = []
    for end, said in writes.items():
        refs = [ref for ref in touched(ref for _, ref in said) if ref.type != SAME_AS]
        old = _group_rows(Reader(view, AsOf(said[0][0] - 1), policies), refs)
        new = _group_rows(Reader(view, AsOf(end), policies), refs)
        if old != new:
            events.append(Event(end, new - old, old - new))
    return events


def _group_rows(reader: Reader, refs: Iterable[Ref]) -> set[StateRow]:
    roots = {reader.group(ref)[0] for ref in refs}
    return {row for root in roots for row in rows_of(root, reader.state(root), reader.rules(root.type))}


# Bringing the rows up to date


def catch_up(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> None:
    """Bring the rows up to date, or closer to it, in transactions of bounded length, if they are well behind.

    Rows that cannot be written to now stay behind: what they lack is folded by each question.
    """
    with engine.view(tenant) as view:
        known, head = progress(view), view.head().position
    if not known.filling and head - known.position <= LAID_OVER_FEW:
        return
    taken = 0
    while (known.filling or known.position < head) and taken < CATCH_UP_ENTRIES:
        try:
            with engine.transaction(tenant) as write:
                before, known = known, step(write, policies)
                head = write.head().position
        except Unavailable:
            return
        taken += max(known.position - before.position, STEP_ENTITIES if before.filling else 1)


def step(write: Transaction, policies: Mapping[str, Policy]) -> Progress:
    """Take in the next part of the log, or of a type whose rows are made anew; return how far the rows go then."""
    before = progress(write)
    if before.filling:
        after = _fill(write, policies, before)
    elif before.position < write.head().position:
        after = _advance(write, policies, before)
    else:
        return before
    write.set_meta(META, after.to_bytes())
    return after


def _advance(write: Transaction, policies: Mapping[str, Policy], before: Progress) -> Progress:
    """Take in the next writes; one that brings a schema is the last of them."""
    ends = WriteEnds(write)
    through, new_types = _window(write, ends, before.position)
    events: list[Event] = []
    lone: list[Ref] = []
    joined: list[Ref] = []
    for ref in write.touched(before.position, through):
        if ref.type == SAME_AS:
            joined.append(ref)
        if ref.type not in new_types:
            (lone if _is_lone(write, ref) else joined).append(ref)
    reader = Reader(write, AsOf(before.position), policies)
    for ref in lone:
        events += _entity_events(reader, ends, ref, through)
    if joined:
        spoken = [
            (said.position, ref) for ref in joined for said in write.observations(ref.digest, before.position, through)
        ]
        prefixes = tuple(map(type_prefix, new_types))
        for position, gained, lost in group_events(write, policies, ends, spoken):
            events.append(Event(position, *(_without(rows, prefixes) for rows in (gained, lost))))
    _store(write, events)
    for type in new_types:
        for index in INDEXES:
            write.drop(index, type_prefix(type))
    since = {**before.since, **dict.fromkeys(new_types, through)}
    return Progress(through, since, tuple((type, "") for type in sorted(new_types)))


def _entity_events(reader: Reader, ends: WriteEnds, ref: Ref, through: int) -> list[Event]:
    """Return what became of the rows of a lone entity from after the position of a reader on."""
    view, policies, position, rules = reader.view, reader.policies, reader.asof.position, reader.rules(ref.type)
    kept = view.kept(ref, position, rules) if position > BEFORE_ALL else None
    if kept is not None and kept.state.members != (ref,):
        kept = None
    observations = view.observations(ref.digest, BEFORE_ALL if kept is None else kept.position, through)
    earlier = bisect_right(observations, position, key=lambda said: said.position)
    state = fold.empty((ref,), rules) if kept is None else kept.state
    if earlier:
        # Laying one after the other what nothing kept goes back to is several times as fast as folding it.
        laying, known = Laying(state, rules), Before(view, (ref,), BEFORE_ALL)
        for said in observations[:earlier]:
            known.through = said.position - 1
            if not laying.add(said.observation, known):
                state = reader.state(ref)
                break
        else:
            state = laying.state()
    rows = EntityRows(view, policies, ends, state, rules)
    for said in observations[earlier:]:
        rows.add(said)
    return rows.close()


def _is_lone(view: View, ref: Ref) -> bool:
    """Return whether an entity was never joined with another, nor can be."""
    return ref.type == SAME_AS or not view.joined(ref.digest)


def _without(rows: Collection[StateRow], prefixes: tuple[bytes, ...]) -> Collection[StateRow]:
    return [row for row in rows if not row[1].startswith(prefixes)] if prefixes else rows


def _window(view: View, ends: WriteEnds, after: int) -> tuple[int, set[str]]:
    """Return through which end of a write to go, and the types of which the last write brings schemas."""
    head = view.head().position
    limit = min(head, after + STEP_ENTRIES)
    first, through = ends.bounds(limit)
    if through > limit and first > after + 1:
        through = first - 1
    new_types: set[str] = set()
    for entry in view.entries(after, through, {"schema"}):
        if entry.body is not None:
            if not new_types:
                through = ends.end(entry.position)
            if entry.position <= through:
                new_types.add(schema.stored(entry.body).type)
    for row in view.rows(after, through):
        if row.write == row.position:
            ends.note(row.position, row.position + (row.length or 1) - 1)
    return through, new_types


def _store(write: Transaction, events: Iterable[Event]) -> None:
    """Let rows begin and end, and the duplicates that follow from them."""
    opened: dict[StateRow, int] = {}
    ended: dict[int, list[StateRow]] = {}
    rows: list[IndexRow] = []
    values: dict[bytes, set[int]] = {}
    for position, gained, lost in sorted(events, key=lambda event: event.position):
        for row in lost:
            since = opened.pop(row, None)
            if since is None:
                ended.setdefault(position, []).append(row)
            else:
                rows.append(IndexRow(*row, since, b"", position))
        opened.update(dict.fromkeys(gained, position))
        for index, key in (*gained, *lost):
            if index == IDENTITY:
                values.setdefault(_value_prefix(key), set()).add(position)
    for position, several in ended.items():
        write.end(position, several)
    rows += [IndexRow(*row, since) for row, since in opened.items()]
    write.put(rows)
    for prefix, positions in values.items():
        _store_duplicate(write, prefix, sorted(positions))


def _value_prefix(key: bytes) -> bytes:
    """Return what the keys of all rows of an identifying value begin with, given one of them."""
    return key[:-1].rpartition(b"\0")[0]


def _store_duplicate(write: Transaction, prefix: bytes, positions: Sequence[int]) -> None:
    """Let the row of a value that several entities have begin or end where entities gained or lost it."""
    was = bool(write.scan(DUPLICATE, prefix, limit=1))
    if not was and len(positions) == 1 and len(write.scan(IDENTITY, prefix, limit=2)) < 2:
        return  # as of nearly all that is new
    for position in positions:
        shared = len(write.scan(IDENTITY, prefix, through=position, limit=2)) > 1
        if shared and not was:
            write.put([IndexRow(DUPLICATE, prefix, position)])
        elif was and not shared:
            write.end(position, [(DUPLICATE, prefix)])
        was = shared


def _fill(write: Transaction, policies: Mapping[str, Policy], before: Progress) -> Progress:
    """Make the rows of the next entities of a type with a new schema."""
    (type, last), *rest = before.filling
    position = before.position
    after = Ref(type, last) if last else None
    refs = write.entities(type, position, after=after, limit=STEP_ENTITIES)
    reader = Reader(write, AsOf(position), policies)
    rows: set[StateRow] = set()
    for ref in refs:
        if reader.group(ref)[0] == ref:
            rows |= rows_of(ref, reader.state(ref), reader.rules(type))
    _store(write, [Event(position, rows, ())])
    if len(refs) == STEP_ENTITIES:
        rest.insert(0, (type, refs[-1].key))
    return replace(before, filling=tuple(rest))


# What the rows should be


class StateAudit:
    """The rows that the log asks for, entity by entity, as far as the index goes."""

    def __init__(self, view: View, policies: Mapping[str, Policy]) -> None:
        self._view, self._policies = view, policies
        self._ends = WriteEnds(view)
        self._rules: dict[str, Rules] = {}
        self._events: list[Event] = []
        self.progress = progress(view)
        """How far the index goes."""

    def follow(self, ref: Ref, observations: Iterable[Stored]) -> Iterator[Stored]:
        """Yield the observations of an entity on; once all of them were, `rows` says what it asks for."""
        self._events = []
        if not self._is_known(ref.type):
            yield from observations
            return
        if not _is_lone(self._view, ref):
            yield from observations
            self._events = self._component_events(ref)
            return
        begin, end = self.progress.since.get(ref.type, BEFORE_ALL), self.progress.position
        follower: EntityRows | None = None
        is_older = False  # than what is known of its type
        for said in observations:
            if said.position <= begin:
                is_older = True
            elif said.position <= end:
                follower = follower or self._begin(ref, begin, is_older)
                follower.add(said)
            yield said
        if is_older and follower is None:
            follower = self._begin(ref, begin, is_older)
        if follower is not None:
            self._events += follower.close()

    def _is_known(self, type: str) -> bool:
        return self.progress.covers(type, self.progress.position)

    def _begin(self, ref: Ref, position: int, is_older: bool) -> EntityRows:
        rules = self._rules.get(ref.type)
        if rules is None:
            rules = self._rules[ref.type] = Reader(self._view, AsOf(position), self._policies).rules(ref.type)
        said = self._view.observations(ref.digest, BEFORE_ALL, position) if is_older else ()
        state = fold.fold((one.observation for one in said), (ref,), rules) if said else fold.empty((ref,), rules)
        # The rules at the beginning of what is known are those of all that comes after.
        found = EntityRows(self._view, self._policies, self._ends, state, rules)
        if found.rows:
            self._events.append(Event(position, found.rows, ()))
        return found

    def _component_events(self, ref: Ref) -> list[Event]:
        """Return the events of all that was ever joined with an entity, if it is the smallest of them."""
        head = self._view.head().position
        members, edges = component(self._view, ref, head)
        if min(members, key=lambda member: member.digest) != ref:
            return []
        begin, end = self.progress.since.get(ref.type, BEFORE_ALL), self.progress.position
        spoken = [
            (said.position, each)
            for each in (*members, *edges)
            for said in self._view.observations(each.digest, begin, end)
        ]
        events = group_events(self._view, self._policies, self._ends, spoken)
        if begin > BEFORE_ALL:
            rows = _group_rows(Reader(self._view, AsOf(begin), self._policies), members)
            events.insert(0, Event(begin, rows, ()))
        return events

    def rows(self) -> list[IndexRow]:
        """Return the rows that the entity followed last asks for, and those of duplicates that it answers for."""
        opened: dict[StateRow, int] = {}
        found: list[IndexRow] = []
        for position, gained, lost in self._events:
            found += [IndexRow(*row, opened.pop(row), b"", position) for row in lost]
            opened.update(dict.fromkeys(gained, position))
        found += [IndexRow(*row, since) for row, since in opened.items()]
        own = {row.key for row in found if row.name == IDENTITY}
        for prefix in dict.fromkeys(map(_value_prefix, own)):
            found += self._duplicates(prefix, own)
        return found

    def _duplicates(self, prefix: bytes, own: Collection[bytes]) -> list[IndexRow]:
        """Return the rows of a value that several have, if the first that has it now, or ever had, is this entity."""
        present = self._view.scan(IDENTITY, prefix, limit=1)
        if present and present[0][0] not in own:
            return []
        lives = self._view.lives(IDENTITY, prefix)
        return duplicate_lives(prefix, lives) if present or (lives and lives[0].key in own) else []


def duplicate_lives(prefix: bytes, lives: Iterable[IndexRow]) -> list[IndexRow]:
    """Return the rows of a value that several entities have, given when each of them had it."""
    steps: dict[int, int] = {}
    for row in lives:
        steps[row.since] = steps.get(row.since, 0) + 1
        if row.until is not None:
            steps[row.until] = steps.get(row.until, 0) - 1
    found: list[IndexRow] = []
    count, since = 0, None
    for position, change in sorted(steps.items()):
        count += change
        if count > 1 and since is None:
            since = position
        elif count < 2 and since is not None:
            found.append(IndexRow(DUPLICATE, prefix, since, b"", position))
            since = None
    return found if since is None else [*found, IndexRow(DUPLICATE, prefix, since)]


def component(view: View, ref: Ref, through: int) -> tuple[set[Ref], set[Ref]]:
    """Return all that was ever joined with an entity, itself included, and the `same_as` that ever joined them."""
    members, edges, waiting = {ref}, set[Ref](), [ref]
    while waiting:
        for edge in view.relations(waiting.pop().digest, SAME_AS, through):
            ends = touched([edge])[1:]
            if ends:
                edges.add(edge)
            for end in ends:
                if end not in members:
                    members.add(end)
                    waiting.append(end)
    return members, edges


def lives_of(view: View, policies: Mapping[str, Policy], refs: Iterable[Ref]) -> list[IndexRow]:
    """Return the rows that entities ask for, and those of all that was ever joined with them; duplicates aside."""
    audit = StateAudit(view, policies)
    head = view.head().position
    found: dict[tuple[str, bytes, int], IndexRow] = {}
    smallest: dict[Ref, None] = {}
    for ref in refs:
        members = {ref} if _is_lone(view, ref) else component(view, ref, head)[0]
        smallest[min(members, key=lambda member: member.digest)] = None
    for ref in smallest:
        for _ in audit.follow(ref, view.observations(ref.digest, BEFORE_ALL, head)):
            pass
        for row in audit.rows():
            if row.name != DUPLICATE:
                found[row.name, row.key, row.since] = row
    return list(found.values())


def rederive_rows(
    write: Transaction, policies: Mapping[str, Policy], refs: Iterable[Ref], before: Iterable[IndexRow]
) -> None:
    """Put what entities ask for now in place of what they asked for `before`, which `lives_of` told then.

    It is for whoever changes the past of some entities: an erasure. Of `before` nothing is left, nor in the past.
    """
    old, new = list(before), lives_of(write, policies, refs)
    for name, key in dict.fromkeys((row.name, row.key) for row in old):
        write.drop(name, key)
    write.put(new)
    for prefix in dict.fromkeys(_value_prefix(row.key) for row in (*old, *new) if row.name == IDENTITY):
        write.drop(DUPLICATE, prefix)
        write.put(duplicate_lives(prefix, write.lives(IDENTITY, prefix)))


# Reading


class Coverage:
    """What the rows say at the as-of of a reader, and what is to be laid over them."""

    def __init__(self, reader: Reader, known: Progress, base: int) -> None:
        view, position = reader.view, reader.asof.position
        self._known, self._base = known, base
        self.through: int | None = None if base == known.position else base
        """The position to scan at; none for the present."""
        self.laid_over: set[Ref] = set()
        """Entities of which the rows are not to be believed."""
        self.roots: list[Ref] = []
        """The folds that these are in at the as-of; each is to be looked at instead."""
        self._new_types: set[str] = set()
        if base < position:
            for entry in view.entries(base, position, {"schema"}):
                if entry.body is not None:
                    self._new_types.add(schema.stored(entry.body).type)
            spoken = touched(view.touched(base, position))
            before = Reader(view, AsOf(base), reader.policies)
            self.laid_over = {member for ref in spoken for member in (*before.group(ref), *reader.group(ref))}
            roots = {reader.group(ref)[0] for ref in self.laid_over}
            self.roots = sorted(roots, key=lambda ref: (ref.type.encode(), ref.key.encode()))

    def covers(self, type: str) -> bool:
        """Return whether the rows of a type are known."""
        return type not in self._new_types and self._known.covers(type, self._base)


def coverage(reader: Reader) -> Coverage | None:
    """Return what the rows cover of what a reader is asked; none when they are no help."""
    if reader.asof.effective is not None:
        return None  # rows do not say when what they say was true
    view, position = reader.view, reader.asof.position
    known = progress(view)
    if known.position == BEFORE_ALL or position == BEFORE_ALL:
        return None
    base = known.position
    if position < base:
        first, last = WriteEnds(view).bounds(position)
        base = position if position == last else first - 1
    return None if base == BEFORE_ALL or position - base > LAID_OVER_MAX else Coverage(reader, known, base)

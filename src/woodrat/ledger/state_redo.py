"""The rows of the state index by their definition: entity by entity, along all that was ever said of it.

Steps make the same rows write by write (`state_steps.py`). An erasure, which changes the past of some entities, puts
these in place of the rows before; `verify` compares the outcome with rows that steps made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, IndexRow, Transaction, View
from woodrat.ledger import entry_index, fingerprint_index
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import WriteEnds, progress_of
from woodrat.ledger.state_rows import DUPLICATE, IDENTITY, value_prefix
from woodrat.ledger.state_steps import EntityRows, Event, finish_filling, group_events, is_lone, lives, refolded
from woodrat.ledger.transitions import touched
from woodrat.merge import Policy, fold
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state import schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.relation import SAME_AS


class StateAudit:
    """The rows that the log asks for, entity by entity, as far as the index goes."""

    def __init__(self, view: View, policies: Mapping[str, Policy]) -> None:
        self._view, self._policies = view, policies
        self._ends = WriteEnds(view)
        self.progress = progress_of(view)
        """How far the index goes."""
        self._rules: dict[tuple[str, int], Rules] = {}
        self._schemas: dict[str, list[tuple[int, int]]] = {}
        for entry in view.entries(kinds={"schema"}):
            if entry.body is not None and entry.position <= self.progress.position:
                several = self._schemas.setdefault(schema.stored(entry.body).type, [])
                bounds = self._ends.bounds(entry.position)
                if bounds not in several:
                    several.append(bounds)
        self._events: list[Event] = []

    def follow(self, ref: Ref, observations: Iterable[Stored]) -> Iterator[Stored]:
        """Yield the observations of an entity on; once all of them were, `rows` says what it asks for."""
        self._events = []
        if not is_lone(self._view, ref):
            yield from observations
            self._events = self._component_events(ref)
            return
        schemas = list(reversed(self._schemas.get(ref.type, ())))
        rules = self._rules_at(ref, BEFORE_ALL)
        rows = EntityRows(self._view, self._policies, self._ends, fold.empty((ref,), rules), rules)
        within: list[int] = []
        is_known = False
        for said in observations:
            if said.position <= self.progress.position:
                while schemas and schemas[-1][1] < said.position:
                    self._turn(rows, ref, *schemas.pop(), is_known=is_known, within=within)
                is_known = True
                if schemas and schemas[-1][0] <= said.position:
                    within.append(said.position)
                else:
                    rows.add(said)
            yield said
        while schemas:
            self._turn(rows, ref, *schemas.pop(), is_known=is_known, within=within)
        self._events = rows.close()

    def _turn(self, rows: EntityRows, ref: Ref, first: int, last: int, *, is_known: bool, within: list[int]) -> None:
        """Follow an entity through a write that brings a schema of its type."""
        rows.close()
        within.clear()
        rules = self._rules_at(ref, last)
        state = fold.empty((ref,), rules)
        if is_known:
            said = (stored.observation for stored in self._view.observations(ref.digest, BEFORE_ALL, last))
            state = fold.fold(said, (ref,), rules)
        rows.turn(state, rules, last)

    def _rules_at(self, ref: Ref, position: int) -> Rules:
        found = self._rules.get((ref.type, position))
        if found is None:
            found = Reader(self._view, AsOf(position), self._policies).rules(ref.type)
            self._rules[ref.type, position] = found
        return found

    def _component_events(self, ref: Ref) -> list[Event]:
        """Return the events of all that was ever joined with an entity, if it is the first of them to be spoken of."""
        view, end = self._view, self.progress.position
        members, edges = component(view, ref, view.head().position)
        spoken = [
            (said.position, each)
            for each in (*members, *edges)
            for said in view.observations(each.digest, BEFORE_ALL, view.head().position)
        ]
        known = {each for _, each in spoken}.intersection(members)
        if not known or min(known, key=lambda member: member.digest) != ref:
            return []
        told = [(position, each) for position, each in spoken if position <= end]
        events = list(group_events(view, self._policies, self._ends, told))
        for first, last in self._schemas.get(ref.type, ()):
            refs = [each for each in members if view.version(each.digest, last) is not None]
            event = refolded(view, self._policies, first - 1, last, refs)
            if event is not None:
                events.append(event)
        return events

    def rows(self) -> list[IndexRow]:
        """Return the rows that the entity followed last asks for, and those of duplicates that it answers for."""
        found, _ = lives(self._events)
        own = {row.key for row in found if row.name == IDENTITY}
        for prefix in dict.fromkeys(map(value_prefix, own)):
            found += self._duplicates(prefix, own)
        return found

    def _duplicates(self, prefix: bytes, own: Collection[bytes]) -> list[IndexRow]:
        """Return the rows of a value that several have, if the first that has it now, or ever had, is this entity."""
        present = self._view.scan(IDENTITY, prefix, limit=1)
        if present and present[0][0] not in own:
            return []
        holders = self._view.lives(IDENTITY, prefix)
        return duplicate_lives(prefix, holders) if present or (holders and holders[0].key in own) else []


def duplicate_lives(prefix: bytes, holders: Iterable[IndexRow]) -> list[IndexRow]:
    """Return the rows of a value that several entities have, given when each of them had it."""
    steps: dict[int, int] = {}
    for row in holders:
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
        for edge in entry_index.relations(view, waiting.pop().digest, SAME_AS, through):
            ends = touched([edge])[1:]
            if ends:
                edges.add(edge)
            for end in ends:
                if end not in members:
                    members.add(end)
                    waiting.append(end)
    return members, edges


# Changing the past of some entities


@dataclass(frozen=True, slots=True)
class Redoing:
    """The rows of some entities, before their past is changed."""

    rows: Sequence[IndexRow]
    """The rows that begin and end."""
    members: frozenset[Ref]
    """The entities, and all that they were ever joined with."""


def rows_about(write: Transaction, policies: Mapping[str, Policy], refs: Iterable[Ref]) -> Redoing:
    """Return the rows of entities whose past is about to change; hand them to `redo` afterwards.

    It costs the history of these entities and of those that they were ever joined with.
    """
    finish_filling(write, policies)
    members = _members(write, refs)
    return Redoing(_rows_of(write, policies, members), frozenset(members))


def redo(write: Transaction, policies: Mapping[str, Policy], before: Redoing) -> None:
    """Put the rows of entities as they are now in place of those before; of these nothing is left, in no past.

    Whatever else the index holds stays, and so does how far it goes.
    """
    members = _members(write, before.members)
    old, new = before.rows, _rows_of(write, policies, members)
    for name, key in dict.fromkeys((row.name, row.key) for row in old):
        write.drop(name, key)
    write.put(new)
    for prefix in dict.fromkeys(value_prefix(row.key) for row in (*old, *new) if row.name == IDENTITY):
        write.drop(DUPLICATE, prefix)
        write.put(duplicate_lives(prefix, write.lives(IDENTITY, prefix)))
    fingerprint_index.redo(write, policies, members | before.members)


def _members(view: View, refs: Iterable[Ref]) -> set[Ref]:
    head = view.head().position
    found: set[Ref] = set()
    for ref in refs:
        if ref not in found:
            found |= {ref} if is_lone(view, ref) else component(view, ref, head)[0]
    return found


def _rows_of(view: View, policies: Mapping[str, Policy], refs: Iterable[Ref]) -> list[IndexRow]:
    """Return the rows of entities, duplicates aside."""
    audit = StateAudit(view, policies)
    head = view.head().position
    found: dict[tuple[str, bytes, int], IndexRow] = {}
    for ref in refs:
        said = view.observations(ref.digest, BEFORE_ALL, head)
        if said:
            for _ in audit.follow(ref, said):
                pass
            found.update(((row.name, row.key, row.since), row) for row in audit.rows() if row.name != DUPLICATE)
    return list(found.values())

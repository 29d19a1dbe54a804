"""The rows of the state index by their definition: entity by entity, along all that was ever said of it.

Steps make the same rows write by write (`state_steps.py`). An erasure, which changes the past of some entities, puts
these in place of the rows before; `verify` compares the outcome with rows that steps made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from woodrat.canon.ids import Ref
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View
from woodrat.ledger import entry_index, fingerprint_index
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import WriteEnds, reached
from woodrat.ledger.state_rows import DUPLICATE, IDENTITY, value_prefix
from woodrat.ledger.state_steps import EntityRows, Event, finish_filling, group_events, is_lone, lives, refolded
from woodrat.ledger.transitions import touched
from woodrat.merge import Policy, fold
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state import schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.relation import SAME_AS


class RowHistories:
    """The rows of entities over their whole history, as far as the index goes."""

    def __init__(self, view: View, policies: Mapping[str, Policy]) -> None:
        self._view, self._policies = view, policies
        self._ends = WriteEnds(view)
        self._through = reached(view)
        self._rules: dict[tuple[str, int], Rules] = {}
        self._schemas: dict[str, list[tuple[int, int]]] = {}
        for entry in view.entries(through=self._through, kinds={"schema"}):
            if entry.body is not None:
                several = self._schemas.setdefault(schema.stored(entry.body).type, [])
                bounds = self._ends.bounds(entry.position)
                if bounds not in several:
                    several.append(bounds)

    def of(self, ref: Ref) -> list[IndexRow]:
        """Return the rows of an entity, duplicates aside; those of a group come with the first of it that was said."""
        said = self._view.observations(ref.digest, BEFORE_ALL, self._view.head().position)
        if not said:
            return []
        is_alone = is_lone(self._view, ref)
        return lives(self._lone_events(ref, said) if is_alone else self._component_events(ref))[0]

    def _lone_events(self, ref: Ref, observations: Sequence[Stored]) -> list[Event]:
        """Return the events of an entity that was never joined with another."""
        schemas = list(reversed(self._schemas.get(ref.type, ())))
        rules = self._rules_at(ref, BEFORE_ALL)
        rows = EntityRows(self._view, self._policies, self._ends, fold.empty((ref,), rules), rules)
        for said in observations:
            if said.position > self._through:
                break
            while schemas and schemas[-1][1] < said.position:
                self._turn(rows, ref, schemas.pop()[1])
            if not schemas or said.position < schemas[-1][0]:  # else the write of the schema says it
                rows.add(said)
        while schemas:
            self._turn(rows, ref, schemas.pop()[1])
        return rows.close()

    def _turn(self, rows: EntityRows, ref: Ref, last: int) -> None:
        """Follow an entity through a write that brings a schema of its type."""
        rows.close()
        rules = self._rules_at(ref, last)
        said = [stored.observation for stored in self._view.observations(ref.digest, BEFORE_ALL, last)]
        rows.turn(fold.fold(said, (ref,), rules) if said else fold.empty((ref,), rules), rules, last)

    def _rules_at(self, ref: Ref, position: int) -> Rules:
        found = self._rules.get((ref.type, position))
        if found is None:
            found = Reader(self._view, AsOf(position), self._policies).rules(ref.type)
            self._rules[ref.type, position] = found
        return found

    def _component_events(self, ref: Ref) -> list[Event]:
        """Return the events of all that was ever joined with an entity, if it is the first of them to be spoken of."""
        view = self._view
        members, edges = component(view, ref, view.head().position)
        spoken = [
            (said.position, each)
            for each in (*members, *edges)
            for said in view.observations(each.digest, BEFORE_ALL, view.head().position)
        ]
        known = {each for _, each in spoken}.intersection(members)
        if not known or min(known, key=lambda member: member.digest) != ref:
            return []
        told = [(position, each) for position, each in spoken if position <= self._through]
        events = list(group_events(view, self._policies, self._ends, told))
        for first, last in self._schemas.get(ref.type, ()):
            refs = [each for each in members if view.version(each.digest, last) is not None]
            event = refolded(view, self._policies, first - 1, last, refs)
            if event is not None:
                events.append(event)
        return events


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
    histories = RowHistories(view, policies)
    found = {(row.name, row.key, row.since): row for ref in refs for row in histories.of(ref)}
    return list(found.values())

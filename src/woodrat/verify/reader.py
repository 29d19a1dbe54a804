"""Refolding: everything derived from the log worked out again, entity by entity, and compared with what is kept.

An entity's observations are folded in the order of the log, and each merge state kept along the way is compared as the
fold passes its position. What an index says is compared with the observations it is reached by. Each comparison
takes for granted what another one checks; all of them together take nothing for granted but the log.

An entity is let go before the next one comes, so memory does not grow with the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from woodrat.canon.ids import Ref
from woodrat.engines.port import Audit, IndexRow, Keeping, Mismatch, Told, View
from woodrat.errors import Corrupt, Unavailable
from woodrat.ledger import (
    entry_index,
    fingerprint_index,
    identifying_values,
    identity_backlog,
    state_index,
    state_rows,
)
from woodrat.ledger.before import Before
from woodrat.ledger.read import Reader
from woodrat.ledger.state_redo import StateAudit
from woodrat.log import check as log_check
from woodrat.log.check import PART, Checked, Row, Walk
from woodrat.merge import Policy, snapshot
from woodrat.merge import fold as merge
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules, rules_of
from woodrat.records import dataclass, field
from woodrat.state import entry_rows, schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.identity import Identifying, shared_values
from woodrat.state.meaning import Meaning, Step, step_of
from woodrat.state.relation import endpoints
from woodrat.state.schema import Schema
from woodrat.verify.leaves import Leaves

READER_FOLDS: Final = 500
"""After so many entities the readers of the past are made anew, since each keeps all it has folded."""

UNREADABLE: Final = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    Corrupt,
)
"""What reading derived data of the wrong shape may raise. The log is sound when it is read."""


@dataclass(slots=True)
class Refolded:
    """What came of folding some entities again."""

    entities: int = 0
    """How many entities there are."""
    now: Leaves = field(default_factory=Leaves)
    """Leaves of the fingerprint at the head: digests of the smallest entity and of the values of every fold."""
    then: Leaves = field(default_factory=Leaves)
    """Leaves of the fingerprint at the position for which one is kept."""
    wrong: list[Mismatch] = field(default_factory=list)
    """What does not agree with the log."""
    seen: dict[str, int] = field(default_factory=dict)
    """How many rows of each part were looked up and found."""
    unchecked: set[str] = field(default_factory=set)
    """What could not be folded, and why."""


class Refolder:
    """Folds the entities of one view again."""

    def __init__(self, view: View, audit: Audit, policies: Mapping[str, Policy], *, deep: bool) -> None:
        self._view, self._audit, self._policies, self._deep = view, audit, policies, deep
        self._head = view.head().position
        self._versions = _versions(view)
        self._imprint = fingerprint_index.position(view)
        self._readers: dict[int, Reader] = {}
        self._rules: dict[tuple[str, int], Rules] = {}
        self.found = Refolded()
        self._audits = self._state_audits()
        self._waiting = {one.type: one.rules for one in identity_backlog.backlogs(view)}
        """Identity rules by which values are still being noted, by type."""

    def _state_audits(self) -> list[StateAudit]:
        """Return what works out the rows of the state index again; nothing while a schema is taken in."""
        try:
            audit = StateAudit(self._view, self._policies)
        except UNREADABLE as error:
            problem = f"how far the index {state_index.NAME} goes: {error}"
            self.found.wrong.append(Mismatch("index", None, None, problem))
            return []
        if audit.progress.position > self._head:
            problem = f"the index {state_index.NAME} speaks of a position after the end of the log"
            self.found.wrong.append(Mismatch("truncated", self._head + 1, None, problem, log=True))
            return []
        if audit.progress.filling:
            for name in state_rows.INDEXES:
                self._audit.pass_over(name)
            return []
        return [audit]

    def fold(self, within: tuple[int, int], tell: Callable[[int], object]) -> Refolded:
        """Fold the entities of a slice; `tell` is told of how many observations at a time."""
        found = self.found
        for told in self._audit.told(within, self._look_ahead):
            found.entities += 1
            try:
                said = self._entity(told)
                tell(said)
            except Unavailable as error:
                for _ in told.observations:
                    pass
                found.unchecked.add(f"{told.ref.type}: {error}")
            except UNREADABLE as error:
                problem = f"what is kept of it cannot be read ({type(error).__name__}: {error})"
                found.wrong.append(Mismatch("state", None, told.ref, problem))
            if not found.entities % READER_FOLDS:
                self._readers.clear()
        found.wrong += self._audit.wrong
        self._audit.wrong = []
        found.seen = dict(self._audit.seen)
        return found

    def _look_ahead(self, refs: Sequence[Ref]) -> None:
        """Learn of entities that come next, in one look, which of them were never joined with another."""
        entry_index.joined_among(self._view, [ref.digest for ref in refs])

    def _rules_at(self, type: str, position: int) -> Rules:
        """Return the rules of a type at a position; they change only where a schema of it stands."""
        version = bisect_right(self._versions.get(type, ()), position, key=_registered_at)
        found = self._rules.get((type, version))
        if found is None:
            chosen = schema.winning(one for _, one in self._versions.get(type, [])[:version]) or schema.OPEN(type)
            found = self._rules[type, version] = rules_of(chosen, self._policies)
        return found

    def _reader(self, position: int) -> Reader:
        found = self._readers.get(position)
        if found is None:
            if len(self._readers) > 1:
                self._readers.clear()
            found = self._readers[position] = Reader(self._view, AsOf(position), self._policies)
        return found

    def _entity(self, told: Told) -> int:
        """Fold one entity, alone or with those it was ever joined with; return how many observations it has."""
        ref = told.ref
        rules = self._rules_at(ref.type, self._head)
        values = Identifying(ref, rules.identifying, partial(shared_values, rules.schema))
        for rows in self._audits:
            told = told._replace(observations=rows.follow(ref, told.observations))
        first = _First(told.observations) if endpoints(ref) is not None else None
        if first is not None:
            told = told._replace(observations=first)
        count = self._joined(told, values) if entry_index.joined(self._view, ref.digest) else self._lone(told, values)
        waiting = self._waiting.get(ref.type, ())
        for row in identifying_values.rows(ref, [one for one in values.found if one[0] not in waiting]):
            self._audit.listed(row, ref)
        if first is not None and first.position >= 0:
            for name, key, value in entry_rows.relation_rows(ref, first.position):
                self._audit.listed(IndexRow(name, key, first.position, value), ref)
        for rows in self._audits:
            for row in rows.rows():
                is_word = row.name in (state_rows.WORD, state_rows.RELATION_WORD, state_rows.ROOT)
                if self._deep or not is_word:
                    self._audit.listed(row, ref, "search" if is_word else "index")
        return count

    def _lone(self, told: Told, values: Identifying) -> int:
        """Fold an entity that was never joined with another."""
        ref, members = told.ref, (told.ref,)
        waiting = list(reversed(told.states))
        now = self._rules_at(ref.type, self._head)
        rules = self._rules_at(ref.type, waiting[-1].position) if waiting else now
        state: MergeState | None = merge.empty(members, rules)
        due = waiting[-1].position if waiting else self._head
        last, count = -1, 0
        known, add = Before(self._view, members, -1), values.add if values.wanted else None
        for position, said in told.observations:
            if position > due:
                while waiting and waiting[-1].position < position:
                    state, rules = self._compare(ref, waiting.pop(), state, rules, last)
                due = waiting[-1].position if waiting else self._head
                if not waiting and rules is not now:
                    state = None
            if state is not None:
                known.through = position - 1
                state = merge.extend(state, said, rules, known)
            last, count = position, count + 1
            if add is not None:
                add(said)
        while waiting:
            state, rules = self._compare(ref, waiting.pop(), state, rules, last)
        if state is None or rules is not now:
            state = self._whole(members, self._head, now)
        self._present(told, members, state, now, last)
        return count

    def _compare(
        self, ref: Ref, kept: Keeping, state: MergeState | None, rules: Rules, last: int
    ) -> tuple[MergeState, Rules]:
        """Compare one state that is kept of a lone entity; return the fold there, and its rules."""
        then = self._rules_at(ref.type, kept.position)
        if state is None or then is not rules:
            state = self._whole((ref,), kept.position, then)
        self._agree(ref, kept, state, then, last)
        return merge.handed_over(state), then

    def _agree(self, ref: Ref, kept: Keeping, state: MergeState, rules: Rules, last: int) -> None:
        if not kept.agrees(state, rules, last):
            problem = f"the merge state kept for position {kept.position} is not what the log gives"
            self.found.wrong.append(Mismatch("state", kept.position, ref, problem))

    def _whole(self, members: Sequence[Ref], position: int, rules: Rules) -> MergeState:
        found = [s for ref in members for s in self._view.observations(ref.digest, -1, position)]
        return merge.fold((s.observation for s in found), members, rules) if found else merge.empty(members, rules)

    def _joined(self, told: Told, values: Identifying) -> int:
        """Fold an entity that was joined with others at some time: with those it was joined with at each position."""
        ref = told.ref
        positions: list[int] = []
        for position, said in told.observations:
            positions.append(position)
            values.add(said)
        members: tuple[Ref, ...] = ()
        state: MergeState | None = None
        rules: Rules | None = None
        at = -1
        for kept in told.states:
            group, then = self._reader(kept.position).group(ref), self._rules_at(ref.type, kept.position)
            if state is None or group != members or then is not rules:
                state = self._whole(group, kept.position, then)
            else:
                state = self._further(state, group, then, at, kept.position)
            members, rules, at = group, then, kept.position
            index = bisect_right(positions, kept.position)
            self._agree(ref, kept, state, then, positions[index - 1] if index else -1)
            state = merge.handed_over(state)
        last, now = positions[-1] if positions else -1, self._rules_at(ref.type, self._head)
        group = self._reader(self._head).group(ref)
        self._present(told, group, self._whole(group, self._head, now), now, last, joined=True)
        return len(positions)

    def _further(
        self, state: MergeState, members: tuple[Ref, ...], rules: Rules, after: int, through: int
    ) -> MergeState:
        """Return a group's state at a later position; its members and rules are the same."""
        since = [s for ref in members for s in self._view.observations(ref.digest, after, through)]
        found: MergeState | None = state
        for position, said in sorted(since, key=_position):
            assert found is not None
            found = merge.extend(found, said, rules, Before(self._view, members, position - 1))
            if found is None:
                return self._whole(members, through, rules)
        assert found is not None
        return found

    def _present(
        self, told: Told, members: tuple[Ref, ...], state: MergeState, rules: Rules, last: int, *, joined: bool = False
    ) -> None:
        """Take in what the fingerprint should say of an entity, and compare what the engine shows of it."""
        ref = told.ref
        is_root = members[0] == ref
        if told.shows is not None:
            told.shows(is_root, self._reader(self._head).version(ref) if joined and is_root else last)
        digest = snapshot.value_digest(state, rules) if is_root and state.exists else None
        if digest is not None:
            self.found.now.add(ref.digest, digest)
        then = self._imprint
        if then >= 0:
            if joined or last > then or self._rules_at(ref.type, then) is not rules:
                reader = self._reader(then)
                before = reader.state(ref) if reader.group(ref)[0] == ref else None
                old = self._rules_at(ref.type, then)
                digest = snapshot.value_digest(before, old) if before is not None and before.exists else None
            if digest is not None:
                self.found.then.add(ref.digest, digest)


class _First:
    """What was said of an entity, and the position it begins at once it is read."""

    def __init__(self, observations: Iterator[Stored]) -> None:
        self._observations = observations
        self.position = -1

    def __iter__(self) -> _First:
        return self

    def __next__(self) -> Stored:
        found = next(self._observations)
        if self.position < 0:
            self.position = found.position
        return found


def _versions(view: View) -> dict[str, list[tuple[int, Schema]]]:
    """Return the schemas of each type with their positions, as the log has them."""
    found: dict[str, list[tuple[int, Schema]]] = {}
    for entry in view.entries(kinds={"schema"}):
        if entry.body is not None:
            registered = schema.stored(entry.body)
            found.setdefault(registered.type, []).append((entry.position, registered))
    return found


def _registered_at(version: tuple[int, Schema]) -> int:
    return version[0]


def _position(stored: Stored) -> int:
    return stored.position


def total(parts: Iterable[Refolded]) -> Refolded:
    """Return what came of several parts together."""
    found = Refolded()
    for part in parts:
        found.entities += part.entities
        found.now.take(part.now)
        found.then.take(part.then)
        found.wrong += part.wrong
        found.unchecked |= part.unchecked
        for name, count in part.seen.items():
            found.seen[name] = found.seen.get(name, 0) + count
    return found


# The log itself


@dataclass(slots=True)
class Stretch:
    """A stretch of the log, checked."""

    checked: Checked
    wrong: list[Mismatch] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)


def stretch(
    view: View, audit: Audit, start: int, end: int, size: int, sizes: Sequence[int], tell: Callable[[int], object]
) -> Stretch:
    """Check the log from a multiple of `PART` on, and the indexes of what is no observation in it."""
    walk = Walk(start, size, sizes, _before(view, start))
    wrong: list[Mismatch] = []

    def other(row: Row) -> None:
        assert row.body is not None
        try:
            if not log_check.canonical(row.kind, row.body):
                wrong.append(Mismatch("canonical", row.position, None, "the body is not in canonical form", log=True))
            meaning = _meaning(row)
            about = meaning.subject if isinstance(meaning, Step) else None
            for name, key, value in entry_rows.rows_of(row.kind, row.body, meaning, row.position):
                audit.listed(IndexRow(name, key, row.position, value), about)
        except UNREADABLE as error:
            problem = f"the body is not that of a {row.kind} ({type(error).__name__}: {error})"
            wrong.append(Mismatch("body", row.position, None, problem, log=True))

    while walk.found.end < end:
        first = walk.found.end
        last = min(first + PART, size) - 1
        levels = walk.part(view.rows(first - 1, last), other)
        if not walk.found.damage:
            for height, roots in enumerate(levels):
                audit.subtrees(height, first >> height, roots[: (last + 1 - first) >> height])
        tell(last + 1 - first)
    found = Stretch(walk.found, wrong + audit.wrong, dict(audit.seen))
    audit.wrong, audit.seen = [], {}
    return found


def _before(view: View, start: int) -> list[Row]:
    """Return the first row of the write that reaches up to a position, and the row before the position."""
    if not start:
        return []
    last = next(view.rows(start - 2, start - 1), None)
    if last is None or not isinstance(last.write, int) or not 0 <= last.write < start:
        return [] if last is None else [last]
    first = next(view.rows(last.write - 1, last.write), None)
    return [last] if first is None else [first, last]


def _meaning(row: Row) -> Meaning:
    assert row.body is not None
    if row.kind == "schema":
        return schema.stored(row.body)
    return step_of(row.kind, row.body)


def refold(
    view: View,
    audit: Audit,
    policies: Mapping[str, Policy],
    within: tuple[int, int],
    deep: bool,
    tell: Callable[[int], object],
) -> Refolded:
    """Fold the entities of a slice again."""
    return Refolder(view, audit, policies, deep=deep).fold(within, tell)

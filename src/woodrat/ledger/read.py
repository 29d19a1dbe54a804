"""Reading: answers about one tenant at one as-of.

A reader starts from the latest merge state kept at or before its as-of and folds what came after it; where
nothing kept fits (other members, another schema, an effective time) it folds from the observations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from woodrat.canon import ids
from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY, Current, Kept, Standing
from woodrat.engines.view import View
from woodrat.errors import NotFound
from woodrat.ledger import entry_index
from woodrat.ledger.before import Before, extend_all
from woodrat.ledger.spacing import Spacing
from woodrat.merge import Policy, fold, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules, rules_of
from woodrat.merge.snapshot import Snapshot
from woodrat.state import relation, schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.fingerprint import Tree
from woodrat.state.match import Match
from woodrat.state.relation import SAME_AS

PAGE_MAX: Final = 1_000
"""Most items of one page."""
LAST_KEY: Final = "\U0010ffff" * (ids.KEY_BYTES_MAX // 4 + 1)
"""Sorts after every key."""
_make: Final = tuple.__new__
"""Makes a named tuple in half the time; used where there is one for every entity of a write."""


class Transition(NamedTuple):
    """An entity before and after a write."""

    ref: Ref
    """The entity."""
    stored: Sequence[Stored]
    """What the write says of it."""
    old: MergeState
    """Its state before the write."""
    was: Rules
    """The rules before."""
    new: MergeState
    """Its state after."""
    now: Rules
    """The rules after."""


class Reader:
    """One tenant, one view, one as-of."""

    def __init__(self, view: View, asof: AsOf, policies: Mapping[str, Policy]) -> None:
        self.view = view
        self.asof = asof
        self.policies = policies
        self._rules: dict[str, Rules] = {}
        self._current_of = view.current
        self._states: dict[tuple[Ref, ...], MergeState] = {}
        self._gathered: dict[Ref, Current] = {}
        """Of lone entities that are to be read, what `current` would tell."""
        self._standings: dict[Ref, Standing] = {}
        """Of other lone entities that are to be read, where they stand at the as-of."""
        self._groups: dict[Ref, tuple[Ref, ...]] = {}
        self._before: dict[Ref, MergeState] = {}
        self.matches: dict[str, Match] = {}
        """How what was asked for was found, where that was by a value that identifies it, by what was asked."""
        self.along: list[tuple[Kept, Rules, bool]] = []
        """State along the history of what was followed, where it is due to be kept."""

    @property
    def matched(self) -> Match | None:
        """How the one entity that was asked for was found; none where that was by its key or id."""
        return next(iter(self.matches.values()), None)

    def rules(self, type: str) -> Rules:
        """Return the rules of a type: the highest schema known at the as-of, or none at all."""
        found = self._rules.get(type)
        if found is None:
            chosen = entry_index.schema_of(self.view, type, self.asof.position)
            found = self._rules[type] = rules_of(chosen or schema.OPEN(type), self.policies)
        return found

    def remember(self, refs: Iterable[Ref]) -> None:
        """Note the states of entities as they are, for `follow` after a write."""
        assert self.asof.effective is None, "a write follows all that is known"
        refs = list(refs)
        states, joined, standings = self._before, *self._look_up(refs)
        for ref, standing in zip(refs, standings, strict=True):
            # As `state`, which asks for each.
            if joined and ref.digest in joined:
                states[ref] = self.state(ref)
            elif standing is None:
                states[ref] = fold.empty((ref,), self._rules[ref.type])
            else:
                states[ref] = lone_state(standing) or self.state(ref)

    def _look_up(self, refs: Sequence[Ref]) -> tuple[Collection[bytes], Sequence[Standing | None]]:
        """Return which of these entities are joined with others, by digest, and what is held of each, in two looks."""
        for type in {ref.type for ref in refs}:
            self.rules(type)
        some = entry_index.joins(self.view)
        joined = entry_index.joined_among(self.view, [ref.digest for ref in refs]) if some else ()
        return joined, self.view.standings(refs, self.asof.position, self._rules)

    def follow(
        self,
        before: Reader,
        spoken: Mapping[Ref, Sequence[Stored]],
        changed: Mapping[str, int],
        spacing: Spacing,
        *,
        joining: bool = False,
    ) -> tuple[list[Transition], list[Ref]]:
        """Fold what a write says into what an earlier reader of the same view remembers.

        Return what became of the entities that could be followed, and those that have to be read anew: entities of
        types whose schemas `changed`, given with the position, everything where a `same_as` is spoken of (`joining`),
        and whatever only a whole fold can tell.
        """
        if joining:
            return [], list(spoken)
        for type, rules in before._rules.items():
            if type not in changed:
                self._rules.setdefault(type, rules)
        transitions: list[Transition] = []
        rest: list[Ref] = []
        groups: dict[tuple[Ref, ...], list[Ref]] = {}
        remembered, by_type = before._before, self._rules
        digests = [one.observation.digest for stored in spoken.values() for one in stored]
        unnamed = frozenset(digests).difference(self.view.named(digests, self.asof.position))
        known = Before(self.view, (), -1, None, unnamed)
        if len(spoken) > 1:
            counted = [(remembered[ref], len(stored)) for ref, stored in spoken.items()]
            spacing.look_up(old.members[0] for old, new in counted if (old.observations + new) % KEPT_EVERY < new)
        for ref, stored in spoken.items():
            old, type = remembered[ref], ref.type
            rules = by_type.get(type) or self.rules(type)
            if type in changed and old.observations:
                rest.append(ref)
                continue
            members = old.members
            if len(members) > 1:
                groups.setdefault(members, []).append(ref)
                continue
            now: MergeState | None
            if len(stored) == 1 and (old.observations + 1) % KEPT_EVERY and type not in changed:
                # As `_followed`, of one observation after which no state is due.
                ((position, observation),) = stored
                known.members, known.through = members, position - 1
                now = fold.extend(old, observation, rules, known)
                was = rules
            else:
                new = fold.empty((ref,), rules) if type in changed else old
                now = self._followed(ref, new, old, stored, rules, changed.get(type, -1), spacing, unnamed)
                was = before.rules(type)
            if now is None:
                rest.append(ref)
            else:
                transitions.append(_make(Transition, (ref, stored, old, was, now, rules)))
        if groups:
            for members, refs in groups.items():
                type = refs[0].type
                old, was, rules = before._before[refs[0]], before.rules(type), self.rules(type)
                said = sorted((one for ref in refs for one in spoken[ref]), key=lambda one: one.position)
                new = fold.empty(members, rules) if type in changed else old
                now = self._followed(refs[0], new, old, said, rules, changed.get(type, -1), spacing, unnamed)
                if now is None:
                    rest += refs
                else:
                    transitions += [Transition(ref, spoken[ref], old, was, now, rules) for ref in refs]
            order = {ref: place for place, ref in enumerate(spoken)}
            transitions.sort(key=lambda transition: order[transition.ref])
        return transitions, rest

    def _followed(
        self,
        ref: Ref,
        state: MergeState,
        old: MergeState,
        stored: Sequence[Stored],
        rules: Rules,
        since: int,
        spacing: Spacing,
        unnamed: Collection[bytes],
    ) -> MergeState | None:
        """Fold some observations in one by one, and note the states that are due to be kept on the way.

        What lies at or before `since` was folded under another schema, and no observation names those that are
        `unnamed`. `None` asks for a whole fold.
        """
        view, members = self.view, state.members
        new: MergeState | None = state
        size = old.body_bytes
        for number, (position, observation) in enumerate(stored, old.observations + 1):
            size += len(observation.body)
            if new is not None:
                new = fold.extend(new, observation, rules, Before(view, members, position - 1, None, unnamed))
            if position > since and spacing.is_due(members[0], number, size):
                if new is None:
                    new = Reader(view, AsOf(position), self.policies).state(ref)
                self.keep_along(position, new, rules, spacing)
                new = fold.handed_over(new)
        return new

    def keep_along(self, position: int, state: MergeState, rules: Rules, spacing: Spacing) -> None:
        """Note a state that is due to be kept along the history."""
        self.along.append((Kept(position, state), rules, True))
        spacing.note(state, rules)

    def transition(self, before: Reader, ref: Ref, stored: Sequence[Stored]) -> Transition:
        """Return what became of an entity since an earlier reader, read anew."""
        return Transition(ref, stored, before.state(ref), before.rules(ref.type), self.state(ref), self.rules(ref.type))

    def group(self, ref: Ref) -> tuple[Ref, ...]:
        """Return all entities that `same_as` joins with this one, itself included, by digest."""
        if ref in self._gathered:
            return (ref,)
        found = self._groups.get(ref)
        if found is None:
            found = relation.group(ref, self._same) if entry_index.joined(self.view, ref.digest) else (ref,)
            self._groups.update(dict.fromkeys(found, found))  # it is the group of each of its members
        return found

    def _same(self, ref: Ref) -> Iterator[Ref]:
        for edge in entry_index.relations(self.view, ref.digest, SAME_AS, self.asof.position):
            ends = relation.joined(edge)
            if ends is not None and ref in ends:
                state = self._fold((edge,))
                if state.exists and not state.deleted:
                    yield ends[0] if ends[1] == ref else ends[1]

    def gather(self, refs: Iterable[Ref]) -> None:
        """Look up entities that are about to be read, many at once; what was gathered before is forgotten."""
        cancellation.check()
        if self.asof.effective is None:
            several = list(dict.fromkeys(refs))
            joined, standings = self._look_up(several)
            self._gathered, self._standings = {}, {}
            for ref, standing in zip(several, standings, strict=True):
                if standing is not None and ref.digest not in joined:
                    state = lone_state(standing)
                    if state is None:
                        self._standings[ref] = standing
                    else:
                        self._gathered[ref] = Current(state, standing.version)

    def state(self, ref: Ref) -> MergeState:
        """Return the merge state of an entity with all that it is joined with."""
        gathered = self._gathered.get(ref)
        if gathered is not None:
            return gathered.state
        cancellation.check()
        if self.asof.effective is None:  # as `_current`, which costs a call more
            view, digest, position = self.view, ref.digest, self.asof.position
            if not entry_index.joined(view, digest):
                rules = self.rules(ref.type)
                current = self._current_of(ref, position, rules)
                if current is not None:
                    return current.state
                if view.version(digest, position) is None:  # nobody ever spoke of it
                    return fold.empty((ref,), rules)
        return self._fold(self.group(ref))

    def _current(self, ref: Ref) -> Current | None:
        """Return what is kept of a lone entity, if that is the present."""
        gathered = self._gathered.get(ref)
        if gathered is not None:
            return gathered
        if self.asof.effective is not None or entry_index.joined(self.view, ref.digest):
            return None
        return self._current_of(ref, self.asof.position, self.rules(ref.type))

    def stored(self, members: Iterable[Ref], after: int = -1) -> list[Stored]:
        """Return the observations of these entities that count at the as-of, by position."""
        found: list[Stored] = []
        for ref in members:
            cancellation.check()
            found += self.view.observations(ref.digest, after, self.asof.position)
        found.sort(key=lambda stored: stored.position)
        return [stored for stored in found if self.asof.selects(stored)]

    def _fold(self, members: tuple[Ref, ...]) -> MergeState:
        """Return the merge state of these members together."""
        found = self._states.get(members)
        if found is None:
            found = self._states[members] = self._folded(members)
        return found

    def _folded(self, members: tuple[Ref, ...]) -> MergeState:
        cancellation.check()
        rules = self.rules(members[0].type)
        if self.asof.effective is None:
            standing = self._standings.get(members[0])
            kept = self.view.kept(members[0], self.asof.position, rules) if standing is None else standing.kept
            if kept is not None and kept.state.members == members:
                if len(members) == 1:
                    since = self.view.observations(members[0].digest, kept.position, self.asof.position)
                else:
                    since = self.stored(members, kept.position)
                state = self._extended(kept.state, since, rules)
                if state is None and len(members) == 1:
                    state = self._without_withdrawn(kept.state, since, rules)
                if state is not None:
                    return state
            elif len(members) == 1:
                since = self.view.observations(members[0].digest, BEFORE_ALL, self.asof.position)
                state = self._extended(fold.empty(members, rules), since, rules)
                if state is not None:
                    return state
        elif len(members) == 1:
            state = self._true_by(members, self.asof.effective, rules)
            if state is not None:
                return state
        found = self.stored(members)
        return fold.fold((s.observation for s in found), members, rules) if found else fold.empty(members, rules)

    def _without_withdrawn(self, state: MergeState, since: Sequence[Stored], rules: Rules) -> MergeState | None:
        """Return the merge state of an entity after retractions, from one kept before; `None` asks for a whole fold."""
        from woodrat.ledger import withdrawal

        return withdrawal.state_without(self.view, state.members[0], since, rules, self.asof.position)

    def _true_by(self, members: tuple[Ref, ...], effective: str, rules: Rules) -> MergeState | None:
        """Return the merge state of what was true by a time, from one that was kept; `None` asks for a whole fold."""
        found = self.view.kept_by(members[0], effective, self.asof.position, rules)
        if found is None or found[0].state.members != members:
            return None
        kept, since = found
        return self._extended(kept.state, since, rules, self.asof)

    def _extended(
        self, state: MergeState, since: Iterable[Stored], rules: Rules, asof: AsOf | None = None
    ) -> MergeState | None:
        """Return a kept state with what was said since folded in; `None` asks for a whole fold."""
        return extend_all(state, since, rules, Before(self.view, state.members, -1, asof))

    def exists(self, ref: Ref) -> bool:
        """Return whether anything live is said of an entity, or of one it is joined with."""
        return self.state(ref).exists

    def version(self, ref: Ref) -> int:
        """Return the position of the last entry that touched an entity or its group; the one before all if none did."""
        gathered = self._gathered.get(ref)
        if gathered is not None:
            return gathered.version
        standing = self._standings.get(ref)
        if standing is not None:
            return standing.version
        if not entry_index.joined(self.view, ref.digest):
            return self._version(ref)
        last = -1
        for member in self.group(ref):
            last = max(last, self._version(member))
            if not entry_index.joined(self.view, member.digest):
                continue
            for edge in entry_index.relations(self.view, member.digest, SAME_AS, self.asof.position):
                last = max(last, self._version(edge))
        return last

    def _version(self, ref: Ref) -> int:
        found = self.view.version(ref.digest, self.asof.position)
        return -1 if found is None else found

    def snapshot(self, ref: Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
        found = self.find(ref)
        if found is None:
            raise self._unknown(ref)
        return self.with_reasons(found)

    def check_exists(self, ref: Ref) -> None:
        """Raise `NotFound` when nothing live is said of an entity; a collection it has is not read for that."""
        if not self.exists(ref):
            raise self._unknown(ref)

    def _unknown(self, ref: Ref) -> NotFound:
        at = self.asof.position
        where = f"at position {at}" if at != BEFORE_ALL else "before the first entry"
        return NotFound(
            f"{ref}: not known {where}. Nothing was changed. Search for it, or read at a later moment.",
            {"entity": str(ref), "position": self.asof.position},
        )

    def with_reasons(self, found: Snapshot) -> Snapshot:
        """Return a snapshot with the reasons given for corrections of its fields, which merge state does not keep."""
        reasons: dict[bytes, str] = {}
        for digest in found.corrections():
            stored = self.view.observation(digest, self.asof.position)
            reason = None if stored is None else stored.observation.optional.get("reason")
            if isinstance(reason, str):
                reasons[digest] = reason
        return found.with_reasons(reasons) if reasons else found

    def find(self, ref: Ref) -> Snapshot | None:
        """Return what is believed about an entity, or `None` when nothing live is said of it."""
        current = self._current(ref)
        if current is not None:
            return self._shown(ref, current)
        state = self._fold(self.group(ref))
        return self._shown(ref, Current(state, self.version(ref))) if state.live else None

    def soon(self, ref: Ref) -> Snapshot | None:
        """Return what `snapshot` returns where nothing has to be folded and no large collection read; else `None`."""
        current = self._current(ref)
        found = None if current is None or fold.is_spread(current.state) else self._shown(ref, current)
        return None if found is None else self.with_reasons(found)

    def _shown(self, ref: Ref, current: Current) -> Snapshot | None:
        state, version = current
        return Snapshot(ref, state, self.rules(ref.type), self.asof.position, version) if state.live else None

    def roots(self, type: str | None = None) -> Iterator[tuple[Ref, MergeState]]:
        """Yield every fold that exists, under its smallest entity; the order is that of their first members."""
        done: set[Ref] = set()
        for ref in self.view.entities(type, self.asof.position):
            members = self.group(ref)
            if members[0] in done:
                continue
            done.add(members[0])
            state = self._fold(members)
            if state.exists:
                yield members[0], state

    def take(self, ref: Ref, state: MergeState) -> Snapshot:
        """Return the snapshot that an already folded state shows."""
        rules = self.rules(ref.type)
        return snapshot.take(ref, state, rules, position=self.asof.position, version=self.version(ref))

    def fingerprint(self, *, provenance: bool = False) -> Tree:
        """Return the fingerprint tree of the whole state, from nothing but the observations and what is kept."""
        return Tree.build(
            (ref.digest, snapshot.value_digest(state, self.rules(ref.type), provenance=provenance))
            for ref, state in self.roots()
        )


def lone_state(standing: Standing) -> MergeState | None:
    """Return the merge state of an entity that was folded alone, if nothing was said of it since."""
    version, kept = standing
    return kept.state if kept is not None and version <= kept.position and len(kept.state.members) == 1 else None


def changed(view: View, after: int, through: int) -> set[Ref]:
    """Return the entities spoken of between two positions, those joined or parted, and those with another schema."""
    found: set[Ref] = set(view.touched(after, through))
    for entry in view.entries(after, through, {"schema"}):
        assert entry.body is not None
        found.update(view.entities(schema.stored(entry.body).type, through))
    for ref in list(found):
        found.update(relation.joined(ref) or ())
    return found

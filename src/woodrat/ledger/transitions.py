"""Transitions: what a write makes of state, what is kept of that, and what its report says about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.engines.records import KEPT_EVERY, Kept
from woodrat.engines.transaction import Transaction
from woodrat.ledger import identifying_values, refold
from woodrat.ledger.read import Reader, Transition
from woodrat.ledger.report import Change
from woodrat.ledger.spacing import Spacing
from woodrat.merge import fold, snapshot
from woodrat.merge.diff import FieldChange, collection_changes, field_changes
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state import relation
from woodrat.state.asof import AsOf, Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import STATING, Observation
from woodrat.state.schema import Schema


def touched(spoken_of: Iterable[Ref]) -> list[Ref]:
    """Return the entities a write may change: those it speaks of, and those a `same_as` among them joins or parts."""
    found: dict[Ref, None] = {}
    for ref in spoken_of:
        found[ref] = None
        found.update(dict.fromkeys(relation.joined(ref) or ()))
    return list(found)


def spoken_of(meanings: Iterable[Meaning]) -> set[Ref]:
    """Return the entities that some entries speak of."""
    return {meaning.entity for meaning in meanings if isinstance(meaning, Observation)}


Spoken = Mapping[Ref, Sequence[Stored]]
"""What some entries say, by the entities they speak of."""


def said_by_entity(first: int, meanings: Sequence[Meaning]) -> Spoken:
    """Return what entries from position `first` on say of entities."""
    found: dict[Ref, list[Stored]] = {}
    make = tuple.__new__  # as `Stored(…)`, in half the time
    for position, meaning in enumerate(meanings, first):
        if isinstance(meaning, Observation):
            stored, said = make(Stored, (position, meaning)), found.get(meaning.entity)
            if said is None:
                found[meaning.entity] = [stored]
            else:
                said.append(stored)
    return found


def remember(write: Transaction, before: Reader, refs: Collection[Ref]) -> None:
    """Have a reader note the states of entities before a write speaks of them; those that wait are kept anew first."""
    if refold.is_due(write):
        refold.keep_before(write, before.policies, touched(refs))
    before.remember(refs)


def advance(
    write: Transaction,
    before: Reader,
    after: Reader,
    first: int,
    meanings: Sequence[Meaning],
    *,
    spoken: Spoken | None = None,
) -> list[Transition]:
    """Merge entries from position `first` on, which the indexes know already, and keep what they make of state.

    `before` remembers the entities they speak of, and `spoken` is what `said_by_entity` gives, where it is known.
    Return what became of those, and of all that they join or part. The other entities of a type with a new schema wait
    (`refold.py`).
    """
    if spoken is None:
        spoken = said_by_entity(first, meanings)
    changed: dict[str, int] = {}
    for position, meaning in enumerate(meanings, first):
        if type(meaning) is Schema and before.rules(meaning.type).merging != after.rules(meaning.type).merging:
            changed[meaning.type] = position
    spacing = Spacing(write.last_kept)
    joining = relation.SAME_AS in {ref.type for ref in spoken}
    transitions, others = after.follow(before, spoken, changed, spacing, joining=joining)
    if others:
        found = {transition.ref: transition for transition in transitions}
        transitions = [found.get(ref) or after.transition(before, ref, spoken.get(ref, ())) for ref in touched(spoken)]
        if joining:  # then nothing was followed
            for transition in transitions:
                _note_along(after, transition, changed, spacing)
    keep(write, after, transitions, spacing, followed=not joining)
    return transitions


def _note_along(after: Reader, transition: Transition, changed: Collection[str], spacing: Spacing) -> None:
    """Note the states that are due on the way of an entity that was read anew, as `follow` does, if it stays alone."""
    ref, stored, old, _, new, rules = transition
    if old.members != new.members or len(new.members) > 1 or ref.type in changed:
        return
    size = old.body_bytes
    for number, (position, observation) in enumerate(stored, old.observations + 1):
        size += len(observation.body)
        if spacing.is_due(ref, number, size):
            after.keep_along(position, Reader(after.view, AsOf(position), after.policies).state(ref), rules, spacing)


def absorb(write: Transaction, before: Reader, after: Reader, first: int, meanings: Sequence[Meaning]) -> None:
    """Merge entries from position `first` on, as `advance` does, and put the rows that follow."""
    transitions = advance(write, before, after, first, meanings)
    schemas = [found for found in meanings if isinstance(found, Schema)]
    put_rows(write, before, after, transitions, schemas)


def keep(
    write: Transaction,
    after: Reader,
    transitions: Iterable[Transition],
    spacing: Spacing,
    *,
    followed: bool = True,
) -> None:
    """Keep the state of touched entities, and of joined or parted groups.

    What was `followed` has the states that are due on its way noted already.
    """
    position = after.asof.position
    keeping: dict[Ref, tuple[Kept, Rules, bool]] = {}
    along = {kept.state.members[0] for kept, _, _ in after.along} if after.along else ()
    make = tuple.__new__  # as `Kept(…)`, in half the time
    for _, _, old, _, new, rules in transitions:
        members = new.members
        root = members[0]
        if root not in keeping:
            # Mostly the very same, since nothing was said that joins or parts.
            same = (old.members is members or old.members == members) and old.merging == new.merging
            count = new.observations
            before = old.observations if same else 0
            due = count // KEPT_EVERY > before // KEPT_EVERY and root not in along
            if due and same:
                due = not followed and len(members) > 1 and spacing.is_far(root, count, new.body_bytes)
            keeping[root] = (make(Kept, (position, new)), rules, due)
    write.keep([*after.along, *keeping.values()] if along else keeping.values())


def changes(transitions: Sequence[Transition]) -> Callable[[], dict[str, Any]]:
    """Return what tells the parts of a report that follow from the states before and after a write.

    It can be called when the transaction is over.
    """
    large = large_changes(transitions)

    def told() -> dict[str, Any]:
        changes, conflicts = compare(transitions, large)
        return {"changes": changes, "conflicts": conflicts, "by_arrival": fields_by_arrival(transitions)}

    return told


Large = Mapping[int, Mapping[str, FieldChange | None]]
"""What changed in large collections, by the place of the transition and the field."""


def large_changes(transitions: Sequence[Transition]) -> Large:
    """Return what changed in large collections: their parts are only at hand within the transaction."""
    found: dict[int, Mapping[str, FieldChange | None]] = {}
    for place, (_, _, old, _, new, _) in enumerate(transitions):
        if (old.held or new.held) and (fold.is_spread(old) or fold.is_spread(new)):
            found[place] = collection_changes(old, new)
    return found


def compare(transitions: Sequence[Transition], large: Large) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return what changed in the touched entities, and the conflicts that are new."""
    changes: list[Change] = []
    conflicts: list[str] = []
    for place, (ref, _, old, was, new, now) in enumerate(transitions):
        apart = large.get(place)
        if apart:
            names = (old.names | new.names).difference(apart)
            found = field_changes(snapshot.fields_of(old, was, names), snapshot.fields_of(new, now, names))
            told = [change for change in apart.values() if change is not None]
            fields = tuple(sorted((*found, *told), key=lambda change: change.field))
        else:
            fields = field_changes(snapshot.fields_of(old, was), snapshot.fields_of(new, now))
        was_deleted, is_deleted = old.exists and old.deleted, new.exists and new.deleted
        if fields or was_deleted != is_deleted:
            changes.append(Change(str(ref), was_deleted, is_deleted, fields))
        differing = snapshot.contested(new, now)
        arisen = differing - snapshot.contested(old, was, differing & old.names) if differing else differing
        conflicts += [f"{ref}#{name}" for name in sorted(arisen)]
    return tuple(changes), tuple(conflicts)


def fields_by_arrival(transitions: Sequence[Transition]) -> tuple[str, ...]:
    """Return the fields that a write speaks of and that are decided only by arrival after it."""
    found: list[str] = []
    for ref, stored, _, _, new, rules in transitions:
        decided = snapshot.decided_by_arrival(new, rules, {name for _, said in stored for name in said.stated})
        if decided:
            entity = str(ref)
            found += [f"{entity}#{name}" for name in sorted(decided)]
    return tuple(found)


News = Sequence[tuple[Ref, identifying_values.Values]]
"""Identifying values said of entities for the first time, as (rule, value)."""
Shared = Mapping[tuple[str, str, str], Sequence[Ref]]
"""The entities that have values which several have, by type, rule and value."""


def put_rows(
    write: Transaction,
    before: Reader,
    after: Reader,
    transitions: Iterable[Transition],
    schemas: Sequence[Schema],
    news: News | None = None,
) -> None:
    """Put the rows that follow from the states before and after some entries, as writes, imports and rebuilds do.

    Types with new schemas begin to wait (`refold.py`). Rows that follow from an entry by itself are put where it is
    appended (`entry_index.append`). `schemas` are those among the entries, and `news` is what `new_values` gives, where
    it is known.
    """
    if news is None:
        news = new_values(transitions)
    if news:
        identifying_values.note(write, news)
    if schemas:
        refold.note(write, before, after, {schema.type for schema in schemas})


def new_values(transitions: Iterable[Transition]) -> News:
    """Return the identifying values that a write is the first to say of entities; a relation has none."""
    found: list[tuple[Ref, list[tuple[str, str]]]] = []
    for ref, stored, old, _, _, rules in transitions:
        said: list[Observation] = []
        for _, observation in stored:
            if observation.op in STATING and not is_old(old, rules.identifying, observation.fields):
                said.append(observation)
        if said and relation.endpoints(ref) is None:
            values = rules.checker.shared_values(said[0].fields)
            if len(said) > 1:
                each = (rules.checker.shared_values(observation.fields) for observation in said)
                values = list(dict.fromkeys(value for several in each for value in several))
            if values:
                found.append((ref, values))
    return found


def is_old(state: MergeState, identifying: Iterable[str], fields: Mapping[str, Json]) -> bool:
    """Return whether one assertion that still counts said the same of every field that identifies, all of it text."""
    said: dict[str, str] = {}
    for name in identifying:
        value = fields.get(name)
        if type(value) is str:
            said[name] = value
        elif value is not None:
            return False
    for stratum in state.strata:
        for name, text in said.items():
            if stratum.values.get(name) != text:
                break
        else:
            return True
    return False


def write_hints(after: Reader, transitions: Iterable[Transition], news: News, shared: Shared) -> list[str]:
    """Return what the writer may want to know: values shared with entities not joined, words about deleted ones."""
    hints: list[str] = []
    for ref, values in news if shared else ():
        for rule, value in values:
            for other in shared.get((ref.type, rule, value), ()):
                if other != ref and other not in after.group(ref):
                    hints.append(f"{ref} and {other} share {rule} {value!r}; they stay apart unless you merge them.")
                    break
    for ref, stored, _, _, new, _ in transitions:
        if new.markers and new.deleted and any(one.observation.op in STATING for one in stored):
            hints.append(f"{ref} is deleted and stays so; restore it to see what was said.")
    return hints


def withdrawn_hints(now: Reader, known: Sequence[Observation]) -> list[str]:
    """Return a hint for each known observation that was withdrawn since: saying it again changes nothing."""
    hints: list[str] = []
    for observation in known:
        stored = now.stored(now.group(observation.entity))
        if observation.digest not in fold.live_digests({s.observation.digest: s.observation for s in stored}):
            hints.append(
                f"{observation.id} was said before and has been withdrawn; "
                "state another observed_at to state it again, or retract its retraction."
            )
    return hints

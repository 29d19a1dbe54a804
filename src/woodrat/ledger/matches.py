"""Matches: the known entities that a reference or a record can mean by the values that identify them.

Identifying values are noted when they are written, folded by `match-fold-1`, so a lookup costs what it finds. A value
counts while it is the entity's own at the moment read at, or its key. Nothing here joins anything: entities that share
a value stay apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused
from woodrat.ledger import identifying_values
from woodrat.ledger.moments import NO_READ, resolve_ref
from woodrat.state import relation
from woodrat.state.match import Match, fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from woodrat.ledger.read import Reader
    from woodrat.ledger.write import Draft
    from woodrat.state.record import Record

CANDIDATES_MAX: Final = 10
"""How many entities are named where there are several."""
NOBODY: Final = ""
"""A key that no entity has."""


def find_ref(reader: Reader, text: object, outcome: str = NO_READ) -> Ref:
    """Return the entity that a reader of state means: by reference, by id, or by a value that only it has."""
    ref = resolve_ref(reader, text, outcome)
    if reader.view.version(ref.digest, reader.asof.position) is not None:
        return ref
    rules = reader.rules(ref.type).schema.identity
    asked = fold(ref.key)
    found = having(reader, ref.type, [(rule.text, asked) for rule in rules])
    if len(found) > 1:
        raise Refused([_ambiguous(ref, found)], outcome)
    for entity, rule in found.items():
        reader.matched = Match(str(ref), str(entity), rule)
        return entity
    return ref


def having(reader: Reader, type: str, values: Sequence[tuple[str, str]]) -> dict[Ref, str]:
    """Return the entities of a type that have one of some folded values, each with the first rule of those it has.

    Of entities that are joined the first one stands for all. Deleted ones are not found.
    """
    shared = identifying_values.sharing(reader.view, [(Ref(type, NOBODY), values)])
    found: dict[Ref, str] = {}
    seen: set[Ref] = set()
    for rule, value in values:
        for entity in shared.get((type, rule, value), ()):
            if entity not in seen and _has(reader, entity, rule, value):
                seen.update(reader.group(entity))
                found[entity] = rule
    return found


def own_values(reader: Reader, entity: Ref) -> dict[str, str]:
    """Return the folded identifying values of an entity by rule, as it is believed now."""
    snapshot = reader.find(entity)
    fields = {} if snapshot is None else snapshot.fields
    return dict(reader.rules(entity.type).checker.shared_values(fields))


def _has(reader: Reader, entity: Ref, rule: str, value: str) -> bool:
    snapshot = reader.find(entity)
    if snapshot is None or snapshot.deleted:
        return False
    own = reader.rules(entity.type).checker.shared_values(snapshot.fields)
    return fold(entity.key) == value or (rule, value) in own


def _ambiguous(ref: Ref, found: dict[Ref, str]) -> Fault:
    rules = " or ".join(dict.fromkeys(found.values()))
    problem = f"{ref} is no key, and {len(found)} entities have that {rules}: {listed(found)}"
    return Fault("ref", problem, "Name one of them; `merge` says that two are the same.")


def listed(found: Iterable[Ref]) -> str:
    """Return references in a row, the first few of many."""
    refs = sorted(map(str, found))
    more = f" and {len(refs) - CANDIDATES_MAX} more" if len(refs) > CANDIDATES_MAX else ""
    return ", ".join(refs[:CANDIDATES_MAX]) + more


# Records


Planned = list[tuple["Record", Ref]]
"""Records, and the entities that they speak of."""


def match_records(draft: Draft, planned: Planned) -> tuple[Planned, dict[str, Match]]:
    """Attach records of unknown entities to the one entity that each can mean; return how, by where they stand.

    What comes earlier in the call is known to what comes later. The draft says what was found, and what was not.
    """
    matcher = _Matcher(draft)
    found: Planned = []
    matches: dict[str, Match] = {}
    for record, ref in planned:
        match = matcher.match(record, ref)
        if match is not None:
            matches[record.path] = match
            draft.matched.append(match)
            # It speaks with a voice of its own, which names the rule.
            record, ref = record._replace(spelled=None), matcher.target
        found.append((record, ref))
    return found, matches


class _Matcher:
    """Matches the records of one call, one after the other."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._reader = draft, draft.before
        self._said: dict[Ref, dict[str, str]] = {}
        """The folded identifying values that this call says, by entity and rule."""
        self.target = Ref("", NOBODY)
        """The entity of the record that was matched last."""

    def match(self, record: Record, ref: Ref) -> Match | None:
        """Return how a record is matched; none where it speaks of its own entity."""
        values = self._reader.rules(ref.type).checker.shared_values(record.fields)
        found = None
        self.target = ref
        if (
            record.key is None
            and values
            and ref not in self._said
            and self._reader.version(ref) < 0
            and relation.endpoints(ref) is None
        ):
            found = self._known(ref, values)
        self._said.setdefault(self.target, {}).update(values)
        return found

    def _known(self, ref: Ref, values: Sequence[tuple[str, str]]) -> Match | None:
        having_one = having(self._reader, ref.type, values)
        for other, said in self._said.items():
            rule = next((rule for rule, value in values if said.get(rule) == value), None)
            if other.type == ref.type and other not in having_one and rule is not None:
                having_one[other] = rule
        possible = {entity: rule for entity, rule in having_one.items() if not self._differs(entity, rule, values)}
        if len(possible) == 1:
            ((self.target, rule),) = possible.items()
            return Match(str(ref), str(self.target), rule)
        self._draft.hints.append(_not_matched(ref, possible or having_one, bool(possible), values))
        return None

    def _differs(self, entity: Ref, rule: str, values: Sequence[tuple[str, str]]) -> bool:
        """Return whether a rule above the one by which an entity was found says that it is another."""
        own = {**own_values(self._reader, entity), **self._said.get(entity, {})}
        for stronger, value in values:
            if stronger == rule:
                return False
            if own.get(stronger, value) != value:
                return True
        return False


def _not_matched(ref: Ref, found: dict[Ref, str], possible: bool, values: Sequence[tuple[str, str]]) -> str:
    """Return what to say of a record that was not matched: what was found, and the call that merges."""
    if not found:
        return f"{ref} is new: no known {ref.type} has its {' or '.join(rule for rule, _ in values)}."
    shared = " or ".join(dict.fromkeys(found.values()))
    other = min(map(str, found))
    differ = "" if possible else ", and differ in what identifies it first"
    return (
        f"{ref} is new: {listed(found)} share its {shared}{differ}. "
        f'If it is one of them, merge(one="{other}", other="{ref}") says so.'
    )

"""Matches: the known entities that a reference or a record can mean by the values that identify them.

Identifying values are noted when they are written, folded by `match-fold-1`, so a lookup costs what it finds. A value
counts while it is the entity's own at the moment read at, or its key. Nothing here joins anything: entities that share
a value stay apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import ids
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import identifying_values, refold
from woodrat.ledger.identifying_values import NOBODY
from woodrat.ledger.moments import NO_READ, resolve_ref
from woodrat.ledger.read import Reader
from woodrat.state import relation
from woodrat.state.asof import AsOf
from woodrat.state.match import Match, fold
from woodrat.state.note import NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.ledger.identifying_values import Values
    from woodrat.ledger.write import Draft
    from woodrat.state.record import Record

CANDIDATES_MAX: Final = 10
"""How many entities are named where there are several."""
KEY: Final = "key"
"""What stands for the rule where a name is the key of an entity."""


def find_ref(reader: Reader, text: object, outcome: str = NO_READ, path: str = "ref") -> Ref:
    """Return the entity that a reader of state means: by reference, by id, or by a value that only it has.

    A value may stand in the place of the key, or alone, without a type. The reader notes how it was found. A reference
    that means nothing known is returned as it is; a name alone is refused then.
    """
    name = text if isinstance(text, str) and is_name(text) else None
    if name is not None:
        found = named(reader, name)
        if not found:
            raise Refused([_nobody(name, path)], outcome)
    else:
        ref = resolve_ref(reader, text, outcome)
        if reader.view.version(ref.digest, reader.asof.position) is not None:
            return ref
        rules = reader.rules(ref.type).schema.identity
        asked = fold(ref.key)
        found = having(reader, ref.type, [(rule.text, asked) for rule in rules])
        if not found:
            return ref
        name = str(ref)
    if len(found) > 1:
        raise Refused([_ambiguous(name, found, path)], outcome)
    ((entity, rule),) = found.items()
    reader.matches[name] = Match(name, str(entity), rule)
    return entity


def is_name(text: str) -> bool:
    """Return whether text that names an entity has no type: it is neither a reference nor an id."""
    if "/" in text or ids.is_id("entity", text) or not text.strip():
        return False
    return not ids.text_faults(text, "", ids.KEY_BYTES_MAX, "key")


def ref_faults(ref: object, path: str = "ref") -> list[Fault]:
    """Return what is wrong with what names an entity on a read: a reference, an id, or a value that identifies it."""
    if isinstance(ref, Ref) or (isinstance(ref, str) and (ids.is_id("entity", ref) or is_name(ref))):
        return []
    try:
        ids.parse_ref(ref, path)
    except Refused as refusal:
        return list(refusal.faults)
    return []


def named(reader: Reader, name: str) -> dict[Ref, str]:
    """Return the entities of any type that have a value by which they are identified, or as their key, and the rule.

    It costs a look for each identity rule of each type. Relations and notes are not meant.
    """
    from woodrat.ledger.find import types_in_order

    asked = fold(name)
    found: dict[Ref, str] = {}
    for type in types_in_order(reader, None):
        if type == NOTE:
            continue
        exact = Ref(type, name)
        if reader.view.version(exact.digest, reader.asof.position) is not None and reader.exists(exact):
            found[exact] = KEY
            continue
        of_type = having(reader, type, [(rule.text, asked) for rule in reader.rules(type).schema.identity])
        found |= {ref: rule for ref, rule in of_type.items() if relation.endpoints(ref) is None}
    return found


def having(reader: Reader, type: str, values: Sequence[tuple[str, str]]) -> dict[Ref, str]:
    """Return the entities of a type that have one of some folded values, each with the first rule of those it has.

    Of entities that are joined the first one stands for all. Deleted ones are not found.
    """
    shared = _sharing(reader, type, values)
    found: dict[Ref, str] = {}
    seen: set[Ref] = set()
    for rule, value in values:
        for entity in shared.get((rule, value), ()):
            if entity not in seen and _has(reader, entity, rule, value):
                seen.update(reader.group(entity))
                found[entity] = rule
    return found


def _sharing(reader: Reader, type: str, values: Values) -> Mapping[tuple[str, str], Sequence[Ref]]:
    """Return the entities of a type that were ever said to have identifying values, by rule and value, by key.

    While the values of the type wait for the job after a new schema, it costs all that was said of the type.
    """
    if type in refold.types_without_values(reader.view):
        from woodrat.ledger.find import entity_pages

        found: dict[tuple[str, str], list[Ref]] = {}
        head = AsOf(reader.view.head().position)
        for refs in entity_pages(reader.view, type, head.position):
            now = Reader(reader.view, head, reader.policies)  # one remembers whatever it reads
            for ref in refs:
                for pair in set(values).intersection(identifying_values.said_values(now, ref)):
                    found.setdefault(pair, []).append(ref)
        return found
    rows = identifying_values.sharing(reader.view, [(Ref(type, NOBODY), values)])
    return {(rule, value): refs for (_, rule, value), refs in rows.items()}


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


def _ambiguous(name: str, found: dict[Ref, str], path: str) -> Fault:
    rules = " or ".join(dict.fromkeys(found.values()))
    problem = f"{_quoted(name)} may mean any of {len(found)} entities with that {rules}: {listed(found)}"
    return Fault(path, problem, "Name one of them; `merge` says that two are the same.")


def _quoted(name: str) -> str:
    return shown(name).removesuffix(" (text)")


def _nobody(name: str, path: str) -> Fault:
    problem = f"nothing here is called {_quoted(name)}"
    return Fault(path, problem, "Write the type, a slash and the key, such as contact/ada, or search for it.")


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

    What comes earlier in the call is known to what comes later. The draft says what was found, and what was not. An
    identifying value that differs from the known one only as `match-fold-1` folds it served to find the entity: it is
    left out, and changes no value.
    """
    refold.finish_values(draft.view, draft.before.policies, {ref.type for _, ref in planned})
    matcher = _Matcher(draft)
    found: Planned = []
    matches: dict[str, Match] = {}
    for record, ref in planned:
        match = matcher.match(record, ref)
        if match is not None:
            matches[record.path] = match
            draft.matched.append(match)
            # It speaks with a voice of its own, which names the rule.
            record, ref = record._replace(fields=matcher.news(record.fields), spelled=None), matcher.target
        matcher.note(ref, record.fields)
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
        self._stated: dict[Ref, dict[str, Json]] = {}
        """The values that this call states, by entity and field."""

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

    def news(self, fields: dict[str, Json]) -> dict[str, Json]:
        """Return what the record that was matched last says beyond loose spellings of known identifying values."""
        snapshot = self._reader.find(self.target)
        known = {**({} if snapshot is None else snapshot.fields), **self._stated.get(self.target, {})}
        rules = self._reader.rules(self.target.type).schema.identity
        identifying = {part.field for rule in rules for part in rule.parts}
        return {
            name: value
            for name, value in fields.items()
            if name not in identifying or not _is_loose(value, known.get(name))
        }

    def note(self, ref: Ref, fields: dict[str, Json]) -> None:
        """Take what a record states for known to those that follow."""
        self._stated.setdefault(ref, {}).update(fields)

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
        if having_one:
            self._draft.hints.append(_not_matched(ref, possible or having_one, bool(possible)))
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


def _is_loose(value: Json, known: Json) -> bool:
    """Return whether a value is a known one, spelled otherwise."""
    return isinstance(value, str) and isinstance(known, str) and value != known and fold(value) == fold(known)


def _not_matched(ref: Ref, found: dict[Ref, str], possible: bool) -> str:
    """Return what to say of a record that was not matched: what was found, and the call that merges."""
    shared = " or ".join(dict.fromkeys(found.values()))
    other = min(map(str, found))
    differ = "" if possible else ", and differ in what identifies it first"
    return (
        f"{ref} is new: {listed(found)} share its {shared}{differ}. "
        f'If it is one of them, merge(one="{other}", other="{ref}") says so.'
    )

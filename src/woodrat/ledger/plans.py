"""Stating: the plans of the verbs that speak of entities. Each fills a draft, or refuses with every fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from woodrat.canon import form, ids, moment
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Outdated, Refused, pointer_part, shown
from woodrat.ledger import entry_index
from woodrat.ledger.arguments import KNOWN, NEW, About, Expected
from woodrat.ledger.excerpts import source_content
from woodrat.ledger.matches import match_records
from woodrat.ledger.precheck import is_plain
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Draft
from woodrat.merge import claim_of, fold
from woodrat.merge.additive import Terms
from woodrat.merge.rules import Rules
from woodrat.state import identity, locator, relation
from woodrat.state.asof import Stored
from woodrat.state.builtin import FROZEN_TYPES
from woodrat.state.match import FOLD, Match
from woodrat.state.meaning import Meaning
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RESTORE, RETRACT, Observation, Voice, say
from woodrat.state.record import Record
from woodrat.state.relation import GROUP_MEMBERS_MAX, SAME_AS
from woodrat.state.schema import Schema
from woodrat.state.validator import RECORD_FAULTS_MAX

AHEAD_MICROS = 5 * 60 * 1_000_000
"""How far ahead of the log's time an `observed_at` may lie."""

_NONE: frozenset[bytes] = frozenset()
_USE_MERGE = "Use merge, which checks what it merges."


def store(
    draft: Draft,
    records: Sequence[Record],
    about: About,
    faults: list[Fault],
    *,
    strict: bool,
    entities: Iterable[Ref | None],
    match: bool = False,
    matched: Mapping[str, Match] = {},
) -> None:
    """Plan the assertions of records, and the relations they state; `faults` are those already found in the call.

    `entities` are those that the records speak of, each where it was known before their turn, by the rules in force.
    With `match`, a record of an unknown entity is attached to the one known entity that it can mean; `matched` says how
    that was found before, by where records stand.
    """
    saw = _seen(draft, about, faults)
    source = resolve_source(draft, about.source, "source", faults)
    faults += _ahead(draft, about.observed_at, "observed_at")
    planned: list[tuple[Record, Ref]] = []
    checks: dict[str, Check] = {}
    for record, ref in zip(records, entities, strict=True):
        if ref is None and record.spelled is not None:
            check = checks.get(record.type)
            if check is None:
                check = checks[record.type] = _check(draft.rules(record.type), strict)
            ref = check(record.fields)
        if ref is None:
            record, ref = _checked(draft, record, faults, strict=strict)
        if ref is not None:
            planned.append((record, ref))
    if match:
        planned, matched = match_records(draft, planned)
    related = [record for record, _ in planned if record.relate]
    here = {ref for _, ref in planned} if related else set()
    for record in related:
        for link in record.relate:
            if link.type == SAME_AS:
                faults.append(Fault(f"{link.path}/type", "same_as is not stated in a record", _USE_MERGE))
            elif link.to not in here and not draft.before.exists(link.to):
                problem = f"{link.to} is not known, nor stated in this call"
                faults.append(Fault(f"{link.path}/to", problem, "Store it first, or in the same call."))
            faults += _relation_faults(draft, link.type, link.fields, f"{link.path}/fields")
    faults += _required_faults(draft, planned)
    if faults:
        raise Refused(faults)
    voices = _Voices(draft, about, saw, source, matched)
    fits: dict[str, bytes] = {}
    plain: Voice | None = None  # the voice of records that say nothing of themselves
    say = draft.say
    for record, ref in planned:
        type, spelled = record.type, record.spelled
        if type not in fits:
            fits[type] = draft.use(type).digest
        try:
            if plain is None or spelled is None:
                voice = voices.of_all() if spelled is not None and not matched else voices.of(record, faults)
                if spelled is not None:
                    plain = voice
            else:
                voice = plain
            if record.fields or record.remove:
                say(voice.assertion(ref, record.fields, record.remove, spelled, fits[type]))
            else:  # it was matched, and says nothing that is not known
                _say_again(draft, ref, matched[record.path])
            if spelled is None:
                for link in record.relate:
                    relate(draft, ref, link.type, link.to, link.key, link.fields, voices.parts(voice))
        except Refused as refusal:
            faults.extend(fault.under(record.path) for fault in refusal.faults)
    if faults:
        raise Refused(faults)


def _say_again(draft: Draft, ref: Ref, match: Match) -> None:
    """Plan nothing but what was last said of the values that a record was matched by: the report has it as known."""
    rules = draft.before.rules(ref.type).schema.identity
    names = {part.field for rule in rules if rule.text == match.rule for part in rule.parts}
    said = [stored.observation for stored in draft.before.stored((ref,)) if names & stored.observation.fields.keys()]
    if said:
        draft.say(said[-1])


Check = Callable[[Mapping[str, Json]], Ref | None]
"""Returns the entity that the fields of a plain record speak of, if they are sound."""


def _check(rules: Rules, strict: bool) -> Check:
    """Return what tells plain records of a type that are sound; of all others `_checked` knows what is wrong."""
    return rules.checker.entity if is_plain(rules, strict) else lambda fields: None


def _checked(draft: Draft, record: Record, faults: list[Fault], *, strict: bool) -> tuple[Record, Ref | None]:
    """Return a record as it is stored and the entity it speaks of, having added to `faults` all that is wrong with it.

    A single value for a collection is stored as its one element.
    """
    rules = draft.rules(record.type)
    schema = rules.schema
    fields = rules.with_elements(record.fields)
    if fields is not record.fields:
        record = record._replace(fields=dict(fields), spelled=None)
    if record.remove:
        record = record._replace(remove=rules.with_removals(record.remove), spelled=None)
    if record.type == SAME_AS:
        faults.append(Fault(f"{record.path}/entity_type", "same_as is not stored as a record", _USE_MERGE))
        return record, None
    if strict and schema.is_open:
        problem = f"no schema for {record.type}, and this ledger takes only types that have one"
        faults.append(Fault(f"{record.path}/entity_type", problem, "Register a schema for it first."))
    # Two bytes more for each value that became an element.
    if not rules.take(record.fields) or rules.format_faults(fields, ""):
        faults += _value_faults(rules, record.fields, record.path)
    if record.remove:
        faults += _remove_faults(rules, record.remove, f"{record.path}/$/remove")
    if record.observed_at is not None:
        faults += _ahead(draft, record.observed_at, f"{record.path}/$/observed_at")
    key = identity.quick_key(schema, record.fields) if record.key is None else None
    if key is None:
        try:
            key, _ = identity.identify(schema, record.fields, record.key, record.path)
        except Refused as refusal:
            faults += refusal.faults
            return record, None
    ref = Ref(record.type, key)
    if not record.fields and not record.remove:
        faults.append(Fault(record.path, f"states nothing about {ref}", "State at least one field."))
    return record, ref


def _required_faults(draft: Draft, planned: Sequence[tuple[Record, Ref]]) -> list[Fault]:
    """Return the required fields that entities would lack after the write; values already known count."""
    required: dict[str, frozenset[str]] = {}
    for _, ref in planned:
        if ref.type not in required:
            required[ref.type] = draft.rules(ref.type).required_names
    if not any(required.values()):
        return []
    lacking = [(record, ref) for record, ref in planned if not record.fields.keys() >= required[ref.type]]
    if not lacking:
        return []
    stated: dict[Ref, set[str]] = {}
    for record, ref in planned:
        stated.setdefault(ref, set()).update(record.fields)
    found: list[Fault] = []
    for record, ref in lacking:
        schema = draft.schema(ref.type)
        if ref in stated:
            known = _known_fields(draft, ref)
            if known is not None:
                fields = dict.fromkeys([*known, *stated.pop(ref)])
                found += schema.required_faults(fields, record.path)
    return found


def _known_fields(draft: Draft, ref: Ref) -> set[str] | None:
    """Return the fields of which an entity has a value; `None` when it is deleted and shows none."""
    state = draft.before.state(ref)
    return None if state.exists and state.deleted else fold.valued(state)


class _Voices:
    """How the records of one call speak; those that say the same of themselves speak with one voice."""

    def __init__(
        self,
        draft: Draft,
        about: About,
        saw: frozenset[bytes],
        source: str | None,
        matched: Mapping[str, Match],
    ) -> None:
        self._draft, self._about, self._saw, self._source, self._matched = draft, about, saw, source, matched
        self._known: dict[tuple[Any, ...], Voice] = {}
        self._contents: dict[str, locator.Content] = {}

    def of_all(self) -> Voice:
        """Return the voice of records that say nothing of themselves, and were not matched."""
        about = self._about
        optional = {**_optional(about), "source": self._source, "reason": about.reason}
        return self._voice(about.observed_at, about.valid_from, about.priority, optional)

    def of(self, record: Record, faults: list[Fault]) -> Voice:
        """Return the voice of a record; what it says of itself comes before what the call says."""
        draft, about = self._draft, self._about
        match = self._matched.get(record.path) if self._matched else None
        key = (match and match.rule, *record[7:14])  # from `observed_at` to `locator`
        found = self._known.get(key)
        if found is None:
            stated = resolve_source(draft, record.source, f"{record.path}/$/source", faults)
            optional = {
                **_optional(about),
                "source": stated or self._source,
                "confidence": record.confidence,
                "reason": record.reason or about.reason,
                "match": None if match is None else {"fold": FOLD, "rule": match.rule},
            }
            if record.locator is not None:
                optional["locator"] = self._locate(record, stated or self._source, faults)
            seen = record.observed_at or about.observed_at
            priority = about.priority if record.priority is None else record.priority
            found = self._known[key] = self._voice(seen, record.valid_from or about.valid_from, priority, optional)
        return found

    def _voice(self, seen: str | None, valid_from: str | None, priority: int, optional: Mapping[str, Json]) -> Voice:
        draft = self._draft
        observed_at = draft.recorded_at if seen is None else seen
        return Voice(draft.agent, observed_at, valid_from, priority, self._saw, optional, seen is None)

    def _locate(self, record: Record, source: str | None, faults: list[Fault]) -> Json:
        """Return where a record was read; add to `faults` what its source does not have there."""
        assert record.locator is not None
        where: Any = form.decode(record.locator)
        path = f"{record.path}/$/locator"
        if source is None:
            # Where the source itself was named and is not here, that is said already.
            if record.source is None and self._about.source is None:
                problem = "a locator needs a source, and none is named"
                faults.append(Fault(path, problem, "Name the source in $.source, or store within an interpretation."))
            return None
        content = self._contents.get(source)
        if content is None:
            body = source_content(self._draft.view, source, self._draft.before.asof.position)
            content = self._contents[source] = locator.Content(b"\0" if body is None else body)
        faults += locator.mismatches(where, content, path)
        return where  # type: ignore[no-any-return]

    @staticmethod
    def parts(voice: Voice) -> dict[str, Any]:
        """Return what a relation stated in a record says of itself."""
        return {
            "agent": voice.agent,
            "observed_at": voice.observed_at,
            "assigned": voice.assigned,
            "valid_from": voice.valid_from,
            "priority": voice.priority,
            "saw": voice.saw,
            **{name: value for name, value in voice.optional.items() if name != "match"},
        }


def correct(
    draft: Draft,
    ref: Ref,
    fields: Mapping[str, Json],
    remove: Mapping[str, Sequence[Json]],
    replaces: Sequence[str] | None,
    about: About,
) -> None:
    """Plan the correction of fields of an entity: one observation for each `valid_from` it corrects."""
    draft.before.check_exists(ref)
    rules = draft.before.rules(ref.type)
    fields, remove = rules.with_elements(fields), rules.with_removals(remove)
    state = draft.before.state(ref)
    faults = _frozen(ref, "corrected") + _ahead(draft, about.observed_at, "observed_at")
    if not fields and not remove:
        faults.append(Fault("fields", "nothing to correct", "Name at least one field and its value."))
    faults += _value_faults(rules, fields, "/fields") + _remove_faults(rules, remove, "/remove")
    stated = resolve_observations(draft, replaces or (), "replaces", faults)
    source = resolve_source(draft, about.source, "source", faults)
    saw = _seen(draft, about, faults)
    removed = _without_others(state, rules, fields, remove)
    terms = sorted(name for name in fields if isinstance(rules.policy(name), Terms))
    others = sorted((set(fields) | set(removed)) - set(terms))
    # Naming the original of a sum says nothing about what stands on the other fields.
    named = {o.digest for o in stated if o.op == CORRECT or not terms}
    if not named:
        named = set(fold.standing_corrections(state, others, rules))
    for name in terms:
        named |= _stand_in(draft, state, rules, name, stated, faults)
    if faults:
        raise Refused(faults)
    observed_at = about.observed_at or draft.recorded_at
    by_valid_from: dict[str, list[str]] = {}
    for name in (*others, *terms):
        begins = about.valid_from or _valid_from(draft, state, rules, name, stated) or observed_at
        by_valid_from.setdefault(begins, []).append(name)
    for valid_from, names in sorted(by_valid_from.items()):
        draft.say(
            say(
                ref,
                CORRECT,
                agent=draft.agent,
                observed_at=observed_at,
                assigned=about.observed_at is None,
                valid_from=valid_from,
                fields={name: fields[name] for name in names if name in fields},
                remove={name: removed[name] for name in names if name in removed},
                priority=about.priority,
                replaces=named,
                saw=saw,
                source=source,
                reason=about.reason,
                **_optional(about),
            )
        )


def retract(draft: Draft, observations: Sequence[str], about: About) -> None:
    """Plan the withdrawal of observations: one retraction for each entity they speak of."""
    faults: list[Fault] = []
    if not observations:
        faults.append(Fault("observations", "the list is empty", "Name at least one observation."))
    targets = resolve_observations(draft, observations, "observations", faults)
    for ref in dict.fromkeys(target.entity for target in targets):
        faults += _frozen(ref, "retracted")
    faults += _ahead(draft, about.observed_at, "observed_at")
    if faults:
        raise Refused(faults)
    by_entity: dict[Ref, list[bytes]] = {}
    for target in targets:
        by_entity.setdefault(target.entity, []).append(target.digest)
    for ref, digests in by_entity.items():
        draft.say(_plain(draft, ref, RETRACT, digests, about))


def mark(draft: Draft, ref: Ref, op: str, about: About) -> None:
    """Plan a delete or a restore; one that changes nothing is only hinted at."""
    faults = _frozen(ref, "deleted" if op == DELETE else "restored") + _ahead(draft, about.observed_at, "observed_at")
    if faults:
        raise Refused(faults)
    draft.before.check_exists(ref)
    state = draft.before.state(ref)
    if fold.is_deleted(state, ref) == (op == DELETE):
        draft.hints.append(f"{ref} {'is already' if op == DELETE else 'is not'} deleted; nothing was written.")
        return
    draft.say(_plain(draft, ref, op, fold.standing_markers(state, ref), about))


def connect(
    draft: Draft, start: Ref, type: str, end: Ref, key: str | None, fields: Mapping[str, Json], about: About
) -> None:
    """Plan a relation between two known entities."""
    faults = _relation_faults(draft, type, fields, "/fields") + _ahead(draft, about.observed_at, "observed_at")
    if faults:
        raise Refused(faults)
    for ref in (start, end):
        draft.before.check_exists(ref)
    relate(draft, start, type, end, key, fields, relation_parts(draft, about))


def relate(
    draft: Draft,
    start: Ref,
    type: str,
    end: Ref,
    key: str | None,
    fields: Mapping[str, Json],
    parts: Mapping[str, Any],
) -> None:
    """Plan the assertion of the entity that stands for a relation, after a restore where it was deleted."""
    ref = relation.relation(start, type, end, key)
    state = draft.before.state(ref)
    if fold.is_deleted(state, ref):
        markers = fold.standing_markers(state, ref)
        plain = {name: parts[name] for name in ("agent", "observed_at", "assigned", "valid_from") if name in parts}
        draft.say(say(ref, RESTORE, replaces=markers, **plain))
    draft.use(type)
    ends = relation.endpoints(ref)
    assert ends is not None, "a relation's key names its ends"
    stated = draft.rules(type).with_elements(fields)
    draft.say(say(ref, ASSERT, fields={**stated, "from": str(ends[0]), "to": str(ends[1])}, **parts))


def join(draft: Draft, start: Ref, end: Ref, about: About) -> None:
    """Plan that two entities are one."""
    faults = relation.same_as_faults(start, end) + _ahead(draft, about.observed_at, "observed_at")
    if faults:
        raise Refused(faults)
    for ref in (start, end):
        draft.before.check_exists(ref)
    size = len({*draft.before.group(start), *draft.before.group(end)})
    if size > GROUP_MEMBERS_MAX:
        problem = f"the group would have {size} members"
        remedy = f"Merge at most {GROUP_MEMBERS_MAX}; check that they really are the same."
        raise Refused([Fault("same_as", problem, remedy)])
    relate(draft, start, SAME_AS, end, None, {}, relation_parts(draft, about))


def split(draft: Draft, ref: Ref, other: Ref | None, about: About) -> None:
    """Plan that an entity stands alone again, or apart from one other; hint when a path remains."""
    faults = _ahead(draft, about.observed_at, "observed_at")
    if faults:
        raise Refused(faults)
    draft.before.check_exists(ref)
    edges = [
        edge
        for edge in entry_index.relations(draft.view, ref.digest, SAME_AS, draft.before.asof.position)
        if (ends := relation.joined(edge)) is not None
        and (other is None or other in ends)
        and draft.before.exists(edge)
        and not draft.before.state(edge).deleted
    ]
    if not edges:
        apart = f"{ref} is not merged with anything" if other is None else f"{ref} is not merged with {other} directly"
        raise NotFound(f"{apart}. Nothing was written. `related` shows what it is merged with.", {"entity": str(ref)})
    gone = set(edges)
    for edge in edges:
        state = draft.before.state(edge)
        draft.say(_plain(draft, edge, DELETE, fold.standing_markers(state, edge), about))
    if other is not None and other in relation.group(ref, lambda r: _joined_without(draft.before, r, gone)):
        draft.hints.append(f"{ref} and {other} are still merged through other entities; split those too.")


def _joined_without(reader: Reader, ref: Ref, gone: set[Ref]) -> list[Ref]:
    found: list[Ref] = []
    for edge in entry_index.relations(reader.view, ref.digest, SAME_AS, reader.asof.position):
        ends = relation.joined(edge)
        if edge not in gone and ends is not None and reader.exists(edge) and not reader.state(edge).deleted:
            found.extend(end for end in ends if end != ref)
    return found


def check_versions(draft: Draft, conditions: Expected | Mapping[Ref, Expected | None]) -> None:
    """Raise `Outdated` unless every entity was last touched where the caller read it; `None` means not at all."""
    if not isinstance(conditions, Mapping):
        entities = list(dict.fromkeys(o.entity for o in draft.said if relation.endpoints(o.entity) is None))
        if not isinstance(conditions, str) and len(entities) != 1:
            problem = f"one version for {len(entities)} entities"
            raise Refused([Fault("if_version", problem, "Send a version for each, by reference.")])
        conditions = dict.fromkeys(entities, conditions)
    for ref, expected in conditions.items():
        actual = draft.before.version(ref)
        if not _as_expected(expected, actual):
            now = "not known" if actual < 0 else f"at version {actual}"
            raise Outdated(
                f"{ref}: expected it {_told(expected)}, it is {now}. Nothing was written. Read it again, then decide.",
                {
                    "entity": str(ref),
                    "expected": list(expected) if isinstance(expected, tuple) else expected,
                    "actual": None if actual < 0 else actual,
                },
            )


def _as_expected(expected: Expected | None, actual: int) -> bool:
    if expected is None or expected == NEW:
        return actual < 0
    if expected == KNOWN:
        return actual >= 0
    return actual in expected if isinstance(expected, tuple) else actual == expected


def _told(expected: Expected | None) -> str:
    if expected is None or expected == NEW:
        return "not known yet"
    if expected == KNOWN:
        return "known already"
    several = expected if isinstance(expected, tuple) else (expected,)
    return f"at version {' or '.join(map(str, several))}"


def relation_parts(draft: Draft, about: About) -> dict[str, Any]:
    """Return what an assertion of a relation says about itself."""
    return {
        "agent": draft.agent,
        "observed_at": about.observed_at or draft.recorded_at,
        "assigned": about.observed_at is None,
        "valid_from": about.valid_from,
        "priority": about.priority,
        "reason": about.reason,
        **_optional(about),
    }


def _seen(draft: Draft, about: About, faults: list[Fault]) -> frozenset[bytes]:
    """Return the observations the writer says to have read before."""
    return frozenset(o.digest for o in resolve_observations(draft, about.saw, "saw", faults)) if about.saw else _NONE


def resolve_source(draft: Draft, text: str | None, path: str, faults: list[Fault]) -> str | None:
    """Return the full name of a stored source given by id or name."""
    if text is None:
        return None
    digest = ids.digest_of("source", text)
    if digest is None and ids.is_id("source", text):
        digest = entry_index.source_by_id(draft.view, text)
    if digest is not None and entry_index.source_position(draft.view, digest) is not None:
        return ids.name("source", digest)
    faults.append(Fault(path, f"no source {shown(text)} here", "Add it first; `sources list` lists them."))
    return None


def _plain(draft: Draft, ref: Ref, op: str, names: Iterable[bytes], about: About) -> Observation:
    return say(
        ref,
        op,
        agent=draft.agent,
        observed_at=about.observed_at or draft.recorded_at,
        assigned=about.observed_at is None,
        valid_from=about.valid_from,
        replaces=names,
        reason=about.reason,
        **_optional(about),
    )


def _optional(about: About) -> dict[str, Any]:
    return {"run": about.run, "step": about.step, "interpretation": about.interpretation}


def _frozen(ref: Ref, what: str) -> list[Fault]:
    if ref.type not in FROZEN_TYPES:
        return []
    problem = f"{ref}: an {ref.type} is never {what}"
    return [Fault("entity", problem, "Store a further record that says what was wrong.")]


def _ahead(draft: Draft, observed_at: str | None, path: str) -> list[Fault]:
    if observed_at is None or observed_at <= draft.recorded_at:
        return []
    if moment.to_micros(observed_at) - moment.to_micros(draft.recorded_at) <= AHEAD_MICROS:
        return []
    problem = f"{observed_at} is more than five minutes ahead of the log, which is at {draft.recorded_at}"
    return [Fault(path, problem, "Set the clock, or state when it was really observed; valid_from may be later.")]


def resolve_observations(draft: Draft, texts: Iterable[str], path: str, faults: list[Fault]) -> list[Observation]:
    """Return the observations given by id or full name; an unknown one is not found."""
    found: list[Observation] = []
    for index, text in enumerate(texts):
        stored = find_observation(draft.before, text)
        if stored is None and not _looks_like_observation(text):
            remedy = "Send obs_ and its 26 letters and digits, as a report or `observations` has them."
            faults.append(Fault(f"{path}/{index}", f"{shown(text)} is not an observation's id", remedy))
        elif stored is None:
            raise NotFound(
                f"{path}: there is no observation {text} here. Nothing was written. `observations list` lists them.",
                {"observation": text},
            )
        else:
            found.append(stored.observation)
    return found


def find_observation(reader: Reader, text: object) -> Stored | None:
    """Return the observation an id or full name means at the reader's as-of."""
    if not isinstance(text, str):
        return None
    digest = ids.digest_of("observation", text)
    if digest is not None:
        return reader.view.observation(digest, reader.asof.position)
    stored = reader.view.observation(text) if ids.is_id("observation", text) else None
    return stored if stored is not None and stored.position <= reader.asof.position else None


def _looks_like_observation(text: object) -> bool:
    return isinstance(text, str) and (ids.is_id("observation", text) or ids.digest_of("observation", text) is not None)


def _value_faults(rules: Rules, fields: Mapping[str, Json], path: str) -> list[Fault]:
    """Return what is wrong with values, by the schema as a whole and by each field's policy."""
    found = rules.schema.record_faults(fields, path)
    told = {fault.path for fault in found}
    for name, value in fields.items():
        for where, problem in islice(rules.policy(name).problems(value), RECORD_FAULTS_MAX):
            here = f"{path}/{pointer_part(name)}{where}"
            if here not in told:
                remedy = f'Send that, or change the field\'s policy in a new version of schema "{rules.schema.type}".'
                found.append(Fault(here, f"{rules.schema.type}.{name}: {problem}", remedy))
                told.add(here)
    return found + [fault for fault in rules.format_faults(fields, path) if fault.path not in told]


def _remove_faults(rules: Rules, remove: Mapping[str, Sequence[Json]], path: str) -> list[Fault]:
    """Return the fields elements cannot be taken out of, or not these."""
    found = []
    for name, elements in remove.items():
        policy = rules.policy(name)
        problem = policy.refuses_removal(elements)
        if problem is not None:
            remedy = "Send their texts." if policy.removes else "Send the whole value, or a correction."
            found.append(Fault(f"{path}/{pointer_part(name)}", f"{rules.schema.type}.{name}: {problem}", remedy))
    return found


def _relation_faults(draft: Draft, type: str, fields: Mapping[str, Json], path: str) -> list[Fault]:
    """Return what is wrong with what is said about a relation."""
    rules = draft.rules(type)
    found = _value_faults(rules, rules.with_elements(fields), path)
    for name in ("from", "to"):
        if name in fields:
            problem = f"{name} is set by the relation itself"
            found.append(Fault(f"{path}/{name}", problem, "Leave it out, or choose another name."))
    return found


def _without_others(
    state: fold.MergeState, rules: Rules, fields: Mapping[str, Json], remove: Mapping[str, Sequence[Json]]
) -> dict[str, list[Json]]:
    """Return what a correction takes out: what it says, and of a collection the other elements it saw."""
    found = {name: list(elements) for name, elements in remove.items()}
    for name, value in fields.items():
        field = state.field(name)
        policy = rules.policy(name)
        if policy.removes and field is not None and field.held is not None and policy.refuses(value) is None:
            taken = {form.serialise(element) for element in found.get(name, [])}
            others = policy.others(field.held, value)
            found[name] = [*found.get(name, []), *(e for e in others if form.serialise(e) not in taken)]
    return {name: elements for name, elements in found.items() if elements}


def _stand_in(
    draft: Draft, state: fold.MergeState, rules: Rules, name: str, stated: Sequence[Observation], faults: list[Fault]
) -> set[bytes]:
    """Return what a correction under sum or append names: one original, and the corrections that stand for it."""
    policy = rules.policy(name)
    assert isinstance(policy, Terms)
    named = [observation for observation in stated if name in observation.stated]
    for correction in [observation for observation in named if observation.op == CORRECT]:
        found = (draft.view.observation(d, draft.before.asof.position) for d in correction.replaces)
        named += [stored.observation for stored in found if stored and name in stored.observation.stated]
    originals = {o.digest: o for o in named if o.op == ASSERT and o.entity in state.members}
    if len(originals) != 1:
        problem = f"{name}: under {policy.name} a correction replaces one observation, and {len(originals)} are named"
        faults.append(Fault("replaces", problem, "Name in replaces the one observation whose value was wrong."))
        return set()
    ((digest, original),) = originals.items()
    field = state.field(name)
    claim = claim_of(original, name)
    term = policy.term(field.held, claim) if field is not None and field.held is not None else None
    return {digest, *(claim.digest for claim in (term.standing if term is not None else ()))}


def _valid_from(
    draft: Draft, state: fold.MergeState, rules: Rules, name: str, stated: Sequence[Observation]
) -> str | None:
    """Return since when the claim that is being corrected holds."""
    if isinstance(rules.policy(name), Terms):
        return min((o.valid_from for o in stated if name in o.stated), default=None)
    field = state.field(name)
    if field is None or field.held is None:
        return None
    said = rules.policy(name).show(field.held).said
    stored = draft.view.observation(said.digest, draft.before.asof.position)
    return stored.observation.valid_from if stored is not None else None


def admit(draft: Draft, meanings: Sequence[Meaning]) -> None:
    """Plan what another log said: no surface check applies, and what is known is not said twice."""
    for meaning in meanings:
        if isinstance(meaning, Observation):
            draft.say(meaning)
        elif isinstance(meaning, Schema):
            known = entry_index.schemas(draft.view, meaning.type, draft.before.asof.position)
            planned = (item.meaning for item in draft.items)
            if meaning not in known and meaning not in planned:
                draft.add("schema", meaning.body, meaning)

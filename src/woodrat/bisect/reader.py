"""The question reader: from a caller's question about state to a predicate, and its answer at a position.

One language for `bisect` and `reduce`: values as in a query, conditions as in rules, or a decision made again by stated
or recorded rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.bisect.predicate import (
    EMPTY_REMEDY,
    Choice,
    EntityConditions,
    FieldRead,
    Predicate,
    operator_slip,
    parse_condition,
    predicate_from_json,
    rules_faults,
    when_faults,
)
from woodrat.bisect.subset import believed_of, entities_concerned
from woodrat.canon import form
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain.remake import is_whole
from woodrat.ledger import entry_index
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ, here
from woodrat.records import dataclass
from woodrat.runs.missing_facts import rule_faults
from woodrat.runs.operators import NO_FACT, operator_faults
from woodrat.runs.rules import RAISE, Rule, as_rules
from woodrat.runs.steps import chooser
from woodrat.state.observation import field_name_faults
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from woodrat.bisect.predicate import Look
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.ledger.read import Reader
    from woodrat.runs.record import RunRecord
    from woodrat.runs.steps import Decision, Tried

ANYTHING: Final = object()
"""Stands for a branch that was not named."""

_WHERE: Final = "Write city=Girona, creditScore lt 600, or either after REF#, such as loan/42#creditScore lt 600."


@dataclass(frozen=True, slots=True)
class Asking:
    """A caller's question, as sent."""

    what: Any = None
    """An entity, a decision as `RUN#stage`, a predicate or its JSON; None if conditions name their entities."""
    when: Any = None
    """Conditions by field, as a rule has them."""
    where: Any = None
    """Values by field, or texts."""
    exists: Any = None
    """Whether the entity must exist."""
    deleted: Any = None
    """Whether the entity must be deleted."""
    rules: Any = None
    """Rules that decide on the entity's fields."""
    default: Any = None
    """The choice if no rule matches."""
    chosen: Any = ANYTHING
    """The branch that must be chosen."""


def predicate_of(reader: Reader, asking: Asking) -> Predicate:
    """Return the predicate that is meant; `Refused` names everything that is wrong with it."""
    if isinstance(asking.what, Predicate | Mapping):
        further = [
            name for name in ("when", "where", "exists", "deleted", "rules") if getattr(asking, name) is not None
        ]
        if further or asking.chosen is not ANYTHING:
            problem = f"{further[0] if further else 'chosen'} cannot be combined with a whole predicate"
            raise Refused([Fault("what", problem, "Put all of it into the predicate.")], NO_READ)
        if isinstance(asking.what, Predicate):
            return asking.what
        return predicate_from_json(_without_nulls(asking.what))
    faults: list[Fault] = []
    choice: Choice | None = None
    ref: Ref | None = None
    # A type may begin with run_ too; what has a slash before its stage is an entity.
    if isinstance(asking.what, str) and asking.what.startswith("run_") and "/" not in asking.what.partition("#")[0]:
        choice = _recorded(reader, asking, faults)
    elif asking.what is not None:
        ref = find_ref(reader, asking.what, path="what")
    parts = _Parts(reader, ref, faults)
    parts.take(asking)
    if asking.rules is not None and choice is None:
        choice = _ruled(asking, ref, faults)
    elif asking.rules is None and choice is None and asking.chosen is not ANYTHING:
        remedy = "Name a decision as RUN#stage, or give the rules."
        faults.append(Fault("chosen", "it needs a decision or rules", remedy))
    found = Predicate(parts.asked(), choice)
    if not faults and not found.looked:
        faults.append(Fault("predicate", "it has no condition", EMPTY_REMEDY))
    if faults:
        raise Refused(faults, NO_READ)
    return found


class _Parts:
    """Conditions by entity."""

    def __init__(self, reader: Reader, ref: Ref | None, faults: list[Fault]) -> None:
        self._reader, self._ref, self._faults = reader, ref, faults
        self._when: dict[Ref, dict[str, dict[str, Json]]] = {}
        self._where: dict[Ref, list[tuple[str, Json]]] = {}
        self._flags: dict[str, bool | None] = {"exists": None, "deleted": None}

    def take(self, asking: Asking) -> None:
        """Take in all that is asked of entities."""
        for name in self._flags:
            value = getattr(asking, name)
            if not isinstance(value, bool | None):
                self._faults.append(Fault(name, f"got {shown(value)}", "Send true or false."))
            elif value is not None and self._here(name):
                self._flags[name] = value
        if asking.when is not None:
            self._conditions(asking.when)
        where = [asking.where] if isinstance(asking.where, str) else asking.where
        if isinstance(where, Mapping):
            for name, value in where.items():
                self._add_value(None, name, value, "where")
        elif isinstance(where, list | tuple):
            for number, text in enumerate(where):
                self._text(text, f"where/{number}")
        elif where is not None:
            self._faults.append(Fault("where", f"expected values by field, got {shown(where)}", _WHERE))

    def asked(self) -> tuple[EntityConditions, ...]:
        """Return the conditions, entity by entity."""
        refs = dict.fromkeys([*self._when, *self._where])
        if self._ref is not None and any(flag is not None for flag in self._flags.values()):
            refs = {self._ref: None, **refs}
        found = []
        for ref in refs:
            flags = self._flags if ref == self._ref else {}
            when: dict[str, Json] = {name: dict(ops) for name, ops in self._when.get(ref, {}).items()}
            found.append(EntityConditions(ref, when, tuple(self._where.get(ref, ())), **flags))
        return tuple(found)

    def _here(self, path: str) -> Ref | None:
        if self._ref is None:
            self._faults.append(Fault(path, "the entity is missing", "Name the entity as type/key."))
        return self._ref

    def _conditions(self, when: object) -> None:
        wrong = when_faults(when, "when")
        if not wrong and not when:
            wrong = [Fault("when", "there is no condition", EMPTY_REMEDY)]
        self._faults += wrong
        ref = self._here("when") if not wrong else None
        if ref is not None and isinstance(when, Mapping):
            plain: Any = form.normal(dict(when))
            for name, wanted in plain.items():
                for op, operand in wanted.items() if isinstance(wanted, dict) else (("eq", wanted),):
                    self._when.setdefault(ref, {}).setdefault(name, {})[op] = operand

    def _text(self, text: object, path: str) -> None:
        read = parse_condition(text) if isinstance(text, str) else None
        if read is None:
            unknown = operator_slip(text) if isinstance(text, str) else None
            problem = "" if unknown is None else f": {unknown.problem}"
            meant = "" if unknown is None or "mean" not in unknown.remedy else f"{unknown.remedy} "
            self._faults.append(Fault(path, f"expected a condition, got {shown(text)}{problem}", f"{meant}{_WHERE}"))
            return
        if read.op is None:
            self._add_value(read.ref, read.field, read.value, path)
            return
        wrong = operator_faults(read.op, read.value, path) + field_name_faults(read.field, path)
        self._faults += wrong
        ref = self._entity(read.ref, path) if not wrong else None
        if ref is not None:
            ops = self._when.setdefault(ref, {}).setdefault(read.field, {})
            if read.op in ops:
                problem = f"{read.field} {read.op} is stated twice"
                self._faults.append(Fault(path, problem, "State it once; all conditions must hold together."))
            ops[read.op] = read.value

    def _add_value(self, named: str | None, name: object, value: object, path: str) -> None:
        wrong = form.faults(value, path)
        if isinstance(name, str):
            wrong += field_name_faults(name, path)
        else:
            wrong.append(Fault(path, f"expected a field, got {shown(name)}", "Send the field's name as text."))
        self._faults += wrong
        ref = self._entity(named, path) if not wrong else None
        if ref is not None:
            self._where.setdefault(ref, []).append((str(name), form.normal(value)))

    def _entity(self, named: str | None, path: str) -> Ref | None:
        return self._here(path) if named is None else find_ref(self._reader, named, path=path)


# Decisions


def _ruled(asking: Asking, ref: Ref | None, faults: list[Fault]) -> Choice | None:
    """Return a decision by rules that the caller gives, on the fields of the entity."""
    if ref is None:
        faults.append(Fault("rules", "the entity is missing", "Name the entity that the rules decide about."))
    if asking.chosen is ANYTHING:
        faults.append(Fault("chosen", "the branch is missing", "Name the branch in question."))
    for name in ("chosen", "default"):
        value = getattr(asking, name)
        faults += form.faults(value, name) if value is not ANYTHING else []
    try:
        rules = as_rules(asking.rules)
    except Refused as refusal:
        faults += refusal.faults
        return None
    wrong = rules_faults(rules, "rules")
    faults += wrong
    if ref is None or wrong or asking.chosen is ANYTHING:
        return None
    names = dict.fromkeys(name for item in rules for name in item.when)
    plain = tuple(Rule.from_json(item.to_json(), f"rules/{number}") for number, item in enumerate(rules))
    return Choice(plain, asking.chosen, {name: FieldRead(ref, name) for name in names}, {}, asking.default)


def _without_nulls(what: Mapping[str, Any]) -> dict[str, Any]:
    """Return a predicate without its empty members, which an answer has as null."""
    entities = what.get("entities")
    if not isinstance(entities, list):
        return dict(what)
    asked = [
        {name: part for name, part in item.items() if name not in ("exists", "deleted") or part is not None}
        if isinstance(item, dict)
        else item
        for item in entities
    ]
    return {**what, "entities": asked}


def _recorded(reader: Reader, asking: Asking, faults: list[Fault]) -> Choice | None:
    """Return a decision on record, to be made again on other states; the last one of its stage."""
    from woodrat.explain.reader.tracer import decisions_at
    from woodrat.runs.reader.run_reader import RunReader, run_record

    id, mark, stage = asking.what.partition("#")
    if not mark:
        faults.append(Fault("what", f"{id} is a whole run", "Name one of its decisions as RUN#stage."))
        return None
    if asking.rules is not None or asking.default is not None:
        faults.append(Fault("rules", "a recorded decision has its own rules", "Name an entity to try other rules on."))
    record = run_record(RunReader(reader), id)
    decision = decisions_at(record, stage)[-1]
    problems = list(_inexact(decision))
    remedy = "Name the entity instead, and give the rules as data."
    faults += [Fault("what", f"{asking.what} cannot be made again: {problem}", remedy) for problem in problems]
    reads: dict[str, FieldRead] = {}
    facts = decision.known_facts
    for name, origin in _origins(decision).items():
        read = _followed(record, origin, name, reader.view, faults)
        if read is not None:
            reads[name] = read
            facts.pop(name, None)
    needed = {name for tried in _tried(decision) if isinstance(tried.when, dict) for name in tried.when}
    hidden = sorted(name for name in needed & facts.keys() if not is_whole(facts[name]))
    faults += [Fault("what", f"{name} was hidden or cut in the record", remedy) for name in hidden]
    reads = {name: read for name, read in reads.items() if name in needed}
    if not reads:
        problem = f"{asking.what} read nothing from state that its rules look at"
        faults.append(Fault("what", problem, "Ask about an entity instead."))
    if faults:
        return None
    rules = tuple(Rule(tried.chosen, tried.when, tried.label) for tried in _tried(decision))
    kept = {name: value for name, value in facts.items() if name in needed}
    default = decision.chosen if decision.default else decision.otherwise
    chosen = decision.chosen if asking.chosen is ANYTHING else asking.chosen
    faults += form.faults(chosen, "chosen")
    on_missing = decision.on_missing or RAISE
    return Choice(rules, chosen, reads, kept, default, decision.mode, stage, on_missing)


def _tried(decision: Decision) -> tuple[Tried, ...]:
    return (*decision.rules, *(decision.untried or ()))


def _inexact(decision: Decision) -> list[str]:
    """Return why a decision cannot be made again exactly."""
    found: list[str] = []
    if decision.chosen_by is not None:
        return [f"it was chosen {chooser(decision.chosen_by)}, without rules"]
    if decision.omitted.get("rules"):
        found.append("some of its rules are not on record")
    if not decision.default and decision.untried is None:
        found.append("the rules after the one that matched are not on record")
    for number, tried in enumerate(_tried(decision)):
        if tried.predicate is not None or not isinstance(tried.when, dict):
            found.append(f"rule {shown(tried.label or tried.predicate)} is a predicate in the agent's code")
        elif not is_whole(tried.when):
            found.append(f"rule {shown(tried.label)} was hidden or cut in the record")
        else:
            found += rule_faults(tried, number)  # a recorder elsewhere may have recorded what no rule here can be
    return found


def _origins(decision: Decision) -> dict[str, Mapping[str, Any]]:
    """Return the actual or possible origin of each fact."""
    found: dict[str, Mapping[str, Any]] = {
        name: origin for name, origin in decision.facts_origin.items() if isinstance(origin, dict)
    }
    for condition in decision.conditions:
        if condition.error != NO_FACT or condition.key not in found:
            found[condition.key] = condition.origin
    return found


def _followed(
    record: RunRecord, origin: Mapping[str, Any], name: str, view: View, faults: list[Fault]
) -> FieldRead | None:
    """Return the entity and field of a fact that another state may change."""
    from woodrat.explain.reader.stale import read_by
    from woodrat.explain.references import read_ref

    if origin.get("kind") == "model":
        problem = f"{name} came from a model, which might answer differently on another state"
        faults.append(Fault("what", problem, "Name the entity instead, and give the rules as data."))
    ref = read_ref(origin)
    if ref is None:
        return None
    read = read_by(record, origin)
    if read is not None and not read.present:
        return None  # it asked for a moment, and would be told the same
    if read is not None and read.log is not None and here(view, read.log, read.as_of) is None:
        problem = f"{name} was read from another log, {read.log}"
        faults.append(Fault("what", problem, "Ask the ledger that holds that log."))
    if read is not None and read.effective is not None:
        problem = f"{name} was read at a valid time, {read.effective}"
        faults.append(Fault("what", problem, "Name the entity instead, and give the rules, at that valid_at."))
    return FieldRead(ref, str(origin["field"]))


# Answers


def look_at(reader: Reader) -> Look:
    """Return a function that answers for the state of a reader."""
    return lambda ref: believed_of(reader.state(ref), reader.rules(ref.type))


def all_concerned(view: View, predicate: Predicate, through: int) -> dict[Ref, None]:
    """Return all entities that can affect a predicate; `NotFound` for an unknown one."""
    found = entities_concerned(
        predicate.looked,
        lambda ref: (
            entry_index.relations(view, ref.digest, SAME_AS, through) if entry_index.joined(view, ref.digest) else ()
        ),
    )
    absent = {asked.entity for asked in predicate.entities if asked.exists is False or asked.deleted is False}
    unknown = [
        str(ref)
        for ref in predicate.looked
        if ref not in absent and view.entity(ref.digest, through) is None and not entry_index.joined(view, ref.digest)
    ]
    if unknown:
        raise NotFound(
            f"{', '.join(unknown)}: not known up to position {through}. Nothing was changed. Search for it.",
            {"entities": unknown, "position": through},
        )
    return found

"""Missing facts: facts that rules asked for and did not get, in words that name stage, rule and fact.

They are read from the rules as they were tried, so a decision that is being made and one that is on record tell the
same: as the reason why nothing was decided, among the problems of a run, and in its narrative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.errors import Fault, shown
from woodrat.runs import values
from woodrat.runs.operators import NO_FACT, when_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from woodrat.canon.form import Json
    from woodrat.runs.steps import Decision, Tried

GAPS_SAID_MAX: Final = 10
"""How many gaps of one decision a note names; it counts the rest."""
UNDECIDED: Final = "undecided"
"""The event of a note that says why nothing was decided."""
SKIP: Final = "skip"
"""What a decision does with a rule that is unknown, where it is asked to go on; otherwise it fails."""

_PART_BYTES_MAX: Final = 256
"""How much of a fact's name, or of an error, a sentence shows."""
_NOTE_BYTES_MAX: Final = 4_000
"""How long the text of a note is; a little less than a problem may be, so that both are the same."""
_REMEDY: Final = 'Give the decision that fact, or pass on_missing="skip" to skip rules that are unknown.'


class Gap(NamedTuple):
    """One fact that a rule did not get, or one reason why it is unknown."""

    rule: str
    """The rule, as `rule Good credit` or `rule 2`."""
    fact: str | None
    """The fact; none where a predicate failed for another reason."""
    error: str
    """What is wrong, as the record says it."""
    unknown: bool
    """Whether the rule is unknown; if not, another of its conditions is false."""

    @property
    def clause(self) -> str:
        """What is wrong, in words."""
        if self.fact is None:
            return values.text(self.error, _PART_BYTES_MAX)
        fact = values.text(self.fact, _PART_BYTES_MAX)
        if self.error == NO_FACT:
            return f"there is no fact {fact}"
        return f"{fact} cannot be compared: {values.text(self.error, _PART_BYTES_MAX)}"

    def body(self) -> dict[str, Json]:
        """Return the gap as a note keeps it."""
        found: dict[str, Json] = {"rule": self.rule, "error": values.text(self.error, _PART_BYTES_MAX)}
        return found if self.fact is None else {**found, "fact": values.text(self.fact, _PART_BYTES_MAX)}


def rule_name(rule: Tried, number: int) -> str:
    """Return what a rule is called in a sentence; `number` counts from 0."""
    if rule.label is not None:
        return f"rule {values.text(rule.label, 80) if rule.label.isprintable() else shown(rule.label)}"
    code = "" if rule.predicate is None else f" ({values.text(rule.predicate, _PART_BYTES_MAX)})"
    return f"rule {number + 1}{code}"


def gaps_of(rules: Iterable[Tried]) -> list[Gap]:
    """Return what the rules of a decision asked for and did not get, rule after rule, each fact of a rule once."""
    found: dict[Gap, None] = {}
    for number, rule in enumerate(rules):
        if rule.matched or (not rule.unknown and None not in [condition.result for condition in rule.conditions]):
            continue  # nearly always: a decision pays for no more than a look
        name = rule_name(rule, number)
        if rule.predicate is None:
            for condition in rule.conditions:
                if condition.result is None:
                    found[Gap(name, condition.key, _said(condition.error), rule.unknown)] = None
            if rule.error is not None:
                found[Gap(name, None, _said(rule.error), rule.unknown)] = None
        elif rule.unknown:
            absent = [c.key for c in rule.conditions if c.op == "exists" and c.operand is True and c.result is False]
            for key in absent if absent and _is_lookup(rule.error) else ():
                found[Gap(name, key, NO_FACT, True)] = None
            if not (absent and _is_lookup(rule.error)):
                found[Gap(name, None, _said(rule.error), True)] = None
    return list(found)


def _is_lookup(error: Json) -> bool:
    """Return whether a predicate failed, or answered nothing, because of a fact that is not there."""
    return not isinstance(error, dict) or error.get("type") in ("KeyError", "AttributeError")


def _said(error: Json) -> str:
    """Return an error of a record as text."""
    if isinstance(error, dict):
        return f"{_text(error.get('type'))}: {_text(error.get('message'))}"
    return "it cannot be compared" if error is None else _text(error)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def refusal_faults(stage: str | None, gaps: Iterable[Gap]) -> list[Fault]:
    """Return why nothing was decided: a fault for each gap of a rule that is unknown."""
    where = "decision" if stage is None else f"decision {values.text(stage, _PART_BYTES_MAX)}"
    return [Fault(where, f"{gap.rule} is unknown: {gap.clause}", _REMEDY) for gap in gaps if gap.unknown]


def undecided(stage: str, mode: str, gaps: Sequence[Gap]) -> dict[str, Json]:
    """Return the note of a decision that was not made: text and data."""
    unknown = [gap for gap in gaps if gap.unknown]
    listed, more = unknown[:GAPS_SAID_MAX], max(0, len(unknown) - GAPS_SAID_MAX)
    said = "; ".join(f"{gap.rule} is unknown: {gap.clause}" for gap in listed)
    data: dict[str, Json] = {"event": UNDECIDED, "stage": stage, "mode": mode}
    data["unknown"] = [gap.body() for gap in listed]
    if more:
        said, data["more"] = f"{said}; and {more} more", more
    text = f"{values.text(stage, _PART_BYTES_MAX)} was not decided: {said}"
    return {"text": values.text(text, _NOTE_BYTES_MAX), "data": data}


def is_undecided(data: Json) -> bool:
    """Return whether the data of a note say that nothing was decided."""
    return isinstance(data, dict) and data.get("event") == UNDECIDED


def noted_gaps(data: Json) -> list[Gap]:
    """Return the gaps that a note of a decision that was not made names."""
    listed = data.get("unknown") if isinstance(data, dict) else None
    found: list[Gap] = []
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict):
            fact = item.get("fact")
            named = fact if isinstance(fact, str) else None
            found.append(Gap(_text(item.get("rule")), named, _said(item.get("error")), True))
    return found


def problems(stage: str, gaps: Iterable[Gap]) -> list[str]:
    """Return what a decision that was made lacked, as problems of its run."""
    return [
        f"{values.text(stage, _PART_BYTES_MAX)}: {gap.rule} {'was skipped' if gap.unknown else 'did not match, and'}"
        f"{':' if gap.unknown else ''} {gap.clause}"
        for gap in gaps
    ]


def recorded_problems(decision: Decision) -> list[str]:
    """Return what a decision on record lacked, and which of its rules could never have been answered."""
    found = problems(decision.stage, gaps_of(decision.rules))
    for number, rule in enumerate((*decision.rules, *(decision.untried or ()))):
        found += [f"{values.text(decision.stage, _PART_BYTES_MAX)}: {text}" for text in rule_faults(rule, number)]
    return found


def rule_faults(rule: Tried, number: int) -> list[str]:
    """Return what is wrong with a rule on record that could not have been created here; a recorder elsewhere may have.

    What was hidden or cut is not judged.
    """
    if rule.predicate is not None or rule.when is None or not values.is_whole(rule.when):
        return []
    name = rule_name(rule, number)
    return [
        f"{name} is faulty: {fault.path.lstrip('/') or 'when'}: {fault.problem}" for fault in when_faults(rule.when, "")
    ]

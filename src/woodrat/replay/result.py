"""Replayed: the result of replaying runs: each is the same, or its divergences are listed in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.record_json import Record, derived
from woodrat.records import dataclass
from woodrat.runs import values

DECISION, NOT_RECORDED, NOT_KEPT = "decision", "not_recorded", "not_kept"
MISSING, EXTRA, RESULT, ANSWER, RAISED, STEPS = "missing", "extra", "result", "answer", "raised", "steps"
DIED, TIMEOUT, BEGINNING = "died", "timeout", "beginning"
KINDS: Final = (
    *(BEGINNING, DECISION, NOT_RECORDED, NOT_KEPT, MISSING, EXTRA),
    *(RESULT, ANSWER, RAISED, STEPS, DIED, TIMEOUT),
)
"""The kinds of divergence of a replay."""


@dataclass(frozen=True, slots=True)
class RuleChange(Record):
    """A rule that differs from the recorded one, or has another result."""

    number: int
    """Which rule of the decision, from 1."""
    label: str | None
    """Its label, the current or else the recorded one."""
    old: Json
    """The recorded rule; None when it is new."""
    new: Json
    """The current rule; None when it is gone."""

    def __str__(self) -> str:
        named = f"rule {self.number}" + (f" ({self.label})" if self.label is not None else "")
        if self.old is None:
            return f"{named} is new: {_condition(self.new)}"
        if self.new is None:
            return f"{named} is gone: {_condition(self.old)}"
        old, new = _condition(self.old), _condition(self.new)
        if old != new:
            return f"{named} was {old} and is {new}"
        return f"{named} answers otherwise" if form.same(self.old, self.new) else f"{named} leads elsewhere"


@dataclass(frozen=True, slots=True)
class TextDifference(Record):
    """The first words in which the recorded and the current value differ."""

    message: int | None
    """Of a prompt, which message differs, from 1."""
    role: str | None
    """For a prompt, the role of that message."""
    path: str
    """Where in the message, the arguments or the value, such as `content` or `limit`; empty for all of it."""
    old: str | None
    """The recorded words around the difference; None if there were none."""
    new: str | None
    """The current words around the difference; None if there are none."""

    @property
    def places(self) -> list[str]:
        """Its place, from the outside in: the message with its role, and the path."""
        message = [f"message {self.message}" + (f" ({self.role})" if self.role else "")] if self.message else []
        return [*message, self.path] if self.path else message

    def __str__(self) -> str:
        before, after = ("nothing" if side is None else f'"{side}"' for side in (self.old, self.new))
        return f"{', '.join(self.places) + ': ' if self.places else ''}{after} where the recording has {before}"


@dataclass(frozen=True, slots=True)
class Divergence(Record):
    """One difference between a recorded run and its replay."""

    kind: str
    """The kind of difference: one of `KINDS`."""
    what: str
    """The step, such as `decision classify-risk` or `tool bureau`."""
    step: int | None
    """Number of the recorded step; None if there is none."""
    old: Json
    """The recorded value."""
    new: Json
    """The current value."""
    rule: RuleChange | None = None
    """Of a decision, the rule that differs."""
    facts: Mapping[str, Json] | None = None
    """Of a decision, the facts that differ: by name `{"old", "new"}`."""
    difference: TextDifference | None = None
    """The first words that differ, where both sides are there."""

    @derived
    def sentence(self) -> str:
        """The difference, in a sentence."""
        return str(self)

    def __str__(self) -> str:
        old, new = _glimpse(self.old), _glimpse(self.new)
        match self.kind:
            case "decision":
                undecided = [_not_decided(self.old), _not_decided(self.new)]
                if any(undecided):
                    then, now = (one or two for one, two in zip(undecided, (old, new), strict=True))
                    return f"{self.what}: then: {then}; now: {now}"
                return f"{self.what}: {old} became {new}; {self._why()}"
            case "not_recorded" if self.difference is not None:
                return f"{self.what}: not in the recording; {self.difference}"
            case "not_recorded" if self.what.startswith("model ") and self.old is None and self.new is None:
                return f"{self.what}: not in the recording with this request, whose messages are not recorded"
            case "not_recorded":
                before = f" (recorded: {old})" if self.old is not None else ""
                return f"{self.what}: not in the recording with {new}{before}"
            case "not_kept":
                return f"{self.what}: {new}, so the recording cannot answer"
            case "missing":
                return f"{self.what}: recorded at step {self.step}, but not called any more"
            case "extra":
                return f"{self.what}: not recorded, but called now"
            case "result":
                return f"{self.what}: its block returned {new}; {old} was recorded"
            case "answer" | "beginning" if self.difference is not None and max(len(old), len(new)) > 80:
                return f"{self.what}: {self.difference}"
            case "answer" | "beginning":
                return f"{self.what}: {old} became {new}"
            case "raised":
                return f"{self.what}: raised {_error(self.new)}; recorded was {_error(self.old)}"
            case "died":
                return f"{self.what}: its process ended before the run did ({new})"
            case "timeout":
                return f"{self.what}: not done after {new} seconds, and ended"
        return f"{self.what}: stopped after {new} steps; {old} were recorded"

    def _why(self) -> str:
        if self.rule is not None:
            return str(self.rule)
        if self.facts:
            told = (f"{name} was {_side(item, 'old')} and is {_side(item, 'new')}" for name, item in self.facts.items())
            return ", ".join(told)
        return "the rules are the same; the default is not"


@dataclass(frozen=True, slots=True)
class ReplayedRun(Record):
    """The result of replaying one run."""

    run: str
    """Id of the run."""
    agent: str | None
    """Who ran."""
    query: str | None
    """The question of the run."""
    subject: str | None
    """The entity it was about."""
    interrupted: bool
    """True if the recording has no end: only the recorded part is compared."""
    steps: int
    """Number of the agent's steps."""
    answer: Json
    """The current answer."""
    divergences: tuple[Divergence, ...]
    """The divergences, in the order of the steps; the agent continues for as long as the recording answers."""
    problems: tuple[str, ...] = ()
    """Recorded values that the agent got in another form, because their types could not be restored."""
    not_made_again: int = 0
    """Number of recorded decisions inside tools, which the recording answered: they were not made again."""

    @derived
    def same(self) -> bool:
        """Whether all repeated steps are equal."""
        return not self.divergences

    @derived
    def divergence(self) -> Divergence | None:
        """The first difference."""
        return self.divergences[0] if self.divergences else None

    def __str__(self) -> str:
        aside = f"; {_not_made_again(self.not_made_again)}" if self.not_made_again else ""
        if self.same:
            return f"{self.run}: same" + (", for the recorded part" if self.interrupted else "") + aside
        told = [f"{self.run}: differs at {self.divergences[0]}{aside}"]
        told += [f"  then {each}" for each in self.divergences[1:]]
        told += [f"  {problem}" for problem in self.problems]
        return "\n".join(told)


@dataclass(frozen=True, slots=True)
class Replayed(Record):
    """The result of replaying runs."""

    runs: tuple[ReplayedRun, ...]
    """Each of them, in the order they were named."""

    @derived
    def same(self) -> bool:
        """Whether none differs."""
        return all(run.same for run in self.runs)

    @property
    def differing(self) -> tuple[ReplayedRun, ...]:
        """The differing runs."""
        return tuple(run for run in self.runs if not run.same)

    @derived
    def counts(self) -> dict[str, int]:
        """Numbers of all runs, of equal runs, and of runs by the kind of their first divergence."""
        found = {"runs": len(self.runs), "same": sum(run.same for run in self.runs)}
        first = [run.divergence.kind for run in self.runs if run.divergence is not None]
        return found | {kind: first.count(kind) for kind in KINDS if kind in first}

    def table(self) -> str:
        """Return a line for each run that differs, and one with the counts."""
        lines = [f"{run.run}  {run.divergence}" for run in self.differing]
        return "\n".join([*lines, self.summary()])

    def summary(self) -> str:
        """Return the number of equal runs, and of differing ones by kind."""
        counts = self.counts
        told = f"{counts.pop('same')} of {counts.pop('runs')} runs are the same"
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        told = f"{told}; {len(self.differing)} differ ({kinds})" if kinds else told
        aside = sum(run.not_made_again for run in self.runs)
        return f"{told}; {_not_made_again(aside)}." if aside else f"{told}."


def _not_made_again(count: int) -> str:
    decisions = "one decision inside a tool was" if count == 1 else f"{count} decisions inside tools were"
    return f"{decisions} not made again"


def _condition(said: Any) -> str:
    when = said.get("when")
    if isinstance(when, dict):
        told = []
        for key, wanted in when.items():
            if isinstance(wanted, dict):
                told += [f"{key} {op} {_glimpse(operand)}" for op, operand in wanted.items()]
            else:
                told.append(f"{key} eq {_glimpse(wanted)}")
        return " and ".join(told)
    return str(said.get("predicate") or "a rule without a name")


def _glimpse(value: Json) -> str:
    if isinstance(value, str):
        return values.text(value, 200)
    return values.text(form.serialise(value).decode(), 200)


def _not_decided(value: Json) -> str | None:
    """Return why no decision was made, if a side of a divergence says so."""
    told = value.get("undecided") if isinstance(value, dict) and len(value) == 1 else None
    return values.text(told, 400) if isinstance(told, str) else None


def _side(item: Any, side: str) -> str:
    return _glimpse(item[side]) if side in item else "not there"


def _error(error: Any) -> str:
    if not isinstance(error, dict):
        return "no error"
    return f"{error.get('type')}: {_glimpse(error['message'])}" if "message" in error else str(error.get("type"))

"""Margin: how near a decision by rules was to another choice.

It names the smallest change of the facts that flips the decision, the facts that did not matter, and the single sources
that would flip it if they were wrong. `flip_search.py` finds it; here is what it says.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from woodrat.record_json import Record, derived
from woodrat.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.canon.form import Json

FLIPS, NEVER, UNKNOWN = "flips", "never", "unknown"
"""Whether a decision has a margin: some change flips it, none does, or nobody can say."""
NUMBER, TEXT, OTHER, MISSING = "number", "text", "other", "missing"
"""Kinds of values; `other` is whatever is neither a number nor a text, `missing` is no value at all."""

SHOWN_MAX: Final = 3
"""How many flips a sentence names."""
VALUE_CHARACTERS_MAX: Final = 120
"""How much of a value a sentence shows."""


@dataclass(frozen=True, slots=True)
class Region(Record):
    """Values of one fact: those of a kind that satisfy all conditions."""

    kind: str
    """`number`, `text`, `other` (neither of them), or `missing` (no value at all)."""
    conditions: Mapping[str, Json]
    """What must hold, by the operators of rules, such as `{"gte": 600}`; empty where any value of the kind will do."""
    matches: tuple[str, ...] = ()
    """Patterns that must be found in it."""
    matches_none: tuple[str, ...] = ()
    """Patterns that must not be found in it."""

    @property
    def words(self) -> str:
        """The values in words, such as `600 or more`."""
        if self.kind == MISSING:
            return "missing"
        parts = [_CONDITIONS.get(op, _plainly(op))(operand) for op, operand in self.conditions.items()]
        parts += [f"text that matches {pattern}" for pattern in self.matches]
        parts += [f"text that does not match {pattern}" for pattern in self.matches_none]
        return " and ".join(parts) or _ANY.get(self.kind, f"any {self.kind}")


@dataclass(frozen=True, slots=True)
class NeededChange(Record):
    """One fact, and the values it would have needed."""

    fact: str
    """Name of the fact."""
    was: Json
    """What it was; null also where it was missing."""
    missing: bool
    """Whether it was missing."""
    to: tuple[Region, ...]
    """The values that it would have needed: any of these regions, the nearest first."""

    @property
    def words(self) -> str:
        """The change in words, such as `creditScore 600 or more instead of 580`."""
        # Values of the same kind come first: who asks what a score would have to be is not told of texts.
        near = [region for region in self.to if region.kind == self.to[0].kind]
        wanted = " or ".join(region.words for region in near[:SHOWN_MAX]) + (" or …" if len(near) > SHOWN_MAX else "")
        if self.missing:
            return f"{self.fact} {wanted} (it was missing)"
        return f"{self.fact} {wanted} instead of {shown(self.was)}"


@dataclass(frozen=True, slots=True)
class MarginFlip(Record):
    """One change that would have led to another choice."""

    chosen: Json
    """What would have been chosen."""
    rule: Json
    """Label of the rule that would have matched, a list of them under `select`; null where none would."""
    facts: tuple[NeededChange, ...]
    """The facts that would have had to be otherwise, all of them."""

    @derived
    def sentence(self) -> str:
        """The change in a few words."""
        changes = " and ".join(change.words for change in self.facts)
        return f"with {changes}, {'nothing' if self.chosen is None else shown(self.chosen)} would have been chosen"


@dataclass(frozen=True, slots=True)
class FactSource(Record):
    """Where facts of a decision came from."""

    kind: str
    """`document`, `observation`, `tool`, `model`, `input` or `stated`."""
    id: str
    """What tells it apart from others of its kind."""
    label: str
    """What people call it."""


@dataclass(frozen=True, slots=True)
class SoleSource(Record):
    """A source that would flip the decision if it alone were wrong."""

    source: FactSource
    """The source."""
    facts: tuple[str, ...]
    """The facts that came from it and would have to be otherwise."""
    chosen: Json
    """What could have been chosen instead."""


@dataclass(frozen=True, slots=True)
class Margin(Record):
    """How near a decision was to another choice."""

    outcome: str
    """`flips` where a change of facts leads to another choice, `never` where none does, else `unknown`."""
    reason: str | None
    """Why it is unknown, or where the search was cut off."""
    flips: tuple[MarginFlip, ...]
    """The smallest changes that flip the decision: all of them change the same number of facts."""
    omitted: int
    """How many more such changes there are than are listed."""
    without_effect: tuple[str, ...]
    """The facts that did not matter: no other value of one of them alone flips it, nor is it part of a smallest change.

    Where the search was cut off, only facts that no rule asks for.
    """
    sources: tuple[SoleSource, ...]
    """The sources each of which would flip it if it alone were wrong."""
    complete: bool
    """Whether the search was complete; false where it was cut off, with the reason."""

    @derived
    def sentence(self) -> str:
        """The smallest changes in a sentence."""
        if self.outcome == UNKNOWN:
            return f"unknown: {self.reason}"
        cut = f" ({self.reason})" if self.reason is not None else ""
        if self.outcome == NEVER:
            return f"no change of its facts would have led to another choice{cut}"
        more = len(self.flips) - SHOWN_MAX + self.omitted
        told = "; or ".join(flip.sentence for flip in self.flips[:SHOWN_MAX])
        return told + (f"; or by {more} other changes" if more > 0 else "") + cut


def shown(value: Json) -> str:
    """Return a value for a sentence: text bare, the rest as JSON, cut at a named length."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[: VALUE_CHARACTERS_MAX - 1] + "…"


def _listed(values: Any) -> str:
    found = ", ".join(shown(value) for value in values[:10])
    return found + (", …" if len(values) > 10 else "")


_CONDITIONS: Final[Mapping[str, Any]] = {
    "gte": lambda value: f"{shown(value)} or more",
    "gt": lambda value: f"above {shown(value)}",
    "lte": lambda value: f"{shown(value)} or less",
    "lt": lambda value: f"below {shown(value)}",
    "eq": shown,
    "ne": lambda value: f"anything but {shown(value)}",
    "in": lambda values: f"one of {_listed(values)}",
    "not_in": lambda values: f"none of {_listed(values)}",
}


def _plainly(op: str) -> Callable[[Json], str]:
    """Return what puts a condition that has no words of its own into words."""
    return lambda operand: f"{op} {shown(operand)}"


_ANY: Final = {NUMBER: "any number", TEXT: "any text", OTHER: "anything that is neither a number nor a text"}

"""Stale: past decisions whose evidence is believed otherwise now, made again on what is believed now.

Rules that are data are evaluated again exactly. Where the answer would need a predicate of the agent's code, a model,
or rules that are not on record, it is *unknown*, with the reason; nothing is guessed.
"""

from __future__ import annotations

from typing import ClassVar

from woodrat.canon.form import Json
from woodrat.explain.remake import DecisionNow
from woodrat.record_json import Record, derived
from woodrat.records import Deferrable, dataclass
from woodrat.runs.steps import Decision


@dataclass(frozen=True, slots=True)
class Belief(Record):
    """One fact that a decision was made on, as it was believed then and as it is believed now."""

    key: str
    """What the decision calls it."""
    entity: str
    """The entity it was read from."""
    field: str
    """The field."""
    before: Json
    """What was believed; null also where nothing was."""
    now: Json
    """What is believed now; null also where nothing is."""
    missing: bool
    """Whether nothing is believed now."""
    observations: tuple[str, ...]
    """The observations behind it then."""
    observations_now: tuple[str, ...]
    """The observations behind it now."""
    change: str
    """`corrected`, `retracted`, `superseded`, `deleted`, or `stated` where there was nothing before."""
    reason: str
    """Why the earlier one no longer holds, in a clause."""
    changed_by: str | None = None
    """Who said what changed it; none where that is not known."""
    because: str | None = None
    """The reason they gave for it; none where they gave none."""


@dataclass(frozen=True, slots=True)
class Stale(Deferrable, Record):
    """A decision whose evidence is believed otherwise now."""

    COMPACT: ClassVar = ("run", "agent", "query", "subject", "decision", "outcome", "sentence")
    """What a list shows of it."""

    run: str
    """The run it was made in."""
    agent: str | None
    """Who decided."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity the run is about."""
    answer: Json
    """What the run answered."""
    decision: Decision
    """What was decided, by which rule and on what evidence."""
    beliefs: tuple[Belief, ...]
    """What is believed otherwise now, both beliefs side by side."""
    now: DecisionNow
    """What would be decided now."""

    @derived
    def outcome(self) -> str:
        """`flip`, `same` or `unknown`."""
        return self.now.outcome

    @derived
    def sentence(self) -> str:
        """What would come of the decision now, in a few words."""
        return self.now.sentence

"""Stale: past decisions whose evidence is believed otherwise now, made again on what is believed now.

Rules that are data are evaluated again exactly. Where the answer would need a predicate of the agent's code, a model,
or rules that are not on record, it is *unknown*, with the reason; nothing is guessed.
"""

from __future__ import annotations

from typing import Any

from woodrat.canon.form import Json
from woodrat.explain.remake import Again
from woodrat.records import dataclass
from woodrat.runs.steps import Decision


@dataclass(frozen=True, slots=True)
class Belief:
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

    def to_json(self) -> dict[str, Any]:
        """Return the belief as plain JSON."""
        return {
            "key": self.key,
            "entity": self.entity,
            "field": self.field,
            "before": self.before,
            "now": self.now,
            "missing": self.missing,
            "observations": list(self.observations),
            "observationsNow": list(self.observations_now),
            "change": self.change,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Stale:
    """A decision whose evidence is believed otherwise now."""

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
    again: Again
    """What would be decided now."""

    @property
    def outcome(self) -> str:
        """`flip`, `same` or `unknown`."""
        return self.again.outcome

    @property
    def chosen_now(self) -> Json:
        """What would be chosen now; null where that is not known."""
        return self.again.chosen

    @property
    def sentence(self) -> str:
        """What would come of the decision now, in a few words."""
        return self.again.sentence

    def to_json(self) -> dict[str, Any]:
        """Return the decision with both beliefs as plain JSON."""
        return {
            "runId": self.run,
            "agent": self.agent,
            "query": self.query,
            "subject": self.subject,
            "finalContent": self.answer,
            "stageId": self.decision.stage,
            "chosen": self.decision.chosen,
            "rule": self.decision.rule,
            "decidedAt": self.decision.started_at or None,
            "position": self.decision.position,
            "outcome": self.outcome,
            "chosenNow": self.again.chosen,
            "ruleNow": self.again.rule,
            "reason": self.again.reason,
            "sentence": self.sentence,
            "beliefs": [belief.to_json() for belief in self.beliefs],
        }

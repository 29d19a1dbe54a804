"""References: what one step of a run names that it leans on, and what of it is affected by something else.

A read names observations, and a recall the runs it found. A decision names the observations, decisions and recalled
runs that the facts it looked at came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.records import dataclass, field
from woodrat.runs.steps import Decision, Read, ref, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.ids import Ref

DecisionKey = tuple[str, str]
"""A run, and the span of a decision of it."""
StageKey = tuple[str, str]
"""A run, and a stage that it decided."""


@dataclass(frozen=True, slots=True)
class References:
    """What a step leans on."""

    observations: frozenset[str] = frozenset()
    """Observations, by id."""
    decisions: frozenset[DecisionKey] = frozenset()
    """Decisions that facts are what was chosen of."""
    stages: frozenset[StageKey] = frozenset()
    """Stages of recalled runs that facts are what was chosen of."""
    runs: frozenset[str] = frozenset()
    """Runs that were recalled."""


def read_ref(origin: object) -> Ref | None:
    """Return the entity that a fact was read from; none of a fact that came from elsewhere."""
    if not isinstance(origin, dict) or origin.get("kind") != "read" or not isinstance(origin.get("field"), str):
        return None
    return ref(origin.get("entity"))


def named_observations(origin: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the observations that an origin names."""
    listed = origin.get("observations")
    if not isinstance(listed, list):
        return ()
    return tuple(listed if _TEXT.issuperset(map(type, listed)) else (id for id in listed if isinstance(id, str)))


_TEXT: Final = frozenset({str})


def evidence(made: Decision) -> dict[str, Mapping[str, Any]]:
    """Return where each fact that a decision looked at came from; of one without conditions, each it was given."""
    looked: dict[str, Mapping[str, Any]] = {}
    for condition in made.conditions:
        looked.setdefault(condition.key, condition.origin)
    if not looked:
        looked = {key: origin for key, origin in made.facts_origin.items() if isinstance(origin, dict)}
    return looked


def fact_origins(made: Decision) -> dict[str, Mapping[str, Any]]:
    """Return where each fact of a decision came from, given or looked at: of several conditions the first tells."""
    return {**made.facts_origin, **evidence(made)}


def references(step: Read | Decision) -> References:
    """Return what a step leans on."""
    if isinstance(step, Read):
        return References(step.observations, runs=frozenset(recalled.run for recalled in step.recalled))
    return references_of(evidence(step).values())


def references_of(origins: Iterable[Mapping[str, Any]]) -> References:
    """Return what origins of facts name."""
    observations: set[str] = set()
    decisions: set[DecisionKey] = set()
    stages: set[StageKey] = set()
    for origin in origins:
        kind, run = origin.get("kind"), text(origin.get("run"))
        listed = origin.get("observations")
        observations.update(id for id in listed if isinstance(id, str)) if isinstance(listed, list) else None
        if kind == "decision" and run is not None and (span := text(origin.get("span"))) is not None:
            decisions.add((run, span))
        elif kind == "recall" and run is not None and (stage := text(origin.get("stage"))) is not None:
            stages.add((run, stage))
    return References(frozenset(observations), frozenset(decisions), frozenset(stages))


@dataclass(slots=True)
class Affected:
    """What leans on something, as far as it is known: grows while a search goes on."""

    observations: set[str] = field(default_factory=set)
    """Observations, by id."""
    decisions: set[DecisionKey] = field(default_factory=set)
    """Decisions."""
    stages: set[StageKey] = field(default_factory=set)
    """Stages that these decisions were made at."""
    runs: dict[str, int] = field(default_factory=dict)
    """Runs, each with the position of the first step that leans on something; whoever recalled it later leans too."""

    def add(self, other: Affected) -> None:
        """Take in what else is affected."""
        self.observations |= other.observations
        self.decisions |= other.decisions
        self.stages |= other.stages
        for run, position in other.runs.items():
            self.runs[run] = min(position, self.runs.get(run, position))

    def leans(self, named: References, position: int) -> bool:
        """Return whether a step at a position leans on something affected."""
        return (
            not self.observations.isdisjoint(named.observations)
            or not self.decisions.isdisjoint(named.decisions)
            or not self.stages.isdisjoint(named.stages)
            or any(self.recalled(run, position) for run in named.runs)
        )

    def recalled(self, run: str, position: int) -> bool:
        """Return whether who recalled a run at a position was shown something affected."""
        return self.runs.get(run, position) < position

"""Timeline: how an entity's state changed with each observation, and observations by time across entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from woodrat.canon.ids import Ref
from woodrat.merge import snapshot
from woodrat.merge.diff import FieldChange, field_changes
from woodrat.merge.fold import Folding, MergeState
from woodrat.merge.rules import Rules
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.asof import Stored
from woodrat.state.observation import Observation


@dataclass(frozen=True, slots=True)
class Step(Record):
    """One observation and its changes."""

    COMPACT: ClassVar = ("position", "observation", "deleted", "changes")
    """The members in a list."""

    position: int
    """Its position in the log."""
    observation: Observation
    """What was said."""
    deleted: bool
    """Whether the entity was deleted after it."""
    changes: tuple[FieldChange, ...]
    """Fields it changed, before and after; empty when it lost or was late."""


def history(
    stored: Iterable[Stored], members: Iterable[Ref], rules_at: Callable[[int], Rules], field: str | None = None
) -> tuple[Step, ...]:
    """Return the steps by which these entities got their state, by position.

    Each step is merged under the schema in force at its position; a step of a new schema folds again. With `field`
    only the steps that state it, or change it, are returned.
    """
    group = tuple(members)
    steps: list[Step] = []
    folding: Folding | None = None
    before: dict[str, Any] = {}
    for item in sorted(stored, key=lambda item: item.position):
        rules = rules_at(item.position)
        if folding is None or folding.rules.schema.digest != rules.schema.digest:
            known = [] if folding is None else list(folding.observations.values())
            folding = Folding(group, rules)
            for observation in known:
                folding.add(observation)
            before = shown_fields(folding.state, rules)
        state = folding.add(item.observation)
        after = shown_fields(state, rules)
        step = step_between(item.position, item.observation, before, after, state.deleted, field)
        before = after
        if step is not None:
            steps.append(step)
    return tuple(steps)


def step_between(
    position: int, said: Observation, before: dict[str, Any], after: dict[str, Any], deleted: bool, field: str | None
) -> Step | None:
    """Return the step from the fields before an observation to those after it; None if it is not about `field`."""
    changes = field_changes(before, after)
    if field is not None:
        changes = tuple(change for change in changes if change.field == field)
        if not changes and field not in said.stated:
            return None
    return Step(position, said, deleted, changes)


def shown_fields(state: MergeState, rules: Rules) -> dict[str, Any]:
    """Return the fields that a state shows, by name."""
    return dict(sorted(snapshot.fields_of(state, rules).items()))


@dataclass(frozen=True, slots=True)
class Event(Record):
    """One observation in order of observation time."""

    COMPACT: ClassVar = ("position", "observation")
    """What a list shows of it."""

    observed_at: str
    """When it was seen."""
    position: int
    """Where it stands in the log."""
    observation: Observation
    """What was said."""


def timeline(stored: Iterable[Stored], since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
    """Return observations from `since` to before `until`, by observation time; equal times by digest."""
    found = [
        Event(item.observation.observed_at, item.position, item.observation)
        for item in stored
        if (since is None or item.observation.observed_at >= since)
        and (until is None or item.observation.observed_at < until)
    ]
    return tuple(sorted(found, key=lambda event: (event.observed_at, event.observation.digest)))

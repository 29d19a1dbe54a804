"""Edit: a fork beside the run it was made from, where what was edited is why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.compare.cause import BEHAVIOUR, Cause
from woodrat.compare.contrast import short
from woodrat.records import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.canon.form import Json
    from woodrat.compare.divergence import Divergence, StepPair
    from woodrat.runs.record import RunRecord

CHANGES_MAX = 3
"""How many changes of one edit a sentence names."""


def with_edit(found: Divergence, a: RunRecord, b: RunRecord) -> Divergence:
    """Return how two runs compare, with the edit as the cause where one is a fork of the other.

    A difference in behaviour before the edited step has another cause; then the edit is only named beside it.
    """
    for parent, fork, side in ((a, b, 0), (b, a, 1)):
        told = fork.forked_from
        if told is not None and told.get("run") == parent.id and parent is not fork:
            return _told(found, parent, told, side)
    return found


def completed(fork: RunRecord, parent: RunRecord) -> RunRecord:
    """Return a fork with what the run it was made from wrote before the edit: that was not written again."""
    told = fork.forked_from
    if told is None or told.get("run") != parent.id or parent is fork:
        return fork
    step = told.get("step")
    before = [write for write in parent.writes if type(step) is int and write.step is not None and write.step < step]
    return replace(fork, writes=(*before, *fork.writes))


def _told(found: Divergence, parent: RunRecord, told: Mapping[str, Any], side: int) -> Divergence:
    edited, was = _object(told.get("set")), _object(told.get("was"))
    ours = "the second run" if side == 0 else "the first run"
    changes = [f"{path} was edited from {short(was.get(path))} to {short(new)}" for path, new in edited.items()]
    more = f" and {len(changes) - CHANGES_MAX} more" if len(changes) > CHANGES_MAX else ""
    what = told.get("what") or "step"
    text = f"{', '.join(changes[:CHANGES_MAX])}{more} at step {told.get('step')}, the {what}"
    row = _row_of(found.rows, parent, told, side)
    if found.same:
        return replace(found, edit=told, sentence=f"In {ours}, {text}, and it did the same. {found.sentence}")
    if found.step is not None and row is not None and found.step < row and found.level == BEHAVIOUR:
        return replace(found, edit=told, sentence=f"{found.sentence} Later, in {ours}, {text}.")
    path = next(iter(edited), None)
    first, second = (was.get(path), edited.get(path)) if path is not None else (None, None)
    sides = (first, second) if side == 0 else (second, first)
    cause = Cause(
        "edit",
        f"in {ours}, {text}",
        {"run": parent.id, "step": told.get("step"), "set": edited, "was": was},
        level=found.level,
        path=path,
        other_path=path,
        first=sides[0],
        second=sides[1],
    )
    return replace(
        found, edit=told, cause=cause, sentence=f"The edit is the cause: in {ours}, {text}. {found.sentence}"
    )


def _row_of(rows: tuple[StepPair, ...], parent: RunRecord, told: Mapping[str, Any], side: int) -> int | None:
    """Return the row of the step that was edited."""
    positions = {part.position for part in parent.steps if part.span == told.get("span")}
    return next((row.step for row in rows if row.positions[side] in positions), None)


def _object(value: object) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}

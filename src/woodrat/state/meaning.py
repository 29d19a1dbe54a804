"""Meaning: what the indexes need to know of an entry, read from its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.records import dataclass
from woodrat.state import observation, schema
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema

RUN_KINDS = frozenset(
    {
        "run.started",
        "run.read",
        "run.model",
        "run.tool",
        "run.decided",
        "run.noted",
        "run.ended",
        "run.judged",
    }
)
"""The kinds of entry a run is made of."""
FALLBACK = "fallback"
"""Where a start or an end lists what it leaves to other entries, and says itself only where none of them does."""


def leaves(body: Mapping[str, Any], name: str) -> bool:
    """Return whether an entry leaves a member to others, and says it itself only where none of them does."""
    left = body.get(FALLBACK)
    return isinstance(left, list) and name in left


@dataclass(frozen=True, slots=True)
class Step:
    """Which run an entry belongs to, and whom the run is about."""

    run: str
    """Id of the run."""
    subject: Ref | None = None
    """The entity the run is about; stated by `run.started` only."""


Meaning = Observation | Schema | Step | None
"""What an entry's body was parsed to, where that is a concern of the indexes."""


def meaning_of(kind: str, body: bytes | None) -> Meaning:
    """Return what an entry of the log means; nothing once its body is erased."""
    if body is None:
        return None
    if kind == "observation":
        return observation.stored(body)
    return schema.stored(body) if kind == "schema" else step_of(kind, body)


def step_of(kind: str, body: bytes) -> Step | None:
    """Return what an entry of a run says for the indexes; `None` for another kind, or a body without a run."""
    if kind not in RUN_KINDS:
        return None
    value: Any = form.decode(body)
    run = value.get("run") if isinstance(value, dict) else None
    if not isinstance(run, str):
        return None
    subject = value.get("subject") if kind == "run.started" else None
    try:
        return Step(run, ids.parse_ref(subject, "subject") if isinstance(subject, str) else None)
    except Refused:
        return Step(run)

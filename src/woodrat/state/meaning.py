"""Meaning: the parts of an entry's body that the indexes need."""

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
"""The kinds of entries in a run."""
FALLBACK = "fallback"
"""The member in which a start or an end lists facts that other entries normally state."""


def leaves(body: Mapping[str, Any], name: str) -> bool:
    """Return True if an entry leaves a member to others, and states it only if none of them does."""
    left = body.get(FALLBACK)
    return isinstance(left, list) and name in left


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The run of an entry, and its subject."""

    run: str
    """Id of the run."""
    subject: Ref | None = None
    """The entity the run is about; stated by `run.started` only."""


Meaning = Observation | Schema | RunEntry | None
"""The parsed body of an entry, if the indexes need it."""


def meaning_of(kind: str, body: bytes | None) -> Meaning:
    """Return the meaning of an entry; None once its body is erased."""
    if body is None:
        return None
    if kind == "observation":
        return observation.stored(body)
    return schema.stored(body) if kind == "schema" else step_of(kind, body)


def step_of(kind: str, body: bytes) -> RunEntry | None:
    """Return the meaning of an entry of a run; None for another kind, or a body without a run."""
    if kind not in RUN_KINDS:
        return None
    value: Any = form.decode(body)
    run = value.get("run") if isinstance(value, dict) else None
    if not isinstance(run, str):
        return None
    subject = value.get("subject") if kind == "run.started" else None
    try:
        return RunEntry(run, ids.parse_ref(subject, "subject") if isinstance(subject, str) else None)
    except Refused:
        return RunEntry(run)

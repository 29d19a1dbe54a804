"""Traces: how a run is named to other processes, by its id and span or as W3C Trace Context writes it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.canon.digest import base32, unbase32

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_VARIABLE: Final = "WOODRAT_RUN"
"""Names the current run to other processes: its id, a slash, and the span it is at."""
AGENT_VARIABLE: Final = "WOODRAT_AGENT"
"""Names the run's owner to other processes: only this agent records in the run."""
TRACE_VARIABLE: Final = "TRACEPARENT"
"""The same as W3C Trace Context writes it; other tracers set it too."""

_SPAN = re.compile("[0-9a-f]{16}")
_TRACE_ID = re.compile("[0-9a-f]{32}")
_TRACE = re.compile("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class Place(NamedTuple):
    """A run, and a step of it, as another process names it."""

    run: str
    span: str | None


def place_of(text: str) -> Place:
    """Return what `WOODRAT_RUN` names: a run's id, and after a slash the span of a step."""
    run, _, span = text.strip().partition("/")
    return Place(run, span if _SPAN.fullmatch(span) else None)


def traced(text: object) -> Place | None:
    """Return the run and span that a W3C `traceparent` would name, or none when it is not one."""
    match = _TRACE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or match[1] == "ff" or not int(match[2], 16) or not int(match[3], 16):
        return None
    return Place(run_of(match[2]), match[3])


def run_of(trace: str) -> str:
    """Return the run whose id spells a trace id, as that of a run which was recorded by the library does."""
    return f"run_{base32(bytes.fromhex(trace))}"


def trace_of(text: object) -> str | None:
    """Return the trace id of a `traceparent`, or of a trace id itself; none when it is neither."""
    if isinstance(text, str) and _TRACE_ID.fullmatch(text):
        return text
    return None if traced(text) is None else str(text).strip().split("-")[1]


def trace_id(run: str) -> str:
    """Return the trace id of a run: the 16 bytes its id spells, or a digest of an id that spells others."""
    data = unbase32(run.removeprefix("run_"))
    return (data if data is not None and len(data) == 16 else sha256(run.encode()).digest()[:16]).hex()


def traceparent(trace: str, span: str) -> str:
    """Return a W3C `traceparent`, sampled."""
    return f"00-{trace}-{span}-01"


def named_by(environment: Mapping[str, str]) -> tuple[Place | None, str | None]:
    """Return the run that the variables of a process name, and its `traceparent` where that is all there is."""
    if named := environment.get(RUN_VARIABLE):
        return place_of(named), None
    trace = environment.get(TRACE_VARIABLE)
    return None, trace if traced(trace) else None

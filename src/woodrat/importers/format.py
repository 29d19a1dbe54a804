"""Formats: how to recognise a document of a format, and its reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault
from woodrat.records import dataclass, field

if TYPE_CHECKING:
    from woodrat.importers.spans import Span
    from woodrat.runs.recordings import Placed


@dataclass(slots=True)
class ParsedDocument:
    """The parts read from a document so far; `Recordings` describes the members."""

    trajectories: list[Placed] = field(default_factory=list)
    snapshots: list[Placed] = field(default_factory=list)
    records: list[Placed] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    judged: list[dict[str, Any]] = field(default_factory=list)
    """Evaluations of traces and their spans."""
    faults: list[Fault] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Format:
    """One format of recordings."""

    name: str
    """Its name."""
    fits: Callable[[dict[str, Any]], bool]
    """Whether an object is a run in this format, or a part of one."""
    read: Callable[[Sequence[Placed], ParsedDocument], None]
    """Reads objects of it: one run, or with `parts` all that a document has."""
    parts: bool = False
    """Whether a run is several objects, such as the lines of a file or the spans of a trace."""
    beside: Callable[[dict[str, Any]], bool] | None = None
    """Whether an object may be among parts that match without being a document itself."""
    weak: bool = False
    """Whether an object is in this format only if it is in no other."""

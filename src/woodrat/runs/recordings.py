"""Recordings: the runs of one document that was made elsewhere, in formats of our own.

An importer (`woodrat/importers/`) reads a document of whatever format and hands over what is here. What is in no format
of a recording is `told`: a run that happens when it is recorded, or entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from woodrat.errors import Fault, Refused
from woodrat.records import dataclass, field
from woodrat.runs import json_values

Placed = tuple[dict[str, Any], str]
"""An object, and where in its document it stands."""

SHARED: Final = "document"
"""The attribute that holds what a document says beside its list of runs."""
NOTHING_RECORDED: Final = "Nothing was recorded."
FILE_FAULTS_MAX: Final = 1_000
"""After how many faults the rest of a file is not looked at."""
EMPTY: Final = Fault("", "there is no run in it", "Send a run, or a list of runs or entries.")


@dataclass(frozen=True, slots=True)
class Recordings:
    """The runs of a document."""

    told: tuple[Any, ...] = ()
    """The document itself, where it is no recording."""
    trajectories: list[Placed] = field(default_factory=list)
    """Runs in the neutral format, each with its place in the document."""
    snapshots: list[Placed] = field(default_factory=list)
    """Runs in the snapshot format."""
    records: list[Placed] = field(default_factory=list)
    """Run records in JSON."""
    entries: Callable[[str, bool], list[dict[str, Any]]] | None = None
    """Entries of an agent's runs, made from spans; with true it is believed what agents call themselves."""
    is_steps: bool = False
    """Whether the document is the steps of one run."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What the document says beside its runs."""
    faults: tuple[Fault, ...] = ()
    """All that is wrong with it, so far."""

    @property
    def is_empty(self) -> bool:
        """Whether the document holds no run."""
        return not (self.trajectories or self.snapshots or self.records or self.entries)


class RecordingBatch(Protocol):
    """A part of a file that is recorded in one write."""

    name: str
    """The file."""

    def recordings(self) -> Recordings:
        """Return the runs in it."""

    def placed(self, faults: Iterable[Fault]) -> list[Fault]:
        """Return faults that say where in the file they are."""


class RecordingSource(Protocol):
    """A file of recordings, which can be read again."""

    is_long: bool
    """Whether it is read in several batches."""

    def batches(self) -> Iterator[RecordingBatch]:
        """Yield what the file holds, from its beginning; raise `Refused` with all that cannot be read."""


def keepable(document: object, outcome: str = NOTHING_RECORDED) -> Any:
    """Return a document with values that a log can keep; raise `Refused` for one that has others, or none."""
    faults: list[Fault] = []
    plain = json_values.keepable(document, faults)
    if not faults and plain == []:
        faults.append(EMPTY)
    if faults:
        raise Refused(faults, outcome)
    return plain

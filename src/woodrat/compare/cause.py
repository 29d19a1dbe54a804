"""Cause: why two runs differ at one step, as a clause for people and as data for programs.

Where the log holds the observation that changed what was read, the cause leads to it: a statement. A *lineage* is what
a log knows of such observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from woodrat.canon.form import Json
from woodrat.record_json import Record
from woodrat.records import dataclass

KINDS: Final = (
    "edit",
    "input",
    "state",
    "schema",
    "tool",
    "output",
    "model",
    "prompt",
    "parameters",
    "rule",
    "code",
    "in_force",
    "step",
    "wording",
    "unrecorded",
    "nothing_in_common",
)
"""The classes of causes."""

NONE, WORDING, BEHAVIOUR, OUTCOME = "none", "wording", "behaviour", "outcome"
"""The levels at which runs differ: what was said in prose and how models were asked; what was done; what came of it."""


@dataclass(frozen=True, slots=True)
class Statement(Record):
    """An observation as a log holds it."""

    observation: str
    """Its id."""
    entity: str
    """Whom it speaks of, as a reference."""
    op: str
    """`assert`, `correct`, `retract`, `delete` or `restore`."""
    agent: str
    """Who said so."""
    position: int
    """Where it stands in the log."""
    recorded_at: str | None
    """When the log took it."""
    fields: Mapping[str, Json]
    """The values stated."""
    replaces: tuple[str, ...] = ()
    """Ids of the observations it names: those a retraction withdraws."""
    source: str | None = None
    """Id of the source it names."""
    source_name: str | None = None
    """What the source was called when it was first delivered."""
    run: str | None = None
    """The run it was said in."""
    log: str | None = None
    """Name of the log that holds it."""
    ledger: str | None = None
    """`first` or `second` where runs of two ledgers are compared."""


@dataclass(frozen=True, slots=True)
class Cause(Record):
    """Why two runs differ at one step."""

    kind: str
    """One of `KINDS`."""
    text: str
    """The cause as a clause."""
    details: Mapping[str, Any]
    """What the clause speaks of, for programs."""
    statement: Statement | None = None
    """The observation that changed what was read, where the log has it."""
    level: str = BEHAVIOUR
    """`wording`, `behaviour` or `outcome`."""
    change: str | None = None
    """What became of the part: `changed`, `added`, `removed`, `renamed`, `moved`, `reordered` or `retyped`."""
    path: str | None = None
    """Where the first run has that part, within the arguments, the result or the fields; none where it has none."""
    other_path: str | None = None
    """Where the second run has it."""
    first: Json = None
    """What the first run has there, whole."""
    second: Json = None
    """What the second run has there, whole."""


class Lineage(Protocol):
    """What a log knows of the observations that runs read."""

    def place(self, log: str | None, position: int | None) -> int | None:
        """Return a position of a read where the log it names is this one; those of other logs mean nothing here."""

    def statement(self, observation: str) -> Statement | None:
        """Return an observation by its id; none where it is not here."""

    def between(self, entity: str, after: int, through: int) -> Sequence[Statement]:
        """Return what was said of an entity after one position and up to another, by position."""

    def schema(self, entity: str, position: int) -> int | None:
        """Return the version of the schema in force for an entity at a position, 0 without one; none for no entity."""


class NoLineage:
    """The lineage of runs whose log is not here: the records alone speak."""

    def place(self, log: str | None, position: int | None) -> int | None:
        """Return nothing."""
        return None

    def statement(self, observation: str) -> Statement | None:
        """Return nothing."""
        return None

    def between(self, entity: str, after: int, through: int) -> Sequence[Statement]:
        """Return nothing."""
        return ()

    def schema(self, entity: str, position: int) -> int | None:
        """Return nothing."""
        return None


NO_LINEAGE: Final = NoLineage()

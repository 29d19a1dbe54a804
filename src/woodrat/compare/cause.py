"""Cause: why two runs differ at one step, as a clause for people and as data for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.compare.statement import Statement
from woodrat.records import dataclass

KINDS: Final = (
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
    "unrecorded",
    "nothing_in_common",
)
"""The classes of causes."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two runs differ at one step."""

    kind: str
    """One of `KINDS`."""
    text: str
    """The cause as a clause."""
    details: Mapping[str, Any]
    """What the clause speaks of, for programs."""
    statement: Statement | None = None
    """The observation that changed what was read, where the log has it."""

    def to_json(self) -> dict[str, Any]:
        """Return the cause as plain JSON."""
        found = {"kind": self.kind, "text": self.text, **self.details}
        return found if self.statement is None else {**found, "statement": self.statement.to_json()}

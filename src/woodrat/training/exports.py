"""Exports: that rows for training left the ledger, as the log says it.

The record is an `audit_event`: the arguments, the position, and the digest of the bytes. It lists no runs. The same
arguments at the same position give the same rows, so whether they include a run can be checked for that run alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from woodrat.record_json import WHEN_SET, Record, derived
from woodrat.records import dataclass, field
from woodrat.training.rows import LeftOut

if TYPE_CHECKING:
    from woodrat.state.observation import Observation

ACTION: Final = "export.training"
"""The name of an export of training rows in the log."""
EXPORTS: Final = "exported"
"""The term under which all exports are listed."""
FILTERS: Final = ("agent", "since", "until", "verdict")
"""Filters of an export."""


@dataclass(frozen=True, slots=True)
class Exported(Record):
    """The result of an export."""

    kind: str
    """`sft`, `dpo`, `kto` or `process-rl`."""
    flavour: str
    """`trl` or `openai`."""
    rows: int
    """Number of rows."""
    runs: int
    """Number of their runs."""
    position: int
    """The position of the log it was read at."""
    left_out: tuple[LeftOut, ...]
    """Requested runs without a row, each with the reason; the first of them, if they are many."""
    left_out_count: int
    """Number of rows."""
    out: str | None
    """The file, where it was given as a path."""
    sha256: str
    """Digest of the bytes written, in hex."""
    event: str | None = None
    """The `audit_event` that records it in the log; None without a record."""
    times: Mapping[str, str] = field(default=MappingProxyType({}), metadata=WHEN_SET)
    """Times that words such as `yesterday` resolved to, by argument."""


@dataclass(frozen=True, slots=True)
class Export(Record):
    """An export with rows of runs that depend on the subject of the question."""

    id: str
    """The reference of its `audit_event`."""
    kind: str
    """`sft`, `dpo`, `kto` or `process-rl`."""
    flavour: str
    """`trl` or `openai`."""
    agent: str
    """Who exported."""
    at: str
    """When it was recorded."""
    position: int
    """Position of that entry."""
    as_of: int
    """The position it was read at."""
    out: str | None
    """Name of the file, if any."""
    sha256: str | None
    """Digest of the bytes written, in hex."""
    rows: int | None
    """Number of rows."""
    leaning: int
    """Number of rows from these runs."""
    runs: tuple[str, ...]
    """These runs."""

    @derived
    def sentence(self) -> str:
        """A summary of the export and its dependent rows."""
        where = "" if self.out is None else f" to {self.out}"
        return f"exported as {self.kind}{where} by {self.agent}: {self.leaning} of {self.rows} rows"


def export_event(
    id: str,
    agent: str,
    log: str | None,
    exported: Exported,
    filters: Mapping[str, str | None],
    effective: str | None,
    *,
    pair_by: str | None,
    metadata: bool,
    file_name: str | None,
) -> dict[str, Any]:
    """Return the record of an export for the log."""
    details = {
        "log": log,
        "position": exported.position,
        "kind": exported.kind,
        "flavour": exported.flavour,
        "pair_by": pair_by,
        "filters": {name: value for name, value in filters.items() if value is not None},
        "effective": effective,
        "metadata": metadata,
        "rows": exported.rows,
        "runs": exported.runs,
        "sha256": exported.sha256,
        "out": file_name,
    }
    return {
        "entity_type": "audit_event",
        "id": id,
        "action": ACTION,
        "actor": agent,
        "category": "export",
        "outcome": "success",
        "details": {name: value for name, value in details.items() if value is not None},
    }


def is_export(said: Observation) -> bool:
    """Return True if an observation is the record of an export."""
    return said.entity.type == "audit_event" and said.fields.get("action") == ACTION

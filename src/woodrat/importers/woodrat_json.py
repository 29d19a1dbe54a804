"""Woodrat's own formats: exported run records, trajectories and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.importers.format import Format
from woodrat.runs import run_json, snapshot_format, trajectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed


def _is_trajectory(item: Mapping[str, Any]) -> bool:
    return "messages" not in item and trajectory.is_trajectory(item)


def _read_records(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.records += items


def _read_trajectories(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.trajectories += items


def _read_snapshots(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.snapshots += items


FORMATS: Final = (
    Format("run record", run_json.is_run_record, _read_records),
    Format("trajectory", _is_trajectory, _read_trajectories),
    Format("snapshot", snapshot_format.is_snapshot, _read_snapshots),
)

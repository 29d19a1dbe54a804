"""The verb `export training`: exports rows, and records the export in the log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from woodrat.clock import fresh_id
from woodrat.errors import Unavailable
from woodrat.records import replace
from woodrat.runs.reader.lists import ask_runs
from woodrat.runs.reader.run_reader import open_runs
from woodrat.training import reader as training_reader
from woodrat.training import rows
from woodrat.training.exports import export_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import IO

    from woodrat.clock import Clock
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.ledger.report import Report
    from woodrat.training.exports import Exported

    Store = Callable[[dict[str, Any]], Report]
    """Stores a record, as the agent that exports."""


def export_training(
    context: Context,
    kind: str,
    *,
    out: str | PathLike[str] | IO[str] | IO[bytes],
    flavour: str = rows.TRL,
    pair_by: str = rows.INPUT,
    filters: Mapping[str, str | None],
    metadata: bool = True,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write the rows of the runs that fit `filters` (`exports.FILTERS`), and store that they were exported.

    Nothing is stored without `store`, if a stand-in replaces the log, or on a read-only ledger.
    """
    asked = ask_runs(**filters)
    with open_runs(context) as run_reader:
        exported = training_reader.export(
            run_reader, asked, kind, out, flavour=flavour, pair_by=pair_by, metadata=metadata, progress=progress
        )
    if store is None or context.stand_in is not None or context.engine.readonly:
        return exported
    with context.engine.view(context.tenant) as view:
        log = view.head().log
    event = record(
        store,
        context.clock,
        context.agent,
        log,
        exported,
        filters,
        context.valid_at,
        pair_by=pair_by,
        metadata=metadata,
    )
    return replace(exported, event=event)


def record(
    store: Store,
    clock: Clock,
    agent: str,
    log: str | None,
    exported: Exported,
    filters: Mapping[str, str | None],
    effective: str | None,
    *,
    pair_by: str = rows.INPUT,
    metadata: bool,
) -> str:
    """Store the event that records an export of rows, and return its reference."""
    id = fresh_id(clock, "exp_")
    # the folder describes the machine rather than the export
    file_name = None if exported.out is None else os.path.basename(exported.out) or exported.out
    named = None if pair_by == rows.INPUT else pair_by
    event = export_event(
        id, agent, log, exported, filters, effective, pair_by=named, metadata=metadata, file_name=file_name
    )
    try:
        return str(store(event).entities[0])
    except Unavailable as problem:
        where = "The rows were" if exported.out is None else f"{exported.out} was"
        raise Unavailable(
            f"{where} written, but the export could not be recorded in the log: {problem} "
            "Export again, or without a record.",
            {"out": exported.out},
        ) from problem

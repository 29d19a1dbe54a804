"""Where exports of training rows are found, and the runs that were given the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.ledger import index as shelving
from woodrat.ledger.index import Index
from woodrat.runs.record import record_of
from woodrat.training import rows
from woodrat.training.exports import ACTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.context import Context
    from woodrat.ledger.rebuild import Progress
    from woodrat.log.entry import Entry

EXPORTS: Final = "traces/exported"
"""The shelf of all exports; the index of `explain` keeps it."""
_PAIRED: Final = "traces/exported/paired"
_INPUT: Final = "inputs/"
PAIRING: Final = frozenset({rows.DPO, rows.PROCESS})
"""Kinds of rows that are made of several runs."""


def shelves(body: Mapping[str, Any]) -> set[str]:
    """Return the shelves that an observation lies on as the record of an export."""
    fields = body.get("fields")
    if body["entity"]["type"] != "audit_event" or not isinstance(fields, dict) or fields.get("action") != ACTION:
        return set()
    details = fields.get("details")
    paired = isinstance(details, dict) and details.get("kind") in PAIRING
    return {EXPORTS, _PAIRED} if paired else {EXPORTS}


def input_shelf(digest: bytes) -> str:
    """Return the shelf of the runs that were given what this is the digest of."""
    return _INPUT + digest.hex()


def _inputs(entry: Entry) -> set[str]:
    if entry.body is None:
        return set()
    began = record_of(str(form.decode(entry.body).get("run")), [entry])
    return {input_shelf(rows.input_of(began))}


INDEX: Final = Index("inputs", frozenset({"run.started"}), _inputs)
"""Where runs that were given the same are found."""


def catch_up(context: Context, progress: Progress | None = None) -> None:
    """Bring the index of inputs up to date, if any export pairs runs that were given the same."""
    with context.engine.view(context.tenant) as view:
        paired = next(iter(view.shelf(_PAIRED)), None) is not None
    if paired:
        shelving.catch_up(context.engine, context.tenant, INDEX, progress=progress)

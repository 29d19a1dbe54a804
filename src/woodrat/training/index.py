"""Where exports of training rows are found, and the runs that can be paired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.ledger import index as log_index
from woodrat.ledger.index import Index
from woodrat.runs.record import record_of
from woodrat.training import rows
from woodrat.training.exports import ACTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

TRACES: Final = "traces"
"""The index that lists exports; `explain` keeps it."""
EXPORTS: Final = "exported"
"""The term of all exports."""
PAIRED: Final = "exported/paired"
"""The term of those whose rows are made of several runs."""
PAIRING: Final = frozenset({rows.DPO, rows.PROCESS})
"""Kinds of rows that are made of several runs."""


def terms(body: Mapping[str, Any]) -> set[str]:
    """Return the terms under which an observation is listed as the record of an export."""
    fields = body.get("fields")
    if body["entity"]["type"] != "audit_event" or not isinstance(fields, dict) or fields.get("action") != ACTION:
        return set()
    details = fields.get("details")
    paired = isinstance(details, dict) and details.get("kind") in PAIRING
    return {EXPORTS, PAIRED} if paired else {EXPORTS}


def pair_term(key: bytes) -> str:
    """Return the term of the runs that have this key (`rows.pair_key`)."""
    return key.hex()


def _pairs(entry: Entry) -> set[str]:
    if entry.body is None:
        return set()
    began = record_of(str(form.decode(entry.body).get("run")), [entry])
    keys = (rows.pair_key(began, name) for name in (rows.INPUT, *rows.PAIR_FIELDS, *began.attributes))
    return {pair_term(key) for key in keys if key is not None}


INDEX: Final = Index("pairs", frozenset({"run.started"}), _pairs)
"""Where runs that can be paired are found."""


def catch_up(context: Context, progress: Progress | None = None) -> None:
    """Bring the index of pairs up to date, if any export pairs runs."""
    with context.engine.view(context.tenant) as view:
        paired = log_index.is_listed(view, TRACES, PAIRED)
    if paired:
        log_index.catch_up(context.engine, context.tenant, INDEX, progress=progress)

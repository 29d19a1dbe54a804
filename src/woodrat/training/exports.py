"""Exporting: that rows for training left the ledger, kept in the log; and which exports lean on something.

The record is an `audit_event`: what was asked for, at which position, and the digest of the bytes. It lists no runs.
The same question asked of the same position has the same rows, so whether a run is among them is asked again, of that
run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.clock import fresh_id
from woodrat.errors import Refused, Unavailable
from woodrat.explain.impact import Export, leaning
from woodrat.ledger import index as shelving
from woodrat.ledger.index import Index, Shelves
from woodrat.ledger.moments import here
from woodrat.ledger.read import Reader
from woodrat.runs import reader as run_reader
from woodrat.runs.reader import Recounter
from woodrat.runs.record import record_of
from woodrat.runs.recorder import current
from woodrat.state.asof import AsOf
from woodrat.training import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, View
    from woodrat.ledger.rebuild import Progress
    from woodrat.log.entry import Entry
    from woodrat.merge import Policy
    from woodrat.training.reader import Exported

ACTION: Final = "export.training"
"""What an export of training rows is called in the log."""
FILTERS: Final = ("agent", "since", "until", "verdict")
"""What an export can be narrowed by."""

_ALL, _PAIRED = "traces/exported", "traces/exported/paired"
_INPUT: Final = "inputs/"
_PAIRING: Final = frozenset({rows.DPO, rows.PROCESS})


def record(
    ledger: Ledger, found: Exported, asked: Mapping[str, str | None], effective: str | None, *, metadata: bool
) -> str | None:
    """Keep in the log that rows were exported; return the event, none where the log cannot be written to.

    A replay and a ledger open for reading alone leave no record.
    """
    engine = ledger.context.engine
    if getattr(engine, "readonly", False) or current.write_context(ledger.context).stand_in is not None:
        return None
    with engine.view(ledger.tenant) as view:
        log = view.head().log
    return tell(ledger, log, found, asked, effective, metadata=metadata)


def tell(
    ledger: Ledger,
    log: str | None,
    found: Exported,
    asked: Mapping[str, str | None],
    effective: str | None,
    *,
    metadata: bool,
) -> str:
    """Store the event that says that rows of a log were exported, and return it."""
    details = {
        "log": log,
        "position": found.position,
        "kind": found.kind,
        "flavour": found.flavour,
        "filters": {name: value for name, value in asked.items() if value is not None},
        "effective": effective,
        "metadata": metadata,
        "rows": found.rows,
        "runs": found.runs,
        "sha256": found.sha256,
        "out": None if found.out is None else _base(found.out),
    }
    event = {
        "entity_type": "audit_event",
        "id": fresh_id(ledger.context.clock, "exp_"),
        "action": ACTION,
        "actor": ledger.agent,
        "category": "export",
        "outcome": "success",
        "details": {name: value for name, value in details.items() if value is not None},
    }
    try:
        return str(ledger.store(event).entities[0])
    except Unavailable as problem:
        where = "The rows were" if found.out is None else f"{found.out} was"
        raise Unavailable(
            f"{where} written, and the log could not be told: {problem} Export again, or without a record.",
            {"out": found.out},
        ) from problem


def _base(path: str) -> str:
    """Return the name of a file without its folder, which says more of a machine than of the export."""
    import os

    return os.path.basename(path) or path


# Where they are found


def shelves(body: Mapping[str, Any]) -> set[str]:
    """Return the shelves that an observation lies on as the record of an export."""
    fields = body.get("fields")
    if body["entity"]["type"] != "audit_event" or not isinstance(fields, dict) or fields.get("action") != ACTION:
        return set()
    details = fields.get("details")
    paired = isinstance(details, dict) and details.get("kind") in _PAIRING
    return {_ALL, _PAIRED} if paired else {_ALL}


def _inputs(entry: Entry) -> set[str]:
    if entry.body is None:
        return set()
    began = record_of(str(form.decode(entry.body).get("run")), [entry])
    return {_INPUT + rows.input_of(began).hex()}


INDEX: Final = Index("inputs", frozenset({"run.started"}), _inputs)
"""Where runs that were given the same are found."""


def catch_up(engine: Engine, tenant: TenantId, progress: Progress | None = None) -> None:
    """Bring the index of inputs up to date, if any export pairs runs that were given the same."""
    with engine.view(tenant) as view:
        paired = next(iter(view.shelf(_PAIRED)), None) is not None
    if paired:
        shelving.catch_up(engine, tenant, INDEX, progress=progress)


# Which of them lean on something


def leaning_exports(
    view: View,
    through: int,
    traces: Shelves,
    policies: Mapping[str, Policy],
    runs: Iterable[str],
    observations: frozenset[str],
) -> Iterator[Export]:
    """Yield the exports with rows of runs that leaned on some observations by then, by position."""
    named = list(runs)
    inputs = Shelves(view, through, INDEX)
    for entry in traces.entries(_ALL) if named else ():
        assert entry.body is not None
        body: Any = form.decode(entry.body)
        details = body["fields"].get("details")
        if not isinstance(details, dict) or here(view, details.get("log"), details.get("position")) is None:
            continue  # it was made from another log, whose positions are not ours
        found = _counted(view, inputs, policies, entry, details, named, observations)
        if found is not None and found[0]:
            yield Export(
                id=f"audit_event/{body['entity']['key']}",
                kind=str(details["kind"]),
                flavour=str(details["flavour"]),
                agent=str(body["agent"]),
                at=entry.recorded_at,
                position=entry.position,
                as_of=details["position"],
                out=details.get("out"),
                sha256=details.get("sha256"),
                rows=details.get("rows"),
                leaning=found[0],
                runs=found[1],
            )


def _counted(
    view: View,
    inputs: Shelves,
    policies: Mapping[str, Policy],
    entry: Entry,
    details: Mapping[str, Any],
    runs: Iterable[str],
    observations: frozenset[str],
) -> tuple[int, tuple[str, ...]] | None:
    """Return how many rows of an export are of runs that leaned on something by then, and of which."""
    from woodrat.training.reader import Course

    position, effective, filters = details.get("position"), details.get("effective"), details.get("filters")
    if type(position) is not int or not 0 <= position < entry.position or not isinstance(filters, dict):
        return None
    try:
        rows.check(details.get("kind"), details.get("flavour"))
        asked = run_reader.ask_runs(**{name: filters.get(name) for name in FILTERS})
    except Refused:
        return None  # an event somebody else wrote under this name
    recounter = Recounter(Reader(view, AsOf(position, effective), policies))
    records = [found for id in runs if (found := recounter.find(id)) is not None and leaning(found, observations)]
    concerned = {found.id for found in records}
    among = set(concerned)
    if details["kind"] in _PAIRING:
        # A row is made of runs that were given the same; whom a run is paired with depends on those alone.
        for digest in {rows.input_of(found) for found in records}:
            for began in inputs.entries(_INPUT + digest.hex()):
                assert began.body is not None
                among.add(str(form.decode(began.body)["run"]))
    count, used = 0, set()
    for row in Course(recounter, asked, details["kind"], details["flavour"], among).rows(None):
        shared = concerned.intersection(row["metadata"]["runs"])
        count += bool(shared)
        used |= shared
    return count, tuple(id for id in runs if id in used)

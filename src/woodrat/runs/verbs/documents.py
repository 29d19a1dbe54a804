"""Documents: runs that happened elsewhere, recorded from a JSON document (docs/reference/recording.md).

A run that another tool recorded keeps its own times and is stored once; an importer reads it (`woodrat/importers/`). A
*told* run is an object: what was asked, its steps in order, the answer. It is recorded as if it happened now; rules are
evaluated here. *Entries* are a list of objects with a `kind`, in the format of docs/formats/runs.md, with their own
times; those the log holds already change nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import ids
from woodrat.errors import Fault, NotFound, Refused, pointer_part, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.write import check_key
from woodrat.records import replace
from woodrat.runs import run_json, snapshot_format, trajectory
from woodrat.runs.reader.run_reader import open_runs, run_record
from woodrat.runs.recorder.steps import NOTHING_RECORDED
from woodrat.runs.recordings import EMPTY, FILE_FAULTS_MAX, SHARED
from woodrat.runs.relay import Relay
from woodrat.runs.snapshot_format import is_snapshot
from woodrat.runs.values import NOTHING, error
from woodrat.runs.verbs.entries import append_runs, check_said_by, kind_of, read_entries, record_entries
from woodrat.runs.verbs.sent_steps import step as step_of
from woodrat.state.meaning import RUN_KINDS
from woodrat.state.redaction import hiding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.context import Context
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.log import LocalLog
    from woodrat.runs.recordings import Recordings, RecordingSource

STEPS_MAX: Final = 100_000
"""Most steps of one document."""

_ABOUT: Final = frozenset(
    {"query", "subject", "conversation", "principal", "inputs", "agent", "code", "runbook", "tool_configs", "pipeline"}
    | {"session", "attributes", "redact", "id", "recall", "traceparent", "parent"}
)
_END: Final = frozenset({"steps", "answer", "status", "error", "usage"})


def record(
    log: LocalLog,
    recordings: Recordings,
    key: str | None = None,
    *,
    own: bool = False,
    accounts: dict[str, bytes] | None = None,
) -> tuple[str, ...]:
    """Record the runs of a document: recordings, told runs, or a list of entries; return their ids.

    With a key the same document is recorded once, also where telling it was cut off in between. With `own` they must be
    runs of this ledger's agent, and nothing in them may be said in the name of another: `Forbidden` otherwise. With
    `accounts` nothing is recorded: they get a digest of what the document says of each run that it can be told by.
    """
    context = log.context
    if key is not None:
        check_key(key)
    if not recordings.told:
        return _record_recordings(context, recordings, own=own, accounts=accounts)
    (document,), faults = recordings.told, [*recordings.faults]
    items: list[Any] = document if isinstance(document, list) else [document]
    if any(isinstance(item, dict) and "kind" in item for item in items):
        return record_entries(context, items, key, own=own, accounts=accounts)
    paths = [f"/{number}" for number in range(len(items))] if isinstance(document, list) else [""]
    faults += [_unknown(item, path) for item, path in zip(items, paths, strict=True) if not _could_be_told(item)]
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    told = [_SentRun(item, path, faults) for item, path in zip(items, paths, strict=True)]
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    if own:
        for one in told:
            check_said_by(context.agent, one.agent)
    if accounts is not None:
        return ()
    relay = Relay()
    return tuple(one.record(context, relay, _part(key, number)) for number, one in enumerate(told))


def record_files(
    log: LocalLog, files: Sequence[RecordingSource], key: str | None = None, *, own: bool = False
) -> tuple[str, ...]:
    """Record the runs of files, all or none; return their ids."""
    if len(files) == 1 and not files[0].is_long:
        (first,) = files[0].batches()
        try:
            return record(log, first.recordings(), key, own=own)
        except Refused as refusal:
            raise Refused(first.placed(refusal.faults), NOTHING_RECORDED) from None
    _check_files(log, files, key, own=own)
    runs: dict[str, None] = {}
    for number, batch in enumerate(batch for file in files for batch in file.batches()):
        try:
            runs.update(dict.fromkeys(record(log, batch.recordings(), _part(key, number), own=own)))
        except Refused as refusal:  # the log has changed since it was checked
            outcome = f"{len(runs)} runs were recorded before it. Import the same again when this is mended."
            raise Refused(batch.placed(refusal.faults), outcome if runs else NOTHING_RECORDED) from None
    return tuple(runs)


def _check_files(log: LocalLog, files: Sequence[RecordingSource], key: str | None, *, own: bool) -> None:
    """Raise `Refused` with all that is wrong with files; of a run that is in several batches, all say the same."""
    faults: list[Fault] = []
    seen: dict[str, tuple[bytes, str]] = {}
    number = 0
    for file in files:
        try:
            for batch in file.batches():
                accounts: dict[str, bytes] = {}
                try:
                    record(log, batch.recordings(), _part(key, number), own=own, accounts=accounts)
                except Refused as refusal:
                    faults += batch.placed(refusal.faults)
                    accounts.clear()
                for run, account in accounts.items():
                    known = seen.setdefault(run, (account, batch.name))
                    if known[0] != account:
                        problem = f"{run} is in {known[1] or 'it'} twice, and told in two ways"
                        faults.append(Fault(batch.name, problem, "Leave one of the two out."))
                number += 1
                if len(faults) > FILE_FAULTS_MAX:
                    raise Refused(faults, NOTHING_RECORDED)
        except Refused as refusal:
            faults += [fault for fault in refusal.faults if fault not in faults]
    if faults:
        raise Refused(faults, NOTHING_RECORDED)


def _part(key: str | None, number: int) -> str | None:
    return None if key is None else f"{key}/{number}"


def read(recordings: Recordings) -> tuple[RunRecord, ...]:
    """Return the records of the runs that a document holds, without writing anything; told runs are refused.

    A told run happens when it is recorded, so there is nothing to read before.
    """
    faults = [*recordings.faults]
    if recordings.told:
        (document,) = recordings.told
        items: list[Any] = document if isinstance(document, list) else [document]
        if any(kind_of(item) in RUN_KINDS for item in items):
            return tuple(read_entries(items))
        paths = [f"/{number}" for number in range(len(items))] if isinstance(document, list) else [""]
        raise Refused((_not_a_trajectory(item, path) for item, path in zip(items, paths, strict=True)), NO_READ)
    faults += [_not_a_trajectory(item, path) for item, path in recordings.snapshots]
    made = _trajectories(recordings, faults, NOTHING, None)
    entries = [entry for item, path in recordings.records for entry in run_json.entries_of(item, path, faults)]
    _check(recordings, faults, NO_READ)
    if recordings.entries is not None:
        entries += recordings.entries("", True)
    return (*(told.record() for told in made), *(read_entries(entries) if entries else ()))


def _record_recordings(
    context: Context,
    recordings: Recordings,
    *,
    own: bool,
    accounts: dict[str, bytes] | None,
) -> tuple[str, ...]:
    """Record recordings, in one write."""
    faults = [*recordings.faults]
    made = _trajectories(recordings, faults, context.hidden, context.agent)
    entries: list[dict[str, Any]] = []
    known: list[str] = []
    for item, path in recordings.records:
        said = run_json.entries_of(item, path, faults)
        if said and _is_recorded(context, item, path, faults):
            known.append(item["id"])
        else:
            entries += said
    _check(recordings, faults, NOTHING_RECORDED)
    if recordings.snapshots:
        _check_not_recorded(context, made)
    if recordings.entries is not None:
        entries += recordings.entries(context.agent, not own)
    if own:
        for document, _ in recordings.trajectories:
            judgements = document.get("judgements")
            for each in judgements if "format" in document and isinstance(judgements, list) else ():
                check_said_by(context.agent, each.get("by"))
    recorded = append_runs(context, made, entries, own=own, accounts=accounts) if made or entries else ()
    return (*recorded, *known)


def _trajectories(
    recordings: Recordings, faults: list[Fault], hidden: frozenset[str], agent: str | None
) -> list[trajectory.ImportedRun]:
    """Return the runs of the trajectories and snapshots of a document.

    They are of the agent they name, and of this one where they name none.
    """
    shared = recordings.shared
    good = [({**item, SHARED: shared} if shared else item, at) for item, at in recordings.trajectories]
    for item, path in recordings.snapshots:
        snapshot = _of_snapshot(item, path, faults, hidden, agent)
        if snapshot is not None:
            good.append((snapshot, path))
    before = len(faults)
    made = trajectory.read([item for item, _ in good], [path for _, path in good], faults, hidden, agent)
    if recordings.is_steps:  # the document is the steps
        faults[before:] = [replace(fault, path=fault.path.removeprefix("/steps")) for fault in faults[before:]]
    return made


def _check(recordings: Recordings, faults: list[Fault], outcome: str) -> None:
    """Raise `Refused` for what is wrong with a document, all at once; and for one that holds no run."""
    if not faults and recordings.is_empty:
        faults.append(EMPTY)
    if faults:
        raise Refused(faults, outcome)


def _is_recorded(context: Context, item: dict[str, Any], path: str, faults: list[Fault]) -> bool:
    """Return whether the log holds the run of a record already; one that it holds otherwise is a fault."""
    with open_runs(context) as run_reader:
        try:
            known = run_record(run_reader, item["id"])
        except NotFound:
            return False
    if run_json.same_run(known.to_json(), item):
        return True
    problem = f"the log already has {item['id']}, and says something else of it"
    faults.append(Fault(f"{path}/id", problem, "Import it into another ledger, and compare the two with `runs diff`."))
    return False


def _not_a_trajectory(item: object, path: str) -> Fault:
    if is_snapshot(item):
        problem = "this is a snapshot, which shows results and responses only in part"
        return Fault(path, problem, "Name the run by its id, with --other-db (other=) if it is of another ledger.")
    if isinstance(item, dict) and "query" in item:
        problem = "a run without times happens when it is recorded"
        return Fault(
            path, problem, "Record it with `woodrat runs import` first and name the run, or send a trajectory."
        )
    return Fault(path, f"expected a trajectory, got {shown(item)}", "Send an object with steps, each with a kind.")


def _could_be_told(item: object) -> bool:
    if isinstance(item, list):
        return False
    return (
        not isinstance(item, dict) or not item or bool(item.keys() & {"query", "steps", "answer", "agent", "subject"})
    )


def _unknown(item: Any, path: str) -> Fault:
    """Return what to say of an object or a list in no format that is known."""
    has = shown(item)
    if isinstance(item, dict):
        has = ", ".join(f'"{name[:40]}"' for name in list(item)[:4]) + (", …" if len(item) > 4 else "")
    remedy = (
        "Send a run with steps, a transcript with messages, an export of LangSmith, Langfuse or Phoenix, OTLP, "
        "a snapshot or a run record."
    )
    return Fault(path, f"it is no recording that is known; it has {has}", remedy)


def _of_snapshot(
    document: dict[str, Any], path: str, faults: list[Fault], hidden: frozenset[str], agent: str | None
) -> dict[str, Any] | None:
    """Return the trajectory of a snapshot, with all that has no place in the run that it makes by itself."""
    plain = snapshot_format.trajectory_of(document, path, faults)
    if plain is None:
        return None
    made = trajectory.read([plain], [path], faults, agent=agent)
    if not made:
        return None
    return snapshot_format.with_rest(document, plain, made[0].record(), hiding(hidden, plain.get("redact")))


def _check_not_recorded(context: Context, runs: Sequence[trajectory.ImportedRun]) -> None:
    """Refuse snapshots of runs that were recorded here: they would tell the same again, and less of it."""
    faults: list[Fault] = []
    with open_runs(context) as run_reader:
        for told in runs:
            known = told.record()
            if not known.previews_only:
                continue
            with suppress(NotFound):
                known = run_record(run_reader, told.run)
            if not known.previews_only:
                remedy = "Leave runId out to import the snapshot as another run."
                faults.append(Fault(f"run {told.run}", "the log already has it, with complete results", remedy))
    if faults:
        raise Refused(faults, NOTHING_RECORDED)


class _SentRun:
    """A run as a document tells it, checked."""

    def __init__(self, document: Any, path: str, faults: list[Fault]) -> None:
        self._path = path
        if not isinstance(document, dict):
            faults.append(Fault(path, f"expected a run, got {shown(document)}", "Send an object with query and steps."))
            return
        self.agent = document.get("agent")
        """Whom it names as its agent."""
        self._about = {name: value for name, value in document.items() if name in _ABOUT and value is not None}
        self._document = document
        for name in sorted(set(document) - _ABOUT - _END):
            remedy = f"Send {', '.join(sorted(_ABOUT | _END))}."
            faults.append(Fault(f"{path}/{pointer_part(name)}", "unknown part of a run", remedy))
        if not isinstance(document.get("query"), str):
            faults.append(
                Fault(f"{path}/query", f"got {shown(document.get('query'))}", "Send what was asked, as text.")
            )
        status, error = document.get("status", "done"), document.get("error")
        if status not in ("done", "error", "cancelled"):
            faults.append(Fault(f"{path}/status", f"got {shown(status)}", "Send done, error or cancelled."))
        if error is not None and not isinstance(error, str | dict):
            faults.append(Fault(f"{path}/error", f"got {shown(error)}", 'Send text, or {"type", "message"}.'))
        steps = document.get("steps", [])
        if not isinstance(steps, list) or len(steps) > STEPS_MAX:
            faults.append(Fault(f"{path}/steps", f"got {shown(steps)}", f"Send a list of at most {STEPS_MAX} steps."))
            return
        for number, step in enumerate(steps):
            self._step(step, f"{path}/steps/{number}", faults)

    def _step(self, told: Any, path: str, faults: list[Fault]) -> None:
        try:
            step_of(told, path)
        except Refused as refusal:
            faults += refusal.faults

    def record(self, context: Context, relay: Relay, key: str | None) -> str:
        """Record the run and return its id. Doing it again with the same key changes nothing: recorded steps stay."""
        agent = self._about.get("agent", context.agent)
        if agent != context.agent:
            if faults := ids.agent_faults(agent, "agent"):
                raise Refused(faults)
            context = replace(context, agent=agent)

        def key_of(part: str) -> str | None:
            return None if key is None else f"record/{key}{part}"

        run: str = relay.start(context, dict(self._about), key_of(""))["run"]
        if key is not None:
            with open_runs(context) as run_reader:
                if run_record(run_reader, run).end is not None:
                    return run
        try:
            for number, told in enumerate(self._document.get("steps", [])):
                relay.step(context, run, told, key_of(f"/{number}"))
        except Exception as problem:
            relay.end(context, run, key_of("/end"), error=error(problem))
            raise
        how = {name: self._document[name] for name in ("status", "answer", "usage", "error") if name in self._document}
        relay.end(context, run, key_of("/end"), **how)
        return run

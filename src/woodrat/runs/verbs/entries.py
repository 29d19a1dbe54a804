"""Entries of runs that were made elsewhere: checked, filled in and appended, each once.

They are objects with a `kind`, in the format of docs/formats/runs.md, with their own times; those the log holds already
change nothing. Each must be of its run's owner, and may cite only what it can have read.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form, ids, moment
from woodrat.canon.digest import digest
from woodrat.clock import fresh_id
from woodrat.errors import Fault, Forbidden, Refused, shown
from woodrat.ledger import entry_index, run_progress
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.ownership import ForeignRun, check_owner, unknown_run
from woodrat.ledger.write import Writer
from woodrat.runs import json_values, redaction, trajectory
from woodrat.runs.recorder.log import accounted, step_gaps
from woodrat.runs.recorder.steps import NOTHING_RECORDED
from woodrat.runs.verbs.citation import CITING, Citations, Misread
from woodrat.state import observation
from woodrat.state.meaning import RUN_KINDS, leaves, step_of
from woodrat.state.redaction import taken_out
from woodrat.state.run_owner import JUDGED, is_bound, owner_of, run_of_key
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from woodrat.clock import Clock
    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.ledger.write import Draft
    from woodrat.runs.record import RunRecord


ENDED: Final = "run.ended"
_COUNTED: Final = frozenset({"numbered", "skipped"})
"""What an end says of the numbers of steps."""


class _Entry(NamedTuple):
    """An entry of a run as a document holds it, ready to be appended."""

    kind: str
    body: bytes
    run: str
    agent: str | None
    path: str
    """Where in the document it is."""


def kind_of(item: object) -> str | None:
    """Return the kind that an object states, where that is text."""
    found = item.get("kind") if isinstance(item, dict) else None
    return found if isinstance(found, str) else None


def record_entries(
    context: Context,
    items: Sequence[Any],
    key: str | None,
    *,
    own: bool,
    accounts: dict[str, bytes] | None = None,
) -> tuple[str, ...]:
    """Append entries as they are, all in one write; return the runs they are part of."""
    clock, items = context.clock, _without(items, context.hidden)
    missing = {
        "run": fresh_id(clock, "run_") if key is None else run_of_key(context.tenant, context.agent, f"record/{key}")[0]
    }
    said = _said(_signed(items, context.agent, own=own), missing, _span(clock), clock.now, NOTHING_RECORDED)
    return _add(context, said, {"entries": list(items)}, key, own=own, accounts=accounts)


def _signed(items: Sequence[Any], default: str | None, *, own: bool = False) -> list[Any]:
    """Return entries that all name their agent: the one they state, that of their run's beginning, or the default.

    With `own` they are all of the default agent, and so is who judges: `Forbidden` if they say another.
    """
    began = {
        _run(item): item["agent"]
        for item in reversed(items)
        if kind_of(item) == "run.started" and isinstance(item.get("agent"), str)
    }
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            if own and default is not None:
                for name in ("agent", "by"):
                    check_said_by(default, item.get(name))
            judges = kind_of(item) == JUDGED
            agent = item.get("agent")
            agent = agent if agent is not None else default if judges else began.get(_run(item), default)
            if agent is not None:
                item = {**item, "agent": agent, **({"by": agent} if judges and item.get("by") is None else {})}
        found.append(item)
    return found


def _run(item: Mapping[str, Any]) -> str:
    """Return the run that an entry names; those that name none are all of one."""
    return str(item.get("run") or "")


def check_said_by(own: str, agent: object) -> None:
    """Raise `Forbidden` where something is said in the name of another agent than the caller's own."""
    if agent is not None and agent != own:
        raise Forbidden(
            f"agent: {shown(agent)} is not the agent of this key, which is {own!r}. {NOTHING_RECORDED} Leave "
            "the agent out, or ask for a key with the grant 'manage'.",
            {"grant": "manage"},
        )


def _span(clock: Clock) -> Callable[[], str]:
    return lambda: clock.random(8).hex()


def without(document: object, hidden: frozenset[str]) -> object:
    """Return a document that is sent to be recorded elsewhere, so that hidden values are not recorded there.

    A run in a form of ours names the keys, and whoever records it hides them; out of other forms they are taken here.
    """
    if not hidden:
        return document
    if isinstance(document, list):
        return [without(item, hidden) for item in document]
    if isinstance(document, dict) and kind_of(document) in RUN_KINDS:
        return redaction.without(str(kind_of(document)), document, hidden)
    if not isinstance(document, dict) or not document.keys() & {"steps", "query"} or "run_type" in document:
        return taken_out(document, hidden)
    stated = document.get("redact")
    return {**document, "redact": [*(stated if isinstance(stated, list) else ()), *sorted(hidden)]}


def _without(items: Sequence[Any], hidden: frozenset[str]) -> list[Any]:
    """Return entries that were made elsewhere without the values that this ledger hides."""
    if not hidden:
        return list(items)
    return [redaction.without(str(kind_of(item)), item, hidden) if isinstance(item, dict) else item for item in items]


def continued_by(context: Context, run: str, items: Any) -> list[tuple[str, dict[str, Any]]]:
    """Append entries that a recorder elsewhere made of its own run, in one write; return those that were new.

    Entries that the log holds change nothing. A run that has ended takes no others.
    """
    if not isinstance(items, list) or not items:
        raise Refused([Fault("/entries", f"got {shown(items)}", "Send a list of entries.")], NOTHING_RECORDED)
    if observation.optional_faults({"run": run}, ""):
        raise unknown_run(run)
    faults = form.faults(items)
    for number, item in enumerate(items):
        named = item.get("run", run) if isinstance(item, dict) else run
        if named != run:
            faults.append(Fault(f"/{number}/run", f"{shown(named)} is another run", f"Leave it out, or send {run}."))
        if kind_of(item) == "run.started":
            faults.append(Fault(f"/{number}/kind", "the run has begun", "Send its steps and its end."))
        if kind_of(item) == JUDGED:
            faults.append(Fault(f"/{number}/kind", "a judgement is not a step of a run", "Use `runs.judge`."))
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    clock, items = context.clock, _without(_signed(items, context.agent, own=True), context.hidden)
    new: list[tuple[str, dict[str, Any]]] = []

    def plan(draft: Draft) -> None:
        new.clear()
        through = draft.before.asof.position
        so_far = run_progress.of_run(context.engine, context.tenant, draft.view, run, through)
        if not so_far.known:
            raise unknown_run(run)
        check_owner(context.agent, run, so_far.owner)
        said = _said(_with_schemas(draft, items), {"run": run}, _span(clock), clock.now, NOTHING_RECORDED)
        added = _new(said, {run: so_far})
        if added and so_far.ended:
            ends = _ends_without_gaps(draft.view, run, through)
            added = [entry for entry in added if entry.kind != ENDED or entry.body not in ends]
        if added and so_far.ended:
            remedy = "Record before its end; judge it, or start another."
            raise Refused([Fault(f"run {run}", "it has ended", remedy)], NOTHING_RECORDED)
        for entry in _cited(context, draft, added, {run: so_far}, own=True):
            body = _with_gaps(draft, run, entry.body, added) if entry.kind == ENDED else entry.body
            draft.add(entry.kind, body, step_of(entry.kind, body))
            new.append((entry.kind, form.decode(body)))

    Writer(context).write("record", {}, plan)
    return new


def _with_schemas(draft: Draft, items: Sequence[Any]) -> list[Any]:
    """Return entries, each read of this log with the schema that was in force: a recorder elsewhere does not see it."""
    found: list[Any] = []
    for item in items:
        if kind_of(item) == "run.read" and "schema" not in item and item.get("log") == draft.log:
            entity, position = item.get("entity"), item.get("position")
            if isinstance(entity, str) and type(position) is int and position <= draft.before.asof.position:
                name = schema_name(entry_index.schema_of(draft.view, entity.partition("/")[0], position))
                item = item if name is None else {**item, "schema": name}
        found.append(item)
    return found


def _with_gaps(draft: Draft, run: str, body: bytes, added: Sequence[_Entry]) -> bytes:
    """Return the end of a run with the step numbers that left nothing, in the log or beside it."""
    told: Any = form.decode(body)
    if type(told.get("step")) is not int:
        return body
    gaps = step_gaps(draft.view, run, draft.before.asof.position, told["step"])
    if gaps is not None:
        beside = {form.decode(each.body).get("step") for each in added}
        gaps = [step for step in gaps if step not in beside]
    return form.serialise(accounted(told, gaps))


def _ends_without_gaps(view: View, run: str, through: int) -> list[bytes]:
    """Return the ends of a run as its recorder sent them."""
    ends = [
        form.decode(entry.body)
        for entry in entry_index.run_entries(view, run, through)
        if entry.kind == "run.ended" and entry.body
    ]
    return [form.serialise(_uncounted(end)) for end in ends]


def _uncounted(end: Mapping[str, Any]) -> dict[str, Any]:
    """Return the end of a run without what the ledger alone says of its steps: whether all of them are on record."""
    return {name: value for name, value in end.items() if name not in _COUNTED}


def read_entries(items: Sequence[Any]) -> list[RunRecord]:
    """Return the records of the runs that entries are part of, without a log to put them in."""
    said = _said(_signed(items, None), {"run": "run_" + "a" * 26}, lambda: "", None, NO_READ)
    runs: dict[str, list[tuple[str, bytes]]] = {}
    for entry in said.values():
        runs.setdefault(entry.run, []).append((entry.kind, entry.body))
    return [trajectory.ImportedRun(run, tuple(entries)).record() for run, entries in runs.items()]


def _said(
    items: Sequence[Any],
    missing: Mapping[str, str],
    span: Callable[[], str],
    now: Callable[[], str] | None,
    outcome: str,
) -> dict[bytes, _Entry]:
    """Return entries by digest, with what they leave out filled in."""
    faults: list[Fault] = []
    said: dict[bytes, _Entry] = {}
    for number, item in enumerate(items):
        path = f"/{number}"
        kind = kind_of(item)
        if kind is None or kind not in RUN_KINDS:
            told = item.get("kind") if isinstance(item, dict) else None
            faults.append(Fault(f"{path}/kind", f"got {shown(told)}", f"Send one of {', '.join(sorted(RUN_KINDS))}."))
            continue
        body = {name: value for name, value in item.items() if name != "kind" and value is not None}
        body.setdefault("run", missing["run"])
        body.setdefault("step", number)
        body.setdefault("span", span() or f"{number:016x}")
        faults += _body_faults(body, path)
        faults += json_values.long_values(body, path)
        try:
            if "started_at" in body or (now is not None and not leaves(body, "started_at")):
                stated = body["started_at"] if "started_at" in body else now() if now is not None else ""
                body["started_at"] = moment.parse(stated, f"{path}/started_at")
            encoded = form.encode(body)
        except Refused as refusal:
            faults += refusal.faults
            continue
        name = digest(kind, encoded)
        if kind == ENDED and not body.keys().isdisjoint(_COUNTED):
            encoded = form.encode(_uncounted(body))
        said.setdefault(name, _Entry(kind, encoded, str(body["run"]), body.get("agent"), path))
    if faults:
        raise Refused(faults, outcome)
    return said


def append_runs(
    context: Context,
    told: Sequence[trajectory.ImportedRun],
    items: Sequence[Any],
    *,
    own: bool,
    accounts: dict[str, bytes] | None = None,
) -> tuple[str, ...]:
    """Append the entries of trajectories and of spans, all in one write; those the log holds already change nothing."""
    said = {
        digest(kind, body): _Entry(kind, body, run.run, run.agent, f"/{number}")
        for number, run in enumerate(told)
        for kind, body in run.entries
    }
    if own:
        for run in told:
            check_said_by(context.agent, run.agent)
    if items:
        signed = _signed(_without(items, context.hidden), context.agent)
        if own:
            for item in signed:
                check_said_by(context.agent, item["agent"])
        said |= _said(signed, {"run": ""}, _span(context.clock), None, NOTHING_RECORDED)
    return _add(context, said, once=frozenset(run.run for run in told), own=own, accounts=accounts)


def _add(
    context: Context,
    said: Mapping[bytes, _Entry],
    given: Mapping[str, Any] | None = None,
    key: str | None = None,
    *,
    once: frozenset[str] = frozenset(),
    own: bool = False,
    accounts: dict[str, bytes] | None = None,
) -> tuple[str, ...]:
    """Append entries that the log does not hold yet; return the runs they are part of.

    Each must be of its run's owner. Of the runs `once`, a step that is told otherwise than before is refused: it would
    count as a second one. With `own` nothing may be cited from another log. With `accounts` nothing is appended: it
    gets a digest of what is said of each run.
    """
    by_run: dict[str, list[tuple[bytes, _Entry]]] = {}
    for name, entry in said.items():
        by_run.setdefault(entry.run, []).append((name, entry))
    runs = tuple(by_run)

    def plan(draft: Draft) -> None:
        view, through = draft.view, draft.before.asof.position
        so_far = {run: run_progress.of_run(context.engine, context.tenant, view, run, through) for run in runs}
        for run in runs:
            _check_owned(run, so_far[run], [entry for _, entry in by_run[run]])
        if once:
            held = ((entry, run) for run in once for entry in entry_index.run_entries(view, run, through))
            before = [_Entry(e.kind, e.body, run, None, "") for e, run in held if e.body is not None]
            new = [entry for entry in said.values() if entry.run in once]
            if faults := _told_otherwise([*before, *new]):
                raise Refused(faults, NOTHING_RECORDED)
        for entry in _cited(context, draft, _new(said, so_far), so_far, own=own):
            draft.add(entry.kind, entry.body, step_of(entry.kind, entry.body))

    Writer(context).write("record", given or {}, plan, key=key, dry_run=accounts is not None)
    if accounts is not None:
        for run, entries in by_run.items():
            accounts[run] = sha256(b"".join(sorted(bytes(name) for name, _ in entries))).digest()
    return runs


def _check_owned(run: str, so_far: run_progress.SoFar, entries: Sequence[_Entry]) -> None:
    """Raise `ForeignRun` unless entries are all of their run's owner; a judgement may come from anybody.

    The owner is whom the log says, and of a run that is new to it the agent of these entries. A beginning from whose
    agent the run's id is made counts also where somebody else has taken the id before.
    """
    if not so_far.known and all(entry.kind == JUDGED for entry in entries):
        raise unknown_run(run)
    bodies = [(entry.kind, form.decode(entry.body)) for entry in entries if entry.kind == "run.started"]
    bound = owner_of(run, [(kind, body) for kind, body in bodies if is_bound(run, body)])
    told = bound if bound is not None else owner_of(run, [(e.kind, {"agent": e.agent}) for e in entries])
    owner = told if so_far.owner is None or (bound is not None and not so_far.bound) else so_far.owner
    for entry in entries:
        if entry.kind != JUDGED and entry.agent != owner:
            raise ForeignRun(run, owner, str(entry.agent))


def _new(said: Mapping[bytes, _Entry], so_far: Mapping[str, run_progress.SoFar]) -> list[_Entry]:
    """Return the entries that the log does not hold, neither as they were sent nor as it keeps them."""
    return [
        entry
        for name, entry in said.items()
        if name not in so_far[entry.run].known
        and (entry.kind != ENDED or digest(ENDED, entry.body) not in so_far[entry.run].known)
    ]


def _cited(
    context: Context,
    draft: Draft,
    entries: Sequence[_Entry],
    so_far: Mapping[str, run_progress.SoFar],
    *,
    own: bool,
) -> list[_Entry]:
    """Refuse entries that cite what they cannot have read, all that is wrong at once; return them as they are kept.

    Of a read of what was erased meanwhile no more is kept than the erasure would have left.
    """
    citing = {entry: form.decode(entry.body) for entry in entries if entry.kind in CITING}
    # A decision names no log: it is the one that its run began on, or read.
    logs: dict[str, object] = {}
    started: dict[str, Mapping[str, Any]] = {}
    for entry, body in citing.items():
        basis = body.get("basis")
        log = basis.get("log") if isinstance(basis, dict) else body.get("log")
        if isinstance(log, str):
            logs.setdefault(entry.run, log)
        if entry.kind == "run.started":
            started[entry.run] = body

    def beginning(run: str) -> Mapping[str, Any]:
        if run not in started:
            known = entry_index.run_entries(draft.view, run, draft.before.asof.position)
            bodies = (form.decode(e.body) for e in known if e.kind == "run.started" and e.body is not None)
            started[run] = next(bodies, {})
        return started[run]

    citations = Citations(draft, own=own, erasures=context.erasures, beginning=beginning)
    faults: list[Fault] = []
    kept: list[_Entry] = []
    for entry in entries:
        body = citing.get(entry)
        if body is not None:
            faults += citations.faults(entry.kind, body, entry.path, logs.get(entry.run))
        left = citations.kept(body) if body is not None and entry.kind == "run.read" else None
        if left is not None:
            entry = entry._replace(body=form.serialise(left))
            if digest(entry.kind, entry.body) in so_far[entry.run].known:
                continue
        kept.append(entry)
    if faults:
        raise Misread(faults, NOTHING_RECORDED)
    return kept


def _told_otherwise(entries: Sequence[_Entry]) -> list[Fault]:
    """Return the steps of which there are two accounts; how a run began and ended may be told again."""
    first: dict[tuple[str, str, str], bytes] = {}
    faults: list[Fault] = []
    for entry in entries:
        body = form.decode(entry.body)
        if entry.kind in ("run.started", "run.ended", JUDGED) or body.get("begun") is True:
            continue
        if first.setdefault((entry.run, entry.kind, str(body.get("span"))), entry.body) != entry.body:
            problem = f"step {body.get('step')} ({entry.kind.removeprefix('run.')}) is already recorded differently"
            faults.append(Fault(entry.run, problem, "Send the trace as it was, or give it another id to keep both."))
    return faults


def _body_faults(body: Mapping[str, Any], path: str) -> list[Fault]:
    faults = [fault.under(path) for fault in observation.optional_faults({"run": body["run"]}, "")]
    step, span = body["step"], body["span"]
    if type(step) is not int or step < 0:
        faults.append(Fault(f"{path}/step", f"got {shown(step)}", "Send a whole number, 0 or more."))
    if not isinstance(span, str) or not span:
        faults.append(Fault(f"{path}/span", f"got {shown(span)}", "Send text that identifies this step."))
    if "agent" in body:
        faults += ids.agent_faults(body["agent"], f"{path}/agent")
    return faults

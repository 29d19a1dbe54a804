"""Dictating: a run that happened elsewhere, recorded from a JSON document (docs/reference/recording.md).

A *trajectory* is a run that another tool recorded, in the neutral format or one that is translated into it; it keeps
its own times and is stored once. A *told* run is an object: what was asked, its steps in order, the answer. It is
recorded as if it happened now; rules are evaluated here. *Entries* are a list of objects with a `kind`, in the format
of docs/formats/runs.md, with their own times; those the log holds already change nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form, ids, moment
from woodrat.canon.digest import digest
from woodrat.clock import fresh_id
from woodrat.errors import Fault, Forbidden, Refused, pointer_part, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.write import check_key
from woodrat.records import replace
from woodrat.runs import citation, progress, redaction, trajectory
from woodrat.runs import rules as rule
from woodrat.runs.owner import JUDGED, is_bound, owner_of
from woodrat.runs.ownership import ForeignRun, check_owner, unknown_run
from woodrat.runs.step_gaps import accounted, step_gaps
from woodrat.runs.step_index import RUN_KINDS, leaves, step_of
from woodrat.runs.values import NOTHING
from woodrat.state import observation
from woodrat.state.redaction import taken_out
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.engines.port import View
    from woodrat.ledger.write import Draft
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder import Run
    from woodrat.runs.relay import Relay

NOTHING_RECORDED = "Nothing was recorded."
STEPS_MAX: Final = 100_000
"""Most steps of one document."""

_ABOUT: Final = frozenset(
    {"query", "subject", "conversation", "principal", "inputs", "agent", "code", "runbook", "tool_configs", "pipeline"}
    | {"session", "attributes", "redact", "id", "recall", "traceparent", "parent"}
)
_END: Final = frozenset({"steps", "answer", "status", "error", "usage"})


def record(ledger: Ledger, document: object, key: str | None = None, *, own: bool = False) -> tuple[str, ...]:
    """Record the runs that a document holds: trajectories, told runs, or a list of entries; return their ids.

    With a key the same document is recorded once, also where telling it was cut off in between. With `own` they must be
    runs of this ledger's agent, and nothing in them may be said in the name of another: `Forbidden` otherwise.
    """
    items = _items(document, NOTHING_RECORDED)
    faults: list[Fault] = []
    if key is not None:
        check_key(key)
    if any(_kind(item) in RUN_KINDS for item in items):
        return _entries(ledger, items, key, own=own)
    if _are_trajectories(items):
        found = _trajectories(document, items, NOTHING_RECORDED, ledger.context.hidden, ledger.agent)
        return _append(ledger, found, own=own)
    if any(isinstance(item, dict) and "kind" in item for item in items):
        return _entries(ledger, items, key, own=own)
    told = [
        _Told(item, f"/{number}" if isinstance(document, list) else "", faults) for number, item in enumerate(items)
    ]
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    if own:
        for one in told:
            _check_said_by(ledger, one._about.get("agent"))
    if key is None:
        return tuple(one.record(ledger) for one in told)
    from woodrat.runs.relay import Relay

    relay = Relay()
    return tuple(one.relayed(ledger, relay, f"{key}/{number}") for number, one in enumerate(told))


def read(document: object) -> tuple[RunRecord, ...]:
    """Return the records of the runs that a document holds, without writing anything; told runs are refused.

    A told run happens when it is recorded, so there is nothing to read before.
    """
    items = _items(document, NO_READ)
    if any(_kind(item) in RUN_KINDS for item in items):
        return tuple(_told_by_entries(items))
    if not _are_trajectories(items):
        paths = [f"/{number}" for number in range(len(items))] if isinstance(document, list) else [""]
        raise Refused((_not_a_trajectory(item, path) for item, path in zip(items, paths, strict=True)), NO_READ)
    return tuple(told.record() for told in _trajectories(document, items, NO_READ))


def _not_a_trajectory(item: object, path: str) -> Fault:
    if isinstance(item, dict) and "runId" in item:
        problem = "this is a run record, which shows results and responses only in part"
        return Fault(path, problem, "Name the run by its id, with --other-db (other=) if it is of another ledger.")
    if isinstance(item, dict) and "query" in item:
        problem = "a told run happens when it is recorded"
        return Fault(
            path, problem, "Record it with `woodrat runs import` first and name the run, or send a trajectory."
        )
    return Fault(path, f"expected a trajectory, got {shown(item)}", "Send an object with steps, each with a kind.")


def _items(document: object, outcome: str) -> list[Any]:
    faults = form.faults(document)
    items: list[Any] = document if isinstance(document, list) else [document]
    if not items:
        faults.append(Fault("", "there is no run in it", "Send a run, or a list of runs or entries."))
    if faults:
        raise Refused(faults, outcome)
    return items


def _are_trajectories(items: Sequence[Any]) -> bool:
    return any(trajectory.is_trajectory(item) or _is_step(item) for item in items)


def _is_step(item: object) -> bool:
    return _kind(item) in trajectory.STEP_KINDS


def _kind(item: object) -> str | None:
    """Return the kind that an object states, where that is text."""
    found = item.get("kind") if isinstance(item, dict) else None
    return found if isinstance(found, str) else None


def _trajectories(
    document: object, items: list[Any], outcome: str, hidden: frozenset[str] = NOTHING, agent: str | None = None
) -> list[trajectory.Told]:
    """Return the runs of a list of trajectories, or of one whose steps or spans are a list of their own.

    They are of the agent they name, and of this one where they name none.
    """
    from woodrat.runs import foreign

    faults: list[Fault] = []
    paths = [f"/{number}" for number in range(len(items))] if isinstance(document, list) else [""]
    if all(isinstance(item, dict) and "run_type" in item for item in items):
        items = [{"run_type": "trace", "spans": trace} for trace in foreign.traces(items)]
        paths = [""] * len(items)
    bare = any(_is_step(item) for item in items)
    if bare:
        items, paths = [{"steps": items}], [""]
    made = [foreign.translated(item, path, faults) for item, path in zip(items, paths, strict=True)]
    good = [(item, path) for item, path in zip(made, paths, strict=True) if item is not None]
    found = trajectory.read([item for item, _ in good], [path for _, path in good], faults, hidden, agent)
    if bare:
        faults = [replace(fault, path=fault.path.removeprefix("/steps")) for fault in faults]
    if faults:
        raise Refused(faults, outcome)
    return found


class _Told:
    """A run as a document tells it, checked."""

    def __init__(self, document: Any, path: str, faults: list[Fault]) -> None:
        self._path = path
        self._steps: list[Callable[[Run], object]] = []
        if not isinstance(document, dict):
            faults.append(Fault(path, f"expected a run, got {shown(document)}", "Send an object with query and steps."))
            return
        self._about = {name: value for name, value in document.items() if name in _ABOUT and value is not None}
        self._document = document
        for name in sorted(set(document) - _ABOUT - _END):
            remedy = f"Send {', '.join(sorted(_ABOUT | _END))}."
            faults.append(Fault(f"{path}/{pointer_part(name)}", "no such part of a run", remedy))
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
            self._steps.append(step(told, path))
        except Refused as refusal:
            faults += refusal.faults

    def record(self, ledger: Ledger) -> str:
        """Record the run; return its id."""
        about = {name: value for name, value in self._about.items() if name != "query"}
        run = ledger.run(self._document["query"], on_error="raise", **about).start()
        try:
            with run.current():
                for step in self._steps:
                    step(run)
        except Exception as problem:
            run.end("error", error=problem)
            raise
        error = self._document.get("error")
        status = self._document.get("status", "done" if error is None else "error")
        run.end(status, answer=self._document.get("answer"), error=error_of(error), usage=self._document.get("usage"))
        return run.id

    def relayed(self, ledger: Ledger, relay: Relay, key: str) -> str:
        """Record the run so that doing it again with the key changes nothing: what is there already is passed over."""
        agent = self._about.get("agent", ledger.agent)
        ledger = ledger if agent == ledger.agent else ledger.by(agent)
        run: str = relay.start(ledger, dict(self._about), f"record/{key}")["run"]
        if ledger.run_record(run).end is not None:
            return run
        error = self._document.get("error")
        try:
            for number, told in enumerate(self._document.get("steps", [])):
                relay.step(ledger, run, told, f"record/{key}/{number}")
        except Exception as problem:
            message = {"type": type(problem).__name__, "message": str(problem)}
            relay.end(ledger, run, f"record/{key}/end", error=message)
            raise
        how = {name: self._document[name] for name in ("status", "answer", "usage") if name in self._document}
        relay.end(ledger, run, f"record/{key}/end", error=error, **how)
        return run


def step(told: Any, path: str = "/step") -> Callable[[Run], object]:
    """Return what records one step of a told run, an object with its kind; what is wrong with it is refused."""
    kind = next(iter(told)) if isinstance(told, dict) and len(told) == 1 else None
    make = _STEPS.get(kind) if isinstance(kind, str) else None
    if make is None:
        known = ", ".join(_STEPS)
        fault = Fault(path, f"expected one step, got {shown(told)}", f"Send an object with one of {known}.")
        raise Refused([fault], NOTHING_RECORDED)
    return make(told[kind], f"{path}/{kind}")


def error_of(told: Any) -> Exception | None:
    """Return an error of the type a document names."""
    if told is None:
        return None
    name, message = ("Exception", told) if isinstance(told, str) else (told.get("type"), told.get("message", ""))
    kind = type(str(name or "Exception"), (Exception,), {"__module__": "builtins"})
    return kind(message)  # type: ignore[no-any-return]


# Steps


def _object(given: Any, path: str, needed: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Return an object that has what is needed and nothing that is not known."""
    if not isinstance(given, dict):
        raise Refused([Fault(path, f"expected an object, got {shown(given)}", f"Send {', '.join(needed)}.")])
    faults = [Fault(f"{path}/{name}", "missing", "State it.") for name in needed if name not in given]
    for name in sorted(set(given) - set(known)):
        faults.append(Fault(f"{path}/{pointer_part(name)}", "no such part", f"Send {', '.join(known)}."))
    if faults:
        raise Refused(faults)
    return given


def _text(given: Any, path: str) -> str:
    if not isinstance(given, str):
        raise Refused([Fault(path, f"expected text, got {shown(given)}", "Send it as text.")])
    return given


READS: Final = (
    "show",
    "search",
    "query",
    "observations",
    "history",
    "timeline",
    "diff",
    "blame",
    "conflicts",
    "related",
)
"""Verbs by which a step may read."""
CHANGES: Final = ("store", "correct", "retract", "delete", "restore", "relate", "merge", "split")
"""Verbs by which a step may write."""


def _read(given: Any, path: str) -> Callable[[Run], object]:
    if isinstance(given, dict):
        return _verb(given, path, READS)
    ref = _text(given, path)
    return lambda run: run.show(ref)


def _change(given: Any, path: str) -> Callable[[Run], object]:
    if isinstance(given, dict) and "counted" in given:
        counted(given["counted"])
        given = {name: value for name, value in given.items() if name != "counted"}
    return _verb(given, path, CHANGES)


def counted(told: Any) -> tuple[str, int]:
    """Return who counts equal requests of a run elsewhere, and how many came before this one."""
    if isinstance(told, list) and len(told) == 2 and isinstance(told[0], str) and type(told[1]) is int:
        return told[0], told[1]
    raise Refused([Fault("counted", f"got {shown(told)}", "Leave it out.")], NOTHING_RECORDED)


def _verb(given: Any, path: str, verbs: Sequence[str]) -> Callable[[Run], object]:
    """Return what a verb of a run does, named with its arguments as in the library."""
    if not isinstance(given, dict) or given.get("verb") not in verbs:
        got = shown(given.get("verb") if isinstance(given, dict) else given)
        fault = Fault(f"{path}/verb", f"got {got}", f"Send one of {', '.join(verbs)}, and its arguments.")
        raise Refused([fault], NOTHING_RECORDED)
    verb, arguments = given["verb"], {name: value for name, value in given.items() if name != "verb"}

    def call(run: Run) -> object:
        from inspect import signature

        method = getattr(run.ledger, verb)
        try:
            signature(method).bind(**arguments)
        except TypeError as error:
            raise Refused([Fault(path, f"{verb}: {error}", "Send its arguments by name.")], NOTHING_RECORDED) from None
        return getattr(run, verb)(**arguments)

    return call


def _store(given: Any, path: str) -> Callable[[Run], object]:
    return lambda run: run.store(given)


def _note(given: Any, path: str) -> Callable[[Run], object]:
    if isinstance(given, str):
        return lambda run: run.note(given)
    about = _object(given, path, ["text"], ["text", "data"])
    text = _text(about["text"], f"{path}/text")
    return lambda run: run.note(text, about.get("data"))


def _tool(given: Any, path: str) -> Callable[[Run], object]:
    about = _object(given, path, ["name"], ["name", "args", "result", "error", "once", "duration_ms"])
    name, args = _text(about["name"], f"{path}/name"), about.get("args", {})
    if not isinstance(args, dict):
        raise Refused([Fault(f"{path}/args", f"expected an object, got {shown(args)}", "Send arguments by name.")])
    duration = _duration(about, path)

    def call(run: Run) -> None:
        from woodrat.runs.calls import Call

        failed = error_of(about.get("error"))
        try:
            with Call(run, name, args, once=about.get("once") is True) as made:
                made.result, made.duration_ms = about.get("result"), duration
                if failed is not None:
                    raise failed
        except Exception as error:
            if error is not failed:
                raise

    return call


def _model(given: Any, path: str) -> Callable[[Run], object]:
    known = ["model", "messages", "parameters", "request", "response", "usage", "error", "duration_ms"]
    about = _object(given, path, ["model"], known)
    model, duration = _text(about["model"], f"{path}/model"), _duration(about, path)
    if ("response" in about) is ("error" in about):
        raise Refused([Fault(f"{path}/response", "expected a response or an error", "Send one of them.")])
    asked = {name: about[name] for name in ("messages", "parameters", "request", "usage") if name in about}

    def call(run: Run) -> None:
        failed = error_of(about.get("error"))
        try:
            with run.model(model, **asked) as made:
                made.result, made.duration_ms = about.get("response"), duration
                if failed is not None:
                    raise failed
        except Exception as error:
            if error is not failed:
                raise

    return call


def _duration(about: Mapping[str, Any], path: str) -> int | None:
    """Return how long a call took, where whoever made it says so."""
    told = about.get("duration_ms")
    if told is not None and (type(told) is not int or told < 0):
        raise Refused([Fault(f"{path}/duration_ms", f"got {shown(told)}", "Send whole milliseconds.")])
    return told


def _decision(mode: str) -> Callable[[Any, str], Callable[[Run], object]]:
    def make(given: Any, path: str) -> Callable[[Run], object]:
        about = _object(given, path, ["stage", "facts", "rules"], _DECISION)
        stage, facts = _text(about["stage"], f"{path}/stage"), about["facts"]
        faults = rule.check_on_missing(about["on_missing"], f"{path}/on_missing") if "on_missing" in about else []
        rules: tuple[rule.Rule, ...] = ()
        try:
            rules = rule.rules_from_json(about["rules"], f"{path}/rules")
        except Refused as refusal:
            faults += refusal.faults
        if faults:
            raise Refused(faults, rule.NOTHING_DECIDED)
        further = {name: about[name] for name in ("default", "rationale", "redact", "on_missing") if name in about}
        if isinstance(facts, dict):
            return lambda run: getattr(run, mode)(stage, facts, rules, **further)
        ref = _text(facts, f"{path}/facts")
        # A reference stands for what is read of that entity then.
        return lambda run: getattr(run, mode)(stage, run.show(ref), rules, **further)

    return make


_DECISION: Final = ["stage", "facts", "rules", "default", "rationale", "redact", "on_missing"]
_STEPS: Final[Mapping[str, Callable[[Any, str], Callable[[Run], object]]]] = {
    "read": _read,
    "tool": _tool,
    "model": _model,
    "decide": _decision("decide"),
    "select": _decision("select"),
    "note": _note,
    "store": _store,
    "change": _change,
}


# Entries


class _Entry(NamedTuple):
    """An entry of a run as a document holds it, ready to be appended."""

    kind: str
    body: bytes
    run: str
    agent: str | None
    path: str
    """Where in the document it is."""


def _entries(ledger: Ledger, items: Sequence[Any], key: str | None, *, own: bool) -> tuple[str, ...]:
    """Append entries as they are, all in one write; return the runs they are part of."""
    from woodrat.runs.relay import run_of_key

    clock, items = ledger.context.clock, _without(items, ledger.context.hidden)
    missing = {"run": fresh_id(clock, "run_") if key is None else run_of_key(ledger, f"record/{key}")[0]}
    said = _said(_signed(items, ledger, own=own), missing, _span(clock), clock.now, NOTHING_RECORDED)
    return _add(ledger, said, {"entries": list(items)}, key, own=own)


def _signed(items: Sequence[Any], ledger: Ledger | None, *, own: bool = False) -> list[Any]:
    """Return entries that all name their agent: the one they state, that of their run's beginning, or the ledger's.

    With `own` they are all of the ledger's agent, and so is who judges: `Forbidden` if they say another.
    """
    default = None if ledger is None else ledger.agent
    began = {
        _run(item): item["agent"]
        for item in reversed(items)
        if _kind(item) == "run.started" and isinstance(item.get("agent"), str)
    }
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            if own and ledger is not None:
                for name in ("agent", "by"):
                    _check_said_by(ledger, item.get(name))
            judges = _kind(item) == JUDGED
            agent = item.get("agent")
            agent = agent if agent is not None else default if judges else began.get(_run(item), default)
            if agent is not None:
                item = {**item, "agent": agent, **({"by": agent} if judges and item.get("by") is None else {})}
        found.append(item)
    return found


def _run(item: Mapping[str, Any]) -> str:
    """Return the run that an entry names; those that name none are all of one."""
    return str(item.get("run") or "")


def _check_said_by(ledger: Ledger, agent: object) -> None:
    if agent is not None and agent != ledger.agent:
        raise Forbidden(
            f"agent: {shown(agent)} is not the agent of this key, which is {ledger.agent!r}. {NOTHING_RECORDED} Leave "
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
    if isinstance(document, dict) and _kind(document) in RUN_KINDS:
        return redaction.without(str(_kind(document)), document, hidden)
    if not isinstance(document, dict) or not document.keys() & {"steps", "query"} or "run_type" in document:
        return taken_out(document, hidden)
    stated = document.get("redact")
    return {**document, "redact": [*(stated if isinstance(stated, list) else ()), *sorted(hidden)]}


def _without(items: Sequence[Any], hidden: frozenset[str]) -> list[Any]:
    """Return entries that were made elsewhere without the values that this ledger hides."""
    if not hidden:
        return list(items)
    return [redaction.without(str(_kind(item)), item, hidden) if isinstance(item, dict) else item for item in items]


def continued_by(ledger: Ledger, run: str, items: Any) -> list[tuple[str, dict[str, Any]]]:
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
        if _kind(item) == "run.started":
            faults.append(Fault(f"/{number}/kind", "the run has begun", "Send its steps and its end."))
        if _kind(item) == JUDGED:
            faults.append(Fault(f"/{number}/kind", "a judgement is no step of a run", "Use `judge`."))
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    clock, items = ledger.context.clock, _without(_signed(items, ledger, own=True), ledger.context.hidden)
    new: list[tuple[str, dict[str, Any]]] = []

    def plan(draft: Draft) -> None:
        new.clear()
        through = draft.before.asof.position
        so_far = progress.of_run(ledger.context.engine, ledger.tenant, draft.view, run, through)
        if not so_far.known:
            raise unknown_run(run)
        check_owner(ledger, run, so_far.owner)
        said = _said(_with_schemas(draft, items), {"run": run}, _span(clock), clock.now, NOTHING_RECORDED)
        added = [entry for name, entry in said.items() if name not in so_far.known]
        if added and so_far.ended:
            ends = _ends_without_gaps(draft.view, run, through)
            added = [entry for entry in added if entry.kind != "run.ended" or entry.body not in ends]
        if added and so_far.ended:
            remedy = "Record before its end; judge it, or start another."
            raise Refused([Fault(f"run {run}", "it has ended", remedy)], NOTHING_RECORDED)
        _check_cited(draft, added, own=True)
        for entry in added:
            body = _with_gaps(draft, run, entry.body, added) if entry.kind == "run.ended" else entry.body
            draft.add(entry.kind, body, step_of(entry.kind, body))
            new.append((entry.kind, form.decode(body)))

    ledger._writer.write("record", {}, plan)
    return new


def _with_schemas(draft: Draft, items: Sequence[Any]) -> list[Any]:
    """Return entries, each read of this log with the schema that was in force: a recorder elsewhere does not see it."""
    found: list[Any] = []
    for item in items:
        if _kind(item) == "run.read" and "schema" not in item and item.get("log") == draft.log:
            entity, position = item.get("entity"), item.get("position")
            if isinstance(entity, str) and type(position) is int and position <= draft.before.asof.position:
                name = schema_name(draft.view.schema(entity.partition("/")[0], position))
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
    ends = [form.decode(entry.body) for entry in view.run(run, through) if entry.kind == "run.ended" and entry.body]
    return [form.serialise({name: end[name] for name in end if name not in ("numbered", "skipped")}) for end in ends]


def _told_by_entries(items: Sequence[Any]) -> list[RunRecord]:
    """Return the records of the runs that entries are part of, without a log to put them in."""
    said = _said(_signed(items, None), {"run": "run_" + "a" * 26}, lambda: "", None, NO_READ)
    runs: dict[str, list[tuple[str, bytes]]] = {}
    for entry in said.values():
        runs.setdefault(entry.run, []).append((entry.kind, entry.body))
    return [trajectory.Told(run, tuple(entries)).record() for run, entries in runs.items()]


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
        kind = _kind(item)
        if kind is None or kind not in RUN_KINDS:
            told = item.get("kind") if isinstance(item, dict) else None
            faults.append(Fault(f"{path}/kind", f"got {shown(told)}", f"Send one of {', '.join(sorted(RUN_KINDS))}."))
            continue
        body = {name: value for name, value in item.items() if name != "kind" and value is not None}
        body.setdefault("run", missing["run"])
        body.setdefault("step", number)
        body.setdefault("span", span() or f"{number:016x}")
        faults += _body_faults(body, path)
        try:
            if "started_at" in body or (now is not None and not leaves(body, "started_at")):
                stated = body["started_at"] if "started_at" in body else now() if now is not None else ""
                body["started_at"] = moment.parse(stated, f"{path}/started_at")
            encoded = form.encode(body)
        except Refused as refusal:
            faults += refusal.faults
            continue
        entry = _Entry(kind, encoded, str(body["run"]), body.get("agent"), path)
        said.setdefault(digest(kind, encoded), entry)
    if faults:
        raise Refused(faults, outcome)
    return said


def _append(ledger: Ledger, told: Sequence[trajectory.Told], *, own: bool) -> tuple[str, ...]:
    """Append the entries of trajectories, all in one write; those the log holds already change nothing."""
    said = {
        digest(kind, body): _Entry(kind, body, run.run, run.agent, f"/{number}")
        for number, run in enumerate(told)
        for kind, body in run.entries
    }
    if own:
        for run in told:
            _check_said_by(ledger, run.agent)
    return _add(ledger, said, once=True, own=own)


def _add(
    ledger: Ledger,
    said: Mapping[bytes, _Entry],
    given: Mapping[str, Any] | None = None,
    key: str | None = None,
    *,
    once: bool = False,
    own: bool = False,
) -> tuple[str, ...]:
    """Append entries that the log does not hold yet; return the runs they are part of.

    Each must be of its run's owner. With `once` a step that is told otherwise than before is refused: it would count as
    a second one. With `own` nothing may be cited from another log.
    """
    runs = tuple(dict.fromkeys(entry.run for entry in said.values()))

    def plan(draft: Draft) -> None:
        view, through = draft.view, draft.before.asof.position
        so_far = {run: progress.of_run(ledger.context.engine, ledger.tenant, view, run, through) for run in runs}
        for run in runs:
            _check_owned(run, so_far[run], [entry for entry in said.values() if entry.run == run])
        if once:
            held = ((entry, run) for run in runs for entry in view.run(run, through))
            before = [_Entry(e.kind, e.body, run, None, "") for e, run in held if e.body is not None]
            if faults := _told_otherwise([*before, *said.values()]):
                raise Refused(faults, NOTHING_RECORDED)
        added = [entry for name, entry in said.items() if name not in so_far[entry.run].known]
        _check_cited(draft, added, own=own)
        for entry in added:
            draft.add(entry.kind, entry.body, step_of(entry.kind, entry.body))

    ledger._writer.write("record", given or {}, plan, key=key)
    return runs


def _check_owned(run: str, so_far: progress.SoFar, entries: Sequence[_Entry]) -> None:
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


def _check_cited(draft: Draft, entries: Sequence[_Entry], *, own: bool) -> None:
    """Refuse entries that cite what they cannot have read; all that is wrong at once."""
    faults: list[Fault] = []
    citing = [(entry, form.decode(entry.body)) for entry in entries if entry.kind in citation.CITING]
    # A decision names no log: it is the one that its run began on, or read.
    logs: dict[str, object] = {}
    for entry, body in citing:
        basis = body.get("basis")
        log = basis.get("log") if isinstance(basis, dict) else body.get("log")
        if isinstance(log, str):
            logs.setdefault(entry.run, log)
    for entry, body in citing:
        faults += citation.faults(draft, entry.kind, body, entry.path, own=own, log=logs.get(entry.run))
    if faults:
        raise Refused(faults, NOTHING_RECORDED)


def _told_otherwise(entries: Sequence[_Entry]) -> list[Fault]:
    """Return the steps of which there are two accounts; how a run began and ended may be told again."""
    first: dict[tuple[str, str, str], bytes] = {}
    faults: list[Fault] = []
    for entry in entries:
        body = form.decode(entry.body)
        if entry.kind in ("run.started", "run.ended", JUDGED) or body.get("begun") is True:
            continue
        if first.setdefault((entry.run, entry.kind, str(body.get("span"))), entry.body) != entry.body:
            problem = f"step {body.get('step')} ({entry.kind.removeprefix('run.')}) is known otherwise"
            faults.append(Fault(entry.run, problem, "Send the trace as it was, or give it another id to keep both."))
    return faults


def _body_faults(body: Mapping[str, Any], path: str) -> list[Fault]:
    faults = [fault.under(path) for fault in observation.optional_faults({"run": body["run"]}, "")]
    step, span = body["step"], body["span"]
    if type(step) is not int or step < 0:
        faults.append(Fault(f"{path}/step", f"got {shown(step)}", "Send a whole number, 0 or more."))
    if not isinstance(span, str) or not span:
        faults.append(Fault(f"{path}/span", f"got {shown(span)}", "Send text that tells this step from others."))
    if "agent" in body:
        faults += ids.agent_faults(body["agent"], f"{path}/agent")
    return faults

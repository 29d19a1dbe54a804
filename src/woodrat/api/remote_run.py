"""Remote runs: a run recorded through a server, by an agent that runs here.

It is the library's own run: it reads, decides, calls tools and models, and is the current run as any other is. Its
records are sent to the server, which appends them unchanged; an entry without an acknowledgement is sent again, and the
log holds it once. The server makes its beginning and its writes, as those depend on the log.

Times are the server's: the local time since the run began is added to the server's time of its beginning.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from woodrat.api import codec
from woodrat.canon import form, moment
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, Unavailable, WoodratError
from woodrat.ledger import redaction
from woodrat.ledger.ownership import check_owner
from woodrat.ledger.report import Report
from woodrat.runs import trace, values
from woodrat.runs.recorder import current
from woodrat.runs.recorder.log import PENDING_MAX, check_id
from woodrat.runs.recorder.recording import FAIL, RESOLVE, Recording
from woodrat.runs.recorder.resume import begun_again, call_of, check_on_unknown
from woodrat.runs.recorder.steps import NOTHING_RECORDED, RUNNING
from woodrat.runs.shape import shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from woodrat.api.link import RemoteContext
    from woodrat.api.transport import Transport
    from woodrat.canon.form import Json
    from woodrat.canon.moment_words import Time
    from woodrat.clock import Clock
    from woodrat.ledger.moments import Moment
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.agent_function import AgentCall
    from woodrat.runs.recorder.recording import Body, Steps
    from woodrat.runs.recorder.run import Run
    from woodrat.runs.recorder.steps import Begun, RunLog, StepRecorder, WriteStep

_STATED = ("subject", "conversation", "principal", "code", "pipeline", "session")


class RemoteReads:
    """The verbs that read, at one moment of a ledger behind an address."""

    def __init__(self, past: Any) -> None:
        self._past: Any = past

    @property
    def position(self) -> int:
        """The position reads are answered at."""
        found: int = self._past.position
        return found

    @property
    def valid_at(self) -> str | None:
        """Only values true by this time count."""
        found: str | None = self._past.context.valid_at
        return found

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> RemoteReads:
        """Return the reads at another moment, or another valid time."""
        return RemoteReads(self._past.at(moment, valid_at=valid_at))

    def ask(self, verb: str, *arguments: Any, **given: Any) -> Any:
        """Return the result of a reading verb of the library; the run that called it records it."""
        with current.entered(None):
            return getattr(self._past, verb)(*arguments, **given)


class ServedLedger(Protocol):
    """The part of a ledger behind an address (`remote.RemoteLedger`), besides its verbs, that the recorder uses."""

    context: RemoteContext

    @property
    def agent(self) -> str:
        """The key's agent."""

    def as_agent(self, agent: str) -> Any:
        """Return the ledger, if it is this agent's."""


class RemoteRunLog:
    """Where one run is recorded: a ledger behind an address."""

    def __init__(self, transport: Transport, ledger: ServedLedger) -> None:
        self.transport = transport
        """The way to the server."""
        self.ledger: Any = ledger
        """The ledger that the caller opened."""
        self.agent = ledger.agent
        self.clock: Clock = ledger.context.clock
        self.hidden = ledger.context.hidden
        self.reads = RemoteReads(ledger)
        self.parent: str | None = None
        """The run that started it, if known here."""
        self._unsent: list[dict[str, Any]] = []

    @property
    def is_waiting(self) -> bool:
        """Whether entries wait for a server that is not there."""
        return bool(self._unsent)

    def by(self, agent: str | None) -> RemoteRunLog:
        """Return the same log for another run; the key determines the recording agent."""
        return RemoteRunLog(self.transport, self.ledger if agent is None else self.ledger.as_agent(agent))

    def is_same(self, other: object) -> bool:
        """Return True if another is the same log."""
        return isinstance(other, RemoteRunLog) and other.transport is self.transport

    def hold(self, run: StepRecorder) -> bool:
        """Do nothing: the server tracks runs that are being recorded."""
        return True

    def release(self, run: StepRecorder) -> None:
        """Do nothing: which runs are being recorded is for the server to say."""

    # -- from start to end

    def start(self, run: StepRecorder) -> None:
        """Have the server begin a run."""
        told = self.transport.post("/v1/runs", self._told_beginning(run), key=self.transport.fresh_key())
        run.id, run.span, run.started_at = told["run"], told["span"], told["started_at"]
        run.basis, run.log_name, run.next_step = told["basis"], told["log"], 1
        self.begin_at(told["started_at"])
        run.note_inputs()
        run.hold()

    def begin_at(self, now: str) -> None:
        """Show the server's time from now on, given its current time."""
        self.clock = _Shifted(self.clock, now)

    def adopted(self, around: RunLog) -> None:
        """Take the clock of the run around it: it shows the server's time already."""
        self.clock = around.clock

    def _told_beginning(self, run: StepRecorder) -> dict[str, Any]:
        begun, frame = run.beginning, current.current_frame()
        told: dict[str, Any] = {"query": begun.query, **{name: getattr(begun, name) for name in _STATED}}
        # hidden values stay here, and so do Python types except for their names
        inputs = values.plain(dict(begun.inputs), run.hidden)
        told["inputs"], told["inputs_shape"] = inputs or None, shape_of(begun.inputs, inputs).shape
        told["attributes"] = values.plain(dict(begun.attributes), run.hidden) or None
        told["redact"] = sorted(run.hidden) or None
        told["runbook"], told["tool_configs"] = list(begun.runbooks) or None, list(begun.tool_configs) or None
        told["recall"], told["traceparent"] = begun.recall or None, begun.trace
        place = begun.parent
        if place is None and begun.trace is None and frame is not None and frame.run.log.is_same(self):
            place = trace.Place(frame.run.id, frame.span)
        if place is not None:
            told["parent"] = place.run if place.span is None else f"{place.run}/{place.span}"
            self.parent = place.run
        told["forked_from"] = None if begun.forked_from is None else dict(begun.forked_from)
        if run.has_stated_id:
            told["id"] = run.id
        return told

    def append(self, run: StepRecorder, kind: str, begun: Begun, bodies: Sequence[dict[str, Json]]) -> Exception | None:
        """Send the entries of one step."""
        return self._send(run, [{"kind": kind, **form.decode(values.fit(body))} for body in bodies])

    def end(self, run: StepRecorder, begun: Begun, body: dict[str, Json]) -> Exception | None:
        """Send the end of a run."""
        return self._send(run, [{"kind": "run.ended", **form.decode(values.fit(body))}])

    def flush(self, run: StepRecorder) -> Exception | None:
        """Retry sending the pending entries, and return the error, if any."""
        return self._send(run, [])

    def _send(self, run: StepRecorder, entries: list[dict[str, Any]]) -> Exception | None:
        """Send pending and new entries; return the error, if any. What got no answer waits for the next step."""
        with run.lock:
            sent, self._unsent = [*self._unsent, *entries], []
            if not sent:
                return None
            try:
                # The log holds an entry once, so the key only marks the request as safe to retry.
                path, key = f"/v1/runs/{run.id}/entries", self.transport.fresh_key()
                self.transport.post(path, {"entries": sent}, key=key)
            except Unavailable as problem:
                self._unsent = sent[:PENDING_MAX]
                return problem
            except WoodratError as problem:
                return problem
        return None

    # -- how a run uses the log

    def write(self, step: WriteStep, verb: str, arguments: Sequence[Any], about: Mapping[str, Any]) -> Report:
        """Have the server carry out a verb that writes, as a step of a run."""
        bound = signature(getattr(self.ledger, verb)).bind(*arguments, **about)
        given = {name: value for name, value in bound.arguments.items() if name != "about"}
        given |= bound.arguments.get("about", {})
        given = {name: str(value) if isinstance(value, Ref) else value for name, value in given.items()}
        given = redaction.arguments(given, step.hidden)
        change = {name: value for name, value in given.items() if value is not None}
        if "idempotency_key" not in change:
            # Numbered as the library does, so that a replay finds what came of it.
            count = step.key(verb, values.plain(change)).rpartition(".")[2]  # type: ignore[arg-type]
            change["counted"] = [step.counter, int(count)]
        path, key = f"/v1/runs/{step.run}/steps", self.transport.fresh_key()
        told = self.transport.post(path, {"step": {"change": {"verb": verb, **change}}}, key=key)
        report: Report = codec.read(Report, told["report"])
        return report

    def interpretation(self, step: WriteStep, source: str, about: Mapping[str, Any]) -> Any:
        """Refuse to read a source as a step: a server takes readings outside of runs."""
        problem = "a run on a server has no interpretations of its own"
        remedy = "Use ledger.interpretations.start; observations stored through it are not part of the run."
        raise Refused([Fault(f"run {step.run}", problem, remedy)], "Nothing was written.")

    def judge(self, run: str, verdict: str, hidden: frozenset[str], about: Mapping[str, Any]) -> Report:
        """Record a judgement of a run on the server."""
        report: Report = self.ledger.runs.judge(run, verdict, **about)
        return report

    def schema_at(self, entity: str, position: int) -> str | None:
        """Return None: the server knows it."""
        return None

    def runs_inside(self, started: Body) -> Sequence[Steps]:
        """Return none: the recording that the server sent holds the runs inside."""
        return ()


def continued(log: RemoteRunLog, run_id: str | None, *, ends: bool, on_error: str) -> Run:
    """Return a run that another process began, so that this process can record into it too."""
    place = current.named_by_environment()[0] if run_id is None else trace.traced(run_id) or trace.place_of(run_id)
    if place is None:
        remedy = "Send the run's id, or start this process with the variables of run.environment()."
        raise Refused([Fault("run", "no run is named", remedy)], NOTHING_RECORDED)
    record = log.ledger.runs.show(place.run)
    check_owner(log.agent, place.run, record.agent)
    if record.end is not None or record.start is None:
        problem = "it has ended" if record.end is not None else "its start is not in the log"
        raise Refused([Fault(f"run {place.run}", problem, "Judge it, or start another.")], NOTHING_RECORDED)
    started = _start_of(log, record)
    run = begun_again(log, place.run, started, on_error)
    run.state, run.ends = RUNNING, ends
    run.id, run.span, run.started_at = started["run"], started["span"], run.log.clock.now()
    basis = started.get("basis") or {}
    run.basis, run.log_name = basis.get("position"), basis.get("log")
    run.next_step = 1 + max((step.step for step in record.steps), default=0)
    run.counter = f"{run.fresh_span()}."
    _begin_at(run, run.started_at)
    run.note_inputs()
    run.hold()
    return run


def carried_on(
    log: RemoteRunLog,
    run_id: str,
    agent: Callable[..., Any],
    *,
    on_unknown: Any = FAIL,
    on_error: str = "note",
    presented: Callable[[Run], Any] | None = None,
) -> tuple[Run, AgentCall]:
    """Return an interrupted run that is carried on here, and how the agent's function is called for it.

    The server checks, after all other checks, that no other process continues it.
    """
    check_on_unknown(on_unknown)
    record = log.ledger.runs.show(check_id(run_id))
    check_owner(log.agent, run_id, record.agent, "Nothing was resumed.")
    run = begun_again(log, run_id, _start_of(log, record), on_error)
    run.id = run_id
    call = call_of(run, agent, presented)
    path, key = f"/v1/runs/{run_id}/resume", log.transport.fresh_key()
    asked = {"position": max(record.positions), "on_unknown": RESOLVE if callable(on_unknown) else on_unknown}
    told = log.transport.post(path, asked, key=key)
    steps = [[(entry.pop("kind"), entry) for entry in entries] for entries in told["runs"]]
    _begin_at(run, told["resumed_at"])
    run.take_over(Recording.of_family(steps, on_unknown))
    return run, call


def _start_of(log: RemoteRunLog, record: RunRecord) -> Body:
    """Return the entry with which a recorded run began; None if its beginning is missing."""
    if record.start is None:
        return {}
    body = log.ledger.log.entries(after=record.start - 1, limit=1)[0].body
    found: Body = {} if body is None else form.decode(body)
    return found


def _begin_at(run: Run, now: str) -> None:
    assert isinstance(run.log, RemoteRunLog), "a run of a remote ledger"
    run.log.begin_at(now)


class _Shifted:
    """A clock that shows a server's time: the time of an event there plus the local time since."""

    def __init__(self, clock: Clock, began: str) -> None:
        self._clock = clock
        self._ahead = moment.to_micros(began) - moment.to_micros(clock.now())

    def now(self) -> str:
        """Return the time there, fixed-width UTC."""
        return moment.from_micros(moment.to_micros(self._clock.now()) + self._ahead)

    def random(self, count: int) -> bytes:
        """Return random bytes."""
        return self._clock.random(count)

"""Remote runs: a run recorded through a server, by an agent that runs here.

It is the library's own run: it reads, decides, calls tools and models, and is the current run as any other is. What it
records is sent to the server, which appends it as it is; an entry that got no answer is sent again, and the log holds
it once. Its beginning and what it writes are the server's work, as those depend on the log.

Times are the server's: what passed here since the run began is added to when it began there.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from woodrat.canon import form, moment
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, Unavailable, WoodratError
from woodrat.ledger import redaction
from woodrat.ledger import report as reports
from woodrat.runs import current, threads, values
from woodrat.runs.recorder import NOTHING_RECORDED, PENDING_MAX, Run

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.remote import RemoteLedger
    from woodrat.api.transport import Transport
    from woodrat.canon.form import Json
    from woodrat.clock import Clock
    from woodrat.ledger.report import Report
    from woodrat.replay.resume import Recording
    from woodrat.runs.recorder import Begun

_STATED = ("subject", "conversation", "principal", "code", "pipeline", "session")


class RemoteRun(Run):
    """One execution of an agent, recorded through a server; a context manager, `async with` too."""

    _unsent: list[dict[str, Any]]
    """Entries that wait for a server that is not there."""

    def start(self) -> RemoteRun:
        """Begin the run, for callers that cannot use `with`; it is not the current run by that."""
        with self._lock:
            if self._state != "new":
                problem = "it has started already"
                raise Refused([Fault("run", problem, "Start a run of its own.")], NOTHING_RECORDED)
            self._state = "running"
        self._unsent = []
        if self._adopted():
            return self
        transport = self._transport
        try:
            told = transport.post("/v1/runs", self._told_beginning(), key=transport.fresh_key())
        except BaseException:
            self._state = "new"
            raise
        self.id, self.span, self.started_at = told["run"], told["span"], told["started_at"]
        self.basis, self._log, self._next_step = told["basis"], told["log"], 1
        self._begin_here()
        return self

    def continued(self, started: Mapping[str, Any], step: int, *, ends: bool) -> RemoteRun:
        """Take up a run that another process began: the entry of its beginning, and the number of its next step."""
        self._unsent = []
        self._state, self._ends = "running", ends
        self.id, self.span, self.started_at = started["run"], started["span"], self._clock.now()
        basis = started.get("basis") or {}
        self.basis, self._log, self._next_step = basis.get("position"), basis.get("log"), step
        self._recorder = f"{self._fresh_span()}."
        self._begin_here()
        return self

    def carried_on(self, recording: Recording, now: str) -> RemoteRun:
        """Carry on an interrupted run: what the log holds of it, and what time it is there."""
        self._unsent = []
        self._clock = _Shifted(self._clock, now)
        recording.take_over(self)
        return self

    def _begin_here(self) -> None:
        assert self.started_at is not None
        self._clock = _Shifted(self._clock, self.started_at)
        self._note_inputs()
        self._live()

    def _live(self) -> None:
        threads.begin()  # which runs are being recorded is for the server to say
        self._is_living = True

    def _adopted(self) -> bool:
        frame = current.current_frame()
        if frame is None or not super()._adopted():
            return False
        self._clock = frame.run._clock  # it shows the server's time already
        return True

    def _told_beginning(self) -> dict[str, Any]:
        begun, frame = self._beginning, current.current_frame()
        told: dict[str, Any] = {"query": begun.query, **{name: getattr(begun, name) for name in _STATED}}
        # Hidden values stay here.
        told["inputs"] = values.plain(dict(begun.inputs), self._hidden) or None
        told["attributes"] = values.plain(dict(begun.attributes), self._hidden) or None
        told["redact"] = sorted(self._hidden) or None
        told["runbook"], told["tool_configs"] = list(begun.runbooks) or None, list(begun.tool_configs) or None
        told["recall"], told["traceparent"] = begun.recall or None, begun.trace
        place = begun.parent
        if place is None and begun.trace is None and frame is not None and frame.run._is_with(self._ledger):
            place = current.Place(frame.run.id, frame.span)
        if place is not None:
            told["parent"] = place.run if place.span is None else f"{place.run}/{place.span}"
        if self._stated_id:
            told["id"] = self.id
        return told

    def _is_with(self, ledger: Ledger) -> bool:
        return getattr(ledger, "_transport", None) is self._transport

    @property
    def _transport(self) -> Transport:
        return cast("RemoteLedger", self._ledger)._transport

    def _leave(self) -> None:
        if self._is_living:
            threads.finish()
            self._is_living = False

    def _schema_at(self, entity: str, position: int) -> str | None:
        return None  # the server says it

    def judge(self, verdict: str, **about: Any) -> Report:
        """Say what is thought of the run, as `Ledger.judge` does; also after its end."""
        return self._ledger.judge(self.id, verdict, **about)

    # ------------------------------------------------------------------------------------------ recording

    def _record(self, kind: str, begun: Begun, *bodies: dict[str, Json]) -> None:
        self._settle(self._send([{"kind": kind, **form.decode(values.fit(body))} for body in bodies]))

    def _end(self, begun: Begun, status: str, error: BaseException | None, usage: Mapping[str, int] | None) -> None:
        if self.recording is not None and self.recording.has_ended:
            return
        said = form.decode(values.fit(self._ending(begun, status, error, usage)))
        failure = self._send([{"kind": "run.ended", **said}])
        if isinstance(failure, Refused):
            raise failure
        self._settle(failure)

    def flush(self) -> bool:
        """Try once more to record what could not be; return whether nothing waits any more."""
        self._settle(self._send([]))
        return not self._unsent

    def _send(self, entries: list[dict[str, Any]]) -> Exception | None:
        """Send what waits and what is new; return what went wrong. What got no answer waits for the next step."""
        with self._lock:
            sent, self._unsent = [*self._unsent, *entries], []
            if not sent:
                return None
            try:
                # The log holds an entry once, so the key only says that it may be sent again.
                transport = self._transport
                transport.post(f"/v1/runs/{self.id}/entries", {"entries": sent}, key=transport.fresh_key())
            except Unavailable as problem:
                self._unsent = sent[:PENDING_MAX]
                return problem
            except WoodratError as problem:
                return problem
        return None

    def _write(self, verb: str, *arguments: Any, **about: Any) -> Report:
        """Write as a step of this run, at the server."""
        writing = self._writing()
        bound = signature(getattr(self._ledger, verb)).bind(*arguments, **about)
        given = {name: value for name, value in bound.arguments.items() if name != "about"}
        given |= bound.arguments.get("about", {})
        given = {name: str(value) if isinstance(value, Ref) else value for name, value in given.items()}
        given = redaction.arguments(given, self._hidden)
        change = {name: value for name, value in given.items() if value is not None}
        if "idempotency_key" not in change:
            # Numbered as the library does, so that a replay finds what came of it.
            count = writing.key(verb, values.plain(change)).rpartition(".")[2]  # type: ignore[arg-type]
            change["counted"] = [self._recorder, int(count)]
        path, key = f"/v1/runs/{self.id}/steps", self._transport.fresh_key()
        try:
            told = self._transport.post(path, {"step": {"change": {"verb": verb, **change}}}, key=key)
        except Unavailable:
            writing.give_back()
            raise
        report = reports.from_json(told["report"])
        self._wrote(report, writing.step)
        return report


class _Shifted:
    """A clock that shows the time of a server, by when something began there and what passed here since."""

    def __init__(self, clock: Clock, began: str) -> None:
        self._clock = clock
        self._ahead = moment.to_micros(began) - moment.to_micros(clock.now())

    def now(self) -> str:
        """Return the time there, fixed-width UTC."""
        return moment.from_micros(moment.to_micros(self._clock.now()) + self._ahead)

    def random(self, count: int) -> bytes:
        """Return random bytes."""
        return self._clock.random(count)

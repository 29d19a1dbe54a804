"""Remote: a ledger behind an address, with the verbs of the library.

    ledger = woodrat.open("http://localhost:8787", key="wrat_…")

Tenant and agent are what the key says. Every verb returns the same frozen records as on a ledger that is here, and a
run is the library's own. What needs code of the caller inside the ledger (own policies, embedders, `resume`), or a file
beside it (`backup`), is not among the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

from woodrat.api.remote_maintenance import RemoteTended
from woodrat.api.remote_past import RemotePast, check_plain, ref_text
from woodrat.api.transport import Transport
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Refused
from woodrat.ledger import redaction
from woodrat.ledger import report as reports
from woodrat.ledger.report import Report
from woodrat.state.redaction import NOTHING

if TYPE_CHECKING:
    from types import TracebackType

    from woodrat.api.ledger import Ledger
    from woodrat.api.remote_run import RemoteRun
    from woodrat.api.remote_watch import RemoteFollower
    from woodrat.canon.form import Json
    from woodrat.clock import Clock
    from woodrat.explain.stale import Stale
    from woodrat.explain.workers import Subscription
    from woodrat.ledger.moments import Moment
    from woodrat.replay.result import Replayed
    from woodrat.replay.resume import Resumed

__all__ = ["RemoteLedger", "RemotePast", "open_remote"]

P = ParamSpec("P")
T = TypeVar("T")


NOT_HERE: Final[Mapping[str, str]] = {
    "backup": "it writes a file beside the database; the operator makes it there",
    "notices": "they are in the server's own log",
    "sync": "a ledger that is here syncs with a server",
}
"""Verbs that a ledger behind a server has not got, each with the reason."""


class NotHere(Refused, AttributeError):
    """A ledger behind a server has no such verb. Nothing was done."""


class RemoteLedger(RemoteTended):
    """A ledger behind an address, open for reading and writing as its key allows; a context manager."""

    def __getattr__(self, name: str) -> Any:
        reason = NOT_HERE.get(name)
        if reason is None:
            raise AttributeError(f"a ledger behind a server has no {name}")
        problem = "a ledger behind a server has no such verb"
        raise NotHere([Fault(name, problem, f"{reason[0].upper()}{reason[1:]}.")], "Nothing was done.")

    def __init__(self, transport: Transport, clock: Clock, hidden: frozenset[str] = NOTHING) -> None:
        super().__init__(transport)
        self._hidden = hidden
        """Keys whose values do not leave this process."""
        self.context = self.context._replace(clock=clock, hidden=hidden)

    def __enter__(self) -> RemoteLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was acknowledged stays."""
        self._transport.close()

    def _write(self, verb: str, idempotency_key: str | None, **given: Any) -> Report:
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        said = redaction.arguments(given, self._hidden)
        body = {name: value for name, value in said.items() if value is not None and value is not False}
        return reports.from_json(self._transport.post(f"/v1/{verb}", body, key=key))

    def store(
        self,
        records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        saw: Sequence[str] = (),
        **about: Any,
    ) -> Report:
        """Store what an agent saw, as `Ledger.store` does: one record or a list of them, whole or not at all."""
        check_plain(records)
        sent = records if isinstance(records, Mapping) else list(records)
        return self._write("store", idempotency_key, records=sent, saw=list(saw) or None, **about)

    def correct(
        self,
        ref: str | Ref,
        fields: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **about: Any,
    ) -> Report:
        """Correct fields of an entity; the values hold until corrected or withdrawn."""
        if isinstance(about.get("replaces"), str):
            about["replaces"] = [about["replaces"]]
        return self._write("correct", idempotency_key, ref=ref_text(ref), fields=fields, **about)

    def retract(self, observations: str | Sequence[str], *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Withdraw observations by id; they stay readable, and a retraction can itself be withdrawn."""
        named = [observations] if isinstance(observations, str) else list(observations)
        return self._write("retract", idempotency_key, observations=named, **about)

    def delete(self, ref: str | Ref, *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Mark an entity as deleted; nothing is lost, and `restore` brings it back."""
        return self._write("delete", idempotency_key, ref=ref_text(ref), **about)

    def restore(self, ref: str | Ref, *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Bring a deleted entity back as it is believed now."""
        return self._write("restore", idempotency_key, ref=ref_text(ref), **about)

    def relate(
        self, start: str | Ref, type: str, end: str | Ref, *, idempotency_key: str | None = None, **about: Any
    ) -> Report:
        """Relate two known entities."""
        ends = {"from": ref_text(start), "to": ref_text(end)}
        return self._write("relate", idempotency_key, **ends, type=type, **about)

    def merge(self, one: str | Ref, other: str | Ref, *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Say that two entities of one type are one; `split` takes it back."""
        return self._write("merge", idempotency_key, one=ref_text(one), other=ref_text(other), **about)

    def split(
        self, ref: str | Ref, other: str | Ref | None = None, *, idempotency_key: str | None = None, **about: Any
    ) -> Report:
        """Part an entity from all it is joined with, or from one."""
        apart = None if other is None else ref_text(other)
        return self._write("split", idempotency_key, ref=ref_text(ref), other=apart, **about)

    def register(
        self, model: object, *, entity_type: str | None = None, idempotency_key: str | None = None, **about: Any
    ) -> Report:
        """Register a schema: a JSON Schema, or a dataclass, Pydantic model or msgspec struct."""
        from woodrat.state import models

        document, named = models.document_of(model)
        return self._write("schemas", idempotency_key, schema=document, entity_type=entity_type or named, **about)

    def source(
        self,
        content: bytes | str | PathLike[str],
        *,
        name: str | None = None,
        media_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Add a source: bytes, or a file by its path. Returns its id."""
        from base64 import b64encode

        from woodrat.ledger.sources import content_of

        data, title = content_of(content)
        body = {"base64": b64encode(data).decode(), "name": title if name is None else name, "media_type": media_type}
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        found: str = self._transport.post("/v1/sources", body, key=key)["source"]
        return found

    def tag(self, name: str, moment: Moment = "now", *, idempotency_key: str | None = None) -> Report:
        """Name a moment, so that `@name` reads at it."""
        return self._write("tags", idempotency_key, name=name, moment=str(moment))

    @contextmanager
    def interpretation(self, source_id: str, **about: Any) -> Iterator[RemoteReading]:
        """Record one reading of a source: what is stored inside names it, and its end says how it went."""
        reading = self.begin_interpretation(source_id, **about)
        try:
            yield reading
        except BaseException as error:
            reading.end("error", error=f"{type(error).__name__}: {error}")
            raise
        reading.end()

    def begin_interpretation(
        self, source_id: str, *, idempotency_key: str | None = None, **about: Any
    ) -> RemoteReading:
        """Begin a reading of a source, for callers that cannot use `interpretation` as a block."""
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        said = redaction.arguments(about, self._hidden)
        found = self._transport.post("/v1/interpretations", {"source": source_id, **said}, key=key)
        return RemoteReading(self._transport, found["interpretation"], source_id, self._hidden)

    def continue_interpretation(self, interpretation: str) -> RemoteReading:
        """Return a reading that this agent began elsewhere and that has not ended."""
        for found in self.interpretations():
            if found.id == interpretation and found.agent == self.agent:
                from woodrat.canon import ids

                return RemoteReading(self._transport, found.id, ids.id_of("source", found.source), self._hidden)
        raise NotFound(
            f"There is no interpretation {interpretation} of this agent. Nothing was written. Begin one first.",
            {"interpretation": interpretation},
        )

    # ------------------------------------------------------------------------------------------------------- runs

    def run_kind(self) -> type[RemoteRun]:
        """Return the class of its runs."""
        from woodrat.api.remote_run import RemoteRun

        return RemoteRun

    def run(self, query: str, **about: Any) -> RemoteRun:
        """Return a run to be recorded through the server, as `Ledger.run` does: a context manager."""
        from woodrat.runs.start import begin

        return cast("RemoteRun", begin(cast("Ledger", self), query, **about))

    def recorded(self, query: str | None = None, **about: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Make every call of a function a run, as `Ledger.recorded` does."""
        from woodrat.runs.recorded import recorded

        return recorded(cast("Ledger", self), query, about)

    def continue_run(self, run: str | None = None, *, ends: bool = False, on_error: str = "note") -> RemoteRun:
        """Return a run that another process began, to be recorded into from here too, as `Ledger.continue_run` does.

        What it read elsewhere is not linked by value with what is decided here.
        """
        from woodrat.ledger.ownership import check_owner
        from woodrat.replay.resume import begun_again
        from woodrat.runs import current
        from woodrat.runs.recorder import NOTHING_RECORDED

        place = current.named_by_environment()[0] if run is None else current.traced(run) or current.place_of(run)
        if place is None:
            remedy = "Send the run's id, or start this process with the variables of run.environment()."
            raise Refused([Fault("run", "nothing names one", remedy)], NOTHING_RECORDED)
        record = self.run_record(place.run)
        check_owner(self.agent, place.run, record.agent)
        if record.end is not None or record.start is None:
            problem = "it has ended" if record.end is not None else "its beginning is not in the log"
            raise Refused([Fault(f"run {place.run}", problem, "Judge it, or start another.")], NOTHING_RECORDED)
        from woodrat.canon import form

        body = self.entries(after=record.start - 1, limit=1)[0].body
        assert body is not None, "a run that is on record has its beginning"
        started: Any = form.decode(body)
        found = cast("RemoteRun", begun_again(cast("Ledger", self), place.run, started, on_error))
        return found.continued(started, 1 + max((step.step for step in record.steps), default=0), ends=ends)

    def resume(
        self,
        run: str,
        agent: Callable[..., Any],
        *,
        on_unknown: str | Callable[[str, Any], Any] = "fail",
        on_error: str = "note",
    ) -> Resumed:
        """Carry on an interrupted run with the agent's function, as `Ledger.resume` does: its code runs here."""
        from woodrat.replay.resume import resume

        return resume(cast("Ledger", self), run, agent, on_unknown=on_unknown, on_error=on_error)

    def _carry_on(self, run: str, *, on_unknown: Any = "fail", on_error: str = "note") -> RemoteRun:
        """Return an interrupted run that is carried on here; the server says that nobody else does."""
        from woodrat.replay.resume import Recording, begun_again, check_id, check_on_unknown

        check_on_unknown(on_unknown)
        last = max(self.run_record(check_id(run)).positions)
        told = self._transport.post(f"/v1/runs/{run}/resume", {"position": last}, key=self._transport.fresh_key())
        steps = [[(entry.pop("kind"), entry) for entry in entries] for entries in told["runs"]]
        recording = Recording.of_family(steps, on_unknown)
        found = cast("RemoteRun", begun_again(cast("Ledger", self), run, recording.started, on_error))
        return found.carried_on(recording, told["resumed_at"])

    def replay(self, runs: Any, agent: Callable[..., Any], **given: Any) -> Replayed:
        """Run an agent's function again on recorded runs, as `Ledger.replay` does; the whole log is fetched for it."""
        from woodrat.replay import verbs as replay_verbs

        ids = replay_verbs.ids_of(runs)
        return self.local_copy(ids).replay(ids, agent, **given)

    def follow_stale(self, *, after: Moment | None = None, wait: Callable[[], object] | None = None) -> Iterator[Stale]:
        """Yield decisions as writes make them stale, by whomever, as `Ledger.follow_stale` does."""
        from woodrat.explain import workers as explain_workers

        return explain_workers.follow(self.stale_follower(after, patient=wait is None), wait)

    def on_stale(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Have a function called with the decisions that writes make stale, by whomever, in a thread of its own."""
        from woodrat.api.remote_watch import watch
        from woodrat.explain import workers as explain_workers

        explain_workers.check_callback(callback)
        return watch(self.stale_follower(None), callback)

    def stale_follower(self, after: Moment | None, *, patient: bool = True) -> RemoteFollower:
        from woodrat.api.remote_watch import RemoteFollower

        begin = self.position if after is None else self.at(after).position
        return RemoteFollower(self._transport, begin, patient=patient)

    def by(self, agent: str) -> RemoteLedger:
        """Return the ledger, if it is this agent's: as whom it writes is for the key to say."""
        if agent == self.agent:
            return self
        remedy = "Open the server with a key of that agent."
        raise Refused([Fault("agent", f"the key speaks as {self.agent!r}", remedy)])

    def record(self, document: object, *, idempotency_key: str | None = None) -> tuple[str, ...]:
        """Record runs that happened elsewhere from a JSON document, and return their ids."""
        from woodrat.runs import document as run_document

        check_plain(document)
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        sent = run_document.without(document, self._hidden)
        return tuple(self._transport.post("/v1/runs/record", {"document": sent}, key=key)["runs"])

    def judge(self, run: str, verdict: str, *, idempotency_key: str | None = None, **said: Any) -> Report:
        """Say what is thought of a run, as `Ledger.judge` does; who judges is for the key to say."""
        return self._write("judge", idempotency_key, run=run, verdict=verdict, **said)

    def evaluate(self, run: str, *, against: Moment, idempotency_key: str | None = None, **about: Any) -> Report:
        """Compare what a run wrote with a state known to be good, and store the outcome."""
        return self._write("evaluate", idempotency_key, run=run, against=against, **about)


class RemoteReading:
    """A source being read; what is stored through it names the reading and its source."""

    def __init__(self, transport: Transport, id: str, source_id: str, hidden: frozenset[str] = NOTHING) -> None:
        self._transport = transport
        self._hidden = hidden
        self.id = id
        self.source = source_id
        self.usage: dict[str, Json] = {}
        """What the reading cost; set it before the end, as the model reported it."""

    def store(
        self,
        records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        **about: Any,
    ) -> Report:
        """Store records as `Ledger.store` does, each naming this reading and its source."""
        check_plain(records)
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        sent = records if isinstance(records, Mapping) else list(records)
        body = redaction.arguments({"records": sent, **about}, self._hidden)
        return reports.from_json(self._transport.post(f"/v1/interpretations/{self.id}/store", body, key=key))

    def end(self, status: str = "done", *, usage: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        """End the reading; one that has ended stays as it is."""
        body = {"status": status, "usage": dict(self.usage if usage is None else usage) or None, "error": error}
        # A reading ends once, so it may be sent again.
        path = f"/v1/interpretations/{self.id}/end"
        self._transport.post(path, body, key=self._transport.fresh_key())


def open_remote(address: str, key: str | None, hidden: frozenset[str] = NOTHING) -> RemoteLedger:
    """Return the ledger behind an address; values under hidden keys are never sent there."""
    from woodrat.clock import SystemClock

    clock = SystemClock()
    return RemoteLedger(Transport(address, key, clock), clock, hidden)

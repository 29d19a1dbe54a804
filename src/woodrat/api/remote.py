"""Remote: a ledger behind an address. It is a `Ledger` whose verbs are carried out over HTTP.

    ledger = woodrat.open("http://localhost:8787", key="wrat_…")

The key determines tenant and agent. Every declared verb that has an address is sent there (`link.py`), with the same
parameters and the same records as on a local ledger. Written by hand are the verbs that run the caller's code or write
the caller's files locally, and those that return no record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TypeVar, cast

from woodrat.api import codec
from woodrat.api.interpretations import Interpretations
from woodrat.api.ledger import Ledger
from woodrat.api.link import Link, RemoteContext, over, plain
from woodrat.api.log import Log
from woodrat.api.past import Past
from woodrat.api.proofs import Proofs
from woodrat.api.runs import PastRuns, Runs
from woodrat.api.schemas import Schemas
from woodrat.api.sources import Sources
from woodrat.api.training import Training
from woodrat.api.transport import Transport
from woodrat.api.verb import verbs_of
from woodrat.canon import form, ids
from woodrat.clock import Clock, SystemClock
from woodrat.errors import Fault, NotFound, Refused
from woodrat.ledger import redaction
from woodrat.ledger.moments import NO_READ, in_time
from woodrat.ledger.report import Report
from woodrat.records import replace
from woodrat.state.redaction import NOTHING

if TYPE_CHECKING:
    from woodrat.bisect.reduction import Reduction
    from woodrat.canon.form import Json
    from woodrat.canon.moment_words import Time
    from woodrat.exchange.verbs.export import ExportedLog
    from woodrat.exchange.verbs.importer import Imported
    from woodrat.explain.stale import Stale
    from woodrat.explain.workers.subscription import Subscription
    from woodrat.ledger.find import Hit
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.pages import Page
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry
    from woodrat.merge.snapshot import Snapshot
    from woodrat.proofs.proof import Capsule, ConsistencyProof, Proof, Signed
    from woodrat.recall.reader import Recall
    from woodrat.replay.result import Replayed
    from woodrat.runs.recorder.agent_function import AgentCall
    from woodrat.runs.recorder.reads import RunPast
    from woodrat.runs.recorder.run import Run
    from woodrat.state.source import Delivery
    from woodrat.training.exports import Exported

T = TypeVar("T")

PAGE_ENTRIES: Final = 1_000
"""Entries of the log per request."""
NOTHING_DONE: Final = "Nothing was done."


def not_here(verb: str, reason: str) -> NoReturn:
    """Refuse a verb that a ledger behind a server does not have."""
    raise Refused([Fault(verb, "not available through a server", reason)], NOTHING_DONE)


class RemotePast(Past):
    """A moment of a ledger behind an address."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self.link = link
        # Rooms never get this context: work that needs an engine happens on the server.
        self.context = cast("Any", RemoteContext(link.valid_at, clock, link.hidden))

    def __repr__(self) -> str:
        moment = "" if self.link.moment is None else f", as of {self.link.moment}"
        return f"<woodrat ledger {self.link.transport.address}{moment}>"

    @property
    def server(self) -> Transport:
        """The connection to the server."""
        return self.link.transport

    @property
    def home(self) -> Any:
        """No ledger that is here."""
        return None

    @cached_property
    def _caller(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.link.transport.get("/v1/caller")
        return found

    @property
    def tenant(self) -> ids.TenantId:
        """The tenant, as the key says."""
        return ids.TenantId(self._caller["tenant"])

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        found: int = self.link.get("/v1/position")["position"]
        return found

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> RemotePast:
        """Return the ledger at another moment, or another valid time."""
        link, clock = self.link, self.context.clock
        moment = moment if moment == "now" else cast("Moment | None", in_time(moment, clock))
        chosen, by = link.moment, link.valid_at if valid_at is None else str(in_time(valid_at, clock))
        if moment is not None:
            asked = Link(link.transport, link.hidden, str(moment))
            try:
                chosen = str(asked.get("/v1/position")["position"])
            except Refused as refusal:  # its name in the library
                raise Refused((replace(fault, path="moment") for fault in refusal.faults), NO_READ) from None
        found = RemotePast(Link(link.transport, link.hidden, chosen, by), self.context.clock)
        if valid_at is not None:
            found.link.get("/v1/position")  # refuses an invalid time
        return found

    def reduce(self, *arguments: Any, out: str | PathLike[str] | None = None, **asked: Any) -> Reduction:
        """Find a minimal set of observations as `Past.reduce` does, and write it to a file here."""
        from woodrat.bisect.verbs import write_reduction

        found: Reduction = _REDUCE(self, *arguments, **asked)
        if out is not None:
            write_reduction(found, out)
        return found

    def _run_reads(self) -> RunPast | None:
        """Return the reads of the current run, where that is recorded through this server; none elsewhere."""
        from woodrat.api.remote_run import RemoteRunLog as RunLog
        from woodrat.runs.recorder.log import LocalLog
        from woodrat.runs.recorder.run import current_run

        run, link = current_run(), self.link
        if run is None or run.ended:
            return None
        if isinstance(run.log, LocalLog):  # a replay reads from a copy of the log behind this address
            is_here = run.log.context.engine.location == link.transport.address
        else:
            is_here = isinstance(run.log, RunLog) and run.log.transport is link.transport
        if not is_here:
            return None
        if link.moment is None and link.valid_at is None:
            return run
        return run.at(None if link.moment is None else int(link.moment), valid_at=link.valid_at)

    def show(self, ref: Any) -> Snapshot:
        """Show an entity as `Past.show` does; inside a run, a read of it."""
        run = self._run_reads()
        return cast("Snapshot", _SHOW(self, ref)) if run is None else run.show(ref)

    def search(self, *arguments: Any, **given: Any) -> Page[Hit]:
        """Find entities by words as `Past.search` does; inside a run, a read of each."""
        run = self._run_reads()
        return cast("Page[Hit]", _SEARCH(self, *arguments, **given)) if run is None else run.search(*arguments, **given)

    def query(self, **given: Any) -> Page[Snapshot]:
        """List entities as `Past.query` does; inside a run, a read of each."""
        run = self._run_reads()
        return cast("Page[Snapshot]", _QUERY(self, **given)) if run is None else run.query(**given)

    def recall(self, *arguments: Any, **given: Any) -> Recall:
        """Find past runs that answer a question, as `Past.recall` does; inside a run, a read of it."""
        from woodrat.runs.recorder.run import current_run

        run = current_run()
        if run is None or run.ended:
            return cast("Recall", _RECALL(self, *arguments, **given))
        from woodrat.api.remote_recall import recall_in

        return recall_in(run, self, _RECALL, arguments, given)

    def sql(self, *arguments: Any, **how: Any) -> NoReturn:
        """Refuse: SQL needs access to the database."""
        not_here("sql", "It runs beside the database: open the file or the PostgreSQL address itself.")

    def erased_at(self, position: int) -> int | None:
        """Return the erasure of the body at a position, according to the log; None if the log records none."""
        asked = {"after": position - 1 if position else None, "limit": 1}
        entries = self.link.transport.get("/v1/log", asked)["items"]
        erased: int | None = entries[0].get("erased_at") if entries and entries[0]["position"] == position else None
        return erased

    @property
    def runs(self) -> PastRuns:
        """Runs: what agents did."""
        return RemotePastRuns(self)

    @property
    def schemas(self) -> Schemas:
        """Schemas: the fields, checks and merge policies of types."""
        return RemoteSchemas(cast("Any", self))

    @property
    def sources(self) -> Sources:
        """Sources: content as received."""
        return RemoteSources(cast("Any", self))

    @property
    def interpretations(self) -> Interpretations:
        """Interpretations: readings of sources."""
        return RemoteInterpretations(cast("Any", self))

    @property
    def log(self) -> Log:
        """The log: its entries."""
        return RemoteLog(cast("Any", self))

    @property
    def training(self) -> Training:
        """Recorded runs as training data."""
        return RemoteTraining(self)

    def local_copy(self, runs: Iterable[str] = ()) -> Ledger:
        """Return an in-memory ledger with a byte-identical copy of the whole log, for verbs that need the caller's
        code.

        The whole log is fetched, whatever the moment, with the reports of these runs' writes, and of their child runs'
        writes.
        """
        import json
        from tempfile import TemporaryFile

        from woodrat.engines.sqlite.in_memory import InMemoryEngine
        from woodrat.ledger.own_policy import registry
        from woodrat.replay.verbs import find_related
        from woodrat.runs import relay

        engine = InMemoryEngine()
        copy = Ledger(
            engine,
            tenant=self._caller["tenant"],
            agent=self._caller["agent"],
            clock=SystemClock(),
            policies=registry(()),
            redact=os.environ.get("WOODRAT_REDACT"),
        )
        with TemporaryFile() as lines:
            for entry in RemoteLog(cast("Any", RemotePast(Link(self.link.transport), self.context.clock))).entries():
                lines.write(json.dumps(entry.to_json()).encode() + b"\n")
            if lines.tell():
                lines.seek(0)
                copy.log.import_(lines)
        wanted = list(runs)
        inside = find_related(copy.context, wanted).kin if wanted else {}
        while wanted:
            run = wanted.pop(0)
            relay.claim(copy.context, self.link.transport.get(f"/v1/runs/{run}/receipts")["items"])
            wanted += inside.get(run, ())
        engine.location = self.link.transport.address
        return copy


class RemoteLedger(Ledger, RemotePast):
    """A ledger behind an address, open for reading and writing as its key allows; a context manager."""

    def __init__(self, link: Link, clock: Clock) -> None:
        RemotePast.__init__(self, link, clock)

    @property
    def agent(self) -> str:
        """The agent, as the key says."""
        return self._caller["agent"]

    @property
    def notices(self) -> tuple[str, ...]:
        """What went wrong around checkpoints is in the server's own log."""
        not_here("notices", "They are in the server's own log.")

    def close(self) -> None:
        """Close the connection; acknowledged writes stay."""
        self.link.transport.close()

    def as_agent(self, agent: str) -> RemoteLedger:
        """Return the ledger, if it is this agent's: the key determines the writer."""
        if agent == self.agent:
            return self
        remedy = "Open the server with a key of that agent."
        raise Refused([Fault("agent", f"the key belongs to agent {self.agent!r}", remedy)])

    position = RemotePast.position
    at = RemotePast.at
    recall = RemotePast.recall
    __repr__ = RemotePast.__repr__
    _run_reads = RemotePast._run_reads  # noqa: SLF001 - its own
    show = RemotePast.show
    search = RemotePast.search
    query = RemotePast.query
    reduce = RemotePast.reduce
    sql = RemotePast.sql
    tenant = RemotePast.tenant
    schemas = RemotePast.schemas
    sources = RemotePast.sources
    interpretations = RemotePast.interpretations
    log = RemotePast.log
    training = RemotePast.training

    @property
    def runs(self) -> Runs:
        """Runs of agents."""
        return RemoteRuns(self)

    @property
    def proofs(self) -> Proofs:
        """Proofs: checkpoints, proofs and capsules."""
        return RemoteProofs(self)

    def admit(self, bodies: Iterable[tuple[str, bytes]]) -> Report:
        """Import observations and schemas of another log, as (kind, canonical body)."""
        told = [{"kind": kind, "body": form.parse(body)} for kind, body in bodies]
        # Known entries change nothing, so a retry is safe.
        transport = self.link.transport
        return _report(transport.post("/v1/admit", {"bodies": told}, key=transport.fresh_key()))

    def run_log(self) -> Any:
        """Return where the runs of this ledger are recorded: on the other side."""
        from woodrat.api.remote_run import RemoteRunLog

        return RemoteRunLog(self.link.transport, cast("Any", self))

    def follow_stale(self, *, after: Moment | None = None, wait: Callable[[], object] | None = None) -> Iterator[Stale]:
        """Yield decisions as writes make them stale, by whomever, as `Ledger.follow_stale` does."""
        from woodrat.explain.workers.follower import follow

        return follow(self.stale_follower(after, patient=wait is None), wait)

    def on_stale(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Call a function with decisions that any write made stale, in a separate thread."""
        from woodrat.api.remote_watch import watch
        from woodrat.explain.workers.subscription import check_callback

        check_callback(callback)
        return watch(self.stale_follower(None), callback, lambda: self.position)

    def stale_follower(self, after: Moment | None, *, patient: bool = True) -> Any:
        from woodrat.api.remote_watch import RemoteFollower

        begin = self.position if after is None else self.at(after).position
        return RemoteFollower(self.link.transport, begin, patient=patient)


class RemoteNamespace:
    """A namespace of a ledger behind an address."""

    ledger: Any

    @property
    def link(self) -> Link:
        """The server, at the moment of the ledger."""
        found: Link = self.ledger.link
        return found


class RemotePastRuns(RemoteNamespace, PastRuns):
    """The runs behind an address, at one moment."""


class RemoteRuns(RemoteNamespace, Runs):
    """The runs behind an address; the agent's code runs here."""

    def import_(self, document: object, *, idempotency_key: str | None = None) -> tuple[str, ...]:
        """Record runs that happened elsewhere from a JSON document, and return their ids."""
        from woodrat.importers import files
        from woodrat.runs.recordings import keepable
        from woodrat.runs.verbs import entries as run_document

        if files.is_source(document):
            document = files.one_document(document)
        document = keepable(document)
        check_plain(document)
        transport = self.link.transport
        key = transport.fresh_key() if idempotency_key is None else idempotency_key
        sent = run_document.without(document, self.link.hidden)
        return tuple(transport.post("/v1/runs/import", {"document": sent}, key=key)["items"])

    def continue_(self, run: str | None = None, *, ends: bool = False, on_error: str = "note") -> Run:
        """Continue a run that another process started, as `Runs.continue_` does.

        Its reads elsewhere are not linked by value with decisions made here.
        """
        from woodrat.api.remote_run import continued

        return continued(self.ledger.run_log(), run, ends=ends, on_error=on_error)

    def carry_on(self, run: str, agent: Callable[..., Any], **given: Any) -> tuple[Run, AgentCall]:
        """Return an interrupted run that continues here; the server checks that no other process continues it."""
        from woodrat.api.remote_run import carried_on

        return carried_on(self.ledger.run_log(), self._run_named(run), agent, **given)

    def forked(
        self, run: str, *, at: int | str, set: Mapping[str, Any], tools: str = "live", on_error: str = "note"
    ) -> Run:
        """Return a new fork of a run that has not started; fetches the whole log."""
        from woodrat.runs.recorder.fork import fork_of

        run = self._run_named(run)
        source = cast("Ledger", self.ledger.local_copy([run])).context
        return fork_of(self.ledger.run_log(), source, run, at=at, edited=set, tools=tools, on_error=on_error)

    def replay(self, runs: Any, agent: Callable[..., Any], **given: Any) -> Replayed:
        """Run an agent's function again on recorded runs, as `Runs.replay` does; the whole log is fetched for it."""
        from woodrat.replay import verbs as replay_verbs

        ids = replay_verbs.ids_of(runs)
        return cast("Ledger", self.ledger.local_copy(ids)).runs.replay(ids, agent, **given)


class RemoteSchemas(RemoteNamespace, Schemas):
    """The schemas behind an address."""

    def register(self, model: object, *, entity_type: str | None = None, **about: Any) -> Report:
        """Register a schema: a JSON Schema, or a dataclass, Pydantic model or msgspec struct."""
        from woodrat.state import models

        document, named = models.document_of(model)
        found: Report = _REGISTER(self, document, entity_type=entity_type or named, **about)
        return found


class RemoteSources(RemoteNamespace, Sources):
    """The sources behind an address."""

    def add(
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
        transport = self.link.transport
        key = transport.fresh_key() if idempotency_key is None else idempotency_key
        found: str = transport.post("/v1/sources", body, key=key)["source"]
        return found

    def content(self, source: str) -> bytes:
        """Return the content of a source, exactly as received."""
        from base64 import b64decode

        shown = self.link.get(f"/v1/sources/{source}")
        return b64decode(shown["base64"]) if shown["text"] is None else str(shown["text"]).encode()

    def show(self, source: str) -> tuple[Delivery, ...]:
        """Show every delivery of one source."""
        from woodrat.state.source import Delivery

        shown = self.link.get(f"/v1/sources/{source}")
        return tuple(codec.read(Delivery, delivery) for delivery in shown["deliveries"])


class RemoteInterpretations(RemoteNamespace, Interpretations):
    """The interpretations behind an address."""

    @contextmanager
    def start(self, source: str, **about: Any) -> Iterator[Any]:
        """Record one interpretation of a source: observations stored inside name it; its end records the outcome."""
        reading = self.begin(source, **about)
        try:
            yield reading
        except BaseException as error:
            reading.end("error", error=f"{type(error).__name__}: {error}")
            raise
        reading.end()

    def begin(self, source_id: str, *, idempotency_key: str | None = None, **about: Any) -> Any:
        """Begin an interpretation of a source, for callers that cannot use `start` as a block."""
        transport = self.link.transport
        key = transport.fresh_key() if idempotency_key is None else idempotency_key
        said = redaction.arguments(about, self.link.hidden)
        found = transport.post("/v1/interpretations", {"source": source_id, **said}, key=key)
        return RemoteReading(transport, found["interpretation"], source_id, self.link.hidden)

    def continue_(self, interpretation: str) -> Any:
        """Return an interpretation that this agent began elsewhere and that has not ended."""
        with suppress(NotFound):
            found = self.show(interpretation)
            if found.agent == self.ledger.agent:
                return RemoteReading(self.link.transport, found.id, found.source, self.link.hidden)
        raise NotFound(
            f"There is no interpretation {interpretation} of this agent. Nothing was written. Start one first.",
            {"interpretation": interpretation},
        )


class RemoteLog(RemoteNamespace, Log):
    """The log behind an address."""

    def entries(self, *, after: int = -1, limit: int | None = None) -> tuple[Entry, ...]:
        """Return entries of the log after a position, in order."""
        from woodrat.log.entry import Entry

        found: list[Entry] = []
        while limit is None or len(found) < limit:
            wanted = PAGE_ENTRIES if limit is None else min(PAGE_ENTRIES, limit - len(found))
            page = self.link.get("/v1/log", after=after if after >= 0 else None, limit=wanted)["items"]
            found += (Entry.from_json({name: each[name] for name in each if name != "erased_at"}) for each in page)
            if len(page) < wanted:
                break
            after = found[-1].position
        return tuple(found)

    def export(
        self,
        out: str | PathLike[str] | BinaryIO,
        *,
        after: int = -1,
        through: Moment = "now",
        force: bool = False,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> ExportedLog:
        """Write the log as JSON lines, as `Log.export` does; a broken connection is opened again."""
        from woodrat.exchange.relay import remote_peer

        how: Any = {"after": after, "through": through, "force": force, "resume": resume, "progress": progress}
        return remote_peer.export(self.link.transport, out, **how)

    def import_(self, source: str | PathLike[str] | BinaryIO, *, progress: Progress | None = None) -> Imported:
        """Let the server import an exported log; importing it again changes nothing. The key must carry `manage`."""
        from woodrat.exchange.relay import remote_peer

        return remote_peer.import_file(self.link.transport, source, progress)

    def sync(self, *arguments: Any, **how: Any) -> NoReturn:
        """Refuse: a ledger that is here syncs with a server."""
        not_here("log.sync", "A ledger that is here syncs with a server: call it there.")

    def backup(self, *arguments: Any, **how: Any) -> NoReturn:
        """Refuse: a backup is a file beside the database."""
        not_here("log.backup", "It writes a file beside the database; the operator makes it there.")


class RemoteTraining(RemoteNamespace, Training):
    """Recorded runs behind an address as training data."""

    def export(
        self, kind: str, *, out: str | PathLike[str] | IO[str] | IO[bytes], record: bool = True, **asked: Any
    ) -> Exported:
        """Write rows for training a model, as `Training.export` does; the whole log is fetched for it."""
        from woodrat.training import verbs as training_verbs

        link, copy = self.link, self.ledger.local_copy()
        past = copy if link.moment is None else copy.at(link.moment, valid_at=link.valid_at)
        found: Exported = past.training.export(kind, out=out, record=False, **asked)
        if not record or link.moment is not None:
            return found
        filters = {name: asked.get(name) for name in ("agent", "since", "until", "verdict")}
        last = copy.log.entries(after=found.position - 1, limit=1)
        log = last[0].log if last else None
        ledger = self.ledger
        made = {"pair_by": "input", "metadata": True, **{n: asked[n] for n in ("pair_by", "metadata") if n in asked}}
        event = training_verbs.record(
            ledger.store, ledger.context.clock, ledger.agent, log, found, filters, link.valid_at, **made
        )
        return replace(found, event=event)


class RemoteProofs(RemoteNamespace, Proofs):
    """Proofs of the log behind an address, made from the documents that verifiers read."""

    def prove(self, what: str | int) -> Proof:
        """Prove that an observation, or the entry at a position, is in the log under a checkpoint."""
        document = self.link.transport.get(f"/v1/proofs/{what}")
        with codec.reading("proof"):
            return _proof(document["entry"], document["proof"], _signed(document["checkpoint"]))

    def prove_consistency(self, old: str | bytes, new: str | bytes | None = None) -> ConsistencyProof:
        """Prove that one checkpoint of this log extends an older one; default for `new`: a current one."""
        from woodrat.proofs.proof import ConsistencyProof

        notes = (note.decode("utf-8", "replace") if isinstance(note, bytes) else note for note in (old, new))
        document = self.link.transport.post("/v1/proofs/consistency", dict(zip(("old", "new"), notes, strict=True)))
        with codec.reading("proof"):
            return ConsistencyProof(document["from"], document["to"], tuple(map(bytes.fromhex, document["proof"])))

    def capsule(self, what: str) -> Capsule:
        """Return one document that proves a run, a decision (`RUN#stage`), an observation or `type/key#field`."""
        from woodrat.proofs.proof import Capsule

        document = self.link.transport.get(f"/v1/proofs/capsule/{what}")
        with codec.reading("capsule"):
            checkpoint = _signed(document["checkpoint"])
            claim = {name: part for name, part in document["claim"].items() if name != "positions"}
            proofs = tuple(_proof(each, each["proof"], checkpoint) for each in document["entries"])
            return Capsule(claim, proofs, checkpoint)


def _proof(entry: Mapping[str, Any], hashes: Iterable[str], checkpoint: Signed) -> Proof:
    from woodrat.log.entry import Entry
    from woodrat.proofs.proof import Proof

    plain = {name: part for name, part in entry.items() if name != "proof"}
    return Proof(Entry.from_json(plain), tuple(map(bytes.fromhex, hashes)), checkpoint)


def _signed(note: str) -> Signed:
    """Return the checkpoint in a document. Whether it was signed for it, the document does not say."""
    from woodrat.log.checkpoint import Checkpoint, SignedNote
    from woodrat.proofs.proof import Signed

    return Signed(Checkpoint.parse(SignedNote.parse(note).text), note, new=False)


def _report(answer: Any) -> Report:
    report: Report = codec.read(Report, answer)
    return report


class RemoteReading:
    """An interpretation in progress; observations stored through it name it and its source."""

    def __init__(self, transport: Transport, id: str, source_id: str, hidden: frozenset[str] = NOTHING) -> None:
        self._transport = transport
        self._hidden = hidden
        self.id = id
        self.source = source_id
        self.usage: dict[str, Json] = {}
        """The cost of the interpretation; set it before the end, as the model reported it."""

    def store(
        self,
        records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        **about: Any,
    ) -> Report:
        """Store records as `Ledger.store` does, each naming this interpretation and its source."""
        check_plain(records)
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        sent = records if isinstance(records, Mapping) else list(records)
        body = redaction.arguments({"records": sent, **about}, self._hidden)
        return _report(self._transport.post(f"/v1/interpretations/{self.id}/store", body, key=key))

    def end(self, status: str = "done", *, usage: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        """End the interpretation; an ended one stays unchanged."""
        body = {"status": status, "usage": dict(self.usage if usage is None else usage) or None, "error": error}
        # A reading ends once, so it may be sent again.
        path = f"/v1/interpretations/{self.id}/end"
        self._transport.post(path, body, key=self._transport.fresh_key())


def check_plain(value: object) -> None:
    """Refuse values that JSON cannot represent as the ledger would, before sending them."""
    faults = form.faults(plain(value))
    if faults:
        raise Refused(faults)


_SHOW: Callable[..., Any]
_SEARCH: Callable[..., Any]
_QUERY: Callable[..., Any]
_RECALL: Callable[..., Any]
_REDUCE: Callable[..., Any]
_REGISTER: Callable[..., Any]


def _install() -> None:
    """Make every declared verb with a route call the server, unless its class here defines it."""
    kinds: tuple[tuple[type, str], ...] = (
        (RemotePast, ""),
        (RemoteLedger, ""),
        (RemotePastRuns, "runs"),
        (RemoteRuns, "runs"),
        (RemoteSchemas, "schemas"),
        (RemoteSources, "sources"),
        (RemoteInterpretations, "interpretations"),
        (RemoteLog, "log"),
        (RemoteTraining, "training"),
        (RemoteProofs, "proofs"),
    )
    for kind, namespace in kinds:
        for verb in verbs_of(kind, namespace):
            name = verb.function.__name__
            if verb.declaration.path and name not in vars(kind):
                setattr(kind, name, over(verb))
    global _SHOW, _SEARCH, _QUERY, _RECALL, _REDUCE, _REGISTER
    named = {verb.name: verb for verb in verbs_of(Past)}
    _SHOW, _SEARCH, _QUERY, _RECALL, _REDUCE = (
        over(named[name]) for name in ("show", "search", "query", "recall", "reduce")
    )
    _REGISTER = over(next(verb for verb in verbs_of(Schemas, "schemas") if verb.name == "schemas.register"))


_install()


def open_remote(
    address: str, key: str | None, hidden: frozenset[str] = NOTHING, zone: str | None = None
) -> RemoteLedger:
    """Return the ledger behind an address; values under hidden keys are never sent there. Days are in `zone`."""
    clock = SystemClock(zone)
    return RemoteLedger(Link(Transport(address, key, clock), hidden), clock)

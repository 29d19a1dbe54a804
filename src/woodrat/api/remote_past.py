"""Remote past: the verbs that read, at one moment of a ledger behind an address.

Answers are asked for whole (`whole.py`), so that every verb returns the very record that it returns on a ledger here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from woodrat.api import codec
from woodrat.api.transport import Transport
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.clock import Clock, SystemClock
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.moments import NO_READ
from woodrat.records import replace

if TYPE_CHECKING:
    from datetime import timedelta

    from woodrat.api.ledger import Ledger
    from woodrat.bisect.reduction import Reduction
    from woodrat.bisect.search import Bisected
    from woodrat.compare.divergence import Divergence
    from woodrat.compare.groups import Crowd
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import Node
    from woodrat.explain.stale import Stale
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.find import Duplicate, Hit, Page
    from woodrat.ledger.known_state import ReadingsDiff
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.reads import Related
    from woodrat.log.entry import Entry
    from woodrat.merge.blame import Verdict
    from woodrat.merge.diff import EntityChange, Values
    from woodrat.merge.snapshot import Conflict, Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.recall.reader import Recall
    from woodrat.runs.reader import Reason
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery
    from woodrat.training.reader import Exported
    from woodrat.whatif.result import WhatIf

BUILT_IN = "ngram-v1"
"""The embedder that every server has."""
PAGE_ENTRIES = 1_000
"""How many entries of the log are asked for at a time."""


class RemoteContext(NamedTuple):
    """The part of a context that there is without an engine."""

    valid_at: str | None
    """What was true by this time alone counts; None: whenever it was true."""
    clock: Clock = SystemClock()
    """Time and fresh ids, here."""
    hidden: frozenset[str] = frozenset()
    """Keys whose values do not leave this process."""


class RemotePast:
    """The verbs that read, at one moment of a ledger behind an address."""

    def __init__(self, transport: Transport, moment: str | None = None, effective: str | None = None) -> None:
        self._transport = transport
        self._moment, self._effective = moment, effective
        self.context = RemoteContext(effective)
        """What a run that is recorded behind a server asks of its ledger."""

    @property
    def server(self) -> Transport:
        """The connection to the server."""
        return self._transport

    def _get(self, path: str, **asked: Any) -> Any:
        return self._transport.get(path, {**asked, "as_of": self._moment, "effective": self._effective})

    def _read(self, verb: str, path: str, **asked: Any) -> Any:
        """Return what a verb of the library returns, asked at an address."""
        moment = {"as_of": self._moment, "effective": self._effective}
        answer = self._transport.get(path, {**asked, **moment}, accept=codec.MEDIA_TYPE)
        return codec.read(codec.returned(verb), answer)

    def _ask(self, verb: str, path: str, body: Mapping[str, Any]) -> Any:
        """Return what a verb of the library returns that takes a body."""
        moment = {"as_of": self._moment, "effective": self._effective}
        answer = self._transport.post(path, body, moment, accept=codec.MEDIA_TYPE)
        return codec.read(codec.returned(verb), answer)

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        found: int = self._get("/v1/position")["position"]
        return found

    def at(self, moment: Moment | None = None, *, effective: str | None = None) -> RemotePast:
        """Return the ledger as of another moment, or as it was true by another time."""
        chosen, by = self._moment, self._effective if effective is None else effective
        if moment is not None:
            try:
                chosen = str(RemotePast(self._transport, str(moment)).position)
            except Refused as refusal:  # what the library calls it
                raise Refused((replace(f, path="moment") for f in refusal.faults), NO_READ) from None
        found = RemotePast(self._transport, chosen, by)
        if effective is not None:
            found._get("/v1/position")  # refuses a time that is none
        return found

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
        found: Snapshot = self._read("show", f"/v1/entities/{ref_text(ref)}")
        return found

    def elements(self, ref: str | Ref, field: str, *, limit: int = 1_000, cursor: str | None = None) -> Elements:
        """Return the elements of a collection, some at a time, in its order."""
        asked = {"field": field, "limit": limit, "cursor": cursor}
        found: Elements = self._read("elements", f"/v1/elements/{ref_text(ref)}", **asked)
        return found

    def search(
        self, query: str, *, entity_type: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[Hit]:
        """Return the entities in whose key and text values every word of the query begins a word."""
        asked = {"query": query, "entity_type": entity_type, "limit": limit, "cursor": cursor}
        found: Page[Hit] = self._read("search", "/v1/search", **asked)
        return found

    def query(
        self,
        *,
        entity_type: str | None = None,
        where: Mapping[str, Any] | Sequence[str] | None = None,
        sort: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Snapshot]:
        """Return entities by type and values; deleted ones left out."""
        texts = (
            [f"{name}={form.serialise(value).decode()}" for name, value in where.items()]
            if isinstance(where, Mapping)
            else None
            if where is None
            else list(where)
        )
        asked = {"entity_type": entity_type, "where": texts, "sort": sort, "descending": descending or None}
        found: Page[Snapshot] = self._read("query", "/v1/entities", **asked, limit=limit, cursor=cursor)
        return found

    def duplicates(self, entity_type: str | None = None) -> tuple[Duplicate, ...]:
        """Return entities that share an identifying value and are not joined."""
        found: tuple[Duplicate, ...] = self._read("duplicates", "/v1/duplicates", entity_type=entity_type)
        return found

    def infer(self, entity_type: str, *, progress: object = None) -> dict[str, Any]:
        """Return a JSON Schema that everything stored of a type fits."""
        found: dict[str, Any] = self._get(f"/v1/infer/{entity_type}")
        return found

    def observations(self, ref: str | Ref | None = None) -> tuple[Stored, ...]:
        """Return the observations of an entity and of those it is joined with, or all of them, by position."""
        named = None if ref is None else ref_text(ref)
        found: tuple[Stored, ...] = self._read("observations", "/v1/observations", ref=named)
        return found

    def history(self, ref: str | Ref, field: str | None = None) -> tuple[Step, ...]:
        """Return how belief about an entity, or one field of it, changed with each observation."""
        found: tuple[Step, ...] = self._read("history", f"/v1/history/{ref_text(ref)}", field=field)
        return found

    def timeline(self, *, since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
        """Return what was seen from `since` to before `until`, in the order of seeing."""
        found: tuple[Event, ...] = self._read("timeline", "/v1/timeline", since=since, until=until)
        return found

    def blame(
        self, ref: str | Ref, field: str | None = None, *, excerpts: bool = False
    ) -> dict[str, tuple[Verdict, ...]]:
        """Return what became of every claim on one field or all fields: who won, who lost, and why."""
        asked = {"field": field, "excerpts": True if excerpts else None}
        found: dict[str, tuple[Verdict, ...]] = self._read("blame", f"/v1/blame/{ref_text(ref)}", **asked)
        return found

    def conflicts(self, entity_type: str | None = None, *, arrival: bool = False) -> tuple[tuple[Ref, Conflict], ...]:
        """Return every field on which two agents differ, or with `arrival` every one decided only by arrival."""
        asked = {"entity_type": entity_type, "arrival": True if arrival else None}
        found: tuple[tuple[Ref, Conflict], ...] = self._read("conflicts", "/v1/conflicts", **asked)
        return found

    def diff(
        self, before: Moment, after: Moment, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between two moments: in one entity, in those of a type, or everywhere."""
        asked = {"from": before, "to": after, "ref": None if ref is None else ref_text(ref), "entity_type": entity_type}
        found: tuple[EntityChange, ...] = self._read("diff", "/v1/diff", **asked)
        return found

    def diff_against(
        self, known: object, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between a state that was written down and what is believed."""
        body = {"known": _plain(known), "ref": None if ref is None else ref_text(ref), "entity_type": entity_type}
        found: tuple[EntityChange, ...] = self._ask("diff_against", "/v1/diff-against", body)
        return found

    def related(self, ref: str | Ref, *, depth: int = 1) -> tuple[Related, ...]:
        """Return the relations that begin or end at an entity, up to `depth`."""
        found: tuple[Related, ...] = self._read("related", f"/v1/related/{ref_text(ref)}", depth=depth)
        return found

    def values(self) -> dict[str, Values]:
        """Return the values of everything that exists, by reference."""
        found: dict[str, Values] = self._read("values", "/v1/values")
        return found

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state."""
        found: str = self._get("/v1/fingerprint", provenance=provenance or None)["fingerprint"]
        return found

    def entries(self, *, after: int = -1, limit: int | None = None) -> tuple[Entry, ...]:
        """Return entries of the log after a position, in order."""
        from woodrat.log.entry import Entry

        found: list[Entry] = []
        while limit is None or len(found) < limit:
            wanted = PAGE_ENTRIES if limit is None else min(PAGE_ENTRIES, limit - len(found))
            page = self._get("/v1/log", after=after if after >= 0 else None, limit=wanted)["entries"]
            found += map(Entry.from_json, page)
            if len(page) < wanted:
                break
            after = found[-1].position
        return tuple(found)

    def erased_at(self, position: int) -> int | None:
        """Return where the log says that the body at a position was erased; none where it says so nowhere."""
        found = self._transport.get("/v1/log", {"after": position - 1 if position else None, "limit": 1})["entries"]
        erased: int | None = found[0].get("erased_at") if found and found[0]["position"] == position else None
        return erased

    def schema(self, entity_type: str) -> Schema:
        """Return the schema in force for a type."""
        found: Schema = self._read("schema", f"/v1/schemas/{entity_type}")
        return found

    def schemas(self) -> tuple[Schema, ...]:
        """Return the schema in force of every type that has one, by type."""
        found: tuple[Schema, ...] = self._read("schemas", "/v1/schemas")
        return found

    def deliveries(self) -> tuple[Delivery, ...]:
        """Return every delivery of a source, by position."""
        found: tuple[Delivery, ...] = self._read("deliveries", "/v1/sources")
        return found

    def content(self, source_id: str) -> bytes:
        """Return the content of a source, exactly as it was received."""
        from base64 import b64decode

        found = self._get(f"/v1/sources/{source_id}")
        return str(found["text"]).encode() if "text" in found else b64decode(found["base64"])

    def interpretations(self) -> tuple[Interpretation, ...]:
        """Return every reading of a source, by position."""
        found: tuple[Interpretation, ...] = self._read("interpretations", "/v1/interpretations")
        return found

    def interpretations_diff(self, before: str, after: str) -> ReadingsDiff:
        """Return how two readings differ: in model, prompt and parameters, and in what they said of which entity."""
        asked = {"from": before, "to": after}
        found: ReadingsDiff = self._read("interpretations_diff", "/v1/interpretations/diff", **asked)
        return found

    # ------------------------------------------------------------------------------------------------------- runs

    def runs(self, *, limit: int | None = None, cursor: str | None = None, **asked: Any) -> Page[RunRecord]:
        """Return run records, those the log heard of last first; filters are those of `Ledger.runs`."""
        found: Page[RunRecord] = self._read("runs", "/v1/runs", limit=limit, cursor=cursor, **ref_texts(asked))
        return found

    def run_record(self, run_id: str) -> RunRecord:
        """Return what the log holds about a run."""
        found: RunRecord = self._read("run_record", f"/v1/runs/{run_id}")
        return found

    def runs_diff(self, first: Any, second: Any, *, other: object = None) -> Divergence:
        """Return two runs side by side, where they part and why; either may be a document that `record` takes."""
        if other is not None:
            remedy = "Record one of them here too, or compare their documents."
            raise Refused([Fault("other", "a server compares runs of its own", remedy)], NO_READ)
        found: Divergence
        if isinstance(first, str) and isinstance(second, str):
            found = self._read("runs_diff", "/v1/runs/diff", first=first, second=second)
        else:
            found = self._ask("runs_diff", "/v1/runs/diff", {"first": first, "second": second})
        return found

    def runs_group(self, runs: Sequence[Any] | None = None, **asked: Any) -> Crowd:
        """Return many runs clustered by where they part from the way most took."""
        found: Crowd = self._ask("runs_group", "/v1/runs/group", {"runs": runs, **ref_texts(asked)})
        return found

    def why(self, ref: str | Ref, *, limit: int | None = None, cursor: str | None = None) -> Page[Reason]:
        """Return what was decided about an entity, the latest first."""
        found: Page[Reason] = self._read("why", f"/v1/why/{ref_text(ref)}", limit=limit, cursor=cursor)
        return found

    def recall(
        self,
        question: str,
        *,
        ttl: float | timedelta | None = None,
        embedder: object = None,
        **asked: Any,
    ) -> Recall:
        """Return the runs a question is about, as `Ledger.recall` does; false when none passes."""
        check_embedder(embedder)
        age = ttl if ttl is None or isinstance(ttl, int | float) else ttl.total_seconds()
        found: Recall = self._read("recall", "/v1/recall", question=question, ttl=age, **asked)
        return found

    def lineage(self, what: str) -> Node:
        """Return the way back to the sources, as a tree."""
        found: Node = self._read("lineage", "/v1/lineage", of=what)
        return found

    def impact(self, what: str | None = None, *, agent: str | None = None, progress: object = None) -> Impact:
        """Return what leaned on an observation, a source, an interpretation, or all that an agent said."""
        found: Impact = self._read("impact", "/v1/impact", of=what, agent=agent)
        return found

    def stale(self, *, same: bool = False, limit: int | None = None, cursor: str | None = None) -> Page[Stale]:
        """Return decisions whose evidence is believed otherwise now and which would come out differently."""
        found: Page[Stale] = self._read("stale", "/v1/stale", same=same or None, limit=limit, cursor=cursor)
        return found

    def what_if(self, run: str | Sequence[str] | None = None, **supposed: Any) -> WhatIf:
        """Return what would have come of recorded decisions, had something been otherwise."""
        found: WhatIf = self._ask("what_if", "/v1/what-if", {"run": run, **_told(supposed)})
        return found

    def bisect(self, what: Any = None, when: Mapping[str, Any] | None = None, **asked: Any) -> Bisected:
        """Return a write with which the answer to a question about state became another; false when there is none."""
        body = {"what": _asked(what), "when": when, **_told(asked)}
        found: Bisected = self._ask("bisect", "/v1/bisect", body)
        return found

    def reduce(
        self,
        what: Any = None,
        when: Mapping[str, Any] | None = None,
        *,
        out: str | PathLike[str] | None = None,
        **asked: Any,
    ) -> Reduction:
        """Return a 1-minimal set of observations that by itself shows what holds, and write it to a file here."""
        from woodrat.bisect import reducer

        found: Reduction = self._ask("reduce", "/v1/reduce", {"what": _asked(what), "when": when, **_told(asked)})
        if out is not None:
            reducer.write(found, out)
        return found

    def local_copy(self, runs: Iterable[str] = ()) -> Ledger:
        """Return a ledger in memory with the whole log, the same to the byte, for what needs the caller's code.

        All of the log is fetched, whatever the moment, and what the writes of these runs were answered.
        """
        import json
        from tempfile import TemporaryFile

        from woodrat.api.ledger import Ledger
        from woodrat.engines.memory import MemoryEngine
        from woodrat.ledger.own_policy import registry
        from woodrat.runs import relay

        who = self._transport.get("/v1/caller")
        copy = Ledger(
            MemoryEngine(),
            tenant=who["tenant"],
            agent=who["agent"],
            clock=SystemClock(),
            policies=registry(()),
            redact=os.environ.get("WOODRAT_REDACT"),
        )
        with TemporaryFile() as lines:
            for entry in RemotePast(self._transport).entries():
                lines.write(json.dumps(entry.to_json()).encode() + b"\n")
            if lines.tell():
                lines.seek(0)
                copy.import_log(lines)
        for run in runs:
            relay.claim(copy, self._transport.get(f"/v1/runs/{run}/receipts")["receipts"])
        return copy

    def export_training(
        self, kind: str, *, out: str | PathLike[str] | IO[str] | IO[bytes], record: bool = True, **asked: Any
    ) -> Exported:
        """Write rows for training a model, as `Ledger.export_training` does; the whole log is fetched for it."""
        from woodrat.training import exports

        copy = self.local_copy()
        past = copy if self._moment is None else copy.at(self._moment, effective=self._effective)
        found = past.export_training(kind, out=out, record=False, **asked)
        if not record or self._moment is not None:
            return found
        filters = {name: asked.get(name) for name in ("agent", "since", "until", "verdict")}
        metadata = bool(asked.get("metadata", True))
        last = copy.entries(after=found.position - 1, limit=1)
        log = last[0].log if last else None
        event = exports.tell(cast("Ledger", self), log, found, filters, self._effective, metadata=metadata)
        return replace(found, event=event)


def ref_text(ref: object, name: str = "ref") -> str:
    """Return a reference as an address has it."""
    if isinstance(ref, str | Ref):
        return str(ref)
    raise Refused([Fault(name, f"expected text, got {shown(ref)}", "Send a reference as TYPE/KEY.")])


def ref_texts(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with references as texts."""
    return {name: str(value) if isinstance(value, Ref) else value for name, value in asked.items()}


def _plain(value: Any) -> Any:
    """Return records as their JSON."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [_plain(one) for one in value]
    return value


def _told(asked: Mapping[str, Any]) -> dict[str, Any]:
    # How far the server is, it does not say.
    return {name: _plain(value) for name, value in asked.items() if name != "progress" and value is not ...}


def _asked(what: Any) -> Any:
    """Return what a question is about, as its address takes it."""
    if callable(what):
        problem = "a function is code, which the server does not have"
        raise Refused([Fault("what", problem, "State conditions with when or where, or rules.")], NO_READ)
    return ref_text(what) if isinstance(what, Ref) else _plain(what)


def check_embedder(embedder: object) -> None:
    """Refuse an embedder that a server does not have."""
    if embedder is not None and getattr(embedder, "id", embedder) != BUILT_IN:
        remedy = f"Leave it out: a server recalls by {BUILT_IN}."
        raise Refused([Fault("embedder", "an embedder is code, which the server does not have", remedy)], NO_READ)


def check_plain(value: object) -> None:
    """Refuse what JSON cannot say the way the ledger would, before it is sent."""
    faults = form.faults(value)
    if faults:
        raise Refused(faults)

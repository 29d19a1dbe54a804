"""Remote: a ledger behind an address, with the verbs of the library.

    ledger = woodrat.open("http://localhost:8787", key="wrat_…")

Tenant and agent are what the key says. Writes, and reads of state, return the same frozen records as a ledger that is
here. What tells of runs (`run_record`, `why`, `impact` …) returns `Told`: the same answer, as its JSON has it. What
needs code of the caller inside the ledger (`replay`, `memory`, own policies) is not among the verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import report as reports
from woodrat.ledger.finding import Duplicate, Hit, Page
from woodrat.ledger.past import Related
from woodrat.ledger.report import Report
from woodrat.ledger.transport import Transport
from woodrat.state.snapshot import Conflict, Snapshot
from woodrat.views.asof import Stored
from woodrat.views.blame import Verdict
from woodrat.views.diff import EntityChange
from woodrat.views.timeline import Event, Step

if TYPE_CHECKING:
    from types import TracebackType

    from woodrat.ledger.collecting import Elements
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.remote_run import RemoteRun
    from woodrat.log.entry import Entry
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery

PAGE_ENTRIES = 1_000
"""How many entries of the log are asked for at a time."""


class Told:
    """An answer as JSON tells it: its parts are attributes, under their names there; never changed."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_parts", parts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._parts:
            raise AttributeError(f"the answer has no {name}; it has {', '.join(self._parts)}")
        return _told(self._parts[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an answer is not changed; {name} stays as it is")

    def __eq__(self, other: object) -> bool:
        return form.same(dict(self._parts), other.to_json()) if hasattr(other, "to_json") else NotImplemented

    def __hash__(self) -> int:
        return hash(form.serialise(dict(self._parts)))

    def __repr__(self) -> str:
        return f"Told({dict(self._parts)!r})"

    def __bool__(self) -> bool:
        """Whether something was found, for answers that say so: a recall without hits and a bisect without flip."""
        return all(bool(self._parts[name]) for name in ("hits", "flip") if name in self._parts)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON."""
        return dict(self._parts)


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return Told(value)
    return tuple(map(_told, value)) if isinstance(value, list) else value


class RemotePast:
    """The verbs that read, at one moment of a ledger behind an address."""

    def __init__(self, transport: Transport, moment: str | None = None, effective: str | None = None) -> None:
        self._transport = transport
        self._moment, self._effective = moment, effective

    def _get(self, path: str, **asked: Any) -> Any:
        return self._transport.get(path, {**asked, "as_of": self._moment, "effective": self._effective})

    def _ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """Ask what takes a body."""
        return self._transport.post(path, body, {"as_of": self._moment, "effective": self._effective})

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        found: int = self._get("/v1/position")["position"]
        return found

    def at(self, moment: Moment | None = None, *, effective: str | None = None) -> RemotePast:
        """Return the ledger as of another moment, or as it was true by another time."""
        chosen, by = self._moment, self._effective if effective is None else effective
        if moment is not None:
            chosen = str(RemotePast(self._transport, str(moment)).position)
        found = RemotePast(self._transport, chosen, by)
        if effective is not None:
            found._get("/v1/position")  # refuses a time that is none
        return found

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
        return Snapshot.from_json(self._get(f"/v1/entities/{_ref(ref)}"))

    def elements(self, ref: str | Ref, field: str, *, limit: int = 1_000, cursor: str | None = None) -> Elements:
        """Return the elements of a collection, some at a time, in its order."""
        from woodrat.ledger import collecting

        return collecting.Elements.from_json(
            self._get(f"/v1/elements/{_ref(ref)}", field=field, limit=limit, cursor=cursor)
        )

    def search(
        self, query: str, *, entity_type: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[Hit]:
        """Return the entities in whose key and text values every word of the query begins a word."""
        found = self._get("/v1/search", query=query, entity_type=entity_type, limit=limit, cursor=cursor)
        hits = (Hit(Snapshot.from_json(one), one["exact"], tuple(one["found_in"])) for one in found["entities"])
        return Page(tuple(hits), found.get("cursor"))

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
        found = self._get(
            "/v1/entities",
            entity_type=entity_type,
            where=texts,
            sort=sort,
            descending=descending or None,
            limit=limit,
            cursor=cursor,
        )
        return Page(tuple(map(Snapshot.from_json, found["entities"])), found.get("cursor"))

    def duplicates(self, entity_type: str | None = None) -> tuple[Duplicate, ...]:
        """Return entities that share an identifying value and are not joined."""
        return tuple(map(Duplicate.from_json, self._get("/v1/duplicates", entity_type=entity_type)["duplicates"]))

    def infer(self, entity_type: str) -> dict[str, Any]:
        """Return a JSON Schema that everything stored of a type fits."""
        found: dict[str, Any] = self._get(f"/v1/infer/{entity_type}")
        return found

    def observations(self, ref: str | Ref | None = None) -> tuple[Stored, ...]:
        """Return the observations of an entity and of those it is joined with, or all of them, by position."""
        from woodrat.state.observation import Observation

        found = self._get("/v1/observations", ref=None if ref is None else _ref(ref))["observations"]
        return tuple(Stored(one["position"], Observation.from_json(one)) for one in found)

    def history(self, ref: str | Ref, field: str | None = None) -> tuple[Step, ...]:
        """Return how belief about an entity, or one field of it, changed with each observation."""
        return tuple(map(Step.from_json, self._get(f"/v1/history/{_ref(ref)}", field=field)["history"]))

    def timeline(self, *, since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
        """Return what was seen from `since` to before `until`, in the order of seeing."""
        return tuple(map(Event.from_json, self._get("/v1/timeline", since=since, until=until)["timeline"]))

    def blame(self, ref: str | Ref, field: str | None = None) -> dict[str, tuple[Verdict, ...]]:
        """Return what became of every claim on one field or all fields: who won, who lost, and why."""
        found = self._get(f"/v1/blame/{_ref(ref)}", field=field)["claims"]
        return {name: tuple(map(Verdict.from_json, verdicts)) for name, verdicts in found.items()}

    def conflicts(self, entity_type: str | None = None) -> tuple[tuple[Ref, Conflict], ...]:
        """Return every field on which two agents differ without having seen each other, by entity."""
        found = self._get("/v1/conflicts", entity_type=entity_type)["conflicts"]
        return tuple((ids.parse_ref(one["entity"]), Conflict.from_json(one)) for one in found)

    def diff(
        self, before: Moment, after: Moment, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between two moments: in one entity, in those of a type, or everywhere."""
        asked = {"from": before, "to": after, "ref": None if ref is None else _ref(ref), "entity_type": entity_type}
        return tuple(map(EntityChange.from_json, self._get("/v1/diff", **asked)["changes"]))

    def diff_against(
        self, known: object, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between a state that was written down and what is believed."""
        told = _plain(known)
        body = {"known": told, "ref": None if ref is None else _ref(ref), "entity_type": entity_type}
        return tuple(map(EntityChange.from_json, self._ask("/v1/diff-against", body)["changes"]))

    def related(self, ref: str | Ref, *, depth: int = 1) -> tuple[Related, ...]:
        """Return the relations that begin or end at an entity, up to `depth`."""
        return tuple(map(Related.from_json, self._get(f"/v1/related/{_ref(ref)}", depth=depth)["related"]))

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

    def schema(self, entity_type: str) -> Schema:
        """Return the schema in force for a type."""
        return _schema(self._get(f"/v1/schemas/{entity_type}"))

    def schemas(self) -> tuple[Schema, ...]:
        """Return the schema in force of every type that has one, by type."""
        return tuple(map(_schema, self._get("/v1/schemas")["schemas"]))

    def deliveries(self) -> tuple[Delivery, ...]:
        """Return every delivery of a source, by position."""
        from woodrat.state.source import Delivery

        parts = ("agent", "name", "received_at", "media_type")
        found = self._get("/v1/sources")["deliveries"]
        return tuple(Delivery(bytes.fromhex(one["digest"]), *(one[part] for part in parts)) for one in found)

    def content(self, source_id: str) -> bytes:
        """Return the content of a source, exactly as it was received."""
        from base64 import b64decode

        found = self._get(f"/v1/sources/{source_id}")
        return str(found["text"]).encode() if "text" in found else b64decode(found["base64"])

    def interpretations(self) -> tuple[Interpretation, ...]:
        """Return every reading of a source, by position."""
        from woodrat.state.interpretation import Interpretation

        found = []
        for one in self._get("/v1/interpretations")["interpretations"]:
            parts = {name: value for name, value in one.items() if name not in ("interpretation", "digest")}
            found.append(
                Interpretation(**{**parts, "id": one["interpretation"], "source": bytes.fromhex(one["digest"])})
            )
        return tuple(found)

    # ------------------------------------------------------------------------------------------------------- runs

    def runs(self, *, limit: int | None = None, cursor: str | None = None, **asked: Any) -> Page[Told]:
        """Return run records, those the log heard of last first; filters are those of `Ledger.runs`."""
        return _page(self._get("/v1/runs", limit=limit, cursor=cursor, **_refs(asked)), "runs")

    def run_record(self, run_id: str) -> Told:
        """Return what the log holds about a run."""
        return Told(self._get(f"/v1/runs/{run_id}"))

    def runs_diff(self, first: str, second: str) -> Told:
        """Return two runs side by side, where they part and why."""
        return Told(self._get("/v1/runs/diff", first=first, second=second))

    def runs_group(self, runs: Sequence[Any] | None = None, **asked: Any) -> Told:
        """Return many runs clustered by where they part from the way most took."""
        return Told(self._ask("/v1/runs/group", {"runs": runs, **_refs(asked)}))

    def why(self, ref: str | Ref, *, limit: int | None = None, cursor: str | None = None) -> Page[Told]:
        """Return what was decided about an entity, the latest first."""
        return _page(self._get(f"/v1/why/{_ref(ref)}", limit=limit, cursor=cursor), "decisions")

    def recall(self, question: str, **asked: Any) -> Told:
        """Return the runs a question is about; false when none passes."""
        return Told(self._get("/v1/recall", question=question, **asked))

    def lineage(self, what: str) -> Told:
        """Return the way back to the sources, as a tree."""
        return Told(self._get("/v1/lineage", of=what))

    def impact(self, what: str | None = None, *, agent: str | None = None) -> Told:
        """Return what leaned on an observation, a source, an interpretation, or all that an agent said."""
        return Told(self._get("/v1/impact", of=what, agent=agent))

    def stale(self, *, same: bool = False, limit: int | None = None, cursor: str | None = None) -> Page[Told]:
        """Return decisions whose evidence is believed otherwise now and which would come out differently."""
        return _page(self._get("/v1/stale", same=same or None, limit=limit, cursor=cursor), "decisions")

    def what_if(self, run: str | Sequence[str] | None = None, **supposed: Any) -> Told:
        """Return what would have come of recorded decisions, had something been otherwise."""
        return Told(self._ask("/v1/what-if", {"run": run, **supposed}))

    def bisect(self, what: Any = None, when: Mapping[str, Any] | None = None, **asked: Any) -> Told:
        """Return a write with which the answer to a question about state became another; false when there is none."""
        chosen = _ref(what) if isinstance(what, Ref) else _plain(what)
        return Told(self._ask("/v1/bisect", {"what": chosen, "when": when, **{k: _plain(v) for k, v in asked.items()}}))


class RemoteLedger(RemotePast):
    """A ledger behind an address, open for reading and writing as its key allows; a context manager."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)

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
        body = {name: value for name, value in given.items() if value is not None and value is not False}
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
        _check_plain(records)
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
        return self._write("correct", idempotency_key, ref=_ref(ref), fields=fields, **about)

    def retract(self, observations: str | Sequence[str], *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Withdraw observations by id; they stay readable, and a retraction can itself be withdrawn."""
        named = [observations] if isinstance(observations, str) else list(observations)
        return self._write("retract", idempotency_key, observations=named, **about)

    def delete(self, ref: str | Ref, *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Mark an entity as deleted; nothing is lost, and `restore` brings it back."""
        return self._write("delete", idempotency_key, ref=_ref(ref), **about)

    def restore(self, ref: str | Ref, *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Bring a deleted entity back as it is believed now."""
        return self._write("restore", idempotency_key, ref=_ref(ref), **about)

    def relate(
        self, start: str | Ref, type: str, end: str | Ref, *, idempotency_key: str | None = None, **about: Any
    ) -> Report:
        """Relate two known entities."""
        ends = {"from": _ref(start), "to": _ref(end)}
        return self._write("relate", idempotency_key, **ends, type=type, **about)

    def merge(self, one: str | Ref, other: str | Ref, *, idempotency_key: str | None = None, **about: Any) -> Report:
        """Say that two entities of one type are one; `split` takes it back."""
        return self._write("merge", idempotency_key, one=_ref(one), other=_ref(other), **about)

    def split(
        self, ref: str | Ref, other: str | Ref | None = None, *, idempotency_key: str | None = None, **about: Any
    ) -> Report:
        """Part an entity from all it is joined with, or from one."""
        apart = None if other is None else _ref(other)
        return self._write("split", idempotency_key, ref=_ref(ref), other=apart, **about)

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

        from woodrat.ledger.ledger import content_of

        data, title = content_of(content)
        body = {"base64": b64encode(data).decode(), "name": title if name is None else name, "media_type": media_type}
        key = self._transport.fresh_key() if idempotency_key is None else idempotency_key
        found: str = self._transport.post("/v1/sources", body, key=key)["source"]
        return found

    def tag(self, name: str, moment: Moment = "now", *, idempotency_key: str | None = None) -> Report:
        """Name a moment, so that `@name` reads at it."""
        return self._write("tags", idempotency_key, name=name, moment=str(moment))

    def run(self, query: str, **about: Any) -> RemoteRun:
        """Return a run to be recorded through the server: a context manager. `about` is as for `Ledger.run`."""
        from woodrat.ledger.remote_run import RemoteRun

        return RemoteRun(self._transport, query, _refs(about))

    def record(self, document: object) -> tuple[str, ...]:
        """Record runs that happened elsewhere from a JSON document, and return their ids; it is sent once."""
        _check_plain(document)
        return tuple(self._transport.post("/v1/runs/record", {"document": document})["runs"])

    def judge(self, run: str, verdict: str, **about: Any) -> Report:
        """Say what is thought of a run; it is sent once."""
        return reports.from_json(self._transport.post("/v1/judge", {"run": run, "verdict": verdict, **about}))


def open_remote(address: str, key: str | None) -> RemoteLedger:
    """Return the ledger behind an address."""
    from woodrat.clock import SystemClock

    return RemoteLedger(Transport(address, key, SystemClock()))


def _ref(ref: object) -> str:
    if isinstance(ref, str | Ref):
        return str(ref)
    raise Refused([Fault("ref", f"expected text, got {shown(ref)}", "Send a reference as TYPE/KEY.")])


def _refs(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Ref) else value for name, value in asked.items()}


def _plain(value: Any) -> Any:
    """Return records as their JSON."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [_plain(one) for one in value]
    return value


def _check_plain(value: object) -> None:
    """Refuse what JSON cannot say the way the ledger would, before it is sent."""
    faults = form.faults(value)
    if faults:
        raise Refused(faults)


def _page(found: Mapping[str, Any], noun: str) -> Page[Told]:
    return Page(tuple(map(Told, found[noun])), found.get("cursor"))


def _schema(value: Mapping[str, Any]) -> Schema:
    from woodrat.state import schema

    return schema.stored(form.encode({"schema": value["schema"], "type": value["type"]}))

"""Past: the verbs that read, at one moment on two clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import Engine
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import finding
from woodrat.ledger.finding import Duplicate, Hit, Page
from woodrat.ledger.moments import NO_READ, Moment, resolve_moment, resolve_ref, timestamp
from woodrat.ledger.reading import Reader
from woodrat.state import builtin, fingerprint, interpretation, relation, source
from woodrat.state.interpretation import Interpretation
from woodrat.state.policy import Policy
from woodrat.state.schema import Schema
from woodrat.state.snapshot import Conflict, Snapshot
from woodrat.state.source import Delivery
from woodrat.views import blame, diff, timeline
from woodrat.views.asof import AsOf, Stored
from woodrat.views.blame import Verdict
from woodrat.views.diff import EntityChange, Values
from woodrat.views.timeline import Event, Step

DEPTH_MAX = 16
"""How far `related` walks at most."""


@dataclass(frozen=True, slots=True)
class Related:
    """One relation found from an entity."""

    relation: Ref
    """The entity that stands for the relation."""
    type: str
    """Its type."""
    start: Ref
    """Where it begins."""
    end: Ref
    """Where it leads."""
    depth: int
    """How many relations lie between the entity asked about and this one, itself included."""
    fields: Mapping[str, Json]
    """What is said about the relation."""

    def to_json(self) -> dict[str, Any]:
        """Return the relation as plain JSON."""
        return {
            "relation": self.relation.id,
            "type": self.type,
            "from": str(self.start),
            "to": str(self.end),
            "depth": self.depth,
            "fields": dict(self.fields),
        }


class Past:
    """Read-only verbs, at one moment on two clocks; a ledger reads at the present."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        policies: Mapping[str, Policy],
        *,
        moment: Moment = "now",
        effective: str | None = None,
    ) -> None:
        self._engine = engine
        self._policies = policies
        self.tenant = tenant
        self._moment = moment
        self._effective = effective

    @contextmanager
    def _reader(self) -> Iterator[Reader]:
        with self._engine.view(self.tenant) as view:
            yield Reader(view, AsOf(resolve_moment(view, self._moment), self._effective), self._policies)

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        with self._reader() as reader:
            return reader.asof.position

    def at(self, moment: Moment | None = None, *, effective: str | None = None) -> Past:
        """Return the ledger as of another moment, or as it was true by another time. Timestamps need an offset."""
        position: Moment = self._moment
        if moment is not None:
            with self._engine.view(self.tenant) as view:
                position = resolve_moment(view, moment)
        chosen = self._effective if effective is None else timestamp(effective, "effective")
        return Past(self._engine, self.tenant, self._policies, moment=position, effective=chosen)

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
        with self._reader() as reader:
            return reader.snapshot(resolve_ref(reader, ref))

    def search(
        self, query: str, *, entity_type: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        """Return the entities in whose key and text values every word of the query begins a word.

        The one whose key is the query comes first, then those with more fields hit, then by entity id. Deleted ones
        are left out, and relations unless their type is asked for. The present is answered by an index, an effective
        time by folding every entity.
        """
        asked = finding.ask_search(query, entity_type, limit, cursor)
        if self._moment == "now" and self._effective is None:
            finding.catch_up(self._engine, self.tenant, self._policies)
        with self._reader() as reader:
            return finding.search(reader, asked)

    def query(
        self,
        *,
        entity_type: str | None = None,
        where: Mapping[str, Any] | Sequence[str] | None = None,
        sort: str | None = None,
        descending: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Snapshot]:
        """Return entities by type and key, or sorted by a field with those that lack it last; deleted ones left out.

        `where` holds values by field, or texts `field=value` whose value is JSON where it reads as JSON. A collection
        (`union`, `append`) fulfils a condition when it holds the value. Every page folds every entity of the type,
        or of the ledger: the cost grows with their number, not with `limit`.
        """
        asked = finding.ask_query(entity_type, where, sort, descending, limit, cursor)
        with self._reader() as reader:
            return finding.query(reader, asked)

    def duplicates(self, entity_type: str | None = None) -> tuple[Duplicate, ...]:
        """Return entities that share an identifying value and are not joined, by type, rule and value.

        What counts is what is believed now, not what was ever said. Every entity is folded for it.
        """
        chosen = finding.check_type(entity_type)
        with self._reader() as reader:
            return finding.duplicates(reader, chosen)

    def infer(self, entity_type: str) -> dict[str, Any]:
        """Return a JSON Schema that everything stored of a type fits: a suggestion to edit and `register`.

        It describes what was seen: a field every entity has is required, an array whose elements repeat from claim to
        claim merges by `union`. Every observation of the type is read for it.
        """
        finding.check_type(entity_type, optional=False)
        with self._reader() as reader:
            return finding.infer(reader, entity_type)

    def observations(self, ref: str | Ref | None = None) -> tuple[Stored, ...]:
        """Return the observations of an entity and of those it is joined with, or all of them, by position."""
        with self._reader() as reader:
            return tuple(_stored(reader, ref))

    def history(self, ref: str | Ref, field: str | None = None) -> tuple[Step, ...]:
        """Return how belief about an entity, or one field of it, changed with each observation."""
        with self._reader() as reader:
            found = resolve_ref(reader, ref)
            members = _spoken_of(reader, found)

            def rules_at(position: int) -> Any:
                return Reader(reader.view, AsOf(position), self._policies).rules(found.type)

            return timeline.history(reader.stored(members), members, rules_at, field)

    def timeline(self, *, since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
        """Return what was seen from `since` to before `until`, across all entities, in the order of seeing."""
        begin = None if since is None else timestamp(since, "since")
        end = None if until is None else timestamp(until, "until")
        with self._reader() as reader:
            return timeline.timeline(_stored(reader, None), begin, end)

    def blame(self, ref: str | Ref, field: str | None = None) -> dict[str, tuple[Verdict, ...]]:
        """Return what became of every claim on one field or all fields: who won, who lost, and why."""
        with self._reader() as reader:
            found = resolve_ref(reader, ref)
            members = _spoken_of(reader, found)
            rules = reader.rules(found.type)
            observations = [stored.observation for stored in reader.stored(members)]
            names = sorted({name for o in observations for name in o.stated})
            if field is not None and field not in names:
                raise NotFound(
                    f"{found}#{field}: no such field is stated. Nothing was changed. It has {', '.join(names)}.",
                    {"entity": str(found), "field": field},
                )
            asked = names if field is None else [field]
            return {name: blame.blame(observations, members, rules, name) for name in asked}

    def conflicts(self, entity_type: str | None = None) -> tuple[tuple[Ref, Conflict], ...]:
        """Return every field on which two agents differ without having seen each other, by entity."""
        with self._reader() as reader:
            found = ((ref, reader.take(ref, state)) for ref, state in reader.roots(entity_type))
            return tuple((ref, conflict) for ref, snapshot in found for conflict in snapshot.conflicts)

    def diff(self, before: Moment, after: Moment, ref: str | Ref | None = None) -> tuple[EntityChange, ...]:
        """Return what differs between two moments, in one entity or everywhere."""
        with self._engine.view(self.tenant) as view:
            sides: list[dict[str, Values]] = []
            for when in (before, after):
                asof = AsOf(resolve_moment(view, when), self._effective)
                reader = Reader(view, asof, self._policies)
                if ref is None:
                    sides.append(reader.values())
                else:
                    entity = resolve_ref(reader, ref)
                    snapshot = reader.find(entity)
                    sides.append({} if snapshot is None else {str(entity): Values.of(snapshot)})
            return diff.diff(*sides)

    def values(self) -> dict[str, Values]:
        """Return the values of everything that exists, by reference: what `diff` compares."""
        with self._reader() as reader:
            return reader.values()

    def related(self, ref: str | Ref, *, depth: int = 1) -> tuple[Related, ...]:
        """Return the relations that begin or end at an entity, and those of their other ends, up to `depth`."""
        if type(depth) is not int or not 1 <= depth <= DEPTH_MAX:
            raise Refused([Fault("depth", f"got {shown(depth)}", f"Send 1 to {DEPTH_MAX}.")], outcome=NO_READ)
        with self._reader() as reader:
            start = resolve_ref(reader, ref)
            reader.snapshot(start)
            found: dict[Ref, Related] = {}
            seen, edge_of = {start}, [start]
            for level in range(1, depth + 1):
                following: list[Ref] = []
                for entity in edge_of:
                    for link in _links(reader, entity):
                        found.setdefault(link.relation, replace(link, depth=level))
                        following += [end for end in (link.start, link.end) if end not in seen]
                        seen.update((link.start, link.end))
                edge_of = following
            return tuple(sorted(found.values(), key=lambda r: (r.depth, str(r.relation))))

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came."""
        with self._reader() as reader:
            return fingerprint.text(reader.fingerprint(provenance=provenance).root())

    def schema(self, entity_type: str) -> Schema:
        """Return the schema in force for a type, a built-in one included."""
        with self._reader() as reader:
            found = reader.rules(entity_type).schema
            found = builtin.schemas().get(entity_type, found) if found.is_open else found
            if found.is_open:
                raise NotFound(
                    f"{entity_type}: no schema. Nothing was changed. Types without one take any fields.",
                    {"entity_type": entity_type},
                )
            return found

    def schemas(self) -> tuple[Schema, ...]:
        """Return the schema in force of every type that has one in the log, by type."""
        with self._reader() as reader:
            types = reader.view.schema_types(reader.asof.position)
            return tuple(reader.rules(entity_type).schema for entity_type in types)

    def deliveries(self) -> tuple[Delivery, ...]:
        """Return every delivery of a source, by position."""
        with self._reader() as reader:
            entries = reader.view.entries(through=reader.asof.position, kinds={"received"})
            return tuple(source.stored(entry.body) for entry in entries if entry.body is not None)

    def content(self, source_id: str) -> bytes:
        """Return the content of a source, exactly as it was received."""
        with self._reader() as reader:
            if not isinstance(source_id, str):
                problem = f"expected a source's id, got {shown(source_id)}"
                raise Refused([Fault("source", problem, "Send it as text.")], NO_READ)
            digest = ids.digest_of("source", source_id) or reader.view.source_by_id(source_id)
            position = None if digest is None else reader.view.source(digest)
            entry = None if position is None else reader.view.entry(position)
            if entry is None or entry.body is None or entry.position > reader.asof.position:
                raise NotFound(
                    f"There is no source {source_id} here. Nothing was changed. `deliveries` lists what there is.",
                    {"source": source_id},
                )
            return entry.body

    def interpretations(self) -> tuple[Interpretation, ...]:
        """Return every reading of a source, by position."""
        with self._reader() as reader:
            kinds = {"interpretation.started", "interpretation.ended"}
            started: dict[str, bytes] = {}
            ended: dict[str, bytes] = {}
            for entry in reader.view.entries(through=reader.asof.position, kinds=kinds):
                assert entry.body is not None
                body: Any = form.decode(entry.body)
                (started if entry.kind == "interpretation.started" else ended)[body["interpretation"]] = entry.body
            return tuple(interpretation.stored(body, ended.get(id)) for id, body in started.items())


def _spoken_of(reader: Reader, ref: Ref) -> tuple[Ref, ...]:
    """Return an entity with all it is joined with; `NotFound` when nothing was ever said of them."""
    members = reader.group(ref)
    if not reader.stored(members):
        reader.snapshot(ref)
    return members


def _stored(reader: Reader, ref: str | Ref | None) -> list[Stored]:
    if ref is not None:
        return reader.stored(_spoken_of(reader, resolve_ref(reader, ref)))
    return reader.stored(reader.view.entities(None, reader.asof.position))


def _links(reader: Reader, entity: Ref) -> Iterator[Related]:
    """Yield the live relations at an entity. A key of two references alone does not make one: it must say so itself."""
    for edge in reader.view.relations(entity.digest, None, reader.asof.position):
        ends = relation.endpoints(edge)
        snapshot = reader.find(edge)
        if ends is None or snapshot is None or snapshot.deleted:
            continue
        if snapshot.fields.get("from") == str(ends[0]) and snapshot.fields.get("to") == str(ends[1]):
            said = {name: value for name, value in snapshot.fields.items() if name not in ("from", "to")}
            yield Related(edge, edge.type, ends[0], ends[1], 0, said)

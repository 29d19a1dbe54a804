"""Import: the contents of a Neotoma database become entries of a log.

Every row becomes the same entry in every import: keys come from the first observation of an entity, times, priorities
and agents from the row, and ids from row ids. So a second import adds nothing, and an interrupted one continues.
Rows are written in batches, in the order of their times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids, moment
from woodrat.canon.digest import base32, digest
from woodrat.canon.ids import ID_CHARACTERS, Ref
from woodrat.errors import NotFound, Refused
from woodrat.ledger import entry_index, redaction
from woodrat.ledger import schemas as ledger_schemas
from woodrat.ledger.source_index import SourceLookup
from woodrat.ledger.write import Writer
from woodrat.neotoma import names, registry, types
from woodrat.neotoma.database import NEEDED, OPTIONAL, Database, parsed
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.state import relation
from woodrat.state.entry_rows import ENDED, STARTED
from woodrat.state.interpretation import Interpretation
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RESTORE, Observation, say
from woodrat.state.packs import COLLECTIONS, NEOTOMA
from woodrat.state.redaction import REDACTED
from woodrat.state.source import SOURCE_BYTES_MAX, Delivery, source_digest

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.ledger.progress import Progress
    from woodrat.ledger.write import Draft

AGENT: Final = "neotoma"
"""The agent of rows that name none."""
CORRECTION_PRIORITY: Final = 1_000
"""From this priority on an observation corrects others there."""
BATCH: Final = 500
"""Rows per write."""
PROBLEMS_MAX: Final = 1_000
"""Most rows listed by name among those that could not be kept; all are counted."""


@dataclass(frozen=True, slots=True)
class ImportedDatabase(Record):
    """The result of importing a Neotoma database."""

    rows: Mapping[str, int]
    """Number of rows by table."""
    added: int
    """Number of new entries in the log."""
    apart: int
    """Number of entities that share an identifying value with an earlier one, and so have their old id in their key."""
    not_kept: int
    """Number of rows, or values of rows, that could not be kept unchanged."""
    problems: tuple[str, ...]
    """Their names and their treatment."""
    unread: tuple[str, ...]
    """Tables of the file that are not Neotoma's."""
    position: int
    """The end of the log afterwards."""


class Importer:
    """Imports one database into one ledger."""

    def __init__(self, ledger: Ledger, database: Database, progress: Progress | None = None) -> None:
        self._ledger, self._database, self._progress = ledger, database, progress
        self._problems: list[str] = []
        self._not_kept = 0
        self._apart = 0
        self._done = self._whole = 0
        self._sources: dict[str, bytes] = {}
        self._readings: dict[str, str] = {}
        self.refs: dict[str, Ref] = {}
        """The entities here, by the id they had."""

    def run(self) -> ImportedDatabase:
        """Import everything; already imported rows stay unchanged."""
        before = self._ledger.position
        rows = {name: self._database.count(name) for name in (*NEEDED, *OPTIONAL) if name != "entity_snapshots"}
        self._whole = sum(rows.values())
        self._import_schemas()
        self._import_sources()
        self._import_interpretations()
        self.name_entities()
        self._import_entities()
        self._import_observations()
        self._import_fragments()
        self._import_relationships()
        self._import_merges()
        self._import_splits()
        return ImportedDatabase(
            rows=rows,
            added=self._ledger.position - before,
            apart=self._apart,
            not_kept=self._not_kept,
            problems=tuple(self._problems),
            unread=tuple(self._database.unread),
            position=self._ledger.position,
        )

    # ------------------------------------------------------------------------------------------------ what is written

    def _write(self, plan: Callable[[Draft], None], count: int, *, size: int = BATCH) -> None:
        Writer(self._ledger.context).write("import_neotoma", {"rows": count}, plan, size=size)
        self._done += count
        if self._progress is not None:
            self._progress(min(self._done, self._whole), self._whole)

    def _say(self, said: Iterable[tuple[Observation | None, int]]) -> None:
        """Write observations in batches; each has the number of its rows."""
        batch: list[Observation] = []
        rows = 0

        def plan(draft: Draft) -> None:
            for observation in batch:
                draft.use(observation.entity.type)
                draft.say(observation)

        for observation, count in said:
            rows += count
            if observation is not None:
                batch.append(observation)
            if len(batch) >= BATCH:
                self._write(plan, rows)
                batch, rows = [], 0
        if batch or rows:
            self._write(plan, rows)

    def _lost(self, text: str) -> None:
        self._not_kept += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(text)

    # ------------------------------------------------------------------------------------------- schemas and sources

    def _import_schemas(self) -> None:
        rows = [row for row in self._database.rows("schema_registry", "created_at, id") if row["active"]]
        used = {row["entity_type"] for row in self._database.rows("entities")}
        wanted = {self._kind(name) for name in used} & types.published().keys()
        if wanted:
            ledger_schemas.add_pack(self._ledger.context, NEOTOMA, types=wanted)
        known = {schema.type for schema in ledger_schemas.schemas(self._ledger.context)}
        for row in rows:
            kind = self._kind(row["entity_type"])
            definition, reducer = parsed(row["schema_definition"]), parsed(row["reducer_config"])
            if kind in known or kind in types.published() or not isinstance(definition, dict):
                continue
            given = {"entity_type": kind, "schema_definition": definition}
            given["reducer_config"] = reducer if isinstance(reducer, dict) else {}
            try:
                registry.register(self._ledger, given)
            except Refused as error:
                self._lost(f"schema of {kind}: left out, its records are kept: {error}")
        self._done += self._database.count("schema_registry")

    def _import_sources(self) -> None:
        for rows in _batches(self._database.rows("sources", "created_at, id")):
            contents = [(row, *self._content(row)) for row in rows]

            def plan(draft: Draft, contents: list[tuple[dict[str, Any], bytes, bytes]] = contents) -> None:
                for row, found, content in contents:
                    if entry_index.source_position(draft.view, found) is None and not _planned(draft, content):
                        draft.add("source", content)
                        name = str(row["original_filename"] or row["id"])[:200]
                        received = self._time(row["created_at"])
                        delivery = Delivery(found, self._agent(row), name, received, row["mime_type"])
                        draft.add("received", delivery.body())

            self._write(plan, len(rows))

    def _content(self, row: dict[str, Any]) -> tuple[bytes, bytes]:
        """Return the digest and the content of a source; without its file, the row replaces it."""
        content = self._database.file_of(row)
        if content is None or len(content) > SOURCE_BYTES_MAX:
            why = "is too long" if content is not None else "is not beside the database, or has changed"
            if row.get("storage_url") and not str(row["storage_url"]).startswith("internal://"):
                self._lost(f"source {row['id']}: its file {why}; its database row is kept instead")
            content = form.encode({name: value for name, value in row.items() if isinstance(value, str)})
        found = source_digest(content)
        self._sources[row["id"]] = found
        return found, content

    def _import_interpretations(self) -> None:
        for rows in _batches(self._database.rows("interpretations", "started_at, id")):

            def plan(draft: Draft, rows: list[dict[str, Any]] = rows) -> None:
                lookup = SourceLookup(draft.view, draft.before.asof.position)
                for row in rows:
                    reading = self._reading(row)
                    if reading is not None and lookup.reading(reading.id) is None:
                        draft.add(STARTED, replace(reading, status="started", ended_at=None, error=None).started_body())
                        if reading.ended_at is not None:
                            draft.add(ENDED, reading.ended_body())

            self._write(plan, len(rows))

    def _reading(self, row: dict[str, Any]) -> Interpretation | None:
        found = self._sources.get(row["source_id"])
        if found is None:
            self._lost(f"interpretation {row['id']}: its source {row['source_id']} is not in the file; left out")
            return None
        configured: Any = parsed(row["interpretation_config"])
        configured = redaction.by_key(configured, self._ledger.context.hidden)
        told = configured if isinstance(configured, dict) and not form.faults(configured) else {}
        id = ids.InterpretationId(f"int_{_derived('neotoma_interpretation', row['id'])}")
        self._readings[row["id"]] = id
        failed = row["status"] in ("failed", "error")
        ended = row["completed_at"] or (row["started_at"] if failed else None)
        model = told.get("model") or told.get("model_id")
        return Interpretation(
            id=id,
            source_digest=found,
            agent=self._agent(row),
            started_at=self._time(row["started_at"]),
            model=model if isinstance(model, str) and model else None,
            configuration=told,
            status="error" if failed else "done" if ended else "started",
            ended_at=None if ended is None else self._time(ended),
            error=(str(row.get("error_message") or "failed")[:1_000]) if failed else None,
        )

    # ------------------------------------------------------------------------------------------------------- entities

    def name_entities(self) -> None:
        """Give each entity its key: the key made from its first observation, as at /neotoma."""
        first: dict[str, dict[str, Any]] = {}
        for row in self._database.rows("observations", "observed_at, id"):
            fields = parsed(row["fields"])
            if row["entity_id"] not in first and isinstance(fields, dict) and "_deleted" not in fields:
                first[row["entity_id"]] = {**fields, "entity_type": self._kind(row["entity_type"])}
        taken: dict[Ref, str] = {}
        listed = {row["id"]: row for row in self._database.rows("entities", "created_at, id")}
        unlisted = [id for id in first if id not in listed]
        for id in (*listed, *unlisted):
            row = listed.get(id, {})
            kind = self._kind(row.get("entity_type") or first[id]["entity_type"])
            fields = {name: value for name, value in first.get(id, {}).items() if name != "entity_type"}
            ref = self._ref(kind, self._key(kind, fields, row.get("canonical_name"), id), id)
            if taken.setdefault(ref, id) != id:
                self._apart += 1
                ref = self._ref(kind, f"{ref.key} ({id})", id)
            self.refs[id] = ref

    def _key(self, kind: str, fields: Mapping[str, Any], canonical: Any, id: str) -> str:
        found = names.key_of(self._ledger, kind, fields) if fields else None
        return found or (canonical if isinstance(canonical, str) and canonical else id)

    def _kind(self, stated: Any) -> str:
        """Return a type in its form here; an invalid one gets the prefix `type_`."""
        found = names.type_of(str(stated))
        return found if not ids.ref_faults(found, "x") else f"type_{found}" if found.isascii() else "type_unnamed"

    def _ref(self, kind: str, key: str, id: str) -> Ref:
        return Ref(kind, id if ids.ref_faults(kind, key) else key)

    def _import_entities(self) -> None:
        def said() -> Iterator[tuple[Observation | None, int]]:
            for row in self._database.rows("entities", "created_at, id"):
                seen = self._time(row["created_at"])
                yield (
                    say(
                        self.refs[row["id"]],
                        ASSERT,
                        agent=AGENT,
                        observed_at=seen,
                        fields={names.FOREIGN_ID: row["id"]},
                    ),
                    1,
                )

        self._say(said())

    # --------------------------------------------------------------------------------------------------- observations

    def _import_observations(self) -> None:
        standing: dict[tuple[Ref, str], bytes] = {}
        marker: dict[Ref, bytes] = {}
        elements = _Elements(self._ledger)

        def said() -> Iterator[tuple[Observation | None, int]]:
            for row in self._database.rows("observations", "observed_at, id"):
                ref = self.refs[row["entity_id"]]
                fields = parsed(row["fields"])
                if not isinstance(fields, dict):
                    self._lost(f"observation {row['id']}: its fields are not a JSON object; left out")
                    yield None, 1
                    continue
                about = self._about(row, f"observation {row['id']}")
                if "_deleted" in fields:
                    op = DELETE if fields["_deleted"] else RESTORE
                    found = self._made(ref, op, f"observation {row['id']}", about, replaces=_named(marker.get(ref)))
                    marker.update({ref: found.digest} if found is not None else {})
                    yield found, 1
                    continue
                kept = self._fields(ref.type, fields, f"observation {row['id']}")
                if not kept:
                    self._lost(f"observation {row['id']}: it states nothing; left out")
                    yield None, 1
                    continue
                others = elements.others(ref, kept)
                if (row["source_priority"] or 0) < CORRECTION_PRIORITY:
                    yield self._made(ref, ASSERT, f"observation {row['id']}", about, fields=kept), 1
                    continue
                earlier = {standing[ref, name] for name in kept if (ref, name) in standing}
                found = self._made(
                    ref, CORRECT, f"observation {row['id']}", about, fields=kept, replaces=earlier, remove=others
                )
                standing.update({(ref, name): found.digest for name in kept} if found is not None else {})
                yield found, 1

        self._say(said())

    def _import_fragments(self) -> None:
        def said() -> Iterator[tuple[Observation | None, int]]:
            for row in self._database.rows("raw_fragments", "created_at, id"):
                ref = self.refs.get(row["entity_id"] or "")
                if ref is None:
                    self._lost(f"raw fragment {row['id']}: it names no entity; left out")
                    yield None, 1
                    continue
                kept = self._fields(
                    ref.type, {row["fragment_key"]: parsed(row["fragment_value"])}, f"fragment {row['id']}"
                )
                row["observed_at"] = row.get("last_seen") or row["created_at"]
                about = self._about(row, f"raw fragment {row['id']}")
                yield (self._made(ref, ASSERT, f"raw fragment {row['id']}", about, fields=kept) if kept else None), 1

        self._say(said())

    def _fields(self, kind: str, fields: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Return the fields of a row in their stored form here: single elements as lists, values of a wrong type
        separately.
        """
        kept: dict[str, Any] = {}
        sent: Any = redaction.sent(dict(fields), self._ledger.context.hidden)
        for name, value in sent.items():
            if value is None:
                self._lost(f"{what}: {name} is null, which clears a field there; here it is omitted")
            elif form.faults(value) or name in ("entity_type", "$"):
                self._lost(
                    f"{what}: {name} is kept as text in {names.FRAGMENTS}, since a ledger cannot store it unchanged"
                )
                kept.setdefault(names.FRAGMENTS, {})[name] = repr(value)
            else:
                kept[name] = value
        schema = types.of_pack(self._ledger, kind) or types.own_schema(self._ledger, kind)
        if schema is None:
            return kept
        kept |= dict.fromkeys(kept.keys() & schema.redacted, REDACTED)
        for name in names.misfits(schema, kept):
            self._lost(f"{what}: {name} is of another type than in its schema; kept in {names.FRAGMENTS}")
            kept.setdefault(names.FRAGMENTS, {})[name] = kept.pop(name)
        for name, value in kept.items():
            if str(schema.policy_of(name)) in COLLECTIONS and not isinstance(value, list):
                kept[name] = [value]
        return kept

    def _about(self, row: Mapping[str, Any], what: str) -> dict[str, Any]:
        found = self._sources.get(row.get("source_id") or "")
        reading = self._readings.get(row.get("interpretation_id") or "")
        priority = row.get("source_priority")
        return {
            "agent": self._agent(row),
            "observed_at": self._time(row["observed_at"]),
            "priority": priority if isinstance(priority, int) else 0,
            "reason": f"Neotoma {what}",
            "source": None if found is None else ids.name("source", found),
            "interpretation": reading,
        }

    def _made(self, ref: Ref, op: str, what: str, about: Mapping[str, Any], **parts: Any) -> Observation | None:
        """Return an observation; None if a ledger would refuse it."""
        told = dict(about)
        if op in (DELETE, RESTORE):
            told.pop("priority")
        try:
            return say(ref, op, **told, **parts)
        except Refused as error:
            self._lost(f"{what}: left out: {error}")
            return None

    def _agent(self, row: Mapping[str, Any]) -> str:
        """Return the author of a row: its agent if it names one, else Neotoma itself."""
        said = parsed(row.get("provenance"))
        for name in ("agent_sub", "client_name", "agent_thumbprint"):
            stated = said.get(name) if isinstance(said, dict) else None
            if isinstance(stated, str) and stated and not ids.ref_faults("agent", stated):
                return stated
        return AGENT

    def _time(self, text: Any) -> str:
        """Return a time in fixed width; an invalid time becomes the start of 1970, and is reported."""
        stated = str(text).replace(" ", "T")
        for attempt in (stated, f"{stated}Z", f"{stated}T00:00:00Z"):
            if moment.fault(attempt) is None:
                return moment.parse(attempt)
        self._lost(f"time {text!r}: invalid; 1970 replaces it")
        return moment.from_micros(0)

    # -------------------------------------------------------------------------------------- relationships and merges

    def _import_relationships(self) -> None:
        marker: dict[Ref, bytes] = {}

        def said() -> Iterator[tuple[Observation | None, int]]:
            for row in self._database.rows("relationship_observations", "observed_at, id"):
                what = f"relationship observation {row['id']}"
                start, end = self.refs.get(row["source_entity_id"]), self.refs.get(row["target_entity_id"])
                kind = self._kind(row["relationship_type"])
                if start is None or end is None:
                    self._lost(f"{what}: an end of it is not in the file; left out")
                    yield None, 1
                    continue
                try:
                    ref = relation.relation(start, kind, end)
                except Refused as error:
                    self._lost(f"{what}: left out: {error}")
                    yield None, 1
                    continue
                told = parsed(row["metadata"])
                metadata = told if isinstance(told, dict) else {}
                about = self._about(row, what)
                if "_deleted" in metadata:
                    op = DELETE if metadata["_deleted"] else RESTORE
                    found = self._made(ref, op, what, about, replaces=_named(marker.get(ref)))
                    marker.update({ref: found.digest} if found is not None else {})
                    yield found, 1
                    continue
                fields = {**self._fields(kind, metadata, what), "from": str(start), "to": str(end)}
                yield self._made(ref, ASSERT, what, about, fields=fields), 1

        self._say(said())

    def _import_merges(self) -> None:
        for row in self._database.rows("entity_merges", "created_at, id"):
            one, other = self.refs.get(row["from_entity_id"]), self.refs.get(row["to_entity_id"])
            self._done += 1
            if one is None or other is None or one.type != other.type or one == other:
                self._lost(f"merge {row['id']}: its entities are not in the file, or not of one type; left out")
                continue
            agent = row["merged_by"] if isinstance(row["merged_by"], str) and row["merged_by"] else AGENT
            reason = row["reason"] or f"Neotoma merge {row['id']}"
            try:
                self._ledger.as_agent(agent).merge(other, one, reason=reason, observed_at=self._time(row["created_at"]))
            except (Refused, NotFound) as error:
                self._lost(f"merge {row['id']}: left out: {error}")

    def _import_splits(self) -> None:
        """Record the agent of a split: the observations are where the split left them."""

        def said() -> Iterator[tuple[Observation | None, int]]:
            for row in self._database.rows("entity_splits", "created_at, id"):
                at = self._time(row["created_at"])
                fields = {
                    "id": row["id"],
                    "action": "split",
                    "actor": row["split_by"] or AGENT,
                    "target": str(self.refs.get(row["new_entity_id"], row["new_entity_id"])),
                    "reason": row["reason"]
                    or f"from {self.refs.get(row['source_entity_id'], row['source_entity_id'])}",
                    "at": at,
                    "system": AGENT,
                }
                yield say(Ref("audit_event", row["id"]), ASSERT, agent=AGENT, observed_at=at, fields=fields), 1

        self._say(said())


class _Elements:
    """Elements of collections so far: a correction of one removes all elements that it does not name."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._said: dict[tuple[Ref, str], dict[bytes, Any]] = {}

    def others(self, ref: Ref, fields: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the earlier elements that these fields do not name, by field, and add those they do."""
        schema = types.of_pack(self._ledger, ref.type) or types.own_schema(self._ledger, ref.type)
        found: dict[str, list[Any]] = {}
        for name, value in fields.items() if schema is not None else ():
            if schema is not None and str(schema.policy_of(name)) == "union":
                said = self._said.setdefault((ref, name), {})
                told = {form.encode(element): element for element in value}
                if before := [element for key, element in said.items() if key not in told]:
                    found[name] = before
                said.update(told)
        return found


def _named(found: bytes | None) -> tuple[bytes, ...]:
    return () if found is None else (found,)


def _planned(draft: Draft, content: bytes) -> bool:
    return any(item.kind == "source" and item.body == content for item in draft.items)


def _derived(kind: str, text: str) -> str:
    return base32(digest(kind, text.encode()))[:ID_CHARACTERS]


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch

"""A database as a Neotoma server leaves it: its tables, with rows made by chance from a seed.

Snapshots are computed as its reducer does: the latest by time and then by row id, the most trusted where the type says
so, lists joined, and nothing of what a correction or a deletion means here.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from woodrat.neotoma.database import NEEDED, OPTIONAL
from woodrat.state import packs

USER: Final = "00000000-0000-0000-0000-000000000001"
MORE: Final = {
    "sources": ("file_size", "source_type", "provenance", "idempotency_key"),
    "interpretations": ("observations_created", "error_message", "provenance"),
    "observations": ("schema_version", "specificity_score", "observation_source", "created_at", "provenance"),
    "entities": ("aliases", "updated_at", "merged_at"),
    "entity_snapshots": ("schema_version", "observation_count", "last_observation_at", "provenance"),
    "relationship_observations": ("relationship_key", "interpretation_id", "created_at", "provenance"),
    "raw_fragments": ("source_id", "interpretation_id", "last_seen"),
    "entity_merges": ("observations_rewritten",),
    "entity_splits": ("predicate", "observations_rewritten", "idempotency_key"),
    "schema_registry": ("schema_version", "created_at", "scope", "metadata"),
    "timeline_events": ("id", "event_type", "event_timestamp", "user_id"),
}
"""Further columns of its tables."""


def empty(path: Path) -> sqlite3.Connection:
    """Make a database without rows."""
    connection = sqlite3.connect(path)
    for table in {**NEEDED, **OPTIONAL, **MORE}:
        columns = (*NEEDED.get(table, ()), *OPTIONAL.get(table, ()), *MORE.get(table, ()))
        connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    return connection


def insert(connection: sqlite3.Connection, table: str, **row: Any) -> None:
    """Add one row; objects and lists as JSON."""
    told = {"user_id": USER, **row}
    values = [json.dumps(value) if isinstance(value, dict | list) else value for value in told.values()]
    marks = ", ".join("?" * len(told))
    connection.execute(f"INSERT INTO {table} ({', '.join(told)}) VALUES ({marks})", values)


def time(minute: int) -> str:
    """Return a moment, by minutes since the beginning of 2026."""
    month, day = 1 + minute // 40_320 % 12, 1 + minute // 1_440 % 28
    return f"2026-{month:02}-{day:02}T{minute // 60 % 24:02}:{minute % 60:02}:00.000Z"


def make(path: Path, *, observations: int = 300, types: int = 30, seed: int = 7) -> None:
    """Make a database of several types, with corrections, deletions, merges, splits, relationships and fragments."""
    chance = random.Random(seed)
    connection = empty(path)
    kinds = [kind for kind in packs.facts(packs.NEOTOMA) if kind != "relationship"][:types]
    seen: dict[str, list[dict[str, Any]]] = {}
    owner: dict[str, str] = {}
    insert(
        connection,
        "sources",
        id="src-1",
        content_hash="",
        mime_type="text/csv",
        original_filename="a.csv",
        created_at=time(0),
    )
    insert(
        connection,
        "interpretations",
        id="int-1",
        source_id="src-1",
        interpretation_config={"model": "m-1", "temperature": 0},
        status="completed",
        started_at=time(1),
        completed_at=time(2),
    )
    insert(
        connection,
        "schema_registry",
        id="sch-1",
        entity_type="gadget",
        schema_version="1.0",
        schema_definition={
            "fields": {"name": {"type": "string"}, "parts": {"type": "array"}},
            "canonical_name_fields": ["name"],
        },
        reducer_config={"merge_policies": {"parts": {"strategy": "merge_array"}}},
        active=1,
    )
    for number in range(observations):
        kind = chance.choice([*kinds, "gadget"])
        one = chance.randrange(max(2, observations // 60))
        id = f"ent_{kinds.index(kind) if kind in kinds else 99:08x}{one:016x}"
        owner.setdefault(id, kind)
        fields = _fields(chance, kind, one, first=id not in seen)
        row = {
            "id": f"obs-{number:06}",
            "observed_at": time(chance.randrange(50_000)),
            "source_priority": 100,
            "fields": fields,
        }
        chosen = chance.random()
        if id in seen and chosen < 0.06 and fields:
            name = chance.choice(sorted(fields))
            row |= {"source_priority": 1_000, "fields": {name: fields[name]}}
        elif id in seen and chosen < 0.09:
            row |= {"source_priority": 1_000, "fields": {"_deleted": chosen < 0.075}}
        seen.setdefault(id, []).append(row)
        insert(
            connection,
            "observations",
            entity_id=id,
            entity_type=kind,
            schema_version="1.0",
            source_id="src-1" if chosen > 0.8 else None,
            interpretation_id="int-1" if chosen > 0.9 else None,
            provenance={"client_name": chance.choice(["cursor", "claude"])},
            created_at=row["observed_at"],
            **row,
        )
    ids = sorted(seen)
    for id in ids:
        insert(
            connection, "entities", id=id, entity_type=owner[id], canonical_name=f"{owner[id]}:{id}", created_at=time(0)
        )
    for number, id in enumerate(ids[:20]):
        metadata: dict[str, Any] = {"since": number}
        for turn, told in enumerate((metadata, {"_deleted": True})[: 1 + number % 2]):
            insert(
                connection,
                "relationship_observations",
                id=f"rel-{number}-{turn}",
                relationship_key=f"PART_OF:{id}:{ids[-1]}",
                relationship_type="PART_OF",
                source_entity_id=id,
                target_entity_id=ids[-1],
                observed_at=time(100 + turn),
                source_priority=100,
                metadata=told,
            )
        insert(
            connection,
            "raw_fragments",
            id=f"frag-{number}",
            entity_id=id,
            entity_type=owner[id],
            fragment_key="colour",
            fragment_value="red",
            created_at=time(90),
        )
    gone, stays = _merge(connection, owner, ids)
    insert(
        connection,
        "entity_merges",
        id="mrg-1",
        from_entity_id=gone,
        to_entity_id=stays,
        reason="same",
        merged_by="http_api",
        created_at=time(200),
    )
    insert(
        connection,
        "entity_splits",
        id="spl-1",
        source_entity_id=ids[0],
        new_entity_id=ids[1],
        split_by="http_api",
        created_at=time(300),
    )
    for id in ids:
        snapshot = reduced(owner[id], seen[id])
        if snapshot is not None:
            insert(connection, "entity_snapshots", entity_id=id, entity_type=owner[id], snapshot=snapshot)
    insert(connection, "timeline_events", id="evt-1", event_type="x", event_timestamp=time(0))
    connection.commit()
    connection.close()


def _merge(connection: sqlite3.Connection, owner: dict[str, str], ids: list[str]) -> tuple[str, str]:
    """Add an entity that was merged into another: its observations stand with the other one."""
    gone = "ent_ffffffffffffffffffffffff"
    row = {"id": gone, "entity_type": owner[ids[0]], "canonical_name": "merged away", "created_at": time(0)}
    insert(connection, "entities", merged_to_entity_id=ids[0], **row)
    return gone, ids[0]


def _fields(chance: random.Random, kind: str, one: int, *, first: bool) -> dict[str, Any]:
    """Return what one observation says; the first says what identifies the entity."""
    if kind == "gadget":
        return {"name": f"gadget {one}", "parts": [f"p{chance.randrange(4)}"]}
    said = packs.facts(packs.NEOTOMA)[kind]
    kinds = {name: type for type, names in said["fields"].items() for name in names}
    identity = {name for rule in said["identity"] for name in rule} if first else set()
    chosen = {*identity, *chance.sample(sorted(kinds), min(3, len(kinds)))}
    values = {"number": chance.randrange(100), "boolean": chance.random() < 0.5, "array": [f"e{chance.randrange(3)}"]}
    values |= {"object": {"n": chance.randrange(5)}, "date": time(chance.randrange(1_000))[:10]}
    fixed = {name: values.get(kinds[name], f"{name} {one}") if kinds[name] != "number" else one for name in identity}
    return {**{name: values.get(kinds[name], f"text {chance.randrange(30)}") for name in sorted(chosen)}, **fixed}


def reduced(kind: str, rows: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return a snapshot as Neotoma computes it; none for a deleted entity."""
    ranked = sorted(sorted(rows, key=lambda row: row["id"]), key=lambda row: row["observed_at"], reverse=True)
    trusted = sorted(ranked, key=lambda row: -row["source_priority"])
    if trusted[0]["fields"].get("_deleted"):
        return None
    policies = packs.facts(packs.NEOTOMA)[kind].get("merge", {}) if kind != "gadget" else {"parts": "union"}
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in ranked for name in row["fields"] if name != "_deleted"):
        claims = [row for row in ranked if name in row["fields"]]
        best = sorted(claims, key=lambda row: -row["source_priority"])
        if policies.get(name) == "union":
            top = [row for row in claims if row["source_priority"] == best[0]["source_priority"]]
            lists = [value if isinstance(value := row["fields"][name], list) else [value] for row in top]
            found[name] = list(dict.fromkeys(element for elements in lists for element in elements))
        else:
            found[name] = (best if policies.get(name) == "highest_priority" else claims)[0]["fields"][name]
    return found

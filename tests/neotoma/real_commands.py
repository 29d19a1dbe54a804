"""The commands of Neotoma's command line, as its users type them, and where its answers and ours are meant to differ.

`$name` in a command is a value of an earlier answer, or a file. A command is run at both servers; what differs
has to be named here with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.neotoma.test_recorded import ANA

TASK: Final = {"entity_type": "task", "title": "Ship", "status": "todo", "due_date": "2026-03-01"}
BEN: Final = {"entity_type": "contact", "name": "Ben Okafor", "email": "ben@example.org"}
ODD: Final = {"entity_type": "task", "title": "Odd", "status": "todo", "colour_of_box": "red"}
NOTE: Final = {"entity_type": "note", "title": "N1", "content": "c"}
TURN: Final = ("--conversation-id", "c1", "--conversation-title", "Talk", "--message", "Hi", "--turn-key", "c1:1")
GIZMO: Final = {"name": {"type": "string", "required": True}}


class Typed(NamedTuple):
    """One command."""

    words: tuple[str, ...]
    keeps: Mapping[str, str] = {}
    """What later commands use of its answer, by name."""
    differs: str = ""
    """Why the exit or a status is another one here."""


def _json(value: Any) -> str:
    return json.dumps(value)


def _store(*entities: Any) -> tuple[str, ...]:
    return ("store", "--entities", _json(list(entities)))


NOT_READ: Final = "the server reads no files for its callers"
NOT_OFFERED: Final = "not offered"
WORKS_HERE: Final = "it fails there"

COMMANDS: Final = (
    Typed(
        (*_store(ANA, TASK), "--idempotency-key", "k1"),
        {
            "ana": "entities.0.entity_id",
            "task": "entities.1.entity_id",
            "observation": "entities.0.observation_id",
            "records": "source_id",
        },
    ),
    Typed((*_store(BEN), "--source-priority", "50", "--observation-source", "human"), {"ben": "entities.0.entity_id"}),
    Typed((*_store(ODD), "--strict")),
    Typed((*_store(ANA), "--plan")),
    Typed((*_store(ANA, TASK), "--idempotency-key", "k1")),
    Typed((*_store(BEN), "--idempotency-key", "k1")),
    Typed(("store", "--file-content", "Hello there", "--idempotency-key", "f1"), {"source": "source_id"}),
    Typed(("store", "--file", "$RECORDS")),
    Typed(("store", "--file-path", "$TEXT"), differs=NOT_READ),
    Typed(("upload", "$TEXT", "--idempotency-key", "up1"), differs=NOT_READ),
    Typed(("ingest", "--entities", "$RECORDS", "--source-file", "$TEXT", "--source-upload")),
    Typed(("ingest", "--entities", "$RECORDS", "--source-file", "$TEXT", "--source-upload", "--plan")),
    Typed(("store-turn", *TURN, "--entities", _json([{**TASK, "title": "Call"}]), "--idempotency-key", "t1")),
    Typed(("entities", "list")),
    Typed(("entities", "list", "--type", "task", "--limit", "1")),
    Typed(("entities", "list", "--status", "todo")),
    Typed(("entities", "list", "--search", "Ana")),
    Typed(("entities", "list", "--since", "2020-01-01T00:00:00Z")),
    Typed(("entities", "list", "--created-since", "2020-01-01T00:00:00Z")),
    Typed(("entities", "get", "$ana")),
    Typed(("entities", "get", "ent_000000000000000000000000")),
    Typed(("entities", "search", "Ana Rivera")),
    Typed(("entities", "search", "Ana Rivera", "--entity-type", "contact", "--include-observations")),
    Typed(("entities", "search", "ana@example.org", "--by", "email")),
    Typed(("entities", "search", "Nobody Known Xyz")),
    Typed(("entities", "import", "$LINES")),
    Typed(("entities", "import", "$LINES", "--commit", "--idempotency-prefix", "p1")),
    Typed(
        (
            *("relationships", "create", "--source-entity-id", "$ana", "--target-entity-id", "$task"),
            *("--relationship-type", "REFERS_TO", "--metadata", _json({"note": "x"})),
        )
    ),
    Typed(("relationships", "list")),
    Typed(("relationships", "list", "--source-entity-id", "$ana")),
    Typed(("relationships", "list", "--relationship-type", "REFERS_TO", "--limit", "1")),
    Typed(("relationships", "get", "--relationship-id", "REFERS_TO:$ana:$task")),
    Typed(("relationships", "get-snapshot", "REFERS_TO", "$ana", "$task")),
    Typed(("entities", "related", "$ana")),
    Typed(("entities", "related", "$ana", "--include-entities", "--max-hops", "2", "--direction", "both")),
    Typed(("entities", "neighborhood", "$ana", "--include-observations")),
    Typed(("entities", "neighborhood", "$source", "--node-type", "source")),
    Typed(("entities", "export", "--with-relationships", "--out", "$OUT")),
    Typed(("entities", "find-duplicates", "--entity-type", "contact"), differs=WORKS_HERE),
    Typed(("relationships", "delete", "--relationship-id", "REFERS_TO:$ana:$task", "--reason", "no")),
    Typed(("relationships", "restore", "--relationship-id", "REFERS_TO:$ana:$task")),
    Typed(("corrections", "create", "$ana", "--field-name", "role", "--corrected-value", "cook"), differs=WORKS_HERE),
    Typed(
        (
            *("corrections", "create", "--entity-id", "$ana", "--entity-type", "contact"),
            *("--field-name", "city", "--corrected-value", "Girona"),
        )
    ),
    Typed(("edit", "$ana")),
    Typed(("entities", "delete", "$ben", "contact", "--reason", "gone")),
    Typed(("entities", "get", "$ben")),
    Typed(("entities", "restore", "$ben", "contact")),
    Typed(("observations", "list")),
    Typed(("observations", "list", "--entity-id", "$ana", "--limit", "2")),
    Typed(("observations", "list", "--entity-type", "task", "--since", "2020-01-01T00:00:00Z")),
    Typed(("observations", "list", "--source-id", "$records")),
    Typed(("observations", "get", "--observation-id", "$observation")),
    Typed(("sources", "list")),
    Typed(("sources", "list", "--search", "nothing", "--mime-type", "text/plain")),
    Typed(("sources", "get", "$source")),
    Typed(("sources", "get", "$records")),
    Typed(("sources", "content", "$source")),
    Typed(("timeline", "list"), {"event": "events.0.id"}),
    Typed(("timeline", "list", "--start-date", "2026-01-01", "--end-date", "2027-01-01", "--entity-id", "$task")),
    Typed(("timeline", "get", "--event-id", "$event")),
    Typed(("schemas", "list")),
    Typed(("schemas", "list", "--entity-type", "invoice")),
    Typed(("schemas", "get", "--entity-type", "contact")),
    Typed(("schemas", "describe", "contact")),
    Typed(("schemas", "analyze", "task"), differs=NOT_OFFERED),
    Typed(("schemas", "audit-fragments", "task"), differs=NOT_OFFERED),
    Typed(("schemas", "recommend", "task"), differs=NOT_OFFERED),
    Typed(("schemas", "register", "gizmo", "--fields", _json(GIZMO), "--activate")),
    Typed(("schemas", "update", "task", "--fields", _json([{"field_name": "zzz", "field_type": "string"}]))),
    Typed(("schemas", "update", "task", "--remove-fields", _json(["zzz"]))),
    Typed(
        (
            *("interpretations", "create", "--source-id", "$source", "--entities", "$RECORDS"),
            *("--interpretation-config", _json({"model": "m"}), "--idempotency-key", "i1"),
        )
    ),
    Typed(("interpretations", "list")),
    Typed(("interpretations", "list", "--source-id", "$source")),
    Typed(("recent",)),
    Typed(("list-recent-changes", "--limit", "2")),
    Typed(("stats",)),
    Typed(("stats", "--by", "identity-basis")),
    Typed(("stats", "entities")),
    Typed(("snapshots", "check"), differs=NOT_OFFERED),
    Typed(("snapshots", "request", "--dry-run"), differs=NOT_OFFERED),
    Typed(("memory-export", "--path", "$OUT")),
    Typed(("auth", "whoami")),
    Typed(("auth", "session")),
    Typed(("auth", "status")),
    Typed(("api", "status")),
    Typed(("compat",), differs=WORKS_HERE),
    Typed(("instance-policy", "show")),
    Typed(("peers", "list")),
    Typed(("peers", "status", "p1")),
    Typed(("peers", "remove", "p1"), differs=NOT_OFFERED),
    Typed(("plans", "list"), differs=WORKS_HERE),
    Typed(("plans", "capture", "$PLAN")),
    Typed(("request", "--operation", "getStats")),
)
"""Every command that talks to a server; the others work on files of its own."""

LEFT_OUT: Final = (
    r".*/(user_id|timestamp|trace_id|primary_fields|hint|idempotency_key|canonical_hash|source_field|storage_url)",
    r".*/(required_fields_missing|conversation_message_count|applied_search_strategies|storage|sandbox_mode|version)",
    r".*/(observations_by_identity_basis(_by_type)?|attribution|aauth|policy|eligible_for_trusted_writes|origins)",
    r".*/(entity_snapshot_after|snapshot|provenance|field_summary|fields)/.*",
    r".*/(entities/\*|relationships(/\*)?|related_entities/\*|snapshot)?/(observation_count|last_observation_at)",
    r".*/(entities|related_entities)/\*/(aliases|created_at|updated_at)",
    r".*(relationships/\*|snapshot)?/(schema_version|computed_at|provenance)",
    r".*/observations/\*/(created_at|identity_rule|schema_version)",
    r".*/store_warnings/\*.*",
    r"/(structured/)?unknown_fields/\*",
    r"/sources/\*.*",
    r".*/details/issues.*",
    r".*/(unknown_field|message|details)",
    r".*/(file_size|storage_mode|upload_method|filesystem_absolute_path)",
    r".*/(source|target)_(canonical_name|entity_type)",
    r".*/(scope|created_at|identity_opt_out|temporal_fields|reference_fields|preserveCase|converters)",
    r".*/metadata/.*",
    r".*/canonical_name_fields/\*.*",
    r".*/merge_policies/.*",
    r".*/items/\*/.*",
    r".*/interpretations/\*/(observations_created|unknown_fields_count)",
    r".*/interpretation_config/.*",
    r".*/events/\*/.*|/event/.*",
)
"""Members of answers there that ours lack; `docs/reference/neotoma.md` says so."""

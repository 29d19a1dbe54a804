"""The built-in types: their files, and the page that describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from woodrat.merge import BUILTIN, known_policy
from woodrat.state import builtin
from woodrat.state.identity import identify
from woodrat.state.schema import parse_schema
from woodrat.state.schema_keywords import PolicyName, PolicyTraits

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "builtin-types.md"

RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "action": ({"id": "act-1", "name": "send_email", "status": "running", "attempts": 1, "cost": "0.02"}, "act-1"),
    "agent_session": (
        {
            "agent": "loan-officer",
            "started_at": "2026-01-05T09:00:00Z",
            "last_seen_at": "2026-01-05T09:00:00.000001Z",
            "status": "running",
            "participants": ["ann"],
            "input_tokens": 812,
            "events": [{"kind": "started"}, "asked for income"],
        },
        '["loan-officer","2026-01-05T09:00:00Z"]',
    ),
    "audit_event": (
        {"actor": "ann", "action": "key.created", "at": "2026-01-05T09:00:00Z", "outcome": "success"},
        '["ann","key.created","2026-01-05T09:00:00Z"]',
    ),
    "company": ({"domain": " ACME.org", "tax_id": "B-123", "employees": "50-200"}, "acme.org"),
    "contact": (
        {"email": "Ana@Example.org ", "name": "Ana Rivera", "city": "Barcelona", "tags": ["vip"], "notes": ["met"]},
        "ana@example.org",
    ),
    "contract": ({"name": "kline", "payment_terms": "Net-30", "value": "12000.50"}, "kline"),
    "document": ({"title": "Q3 report", "mentions": ["company/acme.org"], "pages": 12}, "Q3 report"),
    "entity_graph": (
        {
            "root": "loan/42",
            "at": 128,
            "nodes": ["loan/42", "contact/ana"],
            "edges": [{"from": "loan/42", "to": "contact/ana", "type": "applicant"}],
        },
        '["loan/42",128]',
    ),
    "evaluation": ({"name": "credit", "subject": "agent/x", "verdict": "passed", "score": 0.9}, '["credit","agent/x"]'),
    "note": ({"id": 7, "text": "Ana prefers calls before noon", "about": "contact/Ana Rivera"}, "7"),
    "pipeline": (
        {"name": "nightly", "status": "succeeded", "runs_started": 1, "steps": [{"name": "fetch", "retries": 3}]},
        "nightly",
    ),
    "runbook": ({"name": "refunds", "status": "active", "steps": ["ask"], "thresholds": {"max": 100}}, "refunds"),
    "task": ({"id": 42, "title": "Ship", "status": "todo", "priority": "high", "tags": []}, "42"),
    "tool_config": ({"name": "search", "environment": "production", "enabled": True}, '["search","production"]'),
}


def known(name: PolicyName) -> PolicyTraits | None:
    found = known_policy(name, BUILTIN)
    return found.traits if found is not None else None


def test_every_file_is_a_built_in_type() -> None:
    """There is one file per type, and one type per file."""
    folder = Path(builtin.__file__).parent
    assert sorted(path.stem for path in folder.glob("*.json")) == list(builtin.TYPES) == list(builtin.schemas())


@pytest.mark.parametrize("type", builtin.TYPES)
def test_every_file_passes_the_checks_of_any_schema(type: str) -> None:
    """A built-in schema would be accepted from a user: its title is its type, its version 1, its policies known."""
    schema = parse_schema(builtin.document(type), policies=known)
    assert schema == builtin.schemas()[type]
    assert (schema.type, schema.version) == (type, 1)
    assert schema.document["additionalProperties"] is True
    assert schema.required == ()


@pytest.mark.parametrize("type", builtin.TYPES)
def test_every_field_is_described(type: str) -> None:
    """Every field says what it is for, in one sentence or more."""
    for name, subschema in builtin.schemas()[type].properties.items():
        assert isinstance(subschema, dict)
        assert str(subschema.get("description")).endswith("."), name


@pytest.mark.parametrize("type", builtin.TYPES)
def test_a_usual_record_is_accepted_and_identified(type: str) -> None:
    """A record as an engineer would send it fits, and so does one with a field nobody thought of."""
    record, key = RECORDS[type]
    schema = builtin.schemas()[type]
    assert schema.record_faults({**record, "unheard_of": [1]}, "") == []
    assert [name for name, value in record.items() if schema.claim_fault(name, value)] == []
    assert identify(schema, record, None)[0] == key


@pytest.mark.parametrize(
    ("type", "field"),
    [("contact", "name"), ("contract", "name"), ("company", "name"), ("task", "title"), ("document", "title")],
)
def test_a_name_is_enough(type: str, field: str) -> None:
    """Types of everyday life accept a record of a name alone."""
    schema = builtin.schemas()[type]
    assert schema.record_faults({field: "kline"}, "") == schema.required_faults({field: "kline"}, "") == []
    assert identify(schema, {field: "kline"}, None)[0] == "kline"


def test_times_under_max_are_in_utc() -> None:
    """A time whose latest is wanted is compared as text, so an offset other than Z does not fit."""
    schema = builtin.schemas()["contact"]
    assert schema.claim_fault("last_contacted_at", "2026-01-05T09:00:00Z") is None
    assert schema.claim_fault("last_contacted_at", "2026-01-05T09:00:00+01:00") is not None


def test_audit_events_are_frozen() -> None:
    """Audit events alone are never corrected, retracted or deleted."""
    assert frozenset({"audit_event"}) == builtin.FROZEN_TYPES


def test_built_in_schemas_are_read_once() -> None:
    """Asking again gives the same mapping, which cannot be changed."""
    assert builtin.schemas() is builtin.schemas()
    with pytest.raises(TypeError):
        builtin.schemas()["contact"] = builtin.schemas()["task"]  # type: ignore[index]


def described(type: str) -> str:
    """Return the section of the page about one type, as it should read."""
    schema = builtin.schemas()[type]
    rules = ", then ".join(" and ".join(f"`{part.field}`" for part in rule.parts) for rule in schema.identity)
    lines = [f"## {type}", "", str(schema.document["description"]), "", f"Identity: {rules}.", ""]
    lines += ["| field | type | policy | what it is |", "| --- | --- | --- | --- |"]
    for name, subschema in builtin.document(type)["properties"].items():
        target = subschema.get("$ref", "").rpartition("/")[2]
        kinds = subschema.get("type") or builtin.document(type)["$defs"][target]["type"]
        kind = target or " or ".join([kinds] if isinstance(kinds, str) else kinds)
        lines.append(f"| `{name}` | {kind} | {schema.policy_of(name)} | {subschema['description']} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("type", builtin.TYPES)
def test_the_page_says_what_the_files_say(type: str) -> None:
    """The reference page describes every field, type and policy of every built-in type."""
    assert described(type) in PAGE.read_text("utf-8")

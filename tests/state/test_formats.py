"""Formats: what is checked of texts when they are written, and that no merge ever asks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.state import formats
from woodrat.state.formats import CHECKS, DEPTH_MAX, compile_formats
from woodrat.state.observation import ASSERT, say

SOUND = {
    "date": ["2024-02-29", "2000-02-29", "0001-01-01"],
    "date-time": ["2026-01-05T09:00:00Z", "2026-01-05t09:00:00.123456789+02:00", "2026-06-30T23:59:60Z"],
    "time": ["09:00:00Z", "23:59:59.5-05:30"],
    "email": ["ana@example.org", "a@x", "Ana.O'Hara+x@sub.example.org ", "ñandú@example.org"],
    "hostname": ["example.org", "localhost", "a-b.c"],
    "ipv4": ["192.0.2.1", "0.0.0.0", "255.255.255.255"],
    "uri": ["https://example.org/a?b=c#d", "mailto:ana@example.org", "urn:isbn:0451450523"],
    "domain": ["acme.org", " ACME.org", "müller.de", "localhost"],
    "date or date-time": ["2026-01-05", "2026-01-05T09:00:00Z"],
    "date or year": ["1987", "1987-02-28"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"],
}
UNSOUND = {
    "date": ["2023-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-1-5", "2026-01-05\n", "٢٠٢٦-٠١-٠٥", ""],
    "date-time": ["2026-01-05", "2026-01-05T09:00:00", "2026-01-05T24:00:00Z", "yesterday", "2026-01-05X09:00:00Z"],
    "time": ["09:00", "24:00:00Z", "09:60:00Z", "09:00:00"],
    "email": ["ana", "ana@", "@example.org", "a b@example.org", "a@b@c", "ana@-x.org", "ana@x..org", ""],
    "hostname": ["-a", "a..b", "a_b", "x" * 64, ".".join(["abc"] * 64)],
    "ipv4": ["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4."],
    "uri": ["example.org", "//example.org", "https://exa mple.org", "http://x/%zz", ""],
    "domain": ["::", "acme org", "https://acme.org", "-a.org", "a..b", "müller .de", ""],
    "date or date-time": ["banana", "2026-02-30", "2026-01-05T09:00:00", "tomorrow", ""],
    "date or year": ["87", "1987-02-30", "x", ""],
    "uuid": ["123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g", ""],
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_format_tells_sound_texts(name: str) -> None:
    """Every format takes what is of it, and nothing else."""
    check = CHECKS[name][0]
    assert [text for text in SOUND[name] if not check(text)] == []
    assert [text for text in UNSOUND[name] if check(text)] == []


def test_formats_are_found_inside_values() -> None:
    """A format counts in a field, in the elements of a list, in the members of an object and behind a reference."""
    found = compile_formats(
        {
            "title": "thing",
            "$defs": {"day": {"format": "date"}, "self": {"$ref": "#/$defs/self"}},
            "properties": {
                "plain": {"type": "string"},
                "days": {"items": {"$ref": "#/$defs/day"}},
                "when": {"properties": {"day": {"$ref": "#/$defs/day"}}},
                "endless": {"$ref": "#/$defs/self"},
                "other": {"format": "colour"},
            },
        },
        lambda pointer: lambda value: True,
    )
    assert sorted(found) == ["days", "when"]
    assert [fault.path for fault in found["days"](["2026-01-05", "x", 3], "/days")] == ["/days/1"]
    assert [fault.path for fault in found["when"]({"day": "x", "more": "y"}, "/when")] == ["/when/day"]
    assert DEPTH_MAX > 2


CONTACTS: Any = {
    "title": "lead",
    "$defs": {"mail": {"type": "string", "format": "email", "maxLength": 40}},
    "properties": {
        "mail": {"allOf": [{"$ref": "#/$defs/mail"}, {"minLength": 3}]},
        "reach": {
            "anyOf": [
                {"$ref": "#/$defs/mail"},
                {"type": "string", "pattern": "^[+]", "title": "phone"},
                {"type": "null"},
            ]
        },
        "site": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "string", "format": "hostname"}]},
        "due": {"oneOf": [{"type": "string", "format": "date"}, {"type": "integer"}]},
        "all/of~it": {"type": "array", "items": {"anyOf": [{"format": "date", "type": "string"}, {"type": "object"}]}},
        "ref": {"$ref": "#/$defs/mail", "format": "email"},
    },
}


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("mail", "ana@example.org", 0),
        ("mail", "nope", 1),
        ("reach", "ana@example.org", 0),
        ("reach", "+34 972", 0),
        ("reach", None, 0),
        ("reach", "nope", 1),
        ("site", "https://example.org", 0),
        ("site", "example.org", 0),
        ("site", "not a host", 2),
        ("due", "2026-01-05", 0),
        ("due", 7, 0),
        ("due", "soon", 1),
        ("all/of~it", ["2026-01-05", {}], 0),
        ("all/of~it", ["2026-01-05", "x", {}, "y"], 2),
        ("ref", "nope", 1),
    ],
)
def test_formats_count_in_the_branch_that_a_value_takes(field: str, value: Any, wrong: int) -> None:
    """In `allOf` every format counts; in `anyOf` and `oneOf` one of the branches that the value fits has to hold."""
    ledger = woodrat.open(":memory:", agent="crm")
    ledger.schemas.register(CONTACTS)
    record = {"entity_type": "lead", "id": "1", field: value}
    if not wrong:
        ledger.store(record)
        return
    with pytest.raises(Refused) as refusal:
        ledger.store(record)
    assert len(refusal.value.faults) == wrong
    assert all("which is not" in fault.problem for fault in refusal.value.faults)


def test_what_is_not_of_its_format_is_refused_when_written() -> None:
    """Stores, corrections and relations are refused with every fault, and nothing is written."""
    ledger = woodrat.open(":memory:", agent="crm")
    with pytest.raises(Refused) as refusal:
        ledger.store({"entity_type": "contact", "name": "Ana", "email": "nope", "birthday": "2026-02-30"})
    assert sorted(fault.path for fault in refusal.value.faults) == ["/birthday", "/email"]
    assert ledger.position == -1
    ledger.store({"entity_type": "contact", "name": "Ana"})
    with pytest.raises(Refused, match="e-mail address"):
        ledger.correct("contact/Ana", {"email": "nope"}, reason="r")


def test_built_in_types_check_their_dates_and_domains() -> None:
    """Surfaces ask for formats that the schemas in logs do not state; no merge does, and another version is its own."""
    ledger = woodrat.open(":memory:", agent="crm")
    wrong: list[dict[str, Any]] = [
        {"entity_type": "task", "title": "Ship", "due_at": "banana"},
        {"entity_type": "contract", "name": "kline", "expires_on": "soon"},
        {"entity_type": "company", "name": "Acme", "domain": "::", "domains": ["acme.org", "::"], "founded_on": "x"},
    ]
    for dry_run in (True, False):
        with pytest.raises(Refused) as refusal:
            ledger.store(wrong, dry_run=dry_run)
        paths = ["/0/due_at", "/1/expires_on", "/2/domain", "/2/domains/1", "/2/founded_on"]
        assert sorted(fault.path for fault in refusal.value.faults) == paths
    assert ledger.position == -1
    ledger.store({"entity_type": "task", "title": "Ship", "due_at": "2026-01-05"}, observed_at="2025-01-04T09:00:00Z")
    with pytest.raises(Refused, match="not a date such as"):
        ledger.correct("task/Ship", {"due_at": "banana"}, reason="r")
    at = "2025-01-05T09:00:00.000000Z"
    said = say(Ref("task", "Ship"), ASSERT, agent="b", observed_at=at, fields={"due_at": "banana"})
    ledger.admit([("observation", said.body)])
    assert ledger.show("task/Ship").fields["due_at"] == "banana"
    ledger.schemas.register({"title": "task", "x-woodrat-version": 2, "properties": {"due_at": {"type": "string"}}})
    ledger.store({"entity_type": "task", "title": "Ship", "due_at": "whenever"})


def test_no_merge_asks_for_a_format() -> None:
    """What another ledger took in before its schema had a format still counts here, where the format is known."""
    other = woodrat.open(":memory:", agent="crm")
    other.schemas.register({"title": "lead", "properties": {"mail": {"type": "string"}}})
    other.store({"entity_type": "lead", "id": "1", "mail": "nope"})
    other.schemas.register({"title": "lead", "properties": {"mail": {"type": "string", "format": "email"}}})
    assert other.show("lead/1").fields["mail"] == "nope"
    with pytest.raises(Refused):
        other.store({"entity_type": "lead", "id": "2", "mail": "nope"})


def test_no_merge_asks_for_an_enumeration() -> None:
    """A value that is not listed is refused when it is written, and counts where it comes from another ledger."""
    ledger = woodrat.open(":memory:", agent="crm")
    with pytest.raises(Refused, match='expected one of "planned"'):
        ledger.store({"entity_type": "pipeline", "name": "nightly", "status": "on fire"})
    assert ledger.position == -1
    ledger.store({"entity_type": "pipeline", "name": "nightly"}, observed_at="2025-01-04T09:00:00Z")
    at = "2025-01-05T09:00:00.000000Z"
    said = say(Ref("pipeline", "nightly"), ASSERT, agent="b", observed_at=at, fields={"status": "on fire"})
    ledger.admit([("observation", said.body)])
    assert ledger.show("pipeline/nightly").fields == {"name": "nightly", "status": "on fire"}
    wrong = say(Ref("pipeline", "nightly"), ASSERT, agent="b", observed_at=at, fields={"status": 7})
    ledger.admit([("observation", wrong.body)])
    assert ledger.show("pipeline/nightly").blame["status"].misfits == 1
    with pytest.raises(Refused, match="expected one of"):
        ledger.correct("pipeline/nightly", {"status": "still on fire"}, reason="r")
    assert ledger.verify().sound


def test_a_redacted_value_has_any_format() -> None:
    """A value that is hidden before it is written is not refused for what stands in its place."""
    ledger = woodrat.open(":memory:", agent="crm", redact=["email"])
    ledger.store({"entity_type": "contact", "name": "Ana", "email": "ana@example.org"})
    assert ledger.show("contact/Ana").fields["email"] == "[REDACTED]"


@pytest.mark.parametrize("policy", ["union", "append"])
@pytest.mark.parametrize("value", ["vip", 7, False, {"a": 1}, ["vip"], [["vip"]]])
def test_a_single_value_is_one_element(policy: str, value: object) -> None:
    """A value that is no list is the one element of a collection, and a list is the list."""
    ledger = woodrat.open(":memory:", agent="crm")
    ledger.schemas.register({"title": "box", "properties": {"things": {"x-woodrat-merge": policy}}})
    report = ledger.store({"entity_type": "box", "id": "1", "things": value}, idempotency_key="k")
    wanted = value if isinstance(value, list) else [value]
    assert ledger.show("box/1").fields["things"] == wanted
    (stored,) = ledger.observations("box/1")
    assert stored.observation.fields["things"] == wanted
    assert ledger.store({"entity_type": "box", "id": "1", "things": value}, idempotency_key="k").repeated
    assert report.observations
    ledger.verify()


def test_a_correction_takes_one_too() -> None:
    """A single value in a correction is the whole collection; null is none and is refused."""
    ledger = woodrat.open(":memory:", agent="crm")
    ledger.store({"entity_type": "contact", "name": "Ana", "tags": ["a", "b"]})
    ledger.correct("contact/Ana", {"tags": "c"}, reason="r")
    assert ledger.show("contact/Ana").fields["tags"] == ["c"]
    with pytest.raises(Refused, match="array"):
        ledger.store({"entity_type": "contact", "name": "Ana", "tags": None})


@given(st.from_regex(formats._SURE_DATE_TIME, fullmatch=True))
def test_a_moment_that_one_look_tells_is_sound_by_its_parts(text: str) -> None:
    """What is taken for a moment at one look is one by its date and by its time."""
    assert formats._is_date(text[:10])
    assert formats._is_time(text[11:])


def test_a_field_with_a_format_has_its_check() -> None:
    """The checks by field are those of the formats that fields state themselves."""
    properties = {
        "at": {"type": "string", "format": "date-time"},
        "odd": {"format": "no-such-format"},
        "list": {"type": "array", "items": {"format": "email"}},
        "other": {"$ref": "#/$defs/other", "format": "email"},
        "plain": {"type": "string"},
    }
    found = formats.compile_checks({"properties": properties})
    assert found == {"at": formats.CHECKS["date-time"][0]}
    assert formats.compile_checks({}) == {}

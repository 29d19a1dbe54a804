"""The pack `neotoma`: its schemas are sound, and at /neotoma a record of each of its types is kept whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.conftest import Start, engine, start
from tests.server.server import Server

import woodrat
from woodrat.errors import Refused
from woodrat.merge import BUILTIN
from woodrat.neotoma.names import DELIVERY
from woodrat.state import builtin, packs
from woodrat.state.packs import NEOTOMA
from woodrat.state.schema import parse_schema
from woodrat.state.schema_keywords import PolicyName, PolicyTraits

__all__ = ["engine", "start"]

VALUES: dict[str, Any] = {
    "string": "{name} {label}",
    "date": "2026-0{number}-05T09:00:00Z",
    "number": 10.5,
    "boolean": True,
    "array": ["{name} {label}"],
    "object": {"of": "{label}"},
}


def known(name: PolicyName) -> PolicyTraits | None:
    """Return the traits of a policy that every ledger has."""
    return BUILTIN[str(name)].traits if str(name) in BUILTIN else None


def full_record(kind: str, number: int) -> dict[str, Any]:
    """Return a record with a value for every field of a type; those of another number are all different."""
    label = "AB"[number - 1]

    def filled(value: Any, name: str) -> Any:
        match value:
            case str():
                return value.format(name=name, label=label, number=number)
            case list():
                return [filled(one, name) for one in value]
            case dict():
                return {key: filled(one, name) for key, one in value.items()}
            case bool():
                return value
        return value + number

    said = packs.facts(NEOTOMA)[kind]
    record = {name: filled(VALUES[type], name) for type, names in said["fields"].items() for name in names}
    collections = {name for name, policy in said.get("merge", {}).items() if policy == "union"}
    return {
        "entity_type": kind,
        **{n: [v] if n in collections and isinstance(v, str) else v for n, v in record.items()},
    }


def store(server: Server, entities: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Return the entities that a store made or found."""
    answer = server.call("POST", "/neotoma/store", {"entities": entities, **more}, key="dev-local")
    assert answer.status == 200, answer.body
    return list(answer.json["entities"])


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    with woodrat.open(":memory:", agent="a") as opened:
        yield opened


def test_the_pack_has_all_published_types() -> None:
    """Eighty types with 973 fields."""
    found = packs.facts(NEOTOMA)
    assert len(found) == 80
    assert sum(len(names) for said in found.values() for names in said["fields"].values()) == 973


@pytest.mark.parametrize("kind", packs.facts(NEOTOMA))
def test_a_schema_of_the_pack_would_be_accepted_from_a_user(kind: str) -> None:
    """Each is a sound schema whose identity rules name fields it has, after the built-in one of its name."""
    schema = packs.schemas(NEOTOMA)[kind]
    assert parse_schema(dict(schema.document), kind, policies=known) == schema
    assert schema.version == (2 if kind in builtin.TYPES else 1)
    fields = {part.field for rule in packs.identity(NEOTOMA)[kind] for part in rule.parts}
    assert fields <= {*schema.properties, "id"}


def test_an_extended_type_keeps_what_the_built_in_one_has() -> None:
    """Its fields keep their types, its collections stay collections, and its identity rules come first."""
    for kind in packs.facts(NEOTOMA).keys() & set(builtin.TYPES):
        ours, theirs = builtin.schemas()[kind], packs.schemas(NEOTOMA)[kind]
        assert theirs.identity[: len(ours.identity)] == ours.identity
        for name, described in ours.properties.items():
            assert isinstance(described, dict)
            extended = theirs.properties[name]
            assert isinstance(extended, dict)
            assert extended.get("type") == described.get("type")
            if str(ours.policy_of(name)) in packs.COLLECTIONS:
                assert theirs.policy_of(name) == ours.policy_of(name)


def test_every_type_is_stored_whole_and_apart(start: Start) -> None:
    """Of each type a full record comes back as sent; another is another entity, and sent again it is the same."""
    server = start()
    kinds = list(packs.facts(NEOTOMA))
    one = [full_record(kind, 1) for kind in kinds]
    other = [full_record(kind, 2) for kind in kinds]
    first = store(server, one)
    again = store(server, [dict(reversed(record.items())) for record in one])
    second = store(server, other)
    for kind, sent, stored, repeated, apart in zip(kinds, one, first, again, second, strict=True):
        fields = {name: value for name, value in sent.items() if name != "entity_type"}
        assert stored["entity_snapshot_after"] == fields, kind
        assert repeated["entity_id"] == stored["entity_id"], kind
        assert apart["entity_id"] != stored["entity_id"], kind
        assert apart["action"] == "created", kind
        assert repeated["action"] == "matched_existing", kind


def test_records_that_differ_in_what_identifies_are_apart(start: Start) -> None:
    """Two payments of a day, two preferences of other scopes and two accounts of a bank do not become one."""
    server = start()
    pairs: list[tuple[str, dict[str, Any]]] = [
        (
            "transaction",
            {"posting_date": "2026-01-05", "category": "food", "amount_original": 4.5, "bank_provider": "n26"},
        ),
        ("preference", {"key": "theme", "value": "dark"}),
        ("financial_account", {"institution": "n26"}),
        ("invoice", {"invoice_number": "7", "vendor_name": "Acme"}),
        ("meal", {"name": "Lunch"}),
    ]
    told = [
        ({"merchant_name": "Bar"}, {"merchant_name": "Shop"}),
        ({"scope": "editor"}, {"scope": "shell"}),
        ({"number": "1"}, {"number": "2"}),
        ({"invoice_date": "2025-01-05"}, {"invoice_date": "2026-01-05"}),
        ({"date": "2026-01-05"}, {"date": "2026-01-06"}),
    ]
    for (kind, shared), (one, other) in zip(pairs, told, strict=True):
        found = store(server, [{"entity_type": kind, **shared, **one}, {"entity_type": kind, **shared, **other}])
        assert found[0]["entity_id"] != found[1]["entity_id"], kind


def test_near_duplicates_of_every_type(start: Start) -> None:
    """Full records that differ in one thing: in what identifies they are two entities, in anything else one."""
    server = start()
    kinds = list(packs.facts(NEOTOMA))
    records = [full_record(kind, 1) for kind in kinds]
    stored = store(server, records)
    altered: list[dict[str, Any]] = []
    expected: list[tuple[str, str, str, bool]] = []
    for record, item in zip(records, stored, strict=True):
        kind, basis, rule = record["entity_type"], item["identity_basis"], item.get("identity_rule") or ""
        names = set(rule.split("+")) & set(record) if basis != "record" else set(record) - {"entity_type"}
        assert names, (kind, basis, rule)
        other = full_record(kind, 2)
        others = sorted(set(record) - names - {"entity_type"} - DELIVERY)
        differing = [(min(names - DELIVERY or names), True), *([(others[0], False)] if others else [])]
        for name, apart in differing:
            altered.append({**record, name: other[name] if other[name] != record[name] else None})
            expected.append((kind, item["entity_id"], name, apart))
    for (kind, id, name, apart), item in zip(expected, store(server, altered), strict=True):
        assert (item["entity_id"] != id) == apart, (kind, name, item["identity_basis"], item.get("identity_rule"))


def test_fields_merge_as_published(start: Start) -> None:
    """The most trusted value of a field holds where the type says so, and lists of several records are joined."""
    server = start()
    at = {"observed_at": "2026-01-05T09:00:00Z"}
    person = {"entity_type": "person", "email": "ana@example.org"}
    store(server, [{**person, "name": "Ana Rivera", "$": at}], source_priority=500)
    (after,) = store(server, [{**person, "name": "ana", "role": "cook"}], source_priority=100)
    assert after["entity_snapshot_after"]["name"] == "Ana Rivera"
    assert after["entity_snapshot_after"]["role"] == "cook"
    talk = {"entity_type": "conversation", "conversation_id": "c1"}
    store(server, [{**talk, "topics": ["rent", "tax"]}])
    (after,) = store(server, [{**talk, "topics": ["food"]}])
    assert after["entity_snapshot_after"]["topics"] == ["food", "rent", "tax"]


def test_a_value_of_another_type_is_kept_apart(start: Start) -> None:
    """It is stored, told of, and shown beside the fields; the rest of the record is stored as it is."""
    server = start()
    (item,) = store(server, [{"entity_type": "property", "name": "Flat", "address": "Carrer 1", "purchase_price": "?"}])
    answer = server.call("POST", "/neotoma/get_entity_snapshot", {"entity_id": item["entity_id"]}, key="dev-local").json
    assert answer["snapshot"] == {"name": "Flat", "address": "Carrer 1"}
    assert answer["raw_fragments"] == {"purchase_price": "?"}


def test_remarks_of_several_records_are_shown_as_lines(start: Start) -> None:
    """What is text there and a collection here is sent and shown as text."""
    server = start()
    task = {"entity_type": "task", "title": "Ship"}
    store(server, [{**task, "notes": "asked Ana", "tags": "vip", "$": {"observed_at": "2026-01-05T09:00:00Z"}}])
    (after,) = store(server, [{**task, "notes": "she agreed", "tags": "late"}])
    assert after["entity_snapshot_after"]["notes"] == "asked Ana\nshe agreed"
    assert after["entity_snapshot_after"]["tags"] == "late, vip"


def test_a_schema_of_the_tenants_own_is_left_alone(start: Start) -> None:
    """Its identity rules and its policies hold at /neotoma, too."""
    server = start()
    own = {"title": "invoice", "properties": {"ref": {"type": "string"}}, "x-woodrat-identity": [["ref"]]}
    assert server.call("POST", "/v1/schemas", {"schema": own}).status == 200
    (item,) = store(server, [{"entity_type": "invoice", "ref": "r1", "invoice_number": "7"}])
    assert (item["canonical_name"], item["identity_basis"]) == ("r1", "schema_rule")


def test_a_pack_is_added_once_and_leaves_own_schemas(ledger: woodrat.Ledger) -> None:
    """Adding it again writes nothing, and a type that has a schema keeps it."""
    ledger.schemas.register({"title": "invoice", "properties": {"ref": {"type": "string"}}})
    ledger.store({"entity_type": "contact", "name": "Ana"})
    report = ledger.schemas.add_pack("neotoma")
    assert len(report.positions) == 79
    assert any("invoice" in hint for hint in report.hints)
    assert "ref" in ledger.schemas.show("invoice").properties
    assert ledger.schemas.show("contact").version == 2
    again = ledger.schemas.add_pack("neotoma")
    assert (again.position, again.positions) == (report.position, ())
    with pytest.raises(Refused, match="there is no pack"):
        ledger.schemas.add_pack("other")

"""Which entity a record speaks of at /neotoma: different things never become one, and the same record is one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import Start, engine, start
from tests.server.server import Server

import woodrat
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.neotoma import names as neotoma_names
from woodrat.neotoma import types

__all__ = ["engine", "start"]

PAGE = (Path(__file__).parents[2] / "docs/reference/neotoma.md").read_text("utf-8")
KINDS = ("invoice", "receipt", "transaction", "message", "conversation_message", "note", "bank_transaction", "remark")
DELIVERED = {"schema_version": "1.0", "source_file": "a.pdf", "import_date": "2026-01-05", "data_source": "mail"}


def key(kind: str, fields: dict[str, Any]) -> str | None:
    """Return the key of a record."""
    found = neotoma_names.identifying(kind, fields)
    return found[0] if found is not None else neotoma_names.record_key(fields)


def stored(server: Server, *entities: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entities that a store made or found."""
    answer = server.call("POST", "/neotoma/store", {"entities": list(entities)}, key="dev-local")
    assert answer.status == 200, answer.body
    return list(answer.json["entities"])


values = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab1.-", max_size=3) | st.lists(st.integers(0, 2))
fields = st.dictionaries(
    st.sampled_from(["schema_version", "amount", "currency", "content", "role", "thread_id", "date", "turn_key", "url"])
    | st.sampled_from(["name", "invoice_number", "vendor_name", "source_id", "title", "id", "message_id", "uuid"]),
    values,
    max_size=6,
)


@given(st.sampled_from(KINDS), fields, st.randoms())
def test_the_order_of_keys_plays_no_part(kind: str, said: dict[str, Any], random: Any) -> None:
    """A record is the same entity in whichever order its fields are stated."""
    names = list(said)
    random.shuffle(names)
    assert key(kind, {name: said[name] for name in names}) == key(kind, said)


@given(st.sampled_from(KINDS), fields, st.dictionaries(st.sampled_from(sorted(neotoma_names.DELIVERY)), values))
def test_how_a_record_came_here_plays_no_part(kind: str, said: dict[str, Any], delivery: dict[str, Any]) -> None:
    """Sent in another way, by another client or with another version of its schema, a record is the same entity."""
    bare = {name: value for name, value in said.items() if name not in neotoma_names.DELIVERY}
    assert key(kind, {**bare, **delivery}) == key(kind, bare)


def counting(said: dict[str, Any]) -> bytes:
    """Return what a record says, however it came here."""
    return form.encode(
        {name: value for name, value in said.items() if value is not None and name not in neotoma_names.DELIVERY}
    )


@given(st.sampled_from(KINDS), fields, st.dictionaries(st.sampled_from(["amount", "name", "id", "source_id"]), values))
def test_records_share_an_entity_only_by_an_identifying_value(
    kind: str, said: dict[str, Any], changed: dict[str, Any]
) -> None:
    """Two records are one entity if the value that identifies them is equal, or if they say the same throughout."""
    other = {**said, **changed}
    one, two = neotoma_names.identifying(kind, said), neotoma_names.identifying(kind, other)
    if key(kind, said) is None or key(kind, said) != key(kind, other):
        return
    assert (one is None) == (two is None)
    if one is None or two is None:
        assert counting(said) == counting(other)
    else:
        assert [str(said[name]) for name in one[1].split("+")] == [str(other[name]) for name in two[1].split("+")]


@given(st.sampled_from([*KINDS, "contact", "task", "event"]), fields, st.sampled_from(["$", ""]))
def test_a_key_that_is_not_stated_is_the_one_the_ledger_finds(kind: str, said: dict[str, Any], times: str) -> None:
    """A record goes without its key only where the ledger's own rules make that very key of it."""
    about = {"$": {"observed_at": "2026-01-01T00:00:00Z"}} if times else {}
    with woodrat.open(":memory:", agent="test") as ledger:
        offered = types.offered(ledger)
        named = neotoma_names.record(offered, {"entity_type": kind, **said, **about})
        key = neotoma_names.key_of(offered, kind, said)
        if named.basis is None or key is None:
            return
        try:
            report = offered.store(named.record)
        except woodrat.Refused:
            return  # whatever is wrong with it, nothing was stored
        assert report.entities == (str(Ref(kind, key)),)
        assert ("$" in named.record) >= bool(about)


@pytest.mark.parametrize("kind", KINDS)
def test_two_different_records_stay_two(start: Start, kind: str) -> None:
    """Records that share a version, a currency and whatever else stands first in them are entities of their own."""
    server = start()
    one = {"entity_type": kind, "schema_version": "1.0", "currency": "EUR", "content": "Hello", "amount": 10}
    other = {**one, "amount": 20}
    first, second, again = stored(server, one, other, dict(reversed(one.items())))
    assert first["entity_id"] != second["entity_id"]
    assert first["entity_id"] == again["entity_id"]
    assert first["identity_basis"] == second["identity_basis"] == "record"
    (later,) = stored(server, {**one, **DELIVERED})
    assert later["entity_id"] == first["entity_id"]
    for item, amount in ((first, 10), (second, 20)):
        body = {"entity_id": item["entity_id"]}
        answer = server.call("POST", "/neotoma/get_entity_snapshot", body, key="dev-local")
        assert answer.json["snapshot"]["amount"] == amount


@pytest.mark.parametrize(
    ("kind", "said", "basis", "rule"),
    [
        ("invoice", {"invoice_number": "7", "vendor_name": "Acme"}, "identifier", "invoice_number+vendor_name"),
        ("invoice", {"invoice_number": 7}, "identifier", "invoice_number"),
        ("invoice", {"title": "Invoice", "amount": 3}, "record", None),
        ("transaction", {"transaction_id": "t1", "name": "Coffee"}, "identifier", "transaction_id"),
        ("transaction", {"name": "Coffee", "amount": 3}, "record", None),
        ("message", {"thread_id": "t1", "content": "ok", "email": "a@example.org"}, "record", None),
        ("message", {"message_id": "m1", "thread_id": "t1", "content": "ok"}, "identifier", "message_id"),
        ("note", {"title": "Shopping", "content": "milk"}, "schema_rule", "title"),
        ("note", {"title": "Untitled", "content": "milk"}, "record", None),
        ("note", {"title": "two\nlines", "content": "milk"}, "record", None),
        ("note", {"turn_key": "s1:t1", "content": "milk"}, "record", None),
        ("page", {"url": "https://example.org/"}, "identifier", "url"),
        ("thing", {"uuid": "u1", "name": "A"}, "identifier", "uuid"),
        ("thing", {"id": True, "n": 1}, "record", None),
        ("contact", {"name": "Ana"}, "schema_rule", "name"),
        ("remark", {"n": 1, "$": {"key": "mine"}}, "stated", None),
    ],
)
def test_an_answer_says_how_an_entity_was_found(
    start: Start, kind: str, said: dict[str, Any], basis: str, rule: str | None
) -> None:
    """By which fields, by its schema, by a key that was stated, or as a record of its own."""
    (item,) = stored(start(), {"entity_type": kind, **said})
    assert (item["identity_basis"], item.get("identity_rule")) == (basis, rule)


def test_a_number_belongs_to_who_gave_it(start: Start) -> None:
    """Two vendors may number their invoices alike; the same number of the same vendor is the same invoice."""
    invoice = {"entity_type": "invoice", "invoice_number": "2026-1"}
    acme, kline, paid = stored(
        start(),
        {**invoice, "vendor_name": "Acme", "amount": 1},
        {**invoice, "vendor_name": "Kline", "amount": 2},
        {**invoice, "vendor_name": "Acme", "status": "paid"},
    )
    assert acme["entity_id"] == paid["entity_id"] != kline["entity_id"]


def test_somebody_may_merge_them(start: Start) -> None:
    """Two records of one thing are joined by hand, and more is said of them by their id."""
    server = start()
    first, second = stored(
        server, {"entity_type": "remark", "body": "Call"}, {"entity_type": "remark", "body": "Call", "n": 1}
    )
    body = {"from_entity_id": second["entity_id"], "to_entity_id": first["entity_id"]}
    assert server.call("POST", "/neotoma/merge_entities", body, key="dev-local").status == 200
    (more,) = stored(server, {"entity_type": "remark", "target_id": first["entity_id"], "done": True})
    assert more["identity_basis"] == "target_id"
    assert more["entity_snapshot_after"] == {"body": "Call", "n": 1, "done": True}


def test_a_record_that_says_nothing_is_refused(start: Start) -> None:
    """A type and how it was delivered are no record: all of them would be the same entity."""
    body = {"entities": [{"entity_type": "remark", "schema_version": "1.0", "body": None}]}
    answer = start().call("POST", "/neotoma/store", body, key="dev-local")
    assert answer.status == 400
    assert "nothing identifies this remark" in answer.json["message"]


def test_a_hidden_value_makes_no_key(start: Start) -> None:
    """What a server hides is neither a key nor part of a digest that would give it away."""
    server = start(redact="pin,remark_id")
    one, other, third = stored(
        server,
        {"entity_type": "remark", "pin": "1234", "body": "a"},
        {"entity_type": "remark", "pin": "9999", "body": "a"},
        {"entity_type": "remark", "remark_id": "secret-7", "body": "b"},
    )
    assert one["canonical_name"] == other["canonical_name"] == key("remark", {"pin": "[REDACTED]", "body": "a"})
    assert third["identity_basis"] == "record"
    assert "secret-7" not in str(third)


def test_the_page_lists_what_counts() -> None:
    """Every field that identifies, and every field that does not count, is on the page."""
    told = PAGE.partition("## What identifies an entity")[2]
    for name in (
        *neotoma_names.IDS,
        *neotoma_names.NAMES,
        *neotoma_names.ISSUERS,
        *neotoma_names.UNNAMED,
        *neotoma_names.DELIVERY,
        *neotoma_names.TOGETHER,
    ):
        assert f"`{name}`" in told, name


def first_text(kind: str, said: dict[str, Any]) -> str | None:
    """A planted rule: what was done before, the first text value of a record."""
    return next((value for value in said.values() if isinstance(value, str) and value != kind), None)


def test_the_planted_rule_is_found_out() -> None:
    """The first text of a record breaks what is promised here: order matters, and two invoices are one."""
    said = {"schema_version": "1.0", "currency": "EUR", "amount": 1}
    assert first_text("invoice", said) != first_text("invoice", dict(reversed(said.items())))
    assert first_text("invoice", said) == first_text("invoice", {**said, "amount": 2})
    assert key("invoice", said) == key("invoice", dict(reversed(said.items())))
    assert key("invoice", said) != key("invoice", {**said, "amount": 2})

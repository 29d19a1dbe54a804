"""Arrival and locators behind a server: the same answers, and nothing of a source for keys that may not read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.server import Server

import woodrat
from woodrat.server.keys import Keyring

Start = Callable[..., Server]
CITY = "contact/Ana#city"


def ana(city: str, **about: Any) -> dict[str, Any]:
    """Return a record about Ana."""
    return {"records": [{"entity_type": "contact", "name": "Ana", "city": city, **({"$": about} if about else {})}]}


def test_what_was_decided_by_arrival(server: Server) -> None:
    """The report, the entity, blame and the list say it; the list also as of a moment."""
    first = server.call("POST", "/v1/store", ana("Vic")).json
    report = server.call("POST", "/v1/store", ana("Olot")).json
    assert (first["by_arrival"], report["by_arrival"]) == ([], [CITY])
    assert server.call("GET", "/v1/entities/contact/Ana").json["blame"]["city"]["by_arrival"] is True
    winner, loser = server.call("GET", "/v1/blame/contact/Ana?field=city").json["claims"]["city"]
    assert winner["reason"] == "arrived later; no observation time was given"
    assert (winner["by_arrival"], winner["assigned"], loser["by_arrival"]) == (True, True, False)
    (listed,) = server.call("GET", "/v1/conflicts?arrival=true").json["items"]
    assert (listed["entity"], listed["field"]) == ("contact/Ana", "city")
    assert server.call("GET", "/v1/conflicts").json["items"] == []
    then = server.call("GET", f"/v1/conflicts?arrival=true&as_of={first['position']}").json
    assert then == {"items": [], "cursor": None, "position": first["position"]}
    assert server.call("GET", "/v1/conflicts?arrival=perhaps").status == 400


def test_the_client_asks_the_same(start: Start, keyring: Keyring) -> None:
    """A ledger behind a server lists, blames and stores as one that is here."""
    keys = [keyring.create("t", agent, ["*"])[1] for agent in "ab"]
    server = start(keyring)
    a, b = (woodrat.open(f"http://127.0.0.1:{server.port}", key=key) for key in keys)
    source = a.sources.add(b"Ana lives in Olot.\n", name="note.txt")
    a.store(ana("Vic")["records"])
    report = b.store(ana("Olot", locator={"line": 1}, source=source)["records"])
    assert report.by_arrival == (CITY,)
    (field,) = a.conflicts("contact", arrival=True)
    assert (str(field.entity), field.field, field.by_arrival) == ("contact/Ana", "city", True)
    assert [(claim.value, claim.assigned) for claim in field.claims] == [("Olot", True), ("Vic", True)]
    (verdict, _) = a.blame("contact/Ana", "city", excerpts=True)["city"]
    assert (verdict.excerpt, verdict.locator, verdict.by_arrival) == ("Ana lives in Olot.", {"line": 1}, True)
    assert a.blame("contact/Ana", "city")["city"][0].excerpt is None
    assert a.show("contact/Ana").blame["city"].by_arrival
    assert {item.observation.assigned for item in a.observations("contact/Ana")} == {True}


def test_a_key_that_may_not_read_everything_hears_nothing_of_sources(start: Start, keyring: Keyring) -> None:
    """It can neither point into a source, which would tell whether words are there, nor ask for excerpts."""
    _, full = keyring.create("t", "full", ["*"])
    _, typed = keyring.create("t", "typed", grants=["write:contact", "read:contact"])
    _, blind = keyring.create("t", "blind", grants=["write"])
    server = start(keyring)
    here = woodrat.open(f"http://127.0.0.1:{server.port}", key=full)
    source = here.sources.add(b"The PIN is 4711.\n")
    here.store(ana("Vic", locator={"line": 1}, source=source)["records"])
    for key in (typed, blind):
        for where in ({"quote": "The PIN is 4711."}, {"quote": "The PIN is 4712."}, {"line": 1}, "nonsense"):
            answer = server.call("POST", "/v1/store", ana("Olot", locator=where, source=source), key=key)
            assert (answer.status, answer.json["code"]) == (403, "forbidden")
    assert server.call("GET", "/v1/blame/contact/Ana?excerpts=true", key=typed).status == 403
    shown = server.call("GET", "/v1/blame/contact/Ana", key=typed)
    assert shown.status == 200
    assert b"4711" not in shown.body
    hidden = server.call("POST", "/v1/store", ana("Reus"), key=blind).json
    assert (hidden["by_arrival"], hidden["changes"]) == ([], [])
    assert server.call("POST", "/v1/store", ana("Reus"), key=full).json["by_arrival"] == [CITY]


@pytest.mark.parametrize("where", [{"page": 0}, {}, {"line": 9}, {"quote": "not there"}])
def test_a_wrong_locator_is_refused(server: Server, where: Any) -> None:
    """What is wrong with a locator is told with its path, and nothing is written."""
    source = server.call("POST", "/v1/sources", {"text": "Ana.\n"}).json["source"]
    before = server.call("GET", "/v1/position").json["position"]
    answer = server.call("POST", "/v1/store", ana("Vic", locator=where, source=source))
    assert answer.status == 400
    assert "/$/locator" in answer.json["detail"]
    assert server.call("GET", "/v1/position").json["position"] == before


def test_neotomas_records_are_marked(server: Server) -> None:
    """What a client written for Neotoma stores without a time is marked like anything else."""
    for city in ("Vic", "Olot"):
        entity = {"entity_type": "contact", "name": "Ana", "city": city}
        sent = server.call("POST", "/neotoma/store", {"entities": [entity], "idempotency_key": city}, key="dev-local")
        assert sent.status == 200
    listed = server.call("GET", "/v1/conflicts?arrival=true").json["items"]
    assert [conflict["field"] for conflict in listed] == ["city"]

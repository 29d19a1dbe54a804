"""Seventeen requests of an assistant: the calls of the guide, made by the official client, and what they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.conftest import over_http, refused, run, told
from tests.server.server import Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.canon import moment
from woodrat.cli.serve import endpoints
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.mcp import arguments, compact, intent, tools
from woodrat.server.app import App
from woodrat.server.keys import Open
from woodrat.server.limits import Limits
from woodrat.testing.clock import FixedClock

PAGE = (Path(__file__).parents[2] / "docs/guide/assistant.md").read_text("utf-8")
ROW = re.compile(r"^\| ([^|`]+) \| `([a-z]+)` \| `(\{.*\})` \|$", re.MULTILINE)
REQUESTS = [(said, tool, json.loads(sent)) for said, tool, sent in ROW.findall(PAGE)]
TUESDAY = "2026-11-17T10:00:00.000000Z"
RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("approved", {"creditScore": {"gte": 700}}, label="Good credit"),
]


def _remembered(engine: SqliteEngine) -> None:
    """Put into the ledger what the people and agents of the story said before Tuesday."""

    def agent(name: str, time: str) -> Ledger:
        return Ledger(
            engine, tenant="default", agent=name, clock=FixedClock(moment.parse(time), 1_000), policies=registry(())
        )

    crm = agent("crm", "2026-02-03T09:00:00Z")
    people = [("Ana Rivera", "Barcelona"), ("A. Rivera", "Barcelona"), ("Bob Stone", "Reus"), ("Cleo", "Vic")]
    crm.store([{"entity_type": "contact", "name": name, "city": city} for name, city in people])
    crm.store([{"entity_type": "company", "name": "Acme"}, {"entity_type": "project", "name": "apollo"}])
    crm.relate("contact/Ana Rivera", "works_at", "company/Acme")
    crm.store([{"entity_type": "loan", "id": "42", "creditScore": 580}])
    web = agent("web", "2026-04-01T09:00:00Z")
    web.store([{"entity_type": "contact", "name": "Cleo", "city": "Olot"}], saw=[])
    officer = agent("loan-officer", "2026-11-11T09:00:00Z")
    with officer.run("Should we approve loan 42?", subject="loan/42") as live:
        woodrat.decide("risk", live.show("loan/42"), RULES, default="manual-review")
        live.answer("Loan 42 is rejected: credit 580 is below 600.")
    with (
        pytest.raises(ConnectionError),
        agent("loan-officer", "2026-11-16T09:00:00Z").run("Should we approve loan 43?", subject="loan/43"),
    ):
        raise ConnectionError("the bureau does not answer")


@pytest.fixture
def assisted(engine: SqliteEngine) -> Iterator[Server]:
    """A server on a Tuesday, with a memory."""
    _remembered(engine)
    app = App(
        engine,
        Open("default", "assistant"),
        clock=FixedClock(TUESDAY, 1_000),
        policies=registry(()),
        endpoints=endpoints(),
        limits=Limits(),
    )
    with Server(app) as server:
        yield server


def _right(number: int, answer: dict[str, Any]) -> bool:
    """Return whether an answer is right, by the number of its request."""
    items = answer.get("items", [])
    match number:
        case 1:
            (change,) = answer["changes"]
            return (change["entity"], change["after"]) == ("contact/Ana Rivera", "Girona")
        case 2:
            return (answer["fields"]["city"], answer["matched"]["asked"]) == ("Girona", "Ana")
        case 3:
            by = answer["times"]["as_of"]
            return (answer["fields"]["city"], by) == ("Barcelona", "2026-04-01T00:00:00.000000Z")
        case 4:
            return bool(answer["found"]) and "rejected" in answer["text"] and "580" in answer["text"]
        case 5:
            return "not erased" in answer["remark"] and "woodrat erase 'contact/Bob Stone'" in answer["remark"]
        case 6:
            claims = {item["entity"]: {claim["value"] for claim in item["claims"]} for item in items}
            return claims == {"contact/Ana Rivera": {"Barcelona", "Girona"}, "contact/Cleo": {"Vic", "Olot"}}
        case 7:
            return [item["from"] for item in items] == ["contact/Ana Rivera"]
        case 8:
            return str(answer["source"]).startswith("src_") and answer["source"] in answer["remark"]
        case 9:
            return str(answer["entities"][0]).startswith("note/")
        case 10:
            return any("project/apollo" in entity for entity in answer["entities"])
        case 11:
            return len(answer["observations"]) >= 1
        case 12:
            return (items[0]["chosen"], items[0]["evidence"]["creditScore"]) == ("rejected", 580)
        case 13:
            (first, *_) = answer["claims"]["city"]
            return (first["value"], first["agent"], first["wins"]) == ("Girona", "assistant", True)
        case 14:
            changed = {item["entity"]: item for item in items}
            moved = {"field": "city", "before": "Barcelona", "after": "Girona"}
            return moved in changed["contact/Ana Rivera"]["fields"] and "company/Acme" not in changed
        case 15:
            return "same_as" in answer["entities"][0]
        case 16:
            return [(item["query"], item["status"]) for item in items] == [("Should we approve loan 43?", "error")]
        case _:
            return (answer["flip"], items[0]["chosen_now"]) == (1, "manual-review")


def test_every_request_is_answered_at_the_first_call(assisted: Server) -> None:
    """The seventeen calls of the guide are right at the first call, and their answers are short."""
    assert len(REQUESTS) == 17

    async def story() -> None:
        async with over_http(assisted) as client:
            last: list[str] = []
            wrong: list[Any] = []
            for number, (said, tool, sent) in enumerate(REQUESTS, 1):
                if "observations" in sent:
                    sent = {**sent, "observations": last}
                answer = await told(client, tool, **sent)
                last = answer.get("observations", last)
                if not _right(number, answer) or len(json.dumps(answer)) > 3_000:
                    wrong.append((said, answer))
            assert wrong == []
            recalled = await told(client, "recall", question="Why did we reject loan 42 last week?")
            for hit in recalled["hits"]:
                assert len(json.dumps(hit)) <= compact.RECALLED_CHARACTERS_MAX
            for hit in (await told(client, "search", query="Ana"))["items"]:
                assert len(json.dumps(hit)) <= compact.HIT_CHARACTERS_MAX
            error = await refused(client, "change", action="delete", ref="Cleo")
            assert 'Call change with {"action":"delete","ref":"contact/Cleo"}.' in error["message"]
            error = await refused(client, "show", ref="Rivera Smith")
            assert 'Call recall with {"question":"Rivera Smith"}' in error["message"]
            score = await told(client, "change", action="correct", ref="loan/42", creditScore=720, reason="misread")
            (stale,) = (await told(client, "explain", action="stale"))["items"]
            assert (stale["chosen"], stale["chosen_now"]) == ("rejected", "approved")
            impact = await told(client, "explain", action="impact", of=score["observations"][0])
            assert "the action stale" in impact["remark"]
            new = await told(client, "store", records={"entity_type": "contact", "name": "Bo", "city": "Vic"})
            assert not any("may be" in hint for hint in new.get("hints", ()))
            new = await told(client, "store", records={"entity_type": "contact", "name": "Rivera"})
            assert any('"action":"merge","one":"contact/Rivera"' in hint for hint in new["hints"])
            document = (await told(client, "sources"))["items"][0]["source"]
            read = await told(client, "sources", action="content", source=document)
            assert read["text"] == "Payment is due in 30 days."

    run(story())


WORDINGS: list[tuple[str, dict[str, Any], Callable[[dict[str, Any]], object]]] = [
    (
        "store",
        {"entity_type": "contact", "name": "ana rivera", "phone": "555"},
        lambda a: [match["entity"] for match in a["matched"]] == ["contact/Ana Rivera"],
    ),
    ("show", {"ref": "ana rivera"}, lambda a: a["fields"]["name"] == "Ana Rivera"),
    ("show", {"ref": "Ana Rivera", "field": "city"}, lambda a: a["fields"]["city"] == "Barcelona"),
    (
        "show",
        {"ref": "contact/Ana Rivera", "as_of": "in March"},
        lambda a: a["times"]["as_of"].startswith("2026-04-01"),
    ),
    ("related", {"ref": "acme", "type": "works at"}, lambda a: a["items"][0]["from"] == "contact/Ana Rivera"),
    ("search", {"where": ["works_at=company/Acme"]}, lambda a: "related" in a["remark"]),
    ("diff", {"from": "Monday"}, lambda a: a["times"]["from"] == "2026-11-16T00:00:00.000000Z"),
    ("history", {"action": "timeline", "since": "yesterday"}, lambda a: a["times"]["since"].startswith("2026-11-16")),
    ("history", {"action": "blame", "ref": "cleo#city"}, lambda a: a["claims"]["city"][0]["value"] == "Olot"),
    ("history", {"entity": "ana rivera"}, lambda a: a["matched"]["entity"] == "contact/Ana Rivera"),
    ("why", {"ref": "42"}, lambda a: a["items"][0]["chosen"] == "rejected"),
    ("explain", {"action": "lineage", "of": "ana rivera#city"}, lambda a: a["id"] == "contact/Ana Rivera#city"),
    ("explain", {"action": "impact", "of": "cleo"}, lambda a: a["id"] == "contact/Cleo"),
    ("explain", {"action": "what_if", "set": {"loan 42#creditScore": 640}}, lambda a: a["flip"] == 1),
    ("runs", {"action": "show", "run": "last"}, lambda a: a["subject"] == "loan/43"),
    ("runs", {"status": "failed", "since": "this week"}, lambda a: len(a["items"]) == 1),
    ("remember", {"text": "We chose Postgres: many writers", "about": "apollo"}, lambda a: a["matched"]),
    ("remember", {"content": "prefers tabs", "about": "user"}, lambda a: "topic/user" in a["hints"][0]),
    (
        "store",
        {
            "records": {
                "entity_type": "contact",
                "name": "Ana Rivera",
                "city": "Vic",
                "$": {"observed_at": "last friday"},
            }
        },
        lambda a: a["times"] == {"/0/$/observed_at": "2026-11-13T00:00:00.000000Z"},
    ),
    ("sources", {"action": "add", "text": "Rent is 900.", "title": "lease.txt"}, lambda a: a["source"]),
]
"""Requests in further words, and what their answers must say."""


def test_further_words_are_answered_at_the_first_call(assisted: Server) -> None:
    """Calls that a model makes from the descriptions alone are taken, and their answers say how."""

    async def story() -> None:
        async with over_http(assisted) as client:
            answers = [(sent, right, await told(client, tool, **sent)) for tool, sent, right in WORDINGS]
            assert [(sent, answer) for sent, right, answer in answers if not right(answer)] == []

    run(story())


ANA = {"entity_type": "contact", "name": "Ana"}


@pytest.mark.parametrize(
    ("tool", "sent", "meant"),
    [
        ("store", {"records": ANA}, ("", {"records": [ANA]})),
        ("store", {"records": json.dumps([ANA])}, ("", {"records": [ANA]})),
        ("store", ANA, ("", {"records": [ANA]})),
        ("store", {"record": {"type": "contact", "name": "Ana"}}, ("", {"records": [{"name": "Ana", **ANA}]})),
        ("store", {"records": [{"entity_type": "contact", "fields": {"name": "Ana"}}]}, ("", {"records": [ANA]})),
        ("store", {"records": [ANA], "priority": "3"}, ("", {"records": [ANA], "priority": 3})),
        ("show", {"entity": "Contact/Ana"}, ("", {"ref": "contact/Ana"})),
        ("show", {"id": "a/b", "at": "2026-03"}, ("", {"ref": "a/b", "as_of": "2026-03"})),
        ("recall", {"query": "Where?", "limit": "3"}, ("", {"question": "Where?", "k": 3})),
        ("search", {"question": "Ana", "details": "true"}, ("", {"query": "Ana", "details": True})),
        (
            "search",
            {"type": "contact", "where": {"city": "Vic"}},
            ("", {"entity_type": "contact", "where": ["city=Vic"]}),
        ),
        ("search", {"where": "age gte 18"}, ("", {"where": ["age gte 18"]})),
        ("remember", {"note": "Tabs.", "subject": "a/b"}, ("", {"text": "Tabs.", "about": "a/b"})),
        ("diff", {"since": "yesterday"}, ("", {"before": "yesterday"})),
        ("history", {"ref": "a/b"}, ("observations", {"ref": "a/b"})),
        ("runs", {"status": "failed"}, ("list", {"status": "error"})),
        ("runs", {"run": "run_x"}, ("show", {"run": "run_x"})),
        ("change", {"action": "forget", "ref": "a/b"}, ("delete", {"ref": "a/b"})),
        ("change", {"action": "undo", "observations": "obs_x"}, ("retract", {"observations": ["obs_x"]})),
        ("change", {"ref": "a/b", "fields": {"x": 1}}, ("correct", {"ref": "a/b", "fields": {"x": 1}})),
        ("change", {"action": "correct", "ref": "a/b", "x": 1}, ("correct", {"ref": "a/b", "fields": {"x": 1}})),
        ("change", {"action": "merge", "refs": ["a/b", "a/c"]}, ("merge", {"one": "a/b", "other": "a/c"})),
        ("explain", {"action": "what-if", "set": "l/4.s=6"}, ("what_if", {"set": {"l/4#s": 6}})),
        ("sources", {"action": "keep", "document": "x"}, ("add", {"content": "x"})),
    ],
)
def test_a_call_in_other_words_is_understood(tool: str, sent: dict[str, Any], meant: tuple[str, Any]) -> None:
    """What a model words in its own way, and can mean only one thing, is taken for that."""
    assert arguments.chosen(tools.tools()[tool], sent) == meant


def test_what_can_mean_two_things_is_refused() -> None:
    """An action that is not named and not clear is refused, and so is what may be a misspelled argument."""
    for tool, sent in (
        ("change", {"ref": "a/b", "reason": "x"}),
        ("change", {"action": "erase", "ref": "a/b"}),
        ("change", {"action": "correct", "ref": "a/b", "resaon": "x"}),
        ("run", {"run": "run_x"}),
    ):
        with pytest.raises(woodrat.Refused):
            arguments.chosen(tools.tools()[tool], sent)


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ({"as_of": "March"}, {"as_of": "2026-04-01T00:00:00.000000Z"}),
        ({"as_of": "2026-11"}, {"as_of": "2026-11-17T10:00:00.000000Z"}),
        ({"as_of": "2026-03-05 10:00"}, {"as_of": "2026-03-05T10:00:00Z"}),
        ({"as_of": "yesterday"}, {"as_of": "2026-11-16T00:00:00.000000Z"}),
        ({"as_of": "now"}, None),
        ({"as_of": "@release"}, None),
        ({"before": "Monday"}, {"before": "2026-11-16T00:00:00.000000Z"}),
        ({"since": "since monday"}, {"since": "2026-11-16T00:00:00.000000Z"}),
        ({"as_of": "128"}, None),
        ({"since": "last week"}, {"since": "2026-11-09T00:00:00.000000Z"}),
        (
            {"since": "2026-03", "until": "2026-03"},
            {"since": "2026-03-01T00:00:00.000000Z", "until": "2026-04-01T00:00:00.000000Z"},
        ),
        (
            {"since": "2026-03", "until": "2026-05"},
            {"since": "2026-03-01T00:00:00.000000Z", "until": "2026-05-01T00:00:00.000000Z"},
        ),
        ({"observed_at": "yesterday"}, {"observed_at": "2026-11-16T00:00:00.000000Z"}),
        ({"observed_at": "2026-01-05T09:00:00Z"}, None),
    ],
)
def test_times_are_taken_as_people_say_them(given: dict[str, Any], understood: dict[str, str] | None) -> None:
    """A period means its end where knowledge is asked for, and its beginning where something starts."""
    spelled = {"before": "from", "after": "to"}
    told_as = {spelled.get(name, name): time for name, time in (understood or {}).items()}
    assert intent.timed(given, TUESDAY) == ({**given, **(understood or {})}, told_as)

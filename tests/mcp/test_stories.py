"""The stories of the surface, told through tools by the official client, over both transports and an older revision."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from mcp import Client
from tests.mcp.conftest import over_http, over_stdio, refused, run, told
from tests.server.conftest import Start

from woodrat.mcp.server import entity_uri
from woodrat.server.keys import Keyring

As = Callable[[str], AbstractAsyncContextManager[Client]]
WAYS = ["http-auto", "http-legacy", "stdio-auto", "stdio-legacy"]


@pytest.fixture(params=WAYS)
def as_agent(request: pytest.FixtureRequest, tmp_path: Path) -> As:
    """Connect as an agent: over HTTP the key says who it is, over stdio the command line does."""
    way, _, mode = request.param.partition("-")
    if way == "stdio":
        return lambda agent: over_stdio(tmp_path / "stdio.db", agent, mode, "lending")
    keyring: Keyring = request.getfixturevalue("keyring")
    start: Start = request.getfixturevalue("start")
    keys = {agent: keyring.create("lending", agent, ["*"])[1] for agent in ("crm", "web", "loan-officer", "auditor")}
    server = start(keyring)
    return lambda agent: over_http(server, keys[agent], mode)


def test_two_agents_disagree(as_agent: As) -> None:
    """Two agents state different cities; the later one is believed, both stay, and blame says why."""

    async def story() -> None:
        async with as_agent("crm") as crm:
            assert crm.protocol_version in ("2026-07-28", "2025-11-25")
            found_tools = (await crm.list_tools()).tools
            assert {"store", "change", "schemas"} <= {tool.name for tool in found_tools}
            templates = (await crm.list_resource_templates()).resource_templates
            assert [item.uri_template for item in templates] == ["woodrat://entities/{ref}", "woodrat://runs/{run}"]
            record = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}
            await told(crm, "store", records=[record], observed_at="2026-01-05T09:00:00Z")
        async with as_agent("web") as web:
            record = {"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}
            report = await told(web, "store", records=[record], observed_at="2026-03-01T12:00:00Z")
            again = await told(web, "store", records=[record], observed_at="2026-03-01T12:00:00Z")
            assert again["known"] == report["observations"]
            found = (await told(web, "search", query="Ana", entity_type="contact"))["items"]
            assert [entity["fields"]["city"] for entity in found] == ["San Francisco"]
            listed = (await told(web, "search", entity_type="contact", where=["city=San Francisco"]))["items"]
            assert len(listed) == 1
            listed = (await told(web, "search", entity_type="contact", where=["city prefix San", "city lt T"]))["items"]
            assert len(listed) == 1
            kept = await told(web, "history", action="observations", ref="contact/Ana Rivera")
            assert [item["agent"] for item in kept["items"]] == ["crm", "web"]
            claims = (await told(web, "history", action="blame", ref="contact/Ana Rivera", field="city"))["claims"]
            assert [claim["value"] for claim in claims["city"]] == ["San Francisco", "Barcelona"]
            steps = await told(web, "history", action="changes", ref="contact/Ana Rivera", field="city", limit=1)
            assert [item["changes"] for item in steps["items"]] == [[{"field": "city", "after": "Barcelona"}]]
            seen = await told(web, "history", action="timeline", since="2026-02-01T00:00:00Z")
            assert [item["fields"]["city"] for item in seen["items"]] == ["San Francisco"]
            before = await told(web, "show", ref="contact/Ana Rivera", as_of=str(report["position"] - 1))
            assert before["fields"]["city"] == "Barcelona"
            await told(
                web, "change", action="correct", ref="contact/Ana Rivera", fields={"city": "Girona"}, reason="moved"
            )
            changes = (await told(web, "diff", **{"from": str(report["position"])}))["items"]
            assert [(f["before"], f["after"]) for c in changes for f in c["fields"]] == [("San Francisco", "Girona")]
            read = await web.read_resource(entity_uri("contact/Ana Rivera"))
            assert '"city":"Girona"' in read.contents[0].text  # type: ignore[union-attr]

    run(story())


def test_a_collection_is_shown_by_page(as_agent: As) -> None:
    """With a field `show` has the elements of a collection, and a cursor where there are more of them."""

    async def story() -> None:
        async with as_agent("crm") as crm:
            tags = [f"tag {number:04}" for number in range(105)]
            record = {"entity_type": "contact", "name": "Ana Rivera", "tags": tags}
            await told(crm, "store", records=[record])
            ana = "contact/Ana Rivera"
            first = await told(crm, "show", ref=ana, field="tags")
            assert (first["items"], first["total"]) == (tags[:100], 105)
            rest = await told(crm, "show", ref=ana, field="tags", cursor=first["cursor"])
            assert rest["items"] == tags[100:]
            problem = await refused(crm, "show", ref=ana, cursor=first["cursor"])
            assert "/cursor: is taken only together with field." in problem["message"]

    run(story())


def test_friday_asks_why_monday_rejected_the_loan(as_agent: As) -> None:
    """A run decides by rules on what it read; another agent asks why, recalls it, and what would be otherwise."""

    async def story() -> None:
        async with as_agent("loan-officer") as officer:
            record = {"entity_type": "loan", "id": "42", "creditScore": 580}
            seen = (await told(officer, "store", records=[record]))["observations"][0]
            question = "Should we approve application #42?"
            begun = await told(officer, "run", action="start", query=question, subject="loan/42", inputs={"number": 42})
            name = begun["run"]
            shown = await told(officer, "run", action="step", run=name, step={"read": "loan/42"})
            assert shown["snapshot"]["fields"]["creditScore"] == 580
            call = {"name": "bureau", "args": {"id": "42"}, "result": {"score": 580}}
            await told(officer, "run", action="step", run=name, step={"tool": call})
            missing = await refused(officer, "run", action="step", run=name, step={"read": "loan/43"})
            assert missing["code"] == "not_found"
            rules = [
                {"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal credit"},
                {"chosen": "approved", "when": {"creditScore": {"gte": 700}}, "label": "Good credit"},
            ]
            decision = {"run": name, "stage": "risk", "facts": "loan/42", "rules": rules, "default": "review"}
            made = await told(officer, "run", action="decide", idempotency_key="risk", **decision)
            verdict = made["verdict"]
            again = await told(officer, "run", action="decide", idempotency_key="risk", **decision)
            assert (again["repeated"], again["verdict"]["chosen"]) == (True, "rejected")
            assert (verdict["chosen"], verdict["rule"]) == ("rejected", "Marginal credit")
            await told(officer, "run", action="end", run=name, answer="Rejected: credit 580 below 600.")
            over = await refused(officer, "run", action="step", run=name, step={"note": "late"})
            assert over["code"] == "refused"
        async with as_agent("auditor") as auditor:
            (reason,) = (await told(auditor, "why", ref="loan/42"))["items"]
            assert (reason["chosen"], reason["evidence"]["creditScore"]) == ("rejected", 580)
            (whole,) = (await told(auditor, "why", ref="loan/42", details=True))["items"]
            assert whole["decision"]["chosen"] == "rejected"
            hit = await told(auditor, "recall", question="Why was application #42 rejected?", k=1, threshold=0.1)
            assert (hit["found"], hit["hits"][0]["kind"], hit["hits"][0]["ref"]) == (True, "run", name)
            lineage = await told(auditor, "explain", action="lineage", of=f"{name}#risk")
            assert seen in str(lineage)
            impact = await told(auditor, "explain", action="impact", of=seen)
            assert name in str(impact)
            supposed = await told(auditor, "explain", action="what_if", run=name, set={"loan/42#creditScore": 720})
            assert supposed["flip"] == 1
            assert (await told(auditor, "explain", action="stale"))["items"] == []
            assert (await told(auditor, "runs", action="diff", first=name, second=name))["same"] is True
            assert [item["id"] for item in (await told(auditor, "runs", action="list"))["items"]] == [name]
            kept = await auditor.read_resource(f"woodrat://runs/{name}")
            assert "Marginal credit" in kept.contents[0].text  # type: ignore[union-attr]
            assert name in [str(item.uri).rpartition("/")[2] for item in (await auditor.list_resources()).resources]

    run(story())


def test_what_was_decided_by_arrival(as_agent: As) -> None:
    """Without a time the later arrival wins; the report says so, and `conflicts` lists the field."""

    async def story() -> None:
        async with as_agent("crm") as client:
            for city in ("Vic", "Olot"):
                report = await told(
                    client, "store", records=[{"entity_type": "contact", "name": "Ana Rivera", "city": city}]
                )
            assert report["by_arrival"] == ["contact/Ana Rivera#city"]
            listed = await told(client, "conflicts", arrival=True)
            assert [(item["entity"], item["field"]) for item in listed["items"]] == [("contact/Ana Rivera", "city")]
            assert [claim["value"] for claim in listed["items"][0]["claims"]] == ["Olot"]
            assert (await told(client, "conflicts"))["items"] == []

    run(story())


def test_relations_sources_and_schemas(as_agent: As) -> None:
    """An agent relates what it stored, reads which sources there are, and registers a schema."""

    async def story() -> None:
        async with as_agent("crm") as crm:
            records = [{"entity_type": "contact", "name": "Ana"}, {"entity_type": "company", "name": "Kline"}]
            await told(crm, "store", records=records)
            ends = {"from": "contact/Ana", "type": "works_at", "to": "company/Kline"}
            await told(crm, "change", action="relate", fields={"since": 2020}, **ends)
            (relation,) = (await told(crm, "related", ref="company/Kline"))["items"]
            assert {name: relation[name] for name in (*ends, "fields")} == {**ends, "fields": {"since": 2020}}
            assert (await told(crm, "sources", action="list"))["items"] == []
            assert (await refused(crm, "sources", action="show", source="src_" + "a" * 26))["code"] == "not_found"
            schema = {"title": "loan", "properties": {"creditScore": {"type": "integer"}}}
            assert (await told(crm, "schemas", action="register", schema=schema))["id"].startswith("sch_")
            listed = (await told(crm, "schemas", action="list"))["items"]
            assert {"type": "loan", "version": 1, "fields": ["creditScore"]} in listed
            shown = await told(crm, "schemas", action="show", entity_type="loan")
            assert shown["schema"]["properties"] == schema["properties"]

    run(story())

"""Tools: what a client lists, what it may send, and what it hears when that was wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.surfaces.http.server import Server
from tests.surfaces.mcp.conftest import over_http, refused, run, told

from woodrat.errors import Refused
from woodrat.runs.wording import tokens
from woodrat.surfaces.mcp import tools
from woodrat.surfaces.mcp.server import listed

PAGE = (Path(__file__).parents[3] / "docs/reference/mcp.md").read_text("utf-8")
SURFACE = [
    *("store", "show", "search", "observations", "history", "diff", "blame", "change", "why", "recall", "run"),
    *("runs_diff", "explain", "verify", "schema"),
]


def test_the_tools_are_those_of_the_surface() -> None:
    """There are at most 16 tools, named by the verbs of the surface in its order."""
    names = list(tools.tools())
    assert names == [name for name in SURFACE if name in names]
    assert set(SURFACE) == set(names)


def test_the_whole_list_costs_an_agent_little() -> None:
    """The list of tools, as JSON, is taken to cost less than 4,000 tokens, also with every tool there may be."""
    text = json.dumps([tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed()])
    every = tokens(text)
    assert every < 4_000


@pytest.mark.parametrize("tool", tools.tools().values(), ids=lambda tool: tool.name)
def test_every_tool_is_described(tool: tools.Tool) -> None:
    """A tool has a sentence, a place in the reference page, and actions that take only arguments it has."""
    assert tool.what.endswith(".")
    assert re.search(rf"^\| `{tool.name}` ", PAGE, re.MULTILINE)
    known = {param.spelled for param in tool.params}
    used = {name for action in tool.actions.values() for name in (*action.needs, *action.takes)}
    assert used <= known
    if "" not in tool.actions:
        assert used == known, "an argument no action takes"
        assert all(name in tool.what for name in tool.actions)


@pytest.mark.parametrize(
    ("name", "sent", "faults"),
    [
        ("show", {}, ["arguments"]),
        ("show", {"ref": 7, "colour": "red"}, ["/ref", "arguments"]),
        ("change", {"action": "burn", "ref": "a/b"}, ["/action"]),
        ("change", {"action": "delete", "fields": {}, "x": 1}, ["/fields", "/ref", "arguments"]),
        ("run", {"action": "decide", "run": "run_x"}, ["/facts", "/rules", "/stage"]),
        ("search", {"limit": 0}, ["/limit"]),
    ],
)
def test_all_faults_of_a_call_are_told_at_once(name: str, sent: dict[str, object], faults: list[str]) -> None:
    """What is unknown, missing, of another type or says nothing to the action is refused together, before anything."""
    with pytest.raises(Refused) as refusal:
        tools.chosen(tools.tools()[name], sent)
    assert sorted(fault.path for fault in refusal.value.faults) == faults
    assert str(refusal.value).endswith("Nothing was done.")


def test_errors_have_the_words_of_any_surface(served: Server) -> None:
    """A tool that fails answers with message, code and details, and the protocol's own error stays for other things."""

    async def story() -> None:
        async with over_http(served) as client:
            missing = await refused(client, "show", ref="contact/Nobody")
            assert (missing["code"], missing["details"]["entity"]) == ("not_found", "contact/Nobody")
            wrong = await refused(client, "store", records=[{"entity_type": "Contact", "name": "Ana"}])
            assert wrong["code"] == "refused"
            assert "Nothing was written." in wrong["message"]
            assert "Traceback" not in wrong["message"]
            assert (await refused(client, "burn"))["code"] == "not_found"
            await told(client, "store", records=[{"entity_type": "contact", "name": "Ana", "city": "Lugo"}])
            old = await refused(
                client, "change", action="correct", ref="contact/Ana", fields={"city": "Vigo"}, if_version=9
            )
            assert old["code"] == "outdated"

    run(story())


def test_moments_and_fields_are_named_as_everywhere(served: Server) -> None:
    """A moment may be the position as the number a report has, and REF#field names a field."""

    async def story() -> None:
        async with over_http(served) as client:
            for city in ("Lugo", "Vigo"):
                report = await told(client, "store", records=[{"entity_type": "contact", "name": "Ana", "city": city}])
            before = report["position"] - 1
            assert (await told(client, "show", ref="contact/Ana", as_of=before))["fields"]["city"] == "Lugo"
            differs = await told(client, "diff", **{"from": before, "to": report["position"]})
            assert differs == await told(client, "diff", **{"from": str(before), "to": str(report["position"])})
            claims = (await told(client, "blame", ref="contact/Ana#city"))["claims"]
            assert claims == (await told(client, "blame", ref="contact/Ana", field="city"))["claims"]
            assert [claim["value"] for claim in claims["city"]] == ["Vigo", "Lugo"]
            missing = await refused(client, "blame", ref="contact/Ana#street")
            assert "It has city, name." in missing["message"]
            await told(client, "store", records=[{"entity_type": "issue", "$": {"key": "a#1"}, "title": "x"}])
            assert "title" in (await told(client, "blame", ref="issue/a#1"))["claims"]

    run(story())


def test_an_own_mistake_says_nothing_of_itself(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """When our code fails the client hears that it did, and no more."""

    async def story() -> None:
        async with over_http(served) as client:
            monkeypatch.setattr("woodrat.ledger.past.Past.search", lambda *_, **__: 1 / 0)
            error = await refused(client, "search", query="Ana")
            assert error["code"] == "unavailable"
            assert "division" not in error["message"]

    run(story())


def test_the_sdk_is_loaded_when_it_is_needed() -> None:
    """Neither the application nor the verbs around MCP load the SDK; the first call of a client does."""
    names = ("http.app", "mcp.tools", "mcp.stdio", "mcp.endpoint", "cli.agents")
    code = f"import sys, {', '.join(f'woodrat.surfaces.{name}' for name in names)}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"mcp", "mcp_types", "pydantic", "starlette"}.isdisjoint(done.stdout.split())

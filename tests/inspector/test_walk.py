"""Every page of the app on every ledger: nothing is logged, the policy is kept, people can use it, and no text runs."""

from __future__ import annotations

import json
from itertools import groupby

import pytest
from tests.inspector import ledgers, paging, routes
from tests.inspector.browser import Look
from tests.inspector.conftest import Open
from tests.inspector.paging import Call
from tests.inspector.served import Served


def walk(page: Look, paths: list[str]) -> None:
    """Visit pages one after the other; of each kind the first is loaded by itself, as from a link that was sent."""
    for _, several in groupby(sorted(paths), key=lambda path: path.split("?")[0].split("/")[1]):
        first, *others = several
        page.go(first)
        for path in others:
            page.visit(path)


@pytest.mark.parametrize(("dark", "narrow"), [(False, False), (True, True)], ids=["light wide", "dark narrow"])
def test_pages_of_the_demonstration(demo: Served, look: Open, dark: bool, narrow: bool) -> None:
    """Every page opens by its address without a complaint, fits the screen, and has no serious issue by axe-core."""
    found: dict[str, object] = {}
    page = look(demo, None, dark=dark, narrow=narrow)
    for path in routes.addresses(demo):
        page.go(path).check()
        issues = page.serious()
        wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            issues.append(f"the page is {wide} pixels wider than the screen")
        if page.page.title() in ("", "Woodrat") or not page.page.locator("main h1").count():
            issues.append(f"no title or heading: {page.page.title()!r}")
        if issues:
            found[path] = issues
    assert not found, json.dumps(found, indent=1)


def test_pages_of_a_large_ledger(large: Served, look: Open) -> None:
    """Every page paints from paged reads on 10,000 entities and 2,000 runs: each list is asked for by the page."""
    page = look(large, None)
    seen = 0
    for path in routes.addresses(large):
        page.go(path).rest().check()
        calls = page.calls()
        seen += len(calls)
        assert not [*paging.violations(calls)], path
    assert seen > 20
    for planted in ("/v1/entities", "/v1/entities?limit=1000", "/v1/observations"):
        page.evaluate("async (url) => await (await fetch(url)).text()", planted)
        assert [*paging.violations(page.calls())], f"{planted} is no paged read"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (Call("GET", "/v1/runs", {"limit": "2"}, {"items": [1, 2, 3]}, 9), "3 elements in `items`"),
        (Call("GET", "/v1/runs", {}, {"items": []}, 9), "asked without `limit`"),
        (
            Call("POST", "/v1/runs/diff", {"first": "x", "second": "y"}, {"rows": []}, 9),
            "asked without `limit`",
        ),
        (Call("POST", "/v1/runs/diff", {"limit": 1}, {"rows": [1, 2]}, 9), "2 elements in `rows`"),
        (Call("POST", "/v1/what-if", {"run": "run_x"}, {"decisions": []}, 9), "asked without `limit`"),
        (Call("GET", "/v1/overview", {"days": "9"}, {"tools": [{}] * 201}, 9), "201 elements in `tools`"),
        (Call("GET", "/v1/runs/run_x/steps", {"limit": "9"}, {"items": [{"writes": [1] * 201}]}, 9), "items[].writes"),
        (Call("GET", "/v1/runs", {"limit": "2"}, {"items": []}, 600_000), "600000 bytes"),
        (Call("GET", "/v1/nowhere", {}, {}, 2), "no such route"),
        (Call("GET", "/v1/runs", {"limit": "2"}, {"items": [1, 2]}, 9), None),
    ],
)
def test_what_is_no_paged_read_is_caught(call: Call, problem: str | None) -> None:
    """A list without a limit, more items than were asked for, a long list inside an answer, and a long answer."""
    found = [*paging.violations([call])]
    assert (problem is None and not found) or (problem is not None and problem in found[0]), found


def test_recorded_text_never_runs(hostile: Served, look: Open) -> None:
    """Forty payloads in every text of the model: on no page does one run, make an element, or break what is shown."""
    page = look(hostile, None)
    paths = list(routes.addresses(hostile, each=len(ledgers.PAYLOADS)))
    assert len(paths) > len(ledgers.PAYLOADS)
    walk(page, paths)
    for path in ("/runs", "/entities", "/sources"):
        page.go(path)
        assert page.evaluate(f"() => window.{ledgers.MARK}") is None
        assert f"window.{ledgers.MARK}=" in page.text(), f"{path} shows recorded text as text"
    assert page.evaluate(f"() => window.{ledgers.MARK}") is None
    page.check()


def test_payloads_in_addresses_never_run(demo: Served, look: Open) -> None:
    """What stands in an address is text too: pages say that there is no such thing."""
    page = look(demo, None)
    page.go("/entities")
    for payload in ledgers.PAYLOADS[:: 1 if ledgers.IS_LONG else 5]:
        for path in (
            *(f"/runs/{routes.part(payload)}", f"/entities/contact/{routes.part(payload)}"),
            *(f"/sources/{routes.part(payload)}", f"/recall?q={routes.part(payload)}", f"/{routes.part(payload)}"),
        ):
            page.visit(path)
            assert page.evaluate(f"() => window.{ledgers.MARK}") is None, path
    page.check(400, 404)

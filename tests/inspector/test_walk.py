"""Every page of the app on every ledger: nothing is logged, the policy is kept, people can use it, and no text runs."""

from __future__ import annotations

import json
from itertools import groupby

import pytest
from tests.inspector import ledgers, routes
from tests.inspector.browser import Look
from tests.inspector.conftest import Open
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
    """Every page paints from paged reads on 10,000 entities and 2,000 runs: no answer is longer than a page."""
    page = look(large, None)
    lengths: dict[str, int] = {}
    page.page.on("response", lambda answer: lengths.update({answer.url: int(answer.headers.get("content-length", 0))}))
    for path in routes.addresses(large):
        page.go(path)
        page.check()
    longest = max(lengths, key=lambda url: lengths[url])
    assert lengths[longest] < 512 * 1024, f"{longest}: {lengths[longest]} bytes"


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

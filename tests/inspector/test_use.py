"""Using the inspector: signing in, what a read-only key sees, ends of sessions, failures, and what a page may cost."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Route
from tests.inspector import ledgers, paging, routes
from tests.inspector.browser import NAVIGATE, Look
from tests.inspector.conftest import Open, leave_out, made_once
from tests.inspector.served import Served
from tests.server.test_sessions import Hands

from woodrat.inspector.site import STATIC
from woodrat.server import sessions

FIRST_REQUESTS_MAX = 6
SCRIPT_BYTES_MAX = 250_000
STEP_NODES_MAX = 300


@pytest.fixture
def locked(tmp_path: Path) -> Served:
    """A server of its own on the demonstration's ledger, for tests that make keys or stop it."""
    return Served(made_once("demo", ledgers.make_demo, tmp_path), Hands())


def sign_in(page: Look, secret: str) -> None:
    """Type a key into the form."""
    page.page.fill("input[type=password]", secret)
    page.page.click("main form [type=submit]")


def test_signing_in_and_out(locked: Served, look: Open) -> None:
    """A page asks for a key, comes back to the address that was wanted, keeps no key, and signs out."""
    with locked:
        _, secret = locked.keys.create(ledgers.TENANT, "ann", ["*"])
        page = look(locked, "/entities?type=contact")
        assert "/sign-in" in page.page.url
        assert page.serious() == []
        sign_in(page, "wrat_wrong")
        page.page.wait_for_selector("[role=alert]")
        sign_in(page, secret)
        page.page.wait_for_url(f"{locked.url}/entities?type=contact")
        page.settle().check(401)
        kept = page.evaluate("() => JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
        assert "wrat_" not in kept
        assert "ses_" not in kept  # no script can read the session
        page.page.get_by_role("button", name="Sign out").click()
        page.page.wait_for_url("**/sign-in**")
        page.go("/entities")
        assert "/sign-in" in page.page.url


def test_a_session_that_ends_asks_again(locked: Served, look: Open) -> None:
    """When a session is over, or its key revoked, the next call leads to the sign-in page, and on from there."""
    with locked:
        key, secret = locked.keys.create(ledgers.TENANT, "ann", ["*"])
        page = look(locked, "/sign-in")
        sign_in(page, secret)
        page.page.wait_for_url(f"{locked.url}/")
        assert isinstance(locked.clock, Hands)
        locked.clock.ahead += sessions.IDLE_SECONDS + 1
        page.evaluate(NAVIGATE, "/schemas")
        page.page.wait_for_url("**/sign-in**")
        sign_in(page, secret)
        page.page.wait_for_url(f"{locked.url}/schemas")
        locked.keys.revoke(key.id)
        page.go("/entities")
        assert "/sign-in" in page.page.url
        page.check(401)


def test_a_read_only_key_sees_no_button_that_changes_data(locked: Served, look: Open) -> None:
    """With a key that may only read, no page has a control that changes data; with one that may, some have."""
    with locked:
        paths = list(routes.addresses(locked))
        _, reads = locked.keys.create(ledgers.TENANT, "auditor", ["read"])
        _, writes = locked.keys.create(ledgers.TENANT, "editor", ["*"])
        seen = {}
        for name, secret in (("reads", reads), ("writes", writes)):
            page = look(locked, "/sign-in")
            sign_in(page, secret)
            page.page.wait_for_url(f"{locked.url}/")
            controls = []
            for path in paths:
                page.visit(path)
                controls += [f"{path}: {text}" for text in page.page.locator("[data-writes]").all_inner_texts()]
            seen[name] = controls
            page.check()
        assert seen["reads"] == []
        assert seen["writes"] != []


def test_a_server_that_goes_away_and_comes_back(locked: Served, look: Open) -> None:
    """While the server is gone a page says so and keeps what it has; it comes back by itself, code and all."""
    with locked:
        page = look(locked, "/entities")
        page.page.get_by_text("Ana Rivera").first.wait_for()
        locked.stop()
        page.page.get_by_text("not connected").wait_for()
        assert page.page.get_by_text("Ana Rivera").count()
        page.evaluate(NAVIGATE, "/schemas")  # its code was never loaded
        page.page.wait_for_selector("main [role=alert]")
        locked.start()
        page.page.get_by_role("heading", name="Schemas").wait_for()
        page.settle()
        locked.stop()
        page.evaluate(NAVIGATE, "/schemas/contact")
        page.page.wait_for_selector("main [role=alert]")
        locked.start()
        page.page.get_by_role("button", name="Try again").click()
        page.page.wait_for_selector("main [role=alert]", state="detached")
        page.settle()
        assert [error for error in page.errors if not error.startswith("error: Failed")] == []


def test_a_page_says_while_its_code_is_loaded(demo: Served, look: Open) -> None:
    """Until the code of another page has come, what is shown is the page before it, and is marked as busy."""
    found = look(demo, "/log")
    held: list[Route] = []
    found.page.route("**/assets/LogEntry-*.js", lambda route: held.append(route))
    found.page.get_by_role("region", name="Entries").get_by_role("link").first.click()
    found.until(lambda: bool(held))
    busy = found.page.locator("main [aria-busy=true]")
    assert busy.get_by_role("heading", name="Log", exact=True).count() == 1
    held[0].continue_()
    found.page.get_by_text("Commitment").wait_for()
    assert busy.count() == 0
    found.check()


@pytest.mark.parametrize(
    "path",
    [
        "/runs/run_none",
        "/entities/contact/Nobody",
        "/sources/src_none",
        "/decisions/run_none/0",
        "/nowhere",
        "/log/999999",
    ],
)
def test_what_is_not_there_is_a_clear_page(demo: Served, look: Open, path: str) -> None:
    """An unknown id or address is said in words, and the way on is still there."""
    page = look(demo, None)
    page.page.goto(demo.url + path)
    page.settle()
    words = page.page.inner_text("main").lower()
    assert any(text in words for text in ("no such", "not known", "there is no", "not found", "no page")), words[:300]
    assert page.page.locator("nav a").count() > 3
    page.check(400, 404)


def test_odd_values_do_not_break_a_page(tmp_path: Path, look: Open) -> None:
    """A value of a megabyte, 5,000 fields, right-to-left text and emoji are shown, and the page stays usable."""
    from woodrat.api.open import open_ledger

    routes.needs("/entities/*ref")
    path = tmp_path / "odd.db"
    with open_ledger(path, tenant=ledgers.TENANT) as ledger:
        ledger.store({"entity_type": "note", "$": {"key": "long"}, "text": "x" * 1_000_000})
        for start in range(0, 5_000, 1_000):
            fields = {f"field_{number:04}": number for number in range(start, start + 1_000)}
            ledger.store({"entity_type": "sheet", "id": "wide", **fields})
        ledger.store({"entity_type": "contact", "name": "مريم 👩‍👩‍👧", "city": "القاهرة"})
    with Served(path) as server:
        page = look(server, "/entities")
        for ref in ("note/long", "sheet/wide", "contact/مريم 👩‍👩‍👧"):
            page.go(f"/entities/{routes.ref_path(ref)}")
            assert ref.partition("/")[2] in page.text()
            assert page.evaluate("() => document.querySelectorAll('main *').length") < 30_000
            wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, ref
        page.check()


def test_the_first_page_costs_few_requests(large: Served, look: Open) -> None:
    """On a large ledger the first page paints from at most six calls; the document and hashed files do not count.

    The stream of the log is opened after that, once, for as long as the page is looked at.
    """
    routes.needs("/")
    page = look(large, "/")
    stream = re.compile(r"GET /v1/log\?after=\d+$")
    others = [request for request in page.requests if not stream.fullmatch(request)]
    calls = [request for request in others if "/assets/" not in request and request != "GET /"]
    assert page.streams == len(page.requests) - len(others) <= 1
    assert len(calls) <= FIRST_REQUESTS_MAX, page.requests
    page.check()


def test_all_scripts_together_are_small() -> None:
    """All JavaScript of the app, as it is sent, is below a quarter of a megabyte."""
    if not (STATIC / "index.html").exists():
        leave_out("the inspector is not built; run `python3 dev.py ui`")
    packed = {path.name: path.stat().st_size for path in STATIC.rglob("*.js.gz")}
    assert packed, "the build packs what it makes"
    assert sum(packed.values()) < SCRIPT_BYTES_MAX, packed


def test_a_long_run_holds_few_steps(large: Served, look: Open) -> None:
    """Of a run with 10,000 steps a page never holds more than 300, wherever it is scrolled to."""
    routes.needs("/runs/:run")
    (run,) = large.items("runs", agent="crawler", limit=1)
    page = look(large, f"/runs/{run['id']}")
    page.page.wait_for_selector("[data-step]")
    seen = set()
    for share in (0, 0.25, 0.5, 0.75, 1, 0.1):
        page.evaluate("(share) => window.scrollTo(0, share * document.documentElement.scrollHeight)", share)
        page.page.wait_for_timeout(250)
        page.settle()
        steps = page.page.locator("[data-step]").evaluate_all("(nodes) => nodes.map((node) => node.dataset.step)")
        assert 0 < len(steps) <= STEP_NODES_MAX
        seen.update(steps)
    assert len(seen) > 1
    page.check()


def test_long_runs_are_compared_page_by_page(tmp_path: Path, look: Open) -> None:
    """What differs comes first, equal steps where somebody looks, and no list in the page holds more than 300 rows."""
    routes.needs("/compare")
    with Served(made_once("alike", ledgers.make_alike, tmp_path)) as server:
        second, first = (run["id"] for run in server.items("runs", agent="crawler"))
        whole = server.post("runs/diff", {"first": first, "second": second})
        differing = [row["step"] for row in whole["rows"] if row["mark"] != "same"]
        assert (whole["step"], len(differing), whole["total"]) == (501, 375, 2_002)
        page = look(server, f"/compare?runs={first},{second}")

        def shows(wanted: list[int]) -> bool:
            nodes = page.page.locator("[data-pair]")
            steps = nodes.evaluate_all("(nodes) => nodes.map((node) => Number(node.dataset.pair))")
            return bool(steps[: len(wanted)] == wanted and len(steps) <= 2 * STEP_NODES_MAX)

        def press(name: str, wanted: list[int]) -> None:
            page.page.get_by_role("button", name=name, exact=True).first.click()
            page.until(lambda: shows(wanted))

        assert shows(differing[:100])
        assert page.page.get_by_text("they part here").count() == 1
        press("275 more differences, show", differing[:200])
        press("175 more differences, show", differing[:300])
        press("75 more differences, show", differing[75:])
        press("75 earlier differences, show", differing[:300])

        press("501 steps the same, show", [*range(100), *differing[:300]])
        press("Show more of 401 steps", [*range(200), *differing[:300]])
        press("Show more of 301 steps", [*range(300), *differing[:300]])
        page.page.get_by_text("and 201 steps more").wait_for()
        press("501 steps the same", differing[:300])
        press("3 steps the same, show", [501, 502, 503, 504, 505, 509])
        assert not [*paging.violations(page.calls())]
        page.check()


def test_a_comparison_that_cannot_go_on_says_so(tmp_path: Path, look: Open) -> None:
    """What was read stays, the problem is told, and the next try works."""
    with Served(made_once("alike", ledgers.make_alike, tmp_path)) as server:
        second, first = (run["id"] for run in server.items("runs", agent="crawler"))
        page = look(server, f"/compare?runs={first},{second}")
        page.page.route("**/v1/runs/diff", lambda route: route.abort())
        more = page.page.get_by_role("button", name="275 more differences, show", exact=True)
        more.click()
        page.page.locator("[data-problem]").wait_for()
        assert page.page.locator("[data-pair]").count() == 100
        page.page.unroute("**/v1/runs/diff")
        more.click()
        page.page.get_by_role("button", name="175 more differences, show", exact=True).wait_for()
        assert page.page.locator("[data-problem]").count() == 0
        page.check()


def test_the_app_is_served_as_it_was_built(demo: Served, tmp_path: Path) -> None:
    """The server sends what lies in the folder of the package, and no source of it."""
    copy = tmp_path / "static"
    if not STATIC.exists():
        leave_out("the inspector is not built; run `python3 dev.py ui`")
    shutil.copytree(STATIC, copy)
    assert not list(copy.rglob("*.svelte"))
    assert not list(copy.rglob("*.ts"))

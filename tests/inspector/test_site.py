"""The site: which addresses are pages, what is sent with them, and an install that has none."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.server import Server

from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.inspector import site
from woodrat.inspector.site import InspectorSite
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import Open

SCRIPT = b"console.log('built');" * 100
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def served(folder: Path) -> Server:
    """Return a server whose site is what a folder holds."""
    pages = InspectorSite(folder)
    keys = Open("default", "web")
    app = App(InMemoryEngine(), keys, clock=SystemClock(), policies=registry(()), endpoints=endpoints(), site=pages)
    return Server(app)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    (folder / "index.html").write_bytes(b"<!doctype html><title>App</title>")
    (folder / "assets" / "app-1a2b.js").write_bytes(SCRIPT)
    (folder / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (folder / "assets" / "app-1a2b.js.br").write_bytes(b"packed otherwise")
    (folder / "assets" / "secret.env").write_bytes(b"not for the web")
    with served(folder) as server:
        yield server


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/runs/run_x", "/entities/contact/Ana%20Rivera", "/entities/repo/org%2Fname", "/compare?a=1&b=2"),
        *("/decisions/run_x/0", "/stale", "/impact", "/sources/src_x", "/what-if", "/recall", "/log", "/schemas"),
        *("/conflicts", "/duplicates", "/admin", "/sign-in", "/runs/", "/entities/x/%3Cscript%3E"),
    ],
)
def test_pages_are_answered_with_the_app(built: Server, path: str) -> None:
    """Every address of a page can be opened by itself, whoever asks."""
    answer = built.call("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>App</title>" in answer.body
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/runs/run_nothing", "/nothing", "/assets/gone-1.js", "/mcpx"])
def test_calls_are_no_pages(built: Server, path: str) -> None:
    """What is not there is a problem document to a program; below /v1 and assets, to a browser too."""
    assert built.call("GET", path).status == 404
    shown = built.call("GET", path, headers=HTML)
    is_page = not path.startswith(("/v1/", "/assets/"))
    assert shown.status == (200 if is_page else 404)
    assert shown.headers["content-type"].startswith("text/html" if is_page else "application/problem+json")


def test_the_other_addresses_stay(built: Server) -> None:
    """REST, its documents, probes and endpoints answer as they do without a site."""
    for path, media in (
        *(("/v1/runs", "application/json"), ("/docs", "text/html"), ("/openapi.json", "application/json")),
        *(("/healthz", "application/json"), ("/readyz", "application/json"), ("/metrics", "text/plain")),
        ("/session", "application/json"),
    ):
        answer = built.call("GET", path, headers=HTML)
        assert answer.status == 200, path
        assert answer.headers["content-type"].startswith(media), path
        assert b"<title>App</title>" not in answer.body
    assert built.call("GET", "/mcp", headers=HTML).status != 200
    assert b"<title>App</title>" not in built.call("GET", "/neotoma/nothing", headers=HTML).body
    refused = built.call("POST", "/runs/x", b"{}")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


def test_a_page_can_do_nothing_but_call_its_server(built: Server) -> None:
    """Every file has the headers that keep recorded text from running, and other sites from framing the page."""
    for path in ("/", "/assets/app-1a2b.js"):
        headers = built.call("GET", path).headers
        policy = dict(part.partition(" ")[::2] for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
        assert policy["img-src"] == "'self' data:"
        assert policy["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"


def test_assets_are_kept_for_good_and_sent_packed(built: Server) -> None:
    """A file with a digest in its name is never asked for again, and comes in the best encoding a browser takes."""
    for accepted, encoding, body in (
        ("gzip, deflate, br, zstd", "br", b"packed otherwise"),
        ("gzip", "gzip", gzip.compress(SCRIPT)),
        ("br;q=0, gzip;q=0.5", "gzip", gzip.compress(SCRIPT)),
        ("identity", None, SCRIPT),
    ):
        answer = built.call("GET", "/assets/app-1a2b.js", headers={"Accept-Encoding": accepted})
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers.get("content-encoding") == encoding
        assert "accept-encoding" in answer.headers["vary"]
        if encoding == "gzip":
            assert gzip.decompress(answer.body) == SCRIPT
        else:
            assert answer.body == body


def test_a_page_that_did_not_change_is_not_sent_again(built: Server) -> None:
    """A tag that a browser has is answered with 304, for a file and for every page."""
    tag = built.call("GET", "/").headers["etag"]
    again = built.call("GET", "/runs/other", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    assert "content-security-policy" in again.headers
    assert built.call("HEAD", "/").headers["content-length"] == str(len(b"<!doctype html><title>App</title>"))


def test_only_what_the_web_knows_is_served(built: Server) -> None:
    """A file of another kind, a packed one by its own name, and a path that climbs out are not there."""
    for path in ("/assets/secret.env", "/assets/app-1a2b.js.gz", "/assets/../site.py", "/assets/%2e%2e/site.py"):
        assert built.call("GET", path).status == 404, path


def test_hosts_and_origins_are_checked(built: Server) -> None:
    """A page, too, is for callers who know the server by its name, and for no page of another site."""
    assert built.call("GET", "/", headers={"Host": "evil.example"}).status == 421
    assert built.call("GET", "/", headers={"Origin": "https://evil.example"}).status == 403
    framed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert built.call("GET", "/", headers=framed).status == 403
    assert built.call("GET", "/", headers={**framed, "Sec-Fetch-Dest": "document"}).status == 200


def test_an_install_without_the_app_says_how_to_build_it(tmp_path: Path) -> None:
    """Where the app was not built, its address answers one page that says what to do, and all else works."""
    with served(tmp_path) as server:
        answer = server.call("GET", "/", headers=HTML)
        assert answer.status == 200
        assert b"python3 dev.py ui" in answer.body
        assert b"<script" not in answer.body
        assert server.call("GET", "/runs/run_x", headers=HTML).body == answer.body
        assert server.call("GET", "/v1/runs").status == 200
        assert server.call("GET", "/nothing").status == 404


def test_pages_do_not_take_the_place_of_calls() -> None:
    """No first part of a page's address is one of an address that the server answers otherwise."""
    taken = {b"v1", b"mcp", b"neotoma", b"docs", b"openapi.json", b"healthz", b"readyz", b"metrics", b"session"}
    assert taken.isdisjoint(site.PAGES)

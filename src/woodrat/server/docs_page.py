"""The reference of the server: a self-contained page for people, and OpenAPI for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from html import escape
from typing import Final, NamedTuple

import orjson

from woodrat import __version__
from woodrat.server.requests import JSON
from woodrat.server.route import Param, Route
from woodrat.server.routes import ROUTES

HEADERS: Final = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
"""Headers that stop a page from running scripts."""

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 .3rem; font-size: 1.05rem; border-top: 1px solid var(--line); padding-top: 1rem; }
code, pre { font: .9em ui-monospace, monospace; }
pre { background: var(--soft); padding: .7rem; overflow-x: auto; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; }
th { font-weight: 600; } td:first-child { white-space: nowrap; }
.grant { float: right; opacity: .7; font-size: .85em; } nav { columns: 14rem; }
""".strip()


class ConstantAnswer(NamedTuple):
    """A constant answer."""

    body: bytes
    media: bytes
    status: int
    headers: Sequence[tuple[bytes, bytes]]


@cache
def openapi_document() -> ConstantAnswer:
    """Return the OpenAPI document as bytes."""
    from woodrat.server import openapi

    return _document(orjson.dumps(openapi.document(__version__)), JSON)


@cache
def reference_page() -> ConstantAnswer:
    """Return the HTML page as bytes."""
    return _document(reference(__version__), b"text/html; charset=utf-8", *HEADERS)


def _document(body: bytes, media: bytes, *headers: tuple[bytes, bytes]) -> ConstantAnswer:
    tag = b'"%b"' % blake2b(body, digest_size=8).hexdigest().encode()
    return ConstantAnswer(body, media, 200, (*headers, (b"etag", tag)))


def reference(version: str) -> bytes:
    """Return the page."""
    return "".join(_page(version)).encode()


def _page(version: str) -> Iterator[str]:
    yield "<!doctype html><html lang=en><meta charset=utf-8>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<title>Woodrat {escape(version)}: REST</title><style>{_STYLE}</style>"
    yield f"<h1>Woodrat {escape(version)}</h1>"
    yield "<p>The ledger over HTTP. <a href='/openapi.json'>OpenAPI document</a>. A key goes into "
    yield "<code>Authorization: Bearer wrat_…</code>; errors are problem documents (RFC 9457) with a stable "
    yield "<code>code</code>. Reads take <code>as_of</code> and <code>valid_at</code>; lists page by "
    yield "<code>cursor</code>; writes take <code>Idempotency-Key</code>, so that sending one again is safe.</p><nav>"
    for route in ROUTES:
        yield f"<a href='#{route.verb}'>{escape(route.verb)}</a><br>"
    yield "</nav>"
    for route in ROUTES:
        yield from _route(route)


def _route(route: Route) -> Iterator[str]:
    yield f"<h2 id='{route.verb}'><span class=grant>needs {route.grant}</span>"
    yield f"<code>{route.method} {escape(route.path)}</code></h2><p>{escape(route.what)}</p>"
    if route.takes:
        yield "<table>"
        for param in route.takes:
            yield _row(param)
        yield "</table>"
    if route.example is not None:
        shown = orjson.dumps(route.example, option=orjson.OPT_INDENT_2).decode()
        yield f"<pre>{escape(shown)}</pre>"


def _row(param: Param) -> str:
    kind = param.schema.get("type", "any")
    kind = kind if isinstance(kind, str) else " or ".join(kind)
    need = ", required" if param.required else ""
    name = f"<code>{escape(param.spelled)}</code>"
    return f"<tr><td>{name}<td>{escape(kind)}, {param.inside}{need}<td>{escape(param.what)}"

"""Site: the built files of the inspector, as a server sends them.

`static/` is made by `python3 dev.py ui`, or with the wheel. All of it is read once and held: it is about a megabyte. A
file under `assets/` has a digest in its name, so browsers cache it for good; they revalidate every other file. The app
routes by itself, so the address of every page gets the same `index.html`.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.errors import NotFound, shown
from woodrat.server.problems import NOTHING_DONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.server.requests import Exchange

STATIC: Final = Path(__file__).resolve().parent / "static"
"""Where the built app lies."""
INDEX: Final = "index.html"
PAGES: Final = frozenset(
    (
        *(b"", b"runs", b"compare", b"decisions", b"entities", b"impact", b"stale", b"sources"),
        *(b"what-if", b"recall", b"log", b"schemas", b"conflicts", b"duplicates", b"admin", b"sign-in"),
    )
)
"""First parts of the addresses of pages. Another address is a page to a browser, which the app says it does not have,
and an error to a program."""
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "manifest-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
)
"""Content security policy: recorded text is never executable."""
PAGE_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
"""Headers of every file."""
FOR_GOOD: Final = (b"cache-control", b"public, max-age=31536000, immutable")
ASK_AGAIN: Final = (b"cache-control", b"no-cache")
MEDIA: Final[Mapping[str, bytes]] = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".ico": b"image/x-icon",
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".map": b"application/json",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
    ".webmanifest": b"application/manifest+json",
    ".woff2": b"font/woff2",
}
"""Media types by suffix; a file with another suffix is not served."""
PACKED: Final = {".br": b"br", ".gz": b"gzip"}
"""Suffixes of compressed files, with the names of their encodings; the best first."""
NOT_BUILT: Final = b"""<!doctype html><html lang=en><meta charset=utf-8>
<meta name=viewport content='width=device-width, initial-scale=1'><title>Woodrat</title>
<h1>The inspector is not built in this install</h1>
<p>The server works, and its web pages are missing: this is a checkout, or a package built without them.</p>
<p>In a checkout run <code>python3 dev.py ui</code> once, which needs a network and no Node, then start the server
again. A wheel made with <code>pip wheel .</code> has the pages in it.</p>
<p>The REST reference is at <a href='/docs'>/docs</a>.</p>
"""


class File(NamedTuple):
    """One file as sent."""

    body: bytes
    media: bytes
    cached: tuple[bytes, bytes]
    """Its cache header."""
    tag: bytes
    """Its entity tag, which is the same in every encoding, and so a weak one."""
    packed: Sequence[tuple[bytes, bytes]] = ()
    """The name of an encoding and the bytes in it, the best first."""


class InspectorSite:
    """The pages of the inspector (`gateway.Site`)."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._files = files_of(folder)
        self._index = self._files.get(INDEX.encode()) or File(NOT_BUILT, MEDIA[".html"], ASK_AGAIN, tag(NOT_BUILT))

    @property
    def is_built(self) -> bool:
        """Whether this install has the app."""
        return INDEX.encode() in self._files

    async def answer(self, exchange: Exchange) -> None:
        """Send a file, or the app's page, which does its own routing."""
        path = exchange.path
        file = self._files.get(path[1:])
        if file is None:
            first = path.split(b"/")[1]
            if first not in PAGES and (b"text/html" not in exchange.headers.get(b"accept", b"") or first == b"assets"):
                text = f"{shown(path.decode('latin-1'))}: unknown address."
                raise NotFound(f"{text} {NOTHING_DONE} See /openapi.json.")
            file = self._index
        headers = (*PAGE_HEADERS, (b"etag", file.tag))
        await exchange.send(file.body, file.media, 200, headers, cached=file.cached, packed=file.packed)


def tag(body: bytes) -> bytes:
    """Return the entity tag of a file."""
    return b'W/"%b"' % blake2b(body, digest_size=8).hexdigest().encode()


def files_of(folder: Path) -> dict[bytes, File]:
    """Return all files below a folder by their address in it."""
    found: dict[bytes, File] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in MEDIA and path.is_file():
            name = path.relative_to(folder).as_posix()
            packed = [
                (encoding, other.read_bytes())
                for suffix, encoding in PACKED.items()
                if (other := path.with_name(path.name + suffix)).is_file()
            ]
            cached = FOR_GOOD if name.startswith("assets/") else ASK_AGAIN
            body = path.read_bytes()
            found[name.encode()] = File(body, MEDIA[path.suffix], cached, tag(body), tuple(packed))
    return found

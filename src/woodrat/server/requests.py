"""Exchange: one request and its response, with limits against hostile clients.

Sizes, depths and times are limited before anything is parsed. Errors become problem documents, and the ledger never
sees such a request.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import aclosing
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast
from urllib.parse import unquote_to_bytes

import orjson

from woodrat.errors import WoodratError, shown
from woodrat.server import wire
from woodrat.server.body import BodyLimits, GzipReader, HeldBytes, TakenBody, too_large
from woodrat.server.problems import NOTHING_DONE, Rejected

if TYPE_CHECKING:
    from woodrat.server.sessions import Presented

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON: Final = b"application/json"
LINES: Final = b"application/x-ndjson"
PROBLEM: Final = b"application/problem+json"
EVENTS: Final = b"text/event-stream"
GZIP_FROM_BYTES: Final = 1_024
"""Number of bytes from which an answer is compressed, if the client accepts it."""
LONG_BYTES: Final = 262_144
"""Size from which a body is compressed in a thread, so that other requests proceed."""
PIECE_BYTES: Final = 65_536
"""Size of the pieces of a long answer; the HTTP server buffers some of them for a slow reader."""
LONG_ANSWER_BYTES: Final = 1_048_576
"""Number of bytes from which an answer is sent in pieces."""
LONG_BODY_BYTES: Final = 65_536
"""Number of bytes from which a body counts against the memory that all bodies share."""
SPOOLED_BYTES: Final = 8 * 1_048_576
"""Part of a long body that stays in memory before it is spooled to a file."""
PAGE_HEADERS: Final = (
    *("accept", "authorization", "content-encoding", "content-type", "idempotency-key", "if-match", "if-none-match"),
    *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
)
"""Headers that a page of an allowed origin may send."""
COOKIE: Final = "woodrat_session"
"""Name of the session cookie, before the port of the server."""
QUERY_BYTES_MAX: Final = 16_384
"""Longest query of an address."""
NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
"""Header that stops browsers from guessing a media type: stored text may look like HTML."""
NO_STORE: Final = (b"cache-control", b"no-store")
"""Header against caches. A program that keeps an answer itself can revalidate it by its tag."""
VARY: Final = (b"vary", b"accept, accept-encoding")
"""Request headers that the answer at one address depends on."""
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""A request id that is safe in a log line and in an address."""
_ODD: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_ODD_IN_QUERY: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters, which paths and query arguments must not contain."""
_TAG: Final = re.compile(r'\s*(?:W/)?"([^"\x00-\x20]*)"\s*|\s*([0-9]+|\*)\s*')
"""An entity tag, weak or strong; a bare version; or a star."""


class Exchange:
    """One request, and the way to answer it."""

    __slots__ = (
        "_extra",
        "_held_bytes",
        "_proxied",
        "_receive",
        "_scope",
        "_send",
        "_streams",
        "_take_seconds",
        "_vary",
        "_wait_seconds",
        "cookie",
        "headers",
        "held",
        "hosts",
        "id",
        "method",
        "path",
        "session",
        "started",
        "status",
        "taken",
        "told",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        id: str,
        held_bytes: HeldBytes | None,
        wait_seconds: float,
        take_seconds: float,
    ) -> None:
        self.id = id
        self.method: str = scope["method"]
        self._scope, self._receive, self._send = scope, receive, send
        self._wait_seconds, self._take_seconds = wait_seconds, take_seconds
        self._held_bytes = held_bytes
        self.held = self.taken = 0
        """Bytes of the body that count against the shared memory, and bytes received."""
        self.headers: dict[bytes, bytes] = {}
        """The headers by name, as bytes."""
        self.hosts = 0
        for name, value in scope["headers"]:
            self.hosts += name == b"host"
            # of repeated headers the first counts, as in any list
            self.headers.setdefault(name, value)
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        self.path = raw.partition(b"?")[0]
        self.started = False
        self._streams = b""
        self.status = 0
        self.told: dict[str, Any] = {}
        """Further ids for its line in the log."""
        self._extra: tuple[tuple[bytes, bytes], ...] = ()
        self._vary = VARY
        self._proxied = False
        self.cookie: str | None = None
        """The cookie of a session, if it came with one."""
        self.session: Presented | None = None
        """Its session, once that was found valid."""

    def allow(self, origin: str) -> None:
        """Let a page of this origin read the answer."""
        self._extra += (
            (b"access-control-allow-origin", origin.encode()),
            (b"access-control-expose-headers", b"etag, retry-after, x-request-id"),
        )
        self._vary = (b"vary", VARY[1] + b", origin")

    def trust_proxy(self) -> None:
        """Accept the headers of a trusted proxy: request id, scheme and client address."""
        self._proxied = True
        self.go_by(self.header(b"x-request-id"))

    def read_cookie(self) -> None:
        """Read the session cookie."""
        if (sent := self.headers.get(b"cookie")) is not None:
            name = self._cookie_name()
            pairs = (pair.strip().partition("=") for pair in sent.decode("latin-1").split(";"))
            self.cookie = next((value for found, _, value in pairs if found == name), None)

    def _cookie_name(self) -> str:
        """Return the name of the session cookie at the requested address.

        Browsers send the same cookies to every port of a host. So the port is part of the name, and two servers on one
        machine keep their sessions apart.
        """
        _, colon, port = self.headers.get(b"host", b"").decode("latin-1").rpartition(":")
        at = f"_{port}" if colon and port.isascii() and port.isdigit() else ""
        # A name that begins like this is taken only from the host itself, over TLS, for all its paths.
        return f"{'__Host-' if self.is_secure else ''}{COOKIE}{at}"

    @property
    def is_secure(self) -> bool:
        """True if it came over TLS, at least up to a trusted proxy."""
        stated = self.headers.get(b"x-forwarded-proto") if self._proxied else None
        return stated == b"https" if stated is not None else self._scope.get("scheme") == "https"

    @property
    def address(self) -> str:
        """The client's address; empty if unknown."""
        stated = self.headers.get(b"x-forwarded-for", b"") if self._proxied else b""
        if stated:  # the proxy in front adds the last address; its client may have sent the others
            return stated.decode("latin-1").rpartition(",")[2].strip()
        client = self._scope.get("client")
        return str(client[0]) if client else ""

    def set_cookie(self, value: str, seconds: int) -> None:
        """Set the session cookie with a lifetime; 0 deletes it."""
        secure = "; Secure" if self.is_secure else ""
        text = f"{self._cookie_name()}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        self._extra += ((b"set-cookie", text.encode("ascii")),)

    def go_by(self, id: str | None) -> None:
        """Accept the request id of a trusted proxy, if it is valid; logs and answers show it."""
        if id is not None and _ID.fullmatch(id):
            self.id = id

    async def allow_further(self) -> None:
        """Answer a CORS preflight request."""
        told = (
            (b"access-control-allow-methods", b"GET, HEAD, POST"),
            (b"access-control-allow-headers", ", ".join(PAGE_HEADERS).encode()),
            (b"access-control-max-age", b"600"),
        )
        await self.send(b"", JSON, 200, told)

    @property
    def asks_further(self) -> bool:
        """True for a CORS preflight request."""
        return self.method == "OPTIONS" and b"access-control-request-method" in self.headers

    @property
    def may_be_long(self) -> bool:
        """True if the body may be long: it is compressed, or its stated length is large or missing."""
        stated = self.headers.get(b"content-length", b"")
        short = stated.isdigit() and int(stated) <= LONG_BODY_BYTES
        return not short or b"content-encoding" in self.headers

    def header(self, name: bytes) -> str | None:
        """Return a header as text, or None; a header that is not UTF-8 is refused."""
        found = self.headers.get(name)
        if found is None:
            return None
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            raise Rejected(400, f"{name.decode()}: the header is not UTF-8. {NOTHING_DONE} Send it as UTF-8.") from None

    async def body(self, limits: BodyLimits, *, lines: bool = False) -> bytes:
        """Return the whole body, unpacked; too many bytes, too many values or too slow a client are refused.

        It is counted while it arrives: a body that is too large is never held in memory.
        """
        packed = (self.headers.get(b"content-encoding") or b"identity").strip().lower()
        if packed not in (b"identity", b"gzip"):
            raise Rejected(
                415, f"content-encoding: got {shown(packed.decode('latin-1'))}. {NOTHING_DONE} Send gzip or none."
            )
        stated = self.headers.get(b"content-length", b"")
        if stated.isdigit() and int(stated) > limits.bytes_max:
            raise too_large(limits.bytes_max, int(stated))
        taken, unpacker = TakenBody(limits, lines=lines), GzipReader() if packed == b"gzip" else None
        try:
            async with asyncio.timeout(self._wait_seconds):
                async for part in self._parts():
                    for step in (part,) if unpacker is None else unpacker.take(part):
                        taken.add(step)
                        self._hold(taken.size)
                        if unpacker is not None:  # a small part may decompress to a large one, and other requests wait
                            await asyncio.sleep(0)
        except TimeoutError:
            raise self._too_slow() from None
        except zlib.error as error:
            raise Rejected(
                400, f"The body is not gzip ({error}). {NOTHING_DONE} Send it as it was compressed."
            ) from None
        if unpacker is not None and not unpacker.whole:
            raise Rejected(400, f"The body ends in the middle of its gzip. {NOTHING_DONE} Send all of it.")
        return b"".join(taken.parts)

    def _hold(self, size: int) -> None:
        """Reserve the memory of a long body until the request is answered."""
        self.taken = size
        if size > LONG_BODY_BYTES and self._held_bytes is not None:
            self._held_bytes.take(size - self.held)
            self.held = size

    def let_go(self) -> None:
        """Release the memory of the body."""
        if self.held and self._held_bytes is not None:
            self._held_bytes.give_back(self.held)
            self.held = 0

    async def spooled(self, bytes_max: int) -> BinaryIO:
        """Return a long body as an open file; too many bytes or too slow a client are refused."""
        if (self.headers.get(b"content-encoding") or b"identity").strip().lower() != b"identity":
            raise Rejected(
                415, f"content-encoding: long bodies must be uncompressed. {NOTHING_DONE} Send it without compression."
            )
        file = cast("BinaryIO", SpooledTemporaryFile(SPOOLED_BYTES))  # noqa: SIM115
        try:
            parts, size = self._parts(), 0
            while True:
                async with asyncio.timeout(self._wait_seconds):
                    part = await anext(parts, None)
                if part is None:
                    break
                size += len(part)
                if size > bytes_max:
                    raise too_large(bytes_max)
                file.write(part)
            file.seek(0)
        except TimeoutError:
            file.close()
            raise self._too_slow() from None
        except BaseException:
            file.close()
            raise
        return file

    async def hand_over(
        self,
        body: bytes,
        answering: Callable[[Scope, Receive, Send], Awaitable[None]],
        headers: Mapping[bytes, bytes],
        **said: Any,
    ) -> None:
        """Delegate to another application, with the body read here and `said` in its scope.

        `headers` replace the request's headers of the same names.
        """
        sent = iter([{"type": "http.request", "body": body, "more_body": False}])
        kept = [item for item in self._scope["headers"] if item[0] != b"content-encoding" and item[0] not in headers]
        scope = {**self._scope, "headers": [*kept, *headers.items()]}

        async def receive() -> MutableMapping[str, Any]:
            return next(sent, None) or await self._receive()

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                theirs = [item for item in message.get("headers", ()) if item[0].lower() != NO_STORE[0]]
                await self._begin(message["status"], (*theirs, NO_STORE))
            else:
                await self._send(message)

        await answering({**scope, **said}, receive, send)

    async def _parts(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                # A client with broken chunks still listens for the answer; a client that has gone does not.
                text = f"The body ended early, or is not valid HTTP. {NOTHING_DONE} Send the whole request again."
                raise Rejected(400, text, ((b"connection", b"close"),))
            yield message.get("body", b"")
            if not message.get("more_body"):
                return

    def _too_slow(self) -> Rejected:
        text = f"The body did not arrive within {self._wait_seconds:g} seconds. {NOTHING_DONE} Send it again."
        return Rejected(408, text, ((b"connection", b"close"),))

    @property
    def query_string(self) -> bytes:
        """The query string."""
        found: bytes = self._scope.get("query_string", b"")
        return found

    def content_type(self) -> bytes:
        """Return the media type of the body, without its parameters."""
        return (self.headers.get(b"content-type") or b"").partition(b";")[0].strip().lower()

    def accepts(self, media: bytes) -> bool:
        """Return True if the client names this media type and prefers it to plain JSON."""
        if media not in (stated := (self.headers.get(b"accept") or b"").lower()):
            return False
        wanted = _weights(stated)
        return 0 < wanted.get(media, 0) >= wanted.get(JSON, 0)

    def _takes(self, encoding: bytes) -> bool:
        stated = (self.headers.get(b"accept-encoding") or b"").lower()
        return encoding in stated and _weights(stated).get(encoding, 0) > 0

    async def answer(self, value: Any, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Answer with JSON."""
        await self.send(orjson.dumps(value), JSON, status, headers)

    async def problem(self, error: WoodratError) -> None:
        """Answer with an error; in a stream of events, it is the last event."""
        rejected = isinstance(error, Rejected)
        status = error.status if isinstance(error, Rejected) else wire.http_status(error)
        body = orjson.dumps(wire.problem(error, status, self.id))
        if self._streams == EVENTS:
            await self._send({"type": "http.response.body", "body": event(b"problem", body)})
            return
        await self.send(body, PROBLEM, status, error.headers if rejected else ())  # type: ignore[attr-defined]

    async def send(
        self,
        body: bytes,
        media: bytes,
        status: int = 200,
        headers: Sequence[tuple[bytes, bytes]] = (),
        *,
        cached: tuple[bytes, bytes] = NO_STORE,
        packed: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Answer with bytes; `cached` is the cache header.

        `packed` has the same content in encodings, the best first; without it, a long answer is compressed here.
        """
        if b"if-none-match" in self.headers and status == 200 and self._has(headers):
            await self._unchanged((*headers, cached))
            return
        sent = [(b"content-type", media), cached, *headers]
        if (ready := next((pair for pair in packed if self._takes(pair[0])), None)) is not None:
            sent.append((b"content-encoding", ready[0]))
            body = ready[1]
        elif len(body) >= GZIP_FROM_BYTES and self._takes(b"gzip"):
            body = gzip.compress(body, 1, mtime=0) if len(body) < LONG_BYTES else await asyncio.to_thread(_packed, body)
            sent.append((b"content-encoding", b"gzip"))
        await self._begin(status, (*sent, (b"content-length", str(len(body)).encode())))
        if self.method == "HEAD":
            body = b""
        if len(body) >= LONG_ANSWER_BYTES:
            await self._hand_over_pieces(body)
            body = b""
        await self._send({"type": "http.response.body", "body": body})

    async def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Send status and headers, including the headers that every answer has."""
        self.started, self.status = True, status
        every = ((b"x-request-id", self.id.encode()), NOSNIFF, *self._extra, self._vary)
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *every]})

    async def while_here(self, doing: Awaitable[T]) -> T:
        """Return the result of an awaitable; raise `Gone` at once if the client disconnects.

        The body must have been read before, or never be read.
        """
        work, gone = asyncio.ensure_future(doing), asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Gone
            return work.result()
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _gone(self) -> None:
        """Wait until the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _hand_over_pieces(self, body: bytes) -> None:
        """Send a part of a body at the client's pace; a client that reads nothing for long counts as gone."""
        for start in range(0, len(body), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            try:
                async with asyncio.timeout(self._take_seconds):
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            except TimeoutError:
                raise Gone from None

    def _has(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        """Return True if the client has this answer already: its condition names the tag or is a star."""
        tag = next((value for name, value in headers if name == b"etag"), None)
        if tag is None or self.method not in ("GET", "HEAD"):
            return False
        named = tags(self.header(b"if-none-match") or "")
        return named is not None and ("*" in named or tag.decode().removeprefix("W/").strip('"') in named)

    async def _unchanged(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Answer 304: the client's copy is still valid."""
        await self._begin(304, headers)
        await self._send({"type": "http.response.body", "body": b""})

    async def stream(self, media: bytes, parts: AsyncGenerator[bytes, None]) -> None:
        """Stream parts to a connected client."""
        self._streams = media
        await self._begin(200, ((b"content-type", media), NO_STORE))
        if self.method != "HEAD":
            await self.while_here(self._hand_over_parts(parts))
        await self._send({"type": "http.response.body", "body": b""})

    async def _hand_over_parts(self, parts: AsyncGenerator[bytes, None]) -> None:
        async with aclosing(parts):
            async for part in parts:
                await self._hand_over_pieces(part)


class Gone(Exception):
    """The client has disconnected."""


def event(name: bytes, data: bytes) -> bytes:
    """Return one server-sent event with its data on one line."""
    return b"event: %b\ndata: %b\n\n" % (name, data)


def _weights(stated: bytes) -> dict[bytes, float]:
    """Return the weights of a header's list, 0 to 1; an invalid weight counts as 0."""
    found: dict[bytes, float] = {}
    for item in stated.split(b","):
        name, *parameters = (part.strip() for part in item.split(b";"))
        given = next((part[2:] for part in parameters if part.startswith(b"q=")), b"1")
        try:
            found[name] = float(given)
        except ValueError:
            found[name] = 0.0
    return found


def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 1, mtime=0)


def tags(text: str) -> list[str] | None:
    """Return the entity tags of a condition, without quotes, or its star; None if it is invalid."""
    found = [_TAG.fullmatch(part) for part in text.split(",")]
    if any(part is None for part in found):
        return None
    named = [part[1] if part[1] is not None else part[2] for part in found if part is not None]
    return None if "*" in named and len(named) > 1 else named


def query(text: bytes) -> dict[str, list[str]]:
    """Return the query arguments, each with all its values."""
    if len(text) > QUERY_BYTES_MAX:
        raise Rejected(
            414, f"The query has {len(text)} bytes, and {QUERY_BYTES_MAX} is the limit. {NOTHING_DONE} Send less."
        )
    found: dict[str, list[str]] = {}
    for part in text.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            found.setdefault(plain(name, plus=True), []).append(plain(value, plus=True))
    return found


def plain(part: bytes, *, plus: bool = False) -> str:
    """Return a percent-decoded part of an address; it must be UTF-8 without control characters."""
    try:
        found = unquote_to_bytes(part.replace(b"+", b" ") if plus else part).decode("utf-8")
    except UnicodeDecodeError:
        raise Rejected(
            400, f"{shown(part.decode('latin-1'))} in the address is not UTF-8. {NOTHING_DONE} Encode it as UTF-8."
        ) from None
    # line feeds and tabs may be part of a question in the query string
    if (odd := (_ODD_IN_QUERY if plus else _ODD).search(found)) is not None:
        text = f"{shown(found)} in the address holds the control character U+{ord(odd[0]):04X}. {NOTHING_DONE} "
        raise Rejected(400, text + "Leave it out: no name has one.")
    return found

"""Connection: HTTP/1.1 over one connection, as an ASGI application sees it, on the loop that the application runs on.

A request is begun when its head is there, and answered before the next one is read. Nothing waits for a caller: what is
slow, or sends more than is taken, is not read from meanwhile. When a caller goes, the work for them is cancelled.

There is no thread between the network and the application: handing a request from one to the other would cost more than
all that the server does with it (docs/decisions/0068).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, cast

import orjson

from woodrat.engines.cancellation import RightOfWay
from woodrat.server import logs, request_head, wire
from woodrat.server.body_framing import BrokenBody, Framing, SizedBody, framing
from woodrat.server.problems import Rejected
from woodrat.server.request_head import HEAD_BYTES_MAX, Head

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Application = Callable[[Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

HEADER_SECONDS: Final = 10.0
"""How long a connection may take until the head of its next request has arrived."""
TAKE_SECONDS: Final = 60.0
"""How long what was answered may wait for a caller who takes nothing of it."""
LINGER_SECONDS: Final = 2.0
"""How long is listened to a caller who was answered before they had sent everything, so that they see the answer."""
UNREAD_BYTES_MAX: Final = 262_144
"""How much of a body, or of further requests, is held before nothing more is read."""
UNSENT_BYTES_MAX: Final = 262_144
"""How much of an answer is held before an application waits."""
WHOLE_BODY: Final = "woodrat.body"
"""Where a scope has the body of a request, if all of it was there when the request began."""

_STATUS_LINES: Final = {
    (version, status.value): f"HTTP/{version} {status.value} {status.phrase}\r\n".encode()
    for version in ("1.0", "1.1")
    for status in HTTPStatus
}
_BARE: Final = frozenset({204, 304})
"""Statuses of answers without a body, of which nothing says how long it is."""


class Listener:
    """What the connections of one server share."""

    def __init__(self, app: Application, server: tuple[str, int], scheme: str, way: RightOfWay | None = None) -> None:
        """`way` is taken while what arrived is being looked at."""
        self.app, self._way = app, way
        self.loop = asyncio.get_running_loop()
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "scheme": scheme,
            "server": server,
            "root_path": "",
        }
        """What is the same in the scope of every request."""
        self.connections: set[Connection] = set()
        """Those that are open."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Requests being answered."""
        self.ending = False
        """Whether connections are closed once their request was answered."""
        self.date = b""
        self.tick()

    def arrived(self) -> None:
        """Let what arrived go before long work, until the loop has begun with it."""
        if self._way is not None and not self._way.taken:
            self._way.take()
            self.loop.call_soon(self.loop.call_soon, self._way.give)

    def tick(self) -> None:
        """Let go of connections that keep the server waiting; about once a second."""
        from email.utils import formatdate

        self.date = f"date: {formatdate(usegmt=True)}\r\n".encode()
        now = self.loop.time()
        for connection in tuple(self.connections):
            connection.check(now)

    def end(self) -> None:
        """Close connections that wait for a request now, and the others when they were answered."""
        self.ending = True
        for connection in tuple(self.connections):
            connection.end()

    def abort(self) -> None:
        """Close every connection at once, whatever it is at."""
        for connection in tuple(self.connections):
            connection.abort()


class Connection(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_answered",
        "_buffer",
        "_chunked",
        "_client",
        "_closes",
        "_drained",
        "_ended",
        "_framing",
        "_head",
        "_last",
        "_last_data",
        "_last_head",
        "_lingers",
        "_listener",
        "_parts",
        "_paused",
        "_searched",
        "_since",
        "_size",
        "_start",
        "_started",
        "_task",
        "_told",
        "_transport",
        "_waiter",
        "broken",
    )

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._buffer = bytearray()
        """What arrived and belongs to no request yet."""
        self._searched = 0
        self._last_data, self._last_head = b"", cast("Head", None)
        """The head before: most callers send the same one again and again."""
        self._task: asyncio.Task[None] | None = None
        self._head: Head | None = None
        self._framing: Framing = SizedBody(0)
        self._parts: list[bytes] = []
        self._size = 0
        self._told = self._started = self._answered = self._chunked = self._closes = self._lingers = False
        self._start: Message | None = None
        self._last = b""
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._paused = False
        self.broken = self._ended = False
        """Whether the body of the request ended early, or is none."""
        self._since: float | None = None
        """Since when the caller is waited for, if nothing is being answered."""

    # ------------------------------------------------------------------------------------------ what the network says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(UNSENT_BYTES_MAX)
        self._client = transport.get_extra_info("peername")
        self._since = self._listener.loop.time()
        self._listener.connections.add(self)
        if self._listener.ending:
            self.end()

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.connections.discard(self)
        self.broken = True
        self._wake()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
        if self._head is not None and not self._framing.done:
            self._take_body(data)
            return
        self._buffer += data
        if self._head is None and self._drained is None:
            self._listener.arrived()
            self._begin()
        elif len(self._buffer) > HEAD_BYTES_MAX:
            self._pause()

    def eof_received(self) -> bool:
        if self._head is None or self._framing.done or self._lingers:
            return False  # nobody waits for an answer any more
        self.broken = self._closes = self._ended = True
        self._wake()
        return True

    def pause_writing(self) -> None:
        self._drained = self._listener.loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        if self._head is None and not self._lingers:
            self._go_on()

    # --------------------------------------------------------------------------------------------------- one request

    def _go_on(self) -> None:
        """Read on; whoever takes no answers is not asked for further requests."""
        if self._drained is None and not self._transport.is_closing():
            self._resume()
            if self._buffer:
                self._begin()

    def _begin(self) -> None:
        """Begin the next request, if its head is there."""
        buffer = self._buffer
        while buffer.startswith(b"\r\n"):  # some clients end a body with a line of its own
            del buffer[:2]
        end = buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
        try:
            if end < 0:
                self._searched = len(buffer)
                if b"\n" in buffer and b"\r\n" not in buffer:
                    raise Rejected(400, "A line of the request has no proper end. Nothing was done. Send HTTP/1.1.")
                if len(buffer) > HEAD_BYTES_MAX:
                    raise request_head.too_long(f"The head of the request is longer than {HEAD_BYTES_MAX} bytes.")
                return
            data, rest = bytes(buffer[:end]), bytes(buffer[end + 4 :])
            buffer.clear()
            self._searched = 0
            if len(data) > HEAD_BYTES_MAX:
                raise request_head.too_long(f"The head of the request is longer than {HEAD_BYTES_MAX} bytes.")
            head = self._last_head if data == self._last_data else request_head.parse(data)
        except Rejected as rejected:
            self._refuse(rejected)
            return
        self._last_data, self._last_head, self._head = data, head, head
        self._told = self._started = self._answered = self._chunked = self.broken = False
        self._start, self._since = None, None
        self._closes = not head.keeps
        self._framing = SizedBody(0) if head.length == 0 else framing(head.length)
        self._size = 0
        self._parts.clear()
        if self._framing.done:
            buffer += rest
        elif rest:
            self._take_body(rest)
        listener = self._listener
        scope = {
            **listener.scope,
            "http_version": head.version,
            "method": head.method,
            "path": head.path.decode("latin-1"),
            "raw_path": head.path,
            "query_string": head.query,
            "headers": head.headers,
            "client": self._client,
        }
        if self._framing.done:
            scope[WHOLE_BODY] = self._whole()
        self._task = task = listener.loop.create_task(self._run(scope))
        listener.tasks.add(task)

    async def _run(self, scope: Scope) -> None:
        try:
            await self._listener.app(scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._transport.abort()
        except Exception as error:
            logs.failed(error)
        finally:
            task, self._task = self._task, None
            self._listener.tasks.discard(cast("asyncio.Task[None]", task))
            self._finish()

    def _finish(self) -> None:
        """Go on to the next request, or close: what was answered in part is not to look whole."""
        if self._transport.is_closing():
            return
        if not self._answered:
            self._transport.abort()
            return
        self._transport.write(self._last)
        self._last = b""
        whole = self._framing.done and not self.broken
        if not whole and not self._ended:
            self._linger()
        elif self._closes or self._listener.ending:
            self._transport.close()
        else:
            self._head = None
            self._since = self._listener.loop.time()
            self._go_on()

    def _take_body(self, data: bytes) -> None:
        try:
            parts, rest = self._framing.take(data)
        except BrokenBody:
            self.broken, self._closes = True, True
            self._pause()
        else:
            for part in parts:
                self._parts.append(part)
                self._size += len(part)
            if rest:
                self._buffer += rest
            if self._size > UNREAD_BYTES_MAX and not self._framing.done:
                self._pause()
        self._wake()

    def _whole(self) -> bytes:
        """Return what arrived of the body and was not read."""
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._size = 0
        return body

    # ---------------------------------------------------------------------------------------- what an application does

    async def receive(self) -> Message:
        """Return the next part of the body; once there are no more, wait until the caller is gone."""
        while True:
            if not self._told and (self._parts or self._framing.done):
                done = self._told = self._framing.done
                body = self._whole()
                if not done:
                    self._resume()
                return {"type": "http.request", "body": body, "more_body": not done}
            if self.broken:
                return {"type": "http.disconnect"}
            if self._head is not None and self._head.expects and not self._started and not self._told:
                self._head = self._head._replace(expects=False)
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._waiter = self._listener.loop.create_future()
            await self._waiter

    async def send(self, message: Message) -> None:
        """Send a part of the answer; wait while the caller takes nothing of what was sent before."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._answered or self._transport.is_closing():
            return
        bare = self._head is not None and self._head.method == "HEAD"
        written = []
        if not self._started:
            assert self._start is not None, "an answer begins with its status"
            written.append(self._head_of(self._start, whole=not more, size=len(body)))
            self._started = True
            bare = bare or self._start["status"] in _BARE
        if self._chunked and not bare:
            written += ([b"%x\r\n" % len(body), body, b"\r\n"] if body else []) + ([] if more else [b"0\r\n\r\n"])
        elif body and not bare:
            written.append(body)
        if not more:
            # It goes out when the application is done with the request: what it counts is counted by then.
            self._answered, self._last = True, b"".join(written)
            return
        self._transport.write(b"".join(written))
        if self._drained is not None:
            await self._drained

    def _head_of(self, start: Message, *, whole: bool, size: int) -> bytes:
        """Return the head of an answer; how long it is, is said, or it comes in chunks."""
        assert self._head is not None, "there is a request to answer"
        version, status = self._head.version, start["status"]
        lines = [_STATUS_LINES[version, status]]
        sized = False
        for name, value in start["headers"]:
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                sized = True
            elif name == b"connection":
                self._closes = self._closes or value == b"close"
        stated = len(lines)
        if not sized and status not in _BARE:
            if whole:
                lines.append(b"content-length: %d\r\n" % size)
            elif version == "1.1":
                self._chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self._closes = True
        closes = self._closes or self._listener.ending or self.broken or not self._framing.done
        if closes and not any(name == b"connection" for name, _ in start["headers"]):
            lines.append(b"connection: close\r\n")
        self._closes = closes
        head = b"".join((*lines, self._listener.date, b"\r\n"))
        assert head.count(b"\n") == len(lines) + 2 and stated, "no header holds the end of a line"
        return head

    # --------------------------------------------------------------------------------------------------- how it ends

    def check(self, now: float) -> None:
        """Close the connection if the caller lets it wait for too long."""
        if self._since is None:
            return
        waited = now - self._since
        if self._lingers:
            if waited > LINGER_SECONDS:
                self._transport.abort()
        elif waited > HEADER_SECONDS:
            if not self._transport.get_write_buffer_size():
                self._transport.close()
            elif waited > TAKE_SECONDS:
                self._transport.abort()

    def end(self) -> None:
        """Close the connection, once what is being answered was answered."""
        if self._task is None and not self._lingers:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _refuse(self, rejected: Rejected) -> None:
        """Answer what is no request, and close."""
        body = orjson.dumps(wire.problem(rejected, rejected.status, "none"))
        head = (
            b"%bcontent-type: application/problem+json\r\ncontent-length: %d\r\nx-content-type-options: nosniff\r\n"
            b"cache-control: no-store\r\nconnection: close\r\n%b\r\n"
        )
        self._transport.write(head % (_STATUS_LINES["1.1", rejected.status], len(body), self._listener.date) + body)
        self._linger()

    def _linger(self) -> None:
        """Listen for a moment to a caller who still sends, so that they see the answer, and close."""
        self._lingers = True
        self._since = self._listener.loop.time()
        self._buffer.clear()
        self._parts.clear()
        self._resume()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

"""Connections: requests one after the other, bodies that are waited for, and callers who go or stay too long."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.server.server import Server

from woodrat.server import connection
from woodrat.server.connection import Listener

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
STORE = b"POST /v1/store HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
RECORD = b'{"records":{"entity_type":"thing","id":"1"}}'


@pytest.fixture
def caller(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), 20) as made:
        yield made


def answers(caller: socket.socket, count: int) -> list[tuple[bytes, bytes]]:
    """Return the heads and bodies of so many answers."""
    data = b""
    found: list[tuple[bytes, bytes]] = []
    while len(found) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0) if end else 0
        if end and head.startswith(b"HTTP/1.1 100"):
            found.append((head, b""))
            data = rest
        elif end and len(rest) >= length:
            found.append((head, rest[:length]))
            data = rest[length:]
        else:
            part = caller.recv(65_536)
            assert part, data
            data += part
    assert data == b""
    return found


def test_requests_of_one_connection_are_answered_in_their_order(server: Server, caller: socket.socket) -> None:
    """Requests that are sent without waiting are answered one after the other, a body in chunks among them."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, RECORD[place : place + 1]) for place in range(len(RECORD))) + b"0\r\n\r\n"
    caller.sendall(GET + STORE + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"\r\n" + GET)
    first, second, third = answers(caller, 3)
    assert first[1] == third[1] == b'{"status":"ok"}'
    assert b'"entities":["thing/1"]' in second[1]
    assert server.call("GET", "/v1/position").json["position"] == 0


def test_a_request_that_comes_byte_by_byte_is_one(caller: socket.socket) -> None:
    """However it is cut, a request is the same."""
    for byte in STORE + b"Content-Length: %d\r\n\r\n" % len(RECORD) + RECORD:
        caller.sendall(bytes([byte]))
    ((head, body),) = answers(caller, 1)
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"date: " in head
    assert b"connection:" not in head
    assert b"thing/1" in body


def test_a_caller_who_waits_is_told_to_go_on(caller: socket.socket) -> None:
    """`Expect: 100-continue` is answered once the body is wanted."""
    caller.sendall(STORE + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(RECORD))
    assert answers(caller, 1)[0][0] == b"HTTP/1.1 100 Continue"
    caller.sendall(RECORD)
    assert b"thing/1" in answers(caller, 1)[0][1]


def test_the_older_version_and_close_end_the_connection(server: Server) -> None:
    """After HTTP/1.0, and where the caller says `close`, the answer says so and the connection ends."""
    for request in (GET.replace(b"1.1", b"1.0"), GET[:-2] + b"Connection: close\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), 20) as caller:
            caller.sendall(request)
            data = b""
            while part := caller.recv(65_536):
                data += part
        assert b"connection: close\r\n" in data
        assert data.endswith(b'{"status":"ok"}')


def test_an_answer_before_the_whole_body_is_seen(server: Server) -> None:
    """Whoever is refused while they still send hears why, and the connection ends."""
    with socket.create_connection(("127.0.0.1", server.port), 20) as caller:
        caller.sendall(STORE.replace(b"application/json", b"text/plain") + b"Content-Length: 9000000\r\n\r\n")
        caller.sendall(b"x" * 100_000)
        ((head, _),) = answers(caller, 1)
        assert head.startswith(b"HTTP/1.1 415")
        assert b"connection: close" in head
        caller.shutdown(socket.SHUT_WR)
        assert caller.recv(65_536) == b""


def test_what_is_no_request_gets_a_problem(server: Server) -> None:
    """A head that is amiss or too long is told so as a problem document, and the connection ends."""
    cases = (
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\nHost: a\n\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"431"),
        (STORE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (STORE + b"Transfer-Encoding: gzip\r\n\r\n", b"501"),
    )
    for request, status in cases:
        with socket.create_connection(("127.0.0.1", server.port), 20) as caller:
            caller.sendall(request)
            caller.shutdown(socket.SHUT_WR)
            data = b""
            while part := caller.recv(65_536):
                data += part
        assert data.startswith(b"HTTP/1.1 " + status), (request[:60], data)
        assert b"application/problem+json" in data
        assert b"Nothing was done." in data


def test_work_for_a_caller_who_goes_is_cancelled(server: Server) -> None:
    """A follower that closes its connection is not followed up any more."""
    with socket.create_connection(("127.0.0.1", server.port), 20) as caller:
        caller.sendall(b"GET /v1/log HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        assert b"200 OK" in caller.recv(65_536)
        assert server.app.measures.open == 1
    for _ in range(500):
        if not server.app.measures.open:
            break
        threading.Event().wait(0.02)
    assert server.app.measures.open == 0


class Wire(asyncio.Transport):
    """A transport that notes what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.unsent = 0
        self.closed = self.aborted = self.paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


def on_a_wire(app: connection.Application) -> tuple[Listener, connection.Connection, Wire]:
    """Return a connection to an application, without a network."""
    listener = Listener(app, ("127.0.0.1", 1), "http")
    made, wire = connection.Connection(listener), Wire()
    made.connection_made(wire)
    return listener, made, wire


async def echo(scope: object, receive: object, send: object) -> None:
    """Answer with the body."""
    body, more = b"", True
    while more:
        message = await receive()  # type: ignore[operator]
        body, more = body + message["body"], message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": body})  # type: ignore[operator]


def test_who_lets_the_server_wait_is_let_go_of() -> None:
    """A connection without a whole head is closed after a while; one that takes no answer later, and at once."""

    async def play() -> None:
        listener, made, wire = on_a_wire(echo)
        made.data_received(b"GET / HT")
        now = listener.loop.time()
        made.check(now + connection.HEADER_SECONDS - 1)
        assert not wire.is_closing()
        wire.unsent = 1
        made.check(now + connection.HEADER_SECONDS + 1)
        assert not wire.is_closing()
        made.check(now + connection.TAKE_SECONDS + 1)
        assert wire.aborted
        listener, made, wire = on_a_wire(echo)
        made.check(now + connection.HEADER_SECONDS + 1)
        assert wire.closed

    asyncio.run(play())


def test_no_more_is_read_than_is_taken() -> None:
    """A body that nobody reads, and requests behind one that is answered, are not taken without a bound."""

    async def play() -> None:
        waits = asyncio.Event()

        async def late(scope: object, receive: object, send: object) -> None:
            await waits.wait()
            await echo(scope, receive, send)

        listener, made, wire = on_a_wire(late)
        size = connection.UNREAD_BYTES_MAX + 1
        made.data_received(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (size + 10))
        made.data_received(b"x" * size)
        assert wire.paused
        waits.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not wire.paused
        made.data_received(b"y" * 10 + b"z" * (connection.HEAD_BYTES_MAX + 1))
        made.data_received(b"z")
        assert wire.paused
        await asyncio.gather(*listener.tasks)
        assert wire.sent.count(b"x") >= size
        assert b"431" in wire.sent

    asyncio.run(play())


def test_who_takes_no_answers_is_asked_for_no_requests() -> None:
    """While what was answered waits to be taken, the next request waits as well."""

    async def play() -> None:
        listener, made, wire = on_a_wire(echo)
        made.data_received(b"GET / HTTP/1.1\r\n\r\n")
        made.pause_writing()
        made.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.gather(*listener.tasks)
        await asyncio.sleep(0)
        assert (wire.sent.count(b"200 OK"), len(listener.tasks)) == (1, 0)
        made.resume_writing()
        await asyncio.gather(*listener.tasks)
        assert wire.sent.count(b"200 OK") == 2

    asyncio.run(play())


def test_an_application_that_fails_leaves_nothing_that_looks_whole() -> None:
    """An answer that broke off is cut off, not ended."""

    async def play() -> None:
        async def broken(scope: object, receive: object, send: object) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
            await send({"type": "http.response.body", "body": b"half", "more_body": True})  # type: ignore[operator]
            raise ValueError

        listener, made, wire = on_a_wire(broken)
        made.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.gather(*listener.tasks)
        assert wire.aborted
        assert b"4\r\nhalf\r\n" in wire.sent
        assert b"0\r\n\r\n" not in wire.sent

    asyncio.run(play())

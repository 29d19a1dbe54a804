"""What a stranger can try: sizes, times, hosts, origins, floods."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Callable

from tests.surfaces.http.server import Server

Start = Callable[..., Server]
JSON = {"Content-Type": "application/json"}


def test_bodies_are_bounded(start: Start) -> None:
    """A body that is too long is refused by its length or as it arrives, packed or not; nothing is stored."""
    server = start(body_bytes_max=10_000)
    long = b'{"records": "' + b"x" * 20_000 + b'"}'
    assert server.call("POST", "/v1/store", long, headers=JSON).status == 413
    bomb = gzip.compress(b" " * 5_000_000)
    assert len(bomb) < 10_000
    assert server.call("POST", "/v1/store", bomb, headers={**JSON, "Content-Encoding": "gzip"}).status == 413
    cut = gzip.compress(b'{"records": []}')[:-5]
    assert server.call("POST", "/v1/store", cut, headers={**JSON, "Content-Encoding": "gzip"}).status == 400
    assert server.call("POST", "/v1/store", b"{}", headers={**JSON, "Content-Encoding": "br"}).status == 415
    assert server.call("GET", "/v1/entities").json["entities"] == []


def test_depth_is_bounded(server: Server) -> None:
    """A body of brackets alone is refused, and the server goes on."""
    deep = b'{"records":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert server.call("POST", "/v1/store", deep, headers=JSON).status == 400
    assert server.call("GET", "/healthz").status == 200


def test_addresses_are_utf8_and_bounded(server: Server) -> None:
    """An address that is not UTF-8 or too long is refused."""
    assert server.call("GET", "/v1/entities/contact/%ff").status == 400
    assert server.call("GET", "/v1/search?query=%c3%28").status == 400
    assert server.call("GET", "/v1/search?query=" + "x" * 20_000).status == 414
    assert server.call("GET", "/v1/search?query=a&query=b").status == 400


def test_a_body_must_arrive(start: Start) -> None:
    """A body that does not come is given up, and others are answered meanwhile."""
    server = start(wait_seconds=0.2)
    with socket.create_connection(("127.0.0.1", server.port), 10) as slow:
        head = b"POST /v1/store HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow.sendall(head + b'Content-Length: 100\r\n\r\n{"rec')
        assert server.call("GET", "/healthz").status == 200
        assert slow.recv(4_096).startswith(b"HTTP/1.1 408")


def test_half_sent_requests_stall_nobody(server: Server) -> None:
    """Sixty clients that never finish their headers do not keep others from being answered."""
    slow = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(60)]
    try:
        for connection in slow:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        assert all(server.call("GET", "/healthz").status == 200 for _ in range(20))
    finally:
        for connection in slow:
            connection.close()


def test_only_names_of_the_server_are_answered(server: Server) -> None:
    """A page that reaches this machine under a name of its own (DNS rebinding) gets nothing."""
    assert server.call("GET", "/v1/entities", headers={"Host": "evil.example"}).status == 421
    assert server.call("GET", "/v1/entities", headers={"Host": "localhost.evil.example"}).status == 421
    assert server.call("GET", "/v1/entities", headers={"Host": f"127.0.0.1:{server.port}"}).status == 200


def test_only_allowed_origins_may_call(start: Start) -> None:
    """A page of another site is refused unless its origin is allowed; its own pages are not."""
    server = start(origins=("https://console.example",))
    host = f"localhost:{server.port}"
    for origin, status in [
        ("https://evil.example", 403),
        ("null", 403),
        ("https://console.example", 200),
        (f"http://{host}", 200),
    ]:
        assert server.call("GET", "/v1/entities", headers={"Host": host, "Origin": origin}).status == status


def test_calls_are_bounded_by_key(start: Start) -> None:
    """Whoever calls too often is told when to call again."""
    server = start(calls_per_second=1)
    answers = [server.call("GET", "/v1/conflicts") for _ in range(15)]
    late = [answer for answer in answers if answer.status == 429]
    assert late
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in late)
    assert server.call("GET", "/healthz").status == 200

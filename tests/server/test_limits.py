"""What a stranger can try: sizes, times, hosts, origins, floods."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.server import Server

from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Refused, Unavailable
from woodrat.ledger.own_policy import registry
from woodrat.records import replace
from woodrat.server import requests
from woodrat.server.app import App
from woodrat.server.keys import Keyring, Open
from woodrat.server.limits import Limits
from woodrat.server.routes import ROUTES
from woodrat.testing.ledgers import ledger_on

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
    assert server.call("GET", "/v1/entities").json["items"] == []


def test_parts_of_other_logs_have_a_bound_of_their_own(
    start: Start, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be longer than other bodies, wait in a file, and are read only of those who may send them."""
    monkeypatch.setattr(requests, "SPOOLED_BYTES", 1_000)
    here = ledger_on(InMemoryEngine())
    here.store([{"entity_type": "thing", "id": str(number)} for number in range(50)])
    out = io.BytesIO()
    here.log.export(out)
    part, lines = out.getvalue(), {"Content-Type": "application/x-ndjson"}
    _, key = keyring.create("acme", "sync", ["*"])
    _, other = keyring.create("acme", "reader", ["read", "write"])
    server = start(keyring, body_bytes_max=1_000, import_bytes_max=len(part), wait_seconds=0.5)
    more = server.call("POST", "/v1/log", part + b"\n", headers=lines, key=key)
    assert (more.status, f"{len(part)} bytes is the limit" in more.json["detail"]) == (413, True)
    packed = {**lines, "Content-Encoding": "gzip"}
    assert server.call("POST", "/v1/log", gzip.compress(part), headers=packed, key=key).status == 415
    assert server.call("POST", "/v1/log", part[:100], headers=lines, key=key).status == 400
    assert server.call("POST", "/v1/log", b"", headers=lines, key=other).status == 403
    with socket.create_connection(("127.0.0.1", server.port), 10) as slow:
        head = f"POST /v1/log HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        slow.sendall(f"{head}Content-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert b"408 " in slow.recv(1_000)
    assert server.call("GET", "/v1/position", key=key).json["position"] == -1
    assert server.call("POST", "/v1/log", part, headers=lines, key=key).json["cloned"] == 50
    root = server.call("GET", "/v1/log/leaves?position=49", key=key).json["root"]
    assert root == here.log.import_(io.BytesIO(part)).root
    assert server.call("GET", "/v1/log/leaves?position=x&position=-1", key=key).status == 400
    assert server.call("GET", "/v1/log/leaves?" + "position=1&" * 65, key=key).status == 400


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


def test_only_allowed_origins_may_call(start: Start, keyring: Keyring) -> None:
    """A page of another site or scheme is refused unless its origin is allowed; its own pages are not."""
    server = start(origins=("https://console.example",))
    host = f"localhost:{server.port}"
    for origin, status in [
        ("https://evil.example", 403),
        ("null", 403),
        ("https://console.example", 200),
        (f"http://{host}", 200),
        (f"https://{host}", 200),
        (f"evil://{host}", 403),
        (f"x-http://{host}", 403),
        (f"http://http://{host}", 403),
        (host, 403),
    ]:
        assert server.call("GET", "/v1/entities", headers={"Host": host, "Origin": origin}).status == status, origin
    _, key = keyring.create("default", "a", ["*"])
    secure = start(keyring, proxied=True)
    for scheme, status in (("https", 200), ("http", 403), ("evil", 403)):
        sent = {"Host": "localhost", "Origin": f"{scheme}://localhost", "X-Forwarded-Proto": "https"}
        assert secure.call("GET", "/v1/entities", headers=sent, key=key).status == status, scheme


def test_pages_of_allowed_origins_can_call(start: Start) -> None:
    """A browser is told that an allowed page may call and read; of another nothing is said that would let it."""
    server = start(origins=("https://console.example",))
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    for path in ("/v1/store", "/mcp", "/neotoma/store", "/v1/traces"):
        first = server.call("OPTIONS", path, headers={"Origin": "https://console.example", **asked})
        assert (first.status, first.headers["access-control-allow-origin"]) == (200, "https://console.example")
        assert "POST" in first.headers["access-control-allow-methods"]
        assert {"authorization", "content-type"} <= set(first.headers["access-control-allow-headers"].split(", "))
        evil = server.call("OPTIONS", path, headers={"Origin": "https://evil.example", **asked})
        assert evil.status == 403
        assert not any(name.startswith("access-control") for name in evil.headers)
    for path in ("/v1/entities", "/v1/nothing"):
        answer = server.call("GET", path, headers={"Origin": "https://console.example"})
        assert answer.headers["access-control-allow-origin"] == "https://console.example"
        assert "origin" in answer.headers["vary"]
    assert "access-control-allow-origin" not in server.call("GET", "/v1/entities").headers
    assert server.call("OPTIONS", "/v1/entities").status == 405


def test_calls_are_bounded_by_key(start: Start) -> None:
    """Whoever calls too often is told when to call again."""
    server = start(calls_per_second=1)
    answers = [server.call("GET", "/v1/conflicts") for _ in range(15)]
    late = [answer for answer in answers if answer.status == 429]
    assert late
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in late)
    assert server.call("GET", "/healthz").status == 200


HEAD = b"POST /v1/store HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /v1/entities?%b HTTP/1.1\r\nHost: localhost\r\n\r\n"


def raw(server: Server, data: bytes, more: bytes = b"", times: int = 0) -> int:
    """Send bytes as they are, and return the status of the answer; 0 when the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        try:
            connection.sendall(data)
            for _ in range(times):
                connection.sendall(more)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server does not listen to the end
        try:
            said = connection.recv(65_536)
        except ConnectionResetError:
            return 0
    return int(said.split(b" ", 2)[1]) if said else 0


def test_whatever_is_sent_bystanders_are_served(server: Server) -> None:
    """Bad requests of every sort get their documented status; nothing is stored by them, and others are answered."""
    stored = server.call("POST", "/v1/store", {"records": {"entity_type": "thing", "id": "1"}}).json["position"]
    megabyte = b"x" * 1_048_576
    cases: list[tuple[str, int, set[int]]] = [
        ("100 MB, announced", raw(server, HEAD + b"Content-Length: 104857600\r\n\r\n"), {413}),
        (
            "100 MB, in chunks",
            raw(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + megabyte + b"\r\n", 100),
            {413, 0},
        ),
        ("malformed JSON", raw(server, HEAD + b"Content-Length: 2\r\n\r\n{]"), {400}),
        ("invalid UTF-8", raw(server, HEAD + b'Content-Length: 4\r\n\r\n"\xff\xfe"'), {400}),
        ("duplicate keys", raw(server, HEAD + b'Content-Length: 13\r\n\r\n{"a":1,"a":2}'), {400}),
        ("an empty body", raw(server, HEAD + b"Content-Length: 0\r\n\r\n"), {400}),
        ("an unknown parameter", raw(server, GET % b"fly=1"), {400}),
        ("a negative limit", raw(server, GET % b"limit=-1"), {400}),
        ("a huge limit", raw(server, GET % b"limit=99999999999999999999"), {400}),
        ("a broken cursor", raw(server, GET % b"cursor=AAAA"), {400}),
        ("a broken condition", raw(server, GET % b"where=%00"), {400}),
        ("a moment that is none", raw(server, GET % b"as_of=never"), {400}),
        ("no host", raw(server, b"GET /v1/entities HTTP/1.1\r\n\r\n"), {400, 421}),
        ("no HTTP", raw(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), {400, 0}),
        ("a flood of headers", raw(server, GET[:-2] % b"", b"X-A: " + b"y" * 1_000 + b"\r\n", 2_000), {400, 431, 0}),
        (
            "many headers",
            raw(server, GET[:-2] % b"" + b"".join(b"X-%d: 1\r\n" % number for number in range(1_000)) + b"\r\n"),
            {400, 431, 0},
        ),
        ("a position that is none", raw(server, GET.replace(b"entities", b"log") % b"after=-7"), {400}),
    ]
    for name, status, documented in cases:
        assert status in documented, (name, status)
        assert server.call("GET", "/healthz").status == 200, name
    assert server.call("GET", "/v1/position").json == {"position": stored}


def test_a_subscriber_that_is_cut_off_misses_nothing(server: Server) -> None:
    """Followers that come and go while things are written see every position in order; the same one at most again."""
    from tests.server.test_streams import store, told

    seen: list[int] = []
    for round in range(4):
        for number in range(3):
            last = store(server, f"{round}-{number}")
        after = seen[-1] if seen else -1
        seen += [entry["position"] for entry in told(server, after, 1, resume=bool(seen))]
    if seen[-1] < last:
        seen += [entry["position"] for entry in told(server, seen[-1], last - seen[-1], resume=True)]
    assert seen == list(range(last + 1))


def test_an_answer_that_takes_too_long_is_given_up(engine: SqliteEngine) -> None:
    """Whoever asks for too much is told so, and others are answered meanwhile."""
    free = threading.Event()
    slow = replace(next(route for route in ROUTES if route.verb == "conflicts"), answer=lambda past: free.wait(20))
    app = App(
        engine,
        Open("default", "http"),
        clock=SystemClock(),
        policies=registry(()),
        limits=Limits(read_seconds=0.1),
        routes=(slow,),
    )
    with Server(app) as server:
        answer = server.call("GET", "/v1/conflicts")
        assert (answer.status, answer.json["code"]) == (503, "unavailable")
        assert server.call("GET", "/healthz").status == 200
        free.set()


def test_long_bodies_and_answers_hold_nobody_up(server: Server) -> None:
    """A body of megabytes, packed or not, is taken as any other, and so is its answer."""
    records = [{"entity_type": "thing", "id": str(n), "text": "x" * 400} for n in range(1_000)]
    body = gzip.compress(json.dumps({"records": records}).encode())
    packed = {**JSON, "Content-Encoding": "gzip", "Accept-Encoding": "gzip"}
    stored = server.call("POST", "/v1/store", body, headers=packed)
    assert stored.status == 200
    assert len(json.loads(gzip.decompress(stored.body))["observations"]) == 1_000
    listed = server.call("GET", "/v1/observations?limit=1000", headers={"Accept-Encoding": "gzip"})
    assert len(json.loads(gzip.decompress(listed.body))["items"]) == 1_000
    broken = server.call("POST", "/v1/store", b'{"records": [' + b"1," * 50_000, headers=JSON)
    assert broken.status == 400


def test_gzip_of_several_members_is_read_whole(server: Server) -> None:
    """A body packed in parts, each a gzip of its own as `cat a.gz b.gz` makes them, loses nothing of any part."""
    packed = b"".join(gzip.compress(b'{"entity_type": "memo", "name": "%d"}\n' % number) for number in range(3))
    sent = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    answer = server.call("POST", "/v1/store", packed, headers=sent)
    assert (answer.status, len(answer.json["observations"])) == (200, 3)
    for rest in (packed + b"not gzip", packed + packed[:9]):
        assert server.call("POST", "/v1/store", rest, headers=sent).status == 400


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("gzip; q=0.000, *", False), ("br", False)],
)
def test_answers_are_packed_for_those_who_take_them(server: Server, accepted: str, packed: bool) -> None:
    """Gzip is sent to whoever accepts it, and to nobody who gives it no weight."""
    answer = server.call("GET", "/openapi.json", headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("content-encoding") == "gzip") is packed


def test_a_request_has_one_host(server: Server) -> None:
    """A second host, which a proxy may have heeded instead, is refused."""
    connection = server.connect()
    try:
        connection.putrequest("GET", "/v1/position", skip_host=True)
        for host in ("localhost", "evil.example"):
            connection.putheader("Host", host)
        connection.endheaders()
        assert connection.getresponse().status == 400
    finally:
        connection.close()


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson", "text/event-stream"])
def test_who_takes_nothing_of_a_long_answer_is_cut_off(start: Start, accept: str) -> None:
    """A caller that asks for much and reads none of it is let go of after a while, in every form of an answer."""
    server = start(take_seconds=0.3)
    for number in range(40):
        record = {"entity_type": "thing", "id": str(number), "text": "x" * 400_000}
        assert server.call("POST", "/v1/store", {"records": record}).status == 200
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(f"GET /v1/log HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
        slow.settimeout(20)
        assert b"200 OK" in slow.recv(64)
        open_now = server.app.measures
        for _ in range(1_000):
            if open_now.open == 0:
                break
            threading.Event().wait(0.02)
        assert open_now.open == 0
        with contextlib.suppress(ConnectionResetError):
            while part := slow.recv(1_048_576):
                assert not part.endswith(b"0\r\n\r\n"), "it looks whole"


def test_nobody_is_told_where_the_database_is(start: Start, engine: SqliteEngine, monkeypatch: Any) -> None:
    """What is wrong with the engine is told without its path on the machine, by calls and by `/readyz`."""
    server = start()

    def full(*_: Any, **__: Any) -> Any:
        raise Unavailable(f"{engine.path}: the disk is full. Nothing was written.", {"path": str(engine.path)})

    monkeypatch.setattr(type(engine), "view", full)
    for path in ("/v1/position", "/readyz"):
        answer = server.call("GET", path)
        assert answer.status == 503
        assert b"the database: the disk is full" in answer.body
        assert str(engine.path).encode() not in answer.body
    monkeypatch.undo()


def test_a_body_that_is_not_framed_is_refused(server: Server) -> None:
    """A body whose chunks are none, or that ends too soon, gets a problem document and is no failure of the server."""
    head = "POST /v1/store HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for rest in ("Transfer-Encoding: chunked\r\n\r\nZZ\r\n", "Content-Length: 90\r\n\r\n{}"):
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            connection.sendall((head + rest).encode())
            connection.shutdown(socket.SHUT_WR)
            data = b""
            while part := connection.recv(65_536):
                data += part
        assert b" 400 " in data.partition(b"\r\n")[0], data
        assert b"application/problem+json" in data
    assert server.call("GET", "/v1/position").json["position"] == -1


def test_followers_take_nobody_s_turn(server: Server) -> None:
    """However many follow the log or have half sent a request, others are answered."""
    head = b"GET /v1/log HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    with contextlib.ExitStack() as kept:
        for number in range(200):
            connection = kept.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
            connection.sendall(head if number % 4 else head[:-2])
            if number % 4:
                assert b"200 OK" in connection.recv(64)
        assert server.call("POST", "/v1/store", {"records": {"entity_type": "thing", "id": "1"}}).status == 200
        assert server.call("GET", "/v1/entities/thing/1").status == 200


def test_a_trusted_proxy_names_requests(start: Start) -> None:
    """Behind a proxy the id it gave a request is the one in answers, if it is an id; otherwise it is our own."""
    proxied, plain = start(proxied=True), start()
    assert proxied.call("GET", "/healthz", headers={"X-Request-Id": "gw-17.a"}).headers["x-request-id"] == "gw-17.a"
    missing = proxied.call("GET", "/v1/entities/contact/Eve", headers={"X-Request-Id": "gw-18"})
    assert missing.json["instance"] == "urn:woodrat:request:gw-18"
    for server, id in ((proxied, "a b"), (proxied, "x" * 65), (proxied, ""), (plain, "gw-17")):
        assert len(server.call("GET", "/healthz", headers={"X-Request-Id": id}).headers["x-request-id"]) == 16


ODD_HOSTS = (
    "127.0.0.1:8000@evil",
    "localhost@evil.example",
    "user@localhost",
    "[::1]x",
    "[::1",
    "[::1]:",
    "[::1]:x",
    "localhost:",
    "localhost:0",
    "localhost:99999",
    "localhost:80:80",
    "localhost/evil",
    "localhost evil",
    "localhost,evil.example",
    "localhost#evil",
    "localhost?evil",
    "-localhost",
)


@pytest.mark.parametrize("host", ODD_HOSTS)
def test_a_host_is_a_name_and_perhaps_a_port(start: Start, keyring: Keyring, host: str) -> None:
    """What is left over in a host header would be read otherwise by somebody else, so that it is refused."""
    _, secret = keyring.create("lending", "a", ["*"])
    assert start(keyring).call("GET", "/v1/conflicts", headers={"Host": host}, key=secret).status == 400
    proxied = {"Host": "localhost", "X-Forwarded-Host": host}
    assert start(keyring, proxied=True).call("GET", "/v1/conflicts", headers=proxied, key=secret).status == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:65535", "[::1]", "[::1]:8787"])
def test_a_host_of_this_server_is_answered(server: Server, host: str) -> None:
    """A name of the server is one however it is spelled, with a port or without."""
    assert server.call("GET", "/v1/conflicts", headers={"Host": host}).status == 200


def test_probes_call_by_any_address(server: Server) -> None:
    """Whatever looks after processes calls them by an address: health is told to it, and nothing else is."""
    for host in ("10.1.2.3:8787", "woodrat-0.woodrat.svc", "[fd00::7]:8787"):
        for path in ("/healthz", "/readyz"):
            answer = server.call("GET", path, headers={"Host": host})
            assert (answer.status, answer.json) == (200, {"status": "ok"}), host
        for path in ("/metrics", "/v1/conflicts", "/openapi.json"):
            assert server.call("GET", path, headers={"Host": host}).status == 421, path


FORWARDED = (
    ("Forwarded", "for=203.0.113.7"),
    ("X-Forwarded-For", "203.0.113.7"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "localhost"),
    ("X-Real-IP", "203.0.113.7"),
    ("Via", "1.1 proxy"),
    ("CF-Connecting-IP", "203.0.113.7"),
    ("True-Client-IP", "203.0.113.7"),
    ("X-Original-Host", "ledger.example"),
)


@pytest.mark.parametrize(("name", "value"), FORWARDED)
def test_without_keys_nobody_calls_through_a_proxy(server: Server, name: str, value: str) -> None:
    """A server without keys is for its own machine: what a proxy passed on gets 401, on every surface."""
    record = {"records": {"entity_type": "thing", "id": "1"}}
    for method, path, body in (
        ("GET", "/v1/conflicts", None),
        ("POST", "/v1/store", record),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("POST", "/v1/traces", {"resourceSpans": []}),
        ("POST", "/neotoma/store", {}),
        ("GET", "/metrics", None),
    ):
        answer = server.call(method, path, body, headers={name: value})
        assert answer.status == 401, path
    assert server.call("GET", "/v1/position").json == {"position": -1}
    assert server.call("GET", "/healthz", headers={name: value}).status == 200


def test_a_key_calls_through_a_proxy(start: Start, keyring: Keyring) -> None:
    """With keys it does not matter who passed a call on."""
    _, secret = keyring.create("lending", "a", ["*"])
    answer = start(keyring).call("GET", "/v1/conflicts", headers={"Via": "1.1 proxy"}, key=secret)
    assert answer.status == 200


def test_answers_are_kept_by_no_cache_and_guessed_by_nobody(start: Start, keyring: Keyring) -> None:
    """Every answer says `nosniff`; all but the documents, which hold no data, say `no-store`."""
    _, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    server.call("POST", "/v1/store", {"records": {"entity_type": "thing", "id": "1"}}, key=secret)
    tag = server.call("GET", "/v1/entities/thing/1", key=secret).headers["etag"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    lines = {"Accept": "application/x-ndjson"}
    answers: list[tuple[str, Any]] = [
        ("show", server.call("GET", "/v1/entities/thing/1", key=secret)),
        ("304", server.call("GET", "/v1/entities/thing/1", key=secret, headers={"If-None-Match": tag})),
        ("list", server.call("GET", "/v1/entities", key=secret)),
        ("lines", server.call("GET", "/v1/log", key=secret, headers=lines)),
        ("problem", server.call("GET", "/v1/entities/thing/2", key=secret)),
        ("401", server.call("GET", "/v1/entities")),
        ("mcp", server.call("POST", "/mcp", message, key=secret)),
        ("neotoma", server.call("POST", "/neotoma/store", {}, key=secret)),
        ("traces", server.call("POST", "/v1/traces", {"resourceSpans": []}, key=secret)),
        ("healthz", server.call("GET", "/healthz")),
    ]
    for name, answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff", name
        assert answer.headers["cache-control"] == "no-store", name
    assert answers[1][1].status == 304
    for path in ("/openapi.json", "/docs"):
        answer = server.call("GET", path)
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-cache")


def test_metrics_are_for_the_operator(start: Start, keyring: Keyring) -> None:
    """No key of a tenant reads what is counted over all of them, whatever it may do there; one for metrics does."""
    server = start(keyring)
    for grants in (["*"], ["read"], ["manage"], ["read", "write", "correct", "run", "manage"]):
        _, secret = keyring.create("lending", "a", grants)
        answer = server.call("GET", "/metrics", key=secret)
        assert (answer.status, answer.json["details"]) == (403, {"grant": "metrics"}), grants
    assert server.call("GET", "/metrics").status == 401
    _, operator = keyring.create("ops", "prometheus", ["metrics"])
    assert b"woodrat_requests_total" in server.call("GET", "/metrics", key=operator).body
    assert server.call("GET", "/v1/entities", key=operator).status == 403
    with pytest.raises(Refused):
        keyring.create("ops", "prometheus", ["metrics:contact"])


def test_a_fenced_engine_is_not_ready(server: Server, engine: SqliteEngine) -> None:
    """After a failed flush no write is taken, so the server says that it is not ready, while reads go on."""
    assert server.call("GET", "/readyz").status == 200
    engine.write_stop.stop("a flush to the disk failed")
    ready = server.call("GET", "/readyz")
    assert (ready.status, ready.json["status"]) == (503, "degraded")
    assert "flush" in ready.json["problem"]
    assert str(engine.path) not in ready.json["problem"]
    assert server.call("GET", "/v1/conflicts").status == 200
    engine.write_stop._why = None

"""The log over a connection that stays open."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.server import Server
from tests.server.test_audit import eventually

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import Keyring
from woodrat.server.limits import Places
from woodrat.server.requests import Exchange


def told(server: Server, after: int, count: int, *, resume: bool = False) -> list[dict[str, Any]]:
    """Return the next events after a position."""
    header = f"Last-Event-ID: {after}\r\n" if resume else ""
    path = "/v1/log" if resume else f"/v1/log?after={after}"
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{header}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(head.encode())
        data = b""
        while data.count(b"event: entry") < count or not data.endswith(b"\n\n\r\n"):
            part = connection.recv(65_536)
            assert part, "the stream ended"
            data += part
    assert b"200 OK" in data.partition(b"\r\n")[0]
    lines = [line for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines]


def store(server: Server, id: str) -> int:
    found: int = server.call("POST", "/v1/store", {"records": {"entity_type": "thing", "id": id}}).json["position"]
    return found


def test_events_come_in_order_and_go_on_where_they_ended(server: Server) -> None:
    """Every entry comes once and in order; whoever was cut off goes on after the last position they had."""
    for number in range(5):
        last = store(server, str(number))
    first = told(server, -1, 3)
    assert [entry["position"] for entry in first] == list(range(len(first)))
    had = first[-1]["position"]
    if had < last:
        rest = told(server, had, last - had, resume=True)
        assert [entry["position"] for entry in rest] == list(range(had + 1, last + 1))


def test_lines_are_the_log_as_it_is(server: Server) -> None:
    """The log as JSON lines ends at its present end, and each line is the entry as the library has it."""
    last = store(server, "1")
    answer = server.call("GET", "/v1/log", headers={"Accept": "application/x-ndjson"})
    entries = [json.loads(line) for line in answer.body.splitlines()]
    assert [entry["position"] for entry in entries] == list(range(last + 1))
    assert entries == server.call("GET", "/v1/log").json["items"]
    assert server.call("GET", "/v1/log?after=-2").status == 400
    assert server.call("GET", "/v1/log?limit=0").status == 400


def test_a_follower_whose_key_is_revoked_is_told_no_more(start: Callable[..., Server], keyring: Keyring) -> None:
    """A stream that is open ends when its key does."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    about = f"Host: localhost\r\nAuthorization: Bearer {secret}\r\nAccept: text/event-stream"
    head = f"GET /v1/log HTTP/1.1\r\n{about}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 20) as connection:
        connection.sendall(head.encode())
        assert b"200 OK" in connection.recv(65_536)
        keyring.revoke(key.id)
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            part = connection.recv(65_536)
            assert part, "the connection was cut"
            data += part


def test_a_follower_goes_on_after_what_was_erased(server: Server, engine: SqliteEngine, tmp_path: Path) -> None:
    """Whoever comes back with the position of an entry that was erased meanwhile goes on; erased bodies say where."""
    for number in range(3):
        last = store(server, str(number))
    woodrat.init(tmp_path / "keys")
    ledger = Ledger(
        engine, tenant="default", agent="operator", clock=SystemClock(), policies=registry(()), keys=tmp_path / "keys"
    )
    ledger.erase("thing/1", reason="asked to")
    gone = next(entry for entry in ledger.log.entries() if entry.body is None).position
    at = ledger.erased_at(gone)
    assert at is not None
    assert at > last
    rest = told(server, gone, ledger.position - gone, resume=True)
    assert [entry["position"] for entry in rest] == list(range(gone + 1, ledger.position + 1))
    [again] = told(server, gone - 1, 1)[:1]
    assert (again["position"], again["body"], again["erased_at"]) == (gone, None, at)
    assert server.call("GET", f"/v1/log?after={gone - 1}&limit=1").json["items"] == [again]


def test_the_form_of_the_log_goes_by_what_is_wanted_most(server: Server) -> None:
    """Lines and events are sent to those who want them no less than plain JSON; a head has no body in any form."""
    store(server, "1")
    for accept, media in [
        ("application/x-ndjson;q=0.1, application/json", "application/json"),
        ("application/json;q=0.5, application/x-ndjson", "application/x-ndjson"),
        ("application/x-ndjson;q=0", "application/json"),
    ]:
        answer = server.call("GET", "/v1/log", headers={"Accept": accept})
        assert answer.headers["content-type"] == media, accept
    head = server.call("HEAD", "/v1/log", headers={"Accept": "text/event-stream"})
    assert (head.status, head.headers["content-type"], head.body) == (200, "text/event-stream", b"")


def test_an_empty_last_event_is_none(server: Server) -> None:
    """A follower that sends `Last-Event-ID` empty, before its first event, begins at the start."""
    store(server, "1")
    head = "GET /v1/log HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nLast-Event-ID:\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(head.encode())
        data = b""
        while b"event: entry" not in data:
            part = connection.recv(65_536)
            assert part, data
            data += part
    assert b"id: 0\n" in data


def test_nobody_follows_from_beyond_the_end(server: Server) -> None:
    """Whoever had more of a log than there is, as after an older copy was put back, is told so and not left waiting."""
    last = store(server, "1")
    for headers, query in (({"Last-Event-ID": str(last + 1)}, ""), ({}, f"?after={last + 1}")):
        answer = server.call("GET", f"/v1/log{query}", headers={"Accept": "text/event-stream", **headers})
        assert (answer.status, answer.json["code"], answer.json["details"]["head"]) == (404, "not_found", last)


def opened(server: Server, path: str = "/v1/log", key: str | None = None) -> tuple[socket.socket, bytes]:
    """Return a connection that asked for events, and the first that was said to that."""
    about = "" if key is None else f"Authorization: Bearer {key}\r\n"
    connection = socket.create_connection(("127.0.0.1", server.port), 10)
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{about}\r\n"
    connection.sendall(head.encode())
    return connection, connection.recv(65_536)


def leave(server: Server, count: int) -> None:
    """Begin to follow the log so many times; some close the connection, some only say that they send no more."""
    half_closed = []
    for number in range(count):
        connection, data = opened(server)
        assert b"200 OK" in data
        if number % 4:
            connection.close()
        else:
            connection.shutdown(socket.SHUT_WR)
            half_closed.append(connection)
    for connection in half_closed:
        assert connection.recv(65_536) is not None
        connection.close()


def test_who_goes_away_is_served_no_more(server: Server) -> None:
    """A follower that disconnects is noticed at once, also while nothing is sent: no stream of it stays open."""
    store(server, "1")
    leave(server, 100)
    measures, turns = server.app.measures, server.app.turns["follows"]
    eventually(lambda: (turns.running, measures.open, sum(measures.streams.values())) == (0, 0, 0), tries=100)


def test_a_server_that_hears_of_no_disconnect_is_caught(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: where nobody listens for a disconnect, every follower there ever was is still served."""

    async def never(_: Exchange) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Exchange, "_gone", never)
    leave(server, 10)
    last = store(server, "1")
    assert told(server, last - 1, 1)[0]["position"] == last
    assert server.app.turns["follows"].running == 11


def test_who_waits_for_a_write_and_goes_away_is_waited_for_no_more(server: Server) -> None:
    """A call that waits for the log to go on counts as a stream, and ends with its connection."""
    streams = server.app.measures.streams
    connection = socket.create_connection(("127.0.0.1", server.port), 10)
    connection.sendall(b"GET /v1/stale/new?wait=20 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    eventually(lambda: streams["waits"] == 1)
    connection.close()
    eventually(lambda: streams["waits"] == 0, tries=100)


def test_followers_are_bounded_by_key_and_tenant(start: Callable[..., Server], keyring: Keyring) -> None:
    """A key, a tenant and the server have so many followers; one too many is told the limit, and what to do."""
    one, other = (keyring.create("lending", "a", ["read"])[1] for _ in range(2))
    elsewhere = keyring.create("audit", "b", ["read"])[1]
    operator = keyring.create("audit", "o", ["metrics"])[1]
    server = start(keyring, follows=Places(4, 2, 0, 0, running_per_tenant=3))
    open_now = []
    for key, status, says in [
        (one, 200, ""),
        (one, 200, ""),
        (one, 429, "This key has 2 open calls that follow a log, which is the limit. Nothing was done. Close one"),
        (other, 200, ""),
        (other, 429, "This tenant has 3 open calls"),
        (elsewhere, 200, ""),
        (elsewhere, 503, "The server has 4 open calls"),
    ]:
        if status == 200:
            connection, data = opened(server, key=key)
            open_now.append(connection)
            assert b"200 OK" in data
        else:
            answer = server.call("GET", "/v1/log", headers={"Accept": "text/event-stream"}, key=key)
            assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (status, "unavailable", "5")
            assert answer.json["detail"].startswith(says)
    counts = server.call("GET", "/metrics", key=operator).body
    assert b'woodrat_streams_open{kind="follows"} 4\n' in counts
    assert b'woodrat_work_refused_total{kind="follows"} 3\n' in counts
    for connection in open_now:
        connection.close()
    eventually(lambda: server.app.turns["follows"].running == 0)
    connection, data = opened(server, key=one)
    connection.close()
    assert b"200 OK" in data

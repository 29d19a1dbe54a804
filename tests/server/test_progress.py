"""Long reads that say how far they are, as events over a connection that stays open."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.server.conftest import Start
from tests.server.server import Server
from tests.server.test_audit import eventually

from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines import cancellation
from woodrat.engines.engine import Engine
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.ledger.progress import seldom
from woodrat.records import replace
from woodrat.server import heavy_reads, streams
from woodrat.server.access import Caller
from woodrat.server.app import App
from woodrat.server.heavy_reads import Job
from woodrat.server.keys import Keyring, Open
from woodrat.server.limits import Limits
from woodrat.server.routes import ROUTES
from woodrat.testing.ledgers import ledger_on

EVENTS = {"Accept": "text/event-stream"}
ENDLESS = "/v1/prove-order?shuffles=1000"
Event = tuple[str, dict[str, Any]]


def fill(engine: Engine, tenant: str = "default", count: int = 400) -> None:
    ledger_on(engine, tenant).store([{"entity_type": "thing", "id": str(n), "n": n} for n in range(count)])


def events_of(body: bytes) -> list[Event]:
    """Return the events of a stream, without its comments."""
    blocks = [block.split("\n") for block in body.decode().split("\n\n") if block and not block.startswith(":")]
    for name, data in blocks:
        assert (name[:7], data[:6]) == ("event: ", "data: ")
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def follow(server: Server, path: str, key: str | None = None) -> list[Event]:
    """Return all events of a read that ends."""
    answer = server.call("GET", path, headers=EVENTS, key=key, timeout=60)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream"), answer.body
    return events_of(answer.body)


@contextmanager
def following(server: Server, path: str = ENDLESS, key: str | None = None) -> Iterator[socket.socket]:
    """Follow a read, and give the connection once something was told."""
    about = "Host: localhost\r\nAccept: text/event-stream\r\n"
    about += "" if key is None else f"Authorization: Bearer {key}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n{about}\r\n".encode())
        data = b""
        while b"event: progress" not in data:
            part = connection.recv(65_536)
            assert part, data
            data += part
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        part = connection.recv(65_536)
        assert part, data
        data += part
    return data


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, Server]]:
    """A server on each engine; on the one in memory threads read, on the others processes of their own."""
    engine: Engine
    if request.param == "sqlite":
        engine = SqliteEngine(request.getfixturevalue("tmp_path") / "served.db")
    elif request.param == "postgres":
        make: Callable[[], str] = request.getfixturevalue("postgres_database")
        engine = PostgresEngine(make())
    else:
        engine = InMemoryEngine()
    app = App(engine, Open("default", "http"), clock=SystemClock(), policies=registry(()), endpoints=endpoints())
    assert (app.reads.workers is None) == (request.param == "memory")
    with Server(app) as server:
        yield engine, server
    engine.close()


def test_verifying_says_how_far_it_is(served: tuple[Engine, Server]) -> None:
    """Progress begins at nothing, only grows and reaches the whole; the result is the answer of the plain call."""
    engine, server = served
    fill(engine)
    plain = server.call("GET", "/v1/verify?deep=true", timeout=60).json
    events = follow(server, "/v1/verify?deep=true")
    assert [name for name, _ in events[:-1]] == ["progress"] * (len(events) - 1)
    assert events[-1] == ("result", plain)
    steps = [data for _, data in events[:-1]]
    assert {(step["total"], step["what"]) for step in steps} == {(400, "entries")}
    reached = [step["done"] for step in steps]
    assert reached == sorted(set(reached))
    assert reached[-1] == 400


def test_whoever_goes_away_stops_the_work(served: tuple[Engine, Server]) -> None:
    """A follower who closes the connection ends the read at once: its place is free, and its process is gone."""
    engine, server = served
    fill(engine)
    turns, elsewhere = server.app.turns["heavy_reads"], server.app.reads.workers
    with following(server):
        assert turns.running == 1
        alive = set() if elsewhere is None else set(elsewhere.alive)
        assert len(alive) == (elsewhere is not None)
    eventually(lambda: turns.running == 0)
    eventually(lambda: server.app.threads["heavy"].busy == 0)
    eventually(lambda: all(worker.process.poll() is not None for worker in alive))
    assert follow(server, "/v1/verify")[-1][1]["sound"] is True


def test_who_reads_nothing_gives_the_place_to_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that nobody reads ends while others wait for its place, however little it has to say."""
    monkeypatch.setattr(streams, "STEP_SECONDS", 0.01)
    verify = next(route for route in ROUTES if route.verb == "verify")
    pause, asked = threading.Event(), []

    def first_for_ever(past: Any, **given: Any) -> Any:
        asked.append(given)
        while len(asked) == 1:
            cancellation.check()
            pause.wait(0.01)
        return verify.answer(past, **given)

    app = App(
        InMemoryEngine(),
        Open("default", "http"),
        clock=SystemClock(),
        policies=registry(()),
        limits=Limits(take_seconds=0.3, read_seconds=20),
        routes=(replace(verify, answer=first_for_ever),),
    )
    with Server(app) as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /v1/verify HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        eventually(lambda: app.measures.streams["progress"] == 1)
        assert server.call("GET", "/v1/verify", timeout=60).status == 200
        assert app.measures.streams["progress"] == 0
        connection.close()


def test_a_place_is_free_before_the_answer_was_taken(engine: SqliteEngine) -> None:
    """A heavy read that is done keeps no place, whether anybody reads its answer or not."""
    app = App(engine, Open("default", "http"), clock=SystemClock(), policies=registry(()), routes=ROUTES[:1])
    caller, job = Caller("default", "http"), Job("verify", lambda *_: 7, "default", "http", {})

    async def ask() -> None:
        async with app.reads.reading(caller, lambda: 7, job) as reading:
            assert app.turns["heavy_reads"].running == 1
            assert await reading == 7
            await asyncio.sleep(0)
            assert app.turns["heavy_reads"].running == 0

    asyncio.run(ask())
    app.close()


def test_a_read_takes_as_long_as_it_is_followed(start: Start, engine: SqliteEngine) -> None:
    """The time that other reads have does not end one that is followed; the plain call is still cut off."""
    fill(engine)
    server = start(read_seconds=0.5)
    assert server.call("GET", "/v1/prove-order?shuffles=40", timeout=60).status == 503
    for _ in range(60):  # the call that was cut off gives its place back once its process has stopped
        events = follow(server, "/v1/prove-order?shuffles=40")
        if events[-1][0] == "result":
            break
        assert events[-1][1]["code"] == "unavailable"
    assert (events[-1][0], events[-1][1]["shuffles"]) == ("result", 40)
    assert events[-2] == ("progress", {"done": 40, "total": 40, "what": "orders"})


def test_what_is_wrong_is_said_before_the_stream_or_as_its_last_event(
    start: Start, engine: SqliteEngine, keyring: Keyring
) -> None:
    """No key and no grant are problem documents with their status; what goes wrong later is the event `problem`."""
    fill(engine, "lending", 20)
    _, writer = keyring.create("lending", "a", ["write"])
    _, reader = keyring.create("lending", "a", ["read"])
    server = start(keyring)
    for key, status in ((None, 401), (writer, 403)):
        answer = server.call("GET", "/v1/verify", headers=EVENTS, key=key)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert server.call("GET", "/v1/verify?depp=1", headers=EVENTS, key=reader).status == 400
    [(name, problem)] = follow(server, "/v1/prove-order?shuffles=0", reader)
    plain = server.call("GET", "/v1/prove-order?shuffles=0", key=reader)
    assert name == "problem"
    assert {**problem, "instance": ""} == {**plain.json, "instance": ""}
    assert (problem["status"], problem["code"]) == (400, "refused")


def test_a_follower_whose_key_is_revoked_gets_no_result(
    start: Start, engine: SqliteEngine, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is looked at while the read goes on; once it is revoked the stream ends with a problem."""
    monkeypatch.setattr(streams, "ALLOWED_SECONDS", 0.1)
    fill(engine, "lending")
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    with following(server, key=secret) as connection:
        keyring.revoke(key.id)
        rest = rest_of(connection)
    assert b"event: problem" in rest
    assert b'"status":401' in rest
    assert b"event: result" not in rest
    eventually(lambda: server.app.turns["heavy_reads"].running == 0)


def test_a_worker_that_dies_is_told_of_to_who_follows(start: Start, engine: SqliteEngine) -> None:
    """The follower of a read whose process ended is told so in the last event."""
    fill(engine)
    server = start()
    assert server.app.reads.workers is not None
    with following(server) as connection:
        next(iter(server.app.reads.workers.alive)).kill()
        rest = rest_of(connection)
    assert b"event: problem" in rest
    assert b'"status":503' in rest


def test_a_server_that_ends_tells_who_follows(engine: SqliteEngine) -> None:
    """A server that shuts down ends the stream with a problem instead of waiting for the read."""
    fill(engine)
    app = App(engine, Open("default", "http"), clock=SystemClock(), policies=registry(()))
    with Server(app) as server, following(server) as connection:
        server._loop.call_soon_threadsafe(server._serving.stop)
        assert b"event: problem" in rest_of(connection)


def test_verbs_that_tell_are_heavy_and_plain_json_stays_the_rule(server: Server, engine: SqliteEngine) -> None:
    """Every verb that tells reads and is always heavy; who prefers JSON gets it, and a head has no body."""
    fill(engine, count=3)
    reading = {route.verb for route in ROUTES if not route.writes}
    assert set(heavy_reads.TELLING) <= heavy_reads.ALWAYS & reading
    for accept in ("*/*", "application/json", "application/json, text/event-stream;q=0.5"):
        answer = server.call("GET", "/v1/verify", headers={"Accept": accept})
        assert (answer.headers["content-type"], answer.json["entries"]) == ("application/json", 3)
    head = server.call("HEAD", "/v1/verify", headers=EVENTS)
    assert (head.status, head.headers["content-type"], head.body) == (200, "text/event-stream", b"")


def test_steps_are_told_seldom() -> None:
    """Of many steps only the first, the last and one every so often are passed on."""
    told: list[tuple[int, int]] = []
    tell = seldom(lambda done, whole: told.append((done, whole)), 3_600.0)
    for done in range(1_001):
        tell(done, 1_000)
    assert told == [(0, 1_000), (1_000, 1_000)]

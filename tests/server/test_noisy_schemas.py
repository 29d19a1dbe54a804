"""A tenant that sends the worst schemas and values it can does not keep another from being answered."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
from tests.state.test_schema_limit import export
from tests.state.test_schema_subset import BOMBS

from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import KEYS_TENANT, Keyring

CALLS = 150
"""How many answers tell how fast the neighbour is served while nobody else asks."""
SLOW = 2
"""How many times as long as the slowest of those an answer takes that counts as slow."""
SECONDS = 1
"""How long answers in a row may be slow, in seconds that the server works: other load does not stretch those."""

WIDE = {"properties": {"x": {"items": {"allOf": [{"minLength": 1}] * 190}}}}
UNIQUE = {"properties": {"x": {"uniqueItems": True, "items": {"uniqueItems": True}}}}
LONG = {"properties": {"x": {"items": {"not": {"pattern": "a(?:[ab]?){60}c"}}}}}


class Client:
    """A connection of one key."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request and return its status and answer."""
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._connection.getresponse()
        data = response.read()
        return response.status, json.loads(data) if data else None


def worked(pid: int) -> float:
    """Return for how long a process has run; where the system does not tell, how late it is."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.perf_counter()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Client, Client, int]]:
    """A noisy tenant and a quiet one, at a server in a process of its own."""
    db = tmp_path / "served.db"
    engine, clock = SqliteEngine(db), SystemClock()
    keyring = Keyring(Ledger(engine, tenant=KEYS_TENANT, agent="operator", clock=clock, policies=registry(())), clock)
    keys = [keyring.create(name, "agent", ["manage", "read", "write"])[1] for name in ("noisy", "quiet")]
    engine.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    code = "import sys; from woodrat.cli.main import main; sys.exit(main())"
    words = ["--db", str(db), "serve", "--port", str(port)]
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.DEVNULL, env=os.environ)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "the server ended by itself"
                threading.Event().wait(0.05)
        yield Client(port, keys[0]), Client(port, keys[1]), process.pid
    finally:
        process.kill()
        process.wait(30)


def noise(client: Client) -> None:
    """Register bombs, bring one in with a log, and send values that are as costly to check as may be."""
    for number, bomb in enumerate(BOMBS.values()):
        status, _ = client.call("POST", "/v1/schemas", {"schema": bomb, "entity_type": f"bomb_{number}"})
        assert status == 400
    entries = [json.loads(line) for line in export().splitlines()]
    assert client.call("POST", "/v1/log", {"entries": entries})[0] == 200
    assert "problem" in client.call("GET", "/v1/entities/thing/1")[1]
    for kind, document in (("wide", WIDE), ("unique", UNIQUE), ("long", LONG)):
        assert client.call("POST", "/v1/schemas", {"schema": document, "entity_type": kind})[0] == 200
    costly: list[tuple[str, Any]] = [
        ("wide", ["a"] * 1_000),
        ("wide", [""] * 1_000),
        ("wide", ["a"] * 100_000),
        ("unique", list(range(100_000))),
        ("unique", [[n + 0.5 for n in range(15)]] * 1_000),
        ("long", ["abbabaaabbbaabab" * 60] * 100),
    ]
    for number in range(4):
        for kind, value in costly:
            record = {"entity_type": kind, "id": str(number), "x": value}
            assert client.call("POST", "/v1/store", {"records": [record]})[0] in (200, 400)


def longest_slow(calls: list[tuple[float, float, float]], limit: float) -> float:
    """Return for how long the server worked, at most, while answers in a row were slow."""
    longest, since = 0.0, None
    for took, begun, ended in calls:
        if took <= limit:
            since = None
        else:
            since = begun if since is None else since
            longest = max(longest, ended - since)
    return longest


def test_a_neighbour_is_not_kept_waiting(served: tuple[Client, Client, int]) -> None:
    """While bombs are refused and costly values are checked, no second passes in which another tenant is slow."""
    noisy, quiet, pid = served
    turns = iter(range(10_000_000))

    def ask() -> tuple[float, float, float]:
        number = next(turns)
        start, begun = worked(pid), time.perf_counter()
        record = {"entity_type": "memo", "id": str(number), "text": "quiet"}
        assert quiet.call("POST", "/v1/store", {"records": [record]})[0] == 200
        assert quiet.call("GET", f"/v1/entities/memo/{number}")[0] == 200
        return time.perf_counter() - begun, start, worked(pid)

    for _ in range(20):
        ask()
    alone = [ask()[0] for _ in range(CALLS)]
    limit = SLOW * quantiles(alone, n=20)[-1]
    failed: list[BaseException] = []

    def make_noise() -> None:
        try:
            noise(noisy)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=make_noise)
    thread.start()
    calls = []
    while thread.is_alive():
        calls.append(ask())
    thread.join()
    if failed:
        raise failed[0]
    assert longest_slow(calls, limit) <= SECONDS, (limit, calls)

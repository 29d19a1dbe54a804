"""A noisy neighbour: one tenant's key asks for all it can, and another tenant's calls go on as if it were alone.

The server and the noise are processes of their own. What is compared is the other tenant's median time in each second
with its own median while nobody else calls; no time is asserted by itself.
"""

from __future__ import annotations

import gzip
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pytest
from tests.faults.test_serving import free_port, serving
from tests.server.test_audit import eventually

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import KEYS_TENANT, Keyring

SECONDS = 5
"""How long the neighbour is noisy, after a first second in which the server may have to get used to it."""
CALLERS = 16
"""How many calls it has under way at once."""
TRIES = 6
"""How often it is tried: what else this machine does may slow anybody now and then, a fault slows them every time."""
SLOWED_MAX = 2.0
"""How many times its own time the other tenant may be slowed to, for more than a second."""
MEMORY_KIBIBYTES_MAX = 700_000
"""How much memory the server may take at most, whatever it is sent."""

PROVE: tuple[str, str, dict[str, str]] = ("GET", "/v1/prove-order?shuffles=1000", {})
BOMB = ("POST", "/v1/diff-against", {"Content-Type": "application/json", "Content-Encoding": "gzip"})
LONG = ("POST", "/v1/diff-against", {"Content-Type": "application/json"})

NOISE = """
import http.client, json, sys, threading, time
port, key, callers, method, path, headers = json.loads(sys.argv[1])
body = sys.stdin.buffer.read(int(sys.argv[2]))
told = {}
def call():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    while True:
        try:
            connection.request(method, path, body or None, {**headers, "Authorization": "Bearer " + key})
            response = connection.getresponse()
            response.read()
            status = response.status
        except Exception as error:
            status = type(error).__name__
            connection.close()
        told[status] = told.get(status, 0) + 1
        time.sleep(0.2 if status == 429 else 0.02)
for _ in range(callers):
    threading.Thread(target=call, daemon=True).start()
sys.stdin.buffer.read()
print(json.dumps(told))
"""


class Places:
    """A database with two tenants, and a key for each."""

    def __init__(self, folder: Path) -> None:
        self.db = folder / "served.db"
        for tenant, count in (("noisy", 1_500), ("quiet", 20)):
            with woodrat.open(self.db, tenant=tenant) as ledger:
                ledger.store([{"entity_type": "thing", "id": str(number), "n": number} for number in range(count)])
        self.engine, clock = SqliteEngine(self.db), SystemClock()
        ledger = Ledger(self.engine, tenant=KEYS_TENANT, agent="t", clock=clock, policies=registry(()))
        self.keyring = Keyring(ledger, clock)
        _, self.quiet_key = self.keyring.create("quiet", "b", ["read", "write"])


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    found = Places(tmp_path)
    yield found
    found.engine.close()


@contextmanager
def noise(port: int, key: str, call: tuple[str, str, dict[str, str]], body: bytes = b"") -> Iterator[dict[str, int]]:
    """Make noise meanwhile; what was answered is there afterwards, by status."""
    told: dict[str, int] = {}
    words = [json.dumps([port, key, CALLERS, *call]), str(len(body))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", NOISE, *words], **pipes)  # type: ignore[call-overload]
    try:
        process.stdin.write(body)
        process.stdin.flush()
        yield told
        out, _ = process.communicate(timeout=20)
        told.update(json.loads(out or "{}"))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)


class Bystander:
    """Another tenant, who reads and writes plainly, one call after the other."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._number = 0

    def _call(self, method: str, path: str, body: Any = None) -> float:
        sent = None if body is None else json.dumps(body)
        began = perf_counter()
        try:
            self._connection.request(method, path, sent, self._headers)
            response = self._connection.getresponse()
            response.read()
        except OSError:
            self._connection.close()
            return inf
        return perf_counter() - began if response.status == 200 else inf

    def second(self) -> tuple[float, float, float]:
        """Call for about a second; return the median times of a look, a history and a write (for ever if it fails)."""
        times: tuple[list[float], ...] = ([], [], [])
        end = perf_counter() + 1
        while perf_counter() < end:
            self._number += 1
            times[0].append(self._call("GET", f"/v1/entities/thing/{self._number % 20}"))
            times[1].append(self._call("GET", f"/v1/history/thing/{self._number % 20}"))
            record = {"entity_type": "thing", "id": "w", "n": self._number}
            times[2].append(self._call("POST", "/v1/store", {"records": record}))
        return median(times[0]), median(times[1]), median(times[2])


def slowed(alone: list[tuple[float, float, float]], noisy: list[tuple[float, float, float]]) -> list[float]:
    """Return for each noisy second how many times its own time the worst of the other tenant's calls took."""
    own = [max(each) for each in zip(*alone, strict=True)]
    return [max(took / usual for took, usual in zip(second, own, strict=True)) for second in noisy]


def is_kept_up(factors: list[float]) -> bool:
    """Return whether somebody was slowed beyond the bound for more than a second: in two seconds in a row."""
    return any(min(pair) > SLOWED_MAX for pair in pairwise(factors))


def memory(pid: int) -> int:
    """Return how much memory a process has had at most, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def watched(
    port: int, places: Places, call: tuple[str, str, dict[str, str]], body: bytes = b""
) -> tuple[list[float], dict[str, int]]:
    """Return how the other tenant was slowed second by second, and what the noise was answered."""
    key, secret = places.keyring.create("noisy", "a", ["read"])
    bystander = Bystander(port, places.quiet_key)
    bystander.second()
    alone = [bystander.second() for _ in range(3)]
    with noise(port, secret, call, body) as told:
        bystander.second()
        noisy = [bystander.second() for _ in range(SECONDS)]
        if is_kept_up(slowed(alone, noisy)):
            return slowed(alone, noisy), told
        places.keyring.revoke(key.id)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

        def refused() -> bool:
            connection.request("GET", "/v1/position", headers={"Authorization": f"Bearer {secret}"})
            response = connection.getresponse()
            response.read()
            return response.status == 401

        eventually(refused, tries=100)  # some seconds, where a minute would be too long
        connection.close()
    alone.append(bystander.second())
    return slowed(alone, noisy), told


def bomb() -> bytes:
    """Return 59 KB of gzip that come to 30 million values."""
    return gzip.compress(b'{"known":[' + b"0," * 30_000_000 + b"0]}")


def long() -> bytes:
    """Return a body that is as long, and has as many values, as a read may send."""
    return b'{"known":{' + b",".join(b'"%d":[1,2,3]' % number for number in range(48_000)) + b"}}"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["heavy reads", "packed bodies", "long bodies"])
def test_a_noisy_neighbour_slows_nobody(places: Places, kind: str) -> None:
    """Sixteen calls at once, of the worst kinds a read-only key has: others go on, and the key can be revoked."""
    call, body = {"heavy reads": (PROVE, b""), "packed bodies": (BOMB, bomb()), "long bodies": (LONG, long())}[kind]
    port = free_port()
    seen = []
    with serving(places.db, port) as process:
        for _ in range(TRIES):
            factors, told = watched(port, places, call, body)
            seen.append(factors)
            if not is_kept_up(factors):
                break
        assert memory(process.pid) < MEMORY_KIBIBYTES_MAX
    assert not is_kept_up(seen[-1]), seen
    assert told.get("429"), told


UNCAPPED = """
import sys
from woodrat.server import heavy_reads, limits
heavy_reads.ALWAYS = frozenset()
plain = limits.Limits
limits.Limits = lambda **given: plain(**given, reads=limits.Places(99, 99, 99, 99))
from woodrat.cli.main import main
sys.exit(main())
"""
"""A server whose heavy reads are threads like any others, as many as come."""


def test_a_heavy_read_without_a_cap_is_caught(places: Places) -> None:
    """The planted fault: where heavy reads share the interpreter, and as many run as come, the neighbour is slowed."""
    port = free_port()
    with serving(places.db, port, UNCAPPED):
        factors, _ = watched(port, places, PROVE)
    assert is_kept_up(factors), factors

"""A noisy neighbour: one tenant's key asks for all it can, and another tenant's calls go on as if it were alone.

The server and the noise are processes of their own, and take turns: after some rounds of the other tenant the noise has
another burst of calls. Threads of the serving process share one interpreter, so the other tenant is slowed by
whatever that process computes meanwhile. What is compared is therefore the processor time that the serving process
takes for a spell of the other tenant's rounds, with the noise and alone. A process that waits takes none, so the spell
is also compared by the clock, with the same spell alone and a wide bound: a busy machine slows both.
"""

from __future__ import annotations

import gzip
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import mean
from time import CLOCK_MONOTONIC, clock_gettime
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

SPELLS = 3
"""For how many spells the neighbour is noisy, after a first one in which the server may have to get used to it."""
ROUNDS = 100
"""How many rounds a spell has; in each the other tenant looks once, reads one history and writes once."""
ROUNDS_PER_BURST = 20
"""After how many rounds the noise may send another burst."""
CALLERS = 16
"""How many calls a burst has; the noise has as many under way at once."""
TRIES = 6
"""How often it is tried: a process that other work pushes off the processor's caches needs more time for the same."""
SLOWED_MAX = 2.0
"""How many times its own share of the serving process a spell of the other tenant may take."""
WAITED_MAX = 4.0
"""How many times as long as alone a spell may take by the clock."""
MEMORY_KIBIBYTES_MAX = 700_000
"""How much memory the server may take at most, whatever it is sent."""

PROVE: tuple[str, str, dict[str, str]] = ("GET", "/v1/prove-order?shuffles=1000", {})
PROVE_LESS: tuple[str, str, dict[str, str]] = ("GET", "/v1/prove-order?shuffles=1", {})
BOMB = ("POST", "/v1/diff-against", {"Content-Type": "application/json", "Content-Encoding": "gzip"})
LONG = ("POST", "/v1/diff-against", {"Content-Type": "application/json"})

NOISE = """
import http.client, json, sys, threading
port, key, callers, method, path, headers = json.loads(sys.argv[1])
body = sys.stdin.buffer.read(int(sys.argv[2]))
told = {}
turns = threading.Semaphore(callers)
under_way = threading.Event()
def call():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    while True:
        turns.acquire()
        try:
            connection.request(method, path, body or None, {**headers, "Authorization": "Bearer " + key})
            under_way.set()
            response = connection.getresponse()
            response.read()
            status = response.status
        except Exception as error:
            status = type(error).__name__
            connection.close()
        told[status] = told.get(status, 0) + 1
for _ in range(callers):
    threading.Thread(target=call, daemon=True).start()
under_way.wait()
print(flush=True)
while sys.stdin.buffer.read(1):
    turns.release(callers)
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


class Noise:
    """The noisy neighbour, a process with many calls under way; a context manager."""

    def __init__(self, port: int, key: str, call: tuple[str, str, dict[str, str]], body: bytes = b"") -> None:
        self.answers: dict[str, int] = {}
        """How often each status was answered; known in the end."""
        self._words = [json.dumps([port, key, CALLERS, *call]), str(len(body))]
        self._body = body

    def __enter__(self) -> Noise:
        command = [sys.executable, "-c", NOISE, *self._words]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(self._body)
        self._process.stdin.flush()
        self._process.stdout.readline()
        return self

    def burst(self) -> None:
        """Let each of its callers call once more."""
        assert self._process.stdin is not None
        self._process.stdin.write(b".")
        self._process.stdin.flush()

    def __exit__(self, *error: object) -> None:
        try:
            out, _ = self._process.communicate(timeout=20)
            self.answers.update(json.loads(out or "{}"))
        finally:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait(20)


class Bystander:
    """Another tenant, who reads and writes plainly, one call after the other."""

    def __init__(self, port: int, server: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._clock = (~server << 3) | 2  # as the kernel numbers the clock of a process
        self._number = 0

    def _call(self, method: str, path: str, body: Any = None) -> bool:
        sent = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, sent, self._headers)
            response = self._connection.getresponse()
            response.read()
        except OSError:
            self._connection.close()
            return False
        return response.status == 200

    def spell(self, noise: Noise | None = None, alone: tuple[float, float] = (inf, inf)) -> tuple[float, float]:
        """Call for a spell; return the processor time that the serving process took, and the time by the clock.

        Both are without end if a call fails. The spell ends early once it is slowed beyond a bound.
        """
        clocks = self._clock, CLOCK_MONOTONIC
        before = [clock_gettime(clock) for clock in clocks]
        took = (0.0, 0.0)
        for _ in range(ROUNDS):
            self._number += 1
            if noise is not None and self._number % ROUNDS_PER_BURST == 0:
                noise.burst()
            record = {"entity_type": "thing", "id": "w", "n": self._number}
            served = (
                self._call("GET", f"/v1/entities/thing/{self._number % 20}")
                and self._call("GET", f"/v1/history/thing/{self._number % 20}")
                and self._call("POST", "/v1/store", {"records": record})
            )
            if not served:
                return inf, inf
            took = clock_gettime(clocks[0]) - before[0], clock_gettime(clocks[1]) - before[1]
            if slowed(took, alone) > 1:
                break
        return took


def slowed(took: tuple[float, float], alone: tuple[float, float]) -> float:
    """Return how a spell compares with its bounds: beyond 1 it is slowed."""
    return max(took[0] / (alone[0] * SLOWED_MAX), took[1] / (alone[1] * WAITED_MAX))


def is_kept_up(factors: list[float]) -> bool:
    """Return whether somebody was slowed beyond the bound for more than a spell: in two in a row."""
    return any(min(pair) > 1 for pair in pairwise(factors))


def memory(pid: int) -> int:
    """Return how much memory a process has had at most, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def watched(
    port: int, server: int, places: Places, call: tuple[str, str, dict[str, str]], body: bytes = b""
) -> tuple[list[float], dict[str, int]]:
    """Return how the other tenant was slowed spell by spell, and what the noise was answered."""
    key, secret = places.keyring.create("noisy", "a", ["read"])
    bystander = Bystander(port, server, places.quiet_key)
    bystander.spell()
    spells = [bystander.spell() for _ in range(2)]
    alone = mean(spell[0] for spell in spells), mean(spell[1] for spell in spells)
    factors: list[float] = []
    with Noise(port, secret, call, body) as noise:
        bystander.spell(noise, alone)
        while len(factors) < SPELLS:
            factors.append(slowed(bystander.spell(noise, alone), alone))
            if is_kept_up(factors):
                return factors, noise.answers
        places.keyring.revoke(key.id)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

        def refused() -> bool:
            connection.request("GET", "/v1/position", headers={"Authorization": f"Bearer {secret}"})
            response = connection.getresponse()
            response.read()
            return response.status == 401

        eventually(refused, tries=100)  # some seconds, where a minute would be too long
        connection.close()
    return factors, noise.answers


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
            factors, told = watched(port, process.pid, places, call, body)
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
    with serving(places.db, port, UNCAPPED) as process:
        factors, _ = watched(port, process.pid, places, PROVE_LESS)
    assert is_kept_up(factors), factors


WAITING = """
import sys, time
from woodrat.server import reads
is_heavy = reads.ReadExecutor._is_heavy
async def wait(*given):
    time.sleep(0.2)
    return await is_heavy(*given)
reads.ReadExecutor._is_heavy = wait
from woodrat.cli.main import main
sys.exit(main())
"""
"""A server whose loop waits for every heavy read that is asked for."""


def test_a_loop_that_waits_is_caught(places: Places) -> None:
    """The planted fault: where the loop waits, nobody computes, and the neighbour is slowed all the same."""
    port = free_port()
    with serving(places.db, port, WAITING) as process:
        factors, _ = watched(port, process.pid, places, PROVE)
    assert is_kept_up(factors), factors

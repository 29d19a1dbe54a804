"""`python -m bench.serving`: the server against its own limits, with a load generator in a process of its own.

One server, with a key, serves all of it. Each row sets a way through HTTP against another, in turns: writes against the
same way without the append, plus a raw commit of the same bytes; bulk lines against one `store` of the library; reads
against a route that answers a constant; and a client by itself against the same one amid requests that never end.

`--soak 600` does nothing but read and write for ten minutes, and tells how much memory the server takes.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import woodrat
from bench import place, raw, records
from bench.http_load import Client, Load, Requests, ServerProcess, Turn, summary
from bench.served import AGENT, CONSTANT, PLANNED, TENANT
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import KEYS_TENANT, Keyring

SECONDS = 1.0
"""How long one side of a turn is measured."""
TURNS = 5
"""How often each side is measured."""
CLIENTS = (1, 8, 32)
ENTITIES = 1_000
"""How many entities are written to and read."""
BULK = 10_000
"""How many records one bulk call has."""
BULK_TURNS = 3
HALF_SENT = 60
"""How many requests never end, beside a client that wants an answer."""
SOAK_CLIENTS = 16
"""How many clients read and as many write while memory is watched."""
FLAT = 1.1
"""What the memory of the last minute may be of that at half the time, when what is kept at hand has been filled."""
PARTS = ("writes", "reads", "bulk", "slow")


class Row(NamedTuple):
    """One line of the table."""

    title: str
    """What is compared."""
    value: float
    """The ratio."""
    goal: float | None
    """What it is to reach, or to stay at or below; none where it is only watched."""
    more_is_better: bool
    """Whether the goal is to be reached."""
    sides: Sequence[tuple[str, str]]
    """What was measured of each side."""

    @property
    def met(self) -> bool:
        """Whether the goal is met, if there is one."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal

    def lines(self) -> Iterator[str]:
        """Yield the row as it is printed."""
        sign = "≥" if self.more_is_better else "≤"
        goal = "" if self.goal is None else f"  {sign} {self.goal:g}×  {'met' if self.met else 'missed'}"
        yield f"{self.title:<58} {self.value:>6.2f}×{goal}"
        for name, told in self.sides:
            yield f"    {name:<26} {told}"


class Server(ServerProcess):
    """A server in a process of its own, with one key."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.db = folder / "served.db"
        self.source = records.Records("serving")
        self.people = self.source.batch(range(ENTITIES)).records
        self._number = 0
        engine = SqliteEngine(self.db)
        clock, policies = SystemClock(), registry(())
        Ledger(engine, tenant=TENANT, agent=AGENT, clock=clock, policies=policies).store(self.people)
        keys = Ledger(engine, tenant=KEYS_TENANT, agent=AGENT, clock=clock, policies=policies)
        self._key = Keyring(keys, clock).create(TENANT, AGENT, ["*"])[1]
        engine.close()

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """Serve while it lasts."""
        with self.running([sys.executable, "-m", "bench.served", str(self.db), str(self.port)]):
            yield self

    def get(self, path: str) -> bytes:
        """Return a request that reads."""
        head = "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n"
        return head.format(path, self._key).encode()

    def post(self, path: str, body: bytes, media: str = "application/json") -> bytes:
        """Return a request that writes."""
        head = "POST {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\n"
        head += "Content-Length: {}\r\n\r\n"
        return head.format(path, self._key, media, len(body)).encode() + body

    def _next(self) -> int:
        self._number += 1
        return self._number

    def storing(self, path: str = "/v1/store") -> Requests:
        """Return what makes requests to store a record about an entity that exists, no two of them alike."""

        def request() -> bytes:
            number = self._next()
            record = {**self.people[number % ENTITIES], "note": f"n{number}"}
            return self.post(path, json.dumps({"records": record}).encode())

        return request

    def showing(self, path: str = "/v1/entities/") -> Requests:
        """Return what makes requests to show an entity, each in turn."""
        sent = [self.get(path + records.ref(number)) for number in range(ENTITIES)]
        return lambda: sent[self._next() % ENTITIES]

    def take_turns(self, clients: int, sides: Mapping[str, Requests], seconds: float, turns: int) -> dict[str, Load]:
        """Measure several kinds of requests, one after the other, again and again."""
        measured: dict[str, list[Turn]] = {name: [] for name in sides}
        for _ in range(turns):
            for name, request in sides.items():
                measured[name].append(self.load(clients, request, seconds))
        return {name: summary(each) for name, each in measured.items()}


def raw_commit_ms(folder: Path, server: Server, times: int = 200) -> float:
    """Return how long a raw commit takes of the bytes that one record is in the log; the median."""
    made = raw.Raw(folder / f"raw-{time.monotonic_ns()}.db", raw.page_bytes(server.db))
    rows = server.source.batch(range(times)).rows()
    took = []
    for row in rows:
        began = time.perf_counter()
        made.add(row)
        took.append(time.perf_counter() - began)
    made.close()
    return 1_000 * median(took[times // 10 :])


def writes(folder: Path, server: Server, seconds: float, turns: int) -> Iterator[Row]:
    """Durable, acknowledged writes of one record each, against the same without the append."""
    for clients in CLIENTS:
        commits = [raw_commit_ms(folder, server)]
        sides = {"store": server.storing(), "without the append": server.storing(PLANNED)}
        found = server.take_turns(clients, sides, seconds, turns)
        commits.append(raw_commit_ms(folder, server))
        ours, limit = found["store"], found["without the append"]
        told = [(name, str(load)) for name, load in found.items()]
        if clients == 1:
            commit = median(commits)
            told.append(("a raw commit of its bytes", f"{commit:.2f} ms"))
            title = "store, 1 client: p50 / (without the append + a raw commit)"
            yield Row(title, ours.p50_ms / (limit.p50_ms + commit), 2, False, told)
        else:
            ratio = ours.calls_per_second / limit.calls_per_second
            goal = 0.75 if clients == max(CLIENTS) else None
            yield Row(f"store, {clients} clients: calls / without the append", ratio, goal, True, told)
        goal = 4 if clients == max(CLIENTS) else None
        yield Row(f"store, {clients} clients: p99 / p50", ours.p99_ms / ours.p50_ms, goal, False, ())


def reads(server: Server, seconds: float, turns: int) -> Iterator[Row]:
    """Reads of the present, against a route that answers a constant."""
    for clients in CLIENTS:
        sides = {"show": server.showing(), "a constant": server.showing(CONSTANT)}
        found = server.take_turns(clients, sides, seconds, turns)
        ratio = found["show"].calls_per_second / found["a constant"].calls_per_second
        told = [(name, str(load)) for name, load in found.items()]
        yield Row(f"show, {clients} clients: calls / a constant", ratio, 0.8, True, told)


def bulk(folder: Path, server: Server) -> Iterator[Row]:
    """Many records as lines in one call, against one call of the library, which parses nothing."""
    through, here = [], []
    with woodrat.open(folder / "library.db", agent=AGENT) as ledger:
        ledger.store(server.people)
        for turn in range(BULK_TURNS):
            start = ENTITIES + turn * BULK
            said = server.source.batch(range(start, start + BULK)).records
            lines = "\n".join(json.dumps(record) for record in said).encode()
            client = Client(server.port)  # a new one: the server does not wait for long between two requests
            through.append(client.ask(server.post("/v1/store", lines, "application/x-ndjson")))
            client.socket.close()
            began = time.perf_counter()
            ledger.store(said)
            here.append(time.perf_counter() - began)
    sides = [("lines", through), ("the library", here)]
    told = [(name, f"{BULK / median(times):,.0f} records/s") for name, times in sides]
    yield Row(f"{BULK:,} records as lines / store of them", median(here) / median(through), 0.7, True, told)


@contextmanager
def half_sent(server: Server, count: int = HALF_SENT) -> Iterator[None]:
    """Hold requests that do not end: one half of them in the middle of the headers, the others of the body."""
    whole = server.post("/v1/store", json.dumps({"records": server.people[0]}).encode())
    held = []
    for number in range(count):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(whole[:40] if number % 2 else whole[: len(whole) - 40])
        held.append(connection)
    try:
        yield
    finally:
        for connection in held:
            connection.close()


def slow(server: Server, seconds: float, turns: int) -> Iterator[Row]:
    """One client, alone and amid requests that do not end."""
    sides: dict[str, list[float]] = {"alone": [], f"amid {HALF_SENT} half-sent requests": []}
    alone, amid = sides.values()
    request = server.showing()
    for _ in range(turns):
        alone += server.load(1, request, seconds).times
        with half_sent(server):
            amid += server.load(1, request, seconds).times
    told = [(name, f"p50 {1_000 * median(times):.2f} ms") for name, times in sides.items()]
    yield Row("show, 1 client: p50 amid half-sent requests / alone", median(amid) / median(alone), 2, False, told)


def soak(server: Server, seconds: int, tell: Callable[[str], None]) -> bool:
    """Read and write for a long time; tell the memory after every minute, and return whether it stayed flat."""
    several = [Client(server.port) for _ in range(2 * SOAK_CLIENTS)]
    show, store = server.showing(), server.storing()
    ask = {client: (show if number % 2 else store) for number, client in enumerate(several)}
    memory: list[float] = []
    counts = {show: 0, store: 0}
    with selectors.DefaultSelector() as waiting:
        for client in several:
            waiting.register(client.socket, selectors.EVENT_READ, client)
            client.send(ask[client]())
        began = time.perf_counter()
        while len(memory) < max(2, seconds // 60):
            for key, _ in waiting.select(1):
                if key.data.receive():
                    request = ask[key.data]
                    counts[request] += 1
                    key.data.send(request())
            if time.perf_counter() - began > 60 * (len(memory) + 1):
                memory.append(server.memory_mib())
                size = server.db.stat().st_size / 1_048_576
                told = f"{memory[-1]:6.1f} MiB after {counts[show]:,} reads and {counts[store]:,} writes"
                tell(f"minute {len(memory):>2}: {told}; the file has {size:,.0f} MiB")
    return memory[-1] <= FLAT * memory[len(memory) // 2 - 1]


def measure(folder: Path, parts: Sequence[str], seconds: float, turns: int) -> Iterator[Row]:
    """Yield each row as it comes."""
    with Server(folder).serving() as server:
        if "writes" in parts:
            yield from writes(folder, server, seconds, turns)
        if "reads" in parts:
            yield from reads(server, seconds, turns)
        if "bulk" in parts:
            yield from bulk(folder, server)
        if "slow" in parts:
            yield from slow(server, seconds, turns)


def main() -> int:
    """Measure and print; fail when a goal is missed."""
    parser = argparse.ArgumentParser(prog="bench.serving", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long one side of a turn is measured")
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each side is measured")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts of the table")
    parser.add_argument("--soak", type=int, metavar="SECONDS", help="watch the memory under load instead")
    parser.add_argument("--dir", type=Path, help="where to write; on a disk, or nothing is learnt")
    given = parser.parse_args()
    with place.folder(given.dir) as folder:
        if given.soak is not None:
            with Server(folder).serving() as server:
                flat = soak(server, given.soak, lambda line: print(line, flush=True))
            print("flat" if flat else f"grown by more than {FLAT - 1:.0%} in the second half")
            return 0 if flat else 1
        missed = 0
        for row in measure(folder, given.only, given.seconds, given.turns):
            print("\n".join(row.lines()), flush=True)
            missed += not row.met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

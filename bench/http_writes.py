"""`python3 dev.py bench --http`: what the server's process works for a durable write over HTTP, by number of clients.

The server is the product's own (`woodrat serve`, with a key), in a process of its own. Clients keep their connections
and send one record about an entity that exists, each when it has its last answer. What is counted is the time of the
processor that the server's process took for a call, all its threads together: of `/v1/store`, of `/neotoma/store` with
the same record, and of a bare handler on the same stack that reads the body and answers as many bytes
(`http_floor.py`). Beside it stands what `store` takes in a process without a server.

A ratio is judged against a goal: the server's work of a call to what the library and the bare handler take
together, and that of `/neotoma/store` to that of `/v1/store`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import orjson

import woodrat
from bench import place, records
from bench.http_load import Client, Load, Requests, ServerProcess, Turn, summary
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import KEYS_TENANT, Keyring

CLIENTS = (1, 8, 32, 128)
SECONDS = 2.0
"""How long one side of a turn is measured."""
TURNS = 3
"""How often each side is measured."""
ENTITIES = 1_000
"""How many entities are written to."""
NATIVE, NEOTOMA, FLOOR = "/v1/store", "/neotoma/store", "bare handler"
BATCH = 2_000
"""How many entities are stored at a time before anything is measured."""
LIBRARY_CALLS = 300
"""How many writes the library makes in a turn."""
COST_GOAL: Mapping[int, float] = {1: 1.5, 8: 1.5, 32: 1.5, 128: 1.5}
"""The server's work of a write, to that of the library and the bare handler together, at most."""
NEOTOMA_GOAL = 1.3
"""The work of `/neotoma/store`, to that of `/v1/store`, at most."""
TENANT, AGENT = "default", "bench"


class Row(NamedTuple):
    """What was measured with one number of clients."""

    clients: int
    """How many connections sent."""
    sides: Mapping[str, Load]
    """What each side came to, by its name."""
    library_us: float
    """What a store takes in a process without a server, of the processor."""

    @property
    def cost(self) -> float:
        """The work of a native write, to that of the library and the bare handler together."""
        return self._work(NATIVE) / (self.library_us + self._work(FLOOR))

    @property
    def neotoma(self) -> float:
        """The work of a write at Neotoma's address, to that of a native one."""
        return self._work(NEOTOMA) / self._work(NATIVE)

    @property
    def met(self) -> bool:
        """Whether both goals are met."""
        return self.cost <= COST_GOAL.get(self.clients, 1.5) and self.neotoma <= NEOTOMA_GOAL

    def _work(self, side: str) -> float:
        work = self.sides[side].cpu_us
        assert work is not None, "the system tells"
        return work

    def lines(self) -> Iterator[str]:
        """Yield the row as it is printed."""
        many = "1 client" if self.clients == 1 else f"{self.clients} clients"
        goal = COST_GOAL.get(self.clients, 1.5)
        yield (
            f"{many:<12} work / (library + bare handler) {self.cost:5.2f}× ≤ {goal:g}×   "
            f"/neotoma / native {self.neotoma:5.2f}× ≤ {NEOTOMA_GOAL:g}×   {'met' if self.met else 'missed'}"
        )
        for name, load in self.sides.items():
            yield f"    {name:<16} {load}"
        yield f"    {'library':<16} {self.library_us:,.0f} µs of work each"

    def to_json(self) -> dict[str, object]:
        """Return the row for programs."""
        sides = {name: load._asdict() for name, load in self.sides.items()}
        return {
            "clients": self.clients,
            "cost": self.cost,
            "neotoma": self.neotoma,
            "met": self.met,
            "library_us": self.library_us,
            "sides": sides,
        }


class WriteServer(ServerProcess):
    """The product's server on a ledger with entities and a key."""

    def __init__(self, folder: Path, entities: int = ENTITIES, made: Path | None = None) -> None:
        """`made` is a ledger that has the entities already; it is copied."""
        super().__init__()
        self.db = folder / "served.db"
        if made is not None:
            shutil.copy(made, self.db)
        source = records.Records("http")
        self._records: Sequence[dict[str, object]] = source.batch(range(entities)).records
        self._number = 0
        engine = SqliteEngine(self.db)
        clock, policies = SystemClock(), registry(())
        ledger = Ledger(engine, tenant=TENANT, agent=AGENT, clock=clock, policies=policies)
        for start in range(0, entities if made is None else 0, BATCH):
            ledger.store(self._records[start : start + BATCH])
        keys = Ledger(engine, tenant=KEYS_TENANT, agent=AGENT, clock=clock, policies=policies)
        self.key = Keyring(keys, clock).create(TENANT, AGENT, ["*"])[1]
        engine.close()

    @property
    def command(self) -> list[str]:
        """What starts it."""
        serve = ["serve", "--port", str(self.port), "--db", str(self.db), "--log-level", "error"]
        return [sys.executable, "-m", "woodrat", *serve]

    def record(self) -> dict[str, object]:
        """Return a record about an entity that exists; no two are alike."""
        self._number += 1
        record = self._records[self._number % len(self._records)]
        return {**record, "note": f"n{self._number}"}

    def storing(self, path: str) -> Requests:
        """Return what makes requests that store a record each."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        ).encode()

        def request() -> bytes:
            record = self.record()
            body = orjson.dumps({"entities": [record]} if path == NEOTOMA else {"records": record})
            return head % len(body) + body

        return request


def answer_bytes(server: WriteServer) -> int:
    """Return how long the answer to a native write is."""
    client = Client(server.port)
    client.ask(server.storing(NATIVE)())
    client.socket.close()
    return len(client.body)


def library_us(folder: Path, server: WriteServer, calls: int) -> float:
    """Return what a `store` takes of the processor in this process, its report as JSON included."""
    with woodrat.open(folder / f"library-{time.monotonic_ns()}.db", agent=AGENT) as ledger:
        for _ in range(2):  # the first write of a type also writes its schema
            ledger.store([server.record() for _ in range(ENTITIES)])
        said = [server.record() for _ in range(calls)]
        began = time.process_time()
        for record in said:
            orjson.dumps(ledger.store(record).to_json())
        return (time.process_time() - began) / calls * 1e6


def measure(folder: Path, clients: Sequence[int], seconds: float, turns: int, calls: int) -> Iterator[Row]:
    """Yield each row as it comes."""
    server, floor = WriteServer(folder), ServerProcess()
    with ExitStack() as stack:
        stack.enter_context(server.running(server.command))
        length = str(answer_bytes(server))
        stack.enter_context(floor.running([sys.executable, "-m", "bench.http_floor", str(floor.port), length]))
        native, neotoma = server.storing(NATIVE), server.storing(NEOTOMA)
        sides: Mapping[str, tuple[ServerProcess, Requests]] = {
            NATIVE: (server, native),
            NEOTOMA: (server, neotoma),
            FLOOR: (floor, native),
        }
        for count in clients:
            measured: dict[str, list[Turn]] = {name: [] for name in sides}
            library = []
            for _ in range(turns):
                for name, (process, request) in sides.items():
                    measured[name].append(process.load(count, request, seconds))
                library.append(library_us(folder, server, calls))
            yield Row(count, {name: summary(each) for name, each in measured.items()}, median(library))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; fail when a goal is missed."""
    parser = argparse.ArgumentParser(prog="bench --http", description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS, help="how many connections send at once")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long one side of a turn is measured")
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each side is measured")
    parser.add_argument("--calls", type=int, default=LIBRARY_CALLS, help="how many writes the library makes in a turn")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--dir", type=Path, help="where to write; on a disk, or nothing is learnt")
    options = parser.parse_args(arguments)
    rows = []
    with place.folder(options.dir) as folder:
        for row in measure(folder, options.clients, options.seconds, options.turns, options.calls):
            rows.append(row)
            if not options.json:
                print("\n".join(row.lines()), flush=True)
    if options.json:
        print(json.dumps([row.to_json() for row in rows], indent=2))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

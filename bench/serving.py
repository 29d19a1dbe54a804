"""`python -m bench.serving`: the server against its own limits, with a load generator in a process of its own.

Each row sets a way through HTTP against another in the same run: writes against the same route with the append left out
(`dry_run`), bulk lines against one `store` of the library, reads against a route that answers a constant.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import woodrat
from bench import place, records

SECONDS = 3.0
"""How long each figure is measured."""
CLIENTS = (1, 8, 32)
BULK = 10_000
"""How many records one bulk call has."""


class Load(NamedTuple):
    """What a number of clients got, each sending the next request when it has the last answer."""

    calls_per_second: float
    p50_ms: float
    p99_ms: float


class _Client:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""
        self.sent = 0.0

    def send(self, request: bytes) -> None:
        self.sent = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Take what has arrived; return whether it is a whole answer."""
        self.data += self.socket.recv(262_144)
        head, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return False
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return False
        if not self.data.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server answered {self.data[:400]!r}")
        self.data = b""
        return True


def load(port: int, clients: int, request: Callable[[int], bytes], seconds: float = SECONDS) -> Load:
    """Send requests from many clients for some seconds; the first tenth does not count."""
    several = [_Client(port) for _ in range(clients)]
    number = 0
    with selectors.DefaultSelector() as waiting:
        for client in several:
            waiting.register(client.socket, selectors.EVENT_READ, client)
            client.send(request(number))
            number += 1
        began = time.perf_counter()
        counting, end = began + seconds / 10, began + seconds * 1.1
        took: list[float] = []
        while time.perf_counter() < end:
            for key, _ in waiting.select(1):
                client = key.data
                if client.receive():
                    now = time.perf_counter()
                    if now > counting:
                        took.append(now - client.sent)
                    client.send(request(number))
                    number += 1
        elapsed = time.perf_counter() - counting
    for client in several:
        client.socket.close()
    took.sort()
    return Load(len(took) / elapsed, 1_000 * statistics.median(took), 1_000 * took[int(len(took) * 0.99)])


@contextmanager
def serving(db: Path) -> Iterator[int]:
    """Serve a database in a process of its own; yield the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    words = [sys.executable, "-m", "woodrat", "--db", str(db), "serve", "--port", str(port)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _post(path: str, body: bytes, media: bytes = b"application/json") -> bytes:
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (path.encode(), media, len(body)) + body


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def measure(folder: Path, seconds: float) -> Iterator[tuple[str, str]]:
    """Yield each row as it comes."""
    source = records.Records("serving")
    people = source.batch(range(1_000)).records
    db = folder / "served.db"
    with woodrat.open(db) as ledger:
        ledger.store(people)
    with serving(db) as port:

        def store(number: int, *, dry: bool = False) -> bytes:
            record = {**people[number % len(people)], "note": f"n{number}"}
            return _post("/v1/store", json.dumps({"records": record, **({"dry_run": True} if dry else {})}).encode())

        for clients in CLIENTS:
            ours = load(port, clients, store, seconds)
            limit = load(port, clients, lambda number: store(number, dry=True), seconds)
            yield f"store, {clients} clients", _told(ours)
            yield f"  the same, dry_run, {clients} clients", _told(limit)
            ratio = ours.calls_per_second / limit.calls_per_second
            yield "  of the limit; p99 / p50", f"{ratio:.2f}; {ours.p99_ms / ours.p50_ms:.1f}"
        refs = [records.ref(number) for number in range(len(people))]
        for clients in CLIENTS:
            show = load(port, clients, lambda number: _get(f"/v1/entities/{refs[number % len(refs)]}"), seconds)
            constant = load(port, clients, lambda number: _get("/healthz"), seconds)
            yield f"show, {clients} clients", _told(show)
            yield f"  a constant, {clients} clients", _told(constant)
            yield "  of the constant", f"{show.calls_per_second / constant.calls_per_second:.2f}"
        bulk = source.batch(range(1_000, 1_000 + BULK)).records
        lines = "\n".join(json.dumps(record) for record in bulk).encode()
        client = _Client(port)
        began = time.perf_counter()
        client.send(_post("/v1/store", lines, b"application/x-ndjson"))
        while not client.receive():
            pass
        through = time.perf_counter() - began
        client.socket.close()
    with woodrat.open(folder / "library.db") as ledger:
        ledger.store(people)
        began = time.perf_counter()
        ledger.store(bulk).to_json()
        here = time.perf_counter() - began
    yield f"{BULK} records as lines", f"{BULK / through:,.0f} records/s"
    yield "  the same in the library", f"{BULK / here:,.0f} records/s"
    yield "  of the library", f"{here / through:.2f}"


def _told(load: Load) -> str:
    return f"{load.calls_per_second:,.0f}/s, p50 {load.p50_ms:.2f} ms, p99 {load.p99_ms:.2f} ms"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.serving", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each figure is measured")
    parser.add_argument("--dir", type=Path, help="where to write; on a disk, or nothing is learnt")
    given = parser.parse_args()
    with place.folder(given.dir) as folder:
        for name, figure in measure(folder, given.seconds):
            print(f"{name:<42} {figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

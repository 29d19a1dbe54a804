"""`python3 dev.py bench --memory`: the memory of a server with many entities while clients page, search and write.

The server is the product's own, in a process of its own, on a ledger of 100,000 entities. Eight clients keep their
connections and send one request after the other for five minutes: each walks the pages of a list, searches, looks at
single entities and writes, in turns. One client more does nothing but `show`, before them and beside them. What is
judged is the most memory that the server's process ever took, and how long half of the bystander's answers took
beside the clients, to how long they took alone. Everything stays on this machine and is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bench import place, records
from bench.http_load import Client
from bench.http_writes import NATIVE, WriteServer

ENTITIES = 100_000
CLIENTS = 8
SECONDS = 300.0
MEMORY_MIB_MAX = 250.0
"""What the server's process may take, at most."""
SHOW_RATIO_MAX = 2.0
"""How long a bystander's `show` may take beside the clients, to what it takes alone."""
ALONE_SECONDS = 3.0
"""How long the bystander is measured alone."""
PAGE = 50
WORDS = ("Lund", "Porto", "lead", "Moreau", "delivered", "terminal", "Ana")
"""What is searched for; some of them are in one entity of ten."""


class Outcome(NamedTuple):
    """What was measured."""

    memory_mib: float
    """The most that the server's process took."""
    last_mib: float
    """What it took at the end."""
    workers_mib: float
    """The most that the processes it started took together."""
    alone_ms: float
    """Half of the bystander's answers took this long or less, alone."""
    beside_ms: float
    """The same beside the clients."""
    answers: dict[str, int]
    """How many answers the clients got, by kind."""
    refused: int
    """How many calls were told to come back later."""

    @property
    def show_ratio(self) -> float:
        """How much longer the bystander waited."""
        return self.beside_ms / self.alone_ms

    @property
    def met(self) -> bool:
        """Whether both goals are met."""
        return self.memory_mib <= MEMORY_MIB_MAX and self.show_ratio <= SHOW_RATIO_MAX

    def lines(self) -> Iterator[str]:
        """Yield what is printed."""
        yield f"memory of the server   {self.memory_mib:7.1f} MiB ≤ {MEMORY_MIB_MAX:g}, {self.last_mib:.1f} at the end"
        yield f"memory of its workers  {self.workers_mib:7.1f} MiB"
        told = f"{self.beside_ms:.2f} ms beside the clients, {self.alone_ms:.2f} alone"
        yield f"bystander's show       {self.show_ratio:7.2f} × ≤ {SHOW_RATIO_MAX:g} ({told})"
        yield f"answers                {', '.join(f'{count:,} {kind}' for kind, count in self.answers.items())}"
        yield f"told to come back      {self.refused:,}"
        yield "met" if self.met else "missed"


class BusyClient(Client):
    """One connection that takes turns at everything; a page that is refused for now is asked for again."""

    def __init__(self, server: MemoryServer, number: int) -> None:
        super().__init__(server.port)
        self._server, self._turn, self._cursor = server, number, ""
        self._store = server.storing(NATIVE)
        self.kind = ""
        self.refused = 0

    def next_request(self) -> bytes:
        """Return the next request."""
        self._turn += 1
        ref = quote(records.ref(self._turn * 37 % self._server.count))
        word = WORDS[self._turn % len(WORDS)]
        kinds = (
            ("pages", f"/v1/entities?limit={PAGE}" + (f"&cursor={self._cursor}" if self._cursor else "")),
            ("stores", None),
            ("searches", f"/v1/search?query={word}&limit=20"),
            ("shows", f"/v1/entities/{ref}"),
            ("observations", f"/v1/observations?limit={PAGE}&ref={ref}"),
            ("stores", None),
        )
        self.kind, path = kinds[self._turn % len(kinds)]
        return self._store() if path is None else self._server.get(path)

    def receive(self) -> bool:
        """Take what has arrived; a refusal for now is an answer too."""
        self.data += self.socket.recv(262_144)
        head, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return False
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return False
        status = int(head.split(b" ", 2)[1])
        if status not in (200, 429, 503):
            raise SystemExit(f"the server answered {self.data[:600]!r}")
        self.refused += status != 200
        if self.kind == "pages" and status == 200:
            self._cursor = json.loads(body)["cursor"] or ""
        self.data = b""
        return True


class MemoryServer(WriteServer):
    """The server, with many entities."""

    def __init__(self, folder: Path, entities: int, made: Path | None = None) -> None:
        self.count = entities
        super().__init__(folder, entities, made)

    def get(self, path: str) -> bytes:
        """Return a request that reads."""
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n\r\n"
        return head.encode()

    def memory_now(self) -> tuple[float, float]:
        """Return what the process takes, and what those that it started take, in MiB."""
        return _resident(self.pid), sum(map(_resident, _children(self.pid)))


def _resident(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return int(text.partition("VmRSS:")[2].split()[0]) / 1_024 if "VmRSS:" in text else 0.0


def _children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Bystander:
    """A client in a process of its own that shows one entity after the other, with a pause between."""

    def __init__(self, server: MemoryServer, seconds: float) -> None:
        words = [sys.executable, "-m", "bench.http_bystander", str(server.port), str(server.count), str(seconds)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(server.key)
        self._process.stdin.close()

    def median_ms(self) -> float:
        """Wait for it to end; return how long half of its answers took, at most."""
        assert self._process.stdout is not None
        told = self._process.stdout.read()
        if self._process.wait() != 0:
            raise SystemExit("the bystander failed")
        return float(told)

    def end(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def run(server: MemoryServer, clients: int, seconds: float, tell: Callable[[str], None]) -> Outcome:
    """Measure a server that is running."""
    alone_ms = Bystander(server, min(ALONE_SECONDS, seconds)).median_ms()
    busy = [BusyClient(server, number) for number in range(clients)]
    answers: dict[str, int] = {}
    most = workers = last = 0.0
    bystander = Bystander(server, seconds * 0.9)
    try:
        with selectors.DefaultSelector() as waiting:
            for client in busy:
                waiting.register(client.socket, selectors.EVENT_READ, client)
                client.send(client.next_request())
            began = looked = told = time.perf_counter()
            while (now := time.perf_counter()) < began + seconds:
                for key, _ in waiting.select(0.1):
                    client = key.data
                    if client.receive():
                        answers[client.kind] = answers.get(client.kind, 0) + 1
                        client.send(client.next_request())
                if now > looked + 0.2:
                    looked = now
                    last, others = server.memory_now()
                    most, workers = max(most, last), max(workers, others)
                if now > told + 30:
                    told = now
                    tell(f"after {now - began:3.0f} s: {last:.1f} MiB, {sum(answers.values()):,} answers")
        beside_ms = bystander.median_ms()
    finally:
        bystander.end()
        for client in busy:
            client.socket.close()
    refused = sum(client.refused for client in busy)
    return Outcome(most, last, workers, alone_ms, beside_ms, dict(sorted(answers.items())), refused)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; fail when a goal is missed."""
    parser = argparse.ArgumentParser(prog="bench --memory", description=__doc__)
    parser.add_argument("--entities", type=int, default=ENTITIES, help="how many entities the ledger has")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="how many clients page, search and write")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for how long")
    parser.add_argument("--ledger", type=Path, help="a ledger of so many entities, which is copied instead of made")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument("--dir", type=Path, help="where to write; on a disk")
    options = parser.parse_args(arguments)
    with place.folder(options.dir) as folder:
        server = MemoryServer(folder, options.entities, options.ledger)
        with server.running(server.command):
            tell = (lambda line: None) if options.json else (lambda line: print(line, flush=True))
            outcome = run(server, options.clients, options.seconds, tell)
    print(json.dumps({**outcome._asdict(), "met": outcome.met}) if options.json else "\n".join(outcome.lines()))
    return 0 if outcome.met else 1


if __name__ == "__main__":
    sys.exit(main())

"""Load: keep-alive connections that send one request after the other, and what the server's process worked for them.

Whoever drives the load is another process than the server, and does as little as it can: requests are made before they
are needed, and of an answer only its status and its length are looked at.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

START_SECONDS = 180.0
"""How long a server may take until it listens."""
END_SECONDS = 20.0
"""How long a server may take until it ended."""

Requests = Callable[[], bytes]
"""Makes the next request."""


class Client:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""
        self.sent = 0.0
        self.body = b""
        """The body of the last answer."""

    def send(self, request: bytes) -> None:
        """Send a request."""
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
        self.data, self.body = b"", body
        return True

    def ask(self, request: bytes) -> float:
        """Send one request and wait for its answer; return how long that took."""
        self.send(request)
        while not self.receive():
            pass
        return time.perf_counter() - self.sent


class Load(NamedTuple):
    """What a number of clients got, each sending the next request when it has the last answer."""

    calls_per_second: float
    """Answers a second; the median of the turns."""
    p50_ms: float
    """Half of the answers took this long or less."""
    p99_ms: float
    """All but the slowest of a hundred took this long or less."""
    cpu_us: float | None = None
    """What the server's process worked for an answer, where the system tells."""

    def __str__(self) -> str:
        work = "" if self.cpu_us is None else f", {self.cpu_us:,.0f} µs of work each"
        return f"{self.calls_per_second:,.0f}/s, p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f} ms{work}"


class Turn(NamedTuple):
    """What one turn of a load came to."""

    times: list[float]
    """How long each answer took."""
    calls_per_second: float
    """Answers a second."""
    cpu_us: float | None
    """What the server's process worked for an answer."""


def summary(turns: Sequence[Turn]) -> Load:
    """Return what several turns of one load came to."""
    times = sorted(each for turn in turns for each in turn.times)
    works = [turn.cpu_us for turn in turns if turn.cpu_us is not None]
    return Load(
        median(turn.calls_per_second for turn in turns),
        1_000 * median(times),
        1_000 * times[int(len(times) * 0.99)],
        median(works) if works else None,
    )


class ServerProcess:
    """A server in a process of its own, at a free port of this machine."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self, command: Sequence[str]) -> Iterator[None]:
        """Run a command that serves the port, while it lasts."""
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", self.port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > end or self.process.poll() is not None:
                        raise SystemExit(f"the server does not listen: {' '.join(command)}") from None
                    time.sleep(0.05)
            yield
        finally:
            self.process.terminate()
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self.process is not None, "it runs"
        return self.process.pid

    def cpu_seconds(self) -> float | None:
        """Return how long the server's process has worked, all its threads together, where the system tells."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return None
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        """Return how much memory the server takes."""
        words = ["ps", "-o", "rss=", "-p", str(self.pid)]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) / 1_024

    def load(self, clients: int, request: Requests, seconds: float) -> Turn:
        """Send requests from many clients at once; the first tenth does not count."""
        connections = [Client(self.port) for _ in range(clients)]
        times: list[float] = []
        worked: float | None = None
        counted = False
        with selectors.DefaultSelector() as waiting:
            for client in connections:
                waiting.register(client.socket, selectors.EVENT_READ, client)
                client.send(request())
            began = time.perf_counter()
            counting, end = began + seconds / 10, began + seconds * 1.1
            while (now := time.perf_counter()) < end:
                if not counted and now > counting:
                    counting, worked, counted = now, self.cpu_seconds(), True
                for key, _ in waiting.select(1):
                    client = key.data
                    if client.receive():
                        if counted:
                            times.append(time.perf_counter() - client.sent)
                        client.send(request())
            elapsed = time.perf_counter() - counting
            ended = self.cpu_seconds()
        for client in connections:
            client.socket.close()
        work = None if worked is None or ended is None else (ended - worked) / len(times) * 1e6
        return Turn(times, len(times) / elapsed, work)

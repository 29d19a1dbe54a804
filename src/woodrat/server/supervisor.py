"""Supervisor: several processes that serve one database at one address, started, replaced and ended together.

Each worker runs the same command, with its settings in an environment variable. All of them listen on one port, and the
system gives each connection to one of them. A worker that ends is replaced. Workers end when the supervisor does,
however it ends: each holds one end of a pipe, and notices when the other closes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from woodrat.clock import monotonic
from woodrat.server import logs, wire

VARIABLE: Final = "WOODRAT_WORKER"
"""Marks a process as a worker: its lifeline, and the port to listen on."""
WORKERS_MAX: Final = 64
"""Most workers of one supervisor."""
LOOK_SECONDS: Final = 0.1
"""Interval between checks for ended workers."""
BACKOFF_SECONDS: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Delay before a short-lived worker is replaced, by the number of short-lived ones in a row."""
LONG_SECONDS: Final = 60.0
"""Lifetime from which a worker does not count as short-lived."""
END_SECONDS: Final = 15.0
"""Grace period for workers to end."""


class Post(NamedTuple):
    """Where a worker finds itself."""

    lifeline: int
    """A descriptor that reaches its end when the supervisor is gone."""
    port: int
    """The port to listen on."""


def post() -> Post | None:
    """Return the place of this worker process; None in other processes, its children included."""
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return None
    lifeline, _, port = text.partition(":")
    return Post(int(lifeline), int(port))


class _Place:
    """One of the workers, and its replacements."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.due = 0.0
        """When to start it."""
        self.vain = 0
        """Number of short-lived workers in a row."""


class Supervisor:
    """Runs a command in several processes until it is stopped."""

    def __init__(self, count: int, port: int, command: Sequence[str] = ()) -> None:
        self._command = list(command) or [sys.executable, "-m", "woodrat", *sys.argv[1:]]
        self._port = port
        self._places = [_Place() for _ in range(count)]
        self._ending = threading.Event()

    def run(self) -> int:
        """Serve until this process is interrupted or told to stop; return the exit code for all workers."""
        lifeline, held = os.pipe()
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self._ending.is_set():
                for place in self._places:
                    code = self._look_after(place, lifeline)
                    if code is not None:
                        return code
                self._ending.wait(LOOK_SECONDS)
            return wire.DONE
        finally:
            os.close(held)
            self._end()
            os.close(lifeline)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: Any) -> None:
        self._ending.set()

    def _look_after(self, place: _Place, lifeline: int) -> int | None:
        """Start missing workers; return the exit code if a replacement would fail the same way."""
        now = monotonic()
        if place.process is not None:
            code = place.process.poll()
            if code is None:
                return None
            if code == wire.EXIT_CODES["refused"]:  # it said why
                return code
            place.process = None
            place.vain = 0 if now - place.started >= LONG_SECONDS else place.vain + 1
            seconds = BACKOFF_SECONDS[min(place.vain, len(BACKOFF_SECONDS)) - 1] if place.vain else 0.0
            place.due = now + seconds
            logs.event("worker", logs.ERROR, code=code, again_in=seconds)
        if now >= place.due:
            place.process, place.started = self._start(lifeline), now
        return None

    def _start(self, lifeline: int) -> subprocess.Popen[bytes]:
        environment: Mapping[str, str] = {**os.environ, VARIABLE: f"{lifeline}:{self._port}"}
        # A session of its own: Ctrl-C reaches the supervisor alone, which lets each worker finish.
        return subprocess.Popen(self._command, env=environment, pass_fds=(lifeline,), start_new_session=True)

    def _end(self) -> None:
        """Wait until all workers have stopped, and kill the rest."""
        deadline = monotonic() + END_SECONDS
        for place in self._places:
            if place.process is None:
                continue
            with suppress(subprocess.TimeoutExpired):
                place.process.wait(max(0.1, deadline - monotonic()))
            if place.process.poll() is None:
                place.process.kill()
                place.process.wait()

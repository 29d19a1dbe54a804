"""The gate: writers take turns, within a process in the order they came, between processes one after the other.

SQLite's lock is unfair: a process that writes without a pause can keep others out for seconds. Here a writer passes a
turnstile before it waits for the gate, and holds the turnstile until it is through. Whoever has just written finds the
turnstile taken by the next in line, and cannot overtake.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system; SQLite's own lock still keeps writes apart
    fcntl = None  # type: ignore[assignment]

TURNSTILE, GATE = 0, 1
"""Bytes of the queue file that are locked."""


class Gate:
    """A fair lock for the writers of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + "-queue")
        self._descriptor: int | None = None
        self._waiting: deque[threading.Event] = deque()
        self._busy = False
        self._lock = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for this writer's turn, and pass it on afterwards."""
        self._enter()
        try:
            self._pass(TURNSTILE)
            try:
                self._pass(GATE)
            finally:
                self._free(TURNSTILE)
            try:
                yield
            finally:
                self._free(GATE)
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            if not self._busy:
                self._busy = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        mine.wait()

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._busy = False

    def _pass(self, place: int) -> None:
        if fcntl is not None:
            fcntl.lockf(self._file(), fcntl.LOCK_EX, 1, place)

    def _free(self, place: int) -> None:
        if fcntl is not None:
            fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, place)

    def _file(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor

    def close(self) -> None:
        """Let go of the queue file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

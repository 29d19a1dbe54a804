"""The writer queue: writers take turns, within a process in the order they came, between processes one after the other.

SQLite's lock is unfair: a process that writes without a pause can keep others out for seconds. Here a writer passes a
turnstile before it waits for the gate, and holds the turnstile until it is through. Whoever has just written finds the
turnstile taken by the next in line, and cannot overtake.

SQLite's own lock keeps writes apart, so whoever cannot queue (the queue file cannot be made, or a stopped process holds
its place) goes on without. But a process loses SQLite's lock in the middle of a write when it closes any descriptor of
the file with the lock, as a copy does. Then the gate alone keeps the writers of other processes out: its lock cannot be
lost that way (`file_lock.py`).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from typing import BinaryIO
from weakref import WeakValueDictionary

from woodrat.engines import private
from woodrat.engines.sqlite import file_lock

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

SUFFIX = "-queue"
"""What the name of the queue file ends in, after that of the database."""
TURNSTILE, GATE, LONG = 0, 1, 2
"""Bytes of the queue file that are locked, one beside the other. Who has the last needs long, and others wait."""
PATIENCE_SECONDS = 10.0
"""How long to queue behind other processes at the turnstile, and again at the gate."""


class WriterQueue:
    """A fair lock for the writers of one file; without a file it lets everybody through."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        # As SQLite does with its own files, so that a link to the file leads to the same queue.
        self._queue: _ProcessQueue | None = None if path is None else _queue_of(os.path.realpath(path) + SUFFIX)

    def turn(self) -> _Turn:
        """Wait for this writer's turn, and pass it on afterwards, as a context."""
        return _Turn(self._queue)

    def long_turn(self) -> _LongTurn:
        """Have others wait for as long as this turn takes, as a context inside it."""
        return _LongTurn(self._queue)

    def close(self) -> None:
        """Let go of the queue; its file is closed when nobody of this process uses it."""
        self._queue = None


class _Turn:
    """One turn of one writer; without a queue there is nothing to wait for."""

    __slots__ = ("_held", "_queue")

    def __init__(self, queue: _ProcessQueue | None) -> None:
        self._queue = queue
        self._held: int | None = None

    def __enter__(self) -> None:
        if self._queue is not None:
            self._queue.enter()
            try:
                self._held = self._queue.pass_gate()
            except BaseException:
                self._queue.leave()
                raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._queue is not None:
            try:
                self._queue.free_gate(self._held)
            finally:
                self._queue.leave()


class _LongTurn:
    """A turn that takes longer than others would wait, while it lasts; it ends with its process."""

    __slots__ = ("_held", "_queue")

    def __init__(self, queue: _ProcessQueue | None) -> None:
        self._queue = queue

    def __enter__(self) -> None:
        self._held = None if self._queue is None else self._queue.take_long()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._held is not None:
            _unlock(self._held, LONG)


class _ProcessQueue:
    """The writers of one process to one file.

    There is one for all gates of a process: a process does not wait for its own locks, and loses all of them when it
    closes any descriptor of the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._descriptor: int | None = None
        self._waiting: deque[threading.Event] = deque()
        self._busy = False
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Wait for all threads that came before."""
        with self._lock:
            if not self._busy:
                self._busy = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        try:
            mine.wait()
        except BaseException:
            # Interrupted. A turn that has been handed over meanwhile must be handed on, or all others wait for ever.
            with self._lock:
                handed = mine not in self._waiting
                if not handed:
                    self._waiting.remove(mine)
            if handed:
                self.leave()
            raise

    def leave(self) -> None:
        """Let the next thread in."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._busy = False

    def pass_gate(self) -> int | None:
        """FileLock the gate against other processes; return the descriptor that holds it, for `free_gate`."""
        descriptor = self._descriptor
        if descriptor is not None:
            # Mostly nobody is in the way, and both are had at once.
            try:
                _lock(descriptor, TURNSTILE, 2)
            except OSError:
                pass
            else:
                _unlock(descriptor, TURNSTILE)
                return descriptor
        first = self._pass(TURNSTILE)
        try:
            return self._pass(GATE)
        finally:
            if first is not None:
                _unlock(first, TURNSTILE)

    def free_gate(self, descriptor: int | None) -> None:
        """Let the next process through."""
        if descriptor is not None:
            _unlock(descriptor, GATE)

    def take_long(self) -> int | None:
        """Say that this turn takes long; return the descriptor that says so."""
        return self._pass(LONG)

    def _pass(self, place: int) -> int | None:
        """Lock a byte; return the descriptor that holds it, or None if it cannot be had."""
        if fcntl is None:  # pragma: no cover - not a POSIX system
            return None
        try:
            if self._file is None:
                # Not open(path, "r+b"): the file is made when it is missing, and never cut.
                self._file = os.fdopen(self._opened(), "r+b", 0)
                self._descriptor = self._file.fileno()
            descriptor = self._file.fileno()
            try:
                _lock(descriptor, place)
            except (BlockingIOError, PermissionError):
                return descriptor if _Wait(self._file, place).ends() else None
            return descriptor
        except OSError:
            return None

    def abandon(self) -> None:
        """Close its file, whose locks are another process's."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> int:
        """Open the queue file; one that is made has the mode of the database, whatever the umask is."""
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            return os.open(self._path, flags)
        except FileNotFoundError:
            mode = private.mode_like(self._path.removesuffix(SUFFIX))
            descriptor = os.open(self._path, flags | os.O_CREAT, mode)
            with suppress(OSError):  # made by another user meanwhile
                os.fchmod(descriptor, mode)
            return descriptor


class _Wait:
    """A wait for a byte that ends in time: the system's own has no limit, so a thread is left to it."""

    def __init__(self, file: BinaryIO, place: int) -> None:
        self._file, self._place = file, place
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._held = self._given_up = False

    def ends(self) -> bool:
        """Return whether the byte was had in time."""
        threading.Thread(target=self._run, name="woodrat-queue", daemon=True).start()
        try:
            while not self._done.wait(PATIENCE_SECONDS) and _is_long(self._file.fileno()):
                pass
        except BaseException:
            self._give_up(free=True)
            raise
        return self._give_up(free=False)

    def _run(self) -> None:
        try:
            _lock(self._file.fileno(), self._place, wait=True)
        except OSError:
            self._done.set()
            return
        with self._lock:
            self._held = True
            if self._given_up:
                _unlock(self._file.fileno(), self._place)
        self._done.set()

    def _give_up(self, *, free: bool) -> bool:
        """Return whether the byte is held; if it comes later, or is to be freed, it is let go."""
        with self._lock:
            self._given_up = True
            if self._held and free:
                _unlock(self._file.fileno(), self._place)
            return self._held


def _lock(descriptor: int, place: int, length: int = 1, *, wait: bool = False) -> None:
    if file_lock.SET_LOCK is None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), length, place)
    else:
        file_lock.lock(descriptor, fcntl.F_WRLCK, place, length, wait=wait)


def _is_long(descriptor: int) -> bool:
    """Return True if another process has a turn that takes long."""
    try:
        _lock(descriptor, LONG)
    except OSError:
        return True
    _unlock(descriptor, LONG)
    return False


def _unlock(descriptor: int, place: int) -> None:
    if file_lock.SET_LOCK is None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)
    else:
        file_lock.lock(descriptor, fcntl.F_UNLCK, place, 1)


_queues: WeakValueDictionary[str, _ProcessQueue] = WeakValueDictionary()
_making = threading.Lock()


def _queue_of(path: str) -> _ProcessQueue:
    """Return the one queue this process has for a file."""
    with _making:
        found = _queues.get(path)
        if found is None:
            found = _queues[path] = _ProcessQueue(path)
        return found


def _forget() -> None:
    """Begin anew in a forked process: its parent's threads are not there, and its parent's locks are not its own."""
    global _queues, _making
    for queue in _queues.values():
        queue.abandon()
    _queues, _making = WeakValueDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

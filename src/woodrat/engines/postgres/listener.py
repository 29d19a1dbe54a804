"""Listener: what other servers on the same database do, heard over one connection of its own.

Three things go over it. A server says `NOTIFY` after it has committed, and all who listen look at once. Five times a
second they look anyway, so that nothing is missed of those who do not say so, or while nobody listened: the snapshot
that a transaction would be given now is another whenever a commit has become visible, however late, and stays the same
otherwise. And a duty that one server has at a time is a lock of the session: it is free again when the session ends,
whatever became of the process.
"""

from __future__ import annotations

import select
import socket
import threading
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg

from woodrat.clock import monotonic
from woodrat.engines.postgres.connection import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNEL: Final = "woodrat"
"""What is said and listened on."""
LOOK_SECONDS: Final = 0.2
"""How often is looked whether anything was committed that nobody said."""
DUTY_SECONDS: Final = 1.0
"""How often a duty is asked for that another server has."""
PAUSE_SECONDS: Final = 0.02
"""How long is waited between two looks at least: commits meanwhile are said together."""
RECONNECT_SECONDS: Final = 1.0
"""How long is waited before a connection that was lost is made anew."""
SILENT_SECONDS: Final = 5.0
"""A server that has not been answered for so long does not count on its duties: another may have them."""
END_SECONDS: Final = 5.0
"""How long the thread may take to end."""
_DUTIES: Final = 0x776F6F64
"""What tells our locks from those of others in the same database."""
_SNAPSHOT: Final = "SELECT pg_current_snapshot()::text"


class Listener:
    """What one process hears of a database, and says to the others. Any thread may use it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._wakes: list[Callable[[], object]] = []
        self._count = 0
        """How often something was heard."""
        self._answered: float | None = None
        """When the server answered last; none while there is no connection."""
        self._says = False
        """Whether something was committed here that the others were not told of."""
        self._wanted: set[str] = set()
        self._held: set[str] = set()
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)

    def heard(self) -> bytes | None:
        """Return what is another once anything was committed, a little later; `None` while there is no connection."""
        self._start()
        return None if self._answered is None else b"%d" % self._count

    def listen(self, wake: Callable[[], object]) -> None:
        """Have a function called, by a thread of this, whenever something was heard."""
        with self._lock:
            self._wakes.append(wake)
        self._start()

    def say(self) -> None:
        """Let the others know that something was committed; where nothing is listened to they look for themselves."""
        if self._thread is not None:
            self._says = True
            self._ring()

    def has_duty(self, name: str) -> bool:
        """Return whether this process has a duty now; from the first time it is asked on it is tried to have it."""
        self._start()
        if name not in self._wanted:
            with self._lock:
                self._wanted.add(name)
            self._ring()
        answered = self._answered
        return name in self._held and answered is not None and monotonic() - answered < SILENT_SECONDS

    def close(self) -> None:
        """End the thread and the connection, and with it all duties."""
        self._closed.set()
        self._ring()
        if self._thread is not None:
            self._thread.join(END_SECONDS)
            if self._thread.is_alive():  # it waits for a server that does not answer, and ends with the process
                return
        self._ear.close()
        self._bell.close()

    def _start(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed.is_set():
                    self._thread = threading.Thread(target=self._run, name="woodrat-listener", daemon=True)
                    self._thread.start()

    def _ring(self) -> None:
        with suppress(OSError):  # it rings already, or is closed
            self._bell.send(b".")

    # In the thread

    def _run(self) -> None:
        while not self._closed.is_set():
            # A connection that is cut without a word is noticed within seconds.
            how: dict[str, Any] = {**arguments(), "tcp_user_timeout": int(SILENT_SECONDS * 1_000)}
            with suppress(psycopg.Error, OSError), psycopg.connect(self._url, **how) as own:
                own.add_notify_handler(lambda _: None)  # that there is one makes it look, and that is all it says
                own.execute(f"SET synchronous_commit = off; LISTEN {CHANNEL}", prepare=False)
                self._follow(own)
            self._answered, self._held = None, set()
            self._tell()  # whoever waits looks for itself as long as nothing is heard
            self._closed.wait(RECONNECT_SECONDS)

    def _follow(self, connection: psycopg.Connection[Any]) -> None:
        seen, tried = None, 0.0
        while not self._closed.is_set():
            if self._says:
                self._says = False
                connection.execute(f"NOTIFY {CHANNEL}", prepare=False)
            wanted = self._wanted - self._held
            if wanted and (monotonic() - tried >= DUTY_SECONDS or not self._held):
                tried = monotonic()
                for name in sorted(wanted):
                    if self._lock_of(connection, name):
                        self._held = self._held | {name}
            now = connection.execute(_SNAPSHOT).fetchone()
            self._answered = monotonic()
            if now != seen:
                seen = now
                self._count += 1
                self._tell()
            self._closed.wait(PAUSE_SECONDS)
            ready, _, _ = select.select([connection.fileno(), self._ear.fileno()], [], [], LOOK_SECONDS)
            if self._ear.fileno() in ready:
                self._ear.recv(4_096)

    @staticmethod
    def _lock_of(connection: psycopg.Connection[Any], name: str) -> bool:
        number = zlib.crc32(name.encode()) & 0x7FFFFFFF
        row = connection.execute("SELECT pg_try_advisory_lock(%s::int, %s::int)", (_DUTIES, number)).fetchone()
        return row == (True,)

    def _tell(self) -> None:
        with self._lock:
            wakes = list(self._wakes)
        for wake in wakes:
            with suppress(Exception):  # whoever is woken does not end this for all others
                wake()

"""Deliveries: sending entries to webhooks, by a few threads that all webhooks share.

A webhook occupies a thread only while a request is in flight; between retries, and without new entries, it waits in a
queue. One try has a time limit up to the end of the first line of the answer, so a slow receiver is cut off. No
tenant's webhooks take all threads. Of several servers on one database, one delivers.
"""

from __future__ import annotations

import heapq
import http.client
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from woodrat.canon import moment
from woodrat.clock import monotonic
from woodrat.errors import WoodratError
from woodrat.records import dataclass
from woodrat.server.addresses import connect
from woodrat.server.webhooks import TRIES_MAX, signature

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.clock import Clock
    from woodrat.server.webhooks import Hook, Hooks

THREADS: Final = 8
"""Most deliveries in flight."""
TENANT_THREADS: Final = 3
"""Most deliveries in flight for one tenant."""
ENTRIES_MAX: Final = 100
"""Most entries of one delivery."""
BODY_BYTES_MAX: Final = 8 * 1_048_576
"""Approximate size limit of a delivery: the entry that exceeds it is the last."""
TRY_SECONDS: Final = 10.0
"""Time limit of one try, from the first byte sent to the first line of the answer."""
ANSWER_BYTES_MAX: Final = 65_536
"""Bytes read of an answer: its first line, and any interim answers before it."""
BACKOFF_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0)
"""Delays between tries."""
POLL_SECONDS: Final = 0.5
"""Polling interval for new entries."""
END_SECONDS: Final = 5.0
"""Grace period for deliveries in flight when the server stops."""
_STATUS: Final = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})(?: [^\r\n]*)?\r?\n")


class Overlong(OSError):
    """The answer to a delivery did not reach the end of its first line."""


class _ConnectWith:
    """Lets a function make the connection of `http.client`, under the name that `http.client` uses for its own."""

    _create_connection: Any

    def connect_with(self, connect: Callable[..., socket.socket]) -> None:
        """Call `connect` with the address instead of `socket.create_connection`."""
        self._create_connection = connect


class _PlainConnection(_ConnectWith, http.client.HTTPConnection):
    pass


class _SecureConnection(_ConnectWith, http.client.HTTPSConnection):
    pass


@dataclass(slots=True)
class _Delivery:
    """Entries in flight."""

    body: bytes
    """The body; empty if no entry is of a wanted kind."""
    first: int
    """Its first position."""
    last: int
    """The last position that it covers."""
    letter: Mapping[str, Any] | None
    """The dead letter being retried, if any."""
    tries: int = 0
    """Number of tries."""


class Deliverer:
    """The deliveries of one webhook, step by step. One thread at a time uses it."""

    def __init__(
        self,
        hook: Hook,
        hooks: Hooks,
        log: Past,
        clock: Clock,
        *,
        heard: Callable[[str, Mapping[str, Any]], None] = lambda event, told: None,
    ) -> None:
        """`heard` gets the ids of each event."""
        self.hook, self._hooks, self._log, self._clock, self._heard = hook, hooks, log, clock, heard
        self.position = hook.position
        """The last delivered position."""
        self._again: deque[Mapping[str, Any]] = deque()
        self.delivery: _Delivery | None = None
        self._socket: socket.socket | None = None
        self.stopped = False
        """True once the webhook is removed."""
        self.deadline: float | None = None
        """Deadline of the current try."""

    def retry(self, letter: Mapping[str, Any]) -> None:
        """Deliver a dead letter again, before new entries."""
        self._again.append(letter)

    @property
    def has_letters(self) -> bool:
        """True if dead letters wait for a retry."""
        return bool(self._again)

    @property
    def log_position(self) -> int:
        """The position of the log's end."""
        return self._log.position

    def step(self) -> float | None:
        """Take the next step: one try of one delivery. Return the seconds until the next delivery, or None without new
        entries.
        """
        delivery = self.delivery = self.delivery or self._next()
        if delivery is None:
            return None
        problem = None
        if delivery.body:
            name = f"{self.hook.id}:{delivery.first}-{delivery.last}"
            problem = self._try(delivery.body, name)
            delivery.tries += 1
            self._heard("delivery", {"webhook": self.hook.id, "delivery": name, "problem": problem})
        if problem is not None and (self.stopped or delivery.tries < TRIES_MAX):
            return BACKOFF_SECONDS[min(delivery.tries, len(BACKOFF_SECONDS)) - 1]
        self._settle(delivery, problem)
        self.delivery = None
        return 0.0

    def _next(self) -> _Delivery | None:
        if self._again:
            letter = self._again.popleft()
            first, last = letter["first"], letter["last"]
            return self._of(first - 1, last - first + 1, letter)
        return self._of(self.position, ENTRIES_MAX, None)

    def _of(self, after: int, limit: int, letter: Mapping[str, Any] | None) -> _Delivery | None:
        entries = self._log.log.entries(after=after, limit=limit)
        if not entries:
            return None
        wanted = [entry for entry in entries if not self.hook.kinds or entry.kind in self.hook.kinds]
        told: list[dict[str, Any]] = []
        size, last = 0, entries[-1].position
        for entry in wanted:
            size += len(entry.body or b"")
            if told and size > BODY_BYTES_MAX and letter is None:
                last = told[-1]["position"]
                break
            told.append(entry.to_json())
        body = orjson.dumps({"webhook": self.hook.id, "tenant": self.hook.tenant, "entries": told}) if told else b""
        return _Delivery(body, told[0]["position"] if told else last, last, letter)

    def _settle(self, delivery: _Delivery, problem: str | None) -> None:
        """Record the outcome of a delivery."""
        if delivery.letter is not None:
            self._hooks.retried(delivery.letter, problem)
            return
        if problem is None:
            self._hooks.move(self.hook.id, delivery.last)
        else:
            self._hooks.bury(self.hook, delivery.first, delivery.last, TRIES_MAX, problem)
            self._heard("dead_letter", {"webhook": self.hook.id, "first": delivery.first, "last": delivery.last})
        self.position = delivery.last

    def _try(self, body: bytes, name: str) -> str | None:
        """Send one delivery once; return the error, if any."""
        address = urlsplit(self.hook.url)
        self.deadline = monotonic() + TRY_SECONDS
        try:
            secret = Path(self.hook.secret_file).read_bytes().strip()
            at = moment.to_micros(self._clock.now()) // 1_000_000
            kind: type[_PlainConnection | _SecureConnection]
            kind = _SecureConnection if address.scheme == "https" else _PlainConnection
            connection = kind(address.hostname or "", address.port, timeout=TRY_SECONDS)
            connection.connect_with(self._connect)
            try:
                headers = {
                    "Content-Type": "application/json",
                    "Woodrat-Signature": signature(secret, at, body),
                    "Woodrat-Delivery": name,
                    "Connection": "close",
                }
                target = (address.path or "/") + (f"?{address.query}" if address.query else "")
                connection.request("POST", target, body, headers)
                status = status_of(connection.sock)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = monotonic() >= self.deadline
            return "TimeoutError" if late else type(error).__name__
        finally:
            self.deadline = None
            sending, self._socket = self._socket, None
            if sending is not None:
                sending.close()
        return None if 200 <= status < 300 else f"status {status}"

    def _connect(self, address: tuple[str, int], *_: object) -> socket.socket:
        """Connect, and keep a second handle of the connection, because TLS takes over the first."""
        assert self.deadline is not None, "an attempt has a deadline"
        left = max(0.1, self.deadline - monotonic())
        found = connect(*address, left, outside=not self.hook.inside)
        self._socket = found.dup()
        return found

    def cut_off(self) -> None:
        """Abort the current attempt, from another thread."""
        sending = self._socket
        if sending is not None:
            with suppress(OSError):
                sending.shutdown(socket.SHUT_RDWR)


def status_of(sock: socket.socket) -> int:
    """Return the status of an answer; interim answers before it are skipped."""
    data, taken = b"", 0
    while True:
        piece = sock.recv(4_096)
        if not piece:
            raise http.client.RemoteDisconnected("the connection was closed before an answer")
        taken += len(piece)
        data += piece
        if taken > ANSWER_BYTES_MAX:
            raise Overlong("the answer has no end to its first line")
        while b"\n" in data:
            found = _STATUS.match(data)
            if found is None:
                raise http.client.BadStatusLine("the answer is not HTTP")
            if found[1][:1] != b"1":
                return int(found[1])
            _, end, rest = data.partition(b"\r\n\r\n")
            if not end:
                break
            data = rest


class Deliveries:
    """All webhooks of a server, started when they are added and stopped when they are removed."""

    def __init__(
        self,
        hooks: Hooks,
        log_of: Callable[[str], Past],
        clock: Clock,
        heard: Callable[[str, Mapping[str, Any]], None],
        on_duty: Callable[[], bool] = lambda: True,
    ) -> None:
        """`on_duty` returns True if this server delivers."""
        self._on_duty = on_duty
        self._hooks, self._log_of, self._clock, self._heard = hooks, log_of, clock, heard
        self._known: dict[str, Deliverer] = {}
        self._seen = -1
        self._handed: set[tuple[str, int, int]] = set()
        self._news = threading.Condition()
        self._order = count()
        self._due: list[tuple[float, int, Deliverer]] = []
        """The queue: deadlines in order of time."""
        self._quiet: set[Deliverer] = set()
        """Webhooks without new entries."""
        self.busy: dict[Deliverer, None] = {}
        """Webhooks that a thread works on."""
        self._threads: list[threading.Thread] = []
        self._closed = False

    @property
    def threads(self) -> int:
        """Number of threads."""
        return len(self._threads)

    def refresh(self) -> None:
        """Start new webhooks, stop removed ones, and hand over dead letters to retry.

        A webhook that another server delivers is stopped; once restarted, it continues from its position in the log.
        """
        if not self._on_duty():
            with self._news:
                for deliverer in self._known.values():
                    deliverer.stopped = True
                    deliverer.cut_off()
                self._known, self._seen, self._handed = {}, -1, set()
                self._quiet.clear()
            return
        position = self._hooks.position
        if position == self._seen:
            return
        self._seen = position
        wanted = {hook.id: hook for hook in self._hooks.all()}
        letters = [letter for letter in self._hooks.dead() if letter.get("again") is True]
        with self._news:
            for id in [id for id in self._known if id not in wanted]:
                gone = self._known.pop(id)
                gone.stopped = True
                gone.cut_off()
                self._quiet.discard(gone)
            for id, hook in wanted.items():
                if id not in self._known:
                    log = self._log_of(hook.tenant)
                    self._known[id] = Deliverer(hook, self._hooks, log, self._clock, heard=self._heard)
                    self._put(self._known[id], 0.0)
            # the attempt count tells a letter that failed again from one handed over already
            named = {(letter["webhook"], letter["first"], letter["tries"]): letter for letter in letters}
            for name, letter in named.items():
                if name not in self._handed and letter["webhook"] in self._known:
                    self._known[letter["webhook"]].retry(letter)
            self._handed = set(named)
            if self._known and not self._threads:
                self._start()
            self._news.notify_all()

    def _start(self) -> None:
        calls = [self._look, *[self._work] * THREADS]
        for number, call in enumerate(calls):
            thread = threading.Thread(target=call, name=f"woodrat-webhooks-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _put(self, deliverer: Deliverer, seconds: float) -> None:
        heapq.heappush(self._due, (monotonic() + seconds, next(self._order), deliverer))

    def _take(self) -> Deliverer | float:
        """Return the next webhook with work to do; if there is none, the time to wait."""
        now = monotonic()
        passed: list[tuple[float, int, Deliverer]] = []
        busy: dict[str, int] = {}
        for deliverer in self.busy:
            busy[deliverer.hook.tenant] = busy.get(deliverer.hook.tenant, 0) + 1
        try:
            while self._due and self._due[0][0] <= now:
                item = heapq.heappop(self._due)
                if item[2].stopped:
                    continue
                if busy.get(item[2].hook.tenant, 0) < TENANT_THREADS:
                    return item[2]
                passed.append(item)
        finally:
            for item in passed:
                heapq.heappush(self._due, item)
        return POLL_SECONDS if passed or not self._due else min(POLL_SECONDS, self._due[0][0] - now)

    def _work(self) -> None:
        while True:
            with self._news:
                while not isinstance(found := self._take(), Deliverer):
                    if self._closed:
                        return
                    self._news.wait(found)
                if self._closed:
                    return
                self.busy[found] = None
            try:
                seconds = found.step() if self._on_duty() else POLL_SECONDS
            except WoodratError as error:
                self._heard("webhook", {"webhook": found.hook.id, "problem": error.code})
                seconds = POLL_SECONDS
            except Exception as error:  # a bug of the server must not end the thread of all others
                self._heard("webhook", {"webhook": found.hook.id, "problem": type(error).__name__})
                seconds = BACKOFF_SECONDS[-1]
            with self._news:
                del self.busy[found]
                if seconds is not None and not found.stopped:
                    self._put(found, seconds)
                elif not found.stopped:
                    self._quiet.add(found)
                self._news.notify()

    def _look(self) -> None:
        """Look for new entries for idle webhooks, and abort tries beyond their deadline."""
        while True:
            with self._news:
                if self._closed:
                    return
                now = monotonic()
                for deliverer in self.busy:
                    if deliverer.deadline is not None and now >= deliverer.deadline:
                        deliverer.cut_off()
                quiet = list(self._quiet)
            woken = self._woken(quiet)
            with self._news:
                for deliverer in woken:
                    if deliverer in self._quiet:
                        self._quiet.discard(deliverer)
                        self._put(deliverer, 0.0)
                if woken:
                    self._news.notify_all()
                if not self._closed:
                    self._news.wait(POLL_SECONDS)

    def _woken(self, quiet: list[Deliverer]) -> list[Deliverer]:
        """Return the webhooks with new entries; the end of each log is looked up once."""
        heads: dict[str, int] = {}
        found = []
        for deliverer in quiet:
            tenant = deliverer.hook.tenant
            try:
                if tenant not in heads:
                    heads[tenant] = deliverer.log_position
            except WoodratError as error:
                self._heard("webhook", {"webhook": deliverer.hook.id, "problem": error.code})
                continue
            if deliverer.has_letters or heads[tenant] > deliverer.position:
                found.append(deliverer)
        return found

    def close(self) -> None:
        """Stop; deliveries in flight get a grace period."""
        with self._news:
            self._closed = True
            for deliverer in self._known.values():
                deliverer.stopped = True
            self._news.notify_all()
        end = monotonic() + END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))
        for deliverer in tuple(self.busy):
            deliverer.cut_off()

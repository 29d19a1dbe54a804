"""The stale watcher: a thread that tells subscriptions which decisions the writes of this process made stale.

A write hands over its first and last position and goes on. The thread takes what waits: writes that follow one another
in the log are taken together, so that a burst costs little more than one write, and whatever waits is a short list of
ranges. Nothing else is kept: the log has the rest. One thread serves one log; it starts with the first write that
somebody wants to hear of, ends when nothing was written for a while, and is not there in a forked process.
"""

from __future__ import annotations

import atexit
import os
import threading
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from woodrat.engines.records import BEFORE_ALL
from woodrat.explain.workers.subscription import Subscription, check_callback
from woodrat.ledger import subscriptions

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.engine import Engine
    from woodrat.explain.workers.subscription import Callback

WAITING_MAX: Final = 256
"""How many ranges wait at most; beyond that the last one grows, and takes in what others wrote in between."""
RANGE_ENTRIES: Final = 4_096
"""How many entries are taken together, to the end of the write that reaches so far."""
PART_MAX: Final = 1_000
"""How many decisions a function is told of in one call."""
GATHER_SECONDS: Final = 0.05
"""How long the thread waits after a write for more of them; `flush` does not."""
IDLE_SECONDS: Final = 5.0
"""How long the thread waits for another write before it ends."""


class _Range(NamedTuple):
    """Writes that nobody was told of yet, one after another in the log."""

    first: int
    last: int
    audience: tuple[Subscription, ...]
    """Who subscribed before they were written."""


class StaleWatcher:
    """The subscriptions to one log, and the writes they have yet to be told of."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self.begin()

    def begin(self) -> None:
        """Begin without a thread and with nothing to report; a forked process does: its parent reports the rest."""
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: list[_Range] = []
        self._current: _Range | None = None
        self._grown = (0, -1)
        """First and last position of the last range that took in what others wrote."""
        self._position = BEFORE_ALL
        """The last position that was reported."""
        self._answer = BEFORE_ALL
        """The last position that a function wrote while it was told."""
        self._context: Context | None = None
        """That of the last writer; none while nothing waits, so that the engine is not held on to."""
        self._is_idle = False
        self._is_ending = False
        self._hurried = 0
        """How many wait until everything is reported."""

    # Subscriptions

    def add(self, callback: Callback) -> Subscription:
        """Add a subscription to what is written from now on."""
        subscription = Subscription(self, callback)
        with self._news:
            self._subscriptions += (subscription,)
        return subscription

    def has(self, subscription: Subscription) -> bool:
        """Return whether a subscription is among them."""
        return subscription in self._subscriptions

    def end(self, subscription: Subscription) -> None:
        """Report what was written so far, then remove a subscription."""
        self.flush(None)
        with self._news:
            self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    def flush(self, timeout: float | None) -> bool:
        """Wait until all that was written so far, and what functions write meanwhile, has been reported."""
        if self._is_own_thread():
            return False
        with self._news:
            latest = self._waiting[-1] if self._waiting else self._current
            if latest is None:
                return True
            through = latest.last
            self._hurried += 1
            self._news.notify_all()
            try:
                return self._news.wait_for(lambda: self._is_reported(through), timeout)
            finally:
                self._hurried -= 1

    def _is_reported(self, through: int) -> bool:
        through = max(through, self._answer)
        ranges = (self._current, self._waiting[0] if self._waiting else None)
        return all(each is None or each.first > through for each in ranges)

    def _is_own_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """Report what was written so far, then end the thread and all subscriptions."""
        self.flush(None)
        with self._news:
            self._subscriptions = ()
            self._is_ending = True
            self._news.notify_all()
            thread = self._thread
        if thread is not None and not self._is_own_thread():
            thread.join()

    # Writes

    def wrote(self, context: Context, first: int, last: int) -> None:
        """Take over a durable write; the thread goes on with it."""
        with self._news:
            if not self._subscriptions:
                return
            self._hand_over(_Range(first, last, self._subscriptions))
            self._context = context
            if self._is_own_thread():
                self._answer = last
            if self._thread is not None:
                if self._is_idle:
                    self._news.notify_all()
                return
            if self._start():
                return
        self._serve(patient=False)

    def _hand_over(self, written: _Range) -> None:
        if self._grown[0] <= written.first and written.last <= self._grown[1]:
            return  # the range that grew has it
        # Threads that write at the same time may come in another order than their writes have in the log.
        waiting = self._waiting
        place = bisect_left(waiting, written.first, key=lambda range: range.first)
        waiting.insert(place, written)
        for left in (place, place - 1):
            if 0 <= left < len(waiting) - 1 and _follows(waiting[left], waiting[left + 1]):
                waiting[left : left + 2] = [waiting[left]._replace(last=waiting[left + 1].last)]
        if len(waiting) > WAITING_MAX:
            before, latest = waiting[-2:]
            waiting[-2:] = [latest._replace(first=before.first)]
            self._grown = (before.first, latest.last)

    def _start(self) -> bool:
        """Start the thread; return whether there can be one. If not, whoever writes does its work, one at a time."""
        self._is_idle = self._is_ending = False
        self._thread = threading.Thread(target=self._serve, name="woodrat-stale", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the process may have no more threads, or is about to end
            self._thread = threading.current_thread()
            return False
        return True

    # The thread

    def _serve(self, *, patient: bool = True) -> None:
        """Report what waits, and with patience also what is written later."""
        while (context := self._take(patient)) is not None:
            written = self._current
            assert written is not None
            end = written.last
            try:
                end = self._report(context, written)
            finally:
                with self._news:
                    self._position = max(self._position, end)
                    self._current = None
                    if end < written.last:
                        self._waiting.insert(0, written._replace(first=end + 1))
                    self._news.notify_all()
            del context  # the engine is not held on to while nothing waits

    def _take(self, patient: bool) -> Context | None:
        """Make the first of what waits current, and return its writer's context; none when the work is to end."""
        with self._news:
            if not self._waiting:
                self._context = None
                self._is_idle = True
                self._news.wait_for(lambda: self._waiting or self._is_ending, IDLE_SECONDS if patient else 0)
                self._is_idle = False
            if not self._waiting:
                self._thread = None
                return None
            if patient and not self._hurried:
                self._news.wait_for(lambda: self._hurried or self._is_ending, GATHER_SECONDS)
            self._current = self._waiting.pop(0)
            assert self._context is not None
            return self._context

    def _report(self, context: Context, written: _Range) -> int:
        """Report the decisions that some writes made stale; return the position through which that is done."""
        from woodrat.explain.workers.search import StaleSearch

        first, last, audience = written
        audience = tuple(each for each in audience if not each.closed)
        if not audience:
            return last
        try:
            last = _end_of_writes(context, first, last)
            search = StaleSearch(context, first, last, present=self._position)
            positions = search.candidates()
            for start in range(0, len(positions), PART_MAX):
                decisions = tuple(search.compare(positions[start : start + PART_MAX]))
                for each in audience if decisions else ():
                    if not each.closed:
                        each.tell(decisions)
        except BaseException as problem:  # nobody else hears of it, and the thread must go on
            sentence = f"The entries {first} to {last} stand; which decisions they made stale could not be worked out"
            for each in audience:
                each.note(problem, f"{sentence} (`stale` lists all that are)")
        return last


def _follows(one: _Range, other: _Range) -> bool:
    """Return whether two ranges are reported as one."""
    return other.first == one.last + 1 and one.audience is other.audience


def _end_of_writes(context: Context, first: int, last: int) -> int:
    """Return where to stop in a range: not in the middle of a write, whose entries hold together or not at all."""
    if last - first < RANGE_ENTRIES:
        return last
    with context.engine.view(context.tenant) as view:
        entry = view.entry(first + RANGE_ENTRIES - 1)
        opening = None if entry is None else view.entry(entry.envelope.write)
        assert opening is not None and opening.envelope.length is not None
        return min(last, opening.envelope.write + opening.envelope.length - 1)


_WATCHERS: WeakKeyDictionary[Engine, dict[TenantId, StaleWatcher]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def subscribe(context: Context, callback: Callback) -> Subscription:
    """Have a function called with the decisions that the writes of this process make stale."""
    check_callback(callback)
    with _LOCK:
        watchers = _WATCHERS.setdefault(context.engine, {})
        watcher = watchers.get(context.tenant)
        if watcher is None:
            watcher = watchers[context.tenant] = StaleWatcher()
            subscriptions.listen(context.engine, context.tenant, watcher)
    return watcher.add(callback)


def _all_watchers() -> list[StaleWatcher]:
    return [watcher for watchers in list(_WATCHERS.values()) for watcher in watchers.values()]


def _finish() -> None:
    """Report what was written before the process ends."""
    for watcher in _all_watchers():
        watcher.flush(None)


def _begin_anew() -> None:
    """Begin anew in a forked process."""
    global _LOCK
    _LOCK = threading.Lock()
    for watcher in _all_watchers():
        watcher.begin()


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)

"""Remote watching: decisions as they become stale, at a ledger behind an address.

The server looks at the writes. It polls with long requests: the server waits a little before it answers that there is
none. Progress is kept as a position, so nothing is missed when a server restarts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from woodrat.api.codec import AnswerForm
from woodrat.errors import Unavailable, WoodratError
from woodrat.explain.workers.follower import Newly
from woodrat.explain.workers.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from woodrat.api.transport import Transport
    from woodrat.explain.stale import Stale

PATIENCE_SECONDS: Final = 5
"""How long the server waits for a write before it answers that there is none."""
POLL_SECONDS: Final = 0.2
"""Interval between a follower's requests."""
REST_SECONDS: Final = 1.0
"""Delay after a failed connection."""
_NEWLY: Final = AnswerForm(Newly, "", at_moment=False)


class RemoteFollower:
    """The decisions that writes make stale, by whomever they were written, from a position on."""

    def __init__(self, transport: Transport, after: int, *, patient: bool = True) -> None:
        self._transport = transport
        self._wait = PATIENCE_SECONDS if patient else 0
        self.position = after
        """Everything up to here was looked at."""

    def next(self, wait: int) -> Newly:
        """Return the decisions that the next writes made stale; the server waits so many seconds if there are none."""
        asked = {"after": self.position, "wait": wait or None}
        newly: Newly = _NEWLY.read(self._transport.get("/v1/stale/new", asked))
        return newly

    def close(self) -> None:
        """Let go of the connection."""
        self._transport.close()

    def wait(self) -> None:
        """Wait a moment before the next request; the server itself waits too."""
        threading.Event().wait(POLL_SECONDS)

    async def wait_on_loop(self) -> None:
        """Wait as `wait` does, on an event loop."""
        import asyncio

        await asyncio.sleep(POLL_SECONDS)

    def new(self) -> Iterator[Stale]:
        """Yield decisions that writes since the last call made stale."""
        wait = self._wait
        while (found := self.next(wait)).position != self.position:
            yield from found.decisions
            self.position, wait = found.position, 0


def watch(
    follower: RemoteFollower, callback: Callable[[tuple[Stale, ...]], object], head: Callable[[], int]
) -> Subscription:
    """Call a function, in a separate thread, with decisions that writes make stale from now on.

    `head` returns the end of the log.
    """
    return _Watch(follower, head).begin(callback)


class _Watch:
    """The subscription of a follower thread."""

    def __init__(self, follower: RemoteFollower, head: Callable[[], int]) -> None:
        self._follower = follower
        self._head = head
        self._ended = threading.Event()
        self._reported = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Start following and notifying."""
        found = Subscription(self, callback)
        self._thread = threading.Thread(target=self._run, args=(found,), name="woodrat-stale", daemon=True)
        self._thread.start()
        return found

    def has(self, subscription: Subscription) -> bool:
        """Return True if it still receives anything."""
        return not self._ended.is_set()

    def flush(self, timeout: float | None) -> bool:
        """Wait until all that was written so far has been reported; return whether it has."""
        if threading.current_thread() is self._thread:
            return False
        head = self._head()
        with self._reported:
            self._reported.wait_for(lambda: self._follower.position >= head or self._ended.is_set(), timeout)
        return self._follower.position >= head

    def end(self, subscription: Subscription) -> None:
        """Tell nothing more."""
        self._ended.set()
        with self._reported:
            self._reported.notify_all()

    def _run(self, subscription: Subscription) -> None:
        follower = self._follower
        while not self._ended.is_set():
            try:
                found = follower.next(PATIENCE_SECONDS)
            except WoodratError as problem:
                if self._ended.is_set():
                    break
                subscription.note(problem, "The server did not return the decisions that writes made stale")
                if not isinstance(problem, Unavailable):  # a retry would not change it
                    self.end(subscription)
                self._ended.wait(REST_SECONDS)
            else:
                if found.decisions and not self._ended.is_set():
                    subscription.tell(found.decisions)
                with self._reported:
                    follower.position = found.position
                    self._reported.notify_all()
        follower.close()

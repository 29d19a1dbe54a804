"""Followers: decisions as writes make them stale, whoever writes; they read the log from a position, write by write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from woodrat.explain.stale import Stale
from woodrat.explain.workers.search import KINDS, newly_stale
from woodrat.ledger.growth import growth_of
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from woodrat.context import Context

WAIT_SECONDS: Final = 60.0
"""How long a follower waits for a write before it looks all the same."""

_WINDOW: Final = 1_024


@dataclass(frozen=True, slots=True)
class Newly(Record):
    """What some writes after a position made stale."""

    position: int
    """Everything up to here was looked at."""
    decisions: tuple[Stale, ...]
    """The decisions, write by write."""


class Follower:
    """The decisions that writes make stale, by whomever they were written, from a position on."""

    def __init__(self, context: Context, after: int) -> None:
        self._context = context
        self._growth = growth_of(context.engine)
        self._seen: bytes | None = None
        self.position = after
        """Everything up to here was looked at."""

    def wait(self) -> None:
        """Wait until something may have been written since `new` was asked."""
        self._growth.wait(self._seen, WAIT_SECONDS)

    async def wait_on_loop(self) -> None:
        """Wait as `wait` does, on an event loop."""
        await self._growth.wait_on_loop(self._seen, WAIT_SECONDS)

    def new(self) -> Iterator[Stale]:
        """Yield what the writes since the last time made stale, write by write; no lock is held meanwhile."""
        self._seen = self._growth.stamp()  # before the log is looked at: what comes later ends the next wait
        with self._context.engine.view(self._context.tenant) as view:
            head = view.head().position
        while self.position < head:
            for first, last in self._writes(head):
                yield from newly_stale(self._context, first, last)
                self.position = max(self.position, last)

    def next(self) -> Newly:
        """Return what the next writes made stale, of a bounded part of the log; none where there is nothing new."""
        with self._context.engine.view(self._context.tenant) as view:
            head = view.head().position
        found: list[Stale] = []
        if self.position < head:
            for first, last in self._writes(head):
                found += newly_stale(self._context, first, last)
                self.position = max(self.position, last)
        return Newly(self.position, tuple(found))

    def _writes(self, head: int) -> list[tuple[int, int]]:
        """Return the next writes that belief may have changed by, as first and last position."""
        found: dict[int, int] = {}
        through = min(self.position + _WINDOW, head)
        with self._context.engine.view(self._context.tenant) as view:
            for entry in view.entries(self.position, through, KINDS):
                first = entry.envelope.write
                if first not in found:
                    opening = view.entry(first)
                    assert opening is not None and opening.envelope.length is not None
                    found[first] = first + opening.envelope.length - 1
        if not found:
            self.position = through
        return list(found.items())


class Following(Protocol):
    """What can be asked again and again for what became stale."""

    def new(self) -> Iterator[Stale]:
        """Yield what became stale since the last time."""

    def wait(self) -> None:
        """Wait until there may be more."""


def follow(follower: Following, wait: Callable[[], object] | None) -> Iterator[Stale]:
    """Yield stale decisions as they become so; `wait` is called when there is none, and ends it by returning false."""
    while True:
        yield from follower.new()
        if wait is None:
            follower.wait()
        elif wait() is False:
            return

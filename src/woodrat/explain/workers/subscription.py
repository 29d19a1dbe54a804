"""Subscription: a function that is told of decisions as they become stale, until it is closed."""

from __future__ import annotations

import warnings
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, Protocol

from woodrat.errors import Fault, Refused, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from woodrat.explain.stale import Stale

    Callback = Callable[[tuple[Stale, ...]], object]

PROBLEMS_MAX: Final = 100
"""How many problems a subscription keeps."""


class StaleWarning(UserWarning):
    """A function that is told of stale decisions failed, or they could not be worked out; the write stands."""


class Channel(Protocol):
    """Where subscriptions are."""

    def has(self, subscription: Subscription) -> bool:
        """Return whether a subscription is told anything."""

    def flush(self, timeout: float | None) -> bool:
        """Wait until all that was written so far has been reported; return whether it has."""

    def end(self, subscription: Subscription) -> None:
        """Tell a subscription nothing more."""


class Subscription:
    """A function that is told of decisions as they become stale, until this is closed; a context manager."""

    def __init__(self, channel: Channel, callback: Callback) -> None:
        self._channel = channel
        self._callback = callback
        self._context = copy_context()  # whoever writes, the function does not run inside the writer's run
        self.problems: list[BaseException] = []
        """What went wrong while it was told, the first of it; each was warned of as well."""

    @property
    def closed(self) -> bool:
        """Whether it is told nothing any more."""
        return not self._channel.has(self)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the function has been told of all that was written before; return whether it has.

        It waits for `timeout` seconds at most; default: as long as it takes. Called by the function itself, it returns
        `False` at once.
        """
        return self._channel.flush(timeout)

    def close(self) -> None:
        """Tell the function of what was written before, then stop; called by the function itself, stop at once.

        Behind a server it stops at once.
        """
        self._channel.end(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tell(self, decisions: tuple[Stale, ...]) -> None:
        """Call the function; what it raises is kept and warned of."""
        try:
            self._context.copy().run(self._callback, decisions)
        except BaseException as problem:  # an exit would end the thread that tells, and nobody would hear of it
            self.note(problem, "The write stands; the function that was told of it failed")

    def note(self, problem: BaseException, sentence: str) -> None:
        """Keep a problem and warn of it."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)
        # Warnings may be errors in this process, and be shown by code of its own; whoever tells still must not break.
        with suppress(Exception):
            warnings.warn(f"{sentence}: {type(problem).__name__}: {problem}", StaleWarning, stacklevel=2)


def check_callback(callback: object) -> None:
    """Refuse what cannot be called."""
    if not callable(callback):
        problem = f"expected a function, got {shown(callback)}"
        raise Refused([Fault("callback", problem, "Send a function of the stale decisions.")], "Nothing is watched.")

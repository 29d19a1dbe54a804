"""Subscriptions: whoever wants to hear of the writes to a log, once they are durable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.engine import Engine


class Listener(Protocol):
    """Hears of every write to one log by this process. It must not hold on to the engine of the log."""

    def wrote(self, context: Context, first: int, last: int) -> None:
        """Hear of a durable write, by its first and last position; the context is that of the writer."""

    def stop(self) -> None:
        """Finish with what was heard of: the log is about to be closed."""


_LISTENERS: WeakKeyDictionary[Engine, dict[TenantId, tuple[Listener, ...]]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def listen(engine: Engine, tenant: TenantId, listener: Listener) -> None:
    """Have a listener hear of the writes to a log from now on, as long as the engine lives."""
    with _LOCK:
        by_tenant = _LISTENERS.setdefault(engine, {})
        by_tenant[tenant] = (*by_tenant.get(tenant, ()), listener)


def stop(engine: Engine) -> None:
    """Have the listeners to the logs of an engine finish; it is about to be closed."""
    if engine in _LISTENERS:
        for listeners in list(_LISTENERS[engine].values()):
            for listener in listeners:
                listener.stop()


def publish(context: Context, first: int, last: int) -> None:
    """Let the listeners of a log hear of a write, by its first and last position, once it is durable."""
    if context.engine in _LISTENERS:
        for listener in _LISTENERS[context.engine].get(context.tenant, ()):
            _tell_listener(listener, context, first, last)
    if context.watch is not None:
        _tell_watch(context.watch.wrote, last)


def _tell_listener(listener: Listener, context: Context, first: int, last: int) -> None:
    once_durable(lambda: listener.wrote(context, first, last))


def _tell_watch(wrote: Callable[[int], None], last: int) -> None:
    once_durable(lambda: wrote(last))


_SHARED = threading.local()


def once_durable(notice: Callable[[], None]) -> None:
    """Call a function about a write of this thread: now, or after the commit that the write shares with others."""
    waiting: list[Callable[[], None]] | None = getattr(_SHARED, "notices", None)
    if waiting is None:
        notice()
    else:
        waiting.append(notice)


class Notices:
    """Holds back the notices of this thread's writes while they share a commit; a context manager.

    A write that shares a commit is not durable when it returns. An engine's `together` is a matter of the thread that
    opens it, and so is this.
    """

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def __enter__(self) -> Notices:
        assert getattr(_SHARED, "notices", None) is None, "it is not opened twice"
        _SHARED.notices = self._waiting
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        _SHARED.notices = None

    def send(self) -> None:
        """Give the notices, in the order of the writes; these are committed."""
        for notice in self._waiting:
            notice()

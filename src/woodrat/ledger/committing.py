"""Committing: writes that wait at the same time share one durable transaction, and each gets its own answer.

A commit waits for the disk, and while it does more writes arrive; they share the next. So nobody waits for company,
and a hundred callers cost little more than one. An answer is given after the commit, never before. A call
that is refused or raises is undone by itself. When the commit itself fails, every call that had gone well hears of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from woodrat.errors import Unavailable
from woodrat.ledger.watching import Held

if TYPE_CHECKING:
    from woodrat.engines.port import Engine

T = TypeVar("T")

SHARED_MAX = 256
"""Most calls that share a commit: the first of them waits for all."""

_Call = tuple[Callable[[], Any], Context, "Future[Any]", bool]


class Committer:
    """One thread that carries out the writes of many; a context manager."""

    def __init__(self, engine: Engine, *, shared_max: int = SHARED_MAX) -> None:
        self._engine = engine
        self._shared_max = shared_max
        self._waiting: deque[_Call] = deque()
        self._news = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="woodrat-committer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Committer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def submit(self, write: Callable[[], T], *, alone: bool = False) -> Future[T]:
        """Carry out `write`, a call of a ledger on this engine, in the caller's context; the future has its answer.

        A call that reads what it wrote itself must be `alone`: what shares a commit can be read after it only.
        """
        future: Future[T] = Future()
        with self._news:
            if self._closing:
                raise Unavailable("The server is shutting down. Nothing was written. Send the same call again later.")
            self._waiting.append((write, copy_context(), future, alone))
            self._news.notify()
        return future

    def close(self) -> None:
        """Finish what was submitted, and take nothing more; it may be closed twice."""
        with self._news:
            self._closing = True
            self._news.notify()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._news:
                while not self._waiting and not self._closing:
                    self._news.wait()
                if not self._waiting:
                    return
                count = min(len(self._waiting), self._shared_max)
                calls = [self._waiting.popleft() for _ in range(count)]
            calls = [call for call in calls if call[2].set_running_or_notify_cancel()]
            for shares, several in groupby(calls, lambda call: not call[3]):
                self._carry_out(list(several), shares)

    def _carry_out(self, calls: list[_Call], shares: bool) -> None:
        if shares and len(calls) > 1:
            self._commit(calls)
        else:
            for call in calls:
                _settle([(call[2], *_outcome(call))])

    def _commit(self, calls: list[_Call]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        held = Held()
        try:
            with held, self._engine.together():
                outcomes += [(call[2], *_outcome(call)) for call in calls]
        except BaseException as error:
            done = {future: failure for future, _, failure in outcomes}
            _settle([(call[2], None, done.get(call[2]) or error) for call in calls])
            return
        _settle(outcomes)
        held.tell()


def _outcome(call: _Call) -> tuple[Any, BaseException | None]:
    write, context = call[:2]
    try:
        return context.run(write), None
    except BaseException as error:
        return None, error


def _settle(outcomes: list[tuple[Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in outcomes:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

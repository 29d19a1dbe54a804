"""Committing: writes that wait at the same time share one durable transaction, and each gets its own answer.

A commit waits for the disk, and while it does more writes arrive; they share the next. So nobody waits for company.
They are carried out one after the other, in the order they arrived. An answer is given after the commit, never before.
A call that is refused or raises is undone by itself. When the commit itself fails, every call that had gone well hears
of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from itertools import groupby
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from woodrat.errors import Unavailable
from woodrat.ledger.subscriptions import Notices

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.engine import Engine

T = TypeVar("T")

SHARED_MAX = 256
"""Most calls that share a commit: the first of them waits for all."""


class _Task(NamedTuple):
    """A write that waits, and who waits for it: a future of a thread, or one of an event loop."""

    write: Callable[[], Any]
    context: Context
    future: Future[Any] | asyncio.Future[Any]
    alone: bool
    tenant: TenantId | None
    """The tenant it writes to, where that is known."""
    loop: asyncio.AbstractEventLoop | None

    def begin(self) -> bool:
        """Return whether anybody still wants it."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()


_Outcome = tuple[_Task, Any, BaseException | None]


class Committer:
    """One thread that carries out the writes of many; a context manager."""

    def __init__(
        self, engine: Engine, *, shared_max: int = SHARED_MAX, callers: Callable[[], int] | None = None
    ) -> None:
        """`callers` says how many coroutines there are that may come to write, where that is known."""
        self._engine = engine
        self._shared_max = shared_max
        self._waiting: SimpleQueue[_Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closing = False
        self._callers = callers
        self._arrived: dict[asyncio.AbstractEventLoop, list[_Task]] = {}
        self._begun = 0
        """How many that arrived on a loop were handed over and have no answer yet."""
        self._thread = threading.Thread(target=self._serve, name="woodrat-committer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Committer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def submit(self, write: Callable[[], T], *, alone: bool = False, tenant: TenantId | None = None) -> Future[T]:
        """Carry out `write`, a call of a ledger on this engine, in the caller's context; the future has its answer.

        A call that reads what it wrote itself must be `alone`: what shares a commit can be read after it only.
        """
        future: Future[T] = Future()
        with self._lock:
            self._check()
            self._waiting.put(_Task(write, copy_context(), future, alone, tenant, None))
        return future

    async def carry_out(self, write: Callable[[], T], *, alone: bool = False, tenant: TenantId | None = None) -> T:
        """Carry out `write` as `submit` does, for a coroutine; all that share a commit wake their loop once."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            self._check()
            arrived = self._arrived.get(loop)
            task = _Task(write, copy_context(), future, alone, tenant, loop)
            if self._callers is not None and self._begun + len(arrived or ()) + 1 >= self._callers():
                # Whoever could come is here or waits already.
                self._put(loop, task)
            elif arrived is None:
                self._arrived[loop] = [task]
                loop.call_soon(self._hand_over, loop, 0)
            else:
                arrived.append(task)
        try:
            return await future
        finally:
            self._begun -= 1

    def _put(self, loop: asyncio.AbstractEventLoop, *last: _Task) -> None:
        for task in (*self._arrived.pop(loop, ()), *last):
            self._begun += 1
            self._waiting.put(task)

    def _hand_over(self, loop: asyncio.AbstractEventLoop, before: int) -> None:
        """Hand what arrived on a loop to the committer's thread, once the loop has no more of it at hand.

        Both threads take turns at the interpreter: begun earlier, writes would only be carried out in smaller parts.
        """
        with self._lock:
            count = len(self._arrived.get(loop, ()))
            if before < count < self._shared_max:
                loop.call_soon(self._hand_over, loop, count)
                return
            self._put(loop)

    def _check(self) -> None:
        if self._closing:
            raise Unavailable("The server is shutting down. Nothing was written. Send the same call again later.")

    def close(self) -> None:
        """Finish what was submitted, and take nothing more; it may be closed twice."""
        with self._lock:
            if not self._closing:
                self._closing = True
                for loop in tuple(self._arrived):
                    self._put(loop)
                self._waiting.put(None)
        self._thread.join()

    def _serve(self) -> None:
        waiting = self._waiting
        while (first := waiting.get()) is not None:
            found = [first, *(waiting.get() for _ in range(min(waiting.qsize(), self._shared_max - 1)))]
            if found[-1] is None:
                waiting.put(None)  # it is the last there ever is
            tasks = [task for task in found if task is not None and task.begin()]
            for alone, several in groupby(tasks, lambda task: task.alone):
                self._carry_out(list(several), shares=not alone)

    def _carry_out(self, tasks: list[_Task], *, shares: bool) -> None:
        if shares and len(tasks) > 1:
            self._commit(tasks)
        else:
            for task in tasks:
                _settle([(task, *_outcome(task))])

    def _commit(self, tasks: list[_Task]) -> None:
        outcomes: list[_Outcome] = []
        notices = Notices()
        try:
            tenants = {task.tenant for task in tasks if task.tenant is not None}
            with notices, self._engine.together(tenants):
                outcomes += ((task, *_outcome(task)) for task in tasks)
        except BaseException as error:
            done = {id(task): failure for task, _, failure in outcomes}
            _settle([(task, None, done.get(id(task)) or error) for task in tasks])
            return
        _settle(outcomes)
        notices.send()


def _outcome(task: _Task) -> tuple[Any, BaseException | None]:
    try:
        return task.context.run(task.write), None
    except BaseException as error:
        return None, error


def _settle(outcomes: list[_Outcome]) -> None:
    """Tell everybody what became of their write; those of one loop together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
    for outcome in outcomes:
        loop = outcome[0].loop
        if loop is None:
            _set(*outcome)
        else:
            by_loop.setdefault(loop, []).append(outcome)
    for loop, several in by_loop.items():
        # A loop that is closed has nobody left who waits; what is durable stays so.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_all, several)


def _set_all(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        if not outcome[0].future.done():
            _set(*outcome)


def _set(task: _Task, result: Any, error: BaseException | None) -> None:
    if error is None:
        task.future.set_result(result)
    else:
        task.future.set_exception(error)

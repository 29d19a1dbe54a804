"""Working: other processes that check a part of the log or some entities each, beside this one, which does the same.

They are started by themselves rather than forked or spawned from this program, whose main module they need not know.
A task goes in and its result comes out as pickled bytes; both ends are this program.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Final

from woodrat.canon.ids import TenantId
from woodrat.engines.port import Engine
from woodrat.errors import Unavailable

_PROGRAM: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from woodrat.verify.workers import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)
_STEP, _DONE, _FAILED = "step", "done", "failed"
_Task = tuple[int, tuple[Any, ...]]
"""The number of a task, and its arguments."""


class Crew:
    """This process and those that help it, which are gone when the context ends."""

    def __init__(self, opener: Callable[[], Engine] | None, tenant: TenantId, jobs: int) -> None:
        self.jobs = jobs if sys.executable and opener is not None else 1
        """How many processes there are, this one included."""
        self._opener, self._tenant = opener, tenant
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            assert process.stdin is not None and process.stdout is not None
            if error is not None:
                process.kill()
            with suppress(OSError):  # it has ended already
                process.stdin.close()
            process.stdout.close()
            process.wait()

    def _start(self) -> None:
        for _ in range(self.jobs - 1 - len(self._processes)):
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "random")},
            )
            self._processes.append(process)
            assert process.stdin is not None
            for value in (sys.path, (self._opener, self._tenant)):
                pickle.dump(value, process.stdin)

    def begin(self, name: str, tasks: Sequence[tuple[Any, ...]]) -> Work:
        """Hand out a task for each tuple of arguments to those who help; `Work.finish` does the rest with them."""
        self._start()
        return Work(name, tasks, self._processes)


class Work:
    """Tasks under way."""

    def __init__(
        self, name: str, tasks: Sequence[tuple[Any, ...]], processes: Sequence[subprocess.Popen[bytes]]
    ) -> None:
        self._count = len(tasks)
        # Each of the others has a task before this process takes one; what is one task only is not worth a start.
        helping = processes if len(tasks) > 1 else ()
        first, rest = list(enumerate(tasks))[: len(helping)], list(enumerate(tasks))[len(helping) :]
        self._waiting: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        for item in rest:
            self._waiting.put(item)
        self._said: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        self._results: dict[int, Any] = {}
        self._threads = [
            threading.Thread(target=_feed, args=(process, name, task, self._waiting, self._said), daemon=True)
            for process, task in zip(helping, first, strict=False)
        ]
        for thread in self._threads:
            thread.start()

    def finish(self, own: Callable[..., Any], tell: Callable[[int], object]) -> list[Any]:
        """Do what nobody has begun, with `own`, and return the results of all tasks in order."""
        while True:
            try:
                number, arguments = self._waiting.get_nowait()
            except queue.Empty:
                break
            self._results[number] = own(*arguments)
            self._hear(tell, wait=False)
        while len(self._results) < self._count:
            self._hear(tell, wait=True)
        for thread in self._threads:
            thread.join()
        return [self._results[number] for number in range(self._count)]

    def _hear(self, tell: Callable[[int], object], *, wait: bool) -> None:
        """Take in what others have said; wait for something of it, if asked to."""
        while True:
            try:
                what, number, value = self._said.get(block=wait)
            except queue.Empty:
                return
            if what == _STEP:
                tell(value)
            elif what == _DONE:
                self._results[number] = value
            else:
                raise value
            wait = False


def _feed(
    process: subprocess.Popen[bytes],
    name: str,
    task: _Task,
    waiting: queue.SimpleQueue[_Task],
    said: queue.SimpleQueue[tuple[str, int, Any]],
) -> None:
    """Hand tasks to one process until there are none left."""
    assert process.stdin is not None and process.stdout is not None
    while True:
        number, arguments = task
        try:
            pickle.dump((name, arguments), process.stdin)
            process.stdin.flush()
            while True:
                what, value = pickle.load(process.stdout)
                said.put((what, number, value))
                if what != _STEP:
                    break
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            # A value error is a pipe that was closed here, since another process had failed before.
            problem = "A worker process ended. Nothing was changed. Verify again with one job."
            failed = Unavailable(problem)
            failed.__cause__ = error
            said.put((_FAILED, number, failed))
            return
        try:
            task = waiting.get_nowait()
        except queue.Empty:
            return


def serve(tasks: BinaryIO, results: BinaryIO) -> None:
    """Do tasks until there are no more, in a process of its own."""
    from woodrat.merge import BUILTIN
    from woodrat.verify import reader as verify_reader

    opener, tenant = pickle.load(tasks)
    engine: Engine = opener()

    def say(what: str, value: object) -> None:
        pickle.dump((what, value), results)
        results.flush()

    try:
        while True:
            try:
                name, arguments = pickle.load(tasks)
            except EOFError:
                return
            try:
                with engine.view(tenant) as view:
                    found: object
                    if name == "stretch":
                        start, end, size, sizes = arguments
                        found = verify_reader.stretch(
                            view, view.audit(size), start, end, size, sizes, lambda count: say(_STEP, count)
                        )
                    else:
                        within, size, deep = arguments
                        steps = _Steps(lambda count: say(_STEP, count))
                        found = verify_reader.refold(view, view.audit(size), BUILTIN, within, deep, steps.add)
                        steps.flush()
                say(_DONE, found)
            except Exception as error:  # whatever it is, the one who asked must hear of it
                say(_FAILED, error)
    finally:
        engine.close()


class _Steps:
    """Says how much is done, some at a time: a message for every entity would cost more than the entity."""

    LEAST: Final = 1_000

    def __init__(self, say: Callable[[int], object]) -> None:
        self._say, self._count = say, 0

    def add(self, count: int) -> None:
        self._count += count
        if self._count >= self.LEAST:
            self.flush()

    def flush(self) -> None:
        self._say(self._count)
        self._count = 0

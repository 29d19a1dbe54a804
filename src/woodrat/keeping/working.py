"""Working: other processes that check a part of the log or some entities each.

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
    "from woodrat.keeping.working import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)
_STEP, _DONE, _FAILED = "step", "done", "failed"


class Crew:
    """Some processes, started when there is work for them and gone when the context ends."""

    def __init__(self, opener: Callable[[], Engine] | None, tenant: TenantId, jobs: int) -> None:
        self.jobs = jobs if sys.executable and opener is not None else 1
        """How many processes there are; with one, there is none but this."""
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
        for _ in range(self.jobs - len(self._processes)):
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

    def run(self, name: str, tasks: Sequence[tuple[Any, ...]], tell: Callable[[int], object]) -> list[Any]:
        """Do a task for each tuple of arguments, and return their results in order."""
        self._start()
        waiting: queue.SimpleQueue[tuple[int, tuple[Any, ...]]] = queue.SimpleQueue()
        for item in enumerate(tasks):
            waiting.put(item)
        said: queue.SimpleQueue[tuple[str, int, Any]] = queue.SimpleQueue()
        threads = [
            threading.Thread(target=_feed, args=(process, name, waiting, said), daemon=True)
            for process in self._processes
        ]
        for thread in threads:
            thread.start()
        results: dict[int, Any] = {}
        while len(results) < len(tasks):
            what, number, value = said.get()
            if what == _STEP:
                tell(value)
            elif what == _DONE:
                results[number] = value
            else:
                raise value
        for thread in threads:
            thread.join()
        return [results[number] for number in range(len(tasks))]


def _feed(
    process: subprocess.Popen[bytes],
    name: str,
    waiting: queue.SimpleQueue[tuple[int, tuple[Any, ...]]],
    said: queue.SimpleQueue[tuple[str, int, Any]],
) -> None:
    """Hand tasks to one process until there are none left."""
    assert process.stdin is not None and process.stdout is not None
    while True:
        try:
            number, arguments = waiting.get_nowait()
        except queue.Empty:
            return
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
            problem = "A process that was to help has ended. Nothing was changed. Verify again with one job."
            failed = Unavailable(problem)
            failed.__cause__ = error
            said.put((_FAILED, number, failed))
            return


def serve(tasks: BinaryIO, results: BinaryIO) -> None:
    """Do tasks until there are no more, in a process of its own."""
    from woodrat.keeping import verifying
    from woodrat.state.policy import BUILTIN

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
                        found = verifying.stretch(
                            view, view.audit(size), start, end, size, sizes, lambda count: say(_STEP, count)
                        )
                    else:
                        within, size, deep = arguments
                        steps = _Steps(lambda count: say(_STEP, count))
                        found = verifying.refold(view, view.audit(size), BUILTIN, within, deep, steps.add)
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

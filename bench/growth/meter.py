"""The meter: what a call costs, in time of the processor and memory, in a process of its own.

Memory is the peak of the process above what it held when the call began, after it gave back what it had freed: else
what a call needs would be found in what the one before it left. The largest process that the call started and waited
for is added. Time is that of the processor, whatever else the machine does, processes that the call starts included.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.growth import processes

WARM_SECONDS = 0.25
"""How long a call is repeated."""
CALLS_MAX = 20
"""How often it is repeated at most."""
WALL_FACTOR = 10
"""How much longer than its limit of processor time a process may take, waits included."""
LOOK_SECONDS = 0.2
"""How often it is looked at how long a process has worked."""


@dataclass(slots=True)
class Outcome:
    """What a process reported before it ended."""

    results: dict[str, Any] = field(default_factory=dict)
    """What it reported, by name."""
    problem: str | None = None
    """Why it ended early; none where it did not."""


def in_child(work: Callable[[], Iterator[dict[str, Any]]], seconds_max: float) -> Outcome:
    """Run work in a process of its own, and return what it yields, all in one; later values take the place of earlier.

    The process and those it started are ended when they have used the processor for longer than `seconds_max`.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        _child(work, writing)
    os.close(writing)
    text, in_time = _all_of(reading, child, seconds_max)
    if not in_time:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    outcome = Outcome()
    for line in text.splitlines(keepends=True):
        if line.endswith(b"\n"):
            outcome.results.update(json.loads(line))
    outcome.problem = outcome.results.pop("problem", None)
    if not in_time:
        outcome.problem = f"more than {seconds_max:g} s"
    elif os.WIFSIGNALED(status):
        outcome.problem = f"ended by signal {os.WTERMSIG(status)}"
    return outcome


def _child(work: Callable[[], Iterator[dict[str, Any]]], writing: int) -> None:
    """Do the work of the forked process; never returns."""
    try:
        # A warning of the library is no answer, and would tear the table.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        for results in work():
            os.write(writing, json.dumps(results).encode() + b"\n")
    except BaseException as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        reason = " ".join(str(problem).split())[:300]
        message = {"problem": f"{type(problem).__name__} at {place}: {reason}"}
        os.write(writing, json.dumps(message).encode() + b"\n")
    finally:
        os._exit(0)


def _all_of(reading: int, child: int, seconds_max: float) -> tuple[bytes, bool]:
    """Return all that comes through a pipe, and whether it was closed before the child had worked too long."""
    parts: list[bytes] = []
    end = time.monotonic() + seconds_max * WALL_FACTOR
    try:
        while time.monotonic() < end and processes.worked_seconds(processes.tree(child)) < seconds_max:
            if select.select([reading], [], [], LOOK_SECONDS)[0]:
                part = os.read(reading, 65_536)
                if not part:
                    return b"".join(parts), True
                parts.append(part)
        return b"".join(parts), False
    finally:
        os.close(reading)


class Meter:
    """Counts what this process works, and what memory it takes; processes that it waited for included."""

    def __init__(self) -> None:
        self._worked, self._memory, self._waited_for = 0.0, 0, 0.0

    def reset(self) -> None:
        """Begin to count."""
        processes.give_back()
        self._waited_for = self._children_seconds()
        processes.forget_peak([os.getpid()])
        self._memory = processes.memory_bytes([os.getpid()], peak=False)
        self._worked = self._worked_seconds()

    def seconds(self) -> float:
        """Return the processor time since then."""
        return self._worked_seconds() - self._worked

    def peak_bytes(self) -> int:
        """Return the memory at its peak beyond what was held then."""
        own = max(0, processes.memory_bytes([os.getpid()], peak=True) - self._memory)
        if self._children_seconds() == self._waited_for:
            return own
        return own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1_024

    def _worked_seconds(self) -> float:
        return time.process_time() + self._children_seconds()

    @staticmethod
    def _children_seconds() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime


class TreeMeter(Meter):
    """Counts what another process works, and what memory it takes; those that it started included."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid

    def reset(self) -> None:
        pids = processes.tree(self._pid)
        processes.forget_peak(pids)
        self._memory = processes.memory_bytes(pids, peak=False)
        self._worked = processes.worked_seconds(pids)

    def seconds(self) -> float:
        return processes.worked_seconds(processes.tree(self._pid)) - self._worked

    def peak_bytes(self) -> int:
        return max(0, processes.memory_bytes(processes.tree(self._pid), peak=True) - self._memory)


def measured(
    call: Callable[[int], object],
    meter: Meter,
    *,
    calls_max: int,
    first: bool = True,
) -> Iterator[dict[str, Any]]:
    """Make a call for the first time, and again for a while; yield what each kind costs as soon as it is known.

    `cold` is the first call in milliseconds, `warm` the median of those that follow, of which there are at most
    `calls_max`. Without `first`, the first call does not count.
    """
    gc.collect()
    meter.reset()
    call(0)
    if first:
        yield {"cold": meter.seconds() * 1_000, "cold_bytes": meter.peak_bytes()}
    gc.collect()
    times: list[float] = []
    peak = 0
    while len(times) < calls_max and sum(times) < WARM_SECONDS:
        meter.reset()
        call(len(times) + 1)
        times.append(meter.seconds())
        peak = max(peak, meter.peak_bytes())
    if times:
        yield {"warm": median(times) * 1_000, "warm_bytes": peak}

"""Processes: what a process and those it started work and hold, as the system tells it (Linux; elsewhere nothing).

A limit of the system on processor time (RLIMIT_CPU) is no way to bound a measurement: while one is set, the kernel
counts in ticks of some milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def tree(pid: int) -> list[int]:
    """Return a process and all that it started and that still run."""
    pids, waiting = [], [pid]
    while waiting:
        each = waiting.pop()
        pids.append(each)
        with suppress(OSError):
            for task in os.listdir(f"/proc/{each}/task"):
                waiting += map(int, Path(f"/proc/{each}/task/{task}/children").read_text().split())
    return pids


def worked_seconds(pids: Iterable[int]) -> float:
    """Return how long processes have used the processor."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):
            # The clock of another process, as clock_getcpuclockid(3) makes it: finer than the ticks in /proc.
            total += time.clock_gettime((~pid << 3) | 2)
    return total


def memory_bytes(pids: Iterable[int], *, peak: bool) -> int:
    """Return the memory that processes hold, or held at their peak since `forget_peak`."""
    name = "VmHWM:" if peak else "VmRSS:"
    total = 0
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(name):
                    total += int(line.split()[1]) * 1_024
    return total


def give_back() -> None:
    """Have this process give back memory that it freed (glibc; elsewhere it keeps it)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def forget_peak(pids: Iterable[int]) -> None:
    """Let the peak of memory be what is held now."""
    for pid in pids:
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")

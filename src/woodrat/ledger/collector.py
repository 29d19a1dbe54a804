"""The garbage collector, held off while a batch is written.

A batch makes some twenty objects for each record and lets go of nearly all of them at its end. The collector would look
through them again and again meanwhile, and through all else in memory, and find nothing: what a write makes holds no
cycles. So it waits, as long as one batch takes and no longer.

Deriving everything again goes on for longer. It holds the collector off too, and gives it a turn now and then.

Only one batch at a time holds it off, in the whole process: one that begins meanwhile, in another thread or inside the
first, is written with the collector as it is. So the collector gets its turn after each batch, however many there are.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

BATCH_MIN: Final = 32
"""A write of fewer records makes too little to be looked through."""
BATCH_MAX: Final = 20_000
"""A write of more records goes on for so long that others need the collector meanwhile."""

TURN_EVERY: Final = 200
"""After so many parts of something long the collector has its turn."""

_turn = threading.Lock()


@contextmanager
def held_off(count: int) -> Iterator[None]:
    """Hold the collector off for a batch of so many records, unless it is off already or the batch is no batch."""
    if not BATCH_MIN <= count <= BATCH_MAX or not gc.isenabled() or not _turn.acquire(blocking=False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _turn.release()


@contextmanager
def held_off_long() -> Iterator[Callable[[], None]]:
    """Hold the collector off for something long; what is given is to be called after each part, and has it collect."""
    parts = 0

    def part_is_done() -> None:
        nonlocal parts
        parts += 1
        if parts % TURN_EVERY == 0 and not gc.isenabled():
            gc.collect()

    with held_off(BATCH_MAX):
        yield part_is_done


def _go_on() -> None:
    """Have the collector work in a forked process: the batch that held it off is written by the parent."""
    global _turn
    if _turn.locked():
        gc.enable()
        _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on)

"""Living: the runs that this process is recording now. Any other run without an end reads as interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

_LIVING: WeakValueDictionary[str, object] = WeakValueDictionary()
_TURN = threading.Lock()


def begin(run: str, recorder: object, is_same: Callable[[object], bool]) -> bool:
    """Note that a recorder of this process records a run, until it says otherwise or is gone.

    Return whether it was noted: not when there is a recorder of the same run already.
    """
    with _TURN:
        before = _LIVING.get(run)
        if before is not None and is_same(before):
            return False
        _LIVING[run] = recorder
        return True


def finish(run: str, recorder: object) -> None:
    """Note that a recorder no longer records a run."""
    with _TURN:
        if _LIVING.get(run) is recorder:
            del _LIVING[run]


def recorder(run: str) -> object | None:
    """Return what records a run in this process."""
    return _LIVING.get(run)


def lives(run: str) -> bool:
    """Return whether this process is recording a run."""
    return run in _LIVING

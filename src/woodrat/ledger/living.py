"""Living: the runs that this process is recording now. Any other run without an end reads as interrupted."""

from __future__ import annotations

from weakref import WeakValueDictionary

_LIVING: WeakValueDictionary[str, object] = WeakValueDictionary()


def begin(run: str, recorder: object) -> None:
    """Note that a recorder of this process records a run, until it says otherwise or is gone."""
    _LIVING[run] = recorder


def finish(run: str) -> None:
    """Note that this process no longer records a run."""
    _LIVING.pop(run, None)


def recorder(run: str) -> object | None:
    """Return what records a run in this process."""
    return _LIVING.get(run)


def lives(run: str) -> bool:
    """Return whether this process is recording a run."""
    return run in _LIVING

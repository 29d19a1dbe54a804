"""Asking: what a verification is asked with, checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from woodrat.errors import Fault, Refused, shown
from woodrat.log import checking
from woodrat.log.checking import Held
from woodrat.log.tree import HASH_BYTES, SIZE_MAX

JOBS_MAX: Final = 64
"""Most processes that can be asked for."""
NOT_VERIFIED: Final = "Nothing was verified."
_REMEDY = "Send the text of a signed note, or a size and a root in hex."


def check_jobs(jobs: object) -> int | None:
    """Return a number of processes; `Refused` when it is none."""
    if jobs is None or (type(jobs) is int and 1 <= jobs <= JOBS_MAX):
        return jobs
    raise Refused([Fault("jobs", f"got {shown(jobs)}", f"Send 1 to {JOBS_MAX}, or leave it out.")], NOT_VERIFIED)


def check_checkpoints(given: Iterable[object]) -> tuple[Held, ...]:
    """Return checkpoints: each given as one, as the text of its note, or as (size, root in hex)."""
    found: list[Held] = []
    faults: list[Fault] = []
    for number, one in enumerate(given):
        try:
            found.append(_held(one))
        except (TypeError, ValueError) as error:
            problem = f"not a checkpoint: {error}"
            faults.append(Fault(f"checkpoints/{number}", problem, _REMEDY))
    if faults:
        raise Refused(faults, NOT_VERIFIED)
    return tuple(found)


def _held(one: object) -> Held:
    if isinstance(one, Held):
        return one
    if isinstance(one, str):
        return checking.held(one)
    if not isinstance(one, tuple | list) or len(one) != 2:
        raise ValueError(f"got {shown(one)}")
    size, root = one
    if type(size) is not int or not 0 <= size <= SIZE_MAX:
        raise ValueError(f"the size is {shown(size)}")
    if not isinstance(root, str) or len(root) != 2 * HASH_BYTES:
        raise ValueError(f"the root is {shown(root)}")
    return Held(None, size, bytes.fromhex(root))

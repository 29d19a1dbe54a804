"""The catalogue: every case, and which verbs have none and why."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import FunctionType

from bench.growth import answers, lists, upkeep, work, writes
from bench.growth.case import Case
from woodrat.api.ledger import Ledger
from woodrat.api.verbs import NAMESPACES, verbs

NOT_MEASURED: Mapping[str, str] = {
    "as_agent": "returns the same ledger under another name",
    "at": "resolves a moment; every row about the past measures it",
    "close": "nothing is left to do that a write did not",
    "erased_at": "answers a question of the server's log route",
    "run_log": "returns where runs are recorded",
    "runs.carry_on": "part of runs.resume",
    "runs.forked": "part of runs.fork",
    "stale_follower": "part of follow_stale",
}
"""Public methods without a row."""


def all_cases() -> tuple[Case, ...]:
    """Return every case, in the order of the table."""
    return (*answers.cases(), *lists.cases(), *work.cases(), *writes.cases(), *upkeep.cases())


def names() -> set[str]:
    """Return every verb of the library by its name: those that are declared, and the other public methods."""
    kinds: dict[str, type] = {"": Ledger}
    for namespace, kind in NAMESPACES.items():
        kinds[namespace] = getattr(import_module(f"woodrat.api.{namespace}"), kind)
    methods = {
        f"{namespace}.{name}" if namespace else name
        for namespace, kind in kinds.items()
        for each in kind.__mro__
        for name, member in vars(each).items()
        if isinstance(member, FunctionType) and not name.startswith("_")
    }
    return methods | set(verbs())


def missing() -> set[str]:
    """Return the verbs that have neither a case nor a reason."""
    return names() - {case.verb for case in all_cases()} - set(NOT_MEASURED)

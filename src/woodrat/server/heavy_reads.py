"""Heavy verbs: the one list of what is linear by nature, and how such a read is answered elsewhere.

A page or a single answer is read in a thread of the server. What works through a whole log may take seconds, and is
answered by a process of its own (`workers.py`), of which there are few: threads of one process share one interpreter,
so a long computation in any of them slows every caller. How many run and wait is bounded by key and in total
(`rates.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

ALWAYS: Final = frozenset({"bisect", "diff_against", "prove_order", "reduce", "runs_group", "verify", "what_if"})
"""Reads that work through a log many times, or compare it with whatever is sent."""
ON_LONG_LOGS: Final = frozenset({"diff", "schemas_infer", "values"})
"""Reads that work through a log once, so that they are heavy on a log of some length."""
FOLDING: Final[Mapping[str, tuple[str, ...]]] = {
    "conflicts": ("valid_at",),
    "duplicates": ("valid_at",),
    "fingerprint": ("provenance", "as_of"),
}
"""Arguments with which an answer of an index is folded from all entities instead."""
RECALL: Final = "recall"
"""The read that has threads of its own: it may wait for a model."""
LONG_LOG_ENTRIES: Final = 1_000
"""From how many entries on a log is long."""
TELLING: Final[Mapping[str, str]] = {"prove_order": "orders", "verify": "entries"}
"""Reads that say how far they are to those who follow them as a stream, and what they count."""
WRITES: Final = frozenset(
    {"erase", "erase_again", "finish_erasure", "log_import", "rebuild", "reindex", "runs_evaluate"}
)
"""Writes that work through the whole log while other writers wait."""


class Job(NamedTuple):
    """A heavy read as it is handed to another process."""

    verb: str
    """The verb that it is, however it is asked for."""
    answer: Callable[[Ledger, dict[str, Any]], Any]
    """Answers it: a function of a module, as the other process loads it by its name."""
    tenant: str
    """Whose ledger."""
    agent: str
    """As whom."""
    given: Mapping[str, Any]
    """The arguments by their names in the library."""
    tells: bool = False
    """Whether the other process says how far it is; the verb then takes `progress`."""


def is_apart(verb: str, given: Mapping[str, Any]) -> bool:
    """Return whether a read may be answered elsewhere than by the threads that read: one that has to be a `Job`."""
    return verb == RECALL or is_heavy(verb, given) or is_heavy_on_long_logs(verb, given)


def is_heavy(verb: str, given: Mapping[str, Any]) -> bool:
    """Return whether a read is heavy, however short the log is."""
    # Of two runs that are compared each may come as a document, as long as its sender likes.
    documents = verb == "runs_diff" and not all(isinstance(given.get(name), str) for name in ("first", "second"))
    return documents or verb in ALWAYS


def is_heavy_on_long_logs(verb: str, given: Mapping[str, Any]) -> bool:
    """Return whether a read is heavy on a long log. What is about one entity is not."""
    return (verb in ON_LONG_LOGS and given.get("ref") is None) or any(map(given.get, FOLDING.get(verb, ())))

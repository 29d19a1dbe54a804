"""Heavy verbs: the one list of what may cost a server seconds of work, and how such a read is answered elsewhere.

A heavy read is answered by a process of its own (`workers.py`), of which there are few: threads of one process share
one interpreter, so a long computation in any of them slows every caller. How many run and wait is bounded by key and in
total (`rates.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

ALWAYS: Final = frozenset(
    {
        "bisect",
        "diff_against",
        "prove_order",
        "reduce",
        "runs_group",
        "stale",
        "verify",
        "what_if",
    }
)
"""Reads that work through the whole log, most of them many times."""
ON_LONG_LOGS: Final = frozenset(
    {
        "diff",
        "fingerprint",
        "impact",
        "interpretations_diff",
        "lineage",
        "runs_diff",
        "schemas_infer",
        "values",
    }
)
"""Reads that work through the whole log once, so that they are heavy on a log of some length."""
BY_VALID_TIME: Final = frozenset({"conflicts", "duplicates"})
"""Lists that an index answers, unless they are asked by effective time: then every entity is folded."""
_COMPARED: Final = ("first", "second")
"""The two runs that are compared; a document of a run is as long as its sender likes."""
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


def is_heavy(verb: str, given: Mapping[str, Any], ledger: Ledger) -> bool:
    """Return whether a read is heavy. A log's length is looked up only where it matters."""
    if verb in ALWAYS or (verb == "runs_diff" and not all(isinstance(given[name], str) for name in _COMPARED)):
        return True
    return may_be_heavy(verb, given) and ledger.position >= LONG_LOG_ENTRIES


def is_apart(verb: str, given: Mapping[str, Any]) -> bool:
    """Return whether a read may be answered elsewhere than by the threads that read: one that has to be a `Job`."""
    return verb == RECALL or may_be_heavy(verb, given)


def may_be_heavy(verb: str, given: Mapping[str, Any]) -> bool:
    """Return whether a read is heavy on a long log."""
    folds = verb in BY_VALID_TIME and given.get("valid_at") is not None
    return folds or verb in ALWAYS or verb in ON_LONG_LOGS


def recall_go_on(ledger: Ledger) -> bool:
    """Take a step with the index that recalls look at; return whether there is more to do."""
    from woodrat.recall import index as recall_index

    return recall_index.go_on(ledger.context)

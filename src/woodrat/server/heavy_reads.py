"""Heavy reads: the one list of verbs with linear cost, and their execution in another process.

A page or a single answer is read in a thread of the server. A verb that walks a whole log may take seconds and runs in
a separate process (`workers.py`), because threads share one interpreter and a long computation would slow every caller.
There are few of these processes; `rates.py` limits the running and waiting jobs by key and in total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

ALWAYS: Final = frozenset({"bisect", "diff_against", "prove_order", "reduce", "runs_group", "verify", "what_if"})
"""Reads that walk a log many times, or compare it with data of the caller."""
ON_LONG_LOGS: Final = frozenset({"diff", "schemas_infer", "values"})
"""Reads that walk a log once: heavy on a long log."""
FOLDING: Final[Mapping[str, tuple[str, ...]]] = {
    "conflicts": ("valid_at",),
    "duplicates": ("valid_at",),
    "fingerprint": ("provenance", "as_of"),
}
"""Arguments that turn an indexed answer into a fold of all entities."""
RECALL: Final = "recall"
"""The read with a thread pool of its own, because it may wait for a model."""
LONG_LOG_ENTRIES: Final = 1_000
"""Number of entries from which a log is long."""
TELLING: Final[Mapping[str, str]] = {"prove_order": "orders", "verify": "entries"}
"""Reads that stream their progress, with the unit they count."""
WRITES: Final = frozenset(
    {"erase", "erase_again", "finish_erasure", "log_import", "rebuild", "reindex", "runs_evaluate"}
)
"""Writes that walk the whole log while other writers wait."""


class Job(NamedTuple):
    """A heavy read as a job for another process."""

    verb: str
    """The verb, however it was requested."""
    answer: Callable[[Ledger, dict[str, Any]], Any]
    """The function that answers it; the other process imports it by module and name."""
    tenant: str
    """The tenant."""
    agent: str
    """The agent."""
    given: Mapping[str, Any]
    """The arguments by their names in the library."""
    tells: bool = False
    """True if the process reports progress; the verb then takes `progress`."""


def is_apart(verb: str, given: Mapping[str, Any]) -> bool:
    """Return True if a read may run in another process, so that it needs a `Job`."""
    return verb == RECALL or is_heavy(verb, given) or is_heavy_on_long_logs(verb, given)


def is_heavy(verb: str, given: Mapping[str, Any]) -> bool:
    """Return True if a read is heavy on a log of any length."""
    # each of two compared runs may be sent as a document of any length
    documents = verb == "runs_diff" and not all(isinstance(given.get(name), str) for name in ("first", "second"))
    return documents or verb in ALWAYS


def is_heavy_on_long_logs(verb: str, given: Mapping[str, Any]) -> bool:
    """Return True if a read is heavy on a long log. Reads of one entity are not."""
    return (verb in ON_LONG_LOGS and given.get("ref") is None) or any(map(given.get, FOLDING.get(verb, ())))

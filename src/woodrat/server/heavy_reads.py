"""Heavy verbs: the one list of what may cost a server seconds of work, and how such a read is answered elsewhere.

A heavy read is answered by a process of its own (`workers.py`), of which there are few: threads of one process share
one interpreter, so a long computation in any of them slows every caller. How many run and wait is bounded by key and in
total (`http/turns.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

ALWAYS: Final = frozenset(
    {
        "bisect",
        "diff_against",
        "prove_order",
        "reduce",
        "runs_diff_documents",
        "runs_group",
        "stale",
        "verify",
        "what_if",
    }
)
"""Reads that work through the whole log, most of them many times."""
ON_LONG_LOGS: Final = frozenset(
    {
        "conflicts",
        "diff",
        "duplicates",
        "fingerprint",
        "impact",
        "infer",
        "interpretations_diff",
        "lineage",
        "runs_diff",
        "timeline",
        "values",
    }
)
"""Reads that work through the whole log once, so that they are heavy on a log of some length."""
SHELVED: Final = frozenset({"bisect", "impact", "lineage", "runs_diff", "runs_group", "stale", "what_if"})
"""Those that read derived shelves, which a process that only reads cannot bring up to date."""
LONG_LOG_ENTRIES: Final = 1_000
"""From how many entries on a log is long."""
WRITES: Final = frozenset({"erase", "erase_again", "evaluate", "finish_erasure", "import_log", "rebuild", "reindex"})
"""Writes that work through the whole log while other writers wait."""
HTTP, MCP = "http", "mcp"
WHOLE: Final = "whole"
"""That a route is to answer with the library's records."""


class Job(NamedTuple):
    """A heavy read as it is handed to another process."""

    surface: str
    """Which table of verbs it is from: `http` or `mcp`."""
    verb: str
    """The verb of the route, or the name of the tool."""
    action: str
    """The action of the tool; of a route, `WHOLE` where a whole answer is wanted."""
    tenant: str
    """Whose ledger."""
    agent: str
    """As whom."""
    given: Mapping[str, Any]
    """The arguments by their names in the library."""

    @property
    def name(self) -> str:
        """The verb that it is, whichever way it is asked for: of a tool with actions, the action."""
        return self.action if self.surface == MCP and self.action else self.verb


def is_heavy(verb: str, given: Mapping[str, Any], ledger: Ledger) -> bool:
    """Return whether a read is heavy. A log's length is looked up only where it matters."""
    if verb in ALWAYS:
        return True
    every = verb == "observations" and given.get("ref") is None and given.get("limit") is None
    return (every or verb in ON_LONG_LOGS) and ledger.position >= LONG_LOG_ENTRIES


def may_be_heavy(verb: str, given: Mapping[str, Any]) -> bool:
    """Return whether a read is heavy on a long log."""
    return verb in ALWAYS or verb in ON_LONG_LOGS or (verb == "observations" and "ref" not in given)


def catch_up(ledger: Ledger) -> None:
    """Bring the derived shelves that heavy reads use up to date, so that the next of them reads less of the log."""
    from woodrat.explain import index as trace_index
    from woodrat.runs import reader as run_reader

    run_reader.catch_up(ledger.context.engine, ledger.tenant)
    trace_index.catch_up(ledger.context)


def answer(job: Job, ledger: Ledger) -> Any:
    """Return what a job's surface answers: of a route the bytes and headers to send, of a tool its content."""
    given = dict(job.given)
    if job.surface == MCP:
        from woodrat.mcp import tools
        from woodrat.runs.relay import Relay

        return tools.bounded(tools.tools()[job.verb].actions[job.action].answer(ledger, Relay(), given))
    from woodrat.server import records, reply
    from woodrat.server.routes import ROUTES

    route = next(route for route in ROUTES if route.verb == job.verb)
    return reply.read(records.answering(route) if job.action == WHOLE else route, ledger, given)

"""What rooms list of the entries of the log: which entries concern them; a room is imported once one does."""

from __future__ import annotations

from functools import cache
from typing import Final

from woodrat.ledger.log_rows import Listing, Room, declare
from woodrat.state.meaning import RUN_KINDS

_ANY: Final = (b"",)


@cache
def _runs() -> Room:
    from woodrat.runs import index

    return index


@cache
def _run_lists() -> Room:
    from woodrat.runs.index import listing

    return listing


@cache
def _explain() -> Room:
    from woodrat.explain.index import traces

    return traces


# Looking for a word in the bytes costs a fraction of reading them.
declare(
    Listing(
        "runs",
        {"observation": (b'"run":"', b'"type":"evaluation"'), "run.started": _ANY, "run.decided": _ANY},
        _runs,
    ),
    Listing(
        "run lists",
        {"observation": (b'"evaluation',), "schema": (b'"evaluation"',), **dict.fromkeys(RUN_KINDS, _ANY)},
        _run_lists,
    ),
    Listing(
        "explain",
        {
            "observation": (b'"audit_event"',),
            "run.read": _ANY,
            "run.decided": (b'"kind":"read"', b'"observations"', b'"kind":"decision"', b'"kind":"recall"'),
        },
        _explain,
        changing="evidence",
    ),
)

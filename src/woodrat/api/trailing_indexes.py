"""What trails the log: the indexes of every room that are brought up to date after the writes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from woodrat.explain import index as trace_index
from woodrat.ledger import fingerprint_index, observed_time, search_index, state_index, trailing
from woodrat.ledger import index as log_index
from woodrat.ledger.indexer import Trailing
from woodrat.runs import index as run_index

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.port import View
    from woodrat.ledger.index import Index


def _covered(name: str, view: View) -> int:
    return log_index.covered(view, name)


def _of_log(index: Index) -> Trailing:
    def go_on(context: Context, entries_max: int) -> object:
        return log_index.go_on(context.engine, context.tenant, index, entries_max)

    return Trailing(index.name, partial(_covered, index.name), go_on)


def _search(context: Context, entries_max: int) -> object:
    return trailing.catch_up(context.engine, context.tenant, search_index.INDEX, context.policies, entries_max)


def _fingerprint(context: Context, entries_max: int) -> object:
    return fingerprint_index.catch_up(context.engine, context.tenant, context.policies, entries_max)


def _state_position(view: View) -> int:
    known = state_index.progress(view)
    return known.position if not known.filling else min(known.position, view.head().position - 1)


def _state(context: Context, entries_max: int) -> object:
    with context.engine.transaction(context.tenant) as write:
        return state_index.step(write, context.policies)


TRAILING: tuple[Trailing, ...] = (
    Trailing(search_index.INDEX.name, partial(_covered, search_index.INDEX.name), _search),
    Trailing("state", _state_position, _state),
    Trailing(fingerprint_index.NAME, fingerprint_index.position, _fingerprint),
    _of_log(run_index.INDEX),
    _of_log(run_index.LIST_INDEX),
    _of_log(observed_time.INDEX),
    _of_log(trace_index.INDEX),
)
"""Everything that the indexer brings up to date."""

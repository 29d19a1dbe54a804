"""What trails the log: the indexes of every room that are brought up to date after the writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from woodrat.errors import Unavailable
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


def _moves(context: Context, position: Callable[[View], object], go_on: Callable[[], object]) -> bool:
    """Let something go on; return whether it did. Where nothing can be written it does not."""
    with context.engine.view(context.tenant) as view:
        before = position(view)
    try:
        go_on()
    except Unavailable:
        return False
    with context.engine.view(context.tenant) as view:
        return position(view) != before


def _of_log(index: Index) -> Trailing:
    position = partial(_covered, index.name)

    def go_on(context: Context, entries_max: int) -> bool:
        engine, tenant = context.engine, context.tenant
        return _moves(context, position, lambda: log_index.go_on(engine, tenant, index, entries_max))

    return Trailing(index.name, position, go_on)


def _search(context: Context, entries_max: int) -> bool:
    engine, tenant, policies = context.engine, context.tenant, context.policies
    index = search_index.INDEX
    return _moves(
        context,
        partial(_covered, index.name),
        lambda: trailing.catch_up(engine, tenant, index, policies, entries_max),
    )


def _fingerprint(context: Context, entries_max: int) -> bool:
    engine, tenant, policies = context.engine, context.tenant, context.policies
    return _moves(
        context,
        fingerprint_index.position,
        lambda: fingerprint_index.catch_up(engine, tenant, policies, entries_max),
    )


def _state_position(view: View) -> int:
    known = state_index.progress(view)
    return known.position if not known.filling else min(known.position, view.head().position - 1)


def _state(context: Context, entries_max: int) -> bool:
    def step() -> None:
        with context.engine.transaction(context.tenant) as write:
            state_index.step(write, context.policies)

    return _moves(context, state_index.progress, step)


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

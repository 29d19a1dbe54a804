"""Searches for impacts that are remembered, so that a page asked for by a cursor does not search again.

What was found as of a position stays what it is, until something is erased. Only a few searches are remembered; one
that is forgotten is made again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from woodrat.log.erasure import KIND

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.port import Engine
    from woodrat.explain.reader.impact import ImpactSearch
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.pages import PageRequest

SEARCHES_MAX: Final = 8
"""How many searches of one engine are remembered."""
ITEMS_MAX: Final = 100_000
"""The largest search that is remembered, in runs and observations."""

_SEARCHES: WeakKeyDictionary[Engine, OrderedDict[Any, ImpactSearch]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def find(context: Context, tracer: Tracer, request: PageRequest) -> ImpactSearch | None:
    """Return the search that a cursor goes on with, if it is remembered."""
    key = _key(context, tracer, request)
    with _LOCK:
        known = _SEARCHES.get(context.engine)
        search = None if known is None else known.get(key)
        if search is not None and search.has_failed:
            search = None
        if known is not None and search is not None:
            known.move_to_end(key)
        return search


def keep(context: Context, tracer: Tracer, request: PageRequest, search: ImpactSearch) -> None:
    """Remember a search that has more pages."""
    if len(search.found) + len(search.stated) > ITEMS_MAX:
        return
    key = _key(context, tracer, request)
    with _LOCK:
        known = _SEARCHES.setdefault(context.engine, OrderedDict())
        known[key] = search
        known.move_to_end(key)
        while len(known) > SEARCHES_MAX:
            known.popitem(last=False)


def _key(context: Context, tracer: Tracer, request: PageRequest) -> Any:
    """Return what a search depends on: question, moment, and what was erased by now."""
    erased = max((entry.position for entry in tracer.view.entries(kinds={KIND})), default=-1)
    return context.tenant, request.question, request.position, request.valid_at, id(context.policies), erased

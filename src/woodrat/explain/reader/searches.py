"""Searches for lineages and impacts that are remembered, so that a page asked for by a cursor does not search again.

What was found as of a position stays what it is, until something is erased. Only a few searches are remembered; one
that is forgotten is made again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

from woodrat.log.erasure import KIND

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.engine import Engine
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.pages import PageRequest

SEARCHES_MAX: Final = 8
"""How many searches of one engine are remembered."""
ITEMS_MAX: Final = 100_000
"""The largest search that is remembered, in runs and what they wrote or decided."""


class RememberedSearch(Protocol):
    """A search that pages are shown from."""

    @property
    def has_failed(self) -> bool:
        """Whether it was interrupted, and cannot go on."""

    @property
    def size(self) -> int:
        """How much it holds, in runs and what they wrote or decided."""


S = TypeVar("S", bound=RememberedSearch)
_SEARCHES: WeakKeyDictionary[Engine, OrderedDict[Any, RememberedSearch]] = WeakKeyDictionary()
_LOCK = threading.Lock()


class RanOut(Exception):
    """A search that began behind the beginning has come to where it needs what stands before."""


def find(context: Context, tracer: Tracer, request: PageRequest, kind: type[S]) -> S | None:
    """Return the search of a kind that a cursor goes on with, if it is remembered."""
    key = _key(context, tracer, request)
    with _LOCK:
        known = _SEARCHES.get(context.engine)
        search = None if known is None else known.get(key)
        if known is None or not isinstance(search, kind) or search.has_failed:
            return None
        known.move_to_end(key)
        return search


def keep(context: Context, tracer: Tracer, request: PageRequest, search: RememberedSearch) -> None:
    """Remember a search that has more pages."""
    if search.size > ITEMS_MAX:
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

"""Reply: what a reading verb answers, as the bytes and headers that are sent; made in a thread or another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from woodrat.errors import Refused
from woodrat.ledger.moments import NO_READ
from woodrat.merge.snapshot import Snapshot
from woodrat.records import replace
from woodrat.server.route import Route
from woodrat.server.routes import ROUTES
from woodrat.server.show_cache import Shown, shown

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past


class Reply(NamedTuple):
    """An answer as it is sent."""

    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


def reply(route: Route, past: Past, result: Any) -> Reply:
    """Return what a route's function returned as it is sent; a snapshot says which version of the entity it is."""
    if type(result) is Shown:
        return Reply(result.body, ((b"etag", result.tag),))
    if type(result) is bytes:  # a document of which every byte counts
        return Reply(result)
    form = route.form
    if form.kind is Snapshot:
        return reply(route, past, shown(result))
    return Reply(orjson.dumps(form.write(result, lambda: past.position)))


def read(route: Route, ledger: Ledger, given: dict[str, Any]) -> Reply:
    """Return the reply of a route that reads, at the moment asked for."""
    past: Past = ledger
    if route.moment:
        past = past_at(ledger, given.pop("as_of", None), given.pop("valid_at", None))
    return reply(route, past, route.answer(past, **given))


def read_by_name(verb: str, ledger: Ledger, given: dict[str, Any]) -> Reply:
    """Return the reply of the route that a verb has; for another process."""
    return read(next(route for route in ROUTES if route.verb == verb), ledger, given)


def past_at(ledger: Ledger, as_of: str | None, valid_at: str | None) -> Past:
    """Return the ledger at the moment asked for; what is wrong with it is said of the argument."""
    if as_of is None and valid_at is None:
        return ledger
    try:
        return ledger.at(as_of, valid_at=valid_at)
    except Refused as refusal:
        named = (replace(f, path="as_of") if f.path == "moment" else f for f in refusal.faults)
        raise Refused(named, NO_READ) from None

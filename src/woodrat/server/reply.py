"""Reply: what a reading verb answers, as the bytes and headers that are sent; made in a thread or another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from woodrat.errors import Refused
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.report import Report
from woodrat.merge.snapshot import Snapshot
from woodrat.records import replace
from woodrat.server import records
from woodrat.server.routes import ROUTES, Route
from woodrat.server.show_cache import Shown, shown

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past


class Reply(NamedTuple):
    """An answer as it is sent."""

    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


def reply(answer: Any) -> Reply:
    """Return an answer as it is sent; what is believed of an entity says which version it is of."""
    if type(answer) is Shown:
        return Reply(answer.body, ((b"etag", answer.tag),))
    if isinstance(answer, Snapshot):
        return reply(shown(answer))
    if isinstance(answer, Report):
        return Reply(orjson.dumps(answer.to_json()))
    return Reply(answer if isinstance(answer, bytes) else orjson.dumps(answer))


def read(route: Route, ledger: Ledger, given: dict[str, Any]) -> Reply:
    """Return the reply of a route that reads, at the moment asked for."""
    if not route.moment:
        return reply(route.answer(ledger, **given))
    as_of, valid_at = given.pop("as_of", None), given.pop("valid_at", None)
    return reply(route.answer(past_at(ledger, as_of, valid_at), **given))


def read_by_name(verb: str, whole: bool, ledger: Ledger, given: dict[str, Any]) -> Reply:
    """Return the reply of the route that a verb has, with the library's records (`whole`); for another process."""
    route = next(route for route in ROUTES if route.verb == verb)
    return read(records.answering(route) if whole else route, ledger, given)


def past_at(ledger: Ledger, as_of: str | None, valid_at: str | None) -> Past:
    """Return the ledger at the moment asked for; what is wrong with it is said of the argument."""
    if as_of is None and valid_at is None:
        return ledger
    try:
        return ledger.at(as_of, valid_at=valid_at)
    except Refused as refusal:
        named = (replace(f, path="as_of") if f.path == "moment" else f for f in refusal.faults)
        raise Refused(named, NO_READ) from None

"""Reply: the answer of a reading verb as bytes and headers, made in a thread or another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from woodrat.api import codec
from woodrat.errors import Refused
from woodrat.ledger.moments import NO_READ
from woodrat.merge.snapshot import Snapshot
from woodrat.records import replace
from woodrat.server.route import DETAILS, Route
from woodrat.server.routes import ROUTES

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past


_POSITION: Final = b',"position":'


class Reply(NamedTuple):
    """An answer as bytes and headers."""

    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


def reply(route: Route, past: Past, result: Any, *, details: bool = False) -> Reply:
    """Return the result of a route as a reply; a snapshot states the version of its entity.

    With `details` it is complete; otherwise a list is compact, and a large collection is cut.
    """
    if type(result) is bytes:  # a document in which every byte counts
        return Reply(result)
    form = route.form
    if form.kind is Snapshot:
        return shown(codec.whole(result) if details else result)
    written = form.write(result, lambda: past.position, details=details or not route.has_details)
    return Reply(orjson.dumps(written))


def shown(snapshot: Snapshot) -> Reply:
    """Return the reply for a snapshot, with its entity tag: the version, and a digest of everything but the position.

    The tag is weak, because the position moves while the entity stays the same. The version alone is not enough:
    another schema, or an erasure, changes the shown values without an observation.
    """
    body = orjson.dumps(snapshot.to_json())
    # position, version and digest come last; version and digest contain no stored text
    start = body.rindex(_POSITION) + len(_POSITION)
    digest = blake2b(body[:start], digest_size=8)
    digest.update(body[body.index(b",", start) :])
    return Reply(body, ((b"etag", b'W/"%d-%b"' % (snapshot.version, digest.hexdigest().encode())),))


def read(route: Route, ledger: Ledger, given: dict[str, Any]) -> Reply:
    """Return the reply of a route that reads, at the requested moment."""
    past: Past = ledger
    if route.moment:
        past = past_at(ledger, given.pop("as_of", None), given.pop("valid_at", None))
    details = given.pop(DETAILS.name, False) if route.has_details else False
    return reply(route, past, route.answer(past, **given), details=details)


def read_by_name(verb: str, ledger: Ledger, given: dict[str, Any]) -> Reply:
    """Return the reply of a verb's route; runs in another process."""
    return read(next(route for route in ROUTES if route.verb == verb), ledger, given)


def with_times(answer: Reply, times: Mapping[str, str]) -> Reply:
    """Return a reply, a JSON object, with the times that words such as `yesterday` resolved to, by argument."""
    return answer._replace(body=b'%b,"times":%b}' % (answer.body[:-1], orjson.dumps(times)))


def past_at(ledger: Ledger, as_of: str | None, valid_at: str | None) -> Past:
    """Return the ledger at the requested moment; faults name the argument."""
    if as_of is None and valid_at is None:
        return ledger
    try:
        return ledger.at(as_of, valid_at=valid_at)
    except Refused as refusal:
        named = (replace(f, path="as_of") if f.path == "moment" else f for f in refusal.faults)
        raise Refused(named, NO_READ) from None

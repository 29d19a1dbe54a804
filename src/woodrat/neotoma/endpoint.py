"""Endpoint: the addresses of Neotoma's clients under one prefix, with errors in their shape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import NotFound, Outdated, Refused, WoodratError, shown
from woodrat.server import access, requests, wire
from woodrat.server.body import document
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.server.requests import JSON, Exchange

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.neotoma.calls import ClientCall
    from woodrat.server.access import Caller
    from woodrat.server.gateway import HttpGateway

PREFIX: Final = b"/neotoma/"
"""The prefix of all paths."""

ERROR_CODES: Final = {
    "refused": "VALIDATION_ERROR",
    "not_found": "RESOURCE_NOT_FOUND",
    "forbidden": "FORBIDDEN",
    "outdated": "CONFLICT",
    "unavailable": "SERVICE_UNAVAILABLE",
    "corrupt": "INTERNAL_ERROR",
}
"""What our codes are called there."""

CONFLICT: Final = 409
"""The status if another write came first."""
OCTETS: Final = b"application/octet-stream"
STATUS_CODES: Final = {401: "AUTH_REQUIRED", 501: "NOT_OFFERED"}
"""Neotoma's error codes by status."""
KEY_USED: Final = "ERR_IDEMPOTENCY_MISMATCH"
"""Neotoma's error code for a key used again with other content."""


class NeotomaEndpoint:
    """The tools of Neotoma at their addresses; they are loaded with the first request."""

    name, path = "neotoma", PREFIX

    async def answer(self, exchange: Exchange, gateway: HttpGateway) -> None:
        """Answer one call of a client, after authentication."""
        try:
            found = await _called(exchange, gateway.callers.of(exchange), gateway)
            if isinstance(found, bytes):
                await exchange.send(found, OCTETS)  # a file: bytes of any media type
            else:
                await exchange.answer(found)
        except WoodratError as error:
            status = error.status if isinstance(error, Rejected) else wire.http_status(error)
            status = CONFLICT if isinstance(error, Outdated) else status
            headers = error.headers if isinstance(error, Rejected) else ()
            code = STATUS_CODES.get(status) or (KEY_USED if _is_key_used(error) else ERROR_CODES[error.code])
            problem = {"error_code": code, "message": str(error), "details": error.details, "trace_id": exchange.id}
            if code == KEY_USED:
                problem["error"] = {"code": code, "message": str(error)}
            await exchange.answer(problem, status, headers)

    async def close(self) -> None:
        """Nothing stays open between requests."""


def _is_key_used(error: WoodratError) -> bool:
    faults = error.faults if isinstance(error, Refused) else ()
    return any(fault.path == "idempotency_key" and "was used before" in fault.problem for fault in faults)


def _document(body: bytes) -> Any:
    return document(body) if body.strip() else {}


async def _called(exchange: Exchange, caller: Caller, gateway: HttpGateway) -> Any:
    from woodrat.neotoma import call_table, names, shapes, types
    from woodrat.neotoma.calls import checked, from_query

    address = requests.plain(exchange.path[len(PREFIX) :]).rstrip("/")
    found = call_table.find(exchange.method, address)
    if found is None:
        raise _no_call(exchange.method, address)
    verb = found.verb
    if exchange.method == "POST" and exchange.content_type() != JSON:
        raise Rejected(415, f"content-type: {NOTHING_DONE} Send {JSON.decode()}.")
    if not caller.holds(verb.grant):
        gateway.allow(caller, address, verb.grant, {})  # before the body is read
    if exchange.method == "GET":
        said: Any = from_query(requests.query(exchange.query_string))
    else:
        limits = gateway.body_reader.limits_of(verb.write is not None)
        said = await gateway.body_reader.take(exchange, caller, limits, _document)
    given = checked(verb, {**said, **found.arguments} if isinstance(said, dict) else said)
    ledger, change = gateway.ledger(caller), verb.write
    ledger = ledger if change is None else types.offered(ledger)
    if names.has_foreign_ids(given):
        given = await gateway.read(caller, lambda: names.resolved(ledger, given), None)
    try:
        given = names.known(given)
        abouts = [*verb.relates(given), verb.about(given)]
        for about in abouts:
            gateway.allow(caller, address, verb.grant, about)
        if change is None:
            return await gateway.read(caller, lambda: verb.answer(ledger, given, None), None)
        hears = all(access.may_hear(caller, about) for about in abouts)
        if verb.tests and not hears:
            gateway.allow(caller, address, access.READ, abouts[-1])
        try:
            work = _written(caller, gateway, ledger, verb, given)
            answer = await access.discreet(caller, ledger, work, *abouts)
        except Outdated:
            if hears:
                raise
            raise Outdated("It was observed since. Nothing was written. Read it again, or send overwrite.") from None
        return answer if hears else shapes.unread(answer)
    except NotFound:
        if verb.empty is None:
            raise
        return dict(verb.empty)


def _no_call(method: str, address: str) -> WoodratError:
    """Return the error for an unusable path: wrong method, not offered, or unknown."""
    from woodrat.neotoma import call_table

    if (reason := call_table.reason(address)) is not None:
        return Rejected(501, f"{shown(address)}: is not offered. {NOTHING_DONE} {reason}")
    if allowed := call_table.methods(address):
        text = f"{method}: not a method here. {NOTHING_DONE} Use {' or '.join(allowed)}."
        return Rejected(405, text, ((b"allow", ", ".join(allowed).encode()),))
    known = ", ".join(sorted(call_table.POSTS))
    return NotFound(f"{shown(address)}: unknown address or tool. {NOTHING_DONE} Call one of {known}.")


async def _written(
    caller: Caller, gateway: HttpGateway, ledger: Ledger, verb: ClientCall, given: dict[str, Any]
) -> Any:
    """Write, and return the whole answer; that of one entity, on the loop itself where that is quick."""
    assert verb.write is not None, "only writes come here"
    done = await gateway.write(caller, partial(verb.write, ledger, given))
    if gateway.reads_soon and (answer := verb.soon(ledger, given, done)) is not None:
        return answer
    return await gateway.read(caller, lambda: verb.answer(ledger, given, done), None)

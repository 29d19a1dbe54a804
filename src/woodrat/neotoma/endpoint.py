"""Endpoint: the addresses of Neotoma's clients under one prefix, with errors in their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import NotFound, Refused, WoodratError, shown
from woodrat.neotoma.verbs import VERBS, checked
from woodrat.server import requests, wire
from woodrat.server.requests import JSON, NOTHING_DONE, Exchange, Rejected

if TYPE_CHECKING:
    from woodrat.server.access import Caller
    from woodrat.server.means import Means

PREFIX: Final = b"/neotoma/"

ERROR_CODES: Final = {
    "refused": "VALIDATION_ERROR",
    "not_found": "RESOURCE_NOT_FOUND",
    "forbidden": "FORBIDDEN",
    "outdated": "CONFLICT",
    "unavailable": "SERVICE_UNAVAILABLE",
    "corrupt": "INTERNAL_ERROR",
}
"""What our codes are called there."""


KEY_USED: Final = "ERR_IDEMPOTENCY_MISMATCH"
"""What the second use of a key, for other content, is called there."""


async def answer(found: Exchange, who: Callable[[], Caller], means: Means) -> None:
    """Answer one call of a client; who it is is asked first."""
    try:
        await found.answer(await _called(found, who(), means))
    except WoodratError as error:
        rejected = isinstance(error, Rejected)
        status = error.status if isinstance(error, Rejected) else wire.http_status(error)
        code = "AUTH_REQUIRED" if status == 401 else KEY_USED if _is_key_used(error) else ERROR_CODES[error.code]
        told = {"error_code": code, "message": str(error), "details": error.details, "trace_id": found.id}
        await found.answer(told, status, error.headers if rejected else ())  # type: ignore[attr-defined]


def _is_key_used(error: WoodratError) -> bool:
    faults = error.faults if isinstance(error, Refused) else ()
    return any(fault.path == "idempotency_key" and "was used before" in fault.problem for fault in faults)


def _document(body: bytes) -> Any:
    return requests.document(body) if body.strip() else {}


async def _called(found: Exchange, caller: Caller, means: Means) -> Any:
    name = requests.plain(found.path[len(PREFIX) :])
    verb = VERBS.get(name)
    if verb is None:
        known = ", ".join(sorted(VERBS))
        raise NotFound(f"{shown(name)}: there is no such address or tool. {NOTHING_DONE} Call one of {known}.")
    if found.method != "POST":
        raise Rejected(405, f"{found.method}: not a method here. {NOTHING_DONE} Use POST.", ((b"allow", b"POST"),))
    if found.content_type() != JSON:
        raise Rejected(415, f"content-type: {NOTHING_DONE} Send {JSON.decode()}.")
    if not caller.holds(verb.grant):
        means.allow(caller, name, verb.grant, {})  # before anything is read of the body
    limits = means.body_limits(verb.write is not None)
    given = checked(verb, await means.take(found, caller, limits, _document))
    means.allow(caller, name, verb.grant, verb.about(given))
    ledger, change = means.ledger(caller), verb.write
    done = await means.write(caller, lambda: change(ledger, given)) if change is not None else None
    return await means.read(caller, lambda: verb.answer(ledger, given, done), None)

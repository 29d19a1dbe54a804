"""Sign-in: exchanges an API key for a browser session, and returns the caller of a session.

POST /session      {"key": "wrat_…"} begins a session, as a cookie that no script can read
GET /session       who calls, what they may do, and the token that calls of the session carry
DELETE /session    ends it, on every server of the database
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from woodrat import __version__
from woodrat.canon import form, moment
from woodrat.errors import Fault, Forbidden, Refused, shown
from woodrat.server import problems, requests
from woodrat.server.access import CORRECT, MANAGE, RUN, WRITE, Caller
from woodrat.server.audit import DENIED, SUCCESS
from woodrat.server.body import BodyLimits
from woodrat.server.keys import check_csrf, id_of
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.server.rates import Failures
from woodrat.server.sessions import IDLE_SECONDS, Presented, Sessions

if TYPE_CHECKING:
    from woodrat.server.gateway import HttpGateway
    from woodrat.server.requests import Exchange

METHODS: Final = ("GET", "HEAD", "POST", "DELETE")
BODY: Final = BodyLimits(bytes_max=4_096, values_max=16)
"""Most bytes of a body from an unauthenticated client."""
FAILURES_MAX: Final = 10
"""Wrong secrets of one key from one address before further attempts are delayed."""
SHARED_FAILURES_MAX: Final = 100
"""Most attempts with one key from all addresses together, and with all keys from one address."""
FAILURE_SECONDS: Final = 6.0
"""Time after which such a failure is forgotten."""
COUNTED_MAX: Final = 16_384
"""Most keys, addresses and pairs of these whose failures are counted."""
HOLD_SECONDS: Final = 1.0
"""Delay of an attempt after too many failures, before its key is checked. One that is right gets in then."""
CHANGING: Final = (WRITE, CORRECT, RUN, MANAGE)
"""Grants that change data."""


class SignIn:
    """Answers `/session`."""

    def __init__(self, gateway: HttpGateway, sessions: Sessions) -> None:
        self._keys, self._callers, self._sessions = gateway.callers.keys, gateway.callers, sessions
        self._writes, self._audit = gateway.writes, gateway.audit
        self._failures = Failures(FAILURE_SECONDS, COUNTED_MAX)

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request."""
        if exchange.method in ("GET", "HEAD"):
            await self._get_session(exchange)
        elif exchange.method == "POST":
            await self._begin(exchange)
        elif exchange.method == "DELETE":
            await self._end(exchange)
        else:
            raise problems.not_a_method(exchange.method, exchange.path, METHODS)

    async def _get_session(self, exchange: Exchange) -> None:
        """Return the caller; "nobody is signed in" is an answer too, since a page asks this first."""
        caller: Caller | None
        try:
            caller = self._callers.identify(exchange)
        except Rejected:
            caller = None
            if exchange.cookie is not None:
                exchange.set_cookie("", 0)
        await exchange.answer(self._caller_json(caller, exchange.session))

    async def _begin(self, exchange: Exchange) -> None:
        if not self._keys.are_required:
            remedy = "Call it without: only this machine can reach it."
            raise Refused([Fault("key", "this server needs no key", remedy)], outcome=NOTHING_DONE)
        key = _key_of(exchange, await exchange.body(BODY))
        loop, id, address = asyncio.get_running_loop(), id_of(key), exchange.address
        bursts = {
            f"key {id} {address}": FAILURES_MAX,
            f"key {id}": SHARED_FAILURES_MAX,
            f"address {address}": SHARED_FAILURES_MAX,
        }
        wait = self._failures.wait(bursts, loop.time())
        if wait:
            await asyncio.sleep(HOLD_SECONDS)
        caller = self._keys.caller(key)
        if caller is None:
            self._failures.note(bursts, loop.time())
            if wait:
                later = max(1, round(wait + 0.5))
                text = f"Too many attempts with this key, or from this address, failed. {NOTHING_DONE} "
                text += f"Try again in {later} seconds; a key that is valid is accepted meanwhile."
                raise Rejected(429, text, ((b"retry-after", str(later).encode()),), code="unavailable")
            known = self._keys.holder(id)
            if known is not None:  # the caller knows the id of a valid key, but not its secret
                self._audit.note(known, "sign_in", {}, exchange.id, DENIED)
            text = f"The API key is not valid: unknown, revoked or expired. {NOTHING_DONE} Ask for a valid key."
            raise Rejected(401, text, code=Forbidden.code)
        begun: Presented = await self._writes.write(caller, lambda: self._sessions.begin(caller))
        cookie = begun.session.cookie(begun.secret, begun.made)
        self._audit.note(caller, "sign_in", {}, exchange.id, SUCCESS)
        exchange.told.update(tenant=caller.tenant, key=caller.key)
        exchange.set_cookie(cookie, IDLE_SECONDS)
        await exchange.answer(self._caller_json(caller, begun), 201)

    async def _end(self, exchange: Exchange) -> None:
        """End the session of the cookie; succeeds even if there is none."""
        shown_session = None if exchange.cookie is None else self._sessions.presented(exchange.cookie)
        if shown_session is not None:
            session = shown_session.session
            check_csrf(exchange, session)
            caller = self._keys.holder(session.key) or Caller("", "", frozenset(), key=session.key)
            await self._writes.write(caller, lambda: self._sessions.end(session))
            if caller.tenant:
                self._audit.note(caller, "sign_out", {}, exchange.id, SUCCESS)
        if exchange.cookie is not None:
            exchange.set_cookie("", 0)
        await exchange.answer(self._caller_json(None, None))

    def _caller_json(self, caller: Caller | None, presented: Presented | None) -> dict[str, Any]:
        """Return the description of a caller, or of nobody."""
        return {
            "signed_in": caller is not None,
            "keys_required": self._keys.are_required,
            "tenant": caller and caller.tenant,
            "agent": caller and caller.agent,
            "grants": sorted(caller.grants) if caller else [],
            "read_only": not (caller and any(caller.holds(grant) for grant in CHANGING)),
            "csrf_token": presented and presented.session.csrf_token,
            "idle_end_at": presented and moment.from_micros(presented.idle_end * 1_000_000),
            "ends_at": presented and moment.from_micros(presented.session.ends * 1_000_000),
            "version": __version__,
        }


def _key_of(exchange: Exchange, body: bytes) -> str:
    """Return the key in the body of a sign-in."""
    if exchange.content_type() != requests.JSON:
        got = shown(exchange.content_type().decode("latin-1"))
        raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send application/json.")
    sent = form.parse(body)
    key = sent.get("key") if isinstance(sent, dict) else None
    faults = []
    if not isinstance(key, str) or not key.strip():
        faults.append(Fault("key", "missing, or not text", 'Send {"key": "wrat_…"}.'))
    if isinstance(sent, dict):
        faults += [Fault(str(name), "unknown member", "Send key alone.") for name in sorted(sent) if name != "key"]
    if faults:
        raise Refused(faults, outcome=NOTHING_DONE)
    assert isinstance(key, str), "it was just looked at"
    return key.strip()

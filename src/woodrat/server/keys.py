"""Keys: the caller of a request, with tenant and agent.

Keys are entities of a tenant of their own, so their creation and revocation are on record. Only the SHA-256 of a secret
is stored: it has 160 random bits, so no dictionary contains it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from woodrat.canon import ids, moment
from woodrat.canon.digest import base32
from woodrat.clock import fresh_id
from woodrat.errors import Fault, Forbidden, NotFound, Refused, shown
from woodrat.ledger import reads
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.server.access import OWN_TENANTS, Caller, grant_faults
from woodrat.server.host import is_forwarded
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.server.sessions import IDLE_SECONDS, RENEW_SECONDS

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.server.rates import Rates
    from woodrat.server.requests import Exchange
    from woodrat.server.sessions import Session, Sessions

KEYS_TENANT: Final = "woodrat.keys"
"""The tenant that holds the keys; no key opens it."""
KEY_TYPE: Final = "api_key"
PREFIX: Final = "wrat_"
"""Prefix of a key, so that a leaked one is recognised."""
SECRET_BYTES: Final = 20
CSRF_HEADER: Final = b"x-csrf-token"
"""The header that carries the CSRF token of a session."""
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""


class Access(Protocol):
    """Authenticates callers."""

    @property
    def are_required(self) -> bool:
        """True if every call needs a key."""

    def caller(self, token: str | None) -> Caller | None:
        """Return the caller behind a token, or None if it is unknown."""

    def holder(self, id: str) -> Caller | None:
        """Return the holder of the key with this id, or None if it is no longer valid."""

    def refresh(self) -> None:
        """Load changes made elsewhere."""


class Open:
    """One tenant, one agent, everything allowed: for a server that only this machine can reach."""

    def __init__(self, tenant: str, agent: str) -> None:
        self._caller = Caller(tenant, agent)

    @property
    def are_required(self) -> bool:
        return False

    def caller(self, token: str | None) -> Caller | None:
        return self._caller

    def holder(self, id: str) -> Caller | None:
        return None

    def refresh(self) -> None:
        """Nothing changes."""


class OpenAtFirst:
    """Without keys there is one tenant with every grant; from the first key on, only keys count.

    A revoked key still counts: a server whose last key is revoked stays closed.
    """

    def __init__(self, keys: Keyring, tenant: str, agent: str) -> None:
        self._keys, self._open = keys, Open(tenant, agent)

    @property
    def are_required(self) -> bool:
        return self._keys.any

    def caller(self, token: str | None) -> Caller | None:
        return (self._keys if self._keys.any else self._open).caller(token)

    def holder(self, id: str) -> Caller | None:
        return self._keys.holder(id)

    def refresh(self) -> None:
        self._keys.refresh()


@dataclass(frozen=True, slots=True)
class Key(Record):
    """A key, without its secret."""

    id: str
    """Its id, which is no secret."""
    tenant: str
    """The tenant that it opens."""
    agent: str
    """The agent that its holder writes as."""
    grants: tuple[str, ...]
    """The grants of its holder, sorted."""
    name: str | None
    """Its purpose."""
    priority_max: int | None
    """The highest priority its holder may state."""
    expires_at: str | None
    """When it expires."""
    created_at: str
    """When it was made."""
    revoked: bool
    """True if it was revoked."""


class Keyring:
    """The keys of a server. A revocation elsewhere takes effect with the next `refresh`."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == KEYS_TENANT, "keys have a tenant of their own"
        self._ledger, self._clock = ledger, clock
        self._position: int | None = None
        self._known: dict[str, tuple[bytes, Key, Caller]] = {}

    def create(
        self,
        tenant: str,
        agent: str,
        grants: Iterable[str],
        *,
        name: str | None = None,
        priority_max: int | None = None,
        expires_at: str | None = None,
    ) -> tuple[Key, str]:
        """Make a key; return it with its secret, which is never shown again."""
        chosen = tuple(sorted(set(grants)))
        faults = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent") + grant_faults(chosen)
        if isinstance(tenant, str) and tenant.startswith(OWN_TENANTS):
            faults.append(Fault("tenant", f"{tenant} is reserved for the server itself", "Name another tenant."))
        if priority_max is not None and type(priority_max) is not int:
            faults.append(Fault("priority_max", f"got {shown(priority_max)}", "Send a whole number."))
        if expires_at is not None:
            try:
                expires_at = moment.parse(expires_at)
            except Refused as refusal:
                faults += [Fault("expires_at", fault.problem, fault.remedy) for fault in refusal.faults]
        if faults:
            raise Refused(faults, outcome="No key was made.")
        id = fresh_id(self._clock, "key_")
        secret = f"{PREFIX}{id.removeprefix('key_')}_{base32(self._clock.random(SECRET_BYTES))}"
        fields: dict[str, Any] = {
            "hash": hashlib.sha256(secret.encode()).hexdigest(),
            "tenant": tenant,
            "agent": agent,
            "grants": list(chosen),
            "created_at": self._clock.now(),
            "name": name,
            "priority_max": priority_max,
            "expires_at": expires_at,
        }
        said = {field: value for field, value in fields.items() if value is not None}
        self._ledger.store({"entity_type": KEY_TYPE, **said, "$": {"key": id}})
        self.refresh()
        return self._known[id][1], secret

    def all(self) -> tuple[Key, ...]:
        """Return all keys, including revoked ones, by id, which is the order of creation."""
        self.refresh()
        return tuple(key for _, key, _ in sorted(self._known.values(), key=lambda item: item[1].id))

    @property
    def any(self) -> bool:
        """True if there are keys, as of the last `refresh`; revoked ones count."""
        return bool(self._known)

    def revoke(self, id: str, reason: str | None = None) -> Key:
        """Revoke a key; it is invalid from now on."""
        self.refresh()
        if id not in self._known:
            raise NotFound(f"{shown(id)}: unknown key. Nothing was changed. See `woodrat keys list`.")
        if not self._known[id][1].revoked:
            self._ledger.delete(f"{KEY_TYPE}/{id}", reason=reason)
            self.refresh()
        return self._known[id][1]

    def refresh(self) -> None:
        """Load keys that were made or revoked since."""
        position = self._ledger.position
        if position == self._position:
            return
        known: dict[str, tuple[bytes, Key, Caller]] = {}
        made: dict[str, Mapping[str, Any]] = {}
        for stored in reads.observations(self._ledger.context):
            if stored.observation.entity.type == KEY_TYPE and stored.observation.fields:
                made.setdefault(stored.observation.entity.key, stored.observation.fields)
        for id, fields in made.items():
            key = Key(
                id,
                fields["tenant"],
                fields["agent"],
                tuple(fields["grants"]),
                fields.get("name"),
                fields.get("priority_max"),
                fields.get("expires_at"),
                fields["created_at"],
                self._ledger.show(f"{KEY_TYPE}/{id}").deleted,
            )
            caller = Caller(key.tenant, key.agent, frozenset(key.grants), key.priority_max, id)
            known[id] = (bytes.fromhex(fields["hash"]), key, caller)
        self._known, self._position = known, position

    @property
    def are_required(self) -> bool:
        return True

    def caller(self, token: str | None) -> Caller | None:
        """Return the holder of a key; the work is the same for an unknown, a revoked and a wrong key."""
        text = token or ""
        found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        id = id_of(text)
        digest, _, _ = self._known.get(id) or _NOBODY
        caller = self.holder(id)
        return caller if hmac.compare_digest(found, digest) else None

    def holder(self, id: str) -> Caller | None:
        """Return the holder of the key with this id, unless it is revoked or expired."""
        _, key, caller = self._known.get(id) or _NOBODY
        over = key.revoked or (key.expires_at is not None and self._clock.now() >= key.expires_at)
        return None if over else caller


def id_of(token: str) -> str:
    """Return the id that a token contains or claims."""
    return "key_" + token.removeprefix(PREFIX).partition("_")[0]


_NOBODY: Final = (
    bytes(32),
    Key("", "", "", (), None, None, None, "", True),
    Caller("", "", frozenset()),
)


class Callers:
    """Authenticates requests by key, and limits the rate of each key."""

    def __init__(self, keys: Access, rates: Rates, sessions: Sessions) -> None:
        self.keys, self._rates, self._sessions = keys, rates, sessions

    def of(self, exchange: Exchange) -> Caller:
        """Return the caller of a request, and count the call."""
        caller = self.identify(exchange)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        return caller

    def identify(self, exchange: Exchange) -> Caller:
        """Return the caller of a request; the error does not tell missing, unknown, revoked and expired keys apart.

        A request without a key may show a session; unless it only reads, it must carry the session's CSRF token too.
        """
        caller = self._caller(exchange)
        if caller is not None and caller.key == "" and is_forwarded(exchange.headers):
            text = (
                f"A proxy forwarded this request, and this server has no keys, so anybody could call. "
                f"{NOTHING_DONE} Make a key with `woodrat keys create` and send it, or call the server directly."
            )
            raise Rejected(401, text, ((b"www-authenticate", b"Bearer"),), code=Forbidden.code)
        if caller is None and exchange.cookie is not None and token_of(exchange) is None:
            text = f"The session has ended, or its key is no longer valid. {NOTHING_DONE} Sign in again."
            raise Rejected(401, text, ((b"www-authenticate", b"Bearer"),), code=Forbidden.code)
        if caller is None:
            text = (
                f"The API key is missing or not valid. {NOTHING_DONE} Send a key: Authorization: Bearer wrat_…, which "
                "is WOODRAT_TOKEN on the command line and key= in Python."
            )
            raise Rejected(401, text, ((b"www-authenticate", b"Bearer"),), code=Forbidden.code)
        exchange.told.update(tenant=caller.tenant, key=caller.key)
        return caller

    def is_known(self, exchange: Exchange) -> bool:
        """Return True if the key or session of a request is still valid; streams ask this while they run."""
        if exchange.session is not None:
            session = exchange.session.session
            return self._sessions.is_on(session) and self.keys.holder(session.key) is not None
        return self.keys.caller(token_of(exchange)) is not None

    def _caller(self, exchange: Exchange) -> Caller | None:
        """Return the caller of a request, by key or by session; None if unknown."""
        token = token_of(exchange)
        if token is not None or exchange.cookie is None or not self.keys.are_required:
            return self.keys.caller(token)
        presented = self._sessions.presented(exchange.cookie)
        caller = None if presented is None else self.keys.holder(presented.session.key)
        if presented is None or caller is None:
            return None
        if exchange.method not in SAFE_METHODS:
            check_csrf(exchange, presented.session)
        if exchange.session is None:
            exchange.session = presented
            if presented.made + RENEW_SECONDS <= (now := self._sessions.now()):
                exchange.set_cookie(presented.session.cookie(presented.secret, now), IDLE_SECONDS)
        return caller


def check_csrf(exchange: Exchange, session: Session) -> None:
    """Refuse a request with a session cookie and without its CSRF token: a foreign page may have sent it."""
    if not hmac.compare_digest(exchange.headers.get(CSRF_HEADER, b""), session.csrf_token.encode()):
        name = CSRF_HEADER.decode()
        raise Forbidden(
            f"{name}: missing, or not the token of this session. {NOTHING_DONE} Send the csrf_token of GET /session, "
            "or an API key in the place of the session."
        )


def token_of(exchange: Exchange) -> str | None:
    """Return the key of a request, if it has one."""
    scheme, _, token = (exchange.header(b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None

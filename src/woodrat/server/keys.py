"""Keys: who calls, for which tenant and as which agent.

Keys are entities of a tenant of their own, so who made one and who revoked it is on record. What is kept of a secret is
its SHA-256: it has 160 random bits, which no list of passwords holds.
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

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.server.rates import Rates
    from woodrat.server.requests import Exchange

KEYS_TENANT: Final = "woodrat.keys"
"""The tenant that keys are kept in; no key is for it."""
KEY_TYPE: Final = "api_key"
PREFIX: Final = "wrat_"
"""What a key begins with, so that a leaked one is recognised."""
SECRET_BYTES: Final = 20


class Access(Protocol):
    """Tells callers apart."""

    def caller(self, token: str | None) -> Caller | None:
        """Return who calls by the token they sent, or `None` for nobody we know."""

    def refresh(self) -> None:
        """Take in what changed elsewhere."""


class Open:
    """One tenant, one agent, everything allowed: for a server that only this machine can reach."""

    def __init__(self, tenant: str, agent: str) -> None:
        self._caller = Caller(tenant, agent)

    def caller(self, token: str | None) -> Caller | None:
        return self._caller

    def refresh(self) -> None:
        """Nothing changes."""


class OpenAtFirst:
    """One tenant and everything allowed while there is no key; from the first key on, keys alone count.

    A key that was revoked is one: a server whose last key is gone stays shut.
    """

    def __init__(self, keys: Keyring, tenant: str, agent: str) -> None:
        self._keys, self._open = keys, Open(tenant, agent)

    def caller(self, token: str | None) -> Caller | None:
        return (self._keys if self._keys.any else self._open).caller(token)

    def refresh(self) -> None:
        self._keys.refresh()


@dataclass(frozen=True, slots=True)
class Key(Record):
    """A key, without its secret."""

    id: str
    """Its id, which is no secret."""
    tenant: str
    """Whose ledger it opens."""
    agent: str
    """As whom its holder writes."""
    grants: tuple[str, ...]
    """What its holder may do, sorted."""
    name: str | None
    """What it is for."""
    priority_max: int | None
    """The highest priority its holder may state."""
    expires_at: str | None
    """When it ends by itself."""
    created_at: str
    """When it was made."""
    revoked: bool
    """Whether it was revoked."""


class Keyring:
    """The keys of a server. What is revoked elsewhere counts as soon as `refresh` is called."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == KEYS_TENANT, "keys are kept in a tenant of their own"
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
        """Make a key; return it with its secret, which is shown this once."""
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
        """Return all keys, revoked ones too, by id; those made later come later."""
        self.refresh()
        return tuple(key for _, key, _ in sorted(self._known.values(), key=lambda item: item[1].id))

    @property
    def any(self) -> bool:
        """Whether there are keys, as of the last `refresh`; revoked ones count."""
        return bool(self._known)

    def revoke(self, id: str, reason: str | None = None) -> Key:
        """Revoke a key; it opens nothing from now on."""
        self.refresh()
        if id not in self._known:
            raise NotFound(f"{shown(id)}: there is no such key. Nothing was changed. See `woodrat keys list`.")
        if not self._known[id][1].revoked:
            self._ledger.delete(f"{KEY_TYPE}/{id}", reason=reason)
            self.refresh()
        return self._known[id][1]

    def refresh(self) -> None:
        """Take in what was made or revoked since."""
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

    def caller(self, token: str | None) -> Caller | None:
        """Return who holds a key; the work is the same whether the key is unknown, revoked or wrong."""
        text = token or ""
        found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        id = "key_" + text.removeprefix(PREFIX).partition("_")[0]
        kept, key, caller = self._known.get(id) or _NOBODY
        good = hmac.compare_digest(found, kept)
        over = key.revoked or (key.expires_at is not None and self._clock.now() >= key.expires_at)
        return caller if good and not over else None


_NOBODY: Final = (
    bytes(32),
    Key("", "", "", (), None, None, None, "", True),
    Caller("", "", frozenset()),
)


class Callers:
    """Who sends requests: by their keys, and no more often than a key may call."""

    def __init__(self, keys: Access, rates: Rates) -> None:
        self.keys, self._rates = keys, rates

    def of(self, exchange: Exchange) -> Caller:
        """Return who sends a request, and count it as a call of theirs."""
        caller = self.identify(exchange)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        return caller

    def identify(self, exchange: Exchange) -> Caller:
        """Return who sends a request; a key that is missing, unknown, revoked or over is told apart by nobody."""
        caller = self.keys.caller(token_of(exchange))
        if caller is not None and caller.key == "" and is_forwarded(exchange.headers):
            text = (
                f"A proxy passed this request on, and this server has no keys, so anybody could call. {NOTHING_DONE} "
                "Make a key with `woodrat keys create` and send it, or call the server directly."
            )
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
        """Return whether the key of a request is still good."""
        return self.keys.caller(token_of(exchange)) is not None


def token_of(exchange: Exchange) -> str | None:
    """Return the key that a request was sent with, if it was."""
    scheme, _, token = (exchange.header(b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None

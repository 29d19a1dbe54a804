"""Sessions: how a browser calls without holding an API key.

Signing in exchanges an API key for a cookie. It names a session, an entity of a separate tenant: every server
of a database knows it, signing out ends it everywhere, and the log records who signed in. Only the digest of the
cookie's secret is stored, so a reader of the database cannot make a cookie. The cookie also carries the time of its
last renewal, signed with a salt that only the server has, so a holder of a cookie cannot extend it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.canon.digest import base32
from woodrat.clock import fresh_id
from woodrat.errors import NotFound
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.server.access import Caller

SESSIONS_TENANT: Final = "woodrat.sessions"
"""The tenant of sessions; no key gives access to it."""
SESSION_TYPE: Final = "session"
IDLE_SECONDS: Final = 30 * 60
"""Idle timeout of a session."""
WHOLE_SECONDS: Final = 12 * 60 * 60
"""Longest lifetime of a session."""
RENEW_SECONDS: Final = 60
"""How old a cookie is before a call renews it."""
SECRET_BYTES: Final = 20
CACHED_MAX: Final = 10_000
"""Most sessions in memory; other sessions are read from the log."""
_COOKIE: Final = re.compile(r"(ses_[a-z2-7]{26})\.([a-z2-7]{32})\.([0-9]{1,12})\.([a-z2-7]{32})")
"""A session's id, its secret, when the cookie was made (seconds since 1970), and the signature of all three."""
_MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Session:
    """One sign-in, as stored."""

    id: str
    """Its id, which is no secret."""
    key: str
    """The id of its API key."""
    digest: bytes
    """SHA-256 of the secret in its cookie."""
    salt: bytes
    """The salt that signs cookies and CSRF tokens; it never leaves the server."""
    ends: int
    """When it ends at the latest, in seconds since 1970."""

    def sign(self, *parts: str) -> str:
        """Return the signature of some text that this session's browser holds."""
        text = "\n".join((self.id, *parts)).encode()
        return base32(hmac.digest(self.salt, text, "sha256")[:SECRET_BYTES])

    @property
    def csrf_token(self) -> str:
        """The token that a changing call sends besides its cookie: pages of other sites cannot read it."""
        return self.sign("csrf")

    def cookie(self, secret: str, now: int) -> str:
        """Return the value of a cookie that lasts from now on."""
        return f"{self.id}.{secret}.{now}.{self.sign('cookie', secret, str(now))}"


@dataclass(frozen=True, slots=True)
class Presented:
    """A session that a request shows the cookie of; whether its key is still good is for `keys.py` to say."""

    session: Session
    """The session."""
    secret: str
    """The secret in its cookie, for the cookie that follows it."""
    made: int
    """When the cookie was made."""

    @property
    def idle_end(self) -> int:
        """When it ends unless another call renews it."""
        return min(self.made + IDLE_SECONDS, self.session.ends)


class Sessions:
    """The sessions of a database. A session ended elsewhere ends here at the next `refresh`."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == SESSIONS_TENANT, "sessions have a tenant of their own"
        self._ledger, self._clock = ledger, clock
        self._position: int | None = None
        self._cached: dict[str, Session | None] = {}

    def now(self) -> int:
        """Return the present, in seconds since 1970."""
        return moment.to_micros(self._clock.now()) // _MICROS

    def begin(self, caller: Caller) -> Presented:
        """Make a session for the holder of a valid key; this writes."""
        now = self.now()
        secret = base32(self._clock.random(SECRET_BYTES))
        id, salt = fresh_id(self._clock, "ses_"), self._clock.random(32)
        fields: dict[str, Any] = {
            "key": caller.key,
            "agent": caller.agent,
            "tenant": caller.tenant,
            "digest": hashlib.sha256(secret.encode()).hexdigest(),
            "salt": salt.hex(),
            "ends_at": moment.from_micros((now + WHOLE_SECONDS) * _MICROS),
        }
        self._ledger.store({"entity_type": SESSION_TYPE, **fields, "$": {"key": id}})
        self._cached[id] = session = _session(id, fields)
        return Presented(session, secret, now)

    def end(self, session: Session) -> None:
        """End a session on every server; this writes."""
        self._ledger.delete(f"{SESSION_TYPE}/{session.id}", reason="signed out")
        self._cached[session.id] = None

    def is_cached(self, cookie: str) -> bool:
        """Return whether `presented` answers about a cookie without `look_up`."""
        parts = _COOKIE.fullmatch(cookie)
        return parts is None or parts[1] in self._cached

    def look_up(self, cookie: str) -> None:
        """Read the session that a cookie names, once; this reads the database."""
        parts = _COOKIE.fullmatch(cookie)
        if parts is not None and parts[1] not in self._cached:
            while len(self._cached) >= CACHED_MAX:
                self._cached.pop(next(iter(self._cached)))
            self._cached[parts[1]] = self._read(parts[1])

    def presented(self, cookie: str) -> Presented | None:
        """Return the session of a cookie, if it is valid and has not ended."""
        parts = _COOKIE.fullmatch(cookie)
        session = None if parts is None else self._cached.get(parts[1])
        if parts is None or session is None:
            return None
        secret, made, signature = parts[2], parts[3], parts[4]
        good = hmac.compare_digest(hashlib.sha256(secret.encode()).digest(), session.digest)
        good &= hmac.compare_digest(session.sign("cookie", secret, made), signature)
        found = Presented(session, secret, int(made))
        return found if good and self.now() < found.idle_end else None

    def is_on(self, session: Session) -> bool:
        """Return True if a session has not ended, ignoring its idle timeout: its user reads a stream."""
        return self._cached.get(session.id, session) is not None and self.now() < session.ends

    def refresh(self) -> None:
        """Load sessions that ended elsewhere; this reads the database."""
        position = self._ledger.position
        if position == self._position:
            return
        now = self.now()
        for id, session in list(self._cached.items()):
            if session is None or session.ends <= now:
                self._cached.pop(id, None)
            else:
                self._cached[id] = self._read(id)
        self._position = position

    def _read(self, id: str) -> Session | None:
        try:
            snapshot = self._ledger.show(f"{SESSION_TYPE}/{id}")
        except NotFound:
            return None
        return None if snapshot.deleted else _session(id, snapshot.fields)


def _session(id: str, fields: Any) -> Session:
    ends = moment.to_micros(fields["ends_at"]) // _MICROS
    return Session(id, fields["key"], bytes.fromhex(fields["digest"]), bytes.fromhex(fields["salt"]), ends)

"""Webhooks: new entries of a log, sent to registered addresses; signed, in order, at least once.

Each webhook has its own position in the log, stored in a separate tenant, which advances with each accepted delivery. A
delivery that fails several times becomes a dead letter, and the next one is sent. Secrets stay in their files.
`deliveries.py` sends; without a webhook no connection is ever opened.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from woodrat.canon import ids
from woodrat.clock import fresh_id
from woodrat.engines import private
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.log.entry import KINDS
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.server.access import OWN_TENANTS
from woodrat.server.addresses import is_named_inside, is_sound
from woodrat.server.host import name_of

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.clock import Clock

WEBHOOKS_TENANT: Final = "woodrat.webhooks"
"""The tenant that stores webhooks, their positions and their dead letters."""
HOOK_TYPE, PLACE_TYPE, DEAD_TYPE = "webhook", "webhook_place", "dead_letter"
SECRET_BYTES_MIN: Final = 16
"""Shortest secret."""
HOOKS_MAX: Final = 100
"""Most webhooks of one tenant."""
TRIES_MAX: Final = 8
"""Number of tries before a delivery becomes a dead letter."""
NOT_ADDED: Final = "No webhook was added."


@dataclass(frozen=True, slots=True)
class Hook(Record):
    """One webhook."""

    id: str
    """Its id."""
    tenant: str
    """The tenant whose log is delivered."""
    url: str
    """Its address."""
    secret_file: str
    """The file with the secret that signs its deliveries."""
    kinds: tuple[str, ...]
    """Kinds of entries that are sent; empty means all."""
    position: int
    """The last delivered position."""
    inside: bool = True
    """True if it may lead to the server's machine or its networks, as the operator's webhooks may."""


class Hooks:
    """The webhooks of a database."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == WEBHOOKS_TENANT, "webhooks have a tenant of their own"
        self._ledger, self._clock = ledger, clock

    def fresh_id(self) -> str:
        """Return an id for a new webhook."""
        return fresh_id(self._clock, "hook_")

    def add(
        self,
        tenant: str,
        url: str,
        secret_file: str,
        kinds: Iterable[str] = (),
        *,
        after: int = -1,
        id: str | None = None,
        inside: bool = True,
    ) -> Hook:
        """Add a webhook that gets the entries of a tenant after a position."""
        faults = [*self.faults(tenant, url, kinds, after, inside=inside), *_secret_faults(secret_file)]
        if sum(hook.tenant == tenant for hook in self.all()) >= HOOKS_MAX:
            problem = f"{tenant} has {HOOKS_MAX} webhooks, which is the limit"
            faults.append(Fault("url", problem, "Remove a webhook that is no longer needed."))
        if faults:
            raise Refused(faults, NOT_ADDED)
        chosen = tuple(sorted(set(kinds)))
        hook = Hook(id or self.fresh_id(), tenant, url, str(Path(secret_file).absolute()), chosen, after, inside)
        said = {name: value for name, value in hook.to_json().items() if name not in ("id", "position")}
        self._ledger.store(
            [
                {"entity_type": HOOK_TYPE, **said, "$": {"key": hook.id}},
                {"entity_type": PLACE_TYPE, "position": after, "$": {"key": hook.id}},
            ]
        )
        return hook

    @staticmethod
    def faults(tenant: str, url: object, kinds: object, after: object, *, inside: bool = True) -> list[Fault]:
        """Return the faults of a new webhook, apart from its secret."""
        faults = [*ids.tenant_faults(tenant), *_url_faults(url, inside=inside)]
        chosen = kinds if isinstance(kinds, list | tuple | set) else [kinds]
        if isinstance(tenant, str) and tenant.startswith(OWN_TENANTS):
            faults.append(Fault("tenant", f"{tenant} is reserved for the server itself", "Name another tenant."))
        for kind in chosen:
            if not isinstance(kind, str) or kind not in KINDS:
                problem = f"{shown(kind)} is not a kind of entry"
                faults.append(Fault("kinds", problem, f"Send {', '.join(sorted(KINDS))}."))
        if type(after) is not int or after < -1:
            faults.append(Fault("after", f"got {shown(after)}", "Send a position, 0 or more."))
        return faults

    def all(self) -> tuple[Hook, ...]:
        """Return the webhooks, by id."""
        found = []
        for snapshot in _every(self._ledger, HOOK_TYPE):
            said: Any = snapshot.fields
            place = self._place(snapshot.entity.key)
            kinds, inside = tuple(said["kinds"]), said.get("inside", True)
            found.append(
                Hook(snapshot.entity.key, said["tenant"], said["url"], said["secret_file"], kinds, place, inside)
            )
        return tuple(sorted(found, key=lambda hook: hook.id))

    def _place(self, id: str) -> int:
        place: Any = self._ledger.show(f"{PLACE_TYPE}/{id}").fields["position"]
        return int(place)

    def remove(self, id: str) -> None:
        """Remove a webhook."""
        if id not in {hook.id for hook in self.all()}:
            raise NotFound(f"{shown(id)}: unknown webhook. Nothing was changed. See `woodrat webhooks list`.")
        self._ledger.delete(f"{HOOK_TYPE}/{id}")

    def move(self, id: str, position: int) -> None:
        """Record that a webhook has everything up to a position; another server may have advanced it further."""
        if position > self._place(id):
            self._ledger.store({"entity_type": PLACE_TYPE, "position": position, "$": {"key": id}})

    def bury(self, hook: Hook, first: int, last: int, tries: int, problem: str) -> None:
        """Record a dead letter, and advance past it, in one write."""
        said = {"webhook": hook.id, "tenant": hook.tenant, "first": first, "last": last, "tries": tries}
        key, at = _letter(said), self._clock.now()
        self._ledger.store(
            [
                {"entity_type": DEAD_TYPE, **said, "problem": problem, "at": at, "again": False, "$": {"key": key}},
                {"entity_type": PLACE_TYPE, "position": max(last, self._place(hook.id)), "$": {"key": hook.id}},
            ]
        )

    def retry(self, id: str, first: int | None = None) -> int:
        """Retry dead letters of a webhook, all or the one that begins at a position; return their number."""
        found = [letter for letter in self.dead(id) if first is None or letter["first"] == first]
        if not found:
            which = "" if first is None else f" that begins at {shown(first)}"
            raise NotFound(
                f"{shown(id)}: it has no dead letter{which}. Nothing was changed. See `woodrat webhooks dead-letters`."
            )
        self._ledger.store([{"entity_type": DEAD_TYPE, "again": True, "$": {"key": _letter(one)}} for one in found])
        return len(found)

    def retried(self, letter: Mapping[str, Any], problem: str | None) -> None:
        """Record the outcome of a retried dead letter: accepted, it is removed; otherwise it stays."""
        if problem is None:
            self._ledger.delete(f"{DEAD_TYPE}/{_letter(letter)}")
            return
        said = {"again": False, "problem": problem, "tries": letter["tries"] + TRIES_MAX, "at": self._clock.now()}
        self._ledger.store({"entity_type": DEAD_TYPE, **said, "$": {"key": _letter(letter)}})

    @property
    def position(self) -> int:
        """End of the log of webhooks, which changes with every change to them."""
        return self._ledger.position

    def dead(self, id: str | None = None) -> list[dict[str, Any]]:
        """Return the dead letters of one webhook or all, by webhook and position."""
        found = [dict(snapshot.fields) for snapshot in _every(self._ledger, DEAD_TYPE)]
        chosen = [letter for letter in found if id is None or letter["webhook"] == id]
        return sorted(chosen, key=lambda letter: (str(letter["webhook"]), letter["first"]))


def _letter(letter: Mapping[str, Any]) -> str:
    """Return the key of a dead letter."""
    return f"{letter['webhook']}/{letter['first']}"


def hooks_beside(ledger: Ledger) -> Hooks:
    """Return the webhooks of a ledger's database."""
    from woodrat.api.ledger import Ledger as Opened

    kept = Opened(
        ledger.context.engine,
        tenant=WEBHOOKS_TENANT,
        agent="server",
        clock=ledger.context.clock,
        policies=ledger.context.policies,
    )
    return Hooks(kept, ledger.context.clock)


def make_secret(folder: object, id: str, clock: Clock) -> tuple[str, str]:
    """Return a new secret for a webhook and its file, in a private folder of keys."""
    if folder is None:
        remedy = "Start it with --signing-keys, or run `woodrat webhooks add` where the database is."
        raise Refused([Fault("keys", "this server has no folder to keep the secret in", remedy)], NOT_ADDED)
    home = Path(str(folder)) / "webhooks"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret, path = clock.random(32).hex(), home / f"{id}.secret"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return secret, str(path)


def _every(ledger: Past, entity_type: str) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = ledger.query(entity_type=entity_type, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


def signature(secret: bytes, at: int, body: bytes) -> str:
    """Return the header that signs a delivery: HMAC-SHA256 over the time and the body."""
    return f"t={at},v1={hmac.new(secret, b'%d.%b' % (at, body), hashlib.sha256).hexdigest()}"


def verify(secret: bytes, header: str, body: bytes, now: float, *, within_seconds: float = 300.0) -> bool:
    """Return True if a delivery was signed with a secret, recently; for receivers."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not (at.isascii() and at.isdigit() and len(at) <= 12) or abs(now - int(at)) > within_seconds:
        return False
    return hmac.compare_digest(signature(secret, int(at), body).encode(), header.encode("utf-8", "replace"))


def _url_faults(url: object, *, inside: bool = True) -> list[Fault]:
    remedy = "Send an address such as https://hooks.example.org/woodrat."
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        return [Fault("url", f"got {shown(url)}", remedy)]
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError as error:
        return [Fault("url", f"{shown(url)}: {error}", remedy)]
    if address.scheme not in ("https", "http") or not address.hostname or port == 0:
        return [Fault("url", f"got {shown(url)}", remedy)]
    if address.username is not None or address.password is not None:
        return [Fault("url", "it holds a user or a password", "Leave them out: deliveries are signed.")]
    if name_of(address.netloc) is None or not is_sound(address.hostname):
        problem = f"{shown(address.netloc)} is neither a name nor an address in its usual notation"
        return [Fault("url", problem, "Write the name, or an address such as 203.0.113.7 or [2001:db8::7].")]
    if not inside and (address.scheme == "http" or is_named_inside(address.hostname)):
        problem = "a key sends entries to public addresses, over https"
        return [Fault("url", problem, "Use one, or have the operator run `woodrat webhooks add`.")]
    if address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1"):
        return [Fault("url", "entries would travel unencrypted", "Use https, or an address of this machine.")]
    return []


def _secret_faults(path: object) -> list[Fault]:
    if not isinstance(path, str):
        return [Fault("secret_file", f"got {shown(path)}", "Name a file.")]
    try:
        size = len(Path(path).read_bytes().strip())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return [Fault("secret_file", f"cannot read {shown(path)}: {reason}", "Name a file that can be read.")]
    if private.is_open_to_all(path):
        problem = f"every user of this machine can read {shown(path)}"
        return [Fault("secret_file", problem, "Make it yours alone, as with chmod 600.")]
    if size < SECRET_BYTES_MIN:
        return [Fault("secret_file", f"the secret has {size} bytes", f"Use at least {SECRET_BYTES_MIN}.")]
    return []

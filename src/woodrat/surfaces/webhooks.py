"""Webhooks: new entries of a log, sent to addresses that were named for it; signed, in order, at least once.

Each webhook has its own place in the log, which is kept in a tenant of its own and moves on when a delivery was taken.
A delivery that nobody takes after several tries becomes a dead letter, and the next one is sent. Secrets stay in their
files. Without a webhook no connection is ever opened.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from woodrat.canon import ids, moment
from woodrat.clock import fresh_id
from woodrat.errors import Fault, NotFound, Refused, WoodratError, shown
from woodrat.frozen import dataclass
from woodrat.log.entry import KINDS
from woodrat.surfaces.access import OWN_TENANTS

if TYPE_CHECKING:
    from woodrat.clock import Clock
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.past import Past

WEBHOOKS_TENANT: Final = "woodrat.webhooks"
"""The tenant that webhooks, their places and their dead letters are kept in."""
HOOK_TYPE, PLACE_TYPE, DEAD_TYPE = "webhook", "webhook_place", "dead_letter"
SECRET_BYTES_MIN: Final = 16
"""Shortest secret."""
ENTRIES_MAX: Final = 100
"""Most entries of one delivery."""
TRIES_MAX: Final = 8
"""How often a delivery is tried before it is a dead letter."""
TIMEOUT_SECONDS: Final = 10.0
"""How long an address may take to answer."""
BACKOFF_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0)
"""How long is waited between tries."""
POLL_SECONDS: Final = 0.5
"""How often is looked for new entries."""
NOT_ADDED: Final = "No webhook was added."


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook."""

    id: str
    """Its id."""
    tenant: str
    """Whose log is sent."""
    url: str
    """Where to."""
    secret_file: str
    """The file that holds the secret its deliveries are signed with."""
    kinds: tuple[str, ...]
    """Kinds of entries that are sent; none means all."""
    position: int
    """The last position it is done with."""

    def to_json(self) -> dict[str, Any]:
        """Return the webhook as plain JSON."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "url": self.url,
            "secret_file": self.secret_file,
            "kinds": list(self.kinds),
            "position": self.position,
        }


class Hooks:
    """The webhooks of a database."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == WEBHOOKS_TENANT, "webhooks are kept in a tenant of their own"
        self._ledger, self._clock = ledger, clock

    def add(self, tenant: str, url: str, secret_file: str, kinds: Iterable[str] = (), *, after: int = -1) -> Hook:
        """Add a webhook that is sent the entries of a tenant after a position."""
        chosen = tuple(sorted(set(kinds)))
        faults = [*ids.tenant_faults(tenant), *_url_faults(url), *_secret_faults(secret_file)]
        if isinstance(tenant, str) and tenant.startswith(OWN_TENANTS):
            faults.append(Fault("tenant", f"{tenant} holds what the server keeps for itself", "Name another tenant."))
        for kind in chosen:
            if kind not in KINDS:
                faults.append(Fault("kinds", f"{shown(kind)} is no kind of entry", f"Send {', '.join(sorted(KINDS))}."))
        if type(after) is not int or after < -1:
            faults.append(Fault("after", f"got {shown(after)}", "Send a position, 0 or more."))
        if faults:
            raise Refused(faults, NOT_ADDED)
        hook = Hook(fresh_id(self._clock, "hook_"), tenant, url, str(Path(secret_file).absolute()), chosen, after)
        said = {name: value for name, value in hook.to_json().items() if name not in ("id", "position")}
        self._ledger.store(
            [
                {"entity_type": HOOK_TYPE, **said, "$": {"key": hook.id}},
                {"entity_type": PLACE_TYPE, "position": after, "$": {"key": hook.id}},
            ]
        )
        return hook

    def all(self) -> tuple[Hook, ...]:
        """Return the webhooks there are, by id."""
        found = []
        for snapshot in _every(self._ledger, HOOK_TYPE):
            said: Any = snapshot.fields
            place: Any = self._ledger.show(f"{PLACE_TYPE}/{snapshot.entity.key}").fields["position"]
            found.append(
                Hook(snapshot.entity.key, said["tenant"], said["url"], said["secret_file"], tuple(said["kinds"]), place)
            )
        return tuple(sorted(found, key=lambda hook: hook.id))

    def remove(self, id: str) -> None:
        """Send nothing to a webhook any more."""
        if id not in {hook.id for hook in self.all()}:
            raise NotFound(f"{shown(id)}: there is no such webhook. Nothing was changed. See `woodrat webhooks list`.")
        self._ledger.delete(f"{HOOK_TYPE}/{id}")

    def move(self, id: str, position: int) -> None:
        """Note that a webhook is done with everything up to a position."""
        self._ledger.store({"entity_type": PLACE_TYPE, "position": position, "$": {"key": id}})

    def bury(self, hook: Hook, first: int, last: int, tries: int, problem: str) -> None:
        """Note a delivery that nobody took, and go on after it; both in one write."""
        said = {"webhook": hook.id, "tenant": hook.tenant, "first": first, "last": last, "tries": tries}
        key = f"{hook.id}/{first}"
        self._ledger.store(
            [
                {"entity_type": DEAD_TYPE, **said, "problem": problem, "at": self._clock.now(), "$": {"key": key}},
                {"entity_type": PLACE_TYPE, "position": last, "$": {"key": hook.id}},
            ]
        )

    def dead(self, id: str | None = None) -> list[dict[str, Any]]:
        """Return the deliveries that nobody took, of one webhook or all, by webhook and position."""
        found = [dict(snapshot.fields) for snapshot in _every(self._ledger, DEAD_TYPE)]
        chosen = [letter for letter in found if id is None or letter["webhook"] == id]
        return sorted(chosen, key=lambda letter: (str(letter["webhook"]), letter["first"]))


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
    """Return whether a delivery was signed with a secret, not long ago; for whoever receives it."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not (at.isascii() and at.isdigit() and len(at) <= 12) or abs(now - int(at)) > within_seconds:
        return False
    return hmac.compare_digest(signature(secret, int(at), body).encode(), header.encode("utf-8", "replace"))


class Deliverer:
    """Sends the entries of one webhook, in a thread of its own."""

    def __init__(
        self,
        hook: Hook,
        hooks: Hooks,
        log: Past,
        clock: Clock,
        *,
        pause: Callable[[float], bool] | None = None,
        heard: Callable[[str, Mapping[str, Any]], None] | None = None,
    ) -> None:
        """`pause` waits for so many seconds and returns whether to stop; `heard` is told what happened, by ids."""
        self.hook, self._hooks, self._log, self._clock = hook, hooks, log, clock
        self._stopping = threading.Event()
        self._pause = pause or self._stopping.wait
        self._heard = heard or (lambda event, told: None)
        self._thread = threading.Thread(target=self._run, name=f"woodrat-{hook.id}", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; what is on its way is waited for, a little."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(TIMEOUT_SECONDS / 2)

    def _run(self) -> None:
        position = self.hook.position
        while not self._stopping.is_set():
            try:
                moved = self.send(position)
            except WoodratError as error:
                self._heard("webhook", {"webhook": self.hook.id, "problem": error.code})
                moved = position
            if moved == position and self._pause(POLL_SECONDS):
                return
            position = moved

    def send(self, after: int) -> int:
        """Send the next entries after a position, if there are any; return the position it is done with then."""
        entries = self._log.entries(after=after, limit=ENTRIES_MAX)
        if not entries:
            return after
        last: int = entries[-1].position
        told = [entry.to_json() for entry in entries if not self.hook.kinds or entry.kind in self.hook.kinds]
        if told:
            first = told[0]["position"]
            body = orjson.dumps({"webhook": self.hook.id, "tenant": self.hook.tenant, "entries": told})
            problem = self._deliver(body, f"{self.hook.id}:{first}-{last}")
            if problem is not None:
                if self._stopping.is_set():
                    return after
                self._hooks.bury(self.hook, first, last, TRIES_MAX, problem)
                self._heard("dead_letter", {"webhook": self.hook.id, "first": first, "last": last})
                return last
        self._hooks.move(self.hook.id, last)
        return last

    def _deliver(self, body: bytes, name: str) -> str | None:
        """Send one delivery until it is taken; return what went wrong at last if it never was."""
        problem: str | None = None
        for number in range(TRIES_MAX):
            if number and self._pause(BACKOFF_SECONDS[min(number, len(BACKOFF_SECONDS)) - 1]):
                return problem
            problem = self._try(body, name)
            self._heard("delivery", {"webhook": self.hook.id, "delivery": name, "problem": problem})
            if problem is None:
                return None
        return problem

    def _try(self, body: bytes, name: str) -> str | None:
        address = urlsplit(self.hook.url)
        try:
            secret = Path(self.hook.secret_file).read_bytes().strip()
            at = moment.to_micros(self._clock.now()) // 1_000_000
            kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
            connection = kind(address.hostname or "", address.port, timeout=TIMEOUT_SECONDS)
            try:
                headers = {
                    "Content-Type": "application/json",
                    "Woodrat-Signature": signature(secret, at, body),
                    "Woodrat-Delivery": name,
                }
                target = (address.path or "/") + (f"?{address.query}" if address.query else "")
                connection.request("POST", target, body, headers)
                status = connection.getresponse().status
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        return None if 200 <= status < 300 else f"status {status}"


class Delivering:
    """All webhooks of a server: started as they are added, stopped as they are removed."""

    def __init__(
        self, hooks: Hooks, log_of: Callable[[str], Past], clock: Clock, heard: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        self._hooks, self._log_of, self._clock, self._heard = hooks, log_of, clock, heard
        self._running: dict[str, Deliverer] = {}

    def refresh(self) -> None:
        """Start and stop what changed."""
        wanted = {hook.id: hook for hook in self._hooks.all()}
        for id in [id for id in self._running if id not in wanted]:
            self._running.pop(id).stop()
        for id, hook in wanted.items():
            if id not in self._running:
                found = Deliverer(hook, self._hooks, self._log_of(hook.tenant), self._clock, heard=self._heard)
                self._running[id] = found
                found.start()

    def close(self) -> None:
        """Stop them all."""
        for deliverer in self._running.values():
            deliverer._stopping.set()
        for deliverer in self._running.values():
            deliverer.stop()


def _url_faults(url: object) -> list[Fault]:
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
    if size < SECRET_BYTES_MIN:
        return [Fault("secret_file", f"the secret has {size} bytes", f"Use at least {SECRET_BYTES_MIN}.")]
    return []

"""Webhooks: new entries of a log, sent to addresses that were named for it; signed, in order, at least once.

Each webhook has its own place in the log, which is kept in a tenant of its own and moves on when a delivery was taken.
A delivery that nobody takes after several tries becomes a dead letter, and the next one is sent. Secrets stay in their
files. Without a webhook no connection is ever opened.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import os
import queue
import socket
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
    inside: bool = True
    """Whether it may be on the server's machine or in its networks, as the operator's may."""

    def to_json(self) -> dict[str, Any]:
        """Return the webhook as plain JSON."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "url": self.url,
            "secret_file": self.secret_file,
            "kinds": list(self.kinds),
            "position": self.position,
            "inside": self.inside,
        }


class Hooks:
    """The webhooks of a database."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == WEBHOOKS_TENANT, "webhooks are kept in a tenant of their own"
        self._ledger, self._clock = ledger, clock

    def fresh_id(self) -> str:
        """Return the id of a webhook that is about to be added."""
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
        """Add a webhook that is sent the entries of a tenant after a position."""
        faults = [*self.faults(tenant, url, kinds, after, inside=inside), *_secret_faults(secret_file)]
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
        """Return what is wrong with a webhook that is to be added, apart from its secret."""
        faults = [*ids.tenant_faults(tenant), *_url_faults(url, inside=inside)]
        chosen = kinds if isinstance(kinds, list | tuple | set) else [kinds]
        if isinstance(tenant, str) and tenant.startswith(OWN_TENANTS):
            faults.append(Fault("tenant", f"{tenant} holds what the server keeps for itself", "Name another tenant."))
        for kind in chosen:
            if not isinstance(kind, str) or kind not in KINDS:
                faults.append(Fault("kinds", f"{shown(kind)} is no kind of entry", f"Send {', '.join(sorted(KINDS))}."))
        if type(after) is not int or after < -1:
            faults.append(Fault("after", f"got {shown(after)}", "Send a position, 0 or more."))
        return faults

    def all(self) -> tuple[Hook, ...]:
        """Return the webhooks there are, by id."""
        found = []
        for snapshot in _every(self._ledger, HOOK_TYPE):
            said: Any = snapshot.fields
            place: Any = self._ledger.show(f"{PLACE_TYPE}/{snapshot.entity.key}").fields["position"]
            kinds, inside = tuple(said["kinds"]), said.get("inside", True)
            found.append(
                Hook(snapshot.entity.key, said["tenant"], said["url"], said["secret_file"], kinds, place, inside)
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
        key, at = _letter(said), self._clock.now()
        self._ledger.store(
            [
                {"entity_type": DEAD_TYPE, **said, "problem": problem, "at": at, "again": False, "$": {"key": key}},
                {"entity_type": PLACE_TYPE, "position": last, "$": {"key": hook.id}},
            ]
        )

    def retry(self, id: str, first: int | None = None) -> int:
        """Have dead letters of a webhook delivered again, all or the one that begins at a position; return how many."""
        found = [letter for letter in self.dead(id) if first is None or letter["first"] == first]
        if not found:
            which = "" if first is None else f" that begins at {shown(first)}"
            raise NotFound(
                f"{shown(id)}: it has no dead letter{which}. Nothing was changed. See `woodrat webhooks dead-letters`."
            )
        self._ledger.store([{"entity_type": DEAD_TYPE, "again": True, "$": {"key": _letter(one)}} for one in found])
        return len(found)

    def retried(self, letter: Mapping[str, Any], problem: str | None) -> None:
        """Note how a dead letter fared that was delivered again: taken it is gone, otherwise it stays one."""
        if problem is None:
            self._ledger.delete(f"{DEAD_TYPE}/{_letter(letter)}")
            return
        said = {"again": False, "problem": problem, "tries": letter["tries"] + TRIES_MAX, "at": self._clock.now()}
        self._ledger.store({"entity_type": DEAD_TYPE, **said, "$": {"key": _letter(letter)}})

    @property
    def position(self) -> int:
        """Where the log of webhooks stands; what is kept about them changes with it."""
        return self._ledger.position

    def dead(self, id: str | None = None) -> list[dict[str, Any]]:
        """Return the deliveries that nobody took, of one webhook or all, by webhook and position."""
        found = [dict(snapshot.fields) for snapshot in _every(self._ledger, DEAD_TYPE)]
        chosen = [letter for letter in found if id is None or letter["webhook"] == id]
        return sorted(chosen, key=lambda letter: (str(letter["webhook"]), letter["first"]))


def _letter(letter: Mapping[str, Any]) -> str:
    """Return the key of a dead letter."""
    return f"{letter['webhook']}/{letter['first']}"


def hooks_beside(ledger: Ledger) -> Hooks:
    """Return the webhooks of the database that a ledger is in."""
    from woodrat.ledger.ledger import Ledger as Opened

    kept = Opened(
        ledger._engine, tenant=WEBHOOKS_TENANT, agent="server", clock=ledger._clock, policies=ledger._policies
    )
    return Hooks(kept, ledger._clock)


def make_secret(folder: object, id: str, clock: Clock) -> tuple[str, str]:
    """Return a fresh secret for a webhook and the file it is kept in, in a folder of keys that nobody else reads."""
    if folder is None:
        remedy = "Start it with --keys, or run `woodrat webhooks add` where the database is."
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
        self._again: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"woodrat-{hook.id}", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; what is on its way is waited for, a little."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(TIMEOUT_SECONDS / 2)

    def retry(self, letter: Mapping[str, Any]) -> None:
        """Deliver a dead letter again, before what comes next."""
        self._again.put(letter)

    def _run(self) -> None:
        position = self.hook.position
        while not self._stopping.is_set():
            try:
                while not self._again.empty():
                    self.send_again(self._again.get())
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

    def send_again(self, letter: Mapping[str, Any]) -> None:
        """Send what a dead letter holds once more, as often as any delivery is tried."""
        first, last = letter["first"], letter["last"]
        entries = self._log.entries(after=first - 1, limit=last - first + 1)
        told = [entry.to_json() for entry in entries if not self.hook.kinds or entry.kind in self.hook.kinds]
        body = orjson.dumps({"webhook": self.hook.id, "tenant": self.hook.tenant, "entries": told})
        problem = self._deliver(body, f"{self.hook.id}:{first}-{last}")
        if problem is None or not self._stopping.is_set():
            self._hooks.retried(letter, problem)

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
            connection: Any = kind(address.hostname or "", address.port, timeout=TIMEOUT_SECONDS)
            if not self.hook.inside:
                connection._create_connection = _connect_outside
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
        self._seen = -1
        self._handed: set[tuple[str, int, int]] = set()

    def refresh(self) -> None:
        """Start and stop what changed, and hand over dead letters that are to be delivered again."""
        position = self._hooks.position
        if position == self._seen:
            return
        self._seen = position
        wanted = {hook.id: hook for hook in self._hooks.all()}
        for id in [id for id in self._running if id not in wanted]:
            self._running.pop(id).stop()
        for id, hook in wanted.items():
            if id not in self._running:
                found = Deliverer(hook, self._hooks, self._log_of(hook.tenant), self._clock, heard=self._heard)
                self._running[id] = found
                found.start()
        wished = [letter for letter in self._hooks.dead() if letter.get("again") is True]
        # Tries tell a letter that failed once more from one that was handed over already.
        named = {(letter["webhook"], letter["first"], letter["tries"]): letter for letter in wished}
        for name, letter in named.items():
            if name not in self._handed and letter["webhook"] in self._running:
                self._running[letter["webhook"]].retry(letter)
        self._handed = set(named)

    def close(self) -> None:
        """Stop them all."""
        for deliverer in self._running.values():
            deliverer._stopping.set()
        for deliverer in self._running.values():
            deliverer.stop()


class InsideAddress(OSError):
    """A name leads to the server's machine or into its networks, where nobody from outside is to send anything."""


def _connect_outside(address: tuple[str, int], timeout: float, *_: object) -> socket.socket:
    """Connect to a name wherever it leads, unless that is inside; what was looked at is what is connected to."""
    host, port = address
    places = [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not all(map(_is_outside, places)):
        raise InsideAddress(host)
    problem: OSError = InsideAddress(host)
    for place in places:
        try:
            return socket.create_connection((place, port), timeout)
        except OSError as error:
            problem = error
    raise problem


def _is_outside(place: str) -> bool:
    found = ipaddress.ip_address(place.partition("%")[0])
    plain = getattr(found, "ipv4_mapped", None) or found
    return bool(plain.is_global and not plain.is_multicast)


def _is_named_inside(host: str) -> bool:
    """Return whether a name says by itself that it is inside; where others lead is looked at for every delivery."""
    try:
        return not _is_outside(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


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
    if not inside and (address.scheme == "http" or _is_named_inside(address.hostname)):
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
    if size < SECRET_BYTES_MIN:
        return [Fault("secret_file", f"the secret has {size} bytes", f"Use at least {SECRET_BYTES_MIN}.")]
    return []

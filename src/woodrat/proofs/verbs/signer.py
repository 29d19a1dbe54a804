"""Signing: checkpoints of one log, by a signer that remembers its last one outside the database.

    head of the log → does it extend the last checkpoint? → remember → sign → publish

A history that is shorter than the last checkpoint, or contradicts it, is never signed: an older copy such as a backup
replaced the database, or it was truncated. The same holds for a log that does not begin with the remembered entries of
its file and tenant (`locations.py`), whatever its name. Then nothing is written either, until the operator puts the
database back or begins a new epoch. Signing happens after a write is durable and never undoes one; errors are reported,
and writing goes on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from woodrat.errors import Corrupt, Fault, Outdated, Refused, Unavailable, WoodratError, shown
from woodrat.log import tree
from woodrat.log.checkpoint import Checkpoint, SignedNote, VerifierKey, opened
from woodrat.proofs.proof import Signed
from woodrat.proofs.verbs.keys import SEEN, Keys, read, replace
from woodrat.proofs.verbs.locations import Location, epoch_line
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine
    from woodrat.engines.view import View

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

EVERY: Final = 1_000
"""Number of entries after which a ledger signs by itself."""
PATIENCE_SECONDS: Final = 10.0
"""Time to wait for another signing process."""
_LOOK_SECONDS: Final = 0.02
BEHIND: Final = "behind"
"""The class of damage of a log that is shorter than its remembered checkpoint."""
REASON_BYTES_MAX: Final = 4_096
"""Longest reason for a new epoch."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why a log does not extend its last checkpoint, or the remembered state of its location."""

    log: str
    """The log that is remembered."""
    seen: Checkpoint
    """The last signed or remembered state."""
    size: int
    """Number of entries in the log."""
    root: bytes
    """The root of as many of them as both have."""
    found: str | None
    """The current log, or its source if it is a copy; None without entries."""
    location: Location | None = None
    """Its file and tenant; None if it is in no file."""
    is_copy: bool = False
    """Whether it is a copy with no new entries but erasures."""

    @property
    def damage(self) -> str:
        """The class of damage, as `verify` names it."""
        if self.location is not None and self.found not in (self.log, *self.location.earlier()):
            return "switched"
        return BEHIND if self.size < self.seen.size or self.is_copy else "forked"

    def __str__(self) -> str:
        if self.damage == "switched":
            there = (
                "there are no entries"
                if self.found is None
                else f"{self.found} lies there with {self.size} entries and does not begin with them"
            )
            return (
                f"{self.location}: the keys folder remembers {self.log} with {self.seen.size} entries here, root "
                f"{self.seen.root.hex()}, and {there}. The file was replaced, or the log of another tenant was put "
                f"in its place."
            )
        if self.size >= self.seen.size and self.is_copy:
            return (
                f"{self.log}: this ledger is a restored backup with {self.size} entries, and lacks some of the "
                f"{self.seen.size} that its last checkpoint covers."
            )
        if self.size < self.seen.size:
            return (
                f"{self.log}: this ledger has {self.size} entries, and its last checkpoint covers {self.seen.size}. "
                f"The last {self.seen.size - self.size} are missing: it is an older copy, such as a restored backup, "
                "or it was cut."
            )
        return (
            f"{self.log}: the first {self.seen.size} entries have the root {self.root.hex()}, and the last checkpoint "
            f"says {self.seen.root.hex()}. Entries were changed, or this is another history of the same log."
        )

    @property
    def command(self) -> str:
        """The command that accepts it."""
        tenant = "default" if self.location is None else self.location.tenant
        return "woodrat checkpoint --new-epoch REASON" + (f" --tenant {tenant}" if tenant != "default" else "")

    def error(self, outcome: str) -> WoodratError:
        """Return the error to raise if continuing would hide it: an older copy holds no wrong bytes."""
        remedy = (
            f"If a backup was restored, accept it with `{self.command}`; otherwise put the newer database back (a copy "
            "needs its -wal file too)."
            if self.damage == BEHIND
            else "Put the whole database back (a copy needs its -wal file too), or accept this history with "
            f"`{self.command}`."
        )
        details = {
            "damage": self.damage,
            "log": self.log,
            "found": self.found,
            "size": self.size,
            "root": self.root.hex(),
            "checkpoint": self.seen.to_json(),
        }
        return (Outdated if self.damage == BEHIND else Corrupt)(f"{self} {outcome} {remedy}", details)


# What is remembered


def last_seen(keys: Keys, log: str, verifier: VerifierKey | None = None) -> tuple[Checkpoint, str] | None:
    """Return the last checkpoint signed for a log and its note; with a key, only if that key signed it."""
    path = keys.seen(log)
    note = read(path)
    if note is None:
        return None
    try:
        if verifier is None:
            found = Checkpoint.parse(SignedNote.parse(note, path).text, path)
        else:
            found = opened(note, [verifier], path)
    except Refused as error:
        raise Corrupt(
            f"{error} {path} is in the signer's memory. Restore it from a backup; without it a shorter history "
            "would pass.",
            {"path": path},
        ) from error
    return found, note


def checkpoints(keys: Keys, log: str) -> tuple[Checkpoint, ...]:
    """Return the checkpoints that a log must extend, by size; `verify` compares it with them."""
    found = last_seen(keys, log, keys.verifier)
    return () if found is None else (found[0],)


def trouble(view: View, seen: Checkpoint, location: Location | None = None) -> Trouble | None:
    """Return the reason why a log does not extend a checkpoint, or None. It takes a few look-ups for a log of any
    length."""
    head = view.head()
    shared = min(head.size, seen.size)
    root = tree.Frontier.at(view.nodes(), shared).root()
    if head.size < seen.size or root != seen.root:
        name = copied_name(view)
        return Trouble(seen.log, seen, head.size, root, name, location, is_copy=name != head.log)
    return None


def copied_name(view: View) -> str | None:
    """Return the name of a log; for a copy with no additions but erasures, the name of its source.

    A restored backup repeats the erasures made since, and each of them is an entry of the copy.
    """
    head, last = view.head(), view.cloned()
    if not 0 <= last < head.position or any(entry.kind != "erasure" for entry in view.entries(last)):
        return head.log
    return next(view.entries(last - 1, last)).log


def any_trouble(
    view: View, seen: Checkpoint | None, location: Location | None, remembered: Sequence[Checkpoint]
) -> Trouble | None:
    """Return the reason why a log does not extend its last checkpoint or the remembered state of its location, or None.

    Both were read before the view was opened: others write and sign meanwhile, and a log only ever grows.
    """
    found = None if seen is None else trouble(view, seen, location)
    if found is None:
        found = next(filter(None, (trouble(view, known, location) for known in remembered)), None)
    return found


def _remembered(location: Location | None) -> tuple[Checkpoint, ...]:
    return () if location is None else location.remembered()


def _judge(
    engine: Engine, tenant: TenantId, keys: Keys, location: Location | None, verifier: VerifierKey | None = None
) -> tuple[tuple[Checkpoint, str] | None, Trouble | None]:
    """Return the last checkpoint of a tenant's log, and the reason why the log does not extend it, or None."""
    with engine.view(tenant) as view:
        log = view.head().log
    seen = None if log is None else last_seen(keys, log, verifier)
    remembered = _remembered(location)
    with engine.view(tenant) as view:
        return seen, any_trouble(view, None if seen is None else seen[0], location, remembered)


def look(engine: Engine, tenant: TenantId, keys: Keys) -> Trouble | None:
    """Return the reason why a tenant's log does not extend the last checkpoint signed for it, or None."""
    return _judge(engine, tenant, keys, Location.of(keys, engine, tenant))[1]


def refusals(engine: Engine, keys: Keys, tenants: Iterable[TenantId]) -> dict[TenantId, WoodratError]:
    """Return the tenants whose writes are refused because their logs contradict the keys, with the reasons."""
    found: dict[TenantId, WoodratError] = {}
    for tenant in tenants:
        try:
            contradiction = look(engine, tenant, keys)
        except Corrupt as error:  # the signer's memory cannot be read
            found[tenant] = error
        else:
            if contradiction is not None:
                found[tenant] = contradiction.error("Writes are refused.")
    return found


# Signing


class Signing:
    """The signer of one tenant's log, for all ledgers that share an engine."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        keys: Keys,
        clock: Clock,
        *,
        every: int = EVERY,
        tell: Callable[[str], None],
    ) -> None:
        if type(every) is not int or every < 1:
            remedy = "Send a number of entries above 0."
            raise Refused([Fault("checkpoint_every", f"got {shown(every)}", remedy)], "Nothing was opened.")
        self.keys = keys
        self.notices: list[str] = []
        """Errors since the ledger was opened, each reported once when it happened."""
        self._engine, self._tenant, self._clock = engine, tenant, clock
        self._every = every
        self._tell = tell
        self._busy = threading.Lock()
        self._covered = 0
        self._written = -1
        self._halted = False
        self._location = Location.of(keys, engine, tenant)
        self._is_new = False
        """Whether this location has no remembered state yet."""
        try:
            seen, found = _judge(engine, tenant, keys, self._location)
            if seen is not None:
                self._covered = seen[0].size
            self._is_new = self._location is not None and not self._location.remembered()
        except Corrupt as error:  # the signer's memory cannot be read, but the ledger must stay readable
            self._halted = True
            self._notice(f"{error} Reading goes on; writing is refused.")
            return
        if found is not None:
            self._halted = True
            self._notice(f"{found} Reading goes on; writing is refused.")

    def refusal(self) -> str | None:
        """Return the reason why writes are refused; None if they are not."""
        found = refusals(self._engine, self.keys, [self._tenant])
        return next(map(str, found.values()), None)

    def check(self) -> None:
        """Refuse to write to a history that the last checkpoint contradicts, unless it was accepted meanwhile."""
        if self._halted:
            found = look(self._engine, self._tenant, self.keys)
            if found is not None:
                raise found.error("Nothing was written.")
            self._halted = False

    def wrote(self, position: int) -> None:
        """Note that the log reaches to a position, and sign once enough was added; never raises."""
        self._written = max(self._written, position)
        if self._is_new:
            self._remember_first()
        if position + 1 - self._covered >= self._every and self._busy.acquire(blocking=False):
            try:
                self._try(0.0)
            finally:
                self._busy.release()

    def close(self) -> None:
        """Sign new writes that no checkpoint covers yet; never raises."""
        if self._written >= self._covered:
            with self._busy:
                self._try(PATIENCE_SECONDS)

    def _remember_first(self) -> None:
        """Remember the log of a new location with its first write, which may be long before its first checkpoint."""
        self._is_new = False
        assert self._location is not None, "only files have a location"
        try:
            with self._engine.view(self._tenant) as view:
                head = view.head()
                # Another process may have accepted a history here meanwhile; its epoch stays.
                if head.log is not None and not self._location.remembered():
                    self._location.remember(Checkpoint(head.log, head.size, head.frontier.root()), self._clock)
        except (WoodratError, OSError) as error:
            self._notice(f"The keys folder could not record the log at this location: {error} The write is stored.")

    def _try(self, patience: float) -> None:
        try:
            self.sign(patience=patience)
        except _Busy:
            pass  # another process is signing, and covers these entries now or the next time
        except (WoodratError, OSError) as error:
            # One warning per so many entries: writing goes on, and so does the fault.
            self._covered = self._written + 1
            self._notice(f"No checkpoint was signed: {error} The write is stored.")

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        self._tell(text)

    def sign(self, *, patience: float = PATIENCE_SECONDS) -> Signed:
        """Return a checkpoint of the current log; the last one, if nothing was added since."""
        return self._sign(None, patience)

    def begin_epoch(self, reason: object) -> Signed:
        """Accept a history that contradicts the last checkpoint: archive that with the reason, and sign a new one."""
        return self._sign(check_reason(reason, "new_epoch", "Nothing was signed."), PATIENCE_SECONDS)

    def _sign(self, reason: str | None, patience: float) -> Signed:
        try:
            last = self._last() if reason is None else None
            return self._sign_alone(reason, patience) if last is None else last
        except OSError as error:
            path = error.filename or self.keys.folder
            raise Unavailable(
                f"{path}: {error.strerror or error}. Nothing was signed: the signer could not remember it. Make the "
                "keys folder writable, or free some space, and call again.",
                {"path": self.keys.folder},
            ) from error

    def _last(self) -> Signed | None:
        """Return the last checkpoint if no entry was added since; needs no write access."""
        with self._remembering() as (remembered, view):
            head = view.head()
            seen = None if head.log is None else last_seen(self.keys, head.log, self.keys.verifier)
            if seen is None or seen[0].size != head.size:
                return None
            if any_trouble(view, seen[0], self._location, remembered) is not None:
                return None
        if any(known.epoch > seen[0].epoch for known in remembered):
            return None
        with suppress(OSError):
            self._settle(seen[0])
        return Signed(*seen, new=False)

    def _sign_alone(self, reason: str | None, patience: float) -> Signed:
        verifier = self.keys.verifier
        with self._alone(patience), self._remembering() as (remembered, view):
            head = view.head()
            seen = None if head.log is None else last_seen(self.keys, head.log, verifier)
            found = any_trouble(view, None if seen is None else seen[0], self._location, remembered)
            if reason is None and found is not None:
                raise found.error("Nothing was signed.")
            if head.log is None and found is None:
                problem = "there are no entries to sign"
                raise Refused([Fault("checkpoint", problem, "Store something first.")], "Nothing was signed.")
            if reason is not None and found is None:
                problem = "there is nothing to accept: the log extends its last checkpoint"
                remedy = "Leave the new epoch out."
                raise Refused([Fault("new_epoch", problem, remedy)], "Nothing was signed.")
            known = (*(() if seen is None else seen[:1]), *remembered)
            epoch = max((one.epoch for one in known), default=1) + (found is not None)
            if found is None:
                if seen is not None and seen[0].size == head.size and seen[0].epoch == epoch:
                    self._settle(seen[0])
                    return Signed(*seen, new=False)
                for last in known:
                    if last.size:
                        self._prove_consistency(view, last, head.size)
            # A ledger without entries has no name yet: then the note states that the remembered log begins again.
            log = head.log if head.log is not None or found is None else found.log
            assert log is not None, "entries exist or existed"
            checkpoint = Checkpoint(log, head.size, head.frontier.root(), epoch_line(epoch))
            text = str(checkpoint.signed(verifier, self.keys.sign))
            if reason is not None:
                self._put_aside(epoch - 1, reason, seen)
            if head.log is not None:
                # Remember before publishing: after a power cut, the signer must know every note that others may hold.
                replace(self.keys.seen(log), text, self._clock)
            self._settle(checkpoint)
            return Signed(checkpoint, text, new=True)

    def _put_aside(self, epoch: int, reason: str, seen: tuple[Checkpoint, str] | None) -> None:
        """Archive the state that contradicts the accepted history, with the reason."""
        if seen is not None:
            aside = f"{self.keys.seen(seen[0].log).removesuffix('.note')}.epoch-{seen[0].epoch}"
            replace(f"{aside}.note", seen[1], self._clock)
            replace(f"{aside}.reason", f"{self._clock.now()} {reason}\n", self._clock)
        if self._location is not None:
            self._location.put_aside(epoch, reason, None if seen is None else seen[0], self._clock)

    def _settle(self, checkpoint: Checkpoint) -> None:
        """Make a checkpoint the one that the log must extend, here and for its location."""
        if self._location is not None:
            self._location.remember(checkpoint, self._clock)
            self._is_new = False
        self._covered, self._halted = checkpoint.size, False

    @staticmethod
    def _prove_consistency(view: View, last: Checkpoint, size: int) -> None:
        """Check, as an outsider would, that the log grew out of the last checkpoint."""
        proof = tree.consistency_proof(view.nodes(), last.size, size)
        root = view.head().frontier.root()
        if not tree.verify_consistency(last.size, size, last.root, root, proof):
            raise Corrupt(
                f"{last.log}: the tree of {size} entries, root {root.hex()}, does not extend that of "
                f"{last.size}, root {last.root.hex()}. Nothing was signed. Rebuild the derived tables, then "
                "verify the ledger.",
                {"damage": "tree", "log": last.log, "size": size, "checkpoint": last.to_json()},
            )

    def covering(self, position: int) -> Signed:
        """Return a checkpoint that covers a position: the last one, or one signed now."""
        seen, found = _judge(self._engine, self._tenant, self.keys, self._location, self.keys.verifier)
        if found is not None:
            raise found.error("Nothing was proven.")
        if seen is not None and position < seen[0].size:
            return Signed(*seen, new=False)
        return self.sign()

    def epoch_notice(self) -> str | None:
        """Return the accepted history of this log, and the reason; None in its first epoch."""
        known = (*self.checkpoints(), *self.remembered())
        epoch = max((one.epoch for one in known), default=1)
        if epoch == 1:
            return None
        reason = None if self._location is None else self._location.reason(epoch - 1)
        return f"The log is in epoch {epoch}: its history was accepted" + (f" at {reason}" if reason else "") + "."

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints that this log must extend."""
        with self._engine.view(self._tenant) as view:
            log = view.head().log
        return () if log is None else checkpoints(self.keys, log)

    def remembered(self) -> tuple[Checkpoint, ...]:
        """Return the prefix that the log at this location must have, whatever its name."""
        return _remembered(self._location)

    def earlier(self) -> frozenset[str]:
        """Return the logs that lay in this location in earlier epochs."""
        return frozenset() if self._location is None else self._location.earlier()

    @contextmanager
    def _remembering(self) -> Iterator[tuple[tuple[Checkpoint, ...], View]]:
        """Return the remembered state of this location, which writers update without waiting, and a view opened after
        it."""
        remembered = self.remembered()
        with self._engine.view(self._tenant) as view:
            yield remembered, view

    @contextmanager
    def _alone(self, patience: float) -> Iterator[None]:
        """Keep every other signer of this folder waiting, in this process and in others."""
        folder = self.keys.path(SEEN)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if fcntl is None:  # pragma: no cover - not a POSIX system
            yield
            return
        descriptor = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            waited = 0.0
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if waited >= patience:
                        raise _Busy(
                            "Another process is signing. Nothing was signed. Send the same call again.",
                            {"path": folder},
                        ) from error
                    threading.Event().wait(_LOOK_SECONDS)
                    waited += _LOOK_SECONDS
            yield
        finally:
            os.close(descriptor)


def check_reason(reason: object, path: str, outcome: str) -> str:
    """Return a valid reason for a new epoch."""
    if not isinstance(reason, str) or not 0 < len(reason.encode("utf-8", "replace")) <= REASON_BYTES_MAX:
        problem = f"a new epoch needs a reason, got {shown(reason)}"
        remedy = f"State in 1 to {REASON_BYTES_MAX} bytes why this history is the one to continue."
        raise Refused([Fault(path, problem, remedy)], outcome)
    return reason


class _Busy(Unavailable):
    """Another process holds the lock of the signer."""

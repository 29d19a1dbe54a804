"""Signing: checkpoints of one log, by a signer that remembers its last one outside the database.

    head of the log → does it go on from the last checkpoint? → sign → remember → hand out

A history that is shorter than the last checkpoint, or another one, is never signed: the database was cut, or an older
copy was put in its place. Then nothing is written either, until the operator puts the database back or begins a new
epoch. Signing happens after a write is durable and never undoes one; what goes wrong is told, and the writer goes on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Corrupt, Fault, Refused, Unavailable, WoodratError, shown
from woodrat.frozen import dataclass
from woodrat.keeping.keys import SEEN, Keys, read, replace
from woodrat.log import tree
from woodrat.log.checkpoint import Checkpoint, Note, VerifierKey, opened

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine, View

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

EVERY: Final = 1_000
"""After how many entries a ledger signs by itself."""
PATIENCE_SECONDS: Final = 10.0
"""How long to wait for another process that is signing."""
_LOOK_SECONDS: Final = 0.02
REASON_BYTES_MAX: Final = 4_096
"""Longest reason for a new epoch."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint and the note that carries it."""

    checkpoint: Checkpoint
    """What it says."""
    note: str
    """The signed note, to be handed out byte for byte."""
    new: bool
    """Whether it was signed now; otherwise nothing had been added since the last one."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**self.checkpoint.to_json(), "new": self.new, "note": self.note}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a log does not go on from its last checkpoint."""

    log: str
    """The log."""
    seen: Checkpoint
    """What was signed last."""
    size: int
    """How many entries the log has."""
    root: bytes
    """The root of as many of them as both have."""

    def __str__(self) -> str:
        if self.size < self.seen.size:
            return (
                f"{self.log}: this ledger has {self.size} entries, and its last checkpoint covers {self.seen.size}. "
                f"The last {self.seen.size - self.size} are missing: it was cut, or it is an older or partial copy."
            )
        return (
            f"{self.log}: the first {self.seen.size} entries have the root {self.root.hex()}, and the last checkpoint "
            f"says {self.seen.root.hex()}. Entries were changed, or this is another history of the same log."
        )

    def error(self, outcome: str) -> Corrupt:
        """Return what to raise where going on would hide it."""
        remedy = (
            "Put the whole database back (a copy needs its -wal file too), or accept this history with "
            "`woodrat checkpoint --new-epoch REASON`."
        )
        details = {
            "damage": "truncated" if self.size < self.seen.size else "forked",
            "log": self.log,
            "size": self.size,
            "root": self.root.hex(),
            "checkpoint": self.seen.to_json(),
        }
        return Corrupt(f"{self} {outcome} {remedy}", details)


# What is remembered


def last_seen(keys: Keys, log: str, verifier: VerifierKey | None = None) -> tuple[Checkpoint, str] | None:
    """Return the last checkpoint signed for a log and its note; with a key, only if that key signed it."""
    path = keys.seen(log)
    note = read(path)
    if note is None:
        return None
    try:
        if verifier is None:
            found = Checkpoint.parse(Note.parse(note, path).text, path)
        else:
            found = opened(note, [verifier], path)
    except Refused as error:
        raise Corrupt(
            f"{error} {path} is what the signer remembers. Put it back from a backup; without it a shorter history "
            "would pass.",
            {"path": path},
        ) from error
    return found, note


def checkpoints(keys: Keys, log: str) -> tuple[Checkpoint, ...]:
    """Return the checkpoints that a log must go on from, by size: what `verify` compares it with."""
    found = last_seen(keys, log, keys.verifier)
    return () if found is None else (found[0],)


def trouble(view: View, seen: Checkpoint) -> Trouble | None:
    """Say why a log does not go on from a checkpoint, or None. It takes a few look-ups, whatever the log's length."""
    head = view.head()
    shared = min(head.size, seen.size)
    root = tree.Frontier.at(view.nodes(), shared).root()
    if head.size < seen.size or root != seen.root:
        return Trouble(seen.origin, seen, head.size, root)
    return None


def look(engine: Engine, tenant: TenantId, keys: Keys) -> Trouble | None:
    """Say why a tenant's log does not go on from the last checkpoint signed for it, or None."""
    with engine.view(tenant) as view:
        log = view.head().log
        seen = None if log is None else last_seen(keys, log)
        return None if seen is None else trouble(view, seen[0])


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
        """What went wrong since the ledger was opened, each said once when it happened."""
        self._engine, self._tenant, self._clock = engine, tenant, clock
        self._every = every
        self._tell = tell
        self._busy = threading.Lock()
        self._covered = 0
        self._written = -1
        self._halted = False
        try:
            with engine.view(tenant) as view:
                log = view.head().log
                seen = None if log is None else last_seen(keys, log)
                if seen is not None:
                    self._covered = seen[0].size
                found = None if seen is None else trouble(view, seen[0])
        except Corrupt as error:  # what the signer remembers cannot be read, which must not hide the ledger
            self._halted = True
            self._notice(f"{error} Reading goes on; writing is refused.")
            return
        if found is not None:
            self._halted = True
            self._notice(f"{found} Reading goes on; writing is refused.")

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
        if position + 1 - self._covered >= self._every and self._busy.acquire(blocking=False):
            try:
                self._try(0.0)
            finally:
                self._busy.release()

    def close(self) -> None:
        """Sign what was written here and is not covered yet; never raises."""
        if self._written >= self._covered:
            with self._busy:
                self._try(PATIENCE_SECONDS)

    def _try(self, patience: float) -> None:
        try:
            self.sign(patience=patience)
        except _Busy:
            pass  # another process is at it, and covers this too or comes to it next time
        except (WoodratError, OSError) as error:
            # One telling for every so many entries: the writer goes on, and so does the trouble.
            self._covered = self._written + 1
            self._notice(f"No checkpoint was signed: {error} What was written stays.")

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        self._tell(text)

    def sign(self, *, patience: float = PATIENCE_SECONDS) -> Signed:
        """Return a checkpoint of the log as it is now; the last one, where nothing was added since."""
        return self._sign(None, patience)

    def begin_epoch(self, reason: object) -> Signed:
        """Accept a history that the last checkpoint contradicts: put that one aside with the reason, and sign anew."""
        if not isinstance(reason, str) or not 0 < len(reason.encode("utf-8", "replace")) <= REASON_BYTES_MAX:
            problem = f"a new epoch needs a reason, got {shown(reason)}"
            remedy = f"Say in 1 to {REASON_BYTES_MAX} bytes why this history is the one to go on from."
            raise Refused([Fault("new_epoch", problem, remedy)], "Nothing was signed.")
        return self._sign(reason, PATIENCE_SECONDS)

    def _sign(self, reason: str | None, patience: float) -> Signed:
        verifier = self.keys.verifier
        with self._alone(patience), self._engine.view(self._tenant) as view:
            head = view.head()
            if head.log is None:
                problem = "there are no entries to sign"
                raise Refused([Fault("checkpoint", problem, "Store something first.")], "Nothing was signed.")
            seen = last_seen(self.keys, head.log, verifier)
            found = None if seen is None else trouble(view, seen[0])
            if reason is not None and (seen is None or found is None):
                problem = "there is nothing to accept: the log goes on from its last checkpoint"
                remedy = "Leave the new epoch out."
                raise Refused([Fault("new_epoch", problem, remedy)], "Nothing was signed.")
            if reason is None and found is not None:
                raise found.error("Nothing was signed.")
            extensions: tuple[str, ...] = ()
            if seen is not None:
                last, note = seen
                if found is None and last.size == head.size:
                    self._covered, self._halted = head.size, False
                    return Signed(last, note, new=False)
                epoch = last.epoch + (found is not None)
                extensions = (f"epoch {epoch}",) if epoch > 1 else ()
                if found is None:
                    self._prove_growth(view, last, head.size)
            checkpoint = Checkpoint(head.log, head.size, head.frontier.root(), extensions)
            text = str(checkpoint.signed(verifier, self.keys.sign))
            path = self.keys.seen(head.log)
            if reason is not None and seen is not None:
                aside = f"{path.removesuffix('.note')}.epoch-{seen[0].epoch}"
                replace(f"{aside}.note", seen[1], self._clock)
                replace(f"{aside}.reason", f"{self._clock.now()} {reason}\n", self._clock)
            # Remembered first: a note that somebody holds is one that the signer knows of, whenever the power fails.
            replace(path, text, self._clock)
            self._covered, self._halted = head.size, False
            return Signed(checkpoint, text, new=True)

    @staticmethod
    def _prove_growth(view: View, last: Checkpoint, size: int) -> None:
        """Check, as an outsider would, that the log grew out of the last checkpoint."""
        proof = tree.consistency_proof(view.nodes(), last.size, size)
        root = view.head().frontier.root()
        if not tree.verify_consistency(last.size, size, last.root, root, proof):
            raise Corrupt(
                f"{last.origin}: the tree of {size} entries, root {root.hex()}, does not go on from that of "
                f"{last.size}, root {last.root.hex()}. Nothing was signed. Rebuild the derived tables, then "
                "verify the ledger.",
                {"damage": "tree", "log": last.origin, "size": size, "checkpoint": last.to_json()},
            )

    def covering(self, position: int) -> Signed:
        """Return a checkpoint that covers a position: the last one, or one signed now."""
        with self._engine.view(self._tenant) as view:
            head = view.head()
            seen = None if head.log is None else last_seen(self.keys, head.log, self.keys.verifier)
            if seen is not None:
                found = trouble(view, seen[0])
                if found is not None:
                    raise found.error("Nothing was proven.")
                if position < seen[0].size:
                    return Signed(*seen, new=False)
        return self.sign()

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints this log must go on from."""
        with self._engine.view(self._tenant) as view:
            log = view.head().log
        return () if log is None else checkpoints(self.keys, log)

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


class _Busy(Unavailable):
    """Another process holds the lock of the signer."""

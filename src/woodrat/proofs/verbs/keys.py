"""Keys: the folder outside the database for secrets and memory that the database must not contain.

    signer.key     signs checkpoints; anyone who has it can sign for this folder's logs
    signer.pub     checks them; hand it to everyone
    erasure.key    recognises erased records; hand it to ledgers that sync with this one
    seen/          per log, the last signed checkpoint
    ledgers/       per database file and tenant, the log at this location
    erased/        per log, its erasures, so that they can be repeated in older copies

Files are written whole or not at all, and an existing key is never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from woodrat.canon.digest import digest
from woodrat.clock import Clock, SystemClock
from woodrat.engines import private
from woodrat.errors import Corrupt, Fault, Refused, Unavailable, shown
from woodrat.log.checkpoint import SignerKey, VerifierKey, is_key_name
from woodrat.log.ed25519 import KEY_BYTES
from woodrat.log.erasure import Erasure, stored
from woodrat.proofs.verbs.folder import keys_folder
from woodrat.record_json import IN_PYTHON_ONLY, Record, derived
from woodrat.records import dataclass, field

SIGNER: Final = "signer.key"
PUBLIC: Final = "signer.pub"
ERASURE: Final = "erasure.key"
SEEN: Final = "seen"
ERASED: Final = "erased"
LEDGERS: Final = "ledgers"
NAME_BYTES_MAX: Final = 200
"""Longest name of a signer, and of a file under `seen/`."""

NO_EXTRA: Final = (
    "Signing needs the package cryptography, which is not installed. Nothing was signed. "
    "Install it with `pip install 'woodrat[proof]'`; checking signatures needs nothing."
)


@dataclass(frozen=True, slots=True)
class Keys:
    """An existing folder of keys."""

    folder: str
    """Where it is."""

    @classmethod
    def at(cls, folder: str | os.PathLike[str] | None = None) -> Keys:
        """Return the keys of a folder, of the usual one when none is named; it need not be there."""
        return cls(keys_folder(folder))

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Keys:
        """Return the keys of a folder; a folder without keys is refused, and nothing is made."""
        found = cls(os.fspath(folder))
        if not any(os.path.exists(found.path(name)) for name in (PUBLIC, ERASURE)):
            problem = f"there are no keys in {shown(found.folder)}"
            remedy = f"Make them with `woodrat init --signing-keys {found.folder}`, or name another folder."
            raise Refused([Fault("keys", problem, remedy)], "Nothing was opened.")
        return found

    def path(self, *names: str) -> str:
        """Return the path of a file in the folder."""
        return os.path.join(self.folder, *names)

    @property
    def verifier(self) -> VerifierKey:
        """The key that checks this folder's checkpoints."""
        return VerifierKey.parse(self._read(PUBLIC).rstrip("\n"), self.path(PUBLIC))

    @property
    def signer(self) -> SignerKey:
        """The key that signs them."""
        self._check_private(SIGNER)
        found = SignerKey.parse(self._read(SIGNER).rstrip("\n"), self.path(SIGNER))
        public = self.verifier
        if (found.name, found.hash) != (public.name, public.hash):
            raise Corrupt(
                f"{self.path(SIGNER)} is not the key of {self.path(PUBLIC)}. Nothing was signed. "
                "Put back the pair that `woodrat init` made.",
                {"path": self.path(SIGNER)},
            )
        return found

    @property
    def erasure(self) -> bytes | None:
        """The 32 bytes that recognise erased records; None if made elsewhere."""
        self._check_private(ERASURE)
        text = read(self.path(ERASURE))
        if text is None:
            return None
        try:
            found = bytes.fromhex(text.strip())
        except ValueError:
            found = b""
        if len(found) != KEY_BYTES:
            raise Corrupt(
                f"{self.path(ERASURE)} does not hold {KEY_BYTES} bytes in hex. Nothing was changed. "
                "Put back the file that `woodrat init` made.",
                {"path": self.path(ERASURE)},
            )
        return found

    def _check_private(self, name: str) -> None:
        """Refuse a key that every user of the machine may read: a reader of it can act as its holder."""
        if private.is_open_to_all(self.path(name)):
            problem = f"every user of this machine can read {self.path(name)}"
            remedy = f"Run `chmod 600 {self.path(name)}`; if somebody may have read it, make another key."
            raise Refused([Fault("keys", problem, remedy)], "Nothing was done with it.")

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message; the only function that needs the extra `proof`."""
        key = self.signer
        return _private(key.seed).sign(message)  # type: ignore[no-any-return]

    def seen(self, log: str) -> str:
        """Return the file that holds the last checkpoint signed for a log."""
        return self.path(SEEN, f"{_file_name(log)}.note")

    def remember(self, erasures: Iterable[Erasure]) -> bool:
        """Record new erasures, so that older copies can be made to forget too.

        Return True if the folder is writable.
        """
        known: dict[str, set[bytes]] = {}
        try:
            for erasure in erasures:
                if erasure.log not in known:
                    known[erasure.log] = set(self.remembered_of(erasure.log))
                if erasure.body() not in known[erasure.log]:
                    self._note(erasure)
        except OSError:
            return False
        return True

    def _note(self, erasure: Erasure) -> None:
        path = self._erased(erasure.log)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, b"\n" * _is_cut(path) + erasure.body() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def erasures(self) -> Iterator[Erasure]:
        """Yield the remembered erasures of all logs; a line truncated by a crash is skipped."""
        for path in self._under(ERASED):
            with open(path, "rb") as file:
                for line in file:
                    with suppress(ValueError, Refused):
                        yield stored(line.rstrip(b"\n"))

    @property
    def remembers(self) -> bool:
        """Whether any erasure is remembered here."""
        return bool(self._under(ERASED))

    def remembered_of(self, log: str) -> list[bytes]:
        """Return the lines remembered of one log, each the body of an erasure unless a crash cut it short."""
        try:
            with open(self._erased(log), "rb") as file:
                return [line.rstrip(b"\n") for line in file]
        except FileNotFoundError:
            return []

    def _erased(self, log: str) -> str:
        """Return the file that holds the erasures made in a log."""
        return self.path(ERASED, f"{_file_name(log)}.jsonl")

    def files(self) -> list[str]:
        """Return every file of the folder, for people."""
        found = [self.path(name) for name in (SIGNER, PUBLIC, ERASURE)]
        found += [*self._under(SEEN), *self._under(LEDGERS), *self._under(ERASED)]
        return [path for path in found if os.path.isfile(path)]

    def _under(self, name: str) -> list[str]:
        folder = self.path(name)
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return [os.path.join(folder, each) for each in names if not each.startswith(".")]

    def _read(self, name: str) -> str:
        found = read(self.path(name))
        if found is None:
            problem = f"there is no {name} in {shown(self.folder)}"
            raise Refused([Fault("keys", problem, "Make it with `woodrat init`, or put it back.")], "Nothing was done.")
        return found


@dataclass(frozen=True, slots=True)
class Made(Record):
    """The result of `init`."""

    keys: Keys = field(metadata=IN_PYTHON_ONLY)
    """The keys; JSON has no secret."""
    made: tuple[str, ...]
    """New files; empty when all existed."""
    verifier: VerifierKey | None = field(metadata=IN_PYTHON_ONLY)
    """The key to hand out; None without a signer, for lack of the extra `proof`."""

    @derived
    def folder(self) -> str:
        """The folder that the keys are in."""
        return self.keys.folder

    @derived
    def vkey(self) -> str | None:
        """The key to hand out, as text."""
        return None if self.verifier is None else str(self.verifier)

    @derived
    def files(self) -> tuple[str, ...]:
        """Every file in it."""
        return tuple(self.keys.files())


def init(keys: str | os.PathLike[str] | None = None, *, name: str | None = None) -> Made:
    """Make the folder of keys, or its missing parts: the named one, `WOODRAT_SIGNING_KEYS`, or the user's own.

    Existing keys are never overwritten. `name` is the signer's; default: `woodrat-` and eight digits.
    """
    return make(keys_folder(keys), SystemClock(), name)


def make(folder: str | os.PathLike[str], clock: Clock, name: str | None = None) -> Made:
    """Make missing keys. Existing files stay, so a second call is safe."""
    keys = Keys(os.fspath(folder))
    if name is not None and (not is_key_name(name) or len(name.encode()) > NAME_BYTES_MAX):
        remedy = f"Use 1 to {NAME_BYTES_MAX} characters without spaces and plus, such as example.com/ledger."
        raise Refused([Fault("name", f"{shown(name)} cannot name a signer", remedy)], "Nothing was made.")
    made: list[str] = []
    try:
        for path in (keys.folder, keys.path(SEEN)):
            os.makedirs(path, mode=0o700, exist_ok=True)
        if _make(keys.path(ERASURE), clock.random(KEY_BYTES).hex() + "\n", clock):
            made.append(keys.path(ERASURE))
        made += _make_signer(keys, clock, name)
    except OSError as error:
        raise Unavailable(
            f"{error.filename or keys.folder}: {error.strerror}. No key was written over. "
            "Name another folder with --signing-keys or WOODRAT_SIGNING_KEYS, or fix it and call init again.",
            {"path": keys.folder},
        ) from error
    return Made(keys, tuple(made), keys.verifier if os.path.exists(keys.path(PUBLIC)) else None)


def _make_signer(keys: Keys, clock: Clock, name: str | None) -> list[str]:
    made: list[str] = []
    secret, public = keys.path(SIGNER), keys.path(PUBLIC)
    if not os.path.exists(secret):
        if os.path.exists(public):
            raise Refused(
                [
                    Fault(
                        "keys", f"{public} exists and {secret} does not", "Put the private key back, or move both away."
                    )
                ],
                "Nothing was made.",
            )
        seed = clock.random(KEY_BYTES)
        try:
            verifier = VerifierKey(name or f"woodrat-{clock.random(4).hex()}", _public(seed))
        except Unavailable:
            return made  # without the extra there is an erasure key and no signer; the caller reports it
        if _make(secret, SignerKey(verifier.name, seed, verifier.hash).to_text() + "\n", clock):
            made.append(secret)
    signer = SignerKey.parse((read(secret) or "").rstrip("\n"), secret)
    if name is not None and signer.name != name:
        problem = f"the signer here is {shown(signer.name)}, not {shown(name)}"
        raise Refused([Fault("name", problem, "Leave --name out, or name another folder.")], "No key was written over.")
    if not os.path.exists(public) and _make(public, f"{VerifierKey(signer.name, _public(signer.seed))}\n", clock):
        made.append(public)
    return made


def _file_name(log: str) -> str:
    """Return a file name for a log: inside its folder, and not hidden, whatever the log's name."""
    name = quote(log, safe="")
    return name if len(name) <= NAME_BYTES_MAX and not name.startswith(".") else digest("log", log.encode()).hex()


def _private(seed: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise Unavailable(NO_EXTRA, {"extra": "proof"}) from error
    return Ed25519PrivateKey.from_private_bytes(seed)


def _public(seed: bytes) -> bytes:
    return _private(seed).public_key().public_bytes_raw()  # type: ignore[no-any-return]


# Files that are there whole or not at all


def _is_cut(path: str) -> bool:
    """Return True if a file ends in the middle of a line, as after a crash."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return False
        file.seek(size - 1)
        return file.read(1) != b"\n"


def read(path: str) -> str | None:
    """Return the text of a file, or None if it is missing."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Corrupt(f"{path} is not text. Nothing was changed. Restore it from a backup.", {"path": path}) from error
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}. Nothing was changed.", {"path": path}) from error


def replace(path: str, text: str, clock: Clock) -> None:
    """Replace the text of a file; after a crash it is the old or the new one, never half of it."""
    os.replace(_beside(path, text, clock), path)
    _sync_folder(os.path.dirname(path))


def _make(path: str, text: str, clock: Clock) -> bool:
    """Create a file unless it exists, atomically; return True if this call created it."""
    if os.path.exists(path):
        return False
    temporary = _beside(path, text, clock)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.exists(path):
            return False
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    _sync_folder(os.path.dirname(path))
    return True


def _beside(path: str, text: str, clock: Clock) -> str:
    """Write text to a new file beside another, and flush it to disk."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{clock.random(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _sync_folder(folder: str) -> None:
    """Make a change of names durable, where folders can be synced."""
    if os.name == "nt":  # pragma: no cover - folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Checkpoint: a signed note that states the size and the root of a log.

A note is text with signatures below it (C2SP signed-note); a checkpoint is a note whose text is origin, size and root
(C2SP tlog-checkpoint). An external checkpoint can later prove that the log was truncated, or that its past was changed.
The bytes are specified in docs/formats/checkpoint.md. Signing is a function passed in: no key lives here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Final

from woodrat.errors import Fault, Refused, shown
from woodrat.log import ed25519
from woodrat.log.tree import HASH_BYTES, SIZE_MAX
from woodrat.record_json import Hex, Record, derived
from woodrat.records import dataclass

ALGORITHM: Final = 1
"""Prefix of an Ed25519 key in its text form."""
NOTE_BYTES_MAX: Final = 1_000_000
"""Longest note that is read."""
SIGNATURES_MAX: Final = 100
"""Most signatures a note may have."""

_DASH = "\N{EM DASH} "
_PRIVATE = "PRIVATE+KEY+"
_HASH_BYTES = 4
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_EPOCH = re.compile("epoch ([1-9][0-9]{0,8})")
# What Unicode calls white space, by code point: tables differ between Python versions.
_SPACE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_SIZE = re.compile("0|[1-9][0-9]{0,15}")
_REMEDY_NOTE = "Send the signed note byte for byte."
_REMEDY_KEY = "Send the key as `woodrat init` printed it: name+hash+base64."


def _refused(path: str, problem: str, remedy: str = _REMEDY_NOTE) -> Refused:
    return Refused([Fault(path, problem, remedy)], "Nothing was taken from it.")


# Keys


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key with the name it signs under, for everybody."""

    name: str
    """Name of the signer: no spaces, no plus."""
    public: bytes
    """The Ed25519 public key."""

    @property
    def hash(self) -> bytes:
        """The four bytes by which a signature names its key; an identifier, not a proof."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([ALGORITHM]) + self.public).digest()[:_HASH_BYTES]

    def __str__(self) -> str:
        key = base64.b64encode(bytes([ALGORITHM]) + self.public).decode("ascii")
        return f"{self.name}+{self.hash.hex()}+{key}"

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Return True if this key signed the message."""
        return ed25519.verify(self.public, message, signature)

    @classmethod
    def parse(cls, text: object, path: str = "key") -> VerifierKey:
        """Read the text form `name+hash+base64`, or refuse it."""
        name, hash, data = _key_parts(text, path)
        key = cls(name, data)
        if key.hash.hex() != hash:
            raise _refused(path, f"the hash {shown(hash)} is not that of the name and the key", _REMEDY_KEY)
        return key


@dataclass(frozen=True, slots=True)
class SignerKey:
    """A private key with the name it signs under; it is never shown."""

    name: str
    """Name of the signer."""
    seed: bytes
    """The 32 bytes that RFC 8032 makes both keys from."""
    hash: bytes
    """The hash of its verifier key, as the text states it."""

    def __repr__(self) -> str:
        return f"SignerKey({self.name!r}, …)"

    def to_text(self) -> str:
        """Return the text form for a file."""
        key = base64.b64encode(bytes([ALGORITHM]) + self.seed).decode("ascii")
        return f"{_PRIVATE}{self.name}+{self.hash.hex()}+{key}"

    @classmethod
    def parse(cls, text: object, path: str = "signer.key") -> SignerKey:
        """Read the text form `PRIVATE+KEY+name+hash+base64`, or refuse it without showing it."""
        if not isinstance(text, str) or not text.startswith(_PRIVATE):
            raise _refused(path, "this is not a private key", "Put back the file that `woodrat init` made.")
        name, hash, data = _key_parts(text.removeprefix(_PRIVATE), path, secret=True)
        return cls(name, data, bytes.fromhex(hash))


def _key_parts(text: object, path: str, *, secret: bool = False) -> tuple[str, str, bytes]:
    """Return name, hash and the 32 bytes of a key's text form."""
    told = "the key" if secret else shown(text)
    if not isinstance(text, str) or text.count("+") < 2:
        raise _refused(path, f"{told} is not name+hash+base64", _REMEDY_KEY)
    name, hash, encoded = text.split("+", 2)
    data = _base64(encoded)
    if not is_key_name(name) or not re.fullmatch("[0-9a-f]{8}", hash) or data is None:
        raise _refused(path, f"{told} is not name+hash+base64", _REMEDY_KEY)
    if len(data) != 1 + ed25519.KEY_BYTES or data[0] != ALGORITHM:
        raise _refused(path, f"{told} is not an Ed25519 key", _REMEDY_KEY)
    return name, hash, data[1:]


def is_key_name(name: str) -> bool:
    """Return True if a text can be a signer's name: at least one character, no spaces, plus signs or control
    characters."""
    return bool(name) and "+" not in name and not _SPACE.search(name) and not _CONTROL.search(name)


def _base64(text: str) -> bytes | None:
    """Return the bytes a text spells in base64; None unless it is their one spelling."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


# Notes


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature under a note."""

    name: str
    """The signer's name, as stated."""
    hash: bytes
    """Hash of the key it says it was made with."""
    signature: bytes
    """The signature bytes."""

    def line(self) -> str:
        """Return its line in a note."""
        return f"{_DASH}{self.name} {base64.b64encode(self.hash + self.signature).decode('ascii')}\n"


@dataclass(frozen=True, slots=True)
class SignedNote:
    """Text and its signatures, not yet verified."""

    text: str
    """The signed text; ends with a line feed."""
    signatures: tuple[Signature, ...]
    """The signers, in the order of the lines."""

    def __str__(self) -> str:
        return self.text + "\n" + "".join(signature.line() for signature in self.signatures)

    @classmethod
    def parse(cls, given: object, path: str = "note") -> SignedNote:
        """Parse a note, strictly; any deviation refuses the whole note."""
        text = _note_text(given, path)
        head, mark, tail = text.rpartition("\n\n")
        if not mark or not tail.endswith("\n"):
            raise _refused(path, "a note is text, an empty line, and signature lines, each ending with a line feed")
        lines = tail[:-1].split("\n")
        if len(lines) > SIGNATURES_MAX:
            raise _refused(path, f"it has {len(lines)} signatures, where {SIGNATURES_MAX} is the limit")
        return cls(head + "\n", tuple(_signature(line, path) for line in lines))

    def opened(self, keys: Iterable[VerifierKey], path: str = "note") -> str:
        """Return the text if one of these keys signed it; a bad signature of any of them refuses the note."""
        known = {(key.name, key.hash): key for key in keys}
        found = False
        for signature in self.signatures:
            key = known.get((signature.name, signature.hash))
            if key is None:
                continue
            if not key.verifies(self.text.encode(), signature.signature):
                raise _refused(path, f"the signature of {key.name}+{key.hash.hex()} is not one of this text")
            found = True
        if not found:
            wanted = ", ".join(f"{key.name}+{key.hash.hex()}" for key in known.values())
            signers = ", ".join(f"{item.name}+{item.hash.hex()}" for item in self.signatures)
            raise _refused(path, f"it is signed by {signers}, not by {wanted}", "Send the key of its signer.")
        return self.text


def _note_text(given: object, path: str) -> str:
    if isinstance(given, bytes):
        try:
            given = given.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _refused(path, f"it is not UTF-8 (byte {error.start})") from error
    if not isinstance(given, str):
        raise _refused(path, f"expected a note as text, got {shown(given)}")
    control = _CONTROL.search(given)
    if control:
        raise _refused(path, f"it holds the control character U+{ord(control[0]):04X}")
    try:
        size = len(given.encode())
    except UnicodeEncodeError as error:
        raise _refused(path, "it holds half a surrogate pair") from error
    if size > NOTE_BYTES_MAX:
        raise _refused(path, f"it has {size} bytes, where {NOTE_BYTES_MAX} is the limit")
    return given


def _signature(line: str, path: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    data = _base64(encoded)
    if not line.startswith(_DASH) or not space or not is_key_name(name) or data is None or len(data) <= _HASH_BYTES:
        raise _refused(path, f"{shown(line)} is not a signature line")
    return Signature(name, data[:_HASH_BYTES], data[_HASH_BYTES:])


# Checkpoints


@dataclass(frozen=True, slots=True)
class Checkpoint(Record):
    """The size of a log, and its root."""

    log: str
    """The log's own name."""
    size: int
    """Number of covered entries: positions 0 to size − 1."""
    root: Hex
    """The root of the tree over them."""
    extensions: tuple[str, ...] = ()
    """Extension lines; Woodrat's is `epoch N`, from the second epoch on."""

    @derived
    def epoch(self) -> int:
        """The epoch of the log's checkpoints: 1 unless the operator began a new one."""
        found = [match for line in self.extensions if (match := _EPOCH.fullmatch(line))]
        return int(found[0][1]) if found else 1

    def to_text(self) -> str:
        """Return the text that is signed."""
        root = base64.b64encode(self.root).decode("ascii")
        return "".join(f"{line}\n" for line in (self.log, str(self.size), root, *self.extensions))

    def signed(self, key: VerifierKey, sign: Callable[[bytes], bytes]) -> SignedNote:
        """Return the note with the signature that `sign` makes, after checking that signature."""
        text = self.to_text()
        signature = sign(text.encode())
        assert key.verifies(text.encode(), signature), "the signer's key does not match its name"
        return SignedNote(text, (Signature(key.name, key.hash, signature),))

    @classmethod
    def parse(cls, text: str, path: str = "checkpoint") -> Checkpoint:
        """Read the text of a note as a checkpoint, strictly."""
        lines = text.split("\n")
        if len(lines) < 4 or lines.pop() != "" or "" in lines:
            raise _refused(path, "a checkpoint has at least three lines, and none is empty")
        origin, size, encoded, *extensions = lines
        root = _base64(encoded)
        if not _SIZE.fullmatch(size) or int(size) > SIZE_MAX:
            raise _refused(path, f"{shown(size)} is not a size")
        if root is None or len(root) != HASH_BYTES:
            raise _refused(path, f"{shown(encoded)} is not a root of {HASH_BYTES} bytes in base64")
        return cls(origin, int(size), root, tuple(extensions))


def opened(note: object, keys: Iterable[VerifierKey], path: str = "checkpoint") -> Checkpoint:
    """Return the checkpoint of a note that one of these keys signed."""
    return Checkpoint.parse(SignedNote.parse(note, path).opened(keys, path), path)

"""Entry: one event in the log of a tenant.

An entry has two halves. The header and the leaf made from it are kept for ever. The body and its nonce may be erased.
The leaf holds only a commitment to that half, SHA-256(nonce ‖ body), so every proof outlives an erasure, and without
the nonce nobody can guess the body from it. For the same reason no id ever enters a leaf.

The bytes are specified in docs/formats/entry.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from woodrat.canon import form, moment
from woodrat.canon.digest import FORMAT
from woodrat.canon.ids import Position
from woodrat.errors import Corrupt, Fault, Refused, shown
from woodrat.log.tree import leaf_hash
from woodrat.record_json import Describe, object_schema
from woodrat.records import dataclass

KINDS = frozenset(
    {
        "source",
        "received",
        "interpretation.started",
        "interpretation.ended",
        "schema",
        "observation",
        "run.started",
        "run.read",
        "run.model",
        "run.tool",
        "run.decided",
        "run.noted",
        "run.ended",
        "run.judged",
        "tag",
        "erasure",
    }
)
"""Every kind of entry. The body of a `source` is the content itself; all other bodies are canonical JSON."""

NONCE_BYTES = 16
"""Length of a nonce."""

DIGEST_BYTES = 32
"""Length of a commitment and of a request digest."""

POSITION_MAX = 2**53 - 2
"""Last position: a tree of that many leaves still has a size that JSON can carry."""

_NONCE_LENGTH = frozenset({NONCE_BYTES})
_RAW_KIND = "source"
_NOT_CANONICAL = object()
_REMEDY = "Send the entry as exported."
# By code point: Unicode tables differ between Python versions. a checkpoint has the name on a line of its own
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_JSON_KEYS = frozenset({"body", "commitment", "envelope", "format", "kind", "log", "nonce", "position", "recorded_at"})
_ENVELOPE_KEYS = frozenset({"length", "origin", "request", "write"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry that was merged in was first written."""

    log: str
    """Name of that log."""
    position: int
    """Its position there."""

    def to_json(self) -> dict[str, Any]:
        """Return the origin as leaves and exports state it."""
        return {"log": self.log, "position": self.position}


@dataclass(frozen=True, slots=True)
class Envelope:
    """Which write an entry belongs to. A write is stored whole or not at all, and the envelope lets anyone see it."""

    write: int
    """Position of the write's first entry."""
    length: int | None = None
    """Number of entries in the write; stated by its first entry only."""
    request: bytes | None = None
    """Commitment to the idempotency key and the request (`request_commitment`); stated by the first entry only."""
    origin: Origin | None = None
    """Where the entry was first written, if in another log."""

    def to_json(self) -> dict[str, Any]:
        """Return the envelope as leaves and exports state it, without missing members."""
        value: dict[str, Any] = {"write": self.write}
        if self.length is not None:
            value["length"] = self.length
        if self.request is not None:
            value["request"] = self.request.hex()
        if self.origin is not None:
            value["origin"] = self.origin.to_json()
        return value


def commitment(nonce: bytes, body: bytes) -> bytes:
    """Return SHA-256(nonce ‖ body): the nonce has a fixed length, so the parts cannot be shifted."""
    assert len(nonce) == NONCE_BYTES
    return hashlib.sha256(nonce + body).digest()


def request_commitment(nonce: bytes, key: str, request_digest: bytes) -> bytes:
    """Return SHA-256(request nonce ‖ key ‖ request digest), the key in UTF-8; a missing key is the empty text.

    The nonce is the request's own and of no entry, so a surviving entry does not help to guess an erased one. The
    concatenation is unambiguous because both ends have a fixed length: 16 bytes before the key, 32 after it.
    """
    assert len(nonce) == NONCE_BYTES and len(request_digest) == DIGEST_BYTES
    return hashlib.sha256(nonce + key.encode() + request_digest).digest()


LEAF_START = '\0{"commitment":"'
"""The start of every leaf's data: the byte that distinguishes a leaf from a node, and the header's first key."""


def leaf_frame(
    log: str,
    write: int,
    recorded_at: str,
    kind: str,
    length: int | None = None,
    request: bytes | None = None,
    origin: Origin | None = None,
) -> tuple[str, str]:
    """Return the parts of `Entry.leaf_data` around the position, for the entries of one write and kind.

    A leaf hashes `LEAF_START`, the commitment in hex, the first part, the position and the second part. The first entry
    of a write states its `length` and `request`, and a merged entry its `origin`.
    """
    stated = "" if length is None or request is None else f'"length":{length},'
    if origin is not None:
        stated += f'"origin":{form.serialise(origin.to_json()).decode()},'
    if length is not None and request is not None:
        stated += f'"request":"{request.hex()}",'
    name = _spelled_name(log)
    head = f'","envelope":{{{stated}"write":{write}}},"format":{FORMAT},"kind":"{kind}","log":{name},"position":'
    return head, f',"recorded_at":"{recorded_at}"}}'


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a log: its header, and its body unless that was erased."""

    log: str
    """The log's own name."""
    position: Position
    """Place in the log: 0, 1, 2 and so on."""
    recorded_at: str
    """The log's clock at the write, as fixed-width UTC text."""
    kind: str
    """One of `KINDS`."""
    envelope: Envelope
    """Which write the entry belongs to."""
    commitment: bytes
    """SHA-256(nonce ‖ body); it stays when both are erased."""
    nonce: bytes | None
    """Sixteen random bytes; None once erased."""
    body: bytes | None
    """The body as canonical bytes; None once erased."""

    @property
    def erased(self) -> bool:
        """Whether the body is gone."""
        return self.body is None

    def leaf_data(self) -> bytes:
        """Return the bytes the log's tree commits to: the header as canonical JSON."""
        return form.serialise(
            {
                "commitment": self.commitment.hex(),
                "envelope": self.envelope.to_json(),
                "format": FORMAT,
                "kind": self.kind,
                "log": self.log,
                "position": self.position,
                "recorded_at": self.recorded_at,
            }
        )

    def leaf(self) -> bytes:
        """Return the leaf hash of the entry."""
        return leaf_hash(self.leaf_data())

    def check(self) -> None:
        """Raise `Corrupt` with the position and the class of damage, unless the entry is consistent.

        The classes: `log`, `position`, `recorded_at`, `kind`, `envelope`, `nonce`, `body`, `commitment`. A changed
        header that still has the right shape shows in the leaf, not here.
        """
        damage = self.shape_fault() or self._broken_promise()
        if damage is not None:
            raise _corrupt(self.position, *damage)

    def shape_fault(self) -> tuple[str, str] | None:
        """Return the class of damage and the problem of the shape, or None."""
        if not _is_name(self.log):
            return "log", f"the log's name is {shown(self.log)}"
        if not _is_count(self.position, POSITION_MAX):
            return "position", f"{shown(self.position)} is not a position"
        if not moment.is_fixed(self.recorded_at):
            return "recorded_at", f"{shown(self.recorded_at)} is not UTC text of fixed width"
        if self.kind not in KINDS:
            return "kind", f"unknown kind {shown(self.kind)}"
        wrong = _envelope_fault(self.envelope, self.position)
        if wrong:
            return "envelope", wrong
        if len(self.commitment) != DIGEST_BYTES:
            return "commitment", f"the commitment has {len(self.commitment)} bytes instead of {DIGEST_BYTES}"
        if self.nonce is not None and len(self.nonce) != NONCE_BYTES:
            return "nonce", f"the nonce has {len(self.nonce)} bytes instead of {NONCE_BYTES}"
        if self.nonce is None and self.body is not None:
            return "nonce", "the nonce is gone and the body is not"
        if self.body is None and self.nonce is not None:
            return "body", "the body is gone and the nonce is not"
        return None

    def _broken_promise(self) -> tuple[str, str] | None:
        """Return the damage if nonce and body do not match the leaf's commitment."""
        if self.nonce is None or self.body is None or commitment(self.nonce, self.body) == self.commitment:
            return None
        return "commitment", "nonce and body do not match the leaf's commitment"

    def to_json(self) -> dict[str, Any]:
        """Return the entry as plain JSON, readable, from which `from_json` makes the same bytes.

        An erased entry has null for nonce and body. The body of a source is `{"base64": text}`.
        """
        body: Any = None
        if self.body is not None and self.kind == _RAW_KIND:
            body = {"base64": base64.b64encode(self.body).decode("ascii")}
        elif self.body is not None:
            body = _canonical(self.body)
            if body is _NOT_CANONICAL:
                raise _corrupt(self.position, "body", "the body is not canonical JSON")
        return {
            "format": FORMAT,
            "log": self.log,
            "position": self.position,
            "recorded_at": self.recorded_at,
            "kind": self.kind,
            "envelope": self.envelope.to_json(),
            "commitment": self.commitment.hex(),
            "nonce": None if self.nonce is None else self.nonce.hex(),
            "body": body,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Entry:
        """Parse the output of `to_json`: `Refused` if it is malformed, `Corrupt` if it was altered."""
        if not _is_shaped(value):
            faults = _json_faults(value)
            if faults:
                raise Refused(faults)
        envelope, nonce, body = value["envelope"], value["nonce"], value["body"]
        request, origin = envelope.get("request"), envelope.get("origin")
        stored: bytes | None = None
        if nonce is not None:
            stored = base64.b64decode(body["base64"]) if value["kind"] == _RAW_KIND else _spelled(body)
        entry = cls(
            log=value["log"],
            position=Position(value["position"]),
            recorded_at=value["recorded_at"],
            kind=value["kind"],
            envelope=Envelope(
                write=envelope["write"],
                length=envelope.get("length"),
                request=None if request is None else bytes.fromhex(request),
                origin=None if origin is None else Origin(origin["log"], origin["position"]),
            ),
            commitment=bytes.fromhex(value["commitment"]),
            nonce=None if nonce is None else bytes.fromhex(nonce),
            body=stored,
        )
        entry.check()
        return entry

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of the output of `to_json`."""
        properties = {
            "format": ("The format of the log.", int),
            "log": ("The log's own name.", str),
            "position": ("Place in the log: 0, 1, 2 and so on.", int),
            "recorded_at": ("The log's clock at the write.", str),
            "kind": ("What kind of entry it is.", str),
            "envelope": ("Which write the entry belongs to.", Mapping[str, Any]),
            "commitment": ("SHA-256 of nonce and body, in hex; it stays when both are erased.", str),
            "nonce": ("Sixteen random bytes, in hex; null once erased.", str | None),
            "body": ("The content; null once erased.", Any),
        }
        return object_schema(describe, "One entry of a log.", properties)


class Write(Sequence[Entry]):
    """The entries of one write, in order, stored as columns; each becomes an `Entry` on access.

    All share `recorded_at`. The first entry states the length of the write and commits to its key and request.
    """

    __slots__ = (
        *(
            "bodies",
            "commitments",
            "first",
            "kinds",
            "leaves_made",
            "log",
            "nonces",
            "origins",
            "recorded_at",
            "request",
        ),
    )

    def __init__(
        self,
        log: str,
        first: int,
        recorded_at: str,
        items: Sequence[tuple[Any, ...]],
        nonces: Sequence[bytes],
        key: str,
        request_digest: bytes,
        request_nonce: bytes,
        origins: Sequence[Origin | None] | None = None,
    ) -> None:
        """`items` are tuples that begin with the kind and the body of an entry."""
        assert items, "a write has at least one entry"
        assert len(nonces) == len(items), "every entry has its own nonce"
        kinds, bodies = [item[0] for item in items], [item[1] for item in items]
        self.log = log
        self.first = first
        """Position of the first entry."""
        self.recorded_at = recorded_at
        self.kinds: Sequence[str] = kinds
        self.bodies: Sequence[bytes | None] = bodies
        self.nonces: Sequence[bytes | None] = nonces
        self.origins = origins
        """The origin of each entry; omitted if all of them begin here."""
        self.request = request_commitment(request_nonce, key, request_digest)
        assert KINDS.issuperset(kinds), "every entry has a kind that is known"
        assert _NONCE_LENGTH.issuperset(map(len, nonces)), "every nonce has its length"
        sha256 = hashlib.sha256
        self.commitments = [sha256(nonce + body).digest() for nonce, body in zip(nonces, bodies, strict=True)]
        self.leaves_made: list[bytes] | None = None
        # Equivalent to `Entry.check` of each: common parts are checked once.
        assert _is_name(log), f"the log's name is {shown(log)}"
        assert moment.is_fixed(recorded_at), f"{shown(recorded_at)} is not UTC text of fixed width"
        assert type(first) is int and 0 <= first <= POSITION_MAX - len(kinds) + 1, f"{first}: not a position"

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Write:
        """Return another ledger's write from all its entries, checked; erased ones have no body."""
        first, write = entries[0], cls.__new__(cls)
        write.log, write.first, write.recorded_at = first.log, first.position, first.recorded_at
        write.kinds = [entry.kind for entry in entries]
        write.bodies = [entry.body for entry in entries]
        write.nonces = [entry.nonce for entry in entries]
        write.commitments = [entry.commitment for entry in entries]
        origins = [entry.envelope.origin for entry in entries]
        write.origins = origins if any(origins) else None
        assert first.envelope.request is not None, "the first entry of a write states its request"
        write.request = first.envelope.request
        write.leaves_made = None
        assert list(write) == list(entries), "the entries are one whole write"
        return write

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, offset: Any) -> Any:
        if isinstance(offset, slice):
            return [self[index] for index in range(*offset.indices(len(self)))]
        offset = range(len(self))[offset]
        origin = None if self.origins is None else self.origins[offset]
        return Entry(
            self.log,
            Position(self.first + offset),
            self.recorded_at,
            self.kinds[offset],
            Envelope(self.first, origin=origin) if offset else Envelope(self.first, len(self), self.request, origin),
            self.commitments[offset],
            self.nonces[offset],
            self.bodies[offset],
        )

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Write) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.log, self.first, self.request))

    @property
    def last(self) -> int:
        """Position of the last entry."""
        return self.first + len(self.kinds) - 1

    @property
    def leaves(self) -> list[bytes]:
        """The leaf hash of every entry."""
        if self.leaves_made is None and self.origins is not None:
            self.leaves_made = [entry.leaf() for entry in self]
        if self.leaves_made is None:
            # The headers of a write differ in few places.
            sha256, log, first, recorded_at = hashlib.sha256, self.log, self.first, self.recorded_at
            kinds, commitments = self.kinds, self.commitments
            head, tail = leaf_frame(log, first, recorded_at, kinds[0], len(kinds), self.request)
            data = f"{LEAF_START}{commitments[0].hex()}{head}{first}{tail}"
            found = [sha256(data.encode()).digest()]
            if len(kinds) > 1:
                rest = zip(kinds[1:], commitments[1:], strict=True)
                frames = {kind: leaf_frame(log, first, recorded_at, kind) for kind in set(kinds[1:])}
                for position, (kind, commitment) in enumerate(rest, first + 1):
                    head, tail = frames[kind]
                    data = f"{LEAF_START}{commitment.hex()}{head}{position}{tail}"
                    found.append(sha256(data.encode()).digest())
            self.leaves_made = found
        return self.leaves_made


def _corrupt(position: int, damage: str, problem: str) -> Corrupt:
    return Corrupt(
        f"entry {position}: {problem} ({damage}). Nothing was changed. Stop writing and verify the ledger.",
        {"position": position, "damage": damage},
    )


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_name(value: object) -> bool:
    """Return True if `value` can be a log's name: text without control characters and lone surrogates."""
    return type(value) is str and _is_fit(value)


@lru_cache(maxsize=64)
def _spelled_name(log: str) -> str:
    return form.serialise(log).decode()


@lru_cache(maxsize=64)
def _is_fit(text: str) -> bool:
    return text != "" and _UNFIT.search(text) is None


def _canonical(body: bytes) -> Any:
    """Return the value of a body, or `_NOT_CANONICAL` if it is not JSON or not its one spelling."""
    try:
        value = form.decode(body)
        return value if form.serialise(value) == body else _NOT_CANONICAL
    except (ValueError, TypeError):
        return _NOT_CANONICAL


def _spelled(body: Any) -> bytes:
    """Return the bytes of a body read from JSON. They need no door of their own: the commitment admits only one."""
    try:
        return form.serialise(body)
    except (ValueError, TypeError) as error:
        raise Refused([Fault("/body", f"has no canonical form ({error})", _REMEDY)]) from error


def _envelope_fault(envelope: Envelope, position: int) -> str | None:
    """Return the problem of the envelope of the entry at `position`, or None."""
    write, length, request = envelope.write, envelope.length, envelope.request
    if not _is_count(write, POSITION_MAX):
        return f"{shown(write)} is not the position of a write"
    if write > position:
        return f"the write starts at {write}, after the entry"
    if (length is None) != (request is None):
        return "length and request are stated together or not at all"
    if (length is not None) != (position == write):
        return "the first entry of a write states its length and request, and no other does"
    if length is not None and not (_is_count(length, POSITION_MAX + 1 - write) and position < write + length):
        return f"{shown(length)} is not the length of a write at {write}"
    if request is not None and len(request) != DIGEST_BYTES:
        return f"the request commitment has {len(request)} bytes instead of {DIGEST_BYTES}"
    origin = envelope.origin
    if origin is not None and not (_is_name(origin.log) and _is_count(origin.position, POSITION_MAX)):
        return f"the entry cannot be from position {shown(origin.position)} of {shown(origin.log)}"
    return None


def _is_shaped(value: Mapping[str, Any]) -> bool:
    """Return True if a value has the shape of most entries; `_json_faults` checks the others, and finds the faults."""
    if value.keys() != _JSON_KEYS:
        return False
    envelope = value["envelope"]
    return (
        type(value["format"]) is int
        and value["format"] == FORMAT
        and type(value["log"]) is type(value["recorded_at"]) is type(value["kind"]) is str
        and type(value["position"]) is int
        and value["kind"] != _RAW_KIND
        and type(envelope) is dict
        and len(envelope) == 1
        and type(envelope.get("write")) is int
        and _is_hex(value["commitment"])
        and _is_hex(value["nonce"])
    )


def _json_faults(value: Mapping[str, Any]) -> list[Fault]:
    """Return the faults that keep `value` from being parsed as an entry; `check` decides if the entry is sound."""
    missing = [Fault(f"/{key}", "is missing", _REMEDY) for key in sorted(_JSON_KEYS - value.keys())]
    unknown = [Fault(f"/{key}", "is not part of an entry", _REMEDY) for key in sorted(value.keys() - _JSON_KEYS)]
    if missing or unknown:
        return missing + unknown
    faults: list[Fault] = []

    def expect(good: bool, path: str, expected: str, found: object) -> None:
        if not good:
            faults.append(Fault(path, f"expected {expected}, got {shown(found)}", _REMEDY))

    envelope, nonce, body, kind = value["envelope"], value["nonce"], value["body"], value["kind"]
    expect(type(value["format"]) is int and value["format"] == FORMAT, "/format", f"{FORMAT}", value["format"])
    for key in ("log", "recorded_at", "kind"):
        expect(isinstance(value[key], str), f"/{key}", "text", value[key])
    expect(type(value["position"]) is int, "/position", "an integer", value["position"])
    expect(_is_hex(value["commitment"]), "/commitment", "lower-case hex", value["commitment"])
    expect(nonce is None or _is_hex(nonce), "/nonce", "lower-case hex or null", nonce)
    if nonce is None:
        expect(body is None, "/body", "null, as the nonce is", body)
    elif kind == _RAW_KIND:
        expect(_is_base64_body(body), "/body", '{"base64": text}', body)
    if not isinstance(envelope, Mapping) or not {"write"} <= envelope.keys() <= _ENVELOPE_KEYS:
        expected = "an object with write, length and request on a first entry, and origin on one from elsewhere"
        expect(False, "/envelope", expected, envelope)
        return faults
    expect(type(envelope["write"]) is int, "/envelope/write", "an integer", envelope["write"])
    if "length" in envelope:
        expect(type(envelope["length"]) is int, "/envelope/length", "an integer", envelope["length"])
    if "request" in envelope:
        expect(_is_hex(envelope["request"]), "/envelope/request", "lower-case hex", envelope["request"])
    if "origin" in envelope:
        origin = envelope["origin"]
        good = isinstance(origin, Mapping) and origin.keys() == {"log", "position"}
        expect(good, "/envelope/origin", "an object with log and position", origin)
    return faults


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def _is_base64_body(value: object) -> bool:
    """Return True if `value` is `{"base64": text}` and the text is the canonical encoding of its bytes."""
    if not isinstance(value, Mapping) or value.keys() != {"base64"} or not isinstance(value["base64"], str):
        return False
    try:
        return base64.b64encode(base64.b64decode(value["base64"], validate=True)).decode("ascii") == value["base64"]
    except (binascii.Error, ValueError):
        return False

"""Codec: between what the tables hold and what the core speaks of."""

from __future__ import annotations

import struct
from typing import Any

from woodrat.canon import moment
from woodrat.canon.digest import unbase32
from woodrat.canon.ids import Position
from woodrat.log.entry import KINDS as ENTRY_KINDS
from woodrat.log.entry import Entry, Envelope, Origin

KINDS = (
    "source",
    "observation",
    "schema",
    "received",
    "interpretation.started",
    "interpretation.ended",
    "tag",
    "erasure",
    "run.started",
    "run.read",
    "run.model",
    "run.tool",
    "run.decided",
    "run.noted",
    "run.ended",
    "run.judged",
)
"""Kinds by number; the number is stored. The layout and the queries rely on some of them."""
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}

assert NUMBERS.keys() == ENTRY_KINDS
assert (NUMBERS["observation"], NUMBERS["schema"], NUMBERS["erasure"]) == (1, 2, 7), "as the SQL has them"

BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
HEAD_BYTES = 8
"""How much of a digest is stored where digests are looked for."""
_HEAD = struct.Struct(">q").unpack_from
TENANT_BITS = 40
"""How far a tenant's number is shifted; the position takes the bits below."""


def base(tenant: int) -> int:
    """Return the id of a tenant's position 0."""
    return tenant << TENANT_BITS


def head(digest: bytes) -> int:
    """Return the first 8 bytes of a digest as SQLite stores integers."""
    found: int = _HEAD(digest)[0]
    return found


def head_of_id(id: str) -> int | None:
    """Return the first 8 bytes of the digest a short id begins; none when it is not the beginning of any."""
    data = unbase32(id[4:20])  # 16 characters are 10 whole bytes; the caller compares the whole id on a hit
    return None if data is None or len(data) < HEAD_BYTES else head(data)


def heads_from(text: str) -> tuple[int, int] | None:
    """Return the lowest and the highest first 8 bytes of digests whose base32 begins so; none when none can."""
    if not text or any(character not in BASE32 for character in text):
        return None
    bits = sum(BASE32.index(character) << 5 * (12 - number) for number, character in enumerate(text[:13]))
    known = min(64, 5 * len(text))
    # 13 characters are 65 bits, one more than a head has.
    low = (bits >> 1) >> (64 - known) << (64 - known)
    return head(low.to_bytes(HEAD_BYTES, "big")), head((low | (1 << (64 - known)) - 1).to_bytes(HEAD_BYTES, "big"))


def moment_of(micros: object) -> str:
    """Return a stored time as text; one that is no time at all as text that no time has."""
    try:
        return moment.from_micros(micros)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return f"time {micros}"


def entry(row: tuple[Any, ...], first: int) -> Entry:
    """Return the entry a row holds; `first` is the id of its tenant's position 0."""
    id, log, recorded_at, kind, write, length, request, commitment, nonce, body, source_log, source_position = row
    return Entry(
        log=log,
        position=Position(id - first),
        recorded_at=moment.from_micros(recorded_at),
        kind=KINDS[kind],
        envelope=Envelope(write, length, request, None if source_log is None else Origin(source_log, source_position)),
        commitment=commitment,
        nonce=nonce,
        body=body,
    )

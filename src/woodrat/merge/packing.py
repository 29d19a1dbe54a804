"""Packing: policy states as JSON that an engine can store and return.

Kept merge state is derived and can always be made again, so this is no format: it may change with any release.
Digests are written in hex, and each observation that several fields refer to is written once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import orjson

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.errors import Corrupt
from woodrat.merge.claim import Claim, Said

_NONE: frozenset[bytes] = frozenset()


def digest_text(digest: bytes) -> str:
    """Return a digest as text that JSON can hold."""
    return digest.hex()


def text_digest(text: str) -> bytes:
    """Return the digest in a text."""
    return bytes.fromhex(text)


def pack_said(said: Said) -> tuple[Any, ...]:
    """Return the ranking part of an observation as JSON."""
    digest, observed_at, priority, agent, corrects, replaces, saw, assigned = said
    if corrects or replaces or saw:
        names = (sorted(map(digest_text, names)) for names in (replaces, saw))
        return (digest.hex(), observed_at, priority, agent, 1 if assigned else 0, corrects, *names)
    return (digest.hex(), observed_at, priority, agent, 1 if assigned else 0)


def unpack_said(parts: Sequence[Any]) -> Said:
    """Return the unpacked value; additional parts after it are ignored."""
    if len(parts) < 8:
        return Said(bytes.fromhex(parts[0]), parts[1], parts[2], parts[3], False, _NONE, _NONE, parts[4] == 1)
    replaces, saw = (frozenset(map(text_digest, names)) for names in parts[6:8])
    return Said(text_digest(parts[0]), parts[1], parts[2], parts[3], parts[5], replaces, saw, parts[4] == 1)


class Packer:
    """Collects the observations that packed claims refer to."""

    __slots__ = ("places", "saids")

    def __init__(self) -> None:
        self.saids: list[tuple[Any, ...]] = []
        self.places: dict[bytes, int] = {}
        """The place of each observation, by digest."""

    def said(self, said: Said) -> int:
        """Return the place of an observation."""
        digest, saids = said[0], self.saids
        place = self.places.get(digest)
        if place is None:
            place = self.places[digest] = len(saids)
            saids.append(pack_said(said))
        return place

    def claim(self, claim: Claim) -> list[Any]:
        """Return a claim as JSON."""
        said = claim.said
        place = self.places.get(said.digest)
        if place is None:
            place = self.places[said.digest] = len(self.saids)
            self.saids.append(pack_said(said))
        return [place, claim.value, list(claim.removed)] if claim.removed else [place, claim.value]


def spelled(value: Json) -> orjson.Fragment:
    """Return a value to be packed in its one spelling, so that equal parts are equal bytes."""
    return orjson.Fragment(form.serialise(value))


class PartPacker(Packer):
    """Packs one part of a collection: equal parts are equal bytes, wherever they were folded."""

    def claim(self, claim: Claim) -> list[Any]:
        found = [self.said(claim.said), spelled(claim.value)]
        return [*found, list(map(spelled, claim.removed))] if claim.removed else found


class Unpacker:
    """Gives packed claims their observations back."""

    def __init__(self, saids: Sequence[Sequence[Any]]) -> None:
        self._packed = saids
        self._unpacked: list[Said] | None = None

    @property
    def _saids(self) -> list[Said]:
        """All of them, after the first access."""
        if self._unpacked is None:
            self._unpacked = [unpack_said(parts) for parts in self._packed]
        return self._unpacked

    def said(self, place: int) -> Said:
        """Return the observation at a place."""
        return self._saids[place]

    def claim(self, packed: list[Any]) -> Claim:
        """Return the claim that was packed."""
        return Claim(self._saids[packed[0]], packed[1], tuple(packed[2]) if len(packed) > 2 else ())


UNREADABLE: Final = (
    AssertionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""Exceptions from reading malformed derived data: another type, invalid UTF-8, a missing part."""


def garbled(what: str) -> Corrupt:
    """Return the error for unreadable derived data; the log still has everything it was made from."""
    return Corrupt(
        f"{what} cannot be read. Nothing was changed, and the log itself is not damaged. "
        "`woodrat rebuild` makes it again; `woodrat verify` reports any other damage."
    )

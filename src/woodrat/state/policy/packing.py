"""Packing: what policies hold, as JSON an engine can keep and give back.

Kept merge state is derived and can always be made again, so this is no format: it may change with any release.
Digests are written as Latin-1 text, and each observation that several fields refer to is written once.
"""

from __future__ import annotations

from typing import Any

from woodrat.state.policy.claim import Claim, Said


def digest_text(digest: bytes) -> str:
    """Return a digest as text that JSON can hold."""
    return digest.decode("latin-1")


def text_digest(text: str) -> bytes:
    """Return the digest a text stands for."""
    return text.encode("latin-1")


class Packer:
    """Collects the observations that packed claims refer to."""

    def __init__(self) -> None:
        self.saids: list[list[Any]] = []
        self._places: dict[bytes, int] = {}

    def said(self, said: Said) -> int:
        """Return the place of an observation."""
        place = self._places.get(said.digest)
        if place is None:
            place = self._places[said.digest] = len(self.saids)
            parts: list[Any] = [digest_text(said.digest), said.observed_at, said.priority, said.agent]
            if said.corrects or said.replaces or said.saw:
                parts += [said.corrects, *(sorted(map(digest_text, names)) for names in (said.replaces, said.saw))]
            self.saids.append(parts)
        return place

    def claim(self, claim: Claim) -> list[Any]:
        """Return a claim as JSON."""
        place = self.said(claim.said)
        return [place, claim.value, list(claim.removed)] if claim.removed else [place, claim.value]


class Unpacker:
    """Gives packed claims their observations back."""

    def __init__(self, saids: list[list[Any]]) -> None:
        self._saids = [_said(parts) for parts in saids]

    def said(self, place: int) -> Said:
        """Return the observation at a place."""
        return self._saids[place]

    def claim(self, packed: list[Any]) -> Claim:
        """Return the claim that was packed."""
        return Claim(self._saids[packed[0]], packed[1], tuple(packed[2]) if len(packed) > 2 else ())


_NONE: frozenset[bytes] = frozenset()


def _said(parts: list[Any]) -> Said:
    digest = parts[0].encode("latin-1")
    if len(parts) == 4:
        return Said(digest, parts[1], parts[2], parts[3], False, _NONE, _NONE)
    replaces, saw = (frozenset(map(text_digest, names)) for names in parts[5:7])
    return Said(digest, parts[1], parts[2], parts[3], parts[4], replaces, saw)

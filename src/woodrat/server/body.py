"""Body: what is taken of a request's body, bounded while it arrives: its bytes, what gzip makes of them, its values.

A byte of JSON can become a hundred bytes of objects, and a byte of gzip a thousand bytes of JSON. So values are counted
in the bytes themselves, before anything is built from them: commas, brackets and braces outside of text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from woodrat.records import dataclass

STEP_BYTES: Final = 65_536
"""How much is unpacked or counted at a time; others are answered between two steps."""
MEMBERS_MAX: Final = 1_000
"""Most members of one gzip: each costs time, and may come to nothing."""
_GZIP: Final = 16 + zlib.MAX_WBITS
"""That gzip's header and trailer are expected."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How much of a body is taken."""

    bytes_max: int
    """Longest body, unpacked."""
    values_max: int
    """Most values in it: members, elements and what they hold."""


class Unpacker:
    """Gzip being unpacked as it arrives; it may have several members, one after the other."""

    def __init__(self) -> None:
        self._member, self._members = zlib.decompressobj(_GZIP), 1

    @property
    def whole(self) -> bool:
        """Whether what was taken so far is whole."""
        return self._member.eof

    def take(self, part: bytes) -> Iterator[bytes]:
        """Yield what a part comes to, a step at a time; whoever has enough of it stops asking."""
        while part:
            if self._member.eof:
                self._members += 1
                if self._members > MEMBERS_MAX:
                    raise zlib.error(f"it has more than {MEMBERS_MAX} members")
                self._member = zlib.decompressobj(_GZIP)
            yield self._member.decompress(part, STEP_BYTES)
            part = self._member.unused_data if self._member.eof else self._member.unconsumed_tail


class ValueCount:
    """Counts the values of JSON text as it arrives; it may be cut anywhere, and need not be valid."""

    def __init__(self, values_max: int, *, lines: bool = False) -> None:
        self._values_max = values_max
        self._marks = (b",", b"[", b"{", b"\n") if lines else (b",", b"[", b"{")
        self._inside = False
        self._cut = b""
        self.values = 1
        """How many there are so far."""

    def take(self, part: bytes) -> bool:
        """Count a part of the text; return whether there are still no more values than there may be."""
        for start in range(0, len(part), STEP_BYTES):
            self._take(self._cut + part[start : start + STEP_BYTES])
            if self.values > self._values_max:
                return False
        return True

    def _take(self, text: bytes) -> None:
        # An escape that is cut in two waits for its other half.
        odd = (len(text) - len(text.rstrip(b"\\"))) % 2
        self._cut, text = (b"\\", text[:-1]) if odd else (b"", text)
        pieces = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._inside :: 2])
        self.values += sum(map(outside.count, self._marks))
        self._inside ^= len(pieces) % 2 == 0

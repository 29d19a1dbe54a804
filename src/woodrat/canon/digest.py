"""Digest: from canonical bytes to the 32 bytes that name them.

The kind and the format precede the body, so that equal bodies of different kinds have different names.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from typing import Final

FORMAT: Final = 0
"""Version of the byte formats; part of every digest. 0 until the first release."""


@cache
def prefix(kind: str) -> bytes:
    """Return the bytes before a body of this kind in its digest."""
    return f"woodrat/{kind}/{FORMAT}\n".encode("ascii")


def digest(kind: str, body: bytes) -> bytes:
    """Return SHA-256 of `woodrat/`, the kind, `/`, the format in decimal, a line feed, and the body."""
    return hashlib.sha256(prefix(kind) + body).digest()


def base32(data: bytes) -> str:
    """Return `data` in RFC 4648 base32, lower-case and without padding."""
    return base64.b32encode(data).decode("ascii").rstrip("=").lower()


def unbase32(text: str) -> bytes | None:
    """Return the bytes that `base32` spells as `text`, or None when it spells none so.

    Bits left over at the end must be zero, so no two texts give the same bytes.
    """
    if not _BASE32.fullmatch(text):
        return None
    length, bits_over = divmod(len(text) * 5, 8)
    if bits_over >= 5:  # the last character carries nothing: base32 never writes this length
        return None
    number = int(text.translate(_TO_PYTHON_DIGITS), 32) if text else 0
    if number & ((1 << bits_over) - 1):
        return None
    return (number >> bits_over).to_bytes(length, "big")


_BASE32 = re.compile("[a-z2-7]*")
# Python's own digits of base 32 are 0-9a-v; int() reads them at the speed of C.
_TO_PYTHON_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")

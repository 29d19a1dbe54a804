"""Seal: encryption with the erasure key, for bytes that a ledger keeps for a while.

The search terms of an erasure must outlive the process that erased, without being another readable copy. The erasure
key is outside the database. Each seal has its own key, made from the erasure key and a nonce.
"""

from __future__ import annotations

import zlib
from hashlib import shake_256
from typing import Final

NONCE_BYTES: Final = 16
TAG_BYTES: Final = 32


def seal(key: bytes, nonce: bytes, data: bytes) -> bytes:
    """Return data sealed; the nonce is random and used once."""
    assert len(nonce) == NONCE_BYTES
    packed = zlib.compress(data, 1)
    sealed = nonce + _mask(key, nonce, packed)
    return sealed + _tag(key, sealed)


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """Return the decrypted bytes; None if they were sealed with another key, or are damaged."""
    import hmac  # only an erasure needs it

    body, tag = sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]
    if len(body) < NONCE_BYTES or not hmac.compare_digest(tag, _tag(key, body)):
        return None
    return zlib.decompress(_mask(key, body[:NONCE_BYTES], body[NONCE_BYTES:]))


def _mask(key: bytes, nonce: bytes, data: bytes) -> bytes:
    stream = shake_256(_derived(key, b"woodrat sealed " + nonce)).digest(len(data))
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(data), "big")


def _tag(key: bytes, data: bytes) -> bytes:
    return _derived(_derived(key, b"woodrat seal"), data)


def _derived(key: bytes, data: bytes) -> bytes:
    import hmac  # only an erasure needs it

    return hmac.digest(key, data, "sha256")

"""Ed25519: verification of signatures, as RFC 8032 section 5.1.7 requires. Nothing here signs.

It takes a few milliseconds and needs no other package, so every reader of a ledger can check its checkpoints. It is
strict where implementations differ: S lies below the group's order, a key is spelled canonically and is not of small
order, and R is compared byte by byte, without the cofactor.
"""

from __future__ import annotations

import hashlib

KEY_BYTES = 32
"""Length of a public key, and of the seed that a private key is made from."""
SIGNATURE_BYTES = 64
"""Length of a signature: R, then S."""

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
_SIGN = 1 << 255

_Point = tuple[int, int, int, int]
"""A point in extended coordinates X, Y, Z, T: x = X/Z, y = Y/Z, x·y = T/Z."""

_NEUTRAL: _Point = (0, 1, 1, 0)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return True if `signature` is that of `public` over `message`; bytes of another length are no signature."""
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    key = _decode(public)
    s = int.from_bytes(signature[32:], "little")
    if key is None or s >= _ORDER or _encode(_times(8, key)) == _encode(_NEUTRAL):
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _ORDER
    x, y, z, t = key
    # R = S·B − k·A; compared by its unique encoding.
    return _encode(_add(_times(s, _BASE), _times(k, (-x % _P, y, z, -t % _P)))) == signature[:32]


def _decode(data: bytes) -> _Point | None:
    """Return the point that 32 bytes spell, or None when they spell none, or not as RFC 8032 spells it."""
    number = int.from_bytes(data, "little")
    y, odd = number & (_SIGN - 1), number >> 255
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if (x * x - square) % _P or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = _P - x
    return x, y, 1, x * y % _P


def _encode(point: _Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    return (y * inverse % _P | (x * inverse % _P & 1) << 255).to_bytes(32, "little")


def _add(a: _Point, b: _Point) -> _Point:
    one, two = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    three, four = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = two - one, four - three, four + three, two + one
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(number: int, point: _Point) -> _Point:
    found = _NEUTRAL
    while number:
        if number & 1:
            found = _add(found, point)
        point, number = _add(point, point), number >> 1
    return found


_BASE = _decode((4 * pow(5, -1, _P) % _P).to_bytes(32, "little")) or _NEUTRAL

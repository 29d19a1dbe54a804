"""Request head: the request line and the headers of HTTP/1.1, read strictly.

What two programs could read in two ways is refused, as a proxy in front might take it otherwise (RFC 9112): lines that
end without a carriage return, folded headers, spaces before a colon, two lengths, a length beside chunks.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from woodrat.server.problems import NOTHING_DONE, Rejected

HEAD_BYTES_MAX: Final = 65_536
"""Longest head of a request."""
HEADERS_MAX: Final = 100
"""Most headers of a request."""
CHUNKED: Final = -1
"""The length of a body that comes in chunks."""

_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ODD: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Control characters but the tab, which no line of a head may hold."""
_ABSOLUTE: Final = re.compile(rb"https?://([^/?#]+)", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")


class Head(NamedTuple):
    """A request but for its body."""

    method: str
    """GET, POST and so on."""
    path: bytes
    """The address, as it was sent, without its query."""
    query: bytes
    """What follows the question mark."""
    headers: tuple[tuple[bytes, bytes], ...]
    """Names in lower case, and values; in the order in which they came."""
    length: int
    """How many bytes the body has, or `CHUNKED`."""
    keeps: bool
    """Whether the connection may be used again."""
    expects: bool
    """Whether the caller waits to be told to go on before they send the body."""
    version: str
    """1.0 or 1.1."""


def parse(data: bytes) -> Head:
    """Return the head of a request, without the empty line that ends it; `Rejected` where it is amiss."""
    line, *lines = data.split(b"\r\n")
    matched = _LINE.fullmatch(line)
    if matched is None:
        raise _amiss("The request line is not valid HTTP/1.1.")
    if len(lines) > HEADERS_MAX:
        raise too_long(f"The request has more than {HEADERS_MAX} headers.")
    headers: list[tuple[bytes, bytes]] = []
    lengths: list[bytes] = []
    codings: list[bytes] = []
    options = b""
    expects = False
    for item in lines:
        name, colon, value = item.partition(b":")
        if not colon or _NAME.fullmatch(name) is None or _ODD.search(value) is not None:
            raise _amiss("A header is not valid HTTP/1.1.")
        name, value = name.lower(), value.strip(b" \t")
        headers.append((name, value))
        if name == b"content-length":
            lengths.append(value)
        elif name == b"transfer-encoding":
            codings.append(value.lower())
        elif name == b"connection":
            options += b"," + value.lower()
        elif name == b"expect":
            expects = value.lower() == b"100-continue"
    newer = matched[3] == b"1"
    length = _length(lengths, codings, newer=newer)
    target = matched[2].partition(b"#")[0]
    if not target.startswith(b"/") and (absolute := _ABSOLUTE.match(target)) is not None:
        # The address says the host then, whatever the header of that name says.
        headers = [(b"host", absolute[1]), *(header for header in headers if header[0] != b"host")]
        target = target[absolute.end() :]
        target = target if target.startswith(b"/") else b"/" + target
    path, _, query = target.partition(b"?")
    keeps = newer and b"close" not in [option.strip() for option in options.split(b",")]
    method, version = matched[1].decode("ascii"), "1.1" if newer else "1.0"
    return Head(method, path, query, tuple(headers), length, keeps, expects and newer, version)


def _length(lengths: list[bytes], codings: list[bytes], *, newer: bool) -> int:
    """Return how long the body is said to be; said in two ways, it could be read in two ways."""
    if codings:
        if lengths or not newer:
            raise _amiss("transfer-encoding: it stands beside a content-length, or in HTTP/1.0.")
        if codings != [b"chunked"]:
            raise Rejected(
                501, f"transfer-encoding: only chunked is known here. {NOTHING_DONE} Send chunks or a length."
            )
        return CHUNKED
    if not lengths:
        return 0
    if len(lengths) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise _amiss("content-length: it is not one whole number.")
    return int(lengths[0])


def too_long(what: str) -> Rejected:
    """Return what to say of a head that is too long."""
    return Rejected(431, f"{what} {NOTHING_DONE} Send fewer or shorter headers.")


def _amiss(what: str) -> Rejected:
    return Rejected(400, f"{what} {NOTHING_DONE} Send a valid request.")

"""Body framing: where the body of a request ends: after its length, or after the last of its chunks."""

from __future__ import annotations

import re
from typing import Final, Protocol

from woodrat.server.request_head import CHUNKED

LINE_BYTES_MAX: Final = 256
"""Longest line that says the size of a chunk, with what may follow the size."""
TRAILER_BYTES_MAX: Final = 8_192
"""Longest trailer, which is not looked at."""

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")


class BrokenBody(Exception):
    """What arrived is no body of the kind that was announced."""


class Framing(Protocol):
    """Takes what arrives, up to the end of a body."""

    done: bool
    """Whether the body has ended."""

    def take(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the parts of the body in some bytes, and what follows the body; `BrokenBody` where it is none."""


def framing(length: int) -> Framing:
    """Return what finds the end of a body of this length, or of one in chunks."""
    return ChunkedBody() if length == CHUNKED else SizedBody(length)


class SizedBody:
    """A body whose length was said."""

    __slots__ = ("_left", "done")

    def __init__(self, length: int) -> None:
        self._left, self.done = length, length == 0

    def take(self, data: bytes) -> tuple[list[bytes], bytes]:
        size = len(data)
        if size < self._left:
            self._left -= size
            return [data], b""
        part, rest = (data, b"") if size == self._left else (data[: self._left], data[self._left :])
        self._left, self.done = 0, True
        return [part] if part else [], rest


class ChunkedBody:
    """A body in chunks, each after a line that says its size; what follows the last is a trailer."""

    __slots__ = ("_left", "_line", "_state", "_trailer", "done")

    def __init__(self) -> None:
        self._state, self._left, self._line, self._trailer, self.done = "size", 0, b"", 0, False

    def take(self, data: bytes) -> tuple[list[bytes], bytes]:
        parts: list[bytes] = []
        while data and not self.done:
            if self._state == "data":
                part, data = data[: self._left], data[self._left :]
                self._left -= len(part)
                parts.append(part)
                if not self._left:
                    self._state = "end"
                continue
            line, data = self._next_line(data)
            if line is None:
                break
            if self._state == "size":
                self._begin(line)
            elif self._state == "end":
                if line:
                    raise BrokenBody
                self._state = "size"
            else:
                self._trailer += len(line) + 2
                if self._trailer > TRAILER_BYTES_MAX:
                    raise BrokenBody
                self.done = not line
        return parts, data

    def _begin(self, line: bytes) -> None:
        matched = _SIZE.fullmatch(line)
        if matched is None:
            raise BrokenBody
        self._left = int(matched[1], 16)
        self._state = "data" if self._left else "trailer"

    def _next_line(self, data: bytes) -> tuple[bytes | None, bytes]:
        """Return the next line without its end, if it is there, and what follows it."""
        text = self._line + data
        longest = TRAILER_BYTES_MAX if self._state == "trailer" else LINE_BYTES_MAX
        line, end, rest = text.partition(b"\n")
        if len(line) > longest:
            raise BrokenBody
        if not end:
            self._line = text
            return None, b""
        if not line.endswith(b"\r"):
            raise BrokenBody
        self._line = b""
        return line[:-1], rest

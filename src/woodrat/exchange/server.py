"""Server: the connection to a log behind an address, passed to a sync."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Protocol, runtime_checkable

from woodrat.errors import Unavailable, WoodratError


@runtime_checkable
class Server(Protocol):
    """A connection to a server, with the errors raised there raised here."""

    address: str
    """The request."""

    def get(self, path: str, asked: Mapping[str, Any] | None = None) -> Any:
        """Send a read; `None` means a missing argument."""

    def send_lines(self, path: str, asked: Mapping[str, Any], lines: BinaryIO) -> Any:
        """Send a file of JSON lines to an address where repetition is harmless."""

    def stream(self, path: str, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a long answer of JSON lines as it arrives; `InterruptedAnswer` if it breaks off, or never begins."""

    def pause(self, number: int) -> None:
        """Wait before a retry."""

    def close(self) -> None:
        """Close the connection of this thread."""


class InterruptedAnswer(Exception):
    """A long answer was interrupted; the received part is valid."""

    def __init__(self, host: str, cause: BaseException | None) -> None:
        super().__init__(host)
        self._host, self._cause = host, cause

    def told(self) -> WoodratError:
        """Return the error for it, if a retry would not help."""
        if isinstance(self._cause, WoodratError):
            return self._cause
        what = "it ended too soon" if self._cause is None else type(self._cause).__name__
        return Unavailable(
            f"{self._host}: the answer broke off ({what}). Call again to continue from here.", {"host": self._host}
        )

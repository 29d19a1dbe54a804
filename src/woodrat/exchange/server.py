"""Server: what the log behind an address is asked through. Whoever syncs with one is handed a connection to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Protocol, runtime_checkable

from woodrat.errors import Unavailable, WoodratError


@runtime_checkable
class Server(Protocol):
    """A connection to a server, with the errors raised there raised here."""

    address: str
    """What was called."""

    def get(self, path: str, asked: Mapping[str, Any] | None = None) -> Any:
        """Read; what is `None` is not asked."""

    def send_lines(self, path: str, asked: Mapping[str, Any], lines: BinaryIO) -> Any:
        """Send a file of JSON lines to what may be told the same twice."""

    def stream(self, path: str, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a long answer of JSON lines as it comes; `Broken` where it breaks off, or never begins."""

    def pause(self, number: int) -> None:
        """Wait before something is tried for another time."""

    def close(self) -> None:
        """Close the connection of this thread."""


class Broken(Exception):
    """A long answer broke off; what came before is good."""

    def __init__(self, host: str, cause: BaseException | None) -> None:
        super().__init__(host)
        self._host, self._cause = host, cause

    def told(self) -> WoodratError:
        """Return the error for it, where it does not help to ask again."""
        if isinstance(self._cause, WoodratError):
            return self._cause
        what = "it ended too soon" if self._cause is None else type(self._cause).__name__
        return Unavailable(
            f"{self._host}: the answer broke off ({what}). Call again to continue from here.", {"host": self._host}
        )

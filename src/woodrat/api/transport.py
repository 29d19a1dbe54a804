"""Transport: calls of a served ledger over HTTP, with the errors they raise there raised here.

Every write has an idempotency key, so a call that got no answer is sent again and is still one write.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final
from urllib.parse import quote, urlencode, urlsplit

from woodrat.clock import Clock
from woodrat.errors import (
    Corrupt,
    Fault,
    Forbidden,
    NotFound,
    Outdated,
    Refused,
    Unavailable,
    WoodratError,
    shown,
)
from woodrat.exchange.server import InterruptedAnswer
from woodrat.runs.recorder import current

TIMEOUT_SECONDS: Final = 60.0
"""Timeout of an answer."""
TRIES_MAX: Final = 5
"""Number of attempts before a call fails."""
WAIT_SECONDS: Final = (0.05, 0.2, 0.8, 2.0)
"""Delay between attempts."""
WAIT_SECONDS_MAX: Final = 10.0
"""Longest wait that a server may request."""
JSON: Final = "application/json"
PART_BYTES: Final = 262_144
"""Bytes of a long answer read at a time."""
NOT_OPENED: Final = "Nothing was opened."

_BUSY: Final = frozenset({429, 503})
_CLASSES: Final[Mapping[str, type[WoodratError]]] = {
    kind.code: kind for kind in (Forbidden, NotFound, Outdated, Unavailable, Corrupt)
}
_UNKNOWN: Final = (
    "Whether it was done is not known. Look before you send it again, unless it has an idempotency key of yours."
)
_UNCHANGED: Final = "Nothing was changed. Send the same call again."
_NOBODY: Final = "Nothing was sent. See that `woodrat serve` runs there, and that the address and its port are right."
"""The state of a call without an answer: possibly executed, only a read, or never received."""


def address_faults(address: str) -> list[Fault]:
    """Return everything wrong with the address of a server."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = 0
    found = []
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        found.append(Fault("db", f"got {shown(address)}", "Send an address such as http://localhost:8787."))
    if parts.username is not None or parts.query or parts.fragment:
        found.append(Fault("db", "the address contains a user, a query or a fragment", "Send the key with key=…."))
    return found


class Transport:
    """Connections to one server, one for each thread that calls."""

    def __init__(
        self, address: str, key: str | None, clock: Clock, *, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        parts = urlsplit(address)
        faults = address_faults(address)
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
            faults.append(Fault("key", "not an API key", "Send it as `woodrat keys create` showed it."))
        if faults:
            raise Refused(faults, NOT_OPENED)
        self._https = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._base = parts.path.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self.address = address
        """What was called."""
        self._headers = {"Accept-Encoding": "identity"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self.clock = clock
        """Time and fresh ids, here."""
        self._mine = threading.local()
        self._pause = threading.Event()

    def get(self, path: str, asked: Mapping[str, Any] | None = None) -> Any:
        """Send a read; parameters that are `None` are omitted."""
        return self._call("GET", path, asked or {}, None, {"Accept": JSON}, again=True)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        asked: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
    ) -> Any:
        """Send a body. With a key it is a write that may be sent again; without, it reads, or is sent once."""
        headers = {"Content-Type": JSON, "Accept": JSON}
        if key is not None:
            current.check_write(path)
            headers["Idempotency-Key"] = key
        sent = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        return self._call("POST", path, asked or {}, sent, headers, again=key is not None)

    def send_lines(self, path: str, asked: Mapping[str, Any], lines: BinaryIO) -> Any:
        """Send a file of JSON lines to a route that tolerates repetition."""
        current.check_write(path)
        headers = {"Content-Type": "application/x-ndjson", "Content-Length": str(lines.seek(0, os.SEEK_END))}
        return self._call("POST", path, asked, lines, headers, again=True)

    def stream(self, path: str, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a long answer of JSON lines as it arrives; `InterruptedAnswer` if it breaks off, or never begins."""
        target = self._base + quote(path, safe="/") + _query(asked)
        headers = {**self._headers, "Accept": "application/x-ndjson"}
        connection = self._connection()
        try:
            try:
                connection.request("GET", target, None, headers)
                response = _whole_head(connection.getresponse())
                if response.status >= 400:
                    said = _said(response.read())
                    if response.status not in _BUSY:
                        raise error_of(response.status, said)
                    raise InterruptedAnswer(self._host, error_of(response.status, said))
                while part := response.read1(PART_BYTES):
                    yield part
            except (OSError, http.client.HTTPException) as error:
                raise InterruptedAnswer(self._host, self._untrusted(error) or error) from error
        except BaseException:
            self.close()  # the rest of the answer would be parsed as the next one
            raise

    def pause(self, number: int) -> None:
        """Wait before a retry."""
        self._pause.wait(WAIT_SECONDS[min(number, len(WAIT_SECONDS)) - 1])

    def fresh_key(self) -> str:
        """Return a key for one write."""
        return self.clock.random(16).hex()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._mine, "connection", None)
        if connection is not None:
            connection.close()
            self._mine.connection = None

    def _call(
        self,
        method: str,
        path: str,
        asked: Mapping[str, Any],
        body: bytes | BinaryIO | None,
        headers: dict[str, str],
        again: bool,
    ) -> Any:
        target = self._base + quote(path, safe="/") + _query(asked)
        reached = False
        for number in range(TRIES_MAX):
            last = number == TRIES_MAX - 1
            try:
                status, said, wait = self._send(method, target, body, {**self._headers, **headers})
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if (untrusted := self._untrusted(error)) is not None:
                    raise untrusted from error
                reached = reached or not isinstance(error, ConnectionRefusedError | socket.gaierror)
                if last or not again:
                    told = _UNKNOWN if reached and method != "GET" else _UNCHANGED if reached else _NOBODY
                    raise Unavailable(
                        f"{self._host}: no answer ({type(error).__name__}). {told}", {"host": self._host}
                    ) from error
                wait = WAIT_SECONDS[number]
            else:
                reached = True
                if status < 400:
                    return said
                # a retry of a read that timed out would time out again; the caller learns when to come back
                if status not in _BUSY or last or not again or (method == "GET" and wait is None):
                    raise error_of(status, said)
            self._pause.wait(min(wait or WAIT_SECONDS[min(number, len(WAIT_SECONDS) - 1)], WAIT_SECONDS_MAX))
        raise AssertionError("the last try returns or raises")

    def _send(
        self, method: str, target: str, body: bytes | BinaryIO | None, headers: dict[str, str]
    ) -> tuple[int, Any, float | None]:
        connection = self._connection()
        if body is not None and not isinstance(body, bytes):
            body.seek(0)
        try:
            connection.request(method, target, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            if body is None or connection.sock is None:
                raise
            # a caller without permission gets the error before the whole body is read
        response = _whole_head(connection.getresponse())
        data = response.read()
        retry = response.getheader("Retry-After") or ""
        return response.status, _said(data), float(retry) if retry.isdigit() else None

    def _connection(self) -> http.client.HTTPConnection:
        """Return the connection of this thread."""
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
            connection = self._mine.connection = kind(self._host, self._port, timeout=self._timeout_seconds)
        return connection

    def _untrusted(self, error: BaseException) -> Unavailable | None:
        """Return the error text if a secure connection fails, or is required; a retry would not help."""
        import ssl

        if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
            return Unavailable(
                f"{self._host}: the server there does not speak HTTP. The outcome of the call is unknown. "
                "Use https:// where the server has TLS.",
                {"host": self._host},
            )
        if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return None
        details = {"host": self._host}
        if isinstance(error, ssl.SSLCertVerificationError):
            return Unavailable(
                f"{self._host}: its certificate is not trusted ({error.verify_message}). Nothing was sent. Call it by "
                "the name in its certificate, or name the authority that signed it with SSL_CERT_FILE.",
                details,
            )
        reason = error.reason or type(error).__name__
        return Unavailable(
            f"{self._host}: no secure connection ({reason}). Nothing was sent. "
            "Use http:// where the server has no TLS.",
            details,
        )


def _whole_head(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    """Return a response that states its length; a response without one was cut off within its headers."""
    if response.length is None and not response.chunked:
        raise http.client.IncompleteRead(b"")
    return response


def _said(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None


def _query(asked: Mapping[str, Any]) -> str:
    found: list[tuple[str, str]] = []
    for name, value in asked.items():
        if value is None:
            continue
        several = value if isinstance(value, list | tuple) else (value,)
        found += [(name, str(one).lower() if isinstance(one, bool) else str(one)) for one in several]
    return f"?{urlencode(found)}" if found else ""


def error_of(status: int, said: Any) -> WoodratError:
    """Return the error of a problem document, as the library raises it."""
    if not isinstance(said, dict) or "code" not in said:
        text = f"The server answered with status {status} and without a problem document. Send the call again later."
        return Unavailable(text, {"status": status})
    detail, details = str(said.get("detail", "")), said.get("details") or {}
    if said["code"] == Refused.code:
        faults = [Fault(**fault) for fault in details.get("faults", ())]
        if not faults:
            return Refused([Fault("request", detail.rstrip("."), "See the problem.")])
        return Refused(faults, outcome=detail.rpartition("\n")[2])
    return _CLASSES.get(said["code"], Unavailable)(detail, details)

"""Transport: calls of a served ledger over HTTP, with the errors they raise there raised here.

Every write has an idempotency key, so a call that got no answer is sent again and is still one write.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from typing import Any, Final
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

TIMEOUT_SECONDS: Final = 60.0
"""How long an answer may take."""
TRIES_MAX: Final = 5
"""How often a call is sent before it fails."""
WAIT_SECONDS: Final = (0.05, 0.2, 0.8, 2.0)
"""How long is waited between tries."""
WAIT_SECONDS_MAX: Final = 10.0
"""Longest wait that a server may ask for."""
JSON: Final = "application/json"
NOT_OPENED: Final = "Nothing was opened."

_BUSY: Final = frozenset({429, 503})
_CLASSES: Final[Mapping[str, type[WoodratError]]] = {
    kind.code: kind for kind in (Forbidden, NotFound, Outdated, Unavailable, Corrupt)
}


class Transport:
    """Connections to one server, one for each thread that calls."""

    def __init__(self, address: str, key: str | None, clock: Clock) -> None:
        parts = urlsplit(address)
        faults = []
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            faults.append(Fault("db", f"got {shown(address)}", "Send an address such as http://localhost:8787."))
        if parts.username is not None or parts.query or parts.fragment:
            faults.append(Fault("db", "the address holds more than a place", "Send the key with key=…."))
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
            faults.append(Fault("key", "it is no key", "Send it as `woodrat keys create` showed it."))
        if faults:
            raise Refused(faults, NOT_OPENED)
        self._https = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", port
        self._base = parts.path.rstrip("/")
        self._headers = {"Accept-Encoding": "identity"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._clock = clock
        self._mine = threading.local()
        self._pause = threading.Event()

    def get(self, path: str, asked: Mapping[str, Any] | None = None, *, accept: str = JSON) -> Any:
        """Read; what is `None` is not asked."""
        return self._call("GET", path, asked or {}, None, {"Accept": accept}, again=True)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        asked: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        accept: str = JSON,
    ) -> Any:
        """Send a body. With a key it is a write that may be sent again; without, it reads, or is sent once."""
        headers = {"Content-Type": "application/json", "Accept": accept}
        if key is not None:
            headers["Idempotency-Key"] = key
        sent = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        return self._call("POST", path, asked or {}, sent, headers, again=key is not None)

    def fresh_key(self) -> str:
        """Return a key for one write."""
        return self._clock.random(16).hex()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._mine, "connection", None)
        if connection is not None:
            connection.close()
            self._mine.connection = None

    def _call(
        self, method: str, path: str, asked: Mapping[str, Any], body: bytes | None, headers: dict[str, str], again: bool
    ) -> Any:
        target = self._base + quote(path, safe="/") + _query(asked)
        for number in range(TRIES_MAX):
            last = number == TRIES_MAX - 1
            try:
                status, said, wait = self._send(method, target, body, {**self._headers, **headers})
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if last or not again:
                    told = "" if again else " Whether it was done is not known."
                    raise Unavailable(
                        f"{self._host}: no answer ({type(error).__name__}).{told} Send the same call again.",
                        {"host": self._host},
                    ) from error
                wait = WAIT_SECONDS[number]
            else:
                if status < 400:
                    return said
                # A read that took too long would only do so again; whoever should come later is told when.
                if status not in _BUSY or last or not again or (method == "GET" and wait is None):
                    raise error_of(status, said)
            self._pause.wait(min(wait or WAIT_SECONDS[min(number, len(WAIT_SECONDS) - 1)], WAIT_SECONDS_MAX))
        raise AssertionError("the last try returns or raises")

    def _send(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any, float | None]:
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
            connection = self._mine.connection = kind(self._host, self._port, timeout=TIMEOUT_SECONDS)
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        data = response.read()
        retry = response.getheader("Retry-After") or ""
        try:
            said = json.loads(data) if data else None
        except ValueError:
            said = None
        return response.status, said, float(retry) if retry.isdigit() else None


def _query(asked: Mapping[str, Any]) -> str:
    found: list[tuple[str, str]] = []
    for name, value in asked.items():
        if value is None:
            continue
        several = value if isinstance(value, list | tuple) else (value,)
        found += [(name, str(one).lower() if isinstance(one, bool) else str(one)) for one in several]
    return f"?{urlencode(found)}" if found else ""


def error_of(status: int, said: Any) -> WoodratError:
    """Return the error that a problem document tells of, as the library raises it."""
    if not isinstance(said, dict) or "code" not in said:
        return Unavailable(f"The server answered with status {status}, and no problem document. Send it again later.")
    detail, details = str(said.get("detail", "")), said.get("details") or {}
    if said["code"] == Refused.code:
        faults = [Fault(**fault) for fault in details.get("faults", ())]
        if not faults:
            return Refused([Fault("request", detail.rstrip("."), "See the problem.")])
        return Refused(faults, outcome=detail.rpartition("\n")[2])
    return _CLASSES.get(said["code"], Unavailable)(detail, details)

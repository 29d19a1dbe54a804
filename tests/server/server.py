"""A real server on loopback, in a thread of this process, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any

from woodrat.server.app import App
from woodrat.server.serve import Serving


class Server:
    """An application being served; a context manager."""

    def __init__(self, app: App, port: int = 0) -> None:
        """`port` is one that nobody listens on; 0 asks for any."""
        self.app = app
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            self.port: int = probe.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._serving = Serving(app, "127.0.0.1", self.port)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serving.serve())

    def __enter__(self) -> Server:
        self._thread.start()
        for _ in range(15_000):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                threading.Event().wait(0.002)
            else:
                return self
        raise AssertionError("the server did not come up")

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._serving.stop)
        self._thread.join(20)
        assert not self._thread.is_alive(), "the server did not stop"

    def connect(self, timeout: float = 10) -> http.client.HTTPConnection:
        """Return a connection of its own."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        timeout: float = 10,
    ) -> Answer:
        """Send one request; a body that is not bytes is sent as JSON."""
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


class Answer:
    """A response, read whole."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.body = status, body
        self.headers = {name.lower(): value for name, value in headers.items()}

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

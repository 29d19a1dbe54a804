"""A ledger file behind a real server, with or without keys, that can go away and come back."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import Any

from tests.inspector.ledgers import TENANT
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.cli.serve import endpoints
from woodrat.clock import Clock, SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.inspector.site import InspectorSite
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring, OpenAtFirst
from woodrat.server.limits import Limits

WAIT_SECONDS = 120
"""How long a test waits for an answer; the first read of a large ledger may build its indexes."""


class Served:
    """A server on a ledger file; a context manager."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.path, self._port = path, 0
        self._server: Server | None = None

    def __enter__(self) -> Served:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Serve, at the same address as before."""
        policies = registry(())
        self._engine = SqliteEngine(self.path)
        keys_ledger = Ledger(self._engine, tenant=KEYS_TENANT, agent="operator", clock=self.clock, policies=policies)
        self.keys = Keyring(keys_ledger, self.clock)
        self.keys.refresh()
        app = App(
            self._engine,
            OpenAtFirst(self.keys, TENANT, "inspector"),
            clock=self.clock,
            policies=policies,
            endpoints=endpoints(),
            limits=Limits(),
            site=InspectorSite(),
        )
        self._server = Server(app, self._port).__enter__()
        self._port = self._server.port

    def stop(self) -> None:
        """Go away."""
        if self._server is not None:
            self._server.__exit__()
            self._server = None
            self._engine.close()

    @property
    def url(self) -> str:
        """The address, without a slash at its end."""
        return f"http://127.0.0.1:{self._port}"

    def get(self, path: str, **query: object) -> Any:
        """Return what a read of REST answers."""
        assert self._server is not None, "it is running"
        text = f"?{urllib.parse.urlencode(query)}" if query else ""
        answer = self._server.call("GET", f"/v1/{path}{text}", timeout=WAIT_SECONDS)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    def post(self, path: str, body: Any) -> Any:
        """Return what a write of REST answers."""
        assert self._server is not None, "it is running"
        answer = self._server.call("POST", f"/v1/{path}", body, timeout=WAIT_SECONDS)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    def items(self, path: str, **query: object) -> list[Any]:
        """Return the items of a list of REST, its first page."""
        return list(self.get(path, **query)["items"])

"""A served ledger, with and without keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Access, Keyring, Open
from woodrat.server.limits import Limits

Start = Callable[..., Server]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "served.db")
    yield engine
    engine.close()


@pytest.fixture
def keyring(engine: SqliteEngine) -> Keyring:
    clock = SystemClock()
    return Keyring(Ledger(engine, tenant=KEYS_TENANT, agent="operator", clock=clock, policies=registry(())), clock)


@pytest.fixture
def start(engine: SqliteEngine) -> Iterator[Start]:
    running: list[Server] = []

    def begin(
        keys: Access | None = None,
        proofs: str | None = None,
        redact: str | None = None,
        strict: bool | str = False,
        **limits: Any,
    ) -> Server:
        found = keys or Open("default", "http")
        clock = SystemClock()
        made = Limits(**limits)
        app = App(
            engine,
            found,
            clock=clock,
            policies=registry(()),
            endpoints=endpoints(),
            limits=made,
            proofs=proofs,
            redact=redact,
            strict=strict,
        )
        server = Server(app).__enter__()
        running.append(server)
        return server

    yield begin
    for server in running:
        server.__exit__()


@pytest.fixture
def server(start: Start) -> Server:
    return start()

"""Servers: several `woodrat serve` on one PostgreSQL database, each written to over HTTP for a tenant of its own.

Every server is the product's own, with a key, so that calls are checked and audited, and one of them has the duty to
bring indexes up to date, as always. Clients are in this process and do as little as they can.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import orjson

from bench.http_load import Requests, ServerProcess
from bench.records import AGENTS, Records
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import KEYS_TENANT, Keyring

CLIENTS = 8
"""Connections to each server, each of which sends its next record when it has its last answer."""
ENTITIES = 100
"""How many entities a tenant has."""


class PostgresServer(ServerProcess):
    """A `woodrat serve` on PostgreSQL, and records for one tenant."""

    def __init__(self, url: str, engine: PostgresEngine, tenant: str) -> None:
        super().__init__()
        clock, policies = SystemClock(), registry(())
        self.command = [sys.executable, "-m", "woodrat", "serve", "--db", url, "--port", str(self.port)]
        self.command += ["--log-level", "error"]
        keys = Ledger(engine, tenant=KEYS_TENANT, agent=AGENTS[0], clock=clock, policies=policies)
        self._key = Keyring(keys, clock).create(tenant, AGENTS[0], ["*"])[1]
        self._records, self._number = Records(tenant), 0
        ledger = Ledger(engine, tenant=tenant, agent=AGENTS[0], clock=clock, policies=policies)
        ledger.store(self._records.batch(range(ENTITIES)).records)

    @property
    def storing(self) -> Requests:
        """What makes requests that store a record each."""
        head = (
            f"POST /v1/store HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n"
            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        ).encode()

        def request() -> bytes:
            self._number += 1
            body = orjson.dumps({"records": self._records.batch([self._number % ENTITIES]).records[0]})
            return head % len(body) + body

        return request


def rows(url: str, numbers: Sequence[int], seconds: float, worked: Callable[[], float]) -> Iterator[dict[str, Any]]:
    """Yield what so many servers store together; `worked` says what the database worked until now."""
    for number in numbers:
        with ExitStack() as stack:
            engine = PostgresEngine(url)
            stack.callback(engine.close)
            servers = [PostgresServer(url, engine, f"served-{number}-{each}") for each in range(number)]
            for server in servers:
                stack.enter_context(server.running(server.command))
            pool = stack.enter_context(ThreadPoolExecutor(number))
            before = worked()
            turns = list(pool.map(lambda server: server.load(CLIENTS, server.storing, seconds), servers))
            database = worked() - before
        calls = [len(turn.times) for turn in turns]
        if not all(calls):
            raise SystemExit(f"{number} servers: one had no answer within {seconds:g} s. Measure for longer.")
        # Work of the database is counted from the start, answers from a tenth of the time on.
        yield {
            "servers": number,
            "clients": number * CLIENTS,
            "stores_a_second": sum(turn.calls_per_second for turn in turns),
            "server_work_us": sum((turn.cpu_us or 0) * count for turn, count in zip(turns, calls, strict=True))
            / sum(calls),
            "database_work_us": database / (sum(calls) * 1.1) * 1e6,
        }

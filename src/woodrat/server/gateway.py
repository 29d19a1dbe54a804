"""Gateway: how MCP, Neotoma and OTLP reach a ledger; keys, limits, audit and commits stay with the server.

A room with a route of its own on the server offers an `Endpoint`, which the program that starts a server passes in: the
server imports none of these rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from woodrat.errors import Forbidden
from woodrat.server import access
from woodrat.server.audit import DENIED, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.runs.relay import Relay
    from woodrat.server.access import Caller
    from woodrat.server.audit import Audit
    from woodrat.server.body_reader import BodyReader
    from woodrat.server.heavy_reads import Job
    from woodrat.server.keys import Callers
    from woodrat.server.reads import ReadExecutor
    from woodrat.server.requests import Exchange
    from woodrat.server.tenants import Tenants
    from woodrat.server.writes import WriteExecutor


class Gateway(Protocol):
    """Access of a known caller to the ledger."""

    @property
    def relay(self) -> Relay:
        """Runs recorded step by step."""

    def ledger(self, caller: Caller) -> Ledger:
        """Return the ledger of a caller."""

    def allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        """Raise `Forbidden` unless the caller may make a call: the verb's name, the grant it needs, its arguments."""

    async def read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        """Execute a read in a thread, in the order of the queue; a heavy job runs in another process.

        A read that `heavy_reads.is_apart` names needs a `job`.
        """

    async def write(self, caller: Caller, call: Callable[[], Any]) -> Any:
        """Execute a write; it is durable before this returns."""


class HttpGateway(Gateway):
    """Access of requests to the ledgers of an application."""

    def __init__(
        self,
        relay: Relay,
        callers: Callers,
        tenants: Tenants,
        body_reader: BodyReader,
        reads: ReadExecutor,
        writes: WriteExecutor,
        audit: Audit,
        *,
        reads_soon: bool,
    ) -> None:
        self._relay, self.callers, self.tenants, self.body_reader = relay, callers, tenants, body_reader
        self.reads, self.writes, self.audit = reads, writes, audit
        self.reads_soon = reads_soon
        """True if a read of one entity never waits, so that it may run on the event loop."""

    @property
    def relay(self) -> Relay:
        return self._relay

    def ledger(self, caller: Caller) -> Ledger:
        return self.tenants.ledger(caller)

    def allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        """Refuse a call without its grant; audit it as any read."""
        reads = caller.key != "" and grant == access.READ
        try:
            access.check(caller, grant, given)
        except Forbidden:
            if reads:
                self.audit.note(caller, verb, given, "", DENIED)
            raise
        if reads:
            self.audit.note(caller, verb, given, "", SUCCESS)

    async def read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        return await self.reads.read(caller, call, job)

    async def write(self, caller: Caller, call: Callable[[], Any]) -> Any:
        return await self.writes.write(caller, call)


class Site(Protocol):
    """The endpoint for all other addresses: the pages of the inspector."""

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request, which only reads; an unknown page is `NotFound`."""


class Endpoint(Protocol):
    """An endpoint at an address of the server, beside the routes."""

    @property
    def name(self) -> str:
        """Its name in logs and metrics."""

    @property
    def path(self) -> bytes:
        """The path; a path that ends with a slash matches all paths below it."""

    async def answer(self, exchange: Exchange, gateway: HttpGateway) -> None:
        """Answer one request, whose sender is not yet authenticated."""

    async def close(self) -> None:
        """End all answers in progress: the server stops."""

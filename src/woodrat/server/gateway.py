"""Gateway: how MCP, Neotoma and OTLP reach a ledger; keys, limits, audit and commits stay with whoever serves it.

A room that answers at an address of the server offers an `Endpoint`. Whoever starts a server hands them in: the server
imports none of these rooms.
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
    from woodrat.server.heavy_reads import Job
    from woodrat.server.intake import Intake
    from woodrat.server.keys import Callers
    from woodrat.server.reads import Reads
    from woodrat.server.requests import Exchange
    from woodrat.server.tenants import Tenants
    from woodrat.server.writes import Writes


class Gateway(Protocol):
    """How calls of a known caller reach the ledger."""

    @property
    def relay(self) -> Relay:
        """Runs that are recorded step by step."""

    def ledger(self, caller: Caller) -> Ledger:
        """Return the ledger of a caller."""

    def allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        """Raise `Forbidden` unless a caller may do this: the verb's name, the grant it needs, its arguments."""

    async def read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        """Do something that only reads, in turn and in a thread; in another process if the job is heavy.

        A `job` is needed for what is read apart from the rest (`heavy_reads.is_apart`).
        """

    async def write(self, caller: Caller, call: Callable[[], Any]) -> Any:
        """Do something that writes; it is durable before this returns."""


class HttpGateway(Gateway):
    """How requests reach the ledgers of an application."""

    def __init__(
        self,
        relay: Relay,
        callers: Callers,
        tenants: Tenants,
        intake: Intake,
        reads: Reads,
        writes: Writes,
        audit: Audit,
        *,
        reads_soon: bool,
    ) -> None:
        self._relay, self.callers, self.tenants, self.intake = relay, callers, tenants, intake
        self.reads, self.writes, self.audit = reads, writes, audit
        self.reads_soon = reads_soon
        """Whether one look at an entity waits for nobody, so that it may be taken on the loop."""

    @property
    def relay(self) -> Relay:
        return self._relay

    def ledger(self, caller: Caller) -> Ledger:
        return self.tenants.ledger(caller)

    def allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        """Refuse what a key does not carry; note who looked at what, as of any read."""
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
    """What answers at every address that is no other's: the pages of the inspector."""

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request, which reads; what there is nothing for is `NotFound`."""


class Endpoint(Protocol):
    """What answers at an address of the server beside the routes."""

    @property
    def name(self) -> str:
        """What logs and counts call it."""

    @property
    def path(self) -> bytes:
        """The address; one that ends with a slash stands for all addresses below it."""

    async def answer(self, exchange: Exchange, gateway: HttpGateway) -> None:
        """Answer one request. Who sends it is not known yet."""

    async def close(self) -> None:
        """End what is being answered: the server stops."""

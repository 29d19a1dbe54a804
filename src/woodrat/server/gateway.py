"""Gateway: how MCP, Neotoma and OTLP reach a ledger; keys, limits, audit and commits stay with whoever serves it.

A room that answers at an address of the server offers an `Endpoint`. Whoever starts a server hands them in: the server
imports none of these rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.runs.relay import Relay
    from woodrat.server.access import Caller
    from woodrat.server.body import BodyLimits
    from woodrat.server.heavy_reads import Job
    from woodrat.server.requests import Exchange


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


class HttpGateway(Gateway, Protocol):
    """How requests reach the ledger."""

    @property
    def reads_soon(self) -> bool:
        """Whether one look at an entity waits for nobody, so that it may be taken on the loop."""

    def caller(self, exchange: Exchange) -> Caller:
        """Return who sends a request, and count it as a call of theirs; no good key, or too many calls, is refused."""

    def body_limits(self, writes: bool) -> BodyLimits:
        """Return how much of a body is taken, of a call that writes or one that only reads."""

    async def take(self, exchange: Exchange, caller: Caller, limits: BodyLimits, parse: Callable[[bytes], Any]) -> Any:
        """Return what a request's body says; a long one is taken in turn, and parsed in a thread."""


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

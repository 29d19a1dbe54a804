"""Endpoint: MCP at one address of the application, as streamable HTTP without sessions.

The application has already checked host, origin, key and body. Each request is independent, so any
number of processes can serve a client.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Unavailable, shown
from woodrat.mcp import CALLER, NEEDS_EXTRA, TOLD, messages
from woodrat.server.access import CORRECT, MANAGE, RUN, WRITE
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.server.requests import JSON, Exchange

if TYPE_CHECKING:
    from woodrat.server.gateway import Gateway, HttpGateway

PATH: Final = b"/mcp"


class McpEndpoint:
    """The MCP server of an application; the SDK is loaded with the first request."""

    name, path = "mcp", PATH

    def __init__(self) -> None:
        self._serving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Any] | None = None
        self._closing = asyncio.Event()

    async def answer(self, exchange: Exchange, gateway: HttpGateway) -> None:
        """Answer one request."""
        caller = gateway.callers.of(exchange)
        if exchange.method != "POST":
            text = f"{exchange.method}: not a method of /mcp, which keeps no sessions. {NOTHING_DONE} Use POST."
            raise Rejected(405, text, ((b"allow", b"POST"),))
        if exchange.content_type() != JSON:
            got = shown(exchange.content_type().decode("latin-1"))
            raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send {JSON.decode()}.")
        # Which tool is called is in the body; a key that may only read sends no more than a read needs.
        writes = any(caller.holds(grant) for grant in (WRITE, CORRECT, RUN, MANAGE))
        limits = gateway.body_reader.limits_of(writes)
        body, answer = await gateway.body_reader.take(
            exchange, caller, limits, lambda body: (body, messages.answer_to(body))
        )
        if answer is not None:
            await exchange.answer(answer, 400 if answer["id"] is None else 200)
            return
        manager = await self._manager(gateway)
        # the SDK accepts one spelling of the media type, and rejects callers that name none
        instead = {b"content-type": JSON, **({} if exchange.header(b"accept") is not None else {b"accept": JSON})}
        await exchange.hand_over(body, manager.handle_request, instead, **{CALLER: caller, TOLD: exchange.told})

    async def _manager(self, gateway: HttpGateway) -> Any:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._ready, gateway))
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: asyncio.Future[Any], gateway: HttpGateway) -> None:
        try:
            manager = await asyncio.to_thread(_load, gateway, gateway.body_reader.limits_of(True).bytes_max)
        except ImportError:
            ready.set_exception(Unavailable(NEEDS_EXTRA))
            return
        async with manager.run():
            ready.set_result(manager)
            await self._closing.wait()

    async def close(self) -> None:
        """End all answers in progress."""
        self._closing.set()
        if self._serving is not None:
            await self._serving


def _load(gateway: Gateway, body_bytes_max: int) -> Any:
    """Return the SDK's request handler; importing it takes a second."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from woodrat.mcp import server

    return StreamableHTTPSessionManager(
        server.make(gateway),
        json_response=True,
        stateless=True,
        max_request_body_size=body_bytes_max,
        security_settings=None,
    )

"""Stdio: the server of one client, which started it and speaks to it over standard input and output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from woodrat.errors import Unavailable
from woodrat.ledger.committing import Committer
from woodrat.ledger.relaying import Relay
from woodrat.surfaces.access import Caller, check
from woodrat.surfaces.mcp import NEEDS_EXTRA
from woodrat.surfaces.means import Means

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.ledger.ledger import Ledger


def serve(ledger: Ledger) -> None:
    """Serve one ledger until standard input ends."""
    try:
        from woodrat.surfaces.mcp import server
    except ImportError as error:
        raise Unavailable(NEEDS_EXTRA) from error
    with Committer(ledger._engine) as committer:

        async def write(call: Callable[[], Any]) -> Any:
            return await committer.carry_out(call)

        means = Means(
            ledger=lambda caller: ledger,
            allow=lambda caller, verb, grant, given: check(caller, grant, given),
            read=lambda call: asyncio.to_thread(call),
            write=write,
            relay=Relay(),
        )
        asyncio.run(_serve(server.make(means, Caller(ledger.tenant, ledger.agent))))


async def _serve(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

"""A ledger reached by the official client: over HTTP from a server on loopback, over stdio from a command."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.server.conftest import Start, engine, keyring, start
from tests.server.server import Server

__all__ = ["engine", "keyring", "start"]

T = TypeVar("T")


def run(story: Awaitable[T]) -> T:
    """Run one coroutine to its end."""

    async def whole() -> T:
        return await asyncio.wait_for(story, 120)

    return asyncio.run(whole())


@asynccontextmanager
async def over_http(server: Server, key: str | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    """Connect to a server, with a key."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(
    db: Path, agent: str = "stdio", mode: str = "auto", tenant: str = "default"
) -> AsyncIterator[Client]:
    """Start the command and connect to it."""
    words = ["-m", "woodrat", "mcp", "--db", str(db), "--as", agent, "--tenant", tenant]
    # The client passes on no more than HOME and PATH, and HOME may hold the keys of whoever runs the tests.
    command = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(command, mode=mode) as client:
        yield client


async def told(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    """Call a tool that answers; return what it says."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, result.content
    found: Any = result.structured_content
    assert isinstance(found, dict)
    return found


async def refused(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    """Call a tool that refuses; return the error."""
    result = await client.call_tool(tool, given)
    assert result.is_error, result.structured_content
    found: Any = result.structured_content
    assert found["message"] == result.content[0].text  # type: ignore[union-attr]
    return dict(found)


@pytest.fixture
def served(start: Start) -> Server:
    """A server without keys."""
    return start()

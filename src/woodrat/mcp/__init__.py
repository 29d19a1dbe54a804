"""MCP: the verbs as tools of agents, over stdio and HTTP."""

from __future__ import annotations

from typing import Final

CALLER: Final = "woodrat.caller"
"""The ASGI scope key under which the application puts the caller, after it has checked the API key."""
TOLD: Final = "woodrat.told"
"""Where it puts details for the request log."""
NEEDS_EXTRA: Final = "MCP needs the extra `mcp`. Nothing was done. Install it: pip install 'woodrat[mcp]'."

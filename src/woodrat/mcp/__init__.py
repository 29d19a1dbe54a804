"""MCP: the verbs as tools of agents, over stdio and HTTP."""

from __future__ import annotations

from typing import Final

CALLER: Final = "woodrat.caller"
"""Where a request over HTTP says who calls: put there by the application, which has checked the key."""
TOLD: Final = "woodrat.told"
"""Where it puts details for the request log."""
NEEDS_EXTRA: Final = "MCP needs the extra `mcp`. Nothing was done. Install it: pip install 'woodrat[mcp]'."

"""Serving: the application behind a server that slow clients cannot stall."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from woodrat.surfaces.http.app import App

HEADER_SECONDS: Final = 10
"""How long a request's headers may take to arrive."""


class Serving:
    """An application at an address, until it is stopped."""

    def __init__(
        self, app: App, host: str, port: int, *, tls_cert: Path | None = None, tls_key: Path | None = None
    ) -> None:
        try:
            from granian.constants import HTTPModes, Interfaces
            from granian.http import HTTP1Settings
            from granian.server.embed import Server
        except ImportError as error:
            raise Unavailable(
                "The server needs the extra `server`. Nothing was started. Install it: pip install 'woodrat[server]'."
            ) from error
        self._server: Any = Server(
            app,
            address=host,
            port=port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1_000),
            websockets=False,
            log_enabled=False,
            ssl_cert=tls_cert,
            ssl_key=tls_key,
        )

    async def serve(self) -> None:
        """Answer until stopped; then finish what was taken on, and return."""
        await self._server.serve()

    def stop(self) -> None:
        """Take nothing more; from the loop that serves."""
        self._server.stop()

    def run(self) -> None:
        """Serve until the process is interrupted or asked to end."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        await self.serve()

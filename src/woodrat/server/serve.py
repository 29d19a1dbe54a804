"""Serving: the application behind a server that slow clients cannot stall."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Unavailable
from woodrat.server import memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from woodrat.server.app import App

HEADER_SECONDS: Final = 10
"""Time limit for the headers of a request."""


CONNECTIONS_MAX: Final = 16_384
"""Most connections at once; followers of the log keep theirs, and others wait."""


BACKLOG: Final = 1_024
"""Most connections waiting for acceptance."""


GRACE_SECONDS: Final = 5.0
"""Grace period for connections when the server stops."""


SWITCH_SECONDS: Final = 0.0005
"""Longest time for which one thread keeps the interpreter."""


YOUNG_MAX: Final = 20_000
"""Threshold of the garbage collector; a request makes hundreds of objects, and hardly ever a cycle."""


class Serving:
    """An application at an address, until it is stopped."""

    def __init__(
        self,
        app: App,
        host: str,
        port: int,
        *,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        lifeline: int | None = None,
    ) -> None:
        """`lifeline` is a descriptor that closes when this process is to stop."""
        try:
            from granian.constants import HTTPModes, Interfaces
            from granian.http import HTTP1Settings
            from granian.server.embed import Server
        except ImportError as error:
            raise Unavailable(
                "The server needs the extra `server`. Nothing was started. Install it: pip install 'woodrat[server]'."
            ) from error
        self._app, self._lifeline = app, lifeline
        self._server: Any = Server(
            app,
            address=host,
            port=port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1_000),
            backlog=BACKLOG,
            backpressure=CONNECTIONS_MAX,
            websockets=False,
            log_enabled=False,
            ssl_cert=tls_cert,
            ssl_key=tls_key,
        )

    async def serve(self) -> None:
        """Serve until stopped; then finish the accepted requests, and return."""
        await self._server.serve()

    def stop(self) -> None:
        """Accept no more; called on the event loop."""
        self._app.refuse()
        self._server.stop()

    def run(self) -> None:
        """Serve until interrupted or asked to stop; then finish the accepted requests, and return in time."""
        # The loop and the thread that commits take turns all the time, and neither should wait long for the other.
        sys.setswitchinterval(SWITCH_SECONDS)
        memory.bound()
        # the server's own objects are permanent: scanning them again and again would only cause pauses
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_MAX, 20, 50)
        with asyncio.Runner(loop_factory=_new_loop()) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()

        def stop() -> None:
            stopping.set()
            self.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        if self._lifeline is not None:
            loop.add_reader(self._lifeline, stop)
        serving = loop.create_task(self.serve())
        stopped = loop.create_task(stopping.wait())
        await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait((serving,), timeout=GRACE_SECONDS)
        stopped.cancel()
        if done:
            serving.result()
            return
        # clients that still send or do not close had their grace period; writes that wait for their commit are
        # committed
        await asyncio.to_thread(self._app.close)
        for worker in self._server.wrks:
            worker.kill()
        serving.cancel()


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the event loop factory: uvloop if installed, else `None`, which means asyncio's own.

    The server owns the connections, so bytes from strangers reach neither of them.
    """
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop

"""Serving: the application behind a server that slow clients cannot stall."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Unavailable
from woodrat.server import logs, memory
from woodrat.server.connection import HEADER_SECONDS, Connection, Listener

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from woodrat.server.app import App

CONNECTIONS_MAX: Final = 16_384
"""How many connections are served at once; followers of the log keep theirs, and further ones wait for their turn."""


BACKLOG: Final = 1_024
"""How many connections may wait to be taken."""


GRACE_SECONDS: Final = 5.0
"""How long connections may take to end by themselves when the server does."""


TICK_SECONDS: Final = 1.0
"""How often connections are looked at that keep the server waiting."""


SWITCH_SECONDS: Final = 0.0005
"""How long one thread may keep the interpreter from another."""


YOUNG_MAX: Final = 20_000
"""How many new objects are looked through for cycles at once; a request makes hundreds, and hardly ever a cycle."""


_OUT_OF_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Why a connection cannot be taken just now."""


class Serving:
    """An application at an address, until it is stopped."""

    def __init__(
        self, app: App, host: str, port: int, *, tls_cert: Path | None = None, tls_key: Path | None = None
    ) -> None:
        self._app, self._address = app, (host, port)
        self._tls = None if tls_cert is None else _tls(tls_cert, tls_key)
        self._listener: Listener | None = None
        self._stopping = asyncio.Event()
        self._left = asyncio.Event()
        """Whether there may be room for a connection again."""

    async def serve(self) -> None:
        """Answer until stopped; then finish what was taken on, and return."""
        lifespan = _Lifespan(self._app)
        await lifespan.started()
        listening = _listening(*self._address)
        scheme = "http" if self._tls is None else "https"
        self._listener = listener = Listener(self._app, self._address, scheme, getattr(self._app, "way", None))
        taking = asyncio.create_task(self._take_all(listening, listener))
        ticking = asyncio.create_task(self._tick(listener))
        try:
            await self._stopping.wait()
            taking.cancel()
            listening.close()
            listener.end()
            while listener.tasks:
                await asyncio.wait(tuple(listener.tasks))
            await lifespan.ended()
        finally:
            taking.cancel()
            ticking.cancel()
            listening.close()
            listener.abort()

    async def _take_all(self, listening: socket.socket, listener: Listener) -> None:
        """Take connections as they come; while there are too many, further ones wait."""
        loop = asyncio.get_running_loop()
        opening: set[asyncio.Task[None]] = set()
        while True:
            while len(listener.connections) + len(opening) >= CONNECTIONS_MAX:
                self._left.clear()
                await self._left.wait()
            try:
                taken, _ = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in _OUT_OF_ROOM:
                    logs.failed(error)
                    await asyncio.sleep(TICK_SECONDS)
                continue
            task = loop.create_task(self._open(taken, listener))
            opening.add(task)
            task.add_done_callback(opening.discard)

    async def _open(self, taken: socket.socket, listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        seconds = None if self._tls is None else HEADER_SECONDS
        try:
            await loop.connect_accepted_socket(
                lambda: Connection(listener), taken, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except (OSError, TimeoutError):  # gone already, or no TLS
            taken.close()

    async def _tick(self, listener: Listener) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            listener.tick()
            self._left.set()

    def stop(self) -> None:
        """Take nothing more; from the loop that serves."""
        self._app.refuse()
        self._stopping.set()

    def run(self) -> None:
        """Serve until the process is interrupted or asked to end; then finish what was taken on, and return in time."""
        # The loop and the thread that commits take turns all the time, and neither should wait long for the other.
        sys.setswitchinterval(SWITCH_SECONDS)
        memory.bound()
        # What the server is made of stays: to look through it time and again would only hold everybody up.
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_MAX, 20, 50)
        asyncio.run(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()

        def stop() -> None:
            stopping.set()
            self.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        serving = loop.create_task(self.serve())
        stopped = loop.create_task(stopping.wait())
        await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait((serving,), timeout=GRACE_SECONDS)
        stopped.cancel()
        if done:
            serving.result()
            return
        # Whoever still sends, or does not close, was given the time; what waits for its commit is committed.
        await asyncio.to_thread(self._app.close)
        serving.cancel()


class _Lifespan:
    """Tells an application when it begins and ends, as ASGI has it."""

    def __init__(self, app: App) -> None:
        self._messages: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._answers: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._messages.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.create_task(self._live(app))

    async def _live(self, app: App) -> None:
        await app({"type": "lifespan", "asgi": {"version": "3.0"}}, self._messages.get, self._send)

    async def _send(self, message: Any) -> None:
        self._answers.put_nowait(message)

    async def started(self) -> None:
        """Wait until the application is ready."""
        await self._answer()

    async def ended(self) -> None:
        """Have the application end, and wait for that."""
        self._messages.put_nowait({"type": "lifespan.shutdown"})
        await self._answer()
        await self._task

    async def _answer(self) -> None:
        answer = asyncio.create_task(self._answers.get())
        await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            self._task.result()  # raises what went wrong
            raise Unavailable("The application ended by itself. Nothing was lost. Start the server again.")


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening


def _tls(cert: Path, key: Path | None) -> ssl.SSLContext:
    """Return how connections are encrypted: TLS 1.3 alone."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(cert, key, password="")
    return context

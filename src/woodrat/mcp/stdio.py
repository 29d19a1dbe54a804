"""Stdio: a server for one client, which started it and talks to it over standard input and output.

A line is a message. Standard output belongs to the protocol alone; other prints go to standard error. When the input
ends, or the process gets SIGTERM, calls in progress are answered first.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import orjson

from woodrat.errors import Fault, Unavailable
from woodrat.ledger.committer import Committer
from woodrat.mcp import NEEDS_EXTRA, messages
from woodrat.runs.relay import Relay
from woodrat.server.access import Caller, check

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.server.heavy_reads import Job

LINE_BYTES_MAX: Final = 64 * 1_048_576
"""Longest message, as over HTTP; the rest of a longer one is read and forgotten."""
CHUNK_BYTES: Final = 65_536
FINISH_SECONDS: Final = 10.0
"""Grace period for running calls after the input has ended."""
LAST_SECONDS: Final = 1.0
"""Time for the client to read the last answers after that."""


def serve(ledger: Ledger) -> None:
    """Serve one ledger until standard input ends."""
    try:
        from woodrat.mcp import server
    except ImportError as error:
        raise Unavailable(NEEDS_EXTRA) from error
    with Committer(ledger.context.engine) as committer, _own_output() as output:
        caller = Caller(ledger.tenant, ledger.agent)
        asyncio.run(_Conversation(server.make(_OneLedger(ledger, committer), caller), output).hold())


class _OneLedger:
    """The gateway to the ledger of the only client."""

    def __init__(self, ledger: Ledger, committer: Committer) -> None:
        self._ledger, self._committer = ledger, committer
        self.relay = Relay()

    def ledger(self, caller: Caller) -> Ledger:
        return self._ledger

    def allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        check(caller, grant, given)

    async def read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        return await asyncio.to_thread(call)

    async def write(self, caller: Caller, call: Callable[[], Any]) -> Any:
        return await self._committer.carry_out(call)


@contextmanager
def _own_output() -> Iterator[int]:
    """Yield a private descriptor of standard output; other prints go to standard error meanwhile."""
    sys.stdout.flush()
    shared = sys.stdout.fileno()
    own = os.dup(shared)
    os.dup2(sys.stderr.fileno(), shared)
    try:
        yield own
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(own, shared)  # and it stays open, as a thread may still be writing to it


class _Conversation:
    """The conversation of one client and the server, line by line."""

    def __init__(self, server: Any, output: int) -> None:
        self._server, self._output = server, output
        self._outgoing: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._waiting: set[str | int] = set()
        self._answered = asyncio.Event()
        self._ended = asyncio.Event()

    async def hold(self) -> None:
        """Serve until the client closes its side; a client that is gone is a broken pipe, as for any command."""
        import anyio
        from mcp.shared.message import SessionMessage

        self._to_server, asked = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        answers, self._from_server = anyio.create_memory_object_stream[SessionMessage](0)
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, ValueError):  # Windows has no such handlers
            loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        # Nothing ends a read or a write of a pipe from outside, so these threads must not keep the process alive.
        for work in (self._listen, self._send):
            threading.Thread(target=work, args=(loop,), name=f"woodrat-mcp{work.__name__}", daemon=True).start()
        try:
            async with asyncio.TaskGroup() as tasks:
                speaking = tasks.create_task(self._speak())
                finishing = tasks.create_task(self._finish())
                await self._server.run(asked, answers, self._server.create_initialization_options())
                await answers.aclose()
                await asyncio.wait([speaking], timeout=LAST_SECONDS)
                speaking.cancel()
                finishing.cancel()
        except BaseExceptionGroup as group:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from group  # Interrupted: errors raised while stopping do not matter.
            broken = group.subgroup(BrokenPipeError)
            if broken is None:
                raise
            raise BrokenPipeError from group

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Accept lines from standard input one at a time."""
        with suppress(RuntimeError):  # the event loop is closed, so the line is dropped
            try:
                for line in lines(sys.stdin.fileno()) if sys.stdin is not None else ():
                    asyncio.run_coroutine_threadsafe(self._take(line), loop).result()
            except (OSError, CancelledError):
                pass  # an unreadable input has ended, and so has one whose client takes no answers
            finally:
                loop.call_soon_threadsafe(self._ended.set)

    async def _take(self, line: bytes | None) -> None:
        import anyio
        import mcp_types as types
        from mcp.shared.message import SessionMessage

        if line is None:
            fault = Fault("", f"the line exceeds {LINE_BYTES_MAX} bytes, the limit", "Send less at once.")
            await self._say(messages.failed(None, messages.NO_REQUEST, [fault]))
            return
        if not line.strip():
            return
        if (answer := messages.answer_to(line)) is not None:
            await self._say(answer)
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            return  # a response without a request: dropped
        if isinstance(message, types.JSONRPCRequest):
            self._waiting.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no answer.
            self._settle((message.params or {}).get("requestId"))
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._to_server.send(SessionMessage(message))

    async def _speak(self) -> None:
        """Send the server's messages."""
        async for said in self._from_server:
            message = said.message
            await self._say(message.model_dump(by_alias=True, mode="json", exclude_unset=True))
            if not hasattr(message, "method"):
                self._settle(message.id)

    def _settle(self, id: Any) -> None:
        if isinstance(id, str | int):
            self._waiting.discard(id)
            self._answered.set()

    async def _finish(self) -> None:
        """When the client has closed its side, finish the calls in progress, and end."""
        await self._ended.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                while self._waiting:
                    self._answered.clear()
                    await self._answered.wait()
        await self._to_server.aclose()

    async def _say(self, message: dict[str, Any]) -> None:
        done = asyncio.get_running_loop().create_future()
        self._outgoing.put((orjson.dumps(message) + b"\n", done))
        await done

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        """Write messages, line by line."""
        with suppress(RuntimeError):  # the event loop is closed, so nobody waits
            while True:
                line, done = self._outgoing.get()
                try:
                    _write(self._output, line)
                except OSError as error:
                    loop.call_soon_threadsafe(_settle, done, error)
                else:
                    loop.call_soon_threadsafe(_settle, done, None)


def lines(source: int) -> Iterator[bytes | None]:
    """Yield the lines of a descriptor, including a last line without a line feed; `None` for one that is too long."""
    parts: list[bytes] = []
    size = 0
    while chunk := os.read(source, CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield b"".join([*parts, part]) if size + len(part) <= LINE_BYTES_MAX else None
            parts, size = [], 0
        size += len(rest)
        if size <= LINE_BYTES_MAX:
            parts.append(rest)
        else:
            parts.clear()
    if size:
        yield b"".join(parts) if size <= LINE_BYTES_MAX else None


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    """Report the outcome of a written line to its waiter."""
    if done.done():
        return  # nobody waits any more
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _write(output: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(output, left) :]

"""The application: from a request to an answer, as ASGI, over the ledgers of one engine.

It builds the parts of a server, starts and stops them, and routes each address: to a route (`calls.py`), a page of the
server itself, or an endpoint passed in (`gateway.py`). Reads run in threads, each on its own view; heavy reads run in
separate processes. Writes go to one committer. Keys and the audit have threads of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.engines.cancellation import RightOfWay
from woodrat.errors import NotFound, WoodratError, shown
from woodrat.ledger import growth
from woodrat.ledger.committer import Committer
from woodrat.runs.relay import Relay
from woodrat.server import docs_page, host, logs, problems, requests
from woodrat.server.audit import AUDIT_TENANT, Audit
from woodrat.server.body_reader import BodyReader
from woodrat.server.calls import Calls
from woodrat.server.erasures import PendingErasures, Window
from woodrat.server.gateway import HttpGateway
from woodrat.server.indexing import Indexing
from woodrat.server.keys import Callers
from woodrat.server.limits import Limits
from woodrat.server.rates import Rates, turns_of
from woodrat.server.readers import threads_of
from woodrat.server.reads import ReadExecutor
from woodrat.server.requests import Exchange, Gone, Receive, Scope, Send
from woodrat.server.routes import ROUTES
from woodrat.server.sessions import SESSIONS_TENANT, Sessions
from woodrat.server.sign_in import SignIn
from woodrat.server.status import Measures, Status, without_path
from woodrat.server.streams import LogStreams
from woodrat.server.tenants import Tenants
from woodrat.server.workers import WorkerFailed, Workers, plan_for
from woodrat.server.writes import WriteExecutor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine
    from woodrat.merge import Policy
    from woodrat.server.deliveries import Deliveries
    from woodrat.server.docs_page import ConstantAnswer
    from woodrat.server.gateway import Endpoint, Site
    from woodrat.server.keys import Access
    from woodrat.server.route import Route

TEND_SECONDS: Final = 1.0
"""Interval at which keys are reloaded and the audit is flushed."""
ASK_AGAIN: Final = (b"cache-control", b"no-cache")
"""Cache header of answers without data: a cache may keep them and must revalidate."""
ID_BYTES: Final = 8
"""Random bytes in a request id."""
IDS_DRAWN: Final = 64
"""Request ids drawn at once."""
END_READS_SECONDS: Final = 2.0
"""Grace period for reads in progress when the server stops."""


class ServicePage(NamedTuple):
    """An address outside of the routes."""

    verb: str
    """Its name in logs and metrics."""
    answer: Callable[[Exchange], Awaitable[None]]
    """Answers a request."""
    reads: bool = True
    """True if it only allows GET; otherwise it checks methods itself."""
    probe: bool = False
    """True if process supervisors call it, by address instead of host name."""


class App:
    """An ASGI application over the ledgers of one engine."""

    def __init__(
        self,
        engine: Engine,
        keys: Access,
        *,
        clock: Clock,
        policies: Mapping[str, Policy],
        endpoints: Sequence[Endpoint] = (),
        limits: Limits | None = None,
        strict: bool | str = False,
        routes: Sequence[Route] = ROUTES,
        deliveries: Deliveries | None = None,
        proofs: str | None = None,
        redact: str | None = None,
        site: Site | None = None,
        compact_window: Window | None = None,
    ) -> None:
        self.engine, self.keys, self.limits = engine, keys, (limits := limits or Limits())
        self._clock, self._deliveries, self._endpoints = clock, deliveries, endpoints
        self._closing = asyncio.Event()
        self._ids: list[str] = []
        self._tending: tuple[asyncio.Task[None], ...] = ()
        self.measures = Measures()
        """Counts and times of requests."""
        self.way = RightOfWay()
        """Gives arriving requests priority over long reads."""
        self.threads, self.turns = threads_of(limits.heavy_reads.running_max, self.way), turns_of(limits)
        """Thread pools and concurrency limits, by kind of work."""
        self.tenants = Tenants(engine, clock, policies, strict=strict, proofs=proofs, redact=redact)
        """The ledgers."""
        self.audit = Audit(self.tenants.of(AUDIT_TENANT, "server"), clock, logs.failed)
        """The audit of reads."""
        self._committer, self._relay = Committer(engine, callers=lambda: self.measures.calls_open), Relay()
        self.sessions = Sessions(self.tenants.of(SESSIONS_TENANT, "server"), clock)
        """Browser sessions."""
        self._callers = Callers(keys, Rates(limits.calls_per_second), self.sessions)
        # only this process knows routes beyond the usual ones
        plan = plan_for(engine, policies, proofs, redact, strict=strict) if routes is ROUTES else None
        workers = None if plan is None else Workers(plan)
        own = partial(self.tenants.of, agent="server")
        self._indexing = Indexing(engine, own, self.threads["indexes"], self._closing)
        self.reads = ReadExecutor(
            *(self.tenants, self.threads, self.turns, self._indexing, workers, self._closing, limits.read_seconds)
        )
        """Executes reads."""
        self.writes = WriteExecutor(self._committer, self._relay, limits, self.threads, self.turns)
        """Executes writes."""
        self.body_reader = BodyReader(limits, self.threads, self.turns)
        """Reads request bodies."""
        self._router = Router(routes)
        gateway = HttpGateway(
            *(self._relay, self._callers, self.tenants, self.body_reader, self.reads, self.writes, self.audit),
            reads_soon=engine.name == "sqlite",  # a reader of SQLite waits for nobody
        )
        streams = LogStreams(gateway, self.threads["streams"], growth.growth_of(engine), self._closing)
        self._calls = Calls(gateway, streams, self.turns, self.measures, local=limits.local)
        self._erasures = PendingErasures(engine, own, clock, compact_window, self._closing)
        status = Status(
            *(engine, self._callers, self.audit, self.measures, self.turns, self.writes, self.threads["keys"]),
            lambda: self._indexing.lacking,
            self.tenants.refused,
        )
        self._pages: dict[bytes, ServicePage] = {
            b"/healthz": ServicePage("healthz", status.healthy, probe=True),
            b"/readyz": ServicePage("readyz", status.ready, probe=True),
            b"/metrics": ServicePage("metrics", status.metrics),
            b"/openapi.json": ServicePage("openapi", partial(_send, docs_page.openapi_document)),
            b"/docs": ServicePage("docs", partial(_send, docs_page.reference_page)),
            b"/session": ServicePage("session", SignIn(gateway, self.sessions).answer, reads=False),
        }
        self._site = site
        if site is not None:
            self._site_page = ServicePage("inspector", site.answer)
        for endpoint in endpoints:
            self._pages[endpoint.path] = ServicePage(
                endpoint.name, partial(endpoint.answer, gateway=gateway), reads=False
            )
        self._below = tuple(endpoint.path for endpoint in endpoints if endpoint.path.endswith(b"/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self._let_go_first()
            await self._handle(scope, receive, send)

    def _let_go_first(self) -> None:
        """Let an arrived request go before long work in threads until the event loop has begun to handle it."""
        if not self.way.taken and any(threads.busy for threads in self.threads.values()):
            loop = asyncio.get_running_loop()
            self.way.take()
            loop.call_soon(loop.call_soon, self.way.give)

    # --------------------------------------------------------------------------------------------- start and end

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await asyncio.to_thread(self._refresh_keys)
                await asyncio.to_thread(self._write_down)
                loop = asyncio.get_running_loop()
                tending = (self._tend_keys(), self._tend(), self._indexing.tend(), self._erasures.tend())
                self._tending = tuple(map(loop.create_task, tending))
                await send({"type": "lifespan.startup.complete"})
            else:
                self._closing.set()
                await asyncio.gather(*self._tending)
                await asyncio.to_thread(self.close)
                for endpoint in self._endpoints:
                    await endpoint.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def refuse(self) -> None:
        """Stop accepting requests and end endless streams; call it from the serving event loop.

        Reads that outlast the grace period are cancelled; clients can retry.
        """
        if not self._closing.is_set():
            self._closing.set()
            asyncio.get_running_loop().call_later(END_READS_SECONDS, self._give_up)

    def _give_up(self) -> None:
        for turns in self.turns.values():
            turns.give_up(problems.closed)
        self.reads.give_up()

    def close(self) -> None:
        """Finish all acknowledged and queued work, and accept nothing more."""
        self._committer.close()
        if self.reads.workers is not None:
            self.reads.workers.close()
        for threads in self.threads.values():
            threads.shutdown()
        if self._deliveries is not None:
            self._deliveries.close()
        self._write_audit()
        self.tenants.close()

    async def _tend_keys(self) -> None:
        """Reload keys that were made or revoked elsewhere, at a fixed interval, independent of all other work."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), TEND_SECONDS)
                return
            await loop.run_in_executor(self.threads["keys"], self._refresh_keys)

    async def _tend(self) -> None:
        """Flush the audit and release idle runs, at a fixed interval; the writes wait their turn."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), TEND_SECONDS)
                return
            await loop.run_in_executor(self.threads["audit"], self._write_down)
            if len(self._relay) and not self._closing.is_set():
                await self._committer.carry_out(lambda: self._relay.let_go_of_quiet(self._clock.now()))

    def _refresh_keys(self) -> None:
        try:
            self.keys.refresh()
            self.sessions.refresh()
        except WoodratError as error:  # it is tried again soon
            logs.failed(error)

    def _write_down(self) -> None:
        self._write_audit()
        if self._deliveries is not None:
            try:
                self._deliveries.refresh()
            except WoodratError as error:
                logs.failed(error)

    def _write_audit(self) -> None:
        dropped = self.audit.dropped
        try:
            self.audit.flush()
        except WoodratError as error:
            logs.failed(error)
        if self.audit.dropped > dropped:
            logs.event("audit", logs.ERROR, dropped=self.audit.dropped - dropped, total=self.audit.dropped)

    # --------------------------------------------------------------------------------------------------- one request

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self.limits
        times = limits.wait_seconds, limits.take_seconds
        exchange = Exchange(scope, receive, send, self._next_id(), self.body_reader.held, *times)
        loop = asyncio.get_running_loop()
        began, verb = loop.time(), "none"
        self.measures.open += 1
        try:
            try:
                if self._closing.is_set():
                    raise problems.closed()
                if limits.proxied:
                    exchange.trust_proxy()
                page = self._pages.get(exchange.path)
                if page is None or not page.probe:
                    host.check(exchange, limits)
                    if exchange.asks_further and exchange.header(b"origin") is not None:
                        await exchange.allow_further()
                        return
                if page is None and exchange.path.startswith(self._below):
                    page = next(self._pages[path] for path in self._below if exchange.path.startswith(path))
                if b"cookie" in exchange.headers:
                    await self._find_session(exchange)
                if page is None and self._site is not None and not self._router.knows(exchange.path):
                    page = self._site_page
                if page is not None:
                    verb = page.verb
                    if page.reads and exchange.method not in ("GET", "HEAD"):
                        raise problems.not_a_method(exchange.method, exchange.path, ("GET", "HEAD"))
                    await page.answer(exchange)
                else:
                    route, name = self._router.route(exchange)
                    verb = route.verb
                    await self._calls.answer(exchange, route, name, scope.get("query_string", b""))
            except WoodratError as error:
                await exchange.problem(without_path(error, self.engine))
            except (Gone, asyncio.CancelledError):
                raise
            except Exception as error:
                where = {"worker": str(error)} if isinstance(error, WorkerFailed) else {}
                logs.failed(error, request=exchange.id, verb=verb, **where)
                await exchange.problem(problems.failure(exchange.id))
        except Gone:
            return
        finally:
            self.measures.open -= 1
            exchange.let_go()
            took = loop.time() - began
            self.measures.note(verb, exchange.status, took)
            if logs.is_enabled():
                logs.event(
                    "request",
                    request=exchange.id,
                    verb=verb,
                    status=exchange.status,
                    ms=round(took * 1_000, 1),
                    **exchange.told,
                )

    async def _find_session(self, exchange: Exchange) -> None:
        """Attach the session of a request, if it shows one; its validity is checked where it matters."""
        exchange.read_cookie()
        cookie = exchange.cookie
        if cookie is not None and not self.sessions.is_cached(cookie):
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.threads["keys"], self.sessions.look_up, cookie)

    def _next_id(self) -> str:
        """Return a request id; ids are drawn in bulk, because each system call releases the interpreter."""
        if not self._ids:
            drawn = self._clock.random(ID_BYTES * IDS_DRAWN)
            self._ids = [drawn[start : start + ID_BYTES].hex() for start in range(0, len(drawn), ID_BYTES)]
            self._ids.reverse()
        return self._ids.pop()


class Router:
    """Routes by address and method. An address has at most one variable part, which may contain slashes."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._exact: dict[bytes, dict[str, Route]] = {}
        under: dict[tuple[bytes, bytes], dict[str, Route]] = {}
        for route in routes:
            before, brace, rest = route.path.partition("{")
            if brace:
                around = (before.encode(), rest.partition("}")[2].encode())
                under.setdefault(around, {})[route.method] = route
            else:
                self._exact.setdefault(before.encode(), {})[route.method] = route
        # a path that begins like a route is a call, never a page
        self._roots = tuple({b"/%b/" % route.path.encode().split(b"/")[1] for route in routes})
        # longest first: a suffix after a run's id is not part of the id
        self._under = sorted(under.items(), key=lambda item: (-len(item[0][0]), -len(item[0][1])))

    def knows(self, path: bytes) -> bool:
        """Return True if the address lies below the routes, even if no route matches it."""
        return path in self._exact or path.startswith(self._roots)

    def route(self, exchange: Exchange) -> tuple[Route, str]:
        """Return the route of a request, and the variable part of its address."""
        path = exchange.path
        table, name = self._exact.get(path), ""
        if table is None:
            for (before, after), under in self._under:
                end = len(path) - len(after)
                if path.startswith(before) and path.endswith(after) and end > len(before):
                    table, name = under, requests.plain(path[len(before) : end])
                    break
        if table is None:
            raise NotFound(
                f"{shown(path.decode('latin-1'))}: unknown address. {problems.NOTHING_DONE} See /openapi.json."
            )
        route = table.get("GET" if exchange.method == "HEAD" else exchange.method)
        if route is None:
            raise problems.not_a_method(exchange.method, path, (*table, *(("HEAD",) if "GET" in table else ())))
        return route, name


async def _send(document: Callable[[], ConstantAnswer], exchange: Exchange) -> None:
    """Answer with a constant document."""
    await exchange.send(*document(), cached=ASK_AGAIN)

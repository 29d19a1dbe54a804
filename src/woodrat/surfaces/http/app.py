"""The application: from a request to a verb of the ledger and back, as ASGI.

Reads run in worker threads, each on its own view. Writes go to one committer: those that wait at the same time share a
durable transaction. Nothing of a request is trusted before its host, its origin, its key and its sizes are known.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.ids import TenantId
from woodrat.errors import Fault, Forbidden, NotFound, Refused, WoodratError, shown
from woodrat.frozen import dataclass
from woodrat.ledger.committing import Committer
from woodrat.ledger.ledger import Ledger
from woodrat.ledger.relaying import Relay
from woodrat.surfaces import access
from woodrat.surfaces.access import KEYS_TENANT
from woodrat.surfaces.http import exchange, following
from woodrat.surfaces.http.arguments import arguments, typed
from woodrat.surfaces.http.exchange import NOTHING_DONE, Exchange, Gone, Receive, Rejected, Scope, Send
from woodrat.surfaces.http.measuring import Measures
from woodrat.surfaces.http.rates import Rates
from woodrat.surfaces.http.routes import ROUTES, Route
from woodrat.surfaces.mcp import endpoint
from woodrat.surfaces.means import Means
from woodrat.surfaces.wire import version

if TYPE_CHECKING:
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine
    from woodrat.state.policy import Policy
    from woodrat.surfaces.access import Access, Caller

ROOM_BYTES: Final = 16 * 1_048_576
"""Below how much room on the disk the server says that it is degraded."""
_LOG = logging.getLogger("woodrat.http")
READERS: Final = 8
"""How many reads run at once; further ones wait their turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a stranger may take of the server."""

    body_bytes_max: int = 64 * 1_048_576
    """Longest body, unpacked."""
    wait_seconds: float = 30.0
    """How long a body may take to arrive."""
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Names the server answers to; a page of another name in a browser gets nothing."""
    origins: tuple[str, ...] = ()
    """Further origins whose pages may call."""
    calls_per_second: int | None = None
    """How many calls a key may make a second, on average; a burst may be ten times that."""


class App:
    """An ASGI application over the ledgers of one engine."""

    def __init__(
        self,
        engine: Engine,
        keys: Access,
        *,
        clock: Clock,
        policies: Mapping[str, Policy],
        limits: Limits | None = None,
        strict: bool = False,
    ) -> None:
        self.engine, self.keys, self.limits = engine, keys, limits or Limits()
        self._clock, self._policies, self._strict = clock, policies, strict
        self._means = Means(self._ledger, self._allow, self._reading, self._writing, Relay())
        self._agents = endpoint.Endpoint(self._means, self.limits.body_bytes_max)
        self._committer = Committer(engine)
        self._readers = ThreadPoolExecutor(READERS, "woodrat-reader")
        self._ledgers: dict[tuple[str, str], Ledger] = {}
        self._exact: dict[bytes, dict[str, Route]] = {}
        self._under: list[tuple[bytes, dict[str, Route]]] = []
        under: dict[bytes, dict[str, Route]] = {}
        for route in ROUTES:
            before, brace, _ = route.path.partition("{")
            table = under if brace else self._exact
            table.setdefault(before.encode(), {})[route.method] = route
        # The longest first: /v1/runs/record is no run.
        self._under = sorted(under.items(), key=lambda item: -len(item[0]))
        self._others: dict[bytes, Callable[[Exchange], Any]] = {
            b"/healthz": self._healthy,
            b"/readyz": self._ready,
            b"/metrics": self._metrics,
            b"/openapi.json": self._document,
            b"/docs": self._pages,
            endpoint.PATH: self._mcp,
            b"/v1/traces": self._traces,
        }
        self._measures = Measures()
        self._rates = Rates(self.limits.calls_per_second)
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                self._closing.set()
                await asyncio.to_thread(self.close)
                await self._agents.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def close(self) -> None:
        """Finish what was acknowledged or waits, and take nothing more."""
        self._committer.close()
        self._readers.shutdown(wait=True, cancel_futures=True)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = Exchange(
            scope, receive, send, self._clock.random(8).hex(), self.limits.body_bytes_max, self.limits.wait_seconds
        )
        loop = asyncio.get_running_loop()
        began, verb = loop.time(), "none"
        self._measures.open += 1
        try:
            try:
                self._check_caller(found)
                special = self._others.get(found.path)
                if special is None and found.path.startswith(b"/neotoma/"):
                    special = self._neotoma
                if special is not None:
                    await special(found)
                else:
                    route, rest = self._route(found)
                    verb = route.verb
                    await self._call(found, route, rest, scope.get("query_string", b""))
            except WoodratError as error:
                await found.problem(error)
            except (Gone, asyncio.CancelledError):
                raise
            except Exception:
                _LOG.exception("request %s failed", found.id)
                await found.problem(_failure(found.id))
        except Gone:
            return
        finally:
            self._measures.open -= 1
            took = loop.time() - began
            self._measures.note(verb, found.status, took)
            _LOG.info("request %s verb=%s status=%d ms=%.1f", found.id, verb, found.status, took * 1_000)

    def _check_caller(self, found: Exchange) -> None:
        """Refuse a page of a foreign site: its browser sends our address with another host or origin."""
        host = found.header(b"host") or ""
        if _name(host) not in self.limits.hosts:
            text = f"host: {shown(host)} is not a name of this server. {NOTHING_DONE} Call it by one of its names."
            raise Rejected(421, text)
        origin = found.header(b"origin")
        if origin is not None and origin not in self.limits.origins and origin.partition("://")[2] != host:
            raise Forbidden(f"origin: {shown(origin)} may not call this server. {NOTHING_DONE} Allow it with --origin.")

    def _route(self, found: Exchange) -> tuple[Route, str]:
        table, rest = self._exact.get(found.path), ""
        if table is None:
            for prefix, under in self._under:
                if found.path.startswith(prefix) and len(found.path) > len(prefix):
                    table, rest = under, exchange.plain(found.path[len(prefix) :])
                    break
        if table is None:
            raise NotFound(
                f"{shown(found.path.decode('latin-1'))}: there is no such address. {NOTHING_DONE} See /openapi.json."
            )
        route = table.get("GET" if found.method == "HEAD" else found.method)
        if route is None:
            allowed = ", ".join(sorted({*table, *(("HEAD",) if "GET" in table else ())}))
            text = f"{found.method}: not a method of {found.path.decode('latin-1')}. {NOTHING_DONE} Use {allowed}."
            raise Rejected(405, text, ((b"allow", allowed.encode()),))
        return route, rest

    async def _call(self, found: Exchange, route: Route, rest: str, asked: bytes) -> None:
        caller = self._caller(found)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        query = exchange.query(asked)
        body = await self._body(found, route, query)
        headers = {"Idempotency-Key": found.header(b"idempotency-key")}
        given = arguments(route, rest, query, body, headers)
        condition = found.header(b"if-match")
        if condition is not None:
            _condition(route, given, condition)
        access.check(caller, route.grant, given)
        ledger = self._ledger(caller)
        if route.verb == "log" and (found.accepts(exchange.EVENTS) or found.accepts(exchange.LINES)):
            await self._follow(found, ledger, given)
            return
        if route.writes:
            future = self._committer.submit(lambda: route.answer(ledger, **given))
            answer = await asyncio.wrap_future(future)
        else:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._readers, _read, route, ledger, given)
        version = answer.get("version") if isinstance(answer, dict) and route.verb == "show" else None
        headers_out = () if version is None else ((b"etag", b'"%d"' % version),)
        await found.answer(answer, headers=headers_out)

    async def _body(self, found: Exchange, route: Route, query: dict[str, list[str]]) -> Any:
        """Return the body of a call; records may come a line each, and what is said about them in the address."""
        if route.method != "POST":
            return None
        kind = found.content_type()
        if kind == exchange.LINES and route.verb == "store":
            said = {param.spelled: param for param in route.params if param.inside == "body"}
            about = {name: query.pop(name) for name in list(query) if name in said and name != "records"}
            records = exchange.lines(await found.body())
            return {"records": records, **typed({name: said[name] for name in about}, about)}
        if kind != exchange.JSON:
            taken = "application/json or application/x-ndjson" if route.verb == "store" else "application/json"
            got = shown(kind.decode("latin-1"))
            raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send {taken}.")
        return exchange.document(await found.body())

    async def _follow(self, found: Exchange, ledger: Ledger, given: dict[str, Any]) -> None:
        """Answer with the log itself: to its present end as lines, or on and on as events."""
        after = given.get("after", -1)
        if found.accepts(exchange.LINES):
            past = ledger.at(given["as_of"]) if "as_of" in given else ledger
            await found.stream(exchange.LINES, following.lines(past, self._readers, after))
            return
        last = found.header(b"last-event-id")
        if last is not None:
            if not (last.isascii() and last.isdigit() and len(last) <= 16):
                raise Refused([Fault("Last-Event-ID", f"got {shown(last)}", "Send the position you had last.")])
            after = int(last)
        await found.stream(exchange.EVENTS, following.events(ledger, self._readers, after, self._closing))

    def _allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        """Refuse what a key does not carry, on the surfaces beside the routes."""
        access.check(caller, grant, given)

    async def _reading(self, call: Callable[[], Any]) -> Any:
        """Do something that reads, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, call)

    async def _writing(self, call: Callable[[], Any]) -> Any:
        """Do something that writes; it is durable before this returns."""
        return await asyncio.wrap_future(self._committer.submit(call))

    async def _mcp(self, found: Exchange) -> None:
        caller = self._caller(found)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        await self._agents.answer(found, caller)

    async def _neotoma(self, found: Exchange) -> None:
        from woodrat.surfaces.neotoma import endpoint

        def who() -> Caller:
            caller = self._caller(found)
            self._rates.take(caller.key, asyncio.get_running_loop().time())
            return caller

        await endpoint.answer(found, who, self._means)

    async def _traces(self, found: Exchange) -> None:
        from woodrat.surfaces.otlp import endpoint

        caller = self._caller(found)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        await endpoint.answer(found, caller, self._means)

    def _caller(self, found: Exchange) -> Caller:
        """Return who calls; a key that is missing, unknown, revoked or over is told apart by nobody."""
        scheme, _, token = (found.header(b"authorization") or "").partition(" ")
        caller = self.keys.caller(token.strip() if scheme.lower() == "bearer" else None)
        if caller is None:
            text = f"There is no key, or it opens nothing. {NOTHING_DONE} Send a key: Authorization: Bearer wrat_…"
            raise Rejected(401, text, ((b"www-authenticate", b"Bearer"),), code=Forbidden.code)
        return caller

    def _ledger(self, caller: Caller) -> Ledger:
        key = (caller.tenant, caller.agent)
        ledger = self._ledgers.get(key)
        if ledger is None:
            ledger = self._ledgers[key] = Ledger(
                self.engine,
                tenant=caller.tenant,
                agent=caller.agent,
                clock=self._clock,
                policies=self._policies,
                strict=self._strict,
            )
        return ledger

    async def _healthy(self, found: Exchange) -> None:
        """The process answers."""
        await found.answer({"status": "ok"})

    async def _ready(self, found: Exchange) -> None:
        """The engine answers; whether it could also write is said as far as a reader can tell."""
        loop = asyncio.get_running_loop()
        problem = await loop.run_in_executor(self._readers, _degraded, self.engine)
        status = {"status": "ok"} if problem is None else {"status": "degraded", "problem": problem}
        await found.answer(status, 200 if problem is None else 503)

    async def _metrics(self, found: Exchange) -> None:
        self._caller(found)
        await found.send(self._measures.text().encode(), b"text/plain; version=0.0.4")

    async def _document(self, found: Exchange) -> None:
        from woodrat.surfaces.http import openapi

        await found.answer(openapi.document(version()))

    async def _pages(self, found: Exchange) -> None:
        from woodrat.surfaces.http import pages

        await found.send(pages.reference(version()), b"text/html; charset=utf-8", headers=pages.HEADERS)


def _failure(request: str) -> Rejected:
    """Return what to say of a mistake of our own."""
    text = (
        f"The server failed at this request, {request}; its log says how. Whether something was written is not known. "
    )
    return Rejected(500, text + "Send the same call with the same Idempotency-Key again.", code="unavailable")


def _degraded(engine: Engine) -> str | None:
    """Return what keeps the engine from its work, if anything does."""
    try:
        with engine.view(TenantId(KEYS_TENANT)) as view:
            view.head()
    except WoodratError as error:
        return str(error)
    path = getattr(engine, "path", None)
    if path is not None:
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
        if free < ROOM_BYTES:
            return f"The disk has {free} bytes left. Reads go on; writes may be refused. Free some space."
    return None


def _read(route: Route, ledger: Ledger, given: dict[str, Any]) -> Any:
    if not route.moment:
        return route.answer(ledger, **given)
    as_of, effective = given.pop("as_of", None), given.pop("effective", None)
    past = ledger if as_of is None and effective is None else ledger.at(as_of, effective=effective)
    return route.answer(past, **given)


def _condition(route: Route, given: dict[str, Any], condition: str) -> None:
    """Take `If-Match` for the version an entity must have."""
    if not any(param.name == "if_version" for param in route.params):
        raise Refused([Fault("If-Match", "this address takes no condition", "Leave the header out.")])
    version = condition.strip().removeprefix("W/").strip('"')
    if not (version.isascii() and version.isdigit() and len(version) <= 16):
        raise Refused([Fault("If-Match", f"got {shown(condition)}", 'Send the ETag that reading gave, such as "17".')])
    if "if_version" in given and given["if_version"] != int(version):
        raise Refused(
            [Fault("If-Match", f"got {shown(condition)}, and if_version says otherwise", "Send one of them.")]
        )
    given["if_version"] = int(version)


def _name(host: str) -> str:
    """Return a host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()

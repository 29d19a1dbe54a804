"""The application: from a request to a verb of the ledger and back, as ASGI.

Reads run in worker threads, each on its own view. Writes go to one committer: those that wait at the same time share a
durable transaction. Nothing of a request is trusted before its host, its origin, its key and its sizes are known.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from woodrat.canon.ids import TenantId
from woodrat.errors import Corrupt, Fault, Forbidden, NotFound, Outdated, Refused, Unavailable, WoodratError, shown
from woodrat.frozen import dataclass, replace
from woodrat.ledger.arguments import KNOWN, NEW
from woodrat.ledger.committing import Committer
from woodrat.ledger.ledger import Ledger
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.relaying import Relay
from woodrat.ledger.report import Report
from woodrat.ledger.tending import check_put_back, signing_for
from woodrat.state.snapshot import Snapshot
from woodrat.surfaces import access, answers, whole
from woodrat.surfaces.access import KEYS_TENANT
from woodrat.surfaces.auditing import AUDIT_TENANT, Audit
from woodrat.surfaces.http import exchange, following, logs
from woodrat.surfaces.http.arguments import ABSENT, arguments
from woodrat.surfaces.http.exchange import NOTHING_DONE, Exchange, Gone, Receive, Rejected, Scope, Send
from woodrat.surfaces.http.measuring import Measures
from woodrat.surfaces.http.rates import Rates
from woodrat.surfaces.http.readers import Readers
from woodrat.surfaces.http.routes import ROUTES, WAIT_SECONDS_MAX, Route
from woodrat.surfaces.http.spelling import Shown, Spelling
from woodrat.surfaces.http.spelling import shown as shown_as
from woodrat.surfaces.mcp import endpoint
from woodrat.surfaces.means import Means
from woodrat.surfaces.wire import version

if TYPE_CHECKING:
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine
    from woodrat.keeping.signing import Signing
    from woodrat.ledger.past import Past
    from woodrat.state.policy import Policy
    from woodrat.surfaces.access import Access, Caller
    from woodrat.surfaces.webhooks import Delivering

ROOM_BYTES: Final = 16 * 1_048_576
"""Below how much room on the disk the server says that it is degraded."""
TEND_SECONDS: Final = 1.0
"""How often keys are read anew, the audit is written down, and answers kept at hand are looked at anew."""
LONG_BYTES: Final = 65_536
"""From how many bytes on a body is read in a thread."""
LONG_RECORDS: Final = 20
"""From how many records on the report of a write is spelled in a thread."""
ASK_AGAIN: Final = (b"cache-control", b"no-cache")
"""That an answer may be kept, and is asked about before it is used again."""
END_READS_SECONDS: Final = 2.0
"""How long what is being read may still take when the server ends."""
READERS: Final = 8
"""How many reads run at once; further ones wait their turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a stranger may take of the server."""

    body_bytes_max: int = 64 * 1_048_576
    """Longest body, unpacked."""
    import_bytes_max: int = 1_024 * 1_048_576
    """Longest part of another log that is taken in at once; it waits in a file."""
    wait_seconds: float = 30.0
    """How long a body may take to arrive."""
    read_seconds: float = 60.0
    """How long reading what is to be answered may take."""
    take_seconds: float = 60.0
    """How long a caller may take nothing of a long answer before the connection is closed."""
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Names the server answers to; a page of another name in a browser gets nothing."""
    origins: tuple[str, ...] = ()
    """Further origins whose pages may call."""
    proxied: bool = False
    """Whether a proxy in front says under which name it was called (`X-Forwarded-Host`), and what it calls a request
    (`X-Request-Id`); else nobody is believed."""
    local: bool = False
    """Whether nobody but this machine can call, not even through a proxy: then webhooks may lead to it as well."""
    calls_per_second: int | None = None
    """How many calls a key may make a second, on average; a burst may be ten times that."""


class _Beside(NamedTuple):
    """What there is at an address beside the routes."""

    verb: str
    """What logs and counts call it."""
    answer: Callable[[Exchange], Awaitable[None]]
    """Answers a request."""
    reads: bool = True
    """Whether it is there to be read alone; otherwise it knows its methods itself."""


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
        routes: Sequence[Route] = ROUTES,
        deliveries: Delivering | None = None,
        proofs: str | None = None,
        redact: str | None = None,
    ) -> None:
        self.engine, self.keys, self.limits = engine, keys, limits or Limits()
        self._clock, self._policies, self._strict = clock, policies, strict
        self._proofs, self._redact = proofs, redact
        self._signings: dict[str, Signing] = {}
        self._relay = Relay()
        self._means = Means(self._ledger, self._allow, self._reading, self._writing, self._relay)
        self._agents = endpoint.Endpoint(self._means, self.limits.body_bytes_max)
        self._committer = Committer(engine)
        self._readers = Readers(READERS, "woodrat-reader")
        self._ledgers: dict[tuple[str, str], Ledger] = {}
        # What takes less than handing it to a thread is read on the loop, as a reader of SQLite waits for nobody.
        self._reads_soon = engine.name == "sqlite"
        self._exact: dict[bytes, dict[str, Route]] = {}
        under: dict[tuple[bytes, bytes], dict[str, Route]] = {}
        for route in routes:
            before, brace, rest = route.path.partition("{")
            if brace:
                around = (before.encode(), rest.partition("}")[2].encode())
                under.setdefault(around, {})[route.method] = route
            else:
                self._exact.setdefault(before.encode(), {})[route.method] = route
        # The longest first: what follows a run's id is no part of it.
        self._under = sorted(under.items(), key=lambda item: (-len(item[0][0]), -len(item[0][1])))
        self._others: dict[bytes, _Beside] = {
            b"/healthz": _Beside("healthz", self._healthy),
            b"/readyz": _Beside("readyz", self._ready),
            b"/metrics": _Beside("metrics", self._metrics),
            b"/openapi.json": _Beside("openapi", self._document),
            b"/docs": _Beside("docs", self._pages),
            endpoint.PATH: _Beside("mcp", self._mcp, reads=False),
            b"/v1/traces": _Beside("traces", self._traces, reads=False),
        }
        self._measures = Measures()
        self._spelling = Spelling(engine.stamp)
        self._rates = Rates(self.limits.calls_per_second)
        self._closing = asyncio.Event()
        self._reads: set[asyncio.Future[Sent]] = set()
        """What is being read for somebody who waits."""
        self._audit = Audit(self._ledger_of(AUDIT_TENANT, "server"), clock)
        self._deliveries = deliveries
        self._tending: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await asyncio.to_thread(self._look_after)
                self._tending = asyncio.get_running_loop().create_task(self._tend())
                await send({"type": "lifespan.startup.complete"})
            else:
                self._closing.set()
                if self._tending is not None:
                    await self._tending
                await asyncio.to_thread(self.close)
                await self._agents.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def refuse(self) -> None:
        """Take no further request, and end those that have no end; from the loop that serves.

        Reads that take longer than a moment from then on are given up: they can be asked again.
        """
        if not self._closing.is_set():
            self._closing.set()
            asyncio.get_running_loop().call_later(END_READS_SECONDS, self._give_up)

    def _give_up(self) -> None:
        for read in tuple(self._reads):
            read.cancel()

    def close(self) -> None:
        """Finish what was acknowledged or waits, and take nothing more."""
        self._committer.close()
        self._readers.shutdown()
        if self._deliveries is not None:
            self._deliveries.close()
        self._write_audit()
        for signing in self._signings.values():
            signing.close()

    async def _tend(self) -> None:
        """Take in keys that were made or revoked elsewhere, and write the audit down, time and again."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            try:
                await asyncio.wait_for(self._closing.wait(), TEND_SECONDS)
            except TimeoutError:
                await loop.run_in_executor(self._readers, self._look_after)
                self._spelling.forget()
                if len(self._relay) and not self._closing.is_set():
                    await self._committer.carry_out(lambda: self._relay.let_go_of_quiet(self._clock.now()))

    def _look_after(self) -> None:
        self._write_audit()
        for work in (self.keys.refresh, *(() if self._deliveries is None else (self._deliveries.refresh,))):
            try:
                work()
            except WoodratError as error:  # it is tried again soon
                logs.failed(error)

    def _write_audit(self) -> None:
        try:
            self._audit.flush()
        except WoodratError as error:
            logs.failed(error)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self.limits
        times = limits.wait_seconds, limits.take_seconds
        found = Exchange(scope, receive, send, self._clock.random(8).hex(), limits.body_bytes_max, *times)
        loop = asyncio.get_running_loop()
        began, verb = loop.time(), "none"
        self._measures.open += 1
        try:
            try:
                if self._closing.is_set():
                    raise _closed()
                if limits.proxied:
                    found.go_by(found.header(b"x-request-id"))
                self._check_caller(found)
                if found.asks_further and found.header(b"origin") is not None:
                    await found.allow_further()
                    return
                beside = self._others.get(found.path)
                if beside is None and found.path.startswith(b"/neotoma/"):
                    beside = _Beside("neotoma", self._neotoma, reads=False)
                if beside is not None:
                    verb = beside.verb
                    if beside.reads and found.method not in ("GET", "HEAD"):
                        raise _not_a_method(found, ("GET", "HEAD"))
                    await beside.answer(found)
                else:
                    route, rest = self._route(found)
                    verb = route.verb
                    await self._call(found, route, rest, scope.get("query_string", b""))
            except WoodratError as error:
                await found.problem(self._discreet(error))
            except (Gone, asyncio.CancelledError):
                raise
            except Exception as error:
                logs.failed(error, request=found.id, verb=verb)
                await found.problem(_failure(found.id))
        except Gone:
            return
        finally:
            self._measures.open -= 1
            took = loop.time() - began
            self._measures.note(verb, found.status, took)
            logs.event(
                "request", request=found.id, verb=verb, status=found.status, ms=round(took * 1_000, 1), **found.told
            )

    def _discreet(self, error: WoodratError) -> WoodratError:
        """Return an error that does not say where on this machine the database is."""
        if not isinstance(error, Unavailable | Corrupt):
            return error
        text = str(error)
        for path in (self.engine.location, getattr(self.engine, "path", None)):
            text = text.replace(path, "the database") if path else text
        if text == str(error):
            return error
        return type(error)(text, {name: value for name, value in error.details.items() if name != "path"})

    def _check_caller(self, found: Exchange) -> None:
        """Refuse a page of a foreign site: its browser sends our address with another host or origin."""
        if found.hosts > 1:
            raise Rejected(400, f"host: there are {found.hosts} of it. {NOTHING_DONE} Send one.")
        host = (found.header(b"x-forwarded-host") if self.limits.proxied else None) or found.header(b"host") or ""
        if _name(host) not in self.limits.hosts:
            text = f"host: {shown(host)} is not a name of this server. {NOTHING_DONE} Call it by one of its names."
            raise Rejected(421, text)
        origin = found.header(b"origin")
        if origin is not None and origin not in self.limits.origins and origin.partition("://")[2] != host:
            raise Forbidden(f"origin: {shown(origin)} may not call this server. {NOTHING_DONE} Allow it with --origin.")
        if origin is not None:
            found.allow(origin)

    def _route(self, found: Exchange) -> tuple[Route, str]:
        table, rest = self._exact.get(found.path), ""
        if table is None:
            for (before, after), under in self._under:
                end = len(found.path) - len(after)
                if found.path.startswith(before) and found.path.endswith(after) and end > len(before):
                    table, rest = under, exchange.plain(found.path[len(before) : end])
                    break
        if table is None:
            raise NotFound(
                f"{shown(found.path.decode('latin-1'))}: there is no such address. {NOTHING_DONE} See /openapi.json."
            )
        route = table.get("GET" if found.method == "HEAD" else found.method)
        if route is None:
            raise _not_a_method(found, (*table, *(("HEAD",) if "GET" in table else ())))
        return route, rest

    async def _call(self, found: Exchange, route: Route, rest: str, asked: bytes) -> None:
        caller = self._caller(found)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        query = exchange.query(asked)
        if route.lines and route.grant == access.MANAGE:
            access.check(caller, route.grant, {})  # what may be long is not read of just anybody
        body = await self._body(found, route)
        headers = {"Idempotency-Key": found.header(b"idempotency-key")}
        bulk = type(body) is exchange.Lines
        given = arguments(route, rest, query, body, headers, bulk=bulk)
        if (condition := found.header(b"if-match")) is not None:
            _condition(route, given, condition)
        if (condition := found.header(b"if-none-match")) is not None and route.writes:
            _condition(route, given, condition, none=True)
        audited = caller.key != "" and not route.writes
        try:
            access.check(caller, route.grant, {} if route.wide else given)
            access.check_telling(caller, route.verb, given)
        except Forbidden:
            if audited:
                self._audit.note(caller, route.verb, given, found.id, "denied")
            raise
        if audited:
            self._audit.note(caller, route.verb, given, found.id, "success")
        if route.verb == "record":
            given["own"] = not caller.may(access.MANAGE, None)
        if route.verb == "add_webhook":
            given["inside"] = caller.key == "" or self.limits.local  # without keys, only this machine calls
        ledger = self._ledger(caller)
        if route.verb == "log" and (found.accepts(exchange.EVENTS) or found.accepts(exchange.LINES)):
            await self._follow(found, ledger, given)
            return
        if route.verb == "newly_stale":
            await self._wait(ledger, given)
        media = exchange.JSON
        if found.accepts(whole.MEDIA_TYPE):
            route, media = whole.answering(route), whole.MEDIA_TYPE
        if route.relays:
            relayed = access.discreet(caller, self._relayed(ledger, route, given))
            sent = _sent(access.told(caller, given, await relayed))
        elif route.writes:
            try:
                carried = self._committer.carry_out(
                    lambda: route.answer(ledger, **given), alone=route.alone, gathered=route.gathered
                )
                answer = await access.discreet(caller, carried)
            except Refused as refusal:
                raise body.refused(refusal) if type(body) is exchange.Lines else refusal from None
            answer = access.told(caller, given, answer)
            records = given.get("records")
            if isinstance(records, list) and len(records) > LONG_RECORDS:
                sent = await asyncio.get_running_loop().run_in_executor(self._readers, _sent, answer)
            else:
                sent = _sent(answer)
        else:
            now = self._reads_soon and "as_of" not in given and "effective" not in given
            answer = route.soon(self._spelling, ledger, **given) if now and route.soon is not None else None
            sent = await self._told(route, ledger, given) if answer is None else _sent(answer)
        await found.send(sent.body, media, headers=sent.headers)

    async def _told(self, route: Route, ledger: Ledger, given: dict[str, Any]) -> Sent:
        """Read in a thread, and spell the answer there too: it may be long."""
        loop = asyncio.get_running_loop()

        def read() -> Sent:
            return _sent(_read(route, ledger, given))

        reading = loop.run_in_executor(self._readers, read)
        self._reads.add(reading)
        try:
            return await asyncio.wait_for(reading, self.limits.read_seconds)
        except asyncio.CancelledError:
            if self._closing.is_set():
                raise _closed() from None
            raise
        except TimeoutError:
            text = (
                f"The answer took more than {self.limits.read_seconds:g} seconds and was given up. Nothing was "
                "changed. Ask for less, such as one entity, one type or a page."
            )
            raise Rejected(503, text, code="unavailable") from None
        finally:
            self._reads.discard(reading)

    async def _wait(self, ledger: Ledger, given: dict[str, Any]) -> None:
        """Wait until the log has gone on after a position, as long as the caller wants that."""
        seconds = given.pop("wait", 0)
        if not 0 <= seconds <= WAIT_SECONDS_MAX:
            raise Refused([Fault("wait", f"got {seconds}", f"Send 0 to {WAIT_SECONDS_MAX}.")], NO_READ)
        after = given.setdefault("after", await self._reading(lambda: ledger.position))
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end and not self._closing.is_set():
            if await self._reading(lambda: ledger.position) != after:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), following.POLL_SECONDS)

    async def _relayed(self, ledger: Ledger, route: Route, given: dict[str, Any]) -> Any:
        """Tell a run; one of which not everything could be recorded is not kept at hand: the log says how it stands."""
        relay = self._relay
        try:
            return await self._committer.carry_out(lambda: route.answer(ledger, relay, **given), alone=route.alone)
        except (Refused, Forbidden, NotFound):
            raise
        except Exception:
            if "run" in given:
                self._committer.submit(lambda: relay.forget(ledger.tenant, given["run"]))
            raise

    async def _body(self, found: Exchange, route: Route) -> Any:
        """Return the body of a call; records may come a line each, and what is said about them in the address."""
        if route.method != "POST":
            return ABSENT
        kind = found.content_type()
        if kind == exchange.LINES and route.verb == "store":
            return await self._parsed(exchange.lines, await found.body())
        if kind == exchange.LINES and route.lines:
            return {"entries": await found.spooled(self.limits.import_bytes_max)}
        if kind != exchange.JSON:
            taken = "application/json or application/x-ndjson" if route.lines else "application/json"
            got = shown(kind.decode("latin-1"))
            raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send {taken}.")
        return await self._parsed(exchange.document, await found.body())

    async def _parsed(self, parse: Callable[[bytes], Any], body: bytes) -> Any:
        """Return what a body says; a long one is read in a thread, so that others are answered meanwhile."""
        if len(body) <= LONG_BYTES:
            return parse(body)
        return await asyncio.get_running_loop().run_in_executor(self._readers, parse, body)

    async def _follow(self, found: Exchange, ledger: Ledger, given: dict[str, Any]) -> None:
        """Answer with the log itself: to its present end as lines, or on and on as events."""
        answers.check_log(after := given.get("after", -1), limit := given.get("limit"))
        if found.accepts(exchange.LINES):
            through = None
            if "as_of" in given:
                through = await self._reading(lambda: _past(ledger, given["as_of"], None).position)
            await found.stream(exchange.LINES, following.lines(ledger, self._readers, after, through, limit))
            return
        endless = [Fault(name, "what is followed has no end", "Leave it out.") for name in _ENDS if name in given]
        if endless:
            raise Refused(endless, NO_READ)
        last = found.header(b"last-event-id")
        if last:  # some send it empty before the first event
            if not (last.isascii() and last.isdigit() and len(last) <= 16):
                raise Refused([Fault("Last-Event-ID", f"got {shown(last)}", "Send the position you had last.")])
            after = int(last)
        # A log that ends earlier is another one, such as an older copy: its follower would miss what comes.
        head = await self._reading(lambda: ledger.position)
        if after > head:
            text = (
                f"There is no position {after}; the log ends at {head}. {NOTHING_DONE} Follow from a position it has."
            )
            raise NotFound(text, details={"position": after, "head": head})

        def allowed() -> bool:
            return self.keys.caller(_token(found)) is not None

        await found.stream(
            exchange.EVENTS, following.events(ledger, self._readers, after, self._closing, allowed, self.engine.stamp)
        )

    def _allow(self, caller: Caller, verb: str, grant: str, given: Mapping[str, Any]) -> None:
        """Refuse what a key does not carry, on the surfaces beside the routes; note who looked at what there too."""
        reads = caller.key != "" and grant == access.READ
        try:
            access.check(caller, grant, given)
        except Forbidden:
            if reads:
                self._audit.note(caller, verb, given, "", "denied")
            raise
        if reads:
            self._audit.note(caller, verb, given, "", "success")

    async def _reading(self, call: Callable[[], Any]) -> Any:
        """Do something that reads, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, call)

    async def _writing(self, call: Callable[[], Any]) -> Any:
        """Do something that writes; it is durable before this returns."""
        return await self._committer.carry_out(call)

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
        caller = self.keys.caller(_token(found))
        if caller is None:
            text = (
                f"There is no key, or it opens nothing. {NOTHING_DONE} Send a key: Authorization: Bearer wrat_…, which "
                "is WOODRAT_KEY on the command line and key= in Python."
            )
            raise Rejected(401, text, ((b"www-authenticate", b"Bearer"),), code=Forbidden.code)
        found.told.update(tenant=caller.tenant, key=caller.key)
        return caller

    def _ledger(self, caller: Caller) -> Ledger:
        key = (caller.tenant, caller.agent)
        ledger = self._ledgers.get(key)
        if ledger is None:
            ledger = self._ledgers[key] = self._ledger_of(caller.tenant, caller.agent)
        return ledger

    def _ledger_of(self, tenant: str, agent: str) -> Ledger:
        check_put_back(self.engine, tenant, self._proofs)
        return Ledger(
            self.engine,
            tenant=tenant,
            agent=agent,
            clock=self._clock,
            policies=self._policies,
            strict=self._strict,
            signing=self._signing(tenant),
            keys=self._proofs,
            redact=self._redact,
        )

    def _signing(self, tenant: str) -> Signing | None:
        """Return the signer of a tenant's log, one for all its agents, where there are keys to sign with."""
        if self._proofs is None:
            return None
        found = self._signings.get(tenant)
        if found is None:
            found = self._signings[tenant] = signing_for(
                self.engine,
                tenant,
                self._proofs,
                self._clock,
                every=None,
                tell=lambda text: logs.event("checkpoint", tenant=tenant, problem=text),
            )
        return found

    async def _healthy(self, found: Exchange) -> None:
        """The process answers."""
        await found.answer({"status": "ok"})

    async def _ready(self, found: Exchange) -> None:
        """The engine answers; whether it could also write is said as far as a reader can tell."""
        loop = asyncio.get_running_loop()
        problem = await loop.run_in_executor(self._readers, _degraded, self.engine)
        if problem is not None:
            problem = str(self._discreet(Unavailable(problem)))
        status = {"status": "ok"} if problem is None else {"status": "degraded", "problem": problem}
        await found.answer(status, 200 if problem is None else 503)

    async def _metrics(self, found: Exchange) -> None:
        self._caller(found)
        await found.send(self._measures.text().encode(), b"text/plain; version=0.0.4")

    async def _document(self, found: Exchange) -> None:
        await found.send(*_document())

    async def _pages(self, found: Exchange) -> None:
        await found.send(*_page())


@cache
def _document() -> tuple[bytes, bytes, int, Sequence[tuple[bytes, bytes]]]:
    from woodrat.surfaces.http import openapi

    return _kept(orjson.dumps(openapi.document(version())), exchange.JSON)


@cache
def _page() -> tuple[bytes, bytes, int, Sequence[tuple[bytes, bytes]]]:
    from woodrat.surfaces.http import pages

    return _kept(pages.reference(version()), b"text/html; charset=utf-8", *pages.HEADERS)


def _kept(
    body: bytes, media: bytes, *headers: tuple[bytes, bytes]
) -> tuple[bytes, bytes, int, Sequence[tuple[bytes, bytes]]]:
    """Return an answer that is always the same, as it is sent."""
    tag = b'"%b"' % blake2b(body, digest_size=8).hexdigest().encode()
    return body, media, 200, (*headers, (b"etag", tag), ASK_AGAIN)


def _token(found: Exchange) -> str | None:
    """Return the key that was sent, if one was."""
    scheme, _, token = (found.header(b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _not_a_method(found: Exchange, methods: Iterable[str]) -> Rejected:
    allowed = ", ".join(sorted(set(methods)))
    text = f"{found.method}: not a method of {found.path.decode('latin-1')}. {NOTHING_DONE} Use {allowed}."
    return Rejected(405, text, ((b"allow", allowed.encode()),))


def _closed() -> Rejected:
    text = "The server is shutting down. Nothing was done. Send the same call again later."
    return Rejected(503, text, ((b"connection", b"close"), (b"retry-after", b"1")), code="unavailable")


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
    return route.answer(_past(ledger, as_of, effective), **given)


def _past(ledger: Ledger, as_of: str | None, effective: str | None) -> Past:
    """Return the ledger at the moment asked for; what is wrong with it is said of the argument."""
    if as_of is None and effective is None:
        return ledger
    try:
        return ledger.at(as_of, effective=effective)
    except Refused as refusal:
        named = (replace(f, path="as_of") if f.path == "moment" else f for f in refusal.faults)
        raise Refused(named, NO_READ) from None


class Sent(NamedTuple):
    """An answer as it is sent."""

    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


def _sent(answer: Any) -> Sent:
    """Return an answer as it is sent; what is believed of an entity says which version it is of."""
    if type(answer) is Shown:
        return Sent(answer.body, ((b"etag", answer.tag), ASK_AGAIN))
    if isinstance(answer, Snapshot):
        return _sent(shown_as(answer))
    if isinstance(answer, Report):
        return Sent(orjson.dumps(answer.to_json()))
    return Sent(answer if isinstance(answer, bytes) else orjson.dumps(answer))


def _condition(route: Route, given: dict[str, Any], condition: str, *, none: bool = False) -> None:
    """Take `If-Match`, or `If-None-Match` (`none`), for the version an entity must have."""
    name = "If-None-Match" if none else "If-Match"
    outcome = "Nothing was written." if route.writes else NO_READ
    named = exchange.tags(condition)
    if not any(param.name == "if_version" for param in route.params) or (none and route.verb != "store"):
        raise Refused([Fault(name, "this address takes no such condition", "Leave the header out.")], outcome)
    if none and named != ["*"]:
        raise Refused([Fault(name, f"got {shown(condition)}", "Send * for what is not known yet, or If-Match.")])
    if named is None:
        raise Refused([Fault(name, f"got {shown(condition)}", 'Send the ETag that reading gave, such as W/"17-…".')])
    versions = [int(match[1]) for match in map(_VERSION.match, named) if match is not None]
    if not versions and named != ["*"]:
        raise Outdated(
            f"{name}: {shown(condition)} is no ETag of an entity here. Nothing was written. Read it again and decide "
            "anew.",
            {"expected": condition},
        )
    wanted: Any = NEW if none else KNOWN if not versions else versions[0] if len(versions) == 1 else versions
    if "if_version" in given and given["if_version"] != wanted:
        raise Refused([Fault(name, f"got {shown(condition)}, and if_version says otherwise", "Send one of them.")])
    given["if_version"] = wanted


_ENDS: Final = ("limit", "as_of")
"""Arguments that say where reading the log ends."""
_VERSION: Final = re.compile(r"([0-9]{1,16})(?:-|$)")
"""The version at the start of an entity tag."""


def _name(host: str) -> str:
    """Return a host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()

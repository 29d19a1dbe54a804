"""The application: from a request to a verb of the ledger and back, as ASGI.

Reads run in threads, each on its own view; heavy ones in processes of their own. Writes go to one committer: those that
wait at the same time share a durable transaction. Keys and the audit have threads that do nothing else. Nothing of a
request is trusted before its host, its origin, its key, its grants and its sizes are known.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from woodrat.api.arguments import KNOWN, NEW
from woodrat.api.ledger import Ledger
from woodrat.api.maintenance import check_put_back, signing_for
from woodrat.canon.ids import TenantId
from woodrat.errors import Corrupt, Fault, Forbidden, NotFound, Outdated, Refused, Unavailable, WoodratError, shown
from woodrat.ledger.committer import Committer
from woodrat.ledger.moments import NO_READ
from woodrat.mcp import endpoint
from woodrat.merge import BUILTIN
from woodrat.records import dataclass
from woodrat.runs.relay import Relay
from woodrat.server import access, answers, follow, host, logs, requests
from woodrat.server import heavy_reads as server_heavy_reads
from woodrat.server import records as server_records
from woodrat.server.access import KEYS_TENANT
from woodrat.server.arguments import ABSENT, arguments
from woodrat.server.audit import AUDIT_TENANT, Audit
from woodrat.server.body import BodyLimits
from woodrat.server.heavy_reads import Job
from woodrat.server.means import Means
from woodrat.server.metrics import Measures
from woodrat.server.rates import Rates
from woodrat.server.readers import Readers, Switching
from woodrat.server.reply import Reply, past_at, read, reply
from woodrat.server.requests import NOTHING_DONE, Exchange, Gone, Receive, Rejected, Room, Scope, Send
from woodrat.server.routes import ROUTES, WAIT_SECONDS_MAX, Route
from woodrat.server.show_cache import Spelling
from woodrat.server.turns import Pace, Places, Turns
from woodrat.server.wire import version
from woodrat.server.workers import Plan, WorkerFailed, Workers

if TYPE_CHECKING:
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine
    from woodrat.merge import Policy
    from woodrat.proofs.signer import Signing
    from woodrat.server.access import Access, Caller
    from woodrat.server.deliveries import Deliveries

ROOM_BYTES: Final = 16 * 1_048_576
"""Below how much room on the disk the server says that it is degraded."""
TEND_SECONDS: Final = 1.0
"""How often keys are read anew, the audit is written down, and answers kept at hand are looked at anew."""
LONG_BYTES: Final = 65_536
"""From how many bytes on a body is read in a thread."""
LONG_RECORDS: Final = 20
"""From how many records on the report of a write is spelled in a thread."""
ASK_AGAIN: Final = (b"cache-control", b"no-cache")
"""That a cache may keep an answer, and asks about it before it is used again: for what holds no data."""
END_READS_SECONDS: Final = 2.0
"""How long what is being read may still take when the server ends."""
READERS: Final = 8
"""How many threads read."""
THREADS: Final[Mapping[str, int]] = {
    "reads": READERS,
    "lookups": 2,
    "streams": 2,
    "bodies": 2,
    "keys": 1,
    "audit": 1,
    "shelves": 1,
}
"""How many threads there are for each kind of work besides."""
BODY_BYTE_SECONDS: Final = 1e-8
"""About how long it takes to unpack a byte of a body and to count what is in it."""
BODIES_SHARE: Final = 0.2
"""How much of the time one key may have the server read long bodies."""
WRITES_SHARE: Final = 0.5
"""How much of the time one key may have long writes committed."""
BURST_SECONDS: Final = 0.5
"""How long it may do either before that share counts."""
PACED_RECORDS: Final = 500
"""From how many records on a write is a long one."""
SWITCH_SECONDS: Final = 0.0001
"""How long a thread keeps the interpreter from another while a long body is read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a stranger may take of the server."""

    body_bytes_max: int = 64 * 1_048_576
    """Longest body of a call that writes, unpacked."""
    values_max: int = 1_000_000
    """Most values in the body of a call that writes: members, elements and what they hold."""
    read_body_bytes_max: int = 4 * 1_048_576
    """Longest body of a call that reads, or of a key that may do no more than read."""
    read_values_max: int = 200_000
    """Most values in such a body."""
    bodies_bytes_max: int = 512 * 1_048_576
    """How many bytes of bodies are held at once, of all callers together."""
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
    reads: Places = Places(running_max=READERS, running_per_key=4, waiting_max=2_048, waiting_per_key=256)
    """Reads that a thread answers."""
    heavy_reads: Places = Places(running_max=2, running_per_key=1, waiting_max=32, waiting_per_key=3)
    """Heavy reads (`server/heavy_reads.py`)."""
    heavy_writes: Places = Places(running_max=1, running_per_key=1, waiting_max=8, waiting_per_key=1)
    """Heavy writes, for which all other writers wait."""
    long_writes: Places = Places(running_max=2, running_per_key=1, waiting_max=256, waiting_per_key=16)
    """Writes of many records, for which other writers wait."""
    exports: Places = Places(running_max=16, running_per_key=2, waiting_max=32, waiting_per_key=2)
    """Logs that are sent whole."""
    follows: Places = Places(running_max=12_288, running_per_key=4_096, waiting_max=1, waiting_per_key=1)
    """Followers of logs."""
    bodies: Places = Places(running_max=64, running_per_key=2, waiting_max=256, waiting_per_key=8)
    """Long bodies that are taken."""
    writes_waiting_max: int = 4_096
    """How many writes wait for their commit, of all keys together."""
    writes_waiting_per_key: int = 1_024
    """How many writes of one key wait for their commit."""


class _Beside(NamedTuple):
    """What there is at an address beside the routes."""

    verb: str
    """What logs and counts call it."""
    answer: Callable[[Exchange], Awaitable[None]]
    """Answers a request."""
    reads: bool = True
    """Whether it is there to be read alone; otherwise it knows its methods itself."""
    probe: bool = False
    """Whether it is for whatever looks after processes, which calls by an address and not by a name."""


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
        deliveries: Deliveries | None = None,
        proofs: str | None = None,
        redact: str | None = None,
    ) -> None:
        self.engine, self.keys, self.limits = engine, keys, limits or Limits()
        self._clock, self._policies, self._strict = clock, policies, strict
        self._proofs, self._redact = proofs, redact
        self._signings: dict[str, Signing] = {}
        self._relay = Relay()
        self._means = Means(
            self._ledger, self._allow, self._read, self._writing, self._relay, self._body_limits, self._taken
        )
        self._agents = endpoint.Endpoint(self._means, self.limits.body_bytes_max)
        self._committer = Committer(engine)
        # Each kind of work has threads of its own, so that none waits for another. Above all a key that was revoked
        # must not wait for what it asked, nor for what is being written.
        counts = {**THREADS, "heavy": self.limits.heavy_reads.running_max}
        self._threads = {name: Readers(count, f"woodrat-{name}") for name, count in counts.items()}
        self._switching = Switching(SWITCH_SECONDS)
        plan = _plan(engine, policies, proofs, redact, strict=strict)
        # Other routes than the usual ones are known to this process alone.
        self._workers = Workers(plan) if plan is not None and routes is ROUTES else None
        self._turns = {
            "reads": Turns("read", self.limits.reads),
            "heavy_reads": Turns("take long", self.limits.heavy_reads),
            "heavy_writes": Turns("keep all writers waiting", self.limits.heavy_writes),
            "long_writes": Turns("write many records", self.limits.long_writes),
            "exports": Turns("read a whole log", self.limits.exports),
            "follows": Turns("follow a log", self.limits.follows),
            "bodies": Turns("have a long body", self.limits.bodies),
        }
        self._body_pace = Pace(BODIES_SHARE, BURST_SECONDS)
        self._write_pace = Pace(WRITES_SHARE, BURST_SECONDS)
        self._room = Room(self.limits.bodies_bytes_max)
        self._writes: dict[str, int] = {}
        """How many writes of a key wait for their commit."""
        self._writes_open = 0
        self._catching_up: set[str] = set()
        """Tenants whose shelves are being brought up to date."""
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
            b"/healthz": _Beside("healthz", self._healthy, probe=True),
            b"/readyz": _Beside("readyz", self._ready, probe=True),
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
        self._reads: set[asyncio.Future[Any]] = set()
        """What is being read for somebody who waits."""
        self._audit = Audit(self._ledger_of(AUDIT_TENANT, "server"), clock, logs.failed)
        self._deliveries = deliveries
        self._tending: tuple[asyncio.Task[None], ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await asyncio.to_thread(self._refresh_keys)
                await asyncio.to_thread(self._write_down)
                loop = asyncio.get_running_loop()
                self._tending = (loop.create_task(self._tend_keys()), loop.create_task(self._tend()))
                await send({"type": "lifespan.startup.complete"})
            else:
                self._closing.set()
                await asyncio.gather(*self._tending)
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
        for turns in self._turns.values():
            turns.give_up(_closed)
        for reading in tuple(self._reads):
            reading.cancel()

    def close(self) -> None:
        """Finish what was acknowledged or waits, and take nothing more."""
        self._committer.close()
        self._workers_close()
        for threads in self._threads.values():
            threads.shutdown()
        if self._deliveries is not None:
            self._deliveries.close()
        self._write_audit()
        for signing in self._signings.values():
            signing.close()

    def _workers_close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    async def _tend_keys(self) -> None:
        """Take in keys that were made or revoked elsewhere, time and again; this waits for nothing else."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), TEND_SECONDS)
                return
            await loop.run_in_executor(self._threads["keys"], self._refresh_keys)

    async def _tend(self) -> None:
        """Write the audit down, and look after what is kept at hand, time and again; writing waits for writers."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), TEND_SECONDS)
                return
            self._spelling.forget()
            await loop.run_in_executor(self._threads["audit"], self._write_down)
            if len(self._relay) and not self._closing.is_set():
                await self._committer.carry_out(lambda: self._relay.let_go_of_quiet(self._clock.now()))

    def _refresh_keys(self) -> None:
        try:
            self.keys.refresh()
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
        dropped = self._audit.dropped
        try:
            self._audit.flush()
        except WoodratError as error:
            logs.failed(error)
        if self._audit.dropped > dropped:
            logs.event("audit", logs.ERROR, dropped=self._audit.dropped - dropped, total=self._audit.dropped)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self.limits
        times = limits.wait_seconds, limits.take_seconds
        found = Exchange(scope, receive, send, self._clock.random(8).hex(), self._room, *times)
        loop = asyncio.get_running_loop()
        began, verb = loop.time(), "none"
        self._measures.open += 1
        try:
            try:
                if self._closing.is_set():
                    raise _closed()
                if limits.proxied:
                    found.go_by(found.header(b"x-request-id"))
                beside = self._others.get(found.path)
                if beside is None or not beside.probe:
                    self._check_caller(found)
                    if found.asks_further and found.header(b"origin") is not None:
                        await found.allow_further()
                        return
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
                where = {"worker": str(error)} if isinstance(error, WorkerFailed) else {}
                logs.failed(error, request=found.id, verb=verb, **where)
                await found.problem(_failure(found.id))
        except Gone:
            return
        finally:
            self._measures.open -= 1
            found.let_go()
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
        stated = (found.header(b"x-forwarded-host") if self.limits.proxied else None) or found.header(b"host") or ""
        name = host.name_of(stated)
        if name is None and stated:
            text = f"host: {shown(stated)} is no name or address with a port. {NOTHING_DONE} Send the server's name."
            raise Rejected(400, text)
        if name not in self.limits.hosts:
            text = f"host: {shown(stated)} is not a name of this server. {NOTHING_DONE} Call it by one of its names."
            raise Rejected(421, text)
        origin = found.header(b"origin")
        if origin is not None and origin not in self.limits.origins and origin.partition("://")[2] != stated:
            raise Forbidden(f"origin: {shown(origin)} may not call this server. {NOTHING_DONE} Allow it with --origin.")
        if origin is not None:
            found.allow(origin)

    def _route(self, found: Exchange) -> tuple[Route, str]:
        table, rest = self._exact.get(found.path), ""
        if table is None:
            for (before, after), under in self._under:
                end = len(found.path) - len(after)
                if found.path.startswith(before) and found.path.endswith(after) and end > len(before):
                    table, rest = under, requests.plain(found.path[len(before) : end])
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
        if not caller.holds(route.grant, wide=route.wide):
            self._deny(found, caller, route)  # before anything is read of the body
        query = requests.query(asked)
        body = await self._body(found, route, caller)
        headers = {"Idempotency-Key": found.header(b"idempotency-key")}
        bulk = type(body) is requests.Lines
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
        streams = route.verb == "log" and (found.accepts(requests.EVENTS) or found.accepts(requests.LINES))
        if audited and not streams:
            await self._audited(found, caller, route, given)
        else:
            if audited:  # it may take hours until it ends
                self._audit.note(caller, route.verb, given, found.id, "success")
            await self._answer(found, caller, route, given, body)

    def _deny(self, found: Exchange, caller: Caller, route: Route) -> None:
        """Refuse what a key carries no grant for, whatever it is about."""
        if caller.key != "" and not route.writes:
            self._audit.note(caller, route.verb, {}, found.id, "denied")
        access.check(caller, route.grant, {})
        raise AssertionError("a key without the grant is refused")

    async def _audited(self, found: Exchange, caller: Caller, route: Route, given: dict[str, Any]) -> None:
        """Answer a read, and note it: what was refused was not read, so that nothing unchecked is noted."""
        noted = dict(given)
        try:
            await self._answer(found, caller, route, given, ABSENT)
        except Refused:
            raise
        except Unavailable:
            self._audit.note(caller, route.verb, noted, found.id, "failed")
            raise
        except BaseException as error:
            rejected = isinstance(error, Rejected) and error.code == Refused.code
            if not rejected:
                failed = isinstance(error, Rejected) or not isinstance(error, WoodratError)
                self._audit.note(caller, route.verb, noted, found.id, "failed" if failed else "success")
            raise
        self._audit.note(caller, route.verb, noted, found.id, "success")

    async def _answer(self, found: Exchange, caller: Caller, route: Route, given: dict[str, Any], body: Any) -> None:
        """Carry out a call that is allowed, and answer it."""
        if route.verb == "record":
            given["own"] = not caller.may(access.MANAGE, None)
        if route.verb == "add_webhook":
            given["inside"] = caller.key == "" or self.limits.local  # without keys, only this machine calls
        ledger = self._ledger(caller)
        if route.verb == "log" and (found.accepts(requests.EVENTS) or found.accepts(requests.LINES)):
            lines = found.accepts(requests.LINES)
            async with self._turns["exports" if lines else "follows"].turn(caller.key):
                await self._follow(found, ledger, given)
            return
        if route.verb == "newly_stale":
            await self._wait(ledger, given)
        media = requests.JSON
        if found.accepts(server_records.MEDIA_TYPE):
            route, media = server_records.answering(route), server_records.MEDIA_TYPE
        if route.writes:
            sent = await access.discreet(caller, self._written(caller, ledger, route, given, body))
        else:
            now = self._reads_soon and "as_of" not in given and "effective" not in given
            answer = route.soon(self._spelling, ledger, **given) if now and route.soon is not None else None
            if answer is None:
                sent = await self._told(caller, route, ledger, given, records=media == server_records.MEDIA_TYPE)
                self._check_still_good(found, caller)
            else:
                sent = reply(answer)
        await found.send(sent.body, media, headers=sent.headers)

    def _check_still_good(self, found: Exchange, caller: Caller) -> None:
        """Refuse an answer that took a while to a key that was revoked meanwhile."""
        if caller.key != "":
            self._caller(found)

    async def _written(self, caller: Caller, ledger: Ledger, route: Route, given: dict[str, Any], body: Any) -> Reply:
        """Carry out a write; how many wait for their commit is bounded by key and in total."""
        records = given.get("records")
        count = len(records) if isinstance(records, list) else 1
        with self._waiting(caller.key):
            if route.verb in server_heavy_reads.WRITES:
                async with self._turns["heavy_writes"].turn(caller.key):
                    answer = await self._committed(ledger, route, given, body)
            elif count >= PACED_RECORDS:
                answer = await self._committed_in_pace(caller.key, ledger, route, given, body)
            else:
                answer = await self._committed(ledger, route, given, body)
        answer = access.told(caller, given, answer)
        if count > LONG_RECORDS:
            return await asyncio.get_running_loop().run_in_executor(self._threads["bodies"], reply, answer)
        return reply(answer)

    async def _committed_in_pace(self, key: str, ledger: Ledger, route: Route, given: dict[str, Any], body: Any) -> Any:
        """Commit a long write, for which all others wait; one after the other of a key, and not all the time."""
        loop = asyncio.get_running_loop()
        async with self._turns["long_writes"].turn(key):
            await self._write_pace.wait(key)
            began = loop.time()
            try:
                return await self._committed(ledger, route, given, body)
            finally:
                self._write_pace.charge(key, loop.time() - began)

    async def _committed(self, ledger: Ledger, route: Route, given: dict[str, Any], body: Any) -> Any:
        if route.relays:
            return await self._relayed(ledger, route, given)
        try:
            return await self._committer.carry_out(
                lambda: route.answer(ledger, **given), alone=route.alone, gathered=route.gathered
            )
        except Refused as refusal:
            raise body.refused(refusal) if type(body) is requests.Lines else refusal from None

    async def _told(
        self, caller: Caller, route: Route, ledger: Ledger, given: dict[str, Any], *, records: bool = False
    ) -> Reply:
        """Read in a thread, or in a process if it is heavy, and spell the answer there too: it may be long."""
        job = None
        if server_heavy_reads.may_be_heavy(route.verb, given):
            action = server_heavy_reads.WHOLE if records else ""
            job = Job(server_heavy_reads.HTTP, route.verb, action, ledger.tenant, ledger.agent, dict(given))
        found: Reply = await self._read(caller, lambda: read(route, ledger, given), job)
        return found

    async def _read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        """Do something that reads: in turn, within its time, and off the way of other requests.

        When the time is over, or nobody waits any more, the work stops.
        """
        try:
            async with asyncio.timeout(self.limits.read_seconds):
                ledger = self._ledger(caller)
                if job is None or not await self._is_heavy(job, ledger):
                    async with self._turns["reads"].turn(caller.key):
                        return await self._awaited(asyncio.wrap_future(self._threads["reads"].submit(call)))
                async with self._turns["heavy_reads"].turn(caller.key):
                    workers, threads = self._workers, self._threads["heavy"]
                    work = threads.submit(call) if workers is None else threads.submit(workers.ask, job)
                    if workers is not None and job.name in server_heavy_reads.SHELVED:
                        self._catch_up(ledger)
                    return await self._awaited(asyncio.wrap_future(work))
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

    async def _is_heavy(self, job: Job, ledger: Ledger) -> bool:
        if job.name in server_heavy_reads.ALWAYS:
            return True
        return bool(await self._looked_up(lambda: server_heavy_reads.is_heavy(job.name, job.given, ledger)))

    def _catch_up(self, ledger: Ledger) -> None:
        """Have the shelves of a tenant brought up to date, unless that is being done."""
        if ledger.tenant in self._catching_up:
            return
        self._catching_up.add(ledger.tenant)

        def catch_up() -> None:
            try:
                server_heavy_reads.catch_up(ledger)
            except WoodratError as error:  # it is tried again with the next such question
                logs.failed(error)
            finally:
                self._catching_up.discard(ledger.tenant)

        self._threads["shelves"].submit(catch_up)

    async def _awaited(self, reading: asyncio.Future[Any]) -> Any:
        self._reads.add(reading)
        try:
            return await reading
        finally:
            self._reads.discard(reading)
            reading.cancel()

    async def _wait(self, ledger: Ledger, given: dict[str, Any]) -> None:
        """Wait until the log has gone on after a position, as long as the caller wants that."""
        seconds = given.pop("wait", 0)
        if not 0 <= seconds <= WAIT_SECONDS_MAX:
            raise Refused([Fault("wait", f"got {seconds}", f"Send 0 to {WAIT_SECONDS_MAX}.")], NO_READ)
        after = given.setdefault("after", await self._looked_up(lambda: ledger.position))
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end and not self._closing.is_set():
            if await self._looked_up(lambda: ledger.position) != after:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), follow.POLL_SECONDS)

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

    async def _body(self, found: Exchange, route: Route, caller: Caller) -> Any:
        """Return the body of a call; records may come a line each, and what is said about them in the address."""
        if route.method != "POST":
            return ABSENT
        kind, limits = found.content_type(), self._body_limits(route.writes)
        if kind == requests.LINES and route.verb == "store":
            return await self._taken(found, caller, limits, requests.lines, lines=True)
        if kind == requests.LINES and route.lines:
            return {"entries": await found.spooled(self.limits.import_bytes_max)}
        if kind != requests.JSON:
            taken = "application/json or application/x-ndjson" if route.lines else "application/json"
            got = shown(kind.decode("latin-1"))
            raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send {taken}.")
        return await self._taken(found, caller, limits, requests.document)

    async def _taken(
        self, found: Exchange, caller: Caller, limits: BodyLimits, parse: Callable[[bytes], Any], *, lines: bool = False
    ) -> Any:
        """Return what a body says. A long one is taken in turn and in a thread, and uses a share of the time at most.

        To unpack, count and read a long body keeps everybody from the interpreter, so a key that sends one after the
        other waits between them.
        """
        if not found.may_be_long:
            return parse(await found.body(limits, lines=lines))
        loop, key = asyncio.get_running_loop(), caller.key
        async with self._turns["bodies"].turn(key):
            await self._body_pace.wait(key)
            try:
                body = await found.body(limits, lines=lines)
            finally:
                self._body_pace.charge(key, found.taken * BODY_BYTE_SECONDS)
            if len(body) <= LONG_BYTES:
                return parse(body)
            began = loop.time()
            try:
                with self._switching:
                    return await loop.run_in_executor(self._threads["bodies"], parse, body)
            finally:
                self._body_pace.charge(key, loop.time() - began)

    def _body_limits(self, writes: bool) -> BodyLimits:
        limits = self.limits
        if writes:
            return BodyLimits(limits.body_bytes_max, limits.values_max)
        return BodyLimits(
            min(limits.read_body_bytes_max, limits.body_bytes_max), min(limits.read_values_max, limits.values_max)
        )

    async def _follow(self, found: Exchange, ledger: Ledger, given: dict[str, Any]) -> None:
        """Answer with the log itself: to its present end as lines, or on and on as events."""
        answers.check_log(after := given.get("after", -1), limit := given.get("limit"))
        if found.accepts(requests.LINES):
            through = None
            if "as_of" in given:
                through = await self._looked_up(lambda: past_at(ledger, given["as_of"], None).position)
            await found.stream(requests.LINES, follow.lines(ledger, self._threads["streams"], after, through, limit))
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
        head = await self._looked_up(lambda: ledger.position)
        if after > head:
            text = (
                f"There is no position {after}; the log ends at {head}. {NOTHING_DONE} Follow from a position it has."
            )
            raise NotFound(text, details={"position": after, "head": head})

        def allowed() -> bool:
            return self.keys.caller(_token(found)) is not None

        streams, stamp = self._threads["streams"], self.engine.stamp
        await found.stream(requests.EVENTS, follow.events(ledger, streams, after, self._closing, allowed, stamp))

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

    async def _looked_up(self, call: Callable[[], Any]) -> Any:
        """Look something small up, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads["lookups"], call)

    async def _writing(self, caller: Caller, call: Callable[[], Any]) -> Any:
        """Do something that writes; it is durable before this returns."""
        with self._waiting(caller.key):
            return await self._committer.carry_out(call)

    @contextlib.contextmanager
    def _waiting(self, key: str) -> Iterator[None]:
        """Count a write that waits for its commit; one too many, of a key or of all, is refused."""
        limits, mine = self.limits, self._writes.get(key, 0)
        if mine >= limits.writes_waiting_per_key or self._writes_open >= limits.writes_waiting_max:
            raise _too_many_writes(mine, limits)
        self._writes[key] = mine + 1
        self._writes_open += 1
        try:
            yield
        finally:
            self._writes_open -= 1
            left = self._writes[key] - 1
            if left:
                self._writes[key] = left
            else:
                del self._writes[key]

    async def _mcp(self, found: Exchange) -> None:
        caller = self._caller(found)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        await self._agents.answer(found, caller)

    async def _neotoma(self, found: Exchange) -> None:
        from woodrat.neotoma import endpoint

        def who() -> Caller:
            caller = self._caller(found)
            self._rates.take(caller.key, asyncio.get_running_loop().time())
            return caller

        await endpoint.answer(found, who, self._means)

    async def _traces(self, found: Exchange) -> None:
        from woodrat.otlp import endpoint

        caller = self._caller(found)
        self._rates.take(caller.key, asyncio.get_running_loop().time())
        await endpoint.answer(found, caller, self._means)

    def _caller(self, found: Exchange) -> Caller:
        """Return who calls; a key that is missing, unknown, revoked or over is told apart by nobody."""
        caller = self.keys.caller(_token(found))
        if caller is not None and caller.key == "" and found.forwarded:
            text = (
                f"A proxy passed this request on, and this server has no keys, so anybody could call. {NOTHING_DONE} "
                "Make a key with `woodrat keys create` and send it, or call the server directly."
            )
            raise Rejected(401, text, ((b"www-authenticate", b"Bearer"),), code=Forbidden.code)
        if caller is None:
            text = (
                f"There is no key, or it opens nothing. {NOTHING_DONE} Send a key: Authorization: Bearer wrat_…, which "
                "is WOODRAT_TOKEN on the command line and key= in Python."
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
        problem = await loop.run_in_executor(self._threads["keys"], _degraded, self.engine)
        if problem is not None:
            problem = str(self._discreet(Unavailable(problem)))
            await found.answer({"status": "degraded", "problem": problem}, 503)
            return
        # Calls are answered as ever, so nobody needs to be sent elsewhere; but somebody should look.
        lost = self._audit.problem
        await found.answer({"status": "ok"} if lost is None else {"status": "degraded", "problem": lost})

    async def _metrics(self, found: Exchange) -> None:
        """Counts over all tenants are for the operator: whoever holds a key for them, or needs none on this machine."""
        caller = self._caller(found)
        if caller.key != "" and access.METRICS not in caller.grants:
            text = f"This key may not read metrics, which are about all tenants. {NOTHING_DONE} Ask the operator for a "
            raise Forbidden(text + f"key with the grant {access.METRICS!r}.", {"grant": access.METRICS})
        gauges = {name: (turns.running, turns.waiting, turns.refused) for name, turns in self._turns.items()}
        gauges["writes"] = (self._writes_open, 0, 0)
        text = self._measures.text(self._audit.dropped, gauges, degraded=self._audit.problem is not None)
        await found.send(text.encode(), b"text/plain; version=0.0.4")

    async def _document(self, found: Exchange) -> None:
        await found.send(*_document(), cached=ASK_AGAIN)

    async def _pages(self, found: Exchange) -> None:
        await found.send(*_page(), cached=ASK_AGAIN)


@cache
def _document() -> tuple[bytes, bytes, int, Sequence[tuple[bytes, bytes]]]:
    from woodrat.server import openapi

    return _kept(orjson.dumps(openapi.document(version())), requests.JSON)


@cache
def _page() -> tuple[bytes, bytes, int, Sequence[tuple[bytes, bytes]]]:
    from woodrat.server import docs_page

    return _kept(docs_page.reference(version()), b"text/html; charset=utf-8", *docs_page.HEADERS)


def _kept(
    body: bytes, media: bytes, *headers: tuple[bytes, bytes]
) -> tuple[bytes, bytes, int, Sequence[tuple[bytes, bytes]]]:
    """Return an answer that is always the same, as it is sent."""
    tag = b'"%b"' % blake2b(body, digest_size=8).hexdigest().encode()
    return body, media, 200, (*headers, (b"etag", tag))


def _token(found: Exchange) -> str | None:
    """Return the key that was sent, if one was."""
    scheme, _, token = (found.header(b"authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _not_a_method(found: Exchange, methods: Iterable[str]) -> Rejected:
    allowed = ", ".join(sorted(set(methods)))
    text = f"{found.method}: not a method of {found.path.decode('latin-1')}. {NOTHING_DONE} Use {allowed}."
    return Rejected(405, text, ((b"allow", allowed.encode()),))


def _too_many_writes(mine: int, limits: Limits) -> Rejected:
    """Return what to say where too many writes wait for their commit."""
    own = mine >= limits.writes_waiting_per_key
    many = f"{mine} writes of this key wait" if own else f"{limits.writes_waiting_max} writes wait"
    text = f"{many} to be committed, which is the limit. Nothing was written. Send the same call again in a second."
    return Rejected(429 if own else 503, text, ((b"retry-after", b"1"),), code="unavailable")


def _closed() -> Rejected:
    text = "The server is shutting down. Nothing was done. Send the same call again later."
    return Rejected(503, text, ((b"connection", b"close"), (b"retry-after", b"1")), code="unavailable")


def _failure(request: str) -> Rejected:
    """Return what to say of a mistake of our own."""
    text = (
        f"The server failed at this request, {request}; its log says how. Whether something was written is not known. "
    )
    return Rejected(500, text + "Send the same call with the same Idempotency-Key again.", code="unavailable")


def _plan(
    engine: Engine, policies: Mapping[str, Policy], proofs: str | None, redact: str | None, *, strict: bool
) -> Plan | None:
    """Return what another process needs to open the ledger; `None` where it could not, or would merge otherwise."""
    path = getattr(engine, "path", None)
    if engine.name != "sqlite" or path is None or set(policies) != set(BUILTIN):
        return None
    return Plan(os.path.abspath(path), strict, proofs, redact)


def _degraded(engine: Engine) -> str | None:
    """Return what keeps the engine from its work, if anything does."""
    try:
        with engine.view(TenantId(KEYS_TENANT)) as view:
            view.head()
        fence = getattr(engine, "fence", None)
        if fence is not None:
            fence.check()  # reads go on behind it, and no write does until the server was started anew
    except WoodratError as error:
        return str(error)
    path = getattr(engine, "path", None)
    if path is not None:
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
        if free < ROOM_BYTES:
            return f"The disk has {free} bytes left. Reads go on; writes may be refused. Free some space."
    return None


def _condition(route: Route, given: dict[str, Any], condition: str, *, none: bool = False) -> None:
    """Take `If-Match`, or `If-None-Match` (`none`), for the version an entity must have."""
    name = "If-None-Match" if none else "If-Match"
    outcome = "Nothing was written." if route.writes else NO_READ
    named = requests.tags(condition)
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

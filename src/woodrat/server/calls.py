"""Calls: one call of a route, from its key and its arguments to its answer.

No part of a request is trusted before its key, its grants and its sizes are checked. Reads by a key go into the audit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Forbidden, NotFound, Outdated, Refused
from woodrat.ledger import spoken_times
from woodrat.server import access, body, heavy_reads, requests
from woodrat.server.arguments import arguments, take_condition
from woodrat.server.audit import DENIED, FAILURE, SUCCESS
from woodrat.server.heavy_reads import Job
from woodrat.server.problems import Rejected
from woodrat.server.reply import Reply, read, read_by_name, reply, with_times
from woodrat.server.route import DETAILS
from woodrat.server.streams import Steps, progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.server.access import Caller
    from woodrat.server.audit import Audit
    from woodrat.server.gateway import HttpGateway
    from woodrat.server.rates import Turns
    from woodrat.server.requests import Exchange
    from woodrat.server.route import Route
    from woodrat.server.status import Measures
    from woodrat.server.streams import LogStreams

LOG: Final = "log_entries"
"""The operation that can answer with the log as a stream."""


class Calls:
    """Answers calls of routes."""

    def __init__(
        self, gateway: HttpGateway, streams: LogStreams, turns: Mapping[str, Turns], measures: Measures, *, local: bool
    ) -> None:
        self._callers, self._tenants, self._body_reader = gateway.callers, gateway.tenants, gateway.body_reader
        self._reads, self._writes, self._audit = gateway.reads, gateway.writes, gateway.audit
        self._streams, self._turns, self._measures, self._local = streams, turns, measures, local
        self._reads_soon = gateway.reads_soon

    async def answer(self, exchange: Exchange, route: Route, name: str, query: bytes) -> None:
        """Answer a call of a route; `name` is the variable part of its address."""
        caller = self._callers.of(exchange)
        if not caller.holds(route.grant, wide=route.wide):
            self._deny(exchange, caller, route)  # before the body is read
        asked = requests.query(query)
        sent = await self._body_reader.body_of(exchange, route, caller)
        headers = {"Idempotency-Key": exchange.header(b"idempotency-key")}
        given = arguments(route, name, asked, sent, headers, bulk=type(sent) is body.JsonLines)
        if (condition := exchange.header(b"if-match")) is not None:
            take_condition(route, given, condition)
        if (condition := exchange.header(b"if-none-match")) is not None and route.writes:
            take_condition(route, given, condition, none=True)
        noting = _Noting(self._audit, caller, route, given, exchange.id)
        try:
            access.narrow(caller, route.verb, given)
            access.check(caller, route.grant, {} if route.wide else given)
            if route.verb == "remember":
                access.take_exactly(caller, given)
            access.check_telling(caller, route.verb, given)
            await self._answer(exchange, caller, route, given, sent, noting)
        except BaseException as error:
            noting.failed(error)
            raise

    def _deny(self, exchange: Exchange, caller: Caller, route: Route) -> None:
        """Refuse a call without the required grant, whatever its target."""
        if caller.key != "" and not route.writes:
            self._audit.note(caller, route.verb, {}, exchange.id, DENIED)
        access.check(caller, route.grant, {})
        raise AssertionError("a key without the grant is refused")

    async def _answer(
        self, exchange: Exchange, caller: Caller, route: Route, given: dict[str, Any], sent: Any, noting: _Noting
    ) -> None:
        """Execute an allowed call and answer it; `sent` is its body. A read is audited before its answer is sent."""
        if route.verb == "runs_import":
            given["own"] = not caller.may(access.MANAGE, None)
        if route.verb == "webhooks_add":
            given["inside"] = caller.key == "" or self._local  # without keys, only this machine calls
        ledger = self._tenants.ledger(caller)
        given, times = spoken_times.resolved(given, ledger.context.clock)
        if route.verb == LOG and (exchange.accepts(requests.EVENTS) or exchange.accepts(requests.LINES)):
            kind = "exports" if exchange.accepts(requests.LINES) else "follows"
            async with self._turns[kind].turn(caller):
                noting.answered()  # it may take hours until it ends
                with self._measures.streaming(kind):
                    await self._streams.answer(exchange, ledger, given)
            return
        if route.verb == "stale_new":
            async with self._turns["follows"].turn(caller):
                with self._measures.streaming("waits"):
                    await exchange.while_here(self._streams.wait(ledger, given))
        if route.verb in heavy_reads.TELLING and exchange.accepts(requests.EVENTS):
            await self._follow(exchange, caller, route, ledger, given, noting)
            return
        if route.writes:
            work = self._writes.carry_out(caller, ledger, route, given, sent)
            answer = await access.discreet(caller, ledger, work, given)
        else:
            answer = await self._read(exchange, caller, route, ledger, given)
        if times and route.form.kind is not bytes:
            answer = with_times(answer, times)
        noting.answered()
        await exchange.send(answer.body, requests.JSON, headers=answer.headers)

    async def _read(
        self, exchange: Exchange, caller: Caller, route: Route, ledger: Ledger, given: dict[str, Any]
    ) -> Reply:
        """Execute a read: at once if it is short, else in a thread, or in a process if it is heavy."""
        if route.soon is not None and self._reads_soon and "as_of" not in given and "valid_at" not in given:
            found = route.soon(ledger, **given)
            if found is not None:
                return reply(route, ledger, found, details=given.get(DETAILS.name, False))
        job = _job(route, ledger, given) if heavy_reads.is_apart(route.verb, given) else None
        reading = self._reads.read(caller, lambda: read(route, ledger, given), job)
        answer: Reply = await (reading if job is None else exchange.while_here(reading))
        if caller.key != "":
            self._callers.identify(exchange)  # waiting took a while, and the key may have been revoked meanwhile
        return answer

    async def _follow(
        self, exchange: Exchange, caller: Caller, route: Route, ledger: Ledger, given: dict[str, Any], noting: _Noting
    ) -> None:
        """Execute a long read and stream its progress. A client that disconnects cancels it."""
        steps = Steps(heavy_reads.TELLING[route.verb])
        job = _job(route, ledger, given)._replace(tells=True)

        def here() -> Reply:
            return read(route, ledger, {**given, "progress": steps.tell})

        def identify() -> None:
            if caller.key != "":
                self._callers.identify(exchange)

        async with self._reads.reading(caller, here, job, steps.tell) as reading:
            reading.add_done_callback(lambda done: None if done.cancelled() or done.exception() else noting.answered())
            with self._measures.streaming("progress"):
                turns = self._turns["heavy_reads"]
                events = progress(reading, steps, identify, lambda: turns.waiting > 0)
                await exchange.stream(requests.EVENTS, events)


class _Noting:
    """Audits one read of a key, once; it ignores writes and callers without a key.

    The read is recorded before the first byte of the answer is sent: a client that takes most of it and disconnects has
    read it. A refused read is recorded without its arguments, which are unchecked.
    """

    def __init__(self, audit: Audit, caller: Caller, route: Route, given: Mapping[str, Any], request: str) -> None:
        self._audit, self._caller, self._verb, self._request = audit, caller, route.verb, request
        self._open = caller.key != "" and not route.writes
        self._given = dict(given) if self._open else given

    def answered(self) -> None:
        """Record that the read was answered."""
        self._note(SUCCESS, self._given)

    def failed(self, error: BaseException) -> None:
        """Record the outcome of an unanswered read; `NotFound` counts as an answer."""
        if isinstance(error, Refused) or (isinstance(error, Rejected) and error.code == Refused.code):
            self._note(FAILURE, {})
        elif isinstance(error, Forbidden):
            self._note(DENIED, self._given)
        else:
            answers = isinstance(error, NotFound | Outdated)
            self._note(SUCCESS if answers else FAILURE, self._given)

    def _note(self, outcome: str, given: Mapping[str, Any]) -> None:
        if self._open:
            self._open = False
            self._audit.note(self._caller, self._verb, given, self._request, outcome)


def _job(route: Route, ledger: Ledger, given: Mapping[str, Any]) -> Job:
    """Return the read of a route as a job for another process."""
    return Job(route.verb, partial(read_by_name, route.verb), ledger.tenant, ledger.agent, dict(given))

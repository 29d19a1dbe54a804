"""Endpoint: OTLP over HTTP at one address of the application: protobuf or JSON in, the same out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from woodrat.errors import Fault, Refused, WoodratError, shown
from woodrat.records import replace
from woodrat.server import wire
from woodrat.server.access import MANAGE, RUN
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.server.requests import JSON, Exchange

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.importers.span_entries import Body
    from woodrat.importers.spans import Span, SpanBatch
    from woodrat.server.access import Caller
    from woodrat.server.gateway import HttpGateway

PATH: Final = b"/v1/traces"
PROTOBUF: Final = b"application/x-protobuf"
PART_ENTRIES: Final = 500
"""Entries after which a write is full; the next runs of the batch go into another write."""
FAULTS_TOLD_MAX: Final = 10
"""Number of rejected spans that an answer describes; all are counted."""


class OtlpEndpoint:
    """Accepts the spans of exporters; their parser is imported with the first request."""

    name, path = "traces", PATH

    async def answer(self, exchange: Exchange, gateway: HttpGateway) -> None:
        """Record the spans of one request; some may be rejected, and the answer says so."""
        caller = gateway.callers.of(exchange)
        media = exchange.content_type()
        try:
            batch = await _record_spans(exchange, caller, gateway, media)
        except WoodratError as error:
            status = error.status if isinstance(error, Rejected) else wire.http_status(error)
            headers = error.headers if isinstance(error, Rejected) else ()
            if media == PROTOBUF:
                await exchange.send(status_message(error), PROTOBUF, status, headers)
            else:
                await exchange.answer({"code": _RPC[error.code], "message": str(error)}, status, headers)
            return
        if media == PROTOBUF:
            await exchange.send(accepted(batch), PROTOBUF)
        else:
            some = {"partialSuccess": {"rejectedSpans": str(len(batch.rejected)), "errorMessage": told(batch)}}
            await exchange.send(orjson.dumps(some if batch.rejected else {}), JSON)

    async def close(self) -> None:
        """Nothing stays open between requests."""


async def _record_spans(exchange: Exchange, caller: Caller, gateway: HttpGateway, media: bytes) -> SpanBatch:
    """Record the spans of a request; return them with the rejected ones."""
    from woodrat.importers import spans

    if exchange.method != "POST":
        text = f"{exchange.method}: not a method of /v1/traces. {NOTHING_DONE} Use POST."
        raise Rejected(405, text, ((b"allow", b"POST"),))
    if media not in (JSON, PROTOBUF):
        got = shown(media.decode("latin-1"))
        raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send {PROTOBUF.decode()} or {JSON.decode()}.")
    gateway.allow(caller, "traces", RUN, {})
    read = spans.from_json if media == JSON else spans.from_protobuf
    batch: SpanBatch = await gateway.body_reader.take(exchange, caller, gateway.body_reader.limits_of(True), read)
    ledger, named = gateway.ledger(caller), caller.may(MANAGE, None)
    sent, refusals = batch.spans, []
    writes = await gateway.read(caller, lambda: parts(_entries_of(sent, ledger.agent, named=named)))
    for part in writes:
        try:
            await gateway.write(caller, partial(ledger.runs.import_, part))
        except Refused as refusal:
            refusals.append(refusal)
            ids = {span.id for span in sent}
            lost = dict.fromkeys(entry["span"] for entry in part if entry["span"] in ids)
            faults = [Fault(f"span {span}", refusal.faults[0].problem, refusal.faults[0].remedy) for span in lost]
            batch = replace(batch, rejected=(*batch.rejected, *faults))
    if refusals and len(refusals) == len(writes):
        raise refusals[0]
    return batch


def record(ledger: Ledger, batch: SpanBatch, *, named: bool) -> tuple[str, ...]:
    """Record the spans of a batch; return their runs. Spans that the log holds change nothing."""
    runs = [ledger.runs.import_(part) for part in parts(_entries_of(batch.spans, ledger.agent, named=named))]
    return tuple(run for part in runs for run in part)


def _entries_of(spans: Sequence[Span], agent: str, *, named: bool) -> list[Body]:
    from woodrat.importers.span_entries import beginnings, entries

    return [*beginnings(spans, agent), *entries(spans, agent, named=named)]


def parts(bodies: Iterable[Body]) -> list[list[Body]]:
    """Return entries in parts that are a write each, so that others write between them; a run is in one part."""
    by_run: dict[str, list[Body]] = {}
    for entry in bodies:
        by_run.setdefault(entry["run"], []).append(entry)
    listed: list[list[Body]] = []
    for of_run in by_run.values():
        if not listed or len(listed[-1]) >= PART_ENTRIES:
            listed.append([])
        listed[-1] += of_run
    return listed


def told(batch: SpanBatch) -> str:
    """Return the reasons for the rejected spans, in words."""
    said = [f"{fault.path}: {fault.problem}. {fault.remedy}" for fault in batch.rejected[:FAULTS_TOLD_MAX]]
    further = len(batch.rejected) - len(said)
    return " ".join([*said, f"{further} more." if further else ""]).strip()


def accepted(batch: SpanBatch) -> bytes:
    """Return an ExportTraceServiceResponse; empty when every span was accepted."""
    if not batch.rejected:
        return b""
    some = b"\x08" + _varint(len(batch.rejected)) + _text(2, told(batch))
    return b"\x0a" + _varint(len(some)) + some


def status_message(error: WoodratError) -> bytes:
    """Return an error as a google.rpc.Status, as OTLP requires."""
    return b"\x08" + _varint(_RPC[error.code]) + _text(2, str(error))


_RPC: Final = {"refused": 3, "not_found": 5, "forbidden": 7, "outdated": 9, "corrupt": 15, "unavailable": 14}
"""Codes of google.rpc.Status."""


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _text(field: int, text: str) -> bytes:
    data = text.encode("utf-8", "backslashreplace")
    return bytes([field << 3 | 2]) + _varint(len(data)) + data

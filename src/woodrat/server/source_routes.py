"""Source routes: the content of sources, and readings of them by their id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.api.parameters import FLAG, OBJECT, RECORD, TEXT, WHOLE, any_of, id_schema
from woodrat.errors import Fault, Refused, shown
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.server.access import WRITE
from woodrat.server.route import KEY, Route, in_body, in_path
from woodrat.state.source import Delivery

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.report import Report


@dataclass(frozen=True, slots=True)
class SourceContent(Record):
    """A source with its content, as text where it is UTF-8."""

    source: str
    """Its id."""
    bytes: int
    """Its length."""
    deliveries: tuple[Delivery, ...]
    """Its deliveries: agent, time and name of each."""
    text: str | None
    """The content; None if it is not text."""
    base64: str | None
    """The content, where it is no text."""


@dataclass(frozen=True, slots=True)
class AddedSource(Record):
    """A source that was added."""

    source: str
    """Its id."""
    bytes: int
    """How long it is."""


@dataclass(frozen=True, slots=True)
class StartedReading(Record):
    """A reading of a source that was started."""

    interpretation: str
    """Its id."""
    source: str
    """The source."""


@dataclass(frozen=True, slots=True)
class EndedReading(Record):
    """A reading of a source that has ended."""

    interpretation: str
    """Its id."""
    status: str
    """How it ended: done or error."""


def show(past: Past, source: str) -> SourceContent:
    """Return a source with its content."""
    content = past.sources.content(source)
    deliveries = past.sources.show(source)
    try:
        return SourceContent(source, len(content), deliveries, content.decode("utf-8"), None)
    except UnicodeDecodeError:
        from base64 import b64encode

        return SourceContent(source, len(content), deliveries, None, b64encode(content).decode("ascii"))


def add(
    ledger: Ledger,
    *,
    text: str | None = None,
    base64_: str | None = None,
    name: str | None = None,
    media_type: str | None = None,
    idempotency_key: str | None = None,
) -> AddedSource:
    """Add a source as received."""
    faults = [
        Fault(name, f"expected text, got {shown(value)}", "Send it as text.")
        for name, value in (("text", text), ("base64", base64_))
        if value is not None and not isinstance(value, str)
    ]
    if faults:
        raise Refused(faults)
    if (text is None) == (base64_ is None):
        problem = "there is no content" if text is None else "text and base64 are both given"
        raise Refused([Fault("text", problem, "Send the content in one of text and base64.")])
    content = text.encode() if text is not None else _decoded(base64_ or "")
    source = ledger.sources.add(content, name=name, media_type=media_type, idempotency_key=idempotency_key)
    return AddedSource(source, len(content))


def _decoded(text: str) -> bytes:
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise Refused([Fault("base64", f"is not base64 ({error})", "Send RFC 4648 base64 with padding.")]) from error


def start_reading(ledger: Ledger, source: str, **about: Any) -> StartedReading:
    """Start an interpretation of a source."""
    return StartedReading(ledger.interpretations.begin(source, **about).id, source)


def store_reading(ledger: Ledger, interpretation: str, **given: Any) -> Report:
    """Store the records of an interpretation."""
    return ledger.interpretations.continue_(interpretation).store(**given)


def end_reading(ledger: Ledger, interpretation: str, **how: Any) -> EndedReading:
    """End a reading."""
    ledger.interpretations.continue_(interpretation).end(**how)
    return EndedReading(interpretation, how.get("status", "done" if "error" not in how else "error"))


_SOURCE: Final = in_path("source", "id of the source", "src_aaaaaaaaaaaaaaaaaaaaaaaaaa")
_READING: Final = in_path(
    "interpretation", "id of the interpretation", "int_aaaaaaaaaaaaaaaaaaaaaaaaaa", id_schema("int")
)

ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/sources/{source}", "sources_show", show, "Show a source with its content.", params=(_SOURCE,)),
    Route(
        "POST",
        "/v1/sources",
        "sources_add",
        add,
        "Add a source as it was received.",
        WRITE,
        (
            in_body("text", TEXT, "the content, as text"),
            in_body("base64_", TEXT, "the content, as base64", wire="base64"),
            in_body("name", TEXT, "what to call it"),
            in_body("media_type", TEXT, "its media type"),
            KEY,
        ),
        moment=False,
        example={"text": "Payment terms: Net-30.", "name": "contract.txt"},
    ),
    Route(
        "POST",
        "/v1/interpretations",
        "interpretations_start",
        start_reading,
        "Start an interpretation of a source by a model or parser; store its records through it, then end it.",
        WRITE,
        (
            in_body("source", TEXT, "id of the source", required=True),
            in_body("model", TEXT, "which model reads it"),
            in_body("prompt", TEXT, "the prompt; only its digest is kept"),
            in_body("extractor", TEXT, "which code turns the answer into records"),
            in_body("parameters", OBJECT, "parameters of the model"),
            in_body("configuration", OBJECT, "other settings of the interpretation"),
            KEY,
        ),
        moment=False,
        example={"source": "src_aaaaaaaaaaaaaaaaaaaaaaaaaa", "model": "small-1"},
        alone=True,
    ),
    Route(
        "POST",
        "/v1/interpretations/{interpretation}/store",
        "interpretations_store",
        store_reading,
        "Store the records of an interpretation; each names the interpretation and its source.",
        WRITE,
        (
            _READING,
            in_body("records", any_of(RECORD, {"type": "array", "items": RECORD}), "what was found", required=True),
            in_body("observed_at", TEXT, "when it was seen, RFC 3339 with an offset; default: now"),
            in_body("valid_from", TEXT, "since when it is true; default: when it was seen"),
            in_body("priority", WHOLE, "trust in the writer; the larger wins"),
            in_body("dry_run", FLAG, "do everything except write"),
            KEY,
        ),
        moment=False,
        example={"records": [{"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"}]},
        alone=True,
    ),
    Route(
        "POST",
        "/v1/interpretations/{interpretation}/end",
        "interpretations_end",
        end_reading,
        "End an interpretation; an ended one stays unchanged.",
        WRITE,
        (
            _READING,
            in_body("status", {"type": "string", "enum": ["done", "error"]}, "how it ended; default: done"),
            in_body("usage", OBJECT, "the cost, as the model reported it"),
            in_body("error", TEXT, "why it failed"),
        ),
        moment=False,
        example={"usage": {"input": 120, "output": 9}},
        alone=True,
    ),
)
"""All of them."""

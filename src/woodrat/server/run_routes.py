"""Run routes: live runs, recorded over HTTP as they happen, and further questions about recorded runs.

The relay (`runs/relay.py`) keeps a live run while it lasts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.api import codec
from woodrat.api.parameters import FLAG, OBJECT, OBJECTS, TEXT, TEXTS, WAIT_SECONDS_MAX, WHOLE, any_of, id_schema
from woodrat.canon.form import Json
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs.recorder.recording import FAIL, RESOLVE, RETRY
from woodrat.server.access import RUN
from woodrat.server.route import KEY, Route, in_body, in_path, in_query

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.explain.workers.follower import Newly
    from woodrat.runs.relay import Relay


@dataclass(frozen=True, slots=True)
class StartedRun(Record):
    """A run that was started."""

    run: str
    """Its id."""
    basis: int | None
    """The log position of its first reads."""
    log: str | None
    """The log that records it; None if its start is the first entry."""
    span: str | None
    """The id of its span."""
    started_at: str | None
    """When it started."""
    repeated: bool
    """True if an earlier call with the same key started it."""


@dataclass(frozen=True, slots=True)
class RecordedStep(Record):
    """A step of a run, and its outcome."""

    run: str
    """The run."""
    repeated: bool
    """True if an earlier call with the same key recorded it."""
    snapshot: Json = None
    """The snapshot that `show` read."""
    found: Json = None
    """The answer of another reading verb."""
    verdict: Json = None
    """The decision."""
    report: Json = None
    """The report of the write."""


@dataclass(frozen=True, slots=True)
class RecordedEntries(Record):
    """Entries of a run, as received."""

    run: str
    """The run."""
    recorded: int
    """Number of new entries."""


@dataclass(frozen=True, slots=True)
class ResumedRun(Record):
    """A run that its caller continues."""

    run: str
    """The run."""
    resumed_at: str | None
    """The time of its last entry."""
    runs: tuple[tuple[Json, ...], ...]
    """The entries of the run, then those of each child run."""


@dataclass(frozen=True, slots=True)
class EndedRun(Record):
    """A run that has ended."""

    run: str
    """The run."""
    status: str
    """Its status: done, error or cancelled."""
    repeated: bool
    """True if an earlier call with the same key ended it."""


@dataclass(frozen=True, slots=True)
class RunText(Record):
    """A run as text."""

    run: str
    """The run."""
    projection: str
    """The projection: decisions, commits, narrative or full."""
    text: str
    """The text."""
    tokens: int
    """Estimated number of tokens."""


@dataclass(frozen=True, slots=True)
class WriteReceipt(Record):
    """The report of a write in a run."""

    agent: str
    """The agent that wrote."""
    key: str
    """The idempotency key of the write."""
    request: str
    """Digest of the request, in hex."""
    report: str
    """The report, as stored with the key."""


def start(ledger: Ledger, relay: Relay, *, idempotency_key: str | None = None, **about: Any) -> StartedRun:
    """Start a run."""
    return StartedRun(**relay.start(ledger.context, about, idempotency_key))


def record_step(
    ledger: Ledger, relay: Relay, *, run: str, step: Any, idempotency_key: str | None = None
) -> RecordedStep:
    """Record one step of a run."""
    return RecordedStep(**codec.plain(relay.step(ledger.context, run, step, idempotency_key)))


def record_entries(ledger: Ledger, relay: Relay, *, run: str, entries: Any) -> RecordedEntries:
    """Append entries of a run as its recorder wrote them."""
    return RecordedEntries(**relay.entries(ledger.context, run, entries))


def resume(
    ledger: Ledger, relay: Relay, *, run: str, position: int | None = None, on_unknown: str = FAIL
) -> ResumedRun:
    """Hand an interrupted run over to another recorder."""
    return ResumedRun(**relay.resume(ledger.context, run, position, on_unknown))


def end(ledger: Ledger, relay: Relay, *, run: str, idempotency_key: str | None = None, **how: Any) -> EndedRun:
    """End a run."""
    return EndedRun(**relay.end(ledger.context, run, idempotency_key, **how))


def receipts(past: Past, run: str) -> tuple[WriteReceipt, ...]:
    """Return the reports of the writes of a run."""
    from woodrat.runs import relay

    return tuple(WriteReceipt(**receipt) for receipt in relay.receipts(past.context, run))


def text(past: Past, run: str, projection: str = "decisions", budget: int | None = None) -> RunText:
    """Return a run as text."""
    from woodrat.runs.projection import project
    from woodrat.runs.words import tokens

    record = past.runs.show(run)
    shown = project(record, projection, budget)
    return RunText(record.id, projection, shown, tokens(shown))


def snapshot(past: Past, run: str) -> dict[str, Any]:
    """Return a run in the snapshot format."""
    return past.runs.show(run).snapshot()


def newly_stale(ledger: Ledger, after: int | None = None) -> Newly:
    """Return the decisions made stale by the next writes after a position; default: after the end of the log."""
    from woodrat.explain.workers.follower import Follower
    from woodrat.ledger.moments import resolve_moment

    own = ledger.context
    with own.engine.view(own.tenant) as view:
        position = resolve_moment(view, "now" if after is None else after, clock=own.clock)
    return Follower(own, position).next()


_STATUS: Final = {"type": "string", "enum": ["done", "error", "cancelled"]}
_RUN: Final = in_path("run", "id of the run", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", id_schema("run"))

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "POST",
        "/v1/runs",
        "runs_start",
        start,
        "Start a run; its steps are then recorded one by one.",
        RUN,
        (
            in_body("query", TEXT, "the question or task of the run", required=True),
            in_body("subject", TEXT, "the entity it is about"),
            in_body("conversation", TEXT, "the conversation it is part of"),
            in_body("principal", TEXT, "the principal on whose behalf it runs"),
            in_body("inputs", OBJECT, "its inputs, by name"),
            in_body("inputs_shape", OBJECTS, "the shape of the inputs, of a recorder that restores them in a replay"),
            in_body("code", TEXT, "version of the agent's code"),
            in_body("parent", TEXT, "the run that started it"),
            in_body("runbook", any_of(TEXT, TEXTS), "runbooks in force"),
            in_body("tool_configs", TEXTS, "tool configurations in force"),
            in_body("pipeline", TEXT, "the pipeline it is a step of"),
            in_body("session", TEXT, "the agent_session it is part of"),
            in_body("attributes", OBJECT, "anything else"),
            in_body("redact", TEXTS, "names of values to hide before they are written"),
            in_body("recall", FLAG, "whether it answers from memory"),
            in_body("traceparent", TEXT, "the W3C trace context it is part of"),
            in_body("id", TEXT, "the id of the run; default: a new one"),
            in_body("forked_from", OBJECT, "the run and step it forks, and the edit"),
            KEY,
        ),
        moment=False,
        example={"query": "Approve #42?", "inputs": {"application": 42}},
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/steps",
        "runs_step",
        record_step,
        "Record a step of a run: read, tool, model, decide, select, decided, note, store or change. "
        "The server makes the decisions by rules.",
        RUN,
        (_RUN, in_body("step", OBJECT, "an object with one key, the kind of step", required=True), KEY),
        moment=False,
        example={
            "step": {
                "decide": {
                    "stage": "classify-risk",
                    "facts": {"creditScore": 580},
                    "rules": [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}],
                }
            }
        },
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/entries",
        "runs_entries",
        record_entries,
        "Record steps of a run, and its end, as entries; known entries change nothing.",
        RUN,
        (_RUN, in_body("entries", OBJECTS, "objects with a kind, such as run.noted", required=True)),
        moment=False,
        example={"entries": [{"kind": "run.noted", "text": "checked"}]},
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/resume",
        "runs_resume",
        resume,
        "Resume an interrupted run in another process: return its entries, and the entries of its child runs.",
        RUN,
        (
            _RUN,
            in_body(
                "position", WHOLE, "the last position of the run that you know; refused if the run has newer entries"
            ),
            in_body(
                "on_unknown",
                {"type": "string", "enum": [FAIL, RETRY, RESOLVE]},
                "handling of `once` tools that started and never finished: refuse to resume, call them again, or "
                "find out the result yourself; default: fail",
            ),
        ),
        moment=False,
        example={"position": 41},
        alone=True,
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/end",
        "runs_end",
        end,
        "End a run, with its answer.",
        RUN,
        (
            _RUN,
            in_body("answer", {}, "what it answers"),
            in_body("status", _STATUS, "how it ended; default: done"),
            in_body("error", any_of(TEXT, OBJECT), "the error: text, or type and message"),
            in_body("usage", OBJECT, "the cost, as counts by name"),
            KEY,
        ),
        moment=False,
        example={"answer": "Rejected."},
        relays=True,
    ),
    Route(
        "GET",
        "/v1/runs/{run}/text",
        "runs_text",
        text,
        "Return a run as text for a person or a prompt, within a budget of tokens.",
        params=(
            _RUN,
            in_query("projection", TEXT, "decisions, commits, narrative or full; default: decisions"),
            in_query("budget", WHOLE, "most tokens of the text"),
        ),
    ),
    Route(
        "GET",
        "/v1/runs/{run}/snapshot",
        "runs_snapshot",
        snapshot,
        "Return a run in the snapshot format, which other tools read.",
        params=(_RUN,),
    ),
    Route(
        "GET",
        "/v1/runs/{run}/receipts",
        "runs_receipts",
        receipts,
        "List the reports of a run's writes, by idempotency key; a replay elsewhere needs them.",
        wide=True,
        moment=False,
        params=(_RUN,),
    ),
    Route(
        "GET",
        "/v1/stale/new",
        "stale_new",
        newly_stale,
        "List decisions that writes after a position made stale, and the position to ask after next.",
        wide=True,
        moment=False,
        params=(
            in_query("after", WHOLE, "the position that the last answer named; default: the end of the log"),
            in_query("wait", {**WHOLE, "minimum": 0, "maximum": WAIT_SECONDS_MAX}, "seconds to wait for a write"),
        ),
    ),
)
"""All of them."""

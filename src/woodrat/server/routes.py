"""Routes: every address there is; the application, the OpenAPI document and the tests are made from it.

A declared verb has the address, the parameters and the grant of its declaration (`api/verb.py`); here stands only which
function answers and in which shape. Written out is what no verb of the library is: runs told as they happen,
interpretations by their id, how logs meet, webhooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from woodrat.api.parameters import (
    FLAG,
    OBJECT,
    OBJECTS,
    RECORD,
    TEXT,
    TEXTS,
    WAIT_SECONDS_MAX,
    WHOLE,
    any_of,
    id_schema,
)
from woodrat.api.verb import Parameter, at_moment
from woodrat.api.verbs import verbs
from woodrat.records import dataclass
from woodrat.server import answers
from woodrat.server.access import ANYONE, MANAGE, READ, RUN, WRITE
from woodrat.server.show_cache import Spelling


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a route."""

    name: str
    """Its name in the library; in the query it is spelled `wire`."""
    schema: Mapping[str, Any]
    """JSON Schema of its value."""
    what: str
    """What it is, in a clause."""
    required: bool = False
    """Whether a call without it is refused."""
    wire: str = ""
    """Its name on the wire, where that is another."""
    inside: str = "query"
    """Where it stands: `query`, `path`, `body` or `header`."""
    example: Any = None
    """A value that works, for the document; of a body the route has one."""

    @property
    def spelled(self) -> str:
        """Its name on the wire."""
        return self.wire or self.name


@dataclass(frozen=True, slots=True)
class Route:
    """One address and method."""

    method: str
    """GET or POST."""
    path: str
    """The address; a part in braces takes all of the path up to what follows it."""
    verb: str
    """The verb of SURFACE it stands for; the operation's id."""
    answer: Callable[..., Any]
    """Gives the answer, from the ledger or the moment asked for, and the arguments by name."""
    what: str
    """What it does, in a sentence."""
    grant: str = READ
    """What a key needs for it."""
    params: tuple[Param, ...] = ()
    """Its arguments."""
    moment: bool = True
    """Whether it reads at a moment: `as_of` and `valid_at`."""
    example: Any = None
    """A body that works, for the document."""
    shape: str = "Answer"
    """The schema of its answer, among the components."""
    relays: bool = False
    """Whether it is told of a run by its agent, and takes what keeps such runs as well."""
    wide: bool = False
    """Whether it may tell of other types than it names, so that a grant for a type does not open it."""
    alone: bool = False
    """Whether it reads what it wrote, so that it cannot share a commit."""
    batched: bool = False
    """Whether it is one write and its report, so that it can be merged with those it shares a commit with."""
    lines: bool = False
    """Whether its body may be JSON lines too."""
    soon: Callable[..., Any] | None = None
    """Answers for the present on the loop itself, where that takes less than handing it to a thread; else `None`."""

    @property
    def writes(self) -> bool:
        """Whether it appends to the log."""
        return self.method == "POST" and self.grant != READ


def _q(
    name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "", example: Any = None
) -> Param:
    return Param(name, schema, what, required, wire, example=example)


def _in_path(name: str, what: str, example: str, schema: Mapping[str, Any] = TEXT) -> Param:
    return Param(name, schema, what, True, inside="path", example=example)


def _b(name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "") -> Param:
    return Param(name, schema, what, required, wire, "body")


def _param(parameter: Parameter, method: str) -> Param:
    """Return a parameter of a verb as a route has it."""
    kind = parameter.kind
    inside = "path" if parameter.in_path else "header" if kind.header else "body" if method == "POST" else "query"
    example = kind.example if inside == "path" or (inside == "query" and parameter.required) else None
    return Param(parameter.name, kind.schema, kind.what, parameter.required, kind.header or kind.wire, inside, example)


AS_OF, VALID_AT = (_param(parameter, "GET") for parameter in at_moment())
KEY: Final = Param(
    "idempotency_key", TEXT, "makes sending the same call again safe", wire="Idempotency-Key", inside="header"
)
_RUN = _in_path("run", "the run", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", id_schema("run"))
_INTERPRETATION = _in_path("interpretation", "the reading", "int_aaaaaaaaaaaaaaaaaaaaaaaaaa", id_schema("int"))
_WEBHOOK = _in_path("webhook", "id of the webhook", "hook_aaaaaaaaaaaaaaaaaaaaaaaaaa")
_OBSERVED = _b("observed_at", TEXT, "when it was seen, RFC 3339 with an offset; left out: now")
_REASON = _b("reason", TEXT, "why; it is kept with the change")
_DRY = _b("dry_run", FLAG, "do everything but write")


def declared_route(
    name: str,
    operation: str,
    answer: Callable[..., Any],
    *,
    shape: str = "Answer",
    further: tuple[Param, ...] = (),
    soon: Callable[..., Any] | None = None,
) -> Route:
    """Return the route of a declared verb; `further` are parameters that only its address has."""
    verb = verbs()[name]
    declared = verb.declaration
    return Route(
        declared.method,
        declared.path,
        operation,
        answer,
        verb.what,
        declared.grant,
        (*(_param(each, declared.method) for each in verb.parameters if each.name not in HERE_ONLY), *further),
        declared.at_moment,
        declared.example,
        shape,
        wide=declared.wide,
        alone=declared.alone,
        batched=declared.batched,
        lines=declared.lines,
        soon=soon,
    )


HERE_ONLY: Final = frozenset({"by"})
"""Parameters that a server does not take: who judges is for the key to say."""


ROUTES: Final[tuple[Route, ...]] = (
    declared_route("store", "store", answers.store, shape="Report"),
    Route(
        "GET",
        "/v1/caller",
        "caller",
        answers.caller,
        "Say as whom and for which tenant a key speaks.",
        ANYONE,
        moment=False,
    ),
    Route("GET", "/v1/position", "position", answers.position, "Say where the log stands, at a moment."),
    declared_route("query", "query", answers.query, shape="Entities"),
    declared_route("search", "search", answers.search, shape="Entities"),
    declared_route("duplicates", "duplicates", answers.duplicates, shape="Duplicates"),
    declared_route("show", "show", answers.snapshot, shape="Snapshot", soon=Spelling.show),
    declared_route("elements", "elements", answers.elements),
    declared_route("observations", "observations", answers.observations, shape="Observations"),
    declared_route("history", "history", answers.history, shape="History"),
    declared_route("timeline", "timeline", answers.timeline, shape="Timeline"),
    declared_route("diff", "diff", answers.diff, shape="Changes"),
    declared_route("blame", "blame", answers.blame),
    declared_route("conflicts", "conflicts", answers.conflicts, shape="Conflicts"),
    declared_route("related", "related", answers.related, shape="Related"),
    declared_route("values", "values", answers.values),
    declared_route("ids", "ids", answers.ids),
    declared_route("fingerprint", "fingerprint", answers.fingerprint),
    declared_route("correct", "correct", answers.correct, shape="Report"),
    declared_route("retract", "retract", answers.retract, shape="Report"),
    declared_route("delete", "delete", answers.delete, shape="Report"),
    declared_route("restore", "restore", answers.restore, shape="Report"),
    declared_route("relate", "relate", answers.relate, shape="Report"),
    declared_route("merge", "merge", answers.merge, shape="Report"),
    declared_route("split", "split", answers.split, shape="Report"),
    declared_route("schemas.list", "schemas", answers.schemas, shape="Schemas"),
    declared_route("schemas.show", "schema", answers.schema),
    declared_route("schemas.register", "register", answers.register, shape="Report"),
    declared_route("schemas.infer", "infer", answers.infer),
    declared_route("sources.list", "sources", answers.sources, shape="Deliveries"),
    Route(
        "GET",
        "/v1/sources/{id}",
        "source",
        answers.source,
        "Show a source with its content.",
        params=(_in_path("id", "the source", "src_aaaaaaaaaaaaaaaaaaaaaaaaaa"),),
    ),
    Route(
        "POST",
        "/v1/sources",
        "add_source",
        answers.add_source,
        "Keep a source as it was received.",
        WRITE,
        (
            _b("text", TEXT, "the content, as text"),
            _b("base64_", TEXT, "the content, as base64", wire="base64"),
            _b("name", TEXT, "what it was called"),
            _b("media_type", TEXT, "its media type"),
            KEY,
        ),
        moment=False,
        example={"text": "Payment terms: Net-30.", "name": "contract.txt"},
    ),
    declared_route("interpretations.list", "interpretations", answers.interpretations, shape="Interpretations"),
    declared_route("interpretations.diff", "interpretations_diff", answers.interpretations_diff),
    Route(
        "POST",
        "/v1/interpretations",
        "interpretation",
        answers.interpretation,
        "Begin a reading of a source; what it finds is stored through it, and then it is ended.",
        WRITE,
        (
            _b("source", TEXT, "id of the source", required=True),
            _b("model", TEXT, "which model reads it"),
            _b("prompt", TEXT, "what it is asked; its digest is kept"),
            _b("extractor", TEXT, "which code turns the answer into records"),
            _b("parameters", OBJECT, "model parameters"),
            _b("configuration", OBJECT, "anything else that shapes the reading"),
            KEY,
        ),
        moment=False,
        example={"source": "src_aaaaaaaaaaaaaaaaaaaaaaaaaa", "model": "small-1"},
        alone=True,
    ),
    Route(
        "POST",
        "/v1/interpretations/{interpretation}/store",
        "interpretation_store",
        answers.interpretation_store,
        "Store what a reading found; each record names the reading and its source.",
        WRITE,
        (
            _INTERPRETATION,
            _b("records", any_of(RECORD, {"type": "array", "items": RECORD}), "what was found", required=True),
            _OBSERVED,
            _b("valid_from", TEXT, "since when it is true; left out: when it was seen"),
            _b("priority", WHOLE, "how much the writer is to be trusted; larger wins"),
            _DRY,
            KEY,
        ),
        moment=False,
        example={"records": [{"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"}]},
        shape="Report",
        alone=True,
    ),
    Route(
        "POST",
        "/v1/interpretations/{interpretation}/end",
        "interpretation_end",
        answers.interpretation_end,
        "End a reading; one that has ended stays as it is.",
        WRITE,
        (
            _INTERPRETATION,
            _b("status", {"type": "string", "enum": ["done", "error"]}, "how it ended; done if left out"),
            _b("usage", OBJECT, "what it cost, as the model reported it"),
            _b("error", TEXT, "why it failed"),
        ),
        moment=False,
        example={"usage": {"input": 120, "output": 9}},
        alone=True,
    ),
    declared_route("tag", "tag", answers.tag, shape="Report"),
    declared_route("runs.list", "runs", answers.runs, shape="Runs"),
    declared_route(
        "runs.show",
        "run_record",
        answers.run,
        further=(
            _q("projection", TEXT, "decisions, commits, narrative or full"),
            _q("budget", WHOLE, "most tokens of the projection"),
            _q("format", {"type": "string", "enum": ["snapshot"]}, "answer in this format"),
        ),
    ),
    Route(
        "GET",
        "/v1/runs/{run}/receipts",
        "run_receipts",
        answers.run_receipts,
        "List what the writes of a run were answered, by their keys; for replaying it elsewhere.",
        wide=True,
        moment=False,
        params=(_RUN,),
    ),
    Route(
        "GET",
        "/v1/runs/diff",
        "runs_diff",
        answers.runs_diff,
        "Say where two runs part, and why.",
        params=(
            _q("first", TEXT, "a run", required=True, example="run_aaaaaaaaaaaaaaaaaaaaaaaaaa"),
            _q("second", TEXT, "the other", required=True, example="run_bbbbbbbbbbbbbbbbbbbbbbbbbb"),
        ),
    ),
    declared_route("runs.diff", "runs_diff_documents", answers.runs_diff),
    declared_route("runs.group", "runs_group", answers.runs_group),
    Route(
        "POST",
        "/v1/runs",
        "run_start",
        answers.run_start,
        "Begin a run; its steps are told as they happen.",
        RUN,
        (
            _b("query", TEXT, "what is asked", required=True),
            _b("subject", TEXT, "the entity it is about"),
            _b("conversation", TEXT, "the conversation it is part of"),
            _b("principal", TEXT, "on whose behalf"),
            _b("inputs", OBJECT, "what it is given, by name"),
            _b("code", TEXT, "version of the agent's code"),
            _b("parent", TEXT, "the run that started it"),
            _b("runbook", any_of(TEXT, TEXTS), "runbooks in force"),
            _b("tool_configs", TEXTS, "tool configurations in force"),
            _b("pipeline", TEXT, "the pipeline it is a step of"),
            _b("session", TEXT, "the agent_session it is part of"),
            _b("attributes", OBJECT, "anything else"),
            _b("redact", TEXTS, "names of values that are hidden before they are written"),
            _b("recall", FLAG, "whether it answers from memory"),
            _b("traceparent", TEXT, "the W3C trace context it is part of"),
            _b("id", TEXT, "the run's own id; left out: a fresh one"),
            KEY,
        ),
        moment=False,
        example={"query": "Approve #42?", "inputs": {"application": 42}},
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/steps",
        "run_step",
        answers.run_step,
        "Record a step of a run: read, tool, model, decide, select, note, store or change. A decision is made here.",
        RUN,
        (_RUN, _b("step", OBJECT, "an object with one of the kinds", required=True), KEY),
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
        "run_entries",
        answers.run_entries,
        "Take in steps of a run, and its end, as its recorder made them; sent again they change nothing.",
        RUN,
        (_RUN, _b("entries", OBJECTS, "objects with a kind, such as run.noted", required=True)),
        moment=False,
        example={"entries": [{"kind": "run.noted", "text": "checked"}]},
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/resume",
        "resume",
        answers.run_resume,
        "Carry on an interrupted run elsewhere: what the log holds of it, and of the runs started inside of it.",
        RUN,
        (_RUN, _b("position", {"type": "integer"}, "its last position that you know; refused if it has gone on")),
        moment=False,
        example={"position": 41},
        alone=True,
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run}/end",
        "run_end",
        answers.run_end,
        "End a run, with its answer.",
        RUN,
        (
            _RUN,
            _b("answer", {}, "what it answers"),
            _b("status", {"type": "string", "enum": ["done", "error", "cancelled"]}, "how it ended; done if left out"),
            _b("error", any_of(TEXT, OBJECT), "what went wrong: text, or type and message"),
            _b("usage", OBJECT, "what it cost, as counts by name"),
            KEY,
        ),
        moment=False,
        example={"answer": "Rejected."},
        relays=True,
    ),
    declared_route("runs.import_", "record", answers.record),
    declared_route("runs.judge", "judge", answers.judge, shape="Report"),
    declared_route("runs.evaluate", "evaluate", answers.evaluate, shape="Report"),
    declared_route("why", "why", answers.why, shape="Decisions"),
    declared_route("recall", "recall", answers.recall),
    declared_route("lineage", "lineage", answers.lineage),
    declared_route("impact", "impact", answers.impact),
    declared_route("stale", "stale", answers.stale, shape="Decisions"),
    Route(
        "GET",
        "/v1/stale/new",
        "newly_stale",
        answers.newly_stale,
        "List decisions that writes after a position made stale, and say how far was looked; then ask again.",
        wide=True,
        moment=False,
        params=(
            _q("after", WHOLE, "the position up to which was looked; left out: the end of the log"),
            _q("wait", {**WHOLE, "minimum": 0, "maximum": WAIT_SECONDS_MAX}, "how many seconds to wait for a write"),
        ),
        shape="Decisions",
    ),
    declared_route("what_if", "what_if", answers.what_if),
    declared_route("bisect", "bisect", answers.bisect),
    declared_route("reduce", "reduce", answers.reduce),
    declared_route("diff_against", "diff_against", answers.diff_against, shape="Changes"),
    declared_route("log.entries", "log", answers.log, shape="Entries"),
    Route(
        "POST",
        "/v1/log",
        "import_log",
        answers.import_log,
        "Take in entries of another log, whole writes of it as they are exported; what is known changes nothing.",
        MANAGE,
        (
            _b("entries", OBJECTS, "the entries, in order", required=True),
            _q("log", TEXT, "the name that their log goes by, so that it is remembered how far it was taken in"),
            _q("after", WHOLE, "the position of that log they come after"),
            _q("leaf", TEXT, "the leaf hash of that log there, in hex"),
            _q("held", FLAG, "whether all of that log through there is held here, where some of it came from"),
        ),
        moment=False,
        example={"entries": []},
        shape="Imported",
        alone=True,
        lines=True,
    ),
    Route(
        "GET",
        "/v1/leaves",
        "leaves",
        answers.leaves,
        "Say where the log stands, by which leaf hashes, so that another log can find what both have in common.",
        params=(
            _q("position", TEXTS, "a position whose leaf hash is asked for; may be given several times"),
            _q("log", TEXT, "another log, to be told how far it was taken in here"),
        ),
    ),
    declared_route("verify", "verify", answers.verify),
    declared_route("proofs.checkpoints", "checkpoints", answers.checkpoints),
    declared_route("proofs.checkpoint", "checkpoint", answers.checkpoint),
    declared_route("proofs.prove", "prove", answers.prove),
    declared_route("proofs.prove_consistency", "prove_consistency", answers.prove_consistency),
    declared_route("prove_order", "prove_order", answers.prove_order),
    declared_route("rebuild", "rebuild", answers.rebuild),
    declared_route("reindex", "reindex", answers.reindex),
    Route(
        "POST",
        "/v1/admit",
        "admit",
        answers.admit,
        "Take in observations and schemas as another log holds them, whoever said them.",
        MANAGE,
        (_b("bodies", OBJECTS, "objects with kind and body", required=True),),
        moment=False,
        example={"bodies": []},
        shape="Report",
    ),
    declared_route("erase", "erase", answers.erase),
    declared_route("erase_again", "erase_again", answers.erase_again),
    declared_route("finish_erasure", "finish_erasure", answers.finish_erasure),
    Route("GET", "/v1/webhooks", "webhooks", answers.webhooks, "List webhooks.", MANAGE, moment=False),
    Route(
        "POST",
        "/v1/webhooks",
        "add_webhook",
        answers.add_webhook,
        "Send new entries to an address, signed with a secret that is shown this once.",
        MANAGE,
        (
            _b("url", TEXT, "where to send them: a public address, over https", required=True),
            _b("kinds", TEXTS, "only entries of these kinds; left out: all"),
            _b("after", WHOLE, "begin after this position; left out: at the end of the log"),
        ),
        moment=False,
        alone=True,
        example={"url": "https://hooks.example.org/woodrat", "kinds": ["observation"]},
    ),
    Route(
        "GET",
        "/v1/webhooks/dead-letters",
        "dead_letters",
        answers.dead_letters,
        "List deliveries that were given up.",
        MANAGE,
        (_q("webhook", TEXT, "only those of this webhook"),),
        moment=False,
    ),
    Route(
        "POST",
        "/v1/webhooks/{webhook}/remove",
        "remove_webhook",
        answers.remove_webhook,
        "Send nothing to a webhook any more.",
        MANAGE,
        (_WEBHOOK,),
        moment=False,
        alone=True,
        example={},
    ),
    Route(
        "POST",
        "/v1/webhooks/{webhook}/retry",
        "retry_webhook",
        answers.retry_webhook,
        "Have deliveries that were given up sent again.",
        MANAGE,
        (_WEBHOOK, _b("first", WHOLE, "only the one that begins at this position; left out: all")),
        moment=False,
        alone=True,
        example={},
    ),
    declared_route("proofs.capsule", "capsule", answers.capsule),
)
"""All of them."""

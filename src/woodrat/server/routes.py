"""Routes: every address there is, as data; the application, the OpenAPI document and the tests are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from woodrat.ledger.find import PAGE_MAX
from woodrat.records import dataclass
from woodrat.server import answers
from woodrat.server.access import ANYONE, CORRECT, MANAGE, READ, RUN, WRITE
from woodrat.server.show_cache import Spelling

TEXT: Final[dict[str, Any]] = {"type": "string"}
WHOLE: Final[dict[str, Any]] = {"type": "integer"}
FLAG: Final[dict[str, Any]] = {"type": "boolean"}
NUMBER: Final[dict[str, Any]] = {"type": "number"}
OBJECT: Final[dict[str, Any]] = {"type": "object"}
TEXTS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}
WAIT_SECONDS_MAX: Final = 20
"""How long a caller may have the server wait for something new."""
RECORD: Final[dict[str, Any]] = {"$ref": "#/components/schemas/Record"}
TYPE: Final[dict[str, Any]] = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
ENTITY: Final[dict[str, Any]] = {"type": "string", "pattern": "^(ent_[a-z2-7]{26}|[a-z][a-z0-9_]*/.+)$"}
OBJECTS: Final[dict[str, Any]] = {"type": "array", "items": OBJECT}


def _either(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of what may be any of these; each is whole, which is what makers of clients understand."""
    return {"anyOf": list(schemas)}


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
    """Whether it reads at a moment: `as_of` and `effective`."""
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


def _id(prefix: str) -> dict[str, Any]:
    """Return the schema of an id."""
    return {"type": "string", "pattern": f"^{prefix}_[a-z2-7]{{26}}$"}


def _b(name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "") -> Param:
    return Param(name, schema, what, required, wire, "body")


AS_OF: Final = _q("as_of", TEXT, "only what was known at this moment: a position, a time, now, @tag or a run")
EFFECTIVE: Final = _q("effective", TEXT, "only what was true by this time")
KEY: Final = Param(
    "idempotency_key", TEXT, "makes sending the same call again safe", wire="Idempotency-Key", inside="header"
)
_REF = _in_path("ref", "entity as type/key, or an ent_ id", "contact/Ana Rivera", ENTITY)
_RUN = _in_path("run", "the run", "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", _id("run"))
_INTERPRETATION = _in_path("interpretation", "the reading", "int_aaaaaaaaaaaaaaaaaaaaaaaaaa", _id("int"))
_WEBHOOK = _in_path("webhook", "id of the webhook", "hook_aaaaaaaaaaaaaaaaaaaaaaaaaa")
_TYPE = _q("entity_type", TYPE, "only entities of this type")
_LIMIT = _q("limit", {**WHOLE, "minimum": 1, "maximum": PAGE_MAX}, "how many to return at most")
_CURSOR = _q("cursor", TEXT, "go on where an earlier answer ended")
_OBSERVED = _b("observed_at", TEXT, "when it was seen, RFC 3339 with an offset; left out: now")
_REASON = _b("reason", TEXT, "why; it is kept with the change")
_DRY = _b("dry_run", FLAG, "do everything but write")
_BODY_REF = _b("ref", ENTITY, "entity as type/key, or an ent_ id", required=True)
_STATING = (_REASON, _OBSERVED, _DRY, KEY)

_PREDICATE: Final = (
    _b("what", _either(TEXT, OBJECT), "an entity, a decision as RUN#stage, or a predicate"),
    _b("when", OBJECT, "conditions by field, as rules have them"),
    _b("where", _either(OBJECT, TEXTS), "values by field, or texts"),
    _b("exists", FLAG, "whether the entity is known"),
    _b("deleted", FLAG, "whether it is deleted"),
    _b("rules", OBJECTS, "rules that decide on its fields"),
    _b("default", {}, "what is chosen when no rule matches"),
    _b("chosen", {}, "the branch asked about"),
)
"""What a question about state is made of."""

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "POST",
        "/v1/store",
        "store",
        answers.store,
        "Store what an agent saw: one record or a list of them, whole or not at all.",
        WRITE,
        (
            _b("records", _either(RECORD, {"type": "array", "items": RECORD}), "what was seen", required=True),
            _OBSERVED,
            _b("valid_from", TEXT, "since when it is true; left out: when it was seen"),
            _b("priority", WHOLE, "how much the writer is to be trusted; larger wins"),
            _b("source", TEXT, "id of the source it was read from"),
            _b("run", TEXT, "the run it was said in"),
            _b("step", WHOLE, "the step of that run"),
            _b("saw", TEXTS, "ids of the observations its writer had read"),
            _b(
                "if_version",
                _either(WHOLE, {"type": "array", "items": WHOLE}, {"type": "string", "enum": ["new", "known"]}, OBJECT),
                "refuse unless this is the entity's version, one of several, or by reference; or whether it is known",
            ),
            _DRY,
            KEY,
        ),
        moment=False,
        example={"records": [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}]},
        batched=True,
        shape="Report",
        lines=True,
    ),
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
    Route(
        "GET",
        "/v1/entities",
        "query",
        answers.query,
        "List entities by type and values.",
        params=(
            _TYPE,
            _q("where", TEXTS, "a condition field=value; may be given several times"),
            _q("sort", TEXT, "the field to sort by"),
            _q("descending", FLAG, "largest first"),
            _LIMIT,
            _CURSOR,
        ),
        shape="Entities",
    ),
    Route(
        "GET",
        "/v1/search",
        "search",
        answers.search,
        "Find entities by words, each matched by prefix.",
        params=(_q("query", TEXT, "words", required=True, example="Ana Rivera"), _TYPE, _LIMIT, _CURSOR),
        shape="Entities",
    ),
    Route(
        "GET",
        "/v1/duplicates",
        "duplicates",
        answers.duplicates,
        "List entities that share an identifying value.",
        params=(_TYPE, _LIMIT, _CURSOR),
        shape="Duplicates",
    ),
    Route(
        "GET",
        "/v1/entities/{ref}",
        "show",
        answers.snapshot,
        "Show what is believed about an entity.",
        params=(_REF,),
        shape="Snapshot",
        soon=Spelling.show,
    ),
    Route(
        "GET",
        "/v1/elements/{ref}",
        "elements",
        answers.elements,
        "List the elements of a collection, some at a time.",
        params=(_REF, _q("field", TEXT, "the collection", required=True, example="tags"), _LIMIT, _CURSOR),
    ),
    Route(
        "GET",
        "/v1/observations",
        "observations",
        answers.observations,
        "List the observations of an entity, or all.",
        params=(_q("ref", ENTITY, "entity as type/key, or an ent_ id"), _LIMIT, _CURSOR),
        shape="Observations",
    ),
    Route(
        "GET",
        "/v1/history/{ref}",
        "history",
        answers.history,
        "Show how belief about an entity changed.",
        params=(_REF, _q("field", TEXT, "only this field"), _LIMIT, _CURSOR),
        shape="History",
    ),
    Route(
        "GET",
        "/v1/timeline",
        "timeline",
        answers.timeline,
        "Show what was seen when.",
        params=(_q("since", TEXT, "from this time on"), _q("until", TEXT, "before this time"), _LIMIT, _CURSOR),
        shape="Timeline",
    ),
    Route(
        "GET",
        "/v1/diff",
        "diff",
        answers.diff,
        "Show what differs between two moments.",
        params=(
            _q("before", TEXT, "the earlier moment", required=True, wire="from", example="0"),
            _q("after", TEXT, "the later moment; left out: now", wire="to"),
            _q("ref", ENTITY, "only this entity"),
            _TYPE,
        ),
        shape="Changes",
    ),
    Route(
        "GET",
        "/v1/blame/{ref}",
        "blame",
        answers.blame,
        "Show every claim on an entity's fields, whether it won, and why.",
        params=(
            _REF,
            _q("field", TEXT, "only this field"),
            _q("excerpts", FLAG, "with the words of its source that a claim points at; takes the grant read"),
        ),
    ),
    Route(
        "GET",
        "/v1/conflicts",
        "conflicts",
        answers.conflicts,
        "List the fields on which agents differ, or those decided only by arrival.",
        params=(
            _TYPE,
            _q("arrival", FLAG, "list the fields decided only by arrival: no observation time was given"),
            _LIMIT,
            _CURSOR,
        ),
        shape="Conflicts",
    ),
    Route(
        "GET",
        "/v1/related/{ref}",
        "related",
        answers.related,
        "Show the relations of an entity.",
        wide=True,
        params=(_REF, _q("depth", WHOLE, "how many relations away, 1 unless stated"), _LIMIT, _CURSOR),
        shape="Related",
    ),
    Route(
        "GET",
        "/v1/values",
        "values",
        answers.values,
        "Return the values of everything that exists, by reference and without provenance.",
        wide=True,
    ),
    Route(
        "GET",
        "/v1/fingerprint",
        "fingerprint",
        answers.fingerprint,
        "Return one digest of the whole state.",
        params=(_q("provenance", FLAG, "take the winning observations in too"),),
    ),
    Route(
        "POST",
        "/v1/correct",
        "correct",
        answers.correct,
        "Correct fields of an entity; it holds until corrected or withdrawn.",
        CORRECT,
        (
            _BODY_REF,
            _b("fields", OBJECT, "what holds, by field"),
            _b("remove", OBJECT, "elements taken out, by field"),
            _b("replaces", TEXTS, "ids of the corrections it stands in place of"),
            _b("valid_from", TEXT, "since when it is true"),
            _b("priority", WHOLE, "how much the writer is to be trusted"),
            _b("source", TEXT, "id of the source it was read from"),
            _b(
                "if_version",
                _either(WHOLE, {"type": "array", "items": WHOLE}, {"type": "string", "enum": ["known"]}),
                "refuse unless this is the entity's version, or one of several; or it is known",
            ),
            *_STATING,
        ),
        moment=False,
        example={"ref": "contact/Ana Rivera", "fields": {"city": "Girona"}, "reason": "moved"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/retract",
        "retract",
        answers.retract,
        "Withdraw observations.",
        CORRECT,
        (_b("observations", TEXTS, "ids of the observations", required=True), *_STATING),
        moment=False,
        example={"observations": ["obs_d2fjsh5trd3wfuioa2iscubxg2"], "reason": "misread"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/delete",
        "delete",
        answers.delete,
        "Mark an entity as deleted; nothing is lost.",
        CORRECT,
        (_BODY_REF, *_STATING),
        moment=False,
        example={"ref": "contact/Ana Rivera", "reason": "asked to"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/restore",
        "restore",
        answers.restore,
        "Bring a deleted entity back.",
        CORRECT,
        (_BODY_REF, *_STATING),
        moment=False,
        example={"ref": "contact/Ana Rivera"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/relate",
        "relate",
        answers.relate,
        "Relate two entities.",
        WRITE,
        (
            _b("start", TEXT, "the entity the relation begins at", required=True, wire="from"),
            _b("type", TEXT, "type of the relation", required=True),
            _b("end", TEXT, "the entity it leads to", required=True, wire="to"),
            _b("key", TEXT, "tells several relations of one type apart"),
            _b("fields", OBJECT, "what is said of the relation"),
            *_STATING,
        ),
        moment=False,
        example={"from": "contact/Ana Rivera", "type": "works_at", "to": "company/Kline"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/merge",
        "merge",
        answers.merge,
        "Say that two entities are one.",
        CORRECT,
        (
            _b("one", TEXT, "an entity", required=True),
            _b("other", TEXT, "the other", required=True),
            *_STATING,
        ),
        moment=False,
        example={"one": "contact/Ana Rivera", "other": "contact/A. Rivera"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/split",
        "split",
        answers.split,
        "Part an entity from those it was merged with.",
        CORRECT,
        (_BODY_REF, _b("other", TEXT, "only from this one"), *_STATING),
        moment=False,
        example={"ref": "contact/Ana Rivera"},
        shape="Report",
    ),
    Route("GET", "/v1/schemas", "schemas", answers.schemas, "List the schemas in force.", shape="Schemas"),
    Route(
        "GET",
        "/v1/schemas/{entity_type}",
        "schema",
        answers.schema,
        "Show the schema of a type.",
        params=(_in_path("entity_type", "the type", "contact", TYPE),),
    ),
    Route(
        "POST",
        "/v1/schemas",
        "register",
        answers.register,
        "Register a schema.",
        MANAGE,
        (
            _b("model", OBJECT, "JSON Schema 2020-12", required=True, wire="schema"),
            _b("entity_type", TEXT, "the type it describes; left out: the schema's title"),
            _b("version", WHOLE, "its version; left out: the next"),
            _DRY,
            KEY,
        ),
        moment=False,
        example={"schema": {"title": "loan", "properties": {"creditScore": {"type": "integer"}}}},
        shape="Report",
    ),
    Route(
        "GET",
        "/v1/infer/{entity_type}",
        "infer",
        answers.infer,
        "Propose a schema from what was seen of a type.",
        params=(_in_path("entity_type", "the type", "contact", TYPE),),
    ),
    Route(
        "GET",
        "/v1/sources",
        "sources",
        answers.sources,
        "List deliveries of sources.",
        params=(_LIMIT, _CURSOR),
        shape="Deliveries",
    ),
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
    Route(
        "GET",
        "/v1/interpretations",
        "interpretations",
        answers.interpretations,
        "List readings of sources.",
        params=(_LIMIT, _CURSOR),
        shape="Interpretations",
    ),
    Route(
        "GET",
        "/v1/interpretations/diff",
        "interpretations_diff",
        answers.interpretations_diff,
        "Say how two readings differ: how they were made, and what they said.",
        wide=True,
        params=(
            _q("before", TEXT, "a reading", required=True, wire="from", example="int_aaaaaaaaaaaaaaaaaaaaaaaaaa"),
            _q("after", TEXT, "the other", required=True, wire="to", example="int_bbbbbbbbbbbbbbbbbbbbbbbbbb"),
        ),
    ),
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
            _b("records", _either(RECORD, {"type": "array", "items": RECORD}), "what was found", required=True),
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
    Route(
        "POST",
        "/v1/tags",
        "tag",
        answers.tag,
        "Give a moment a name.",
        MANAGE,
        (
            _b("name", TEXT, "the name", required=True),
            _b("moment", _either(TEXT, WHOLE), "the moment; left out: now"),
            KEY,
        ),
        moment=False,
        example={"name": "release-3"},
        shape="Report",
    ),
    Route(
        "GET",
        "/v1/runs",
        "runs",
        answers.runs,
        "List runs, the latest first.",
        wide=True,
        params=(
            _q("agent", TEXT, "only runs of this agent"),
            _q("subject", TEXT, "only runs about this entity"),
            _q("conversation", TEXT, "only runs of this conversation"),
            _q("principal", TEXT, "only runs on this principal's behalf"),
            _q("session", TEXT, "only runs of this agent_session"),
            _q("pipeline", TEXT, "only runs of this pipeline"),
            _q("since", TEXT, "only runs that began at or after this time"),
            _q("until", TEXT, "only runs that began before this time"),
            _q("status", TEXT, "only runs that ended so"),
            _q("verdict", TEXT, "only runs that were judged so"),
            _LIMIT,
            _CURSOR,
        ),
        shape="Runs",
    ),
    Route(
        "GET",
        "/v1/runs/{run}",
        "run_record",
        answers.run,
        "Show the record of a run, or a projection of it.",
        params=(
            _RUN,
            _q("projection", TEXT, "decisions, commits, narrative or full"),
            _q("budget", WHOLE, "most tokens of the projection"),
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
    Route(
        "POST",
        "/v1/runs/diff",
        "runs_diff_documents",
        answers.runs_diff,
        "Say where two runs part, and why; either may be a document, such as a trajectory.",
        params=(
            _b("first", _either(TEXT, OBJECT, OBJECTS), "a run, by id or as a document", required=True),
            _b("second", _either(TEXT, OBJECT, OBJECTS), "the other", required=True),
        ),
        example={"first": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "second": "run_bbbbbbbbbbbbbbbbbbbbbbbbbb"},
    ),
    Route(
        "POST",
        "/v1/runs/group",
        "runs_group",
        answers.runs_group,
        "Cluster many runs by where they part from the way most took.",
        wide=True,
        params=(
            _b("runs", {"type": "array", "items": _either(TEXT, OBJECT)}, "runs, by id or as trajectories"),
            _b("query", TEXT, "also the runs that were asked this"),
            _b("subject", TEXT, "also the runs about this entity"),
            _b("agent", TEXT, "also the runs of this agent"),
            _b("same_inputs_as", TEXT, "also the runs that were given what this one was"),
            _b("since", TEXT, "only runs that began at or after this time"),
            _b("until", TEXT, "only runs that began before this time"),
        ),
        example={"query": "Approve #42?"},
    ),
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
            _b("runbook", _either(TEXT, TEXTS), "runbooks in force"),
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
            _b("error", _either(TEXT, OBJECT), "what went wrong: text, or type and message"),
            _b("usage", OBJECT, "what it cost, as counts by name"),
            KEY,
        ),
        moment=False,
        example={"answer": "Rejected."},
        relays=True,
    ),
    Route(
        "POST",
        "/v1/runs/record",
        "record",
        answers.record,
        "Take in runs that were recorded elsewhere.",
        RUN,
        (_b("document", {}, "a run, or a list of runs or entries", required=True), KEY),
        moment=False,
        example={"document": {"query": "Approve #42?", "answer": "Rejected."}},
        alone=True,
    ),
    Route(
        "POST",
        "/v1/judge",
        "judge",
        answers.judge,
        "Judge a run.",
        RUN,
        (
            _b("run", TEXT, "the run", required=True),
            _b("verdict", TEXT, "good, bad, or a word of your own", required=True),
            _b("preferred", {}, "a better answer"),
            _b("reason", TEXT, "why"),
            _b("score", NUMBER, "a score"),
            _b("against", TEXT, "the tag or run it was compared with"),
            _b("about", TEXT, "the span of the one step that is judged"),
            _b("evaluation", TEXT, "the entity that says so"),
            KEY,
        ),
        moment=False,
        example={"run": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "verdict": "good"},
        shape="Report",
    ),
    Route(
        "POST",
        "/v1/evaluate",
        "evaluate",
        answers.evaluate,
        "Compare what a run wrote with a moment known to be good, and store the outcome.",
        RUN,
        (
            _b("run", TEXT, "the run", required=True),
            _b("against", _either(TEXT, WHOLE), "the moment, a tag as a rule", required=True),
            _b("name", TEXT, "what the evaluation is called"),
            _REASON,
            KEY,
        ),
        moment=False,
        example={"run": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "against": "now"},
        shape="Report",
        alone=True,
    ),
    Route(
        "GET",
        "/v1/why/{ref}",
        "why",
        answers.why,
        "Show what was decided about an entity, on what evidence.",
        wide=True,
        params=(_REF, _LIMIT, _CURSOR),
        shape="Decisions",
    ),
    Route(
        "GET",
        "/v1/recall",
        "recall",
        answers.recall,
        "Find what earlier runs decided about something like this.",
        params=(
            _q("question", TEXT, "what is asked", required=True, example="why was application #42 rejected?"),
            _q("k", WHOLE, "how many runs at most"),
            _q("threshold", NUMBER, "least similarity, from -1 to 1"),
            _q("projection", TEXT, "decisions, commits, narrative or full"),
            _q("scope", TEXT, "tenant, principal or conversation"),
            _q("principal", TEXT, "the principal of the scope"),
            _q("conversation", TEXT, "the conversation of the scope"),
            _q("budget", WHOLE, "most tokens of the text"),
            _q("ttl", NUMBER, "how old a run may be, in seconds"),
        ),
    ),
    Route(
        "GET",
        "/v1/lineage",
        "lineage",
        answers.lineage,
        "Show where an answer, decision, field or observation comes from.",
        wide=True,
        params=(
            _q(
                "what",
                TEXT,
                "a run, RUN#stage, an observation, or type/key#field",
                required=True,
                wire="of",
                example="contact/Ana Rivera#city",
            ),
        ),
    ),
    Route(
        "GET",
        "/v1/impact",
        "impact",
        answers.impact,
        "Show what leaned on an observation, a source, an interpretation or an agent.",
        wide=True,
        params=(
            _q("what", TEXT, "an observation, a source or an interpretation", wire="of"),
            _q("agent", TEXT, "all that this agent said", example="crm"),
        ),
    ),
    Route(
        "GET",
        "/v1/stale",
        "stale",
        answers.stale,
        "List decisions that would come out differently now.",
        params=(_q("same", FLAG, "also those that would come out the same"), _LIMIT, _CURSOR),
        shape="Decisions",
    ),
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
    Route(
        "POST",
        "/v1/what-if",
        "what_if",
        answers.what_if,
        "Say what would have come of recorded decisions, had something been otherwise. Nothing is written.",
        params=(
            _b("run", _either(TEXT, TEXTS), "a run, RUN#stage, or several; left out: all"),
            _b("without", _either(TEXT, TEXTS), "observations, sources or interpretations taken away"),
            _b("without_agents", _either(TEXT, TEXTS), "agents whose every word is taken away"),
            _b("set", OBJECT, "values by type/key#field that would have been believed"),
            _b("rules", OBJECT, "other rules by stage"),
            _b("thresholds", OBJECT, "other thresholds"),
            _b("sweep", _either(TEXT, OBJECT), "one value tried from end to end"),
            _b("stage", TEXT, "only decisions of this stage"),
            _b("agent", TEXT, "only runs of this agent"),
            _b("subject_type", TEXT, "only runs about entities of this type"),
            _b("since", TEXT, "only runs that began at or after this time"),
            _b("until", TEXT, "only runs that began before this time"),
            _b("same", FLAG, "also list decisions that would come out the same"),
            _b("limit", WHOLE, "how many to list at most"),
            _b("cursor", TEXT, "go on where an earlier answer ended"),
        ),
        example={"set": {"loan/42#creditScore": 640}},
    ),
    Route(
        "POST",
        "/v1/bisect",
        "bisect",
        answers.bisect,
        "Find a write with which the answer to a question about state became another.",
        wide=True,
        params=(
            *_PREDICATE,
            _b("before", _either(TEXT, WHOLE), "the earlier moment; left out: before everything"),
            _b("after", _either(TEXT, WHOLE), "the later moment; left out: now"),
            _b("first", FLAG, "find the first flip, at the cost of walking every change"),
        ),
        example={"what": "contact/Ana Rivera", "where": {"city": "Barcelona"}},
    ),
    Route(
        "POST",
        "/v1/reduce",
        "reduce",
        answers.reduce,
        "Find a 1-minimal set of observations that shows by itself what holds. Nothing is written.",
        wide=True,
        params=(
            *_PREDICATE,
            _b("folds_max", WHOLE, "how many sets are folded at most"),
        ),
        example={"what": "contact/Ana Rivera", "exists": True},
    ),
    Route(
        "POST",
        "/v1/diff-against",
        "diff_against",
        answers.diff_against,
        "Say what differs between a state that was written down and what is believed.",
        params=(
            _b("known", _either(OBJECTS, OBJECT), "snapshots, or one of them", required=True),
            _b("ref", TEXT, "only this entity"),
            _b("entity_type", TEXT, "only entities of this type"),
        ),
        example={"known": []},
        shape="Changes",
    ),
    Route(
        "GET",
        "/v1/log",
        "log",
        answers.log,
        "Read entries of the log; as JSON lines or server-sent events where these are asked for.",
        params=(
            _q("after", WHOLE, "only entries after this position"),
            _q("limit", WHOLE, "how many to return at most"),
        ),
        shape="Entries",
    ),
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
    Route(
        "GET",
        "/v1/verify",
        "verify",
        answers.verify,
        "Work everything out again from the log, and say what does not agree.",
        wide=True,
        moment=False,
        params=(
            _q("deep", FLAG, "compare the search index, shelves and vectors too"),
            _q("checkpoints", TEXTS, "checkpoints held elsewhere, as their notes"),
            _q("key", TEXT, "the verifier key that must have signed them"),
        ),
    ),
    Route(
        "GET",
        "/v1/checkpoints",
        "checkpoints",
        answers.checkpoints,
        "List the checkpoints that the log must go on from.",
        wide=True,
        moment=False,
    ),
    Route(
        "POST",
        "/v1/checkpoints",
        "checkpoint",
        answers.checkpoint,
        "Sign how long the log is, and its root; a shorter history is refused.",
        MANAGE,
        (_b("new_epoch", TEXT, "why a history that the last checkpoint contradicts is accepted all the same"),),
        moment=False,
        alone=True,
        example={},
    ),
    Route(
        "GET",
        "/v1/proofs/{what}",
        "prove",
        answers.prove,
        "Prove that an observation is in the log under a checkpoint.",
        wide=True,
        moment=False,
        params=(_in_path("what", "an observation, or a position of the log", "0"),),
    ),
    Route(
        "POST",
        "/v1/proofs/growth",
        "prove_growth",
        answers.prove_growth,
        "Prove that a checkpoint goes on from an older one.",
        wide=True,
        moment=False,
        params=(
            _b("old", TEXT, "the older checkpoint, as its note", required=True),
            _b("new", TEXT, "the newer one; left out: one of now"),
        ),
        example={"old": "woodrat"},
    ),
    Route(
        "GET",
        "/v1/prove-order",
        "prove_order",
        answers.prove_order,
        "Feed everything in other orders to fresh ledgers, and compare the states.",
        wide=True,
        moment=False,
        params=(_q("shuffles", WHOLE, "how many orders; 100 if left out"),),
    ),
    Route(
        "POST",
        "/v1/rebuild",
        "rebuild",
        answers.rebuild,
        "Make everything derived again from the log, and say what differed; writers wait meanwhile.",
        MANAGE,
        moment=False,
        alone=True,
        example={},
    ),
    Route(
        "POST",
        "/v1/reindex",
        "reindex",
        answers.reindex,
        "Embed all runs again for recall.",
        MANAGE,
        moment=False,
        alone=True,
        example={},
    ),
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
    Route(
        "POST",
        "/v1/erase",
        "erase",
        answers.erase,
        "Forget something for ever, in every file; the certificate says what went. Writers wait meanwhile.",
        MANAGE,
        (
            _b("what", TEXT, "an entity, a field as REF#field, or a source"),
            _b("agent", TEXT, "all that this agent said"),
            _b("subject", TEXT, "an entity, with the runs about it"),
            _b("reason", TEXT, "why; it is kept", required=True),
            _b("dry_run", FLAG, "say what would go, and erase nothing"),
        ),
        moment=False,
        alone=True,
        example={"what": "contact/Ana Rivera", "reason": "asked to be forgotten", "dry_run": True},
    ),
    Route(
        "POST",
        "/v1/erase/again",
        "erase_again",
        answers.erase_again,
        "Forget what was erased in another copy of this ledger, such as the one a backup was made of.",
        MANAGE,
        moment=False,
        alone=True,
        example={},
    ),
    Route(
        "POST",
        "/v1/erase/finish",
        "finish_erasure",
        answers.finish_erasure,
        "Take out of every file what an erasure left there because somebody was in the way.",
        MANAGE,
        moment=False,
        alone=True,
        example={},
    ),
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
    Route(
        "GET",
        "/v1/capsules/{what}",
        "capsule",
        answers.capsule,
        "Prove a decision, an observation or a field in one document, to be checked offline.",
        wide=True,
        moment=False,
        params=(_in_path("what", "a run, RUN#stage, an observation or type/key#field", "contact/Ana Rivera#city"),),
    ),
)
"""All of them."""

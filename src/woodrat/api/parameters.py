"""Parameters: the kinds of arguments, each described once.

A verb's method annotates its parameters with these types. A type checker sees the Python type; every surface reads the
`Kind` beside it: the sentence, the JSON Schema, the name where Python cannot have it (`from`), and how it is typed on a
command line. A parameter whose annotation carries no kind, such as a callback, exists in the library alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from woodrat.canon.ids import Ref
from woodrat.ledger.read import PAGE_MAX

if TYPE_CHECKING:
    from typing import Annotated
else:

    class Annotated:
        """What `Annotated[type, kind]` is while a program runs: the kind itself.

        A command reads the kinds of its verb first; making types of them would take longer.
        """

        def __class_getitem__(cls, described: tuple[Any, Kind]) -> Kind:
            return described[1]


WAIT_SECONDS_MAX: Final = 20
"""Longest wait that a caller may request."""

Schema = Mapping[str, Any]
Time: TypeAlias = str | date
"""A time as callers send it: text, a `date`, or a `datetime`, which is a date too."""
TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
OBJECT: Final[Schema] = {"type": "object"}
ANYTHING: Final[Schema] = {}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
OBJECTS: Final[Schema] = {"type": "array", "items": OBJECT}
TYPE: Final[Schema] = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
ENTITY: Final[Schema] = {"type": "string", "pattern": "^(ent_[a-z2-7]{26}|[a-z][a-z0-9_]*/.+)$"}
RECORD: Final[Schema] = {"$ref": "#/components/schemas/Record"}
LISTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "array", "items": ANYTHING}}


def any_of(*schemas: Schema) -> Schema:
    """Return the schema of a union of types; each alternative is complete, as client generators need it."""
    return {"anyOf": list(schemas)}


def id_schema(prefix: str) -> Schema:
    """Return the schema of an id."""
    return {"type": "string", "pattern": f"^{prefix}_[a-z2-7]{{26}}$"}


class Kind:
    """One kind of parameter, as every surface shows it; one object for each kind."""

    __slots__ = ("brief", "example", "header", "ids", "metavar", "option", "schema", "what", "wire")

    what: str
    """A clause that describes it after the parameter's name."""
    schema: Schema
    """JSON Schema of its value."""
    metavar: str
    """The placeholder of its value in the help of a command; empty: its name in capitals. FILE: a file with it."""
    wire: str
    """Its name on every surface but Python, if it differs."""
    example: Any
    """A value that works."""
    header: str
    """The header that carries it over HTTP, where it has one."""
    brief: str | None
    """A short description for agents; None: the name says enough."""
    option: str
    """Its option name on the command line, if it differs, such as a singular for a repeatable option."""
    ids: tuple[str, ...]
    """Which kinds of id it may be; where a command reads, the beginning of one will do."""

    def __init__(
        self,
        what: str,
        schema: Schema = TEXT,
        metavar: str = "",
        wire: str = "",
        example: Any = None,
        header: str = "",
        brief: str | None = None,
        option: str = "",
        ids: tuple[str, ...] = (),
    ) -> None:
        self.what, self.schema, self.metavar, self.wire = what, schema, metavar, wire
        self.example, self.header, self.brief, self.option, self.ids = example, header, brief, option, ids


_ENTITY, _RUN, _OBSERVATION, _SOURCE, _INTERPRETATION = (
    (kind,) for kind in ("entity", "run", "observation", "source", "interpretation")
)
"""Kinds of id."""

# Which entity, run, observation, …

RefArg: TypeAlias = Annotated[
    str | Ref,
    Kind(
        "entity: type/key, or an ent_ id",
        ENTITY,
        "REF",
        example="contact/Ana Rivera",
        brief="type/key or id",
        ids=_ENTITY,
    ),
]
LooseRef: TypeAlias = Annotated[
    str | Ref,
    Kind(
        "entity: type/key, an ent_ id, or a value that only it has, such as its name",
        TEXT,
        "REF",
        example="contact/Ana Rivera",
        brief="type/key or name",
        ids=_ENTITY,
    ),
]
OtherRef: TypeAlias = Annotated[
    str | Ref,
    Kind("the same entity under another name", ENTITY, "REF", example="contact/A. Rivera", ids=_ENTITY),
]
SeparatedRef: TypeAlias = Annotated[
    str | Ref,
    Kind("entity to separate it from (default: all it was merged with)", ENTITY, "REF", ids=_ENTITY),
]
RunArg: TypeAlias = Annotated[
    str, Kind("id of the run", id_schema("run"), "RUN", example="run_aaaaaaaaaaaaaaaaaaaaaaaaaa", ids=_RUN)
]
Observations: TypeAlias = Annotated[
    str | Sequence[str], Kind("ids of the observations", TEXTS, "OBS", ids=_OBSERVATION)
]
SourceArg: TypeAlias = Annotated[
    str, Kind("id of the source", id_schema("src"), "SRC", example="src_aaaaaaaaaaaaaaaaaaaaaaaaaa", ids=_SOURCE)
]
InterpretationArg: TypeAlias = Annotated[
    str,
    Kind(
        "id of the interpretation",
        id_schema("int"),
        "INT",
        example="int_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        ids=_INTERPRETATION,
    ),
]
OnlySource: TypeAlias = Annotated[
    str, Kind("only values read from this source", id_schema("src"), "SRC", brief="", ids=_SOURCE)
]
OnlyInterpretation: TypeAlias = Annotated[
    str, Kind("only values read in this interpretation", id_schema("int"), "INT", brief="", ids=_INTERPRETATION)
]
IdPrefix: TypeAlias = Annotated[
    str, Kind("the beginning of an id; `last` is the latest run", TEXT, "ID", example="obs_d2f")
]
EntityType: TypeAlias = Annotated[str, Kind("the entity type", TYPE, "T", example="contact")]
OfType: TypeAlias = Annotated[str, Kind("only entities of this type", TYPE, "T", brief="")]
FieldArg: TypeAlias = Annotated[str, Kind("the field", TEXT, "F", example="tags")]
OnlyField: TypeAlias = Annotated[str, Kind("only this field", TEXT, "F")]

# When

MomentArg: TypeAlias = Annotated[
    int | Time, Kind("a position, a time, now, @tag or a run", any_of(TEXT, WHOLE), "M", brief="a moment", ids=_RUN)
]
FromMoment: TypeAlias = Annotated[
    int | Time,
    Kind(
        "the earlier moment",
        any_of(TEXT, WHOLE),
        "M",
        wire="from",
        example="0",
        brief="yesterday, 2026-03, a position",
        ids=_RUN,
    ),
]
ToMoment: TypeAlias = Annotated[
    int | Time,
    Kind(
        "the later moment (default: the moment read at, or now)",
        any_of(TEXT, WHOLE),
        "M",
        wire="to",
        brief="default now",
        ids=_RUN,
    ),
]
AsOfArg: TypeAlias = Annotated[
    int | Time,
    Kind(
        "read state as known at this moment: a position, a time, a date, 2d, @tag or a run (default: now)",
        TEXT,
        "M",
        brief="state as known then: 2026-03, yesterday, a position",
        ids=_RUN,
    ),
]
ValidAt: TypeAlias = Annotated[
    Time,
    Kind(
        "count only values that were true by this time, whenever they became known (default: all)",
        TEXT,
        "T",
        brief="state as true by then",
    ),
]
SeenSince: TypeAlias = Annotated[Time, Kind("only observations made at or after this time", TEXT, "T")]
SeenUntil: TypeAlias = Annotated[Time, Kind("only observations made before this time", TEXT, "T")]
StartedSince: TypeAlias = Annotated[Time, Kind("only runs that started at or after this time", TEXT, "T")]
StartedUntil: TypeAlias = Annotated[Time, Kind("only runs that started before this time", TEXT, "T")]
DecidedSince: TypeAlias = Annotated[Time, Kind("only decisions made at or after this time", TEXT, "T")]
DecidedUntil: TypeAlias = Annotated[Time, Kind("only decisions made before this time", TEXT, "T")]
ObservedAt: TypeAlias = Annotated[
    Time,
    Kind(
        "when it was observed: RFC 3339 with an offset, a date, yesterday, 2d, last monday (default: now)",
        TEXT,
        "T",
        brief="time or date; default now",
    ),
]
ValidFrom: TypeAlias = Annotated[Time, Kind("since when it is true (default: when it was observed)", TEXT, "T")]
CorrectedFrom: TypeAlias = Annotated[
    Time, Kind("since when it is true (default: as in the corrected claim)", TEXT, "T")
]

# Pages

Limit: TypeAlias = Annotated[
    int, Kind("return at most this many", {**WHOLE, "minimum": 1, "maximum": PAGE_MAX}, "N", brief="")
]
SqlQuery: TypeAlias = Annotated[str, Kind("one SELECT statement", TEXT, "QUERY")]
RowsMax: TypeAlias = Annotated[
    int, Kind("return at most this many rows (default: 1,000)", {**WHOLE, "minimum": 1, "maximum": 100_000}, "N")
]
Cursor: TypeAlias = Annotated[str, Kind("continue where the previous page ended", TEXT, "C", brief="")]
Details: TypeAlias = Annotated[
    bool, Kind("answer with whole records: provenance, and every element of large collections", FLAG, brief="")
]
SkippedSteps: TypeAlias = Annotated[int, Kind("skip this many steps (default: 0)", {**WHOLE, "minimum": 0}, "N")]
FirstStep: TypeAlias = Annotated[int, Kind("begin with the step of this number", WHOLE, "N")]
OfStepKind: TypeAlias = Annotated[
    str,
    Kind(
        "only steps of this kind",
        {"type": "string", "enum": ["read", "tool", "model", "decision", "note", "write"]},
    ),
]
SkippedRows: TypeAlias = Annotated[
    int,
    Kind(
        "skip this many rows (default: with `limit`, up to the page with the first difference)",
        {**WHOLE, "minimum": 0},
        "N",
    ),
]
DifferingRows: TypeAlias = Annotated[bool, Kind("only rows that differ", FLAG)]
DayCountArg: TypeAlias = Annotated[
    int, Kind("number of days to count, up to today (default: 30)", {**WHOLE, "minimum": 1, "maximum": 366}, "N")
]
PositionArg: TypeAlias = Annotated[int, Kind("only entries after this position", WHOLE, "N")]

# Writing

Records: TypeAlias = Annotated[
    Sequence[Mapping[str, Any]] | Mapping[str, Any],
    Kind("the observations: one record or a list", any_of(RECORD, {"type": "array", "items": RECORD}), "JSON"),
]
MatchArg: TypeAlias = Annotated[
    str,
    Kind(
        "attach a record of an unknown entity to the one known entity that it matches",
        {"type": "string", "enum": ["existing"]},
    ),
]
MatchSubject: TypeAlias = Annotated[
    str,
    Kind(
        "existing (default): resolve an unknown subject to the one known entity with that value; never: keep it "
        "unknown",
        {"type": "string", "enum": ["existing", "never"]},
    ),
]
NoteText: TypeAlias = Annotated[
    str, Kind("a sentence to remember", TEXT, "TEXT", example="Ana prefers calls before noon")
]
AboutRef: TypeAlias = Annotated[
    str | Ref,
    Kind("entity the note is about", TEXT, "REF", example="contact/Ana Rivera", brief="type/key or id", ids=_ENTITY),
]
Fields: TypeAlias = Annotated[Mapping[str, Any], Kind("values by field", OBJECT, "K=V", option="set")]
Removed: TypeAlias = Annotated[
    Mapping[str, Any], Kind("elements to remove, by field", LISTS, "K=V", brief="elements, by field")
]
Replaces: TypeAlias = Annotated[
    Sequence[str],
    Kind(
        "ids of observations that were wrong, such as earlier corrections",
        TEXTS,
        "OBS",
        brief="obs_ ids of earlier corrections",
        ids=_OBSERVATION,
    ),
]
ReasonText: TypeAlias = Annotated[str, Kind("why; stored with the change", TEXT, "TEXT")]
IdempotencyKey: TypeAlias = Annotated[
    str,
    Kind("makes it safe to send the same call again", TEXT, "K", header="Idempotency-Key", brief="repeats are safe"),
]
DryRun: TypeAlias = Annotated[bool, Kind("do everything except write", FLAG, brief="")]
Priority: TypeAlias = Annotated[
    int, Kind("trust in the writer; the higher one wins", WHOLE, "N", brief="trust; larger wins")
]
FromSource: TypeAlias = Annotated[
    str, Kind("id of the source it was read from", TEXT, "SRC", brief="src_ id", ids=_SOURCE)
]
InRun: TypeAlias = Annotated[str, Kind("run that made the observation", TEXT, "RUN", ids=_RUN)]
InStep: TypeAlias = Annotated[int, Kind("step of that run", WHOLE, "N")]
Saw: TypeAlias = Annotated[
    Sequence[str], Kind("ids of the observations the writer had read", TEXTS, "OBS", ids=_OBSERVATION)
]
IfVersion: TypeAlias = Annotated[
    int | Sequence[int] | str,
    Kind(
        "write only if the entity has this version, one of several, or is `known`",
        any_of(WHOLE, {"type": "array", "items": WHOLE}, {"type": "string", "enum": ["known"]}),
        "N",
        brief="refuse unless this is its version",
    ),
]
IfVersions: TypeAlias = Annotated[
    Mapping[str, int | None] | int | Sequence[int] | str,
    Kind(
        "write only if the entity has this version, one of several, one by reference, or is `new` or `known`",
        any_of(WHOLE, {"type": "array", "items": WHOLE}, {"type": "string", "enum": ["new", "known"]}, OBJECT),
        "N",
        brief="refuse unless this is its version",
    ),
]

# Runs

OfAgent: TypeAlias = Annotated[str, Kind("only runs of this agent", TEXT, "A")]
Subject: TypeAlias = Annotated[str | Ref, Kind("only runs about this entity", TEXT, "REF", ids=_ENTITY)]
Conversation: TypeAlias = Annotated[str, Kind("only runs of this conversation", TEXT, "TEXT")]
Principal: TypeAlias = Annotated[str, Kind("only runs on behalf of this principal", TEXT, "TEXT")]
Status: TypeAlias = Annotated[
    str,
    Kind(
        "only runs with this status: done, error, cancelled, interrupted, running",
        TEXT,
        "S",
        brief="done, error, cancelled, interrupted, running",
    ),
]
OfVerdict: TypeAlias = Annotated[str, Kind("only runs with this verdict", TEXT, "V")]
Projection: TypeAlias = Annotated[str, Kind("decisions, commits, narrative or full", TEXT, "P")]
Budget: TypeAlias = Annotated[int, Kind("most tokens of the text", WHOLE, "N")]

# Searching and listing

Words: TypeAlias = Annotated[
    str,
    Kind(
        "words to search for; each matches as a prefix",
        TEXT,
        "Q",
        example="Ana Rivera",
        brief="words, matched by prefix",
    ),
]
Where: TypeAlias = Annotated[
    Mapping[str, Any] | Sequence[str],
    Kind(
        "only entities that fulfil this: city=Barcelona, 'age gte 18' (eq, in, lt, lte, gt, gte, prefix, exists)",
        TEXTS,
        "CONDITION",
        brief="city=Reus, age gte 18",
    ),
]
SortField: TypeAlias = Annotated[str, Kind("sort by this field", TEXT, "FIELD")]
Descending: TypeAlias = Annotated[bool, Kind("sort in descending order", FLAG)]
ByArrival: TypeAlias = Annotated[
    bool, Kind("list fields that were decided by arrival alone: no observation time was given", FLAG, brief="")
]
OnlyRelation: TypeAlias = Annotated[str, Kind("only relations of this type", TYPE, "T", example="works_at", brief="")]
Depth: TypeAlias = Annotated[int, Kind("number of relations to follow (default: 1)", WHOLE, "N")]
Excerpts: TypeAlias = Annotated[bool, Kind("also quote the text of the source that a claim points to", FLAG)]
WithProvenance: TypeAlias = Annotated[bool, Kind("include the observations behind the values", FLAG)]
KnownState: TypeAlias = Annotated[
    object, Kind("a state that was saved: snapshots, or one of them", any_of(OBJECTS, OBJECT), "FILE")
]
EntriesMax: TypeAlias = Annotated[int, Kind("return at most this many entries", WHOLE, "N")]

# Questions

Question: TypeAlias = Annotated[str, Kind("the question", TEXT, "Q", example="why was application #42 rejected?")]
HitsMax: TypeAlias = Annotated[int, Kind("return at most this many hits (default: 1)", WHOLE, "N")]
Threshold: TypeAlias = Annotated[float, Kind("lowest score to accept, 0 to 1 (default: 0.5)", NUMBER, "X")]
RecalledSince: TypeAlias = Annotated[str, Kind("only statements made at or after this time", TEXT, "T")]
RecalledUntil: TypeAlias = Annotated[str, Kind("only statements made before this time", TEXT, "T")]
NotFrom: TypeAlias = Annotated[
    str | Sequence[str], Kind("ignore statements of these agents", any_of(TEXT, TEXTS), "AGENT")
]
RecalledTypes: TypeAlias = Annotated[
    str | Sequence[str],
    Kind("only facts and notes of these entity types, no runs and no documents", any_of(TEXT, TEXTS), "TYPE"),
]
Scope: TypeAlias = Annotated[
    str,
    Kind(
        "whose runs to search (default: tenant)",
        {"type": "string", "enum": ["tenant", "principal", "conversation"]},
    ),
]
ScopePrincipal: TypeAlias = Annotated[str, Kind("the principal, with the scope principal", TEXT, "TEXT")]
ScopeConversation: TypeAlias = Annotated[str, Kind("the conversation, with the scope conversation", TEXT, "TEXT")]
AgeMax: TypeAlias = Annotated[float | timedelta, Kind("ignore memories older than this, in seconds", NUMBER, "SECONDS")]
LineageOf: TypeAlias = Annotated[
    str,
    Kind(
        "a run, a decision as RUN#stage, an observation, or a field as REF#field",
        TEXT,
        "RUN|OBS|REF#field",
        wire="of",
        example="contact/Ana Rivera#city",
        ids=_RUN + _OBSERVATION + _ENTITY,
    ),
]
ImpactOf: TypeAlias = Annotated[
    str,
    Kind(
        "an observation, a source, an interpretation, an entity, a run, or a decision as RUN#stage",
        TEXT,
        "OBS|SRC|INT|REF|RUN",
        wire="of",
        ids=_OBSERVATION + _SOURCE + _INTERPRETATION + _ENTITY + _RUN,
    ),
]
RunsDeep: TypeAlias = Annotated[
    int, Kind("follow at most this many runs one after another (default: all)", {**WHOLE, "minimum": 1}, "N", brief="")
]
ByAgent: TypeAlias = Annotated[str, Kind("everything this agent stated", TEXT, "A", example="crm")]
AlsoSame: TypeAlias = Annotated[bool, Kind("also decisions with the same outcome", FLAG)]
Asked: TypeAlias = Annotated[
    Any,
    Kind(
        "an entity, or a recorded decision as RUN#stage",
        any_of(TEXT, OBJECT),
        "REF|RUN#stage",
        ids=_ENTITY + _RUN,
    ),
]
Conditions: TypeAlias = Annotated[Mapping[str, Any], Kind("conditions by field, as in rules", OBJECT)]
ConditionTexts: TypeAlias = Annotated[
    Mapping[str, Any] | Sequence[str],
    Kind(
        "city=Girona, 'creditScore lt 600', or either after REF#; all must hold",
        any_of(OBJECT, TEXTS),
        "CONDITION",
    ),
]
Exists: TypeAlias = Annotated[bool, Kind("the entity exists", FLAG)]
Deleted: TypeAlias = Annotated[bool, Kind("the entity is deleted", FLAG)]
Rules: TypeAlias = Annotated[Iterable[Any], Kind("rules that decide on the entity's fields", OBJECTS, "FILE")]
DefaultBranch: TypeAlias = Annotated[Any, Kind("the choice when no rule matches", ANYTHING, "BRANCH")]
ChosenBranch: TypeAlias = Annotated[Any, Kind("the branch in question (default: the chosen one)", ANYTHING, "BRANCH")]
SearchFrom: TypeAlias = Annotated[
    int | str,
    Kind("where to start (default: before the first entry)", any_of(TEXT, WHOLE), "M", wire="from", ids=_RUN),
]
SearchTo: TypeAlias = Annotated[
    int | str,
    Kind("where to stop (default: the moment read at, or now)", any_of(TEXT, WHOLE), "M", wire="to", ids=_RUN),
]
FirstFlip: TypeAlias = Annotated[bool, Kind("check every change, to find the first such write", FLAG)]
FoldsMax: TypeAlias = Annotated[int, Kind("try at most this many sets (default: 10000)", WHOLE, "N", option="folds")]
SomeRuns: TypeAlias = Annotated[
    str | Sequence[str],
    Kind("run ids, or decisions as RUN#stage (default: all)", any_of(TEXT, TEXTS), "RUN", ids=_RUN),
]
Without: TypeAlias = Annotated[
    str | Sequence[str],
    Kind(
        "ignore these observations, sources or interpretations",
        any_of(TEXT, TEXTS),
        "ID",
        ids=_OBSERVATION + _SOURCE + _INTERPRETATION,
    ),
]
WithoutAgents: TypeAlias = Annotated[
    str | Sequence[str],
    Kind("ignore everything these agents stated", any_of(TEXT, TEXTS), "AGENT", option="without-agent"),
]
SetValues: TypeAlias = Annotated[
    Mapping[str, Any], Kind("other values, by the name of a fact or by REF#field", OBJECT, "K=V")
]
RulesByStage: TypeAlias = Annotated[Mapping[str, Any], Kind("other rules, by stage", OBJECT, "FILE")]
Thresholds: TypeAlias = Annotated[
    Mapping[str, Any],
    Kind("other operands in the rules, by stage.fact.operator", OBJECT, "T=V", option="threshold"),
]
Sweep: TypeAlias = Annotated[
    str | Mapping[str, Any],
    Kind("try one value after another: K=LOW..HIGH:STEP or K=a,b,c", any_of(TEXT, OBJECT), "K=LOW..HIGH"),
]
OnlyStage: TypeAlias = Annotated[str, Kind("only decisions of this stage", TEXT, "S")]
DecidedBy: TypeAlias = Annotated[str, Kind("only decisions in runs of this agent", TEXT, "A")]
SubjectType: TypeAlias = Annotated[str, Kind("only decisions in runs about entities of this type", TEXT, "T")]

# Runs, once more

OfSession: TypeAlias = Annotated[str | Ref, Kind("only runs of this agent_session", TEXT, "REF", ids=_ENTITY)]
OfPipeline: TypeAlias = Annotated[
    str | Ref, Kind("only runs of this pipeline, and runs they started", TEXT, "REF", ids=_ENTITY)
]
RunOrDocument: TypeAlias = Annotated[
    str | Mapping[str, Any] | Sequence[Any],
    Kind("a run, by id or as a document", any_of(TEXT, OBJECT, OBJECTS), "RUN", ids=_RUN),
]
OtherRun: TypeAlias = Annotated[
    str | Mapping[str, Any] | Sequence[Any],
    Kind("the run to compare it with", any_of(TEXT, OBJECT, OBJECTS), "RUN", ids=_RUN),
]
RunsOrDocuments: TypeAlias = Annotated[
    Sequence[str | Mapping[str, Any] | Sequence[Any]],
    Kind("runs, by id or as documents", {"type": "array", "items": any_of(TEXT, OBJECT)}, "RUN", ids=_RUN),
]
AskedThis: TypeAlias = Annotated[str, Kind("runs with this question", TEXT, "Q")]
WithAttribute: TypeAlias = Annotated[
    Mapping[str, Any] | Sequence[str],
    Kind("only runs whose attribute has this value, as name=value", TEXTS, "K=V"),
]
RewardMin: TypeAlias = Annotated[
    float, Kind("smallest reward of a good run (default: 1, where every reward is 0 or 1)", NUMBER, "N")
]
SameInputs: TypeAlias = Annotated[str, Kind("runs with the question and inputs of this run", TEXT, "RUN", ids=_RUN)]
VerdictArg: TypeAlias = Annotated[str, Kind("good, bad, or a word of your own", TEXT, "good|bad")]
Preferred: TypeAlias = Annotated[Any, Kind("a better answer", ANYTHING, "ANSWER")]
JudgedBy: TypeAlias = Annotated[str, Kind("agent that judges (default: this agent)", TEXT, "WHO")]
Score: TypeAlias = Annotated[float, Kind("the judgement as a number", NUMBER, "N")]
ComparedWith: TypeAlias = Annotated[str, Kind("the tag or run it was compared with", TEXT, "M", ids=_RUN)]
AboutSpan: TypeAlias = Annotated[str, Kind("judge this step alone, named by its span", TEXT, "SPAN")]
EvaluationRef: TypeAlias = Annotated[str, Kind("the evaluation this verdict comes from", TEXT, "REF", ids=_ENTITY)]
EvaluationName: TypeAlias = Annotated[str, Kind("name of the evaluation", TEXT, "NAME")]
Document: TypeAlias = Annotated[object, Kind("a run, or a list of runs or entries", ANYTHING, "FILE")]
TrainingKind: TypeAlias = Annotated[str, Kind("format of the rows: sft, dpo, kto or process-rl", TEXT, "KIND")]
PairBy: TypeAlias = Annotated[
    str, Kind("what pairs a good with a bad run: input, query, subject, conversation or an attribute", TEXT, "NAME")
]
Flavour: TypeAlias = Annotated[str, Kind("format of the rows: trl or openai (default: trl)", TEXT, "F")]

# Relations, schemas, sources, interpretations

StartRef: TypeAlias = Annotated[
    str | Ref, Kind("entity the relation starts at", ENTITY, "REF", wire="from", ids=_ENTITY)
]
EndRef: TypeAlias = Annotated[str | Ref, Kind("entity the relation leads to", ENTITY, "REF", wire="to", ids=_ENTITY)]
RelationType: TypeAlias = Annotated[str, Kind("type of the relation, such as works_at", TEXT, "TYPE")]
RelationKey: TypeAlias = Annotated[
    str, Kind("distinguishes several relations of one type between the same two", TEXT, "K")
]
RelationFields: TypeAlias = Annotated[Mapping[str, Any], Kind("fields of the relation", OBJECT, "K=V", option="set")]
TagName: TypeAlias = Annotated[str, Kind("the name: letters, digits, '.', '_' and '-'", TEXT, "NAME")]
SchemaModel: TypeAlias = Annotated[object, Kind("JSON Schema 2020-12", OBJECT, "FILE", wire="schema")]
DescribedType: TypeAlias = Annotated[str, Kind("type it describes (default: the schema's title)", TEXT, "T")]
PackName: TypeAlias = Annotated[str, Kind("name of the pack: neotoma", TEXT, "NAME", example="neotoma")]
SchemaVersion: TypeAlias = Annotated[int, Kind("its version (default: the next)", WHOLE, "N")]
SourceName: TypeAlias = Annotated[str, Kind("name of the source (default: the file's name)", TEXT, "TEXT")]
MediaType: TypeAlias = Annotated[str, Kind("media type, such as application/pdf", TEXT, "TEXT")]
FromInterpretation: TypeAlias = Annotated[
    str,
    Kind(
        "id of an interpretation",
        id_schema("int"),
        "INT",
        wire="from",
        example="int_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        ids=_INTERPRETATION,
    ),
]
ToInterpretation: TypeAlias = Annotated[
    str,
    Kind(
        "id of the interpretation to compare with",
        id_schema("int"),
        "INT",
        wire="to",
        example="int_bbbbbbbbbbbbbbbbbbbbbbbbbb",
        ids=_INTERPRETATION,
    ),
]

# The whole ledger

NewEpoch: TypeAlias = Annotated[
    str, Kind("why to accept a history that contradicts the last checkpoint", TEXT, "REASON")
]
EntryArg: TypeAlias = Annotated[
    str | int, Kind("an observation, or a position of the log", TEXT, "OBS", example="0", ids=_OBSERVATION)
]
OldCheckpoint: TypeAlias = Annotated[str | bytes, Kind("the older checkpoint, as its note", TEXT, "NOTE")]
NewCheckpoint: TypeAlias = Annotated[str | bytes, Kind("the newer checkpoint (default: one made now)", TEXT, "NOTE")]
CapsuleOf: TypeAlias = Annotated[
    str,
    Kind(
        "a run, a decision as RUN#stage, an observation, or a field as REF#field",
        TEXT,
        "RUN|OBS|REF#field",
        example="contact/Ana Rivera#city",
        ids=_RUN + _OBSERVATION + _ENTITY,
    ),
]
ErasedThing: TypeAlias = Annotated[
    str | Ref,
    Kind("an entity, a field as REF#field, or a source", TEXT, "REF|REF#field|SRC", ids=_ENTITY + _SOURCE),
]
ErasureReason: TypeAlias = Annotated[
    str, Kind("the reason; stored in the log, so do not name anybody in it", TEXT, "TEXT")
]
ErasedAgent: TypeAlias = Annotated[str, Kind("erase everything this agent stated", TEXT, "A")]
ErasedSubject: TypeAlias = Annotated[
    str | Ref, Kind("erase an entity, its relations and all runs about it", TEXT, "REF", ids=_ENTITY)
]
ErasureDryRun: TypeAlias = Annotated[bool, Kind("only show the entries to erase", FLAG)]
CompactFile: TypeAlias = Annotated[bool, Kind("rewrite the file even if the search finds nothing; writers wait", FLAG)]
CompactionDryRun: TypeAlias = Annotated[bool, Kind("only show the cost of rewriting the file", FLAG)]
Deep: TypeAlias = Annotated[bool, Kind("also check the search index, other indexes and vectors", FLAG)]
HeldCheckpoints: TypeAlias = Annotated[
    Iterable[Any], Kind("checkpoints kept elsewhere, as their notes", TEXTS, "NOTE", option="checkpoint")
]
VerifierKey: TypeAlias = Annotated[str, Kind("verifier key that must have signed them", TEXT, "KEY")]
Shuffles: TypeAlias = Annotated[int, Kind("number of orders to try (default: 100)", WHOLE, "N")]

"""Parameters: what verbs take, each kind described once.

A verb's method annotates its parameters with these types. A type checker sees the Python type; every surface reads the
`Kind` beside it: the sentence, the JSON Schema, and the name where Python cannot have it (`from`). A parameter whose
annotation carries no kind, such as a callback, exists in the library alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Final, TypeAlias

from woodrat.canon.ids import Ref
from woodrat.ledger.pages import PAGE_MAX
from woodrat.records import dataclass

WAIT_SECONDS_MAX: Final = 20
"""How long a caller may have a server wait for something new."""

Schema = Mapping[str, Any]
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


def any_of(*schemas: Schema) -> Schema:
    """Return the schema of what may be any of these; each is whole, which is what makers of clients understand."""
    return {"anyOf": list(schemas)}


def id_schema(prefix: str) -> Schema:
    """Return the schema of an id."""
    return {"type": "string", "pattern": f"^{prefix}_[a-z2-7]{{26}}$"}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of parameter, as every surface shows it; one object for each kind."""

    what: str
    """What it is, in a clause; it follows the parameter's name."""
    schema: Schema = TEXT
    """JSON Schema of its value."""
    metavar: str = ""
    """What stands for its value in the help of a command; its name in capitals where empty."""
    wire: str = ""
    """Its name on every surface but Python, where that is another."""
    example: Any = None
    """A value that works."""
    header: str = ""
    """The header that carries it over HTTP, where it has one."""
    brief: str | None = None
    """What it is in the few words an agent reads; None: its name says it."""


# Which entity, run, observation, …

RefArg: TypeAlias = Annotated[
    str | Ref,
    Kind("entity as type/key, or an ent_ id", ENTITY, "REF", example="contact/Ana Rivera", brief="type/key or id"),
]
OtherRef: TypeAlias = Annotated[str | Ref, Kind("the other entity", ENTITY, "REF", example="contact/A. Rivera")]
RunArg: TypeAlias = Annotated[
    str, Kind("id of the run", id_schema("run"), "RUN", example="run_aaaaaaaaaaaaaaaaaaaaaaaaaa")
]
Observations: TypeAlias = Annotated[str | Sequence[str], Kind("ids of the observations", TEXTS, "OBS")]
SourceArg: TypeAlias = Annotated[
    str, Kind("id of the source", id_schema("src"), "SRC", example="src_aaaaaaaaaaaaaaaaaaaaaaaaaa")
]
InterpretationArg: TypeAlias = Annotated[
    str, Kind("id of the interpretation", id_schema("int"), "INT", example="int_aaaaaaaaaaaaaaaaaaaaaaaaaa")
]
EntityType: TypeAlias = Annotated[str, Kind("the entity type", TYPE, "T", example="contact")]
OfType: TypeAlias = Annotated[str, Kind("only entities of this type", TYPE, "T", brief="")]
FieldArg: TypeAlias = Annotated[str, Kind("the field", TEXT, "F", example="tags")]
OnlyField: TypeAlias = Annotated[str, Kind("only this field", TEXT, "F")]

# When

MomentArg: TypeAlias = Annotated[
    int | str, Kind("a position, a time, now, @tag or a run", any_of(TEXT, WHOLE), "M", brief="a moment")
]
FromMoment: TypeAlias = Annotated[
    int | str, Kind("the earlier moment", any_of(TEXT, WHOLE), "M", wire="from", example="0")
]
ToMoment: TypeAlias = Annotated[
    int | str, Kind("the later moment; default: now", any_of(TEXT, WHOLE), "M", wire="to", brief="default now")
]
AsOfArg: TypeAlias = Annotated[
    int | str,
    Kind("only what was known at this moment: a position, a time, now, @tag or a run", TEXT, "M", brief="a moment"),
]
ValidAt: TypeAlias = Annotated[str, Kind("only what was true by this time", TEXT, "T")]
SeenSince: TypeAlias = Annotated[str, Kind("seen at or after this time", TEXT, "T")]
SeenUntil: TypeAlias = Annotated[str, Kind("seen before this time", TEXT, "T")]
StartedSince: TypeAlias = Annotated[str, Kind("only runs that started at or after this time", TEXT, "T")]
StartedUntil: TypeAlias = Annotated[str, Kind("only runs that started before this time", TEXT, "T")]
ObservedAt: TypeAlias = Annotated[
    str,
    Kind("when it was seen (RFC 3339 with an offset); default: now", TEXT, "T", brief="RFC 3339; default now"),
]
ValidFrom: TypeAlias = Annotated[str, Kind("since when it is true; default: when it was seen", TEXT, "T")]

# Pages

Limit: TypeAlias = Annotated[
    int, Kind("how many to return at most", {**WHOLE, "minimum": 1, "maximum": PAGE_MAX}, "N", brief="")
]
Cursor: TypeAlias = Annotated[str, Kind("where an earlier page ended", TEXT, "C", brief="")]
PositionArg: TypeAlias = Annotated[int, Kind("only entries after this position", WHOLE, "N")]

# Writing

Records: TypeAlias = Annotated[
    Sequence[Mapping[str, Any]] | Mapping[str, Any],
    Kind("what was seen: one record or a list of them", any_of(RECORD, {"type": "array", "items": RECORD}), "JSON"),
]
Fields: TypeAlias = Annotated[Mapping[str, Any], Kind("values by field", OBJECT, "K=V")]
Removed: TypeAlias = Annotated[
    Mapping[str, Any], Kind("elements to take out, by field", OBJECT, "K=V", brief="elements, by field")
]
Replaces: TypeAlias = Annotated[
    Sequence[str],
    Kind("ids of the corrections it replaces", TEXTS, "OBS", brief="obs_ ids of earlier corrections"),
]
ReasonText: TypeAlias = Annotated[str, Kind("why; it is kept with the change", TEXT, "TEXT")]
IdempotencyKey: TypeAlias = Annotated[
    str,
    Kind("makes it safe to send the same call again", TEXT, "K", header="Idempotency-Key", brief="makes a repeat safe"),
]
DryRun: TypeAlias = Annotated[bool, Kind("do everything except write", FLAG, brief="")]
Priority: TypeAlias = Annotated[
    int, Kind("how far the writer is trusted; the larger wins", WHOLE, "N", brief="trust; larger wins")
]
FromSource: TypeAlias = Annotated[str, Kind("id of the source it was read from", TEXT, "SRC", brief="src_ id")]
InRun: TypeAlias = Annotated[str, Kind("the run it is part of", TEXT, "RUN")]
InStep: TypeAlias = Annotated[int, Kind("the step of that run", WHOLE, "N")]
Saw: TypeAlias = Annotated[Sequence[str], Kind("ids of the observations the writer had read", TEXTS, "OBS")]
IfVersion: TypeAlias = Annotated[
    int | Sequence[int] | str,
    Kind(
        "refuse unless the entity has this version, one of several, or is known",
        any_of(WHOLE, {"type": "array", "items": WHOLE}, {"type": "string", "enum": ["known"]}),
        "N",
        brief="refuse unless this is its version",
    ),
]
IfVersions: TypeAlias = Annotated[
    Mapping[str, int | None] | int | Sequence[int] | str,
    Kind(
        "refuse unless the entity has this version, one of several, one by reference, or is new or known",
        any_of(WHOLE, {"type": "array", "items": WHOLE}, {"type": "string", "enum": ["new", "known"]}, OBJECT),
        "N",
        brief="refuse unless this is its version",
    ),
]

# Runs

OfAgent: TypeAlias = Annotated[str, Kind("only runs of this agent", TEXT, "A")]
Subject: TypeAlias = Annotated[str | Ref, Kind("only runs about this entity", TEXT, "REF")]
Conversation: TypeAlias = Annotated[str, Kind("only runs of this conversation", TEXT, "TEXT")]
Principal: TypeAlias = Annotated[str, Kind("only runs on behalf of this principal", TEXT, "TEXT")]
Status: TypeAlias = Annotated[str, Kind("only runs that are done, error, cancelled, interrupted or running", TEXT, "S")]
OfVerdict: TypeAlias = Annotated[str, Kind("only runs judged like this", TEXT, "V")]
Projection: TypeAlias = Annotated[str, Kind("decisions, commits, narrative or full", TEXT, "P")]
Budget: TypeAlias = Annotated[int, Kind("most tokens of the text", WHOLE, "N")]

# Searching and listing

Words: TypeAlias = Annotated[
    str, Kind("words, each matched by prefix", TEXT, "Q", example="Ana Rivera", brief="words, matched by prefix")
]
Where: TypeAlias = Annotated[
    Mapping[str, Any] | Sequence[str],
    Kind("a condition field=value; may be repeated, all must hold", TEXTS, "K=V", brief="field=value; not with query"),
]
SortField: TypeAlias = Annotated[str, Kind("the field to sort by", TEXT, "F")]
Descending: TypeAlias = Annotated[bool, Kind("largest first", FLAG)]
ByArrival: TypeAlias = Annotated[
    bool, Kind("list the fields decided only by arrival: no observation time was given", FLAG, brief="")
]
Depth: TypeAlias = Annotated[int, Kind("how many relations to follow; default: 1", WHOLE, "N")]
Excerpts: TypeAlias = Annotated[bool, Kind("show the words of the source that a claim points at", FLAG)]
WithProvenance: TypeAlias = Annotated[bool, Kind("include the winning observations", FLAG)]
KnownState: TypeAlias = Annotated[
    object, Kind("a state that was written down: snapshots, or one of them", any_of(OBJECTS, OBJECT), "FILE")
]
EntriesMax: TypeAlias = Annotated[int, Kind("how many entries to return at most", WHOLE, "N")]

# Questions

Question: TypeAlias = Annotated[str, Kind("what is asked", TEXT, "Q", example="why was application #42 rejected?")]
HitsMax: TypeAlias = Annotated[int, Kind("how many hits at most", WHOLE, "N")]
Threshold: TypeAlias = Annotated[float, Kind("least similarity, from -1 to 1", NUMBER, "X")]
Scope: TypeAlias = Annotated[str, Kind("tenant, principal or conversation", TEXT, "SCOPE")]
ScopePrincipal: TypeAlias = Annotated[str, Kind("the principal of the scope", TEXT, "TEXT")]
ScopeConversation: TypeAlias = Annotated[str, Kind("the conversation of the scope", TEXT, "TEXT")]
AgeMax: TypeAlias = Annotated[float | timedelta, Kind("how old a run may be, in seconds", NUMBER, "S")]
LineageOf: TypeAlias = Annotated[
    str,
    Kind(
        "a run, a decision as RUN#stage, an observation, or a field as REF#field",
        TEXT,
        "RUN|OBS|REF#field",
        wire="of",
        example="contact/Ana Rivera#city",
    ),
]
ImpactOf: TypeAlias = Annotated[
    str, Kind("an observation, a source or an interpretation", TEXT, "OBS|SRC|INT", wire="of")
]
ByAgent: TypeAlias = Annotated[str, Kind("everything this agent stated", TEXT, "A", example="crm")]
AlsoSame: TypeAlias = Annotated[bool, Kind("include decisions that would come out the same", FLAG)]
Asked: TypeAlias = Annotated[
    Any, Kind("an entity, a decision as RUN#stage, or a predicate", any_of(TEXT, OBJECT), "REF|RUN#stage")
]
Conditions: TypeAlias = Annotated[Mapping[str, Any], Kind("conditions by field, as in rules", OBJECT)]
ConditionTexts: TypeAlias = Annotated[
    Mapping[str, Any] | Sequence[str],
    Kind("values by field, or conditions as text", any_of(OBJECT, TEXTS), "CONDITION"),
]
Exists: TypeAlias = Annotated[bool, Kind("whether the entity is known", FLAG)]
Deleted: TypeAlias = Annotated[bool, Kind("whether the entity is deleted", FLAG)]
Rules: TypeAlias = Annotated[Iterable[Any], Kind("rules that decide on the fields of the entity", OBJECTS, "FILE")]
DefaultBranch: TypeAlias = Annotated[Any, Kind("the branch chosen when no rule matches", ANYTHING, "BRANCH")]
ChosenBranch: TypeAlias = Annotated[Any, Kind("the branch asked about", ANYTHING, "BRANCH")]
SearchFrom: TypeAlias = Annotated[
    int | str, Kind("the earlier moment; default: before the first entry", any_of(TEXT, WHOLE), "M", wire="from")
]
SearchTo: TypeAlias = Annotated[int | str, Kind("the later moment; default: now", any_of(TEXT, WHOLE), "M", wire="to")]
FirstFlip: TypeAlias = Annotated[bool, Kind("find the first change, which means walking every change", FLAG)]
FoldsMax: TypeAlias = Annotated[int, Kind("how many sets to try at most", WHOLE, "N")]
SomeRuns: TypeAlias = Annotated[
    str | Sequence[str], Kind("a run, a decision as RUN#stage, or several; default: all", any_of(TEXT, TEXTS), "RUN")
]
Without: TypeAlias = Annotated[
    str | Sequence[str], Kind("observations, sources or interpretations to leave out", any_of(TEXT, TEXTS), "ID")
]
WithoutAgents: TypeAlias = Annotated[
    str | Sequence[str], Kind("agents whose every statement is left out", any_of(TEXT, TEXTS), "A")
]
SetValues: TypeAlias = Annotated[Mapping[str, Any], Kind("values to assume, by REF#field", OBJECT, "K=V")]
RulesByStage: TypeAlias = Annotated[Mapping[str, Any], Kind("other rules, by stage", OBJECT)]
Thresholds: TypeAlias = Annotated[Mapping[str, Any], Kind("other thresholds", OBJECT)]
Sweep: TypeAlias = Annotated[
    str | Mapping[str, Any], Kind("one value, tried over a range", any_of(TEXT, OBJECT), "SPEC")
]
OnlyStage: TypeAlias = Annotated[str, Kind("only decisions of this stage", TEXT, "STAGE")]
SubjectType: TypeAlias = Annotated[str, Kind("only runs about entities of this type", TEXT, "T")]

# Runs, once more

OfSession: TypeAlias = Annotated[str | Ref, Kind("only runs of this agent_session", TEXT, "REF")]
OfPipeline: TypeAlias = Annotated[str | Ref, Kind("only runs of this pipeline, and the runs they started", TEXT, "REF")]
RunOrDocument: TypeAlias = Annotated[
    str | Mapping[str, Any] | Sequence[Any],
    Kind("a run, by id or as a document", any_of(TEXT, OBJECT, OBJECTS), "RUN"),
]
OtherRun: TypeAlias = Annotated[
    str | Mapping[str, Any] | Sequence[Any],
    Kind("the run to compare it with", any_of(TEXT, OBJECT, OBJECTS), "RUN"),
]
RunsOrDocuments: TypeAlias = Annotated[
    Sequence[str | Mapping[str, Any] | Sequence[Any]],
    Kind("runs, by id or as documents", {"type": "array", "items": any_of(TEXT, OBJECT)}, "RUN"),
]
AskedThis: TypeAlias = Annotated[str, Kind("runs that were asked this", TEXT, "Q")]
SameInputs: TypeAlias = Annotated[str, Kind("runs that were given what this run was given", TEXT, "RUN")]
VerdictArg: TypeAlias = Annotated[str, Kind("good, bad, or a word of your own", TEXT, "good|bad")]
Preferred: TypeAlias = Annotated[Any, Kind("a better answer", ANYTHING, "ANSWER")]
JudgedBy: TypeAlias = Annotated[str, Kind("who judges; default: the agent", TEXT, "WHO")]
Score: TypeAlias = Annotated[float, Kind("the judgement as a number", NUMBER, "X")]
ComparedWith: TypeAlias = Annotated[str, Kind("the tag or run it was compared with", TEXT, "M")]
AboutSpan: TypeAlias = Annotated[str, Kind("the span of the one step that is judged", TEXT, "SPAN")]
EvaluationRef: TypeAlias = Annotated[str, Kind("the evaluation this verdict comes from", TEXT, "REF")]
EvaluationName: TypeAlias = Annotated[str, Kind("what to call the evaluation", TEXT, "NAME")]
Document: TypeAlias = Annotated[object, Kind("a run, or a list of runs or entries", ANYTHING, "FILE")]

# Relations, schemas, sources, interpretations

StartRef: TypeAlias = Annotated[str | Ref, Kind("where the relation starts", ENTITY, "REF", wire="from")]
EndRef: TypeAlias = Annotated[str | Ref, Kind("where it leads", ENTITY, "REF", wire="to")]
RelationType: TypeAlias = Annotated[str, Kind("the type of the relation, such as works_at", TEXT, "TYPE")]
RelationKey: TypeAlias = Annotated[str, Kind("tells several relations of one type apart", TEXT, "K")]
TagName: TypeAlias = Annotated[str, Kind("the name: letters, digits, '.', '_' and '-'", TEXT, "NAME")]
SchemaModel: TypeAlias = Annotated[object, Kind("JSON Schema 2020-12", OBJECT, "FILE", wire="schema")]
DescribedType: TypeAlias = Annotated[str, Kind("the type it describes; default: the title of the schema", TEXT, "T")]
SchemaVersion: TypeAlias = Annotated[int, Kind("its version; default: the next", WHOLE, "N")]
SourceName: TypeAlias = Annotated[str, Kind("what to call it; default: the name of the file", TEXT, "NAME")]
MediaType: TypeAlias = Annotated[str, Kind("its media type", TEXT, "TYPE")]
FromInterpretation: TypeAlias = Annotated[
    str,
    Kind("an interpretation", id_schema("int"), "INT", wire="from", example="int_aaaaaaaaaaaaaaaaaaaaaaaaaa"),
]
ToInterpretation: TypeAlias = Annotated[
    str,
    Kind("the one to compare it with", id_schema("int"), "INT", wire="to", example="int_bbbbbbbbbbbbbbbbbbbbbbbbbb"),
]

# The whole ledger

NewEpoch: TypeAlias = Annotated[
    str, Kind("why a history that the last checkpoint contradicts is accepted", TEXT, "REASON")
]
EntryArg: TypeAlias = Annotated[str | int, Kind("an observation, or a position of the log", TEXT, "OBS", example="0")]
OldCheckpoint: TypeAlias = Annotated[str | bytes, Kind("the older checkpoint, as its note", TEXT, "NOTE")]
NewCheckpoint: TypeAlias = Annotated[str | bytes, Kind("the newer checkpoint; default: one made now", TEXT, "NOTE")]
CapsuleOf: TypeAlias = Annotated[
    str,
    Kind(
        "a run, a decision as RUN#stage, an observation, or a field as REF#field",
        TEXT,
        "RUN|OBS|REF#field",
        example="contact/Ana Rivera#city",
    ),
]
ErasedThing: TypeAlias = Annotated[
    str | Ref, Kind("an entity, a field as REF#field, or a source", TEXT, "REF|REF#field|SRC")
]
ErasureReason: TypeAlias = Annotated[str, Kind("why; it is kept in the log, so name nobody in it", TEXT, "TEXT")]
ErasedAgent: TypeAlias = Annotated[str, Kind("everything this agent stated", TEXT, "A")]
ErasedSubject: TypeAlias = Annotated[str | Ref, Kind("an entity, with the runs about it", TEXT, "REF")]
ErasureDryRun: TypeAlias = Annotated[bool, Kind("say what would go, and erase nothing", FLAG)]
Deep: TypeAlias = Annotated[bool, Kind("compare the search index, other indexes and vectors too", FLAG)]
HeldCheckpoints: TypeAlias = Annotated[Iterable[Any], Kind("checkpoints held elsewhere, as their notes", TEXTS, "NOTE")]
VerifierKey: TypeAlias = Annotated[str, Kind("the verifier key that must have signed them", TEXT, "KEY")]
Shuffles: TypeAlias = Annotated[int, Kind("how many orders to try; default: 100", WHOLE, "N")]

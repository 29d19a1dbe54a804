"""Verbs: every command there is, as data; the parser, the completions and the reference page are made from it."""

from __future__ import annotations

from typing import Any

from woodrat.records import dataclass

Argument = tuple[tuple[str, ...], dict[str, Any]]
"""Names and settings of one argument, as argparse takes them."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command."""

    words: str
    """What is typed, such as `entities search`."""
    run: str
    """Module and function that answer it; imported when it is called."""
    what: str
    """What it does, in a sentence."""
    examples: tuple[str, ...]
    """Commands to try."""
    arguments: tuple[Argument, ...] = ()
    """What it takes besides the options every verb takes."""
    reads: bool = False
    """Whether it answers at a moment: `--as-of` and `--effective`."""


def whole(text: str) -> int:
    """Return a whole number as people write it."""
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 17:
        return int(text)
    raise ValueError(text)


whole.__name__ = "whole number"  # argparse says it in its message


def version(text: str) -> int | str:
    """Return a version of an entity, or the word for whether it is known."""
    return text if text in ("new", "known") else whole(text)


version.__name__ = "version"


def _a(*names: str, **given: Any) -> Argument:
    return names, given


def destination(argument: Argument) -> str:
    """Return the name that an argument's value goes by."""
    names, given = argument
    found: str = given.get("dest") or names[-1].lstrip("-").replace("-", "_")
    return found


OUTPUTS = ("table", "json", "jsonl")
EVERYWHERE: tuple[Argument, ...] = (
    _a(
        "--db",
        metavar="URL",
        help="the database: a path, sqlite:///path, or http(s)://… with its key in WOODRAT_KEY (WOODRAT_DB)",
    ),
    _a("--tenant", help="the tenant (WOODRAT_TENANT; default)"),
    _a("--agent", help="who writes (WOODRAT_AGENT; cli)"),
    _a("--keys", metavar="DIR", help="the folder of keys (WOODRAT_KEYS; the user's own)"),
    _a("-o", "--output", choices=OUTPUTS, help="a table on a terminal, JSON when piped"),
)
"""What every verb takes; may stand before or after it."""
MOMENT: tuple[Argument, ...] = (
    _a("--as-of", metavar="M", help="only what was known at this moment"),
    _a("--effective", metavar="T", help="only what was true by this time"),
)
"""What every verb takes that reads."""


_REF = _a("ref", metavar="REF", help="entity as type/key, or an ent_ id")
_REF_OR_ALL = _a("ref", metavar="REF", nargs="?", help="entity as type/key, or an ent_ id; all when left out")
_TYPE = _a("--entity-type", metavar="T", help="only entities of this type")
_LIMIT = _a("--limit", type=whole, metavar="N", help="how many to return at most")
_CURSOR = _a("--cursor", metavar="C", help="go on where an earlier answer ended")
_OBSERVED = _a("--observed-at", metavar="T", help="when it was seen (RFC 3339 with an offset); left out: now")
_KEY = _a("--idempotency-key", metavar="K", help="makes sending the same call again safe")
_DRY = _a("--dry-run", action="store_true", help="do everything but write")
_REASON = _a("--reason", metavar="TEXT", help="why")
_WHY = _a("--reason", metavar="TEXT", required=True, help="why; it is kept with the change")
_IF_VERSION = _a(
    "--if-version",
    type=version,
    metavar="N",
    help="refuse as outdated unless this is the entity's version; or it is new, or known",
)
_RUN = _a("run", metavar="RUN", help="id of a run")
_SINCE = _a("--since", metavar="T", help="only runs that began at or after this time")
_UNTIL = _a("--until", metavar="T", help="only runs that began before this time")
_FORMAT = _a("--format", choices=("dot", "mermaid"), help="print a graph for Graphviz or Mermaid instead")
_STATING = (_REASON, _OBSERVED, _KEY, _DRY)
_SCHEMA_FILE = _a("file", metavar="FILE", help="JSON Schema; - for standard input")
_SCHEMA_TYPE = _a("--entity-type", metavar="T", help="the type it describes; left out: the schema's title")
_QUESTION = (
    _a("what", metavar="REF|RUN#stage", nargs="?", help="the entity asked about, or a decision on record"),
    _a(
        "--where",
        metavar="CONDITION",
        action="append",
        default=[],
        help="city=Girona, 'creditScore lt 600', or either after REF#; repeatable, all must hold",
    ),
    _a("--exists", action="store_true", help="the entity exists"),
    _a("--deleted", action="store_true", help="the entity is deleted"),
    _a("--rules", metavar="F", help="rules in a JSON file that decide on the entity's fields; - for standard input"),
    _a("--default", metavar="BRANCH", help="what is chosen when no rule matches"),
    _a("--chosen", metavar="BRANCH", help="the branch asked about; of a decision on record, left out: its own"),
)

VERBS: tuple[Verb, ...] = (
    Verb(
        "store",
        "facts:store",
        "Store what an agent saw: one record or a list of them, whole or not at all.",
        (
            """woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'""",
            "woodrat store --file contacts.jsonl --observed-at 2026-01-05T09:00:00Z --agent crm",
        ),
        (
            _a("--json", metavar="JSON", help="records as JSON: one object or a list of them"),
            _a(
                "--file",
                metavar="F",
                help="records in a file: JSON, or one a line (JSONL); - for standard input",
            ),
            _OBSERVED,
            _a("--valid-from", metavar="T", help="since when it is true; left out: when it was seen"),
            _KEY,
            _a("--priority", type=whole, metavar="N", help="how much the writer is to be trusted; larger wins"),
            _a("--source", metavar="FILE", help="the file it was read from; added as a source first"),
            _a("--run", metavar="RUN", help="the run it was said in"),
            _IF_VERSION,
            _DRY,
        ),
    ),
    Verb(
        "entities search",
        "entities:search",
        "Find entities by words; one hit is shown whole, with every observation and the reason each value won.",
        ('woodrat entities search --query "Ana Rivera" --entity-type contact',),
        (
            _a("--query", metavar="Q", required=True, help="words, each matched by prefix"),
            _TYPE,
            _LIMIT,
            _CURSOR,
        ),
        reads=True,
    ),
    Verb(
        "entities list",
        "entities:entities",
        "List entities by type and field values, or those that share an identifying value.",
        (
            "woodrat entities list --entity-type contact --where 'city=Barcelona'",
            "woodrat entities list --all -o jsonl > known-good.jsonl",
        ),
        (
            _TYPE,
            _a(
                "--where",
                metavar="K=V",
                action="append",
                default=[],
                help="only where the field has the value; repeatable",
            ),
            _a("--duplicates", action="store_true", help="entities that share an identifying value"),
            _a("--sort", metavar="FIELD", help="order by this field"),
            _a("--descending", action="store_true", help="the other way round"),
            _LIMIT,
            _CURSOR,
            _a("--all", action="store_true", help="all of them, however many; not with --limit or --cursor"),
        ),
        reads=True,
    ),
    Verb(
        "show",
        "entities:show",
        "Show what is believed about an entity, and where each value came from.",
        ("woodrat show 'contact/Ana Rivera'", "woodrat show 'contact/Ana Rivera' --as-of 2026-02-01T00:00:00Z -o json"),
        (_REF,),
        reads=True,
    ),
    Verb(
        "elements",
        "entities:elements",
        "List the elements of a collection, some at a time, in its order.",
        ("woodrat elements 'contact/Ana Rivera#tags'", "woodrat elements 'box/7#things' --limit 1000 -o jsonl"),
        (_a("ref", metavar="REF#FIELD", help="the collection"), _LIMIT, _CURSOR),
        reads=True,
    ),
    Verb(
        "observations list",
        "entities:observations",
        "List the observations of an entity, or all of them, in the order of the log.",
        ("woodrat observations list 'contact/Ana Rivera'", "woodrat observations list -o jsonl"),
        (_REF_OR_ALL,),
        reads=True,
    ),
    Verb(
        "history",
        "entities:history",
        "Show how belief about an entity changed with each observation.",
        ("woodrat history 'contact/Ana Rivera' --field city",),
        (_REF, _a("--field", metavar="F", help="only this field")),
        reads=True,
    ),
    Verb(
        "timeline",
        "entities:timeline",
        "Show what was seen when, across all entities.",
        ("woodrat timeline --since 2026-01-01T00:00:00Z --until 2026-04-01T00:00:00Z",),
        (
            _a("--since", metavar="T", help="seen at or after this time"),
            _a("--until", metavar="T", help="seen before this time"),
        ),
        reads=True,
    ),
    Verb(
        "diff",
        "entities:diff",
        "Show what differs between two moments, or between a state kept in a file and a moment.",
        ("woodrat diff --from @release-3 --to now", "woodrat diff --against known-good.jsonl --exit-code"),
        (
            _REF_OR_ALL,
            _a("--from", dest="before", metavar="M", help="the earlier moment"),
            _a(
                "--against",
                metavar="FILE",
                help="a state kept in a file, in place of --from: snapshots as `entities list --all` or `show` print "
                "them; - for standard input",
            ),
            _a("--to", dest="after", metavar="M", help="the later moment; left out: that of --as-of, or now"),
            _TYPE,
            _a("--exit-code", action="store_true", help="exit with 1 when there is a difference"),
        ),
        reads=True,
    ),
    Verb(
        "tag",
        "facts:tag",
        "Name a moment, so that @NAME reads at it.",
        ("woodrat tag release-3", "woodrat tag before-import 128"),
        (
            _a("name", metavar="NAME", help="letters, digits, '.', '_' and '-'"),
            _a("moment", metavar="M", nargs="?", default="now", help="the moment to name; left out: now"),
            _KEY,
        ),
    ),
    Verb(
        "blame",
        "entities:blame",
        "Show every claim on a field, who won, who lost, and why.",
        ("woodrat blame 'contact/Ana Rivera#city'", "woodrat blame 'contact/Ana Rivera'"),
        (
            _a("ref", metavar="REF[#field]", help="entity, or one of its fields after the last #"),
            _a("--excerpts", action="store_true", help="show the words of its source that a claim points at"),
        ),
        reads=True,
    ),
    Verb(
        "conflicts",
        "entities:conflicts",
        "List the fields on which two agents differ without having seen each other.",
        ("woodrat conflicts --entity-type contact", "woodrat conflicts --arrival"),
        (
            _TYPE,
            _a(
                "--arrival",
                action="store_true",
                help="list the fields decided only by arrival: no observation time was given",
            ),
        ),
        reads=True,
    ),
    Verb(
        "correct",
        "facts:correct",
        "Correct fields of an entity; the values hold until they are corrected or withdrawn.",
        ("woodrat correct 'contact/Ana Rivera' --set city=Girona --reason 'she told me'",),
        (
            _REF,
            _a(
                "--set",
                metavar="K=V",
                action="append",
                default=[],
                help="field and value, as JSON or text; repeatable",
            ),
            _a("--remove", metavar="K=V", action="append", default=[], help="element to take out; repeatable"),
            _WHY,
            _a("--replaces", metavar="OBS", action="append", help="the observation that was wrong; repeatable"),
            _OBSERVED,
            _a("--valid-from", metavar="T", help="since when it is true; left out: as the claim it corrects"),
            _a("--priority", type=whole, metavar="N", help="how much the writer is to be trusted"),
            _KEY,
            _IF_VERSION,
            _DRY,
        ),
    ),
    Verb(
        "retract",
        "facts:retract",
        "Withdraw observations; they stay readable, and a retraction can itself be withdrawn.",
        ("woodrat retract obs_d2fjsh5trd3wfuioa2iscubxg2 --reason 'that was another Ana'",),
        (_a("observations", metavar="OBS", nargs="+", help="ids of observations"), _WHY, _OBSERVED, _KEY, _DRY),
    ),
    Verb(
        "delete",
        "facts:delete",
        "Mark an entity as deleted; nothing is lost.",
        ("woodrat delete 'contact/Ana Rivera' --reason 'asked to be removed'",),
        (_REF, *_STATING),
    ),
    Verb(
        "restore",
        "facts:restore",
        "Bring a deleted entity back as it is believed now.",
        ("woodrat restore 'contact/Ana Rivera'",),
        (_REF, *_STATING),
    ),
    Verb(
        "relate",
        "facts:relate",
        "Relate two entities; history and provenance come with it.",
        ("woodrat relate 'contact/Ana Rivera' works_at company/Acme",),
        (
            _a("start", metavar="REF", help="where the relation begins"),
            _a("type", metavar="TYPE", help="what it is, such as works_at"),
            _a("end", metavar="REF", help="where it leads"),
            _a("--key", metavar="K", help="tells several relations of one type between the two apart"),
            _a("--set", metavar="K=V", action="append", default=[], help="what is said about the relation; repeatable"),
            *_STATING,
        ),
    ),
    Verb(
        "related",
        "entities:related",
        "Show the relations that begin or end at an entity.",
        ("woodrat related 'contact/Ana Rivera' --depth 2",),
        (_REF, _a("--depth", type=whole, default=1, metavar="N", help="how many relations to follow; 1 when left out")),
        reads=True,
    ),
    Verb(
        "merge",
        "facts:merge",
        "Say that two entities of one type are one; split takes it back.",
        ("woodrat merge 'contact/Ana Rivera' contact/ana@example.com",),
        (_a("one", metavar="REF", help="an entity"), _a("other", metavar="REF", help="the same entity"), *_STATING),
    ),
    Verb(
        "split",
        "facts:split",
        "Part an entity from all it was merged with, or from one.",
        ("woodrat split 'contact/Ana Rivera' contact/ana@example.com",),
        (_REF, _a("other", metavar="REF", nargs="?", help="the one to part from; all when left out"), *_STATING),
    ),
    Verb(
        "schema register",
        "schemas:register",
        "Register a JSON Schema for an entity type, as its next version.",
        ("woodrat schema register contact.json", "woodrat schema register loan.json --entity-type loan"),
        (_SCHEMA_FILE, _SCHEMA_TYPE, _KEY, _DRY),
    ),
    Verb(
        "schema list",
        "schemas:schemas",
        "List the schemas in force, built-in ones included.",
        ("woodrat schema list",),
        reads=True,
    ),
    Verb(
        "schema show",
        "schemas:schema",
        "Show the schema in force for a type.",
        ("woodrat schema show contact -o json",),
        (_a("entity_type", metavar="T", help="entity type"),),
        reads=True,
    ),
    Verb(
        "schema infer",
        "schemas:infer",
        "Write a JSON Schema that fits what is stored of a type, as a start for your own.",
        ("woodrat schema infer loan -o json > loan.json",),
        (_a("entity_type", metavar="T", help="entity type"),),
        reads=True,
    ),
    Verb(
        "schema check",
        "schemas:check",
        "Say what is wrong with a JSON Schema, and what registering it would do; nothing is written.",
        ("woodrat schema check contact.json",),
        (_SCHEMA_FILE, _SCHEMA_TYPE),
    ),
    Verb(
        "sources add",
        "schemas:add_source",
        "Add a file as a source: stored once by its content, each delivery recorded.",
        ("woodrat sources add contract.pdf --media-type application/pdf",),
        (
            _a("file", metavar="FILE", help="the file; - for standard input"),
            _a("--name", metavar="TEXT", help="what to call it; left out: the file's name"),
            _a("--media-type", metavar="TEXT", help="what it is"),
            _KEY,
        ),
    ),
    Verb(
        "sources list",
        "schemas:sources",
        "List every delivery of a source.",
        ("woodrat sources list",),
        reads=True,
    ),
    Verb(
        "sources show",
        "schemas:source",
        "Show a source: its deliveries and its content, exactly as received.",
        ("woodrat sources show src_…", "woodrat sources show src_… --out contract.pdf"),
        (
            _a("source", metavar="SRC", help="id of a source"),
            _a("--out", metavar="F", help="write the content to this file; - for standard output"),
        ),
        reads=True,
    ),
    Verb(
        "interpretations list",
        "schemas:interpretations",
        "List the readings of sources by models and parsers.",
        ("woodrat interpretations list",),
        reads=True,
    ),
    Verb(
        "interpretations show",
        "schemas:interpretation",
        "Show one reading of a source: model, prompt digest, parameters, how it ended.",
        ("woodrat interpretations show int_…",),
        (_a("interpretation", metavar="INT", help="id of an interpretation"),),
        reads=True,
    ),
    Verb(
        "interpretations diff",
        "schemas:interpretations_diff",
        "Show how two readings differ: model, prompt and parameters, and what they said of which entity.",
        ("woodrat interpretations diff int_… int_…",),
        (
            _a("before", metavar="INT", help="id of an interpretation"),
            _a("after", metavar="INT", help="id of the one to compare it with"),
        ),
        reads=True,
    ),
    Verb(
        "log",
        "maintenance:log",
        "Print the entries of the log, as JSON lines when piped.",
        ("woodrat log --after 128 --follow", "woodrat log -o jsonl > log.jsonl"),
        (
            _a("--after", type=whole, default=-1, metavar="N", help="only entries after this position"),
            _a("--follow", action="store_true", help="go on with entries as they are appended, until Ctrl-C"),
        ),
        reads=True,
    ),
    Verb(
        "fingerprint",
        "maintenance:fingerprint",
        "Print one digest of the whole state: equal for equal sets of observations, in whatever order they came.",
        ("woodrat fingerprint", "woodrat fingerprint --as-of @release-3"),
        (_a("--provenance", action="store_true", help="also over the observations behind the values"),),
        reads=True,
    ),
    Verb(
        "rebuild",
        "maintenance:rebuild",
        "Merge everything again from the log and compare; exits with 1 if anything derived had to be put right.",
        ("woodrat rebuild",),
    ),
    Verb(
        "verify",
        "verify:verify",
        "Work everything out again from the log; exits with 1 if derived data is stale, 5 if the log is damaged.",
        ("woodrat verify --deep", "woodrat verify --checkpoint held-elsewhere.note"),
        (
            _a("--deep", action="store_true", help="compare the search index, shelves and vectors too"),
            _a("--jobs", type=whole, metavar="N", help="how many processes share the work; some for a long log"),
            _a("--checkpoint", action="append", metavar="F", help="a checkpoint held elsewhere; may be repeated"),
            _a("--key", metavar="F", help="the verifier key that must have signed it, such as signer.pub"),
            _a("--embedder", metavar="E", help="check its vectors too, with --deep; ngram-v1 is always checked"),
        ),
    ),
    Verb(
        "prove-order",
        "maintenance:prove_order",
        "Feed everything to fresh ledgers in other orders and compare the states; exits with 1 if order matters.",
        ("woodrat prove-order --shuffles 100",),
        (_a("--shuffles", type=whole, default=100, metavar="N", help="how many orders to try; 100 when left out"),),
    ),
    Verb(
        "runs list",
        "runs:runs",
        "List runs, the latest first, with what they decided and what was thought of them.",
        ("woodrat runs list --subject loan/42", "woodrat runs list --status interrupted --since 2026-01-05T00:00:00Z"),
        (
            _a("--by", metavar="AGENT", help="only runs of this agent"),
            _a("--subject", metavar="REF", help="only runs about this entity"),
            _a("--conversation", metavar="TEXT", help="only runs of this conversation"),
            _a("--principal", metavar="TEXT", help="only runs on behalf of this principal"),
            _a("--session", metavar="REF", help="only runs of this agent_session"),
            _a("--pipeline", metavar="REF", help="only runs of this pipeline, and those they started"),
            _SINCE,
            _UNTIL,
            _a("--status", metavar="S", help="only runs that are done, error, cancelled, interrupted or running"),
            _a("--verdict", metavar="V", help="only runs judged so"),
            _LIMIT,
            _CURSOR,
        ),
        reads=True,
    ),
    Verb(
        "runs show",
        "runs:run",
        "Show a run: what it read, decided, called and wrote, or a projection of it for a prompt.",
        ("woodrat runs show run_…", "woodrat runs show run_… --projection decisions --budget 200"),
        (
            _RUN,
            _a("--projection", metavar="P", help="decisions, commits, narrative or full"),
            _a("--budget", type=whole, metavar="N", help="tokens the projection may take; whole lines are left out"),
        ),
        reads=True,
    ),
    Verb(
        "runs diff",
        "runs_diff:diff",
        "Show two runs side by side, where they part and why, and say it in one sentence; --group clusters many.",
        ("woodrat runs diff run_… run_…", "woodrat runs diff --group --same-inputs-as run_…"),
        (
            _a("runs", metavar="RUN", nargs="*", help="id of a run, or a file with a trajectory; two of them, or any"),
            _a("--other-db", metavar="URL", help="the second run is in this database; left out: in the same"),
            _a("--other-tenant", metavar="TENANT", help="the second run is of this tenant; left out: of the same"),
            _a("--group", dest="crowd", action="store_true", help="cluster any number of runs by where they part"),
            _a("--query", metavar="Q", help="with --group: runs that were asked this"),
            _a("--subject", metavar="REF", help="with --group: runs about this entity"),
            _a("--same-inputs-as", metavar="RUN", help="with --group: runs asked and given what this one was"),
            _a("--by", metavar="AGENT", help="with --group: runs of this agent"),
            _SINCE,
            _UNTIL,
            _a("--exit-code", action="store_true", help="exit with 1 when they differ"),
        ),
        reads=True,
    ),
    Verb(
        "runs record",
        "runs:record",
        "Record runs that happened elsewhere from a JSON document: trajectories, told runs, or entries.",
        ("woodrat runs record trace.json", "woodrat runs record - --agent loan-officer"),
        (_a("file", metavar="FILE", help="JSON, or one object a line (JSONL); - for standard input"),),
    ),
    Verb(
        "runs judge",
        "runs:judge",
        "Say what is thought of a run, or compare what it wrote with a state known to be good.",
        (
            "woodrat runs judge run_… --verdict bad --preferred 'Rejected: 580 is below 600.' --by ann",
            "woodrat runs judge run_… --against @known-good",
        ),
        (
            _RUN,
            _a("--verdict", metavar="V", help="good, bad, or a word of your own"),
            _a("--preferred", metavar="ANSWER", help="a better answer, as JSON or text"),
            _a("--by", metavar="WHO", help="who judges; left out: the agent"),
            _REASON,
            _a("--score", metavar="N", help="the judgement as a number"),
            _a(
                "--against",
                metavar="M",
                help="what it was compared with; without a verdict, the moment to compare with",
            ),
            _a("--about", metavar="SPAN", help="the one step that is judged, by its span"),
        ),
    ),
    Verb(
        "runs resume",
        "runs:resume",
        "Carry on an interrupted run: recorded steps answer from the log, up to the first that is not recorded.",
        ("woodrat runs resume run_… --with agents.loans:approve --agent loan-officer",),
        (
            _RUN,
            _a("--with", dest="function", required=True, metavar="MODULE:FUNCTION", help="the agent, given the run"),
            _a(
                "--on-unknown",
                choices=("fail", "retry"),
                default="fail",
                help="what to do about a once tool that began and whose end is not known; fail when left out",
            ),
        ),
    ),
    Verb(
        "replay",
        "replay:replay",
        "Run an agent's function again on recorded runs and compare; exits with 1 if any run differs.",
        (
            "woodrat replay run_… --with agents.loans:approve",
            "woodrat replay --since 2026-01-05T00:00:00Z --by loan-officer --with agents.loans:approve",
        ),
        (
            _a("runs", metavar="RUN", nargs="*", help="ids of runs"),
            _a("--with", dest="function", required=True, metavar="MODULE:FUNCTION", help="the agent, given the run"),
            _SINCE,
            _a("--by", metavar="AGENT", help="only runs of this agent"),
            _a("--live", metavar="NAME", action="append", default=[], help="a tool or model that runs for real"),
            _a("--steps", type=whole, metavar="N", help="steps a run may take before it is stopped; 10000 if left out"),
            _a("--jobs", type=whole, metavar="N", help="how many processes replay at the same time"),
            _a("--timeout", metavar="S", help="seconds a run may take before its process is ended"),
        ),
    ),
    Verb(
        "why",
        "runs:why",
        "Tell what was decided about an entity, the latest first, on what evidence and with which answer.",
        ("woodrat why loan/42",),
        (_REF, _LIMIT, _CURSOR),
        reads=True,
    ),
    Verb(
        "lineage",
        "explain:lineage",
        "Tell where an answer, a decision, an observation or a field comes from, back to its sources.",
        ("woodrat lineage loan/42#creditScore", "woodrat lineage run_… --format mermaid"),
        (
            _a("what", metavar="RUN|OBS|REF#field", help="a run, a decision as RUN#stage, an observation or a field"),
            _FORMAT,
        ),
        reads=True,
    ),
    Verb(
        "impact",
        "explain:impact",
        "Tell which fields, reads, decisions, answers and exports lean on an observation, source, reading or agent.",
        ("woodrat impact obs_…", "woodrat impact --by crm --format dot"),
        (
            _a("what", metavar="OBS|SRC|INT", nargs="?", help="an observation, a source or an interpretation"),
            _a("--by", metavar="AGENT", help="all that this agent said instead"),
            _FORMAT,
        ),
        reads=True,
    ),
    Verb(
        "stale",
        "explain:stale",
        "List decisions whose evidence is believed otherwise now, with both beliefs and what would be decided now.",
        ("woodrat stale --same --limit 100", "woodrat stale --follow -o jsonl"),
        (
            _a("--same", action="store_true", help="also those that would come out the same"),
            _a("--follow", action="store_true", help="print decisions as writes make them stale, until Ctrl-C"),
            _LIMIT,
            _CURSOR,
        ),
        reads=True,
    ),
    Verb(
        "bisect",
        "bisect:bisect",
        "Find a write with which the answer about a state or a decision became another; exits with 1 if there is none.",
        (
            "woodrat bisect loan/42 --where 'creditScore lt 600'",
            "woodrat bisect run_…#classify-risk --chosen approved --from @release-3",
        ),
        (
            *_QUESTION,
            _a("--from", dest="before", metavar="M", help="where to begin; left out: before the first entry"),
            _a("--to", dest="after", metavar="M", help="where to end; left out: the moment of --as-of, or now"),
            _a("--first", action="store_true", help="walk every change of what is asked about, for the first flip"),
        ),
        reads=True,
    ),
    Verb(
        "reduce",
        "bisect:reduce",
        "Find a minimal set of observations that by itself shows what holds, as a file to check anywhere.",
        (
            "woodrat reduce loan/42 --where 'creditScore lt 600' --out low-score.jsonl",
            "woodrat reduce --check low-score.jsonl",
        ),
        (
            *_QUESTION,
            _a("--out", metavar="F", help="write the set to this file; - for standard output"),
            _a("--check", metavar="F", help="check such a file on an empty ledger instead; exits with 1 if it fails"),
            _a("--folds", type=whole, metavar="N", help="how many sets to fold at most; 10000 if left out"),
        ),
        reads=True,
    ),
    Verb(
        "what-if",
        "what_if:what_if",
        "Tell what recorded decisions would have come to, had something been otherwise; nothing is written.",
        (
            "woodrat what-if run_… --without obs_… --set income=4200",
            "woodrat what-if --all --stage classify-risk --sweep creditScore=550..650",
        ),
        (
            _a("runs", metavar="RUN", nargs="*", help="ids of runs, or decisions as RUN#stage"),
            _a("--all", action="store_true", help="all recorded decisions instead"),
            _a("--without", metavar="X", action="append", default=[], help="an observation, source or interpretation"),
            _a("--without-agent", metavar="AGENT", action="append", default=[], help="all that an agent said"),
            _a("--set", metavar="K=V", action="append", default=[], help="another value of a fact or a REF#field"),
            _a(
                "--rules",
                metavar="F",
                help="other rules, a JSON file: by stage, or a list for one",
            ),
            _a(
                "--threshold",
                metavar="T=V",
                action="append",
                default=[],
                help="another operand in the rules: stage.fact.operator=value",
            ),
            _a("--sweep", metavar="K=LOW..HIGH", help="one value after the other: K=LOW..HIGH:STEP or K=a,b,c"),
            _a("--stage", metavar="S", help="only decisions of this stage"),
            _a("--by", metavar="AGENT", help="only decisions in runs of this agent"),
            _a("--subject-type", metavar="T", help="only decisions in runs about entities of this type"),
            _a("--since", metavar="T", help="only decisions made at or after this time"),
            _a("--until", metavar="T", help="only decisions made before this time"),
            _a("--same", action="store_true", help="list also those that would come out the same, as for named runs"),
            _LIMIT,
            _CURSOR,
        ),
        reads=True,
    ),
    Verb(
        "recall",
        "recall:recall",
        "Find the runs a question is about, those that decided first; and say what came near when none passes.",
        (
            'woodrat recall "Why was application #42 rejected?"',
            'woodrat recall "Who may see finance data?" --threshold 0.3 --scope principal --principal bob',
        ),
        (
            _a("question", metavar="Q", help="the question, in words"),
            _a(
                "--scope",
                choices=("tenant", "principal", "conversation"),
                help="among whose runs; all of the tenant's when left out",
            ),
            _a("--principal", metavar="TEXT", help="the principal, for that scope"),
            _a("--conversation", metavar="TEXT", help="the conversation, for that scope"),
            _a("--k", type=whole, metavar="N", help="how many runs at most; 1 when left out"),
            _a("--threshold", metavar="X", help="the least score, -1 to 1; 0.5 when left out"),
            _a("--projection", metavar="P", help="decisions, commits, narrative or full; decisions when left out"),
            _a("--budget", type=whole, metavar="N", help="how many tokens the text may cost"),
            _a("--ttl", type=whole, metavar="SECONDS", help="how old a run may be"),
            _a("--embedder", metavar="E", help="ngram-v1, openai:MODEL, ollama:MODEL, …; ngram-v1 when left out"),
        ),
        reads=True,
    ),
    Verb(
        "reindex",
        "recall:reindex",
        "Embed all runs again for recall, in place of the vectors kept for this embedder.",
        ("woodrat reindex", "woodrat reindex --embedder ollama:nomic-embed-text"),
        (_a("--embedder", metavar="E", help="ngram-v1, openai:MODEL, ollama:MODEL, …; ngram-v1 when left out"),),
    ),
    Verb(
        "export training",
        "runs:export_training",
        "Write rows for training a model from recorded runs; runs that lean on withdrawn observations are left out.",
        (
            "woodrat export training dpo --out pairs.jsonl",
            "woodrat export training sft --flavour openai --verdict good --out - > rows.jsonl",
        ),
        (
            _a("kind", metavar="KIND", help="sft, dpo, kto or process-rl"),
            _a("--out", metavar="F", required=True, help="the file to write; - for standard output"),
            _a("--flavour", metavar="F", default="trl", help="trl or openai; trl when left out"),
            _a("--by", metavar="AGENT", help="only runs of this agent"),
            _SINCE,
            _UNTIL,
            _a("--verdict", metavar="V", help="only runs judged so"),
            _a("--no-metadata", action="store_true", help="leave out which runs and entries a row is from"),
            _a("--no-record", action="store_true", help="leave no audit_event of the export, by which impact finds it"),
        ),
        reads=True,
    ),
    Verb(
        "init",
        "agents:init",
        "Make the keys that sign checkpoints and recognise erased records; or make the ledger known to a client.",
        ("woodrat init --keys ./keys --name example.com/ledger", "woodrat init --client claude-code"),
        (
            _a("--name", metavar="NAME", help="the signer's name; left out: woodrat- and eight digits"),
            _a(
                "--client",
                choices=("claude-code", "cursor", "vscode", "claude-desktop"),
                help="a program with agents, whose MCP configuration gets an entry instead; all others stay",
            ),
            _a("--print", action="store_true", help="with --client: only show what would be written, and where"),
        ),
    ),
    Verb(
        "checkpoint",
        "proofs:checkpoint",
        "Sign how long the log is and its root; a shorter history than the last one signed is refused.",
        ("woodrat checkpoint", "woodrat checkpoint --new-epoch 'restored from the backup of Monday'"),
        (
            _a("--new-epoch", metavar="REASON", help="accept a history that the last checkpoint contradicts"),
            _a("--out", metavar="F", help="also write the signed note to this file"),
        ),
    ),
    Verb(
        "prove",
        "proofs:prove",
        "Prove that an observation is in the log under a checkpoint, or that the log goes on from an older checkpoint.",
        ("woodrat prove obs_… --out proof.json", "woodrat prove --from monday.note --out growth.json"),
        (
            _a("what", metavar="OBS", nargs="?", help="an observation, or a position of the log"),
            _a("--from", dest="since", metavar="NOTE", help="an older checkpoint of this log, in a file"),
            _a("--to", metavar="NOTE", help="the newer checkpoint; left out: one of now"),
            _a("--out", metavar="F", help="the file to write; left out: standard output"),
        ),
    ),
    Verb(
        "capsule",
        "proofs:capsule",
        "Write one file that proves a decision, an observation or a field to somebody who has nothing else.",
        ("woodrat capsule run_… --out decision.json", "woodrat capsule loan/42#creditScore --out score.json"),
        (
            _a("what", metavar="RUN|OBS|REF#field", help="a run, a decision as RUN#stage, an observation or a field"),
            _a("--out", metavar="F", required=True, help="the file to write; - for standard output"),
            _a("--with-verifier", action="store_true", help="put both stand-alone verifiers beside it"),
        ),
    ),
    Verb(
        "erase",
        "erase:erase",
        "Forget for ever what is named, with all that names or quotes it; every earlier proof still holds.",
        (
            "woodrat erase contact/ana@example.com --reason 'request of 5 May' --dry-run",
            "woodrat erase contact/ana@example.com --reason 'request of 5 May' --out certificate.json",
        ),
        (
            _a("what", metavar="REF|REF#field|SRC", nargs="?", help="an entity, a field of one, or a source"),
            _a("--by", metavar="AGENT", help="all that this agent said instead"),
            _a("--subject", metavar="REF", help="an entity, its relations and all runs about it instead"),
            _a("--reason", metavar="TEXT", help="why; it is kept in the log, so name nobody in it"),
            _a("--dry-run", action="store_true", help="say what would go, and erase nothing"),
            _a("--yes", action="store_true", help="do not ask"),
            _a("--out", metavar="F", help="a new file for the certificate, as JSON"),
            _a("--finish", action="store_true", help="take out of the files what an interrupted erasure left there"),
            _a("--again", action="store_true", help="erase what was erased in another copy, after restoring a backup"),
        ),
    ),
    Verb(
        "export log",
        "exchange:export_log",
        "Write the log as JSON lines, one for each entry, from which another ledger can be made or joined.",
        ("woodrat export log --out log.jsonl", "woodrat export log --after 128 > news.jsonl"),
        (
            _a("--out", metavar="F", help="the file to write; standard output when left out, or -"),
            _a("--after", type=whole, default=-1, metavar="N", help="only entries after this position, whole writes"),
            _a("--through", default="now", metavar="M", help="only entries through this moment, whole writes"),
            _a("--force", action="store_true", help="replace a file that is there"),
            _a("--resume", action="store_true", help="add to an export that is there what the log has gained since"),
        ),
    ),
    Verb(
        "import log",
        "exchange:import_log",
        "Take in an exported log: an empty ledger becomes its clone, into any other its entries are merged.",
        ("woodrat import log log.jsonl --db clone.db", "woodrat import log news.jsonl"),
        (_a("file", metavar="FILE", help="an exported log; - for standard input"),),
    ),
    Verb(
        "sync",
        "exchange:sync",
        "Exchange entries with another ledger until both hold the same; from an exported log they are only taken.",
        (
            "woodrat sync laptop.db",
            "woodrat sync https://ledger.example.org --pull",
        ),
        (
            _a(
                "other",
                metavar="OTHER",
                help="a ledger's file, of which this tenant is meant, an exported log, or the address of a server",
            ),
            _a(
                "--key", metavar="K", help="the key for a server; left out, that of WOODRAT_KEY, which nobody else sees"
            ),
            _a("--pull", action="store_true", help="only take in what the other holds"),
            _a("--push", action="store_true", help="only give the other what this one holds"),
        ),
    ),
    Verb(
        "copy",
        "exchange:copy",
        "Copy one tenant's log, through a moment, into a ledger without it; so a backup is restored.",
        (
            "woodrat copy --from backup.db --to agents.db",
            "woodrat copy --from backup.db --to then.db --through @release-3",
        ),
        (
            _a("--from", dest="source", metavar="URL", required=True, help="the ledger's file, or its backup"),
            _a("--to", dest="target", metavar="URL", required=True, help="a new file, or one without this tenant"),
            _a("--through", default="now", metavar="M", help="only entries through this moment, whole writes"),
        ),
    ),
    Verb(
        "backup",
        "exchange:backup",
        "Write a file with the logs of all tenants as they are now, while others go on writing, and check it.",
        ("woodrat backup agents-backup.db",),
        (
            _a("file", metavar="F", help="the file to write"),
            _a("--force", action="store_true", help="replace a file that is there"),
        ),
    ),
    Verb(
        "migrate",
        "maintenance:migrate",
        "Bring the database to the layout of this version, and say which it is.",
        ("woodrat migrate --db agents.db",),
    ),
    Verb(
        "doctor",
        "maintenance:doctor",
        "Say what woodrat uses: engine, versions, settings, files with their sizes, outgoing addresses.",
        ("woodrat doctor",),
    ),
    Verb(
        "serve",
        "serve:serve",
        "Serve the ledger over HTTP: REST at /v1, its document at /openapi.json.",
        (
            "woodrat serve",
            "woodrat serve --host 0.0.0.0 --name ledger.example.org --tls-cert c.pem --tls-key k.pem",
        ),
        (
            _a("--host", metavar="H", default="127.0.0.1", help="where to listen; others than 127.0.0.1 need keys"),
            _a("--port", type=whole, metavar="N", default=8787, help="port to listen on; 8787 when left out"),
            _a("--name", metavar="H", action="append", default=[], help="a name it is called by; several times"),
            _a(
                "--origin",
                metavar="URL",
                action="append",
                default=[],
                help="a site that may call; several times",
            ),
            _a("--tls-cert", metavar="F", help="certificate, PEM"),
            _a("--tls-key", metavar="F", help="its key, PEM"),
            _a(
                "--behind-proxy",
                action="store_true",
                help="believe X-Forwarded-Host, which a proxy in front sets; needs keys",
            ),
            _a("--calls-per-second", type=whole, metavar="N", help="how often a key may call; no bound if left out"),
            _a(
                "--log-level",
                choices=("debug", "info", "warning", "error"),
                default="warning",
                help="what is logged to standard error, a line of JSON each; warning when left out",
            ),
        ),
    ),
    Verb(
        "keys create",
        "serve:create",
        "Make a key for --tenant, and show its secret this once.",
        (
            "woodrat keys create --tenant lending --for-agent loan-officer --grant read --grant write --grant run",
            "woodrat keys create --tenant lending --for-agent auditor --grant read --expires-at 2027-01-01T00:00:00Z",
        ),
        (
            _a("--for-agent", metavar="A", required=True, help="as whom its holder writes"),
            _a(
                "--grant",
                metavar="G",
                action="append",
                default=[],
                help="what it may do: read, write, correct, run, manage or metrics, or one for a type as in "
                "write:contact, or '*' for all but metrics; several times, and at least once",
            ),
            _a("--name", metavar="TEXT", help="what it is for"),
            _a("--priority-max", type=whole, metavar="N", help="the highest priority its holder may state"),
            _a("--expires-at", metavar="T", help="when it ends by itself"),
        ),
    ),
    Verb("keys list", "serve:keys", "List keys; secrets are not kept.", ("woodrat keys list",)),
    Verb(
        "keys revoke",
        "serve:revoke",
        "Revoke a key.",
        ("woodrat keys revoke key_… --reason 'laptop lost'",),
        (_a("key", metavar="KEY", help="id of the key"), _REASON),
    ),
    Verb(
        "keys audit",
        "serve:audit",
        "Say what a key looked at, and when; all of them when left out.",
        ("woodrat keys audit key_…", "woodrat keys audit -o jsonl"),
        (_a("key", metavar="KEY", nargs="?", help="id of the key"),),
    ),
    Verb("tenants list", "serve:tenants", "List the tenants that have a log.", ("woodrat tenants list",)),
    Verb(
        "webhooks add",
        "serve:add_webhook",
        "Send new entries of --tenant to an address, signed; a running server takes it up.",
        (
            "woodrat webhooks add https://hooks.example.org/woodrat --secret-file hook.secret --tenant lending",
            "woodrat webhooks add http://localhost:9000/ --secret-file hook.secret --kind observation --after 0",
        ),
        (
            _a("url", metavar="URL", help="where to send them; https, or an address of this machine"),
            _a("--secret-file", metavar="F", required=True, help="file with the secret they are signed with"),
            _a("--kind", metavar="K", action="append", default=[], help="only entries of this kind; several times"),
            _a("--after", type=whole, metavar="N", help="begin after this position; left out: at the end of the log"),
        ),
    ),
    Verb("webhooks list", "serve:webhooks", "List webhooks, and how far they are.", ("woodrat webhooks list",)),
    Verb(
        "webhooks remove",
        "serve:remove_webhook",
        "Send nothing to a webhook any more.",
        ("woodrat webhooks remove hook_…",),
        (_a("webhook", metavar="WEBHOOK", help="id of the webhook"),),
    ),
    Verb(
        "webhooks dead-letters",
        "serve:dead_letters",
        "List deliveries that were given up.",
        ("woodrat webhooks dead-letters",),
        (_a("webhook", metavar="WEBHOOK", nargs="?", help="id of the webhook; all when left out"),),
    ),
    Verb(
        "webhooks retry",
        "serve:retry_webhook",
        "Have deliveries that were given up sent again; a running server takes it up.",
        ("woodrat webhooks retry hook_…", "woodrat webhooks retry hook_… --first 128"),
        (
            _a("webhook", metavar="WEBHOOK", help="id of the webhook"),
            _a("--first", type=whole, metavar="N", help="only the delivery that begins at this position"),
        ),
    ),
    Verb(
        "demo",
        "demo:demo",
        "Tell of two agents who disagree and of two runs that differ, on ledgers in memory that leave nothing behind.",
        ("woodrat demo", "woodrat demo --story runs"),
        (_a("--story", choices=("agents", "runs"), help="only this one; both when left out"),),
    ),
    Verb(
        "completion",
        "completion:completion",
        "Print a completion script for a shell.",
        ("woodrat completion bash > ~/.local/share/bash-completion/completions/woodrat", "woodrat completion fish"),
        (_a("shell", choices=("bash", "zsh", "fish"), help="the shell"),),
    ),
    Verb(
        "import otlp",
        "agents:import_otlp",
        "Record the OpenTelemetry spans of a file as runs: OTLP in protobuf or JSON, also one request a line.",
        ("woodrat import otlp traces.json", "woodrat import otlp spans.pb --agent support-bot"),
        (_a("file", metavar="FILE", help="OTLP; - for standard input"),),
    ),
    Verb(
        "mcp",
        "agents:mcp",
        "Serve the ledger to an MCP client over standard input and output, for --tenant and as --agent.",
        ("woodrat mcp --db agents.db --agent claude-code",),
    ),
)

GROUPS: dict[str, str] = {
    "entities": "Find and list entities.",
    "import": "Take in what other tools wrote.",
    "observations": "List observations.",
    "schema": "Register, list, show, infer and check schemas.",
    "sources": "Add, list and show sources.",
    "interpretations": "List, show and compare readings of sources.",
    "runs": "List, show, compare, record, judge and resume runs.",
    "keys": "Make, list, revoke and audit the keys of a server.",
    "tenants": "List tenants.",
    "webhooks": "Send new entries to other addresses.",
    "export": "Write what the ledger holds in other forms.",
}
"""First words that are followed by a second one."""

"""Data: the commands about schemas, sources and the log, and about moving data in and out."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import AGENT, CURSOR, DRY_RUN, KEY, LIMIT_ALL, SINCE, UNTIL, Verb, argument, whole

_SCHEMA_FILE = argument("file", metavar="FILE", help="JSON Schema; - for standard input")
_SCHEMA_TYPE = argument("--entity-type", metavar="T", help="type it describes (default: the schema's title)")
_TYPE = argument("entity_type", metavar="T", help="entity type")
_INTERPRETATION = argument("interpretation", metavar="INT", ids=("interpretation",), help="interpretation id")
_THROUGH = argument(
    "--through", default="now", metavar="M", ids=("run",), help="only entries up to this moment, in whole writes"
)

VERBS: tuple[Verb, ...] = (
    Verb(
        "schemas register",
        "schemas:register",
        "Register a JSON Schema as the next version for a type.",
        ("woodrat schemas register contact.json", "woodrat schemas register loan.json --entity-type loan"),
        (_SCHEMA_FILE, _SCHEMA_TYPE, KEY, DRY_RUN),
        writes=True,
    ),
    Verb(
        "schemas list",
        "schemas:schemas",
        "List the schemas in use, built-in ones included.",
        ("woodrat schemas list",),
        (LIMIT_ALL, CURSOR),
        reads=True,
        more="With --limit or --cursor, built-in schemas are left out.",
    ),
    Verb(
        "schemas show",
        "schemas:schema",
        "Show the schema of a type.",
        ("woodrat schemas show contact -o json",),
        (_TYPE,),
        reads=True,
    ),
    Verb(
        "schemas infer",
        "schemas:infer",
        "Infer a JSON Schema from the stored entities of a type.",
        ("woodrat schemas infer loan -o json > loan.json",),
        (_TYPE,),
        reads=True,
        rows=False,
    ),
    Verb(
        "schemas check",
        "schemas:check",
        "Check a JSON Schema without registering it.",
        ("woodrat schemas check contact.json",),
        (_SCHEMA_FILE, _SCHEMA_TYPE),
    ),
    Verb(
        "sources add",
        "schemas:add_source",
        "Add a file as a source.",
        ("woodrat sources add contract.pdf --media-type application/pdf",),
        (
            argument("file", metavar="FILE", help="the file; - for standard input"),
            argument("--name", metavar="TEXT", help="name of the source (default: the file's name)"),
            argument("--media-type", metavar="TEXT", help="media type, such as application/pdf"),
            KEY,
        ),
        writes=True,
        more="Content is stored once; each delivery of it is recorded.",
    ),
    Verb(
        "sources list",
        "schemas:sources",
        "List sources, one row per delivery.",
        ("woodrat sources list",),
        (LIMIT_ALL, CURSOR),
        reads=True,
    ),
    Verb(
        "sources show",
        "schemas:source",
        "Show a source: its deliveries and its content.",
        ("woodrat sources show src_…", "woodrat sources show src_… --out contract.pdf"),
        (
            argument("source", metavar="SRC", ids=("source",), help="source id"),
            argument("--out", metavar="F", help="write the content to this file; - for standard output"),
        ),
        reads=True,
    ),
    Verb(
        "interpretations list",
        "schemas:interpretations",
        "List interpretations of sources by models and parsers.",
        ("woodrat interpretations list",),
        (LIMIT_ALL, CURSOR),
        reads=True,
    ),
    Verb(
        "interpretations show",
        "schemas:interpretation",
        "Show one interpretation: model, prompt and parameters.",
        ("woodrat interpretations show int_…",),
        (_INTERPRETATION,),
        reads=True,
    ),
    Verb(
        "interpretations diff",
        "schemas:interpretations_diff",
        "Compare two interpretations of a source.",
        ("woodrat interpretations diff int_… int_…",),
        (
            argument("before", metavar="INT", ids=("interpretation",), help="interpretation id"),
            argument("after", metavar="INT", ids=("interpretation",), help="id of the one to compare it with"),
        ),
        reads=True,
    ),
    Verb(
        "log",
        "maintenance:log",
        "Print the entries of the log.",
        ("woodrat log --after 128 --follow", "woodrat log -o jsonl > log.jsonl"),
        (
            argument("--after", type=whole, default=-1, metavar="N", help="only entries after this position"),
            argument("--follow", action="store_true", help="keep printing entries as they are appended, until Ctrl-C"),
        ),
        reads=True,
    ),
    Verb(
        "export log",
        "exchange:export_log",
        "Write the log to a file, one JSON line per entry.",
        ("woodrat export log --out log.jsonl", "woodrat export log --after 128 > news.jsonl"),
        (
            argument("--out", metavar="F", help="file to write (default: standard output)"),
            argument(
                "--after", type=whole, default=-1, metavar="N", help="only entries after this position, in whole writes"
            ),
            _THROUGH,
            argument("--force", action="store_true", help="overwrite an existing file"),
            argument("--resume", action="store_true", help="append what the log has gained to an earlier export"),
        ),
        rows=False,
    ),
    Verb(
        "export training",
        "runs:export_training",
        "Write training data from recorded runs.",
        (
            "woodrat export training dpo --out pairs.jsonl",
            "woodrat export training sft --flavour openai --verdict good --out - > rows.jsonl",
        ),
        (
            argument("kind", metavar="KIND", help="sft, dpo, kto or process-rl"),
            argument("--out", metavar="F", required=True, help="file to write; - for standard output"),
            argument("--flavour", metavar="F", default="trl", help="trl or openai (default: trl)"),
            AGENT,
            SINCE,
            UNTIL,
            argument("--verdict", metavar="V", help="only runs with this verdict"),
            argument("--no-metadata", action="store_true", help="do not write which runs and entries a row is from"),
            argument("--no-record", action="store_true", help="do not record the export; `impact` will not find it"),
        ),
        reads=True,
        more="Runs that depend on retracted observations are left out.",
    ),
    Verb(
        "import log",
        "exchange:import_log",
        "Import an exported log.",
        ("woodrat import log log.jsonl --db clone.db", "woodrat import log news.jsonl"),
        (argument("file", metavar="FILE", help="exported log; - for standard input"),),
        writes=True,
        more="An empty ledger becomes a clone of it; any other ledger merges its entries.",
    ),
    Verb(
        "import otlp",
        "agents:import_otlp",
        "Import OpenTelemetry spans as runs.",
        ("woodrat import otlp traces.json", "woodrat import otlp spans.pb --as support-bot"),
        (argument("file", metavar="FILE", help="OTLP as protobuf, JSON or JSON lines; - for standard input"),),
        writes=True,
    ),
    Verb(
        "sync",
        "exchange:sync",
        "Exchange entries with another ledger until both agree.",
        (
            "woodrat sync laptop.db",
            "woodrat sync https://ledger.example.org --pull",
        ),
        (
            argument(
                "other",
                metavar="URL|FILE",
                help="a ledger's file (the same tenant in it), the address of a server, or an exported log",
            ),
            argument("--key", metavar="K", help="API key of the server (default: WOODRAT_TOKEN)"),
            argument("--pull", action="store_true", help="only receive entries"),
            argument("--push", action="store_true", help="only send entries"),
        ),
        writes=True,
    ),
    Verb(
        "copy",
        "exchange:copy",
        "Copy one tenant's log to another ledger.",
        (
            "woodrat copy --from backup.db --to agents.db",
            "woodrat copy --from backup.db --to then.db --through @release-3",
        ),
        (
            argument("--from", dest="source", metavar="URL", required=True, help="ledger's file, or a backup of it"),
            argument("--to", dest="target", metavar="URL", required=True, help="new file, or one without this tenant"),
            argument("--through", default="now", metavar="M", help="only entries up to this moment, in whole writes"),
        ),
    ),
    Verb(
        "backup create",
        "exchange:backup",
        "Back up all tenants to a file, and check it.",
        ("woodrat backup create agents-backup.db",),
        (
            argument("file", metavar="F", help="file to write"),
            argument("--force", action="store_true", help="overwrite an existing file"),
        ),
        more="Others can go on writing meanwhile.",
    ),
    Verb(
        "backup restore",
        "exchange:restore",
        "Restore all tenants of a backup into a new database.",
        ("woodrat backup restore agents-backup.db --db restored.db",),
        (argument("file", metavar="F", help="backup to restore"),),
        more="--db names the new file. `woodrat copy` restores one tenant, up to any moment.",
    ),
    Verb(
        "backup verify",
        "exchange:verify",
        "Check every log in a backup.",
        ("woodrat backup verify agents-backup.db", "woodrat backup verify agents-backup.db --deep"),
        (
            argument("file", metavar="F", help="backup to check"),
            argument("--deep", action="store_true", help="also check the search index, other indexes and vectors"),
        ),
        more="Exits with 1 if derived data is out of date, and with 5 if a log is damaged.",
    ),
)
"""The commands, in the order of the help."""

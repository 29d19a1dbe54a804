"""Data: the commands about schemas, sources and the log, and about moving data in and out."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import ALL, Command, argument, whole

_THROUGH = argument(
    "--through", default="now", metavar="M", ids=("run",), help="only entries up to this moment, in whole writes"
)

COMMANDS: tuple[Command, ...] = (
    Command(
        "schemas register",
        "schemas:register",
        ("woodrat schemas register contact.json", "woodrat schemas register loan.json --entity-type loan"),
        verb="schemas.register",
    ),
    Command(
        "schemas list",
        "schemas:schemas",
        ("woodrat schemas list",),
        verb="schemas.list",
        forms=ALL,
        what="List the schemas in use, built-in ones included.",
        more="With --limit or --cursor, built-in schemas are left out.",
    ),
    Command("schemas show", "schemas:schema", ("woodrat schemas show contact -o json",), verb="schemas.show"),
    Command(
        "schemas infer",
        "schemas:infer",
        ("woodrat schemas infer loan -o json > loan.json",),
        verb="schemas.infer",
        rows=False,
    ),
    Command("schemas check", "schemas:check", ("woodrat schemas check contact.json",), verb="schemas.check"),
    Command("schemas add-pack", "schemas:add_pack", ("woodrat schemas add-pack neotoma",), verb="schemas.add_pack"),
    Command(
        "sources add",
        "schemas:add_source",
        ("woodrat sources add contract.pdf --media-type application/pdf",),
        verb="sources.add",
        own=(argument("file", metavar="FILE", help="the file; - for standard input"),),
        more="Content is stored once; each delivery of it is recorded.",
    ),
    Command("sources list", "schemas:sources", ("woodrat sources list",), verb="sources.list", forms=ALL),
    Command(
        "sources show",
        "schemas:source",
        ("woodrat sources show src_…", "woodrat sources show src_… --out contract.pdf"),
        verb="sources.show",
        own=(argument("--out", metavar="F", help="write the content to this file; - for standard output"),),
        what="Show a source: its deliveries and its content.",
    ),
    Command(
        "interpretations list",
        "schemas:interpretations",
        ("woodrat interpretations list",),
        verb="interpretations.list",
        forms=ALL,
    ),
    Command(
        "interpretations show",
        "schemas:interpretation",
        ("woodrat interpretations show int_…",),
        verb="interpretations.show",
    ),
    Command(
        "interpretations diff",
        "schemas:interpretations_diff",
        ("woodrat interpretations diff int_… int_…",),
        verb="interpretations.diff",
    ),
    Command(
        "log",
        "maintenance:log",
        ("woodrat log --after 128 --follow", "woodrat log -o jsonl > entries.jsonl"),
        verb="log.entries",
        own=(
            argument("--follow", action="store_true", help="keep printing entries as they are appended, until Ctrl-C"),
        ),
    ),
    Command(
        "sql",
        "maintenance:sql",
        (
            "woodrat sql \"SELECT key, fields ->> 'city' AS city FROM entities WHERE type = 'contact'\"",
            "woodrat sql 'SELECT stage, chosen, count(*) FROM decisions GROUP BY 1, 2' -o csv",
        ),
        verb="sql",
        more="The tables are entities, field_values, observations, runs and decisions; the dialect is SQLite's.",
    ),
    Command(
        "export log",
        "exchange:export_log",
        ("woodrat export log --out log.jsonl", "woodrat export log --after 128 > news.jsonl"),
        what="Write the log to a file, one JSON line per entry.",
        own=(
            argument("--out", metavar="F", help="file to write (default: standard output)"),
            argument(
                "--after", type=whole, default=-1, metavar="N", help="only entries after this position, in whole writes"
            ),
            _THROUGH,
            argument("--force", action="store_true", help="overwrite an existing file"),
            argument("--resume", action="store_true", help="append the new entries of the log to an earlier export"),
        ),
        rows=False,
    ),
    Command(
        "export training",
        "runs:export_training",
        (
            "woodrat export training dpo --out pairs.jsonl",
            "woodrat export training sft --flavour openai --verdict good --out - > rows.jsonl",
        ),
        verb="training.export",
        own=(
            argument("--out", metavar="F", required=True, help="file to write; - for standard output"),
            argument("--no-metadata", action="store_true", help="do not write which runs and entries a row is from"),
            argument("--no-record", action="store_true", help="do not record the export; `impact` will not find it"),
        ),
        more="Runs that depend on retracted observations are excluded.",
    ),
    Command(
        "import log",
        "exchange:import_log",
        ("woodrat import log log.jsonl --db clone.db", "woodrat import log news.jsonl"),
        what="Import an exported log.",
        own=(argument("file", metavar="FILE", help="exported log; - for standard input"),),
        writes=True,
        more="An empty ledger becomes a clone of it; any other ledger merges its entries.",
    ),
    Command(
        "import neotoma",
        "exchange:import_neotoma",
        (
            "woodrat import neotoma neotoma.db --check",
            "woodrat import neotoma neotoma.db --user 0000-0001 --tenant ann",
        ),
        what="Import the SQLite database of a Neotoma server.",
        own=(
            argument("file", metavar="FILE", help="database of a Neotoma server, such as neotoma.db"),
            argument("--user", metavar="ID", help="whose data to import, if the file has data of several users"),
            argument("--check", action="store_true", help="then compare every snapshot, and say why values differ"),
        ),
        writes=True,
        more="Importing it again adds only its new data. The file is only read.",
    ),
    Command(
        "import otlp",
        "agents:import_otlp",
        ("woodrat import otlp traces.json", "woodrat import otlp spans.pb --as support-bot"),
        what="Import OpenTelemetry spans as runs.",
        own=(argument("file", metavar="FILE", help="OTLP as protobuf, JSON or JSON lines; - for standard input"),),
        writes=True,
    ),
    Command(
        "sync",
        "exchange:sync",
        (
            "woodrat sync laptop.db",
            "woodrat sync https://ledger.example.org --pull",
        ),
        what="Exchange entries with another ledger until both agree.",
        own=(
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
    Command(
        "copy",
        "exchange:copy",
        (
            "woodrat copy --from backup.db --to then.db --through @release-3",
            "woodrat copy --from agents.db --to postgresql://app@db.example.com/agents",
        ),
        what="Copy one tenant's log to another ledger.",
        own=(
            argument("--from", dest="source", metavar="URL", required=True, help="file, backup or postgresql://…"),
            argument(
                "--to", dest="target", metavar="URL", required=True, help="new file, or a ledger without this tenant"
            ),
            argument("--through", default="now", metavar="M", help="only entries up to this moment, in whole writes"),
        ),
    ),
    Command(
        "backup create",
        "exchange:backup",
        ("woodrat backup create agents-backup.db",),
        what="Back up all tenants to a file, and check it.",
        own=(
            argument("file", metavar="F", help="file to write"),
            argument("--force", action="store_true", help="overwrite an existing file"),
        ),
        more="Others can go on writing meanwhile.",
    ),
    Command(
        "backup restore",
        "exchange:restore",
        (
            "woodrat backup restore agents-backup.db --db restored.db",
            "woodrat backup restore agents-backup.db --db recovered.db --accept 'the disk failed'",
        ),
        what="Restore all tenants of a backup into a new database.",
        own=(
            argument("file", metavar="F", help="backup to restore"),
            argument(
                "--accept",
                metavar="REASON",
                help="start although the signing keys remember longer logs: begin a new epoch for every such tenant",
            ),
        ),
        more=(
            "--db names the new file, or an empty PostgreSQL database. If the signing keys remember more than the "
            "backup holds, writes are refused until that is accepted. `woodrat copy` restores one tenant, up to any "
            "moment."
        ),
    ),
    Command(
        "backup verify",
        "exchange:verify",
        ("woodrat backup verify agents-backup.db", "woodrat backup verify agents-backup.db --deep"),
        what="Check every log in a backup.",
        own=(
            argument("file", metavar="F", help="backup to check"),
            argument("--deep", action="store_true", help="also check the search index, other indexes and vectors"),
        ),
        more="Exits with 1 if derived data is out of date, and with 5 if a log is damaged.",
    ),
)
"""The commands, in the order of the help."""

"""Facts: the commands that store observations, and read them at any moment."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import ALL, EXIT_CODE, REF_OR_ALL, REQUIRED, Command, argument

COMMANDS: tuple[Command, ...] = (
    Command(
        "store",
        "facts:store",
        (
            """woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'""",
            "woodrat store --file contacts.jsonl --observed-at 2026-01-05T09:00:00Z --as crm",
        ),
        verb="store",
        forms={
            "records": (
                argument("--json", metavar="JSON", help="records as JSON: one object, or a list of them"),
                argument(
                    "--file", metavar="F", help="file of records: JSON, or one per line (JSONL); - for standard input"
                ),
            ),
            "source": (
                argument("--source", metavar="FILE", help="file the records were read from; added as a source first"),
            ),
            "if_version": {"help": "write only if the entity has this version; also `new` or `known`"},
        },
        own=(argument("--details", action="store_true", help="print the report of every batch instead of a summary"),),
        more="One call is one transaction. A file of more than 1,000 lines is stored in batches of 1,000, "
        "each of them whole or not at all, and a summary follows.",
    ),
    Command(
        "remember",
        "facts:remember",
        ("woodrat remember 'Ana prefers calls before noon' --about 'contact/Ana Rivera'",),
        verb="remember",
        more="`woodrat related REF` lists the notes about an entity; erasing the entity erases them.",
    ),
    Command(
        "show",
        "entities:show",
        ("woodrat show 'contact/Ana Rivera'", "woodrat show 'contact/Ana Rivera' --as-of yesterday -o json"),
        verb="show",
    ),
    Command(
        "entities search",
        "entities:search",
        ('woodrat entities search --query "Ana Rivera" --entity-type contact',),
        verb="search",
        more="A single hit is shown in full, with every observation and the reason why each value won.",
    ),
    Command(
        "entities list",
        "entities:entities",
        (
            "woodrat entities list --entity-type contact --where 'city=Barcelona'",
            "woodrat entities list --all -o jsonl > known-good.jsonl",
        ),
        verb="query",
        own=(
            argument("--duplicates", action="store_true", help="list entities that share an identifying value"),
            argument(
                "--duplicates-of",
                metavar="REF",
                ids=("entity",),
                help="list entities that share an identifying value with this one",
            ),
            argument("--all", action="store_true", help="list all of them; not with --limit or --cursor"),
        ),
    ),
    Command(
        "observations list",
        "entities:observations",
        ("woodrat observations list 'contact/Ana Rivera'", "woodrat observations list -o jsonl"),
        verb="observations",
        forms={"ref": REF_OR_ALL, **ALL},
        what="List the observations of an entity, or all of them.",
    ),
    Command(
        "history",
        "entities:history",
        ("woodrat history 'contact/Ana Rivera' --field city",),
        verb="history",
        forms=ALL,
        what="Show how each observation changed an entity.",
    ),
    Command(
        "timeline",
        "entities:timeline",
        ("woodrat timeline --since 2026-01-01T00:00:00Z --until 2026-04-01T00:00:00Z",),
        verb="timeline",
        forms=ALL,
    ),
    Command(
        "blame",
        "entities:blame",
        ("woodrat blame 'contact/Ana Rivera#city'", "woodrat blame 'contact/Ana Rivera'"),
        verb="blame",
        forms={
            "ref": {"metavar": "REF[#field]", "help": "entity, or one of its fields after the last #"},
            "field": (),
        },
    ),
    Command(
        "conflicts",
        "entities:conflicts",
        ("woodrat conflicts --entity-type contact", "woodrat conflicts --arrival"),
        verb="conflicts",
        forms=ALL,
        what="List fields on which agents disagree.",
        more="Two agents disagree when their latest claims differ and neither had seen the other's.",
    ),
    Command(
        "diff",
        "entities:diff",
        ("woodrat diff --from @release-3 --to now", "woodrat diff --against known-good.jsonl --exit-code"),
        verb="diff",
        forms={"before": {"required": False}, "ref": REF_OR_ALL},
        own=(
            argument(
                "--against",
                metavar="FILE",
                help="compare with a saved state instead of --from: snapshots as `entities list --all` or `show` print "
                "them; - for standard input",
            ),
            EXIT_CODE,
        ),
    ),
    Command(
        "tag",
        "facts:tag",
        ("woodrat tag release-3", "woodrat tag before-import 128"),
        verb="tag",
        forms={"moment": {"help": "moment to name (default: now)", "default": "now"}},
    ),
    Command(
        "elements",
        "entities:elements",
        ("woodrat elements 'contact/Ana Rivera#tags'", "woodrat elements 'box/7#things' --limit 1000 -o jsonl"),
        verb="elements",
        forms={"ref": {"metavar": "REF#FIELD", "help": "the collection"}, "field": ()},
    ),
    Command(
        "correct",
        "facts:correct",
        ("woodrat correct 'contact/Ana Rivera' --set city=Girona --reason 'she told me'",),
        verb="correct",
        forms={
            "reason": REQUIRED,
            "if_version": {"help": "write only if the entity has this version; also `known`"},
        },
        more="The values override everything else until they are corrected or retracted.",
    ),
    Command(
        "retract",
        "facts:retract",
        ("woodrat retract obs_d2fjsh5trd3wfuioa2iscubxg2 --reason 'that was another Ana'",),
        verb="retract",
        forms={"reason": REQUIRED},
        more="A retraction is an observation, so it can be retracted as well.",
    ),
    Command(
        "delete",
        "facts:delete",
        ("woodrat delete 'contact/Ana Rivera' --reason 'asked to be removed'",),
        verb="delete",
    ),
    Command("restore", "facts:restore", ("woodrat restore 'contact/Ana Rivera'",), verb="restore"),
    Command(
        "relate",
        "facts:relate",
        ("woodrat relate 'contact/Ana Rivera' works_at company/Acme",),
        verb="relate",
    ),
    Command(
        "related",
        "entities:related",
        ("woodrat related 'contact/Ana Rivera' --depth 2",),
        verb="related",
        forms=ALL,
    ),
    Command(
        "merge",
        "facts:merge",
        ("woodrat merge 'contact/Ana Rivera' contact/ana@example.com",),
        verb="merge",
        more="`split` takes it back.",
    ),
    Command("split", "facts:split", ("woodrat split 'contact/Ana Rivera' contact/ana@example.com",), verb="split"),
)
"""The commands, in the order of the help."""

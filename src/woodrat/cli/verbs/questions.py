"""Questions: the commands that explain decisions, and try suppositions."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import EMBEDDER, GRAPH, Command, argument

COMMANDS: tuple[Command, ...] = (
    Command(
        "why",
        "runs:why",
        ("woodrat why loan/42",),
        verb="why",
        more="Decisions come latest first, each with its rule, its evidence and the answer.",
    ),
    Command(
        "recall",
        "explain:recall",
        (
            'woodrat recall "Why was application #42 rejected?"',
            'woodrat recall "Who may see finance data?" --threshold 0.3 --scope principal --principal bob',
        ),
        verb="recall",
        own=(EMBEDDER,),
        rows=False,
        more="Looks at runs, facts, notes and documents. When nothing passes the threshold, it lists the nearest.",
    ),
    Command(
        "lineage",
        "explain:lineage",
        ("woodrat lineage loan/42#creditScore", "woodrat lineage last --format mermaid"),
        verb="lineage",
        own=(GRAPH,),
        rows=False,
    ),
    Command(
        "impact",
        "explain:impact",
        ("woodrat impact obs_…", "woodrat impact crm --format dot"),
        verb="impact",
        forms={
            "what": (
                argument(
                    "what",
                    metavar="OBS|SRC|INT|REF|RUN|AGENT",
                    ids=("observation", "source", "interpretation", "entity", "run"),
                    help="an observation, source, interpretation, entity or run, or an agent for everything it stated",
                ),
            ),
            "agent": (),
        },
        own=(GRAPH,),
        rows=False,
        more="Lists the runs that depend on it, however many runs away, and fields and exports that depend on those.",
    ),
    Command(
        "stale",
        "explain:stale",
        ("woodrat stale --same --limit 100", "woodrat stale --follow -o jsonl"),
        verb="stale",
        own=(argument("--follow", action="store_true", help="print decisions as they become stale, until Ctrl-C"),),
    ),
    Command(
        "what-if",
        "what_if:what_if",
        (
            "woodrat what-if last --without obs_… --set income=4200",
            "woodrat what-if --all --stage classify-risk --sweep creditScore=550..650",
        ),
        verb="what_if",
        forms={
            "run": {"help": "run ids, or decisions as RUN#stage"},
            "rules": {"help": "JSON file of other rules: by stage, or a list for one stage"},
        },
        own=(argument("--all", action="store_true", help="all recorded decisions"),),
        more="Nothing is written.",
    ),
    Command(
        "bisect",
        "bisect:bisect",
        (
            "woodrat bisect loan/42 --where 'creditScore lt 600'",
            "woodrat bisect run_…#classify-risk --chosen approved --from @release-3",
        ),
        verb="bisect",
        forms={"when": ()},
        rows=False,
        more="Exits with 1 if the answer never changed.",
    ),
    Command(
        "reduce",
        "bisect:reduce",
        (
            "woodrat reduce loan/42 --where 'creditScore lt 600' --out low-score.jsonl",
            "woodrat reduce --check low-score.jsonl",
        ),
        verb="reduce",
        forms={"when": ()},
        own=(
            argument("--out", metavar="F", help="write them to this file; - for standard output"),
            argument("--check", metavar="F", help="check such a file on an empty ledger; exits with 1 if it fails"),
        ),
        rows=False,
    ),
    Command(
        "reindex",
        "explain:reindex",
        ("woodrat reindex", "woodrat reindex --embedder ollama:nomic-embed-text"),
        verb="reindex",
        own=(EMBEDDER,),
    ),
)
"""The commands, in the order of the help."""

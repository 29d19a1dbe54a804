"""Questions: the commands that explain decisions, and ask what would have been."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import CURSOR, GRAPH, LIMIT, REF, Verb, argument, whole

_EMBEDDER = argument("--embedder", metavar="E", help="ngram-v1, openai:MODEL, ollama:MODEL, … (default: ngram-v1)")
_QUESTION = (
    argument(
        "what", metavar="REF|RUN#stage", nargs="?", ids=("entity", "run"), help="an entity, or a recorded decision"
    ),
    argument(
        "--where",
        metavar="CONDITION",
        action="append",
        default=[],
        help="city=Girona, 'creditScore lt 600', or either after REF#; repeatable, all must hold",
    ),
    argument("--exists", action="store_true", help="the entity exists"),
    argument("--deleted", action="store_true", help="the entity is deleted"),
    argument(
        "--rules", metavar="F", help="JSON file of rules that decide on the entity's fields; - for standard input"
    ),
    argument("--default", metavar="BRANCH", help="what is chosen when no rule matches"),
    argument("--chosen", metavar="BRANCH", help="the branch in question (default: what the decision chose)"),
)

VERBS: tuple[Verb, ...] = (
    Verb(
        "why",
        "runs:why",
        "Explain what was decided about an entity, and why.",
        ("woodrat why loan/42",),
        (REF, LIMIT, CURSOR),
        reads=True,
        more="Decisions come latest first, each with its rule, its evidence and the answer.",
    ),
    Verb(
        "recall",
        "recall:recall",
        "Find past runs that answer a question.",
        (
            'woodrat recall "Why was application #42 rejected?"',
            'woodrat recall "Who may see finance data?" --threshold 0.3 --scope principal --principal bob',
        ),
        (
            argument("question", metavar="Q", help="the question"),
            argument(
                "--scope",
                choices=("tenant", "principal", "conversation"),
                help="whose runs to look at (default: tenant)",
            ),
            argument("--principal", metavar="TEXT", help="the principal, with --scope principal"),
            argument("--conversation", metavar="TEXT", help="the conversation, with --scope conversation"),
            argument("--k", type=whole, metavar="N", help="return at most this many runs (default: 1)"),
            argument("--threshold", metavar="X", help="lowest score to accept, -1 to 1 (default: 0.5)"),
            argument("--projection", metavar="P", help="decisions, commits, narrative or full (default: decisions)"),
            argument("--budget", type=whole, metavar="N", help="how many tokens the text may use"),
            argument("--ttl", type=whole, metavar="SECONDS", help="ignore runs older than this"),
            _EMBEDDER,
        ),
        reads=True,
        rows=False,
        more="When no run passes the threshold, it says so and lists the nearest ones.",
    ),
    Verb(
        "lineage",
        "explain:lineage",
        "Trace an answer, a decision or a value back to its sources.",
        ("woodrat lineage loan/42#creditScore", "woodrat lineage last --format mermaid"),
        (
            argument(
                "what",
                metavar="RUN|OBS|REF#field",
                ids=("run", "observation", "entity"),
                help="a run, a decision as RUN#stage, an observation or a field",
            ),
            GRAPH,
        ),
        reads=True,
        rows=False,
    ),
    Verb(
        "impact",
        "explain:impact",
        "List everything that depends on an observation or agent.",
        ("woodrat impact obs_…", "woodrat impact crm --format dot"),
        (
            argument(
                "what",
                metavar="OBS|SRC|INT|AGENT",
                ids=("observation", "source", "interpretation"),
                help="an observation, source or interpretation, or an agent for everything it stated",
            ),
            GRAPH,
        ),
        reads=True,
        rows=False,
        more="Lists the fields, reads, decisions, answers and exports that depend on it.",
    ),
    Verb(
        "stale",
        "explain:stale",
        "List decisions whose evidence has changed since.",
        ("woodrat stale --same --limit 100", "woodrat stale --follow -o jsonl"),
        (
            argument("--same", action="store_true", help="also decisions that would come out the same"),
            argument("--follow", action="store_true", help="print decisions as they become stale, until Ctrl-C"),
            LIMIT,
            CURSOR,
        ),
        reads=True,
    ),
    Verb(
        "what-if",
        "what_if:what_if",
        "Show how decisions would change with other facts or rules.",
        (
            "woodrat what-if last --without obs_… --set income=4200",
            "woodrat what-if --all --stage classify-risk --sweep creditScore=550..650",
        ),
        (
            argument("runs", metavar="RUN", nargs="*", ids=("run",), help="run ids, or decisions as RUN#stage"),
            argument("--all", action="store_true", help="all recorded decisions"),
            argument(
                "--without",
                metavar="X",
                action="append",
                default=[],
                ids=("observation", "source", "interpretation"),
                help="ignore this observation, source or interpretation; repeatable",
            ),
            argument(
                "--without-agent",
                metavar="AGENT",
                action="append",
                default=[],
                help="ignore everything an agent stated",
            ),
            argument(
                "--set", metavar="K=V", action="append", default=[], help="another value for a fact or a REF#field"
            ),
            argument("--rules", metavar="F", help="JSON file of other rules: by stage, or a list for one stage"),
            argument(
                "--threshold",
                metavar="T=V",
                action="append",
                default=[],
                help="another operand in the rules: stage.fact.operator=value",
            ),
            argument("--sweep", metavar="K=LOW..HIGH", help="try one value after another: K=LOW..HIGH:STEP or K=a,b,c"),
            argument("--stage", metavar="S", help="only decisions of this stage"),
            argument("--agent", metavar="A", help="only decisions in runs of this agent"),
            argument("--subject-type", metavar="T", help="only decisions in runs about entities of this type"),
            argument("--since", metavar="T", help="only decisions made at or after this time"),
            argument("--until", metavar="T", help="only decisions made before this time"),
            argument("--same", action="store_true", help="also list decisions that would come out the same"),
            LIMIT,
            CURSOR,
        ),
        reads=True,
        more="Nothing is written.",
    ),
    Verb(
        "bisect",
        "bisect:bisect",
        "Find the write that changed an answer.",
        (
            "woodrat bisect loan/42 --where 'creditScore lt 600'",
            "woodrat bisect run_…#classify-risk --chosen approved --from @release-3",
        ),
        (
            *_QUESTION,
            argument(
                "--from",
                dest="before",
                metavar="M",
                ids=("run",),
                help="where to start (default: before the first entry)",
            ),
            argument("--to", dest="after", metavar="M", ids=("run",), help="where to stop (default: --as-of, or now)"),
            argument("--first", action="store_true", help="check every change, to find the first such write"),
        ),
        reads=True,
        rows=False,
        more="Exits with 1 if the answer never changed.",
    ),
    Verb(
        "reduce",
        "bisect:reduce",
        "Find the fewest observations that reproduce an answer.",
        (
            "woodrat reduce loan/42 --where 'creditScore lt 600' --out low-score.jsonl",
            "woodrat reduce --check low-score.jsonl",
        ),
        (
            *_QUESTION,
            argument("--out", metavar="F", help="write them to this file; - for standard output"),
            argument("--check", metavar="F", help="check such a file on an empty ledger; exits with 1 if it fails"),
            argument("--folds", type=whole, metavar="N", help="try at most this many sets (default: 10000)"),
        ),
        reads=True,
        rows=False,
    ),
    Verb(
        "reindex",
        "recall:reindex",
        "Rebuild the index that recall searches.",
        ("woodrat reindex", "woodrat reindex --embedder ollama:nomic-embed-text"),
        (_EMBEDDER,),
    ),
)
"""The commands, in the order of the help."""

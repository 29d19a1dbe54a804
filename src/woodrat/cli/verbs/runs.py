"""Runs: the commands about what agents read, called, decided and answered."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import (
    AGENT,
    CURSOR,
    FUNCTION,
    LIMIT,
    REASON,
    RUN,
    SINCE,
    UNTIL,
    Verb,
    argument,
    whole,
)

VERBS: tuple[Verb, ...] = (
    Verb(
        "runs list",
        "runs:runs",
        "List runs, the latest first.",
        ("woodrat runs list --subject loan/42", "woodrat runs list --agent loan-officer --since 2026-01-05T00:00:00Z"),
        (
            AGENT,
            argument("--subject", metavar="REF", ids=("entity",), help="only runs about this entity"),
            argument("--conversation", metavar="TEXT", help="only runs of this conversation"),
            argument("--principal", metavar="TEXT", help="only runs on behalf of this principal"),
            argument("--session", metavar="REF", help="only runs of this agent_session"),
            argument("--pipeline", metavar="REF", help="only runs of this pipeline, and runs they started"),
            SINCE,
            UNTIL,
            argument(
                "--status", metavar="S", help="only runs with this status: done, error, cancelled, interrupted, running"
            ),
            argument("--verdict", metavar="V", help="only runs with this verdict"),
            LIMIT,
            CURSOR,
        ),
        reads=True,
    ),
    Verb(
        "runs show",
        "runs:run",
        "Show what a run read, called, decided, wrote and answered.",
        ("woodrat runs show last", "woodrat runs show run_… --format snapshot > run.json"),
        (
            RUN,
            argument(
                "--projection", metavar="P", help="print this part as text: decisions, commits, narrative or full"
            ),
            argument("--budget", type=whole, metavar="N", help="how many tokens the projection may use"),
            argument("--format", choices=("snapshot",), help="print the run in this format, for other tools to read"),
        ),
        reads=True,
    ),
    Verb(
        "runs diff",
        "runs_diff:diff",
        "Compare two runs: where they diverge, and why.",
        ("woodrat runs diff run_… run_…", "woodrat runs diff monday.json tuesday.json --exit-code"),
        (
            argument("first", metavar="RUN", ids=("run",), help="run id, or a file with a trajectory"),
            argument("second", metavar="RUN", ids=("run",), help="run id, or a file with a trajectory"),
            argument("--other-db", metavar="URL", help="database of the second run (default: the same)"),
            argument("--other-tenant", metavar="TENANT", help="tenant of the second run (default: the same)"),
            argument("--exit-code", action="store_true", help="exit with 1 when they differ"),
        ),
        reads=True,
        rows=False,
    ),
    Verb(
        "runs group",
        "runs_diff:group",
        "Group runs by where they diverge from the majority.",
        ("woodrat runs group --same-inputs-as last", "woodrat runs group run_… run_… run_…"),
        (
            argument("runs", metavar="RUN", nargs="*", ids=("run",), help="run ids, or files with trajectories"),
            argument("--same-inputs-as", metavar="RUN", ids=("run",), help="runs with the same question and inputs"),
            argument("--query", metavar="Q", help="runs with this question"),
            argument("--subject", metavar="REF", ids=("entity",), help="runs about this entity"),
            AGENT,
            SINCE,
            UNTIL,
            argument("--exit-code", action="store_true", help="exit with 1 when they differ"),
        ),
        reads=True,
        rows=False,
    ),
    Verb(
        "runs import",
        "runs:record",
        "Import runs that other tools recorded.",
        ("woodrat runs import trace.json", "woodrat runs import - --as loan-officer"),
        (argument("file", metavar="FILE", help="JSON, or one object per line (JSONL); - for standard input"),),
        writes=True,
        more="The file holds snapshots, trajectories, runs as steps, or entries. Importing it twice changes nothing.",
    ),
    Verb(
        "runs judge",
        "runs:judge",
        "Judge a run: good, bad, or a word of your own.",
        (
            "woodrat runs judge run_… bad --preferred 'Rejected: 580 is below 600.' --by ann",
            "woodrat runs judge run_… --against @known-good",
        ),
        (
            RUN,
            argument(
                "verdict", metavar="good|bad", nargs="?", help="the verdict; with --against alone it is worked out"
            ),
            argument("--preferred", metavar="ANSWER", help="a better answer, as JSON or text"),
            argument("--by", metavar="WHO", help="who judges (default: the agent)"),
            REASON,
            argument("--score", metavar="N", help="the judgement as a number"),
            argument("--against", metavar="M", help="moment whose state is known to be good, to compare what it wrote"),
            argument("--about", metavar="SPAN", help="judge this step alone, named by its span"),
        ),
        writes=True,
    ),
    Verb(
        "runs resume",
        "runs:resume",
        "Continue an interrupted run.",
        ("woodrat runs resume run_… --with agents.loans:approve --as loan-officer",),
        (
            RUN,
            FUNCTION,
            argument(
                "--on-unknown",
                choices=("fail", "retry"),
                default="fail",
                help="what to do about a `once` tool that started and never finished (default: fail)",
            ),
        ),
        writes=True,
        more="Recorded steps are answered from the log; from the first missing step on, it runs for real.",
    ),
    Verb(
        "runs replay",
        "replay:replay",
        "Run the agent again on recorded runs, and compare.",
        (
            "woodrat runs replay last --with agents.loans:approve",
            "woodrat runs replay --since 2026-01-05T00:00:00Z --agent loan-officer --with agents.loans:approve",
        ),
        (
            argument("runs", metavar="RUN", nargs="*", ids=("run",), help="run ids"),
            FUNCTION,
            SINCE,
            AGENT,
            argument("--live", metavar="NAME", action="append", default=[], help="tool or model to call for real"),
            argument("--steps", type=whole, metavar="N", help="stop a run after this many steps (default: 10000)"),
            argument("--jobs", type=whole, metavar="N", help="how many processes work at the same time"),
            argument("--timeout", metavar="S", help="stop a run after this many seconds"),
        ),
        more="Exits with 1 if any run differs.",
    ),
)
"""The commands, in the order of the help."""

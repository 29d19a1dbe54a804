"""Runs: the commands about the reads, calls, decisions and answers of agents."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import FUNCTION, Command, argument, whole

_EXIT_CODE = argument("--exit-code", action="store_true", help="exit with 1 when they differ")
_RUN_OR_FILE = {"help": "run id, or a file with a trajectory (default: the last two runs of an agent)"}

COMMANDS: tuple[Command, ...] = (
    Command(
        "runs list",
        "runs:runs",
        ("woodrat runs list --subject loan/42", "woodrat runs list --agent loan-officer --since 2026-01-05T00:00:00Z"),
        verb="runs.list",
    ),
    Command(
        "runs show",
        "runs:run",
        ("woodrat runs show last", "woodrat runs show run_… --format snapshot > run.json"),
        verb="runs.show",
        own=(
            argument(
                "--projection", metavar="P", help="print this part as text: decisions, commits, narrative or full"
            ),
            argument("--step", type=whole, metavar="N", help="print this step whole: prompt, arguments and result"),
            argument("--budget", type=whole, metavar="N", help="most tokens of the projection"),
            argument("--format", choices=("snapshot",), help="print the run in this format, for other tools to read"),
        ),
    ),
    Command(
        "runs diff",
        "runs_diff:diff",
        ("woodrat runs diff", "woodrat runs diff monday.json tuesday.json --exit-code"),
        verb="runs.diff",
        forms={"first": _RUN_OR_FILE, "second": _RUN_OR_FILE, "skip": (), "limit": (), "differing": ()},
        own=(
            argument("--other-db", metavar="URL", help="database of the second run (default: the same)"),
            argument("--other-tenant", metavar="TENANT", help="tenant of the second run (default: the same)"),
            _EXIT_CODE,
        ),
        rows=False,
    ),
    Command(
        "runs group",
        "runs_diff:group",
        ("woodrat runs group --attribute task=17", "woodrat runs group run_… run_… run_…"),
        verb="runs.group",
        forms={"runs": {"help": "run ids, or files with trajectories"}},
        own=(_EXIT_CODE,),
        rows=False,
    ),
    Command(
        "runs import",
        "runs:record",
        ("woodrat runs import trace.json exports/", "woodrat runs import - --as loan-officer"),
        verb="runs.import_",
        forms={"document": {"help": "files or folders: JSON, JSONL, CSV, or OTLP in protobuf; - for standard input"}},
        more=(
            "A file contains a recording of another tool, or an export of runs. Importing it twice changes nothing. "
            "If anything is wrong with any file, nothing is recorded."
        ),
    ),
    Command(
        "runs judge",
        "runs:judge",
        (
            "woodrat runs judge run_… bad --preferred 'Rejected: 580 is below 600.' --by ann",
            "woodrat runs judge run_… --against @known-good",
        ),
        verb="runs.judge",
        forms={
            "verdict": {"help": "the verdict; default with --against: computed"},
            "against": {"help": "moment with a state known to be good, to compare the run's writes with"},
        },
    ),
    Command(
        "runs resume",
        "runs:resume",
        (
            "woodrat runs resume run_… --with agents.loans:approve --as loan-officer",
            "woodrat runs resume last --with agents.loans:approve --on-unknown retry",
        ),
        what="Continue an interrupted run.",
        own=(
            argument("run", metavar="RUN", ids=("run", "last"), help="id of the run; `last` is the latest run"),
            FUNCTION,
            argument(
                "--on-unknown",
                choices=("fail", "retry"),
                default="fail",
                help="handling of a `once` tool that started and never finished (default: fail)",
            ),
        ),
        writes=True,
        more=(
            "Recorded steps are answered from the log; from the first missing step on, it runs for real. "
            "A refused resume changes nothing."
        ),
    ),
    Command(
        "runs fork",
        "runs:fork",
        (
            "woodrat runs fork run_… --at 2 --set result.score=580 --with agents.loans:approve",
            "woodrat runs fork run_… --at 0 --set inputs.amount=9000 --with agents.loans:approve --tools recorded",
        ),
        what="Run again from a step, with something edited there.",
        own=(
            argument("run", metavar="RUN", ids=("run", "last"), help="id of the run; `last` is the latest run"),
            argument("--at", required=True, metavar="STEP", help="number of the step to edit, or its span"),
            argument(
                "--set",
                dest="edits",
                action="append",
                required=True,
                metavar="PATH=VALUE",
                help="the edit: inputs.NAME, query, result, error, response, prompt, fields.NAME (repeatable)",
            ),
            FUNCTION,
            argument(
                "--tools",
                choices=("live", "recorded"),
                default="live",
                help="after the edit, call tools, or answer them from the recording only (default: live)",
            ),
        ),
        writes=True,
        more="Up to the step the recording answers. Exits with 1 if the fork stops or ends in an error.",
    ),
    Command(
        "runs replay",
        "replay:replay",
        (
            "woodrat runs replay last --with agents.loans:approve",
            "woodrat runs replay --since 2026-01-05T00:00:00Z --agent loan-officer --with agents.loans:approve",
        ),
        what="Run the agent again on recorded runs, and compare.",
        own=(
            argument("runs", metavar="RUN", nargs="*", ids=("run",), help="run ids"),
            FUNCTION,
            argument("--since", metavar="T", help="only runs that started at or after this time"),
            argument("--agent", metavar="A", help="only runs of this agent"),
            argument("--live", metavar="NAME", action="append", default=[], help="tool or model to call for real"),
            argument("--steps", type=whole, metavar="N", help="stop a run after this many steps (default: 10000)"),
            argument("--jobs", type=whole, metavar="N", help="number of parallel processes"),
            argument("--timeout", metavar="S", help="stop a run after this many seconds"),
        ),
        more="Exits with 1 if any run differs.",
    ),
)
"""The commands, in the order of the help."""

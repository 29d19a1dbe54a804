"""Replay: the command that runs an agent's function again on recorded runs."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from woodrat.cli import inputs
from woodrat.cli.command import READ, CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, RED, Paper
from woodrat.errors import Fault, Refused
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.replay.result import ReplayedRun, TextDifference

SHOWN_MAX = 100
"""Most differing runs that are printed."""
DIFFS_MAX = 5
"""Most of these whose differing words are printed."""


def replay(call: Invocation) -> CommandResult:
    """Run an agent's function again on recorded runs, and compare."""
    from woodrat.replay import verbs as recorded

    given = call.given
    asked = {name: item for name, item in (("since", given.since), ("agent", given.agent)) if item is not None}
    if bool(given.runs) == bool(asked):
        problem = "runs cannot be combined with --since or --agent" if given.runs else "no runs to replay"
        remedy = "Name runs, or choose them with --since or --agent."
        raise Refused([Fault("RUN", problem, remedy)], recorded.NOTHING_REPLAYED)
    agent = inputs.function(given.function, "--with")
    ledger = call.ledger(READ)
    runs = given.runs or recorded.outer_runs(ledger.context, **asked)
    # the agent's own output must not mix with the answer
    with redirect_stdout(sys.stderr), bar("Replaying", "runs") as tell:
        found = recorded.replay(
            ledger.run_log(),
            runs,
            agent,
            live=given.live,
            progress=tell,
            steps_max=recorded.STEPS_MAX if given.steps is None else given.steps,
            jobs=given.jobs,
            timeout_seconds=None if given.timeout is None else _seconds(given.timeout),
            function=given.function,
        )

    def text(paper: Paper) -> None:
        differing = found.differing
        if differing:
            cells = [
                (run.subject or "", "" if run.divergence is None else str(run.divergence), run.run)
                for run in differing[:SHOWN_MAX]
            ]
            paper.table(("SUBJECT", "FIRST DIVERGENCE", "ID"), cells)
            for run in [run for run in differing if _difference(run) is not None][:DIFFS_MAX]:
                _show_difference(paper, run)
        if len(differing) > SHOWN_MAX:
            paper.line(f"… and {len(differing) - SHOWN_MAX} more; -o json lists them", DIM)
        paper.line(found.summary(), GREEN if found.same else RED)

    code = wire.DONE if found.same else wire.FOUND_SOMETHING
    return CommandResult(found.to_json(), text, [run.to_json() for run in found.runs], code=code)


def _difference(run: ReplayedRun) -> TextDifference | None:
    return None if run.divergence is None else run.divergence.difference


def _show_difference(paper: Paper, run: ReplayedRun) -> None:
    """Show the first words that differ, as recorded and as they came now, below each other."""
    words = _difference(run)
    assert words is not None and run.divergence is not None
    place = ", ".join([run.divergence.what, *words.places])
    paper.line()
    paper.line(f"{run.run}: {place}", DIM)
    for mark, side, style in (("-", words.old, RED), ("+", words.new, GREEN)):
        if side is not None:
            for line in side.splitlines() or [""]:
                paper.line(f"{mark} {line}", style)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused([Fault("--timeout", f'expected seconds, got "{text}"', "Use a number such as 2.5.")]) from None

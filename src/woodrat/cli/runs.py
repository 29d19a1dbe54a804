"""Runs: the commands that list, show, import, judge, resume and export runs, and explain decisions."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs, run_page
from woodrat.cli.command import CREATE, UPDATE, CommandResult, Invocation, at_moment
from woodrat.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Paper, time, value
from woodrat.errors import Fault, Refused, Unavailable
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.runs.reader.why import Reason
    from woodrat.runs.summary import RunSummary
    from woodrat.training.exports import Exported

NO_READ = "Nothing was read."
NOT_RECORDED = "Nothing was recorded."
SHOWN_LEFT_OUT = 20
"""Most runs excluded from an export that are printed."""


def refuse_valid_at(call: Invocation) -> None:
    """Refuse `--valid-at`, which runs do not have."""
    given = call.given
    if given.valid_at is not None:
        problem = "--valid-at does not apply to runs: they happened when they happened"
        raise Refused([Fault(f"woodrat {given.command.words}", problem, "Use --as-of.")], NO_READ)


def runs_of(call: Invocation, *, update: bool = False) -> Past:
    """Return the ledger, opened for writing if possible, so that its index of runs can catch up.

    The past is opened read-only, unless the result is to be recorded (`update`).
    """
    refuse_valid_at(call)
    given = call.given
    if given.as_of is None or update:
        try:
            ledger = call.ledger(UPDATE)
            return ledger if given.as_of is None else at_moment(ledger, given.as_of, "--as-of")
        except Unavailable:
            pass  # a file that cannot be written can still be read
    return call.past()


def runs(call: Invocation) -> CommandResult:
    """List runs, the latest first."""
    past = runs_of(call)
    page = call.ask(past)

    def text(paper: Paper) -> None:
        if not page.items:
            paper.line("No runs.")
            return
        cells = [
            (
                record.id,
                time(record.started_at),
                _agents(record),
                record.subject or "",
                record.status,
                _decided(record),
                record.verdict or "",
                (record.query or "")
                + ("" if record.forked_from is None else f" (fork of {record.forked_from.get('run')})"),
            )
            for record in page.items
        ]
        styles = [run_page.STYLES.get(record.status, "") for record in page.items]
        heads = ("RUN", "STARTED AT", "AGENT", "SUBJECT", "STATUS", "DECIDED", "VERDICT", "QUESTION")
        paper.table(heads, cells, styles)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    rows = [record.to_json() for record in page.items]
    note = None if page.cursor is None else f"More: add --cursor {page.cursor}"
    return CommandResult(wire.listing(rows, page.position, page.cursor), text, rows, note=note)


def _decided(record: RunSummary) -> str:
    """Return the decisions of a run, in a word each."""
    more = record.counts.decisions - len(record.choices)
    return "; ".join([*map(run_page.choice, record.choices), *([f"and {more} more"] if more else [])])


def _agents(record: RunSummary) -> str:
    """Return the owner of a run and the names of the agents inside; --agent finds it by each of them."""
    inside = [name for name in record.names if name != record.agent]
    return (record.agent or "") + (f" ({', '.join(inside)})" if inside else "")


def run(call: Invocation) -> CommandResult:
    """Show one run."""
    given = call.given
    record = call.ask(runs_of(call))
    if given.step is not None:
        return run_page.step_answer(record, given.step)
    if given.format is not None:
        wrong = [f"--{name}" for name in ("projection", "budget") if getattr(given, name) is not None]
        if wrong:
            problem = "--format snapshot prints the whole run"
            raise Refused([Fault(name, problem, "Leave out one of the two.") for name in wrong], NO_READ)
        snapshot = record.snapshot()

        def whole(paper: Paper) -> None:
            for line in json.dumps(snapshot, indent=2).split("\n"):
                paper.line(line)

        return CommandResult(snapshot, whole)
    if given.projection is not None:
        from woodrat.runs.projection import project
        from woodrat.runs.words import tokens

        told = project(record, given.projection, given.budget)
        answer = {"run": record.id, "projection": given.projection, "text": told, "tokens": tokens(told)}

        def lines(paper: Paper) -> None:
            for line in told.split("\n"):
                paper.line(line)

        return CommandResult(answer, lines)
    if given.budget is not None:
        raise Refused([Fault("--budget", "it needs --projection", "Add --projection decisions.")], NO_READ)
    return CommandResult(record.to_json(), lambda paper: run_page.print_run(paper, record))


def record(call: Invocation) -> CommandResult:
    """Record runs that happened elsewhere."""
    files = call.given.document
    if "-" in files and len(files) > 1:
        problem = "standard input cannot be combined with other files"
        raise Refused([Fault("FILE", problem, "Name files, or - alone.")], NOT_RECORDED)
    inputs.check_readable([file for file in files if file != "-"], "FILE", NOT_RECORDED)
    source: Any = sys.stdin.buffer if files == ["-"] else [Path(file) for file in files]
    found = call.ask(call.ledger(CREATE), document=source)

    def text(paper: Paper) -> None:
        for id in found:
            paper.line(f"Imported {id}.", GREEN)

    return CommandResult(wire.listing(found), text)


def judge(call: Invocation) -> CommandResult:
    """Judge a run, or compare its writes with a state known to be good."""
    given = call.given
    ledger = call.ledger(UPDATE)
    if given.verdict is None:
        if given.against is None:
            problem = "there is neither a verdict nor a moment to compare with"
            raise Refused([Fault("good|bad", problem, "Add good or bad after the run, or --against a tag.")])
        further = {"--preferred": given.preferred, "--by": given.by, "--score": given.score, "--about": given.about}
        for option, stated in further.items():
            if stated is not None:
                problem = "the comparison itself decides this"
                raise Refused([Fault(option, problem, "Add good or bad after the run, or leave it out.")])
        ledger.runs.evaluate(given.run, against=given.against, reason=given.reason)
    else:
        call.ask(ledger)
    judgement = ledger.runs.show(given.run).judgements[-1]

    def text(paper: Paper) -> None:
        by = f" by {judgement.by}" if judgement.by is not None else ""
        paper.line(f"{given.run} was judged {judgement.verdict}{by}.", GREEN)
        if judgement.evaluation is not None:
            paper.line(f"  {judgement.evaluation}; `woodrat show` shows it", DIM)

    return CommandResult({"run": given.run, **judgement.to_json()}, text)


def resume(call: Invocation) -> CommandResult:
    """Carry on an interrupted run with the agent's function."""
    given = call.given
    agent = inputs.function(given.function, "--with")
    ledger = call.ledger(UPDATE)
    # the agent's own output must not mix with the answer
    with redirect_stdout(sys.stderr):
        found = ledger.runs.resume(given.run, agent, on_unknown=given.on_unknown)

    def text(paper: Paper) -> None:
        paper.line(f"{found.run} is {found.status}.", GREEN if found.status == "done" else RED)
        paper.line(f"  {found.from_log} steps were answered from the log", DIM)
        if found.unused:
            paper.line(f"  {found.unused} recorded steps were not requested again; did the agent change?", YELLOW)
        if found.answer is not None:
            paper.line(f"  answer: {value(found.answer)}")

    return CommandResult(found.to_json(), text)


def fork(call: Invocation) -> CommandResult:
    """Run again from a step of a recorded run, with something edited there."""
    given = call.given
    agent = inputs.function(given.function, "--with")
    at = int(given.at) if given.at.isascii() and given.at.isdigit() else given.at
    edits = inputs.once(given.edits, "--set")
    ledger = call.ledger(UPDATE)
    # What the agent prints must not end up in the answer.
    with redirect_stdout(sys.stderr):
        found = ledger.runs.fork(given.run, agent, at=at, set=edits, tools=given.tools)
    done = found.stopped is None and found.status == "done"

    def text(paper: Paper) -> None:
        paper.line(f"{found.run} is {found.status}.", GREEN if done else RED)
        paper.line(f"  {run_page.fork_words({**found.to_json(), 'run': found.parent})}")
        paper.line(f"  {found.from_log} steps were answered from the recording", DIM)
        if found.stopped is not None:
            paper.line(f"  stopped: {found.stopped}", YELLOW)
        if found.answer is not None:
            paper.line(f"  answer: {value(found.answer)}")
        paper.line(f"  woodrat runs diff {found.parent} {found.run}", DIM)

    return CommandResult(found.to_json(), text, code=wire.DONE if done else wire.FOUND_SOMETHING)


def why(call: Invocation) -> CommandResult:
    """Show the decisions about an entity, and their evidence."""
    given = call.given
    past = runs_of(call)
    page = call.ask(past)

    def text(paper: Paper) -> None:
        if not page.items:
            about = given.ref if page.matched is None else page.matched.entity
            paper.line(f"No decision about {about} is recorded.")
        for reason in page.items:
            _reason(paper, reason)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    rows = [reason.to_json() for reason in page.items]
    note = None if page.cursor is None else f"More: add --cursor {page.cursor}"
    return CommandResult(wire.listing(rows, page.position, page.cursor), text, rows, note=note)


def _reason(paper: Paper, reason: Reason) -> None:
    decision = reason.decision
    paper.line(f"{run_page.choice(decision)} {decision.by(value)}", BOLD)
    who = f"by {reason.agent}" if reason.agent is not None else "by an agent"
    verdict = f", judged {reason.verdict}" if reason.verdict is not None else ""
    where = f"in {paper.id(reason.run)}, {reason.status}{verdict}; position {reason.position}"
    paper.line(f"  decided at {time(reason.decided_at)} {who} {where}", DIM)
    if reason.query is not None:
        paper.line(f"  question: {reason.query}")
    run_page.print_decision(paper, decision)
    if reason.answer is not None:
        paper.line(f"  answer: {value(reason.answer)}", GREEN)


def export_training(call: Invocation) -> CommandResult:
    """Write rows for training a model."""
    from woodrat.cli.progress import bar

    given = call.given
    past = runs_of(call, update=True)
    to_output = given.out == "-"
    with bar("Exporting", "entries") as tell:
        found = call.ask(
            past,
            out=sys.stdout if to_output else given.out,
            metadata=not given.no_metadata,
            record=not given.no_record,
            progress=tell,
        )
    if to_output:
        # the rows are the output; the summary goes to standard error
        sys.stdout.flush()
        sys.stderr.write(_summary(found) + "\n")
        return CommandResult(None, lambda paper: None, plain=True)

    def text(paper: Paper) -> None:
        paper.line(_summary(found), GREEN if found.rows else YELLOW)
        for item in found.left_out[:SHOWN_LEFT_OUT]:
            named = f": {', '.join(map(paper.id, item.observations))}" if item.observations else ""
            paper.line(f"  excluded {paper.id(item.run)}: {item.reason}{named}", DIM)
        if found.left_out_count > SHOWN_LEFT_OUT:
            paper.line(f"  … and {found.left_out_count - SHOWN_LEFT_OUT} more; -o json lists them", DIM)

    return CommandResult(found.to_json(), text)


def _summary(found: Exported) -> str:
    where = f" to {found.out}" if found.out is not None else ""
    return f"Wrote {found.rows} rows of {found.runs} runs{where}; excluded {found.left_out_count} runs."

"""Runs: the commands that list, show, import, judge, resume and export runs, and explain decisions."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.command import CREATE, UPDATE, Answer, Call, at_moment
from woodrat.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Paper, comparison, fields, time, value
from woodrat.errors import Fault, Refused, Unavailable
from woodrat.server import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.api.past import Past
    from woodrat.runs.evidence import Evidence
    from woodrat.runs.margin import Margin
    from woodrat.runs.reader import Reason
    from woodrat.runs.record import RunRecord
    from woodrat.runs.steps import Decision, ModelCall, Part
    from woodrat.training.exports import Exported

NO_READ = "Nothing was read."
NOT_RECORDED = "Nothing was recorded."
SHOWN_LEFT_OUT = 20
"""How many of the runs that an export left out are printed."""


def refuse_valid_at(call: Call) -> None:
    """Refuse `--valid-at`, which runs do not have."""
    given = call.given
    if given.valid_at is not None:
        problem = "--valid-at does not apply to runs: they happened when they happened"
        raise Refused([Fault(f"woodrat {given.command.words}", problem, "Use --as-of.")], NO_READ)


def runs_of(call: Call, *, update: bool = False) -> Past:
    """Return the ledger, opened so that its index of runs can be brought up to date where that is possible.

    The past is opened for reading alone, unless what becomes of it is to be recorded (`update`).
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


def runs(call: Call) -> Answer:
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
                "; ".join(_choice(decision) for decision in record.decisions),
                record.verdict or "",
                (record.query or "")
                + ("" if record.forked_from is None else f" (fork of {record.forked_from.get('run')})"),
            )
            for record in page.items
        ]
        styles = [_STYLES.get(record.status, "") for record in page.items]
        heads = ("RUN", "STARTED AT", "AGENT", "SUBJECT", "STATUS", "DECIDED", "VERDICT", "QUESTION")
        paper.table(heads, cells, styles)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    rows = [record.to_json() for record in page.items]
    note = None if page.cursor is None else f"More: add --cursor {page.cursor}"
    return Answer(wire.listing(rows, page.position, page.cursor), text, rows, note=note)


_STYLES = {"error": RED, "interrupted": YELLOW, "cancelled": YELLOW}


def _agents(record: RunRecord) -> str:
    """Return whose run it is, and what agents inside call themselves: --agent finds it by each of these names."""
    inside = [name for name in record.names if name != record.agent]
    return (record.agent or "") + (f" ({', '.join(inside)})" if inside else "")


def _choice(decision: Decision) -> str:
    return f"{decision.stage}={value(decision.chosen)}"


def run(call: Call) -> Answer:
    """Show one run."""
    given = call.given
    record = call.ask(runs_of(call))
    if given.step is not None:
        return _whole_step(record, given.step)
    if given.format is not None:
        wrong = [f"--{name}" for name in ("projection", "budget") if getattr(given, name) is not None]
        if wrong:
            problem = "--format snapshot prints the whole run"
            raise Refused([Fault(name, problem, "Leave out one of the two.") for name in wrong], NO_READ)
        snapshot = record.snapshot()

        def whole(paper: Paper) -> None:
            for line in json.dumps(snapshot, indent=2).split("\n"):
                paper.line(line)

        return Answer(snapshot, whole)
    if given.projection is not None:
        from woodrat.runs.projection import project
        from woodrat.runs.words import tokens

        told = project(record, given.projection, given.budget)
        answer = {"run": record.id, "projection": given.projection, "text": told, "tokens": tokens(told)}

        def lines(paper: Paper) -> None:
            for line in told.split("\n"):
                paper.line(line)

        return Answer(answer, lines)
    if given.budget is not None:
        raise Refused([Fault("--budget", "it needs --projection", "Add --projection decisions.")], NO_READ)
    return Answer(record.to_json(), lambda paper: _record(paper, record))


def _whole_step(record: RunRecord, number: int) -> Answer:
    """Return one step of a run with everything that is recorded of it, counted from 1 as `runs show` does."""
    if not 1 <= number <= len(record.steps):
        problem = f"{record.id} has no step {number}; it has {len(record.steps)}"
        raise Refused([Fault("--step", problem, "`woodrat runs show RUN` numbers them.")], NO_READ)
    step = record.steps[number - 1]
    told = step.to_json()

    def text(paper: Paper) -> None:
        kind, what = _step(step)
        paper.line(f"Step {number}, {kind}: {what}", BOLD)
        for name, item in told.items():
            if item not in (None, "", {}, []):
                paper.line(f"  {name}:")
                spelled = item if isinstance(item, str) else json.dumps(item, indent=2, ensure_ascii=False)
                for line in spelled.split("\n"):
                    paper.line(f"    {line}")

    return Answer({"run": record.id, "number": number, **told}, text)


def _record(paper: Paper, r: RunRecord) -> None:
    paper.line(r.query if r.query is not None else "(no question is recorded)", BOLD)
    paper.line(f"  {r.id}, {r.status}", _STYLES.get(r.status, DIM))
    about = {
        "agent": r.agent,
        "subject": r.subject,
        "principal": r.principal,
        "conversation": r.conversation,
        "session": r.session,
        "pipeline": r.pipeline,
        "parent": None if r.parent is None else r.parent.get("run"),
        "fork of": None if r.forked_from is None else forked_from(r.forked_from).removeprefix("fork of "),
        "code": r.code,
        "started at": time(r.started_at),
        "ended at": time(r.ended_at),
        "took": None if r.duration_ms is None else f"{r.duration_ms} ms",
        "tokens": f"{r.input_tokens} in, {r.output_tokens} out" if r.input_tokens or r.output_tokens else None,
        "basis": None if r.basis is None else f"position {r.basis.get('position')}",
        "inputs": fields(r.inputs) or None,
        "imported": "from a snapshot: results and responses are previews" if r.previews_only else None,
    }
    for name, item in about.items():
        if item:
            paper.line(f"  {name:<12} {item}")
    for used in r.in_force:
        paper.line(f"  {'in force':<12} {used['type']} {used.get('entity')}, version {used.get('version')}")
    for problem in r.problems:
        paper.line(f"  problem: {problem}", YELLOW)
    if r.erased:
        paper.line(f"  erased: entries {', '.join(map(str, r.erased))}", YELLOW)
    if r.steps:
        paper.line("Steps", BOLD)
        rows = [(str(number), time(step.started_at), *_step(step)) for number, step in enumerate(r.steps, 1)]
        paper.table(("STEP", "AT", "KIND", "WHAT"), rows)
    if r.decisions:
        paper.line("Decisions", BOLD)
        for decision in r.decisions:
            _decision(paper, decision)
    if r.reads:
        paper.line("Reads", BOLD)
        reads = [
            (
                str(read.position),
                time(read.started_at),
                read.entity or read.within or "",
                "" if read.as_of is None else str(read.as_of),
                _read_values(paper, read),
            )
            for read in r.reads
        ]
        paper.table(("POSITION", "AT", "ENTITY", "AS OF", "VALUES"), reads)
    if r.tool_calls:
        paper.line("Tool calls", BOLD)
        calls = [
            (
                str(call.position),
                time(call.started_at),
                call.name,
                value(call.args),
                value(call.error) if call.errored else "(no result recorded)" if call.begun else call.preview or "",
            )
            for call in r.tool_calls
        ]
        styles = [RED if call.errored else YELLOW if call.begun else "" for call in r.tool_calls]
        paper.table(("POSITION", "AT", "TOOL", "ARGUMENTS", "RESULT"), calls, styles)
    if r.models:
        paper.line("Models", BOLD)
        models = [
            (
                str(call.position),
                time(call.started_at),
                call.model or "",
                f"{call.input_tokens}/{call.output_tokens}",
                value(call.error) if call.errored else _answered(call),
            )
            for call in r.models
        ]
        paper.table(("POSITION", "AT", "MODEL", "TOKENS", "RESPONSE"), models)
    if r.writes:
        paper.line("Writes", BOLD)
        writes = [
            ("" if w.position is None else str(w.position), w.entity, w.op, fields(w.fields), w.observation)
            for w in r.writes
        ]
        paper.table(("POSITION", "ENTITY", "OP", "FIELDS", "OBSERVATION"), writes)
    for note in r.notes:
        paper.line(f"Noted at {time(note.started_at)}: {note.text}")
    for judgement in r.judgements:
        by = f" by {judgement.by}" if judgement.by is not None else ""
        why = f": {judgement.reason}" if judgement.reason is not None else ""
        better = f"; better: {value(judgement.preferred)}" if judgement.preferred is not None else ""
        against = f", against {judgement.against}" if judgement.against is not None else ""
        paper.line(f"Judged {judgement.verdict}{by} at {time(judgement.started_at)}{against}{why}{better}")
    if r.error is not None:
        paper.line(f"Error: {value(r.error)}", RED)
    if r.answer is not None:
        paper.line(f"Answer: {value(r.answer)}", GREEN)


def _step(step: Part) -> tuple[str, str]:
    """Return the kind of a step, and in a line what happened in it."""
    from woodrat.runs.evidence import call_words
    from woodrat.runs.steps import Decision, ModelCall, Note, Read, ToolCall

    match step:
        case Read():
            return "read", f"{step.entity or step.within or ''}: {fields(step.values) if step.found else 'not found'}"
        case ToolCall():
            came = value(step.error) if step.errored else "no result recorded" if step.begun else step.preview or ""
            return "tool", f"{call_words(step)} → {came}"
        case ModelCall():
            return "model", f"{step.model or ''} → {value(step.error) if step.errored else _answered(step)}"
        case Decision():
            return "decision", f"{_choice(step)} {step.by(value)}"
        case Note():
            return "note", step.text
    return "judgement", str(getattr(step, "verdict", ""))


def _answered(call: ModelCall) -> str:
    """Return what a model answered: its words, the tools it asked for, or whatever it is."""
    from woodrat.runs import messages, steps

    return "" if call.response is None else steps.preview(messages.gist(call.response))


def _decision(paper: Paper, decision: Decision) -> None:
    from woodrat.runs import operators

    paper.line(f"  {_choice(decision)} {decision.by(value)}")
    paper.line(f"    decided at {time(decision.started_at)}, position {decision.position}", DIM)
    if decision.evidence:
        paper.line(f"    evidence: {fields(decision.evidence)}")
    for rule in decision.rules:
        name = value(rule.label if rule.label is not None else rule.predicate or rule.chosen)
        came = "matched" if rule.matched else "could not be decided" if rule.unknown else "did not match"
        paper.line(f"    rule {name} {came}", GREEN if rule.matched else YELLOW if rule.unknown else DIM)
        for c in rule.conditions:
            wrong = f" ({value(c.error)})" if c.error is not None else ""
            if c.error == operators.NO_FACT:
                compared = f"{c.op} {value(c.operand)}: unknown"
            else:
                compared = comparison(c.actual, c.op, c.operand, c.result) if c.op else f"{value(c.actual)} was read"
            paper.line(f"      {c.key}: {compared}, {_origin(paper, c.origin)}{wrong}")
        if rule.error is not None:
            paper.line(f"      error: {value(rule.error)}")
    if decision.rationale is not None:
        paper.line(f"    rationale: {decision.rationale}")
    if decision.margin is not None:
        _margin(paper, decision.margin)


def _margin(paper: Paper, margin: Margin) -> None:
    """Print how near a decision was to another choice."""
    paper.line(f"    margin: {margin.sentence}")
    if margin.flips:
        cells = [
            (
                change.fact,
                "(missing)" if change.missing else value(change.was),
                " or ".join(region.words for region in change.to),
                value(flip.chosen) if not number else "",
            )
            for flip in margin.flips
            for number, change in enumerate(flip.facts)
        ]
        paper.table(("FACT", "WAS", "WOULD HAVE TO BE", "THEN CHOSEN"), cells)
    if margin.without_effect:
        paper.line(f"    did not matter: {', '.join(margin.without_effect)}", DIM)
    for sole in margin.sources:
        paper.line(f"    would flip it alone, if wrong: {sole.source.label} ({', '.join(sole.facts)})", YELLOW)


def _evidence(paper: Paper, item: Evidence) -> None:
    """Print the document behind a fact, and what became of the fact since."""
    documents = ", ".join(
        f"{document.name or paper.id(document.source)}"
        + (f" ({paper.id(document.source)}, from {document.agent})" if document.name is not None else "")
        for document in item.documents
    )
    since = item.since
    if not documents and since is None:
        return
    line = f"  {item.fact} {value(item.value)}, {item.origin}" + (f": {documents}" if documents else "")
    if since is not None:
        now = "" if since.change in ("retracted", "deleted") else f" to {value(since.now)}"
        by = "" if since.agent is None else f" by {since.agent} at {time(since.observed_at)}"
        because = "" if since.because is None else f", because {value(since.because)}"
        line += f"; {since.change} since{now}{by}{because}"
    paper.line(line, "" if since is None else YELLOW)


def _read_values(paper: Paper, read: Any) -> str:
    """Return what a read found, in a cell: values by field, or the runs that a recall found."""
    if read.recalled:
        return ", ".join(f"{paper.id(hit.run)} ({hit.score:.2f})" for hit in read.recalled)
    return fields(read.values) if read.found else "(not found)"


def _origin(paper: Paper, origin: Any) -> str:
    from woodrat.runs.evidence import origin_words

    if origin.get("kind") == "recall":
        return f"recalled from {origin.get('stage')} of {paper.id(str(origin.get('run')))}"
    words = origin_words(origin)
    if origin.get("kind") == "read" and origin.get("entity") is not None:
        named = ", ".join(paper.id(str(id)) for id in origin.get("observations") or ()) or "it had no value"
        return f"read from {words} ({named})"
    return words if origin.get("kind") == "stated" else f"from {words}"


def record(call: Call) -> Answer:
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

    return Answer(wire.listing(found), text)


def judge(call: Call) -> Answer:
    """Say what is thought of a run, or compare what it wrote with a state known to be good."""
    given = call.given
    ledger = call.ledger(UPDATE)
    if given.verdict is None:
        if given.against is None:
            problem = "there is neither a verdict nor anything to compare with"
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

    return Answer({"run": given.run, **judgement.to_json()}, text)


def resume(call: Call) -> Answer:
    """Carry on an interrupted run with the agent's function."""
    given = call.given
    agent = inputs.function(given.function, "--with")
    found = call.ledger(UPDATE).runs.resume(given.run, agent, on_unknown=given.on_unknown)

    def text(paper: Paper) -> None:
        paper.line(f"{found.run} is {found.status}.", GREEN if found.status == "done" else RED)
        paper.line(f"  {found.from_log} steps were answered from the log", DIM)
        if found.unused:
            paper.line(f"  {found.unused} recorded steps were not requested again; did the agent change?", YELLOW)
        if found.answer is not None:
            paper.line(f"  answer: {value(found.answer)}")

    return Answer(found.to_json(), text)


def fork(call: Call) -> Answer:
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
        paper.line(f"  {forked_from({**found.to_json(), 'run': found.parent})}")
        paper.line(f"  {found.from_log} steps were answered from the recording", DIM)
        if found.stopped is not None:
            paper.line(f"  stopped: {found.stopped}", YELLOW)
        if found.answer is not None:
            paper.line(f"  answer: {value(found.answer)}")
        paper.line(f"  woodrat runs diff {found.parent} {found.run}", DIM)

    return Answer(found.to_json(), text, code=wire.DONE if done else wire.FOUND_SOMETHING)


def forked_from(told: Mapping[str, Any]) -> str:
    """Return in words what a run is a fork of, and what was edited."""
    edited, was = (item if isinstance(item := told.get(name), dict) else {} for name in ("set", "was"))
    changes = ", ".join(
        f"{path} = {value(new)}" + (f" (was {value(was[path])})" if path in was else "") for path, new in edited.items()
    )
    what = f" ({told['what']})" if told.get("what") else ""
    return f"fork of {told.get('run')} at step {told.get('step')}{what}: {changes}"


def why(call: Call) -> Answer:
    """Tell what was decided about an entity, and on what evidence."""
    given = call.given
    past = runs_of(call)
    page = call.ask(past)

    def text(paper: Paper) -> None:
        if not page.items:
            paper.line(f"No decision about {given.ref} is recorded.")
        for reason in page.items:
            _reason(paper, reason)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    rows = [reason.to_json() for reason in page.items]
    note = None if page.cursor is None else f"More: add --cursor {page.cursor}"
    return Answer(wire.listing(rows, page.position, page.cursor), text, rows, note=note)


def _reason(paper: Paper, reason: Reason) -> None:
    paper.line(f"{_choice(reason.decision)}, decided at {time(reason.decided_at)}", BOLD)
    who = f"by {reason.agent}" if reason.agent is not None else "by an agent"
    verdict = f", judged {reason.verdict}" if reason.verdict is not None else ""
    paper.line(f"  {who} in {paper.id(reason.run)}, {reason.status}{verdict}; position {reason.position}", DIM)
    if reason.query is not None:
        paper.line(f"  question: {reason.query}")
    _decision(paper, reason.decision)
    for item in reason.evidence:
        _evidence(paper, item)
    if reason.answer is not None:
        paper.line(f"  answer: {value(reason.answer)}", GREEN)


def export_training(call: Call) -> Answer:
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
        # The rows are the output; what became of them is told beside it.
        sys.stdout.flush()
        sys.stderr.write(_summary(found) + "\n")
        return Answer(None, lambda paper: None, plain=True)

    def text(paper: Paper) -> None:
        paper.line(_summary(found), GREEN if found.rows else YELLOW)
        for item in found.left_out[:SHOWN_LEFT_OUT]:
            named = f": {', '.join(map(paper.id, item.observations))}" if item.observations else ""
            paper.line(f"  left out {paper.id(item.run)}: {item.reason}{named}", DIM)
        if found.left_out_count > SHOWN_LEFT_OUT:
            paper.line(f"  … and {found.left_out_count - SHOWN_LEFT_OUT} more; -o json lists them", DIM)

    return Answer(found.to_json(), text)


def _summary(found: Exported) -> str:
    where = f" to {found.out}" if found.out is not None else ""
    return f"Wrote {found.rows} rows of {found.runs} runs{where}; left out {found.left_out_count} runs."

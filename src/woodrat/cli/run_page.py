"""The page of a run: its status and answer, its steps in time order, and the reasons of its decisions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.cli.command import CommandResult
from woodrat.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Paper, comparison, fields, time, value
from woodrat.errors import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.runs.evidence import Evidence
    from woodrat.runs.margin import Margin
    from woodrat.runs.record import RunRecord
    from woodrat.runs.step_order import RunStep
    from woodrat.runs.steps import Decision, ModelCall
    from woodrat.runs.summary import RunChoice

STYLES: Final[Mapping[str, str]] = {"error": RED, "interrupted": YELLOW, "cancelled": YELLOW}
"""How each status of a run is shown."""
LINE_CHARACTERS_MAX: Final = 200
"""Longest excerpt of a step in its line; `--step` shows all of it."""
ASKED_CHARACTERS_MAX: Final = 60
"""Longest excerpt of a user's message in the line of a model call."""
FLIPS_SHOWN_MAX: Final = 5
"""Number of printed changes that would have flipped a decision."""


def choice(decision: Decision | RunChoice) -> str:
    """Return the outcome of a decision, in a word."""
    return f"{decision.stage}={value(decision.chosen)}"


def fork_words(told: Mapping[str, Any]) -> str:
    """Return the origin of a fork and its edit, in words."""
    edited, was = (item if isinstance(item := told.get(name), dict) else {} for name in ("set", "was"))
    changes = ", ".join(
        f"{path} = {value(new)}" + (f" (was {value(was[path])})" if path in was else "") for path, new in edited.items()
    )
    what = f" ({told['what']})" if told.get("what") else ""
    return f"fork of {told.get('run')} at step {told.get('step')}{what}: {changes}"


# The whole run


def print_run(paper: Paper, r: RunRecord) -> None:
    """Print a run: its outcome first, then its steps."""
    from woodrat.runs.step_order import numbered_steps

    paper.line(r.query if r.query is not None else "(no question is recorded)", BOLD)
    paper.line(f"  {r.id}, {r.status}", STYLES.get(r.status, DIM))
    if r.error is not None:
        paper.line(f"  error: {value(r.error)}", RED)
    if r.answer is not None:
        paper.line(f"  answer: {value(r.answer)}", GREEN)
    for judgement in r.judgements:
        by = f" by {judgement.by}" if judgement.by is not None else ""
        why = f": {judgement.reason}" if judgement.reason is not None else ""
        score = f", score {value(judgement.score)}" if judgement.score is not None else ""
        better = f"; better: {value(judgement.preferred)}" if judgement.preferred is not None else ""
        against = f", against {judgement.against}" if judgement.against is not None else ""
        at = f" at {time(judgement.started_at)}" if judgement.started_at else ""
        paper.line(f"  judged {judgement.verdict}{by}{at}{score}{against}{why}{better}")
    for name, item in _about(r).items():
        if item:
            paper.line(f"  {name:<12} {item}")
    for used in r.in_force:
        paper.line(f"  {'in force':<12} {used['type']} {used.get('entity')}, version {used.get('version')}")
    for problem in r.problems:
        paper.line(f"  problem: {problem}", YELLOW)
    if r.erased:
        paper.line(f"  erased: entries {', '.join(map(str, r.erased))}", YELLOW)
    steps = numbered_steps(r)
    if steps:
        paper.line("Steps", BOLD)
        _print_steps(paper, r, steps)
    if r.decisions:
        paper.line("Decisions", BOLD)
    numbers = {step.position: step.number for step in steps}
    for decision in r.decisions:
        paper.line(f"  step {numbers[decision.position]}: {choice(decision)} {decision.by(value)}")
        print_decision(paper, decision)


def _about(r: RunRecord) -> dict[str, str | None]:
    inside = [name for name in r.names if name != r.agent]
    return {
        "agent": (r.agent or "") + (f" ({', '.join(inside)})" if inside else ""),
        "subject": r.subject,
        "principal": r.principal,
        "conversation": r.conversation,
        "session": r.session,
        "pipeline": r.pipeline,
        "parent": None if r.parent is None else r.parent.get("run"),
        "fork of": None if r.forked_from is None else fork_words(r.forked_from).removeprefix("fork of "),
        "code": r.code,
        "started at": time(r.started_at),
        "ended at": time(r.ended_at),
        "took": None if r.duration_ms is None else f"{r.duration_ms} ms",
        "tokens": f"{r.input_tokens} in, {r.output_tokens} out" if r.input_tokens or r.output_tokens else None,
        "basis": None if r.basis is None else f"position {r.basis.get('position')}",
        "inputs": fields(r.inputs) or None,
        "imported": "from a snapshot: results and responses are previews" if r.previews_only else None,
    }


def _print_steps(paper: Paper, r: RunRecord, steps: tuple[RunStep, ...]) -> None:
    """Print one line for each step; empty columns are omitted."""

    columns: dict[str, list[str]] = {
        "STEP": [str(step.number) for step in steps],
        "AFTER": [_after(r.started_at, step.started_at) for step in steps],
        "AGENT": [step.agent or "" for step in steps],
        "KIND": [step.kind for step in steps],
        "WHAT": ["  " * step.depth + _line(paper, step) for step in steps],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    paper.table(tuple(shown), list(zip(*shown.values(), strict=True)), [_style(step) for step in steps])


def _after(start: str | None, at: str | None) -> str:
    """Return the time from the start of the run to a step."""
    if not start or not at or not moment.is_fixed(start) or not moment.is_fixed(at):
        return ""
    milliseconds = (moment.to_micros(at) - moment.to_micros(start)) // 1_000
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1_000
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def _line(paper: Paper, step: RunStep) -> str:
    line = " ".join(_step_text(paper, step).split())
    return line if len(line) <= LINE_CHARACTERS_MAX else line[: LINE_CHARACTERS_MAX - 1] + "…"


def _step_text(paper: Paper, step: RunStep) -> str:
    """Return a step as text."""
    from woodrat.runs.origin import call_words
    from woodrat.runs.steps import Decision, ModelCall, Note, Read, ToolCall

    match step.part:
        case Read() as read:
            asked = "" if read.within is None else f"{read.within}({fields(read.args)})"
            named = " ".join(filter(None, (asked, read.entity)))
            unchecked = "" if read.unchecked is None else " (unchecked)"
            return f"{named}{unchecked}: {fields(read.values) if read.found else 'not found'}"
        case ToolCall() as call:
            return f"{call_words(call)} → {_outcome(call.errored, call.error, call.preview, 'result')}"
        case ModelCall() as call:
            question = _user_message(call)
            named = " ".join(filter(None, (call.model, f"“{question}”" if question else None)))
            return f"{named} → ".lstrip() + _outcome(
                call.errored, call.error, (call.preview or "").removeprefix("→ ") or None, "response"
            )
        case Decision() as decision:
            return f"{choice(decision)} {decision.by(value)}"
        case Note() as note:
            return note.text
        case tuple() as writes:
            return "; ".join(
                f"{write.entity}: {'' if write.op == 'assert' else f'{write.op} '}{fields(write.fields)} "
                f"({paper.id(write.observation)})"
                for write in writes
            )
    return ""


def _outcome(errored: bool, error: Json, answer: str | None, what: str) -> str:
    if errored:
        return f"failed: {value(error)}" if error is not None else "failed"
    return f"(no {what} recorded)" if answer is None else answer


def _style(step: RunStep) -> str:
    if getattr(step.part, "errored", False):
        return RED
    return YELLOW if getattr(step.part, "begun", False) else ""


def _user_message(call: ModelCall) -> str | None:
    """Return the beginning of the user's last words, if a model was to answer them."""
    from woodrat.runs import messages

    last = call.messages[-1:] if isinstance(call.messages, list) else []
    said = messages.question(last)
    line = None if said is None else " ".join(said.split())
    return line if line is None or len(line) <= ASKED_CHARACTERS_MAX else line[: ASKED_CHARACTERS_MAX - 1] + "…"


# One step


def step_answer(record: RunRecord, number: int) -> CommandResult:
    """Return one step of a run with everything that is recorded of it."""
    from woodrat.runs.step_order import numbered_steps

    steps = numbered_steps(record)
    step = next((each for each in steps if each.number == number), None)
    if step is None:
        there = f"it has steps {steps[0].number} to {steps[-1].number}" if steps else "no step is recorded"
        problem = f"{record.id} has no step {number}; {there}"
        raise Refused([Fault("--step", problem, "`woodrat runs show RUN` numbers them.")], "Nothing was read.")
    found = step
    told = {"writes": [w.to_json() for w in step.part]} if isinstance(step.part, tuple) else step.part.to_json()
    place = {"run": record.id, "number": number, "kind": step.kind}
    return CommandResult({**place, **told}, lambda paper: _print_step(paper, record, found))


def _print_step(paper: Paper, record: RunRecord, step: RunStep) -> None:
    from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall

    part = step.part
    paper.line(f"Step {step.number}, {step.kind}: {_line(paper, step)}", BOLD)
    about = {
        "agent": step.agent,
        "started at": time(step.started_at),
        "after": _after(record.started_at, step.started_at),
        "took": None if getattr(part, "duration_ms", None) is None else f"{part.duration_ms} ms",  # type: ignore[union-attr]
        "inside": None if step.inside is None else f"step {step.inside}",
        "position": str(step.position),
    }
    for name, item in about.items():
        if item:
            paper.line(f"  {name:<12} {item}")
    match part:
        case ModelCall() as call:
            if call.input_tokens or call.output_tokens:
                paper.line(f"  {'tokens':<12} {call.input_tokens} in, {call.output_tokens} out")
            if call.request is not None:
                paper.line(f"  {'request':<12} {call.request}")
            _print_value(paper, "Parameters", call.parameters or None)
            _print_messages(paper, call.messages)
            _print_value(paper, "Error", call.error)
            _print_value(paper, "Response", call.response)
        case ToolCall() as call:
            _print_value(paper, "Arguments", call.args)
            _print_value(paper, "Error", call.error)
            if not call.errored or call.result is not None:
                _print_value(paper, "Result", "(no result recorded)" if call.begun else call.result, always=True)
        case Read() as read:
            _print_value(paper, "Arguments", dict(read.args) or None)
            paper.line("Values", BOLD)
            cells = [(name, value(item), ", ".join(read.behind(name))) for name, item in read.values.items()]
            if cells:
                paper.table(("FIELD", "VALUE", "OBSERVATION"), cells)
            else:
                paper.line("  (nothing was found)")
        case Decision() as decision:
            print_decision(paper, decision)
        case tuple() as writes:
            rows = [(w.entity, w.op, fields(w.fields), w.observation) for w in writes]
            paper.table(("ENTITY", "OP", "FIELDS", "OBSERVATION"), rows)
        case _:
            _print_value(paper, "Data", getattr(part, "data", None))
    if not isinstance(part, tuple):
        further = {name: item for name, item in part.attributes.items() if name != "agent"}
        _print_value(paper, "Attributes", further or None)


def _print_value(paper: Paper, head: str, found: Any, *, always: bool = False) -> None:
    """Print a value whole: text line by line, the rest as JSON."""
    if found is None and not always:
        return
    paper.line(head, BOLD)
    for line in _value_lines(found):
        paper.line(f"  {line}")


def _value_lines(found: Any) -> Iterator[str]:
    text = found if isinstance(found, str) else json.dumps(found, indent=2, ensure_ascii=False)
    yield from text.split("\n")


def _print_messages(paper: Paper, found: Json) -> None:
    """Print each message with its role; a value that is no list of messages is printed unchanged."""
    from woodrat.runs import messages

    if found is None:
        paper.line("Messages", BOLD)
        paper.line("  (not recorded)")
        return
    if not isinstance(found, list):
        _print_value(paper, "Messages", found)
        return
    paper.line("Messages", BOLD)
    for message in found:
        if not isinstance(message, dict):
            for line in _value_lines(message):
                paper.line(f"    {line}")
            continue
        names = (message.get("role"), message.get("name") or message.get("tool_call_id"))
        paper.line("  " + " ".join(str(name) for name in names if name is not None), DIM)
        text, calls = messages.text_in(message), messages.calls(message)
        for line in _value_lines(text) if text else ():
            paper.line(f"    {line}")
        for name, args in calls:
            paper.line(f"    → {name} {json.dumps(args, ensure_ascii=False)}")
        if not text and not calls:
            rest = {name: item for name, item in message.items() if name not in ("role", "name", "tool_call_id")}
            for line in _value_lines(rest):
                paper.line(f"    {line}")


# A decision


def print_decision(paper: Paper, decision: Decision) -> None:
    """Print the reasons of a decision, and how near it was to another choice."""
    from woodrat.runs import operators

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
    if not decision.rules:
        for key, origin in decision.fact_origins.items():
            paper.line(f"      {key}: {value(decision.facts.get(key))}, {_origin(paper, origin)}")
    if decision.rationale is not None:
        paper.line(f"    rationale: {decision.rationale}")
    for item in decision.looked_at:
        _print_evidence(paper, item)
    if decision.margin is not None:
        _print_margin(paper, decision.margin)


def _print_evidence(paper: Paper, item: Evidence) -> None:
    """Print the document behind a fact, and the fact's later history."""
    documents = ", ".join(
        f"{document.name or paper.id(document.source)}"
        + (f" ({paper.id(document.source)}, from {document.agent})" if document.name is not None else "")
        for document in item.documents
    )
    since = item.since
    if item.unchecked:
        paper.line(f"    {item.fact} {value(item.value)} is unchecked: the log does not show that it was read", YELLOW)
    if documents:
        paper.line(f"    {item.fact} {value(item.value)} comes from {documents}")
    if since is not None:
        now = "" if since.change in ("retracted", "deleted") else f" to {value(since.now)}"
        by = "" if since.agent is None else f" by {since.agent} at {time(since.observed_at)}"
        because = "" if since.because is None else f", because {value(since.because)}"
        paper.line(f"    {item.fact} {value(item.value)} was {since.change} since{now}{by}{because}", YELLOW)


def _print_margin(paper: Paper, margin: Margin) -> None:
    """Print how near a decision was to another choice, a line for each change that flips it."""
    if not margin.flips:
        paper.line(f"    margin: {margin.sentence}")
    for number, flip in enumerate(margin.flips[:FLIPS_SHOWN_MAX]):
        paper.line(f"    {'        or ' if number else 'margin: '}{flip.sentence}")
    more = len(margin.flips) - FLIPS_SHOWN_MAX + margin.omitted
    if more > 0:
        paper.line(f"            and {more} other changes; -o json lists them", DIM)
    if margin.flips and margin.reason is not None:
        paper.line(f"            ({margin.reason})", DIM)
    if margin.without_effect:
        paper.line(f"    did not matter: {', '.join(margin.without_effect)}", DIM)
    for sole in margin.sources:
        paper.line(f"    would flip it alone, if wrong: {sole.source.label} ({', '.join(sole.facts)})", YELLOW)


def _origin(paper: Paper, origin: Any) -> str:
    from woodrat.runs.origin import origin_words

    words = origin_words(origin)
    if origin.get("kind") == "read" and origin.get("entity") is not None:
        named = ", ".join(paper.id(str(id)) for id in origin.get("observations") or ()) or "it had no value"
        return f"read from {words} ({named})"
    return words if origin.get("kind") == "stated" else f"from {words}"

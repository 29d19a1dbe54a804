"""Starts: what is wrong with what a run is begun with, every fault at once; else the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from woodrat.canon import ids
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.arguments import Arguments
from woodrat.runs import trace
from woodrat.runs.recorder.beginning import Beginning, ref_of, refs_of, run_faults
from woodrat.runs.recorder.run import Run
from woodrat.runs.recorder.steps import NOTE, NOTHING_RECORDED, RAISE, RunLog
from woodrat.runs.shape import shape_fault
from woodrat.runs.trace import Place
from woodrat.state import redaction


def begin(
    log: RunLog,
    query: object,
    *,
    subject: object = None,
    conversation: object = None,
    principal: object = None,
    inputs: object = None,
    agent: str | None = None,
    code: object = None,
    parent: object = None,
    runbook: object = None,
    tool_configs: object = None,
    pipeline: object = None,
    session: object = None,
    attributes: object = None,
    redact: object = (),
    on_error: object = NOTE,
    id: object = None,
    recall: bool = False,
    traceparent: object = None,
    inputs_shape: object = None,
    forked_from: object = None,
) -> Run:
    """Return a run that will be recorded in a log, not started yet; what is wrong with the arguments is refused."""
    arguments = Arguments()
    faults = arguments.faults
    if not isinstance(query, str):
        faults.append(Fault("query", f"expected what is asked as text, got {shown(query)}", "Send it as text."))
    for name, given in (("inputs", inputs), ("attributes", attributes)):
        if given is not None and not isinstance(given, Mapping):
            faults.append(Fault(name, f"expected values by name, got {shown(given)}", "Send a mapping."))
    if on_error not in (NOTE, RAISE):
        faults.append(Fault("on_error", f"got {shown(on_error)}", "Use note or raise."))
    if id is not None and run_faults(id):
        faults.append(Fault("id", f"not a run's id: {shown(id)}", "Leave it out, or send run_ and 26 characters."))
    if inputs_shape is not None and (fault := shape_fault(inputs_shape)) is not None:
        faults.append(Fault("inputs_shape", fault, "Leave it out, or send it as docs/formats/runs.md has it."))
    try:
        hidden = redaction.hidden(redact or None, NOTHING_RECORDED)
    except Refused as refusal:
        faults += refusal.faults
    if traceparent is not None and trace.traced(traceparent) is None:
        remedy = "Send it as W3C Trace Context writes it: 00-<32 digits>-<16 digits>-01."
        faults.append(Fault("traceparent", f"not a traceparent: {shown(traceparent)}", remedy))
    beginning = Beginning(
        query=query if isinstance(query, str) else "",
        subject=ref_of("subject", subject, faults, ids_too=True),
        conversation=arguments.text("conversation", conversation, ids.KEY_BYTES_MAX),
        principal=arguments.text("principal", principal, ids.KEY_BYTES_MAX),
        inputs=dict(inputs) if isinstance(inputs, Mapping) else {},
        code=arguments.text("code", code, ids.KEY_BYTES_MAX),
        parent=parent_of(parent, faults),
        runbooks=refs_of("runbook", runbook, faults),
        tool_configs=refs_of("tool_configs", tool_configs, faults),
        pipeline=ref_of("pipeline", pipeline, faults),
        session=ref_of("session", session, faults),
        attributes=dict(attributes) if isinstance(attributes, Mapping) else {},
        trace=traceparent if isinstance(traceparent, str) else None,
        recall=bool(recall),
        inputs_shape=inputs_shape if isinstance(inputs_shape, list) else None,
        forked_from=_fork(forked_from, faults),
    )
    if agent is not None:
        faults += ids.agent_faults(agent, "agent")
    arguments.check(NOTHING_RECORDED)
    return Run(
        log.by(agent),
        beginning,
        id=id if isinstance(id, str) else None,
        redact=hidden,
        on_error=str(on_error),
    )


def _fork(given: object, faults: list[Fault]) -> Mapping[str, Any] | None:
    """Return what a caller says the run is a fork of."""
    if given is None:
        return None
    found = given if isinstance(given, Mapping) else {}
    if not run_faults(found.get("run")) and type(found.get("step")) is int and isinstance(found.get("set"), Mapping):
        return {name: found[name] for name in ("run", "step", "span", "what", "set", "was") if name in found}
    remedy = 'Send {"run", "step", "set"}: the run, the step, and what was edited there, by path.'
    faults.append(Fault("forked_from", f"got {shown(given)}", remedy))
    return None


def parent_of(given: object, faults: list[Fault]) -> Place | None:
    """Return the step that a caller names as the one that starts a run."""
    if given is None:
        return None
    if isinstance(given, Run):
        return Place(given.id, given.place())
    if isinstance(given, Mapping):
        given = f"{given.get('run')}/{given.get('span', '')}"
    if isinstance(given, str) and not run_faults((place := trace.place_of(given)).run):
        return place
    faults.append(Fault("parent", f"not a run: {shown(given)}", "Send a run, or its id."))
    return None

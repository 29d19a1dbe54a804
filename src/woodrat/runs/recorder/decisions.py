"""Decisions: a branch taken by rules, recorded with what was looked at in the run around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, Refused, shown
from woodrat.records import replace
from woodrat.runs import missing_facts, values
from woodrat.runs import rules as rule
from woodrat.runs.facts import FACTS_MAX, facts_among, facts_of, hidden_among
from woodrat.runs.recorder.steps import current_recorder
from woodrat.runs.rules import DECIDE, NOTHING_DECIDED, Verdict
from woodrat.runs.rules import RAISE as FAIL
from woodrat.runs.steps import SELECT
from woodrat.runs.values import NOTHING
from woodrat.state.redaction import hiding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.form import Json
    from woodrat.runs.recorder.steps import Begun, StepRecorder
    from woodrat.runs.rules import Rule


def decide(
    stage: str,
    facts: object,
    rules: Iterable[Rule | Mapping[str, Any]],
    default: Any = None,
    *,
    rationale: str | None = None,
    redact: Iterable[str] = (),
    on_missing: str = FAIL,
) -> Verdict:
    """Take the first branch whose rule matches the facts; recorded in the current run, where there is one.

    A rule that asks for a fact that is missing or cannot be compared, and of which nothing else is false, is *unknown*.
    Before the first match it is `Refused`, and nothing is decided; with `on_missing="skip"` it is skipped.

    verdict = woodrat.decide("classify-risk", loan, [
        woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    ], default="manual-review")
    """
    return make_decision(current_recorder(), DECIDE, stage, facts, rules, default, rationale, redact, on_missing)


def select(
    stage: str,
    facts: object,
    rules: Iterable[Rule | Mapping[str, Any]],
    default: Any = None,
    *,
    rationale: str | None = None,
    redact: Iterable[str] = (),
    on_missing: str = FAIL,
) -> Verdict:
    """Take every branch whose rule matches the facts, as a list; recorded in the current run, where there is one.

    Any rule that is unknown, as `decide` says, is `Refused`; with `on_missing="skip"` it is skipped.
    """
    return make_decision(current_recorder(), SELECT, stage, facts, rules, default, rationale, redact, on_missing)


def make_decision(
    run: StepRecorder | None,
    mode: str,
    stage: str,
    facts: object,
    rules: object,
    default: object,
    rationale: str | None,
    redact: Iterable[str],
    on_missing: str,
) -> Verdict:
    """Decide, and record what was looked at in a run where there is one."""
    check_decision(stage, on_missing)
    remark = None if rationale is None else values.text(rationale)
    if run is None:
        sourced = facts_of(facts, lambda name, value: None)
        hidden = hidden_among(sourced, hiding(NOTHING, redact, NOTHING_DECIDED))
        about: dict[str, Any] = {"stage": stage, "rationale": remark}
        return rule.evaluate(
            sourced, rule.as_rules(rules), default, mode, hidden=hidden, on_missing=on_missing, **about
        )
    listed = rule.as_rules(rules)
    sourced = facts_of(facts, run.link)
    hidden = hidden_among(sourced, run.hiding(redact, NOTHING_DECIDED))
    if run.recording is not None:
        answered = run.recording.decision(stage, mode, sourced, listed, default, hidden, on_missing)
        if answered is not None:
            return replace(answered, run=run.id)
    begun = run.begin_step()
    verdict = rule.attempt(
        sourced,
        listed,
        default,
        mode,
        hidden=hidden,
        stage=stage,
        rationale=remark,
        run=None if begun is None else run.id,
        span=None if begun is None else begun.span,
        on_missing=on_missing,
    )
    lacking = missing_facts.gaps_of(verdict.rules)
    refusal = rule.refusal_of(verdict) if lacking else None
    if refusal is not None:
        _note_undecided(run, begun, missing_facts.undecided(values.text(stage), mode, lacking))
        raise refusal
    if begun is not None:
        _record(run, begun, verdict, rule.body_of(verdict, sourced, hidden), hidden)
        if lacking:
            run.keep_missing(missing_facts.problems(values.text(stage), lacking))
    return verdict


def make_choice(
    run: StepRecorder,
    stage: str,
    chosen: object,
    because: str | None,
    on: object,
    model: str | None,
    redact: Iterable[str],
) -> Verdict:
    """Record what was chosen without rules, by a model or by the agent itself, and what it is based on."""
    _check_choice(stage, because, model)
    facts, left_out = facts_among(on, run.link)
    hidden = hidden_among(facts, run.hiding(redact, NOTHING_DECIDED))
    reason = None if because is None else values.text(because)
    about: dict[str, Any] = {"stage": stage, "rationale": reason, "run": run.id}
    verdict = Verdict(DECIDE, chosen, (), (), (), chosen_by=_chooser(run, model), based_on=facts.values, **about)
    body = rule.choice_body(verdict, facts, hidden)
    if run.recording is not None:
        answered = run.recording.choice(stage, body, facts, hidden)
        if answered is not None:
            return replace(answered, chosen=chosen, run=run.id, based_on=facts.values)
    begun = run.begin_step()
    if begun is None:
        return replace(verdict, run=None)
    _record(run, begun, verdict, body, hidden)
    if left_out:
        run.keep_missing([f"{values.text(stage)}: {left_out} facts were left out, the first {FACTS_MAX} are recorded"])
    return replace(verdict, span=begun.span)


def _record(
    run: StepRecorder, begun: Begun, verdict: Verdict, body: Mapping[str, Json], hidden: frozenset[str]
) -> None:
    """Record a decision, of which `body` says what was chosen and on what facts."""
    said: dict[str, Json] = {**begun.body(run.id), "stage": values.text(verdict.stage), **body}
    if verdict.rationale is not None:
        said["rationale"] = verdict.rationale
    if further := run.hidden_further(hidden):
        said["redact"] = further
    run.record_step("run.decided", begun, said)


def _chooser(run: StepRecorder, model: str | None) -> dict[str, Json]:
    """Return who chose: a model in its last call, the model that the caller names, or the agent itself."""
    call = run.latest_model()
    if call is not None and model in (None, call.model):
        return {"model": call.model, "span": call.span, "step": call.step}
    return {"agent": run.agent} if model is None else {"model": values.text(model)}


def _check_choice(stage: object, because: object, model: object) -> None:
    """Refuse a stage that is no name, and a reason or a model that is no text."""
    faults: list[Fault] = []
    if not isinstance(stage, str) or not stage:
        problem = f"expected the name of what is decided, got {shown(stage)}"
        faults.append(Fault("stage", problem, "Send it as text."))
    if because is not None and not isinstance(because, str):
        faults.append(Fault("because", f"expected the reason, got {shown(because)}", "Send it as text."))
    if model is not None and (not isinstance(model, str) or not model):
        remedy = "Send it as text; default: the model that was called last."
        faults.append(Fault("model", f"expected the name of a model, got {shown(model)}", remedy))
    if faults:
        raise Refused(faults, NOTHING_DECIDED)


def _note_undecided(run: StepRecorder, begun: Begun | None, remark: dict[str, Json]) -> None:
    """Note why nothing was decided. The caller is told as well, and may send the same decision again."""
    if begun is not None:
        # A span of its own: the one of a decision is taken where it is made.
        body = {**begun._replace(span=run.log.clock.random(8).hex()).body(run.id), **remark}
        try:
            run.record_step("run.noted", begun, body)
        except Exception as problem:
            run.keep_problem(problem)  # why nothing was decided is the error to be seen
    run.keep_missing([str(remark["text"])])


def check_decision(stage: object, on_missing: object) -> None:
    """Refuse a stage that is no name, and what says nothing about rules that are unknown."""
    if isinstance(stage, str) and stage and on_missing == FAIL:
        return
    faults = rule.check_on_missing(on_missing)
    if not isinstance(stage, str) or not stage:
        problem = f"expected the name of what is decided, got {shown(stage)}"
        faults.append(Fault("stage", problem, "Send it as text."))
    if faults:
        raise Refused(faults, NOTHING_DECIDED)

"""Judgements: what somebody thinks of a run, appended to it whenever they say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, shown
from woodrat.ledger.arguments import Arguments
from woodrat.ledger.ownership import unknown_run
from woodrat.ledger.write import Writer
from woodrat.runs import values
from woodrat.runs.recorder.beginning import ref_of
from woodrat.runs.recorder.steps import NOTHING_RECORDED, Begun
from woodrat.state.meaning import Step

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft

VERDICT_BYTES_MAX: Final = 256
"""Longest verdict of a judge."""


def judge(
    context: Context,
    run: str,
    verdict: str,
    *,
    preferred: object = None,
    by: str | None = None,
    reason: str | None = None,
    score: float | None = None,
    against: str | None = None,
    about: str | None = None,
    evaluation: str | None = None,
    idempotency_key: str | None = None,
    hidden: frozenset[str] | None = None,
) -> Report:
    """Append what somebody thinks of a run; it may have ended long ago.

    `hidden` are the keys whose values a preferred answer does not show; left out, those of the ledger.
    """
    arguments = Arguments()
    said: dict[str, Json] = {}
    for name, value, bytes_max in (
        ("verdict", verdict, VERDICT_BYTES_MAX),
        ("by", by, ids.AGENT_BYTES_MAX),
        ("against", against, ids.KEY_BYTES_MAX),
        ("about", about, ids.KEY_BYTES_MAX),
    ):
        text = arguments.text(name, value if name != "verdict" or value is not None else "", bytes_max)
        if text is not None:
            said[name] = text
    said.setdefault("by", context.agent)
    if reason is not None:
        said["reason"] = values.text(reason)
    if score is not None:
        if type(score) not in (int, float) or form.faults(score):
            arguments.faults.append(Fault("score", f"got {shown(score)}", "Send a number."))
        said["score"] = score
    if evaluation is not None and (ref := ref_of("evaluation", evaluation, arguments.faults)) is not None:
        said["evaluation"] = ref
    if preferred is not None:
        said["preferred"] = values.bounded(preferred, hidden=context.hidden if hidden is None else hidden)
    if not isinstance(run, str):
        arguments.faults.append(Fault("run", f"expected a run's id, got {shown(run)}", "Send it as text."))
    arguments.check(NOTHING_RECORDED)
    clock = context.clock

    def plan(draft: Draft) -> None:
        entries = draft.view.run(run, draft.before.asof.position)
        if not entries:
            raise unknown_run(run)
        step = 1 + max(_step_of(entry.body) for entry in entries)
        begun = Begun(step, clock.random(8).hex(), draft.recorded_at, None, draft.agent)
        draft.id = run
        draft.add("run.judged", values.fit({**begun.body(run), **said, "agent": context.agent}), Step(run))

    return Writer(context).write("judge", {"run": run, **said}, plan, key=idempotency_key)


def _step_of(body: bytes | None) -> int:
    step = form.decode(body).get("step") if body is not None else None
    return step if type(step) is int else 0

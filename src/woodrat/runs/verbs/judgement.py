"""Judgements: what somebody thinks of a run, appended whenever they say so; and how it compares with a known state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, shown
from woodrat.ledger import entry_index, facts
from woodrat.ledger.arguments import Arguments
from woodrat.ledger.moments import resolve_moment
from woodrat.ledger.ownership import unknown_run
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Writer
from woodrat.records import dataclass
from woodrat.runs import values
from woodrat.runs.reader.run_reader import open_runs, run_record
from woodrat.runs.recorder.beginning import ref_of
from woodrat.runs.recorder.steps import NOTHING_RECORDED, Begun
from woodrat.runs.steps import Judgement
from woodrat.state.asof import AsOf
from woodrat.state.meaning import RunEntry

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft
    from woodrat.runs.record import RunRecord


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
        entries = entry_index.run_entries(draft.view, run, draft.before.asof.position)
        if not entries:
            raise unknown_run(run)
        step = 1 + max(_step_of(entry.body) for entry in entries)
        begun = Begun(step, clock.random(8).hex(), draft.recorded_at, None, draft.agent)
        draft.id = run
        draft.add("run.judged", values.fit({**begun.body(run), **said, "agent": context.agent}), RunEntry(run))

    return Writer(context).write("judge", {"run": run, **said}, plan, key=idempotency_key)


def _step_of(body: bytes | None) -> int:
    step = form.decode(body).get("step") if body is not None else None
    return step if type(step) is int else 0


@dataclass(frozen=True, slots=True)
class Compared:
    """How the fields that a run wrote compare with another moment."""

    cases: int
    """How many fields were compared."""
    failures: tuple[str, ...]
    """Those that differ, as `REF#field`, sorted."""

    @property
    def verdict(self) -> str:
        """`passed`, `failed`, or `inconclusive` for a run that wrote nothing."""
        return "inconclusive" if not self.cases else "failed" if self.failures else "passed"


def evaluate(
    context: Context, run: str, against: Moment, name: str | None, reason: str | None, key: str | None = None
) -> Report:
    """Compare every field that a run wrote with a moment, and store an `evaluation` of the run."""
    with open_runs(context) as run_reader:
        record = run_record(run_reader, run)
    called = name if name is not None else f"against {against}"
    with context.engine.view(context.tenant) as view:
        good = resolve_moment(view, against, "Nothing was written.", context.clock)
        found = compare(record, *(Reader(view, AsOf(at), context.policies) for at in (_over(record), good)))
        now = Reader(view, AsOf(view.head().position), context.policies)
        earlier = now.find(ids.Ref("evaluation", form.encode([called, run]).decode()))
    said: dict[str, Any] = {
        "entity_type": "evaluation",
        "name": called,
        "subject": run,
        "verdict": found.verdict,
        "baseline": str(against),
        "judge": context.agent,
        "cases": found.cases,
        "cases_passed": found.cases - len(found.failures),
    }
    optional = {"agent": record.agent, "code_version": record.code, "rationale": reason}
    said.update({key: value for key, value in optional.items() if value is not None})
    if found.failures:
        said["failures"] = list(found.failures)
    listed = [] if earlier is None else earlier.fields.get("failures")
    mended = [case for case in listed if case not in found.failures] if isinstance(listed, list) else []
    if mended:
        said["$"] = {"remove": {"failures": mended}}
    return facts.store(context, said, idempotency_key=key)


def _over(record: RunRecord) -> int:
    """Return the position at which a run had done all it did; what was thought of it later does not count."""
    steps = [step.position for step in record.steps if not isinstance(step, Judgement)]
    writes = [write.position for write in record.writes if write.position is not None]
    return max([*steps, *writes, *(at for at in (record.start, record.end) if at is not None)])


def compare(record: RunRecord, over: Reader, good: Reader) -> Compared:
    """Compare the fields a run wrote here as two readers see them; what neither knows is the same."""
    written: dict[str, set[str]] = {}
    for write in (write for write in record.writes if write.position is not None):
        written.setdefault(write.entity, set()).update(write.fields, write.remove)
    failures = []
    for entity, names in written.items():
        ref = ids.parse_ref(entity)
        sides = [found.fields if (found := reader.find(ref)) is not None else {} for reader in (over, good)]
        for name in names:
            has = [name in fields for fields in sides]
            if has[0] != has[1] or (has[0] and not form.same(sides[0][name], sides[1][name])):
                failures.append(f"{entity}#{name}")
    return Compared(sum(map(len, written.values())), tuple(sorted(failures)))

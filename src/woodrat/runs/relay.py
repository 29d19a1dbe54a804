"""The relay: runs of agents elsewhere, recorded here step by step as they are told.

A run that is being told is kept at hand, so that its evidence is linked with what it read and was answered; of many
runs those told last are. Any other is continued from the log, and so is one that was told to another server on the
same database since. A key makes telling again safe: the span of a step that
has one is made from it, so the log itself says whether the step is there already.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form, moment
from woodrat.engines.records import Receipt
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.ownership import check_owner
from woodrat.runs.reader.run_reader import open_runs, run_record
from woodrat.runs.recorder.log import LocalLog, check_id, family, steps_of
from woodrat.runs.recorder.recording import FAIL, Recording
from woodrat.runs.recorder.resume import claim_resumed, continued, interrupted, remember
from woodrat.runs.recorder.run import STATUSES
from woodrat.runs.recorder.start import begin
from woodrat.runs.recorder.steps import NOTHING_RECORDED
from woodrat.runs.rules import verdict_of
from woodrat.runs.shape import SHAPE
from woodrat.runs.verbs import entries as told_entries
from woodrat.runs.verbs import sent_steps
from woodrat.state.run_owner import owned, owner_of, run_of_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from woodrat.context import Context
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.run import Run

RUNS_MAX: Final = 1_000
"""How many runs are kept at hand."""
QUIET_MICROS: Final = 15 * 60 * 1_000_000
"""How long nothing is heard of a run before it is not taken for running; told on, it is continued from the log."""
_KEY_DIGITS: Final = 12
"""How much of a span is made from the key; the rest is made from what was told."""
FURTHER_MAX: Final = 64
"""How many spans of one call are looked for: what a decision that failed has read takes one each time."""


class _AtHand(NamedTuple):
    """A run that is being told."""

    run: Run
    spans: set[str]
    """The spans it has, and the parts of them that are made from keys."""
    heard_at: str
    """When it was told of last."""


class Relay:
    """The runs that one process is being told. One thread uses it."""

    def __init__(self, runs_max: int = RUNS_MAX) -> None:
        self._runs_max = runs_max
        self._runs: OrderedDict[tuple[str, str], _AtHand] = OrderedDict()
        """Those heard of last at the end."""

    def __len__(self) -> int:
        return len(self._runs)

    def start(self, context: Context, about: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """Begin a run; the same key again answers with the run that it began."""
        given = {name: value for name, value in about.items() if name not in ("query", "id")}
        stated = about.get("id")
        id, span = (
            (stated, None) if stated is not None or key is None else run_of_key(context.tenant, context.agent, key)
        )
        run = begin(LocalLog(context), about["query"], on_error="raise", id=id, **given)
        if stated is not None and key is not None:
            # The span tells a call that is sent again from another that states the same id.
            span = "".join(_span_parts(key, about))
        run.span = span or run.span
        if id is not None and key is not None:
            with context.engine.view(context.tenant) as view:
                known = entry_index.has_run(view, id, view.head().position)
            started = steps_of(context, id)[0][1] if known else {}
            if known and (stated is None or started.get("span") == run.span):
                _check_same(run, started, key)
                return _begun(started, repeated=True)
        run.start()
        self._keep(context, run, set())
        basis = {"log": run.log_name, "position": run.basis}
        return _begun({"run": run.id, "span": run.span, "started_at": run.started_at, "basis": basis}, repeated=False)

    def step(self, context: Context, run_id: str, step: Any, key: str | None = None) -> dict[str, Any]:
        """Record one step, in the form that told runs have; a decision is made here, and answered with its verdict.

        The answer holds what the step came to as the library's record: a `Snapshot`, `Verdict` or `Report`, or what
        another verb that reads has `found`.
        """
        perform = sent_steps.step(step)
        kind = next(iter(step))
        prefix, suffix = _span_parts(key, step)
        run, spans = self._open(context, run_id, prefix + suffix if key is not None else None)
        # What is stored has a key of its own: the log keeps no span of it.
        stores = kind in ("store", "change") and key is not None
        if key is not None and not stores and self._known(spans, prefix, suffix, key):
            known = self._repeated(context, run_id, step, prefix + suffix)
            if known is not None:
                return known
            run, spans = self._open(context, run_id, None)
        assert run is not None, "a run that has ended is not continued"
        taken: list[str] = []
        try:
            with run.spanned(_fresh_spans(prefix + suffix, spans, taken) if key is not None else None), run.current():
                found = self._perform(run, perform, step, f"{run_id}/{key}" if stores else None)
        except NotFound:
            # That there was nothing to be read is recorded too.
            if key is not None and kind == "read":
                spans.update((prefix, prefix + suffix))
            raise
        except Refused:
            # Of a decision that is not made, what it was to be made on has been read. It may be sent again.
            if kind in _DECISIONS:
                spans.update(part for span in taken[:-1] for part in _parts_of(span))
            raise
        if key is not None and not stores:
            spans.update((prefix, prefix + suffix))
        answer: dict[str, Any] = {"run": run_id, "repeated": bool(getattr(found, "repeated", False))}
        if kind in _ANSWERED and found is not None:
            answer["found" if _reads_besides(step) else _ANSWERED[kind]] = found
        return answer

    @staticmethod
    def _perform(run: Run, perform: Callable[[Run], object], step: Any, key: str | None) -> Any:
        """Do what a step says; what it writes is written once for a key."""
        if key is None:
            return perform(run)
        if "store" in step:
            return run.store(step["store"], idempotency_key=key)
        change = dict(step["change"])
        counted = change.pop("counted", None)
        if counted is None:
            return sent_steps.step({"change": {**change, "idempotency_key": key}})(run)
        # A recorder elsewhere numbers equal requests as a run here does, so that a replay finds what came of them.
        run.counted = sent_steps.counted(counted)
        try:
            return sent_steps.step({"change": change})(run)
        finally:
            run.counted = None

    def entries(self, context: Context, run_id: str, entries: Any) -> dict[str, Any]:
        """Take in entries that the recorder of a run made elsewhere: its steps, and its end as the last of them.

        Sent again they change nothing, so no key is needed.
        """
        new = told_entries.continued_by(context, check_id(run_id), entries)
        found = self._heard(context, run_id)
        if found is not None:
            run = found.run
            remember(run, new)
            run.count_on(max((body["step"] for _, body in new), default=-1) + 1)
            if any(kind == "run.ended" for kind, _ in new):
                self.forget(context.tenant, run_id)
        return {"run": run_id, "recorded": len(new)}

    def resume(
        self, context: Context, run_id: str, position: int | None = None, on_unknown: str = FAIL
    ) -> dict[str, Any]:
        """Let a recorder elsewhere carry on an interrupted run; return all that the log holds of it.

        Nothing is resumed where the run has gone on after `position`, the last one of it that the caller knows, nor
        where it holds calls whose outcome is unknown, unless `on_unknown` says what becomes of them.
        """
        if position is not None and type(position) is not int:
            remedy = "Send the last position of the run that you know."
            raise Refused([Fault("/position", f"got {shown(position)}", remedy)], "Nothing was resumed.")
        told = family(context, run_id)
        check_owner(context.agent, run_id, owner_of(run_id, told[0]))
        with context.engine.view(context.tenant) as view:
            last = max(
                entry.position for entry in owned(run_id, entry_index.run_entries(view, run_id, view.head().position))
            )
        if position is not None and last > position:
            problem = f"it was continued since: its last entry is at {last}, not {position}"
            remedy = "See who records it; if nobody does, resume it again."
            raise Refused([Fault(f"run {run_id}", problem, remedy)], "Nothing was resumed.")
        Recording.of_family(told, on_unknown).check_settled()
        self.forget(context.tenant, run_id)  # whoever told it so far does not any more
        log = LocalLog(context)
        run, steps = interrupted(log, run_id, on_unknown=on_unknown, on_error="raise")
        claim_resumed(log, run, steps)
        run.recording = None  # the recorder has it
        told[0] = steps_of(context, run_id)
        self._keep(context, run, {part for _, body in told[0] for part in _parts_of(str(body.get("span")))})
        return {
            "run": run_id,
            "resumed_at": run.last_at,
            "runs": [[{"kind": kind, **body} for kind, body in each] for each in told],
        }

    def end(self, context: Context, run_id: str, key: str | None = None, **how: Any) -> dict[str, Any]:
        """End a run, with its answer."""
        error, status = how.get("error"), how.get("status", "done" if how.get("error") is None else "error")
        faults = []
        if status not in STATUSES:
            faults.append(Fault("/status", f"got {shown(status)}", f"Send {', '.join(STATUSES)}."))
        if error is not None and not isinstance(error, str | dict):
            faults.append(Fault("/error", f"got {shown(error)}", 'Send text, or {"type", "message"}.'))
        usage = how.get("usage")
        if usage is not None and not isinstance(usage, dict):
            faults.append(Fault("/usage", f"got {shown(usage)}", "Send counts by name."))
        if faults:
            raise Refused(faults, NOTHING_RECORDED)
        prefix, suffix = _span_parts(key, how)
        run, spans = self._open(context, run_id, prefix + suffix if key is not None else None)
        if key is not None and self._known(spans, prefix, suffix, key):
            return {"run": run_id, "status": status, "repeated": True}
        assert run is not None, "a run that has ended is not continued"
        with run.spanned(_spans(prefix + suffix) if key is not None else None):
            run.end(status, answer=how.get("answer"), error=sent_steps.error_of(error), usage=usage)
        self._runs.pop((context.tenant, run_id), None)
        return {"run": run_id, "status": status, "repeated": False}

    def forget(self, tenant: str, run_id: str) -> None:
        """Keep a run at hand no longer; what the log holds of it counts from now on."""
        found = self._runs.pop((tenant, run_id), None)
        if found is not None:
            found.run.release()

    def let_go_of_quiet(self, now: str) -> None:
        """Keep at hand no longer what nothing was heard of for long: whoever told it may be gone."""
        heard = moment.from_micros(moment.to_micros(now) - QUIET_MICROS)
        while self._runs and next(iter(self._runs.values())).heard_at < heard:
            self._runs.popitem(last=False)[1].run.release()

    def _heard(self, context: Context, run_id: str) -> _AtHand | None:
        """Return a run at hand of which something is told now."""
        key = (context.tenant, run_id)
        found = self._runs.get(key)
        if found is not None and context.engine.serves_several and _has_gone_on(context, found.run):
            self.forget(*key)
        found = self._runs.pop(key, None)
        if found is not None:
            found = self._runs[key] = found._replace(heard_at=context.clock.now())
        return found

    def _open(self, context: Context, run_id: str, span: str | None) -> tuple[Run | None, set[str]]:
        """Return a run with the spans it has; none for one that has ended with this very span."""
        found = self._heard(context, run_id)
        if found is not None:
            check_owner(context.agent, run_id, found.run.agent)
            return found.run, found.spans
        steps = steps_of(context, run_id)
        check_owner(context.agent, run_id, owner_of(run_id, steps))
        spans = {part for _, body in steps for part in _parts_of(str(body.get("span")))}
        if span in spans:
            return None, spans
        run = continued(LocalLog(context), run_id, ends=True, on_error="raise")
        self._keep(context, run, spans)
        return run, spans

    def _keep(self, context: Context, run: Run, spans: set[str]) -> None:
        self.forget(context.tenant, run.id)  # one whose beginning was not committed
        self._runs[(context.tenant, run.id)] = _AtHand(run, spans, context.clock.now())
        while len(self._runs) > self._runs_max:
            self._runs.popitem(last=False)[1].run.release()

    @staticmethod
    def _known(spans: set[str], prefix: str, suffix: str, key: str) -> bool:
        if prefix + suffix in spans:
            return True
        if prefix in spans:
            raise _used(key)
        return False

    @staticmethod
    def _repeated(context: Context, run_id: str, step: Any, span: str) -> dict[str, Any] | None:
        """Return the answer of a step that is in the log: a decision as it was made, a read as of when it was.

        None where only what a decision was to be made on is there, and the decision itself failed.
        """
        answer: dict[str, Any] = {"run": run_id, "repeated": True}
        kind = next(iter(step))
        if kind in _DECISIONS:
            record = _record_of(context, run_id)
            spans = (span, *_further(span))
            made = next((decision for decision in record.decisions if decision.span in spans), None)
            if made is None:
                return None
            answer["verdict"] = verdict_of(made, run_id)
        elif kind == "read":
            read = next((read for read in _record_of(context, run_id).reads if read.span == span), None)
            if read is not None and read.as_of is not None:
                past = LocalLog(context).reads.at(read.as_of, valid_at=read.effective)
                if _reads_besides(step):
                    about = {name: value for name, value in step["read"].items() if name != "verb"}
                    answer["found"] = past.ask(step["read"]["verb"], **about)
                elif read.entity is not None:
                    answer["snapshot"] = past.ask("show", read.entity)
        return answer


def _has_gone_on(context: Context, run: Run) -> bool:
    """Return whether the log holds a step of a run that is not known here, as another server recorded it."""
    with context.engine.view(context.tenant) as view:
        last = entry_index.last_of_run(view, run.id)
    body: Any = None if last is None or last.body is None else form.decode(last.body)
    step = body.get("step") if isinstance(body, dict) else None
    return isinstance(step, int) and step >= run.next_step


def receipts(context: Context, run: str) -> list[dict[str, str]]:
    """Return what the writes of a run were answered, by their keys: what a replay elsewhere answers them with."""
    with context.engine.view(context.tenant) as view:
        found = [(agent, key, kept) for agent, key, kept in view.receipts() if key.startswith(f"{run}.")]
    return [
        {"agent": agent, "key": key, "request": kept.request.hex(), "report": kept.report.decode()}
        for agent, key, kept in found
    ]


def claim(context: Context, told: Iterable[Mapping[str, str]]) -> None:
    """Keep in a copy of a ledger what the writes of its runs were answered."""
    with context.engine.transaction(context.tenant) as write:
        for one in told:
            if write.receipt(one["agent"], one["key"]) is None:
                kept = Receipt(bytes.fromhex(one["request"]), one["report"].encode(), b"")
                write.claim(one["agent"], one["key"], kept)


_DECISIONS: Final = ("decide", "select", "decided")
"""The kinds of step that decide something."""
_ANSWERED: Final = {
    "read": "snapshot",
    "decide": "verdict",
    "select": "verdict",
    "decided": "verdict",
    "store": "report",
    "change": "report",
}
"""What the answer to a step of a kind holds."""


def _reads_besides(step: Any) -> bool:
    """Return whether a step reads by another verb than `show`."""
    read = step.get("read")
    return isinstance(read, dict) and read.get("verb") != "show"


def _begun(started: Mapping[str, Any], *, repeated: bool) -> dict[str, Any]:
    """Return the answer to the beginning of a run."""
    basis = started.get("basis") or {}
    return {
        "run": started["run"],
        "basis": basis.get("position"),
        "log": basis.get("log"),
        "span": started.get("span"),
        "started_at": started.get("started_at"),
        "repeated": repeated,
    }


def _record_of(context: Context, run: str) -> RunRecord:
    with open_runs(context) as run_reader:
        return run_record(run_reader, run)


def _span_parts(key: str | None, told: Any) -> tuple[str, str]:
    if key is None:
        return "", ""
    said = form.encode(told)
    return sha256(key.encode()).hexdigest()[:_KEY_DIGITS], sha256(said).hexdigest()[: 16 - _KEY_DIGITS]


def _parts_of(span: str) -> tuple[str, str]:
    """Return a span, and the part of it that is made from a key where it has one."""
    return span, span[:_KEY_DIGITS]


def _further(span: str) -> tuple[str, ...]:
    return tuple(sha256(f"{span}/{number}".encode()).hexdigest()[:16] for number in range(1, FURTHER_MAX))


def _spans(first: str) -> Iterator[str]:
    """Yield the spans of what one call records: a reference that is read for a decision is a step of its own."""
    yield first
    for number in count(1):
        yield sha256(f"{first}/{number}".encode()).hexdigest()[:16]


def _fresh_spans(first: str, spans: set[str], taken: list[str]) -> Iterator[str]:
    """Yield the spans of what one call records that the run has none of yet, and keep those that were taken."""
    for span in _spans(first):
        if span not in spans:
            taken.append(span)
            yield span


def _check_same(run: Run, started: dict[str, Any], key: str) -> None:
    told = run.told()
    # A subject may be told as an entity's id, and is kept as its reference; keys may come in another order.
    if any(started.get(name) != value for name, value in told.items() if name not in ("subject", SHAPE)):
        raise _used(key)


def _used(key: str) -> Refused:
    remedy = "Send the first request again, or use a new key."
    return Refused([Fault("idempotency_key", f"{key!r} was used before, for another request", remedy)])

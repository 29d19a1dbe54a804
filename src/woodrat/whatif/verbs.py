"""The verb `what-if`: the outcomes of recorded decisions under a supposition.

It selects the decisions and makes the answer: all of them are counted for the first page, some are listed. A cursor
holds the counts, so a later page only repeats the decisions that it passes. Nothing is written, no model is called, and
no code of the agent runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain.reader.tracer import Tracer
from woodrat.explain.remake import SAME
from woodrat.ledger import entry_index
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ, open_reader, timestamp
from woodrat.ledger.pages import PageRequest, page_request, strange_cursor
from woodrat.records import dataclass
from woodrat.runs import steps
from woodrat.runs.reader.run_reader import RunReader
from woodrat.runs.steps import Decision
from woodrat.state.run_owner import is_part, owned
from woodrat.whatif.reader.supposer import Chosen, RunBeginning, Supposer
from woodrat.whatif.result import Supposed, SweepRow, Tally, WhatIf
from woodrat.whatif.supposition import Supposition, suppose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

DECISIONS_SHOWN: Final = 20
"""How many decisions one answer lists when nothing else is asked; all of them are counted."""


@dataclass(frozen=True, slots=True)
class WhatIfQuestion:
    """Which decisions are asked about, checked."""

    supposition: Supposition
    runs: tuple[str, ...] | None
    """The runs, each as RUN or RUN#stage; none means all there are."""
    stage: str | None
    agent: str | None
    subject_type: str | None
    since: str | None
    until: str | None
    same: bool
    """Whether decisions that would come out the same are listed."""
    page: PageRequest
    so_far: _SoFar | None
    """The counts of earlier pages; None on the first page."""


class _SoFar(NamedTuple):
    """The contents of a cursor: the end of the page before, and the counts of all decisions."""

    after: int
    """The position of the last decision that was listed."""
    left: int
    """How many more are listed."""
    same: int
    flip: int
    unknown: int
    unaffected: int


def ask(
    context: Context,
    run: object = None,
    *,
    stage: object = None,
    agent: object = None,
    subject_type: object = None,
    since: object = None,
    until: object = None,
    same: object = None,
    limit: object = DECISIONS_SHOWN,
    cursor: object = None,
    **supposed: object,
) -> WhatIfQuestion:
    """Return a question once everything about its form is in order; `Refused` says all that is not."""
    faults: list[Fault] = []
    supposition = suppose(faults, **supposed)
    runs = _run_names(run, faults)
    texts = {"stage": stage, "agent": agent, "subject_type": subject_type}
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            faults.append(Fault(name, f"expected text, got {shown(value)}", "Send it as text."))
    moments = {"since": since, "until": until}
    times: dict[str, str | None] = {}
    for name, value in moments.items():
        try:
            times[name] = None if value is None else timestamp(value, name)
        except Refused as refusal:
            faults += refusal.faults
    if same is not None and type(same) is not bool:
        faults.append(Fault("same", f"expected true or false, got {shown(same)}", "Send a boolean."))
    listed = runs is not None if same is None else same is True
    question: Any = None
    if not faults:
        asked: list[Any] = [list(runs or ()), runs is None, *texts.values(), *times.values(), listed]
        sweep = supposition.sweep
        question = ["what-if", *asked, supposition.question(), list(sweep.values) if sweep else None]
    page = page_request(context, question, limit, cursor, faults)
    return WhatIfQuestion(
        supposition=supposition,
        runs=runs,
        stage=cast("str | None", stage),
        agent=cast("str | None", agent),
        subject_type=cast("str | None", subject_type),
        since=times["since"],
        until=times["until"],
        same=listed,
        page=page,
        so_far=_so_far(page),
    )


def _so_far(page: PageRequest) -> _SoFar | None:
    place = page.place_of(*(int,) * len(_SoFar._fields))
    so_far = None if place is None else _SoFar(*place)
    if so_far is not None and (min(so_far) < 0 or not so_far.left):
        raise strange_cursor()
    return so_far


def _run_names(run: object, faults: list[Fault]) -> tuple[str, ...] | None:
    if run is None:
        return None
    names = [run] if isinstance(run, str) else list(run) if isinstance(run, list | tuple) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        remedy = "Name a run, a decision as RUN#stage, a list of them, or none for all."
        faults.append(Fault("run", f"expected runs, got {shown(run)}", remedy))
        return ()
    return tuple(dict.fromkeys(names))


# Which decisions


def _chosen(tracer: Tracer, asked: WhatIfQuestion, tell: Progress | None) -> Iterator[Chosen]:
    """Yield the selected decisions, by position, each once, after those of earlier pages."""
    known: dict[str, RunBeginning] = {}
    told: set[bytes] = set()
    after = -1 if asked.so_far is None else asked.so_far.after
    for done, entry in enumerate(_named(tracer, asked, after) if asked.runs is not None else _all(tracer, after)):
        if tell is not None and not done % 256:
            tell(entry.position + 1, tracer.through + 1)
        body: Any = None if entry.body is None else form.decode(entry.body)
        run = body.get("run") if isinstance(body, dict) else None
        if not isinstance(run, str):
            continue
        if entry.kind == "run.started":
            if after >= 0:
                continue  # it may have begun before that, too
            begun = known.setdefault(run, RunBeginning(steps.text(body.get("agent")), steps.text(body.get("subject"))))
            if begun.agent != body.get("agent"):  # two agents say that it is theirs
                record = tracer.run_reader.bare(run)
                known[run] = RunBeginning(record.agent, record.subject)
            continue
        if not _fits(asked, run, body):
            continue
        if run not in known:
            entries = entry_index.run_entries(tracer.view, run, tracer.through)
            record = tracer.run_reader.bare(run, entries)
            known[run] = RunBeginning(record.agent, record.subject)
            before = (entry for entry in entries if entry.position <= after and entry.kind == "run.decided")
            told.update(digest(entry.kind, entry.body) for entry in before if entry.body is not None)
        begun = known[run]
        if not is_part(entry.kind, body, begun.agent):
            continue
        if asked.agent not in (None, begun.agent):
            continue
        if asked.subject_type is not None and (begun.subject or "").partition("/")[0] != asked.subject_type:
            continue
        assert entry.body is not None
        name = digest(entry.kind, entry.body)
        if name not in told:  # an import may have said it twice
            told.add(name)
            decision = steps.part_of(entry.kind, entry.position, body)
            assert isinstance(decision, Decision)
            yield Chosen(run, begun, decision)


def _all(tracer: Tracer, after: int) -> Iterator[Entry]:
    return tracer.view.entries(after, tracer.through, {"run.started", "run.decided"})


def _named(tracer: Tracer, asked: WhatIfQuestion, after: int) -> list[Entry]:
    """Return the decisions after a position of the runs that are named, with how these began, by position."""
    found: dict[int, Entry] = {}
    missing: list[str] = []
    for name in asked.runs or ():
        id, _, stage = name.partition("#")
        entries = owned(id, entry_index.run_entries(tracer.view, id, tracer.through))
        if not entries:
            missing.append(id)
            continue
        decided = [entry for entry in entries if entry.kind == "run.decided" and entry.body is not None]
        stages = [steps.text(form.decode(entry.body).get("stage")) for entry in decided if entry.body is not None]
        if stage and stage not in stages:
            known = ", ".join(dict.fromkeys(filter(None, stages))) or "nothing"
            raise NotFound(
                f"{id} has no decision {shown(stage)}. Nothing was changed. It decided {known}.",
                {"run": id, "stage": stage},
            )
        begun = [entry for entry in entries if entry.kind == "run.started"]
        found.update((entry.position, entry) for entry in (*begun, *decided) if entry.position > after)
    if missing:
        names = ", ".join(missing[:20]) + (f" and {len(missing) - 20} more" if len(missing) > 20 else "")
        raise NotFound(
            f"There is no run {names} at position {tracer.through}. Nothing was changed. `runs list` lists them.",
            {"run": missing[0], "runs": missing, "position": tracer.through},
        )
    return [found[position] for position in sorted(found)]


def _fits(asked: WhatIfQuestion, run: str, body: Mapping[str, Any]) -> bool:
    stage = steps.text(body.get("stage")) or ""
    if asked.stage not in (None, stage):
        return False
    if asked.runs is not None and run not in asked.runs and f"{run}#{stage}" not in asked.runs:
        return False
    at = steps.text(body.get("started_at")) or ""
    return (asked.since is None or at >= asked.since) and (asked.until is None or at < asked.until)


# The question


def what_if(context: Context, asked: WhatIfQuestion, progress: Progress | None = None) -> WhatIf:
    """Return the outcomes of the selected decisions, at the context's moment."""
    # Indexes that trail the log are not brought up to date here, as that would write.
    with open_reader(asked.page.pin(context)) as reader:
        tracer = Tracer(RunReader(reader))
        supposer = Supposer(tracer, asked.supposition)
        answer = (_first_page if asked.so_far is None else _later_page)(supposer, asked, progress)
    if progress is not None:
        progress(answer.position + 1, answer.position + 1)
    return answer


def _later_page(supposer: Supposer, asked: WhatIfQuestion, progress: Progress | None) -> WhatIf:
    """Return a later page; the counts of the first page still hold, and are not repeated."""
    so_far = asked.so_far
    assert so_far is not None
    listed: list[Supposed] = []
    for chosen in _chosen(supposer.tracer, asked, progress):
        found, _ = supposer.made(chosen)
        if _is_listed(found, asked):
            listed.append(found)
            if len(listed) == min(asked.page.limit, so_far.left):
                break
    return _page(supposer, asked, listed, so_far)


def _first_page(supposer: Supposer, asked: WhatIfQuestion, progress: Progress | None) -> WhatIf:
    """Return the counts of all decisions, and the first of them."""
    sweep = asked.supposition.sweep
    tally = None if sweep is None else Tally(sweep)
    counts = dict.fromkeys(("same", "flip", "unknown"), 0)
    listed: list[Supposed] = []
    unaffected, left = 0, 0
    for chosen in _chosen(supposer.tracer, asked, progress):
        found, stretches = supposer.made(chosen)
        if tally is not None:
            if not found.ranges:
                unaffected += 1
                continue
            for start, stop, again in stretches:
                tally.add(start, stop, again)
        counts[found.outcome] += 1
        if _is_listed(found, asked):
            left += 1
            if len(listed) < asked.page.limit:
                listed.append(found)
    notes = _in_vain(supposer, any(counts.values()) or unaffected > 0)
    rows = () if tally is None else tuple(tally.rows())
    return _page(supposer, asked, listed, _SoFar(-1, left, **counts, unaffected=unaffected), rows, notes)


def _is_listed(found: Supposed, asked: WhatIfQuestion) -> bool:
    concerned = asked.supposition.sweep is None or bool(found.ranges)
    return concerned and (asked.same or found.outcome != SAME)


def _page(
    supposer: Supposer,
    asked: WhatIfQuestion,
    listed: Sequence[Supposed],
    so_far: _SoFar,
    rows: tuple[SweepRow, ...] = (),
    notes: tuple[str, ...] = (),
) -> WhatIf:
    tracer, cursor = supposer.tracer, None
    left = so_far.left - len(listed)
    if left > 0 and len(listed) == asked.page.limit:
        cursor = asked.page.cursor_at(so_far._replace(after=listed[-1].decision.position, left=left))
    return WhatIf(
        supposition=asked.supposition,
        decisions=tuple(listed),
        same=so_far.same,
        flip=so_far.flip,
        unknown=so_far.unknown,
        rows=rows,
        unaffected=so_far.unaffected,
        notes=notes,
        position=tracer.through,
        cursor=cursor,
        matched=tuple(tracer.reader.matches.values()),
    )


def _in_vain(supposer: Supposer, any_decision: bool) -> tuple[str, ...]:
    """Return the suppositions without effect; a threshold that no rule has is refused."""
    supposition, met, tracer = supposer.supposition, supposer.met, supposer.tracer
    if not any_decision:
        return ("There is no decision to ask about.",)
    lost = [name for name in supposition.thresholds if f"threshold {name}" not in met]
    if lost:
        remedy = "Name a stage, a fact and an operator that stand in a recorded rule; `runs show` shows the rules."
        problem = "no rule of these decisions that is stored as data has such a condition"
        raise Refused([Fault(f"thresholds {name}", problem, remedy) for name in lost], NO_READ)
    fields = {f"{ref}#{name}": f"{find_ref(tracer.reader, ref)}#{name}" for ref, name, _ in supposition.field_values()}
    if supposition.sweep is not None:
        name = supposition.sweep.name
        swept = supposer.overlay.swept_field
        fields[name] = name if swept is None else f"{swept[0]}#{swept[1]}"
    names = {**{name: name for name in supposition.facts}, **fields}
    notes = [f"No decision looked at {shown_as}." for shown_as, name in names.items() if name not in met]
    notes += [f"No decision has stage {stage}." for stage in supposition.rules if f"rules {stage}" not in met]
    return tuple(notes)

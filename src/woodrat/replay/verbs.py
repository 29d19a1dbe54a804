"""Replay: today's code on yesterday's recording, compared step by step; nothing is written.

A `Playback` answers each run, and `Replayed` is the result. Every write of the agent is compared with the recorded one
and then dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from woodrat.canon import form
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.moments import open_reader
from woodrat.replay.reader import RelatedRuns, ReplaySession, replay_one
from woodrat.replay.result import Replayed, ReplayedRun
from woodrat.runs import index, values
from woodrat.runs.reader import lists as run_lists
from woodrat.runs.record import RunRecord
from woodrat.runs.recorder import threads
from woodrat.runs.recorder.recording import in_order
from woodrat.runs.summary import RunSummary
from woodrat.state.run_owner import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry
    from woodrat.runs.recorder.log import LocalLog
    from woodrat.runs.recorder.run import Run

NOTHING_REPLAYED = "Nothing was replayed."

STEPS_MAX: Final = 10_000
"""Default limit of an agent's steps in one run."""
JOBS_MAX: Final = 256
"""Most processes that replay at the same time."""
TIMEOUT_SECONDS_MAX: Final = 86_400
"""Longest time that a run may be given."""
UNKNOWN_SAID_MAX: Final = 5
"""Most unknown runs listed in an error."""


def replay(
    log: LocalLog,
    runs: str | RunRecord | RunSummary | Iterable[str | RunRecord | RunSummary],
    agent: Callable[..., Any],
    *,
    live: Iterable[str] = (),
    progress: Progress | None = None,
    steps_max: int = STEPS_MAX,
    jobs: int | None = None,
    timeout_seconds: float | None = None,
    presented: Callable[[Run], Any] | None = None,
    function: str | None = None,
) -> Replayed:
    """Run an agent's function again on recorded runs and return the comparison of each; nothing is written.

    `presented` makes the function's argument from the run; `function` is the name that the agent was imported by.
    """
    ids = ids_of(runs)
    allowed = frozenset([live] if isinstance(live, str) else live)
    faults = [Fault("live", f"got {shown(name)}", "Name tools as text.") for name in allowed if type(name) is not str]
    if not callable(agent):
        problem = f"expected a function, got {values.type_name(agent)}"
        faults.append(Fault("agent", problem, "Send the agent's function."))
    if type(steps_max) is not int or steps_max < 1:
        faults.append(Fault("steps_max", f"got {shown(steps_max)}", "Send a number above 0."))
    faults += _spread_faults(jobs, timeout_seconds)
    apart = jobs is not None or timeout_seconds is not None
    if apart and callable(agent):
        from woodrat.replay.workers import processes as replay_workers

        function = replay_workers.name_of(agent) if function is None else function
        faults += replay_workers.plan_faults(log.context, function, log.opener)
    if faults:
        raise Refused(faults, NOTHING_REPLAYED)
    _check(log.context, ids)
    around = find_related(log.context, ids)
    if apart:
        from woodrat.replay.workers import processes as replay_workers

        path = log.context.engine.path or ""
        plan = replay_workers.ProcessConfig(
            path,
            log.context.tenant,
            log.agent,
            log.opener or "",
            function or "",
            allowed,
            steps_max,
            presented,
            threads.threads_are_carried(),
        )
        told: dict[str, Any] = {"jobs": jobs or 1, "timeout_seconds": timeout_seconds, "progress": progress}
        spread = replay_workers.spread(log.context, ids, plan, around, **told)
        if progress is not None:
            progress(len(spread), len(ids))
        return Replayed(tuple(spread))
    found: list[ReplayedRun] = []
    for id in ids:
        if progress is not None:
            progress(len(found), len(ids))
        found.append(replay_one(log, id, agent, ReplaySession(allowed, steps_max, around), presented))
    if progress is not None:
        progress(len(found), len(ids))
    return Replayed(tuple(found))


def _spread_faults(jobs: object, timeout_seconds: object) -> list[Fault]:
    faults: list[Fault] = []
    if jobs is not None and (type(jobs) is not int or not 1 <= jobs <= JOBS_MAX):
        faults.append(Fault("jobs", f"got {shown(jobs)}", f"Send 1 to {JOBS_MAX} processes."))
    number = timeout_seconds if type(timeout_seconds) in (int, float) else 0
    if timeout_seconds is not None and not 0 < cast("float", number) <= TIMEOUT_SECONDS_MAX:
        remedy = f"Send a number of seconds above 0, {TIMEOUT_SECONDS_MAX} at most."
        faults.append(Fault("timeout_seconds", f"got {shown(timeout_seconds)}", remedy))
    return faults


def outer_runs(context: Context, **asked: Any) -> list[str]:
    """Return the runs that `Past.runs` finds, the first recorded first; child runs are replayed with their parents."""
    from woodrat.ledger.pages import PAGE_MAX

    page = run_lists.runs_page(context, limit=PAGE_MAX, cursor=None, **asked)
    return [record.id for record in page if record.parent is None][::-1]


def ids_of(runs: object) -> list[str]:
    """Return the runs to be replayed by id, each once."""
    given = [runs] if isinstance(runs, str | RunRecord | RunSummary) else runs
    if not isinstance(given, Iterable):
        problem = f"expected a run's id or several, got {shown(runs)}"
        raise Refused([Fault("runs", problem, "Send ids as text, or run records.")], NOTHING_REPLAYED)
    found: dict[str, None] = {}
    for item in given:
        id = item.id if isinstance(item, RunRecord | RunSummary) else item
        if not isinstance(id, str):
            problem = f"expected a run's id, got {shown(id)}"
            raise Refused([Fault("runs", problem, "Send it as text.")], NOTHING_REPLAYED)
        found[id] = None
    return list(found)


def _check(context: Context, ids: Sequence[str]) -> None:
    """Refuse unknown runs, and runs without a start."""
    unknown: list[str] = []
    faults: list[Fault] = []
    with context.engine.view(context.tenant) as view:
        through = view.head().position
        for id in ids:
            steps = in_order(entry_index.run_entries(view, id, through))
            if not steps:
                unknown.append(id)
            elif steps[0][0] != "run.started":
                faults.append(Fault(f"run {id}", "its start is not in the log", "Leave it out."))
    if unknown:
        named = ", ".join(values.text(id, 64) for id in unknown[:UNKNOWN_SAID_MAX]) + (
            " …" if len(unknown) > UNKNOWN_SAID_MAX else ""
        )
        told = f"There is no run {named} here" if len(unknown) == 1 else f"There are no runs {named} here"
        raise NotFound(f"{told}. {NOTHING_REPLAYED} `runs list` lists them.", {"runs": unknown})
    if faults:
        raise Refused(faults, NOTHING_REPLAYED)


def find_related(context: Context, ids: Sequence[str]) -> RelatedRuns:
    """Find the writes of the runs, and their child runs."""
    with open_reader(context) as reader:
        view, through, names = reader.view, reader.asof.position, list(ids)
        kin: dict[str, Sequence[str]] = {}
        writes: dict[str, dict[int, int]] = {}
        met = set(names)
        for name in names:  # it grows meanwhile
            if written := _written(view, name, index.written(view, name, through)):
                writes[name] = written
            inside = index.inside(view, name, through)
            if inside:
                kin[name] = inside
                names += [run for run in inside if run not in met]
                met.update(inside)
    return RelatedRuns(kin, writes)


def _written(view: View, run: str, entries: Sequence[Entry]) -> dict[int, int]:
    """Return the writes of a run, each with its first position; statements of other agents about the run are not
    included."""
    if not entries:
        return {}
    said = [
        (entry.kind, form.decode(entry.body))
        for entry in entry_index.run_entries(view, run, view.head().position)
        if entry.body
    ]
    owner = owner_of(run, [(kind, body) for kind, body in said if isinstance(body, dict)])
    found: dict[int, int] = {}
    for entry in entries:
        if form.decode(entry.body or b"{}").get("agent") == owner:
            found.setdefault(entry.envelope.write, entry.position)
    return found

"""Why: the decisions about a subject, the latest first, each with the run it was made in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault
from woodrat.ledger.pages import Page, page_request
from woodrat.record_json import Record, derived
from woodrat.records import dataclass
from woodrat.runs import steps
from woodrat.runs.facts import decision_fact
from woodrat.runs.reader.run_reader import RunReader, named_ref, open_runs
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision
from woodrat.runs.summary import RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.state.fact import Fact


@dataclass(frozen=True, slots=True)
class Reason(Record):
    """One decision about a subject, with the run it was made in and what that run answered."""

    COMPACT: ClassVar = ("run", "agent", "query", "subject", "status", "verdict", "decided_at", "decision", "answer")
    """What a list shows of it."""

    run: str
    """The run."""
    agent: str | None
    """Who decided."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity the run is about; another one when its evidence was read from the entity asked about."""
    principal: str | None
    """On whose behalf."""
    conversation: str | None
    """Which conversation the run is part of."""
    status: str
    """How the run stands."""
    verdict: str | None
    """What was thought of it."""
    decision: Decision
    """What was decided, by which rule and on what evidence."""
    answer: Json
    """What the run answered."""

    def facts(self) -> dict[str, Fact]:
        """Return what was decided as a fact that another decision can be based on, under the name of the stage."""
        made = self.decision
        return {made.stage: decision_fact(made.stage, made.chosen, self.run, made.span)}

    @derived
    def position(self) -> int:
        """Where the decision stands in the log."""
        return self.decision.position

    @derived
    def decided_at(self) -> str | None:
        """When it was made."""
        return self.decision.started_at


Explain = Callable[[Decision], Decision]
"""Adds to a decision what the log says of its evidence."""


def why_page(
    context: Context,
    ref: object,
    *,
    limit: object,
    cursor: object,
    explain: Callable[[RunReader], Explain],
) -> Page[Reason]:
    """Return the decisions about a subject, the latest first: those of runs about it, and those that leaned on it.

    A page costs what it shows, however many runs there are about the subject. `explain` completes its decisions.
    """
    faults: list[Fault] = []
    named = named_ref("ref", ref, faults)
    if ref is None:
        faults.append(Fault("ref", "got null", "Name the entity that was decided about, as type/key."))
    request = page_request(context, ["why", str(named)], limit, cursor, faults)
    assert named is not None

    after = request.place_of(str, int)
    with open_runs(context, request.position) as run_reader:
        decided = list(islice(_decided_about(run_reader, named, after, request.limit + 1), request.limit + 1))
        complete = explain(run_reader)
        reasons = tuple(
            Reason(decision=complete(each.decision), run=each.run, **each.about) for each in decided[: request.limit]
        )
    end = decided[request.limit - 1].place if len(decided) > request.limit else None
    matched = run_reader.reader.matched
    page = Page(reasons, None if end is None else request.cursor_at(end), request.position, matched=matched)
    return page.followed_by(lambda: why_page(context, ref, limit=limit, cursor=page.cursor, explain=explain))


class _Decided(NamedTuple):
    """A decision that was found."""

    place: tuple[str, int]
    """Its time and position."""
    run: str
    """Its run."""
    about: dict[str, Any]
    """What a reason says of the run."""
    decision: Decision
    """The decision."""


def _decided_about(
    run_reader: RunReader, ref: str | Ref, after: tuple[Any, ...] | None, count: int
) -> Iterator[_Decided]:
    """Yield the decisions about a subject after a place, the latest first; they are looked up so many at a time."""
    members = run_reader.members(ref)
    names = {str(ref) for ref in members}
    records: dict[str, tuple[RunRecord, dict[int, Decision]]] = {}
    # One that rests on several members of a group is listed under each.
    places = (place for place, _ in groupby(run_reader.decided(members, after)))
    while some := list(islice(places, count)):
        bodies = {at: form.decode(body) for at, (_, body) in run_reader.view.bodies([at for _, at in some]).items()}
        rows = run_reader.rows({body["run"] for body in bodies.values() if isinstance(body.get("run"), str)})
        for place in some:
            at, body = place[1], bodies.get(place[1])
            run = None if body is None else body.get("run")
            if body is None or not isinstance(run, str):
                continue
            row = rows.get(run)
            made = steps.decision_of(body, at)
            if (
                row is not None
                and row.plain
                and not row.summary.cut
                and body.get("agent") == row.summary.agent
                and not any("span" in origin for origin in made.origins)  # its call is told with it
            ):
                if row.summary.subject in names or not names.isdisjoint(made.entities):
                    yield _Decided(place, run, _about(row.summary), made)
                continue
            if run not in records:
                record = run_reader.record(run)
                records[run] = record, {each.position: each for each in record.decisions}
            record, decisions = records[run]
            decision = decisions.get(at)
            if decision is not None and (record.subject in names or names.intersection(decision.entities)):
                yield _Decided(place, run, _about(record), decision)


_ABOUT: Final = ("agent", "query", "subject", "principal", "conversation", "status", "verdict", "answer")
"""What a reason says of a run, under the names that its record has."""


def _about(run: RunRecord | RunSummary) -> dict[str, Any]:
    return {name: getattr(run, name) for name in _ABOUT}

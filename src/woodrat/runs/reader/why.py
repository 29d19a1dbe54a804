"""Why: the decisions about a subject, the latest first, each with the run it was made in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault
from woodrat.ledger.pages import Page, page_request
from woodrat.record_json import Record, derived
from woodrat.records import Deferrable, dataclass
from woodrat.runs import steps
from woodrat.runs.facts import decision_fact
from woodrat.runs.index.grounds import evidence_text, grounds_at
from woodrat.runs.reader.recounter import Recounter, named_ref, open_recounter
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.state.fact import Fact


@dataclass(frozen=True, slots=True)
class Reason(Deferrable, Record):
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


Complete = Callable[[Decision], Decision]
"""Adds to what a decision tells; it asks no engine any more."""
Origins = Callable[[], Iterable[Mapping[str, Any]]]
"""Returns where the facts of a decision came from."""
Explainer = Callable[[Sequence[str], Origins], Complete]
"""Looks up what belongs to a decision by what it was made on (`evidence_text`); returns what adds it."""


def _as_it_is(_: Sequence[str], __: Origins) -> Complete:
    return lambda decision: decision


def why_page(
    context: Context,
    ref: object,
    *,
    limit: object,
    cursor: object,
    explain: Callable[[Recounter], Explainer] = lambda _: _as_it_is,
) -> Page[Reason]:
    """Return the decisions about a subject, the latest first: those of runs about it, and those that leaned on it.

    A page costs what it tells, however many runs there are about the subject. `explain` adds to that: what it needs is
    looked up with the page, and the decisions are made when they are looked at.
    """
    faults: list[Fault] = []
    named = named_ref("ref", ref, faults)
    if ref is None:
        faults.append(Fault("ref", "got null", "Name the entity that was decided about, as type/key."))
    request = page_request(context, ["why", str(named)], limit, cursor, faults)
    assert named is not None

    after = request.place_of(str, int)
    with open_recounter(context, request.position) as recounter:
        decided = list(islice(_decided_about(recounter, named, after, request.limit + 1), request.limit + 1))
        explainer = explain(recounter)
        reasons = tuple(_reason(each, explainer(each.grounds, each.origins)) for each in decided[: request.limit])
    end = decided[request.limit - 1].place if len(decided) > request.limit else None
    matched = recounter.reader.matched
    page = Page(reasons, None if end is None else request.cursor_at(end), request.position, matched=matched)
    return page.followed_by(lambda: why_page(context, ref, limit=limit, cursor=page.cursor, explain=explain))


class _Decided(NamedTuple):
    """A decision that was found."""

    place: tuple[str, int]
    """Its time and position."""
    id: str
    """Its run."""
    run: dict[str, Any]
    """What is told of the run."""
    grounds: Sequence[str]
    """What it was made on, as texts (`evidence_text`)."""
    origins: Origins
    """Returns where its facts came from."""
    make: Callable[[], Decision]
    """Returns it."""


def _decided_about(
    recounter: Recounter, ref: str | Ref, after: tuple[Any, ...] | None, count: int
) -> Iterator[_Decided]:
    """Yield the decisions about a subject after a place, the latest first; they are looked up so many at a time."""
    members = recounter.members(ref)
    names = {str(ref) for ref in members}
    records: dict[str, tuple[RunRecord, dict[int, Decision]]] = {}
    # One that rests on the subject, of a run about it, is listed twice.
    places = (place for place, _ in groupby(recounter.decided(members, after)))
    while some := list(islice(places, count)):
        positions = [position for _, position in some]
        bodies = recounter.view.bodies(positions)
        grounds = grounds_at(recounter.index, positions)
        lines = recounter.lines({each.run for each in grounds.values()})
        for place in some:
            at = place[1]
            made, body = grounds.get(at), bodies.get(at)
            if made is None or body is None:
                continue
            line = lines.get(made.run)
            if (
                line is not None
                and line.plain
                and not line["cut"]
                and made.agent == line["agent"]
                and not made.has_calls
            ):
                if line["subject"] in names or not names.isdisjoint(made.entities):
                    origins, make = partial(_origins_in, body[1]), partial(_decision_in, at, body[1])
                    yield _Decided(place, made.run, line.some(_TOLD), made.texts, origins, make)
                continue
            if made.run not in records:
                record = recounter.judged(made.run)
                records[made.run] = record, {each.position: each for each in record.decisions}
            record, decisions = records[made.run]
            decision = decisions.get(at)
            if decision is not None and (record.subject in names or names.intersection(decision.entities)):
                yield _read_decision(record, place, decision)


_TOLD: Final = ("agent", "query", "subject", "principal", "conversation", "status", "verdict", "answer")
"""What a reason tells of a run under the same names."""


def _decision_in(position: int, body: bytes) -> Decision:
    decision = steps.part_of("run.decided", position, form.decode(body))
    assert isinstance(decision, Decision)
    return decision


def _origins_in(body: bytes) -> Iterable[Mapping[str, Any]]:
    return steps.decision_origins(form.decode(body)).all


def _read_decision(record: RunRecord, place: tuple[str, int], decision: Decision) -> _Decided:
    run = {name: getattr(record, name) for name in _TOLD}
    return _Decided(place, record.id, run, texts_of(decision), lambda: decision.origins, lambda: decision)


def texts_of(decision: Decision) -> list[str]:
    """Return what a decision was made on, as texts (`evidence_text`)."""
    texts = (evidence_text(origin) for origin in decision.origins)
    return list(dict.fromkeys(text for text in texts if text is not None))


def _reason(found: _Decided, complete: Complete) -> Reason:
    make = found.make
    return Reason.deferred(lambda _: {"decision": complete(make())}, run=found.id, **found.run)

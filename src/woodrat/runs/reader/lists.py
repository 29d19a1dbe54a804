"""Lists of runs: which runs fit a question, and a page of their summaries."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.moments import NO_READ, timestamp
from woodrat.ledger.pages import Page, page_request
from woodrat.records import dataclass
from woodrat.runs import steps
from woodrat.runs.index.candidates import AllOf, AnyOf, Few, Listed, Order, walk, window
from woodrat.runs.index.listing import ANCESTORS_MAX
from woodrat.runs.index.terms import (
    EVERY,
    STATUS,
    TALK,
    UNSETTLED,
    subject_term,
    value_term,
)
from woodrat.runs.reader.run_reader import RunReader, named_ref, open_runs
from woodrat.runs.record import RunRecord, status_of
from woodrat.runs.recorder import current
from woodrat.runs.run_fields import RUNNING, STATUSES
from woodrat.runs.summary import RunSummary, summary_of
from woodrat.state.run_owner import owned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.log.entry import Entry
    from woodrat.runs.index.candidates import Stream
    from woodrat.state.match import Match


@dataclass(frozen=True, slots=True)
class RunQuery:
    """A question for runs, checked."""

    equal: dict[str, str]
    """What their beginning must say, by key."""
    subject: str | Ref | None
    session: str | Ref | None
    pipeline: str | Ref | None
    since: str | None
    until: str | None
    status: str | None
    verdict: str | None
    question: list[Json]
    """All of it as plain JSON; a cursor belongs to it."""


def ask_runs(
    collected: list[Fault] | None = None,
    /,
    *,
    agent: object = None,
    query: object = None,
    subject: object = None,
    conversation: object = None,
    principal: object = None,
    session: object = None,
    pipeline: object = None,
    since: object = None,
    until: object = None,
    status: object = None,
    verdict: object = None,
) -> RunQuery:
    """Return a question for runs once everything about it is in order; `Refused` says all that is not.

    With `collected`, the faults are added there instead, for whoever has more to check.
    """
    faults: list[Fault] = [] if collected is None else collected
    texts = {
        "agent": agent,
        "query": query,
        "conversation": conversation,
        "principal": principal,
        "verdict": verdict,
    }
    equal = {name: _text(name, value, faults) for name, value in texts.items() if value is not None}
    refs = {"subject": subject, "session": session, "pipeline": pipeline}
    named = {name: named_ref(name, value, faults) for name, value in refs.items()}
    times = {"since": since, "until": until}
    fixed = {name: None if value is None else _time(name, value, faults) for name, value in times.items()}
    if status is not None and status not in STATUSES:
        known = ", ".join(sorted(STATUSES))
        faults.append(Fault("status", f"there is no status {shown(status)}", f"Send one of {known}."))
    asked: list[Json] = [[name, value] for name, value in sorted(equal.items())]
    asked += [[name, None if value is None else str(value)] for name, value in sorted({**named, **fixed}.items())]
    if faults and collected is None:
        raise Refused(faults, NO_READ)
    judged = equal.pop("verdict", None)
    return RunQuery(
        equal=equal,
        **named,
        since=fixed["since"],
        until=fixed["until"],
        status=status if isinstance(status, str) else None,
        verdict=judged,
        question=["runs", *asked, status if isinstance(status, str) else None],
    )


def _text(name: str, value: object, faults: list[Fault]) -> str:
    if not isinstance(value, str):
        faults.append(Fault(name, f"expected text, got {shown(value)}", "Send it as text."))
        return ""
    faults += form.faults(value, name)
    return value


def _time(name: str, value: object, faults: list[Fault]) -> str | None:
    try:
        return timestamp(value, name)
    except Refused as refusal:
        faults += refusal.faults
        return None


def runs_page(context: Context, *, limit: object, cursor: object, **filters: Any) -> Page[RunSummary]:
    """Return the runs that fit a question, those the log heard of last first.

    A page costs what it shows: runs are found by an index, whatever is asked for, which has a row of each that has
    ended; others are read. With a valid time, those asked for by verdict are read one after the other, since
    evaluations are merged.
    """
    faults: list[Fault] = []
    asked = ask_runs(faults, **filters)
    request = page_request(context, asked.question, limit, cursor, faults)
    (before,) = request.place_of(int) or (None,)
    with open_runs(context, request.position) as run_reader:
        matches = list(islice(summaries(run_reader, asked, before, request.limit + 1), request.limit + 1))
    listed = tuple(summary for _, summary in matches[: request.limit])
    cursor = request.cursor_at([matches[request.limit - 1][0]]) if len(matches) > request.limit else None
    page = Page(listed, cursor, request.position, matched=_one_match(run_reader))
    return page.followed_by(lambda: runs_page(context, limit=limit, cursor=page.cursor, **filters))


def _one_match(run_reader: RunReader) -> Match | None:
    """Return how the entity was found that was asked for; where several were not named by key, that is refused."""
    matches = run_reader.reader.matches
    if len(matches) > 1:
        means = "; ".join(f"{match.asked} means {match.entity}" for match in matches.values())
        problem = f"several references are no keys: {means}"
        raise Refused([Fault("subject", problem, "Name all of them but one by key.")], NO_READ)
    return run_reader.reader.matched


def matching(
    run_reader: RunReader,
    asked: RunQuery,
    *,
    before: int | None = None,
    oldest_first: bool = False,
    only: Iterable[str] | None = None,
) -> Iterator[tuple[int, RunRecord]]:
    """Yield every run that fits a question, once and with its place: where the log first heard how it began.

    `before` is the place of a run, and only those before it are looked at; `only` names the runs to look at, where
    they are known.
    """
    end = run_reader.through + 1 if before is None else min(before, run_reader.through + 1)
    fits = _Fits(run_reader, asked)
    if only is not None:
        named = sorted(run_reader.candidates(only), reverse=not oldest_first)
        candidates: Iterator[tuple[int, str]] = ((place, id) for place, id in named if place < end)
    else:
        candidates = _listed(run_reader, asked, fits, Order(run_reader.lists, oldest_first), end)
    for place, id in candidates:
        record = _looked_at(run_reader, fits, place, id)
        if record is not None:
            yield place, record


def _looked_at(run_reader: RunReader, fits: _Fits, place: int, id: str) -> RunRecord | None:
    """Return the record of a candidate, if its place is this one and it fits."""
    entries = entry_index.run_entries(run_reader.view, id, run_reader.through)
    began = owned(id, (entry for entry in entries if entry.kind == "run.started" and entry.body is not None))
    first = min(began, key=lambda entry: entry.position, default=None)
    if (
        first is None
        or first.position != place
        or not fits.is_about(first)
        or not fits.stands(status_of(id, entries, recording=current.is_recorded(id)))
    ):
        return None
    record = run_reader.record(id, entries)
    return record if fits(record) else None


def summaries(
    run_reader: RunReader, asked: RunQuery, before: int | None, count: int
) -> Iterator[tuple[int, RunSummary]]:
    """Yield what lists say of every run before a place that fits a question, the latest first, so many at a time."""
    end = run_reader.through + 1 if before is None else min(before, run_reader.through + 1)
    fits = _Fits(run_reader, asked)
    candidates = _listed(run_reader, asked, fits, Order(run_reader.lists, oldest_first=False), end)
    while some := list(islice(candidates, count)):
        rows = run_reader.rows(id for _, id in some)
        for place, id in some:
            row = rows.get(id)
            if row is not None:
                # A run with a row began once, so that its place and its subject are what its rows say.
                if fits.stands(row.summary.status) and fits(row.summary):
                    yield place, row.summary
                continue
            record = _looked_at(run_reader, fits, place, id)
            if record is not None:
                yield place, summary_of(record)


def _listed(run_reader: RunReader, asked: RunQuery, fits: _Fits, order: Order, end: int) -> Iterator[tuple[int, str]]:
    """Yield the runs before a place that may fit a question."""
    streams = list(_streams(run_reader, asked, fits, order))
    streams = streams or [Listed(order, EVERY)]
    stream: Stream = AllOf(order, streams) if len(streams) > 1 else streams[0]
    for place, id in walk(order, stream, 0 if order.oldest_first else end - 1):
        if place < end:
            yield place, id


def _streams(run_reader: RunReader, asked: RunQuery, fits: _Fits, order: Order) -> Iterator[Stream]:
    """Yield a stream of candidates for each part of a question."""

    def either(name: str, streams: Iterable[Stream]) -> Stream:
        # What only all entries of a run tell may be anything.
        return AnyOf(order, [*streams, Listed(order, UNSETTLED + "agent"), Listed(order, UNSETTLED + name)])

    for name, value in asked.equal.items():
        yield either(name, [Listed(order, value_term(name, value))])
    if fits.subjects is not None:
        yield AnyOf(order, [Listed(order, subject_term(ref.digest)) for ref in fits.subjects])
    if asked.status == RUNNING:
        yield Few(order, run_reader.candidates(current.recorded_runs()))
    elif asked.status is not None:
        yield either("status", [Listed(order, STATUS + asked.status)])
    if asked.verdict is not None and run_reader.reader.asof.effective is None:
        yield either("verdict", [Listed(order, value_term("verdict", asked.verdict))])
    if fits.session is not None:
        names, runs, conversation = fits.session
        by_name = [Listed(order, value_term("session", name)) for name in sorted(names)]
        by_talk = [] if conversation is None else [Listed(order, value_term(TALK, conversation))]
        yield either("session", [*by_name, *by_talk, Few(order, run_reader.candidates(runs))])
    if fits.pipelines is not None:
        yield either("pipeline", [Listed(order, value_term("pipeline", name)) for name in sorted(fits.pipelines)])
    if asked.since is not None or asked.until is not None:
        yield either("started_at", [window(order, asked.since, asked.until)])


def _says(record: RunRecord | RunSummary, name: str, value: str) -> bool:
    """Return whether a record says a thing; its agent is its owner, and whoever is named in its trace."""
    return bool(getattr(record, name) == value) or (name == "agent" and value in record.names)


class _Fits:
    """Whether a run fits a question."""

    def __init__(self, run_reader: RunReader, asked: RunQuery) -> None:
        self._run_reader = run_reader
        self._asked = asked
        self.subjects = None if asked.subject is None else run_reader.members(asked.subject, "subject")
        self.session = None if asked.session is None else self._session_of(asked.session)
        pipelines = () if asked.pipeline is None else run_reader.members(asked.pipeline, "pipeline")
        self.pipelines = None if asked.pipeline is None else frozenset(map(str, pipelines))

    def stands(self, status: str) -> bool:
        """Return whether a run that stands so can fit."""
        return self._asked.status is None or self._asked.status == status

    def is_about(self, started: Entry) -> bool:
        """Return whether the beginning that the log heard of first is about the subject asked for."""
        if self.subjects is None:
            return True
        assert started.body is not None
        return steps.ref(form.decode(started.body).get("subject")) in self.subjects

    def __call__(self, record: RunRecord | RunSummary) -> bool:
        asked = self._asked
        began = record.started_at or ""
        return (
            all(_says(record, name, value) for name, value in asked.equal.items())
            and (asked.verdict is None or record.verdict == asked.verdict)
            and (asked.since is None or began >= asked.since)
            and (asked.until is None or began < asked.until)
            and (self.session is None or self._in_session(record, *self.session))
            and (self.pipelines is None or self._in_pipeline(record, self.pipelines))
        )

    def _session_of(self, session: str | Ref) -> tuple[frozenset[str], frozenset[str], str | None]:
        """Return the names of a session, the runs it lists, and the conversation it belongs to."""
        members = self._run_reader.members(session, "session")
        known = self._run_reader.reader.find(members[0])
        fields = {} if known is None else known.fields
        listed = fields.get("runs")
        runs = frozenset(run for run in listed if isinstance(run, str)) if isinstance(listed, list) else frozenset()
        return frozenset(map(str, members)), runs, steps.text(fields.get("conversation"))

    def _in_session(
        self, record: RunRecord | RunSummary, names: frozenset[str], runs: frozenset[str], conversation: str | None
    ) -> bool:
        if record.session in names or record.id in runs:
            return True
        # A run that names another session is not of this one, whatever conversation they share.
        return record.session is None and conversation is not None and record.conversation == conversation

    def _in_pipeline(self, record: RunRecord | RunSummary, names: frozenset[str]) -> bool:
        found: RunRecord | RunSummary | None = record
        for _ in range(ANCESTORS_MAX):
            if found is None or found.pipeline is not None:
                break
            above = None if found.parent is None else steps.text(found.parent.get("run"))
            found = None if above is None else self._run_reader.bare(above)
        return found is not None and found.pipeline in names

"""The run reader: run records, lists of runs, and what was decided about a subject, at one as-of.

Everything here is exact and needs no model. What a run wrote, who evaluated it, and whose values a decision leaned on
is found by an index that trails the log: it is brought up to date before the present is asked about, and whatever it
does not cover is read from the log instead, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import merge
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Lookup, term_key, term_prefix
from woodrat.ledger.matches import find_ref, ref_faults
from woodrat.ledger.moments import NO_READ, open_reader, timestamp
from woodrat.ledger.pages import Page, page_request
from woodrat.merge.packing import garbled
from woodrat.record_json import Record, derived
from woodrat.records import Deferrable, dataclass
from woodrat.runs import steps, trace
from woodrat.runs.account import RUNNING, STATUSES
from woodrat.runs.evaluations import evaluations
from woodrat.runs.facts import decision_fact
from woodrat.runs.index import INDEX as INDEX
from woodrat.runs.index import LIST_INDEX, evidence_term
from woodrat.runs.index import catch_up as catch_up
from woodrat.runs.index.candidates import AllOf, AnyOf, Candidate, Few, Listed, Order, walk, window
from woodrat.runs.index.decisions import runs_of
from woodrat.runs.index.grounds import evidence_text, grounds_at
from woodrat.runs.index.listing import ANCESTORS_MAX, Changes
from woodrat.runs.index.terms import (
    ABOUT,
    DECIDED,
    EVERY,
    INSIDE,
    JUDGED,
    LINE,
    LISTS,
    STATUS,
    TALK,
    TRACED,
    UNSETTLED,
    WROTE,
    subject_term,
    value_term,
)
from woodrat.runs.record import RunRecord, record_of, status_of
from woodrat.runs.recorder import current
from woodrat.runs.steps import Decision, Judgement, Write
from woodrat.runs.summary import Line, RunSummary, read_line, summary_of
from woodrat.state import observation
from woodrat.state.entry_rows import position_of
from woodrat.state.run_owner import owned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.engines.port import View
    from woodrat.ledger.read import Reader
    from woodrat.log.entry import Entry
    from woodrat.runs.index.candidates import Stream
    from woodrat.state.fact import Fact
    from woodrat.state.match import Match

_WINDOW, _WINDOW_MAX = 1_024, 65_536
TAIL_MAX: Final = 10_000
"""Up to how much of the log that the index does not cover yet its runs are looked at beside it, one by one."""


class Recounter:
    """Run records of one tenant at one as-of."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.view: View = reader.view
        self.through = reader.asof.position
        self.index = Lookup(self.view, self.through, INDEX)
        self.lists = Lookup(self.view, self.through, LIST_INDEX)
        self._recent: dict[str, None] | None = None

    def find(self, id: str) -> RunRecord | None:
        """Return a run's record; `None` when no entry is part of it."""
        entries = entry_index.run_entries(self.view, id, self.through)
        return self.record(id, entries) if entries else None

    def record(self, id: str, entries: Iterable[Entry]) -> RunRecord:
        """Return the record that entries of a run make, with what it wrote and who evaluated it."""
        writes, judgements = self._writes(id), self._evaluations(id)
        return record_of(id, entries, writes, judgements, recording=current.is_recorded(id), linked=self._linked)

    def judged(self, id: str) -> RunRecord:
        """Return a run's record with who evaluated it, without what it wrote and the other runs of its trace."""
        entries = entry_index.run_entries(self.view, id, self.through)
        return record_of(id, entries, judgements=self._evaluations(id), recording=current.is_recorded(id))

    def bare(self, id: str, entries: Iterable[Entry] | None = None) -> RunRecord:
        """Return a run's record without what it wrote and who evaluated it, which is quicker; `entries` are its own."""
        if entries is None:
            entries = entry_index.run_entries(self.view, id, self.through)
        return record_of(id, entries, recording=current.is_recorded(id))

    def _linked(self, id: str, traceparent: str | None) -> set[str]:
        """Return the other runs of a run's trace: what an index says, and the run that the trace's own id spells."""
        found: set[str] = set()
        for name in {trace.trace_id(id), trace.trace_of(traceparent)} - {None}:
            began = (form.decode(entry.body or b"{}").get("run") for entry in self.index.entries(f"{TRACED}{name}"))
            found.update(run for run in began if isinstance(run, str))
        if (named := trace.trace_of(traceparent)) is not None:
            spelled = trace.run_of(named)
            found.update({spelled} if entry_index.has_run(self.view, spelled, self.through) else ())
        return found - {id}

    def written(self, id: str) -> list[Entry]:
        """Return the observations that carry a run, by position."""
        return self.index.entries(WROTE + id)

    def inside(self, id: str) -> list[str]:
        """Return the runs that a run started, in the order the log heard of them."""
        entries = self.index.entries(INSIDE + id)
        return [form.decode(entry.body)["run"] for entry in entries if entry.body is not None]

    def _writes(self, id: str) -> Iterator[Write]:
        for entry in self.written(id):
            if entry.body is not None:
                yield Write.of(entry.position, observation.stored(entry.body))

    def _evaluations(self, id: str) -> Iterator[Judgement]:
        """Yield what each `evaluation` of the run says now."""
        refs: dict[Ref, None] = {}
        for position in self.index.positions(JUDGED + id):
            entry = self.view.entry(position)
            if entry is not None and entry.body is not None:
                refs[observation.stored(entry.body).entity] = None
        yield from evaluations(self.reader, refs, id)

    def leaning_on(self, ref: Ref, field: str | None = None) -> list[Entry]:
        """Return the decisions with evidence read from an entity, or from one field of it, by position."""
        if field is not None:
            return self.index.entries(evidence_term(ref, field))
        listed = (self.view.entry(position) for position in self.index.positions_below(evidence_term(ref)))
        return [entry for entry in listed if entry is not None and entry.body is not None]

    def decided(self, members: Iterable[Ref], after: tuple[str, int] | None) -> Iterator[tuple[str, int]]:
        """Yield time and position of the decisions that may be about entities, from after one on, the latest first."""
        beginnings = [f"{term}{ref.id}/" for ref in members for term in (DECIDED, ABOUT)]
        listed = [self._decided(beginning, after) for beginning in beginnings]
        recent = sorted(self._decided_recently(), reverse=True)
        listed.append(place for place in recent if after is None or place < after)
        yield from merge(*listed, reverse=True)

    def _decided(self, beginning: str, after: tuple[str, int] | None) -> Iterator[tuple[str, int]]:
        """Yield time and position of the decisions listed under terms that begin so, as far as the index goes."""
        prefix, size = beginning.encode(), WALK_ROWS_MIN
        last = None if after is None else term_key(beginning + after[0], max(0, min(after[1], self.through)))
        while True:
            rows = self.index.scan(prefix, after=last, reverse=True, limit=size)
            for key, _ in rows:
                yield key[len(prefix) : -9].decode(), position_of(key)
            if len(rows) < size:
                return
            last, size = rows[-1][0], min(size * 4, WALK_ROWS)

    def _decided_recently(self) -> Iterator[tuple[str, int]]:
        """Yield time and position of the decisions of runs that began or decided where the index has not come."""
        for id in runs_of(self.index.tail):
            for entry in entry_index.run_entries(self.view, id, self.through):
                if entry.kind == "run.decided" and entry.body is not None:
                    yield steps.text(form.decode(entry.body).get("started_at")) or "", entry.position

    def begun(
        self,
        before: int,
        subjects: Sequence[Ref] | None = None,
        *,
        oldest_first: bool = False,
        only: Iterable[str] | None = None,
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the runs that began before a position, the latest in the log first, each with how it began.

        A run whose beginning was said several times, by imports, comes once for each.
        """
        last = min(before - 1, self.through)
        if only is not None:
            began = (
                entry
                for id in set(only)
                for entry in entry_index.run_entries(self.view, id, last)
                if entry.kind == "run.started"
            )
            started: Iterable[Entry] = sorted(began, key=lambda entry: entry.position, reverse=not oldest_first)
        else:
            started = (
                self._started(last, oldest_first) if subjects is None else self._about(last, subjects, oldest_first)
            )
        for entry in started:
            body: Any = None if entry.body is None else form.decode(entry.body)
            if isinstance(body, dict) and isinstance(body.get("run"), str):
                yield body["run"], {**body, "position": entry.position}

    def _started(self, last: int, oldest_first: bool) -> Iterator[Entry]:
        """Yield beginnings window by window, so that a page costs no more than it shows."""
        if oldest_first:
            for low in range(-1, last, _WINDOW_MAX):
                yield from self.view.entries(low, min(low + _WINDOW_MAX, last), {"run.started"})
            return
        high, window = last, _WINDOW
        while high >= 0:
            low = max(-1, high - window)
            yield from reversed(list(self.view.entries(low, high, {"run.started"})))
            high, window = low, min(window * 2, _WINDOW_MAX)

    def _about(self, last: int, subjects: Sequence[Ref], oldest_first: bool) -> Iterator[Entry]:
        found = {
            entry.position: entry for ref in subjects for entry in entry_index.runs_about(self.view, ref.digest, last)
        }
        yield from (found[position] for position in sorted(found, reverse=not oldest_first))

    def candidates(self, ids: Iterable[str]) -> Iterator[Candidate]:
        """Yield runs with their places in lists, those of which a beginning is known."""
        for id in ids:
            entries = (
                entry for entry in entry_index.run_entries(self.view, id, self.through) if entry.kind == "run.started"
            )
            began = [entry.position for entry in owned(id, (entry for entry in entries if entry.body is not None))]
            if began:
                yield Candidate(min(began), id)

    def lines(self, runs: Iterable[str]) -> dict[str, Line]:
        """Return the lines of runs, by id, of those that have one which holds at the as-of."""
        if self.reader.asof.effective is not None:
            return {}
        recent = self.recent
        prefixes = sorted({term_prefix(LINE + id) for id in runs if id not in recent})
        if self.lists.through is None:
            rows = self.view.find(LISTS, prefixes)
        else:
            rows = [row for prefix in prefixes for row in self.lists.scan(prefix, limit=1)]
        try:
            found = [read_line(value) for _, value in rows]
        except (TypeError, ValueError) as error:
            raise garbled(f"The index {LISTS}") from error
        return {line["id"]: line for line in found}

    @property
    def has_lines(self) -> bool:
        """Whether the index of lists goes far enough to ask it."""
        return self.through - self.lists.covered <= TAIL_MAX

    @property
    def recent(self) -> Collection[str]:
        """The runs that what the index of lists does not cover yet may list otherwise."""
        if self._recent is None:
            lists, found = self.lists, dict[str, None]()
            if lists.tail:
                changes = Changes(
                    self.view, self.through, after=lists.covered, entries=lists.tail, positions=lists.positions
                )
                found = dict.fromkeys(id for entry in lists.tail for id in changes.touched_by(entry))
            self._recent = found
        return self._recent

    def members(self, ref: str | Ref, path: str = "ref") -> tuple[Ref, ...]:
        """Return an entity with all that it is joined with, by whatever names it; it need not be known."""
        return self.reader.group(find_ref(self.reader, ref, path=path))


@contextmanager
def open_recounter(
    context: Context, position: int | None = None, *, lists: bool = False, bare: bool = False
) -> Iterator[Recounter]:
    """Give the run records of a tenant at the context's moment; for the present their index is brought up to date.

    With a `position`, as of that one: a page of a list that began there. With `lists`, their index is, too. With `bare`
    none is: what is asked of runs stands in their own entries.
    """
    if context.moment == "now" and not bare:
        catch_up(context.engine, context.tenant, lists=lists)
    with open_reader(context if position is None else context.at(position, context.valid_at)) as reader:
        yield Recounter(reader)


# One run


def run_record(recounter: Recounter, id: object) -> RunRecord:
    """Return the record of a run; `NotFound` when there is none."""
    if not isinstance(id, str):
        problem = f"expected a run's id, got {shown(id)}"
        raise Refused([Fault("run", problem, "Send it as text, such as run_….")], NO_READ)
    found = recounter.find(id)
    if found is None:
        raise NotFound(
            f"There is no run {id} at position {recounter.through}. Nothing was changed. `runs list` lists them.",
            {"run": id, "position": recounter.through},
        )
    return found


# Lists of runs


@dataclass(frozen=True, slots=True)
class Runs:
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
) -> Runs:
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
    named = {name: _named(name, value, faults) for name, value in refs.items()}
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
    return Runs(
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


def _named(name: str, value: object, faults: list[Fault]) -> str | Ref | None:
    wrong = [] if value is None else ref_faults(value, name)
    faults += wrong
    return None if wrong else cast("str | Ref | None", value)


def _time(name: str, value: object, faults: list[Fault]) -> str | None:
    try:
        return timestamp(value, name)
    except Refused as refusal:
        faults += refusal.faults
        return None


def runs_page(context: Context, *, limit: object, cursor: object, **filters: Any) -> Page[RunSummary]:
    """Return the runs that fit a question, those the log heard of last first.

    A page costs what it shows: runs are found by an index, whatever is asked for, which has a line of each that has
    ended; others are read. With a valid time, those asked for by verdict are read one after the other, since
    evaluations are merged.
    """
    faults: list[Fault] = []
    asked = ask_runs(faults, **filters)
    request = page_request(context, asked.question, limit, cursor, faults)
    (before,) = request.place_of(int) or (None,)
    with open_recounter(context, request.position, lists=True) as recounter:
        matches = list(islice(summaries(recounter, asked, before, request.limit + 1), request.limit + 1))
    listed = tuple(summary for _, summary in matches[: request.limit])
    cursor = request.cursor_at([matches[request.limit - 1][0]]) if len(matches) > request.limit else None
    page = Page(listed, cursor, request.position, matched=_one_match(recounter))
    return page.followed_by(lambda: runs_page(context, limit=limit, cursor=page.cursor, **filters))


def _one_match(recounter: Recounter) -> Match | None:
    """Return how the entity was found that was asked for; where several were not named by key, that is refused."""
    matches = recounter.reader.matches
    if len(matches) > 1:
        means = "; ".join(f"{match.asked} means {match.entity}" for match in matches.values())
        problem = f"several references are no keys: {means}"
        raise Refused([Fault("subject", problem, "Name all of them but one by key.")], NO_READ)
    return recounter.reader.matched


def matching(
    recounter: Recounter,
    asked: Runs,
    *,
    before: int | None = None,
    oldest_first: bool = False,
    only: Iterable[str] | None = None,
) -> Iterator[tuple[int, RunRecord]]:
    """Yield every run that fits a question, once and with its place: where the log first heard how it began.

    `before` is the place of a run, and only those before it are looked at; `only` names the runs to look at, where
    they are known.
    """
    end = recounter.through + 1 if before is None else min(before, recounter.through + 1)
    fits = _Fits(recounter, asked)
    if only is not None or recounter.through - recounter.lists.covered > TAIL_MAX:
        subjects = fits.subjects if only is None else None
        begun = recounter.begun(end, subjects, oldest_first=oldest_first, only=only)
        candidates: Iterator[tuple[int, str]] = ((body["position"], id) for id, body in begun)
    else:
        order = Order(recounter.lists, oldest_first)
        candidates = _listed(recounter, asked, fits, order, end)
    for place, id in candidates:
        record = _looked_at(recounter, fits, place, id)
        if record is not None:
            yield place, record


def _looked_at(recounter: Recounter, fits: _Fits, place: int, id: str) -> RunRecord | None:
    """Return the record of a candidate, if its place is this one and it fits."""
    entries = entry_index.run_entries(recounter.view, id, recounter.through)
    began = owned(id, (entry for entry in entries if entry.kind == "run.started" and entry.body is not None))
    first = min(began, key=lambda entry: entry.position, default=None)
    if (
        first is None
        or first.position != place
        or not fits.is_about(first)
        or not fits.stands(status_of(id, entries, recording=current.is_recorded(id)))
    ):
        return None
    record = recounter.record(id, entries)
    return record if fits(record) else None


def summaries(recounter: Recounter, asked: Runs, before: int | None, count: int) -> Iterator[tuple[int, RunSummary]]:
    """Yield what lists say of every run before a place that fits a question, the latest first, so many at a time."""
    if not recounter.has_lines:
        yield from ((place, summary_of(record)) for place, record in matching(recounter, asked, before=before))
        return
    end = recounter.through + 1 if before is None else min(before, recounter.through + 1)
    fits = _Fits(recounter, asked)
    candidates = _listed(recounter, asked, fits, Order(recounter.lists, oldest_first=False), end)
    while some := list(islice(candidates, count)):
        lines = recounter.lines(id for _, id in some)
        for place, id in some:
            line = lines.get(id)
            if line is not None:
                # A run with a line began once, so that its place and its subject are what its rows say.
                if fits.stands(line.summary.status) and fits(line.summary):
                    yield place, line.summary
                continue
            record = _looked_at(recounter, fits, place, id)
            if record is not None:
                yield place, summary_of(record)


def _listed(recounter: Recounter, asked: Runs, fits: _Fits, order: Order, end: int) -> Iterator[tuple[int, str]]:
    """Yield the runs before a place that may fit a question, by index, and those that it does not cover yet."""
    streams = list(_streams(recounter, asked, fits, order))
    streams = streams or [Listed(order, EVERY)]
    stream: Stream = AllOf(order, streams) if len(streams) > 1 else streams[0]
    if recounter.recent:
        stream = AnyOf(order, [stream, Few(order, recounter.candidates(recounter.recent))])
    for place, id in walk(order, stream, 0 if order.oldest_first else end - 1):
        if place < end:
            yield place, id


def _streams(recounter: Recounter, asked: Runs, fits: _Fits, order: Order) -> Iterator[Stream]:
    """Yield a stream of candidates for each part of a question."""

    def either(name: str, streams: Iterable[Stream]) -> Stream:
        # What only all entries of a run tell may be anything.
        return AnyOf(order, [*streams, Listed(order, UNSETTLED + "agent"), Listed(order, UNSETTLED + name)])

    for name, value in asked.equal.items():
        yield either(name, [Listed(order, value_term(name, value))])
    if fits.subjects is not None:
        yield AnyOf(order, [Listed(order, subject_term(ref.digest)) for ref in fits.subjects])
    if asked.status == RUNNING:
        yield Few(order, recounter.candidates(current.recorded_runs()))
    elif asked.status is not None:
        yield either("status", [Listed(order, STATUS + asked.status)])
    if asked.verdict is not None and recounter.reader.asof.effective is None:
        yield either("verdict", [Listed(order, value_term("verdict", asked.verdict))])
    if fits.session is not None:
        names, runs, conversation = fits.session
        by_name = [Listed(order, value_term("session", name)) for name in sorted(names)]
        by_talk = [] if conversation is None else [Listed(order, value_term(TALK, conversation))]
        yield either("session", [*by_name, *by_talk, Few(order, recounter.candidates(runs))])
    if fits.pipelines is not None:
        yield either("pipeline", [Listed(order, value_term("pipeline", name)) for name in sorted(fits.pipelines)])
    if asked.since is not None or asked.until is not None:
        yield either("started_at", [window(order, asked.since, asked.until)])


def _says(record: RunRecord | RunSummary, name: str, value: str) -> bool:
    """Return whether a record says a thing; its agent is its owner, and whoever is named in its trace."""
    return bool(getattr(record, name) == value) or (name == "agent" and value in record.names)


class _Fits:
    """Whether a run fits a question."""

    def __init__(self, recounter: Recounter, asked: Runs) -> None:
        self._recounter = recounter
        self._asked = asked
        self.subjects = None if asked.subject is None else recounter.members(asked.subject, "subject")
        self.session = None if asked.session is None else self._session_of(asked.session)
        pipelines = () if asked.pipeline is None else recounter.members(asked.pipeline, "pipeline")
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
        members = self._recounter.members(session, "session")
        known = self._recounter.reader.find(members[0])
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
            found = None if above is None else self._recounter.bare(above)
        return found is not None and found.pipeline in names


# Why


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
Explainer = Callable[[Sequence[str]], Complete]
"""Looks up what belongs to a decision by what it was made on (`evidence_text`); returns what adds it."""


def _as_it_is(_: Sequence[str]) -> Complete:
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
    named = _named("ref", ref, faults)
    if ref is None:
        faults.append(Fault("ref", "got null", "Name the entity that was decided about, as type/key."))
    request = page_request(context, ["why", str(named)], limit, cursor, faults)
    assert named is not None

    after = request.place_of(str, int)
    with open_recounter(context, request.position, lists=True) as recounter:
        decided = list(islice(_decided_about(recounter, named, after, request.limit + 1), request.limit + 1))
        explainer = explain(recounter)
        reasons = tuple(_reason(each, explainer(each.grounds)) for each in decided[: request.limit])
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
        lines = recounter.lines({each.run for each in grounds.values()}) if recounter.has_lines else {}
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
                    yield _Decided(place, made.run, line.some(_TOLD), made.texts, partial(_decision_in, at, body[1]))
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


def _read_decision(record: RunRecord, place: tuple[str, int], decision: Decision) -> _Decided:
    run = {name: getattr(record, name) for name in _TOLD}
    return _Decided(place, record.id, run, texts_of(decision), lambda: decision)


def texts_of(decision: Decision) -> list[str]:
    """Return what a decision was made on, as texts (`evidence_text`)."""
    texts = (evidence_text(origin) for origin in decision.origins)
    return list(dict.fromkeys(text for text in texts if text is not None))


def _reason(found: _Decided, complete: Complete) -> Reason:
    make = found.make
    return Reason.deferred(lambda: {"decision": complete(make())}, run=found.id, **found.run)

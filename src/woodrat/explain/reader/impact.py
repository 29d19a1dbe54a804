"""The search for an impact: from what was asked about to the runs that leaned on it, and on to what those wrote.

The search goes distance by distance, a run further with each, so that every step of a run is found once and by the
shortest way; what was found is never entered again, so cycles end. It goes as far as a page needs, and holds ids,
positions and names only.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.engines import cancellation
from woodrat.engines.records import BEFORE_ALL
from woodrat.explain.impact import (
    AffectedRun,
    Impact,
    ImpactCounts,
    LeaningNames,
    WonField,
    affected_parts,
    affected_run,
    leaning_names,
    leans,
)
from woodrat.explain.index import traces
from woodrat.explain.reader.impact_runs import ImpactRun, impact_runs
from woodrat.explain.reader.searches import RanOut
from woodrat.explain.reader.tracer import (
    decisions_at,
    missing,
    observations_behind,
    observations_named,
)
from woodrat.explain.references import Affected, References, references
from woodrat.ledger.matches import find_ref
from woodrat.log.entry import POSITION_MAX
from woodrat.records import dataclass
from woodrat.runs.reader.run_reader import run_record
from woodrat.runs.steps import Decision, Read
from woodrat.training.exports import Export

if TYPE_CHECKING:
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.pages import PageRequest
    from woodrat.runs.record import RunRecord
    from woodrat.state.match import Match

_RUNS, _FIELDS, _EXPORTS, _OBSERVATIONS = range(4)
"""The parts of an answer, in order; a place in it is the part and four numbers."""
PLACE: Final = (int,) * 5
"""What a place is made of: the part, where in it, further where in it, fields and exports so far.

Among the runs, where is a distance and the entry a run was found by; among the fields, an observation and which field.
"""
STREAMS_MAX: Final = 64
"""Under up to how many terms entries are gone through side by side; under more they are all collected."""
LINKS_MIN, LINKS_MAX = 64, 4_096
"""How many entries under a term are asked for at a time: few at first, where a page may need no more."""
RUNS_AT_HAND: Final = 256
"""How many records are kept at hand, so that a page reads a run once."""


_NAMES: Final = (
    "Name an observation (obs_…), a source (src_…), an interpretation (int_…), a run (run_…), a decision as RUN#stage, "
    "or an entity as type/key; or an agent."
)


class _Term(NamedTuple):
    """A term of the index under which entries are listed that may lean on something affected."""

    term: str
    through: str
    """What they name."""
    run: str | None
    """The run that this comes from; none where it is what was asked about."""


class _Link(NamedTuple):
    """An entry that names something affected."""

    position: int
    """Where the entry stands."""
    through: str
    """What it names."""
    through_run: str | None
    """The run that this comes from."""


class _Step(NamedTuple):
    """A read or a decision of a run."""

    named: References
    part: Read | Decision


class Leant(NamedTuple):
    """How a run leans on something at one distance."""

    names: Mapping[int, LeaningNames]
    """By position, what of each of these steps leans on something nearer, or on one of the others."""
    written: Mapping[str, int]
    """The observations that are affected by them, and where they stand."""


@dataclass(slots=True)
class Leaning:
    """A run that leans on what was asked about, with the steps that do at one distance."""

    run: str
    distance: int
    first: _Link
    """What it was found by."""
    leant: Leant | None
    """How; none where that was not worked out yet: nobody has gone further than this distance."""

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands among all that leans on what was asked about."""
        return self.distance, self.first.position


class ImpactSearch:
    """What leans on something, worked out as far as it was asked for; pages are shown from it.

    The runs of one distance come in the order of the entries they were found by. Which steps of a run lean on something
    at a distance depends on what is nearer and on the run alone. So the first distance can be gone through from any
    place on (`begin_after`); those that follow need all of the one before.
    """

    def __init__(self, tracer: Tracer, what: object, agent: object, depth: int | None) -> None:
        self._tracer = tracer
        self.affected = Affected()
        """What is affected, as far as all of a distance is known."""
        self.depth = depth
        self.left_out = 0
        """How many runs are one further away than asked for, once all is known."""
        self.found: list[Leaning] = []
        """What was found so far, in order."""
        self.is_done = False
        """Whether that is all."""
        self.has_failed = False
        """Whether it was interrupted, and cannot go on."""
        self.ahead = LINKS_MIN
        """How many entries are looked up together: as many as a page may need, or more where runs have several."""
        self._lock = threading.Lock()
        self._asked_run: str | None = None
        self._distance = 1
        self._after: int | None = None
        self._terms: list[_Term] = []
        self._recent = Affected()
        self._touched: set[int] = set()
        self._written: list[tuple[int, int, str]] = []
        self._records: dict[str, RunRecord | ImpactRun | None] = {}
        self._at: dict[int, tuple[str, str | None]] = {}
        """The kinds and the runs of the entries that were looked up last."""
        self._postponed: dict[str, Leaning] = {}
        """The runs of the first distance of which it was not worked out yet how they lean."""
        self._entered: set[str | None] = set()
        """Those of which it was."""
        self.matched: Match | None = None
        """How the entity asked about was found, where that was by a value that identifies it."""
        self.kind, self.id, self.observations = self._begin(what, agent)
        self.asked = Affected()
        """What was asked about."""
        self.asked.add(self.affected)
        self._course = self._search()
        del self._tracer

    def begin_after(self, position: int) -> None:
        """Leave out what is found by entries up to a position; `at` raises `RanOut` behind the first distance."""
        self._after = position

    def at(self, tracer: Tracer, number: int) -> Leaning | None:
        """Return what was found as the nth, for which the search goes on if need be; none when there is no more."""
        with self._lock:
            self._tracer = tracer
            try:
                while len(self.found) <= number and not self.is_done:
                    leaning = next(self._course, None)
                    if leaning is None:
                        self.is_done = True
                    else:
                        self.found.append(leaning)
            except BaseException:
                self.has_failed = True
                raise
            finally:
                del self._tracer  # a search that is remembered holds no view and nothing that was kept at hand for one
            return self.found[number] if number < len(self.found) else None

    def record(self, tracer: Tracer, run: str) -> RunRecord | ImpactRun:
        """Return the record of a run that was found; those found last are at hand."""
        known = self._records.get(run) or tracer.run_reader.find(run)
        assert known is not None, "a run that was found has entries"
        return known

    def behind(self, place: tuple[int, int]) -> int:
        """Return the number of the first that stands behind a place, as far as the search went."""
        return bisect_right(self.found, place, key=lambda leaning: leaning.place)

    @property
    def size(self) -> int:
        """How much it holds, in runs and observations."""
        return len(self.found) + len(self.stated)

    @property
    def runs(self) -> list[str]:
        """The runs that were found, each once."""
        return list(dict.fromkeys(leaning.run for leaning in self.found))

    @property
    def decisions(self) -> int:
        """How many decisions were found."""
        leant = (leaning.leant.names.values() for leaning in self.found if leaning.leant is not None)
        return sum(names.is_decision for each in leant for names in each)

    @property
    def stated(self) -> list[tuple[int, str]]:
        """The observations that are affected, those asked about first, each with its distance."""
        return [*((0, id) for id in self.observations), *((far, id) for far, _, id in sorted(self._written))]

    # Where it begins

    def _begin(self, what: object, agent: object) -> tuple[str, str, list[str]]:
        """Note what was asked about; return its kind, its id and the observations it stands for."""
        tracer = self._tracer
        if agent is None and isinstance(what, str) and what.startswith("run_"):
            return self._begin_run(what)
        if agent is None and isinstance(what, str) and not what.startswith(("obs_", "src_", "int_")):
            ref = find_ref(tracer.reader, what, path="what")
            self.matched = tracer.reader.matched
            stored = tracer.reader.stored(tracer.reader.group(ref))
            if not stored:
                raise missing("entity", str(ref), tracer.through, "`search` and `query` find entities.")
            return "entity", str(ref), self._seed([each.observation.id for each in stored])
        kind, id, said = observations_named(tracer, what, agent)
        return kind, id, self._seed([each.observation.id for each in said])

    def _begin_run(self, what: str) -> tuple[str, str, list[str]]:
        id, mark, stage = what.partition("#")
        record = run_record(self._tracer.run_reader, id)
        decisions = decisions_at(record, stage) if mark else record.decisions
        since = decisions[0].position if mark else -1
        self._asked_run = None if mark else id
        for made in decisions:
            self.affected.decisions.add((id, made.span))
            self.affected.stages.add((id, made.stage))
            self._follow_decision(id, made)
        self.affected.runs[id] = since
        self._terms.append(_Term(traces.RECALLED + id, id, id))
        later = (write for write in record.writes if write.position is None or write.position > since)
        written = [write.observation for write in later]
        return ("decision" if mark else "run"), what, self._seed(written, None if not mark else id)

    def _seed(self, observations: Sequence[str], run: str | None = None) -> list[str]:
        unique = list(dict.fromkeys(observations))
        self.affected.observations.update(unique)
        self._terms += (_Term(traces.READ_BY + id, id, run) for id in unique)
        return unique

    def _follow_decision(self, run: str, made: Decision) -> None:
        name = f"{run}#{made.stage}"
        self._terms.append(_Term(traces.decision_term(run, made.span), name, run))
        self._terms.append(_Term(traces.stage_term(run, made.stage), name, run))

    # The levels

    def _search(self) -> Iterator[Leaning]:
        """Yield the runs that lean on something, distance by distance, as far as asked."""
        while self._terms and (self.depth is None or self._distance <= self.depth):
            terms, self._terms, self._recent = self._terms, [], Affected()
            links = self._links(terms)
            while some := list(islice(links, self.ahead)):
                self._gather(some)
                for link in some:
                    cancellation.check()
                    leaning = self._direct(link) if self._distance == 1 else self._leaning(link)
                    if leaning is not None:
                        yield leaning
            if self._after is not None:
                raise RanOut
            self._settle()
            self.affected.add(self._recent)
            self._distance += 1
        beyond = {self._leaning_run(link.position) for link in self._links(self._terms)}
        self.left_out = len(beyond - {None, *self.runs})

    def _links(self, terms: Sequence[_Term]) -> Iterator[_Link]:
        """Yield the entries listed under terms, by position; under few terms none before it is needed."""
        after = BEFORE_ALL if self._after is None else self._after
        streams = (self._links_of(term, after) for term in terms)
        if len(terms) <= STREAMS_MAX:
            return merge(*streams, key=_link_order)
        return iter(sorted((link for stream in streams for link in stream), key=_link_order))

    def _links_of(self, term: _Term, after: int) -> Iterator[_Link]:
        size = max(LINKS_MIN, 2 * self.ahead)  # a run has mostly a read and a decision
        while True:
            positions = self._tracer.naming(term.term, after, size)
            yield from (_Link(position, term.through, term.run) for position in positions)
            if len(positions) < size:
                return
            after, size = positions[-1], min(size * 4, LINKS_MAX)

    def _direct(self, link: _Link) -> Leaning | None:
        """Return the run of an entry at the first distance; how it leans is worked out later, where that is possible.

        A read that names an observation asked about leans on it. So the first of its reads finds a run, if nothing of
        it stands before where the search began; that it comes once at a distance is all that has to be known here.
        """
        kind, run = self._at.get(link.position, ("", None))
        if run in self._postponed:
            return None
        record = None if run is None else self._records.get(run)
        if (
            run is None
            or not isinstance(record, ImpactRun)
            or run in self._entered
            or run == self._asked_run
            or kind != "run.read"
            or link.through not in self.affected.observations
            or (self._after is not None and min(record.places) <= self._after)
        ):
            self._entered.add(run)
            return self._leaning(link)
        leaning = self._postponed[run] = Leaning(run, self._distance, link, None)
        return leaning

    def _settle(self) -> None:
        """Work out how those lean that were found directly: what is further away follows from it."""
        postponed = iter(list(self._postponed.values()))
        while some := list(islice(postponed, LINKS_MIN)):
            cancellation.check()
            self._gather([leaning.first for leaning in some])
            for leaning in some:
                settled = self._leaning(leaning.first)
                assert settled is not None, "a read that names what is asked about leans on it"
                leaning.leant = settled.leant
        self._postponed.clear()

    def _leaning(self, link: _Link) -> Leaning | None:
        """Return the run of an entry, with all its steps that lean on what is nearer, or on one of these steps.

        Nothing where another entry of the run leads to it.
        """
        run = None if link.position in self._touched else self._run_of(link.position)
        record = None if run is None or run == self._asked_run else self._record(run)
        if run is None or record is None:
            return None
        first, leant, own = leant_on(self.affected, record, self._touched)
        if first != link.position:
            return None
        self._touched |= leant.names.keys()
        self._recent.add(own)
        self._written += ((self._distance, at, id) for id, at in leant.written.items())
        self._terms += (_Term(traces.READ_BY + id, id, run) for id in leant.written)
        if run in own.runs:
            self._terms.append(_Term(traces.RECALLED + run, run, run))
        for made in record.decisions:
            if made.position in leant.names:
                self._follow_decision(run, made)
        return Leaning(run, self._distance, link, leant)

    def _leaning_run(self, position: int) -> str | None:
        """Return the run of an entry that leans on something affected."""
        run = self._run_of(position)
        record = None if run is None or run == self._asked_run else self._record(run)
        step = None if record is None else _steps_of(record).get(position)
        return run if step is not None and self.affected.leans(step.named, position) else None

    # What runs hold

    def _gather(self, links: Sequence[_Link]) -> None:
        """Look up the runs of some entries that are looked at next, as far as they need not be read as a whole."""
        bodies = self._tracer.view.bodies([link.position for link in links if link.position not in self._touched])
        if len(self._records) + len(links) > RUNS_AT_HAND:
            self._records.clear()
        runs: dict[int, str | None] = {}
        asked: set[str] = set()
        # A run has mostly read what it decides on, so its line tells whose a decision is: few are opened for that.
        for are_reads in (True, False):
            for position, (kind, body) in bodies.items():
                if (kind == "run.read") is are_reads and position not in runs:
                    runs[position] = _run_in(body)
            unknown = {run for run in runs.values() if run is not None} - self._records.keys() - asked
            asked |= unknown
            for record in impact_runs(self._tracer.run_reader, unknown, bodies):
                self._records[record.id] = record
                runs.update(dict.fromkeys(record.places, record.id))
        self._at = {position: (kind, runs[position]) for position, (kind, _) in bodies.items()}

    def _run_of(self, position: int) -> str | None:
        if position not in self._at:
            bodies = self._tracer.view.bodies([position])
            return _run_in(bodies[position][1]) if bodies else None
        return self._at[position][1]

    def _record(self, run: str) -> RunRecord | ImpactRun | None:
        if run not in self._records:
            if len(self._records) >= RUNS_AT_HAND:
                self._records.clear()
            self._records[run] = self._tracer.run_reader.find(run)
        return self._records[run]


def _steps_of(record: RunRecord | ImpactRun) -> dict[int, _Step]:
    """Return the reads and decisions of a run, by position."""
    parts: tuple[Read | Decision, ...] = (*record.reads, *record.decisions)
    return {part.position: _Step(references(part), part) for part in parts}


def leant_on(
    affected: Affected, record: RunRecord | ImpactRun, touched: Collection[int] = ()
) -> tuple[int | None, Leant, Affected]:
    """Return how a run leans on what is affected, by steps other than those that lean on something nearer.

    Before that comes where the first of its steps stands that leans on something nearer, none where none does; behind
    it, what of the run is affected.
    """
    run, own = record.id, Affected()
    steps = {at: step for at, step in _steps_of(record).items() if at not in touched}
    leaning = {position for position, step in steps.items() if affected.leans(step.named, position)}
    first = min(leaning, default=None)
    before = affected.runs.get(run, POSITION_MAX + 1)
    written: dict[str, int] = {}
    further = leaning
    while further:
        since = min(leaning)
        if since < before:
            own.runs[run] = since
        for made in (steps[position].part for position in further):
            if isinstance(made, Decision):
                own.decisions.add((run, made.span))
                own.stages.add((run, made.stage))
        # What another agent wrote in its name did not come of what it read, and is no write of the run.
        wrote = ((write.position, write.observation) for write in record.writes if write.position is not None)
        written = {id: at for at, id in wrote if at > since and id not in affected.observations}
        own.observations.update(written)
        further = {at for at, step in steps.items() if at not in leaning and own.leans(step.named, at)}
        leaning |= further
    parts = {position: steps[position].part for position in sorted(leaning)}
    names = {position: leaning_names(part, (affected, own)) for position, part in parts.items()}
    return first, Leant(names, written), own


def _run_in(data: bytes) -> str | None:
    body: Any = form.decode(data)
    run = body.get("run") if isinstance(body, dict) else None
    return run if isinstance(run, str) else None


def _link_order(link: _Link) -> tuple[int, str]:
    return link.position, link.through


# Pages


class _Walk:
    """Shows what a search found, from a place on."""

    def __init__(self, tracer: Tracer, search: ImpactSearch, place: tuple[Any, ...]) -> None:
        self._tracer, self._search = tracer, search
        self._part, self._first, self._inside, self._fields, self._exports = place
        self.has_all_runs = self._part > _RUNS
        self.fields = self._fields if self._part > _FIELDS else None
        self.exports = self._exports if self._part > _EXPORTS else None

    def items(self) -> Iterator[tuple[list[int], AffectedRun | WonField | Export | str]]:
        """Yield what is left, each with the place behind it."""
        search = self._search
        if self._part == _RUNS:
            begin = (self._first, self._inside)
            number = search.behind(begin)
            while (leaning := search.at(self._tracer, number)) is not None:
                if leaning.place > begin:
                    record = search.record(self._tracer, leaning.run)
                    yield [_RUNS, *leaning.place, 0, 0], self._shown(record, leaning)
                number += 1
            self.has_all_runs = True
            self._next(_FIELDS)
        stated = search.stated if self._part == _FIELDS else []
        if self._part == _FIELDS:
            for number in range(self._first, len(stated)):
                won = list(self._won(*stated[number]))
                for inside in range(self._inside, len(won)):
                    self._fields += 1
                    yield [_FIELDS, number, inside + 1, self._fields, 0], won[inside]
                self._inside = 0
            self.fields = self._fields
            self._next(_EXPORTS)
        if self._part == _EXPORTS:
            exports = self._tracer.exports(search.runs, lambda record: leans(record, search.affected))
            self.exports = self._exports = len(exports)
            for number in range(self._first, len(exports)):
                yield [_EXPORTS, number + 1, 0, self._fields, 0], exports[number]
            self._next(_OBSERVATIONS)
        for number in range(self._first, len(search.observations)):
            place = [_OBSERVATIONS, number + 1, 0, self._fields, self._exports]
            yield place, search.observations[number]

    def _next(self, part: int) -> None:
        self._part, self._first, self._inside = part, 0, 0

    def _shown(self, record: RunRecord | ImpactRun, leaning: Leaning) -> AffectedRun:
        known, asked = leaning.leant, self._search.asked

        def work_out(_: str) -> dict[str, Any]:
            leant = leant_on(asked, record)[1] if known is None else known
            return affected_parts(record, leant.names, leant.written)

        return affected_run(record, work_out, leaning.distance, leaning.first.through, leaning.first.through_run)

    def _won(self, distance: int, id: str) -> Iterator[WonField]:
        """Yield the fields whose value an observation takes part in."""
        stored = self._tracer.observation(id)
        stated = None if stored is None else stored.observation
        snapshot = self._tracer.snapshot(stated.entity) if stated is not None and stated.stated else None
        if stated is None or snapshot is None:
            return
        entity = str(snapshot.members[0]) if len(snapshot.members) > 1 else str(stated.entity)
        for name in sorted(stated.stated):
            if name in snapshot.fields and id in observations_behind(self._tracer, snapshot, name):
                yield WonField(entity, name, snapshot.fields[name], id, distance)


def direct_place(request: PageRequest) -> int | None:
    """Return the entry after which a page goes on among the runs that leaned on something directly; else none."""
    part, distance, position, _, _ = request.place_of(*PLACE) or (None,) * 5
    return position if (part, distance) == (_RUNS, 1) else None


def impact_page(tracer: Tracer, search: ImpactSearch, request: PageRequest) -> Impact:
    """Return the page asked for of what a search finds."""
    search.ahead = min(request.limit + 1, RUNS_AT_HAND)
    walk = _Walk(tracer, search, request.place_of(*PLACE) or (0, 0, 0, 0, 0))
    items = list(islice(walk.items(), request.limit + 1))
    listed = [item for _, item in items[: request.limit]]
    counts = ImpactCounts(
        observations=len(search.observations),
        runs=len(search.runs) if walk.has_all_runs else None,
        decisions=search.decisions if walk.has_all_runs else None,
        fields=walk.fields,
        exports=walk.exports,
    )
    end = items[request.limit - 1][0] if len(items) > request.limit else None
    return Impact(
        kind=search.kind,
        id=search.id,
        runs=tuple(item for item in listed if isinstance(item, AffectedRun)),
        fields=tuple(item for item in listed if isinstance(item, WonField)),
        exports=tuple(item for item in listed if isinstance(item, Export)),
        observations=tuple(item for item in listed if isinstance(item, str)),
        counts=counts,
        depth=search.depth,
        left_out=search.left_out if walk.has_all_runs else None,
        cursor=None if end is None else request.cursor_at(end),
        position=request.position,
        matched=search.matched,
    )

"""The search for an impact: from what was asked about to the runs that leaned on it, and on to what those wrote.

The search goes level by level, a run further with each, so that every run is found once and by the shortest way; what
was found is never entered again, so cycles end. It holds ids and positions only. A page shows a part of what was found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form, ids
from woodrat.engines import cancellation
from woodrat.errors import Fault, Refused, shown
from woodrat.explain import index
from woodrat.explain.impact import AffectedRun, Impact, ImpactCounts, WonField, affected_run
from woodrat.explain.reader.tracer import (
    decisions_at,
    missing,
    observations_behind,
    observations_named,
)
from woodrat.explain.references import Affected, DecisionKey, References, references
from woodrat.ledger.moments import NO_READ, resolve_ref
from woodrat.records import dataclass
from woodrat.runs.reader import run_record
from woodrat.runs.steps import Decision, Read
from woodrat.state import observation
from woodrat.training.exports import Export

if TYPE_CHECKING:
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.pages import PageRequest

_RUNS, _FIELDS, _EXPORTS, _OBSERVATIONS = range(4)
"""The parts of an answer, in order; a place in it is the part and four numbers."""
PLACE: Final = (int,) * 5
"""What a place is made of: the part, where in it, which field of an observation, fields and exports so far."""


_NAMES: Final = (
    "Name an observation (obs_…), a source (src_…), an interpretation (int_…), a run (run_…), a decision as RUN#stage, "
    "or an entity as type/key; or an agent."
)


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
    decision: DecisionKey | None
    stage: str


@dataclass(slots=True)
class _Leaning:
    """A run that leans on what was asked about."""

    run: str
    distance: int
    first: _Link
    """What it was found by."""
    since: int
    """Position of its first step that leans on something; what it wrote afterwards is affected."""


class ImpactSearch:
    """What leans on something, worked out; pages are shown from it."""

    def __init__(self, tracer: Tracer, what: object, agent: object, depth: int | None) -> None:
        self._tracer = tracer
        self.affected = Affected()
        self.depth = depth
        self._asked_run: str | None = None
        self._leaning: dict[str, _Leaning] = {}
        self._steps: dict[str, dict[int, _Step]] = {}
        self._agents: dict[str, str | None] = {}
        self._run_at: dict[int, str | None] = {}
        self._touched: set[int] = set()
        self._following: list[_Link] = []
        self._written: list[tuple[int, int, str]] = []
        self.kind, self.id, self.observations = self._begin(what, agent)
        self.left_out = self._search()
        self.runs = sorted(self._leaning.values(), key=lambda each: (each.distance, each.since, each.run))
        self.decisions = sum(step.decision is not None for step in self._touched_steps())
        self.stated = [*((0, id) for id in self.observations), *((far, id) for far, _, id in sorted(self._written))]
        """The observations that are affected, those asked about first, each with its distance."""
        del self._tracer, self._steps, self._agents, self._run_at, self._following, self._written

    # Where it begins

    def _begin(self, what: object, agent: object) -> tuple[str, str, list[str]]:
        """Note what was asked about; return its kind, its id and the observations it stands for."""
        tracer = self._tracer
        if agent is None and isinstance(what, str) and what.startswith("run_"):
            return self._begin_run(what)
        if agent is None and isinstance(what, str) and ("/" in what or ids.is_id("entity", what)):
            ref = resolve_ref(tracer.reader, what)
            stored = tracer.reader.stored(tracer.reader.group(ref))
            if not stored:
                raise missing("entity", str(ref), tracer.through, "`search` and `query` find entities.")
            return "entity", str(ref), self._seed([each.observation.id for each in stored])
        if agent is None and isinstance(what, str) and not what.startswith(("obs_", "src_", "int_")):
            raise Refused([Fault("what", f"{shown(what)} is none of these", _NAMES)], NO_READ)
        kind, id, said = observations_named(tracer, what, agent)
        return kind, id, self._seed([each.observation.id for each in said])

    def _begin_run(self, what: str) -> tuple[str, str, list[str]]:
        id, mark, stage = what.partition("#")
        record = run_record(self._tracer.recounter, id)
        decisions = decisions_at(record, stage) if mark else record.decisions
        since = decisions[0].position if mark else -1
        self._asked_run = None if mark else id
        for made in decisions:
            self._decided(id, made.span, made.stage, f"{id}#{made.stage}")
        self.affected.runs[id] = since
        self._reach(index.RECALLED + id, id, id)
        later = (write for write in record.writes if write.position is None or write.position > since)
        written = [write.observation for write in later]
        return ("decision" if mark else "run"), what, self._seed(written, None if not mark else id)

    def _seed(self, observations: Sequence[str], run: str | None = None) -> list[str]:
        unique = list(dict.fromkeys(observations))
        self.affected.observations.update(unique)
        for id in unique:
            self._reach(index.READ_BY + id, id, run)
        return unique

    # The levels

    def _search(self) -> int:
        """Go level by level as far as asked; return how many runs are one further away."""
        distance = 1
        while self._following and (self.depth is None or distance <= self.depth):
            level, self._following = deque(sorted(self._following)), []
            while level:
                cancellation.check()
                level.extend(self._touch(level.popleft(), distance))
            distance += 1
        beyond = (link.position for link in self._following if self._leans(link.position))
        return len({self._run_at[position] for position in beyond} - self._leaning.keys())

    def _touch(self, link: _Link, distance: int) -> list[_Link]:
        """Note a step that leans on something; return the steps of the same run that lean on it in turn."""
        position = link.position
        if position in self._touched or not self._leans(position):
            return []
        self._touched.add(position)
        run = self._run_at[position]
        assert run is not None
        leaning = self._leaning.get(run)
        if leaning is None:
            leaning = self._leaning[run] = _Leaning(run, distance, link, self._tracer.through + 1)
        step = self._steps_of(run)[position]
        same: list[_Link] = []
        if step.decision is not None:
            same += self._decided(run, step.decision[1], step.stage, f"{run}#{step.stage}", within=run)
        if position < leaning.since:
            before, leaning.since = leaning.since, position
            self.affected.runs[run] = position
            for place, id in self._writes(run):
                if position < place <= before and id not in self.affected.observations:
                    self.affected.observations.add(id)
                    self._written.append((leaning.distance, place, id))
                    same += self._reach(index.READ_BY + id, id, run, within=run)
            same += self._reach(index.RECALLED + run, run, run, within=run)
        return same

    def _decided(self, run: str, span: str, stage: str, name: str, within: str | None = None) -> list[_Link]:
        """Note a decision that is affected; return the steps of its own run that were made on it."""
        self.affected.decisions.add((run, span))
        self.affected.stages.add((run, stage))
        same = self._reach(index.decision_term(run, span), name, run, within)
        return same + self._reach(index.stage_term(run, stage), name, run, within)

    def _reach(self, term: str, through: str, run: str | None, within: str | None = None) -> list[_Link]:
        """Put the entries listed under a term on the next level, but for those of one run, which are returned."""
        same: list[_Link] = []
        for position in self._tracer.naming(term):
            owner = self._run_of(position)
            if position in self._touched or owner is None or owner == self._asked_run:
                continue
            (same if owner == within else self._following).append(_Link(position, through, run))
        return same

    def _leans(self, position: int) -> bool:
        run = self._run_of(position)
        step = None if run is None else self._steps_of(run).get(position)
        return step is not None and self.affected.leans(step.named, position)

    # What runs hold

    def _run_of(self, position: int) -> str | None:
        if position not in self._run_at:
            entry = self._tracer.view.entry(position)
            body: Any = None if entry is None or entry.body is None else form.decode(entry.body)
            run = body.get("run") if isinstance(body, dict) else None
            self._run_at[position] = run if isinstance(run, str) else None
        return self._run_at[position]

    def _steps_of(self, run: str) -> dict[int, _Step]:
        """Return the reads and decisions that are part of a run, by position."""
        if run not in self._steps:
            agent, parts = self._tracer.recounter.parts(run, ("run.read", "run.decided"))
            self._agents[run] = agent
            found: dict[int, _Step] = {}
            for part in parts:
                if isinstance(part, Decision):
                    found[part.position] = _Step(references(part), (run, part.span), part.stage)
                elif isinstance(part, Read):
                    found[part.position] = _Step(references(part), None, "")
            self._steps[run] = found
        return self._steps[run]

    def _writes(self, run: str) -> Iterator[tuple[int, str]]:
        """Yield what a run wrote, by position; what another agent wrote in its name did not come of what it read."""
        for entry in self._tracer.recounter.written(run):
            if entry.body is not None:
                stated = observation.stored(entry.body)
                if stated.agent == self._agents[run]:
                    yield entry.position, stated.id

    def _touched_steps(self) -> Iterator[_Step]:
        for position in self._touched:
            run = self._run_at[position]
            assert run is not None
            yield self._steps[run][position]


# Pages


class _Walk:
    """Shows what a search found, from a place on."""

    def __init__(self, tracer: Tracer, search: ImpactSearch, place: tuple[Any, ...]) -> None:
        self._tracer, self._search = tracer, search
        self._part, self._first, self._inside, self._fields, self._exports = place
        self.fields = self._fields if self._part > _FIELDS else None
        self.exports = self._exports if self._part > _EXPORTS else None

    def items(self) -> Iterator[tuple[list[int], AffectedRun | WonField | Export | str]]:
        """Yield what is left, each with the place behind it."""
        search = self._search
        if self._part == _RUNS:
            for number in range(self._first, len(search.runs)):
                leaning = search.runs[number]
                record = self._tracer.recounter.find(leaning.run)
                shown_run = None if record is None else self._shown(record, leaning)
                assert shown_run is not None, "a run that was found leans on something"
                yield [_RUNS, number + 1, 0, 0, 0], shown_run
            self._next(_FIELDS)
        if self._part == _FIELDS:
            for number in range(self._first, len(search.stated)):
                won = list(self._won(*search.stated[number]))
                for inside in range(self._inside, len(won)):
                    self._fields += 1
                    yield [_FIELDS, number, inside + 1, self._fields, 0], won[inside]
                self._inside = 0
            self.fields = self._fields
            self._next(_EXPORTS)
        if self._part == _EXPORTS:
            runs = [each.run for each in search.runs]
            exports = self._tracer.exports(runs, lambda record: affected_run(record, search.affected) is not None)
            self.exports = self._exports = len(exports)
            for number in range(self._first, len(exports)):
                yield [_EXPORTS, number + 1, 0, self._fields, 0], exports[number]
            self._next(_OBSERVATIONS)
        for number in range(self._first, len(search.observations)):
            place = [_OBSERVATIONS, number + 1, 0, self._fields, self._exports]
            yield place, search.observations[number]

    def _next(self, part: int) -> None:
        self._part, self._first = part, 0

    def _shown(self, record: Any, leaning: _Leaning) -> AffectedRun | None:
        link = leaning.first
        return affected_run(record, self._search.affected, leaning.distance, link.through, link.through_run)

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


def impact_page(tracer: Tracer, search: ImpactSearch, request: PageRequest) -> tuple[Impact, tuple[int, ...]]:
    """Return the page asked for of what a search found, and the place where it ends."""
    walk = _Walk(tracer, search, request.place_of(*PLACE) or (0, 0, 0, 0, 0))
    items = list(islice(walk.items(), request.limit + 1))
    listed = [item for _, item in items[: request.limit]]
    counts = ImpactCounts(
        observations=len(search.observations),
        runs=len(search.runs),
        decisions=search.decisions,
        fields=walk.fields,
        exports=walk.exports,
    )
    end = items[request.limit - 1][0] if len(items) > request.limit else None
    answer = Impact(
        kind=search.kind,
        id=search.id,
        runs=tuple(item for item in listed if isinstance(item, AffectedRun)),
        fields=tuple(item for item in listed if isinstance(item, WonField)),
        exports=tuple(item for item in listed if isinstance(item, Export)),
        observations=tuple(item for item in listed if isinstance(item, str)),
        counts=counts,
        depth=search.depth,
        left_out=search.left_out,
        cursor=None if end is None else request.cursor_at(end),
        position=request.position,
    )
    return answer, tuple(end or ())

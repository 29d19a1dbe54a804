"""The search for a lineage: from what was asked about back to its sources, run by run, as far as pages need it.

Every run is listed once, with what it had read and decided by the time that matters; where a later moment of it turns
out to matter too, what lies between follows as a tree of its own. What was listed is only mentioned from then on, so
cycles end; runs that lean on one another are named together.

Where everything listed begins behind a position of the log, and all that is left stands before it, nothing that follows
can lead back. There the search is *cut*: it goes on from what is left alone, and a cursor holds that.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.engines import cancellation
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain import lineage
from woodrat.explain.lineage import Cycle, LineageTree, Node
from woodrat.explain.reader.lineage_trees import (
    AGAIN,
    BELOW,
    BEYOND,
    RunLookup,
    TreeBuilder,
    Wanted,
    first_position,
)
from woodrat.explain.reader.searches import RanOut
from woodrat.explain.reader.tracer import decisions_at, observation_named, observations_behind
from woodrat.ledger.excerpts import Excerpts
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.pages import strange_cursor
from woodrat.log.entry import POSITION_MAX
from woodrat.records import replace
from woodrat.runs.reader.run_reader import run_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.pages import PageRequest
    from woodrat.runs.record import RunRecord
    from woodrat.state.match import Match

_NAMES: Final = "Name a run, a decision as RUN#stage, an observation (obs_…), or a field as type/key#field."
CUT_MAX: Final = 8
"""How many runs are left at most where the search is cut: a cursor holds them."""
PLACE: Final = (int, list)
"""What a place is made of: how many items came before it, and the last cut."""
_ROOT: Final = -1
"""The number of the tree of what was asked about; those of the runs are counted from 0."""
_ANYWHERE: Final = POSITION_MAX + 1


class Cut(NamedTuple):
    """What is left of a search at a point behind which nothing can lead back."""

    number: int
    """How many runs were listed before."""
    distance: int
    """How far away the last of them was."""
    near: tuple[Wanted, ...]
    """What is left at this distance, in order."""
    far: tuple[Wanted, ...]
    """What is left at the next one."""
    beyond: tuple[Wanted, ...]
    """What lies further back than was asked for."""

    @property
    def position(self) -> int:
        """The position before which all that is left stands."""
        return max(wanted.before for wanted in (*self.near, *self.far, *self.beyond))

    def to_json(self) -> list[Json]:
        """Return it as a cursor holds it."""
        left: list[Json] = [[list(wanted) for wanted in some] for some in (self.near, self.far, self.beyond)]
        return [self.number, self.distance, *left]


def cut_of(place: tuple[Any, ...] | None) -> Cut | None:
    """Return the cut that a place holds, if any; `Refused` where no page returned the cursor."""
    if place is None or not place[1]:
        return None
    try:
        number, distance, *left = place[1]
        near, far, beyond = (tuple(Wanted(*wanted) for wanted in some) for some in left)
    except (TypeError, ValueError):
        raise strange_cursor() from None
    wanted = (*near, *far, *beyond)
    counts = (number, distance, *(each.before for each in wanted))
    names = [each for some in wanted for each in (some.run, some.through, some.span or "", some.stage or "")]
    if (
        not all(type(count) is int and count >= 0 for count in counts)
        or not all(isinstance(name, str) for name in names)
        or not 0 < len(wanted) <= CUT_MAX
    ):
        raise strange_cursor()
    return Cut(number, distance, near, far, beyond)


class _Listed(NamedTuple):
    """A run, or a decision of one, that is listed."""

    wanted: Wanted
    since: int
    """Steps of the run before this position were listed before."""
    distance: int


class LineageSearch:
    """What something comes from, worked out as far as it was asked for; pages are shown from it.

    It holds names and positions of the runs behind, and makes a tree when a page shows it.
    """

    def __init__(self, tracer: Tracer, what: object, depth: int | None, cut: Cut | None = None) -> None:
        self.depth = depth
        self.begin = 0 if cut is None else cut.number
        """The number of the first run that it lists."""
        self._is_resumed = cut is not None
        """Whether it began at a cut, and does not know what was listed before."""
        self.is_done = False
        """Whether all was found."""
        self.has_failed = False
        """Whether it was interrupted, and cannot go on."""
        self.left_out = 0
        """How many runs are one further away than asked for, once all is known."""
        self.matched: Match | None = None
        """How the entity asked about was found, where that was by a value that identifies it."""
        self._lock = threading.Lock()
        self._listed: list[_Listed] = []
        self._is_followed = True
        """Whether it was worked out what the last one mentions."""
        self._entered: dict[str, list[tuple[int, int]]] = {}
        """By run, the numbers of its trees and the positions before which the steps count that they show."""
        self._told: dict[tuple[str, str], int] = {}
        """By run and span, the number of the tree that shows a decision."""
        self._near: deque[Wanted] = deque()
        self._far: dict[tuple[str, str | None, str | None], Wanted] = {}
        self._beyond: list[Wanted] = []
        self._distance = 0
        self._cuts: list[Cut] = []
        self._cut_position = _ANYWHERE
        """Where the last cut is in the log."""
        self._earliest = _ANYWHERE
        """Where the earliest run begins that was listed since."""
        self._uncut: int | None = None
        """The number of the tree before which cuts end, as one mentions what stands behind a cut; none: of no tree."""
        self._edges: dict[str, set[str]] = {}
        """Which runs lean on which, since the last cut."""
        self._edges_before: list[dict[str, set[str]]] = []
        """The same of each stretch before."""
        self._cycles: list[tuple[int, Cycle]] = []
        with self.opened(tracer):
            self.root, mentions, run = self._begin(what)
            if cut is None:
                self._follow(mentions, run, _ROOT)
            else:
                self._resume(cut)

    @contextmanager
    def opened(self, tracer: Tracer) -> Iterator[None]:
        """Have a tracer to read with; a search that is remembered holds no view and nothing kept at hand for one."""
        with self._lock:
            self._tracer, self._runs = tracer, RunLookup(tracer)
            self._excerpts = Excerpts(tracer.view, tracer.through)
            try:
                yield
            except BaseException:
                self.has_failed = True
                raise
            finally:
                del self._tracer, self._runs, self._excerpts

    @property
    def size(self) -> int:
        """How much it holds, in runs and decisions."""
        return len(self._listed) + len(self._told) + len(self._near) + len(self._far)

    @property
    def run_count(self) -> int:
        """How many trees of runs there are, as far as they were found."""
        return self.begin + len(self._listed)

    def has(self, number: int) -> bool:
        """Return whether there is an nth tree of a run."""
        while self.run_count <= number and not self.is_done:
            self._find_next()
        return number < self.run_count

    def tree(self, number: int) -> Node:
        """Return the nth tree of a run, which there is."""
        tree, mentions = self._made(number)
        if number == self.run_count - 1 and not self._is_followed:
            self._follow(mentions, self._listed[-1].wanted.run, number)
        return tree

    def cut_before(self, number: int) -> list[Json]:
        """Return the last cut before the nth tree, as a cursor holds it; empty where there is none."""
        if number == 0 or (self._uncut is not None and number >= self._uncut):
            return []
        at = bisect_right(self._cuts, number, key=lambda cut: cut.number)
        return self._cuts[at - 1].to_json() if at else []

    def cycles(self, first: int, last: int) -> tuple[Cycle, ...]:
        """Return the cycles that are known with the trees from one number to before another, and not before."""
        start, stop = (bisect_right(self._cycles, number, key=lambda known: known[0]) for number in (first, last))
        return tuple(cycle for _, cycle in self._cycles[start:stop])

    # Where it begins

    def _begin(self, what: object) -> tuple[Node, list[Wanted], str | None]:
        """Return the tree of what is asked about, what it mentions, and the run that it is of."""
        if not isinstance(what, str):
            raise Refused([Fault("what", f"expected text, got {shown(what)}", _NAMES)], NO_READ)
        if what.startswith("run_"):
            return self._begin_run(what)
        tracer, builder = self._tracer, self._builder(None, _ROOT, 0)
        if what.startswith("obs_"):
            return builder.observation(observation_named(tracer, what).observation.id), builder.mentions, None
        name, mark, field = what.rpartition("#")
        if not mark or not name or not field:
            raise Refused([Fault("what", f"{shown(what)} names no field", _NAMES)], NO_READ)
        ref = find_ref(tracer.reader, name, path="what")
        self.matched = tracer.reader.matched
        snapshot = tracer.reader.snapshot(ref)
        origin = snapshot.blame.get(field)
        if origin is None:
            known = ", ".join(snapshot.fields) or "no field"
            raise NotFound(
                f"{ref}#{field}: it has no value at position {tracer.through}. Nothing was changed. "
                f"The entity has {known}.",
                {"entity": str(ref), "field": field, "position": tracer.through},
            )
        value = snapshot.fields[field]
        details = {"entity": str(ref), "field": field, "value": value, "policy": origin.policy}
        nodes = tuple(builder.observation(id) for id in observations_behind(tracer, snapshot, field))
        label = f"{ref}#{field} = {lineage.shown(value)}"
        return Node("field", f"{ref}#{field}", label, details, nodes), builder.mentions, None

    def _begin_run(self, what: str) -> tuple[Node, list[Wanted], str]:
        id, mark, stage = what.partition("#")
        record = run_record(self._tracer.run_reader, id)
        builder = self._builder(id, _ROOT, 0)
        self._earliest = first_position(record)
        if not mark:
            self._entered[id] = [(_ROOT, self._tracer.through + 1)]
            self._tell(record, _ROOT)
            return lineage.answer(record, builder), builder.mentions, id
        made = decisions_at(record, stage)
        self._told.update(((id, decision.span), _ROOT) for decision in made)
        nodes = tuple(lineage.decision(record, decision, builder) for decision in made)
        # A stage that is decided in a loop has several decisions, and all of them are meant.
        label = f"{stage}, decided {len(nodes)} times"
        return nodes[0] if len(nodes) == 1 else Node("stage", what, label, {}, nodes), builder.mentions, id

    def _resume(self, cut: Cut) -> None:
        """Go on from a cut: what was listed before it is not asked for again."""
        self._entered.clear()
        self._told.clear()
        self._earliest = _ANYWHERE
        self._distance = cut.distance
        self._near.extend(cut.near)
        self._far.update((_key(wanted), wanted) for wanted in cut.far)
        self._beyond.extend(cut.beyond)
        self._cuts.append(cut)
        self._cut_position = cut.position

    # How it goes on

    def _find_next(self) -> None:
        """Find the next run to list, the nearest first; at the end, note that it was the last."""
        if not self._is_followed:
            self.tree(self.run_count - 1)
        self._cut()
        while self._near or self._far:
            cancellation.check()
            if not self._near:
                # What a run shows whole need not be shown again as a single decision of it.
                self._near.extend(sorted(self._far.values(), key=lambda wanted: not wanted.whole))
                self._far = {}
                self._distance += 1
            wanted = self._near.popleft()
            if wanted.stage is not None:
                made = [each for each in self._runs.record(wanted.run).decisions if each.stage == wanted.stage]
                self._near.extendleft(wanted._replace(span=each.span, stage=None) for each in reversed(made))
            elif not self._is_told(wanted, self.run_count) and self._runs.holds(wanted):
                self._list(wanted)
                return
        self._settle()
        self.left_out = len({wanted.run for wanted in self._beyond if not self._is_told(wanted, self.run_count)})
        self.is_done = True

    def _list(self, wanted: Wanted) -> None:
        number = self.run_count
        shown = self._entered.get(wanted.run, ())
        since = max((before for _, before in shown), default=-1)
        self._listed.append(_Listed(wanted, since, self._distance))
        self._is_followed = False
        self._earliest = min(self._earliest, self._runs.first(wanted.run))
        if wanted.span is None:
            self._entered[wanted.run] = [*shown, (number, wanted.before)]
        else:
            self._told[wanted.run, wanted.span] = number

    def _follow(self, mentions: Sequence[Wanted], run: str | None, number: int) -> None:
        """Want what a tree mentions and was not listed."""
        for wanted in mentions:
            if wanted.before > self._cut_position:
                self._go_back()
            if run is not None and run != wanted.run:
                self._edges.setdefault(run, set()).add(wanted.run)
            if self._is_told(wanted, number):
                continue
            if wanted.run == run and not wanted.whole:
                self._near.append(wanted)
            elif self._is_beyond(self._distance):
                self._beyond.append(wanted)
            else:
                known = self._far.get(_key(wanted), wanted)
                self._far[_key(wanted)] = wanted if wanted.before > known.before else known
        self._is_followed = True

    def _is_told(self, wanted: Wanted, number: int) -> bool:
        """Return whether all that is wanted of a run was listed up to the nth tree; of a stage nobody can tell."""
        if wanted.whole:
            shown = self._entered.get(wanted.run, ())
            return any(nth <= number and wanted.before <= before for nth, before in shown)
        return wanted.span is not None and self._told.get((wanted.run, wanted.span), _ANYWHERE) <= number

    def _is_beyond(self, distance: int) -> bool:
        return self.depth is not None and distance >= self.depth

    # Cuts

    def _cut(self) -> None:
        """Cut the search where nothing that is left leads back to what was listed."""
        if self._uncut is not None or len(self._near) + len(self._far) + len(self._beyond) > CUT_MAX:
            return
        number = self.run_count
        self._near = deque(wanted for wanted in self._near if not self._is_told(wanted, number))
        self._far = {key: wanted for key, wanted in self._far.items() if not self._is_told(wanted, number)}
        self._beyond = [wanted for wanted in self._beyond if not self._is_told(wanted, number)]
        if not (self._near or self._far or self._beyond):
            return
        cut = Cut(number, self._distance, tuple(self._near), tuple(self._far.values()), tuple(self._beyond))
        if cut.position > self._earliest:
            return
        self._settle()
        self._edges_before.append(self._edges)
        self._edges = {}
        self._cuts.append(cut)
        self._cut_position, self._earliest = cut.position, _ANYWHERE

    def _go_back(self) -> None:
        """Go on without cuts: something leads back behind one, as it may after an import. Whoever began at one cannot.

        What was said of cycles stands, and is said again of one that turns out to be longer.
        """
        if self._is_resumed:
            raise RanOut
        for edges in self._edges_before:
            for run, named in edges.items():
                self._edges.setdefault(run, set()).update(named)
        self._edges_before.clear()
        self._uncut, self._cut_position = self.run_count, _ANYWHERE

    def _settle(self) -> None:
        """Note which of the runs since the last cut lean on one another."""
        known = set() if self._uncut is None else {cycle for _, cycle in self._cycles}
        found = (Cycle(group[: lineage.CYCLE_RUNS_MAX], len(group)) for group in cycles(self._edges))
        self._cycles += ((self.run_count, cycle) for cycle in found if cycle not in known)

    # Trees

    def _builder(self, inside: str | None, number: int, distance: int) -> TreeBuilder:
        def mark(wanted: Wanted) -> str:
            if self._is_told(wanted, number):
                return AGAIN
            inner = wanted.run == inside and not wanted.whole
            return BEYOND if self._is_beyond(distance) and not inner else BELOW

        return TreeBuilder(self._tracer, self._runs, self._excerpts, inside, mark, self.depth)

    def _made(self, number: int) -> tuple[Node, list[Wanted]]:
        """Return the nth tree of a run and what it mentions; it comes to the same whenever it is made."""
        wanted, since, distance = self._listed[number - self.begin]
        builder = self._builder(wanted.run, number, distance)
        place = {"distance": distance, "through": wanted.through}
        if wanted.span is not None:
            record = self._runs.record(wanted.run)
            made = next(made for made in record.decisions if made.span == wanted.span)
            tree = lineage.decision(record, made, builder)
            return replace(tree, details={**tree.details, **place}), builder.mentions
        record = self._runs.record_before(wanted.run, wanted.before)
        self._tell(record, number)
        by = "" if record.agent is None else f" by {record.agent}"
        query = "" if record.query is None else f": {lineage.shown(record.query)}"
        details = {"agent": record.agent, "query": record.query, **place, "before": wanted.before}
        nodes = lineage.answer(record, builder, since).nodes
        return Node("run", wanted.run, f"{wanted.run}{by}{query}", details, nodes), builder.mentions

    def _tell(self, record: RunRecord, number: int) -> None:
        for made in record.decisions:
            self._told.setdefault((record.id, made.span), number)


def _key(wanted: Wanted) -> tuple[str, str | None, str | None]:
    return wanted.run, wanted.span, wanted.stage


def cycles(edges: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Return the groups of runs that lean on one another, and the runs of each, in the order of the edges.

    Every edge is looked at twice: once to order the runs by when all behind them was seen, and once against its
    direction, which from the last of these reaches exactly the runs that lean on one another.
    """
    order: list[str] = []
    seen: set[str] = set()
    for start in edges:
        left = [(start, iter(sorted(edges[start])))] if start not in seen else []
        seen.add(start)
        while left:
            run, behind = left[-1]
            further = next((each for each in behind if each not in seen), None)
            if further is None:
                order.append(left.pop()[0])
            else:
                seen.add(further)
                left.append((further, iter(sorted(edges.get(further, ())))))
    against: dict[str, list[str]] = {}
    for run, named in edges.items():
        for each in named:
            against.setdefault(each, []).append(run)
    place = {run: number for number, run in enumerate(edges)}
    groups: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for start in reversed(order):
        if start in taken:
            continue
        group, left_runs = [], [start]
        taken.add(start)
        while left_runs:
            run = left_runs.pop()
            group.append(run)
            further_runs = [each for each in against.get(run, ()) if each not in taken]
            taken.update(further_runs)
            left_runs += further_runs
        if len(group) > 1:
            groups.append(tuple(sorted(group, key=place.__getitem__)))
    return sorted(groups, key=lambda group: place[group[0]])


def lineage_page(tracer: Tracer, search: LineageSearch, request: PageRequest) -> LineageTree:
    """Return the page asked for of what a search finds: what lies directly behind, then the runs further back."""
    root = search.root
    start, end = first_item(request), first_item(request) + request.limit
    first, last = (max(item - len(root.nodes), 0) for item in (start, end))
    with search.opened(tracer):
        runs = tuple(search.tree(number) for number in range(first, last) if search.has(number))
        has_more = len(root.nodes) > end or search.has(last)
        return LineageTree(
            kind=root.kind,
            id=root.id,
            label=root.label,
            details=root.details,
            nodes=root.nodes[start:end],
            runs=runs,
            cycles=search.cycles(first, last),
            run_count=None if has_more else search.run_count,
            depth=search.depth,
            left_out=None if has_more else search.left_out,
            cursor=request.cursor_at([end, search.cut_before(last)]) if has_more else None,
            position=request.position,
            matched=search.matched,
        )


def first_item(request: PageRequest) -> int:
    """Return how many items come before the page asked for."""
    place = request.place_of(*PLACE)
    return 0 if place is None else max(place[0], 0)


def reaches(search: LineageSearch, request: PageRequest) -> bool:
    """Return whether a search knows the page asked for, or comes to it; what lies directly behind it always knows."""
    return search.begin == 0 or first_item(request) - len(search.root.nodes) >= search.begin

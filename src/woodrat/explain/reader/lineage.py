"""The search for a lineage: from what was asked about back to its sources, run by run.

Every run is entered once, with what it had read and decided by the time that matters; where a later moment of it turns
out to matter too, what lies between follows as a tree of its own. What was entered is only mentioned from then on, so
cycles end; runs that lean on one another say so.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import ids
from woodrat.engines import cancellation
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain import lineage
from woodrat.explain.lineage import LineageTree, Node
from woodrat.explain.reader.tracer import decisions_at, observation_named, observations_behind
from woodrat.ledger import entry_index
from woodrat.ledger.excerpts import Excerpts
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ
from woodrat.records import replace
from woodrat.runs.reader.recounter import run_record
from woodrat.runs.record import record_of
from woodrat.state import locator
from woodrat.state.run_owner import owned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from woodrat.explain.reader.tracer import Tracer
    from woodrat.ledger.pages import PageRequest
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored
    from woodrat.state.match import Match

_NAMES: Final = "Name a run, a decision as RUN#stage, an observation (obs_…), or a field as type/key#field."
_SHOWN: Final = ("run", "step", "reason", "locator")
"""What an observation says of itself that its node shows too, where it says it."""


class _Wanted(NamedTuple):
    """A run, or decisions of one, that is to be shown as a tree of its own."""

    run: str
    through: str
    """What led to it."""
    before: int = 0
    """Of a run: the position before which its steps count."""
    span: str | None = None
    """Of one decision: its span."""
    stage: str | None = None
    """Of the decisions of a stage: the stage."""

    @property
    def whole(self) -> bool:
        """Whether the run is meant, and not single decisions."""
        return self.span is None and self.stage is None


class LineageSearch:
    """What something comes from, worked out; pages are cut from it."""

    def __init__(self, tracer: Tracer, what: object, depth: int | None) -> None:
        self._tracer = tracer
        self.depth = depth
        self._excerpts = Excerpts(tracer.view, tracer.through)
        self._known: dict[str, Node] = {}
        self._entered: dict[str, int] = {}
        self._told: set[tuple[str, str]] = set()
        self._owners: dict[str, tuple[int, str | None]] = {}
        self._wanted: dict[tuple[str, str | None, str | None], _Wanted] = {}
        self._level: deque[_Wanted] = deque()
        self._beyond: list[_Wanted] = []
        self._inside: str | None = None
        self._distance = 0
        self._edges: dict[str, set[str]] = {}
        self.matched: Match | None = None
        """How the entity asked about was found, where that was by a value that identifies it."""
        self.root = self._begin(what)
        trees = self._search()
        cycles = cycle_heads(self._edges)
        self.runs = [_named_cycle(tree, cycles) for tree in trees]
        self.left_out = len({wanted.run for wanted in self._beyond if not self._is_told(wanted)})
        del self._tracer, self._excerpts, self._known, self._told, self._owners, self._beyond, self._edges

    # Where it begins

    def _begin(self, what: object) -> Node:
        if not isinstance(what, str):
            raise Refused([Fault("what", f"expected text, got {shown(what)}", _NAMES)], NO_READ)
        tracer = self._tracer
        if what.startswith("run_"):
            return self._begin_run(what)
        if what.startswith("obs_"):
            return self.observation(observation_named(tracer, what).observation.id)
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
        nodes = tuple(self.observation(id) for id in observations_behind(tracer, snapshot, field))
        return Node("field", f"{ref}#{field}", f"{ref}#{field} = {lineage.shown(value)}", details, nodes)

    def _begin_run(self, what: str) -> Node:
        id, mark, stage = what.partition("#")
        record = run_record(self._tracer.recounter, id)
        self._inside = id
        if not mark:
            self._enter(record, self._tracer.through + 1)
            return lineage.answer(record, self)
        made = decisions_at(record, stage)
        self._told.update((id, decision.span) for decision in made)
        nodes = tuple(lineage.decision(record, decision, self) for decision in made)
        # A stage that is decided in a loop has several decisions, and all of them are meant.
        return nodes[0] if len(nodes) == 1 else Node("stage", what, f"{stage}, decided {len(nodes)} times", {}, nodes)

    # The levels

    def _search(self) -> list[Node]:
        """Return the trees behind the first one, level by level, as far as asked."""
        trees: list[Node] = []
        while self._level or self._wanted:
            cancellation.check()
            if not self._level:
                # What a run shows whole need not be shown again as a single decision of it.
                self._level.extend(sorted(self._wanted.values(), key=lambda wanted: not wanted.whole))
                self._wanted = {}
                self._distance += 1
            wanted = self._level.popleft()
            if not self._is_told(wanted):
                self._inside = wanted.run
                trees += self._run_tree(wanted) if wanted.whole else self._decision_trees(wanted)
        return trees

    def _is_told(self, wanted: _Wanted) -> bool:
        """Return whether all that is wanted of a run was shown; of a stage nobody can tell yet."""
        if wanted.whole:
            return wanted.before <= self._entered.get(wanted.run, -1)
        return wanted.span is not None and (wanted.run, wanted.span) in self._told

    def _run_tree(self, wanted: _Wanted) -> list[Node]:
        """Return a run with what it had seen and decided by then, but for what was shown of it."""
        since = self._entered.get(wanted.run, -1)
        entries = owned(wanted.run, entry_index.run_entries(self._tracer.view, wanted.run, self._tracer.through))
        record = record_of(wanted.run, [entry for entry in entries if entry.position < wanted.before])
        self._enter(record, wanted.before)
        by = "" if record.agent is None else f" by {record.agent}"
        query = "" if record.query is None else f": {lineage.shown(record.query)}"
        details = {"agent": record.agent, "query": record.query, **self._place(wanted), "before": wanted.before}
        nodes = lineage.answer(record, self, since).nodes
        return [Node("run", wanted.run, f"{wanted.run}{by}{query}", details, nodes)]

    def _decision_trees(self, wanted: _Wanted) -> list[Node]:
        """Return decisions of a run that others were made on, unless they were shown."""
        record = self._tracer.recounter.bare(wanted.run)
        trees: list[Node] = []
        for made in record.decisions:
            key = (wanted.run, made.span)
            if key in self._told or (made.span != wanted.span if wanted.stage is None else made.stage != wanted.stage):
                continue
            self._told.add(key)
            tree = lineage.decision(record, made, self)
            trees.append(replace(tree, details={**tree.details, **self._place(wanted)}))
        return trees

    def _place(self, wanted: _Wanted) -> dict[str, Any]:
        return {"distance": self._distance, "through": wanted.through}

    def _enter(self, record: RunRecord, before: int) -> None:
        self._entered[record.id] = before
        self._told.update((record.id, made.span) for made in record.decisions)

    # What steps name

    def observation(self, id: str) -> Node:
        """Return an observation with where it came from: a reading, a source, a run, or an agent's word.

        What is behind it is told once: a tree that told it at every mention would double with every run on the way.
        """
        known = self._known.get(id)
        if known is None:
            known = self._observation(id)
            again = replace(known, details={**known.details, "again": True}, nodes=())
            self._known[id] = again if known.nodes else known
        elif (run := known.details.get("run")) is not None and isinstance(run, str):
            self._lean(run)
        return known

    def decision(self, run: str, span: str) -> Node:
        """Return the mention of a decision that a fact is what was chosen of."""
        id = f"{run}/{span}"
        details = {"run": run, "span": span}
        label = f"decision of {'this run' if run == self._inside else run}"
        return self._mention(_Wanted(run, id, span=span), Node("decision", id, label, details))

    def stage(self, run: str, stage: str) -> Node:
        """Return the mention of what a recalled run decided at a stage."""
        details = {"run": run, "stage": stage}
        return self._mention(
            _Wanted(run, f"{run}#{stage}", stage=stage), Node("stage", f"{run}#{stage}", f"{stage} of {run}", details)
        )

    def recalled(self, run: str, position: int) -> Node:
        """Return the mention of a run that was recalled at a position of the log."""
        return self._mention(_Wanted(run, run, before=position), Node("run", run, run, {"run": run}))

    def _mention(self, wanted: _Wanted, node: Node) -> Node:
        """Return a node that is shown elsewhere, and have it shown there."""
        self._lean(wanted.run)
        first, _ = self._owner(wanted.run)
        if first < 0 or (wanted.whole and first >= wanted.before):
            return replace(node, details={**node.details, "known": False})
        if self._is_told(wanted):
            return replace(node, details={**node.details, "again": True})
        if wanted.run == self._inside and not wanted.whole:
            self._level.append(wanted)
        elif self.depth is not None and self._distance >= self.depth:
            self._beyond.append(wanted)
            label = f"{node.label}, beyond the depth of {self.depth}"
            return replace(node, label=label, details={**node.details, "beyond": True})
        else:
            key = (wanted.run, wanted.span, wanted.stage)
            known = self._wanted.get(key, wanted)
            self._wanted[key] = known._replace(before=max(known.before, wanted.before))
        return replace(node, details={**node.details, "below": True})

    def _lean(self, run: str) -> None:
        """Note that what is being shown leans on a run."""
        if self._inside is not None and self._inside != run:
            self._edges.setdefault(self._inside, set()).add(run)

    def _owner(self, run: str) -> tuple[int, str | None]:
        """Return where a run begins in the log and whose it is; below 0 where the log does not hold it."""
        if run not in self._owners:
            record = self._tracer.recounter.bare(run)
            self._owners[run] = (min((*record.positions, *record.erased), default=-1), record.agent)
        return self._owners[run]

    # Observations

    def _observation(self, id: str) -> Node:
        stored = self._tracer.observation(id)
        if stored is None:
            return Node("observation", id, f"{id}, which is not in this log", {"known": False})
        said = stored.observation
        optional = {name: value for name, value in said.optional.items() if name in _SHOWN}
        excerpt = self._excerpts.of(said)
        if said.assigned:
            optional["assigned"] = True
        if excerpt is not None:
            optional["excerpt"] = excerpt
        details = {
            "entity": str(said.entity),
            "op": said.op,
            "fields": dict(said.fields),
            "agent": said.agent,
            "observed_at": said.observed_at,
            "position": stored.position,
            **optional,
        }
        what = f"{said.op} {lineage.shown(dict(said.fields))}" if said.fields else said.op
        where = said.optional.get("locator")
        if isinstance(where, dict):
            words = "" if excerpt is None else f": “{lineage.shown(' '.join(excerpt.split()))}”"
            what = f"{what}, read at {locator.words(where)}{words}"
        because = said.optional.get("reason")
        what += f", because {lineage.shown(because)}" if isinstance(because, str) else ""
        label = f"{said.id} by {said.agent} at {said.observed_at.replace('.000000Z', 'Z')}: {what}"
        return Node("observation", id, label, details, tuple(self._behind(stored)))

    def _behind(self, stored: Stored) -> Iterator[Node]:
        optional = stored.observation.optional
        reading, named, run = optional.get("interpretation"), optional.get("source"), optional.get("run")
        if isinstance(reading, str):
            yield self._interpretation(reading)
        elif isinstance(named, str):
            yield self._source(named)
        if isinstance(run, str):
            yield self._writer(run, stored)

    def _interpretation(self, id: str) -> Node:
        reading = self._tracer.reading(id)
        if reading is None:
            return Node("interpretation", id, f"{id}, which is not in this log", {"known": False})
        by = reading.model or reading.extractor or reading.agent
        label = f"{id} by {by}, {reading.status}"
        name = ids.name("source", reading.source_digest)
        return Node("interpretation", id, label, reading.to_json(), (self._source(name),))

    def _source(self, name: str) -> Node:
        digest = self._tracer.source_digest(name)
        if digest is None:
            return Node("source", name, f"{name}, which is not in this log", {"known": False})
        id = ids.id_of("source", digest)
        deliveries = self._tracer.deliveries(digest)
        told = "".join(f", {item.name} from {item.agent}" for item in deliveries[:1])
        return Node("source", id, id + told, {"deliveries": [item.to_json() for item in deliveries]})

    def _writer(self, run: str, stored: Stored) -> Node:
        """Return the mention of the run an observation was said in.

        An observation of another agent than the run's owner, from another log, does not come of what the run saw.
        """
        said = stored.observation
        first, agent = self._owner(run)
        if 0 <= first < stored.position and agent != said.agent:
            label = f"{run}, a run of {agent}, who did not say it"
            return Node("run", run, label, {"agent": agent, "foreign": True})
        return self._mention(_Wanted(run, said.id, before=stored.position), Node("run", run, run, {"run": run}))


def _named_cycle(tree: Node, cycles: Mapping[str, str]) -> Node:
    """Return a tree that says whether its run leans on itself by way of others."""
    run = tree.id if tree.kind == "run" else str(tree.details.get("run"))
    if run not in cycles:
        return tree
    label = f"{tree.label} (in a cycle{'' if cycles[run] == run else f' with {cycles[run]}'})"
    return replace(tree, label=label, details={**tree.details, "cycle": cycles[run]})


def cycle_heads(edges: Mapping[str, set[str]]) -> dict[str, str]:
    """Return by run the first of the runs that lean on one another with it; runs that are in no cycle are left out.

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
    heads: dict[str, str] = {}
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
            first = min(group, key=lambda run: place.get(run, len(place)))
            heads.update(dict.fromkeys(group, first))
    return heads


def lineage_page(search: LineageSearch, request: PageRequest) -> LineageTree:
    """Return the page asked for of what a search found: what lies directly behind, then the runs further back."""
    root, runs = search.root, search.runs
    (start,) = request.place_of(int) or (0,)
    start, direct = max(start, 0), len(root.nodes)
    end = start + request.limit
    return LineageTree(
        kind=root.kind,
        id=root.id,
        label=root.label,
        details=root.details,
        nodes=root.nodes[start:end],
        runs=tuple(runs[max(start - direct, 0) : max(end - direct, 0)]),
        run_count=len(runs),
        depth=search.depth,
        left_out=search.left_out,
        cursor=request.cursor_at([end]) if direct + len(runs) > end else None,
        position=request.position,
        matched=search.matched,
    )

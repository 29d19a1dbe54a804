"""Trees of a lineage: what one thing comes from, as far as the runs behind it, which are only mentioned.

A tree depends on its own run and on which of the runs it mentions were listed before it. So it can be made again at any
time, without those before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.canon import ids
from woodrat.explain import lineage
from woodrat.explain.lineage import Node
from woodrat.ledger import entry_index
from woodrat.ledger.excerpts import Excerpts
from woodrat.records import replace
from woodrat.runs.record import record_of
from woodrat.state import locator
from woodrat.state.run_owner import owned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from woodrat.explain.reader.tracer import Tracer
    from woodrat.log.entry import Entry
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored

AGAIN, BELOW, BEYOND = "again", "below", "beyond"
"""Of a run that is mentioned: its tree was listed, it follows, or it lies further back than was asked for."""
RUNS_AT_HAND: Final = 256
"""How many runs are kept at hand, so that one that is mentioned and then listed is read once."""
_SHOWN: Final = ("run", "step", "reason", "locator")
"""What an observation says of itself that its node shows too, where it says it."""


class Wanted(NamedTuple):
    """A run, or decisions of one, that is to be listed as a tree of its own."""

    run: str
    through: str
    """What led to it."""
    before: int
    """The position before which all of it stands: of a run, the steps that count."""
    span: str | None = None
    """Of one decision: its span."""
    stage: str | None = None
    """Of the decisions of a stage: the stage."""

    @property
    def whole(self) -> bool:
        """Whether the run is meant, and not single decisions."""
        return self.span is None and self.stage is None


class _Run(NamedTuple):
    """A run that was looked up."""

    entries: list[Entry]
    record: RunRecord
    """Without what it wrote and who evaluated it."""
    first: int
    """Where it begins in the log; below 0 where the log does not hold it."""


def first_position(record: RunRecord) -> int:
    """Return where a run begins in the log; below 0 where the log does not hold it."""
    return min((*record.positions, *record.erased), default=-1)


class RunLookup:
    """Looks runs up, as of the position of a tracer; those looked at last are at hand."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._runs: dict[str, _Run] = {}

    def _run(self, run: str) -> _Run:
        if run not in self._runs:
            if len(self._runs) >= RUNS_AT_HAND:
                self._runs.clear()
            entries = entry_index.run_entries(self._tracer.view, run, self._tracer.through)
            record = self._tracer.run_reader.bare(run, entries)
            self._runs[run] = _Run(entries, record, first_position(record))
        return self._runs[run]

    def record(self, run: str) -> RunRecord:
        """Return the record of a run, without what it wrote and who evaluated it."""
        return self._run(run).record

    def record_before(self, run: str, position: int) -> RunRecord:
        """Return the record of a run as its steps before a position make it."""
        return record_of(run, [entry for entry in owned(run, self._run(run).entries) if entry.position < position])

    def first(self, run: str) -> int:
        """Return where a run begins in the log; below 0 where the log does not hold it."""
        return self._run(run).first

    def holds(self, wanted: Wanted) -> bool:
        """Return whether the log holds something of what is wanted."""
        if wanted.whole:
            return 0 <= self.first(wanted.run) < wanted.before
        made = self.record(wanted.run).decisions
        return any(each.span == wanted.span if wanted.stage is None else each.stage == wanted.stage for each in made)

    def decision(self, run: str, span: str, through: str) -> Wanted:
        """Return what has to be listed of a run where one of its decisions is named."""
        at = [made.position for made in self.record(run).decisions if made.span == span]
        return Wanted(run, through, max(at, default=-1) + 1, span=span)

    def stage(self, run: str, stage: str) -> Wanted:
        """Return what has to be listed of a run where what it decided at a stage is named."""
        at = [made.position for made in self.record(run).decisions if made.stage == stage]
        return Wanted(run, f"{run}#{stage}", max(at, default=-1) + 1, stage=stage)


class TreeBuilder:
    """Makes one tree, and notes the runs that it mentions."""

    def __init__(
        self,
        tracer: Tracer,
        runs: RunLookup,
        excerpts: Excerpts,
        inside: str | None,
        mark: Callable[[Wanted], str],
        depth: int | None,
    ) -> None:
        self._tracer, self._runs, self._excerpts = tracer, runs, excerpts
        self._inside = inside
        """The run whose tree it is; none where it is that of a value."""
        self._mark = mark
        self._depth = depth
        self._known: dict[str, Node] = {}
        self.mentions: list[Wanted] = []
        """What is mentioned and held by the log, in order."""

    def observation(self, id: str) -> Node:
        """Return an observation with where it came from: a reading, a source, a run, or an agent's word.

        What is behind it is told once in a tree.
        """
        known = self._known.get(id)
        if known is None:
            known = self._observation(id)
            again = replace(known, details={**known.details, AGAIN: True}, nodes=())
            self._known[id] = again if known.nodes else known
        return known

    def decision(self, run: str, span: str) -> Node:
        """Return the mention of a decision that a fact is what was chosen of."""
        id = f"{run}/{span}"
        label = f"decision of {'this run' if run == self._inside else run}"
        return self._mention(
            self._runs.decision(run, span, id), Node("decision", id, label, {"run": run, "span": span})
        )

    def stage(self, run: str, stage: str) -> Node:
        """Return the mention of what a recalled run decided at a stage."""
        node = Node("stage", f"{run}#{stage}", f"{stage} of {run}", {"run": run, "stage": stage})
        return self._mention(self._runs.stage(run, stage), node)

    def recalled(self, run: str, position: int) -> Node:
        """Return the mention of a run that was recalled at a position of the log."""
        return self._mention(Wanted(run, run, position), Node("run", run, run, {"run": run}))

    def _mention(self, wanted: Wanted, node: Node) -> Node:
        """Return a node that is listed elsewhere, and note that it has to be."""
        if not self._runs.holds(wanted):
            return replace(node, details={**node.details, "known": False})
        self.mentions.append(wanted)
        mark = self._mark(wanted)
        label = f"{node.label}, beyond the depth of {self._depth}" if mark == BEYOND else node.label
        return replace(node, label=label, details={**node.details, mark: True})

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
        agent = self._runs.record(run).agent
        if 0 <= self._runs.first(run) < stored.position and agent != said.agent:
            label = f"{run}, a run of {agent}, who did not say it"
            return Node("run", run, label, {"agent": agent, "foreign": True})
        return self._mention(Wanted(run, said.id, stored.position), Node("run", run, run, {"run": run}))

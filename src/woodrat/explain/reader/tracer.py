"""The tracer: finds what the log holds of observations, sources, readings and runs, and what names them.

Recorded reads and origins are followed by indexes: by observation and decision the reads and decisions that name it, by
source, interpretation and agent the observations. What a question costs depends on what it finds.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import ids
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain.index import touched, traces
from woodrat.explain.references import named_observations
from woodrat.ledger import entry_index, source_index
from woodrat.ledger.index import Lookup
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.read import Reader
from woodrat.ledger.source_index import SourceLookup
from woodrat.merge import blame
from woodrat.runs.evidence import Document
from woodrat.runs.reader.run_reader import open_runs
from woodrat.state import source
from woodrat.state.asof import AsOf
from woodrat.state.entry_rows import SAID_FROM
from woodrat.training.reader import leaning_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from woodrat.canon.ids import Ref
    from woodrat.context import Context
    from woodrat.log.entry import Entry
    from woodrat.merge.snapshot import Snapshot
    from woodrat.runs.reader.run_reader import RunReader
    from woodrat.runs.record import RunRecord
    from woodrat.runs.steps import Decision
    from woodrat.state.asof import Stored
    from woodrat.state.interpretation import Interpretation
    from woodrat.training.exports import Export


@contextmanager
def open_tracer(context: Context, position: int | None = None) -> Iterator[Tracer]:
    """Give what led to what at the context's moment, or at a position before it."""
    with open_runs(context, position) as run_reader:
        yield Tracer(run_reader)


DELIVERY_WINDOW: Final = 64
"""How many entries after the content of a source its first delivery is looked for before the index is asked."""


DEPTH_MAX: Final = 1_000_000
"""How many runs deep may be asked for."""
SNAPSHOTS_MAX: Final = 4_096
"""How many snapshots a tracer keeps at hand."""
OBSERVATIONS_MAX: Final = 4_096
"""How many observations a tracer keeps at hand."""


class Tracer:
    """What led to what, of one tenant at one as-of."""

    def __init__(self, run_reader: RunReader) -> None:
        self.run_reader = run_reader
        self.reader = run_reader.reader
        self.view = run_reader.view
        self.through = run_reader.through
        self._index = Lookup(self.view, self.through, traces.TRACES)
        self._sources = SourceLookup(self.view, self.through)
        self._readers: dict[str | None, Reader] = {}
        self._snapshots: dict[tuple[Ref, str | None], Snapshot | None] = {}
        self._observations: dict[str, Stored | None] = {}

    # What there is

    def observation(self, id: str) -> Stored | None:
        """Return an observation that the log held, by its id or its name."""
        if id not in self._observations:
            if len(self._observations) >= OBSERVATIONS_MAX:
                self._observations.clear()
            self._observations[id] = self._observation(id)
        return self._observations[id]

    def _observation(self, id: str) -> Stored | None:
        digest = ids.digest_of("observation", id)
        if digest is not None:
            return self.view.observation(digest, self.through)
        found = self.view.observation(id)
        return None if found is None or found.position > self.through else found

    def reading(self, id: str) -> Interpretation | None:
        """Return a reading of a source."""
        return self._sources.reading(id)

    def source_digest(self, id: str) -> bytes | None:
        """Return the digest of a source that the log held."""
        digest = ids.digest_of("source", id) or entry_index.source_by_id(self.view, id)
        position = None if digest is None else entry_index.source_position(self.view, digest)
        return digest if position is not None and position <= self.through else None

    def deliveries(self, digest: bytes) -> list[source.Delivery]:
        """Return the deliveries of a source, by position."""
        return self._sources.deliveries(digest)

    def first_delivery(self, digest: bytes) -> source.Delivery | None:
        """Return how a source first came; it is recorded with the content, so that the index is hardly ever asked."""
        position = entry_index.source_position(self.view, digest)
        if position is not None:
            window = min(position + DELIVERY_WINDOW, self.through)
            for entry in self.view.entries(position, window, {"received"}):
                delivery = None if entry.body is None else source.stored(entry.body)
                if delivery is not None and delivery.source_digest == digest:
                    return delivery
        return next(iter(self.deliveries(digest)), None)

    def entries_behind(self, stored: Stored) -> list[Entry]:
        """Return the entries an observation came from: its reading, its source and the deliveries of that."""
        optional = stored.observation.optional
        reading, named = optional.get("interpretation"), optional.get("source")
        found = self._sources.entries_of_reading(reading) if isinstance(reading, str) else []
        if isinstance(named, str):
            found += self._sources.entries_of_source(named)
            digest = self.source_digest(named)
            position = None if digest is None else entry_index.source_position(self.view, digest)
            content = None if position is None else self.view.entry(position)
            found += [] if content is None else [content]
        return found

    def documents(self, origin: Mapping[str, Any]) -> Iterator[Document]:
        """Yield the documents that the observations behind a value came from."""
        for id in named_observations(origin):
            stored = self.observation(id)
            named = None if stored is None else stored.observation.optional.get("source")
            digest = self.source_digest(named) if isinstance(named, str) else None
            if digest is not None:
                first = self.first_delivery(digest)
                name, agent = (None, None) if first is None else (first.name, first.agent)
                yield Document(ids.id_of("source", digest), name, agent, id)

    def said(self, term: str) -> list[Stored]:
        """Return the observations listed under a term, by position."""
        return source_index.said(self.view, self.through, term)

    def snapshot(self, ref: Ref, effective: str | None = None) -> Snapshot | None:
        """Return what is believed about an entity, by an effective time if one is given."""
        if (ref, effective) not in self._snapshots:
            if len(self._snapshots) >= SNAPSHOTS_MAX:
                self._snapshots.clear()
            self._snapshots[ref, effective] = self.reader_by(effective).find(ref)
        return self._snapshots[ref, effective]

    def reader_by(self, effective: str | None) -> Reader:
        """Return a reader at the same position, by another effective time if one is given."""
        if effective is None:
            return self.reader
        if effective not in self._readers:
            self._readers[effective] = Reader(self.view, AsOf(self.through, effective), self.reader.policies)
        return self._readers[effective]

    def naming(self, term: str, after: int, limit: int) -> list[int]:
        """Return the positions of the entries listed under a term after one, in order, at most so many."""
        return self._index.positions_after(term, after, limit)

    def with_moments(self, runs: Collection[str]) -> set[str]:
        """Return those of some runs that asked for another moment than the present; hardly any does."""
        return set(self._index.positions_under(traces.MOMENT, runs))

    def touched(self, before: int) -> Iterator[int]:
        """Yield the positions, before one, of decisions whose evidence something touched since, the latest first."""
        return touched.touched_before(self.view, self.through, before)

    def exports(self, runs: Iterable[str], leans: Callable[[RunRecord], bool]) -> tuple[Export, ...]:
        """Return the exports with rows of runs that leaned on something by then, by position."""
        return tuple(leaning_exports(self.view, self.through, self._index, self.reader.policies, runs, leans))


# What is named


def text_faults(**named: object) -> list[Fault]:
    """Return what is wrong with names that are no text."""
    return [
        Fault(name, f"expected text, got {shown(value)}", "Send the id or the name as text.")
        for name, value in named.items()
        if value is not None and not isinstance(value, str)
    ]


def depth_faults(depth: object) -> list[Fault]:
    """Return what is wrong with how many runs are to be followed."""
    if depth is None or (type(depth) is int and 1 <= depth <= DEPTH_MAX):
        return []
    return [Fault("depth", f"got {shown(depth)}", f"Send 1 to {DEPTH_MAX}, or leave it out to follow all of them.")]


def observation_named(tracer: Tracer, id: str) -> Stored:
    """Return an observation by its id; `NotFound` when the log does not hold it."""
    stored = tracer.observation(id)
    if stored is None:
        raise missing("observation", id, tracer.through, "`observations list` lists them.")
    return stored


_NAMES: Final = "Name an observation (obs_…), a source (src_…) or an interpretation (int_…); or an agent."


def observations_named(tracer: Tracer, what: object, agent: object) -> tuple[str, str, list[Stored]]:
    """Return kind and id of what is named, and the observations it stands for; `NotFound` when there is none."""
    if (what is None) is (agent is None):
        problem = "nothing is named" if what is None else "an agent is named as well"
        raise Refused([Fault("what", problem, "Name one thing: an observation, a source, … or an agent.")], NO_READ)
    if agent is not None:
        faults = ids.agent_faults(agent, "agent")
        if faults:
            raise Refused(faults, NO_READ)
        assert isinstance(agent, str)
        said = list(source_index.said_by(tracer.view, tracer.through, agent))
        if not said:
            raise missing("agent", agent, tracer.through, "`observations list` shows who said something.")
        return "agent", agent, said
    if not isinstance(what, str):
        raise Refused([Fault("what", f"expected text, got {shown(what)}", _NAMES)], NO_READ)
    if what.startswith("obs_"):
        found = observation_named(tracer, what)
        return "observation", found.observation.id, [found]
    if what.startswith("src_"):
        digest = tracer.source_digest(what)
        if digest is None:
            raise missing("source", what, tracer.through, "`sources list` lists them.")
        return "source", ids.id_of("source", digest), tracer.said(SAID_FROM + ids.name("source", digest))
    if what.startswith("int_"):
        if tracer.reading(what) is None:
            raise missing("interpretation", what, tracer.through, "`interpretations list` lists them.")
        return "interpretation", what, tracer.said(SAID_FROM + what)
    raise Refused([Fault("what", f"{shown(what)} is none of these", _NAMES)], NO_READ)


def missing(kind: str, id: str, position: int, remedy: str) -> NotFound:
    """Return the error for something that the log does not hold."""
    problem = f"There is no {kind} {shown(id) if kind == 'agent' else id} at position {position}. Nothing was changed."
    return NotFound(f"{problem} {remedy}", {kind: id, "position": position})


def decisions_at(record: RunRecord, stage: str) -> list[Decision]:
    """Return the decisions of a stage of a run, in order; `NotFound` when there is none."""
    made = [decision for decision in record.decisions if decision.stage == stage]
    if not made:
        stages = ", ".join(dict.fromkeys(decision.stage for decision in record.decisions)) or "nothing"
        raise NotFound(
            f"{record.id} has no decision {shown(stage)}. Nothing was changed. It decided {stages}.",
            {"run": record.id, "stage": stage},
        )
    return made


def observations_behind(tracer: Tracer, snapshot: Snapshot, name: str) -> tuple[str, ...]:
    """Return the observations that a field's value is made of."""
    origin = snapshot.blame[name]
    if origin.policy != "sum":
        return tuple(map(str, origin.observations))
    # A sum names only the one whose turn came last; its blame knows them all.
    stated = [stored.observation for stored in tracer.reader.stored(snapshot.members)]
    verdicts = blame.blame(stated, snapshot.members, tracer.reader.rules(snapshot.members[0].type), name)
    return tuple(str(verdict.observation) for verdict in verdicts if verdict.wins)

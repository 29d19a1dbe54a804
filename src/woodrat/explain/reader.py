"""The tracer: the way back from a value to its sources, the way forward to what leaned on it, and what is stale.

Recorded reads and origins are followed, by shelves that trail the log: by observation the reads and decisions that
name it, by source, interpretation and agent the observations. What a question costs depends on what it finds.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain import index, lineage
from woodrat.explain.impact import AffectedRun, Impact, WonField, affected_run
from woodrat.explain.lineage import Node
from woodrat.explain.remake import SAME, is_whole, remake
from woodrat.explain.stale import Belief, Stale
from woodrat.ledger.excerpts import Excerpts
from woodrat.ledger.index import Shelves
from woodrat.ledger.moments import NO_READ, resolve_ref
from woodrat.ledger.pages import Page, PageRequest
from woodrat.ledger.read import Reader
from woodrat.merge import blame, fold
from woodrat.records import replace
from woodrat.runs import steps
from woodrat.runs.evidence import Document, LaterChange
from woodrat.runs.reader import open_recounter, run_record
from woodrat.runs.steps import Decision, Read
from woodrat.runs.values import REDACTED
from woodrat.state import interpretation, locator, observation, source
from woodrat.state.asof import AsOf
from woodrat.state.fact import Fact
from woodrat.state.observation import DELETE, RETRACT, Observation
from woodrat.state.run_owner import is_part
from woodrat.training.reader import leaning_exports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.context import Context
    from woodrat.log.entry import Entry
    from woodrat.merge.snapshot import Snapshot
    from woodrat.runs.reader import Recounter
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored
    from woodrat.training.exports import Export

RUNS_DEEP_MAX: Final = 16
"""How many runs lie behind each other at most in a lineage: a run read what another one wrote."""

DELIVERY_WINDOW: Final = 64
"""How many entries after the content of a source its first delivery is looked for before the index is asked."""

_WINDOW, _WINDOW_MAX = 1_024, 65_536


@contextmanager
def open_tracer(context: Context) -> Iterator[Tracer]:
    """Give what led to what at the context's moment; for the present the indexes are brought up to date first."""
    if context.moment == "now":
        index.catch_up(context)
    with open_recounter(context) as recounter:
        yield Tracer(recounter)


class Tracer:
    """What led to what, of one tenant at one as-of."""

    def __init__(self, recounter: Recounter) -> None:
        self.recounter = recounter
        self.reader = recounter.reader
        self.view = recounter.view
        self.through = recounter.through
        self._shelves = Shelves(self.view, self.through, index.INDEX)
        self._readers: dict[str | None, Reader] = {}
        self._snapshots: dict[tuple[Ref, str | None], Snapshot | None] = {}

    # What there is

    def observation(self, id: str) -> Stored | None:
        """Return an observation that the log held, by its id or its name."""
        digest = ids.digest_of("observation", id)
        if digest is not None:
            return self.view.observation(digest, self.through)
        found = self.view.observation_by_id(id)
        return None if found is None or found.position > self.through else found

    def reading(self, id: str) -> interpretation.Interpretation | None:
        """Return a reading of a source."""
        bodies = {entry.kind: entry.body for entry in self._shelves.entries(index.READING + id)}
        started = bodies.get("interpretation.started")
        return None if started is None else interpretation.stored(started, bodies.get("interpretation.ended"))

    def source_digest(self, id: str) -> bytes | None:
        """Return the digest of a source that the log held."""
        digest = ids.digest_of("source", id) or self.view.source_by_id(id)
        position = None if digest is None else self.view.source(digest)
        return digest if position is not None and position <= self.through else None

    def deliveries(self, digest: bytes) -> list[source.Delivery]:
        """Return the deliveries of a source, by position."""
        entries = self._shelves.entries(index.DELIVERED + ids.name("source", digest))
        return [source.stored(entry.body) for entry in entries if entry.body is not None]

    def first_delivery(self, digest: bytes) -> source.Delivery | None:
        """Return how a source first came; it is recorded with the content, so that the index is hardly ever asked."""
        position = self.view.source(digest)
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
        found = self._shelves.entries(index.READING + reading) if isinstance(reading, str) else []
        if isinstance(named, str):
            found += self._shelves.entries(index.DELIVERED + named)
            digest = self.source_digest(named)
            position = None if digest is None else self.view.source(digest)
            content = None if position is None else self.view.entry(position)
            found += [] if content is None else [content]
        return found

    def documents(self, origin: Mapping[str, Any]) -> Iterator[Document]:
        """Yield the documents that the observations behind a value came from."""
        for id in _named(origin):
            stored = self.observation(id)
            named = None if stored is None else stored.observation.optional.get("source")
            digest = self.source_digest(named) if isinstance(named, str) else None
            if digest is not None:
                first = self.first_delivery(digest)
                name, agent = (None, None) if first is None else (first.name, first.agent)
                yield Document(ids.id_of("source", digest), name, agent, id)

    def said(self, shelf: str) -> list[Stored]:
        """Return the observations on a shelf, by position."""
        from woodrat.state.asof import Stored

        entries = self._shelves.entries(shelf)
        return [Stored(entry.position, observation.stored(entry.body)) for entry in entries if entry.body is not None]

    def snapshot(self, ref: Ref, effective: str | None = None) -> Snapshot | None:
        """Return what is believed about an entity, by an effective time if one is given."""
        if (ref, effective) not in self._snapshots:
            self._snapshots[ref, effective] = self.reader_by(effective).find(ref)
        return self._snapshots[ref, effective]

    def reader_by(self, effective: str | None) -> Reader:
        """Return a reader at the same position, by another effective time if one is given."""
        if effective is None:
            return self.reader
        if effective not in self._readers:
            self._readers[effective] = Reader(self.view, AsOf(self.through, effective), self.reader.policies)
        return self._readers[effective]

    def affected_runs(self, observations: Iterable[str]) -> tuple[AffectedRun, ...]:
        """Return the runs that read some observations or decided on them, by their first entry that did."""
        named = frozenset(observations)
        runs: dict[str, int] = {}
        for id in named:
            for entry in self._shelves.entries(index.READ_BY + id):
                assert entry.body is not None
                run = form.decode(entry.body).get("run")
                if isinstance(run, str):
                    runs[run] = min(entry.position, runs.get(run, entry.position))
        found: list[AffectedRun] = []
        for run in sorted(runs, key=lambda run: runs[run]):
            record = self.recounter.find(run)
            leaned = None if record is None else affected_run(record, named)
            if leaned is not None:
                found.append(leaned)
        return tuple(found)

    def exports(self, runs: Iterable[str], observations: Iterable[str]) -> tuple[Export, ...]:
        """Return the exports with rows of runs that leaned on some observations by then, by position."""
        named, policies = frozenset(observations), self.reader.policies

        def leans(record: RunRecord) -> bool:
            return affected_run(record, named) is not None

        return tuple(leaning_exports(self.view, self.through, self._shelves, policies, runs, leans))


# Lineage


def lineage_of(tracer: Tracer, what: object) -> Node:
    """Return the way back from a run (its answer), `RUN#stage`, an observation or `REF#field`."""
    if not isinstance(what, str):
        raise Refused([Fault("what", f"expected text, got {shown(what)}", _LINEAGE_OF)], NO_READ)
    back = _Back(tracer)
    if what.startswith("run_"):
        return _of_run(tracer, back, what)
    if what.startswith("obs_"):
        return back.observation(_observation(tracer, what).observation.id)
    name, mark, field = what.rpartition("#")
    if not mark or not name or not field:
        raise Refused([Fault("what", f"{shown(what)} names no field", _LINEAGE_OF)], NO_READ)
    ref = resolve_ref(tracer.reader, name)
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
    ids_now = _taking_part(tracer, snapshot, field)
    nodes = tuple(back.observation(id) for id in ids_now)
    return Node("field", f"{ref}#{field}", f"{ref}#{field} = {lineage.shown(value)}", details, nodes)


_LINEAGE_OF: Final = "Name a run, a decision as RUN#stage, an observation (obs_…), or a field as type/key#field."


def _of_run(tracer: Tracer, back: _Back, what: str) -> Node:
    id, mark, stage = what.partition("#")
    record = run_record(tracer.recounter, id)
    back.entered.add(id)
    if not mark:
        return lineage.answer(record, back.observation)
    made = decisions_at(record, stage)
    nodes = tuple(lineage.decision(record, decision, back.observation) for decision in made)
    # A stage that is decided in a loop has several decisions, and all of them are meant.
    return nodes[0] if len(nodes) == 1 else Node("stage", what, f"{stage}, decided {len(nodes)} times", {}, nodes)


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


def _observation(tracer: Tracer, id: str) -> Stored:
    found = tracer.observation(id)
    if found is None:
        raise _missing("observation", id, tracer.through, "`observations list` lists them.")
    return found


def _missing(kind: str, id: str, position: int, remedy: str) -> NotFound:
    problem = f"There is no {kind} {shown(id) if kind == 'agent' else id} at position {position}. Nothing was changed."
    return NotFound(f"{problem} {remedy}", {kind: id, "position": position})


_SHOWN: Final = ("run", "step", "reason", "locator")
"""What an observation says of itself that its node shows too, where it says it."""


class _Back:
    """The way back from observations; each run on the way is entered once."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._known: dict[str, Node] = {}
        self._excerpts = Excerpts(tracer.view, tracer.through)
        self.entered: set[str] = set()
        self._deep = 0

    def observation(self, id: str) -> Node:
        """Return an observation with where it came from: a reading, a source, a run, or an agent's word.

        What is behind it is told once: a tree that told it at every mention would double with every run on the way.
        """
        found = self._known.get(id)
        if found is not None:
            return found
        self._known[id] = Node("observation", id, id, {"again": True})
        found = self._observation(id)
        mention = replace(found, details={**found.details, "again": True}, nodes=())
        self._known[id] = mention if found.nodes else found
        return found

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
        label = f"{said.id} by {said.agent} at {_time(said.observed_at)}: {what}"
        return Node("observation", id, label, details, tuple(self._behind(stored)))

    def _behind(self, stored: Stored) -> Iterator[Node]:
        optional = stored.observation.optional
        reading, named, run = optional.get("interpretation"), optional.get("source"), optional.get("run")
        if isinstance(reading, str):
            yield self._interpretation(reading)
        elif isinstance(named, str):
            yield self._source(named)
        if isinstance(run, str):
            yield self._run(run, stored.position, stored.observation.agent)

    def _interpretation(self, id: str) -> Node:
        found = self._tracer.reading(id)
        if found is None:
            return Node("interpretation", id, f"{id}, which is not in this log", {"known": False})
        by = found.model or found.extractor or found.agent
        label = f"{id} by {by}, {found.status}"
        name = ids.name("source", found.source_digest)
        return Node("interpretation", id, label, found.to_json(), (self._source(name),))

    def _source(self, name: str) -> Node:
        digest = self._tracer.source_digest(name)
        if digest is None:
            return Node("source", name, f"{name}, which is not in this log", {"known": False})
        id = ids.id_of("source", digest)
        deliveries = self._tracer.deliveries(digest)
        told = "".join(f", {item.name} from {item.agent}" for item in deliveries[:1])
        return Node("source", id, id + told, {"deliveries": [item.to_json() for item in deliveries]})

    def _run(self, id: str, position: int, agent: str) -> Node:
        """Return the run an observation was said in, with what the run had seen and decided by then.

        An observation of another agent than the run's owner, from another log, does not come of what the run saw.
        """
        if id in self.entered:
            return Node("run", id, id, {})
        if self._deep >= RUNS_DEEP_MAX:
            label = f"{id}, where this answer ends: {RUNS_DEEP_MAX} runs lie before it; `lineage {id}` goes on"
            return Node("run", id, label, {"cut": True})
        entries = [entry for entry in self._tracer.view.run(id, self._tracer.through) if entry.position < position]
        if not entries:
            return Node("run", id, id, {"known": False})
        record = self._tracer.recounter.record(id, entries)
        if record.agent != agent:
            label = f"{id}, a run of {record.agent}, who did not say it"
            return Node("run", id, label, {"agent": record.agent, "foreign": True})
        self.entered.add(id)
        self._deep += 1
        found = lineage.answer(record, self.observation)
        self._deep -= 1
        by = "" if record.agent is None else f" by {record.agent}"
        query = "" if record.query is None else f": {lineage.shown(record.query)}"
        return Node("run", id, f"{id}{by}{query}", {"agent": record.agent, "query": record.query}, found.nodes)


def _time(fixed: str) -> str:
    return fixed.replace(".000000Z", "Z")


# Impact


def impact(tracer: Tracer, what: object, agent: object) -> Impact:
    """Return what leaned on an observation, a source, an interpretation, or all that an agent said."""
    kind, id, said = observations_named(tracer, what, agent)
    names = tuple(dict.fromkeys(stored.observation.id for stored in said))
    fields = {(won.entity, won.field, won.observation): won for stored in said for won in _won(tracer, stored)}
    runs = tracer.affected_runs(names)
    exports = tracer.exports([found.run for found in runs], names)
    return Impact(kind, id, names, tuple(fields.values()), runs, exports, tracer.through)


_IMPACT_OF: Final = "Name an observation (obs_…), a source (src_…) or an interpretation (int_…); or an agent."


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
        said = tracer.said(index.SAID_BY + agent)
        if not said:
            raise _missing("agent", agent, tracer.through, "`observations list` shows who said something.")
        return "agent", agent, said
    if not isinstance(what, str):
        raise Refused([Fault("what", f"expected text, got {shown(what)}", _IMPACT_OF)], NO_READ)
    if what.startswith("obs_"):
        found = _observation(tracer, what)
        return "observation", found.observation.id, [found]
    if what.startswith("src_"):
        digest = tracer.source_digest(what)
        if digest is None:
            raise _missing("source", what, tracer.through, "`sources list` lists them.")
        return "source", ids.id_of("source", digest), tracer.said(index.SAID_FROM + ids.name("source", digest))
    if what.startswith("int_"):
        if tracer.reading(what) is None:
            raise _missing("interpretation", what, tracer.through, "`interpretations list` lists them.")
        return "interpretation", what, tracer.said(index.SAID_FROM + what)
    raise Refused([Fault("what", f"{shown(what)} is none of these", _IMPACT_OF)], NO_READ)


def _won(tracer: Tracer, stored: Stored) -> Iterator[WonField]:
    """Yield the fields whose value an observation takes part in."""
    said = stored.observation
    snapshot = tracer.snapshot(said.entity) if said.stated else None
    if snapshot is None:
        return
    entity = str(snapshot.members[0]) if len(snapshot.members) > 1 else str(said.entity)
    for name in sorted(said.stated):
        if name in snapshot.fields and said.id in _taking_part(tracer, snapshot, name):
            yield WonField(entity, name, snapshot.fields[name], said.id)


def _taking_part(tracer: Tracer, snapshot: Snapshot, name: str) -> tuple[str, ...]:
    """Return the observations that a field's value is made of."""
    origin = snapshot.blame[name]
    if origin.policy != "sum":
        return tuple(map(str, origin.observations))
    # A sum names only the one whose turn came last; its blame knows them all.
    verdicts = _verdicts(tracer.reader, snapshot.members, name)
    return tuple(str(verdict.observation) for verdict in verdicts if verdict.wins)


def _verdicts(reader: Reader, members: tuple[Ref, ...], name: str) -> tuple[blame.Verdict, ...]:
    said = [stored.observation for stored in reader.stored(members)]
    return blame.blame(said, members, reader.rules(members[0].type), name)


# Stale


def stale(tracer: Tracer, request: PageRequest, *, same: bool) -> Page[Stale]:
    """Return decisions whose evidence is believed otherwise now, the latest in the log first.

    Those that would come out the same are left out unless asked for. Every decision is looked at until the page is
    full; what is believed of an entity is asked once.
    """
    before = tracer.through + 1 if request.place is None else request.place[0]
    found: list[Stale] = []
    for entry in _decided(tracer, before):
        one = stale_decision(tracer, entry)
        if one is None or (one.outcome == SAME and not same):
            continue
        if len(found) == request.limit:
            cursor = request.cursor_at([found[-1].decision.position])
            return Page(tuple(found), cursor, request.position)
        found.append(one)
    return Page(tuple(found), None, request.position)


def _decided(tracer: Tracer, before: int) -> Iterator[Entry]:
    """Yield the decisions before a position, the latest first, window by window."""
    high, window = min(before - 1, tracer.through), _WINDOW
    while high >= 0:
        low = max(-1, high - window)
        yield from reversed(list(tracer.view.entries(low, high, {"run.decided"})))
        high, window = low, min(window * 2, _WINDOW_MAX)


def stale_decision(tracer: Tracer, entry: Entry) -> Stale | None:
    """Return a decision whose evidence is believed otherwise now; none when it is believed as it was."""
    body: Any = None if entry.body is None else form.decode(entry.body)
    decision = steps.part_of(entry.kind, entry.position, body) if isinstance(body, dict) else None
    run = body.get("run") if isinstance(body, dict) else None
    if not isinstance(decision, Decision) or not isinstance(run, str):
        return None
    looked = lineage.evidence(decision)
    origins: dict[str, Mapping[str, Any]] = {**decision.facts_origin, **looked}
    record: RunRecord | None = None
    now: dict[str, Fact] = {}
    beliefs: list[Belief] = []
    for key, origin in origins.items():
        ref = read_ref(origin)
        if ref is None or not _spoken_since(tracer, ref, origin, decision, key):
            continue
        if record is None:
            record = tracer.recounter.bare(run)
            if not is_part(entry.kind, body, record.agent):
                return None
        read = read_by(record, origin)
        if read is not None and not read.present:
            continue  # it asked for a moment, and would be told the same
        effective = None if read is None else read.effective
        belief, fact = _belief(tracer, decision, key, origin, ref, effective)
        if fact is not None:
            now[key] = fact
        if belief is not None and key in looked:
            beliefs.append(belief)
    if record is None or not beliefs:
        return None
    return Stale(
        run=run,
        agent=record.agent,
        query=record.query,
        subject=record.subject,
        answer=record.answer,
        decision=decision,
        beliefs=tuple(beliefs),
        now=remake(decision, now),
    )


def read_by(record: RunRecord, origin: Mapping[str, Any]) -> Read | None:
    """Return the read that a fact came from: of several at one position one that saw the same, best of the present."""
    entity, position, named = origin.get("entity"), origin.get("position"), set(_named(origin))
    reads = [read for read in record.reads if read.entity == entity and read.as_of == position]
    field = str(origin["field"])
    return max(reads, key=lambda read: (set(read.behind(field)) == named, read.present), default=None)


def read_ref(origin: object) -> Ref | None:
    """Return the entity that a fact was read from; none of a fact that came from elsewhere."""
    if not isinstance(origin, dict) or origin.get("kind") != "read" or not isinstance(origin.get("field"), str):
        return None
    try:
        return ids.parse_ref(origin.get("entity"))
    except Refused:
        return None


def _spoken_since(tracer: Tracer, ref: Ref, origin: Mapping[str, Any], decision: Decision, key: str) -> bool:
    """Return whether belief about a fact may be another than when it was read."""
    position = origin.get("position")
    if type(position) is not int or tracer.reader.version(ref) > position:
        return True
    # Nothing was said of it since; its schema may have become another.
    fact, before = _fact(tracer, ref, str(origin["field"]), None), decision.known_facts.get(key)
    return set(fact.origin["observations"]) != set(_named(origin)) or not form.same(before, fact.value)


def _fact(tracer: Tracer, ref: Ref, field: str, effective: str | None) -> Fact:
    snapshot = tracer.snapshot(ref, effective)
    if snapshot is None:
        return Fact(field, None, {"kind": "read", "entity": str(ref), "field": field, "observations": []}, missing=True)
    return snapshot.fact(field)


def _named(origin: Mapping[str, Any]) -> tuple[str, ...]:
    found = origin.get("observations")
    return tuple(id for id in found if isinstance(id, str)) if isinstance(found, list) else ()


def _belief(
    tracer: Tracer, decision: Decision, key: str, origin: Mapping[str, Any], ref: Ref, effective: str | None
) -> tuple[Belief | None, Fact | None]:
    """Return a fact as it is believed now, and both beliefs where they differ or rest on other observations."""
    was = _named(origin)
    if was and all(tracer.observation(id) is None for id in was):
        return None, None  # it was read from another log, and what that holds now cannot be told
    field = str(origin["field"])
    fact = _fact(tracer, ref, field, effective)
    values = decision.known_facts
    before: Json = values.get(key)
    current = _named(fact.origin)
    if not is_whole(before):
        equal = set(was) == set(current)
    else:
        equal = (key in values) is not fact.missing and form.same(before, fact.value)
    if equal and set(was) == set(current):
        # Left as it is on record: a value that was hidden or cut stays so.
        return None, None
    reader = tracer.reader_by(effective)
    change, reason = _change(reader, ref, field, was, fact)
    cause = _cause(reader, ref, field, was, change)
    belief = Belief(
        key=key,
        entity=str(ref),
        field=field,
        before=before,
        now=REDACTED if before == REDACTED else fact.value,
        missing=fact.missing,
        observations=was,
        observations_now=current,
        change=change,
        reason=reason,
        changed_by=None if cause is None else cause.agent,
        because=None if cause is None else steps.text(cause.optional.get("reason")),
    )
    return belief, fact


def later_change(tracer: Tracer, origin: Mapping[str, Any], before: Json) -> LaterChange | None:
    """Return what became of a value that was read; none where it is still believed, or nobody here can tell."""
    ref, was = read_ref(origin), _named(origin)
    if ref is None or (was and all(tracer.observation(id) is None for id in was)):
        return None
    field = str(origin["field"])
    fact = _fact(tracer, ref, field, None)
    if set(_named(fact.origin)) == set(was):
        return None
    change, _ = _change(tracer.reader, ref, field, was, fact)
    cause = _cause(tracer.reader, ref, field, was, change)
    return LaterChange(
        change=change,
        now=REDACTED if before == REDACTED else fact.value,
        observation=None if cause is None else cause.id,
        agent=None if cause is None else cause.agent,
        observed_at=None if cause is None else cause.observed_at,
        because=None if cause is None else steps.text(cause.optional.get("reason")),
    )


def _cause(reader: Reader, ref: Ref, field: str, was: tuple[str, ...], change: str) -> Observation | None:
    """Return the observation because of which a field is believed otherwise than the observations behind it said."""
    stored = reader.stored(reader.group(ref))
    if change in ("retracted", "deleted"):
        op = RETRACT if change == "retracted" else DELETE
        gone = {item.observation.digest for item in stored if item.observation.id in was}
        causes = [item.observation for item in stored if item.observation.op == op]
        if op == RETRACT:
            causes = [said for said in causes if not gone.isdisjoint(said.replaces)]
        return causes[-1] if causes else None
    snapshot = reader.find(ref)
    origin = None if snapshot is None else snapshot.blame.get(field)
    return next((s.observation for s in stored if origin is not None and s.observation.id == origin.observation), None)


def _change(reader: Reader, ref: Ref, field: str, was: tuple[str, ...], fact: Fact) -> tuple[str, str]:
    """Return what became of the observations that a fact rested on, and why they no longer hold."""
    if not was:
        return "stated", "nothing was said of it before"
    members = reader.group(ref)
    known = {stored.observation.digest: stored.observation for stored in reader.stored(members)}
    verdicts = {str(v.observation): v for v in blame.blame(known.values(), members, reader.rules(ref.type), field)}
    reason = next((verdicts[id].reason for id in was if id in verdicts and not verdicts[id].wins), "others joined it")
    live = fold.live_digests(known)
    if any(said.id in was and digest not in live for digest, said in known.items()):
        return "retracted", reason
    snapshot = reader.find(ref)
    if snapshot is None or snapshot.deleted:
        return "deleted", reason
    origin = snapshot.blame.get(field)
    return ("corrected" if origin is not None and origin.corrected and not fact.missing else "superseded"), reason

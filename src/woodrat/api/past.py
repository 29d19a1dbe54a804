"""Past: the verbs that read, at one moment on two clocks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger.moments import NO_READ, Moment, open_reader, resolve_moment, resolve_ref, timestamp
from woodrat.ledger.read import Reader, glanced, glanced_back
from woodrat.records import dataclass, replace
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from os import PathLike
    from typing import IO

    from woodrat.api.ledger import Ledger
    from woodrat.bisect.predicate import Predicate
    from woodrat.bisect.reduction import Reduction
    from woodrat.bisect.search import Bisected
    from woodrat.canon.form import Json
    from woodrat.compare.divergence import Divergence
    from woodrat.compare.groups import Crowd
    from woodrat.context import Context
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import Node
    from woodrat.explain.reader import Tracer
    from woodrat.explain.stale import Stale
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.find import Duplicate, Hit, Page
    from woodrat.ledger.known_state import ReadingsDiff
    from woodrat.ledger.rebuild import Progress
    from woodrat.log.entry import Entry
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.reader import Recall
    from woodrat.runs.reader import Reason, Recounter
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored
    from woodrat.state.blame import Verdict
    from woodrat.state.diff import EntityChange, Values
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.schema import Schema
    from woodrat.state.snapshot import Conflict, Snapshot
    from woodrat.state.source import Delivery
    from woodrat.state.timeline import Event, Step
    from woodrat.training.reader import Exported
    from woodrat.whatif.result import WhatIf

# What only some verbs need is imported by them: a program that shows one entity does not wait for the rest.

DEPTH_MAX = 16
"""How far `related` walks at most."""


@dataclass(frozen=True, slots=True)
class Related:
    """One relation found from an entity."""

    relation: Ref
    """The entity that stands for the relation."""
    type: str
    """Its type."""
    start: Ref
    """Where it begins."""
    end: Ref
    """Where it leads."""
    depth: int
    """How many relations lie between the entity asked about and this one, itself included."""
    fields: Mapping[str, Json]
    """What is said about the relation."""

    def to_json(self) -> dict[str, Any]:
        """Return the relation as plain JSON."""
        return {
            "relation": self.relation.id,
            "type": self.type,
            "from": str(self.start),
            "to": str(self.end),
            "depth": self.depth,
            "fields": dict(self.fields),
        }


class Past:
    """Read-only verbs, at one moment on two clocks; a ledger reads at the present."""

    def __init__(self, context: Context) -> None:
        self.context = context
        """What the rooms below are handed."""
        self.tenant = context.tenant
        self._moment_of: Ledger | None = None
        self._reached = -1
        """A position that the log is known to have reached."""
        self._erased: tuple[tuple[int, list[tuple[int, int]]], ...] = ()
        """The erasures up to a position of the log, and the positions that each names."""
        self._erased_through = BEFORE_ALL

    def _reader(self) -> AbstractContextManager[Reader]:
        return open_reader(self.context)

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        with self._reader() as reader:
            return reader.asof.position

    def at(self, moment: Moment | None = None, *, effective: str | None = None) -> Past:
        """Return the ledger as of another moment, or as it was true by another time. Timestamps need an offset."""
        position: Moment = self.context.moment
        if type(moment) is int and 0 <= moment <= self._reached:
            position = moment  # a log only grows
        elif moment is not None:
            with self.context.engine.view(self.tenant) as view:
                position = resolve_moment(view, moment, clock=self.context.clock)
                self._reached = view.head().position
        chosen = self.context.valid_at if effective is None else timestamp(effective, "effective")
        found = Past(replace(self.context, moment=position, valid_at=chosen))
        found._moment_of = self._home
        return found

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
        seen = self._glanced(ref)
        if seen is not None:
            return seen
        with self._reader() as reader:
            return reader.snapshot(resolve_ref(reader, ref))

    def _glanced(self, ref: str | Ref) -> Snapshot | None:
        """Return what `show` returns where one look at the engine tells it; `None` where it takes longer."""
        context = self.context
        if context.moment == "now":
            if context.valid_at is None:
                return glanced(context.engine, context.tenant, ref, context.policies)
        elif type(context.moment) is not int:
            return None
        position = context.moment if type(context.moment) is int else None
        return glanced_back(context.engine, context.tenant, ref, context.policies, position, context.valid_at)

    def elements(self, ref: str | Ref, field: str, *, limit: int = 1_000, cursor: str | None = None) -> Elements:
        """Return the elements of a collection (`union`, `append`), some at a time, in its order.

        The pages that follow are read as of the position of the first. A page costs what it holds, not what the
        collection has.
        """
        from woodrat.ledger import elements as element_pages

        with self._reader() as reader:
            return element_pages.elements(reader, ref, field, limit, cursor)

    def search(
        self, query: str, *, entity_type: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        """Return the entities in whose key and text values every word of the query begins a word.

        The one whose key is the query comes first, then those with more fields hit, then by entity id. Deleted ones
        are left out, and relations unless their type is asked for. The present is answered by an index, an effective
        time by folding every entity.
        """
        from woodrat.ledger import find as finder

        asked = finder.ask_search(query, entity_type, limit, cursor)
        if self.context.moment == "now" and self.context.valid_at is None:
            finder.catch_up(self.context.engine, self.tenant, self.context.policies)
        with self._reader() as reader:
            return finder.search(reader, asked)

    def query(
        self,
        *,
        entity_type: str | None = None,
        where: Mapping[str, Any] | Sequence[str] | None = None,
        sort: str | None = None,
        descending: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Snapshot]:
        """Return entities by type and key, or sorted by a field with those that lack it last; deleted ones left out.

        `where` holds values by field, or texts `field=value` whose value is JSON where it reads as JSON. A collection
        (`union`, `append`) fulfils a condition when it holds the value. Every page folds every entity of the type,
        or of the ledger: the cost grows with their number, not with `limit`.
        """
        from woodrat.ledger import find as finder

        asked = finder.ask_query(entity_type, where, sort, descending, limit, cursor)
        with self._reader() as reader:
            return finder.query(reader, asked)

    def duplicates(self, entity_type: str | None = None) -> tuple[Duplicate, ...]:
        """Return entities that share an identifying value and are not joined, by type, rule and value.

        What counts is what is believed now, not what was ever said. Every entity is folded for it.
        """
        from woodrat.ledger import find as finder

        chosen = finder.check_type(entity_type)
        with self._reader() as reader:
            return finder.duplicates(reader, chosen)

    def infer(self, entity_type: str, *, progress: Progress | None = None) -> dict[str, Any]:
        """Return a JSON Schema that everything stored of a type fits: a suggestion to edit and `register`.

        It describes what was seen: a field every entity has is required, an array whose elements repeat from claim to
        claim merges by `union`. Every observation of the type is read for it; `progress` is called with how many
        entities are done and how many there are.
        """
        from woodrat.ledger import find as finder

        finder.check_type(entity_type, optional=False)
        with self._reader() as reader:
            return finder.infer(reader, entity_type, progress)

    def observations(self, ref: str | Ref | None = None) -> tuple[Stored, ...]:
        """Return the observations of an entity and of those it is joined with, or all of them, by position."""
        with self._reader() as reader:
            return tuple(_stored(reader, ref))

    def history(self, ref: str | Ref, field: str | None = None) -> tuple[Step, ...]:
        """Return how belief about an entity, or one field of it, changed with each observation."""
        from woodrat.state import timeline

        with self._reader() as reader:
            found = resolve_ref(reader, ref)
            members = _spoken_of(reader, found)

            def rules_at(position: int) -> Any:
                return Reader(reader.view, AsOf(position), self.context.policies).rules(found.type)

            return timeline.history(reader.stored(members), members, rules_at, field)

    def timeline(self, *, since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
        """Return what was seen from `since` to before `until`, across all entities, in the order of seeing."""
        from woodrat.state import timeline

        begin = None if since is None else timestamp(since, "since")
        end = None if until is None else timestamp(until, "until")
        with self._reader() as reader:
            return timeline.timeline(_stored(reader, None), begin, end)

    def blame(
        self, ref: str | Ref, field: str | None = None, *, excerpts: bool = False
    ) -> dict[str, tuple[Verdict, ...]]:
        """Return what became of every claim on one field or all fields: who won, who lost, and why.

        With `excerpts`, the words of its source that a claim points at stand beside it.
        """
        from woodrat.explain.excerpts import Excerpts
        from woodrat.state import blame

        with self._reader() as reader:
            found = resolve_ref(reader, ref)
            members = _spoken_of(reader, found)
            rules = reader.rules(found.type)
            observations = [stored.observation for stored in reader.stored(members)]
            names = sorted({name for o in observations for name in o.stated})
            if field is not None and field not in names:
                raise NotFound(
                    f"{found}#{field}: no such field is stated. Nothing was changed. It has {', '.join(names)}.",
                    {"entity": str(found), "field": field},
                )
            asked = names if field is None else [field]
            if not excerpts:
                return {name: blame.blame(observations, members, rules, name) for name in asked}
            read = Excerpts(reader.view, reader.asof.position).of
            return {name: blame.blame(observations, members, rules, name, read) for name in asked}

    def conflicts(self, entity_type: str | None = None, *, arrival: bool = False) -> tuple[tuple[Ref, Conflict], ...]:
        """Return every field on which two agents differ without having seen each other, by entity.

        With `arrival`, every field that was decided only by arrival instead: the winner states no observation time and
        wins because it arrived later, whoever said the other value (docs/formats/merge.md has the exact rule).
        """
        from woodrat.state.snapshot import arrivals

        with self._reader() as reader:
            found = ((ref, reader.take(ref, state)) for ref, state in reader.roots(entity_type))
            if arrival:
                return tuple((ref, field) for ref, taken in found for field in arrivals(taken))
            return tuple((ref, conflict) for ref, taken in found for conflict in taken.conflicts)

    def diff(
        self, before: Moment, after: Moment, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between two moments: in one entity, in those of a type, or everywhere."""
        from woodrat.state.diff import Values, diff

        _check_one(ref, entity_type)
        with self.context.engine.view(self.tenant) as view:
            sides: list[dict[str, Values]] = []
            for when in (before, after):
                asof = AsOf(resolve_moment(view, when, clock=self.context.clock), self.context.valid_at)
                reader = Reader(view, asof, self.context.policies)
                if ref is None:
                    sides.append(reader.values(entity_type))
                else:
                    entity = resolve_ref(reader, ref)
                    snapshot = reader.find(entity)
                    sides.append({} if snapshot is None else {str(entity): Values.of(snapshot)})
            return diff(*sides)

    def diff_against(
        self, known: object, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between a state that was written down and what is believed here: `known`, then now.

        `known` is a list of snapshots, or of objects such as `Snapshot.to_json` gives, and stands for everything, or
        for everything of `entity_type`: what it leaves out was not there. One snapshot alone stands for its entity
        alone. An entity that is deleted here and left out there is no difference.
        """
        from woodrat.ledger.known_state import is_one, known_values
        from woodrat.state.diff import Values, diff

        _check_one(ref, entity_type)
        before = known_values(known)
        with self._reader() as reader:
            asked = None if ref is None else resolve_ref(reader, ref)
            if asked is None and not is_one(known):
                if entity_type is not None:
                    before = {name: values for name, values in before.items() if name.startswith(f"{entity_type}/")}
                believed = reader.values(entity_type)
                after = {name: values for name, values in believed.items() if name in before or not values.deleted}
                return diff(before, after)
            if asked is not None:
                before = {str(asked): values for values in before.values() if str(asked) in values.members}
            after = {}
            for name in before or [str(asked)]:
                snapshot = reader.find(resolve_ref(reader, name))
                if snapshot is not None and (before or not snapshot.deleted):
                    after[name] = Values.of(snapshot)
            return diff(before, after)

    def values(self) -> dict[str, Values]:
        """Return the values of everything that exists, by reference: what `diff` compares."""
        with self._reader() as reader:
            return reader.values()

    def related(self, ref: str | Ref, *, depth: int = 1) -> tuple[Related, ...]:
        """Return the relations that begin or end at an entity, and those of their other ends, up to `depth`."""
        if type(depth) is not int or not 1 <= depth <= DEPTH_MAX:
            raise Refused([Fault("depth", f"got {shown(depth)}", f"Send 1 to {DEPTH_MAX}.")], outcome=NO_READ)
        with self._reader() as reader:
            start = resolve_ref(reader, ref)
            reader.snapshot(start)
            found: dict[Ref, Related] = {}
            seen, edge_of = {start}, [start]
            for level in range(1, depth + 1):
                following: list[Ref] = []
                for entity in edge_of:
                    for link in _links(reader, entity):
                        found.setdefault(link.relation, replace(link, depth=level))
                        following += [end for end in (link.start, link.end) if end not in seen]
                        seen.update((link.start, link.end))
                edge_of = following
            return tuple(sorted(found.values(), key=lambda r: (r.depth, str(r.relation))))

    def entries(self, *, after: int = BEFORE_ALL, limit: int | None = None) -> tuple[Entry, ...]:
        """Return entries of the log after a position, in order, as far as this moment reaches."""
        from itertools import islice

        with self._reader() as reader:
            return tuple(islice(reader.view.entries(after, reader.asof.position), limit))

    def erased_at(self, position: int) -> int | None:
        """Return where the log says that the body at a position was erased, at whatever moment this reads.

        None where it says so nowhere: a body is there then, or its loss is damage.
        """
        from woodrat.ledger.moments import erased_here
        from woodrat.log.erasure import KIND

        with self.context.engine.view(self.tenant) as view:
            head = view.head().position
            for entry in view.entries(self._erased_through, head, {KIND}):
                if entry.body is not None:
                    self._erased += ((entry.position, erased_here(view, entry)),)
            self._erased_through = head
        for at, ranges in self._erased:
            if any(first <= position <= last for first, last in ranges):
                return at
        return None

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came."""
        from woodrat.state import fingerprint

        with self._reader() as reader:
            return fingerprint.text(reader.fingerprint(provenance=provenance).root())

    def runs(
        self,
        *,
        agent: str | None = None,
        subject: str | Ref | None = None,
        conversation: str | None = None,
        principal: str | None = None,
        session: str | Ref | None = None,
        pipeline: str | Ref | None = None,
        since: str | None = None,
        until: str | None = None,
        status: str | None = None,
        verdict: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page[RunRecord]:
        """Return run records, those the log heard of last first; of runs that began from `since` to before `until`.

        A `session` has the runs that name it, those it lists, and those of its conversation that name no other; a
        `pipeline` those that name it, and the runs these started.
        """
        from woodrat.runs import reader as run_reader

        asked = run_reader.ask_runs(
            agent=agent,
            subject=subject,
            conversation=conversation,
            principal=principal,
            session=session,
            pipeline=pipeline,
            since=since,
            until=until,
            status=status,
            verdict=verdict,
            limit=limit,
            cursor=cursor,
        )
        with self._recounter() as recounter:
            return run_reader.runs(recounter, asked)

    def run_record(self, run_id: str) -> RunRecord:
        """Return what the log holds about a run; `NotFound` when it holds nothing."""
        from woodrat.runs import reader as run_reader

        with self._recounter() as recounter:
            return run_reader.run_record(recounter, run_id)

    def runs_diff(
        self,
        first: str | Mapping[str, Any] | Sequence[Any],
        second: str | Mapping[str, Any] | Sequence[Any],
        *,
        other: Past | None = None,
    ) -> Divergence:
        """Return two runs side by side, where they part and why, ending in one plain sentence; `NotFound` for either.

        The cause is followed to the observation that changed what was read: by whom, from which source, and when. With
        `other` the second run is one of that ledger, and what it read is followed there. Instead of an id, either may
        be a document that `record` takes: a trajectory, or entries.
        """
        from woodrat.compare.reader import runs_diff

        if not (other is None or isinstance(other, Past)):
            problem = f"expected a ledger, got {shown(other)}"
            raise Refused([Fault("other", problem, "Open it with woodrat.open first.")], NO_READ)
        with self._recounter() as recounter:
            if other is None or other._is(self):
                return runs_diff(recounter, first, second)
            with other._recounter() as elsewhere:
                return runs_diff(recounter, first, second, elsewhere)

    def runs_group(
        self,
        runs: Sequence[str | Mapping[str, Any] | Sequence[Any]] | None = None,
        *,
        query: str | None = None,
        subject: str | Ref | None = None,
        agent: str | None = None,
        same_inputs_as: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Crowd:
        """Return many runs clustered by where they part from the way most took, ending in one plain sentence.

        The runs are those named, by id or as documents, those that the rest asks for, or both: by question, subject,
        agent and when they began, or `same_inputs_as` for the runs that were asked and given what that one was. Runs
        with other inputs than most are set aside. The order of `runs` makes no difference.
        """
        from woodrat.compare.reader import runs_group
        from woodrat.runs import reader as run_reader

        if isinstance(runs, str | bytes) or not (runs is None or hasattr(runs, "__iter__")):
            problem = f"expected a list of runs, got {shown(runs)}"
            raise Refused([Fault("runs", problem, "Send run ids in a list.")], NO_READ)
        given = {"query": query, "subject": subject, "agent": agent, "since": since, "until": until}
        stated = {name: value for name, value in given.items() if value is not None}
        if runs is None and not stated and same_inputs_as is None:
            problem = "nothing says which runs are meant"
            remedy = "Name runs, or send query, subject, agent, since or same_inputs_as."
            raise Refused([Fault("runs", problem, remedy)], NO_READ)
        asked = run_reader.ask_runs(**stated) if stated or same_inputs_as is not None else None
        with self._recounter() as recounter:
            return runs_group(recounter, None if runs is None else list(runs), same_inputs_as, asked)

    def _is(self, other: Past) -> bool:
        """Tell whether two are the same ledger, at whatever moment."""
        return self.context.engine is other.context.engine and self.tenant == other.tenant

    def why(self, ref: str | Ref, *, limit: int = 20, cursor: str | None = None) -> Page[Reason]:
        """Return what was decided about an entity, the latest first, each decision with its evidence and answer.

        Exact: the decisions of runs about the entity, and those of other runs whose evidence was read from it. Finding
        none is an answer.
        """
        from woodrat.runs import reader as run_reader

        asked = run_reader.ask_why(ref, limit, cursor)
        with self._recounter() as recounter:
            return run_reader.why(recounter, asked)

    def recall(
        self,
        question: str,
        *,
        k: int = 1,
        threshold: float = 0.5,
        projection: str = "decisions",
        scope: str = "tenant",
        principal: str | None = None,
        conversation: str | None = None,
        ttl: float | timedelta | None = None,
        embedder: Embedder | str | None = None,
        budget: int | None = None,
    ) -> Recall:
        """Return the runs a question is about, at most `k`; false when none passes, and then it says what came near.

        Strict, in this order: runs that do not speak of what the question names by number (`#42`) are not looked at;
        of the others the nearest count; below `threshold`, a cosine, none does. Runs that decided come first, and a
        question about a run never comes before it. `scope` is `tenant`, `principal` or `conversation`, the last two
        with the one meant; `ttl` is how old a run may be, in seconds. Without an `embedder` it is `ngram-v1`, which
        knows spelling and no meaning: about 0.3 is a threshold for questions that name nothing by number.
        """
        from woodrat.recall import reader as recall_reader
        from woodrat.runs import reader as run_reader

        asked = recall_reader.ask(
            question, k, threshold, projection, budget, scope, principal, conversation, ttl, embedder
        )
        if self.context.valid_at is not None:
            remedy = "Ask at a moment instead: runs happened when they happened."
            raise Refused([Fault("effective", "recall has no effective time", remedy)], NO_READ)
        if self.context.moment == "now":
            run_reader.catch_up(self.context.engine, self.tenant)
        return recall_reader.recall(self.context.engine, self.tenant, asked, self._reader, self._now())

    def _now(self) -> str | None:
        """Return what the age of a run is counted from; none means from the last entry there was."""
        return None

    def lineage(self, what: str) -> Node:
        """Return the way back to the sources, as a tree: of a run's answer, a decision, an observation or a field.

        `what` is a run, a decision as `RUN#stage`, an observation's id, or `type/key#field`. Only what was recorded is
        followed: the observations that reads and evidence name, their interpretations and sources.
        """
        from woodrat.explain import reader as tracing

        with self._tracer() as tracer:
            return tracing.traced(tracer, what)

    def impact(self, what: str | None = None, *, agent: str | None = None, progress: Progress | None = None) -> Impact:
        """Return what leaned on an observation, a source, an interpretation, or all that an agent said.

        The fields it takes part in now, every read, decision and answer whose record names it, and every recorded
        export with rows of such runs. The cost grows with what is found, not with the ledger; `progress` is told of
        the index being made, which the first question about a long log waits for.
        """
        from woodrat.explain import reader as tracing
        from woodrat.training import exports

        if self.context.moment == "now":
            tracing.catch_up(self.context.engine, self.tenant, progress)
            exports.catch_up(self.context.engine, self.tenant, progress)
        with self._tracer() as tracer:
            return tracing.impact(tracer, what, agent)

    def stale(self, *, same: bool = False, limit: int = 20, cursor: str | None = None) -> Page[Stale]:
        """Return decisions whose evidence is believed otherwise now and which would come out differently.

        The latest first. Rules that are data are evaluated again on what is believed now; where that would need a
        model or the agent's code, the outcome is `unknown`. With `same` also those that would come out the same.
        """
        from woodrat.explain import reader as tracing

        with self._recounter() as recounter:
            return tracing.stale(tracing.Tracer(recounter), same=same, limit=limit, cursor=cursor)

    def bisect(
        self,
        what: str | Ref | Predicate | Mapping[str, Any] | Callable[[Past], object] | None = None,
        when: Mapping[str, Any] | None = None,
        *,
        where: Mapping[str, Any] | Sequence[str] | None = None,
        exists: bool | None = None,
        deleted: bool | None = None,
        rules: Iterable[Any] | None = None,
        default: Any = None,
        chosen: Any = ...,
        before: Moment | None = None,
        after: Moment | None = None,
        first: bool = False,
        progress: Progress | None = None,
    ) -> Bisected:
        """Return a write with which the answer to a question about state became another; false when there is none.

        `what` is an entity, a decision as `RUN#stage`, or a function of the ledger at a moment. `when` holds conditions
        as rules do, `where` values as queries do, or texts such as `creditScore lt 600` and `loan/42#city=Girona`;
        `rules` decide on the entity's fields, and `chosen` is the branch asked about. From `before` (left out: before
        everything) to `after` (left out: this moment) the answers must differ; about log2 of the positions between
        them are folded, and *a* flip is found. With `first` every change of what is asked about is walked for the
        first one. A function that raises `NotFound` answers no.
        """
        from woodrat.bisect import reader as questions
        from woodrat.bisect import verbs as bisect_verbs

        branch = questions.ANYTHING if chosen is ... else chosen
        asking = questions.Asking(what, when, where, exists, deleted, rules, default, branch)
        with self._reader() as reader:

            def at(position: int) -> Past:
                return Past(replace(self.context, moment=position, erasures=None))

            return bisect_verbs.bisect_by(
                reader, asking, at, before=before, after=after, first=first, progress=progress
            )

    def reduce(
        self,
        what: str | Ref | Predicate | Mapping[str, Any] | None = None,
        when: Mapping[str, Any] | None = None,
        *,
        where: Mapping[str, Any] | Sequence[str] | None = None,
        exists: bool | None = None,
        deleted: bool | None = None,
        rules: Iterable[Any] | None = None,
        default: Any = None,
        chosen: Any = ...,
        out: str | PathLike[str] | None = None,
        folds_max: int | None = None,
        progress: Progress | None = None,
    ) -> Reduction:
        """Return a 1-minimal set of observations that by itself shows what holds here, and write it to a file.

        What is asked is stated as for `bisect`, and must hold at this moment. Leaving out any one member loses it. A
        member that was withdrawn stays withdrawn, by the retractions it depends on, which are members too. The file
        `out` is checked anywhere by `woodrat.check_reduction`. Nothing is written to the ledger.
        """
        from woodrat.bisect import reader as questions
        from woodrat.bisect import reducer
        from woodrat.bisect.reduce import FOLDS_MAX

        branch = questions.ANYTHING if chosen is ... else chosen
        asking = questions.Asking(what, when, where, exists, deleted, rules, default, branch)
        limit = FOLDS_MAX if folds_max is None else folds_max
        with self._reader() as reader:
            found = reducer.reduce_by(reader, asking, folds_max=limit, progress=progress)
        if out is not None:
            reducer.write(found, out)
        return found

    def what_if(
        self,
        run: str | Sequence[str] | None = None,
        *,
        without: str | Sequence[str] = (),
        without_agents: str | Sequence[str] = (),
        set: Mapping[str, Json] | None = None,
        rules: Mapping[str, Any] | None = None,
        thresholds: Mapping[str, Json] | None = None,
        sweep: str | Mapping[str, Any] | None = None,
        stage: str | None = None,
        agent: str | None = None,
        subject_type: str | None = None,
        since: str | None = None,
        until: str | None = None,
        same: bool | None = None,
        limit: int = 20,
        cursor: str | None = None,
        progress: Progress | None = None,
    ) -> WhatIf:
        """Return what would have come of recorded decisions, had something been otherwise.

        Asked of a run, of a decision as `RUN#stage`, of several, or of all there are. What was read is folded again
        and rules that are data are evaluated again, exactly; whatever would need a model, a tool or the agent's code is
        `unknown`, with the reason. Nothing is written.
        """
        from woodrat.explain import reader as tracing
        from woodrat.runs import reader as run_reader
        from woodrat.whatif import verbs as supposing

        asked = supposing.ask(
            run,
            without=without,
            without_agents=without_agents,
            set=set,
            rules=rules,
            thresholds=thresholds,
            sweep=sweep,
            stage=stage,
            agent=agent,
            subject_type=subject_type,
            since=since,
            until=until,
            same=same,
            limit=limit,
            cursor=cursor,
        )
        # Indexes that trail the log are not brought up to date here, as that would write.
        with self._reader() as reader:
            return supposing.what_if(tracing.Tracer(run_reader.Recounter(reader)), asked, progress)

    @contextmanager
    def _tracer(self) -> Iterator[Tracer]:
        from woodrat.explain import reader as tracing

        if self.context.moment == "now":
            tracing.catch_up(self.context.engine, self.tenant)
        with self._recounter() as recounter:
            yield tracing.Tracer(recounter)

    def export_training(
        self,
        kind: str,
        *,
        out: str | PathLike[str] | IO[str] | IO[bytes],
        flavour: str = "trl",
        agent: str | None = None,
        since: str | None = None,
        until: str | None = None,
        verdict: str | None = None,
        metadata: bool = True,
        record: bool = True,
        progress: Progress | None = None,
    ) -> Exported:
        """Write rows for training a model, one JSON object a line: `sft`, `dpo`, `kto` or `process-rl`.

        Runs that lean on observations which no longer stand are left out and listed. `progress` is called with how much
        of the log is done and how much there is; `metadata` names the runs and entries of each row. A ledger that can
        be written to keeps an `audit_event` of the export, by which `impact` finds it, unless `record` is false.
        """
        from woodrat.runs import reader as run_reader
        from woodrat.training import exports
        from woodrat.training import reader as training_reader

        filters = {"agent": agent, "since": since, "until": until, "verdict": verdict}
        asked = run_reader.ask_runs(**filters)
        with self._recounter() as recounter:
            found = training_reader.export(
                recounter, asked, kind, out, flavour=flavour, metadata=metadata, progress=progress
            )
        home = self._home
        if not record or home is None:
            return found
        event = exports.record(home, found, filters, self.context.valid_at, metadata=metadata)
        return replace(found, event=event)

    @property
    def _home(self) -> Ledger | None:
        """The ledger that this is a moment of, if it can be written to."""
        return self._moment_of

    @contextmanager
    def _recounter(self) -> Iterator[Recounter]:
        from woodrat.runs import reader as run_reader

        if self.context.moment == "now":
            run_reader.catch_up(self.context.engine, self.tenant)
        with self._reader() as reader:
            yield run_reader.Recounter(reader)

    def schema(self, entity_type: str) -> Schema:
        """Return the schema in force for a type, a built-in one included."""
        from woodrat.state import builtin

        with self._reader() as reader:
            found = reader.rules(entity_type).schema
            found = builtin.schemas().get(entity_type, found) if found.is_open else found
            if found.is_open:
                raise NotFound(
                    f"{entity_type}: no schema. Nothing was changed. Types without one take any fields.",
                    {"entity_type": entity_type},
                )
            return found

    def schemas(self) -> tuple[Schema, ...]:
        """Return the schema in force of every type that has one in the log, by type."""
        with self._reader() as reader:
            types = reader.view.schema_types(reader.asof.position)
            return tuple(reader.rules(entity_type).schema for entity_type in types)

    def deliveries(self) -> tuple[Delivery, ...]:
        """Return every delivery of a source, by position."""
        from woodrat.state import source

        with self._reader() as reader:
            entries = reader.view.entries(through=reader.asof.position, kinds={"received"})
            return tuple(source.stored(entry.body) for entry in entries if entry.body is not None)

    def content(self, source_id: str) -> bytes:
        """Return the content of a source, exactly as it was received."""
        from woodrat.canon import ids

        with self._reader() as reader:
            if not isinstance(source_id, str):
                problem = f"expected a source's id, got {shown(source_id)}"
                raise Refused([Fault("source", problem, "Send it as text.")], NO_READ)
            digest = ids.digest_of("source", source_id) or reader.view.source_by_id(source_id)
            position = None if digest is None else reader.view.source(digest)
            entry = None if position is None else reader.view.entry(position)
            if entry is None or entry.body is None or entry.position > reader.asof.position:
                raise NotFound(
                    f"There is no source {source_id} here. Nothing was changed. `sources list` shows those there are.",
                    {"source": source_id},
                )
            return entry.body

    def interpretations(self) -> tuple[Interpretation, ...]:
        """Return every reading of a source, by position."""
        from woodrat.canon import form
        from woodrat.state import interpretation

        with self._reader() as reader:
            kinds = {"interpretation.started", "interpretation.ended"}
            started: dict[str, bytes] = {}
            ended: dict[str, bytes] = {}
            for entry in reader.view.entries(through=reader.asof.position, kinds=kinds):
                if entry.body is None:
                    continue
                body: Any = form.decode(entry.body)
                (started if entry.kind == "interpretation.started" else ended)[body["interpretation"]] = entry.body
            return tuple(interpretation.stored(body, ended.get(id)) for id, body in started.items())

    def interpretations_diff(self, before: str, after: str) -> ReadingsDiff:
        """Return how two readings differ: in model, prompt and parameters, and in what they said of which entity."""
        from woodrat.ledger.known_state import readings_diff

        _reading_ids(before=before, after=after)
        with self._reader() as reader:
            said = (stored.observation for stored in _stored(reader, None))
            return readings_diff(before, after, self.at(reader.asof.position).interpretations(), said)


def _reading_ids(**given: object) -> None:
    faults = [
        Fault(name, f"expected an interpretation's id, got {shown(id)}", "Send it as text, such as int_….")
        for name, id in given.items()
        if not isinstance(id, str)
    ]
    if faults:
        raise Refused(faults, outcome=NO_READ)


def _check_one(ref: object, entity_type: object) -> None:
    """Refuse to narrow a question in two ways at once, or to a type that cannot be one."""
    if entity_type is None:
        return
    from woodrat.canon import ids

    faults = ids.type_faults(entity_type, "entity_type")
    if ref is not None:
        faults.append(Fault("entity_type", "an entity is named as well", "Name an entity or a type, not both."))
    if faults:
        raise Refused(faults, outcome=NO_READ)


def _spoken_of(reader: Reader, ref: Ref) -> tuple[Ref, ...]:
    """Return an entity with all it is joined with; `NotFound` when nothing was ever said of them."""
    members = reader.group(ref)
    if not reader.stored(members):
        reader.snapshot(ref)
    return members


def _stored(reader: Reader, ref: str | Ref | None) -> list[Stored]:
    if ref is not None:
        return reader.stored(_spoken_of(reader, resolve_ref(reader, ref)))
    return reader.stored(reader.view.entities(None, reader.asof.position))


def _links(reader: Reader, entity: Ref) -> Iterator[Related]:
    """Yield the live relations at an entity. A key of two references alone does not make one: it must say so itself."""
    from woodrat.state import relation

    for edge in reader.view.relations(entity.digest, None, reader.asof.position):
        ends = relation.endpoints(edge)
        snapshot = reader.find(edge)
        if ends is None or snapshot is None or snapshot.deleted:
            continue
        if snapshot.fields.get("from") == str(ends[0]) and snapshot.fields.get("to") == str(ends[1]):
            said = {name: value for name, value in snapshot.fields.items() if name not in ("from", "to")}
            yield Related(edge, edge.type, ends[0], ends[1], 0, said)

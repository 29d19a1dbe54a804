"""Past: the verbs that read, at one moment on two clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import reads
from woodrat.ledger.moments import NO_READ, Moment, open_reader, resolve_moment, timestamp
from woodrat.records import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from os import PathLike
    from typing import IO

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
    from woodrat.ledger.read import Reader
    from woodrat.ledger.reads import Related
    from woodrat.ledger.rebuild import Progress
    from woodrat.ledger.report import Report
    from woodrat.log.entry import Entry
    from woodrat.merge.blame import Verdict
    from woodrat.merge.diff import EntityChange, Values
    from woodrat.merge.snapshot import Conflict, Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.reader import Recall
    from woodrat.runs.reader import Reason, Recounter
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery
    from woodrat.training.exports import Exported
    from woodrat.whatif.result import WhatIf

# What only some verbs need is imported by them: a program that shows one entity does not wait for the rest.


class Home(Protocol):
    """The ledger that moments are taken of, as far as these need it."""

    def store(self, records: Mapping[str, Any], /) -> Report:
        """Store a record."""


class Past:
    """Read-only verbs, at one moment on two clocks; a ledger reads at the present."""

    def __init__(self, context: Context) -> None:
        self.context = context
        """What the rooms below are handed."""
        self.tenant = context.tenant
        self._moment_of: Home | None = None
        self._reached = -1
        """A position that the log is known to have reached."""
        self._erased: reads.ErasedPositions | None = None

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
        found = Past(self.context.at(position, chosen))
        found._moment_of = self._home
        return found

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
        return reads.show(self.context, ref)

    def elements(self, ref: str | Ref, field: str, *, limit: int = 1_000, cursor: str | None = None) -> Elements:
        """Return the elements of a collection (`union`, `append`), some at a time, in its order.

        The pages that follow are read as of the position of the first. A page costs what it holds, not what the
        collection has.
        """
        return reads.elements(self.context, ref, field, limit=limit, cursor=cursor)

    def search(
        self, query: str, *, entity_type: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[Hit]:
        """Return the entities in whose key and text values every word of the query begins a word.

        The one whose key is the query comes first, then those with more fields hit, then by entity id. Deleted ones
        are left out, and relations unless their type is asked for. The present is answered by an index, an effective
        time by folding every entity.
        """
        return reads.search(self.context, query, entity_type=entity_type, limit=limit, cursor=cursor)

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
        return reads.query(
            self.context,
            entity_type=entity_type,
            where=where,
            sort=sort,
            descending=descending,
            limit=limit,
            cursor=cursor,
        )

    def duplicates(self, entity_type: str | None = None) -> tuple[Duplicate, ...]:
        """Return entities that share an identifying value and are not joined, by type, rule and value.

        What counts is what is believed now, not what was ever said. Every entity is folded for it.
        """
        return reads.duplicates(self.context, entity_type)

    def infer(self, entity_type: str, *, progress: Progress | None = None) -> dict[str, Any]:
        """Return a JSON Schema that everything stored of a type fits: a suggestion to edit and `register`.

        It describes what was seen: a field every entity has is required, an array whose elements repeat from claim to
        claim merges by `union`. Every observation of the type is read for it; `progress` is called with how many
        entities are done and how many there are.
        """
        return reads.infer(self.context, entity_type, progress=progress)

    def observations(self, ref: str | Ref | None = None) -> tuple[Stored, ...]:
        """Return the observations of an entity and of those it is joined with, or all of them, by position."""
        return reads.observations(self.context, ref)

    def history(self, ref: str | Ref, field: str | None = None) -> tuple[Step, ...]:
        """Return how belief about an entity, or one field of it, changed with each observation."""
        return reads.history(self.context, ref, field)

    def timeline(self, *, since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
        """Return what was seen from `since` to before `until`, across all entities, in the order of seeing."""
        return reads.timeline(self.context, since=since, until=until)

    def blame(
        self, ref: str | Ref, field: str | None = None, *, excerpts: bool = False
    ) -> dict[str, tuple[Verdict, ...]]:
        """Return what became of every claim on one field or all fields: who won, who lost, and why.

        With `excerpts`, the words of its source that a claim points at stand beside it.
        """
        return reads.blame(self.context, ref, field, excerpts=excerpts)

    def conflicts(self, entity_type: str | None = None, *, arrival: bool = False) -> tuple[tuple[Ref, Conflict], ...]:
        """Return every field on which two agents differ without having seen each other, by entity.

        With `arrival`, every field that was decided only by arrival instead: the winner states no observation time and
        wins because it arrived later, whoever said the other value (docs/formats/merge.md has the exact rule).
        """
        return reads.conflicts(self.context, entity_type, arrival=arrival)

    def diff(
        self, before: Moment, after: Moment, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between two moments: in one entity, in those of a type, or everywhere."""
        return reads.diff(self.context, before, after, ref, entity_type=entity_type)

    def diff_against(
        self, known: object, ref: str | Ref | None = None, *, entity_type: str | None = None
    ) -> tuple[EntityChange, ...]:
        """Return what differs between a state that was written down and what is believed here: `known`, then now.

        `known` is a list of snapshots, or of objects such as `Snapshot.to_json` gives, and stands for everything, or
        for everything of `entity_type`: what it leaves out was not there. One snapshot alone stands for its entity
        alone. An entity that is deleted here and left out there is no difference.
        """
        return reads.diff_against(self.context, known, ref, entity_type=entity_type)

    def values(self) -> dict[str, Values]:
        """Return the values of everything that exists, by reference: what `diff` compares."""
        return reads.values(self.context)

    def related(self, ref: str | Ref, *, depth: int = 1) -> tuple[Related, ...]:
        """Return the relations that begin or end at an entity, and those of their other ends, up to `depth`."""
        return reads.related(self.context, ref, depth=depth)

    def entries(self, *, after: int = BEFORE_ALL, limit: int | None = None) -> tuple[Entry, ...]:
        """Return entries of the log after a position, in order, as far as this moment reaches."""
        return reads.entries(self.context, after=after, limit=limit)

    def erased_at(self, position: int) -> int | None:
        """Return where the log says that the body at a position was erased, at whatever moment this reads.

        None where it says so nowhere: a body is there then, or its loss is damage.
        """
        if self._erased is None:
            self._erased = reads.ErasedPositions(self.context)
        return self._erased.erased_at(position)

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came."""
        return reads.fingerprint(self.context, provenance=provenance)

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
        return runs_diff(self.context, first, second, None if other is None else other.context)

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
        return runs_group(self.context, None if runs is None else list(runs), same_inputs_as, asked)

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

        asked = recall_reader.ask(
            question, k, threshold, projection, budget, scope, principal, conversation, ttl, embedder
        )
        from woodrat.runs.recorder.run import current_run

        run = current_run()
        # A run that is recorded elsewhere, be it behind a server, has nothing to do with the runs here.
        home = None if run is None else getattr(run.ledger.context, "engine", None)
        here = home is self.context.engine and run is not None and run.ledger.tenant == self.tenant
        return recall_reader.recall(self.context, asked, self._now(), run if here else None)

    def _now(self) -> str | None:
        """Return what the age of a run is counted from; none means from the last entry there was."""
        return None

    def lineage(self, what: str) -> Node:
        """Return the way back to the sources, as a tree: of a run's answer, a decision, an observation or a field.

        `what` is a run, a decision as `RUN#stage`, an observation's id, or `type/key#field`. Only what was recorded is
        followed: the observations that reads and evidence name, their interpretations and sources.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.lineage(self.context, what)

    def impact(self, what: str | None = None, *, agent: str | None = None, progress: Progress | None = None) -> Impact:
        """Return what leaned on an observation, a source, an interpretation, or all that an agent said.

        The fields it takes part in now, every read, decision and answer whose record names it, and every recorded
        export with rows of such runs. The cost grows with what is found, not with the ledger; `progress` is told of
        the index being made, which the first question about a long log waits for.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.impact(self.context, what, agent, progress)

    def stale(self, *, same: bool = False, limit: int = 20, cursor: str | None = None) -> Page[Stale]:
        """Return decisions whose evidence is believed otherwise now and which would come out differently.

        The latest first. Rules that are data are evaluated again on what is believed now; where that would need a
        model or the agent's code, the outcome is `unknown`. With `same` also those that would come out the same.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.stale(self.context, same=same, limit=limit, cursor=cursor)

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

        def at(position: int) -> Past:
            return Past(replace(self.context, moment=position, erasures=None))

        return bisect_verbs.bisect(self.context, asking, at, before=before, after=after, first=first, progress=progress)

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
        from woodrat.bisect import verbs as bisect_verbs

        branch = questions.ANYTHING if chosen is ... else chosen
        asking = questions.Asking(what, when, where, exists, deleted, rules, default, branch)
        return bisect_verbs.reduce(self.context, asking, folds_max=folds_max, out=out, progress=progress)

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
        from woodrat.whatif import verbs as what_if_verbs

        asked = what_if_verbs.ask(
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
        return what_if_verbs.what_if(self.context, asked, progress)

    def _tracer(self) -> AbstractContextManager[Tracer]:
        from woodrat.explain.reader import open_tracer

        return open_tracer(self.context)

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
        from woodrat.runs.recorder import current
        from woodrat.training.verbs import export_training

        home = self._home
        return export_training(
            current.write_context(self.context),
            kind,
            out=out,
            flavour=flavour,
            filters={"agent": agent, "since": since, "until": until, "verdict": verdict},
            metadata=metadata,
            store=home.store if record and home is not None else None,
            progress=progress,
        )

    @property
    def _home(self) -> Home | None:
        """The ledger that this is a moment of, if it can be written to."""
        return self._moment_of

    def _recounter(self) -> AbstractContextManager[Recounter]:
        from woodrat.runs.reader import open_recounter

        return open_recounter(self.context)

    def schema(self, entity_type: str) -> Schema:
        """Return the schema in force for a type, a built-in one included."""
        from woodrat.ledger import schemas

        return schemas.schema(self.context, entity_type)

    def schemas(self) -> tuple[Schema, ...]:
        """Return the schema in force of every type that has one in the log, by type."""
        from woodrat.ledger import schemas

        return schemas.schemas(self.context)

    def deliveries(self) -> tuple[Delivery, ...]:
        """Return every delivery of a source, by position."""
        from woodrat.ledger import sources

        return sources.deliveries(self.context)

    def content(self, source_id: str) -> bytes:
        """Return the content of a source, exactly as it was received."""
        from woodrat.ledger import sources

        return sources.content(self.context, source_id)

    def interpretations(self) -> tuple[Interpretation, ...]:
        """Return every reading of a source, by position."""
        from woodrat.ledger import sources

        return sources.interpretations(self.context)

    def interpretations_diff(self, before: str, after: str) -> ReadingsDiff:
        """Return how two readings differ: in model, prompt and parameters, and in what they said of which entity."""
        from woodrat.ledger import sources

        return sources.interpretations_diff(self.context, before, after)

"""Past: the verbs that read, at one moment on two clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import READ, verb
from woodrat.ledger import reads
from woodrat.ledger.moments import Moment, in_time, open_reader, resolve_moment, timestamp
from woodrat.records import replace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from os import PathLike

    from woodrat.api.interpretations import PastInterpretations
    from woodrat.api.log import PastLog
    from woodrat.api.namespace import Home
    from woodrat.api.parameters import (
        AgeMax,
        AlsoSame,
        Asked,
        Budget,
        ByAgent,
        ByArrival,
        ChosenBranch,
        Conditions,
        ConditionTexts,
        Cursor,
        DecidedBy,
        DecidedSince,
        DecidedUntil,
        DefaultBranch,
        Deleted,
        Depth,
        Descending,
        Excerpts,
        Exists,
        FieldArg,
        FirstFlip,
        FoldsMax,
        FromMoment,
        HitsMax,
        IdPrefix,
        ImpactOf,
        KnownState,
        Limit,
        LineageOf,
        NotFrom,
        OfType,
        OnlyField,
        OnlyRelation,
        OnlyStage,
        Projection,
        Question,
        RecalledSince,
        RecalledTypes,
        RecalledUntil,
        RefArg,
        Rules,
        RulesByStage,
        RunsDeep,
        Scope,
        ScopeConversation,
        ScopePrincipal,
        SearchFrom,
        SearchTo,
        SeenSince,
        SeenUntil,
        SetValues,
        SomeRuns,
        SortField,
        SubjectType,
        Sweep,
        Threshold,
        Thresholds,
        Time,
        ToMoment,
        Where,
        Without,
        WithoutAgents,
        WithProvenance,
        Words,
    )
    from woodrat.api.runs import PastRuns
    from woodrat.api.schemas import PastSchemas
    from woodrat.api.sources import PastSources
    from woodrat.api.training import Training
    from woodrat.bisect.reduction import Reduction
    from woodrat.bisect.search import Bisected
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import LineageTree
    from woodrat.explain.stale import Stale
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.find import Duplicate, Hit
    from woodrat.ledger.pages import Page
    from woodrat.ledger.progress import Progress
    from woodrat.ledger.read import Reader
    from woodrat.ledger.reads import EntityConflict, Related
    from woodrat.merge.blame import Verdict
    from woodrat.merge.diff import Changes, Values
    from woodrat.merge.snapshot import Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.reader import Recall
    from woodrat.runs.reader import Reason, Recounter
    from woodrat.state.asof import Stored
    from woodrat.whatif.result import WhatIf

# What only some verbs need is imported by them: a program that shows one entity does not wait for the rest.


class Past:
    """Read-only verbs, at one moment on two clocks; a ledger reads at the present."""

    def __init__(self, context: Context) -> None:
        self.context = context
        """What the rooms below are handed."""
        self._moment_of: Home | None = None
        self._reached = -1
        """A position that the log is known to have reached."""
        self._erased: reads.ErasedPositions | None = None

    def _reader(self) -> AbstractContextManager[Reader]:
        return open_reader(self.context)

    @property
    def tenant(self) -> TenantId:
        """The tenant."""
        return self.context.tenant

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        with self._reader() as reader:
            return reader.asof.position

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> Past:
        """Return the ledger as of another moment, or as it was true by another time.

        As of a moment counts what was *known* then, and by `valid_at` what was *true* by then. Timestamps need an
        offset. Days, and words such as `yesterday`, are those of the zone that the ledger was opened with, else of UTC.
        """
        position: int | str = self.context.moment
        if type(moment) is int and 0 <= moment <= self._reached:
            position = moment  # a log only grows
        elif moment is not None:
            with self.context.engine.view(self.tenant) as view:
                position = resolve_moment(view, moment, clock=self.context.clock)
                self._reached = view.head().position
        chosen = (
            self.context.valid_at if valid_at is None else timestamp(valid_at, "valid_at", clock=self.context.clock)
        )
        found = Past(self.context.at(position, chosen))
        found._moment_of = self.home
        return found

    @property
    def runs(self) -> PastRuns:
        """Runs: what agents did."""
        from woodrat.api.runs import PastRuns

        return PastRuns(self)

    @property
    def schemas(self) -> PastSchemas:
        """Schemas: the fields, checks and merge policies of types."""
        from woodrat.api.schemas import PastSchemas

        return PastSchemas(self)

    @property
    def sources(self) -> PastSources:
        """Sources: content as received."""
        from woodrat.api.sources import PastSources

        return PastSources(self)

    @property
    def interpretations(self) -> PastInterpretations:
        """Interpretations: readings of sources."""
        from woodrat.api.interpretations import PastInterpretations

        return PastInterpretations(self)

    @property
    def log(self) -> PastLog:
        """The log: its entries."""
        from woodrat.api.log import PastLog

        return PastLog(self)

    @property
    def training(self) -> Training:
        """Recorded runs as training data."""
        from woodrat.api.training import Training

        return Training(self)

    @verb(get="/v1/entities/{ref}", command="show REF", tool="show")
    def show(self, ref: RefArg) -> Snapshot:
        """Show an entity: its values, and where each came from.

        Raises `NotFound` when no live observation speaks of the entity.
        """
        return reads.show(self.context, ref)

    @verb(get="/v1/elements/{ref}", command="elements REF#FIELD", tool="show")
    def elements(self, ref: RefArg, field: FieldArg, *, limit: Limit = 1_000, cursor: Cursor | None = None) -> Elements:
        """List the elements of a collection, page by page.

        Works for collections (`union`, `append`), in their order. Later pages are read as of the position of the first.
        A page costs what it holds, not what the collection holds.
        """
        return reads.elements(self.context, ref, field, limit=limit, cursor=cursor)

    @verb(get="/v1/search", command="entities search", tool="search")
    def search(
        self, query: Words, *, entity_type: OfType | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[Hit]:
        """Find entities by words, each matched by prefix.

        Every word of the query must begin a word in the key or a text value. An entity whose key is the query comes
        first, then those with more matching fields, then by entity id. Deleted entities are left out, and so are
        relations unless you ask for their type. Searches of the present use an index; searches at an effective time
        (`valid_at`) merge every entity.
        """
        from woodrat.ledger import lists

        return lists.search(self.context, query, entity_type=entity_type, limit=limit, cursor=cursor)

    @verb(get="/v1/entities", command="entities list", tool="search")
    def query(
        self,
        *,
        entity_type: OfType | None = None,
        where: Where | None = None,
        sort: SortField | None = None,
        descending: Descending = False,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Snapshot]:
        """List entities by type and field values.

        They come by type and key, or sorted by a field, with those that lack it last. Deleted entities are left out.

        `where` holds values by field, or texts `field=value`, whose value is read as JSON where possible. Other
        conditions are `{"age": {"gte": 18}}` or the text `age gte 18`, with the operators `eq`, `in`, `lt`, `lte`,
        `gt`, `gte`, `prefix` and `exists`; all must hold. A collection (`union`, `append`) matches when it contains a
        value that does.

        With a condition on a text, number, boolean or null, or sorted by a field, a page costs what it returns. For
        elements of collections the schema has to index the field (`x-woodrat-index`); otherwise a page costs the
        entities it passes. With `valid_at` it costs all.
        """
        from woodrat.ledger import lists

        return lists.query(
            self.context,
            entity_type=entity_type,
            where=where,
            sort=sort,
            descending=descending,
            limit=limit,
            cursor=cursor,
        )

    @verb(get="/v1/duplicates")
    def duplicates(
        self, entity_type: OfType | None = None, *, limit: Limit = 100, cursor: Cursor | None = None
    ) -> Page[Duplicate]:
        """List entities that share an identifying value.

        Lists those that are not merged with each other yet, by type, rule and value. Only current values count, not
        earlier ones. With `valid_at`, every entity is merged.
        """
        from woodrat.ledger import lists

        return lists.duplicates(self.context, entity_type, limit=limit, cursor=cursor)

    @verb(get="/v1/observations", command="observations list [REF]", tool="history")
    def observations(
        self, ref: RefArg | None = None, *, limit: Limit = 100, cursor: Cursor | None = None
    ) -> Page[Stored]:
        """List the observations of an entity, or all of them, in log order.

        Includes the observations of the entities it is merged with.
        """
        from woodrat.ledger import lists

        return lists.observations(self.context, ref, limit=limit, cursor=cursor)

    @verb(get="/v1/history/{ref}", command="history REF", tool="history")
    def history(
        self, ref: RefArg, field: OnlyField | None = None, *, limit: Limit = 100, cursor: Cursor | None = None
    ) -> Page[Step]:
        """Show how the state of an entity changed with each observation.

        With `field`, returns only the observations that state or change that field.
        """
        from woodrat.ledger import lists

        return lists.history(self.context, ref, field, limit=limit, cursor=cursor)

    @verb(get="/v1/timeline", command="timeline", tool="history")
    def timeline(
        self,
        *,
        since: SeenSince | None = None,
        until: SeenUntil | None = None,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Event]:
        """Show what was observed when, across all entities.

        Returns what was observed from `since` to before `until`, by time of observation.
        """
        from woodrat.ledger import lists

        return lists.timeline(self.context, since=since, until=until, limit=limit, cursor=cursor)

    @verb(get="/v1/blame/{ref}", command="blame REF[#field]", tool="history")
    def blame(
        self, ref: RefArg, field: OnlyField | None = None, *, excerpts: Excerpts = False
    ) -> dict[str, tuple[Verdict, ...]]:
        """Show every claim on a field: who won, who lost, and why.

        Covers one field or, by default, all of them. `excerpts` adds the words of the source that a claim points at.
        """
        return reads.blame(self.context, ref, field, excerpts=excerpts)

    @verb(get="/v1/conflicts", command="conflicts", tool="conflicts")
    def conflicts(
        self,
        entity_type: OfType | None = None,
        *,
        arrival: ByArrival = False,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[EntityConflict]:
        """List fields on which agents disagree, or fields decided only by arrival.

        A conflict is a field for which two agents' latest values differ and neither had seen the other's. They are
        listed by entity.

        With `arrival`, lists the fields that were decided only by arrival instead: the winner states no observation
        time and wins because it arrived later, whoever stated the other value (docs/formats/merge.md has the exact
        rule).
        """
        from woodrat.ledger import lists

        return lists.conflicts(self.context, entity_type, arrival=arrival, limit=limit, cursor=cursor)

    @verb(get="/v1/diff", command="diff [REF]", tool="diff")
    def diff(
        self,
        before: FromMoment,
        after: ToMoment = "now",
        ref: RefArg | None = None,
        *,
        entity_type: OfType | None = None,
    ) -> Changes:
        """Show what changed between two moments.

        Covers one entity, those of a type, or all. The result states the positions of the two moments; iterate over it
        for the changes.
        """
        return reads.diff(self.context, before, after, ref, entity_type=entity_type)

    @verb(post="/v1/diff-against", grant=READ, at_moment=True, example={"known": []})
    def diff_against(
        self, known: KnownState, ref: RefArg | None = None, *, entity_type: OfType | None = None
    ) -> Changes:
        """Compare a state that was written down with the current one.

        `known` comes first, the current state second. It is a list of snapshots, or of objects as `Snapshot.to_json`
        returns them, and stands for everything, or everything of `entity_type`: what it does not list did not exist. A
        single snapshot stands for its own entity only. An entity that is deleted here and missing there is no
        difference.
        """
        return reads.diff_against(self.context, known, ref, entity_type=entity_type)

    @verb(get="/v1/values", wide=True)
    def values(self) -> dict[str, Values]:
        """Return the values of everything that exists, by reference and without provenance.

        This is what `diff` compares.
        """
        return reads.values(self.context)

    @verb(get="/v1/related/{ref}", command="related REF", tool="related", wide=True)
    def related(
        self,
        ref: RefArg,
        *,
        type: OnlyRelation | None = None,
        depth: Depth = 1,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Related]:
        """Show the relations of an entity.

        Relations count from either end. With a `depth` above 1, it also returns the relations of the entities at the
        other ends. With a `type`, only relations of that type are followed.
        """
        from woodrat.ledger import lists

        return lists.related(self.context, ref, type=type, depth=depth, limit=limit, cursor=cursor)

    def erased_at(self, position: int) -> int | None:
        """Return where the log says that the body at a position was erased, at whatever moment this reads.

        None where it says so nowhere: a body is there then, or its loss is damage.
        """
        if self._erased is None:
            self._erased = reads.ErasedPositions(self.context)
        return self._erased.erased_at(position)

    @verb(get="/v1/ids/{prefix}", wide=True)
    def ids(self, prefix: IdPrefix) -> tuple[str, ...]:
        """List the ids that begin with a prefix.

        Covers runs, observations, sources, interpretations and entities, and returns at most eleven ids. For `last`,
        returns the id of the run that the log heard of last. Commands use it to complete the ids that people type.
        """
        from woodrat.ledger import short_ids

        return short_ids.candidates(self.context, prefix)

    @verb(get="/v1/fingerprint", command="fingerprint")
    def fingerprint(self, *, provenance: WithProvenance = False) -> str:
        """Compute one digest of the whole state.

        It is the same for the same set of observations, in whatever order they arrived.
        """
        return reads.fingerprint(self.context, provenance=provenance)

    @verb(get="/v1/why/{ref}", command="why REF", tool="why", wide=True)
    def why(self, ref: RefArg, *, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Reason]:
        """Show what was decided about an entity, and on what evidence.

        The latest decision comes first, each with its evidence and answer. The result is exact: the decisions of runs
        about the entity, and those of other runs whose evidence was read from it. Finding none is an answer too.

        Each decision has its margin: the smallest change of its facts that would have led to another choice, the facts
        that did not matter, and the single sources that would flip it if they were wrong. It is unknown for what no
        data rules decided. The evidence names the documents behind it, and what became of it since.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.why(self.context, ref, limit=limit, cursor=cursor)

    @verb(get="/v1/recall", command="recall Q", tool="recall")
    def recall(
        self,
        question: Question,
        *,
        k: HitsMax = 1,
        threshold: Threshold = 0.5,
        projection: Projection = "decisions",
        scope: Scope = "tenant",
        principal: ScopePrincipal | None = None,
        conversation: ScopeConversation | None = None,
        ttl: AgeMax | None = None,
        embedder: Embedder | str | None = None,
        budget: Budget | None = None,
        since: RecalledSince | None = None,
        until: RecalledUntil | None = None,
        not_from: NotFrom | None = None,
        entity_type: RecalledTypes | None = None,
    ) -> Recall:
        """Find what is remembered that answers a question.

        Looks at runs, facts, notes and documents. Returns at most `k` hits, each with its kind, moment, lineage, who
        said it and who confirmed it. The result is false when nothing passes `threshold`, and then says what came close
        and why it does not count.

        Words, meaning and identifiers make one score between 0 and 1. What the question names by number (`#42`)
        decides where it exists. Words such as `last Monday` narrow the search, and `understood` says how they were
        read. A question about a run never comes before that run. `scope` is `tenant`, `principal` or `conversation`;
        the last two need the one meant. `ttl` is how old a hit may be, in seconds. `not_from` names agents whose words
        are left out, `entity_type` asks for facts and notes of some types alone. Meaning is compared by a local model,
        with the extra `recall`; without it words alone count.
        """
        from woodrat.recall import reader as recall_reader
        from woodrat.recall.request import ask

        asked = ask(
            question,
            k,
            threshold,
            projection,
            budget,
            scope,
            principal,
            conversation,
            ttl,
            embedder,
            since,
            until,
            not_from,
            entity_type,
            self._now() or self.context.clock.now(),
        )
        from woodrat.runs.recorder.log import LocalLog
        from woodrat.runs.recorder.run import current_run

        run = current_run()
        # A run that is recorded elsewhere, be it behind a server, has nothing to do with the runs here.
        here = run is not None and run.log.is_same(LocalLog(self.context))
        return recall_reader.recall(self.context, asked, self._now(), run if here else None)

    def _now(self) -> str | None:
        """Return what the age of a run is counted from; none means from the last entry there was."""
        return None

    @verb(get="/v1/lineage", command="lineage RUN|OBS|REF#field", tool="explain", wide=True)
    def lineage(
        self, what: LineageOf, *, depth: RunsDeep | None = None, limit: Limit = 100, cursor: Cursor | None = None
    ) -> LineageTree:
        """Trace an answer, a decision or a value back to its sources.

        `what` is a run, a decision as `RUN#stage`, an observation id, or `type/key#field`. The result is a tree, and a
        tree for each run that lies behind it, the nearest first, however many; `depth` ends it earlier, and `left_out`
        says what that left out. It contains only what was recorded: the observations, decisions and recalled runs that
        steps name, interpretations and sources. A page has `limit` trees.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.lineage(self.context, what, depth=depth, limit=limit, cursor=cursor)

    @verb(get="/v1/impact", command="impact OBS|SRC|INT|REF|RUN|AGENT", tool="explain", wide=True)
    def impact(
        self,
        what: ImpactOf | None = None,
        *,
        agent: ByAgent | None = None,
        depth: RunsDeep | None = None,
        limit: Limit = 100,
        cursor: Cursor | None = None,
        progress: Progress | None = None,
    ) -> Impact:
        """List what depends on an observation, an entity or a source.

        Also takes an interpretation, a run, a decision as `RUN#stage`, and what an agent said. Lists every run that
        read it, recalled it or decided on it, every run that leaned on what those wrote or decided, and so on, the
        nearest first; then the fields that all of this takes part in now, recorded exports with rows of these runs, and
        the observations meant. `depth` ends it earlier, and `left_out` says what that left out. A page costs what it
        shows, so `counts` has no number of runs before the page that lists the last of them; but the first question
        about a long log waits for an index to be built, which `progress` follows.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.impact(
            self.context, what, agent, depth=depth, limit=limit, cursor=cursor, progress=progress
        )

    @verb(get="/v1/stale", command="stale", tool="explain")
    def stale(self, *, same: AlsoSame = False, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Stale]:
        """List decisions whose evidence has changed since.

        Lists those that would come out differently, the latest first. Rules that are data are evaluated again on the
        current state; where that would need a model or the agent's code, the outcome is `unknown`. `same` adds the
        decisions that would come out the same.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.stale(self.context, same=same, limit=limit, cursor=cursor)

    @verb(
        post="/v1/bisect",
        grant=READ,
        at_moment=True,
        command="bisect [REF|RUN#stage]",
        wide=True,
        example={"what": "contact/Ana Rivera", "where": {"city": "Barcelona"}},
    )
    def bisect(
        self,
        what: Asked | None = None,
        when: Conditions | None = None,
        *,
        where: ConditionTexts | None = None,
        exists: Exists | None = None,
        deleted: Deleted | None = None,
        rules: Rules | None = None,
        default: DefaultBranch = None,
        chosen: ChosenBranch = ...,
        before: SearchFrom | None = None,
        after: SearchTo | None = None,
        first: FirstFlip = False,
        progress: Progress | None = None,
    ) -> Bisected:
        """Find the write that changed an answer.

        The result is false when there is no such write.

        `what` is an entity, a decision as `RUN#stage`, or a function of the ledger at a moment. `when` holds conditions
        as rules do; `where` holds values as queries do, or texts such as `creditScore lt 600` and
        `loan/42#city=Girona`. `rules` decide on the entity's fields, and `chosen` is the branch in question. The
        answers at `before` (default: before everything) and `after` (default: this moment) must differ. About log2 of
        the positions between them are merged, and *one* change of the answer is found; with `first`, every change of
        the entities in question is tried in order, to find the first one. A function that raises `NotFound` answers no.
        """
        from woodrat.bisect import reader as questions
        from woodrat.bisect import verbs as bisect_verbs

        branch = questions.ANYTHING if chosen is ... else chosen
        asking = questions.Asking(what, when, where, exists, deleted, rules, default, branch)

        def at(position: int) -> Past:
            return Past(replace(self.context, moment=position, erasures=None))

        return bisect_verbs.bisect(self.context, asking, at, before=before, after=after, first=first, progress=progress)

    @verb(
        post="/v1/reduce",
        grant=READ,
        at_moment=True,
        command="reduce [REF|RUN#stage]",
        wide=True,
        example={"what": "contact/Ana Rivera", "exists": True},
    )
    def reduce(
        self,
        what: Asked | None = None,
        when: Conditions | None = None,
        *,
        where: ConditionTexts | None = None,
        exists: Exists | None = None,
        deleted: Deleted | None = None,
        rules: Rules | None = None,
        default: DefaultBranch = None,
        chosen: ChosenBranch = ...,
        out: str | PathLike[str] | None = None,
        folds_max: FoldsMax | None = None,
        progress: Progress | None = None,
    ) -> Reduction:
        """Find the fewest observations that reproduce an answer.

        State the question as for `bisect`; it must hold at this moment. The set is 1-minimal: without any one member,
        the answer no longer holds. A member that was withdrawn stays withdrawn, by the retractions it depends on, which
        are members too. `out` is the file to write the set to; `woodrat.check_reduction` checks it anywhere. Nothing is
        written to the ledger.
        """
        from woodrat.bisect import reader as questions
        from woodrat.bisect import verbs as bisect_verbs

        branch = questions.ANYTHING if chosen is ... else chosen
        asking = questions.Asking(what, when, where, exists, deleted, rules, default, branch)
        return bisect_verbs.reduce(self.context, asking, folds_max=folds_max, out=out, progress=progress)

    @verb(
        post="/v1/what-if",
        grant=READ,
        at_moment=True,
        command="what-if [RUN...]",
        tool="explain",
        example={"set": {"loan/42#creditScore": 640}},
    )
    def what_if(
        self,
        run: SomeRuns | None = None,
        *,
        without: Without = (),
        without_agents: WithoutAgents = (),
        set: SetValues | None = None,
        rules: RulesByStage | None = None,
        thresholds: Thresholds | None = None,
        sweep: Sweep | None = None,
        stage: OnlyStage | None = None,
        agent: DecidedBy | None = None,
        subject_type: SubjectType | None = None,
        since: DecidedSince | None = None,
        until: DecidedUntil | None = None,
        same: AlsoSame | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
        progress: Progress | None = None,
    ) -> WhatIf:
        """Show how decisions would change with other facts or rules.

        Ask about a run, a decision as `RUN#stage`, several of them, or all. What was read is merged again and rules
        that are data are evaluated again, exactly. Whatever would need a model, a tool or the agent's code is
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
            since=in_time(since, self.context.clock),
            until=in_time(until, self.context.clock),
            same=same,
            limit=limit,
            cursor=cursor,
        )
        return what_if_verbs.what_if(self.context, asked, progress)

    @property
    def home(self) -> Home | None:
        """The ledger that this is a moment of, if it can be written to."""
        return self._moment_of

    def _recounter(self) -> AbstractContextManager[Recounter]:
        from woodrat.runs.reader import open_recounter

        return open_recounter(self.context)

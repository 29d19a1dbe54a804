"""Questions: the verbs that explain, at one moment: decisions, memories, lineage, impact.

Each calls the room of its noun, and imports it on the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import READ, verb
from woodrat.ledger import spoken_times

if TYPE_CHECKING:
    from os import PathLike

    from woodrat.api.parameters import (
        AgeMax,
        AlsoSame,
        Asked,
        Budget,
        ByAgent,
        ChosenBranch,
        Conditions,
        ConditionTexts,
        Cursor,
        DecidedBy,
        DecidedSince,
        DecidedUntil,
        DefaultBranch,
        Deleted,
        Exists,
        FirstFlip,
        FoldsMax,
        HitsMax,
        ImpactOf,
        Limit,
        LineageOf,
        LooseRef,
        NotFrom,
        OnlyStage,
        Projection,
        Question,
        RecalledSince,
        RecalledTypes,
        RecalledUntil,
        RowsMax,
        Rules,
        RulesByStage,
        RunsDeep,
        Scope,
        ScopeConversation,
        ScopePrincipal,
        SearchFrom,
        SearchTo,
        SetValues,
        SomeRuns,
        SqlQuery,
        SubjectType,
        Sweep,
        Threshold,
        Thresholds,
        Without,
        WithoutAgents,
    )
    from woodrat.bisect.reduction import Reduction
    from woodrat.bisect.search import Bisected
    from woodrat.context import Context
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import LineageTree
    from woodrat.explain.stale import Stale
    from woodrat.ledger.pages import Page
    from woodrat.ledger.progress import Progress
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.reader import Recall
    from woodrat.runs.reader.why import Reason
    from woodrat.sql.reader import Bindings, SqlRows
    from woodrat.whatif.result import WhatIf


class Questions:
    """Verbs that explain; a ledger, and a moment of one, has them."""

    context: Context
    """The context for the rooms below."""

    def _as_it_was(self, position: int) -> Questions:
        """Return the ledger at a position, for a predicate; verbs that explain are not available on it."""
        raise NotImplementedError

    @verb(get="/v1/why/{ref}", command="why REF", tool="why", wide=True)
    def why(self, ref: LooseRef, *, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Reason]:
        """Show the decisions about an entity, and their evidence.

        The latest decision comes first, each with its evidence and answer. The result is exact: the decisions of runs
        about the entity, and of other runs whose evidence was read from it. Finding none is an answer too.

        Each decision has its margin: the smallest change of its facts that would have led to another choice, the facts
        that did not matter, and the single sources that would flip it if they were wrong. It is unknown for decisions
        without data rules. The evidence names the documents behind it, and their later corrections.
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
        """Find memories that answer a question.

        Looks at runs, facts, notes and documents. Returns at most `k` hits, each with its kind, moment, lineage, author
        and confirmations. The result is false if nothing passes `threshold`, and then lists the nearest candidates and
        why they do not count.

        Words, meaning and identifiers make one score between 0 and 1. A number in the question (`#42`) decides if it
        exists. Words such as `last Monday` narrow the search, and `understood` shows their interpretation. A question
        about a run never comes before that run. `scope` is `tenant`, `principal` or `conversation`; the last two need
        the name of one. `ttl` is how old a hit may be, in seconds. `not_from` excludes the statements of some agents,
        `entity_type` limits facts and notes to some types. Meaning is compared by a local model, with the extra
        `recall`; without it words alone count.
        """
        from woodrat.recall import reader as recall_reader
        from woodrat.recall.request import ask

        times, told = spoken_times.resolved({"since": since, "until": until}, self.context.clock)
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
            times["since"],
            times["until"],
            not_from,
            entity_type,
            self._now() or self.context.clock.now(),
        )
        from woodrat.runs.recorder.log import LocalLog
        from woodrat.runs.recorder.run import current_run

        run = current_run()
        # A run recorded elsewhere, for example behind a server, is unrelated to the runs here.
        here = run is not None and run.log.is_same(LocalLog(self.context))
        answer = recall_reader.recall(self.context, asked, self._now(), run if here else None)
        return spoken_times.with_times(answer, told)

    def _now(self) -> str | None:
        """Return the time from which ages of runs count; None: the time of the last entry."""
        return None

    @verb(get="/v1/lineage", command="lineage RUN|OBS|REF#field", tool="explain", wide=True)
    def lineage(
        self, what: LineageOf, *, depth: RunsDeep | None = None, limit: Limit = 100, cursor: Cursor | None = None
    ) -> LineageTree:
        """Trace an answer, a decision or a value back to its sources.

        `what` is a run, a decision as `RUN#stage`, an observation id, or `type/key#field`. The result is a tree, and a
        tree for each run behind it, the nearest first, without limit; `depth` limits the distance, and `left_out`
        counts the omitted ones. It contains only recorded facts: the observations, decisions and recalled runs that
        steps name, interpretations and sources. A page has `limit` trees and costs what it shows, so `run_count` and
        `left_out` are not known before the last page.
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
    ) -> Impact:
        """List what depends on an observation, an entity or a source.

        Also takes an interpretation, a run, a decision as `RUN#stage`, and an agent, for its statements. Lists every
        run that read it, recalled it or decided on it, every run that depended on the writes or decisions of those, and
        so on, the nearest first; then the current fields with one of these as a source, recorded exports with rows of
        these runs, and the observations in question. `depth` limits the distance, and `left_out` counts the omitted
        ones. A page costs what it shows, so `counts` has no number of runs before the page that lists the last of them.
        """
        from woodrat.explain import verbs as explain_verbs

        return explain_verbs.impact(self.context, what, agent, depth=depth, limit=limit, cursor=cursor)

    @verb(get="/v1/stale", command="stale", tool="explain")
    def stale(self, *, same: AlsoSame = False, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Stale]:
        """List decisions whose evidence has changed since.

        Lists decisions that would come out differently, the latest first. Rules that are data are evaluated again on
        the current state; where that would need a model or the agent's code, the outcome is `unknown`. `same` adds the
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

        The result is false if there is no such write.

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

        return bisect_verbs.bisect(
            self.context, asking, self._as_it_was, before=before, after=after, first=first, progress=progress
        )

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

    @verb(command="sql QUERY", at_moment=True, wide=True)
    def sql(self, query: SqlQuery, bindings: Bindings | None = None, *, limit: RowsMax = 1_000) -> SqlRows:
        """Run one read-only SQL query.

        The tables entities, field_values, observations, runs and decisions hold this tenant's data at this moment, on
        every engine in SQLite's dialect. A query is one SELECT and ends after 30 seconds. `truncated` says whether
        there were more rows than `limit`. `bindings` are values for `?` or `:name` in the query. The reference page on
        SQL lists the columns.
        """
        from woodrat.sql import reader as sql_reader

        return sql_reader.sql(self.context, query, bindings, limit=limit)

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

        Ask about a run, a decision as `RUN#stage`, several of them, or all. Reads are merged again and data rules are
        evaluated again, exactly. Anything that needs a model, a tool or the agent's code is `unknown`, with the reason.
        The first page counts all decisions, and its cursor leads to the rest. Nothing is written.
        """
        from woodrat.whatif import verbs as what_if_verbs

        times, told = spoken_times.resolved({"since": since, "until": until}, self.context.clock)
        asked = what_if_verbs.ask(
            self.context,
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
            **times,
            same=same,
            limit=limit,
            cursor=cursor,
        )
        return spoken_times.with_times(what_if_verbs.what_if(self.context, asked, progress), told)

"""Runs: runs of agents, read again, compared, judged and continued."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from woodrat.api.verb import READ, RUN, verb
from woodrat.context import Context
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import spoken_times
from woodrat.ledger.moments import NO_READ
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from woodrat.api.namespace import ReadableLedger, WritableLedger
    from woodrat.api.parameters import (
        AboutSpan,
        AskedThis,
        ComparedWith,
        Conversation,
        Cursor,
        DifferingRows,
        Document,
        EvaluationName,
        EvaluationRef,
        FirstStep,
        IdempotencyKey,
        JudgedBy,
        Limit,
        MomentArg,
        OfAgent,
        OfPipeline,
        OfSession,
        OfStepKind,
        OfVerdict,
        OtherRun,
        Preferred,
        Principal,
        ReasonText,
        RewardMin,
        RunArg,
        RunOrDocument,
        RunsOrDocuments,
        SameInputs,
        Score,
        SkippedRows,
        SkippedSteps,
        StartedSince,
        StartedUntil,
        Status,
        Subject,
        VerdictArg,
        WithAttribute,
    )
    from woodrat.compare.divergence import Divergence
    from woodrat.compare.groups import Crowd
    from woodrat.ledger.pages import Page
    from woodrat.ledger.progress import Progress
    from woodrat.ledger.report import Report
    from woodrat.replay.result import Replayed
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.agent_function import AgentCall
    from woodrat.runs.recorder.fork import Forked
    from woodrat.runs.recorder.resume import Resumed
    from woodrat.runs.recorder.run import Run
    from woodrat.runs.step_page import RunSteps
    from woodrat.runs.summary import RunSummary


class PastRuns:
    """The verbs of runs that read, at one moment."""

    def __init__(self, ledger: ReadableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(get="/v1/runs", command="runs list", tool="runs", wide=True)
    def list(
        self,
        *,
        agent: OfAgent | None = None,
        subject: Subject | None = None,
        conversation: Conversation | None = None,
        principal: Principal | None = None,
        session: OfSession | None = None,
        pipeline: OfPipeline | None = None,
        since: StartedSince | None = None,
        until: StartedUntil | None = None,
        status: Status | None = None,
        verdict: OfVerdict | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[RunSummary]:
        """List runs, the latest first, a summary of each.

        `runs.show` has all of a run. They are ordered by their latest entry in the log. `since` and `until` compare
        when a run began.

        A `session` includes the runs that name it, the runs it lists, and the runs of its conversation that name no
        other session. A `pipeline` includes the runs that name it, and the runs that these started.
        """
        from woodrat.runs.reader import lists as run_lists

        times, told = spoken_times.resolved({"since": since, "until": until}, self.context.clock)
        page = run_lists.runs_page(
            self.context,
            agent=agent,
            subject=subject,
            conversation=conversation,
            principal=principal,
            session=session,
            pipeline=pipeline,
            **times,
            status=status,
            verdict=verdict,
            limit=limit,
            cursor=cursor,
        )
        return spoken_times.with_times(page, told)

    @verb(get="/v1/runs/{run}", command="runs show RUN", tool="runs")
    def show(self, run: RunArg) -> RunRecord:
        """Show what a run read, called, decided, wrote and answered.

        Raises `NotFound` when the log holds nothing about the run.
        """
        from woodrat.explain import verbs

        return verbs.run(self.context, run)

    @verb(get="/v1/runs/{run}/steps")
    def steps(
        self,
        run: RunArg,
        *,
        kind: OfStepKind | None = None,
        skip: SkippedSteps = 0,
        step: FirstStep | None = None,
        limit: Limit = 100,
    ) -> RunSteps:
        """List the steps of a run in the order they happened, some at a time.

        Returns the steps after the first `skip`, or from number `step` on, with the facts about the run as a whole: its
        question and answer, and its judgements. With `kind`, only steps of that kind are listed, skipped and counted.
        `runs.show` has all of a run at once, by kind.
        """
        from woodrat.explain import verbs

        return verbs.run_steps(self.context, run, kind=kind, skip=skip, step=step, limit=limit)

    @verb(
        post="/v1/runs/diff",
        grant=READ,
        at_moment=True,
        command="runs diff [RUN] [RUN]",
        tool="runs",
        example={"first": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "second": "run_bbbbbbbbbbbbbbbbbbbbbbbbbb"},
    )
    def diff(
        self,
        first: RunOrDocument,
        second: OtherRun,
        *,
        skip: SkippedRows | None = None,
        limit: Limit | None = None,
        differing: DifferingRows = False,
        other: ReadableLedger | None = None,
    ) -> Divergence:
        """Compare two runs: where they diverge, and why.

        Returns both runs side by side and one sentence that sums up the difference. Raises `NotFound` if either is
        unknown.

        The cause is traced to the observation that changed the read value: its agent, source and time. With `other`,
        the second run is in that ledger, and its reads are traced there. Instead of an id, either may be a document
        that `import_` accepts: a trajectory, or entries.

        `skip`, `limit` and `differing` select rows, with the ignored and reordered parts of these. All other
        members describe the whole run. Without `skip`, the page is the one with the first difference.
        """
        from woodrat.compare.reader import read_row_page, runs_diff

        faults: list[Fault] = []
        page = read_row_page(skip, limit, differing, faults)
        if not (other is None or isinstance(getattr(other, "context", None), Context)):
            problem = f"expected a ledger, got {shown(other)}"
            faults.append(Fault("other", problem, "Open it with woodrat.open first."))
        if faults:
            raise Refused(faults, NO_READ)
        there = None if other is None else other.context
        return runs_diff(self.context, _recordings(first), _recordings(second), there, page)

    @verb(
        post="/v1/runs/group",
        grant=READ,
        at_moment=True,
        command="runs group [RUN...]",
        wide=True,
        example={"query": "Approve #42?"},
    )
    def group(
        self,
        runs: RunsOrDocuments | None = None,
        *,
        query: AskedThis | None = None,
        subject: Subject | None = None,
        agent: OfAgent | None = None,
        conversation: Conversation | None = None,
        attribute: WithAttribute | None = None,
        same_inputs_as: SameInputs | None = None,
        since: StartedSince | None = None,
        until: StartedUntil | None = None,
        reward_min: RewardMin | None = None,
    ) -> Crowd:
        """Group runs, and explain how good and bad ones differ.

        Returns the groups, one sentence that sums them up, and the traits that separate good runs from bad.

        Name runs, by id or as documents, or select them by question, subject, agent, conversation, attribute and start,
        or both. `same_inputs_as` selects the runs with the same question and inputs as that run. Differences in
        wording, random ids, the order of independent calls and inputs do not separate runs. A run is good or bad by its
        judges, else by its reward (`reward_min` is the smallest good one), else, where no run has either, by whether it
        ended in an error. The order of `runs` makes no difference.
        """
        from woodrat.compare.reader import read_attributes, runs_group
        from woodrat.runs.reader import lists as run_lists

        faults: list[Fault] = []
        if isinstance(runs, str | bytes) or not (runs is None or hasattr(runs, "__iter__")):
            faults.append(Fault("runs", f"expected a list of runs, got {shown(runs)}", "Send run ids in a list."))
        if not (reward_min is None or (type(reward_min) in (int, float) and math.isfinite(reward_min))):
            faults.append(Fault("reward_min", f"expected a number, got {shown(reward_min)}", "Send a number."))
        attributes = [] if attribute is None else read_attributes(attribute, faults)
        times, told = spoken_times.resolved({"since": since, "until": until}, self.context.clock)
        given = {
            "query": query,
            "subject": subject,
            "agent": agent,
            "conversation": conversation,
            **times,
        }
        stated = {name: value for name, value in given.items() if value is not None}
        chosen = bool(stated) or same_inputs_as is not None or attribute is not None
        if runs is None and not chosen:
            remedy = "Name runs, or send query, subject, agent, conversation, attribute, since or same_inputs_as."
            faults.append(Fault("runs", "no runs are selected", remedy))
        asked = run_lists.ask_runs(faults, **stated) if chosen else None
        if faults:
            raise Refused(faults, NO_READ)
        crowd = runs_group(
            self.context,
            None if runs is None else [_recordings(run) for run in runs],
            same_inputs_as,
            asked,
            attributes=attributes,
            reward_min=reward_min,
        )
        return spoken_times.with_times(crowd, told)


class Runs(PastRuns):
    """The verbs of runs."""

    ledger: WritableLedger

    def __init__(self, ledger: WritableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    def continue_(self, run: str | None = None, *, ends: bool = False, on_error: str = "note") -> Run:
        """Continue a run that another process started.

        Returns a run to record into from here too; a context manager. `run` defaults to the run in `WOODRAT_RUN` or
        `TRACEPARENT`. Leaving the block ends the run only with `ends`.
        """
        from woodrat.runs.recorder.resume import continued

        return continued(self.ledger.run_log(), run, ends=ends, on_error=on_error)

    def resume(
        self,
        run: str,
        agent: Callable[..., Any],
        *,
        on_unknown: str | Callable[[str, Any], Any] = "fail",
        on_error: str = "note",
    ) -> Resumed:
        """Resume an interrupted run: recorded steps answer from the log.

        `agent(run)` is called again. A function that `recorded` made is called with its inputs. `run` is an id, or
        `last` for the latest run.

        Steps are matched by kind, name and arguments; after the first that is not recorded, everything is live. A tool
        marked `once` is never called again for an effect that was recorded. If it was started and its outcome is
        unknown, `on_unknown` decides: `fail` refuses to resume, `retry` repeats the call, and a function of the tool's
        name and arguments returns the result. A refused resume changes nothing: the run stays interrupted, and can be
        resumed in another way.
        """
        from woodrat.runs.recorder.resume import resume

        return resume(*self.carry_on(run, agent, on_unknown=on_unknown, on_error=on_error))

    def carry_on(self, run: str, agent: Callable[..., Any], **given: Any) -> tuple[Run, AgentCall]:
        """Return an interrupted run that is live again, and the call of the agent's function, for `resume`."""
        from woodrat.runs.recorder.resume import carried_on

        return carried_on(self.ledger.run_log(), self._run_named(run), agent, **given)

    def _run_named(self, run: str) -> str:
        """Return the id of a run; for `last`, of the latest one, if any."""
        from woodrat.ledger.short_ids import LAST

        return next(iter(self.ledger.ids(LAST)), run) if run == LAST else run

    def fork(
        self,
        run: str,
        with_: Callable[..., Any],
        *,
        at: int | str,
        set: Mapping[str, Any],
        tools: str = "live",
        on_error: str = "note",
    ) -> Forked:
        """Fork a run: answer from its recording up to a step, edit that step, and continue live.

        A new run is recorded. `run` is an id, or `last` for the latest run. `at` is the number of a step, or its span.
        `set` holds values by path: at step 0 `inputs.amount` or `query`, at a tool `result.score` or `error`, at a
        model `response` or `prompt`, at a read `fields.score`.

        `with_` is the agent's function, called as `resume` calls it. Up to the step, reads, tools, models and writes
        are answered from the recording and copied into the new run; decisions are made again. After it everything is
        live, but tools marked `once` are never called again for an effect that was recorded. With `tools="recorded"`
        tools are answered from the rest of the recording, and the fork stops where it has no answer. It also stops
        where the agent leaves the recording before the step.
        """
        from woodrat.runs.recorder.fork import fork

        return fork(self.forked(run, at=at, set=set, tools=tools, on_error=on_error), with_)

    def forked(
        self, run: str, *, at: int | str, set: Mapping[str, Any], tools: str = "live", on_error: str = "note"
    ) -> Run:
        """Return a new fork of a run that has not started, for `fork`."""
        from woodrat.runs.recorder.fork import fork_of

        source, run = self.ledger.context, self._run_named(run)
        return fork_of(self.ledger.run_log(), source, run, at=at, edited=set, tools=tools, on_error=on_error)

    def replay(
        self,
        runs: str | RunRecord | RunSummary | Iterable[str | RunRecord | RunSummary],
        agent: Callable[..., Any],
        *,
        live: Iterable[str] = (),
        progress: Progress | None = None,
        steps_max: int | None = None,
        jobs: int | None = None,
        timeout_seconds: float | None = None,
        presented: Callable[[Run], Any] | None = None,
    ) -> Replayed:
        """Run the code of an agent again on recorded runs, and compare.

        Returns for each run whether it is the same, or how it differs. Reads are answered as of their recorded
        positions, tools and models from the recording by name and arguments, writes with their old reports; decisions
        are made again. Nothing is written. Nothing is made up: if the agent makes a call that was not recorded, it is
        stopped there. Tools and models named in `live` are really called. `steps_max` limits the steps of each run;
        `progress` is called with the number of runs that are done and the total.

        `jobs` is the number of processes that replay at the same time, each importing the agent's function itself; a
        run that kills its process is reported as such. `timeout_seconds` limits each run, and uses a process too.
        `presented` makes the agent's argument from the run; by default it is the run itself.
        """
        from woodrat.replay import verbs as replay_verbs

        limit = replay_verbs.STEPS_MAX if steps_max is None else steps_max
        spread: dict[str, Any] = {"jobs": jobs, "timeout_seconds": timeout_seconds, "presented": presented}
        return replay_verbs.replay(
            self.ledger.run_log(), runs, agent, live=live, progress=progress, steps_max=limit, **spread
        )

    @verb(
        post="/v1/runs/{run}/judge",
        command="runs judge RUN [good|bad]",
        grant=RUN,
        example={"verdict": "good"},
    )
    def judge(
        self,
        run: RunArg,
        verdict: VerdictArg,
        *,
        preferred: Preferred = None,
        by: JudgedBy | None = None,
        reason: ReasonText | None = None,
        score: Score | None = None,
        against: ComparedWith | None = None,
        about: AboutSpan | None = None,
        evaluation: EvaluationRef | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> Report:
        """Judge a run: good, bad, or a word of your own.

        A run can be judged long after its end. `preferred` is a better answer, `against` a tag or run to compare with,
        `about` the span of the one judged step, and `evaluation` the entity with the evaluation behind the verdict.
        """
        from woodrat.runs.verbs.judgement import judge

        return judge(
            current.write_context(self.context),
            run,
            verdict,
            preferred=preferred,
            by=by,
            reason=reason,
            score=score,
            against=against,
            about=about,
            evaluation=evaluation,
            idempotency_key=idempotency_key,
        )

    @verb(post="/v1/runs/{run}/evaluate", grant=RUN, alone=True, example={"against": "now"})
    def evaluate(
        self,
        run: RunArg,
        *,
        against: MomentArg,
        name: EvaluationName | None = None,
        reason: ReasonText | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> Report:
        """Compare the writes of a run with a state known to be good, and store the outcome.

        The outcome is an `evaluation` of the run. Every field the run wrote, as of the end of the run, is compared with
        the moment `against`, usually a tag. The verdict is `passed`, `failed`, or `inconclusive` if the run wrote
        nothing.
        """
        from woodrat.runs.verbs.judgement import evaluate

        return evaluate(current.write_context(self.context), run, against, name, reason, idempotency_key)

    @verb(
        post="/v1/runs/import",
        command="runs import FILE...",
        grant=RUN,
        alone=True,
        example={"document": {"query": "Approve #42?", "answer": "Rejected."}},
    )
    def import_(self, document: Document, *, idempotency_key: IdempotencyKey | None = None) -> tuple[str, ...]:
        """Import runs that other tools recorded.

        Takes a document, or the file of one, and returns the ids of the runs. A file is its text or bytes, an open
        file, a path (`pathlib.Path`), a folder, or a list of paths: JSON, one document a line, CSV, or OTLP in
        protobuf. If anything is wrong with any of them, nothing is recorded.

        A run is an object with `query`, `steps` and `answer`, recorded as if it happened now. Entries are a list of
        objects with a `kind` and their own times. Several runs are a list. With an idempotency key, repeated calls with
        the same document record it once, even after an interrupted call.
        """
        from woodrat.importers import files, reader
        from woodrat.runs.verbs import documents

        log = self.ledger.run_log()
        if files.is_source(document):
            with files.opened(document) as opened:
                return documents.record_files(log, opened, idempotency_key)
        return documents.record(log, reader.read(document), idempotency_key)


def _recordings(run: object) -> object:
    """Return the runs of a document; a run's id unchanged."""
    if not isinstance(run, dict | list):
        return run
    from woodrat.importers import reader

    return reader.read(run)

"""Ledger: the verbs of the library on one tenant. Every surface calls these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from woodrat.api.maintenance import Tended
from woodrat.canon import ids
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain import workers as explain_workers
from woodrat.ledger import facts
from woodrat.ledger.moments import resolve_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from os import PathLike
    from types import TracebackType

    from woodrat.canon.ids import Ref
    from woodrat.context import StandIn
    from woodrat.explain.stale import Stale
    from woodrat.explain.workers import Subscription
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.rebuild import Progress
    from woodrat.ledger.report import Report
    from woodrat.ledger.sources import Reading
    from woodrat.replay.result import Replayed
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.log import LocalLog
    from woodrat.runs.recorder.resume import Resumed
    from woodrat.runs.recorder.run import Run

P = ParamSpec("P")
T = TypeVar("T")


class Ledger(Tended):
    """One tenant's ledger, open for reading and writing by one agent; a context manager."""

    def by(self, agent: str) -> Ledger:
        """Return the same ledger, written to by another agent."""
        return Ledger(
            self.context.engine,
            tenant=self.tenant,
            agent=agent,
            clock=self.context.clock,
            policies=self.context.policies,
            strict=self.context.strict,
            signing=self._signing,
            keys=self.context.keys,
            redact=self.context.hidden,
        )

    @property
    def _home(self) -> Ledger:
        return self

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger; what was acknowledged stays. With keys, what was written here gets a checkpoint first."""
        try:
            if self._signing is not None:
                self._signing.close()
        finally:
            self.context.engine.close()

    # ------------------------------------------------------------------------------------------- what is said

    def store(
        self,
        records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        observed_at: str | None = None,
        valid_from: str | None = None,
        idempotency_key: str | None = None,
        priority: int | None = None,
        source: str | None = None,
        run: str | None = None,
        step: int | None = None,
        saw: Sequence[str] = (),
        if_version: Mapping[str, int | None] | int | Sequence[int] | str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Store what an agent saw: one record or a list of them, whole or not at all.

        `if_version` is the version of the one entity stored, or several of which one must hold; or a version for each
        by reference (`None`: not known yet); or `"new"` or `"known"`, of all that is stored. When another write came
        first the call is `Outdated`.
        """
        return facts.store(
            self._write_context(),
            records,
            observed_at=observed_at,
            valid_from=valid_from,
            idempotency_key=idempotency_key,
            priority=priority,
            source=source,
            run=run,
            step=step,
            saw=saw,
            if_version=if_version,
            dry_run=dry_run,
        )

    def correct(
        self,
        ref: str | Ref,
        fields: Mapping[str, Any] | None = None,
        *,
        remove: Mapping[str, Sequence[Any]] | None = None,
        reason: str | None = None,
        replaces: str | Sequence[str] | None = None,
        observed_at: str | None = None,
        valid_from: str | None = None,
        priority: int | None = None,
        source: str | None = None,
        idempotency_key: str | None = None,
        if_version: int | Sequence[int] | str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Correct fields of an entity; the values hold against every assertion until corrected or withdrawn.

        Under `sum` and `append` `replaces` names the one observation that was wrong. Under `union` the list given is
        what the collection holds: the other elements seen are removed.
        """
        return facts.correct(
            self._write_context(),
            ref,
            fields,
            remove=remove,
            reason=reason,
            replaces=replaces,
            observed_at=observed_at,
            valid_from=valid_from,
            priority=priority,
            source=source,
            idempotency_key=idempotency_key,
            if_version=if_version,
            dry_run=dry_run,
        )

    def retract(
        self,
        observations: str | Sequence[str],
        *,
        reason: str | None = None,
        observed_at: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Withdraw observations by id; they stay readable, and a retraction can itself be withdrawn."""
        return facts.retract(
            self._write_context(),
            observations,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    def delete(
        self,
        ref: str | Ref,
        *,
        reason: str | None = None,
        observed_at: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Mark an entity as deleted; nothing is lost, and `restore` brings it back."""
        return facts.delete(
            self._write_context(),
            ref,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    def restore(
        self,
        ref: str | Ref,
        *,
        reason: str | None = None,
        observed_at: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Bring a deleted entity back as it is believed now."""
        return facts.restore(
            self._write_context(),
            ref,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    def relate(
        self,
        start: str | Ref,
        type: str,
        end: str | Ref,
        *,
        key: str | None = None,
        fields: Mapping[str, Any] | None = None,
        reason: str | None = None,
        observed_at: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Relate two known entities; `key` tells several relations of one type between them apart."""
        return facts.relate(
            self._write_context(),
            start,
            type,
            end,
            key=key,
            fields=fields,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    def merge(
        self,
        one: str | Ref,
        other: str | Ref,
        *,
        reason: str | None = None,
        observed_at: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Say that two entities of one type are one; `split` takes it back."""
        return facts.merge(
            self._write_context(),
            one,
            other,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    def split(
        self,
        ref: str | Ref,
        other: str | Ref | None = None,
        *,
        reason: str | None = None,
        observed_at: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Part an entity from all it is joined with, or from one; the report says if a path between them remains."""
        return facts.split(
            self._write_context(),
            ref,
            other,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    # ---------------------------------------------------------------------- schemas, sources, readings, tags

    def register(
        self,
        model: object,
        *,
        entity_type: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Register a schema: a JSON Schema, or a dataclass, Pydantic model or msgspec struct.

        A version left out is the highest plus one; the same schema again is known and writes nothing.
        """
        from woodrat.ledger import schemas

        return schemas.register(
            self._write_context(),
            model,
            entity_type=entity_type,
            version=version,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    def source(
        self,
        content: bytes | str | PathLike[str],
        *,
        name: str | None = None,
        media_type: str | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """Add a source: bytes, or a file by its path. The content is stored once; each delivery is recorded.

        Returns the source's id.
        """
        from woodrat.ledger import sources

        return sources.add_source(
            self._write_context(),
            content,
            name=name,
            media_type=media_type,
            idempotency_key=idempotency_key,
        )

    def interpretation(
        self,
        source_id: str,
        *,
        model: str | None = None,
        prompt: str | None = None,
        extractor: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Reading]:
        """Record one reading of a source: what is stored inside names it, and its end says how it went."""
        from woodrat.ledger import sources

        return sources.interpretation(
            self._write_context(),
            source_id,
            model=model,
            prompt=prompt,
            extractor=extractor,
            parameters=parameters,
            configuration=configuration,
        )

    def begin_interpretation(self, source_id: str, *, idempotency_key: str | None = None, **about: Any) -> Reading:
        """Begin a reading of a source, for callers that cannot use `interpretation` as a block; `Reading.end` ends it.

        `about` is as for `interpretation`.
        """
        from woodrat.ledger import sources

        return sources.begin_interpretation(self._write_context(), source_id, idempotency_key=idempotency_key, **about)

    def continue_interpretation(self, interpretation: str) -> Reading:
        """Return a reading that this agent began elsewhere and that has not ended, to be stored through and ended."""
        if not isinstance(interpretation, str):
            problem = f"expected an interpretation's id, got {shown(interpretation)}"
            raise Refused([Fault("interpretation", problem, "Send it as text, such as int_….")])
        from woodrat.ledger.sources import Reading

        with self._tracer() as tracer:
            begun, position = tracer.reading(interpretation), tracer.through
        if begun is None or begun.agent != self.agent:
            raise NotFound(
                f"There is no interpretation {interpretation} of this agent. Nothing was written. Begin one first.",
                {"interpretation": interpretation},
            )
        return Reading(self._write_context(), begun, ids.id_of("source", begun.source), position)

    def tag(self, name: str, moment: Moment = "now", *, idempotency_key: str | None = None) -> Report:
        """Name a moment, so that `@name` reads at it; the latest tag of a name counts."""
        return facts.tag(self._write_context(), name, moment, idempotency_key=idempotency_key)

    # ------------------------------------------------------------------------------------------ stale decisions

    def on_stale(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Have a function called with the decisions that a write makes stale, once the write is committed.

        Writes to this ledger in this process count, by whichever agent; `follow_stale` also sees those of others. The
        function may write. What it raises is kept in `problems` of the subscription and warned of; the write stands.
        """
        return explain_workers.subscribe(self.context, callback)

    def follow_stale(self, *, after: Moment | None = None, wait: Callable[[], object] | None = None) -> Iterator[Stale]:
        """Yield decisions as writes make them stale, by whichever process, without an end.

        It begins after the moment `after`, now when left out. Whenever there is nothing new `wait` is called, and ends
        it by returning `False`; left out, it waits a moment.
        """
        return explain_workers.follow(self.stale_follower(after), wait)

    def _newly_stale(self, after: Moment | None = None) -> explain_workers.Newly:
        """Return what the next writes after a moment made stale, and how far was looked: for whoever asks again."""
        return self.stale_follower(after).next()

    def stale_follower(self, after: Moment | None) -> explain_workers.Follower:
        with self.context.engine.view(self.tenant) as view:
            position = resolve_moment(view, "now" if after is None else after, clock=self.context.clock)
        return explain_workers.Follower(self.context, position)

    # ------------------------------------------------------------------------------------------------------- runs

    def run(
        self,
        query: str,
        *,
        subject: str | Ref | None = None,
        conversation: str | None = None,
        principal: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        agent: str | None = None,
        code: str | None = None,
        parent: Run | str | None = None,
        runbook: str | Sequence[str] | None = None,
        tool_configs: Sequence[str] | None = None,
        pipeline: str | None = None,
        session: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        redact: Iterable[str] = (),
        on_error: str = "note",
        id: str | None = None,
        recall: bool = False,
        traceparent: str | None = None,
    ) -> Run:
        """Return a run to be recorded: a context manager, sync and async, inside which it is the current run.

        `parent` left out is the run around it, in this process or the one that started it. `runbook`, `tool_configs`,
        `pipeline` and `session` name what it goes by; the versions in force are recorded. Values under a key of
        `redact` are hidden before anything is written. Recording problems are kept in `run.problems` and warned of;
        `on_error="raise"` raises them. `recall` marks a run that answers from memory.
        """
        from woodrat.runs.recorder.start import begin

        return begin(
            self.run_log(),
            query,
            subject=subject,
            conversation=conversation,
            principal=principal,
            inputs=inputs,
            agent=agent,
            code=code,
            parent=parent,
            runbook=runbook,
            tool_configs=tool_configs,
            pipeline=pipeline,
            session=session,
            attributes=attributes,
            redact=redact,
            on_error=on_error,
            id=id,
            recall=recall,
            traceparent=traceparent,
        )

    def run_log(self) -> LocalLog:
        """Return where a run of this ledger is recorded: in its own log."""
        from woodrat.runs.recorder.log import LocalLog

        return LocalLog(self._write_context(), self, "woodrat.api.open:open_ledger")

    def recorded(self, query: str | None = None, **about: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Make every call of a function a run: its arguments are the inputs, what it returns is the answer.

        `query`, `subject`, `conversation`, `principal` and `session` may name arguments in braces; `about` is as for
        `run`. Sync and async functions.

            @ledger.recorded("Should we approve application #{number}?", subject="loan/{number}")
            def approve(number: int) -> str: ...
        """
        from woodrat.runs.recorder.decorator import recorded

        return recorded(self.run_log(), query, about)

    def continue_run(self, run: str | None = None, *, ends: bool = False, on_error: str = "note") -> Run:
        """Return a run that another process began, to be recorded into from here too; a context manager.

        Left out, it is the one that `WOODRAT_RUN` or `TRACEPARENT` names. Leaving the block ends the run only with
        `ends`.
        """
        from woodrat.runs.recorder.resume import continued

        return continued(self.run_log(), run, ends=ends, on_error=on_error)

    def resume(
        self,
        run: str,
        agent: Callable[..., Any],
        *,
        on_unknown: str | Callable[[str, Any], Any] = "fail",
        on_error: str = "note",
    ) -> Resumed:
        """Carry on an interrupted run: `agent(run)` is called, and what the log holds of it is answered from the log.

        Steps are recognised by kind, name and arguments; after the first that is not recorded everything is live. A
        tool marked `once` is never called again for an effect that was recorded. If it began and its end is not
        known, `on_unknown` says what to do: `fail` refuses the call, `retry` makes it again, a function of the tool's
        name and arguments returns the result. A function that `recorded` made is called with its inputs.
        """
        from woodrat.runs.recorder.resume import carried_on, resume

        return resume(carried_on(self.run_log(), run, on_unknown=on_unknown, on_error=on_error), agent)

    def replay(
        self,
        runs: str | RunRecord | Iterable[str | RunRecord],
        agent: Callable[..., Any],
        *,
        live: Iterable[str] = (),
        progress: Progress | None = None,
        steps_max: int | None = None,
        jobs: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Replayed:
        """Run an agent's function again on recorded runs, and return of each whether it is the same or how it differs.

        Reads are answered as of their recorded positions, tools and models from the recording by name and arguments,
        writes with their old reports; decisions are made anew. Nothing is written. What the recording does not hold is
        not made up: the agent is stopped there. Tools and models named in `live` run for real. `steps_max` bounds the
        steps of each run; `progress` is called with how many runs are done and how many there are.

        `jobs` is how many processes replay at the same time, each importing the agent's function by itself; a run that
        ends its process is told of as such. `timeout_seconds` bounds each run, and takes a process too.
        """
        from woodrat.replay import verbs as replay_verbs

        limit = replay_verbs.STEPS_MAX if steps_max is None else steps_max
        spread: dict[str, Any] = {"jobs": jobs, "timeout_seconds": timeout_seconds}
        return replay_verbs.replay(self.run_log(), runs, agent, live=live, progress=progress, steps_max=limit, **spread)

    def judge(
        self,
        run: str,
        verdict: str,
        *,
        preferred: Any = None,
        by: str | None = None,
        reason: str | None = None,
        score: float | None = None,
        against: str | None = None,
        about: str | None = None,
        evaluation: str | None = None,
        idempotency_key: str | None = None,
    ) -> Report:
        """Say what is thought of a run: `good`, `bad` or a word of your own; also long after its end.

        `preferred` is a better answer, `against` a tag or run it was compared with, `about` the span of the one step
        that is judged, `evaluation` the entity that says so.
        """
        from woodrat.runs.verbs.judgement import judge

        return judge(
            self._write_context(),
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

    def evaluate(
        self,
        run: str,
        *,
        against: Moment,
        name: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Report:
        """Compare what a run wrote with a state known to be good, and store the outcome as an `evaluation` of the run.

        Every field the run wrote, as it was when the run was over, is compared with the moment `against`, a tag as a
        rule. The verdict is `passed`, `failed`, or `inconclusive` for a run that wrote nothing.
        """
        from woodrat.runs.verbs.evaluation import evaluate

        return evaluate(self._write_context(), run, against, name, reason, idempotency_key)

    def record(self, document: object, *, idempotency_key: str | None = None) -> tuple[str, ...]:
        """Record runs that happened elsewhere from a JSON document, and return their ids.

        A run is an object with `query`, `steps` and `answer`, recorded as if it happened now; entries are a list of
        objects with a `kind` and their own times. Several runs are a list. With a key the same document is recorded
        once, however often it is sent and wherever an earlier call was cut off.
        """
        from woodrat.runs.verbs.documents import record

        return record(self.run_log(), document, idempotency_key)


def with_stand_in(ledger: Ledger, stand_in: StandIn) -> Ledger:
    """Return a ledger whose writes are taken by a stand-in: a batch of calls, or the recording of a replayed run."""
    standing_in = object.__new__(Ledger)
    standing_in.__dict__.update(ledger.__dict__)
    standing_in.context = ledger.context.taken_by(stand_in)
    return standing_in

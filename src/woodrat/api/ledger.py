"""Ledger: the verbs of the library on one tenant. Every surface calls these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from woodrat.api.maintenance import Maintenance
from woodrat.api.verb import CORRECT, MANAGE, verb
from woodrat.ledger import facts, subscriptions
from woodrat.ledger.moments import resolve_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from woodrat.api.interpretations import Interpretations
    from woodrat.api.log import Log
    from woodrat.api.parameters import (
        AboutRef,
        CorrectedFrom,
        DryRun,
        EndRef,
        Fields,
        FromSource,
        IdempotencyKey,
        IfVersion,
        IfVersions,
        InRun,
        InStep,
        MatchArg,
        MatchSubject,
        MomentArg,
        NoteText,
        Observations,
        ObservedAt,
        OtherRef,
        Priority,
        ReasonText,
        Records,
        RefArg,
        RelationFields,
        RelationKey,
        RelationType,
        Removed,
        Replaces,
        Saw,
        SeparatedRef,
        StartRef,
        TagName,
        ValidFrom,
    )
    from woodrat.api.proofs import Proofs
    from woodrat.api.runs import Runs
    from woodrat.api.schemas import Schemas
    from woodrat.api.sources import Sources
    from woodrat.canon.ids import Ref
    from woodrat.context import StandIn
    from woodrat.explain.stale import Stale
    from woodrat.explain.workers.follower import Follower
    from woodrat.explain.workers.subscription import Subscription
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.report import Report
    from woodrat.runs.recorder.log import LocalLog
    from woodrat.runs.recorder.run import Run
    from woodrat.state.schema import Schema

P = ParamSpec("P")
T = TypeVar("T")


class Ledger(Maintenance):
    """One tenant's ledger, open for reading and writing by one agent; a context manager."""

    def as_agent(self, agent: str) -> Ledger:
        """Return the same ledger with another agent as the writer."""
        return Ledger(
            self.context.engine,
            tenant=self.tenant,
            agent=agent,
            clock=self.context.clock,
            policies=self.context.policies,
            strict=self.context.strict,
            signing=self.signing,
            keys=self.context.keys,
            redact=self.context.hidden,
            served=self.context.served,
        )

    @property
    def home(self) -> Ledger:
        return self

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger; acknowledged writes stay.

        Before that, the functions of `on_stale` get the effects of the last writes. With keys, it gets a checkpoint
        too.
        """
        try:
            subscriptions.stop(self.context.engine)
            if self.signing is not None:
                self.signing.close()
        finally:
            self.context.engine.close()

    # ------------------------------------------------------------------------------------------- what is said

    @property
    def runs(self) -> Runs:
        """Runs of agents."""
        from woodrat.api.runs import Runs

        return Runs(self)

    @property
    def schemas(self) -> Schemas:
        """Schemas: the fields, checks and merge policies of types."""
        from woodrat.api.schemas import Schemas

        return Schemas(self)

    @property
    def sources(self) -> Sources:
        """Sources: content as received."""
        from woodrat.api.sources import Sources

        return Sources(self)

    @property
    def interpretations(self) -> Interpretations:
        """Interpretations: readings of sources."""
        from woodrat.api.interpretations import Interpretations

        return Interpretations(self)

    @property
    def log(self) -> Log:
        """The log: its entries."""
        from woodrat.api.log import Log

        return Log(self)

    @property
    def proofs(self) -> Proofs:
        """Proofs: checkpoints, proofs and capsules."""
        from woodrat.api.proofs import Proofs

        return Proofs(self)

    @verb(
        post="/v1/store",
        command="store",
        tool="store",
        lines=True,
        example={"records": [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}]},
    )
    def store(
        self,
        records: Records,
        *,
        observed_at: ObservedAt | None = None,
        valid_from: ValidFrom | None = None,
        idempotency_key: IdempotencyKey | None = None,
        priority: Priority | None = None,
        source: FromSource | None = None,
        run: InRun | None = None,
        step: InStep | None = None,
        saw: Saw = (),
        if_version: IfVersions | None = None,
        match: MatchArg | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Store observations of an agent: all of them, or none.

        `records` is one record or a list of them. `if_version` makes the write conditional: the version of the one
        entity in the call, or several versions of which one must match; a version for each entity by reference (`None`:
        not known yet); or `"new"` or `"known"` for all records of the call. If another write came first, it raises
        `Outdated`.

        With `match="existing"`, a record of an unknown entity is attached to the one known entity that any of its
        identifying values matches; `matched` of the report says how. It requires the grant `read`.
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
            match=match,
            dry_run=dry_run,
        )

    @verb(
        post="/v1/remember",
        command="remember TEXT",
        tool="remember",
        example={"text": "Ana prefers calls before noon", "about": "contact/Ana Rivera"},
    )
    def remember(
        self,
        text: NoteText,
        *,
        about: AboutRef | None = None,
        match: MatchSubject = "existing",
        observed_at: ObservedAt | None = None,
        priority: Priority | None = None,
        source: FromSource | None = None,
        run: InRun | None = None,
        step: InStep | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Remember a sentence as a note about an entity.

        The note is an entity of the type `note`, related to its subject; erasing the subject erases its notes. Saying
        the same about the same subject again is reported as known. Without `about`, it has no subject.

        An unknown subject, such as `contact/ana rivera` or `ana rivera`, resolves to the one entity that has this value
        as a name, an e-mail address or another identifying value; `matched` of the report says so, and the note records
        it. Where several have it, the call is refused. With `match="never"`, or if no entity has it, the note waits
        under the given name.
        """
        return facts.remember(
            self._write_context(),
            text,
            about=about,
            match=match,
            observed_at=observed_at,
            priority=priority,
            source=source,
            run=run,
            step=step,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    @verb(
        post="/v1/correct",
        command="correct REF",
        tool="change",
        grant=CORRECT,
        example={"ref": "contact/Ana Rivera", "fields": {"city": "Girona"}, "reason": "moved"},
    )
    def correct(
        self,
        ref: RefArg,
        fields: Fields | None = None,
        *,
        remove: Removed | None = None,
        reason: ReasonText | None = None,
        replaces: Replaces | None = None,
        observed_at: ObservedAt | None = None,
        valid_from: CorrectedFrom | None = None,
        priority: Priority | None = None,
        source: FromSource | None = None,
        idempotency_key: IdempotencyKey | None = None,
        if_version: IfVersion | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Correct fields of an entity.

        The values override every assertion until they are corrected again or withdrawn.

        Under `sum` and `append`, `replaces` names the one wrong observation. Under `union`, the list is the
        whole collection: elements that it does not name are removed. The same holds under `by_key`: in the elements
        that the value names, the stated members are corrected, and the other members stay.
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

    @verb(
        post="/v1/retract",
        command="retract OBS...",
        tool="change",
        grant=CORRECT,
        example={"observations": ["obs_d2fjsh5trd3wfuioa2iscubxg2"], "reason": "misread"},
    )
    def retract(
        self,
        observations: Observations,
        *,
        reason: ReasonText | None = None,
        observed_at: ObservedAt | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Withdraw observations; they stay readable.

        A retraction is an observation too, and can itself be withdrawn.
        """
        return facts.retract(
            self._write_context(),
            observations,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    @verb(
        post="/v1/delete",
        command="delete REF",
        tool="change",
        grant=CORRECT,
        example={"ref": "contact/Ana Rivera", "reason": "asked to"},
    )
    def delete(
        self,
        ref: RefArg,
        *,
        reason: ReasonText | None = None,
        observed_at: ObservedAt | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Mark an entity as deleted; nothing is erased.

        `restore` brings the entity back.
        """
        return facts.delete(
            self._write_context(),
            ref,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    @verb(
        post="/v1/restore", command="restore REF", tool="change", grant=CORRECT, example={"ref": "contact/Ana Rivera"}
    )
    def restore(
        self,
        ref: RefArg,
        *,
        reason: ReasonText | None = None,
        observed_at: ObservedAt | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Bring a deleted entity back.

        Its values are those that its remaining observations support.
        """
        return facts.restore(
            self._write_context(),
            ref,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    @verb(
        post="/v1/relate",
        command="relate REF TYPE REF",
        tool="change",
        example={"from": "contact/Ana Rivera", "type": "works_at", "to": "company/Kline"},
    )
    def relate(
        self,
        start: StartRef,
        type: RelationType,
        end: EndRef,
        *,
        key: RelationKey | None = None,
        fields: RelationFields | None = None,
        reason: ReasonText | None = None,
        observed_at: ObservedAt | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Relate two entities.

        Both must be known. `key` distinguishes several relations of one type between the same two entities.
        """
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

    @verb(
        post="/v1/merge",
        command="merge REF REF",
        tool="change",
        grant=CORRECT,
        example={"one": "contact/Ana Rivera", "other": "contact/A. Rivera"},
    )
    def merge(
        self,
        one: RefArg,
        other: OtherRef,
        *,
        reason: ReasonText | None = None,
        observed_at: ObservedAt | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """State that two entities of one type are the same.

        `split` undoes it.
        """
        return facts.merge(
            self._write_context(),
            one,
            other,
            reason=reason,
            observed_at=observed_at,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    @verb(
        post="/v1/split", command="split REF [REF]", tool="change", grant=CORRECT, example={"ref": "contact/Ana Rivera"}
    )
    def split(
        self,
        ref: RefArg,
        other: SeparatedRef | None = None,
        *,
        reason: ReasonText | None = None,
        observed_at: ObservedAt | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Undo merges of an entity, all of them or one.

        The report says if the two are still connected through other entities.
        """
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

    @verb(post="/v1/tag", command="tag NAME [M]", grant=MANAGE, example={"name": "release-3"})
    def tag(self, name: TagName, moment: MomentArg = "now", *, idempotency_key: IdempotencyKey | None = None) -> Report:
        """Name a moment, to read at it as @NAME.

        If a name is used again, its latest tag counts.
        """
        return facts.tag(self._write_context(), name, moment, idempotency_key=idempotency_key)

    # ------------------------------------------------------------------------------------------ stale decisions

    def on_stale(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Call a function with decisions that a write made stale, in a separate thread, soon after the commit.

        It covers writes to this ledger in this process, by any agent; `follow_stale` also covers writes of other
        processes. Writes that come in quick succession are reported together. `flush` of the subscription waits until
        everything is reported; closing the subscription or the ledger, and ending the process, wait too. The function
        may write. If it raises, the write stands: the error is added to `problems` of the subscription and a warning is
        issued.
        """
        from woodrat.explain.workers.watcher import subscribe

        return subscribe(self.context, callback)

    def follow_stale(self, *, after: Moment | None = None, wait: Callable[[], object] | None = None) -> Iterator[Stale]:
        """Yield decisions as writes by any process make them stale, without end.

        It starts after the moment `after` (default: now). `wait` is called whenever there is nothing new, and ends the
        iteration by returning `False`; default: sleep for a moment.
        """
        from woodrat.explain.workers.follower import follow

        return follow(self.stale_follower(after), wait)

    def stale_follower(self, after: Moment | None) -> Follower:
        from woodrat.explain.workers.follower import Follower

        with self.context.engine.view(self.tenant) as view:
            position = resolve_moment(view, "now" if after is None else after, clock=self.context.clock)
        return Follower(self.context, position)

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
        """Return a run to record: a context manager, sync and async, inside which it is the current run.

        `parent` defaults to the surrounding run, in this process or in the process that started it. `runbook`,
        `tool_configs`, `pipeline` and `session` name the entities that the run follows; their current versions are
        recorded. Values under a key in `redact` are hidden before anything is written. Recording problems are added to
        `run.problems` and a warning is issued; with `on_error="raise"` they are raised. `recall` marks a run that
        answers from memory.
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
        """Record every call of a function as a run: its arguments are the inputs, its return value is the answer.

        `query`, `subject`, `conversation`, `principal` and `session` may name arguments in braces; `about` takes the
        other arguments of `run`. Works with sync and async functions.

            @ledger.recorded("Should we approve application #{number}?", subject="loan/{number}")
            def approve(number: int) -> str: ...
        """
        from woodrat.runs.recorder.decorator import recorded

        return recorded(self.run_log(), query, about)


def with_stand_in(ledger: Ledger, stand_in: StandIn) -> Ledger:
    """Return a ledger whose writes go to a stand-in: the recording of a replayed run."""
    standing_in = object.__new__(Ledger)
    standing_in.__dict__.update(ledger.__dict__)
    standing_in.context = ledger.context.taken_by(stand_in)
    return standing_in


def with_first_schemas(ledger: Ledger, schemas: Mapping[str, Schema]) -> Ledger:
    """Return a ledger that registers these schemas for their types together with the first record of each type."""
    offering = object.__new__(Ledger)
    offering.__dict__.update(ledger.__dict__)
    offering.context = ledger.context.offering(schemas)
    return offering

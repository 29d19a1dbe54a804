"""Ledger: the verbs of the library on one tenant. Every surface calls these."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from woodrat.api.arguments import Arguments
from woodrat.api.maintenance import Tended
from woodrat.canon import form, ids
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.explain import workers as explain_workers
from woodrat.ledger import plans, redaction
from woodrat.ledger.moments import resolve_moment, resolve_ref
from woodrat.records import replace
from woodrat.runs import ownership
from woodrat.state import identity
from woodrat.state.observation import DELETE, REASON_BYTES_MAX, RESTORE
from woodrat.state.record import parse_records
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from woodrat.api.arguments import About
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.engines.port import View
    from woodrat.explain.stale import Stale
    from woodrat.explain.workers import Subscription
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.rebuild import Progress
    from woodrat.ledger.report import Report
    from woodrat.ledger.run_link import Within
    from woodrat.ledger.write import Draft
    from woodrat.replay.result import Replayed
    from woodrat.replay.resume import Resumed
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder import Run
    from woodrat.state import schema
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.record import Record
    from woodrat.state.schema import Schema

    Call = tuple[Mapping[str, Json | form.Spelled], str | None]
    """The arguments and the key of a call."""

P = ParamSpec("P")
T = TypeVar("T")

NOTHING_WRITTEN = "Nothing was written."
TAG_BYTES_MAX = 128
"""Longest tag."""


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
        return self._store(
            records,
            if_version,
            idempotency_key,
            dry_run,
            observed_at=observed_at,
            valid_from=valid_from,
            priority=priority,
            source=source,
            run=run,
            step=step,
            saw=saw,
        )

    def _store(
        self, records: object, if_version: object, key: str | None, dry_run: bool, **about_given: object
    ) -> Report:
        arguments = Arguments(self._within)
        if self.context.hidden:
            records = redaction.sent(records, self.context.hidden)
        parsed = parse_records(records, arguments.faults)
        if arguments.faults:
            with self.context.engine.view(self.tenant) as view:
                arguments.faults = redaction.quieted(view, records, arguments.faults)
        about = arguments.about(**about_given)
        conditions = arguments.versions(if_version)

        def spell() -> None:
            sent = b",".join(record.data for record in parsed)
            arguments.given["records"] = form.Spelled(b"[%b]" % sent if isinstance(records, list) else sent)

        if not arguments.faults:
            spell()

        def redact(view: View) -> Call | None:
            without = redaction.by_schema(view, parsed)
            if without is None:
                return None
            parsed[:] = without
            if not arguments.faults:
                spell()
            return arguments.given, self._key("store", arguments, key)

        named = about.run if self._within is None else None

        def plan(draft: Draft) -> None:
            if named is not None and not arguments.faults:
                ownership.check_write(self.context.engine, self.tenant, draft.view, named, self.agent, NOTHING_WRITTEN)
            said = about if self._within is None else self._having_read(draft, parsed, about, self._within)
            plans.store(draft, parsed, said, list(arguments.faults), strict=self.context.strict)
            if conditions is not None:
                plans.check_versions(draft, conditions)

        if arguments.faults and not parsed:
            arguments.check()
        return self._writer.write(
            "store",
            arguments.given,
            plan,
            key=self._key("store", arguments, key),
            dry_run=dry_run,
            redact=redact,
            apart=conditions is None and self._within is None and named is None,
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
        arguments = Arguments(self._within)
        arguments.refer(ref=ref)
        values = arguments.fields("fields", redaction.by_key(fields, self.context.hidden))
        gone = arguments.elements("remove", redaction.by_key(remove, self.context.hidden, elements=True))
        if arguments.faults:
            with self.context.engine.view(self.tenant) as view:
                arguments.faults = redaction.quieted_fields(view, redaction.type_of(view, ref), arguments.faults)
        named = arguments.texts("replaces", replaces)
        version = arguments.version(if_version)

        def hide(view: View) -> bool:
            said: Any = arguments.given.get("remove", {})
            return redaction.hide(view, redaction.type_of(view, ref), values, gone, said)

        about = arguments.about(
            reason=reason, observed_at=observed_at, valid_from=valid_from, priority=priority, source=source
        )

        def plan(draft: Draft) -> None:
            entity = resolve_ref(draft.before, ref, NOTHING_WRITTEN)
            if version is not None:
                plans.check_versions(draft, {entity: version})
            plans.correct(draft, entity, values, gone, named, about)

        return self._write("correct", arguments, plan, idempotency_key, dry_run, hide)

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
        arguments = Arguments(self._within)
        if observations is None:
            arguments.faults.append(Fault("observations", "got null", "Name at least one observation."))
        named = arguments.texts("observations", observations) or []
        about = arguments.about(reason=reason, observed_at=observed_at)
        return self._write(
            "retract", arguments, lambda draft: plans.retract(draft, named, about), idempotency_key, dry_run
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
        return self._mark("delete", DELETE, ref, reason, observed_at, idempotency_key, dry_run)

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
        return self._mark("restore", RESTORE, ref, reason, observed_at, idempotency_key, dry_run)

    def _mark(
        self,
        verb: str,
        op: str,
        ref: str | Ref,
        reason: str | None,
        observed_at: str | None,
        key: str | None,
        dry_run: bool,
    ) -> Report:
        arguments = Arguments(self._within)
        arguments.refer(ref=ref)
        about = arguments.about(reason=reason, observed_at=observed_at)

        def plan(draft: Draft) -> None:
            plans.mark(draft, resolve_ref(draft.before, ref, NOTHING_WRITTEN), op, about)

        return self._write(verb, arguments, plan, key, dry_run)

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
        arguments = Arguments(self._within)
        arguments.refer(start=start, end=end)
        arguments.given["type"] = type
        arguments.faults += ids.type_faults(type, "type")
        tells_apart = arguments.text("key", key, ids.KEY_BYTES_MAX)
        said = arguments.fields("fields", redaction.by_key(fields, self.context.hidden))
        if arguments.faults and isinstance(type, str):
            with self.context.engine.view(self.tenant) as view:
                arguments.faults = redaction.quieted_fields(view, type, arguments.faults)
        about = arguments.about(reason=reason, observed_at=observed_at)
        if type == SAME_AS and (said or key is not None):
            problem = "same_as takes neither key nor fields"
            arguments.faults.append(Fault("type", problem, "Leave them out: two entities are one, or not."))

        def plan(draft: Draft) -> None:
            ends = [resolve_ref(draft.before, side, NOTHING_WRITTEN) for side in (start, end)]
            if type == SAME_AS:
                plans.join(draft, ends[0], ends[1], about)
            else:
                plans.connect(draft, ends[0], type, ends[1], tells_apart, said, about)

        return self._write("relate", arguments, plan, idempotency_key, dry_run, lambda v: redaction.hide(v, type, said))

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
        arguments = Arguments(self._within)
        arguments.refer(one=one, other=other)
        about = arguments.about(reason=reason, observed_at=observed_at)

        def plan(draft: Draft) -> None:
            plans.join(
                draft,
                resolve_ref(draft.before, one, NOTHING_WRITTEN),
                resolve_ref(draft.before, other, NOTHING_WRITTEN),
                about,
            )

        return self._write("merge", arguments, plan, idempotency_key, dry_run)

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
        arguments = Arguments(self._within)
        arguments.refer(ref=ref, other=other)
        about = arguments.about(reason=reason, observed_at=observed_at)

        def plan(draft: Draft) -> None:
            apart = None if other is None else resolve_ref(draft.before, other, NOTHING_WRITTEN)
            plans.split(draft, resolve_ref(draft.before, ref, NOTHING_WRITTEN), apart, about)

        return self._write("split", arguments, plan, idempotency_key, dry_run)

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
        from woodrat.state import builtin, models, schema

        document, named = models.document_of(model)
        kind = entity_type or named
        arguments = Arguments(self._within)
        given = arguments.mapping("schema", document)
        arguments.check()
        arguments.given.update({"entity_type": kind} if kind else {}, **({"version": version} if version else {}))

        def parse(number: int | None) -> Schema:
            return schema.parse_schema(given, kind, policies=self._traits, version=number)

        def plan(draft: Draft) -> None:
            stated = version if version is not None else given.get(schema.VERSION)
            first = parse(1 if stated is None else version)
            earlier = list(draft.view.schemas(first.type, draft.before.asof.position))
            if not earlier and first.type in builtin.schemas():
                earlier = [builtin.schemas()[first.type]]
            highest = schema.winning(earlier)
            chosen = first if stated is not None else parse(highest.version + 1 if highest else 1)
            draft.id = chosen.id
            for other in earlier:
                if other == chosen or (stated is None and other == highest and other == parse(other.version)):
                    draft.id = other.id
                    draft.hints.append(f"This is version {other.version} of {other.type}, which is registered already.")
                    return
                if other.version == chosen.version:
                    problem = f"version {chosen.version} of {chosen.type} is registered with other content"
                    raise Refused([Fault(f"/{schema.VERSION}", problem, "State a higher version, or leave it out.")])
            draft.add("schema", chosen.body, chosen)

        return self._write("register", arguments, plan, idempotency_key, dry_run)

    def _traits(self, name: schema.PolicyName) -> schema.PolicyTraits | None:
        found = self.context.policies.get(str(name))
        return found.traits if found is not None and found.name == name else None

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
        from woodrat.state.source import SOURCE_BYTES_MAX, Delivery, source_digest

        arguments = Arguments(self._within)
        data, title = content_of(content)
        called = arguments.text("name", title if name is None else name, ids.KEY_BYTES_MAX)
        kind = arguments.text("media_type", media_type, ids.KEY_BYTES_MAX)
        if len(data) > SOURCE_BYTES_MAX:
            remedy = f"Send at most {SOURCE_BYTES_MAX} bytes, or a part of it."
            arguments.faults.append(Fault("content", f"{len(data)} bytes", remedy))
        arguments.check()
        assert called is not None
        digest = source_digest(data)
        arguments.given["source"] = ids.name("source", digest)

        def plan(draft: Draft) -> None:
            draft.id = ids.id_of("source", digest)
            if draft.view.source(digest) is None:
                draft.add("source", data)
            draft.add("received", Delivery(digest, draft.agent, called, draft.recorded_at, kind).body())

        report = self._write("source", arguments, plan, idempotency_key, dry_run=False)
        assert report.id is not None
        return report.id

    @contextmanager
    def interpretation(
        self,
        source_id: str,
        *,
        model: str | None = None,
        prompt: str | None = None,
        extractor: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
    ) -> Iterator[Reading]:
        """Record one reading of a source: what is stored inside names it, and its end says how it went."""
        about = {"model": model, "prompt": prompt, "extractor": extractor}
        begun = self._begin_reading(source_id, None, **about, parameters=parameters, configuration=configuration)
        reading = Reading(self, begun.id, source_id)
        try:
            yield reading
        except BaseException as error:
            self._end(begun, "error", reading.usage, _told(error))
            raise
        self._end(begun, "done", reading.usage, None)

    def begin_interpretation(self, source_id: str, *, idempotency_key: str | None = None, **about: Any) -> Reading:
        """Begin a reading of a source, for callers that cannot use `interpretation` as a block; `Reading.end` ends it.

        `about` is as for `interpretation`.
        """
        return Reading(self, self._begin_reading(source_id, idempotency_key, **about).id, source_id)

    def continue_interpretation(self, interpretation: str) -> Reading:
        """Return a reading that this agent began elsewhere and that has not ended, to be stored through and ended."""
        if not isinstance(interpretation, str):
            problem = f"expected an interpretation's id, got {shown(interpretation)}"
            raise Refused([Fault("interpretation", problem, "Send it as text, such as int_….")])
        with self._tracer() as tracer:
            begun = tracer.reading(interpretation)
        if begun is None or begun.agent != self.agent:
            raise NotFound(
                f"There is no interpretation {interpretation} of this agent. Nothing was written. Begin one first.",
                {"interpretation": interpretation},
            )
        return Reading(self, begun.id, ids.id_of("source", begun.source))

    def _begin_reading(
        self,
        source_id: str,
        key: str | None,
        *,
        model: str | None = None,
        prompt: str | None = None,
        extractor: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
    ) -> Interpretation:
        from hashlib import sha256

        from woodrat.clock import fresh_id
        from woodrat.state.interpretation import Interpretation

        arguments = Arguments(self._within)
        reader_model = arguments.text("model", model, ids.KEY_BYTES_MAX)
        code = arguments.text("extractor", extractor, ids.KEY_BYTES_MAX)
        settings = arguments.mapping("parameters", redaction.by_key(parameters, self.context.hidden))
        further = arguments.mapping("configuration", redaction.by_key(configuration, self.context.hidden))
        if prompt is not None and (not isinstance(prompt, str) or form.faults(prompt)):
            arguments.faults.append(Fault("prompt", f"got {shown(prompt)}", "Send the prompt as text."))
        if not isinstance(source_id, str):
            problem = f"expected a source's id, got {shown(source_id)}"
            arguments.faults.append(Fault("source", problem, "Send it as text."))
        arguments.check()
        arguments.refer(source=source_id)
        reading_id = ids.InterpretationId(fresh_id(self.context.clock, "int_"))
        begun: list[Interpretation] = []

        def start(draft: Draft) -> None:
            full = plans.resolve_source(draft, source_id, "source", [])
            if full is None:
                raise NotFound(
                    f"There is no source {source_id} here. Nothing was written. "
                    "Add it first; `sources list` shows those there are.",
                    {"source": source_id},
                )
            digest = ids.digest_of("source", full)
            assert digest is not None
            begun.append(
                Interpretation(
                    id=reading_id,
                    source=digest,
                    agent=draft.agent,
                    started_at=draft.recorded_at,
                    model=reader_model,
                    prompt=None if prompt is None else sha256(prompt.encode()).hexdigest(),
                    extractor=code,
                    parameters=settings,
                    configuration=further,
                )
            )
            draft.id = reading_id
            draft.add("interpretation.started", begun[0].started_body())

        report = self._write("interpretation", arguments, start, key, dry_run=False)
        if not begun:  # by a call that was sent before, or a run that is resumed or replayed: the same reading goes on
            begun += [reading for reading in self.interpretations() if reading.id == report.id]
        return begun[0]

    def _end(self, begun: Interpretation, status: str, usage: Mapping[str, Json], error: str | None) -> None:
        if begun.ended_at is not None:
            return  # it ended before the run was resumed

        def plan(draft: Draft) -> None:
            ended = replace(begun, status=status, ended_at=draft.recorded_at, usage=usage, error=error)
            draft.id = begun.id
            draft.add("interpretation.ended", ended.ended_body())

        self._writer.write("interpretation.ended", {"interpretation": begun.id}, plan)

    def tag(self, name: str, moment: Moment = "now", *, idempotency_key: str | None = None) -> Report:
        """Name a moment, so that `@name` reads at it; the latest tag of a name counts."""
        arguments = Arguments(self._within)
        if ids.tenant_faults(name):
            remedy = f"Use 1 to {TAG_BYTES_MAX} ASCII letters, digits, '.', '_' and '-', such as release-3."
            arguments.faults.append(Fault("name", f"not a tag: {shown(name)}", remedy))
        arguments.check()
        arguments.given.update(name=name)
        if isinstance(moment, int | str):
            arguments.given.update(moment=str(moment))

        def plan(draft: Draft) -> None:
            position = resolve_moment(draft.view, moment, NOTHING_WRITTEN, self.context.clock)
            if position < 0:
                raise Refused([Fault("moment", "nothing was recorded by then", "Name a later moment.")])
            body: dict[str, Json] = {"agent": draft.agent, "log": draft.log, "name": name, "position": position}
            draft.add("tag", form.encode(body))

        return self._write("tag", arguments, plan, idempotency_key, dry_run=False)

    # ------------------------------------------------------------------------------------------ stale decisions

    def on_stale(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Have a function called with the decisions that a write makes stale, once the write is committed.

        Writes to this ledger in this process count, by whichever agent; `follow_stale` also sees those of others. The
        function may write. What it raises is kept in `problems` of the subscription and warned of; the write stands.
        """
        return explain_workers.subscribe(self.context.engine, self.tenant, callback)

    def follow_stale(self, *, after: Moment | None = None, wait: Callable[[], object] | None = None) -> Iterator[Stale]:
        """Yield decisions as writes make them stale, by whichever process, without an end.

        It begins after the moment `after`, now when left out. Whenever there is nothing new `wait` is called, and ends
        it by returning `False`; left out, it waits a moment.
        """
        return explain_workers.follow(self._follower(after), wait)

    def _newly_stale(self, after: Moment | None = None) -> explain_workers.Newly:
        """Return what the next writes after a moment made stale, and how far was looked: for whoever asks again."""
        return self._follower(after).next()

    def _follower(self, after: Moment | None) -> explain_workers.Follower:
        with self.context.engine.view(self.tenant) as view:
            position = resolve_moment(view, "now" if after is None else after, clock=self.context.clock)
        return explain_workers.Follower(self.context.engine, self.tenant, self.context.policies, position)

    def _write(
        self,
        verb: str,
        arguments: Arguments,
        plan: Callable[[Draft], None],
        key: str | None,
        dry_run: bool,
        hide: Callable[[View], bool] | None = None,
    ) -> Report:
        """Write what a plan says; `hide` takes out of its values what schemas hide, and says whether that was any."""
        arguments.check()

        def redact(view: View) -> Call | None:
            return (arguments.given, self._key(verb, arguments, key)) if hide is not None and hide(view) else None

        return self._writer.write(
            verb,
            arguments.given,
            plan,
            key=self._key(verb, arguments, key),
            dry_run=dry_run,
            redact=None if hide is None else redact,
        )

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
        from woodrat.runs.start import begin

        return begin(
            self,
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

    def run_kind(self) -> type[Run]:
        """Return the class of its runs."""
        from woodrat.runs.recorder import Run

        return Run

    def recorded(self, query: str | None = None, **about: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Make every call of a function a run: its arguments are the inputs, what it returns is the answer.

        `query`, `subject`, `conversation`, `principal` and `session` may name arguments in braces; `about` is as for
        `run`. Sync and async functions.

            @ledger.recorded("Should we approve application #{number}?", subject="loan/{number}")
            def approve(number: int) -> str: ...
        """
        from woodrat.runs.recorded import recorded

        return recorded(self, query, about)

    def continue_run(self, run: str | None = None, *, ends: bool = False, on_error: str = "note") -> Run:
        """Return a run that another process began, to be recorded into from here too; a context manager.

        Left out, it is the one that `WOODRAT_RUN` or `TRACEPARENT` names. Leaving the block ends the run only with
        `ends`.
        """
        from woodrat.replay.resume import continued

        return continued(self, run, ends=ends, on_error=on_error)

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
        from woodrat.replay.resume import resume

        return resume(self, run, agent, on_unknown=on_unknown, on_error=on_error)

    def _carry_on(self, run: str, **given: Any) -> Run:
        """Return an interrupted run that is carried on here, for `resume`."""
        from woodrat.replay.resume import carried_on

        return carried_on(self, run, **given)

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
        return replay_verbs.replay(self, runs, agent, live=live, progress=progress, steps_max=limit, **spread)

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
        from woodrat.runs.judgement import judge

        return judge(
            self,
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
        from woodrat.runs.evaluation import evaluate

        return evaluate(self, run, against, name, reason, idempotency_key)

    def record(self, document: object, *, idempotency_key: str | None = None) -> tuple[str, ...]:
        """Record runs that happened elsewhere from a JSON document, and return their ids.

        A run is an object with `query`, `steps` and `answer`, recorded as if it happened now; entries are a list of
        objects with a `kind` and their own times. Several runs are a list. With a key the same document is recorded
        once, however often it is sent and wherever an earlier call was cut off.
        """
        from woodrat.runs.document import record

        return record(self, document, idempotency_key)

    def _inside(self, within: Within) -> Ledger:
        """Return the same ledger, whose writes are part of a step of a run."""
        found = copy(self)
        found._within = within
        return found

    def _key(self, verb: str, arguments: Arguments, key: str | None) -> str | None:
        """Return the key of a call; one that states none has one all the same inside a run."""
        return key if key is not None or self._within is None else self._within.key(verb, arguments.given)

    def _having_read(self, draft: Draft, records: Sequence[Record], about: About, within: Within) -> About:
        """Return what a call says, with the observations that its run has read of the entities it speaks of."""
        entities: dict[Ref, None] = {}
        for record in records:
            with suppress(Refused):  # a record that names no entity is refused later, with all its other faults
                found = identity.identify(draft.schema(record.type), record.fields, record.key, record.path)
                entities.update(dict.fromkeys(draft.before.group(ids.Ref(record.type, found[0]))))
        seen = [id for id in within.saw(entities) if plans.find_observation(draft.before, id) is not None]
        return replace(about, saw=(*about.saw, *seen)) if seen else about


class Reading:
    """A source being read; what is stored through it names the reading and its source."""

    def __init__(self, ledger: Ledger, id: str, source_id: str) -> None:
        self._ledger = ledger
        self.id = id
        self.source = source_id
        self.usage: dict[str, Json] = {}
        """What the reading cost; set it before the end, as the model reported it."""

    def end(self, status: str = "done", *, usage: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        """End a reading that was begun with `begin_interpretation`; one that has ended stays as it is."""
        arguments = Arguments()
        cost = arguments.mapping("usage", self.usage if usage is None else usage)
        told = arguments.text("error", error, REASON_BYTES_MAX)
        if status not in ("done", "error"):
            arguments.faults.append(Fault("status", f"got {shown(status)}", "Send done or error."))
        arguments.check()
        with self._ledger._tracer() as tracer:
            begun = tracer.reading(self.id)
        assert begun is not None, "a reading has begun"
        self._ledger._end(begun, status if told is None else "error", cost, told)

    def store(
        self,
        records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        observed_at: str | None = None,
        valid_from: str | None = None,
        idempotency_key: str | None = None,
        priority: int | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Store records as `Ledger.store` does, each naming this reading and its source."""
        return self._ledger._store(
            records,
            None,
            idempotency_key,
            dry_run,
            observed_at=observed_at,
            valid_from=valid_from,
            priority=priority,
            source=self.source,
            interpretation=self.id,
        )


def content_of(content: object) -> tuple[bytes, str]:
    """Return a source's bytes and what to call it."""
    if isinstance(content, bytes):
        return content, "unnamed"
    if not isinstance(content, str | PathLike):
        raise Refused([Fault("content", f"got {shown(content)}", "Send bytes, or the path of a file.")])
    from pathlib import Path

    path = Path(content)
    try:
        return path.read_bytes(), path.name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot read {shown(str(path))}: {reason}"
        raise Refused([Fault("content", problem, "Name a file that can be read, or send bytes.")]) from error


def _told(error: BaseException) -> str:
    """Return an error as text that a body can hold."""
    text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return text.encode()[:REASON_BYTES_MAX].decode(errors="ignore")

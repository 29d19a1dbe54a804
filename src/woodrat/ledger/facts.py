"""Facts: the verbs that say something about entities, and the one that names a moment.

Each takes the context it writes in. Inside a run `within` is the step that writes: what is said names the run and the
step, and a call without an idempotency key gets one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import ownership, plans, redaction
from woodrat.ledger.arguments import Arguments
from woodrat.ledger.moments import resolve_moment, resolve_ref
from woodrat.ledger.notes import remember as remember
from woodrat.ledger.precheck import Precheck
from woodrat.ledger.precheck import remember as remember_rules
from woodrat.ledger.write import Writer
from woodrat.records import replace
from woodrat.state import identity
from woodrat.state.observation import DELETE, RESTORE
from woodrat.state.record import parse_records
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.canon.moment_words import Time
    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.ledger.arguments import About, Expected, Within
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft, Sent
    from woodrat.state.record import Record

NOTHING_WRITTEN = "Nothing was written."
TAG_BYTES_MAX = 128
"""Longest tag."""
BATCH_MIN: Final = 100
"""A store of so many records brings the state index up to date before it returns."""


def store(
    context: Context,
    records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    observed_at: Time | None = None,
    valid_from: Time | None = None,
    idempotency_key: str | None = None,
    priority: int | None = None,
    source: str | None = None,
    interpretation: str | None = None,
    run: str | None = None,
    step: int | None = None,
    saw: Sequence[str] = (),
    if_version: Mapping[str, int | None] | int | Sequence[int] | str | None = None,
    match: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Store what an agent saw: one record or a list of them, whole or not at all."""
    arguments = Arguments(within)
    sent = arguments.records(records, context.clock)
    sent = redaction.sent(sent, context.hidden) if context.hidden else sent
    parsed = parse_records(sent, arguments.faults)
    precheck = Precheck(context, parsed)
    if arguments.faults:
        with context.engine.view(context.tenant) as view:
            arguments.faults = redaction.quieted(view, sent, arguments.faults)
    about = arguments.about(
        observed_at=arguments.time("observed_at", observed_at, context.clock),
        valid_from=arguments.time("valid_from", valid_from, context.clock),
        priority=priority,
        source=source,
        interpretation=interpretation,
        run=run,
        step=step,
        saw=saw,
    )
    conditions = None if if_version is None else arguments.versions(if_version)
    matching = arguments.match(match)
    stored = _Stored(
        *(context, arguments, parsed, precheck, about, conditions, idempotency_key),
        is_list=isinstance(sent, list),
        match=matching,
    )
    if arguments.faults:
        if not parsed:
            arguments.check()
    else:
        stored.spell()
    report = Writer(context).write(
        "store",
        arguments.given,
        stored.plan,
        key=arguments.key("store", idempotency_key),
        dry_run=dry_run,
        redact=stored.redact,
        size=len(parsed),
        about=precheck.about,
        values=precheck.values,
    )
    if len(parsed) >= BATCH_MIN and not dry_run and not report.repeated:
        from woodrat.ledger import state_steps

        state_steps.index_batch(context, len(parsed))
    return arguments.told_times(context, report)


class _Stored:
    """One call of `store`: its records, what it says about all of them, and on which conditions."""

    __slots__ = (
        "_about",
        "_arguments",
        "_conditions",
        "_context",
        "_is_list",
        "_key",
        "_match",
        "_precheck",
        "_records",
    )

    def __init__(
        self,
        context: Context,
        arguments: Arguments,
        records: list[Record],
        precheck: Precheck,
        about: About,
        conditions: Expected | Mapping[Ref, Expected | None] | None,
        key: str | None,
        *,
        is_list: bool,
        match: bool,
    ) -> None:
        self._context, self._arguments, self._records, self._about = context, arguments, records, about
        self._precheck: Precheck | None = precheck
        self._conditions, self._key, self._is_list, self._match = conditions, key, is_list, match

    def spell(self) -> None:
        """Put the records among the arguments, in canonical form."""
        records = self._records
        data = records[0].data if len(records) == 1 else b",".join([record.data for record in records])
        self._arguments.given["records"] = form.Spelled(b"[%b]" % data if self._is_list else data)

    def redact(self, view: View) -> tuple[Sent, str | None] | None:
        """Take out of the records what the schemas hide."""
        redacted = redaction.by_schema(view, self._records)
        if redacted is None:
            return None
        self._records = redacted
        self._precheck = None  # it was of other values
        if not self._arguments.faults:
            self.spell()
        return self._arguments.given, self._arguments.key("store", self._key)

    def plan(self, draft: Draft) -> None:
        """Plan the assertions, with all that is wrong with the call."""
        context, about, faults, within = self._context, self._about, self._arguments.faults, self._arguments.within
        if within is not None:
            about = _having_read(draft, self._records, about, within)
        elif about.run is not None and not faults:
            ownership.check_write(context, draft.view, about.run, NOTHING_WRITTEN)
        records, precheck = self._records, self._precheck
        entities = [None] * len(records) if precheck is None else precheck.entities(draft.rules, len(records))
        plans.store(
            draft, records, about, list(faults), strict="types" in context.strict, entities=entities, match=self._match
        )
        for rules in draft.rules_used():
            remember_rules(context, rules)
        if self._conditions is not None:
            plans.check_versions(draft, self._conditions)


def _having_read(draft: Draft, records: Sequence[Record], about: About, within: Within) -> About:
    """Return what a call says, with the observations that its run has read of the entities it speaks of."""
    entities: dict[Ref, None] = {}
    for record in records:
        with suppress(Refused):  # a record that names no entity is refused later, with all its other faults
            key, _ = identity.identify(draft.schema(record.type), record.fields, record.key, record.path)
            entities.update(dict.fromkeys(draft.before.group(ids.Ref(record.type, key))))
    seen = [id for id in within.saw(entities) if plans.find_observation(draft.before, id) is not None]
    return replace(about, saw=(*about.saw, *seen)) if seen else about


def correct(
    context: Context,
    ref: str | Ref,
    fields: Mapping[str, Any] | None = None,
    *,
    remove: Mapping[str, Sequence[Any]] | None = None,
    reason: str | None = None,
    replaces: str | Sequence[str] | None = None,
    observed_at: Time | None = None,
    valid_from: Time | None = None,
    priority: int | None = None,
    source: str | None = None,
    idempotency_key: str | None = None,
    if_version: int | Sequence[int] | str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Correct fields of an entity; the values hold against every assertion until corrected or withdrawn.

    Under `sum` and `append` `replaces` names the one observation that was wrong. Under `union` the list given is
    what the collection holds: the other elements seen are removed. So it is under `by_key`, where a correction holds
    for the members that it states.
    """
    arguments = Arguments(within)
    arguments.refer(ref=ref)
    values = arguments.fields("fields", redaction.by_key(fields, context.hidden))
    gone = arguments.elements("remove", redaction.by_key(remove, context.hidden, elements=True))
    if arguments.faults:
        with context.engine.view(context.tenant) as view:
            arguments.faults = redaction.quieted_fields(view, redaction.type_of(view, ref), arguments.faults)
    named = arguments.texts("replaces", replaces)
    version = arguments.version(if_version)

    def hide(view: View) -> bool:
        said: Any = arguments.given.get("remove", {})
        return redaction.hide(view, redaction.type_of(view, ref), values, gone, said)

    about = arguments.about(
        reason=reason,
        observed_at=arguments.time("observed_at", observed_at, context.clock),
        valid_from=arguments.time("valid_from", valid_from, context.clock),
        priority=priority,
        source=source,
    )

    def plan(draft: Draft) -> None:
        entity = resolve_ref(draft.before, ref, NOTHING_WRITTEN)
        if version is not None:
            plans.check_versions(draft, {entity: version})
        plans.correct(draft, entity, values, gone, named, about)

    return write(context, "correct", arguments, plan, idempotency_key, dry_run, hide)


def retract(
    context: Context,
    observations: str | Sequence[str],
    *,
    reason: str | None = None,
    observed_at: Time | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Withdraw observations by id; they stay readable, and a retraction can itself be withdrawn."""
    arguments = Arguments(within)
    if observations is None:
        arguments.faults.append(Fault("observations", "got null", "Name at least one observation."))
    named = arguments.texts("observations", observations) or []
    about = arguments.about(reason=reason, observed_at=arguments.time("observed_at", observed_at, context.clock))
    return write(
        context, "retract", arguments, lambda draft: plans.retract(draft, named, about), idempotency_key, dry_run
    )


def delete(
    context: Context,
    ref: str | Ref,
    *,
    reason: str | None = None,
    observed_at: Time | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Mark an entity as deleted; nothing is lost, and `restore` brings it back."""
    return _mark(context, "delete", DELETE, ref, reason, observed_at, idempotency_key, dry_run, within)


def restore(
    context: Context,
    ref: str | Ref,
    *,
    reason: str | None = None,
    observed_at: Time | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Bring a deleted entity back as it is believed now."""
    return _mark(context, "restore", RESTORE, ref, reason, observed_at, idempotency_key, dry_run, within)


def _mark(
    context: Context,
    verb: str,
    op: str,
    ref: str | Ref,
    reason: str | None,
    observed_at: Time | None,
    key: str | None,
    dry_run: bool,
    within: Within | None,
) -> Report:
    arguments = Arguments(within)
    arguments.refer(ref=ref)
    about = arguments.about(reason=reason, observed_at=arguments.time("observed_at", observed_at, context.clock))

    def plan(draft: Draft) -> None:
        plans.mark(draft, resolve_ref(draft.before, ref, NOTHING_WRITTEN), op, about)

    return write(context, verb, arguments, plan, key, dry_run)


def relate(
    context: Context,
    start: str | Ref,
    type: str,
    end: str | Ref,
    *,
    key: str | None = None,
    fields: Mapping[str, Any] | None = None,
    reason: str | None = None,
    observed_at: Time | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Relate two known entities; `key` tells several relations of one type between them apart."""
    arguments = Arguments(within)
    arguments.refer(start=start, end=end)
    arguments.given["type"] = type
    arguments.faults += ids.type_faults(type, "type")
    tells_apart = arguments.text("key", key, ids.KEY_BYTES_MAX)
    said = arguments.fields("fields", redaction.by_key(fields, context.hidden))
    if arguments.faults and isinstance(type, str):
        with context.engine.view(context.tenant) as view:
            arguments.faults = redaction.quieted_fields(view, type, arguments.faults)
    about = arguments.about(reason=reason, observed_at=arguments.time("observed_at", observed_at, context.clock))
    if type == SAME_AS and (said or key is not None):
        problem = "same_as takes neither key nor fields"
        arguments.faults.append(Fault("type", problem, "Leave them out: two entities are the same, or not."))

    def plan(draft: Draft) -> None:
        ends = [resolve_ref(draft.before, side, NOTHING_WRITTEN) for side in (start, end)]
        if type == SAME_AS:
            plans.join(draft, ends[0], ends[1], about)
        else:
            plans.connect(draft, ends[0], type, ends[1], tells_apart, said, about)

    return write(context, "relate", arguments, plan, idempotency_key, dry_run, lambda v: redaction.hide(v, type, said))


def merge(
    context: Context,
    one: str | Ref,
    other: str | Ref,
    *,
    reason: str | None = None,
    observed_at: Time | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Say that two entities of one type are one; `split` takes it back."""
    arguments = Arguments(within)
    arguments.refer(one=one, other=other)
    about = arguments.about(reason=reason, observed_at=arguments.time("observed_at", observed_at, context.clock))

    def plan(draft: Draft) -> None:
        plans.join(
            draft,
            resolve_ref(draft.before, one, NOTHING_WRITTEN),
            resolve_ref(draft.before, other, NOTHING_WRITTEN),
            about,
        )

    return write(context, "merge", arguments, plan, idempotency_key, dry_run)


def split(
    context: Context,
    ref: str | Ref,
    other: str | Ref | None = None,
    *,
    reason: str | None = None,
    observed_at: Time | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Part an entity from all it is joined with, or from one; the report says if a path between them remains."""
    arguments = Arguments(within)
    arguments.refer(ref=ref, other=other)
    about = arguments.about(reason=reason, observed_at=arguments.time("observed_at", observed_at, context.clock))

    def plan(draft: Draft) -> None:
        apart = None if other is None else resolve_ref(draft.before, other, NOTHING_WRITTEN)
        plans.split(draft, resolve_ref(draft.before, ref, NOTHING_WRITTEN), apart, about)

    return write(context, "split", arguments, plan, idempotency_key, dry_run)


def tag(
    context: Context,
    name: str,
    moment: Moment = "now",
    *,
    idempotency_key: str | None = None,
    within: Within | None = None,
) -> Report:
    """Name a moment, so that `@name` reads at it; the latest tag of a name counts."""
    arguments = Arguments(within)
    if ids.tenant_faults(name):
        remedy = f"Use 1 to {TAG_BYTES_MAX} ASCII letters, digits, '.', '_' and '-', such as release-3."
        arguments.faults.append(Fault("name", f"not a tag: {shown(name)}", remedy))
    arguments.check()
    arguments.given.update(name=name)
    if isinstance(moment, int | str):
        arguments.given.update(moment=str(moment))

    def plan(draft: Draft) -> None:
        position = resolve_moment(draft.view, moment, NOTHING_WRITTEN, context.clock)
        if position < 0:
            raise Refused([Fault("moment", "nothing was recorded by then", "Name a later moment.")])
        body: dict[str, Json] = {"agent": draft.agent, "log": draft.log, "name": name, "position": position}
        draft.add("tag", form.encode(body))

    return write(context, "tag", arguments, plan, idempotency_key)


def write(
    context: Context,
    verb: str,
    arguments: Arguments,
    plan: Callable[[Draft], None],
    key: str | None,
    dry_run: bool = False,
    hide: Callable[[View], bool] | None = None,
) -> Report:
    """Write what a plan says; `hide` takes out of its values what schemas hide, and says whether that was any."""
    arguments.check()

    def redact(view: View) -> tuple[Sent, str | None] | None:
        return (arguments.given, arguments.key(verb, key)) if hide is not None and hide(view) else None

    report = Writer(context).write(
        verb,
        arguments.given,
        plan,
        key=arguments.key(verb, key),
        dry_run=dry_run,
        redact=None if hide is None else redact,
    )
    return arguments.told_times(context, report)

"""Writing: the one path by which anything enters the log.

    plan → entries → append → merge → report, in one transaction of the engine

A plan fills a `Draft` and refuses by raising; nothing has been appended then. What was appended is undone when
anything later in the same transaction fails. Several calls can share a commit (`committer.py`): each is written as
here, one after the other, and undone by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import ids
from woodrat.canon.digest import digest
from woodrat.canon.form import Json, Spelled, serialise
from woodrat.clock import Clock, fresh_id, not_before
from woodrat.engines.records import Asks, Find, Head, Receipt
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View
from woodrat.errors import Fault, Refused
from woodrat.ledger import (
    collector,
    entry_index,
    identifying_values,
    receipts,
    refold,
    subscriptions,
    transitions,
)
from woodrat.ledger.clock_skew import skew_hint
from woodrat.ledger.read import Reader, Transition
from woodrat.ledger.report import Report
from woodrat.log.entry import NONCE_BYTES, Origin, Write
from woodrat.merge.rules import Rules, rules_of
from woodrat.state import builtin
from woodrat.state.asof import AsOf
from woodrat.state.match import Match
from woodrat.state.meaning import Meaning
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.context import Context, Erasures

KEY_BYTES_MAX = 256
"""Longest idempotency key."""

_make: Final = tuple.__new__

SHARING_MAX: Final = 64
"""Among how many entities that have an identifying value a hint looks for one that is not joined."""

WRITE_ENTRIES_MAX = 1_000_000
"""Most entries one write may have."""

Sent = Mapping[str, "Json | Spelled"]
"""The arguments that a caller sent, by name, before defaults."""

Redact = Callable[[View], "tuple[Sent, str | None] | None"]
"""Takes out of a call what the schemas hide; returns its arguments and key where that changed them."""


class Item(NamedTuple):
    """One entry to be."""

    kind: str
    body: bytes
    meaning: Meaning
    origin: Origin | None = None


class Draft:
    """One write being planned, against the state before it."""

    __slots__ = (
        *("_planned", "_rules", "_used", "agent", "before", "clock", "first_schemas", "hints", "id", "items"),
        *("known", "log", "matched", "recorded_at", "said", "schemas", "view"),
    )

    def __init__(
        self,
        view: Transaction,
        before: Reader,
        recorded_at: str,
        agent: str,
        clock: Clock,
        log: str,
        first_schemas: Mapping[str, Schema] | None = None,
    ) -> None:
        self.view = view
        """The transaction it will be part of."""
        self.before = before
        """The state before the write."""
        self.recorded_at = recorded_at
        """The log's time of the write."""
        self.agent = agent
        """Who writes."""
        self.clock = clock
        """Where fresh ids come from."""
        self.log = log
        """Name of the log."""
        self.first_schemas = first_schemas
        """What types get with their first record, in place of a built-in schema or none."""
        self.items: list[Item] = []
        self.said: list[Observation] = []
        self.schemas: list[Schema] = []
        """The schemas among the entries planned."""
        self.known: Collection[bytes] = ()
        self.hints: list[str] = []
        self.id: str | None = None
        self.matched: list[Match] = []
        """Records that were attached to known entities."""
        self._planned: set[bytes] = set()
        self._used: dict[str, Schema] = {}
        self._rules: dict[str, Rules] = {}

    def add(self, kind: str, body: bytes, meaning: Meaning = None, origin: Origin | None = None) -> None:
        """Plan one entry; `origin` says where it was first written, if not here."""
        self.items.append(Item(kind, body, meaning, origin))
        if isinstance(meaning, Schema):
            self.schemas.append(meaning)

    def say(self, observation: Observation, origin: Origin | None = None) -> None:
        """Plan an observation; one the log or the draft already holds is not said twice."""
        self.said.append(observation)
        if observation.digest not in self._planned:
            self._planned.add(observation.digest)
            # As `Item(…)`, in half the time.
            self.items.append(_make(Item, ("observation", observation.body, observation, origin)))

    def settle(self) -> None:
        """Leave out what the log already holds; the plan is complete."""
        self.known = self.view.known(self.said) if self.said else ()
        if self.known:
            self.items = [item for item in self.items if not self._is_known(item.meaning)]

    def _is_known(self, meaning: Meaning) -> bool:
        return isinstance(meaning, Observation) and meaning.digest in self.known

    def schema(self, type: str) -> Schema:
        """Return the schema in force for a type once the draft is written, built-in types included."""
        return self.rules(type).schema

    def rules(self, type: str) -> Rules:
        """Return the rules of a type once the draft is written."""
        found = self._rules.get(type)
        if found is None:
            found = self.before.rules(type)
            schema = found.schema
            first = None if self.first_schemas is None else self.first_schemas.get(type)
            if schema.is_open:
                schema = first or builtin.schemas().get(type, schema)
            elif first is not None and schema == builtin.schemas().get(type):
                schema = first
            if schema is not found.schema:
                found = rules_of(schema, self.before.policies)
            self._rules[type] = found
        return found

    def rules_used(self) -> Collection[Rules]:
        """Return the rules that the plan has asked for so far."""
        return self._rules.values()

    def use(self, type: str) -> Schema:
        """Return the schema of a type, writing one that is not in the log yet when the type is first used.

        The log then says by itself how it merges, whatever a later release ships.
        """
        found = self._used.get(type)
        if found is None:
            found = self._used[type] = self.schema(type)
            if not found.is_open and found != self.before.rules(type).schema:
                self.add("schema", found.body, found)
        return found


class Call:
    """A write that a caller asked for."""

    __slots__ = (
        "about",
        "arguments",
        "context",
        "dry_run",
        "key",
        "plan",
        "redact",
        "request",
        "size",
        "values",
        "verb",
    )

    def __init__(
        self,
        context: Context,
        verb: str,
        arguments: Sent,
        plan: Callable[[Draft], None],
        key: str | None,
        dry_run: bool,
        redact: Redact | None,
        size: int,
        about: Sequence[Ref] = (),
        values: Callable[[], Iterable[tuple[Ref, identifying_values.Values]]] | None = None,
    ) -> None:
        self.context, self.verb, self.arguments, self.plan, self.key = context, verb, arguments, plan, key
        self.dry_run, self.redact, self.size, self.about, self.values = dry_run, redact, size, about, values
        self.request = b""
        """The digest of what was asked for; known once it is checked."""

    def check(self) -> None:
        """Refuse a key that cannot be one, and a log that may not be written to."""
        self.request = request_of(self.verb, self.arguments)
        if self.key is not None:
            check_key(self.key)
        if self.context.watch is not None:
            self.context.watch.check()

    def hide(self, view: View) -> None:
        """Take out what the schemas hide, from the arguments and so from the request and the key."""
        if self.redact is not None and (redacted := self.redact(view)) is not None:
            self.arguments, self.key = redacted
            self.request = request_of(self.verb, self.arguments)

    def answer(self, view: View, key: str) -> Report | None:
        """Return the report that the call was given before, by its key."""
        receipt = view.receipt(self.context.agent, key)
        if receipt is not None:
            if receipt.request != self.request:
                problem = f"{key!r} was used before, for another request"
                remedy = "Send the first request again to see its report, or use a new key."
                raise Refused([Fault("idempotency_key", problem, remedy)])
            return receipts.report_again(view, self.context.policies, receipt)
        return None

    def _stop_erased_key(self, erasures: Erasures) -> None:
        """Refuse a key whose write was erased."""
        position = None if self.key is None else erasures.idempotency_key(self.context.agent, self.key)
        if position is not None:
            problem = f"the write that {self.key!r} was used for was erased at {position}, in whole or in part"
            remedy = "Do not send it again. If it is another call, use a new key."
            raise Refused([Fault("idempotency_key", problem, remedy)])

    def draft(self, write: Transaction, before: Reader, since: str | None, log: str | None = None) -> Draft:
        """Plan it against the state before it; `since` is the time of the log's last entry.

        `log` is the name of the log, where it goes on. A new one is made after the clock was asked, as the golden logs
        have it.
        """
        context = self.context
        now = context.clock.now()
        recorded_at = not_before(now, since)
        name = fresh_id(context.clock, "log_") if log is None else log
        draft = Draft(write, before, recorded_at, context.agent, context.clock, name, context.first_schemas)
        if recorded_at is not now and (hint := skew_hint(now, recorded_at)) is not None:
            draft.hints.append(hint)
        self.plan(draft)
        draft.settle()
        if "times" in context.strict:
            _check_times(draft)
        return draft

    @staticmethod
    def _stop_erased(erasures: Erasures, draft: Draft) -> None:
        """Refuse to say again, to the letter, what was erased."""
        faults = []
        for item in draft.items:
            position = erasures.record(item.kind, item.body)
            if position is not None:
                remedy = "If it may be kept, state another observed_at, which makes it another record."
                faults.append(Fault(item.kind, f"this record was erased at {position}", remedy))
        if faults:
            raise Refused(faults)

    def entries(self, draft: Draft, first: int) -> tuple[Write, bytes]:
        """Return what a draft becomes in the log, and the request nonce, which is kept with the receipt alone."""
        items = draft.items
        assert len(items) <= WRITE_ENTRIES_MAX
        random = self.context.clock.random(NONCE_BYTES * (len(items) + 1))
        *nonces, nonce = [random[start : start + NONCE_BYTES] for start in range(0, len(random), NONCE_BYTES)]
        origins = [item[3] for item in items]
        came = origins if any(origins) else None
        write = Write(draft.log, first, draft.recorded_at, items, nonces, self.key or "", self.request, nonce, came)
        return write, nonce

    def claim(self, draft: Draft, report: Report, meanings: Sequence[Meaning], nonce: bytes) -> None:
        """Have its key stand for its report from now on."""
        if self.key is not None:
            kept = receipts.kept(report, draft.said, meanings)
            draft.view.claim(self.context.agent, self.key, Receipt(self.request, kept, nonce))

    def carry_out(self) -> Report:
        """Carry it out by itself; it was checked."""
        context = self.context
        try:
            with self._transaction() as write:
                if self.size < collector.BATCH_MIN:
                    report, first = self._carry_out(write)
                else:
                    with collector.held_off(self.size):
                        report, first = self._carry_out(write)
        except _DryRun as done:
            return done.report
        if first is not None:
            subscriptions.publish(context, first, report.position)
        return report

    def _transaction(self) -> AbstractContextManager[Transaction]:
        engine, tenant = self.context.engine, self.context.tenant
        key = None if self.key is None else (self.context.agent, self.key)
        return engine.transaction(tenant, Asks(key, self.about, find=None if self.values is None else self._find))

    def _find(self) -> Find | None:
        return None if self.values is None else identifying_values.look_up(self.values(), SHARING_MAX)

    def _carry_out(self, write: Transaction) -> tuple[Report, int | None]:
        """Write it; return its report, and the position of its first entry unless there was nothing to write."""
        self.hide(write)
        if self.key is not None and (answered := self.answer(write, self.key)) is not None:
            return answered, None
        erasures = self.context.erasures
        if erasures is not None and not erasures.follow(write):
            erasures = None
        if erasures is not None:
            self._stop_erased_key(erasures)
        head = write.head()
        before = Reader(write, AsOf(head.size - 1), self.context.policies)
        draft = self.draft(write, before, head.recorded_at, own_log(write, head))
        if not draft.items:
            return nothing_new(draft), None
        if erasures is not None:
            self._stop_erased(erasures, draft)
        meanings = [item.meaning for item in draft.items]
        spoken = transitions.said_by_entity(head.size, meanings) if draft.said else {}
        if spoken:
            transitions.remember(write, before, spoken.keys())
        entries, nonce = self.entries(draft, head.size)
        entry_index.append(write, [entries], meanings)
        report = _merge(draft, entries, meanings, spoken)
        if self.dry_run:
            raise _DryRun(report.but(dry_run=True))
        self.claim(draft, report, meanings, nonce)
        return report, entries.first


def _check_times(draft: Draft) -> None:
    """Refuse observations that would take their time from their arrival; of other logs, whatever came is kept."""
    faults = [
        Fault("observed_at", f"{item.meaning.entity}: no time is stated, and this ledger requires one", _STATE_TIME)
        for item in draft.items
        if isinstance(item.meaning, Observation) and item.meaning.assigned and item.origin is None
    ]
    if faults:
        raise Refused(faults)


_STATE_TIME: Final = "State when it was seen, as observed_at of the call or $.observed_at of the record."


class Writer:
    """Writes to the log of a context, or to what stands in for it."""

    __slots__ = ("context",)

    def __init__(self, context: Context) -> None:
        self.context = context

    def write(
        self,
        verb: str,
        arguments: Sent,
        plan: Callable[[Draft], None],
        *,
        key: str | None = None,
        dry_run: bool = False,
        redact: Redact | None = None,
        size: int = 1,
        about: Sequence[Ref] = (),
        values: Callable[[], Iterable[tuple[Ref, identifying_values.Values]]] | None = None,
    ) -> Report:
        """Carry out one write and return its report.

        `arguments` are the caller's own, before defaults: with the verb they make the request that an idempotency
        key stands for. `redact` looks at the schemas first, and returns other arguments and another key where these
        hide something. `size` is about how many entries it will have, `about` the entities it will
        speak of, as far as they are known before, and `values` returns their identifying values.
        """
        call = Call(self.context, verb, arguments, plan, key, dry_run, redact, size, about, values)
        if self.context.stand_in is not None:
            taken: Report = self.context.stand_in.take(call)
            return taken
        call.check()
        return call.carry_out()


def _merge(draft: Draft, entries: Write, meanings: Sequence[Meaning], spoken: transitions.Spoken) -> Report:
    if not draft.said and not draft.schemas:
        return _plain_report(draft, entries)
    after = Reader(draft.view, AsOf(entries.last), draft.before.policies)
    changed = transitions.advance(draft.view, draft.before, after, entries.first, meanings, spoken=spoken)
    return report_of(draft, entries, after, changed)


def _plain_report(draft: Draft, entries: Write) -> Report:
    """Return the report of a write that says nothing of entities, as the steps of runs are."""

    def rest() -> dict[str, Any]:
        nothing = dict.fromkeys(("observations", "known", "entities", "changes", "conflicts", "by_arrival"), ())
        return {**nothing, "positions": tuple(range(entries.first, entries.last + 1))}

    return Report(rest=rest, position=entries.last, hints=tuple(dict.fromkeys(draft.hints)), id=draft.id)


def report_of(draft: Draft, entries: Write, after: Reader, changed: Sequence[Transition]) -> Report:
    """Note the identifying values that a merged write says first, and return its report."""
    news = transitions.new_values(changed)
    # Values by rules that this write brings are not noted yet: those are looked for afterwards.
    schemas = draft.schemas
    shared = _shared(draft, news, about_to=True) if news and not schemas else {}
    transitions.put_rows(draft.view, draft.before, after, changed, schemas, news)
    if news and schemas:
        shared = _shared(draft, news)
    hints = [*draft.hints, *transitions.write_hints(after, changed, news, shared)]
    if draft.known:
        hints += transitions.withdrawn_hints(after, [said for said in draft.said if said.digest in draft.known])
    changes = transitions.changes(changed)

    def rest() -> dict[str, Any]:
        return {
            "positions": tuple(range(entries.first, entries.last + 1)),
            "observations": tuple(said.id for said in draft.said),
            "known": tuple(said.id for said in draft.said if said.digest in draft.known),
            "entities": receipts.entities_of(draft.said),
            **changes(),
        }

    unique = tuple(dict.fromkeys(hints)) if hints else ()
    made = Report(rest=rest, position=entries.last, hints=unique, id=draft.id)
    return made.but(matched=tuple(draft.matched)) if draft.matched else made


def _shared(draft: Draft, news: transitions.News, *, about_to: bool = False) -> transitions.Shared:
    """Return who has the values that a write is the first to say; types that wait are left out, and a hint says so."""
    if waiting := refold.types_without_values(draft.view):
        draft.hints += [
            f"The identity rules of {type} changed and its identifying values are still being indexed: entities that "
            "share one may not be listed here yet. `woodrat entities list --duplicates` shows them once that is done."
            for type in sorted({ref.type for ref, _ in news}.intersection(waiting))
        ]
        news = [one for one in news if one[0].type not in waiting]
    return identifying_values.sharing(draft.view, news, about_to=about_to, limit=SHARING_MAX)


def nothing_new(draft: Draft) -> Report:
    """Everything said is known: the answer is what was answered then, where one write said it all."""
    stored = [draft.view.observation(o.digest, draft.before.asof.position) for o in draft.said]
    writes = set()
    for found in stored:
        entry = draft.view.entry(found.position) if found is not None else None
        if entry is not None:
            writes.add(entry.envelope.write)
    position = max((found.position for found in stored if found is not None), default=draft.before.asof.position)
    hints: list[str] = []
    did: dict[str, Any] = dict.fromkeys(("positions", "changes", "conflicts", "by_arrival"), ())
    if len(writes) == 1:
        first = writes.pop()
        opening = draft.view.entry(first)
        assert opening is not None and opening.envelope.length is not None
        last = first + opening.envelope.length - 1
        said = [found for found in stored if found is not None]
        changes, changed, now = receipts.changes_again(draft.view, draft.before.policies, first, last, said)
        did, position = {"positions": tuple(range(first, last + 1)), **changes()}, last
        news = transitions.new_values(changed)
        hints += transitions.write_hints(now, changed, news, _shared(draft, news))
        hints += transitions.withdrawn_hints(draft.before, draft.said)
    return Report(
        **did,
        position=position,
        observations=tuple(observation.id for observation in draft.said),
        known=tuple(o.id for o in draft.said),
        entities=receipts.entities_of(draft.said),
        hints=(*draft.hints, *hints),
        matched=tuple(draft.matched),
        repeated=bool(draft.said),
        id=draft.id,
    )


def next_log(view: View, clock: Clock) -> str:
    """Return the name of the log that the next write goes under.

    A log that another ledger wrote is theirs: what is written here begins one of its own.
    """
    return own_log(view, view.head()) or fresh_id(clock, "log_")


def own_log(view: View, head: Head) -> str | None:
    """Return the name of the log at whose head a write goes on; `None` where it begins one."""
    return head.log if head.log is not None and view.cloned() < head.size - 1 else None


class _DryRun(Exception):
    """Leaves the transaction, so that the engine undoes it."""

    def __init__(self, report: Report) -> None:
        self.report = report


def request_of(verb: str, arguments: Mapping[str, Json | Spelled]) -> bytes:
    """Return the digest of a request: canonical {arguments, verb}, as sent, before defaults."""
    given = [
        # Names of arguments and verbs are our own, plain letters: between quotation marks they are spelled already.
        b'"%b":%b' % (name.encode(), value if type(value) is Spelled else serialise(value))
        for name, value in sorted(arguments.items())
    ]
    return digest("request", b'{"arguments":{%b},"verb":"%b"}' % (b",".join(given), verb.encode()))


def check_key(key: str) -> None:
    """Refuse an idempotency key that cannot be one."""
    found = ids.text_faults(key, "idempotency_key", KEY_BYTES_MAX, "idempotency key")
    if found:
        raise Refused(found)

"""Writing: the one path by which anything enters the log.

    plan → entries → append → merge → report, in one transaction of the engine

A plan fills a `Draft` and refuses by raising; nothing has been appended then. What was appended is undone when
anything later in the same transaction fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from woodrat.canon import ids
from woodrat.canon.digest import digest
from woodrat.canon.form import Json, Spelled, serialise
from woodrat.canon.ids import Ref, TenantId
from woodrat.clock import Clock, fresh_id, not_before
from woodrat.context import Erasures
from woodrat.engines.port import KEPT_EVERY, Engine, Kept, Receipt, Transaction, View
from woodrat.errors import Fault, Refused
from woodrat.explain import workers as explain_workers
from woodrat.ledger import report as reports
from woodrat.ledger.clock_skew import skew_hint
from woodrat.ledger.read import Reader, Transition
from woodrat.ledger.report import Change, Report
from woodrat.log.entry import NONCE_BYTES, Origin, Write
from woodrat.merge import Policy, fold, snapshot
from woodrat.merge.diff import FieldChange, collection_changes, field_changes
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules, rules_of
from woodrat.records import dataclass, field
from woodrat.runs import current
from woodrat.state import builtin, identity, relation
from woodrat.state.asof import AsOf, Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import STATING, Observation
from woodrat.state.schema import OPEN, Schema

KEY_BYTES_MAX = 256
"""Longest idempotency key."""

WRITE_ENTRIES_MAX = 1_000_000
"""Most entries one write may have."""


Redact = Callable[[View], "tuple[Mapping[str, Json | Spelled], str | None] | None"]
"""Takes out of a call what the schemas hide; returns its arguments and key where that changed them."""

Hide = Callable[[View], tuple[bytes, str | None] | None]
"""Does so, and returns the request and the key where that changed them."""


class Item(NamedTuple):
    """One entry to be."""

    kind: str
    body: bytes
    meaning: Meaning
    origin: Origin | None = None


@dataclass(slots=True)
class Draft:
    """One write being planned, against the state before it."""

    view: Transaction
    """The transaction it will be part of."""
    before: Reader
    """The state before the write."""
    recorded_at: str
    """The log's time of the write."""
    agent: str
    """Who writes."""
    clock: Clock
    """Where fresh ids come from."""
    log: str
    """Name of the log."""
    items: list[Item] = field(default_factory=list)
    said: list[Observation] = field(default_factory=list)
    known: Collection[bytes] = ()
    hints: list[str] = field(default_factory=list)
    id: str | None = None
    _planned: set[bytes] = field(default_factory=set)
    _schemas: dict[str, Schema] = field(default_factory=dict)
    _used: dict[str, Schema] = field(default_factory=dict)
    _rules: dict[str, Rules] = field(default_factory=dict)

    def add(self, kind: str, body: bytes, meaning: Meaning = None, origin: Origin | None = None) -> None:
        """Plan one entry; `origin` says where it was first written, if not here."""
        self.items.append(Item(kind, body, meaning, origin))

    def say(self, observation: Observation, origin: Origin | None = None) -> None:
        """Plan an observation; one the log or the draft already holds is not said twice."""
        self.said.append(observation)
        if observation.digest not in self._planned:
            self._planned.add(observation.digest)
            self.items.append(Item("observation", observation.body, observation, origin))

    def settle(self) -> None:
        """Leave out what the log already holds; the plan is complete."""
        self.known = self.view.known(self.said) if self.said else ()
        if self.known:
            self.items = [
                item
                for item in self.items
                if not (isinstance(item.meaning, Observation) and item.meaning.digest in self.known)
            ]

    def schema(self, type: str) -> Schema:
        """Return the schema in force for a type once the draft is written, built-in types included."""
        found = self._schemas.get(type)
        if found is None:
            found = self.before.rules(type).schema
            if found.is_open:
                found = builtin.schemas().get(type, OPEN(type))
            self._schemas[type] = found
        return found

    def rules(self, type: str) -> Rules:
        """Return the rules of a type once the draft is written."""
        found = self._rules.get(type)
        if found is None:
            found = self._rules[type] = rules_of(self.schema(type), self.before.policies)
        return found

    def use(self, type: str) -> Schema:
        """Return the schema of a type, writing a built-in one into the log when the type is first used.

        The log then says by itself how it merges, whatever a later release ships.
        """
        found = self._used.get(type)
        if found is None:
            found = self._used[type] = self.schema(type)
            if not found.is_open and self.before.rules(type).schema.is_open:
                self.add("schema", found.body, found)
        return found


class Watch(Protocol):
    """Whoever has a say before a write, and hears of it when it is durable."""

    def check(self) -> None:
        """Raise unless the log may be written to."""

    def wrote(self, position: int) -> None:
        """Hear that the log reaches to a position; never raises."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Everything a write needs besides its plan."""

    engine: Engine
    tenant: TenantId
    clock: Clock
    agent: str
    policies: Mapping[str, Policy]
    watch: Watch | None = None
    erasures: Erasures | None = None
    """What was erased here, and is not to come back."""

    def write(
        self,
        verb: str,
        arguments: Mapping[str, Json | Spelled],
        plan: Callable[[Draft], None],
        *,
        key: str | None = None,
        dry_run: bool = False,
        redact: Redact | None = None,
        apart: bool = False,
    ) -> Report:
        """Carry out one write and return its report.

        `arguments` are the caller's own, before defaults: with the verb they make the request that an idempotency
        key stands for. `redact` looks at the schemas first, and returns other arguments and another key where these
        hide something. `apart` says that the plan leans on nothing but schemas, sources and the entities it speaks of:
        what is said of others meanwhile is no concern of it, so it may be gathered with other calls.
        """
        replay = current.current_replay(self.engine, self.tenant)
        if replay is not None:
            if redact is not None:
                with self.engine.view(self.tenant) as view:
                    arguments, key = redact(view) or (arguments, key)
            found: Report = replay.write(self, verb, arguments, plan, key)
            return found
        request = request_of(verb, arguments)
        if key is not None:
            check_key(key)
        hide = None if redact is None else partial(_hidden, redact, verb)
        if self.watch is not None:
            self.watch.check()
        gathered: list[Call] | None = getattr(_GATHERED, "calls", None)
        if gathered is None:
            return self.carry_out(request, plan, key, dry_run, hide)
        call = Call(self, request, plan, key, dry_run, hide, apart)
        gathered.append(call)
        return Report.later(call.parts)

    def carry_out(
        self,
        request: bytes,
        plan: Callable[[Draft], None],
        key: str | None,
        dry_run: bool,
        hide: Hide | None,
    ) -> Report:
        """Carry out a write by itself."""
        try:
            with self.engine.transaction(self.tenant) as write:
                if hide is not None and (hidden := hide(write)) is not None:
                    request, key = hidden
                receipt = None if key is None else write.receipt(self.agent, key)
                if receipt is not None:
                    return repeated(receipt, request, key)
                if key is not None:
                    self.stop_erased_key(write, key)
                draft = self._draft(write)
                plan(draft)
                draft.settle()
                if not draft.items:
                    return self._nothing_new(draft)
                if self.erasures is not None and self.erasures.follow(write):
                    stop_erased(self.erasures, draft)
                meanings = [item.meaning for item in draft.items]
                draft.before.remember(spoken_of(meanings))
                entries, nonce = self.entries(draft, draft.before.asof.position + 1, key or "", request)
                write.append([entries], meanings)
                result = self._merge(draft, entries, meanings)
                if dry_run:
                    raise _DryRun(result.but(dry_run=True))
                if key is not None:
                    write.claim(self.agent, key, Receipt(request, result.to_bytes(), nonce))
        except _DryRun as done:
            return done.report
        self.wrote(entries.first, result)
        return result

    def stop_erased_key(self, view: View, key: str) -> None:
        """Refuse the key of a write of which something was erased: the call is a retry of it."""
        if self.erasures is not None and self.erasures.follow(view):
            position = self.erasures.idempotency_key(self.agent, key)
            if position is not None:
                problem = f"the write that {key!r} was used for was erased at {position}, in whole or in part"
                remedy = "Do not send it again. If it is another call, use a new key."
                raise Refused([Fault("idempotency_key", problem, remedy)])

    def wrote(self, first: int, report: Report) -> None:
        """Tell those who watch of a write, by its first position, once it is durable."""
        explain_workers.wrote(self.engine, self.tenant, self.policies, first, report.position)
        if self.watch is not None:
            explain_workers.once_durable(partial(self.watch.wrote, report.position))

    def _draft(self, write: Transaction) -> Draft:
        head = write.head()
        before = Reader(write, AsOf(head.position), self.policies)
        now = self.clock.now()
        recorded_at = not_before(now, head.recorded_at)
        draft = Draft(write, before, recorded_at, self.agent, self.clock, next_log(write, self.clock))
        if recorded_at is not now and (hint := skew_hint(now, recorded_at)) is not None:
            draft.hints.append(hint)
        return draft

    def entries(self, draft: Draft, first: int, key: str, request: bytes) -> tuple[Write, bytes]:
        """Return what a draft becomes in the log, and the request nonce, which is kept with the receipt alone."""
        assert len(draft.items) <= WRITE_ENTRIES_MAX
        random = self.clock.random(NONCE_BYTES * (len(draft.items) + 1))
        *nonces, nonce = [random[start : start + NONCE_BYTES] for start in range(0, len(random), NONCE_BYTES)]
        items = [(item.kind, item.body) for item in draft.items]
        origins = [item.origin for item in draft.items]
        write = Write(
            *(draft.log, first, draft.recorded_at, items, nonces, key, request, nonce),
            origins if any(origins) else None,
        )
        return write, nonce

    def _merge(self, draft: Draft, entries: Write, meanings: Sequence[Meaning]) -> Report:
        schemas = [meaning for meaning in meanings if isinstance(meaning, Schema)]
        after = Reader(draft.view, AsOf(entries.last), self.policies)
        transitions: list[Transition] = []
        if draft.said or schemas:
            transitions = advance(draft.view, draft.before, after, entries.first, meanings)
        return told(draft, entries, after, transitions, schemas)

    def _nothing_new(self, draft: Draft) -> Report:
        """Everything said is known: the answer is what was answered then, where one write said it all."""
        stored = [draft.view.observation(o.digest, draft.before.asof.position) for o in draft.said]
        writes = set()
        for found in stored:
            entry = draft.view.entry(found.position) if found is not None else None
            if entry is not None:
                writes.add(entry.envelope.write)
        position = max((found.position for found in stored if found is not None), default=draft.before.asof.position)
        changes: tuple[Change, ...] = ()
        conflicts: tuple[str, ...] = ()
        by_arrival: tuple[str, ...] = ()
        positions: tuple[int, ...] = ()
        if len(writes) == 1:
            first = writes.pop()
            opening = draft.view.entry(first)
            assert opening is not None and opening.envelope.length is not None
            position = first + opening.envelope.length - 1
            positions = tuple(range(first, position + 1))
            spoken: dict[Ref, list[Stored]] = {}
            for found in stored:
                assert found is not None, "all that was said is known"
                spoken.setdefault(found.observation.entity, []).append(found)
            now = Reader(draft.view, AsOf(position), self.policies)
            then = Reader(draft.view, AsOf(first - 1), self.policies)
            transitions = [now.transition(then, ref, spoken.get(ref, ())) for ref in _touched(spoken)]
            changes, conflicts = _compare(transitions, _large(transitions))
            by_arrival = _by_arrival(transitions)
            draft.hints += _hints(now, transitions, _news(transitions))
            draft.hints += _withdrawn(draft.before, draft.said)
        return Report(
            position=position,
            positions=positions,
            observations=tuple(observation.id for observation in draft.said),
            known=tuple(o.id for o in draft.said),
            entities=tuple(str(ref) for ref in dict.fromkeys(o.entity for o in draft.said)),
            changes=changes,
            conflicts=conflicts,
            by_arrival=by_arrival,
            hints=tuple(draft.hints),
            repeated=bool(draft.said),
            id=draft.id,
        )


class Call:
    """A write that waits for others to be carried out with, and what became of it."""

    __slots__ = ("apart", "dry_run", "error", "hide", "key", "plan", "report", "request", "writer")

    def __init__(
        self,
        writer: Writer,
        request: bytes,
        plan: Callable[[Draft], None],
        key: str | None,
        dry_run: bool,
        hide: Hide | None,
        apart: bool,
    ) -> None:
        self.writer, self.request, self.plan, self.key, self.hide = writer, request, plan, key, hide
        self.dry_run, self.apart = dry_run, apart
        self.report: Report | None = None
        """Its report, once it was carried out."""
        self.error: BaseException | None = None
        """What it raised instead."""

    def carry_out(self) -> None:
        """Carry it out by itself."""
        try:
            self.report = self.writer.carry_out(self.request, self.plan, self.key, self.dry_run, self.hide)
        except BaseException as error:
            self.error = error

    def parts(self) -> Mapping[str, Any]:
        """Return the parts of its report; they can be looked at once it was carried out."""
        assert self.report is not None, "it was carried out"
        return reports.parts(self.report)


_GATHERED = threading.local()


class gathered:
    """Gather the writes of this thread instead of carrying them out; a context that gives the calls.

    Whoever opens it carries them out (`gathering.carry_out`) and then asks each what became of it: the report that such
    a write returns has nothing to tell until then.
    """

    __slots__ = ()

    def __enter__(self) -> list[Call]:
        assert getattr(_GATHERED, "calls", None) is None, "it is not opened twice"
        calls: list[Call] = []
        _GATHERED.calls = calls
        return calls

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        _GATHERED.calls = None


def told(
    draft: Draft, entries: Write, after: Reader, transitions: Sequence[Transition], schemas: Sequence[Schema]
) -> Report:
    """Note the identifying values that a merged write says first, and return its report."""
    news = note_values(draft.view, after, transitions, schemas)
    hints = [*draft.hints, *_hints(after, transitions, news)]
    if draft.known:
        hints += _withdrawn(after, [said for said in draft.said if said.digest in draft.known])
    large = _large(transitions)

    def rest() -> dict[str, Any]:
        changes, conflicts = _compare(transitions, large)
        return {
            "positions": tuple(range(entries.first, entries.last + 1)),
            "observations": tuple(said.id for said in draft.said),
            "known": tuple(said.id for said in draft.said if said.digest in draft.known),
            "entities": tuple(str(ref) for ref in dict.fromkeys(said.entity for said in draft.said)),
            "changes": changes,
            "conflicts": conflicts,
            "by_arrival": _by_arrival(transitions),
        }

    return Report(rest=rest, position=entries.last, hints=tuple(dict.fromkeys(hints)), id=draft.id)


def next_log(view: View, clock: Clock) -> str:
    """Return the name of the log that the next write goes under.

    A log that another ledger wrote is theirs: what is written here begins one of its own.
    """
    head = view.head()
    return head.log if head.log is not None and view.cloned() < head.position else fresh_id(clock, "log_")


def _hidden(redact: Redact, verb: str, view: View) -> tuple[bytes, str | None] | None:
    """Return the request and the key of a call out of which something was taken; none where nothing was."""
    found = redact(view)
    return None if found is None else (request_of(verb, found[0]), found[1])


def stop_erased(erasures: Erasures, draft: Draft) -> None:
    """Refuse to say again, to the letter, what was erased."""
    faults = []
    for item in draft.items:
        position = erasures.record(item.kind, item.body)
        if position is not None:
            remedy = "If it may be kept, state another observed_at, which makes it another record."
            faults.append(Fault(item.kind, f"this very record was erased at {position}", remedy))
    if faults:
        raise Refused(faults)


class _DryRun(Exception):
    """Leaves the transaction, so that the engine undoes it."""

    def __init__(self, report: Report) -> None:
        self.report = report


def _touched(spoken_of: Iterable[Ref]) -> list[Ref]:
    """Return the entities a write may change: those it speaks of, and those a `same_as` among them joins or parts."""
    found: dict[Ref, None] = {}
    for ref in spoken_of:
        found[ref] = None
        found.update(dict.fromkeys(relation.joined(ref) or ()))
    return list(found)


def spoken_of(meanings: Iterable[Meaning]) -> set[Ref]:
    """Return the entities that some entries speak of."""
    return {meaning.entity for meaning in meanings if isinstance(meaning, Observation)}


def advance(
    write: Transaction, before: Reader, after: Reader, first: int, meanings: Sequence[Meaning]
) -> list[Transition]:
    """Merge entries from position `first` on, which the indexes know already, and keep what they make of state.

    `before` remembers the entities they speak of. Return what became of those, and of all that they join or part.
    """
    spoken: dict[Ref, list[Stored]] = {}
    schemas: list[Schema] = []
    changed: dict[str, int] = {}
    for position, meaning in enumerate(meanings, first):
        if isinstance(meaning, Observation):
            said = spoken.get(meaning.entity)
            if said is None:
                spoken[meaning.entity] = [Stored(position, meaning)]
            else:
                said.append(Stored(position, meaning))
        elif isinstance(meaning, Schema):
            schemas.append(meaning)
            changed[meaning.type] = position
    transitions, others = after.follow(before, spoken, changed)
    if others:
        found = {transition.ref: transition for transition in transitions}
        transitions = [found.get(ref) or after.transition(before, ref, spoken.get(ref, ())) for ref in _touched(spoken)]
    keep(write, after, transitions, schemas)
    return transitions


def absorb(write: Transaction, before: Reader, after: Reader, first: int, meanings: Sequence[Meaning]) -> None:
    """Merge entries from position `first` on, as `advance` does, and note the identifying values that are new."""
    news = _news(advance(write, before, after, first, meanings))
    if news:
        write.share(news)
    for type in dict.fromkeys(meaning.type for meaning in meanings if isinstance(meaning, Schema)):
        _note_type(write, after, type)


def keep(write: Transaction, after: Reader, transitions: Iterable[Transition], schemas: Iterable[Schema]) -> None:
    """Keep the state of touched entities, of joined or parted groups, and of whole types with a new schema."""
    position = after.asof.position
    keeping: dict[Ref, tuple[Kept, Rules, bool]] = {}
    along = {kept.state.members[0] for kept, _, _ in after.along}
    for _, _, old, _, new, rules in transitions:
        root = new.members[0]
        if root not in keeping:
            # Mostly the very same, since nothing was said that joins or parts.
            same = old.members is new.members or old.members == new.members
            before = old.observations if same and old.schema == new.schema else 0
            grown = new.observations // KEPT_EVERY > before // KEPT_EVERY
            keeping[root] = (Kept(position, new), rules, grown and root not in along)
    for schema in schemas:
        for ref in write.entities(schema.type, position):
            root, state = after.group(ref)[0], after.state(ref)
            if root not in keeping:
                # What was kept along the history was folded under another schema, and counts for nothing now.
                keeping[root] = (Kept(position, state), after.rules(ref.type), state.observations >= KEPT_EVERY)
    write.keep([*after.along, *keeping.values()])


Large = Mapping[int, Mapping[str, FieldChange | None]]
"""What changed in large collections, by the place of the transition and the field."""


def _large(transitions: Sequence[Transition]) -> Large:
    """Return what changed in large collections: their parts are only at hand within the transaction."""
    return {
        place: collection_changes(old, new)
        for place, (_, _, old, _, new, _) in enumerate(transitions)
        if old.held or new.held
    }


def _compare(transitions: Sequence[Transition], large: Large) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return what changed in the touched entities, and the conflicts that are new."""
    changes: list[Change] = []
    conflicts: list[str] = []
    for place, (ref, _, old, was, new, now) in enumerate(transitions):
        apart = large.get(place)
        if apart:
            names = (old.names | new.names).difference(apart)
            found = field_changes(snapshot.fields_of(old, was, names), snapshot.fields_of(new, now, names))
            told = [change for change in apart.values() if change is not None]
            fields = tuple(sorted((*found, *told), key=lambda change: change.field))
        else:
            fields = field_changes(snapshot.fields_of(old, was), snapshot.fields_of(new, now))
        deleted = (old.exists and old.deleted, new.exists and new.deleted)
        if fields or deleted[0] != deleted[1]:
            changes.append(Change(str(ref), deleted, fields))
        differing = snapshot.contested(new, now)
        arisen = differing - snapshot.contested(old, was, differing & old.names) if differing else differing
        conflicts += [f"{ref}#{name}" for name in sorted(arisen)]
    return tuple(changes), tuple(conflicts)


def _by_arrival(transitions: Sequence[Transition]) -> tuple[str, ...]:
    """Return the fields that a write speaks of and that are decided only by arrival after it."""
    found: list[str] = []
    for ref, stored, _, _, new, rules in transitions:
        if new.rivals or new.held:
            names: Collection[str] = stored[0].observation.fields if len(stored) == 1 else ()
            if len(stored) != 1 or stored[0].observation.remove:
                names = {name for _, said in stored for name in (*said.fields, *said.remove)}
            decided = snapshot.decided_by_arrival(new, rules, names)
            if decided:
                entity = str(ref)
                found += [f"{entity}#{name}" for name in sorted(decided)]
    return tuple(found)


News = Sequence[tuple[Ref, list[tuple[str, str]]]]
"""Identifying values said of entities for the first time, as (rule, value)."""


def note_values(
    write: Transaction, after: Reader, transitions: Iterable[Transition], schemas: Iterable[Schema]
) -> News:
    """Note the identifying values that some entries say first, and those of types with a new schema anew."""
    found = _news(transitions)
    if found:
        write.share(found)
    for schema in schemas:
        _note_type(write, after, schema.type)
    return found


def _news(transitions: Iterable[Transition]) -> News:
    """Return the identifying values that a write is the first to say of entities; a relation has none."""
    found: list[tuple[Ref, list[tuple[str, str]]]] = []
    for ref, stored, old, _, _, rules in transitions:
        values: dict[tuple[str, str], None] = {}
        for _, observation in stored:
            if observation.op in STATING and not _is_old(old, rules.identifying, observation.fields):
                values.update(dict.fromkeys(identity.shared_values(rules.schema, observation.fields)))
        if values and relation.endpoints(ref) is None:
            found.append((ref, list(values)))
    return found


def _is_old(state: MergeState, identifying: Iterable[str], fields: Mapping[str, Json]) -> bool:
    """Return whether one assertion that still counts said the same of every field that identifies, all of it text."""
    for _, values in state.strata:
        for name in identifying:
            value = fields.get(name)
            if value is not None and (value != values.get(name) or type(value) is not str):
                break
        else:
            return True
    return False


def _note_type(write: Transaction, after: Reader, type: str) -> None:
    """Note the identifying values of a whole type anew, under the rules now in force."""
    write.unshare(type)
    schema = after.rules(type).schema
    for ref in write.entities(type, after.asof.position):
        if relation.endpoints(ref) is None:
            values: dict[tuple[str, str], None] = {}
            for stored in after.stored((ref,)):
                if stored.observation.op in STATING:
                    values.update(dict.fromkeys(identity.shared_values(schema, stored.observation.fields)))
            write.share([(ref, list(values))])


def _hints(after: Reader, transitions: Iterable[Transition], news: News) -> list[str]:
    """Return what the writer may want to know: values shared with entities not joined, words about deleted ones."""
    hints: list[str] = []
    for ref, values in news:
        for rule, value in values:
            others = [other for other in after.view.sharing(ref.type, rule, value) if other != ref]
            apart = [other for other in others if other not in after.group(ref)] if others else []
            if apart:
                hints.append(f"{ref} and {apart[0]} share {rule} {value!r}; they stay apart unless you merge them.")
    for transition in transitions:
        if (
            transition.new.markers
            and transition.new.deleted
            and any(one.observation.op in STATING for one in transition.stored)
        ):
            hints.append(f"{transition.ref} is deleted and stays so; restore it to see what was said.")
    return hints


def _withdrawn(now: Reader, known: Sequence[Observation]) -> list[str]:
    """Return a hint for each known observation that was withdrawn since: saying it again changes nothing."""
    hints: list[str] = []
    for observation in known:
        stored = now.stored(now.group(observation.entity))
        if observation.digest not in fold.live_digests({s.observation.digest: s.observation for s in stored}):
            hints.append(
                f"{observation.id} was said before and has been withdrawn; "
                "state another observed_at to say it anew, or retract its retraction."
            )
    return hints


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


def repeated(receipt: Receipt, request: bytes, key: str | None) -> Report:
    """Return the report that a key stands for; refuse the key if it stands for another request."""
    if receipt.request != request:
        problem = f"{key!r} was used before, for another request"
        remedy = "Send the first request again to see its report, or use a new key."
        raise Refused([Fault("idempotency_key", problem, remedy)])
    return reports.from_bytes(receipt.report).again()

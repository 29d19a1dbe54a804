"""Writing: the one path by which anything enters the log.

    plan → entries → append → merge → report, in one transaction of the engine

A plan fills a `Draft` and refuses by raising; nothing has been appended then. What was appended is undone when
anything later in the same transaction fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from woodrat.canon import ids
from woodrat.canon.digest import digest
from woodrat.canon.form import Json, serialise
from woodrat.canon.ids import Ref, TenantId
from woodrat.clock import Clock, fresh_id, not_before
from woodrat.engines.port import KEPT_EVERY, Engine, Kept, Meaning, Receipt, Transaction
from woodrat.errors import Fault, Refused
from woodrat.ledger import report as reports
from woodrat.ledger.reading import Reader
from woodrat.ledger.report import Change, Report
from woodrat.log.entry import NONCE_BYTES, Entry, write_entries
from woodrat.state import builtin, identity, merge, relation, snapshot
from woodrat.state.merge import Rules
from woodrat.state.observation import STATING, Observation
from woodrat.state.policy import Policy
from woodrat.state.schema import OPEN, Schema
from woodrat.views.asof import AsOf, Stored
from woodrat.views.diff import field_changes

KEY_BYTES_MAX = 256
"""Longest idempotency key."""

WRITE_ENTRIES_MAX = 1_000_000
"""Most entries one write may have."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry to be."""

    kind: str
    body: bytes
    meaning: Meaning


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
    known: set[bytes] = field(default_factory=set)
    hints: list[str] = field(default_factory=list)
    id: str | None = None
    _new: set[bytes] = field(default_factory=set)
    _schemas: dict[str, Schema] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _rules: dict[str, Rules] = field(default_factory=dict)

    def add(self, kind: str, body: bytes, meaning: Meaning = None) -> None:
        """Plan one entry."""
        self.items.append(Item(kind, body, meaning))

    def say(self, observation: Observation) -> None:
        """Plan an observation; one the log or the draft already holds is known and not said twice."""
        self.said.append(observation)
        if self.view.observation(observation.digest, self.before.asof.position) is not None:
            self.known.add(observation.digest)
        elif observation.digest not in self._new:
            self._new.add(observation.digest)
            self.add("observation", observation.body, observation)

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
            found = self._rules[type] = Rules(self.schema(type), self.before.policies)
        return found

    def use(self, type: str) -> Schema:
        """Return the schema of a type, writing a built-in one into the log when the type is first used.

        The log then says by itself how it merges, whatever a later release ships.
        """
        found = self.schema(type)
        if not found.is_open and self.before.rules(type).schema.is_open and type not in self._used:
            self._used.add(type)
            self.add("schema", found.body, found)
        return found


@dataclass(frozen=True, slots=True)
class Writer:
    """Everything a write needs besides its plan."""

    engine: Engine
    tenant: TenantId
    clock: Clock
    agent: str
    policies: Mapping[str, Policy]

    def write(
        self,
        verb: str,
        arguments: Mapping[str, Json],
        plan: Callable[[Draft], None],
        *,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Carry out one write and return its report.

        `arguments` are the caller's own, before defaults: with the verb they make the request that an idempotency
        key stands for.
        """
        request = digest("request", serialise({"arguments": dict(arguments), "verb": verb}))
        if key is not None:
            _check_key(key)
        try:
            with self.engine.transaction(self.tenant) as write:
                receipt = None if key is None else write.receipt(self.agent, key)
                if receipt is not None:
                    return _repeated(receipt, request, key)
                draft = self._draft(write)
                plan(draft)
                if not draft.items:
                    return self._nothing_new(draft)
                entries = self._append(draft, key or "", request)
                result = self._merge(draft, entries)
                if dry_run:
                    raise _DryRun(replace(result, dry_run=True))
                if key is not None:
                    write.claim(self.agent, key, Receipt(request, result.to_bytes()))
                return result
        except _DryRun as done:
            return done.report

    def _draft(self, write: Transaction) -> Draft:
        head = write.head()
        before = Reader(write, AsOf(head.position), self.policies)
        recorded_at = not_before(self.clock.now(), head.recorded_at)
        log = head.log or fresh_id(self.clock, "log_")
        return Draft(write, before, recorded_at, self.agent, self.clock, log)

    def _append(self, draft: Draft, key: str, request: bytes) -> Sequence[Entry]:
        assert len(draft.items) <= WRITE_ENTRIES_MAX
        random = self.clock.random(NONCE_BYTES * len(draft.items))
        nonces = [random[start : start + NONCE_BYTES] for start in range(0, len(random), NONCE_BYTES)]
        entries = write_entries(
            draft.log,
            draft.before.asof.position + 1,
            draft.recorded_at,
            [(item.kind, item.body) for item in draft.items],
            nonces,
            key,
            request,
        )
        draft.view.append(entries, [item.meaning for item in draft.items])
        return entries

    def _merge(self, draft: Draft, entries: Sequence[Entry]) -> Report:
        after = Reader(draft.view, AsOf(entries[-1].position), self.policies)
        new = [
            Stored(entry.position, item.meaning)
            for entry, item in zip(entries, draft.items, strict=True)
            if isinstance(item.meaning, Observation)
        ]
        touched = _touched(stored.observation.entity for stored in new)
        changes, conflicts = _compare(draft.before, after, touched)
        derive(draft.view, after, touched, [item.meaning for item in draft.items if isinstance(item.meaning, Schema)])
        spoken = [stored.observation for stored in new]
        _note_identity(draft.view, after, spoken)
        for item in draft.items:
            if isinstance(item.meaning, Schema):
                _note_type(draft.view, after, item.meaning.type)
        known = [observation for observation in draft.said if observation.digest in draft.known]
        hints = [*draft.hints, *_hints(after, spoken), *_withdrawn(after, known)]
        return Report(
            position=entries[-1].position,
            positions=tuple(entry.position for entry in entries),
            observations=tuple(observation.id for observation in draft.said),
            known=tuple(o.id for o in draft.said if o.digest in draft.known),
            entities=tuple(str(ref) for ref in dict.fromkeys(o.entity for o in draft.said)),
            changes=changes,
            conflicts=conflicts,
            hints=tuple(dict.fromkeys(hints)),
            id=draft.id,
        )

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
        positions: tuple[int, ...] = ()
        if len(writes) == 1:
            first = writes.pop()
            opening = draft.view.entry(first)
            assert opening is not None and opening.envelope.length is not None
            position = first + opening.envelope.length - 1
            positions = tuple(range(first, position + 1))
            touched = _touched(observation.entity for observation in draft.said)
            then = Reader(draft.view, AsOf(first - 1), self.policies)
            now = Reader(draft.view, AsOf(position), self.policies)
            changes, conflicts = _compare(then, now, touched)
            draft.hints += [*_hints(now, draft.said), *_withdrawn(draft.before, draft.said)]
        return Report(
            position=position,
            positions=positions,
            observations=tuple(observation.id for observation in draft.said),
            known=tuple(o.id for o in draft.said),
            entities=tuple(str(ref) for ref in dict.fromkeys(o.entity for o in draft.said)),
            changes=changes,
            conflicts=conflicts,
            hints=tuple(draft.hints),
            repeated=bool(draft.said),
            id=draft.id,
        )


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


def derive(write: Transaction, after: Reader, touched: Iterable[Ref], schemas: Iterable[Schema] = ()) -> None:
    """Bring merge state up to date with what was appended: touched entities, joined or parted groups, new schemas."""
    refs = dict.fromkeys(touched)
    for schema in schemas:
        refs.update(dict.fromkeys(write.entities(schema.type, after.asof.position)))
    done: set[Ref] = set()
    for ref in refs:
        root = after.group(ref)[0]
        if root in done:
            continue
        done.add(root)
        state, rules = after.state(ref), after.rules(ref.type)
        old = write.kept(root, after.asof.position, rules)
        grown = state.observations // KEPT_EVERY > (old.state.observations // KEPT_EVERY if old else 0)
        write.keep(Kept(after.asof.position, state), rules, lasting=grown)


def _compare(before: Reader, after: Reader, touched: Iterable[Ref]) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return what changed in the touched entities, and the conflicts that are new."""
    changes: list[Change] = []
    conflicts: list[str] = []
    for ref in touched:
        old, new = before.state(ref), after.state(ref)
        was, now = before.rules(ref.type), after.rules(ref.type)
        names: Iterable[str] = {*old.fields, *new.fields}
        if was.schema == now.schema and (old.deleted, old.exists) == (new.deleted, new.exists):
            # What a write leaves alone is the very same object, and cannot have changed.
            names = [name for name in names if old.fields.get(name) is not new.fields.get(name)]
        fields = field_changes(snapshot.fields_of(old, was, names), snapshot.fields_of(new, now, names))
        deleted = (old.exists and old.deleted, new.exists and new.deleted)
        if fields or deleted[0] != deleted[1]:
            changes.append(Change(str(ref), deleted, fields))
        arisen = snapshot.contested(new, now, names) - snapshot.contested(old, was, names)
        conflicts += [f"{ref}#{name}" for name in sorted(arisen)]
    return tuple(changes), tuple(conflicts)


def _identifying(after: Reader, observation: Observation) -> list[tuple[str, str]]:
    """Return the identifying values an observation states, as (rule, value); a relation has none."""
    if observation.op not in STATING or relation.endpoints(observation.entity) is not None:
        return []
    return identity.shared_values(after.rules(observation.entity.type).schema, observation.fields)


def _note_identity(write: Transaction, after: Reader, said: Sequence[Observation]) -> None:
    """Note the identifying values of what was said."""
    for observation in said:
        write.share(observation.entity, _identifying(after, observation))


def _note_type(write: Transaction, after: Reader, type: str) -> None:
    """Note the identifying values of a whole type anew, under the rules now in force."""
    write.unshare(type)
    for ref in write.entities(type, after.asof.position):
        _note_identity(write, after, [stored.observation for stored in after.stored((ref,))])


def _hints(after: Reader, said: Sequence[Observation]) -> list[str]:
    """Return what the writer may want to know: values shared with entities not joined, words about deleted ones."""
    hints: list[str] = []
    for observation in said:
        ref = observation.entity
        for rule, value in _identifying(after, observation):
            others = [other for other in after.view.sharing(ref.type, rule, value) if other != ref]
            apart = [other for other in others if other not in after.group(ref)] if others else []
            if apart:
                hints.append(f"{ref} and {apart[0]} share {rule} {value!r}; they stay apart unless you merge them.")
        if observation.op in STATING and after.state(ref).deleted:
            hints.append(f"{ref} is deleted and stays so; restore it to see what was said.")
    return hints


def _withdrawn(now: Reader, known: Sequence[Observation]) -> list[str]:
    """Return a hint for each known observation that was withdrawn since: saying it again changes nothing."""
    hints: list[str] = []
    for observation in known:
        stored = now.stored(now.group(observation.entity))
        if observation.digest not in merge.live_digests({s.observation.digest: s.observation for s in stored}):
            hints.append(
                f"{observation.id} was said before and has been withdrawn; "
                "state another observed_at to say it anew, or retract its retraction."
            )
    return hints


def _check_key(key: str) -> None:
    found = ids.text_faults(key, "idempotency_key", KEY_BYTES_MAX, "idempotency key")
    if found:
        raise Refused(found)


def _repeated(receipt: Receipt, request: bytes, key: str | None) -> Report:
    if receipt.request != request:
        problem = f"{key!r} was used before, for another request"
        remedy = "Send the first request again to see its report, or use a new key."
        raise Refused([Fault("idempotency_key", problem, remedy)])
    return reports.from_bytes(receipt.report).again()

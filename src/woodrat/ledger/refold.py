"""Refold: the one job after a new schema. It makes the kept states and identifying values of a type again, in steps.

Under a schema with other merge rules no state kept of its type counts any longer (`View.kept`): reads fold on demand.
Under one with other identity rules, identifying values (`identifying_values.py`) are wrong or missing. The write of the
schema only notes that the type waits. The indexer then takes short steps (`go_on`): they forget the values by rules
that went or changed, and then take one page of entities after the other, keeping their states and noting their values.

What comes out is what the write of the schema would have kept, and what a rebuild keeps, which finishes the job at once
(`finish`). For that, a write that touches an entity which still waits keeps its state first (`keep_before`), so that
states of an entity are kept in the order of the log.

No answer depends on how far the job is. A read of one entity folds it. A name is looked for by what was said of each
entity (`matches.py`). A write that matches records to known entities finishes their identifying values
(`finish_values`). A write that only reports shared values leaves out the types that wait, and says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.records import KEPT_EVERY, Kept
from woodrat.errors import Refused
from woodrat.ledger import identifying_values
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.identifying_values import SHARING
from woodrat.ledger.read import Reader
from woodrat.merge import fold
from woodrat.merge.packing import garbled
from woodrat.record_json import IN_PYTHON_ONLY, Record
from woodrat.records import dataclass, field, replace
from woodrat.state.asof import AsOf
from woodrat.state.entry_rows import SCHEMA

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.engine import Engine
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.merge import Policy
    from woodrat.merge.rules import Rules
    from woodrat.state.schema import Schema

NAME: Final = "refold"
"""The name of the note of progress."""
STEP_ENTITIES: Final = 250
"""Most entities of one step."""
STEP_OBSERVATIONS: Final = 5_000
"""A step ends after so many observations; it folds each entity whole."""
STEP_ROWS: Final = 2_000
"""How many rows of identifying values one step forgets."""
_AT_HAND: Final = (NAME,)
"""The key of a cached flag, beside the schemas by type: whether any type waits."""

Keeping = tuple[Kept, "Rules", bool]
"""A state to keep, its rules, and whether it is kept along the history."""


@dataclass(frozen=True, slots=True)
class Waiting(Record):
    """A type whose states or identifying values wait to be made again."""

    type: str
    """The type."""
    position: int
    """The end of the write that brought the last schema."""
    last: str
    """The last key that is done; empty before the first."""
    done: int
    """How many entities are done."""
    states: tuple[int, ...] = field(default=(), metadata=IN_PYTHON_ONLY)
    """The positions at which states are to be kept: the ends of the writes that brought other merge rules."""
    forget: tuple[str, ...] = field(default=(), metadata=IN_PYTHON_ONLY)
    """The identity rules whose values are to be forgotten; that comes first."""
    note: tuple[str, ...] = field(default=(), metadata=IN_PYTHON_ONLY)
    """The identity rules whose values are then to be noted."""

    @property
    def rules(self) -> frozenset[str]:
        """The identity rules whose values cannot be relied on."""
        return frozenset((*self.forget, *self.note))


def waiting(view: View) -> tuple[Waiting, ...]:
    """Return the types that wait, in the order in which they are taken."""
    noted = view.meta(NAME)
    if noted is None:
        return ()
    try:
        stated: Any = form.decode(noted)
        found = tuple(
            Waiting(type, position, last, done, tuple(states), tuple(forget), tuple(note))
            for type, position, last, done, states, forget, note in stated
        )
    except (Refused, TypeError, ValueError) as error:
        raise garbled("Which types are to be merged again") from error
    for one in found:
        texts, numbers = (one.type, one.last, *one.forget, *one.note), (one.position, one.done, *one.states)
        if any(type(text) is not str for text in texts) or any(type(number) is not int for number in numbers):
            raise garbled("Which types are to be merged again")
    return found


def _set_waiting(write: Transaction, types: Iterable[Waiting]) -> None:
    noted: list[Any] = [
        [one.type, one.position, one.last, one.done, list(one.states), list(one.forget), list(one.note)]
        for one in types
        if one.states or one.rules
    ]
    write.set_meta(NAME, form.serialise(noted) if noted else None)
    write.at_hand(SCHEMA).pop(_AT_HAND, None)


def note(write: Transaction, before: Reader, after: Reader, types: Iterable[str]) -> None:
    """Note which types wait since a write that brought schemas: those with entities, and other merge or identity rules.

    A type that waits already begins again with its first entity; what is done costs a look.
    """
    found = {one.type: one for one in waiting(write)}
    changed = False
    for type in sorted(set(types)):
        was, now = before.rules(type), after.rules(type)
        old, new = set(was.schema.identity), set(now.schema.identity)
        if (was.merging == now.merging and old == new) or not write.entities(type, before.asof.position, limit=1):
            continue
        changed = True
        position = after.asof.position
        one = found.pop(type, None) or Waiting(type, position, "", 0)
        states = one.states if was.merging == now.merging else (*one.states, position)
        forget, values = one.forget, one.note
        if old != new:
            rules = one.rules.union(rule.text for rule in old ^ new)
            forget, values = tuple(sorted(rules)), tuple(sorted(rules.intersection(rule.text for rule in new)))
        found[type] = Waiting(type, position, "", 0, states, forget, values)
    if changed:
        _set_waiting(write, found.values())


def merges_otherwise(before: Reader, schema: Schema) -> bool:
    """Return whether a type that has entities would be merged otherwise under a schema than it is."""
    has_entities = before.view.entities(schema.type, before.asof.position, limit=1)
    return bool(has_entities) and before.rules(schema.type).merging != schema.merging


def position(view: View) -> int:
    """Return the last position through which nothing waits."""
    return min((min((one.position, *one.states)) - 1 for one in waiting(view)), default=view.head().position)


def is_due(view: View) -> bool:
    """Return whether any type waits. Wrongly true costs time; it is never wrongly false."""
    at_hand = view.at_hand(SCHEMA)
    found: bool | None = at_hand.get(_AT_HAND)
    if found is None:
        found = at_hand[_AT_HAND] = bool(waiting(view))
    return found


def types_without_values(view: View) -> Collection[str]:
    """Return the types some of whose identifying values are not noted yet."""
    return {one.type for one in waiting(view) if one.note} if is_due(view) else ()


# States


def states_anew(after: Reader, refs: Iterable[Ref]) -> dict[Ref, Keeping]:
    """Return the states to keep of entities at the position of a new schema of theirs, by the smallest of each fold."""
    found: dict[Ref, Keeping] = {}
    for ref in refs:
        root = after.group(ref)[0]
        if root not in found:
            found[root] = _state_anew(after, root)
    return found


def _state_anew(reader: Reader, root: Ref) -> Keeping:
    state = reader.state(root)
    return Kept(reader.asof.position, state), reader.rules(root.type), state.observations >= KEPT_EVERY


def keep_before(write: Transaction, policies: Mapping[str, Policy], refs: Iterable[Ref]) -> None:
    """Keep the states of entities that still wait, before a write touches them."""
    for found in _Lacking(write, policies, waiting(write)).of(refs):
        for reader in found.readers:  # one after the other: each goes by what is kept before it
            write.keep([_state_anew(reader, found.root)])


class _Fold(NamedTuple):
    """A fold whose state waits."""

    root: Ref
    readers: Sequence[Reader]
    """At the positions that it waits for, in order."""


class _Lacking:
    """Finds the states that wait, of types of which it is known since when."""

    def __init__(self, view: View, policies: Mapping[str, Policy], known: Sequence[Waiting]) -> None:
        self._view = view
        self._head = view.head().position
        self._readers = {one.type: [Reader(view, AsOf(at), policies) for at in one.states] for one in known}

    def of(self, refs: Iterable[Ref]) -> Iterator[_Fold]:
        """Yield the folds of some entities that wait."""
        roots: set[Ref] = set()
        for ref in refs:
            for reader in self._readers.get(ref.type, ()):
                root = reader.group(ref)[0]
                if root not in roots:
                    roots.add(root)
                    found = self._readers_of(root)
                    if found:
                        yield _Fold(root, found)

    def _readers_of(self, root: Ref) -> list[Reader]:
        """Return readers at the positions at which the state of a fold is to be kept still, in order."""
        view, through = self._view, self._head
        found: list[Reader] = []
        for reader in reversed(self._readers[root.type]):
            position = reader.asof.position
            kept = view.kept(root, through, reader.rules(root.type))
            if kept is not None and kept.position >= position:
                break  # it was touched since, and so nothing of it waits
            through = position - 1
            members = reader.group(root)
            if members[0] == root and any(view.version(one.digest, position) is not None for one in members):
                found.append(reader)
        return found[::-1]


# A page of entities


class _Page:
    """The next entities of a type that waits, with what is to be kept of them: worked out in a view, written later."""

    def __init__(self, view: View, policies: Mapping[str, Policy], one: Waiting) -> None:
        self._policies, self._waiting = policies, one
        self._states: dict[tuple[Ref, int], Keeping] = {}
        self._refs: list[Ref] = []
        self.values: list[tuple[Ref, identifying_values.Values]] = []
        """The identifying values to note."""
        reader = Reader(view, AsOf(view.head().position), policies)
        lacking = _Lacking(view, policies, [one])
        after = Ref(one.type, one.last) if one.last else None
        found = view.entities(one.type, reader.asof.position, after=after, limit=STEP_ENTITIES)
        observations = 0
        for ref in found:
            cancellation.check()
            self._refs.append(ref)
            if one.note:
                stored = reader.stored((ref,))
                observations += len(stored)
                values = identifying_values.values_of(ref, reader.rules(ref.type).schema, stored)
                self.values.append((ref, [pair for pair in values if pair[0] in one.note]))
            for waits in lacking.of([ref]):
                for at in waits.readers:
                    keeping = _state_anew(at, waits.root)
                    observations += keeping[0].state.observations
                    if not fold.is_spread(keeping[0].state):  # parts of large collections are read through the view
                        self._states[waits.root, at.asof.position] = keeping
            if observations >= STEP_OBSERVATIONS:
                break
        self.is_last = len(found) < STEP_ENTITIES and len(self._refs) == len(found)
        """Whether no entities follow."""

    def put_down(self, write: Transaction) -> None:
        """Keep the states and note the values."""
        for found in _Lacking(write, self._policies, [self._waiting]).of(self._refs):
            # Whatever was touched since waits no longer; the state of what still waits is the one that was folded.
            for reader in found.readers:
                folded = self._states.get((found.root, reader.asof.position))
                write.keep([_state_anew(reader, found.root) if folded is None else folded])
        identifying_values.note(write, self.values)

    def advanced(self) -> Waiting:
        """Return how far the type is after this page, unless it is the last."""
        return replace(self._waiting, last=self._refs[-1].key, done=self._waiting.done + len(self._refs))


def _pages(write: Transaction, policies: Mapping[str, Policy], one: Waiting) -> Iterator[_Page]:
    """Yield the rest of the pages of a type, within a write."""
    while True:
        page = _Page(write, policies, one)
        yield page
        if page.is_last:
            return
        one = page.advanced()


# Steps


def go_on(
    engine: Engine, tenant: TenantId, policies: Mapping[str, Policy], types: Collection[str] | None = None
) -> bool:
    """Take one step: it is worked out in a view and written in a short transaction. Return whether any type waited.

    With `types` only these are taken on.
    """
    with engine.view(tenant) as view:
        before = waiting(view)
        one = next((one for one in before if types is None or one.type in types), None)
        if one is None:
            return False
        head = view.head().position
        page = None if one.forget else _Page(view, policies, one)
    with engine.transaction(tenant) as write:
        if waiting(write) != before or erased_since(write, head):
            return True  # somebody else went on, another schema came, or what was read is erased by now
        if page is None:
            left = [replace(one, forget=one.forget[1:])] if _forget_some(write, one.type, one.forget[0]) else [one]
        else:
            page.put_down(write)
            left = [] if page.is_last else [page.advanced()]
        _set_waiting(write, [*left, *(other for other in before if other is not one)])
    return True


def _forget_some(write: Transaction, type: str, rule: str) -> bool:
    """Forget some identifying values by a rule; return whether none are left."""
    found = write.scan(SHARING, identifying_values.prefix_of_rule(type, rule), limit=STEP_ROWS)
    write.end(0, [(SHARING, key) for key, _ in found])  # they are true from there on, and so were never true
    return len(found) < STEP_ROWS


def step(context: Context, entries_max: int) -> bool:
    """Take a step as the indexer asks for it."""
    return go_on(context.engine, context.tenant, context.policies)


# Within a write


def finish(write: Transaction, policies: Mapping[str, Policy]) -> None:
    """Finish the whole job, as a rebuild does."""
    for one in waiting(write):
        for page in _pages(write, policies, _forget(write, one)):
            page.put_down(write)
    _set_waiting(write, ())


def finish_values(write: Transaction, policies: Mapping[str, Policy], types: Collection[str]) -> None:
    """Note all identifying values of some types, for a write that depends on them; states go on waiting."""
    if not is_due(write):
        return
    left: list[Waiting] = []
    before = waiting(write)
    for one in before:
        if one.note and one.type in types:
            one = _forget(write, one)
            for page in _pages(write, policies, replace(one, states=())):
                identifying_values.note(write, page.values)
            one = replace(one, note=())
        left.append(one)
    if left != list(before):
        _set_waiting(write, left)


def finish_forgetting(write: Transaction) -> None:
    """Forget at once all values that are to be forgotten: an erasure finds only values by the rules in force."""
    if any(one.forget for one in waiting(write)):
        _set_waiting(write, [_forget(write, one) for one in waiting(write)])


def _forget(write: Transaction, one: Waiting) -> Waiting:
    """Forget all values of a type that are to be forgotten."""
    for rule in one.forget:
        identifying_values.forget_rule(write, one.type, rule)
    return replace(one, forget=())

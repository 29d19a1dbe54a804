"""Refolding: states of a type whose schema merges otherwise now, kept anew some at a time.

A new schema that merges otherwise makes every state kept of its type one of the past: it counts no longer
(`View.kept`), and reads fold on demand. The write of the schema only notes that the type waits. The indexer then keeps
the states anew in short steps (`go_on`).

What is kept is what the write of the schema would have kept: the state of every fold as of the end of that write. A
rebuild does not put it off (`refold_type`), and comes to the same rows. For that, a write that touches an entity which
still waits keeps its state anew first (`anew`), so that states of an entity are kept in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.records import KEPT_EVERY, Kept
from woodrat.errors import Refused
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.read import Reader
from woodrat.merge import fold
from woodrat.merge.packing import garbled
from woodrat.record_json import Record
from woodrat.records import dataclass
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
"""Under it is noted which types wait."""
STEP_ENTITIES: Final = 250
"""How many entities one step takes in at most."""
STEP_OBSERVATIONS: Final = 5_000
"""After so many observations a step ends; it folds each entity whole."""
_AT_HAND: Final = (NAME,)
"""Under what it is kept at hand, beside the schemas by type, whether any type waits."""

Keeping = tuple[Kept, "Rules", bool]
"""A state to keep, its rules, and whether it is kept along the history."""


@dataclass(frozen=True, slots=True)
class Waiting(Record):
    """A type with states that wait to be kept anew."""

    type: str
    """The type."""
    position: int
    """The end of the write that brought the schema: states are kept as of here."""
    last: str
    """The last key that is done; empty before the first."""
    done: int
    """How many entities are done."""


def waiting(view: View) -> tuple[Waiting, ...]:
    """Return the types that wait, by the position of their schemas."""
    noted = view.meta(NAME)
    if noted is None:
        return ()
    try:
        stated: Any = form.decode(noted)
        found = tuple(Waiting(type, position, last, done) for type, position, last, done in stated)
    except (Refused, TypeError, ValueError) as error:
        raise garbled("Which types are to be merged again") from error
    for one in found:
        if [type(part) for part in (one.type, one.position, one.last, one.done)] != [str, int, str, int]:
            raise garbled("Which types are to be merged again")
    return found


def _note(write: Transaction, types: Sequence[Waiting]) -> None:
    noted = [[one.type, one.position, one.last, one.done] for one in types]
    write.set_meta(NAME, form.serialise(noted) if noted else None)
    write.at_hand(SCHEMA).pop(_AT_HAND, None)


def note(write: Transaction, before: Reader, after: Reader, types: Iterable[str]) -> None:
    """Note that types wait whose schemas came with a write, where they merge otherwise since and have entities."""
    known, position = before.asof.position, after.asof.position
    found = [
        Waiting(type, position, "", 0)
        for type in sorted(set(types))
        if before.rules(type).merging != after.rules(type).merging and write.entities(type, known, limit=1)
    ]
    if found:
        _note(write, [*waiting(write), *found])


def merges_otherwise(before: Reader, schema: Schema) -> bool:
    """Return whether a type that has entities would be merged otherwise under a schema than it is."""
    has_entities = before.view.entities(schema.type, before.asof.position, limit=1)
    return bool(has_entities) and before.rules(schema.type).merging != schema.merging


def position(view: View) -> int:
    """Return the last position through which no state waits."""
    return min((one.position - 1 for one in waiting(view)), default=view.head().position)


# What is kept anew


def refold_type(write: Transaction, after: Reader, type: str, done: Iterable[Ref]) -> None:
    """Keep all states of a type anew at once, at the position of a reader; those of the folds that are `done` aside."""
    roots, last = set(done), None
    while refs := write.entities(type, after.asof.position, after=last, limit=STEP_ENTITIES):
        # A reader remembers whatever it folds.
        reader = Reader(write, after.asof, after.policies)
        states = states_anew(reader, refs)
        write.keep([state for root, state in states.items() if root not in roots])
        # The others of a group may be on another page.
        roots.update(root for root, (kept, _, _) in states.items() if len(kept.state.members) > 1)
        last = refs[-1]
        if len(refs) < STEP_ENTITIES:
            return


def states_anew(after: Reader, refs: Iterable[Ref]) -> dict[Ref, Keeping]:
    """Return the states to keep of entities at the position of a new schema of theirs, by the smallest of each fold."""
    found: dict[Ref, Keeping] = {}
    for ref in refs:
        root = after.group(ref)[0]
        if root not in found:
            found[root] = _anew(after, root)
    return found


def _anew(reader: Reader, root: Ref) -> Keeping:
    state = reader.state(root)
    return Kept(reader.asof.position, state), reader.rules(root.type), state.observations >= KEPT_EVERY


def is_due(write: Transaction) -> bool:
    """Return whether any type waits. Wrongly true costs time; it is never wrongly false."""
    at_hand = write.at_hand(SCHEMA)
    found: bool | None = at_hand.get(_AT_HAND)
    if found is None:
        found = at_hand[_AT_HAND] = bool(waiting(write))
    return found


def anew(write: Transaction, policies: Mapping[str, Policy], refs: Iterable[Ref]) -> None:
    """Keep the states of entities anew that still wait, before a write touches them."""
    for found in _Lacking(write, policies, waiting(write)).of(refs):
        for reader in found.readers:  # one after the other: each goes by what is kept before it
            write.keep([_anew(reader, found.root)])


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
        self._readers: dict[str, list[Reader]] = {}
        for one in known:
            self._readers.setdefault(one.type, []).append(Reader(view, AsOf(one.position), policies))

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


# A step


def go_on(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> bool:
    """Keep the next states anew: fold in a view, and write in a short transaction. Return whether anything waited."""
    with engine.view(tenant) as view:
        before = waiting(view)
        if not before:
            return False
        first, head = before[0], view.head().position
        after = Ref(first.type, first.last) if first.last else None
        page = view.entities(first.type, first.position, after=after, limit=STEP_ENTITIES)
        states: dict[tuple[Ref, int], Keeping] = {}
        refs: list[Ref] = []
        observations = 0
        lacking = _Lacking(view, policies, before)
        for ref in page:
            cancellation.check()
            refs.append(ref)
            for found in lacking.of([ref]):
                for reader in found.readers:
                    keeping = _anew(reader, found.root)
                    observations += keeping[0].state.observations
                    if not fold.is_spread(keeping[0].state):  # parts of large collections are read through the view
                        states[found.root, reader.asof.position] = keeping
            if observations >= STEP_OBSERVATIONS:
                break
        is_last = len(page) < STEP_ENTITIES and len(refs) == len(page)
    with engine.transaction(tenant) as write:
        if waiting(write) != before or erased_since(write, head):
            return True  # somebody else went on, another schema came, or what was folded is erased by now
        for found in _Lacking(write, policies, before).of(refs):
            # Whatever was touched since waits no longer; the state of what still waits is the one that was folded.
            for reader in found.readers:
                folded = states.get((found.root, reader.asof.position))
                write.keep([_anew(reader, found.root) if folded is None else folded])
        rest = before[1:]
        if not is_last:
            rest = (Waiting(first.type, first.position, refs[-1].key, first.done + len(refs)), *rest)
        _note(write, rest)
    return True


def step(context: Context, entries_max: int) -> bool:
    """Take a step as the indexer asks for it."""
    return go_on(context.engine, context.tenant, context.policies)

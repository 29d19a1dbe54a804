"""State: the tables of merge state kept along histories, and of the parts of large collections, one by one.

A row of `element` is a part of a collection as it was after a position: under the smallest entity of a fold, by field
and key. It is there as of every later position until another row of the same key takes its place; a row without a part
says that it is gone. So a read of the past needs no copy of a collection, and kept merge state holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import Any

from woodrat.canon.ids import Ref
from woodrat.engines.cache import UNASKED, Known, Memory
from woodrat.engines.entity import LARGE_BYTES
from woodrat.engines.observation import Observations, ObservationWrites
from woodrat.engines.records import Current, Kept, LastKept, Standing, StoredPart, StoredState
from woodrat.engines.tables import ALL
from woodrat.merge import fold, packed_state
from woodrat.merge.elements import CollectionState, Parts
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import UNREADABLE, garbled
from woodrat.merge.rules import Rules
from woodrat.state import observation
from woodrat.state.asof import AsOf, Stored

_MAKE = tuple.__new__


class States(Observations):
    """Reading of merge state."""

    def kept(self, root: Ref, through: int, rules: Rules) -> Kept | None:
        """Return the latest merge state kept under a fold's smallest entity, not after `through`.

        One folded under rules that merge otherwise does not count. The parts of its large collections are
        read when they are asked for, as long as the view is open.
        """
        known = self.known_entity(root.digest)
        if known is None or known.at is None:
            return None
        if known.at <= through:
            if known.state is None:
                assert known.packed is not None, "state that is true for a position is there"
                known.state = self._unpacked(known.packed, root, rules, known.number, known.at)
            state = known.state
            return Kept(known.at, state) if state is not None and state.merging == rules.merging else None
        row = self.first_row("kept", entity=known.number, through=through)
        if row is None:
            return None
        position, packed, anchor = row
        if type(position) is not int or type(anchor) not in (int, NoneType):
            raise garbled(f"{root}: the state kept of it")
        if anchor is not None:
            self._anchor_at = (known.number, through, anchor)
        past = self._unpacked(packed, root, rules, known.number, position)
        return None if past is None else Kept(position, past)

    def standings(self, refs: Sequence[Ref], through: int, rules: Mapping[str, Rules]) -> Sequence[Standing | None]:
        """Return what is held of each of these entities, in order: its version and what `kept` returns, in one look.

        `rules` are those of each type. `None` stands for an entity of which nothing was said.
        """
        found: list[Standing | None] = []
        for ref, known in zip(refs, self.known_entities(refs), strict=True):
            if known is None:  # it is missing
                found.append(None)
                continue
            at, last, state = known.at, known.last, known.state
            if state is None and at is not None and last <= at <= through:
                self.current(ref, through, rules[ref.type])  # unpacks it
                state = known.state
            if at is not None and state is not None and 0 <= last <= through and at <= through:
                # As below, of an entity that is at hand as it is now.
                kept = _MAKE(Kept, (at, state)) if state.merging == rules[ref.type].merging else None
                found.append(_MAKE(Standing, (last, kept)))
            else:
                version = self.version(known.digest, through)
                found.append(None if version is None else Standing(version, self.kept(ref, through, rules[ref.type])))
        return found

    def current(self, ref: Ref, through: int, rules: Rules) -> Current | None:
        """Return the merge state kept of an entity, if it was folded alone and nothing was said of it since.

        `None` says nothing; `kept` and `observations` always do.
        """
        digest, entities = ref.digest, self.memory.entities
        known = entities.get(digest)
        if known is None:
            known = self.known_entity(digest)
        else:
            entities.move_to_end(digest)  # as `known_entity` does
        if known is None or known.at is None or not 0 <= known.last <= known.at <= through:
            return None
        state = known.state
        if state is None:
            assert known.packed is not None, "state that is true for a position is there"
            state = known.state = self._unpacked(known.packed, ref, rules, known.number, known.at)
        if state is None or state.merging != rules.merging or len(state.members) > 1:
            return None
        return _MAKE(Current, (state, known.last))

    def kept_by(self, root: Ref, effective: str, through: int, rules: Rules) -> tuple[Kept, Sequence[Stored]] | None:
        """Return the latest merge state kept of a lone entity, not after `through`, all of which was true by a time.

        With it come the observations after it that were true by then too, and retractions, by position. One folded
        under rules that merge otherwise does not count; `None` asks for a whole fold.
        """
        known = self.known_entity(root.digest)
        if known is None:
            return None
        if known.until <= effective:
            kept = self.kept(root, through, rules)
        else:
            row = self.first_row("kept_by", entity=known.number, effective=effective, through=through)
            state = None if row is None else self._unpacked(row[1], root, rules, known.number, row[0])
            kept = None if row is None or state is None or len(state.members) > 1 else Kept(row[0], state)
        return None if kept is None else (kept, self._true_by(known, effective, kept.position, through))

    def _true_by(self, known: Known, effective: str, after: int, through: int) -> Sequence[Stored]:
        """Return the observations of an entity after a state was kept that were true by a time, and retractions."""
        if known.last <= after:
            return []
        # Up to the next state kept every observation is looked at; what was said later and is true by then is late.
        row = self.first_row("next_kept", entity=known.number, after=after)
        last, end = (known.last, through) if row is None or row[0] >= through else (row[1], row[0])
        asof = AsOf(through, effective)
        links = list(self.select("chain", start=self.base + last, base=self.base, after=after, through=through))
        by = effective.encode()
        # A body that is gone is read like the others, so that it is missed.
        found = [
            self._stored(link) for link in reversed(links) if link[1] is None or observation.counts_by(link[1], by)
        ]
        if end < through:
            rows = self.select("late", entity=known.number, effective=effective, **self.bounds(end, through))
            found += [self._stored(link) for link in list(rows)]
        return [stored for stored in found if asof.selects(stored)]

    def _unpacked(self, packed: bytes, root: Ref, rules: Rules, entity: int, position: int) -> MergeState | None:
        """Return kept state of an entity, true after a position; `Corrupt` where it cannot be read."""
        try:
            return packed_state.unpack(packed, root, rules, self._rows(entity, position))
        except UNREADABLE as error:
            raise garbled(f"{root}: the state kept of it") from error

    def _rows(self, entity: int, position: int) -> Callable[[str], _Rows]:
        """Return what finds the parts of collections of an entity as they were after a position."""
        return partial(_Rows, self.memory, entity, position)

    def states_of(self, ref: Ref) -> tuple[Sequence[StoredState], Sequence[StoredPart]]:
        """Return the merge states and the parts of collections stored under an entity, unread, both by position."""
        states: list[StoredState] = []
        parts: list[StoredPart] = []
        for number, *present in list(self.comparing("state_of", tenant=self.tenant_number, type=ref.type, key=ref.key)):
            states += (StoredState(*row) for row in self.comparing("kept_of", entity=number))
            parts += (StoredPart(*row) for row in self.comparing("elements_of", entity=number))
            states.append(StoredState(*present))
        return states, parts


class StateWrites(ObservationWrites, States):
    """Writing of merge state."""

    def keep(self, folds: Iterable[tuple[Kept, Rules, bool]]) -> None:
        """Keep merge state of folds as the current ones, each with its rules; those marked also along the history.

        The parts of large collections are kept one by one: a row for each that is new or changed, true from the
        position of the state on. What follows from a state that was kept costs what changed since.
        """
        lasting, folds = [], list(folds)
        if self._may_be_unmet and len(folds) > 1:
            self.known_entities([state.members[0] for (_, state), _, _ in folds])  # in one look
        met, changed, pack = self._met, self._changed, packed_state.pack
        for (position, state), rules, marked in folds:
            root = state.members[0]
            known = met.get(root) or self._meet(root)
            before = known.state
            if before is None and known.packed is None:  # nothing was kept of it
                parted = bool(state.held) and fold.is_spread(state)
            elif before is None or before.merging != state.merging:
                parted = bool(state.held) or (known.packed is not None if before is None else bool(before.held))
            else:
                held = state.held
                parted = bool(held or before.held) and (
                    fold.is_spread(state) or (before.held is not held and fold.is_spread(before))
                )
            if parted:
                state = self._keep_elements(known, position, state)
            if known.state is not state or known.packed is None:  # what is kept along the history may also be the last
                known.packed = pack(state, rules, apart=True)
                if len(known.packed) > LARGE_BYTES:
                    self.memory.large.add(known.digest)
            known.at, known.state = position, state
            changed[known.number] = known
            if marked:
                last = known.last if known.last <= position else self._last_said(known, position)
                lasting.append((known.number, position, last, state.until, known.packed))
                known.along = LastKept(state.observations, state.body_bytes, len(known.packed))
        if lasting:
            self.many("add_kept", lasting)

    def last_kept(self, roots: Sequence[Ref]) -> Sequence[LastKept | None]:
        """Return the amounts of the last merge states kept along histories, each under a fold's smallest entity."""
        found = self.known_entities(roots)
        unasked = {known.number: known for known in found if known is not None and known.along is UNASKED}
        if unasked:
            for known in unasked.values():
                known.along = None
            for number, beginning, size in self.select("last_kept", entities=self.many_of(list(unasked))):
                known = unasked[number]
                try:
                    amounts = packed_state.amounts(beginning)
                except UNREADABLE as error:
                    raise garbled(f"{known.ref}: the state kept of it") from error
                known.along = None if amounts is None else LastKept(*amounts, size)
        return [None if known is None else known.along for known in found]

    def _last_said(self, known: Known, position: int) -> int:
        """Return the position of the last observation of an entity not after another, which this write passed by."""
        digest = known.digest
        found = (stored.position for stored in self.said_here(digest) if stored.position <= position)
        return max(found, default=self._before[digest])

    def _keep_elements(self, known: Known, position: int, state: MergeState) -> MergeState:
        """Keep the parts of large collections one by one; return the state with its parts there."""
        number = known.number
        if known.state is not None:
            before: Iterable[str] = fold.spread(known.state)
        elif known.packed is not None:  # folded under rules that merge otherwise
            before = [row[0] for row in self.select("element_fields", entity=number)]
        else:
            before = ()
        if not before and not fold.spread(state):
            return state
        now = self._rows(number, position)
        rows = list(due(state, position, before, lambda name: now(name).all()))
        if rows:
            self.many("add_element", [(number, name, key, at, part) for at, name, key, part in rows])

        def lying(name: str, held: CollectionState[Any]) -> Parts[Any]:
            return Parts.kept(len(held.parts), now(name), held.unpack_part)

        return fold.with_parts(state, lying)


class _Rows:
    """The parts of one collection as they were after a position.

    They are read through whatever view uses the memory at that time: what is known of entities outlasts a view. No row
    as of a position changes while that counts.
    """

    __slots__ = ("_entity", "_field", "_memory", "_position")

    def __init__(self, memory: Memory, entity: int, position: int, field: str) -> None:
        self._memory, self._entity, self._position, self._field = memory, entity, position, field

    def get(self, key: bytes, /) -> bytes | None:
        """Return a part as it was packed."""
        found: bytes | None = self._memory.tables.value(
            "element", entity=self._entity, field=self._field, key=key, through=self._position
        )
        return found

    def all(self, after: bytes = b"", limit: int | None = None) -> list[tuple[bytes, bytes]]:
        """Return keys with their parts, by key."""
        rows = self._memory.tables.select(
            "elements",
            entity=self._entity,
            field=self._field,
            after=after,
            through=self._position,
            limit=ALL if limit is None else limit,
        )
        return [(key, part) for key, part in rows]


def due(
    state: MergeState,
    position: int,
    before: Iterable[str],
    there: Callable[[str], Iterable[tuple[bytes, bytes]]],
) -> Iterator[StoredPart]:
    """Yield the rows to write so that those as of `position` are the spread collections of a state.

    `before` are the fields that have rows, and `there` gives the rows of a field as they are. Parts that follow
    what was kept cost what changed of them; those folded anew are compared with the rows there are.
    """
    spread = fold.spread(state)
    for name, held in spread.items():
        pack = held.pack_part
        if held.parts.follows:
            for key, part in held.parts.new.items():
                yield StoredPart(position, name, key, pack(part))
            continue
        rows = dict(there(name))
        for key, part in held.parts.items():
            packed = pack(part)
            if rows.pop(key, None) != packed:
                yield StoredPart(position, name, key, packed)
        for key in rows:
            yield StoredPart(position, name, key, None)
    for name in before:
        if name not in spread:
            for key, _ in there(name):
                yield StoredPart(position, name, key, None)

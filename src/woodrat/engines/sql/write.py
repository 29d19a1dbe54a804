"""Write: one write of one tenant; it reads what it has written itself.

Rows of the log and of indexes are handed to the engine at once. What changes in the table of entities is written at the
end, or before it is asked for in SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from woodrat.canon import moment
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import BEFORE_ALL, KEPT_EVERY, Head, IndexRow, Kept, LastKept, Receipt, next_prefix
from woodrat.engines.sql import codec, elements
from woodrat.engines.sql.cache import UNASKED, Known
from woodrat.engines.sql.nodes import NODE_STEP, Nodes, damaged
from woodrat.engines.sql.view import LARGE_BYTES, NOWHERE, SqlView
from woodrat.log.entry import Write
from woodrat.log.tree import Frontier
from woodrat.merge import fold, packed_state
from woodrat.merge.elements import Gathered, Parts
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import UNREADABLE, garbled
from woodrat.merge.rules import Rules
from woodrat.state.asof import Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from woodrat.log.check import Row

END_MAX = 16
"""How many entries at the end of a log are looked at before the first write to it."""


class SqlTransaction(SqlView):
    """One write. What changes in the table of entities is written at the end, or before it is asked for in SQL."""

    def begin_write(self, sound: set[TenantId]) -> None:
        """Begin without anything written; an engine calls it once the tables are there."""
        self._sound = sound
        self._new: list[Known] = []
        self._changed: dict[int, Known] = {}
        # Entities that this write has met, so that the digest of each is asked for once.
        self._met: dict[Ref, Known] = {}
        self._last_entity: int | None = None
        # What this write says, in parts: the first position, and what it means from there on.
        self._lately: list[tuple[int, Sequence[Meaning]]] = []
        # By entity that it speaks of the position of the observation before, and once it is asked for what it says.
        self._before: dict[bytes, int] = {}
        self._recent: dict[bytes, list[Stored]] | None = None
        # The tree as far as the log was derived from again, once everything was dropped.
        self._derived: Frontier | None = None
        self._dropped = False
        # Whether there may be entities that are not at hand.
        self._forgotten = True
        # For an undo: what was known before, and whether all entities this write met are still among those it has met.
        memory = self.memory
        self._known_before = memory.head, memory.number, memory.cloned, memory.joins
        self._let_go_of_met = False

    def take_back(self) -> None:
        """Forget what this write has changed of what is known of the tenant: it was undone, and its neighbours stay."""
        memory = self.memory
        memory.head, memory.number, memory.cloned, memory.joins = self._known_before
        memory.at_hand.clear()
        memory.latest.clear()
        memory.logs.clear()
        if self._let_go_of_met:
            memory.entities.clear()
        for known in self._met.values():
            memory.entities.pop(known.digest, None)

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each of these rows."""
        raise NotImplementedError

    def run(self, query: str, **values: Any) -> None:
        """Run a statement that gives nothing back."""
        raise NotImplementedError

    def enrol(self) -> None:
        """Give the tenant what the tables call it by, before its first entry."""
        raise NotImplementedError

    def drop_tables(self) -> None:
        """Take away all rows that are derived from the tenant's log."""
        raise NotImplementedError

    def select(self, query: str, **values: Any) -> Any:
        if (self._new or self._changed) and _reads_entities(self.queries[query]):
            self.flush()
        return super().select(query, **values)

    @property
    def has_noted(self) -> bool:
        """Whether anything was changed that is not written yet."""
        return bool(self._new or self._changed)

    def trim(self) -> None:
        """Keep what is known within its bound."""
        if self.memory.large or self.memory.is_full:
            self.memory.trim()

    def release(self) -> None:
        """Let go of entities that were looked at long ago, once they are twice as many as may stay.

        A walk over all of them within a write keeps so many. What was changed is written before; nobody holds on to an
        entity while others are looked up.
        """
        if self.memory.is_overfull:
            self._let_entities_go()

    def _let_entities_go(self) -> None:
        """Write what changed of entities, and keep those at hand that were used last."""
        self.flush()
        self.memory.trim()
        self._met.clear()
        self._let_go_of_met = self._forgotten = True

    def _check_end(self) -> None:
        """Refuse to build on a log whose end is not what was written: its last write, and the last complete subtrees.

        However long the log or its last write, this costs about the same.
        """
        size = self.head().size
        last = self.entry(size - 1)
        if last is None:
            return
        begun = last.envelope.write
        first = self.entry(begun)
        if first is None or first.envelope.length != size - begun:
            raise damaged(begun, "write")
        start = max(begun, size - END_MAX)
        for position, (entry, leaf) in enumerate(
            zip(self.entries(start - 1), self.leaves_between(start, size), strict=True), start
        ):
            if entry.position != position or entry.leaf() != leaf:
                raise damaged(position, "leaf")
        Nodes(self).check_last(size)

    def first_row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        if (self._new or self._changed) and _reads_entities(self.queries[query]):
            self.flush()
        return super().first_row(query, **values)

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        self.flush()
        return super().comparing(query, **values)

    def flush(self) -> None:
        """Write what changed in the table of entities."""
        if not self._changed and not self._new:
            return
        # Emptied before and in place: a loop that fills them may be the one that asks.
        new, changed = tuple(self._new), self._changed.copy()
        self._new.clear()
        self._changed.clear()
        if new:
            tenant = self.tenant_number
            added = []
            for e in new:
                type, key = e.ref
                head = codec.head(e.digest)
                added.append((e.number, tenant, type, key, head, e.first, e.last, e.until, e.at, e.packed))
                changed.pop(e.number, None)
            self.many("add_entity", added)
        if changed:
            rows = [(e.first, e.last, e.until, e.at, e.packed, e.number) for e in changed.values()]
            self.many("set_entity", rows)

    def known_entity(self, digest: bytes) -> Known | None:
        return super().known_entity(digest) if self._forgotten else self.memory.entities.get(digest)

    def known_entities(self, refs: Sequence[Ref]) -> Sequence[Known | None]:
        met = self._met
        found = list(map(met.get, refs))
        if None not in found:
            return found
        if self.memory.is_overfull:
            self._let_entities_go()
        unmet = [ref for ref in refs if ref not in met]
        for ref, known in zip(unmet, super().known_entities(unmet), strict=True):
            if known is not None:
                met[ref] = known
        return list(map(met.get, refs))

    def find_entities(self, digests: Sequence[bytes]) -> None:
        if self._forgotten:
            super().find_entities(digests)

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        before = self._before.get(entity)
        if before is not None and after >= before:
            return [stored for stored in self._said_lately(entity) if after < stored.position <= through]
        return super().observations(entity, after, through)

    def _let_go(self) -> None:
        """Forget what this write said: it is in the tables."""
        self._lately.clear()
        self._before.clear()
        self._recent = None

    def _said_lately(self, entity: bytes) -> Sequence[Stored]:
        """Return what this write says of an entity."""
        found = self._recent
        if found is None:
            found = self._recent = {}
            for first, meanings in self._lately:
                for position, meaning in enumerate(meanings, first):
                    if isinstance(meaning, Observation):
                        found.setdefault(meaning.entity.digest, []).append(Stored(position, meaning))
        return found.get(entity, ())

    def append(self, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
        head = self.head()
        if self.name not in self._sound:
            self._check_end()
            self._sound.add(self.name)
        size, recorded_at = head.size, head.recorded_at
        for write in writes:
            assert write.first == size, "entries are appended without a gap"
            assert recorded_at is None or write.recorded_at > recorded_at, "the log's clock never goes back"
            size, recorded_at = size + len(write.kinds), write.recorded_at
        assert size - head.size == len(meanings), "every entry has its meaning"
        if self.number is None:
            self.enrol()
        if len(writes) == 1:
            (write,) = writes
            headers: Iterable[tuple[Any, ...]] = self._headers(write)
            leaves, kinds, bodies, nonces = write.leaves, write.kinds, write.bodies, write.nonces
        else:
            headers = chain.from_iterable(map(self._headers, writes))
            leaves = [leaf for write in writes for leaf in write.leaves]
            kinds = [kind for write in writes for kind in write.kinds]
            bodies = [body for write in writes for body in write.bodies]
            nonces = [nonce for write in writes for nonce in write.nonces]
        ids = range(self.base + head.size, self.base + size)
        self.many("add_entry", headers)
        self.many("add_body", zip(ids, nonces, bodies, strict=True))
        for write in writes:
            if write.origins is not None:
                came = [(at, origin) for at, origin in enumerate(write.origins, write.first) if origin is not None]
                rows = [(self.base + at, self._log(origin.log), origin.position) for at, origin in came]
                self.many("add_origin", rows)
        frontier = self._grow(head.frontier, leaves)
        self.memory.head = Head(writes[-1].log, size, recorded_at, frontier)
        latest = self.memory.latest
        for kind in [kind for kind in latest if kind in kinds] if latest else ():
            del latest[kind]
        self._index(head.size, meanings)

    def _headers(self, write: Write) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a write that its leaves were made of."""
        count, start = len(write.kinds), self.base + write.first
        if count == 1:
            log, recorded_at, kind = self._log(write.log), moment.to_micros(write.recorded_at), write.kinds[0]
            parts = (codec.NUMBERS[kind], write.first, 1, write.request, write.commitments[0], write.leaves[0])
            return ((start, log, recorded_at, *parts),)
        return zip(
            range(start, start + count),
            repeat(self._log(write.log)),
            repeat(moment.to_micros(write.recorded_at)),
            map(codec.NUMBERS.__getitem__, write.kinds),
            repeat(write.first),
            chain((count,), repeat(None, count - 1)),
            chain((write.request,), repeat(None, count - 1)),
            write.commitments,
            write.leaves,
        )

    def _log(self, name: str) -> int:
        """Return the number of a log's name."""
        found = self.memory.logs.get(name)
        if found is None:
            known = self.value("log", name=name)
            found = self.memory.logs[name] = int(self.value("add_log", name=name) if known is None else known)
        return found

    def note_clone(self) -> None:
        head = self.head()
        assert head.log is not None, "there is something to have been taken over"
        self.run("add_clone", id=self.base + head.position, log=self._log(head.log))
        self.memory.cloned = head.position

    def _grow(self, frontier: Frontier, leaves: Sequence[bytes]) -> Frontier:
        """Grow the tree, and keep the roots of the complete subtrees that these leaves end."""
        grown, ended = frontier.grow(leaves)
        if len(ended) > NODE_STEP:
            rows = [
                (self.tenant_number, height, (frontier.size >> height) + index, root)
                for height in range(NODE_STEP, len(ended), NODE_STEP)
                for index, root in enumerate(ended[height])
            ]
            self.many("add_node", rows)
        return grown

    def leaves_between(self, start: int, end: int) -> list[bytes]:
        """Return some leaf hashes."""
        return [row[0] for row in self.select("leaves", **self.bounds(start - 1, end - 1))]

    def _index(self, first: int, meanings: Sequence[Meaning]) -> None:
        late, naming, anchors, added = [], [], [], []
        met, changed, before, head_of = self._met, self._changed, self._before, codec.head
        self._lately.append((first, meanings))
        self._recent = None
        joins = self._joins()
        base = self.base
        for position, meaning in enumerate(meanings, first):
            id = base + position
            if isinstance(meaning, Observation):
                ref = meaning.entity
                known = met.get(ref) or self._meet(ref)
                previous = known.last
                if known.first < 0:
                    known.first = position
                    if ref.type == SAME_AS:
                        joins = self.memory.joins = True
                known.last = position
                if meaning.op == RETRACT:
                    late.append((known.number, "", id))
                elif meaning.valid_from >= known.until:
                    known.until = meaning.valid_from
                else:
                    late.append((known.number, meaning.valid_from, id))
                number = known.number
                changed[number] = known
                head = head_of(meaning.digest)
                added.append((id, number, previous, head))
                if joins and not head % KEPT_EVERY:
                    # State is kept under the smallest of a group; the chains of the others have anchors of their own.
                    anchors.append((known.number, position))
                if meaning.replaces:
                    heads = [codec.head(name) for name in meaning.replaces]
                    naming += [(named, id) for named in heads]
                    if isinstance(self.memory.named, set):
                        self.memory.named.update(heads)
                if known.digest not in before:
                    before[known.digest] = previous
        if added:
            self.many("add_said", added)
        if late or naming or anchors:
            for query, rows in (("add_late", late), ("add_naming", naming), ("add_anchor", anchors)):
                if rows:
                    self.many(query, rows)

    def _meet(self, ref: Ref) -> Known:
        """Return what is known of an entity that this write has not met; one that is not there is added."""
        digest = ref.digest
        known = None if digest in self._missing else self.known_entity(digest)
        if known is None:
            known = self._add_entity(ref, digest)
        self._met[ref] = known
        return known

    def _add_entity(self, ref: Ref, digest: bytes) -> Known:
        """Note an entity anything is said of, or that a group is kept under."""
        if self._last_entity is None:
            self._last_entity = int(self.value("last_entity") or 0)
        self._last_entity += 1
        found = Known(self._last_entity, ref, digest, BEFORE_ALL, BEFORE_ALL, "")
        found.along = None
        self._new.append(found)
        self.memory.entities[digest] = found
        self._missing.discard(digest)
        return found

    def keep(self, folds: Iterable[tuple[Kept, Rules, bool]]) -> None:
        lasting, folds = [], list(folds)
        if self._forgotten and len(folds) > 1:
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
        found = (stored.position for stored in self._said_lately(digest) if stored.position <= position)
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
        rows = list(elements.due(state, position, before, lambda name: now(name).all()))
        if rows:
            self.many("add_element", [(number, name, key, at, part) for at, name, key, part in rows])

        def lying(name: str, held: Gathered[Any]) -> Parts[Any]:
            return Parts.kept(len(held.parts), now(name), held.unpack_part)

        return fold.with_parts(state, lying)

    def claim(self, agent: str, key: str, receipt: Receipt) -> None:
        self.run(
            "add_receipt",
            tenant=self.tenant_number,
            agent=agent,
            key=key,
            request=receipt.request,
            report=receipt.report,
            nonce=receipt.nonce,
        )

    def put(self, rows: Iterable[IndexRow]) -> None:
        tenant, rows, at_hand = self.tenant_number, list(rows), self.memory.at_hand
        for index in {row[0] for row in rows}:
            at_hand.pop(index, None)
        assert not any(row[1].startswith(b"\xff") for row in rows), "no key begins so"
        present = [(tenant, name, key, since, value) for name, key, since, value, until in rows if until is None]
        past = [(tenant, *row[:3], row[4], row[3]) for row in rows if row[4] is not None]
        if present:
            present.sort()  # the index is in this order
            self.many("add_index_row", present)
        if past:
            self.many("add_index_past", past)

    def end(self, position: int, rows: Iterable[tuple[str, bytes]]) -> None:
        tenant = self.tenant_number
        ending = sorted((tenant, index, key) for index, key in rows)
        if ending:
            for index in {row[1] for row in ending}:
                self.memory.at_hand.pop(index, None)
            self.many("end_index_row", [(position, *row, position) for row in ending])
            self.many("drop_index_row", ending)

    def drop(self, index: str, prefix: bytes = b"") -> None:
        self.memory.at_hand.pop(index, None)
        self.run("drop_index_rows", tenant=self.tenant_number, name=index, first=prefix, last=next_prefix(prefix))

    def set_meta(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.run("drop_meta", tenant=self.tenant_number, name=name)
        else:
            self.run("set_meta", tenant=self.tenant_number, name=name, value=value)

    def drop_derived(self) -> None:
        self.drop_tables()
        self._new.clear()  # what was noted and not written goes with the rest
        self._changed.clear()
        self.memory.forget()
        self._met.clear()
        self._let_go_of_met = True
        self._anchor_at = NOWHERE
        self._let_go()
        self._derived = None
        self._dropped = True
        self._last_entity = None
        self._forgotten = False

    def forget(self, entities: Collection[Ref], rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        self._let_go()
        base, said, naming = self.base, list[tuple[int]](), list[tuple[int, int]]()
        for row, meaning in zip(rows, meanings, strict=True):
            if isinstance(meaning, Observation):
                id = base + row.position
                said.append((id,))
                naming += [(codec.head(name), id) for name in meaning.replaces]
        found = [known for ref in entities if (known := self.known_entity(ref.digest)) is not None]
        numbers = [(known.number,) for known in found]
        self.flush()
        self.many("drop_said", said)
        self.many("drop_naming", naming)
        for query in ("drop_kept", "drop_elements", "drop_anchors", "drop_late", "drop_entity"):
            self.many(query, numbers)
        self.memory.forget()
        self._met.clear()
        self._let_go_of_met = True
        self._anchor_at = NOWHERE
        self._last_entity = None
        self._missing.clear()

    def derive(self, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        first = rows[0].position
        # The log is derived from in parts, so that memory does not grow with its length.
        self._let_go()
        if self.memory.is_full:
            self._let_entities_go()
        if not self._dropped:
            for start, end in _runs([row.position for row in rows]):
                self._index(rows[start].position, meanings[start:end])
            return
        if self._derived is None or self._derived.size != first:
            self._derived = Frontier.at(Nodes(self), first)
        self._derived = self._grow(self._derived, [row.leaf for row in rows])
        self._index(first, meanings)
        self.memory.head = None  # it rests on the subtrees just kept


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield from where to where positions follow one another without a gap."""
    start = 0
    for end in range(1, len(positions) + 1):
        if end == len(positions) or positions[end] != positions[end - 1] + 1:
            yield start, end
            start = end


@cache
def _reads_entities(statement: str) -> bool:
    """Return whether a statement reads the table of entities."""
    return " FROM entity" in statement or " JOIN entity" in statement or "\nFROM entity" in statement

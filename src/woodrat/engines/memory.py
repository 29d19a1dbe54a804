"""The memory engine: the executable reference of the port. It keeps nothing after the process ends."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from woodrat.canon.ids import Ref, TenantId, digest_order, id_of
from woodrat.engines import elements
from woodrat.engines.memory_audit import MemoryAudit
from woodrat.engines.memory_tables import MemoryIndex, MemoryTables, Versions
from woodrat.engines.port import BEFORE_ALL, Head, IndexRow, Kept, KindedBody, LastKept, Receipt, Standing
from woodrat.errors import Unavailable
from woodrat.log.check import Row
from woodrat.log.entry import Entry, Write
from woodrat.log.tree import Leaves
from woodrat.merge import fold, packed_state
from woodrat.merge.elements import Gathered, Parts
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.records import replace
from woodrat.state.asof import Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import Observation

Key = TypeVar("Key")
Item = TypeVar("Item")


class MemoryRows:
    """The parts of one collection as they were after a position."""

    def __init__(self, kept: Mapping[bytes, Versions], position: int) -> None:
        self._kept, self._position = kept, position

    def get(self, key: bytes, /) -> bytes | None:
        versions = self._kept.get(key, ())
        index = bisect_right(versions, self._position, key=lambda version: version[0])
        return versions[index - 1][1] if index else None

    def all(self, after: bytes = b"", limit: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        following = ((key, self.get(key)) for key in sorted(key for key in self._kept if key > after))
        yield from islice(((key, packed) for key, packed in following if packed is not None), limit)


class MemoryEngine:
    """Logs of any number of tenants in this process."""

    name = "memory"

    def __init__(self) -> None:
        self._tenants: dict[TenantId, MemoryTables] = {}
        # One lock for readers and writers: a view never sees half a write.
        self._lock = threading.RLock()
        self._closed = False
        self.location: str | None = None
        self._together: list[tuple[TenantId, MemoryTables, MemoryTransaction]] | None = None

    def elsewhere(self) -> None:
        return None

    @contextmanager
    def view(self, tenant: TenantId) -> Iterator[MemoryView]:
        with self._lock:
            self._check_open()
            yield MemoryView(self._tenants.get(tenant) or MemoryTables())

    @contextmanager
    def transaction(self, tenant: TenantId) -> Iterator[MemoryTransaction]:
        with self._lock:
            self._check_open()
            held = self._tenants.get(tenant) or MemoryTables()
            write = MemoryTransaction(held)
            try:
                yield write
            except BaseException:
                write.undo()
                raise
            if held.entries:
                self._tenants[tenant] = write.tables
            if self._together is not None:
                self._together.append((tenant, held, write))

    @contextmanager
    def together(self, tenants: Iterable[TenantId] = ()) -> Iterator[None]:
        with self._lock:
            self._check_open()
            assert self._together is None, "it is not opened twice"
            self._together = []
            try:
                yield
            except BaseException:
                for tenant, held, write in reversed(self._together):
                    write.undo()
                    self._tenants[tenant] = held
                raise
            finally:
                self._together = None

    def tenants(self) -> list[str]:
        with self._lock:
            self._check_open()
            return sorted(name for name, held in self._tenants.items() if held.entries)

    def purge(self) -> bool:
        return True

    def purged(self) -> bool:
        return True

    def storage(self, tenant: TenantId) -> MemoryStorage:
        return MemoryStorage(self._tenants.get(tenant) or MemoryTables())

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The ledger is closed. Nothing was written. Open it again.")


class MemoryStorage:
    """A tenant's rows: nothing is in any file, and tenants share nothing."""

    shared = False

    def __init__(self, tables: MemoryTables) -> None:
        self.tables = tables

    def files(self) -> Sequence[str]:
        return ()

    def read(self, path: str, offset: int, size: int) -> bytes:
        raise AssertionError("there are no files")

    def holding(self, data: bytes, *, others: bool) -> int:
        t = self.tables
        held = [part for entry in t.entries for part in (entry.nonce, entry.body) if part is not None]
        for (agent, key), receipt in t.receipts.items():
            held += [agent.encode(), key.encode(), receipt.request, receipt.report, receipt.nonce]
        held += [*t.observations, *t.by_entity, *t.namers]
        for index in t.indexes.values():
            held += [part for lives in index.lives.values() for row in lives for part in (row.key, row.value)]
        held += t.meta.values()
        return 0 if others else sum(data in part for part in held)


class MemoryView:
    """Reading of one tenant."""

    def __init__(self, tables: MemoryTables) -> None:
        self.tables = tables
        """What it reads; of a transaction, what the tenant is once that is over."""

    def head(self) -> Head:
        t = self.tables
        last = t.entries[-1] if t.entries else None
        return Head(last.log if last else None, len(t.entries), last.recorded_at if last else None, t.frontier)

    def entry(self, position: int) -> Entry | None:
        entries = self.tables.entries
        return entries[position] if 0 <= position < len(entries) else None

    def bodies(self, positions: Collection[int], kinds: Collection[str] | None = None) -> Mapping[int, KindedBody]:
        found = {position: entry for position in positions if (entry := self.entry(position)) is not None}
        return {
            position: (entry.kind, entry.body)
            for position, entry in found.items()
            if entry.body is not None and (kinds is None or entry.kind in kinds)
        }

    def entries(
        self, after: int = BEFORE_ALL, through: int | None = None, kinds: Collection[str] | None = None
    ) -> Iterator[Entry]:
        end = None if through is None else max(0, through + 1)
        for entry in self.tables.entries[max(0, after + 1) : end]:
            if kinds is None or entry.kind in kinds:
                yield entry

    def leaves(self, size: int) -> Sequence[bytes]:
        return self.tables.leaves[:size]

    def nodes(self) -> Leaves:
        return Leaves(self.tables.leaves)

    def rows(self, after: int, through: int) -> Iterator[Row]:
        for entry in self.entries(after, through):
            envelope, leaf = entry.envelope, self.tables.leaves[entry.position]
            yield Row(
                entry.position,
                entry.log,
                entry.recorded_at,
                entry.kind,
                envelope.write,
                envelope.length,
                envelope.request,
                entry.commitment,
                leaf,
                entry.nonce,
                entry.body,
                envelope.origin,
            )

    def receipts(self) -> Iterator[tuple[str, str, Receipt]]:
        for (agent, key), receipt in sorted(self.tables.receipts.items(), key=lambda item: item[0]):
            yield agent, key, receipt

    def audit(self, size: int | None = None) -> MemoryAudit:
        return MemoryAudit(self.tables, size)

    def cloned(self) -> int:
        return self.tables.cloned

    def merged(self, log: str, through: int) -> tuple[int, int] | None:
        found = self.tables.merged.get(log, {})
        below = max((position for position in found if position <= through), default=None)
        return None if below is None or max(found) < through else (below, found[below])

    def position_at(self, moment: str) -> int:
        return bisect_right(self.tables.recorded, moment) - 1

    def receipt(self, agent: str, key: str) -> Receipt | None:
        return self.tables.receipts.get((agent, key))

    def observation(self, name: bytes | str, through: int | None = None) -> Stored | None:
        t = self.tables
        found = t.observation_ids.get(name) if isinstance(name, str) else t.observations.get(name)
        return found if found is not None and (through is None or found.position <= through) else None

    def known(self, observations: Sequence[Observation]) -> Collection[bytes]:
        return {one.digest for one in observations if one.digest in self.tables.observations}

    def ids(self, kind: str, prefix: str, limit: int) -> list[str]:
        t = self.tables
        known = {"observation": [*t.observation_ids], "entity": [*t.entity_ids]}[kind]
        return sorted((id for id in known if id.startswith(prefix)), key=digest_order)[:limit]

    def namers(self, digest: bytes, through: int) -> Sequence[Stored]:
        return [stored for stored in self.tables.namers.get(digest, ()) if stored.position <= through]

    def named(self, digests: Sequence[bytes], through: int) -> Collection[bytes]:
        return {digest for digest in digests if self.namers(digest, through)}

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        found = self.tables.by_entity.get(entity, [])
        start = bisect_right(found, after, key=_position)
        return found[start : bisect_right(found, through, key=_position)]

    def version(self, entity: bytes, through: int) -> int | None:
        found = self.tables.by_entity.get(entity, [])
        index = bisect_right(found, through, key=_position)
        return found[index - 1].position if index else None

    def entity(self, name: bytes | str, through: int | None = None) -> Ref | None:
        t = self.tables
        ref = t.entity_ids.get(name) if isinstance(name, str) else None
        found = t.by_entity.get(name) if isinstance(name, bytes) else None if ref is None else t.by_entity[ref.digest]
        return found[0].observation.entity if found and (through is None or found[0].position <= through) else None

    def entities(
        self,
        type: str | None,
        through: int,
        *,
        after: Ref | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Sequence[Ref]:
        names, said = self.tables.by_name, self.tables.by_entity
        start, end = 0, len(names)
        if type is not None:
            start = bisect_left(names, (type.encode(), b""))
            end = bisect_left(names, (type.encode() + b"\0", b""))
        if after is not None and reverse:
            end = min(end, bisect_left(names, _name(after)))
        elif after is not None:
            start = max(start, bisect_right(names, _name(after)))
        places = range(end - 1, start - 1, -1) if reverse else range(start, end)
        refs = (Ref(names[place][0].decode(), names[place][1].decode()) for place in places)
        return list(islice((ref for ref in refs if said[ref.digest][0].position <= through), limit))

    def touched(self, after: int, through: int) -> Collection[Ref]:
        found = self.tables.in_order
        start, end = bisect_right(found, after, key=_position), bisect_right(found, through, key=_position)
        return {stored.observation.entity for stored in found[start:end]}

    def scan(
        self,
        index: str,
        prefix: bytes = b"",
        *,
        through: int | None = None,
        after: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Sequence[tuple[bytes, bytes]]:
        found = self.tables.indexes.get(index)
        if found is None:
            return []
        rows = (row for key in found.between(prefix, after, reverse=reverse) for row in found.lives[key])
        return list(islice(((row.key, row.value) for row in rows if _is_true(row, through)), limit))

    def find(self, index: str, prefixes: Sequence[bytes]) -> Sequence[tuple[bytes, bytes]]:
        return [row for prefix in sorted(prefixes) for row in self.scan(index, prefix)]

    def lives(self, index: str, prefix: bytes = b"") -> Sequence[IndexRow]:
        found = self.tables.indexes.get(index)
        return [] if found is None else [row for key in found.between(prefix) for row in found.lives[key]]

    def at_hand(self, index: str) -> dict[Any, Any]:
        return self.tables.at_hand.setdefault(index, {})

    def meta(self, name: str) -> bytes | None:
        return self.tables.meta.get(name)

    def kept(self, root: Ref, through: int, rules: Rules) -> Kept | None:
        found = self.tables.current.get(root.digest)
        if found is None or found.position > through:
            lasting = self.tables.lasting.get(root.digest, [])
            index = bisect_right(lasting, through, key=lambda kept: kept.position)
            found = lasting[index - 1] if index else None
        return found if found is not None and found.state.merging == rules.merging else None

    def standings(self, refs: Sequence[Ref], through: int, rules: Mapping[str, Rules]) -> Sequence[Standing | None]:
        versions = [self.version(ref.digest, through) for ref in refs]
        return [
            None if version is None else Standing(version, self.kept(ref, through, rules[ref.type]))
            for ref, version in zip(refs, versions, strict=True)
        ]


class MemoryTransaction(MemoryView):
    """One write; every change notes how to take it back."""

    def __init__(self, tables: MemoryTables) -> None:
        super().__init__(tables)
        self._undo: list[Callable[[], object]] = []

    def undo(self) -> None:
        """Take everything back, the last change first."""
        while self._undo:
            self._undo.pop()()

    def append(self, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
        start = 0
        for write in writes:
            self._append(write, meanings[start : start + len(write)])
            start += len(write)
        assert start == len(meanings)

    def _append(self, entries: Write, meanings: Sequence[Meaning]) -> None:
        t = self.tables
        assert entries.first == len(t.entries), "entries are appended without a gap"
        assert not t.recorded or entries.recorded_at > t.recorded[-1], "the log's clock never goes back"
        before, size = t.frontier, len(t.entries)
        t.entries.extend(entries)
        t.recorded.extend([entries.recorded_at] * len(entries))
        t.leaves.extend(entries.leaves)
        t.frontier = before.extend(entries.leaves)

        def back() -> None:
            del t.entries[size:], t.recorded[size:], t.leaves[size:]
            t.frontier = before

        self._undo.append(back)
        for position, origin in enumerate(entries.origins or (), entries.first):
            if origin is not None:
                self._set(t.merged.setdefault(origin.log, {}), origin.position, position)
        self._index(list(entries), meanings)

    def note_clone(self) -> None:
        t, before = self.tables, self.tables.cloned
        t.cloned = len(t.entries) - 1
        self._undo.append(lambda: setattr(t, "cloned", before))

    def derive(self, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        self._index(rows, meanings)

    def _index(self, entries: Sequence[Entry | Row], meanings: Sequence[Meaning]) -> None:
        for entry, meaning in zip(entries, meanings, strict=True):
            if isinstance(meaning, Observation):
                self._index_observation(Stored(entry.position, meaning))

    def erase(self, positions: Iterable[int], receipts: Iterable[tuple[str, str]]) -> None:
        entries, held = self.tables.entries, self.tables.receipts
        for position in positions:
            old = entries[position]
            entries[position] = replace(old, nonce=None, body=None)
            self._undo.append(lambda position=position, old=old: entries.__setitem__(position, old))  # type: ignore[misc]
        for name in receipts:
            receipt = held.pop(name)
            self._undo.append(lambda name=name, receipt=receipt: held.__setitem__(name, receipt))  # type: ignore[misc]

    def drop_derived(self) -> None:
        # A new record around the same log: views and the way back keep the old one.
        old = self.tables
        self.tables = MemoryTables(
            *(old.entries, old.recorded, old.leaves, old.frontier),
            receipts=old.receipts,
            cloned=old.cloned,
            merged=old.merged,
        )
        self._undo.append(lambda: setattr(self, "tables", old))

    def forget(self, entities: Collection[Ref], rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        t = self.tables
        for row, meaning in zip(rows, meanings, strict=True):
            if isinstance(meaning, Observation):
                self._forget_observation(row.position, meaning)
        for ref in entities:
            self._leave(t.current, ref.digest, None)
            self._leave(t.lasting, ref.digest, None)
            self._leave(t.last_kept, ref.digest, None)
            self._leave(t.elements, ref.digest, None)

    def _forget_observation(self, position: int, said: Observation) -> None:
        t, entity = self.tables, said.entity
        self._leave(t.observations, said.digest, None)
        self._leave(t.observation_ids, said.id, None)
        place = bisect_left(t.in_order, position, key=_position)
        stored = t.in_order.pop(place)
        self._undo.append(lambda: t.in_order.insert(place, stored))
        for name in said.replaces:
            self._leave(t.namers, name, [one for one in t.namers[name] if one.position != position])
        left = [one for one in t.by_entity[entity.digest] if one.position != position]
        self._leave(t.by_entity, entity.digest, left)
        if not left:
            self._leave(t.entity_ids, id_of("entity", entity.digest), None)
            t.by_name.pop(bisect_left(t.by_name, _name(entity)))
            self._undo.append(lambda: insort(t.by_name, _name(entity)))

    def _leave(self, items: dict[Key, Item], key: Key, left: Item | None) -> None:
        """Let a key have what is left of what it had; without anything it is gone."""
        if key in items:
            before = items[key]
            self._undo.append(lambda: items.__setitem__(key, before))
            if left:
                items[key] = left
            else:
                del items[key]

    def keep(self, folds: Iterable[tuple[Kept, Rules, bool]]) -> None:
        t = self.tables
        for (position, state), rules, lasting in folds:
            root = state.members[0].digest
            before = t.current.get(root)
            if state.held or (before is not None and before.state.held):
                state = self._keep_elements(root, position, state, () if before is None else before.state.held)
            kept = Kept(position, state)
            self._set(t.current, root, kept)
            if lasting:
                self._add(t.lasting.setdefault(root, []), kept, t.lasting, root)
                size = len(packed_state.pack(state, rules, apart=True))
                self._set(t.last_kept, root, LastKept(state.observations, state.body_bytes, size))

    def last_kept(self, roots: Sequence[Ref]) -> Sequence[LastKept | None]:
        return [self.tables.last_kept.get(root.digest) for root in roots]

    def _keep_elements(self, root: bytes, position: int, state: MergeState, before: Collection[str]) -> MergeState:
        """Keep the parts of large collections one by one; return the state with its parts there."""
        there = self.tables.elements.setdefault(root, {})
        had = [name for name in before if there.get(name)]

        def rows(name: str) -> MemoryRows:
            return MemoryRows(there.setdefault(name, {}), position)

        for _, name, key, packed in list(elements.due(state, position, had, lambda name: rows(name).all())):
            kept = there.setdefault(name, {})
            versions = kept.get(key, ())
            if versions and versions[-1][0] == position:
                versions = versions[:-1]
            self._set(kept, key, (*versions, (position, packed)))

        def lying(name: str, held: Gathered[Any]) -> Parts[Any]:
            return Parts.kept(len(held.parts), rows(name), held.unpack_part)

        return fold.with_parts(state, lying)

    def claim(self, agent: str, key: str, receipt: Receipt) -> None:
        assert (agent, key) not in self.tables.receipts, "a key is claimed once"
        self._set(self.tables.receipts, (agent, key), receipt)

    def put(self, rows: Iterable[IndexRow]) -> None:
        for row in rows:
            assert not row.key.startswith(b"\xff"), "no key begins so"
            lives = self._index_of(row.name).lives.get(row.key, ())
            if row.until is None and lives and lives[-1].until is None:
                continue
            others = [one for one in lives if one.since != row.since]
            self._set_lives(row.name, row.key, tuple(sorted([*others, row], key=lambda one: one.since)))

    def end(self, position: int, rows: Iterable[tuple[str, bytes]]) -> None:
        for index, key in rows:
            lives = self._index_of(index).lives.get(key, ())
            if lives and lives[-1].until is None:
                ended = (lives[-1]._replace(until=position),) if lives[-1].since < position else ()
                self._set_lives(index, key, (*lives[:-1], *ended))

    def drop(self, index: str, prefix: bytes = b"") -> None:
        for key in list(self._index_of(index).between(prefix)):
            self._set_lives(index, key, ())

    def _index_of(self, name: str) -> MemoryIndex:
        return self.tables.indexes.setdefault(name, MemoryIndex())

    def _set_lives(self, name: str, key: bytes, lives: tuple[IndexRow, ...]) -> None:
        index = self._index_of(name)
        before = index.lives.get(key, ())
        at_hand = self.tables.at_hand
        index.set(key, lives)
        at_hand.pop(name, None)

        def back() -> None:
            index.set(key, before)
            at_hand.pop(name, None)

        self._undo.append(back)

    def set_meta(self, name: str, value: bytes | None) -> None:
        if value is not None:
            self._set(self.tables.meta, name, value)
        elif name in self.tables.meta:
            before = self.tables.meta.pop(name)
            self._undo.append(lambda: self.tables.meta.__setitem__(name, before))

    def _index_observation(self, stored: Stored) -> None:
        t, observation, entity = self.tables, stored.observation, stored.observation.entity
        assert observation.digest not in t.observations, "an observation is stored once"
        self._set(t.observations, observation.digest, stored)
        insort(t.in_order, stored, key=_position)
        self._undo.append(lambda: t.in_order.pop(bisect_left(t.in_order, stored.position, key=_position)))
        self._set(t.observation_ids, observation.id, stored)
        for name in sorted(observation.replaces):
            self._insert(t.namers, name, stored, _position)
        if entity.digest not in t.by_entity:
            self._set(t.entity_ids, id_of("entity", entity.digest), entity)
            insort(t.by_name, _name(entity))
            self._undo.append(lambda: t.by_name.pop(bisect_left(t.by_name, _name(entity))))
        self._add(t.by_entity.setdefault(entity.digest, []), stored, t.by_entity, entity.digest)

    def _insert(self, owner: dict[Key, list[Item]], key: Key, item: Item, position: Callable[[Item], int]) -> None:
        """Put something into a list of `owner` that is in order of positions."""
        items = owner.setdefault(key, [])
        insort(items, item, key=position)

        def back() -> None:
            items.remove(item)
            if not items:
                owner.pop(key, None)

        self._undo.append(back)

    def _add(
        self, items: list[Item], item: Item, owner: dict[Key, list[Item]] | None = None, key: Key | None = None
    ) -> None:
        """Append to a list; taking it back also drops a list that `owner` did not hold before."""
        items.append(item)

        def back() -> None:
            items.pop()
            if owner is not None and not items:
                owner.pop(key, None)  # type: ignore[arg-type]

        self._undo.append(back)

    def _set(self, items: dict[Key, Item], key: Key, item: Item) -> None:
        if key in items:
            before = items[key]
            self._undo.append(lambda: items.__setitem__(key, before))
        else:
            self._undo.append(lambda: items.pop(key))
        items[key] = item


def _name(ref: Ref) -> tuple[bytes, bytes]:
    return ref.type.encode(), ref.key.encode()


def _position(stored: Stored) -> int:
    return stored.position


def _is_true(row: IndexRow, through: int | None) -> bool:
    """Return whether a row was true at a position, or is now."""
    if through is None or row.until is None:
        return row.until is None and (through is None or row.since <= through)
    return row.since <= through < row.until

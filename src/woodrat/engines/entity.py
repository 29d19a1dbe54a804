"""Entity: the table of everything anything was ever said of, with its present merge state.

Entities that were looked up stay in memory. Within a write, those that change are written at its end, or before the
table is asked for in SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from woodrat.canon.ids import Ref
from woodrat.engines import codec
from woodrat.engines.cache import Known
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.tables import ALL, Tables, WritableTables
from woodrat.merge.packing import garbled
from woodrat.state.relation import SAME_AS

LARGE_BYTES = 8_192
"""From which size on an entity's merge state, packed, is not kept at hand once it was used."""

MISSING_MAX = 1_000_000
"""How many entities that are not there a view remembers."""


class Entities(Tables):
    """Reading of entities."""

    _missing: set[bytes]
    """Entities that were looked for and are not there, by digest."""

    def known_entity(self, digest: bytes) -> Known | None:
        """Return what the tables hold of an entity; as long as one view lasts, it is looked up once."""
        entities = self.memory.entities
        found = entities.get(digest)
        if found is not None:
            entities.move_to_end(digest)
        elif digest not in self._missing:
            self.release()
            for row in self.select("entity", digest=codec.head(digest), tenant=self.tenant_number):
                self._read_entity(row, (digest,))
            found = entities.get(digest)
            if found is None:
                self._miss((digest,))
        return found

    def known_entities(self, refs: Sequence[Ref]) -> Sequence[Known | None]:
        """Return what the tables hold of entities, in one look at most."""
        digests = [ref.digest for ref in refs]
        if len(digests) == 1:
            return (self.known_entity(digests[0]),)
        self.find_entities(digests)
        entities = self.memory.entities
        found = list(map(entities.get, digests))
        for known in found:
            if known is not None:
                entities.move_to_end(known.digest)
        return found

    def find_entities(self, digests: Sequence[bytes]) -> None:
        """Look up entities in one statement: each is at hand then, or known to be missing."""
        entities, missing = self.memory.entities, self._missing
        if all(digest in entities for digest in digests):
            return
        self.release()
        wanted = {digest for digest in digests if digest not in entities and digest not in missing}
        if len(wanted) < 2:
            for digest in wanted:
                self.known_entity(digest)
            return
        heads = self.many_of(sorted(map(codec.head, wanted)))
        for row in self.select("entities_by_digest", digests=heads, tenant=self.tenant_number):
            self._read_entity(row, wanted)
        self._miss([digest for digest in wanted if digest not in entities])

    def entities_of_ids(self, names: Collection[str]) -> Mapping[str, Ref]:
        """Return those of the entities with these ids that anything was said of, in one look; they are at hand then."""
        self.release()
        found: dict[str, Ref] = {}
        wanted = set(names)
        heads = self.many_of(sorted(head for head in map(codec.head_of_id, wanted) if head is not None))
        for row in self.select("entities_by_digest", digests=heads, tenant=self.tenant_number):
            ref = self._take_entity(row)
            if row[3] >= 0 and ref.id in wanted:
                found[ref.id] = ref
        return found

    def _take_entity(self, row: tuple[Any, ...]) -> Ref:
        """Take what a row says of an entity at hand, unless it is; return the entity."""
        ref = ref_of(row[1:3])
        if ref.digest not in self.memory.entities:
            self._read_entity(row, (ref.digest,))
        return ref

    def _read_entity(self, row: tuple[Any, ...], wanted: Collection[bytes]) -> None:
        """Take what the tables hold of an entity at hand, if it is one of those wanted."""
        id, type, key, first, last, until, at, packed = row
        ref = Ref(type, key)
        digest = ref.digest
        if digest in wanted:
            if not (isinstance(first, int) and isinstance(last, int) and isinstance(until, str)):
                raise garbled(f"{ref}: what is noted of it")
            if not (isinstance(packed, bytes) and isinstance(at, int)) and (at, packed) != (None, None):
                raise garbled(f"{ref}: the state kept of it")
            self.memory.entities[digest] = Known(id, ref, digest, first, last, until, at, packed)
            if packed is not None and len(packed) > LARGE_BYTES:
                self.memory.large.add(digest)

    def release(self) -> None:
        """Let go of entities that were looked at long ago: a walk over all of them keeps about as many as the bound.

        It comes before others are looked up: those that are looked up together stay until the next.
        """
        memory = self.memory
        while memory.is_full:
            memory.large.discard(memory.entities.popitem(last=False)[0])

    def _miss(self, digests: Sequence[bytes]) -> None:
        """Remember that entities are not there."""
        if len(self._missing) + len(digests) > MISSING_MAX:
            self._missing.clear()
        self._missing.update(digests)

    def entity(self, name: bytes | str, through: int | None = None) -> Ref | None:
        """Return the entity with this digest or this short id, if anything was ever said of it."""
        if isinstance(name, bytes):
            known = self.known_entity(name)
            there = known is not None and known.first >= 0 and (through is None or known.first <= through)
            return known.ref if known is not None and there else None
        head = codec.head_of_id(name)
        if head is not None:
            for row in self.select("entity", digest=head, tenant=self.tenant_number):
                ref = Ref(row[1], row[2])
                if ref.id == name and row[3] >= 0 and (through is None or row[3] <= through):
                    return ref
        return None

    def entities(
        self,
        type: str | None,
        through: int,
        *,
        after: Ref | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Sequence[Ref]:
        """Return every entity anything was ever said of, by type and then key, both as UTF-8 bytes.

        With `after`, those that come after it in that order, or before it with `reverse`; at most `limit` of them. A
        page costs what it returns, whatever else there is, but for entities that were not yet known at `through`.
        """
        query = ("entities" if type is None else "entities_of_type") + ("_reversed" if reverse else "")
        bounds: dict[str, Any] = {"first_type": "", "first": "", "last_type": self.last_text, "last": self.last_text}
        if after is not None:
            if type is None or after.type == type:
                side = "last" if reverse else "first"
                bounds[f"{side}_type"], bounds[side] = after.type, after.key
            elif (after.type.encode() > type.encode()) != reverse:
                return []  # the whole type lies on the other side
        if type is not None:
            bounds = {"type": type, "first": bounds["first"], "last": bounds["last"]}
        count = ALL if limit is None else limit
        rows = self.select(query, tenant=self.tenant_number, through=through, limit=count, **bounds)
        return [ref_of(row) for row in rows]

    def _joins(self) -> bool:
        """Return whether any `same_as` was ever said."""
        if self.memory.joins is None:
            self.memory.joins = self.value("joins", tenant=self.tenant_number, type=SAME_AS) is not None
        return self.memory.joins


class EntityWrites(WritableTables, Entities):
    """Writing of entities."""

    _new: list[Known]
    """Entities that this write adds."""
    _changed: dict[int, Known]
    """By number those that it changes."""
    _met: dict[Ref, Known]
    """Those that it has met, so that the digest of each is asked for once."""
    _last_entity: int | None
    """The highest number an entity has, once it was asked for."""
    _may_be_unmet: bool
    """Whether there may be entities in the table that are not in memory."""
    _dropped_met: bool
    """Whether entities that it has met are no longer among those it has met."""

    def select(self, query: str, **values: Any) -> Any:
        if (self._new or self._changed) and _reads_entities(self.queries[query]):
            self.flush()
        return super().select(query, **values)

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        self.flush()
        return super().comparing(query, **values)

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
            self._drop_from_memory()

    def _drop_from_memory(self) -> None:
        """Write what changed of entities, and keep those at hand that were used last."""
        self.flush()
        self.memory.trim()
        self._met.clear()
        self._dropped_met = self._may_be_unmet = True

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
        return super().known_entity(digest) if self._may_be_unmet else self.memory.entities.get(digest)

    def known_entities(self, refs: Sequence[Ref]) -> Sequence[Known | None]:
        met = self._met
        unmet = [ref for ref in refs if ref not in met]
        if unmet:
            if self.memory.is_overfull:
                self._drop_from_memory()
                unmet = list(refs)
            for ref, known in zip(unmet, super().known_entities(unmet), strict=True):
                if known is not None:
                    met[ref] = known
        return [met.get(ref) for ref in refs]

    def find_entities(self, digests: Sequence[bytes]) -> None:
        if self._may_be_unmet:
            super().find_entities(digests)

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


def ref_of(row: tuple[Any, ...]) -> Ref:
    """Return the entity that a row of an index names."""
    if type(row[0]) is not str or type(row[1]) is not str:
        raise garbled("An index of entities")
    return tuple.__new__(Ref, row)  # as `Ref` itself does, without a call between


@cache
def _reads_entities(statement: str) -> bool:
    """Return whether a statement reads the table of entities."""
    return " FROM entity" in statement or " JOIN entity" in statement or "\nFROM entity" in statement

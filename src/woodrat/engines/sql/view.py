"""View: reading of one tenant, in one transaction of a database that keeps tables.

An engine adds how its statements are run. What differs between databases stands in their statements, not here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from types import NoneType
from typing import TYPE_CHECKING, Any

from woodrat.canon import moment
from woodrat.canon.ids import Ref
from woodrat.engines.port import (
    BEFORE_ALL,
    Current,
    Head,
    Kept,
    KindedBody,
    Receipt,
    Standing,
    StoredPart,
    StoredState,
)
from woodrat.engines.sql import codec
from woodrat.engines.sql.cache import Known, Memory
from woodrat.engines.sql.indexes import Indexes
from woodrat.engines.sql.nodes import Nodes, damaged
from woodrat.engines.sql.tables import ALL
from woodrat.log.entry import NONCE_BYTES, Entry, Origin, commitment
from woodrat.log.tree import Frontier
from woodrat.merge import packed_state
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import UNREADABLE, garbled
from woodrat.merge.rules import Rules
from woodrat.state import observation
from woodrat.state.asof import AsOf, Stored
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.log.check import Row

LARGE_BYTES = 8_192
"""From which size on an entity's merge state, packed, is not kept at hand once it was used."""
NAMED_MAX = 100_000
"""How many named observations of a tenant are held at hand; beyond that each is looked up."""
MISSING_MAX = 1_000_000
"""How many entities that are not there a view remembers."""
NOWHERE = (0, BEFORE_ALL, BEFORE_ALL)
_MAKE = tuple.__new__


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


class SqlView(Indexes):
    """Reading of one tenant."""

    def begin(self) -> None:
        """Begin without anything looked up; an engine calls it once the tables are there."""
        self.memory.tables = self
        self._anchor_at = NOWHERE
        self._missing: set[bytes] = set()
        """Entities that were looked for and are not there, by digest."""

    def head(self) -> Head:
        found = self.memory.head
        if found is None:
            row = self.first_row("last_entry", **self.bounds())
            if row is None:
                found = Head(None, 0, None, Frontier)
            else:
                size = row[0] - self.base + 1
                found = Head(row[1], size, moment.from_micros(row[2]), lambda: Frontier.at(Nodes(self), size))
            self.memory.head = found
        return found

    def entry(self, position: int) -> Entry | None:
        if position < 0:
            return None
        row = self.first_row("entries", **self.bounds(position - 1, position))
        return None if row is None else self._read(row)

    def bodies(self, positions: Collection[int], kinds: Collection[str] | None = None) -> Mapping[int, KindedBody]:
        base = self.base
        sought = [base + position for position in sorted(set(positions)) if position >= 0]
        found: dict[int, KindedBody] = {}
        if sought:
            for id, number, committed, nonce, body in self.select(
                "bodies_at", ids=self.many_of(sought), **self.bounds()
            ):
                kind = codec.KINDS[number]
                if kinds is not None and kind not in kinds:
                    continue
                if type(nonce) is not bytes or len(nonce) != NONCE_BYTES or commitment(nonce, body) != committed:
                    raise damaged(id - base, "body")
                found[id - base] = kind, body
        return found

    def entries(
        self, after: int = BEFORE_ALL, through: int | None = None, kinds: Collection[str] | None = None
    ) -> Iterator[Entry]:
        if kinds is None or "observation" in kinds:
            for row in self.stream("entries", max(after, BEFORE_ALL), through):
                if kinds is None or codec.KINDS[row[3]] in kinds:
                    yield self._read(row)
            return
        # Who follows a kind asks at every write, and mostly there is nothing new.
        newer = [kind for kind in kinds if self._latest(kind) > after]
        if not newer:
            return
        first = max(after, BEFORE_ALL)
        rows = [self.stream("entries_of_kind", first, through, kind=codec.NUMBERS[kind]) for kind in newer]
        for row in rows[0] if len(rows) == 1 else merge(*rows):
            yield self._read(row)

    def _latest(self, kind: str) -> int:
        """Return the position of the last entry of a rare kind; the one before all without any."""
        found = self.memory.latest.get(kind)
        if found is None:
            last = self.value("last_of_kind", kind=codec.NUMBERS[kind], **self.bounds())
            found = self.memory.latest[kind] = BEFORE_ALL if last is None else int(last) - self.base
        return found

    def _read(self, row: tuple[Any, ...]) -> Entry:
        """Return the entry of a row, if its body is what was once written."""
        found = codec.entry(row, self.base)
        if found.body is not None and (
            found.nonce is None
            or len(found.nonce) != NONCE_BYTES
            or commitment(found.nonce, found.body) != found.commitment
        ):
            raise damaged(found.position, "body")
        return found

    def leaves(self, size: int) -> Sequence[bytes]:
        return [row[0] for row in self.select("leaves", **self.bounds(BEFORE_ALL, size - 1))]

    def nodes(self) -> Nodes:
        return Nodes(self)

    def rows(self, after: int, through: int) -> Iterator[Row]:
        from woodrat.log.check import Row

        base, kinds = self.base, codec.KINDS
        logs = dict(map(tuple, self.select("logs")))
        micros: object = None
        at = ""
        make = tuple.__new__  # as `Row` itself does, without a call between
        first = max(after, BEFORE_ALL)
        came = iter(self.select("origins", **self.bounds(first, through)))
        from_elsewhere = next(came, None)
        for row in self.stream("rows", first, through):
            id, log, time, kind, write, length, request, promise, leaf, nonce, body = row
            if time != micros:
                micros, at = time, codec.moment_of(time)
            named = kinds[kind] if type(kind) is int and 0 <= kind < len(kinds) else f"number {kind}"
            origin = None
            if from_elsewhere is not None:
                while from_elsewhere is not None and from_elsewhere[0] < id:
                    from_elsewhere = next(came, None)
                if from_elsewhere is not None and from_elsewhere[0] == id:
                    origin = Origin(logs.get(from_elsewhere[1], ""), from_elsewhere[2])
            name = logs.get(log)
            yield make(Row, (id - base, name, at, named, write, length, request, promise, leaf, nonce, body, origin))

    def receipts(self) -> Iterator[tuple[str, str, Receipt]]:
        for agent, key, *receipt in self.select("receipts", tenant=self.tenant_number):
            yield agent, key, Receipt(*receipt)

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a statement of `comparison.sql` gives, a bounded part of them at a time."""
        raise NotImplementedError

    def extent(self) -> int:
        (row,) = self.comparing("last_id", **self.bounds())
        return 0 if row[0] is None else int(row[0]) - self.base + 1

    def body_bytes(self) -> int:
        (row,) = self.comparing("log_bytes", **self.bounds())
        return int(row[0])

    def derived(self, table: str, name: str = "") -> Iterator[tuple[Any, ...]]:
        bounds = self.bounds()
        for row in self.comparing(f"derived_{table}", tenant=self.tenant_number, base=self.base, name=name, **bounds):
            yield tuple(row)

    def states_of(self, ref: Ref) -> tuple[Sequence[StoredState], Sequence[StoredPart]]:
        states: list[StoredState] = []
        parts: list[StoredPart] = []
        for number, *present in list(self.comparing("state_of", tenant=self.tenant_number, type=ref.type, key=ref.key)):
            states += (StoredState(*row) for row in self.comparing("kept_of", entity=number))
            parts += (StoredPart(*row) for row in self.comparing("elements_of", entity=number))
            states.append(StoredState(*present))
        return states, parts

    def repeated(self) -> Sequence[int]:
        rows = self.comparing("repeated", base=self.base, **self.bounds())
        return [row[0] for row in rows]

    def index_names(self) -> Sequence[str]:
        names = [row[0] for row in self.comparing("index_names", tenant=self.tenant_number)]
        return [name for name in names if isinstance(name, str)]

    def notes(self) -> Mapping[str, bytes]:
        return dict(map(tuple, self.comparing("notes", tenant=self.tenant_number)))

    def cloned(self) -> int:
        if self.memory.cloned is None:
            found = self.value("cloned", **self.bounds())
            self.memory.cloned = BEFORE_ALL if found is None else int(found) - self.base
        return self.memory.cloned

    def merged(self, log: str, through: int) -> tuple[int, int] | None:
        row = self.first_row("merged", log=log, through=through, **self.bounds())
        if row is None or self.value("merged_beyond", log=log, through=through, **self.bounds()) is None:
            return None
        return row[0], row[1] - self.base

    def position_at(self, moment_: str) -> int:
        wanted = moment.to_micros(moment_)
        return bisect_right(_Times(self, self.head().size), wanted) - 1

    def receipt(self, agent: str, key: str) -> Receipt | None:
        row = self.first_row("receipt", tenant=self.tenant_number, agent=agent, key=key)
        return None if row is None else Receipt(*row)

    def observation(self, name: bytes | str, through: int | None = None) -> Stored | None:
        head = codec.head_of_id(name) if isinstance(name, str) else codec.head(name)
        if head is not None:
            for row in self.select("said_by_digest", digest=head, **self.bounds(through=through)):
                found = self._stored(row)
                if name in (found.observation.digest, found.observation.id):
                    return found
        return None

    def known(self, observations: Sequence[Observation]) -> Collection[bytes]:
        # What begins to hold after everything that was said of its entity is new: nothing has to be looked up.
        digests: list[bytes] = []
        entities = self.known_entities([one.entity for one in observations])
        for one, entity in zip(observations, entities, strict=True):
            if entity is not None and (one.valid_from <= entity.until or one.op == RETRACT):
                digests.append(one.digest)
        if not digests:
            return ()
        heads = [codec.head(digest) for digest in digests]
        if len(heads) == 1:
            hits = [heads[0]] if self.value("is_said", digest=heads[0], **self.bounds()) is not None else []
        else:
            rows = self.select("are_said", digests=self.many_of(heads), **self.bounds())
            hits = [row[0] for row in rows]
        if not hits:
            return ()
        found = set(hits)
        through = self.head().position
        return {d for d in digests if codec.head(d) in found and self.observation(d, through) is not None}

    def ids(self, kind: str, prefix: str, limit: int) -> list[str]:
        found: list[str] = []
        heads = codec.heads_from(prefix[4:])
        if heads is None:
            return found
        for row in self.select(
            f"{kind}_ids", first=heads[0], last=heads[1], tenant=self.tenant_number, **self.bounds()
        ):
            if kind == "entity":
                id: str = Ref(row[0], row[1]).id
            else:
                id = self._stored(row).observation.id
            # Rows come by the beginning of the digest; a prefix may say more than that.
            if id.startswith(prefix) and id not in found:
                found.append(id)
                if len(found) == limit:
                    break
        return found

    def _named_heads(self) -> Collection[int] | None:
        """Return the beginnings of the digests that observations name; `None` if there are too many to hold."""
        memory = self.memory
        if memory.named is None:
            found = {row[0] for row in self.select("named", limit=NAMED_MAX + 1, **self.bounds())}
            memory.named = found if len(found) <= NAMED_MAX else frozenset()
            memory.names_many = len(found) > NAMED_MAX
        return None if memory.names_many else memory.named

    def named(self, digests: Sequence[bytes], through: int) -> Collection[bytes]:
        heads = self._named_heads()
        if heads is None:
            targets = self.many_of(list(map(codec.head, digests)))
            heads = {row[0] for row in self.select("named_of", targets=targets, **self.bounds(through=through))}
        if not heads:
            return ()
        return {digest for digest in digests if codec.head(digest) in heads and self.namers(digest, through)}

    def namers(self, digest: bytes, through: int) -> Sequence[Stored]:
        heads = self._named_heads()
        if heads is not None and (not heads or codec.head(digest) not in heads):
            return ()
        rows = self.select("namers", target=codec.head(digest), **self.bounds(through=through))
        return [stored for stored in map(self._stored, rows) if digest in stored.observation.replaces]

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        known = self.known_entity(entity)
        if known is None or known.last < 0 or known.last <= after:
            return []
        start = self._anchor(known, through)
        if start <= after:
            return []
        links = list(self.select("chain", start=self.base + start, base=self.base, after=after, through=through))
        found = [self._stored(row) for row in reversed(links)]
        if found:
            self._anchor_at = (known.number, through, found[-1].position)
        return found

    def _anchor(self, known: Known, through: int) -> int:
        """Return where a walk back to what an entity was at a position may begin."""
        if known.last <= through:
            return known.last
        if self._anchor_at[:2] != (known.number, through):
            at = self.value("anchor", entity=known.number, through=through)
            self._anchor_at = (known.number, through, known.last if at is None else at)
        return self._anchor_at[2]

    def _stored(self, row: tuple[Any, ...]) -> Stored:
        """Return the observation of a row (id, body, beginning of the digest), if it is what was once written."""
        id, body, head = row
        try:
            found = observation.stored(body)
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise damaged(id - self.base, "body") from error
        if codec.head(found.digest) != head:
            raise damaged(id - self.base, "body")
        return Stored(id - self.base, found)

    def version(self, entity: bytes, through: int) -> int | None:
        known = self.known_entity(entity)
        if known is None or known.first < 0 or known.first > through:
            return None
        start = self._anchor(known, through)
        if start <= through:
            return start
        return int(self.value("last_said", start=self.base + start, base=self.base, through=through))

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
        entities = self.memory.entities
        found = list(map(entities.get, digests))
        if None in found:
            self.find_entities(digests)
            found = list(map(entities.get, digests))
        for known in found:
            if known is not None:
                entities.move_to_end(known.digest)
        return found

    def find_entities(self, digests: Sequence[bytes]) -> None:
        """Look up entities in one statement: each is at hand then, or known to be missing."""
        self.release()
        entities, missing = self.memory.entities, self._missing
        wanted = {digest for digest in digests if digest not in entities and digest not in missing}
        if not wanted:
            return
        if len(wanted) == 1:
            self.known_entity(*wanted)
            return
        heads = self.many_of(sorted(map(codec.head, wanted)))
        for row in self.select("entities_by_digest", digests=heads, tenant=self.tenant_number):
            self._read_entity(row, wanted)
        self._miss([digest for digest in wanted if digest not in entities])

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
        return [_ref(row) for row in rows]

    def touched(self, after: int, through: int) -> Collection[Ref]:
        return {_ref(row) for row in self.select("touched", **self.bounds(after, through))}

    def _joins(self) -> bool:
        """Return whether any `same_as` was ever said."""
        if self.memory.joins is None:
            self.memory.joins = self.value("joins", tenant=self.tenant_number, type=SAME_AS) is not None
        return self.memory.joins

    def _rows(self, entity: int, position: int) -> Callable[[str], _Rows]:
        """Return what finds the parts of collections of an entity as they were after a position."""
        return partial(_Rows, self.memory, entity, position)

    def _unpacked(self, packed: bytes, root: Ref, rules: Rules, entity: int, position: int) -> MergeState | None:
        """Return kept state of an entity, true after a position; `Corrupt` where it cannot be read."""
        try:
            return packed_state.unpack(packed, root, rules, self._rows(entity, position))
        except UNREADABLE as error:
            raise garbled(f"{root}: the state kept of it") from error

    def kept(self, root: Ref, through: int, rules: Rules) -> Kept | None:
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


def _ref(row: tuple[Any, ...]) -> Ref:
    """Return the entity that a row of an index names."""
    if type(row[0]) is not str or type(row[1]) is not str:
        raise garbled("An index of entities")
    return _MAKE(Ref, row)  # as `Ref` itself does, without a call between


class _Times:
    """The log's times by position, for a search by halves."""

    def __init__(self, view: SqlView, size: int) -> None:
        self._view, self._size = view, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        return int(self._view.value("recorded_at", id=self._view.base + position))

"""Observation: the tables of what was said of each entity, what it names, and what was said late."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import Ref
from woodrat.engines import codec
from woodrat.engines.cache import Known
from woodrat.engines.entity import Entities, EntityWrites, ref_of
from woodrat.engines.entry import Entries
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY
from woodrat.engines.tables import damaged
from woodrat.state import observation
from woodrat.state.asof import Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    pass

NAMED_MAX = 100_000
"""How many named observations of a tenant are held at hand; beyond that each is looked up."""

NOWHERE = (0, BEFORE_ALL, BEFORE_ALL)


class Observations(Entities, Entries):
    """Reading of observations."""

    _anchor_at: tuple[int, int, int]
    """Where a walk back begins that was asked for last: an entity, a position, and the answer."""

    def observation(self, name: bytes | str, through: int | None = None) -> Stored | None:
        """Return the observation with this digest or this short id."""
        head = codec.head_of_id(name) if isinstance(name, str) else codec.head(name)
        if head is not None:
            for row in self.select("said_by_digest", digest=head, **self.bounds(through=through)):
                found = self._stored(row)
                if name in (found.observation.digest, found.observation.id):
                    return found
        return None

    def known(self, observations: Sequence[Observation]) -> Collection[bytes]:
        """Return the digests of those of these observations that the log holds."""
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
        """Return the ids of a kind (observation, entity) that begin with a prefix, at most `limit`.

        They come in the order of their digests. The prefix is that of the kind and at least one character more.
        """
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
        """Return those of these digests that an observation names in `replaces`: those with `namers`."""
        heads = self._named_heads()
        if heads is None:
            targets = self.many_of(list(map(codec.head, digests)))
            heads = {row[0] for row in self.select("named_of", targets=targets, **self.bounds(through=through))}
        if not heads:
            return ()
        return {digest for digest in digests if codec.head(digest) in heads and self.namers(digest, through)}

    def namers(self, digest: bytes, through: int) -> Sequence[Stored]:
        """Return the observations that name this digest in `replaces`, by position."""
        heads = self._named_heads()
        if heads is not None and (not heads or codec.head(digest) not in heads):
            return ()
        rows = self.select("namers", target=codec.head(digest), **self.bounds(through=through))
        return [stored for stored in map(self._stored, rows) if digest in stored.observation.replaces]

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        """Return the observations of one entity, by position."""
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
        """Return the position of the last observation of an entity."""
        known = self.known_entity(entity)
        if known is None or known.first < 0 or known.first > through:
            return None
        start = self._anchor(known, through)
        if start <= through:
            return start
        return int(self.value("last_said", start=self.base + start, base=self.base, through=through))

    def touched(self, after: int, through: int) -> Collection[Ref]:
        """Return the entities with an observation after one position and up to another."""
        # Up to the end of the log it is the same question wherever that is.
        end = None if through >= self.head().position else through
        return {ref_of(row) for row in self.select("touched", **self.bounds(after, end))}

    def repeated(self) -> Sequence[int]:
        """Return the positions of observations whose digests begin as that of another, in order."""
        rows = self.comparing("repeated", base=self.base, **self.bounds())
        return [row[0] for row in rows]


class ObservationWrites(EntityWrites, Observations):
    """Writing of observations."""

    _said: list[tuple[int, Sequence[Meaning]]]
    """What this write says, in parts: the first position, and what it means from there on."""
    _before: dict[bytes, int]
    """By entity that it speaks of the position of the observation before."""
    _said_of: dict[bytes, list[Stored]] | None
    """By entity what it says, once that is asked for."""

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        """Return the observations of one entity, by position."""
        before = self._before.get(entity)
        if before is not None and after >= before:
            return [stored for stored in self.said_here(entity) if after < stored.position <= through]
        return super().observations(entity, after, through)

    def forget_said(self) -> None:
        """Forget what this write said: it is in the tables."""
        self._said.clear()
        self._before.clear()
        self._said_of = None

    def said_here(self, entity: bytes) -> Sequence[Stored]:
        """Return what this write says of an entity."""
        found = self._said_of
        if found is None:
            found = self._said_of = {}
            for first, meanings in self._said:
                for position, meaning in enumerate(meanings, first):
                    if isinstance(meaning, Observation):
                        found.setdefault(meaning.entity.digest, []).append(Stored(position, meaning))
        return found.get(entity, ())

    def index_observations(self, first: int, meanings: Sequence[Meaning]) -> None:
        """Index what entries from a position on mean, as far as they are observations."""
        late, naming, anchors, added = [], [], [], []
        met, changed, before, head_of = self._met, self._changed, self._before, codec.head
        self._said.append((first, meanings))
        self._said_of = None
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

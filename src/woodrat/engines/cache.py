"""Cache: what is known through a connection, as long as no other one writes.

What a tenant's log, schemas and entities were found to be is kept at hand. An engine sees a change by anybody else, and
a write that fails forgets what it may have changed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.records import Head, LastKept
from woodrat.merge.fold import MergeState

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTITIES_MAX = 10_000
"""Most entities of a tenant, with their merge states, that a writing connection caches."""
ENTITIES_READ_MAX = 2_000
"""Most entities of a tenant that a reading connection caches, also within a view: such connections may be many."""
SWITCHES = 32
"""Number of switches between tenants after which a connection bounds its cache of all tenants together."""


_entities_max = ENTITIES_MAX


def bound_entities(count: int) -> None:
    """Have connections of this process that write keep no more entities of a tenant at hand than so many."""
    global _entities_max
    _entities_max = count


UNASKED = LastKept(-1, -1, -1)
"""What is known of a state kept along a history that nobody asked for yet."""


class Readable(Protocol):
    """Tables of a tenant, as far as what is known of it reads on in them."""

    def select(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a query gives."""

    def value(self, query: str, **values: Any) -> Any:
        """Return the one value of the one row there is, or None."""


class Memories:
    """What is known of tenants through one connection."""

    def __init__(self, *, reads: bool = False) -> None:
        self._reads = reads
        self._memory: dict[TenantId, Memory] = {}
        self._tenant: TenantId | None = None
        self._switches = 0

    def of(self, tenant: TenantId) -> Memory:
        """Return what is known of a tenant."""
        if tenant != self._tenant:
            self._tenant = tenant
            self._switches += 1
            if self._switches % SWITCHES == 0:
                self._share()
        found = self._memory.get(tenant)
        if found is None:
            found = self._memory[tenant] = Memory(reads=self._reads)
        return found

    def _share(self) -> None:
        """Keep no more entities of all tenants together than of one; those of tenants known longest go first."""
        left = ENTITIES_READ_MAX if self._reads else _entities_max
        for tenant in reversed(self._memory):
            memory = self._memory[tenant]
            left -= len(memory.entities)
            if left < 0:
                memory.entities.clear()
                memory.large.clear()

    def forget(self) -> None:
        """Forget everything: what was known may not have come to be."""
        self._memory.clear()

    def forget_one(self, tenant: TenantId) -> None:
        """Forget what is known of one tenant."""
        self._memory.pop(tenant, None)


class Known:
    """One entity as the tables hold it, or will once the transaction ends."""

    __slots__ = ("along", "at", "digest", "first", "last", "number", "packed", "ref", "state", "until")

    def __init__(
        self,
        number: int,
        ref: Ref,
        digest: bytes,
        first: int,
        last: int,
        until: str,
        at: int | None = None,
        packed: bytes | None = None,
    ) -> None:
        self.number, self.ref, self.digest, self.first, self.last, self.until = number, ref, digest, first, last, until
        self.at = at
        """The position its merge state is true for."""
        self.packed = packed
        """Its merge state, until someone needs it."""
        self.state: MergeState | None = None
        self.along: LastKept | None = UNASKED
        """The amounts of the last state kept along its history, once somebody asked."""


class Memory:
    """What is known of a tenant as long as nobody else writes to the file."""

    def __init__(self, *, reads: bool = False) -> None:
        self._reads = reads
        self.tables: Readable
        """The tables of the view that uses it now, or did last."""
        self.changes: int | None = None
        """How many changes the tenant had when this was known, where an engine counts them."""
        self.head: Head | None = None
        self.number: Any = None
        self.joins: bool | None = None
        """Whether any `same_as` was ever said."""
        self.at_hand: dict[str, dict[Any, Any]] = {}
        """By index what readers made of it, until a row of it changes."""
        self.entities: OrderedDict[bytes, Known] = OrderedDict()
        self.large: set[bytes] = set()
        """Those of them that are too large to stay."""
        self.named: set[int] | frozenset[int] | None = None
        """What observations name in `replaces`, by the beginning of the digest, unless it is too much to hold."""
        self.names_many = False
        self.logs: dict[str, int] = {}
        self.cloned: int | None = None
        self.notes: dict[str, bytes | None] = {}
        """What is noted about derived data, by name, once it was asked for, where an engine keeps that."""
        self.latest: dict[str, int] = {}
        """Position of the last entry of a rare kind, once it was asked for; the one before all without any."""

    def forget(self) -> None:
        """Forget what is derived."""
        self.joins = self.named = None
        self.at_hand.clear()
        self.notes.clear()
        self.entities.clear()
        self.large.clear()

    @property
    def most(self) -> int:
        """How many entities stay at hand."""
        return ENTITIES_READ_MAX if self._reads else _entities_max

    @property
    def is_full(self) -> bool:
        """Whether more entities are at hand than may stay."""
        return len(self.entities) > self.most

    @property
    def is_overfull(self) -> bool:
        """Whether twice as many entities are at hand as may stay."""
        return len(self.entities) > 2 * self.most

    def trim(self) -> None:
        """Forget the entities used least recently, beyond a bound, and all that are large."""
        while self.large:
            self.entities.pop(self.large.pop(), None)
        for _ in range(len(self.entities) - self.most):
            self.entities.popitem(last=False)

"""Known: what is known through a connection, as long as no other one writes.

What a tenant's log, schemas and entities were found to be is kept at hand; a change by anybody else is seen by the data
version, and a write that fails forgets what it may have changed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol

import apsw

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import Head, LastKept
from woodrat.engines.sqlite.peek import Glancing
from woodrat.merge.fold import MergeState
from woodrat.state.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable

ENTITIES_MAX = 10_000
"""How many entities of a tenant the connection that writes keeps at hand, with their merge states."""
ENTITIES_READ_MAX = 2_000
"""How many of them a connection that reads keeps at hand, also while a view lasts: there may be many such."""
SWITCHES = 32
"""After how many changes from one tenant to another a connection looks at how much it keeps of all of them."""


UNASKED = LastKept(-1, -1, -1)
"""What is known of a state kept along a history that nobody asked for yet."""


class Change(Protocol):
    """A write, as far as undoing it is concerned."""

    @property
    def has_changed(self) -> bool:
        """Whether it has changed anything."""


class Connected:
    """A connection, and what is known through it as long as no other connection writes."""

    def __init__(self, connection: apsw.Connection, *, reads: bool = False) -> None:
        self.connection = connection
        self._reads = reads
        self.cursor = connection.cursor()
        """For statements that are done with once they return; a new cursor for each would cost half as much again."""
        self._version: object = None
        self._memory: dict[TenantId, Memory] = {}
        self._tenant: TenantId | None = None
        self._switches = 0
        self.looking: Glancing | None = None
        """What looks at entities through it, once something did."""

    def glancing(self, named: dict[str, str], schemas: Callable[[TenantId], dict[str, tuple[int, Schema]]]) -> Glancing:
        """Return what looks at entities through this connection; `schemas` are those in force in a tenant."""
        self.looking = Glancing(self.connection, named, schemas)
        return self.looking

    def remember(self, tenant: TenantId) -> Memory:
        """Return what is known of a tenant; nothing when someone else has written since."""
        # To ask in SQL begins what a view reads; a writer has begun already, and is told without a statement.
        version = self.cursor.execute("PRAGMA data_version").get if self._reads else self.connection.data_version()
        if version != self._version:
            self._memory.clear()
            self._version = version
        if tenant != self._tenant:
            self._tenant = tenant
            self._switches += 1
            if self._switches % SWITCHES == 0:
                self._share()
        found = self._memory.get(tenant)
        if found is None:
            found = self._memory[tenant] = Memory(reads=self._reads)
        return found

    def committed(self) -> None:
        """Take note that a write of this connection itself was committed: what it knows is what is there now."""
        self._version = self.connection.data_version()

    def _share(self) -> None:
        """Keep no more entities of all tenants together than of one; those of tenants known longest go first."""
        left = ENTITIES_READ_MAX if self._reads else ENTITIES_MAX
        for tenant in reversed(self._memory):
            memory = self._memory[tenant]
            left -= len(memory.entities)
            if left < 0:
                memory.entities.clear()
                memory.large.clear()

    def undo(self, write: Change | None, *statements: str) -> None:
        """Undo a write that failed; one that changed nothing leaves what is known as it is."""
        if write is None or write.has_changed:
            self.forget()
        for statement in statements:
            # A full disk and the like end the whole transaction by themselves; then there is nothing to go back to.
            if not self.connection.getautocommit():
                self.connection.execute(statement)

    def forget(self) -> None:
        """Forget everything: what was known may not have come to be."""
        self._memory.clear()


class Known:
    """One entity as the tables hold it, or will once the transaction ends."""

    __slots__ = ("along", "at", "first", "last", "number", "packed", "ref", "state", "until")

    def __init__(
        self, number: int, ref: Ref, first: int, last: int, until: str, at: int | None, packed: bytes | None
    ) -> None:
        self.number, self.ref, self.first, self.last, self.until = number, ref, first, last, until
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
        self.head: Head | None = None
        self.number: int | None = None
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
        self.latest: dict[str, int] = {}
        """Position of the last entry of a rare kind, once it was asked for; the one before all without any."""

    def forget(self) -> None:
        """Forget what is derived."""
        self.joins = self.named = None
        self.at_hand.clear()
        self.entities.clear()
        self.large.clear()

    @property
    def is_full(self) -> bool:
        """Whether more entities are at hand than may stay."""
        return len(self.entities) > (ENTITIES_READ_MAX if self._reads else ENTITIES_MAX)

    def trim(self) -> None:
        """Forget the entities used least recently, beyond a bound, and all that are large."""
        while self.large:
            self.entities.pop(self.large.pop(), None)
        while self.is_full:
            self.entities.popitem(last=False)

"""Glancing: one entity as it is now, by one statement.

A statement is consistent by itself. What it does not tell (where the log ends, which schemas are in force, whether
anything was ever joined) is known from before, and counts as long as the data version after the statement is the one it
was learnt at: the version never goes back, so the statement saw the same. Otherwise all of it is learnt anew in one
transaction; schemas only where the log has grown by one since.

An entity as it was takes two or three statements: the state kept before, and what was said since. They saw the same if
the data version after the last of them is still the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, Glance, next_prefix
from woodrat.engines.sql import codec
from woodrat.state import entry_rows, observation
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import apsw

    from woodrat.canon.ids import TenantId
    from woodrat.state.schema import Schema

    Schemas = Callable[[TenantId], Mapping[str, tuple[int, Schema]]]
    """Reads the schemas in force, in the transaction that is open; with each the position of the last of its type."""


UNJOINED_MAX = 10_000
"""How many entities that no `same_as` names are remembered."""


class _Present:
    """What is known of a tenant beside its entities, at one data version."""

    __slots__ = ("head", "joins", "names", "number", "schemas", "seen", "since", "unjoined")

    def __init__(self, number: int) -> None:
        self.number = number
        self.head = BEFORE_ALL
        """The last position of the log."""
        self.joins = False
        """Whether any `same_as` was ever said."""
        self.unjoined: set[bytes] = set()
        """Entities that no `same_as` names, as far as it was asked."""
        self.names = False
        """Whether any observation names another, whoever's it is."""
        self.schemas: Mapping[str, Schema] = {}
        """The schema in force of every type that has one."""
        self.since: Mapping[str, int] = {}
        """The position of the last schema of each of these types, from which on it is in force."""
        self.seen = -1
        """The data version at which all of this was so."""


class Glancing:
    """Looks at entities through one connection that only reads."""

    def __init__(self, connection: apsw.Connection, named: Mapping[str, str], schemas: Schemas) -> None:
        self._connection = connection
        self._named = named
        self._schemas = schemas
        self._run = connection.cursor().execute  # one cursor for all: what it answers is taken at once
        self._version = connection.data_version
        self._by_key = named["glance"]
        self._known: dict[TenantId, _Present] = {}

    def look(self, tenant: TenantId, entity: Ref | str) -> Glance | None:
        """Return an entity, or one by its id, as it is now; `None` where only a view can tell."""
        present = self._known.get(tenant)
        if present is not None:
            if type(entity) is Ref:  # mostly; what `_row` does is written out, as it is done so often
                row = self._run(self._by_key, (present.number, entity[0], entity[1])).get
            else:
                row = self._row(present, entity)
            if self._version() == present.seen:
                return self._told(present, entity, row)
        self._run("BEGIN")
        try:
            present = self._learn(tenant, present)
            return None if present is None else self._told(present, entity, self._row(present, entity))
        finally:
            if not self._connection.getautocommit():
                self._run("ROLLBACK")

    def schemas(self, tenant: TenantId) -> Mapping[str, Schema] | None:
        """Return the schemas in force now, by type; `None` where only a view can tell."""
        present = self._known.get(tenant)
        if present is not None:
            self._run("PRAGMA data_version").fetchall()  # only a statement looks whether others have written
            if self._version() == present.seen:
                return present.schemas
        self._run("BEGIN")
        try:
            present = self._learn(tenant, present)
            return None if present is None else present.schemas
        finally:
            if not self._connection.getautocommit():
                self._run("ROLLBACK")

    def look_back(self, tenant: TenantId, entity: Ref, position: int | None, effective: str | None) -> Glance | None:
        """Return an entity as it was at a position, or at the end of the log, of what was true by an effective time.

        `None` where only a view can tell.
        """
        present = self._known.get(tenant)
        if present is not None:
            found = self._back(present, entity, position, effective)
            if self._version() == present.seen:
                return found
        self._run("BEGIN")
        try:
            present = self._learn(tenant, present)
            return None if present is None else self._back(present, entity, position, effective)
        finally:
            if not self._connection.getautocommit():
                self._run("ROLLBACK")

    def _back(self, present: _Present, ref: Ref, position: int | None, effective: str | None) -> Glance | None:
        through = present.head if position is None else position
        if not 0 <= through <= present.head or present.since.get(ref[0], BEFORE_ALL) > through:
            return None
        if present.joins and self._is_joined(present, ref):
            return None
        if effective is None:
            return self._at(present, ref, through)
        return self._by(present, ref, through, effective)

    def _at(self, present: _Present, ref: Ref, through: int) -> Glance | None:
        row = self._run(self._named["glance_at"], (present.number, *ref, through)).get
        if row is None:
            return None
        last, packed, after, version, before, anchor = row
        schema = present.schemas.get(ref[0])
        if packed is not None:
            return Glance(ref, through, last, packed, schema)
        start = last if last <= through or anchor is None else anchor
        if after is None:
            after = version = BEFORE_ALL
        since = self._since(present, start, after, through)
        if since is None or (before is None and not since):
            return None
        return Glance(ref, through, since[-1][0] if since else version, before, schema, [one for _, one in since])

    def _by(self, present: _Present, ref: Ref, through: int, effective: str) -> Glance | None:
        row = self._run(self._named["glance_by"], (present.number, *ref, effective)).get
        if row is None:
            return None
        last, packed, after, before, number, end, start = row
        if last > through:
            return None
        schema = present.schemas.get(ref[0])
        if packed is not None:
            return Glance(ref, through, last, packed, schema)
        if before is None or after > through:
            return None
        if end is None or end >= through:
            end, start = through, last
        since = self._since(present, start, after, through, effective)
        if since is None:
            return None
        if end < through:
            base = codec.base(present.number)
            if self._run(self._named["is_late"], (number, effective, base + end + 1, base + through)).get is not None:
                return None  # what is said late is rare, and a view folds it in
        return Glance(ref, through, last, before, schema, [one for _, one in since])

    def _since(
        self, present: _Present, start: int, after: int, through: int, effective: str | None = None
    ) -> list[tuple[int, Observation]] | None:
        """Return what was said of an entity after a state was kept, with positions; `None` if a body is gone or odd.

        `None` too where an observation names one of these: whether it stands then depends on both.
        """
        if start <= after:
            return []
        base = codec.base(present.number)
        asked = {"start": base + start, "base": base, "after": after, "through": through}
        rows = self._run(self._named["chain"], asked).fetchall()
        found: list[tuple[int, Observation]] = []
        by = b"" if effective is None else effective.encode()
        for id, body, head in reversed(rows):
            if body is None:
                return None
            if effective is not None and not observation.counts_by(body, by):
                continue
            try:
                said = observation.stored(body)
            except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
                return None  # a view says what is wrong with it
            if codec.head(said.digest) != head:
                return None
            if effective is None or said.op == RETRACT or said.valid_from <= effective:
                found.append((id - base, said))
        if present.names and found:
            heads = ",".join([str(codec.head(said.digest)) for _, said in found])
            if self._run(self._named["are_named"], (f"[{heads}]",)).get is not None:
                return None
        return found

    def _row(self, present: _Present, entity: Ref | str) -> tuple[Any, ...] | None:
        if type(entity) is Ref:
            return self._run(self._by_key, (present.number, entity[0], entity[1])).get  # type: ignore[no-any-return]
        assert isinstance(entity, str)
        asked = (codec.head_of_id(entity), present.number)
        rows: list[tuple[Any, ...]] = self._run(self._named["glance_by_digest"], asked).fetchall()
        return next((row for row in rows if Ref(row[3], row[4]).id == entity), None)

    def _told(self, present: _Present, entity: Ref | str, row: tuple[Any, ...] | None) -> Glance | None:
        if row is None:
            return None
        last, at, packed = row if len(row) == 3 else row[:3]
        if at is None or not 0 <= last <= at <= present.head:
            return None
        ref = entity if type(entity) is Ref else Ref(row[3], row[4])
        if present.joins and self._is_joined(present, ref):
            return None
        return Glance(ref, present.head, last, packed, present.schemas.get(ref[0]))

    def _is_joined(self, present: _Present, ref: Ref) -> bool:
        """Return whether any `same_as` names an entity."""
        # A second statement may see more than the first: what it does not find was not there before either.
        unjoined, digest = present.unjoined, ref.digest
        if digest in unjoined:
            return False
        first = entry_rows.digest_prefix(digest)
        if self._run(self._named["is_joined"], (present.number, SAME_AS, first, next_prefix(first))).get is not None:
            return True
        if len(unjoined) >= UNJOINED_MAX:
            unjoined.clear()
        unjoined.add(digest)
        return False

    def _learn(self, tenant: TenantId, before: _Present | None) -> _Present | None:
        """Learn everything but the entity, within a transaction."""
        number = self._run(self._named["tenant"], {"name": tenant}).get if before is None else before.number
        if number is None:
            return None
        found = before or _Present(number)
        base = codec.base(number)
        after = found.head if before is not None else BEFORE_ALL
        asked = (number, SAME_AS, base, base + (1 << codec.TENANT_BITS) - 1, base + after + 1)
        head, joins, changed, names = self._run(self._named["present"], asked).get
        found.seen = -1  # until all of it is known
        found.unjoined = set()
        found.head, found.joins = (BEFORE_ALL if head is None else head - base), joins is not None
        found.names = names is not None
        if before is None or changed is not None or found.head < after:
            schemas = self._schemas(tenant)
            found.schemas = {type: schema for type, (_, schema) in schemas.items()}
            found.since = {type: last for type, (last, _) in schemas.items()}
        found.seen = self._connection.data_version()
        self._known[tenant] = found
        return found

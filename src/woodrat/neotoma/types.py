"""Types: which types of a tenant have a schema, and whether it is that of the pack `neotoma`.

The types that Neotoma publishes get the schemas of the pack with their first record. A tenant's own schema for such a
type takes precedence, with its own identity rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from woodrat.api.ledger import with_first_schemas
from woodrat.ledger import entry_index
from woodrat.state import builtin, packs
from woodrat.state.packs import NEOTOMA
from woodrat.state.schema import winning

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.canon.ids import TenantId
    from woodrat.engines.engine import Engine
    from woodrat.state.schema import Schema


PACK, BUILT_IN, OWN = "pack", "built in", "own"
"""The origin of a schema."""


class Types(NamedTuple):
    """The types of a tenant that have a schema in the log."""

    stamp: bytes | None
    """The engine's stamp before the lookup: while it is unchanged, there was no commit."""
    position: int
    """Where the log ended; before all where that was not looked at."""
    in_force: Mapping[str, Schema]
    """The schemas in force, by type."""

    def origin(self, entity_type: str) -> str:
        """Return the origin of a type's schema; a type without a schema counts as built in."""
        schema = self.in_force.get(entity_type)
        if schema is None or schema == builtin.schemas().get(entity_type):
            return BUILT_IN
        return PACK if schema == published().get(entity_type) else OWN


def published() -> Mapping[str, Schema]:
    """Return the schemas of the pack."""
    return packs.schemas(NEOTOMA)


def own_schema(ledger: Past, entity_type: str) -> Schema | None:
    """Return the schema of a type outside the pack: the tenant's own, or a built-in one."""
    found = _types(ledger)
    if entity_type not in published():
        return found.in_force.get(entity_type) or builtin.schemas().get(entity_type)
    return found.in_force[entity_type] if found.origin(entity_type) == OWN else None


def of_pack(ledger: Past, entity_type: str) -> Schema | None:
    """Return the pack's schema of a type, where it is in force or will be with the first record."""
    schema = published().get(entity_type)
    return None if schema is None or _types(ledger).origin(entity_type) == OWN else schema


def offered(ledger: Ledger) -> Ledger:
    """Return the same ledger, which registers the pack's schema of a type with its first record."""
    return with_first_schemas(ledger, published())


def _types(ledger: Past) -> Types:
    """Return the types that have a schema; looked up again only when the log has a new one."""
    context = ledger.context
    by_tenant = _by_engine.get(context.engine)
    if by_tenant is None:
        by_tenant = _by_engine[context.engine] = {}
    stamp = context.engine.stamp()
    found = by_tenant.get(context.tenant)
    if found is not None and stamp is not None and found.stamp == stamp:
        return found
    with context.engine.view(context.tenant) as view:
        head = view.head().position
        stands = found is not None and found.position <= head
        if found is not None and stands and next(view.entries(found.position, kinds={"schema"}), None) is None:
            found = Types(stamp, head, found.in_force)
        else:
            named = entry_index.schema_types(view, head)
            schemas = {name: winning(entry_index.schemas(view, name, head)) for name in named}
            found = Types(stamp, head, {name: schema for name, schema in schemas.items() if schema is not None})
    by_tenant[context.tenant] = found
    return found


_by_engine: WeakKeyDictionary[Engine, dict[TenantId, Types]] = WeakKeyDictionary()

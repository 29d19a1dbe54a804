"""Types: which types of a tenant have a schema, and whether it is that of the pack `neotoma`.

The types that Neotoma publishes get the schemas of the pack with their first record. A tenant that registered a schema
of its own for such a type keeps it, with its own identity rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from woodrat.ledger import entry_index, quick_reads
from woodrat.ledger import schemas as ledger_schemas
from woodrat.state import builtin, packs
from woodrat.state.packs import NEOTOMA
from woodrat.state.schema import winning

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, View
    from woodrat.state.schema import Schema


PACK, BUILT_IN, OWN = "pack", "built in", "own"
"""Where a schema comes from."""


class Types(NamedTuple):
    """The types of a tenant that have a schema in the log."""

    stamp: bytes | None
    """The engine's stamp before they were looked up: while it stays, nothing was committed."""
    position: int
    """Where the log ended."""
    origins: Mapping[str, str]
    """Where the schema in force comes from, by type."""


def published() -> Mapping[str, Schema]:
    """Return the schemas of the pack."""
    return packs.schemas(NEOTOMA)


def has_own(ledger: Past, entity_type: str) -> bool:
    """Return whether a schema that is not in the pack describes a type: the tenant's own, or a built-in one."""
    origin = _types(ledger).origins.get(entity_type, BUILT_IN if entity_type in builtin.TYPES else None)
    return origin == OWN or (origin == BUILT_IN and entity_type not in published())


def of_pack(ledger: Past, entity_type: str) -> Schema | None:
    """Return the pack's schema of a type, where it is in force or will be with the first record."""
    schema = published().get(entity_type)
    return None if schema is None or _types(ledger).origins.get(entity_type) == OWN else schema


def adopt(ledger: Ledger, entities: Iterable[Any]) -> None:
    """Register the pack's schemas of the types of these records, where they are not in force yet."""
    origins = _types(ledger).origins
    missing = {name for name in _named(entities) if origins.get(name, BUILT_IN) == BUILT_IN}
    if missing:
        ledger_schemas.add_pack(ledger.context, NEOTOMA, types=missing)


def are_known(ledger: Ledger, entities: Iterable[Any]) -> bool:
    """Return whether the types of these records need no schema first, by what was looked up last; reads nothing."""
    found = _by_engine.get(ledger.context.engine, {}).get(ledger.context.tenant)
    origins: Mapping[str, str] = {} if found is None else found.origins
    return all(origins.get(name, BUILT_IN) != BUILT_IN for name in _named(entities))


def _named(entities: Iterable[Any]) -> set[str]:
    """Return the types of these records that are in the pack."""
    types = {entity.get("entity_type") for entity in entities if isinstance(entity, dict)}
    return {name for name in types if isinstance(name, str) and name in published()}


def _types(ledger: Past) -> Types:
    """Return the types that have a schema; looked up again only when the log has a new one."""
    context = ledger.context
    by_tenant = _by_engine.get(context.engine)
    if by_tenant is None:
        by_tenant = _by_engine[context.engine] = {}
    stamp = quick_reads.stamp(context.engine)
    found = by_tenant.get(context.tenant)
    if found is None or stamp is None or found.stamp != stamp:
        with context.engine.view(context.tenant) as view:
            head = view.head().position
            stands = found is not None and found.position <= head
            if found is not None and stands and next(view.entries(found.position, kinds={"schema"}), None) is None:
                found = Types(stamp, head, found.origins)
            else:
                origins = {name: _origin(view, name, head) for name in entry_index.schema_types(view, head)}
                found = Types(stamp, head, origins)
        by_tenant[context.tenant] = found
    return found


def _origin(view: View, entity_type: str, head: int) -> str:
    """Return where the schema in force comes from."""
    in_force = winning(entry_index.schemas(view, entity_type, head))
    if in_force is not None and in_force == published().get(entity_type):
        return PACK
    return BUILT_IN if in_force == builtin.schemas().get(entity_type) else OWN


_by_engine: WeakKeyDictionary[Engine, dict[TenantId, Types]] = WeakKeyDictionary()

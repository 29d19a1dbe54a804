"""Tenant routes: health of a tenant's log and indexes, and its keys, for administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.api.parameters import TEXT
from woodrat.errors import NotFound, shown
from woodrat.ledger.indexer import IndexPosition
from woodrat.ledger.refold import Waiting
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.server.access import MANAGE
from woodrat.server.keys import KEYS_TENANT, Key, Keyring
from woodrat.server.route import Route, in_body, in_path

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Health(Record):
    """State of a tenant's log and derived data."""

    version: str
    """The server's version."""
    engine: str
    """The engine, such as `sqlite`."""
    tenant: str
    """The tenant."""
    position: int
    """Position of its last entry."""
    recorded_at: str | None
    """When the last entry was recorded; None in an empty log."""
    indexes: tuple[IndexPosition, ...]
    """Position of each index; they lag a little."""
    refolding: tuple[Waiting, ...]
    """Types whose states or identifying values are being recomputed after a new version of their schema."""


def health(ledger: Ledger) -> Health:
    """Return the state of a tenant's log and indexes."""
    from woodrat import __version__
    from woodrat.api.trailing_indexes import TRAILING
    from woodrat.ledger import indexer, refold

    context = ledger.context
    with context.engine.view(ledger.tenant) as view:
        head = view.head()
        return Health(
            __version__,
            context.engine.name,
            ledger.tenant,
            head.position,
            head.recorded_at,
            indexer.positions(view, TRAILING),
            refold.waiting(view),
        )


def list_keys(ledger: Ledger) -> tuple[Key, ...]:
    """Return the keys of a tenant, without their secrets, in the order of creation."""
    return tuple(key for key in _keyring(ledger).all() if key.tenant == ledger.tenant)


def revoke(ledger: Ledger, key: str, reason: str | None = None) -> Key:
    """Revoke a key of the tenant; it is invalid from now on."""
    keyring = _keyring(ledger)
    if not any(one.id == key and one.tenant == ledger.tenant for one in keyring.all()):
        raise NotFound(f"{shown(key)}: unknown key. Nothing was changed. See GET /v1/keys.")
    return keyring.revoke(key, reason)


def _keyring(ledger: Ledger) -> Keyring:
    """Return the keys of a ledger's database, managed as its agent."""
    from woodrat.api.ledger import Ledger as Opened

    context: Any = ledger.context
    kept = Opened(
        context.engine, tenant=KEYS_TENANT, agent=ledger.agent, clock=context.clock, policies=context.policies
    )
    return Keyring(kept, context.clock)


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/v1/health",
        "health",
        health,
        "Show the state of the log and its indexes.",
        moment=False,
    ),
    Route(
        "GET", "/v1/keys", "keys_list", list_keys, "List the keys of the tenant, without secrets.", MANAGE, moment=False
    ),
    Route(
        "POST",
        "/v1/keys/{key}/revoke",
        "keys_revoke",
        revoke,
        "Revoke a key of the tenant: it is invalid from now on.",
        MANAGE,
        (
            in_path("key", "id of the key", "key_aaaaaaaaaaaaaaaaaaaaaaaaaa"),
            in_body("reason", TEXT, "why it is revoked"),
        ),
        moment=False,
        alone=True,
        example={"reason": "laptop lost"},
    ),
)
"""Routes about the tenant itself."""

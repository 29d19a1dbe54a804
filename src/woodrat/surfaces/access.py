"""Access: who calls, for which tenant, as which agent, and what they may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from woodrat.frozen import dataclass

if TYPE_CHECKING:
    from woodrat.surfaces.http.routes import Route


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: what their key says, never what they say."""

    tenant: str
    """Whose ledger."""
    agent: str
    """What provenance shows."""


class Access(Protocol):
    """Tells callers apart."""

    def caller(self, authorization: str | None) -> Caller:
        """Return who calls, by the header they sent; `Forbidden` for nobody we know."""

    def check(self, caller: Caller, route: Route, given: dict[str, Any]) -> None:
        """Raise `Forbidden` unless the caller may do this."""


class Open:
    """One tenant, one agent, everything allowed: for a server that only this machine can reach."""

    def __init__(self, tenant: str, agent: str) -> None:
        self._caller = Caller(tenant, agent)

    def caller(self, authorization: str | None) -> Caller:
        return self._caller

    def check(self, caller: Caller, route: Route, given: dict[str, Any]) -> None:
        return

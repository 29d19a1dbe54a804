"""Tenants: the ledgers of a server, one for each tenant and agent, and the signers of their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.api.ledger import Ledger
from woodrat.api.maintenance import check_put_back, signing_for
from woodrat.canon.ids import TenantId
from woodrat.server import logs
from woodrat.server.access import OWN_TENANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine
    from woodrat.merge import Policy
    from woodrat.proofs.verbs.signer import Signing
    from woodrat.server.access import Caller


LOOKED_AT_MAX: Final = 500
"""Number of tenants that one probe checks."""


class Tenants:
    """The ledgers on one engine, opened on demand."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        policies: Mapping[str, Policy],
        *,
        strict: bool | str = False,
        proofs: str | None = None,
        redact: str | None = None,
    ) -> None:
        self._engine, self._clock, self._policies = engine, clock, policies
        self._strict, self._proofs, self._redact = strict, proofs, redact
        self._ledgers: dict[tuple[str, str], Ledger] = {}
        self._signings: dict[str, Signing] = {}
        self._unlooked: list[str] | None = None
        self._refused: Sequence[TenantId] = ()

    def ledger(self, caller: Caller) -> Ledger:
        """Return the ledger of a caller's tenant and agent."""
        return self.of(caller.tenant, caller.agent)

    def of(self, tenant: str, agent: str) -> Ledger:
        """Return the ledger of a tenant and an agent."""
        ledger = self._ledgers.get((tenant, agent))
        if ledger is None:
            ledger = self._ledgers[tenant, agent] = self._open(tenant, agent)
        return ledger

    def _open(self, tenant: str, agent: str) -> Ledger:
        check_put_back(self._engine, tenant, self._proofs)
        return Ledger(
            self._engine,
            tenant=tenant,
            agent=agent,
            clock=self._clock,
            policies=self._policies,
            strict=self._strict,
            signing=self._signing(tenant),
            keys=self._proofs,
            redact=self._redact,
            served=True,
        )

    def _signing(self, tenant: str) -> Signing | None:
        """Return the signer of a tenant's log, shared by all its agents; None without signing keys."""
        if self._proofs is None:
            return None
        signing = self._signings.get(tenant)
        if signing is None:
            signing = self._signings[tenant] = signing_for(
                self._engine,
                tenant,
                self._proofs,
                self._clock,
                every=None,
                tell=lambda text: logs.event("checkpoint", tenant=tenant, problem=text),
            )
        return signing

    def refused(self) -> Sequence[str]:
        """Return tenants whose writes are refused because the signing keys remember more than their logs hold.

        Each call checks some tenants that no call has checked yet, and again the faulty ones it returned before.
        """
        if self._proofs is None:
            return ()
        from woodrat.proofs.verbs.keys import Keys
        from woodrat.proofs.verbs.signer import refusals

        if self._unlooked is None:
            self._unlooked = [tenant for tenant in self._engine.tenants() if not tenant.startswith(OWN_TENANTS)]
        now, self._unlooked = self._unlooked[:LOOKED_AT_MAX], self._unlooked[LOOKED_AT_MAX:]
        self._refused = tuple(refusals(self._engine, Keys(self._proofs), [*self._refused, *map(TenantId, now)]))
        return self._refused

    def close(self) -> None:
        """Finish pending signatures."""
        for signing in self._signings.values():
            signing.close()

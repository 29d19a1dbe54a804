"""Receipt: the table of what idempotency keys were used for."""

from __future__ import annotations

from collections.abc import Iterator

from woodrat.engines.records import Receipt
from woodrat.engines.tables import Tables, WritableTables


class Receipts(Tables):
    """Reading of receipts."""

    def receipt(self, agent: str, key: str) -> Receipt | None:
        """Return what an agent's idempotency key was used for."""
        row = self.first_row("receipt", tenant=self.tenant_number, agent=agent, key=key)
        return None if row is None else Receipt(*row)

    def receipts(self) -> Iterator[tuple[str, str, Receipt]]:
        """Yield what idempotency keys were used for, as (agent, key, receipt), by agent and key."""
        for agent, key, *receipt in self.select("receipts", tenant=self.tenant_number):
            yield agent, key, Receipt(*receipt)


class ReceiptWrites(WritableTables, Receipts):
    """Writing of receipts."""

    def claim(self, agent: str, key: str, receipt: Receipt) -> None:
        """Note what an idempotency key was used for."""
        self.run(
            "add_receipt",
            tenant=self.tenant_number,
            agent=agent,
            key=key,
            request=receipt.request,
            report=receipt.report,
            nonce=receipt.nonce,
        )

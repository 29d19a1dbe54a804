"""Tables: the rows of one tenant, reached by statements that have names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.port import BEFORE_ALL

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.sql.cache import Memory

ALL: Final = (1 << 62) - 1
"""The limit of a statement that gives every row there is."""


class Tables:
    """What one tenant has in the tables, within one transaction. An engine says how statements are run."""

    queries: dict[str, str]
    """Statements by name."""
    memory: Memory
    """What is known of the tenant."""
    name: TenantId
    number: Any
    """What the tables call the tenant; none for one that has written nothing."""
    base: int
    """What the ids of its entries begin at: an id is this and a position."""
    last_text: Any
    """What comes after every type and key."""

    def select(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        raise NotImplementedError

    def value(self, query: str, **values: Any) -> Any:
        """Return the one value of the one row there is, or None."""
        raise NotImplementedError

    def first_row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row there is, or None."""
        raise NotImplementedError

    def stream(self, query: str, after: int, through: int | None, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a query gives of entries between two positions, a bounded part of them at a time."""
        raise NotImplementedError

    def bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        """Return the ids of the entries between two positions, as a query takes them."""
        raise NotImplementedError

    def many_of(self, values: Sequence[int]) -> Any:
        """Return numbers as a query takes many."""
        raise NotImplementedError

    def ranges_of(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
        """Return pairs of keys, from the first to before the last, as a query takes many."""
        raise NotImplementedError

    @property
    def tenant_number(self) -> Any:
        """What the tables call the tenant; 0 for one that has written nothing."""
        return self.number or 0

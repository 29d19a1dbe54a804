"""Tables: the rows of one tenant within one transaction, reached by statements that have names.

This is all that SQLite and PostgreSQL do differently for a view or a write; everything above is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Corrupt

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.cache import Memory
    from woodrat.engines.records import Mismatch

ALL: Final = (1 << 62) - 1
"""The limit of a statement that gives every row there is."""


class Tables:
    """What one tenant has in the tables. An engine says how statements are run."""

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

    def select_each(self, query: str, several: Sequence[dict[str, Any]]) -> Sequence[Iterable[tuple[Any, ...]]]:
        """Return the rows that a query gives for each of several sets of values."""
        return [self.select(query, **values) for values in several]

    def stream(self, query: str, after: int, through: int | None, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a query gives of entries between two positions, a bounded part of them at a time."""
        raise NotImplementedError

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a statement of `comparison.sql` gives, a bounded part of them at a time."""
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

    def structure(self) -> list[Mismatch]:
        """Check what holds the tables, and that every row belongs to a tenant and to a position of its log."""
        raise NotImplementedError

    def first_row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row there is, or None."""
        for row in self.select(query, **values):
            return row
        return None

    def value(self, query: str, **values: Any) -> Any:
        """Return the one value of the one row there is, or None; what a write has not written yet is not looked at."""
        raise NotImplementedError

    @property
    def tenant_number(self) -> Any:
        """What the tables call the tenant; 0 for one that has written nothing."""
        return self.number or 0


class WritableTables(Tables):
    """The same within a write."""

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each of these rows."""
        raise NotImplementedError

    def run(self, query: str, **values: Any) -> None:
        """Run a statement that gives nothing back."""
        raise NotImplementedError

    def enrol(self) -> None:
        """Give the tenant what the tables call it by, before its first entry."""
        raise NotImplementedError

    def erasing(self) -> AbstractContextManager[None]:
        """Note that a purge is due, and open the one way by which bodies, nonces and receipts go, while this lasts."""
        raise NotImplementedError

    def drop_tables(self) -> None:
        """Take away all rows that are derived from the tenant's log."""
        raise NotImplementedError


def damaged(position: int, what: str) -> Corrupt:
    """Return the error for something of the log that is not there, or not what was written."""
    return Corrupt(
        f"Position {position}: its {what} is gone or is not what was written. Stop writing, copy the file, and restore "
        "a backup.",
        {"position": position, "damage": what},
    )

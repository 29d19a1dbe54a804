"""View: consistent reading of one tenant.

What it answers stands with the table it is read from. `through` is always inclusive and bounds an answer to what the
log held at that position, so that every read can be asked of the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from woodrat.engines.entry import Entries
from woodrat.engines.index import Indexes
from woodrat.engines.observation import NOWHERE
from woodrat.engines.receipt import Receipts
from woodrat.engines.state import States

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules


class View(States, Entries, Indexes, Receipts):
    """Consistent reading of one tenant."""

    multiplies = False
    """Whether the engine multiplies vectors, so that whoever searches them need not hold them."""

    def begin(self) -> None:
        """Begin without anything looked up; an engine calls it once the tables are there."""
        self.memory.tables = self
        self._anchor_at = NOWHERE
        self._missing = set()

    def derived(self, table: str, name: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a derived table in the order of their keys, as they compare with those of any engine.

        Entities come as type and key, and ids as positions. `name` is that of an ordered index.
        """
        bounds = self.bounds()
        for row in self.comparing(f"derived_{table}", tenant=self.tenant_number, base=self.base, name=name, **bounds):
            yield tuple(row)

    def misshown(self, folds: Iterable[tuple[Ref, MergeState | None, Rules | None, int]]) -> Iterator[Ref]:
        """Yield the entities of which plain SQL shows something else beside the state: fields, or the version.

        Of each come its state and rules, if it is the smallest of a fold, and the last position that touched that.
        Where an engine shows nothing, nothing is wrong.
        """
        return iter(())

    def products(self, index: str, vector: bytes) -> tuple[bytes, bytes]:
        """Return the keys of an index of vectors, one after the other, and the dot products of a vector with each.

        A product is four bytes, big-endian and signed. They are exact, and come in no particular order. Vectors of
        another dimension are left out. Only where the engine multiplies.
        """
        raise NotImplementedError

    def squares(self, index: str, after: bytes = b"") -> tuple[bytes, bytes]:
        """Return the keys of an index of vectors after one of them, and the dot product of each vector with itself."""
        raise NotImplementedError

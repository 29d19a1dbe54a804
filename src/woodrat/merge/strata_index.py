"""The strata index: the strata of a wide entity, found by field.

What is said of some fields concerns the strata that hold these fields and no others. A state that has hundreds of
strata, one for each narrow observation, is folded on by looking at those few. What is laid, and what it is a rival of,
`merge.fold` says, which is given them in place of all.
"""

from __future__ import annotations

from collections.abc import Iterable

from woodrat.canon.form import Json
from woodrat.merge import fold
from woodrat.merge.claim import Said
from woodrat.merge.fold import Stratum


class StrataIndex:
    """Strata that change in place."""

    __slots__ = ("_by_digest", "_by_field", "_sorted")

    def __init__(self, strata: tuple[Stratum, ...]) -> None:
        self._sorted: tuple[Stratum, ...] | None = strata
        self._by_digest: dict[bytes, Stratum] = {}
        self._by_field: dict[str, set[bytes]] = {}
        for stratum in strata:
            self._put(stratum, stratum.values)

    def _put(self, stratum: Stratum, names: Iterable[str]) -> None:
        digest, by_field = stratum.said.digest, self._by_field
        self._by_digest[digest] = stratum
        for name in names:
            if name in by_field:
                by_field[name].add(digest)
            else:
                by_field[name] = {digest}

    def all(self) -> tuple[Stratum, ...]:
        """Return all strata, from the lowest rank to the highest."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self._by_digest.values(), key=fold.height))
        return self._sorted

    def about(self, names: Iterable[str]) -> tuple[Stratum, ...]:
        """Return the strata that hold any of some fields, from the lowest rank to the highest."""
        by_field, by_digest = self._by_field, self._by_digest
        digests = {digest for name in names if name in by_field for digest in by_field[name]}
        return tuple(sorted([by_digest[digest] for digest in digests], key=fold.height))

    def lay(self, said: Said, values: dict[str, Json]) -> None:
        """Lay an assertion, as `fold.lay` does."""
        before = self.about(values)
        after = {stratum.said.digest: stratum for stratum in fold.lay(before, said, values)}
        for stratum in before:
            digest = stratum.said.digest
            left = after.pop(digest, None)
            if left is stratum:
                continue
            for name in stratum.values if left is None else stratum.values.keys() - left.values:
                self._by_field[name].discard(digest)
            if left is None:
                del self._by_digest[digest]
            else:
                self._by_digest[digest] = left
        for stratum in after.values():  # the new one, if anything of it counts
            self._put(stratum, stratum.values)
        self._sorted = None

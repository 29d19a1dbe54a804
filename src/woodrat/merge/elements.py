"""Elements: a policy's state of a collection, part by part, so that adding one part costs one part.

A part is the state of one element of a union, one object under `by_key`, or one contribution to a list. Parts are in
memory, or one by one in rows of an engine; newly changed parts are in layers above them. A map of parts is immutable:
`put` returns another one that shares all but the new part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Any, Final, Generic, Protocol, TypeVar

from woodrat.canon.form import Json
from woodrat.merge.packing import UNREADABLE, garbled

INSIDE_MAX = 64
"""Largest collection that is stored inside its entity's merge state; the parts of a larger one are stored separately.
"""

FLAT_MAX = 16
"""Number of parts up to which adding one copies all of them."""

_NOTHING: Final[dict[bytes, Any]] = {}

Part = TypeVar("Part")
Layers = tuple[dict[bytes, Part], ...]


class Rows(Protocol):
    """The parts of one collection at a position, stored one by one; readable while a view is open."""

    def get(self, key: bytes, /) -> bytes | None:
        """Return a packed part."""

    def all(self, after: bytes = b"", limit: int | None = None) -> Iterable[tuple[bytes, bytes]]:
        """Return keys with their parts, by key: those after a key, and only the first so many."""


class Parts(Mapping[bytes, Part], Generic[Part]):
    """The parts of a collection by key. Keys sort in the order of the parts in the value."""

    __slots__ = ("_handed", "_new", "_read", "_seen", "count", "rows")

    def __init__(
        self,
        count: int,
        new: Layers[Part] = (),
        handed: Layers[Part] = (),
        rows: Rows | None = None,
        read: Callable[[bytes], Part] | None = None,
        seen: dict[bytes, Part | None] | None = None,
    ) -> None:
        self.rows = rows
        """The rows of parts that are not in memory, if any."""
        self.count = count
        """The number of parts."""
        self._new = new
        self._handed = handed
        self._read = read
        # only keys with rows are looked up here
        self._seen: dict[bytes, Part | None] = _NOTHING if rows is None else {} if seen is None else seen

    @classmethod
    def of(cls, parts: dict[bytes, Part]) -> Parts[Part]:
        """Return a map of parts that lie in memory."""
        return cls(len(parts), (parts,) if parts else ())

    @classmethod
    def kept(cls, count: int, rows: Rows, read: Callable[[bytes], Part]) -> Parts[Part]:
        """Return a map of parts that lie in rows."""

        def checked(packed: bytes) -> Part:
            try:
                return read(packed)
            except UNREADABLE as error:
                raise garbled("A stored element of a collection") from error

        return cls(count, rows=rows, read=checked)

    def __len__(self) -> int:
        return self.count

    def get(self, key: bytes, default: Any = None) -> Any:
        for layers in (self._new, self._handed):
            for layer in layers if len(layers) < 2 else layers[::-1]:
                found = layer.get(key)
                if found is not None:
                    return found
        if self.rows is None:
            return default
        assert self._read is not None
        if key not in self._seen:
            packed = self.rows.get(key)
            self._seen[key] = None if packed is None else self._read(packed)
        kept = self._seen[key]
        return default if kept is None else kept

    def finder(self) -> Callable[[bytes], Part | None]:
        """Return a lookup function for unpacked parts: the layer's own `get` if there is only one layer."""
        layers = self._new or self._handed
        if self.rows is None and len(layers) == 1 and not (self._new and self._handed):
            return layers[0].get
        return self.get

    def __getitem__(self, key: bytes) -> Part:
        found: Part | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.whole())

    def items(self) -> ItemsView[bytes, Part]:
        return self.whole().items()

    def values(self) -> ValuesView[Part]:
        return self.whole().values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parts):
            return NotImplemented
        return len(self) == len(other) and bool(self.whole() == other.whole())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Parts({len(self)}{'' if self.rows is None else ' in rows'})"

    def whole(self) -> dict[bytes, Part]:
        """Return all parts; reads those in rows."""
        layers = (*self._handed, *self._new)
        if self.rows is None and len(layers) == 1:
            return layers[0]
        found: dict[bytes, Part] = {}
        if self.rows is not None:
            assert self._read is not None
            found = {key: self._read(packed) for key, packed in self.rows.all()}
        for layer in layers:
            found.update(layer)
        return found

    def page(self, after: bytes, limit: int) -> list[tuple[bytes, Part]]:
        """Return the first parts after a key, by key. At most this many rows are read."""
        found: dict[bytes, Part] = {}
        if self.rows is not None:
            assert self._read is not None
            found = {key: self._read(packed) for key, packed in self.rows.all(after, limit)}
        for layer in (*self._handed, *self._new):
            found.update((key, part) for key, part in layer.items() if key > after)
        return sorted(found.items(), key=lambda item: item[0])[:limit]

    def put(self, changed: dict[bytes, Part], added: int | None = None) -> Parts[Part]:
        """Return the parts with some of them new or changed. The cost does not depend on the number of other parts.

        `added` is the number of new ones, if known.
        """
        if not changed:
            return self
        if added is None:
            added = sum(key not in self for key in changed)
        return Parts(self.count + added, _laid(self._new, changed), self._handed, self.rows, self._read, self._seen)

    @property
    def new(self) -> dict[bytes, Part]:
        """Parts that are new or changed since they were read from rows, or since `handed_over`."""
        if len(self._new) == 1:
            return self._new[0]
        found: dict[bytes, Part] = {}
        for layer in self._new:
            found.update(layer)
        return found

    def touched_since(self, other: Parts[Part]) -> Iterable[bytes]:
        """Return the keys of all parts in which this may differ from another."""
        if self.rows is not None and self.rows is other.rows:
            layers = (*self._handed, *self._new, *other._handed, *other._new)
            return {key for layer in layers for key in layer}
        return {*self.whole(), *other.whole()}

    @property
    def follows(self) -> bool:
        """Whether `new` covers everything since the last save."""
        return self.rows is not None or bool(self._handed)

    def handed_over(self) -> Parts[Part]:
        """Return the same parts after the new ones were saved."""
        handed = self._handed
        for layer in self._new:
            handed = _laid(handed, layer)
        return Parts(self.count, (), handed, self.rows, self._read, self._seen)

    def in_memory(self) -> Parts[Part]:
        """Return the same parts, all of them read."""
        return self if self.rows is None else Parts.of(self.whole())


def _laid(layers: Layers[Part], changed: dict[bytes, Part]) -> Layers[Part]:
    """Lay changes on top. Each layer has at least twice as many parts as the one above: there are few layers, and few
    moves.

    A small collection lies in one layer, which is looked into faster than several.
    """
    if len(layers) == 1 and len(layers[0]) <= FLAT_MAX:
        return ({**layers[0], **changed},)
    found = [*layers, changed]
    while len(found) > 1 and len(found[-2]) < 2 * len(found[-1]):
        upper = found.pop()
        found[-1] = {**found[-1], **upper}
    return tuple(found)


class CollectionState(ABC, Generic[Part]):
    """A policy's state of a collection."""

    __slots__ = ()

    parts: Parts[Part]
    """The parts."""
    size: int
    """Number of elements of the value."""
    is_spread: bool
    """Whether there are so many parts that each is stored separately."""

    @staticmethod
    @abstractmethod
    def pack_part(part: Any) -> bytes:
        """Return a part as bytes; equal parts are equal bytes."""

    @staticmethod
    @abstractmethod
    def unpack_part(packed: bytes) -> Any:
        """Return the part that was packed."""

    @staticmethod
    @abstractmethod
    def show_part(part: Any) -> list[Json]:
        """Return the elements that a part puts into the value, in order."""

    @abstractmethod
    def but(self, parts: Parts[Part]) -> CollectionState[Part]:
        """Return the same with its parts elsewhere."""

"""Elements: which parts of collections an engine has to write, and whether those it keeps are what the log gives.

A row is a part of a collection as it was after a position: under the smallest entity of a fold, by field and key. It is
there as of every later position until another row of the same key takes its place; a row without a part says that it is
gone. So a read of the past needs no copy of a collection, and kept merge state holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from woodrat.merge import fold
from woodrat.merge.fold import MergeState


class Row(NamedTuple):
    """One part of a collection from a position on."""

    position: int
    """All of its entities' observations up to here are folded in."""
    field: str
    """The field."""
    key: bytes
    """Which part; keys sort as the parts stand in the value."""
    packed: bytes | None
    """The part; none where it is gone."""


def due(
    state: MergeState,
    position: int,
    before: Iterable[str],
    there: Callable[[str], Iterable[tuple[bytes, bytes]]],
) -> Iterator[Row]:
    """Yield the rows to write so that those as of `position` are the spread collections of a state.

    `before` are the fields that have rows, and `there` gives the rows of a field as they are. Parts that follow
    what was kept cost what changed of them; those folded anew are compared with the rows there are.
    """
    spread = fold.spread(state)
    for name, held in spread.items():
        pack = held.pack_part
        if held.parts.follows:
            for key, part in held.parts.new.items():
                yield Row(position, name, key, pack(part))
            continue
        rows = dict(there(name))
        for key, part in held.parts.items():
            packed = pack(part)
            if rows.pop(key, None) != packed:
                yield Row(position, name, key, packed)
        for key in rows:
            yield Row(position, name, key, None)
    for name in before:
        if name not in spread:
            for key, _ in there(name):
                yield Row(position, name, key, None)


class Comparison:
    """Compares the rows of one fold with its state, position by position, each part once for each change of it."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)
        """By position."""
        self.positions = sorted({row.position for row in self._rows})
        """Where there are rows."""
        self._next = 0
        self._there: dict[str, dict[bytes, bytes]] = {}

    def amiss(self, state: MergeState, position: int) -> tuple[str, bytes] | None:
        """Return a field and a key at which the rows as of a position are not what a state holds.

        Called from one position to the next, and with a state that was `handed_over` when it was compared before.
        """
        changed: dict[str, set[bytes]] = {}
        while self._next < len(self._rows) and self._rows[self._next].position <= position:
            row = self._rows[self._next]
            self._next += 1
            there = self._there.setdefault(row.field, {})
            if row.packed is None:
                there.pop(row.key, None)
            else:
                there[row.key] = row.packed
            changed.setdefault(row.field, set()).add(row.key)
        spread = fold.spread(state)
        for name in sorted({*spread, *changed, *(name for name, there in self._there.items() if there)}):
            held, there = spread.get(name), self._there.get(name, {})
            if held is None:
                if there:
                    return name, min(there)
                continue
            if held.parts.follows:
                keys = changed.get(name, set()).union(held.parts.new)
            else:
                keys = {*there, *held.parts}
            for key in sorted(keys):
                part = held.parts.get(key)
                if there.get(key) != (None if part is None else held.pack_part(part)):
                    return name, key
            if len(there) != len(held.parts):
                return name, b""
        return None


def wording(name: str, key: bytes) -> str:
    """Return the clause that says which element is not what the log gives."""
    which = f"the element {key.hex()[:32]}" if key else "the number of elements"
    return f"{which} kept of {name} is not what the log gives"

"""Elements: which parts of collections an engine has to write.

A row is a part of a collection as it was after a position: under the smallest entity of a fold, by field and key. It is
there as of every later position until another row of the same key takes its place; a row without a part says that it is
gone. So a read of the past needs no copy of a collection, and kept merge state holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from woodrat.engines.port import StoredPart
from woodrat.merge import fold
from woodrat.merge.fold import MergeState


def due(
    state: MergeState,
    position: int,
    before: Iterable[str],
    there: Callable[[str], Iterable[tuple[bytes, bytes]]],
) -> Iterator[StoredPart]:
    """Yield the rows to write so that those as of `position` are the spread collections of a state.

    `before` are the fields that have rows, and `there` gives the rows of a field as they are. Parts that follow
    what was kept cost what changed of them; those folded anew are compared with the rows there are.
    """
    spread = fold.spread(state)
    for name, held in spread.items():
        pack = held.pack_part
        if held.parts.follows:
            for key, part in held.parts.new.items():
                yield StoredPart(position, name, key, pack(part))
            continue
        rows = dict(there(name))
        for key, part in held.parts.items():
            packed = pack(part)
            if rows.pop(key, None) != packed:
                yield StoredPart(position, name, key, packed)
        for key in rows:
            yield StoredPart(position, name, key, None)
    for name in before:
        if name not in spread:
            for key, _ in there(name):
                yield StoredPart(position, name, key, None)

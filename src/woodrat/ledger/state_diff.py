"""State diff: which folds differ between two moments, or from a state that was written down.

Between two moments only what was touched between them is folded: the entities spoken of, those joined or parted, and
those of a type that got another schema. Whatever was true by an effective time is read the same way on both sides, so
it cannot differ without an entry between them either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from woodrat.canon.ids import Ref
from woodrat.ledger import collector
from woodrat.ledger.find import READER_FOLDS, chunks, folds
from woodrat.ledger.read import Reader, changed
from woodrat.merge.diff import EntityChange, Values, entity_change


def changes_between(before: Reader, after: Reader, type: str | None) -> tuple[EntityChange, ...]:
    """Return what differs between two as-ofs of one view, by entity; either may be the earlier one."""
    first, last = sorted((before.asof.position, after.asof.position))
    spoken = iter([ref for ref in changed(before.view, first, last) if type in (None, ref.type)])
    compared: set[Ref] = set()
    changes: list[EntityChange | None] = []
    while batch := list(islice(spoken, READER_FOLDS)):
        # A reader keeps all it has folded, so every batch has readers of its own.
        sides = [Reader(side.view, side.asof, side.policies) for side in (before, after)]
        for some in chunks(batch):
            for side in sides:
                side.gather(some)
            roots = {side.group(ref)[0] for ref in some for side in sides} - compared
            compared |= roots
            changes += [entity_change(str(root), *(_values(side, root) for side in sides)) for root in roots]
    return _sorted(changes)


def _values(reader: Reader, root: Ref) -> Values | None:
    """Return the values of the fold that an entity is the smallest of, if it is and the fold exists."""
    if reader.group(root)[0] != root:
        return None
    state = reader.state(root)
    return Values.of_state(state, reader.rules(root.type)) if state.exists else None


def all_values(reader: Reader) -> dict[str, Values]:
    """Return the values of every fold that exists, by the reference of its smallest entity."""
    found: dict[str, Values] = {}
    # The collector would look through all that was found, again and again.
    with collector.held_off_long() as part_is_done:
        for number, (root, state) in enumerate(folds(reader, None), 1):
            found[str(root)] = Values.of_state(state, reader.rules(root.type))
            if number % READER_FOLDS == 0:
                part_is_done()
    return found


def changes_since(known: Mapping[str, Values], reader: Reader, type: str | None) -> tuple[EntityChange, ...]:
    """Return what differs from a state that was written down, which stands for everything, or for all of a type.

    An entity that is deleted here and left out there is no difference.
    """
    changes: list[EntityChange | None] = []
    missing = dict(known)
    for root, state in folds(reader, type):
        values = Values.of_state(state, reader.rules(root.type))
        entity = str(root)
        if entity in known or not values.deleted:
            changes.append(entity_change(entity, missing.pop(entity, None), values))
    changes += [entity_change(entity, values, None) for entity, values in missing.items()]
    return _sorted(changes)


def _sorted(changes: Iterable[EntityChange | None]) -> tuple[EntityChange, ...]:
    return tuple(sorted((change for change in changes if change is not None), key=lambda change: change.entity))

"""Relation: an entity whose key names two others, and the `same_as` relation that joins entities into groups.

History, provenance, as-of and retraction come with being an entity. The endpoints come from the key alone, so no later
claim can move an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused

SAME_AS = "same_as"
"""The relation type that declares two entities the same."""

GROUP_MEMBERS_MAX = 1_000
"""Most entities that surfaces join into one group."""


def relation(start: Ref, type: str, end: Ref, key: str | None = None) -> Ref:
    """Return the entity of a relation; `key` distinguishes several between the same two entities.

    `same_as` has no direction: its endpoints are sorted by their UTF-8 bytes.
    """
    if type == SAME_AS:
        found = same_as_faults(start, end)
        if key is not None:
            found.append(Fault("key", "same_as takes no key", "Leave the key out: two entities are the same, or not."))
        if found:
            raise Refused(found)
        start, end = sorted((start, end), key=lambda ref: str(ref).encode())
    parts = [str(start), str(end)] if key is None else [str(start), str(end), key]
    text = form.serialise(list(parts)).decode()
    found = ids.ref_faults(type, text, "relation")
    if found:
        raise Refused(found)
    return Ref(type, text)


def same_as_faults(start: Ref, end: Ref) -> list[Fault]:
    """Return why two entities cannot be joined."""
    found: list[Fault] = []
    if start == end:
        found.append(Fault("same_as", f"{start} is named twice", "Name two different entities."))
    if start.type != end.type:
        problem = f"{start} and {end} have different types"
        found.append(Fault("same_as", problem, "Merge entities of one type; relate others by another relation type."))
    if SAME_AS in (start.type, end.type):
        found.append(Fault("same_as", "a same_as relation cannot itself be merged", "Merge the entities it names."))
    return found


def endpoints(ref: Ref) -> tuple[Ref, Ref] | None:
    """Return the two entities a relation's key names, or `None` when it is not the key of a relation."""
    if not ref.key.startswith('["'):
        return None
    try:
        parts = form.parse(ref.key)
        if not isinstance(parts, list) or len(parts) not in (2, 3) or form.serialise(parts).decode() != ref.key:
            return None
        if not all(isinstance(part, str) for part in parts):
            return None
        return ids.parse_ref(parts[0]), ids.parse_ref(parts[1])
    except Refused:
        return None


def joined(ref: Ref) -> tuple[Ref, Ref] | None:
    """Return the two entities a `same_as` entity joins; `None` for any other key, invalid imported ones included."""
    if ref.type != SAME_AS:
        return None
    ends = endpoints(ref)
    if ends is None or same_as_faults(*ends) or relation(ends[0], SAME_AS, ends[1]) != ref:
        return None
    return ends


def group(start: Ref, neighbours: Callable[[Ref], Iterable[Ref]]) -> tuple[Ref, ...]:
    """Return all entities reachable from `start`, itself included, by digest."""
    found = {start}
    waiting = [start]
    while waiting:
        for neighbour in neighbours(waiting.pop()):
            if neighbour not in found:
                found.add(neighbour)
                waiting.append(neighbour)
    return tuple(sorted(found, key=lambda ref: ref.digest))

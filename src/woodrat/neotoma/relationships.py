"""Relationships: those between entities as Neotoma's clients list, make, end and take up again by their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import reads
from woodrat.neotoma import shapes
from woodrat.neotoma.calls import PAGE, page
from woodrat.state.relation import relation

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.canon.ids import Ref
    from woodrat.ledger.reads import Related

Given = dict[str, Any]

OUTGOING, INCOMING, BOTH = "outgoing", "incoming", "both"
_DIRECTIONS: Final = {OUTGOING: OUTGOING, "outbound": OUTGOING, INCOMING: INCOMING, "inbound": INCOMING, BOTH: BOTH}
"""Names of directions, and their meanings."""
ENDS: Final = ("relationship_type", "source_entity_id", "target_entity_id")
"""Members that identify a relationship."""
_SIDES: Final = (("source_entity_id", "start"), ("target_entity_id", "end"))


def direction(given: Given) -> str:
    """Return the direction of the requested relationships."""
    stated = given.get("direction", BOTH)
    if stated not in _DIRECTIONS:
        problem = Fault("direction", f"got {shown(stated)}", f"Send one of {', '.join(_DIRECTIONS)}.")
        raise Refused([problem], "Nothing was read.")
    return _DIRECTIONS[stated]


def fitting(past: Past, given: Given, depth: int = 1) -> tuple[Ref, list[Related]]:
    """Return the entity, and its relationships of the requested type and direction."""
    way = direction(given)
    start = past.show(given["entity_id"]).entity
    wanted = {str(name).lower() for name in given.get("relationship_types", ())}
    wanted |= {given["relationship_type"].lower()} if "relationship_type" in given else set()
    found = []
    for item in reads.related(past.context, start, depth=depth):
        fits = way == BOTH or item.depth > 1 or (way == OUTGOING) == (item.start == start)
        if fits and (not wanted or item.type in wanted):
            found.append(item)
    return start, found


def listed(past: Past, given: Given, window: tuple[int, int]) -> dict[str, Any]:
    """Return the relationships of an entity, or from one to another."""
    ends = [given[name] for name in ENDS[1:] if name in given]
    if "entity_id" not in given and not ends:
        remedy = "Send entity_id, source_entity_id or target_entity_id."
        raise Refused([Fault("entity_id", "no entity is named", remedy)], "Nothing was read.")
    _, found = fitting(past, {**given, "entity_id": given.get("entity_id", *ends[:1])})
    for name, side in (("source_entity_id", "start"), ("target_entity_id", "end")):
        if name in given:
            end = past.show(given[name]).entity
            found = [item for item in found if getattr(item, side) == end]
    limit, offset = window
    told = [shapes.relationship(item) for item in found]
    count = {"total": len(told), "total_count": len(told), "limit": limit, "offset": offset}
    return {"relationships": told[offset : offset + limit], **count}


def every(past: Past, given: Given) -> dict[str, Any]:
    """Return all relationships, or those of a type or entity, by their keys."""
    ends = {name: past.show(given[name]).entity for name in ENDS[1:] if name in given}
    found: dict[str, dict[str, Any]] = {}
    for item in reads.related(past.context, next(iter(ends.values()))) if ends else _all(past, given):
        fits = all(getattr(item, side) == ends[name] for name, side in _SIDES if name in ends)
        if fits and given.get("relationship_type", item.type).lower() == item.type:
            told = shapes.relationship(item)
            for side, ref in (("source", item.start), ("target", item.end)):
                told |= {f"{side}_canonical_name": ref.key, f"{side}_entity_type": ref.type}
            found[told["id"]] = told
    return page("relationships", [found[key] for key in sorted(found)], given)


def by_key(past: Past, key: str) -> dict[str, Any]:
    """Return one relationship by its type and ends."""
    parts = (unquote(key) if ":" not in key else key).split(":")  # its command line encodes a key twice
    if len(parts) != len(ENDS):
        raise NotFound(f"There is no relationship {key}. Nothing was read. `relationships` lists them.")
    found: dict[str, Any] = snapshot(past, dict(zip(ENDS, parts, strict=True)))["snapshot"]
    return found


def _all(past: Past, given: Given) -> Iterator[Related]:
    """Yield every relationship once, or every one of a type."""
    kind = given["relationship_type"].lower() if "relationship_type" in given else None
    cursor: str | None = None
    while True:
        page = past.query(entity_type=kind, limit=PAGE, cursor=cursor)
        for one in page.items:
            if shapes.is_relation(one):
                yield from (
                    item
                    for item in reads.related(past.context, str(one.fields["from"]))
                    if relation(item.start, item.type, item.end) == one.entity
                )
        cursor = page.cursor
        if cursor is None:
            return


def snapshot(past: Past, given: Given) -> dict[str, Any]:
    """Return one relationship with the observations behind it."""
    name = _relation(past, given)
    kept = reads.observations(past.context, name)
    if not kept:
        raise NotFound(f"There is no {_words(given)}. Nothing was read. `list_relationships` lists them.")
    said = past.show(name)
    seen = max(item.observation.observed_at for item in kept)
    more: dict[str, Any] = {"deleted": said.deleted, "is_live": int(not said.deleted), "observation_count": len(kept)}
    more |= {"last_observation_at": seen, "computed_at": seen}
    provenance = {field: origin.observation for field, origin in said.blame.items() if field not in ("from", "to")}
    return {
        "snapshot": told(past, given, said.fields, **more, provenance=provenance),
        "observations": [
            {**shapes.observation(item), "metadata": _apart(item.observation.fields or {})} for item in kept
        ],
    }


def told(past: Past, given: Given, fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a relationship by its ends, with its fields."""
    ends = [past.show(given[name]).entity.id for name in ENDS[1:]]
    return {**shapes.related(given["relationship_type"], ends[0], ends[1], _apart(fields)), **more}


def link(said: Mapping[str, Any], records: Sequence[Any] = ()) -> Mapping[str, Any]:
    """Return a relationship as `relate` takes it, so that a key needs the same for it.

    A place in `records` means an entity of that record's type.
    """
    ends = []
    for side in ("source", "target"):
        index, stated = said.get(f"{side}_index"), said.get(f"{side}_entity_id")
        if type(index) is int and 0 <= index < len(records) and isinstance(records[index], dict):
            ends.append(f"{records[index].get('entity_type')}/")
        else:
            ends.append(str(index if stated is None else stated))
    return {"start": ends[0], "type": str(said.get("relationship_type", "")).lower(), "end": ends[1]}


def relate(ledger: Ledger, given: Given) -> Any:
    """Make one relationship."""
    return ledger.relate(
        given["source_entity_id"],
        given["relationship_type"].lower(),
        given["target_entity_id"],
        fields=given.get("metadata"),
        idempotency_key=given.get("idempotency_key"),
    )


def relate_all(ledger: Ledger, given: Given) -> list[tuple[Any, str | None]]:
    """Make several, each separately; return each with its error, if any."""
    done: list[tuple[Any, str | None]] = []
    for item in given["relationships"]:
        try:
            said = item if isinstance(item, dict) else {}
            faults = [
                Fault(name, f"got {shown(said.get(name))}", "Send text.")
                for name in ENDS
                if not isinstance(said.get(name), str)
            ]
            if faults:
                raise Refused(faults)
            relate(ledger, said)
        except (Refused, NotFound) as error:
            done.append((item, str(error)))
        else:
            done.append((item, None))
    return done


def all_told(past: Past, given: Given, done: Iterable[tuple[Any, str | None]]) -> dict[str, Any]:
    """Return the results of several."""
    made, errors = [], []
    for number, (item, problem) in enumerate(done):
        if problem is None:
            made.append({"index": number, **told(past, item, item.get("metadata", {}))})
        else:
            errors.append({"index": number, "relationship": item, "message": problem})
    return {
        "success": not errors,
        "requested": len(made) + len(errors),
        "created_count": len(made),
        "error_count": len(errors),
        "relationships": made,
        "errors": errors,
    }


def mark(verb: str, ledger: Ledger, given: Given) -> Any:
    """End a relationship, or take it up again."""
    name = _relation(ledger, given)
    said = {part: given.get(part) for part in ("reason", "idempotency_key")}
    try:
        return getattr(ledger, verb)(name, **said)
    except NotFound:
        remedy = "`list_relationships` lists them."
        raise NotFound(f"There is no {_words(given)}. Nothing was written. {remedy}") from None


def _relation(past: Past, given: Given) -> Ref:
    start, end = (past.show(given[name]).entity for name in ENDS[1:])
    return relation(start, given["relationship_type"].lower(), end)


def _words(given: Given) -> str:
    return f"{given['relationship_type']} from {given['source_entity_id']} to {given['target_entity_id']}"


def _apart(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a relation without its ends."""
    return {name: value for name, value in fields.items() if name not in ("from", "to")}

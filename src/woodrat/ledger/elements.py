"""Collecting: the elements of one collection, page by page, however many there are.

A page is read from the parts it needs. Those that follow are read at the position of the first, so that all pages
together are the collection as it was once.
"""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.pages import limit_faults, make_cursor, read_cursor
from woodrat.ledger.read import Reader
from woodrat.merge.elements import CollectionState
from woodrat.record_json import WHEN_SET, Record
from woodrat.records import dataclass, replace
from woodrat.records import field as record_field
from woodrat.state import observation
from woodrat.state.asof import AsOf
from woodrat.state.match import Match

PARTS_AT_ONCE: Final = 256
"""How many parts are read at a time; one may put any number of elements into a list, or none."""


@dataclass(frozen=True, slots=True)
class Elements(Record):
    """Some elements of a collection, in its order."""

    entity: Ref
    """The entity asked about."""
    field: str
    """The field whose value the collection is."""
    elements: tuple[Json, ...]
    """The elements of this page."""
    total: int
    """How many the collection has."""
    position: int
    """The log position it was read at; that of the first page."""
    cursor: str | None
    """What to ask with for those that follow; `None` when there are none."""
    matched: Match | None = record_field(default=None, metadata=WHEN_SET)
    """How the entity was found, where that was by a value that identifies it."""


def elements(reader: Reader, ref: str | Ref, field: object, limit: object, cursor: object) -> Elements:
    """Return a page of a collection; `Refused` where the field is none, `NotFound` where it has no value."""
    faults = observation.field_name_faults(field, "field") if isinstance(field, str) else []
    if not isinstance(field, str):
        faults.append(Fault("field", f"expected the name of a field, got {shown(field)}", "Send it as text."))
    faults += limit_faults(limit)
    if faults:
        read_cursor(cursor, b"", faults)
        raise Refused(faults, NO_READ)
    entity = find_ref(reader, ref)
    matched = reader.matched
    assert isinstance(field, str) and isinstance(limit, int)
    question = form.serialise(["elements", str(entity), field, reader.asof.effective])
    place = read_cursor(cursor, question, faults)
    after, skip = b"", 0
    if place is not None:
        position, key, skip = place
        after = key.encode("latin-1")
        if position > reader.asof.position:
            remedy = "Send the cursor to the ledger that returned it, or start again without one."
            faults.append(Fault("cursor", f"it is from position {position}, which this log has not reached", remedy))
        reader = Reader(reader.view, AsOf(position, reader.asof.effective), reader.policies)
    if faults:
        raise Refused(faults, NO_READ)
    held = _held(reader, entity, field)
    page = _page(held, reader, entity, field, limit, question, after, skip)
    return page if matched is None else replace(page, matched=matched)


def _held(reader: Reader, entity: Ref, field: str) -> CollectionState[Any]:
    """Return what is held of a collection."""
    state = reader.state(entity)
    if not state.live:
        reader.check_exists(entity)  # says that nothing is known of it
    policy = reader.rules(entity.type).policy(field)
    held = None if state.deleted else state.held.get(field)
    if policy.gathered is None and field in state.names:
        problem = f"{entity}#{field} merges by {policy.name}, and is not a collection"
        raise Refused([Fault("field", problem, "Use `show` for its value.")], NO_READ)
    if not isinstance(held, CollectionState):
        deleted = f"{entity} is deleted" if state.deleted else f"{entity}#{field}: it has no value"
        remedy = "Restore it, or read it as it was." if state.deleted else "Use `show` for the fields that do."
        raise NotFound(f"{deleted}. Nothing was changed. {remedy}", {"entity": str(entity), "field": field})
    return held


def _page(
    held: CollectionState[Any],
    reader: Reader,
    entity: Ref,
    field: str,
    limit: int,
    question: bytes,
    after: bytes,
    skip: int,
) -> Elements:
    """Walk the parts after a key, and of the first one after so many of its elements."""
    found: list[Json] = []
    position = reader.asof.position
    while True:
        parts = held.parts.page(after, min(PARTS_AT_ONCE, limit + 1))
        for key, part in parts:
            shown_ = held.show_part(part)
            room = limit - len(found)
            if len(shown_) - skip > room:
                # The next page begins within this part, or with it: after the one before.
                place: list[Json] = [position, after.decode("latin-1"), skip + room]
                cursor = make_cursor(question, place)
                return Elements(entity, field, (*found, *shown_[skip : skip + room]), held.size, position, cursor)
            found += shown_[skip:]
            after, skip = key, 0
        if len(parts) < min(PARTS_AT_ONCE, limit + 1):
            return Elements(entity, field, tuple(found), held.size, position, None)

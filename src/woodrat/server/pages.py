"""Paging: lists that a verb of the library returns whole, told some at a time where a caller asks for that.

The first page says where it was read, and the others are read there too: what is written meanwhile moves nothing from
one page to another. A page costs what the whole list costs, and sends no more than was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from woodrat.errors import Fault, Refused, shown
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.api.past import Past

T = TypeVar("T")

PAGE_ARGUMENTS = frozenset({"limit", "cursor"})
"""What is said of a page."""


def listed(
    past: Past,
    name: str,
    find: Callable[[Past], Sequence[T]],
    tell: Callable[[T], Any],
    asked: Mapping[str, Any],
    limit: int | None = None,
    cursor: str | None = None,
) -> dict[str, Any]:
    """Return a list under its noun: all of it, or a page with the cursor of the next. `asked` is what was asked for."""
    if limit is None and cursor is None:
        return wire.listing(name, map(tell, find(past)), past.position)
    from woodrat.canon import form
    from woodrat.ledger.find import PAGE_MAX, make_cursor, read_cursor

    faults = []
    most = PAGE_MAX if limit is None else limit
    if type(most) is not int or not 1 <= most <= PAGE_MAX:
        faults.append(Fault("limit", f"got {shown(limit)}", f"Send 1 to {PAGE_MAX}; a cursor leads to the rest."))
    question = form.serialise({"list": name, **{key: value for key, value in asked.items() if value is not None}})
    place = read_cursor(cursor, question, faults)
    if faults:
        raise Refused(faults, "Nothing was read.")
    position, start = (past.position, 0) if place is None else place
    then = past if position == past.position else past.at(position)
    found = find(then)
    further = make_cursor(question, [position, start + most]) if len(found) > start + most else None
    return wire.listing(name, map(tell, found[start : start + most]), position, further)

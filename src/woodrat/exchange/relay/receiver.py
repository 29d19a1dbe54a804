"""Receiver: imports a part of another log, in whole writes, and remembers the position.

Each part is independent: an interrupted sender sends it again or continues after it, and nothing is imported twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Fault, Refused, shown
from woodrat.exchange.lines import LineReader, Misfit, entry_of
from woodrat.exchange.relay.peers import Mark, leaf_at, marked, note
from woodrat.exchange.verbs.importer import NOTHING_TAKEN, Imported, Taking

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.log.entry import Entry

_LEAF_DIGITS: Final = 64


def receive(
    context: Context,
    entries: Any,
    *,
    log: str | None = None,
    after: int = BEFORE_ALL,
    leaf: str | None = None,
    held: bool = False,
) -> Imported:
    """Import entries of another log: an open binary file of lines, or a list of entries as JSON.

    `log` is the name of that log. They follow the position `after` of that log, which has the leaf `leaf`, in hex.
    They show whether this log is the same up to that point, and how much of that log was imported. `held` means that
    all its entries up to there are here, whatever their origin.
    """
    before = Mark(after, _checked(log, after, leaf))
    with context.engine.view(context.tenant) as view:
        same = before.leaf is not None and leaf_at(view, after) == before.leaf
        known = None if log is None else marked(view, log)
    placed = LineReader(entries) if hasattr(entries, "readline") else _placed(entries)
    course = Taking(context, overlaps=same)
    found = course.take(placed)
    last = course.last
    if held and log is not None and before.leaf is not None and (known is None or known.position < after):
        note(context, log, before)
    if log is not None and last is not None:
        # A part before the remembered position says nothing about the gap between.
        goes_on = held or same or after == BEFORE_ALL or before == known
        if goes_on and (known is None or known.position < last.position):
            note(context, log, Mark(last.position, last.leaf()))
    return found


def _placed(entries: Iterable[Any]) -> Iterator[tuple[str, Entry]]:
    if not isinstance(entries, list):
        raise Misfit("/entries", [Fault("", f"expected a list of entries, got {shown(entries)}", "Send a list.")])
    for number, value in enumerate(entries):
        place = f"/entries/{number}"
        yield place, entry_of(place, value)


def _checked(log: object, after: object, leaf: object) -> bytes | None:
    """Return the leaf before the part; refuse an invalid leaf, or a position without one."""
    faults = []
    if log is not None and not (isinstance(log, str) and log.startswith("log_")):
        faults.append(Fault("log", f"got {shown(log)}", "Send the name of its log, as exported."))
    if type(after) is not int or after < BEFORE_ALL:
        faults.append(Fault("after", f"got {shown(after)}", "Send a position of that log, or leave it out."))
    found: bytes | None = None
    if leaf is not None:
        try:
            found = bytes.fromhex(leaf) if isinstance(leaf, str) and len(leaf) == _LEAF_DIGITS else None
        except ValueError:
            found = None
        if found is None:
            faults.append(Fault("leaf", f"got {shown(leaf)}", f"Send it as {_LEAF_DIGITS} hex digits."))
    if faults:
        raise Refused(faults, NOTHING_TAKEN)
    return found

"""Receipts: what is kept of a report with its idempotency key; the rest is worked out again, as of its write.

States of the past never change, so the answer to a repeated call is the first one. What a receipt keeps is what the log
does not say: what was known already, and the hints. The bytes are specified in docs/formats/entry.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from woodrat.canon import form
from woodrat.ledger import transitions
from woodrat.ledger.read import Reader
from woodrat.ledger.report import Report
from woodrat.state import observation
from woodrat.state.asof import AsOf, Stored
from woodrat.state.match import Match
from woodrat.state.observation import Observation

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.engines.records import Receipt
    from woodrat.engines.view import View
    from woodrat.ledger.read import Transition
    from woodrat.merge import Policy
    from woodrat.state.meaning import Meaning


def kept(report: Report, said: Sequence[Observation], meanings: Sequence[Meaning]) -> bytes:
    """Return what is kept of the report of a write: `meanings` are its entries, `said` all that its caller stated."""
    first, last = report.position - len(meanings) + 1, report.position
    stated = [meaning for meaning in meanings if type(meaning) is Observation]
    if not (report.hints or report.id or report.matched) and stated == said:
        return b'{"positions":[%d,%d]}' % (first, last)
    found: dict[str, Any] = {"positions": [first, last]}
    if report.hints:
        found["hints"] = list(report.hints)
    if report.id is not None:
        found["id"] = report.id
    if report.matched:
        found["matched"] = [match.to_json() for match in report.matched]
    if stated != said:
        found["observations"], found["known"] = list(report.observations), list(report.known)
    return form.serialise(found)


def positions(receipt: Receipt) -> tuple[int, int]:
    """Return the first and the last position of the write that a receipt is of."""
    listed = form.decode(receipt.report)["positions"]
    return listed[0], listed[-1]


def report_again(view: View, policies: Mapping[str, Policy], receipt: Receipt) -> Report:
    """Return the report that a receipt is of, as the answer to a repeated call."""
    parts = form.decode(receipt.report)
    first, last = positions(receipt)
    written: list[Stored] = []
    for entry in view.entries(first - 1, last):
        if entry.kind == "observation" and entry.body is not None:
            written.append(Stored(entry.position, observation.stored(entry.body)))
    said = [stored.observation for stored in written]
    if "observations" in parts:
        found = [view.observation(id, last) for id in parts["observations"]]
        said = [stored.observation for stored in found if stored is not None]
    changes, _, _ = changes_again(view, policies, first, last, written if said else ())

    def rest() -> dict[str, Any]:
        stated = {"observations": tuple(one.id for one in said), "entities": entities_of(said)}
        return {"positions": tuple(range(first, last + 1)), **stated, **changes()}

    return Report(
        rest=rest,
        position=last,
        known=tuple(parts.get("known", ())),
        hints=tuple(parts.get("hints", ())),
        id=parts.get("id"),
        matched=tuple(Match(**match) for match in parts.get("matched", ())),
        repeated=True,
    )


def changes_again(
    view: View, policies: Mapping[str, Policy], first: int, last: int, said: Sequence[Stored]
) -> tuple[Callable[[], dict[str, Any]], Sequence[Transition], Reader]:
    """Return what tells the changes of an earlier write, the transitions of what it said, and a reader after it."""
    spoken: dict[Ref, list[Stored]] = {}
    for stored in said:
        spoken.setdefault(stored.observation.entity, []).append(stored)
    now, then = Reader(view, AsOf(last), policies), Reader(view, AsOf(first - 1), policies)
    changed = [now.transition(then, ref, spoken.get(ref, ())) for ref in transitions.touched(spoken)]
    return transitions.changes(changed), changed, now


def entities_of(said: Sequence[Observation]) -> tuple[str, ...]:
    """Return the entities that observations speak of, in the order stated."""
    return tuple(str(ref) for ref in dict.fromkeys(one.entity for one in said))

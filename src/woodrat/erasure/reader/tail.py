"""The tail of a search: entries and receipts that were written after an erasure searched the log."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.engines.view import View
from woodrat.erasure.plan import Plan, Scope
from woodrat.erasure.quotes import names_any, unsearched
from woodrat.log.erasure import KIND, record_mac
from woodrat.state import observation
from woodrat.state.meaning import RUN_KINDS

_POSITIONS: Final = re.compile(rb'"positions":\[([0-9,]+)\]')

TAIL_MAX: Final = 10_000
"""Number of new entries from which a plan is made again; fewer are checked while writers wait."""


def is_still_true(view: View, plan: Plan, scope: Scope, key: bytes) -> bool:
    """Return True if a plan still holds for a log with new entries; new receipts are added to it.

    It checks the new entries alone. A wrong False costs one more search.
    """
    head = view.head().position
    if head == plan.through:
        return True
    if head - plan.through > TAIL_MAX:
        return False
    names_them = names_any(plan.named)
    again = {(kind, body) for kind, body, _ in plan.items}
    for entry in list(view.entries(plan.through, head)):
        kind, body = entry.kind, entry.body
        if body is None or kind == KIND:
            return False  # something else was erased meanwhile
        if names_them(body) or plan.quoted.may_be_in(kind, body) or (kind, body) in again:
            return False
        if kind != "source" and _is_in_scope(kind, body, plan, scope, key):
            return False
        if kind in RUN_KINDS:
            plan.unsearched += unsearched(body)
    search_receipts(view, plan, scope)
    plan.through = head
    return True


def _is_in_scope(kind: str, body: bytes, plan: Plan, scope: Scope, key: bytes) -> bool:
    """Return True if a scope may select an entry."""
    if scope.records is not None:
        return record_mac(key, kind, body) in scope.records.macs
    said: Any = form.decode(body)
    if scope.agent is not None:
        return isinstance(said, dict) and said.get("agent") == scope.agent
    return kind == "observation" and observation.stored(body).entity in plan.refs


def search_receipts(view: View, plan: Plan, scope: Scope) -> None:
    """Add unsearched idempotency keys whose receipts contain erased data to a plan."""
    positions = set(plan.positions)
    names_them = names_any(plan.ids)
    for agent, key, receipt in view.receipts():
        if hash((agent, key)) in plan.receipts_seen:
            continue
        plan.receipts_seen.add(hash((agent, key)))
        if (
            (scope.agent is not None and agent == scope.agent)
            or names_them(receipt.report)
            or plan.quoted.may_be_in("receipt", receipt.report)
            or plan.quoted.is_in(key)
            or (_may_be_of(receipt.report, plan.positions) and _is_of(receipt.report, positions))
        ):
            plan.receipts.append((agent, key))


def receipts_of(view: View, positions: Collection[int]) -> list[tuple[str, str]]:
    """Return the idempotency keys of writes that have an entry at one of some positions, as (agent, key).

    An erasure of any entry of a write removes its receipt: the request nonce and the digest of the request would allow
    guesses at the erased data.
    """
    ordered = sorted(positions)
    return [
        (agent, key)
        for agent, key, receipt in view.receipts()
        if _may_be_of(receipt.report, ordered) and _is_of(receipt.report, positions)
    ]


def _may_be_of(report: bytes, positions: Sequence[int]) -> bool:
    """Return True if a report may belong to a write at one of some sorted positions.

    Most do not, and parsing each of them would take longest of all.
    """
    for listed in _POSITIONS.findall(report):
        first, _, _ = listed.partition(b",")
        last = listed.rpartition(b",")[2]
        place = bisect_left(positions, min(int(first), int(last)))
        if place < len(positions) and positions[place] <= max(int(first), int(last)):
            return True
    return False


def _is_of(report: bytes, positions: Collection[int]) -> bool:
    return not positions_of(form.decode(report)).isdisjoint(positions)


def positions_of(report: Any) -> set[int]:
    """Return the positions of the whole write that a report is of."""
    listed = report.get("positions") if isinstance(report, dict) else None
    return set(range(min(listed), max(listed) + 1)) if listed else set()

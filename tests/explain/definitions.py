"""Definitions: what the pages of explain find, worked out one by one and from whole runs."""

from __future__ import annotations

from woodrat.explain.reader.stale import Beliefs, compare, recorded_decision
from woodrat.explain.stale import Stale


def stale_decision(beliefs: Beliefs, position: int) -> Stale | None:
    """Return the decision at a position if its evidence is believed otherwise now; else none."""
    bodies = beliefs.tracer.view.bodies([position])
    made = recorded_decision(position, *bodies[position]) if bodies else None
    comparison = None if made is None else compare(beliefs, made)
    return None if comparison is None else comparison.stale(beliefs)

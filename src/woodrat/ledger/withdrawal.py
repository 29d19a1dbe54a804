"""Withdrawal: the state of an entity after retractions, from one that was kept before what they withdraw.

A retraction asks for a whole fold, since what it withdraws may be any of all observations. Mostly it withdraws plain
assertions that nothing else names. The state is then that of everything said before the first of them, with what was
said since folded in, but for what is withdrawn: it costs what was said since, however long the history before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from woodrat.canon.ids import Ref
from woodrat.engines.records import Kept
from woodrat.engines.view import View
from woodrat.ledger.before import Before, extend_all
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state.asof import Stored
from woodrat.state.observation import ASSERT, RETRACT, Observation

STEPS_MAX: Final = 4
"""How often an earlier state is looked for, since retractions further back withdraw what lies before the first."""


def state_without(view: View, ref: Ref, since: Sequence[Stored], rules: Rules, through: int) -> MergeState | None:
    """Return the merge state of a lone entity at a position; `None` asks for a whole fold.

    `since` are its observations after a state that could not be extended by them.
    """
    if rules.frozen:
        return None
    base = _base(view, ref, since, rules, through)
    if base is None:
        return None
    stored = view.observations(ref.digest, base.position, through)
    withdrawn = _withdrawn(view, stored, through)
    if withdrawn is None:
        return None
    skipped = [said for _, said in stored if said.op == RETRACT or said.digest in withdrawn]
    rest = [one for one in stored if one.observation.op != RETRACT and one.observation.digest not in withdrawn]
    state = extend_all(base.state, rest, rules, Before(view, (ref,), base.position))
    if state is None:
        return None
    return state._replace(
        observations=state.observations + len(skipped),
        until=max([state.until, *(said.valid_from for said in skipped if said.op != RETRACT)]),
        body_bytes=state.body_bytes + sum(len(said.body) for said in skipped),
    )


def _base(view: View, ref: Ref, since: Iterable[Stored], rules: Rules, through: int) -> Kept | None:
    """Return the latest state kept before everything that the retractions since then name; `None` without any."""
    named = _first_named(view, ref, since, through)
    for _ in range(STEPS_MAX):
        if named is None:
            return None
        base = view.kept(ref, named - 1, rules)
        if base is None or base.state.members != (ref,):
            return None
        named = _first_named(view, ref, view.observations(ref.digest, base.position, through), through)
        if named is None or named > base.position:
            return base
    return None


def _first_named(view: View, ref: Ref, stored: Iterable[Stored], through: int) -> int | None:
    """Return the first position of an observation of the entity that retractions among some observations name."""
    names = {name for _, said in stored if said.op == RETRACT for name in said.replaces}
    targets = (view.observation(name, through) for name in names)
    return min((one.position for one in targets if one is not None and one.observation.entity == ref), default=None)


def _withdrawn(view: View, stored: Iterable[Stored], through: int) -> set[bytes] | None:
    """Return what retractions among some observations withdraw of them; `None` where that takes a closer look."""
    by_digest: dict[bytes, Observation] = {said.digest: said for _, said in stored}
    withdrawn: set[bytes] = set()
    for said in by_digest.values():
        if said.op == RETRACT:
            if view.namers(said.digest, through):
                return None  # it may be withdrawn itself
            withdrawn.update(name for name in said.replaces if name in by_digest)
    for digest in withdrawn:
        if by_digest[digest].op != ASSERT or any(s.observation.op != RETRACT for s in view.namers(digest, through)):
            return None
    return withdrawn

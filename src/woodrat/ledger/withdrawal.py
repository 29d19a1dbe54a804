"""Withdrawal: the state of an entity after retractions, from one that was kept before what they withdraw.

A retraction asks for a whole fold, since what it withdraws may be any of all observations. Mostly it withdraws plain
assertions that nothing else names. The state is then that of everything said before the first of them, with what was
said since laid on, but for what is withdrawn: it costs what was said since, however long the history before it.

An assertion of fields under `latest` on none of which it is its agent's latest word is simply taken out of the counts,
wherever it stands; only whether the field still has a rival may have to be looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from woodrat.canon.ids import Ref
from woodrat.engines.port import Kept, View
from woodrat.ledger.before import Before
from woodrat.merge import claim_of, fold
from woodrat.merge.claim import differ
from woodrat.merge.fold import MergeState
from woodrat.merge.incremental import Laying
from woodrat.merge.ranked import LATEST
from woodrat.merge.rules import Rules
from woodrat.state.asof import Stored
from woodrat.state.observation import ASSERT, RETRACT, Observation

LOOKED_BACK: Final = (64, 1_024)
"""How far back in the log another value of a field is looked for, near by first."""
STEPS_MAX: Final = 4
"""How often an earlier state is looked for, since retractions further back withdraw what lies before the first."""


def state_less(view: View, state: MergeState, since: Sequence[Stored], rules: Rules) -> MergeState | None:
    """Return a lone entity's state with one retraction of assertions that are no longer anybody's latest word.

    `None` where only more of the history can tell.
    """
    if len(since) != 1 or since[0].observation.op != RETRACT or rules.frozen:
        return None
    position, retraction = since[0]
    if view.namers(retraction.digest, position):
        return None
    ref = state.members[0]
    claims, misfits, live = dict(state.claims), dict(state.misfits), state.live
    for name in retraction.replaces:
        target = view.observation(name, position)
        if target is None or target.observation.entity != ref:
            continue
        said = target.observation
        if said.op != ASSERT or said.remove or len(view.namers(name, position)) > 1:
            return None
        for field in said.fields:
            if rules.policy(field) is not LATEST or field in state.held:
                return None
            if rules.misfit(field, claim_of(said, field), True) is not None:
                _count_down(misfits, field)
                continue
            on_top = any(stratum.said.digest == name and field in stratum.values for stratum in state.strata)
            if on_top or not _keeps_rivals(view, state, target, field, rules, position, retraction.replaces):
                return None
            _count_down(claims, field)
        live -= 1
    return state._replace(
        claims=claims,
        misfits=misfits,
        live=live,
        observations=state.observations + 1,
        body_bytes=state.body_bytes + len(retraction.body),
    )


def _count_down(counts: dict[str, int], field: str) -> None:
    counts[field] -= 1
    if not counts[field]:
        del counts[field]


def _keeps_rivals(
    view: View,
    state: MergeState,
    target: Stored,
    field: str,
    rules: Rules,
    through: int,
    withdrawn: Collection[bytes],
) -> bool:
    """Return whether a field is known to be as contested without an assertion as with it."""
    said = target.observation
    earlier = state.rivals.get(field)
    value = fold.values(state, rules, frozenset({field}))[field]
    if earlier is None or not differ(said.fields[field], value):
        return True
    if not earlier:
        # One of the same time as the winner is left, unless it is this one.
        top = max(s.said.observed_at for s in state.strata if field in s.values)
        return said.observed_at < top
    if any(field in stratum.values and differ(stratum.values[field], value) for stratum in state.strata):
        return True
    ref = state.members[0]
    for window in LOOKED_BACK:
        for _, other in reversed(view.observations(ref.digest, through - window, through - 1)):
            if (
                other.op == ASSERT
                and field in other.fields
                and other.digest not in withdrawn
                and differ(other.fields[field], value)
                and rules.misfit(field, claim_of(other, field), True) is None
                and not view.namers(other.digest, through)
            ):
                return True
    return False


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
    laying = Laying(base.state, rules)
    known = Before(view, (ref,), base.position)
    skipped = size = 0
    until = base.state.until
    for position, said in stored:
        if said.op == RETRACT or said.digest in withdrawn:
            skipped += 1
            size += len(said.body)
            if said.op != RETRACT:
                until = max(until, said.valid_from)
            continue
        known.through = position - 1
        if not laying.add(said, known):
            return None
    state = laying.state()
    return state._replace(
        observations=state.observations + skipped,
        until=max(until, state.until),
        body_bytes=state.body_bytes + size,
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

"""Blame as its definition reads: each claim on its own, compared with all others, one field at a time.

It shares the fold and the order of claims with `woodrat.merge`, and nothing that makes blame of many claims cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from woodrat.canon.ids import Ref
from woodrat.canon.order import order_bytes
from woodrat.merge import Claim, Held, Policy, claim_of, fold, rank
from woodrat.merge.additive import Terms
from woodrat.merge.by_key import ByKey
from woodrat.merge.claim import label
from woodrat.merge.ranked import LATEST, Ranked
from woodrat.merge.rules import Rules
from woodrat.merge.union import Union
from woodrat.state.observation import RETRACT, STATING, Observation

Line = tuple[str, bool, str, bool]
"""Of one claim: its observation, whether it takes part, why, and whether the field was decided only by arrival."""


def blame(observations: Iterable[Observation], members: Iterable[Ref], rules: Rules, name: str) -> list[Line]:
    """Return what became of every claim on a field, in the order in which blame shows them."""
    everything = {observation.digest: observation for observation in observations}
    acting = {digest: o for digest, o in everything.items() if rules.acts(o)}
    live = fold.live_digests(acting)
    state = fold.fold(everything.values(), members, rules)
    field = state.field(name)
    by_arrival = not state.deleted and name in fold.by_arrival(state, rules, (name,))
    losses: dict[bytes, str] = {}
    stating = {digest: o for digest, o in everything.items() if o.op in STATING and name in o.stated}
    for digest, observation in stating.items():
        misfit = rules.misfit(name, claim_of(observation, name), name in observation.fields)
        if digest not in acting:
            losses[digest] = f"has no effect: {observation.entity.type} takes assertions only"
        elif digest not in live:
            withdrawers = [
                o.digest
                for o in acting.values()
                if o.op == RETRACT and o.digest in live and digest in o.replaces and o.entity == observation.entity
            ]
            reason = acting[min(withdrawers)].optional.get("reason")
            because = f", because {reason}" if isinstance(reason, str) else ""
            losses[digest] = f"withdrawn by {label(min(withdrawers))}{because}"
        elif misfit is not None:
            losses[digest] = f"does not fit: {misfit}"
        elif not state.deleted and fold.is_deleted(state, observation.entity):
            losses[digest] = f"{observation.entity} is deleted"
    claims = [claim_of(o, name) for digest, o in stating.items() if digest not in losses]
    lines: list[tuple[Claim, Line]] = []
    for digest, observation in stating.items():
        claim = claim_of(observation, name)
        if digest in losses or field is None or field.held is None:
            wins, reason = False, losses.get(digest, "names no single original that it could stand in for")
        else:
            wins, reason = verdict(rules.policy(name), field.held, claim, claims)
        if state.deleted and wins:
            wins, reason = False, f"{observation.entity} is deleted; it would take part: {reason}"
        lines.append((claim, (observation.id, wins, reason, wins and by_arrival)))
    lines.sort(key=lambda pair: pair[0].digest)
    lines.sort(key=lambda pair: (pair[1][1], pair[0].observed_at, pair[0].priority, pair[0].order), reverse=True)
    return [line for _, line in lines]


def verdict(policy: Policy, held: Held, claim: Claim, claims: Sequence[Claim]) -> tuple[bool, str]:
    """Return whether a live claim that fits takes part in the value, and why; `claims` are all such."""
    if isinstance(policy, Ranked):
        return _ranked(policy, held, claim, claims)
    if isinstance(policy, Terms):
        return _term(policy, held, claim, claims)
    if isinstance(policy, ByKey):
        return _by_key(policy, held, claim)
    assert isinstance(policy, Union)
    return _union(policy, held, claim)


def _ranked(policy: Ranked, held: Held, claim: Claim, claims: Sequence[Claim]) -> tuple[bool, str]:
    shown = rank.LATEST.top(held.standing.values()) if held.standing else policy.read(held.joined)[1]
    wins = claim.digest == shown.digest
    if held.standing:
        if not claim.corrects:
            return False, f"correction {label(shown.digest)} stands"
        if claim.digest not in held.standing:
            return False, _replaced_by(claim, claims)
        rivals = [c for c in held.standing.values() if c.digest != claim.digest]
        if not rivals:
            return True, "a correction holds against every assertion"
        if wins:
            rivals = [c for c in rivals if c.order != claim.order] or rivals
        why = LATEST.compared(claim, rank.LATEST.top(rivals) if wins else shown)
        return wins, f"of corrections that did not see each other, {why}"
    rivals = [c for c in claims if c.digest != claim.digest]
    if not rivals:
        return True, "the only claim"
    if not wins:
        return False, policy.compared(claim, shown)
    best = policy.read(reduce(policy.join, map(policy.lift, rivals)))[1]
    differing = [c for c in rivals if c.order != claim.order]
    if differing and best.order == claim.order:
        against = policy.read(reduce(policy.join, map(policy.lift, differing)))[1]
        if policy.decided_by_arrival(claim.said, against.said):
            best = against
    return True, policy.compared(claim, best)


def _term(policy: Terms, held: Held, claim: Claim, claims: Sequence[Claim]) -> tuple[bool, str]:
    if not claim.corrects:
        own = policy.term(held, claim)
        if own is not None and own.standing:
            return False, f"correction {label(rank.LATEST.top(own.standing).digest)} stands in for it"
        return True, "counts"
    for term in policy.stood_in(held):
        if term.original.digest not in claim.replaces:
            continue
        assert term.claim is not None
        if term.claim.digest == claim.digest:
            how = "; it arrived later, and no observation time was given" if term.by_arrival else ""
            return True, f"stands in for {label(term.original.digest)}{how}"
        if any(c.digest == claim.digest for c in term.standing):
            return False, f"correction {label(term.claim.digest)} of the same original ranks higher"
    if any(claim.digest in c.replaces for c in claims if c.corrects):
        return False, _replaced_by(claim, claims)
    return False, "names no single original that it could stand in for"


def _union(policy: Union, held: Held, claim: Claim) -> tuple[bool, str]:
    spoken = policy.statements(claim)
    if not spoken:
        return False, "speaks of no element"
    slots = [held.parts[element] for element in spoken]
    mine = [slot for slot in slots if slot.winner.said.digest == claim.digest]
    if mine:
        arrived = sum(slot.by_arrival for slot in mine)
        how = f", {arrived} of them because it arrived later; no observation time was given" if arrived else ""
        return True, f"decides {len(mine)} of the {len(spoken)} elements it speaks of{how}"
    others = sorted({slot.winner.said.digest for slot in slots})
    more = " and others" if len(others) > 1 else ""
    return False, f"every element it speaks of is decided by {label(others[0])}{more}"


def _by_key(policy: ByKey, held: Held, claim: Claim) -> tuple[bool, str]:
    mine: list[str] = []
    others: list[bytes] = []
    stated = arrived = 0
    elements: dict[Any, Any] = dict.fromkeys(claim.removed)
    for each in claim.value or ():  # type: ignore
        elements[each[policy.member]] = {**(elements.get(each[policy.member]) or {}), **each}  # type: ignore
    for text in sorted(elements):
        element = elements[text]
        part = held.parts[order_bytes(text)]
        members = [] if element is None else [name for name in element if name != policy.member]
        stated += 1 + len(members)
        slots = {text: part.presence}
        if part.presence.winner.stated:
            slots |= {f"{text}.{name}": slot for name, slot in part.members.items() if name in members}
        for name, slot in slots.items():
            if slot.winner.said.digest == claim.digest:
                mine.append(name)
                arrived += slot.by_arrival
            else:
                others.append(slot.winner.said.digest)
    if not elements:
        return False, "speaks of no object"
    if mine:
        how = f", {arrived} of them because it arrived later; no observation time was given" if arrived else ""
        more = f" and {len(mine) - 5} more" if len(mine) > 5 else ""
        return True, f"decides {', '.join(mine[:5])}{more} of the {stated} objects and members it speaks of{how}"
    more = " and others" if len(set(others)) > 1 else ""
    return False, f"every object it speaks of is decided by {label(min(others))}{more}"


def _replaced_by(claim: Claim, claims: Sequence[Claim]) -> str:
    namers = sorted(c.digest for c in claims if c.corrects and claim.digest in c.replaces)
    return (
        f"replaced by correction {label(namers[0])}" if namers else "replaced by a correction that was replaced itself"
    )

"""Provenance: the origin of a field's value, conflicts, and the fate of every claim.

Written from docs/formats/merge.md, sections 5 to 7, like `merge.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from woodrat.canon import ids
from woodrat.canon.order import order_key
from woodrat.state.observation import Observation
from woodrat.testing.model.merge import NOTHING, ModelField, ModelFold, Says, same, top

CONTESTED = ("latest", "highest_priority", "first")
"""Policies with conflicts."""


# Winners


def winners(field: ModelField) -> list[Observation]:
    """Return the observations that win a field with a value; of a user's own policy none, since its code names them."""
    if field.policy == "union":
        parts = [field.says_of(element) for element in field.value]
        return [field.winner(part) for part in parts] or [top(field.claims, field.stated)]
    if field.key is not None:
        texts = [text for text in field.texts if field.is_in(text)]
        parts = [field.part(text, member) for text in texts for member in (None, *field.members(text))]
        return [field.winner(part) for part in parts] or [top(field.claims, field.stated)]
    if field.policy == "append":
        return [claim for _, claim in field.contributions]
    if field.policy == "sum":
        highest = top([original for original, _ in field.contributions], field.stated)
        return [claim for original, claim in field.contributions if original is highest]
    if field.standing(field.stated):
        return [field.winner(field.stated)]
    return [] if callable(field.policy) else [field.highest(field.assertions)]


def shown(field: ModelField) -> Observation:
    """Return the one observation that a snapshot shows for a value: of several winners the latest."""
    found = winners(field)
    if field.policy == "append":
        return top(found, field.stated)
    return top(found, lambda o: None)


def standing_corrections(field: ModelField) -> list[Observation]:
    """Return the corrections in effect on any part of a field, by digest."""
    found = {c.digest: c for part in _parts(field, also_out=True) for c in field.standing(part)}
    return [found[digest] for digest in sorted(found)]


def _parts(field: ModelField, *, also_out: bool = False) -> list[Says]:
    """Return all parts of a field; of objects that are out only that they are, by default."""
    if field.policy == "union":
        return [field.says_of(element) for element in field.elements]
    if field.key is not None:
        return [
            field.part(text, member)
            for text in field.texts
            for member in (None, *(field.members(text) if also_out or field.is_in(text) else ()))
        ]
    if field.policy in ("sum", "append"):
        return [field.of_original(original) for original in field.originals]
    return [field.stated]


def origin(field: ModelField) -> dict[str, Any]:
    """Return where the value of a field came from, as a snapshot shows it."""
    claim = shown(field)
    standing = standing_corrections(field)
    reasons = {c.digest: str(c.optional["reason"]) for c in standing if "reason" in c.optional}
    because = reasons.get(claim.digest) or "; ".join(dict.fromkeys(reasons.values())) or None
    return {
        "observation": claim.id,
        "agent": claim.agent,
        "observed_at": claim.observed_at,
        "priority": claim.priority,
        "policy": str(field.policy),
        "claims": len(field.claims),
        "misfits": len(field.misfits),
        "corrected": any(field.standing(part) for part in _parts(field)),
        "observations": [ids.id_of("observation", digest) for digest in sorted({o.digest for o in winners(field)})],
        "by_arrival": by_arrival(field),
        "because": because,
    }


# Conflicts


def contenders(field: ModelField) -> list[Observation]:
    """Return the claims of a field that are in conflict, by digest; empty if it is not."""
    if field.policy not in CONTESTED:
        return []
    latest = latest_of_agents(field)
    standing = field.standing(field.stated)
    if standing:
        highest = top(standing, field.stated)
        against = [c for c in standing if any(_differ(field, c, other) for other in standing)]
        later = [o for o in latest if o.observed_at > highest.observed_at and _differ(field, o, highest)]
        found = [*against, *later, *([highest] if later else [])]
    else:
        found = [
            a
            for a in latest
            if any(_differ(field, a, b) and a.digest not in b.saw and b.digest not in a.saw for b in latest)
        ]
    return _by_digest(found)


def latest_of_agents(field: ModelField) -> list[Observation]:
    """Return the latest live fitting assertion of each agent."""
    agents = sorted({o.agent for o in field.assertions})
    return [top([o for o in field.assertions if o.agent == agent], field.stated) for agent in agents]


def contender(field: ModelField, o: Observation) -> dict[str, Any]:
    """Return a claim in conflict as a conflict shows it."""
    return {
        "observation": o.id,
        "agent": o.agent,
        "observed_at": o.observed_at,
        "value": field.stated(o),
        "corrects": o.op == "correct",
        "assigned": o.assigned,
        "removed": [],
    }


def _differ(field: ModelField, a: Observation, b: Observation) -> bool:
    return not same(field.stated(a), field.stated(b))


def _by_digest(observations: Iterable[Observation]) -> list[Observation]:
    found = {o.digest: o for o in observations}
    return [found[digest] for digest in sorted(found)]


# Decided only by arrival


def by_arrival(field: ModelField) -> bool:
    """Return whether arrival alone decided the value, or a part of it."""
    if field.policy in ("union", "sum", "append") or field.key is not None:
        return any(_part_by_arrival(field, part) for part in _parts(field))
    if field.standing(field.stated):
        return _part_by_arrival(field, field.stated)
    if field.policy not in CONTESTED or not field.assertions:
        return False
    winner = field.highest(field.assertions)
    rivals = [o for o in field.assertions if _differ(field, o, winner)]
    if not rivals:
        return False
    rival = field.highest(rivals)
    if field.policy == "first":
        return rival.assigned and rival.observed_at > winner.observed_at
    if field.policy == "highest_priority" and rival.priority != winner.priority:
        return False
    return winner.assigned and rival.observed_at < winner.observed_at


def _part_by_arrival(field: ModelField, says: Says) -> bool:
    deciding = field.deciding(says)
    if not deciding:
        return False
    winner = top(deciding, says)
    rivals = [o for o in deciding if not same(says(o), says(winner))]
    return winner.assigned and bool(rivals) and top(rivals, says).observed_at < winner.observed_at


# Blame


def blame(fold: ModelFold, name: str) -> list[dict[str, Any]]:
    """Return the fate of every claim on a field: claims that take part first, then the others, latest first.

    `reason` is present for claims that do not enter the merge; it is the beginning of the reason.
    """
    field = fold.all_fields[name]
    taking_part = set() if fold.deleted or field.value is NOTHING else {o.digest for o in _taking_part(field)}
    arrival = not fold.deleted and by_arrival(field)
    stating = [
        o
        for o in fold.everything
        if o.op in ("assert", "correct") and o.entity in fold.members and (name in o.fields or name in o.remove)
    ]
    stating.sort(key=lambda o: o.digest)
    stating.sort(
        key=lambda o: (o.digest in taking_part, o.observed_at, o.priority, order_key(o.fields.get(name))), reverse=True
    )
    return [
        {
            "observation": o.id,
            "entity": str(o.entity),
            "op": o.op,
            "agent": o.agent,
            "observed_at": o.observed_at,
            "priority": o.priority,
            "value": o.fields.get(name),
            "removed": list(o.remove.get(name, ())),
            "wins": o.digest in taking_part,
            "reason": _loss(fold, field, o),
            "assigned": o.assigned,
            "by_arrival": o.digest in taking_part and arrival,
            "because": o.optional.get("reason"),
        }
        for o in stating
    ]


def _taking_part(field: ModelField) -> list[Observation]:
    """Return the claims that take part in a value: those that decide a part, and all counted terms."""
    if field.policy in ("sum", "append"):
        return [claim for _, claim in field.contributions]
    if field.policy == "union" or field.key is not None:
        return [field.winner(part) for part in _parts(field)]
    return winners(field)


def _loss(fold: ModelFold, field: ModelField, o: Observation) -> str:
    """Return the beginning of the reason why a claim does not enter the merge; empty if it does."""
    if o not in fold.acting:
        return "has no effect"
    if not fold.is_live(o):
        withdrawing = [
            r.digest
            for r in fold.acting
            if r.op == "retract" and fold.is_live(r) and o.digest in r.replaces and r.entity == o.entity
        ]
        return f"withdrawn by {ids.id_of('observation', min(withdrawing))}"
    if not field.fits(o):
        return "does not fit: "
    return f"{o.entity} is deleted" if o.entity in fold.deleted_members and not fold.deleted else ""

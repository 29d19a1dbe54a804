"""Blame: every claim on a field, whether it takes part in the value, and why or why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from woodrat.canon import ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import Claim, claim_of, fold
from woodrat.merge.claim import label, latest_rank
from woodrat.merge.rules import Rules
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.observation import RETRACT, STATING, Observation


@dataclass(frozen=True, slots=True)
class Verdict(Record):
    """What became of one claim."""

    observation: ids.ObservationId
    """The observation that makes the claim."""
    entity: Ref
    """The entity it speaks of."""
    op: str
    """`assert` or `correct`."""
    agent: str
    """Who said so."""
    observed_at: str
    """When they saw it."""
    priority: int
    """The priority they claimed."""
    value: Json
    """What they said; null where they only removed elements."""
    removed: tuple[Json, ...]
    """Elements they took out of a collection."""
    source: str | None
    """The source they named."""
    interpretation: str | None
    """The reading it came from."""
    run: str | None
    """The run it was said in."""
    wins: bool
    """Whether it takes part in the value."""
    reason: str
    """Why, in a clause."""
    assigned: bool = False
    """Whether the log set `observed_at`, because they stated none: it is when the claim arrived."""
    by_arrival: bool = False
    """Whether it takes part, and the field was decided only by arrival."""
    locator: Mapping[str, Json] | None = None
    """Where in the source they read it."""
    excerpt: str | None = None
    """The words that stand there, where the source is text or JSON and still has them."""
    because: str | None = None
    """The reason they gave, as for a correction; none where they gave none."""


def blame(
    observations: Iterable[Observation],
    members: Iterable[Ref],
    rules: Rules,
    name: str,
    read: Callable[[Observation], str | None] = lambda observation: None,
) -> tuple[Verdict, ...]:
    """Return what became of every claim on a field: those that take part first, then the others, latest first.

    `read` returns the words that the locator of an observation points at.
    """
    everything = {observation.digest: observation for observation in observations}
    acting = {digest: o for digest, o in everything.items() if rules.acts(o)}
    live = fold.live_digests(acting)
    state = fold.fold(everything.values(), members, rules)
    policy = rules.policy(name)
    field = state.field(name)
    fitting: dict[bytes, Claim] = {}
    lost: dict[bytes, str] = {}
    stating = {digest: o for digest, o in everything.items() if o.op in STATING and name in o.stated}
    for digest, observation in stating.items():
        claim = claim_of(observation, name)
        misfit = rules.misfit(name, claim, name in observation.fields)
        if digest not in acting:
            lost[digest] = f"has no effect: {observation.entity.type} takes assertions only"
        elif digest not in live:
            lost[digest] = f"withdrawn by {_withdrawer(observation, acting, live)}"
        elif misfit is not None:
            lost[digest] = f"does not fit: {misfit}"
        elif not state.deleted and fold.is_deleted(state, observation.entity):
            lost[digest] = f"{observation.entity} is deleted"
        else:
            fitting[digest] = claim
    claims = list(fitting.values())
    by_arrival = not state.deleted and name in fold.by_arrival(state, rules, (name,))
    found: list[tuple[Claim, Verdict]] = []
    for digest, observation in stating.items():
        if digest in lost or field is None or field.held is None:
            wins, reason = False, lost.get(digest, "names no single original that it could stand in for")
        else:
            wins, reason = policy.verdict(field.held, fitting[digest], claims)
        if state.deleted and wins:
            wins, reason = False, f"{observation.entity} is deleted; it would take part: {reason}"
        verdict = _verdict(observation, name, wins, reason, wins and by_arrival, read(observation))
        found.append((claim_of(observation, name), verdict))
    found.sort(key=lambda pair: pair[0].digest)
    found.sort(key=lambda pair: (pair[1].wins, *latest_rank(pair[0])), reverse=True)
    return tuple(verdict for _, verdict in found)


def _verdict(
    observation: Observation, name: str, wins: bool, reason: str, by_arrival: bool, excerpt: str | None
) -> Verdict:
    optional = observation.optional
    source, where = optional.get("source"), optional.get("locator")
    return Verdict(
        observation=observation.id,
        entity=observation.entity,
        op=observation.op,
        agent=observation.agent,
        observed_at=observation.observed_at,
        priority=observation.priority,
        value=observation.fields.get(name),
        removed=observation.remove.get(name, ()),
        source=None if source is None else str(source)[: len("src_") + ids.ID_CHARACTERS],
        interpretation=_text(optional.get("interpretation")),
        run=_text(optional.get("run")),
        wins=wins,
        reason=reason,
        assigned=observation.assigned,
        by_arrival=by_arrival,
        locator=where if isinstance(where, dict) else None,
        excerpt=excerpt,
        because=_text(optional.get("reason")),
    )


def _withdrawer(observation: Observation, acting: dict[bytes, Observation], live: set[bytes]) -> str:
    found = sorted(
        o.digest
        for o in acting.values()
        if o.op == RETRACT and o.digest in live and observation.digest in o.replaces and o.entity == observation.entity
    )
    because = _text(acting[found[0]].optional.get("reason"))
    return label(found[0]) + ("" if because is None else f", because {because}")


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None

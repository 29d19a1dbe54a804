"""Blame: every claim on a field, whether it takes part in the value, and why or why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from woodrat.canon import ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import Claim, claim_of, fold
from woodrat.merge.claim import label
from woodrat.merge.rank import LATEST
from woodrat.merge.rules import Rules
from woodrat.record_json import WHEN_SET, Record
from woodrat.records import dataclass, field
from woodrat.state.match import Match
from woodrat.state.observation import RETRACT, STATING, Observation


@dataclass(frozen=True, slots=True)
class Verdict(Record):
    """What became of one claim."""

    observation: ids.ObservationId
    """The observation that makes the claim."""
    entity: Ref
    """The entity of the claim."""
    op: str
    """`assert` or `correct`."""
    agent: str
    """Who said so."""
    observed_at: str
    """When they saw it."""
    priority: int
    """The priority they claimed."""
    value: Json
    """The stated values; null if the claims only removed elements."""
    removed: tuple[Json, ...]
    """Elements they took out of a collection."""
    source: str | None
    """The source they named."""
    interpretation: str | None
    """The interpretation it came from."""
    run: str | None
    """The run of the observation."""
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
    """The excerpt of the source, if it is text or JSON and still has it."""
    because: str | None = None
    """The stated reason, as for a correction; None without one."""


@dataclass(frozen=True, slots=True, eq=False)
class Blame(Record, Mapping[str, tuple[Verdict, ...]]):
    """Every claim on the fields of an entity: a mapping of the fate of each, by field."""

    entity: Ref
    """The entity."""
    claims: Mapping[str, tuple[Verdict, ...]]
    """The fate of every claim, by field: claims that take part first, then the others, latest first."""
    position: int
    """The log position it was read at."""
    matched: Match | None = field(default=None, metadata=WHEN_SET)
    """How the entity was found, where that was by a value that identifies it."""

    def __getitem__(self, name: str) -> tuple[Verdict, ...]:
        return self.claims[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.claims)

    def __len__(self) -> int:
        return len(self.claims)


def blame(
    observations: Iterable[Observation],
    members: Iterable[Ref],
    rules: Rules,
    name: str,
    read: Callable[[Observation], str | None] = lambda observation: None,
) -> tuple[Verdict, ...]:
    """Return the fate of every claim on a field: claims that take part first, then the others, latest first.

    `read` returns the words that the locator of an observation points at.
    """
    return blame_fields(observations, members, rules, (name,), read)[name]


def blame_fields(
    observations: Iterable[Observation],
    members: Iterable[Ref],
    rules: Rules,
    names: Sequence[str],
    read: Callable[[Observation], str | None] = lambda observation: None,
) -> dict[str, tuple[Verdict, ...]]:
    """Return `blame` of several fields: common parts are computed once."""
    everything = {observation.digest: observation for observation in observations}
    acting = {digest: o for digest, o in everything.items() if rules.acts(o)}
    live = fold.live_digests(acting)
    withdrawers = _withdrawers(acting, live)
    state = fold.fold(everything.values(), members, rules, frozenset(names))
    by_arrival: set[str] = set() if state.deleted else fold.by_arrival(state, rules, names)
    stating: dict[str, list[Observation]] = {name: [] for name in names}
    for observation in everything.values():
        if observation.op in STATING:
            for name in observation.stated & stating.keys():
                stating[name].append(observation)

    def loss(observation: Observation, name: str, claim: Claim) -> str | None:
        """Return why a claim does not enter the merge."""
        if observation.digest not in acting:
            return f"has no effect: {observation.entity.type} takes assertions only"
        if observation.digest not in live:
            return f"withdrawn by {_withdrawer(observation, acting, withdrawers)}"
        misfit = rules.misfit(name, claim, name in observation.fields)
        if misfit is not None:
            return f"does not fit: {misfit}"
        if not state.deleted and fold.is_deleted(state, observation.entity):
            return f"{observation.entity} is deleted"
        return None

    def judged(name: str) -> Iterator[tuple[Observation, Claim, bool, str]]:
        """Yield each claim on a field with its observation, whether it takes part, and why."""
        fitting: list[tuple[Observation, Claim]] = []
        for observation in stating[name]:
            claim = claim_of(observation, name)
            reason = loss(observation, name, claim)
            if reason is not None:
                yield observation, claim, False, reason
            else:
                fitting.append((observation, claim))
        field = state.field(name)
        if field is None or field.held is None:
            verdicts = [(False, "names no single original that it could stand in for")] * len(fitting)
        else:
            verdicts = rules.policy(name).verdicts(field.held, [claim for _, claim in fitting])
        for (observation, claim), (wins, reason) in zip(fitting, verdicts, strict=True):
            if state.deleted and wins:
                wins, reason = False, f"{observation.entity} is deleted; it would take part: {reason}"
            yield observation, claim, wins, reason

    height = LATEST.sort_key()
    blamed: dict[str, tuple[Verdict, ...]] = {}
    for name in names:
        found = [
            (claim, _verdict(observation, name, wins, reason, wins and name in by_arrival, read(observation)))
            for observation, claim, wins, reason in judged(name)
        ]
        found.sort(key=lambda pair: (not pair[1].wins, height(pair[0])))
        blamed[name] = tuple(verdict for _, verdict in found)
    return blamed


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


def _withdrawer(
    observation: Observation, acting: Mapping[bytes, Observation], withdrawers: Mapping[bytes, bytes]
) -> str:
    """Return which retraction withdraws an observation, and why."""
    digest = withdrawers[observation.digest]
    because = _text(acting[digest].optional.get("reason"))
    return label(digest) + ("" if because is None else f", because {because}")


def _withdrawers(acting: Mapping[bytes, Observation], live: set[bytes]) -> dict[bytes, bytes]:
    """Return the live retraction that withdraws an observation, by that observation; of several the one with the
    smallest digest.
    """
    withdrawers: dict[bytes, bytes] = {}
    for digest, observation in acting.items():
        if observation.op == RETRACT and digest in live:
            for name in observation.replaces:
                target = acting.get(name)
                if target is not None and target.entity == observation.entity:
                    withdrawers[name] = min(withdrawers.get(name, digest), digest)
    return withdrawers


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None

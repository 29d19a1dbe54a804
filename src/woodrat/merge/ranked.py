"""Ranked policies: the value is one claim's, or the result of a join of all claims; corrections come first."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.merge import rank
from woodrat.merge.claim import Claim, Said, differ, first_namers, label, replaced_by, unreplaced
from woodrat.merge.packing import Packer, Unpacker
from woodrat.merge.policy import ALL_TYPES, FoldHistory, Held, Misfit, Policy, Shown
from woodrat.merge.rank import Rank, arrived_later, corrected_by_arrival
from woodrat.state.schema_keywords import PolicyName


class RankedHeld(NamedTuple):
    """The state of a ranked policy."""

    joined: Any
    """The join of all live assertions; `None` without any."""
    standing: Mapping[bytes, Claim]
    """Live corrections that are not replaced."""
    agents: Mapping[str, Claim]
    """The latest live assertion of each agent; stored only if conflicts are looked for."""
    rival: Claim | None = None
    """The highest live assertion of another value than the winner's.

    Stored while no correction is in effect, if the policy tracks decisions by arrival. Under `latest` less is stored,
    in the merge state itself.
    """


class Ranked(Policy):
    """A policy whose value is one claim's, or the result of a join of all of them."""

    rivals: bool = False
    """Whether the best claim of another value is stored."""

    @abstractmethod
    def lift(self, claim: Claim) -> Any:
        """Return the initial value of the join for one claim."""

    @abstractmethod
    def join(self, a: Any, b: Any) -> Any:
        """Return the join of two; commutative, associative and idempotent."""

    @abstractmethod
    def read(self, joined: Any) -> tuple[Json, Claim]:
        """Return the value of a join and the claim to show for it."""

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        standing = {c.digest: c for c in unreplaced((claim for claim in claims if claim.corrects), live)}
        asserted = [claim for claim in claims if not claim.corrects and claim.digest in live]
        if not standing and not asserted:
            return None
        agents: dict[str, Claim] = {}
        if self.contested:
            for claim in asserted:
                agents[claim.agent] = rank.LATEST.higher(agents.get(claim.agent, claim), claim)
        joined = reduce(self.join, map(self.lift, asserted)) if asserted else None
        rival = None
        if self.rivals and joined is not None and not standing:
            differing = [claim for claim in asserted if differ(claim.value, joined.value)]
            rival = reduce(self.join, differing) if differing else None
        return RankedHeld(joined, standing, agents, rival)

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        said = claim.said
        if held is None:
            agents = {said.agent: claim} if self.contested and not said.corrects else {}
            return (
                RankedHeld(None, {said.digest: claim}, agents)
                if said.corrects
                else RankedHeld(self.lift(claim), {}, agents)
            )
        best, standing, agents, rival = held
        if said.corrects:
            others = {digest: c for digest, c in standing.items() if digest not in said.replaces}
            return RankedHeld(best, {**others, said.digest: claim}, agents)
        joined = self.lift(claim) if best is None else self.join(best, self.lift(claim))
        if not self.contested:
            return held if joined is best else RankedHeld(joined, standing, agents)
        latest = agents.get(said.agent)
        agents = {**agents, said.agent: claim if latest is None else rank.LATEST.higher(latest, claim)}
        if self.rivals and not standing and best is not None and differ(claim.value, best.value):
            # A winner is above every rival of the previous winner.
            rival = best if joined is claim else claim if rival is None else self.join(rival, claim)
        return RankedHeld(joined, standing, agents, rival)

    def show(self, held: Held) -> Shown:
        if held.standing:
            claim = rank.LATEST.top(held.standing.values())
            return Shown(claim.value, claim.said, (claim.digest,), True)
        value, claim = self.read(held.joined)
        return Shown(value, claim.said, (claim.digest,), False)

    def value(self, held: Held) -> Json:
        return rank.LATEST.top(held.standing.values()).value if held.standing else self.read(held.joined)[0]

    def standing(self, held: Held) -> frozenset[bytes]:
        return frozenset(held.standing)

    def pack_joined(self, joined: Any, packer: Packer) -> Any:
        """Return a join as JSON; here a join is a claim."""
        return packer.claim(joined)

    def unpack_joined(self, packed: Any, unpacker: Unpacker) -> Any:
        """Return the join that was packed."""
        return unpacker.claim(packed)

    def pack(self, held: Held, packer: Packer) -> Any:
        best, corrections, latest, other = held
        joined = None if best is None else self.pack_joined(best, packer)
        names = sorted(latest) if len(latest) > 1 else [*latest]
        # Mostly one agent wrote last and won: its claim is then the join itself, and is not written twice.
        agents = [0 if latest[name] is best else packer.claim(latest[name]) for name in names]
        standing = [packer.claim(corrections[digest]) for digest in sorted(corrections)]
        if other is None:
            return [joined, agents, standing]
        # The rival is mostly its agent's latest claim: then it is stored as a reference to that.
        rival = names.index(other.agent) if latest.get(other.agent) is other else packer.claim(other)
        return [joined, agents, standing, rival]

    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        joined: Any = None if packed[0] is None else self.unpack_joined(packed[0], unpacker)
        claims = [joined if c == 0 else unpacker.claim(c) for c in packed[1]]
        standing = [unpacker.claim(c) for c in packed[2]]
        rival: Claim | None = None
        if len(packed) > 3:
            rival = claims[packed[3]] if type(packed[3]) is int else unpacker.claim(packed[3])
        return RankedHeld(joined, {c.digest: c for c in standing}, {c.agent: c for c in claims}, rival)

    def compared(self, claim: Claim, other: Claim) -> str:
        """Return why the first claim beat the second, or lost to it."""
        return f"joined by {self.name}"

    def verdicts(self, held: Held, claims: Sequence[Claim]) -> list[tuple[bool, str]]:
        if held.standing:
            return self._corrected(held.standing, claims)
        if len(claims) == 1:
            return [(True, "the only claim")]
        shown = self.read(held.joined)[1]
        return [
            (True, self._won(claim, claims)) if claim.digest == shown.digest else (False, self.compared(claim, shown))
            for claim in claims
        ]

    def _won(self, claim: Claim, claims: Sequence[Claim]) -> str:
        """Return why the shown claim is above all others."""
        rivals = [c for c in claims if c.digest != claim.digest]
        best = self.read(reduce(self.join, map(self.lift, rivals)))[1]
        differing = [c for c in rivals if c.order != claim.order]
        if differing and best.order == claim.order:
            against = self.read(reduce(self.join, map(self.lift, differing)))[1]
            if self.decided_by_arrival(claim.said, against.said):
                best = against
        return self.compared(claim, best)

    @staticmethod
    def _corrected(standing: Mapping[bytes, Claim], claims: Sequence[Claim]) -> list[tuple[bool, str]]:
        """Return the fate of each claim on a field with corrections in effect."""
        shown = rank.LATEST.top(standing.values())
        overruled = f"correction {label(shown.digest)} stands"
        namers = first_namers(claims)
        verdicts = []
        for claim in claims:
            wins = claim.digest == shown.digest
            if not claim.corrects:
                reason = overruled
            elif claim.digest not in standing:
                reason = replaced_by(claim, namers)
            elif len(standing) == 1:
                reason = "a correction holds against every assertion"
            else:
                rival = shown
                if wins:
                    rivals = [c for c in standing.values() if c.digest != claim.digest]
                    rival = rank.LATEST.top([c for c in rivals if c.order != claim.order] or rivals)
                reason = f"of corrections that did not see each other, {LATEST.compared(claim, rival)}"
            verdicts.append((wins, reason))
        return verdicts

    def contest(self, held: Held) -> tuple[Claim, ...]:
        if not self.contested or (len(held.agents) < 2 and not held.standing):
            return ()
        latest = list(held.agents.values())
        if held.standing:
            corrections = list(held.standing.values())
            winner = rank.LATEST.top(corrections)
            against = corrections if len({c.order for c in corrections}) > 1 else []
            later = [c for c in latest if c.observed_at > winner.observed_at and c.order != winner.order]
            found = {c.digest: c for c in (*against, *later, *([winner] if later else []))}
        else:
            found = {c.digest: c for c in _differing_unseen(latest)}
        return tuple(found[digest] for digest in sorted(found))

    def by_arrival(self, held: Held) -> bool:
        if held.standing:
            return corrected_by_arrival(held.standing.values())
        return held.rival is not None and self.decided_by_arrival(held.joined.said, held.rival.said)

    def decided_by_arrival(self, winner: Said, rival: Said) -> bool:
        """Return True if a winner ranks above a rival of another value only by arrival."""
        return False

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        if held.standing:
            winner = rank.LATEST.top(held.standing.values())
            others = [c for c in held.standing.values() if c.order != winner.order]
        else:
            winner = self.read(held.joined)[1]
            found = {c.digest: c for c in (held.rival, *held.agents.values()) if c is not None}
            others = [c for c in found.values() if c.order != winner.order]
        return (winner, *sorted(others, key=lambda claim: claim.digest))


def _differing_unseen(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims with a differing one where neither had seen the other.

    For each claim, count the differing ones and those of them that it saw or was seen by, so that the cost grows with
    the claims and their links, not with their pairs.
    """
    sizes = Counter(claim.order for claim in claims)
    if len(sizes) < 2:
        return []
    by_digest = {claim.digest: claim for claim in claims}
    met: dict[bytes, set[bytes]] = {}
    for claim in claims:
        for digest in by_digest.keys() & claim.saw if claim.saw else ():
            if by_digest[digest].order != claim.order:
                met.setdefault(claim.digest, set()).add(digest)
                met.setdefault(digest, set()).add(claim.digest)
    return [c for c in claims if len(claims) - sizes[c.order] > len(met.get(c.digest, ()))]


class Top(Ranked):
    """A ranked policy whose value is that of the claim with the highest rank."""

    def __init__(
        self, name: str, order: Rank, arrival: Callable[[Said, Said], bool] | None = None, *, rivals: bool = False
    ) -> None:
        self.name = PolicyName(name)
        self.rank = order
        self._arrival = arrival
        self.rivals = rivals
        # If the value alone decides, there are no conflicts and no dependence on time.
        self.contested = arrival is not None

    def lift(self, claim: Claim) -> Claim:
        return claim

    def join(self, a: Claim, b: Claim) -> Claim:
        return self.rank.higher(a, b)

    def read(self, joined: Claim) -> tuple[Json, Claim]:
        return joined.value, joined

    def decided_by_arrival(self, winner: Said, rival: Said) -> bool:
        return self._arrival is not None and self._arrival(winner, rival)

    def compared(self, claim: Claim, other: Claim) -> str:
        wins = self.rank.higher(claim, other) is claim
        winner, loser = (claim, other) if wins else (other, claim)
        reason = self.rank.reason(claim, other)
        if reason is None:
            return "an equal claim; the one with the smaller digest is shown"
        return _by_arrival(claim.said, other.said, wins) if self.decided_by_arrival(winner.said, loser.said) else reason


class JoinPolicy(Ranked):
    """A user's own policy: three pure functions under a name, a version and the digest of their code.

    `lift(claim)` gives a JSON value, `join` combines two of them (commutative, associative, idempotent), `read`
    turns the result into the field's value. `woodrat.testing.laws.check_policy` tries the laws on it.
    """

    def __init__(
        self,
        name: PolicyName,
        lift: Callable[[Claim], Json],
        join: Callable[[Json, Json], Json],
        read: Callable[[Json], Json],
        json_types: frozenset[str] = ALL_TYPES,
    ) -> None:
        self.name = name
        self.json_types = json_types
        self._lift, self._join, self._read = lift, join, read

    def lift(self, claim: Claim) -> Any:
        return {"joined": form.normal(self._lift(claim)), "shown": claim}

    def join(self, a: Any, b: Any) -> Any:
        # The shown claim is the latest that took part; the value itself comes from the user's join.
        joined = form.normal(self._join(a["joined"], b["joined"]))
        return {"joined": joined, "shown": rank.LATEST.higher(a["shown"], b["shown"])}

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return form.normal(self._read(joined["joined"])), joined["shown"]

    def pack_joined(self, joined: Any, packer: Packer) -> Any:
        return [joined["joined"], packer.claim(joined["shown"])]

    def unpack_joined(self, packed: Any, unpacker: Unpacker) -> Any:
        return {"joined": packed[0], "shown": unpacker.claim(packed[1])}


def _by_arrival(said: Said, other: Said, wins: bool) -> str:
    """Return the clause for a claim that ranks above another, or below it, only by arrival."""
    when = "later" if said.observed_at > other.observed_at else "earlier"
    if said.assigned:
        return f"arrived {when}; no observation time was given"
    # Of the two only the other's time was assigned.
    return f"{'beats' if wins else 'loses to'} a claim without an observation time, by arrival"


def _arrived_later(winner: Said, rival: Said) -> bool:
    return arrived_later(winner, rival.observed_at)


def _arrived_later_at_one_priority(winner: Said, rival: Said) -> bool:
    return winner.priority == rival.priority and _arrived_later(winner, rival)


def _arrived_earlier(winner: Said, rival: Said) -> bool:
    """Return True if the rival may have been observed first: its time is its time of arrival."""
    return rival.assigned and winner.observed_at < rival.observed_at


LATEST = Top("latest", rank.LATEST, _arrived_later)
HIGHEST_PRIORITY = Top("highest_priority", rank.HIGHEST_PRIORITY, _arrived_later_at_one_priority, rivals=True)
FIRST = Top("first", rank.FIRST, _arrived_earlier, rivals=True)
MAX = Top("max", rank.MAX)
MIN = Top("min", rank.MIN)

"""The laws of blame and of conflicts: what is worked out of many claims together is what each pair by itself says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import plain_blame
from tests.laws.test_merge_laws import AUDIT, CASES, Case

from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.merge import fold, rank, snapshot
from woodrat.merge.blame import Verdict, blame, blame_fields
from woodrat.merge.claim import Claim
from woodrat.merge.ranked import LATEST
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, CORRECT, RETRACT, Observation, say
from woodrat.testing.generators import MOMENTS, arrivals

pytestmark = pytest.mark.laws


def _lines(verdicts: Sequence[Verdict]) -> list[plain_blame.Line]:
    return [(str(v.observation), v.wins, v.reason, v.by_arrival) for v in verdicts]


@pytest.mark.parametrize("case", [*CASES, AUDIT], ids=lambda case: case.name)
@given(data=st.data())
def test_blame_is_its_plain_definition(case: Case, data: st.DataObject) -> None:
    """Blame of one field, and of all fields at once, says of each claim what its plain definition says."""
    history = data.draw(case.histories())
    observations = data.draw(arrivals(history))
    names = sorted(case.policies)
    together = blame_fields(observations, history.members, case.rules, names)
    assert list(together) == names
    for name in names:
        plain = plain_blame.blame(history.observations, history.members, case.rules, name)
        assert _lines(together[name]) == plain
        assert _lines(blame(observations, history.members, case.rules, name)) == plain


@pytest.mark.parametrize("case", CASES[:-1], ids=lambda case: case.name)
def test_blame_of_many_claims_compares_few_pairs(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as many claims, corrections and retractions need about four times as many looks at claims."""
    looks = 0

    def counted(claim: Claim) -> bytes:
        nonlocal looks
        looks += 1
        return claim.said.digest

    monkeypatch.setattr(Claim, "digest", property(counted))
    costs = []
    for size in (60, 240):
        observations = _busy(size, str(case.policies["x"].name))
        looks = 0
        verdicts = blame(observations, (THING,), case.rules, "x")
        costs.append(looks)
        assert _lines(verdicts) == plain_blame.blame(observations, (THING,), case.rules, "x")
    assert costs[1] < 6 * costs[0], "the looks at claims grow with their pairs"


THING = Ref("thing", "a")


def _busy(size: int, policy: str) -> list[Observation]:
    """Return assertions of one field, a third of them corrected, a third of them withdrawn."""
    observations: list[Observation] = []
    for number in range(size):
        value: object = f"{number:05d}"
        if policy == "sum":
            value = number
        elif policy in ("union", "append"):
            value = [number]
        elif policy == "by_key:name":
            value = [{"name": f"{number}"}]
        at = MOMENTS[number % 2]
        original = say(THING, ASSERT, agent=f"agent {number}", observed_at=at, fields={"x": value})  # type: ignore[dict-item]
        observations.append(original)
        names = [original.digest]
        if number % 3 == 1:
            fields = {"x": value}
            observations.append(say(THING, CORRECT, agent="ada", observed_at=at, fields=fields, replaces=names))  # type: ignore[arg-type]
        elif number % 3 == 2:
            observations.append(say(THING, RETRACT, agent="ada", observed_at=at, replaces=names))
    return observations


def test_a_wide_entity_is_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blame of every field asks once whether a claim fits, not once for each field there is."""
    case = CASES[-1]
    names = sorted(case.policies)
    observations = [
        say(THING, ASSERT, agent="ada", observed_at=MOMENTS[0], fields={name: str(number)})
        for number, name in enumerate(names)
    ]
    asked: list[str] = []
    plain_misfit = Rules.misfit

    def counted(rules: Rules, name: str, claim: Claim, states_value: bool) -> str | None:
        asked.append(name)
        return plain_misfit(rules, name, claim, states_value)

    monkeypatch.setattr(Rules, "misfit", counted)
    blame_fields(observations, (THING,), case.rules, names)
    assert len(asked) <= 2 * len(names), "claims of other fields were looked at for each field"


@st.composite
def _opinions(draw: st.DrawFn) -> list[Observation]:
    """Return what several agents say of one field, each having seen some of what was said before."""
    observations: list[Observation] = []
    for number in range(draw(st.integers(0, 24))):
        saw = draw(st.lists(st.sampled_from(observations), max_size=4)) if observations else []
        value = draw(st.sampled_from(["a", "b", 1, True, 1.0, [1], {"a": 1}]))
        observations.append(
            say(
                THING,
                draw(st.sampled_from([ASSERT, ASSERT, ASSERT, CORRECT])),
                agent=f"agent {number}",
                observed_at=draw(st.sampled_from(MOMENTS[:2])),
                fields={"x": value},  # type: ignore[dict-item]
                saw=[o.digest for o in saw],
            )
        )
    return observations


@given(_opinions())
def test_a_contest_is_its_plain_definition(observations: list[Observation]) -> None:
    """Claims are in conflict exactly where a pair of them differs and neither had seen the other."""
    rules = CASES[0].rules
    state = fold.fold(observations, (THING,), rules)
    field = state.field("x")
    if field is None:
        return
    held = field.held
    latest, standing = list(held.agents.values()), list(held.standing.values())
    if standing:
        winner = rank.LATEST.top(standing)
        later = [c for c in latest if c.observed_at > winner.observed_at and c.order != winner.order]
        plain = {c.digest for c in standing if any(c.order != other.order for other in standing)}
        plain |= {c.digest for c in later} | ({winner.digest} if later else set())
    else:
        plain = {
            c.digest
            for c in latest
            if any(c.order != d.order and c.digest not in d.saw and d.digest not in c.saw for d in latest)
        }
    assert [claim.digest for claim in LATEST.contest(held)] == sorted(plain)
    assert snapshot.contested(state, rules, {"x"}) == ({"x"} if plain else set())
    shown = fold.values(state, rules)["x"]
    assert order_key(shown) == (rank.LATEST.top(standing) if standing else rank.LATEST.top(latest)).order

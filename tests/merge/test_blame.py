"""Blame: every claim on a field, whether it takes part in the value, and why or why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import woodrat
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN, Policy
from woodrat.merge.blame import Verdict, blame
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, CORRECT, DELETE, Observation, say
from woodrat.state.schema import parse_schema
from woodrat.state.schema_keywords import PolicyName, PolicyTraits
from woodrat.testing.clock import FixedClock

BOAT = Ref("boat", "gull")
FIELD = "x"

CONTESTED = ["latest", "highest_priority", "first"]
RANKED = [*CONTESTED, "max", "min"]
EVERY = [*RANKED, "union", "sum", "append"]


def rules(policy: str | Policy, entity_type: str = "boat", **subschema: Any) -> Rules:
    """Return rules under which the one field merges by `policy`."""
    own = {} if isinstance(policy, str) else {str(policy.name): policy}
    known: Mapping[str, Policy] = {**BUILTIN, **own}
    stated = policy if isinstance(policy, str) else policy.name.to_json()

    def traits(name: PolicyName) -> PolicyTraits | None:
        found = known.get(str(name))
        return found.traits if found is not None else None

    document = {"properties": {FIELD: {**subschema, "x-woodrat-merge": stated}}}
    return Rules(parse_schema(document, entity_type, policies=traits), known)


def when(second: int) -> str:
    """Return a moment in fixed width."""
    return f"2026-01-01T00:00:{second:02d}.000000Z"


def claim(value: Json, second: int = 1, *, op: str = ASSERT, entity: Ref = BOAT, **parts: Any) -> Observation:
    """Return an observation that says `value` of the field."""
    agent = parts.pop("agent", "crm")
    return say(entity, op, agent=agent, observed_at=when(second), fields={FIELD: value}, **parts)


def correction(value: Json, second: int = 1, *replaces: Observation, **parts: Any) -> Observation:
    """Return a correction of the field that names these."""
    return claim(value, second, op=CORRECT, replaces=[o.digest for o in replaces], **parts)


def marker(op: str, *replaces: Observation, entity: Ref = BOAT, second: int = 9) -> Observation:
    """Return a delete or restore."""
    return say(entity, op, agent="crm", observed_at=when(second), replaces=[o.digest for o in replaces])


def verdicts(rules: Rules, *observations: Observation, members: tuple[Ref, ...] = (BOAT,)) -> dict[str, Verdict]:
    """Return the verdict on each claim, having made sure that the order of arrival does not show."""
    found = blame(observations, members, rules, FIELD)
    assert blame(reversed(observations), members, rules, FIELD) == found
    wins = [verdict.wins for verdict in found]
    assert wins == sorted(wins, reverse=True), "those that take part come first"
    return {verdict.observation: verdict for verdict in found}


def told(rules: Rules, *observations: Observation, members: tuple[Ref, ...] = (BOAT,)) -> list[tuple[bool, str]]:
    """Return (wins, reason) of each claim among `observations`, in their order."""
    found = verdicts(rules, *observations, members=members)
    return [(found[o.id].wins, found[o.id].reason) for o in observations if o.id in found]


def value_for(policy: str, number: int) -> Json:
    """Return a value that the policy takes."""
    return [number] if policy in ("union", "append") else number


# Ranks


@pytest.mark.parametrize(
    ("policy", "one", "other", "wins", "loses"),
    [
        pytest.param("latest", claim(9, 1), claim(1, 2), "observed later", "observed earlier", id="latest, time"),
        pytest.param(
            "latest",
            claim(9, priority=0),
            claim(1, priority=5),
            "higher priority",
            "lower priority",
            id="latest, priority",
        ),
        pytest.param("latest", claim(1), claim(9), "larger value", "smaller value", id="latest, value"),
        pytest.param(
            "highest_priority",
            claim(9, 2, priority=0),
            claim(1, 1, priority=5),
            "higher priority",
            "lower priority",
            id="highest_priority, priority",
        ),
        pytest.param(
            "highest_priority",
            claim(9, 1),
            claim(1, 2),
            "observed later",
            "observed earlier",
            id="highest_priority, time",
        ),
        pytest.param(
            "highest_priority", claim(1), claim(9), "larger value", "smaller value", id="highest_priority, value"
        ),
        pytest.param("first", claim(9, 2), claim(1, 1), "observed earlier", "observed later", id="first, time"),
        pytest.param(
            "first",
            claim(9, priority=0),
            claim(1, priority=5),
            "higher priority",
            "lower priority",
            id="first, priority",
        ),
        pytest.param("first", claim(1), claim(9), "larger value", "smaller value", id="first, value"),
        pytest.param("max", claim(1, 2, priority=5), claim(9, 1), "larger value", "smaller value", id="max"),
        pytest.param("min", claim(9, 2, priority=5), claim(1, 1), "smaller value", "larger value", id="min"),
    ],
)
def test_why_a_claim_loses(policy: str, one: Observation, other: Observation, wins: str, loses: str) -> None:
    """The first criterion of the policy's rank on which two claims differ is the reason of both."""
    assert told(rules(policy), one, other) == [(False, loses), (True, wins)]


@pytest.mark.parametrize("policy", RANKED)
def test_equal_claims(policy: str) -> None:
    """Of equal claims the one with the smaller digest is shown, and both say that they are equal."""
    one, other = sorted((claim(1, agent="a"), claim(1, agent="b")), key=lambda o: o.digest)
    equal = "an equal claim; the one with the smaller digest is shown"
    assert told(rules(policy), one, other) == [(True, equal), (False, equal)]


def test_a_winner_is_compared_with_the_next_best() -> None:
    """With several rivals, the winner says why it beat the best of them, the losers why they lost to it."""
    assert told(rules("latest"), claim(1, 1), claim(2, 5, priority=1), claim(3, 5)) == [
        (False, "observed earlier"),
        (True, "higher priority"),
        (False, "lower priority"),
    ]


def test_a_policy_of_ones_own() -> None:
    """Under a policy of one's own, every claim says which policy joined it."""
    policy = woodrat.own_policy("widest", 2, lift=lambda c: c.value, join=_larger, code="a" * 64)
    found = told(rules(policy), claim(5, 1), claim(3, 2))
    assert [reason for _, reason in found] == ["joined by widest@2"] * 2
    assert [wins for wins, _ in found] == [False, True]


def _larger(a: Any, b: Any) -> Any:
    return max(a, b)


# Corrections


# Withdrawn, unfitting, deleted, frozen


@pytest.mark.parametrize("policy", EVERY)
def test_a_claim_that_does_not_fit_its_schema(policy: str) -> None:
    """A claim that does not fit its field's schema says why, and takes no part."""
    fitting, unfitting = claim(value_for(policy, 1), 1), claim(value_for(policy, 99), 2)
    bound = {"items": {"maximum": 9}} if policy in ("union", "append") else {"maximum": 9}
    found = told(rules(policy, **bound), fitting, unfitting)
    assert found[0][0]
    assert not found[1][0]
    assert found[1][1].startswith("does not fit: ")
    assert "expected at most 9, got 99 (number)" in found[1][1]


@pytest.mark.parametrize(
    ("policy", "value", "reason"),
    [
        ("union", "cup", "does not fit: union takes an array of elements"),
        ("append", "cup", "does not fit: append takes an array of elements"),
        ("sum", 1.5, 'does not fit: sum takes an integer or decimal text such as "12.50"'),
    ],
)
def test_a_claim_that_does_not_fit_its_policy(policy: str, value: Json, reason: str) -> None:
    """A claim that its policy cannot take says why, and takes no part."""
    assert told(rules(policy), claim(value), claim(value_for(policy, 1)))[0] == (False, reason)


def test_removals_where_nothing_can_be_removed() -> None:
    """A removal on a field that is not a union does not fit, and is shown with what it would have removed."""
    removal = say(BOAT, ASSERT, agent="crm", observed_at=when(2), remove={FIELD: ["a"]})
    found = verdicts(rules("latest"), claim("a"), removal)[removal.id]
    assert found.reason == "does not fit: only union and by_key take elements out; this field merges by latest"
    assert (found.value, found.removed) == (None, ("a",))


# Union


# Sum and append


# What a verdict shows


def test_the_order_of_verdicts() -> None:
    """Those that take part come first, then the others, each latest first."""
    observations = [claim(number, number) for number in (2, 4, 1, 3)]
    found = blame(observations, [BOAT], rules("first"), FIELD)
    assert [verdict.value for verdict in found] == [1, 4, 3, 2]


def test_a_verdict_shows_all_that_counted() -> None:
    """A verdict shows who claimed what, when, at which priority, from which source."""
    source = "src_" + "a" * 52
    said = claim(1, 3, agent="mail", priority=7, source=source, interpretation="int_1", run="run_1", step=2)
    (found,) = blame([said], [BOAT], rules("latest"), FIELD)
    assert found.to_json() == {
        "observation": said.id,
        "entity": "boat/gull",
        "op": "assert",
        "agent": "mail",
        "observed_at": when(3),
        "assigned": False,
        "priority": 7,
        "value": 1,
        "wins": True,
        "reason": "the only claim",
        "by_arrival": False,
        "source": "src_" + "a" * 26,
        "interpretation": "int_1",
        "run": "run_1",
        "removed": [],
        "locator": None,
        "excerpt": None,
        "because": None,
    }


def test_nothing_claimed_is_nothing_blamed() -> None:
    """A field that nothing was said of has no verdicts."""
    assert blame([marker(DELETE)], [BOAT], rules("latest"), FIELD) == ()


# Through the ledger


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger in which Ana's city was said three times."""
    ledger = woodrat.open(":memory:", clock=FixedClock())
    for city in ("Barcelona", "Girona", "Reus"):
        ledger.store([{"entity_type": "contact", "name": "Ana", "city": city, "tags": [city]}])
    return ledger


def test_blame_of_a_field_and_of_all(ledger: woodrat.Ledger) -> None:
    """Blame answers for one field or for all; the winner is the one the snapshot names."""
    city = ledger.blame("contact/Ana", "city")["city"]
    assert [(verdict.value, verdict.wins, verdict.reason) for verdict in city] == [
        ("Reus", True, "arrived later; no observation time was given"),
        ("Girona", False, "arrived earlier; no observation time was given"),
        ("Barcelona", False, "arrived earlier; no observation time was given"),
    ]
    assert [(verdict.assigned, verdict.by_arrival) for verdict in city] == [(True, True), (True, False), (True, False)]
    assert city[0].observation == ledger.show("contact/Ana").blame["city"].observation
    assert list(ledger.blame("contact/Ana")) == ["city", "name", "tags"]
    assert ledger.blame("contact/Ana")["city"] == city


def test_blame_at_a_moment(ledger: woodrat.Ledger) -> None:
    """Blame as of a moment knows only what was known then; at an effective time, only what was true by then."""
    past = ledger.at(2).blame("contact/Ana", "city")["city"]
    assert [verdict.value for verdict in past] == ["Girona", "Barcelona"]
    ledger.store([{"entity_type": "contact", "name": "Ana", "city": "Olot"}], valid_from="2030-01-01T00:00:00Z")
    effective = ledger.at(valid_at="2027-01-01T00:00:00Z").blame("contact/Ana", "city")["city"]
    assert [verdict.value for verdict in effective] == ["Reus", "Girona", "Barcelona"]


def test_blame_follows_the_schema(ledger: woodrat.Ledger) -> None:
    """Under a new policy the same claims win and lose for other reasons, and at the old moment for the old ones."""
    then = ledger.position
    ledger.schemas.register({"title": "contact", "properties": {"city": {"x-woodrat-merge": "min"}}})
    city = ledger.blame("contact/Ana", "city")["city"]
    assert [(verdict.value, verdict.reason) for verdict in city] == [
        ("Barcelona", "smaller value"),
        ("Reus", "larger value"),
        ("Girona", "larger value"),
    ]
    assert ledger.at(then).blame("contact/Ana", "city")["city"][0].value == "Reus"


def test_a_reason_is_told_where_its_correction_stands(ledger: woodrat.Ledger) -> None:
    """A correction that is shown for an empty union, on which nothing stands, gives no reason there."""
    ledger.schemas.register(
        {"title": "flow", "properties": {"tags": {"x-woodrat-merge": "union"}}, "x-woodrat-identity": [["id"]]}
    )
    ledger.store({"entity_type": "flow", "id": "x", "city": "Vic"})
    ledger.correct("flow/x", {"city": "Berga", "tags": []}, reason="read the letter")
    blame = ledger.show("flow/x").blame
    assert blame["city"].because == "read the letter"
    assert (blame["tags"].corrected, blame["tags"].because) == (False, None)

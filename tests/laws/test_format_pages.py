"""What the format pages say of claims and winners, worked out by hand; code and model both agree with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from woodrat.canon import form, ids
from woodrat.canon.digest import digest
from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN, fold, snapshot
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, CORRECT, Observation, say
from woodrat.state.schema import parse_schema
from woodrat.testing.model import provenance
from woodrat.testing.model.merge import ModelFold

THING = Ref("thing", "a")
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def at(hour: int) -> str:
    return f"2026-01-05T{hour:02d}:00:00.000000Z"


def said(hour: int, op: str = ASSERT, agent: str = "ada", **parts: Any) -> Observation:
    """Return an observation of the thing."""
    return say(THING, op, agent=agent, observed_at=at(hour), **parts)


def shown(policy: str, *observations: Observation) -> tuple[Any, set[bytes]]:
    """Return the value of `x` and the observations that win it, by the code and the model alike."""
    document = {"properties": {"x": {"x-woodrat-merge": policy}}}
    schema = parse_schema(document, "thing", policies=lambda name: BUILTIN[str(name)].traits)
    rules = Rules(schema, BUILTIN)
    state = fold.fold(observations, [THING], rules)
    answer = ModelFold(observations, lambda name: policy, lambda name, value: True, [THING])
    taken = snapshot.take(THING, state, rules, position=0, version=0)
    if "x" not in taken.fields:
        assert "x" not in answer.fields
        return None, set()
    held = state.field("x")
    assert held is not None
    winners = set(rules.policy("x").show(held.held).observations)
    assert (taken.fields["x"], winners) == (
        answer.values["x"],
        {o.digest for o in provenance.winners(answer.fields["x"])},
    )
    value: Any = {
        "deleted": False,
        "entities": [{"key": "a", "type": "thing"}],
        "fields": {
            "x": {
                "observations": sorted(ids.name("observation", winner) for winner in winners),
                "policy": policy,
                "value": taken.fields["x"],
            }
        },
    }
    told = digest("fingerprint.value", form.encode(value))
    assert snapshot.value_digest(state, rules, provenance=True) == told, "a fingerprint with provenance lists them"
    return taken.fields["x"], winners


def test_null_is_a_value() -> None:
    """A later null wins and is shown; under `max` it is smaller than anything."""
    first, second = said(1, fields={"x": 1}), said(2, fields={"x": None})
    assert shown("latest", first, second) == (None, {second.digest})
    assert shown("max", first, second) == (1, {first.digest})


def test_a_removal_alone_states_the_field() -> None:
    """A correction that only removes stands on the element it names, and replaces one that put it in."""
    first = said(1, fields={"x": ["a", "b"]})
    second = said(2, CORRECT, fields={"x": ["c"]}, replaces=[first.digest])
    third = said(3, CORRECT, remove={"x": ["c"]}, replaces=[second.digest])
    assert shown("union", first, second, third) == (["a", "b"], {first.digest})


def test_a_union_of_nothing_is_won_by_the_latest_claim() -> None:
    """Where no element is in, the value is an empty array, and the latest claim wins it, a removal too."""
    first, second = said(1, fields={"x": ["a"]}), said(2, remove={"x": ["a"]})
    assert shown("union", first, second) == ([], {second.digest})
    empty = said(2, fields={"x": []})
    assert shown("union", first, second, empty) == ([], {empty.digest}), "of the same time, null is the smaller value"


def test_a_union_is_won_by_those_who_put_its_elements_in() -> None:
    """For each element the latest statement wins; who put in only what others put in later is none of them."""
    first = said(1, fields={"x": ["a", "b"]})
    second, third = said(2, fields={"x": ["a"]}), said(3, fields={"x": ["b", "c"]})
    assert shown("union", first, second, third) == (["a", "b", "c"], {second.digest, third.digest})
    both = said(4, fields={"x": ["a", "a"]}, remove={"x": ["a", "c"]})
    assert shown("union", first, third, both) == (["a", "b"], {third.digest, both.digest})


def test_a_sum_is_won_by_what_counts_of_its_latest_original() -> None:
    """One observation wins a sum: of the latest original, the correction that stands in for it, however early."""
    first, second = said(2, fields={"x": 1}), said(3, fields={"x": 10})
    assert shown("sum", first, second) == (11, {second.digest})
    early = said(1, CORRECT, fields={"x": 20}, replaces=[second.digest])
    late = said(9, CORRECT, fields={"x": 5}, replaces=[first.digest])
    assert shown("sum", first, second, early, late) == (25, {early.digest})


def test_an_original_may_only_remove() -> None:
    """An assertion that only removes does not fit a sum or a list, and a correction can still stand in for it."""
    odd = said(1, remove={"x": [1]})
    assert shown("sum", odd) == (None, set())
    instead = said(2, CORRECT, fields={"x": 7}, replaces=[odd.digest])
    assert shown("sum", odd, instead) == (7, {instead.digest})
    listed = said(2, CORRECT, fields={"x": ["b"]}, replaces=[odd.digest])
    after = said(1, fields={"x": ["a"]})
    assert shown("append", odd, listed, after) == (["b", "a"], {listed.digest, after.digest}), "null sorts first"


def test_a_list_is_won_by_all_that_contribute() -> None:
    """What stands in for an original is at its place and wins in its stead, an empty array too."""
    first, second = said(1, fields={"x": ["a"]}), said(2, fields={"x": []})
    third = said(3, CORRECT, fields={"x": ["z"]}, replaces=[first.digest])
    assert shown("append", first, second, third) == (["z"], {second.digest, third.digest})


@pytest.mark.parametrize("policy", ["latest", "highest_priority", "first", "max", "min"])
def test_of_equal_claims_the_smallest_digest_wins(policy: str) -> None:
    """Claims of two agents that are equal in rank have one winner, the same on every machine."""
    claims = [said(1, agent=agent, fields={"x": 1}) for agent in ("ada", "bob", "cy")]
    assert shown(policy, *claims) == (1, {min(claim.digest for claim in claims)})


@pytest.mark.parametrize("policy", ["max", "min"])
def test_equal_extremes_are_equal_whenever_they_were_seen(policy: str) -> None:
    """Under `max` and `min` the time plays no part, in the winner neither."""
    claims = [said(hour, fields={"x": 1}) for hour in range(1, 6)]
    assert shown(policy, *claims) == (1, {min(claim.digest for claim in claims)})


def test_a_removal_beside_a_value_does_not_fit_elsewhere() -> None:
    """Only a union takes `remove`; under another policy the claim on that field loses, its value too."""
    first, second = said(1, fields={"x": 1}), said(2, fields={"x": 2}, remove={"x": [1]})
    assert shown("latest", first, second) == (1, {first.digest})


def test_every_golden_file_is_explained() -> None:
    """The page beside the golden files names each of them, by itself or by its folder or pattern."""
    page = (GOLDEN / "README.md").read_text("utf-8")
    for path in sorted(GOLDEN.rglob("*")):
        name = path.relative_to(GOLDEN).as_posix()
        if path.is_dir() or "__pycache__" in name or name == "README.md":
            continue
        told = (name, f"{path.parent.name}/", f"{path.parent.name}/*{path.suffix}", f"python tests/golden/{name}")
        assert any(f"`{each}`" in page for each in told), name

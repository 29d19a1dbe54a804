"""The strata index: what is folded with it is what is folded without."""

from __future__ import annotations

import random

import pytest

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN, fold, incremental
from woodrat.merge.incremental import Laying
from woodrat.merge.rules import rules_of
from woodrat.merge.strata_index import StrataIndex
from woodrat.state.observation import ASSERT, Observation, say
from woodrat.state.schema import OPEN
from woodrat.testing.ledgers import same_state

WIDE = Ref("wide", "1")
FIELDS = 12
VALUES: tuple[Json, ...] = ("x", "y", 1, True, [1])


def _history(seed: int, count: int) -> list[Observation]:
    """Return narrow assertions by few agents, many of them seen at the same time and with the same values."""
    draw = random.Random(seed)
    said: dict[bytes, Observation] = {}
    for _ in range(count):
        names = draw.sample(range(FIELDS), draw.choice((1, 1, 1, 2, FIELDS)))
        fields: dict[str, Json] = {f"field {name}": draw.choice(VALUES) for name in names}
        one = say(
            WIDE,
            ASSERT,
            agent=draw.choice("abc"),
            observed_at=f"2026-01-01T00:00:{draw.randrange(20):02d}.000000Z",
            fields=fields,
            priority=draw.choice((0, 0, 0, 1)),
        )
        said[one.digest] = one
    return list(said.values())


@pytest.mark.parametrize("seed", range(40))
def test_a_wide_entity_is_folded_as_any_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether strata are looked up in an index or one by one, the state is the same after each observation."""
    monkeypatch.setattr(incremental, "STRATA_MAX", 1)
    rules = rules_of(OPEN(WIDE.type), BUILTIN)
    state = fold.empty((WIDE,), rules)
    laying = Laying(state, rules)
    said = _history(seed, 60)
    for number, observation in enumerate(said, 1):
        assert laying.add(observation, fold.UNNAMED)
        extended = fold.extend(state, observation, rules, fold.UNNAMED)
        assert extended is not None
        state = extended
        if not number % 5:
            assert laying.state() == state
            assert fold.values(state, rules) == fold.values(laying.state(), rules)
    whole = fold.fold(said, (WIDE,), rules)
    assert same_state(laying.state(), whole, rules)
    assert whole.body_bytes == sum(len(observation.body) for observation in said)


def test_the_index_holds_what_is_laid_in_order() -> None:
    """All strata come from the lowest rank to the highest, and those of a field are those that hold it."""
    said = _history(7, 50)
    rules = rules_of(OPEN(WIDE.type), BUILTIN)
    strata = fold.fold(said, (WIDE,), rules).strata
    index = StrataIndex(strata)
    assert index.all() == strata
    for number in range(FIELDS):
        name = f"field {number}"
        assert index.about([name]) == tuple(stratum for stratum in strata if name in stratum.values)
    assert index.about(["no such field"]) == ()

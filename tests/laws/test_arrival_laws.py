"""What is decided only by arrival is a function of the set, and state that grew says what the model says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.laws.records import regular
from tests.laws.test_merge_laws import ALL, _allowed

from woodrat.canon.ids import Ref
from woodrat.merge import claim, element_state, fold, packed_state, ranked, snapshot, union
from woodrat.merge.packing import Unpacker
from woodrat.state import observation
from woodrat.testing.generators import MOMENTS, History, arrivals, histories
from woodrat.testing.laws import rules_for
from woodrat.testing.model import provenance
from woodrat.testing.model.merge import ModelFold

pytestmark = pytest.mark.laws

POLICIES = {name: policy for name, policy in ALL.items() if name != "own"}


def by_arrival(history: History) -> set[str]:
    """Return what the model says was decided only by arrival."""
    names = {name: str(policy.name) for name, policy in POLICIES.items()}
    found = ModelFold(
        history.observations, names.__getitem__, lambda name, value: _allowed(value, names[name]), history.members
    )
    return {name for name, field in found.fields.items() if provenance.by_arrival(field)}


def check(history: History, said: list[observation.Observation]) -> None:
    """Check that state that grows by one observation at a time, packed and read back, says what the model does."""
    rules = rules_for(POLICIES, "thing")
    folding = fold.Folding(history.members, rules)
    for one in said:
        folding.add(one)
        if len(history.members) == 1:
            packed = packed_state.pack(folding.state, rules)
            again = packed_state.unpack(packed, history.members[0], rules)
            assert again is not None
            folding.state = again
    wanted = by_arrival(history)
    assert snapshot.decided_by_arrival(folding.state, rules, folding.state.names) == wanted
    taken = snapshot.take(history.members[0], folding.state, rules, position=0, version=0)
    assert {field.field for field in taken.arrivals()} == wanted
    for field in taken.arrivals():
        assert field.by_arrival
        assert field.claims


@given(data=st.data())
def test_arrival_is_a_function_of_the_set(data: st.DataObject) -> None:
    """Whatever order they come in, the same observations are decided by arrival in the same fields."""
    history = data.draw(histories(POLICIES))
    check(history, data.draw(arrivals(history)))


@given(data=st.data())
def test_arrival_of_records(data: st.DataObject) -> None:
    """The same where agents state the same fields over and over."""
    ref = Ref("thing", "one")
    said = data.draw(regular(ref, ["latest", "highest_priority", "first", "max"]))
    history = History((ref,), tuple(said))
    check(history, said)


def _no_rivals(patch: pytest.MonkeyPatch) -> None:
    """Claims that lose leave no trace under `latest`."""
    lay = fold.lay
    patch.setattr(fold, "lay", lambda strata, against, *given: (lay(strata, against, *given)[0], against))


def _loose(patch: pytest.MonkeyPatch) -> None:
    """True and 1 are the same value."""
    patch.setattr(fold, "differ", lambda one, other: one != other)


def _unmarked(patch: pytest.MonkeyPatch) -> None:
    """A claim forgets that its time was assigned."""
    said_of: Any = claim.said_of
    for module in (claim, fold):
        patch.setattr(module, "said_of", lambda one: said_of(one)._replace(assigned=False))


def _all_marked(patch: pytest.MonkeyPatch) -> None:
    """A stated time counts as assigned."""
    said_of: Any = claim.said_of
    for module in (claim, fold):
        patch.setattr(module, "said_of", lambda one: said_of(one)._replace(assigned=True))


def _lost_in_packing(patch: pytest.MonkeyPatch) -> None:
    """The best rival is forgotten when state is put away."""
    unpack: Any = ranked.Ranked.unpack

    def forget(self: ranked.Ranked, packed: Any, unpacker: Unpacker) -> Any:
        return unpack(self, packed, unpacker)._replace(rival=None)

    patch.setattr(ranked.Ranked, "unpack", forget)


def _one_sided(patch: pytest.MonkeyPatch) -> None:
    """A union forgets that the opposite was said of an element."""
    stated: Any = element_state.state_again
    patch.setattr(union, "state_again", lambda slot, *word: stated(slot, *word)._replace(against=""))


def test_true_is_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later true beats 1 by arrival, though Python takes them for equal; state that does too is found."""
    ref = Ref("thing", "one")
    said = [
        observation.say(ref, "assert", agent="a", observed_at=at, fields={"latest": value}, assigned=True)
        for at, value in zip(MOMENTS[:2], (1, True), strict=True)
    ]
    history = History((ref,), tuple(said))
    assert by_arrival(history) == {"latest"}
    check(history, said)
    _loose(monkeypatch)
    with pytest.raises(AssertionError):
        check(history, said)


@pytest.mark.parametrize(
    ("plant", "policy"),
    [
        (_no_rivals, "latest"),
        (_unmarked, "latest"),
        (_all_marked, "latest"),
        (_lost_in_packing, "first"),
        (_one_sided, "union"),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], policy: str
) -> None:
    """State that keeps too little, or a mark that is lost or made up, is told apart from the model."""
    plant(monkeypatch)

    @settings(
        max_examples=1_500,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(data=st.data())
    def search(data: st.DataObject) -> None:
        history = data.draw(histories({policy: POLICIES[policy]}, members_max=1, markers=False))
        check(history, list(dict.fromkeys(history.observations)))

    with pytest.raises(AssertionError):
        search()

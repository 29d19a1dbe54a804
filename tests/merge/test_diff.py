"""Diff: what differs between two states, and that applying it to the one gives the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import woodrat
from woodrat.canon import form
from woodrat.merge.diff import EntityChange, FieldChange, Values, apply, diff, field_changes
from woodrat.testing.clock import FixedClock

ANA = "contact/Ana"
BO = "contact/Bo"


def values(*members: str, deleted: bool = False, **fields: Any) -> Values:
    """Return the values of one entity, Ana unless others are named."""
    return Values(members or (ANA,), deleted, fields)


def same(a: Mapping[str, Values], b: Mapping[str, Values]) -> bool:
    """Return whether two states are equal to the byte: Python takes 1 and true for equal, JSON does not."""
    return form.serialise({k: v.to_json() for k, v in a.items()}) == form.serialise(
        {k: v.to_json() for k, v in b.items()}
    )


STATES: dict[str, dict[str, Values]] = {
    "nothing": {},
    "no fields": {ANA: values()},
    "null": {ANA: values(city=None)},
    "text": {ANA: values(city="Reus")},
    "one": {ANA: values(city=1)},
    "true": {ANA: values(city=True)},
    "zero": {ANA: values(city=0)},
    "false": {ANA: values(city=False)},
    "text of a number": {ANA: values(city="1")},
    "empty list": {ANA: values(city=[])},
    "list": {ANA: values(city=["b", "a"])},
    "list in another order": {ANA: values(city=["a", "b"])},
    "object": {ANA: values(city={"a": 1, "b": 2})},
    "two fields": {ANA: values(city="Reus", phone="1")},
    "deleted": {ANA: values(deleted=True)},
    "other entity": {BO: values(BO, city="Reus")},
    "both": {ANA: values(city="Reus"), BO: values(BO, city="Reus")},
    "joined": {ANA: values(ANA, BO, city="Reus")},
    "joined under the other": {BO: values(ANA, BO, city="Reus")},
}


@pytest.mark.parametrize("after", STATES)
@pytest.mark.parametrize("before", STATES)
def test_applying_a_diff_gives_the_other_state(before: str, after: str) -> None:
    """`apply(diff(a, b), a) == b`, and a diff is empty exactly where nothing differs."""
    a, b = STATES[before], STATES[after]
    changes = diff(a, b)
    assert same(apply(changes, a), b)
    assert (changes == ()) == (before == after)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"a": None}, FieldChange("a", False, None, True, None), id="null is not absent"),
        pytest.param({"a": None}, {}, FieldChange("a", True, None, False, None), id="absent is not null"),
        pytest.param({"a": 1}, {"a": True}, FieldChange("a", True, 1, True, True), id="1 is not true"),
        pytest.param({"a": 0}, {"a": False}, FieldChange("a", True, 0, True, False), id="0 is not false"),
        pytest.param({"a": 1}, {"a": "1"}, FieldChange("a", True, 1, True, "1"), id="1 is not text"),
        pytest.param({"a": [1]}, {"a": [True]}, FieldChange("a", True, [1], True, [True]), id="inside a list"),
    ],
)
def test_equal_means_equal_bytes(before: Any, after: Any, expected: FieldChange) -> None:
    """Values that JSON tells apart are changes, whatever Python's equality says."""
    (found,) = field_changes(before, after)
    assert (found.had, found.has) == (expected.had, expected.has)
    assert form.serialise(found.to_json()) == form.serialise(expected.to_json())


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})])
def test_one_value_has_one_spelling(one: Any, other: Any) -> None:
    """Values with the same canonical bytes are no change."""
    assert field_changes({"a": one}, {"a": other}) == ()


def test_a_change_in_json_tells_null_from_absent() -> None:
    """In JSON a change says whether there was and is a value, which may be null."""
    came = {"field": "a", "had": False, "before": None, "has": True, "after": None, "part": False}
    assert FieldChange("a", False, None, True, None).to_json() == came
    went = {"field": "a", "had": True, "before": 1, "has": False, "after": None, "part": False}
    assert FieldChange("a", True, 1, False, None).to_json() == went


def test_kinds_of_change() -> None:
    """An entity is added, removed or changed; changes come by entity and then by field."""
    before = {ANA: values(city="Reus", phone="1"), "a/x": values("a/x", n=1)}
    after = {ANA: values(city="Olot", role="chief"), BO: values(BO, n=2)}
    changes = diff(before, after)
    assert [(change.entity, change.kind) for change in changes] == [("a/x", "removed"), (ANA, "changed"), (BO, "added")]
    assert [field.field for field in changes[1].fields] == ["city", "phone", "role"]
    assert (changes[0].members_before, changes[0].members_after) == (("a/x",), ())
    assert changes[2].to_json() == {
        "entity": BO,
        "kind": "added",
        "members_before": [],
        "members_after": [BO],
        "was_deleted": False,
        "is_deleted": False,
        "fields": [{"field": "n", "had": False, "before": None, "has": True, "after": 2, "part": False}],
    }


def test_deletion_and_members_are_changes_by_themselves() -> None:
    """An entity that was deleted, or joined with another, has changed even where its fields are the same."""
    (deleted,) = diff({ANA: values()}, {ANA: values(deleted=True)})
    assert (deleted.kind, deleted.was_deleted, deleted.is_deleted, deleted.fields) == ("changed", False, True, ())
    (joined,) = diff({ANA: values(n=1)}, {ANA: values(ANA, BO, n=1)})
    assert (joined.kind, joined.fields) == ("changed", ())
    assert (joined.members_before, joined.members_after) == ((ANA,), (ANA, BO))


FOREIGN: list[Any] = [
    pytest.param({ANA: values(city="Reus")}, {ANA: values(city="Olot")}, {}, id="no such entity"),
    pytest.param({}, {ANA: values(city="Olot")}, {ANA: values()}, id="already there"),
    pytest.param({ANA: values(n=1)}, {ANA: values(n=2)}, {ANA: values(n=3)}, id="another value"),
    pytest.param({ANA: values(n=1)}, {ANA: values(n=2)}, {ANA: values(n=True)}, id="true for 1"),
    pytest.param({ANA: values(n=None)}, {ANA: values(n=2)}, {ANA: values()}, id="absent for null"),
    pytest.param({ANA: values()}, {ANA: values(n=2)}, {ANA: values(n=None)}, id="null for absent"),
    pytest.param({ANA: values(n=1)}, {ANA: values()}, {ANA: values()}, id="already gone"),
    pytest.param({ANA: values(n=1)}, {ANA: values(n=2)}, {ANA: values(n=1, deleted=True)}, id="deleted here"),
    pytest.param({ANA: values(n=1)}, {ANA: values(n=2)}, {ANA: values(ANA, BO, n=1)}, id="joined here"),
    pytest.param({ANA: values(n=1)}, {}, {ANA: values(n=1, city="Reus")}, id="more would be removed than was known"),
]


@pytest.mark.parametrize(("before", "after", "elsewhere"), FOREIGN)
def test_a_diff_applies_only_where_it_was_made(before: Any, after: Any, elsewhere: Any) -> None:
    """A diff applied to a state it was not made from is outdated, and the state stays as it was."""
    kept = {entity: found.to_json() for entity, found in elsewhere.items()}
    with pytest.raises(woodrat.Outdated) as outdated:
        apply(diff(before, after), elsewhere)
    assert str(outdated.value).startswith(ANA)
    assert "Nothing was changed." in str(outdated.value)
    assert {entity: found.to_json() for entity, found in elsewhere.items()} == kept


def test_apply_leaves_its_argument_alone() -> None:
    """Applying a diff gives a new state and leaves the old one as it was."""
    before = {ANA: values(n=1)}
    assert apply(diff(before, {}), before) == {}
    assert before == {ANA: values(n=1)}


# Through the ledger


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger in which Ana moved, Bo came and went, and two became one."""
    ledger = woodrat.open(":memory:", clock=FixedClock())
    ledger.store([{"entity_type": "contact", "name": "Ana", "city": "Barcelona"}])
    ledger.tag("start")
    ledger.store([{"entity_type": "contact", "name": "Bo"}])
    ledger.store([{"entity_type": "contact", "name": "Ana", "city": "Girona"}])
    ledger.tag("moved")
    ledger.delete(BO)
    ledger.store([{"entity_type": "contact", "name": "Cy"}])
    ledger.merge(ANA, "contact/Cy")
    return ledger


def test_between_all_moments_of_a_ledger(ledger: woodrat.Ledger) -> None:
    """Between any two positions, applying the diff to the values at one gives the values at the other."""
    for before in range(-1, ledger.position + 1):
        for after in range(-1, ledger.position + 1):
            changes = ledger.diff(before, after)
            assert same(apply(changes, ledger.at(before).values()), ledger.at(after).values())
            assert before != after or not changes


def test_between_tags(ledger: woodrat.Ledger) -> None:
    """A diff takes moments as every read does, in either direction."""
    changes = ledger.diff("@start", "@moved")
    assert [(change.entity, change.kind) for change in changes] == [(ANA, "changed"), (BO, "added")]
    assert changes.changes[0].fields == (FieldChange("city", True, "Barcelona", True, "Girona"),)
    back = ledger.diff("@moved", "@start")
    assert [(change.entity, change.kind) for change in back] == [(ANA, "changed"), (BO, "removed")]


def test_of_one_entity(ledger: woodrat.Ledger) -> None:
    """A diff may be asked of one entity, also where it did not exist at one of the moments."""
    (added,) = ledger.diff("@start", "@moved", BO)
    assert added.kind == "added"
    (deleted,) = ledger.diff("@moved", "now", BO)
    assert (deleted.was_deleted, deleted.is_deleted) == (False, True)
    assert [field.has for field in deleted.fields] == [False]
    (joined,) = ledger.diff("@moved", "now", ANA)
    assert set(joined.members_after) == {ANA, "contact/Cy"}
    assert ledger.diff("@start", "@start", ANA).changes == ()
    assert ledger.diff("@start", "@moved", "contact/Cy").changes == ()


def test_by_effective_time(ledger: woodrat.Ledger) -> None:
    """A diff of a ledger at an effective time compares what was true by then."""
    ledger.store([{"entity_type": "contact", "name": "Ana", "role": "chief"}], valid_from="2030-01-01T00:00:00Z")
    before = ledger.position - 1
    assert [change.entity for change in ledger.diff(before, "now", ANA)] == [ANA]
    assert ledger.at(valid_at="2029-01-01T00:00:00Z").diff(before, "now", ANA).changes == ()


def test_changes_are_frozen() -> None:
    """A diff is a value: equal changes are equal."""
    one, two = (diff({}, {ANA: values(n=1)}) for _ in range(2))
    assert one == two
    assert isinstance(one[0], EntityChange)

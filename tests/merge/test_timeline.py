"""Timeline: how belief about an entity changed with each observation, and what was seen when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import woodrat
from woodrat.canon.ids import Ref
from woodrat.merge.diff import FieldChange
from woodrat.merge.rules import Rules
from woodrat.merge.timeline import Step, history, timeline
from woodrat.state.asof import Stored
from woodrat.state.observation import ASSERT, Observation, say
from woodrat.state.schema import OPEN
from woodrat.testing.clock import FixedClock

ANA = "contact/Ana"
BO = "contact/Bo"


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return woodrat.open(":memory:", clock=FixedClock())


def contact(name: str = "Ana", **fields: Any) -> dict[str, Any]:
    """Return a record about a contact."""
    return {"entity_type": "contact", "name": name, **fields}


def told(steps: Iterable[Step]) -> list[tuple[str, list[tuple[str, Any, Any]]]]:
    """Return steps as (op, [(field, before, after)])."""
    return [(step.observation.op, [(c.field, c.before, c.after) for c in step.changes]) for step in steps]


# history


def test_steps_follow_the_log(ledger: woodrat.Ledger) -> None:
    """Each observation is a step, by position, with the fields it changed before and after."""
    positions = [
        ledger.store([contact(city="Barcelona")]).position,
        ledger.store([contact(city="Girona", phone="1")]).position,
        ledger.correct(ANA, {"city": "Reus"}).position,
        ledger.delete(ANA).position,
        ledger.restore(ANA).position,
    ]
    steps = ledger.history(ANA)
    assert [step.position for step in steps] == positions
    assert told(steps) == [
        ("assert", [("city", None, "Barcelona"), ("name", None, "Ana")]),
        ("assert", [("city", "Barcelona", "Girona"), ("phone", None, "1")]),
        ("correct", [("city", "Girona", "Reus")]),
        ("delete", [("city", "Reus", None), ("name", "Ana", None), ("phone", "1", None)]),
        ("restore", [("city", None, "Reus"), ("name", None, "Ana"), ("phone", None, "1")]),
    ]
    assert [step.deleted for step in steps] == [False, False, False, True, False]
    assert steps.items[0].changes[0] == FieldChange("city", False, None, True, "Barcelona")
    assert steps.items[3].changes[0] == FieldChange("city", True, "Reus", False, None)


def test_a_late_arrival_changes_nothing(ledger: woodrat.Ledger) -> None:
    """An observation that loses is a step without changes; so is one that says what is believed already."""
    ledger.store([contact(city="Barcelona")])
    ledger.store([contact(city="Reus")], observed_at="2020-01-01T00:00:00Z")
    ledger.store([contact(city="Barcelona")])
    assert told(ledger.history(ANA))[1:] == [("assert", []), ("assert", [])]


def test_a_retraction_is_a_step(ledger: woodrat.Ledger) -> None:
    """A retraction, and one of a retraction, change the fields back and forth."""
    ledger.store([contact(city="Barcelona")])
    wrong = ledger.store([contact(city="Girona")]).observations
    gone = ledger.retract(wrong).observations
    ledger.retract(gone)
    assert told(ledger.history(ANA))[2:] == [
        ("retract", [("city", "Girona", "Barcelona")]),
        ("retract", [("city", "Barcelona", "Girona")]),
    ]


def test_the_history_of_one_field(ledger: woodrat.Ledger) -> None:
    """Of one field, those steps are told that state it or change it, and of those only that field."""
    ledger.store([contact(city="Barcelona", phone="1")])
    ledger.store([contact(phone="2")])
    ledger.store([contact(city="Reus")], observed_at="2020-01-01T00:00:00Z")
    wrong = ledger.store([contact(city="Girona", phone="3")]).observations
    ledger.retract(wrong)
    ledger.delete(ANA)
    assert told(ledger.history(ANA, "city")) == [
        ("assert", [("city", None, "Barcelona")]),
        ("assert", []),
        ("assert", [("city", "Barcelona", "Girona")]),
        ("retract", [("city", "Girona", "Barcelona")]),
        ("delete", [("city", "Barcelona", None)]),
    ]


def test_null_is_a_value(ledger: woodrat.Ledger) -> None:
    """A field that becomes null has a value; one that is withdrawn has none."""
    ledger.store([{"entity_type": "boat", "name": "g", "crew": 3}])
    ledger.store([{"entity_type": "boat", "name": "g", "crew": None}])
    assert ledger.history("boat/g", "crew").items[1].changes == (FieldChange("crew", True, 3, True, None),)


def test_a_schema_in_the_middle(ledger: woodrat.Ledger) -> None:
    """Each step is merged under the schema of its time, and what a new schema changed is not put on a step."""
    for crew in (3, 9, 2):
        ledger.store([{"entity_type": "boat", "name": "g", "crew": crew}])
    ledger.schemas.register({"title": "boat", "properties": {"crew": {"x-woodrat-merge": "max"}}})
    ledger.store([{"entity_type": "boat", "name": "g", "crew": 5}])
    ledger.store([{"entity_type": "boat", "name": "g", "crew": 12}])
    assert told(ledger.history("boat/g", "crew")) == [
        ("assert", [("crew", None, 3)]),
        ("assert", [("crew", 3, 9)]),
        ("assert", [("crew", 9, 2)]),
        ("assert", []),
        ("assert", [("crew", 9, 12)]),
    ]


def test_the_last_step_leads_to_what_is_shown(ledger: woodrat.Ledger) -> None:
    """The snapshot at each step's position shows what that step's changes led to."""
    ledger.store([contact(city="Barcelona", tags=["a"], interactions=1)])
    one = ledger.store([contact(tags=["b"], interactions=2, notes=["x"])]).observations[0]
    ledger.correct(ANA, {"interactions": 5}, replaces=one)
    ledger.correct(ANA, {"tags": ["b"]})
    ledger.retract(one)
    fields: dict[str, Any] = {}
    for step in ledger.history(ANA):
        for change in step.changes:
            assert fields.get(change.field) == change.before
            assert (change.field in fields) == change.had
            if change.has:
                fields[change.field] = change.after
            else:
                del fields[change.field]
        assert ledger.at(step.position).show(ANA).fields == fields


def test_the_history_of_a_group(ledger: woodrat.Ledger) -> None:
    """The history of joined entities is that of all of them, whichever is asked about."""
    ledger.store([contact(city="Barcelona"), contact("Bo", phone="1")])
    ledger.merge(ANA, BO)
    assert [str(step.observation.entity) for step in ledger.history(ANA)] == [ANA, BO]
    assert ledger.history(ANA) == ledger.history(BO)


def test_history_at_a_moment(ledger: woodrat.Ledger) -> None:
    """A history read as of a moment ends there; at an effective time it leaves out what was not true by then."""
    one = ledger.store([contact(city="Barcelona")], valid_from="2020-01-01T00:00:00Z").position
    ledger.store([contact(city="Girona")], valid_from="2030-01-01T00:00:00Z")
    assert len(list(ledger.at(one).history(ANA))) == 1
    assert len(list(ledger.at(valid_at="2025-01-01T00:00:00Z").history(ANA))) == 1
    assert len(list(ledger.history(ANA))) == 2


def test_a_step_in_json(ledger: woodrat.Ledger) -> None:
    """A step in JSON has its position, the observation as it is kept, and the changes."""
    report = ledger.store([{"entity_type": "boat", "name": "g"}])
    (step,) = ledger.history("boat/g")
    found = step.to_json()
    assert (found["position"], found["deleted"]) == (report.position, False)
    assert found["observation"]["id"] == report.observations[0]
    assert found["changes"] == [FieldChange("name", False, None, True, "g").to_json()]


# timeline


def seen(time: str, name: str, position: int) -> Stored:
    """Return a stored observation seen at a second of the first day."""
    observation: Observation = say(
        Ref("boat", name), ASSERT, agent="a", observed_at=f"2026-01-01T00:00:{time}.000000Z", fields={"name": name}
    )
    return Stored(position, observation)


MOMENTS = [seen("03", "c", 0), seen("01", "a", 1), seen("02", "b", 2)]


def at(second: str) -> str:
    """Return a moment in fixed width."""
    return f"2026-01-01T00:00:{second}.000000Z"


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, "abc"),
        (at("01"), None, "abc"),
        (at("02"), None, "bc"),
        (None, at("03"), "ab"),
        (None, at("01"), ""),
        (at("01"), at("02"), "a"),
        (at("02"), at("02"), ""),
        (at("03"), at("01"), ""),
        (at("04"), None, ""),
    ],
)
def test_bounds(since: str | None, until: str | None, expected: str) -> None:
    """A timeline begins at `since`, ends before `until`, and is in the order of seeing, not of arrival."""
    events = timeline(MOMENTS, since, until)
    assert "".join(event.observation.entity.key for event in events) == expected
    assert [event.observed_at for event in events] == sorted(event.observed_at for event in events)


def test_ties_go_by_digest() -> None:
    """What was seen at the same time comes by digest, in whatever order it arrived."""
    tied = [seen("01", name, position) for position, name in enumerate("abcdef")]
    events = timeline(tied)
    assert [event.observation.digest for event in events] == sorted(stored.observation.digest for stored in tied)
    assert timeline(reversed(tied)) == events


def test_events_keep_their_positions() -> None:
    """An event says where its observation stands in the log."""
    assert [event.position for event in timeline(MOMENTS)] == [1, 2, 0]
    assert timeline(MOMENTS)[0].to_json()["position"] == 1


def test_the_timeline_of_a_ledger(ledger: woodrat.Ledger) -> None:
    """A ledger's timeline crosses entities; its bounds are timestamps with any offset, and its moment bounds it too."""
    ledger.store([contact()], observed_at="2025-01-03T00:00:00Z")
    late = ledger.store([contact("Bo")], observed_at="2025-01-01T00:00:00Z")
    ledger.store([contact("Cy")], observed_at="2025-01-02T00:00:00Z")

    def keys(past: woodrat.Past, **bounds: Any) -> list[str]:
        return [event.observation.entity.key for event in past.timeline(**bounds)]

    assert keys(ledger) == ["Bo", "Cy", "Ana"]
    assert keys(ledger, since="2025-01-02T02:00:00+02:00") == ["Cy", "Ana"]
    assert keys(ledger, since="2025-01-01T00:00:00Z", until="2025-01-03T00:00:00Z") == ["Bo", "Cy"]
    assert keys(ledger.at(late.position)) == ["Bo", "Ana"]


def test_every_kind_of_observation_is_an_event(ledger: woodrat.Ledger) -> None:
    """Corrections, retractions, markers and relations are seen too."""
    said = ledger.store([contact(), contact("Bo")]).observations
    ledger.correct(ANA, {"city": "Reus"})
    ledger.relate(ANA, "knows", BO)
    ledger.retract(said[1])
    ledger.delete(ANA)
    assert sorted(event.observation.op for event in ledger.timeline()) == [
        "assert",
        "assert",
        "assert",
        "correct",
        "delete",
        "retract",
    ]


def test_history_of_nothing() -> None:
    """Nothing said is no history."""
    rules = Rules(OPEN("boat"))
    assert history([], [Ref("boat", "a")], lambda _: rules) == ()
    assert timeline([]) == ()


def test_history_of_stored_observations_in_any_order() -> None:
    """Steps come by position, in whatever order the observations are given."""
    rules = Rules(OPEN("boat"))
    ref = Ref("boat", "g")
    stored = [
        Stored(position, say(ref, ASSERT, agent="a", observed_at=at(f"0{position}"), fields={"n": position}))
        for position in range(3)
    ]
    forwards = history(stored, [ref], lambda _: rules)
    assert history(reversed(stored), [ref], lambda _: rules) == forwards
    assert told(forwards) == [
        ("assert", [("n", None, 0)]),
        ("assert", [("n", 0, 1)]),
        ("assert", [("n", 1, 2)]),
    ]

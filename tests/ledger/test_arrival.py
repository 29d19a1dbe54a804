"""Assigned times: every way to write marks them, and what they alone decided is said and listed everywhere."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import plans
from woodrat.state import observation
from woodrat.state.observation import Observation
from woodrat.testing.ledgers import ledger_on

ANA = "contact/Ana"
WHEN = "2020-01-05T09:00:00Z"
LATER = "2020-01-06T09:00:00Z"
BY_ARRIVAL = "arrived later; no observation time was given"


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An empty engine."""
    found: Engine = InMemoryEngine()
    yield found
    found.close()


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    """An empty ledger."""
    return ledger_on(engine)


def ana(city: str, **about: Any) -> dict[str, Any]:
    """Return a record about Ana."""
    return {"entity_type": "contact", "name": "Ana", "city": city, **({"$": about} if about else {})}


def by_arrival(past: Any) -> list[str]:
    """Return the fields that a ledger lists as decided only by arrival."""
    return [f"{field.entity}#{field.field}" for field in past.conflicts(arrival=True)]


# Every way to write


def _shared(ledger: Ledger, times: dict[str, Any]) -> None:
    with ledger.context.engine.together():
        ledger.store(ana("Vic"), **times)
        ledger.store({"entity_type": "contact", "name": "Bo"}, **times)


def _read(ledger: Ledger, times: dict[str, Any]) -> None:
    with ledger.interpretations.start(ledger.sources.add(b"Ana lives in Vic."), model="small-1") as reading:
        reading.store(ana("Vic"), **times)


def _run(ledger: Ledger, times: dict[str, Any]) -> None:
    with ledger.run("Where is Ana?") as run:
        run.show(ANA)
        run.store(ana("Vic"), **times)
        run.correct(ANA, {"city": "Olot"}, **times)


def _told(ledger: Ledger, times: dict[str, Any]) -> None:
    ledger.runs.import_({"query": "q", "steps": [{"store": ana("Vic", **times)}], "answer": "a"})


def _withdraw(ledger: Ledger, times: dict[str, Any]) -> None:
    ledger.retract(ledger.observations(ANA).items[0].observation.id, **times)


def _back(ledger: Ledger, times: dict[str, Any]) -> None:
    ledger.delete(ANA, **times)
    ledger.restore(ANA, **times)


def _parted(ledger: Ledger, times: dict[str, Any]) -> None:
    ledger.merge(ANA, "contact/Cleo", **times)
    ledger.split(ANA, **times)
    ledger.merge(ANA, "contact/Cleo", **times)  # after a delete it is restored first


WAYS: dict[str, Callable[[Ledger, dict[str, Any]], object]] = {
    "store": lambda ledger, times: ledger.store([ana("Vic"), ana("Olot", priority=1)], **times),
    "store a record's own": lambda ledger, times: ledger.store(ana("Vic", **times)),
    "store with a key": lambda ledger, times: ledger.store(ana("Vic"), idempotency_key="k", **times),
    "store a relation": lambda ledger, times: ledger.store(
        {**ana("Vic"), "$": {"relate": [{"type": "knows", "to": "contact/Cleo"}]}}, **times
    ),
    "store what removes": lambda ledger, times: ledger.store(
        {"entity_type": "contact", "name": "Ana", "$": {"remove": {"tags": ["x"]}}}, **times
    ),
    "correct": lambda ledger, times: ledger.correct(ANA, {"city": "Vic"}, **times),
    "retract": _withdraw,
    "delete and restore": _back,
    "relate": lambda ledger, times: ledger.relate(ANA, "knows", "contact/Cleo", **times),
    "merge and split": _parted,
    "shared": _shared,
    "interpretation": _read,
    "run": _run,
    "a told run": _told,
}


def check_marks(ledger: Ledger, since: int, stated: bool) -> int:
    """Check that what was written since a position is marked exactly where no time was stated; return how many are."""
    found = [stored for stored in ledger.observations() if stored.position > since]
    recorded: dict[int, str] = {
        entry.position: entry.recorded_at for entry in ledger.log.entries(after=since, limit=1000)
    }
    for stored in found:
        said = stored.observation
        assert said.assigned is not stated, f"{said!r} was {'stated' if stated else 'assigned'}"
        assert observation.stored(said.body).assigned is said.assigned
        assert (said.observed_at == recorded[stored.position]) is not stated
    return len(found)


@pytest.mark.parametrize("stated", [False, True], ids=["assigned", "stated"])
@pytest.mark.parametrize("way", WAYS)
def test_a_time_is_marked_exactly_where_the_log_set_it(ledger: Ledger, way: str, stated: bool) -> None:
    """Whatever the verb, an observation without a stated time is marked, and one with a stated time is not."""
    ledger.store([ana("Reus"), {"entity_type": "contact", "name": "Cleo"}], observed_at=WHEN)
    since = ledger.position
    WAYS[way](ledger, {"observed_at": LATER} if stated else {})
    assert check_marks(ledger, since, stated) > 0


def _unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: what the log sets is not marked."""
    say: Any = observation.say
    voice: Any = observation.Voice
    monkeypatch.setattr(plans, "say", lambda *parts, assigned=False, **more: say(*parts, **more))
    monkeypatch.setattr(plans, "Voice", lambda *parts: voice(*parts[:-1]))


def _marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: everything is marked."""
    say: Any = observation.say
    voice: Any = observation.Voice
    monkeypatch.setattr(plans, "say", lambda *parts, **more: say(*parts, **{**more, "assigned": True}))
    monkeypatch.setattr(plans, "Voice", lambda *parts: voice(*parts[:-1], True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("plant", "stated"), [(_unmarked, False), (_marked, True)], ids=["unmarked", "marked"])
def test_a_planted_mark_is_found(
    monkeypatch: pytest.MonkeyPatch, way: str, plant: Callable[[pytest.MonkeyPatch], None], stated: bool
) -> None:
    """A ledger that forgets the mark, or marks what was stated, is caught by every way to write."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store([ana("Reus"), {"entity_type": "contact", "name": "Cleo"}], observed_at=WHEN)
    since = ledger.position
    plant(monkeypatch)
    WAYS[way](ledger, {"observed_at": LATER} if stated else {})
    with pytest.raises(AssertionError, match=r"was stated|was assigned"):
        check_marks(ledger, since, stated)


def test_nobody_can_state_the_mark(ledger: Ledger) -> None:
    """The mark is the log's: a record that brings one is refused, and so is a body with any other value of it."""
    with pytest.raises(woodrat.Refused, match=r"/\$/assigned: unknown name"):
        ledger.store(ana("Vic", assigned=True))
    body: Any = {**form.decode(_said(ledger).body), "assigned": False}
    assert [fault.path for fault in observation.body_faults(body)] == ["/assigned"]
    assert [fault.path for fault in observation.body_faults({**body, "assigned": True, "fits": "x"})] == ["/fits"]


def _said(ledger: Ledger) -> Observation:
    ledger.store(ana("Vic"))
    return ledger.observations(ANA).items[-1].observation


def test_the_same_with_a_stated_time_is_stored_once(ledger: Ledger) -> None:
    """With a stated time a record is known the second time; without one it is said again."""
    assert ledger.store(ana("Vic"), observed_at=WHEN).known == ()
    assert len(ledger.store(ana("Vic"), observed_at=WHEN).known) == 1
    assert ledger.store(ana("Vic")).known == ()
    assert ledger.store(ana("Vic")).known == ()


# What is said of it


def test_the_later_arrival_is_said_everywhere(ledger: Ledger) -> None:
    """Two agents without times: the report, the snapshot, blame and the list name the field, and only that one."""
    web = ledger.as_agent("web")
    assert ledger.store(ana("Barcelona")).by_arrival == ()
    report = web.store(ana("Madrid"))
    assert report.by_arrival == ("contact/Ana#city",)
    assert report.to_json()["by_arrival"] == ["contact/Ana#city"]
    shown = ledger.show(ANA)
    assert {name: origin.by_arrival for name, origin in shown.blame.items()} == {"city": True, "name": False}
    assert [(v.value, v.wins, v.reason, v.by_arrival) for v in ledger.blame(ANA, "city")["city"]] == [
        ("Madrid", True, BY_ARRIVAL, True),
        ("Barcelona", False, "arrived earlier; no observation time was given", False),
    ]
    (field,) = ledger.conflicts(arrival=True)
    assert (str(field.entity), field.field, field.by_arrival) == (ANA, "city", True)
    assert [(claim.value, claim.agent, claim.assigned) for claim in field.claims] == [
        ("Madrid", "web", True),
        ("Barcelona", ledger.agent, True),
    ]
    assert [conflict.by_arrival for conflict in ledger.conflicts()] == [True]
    assert by_arrival(ledger.at(report.position - 1)) == []
    assert ledger.conflicts("task", arrival=True).items == ()


def test_one_agent_without_times(ledger: Ledger) -> None:
    """An agent that says something else later is listed too: nobody says which it saw last."""
    ledger.store(ana("Barcelona"))
    assert ledger.store(ana("Madrid")).by_arrival == ("contact/Ana#city",)
    assert ledger.store(ana("Madrid")).by_arrival == ("contact/Ana#city",)
    (field,) = ledger.conflicts(arrival=True)
    assert [claim.value for claim in field.claims] == ["Madrid"]
    assert by_arrival(ledger) == ["contact/Ana#city"]
    assert ledger.conflicts().items == ()


@pytest.mark.parametrize(
    ("first", "second", "reasons", "listed"),
    [
        ({}, {"observed_at": "2030-01-01T00:00:00Z"}, None, False),
        ({"observed_at": WHEN}, {}, [BY_ARRIVAL, "loses to a claim without an observation time, by arrival"], True),
        ({"observed_at": WHEN}, {"observed_at": LATER}, ["observed later", "observed earlier"], False),
        ({}, {"observed_at": WHEN}, [BY_ARRIVAL, "loses to a claim without an observation time, by arrival"], True),
    ],
    ids=["stated after it arrived", "arrived after stated", "both stated", "stated before it arrived"],
)
def test_a_stated_time_settles_what_it_can(
    ledger: Ledger, first: dict[str, Any], second: dict[str, Any], reasons: list[str] | None, listed: bool
) -> None:
    """A winner with a stated time is never listed; one without is, unless nobody said anything else."""
    if reasons is None:
        # Five minutes ahead of the log is the most that may be stated.
        ledger.store(ana("Barcelona"))
        now = ledger.observations(ANA).items[0].observation.observed_at
        ledger.as_agent("web").store(ana("Madrid"), observed_at=now[:17] + "59.999999Z")
        winner = ledger.blame(ANA, "city")["city"][0]
        assert (winner.value, winner.assigned) == ("Madrid", False)
        assert winner.reason == "observed later"
    else:
        ledger.store(ana("Barcelona"), **first)
        ledger.as_agent("web").store(ana("Madrid"), **second)
        assert [verdict.reason for verdict in ledger.blame(ANA, "city")["city"]] == reasons
    assert by_arrival(ledger) == (["contact/Ana#city"] if listed else [])


def test_a_write_that_loses_hears_why(ledger: Ledger) -> None:
    """A late report with a stated time loses to what arrived without one, and its report says that arrival decided."""
    ledger.store(ana("Barcelona"))
    report = ledger.as_agent("web").store(ana("Madrid"), observed_at=WHEN)
    assert (report.changes, report.by_arrival) == ((), ("contact/Ana#city",))
    again = ledger.as_agent("web").store(ana("Madrid"), observed_at=WHEN)
    assert (again.repeated, again.by_arrival) == (True, ("contact/Ana#city",))


def test_one_write_decides_nothing_by_arrival(ledger: Ledger) -> None:
    """Two values in one call arrive together: the larger wins, and arrival has no part in it."""
    report = ledger.store([ana("Barcelona"), ana("Madrid")])
    assert (report.by_arrival, by_arrival(ledger)) == ((), [])
    assert [verdict.reason for verdict in ledger.blame(ANA, "city")["city"]] == ["larger value", "smaller value"]
    assert ledger.store(ana("Madrid")).by_arrival == ("contact/Ana#city",)


def schema(policy: str, type: str = "string") -> dict[str, Any]:
    """Return a schema whose field x has this policy."""
    about = {"x": {"type": type, "x-woodrat-merge": policy}, "id": {"type": "string"}}
    return {"type": "object", "properties": about}


def thing(x: Any, **about: Any) -> dict[str, Any]:
    """Return a record about a thing."""
    return {"entity_type": "thing", "id": "1", "x": x, **({"$": about} if about else {})}


@pytest.mark.parametrize(
    ("policy", "records", "expected"),
    [
        ("highest_priority", [thing("a"), thing("b")], [True, BY_ARRIVAL]),
        ("highest_priority", [thing("a", priority=1), thing("b")], [False, "higher priority"]),
        ("highest_priority", [thing("c"), thing("a", priority=1), thing("b", priority=1)], [True, BY_ARRIVAL]),
        ("first", [thing("a"), thing("b")], [True, "arrived earlier; no observation time was given"]),
        (
            "first",
            [thing("a", observed_at=WHEN), thing("b")],
            [True, "beats a claim without an observation time, by arrival"],
        ),
        (
            "first",
            [thing("a"), thing("b", observed_at=WHEN)],
            [True, "beats a claim without an observation time, by arrival"],
        ),
        ("first", [thing("a", observed_at=WHEN), thing("b", observed_at=LATER)], [False, "observed earlier"]),
        ("max", [thing("a"), thing("b")], [False, "larger value"]),
        ("min", [thing("b"), thing("a")], [False, "smaller value"]),
    ],
)
def test_policies(ledger: Ledger, policy: str, records: list[Any], expected: list[Any]) -> None:
    """Each ranked policy says whether arrival decided, and the winner's reason says so in words."""
    ledger.schemas.register(schema(policy), entity_type="thing")
    for record in records:
        ledger.store(record)
    winner = ledger.blame("thing/1", "x")["x"][0]
    assert [winner.by_arrival, winner.reason] == expected
    assert by_arrival(ledger) == (["thing/1#x"] if expected[0] else [])
    assert ledger.show("thing/1").blame["x"].by_arrival is expected[0]


def test_a_union_is_decided_element_by_element(ledger: Ledger) -> None:
    """An element that a later write takes out is out by arrival; one that nobody disputes is not decided by it."""
    ledger.schemas.register(schema("union", "array"), entity_type="thing")
    assert ledger.store(thing(["a", "b"])).by_arrival == ()
    taken = {"entity_type": "thing", "id": "1", "$": {"remove": {"x": ["a"]}}}
    assert ledger.as_agent("web").store(taken).by_arrival == ("thing/1#x",)
    (field,) = ledger.conflicts(arrival=True)
    assert [(claim.agent, claim.value, claim.removed) for claim in field.claims] == [("web", [], ("a",))]
    winner = ledger.blame("thing/1", "x")["x"][0]
    assert winner.reason.endswith("1 of them because it arrived later; no observation time was given")
    ledger.store(thing(["a"]))
    (field,) = ledger.conflicts(arrival=True)
    assert [(claim.value, claim.removed) for claim in field.claims] == [(["a"], ())]
    assert field.to_json() == {"entity": "thing/1", **ledger.show("thing/1").arrivals()[0].to_json()}


def test_a_large_union(ledger: Ledger) -> None:
    """The count of such elements goes on where the parts of a collection are kept one by one."""
    ledger.schemas.register(schema("union", "array"), entity_type="thing")
    ledger.store(thing([f"e{number:03}" for number in range(100)]))
    report = ledger.store({"entity_type": "thing", "id": "1", "$": {"remove": {"x": ["e007", "e008"]}}})
    assert report.by_arrival == ("thing/1#x",)
    assert ledger.store(thing(["new"])).by_arrival == ("thing/1#x",)
    (field,) = ledger.conflicts(arrival=True)
    assert field.claims[0].removed == ("e007", "e008")
    assert ledger.rebuild().repaired == ()


def test_corrections_that_did_not_see_each_other(ledger: Ledger) -> None:
    """A correction is not decided by arrival against assertions; two that stand side by side are."""
    ledger.store(ana("Vic"))
    ledger.correct(ANA, {"city": "Olot"})
    assert by_arrival(ledger) == []
    first = ledger.observations(ANA).items[0].observation
    blind = observation.say(
        first.entity, "correct", agent="web", observed_at="2020-01-01T00:00:00.000000Z", fields={"city": "Reus"}
    )
    ledger.admit([("observation", blind.body)])
    assert by_arrival(ledger) == ["contact/Ana#city"]
    winner, loser = ledger.blame(ANA, "city")["city"][:2]
    assert winner.reason == f"of corrections that did not see each other, {BY_ARRIVAL}"
    assert (winner.by_arrival, loser.by_arrival) == (True, False)


def test_groups_and_effective_times(ledger: Ledger) -> None:
    """Joined entities are one field; what was not true yet takes no part; what is deleted shows nothing."""
    ledger.store([ana("Vic"), {"entity_type": "contact", "name": "Cleo"}])
    ledger.store({"entity_type": "contact", "name": "Cleo", "city": "Reus"}, valid_from="2030-01-01T00:00:00Z")
    assert by_arrival(ledger) == []
    ledger.merge(ANA, "contact/Cleo")
    before = ledger.position
    assert [name.partition("#")[2] for name in by_arrival(ledger)] == ["city", "name"]
    assert ledger.show(ANA).blame["city"].by_arrival
    past = ledger.at(valid_at="2029-01-01T00:00:00Z")
    assert not past.show(ANA).blame["city"].by_arrival
    ledger.split(ANA)
    assert by_arrival(ledger) == []
    assert ledger.at(before).show(ANA).blame["city"].by_arrival
    ledger.store(ana("Olot"))
    assert by_arrival(ledger) == ["contact/Ana#city"]
    ledger.delete(ANA)
    assert by_arrival(ledger) == []
    ledger.restore(ANA)
    assert by_arrival(ledger) == ["contact/Ana#city"]
    ledger.retract(ledger.blame(ANA, "city")["city"][0].observation)
    assert by_arrival(ledger) == []


def test_import_keeps_the_mark(engine: Engine, ledger: Ledger) -> None:
    """Assigned times travel: whatever order the entries come in, another ledger lists the same fields."""
    here, there = ledger, ledger_on(InMemoryEngine(), "there")
    here.store(ana("Barcelona"))
    here.store({"entity_type": "contact", "name": "Bo", "city": "Vic"})
    there.store({"entity_type": "contact", "name": "Bo", "city": "Vic"})
    there.as_agent("web").store(ana("Madrid"))  # a moment later than what is said of her here
    exports = []
    for one in (here, there):
        out = io.BytesIO()
        one.log.export(out)
        exports.append(out.getvalue())
    copies = [ledger_on(InMemoryEngine(), name) for name in ("one", "two")]
    for copy, order in zip(copies, (exports, exports[::-1]), strict=True):
        for export in order:
            copy.log.import_(io.BytesIO(export))
    assert by_arrival(copies[0]) == by_arrival(copies[1]) == ["contact/Ana#city"]
    assert copies[0].conflicts(arrival=True) == copies[1].conflicts(arrival=True)
    assert copies[0].fingerprint(provenance=True) == copies[1].fingerprint(provenance=True)
    assert {item.observation.assigned for item in copies[0].observations()} == {True}


def test_the_list_comes_by_page(ledger: Ledger) -> None:
    """As long as the list is, it comes page by page, as of one position."""
    for city in ("Vic", "Olot"):
        ledger.store([{"entity_type": "contact", "name": f"N{number}", "city": city} for number in range(5)])
    first = ledger.conflicts(arrival=True, limit=3)
    ledger.store({"entity_type": "contact", "name": "N9", "city": "Vic"})
    ledger.store({"entity_type": "contact", "name": "N9", "city": "Olot"})
    rest = ledger.conflicts(arrival=True, limit=3, cursor=first.cursor)
    assert len({conflict.entity for conflict in (*first.items, *rest.items)}) == 5
    assert rest.cursor is None
    with pytest.raises(woodrat.Refused, match="cursor"):
        ledger.conflicts(limit=3, cursor=first.cursor)

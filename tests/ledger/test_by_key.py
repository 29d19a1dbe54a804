"""Collections under `by_key` through the verbs: objects told apart by a member, each merging member by member."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import woodrat
from woodrat import Ledger, Refused
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.merge.elements import Parts
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.state.observation import ASSERT, say
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

FLOW: Final[dict[str, Any]] = {
    "title": "flow",
    "x-woodrat-identity": [["id"]],
    "properties": {"steps": {"type": "array", "x-woodrat-merge": {"by_key": "name"}, "x-woodrat-index": True}},
}


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """A ledger which knows what a flow is."""
    engine = InMemoryEngine()
    found = ledger_on(engine)
    found.schemas.register(FLOW)
    yield found
    engine.close()


def flow(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"entity_type": "flow", "id": "x", "steps": list(steps), **more}


def steps(ledger: Any) -> Json:
    found: Json = ledger.show("flow/x").fields["steps"]
    return found


def test_objects_merge_member_by_member(ledger: Ledger) -> None:
    """What an agent states of an object leaves its other members alone; null is a value, and texts give the order."""
    ledger.store(flow({"name": "load", "n": 1}, {"name": "fetch", "retries": 3, "state": "new"}))
    ledger.as_agent("runner").store(flow({"name": "fetch", "state": None, "deep": {"a": [1]}}))
    fetch = {"deep": {"a": [1]}, "name": "fetch", "retries": 3, "state": None}
    assert steps(ledger) == [fetch, {"n": 1, "name": "load"}]
    origin = ledger.show("flow/x").blame["steps"]
    assert (origin.policy, len(origin.observations), origin.agent) == ("by_key:name", 2, "runner")
    assert not ledger.show("flow/x").conflicts


def test_odd_texts_stay_apart(ledger: Ledger) -> None:
    """Any text tells an object apart, by its UTF-8 bytes and nothing else."""
    texts = ["", " ", "A", "__proto__", "a", "a/b~c", "e\u0301", "é", "\uffff", "😀", "x" * 5_000]
    ledger.store(flow(*({"name": text, text or "-": text} for text in reversed(texts))))
    shown = steps(ledger)
    assert isinstance(shown, list)
    assert [each["name"] for each in shown] == sorted(texts, key=lambda text: text.encode())  # type: ignore[index, call-overload]
    pages: list[Json] = []
    cursor = None
    while True:
        page = ledger.elements("flow/x", "steps", limit=2, cursor=cursor)
        pages += page.elements
        if (cursor := page.cursor) is None:
            break
    assert pages == shown
    assert ledger.verify().sound


def test_a_single_object_is_one_element(ledger: Ledger) -> None:
    """One object in place of a list is stored as a list of one, in a record and in a correction."""
    ledger.store({"entity_type": "flow", "id": "x", "steps": {"name": "a", "n": 1}})
    ledger.correct("flow/x", {"steps": {"name": "a", "n": 2}})
    assert steps(ledger) == [{"n": 2, "name": "a"}]
    assert [v.value for v in ledger.blame("flow/x", field="steps")["steps"]] == [
        [{"n": 2, "name": "a"}],
        [{"n": 1, "name": "a"}],
    ]


@pytest.mark.parametrize(
    ("bad", "faults"),
    [
        ("fetch", ["/steps/0"]),
        (7, ["/steps/0"]),
        ([{}, "x", {"name": 1}, {"name": None}], ["/steps/0/name", "/steps/1", "/steps/2/name", "/steps/3/name"]),
        ([{"name": "a"}, {"name": "b"}, {"name": "a", "n": 1}], ["/steps/2/name"]),
    ],
)
def test_what_is_no_keyed_object_is_refused(ledger: Ledger, bad: Any, faults: list[str]) -> None:
    """Elements that are no objects, lack the text or repeat one are refused, all at once, and nothing is written."""
    before = ledger.position
    with pytest.raises(Refused) as refused:
        ledger.store({"entity_type": "flow", "id": "x", "steps": bad})
    assert [fault.path for fault in refused.value.faults] == faults
    assert all("by_key:name" in fault.problem for fault in refused.value.faults)
    assert ledger.position == before


def test_from_another_log_it_is_a_losing_claim(ledger: Ledger) -> None:
    """What a surface refuses is kept by an import, takes no part, replaces nothing, and says why."""
    ledger.store(flow({"name": "a", "n": 1}), observed_at="2025-01-05T09:00:00Z")
    flow_x = Ref("flow", "x")
    for number, bad in enumerate(([{"name": "a", "n": 2}, {"name": 2}], ["a"], [{"n": 3}], {"name": "a"})):
        said = say(flow_x, ASSERT, agent="b", observed_at=f"2025-01-06T09:00:0{number}.000000Z", fields={"steps": bad})  # type: ignore[dict-item]
        ledger.admit([("observation", said.body)])
    gone = say(flow_x, ASSERT, agent="b", observed_at="2025-01-07T09:00:00.000000Z", remove={"steps": ["a", 1]})
    ledger.admit([("observation", gone.body)])
    assert steps(ledger) == [{"n": 1, "name": "a"}]
    reasons = [v.reason for v in ledger.blame("flow/x", field="steps")["steps"] if not v.wins]
    assert len(reasons) == 5
    assert sum(reason.startswith("does not fit: by_key:name takes") for reason in reasons) == 4
    assert sum(reason.startswith("does not fit: expected an array") for reason in reasons) == 1
    assert ledger.show("flow/x").blame["steps"].misfits == 5


def test_one_claim_from_another_log_may_have_an_object_twice(ledger: Ledger) -> None:
    """Of two elements of one text the larger value of each member counts, whichever comes first."""
    twice: list[Json] = [{"name": "a", "n": 1, "m": 0}, {"name": "b"}, {"name": "a", "n": True, "k": None}]
    for number, stated in enumerate((twice, twice[::-1])):
        at = f"2025-01-06T09:00:0{number}.000000Z"
        said = say(Ref("flow", "x"), ASSERT, agent="b", observed_at=at, fields={"steps": stated})
        ledger.admit([("observation", said.body)])
        assert steps(ledger) == [{"k": None, "m": 0, "n": 1, "name": "a"}, {"name": "b"}]


def test_objects_are_taken_out_by_their_text(ledger: Ledger) -> None:
    """An object is taken out by its text or as it is shown, and has its members again once it is put back."""
    ledger.store(flow({"name": "a", "n": 1}, {"name": "b", "n": 1}, {"name": "c"}))
    ledger.store(flow(**{"$": {"remove": {"steps": ["a", {"name": "b", "n": 9}]}}}))
    assert steps(ledger) == [{"name": "c"}]
    ledger.store(flow({"name": "a", "m": 2}))
    assert steps(ledger) == [{"m": 2, "n": 1, "name": "a"}, {"name": "c"}]
    with pytest.raises(Refused, match="takes objects out by the text"):
        ledger.store(flow(**{"$": {"remove": {"steps": [{"n": 1}]}}}))


def test_a_correction_holds_for_what_it_states(ledger: Ledger) -> None:
    """Other objects it saw are out; members it states hold; others and new objects go on being told."""
    ledger.store(flow({"name": "a", "n": 1, "m": 1}, {"name": "b"}))
    ledger.correct("flow/x", {"steps": [{"name": "a", "n": 2}]}, reason="counted again")
    assert steps(ledger) == [{"m": 1, "n": 2, "name": "a"}]
    ledger.store(flow({"name": "a", "n": 3, "m": 3}, {"name": "b"}, {"name": "c"}))
    assert steps(ledger) == [{"m": 3, "n": 2, "name": "a"}, {"name": "c"}]
    assert ledger.show("flow/x").blame["steps"].because == "counted again"


def test_withdrawing_links_of_a_chain(ledger: Ledger) -> None:
    """Withdrawing the middle of a chain revives nothing below it, and withdrawing its end revives the one before."""
    ledger.store(flow({"name": "a", "n": 0}))
    told = [ledger.correct("flow/x", {"steps": [{"name": "a", "n": number}]}) for number in (1, 2, 3)]
    chain = [report.observations[0] for report in told]
    middle = ledger.retract(chain[1]).observations[0]
    assert steps(ledger) == [{"n": 3, "name": "a"}]
    end = ledger.retract(chain[2]).observations[0]
    assert steps(ledger) == [{"n": 1, "name": "a"}]
    ledger.retract(middle)
    assert steps(ledger) == [{"n": 2, "name": "a"}]
    ledger.retract([end, *chain])
    assert steps(ledger) == [{"n": 0, "name": "a"}]
    assert ledger.verify().sound


def test_blame_names_objects_and_members(ledger: Ledger) -> None:
    """Blame says which objects and members an observation decides."""
    ledger.store(flow({"name": "a", "n": 1, "m": 1}))
    ledger.store(flow({"name": "a", "n": 2}))
    first, second = (v.reason for v in ledger.blame("flow/x", field="steps")["steps"])
    assert first.startswith("decides a, a.n of the 2 objects and members it speaks of, 1 of them because it arrived")
    assert second == "decides a.m of the 3 objects and members it speaks of"


def test_queries_find_what_a_collection_holds(ledger: Ledger) -> None:
    """A condition is fulfilled by one object, as it is merged; so it is at an earlier moment."""
    ledger.store(flow({"name": "a", "n": 1}))
    before = ledger.position
    ledger.store(flow({"name": "a", "m": 2}))
    merged = {"steps": {"eq": {"name": "a", "n": 1, "m": 2}}}
    assert [s.entity.key for s in ledger.query(entity_type="flow", where=merged)] == ["x"]
    assert not list(ledger.at(before).query(entity_type="flow", where=merged))
    assert steps(ledger.at(before)) == [{"n": 1, "name": "a"}]


def test_a_change_of_one_object_among_many_is_told_by_itself(ledger: Ledger) -> None:
    """The report of a write to a large collection, and a diff, tell the object that changed before and after."""
    ledger.store(flow(*({"name": f"{n:03}", "n": 0} for n in range(200))))
    before = ledger.position
    change = ledger.store(flow({"name": "007", "n": 1})).changes[0].fields[0]
    assert (change.part, change.before, change.after) == (True, [{"n": 0, "name": "007"}], [{"n": 1, "name": "007"}])
    diff = ledger.diff(before, ledger.position)
    assert [found.field for entity in diff for found in entity.fields] == ["steps"]
    assert ledger.verify().sound
    assert ledger.rebuild().agreed


def test_erasing_a_record_leaves_what_others_state(tmp_path: Path) -> None:
    """What an erased agent stated is treated as never sent: its members are gone, and those below show again."""
    keys = make_keys(tmp_path / "keys", FixedClock(), "k").keys
    with woodrat.open(tmp_path / "flow.db", agent="a", clock=FixedClock(), keys=keys.folder) as ledger:
        ledger.schemas.register(FLOW)
        ledger.store(flow({"name": "a", "n": 1}), observed_at="2025-01-05T09:00:00Z")
        ledger.as_agent("b").store(
            flow({"name": "a", "n": "quince", "m": "quince"}), observed_at="2025-01-06T09:00:00Z"
        )
        ledger.correct("flow/x", {"steps": [{"name": "a", "k": 1}]}, observed_at="2025-01-07T09:00:00Z")
        ledger.erase(agent="b", reason="asked for")
        assert steps(ledger) == [{"k": 1, "n": 1, "name": "a"}]
        assert ledger.verify().sound
    assert b"quince" not in (tmp_path / "flow.db").read_bytes()


def test_a_write_to_one_of_many_objects_costs_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging objects one by one into thousands of them looks at as few parts as with a hundred, and packs one."""
    looks = 0
    get = Parts.get

    def counted(self: Parts[Any], key: bytes, default: Any = None) -> Any:
        nonlocal looks
        looks += 1
        return get(self, key, default)

    ledger = ledger_on(InMemoryEngine())
    ledger.schemas.register(FLOW)
    monkeypatch.setattr(Parts, "get", counted)
    costs = []
    for size in (100, 10_000):
        ledger.store(flow(*({"name": f"{n:06}", "n": 0} for n in range(size))))
        whole = Parts.whole
        with monkeypatch.context() as patch:
            patch.setattr(Parts, "whole", _never)
            looks = 0
            for n in range(20):
                ledger.store(flow({"name": f"{n:06}", "m": n}))
            costs.append(looks)
        assert Parts.whole is whole
    assert costs[1] <= costs[0]
    assert len(ledger.elements("flow/x", "steps", limit=1_000).elements) == 1_000


def _never(self: Parts[Any]) -> Any:
    raise AssertionError("a write read the whole collection")

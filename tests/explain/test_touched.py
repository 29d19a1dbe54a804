"""Stale decisions by index: the same as looking at every decision, at every position of the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.explain.definitions import stale_decision
from tests.runs.story import at, write_entry

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.explain.index import touched
from woodrat.explain.reader import stale as stale_reader
from woodrat.explain.reader.tracer import Tracer, open_tracer
from woodrat.ledger.own_policy import registry
from woodrat.testing.clock import FixedClock

RUNS = [f"run_{letter * 26}" for letter in "ab"]
LOANS = ["loan/1", "loan/2"]
FIELDS = ["score", "debt"]

Act = tuple[Any, ...]
"""What happens."""

_loans, _fields = st.sampled_from(LOANS), st.sampled_from(FIELDS)
_said = st.dictionaries(_fields, st.integers(500, 502), min_size=1)
_acts: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("store"), _loans, _said, st.integers(0, 5)),
    st.tuples(st.just("store"), _loans, _said, st.integers(0, 5)),
    st.tuples(st.just("correct"), _loans, _fields, st.integers(500, 502)),
    st.tuples(st.just("retract"), _loans),
    st.tuples(st.just("delete"), _loans),
    st.tuples(st.just("restore"), _loans),
    st.tuples(st.just("merge")),
    st.tuples(st.just("split")),
    st.tuples(st.just("schema"), st.sampled_from(["min", "max", "latest"])),
    *[
        st.tuples(
            st.just("decide"),
            st.sampled_from(RUNS),
            _loans,
            st.lists(_fields, min_size=1, max_size=2, unique=True),
            st.integers(0, 3),
            st.none() | st.integers(0, 5),
            st.booleans(),
        )
    ]
    * 3,
)


def opened() -> woodrat.Ledger:
    """Return an empty ledger."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    return woodrat.Ledger(InMemoryEngine(), tenant="t", agent="ann", clock=clock, policies=registry(()))


def act(ledger: woodrat.Ledger, name: str, *given: Any) -> None:
    """Do what happens; what the ledger refuses does not happen."""
    try:
        if name == "store":
            ref, said, second = given
            time = at(second)
            ledger.store({"entity_type": "loan", "id": ref[-1], **said}, observed_at=time, valid_from=time)
        elif name == "correct":
            ledger.correct(given[0], {given[1]: given[2]}, reason="wrong")
        elif name == "retract":
            ledger.retract(ledger.observations(given[0]).items[-1].observation.id)
        elif name in ("delete", "restore"):
            getattr(ledger, name)(given[0])
        elif name in ("merge", "split"):
            getattr(ledger, name)(*LOANS)
        elif name == "schema":
            fields = {"score": {"type": "integer", "x-woodrat-merge": given[0]}}
            ledger.schemas.register({"type": "object", "properties": fields}, entity_type="loan")
        else:
            decide(ledger, *given)
    except (woodrat.Refused, woodrat.NotFound, woodrat.Outdated):
        pass


def decide(
    ledger: woodrat.Ledger, run: str, ref: str, fields: list[str], ago: int, by: int | None, honest: bool
) -> None:
    """Write a decision on what was believed some positions ago, perhaps by a time, perhaps not truly."""
    position = max(0, ledger.position - ago)
    valid_at = None if by is None else at(by)
    seen = ledger.at(position) if valid_at is None else ledger.at(position, valid_at=valid_at)
    facts = {name: seen.show(ref).fact(name) for name in fields}
    origins = {name: {**fact.origin, "position": position} for name, fact in facts.items()}
    values = {name: fact.value if honest else 7 for name, fact in facts.items() if not fact.missing}
    said = {"run": run, "agent": "ann", "span": f"{ledger.position:016x}", "started_at": at(1), "step": 1}
    if valid_at is not None:
        read = {"log": "log_test", "position": position, "entity": ref, "found": True, "fields": {}}
        write_entry(ledger, "run.read", {**said, **read, "effective": valid_at})
    conditions = [
        {"key": key, "op": "lt", "operand": 501, "actual": values.get(key), "result": True, "origin": origins[key]}
        for key in fields[:1]
    ]
    rules = [{"label": "low", "chosen": "no", "when": {}, "matched": True, "conditions": conditions}]
    made = {"stage": "risk", "mode": "decide", "chosen": "no", "default": False, "rules": rules, "rule": "low"}
    write_entry(ledger, "run.decided", {**said, **made, "facts": values, "facts_origin": origins})


def stale_at(tracer: Tracer, positions: Iterable[int]) -> list[int]:
    """Return the positions of stale decisions among some."""
    return [position for position in positions if stale_decision(stale_reader.Beliefs(tracer), position) is not None]


def agree(acts: list[Act]) -> int:
    """Check that the index leads to every stale decision at every position; return how many were found."""
    ledger = opened()
    count = 0
    for step in acts:
        act(ledger, *step)
    for _ in range(2):
        for position in range(ledger.position + 1):
            with open_tracer(ledger.at(position).context, position) as tracer:
                expected = stale_at(tracer, stale_reader._decided(tracer, position + 1))
                assert stale_at(tracer, stale_reader._touched(tracer, position + 1)) == expected, position
                count += len(expected)
        assert ledger.verify(deep=True).sound
        pages = [found for page in _pages(ledger) for found in page]
        assert pages == list(ledger.stale(same=True, limit=100).items)
        ledger.rebuild()
    return count


def _pages(ledger: woodrat.Ledger) -> Any:
    cursor = None
    while True:
        page = ledger.stale(same=True, limit=1, cursor=cursor)
        yield page.items
        cursor = page.cursor
        if cursor is None:
            return


@settings(max_examples=40, deadline=None, phases=[Phase.generate, Phase.shrink])
@given(acts=st.lists(_acts, min_size=1, max_size=14))
def test_only_touched_decisions_are_stale(acts: list[Act]) -> None:
    """Every decision that is stale at a position is among the touched ones, as written and as rebuilt."""
    agree(acts)


# Planted faults

STORY: list[Act] = [
    ("store", "loan/1", {"score": 500, "debt": 500}, 1),
    ("decide", RUNS[0], "loan/1", ["score"], 0, None, True),
    ("decide", RUNS[0], "loan/1", ["debt"], 0, None, True),
    ("store", "loan/1", {"score": 501}, 2),
    ("decide", RUNS[0], "loan/1", ["score"], 1, None, True),
    ("decide", RUNS[1], "loan/1", ["score"], 0, None, True),
    ("decide", RUNS[1], "loan/1", ["score"], 0, 1, True),
    ("schema", "min"),
    ("decide", RUNS[0], "loan/1", ["score"], 0, None, True),
    ("store", "loan/2", {"score": 499}, 3),
    ("merge",),
    ("decide", RUNS[0], "loan/1", ["score"], 0, None, True),
    ("split",),
    ("decide", RUNS[0], "loan/2", ["score"], 0, None, True),
    ("delete", "loan/2"),
]
"""A history in which everything that can touch a decision does."""


def test_the_story_holds() -> None:
    """Without a fault, the index leads to all that is stale in a history in which everything touches decisions."""
    assert agree(STORY) > 20


@pytest.mark.parametrize("name", ["_decided", "_said", "_touch", "_note_touched"])
def test_a_planted_fault_is_caught(name: str) -> None:
    """An index that leaves something out is told from the log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(touched._Changes, name, lambda self, *given: None)
        with pytest.raises(AssertionError):
            agree(STORY)


def test_decisions_on_another_field_stay_untouched() -> None:
    """An observation of one field does not touch what rests on another."""
    ledger = opened()
    act(ledger, *STORY[0])
    act(ledger, *STORY[1])
    act(ledger, *STORY[2])
    made = ledger.position
    act(ledger, "store", "loan/1", {"score": 502}, 3)
    with open_tracer(ledger.context) as tracer:
        assert list(tracer.touched(ledger.position + 1)) == [made - 1]

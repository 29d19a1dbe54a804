"""The search for newly stale decisions: by field it finds what comparing every decision before and after finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.definitions import stale_decision
from tests.explain.test_reader import MONDAY, engine, ledger, opened

import woodrat
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import WoodratError
from woodrat.explain.reader.stale import Beliefs
from woodrat.explain.reader.tracer import Tracer
from woodrat.explain.remake import SAME
from woodrat.explain.stale import Stale
from woodrat.explain.workers import search
from woodrat.explain.workers.search import ChangedFields, StaleSearch, newly_stale
from woodrat.ledger.read import Reader
from woodrat.runs.reader.run_reader import RunReader
from woodrat.runs.rules import Rule
from woodrat.state.asof import AsOf
from woodrat.state.observation import RETRACT

__all__ = ["engine", "ledger"]  # fixtures

FIELDS = ("score", "income", "city")
RULES = [
    Rule("rejected", {"score": {"lt": 2}}),
    Rule("checked", {"income": {"lt": 2}, "score": {"lt": 4}}),
    Rule("local", {"city": {"eq": 3}}),
]


def by_definition(ledger: woodrat.Ledger, first: int, last: int) -> list[Stale]:
    """Return what a write made stale: every decision is made again before and after it."""
    found: list[Stale] = []
    with ledger.context.engine.view(ledger.tenant) as view:
        readers = [Reader(view, AsOf(position), ledger.context.policies) for position in (first - 1, last)]
        then, now = (Beliefs(Tracer(RunReader(reader))) for reader in readers)
        for entry in view.entries(through=last, kinds={"run.decided"}):
            after = stale_decision(now, entry.position)
            if after is None or after.outcome == SAME:
                continue
            before = stale_decision(then, entry.position) if entry.position < first else None
            if before is None or before.outcome != after.outcome or not form.same(before.now.chosen, after.now.chosen):
                found.append(after)
    return found


def writes(ledger: woodrat.Ledger, after: int = -1) -> list[tuple[int, int]]:
    """Return the writes after a position, by first and last position."""
    with ledger.context.engine.view(ledger.tenant) as view:
        openings = [entry for entry in view.entries(after) if entry.envelope.length is not None]
        return [(entry.position, entry.position + (entry.envelope.length or 0) - 1) for entry in openings]


def check(ledger: woodrat.Ledger) -> int:
    """Compare the search with the definition, write by write and over ranges; return how many decisions were found."""
    every = writes(ledger)
    spans = every + [(every[at][0], every[min(at + 3, len(every) - 1)][1]) for at in range(0, len(every), 3)]
    expected = {span: by_definition(ledger, *span) for span in spans if interesting(ledger, *span)}
    for span, decisions in expected.items():
        assert list(newly_stale(ledger.context, *span)) == decisions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "RUNS_READ_MAX", 0)  # indexes tell of the runs, those of few decisions too
        patch.setattr(search, "COMPARED_TOGETHER", 2)
        for span, decisions in expected.items():
            assert list(newly_stale(ledger.context, *span)) == decisions
    return sum(map(len, expected.values()))


def interesting(ledger: woodrat.Ledger, first: int, last: int) -> bool:
    """Return whether a write holds more than steps of runs, which make nothing stale; decisions aside."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return any(True for _ in view.entries(first - 1, last, {"observation", "schema", "run.decided"}))


def decide(ledger: woodrat.Ledger, number: int, how: int) -> None:
    """Decide on a loan: on all of it, on one field, on what was true by then, or on nothing that rules name."""
    with ledger.run("Approve?", subject=f"loan/{number}") as run:
        source: Any = run.at(valid_at=MONDAY) if how == 2 else run
        try:
            snapshot = source.show(f"loan/{number}")
        except WoodratError:
            return
        facts = {FIELDS[how % 3]: snapshot.fact(FIELDS[how % 3])} if how == 1 else snapshot
        rules = RULES[:1] if how == 3 else RULES
        if how == 4:
            rules = [Rule("rejected", lambda facts: bool(facts.get("score", 0) < 2), label="code"), *RULES]
        run.decide("risk", facts, rules, default="approved", on_missing="skip")


def act(ledger: woodrat.Ledger, name: str, number: int, field: int, value: int) -> None:
    """Do one thing; what is refused changes nothing."""
    ref, other = f"loan/{number}", f"loan/{number % 3 + 1}"
    when = f"2026-01-0{value + 3}T00:00:00Z"
    try:
        if name == "store":
            ledger.store({"entity_type": "loan", "id": str(number), FIELDS[field]: value}, observed_at=when)
        elif name == "wide":
            records = [{"entity_type": "loan", "id": str(n), **dict.fromkeys(FIELDS, value)} for n in (number, 3)]
            ledger.store(records)
        elif name == "earlier":
            record = {"entity_type": "loan", "id": str(number), FIELDS[field]: value}
            ledger.store(record, valid_from="2025-01-01T00:00:00Z")
        elif name == "correct":
            ledger.correct(ref, {FIELDS[field]: value}, reason="mixed up")
        elif name == "retract":
            stored = [item.observation.id for item in ledger.observations(ref, limit=100).items]
            ledger.retract([stored[(field + value) % len(stored)]], reason="misread")
        elif name == "schema":
            merge = {"x-woodrat-merge": ["latest", "max", "min"][value % 3]}
            fields = {FIELDS[field]: {"type": "integer", **merge}}
            schema = {"type": "object", "properties": fields, "x-woodrat-identity": [["id"]]}
            ledger.schemas.register(schema, entity_type="loan")
        elif name in ("merge", "split"):
            getattr(ledger, name)(ref, other)
        elif name in ("delete", "restore"):
            getattr(ledger, name)(ref)
        else:
            decide(ledger, number, (field + value) % 5)
    except WoodratError:
        pass


ACTS = (
    *("store", "store", "wide", "earlier", "correct", "correct", "retract", "retract", "schema"),
    *("merge", "split", "delete", "restore", "decide", "decide", "decide", "decide"),
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ACTS), st.integers(1, 3), st.integers(0, 2), st.integers(0, 5)),
        min_size=4,
        max_size=12,
    )
)
def test_the_search_finds_what_the_definition_finds(acts: list[tuple[str, int, int, int]]) -> None:
    """Whatever was written, a search by field finds the decisions that comparing all of them finds, and no others."""
    ledger = opened(InMemoryEngine())
    for number in (1, 2, 3):
        ledger.store({"entity_type": "loan", "id": str(number), "score": 1, "income": 5, "city": 1}, observed_at=MONDAY)
        decide(ledger, number, number)
    for name, number, field, value in acts:
        act(ledger, name, number, field, value)
    check(ledger)


def story(ledger: woodrat.Ledger) -> None:
    """Write whatever can make a decision stale, some of it several ways."""
    for number in (1, 2, 3):
        ledger.store({"entity_type": "loan", "id": str(number), "score": 1, "income": 5, "city": 1}, observed_at=MONDAY)
        for how in range(5):
            decide(ledger, number, how)
    for name, number, field, value in [
        *(("store", 1, 0, 5), ("store", 1, 1, 1), ("earlier", 2, 0, 5), ("correct", 2, 0, 3), ("correct", 2, 1, 1)),
        *(("merge", 2, 0, 0), ("correct", 3, 0, 5), ("split", 2, 0, 0), ("delete", 1, 0, 0), ("restore", 1, 0, 0)),
        *(("schema", 3, 0, 1), ("store", 3, 0, 3), ("wide", 1, 0, 4), ("correct", 3, 2, 3)),
    ]:
        act(ledger, name, number, field, value)
    # A retraction and the retraction of that, a delete and a restore; a decision before each.
    for number in (4, 5):
        (what,) = ledger.store({"entity_type": "loan", "id": str(number), "score": 1}).observations
        ledger.store({"entity_type": "loan", "id": str(number), "income": 5, "city": 1})
        for marks in (ledger.delete, ledger.restore):
            decide(ledger, number, 0)
            if number == 5:
                marks("loan/5", reason="x")
            else:
                (what,) = ledger.retract([what], reason="x").observations


def test_the_search_finds_what_the_definition_finds_on_every_engine(ledger: woodrat.Ledger) -> None:
    """A story with everything in it is searched as the definition says, indexed or not."""
    story(ledger)
    assert check(ledger) > 20


def _no_fields_of_retractions(self: ChangedFields, stated: Any) -> set[str]:
    return set() if stated.op == RETRACT else set(stated.stated)


def _no_markers(self: ChangedFields, stated: Any) -> set[str]:
    return set(stated.stated)


def _first_field(self: ChangedFields, stated: Any) -> set[str]:
    return set(sorted(stated.stated)[:1])


@pytest.mark.parametrize("fault", [_no_fields_of_retractions, _no_markers, _first_field])
def test_a_wrong_filter_is_caught(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with the definition notices a filter that leaves out fields."""
    ledger = opened(InMemoryEngine())
    story(ledger)
    monkeypatch.setattr(ChangedFields, "_fields", fault)
    with pytest.raises(AssertionError):
        check(ledger)


def test_groups_and_schemas_left_out_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison notices a filter that forgets what is joined."""
    ledger = opened(InMemoryEngine())
    story(ledger)
    monkeypatch.setattr(ChangedFields, "with_groups", lambda self, readers: self.by_entity)
    with pytest.raises(AssertionError):
        check(ledger)


def test_only_the_fields_that_rules_ask_for_count(ledger: woodrat.Ledger) -> None:
    """A write to a field that a decision was given, and that no rule of it names, has it not looked at."""
    ledger.store({"entity_type": "loan", "id": "1", "score": 1, "note": "x"}, observed_at=MONDAY)
    for how in (0, 3):
        decide(ledger, 1, how)

    def candidates(**fields: Any) -> int:
        position = ledger.store({"entity_type": "loan", "id": "1", **fields}).position
        return len(StaleSearch(ledger.context, position, position).candidates())

    assert [candidates(note="y"), candidates(other=1), candidates(income=1), candidates(score=5)] == [0, 0, 1, 2]

"""What-if is exact: taken away is never stored, and a sweep is every value by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from tests.laws.test_ledger_laws import ENGINES

from woodrat import Ledger, NotFound, Refused, Rule
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.runs.rules import evaluate
from woodrat.state.observation import Observation
from woodrat.testing.histories import Telling, batches, tellings
from woodrat.testing.ledgers import bodies, ledger_on

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]


def rules_for(telling: Telling) -> list[Rule]:
    """Return rules that tell apart every value that was ever said of a field."""
    found: dict[bytes, Rule] = {}
    for name in "abcd":
        found[name.encode()] = Rule(f"{name} is there", {name: {"exists": True}})
    for one in telling.said:
        if isinstance(one, Observation):
            for name, value in one.fields.items():
                spelled = form.serialise([name, value])
                found[spelled] = Rule(spelled.decode(), {name: {"eq": value}})
    return list(found.values())


def about(telling: Telling) -> list[Ref]:
    """Return the entities that are spoken of."""
    return sorted({one.entity for one in telling.said if isinstance(one, Observation)}, key=str)


@settings(max_examples=120)
@given(make_engine=ENGINES, data=st.data())
def test_without_is_as_if_it_had_never_been_stored(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """A decision without some observations comes to what it comes to on a ledger that never held them."""
    telling = data.draw(tellings(size_max=4))
    spoken = [one for one in telling.said if isinstance(one, Observation)]
    assume(spoken)
    gone = {one.digest for one in data.draw(st.lists(st.sampled_from(spoken), min_size=1, max_size=3))}
    rules, refs = rules_for(telling), about(telling)
    whole, bare = ledger_on(make_engine()), ledger_on(make_engine())
    wanted: list[tuple[str, bytes]] = []
    for batch in data.draw(batches(telling)):
        whole.admit(bodies(batch.said))
        left = [one for one in batch.said if one.digest not in gone]
        if left:
            bare.admit(bodies(left))
        for ref in refs:
            wanted += decided(whole, bare, ref, rules)
    names = [one.id for one in spoken if one.digest in gone]
    for run, chosen in wanted:
        try:
            (found,) = whole.what_if(run, without=names).decisions
        except NotFound:
            event("never arrived")
            return
        assert found.outcome != "unknown"
        assert form.serialise(found.now.chosen) == chosen
        event(found.outcome)


def decided(whole: Ledger, bare: Ledger, ref: Ref, rules: list[Rule]) -> list[tuple[str, bytes]]:
    """Decide on an entity in a run; return the run, and what is chosen on the other ledger."""
    with whole.run("Which?") as run:
        try:
            run.select("which", run.show(ref), rules, on_missing="skip")
        except NotFound:
            return []
    try:
        fields: Any = bare.show(ref).fields
    except NotFound:
        fields = {}
    return [(str(run.id), form.serialise(evaluate(fields, rules, mode="select", on_missing="skip").chosen))]


OPERANDS = st.one_of(st.integers(-3, 8), st.sampled_from([0.5, 2.5, "a", None, True]))
CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne"]), OPERANDS),
    st.tuples(
        st.sampled_from(["gt", "gte", "lt", "lte"]), st.one_of(st.integers(-3, 8), st.sampled_from([0.5, 2.5, "a"]))
    ),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(OPERANDS, max_size=3)),
    st.tuples(st.just("exists"), st.booleans()),
    st.tuples(st.just("matches"), st.just("a")),
)
RULES = st.lists(
    st.builds(
        lambda chosen, when: Rule(chosen, {key: dict([condition]) for key, condition in when.items()}),
        st.sampled_from(["x", "y", "z"]),
        st.dictionaries(st.sampled_from(["n", "m"]), CONDITIONS, min_size=1),
    ),
    max_size=4,
)
SWEEPS = st.one_of(
    st.builds(
        lambda low, size, step: f"{low}..{low + size}:{step}",
        st.integers(-4, 3),
        st.integers(0, 8),
        st.sampled_from(["1", "0.5", "2"]),
    ),
    st.lists(OPERANDS, min_size=1, max_size=5),
)


@given(
    stages=st.lists(
        st.tuples(
            RULES,
            st.one_of(OPERANDS, st.none()),
            st.sampled_from(["read", "stated", "tool"]),
            st.sampled_from(["raise", "skip"]),
        ),
        min_size=1,
    ),
    sweep=SWEEPS,
    by_field=st.booleans(),
)
def test_a_sweep_is_every_value_by_itself(
    stages: list[tuple[list[Rule], Any, str, str]], sweep: Any, by_field: bool
) -> None:
    """The ranges and the table of a sweep say what setting each value alone says, chains of runs included."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store({"entity_type": "thing", "id": "1", "n": 1})
    made = 0
    for rules, m, origin, on_missing in stages:
        with ledger.run("Which?") as run:
            facts: dict[str, Any] = {"n": run.show("thing/1").fact("n")}
            if origin == "tool":
                facts["m"] = run.tool("measure", lambda m=m: {"m": m}).fact("/m")
            elif origin == "read":
                try:
                    facts["m"] = run.show("thing/2").fact("m")
                except NotFound:
                    facts["m"] = m
            else:
                facts["m"] = m
            try:
                verdict = run.decide("which", facts, rules, default="w", on_missing=on_missing)
            except Refused:
                event("not decided")
                continue
            made += 1
            run.store({"entity_type": "thing", "id": "2", "m": verdict.chosen})
    name = "thing/1#n" if by_field else "n"
    swept = ledger.what_if(sweep={name: sweep}, same=True, limit=1_000)
    assert len(swept.decisions) + swept.unaffected == made
    for number, value in enumerate(row.value for row in swept.rows):
        alone = ledger.what_if(set={name: value}, same=True, limit=1_000)
        by_position = {found.decision.position: found for found in alone.decisions}
        counts = {"same": 0, "flip": 0, "unknown": 0}
        for found in swept.decisions:
            index, parts = number, list(found.ranges)
            while index >= parts[0].values:
                index -= parts.pop(0).values
            again = by_position[found.decision.position].now
            assert (parts[0].now.outcome, parts[0].now.chosen) == (again.outcome, again.chosen)
            counts[again.outcome] += 1
            event(again.outcome)
        row = swept.rows[number]
        assert {"same": row.same, "flip": row.flip, "unknown": row.unknown} == counts
        assert sum(one.decisions for one in row.choices) == row.same + row.flip

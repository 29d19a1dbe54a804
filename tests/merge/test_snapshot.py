"""Snapshots: what is asked of one field is what is asked of all of them."""

from __future__ import annotations

import pytest

import woodrat
from woodrat.merge import BUILTIN

SCHEMA = {
    "type": "object",
    "properties": {name: {"x-woodrat-merge": name} for name in BUILTIN},
    "x-woodrat-identity": [["id"]],
}


@pytest.mark.parametrize("joined", [False, True])
def test_a_fact_names_the_observations_that_blame_names(joined: bool) -> None:
    """A fact is the same whether the blame of all fields was worked out before it or not, under every policy."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.schemas.register(SCHEMA, entity_type="thing")
    values = [{"sum": 1, "max": 4, "union": ["a"]}, {"sum": 2, "max": 3, "union": ["b", "c"], "latest": 1}]
    for number, fields in enumerate(values):
        for agent in ("a", "b"):
            record = {"entity_type": "thing", "id": str(number), "append": [agent], "first": agent, **fields}
            ledger.as_agent(agent).store(record, observed_at=f"2026-01-0{number + 1}T00:00:00Z")
    ledger.correct("thing/0", {"max": 9}, reason="x")
    if joined:
        ledger.merge("thing/0", "thing/1")
    for ref in ("thing/0", "thing/1"):
        one, other = ledger.show(ref), ledger.show(ref)
        assert set(other.blame) == set(other.fields)
        for name in (*other.fields, "unknown"):
            assert one.fact(name) == other.fact(name), name
            named = [str(id) for id in other.blame[name].observations] if name in other.blame else []
            assert one.fact(name).origin["observations"] == named
    ledger.delete("thing/0")
    ledger.delete("thing/1")
    assert ledger.show("thing/0").fact("max").missing

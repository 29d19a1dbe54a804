"""Counting: the number of entities that a list says is that of the entities it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import woodrat
from woodrat.api.past import Past
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.neotoma import counting, entities, shapes
from woodrat.testing.ledgers import ledger_on, tell


def walked(past: Past) -> tuple[dict[str, int], int]:
    """Return how many entities there are of each type and how many relations, by reading all of them."""
    counts: Counter[str] = Counter()
    relations, cursor = 0, None
    while True:
        page = past.query(limit=50, cursor=cursor)
        for snapshot in page.items:
            if shapes.is_relation(snapshot):
                relations += 1
            else:
                counts[snapshot.entity.type] += 1
        if (cursor := page.cursor) is None:
            return dict(counts), relations


def check(past: Past) -> None:
    """Compare what is counted with what is there, of each type and of all."""
    counts, relations = walked(past)
    assert counting.by_type(past.context) == (counts, relations)
    for kind in (*counts, "nothing"):
        assert counting.entities(past.context, kind, lambda _: True) == counts.get(kind, 0)


@pytest.mark.parametrize("indexed", [True, False])
def test_what_is_counted_is_what_is_listed(tmp_path: Path, indexed: bool) -> None:
    """Deleted and merged entities do not count, nor relations; so at every moment, with rows and without."""
    engine = SqliteEngine(tmp_path / "l.db")
    one, other = ledger_on(engine), ledger_on(engine, agent="b")
    for _ in tell(one, other):
        if indexed:
            one.search("anything")
        check(one)
    for position in range(0, one.position, 7):
        check(one.at(position))
    engine.close()


def test_keys_of_several_values_are_entities() -> None:
    """A key that a rule makes of several values looks like that of a relation, and is none."""
    with woodrat.open(":memory:", agent="a") as ledger:
        ledger.schemas.register({"x-woodrat-identity": [["name", "company"]]}, entity_type="person")
        ledger.store([{"entity_type": "person", "name": name, "company": "Acme/Iberia"} for name in "abc"])
        one, other, _ = (snapshot.entity for snapshot in ledger.query(entity_type="person").items)
        ledger.relate(one, "knows", other)
        check(ledger)
        listed = entities.entities(ledger, {"limit": 2}, None)
    assert one.key.startswith('["')
    assert (listed["total"], len(listed["entities"]), listed["next_cursor"]) == (3, 2, "2")

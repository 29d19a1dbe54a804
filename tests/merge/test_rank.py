"""A rank is written once: changed there, every answer follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.merge import rank
from woodrat.testing.ledgers import ledger_on

AT = "2025-01-05T09:00:00Z"
TYPE = {
    "title": "box",
    "properties": {
        "tags": {"type": "array", "x-woodrat-merge": "union"},
        "parts": {"type": "array", "x-woodrat-merge": {"by_key": "name"}},
        "best": {"x-woodrat-merge": "highest_priority"},
    },
}


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Each engine in turn."""
    if request.param == "sqlite":
        return SqliteEngine(tmp_path / "rank.db")
    found: Engine = request.getfixturevalue("postgres_engine")
    return found


@pytest.mark.parametrize("smaller", [False, True], ids=["larger", "smaller"])
def test_the_tie_break_of_latest_is_written_once(
    engine: Engine, smaller: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At equal time and priority the larger value wins; said otherwise in the rank, it is the smaller everywhere."""
    if smaller:
        monkeypatch.setattr(rank.LATEST, "larger_value", False)
    ada, bob = (ledger_on(engine, agent=agent) for agent in ("ada", "bob"))
    ada.schemas.register(TYPE)
    for ledger, colour, removed in ((ada, "red", {}), (bob, "blue", {"tags": ["new"]})):
        tags = {} if removed else {"tags": ["new"]}
        record = {"entity_type": "box", "colour": colour, **tags, "parts": [{"name": "lid", "size": colour}]}
        report = ledger.store({**record, "$": {"key": "1", "remove": removed}}, observed_at=AT)
    # A correction that neither saw: corrections rank as `latest` does.
    fields = "colour", "tags", "parts"
    wanted = (
        ("blue", [], [{"name": "lid", "size": "blue"}])
        if smaller
        else ("red", ["new"], [{"name": "lid", "size": "red"}])
    )
    changed = {change.field for entity in report.changes for change in entity.fields}
    assert changed == (set(fields) if smaller else set())
    found = ada.show("box/1")
    assert tuple(found.fields[name] for name in fields) == wanted
    blamed = ada.blame("box/1", "colour")["colour"]
    assert [verdict.value for verdict in blamed] == sorted(["red", "blue"], reverse=not smaller)
    assert [verdict.reason for verdict in blamed] == (
        ["smaller value", "larger value"] if smaller else ["larger value", "smaller value"]
    )
    assert ada.rebuild().agreed
    assert ada.verify(deep=True).sound
    assert ada.show("box/1") == found


def test_the_order_of_criteria_is_written_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With priority before time `latest` decides as `highest_priority` does, in every answer."""
    monkeypatch.setattr(rank.LATEST, "criteria", rank.HIGHEST_PRIORITY.criteria)
    ledger = ledger_on(engine, agent="ada")
    ledger.schemas.register(TYPE)
    for hour, (value, priority) in enumerate((("low", 1), ("high", 9), ("last", 0))):
        record = {
            "entity_type": "box",
            "plain": value,
            "best": value,
            "tags": [],
            "$": {"key": "1", "priority": priority},
        }
        ledger.store(record, observed_at=f"2025-01-05T0{hour}:00:00Z")
    found = ledger.show("box/1")
    assert (found.fields["plain"], found.fields["best"]) == ("high", "high")
    plain, best = ([v.value for v in ledger.blame("box/1", name)[name]] for name in ("plain", "best"))
    assert plain == best == ["high", "low", "last"]
    assert ledger.rebuild().agreed
    assert ledger.show("box/1") == found

"""Records are checked before their write has its turn, and again where the schema has changed meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.ledger import precheck
from woodrat.ledger.precheck import Precheck
from woodrat.merge.checker import Checker
from woodrat.merge.rules import Rules
from woodrat.state.record import parse_records

THING: dict[str, Any] = {
    "title": "thing",
    "x-woodrat-identity": [["id"]],
    "properties": {"id": {"type": "string"}, "size": {"type": "integer"}, "code": {"type": "string"}},
}


def _things(ledger: woodrat.Ledger, *records: dict[str, Any]) -> tuple[Precheck, int]:
    parsed = parse_records([{"entity_type": "thing", **record} for record in records], [])
    return Precheck(ledger.context, parsed), len(parsed)


def _rules(ledger: woodrat.Ledger) -> Rules:
    return precheck._last[(id(ledger.context.engine), ledger.tenant)]["thing"]


def test_the_entity_is_known_before_the_turn() -> None:
    """Once a write has seen the rules of a type, records are checked by them; an unsound one is left to the plan."""
    ledger = woodrat.open(":memory:", agent="a")
    before, count = _things(ledger, {"id": "1"})
    assert before.entities(lambda type: pytest.fail("nothing is known yet"), count) == [None]
    ledger.schemas.register(THING)
    ledger.store({"entity_type": "thing", "id": "1", "size": 1})
    found, count = _things(ledger, {"id": "1", "size": 2}, {"id": "2", "size": "large"}, {"size": 3})
    rules = _rules(ledger)
    assert [entity and str(entity) for entity in found.entities(lambda type: rules, count)] == ["thing/1", None, None]


def test_other_rules_check_again() -> None:
    """What was checked by rules that are no longer in force counts for nothing."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.store({"entity_type": "thing", "id": "1"})
    checked, count = _things(ledger, {"id": "1"})
    old = _rules(ledger)
    assert checked.entities(lambda type: old, count) != [None]
    assert checked.entities(lambda type: Rules(old.schema), count) == [None], "equal ones are others too"


def test_a_plan_does_not_check_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was checked before its turn is not checked in it."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.store({"entity_type": "thing", "id": "1"})
    in_turn: list[bool] = []
    entity, begin = Checker.entity, ledger.context.engine.transaction
    turns = [0]

    def noted(checker: Checker, *arguments: Any) -> Any:
        in_turn.append(turns[0] > 0)
        return entity(checker, *arguments)

    def counted(*given: Any) -> Any:
        turns[0] += 1
        return begin(*given)

    monkeypatch.setattr(Checker, "entity", noted)
    monkeypatch.setattr(ledger.context.engine, "transaction", counted)
    ledger.store([{"entity_type": "thing", "id": "1"}, {"entity_type": "thing", "id": "2"}])
    assert in_turn == [False, False]


def test_a_schema_that_comes_between_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was sound when it was checked is refused if the schema at its turn does not take it."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.schemas.register(THING)
    ledger.store({"entity_type": "thing", "id": "1", "size": 1})
    strict = {**THING, "properties": {**THING["properties"], "size": {"type": "string"}}}
    begin = ledger.context.engine.transaction

    def after_the_schema(*given: Any) -> Any:
        monkeypatch.undo()
        ledger.schemas.register(strict)
        return begin(*given)

    monkeypatch.setattr(ledger.context.engine, "transaction", after_the_schema)
    with pytest.raises(woodrat.Refused, match="expected text"):
        ledger.store({"entity_type": "thing", "id": "1", "size": 2})
    assert ledger.position == 2, "two schemas and one record"


def test_an_identity_that_comes_between_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a record is that of the schema in force when it is written, not of the one it was checked by."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.schemas.register(THING)
    ledger.store({"entity_type": "thing", "id": "1", "code": "x"})
    begin = ledger.context.engine.transaction

    def after_the_schema(*given: Any) -> Any:
        monkeypatch.undo()
        ledger.schemas.register({**THING, "x-woodrat-identity": [["code"]]})
        return begin(*given)

    monkeypatch.setattr(ledger.context.engine, "transaction", after_the_schema)
    assert ledger.store({"entity_type": "thing", "id": "2", "code": "y"}).entities == ("thing/y",)


def test_writers_and_schemas_together(tmp_path: Path) -> None:
    """Of threads that store while another schema comes in, what it does not take is written before it or refused."""
    ledger = woodrat.open(tmp_path / "threads.db", agent="a")
    ledger.schemas.register(THING)
    written: list[int] = []
    refused: list[str] = []
    begun = threading.Barrier(5)

    def store(name: str) -> None:
        begun.wait()
        for number in range(40):
            try:
                written.append(
                    ledger.store({"entity_type": "thing", "id": f"{name}-{number}", "size": number}).position
                )
            except woodrat.Refused as refusal:
                refused.append(str(refusal))

    threads = [threading.Thread(target=store, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    begun.wait()
    text = {**THING, "properties": {**THING["properties"], "size": {"type": "string"}}}
    changed = ledger.schemas.register(text).position
    for thread in threads:
        thread.join()
    assert len(written) + len(refused) == 160
    assert all(position < changed for position in written)
    assert all("expected text" in refusal for refusal in refused)
    assert ledger.rebuild().agreed
    ledger.close()

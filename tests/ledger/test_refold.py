"""The job after a new schema: lists bring it on first, a server says how far it is, and what cannot write folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat import Refused, Unavailable
from woodrat.canon.ids import Ref
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import find, lists, refold, state_index, state_steps
from woodrat.records import replace
from woodrat.testing.ledgers import ledger_on

COUNT = 10
ASKED: dict[str, Callable[[woodrat.Past], Any]] = {
    "query": lambda past: [(str(item.entity), item.fields) for item in past.query(entity_type="lead")],
    "sorted": lambda past: [str(item.entity) for item in past.query(entity_type="lead", sort="city")],
    "by value": lambda past: [str(item.entity) for item in past.query(entity_type="lead", where={"city": "c3"})],
    "search": lambda past: [str(hit.snapshot.entity) for hit in past.search("lund", entity_type="lead")],
    "duplicates": lambda past: list(past.duplicates("lead")),
    "duplicates of one": lambda past: list(past.duplicates(ref="lead/1")),
    "conflicts": lambda past: list(past.conflicts("lead")),
}
"""The lists of a type."""


def schema(policy: str, *identity: str) -> dict[str, Any]:
    """Return a schema of leads whose tags merge by a policy, and which fields identify."""
    tags = {"type": "array", "x-woodrat-merge": policy, "x-woodrat-index": True}
    return {"title": "lead", "properties": {"tags": tags}, "x-woodrat-identity": [[name] for name in identity]}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(refold, "STEP_ENTITIES", 2)
    monkeypatch.setattr(state_steps, "STEP_ENTITIES", 2)
    found = SqliteEngine(tmp_path / "l.db")
    yield found
    found.close()


@pytest.fixture
def ledger(engine: Engine) -> woodrat.Ledger:
    """A ledger with leads whose index is up to date, and a memo."""
    ledger = ledger_on(engine)
    ledger.schemas.register(schema("append", "id"))
    for number in range(COUNT):
        said = {"entity_type": "lead", "id": str(number), "city": f"c{number % 4}", "text": "Lund"}
        ledger.store({**said, "email": f"e{number // 2}", "tags": ["a"]})
    ledger_on(engine, agent="b").store({"entity_type": "lead", "id": "1", "city": "elsewhere", "tags": ["a"]})
    ledger.store({"entity_type": "memo", "id": "1", "text": "Lund"})
    while step_rows(ledger):
        pass
    return ledger


def step_rows(ledger: woodrat.Ledger) -> bool:
    """Take a step of the rows."""
    return state_steps.go_on(ledger.context.engine, ledger.tenant, ledger.context.policies)


def waits(ledger: woodrat.Past) -> tuple[bool, bool]:
    """Return whether the job waits, and whether rows lack the schema."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return bool(refold.waiting(view)), state_index.reached(view) < view.head().position


def plainly(ledger: woodrat.Past) -> dict[str, Any]:
    """Return the lists as they are when no row is asked."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("find", "query", "search", "state_lists"):
            patch.setattr(f"woodrat.ledger.{module}.coverage", lambda reader: None)
        patch.setattr(state_steps, "catch_up", lambda *given, **named: 0)
        return {name: ask(ledger) for name, ask in ASKED.items()}


@pytest.mark.parametrize("name", ASKED)
def test_a_list_brings_the_job_on_first(name: str, ledger: woodrat.Ledger) -> None:
    """In the library the first list of a type takes in its new schema to the end, whatever that takes."""
    ledger.schemas.register(schema("union", "email"))
    expected = plainly(ledger)[name]
    assert waits(ledger) == (True, True)
    assert ASKED[name](ledger) == expected
    assert waits(ledger) == (False, False)
    assert ledger.verify(deep=True).sound


def test_lists_of_other_types_and_of_the_past_do_not(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have all rows that they need."""
    before = ledger.position
    ledger.schemas.register(schema("union", "email"))
    monkeypatch.setattr(state_steps, "CATCH_UP_ENTRIES", 0)
    assert len(ledger.query(entity_type="memo").items) == 1
    assert len(ledger.at(before).query(entity_type="lead").items) == COUNT
    assert waits(ledger) == (True, True)


def test_a_job_of_states_alone_is_brought_on_too(ledger: woodrat.Ledger) -> None:
    """Where no row changes, a list still finishes it: a library has nobody else who would."""
    described = schema("append", "id")
    described["properties"]["more"] = {"x-woodrat-merge": "sum"}
    ledger.schemas.register(described)
    while step_rows(ledger):
        pass
    assert waits(ledger) == (True, False)
    assert len(ledger.query(entity_type="lead").items) == COUNT
    assert waits(ledger) == (False, False)


@pytest.mark.parametrize("name", ASKED)
def test_a_list_on_a_server_says_how_far_the_job_is(
    name: str, ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unavailable while the job takes longer than a moment; all else answers, and in the end the list does."""
    before = ledger.position
    position = ledger.schemas.register(schema("union", "email")).position
    expected = plainly(ledger)[name]
    served = woodrat.Past(replace(ledger.context, served=True))
    monkeypatch.setattr(lists, "SCHEMA_SECONDS", 0)
    refold.go_on(ledger.context.engine, ledger.tenant, ledger.context.policies)
    with pytest.raises(Unavailable, match=f"lists wait for its schema at {position}") as caught:
        ASKED[name](served)
    assert caught.value.details == {
        "entity_type": "lead",
        "position": position,
        "entities": COUNT,
        "merged": 0,  # what was forgotten comes first
        "indexed": 0,
    }
    assert served.show("lead/1").fields["tags"] == ["a"]
    assert len(served.query(entity_type="memo").items) == 1
    assert len(served.at(before).query(entity_type="lead").items) == COUNT
    with pytest.raises(Unavailable):
        served.query()
    while refold.go_on(ledger.context.engine, ledger.tenant, ledger.context.policies):
        pass
    step_rows(ledger)
    with pytest.raises(Unavailable) as caught:
        ASKED[name](served)
    assert (caught.value.details["merged"], caught.value.details["indexed"]) == (COUNT, 2)
    monkeypatch.setattr(lists, "SCHEMA_SECONDS", 60)
    assert ASKED[name](served) == expected


def test_a_server_that_cannot_write_folds(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would bring the job on there, so its lists answer at once."""
    ledger.schemas.register(schema("union", "email"))
    expected = plainly(ledger)

    def refuse(*given: object) -> Any:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(ledger.context.engine, "transaction", refuse)
    served = woodrat.Past(replace(ledger.context, served=True))
    assert {name: ask(served) for name, ask in ASKED.items()} == expected


def test_read_only_media_answer_while_a_type_waits(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """However far the job is, lists, names and single reads of a read-only file are those of folding."""
    ledger.schemas.register(schema("union", "email"))
    expected = plainly(ledger)
    while True:
        reading = ledger_on(SqliteEngine(tmp_path / "l.db", readonly=True))
        assert {name: ask(reading) for name, ask in ASKED.items()} == expected
        assert reading.show("lead/3").fields["tags"] == ["a"]
        with pytest.raises(Refused, match="may mean any of 2 entities with that email: lead/2, lead/3"):
            reading.show("e1")
        with pytest.raises(Refused, match="nothing here is called"):
            reading.show("c1")
        reading.context.engine.close()
        if not refold.go_on(ledger.context.engine, ledger.tenant, ledger.context.policies) and not step_rows(ledger):
            break


def test_read_only_lists_fold_up_to_a_limit(
    ledger: woodrat.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that would fold more of a type that waits says so; one page by key folds what it passes over."""
    before = ledger.position
    ledger.schemas.register(schema("union", "email"))
    monkeypatch.setattr(find, "WAITING_FOLDS_MAX", COUNT - 1)
    monkeypatch.setattr(find, "WALK_ENTITIES", 2)
    monkeypatch.setattr(find, "GATHERED", 2)
    reading = ledger_on(SqliteEngine(tmp_path / "l.db", readonly=True))
    for ask in ASKED.values():
        with pytest.raises(Unavailable, match="this list would fold more than 9 entities"):
            ask(reading)
        ask(reading.at(before))
    assert len(reading.query(entity_type="lead", limit=5).items) == 5
    assert len(reading.query(entity_type="memo").items) == 1
    assert reading.show("lead/9").fields["tags"] == ["a"]
    monkeypatch.setattr(find, "WAITING_FOLDS_MAX", COUNT)
    assert {name: ask(reading) for name, ask in ASKED.items()} == plainly(reading)
    reading.context.engine.close()


def test_a_write_that_matches_leaves_states_to_the_job(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It notes the identifying values of its type, folds nothing of it, and the job goes on with the states."""
    ledger.schemas.register(schema("union", "email"))
    refold.go_on(ledger.context.engine, ledger.tenant, ledger.context.policies)
    folded: list[Ref] = []
    real = refold._state_anew

    def counted(reader: Any, root: Ref) -> Any:
        folded.append(root)
        return real(reader, root)

    monkeypatch.setattr(refold, "_state_anew", counted)
    ledger.store({"entity_type": "lead", "email": "e9", "city": "c1"}, match="existing")
    assert folded == []
    with ledger.context.engine.view(ledger.tenant) as view:
        (one,) = refold.waiting(view)
        assert (one.type, one.forget, one.note, bool(one.states)) == ("lead", (), (), True)
    assert len(ledger.query(entity_type="lead").items) == COUNT + 1
    assert len(folded) == COUNT
    assert ledger.verify(deep=True).sound

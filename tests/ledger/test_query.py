"""Queries by indexed fields: conditions, order, pages and moments, and what becomes of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import IndexRow
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import find, state_redo, state_rows, state_steps
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import Progress, reached
from woodrat.ledger.state_rows import INDEXES
from woodrat.merge.fold import MergeState
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.records import replace
from woodrat.testing.clock import FixedClock

SCHEMA: dict[str, Any] = {
    "title": "lead",
    "properties": {
        "city": {"x-woodrat-index": True},
        "age": {"x-woodrat-index": True},
        "tags": {"x-woodrat-index": True, "x-woodrat-merge": "union"},
        "note": {},
    },
    "x-woodrat-identity": [["id"], ["email"]],
}


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """A ledger with an indexed type."""
    engine: Engine = InMemoryEngine()
    made = woodrat.Ledger(engine, tenant="t", agent="a", clock=FixedClock(), policies=registry(()))
    made.schemas.register(SCHEMA)
    yield made
    engine.close()


def lead(id: str, **fields: Any) -> dict[str, Any]:
    """Return a record."""
    return {"entity_type": "lead", "id": id, **fields}


def index_all(ledger: woodrat.Ledger) -> None:
    """Bring the rows up to date."""
    context = ledger.context
    while state_steps.go_on(context.engine, ledger.tenant, context.policies):
        pass


def keys(ledger: woodrat.Past, **asked: Any) -> list[str]:
    """Return the keys of all that a query finds."""
    return [item.entity.key for item in ledger.query(**asked)]


def rows(ledger: woodrat.Ledger) -> list[IndexRow]:
    """Return every row of the state index, those that ended too."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return [row for index in INDEXES for row in view.lives(index)]


def count_folds(monkeypatch: pytest.MonkeyPatch) -> list[Ref]:
    """Return a list that takes in every entity that is folded from now on."""
    folded: list[Ref] = []
    state = Reader.state

    def counted(self: Reader, ref: Ref) -> MergeState:
        folded.append(ref)
        return state(self, ref)

    monkeypatch.setattr(Reader, "state", counted)
    return folded


PEOPLE = [
    lead("1", city="Reus", age=30, tags=["a", "b"]),
    lead("2", city="Girona", age=30.5),
    lead("3", city="Girona nord", age="old", tags=["b"]),
    lead("4", age=7, tags=[]),
    lead("5", city=None, note="x"),
]

CONDITIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"city": "Reus"}, ["1"]),
    ({"city": {"eq": "Reus"}}, ["1"]),
    ({"city": None}, ["5"]),
    ({"city": {"in": ["Reus", "Girona", 3]}}, ["1", "2"]),
    ({"city": {"in": []}}, []),
    ({"city": {"prefix": "Girona"}}, ["2", "3"]),
    ({"city": {"prefix": ""}}, ["1", "2", "3"]),
    ({"city": {"exists": True}}, ["1", "2", "3", "5"]),
    ({"city": {"exists": False}}, ["4"]),
    ({"city": {"lt": "H"}}, ["2", "3"]),
    ({"age": {"gte": 30}}, ["1", "2"]),
    ({"age": {"gt": 30}}, ["2"]),
    ({"age": {"lt": 30.5, "gt": 7}}, ["1"]),
    ({"age": {"lte": 30.5}}, ["1", "2", "4"]),
    ({"age": {"gte": "a"}}, ["3"]),
    ({"tags": "b"}, ["1", "3"]),
    ({"tags": ["a", "b"]}, ["1"]),
    ({"tags": []}, ["4"]),
    ({"tags": {"gt": "a"}}, ["1", "3"]),
    ({"tags": {"prefix": "a"}}, ["1"]),
    ({"tags": {"exists": False}}, ["2", "5"]),
    ({"city": {"prefix": "G"}, "age": {"lt": 100}}, ["2"]),
    ({"note": {"exists": True}}, ["5"]),
    ({"note": {"lt": "y"}, "city": None}, ["5"]),
]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(("where", "expected"), CONDITIONS, ids=lambda given: str(given))
def test_conditions(ledger: woodrat.Ledger, where: dict[str, Any], expected: list[str], indexed: bool) -> None:
    """Every operator finds the same with rows and without, in the order of keys and the other way round."""
    ledger.store(PEOPLE)
    if indexed:
        index_all(ledger)
    assert keys(ledger, entity_type="lead", where=where) == expected
    assert keys(ledger, where=where, limit=1) == expected
    assert keys(ledger, where=where, descending=True, limit=2) == expected[::-1]
    assert sorted(keys(ledger, where=where, sort="age", limit=1)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("city=Reus", ["1"]),
        ("age gte 30", ["1", "2"]),
        ("city prefix Girona n", ["3"]),
        ('city in ["Reus","Girona"]', ["1", "2"]),
        ("city exists false", ["4"]),
        ('age={"gt": 7, "lt": 30.5}', ["1"]),
        ("city eq Reus", ["1"]),
        ("city lt H", ["2", "3"]),
    ],
)
def test_conditions_as_texts(ledger: woodrat.Ledger, text: str, expected: list[str]) -> None:
    """A condition as text is a field, an operator and a value, or a field, = and a value."""
    ledger.store(PEOPLE)
    assert keys(ledger, where=[text]) == keys(ledger, where=text) == expected


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ({"city": {"eq": "x", "less": 3}}, "where/city/less"),
        ({"age": {"lt": None}}, "where/age/lt"),
        ({"age": {"gt": [1]}}, "where/age/gt"),
        ({"age": {"in": "x"}}, "where/age/in"),
        ({"age": {"in": list(range(1001))}}, "where/age/in"),
        ({"age": {"prefix": 3}}, "where/age/prefix"),
        ({"age": {"exists": "yes"}}, "where/age/exists"),
        (["age lt true"], "where/0"),
        (["age"], "where/0"),
        (["age below 3"], "where/0"),
    ],
)
def test_conditions_that_mean_nothing_are_refused(ledger: woodrat.Ledger, where: Any, path: str) -> None:
    """What no value could fulfil is refused, with what is wrong and what to write."""
    with pytest.raises(woodrat.Refused) as refusal:
        ledger.query(where=where)
    assert [fault.path for fault in refusal.value.faults] == [path]
    assert "Nothing was read." in str(refusal.value)


def test_an_object_is_compared_whole(ledger: woodrat.Ledger) -> None:
    """An object without operators is a value; one that looks like operators is written under eq."""
    ledger.store([lead("1", note={"x": 1}), lead("2", note={"lt": 1})])
    assert keys(ledger, where={"note": {"x": 1}}) == ["1"]
    assert keys(ledger, where={"note": {"eq": {"lt": 1}}}) == ["2"]
    assert keys(ledger, where={"note": {"lt": 1}}) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_sorted_by_an_indexed_field(ledger: woodrat.Ledger, indexed: bool) -> None:
    """Values come in the order of all JSON, those without one last, and names ascend whichever way values go."""
    ledger.store([*PEOPLE, lead("6", age=30), lead("7")])
    if indexed:
        index_all(ledger)
    for limit in (1, 2, 3, 100):
        assert keys(ledger, sort="age", limit=limit) == ["4", "1", "6", "2", "3", "5", "7"]
        assert keys(ledger, sort="age", descending=True, limit=limit) == ["3", "2", "1", "6", "4", "5", "7"]
        assert keys(ledger, sort="age", where={"age": {"gte": 30}}, limit=limit) == ["1", "6", "2"]
        assert keys(ledger, sort="age", where={"age": 30}, limit=limit) == ["1", "6"]
        assert keys(ledger, sort="age", where={"city": {"exists": True}}, limit=limit) == ["1", "2", "3", "5"]


def test_a_page_goes_on_from_a_large_collection_of_another_type(ledger: woodrat.Ledger) -> None:
    """After a page that ends at a long list, the lists of a type that has only short ones are not passed over."""
    ledger.schemas.register({**SCHEMA, "title": "account"})
    many = [f"{number:04}" for number in range(state_rows.ELEMENTS_MAX + 1)]
    ledger.store([{"entity_type": "account", "id": "a", "tags": many}, lead("b", tags=["9999"]), lead("c")])
    index_all(ledger)
    for limit in (1, 2, 100):
        assert keys(ledger, sort="tags", limit=limit) == ["a", "b", "c"]
        assert keys(ledger, sort="tags", descending=True, limit=limit) == ["b", "a", "c"]


def test_an_index_folds_what_it_returns(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page by an indexed field folds its own entities and hardly any other, at whatever end of the list."""
    ledger.store([lead(f"{number:03}", city=f"c{number % 10}", age=number) for number in range(300)])
    index_all(ledger)
    folded = count_folds(monkeypatch)
    questions: list[dict[str, Any]] = [
        {"where": {"city": "c3"}},
        {"where": {"city": {"in": ["c3", "c4"]}}},
        {"sort": "age"},
        {"sort": "age", "descending": True},
        {"sort": "age", "where": {"age": {"gte": 150}}},
        {"sort": "city", "where": {"age": {"lt": 20}}},
    ]
    for asked in questions:
        del folded[:]
        page = ledger.query(entity_type="lead", limit=10, **asked)
        assert len(page.items) == 10
        assert page.cursor is not None
        assert len(folded) <= 40
        del folded[:]
        assert len(ledger.query(entity_type="lead", limit=10, cursor=page.cursor, **asked).items) == 10
        assert len(folded) <= 40


def test_earlier_moments_are_read_from_rows(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows say from where to where they are true: a list as of the past folds what it returns."""
    ledger.store([lead(f"{number:03}", city="Reus") for number in range(200)])
    moment = ledger.position
    ledger.store([lead(f"{number:03}", city="Girona") for number in range(100)])
    ledger.delete("lead/150")
    index_all(ledger)
    monkeypatch.setattr(find, "_said", None)
    assert len(keys(ledger.at(moment), where={"city": "Reus"})) == 200
    assert keys(ledger.at(moment), where={"city": "Girona"}) == []
    assert len(keys(ledger, where={"city": "Reus"})) == 99


def test_reads_catch_up(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that rows could answer first takes in what they lack, unless that is little or they are not asked."""
    for number in range(state_steps.LAID_OVER_FEW + 5):
        ledger.store(lead(str(number), city="Reus"))

    def position() -> int:
        with ledger.context.engine.view(ledger.tenant) as view:
            return reached(view)

    assert position() == -1
    assert len(keys(ledger, where={"city": "Reus"})) == state_steps.LAID_OVER_FEW + 5
    assert position() == ledger.position
    ledger.store(lead("new", city="Reus"))
    assert "new" in keys(ledger, where={"city": "Reus"})
    assert position() == ledger.position - 1


def test_a_read_only_ledger_does_without(tmp_path: Path) -> None:
    """Rows that cannot be written stay as they are, and the answer is the same."""
    writer = woodrat.Ledger(
        SqliteEngine(tmp_path / "l.db"), tenant="t", agent="a", clock=FixedClock(), policies=registry(())
    )
    writer.schemas.register(SCHEMA)
    writer.store([lead(str(number), city="Reus") for number in range(50)])
    engine = SqliteEngine(tmp_path / "l.db", readonly=True)
    reader = woodrat.Ledger(engine, tenant="t", agent="a", clock=FixedClock(), policies=registry(()))
    assert len(keys(reader, where={"city": "Reus"})) == 50
    with engine.view(TenantId("t")) as view:
        assert reached(view) == -1
    engine.close()
    writer.close()


def test_conflicts_and_duplicates_are_listed_by_rows(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields in conflict and shared values are found without folding the rest, now and as they were."""
    ledger.store([lead(f"{number:03}", city="Reus", email=f"e{number}") for number in range(100)])
    other = ledger.as_agent("b")
    other.store([lead("007", city="Girona"), lead("051", city="Girona")])
    other.store([lead("x", email="e7"), lead("y", email="e51")])
    moment = ledger.position
    ledger.merge("lead/x", "lead/007")
    ledger.correct("lead/051", {"city": "Reus"})
    index_all(ledger)
    folded = count_folds(monkeypatch)
    past = ledger.at(moment)
    assert [(item.entity.key, item.field) for item in past.conflicts(limit=1)] == [("007", "city"), ("051", "city")]
    assert [item.value for item in past.duplicates(limit=1)] == ["e51", "e7"]
    assert [item.value for item in ledger.duplicates()] == ["e51"]
    assert [[str(ref) for ref in item.entities] for item in ledger.duplicates()] == [["lead/051", "lead/y"]]
    assert len(folded) < 40


# Erasing


def test_erased_values_leave_no_rows(ledger: woodrat.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an erasure no row holds what was erased, of the past neither, and lists go on."""
    make_keys(tmp_path / "keys", FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    ledger.store([lead("1", city="Secret", email="s"), lead("2", city="Reus", email="s"), lead("3", city="Reus")])
    ledger.store(lead("1", city="Reus"))
    index_all(ledger)
    assert any(b"Secret" in row.key for row in rows(ledger))
    ledger.erase("lead/1", reason="asked for")
    index_all(ledger)
    assert not any(b"Secret" in row.key for row in rows(ledger))
    assert keys(ledger, where={"city": "Reus"}) == ["2", "3"]
    assert not ledger.verify().damage


def test_rows_of_some_entities_are_made_again(ledger: woodrat.Ledger) -> None:
    """Whoever changes the past of some entities puts their rows right without touching others."""
    ledger.store([lead("1", city="Reus", email="s"), lead("2", city="Girona", email="s"), lead("3", city="Reus")])
    ledger.merge("lead/2", "lead/3")
    index_all(ledger)
    before = rows(ledger)
    refs = [item.entity for item in ledger.query(entity_type="lead")]
    context = ledger.context
    ledger.search("reus")
    ledger.fingerprint()
    with context.engine.transaction(ledger.tenant) as write:
        old = state_redo.rows_about(write, context.policies, refs)
        assert {row.key for row in old.rows} <= {row.key for row in before}
        state_redo.redo(write, context.policies, old)
    assert rows(ledger) == before
    with context.engine.transaction(ledger.tenant) as write:
        strays = [
            IndexRow("field", b"lead\0city\0\x05Gone\0\x001\0", 2, b"", 3),
            IndexRow("word", b"gone\0lead\0" + bytes(17), 2, b"city"),
        ]
        write.put(strays)
        state_redo.redo(write, context.policies, replace(old, rows=[*old.rows, *strays]))
        assert not any(write.lives(row.name, row.key) for row in strays)
    assert not ledger.verify(deep=True).damage


# Damage


@pytest.mark.parametrize("damage", ["row", "past", "extra", "progress", "beyond", "meta"])
def test_verify_names_rows_that_are_wrong(ledger: woodrat.Ledger, damage: str) -> None:
    """A row that is missing, that nothing asks for, or a progress that is wrong is found, and a rebuild mends it."""
    ledger.store([lead("1", city="Reus"), lead("2", city="Girona")])
    ledger.store(lead("1", city="Lleida"))
    index_all(ledger)
    assert not ledger.verify().damage
    present = next(row for row in rows(ledger) if row.until is None)
    past = next(row for row in rows(ledger) if row.until is not None)
    with ledger.context.engine.transaction(ledger.tenant) as write:
        if damage == "row":
            write.drop(present.name, present.key)
        elif damage == "past":
            write.drop(past.name, past.key)
        elif damage == "extra":
            write.put([IndexRow("conflict", b"lead\x001\0city\0", 2)])
        elif damage == "progress":
            write.set_meta("state", Progress(1).to_bytes())
        elif damage == "beyond":
            write.set_meta("state", Progress(99).to_bytes())
        else:
            write.set_meta("state", b"{")
    assert ledger.verify().damage
    if damage == "meta":
        with pytest.raises(woodrat.Corrupt, match="rebuild"):
            ledger.query(where={"city": "Reus"})
    ledger.rebuild()
    assert not ledger.verify().damage
    assert keys(ledger, where={"city": "Lleida"}) == ["1"]

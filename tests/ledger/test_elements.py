"""Large collections through the verbs: what a write to one costs, and that everything else is as with a small one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from woodrat import Elements, Ledger, NotFound, Past, Refused, Snapshot
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import elements as element_pages
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN
from woodrat.merge.diff import FieldChange
from woodrat.merge.elements import INSIDE_MAX, Parts
from woodrat.merge.snapshot import TOLD_MAX
from woodrat.state.asof import AsOf
from woodrat.testing.ledgers import ledger_on

BOX: Final[dict[str, Any]] = {
    "title": "box",
    "x-woodrat-identity": [["id"]],
    "required": ["id", "things"],
    "properties": {
        "id": {"type": "string"},
        "things": {"type": "array", "x-woodrat-merge": "union"},
        "notes": {"type": "array", "x-woodrat-merge": "append"},
    },
}
SIZES: Final = (100, 100_000)


def box(things: list[Any], **more: Any) -> dict[str, Any]:
    return {"entity_type": "box", "id": "x", "things": things, **more}


def filled(ledger: Ledger, size: int) -> Ledger:
    """Put so many things into a box, some thousands at a time."""
    ledger.schemas.register(BOX)
    for start in range(0, size, 20_000):
        ledger.store(box([f"thing {number:06}" for number in range(start, min(start + 20_000, size))]))
    return ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """An empty ledger."""
    engine = InMemoryEngine()
    yield ledger_on(engine)
    engine.close()


class Work:
    """What a SQLite connection does: steps of its virtual machine, rows it changes, bytes it writes into rows."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._connection = engine._writer.connection
        self.steps = self.rows = self.written = 0

    def __enter__(self) -> Work:
        self._before = self._changed()
        self._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._heard)
        return self

    def _changed(self) -> int:
        """Return how many rows were changed so far; those of the log's tree come when a subtree is complete."""
        nodes: int = self._connection.execute("SELECT count(*) FROM node").get
        return self._connection.total_changes() - nodes

    def _heard(self, event: dict[str, Any]) -> None:
        self.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def __exit__(self, *_: object) -> None:
        self._connection.trace_v2(0, None)
        self.rows = self._changed() - self._before
        run = self._connection.execute
        self.written = sum(
            run(query).get or 0
            for query in (
                "SELECT max(length(state)) FROM entity",
                "SELECT max(length(state)) FROM (SELECT state FROM kept ORDER BY position DESC LIMIT 2)",
                "SELECT max(length(part)) FROM element",
            )
        )


def test_a_write_costs_what_it_says_however_large_the_collection(tmp_path: Path) -> None:
    """Writes to a union of 100,000 elements visit and change as many rows, and bytes, as those to one of 100."""
    found = []
    for size in SIZES:
        engine = SqliteEngine(tmp_path / f"{size}.db")
        ledger = filled(ledger_on(engine), size)
        ledger.store(box(["to begin with"]))
        with Work(engine) as work:
            for number in range(16):  # state is kept along the history twice
                said = box([f"one more {number}", "thing 000007"], **{"$": {"remove": {"things": ["thing 000009"]}}})
                report = ledger.store(said, idempotency_key=f"k{number}" if number % 2 else None)
                assert report.changes[0].fields[0].after == [f"one more {number}"]
        found.append(work)
        engine.close()
    small, large = found
    assert large.rows == small.rows
    # A search in a larger table goes through a few more pages, not through more rows.
    assert small.steps * 0.9 <= large.steps <= small.steps * 1.1
    assert large.written <= small.written * 1.1 < 5_000


def test_a_list_costs_what_is_added_to_it(tmp_path: Path) -> None:
    """Under append a write to a long list changes as many rows as one to a short list."""
    found = []
    for size in (4 * INSIDE_MAX, 2_000):  # the last state that was kept with the list in it is some way back
        engine = SqliteEngine(tmp_path / f"{size}.db")
        ledger = ledger_on(engine)
        ledger.schemas.register(BOX)
        ledger.store([box([1], notes=[number]) for number in range(size)])
        with Work(engine) as work:
            for number in range(8):
                ledger.store(box([1], notes=["more", number]))
        notes: Any = ledger.show("box/x").fields["notes"]
        assert notes[-2:] == ["more", 7]
        found.append(work)
        engine.close()
    assert found[0].rows == found[1].rows
    assert found[0].steps * 0.9 <= found[1].steps <= found[0].steps * 1.1


def test_a_correction_beside_a_collection_does_not_read_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correcting another field of an entity, deleting it and relating it do not read the elements of a collection."""
    filled(ledger, INSIDE_MAX + 10)
    ledger.store({"entity_type": "memo", "id": "n"})

    def whole(parts: Parts[Any]) -> dict[bytes, Any]:
        raise AssertionError("all elements are read")

    with monkeypatch.context() as patch:
        patch.setattr(Parts, "whole", whole)
        report = ledger.correct("box/x", {"place": "cellar"})
        assert [(change.field, change.after) for change in report.changes[0].fields] == [("place", "cellar")]
        ledger.relate("memo/n", "about", "box/x")
    assert ledger.show("box/x").fields["place"] == "cellar"
    with pytest.raises(NotFound, match="box/none: not known at position"):
        ledger.correct("box/none", {"place": "cellar"})


def test_a_report_tells_what_went_and_came(ledger: Ledger) -> None:
    """Of a large collection a report tells the elements that changed; saying what is known changes nothing."""
    filled(ledger, INSIDE_MAX + 10)
    report = ledger.store(box(["new", "thing 000001"], **{"$": {"remove": {"things": ["thing 000002"]}}}))
    (change,) = report.changes[0].fields
    assert change == FieldChange("things", True, ["thing 000002"], True, ["new"], part=True)
    assert ledger.store(box(["thing 000003"])).changes == ()
    gone = ledger.delete("box/x").changes[0]
    assert (gone.was_deleted, gone.is_deleted) == (False, True)
    assert [(one.field, one.has, one.part) for one in gone.fields] == [("id", False, False), ("things", False, True)]


def test_a_repeated_write_is_answered_as_it_was(ledger: Ledger) -> None:
    """A key sent again gives the first report, the parts of it included; so does a known observation."""
    filled(ledger, INSIDE_MAX + 10)
    said = box(["new"], **{"$": {"observed_at": "2025-01-05T09:00:00Z"}})
    first = ledger.store(said, idempotency_key="k")
    again = ledger.store(said, idempotency_key="k")
    assert again == first.again()
    assert ledger.store(said).changes == first.changes


QUESTIONS: Final[dict[str, Callable[[Ledger], Any]]] = {
    "blame": lambda ledger: [v.reason for v in ledger.blame("box/x", "things")["things"]][:2],
    "history": lambda ledger: [change.to_json() for change in ledger.history("box/x").items[-1].changes],
    "diff": lambda ledger: [change.to_json() for change in ledger.diff(1, "now", "box/x")],
    "query": lambda ledger: [str(found.entity) for found in ledger.query(where={"things": "thing 000070"}).items],
    "search": lambda ledger: [str(hit.snapshot.entity) for hit in ledger.search("thing 000070").items],
    "lineage": lambda ledger: ledger.lineage("box/x#things").to_json(),
    "fact": lambda ledger: ledger.show("box/x").fact("things").origin,
    "effective": lambda ledger: ledger.at(valid_at="2024-06-01T00:00:00Z").show("box/x").fields,
    "fingerprint": lambda ledger: ledger.fingerprint(provenance=True),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_answered_as_of_a_small_collection(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where elements lie does not show in any answer."""
    found = []
    for limit in (INSIDE_MAX, 10_000):
        monkeypatch.setattr("woodrat.merge.elements.INSIDE_MAX", limit)
        engine = SqliteEngine(tmp_path / f"{limit}.db")
        ledger = ledger_on(engine)
        ledger.schemas.register(BOX)
        early, late = ({"$": {"observed_at": f"{year}-01-05T09:00:00Z"}} for year in (2024, 2025))
        ledger.store(box([f"thing {number:06}" for number in range(INSIDE_MAX + 10)], **early))
        ledger.store(box(["thing 000001", "last"], notes=["n"], **late))
        found.append(QUESTIONS[name](ledger))
        engine.close()
    assert found[0] == found[1]
    assert found[0]


# Page by page


def pages(past: Past, field: str, limit: int) -> Iterator[Elements]:
    """Yield the pages of a collection."""
    page = past.elements("box/x", field, limit=limit)
    yield page
    while page.cursor is not None:
        page = past.elements("box/x", field, limit=limit, cursor=page.cursor)
        yield page


@pytest.mark.parametrize("limit", [1, 7, 1_000])
@pytest.mark.parametrize("size", [5, INSIDE_MAX + 30])
def test_pages_together_are_the_collection(ledger: Ledger, size: int, limit: int) -> None:
    """The pages of a collection are its value, each element once, in its order, and each says how many there are."""
    filled(ledger, size)
    ledger.store(box([1, None, {"a": []}], notes=["a", "b", "c"], **{"$": {"remove": {"things": ["thing 000003"]}}}))
    for number in range(INSIDE_MAX):
        ledger.store(box([], notes=[number] * (number % 4)))
    value: Any = ledger.show("box/x").fields
    for name in ("things", "notes"):
        found = list(pages(ledger, name, limit))
        assert [element for page in found for element in page.elements] == value[name]
        assert {page.total for page in found} == {len(value[name])}
        assert all(len(page.elements) == limit for page in found[:-1])


def test_pages_are_of_one_moment(ledger: Ledger) -> None:
    """What is said between two pages does not show in the second; a page of the past is read there."""
    filled(ledger, INSIDE_MAX + 30)
    first = ledger.elements("box/x", "things", limit=10)
    before = ledger.position
    ledger.store(box(["a", "zz"], **{"$": {"remove": {"things": ["thing 000050"]}}}))
    second = ledger.elements("box/x", "things", limit=1_000, cursor=first.cursor)
    assert (second.position, second.total) == (before, INSIDE_MAX + 30)
    assert [*first.elements, *second.elements] == ledger.at(before).show("box/x").fields["things"]
    assert ledger.at(before).elements("box/x", "things", limit=10) == first
    assert ledger.elements("box/x", "things", limit=1).elements == ("a",)


def test_a_page_costs_a_page(tmp_path: Path) -> None:
    """A page of a large collection visits as many rows as one of a small collection."""
    steps = []
    for size in (INSIDE_MAX + 36, 5_000):
        engine = SqliteEngine(tmp_path / f"{size}.db")
        filled(ledger_on(engine), size)
        with engine.transaction(TenantId("t")) as view, Work(engine) as work:
            page = element_pages.elements(
                Reader(view, AsOf(view.head().position), BUILTIN), "box/x", "things", 50, None
            )
            assert (len(page.elements), page.total) == (50, size)
        steps.append(work.steps)
        engine.close()
    assert steps[0] * 0.9 <= steps[1] <= steps[0] * 1.1


def test_what_is_no_collection_has_no_pages(ledger: Ledger) -> None:
    """A field of another policy, one without a value, a broken cursor and a wrong limit are refused, each by name."""
    filled(ledger, 3)
    cursor = ledger.elements("box/x", "things", limit=1).cursor
    with pytest.raises(Refused, match="merges by latest, and is not a collection"):
        ledger.elements("box/x", "id")
    with pytest.raises(NotFound, match="box/x#notes: it has no value"):
        ledger.elements("box/x", "notes")
    with pytest.raises(NotFound, match="not known at position"):
        ledger.elements("box/y", "things")
    with pytest.raises(Refused, match="is not a cursor of this question"):
        ledger.elements("box/x", "notes", cursor=cursor)
    with pytest.raises(Refused, match="which this log has not reached"):
        ledger.at(0).elements("box/x", "things", cursor=cursor)
    with pytest.raises(Refused) as refusal:
        ledger.elements("box/x", 7, limit=0)  # type: ignore[arg-type]
    assert [fault.path for fault in refusal.value.faults] == ["field", "limit"]
    ledger.delete("box/x")
    with pytest.raises(NotFound, match="is deleted"):
        ledger.elements("box/x", "things")


def test_the_json_of_a_snapshot_has_the_first_elements(ledger: Ledger) -> None:
    """Above a limit the JSON of a snapshot tells the first elements and how many there are; the snapshot has all."""
    filled(ledger, TOLD_MAX + 5)
    snapshot = ledger.show("box/x")
    whole: Any = snapshot.fields["things"]
    told = snapshot.to_json()
    assert len(whole) == TOLD_MAX + 5
    assert told["fields"]["things"] == whole[:TOLD_MAX]
    assert told["more"] == {"things": TOLD_MAX + 5}
    back = Snapshot.from_json(told)
    assert (back.more, back.to_json()) == (told["more"], told)
    assert ledger.diff_against(snapshot).changes == ()
    for known in (told, back):
        with pytest.raises(Refused, match="only the first elements of things"):
            ledger.diff_against(known)


def test_the_json_of_a_whole_snapshot_has_everything(ledger: Ledger) -> None:
    """A snapshot that is asked to be whole leaves nothing out, and is read back as the same snapshot."""
    ledger.schemas.register(BOX)
    ledger.store([box([f"thing {number:06}"]) for number in range(TOLD_MAX + 5)])
    snapshot = ledger.show("box/x")
    cut, whole = snapshot.to_json(), snapshot.whole().to_json()
    assert len(cut["blame"]["things"]["observations"]) == TOLD_MAX
    assert len(whole["blame"]["things"]["observations"]) == len(whole["fields"]["things"]) == TOLD_MAX + 5
    assert (cut["more"], whole["more"]) == ({"things": TOLD_MAX + 5}, {})
    assert [name for name in cut if cut[name] != whole[name]] == ["fields", "more", "blame"]
    back = Snapshot.from_json(json.loads(json.dumps(whole)))
    assert back == snapshot
    assert (back.fields, back.more, dict(back.blame)) == (snapshot.fields, {}, dict(snapshot.blame))
    assert (back.conflicts, back.schema, back.digest) == (snapshot.conflicts, snapshot.schema, snapshot.digest)
    assert back.schema is not None
    assert (back.to_json(), back.whole().to_json()) == (cut, whole)
    assert Snapshot.from_json(cut) != snapshot
    assert snapshot.to_json() == cut, "the snapshot itself is as it was"
    assert not ledger.diff_against(whole)
    assert not ledger.diff_against(back)


def test_a_run_records_that_it_read_elements(ledger: Ledger) -> None:
    """A page read in a run is a read of its entity, with what was asked."""
    filled(ledger, INSIDE_MAX + 5)
    with ledger.run("What is in the box?", subject="box/x") as run:
        assert run.elements("box/x", "things", limit=2).elements == ("thing 000000", "thing 000001")
    (read,) = ledger.runs.show(run.id).reads
    assert (read.entity, read.within) == ("box/x", "elements")


def test_a_report_tells_a_large_collection_that_is_new() -> None:
    """Of a large collection that was not there before, the report tells every element."""
    ledger = ledger_on(InMemoryEngine())
    ledger.schemas.register({"title": "bag", "properties": {"of": {"type": "array", "x-woodrat-merge": "union"}}})
    elements = [f"e{number:03}" for number in range(100)]
    [change] = ledger.store({"entity_type": "bag", "id": "1", "of": elements}).changes
    told = {field.field: field for field in change.fields}["of"]
    assert (told.before, told.after) == (None, elements)

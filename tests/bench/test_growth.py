"""The growth table: every verb has a row, every row answers, and growth is reported; no figure is judged here."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from bench import place
from bench.growth import catalogue, command, lists, ordinary, row
from bench.growth.case import LIBRARY, MCP, REST, Case, Facts, World
from bench.growth.database import Database
from bench.growth.meter import in_child
from bench.growth.row import SMALL, SMALL_FACTS, Row, measure, try_out
from bench.growth.slope import ALL, ANSWER, PAGE, cost_at, slope_of
from bench.growth.stock import Stock
from bench.growth.surface import served, show_call
from bench.growth.table import Table

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.api.runs import Runs
from woodrat.engines.postgres.engine import PostgresEngine

CASES = catalogue.all_cases()
SIZES = (100, 1_000, 10_000)
FLAT, LINEAR, PAIRWISE = (2.0, 2.1, 2.2), (1.0, 10.0, 100.0), (1.0, 100.0, 10_000.0)


def _people(path: Path, size: int) -> Facts:
    """Build a ledger of so many people, and nothing else."""
    with woodrat.open(path, agent="crm-sync") as ledger:
        ledger.store([{"entity_type": "person", "city": "Lund", "$": {"key": f"p{number}"}} for number in range(size)])
    return {}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Stock:
    return Stock(tmp_path_factory.mktemp("stock"), quiet=True)


# Slopes and goals


@pytest.mark.parametrize(("power", "slope"), [(0, 0.0), (0.5, 0.5), (1, 1.0), (2, 2.0)])
def test_the_slope_is_the_power_of_the_size(power: float, slope: float) -> None:
    """Costs that are a power of the size have that power as their slope, whatever one unit costs."""
    costs = {size: 0.37 * size**power for size in (1_000, 10_000, 100_000)}
    assert slope_of(costs) == pytest.approx(slope)
    expected = cost_at({size: cost for size, cost in costs.items() if size < 100_000}, 100_000)
    assert expected == pytest.approx(costs[100_000])


def test_one_size_has_no_slope_and_nothing_is_not_a_fault() -> None:
    """A slope needs two sizes; a cost of nothing counts as very little."""
    assert slope_of({1_000: 3.0}) is None
    assert slope_of({1_000: 0.0, 10_000: 0.0}) == 0


def _row(kind: str, cold: tuple[float, ...], warm: tuple[float, ...], **about: Any) -> Row:
    case = replace(CASES[0], kind=kind)
    return Row(case, SIZES, _by_size(cold), _by_size(warm), **about)


def _by_size(costs: tuple[float, ...]) -> dict[int, float]:
    return dict(zip(SIZES, costs, strict=True))


def test_a_row_is_missed_when_either_kind_of_call_grows() -> None:
    """Pages and answers may hardly grow, everything may grow in proportion; first calls count like those after them."""
    for kind in (PAGE, ANSWER):
        assert _row(kind, FLAT, FLAT).met
        assert _row(kind, LINEAR, FLAT).misses == ("first call grows",)
        assert _row(kind, FLAT, LINEAR).misses == ("later calls grow",)
    assert _row(ALL, LINEAR, LINEAR).met
    assert not _row(ALL, PAIRWISE, FLAT).met
    assert _row(PAGE, FLAT, FLAT, problem="at 10,000: more than 60 s").misses == ("at 10,000: more than 60 s",)
    assert Row(CASES[0], SIZES).misses == ("not measured",)


def test_a_page_is_missed_when_it_costs_too_many_shows() -> None:
    """A page that does not grow may still cost no more than 20 times one show, on the largest ledger."""
    assert _row(PAGE, FLAT, FLAT, shown=_by_size((0.01, 0.01, 0.11))).met
    dear = _row(PAGE, FLAT, FLAT, shown=_by_size((2.0, 2.0, 0.1)))
    assert dear.shows == pytest.approx(22)
    assert dear.misses == ("more than 20 × show",)


def test_a_first_call_that_brings_indexes_up_to_date_derives_everything() -> None:
    """It may grow in proportion to what was written since; it may not where nothing was to be indexed."""
    assert _row(PAGE, LINEAR, FLAT, indexed={100: 100, 1_000: 1_000, 10_000: 10_000}).met
    assert _row(PAGE, LINEAR, FLAT, indexed={100: 3, 1_000: 3, 10_000: 3}).misses == ("first call grows",)
    assert _row(PAGE, PAIRWISE, FLAT, indexed={100: 100, 1_000: 1_000, 10_000: 10_000}).misses == ("first call grows",)
    assert _row(PAGE, FLAT, LINEAR, indexed={100: 100, 1_000: 1_000, 10_000: 10_000}).misses == ("later calls grow",)


def test_a_run_that_ended_early_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were measured with the same code at the same sizes are taken as they were; others are measured."""
    words = ["--growth", "--json", "--sizes", "20", "40", "--rounds", "1", "--keep", str(tmp_path)]
    command.main([*words, "--only", "schemas.show"])
    measured: list[str] = []

    def note(case: Case, *_: object) -> Row:
        measured.append(case.name)
        return Row(case, (20, 40))

    monkeypatch.setattr(command, "measure", note)
    command.main([*words, "--resume", "--only", "schemas.show", "ids"])
    assert measured == ["ids"]
    command.main([*words, "--only", "schemas.show"])
    assert measured == ["ids", "schemas.show"]


def test_rows_are_chosen_by_the_kind_of_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--worlds` leaves the rows of other ledgers out, though `--only` finds them by their names."""
    measured: list[Case] = []

    def note(case: Case, *_: object) -> Row:
        measured.append(case)
        return Row(case, (20, 40))

    monkeypatch.setattr(command, "measure", note)
    words = ["--growth", "--json", "--only", "history", "--keep", str(tmp_path)]
    command.main(words)
    assert {"people", "history"} < {case.world.name for case in measured}
    measured.clear()
    command.main([*words, "--worlds", "history"])
    assert {case.world.name for case in measured} == {"history"}
    with pytest.raises(SystemExit, match="Nothing was measured"):
        command.main([*words, "--worlds", "wide"])


@pytest.mark.parametrize(("last", "met"), [(2.2, True), (9.0, False)])
def test_a_near_miss_is_measured_again(stock: Stock, monkeypatch: pytest.MonkeyPatch, last: float, met: bool) -> None:
    """The lesser cost at each size counts; a row that misses by far is measured once."""
    rows = [_row(ANSWER, FLAT, (2.0, 2.1, 5.0)), _row(ANSWER, (2.1, 2.2, 2.3), (2.0, 2.1, last))]
    monkeypatch.setattr(row, "_measured_once", lambda *_: rows.pop(0))
    result = measure(CASES[0], stock, SIZES, 1)
    assert (result.met, result.cold, rows) == (met, _by_size(FLAT), [])
    rows = [_row(ANSWER, FLAT, LINEAR)]
    assert not measure(CASES[0], stock, SIZES, 1).met


# Every verb has a row, and every row answers


def test_every_verb_has_a_row_or_a_reason() -> None:
    """A verb that is added to the library is measured, or there is a reason why not; no reason outlives its verb."""
    assert catalogue.missing() == set()
    assert set(catalogue.NOT_MEASURED) <= catalogue.names()
    assert not set(catalogue.NOT_MEASURED) & {case.verb for case in CASES}
    assert {case.verb for case in CASES} <= catalogue.names()


def test_every_list_is_walked() -> None:
    """Every verb that takes a cursor is measured page by page, and is compared with a show."""
    assert {listing.verb or name for name, listing in lists.LISTINGS.items()} == lists.list_verbs()
    assert {case.verb for case in CASES if case.kind == PAGE} == lists.list_verbs() | {"log.entries"}


def test_rows_have_names_of_their_own() -> None:
    """No two rows have one name; rows are chosen by verb, by kind of ledger or by the beginning of their name."""
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.verb for case in command.chosen(CASES, ["runs.list"])} == {"runs.list"}
    assert {case.world.name for case in command.chosen(CASES, ["hub"])} == {"hub"}
    with pytest.raises(SystemExit, match='no row "nothing"'):
        command.chosen(CASES, ["nothing"])


@pytest.mark.parametrize("world", sorted({case.world.name for case in CASES}))
def test_every_row_of_the_library_answers(world: str, stock: Stock) -> None:
    """On a tiny ledger every case finds what it expects, for the first and for the second time."""
    for case in CASES:
        if case.world.name == world and case.surface == LIBRARY:
            try_out(case, stock)


def test_every_row_of_a_server_answers(tmp_path: Path) -> None:
    """Over REST and MCP every list answers with a page, and an entity is shown; one ledger holds them all."""
    remote = [case for case in CASES if case.surface != LIBRARY]
    # By name, so that people come last: their schema would refuse records of persons in other ledgers.
    worlds = sorted({case.world.name: case.world for case in remote}.items())
    path = tmp_path / "ledger.db"
    facts = {name: {**world.build(path, SMALL), **SMALL_FACTS} for name, world in worlds}
    with served(str(path)) as (client, _):
        for case in remote:
            case.call(client, facts[case.world.name], 0)
        for surface in (REST, MCP):
            show_call(surface)(client, remote[0].world.shown(facts[remote[0].world.name], 0))


# Planted faults, in the library itself


def _of(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


def test_a_verb_that_works_pairwise_is_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb that compares all entries with each other is reported with its slope, and the command fails."""
    tag = Ledger.tag

    def pairwise(ledger: Ledger, name: str, *arguments: Any) -> object:
        positions = [entry.position for entry in ledger.log.entries(limit=1_000)] * 10
        assert sum(one < other for one, other in product(positions, positions))
        return tag(ledger, name, *arguments)

    monkeypatch.setattr(Ledger, "tag", pairwise)
    few = World("few", "people", (20, 60, 180), _people, ordinary.shown)
    cases = (
        Case("tag", "tag", ANSWER, few, lambda ledger, _, number: ledger.tag(f"tag-{number}", 1)),
        Case("ids", "ids", ANSWER, few, lambda ledger, *_: [ledger.ids("obs_aaaaaaaa") for _ in range(50)]),
    )
    monkeypatch.setattr(command, "all_cases", lambda: cases)
    assert command.main(["--growth", "--json", "--rounds", "1", "--keep", str(tmp_path)]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    planted = _of(rows, "tag")
    assert planted["slopes"]["warm"] > 1.4
    assert "later calls grow" in planted["misses"]
    assert _of(rows, "ids")["slopes"]["warm"] < 0.7


def test_a_verb_without_a_row_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new verb of the library or of a namespace is named, and the command fails although every row meets its goal."""

    def count(self: object) -> int:
        """Count something."""
        return 0

    monkeypatch.setattr(Ledger, "count_all", count, raising=False)
    monkeypatch.setattr(Runs, "count", count, raising=False)
    assert catalogue.missing() == {"count_all", "runs.count"}
    monkeypatch.setattr(command, "measure", lambda case, *_: _row(ANSWER, FLAT, FLAT))
    assert command.main(["--growth", "--only", "ids", "--keep", str(tmp_path)]) == 1
    assert "Verbs without a row: count_all, runs.count." in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(command, "measure", lambda case, *_: _row(ANSWER, FLAT, FLAT))
    assert command.main(["--growth", "--only", "ids", "--keep", str(tmp_path)]) == 0


def test_a_row_that_fails_is_a_miss_that_says_why(stock: Stock) -> None:
    """An answer that is not as expected is reported with its place; sizes after it are not tried."""

    def call(ledger: Ledger, facts: Facts, number: int) -> None:
        assert facts["size"] < 30, "too large"

    few = World("few", "people", (20, 40, 80), _people, ordinary.shown)
    result = measure(Case("failing", "show", ANSWER, few, call), stock, few.sizes, 10, rounds=1)
    assert set(result.cold) == {20}
    assert result.problem is not None
    assert result.problem.startswith("at 40: AssertionError at test_growth.py:")


# How it is measured


def test_a_page_is_compared_with_a_show_beside_it(stock: Stock) -> None:
    """Cost, memory and the cost of one show are there for every size, for the first call and for those after it."""
    case = next(case for case in CASES if case.name == "observations of an entity, first page")
    few = replace(case, world=replace(case.world, sizes=(20, 40, 80)))
    result = measure(few, stock, few.world.sizes, 10, rounds=1)
    assert result.problem is None
    for costs in (result.cold, result.warm, result.memory, result.shown):
        assert set(costs) == {20, 40, 80}
    assert result.shows is not None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak of memory is not known")
def test_memory_of_a_call_is_its_peak(stock: Stock) -> None:
    """What a call takes and gives back again is reported."""
    few = World("few", "people", (20, 40), _people, ordinary.shown)  # type: ignore[arg-type]
    case = Case("taking", "show", ANSWER, few, lambda *_: len(bytes(50_000_000).replace(b"\0", b"1")), repeats=False)
    result = measure(case, stock, few.sizes, 10, rounds=1)
    assert min(result.memory.values()) > 40_000_000


def test_a_child_that_works_too_long_is_ended() -> None:
    """What it reported before counts; a failure is reported with its place."""

    def endless() -> Iterator[dict[str, Any]]:
        yield {"cold": 1}
        while True:
            time.process_time()

    outcome = in_child(endless, 0.1)
    assert (outcome.results, outcome.problem) == ({"cold": 1}, "more than 0.1 s")

    def failing() -> Iterator[dict[str, Any]]:
        yield {"cold": 1}
        raise ValueError("no such thing")

    outcome = in_child(failing, 10)
    assert outcome.problem is not None
    assert outcome.problem.startswith("ValueError at test_growth.py:")


def test_sizes_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """One size has no slope, and a ledger that is too small has no pages."""
    for sizes in (["100", "100"], ["5", "100"]):
        with pytest.raises(SystemExit):
            command.main(["--growth", "--sizes", *sizes])
        assert "Nothing was measured." in capsys.readouterr().err


def test_columns_stand_below_their_titles() -> None:
    """The costs, the slope and the number of shows of a row end where the titles of their columns end."""
    case = replace(CASES[0], kind=PAGE)
    table = Table([case])
    header = table.header(case.world.name, case.world.unit, SIZES).strip("\n")
    line = table.line(Row(case, SIZES, _by_size((1.0, 20.0, 1_000.0)), _by_size(FLAT), shown=_by_size(FLAT)))
    for title, cell in ((" 10,000  slope   then", "  1,000   1.50"), ("× show", "   1.0")):
        end = header.index(title) + len(title.removesuffix("   then"))
        assert line[:end].endswith(cell)


def test_a_kept_ledger_is_used_again(tmp_path: Path) -> None:
    """A ledger is built once, and anew when the way it is built has changed."""

    def build(path: Path, size: int) -> Mapping[str, Any]:
        with woodrat.open(path, agent="builder") as ledger:
            ledger.store({"entity_type": "thing", "id": str(size)})
        return {"size": size}

    world = World("toy", "things", (1, 2, 3), build, ordinary.shown)
    home, facts = Stock(tmp_path, quiet=True).ledger(world, 2)
    assert facts == {"size": 2}
    built_at = (home / "ledger.db").stat().st_mtime_ns
    Stock(tmp_path, quiet=True).ledger(world, 2)
    assert (home / "ledger.db").stat().st_mtime_ns == built_at
    other = Stock(tmp_path, quiet=True)
    other._stamp = "another"
    other.ledger(world, 2)
    assert (home / "ledger.db").stat().st_mtime_ns > built_at


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --keep the ledgers of a run are removed after it."""
    monkeypatch.setattr(place, "MEMORY", frozenset())
    words = ["--growth", "--json", "--only", "schemas.show", "--sizes", "20", "40", "--rounds", "1"]
    command.main([*words, "--dir", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_was_only_read_is_lent_again(tmp_path: Path) -> None:
    """A copy goes to the next case if nobody wrote to it; one with a further file beside it does not either."""
    stock, world = Stock(tmp_path, quiet=True), World("toy", "people", (1, 2, 3), _people, ordinary.shown)
    with stock.copy(world, 2) as (path, _), woodrat.open(path, agent="a") as ledger:
        assert ledger.show("person/p1").fields
    with stock.copy(world, 2) as (again, _), woodrat.open(again, agent="a") as ledger:
        assert again == path
        ledger.store({"entity_type": "person", "city": "Porto", "$": {"key": "p1"}})
    assert not Path(path).exists()
    with stock.copy(world, 2) as (third, _):
        assert third != path
        Path(third).with_name("beside").write_text("left here")
    assert not Path(third).exists()
    with stock.copy(world, 2) as (fourth, _), stock.copy(world, 2) as (fifth, _):
        assert fourth != fifth
    stock.clear()
    assert not Path(fourth).exists()
    assert not Path(fifth).exists()


def test_a_row_on_postgresql_counts_the_work_of_the_server(tmp_path: Path) -> None:
    """A case is measured on a database that holds the same log, and what the server works counts."""
    world = World("toy", "people", (1, 2, 3), _people, ordinary.shown)

    def busy(ledger: Ledger, facts: Facts, _: int) -> None:
        engine = ledger.context.engine
        assert isinstance(engine, PostgresEngine)
        assert ledger.show("person/p1").fields == {"city": "Lund"}
        with engine.owner() as connection:
            connection.execute("SELECT count(*) FROM generate_series(1, 1_000_000)")

    case = Case("show, and more", "show", ANSWER, world, busy)
    with Database(60.0) as database:
        stock = Stock(tmp_path, quiet=True, database=database)
        found = measure(case, stock, (20, 40), 60.0, 1)
    assert found.problem is None
    assert min(found.warm.values()) > 20, "a million rows take the server far more than the caller"

"""Every run that the documents show is recorded and replayed, and every way they show to make one has a test.

The examples of a page run in order. Each one that begins a run is then a function that is replayed with that run.
"""

from __future__ import annotations

import doctest
import io
import re
import runpy
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.replay import patterns

import woodrat
from woodrat.errors import Unavailable
from woodrat.runs.recorder.run import Run

ROOT = Path(__file__).parents[2]
SHOWN = sorted([ROOT / "README.md", *ROOT.glob("docs/guide/*.md"), *ROOT.glob("docs/reference/*.md")])
"""The pages that show how the library is used."""
EXAMPLES = sorted(ROOT.glob("examples/*.py"))

BEGINS = re.compile(r"^\s*(?:>>>|\.\.\.) .*\b(?!asyncio)\w+\.(?:run|recorded|turn|wrap)\(", re.MULTILINE)
PAGES = [page for page in SHOWN if BEGINS.search(page.read_text("utf-8"))]

NOT_ONE_FUNCTION = re.compile(r"\.runs\.(?:fork|resume|replay)\(|\.start\(\)")
"""Examples that carry a run on, or begin one whose steps stand in other examples; `WAYS` has tests of these."""


def begun(page: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[doctest.Example, Run, Callable[[], None]]]:
    """Run the examples of a page; yield each that begins a run, the first such run, and the example as a function."""
    made: list[Run] = []
    start = Run.start

    def noted(self: Run) -> Run:
        made.append(self)
        return start(self)

    test = doctest.DocTestParser().get_doctest(page.read_text("utf-8"), {}, page.name, str(page), 0)
    space: dict[str, Any] = {"__name__": "__main__"}
    monkeypatch.setattr(Run, "start", noted)
    for example in test.examples:
        code = compile(example.source, page.name, "single")
        made.clear()

        def again(code: Any = code) -> None:
            exec(code, space)

        with redirect_stdout(io.StringIO()):
            try:
                again()
            except Exception:
                assert example.exc_msg is not None, example.source
        if made and not NOT_ONE_FUNCTION.search(example.source):
            before = dict(space)
            yield example, made[0], again
            space.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_runs_of_a_page_replay_as_the_same(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example, as a function that begins its run itself, is the same, and writes nothing."""
    count = 0
    for example, run, again in begun(page, monkeypatch):
        ledger = run.log.ledger
        try:
            position = ledger.position
        except Unavailable:  # it was in memory, and the example closed it
            continue
        with redirect_stdout(io.StringIO()):
            found = ledger.runs.replay(run.id, again)
        assert found.same, f"{example.source}\n{found.runs[0]}"
        assert ledger.position == position
        count += 1
    assert count > 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_first_run_of_an_example_replays_as_the_same(path: Path, tmp_path: Path) -> None:
    """A program of examples/, as a function that begins its run itself: the same, and nothing is written."""
    main, database = runpy.run_path(str(path))["main"], str(tmp_path / "example.db")
    tenant = "lending" if path.stem == "loan_story" else "default"
    with redirect_stdout(io.StringIO()):
        main(database)
        with woodrat.open(database, tenant=tenant, agent="loan-officer") as ledger:
            first = [run for run in ledger.runs.list(limit=100) if run.parent is None][-1]
            position = ledger.position
            found = ledger.runs.replay(first.id, lambda: main(database))
            assert found.same, str(found.runs[0])
            assert found.runs[0].steps > 0
            assert ledger.position == position


def test_a_run_that_was_continued_replays_as_the_same() -> None:
    """Steps that were recorded through `runs.continue_` are steps of the run."""
    with woodrat.open(":memory:") as ledger:
        run = ledger.run("Go?").start()
        run.tool("first", lambda: 1.0)
        with ledger.runs.continue_(run.id, ends=True) as other:
            other.answer(f"{other.tool('second', lambda: 2.0).result}")

        def agent(run: woodrat.Run) -> str:
            run.tool("first", lambda: 5)
            return f"{run.tool('second', lambda: 6).result}"

        found = ledger.runs.replay(run.id, agent)
        assert found.same, str(found.runs[0])


@pytest.mark.filterwarnings("error")
def test_an_imported_run_replays_as_the_same() -> None:
    """A run that another program recorded is answered from what it says of its tools and models."""
    with woodrat.open(":memory:") as ledger:
        steps = [{"kind": "tool", "name": "look", "args": {"id": 1}, "result": {"score": 5}}]
        (run,) = ledger.runs.import_({"query": "Go?", "steps": steps, "answer": "5"})

        def agent(run: woodrat.Run) -> str:
            return str(run.tool("look", lambda id: {"score": 9}, id=1).result["score"])

        found = ledger.runs.replay(run, agent)
        assert found.same, str(found.runs[0])


# Every way to make a run


PATTERN = "tests/replay/test_patterns.py::test_a_recorded_pattern_replays_as_the_same"
HERE = "tests/docs/test_documented_runs.py"
WAYS: dict[str, list[str]] = {
    "ledger.run": [
        f"{PATTERN}[{name}]" for name in ("handed", "begins", "begins_alone", "begins_inner", "begins_soon")
    ],
    "ledger.run.start": [f"{PATTERN}[by_hand]", f"{PATTERN}[begins_by_hand]"],
    "ledger.recorded": [f"{PATTERN}[{name}]" for name in ("decorated", "decorated_soon", "decorated_stream")],
    "memory.turn": [f"{PATTERN}[takes_turn]", f"{PATTERN}[takes_keyed_turn]", f"{PATTERN}[takes_turn_soon]"],
    "memory.wrap": [f"{PATTERN}[wraps]", f"{PATTERN}[wraps_memory]", f"{PATTERN}[wraps_soon]"],
    "woodrat.aopen": [f"{PATTERN}[handed_async_run]", f"{PATTERN}[begins_async_run]", f"{PATTERN}[recalls_async]"],
    "woodrat.open of an address": [
        "tests/server/test_replay.py::test_a_pattern_that_is_recorded_through_a_server_replays_as_the_same"
    ],
    "runs.resume": ["tests/replay/test_patterns.py::test_an_interrupted_pattern_is_resumed"],
    "runs.fork": ["tests/runs/test_fork.py::test_a_fork_replays_as_the_same"],
    "runs.continue_": [f"{HERE}::test_a_run_that_was_continued_replays_as_the_same"],
    "runs.import_": [f"{HERE}::test_an_imported_run_replays_as_the_same"],
    "woodrat.openai.wrap": ["tests/adapters/test_openai.py::test_a_replay_is_answered_from_the_log"],
    "woodrat.langgraph.callback": ["tests/adapters/test_langgraph.py::test_a_replay_runs_the_graph_again_and_compares"],
    "woodrat.openai_agents.recorder": [
        "tests/adapters/test_openai_agents.py::test_a_replay_runs_the_agents_again_and_compares"
    ],
    "woodrat.pydantic_ai.capability": ["tests/adapters/test_pydantic_ai.py::test_a_replay_is_answered_from_the_log"],
    "run.executor": [f"{PATTERN}[pooled]"],
    "run.thread": [f"{PATTERN}[threaded]"],
    "woodrat.carry": [f"{PATTERN}[carried]"],
    "woodrat.carry_threads": [f"{PATTERN}[carried]"],
}
"""By way the tests that replay it."""

CALLED = re.compile(
    r"\b((?:\w+\.)+)(run|recorded|turn|wrap|aopen|open|resume|fork|continue_|import_|callback|recorder|capability"
    r"|executor|thread|carry|carry_threads)\(([^()]*(?:\([^()]*\)[^()]*)*\)\.start\(\))?"
)
OTHERS = {
    *("asyncio.run", "agent.run", "recorder.run", "log.import_", "interpretations.continue_", "woodrat.open"),
}
"""Calls of these names that make no run of a ledger by themselves."""


def ways_in(text: str) -> set[str]:
    """Return the ways to make a run that a text shows."""
    found = set()
    for match in CALLED.finditer(text):
        *_, owner = match[1].rstrip(".").split(".")
        way = f"{owner}.{match[2]}"
        if match[1].startswith("woodrat."):
            way = f"{match[1]}{match[2]}"
        elif match[2] in ("run", "recorded") and way not in OTHERS:
            way = f"ledger.{match[2]}"
        if way == "ledger.run" and match[3] is not None:
            way = "ledger.run.start"
        if way not in OTHERS:
            found.add(way)
    if re.search(r"\bopen\(f?\"https?://", text):
        found.add("woodrat.open of an address")
    return found


def test_every_documented_way_has_a_test_that_replays_it() -> None:
    """A page that shows a new way to make a run needs a row in `WAYS`; a row that no page shows is out of date."""
    shown = {page.name: ways_in(page.read_text("utf-8")) for page in [*SHOWN, *EXAMPLES]}
    without = {f"{page}: {way}" for page, ways in shown.items() for way in ways if way not in WAYS}
    assert without == set()
    assert set(WAYS) - set().union(*shown.values()) == set()


def test_a_new_way_is_found() -> None:
    """Ways are recognised in code and in running text, whatever the ledger is called."""
    text = (
        'with bank.run("?") as run: … `desk.run("a", inputs={}).start()`, woodrat.crewai.recorder(ledger), m.turn("?")'
    )
    assert ways_in(text) == {"ledger.run", "ledger.run.start", "woodrat.crewai.recorder", "m.turn"}


@pytest.mark.parametrize("test", sorted({test for tests in WAYS.values() for test in tests}))
def test_a_row_names_a_test_that_is_there(test: str) -> None:
    """The file has a test of that name, and the pattern is one of those that it runs."""
    file, _, name = test.partition("::")
    function, _, parameter = name.partition("[")
    assert f"def {function}(" in (ROOT / file).read_text("utf-8")
    assert not parameter or parameter.rstrip("]") in patterns.NAMES

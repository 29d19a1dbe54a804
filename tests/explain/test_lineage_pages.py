"""Pages of a lineage: together they are the whole, however they are asked for, and each costs what it shows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.test_reader import opened, store
from tests.explain.test_whole import chain, generated
from tests.runs.story import at, write

import woodrat
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.explain.lineage import LineageTree
from woodrat.explain.reader import lineage as lineage_reader
from woodrat.explain.reader import lineage_trees, searches
from woodrat.explain.reader.lineage import CUT_MAX, LineageSearch
from woodrat.ledger import entry_index
from woodrat.ledger.pages import make_cursor, read_cursor
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return opened(InMemoryEngine())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the entries of each run are read for trees."""
    counted: Counter[str] = Counter()
    entries = entry_index.run_entries

    def noted(view: Any, run: str, *rest: Any) -> Any:
        counted[run] += 1
        return entries(view, run, *rest)

    monkeypatch.setattr(lineage_trees, "entry_index", SimpleNamespace(run_entries=noted))
    return counted


def by_cursor(
    ledger: woodrat.Ledger, what: str, limit: int, depth: int | None = None, *, forget: bool
) -> Iterator[LineageTree]:
    """Yield all pages, each asked for by the cursor of the one before, as a process does that knows no more than it."""
    cursor = None
    while True:
        page = ledger.lineage(what, depth=depth, limit=limit, cursor=cursor)
        yield page
        cursor = page.cursor
        if cursor is None:
            return
        if forget:
            searches._SEARCHES.clear()


def together(pages: list[LineageTree]) -> list[Any]:
    """Return what pages say together."""
    assert all((page.run_count, page.left_out) == (None, None) for page in pages[:-1])
    parts = [[part for page in pages for part in getattr(page, name)] for name in ("nodes", "runs", "cycles")]
    return [*parts, pages[-1].run_count, pages[-1].left_out]


# The law: pages together are the whole


CHOSEN = {"stage": "s", "chosen": 1, "mode": "decide", "default": False, "facts": {"f": 1}}


def relay(ledger: woodrat.Ledger, seed: int) -> list[str]:
    """Write runs one after another, most of which lean on the last few; some go on late, some read what comes later."""
    chance = random.Random(seed)
    odd = chance.random() < 0.5  # whether runs overlap and entries lead forward in the log
    said = [store(ledger, number, amount=number) for number in range(2)]
    runs: list[str] = []
    decided: list[tuple[str, str]] = []

    def step(kind: str, run: str, **body: Any) -> str:
        steps[0] += 1
        span = f"{steps[0]:016x}"
        write(ledger, [(kind, {"run": run, "step": steps[0], "span": span, "started_at": at(0), "agent": "a", **body})])
        return span

    def tell(name: str, run: str, there: woodrat.Ledger) -> str:
        writer = opened(there.context.engine, agent="a")
        memo = {"entity_type": "memo", "id": name, "n": 1}
        return str(writer.store(memo, run=run, observed_at=at(0)).observations[0])

    steps = [0]
    names = [f"run_{letter * 26}" for letter in "abcdefghijklmnopqrstuvwxyz"[: chance.randint(6, 14)]]
    promised: dict[str, list[str]] = {name: [] for name in names}
    for number, run in enumerate(names):
        runs.append(run)
        step("run.started", run)
        if odd and chance.random() < 0.3:  # an import may have such a read: what it names is stored by a later run
            later = chance.choice(names[number:])
            elsewhere = opened(InMemoryEngine(), agent="a")
            begun: dict[str, Any] = {"run": later, "step": 0, "span": "0" * 16, "started_at": at(0), "agent": "a"}
            write(elsewhere, [("run.started", begun)])
            promised[later].append(f"late {number}")
            fields = {"n": {"observation": tell(f"late {number}", later, elsewhere), "value": 1}}
            step("run.read", run, entity="loan/1", position=0, fields=fields)
        for _ in range(chance.randint(1, 2)):
            act = chance.choice(["read", "read", "read", "cite", "recall"])
            actor = chance.choice(runs) if odd and chance.random() < 0.2 else run
            if act == "cite" and decided:
                other, span = chance.choice(decided[-2:])
                origin = {"kind": "decision", "run": other, "span": span}
                decided.append((actor, step("run.decided", actor, **CHOSEN, facts_origin={"f": origin})))
            elif act == "recall" and len(runs) > 1:
                recalled = [{"run": chance.choice(runs[-3:]), "score": 1.0, "passage": "asked", "at": 0}]
                recall = {"within": "recall", "args": {"question": "q"}, "recalled": recalled, "found": True}
                step("run.read", actor, position=0, fields={}, **recall)
            else:
                id = chance.choice(said[-2:] if chance.random() < 0.8 else said)
                fields = {"amount": {"observation": id, "value": 1}}
                step("run.read", actor, entity="loan/1", position=0, fields=fields)
            if actor != run:
                said.append(tell(f"more {steps[0]}", actor, ledger))
        if not decided or chance.random() < 0.3:
            named = {"kind": "read", "entity": "loan/1", "field": "n", "observations": said[-1:], "position": 0}
            decided.append((run, step("run.decided", run, **CHOSEN, facts_origin={"f": named})))
        said.extend(tell(name, run, ledger) for name in (*promised[run], str(number)))
    return runs


def check_pages(seed: int, make: Callable[[woodrat.Ledger, int], Any] = relay) -> None:
    """Fail where pages differ from the whole, for some lengths and depths."""
    ledger = opened(InMemoryEngine())
    runs: Any = make(ledger, seed)
    runs = list(runs) if make is relay else list(runs[1])
    for what in (runs[-1], f"{runs[-1]}#s", f"memo/{len(runs) - 1}#n"):
        for depth in (None, 2):
            try:
                whole = ledger.lineage(what, depth=depth, limit=1_000)
            except woodrat.NotFound:
                continue
            assert whole.cursor is None
            assert whole.run_count == len(whole.runs)
            for limit in (1, 3):
                for forget in (True, False):
                    pages = list(by_cursor(ledger, what, limit, depth, forget=forget))
                    assert together(pages) == together([whole]), (seed, what, depth, limit, forget)
                    # A page asked for again, when its search went further, says the same.
                    again = ledger.lineage(what, depth=depth, limit=limit, cursor=pages[0].cursor)
                    assert again == pages[min(1, len(pages) - 1)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_pages_together_are_the_whole(seed: int) -> None:
    """Whatever the length of a page, and whether or not the search is remembered, pages together are the whole."""
    check_pages(seed)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_pages_of_entangled_runs_are_the_whole(seed: int) -> None:
    """The same where runs lean on one another in any order of arrival, so that no search can be cut."""
    check_pages(seed, generated)


def test_generated_runs_try_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among generated runs there are cycles, searches that go on from cuts, and some that have to begin again."""
    seen: Counter[str] = Counter()

    def noted(name: str, method: Any) -> Any:
        def call(self: Any, *given: Any) -> Any:
            seen[f"{name} {self._is_resumed}"] += 1
            return method(self, *given)

        return call

    for name in ("_resume", "_go_back"):
        monkeypatch.setattr(LineageSearch, name, noted(name, getattr(LineageSearch, name)))
    for seed in range(12):
        check_pages(seed)
        ledger = opened(InMemoryEngine())
        seen["cycles"] += len(ledger.lineage(relay(ledger, seed)[-1], limit=1_000).cycles)
    assert min(seen[name] for name in ("_resume True", "_go_back True", "_go_back False", "cycles")) > 0, seen


def test_a_cut_in_the_wrong_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is cut wherever little is left, whatever was listed, lists runs again."""

    def careless(self: LineageSearch) -> None:
        self._earliest = lineage_reader._ANYWHERE
        cut(self)

    cut = LineageSearch._cut
    monkeypatch.setattr(LineageSearch, "_cut", careless)
    with pytest.raises(AssertionError):
        any(map(check_pages, range(40)))


# What a page costs


def test_a_page_reads_the_runs_it_shows(ledger: woodrat.Ledger, read: Counter[str]) -> None:
    """The first page, one in the middle and the last read their runs and the one behind, no others."""
    _, runs = chain(ledger, 40)
    pages: list[LineageTree] = []
    read.clear()
    for forget in (True, False):
        pages = []
        for page in by_cursor(ledger, runs[-1], 5, forget=forget):
            pages.append(page)
            assert sum(read.values()) <= 7, "the runs of the page, and those before and behind them"
            read.clear()
        assert [tree.id for page in pages for tree in page.runs] == runs[-2::-1]
    assert [page.run_count for page in pages] == [None] * (len(pages) - 1) + [39]


def test_runs_beside_one_another_are_remembered(ledger: woodrat.Ledger, read: Counter[str]) -> None:
    """Where too much is left for a cursor, a search that is remembered goes on, and one that is not begins again."""
    width = 3 * CUT_MAX
    for number in range(width):
        with ledger.run("Write") as run:
            run.store({"entity_type": "loan", "id": str(number), "amount": 1})
    with ledger.run("Join") as join:
        for number in range(width):
            join.show(f"loan/{number}")
    pages = list(by_cursor(ledger, str(join.id), width, forget=False))
    assert [len(page.runs) for page in pages] == [0, width]
    read.clear()
    pages = list(by_cursor(ledger, str(join.id), 4, forget=False))
    once = sum(read.values())
    read.clear()
    assert together(list(by_cursor(ledger, str(join.id), 4, forget=True))) == together(pages)
    assert sum(read.values()) > once


def test_all_pages_are_as_of_the_first(ledger: woodrat.Ledger) -> None:
    """What is written between two pages changes none of them."""
    _, runs = chain(ledger, 6)
    whole = ledger.lineage(runs[-1], limit=100)
    page = ledger.lineage(runs[-1], limit=2)
    listed = list(page.runs)
    while page.cursor is not None:
        searches._SEARCHES.clear()
        chain(ledger, 2)
        page = ledger.lineage(runs[-1], limit=2, cursor=page.cursor)
        assert page.position == whole.position
        listed += page.runs
    assert (listed, page.run_count) == (list(whole.runs), whole.run_count)


# Cursors


def cursor_at(ledger: woodrat.Ledger, what: str, place: Any) -> str:
    """Return a cursor that holds a place, whoever made it."""
    return make_cursor(form.serialise(["lineage", what, None]), [ledger.position, None, *place])


def test_altered_cursors_are_refused_or_harmless(ledger: woodrat.Ledger) -> None:
    """A place that no page returned is an error of the request, or leads to runs of this log alone."""
    _, runs = chain(ledger, 6)
    cursor = ledger.lineage(runs[-1], limit=2).cursor
    _, _, item, cut = read_cursor(cursor, form.serialise(["lineage", runs[-1], None]), []) or [None] * 4
    assert (item, cut[0]) == (2, 1)
    assert ledger.lineage(runs[-1], cursor=cursor_at(ledger, runs[-1], [item, cut])).runs[0].id == runs[-3]
    wanted = cut[3][0]
    for wrong in (
        [1],
        [-1, 0, [], [wanted], []],
        [1, True, [], [wanted], []],
        [1, 1, [], [], []],
        [1, 1, [], [[*wanted, None]], []],
        [1, 1, [], [[5, *wanted[1:]]], []],
        [1, 1, [], [[*wanted[:2], "1", *wanted[3:]]], []],
        [1, 1, [], [wanted] * (CUT_MAX + 1), []],
        [1, 1, 7, [wanted], []],
    ):
        with pytest.raises(woodrat.Refused, match="not the cursor of this list"):
            ledger.lineage(runs[-1], cursor=cursor_at(ledger, runs[-1], [item, wrong]))
    for wrong_place in ([], [item], [str(item), cut], [item, None]):
        with pytest.raises(woodrat.Refused, match="not the cursor of this list"):
            ledger.lineage(runs[-1], cursor=cursor_at(ledger, runs[-1], wrong_place))
    for strange in ("run_" + "z" * 26, "", "loan/1", runs[0]):
        forged = [1, 1, [], [[strange, "x", 3, None, None], [strange, "x", 3, "s", None]], []]
        page = ledger.lineage(runs[-1], cursor=cursor_at(ledger, runs[-1], [item, forged]))
        assert {tree.id for tree in page.runs} <= set(runs)
        searches._SEARCHES.clear()
    assert not ledger.lineage(runs[-1], cursor=cursor_at(ledger, runs[-1], [10**15, []])).runs
    behind = ledger.lineage(runs[-1], cursor=cursor_at(ledger, runs[-1], [item, [10**9, *cut[1:]]]))
    assert behind.runs[0].id == runs[-3], "a cut behind the page is of no use for it"


def test_a_search_is_made_once_for_all_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that a cursor leads to are those of one search, until something is erased."""
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "a.db", agent="loan-officer", keys=tmp_path / "keys") as ledger:
        _, runs = chain(ledger, 8)
        ledger.store({"entity_type": "person", "id": "1", "name": "Ann"})
        made: list[object] = []
        begin = LineageSearch.__init__

        def counted(self: LineageSearch, *given: Any) -> None:
            made.append(given)
            begin(self, *given)

        monkeypatch.setattr(LineageSearch, "__init__", counted)
        whole = ledger.lineage(runs[-1])
        made.clear()
        pages = list(by_cursor(ledger, runs[-1], 2, forget=False))
        assert (len(made), together(pages)) == (1, together([whole]))
        ledger.erase("person/1", reason="asked to")
        assert ledger.lineage(runs[-1], limit=2, cursor=pages[1].cursor).runs == pages[2].runs
        assert len(made) == 2
        ledger.erase("loan/3", reason="asked to")
        rest = list(by_cursor(ledger, runs[-1], 2, forget=True))
        assert together(rest) == together([ledger.lineage(runs[-1])])

"""The stale watcher: writers hand over and go on; everything is reported once, in order, within bounds, to the end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from tests.explain.test_reader import counted, decide, engine, ledger, opened, store
from tests.explain.test_workers import Told, correct

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Unavailable
from woodrat.explain.stale import Stale
from woodrat.explain.workers import search, watcher
from woodrat.explain.workers.watcher import StaleWatcher

__all__ = ["engine", "ledger"]  # fixtures


class Slow:
    """A function that waits to be let go when it is told something, and what it was told, call by call."""

    def __init__(self, ledger: woodrat.Ledger) -> None:
        self.calls: list[list[tuple[str, Any]]] = []
        self.is_inside, self.may_go = threading.Event(), threading.Event()
        self.subscription = ledger.on_stale(self)

    def __call__(self, decisions: tuple[Stale, ...]) -> None:
        self.calls.append([(one.run, one.now.chosen) for one in decisions])
        self.is_inside.set()
        assert self.may_go.wait(60)

    def let_go(self) -> list[list[tuple[str, Any]]]:
        """Let it go for good; return what it was told."""
        self.may_go.set()
        self.subscription.close()
        return self.calls


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[woodrat.Ledger, woodrat.Ledger]]:
    """Two ledgers on one file, as two processes have them: each hears of its own writes alone."""
    path = str(tmp_path / "one.db")
    with woodrat.open(path) as one, woodrat.open(path, agent="other") as other:
        yield one, other


def watchers_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "woodrat-stale"]


def test_a_slow_function_holds_up_no_writer(ledger: woodrat.Ledger) -> None:
    """Writes return while the function is at work; it is then told of them, those in succession together."""
    store(ledger, creditScore=580)
    store(ledger, 43, creditScore=580)
    first, second = decide(ledger), decide(ledger, 43)
    slow = Slow(ledger)
    correct(ledger, 640)
    assert slow.is_inside.wait(60)
    for score in (590, 640, 610, 640, 590, 610):
        correct(ledger, score)
    correct(ledger, 640, 43)
    assert slow.calls == [[(first, "approved")]]
    assert slow.let_go() == [[(first, "approved")], [(first, "manual-review"), (second, "approved")]]


def test_what_was_undone_meanwhile_is_not_told(ledger: woodrat.Ledger) -> None:
    """Of writes that are reported together only what they come to counts."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    slow = Slow(ledger)
    correct(ledger, 640)
    assert slow.is_inside.wait(60)
    correct(ledger, 610)
    correct(ledger, 640)
    assert slow.let_go() == [[(run, "approved")]]


def test_what_others_write_in_between_is_not_told(files: tuple[woodrat.Ledger, woodrat.Ledger]) -> None:
    """Only writes of this process are reported, however those of others lie between them."""
    ledger, other = files
    for number in range(1, 7):
        store(ledger, number, creditScore=580)
    runs = {number: decide(ledger, number) for number in range(1, 7)}
    told = Told(ledger)
    slow = Slow(ledger)
    correct(ledger, 640, 1)
    assert slow.is_inside.wait(60)
    for number in (3, 5):
        correct(other, 640, number - 1)
        correct(ledger, 640, number)
    assert slow.let_go() == [[(runs[number], "approved")] for number in (1, 3, 5)]
    assert told.take() == [(runs[number], "approved") for number in (1, 3, 5)]


def test_the_queue_is_bounded_and_loses_nothing(
    files: tuple[woodrat.Ledger, woodrat.Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond its bound the last range grows: what others wrote in between is told too, each decision once."""
    monkeypatch.setattr(watcher, "WAITING_MAX", 2)
    ledger, other = files
    for number in range(1, 9):
        store(ledger, number, creditScore=580)
    runs = {number: decide(ledger, number) for number in range(1, 9)}
    slow = Slow(ledger)
    correct(ledger, 640, 1)
    assert slow.is_inside.wait(60)
    for number in (3, 5, 7):
        correct(other, 640, number - 1)
        correct(ledger, 640, number)
    (made,) = watcher._WATCHERS[ledger.context.engine].values()
    assert len(made._waiting) == 2
    # A write that came late and that the range took in already is not reported again.
    made.wrote(ledger.context, made._waiting[-1].first, made._waiting[-1].first)
    assert slow.let_go() == [[(runs[number], "approved") for number in told] for told in ([1], [3], [5, 6, 7])]


def test_writes_are_reported_in_the_order_of_the_log(ledger: woodrat.Ledger) -> None:
    """Threads may hand over in another order than they wrote in; what is told last is what is so."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    made, told = StaleWatcher(), []
    subscription = made.add(lambda decisions: told.append([(one.run, one.now.chosen) for one in decisions]))
    places = []
    for score in (640, 610):
        correct(ledger, score)
        places.append(ledger.position)
    for place in reversed(places):
        made.wrote(ledger.context, place, place)
    assert subscription.flush()
    assert told == [[(run, "manual-review")]]
    told.clear()
    for score in (640, 615):
        correct(ledger, score)
        places.append(ledger.position)
    for place in reversed(places[2:]):  # the earlier one is late: the later one was reported already
        made.wrote(ledger.context, place, place)
        assert subscription.flush()
    assert told == [[(run, "manual-review")]]
    made.stop()


def test_a_subscription_is_told_of_later_writes_alone(ledger: woodrat.Ledger) -> None:
    """Who subscribes while earlier writes wait is not told of those."""
    for number in (42, 43, 44):
        store(ledger, number, creditScore=580)
    runs = [decide(ledger, number) for number in (42, 43, 44)]
    slow = Slow(ledger)
    correct(ledger, 640)
    assert slow.is_inside.wait(60)
    correct(ledger, 640, 43)
    told = Told(ledger)
    correct(ledger, 640, 44)
    assert slow.let_go() == [[(run, "approved")] for run in runs]
    assert told.take() == [(runs[2], "approved")]


def test_a_field_that_no_rule_names_costs_nothing(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many decisions depend on an entity, a write to another field of it reads none of them."""
    store(ledger, creditScore=580, note="x")
    for _ in range(40):
        decide(ledger)
    told = Told(ledger)
    read = counted(ledger.context.engine, monkeypatch)
    for number in range(5):
        store(ledger, note=f"y{number}")
    assert told.take() == []
    assert read() < 20


def test_many_decisions_are_told_in_parts(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function is told of a bounded number of decisions at a time, in order."""
    monkeypatch.setattr(watcher, "PART_MAX", 3)
    store(ledger, creditScore=580)
    runs = [decide(ledger) for _ in range(8)]
    told = Told(ledger)
    correct(ledger, 640)
    assert told.subscription.flush()
    assert [len(call) for call in told.calls] == [3, 3, 2]
    assert told.take() == [(run, "approved") for run in runs]


def test_a_long_range_is_taken_in_whole_writes(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is looked at some writes at a time, and no write is looked at in part."""
    monkeypatch.setattr(watcher, "RANGE_ENTRIES", 3)
    numbers = range(1, 9)
    for number in numbers:
        store(ledger, number, creditScore=580)
    runs = [decide(ledger, number) for number in numbers]
    slow = Slow(ledger)
    correct(ledger, 640, 1)
    assert slow.is_inside.wait(60)
    for several in ((2, 3), (4, 5), (6,), (7, 8)):
        ledger.store([{"entity_type": "loan", "id": str(number), "creditScore": 640} for number in several])
    calls = [[1], [2, 3, 4, 5], [6, 7, 8]]
    assert slow.let_go() == [[(runs[number - 1], "approved") for number in call] for call in calls]


def test_what_cannot_be_worked_out_is_a_problem(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the search fails, the subscription says so, with the positions; later writes are reported."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    told = Told(ledger)

    def fail(self: object) -> list[int]:
        raise Unavailable("the disk is gone")

    def correct_in_vain() -> None:
        correct(ledger, 640)
        assert told.take() == []

    with monkeypatch.context() as patch:
        patch.setattr(search.StaleSearch, "candidates", fail)
        with pytest.warns(woodrat.StaleWarning, match=r"The entries (\d+) to \1 stand; .*: Unavailable: the disk"):
            correct_in_vain()
    assert [type(problem) for problem in told.subscription.problems] == [Unavailable]
    correct(ledger, 610)
    assert told.take() == [(run, "manual-review")]


def test_a_function_that_exits_ends_nothing(ledger: woodrat.Ledger) -> None:
    """An exit inside the function is a problem of it; the next write is reported."""
    store(ledger, creditScore=580)
    decide(ledger)

    def leave(decisions: tuple[Stale, ...]) -> None:
        raise SystemExit(3)

    subscription = ledger.on_stale(leave)

    def correct_twice() -> None:
        for score in (640, 610):
            correct(ledger, score)
            assert subscription.flush()

    with pytest.warns(woodrat.StaleWarning, match="SystemExit: 3"):
        correct_twice()
    assert [type(problem) for problem in subscription.problems] == [SystemExit] * 2


def test_a_function_may_close(ledger: woodrat.Ledger) -> None:
    """A function may close its subscription, and does not wait for itself; `flush` inside of it says no."""
    store(ledger, creditScore=580)
    decide(ledger)
    answers: list[object] = []

    def once(decisions: tuple[Stale, ...]) -> None:
        answers.append(subscription.flush())
        subscription.close()

    subscription = ledger.on_stale(once)
    correct(ledger, 640)
    correct(ledger, 610)
    other = Told(ledger)
    correct(ledger, 640)
    assert len(other.take()) == 1
    assert subscription.closed
    assert answers == [False]


def test_closing_a_ledger_reports_the_rest(tmp_path: Path) -> None:
    """What was written is reported before the ledger is closed, and the thread is gone then."""
    before = watchers_threads()
    calls: list[tuple[Stale, ...]] = []
    with woodrat.open(str(tmp_path / "one.db")) as ledger:
        store(ledger, creditScore=580)
        decide(ledger)
        subscription = ledger.on_stale(calls.append)
        correct(ledger, 640)
    assert [len(call) for call in calls] == [1]
    assert subscription.closed
    assert subscription.problems == []
    assert set(watchers_threads()) <= set(before)


def test_the_thread_ends_when_idle_and_comes_back(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that nobody writes to has no thread; the next write starts one."""
    before = watchers_threads()
    monkeypatch.setattr(watcher, "IDLE_SECONDS", 0.0)
    store(ledger, creditScore=580)
    run = decide(ledger)
    told = Told(ledger)
    for score, chosen in ((640, "approved"), (610, "manual-review")):
        correct(ledger, score)
        assert told.take() == [(run, chosen)]
        for thread in set(watchers_threads()) - set(before):
            thread.join(60)
        assert set(watchers_threads()) <= set(before)


def test_without_threads_the_writer_does_the_work(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that can start no thread, writes are reported before they return."""

    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store(ledger, creditScore=580)
    run = decide(ledger)
    monkeypatch.setattr(threading.Thread, "start", fail)
    told = Told(ledger)
    correct(ledger, 640)
    assert [[one.run for one in call] for call in told.calls] == [[run]]


def test_a_watcher_does_not_keep_an_engine_alive() -> None:
    """Once everything is reported, nothing holds on to the engine."""
    ledger = opened(InMemoryEngine())
    store(ledger, creditScore=580)
    decide(ledger)
    told = Told(ledger)
    correct(ledger, 640)
    assert len(told.take()) == 1
    gone = ref(ledger.context.engine)
    thread = next(iter(watcher._WATCHERS[ledger.context.engine].values()))._thread
    del ledger
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        assert thread is not None
        thread.join(0.1)  # it may be about to put down what it worked with
    assert gone() is None


SCRIPT = """
import sys, woodrat
from woodrat.runs.rules import Rule
ledger = woodrat.open(sys.argv[1])
ledger.store({"entity_type": "loan", "id": "1", "score": 580})
with ledger.run("Approve?") as run:
    run.decide("risk", run.show("loan/1"), [Rule("rejected", {"score": {"lt": 600}})], default="approved")
ledger.on_stale(lambda decisions: print([one.now.chosen for one in decisions], flush=True))
ledger.correct("loan/1", {"score": 700}, reason="mixed up")
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)"])
def test_a_script_that_ends_after_a_write_still_reports(tmp_path: Path, end: str) -> None:
    """A process that writes and ends, without closing anything, has told its functions by then."""
    command = [sys.executable, "-c", SCRIPT + end, str(tmp_path / "one.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "['approved']\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_reports_its_own_writes() -> None:
    """A child has a thread of its own for what it writes, and leaves to its parent what the parent wrote."""
    ledger = opened(InMemoryEngine())
    for number in (1, 2):
        store(ledger, number, creditScore=580)
    runs = [decide(ledger, number) for number in (1, 2)]
    slow = Slow(ledger)
    correct(ledger, 640, 1)
    assert slow.is_inside.wait(60)
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            slow.calls.clear()
            slow.may_go = threading.Event()
            slow.may_go.set()
            watcher._finish()  # nothing of the parent's is waited for
            correct(ledger, 640, 2)
            watcher._finish()
            code = 0 if slow.calls == [[(runs[1], "approved")]] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert slow.let_go() == [[(runs[0], "approved")]]

"""Recorded runs are replayed by several processes: the same answers in the same order, whatever becomes of one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.replay import replayable

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.errors import NotFound, Refused
from woodrat.replay.result import Replayed
from woodrat.replay.workers import processes as replay_workers

RUNS = 12


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with some recorded runs."""
    path = tmp_path_factory.mktemp("spread") / "one.db"
    with woodrat.open(path, agent="loan-officer") as ledger:
        for number in range(RUNS):
            replayable.record(ledger, number)
    return path


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """The ledger of that file."""
    with woodrat.open(path, agent="loan-officer", readonly=True) as found:
        yield found


def ids(ledger: Ledger) -> list[str]:
    """Return the recorded runs, the first recorded first."""
    return [record.id for record in ledger.runs.list(limit=100).items][::-1]


def kinds(found: Replayed) -> list[str]:
    """Return the kind of the first divergence of each run."""
    return ["same" if run.divergence is None else run.divergence.kind for run in found.runs]


def test_several_processes_answer_as_one(ledger: Ledger) -> None:
    """Unchanged code is the same, changed code differs in the same runs by the same rule, in the order of the runs."""
    told: list[tuple[int, int]] = []
    same = ledger.runs.replay(ids(ledger), replayable.approve, jobs=2, progress=lambda *done: told.append(done))
    assert same.counts == {"runs": RUNS, "same": RUNS}
    assert same == ledger.runs.replay(ids(ledger), replayable.approve)
    assert told == [(done, RUNS) for done in range(RUNS + 1)]
    changed = ledger.runs.replay(ids(ledger), replayable.approve_620, jobs=2)
    assert changed == ledger.runs.replay(ids(ledger), replayable.approve_620)
    assert [run.subject for run in changed.differing] == ["loan/2", "loan/3"]
    assert "was creditScore lt 600 and is creditScore lt 620" in str(changed.differing[0])
    asked = ledger.runs.replay(ids(ledger)[:1], replayable.asks, jobs=1).runs[0].divergence
    assert str(asked) == 'tool bureau: not in the recording with {"number":0}'


def test_a_process_that_dies_is_told_of_its_run(ledger: Ledger, capfd: pytest.CaptureFixture[str]) -> None:
    """A run that ends its process, by itself or by a signal, is told of; the others go on, and prints stay apart."""
    found = ledger.runs.replay(ids(ledger), replayable.dies, jobs=2)
    wanted = ["same"] * RUNS
    wanted[1] = wanted[4] = "died"
    wanted[6] = "raised"
    assert kinds(found) == wanted
    assert str(found.runs[1].divergence) == "agent: its process ended before the run did (exit code 3)"
    if os.name == "posix":
        assert str(found.runs[4].divergence) == "agent: its process ended before the run did (SIGSEGV)"
    assert "ValueError: seven" in str(found.runs[6].divergence)
    assert (found.runs[1].subject, found.runs[1].query) == ("loan/1", "Approve #1?")
    assert not found.runs[1].interrupted
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "looking at 0" in printed.err
    assert found.summary() == "9 of 12 runs are the same; 3 differ (1 raised, 2 died)."


def test_a_run_that_takes_too_long_is_ended(ledger: Ledger) -> None:
    """A loop that takes no steps is ended after the time a run may take; the others go on."""
    found = ledger.runs.replay(ids(ledger)[:4], replayable.loops, timeout_seconds=2)
    assert kinds(found) == ["same", "same", "timeout", "same"]
    assert str(found.runs[2].divergence) == "agent: not done after 2 seconds, and ended"
    assert found.runs[2].to_json()["divergence"]["kind"] == "timeout"


def test_an_interrupted_replay_leaves_no_process(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends a replay ends its processes, also those in the middle of a run."""
    started: list[Any] = []
    begin = replay_workers.Child.begin

    def noted(self: Any, plan: Any) -> None:
        started.append(self._process)
        begin(self, plan)

    monkeypatch.setattr(replay_workers.Child, "begin", noted)

    def interrupt(done: int, whole: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.runs.replay(ids(ledger)[:4], replayable.loops, jobs=2, progress=interrupt)
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_async_agents_are_spread_too(path: Path) -> None:
    """An async ledger gives async functions async runs in other processes as well."""

    async def main() -> Replayed:
        async with await woodrat.aopen(path, agent="loan-officer", readonly=True) as ledger:
            found: Replayed = await ledger.runs.replay(ids(ledger.target)[:3], replayable.approve_soon, jobs=2)
            return found

    assert asyncio.run(main()).same


def test_what_cannot_be_spread_is_refused(ledger: Ledger) -> None:
    """Functions without a name, ledgers in memory, own policies and odd numbers are refused, all of it at once."""
    runs = ids(ledger)
    with pytest.raises(Refused, match="other processes cannot import this function"):
        ledger.runs.replay(runs, lambda run: None, jobs=2)
    with pytest.raises(Refused, match="other processes cannot import this function"):
        ledger.runs.replay(runs, replayable.Officer().approve, jobs=2)
    with pytest.raises(Refused, match=r"in memory(.|\n)*cannot import"):
        woodrat.open(":memory:").runs.replay([], lambda run: None, jobs=2)
    with pytest.raises(Refused, match=r"jobs: got 0(.|\n)*timeout_seconds: got -1"):
        ledger.runs.replay(runs, replayable.approve, jobs=0, timeout_seconds=-1)
    with pytest.raises(Refused, match="timeout_seconds: got inf"):
        ledger.runs.replay(runs, replayable.approve, timeout_seconds=float("inf"))
    with pytest.raises(NotFound):
        ledger.runs.replay("run_nothing", replayable.approve, jobs=2)
    assert ledger.runs.replay([], replayable.approve, jobs=2).runs == ()


def test_a_module_that_other_processes_cannot_import_is_told(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that fails to be imported over there is an error with what it raised, and nothing hangs."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text, said in (
        ("vanishing_raises", "import os\nif os.environ.get('CHILD'): raise ValueError('no')\n", "ValueError: no"),
        ("vanishing_exits", "import os\nif os.environ.get('CHILD'): os._exit(4)\n", "exit code 4"),
    ):
        (tmp_path / f"{name}.py").write_text(f"{text}def approve(run): pass\n")
        module = __import__(name)
        monkeypatch.setenv("CHILD", "1")
        with pytest.raises(Refused, match=said):
            ledger.runs.replay(ids(ledger), module.approve, jobs=2)
        monkeypatch.delenv("CHILD")

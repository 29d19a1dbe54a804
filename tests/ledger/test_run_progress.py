"""A run that is sent step by step costs the same a step, and no step is taken twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat import Ledger, Refused
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import entry_index, run_progress
from woodrat.proofs.verbs import keys
from woodrat.runs.relay import Relay
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

RUN = "run_" + "a" * 26


def noted(number: int, **further: Any) -> dict[str, Any]:
    """Return a step as a recorder elsewhere sends it."""
    about = {"run": RUN, "step": number, "span": f"{number:016x}", "started_at": "2026-01-05T09:00:00Z"}
    return {"kind": "run.noted", "text": f"step {number}", **about, **further}


def started(**further: Any) -> dict[str, Any]:
    return {**noted(0), "kind": "run.started", "query": "?", "agent": "a", **further}


def steps(engine: Engine) -> list[str]:
    """Return the kinds of the entries of the run."""
    with engine.view(TenantId("t")) as view:
        return [entry.kind for entry in entry_index.run_entries(view, RUN, view.head().position)]


@pytest.fixture
def engine() -> Iterator[Engine]:
    found: Engine = InMemoryEngine()
    yield found
    found.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries of runs were read at a time."""
    found: list[int] = []
    run_entries = entry_index.run_entries

    def counting(*given: Any) -> Any:
        entries = run_entries(*given)
        found.append(len(entries))
        return entries

    monkeypatch.setattr(entry_index, "run_entries", counting)
    return found


def test_a_step_reads_what_came_since_the_last(engine: Engine, read: list[int]) -> None:
    """Sixty steps, sent one by one, are each read once, the first also for lists; a long run costs a step no more."""
    ledger = ledger_on(engine)
    ledger.runs.import_([started()])
    for number in range(1, 60):
        ledger.runs.import_([noted(number)])
    assert sum(read) == 60
    ledger.runs.import_([noted(30)])
    assert len(steps(engine)) == 60


def test_a_step_that_was_undone_can_be_sent_again(engine: Engine) -> None:
    """Steps that shared a commit which failed are not taken for known."""
    ledger = ledger_on(engine)
    ledger.runs.import_([started()])

    def undone() -> None:
        with engine.together():
            ledger.runs.import_([noted(1)])
            ledger.runs.import_([noted(2)])  # it has read the one before, which will never have been
            raise KeyError

    with pytest.raises(KeyError):
        undone()
    ledger.store([{"entity_type": "thing", "id": str(number)} for number in range(4)])  # where they would have stood
    for number in (1, 2, 7):
        ledger.runs.import_([noted(number)])
    assert steps(engine) == ["run.started", *["run.noted"] * 3]


def test_what_another_engine_wrote_is_seen(tmp_path: Path) -> None:
    """Two processes that take steps of one run take each of them once."""
    engines = [SqliteEngine(tmp_path / "shared.db") for _ in range(2)]
    one, other = (ledger_on(engine) for engine in engines)
    one.runs.import_([started()])
    for number in range(1, 9):
        one.runs.import_([noted(number)])
        other.runs.import_([noted(number)])
        other.runs.import_([noted(number + 100)])
    one.runs.import_([noted(104), noted(4)])
    assert len(steps(engines[0])) == 17
    for engine in engines:
        engine.close()


def test_what_was_erased_is_not_taken_for_known(tmp_path: Path) -> None:
    """A step that was erased since is refused when it is sent again, however often the run was read before."""
    keys.make(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "erased.db", agent="a", keys=tmp_path / "keys") as ledger:
        assert isinstance(ledger, Ledger)
        ledger.store({"entity_type": "contact", "name": "Ana"})
        said = [started(subject="contact/Ana"), noted(1)]
        ledger.runs.import_(said)
        ledger.runs.import_([noted(2)])
        ledger.erase(subject="contact/Ana", reason="asked")
        with pytest.raises(Refused, match="erased"):
            ledger.runs.import_([noted(1)])


def test_only_so_much_is_at_hand(engine: Engine, read: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a bound the runs used least recently are read anew, and answered the same."""
    monkeypatch.setattr(run_progress, "ENTRIES_MAX", 5)
    ledger = ledger_on(engine)
    names = [f"run_{letter * 26}" for letter in "abc"]
    for number in range(4):
        for name in names:
            ledger.runs.import_([noted(number, run=name)])
            ledger.runs.import_([noted(number, run=name)])
    with engine.view(TenantId("t")) as view:
        assert [len(entry_index.run_entries(view, name, view.head().position)) for name in names] == [4, 4, 4]


def test_whose_run_it_is_is_known_without_reading_it_again(engine: Engine, read: list[int]) -> None:
    """Live entries and writes that name their run ask for its owner, and no step of it is read again for that."""
    ledger, relay = ledger_on(engine), Relay()
    ledger.runs.import_([started()])
    for number in range(1, 40):
        relay.entries(ledger.context, RUN, [noted(number)])
        ledger.store({"entity_type": "loan", "id": str(number)}, run=RUN, step=number)
    assert sum(read) == 41

"""The garbage collector is held off as long as one batch takes, and no longer."""

from __future__ import annotations

import gc
import os
import threading

import pytest

import woodrat
from woodrat.ledger import collector
from woodrat.ledger.collector import BATCH_MAX, BATCH_MIN, held_off


def test_a_batch_holds_it_off() -> None:
    """It is off while the batch is written and on again after it, also after one that fails."""
    with held_off(BATCH_MIN):
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="wrong"), held_off(BATCH_MAX):
        raise ValueError("wrong")
    assert gc.isenabled()


@pytest.mark.parametrize("count", [1, BATCH_MIN - 1, BATCH_MAX + 1])
def test_other_writes_leave_it_alone(count: int) -> None:
    """A write of few records gains nothing, and one of very many would keep it from others for too long."""
    with held_off(count):
        assert gc.isenabled()


def test_only_one_batch_at_a_time_holds_it_off() -> None:
    """A batch inside another, or in another thread, changes nothing; it is on again once the first one is done."""
    inside: list[bool] = []

    def write() -> None:
        with held_off(BATCH_MIN):
            inside.append(gc.isenabled())

    with held_off(BATCH_MIN):
        write()
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert inside == [False, False]
        assert not gc.isenabled(), "the others did not end what they had not begun"
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    """Whoever turned it off finds it off."""
    gc.disable()
    try:
        with held_off(BATCH_MIN):
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_collects() -> None:
    """A process that is forked during a batch has a collector of its own, which nobody would turn on again."""
    with held_off(BATCH_MIN):
        child = os.fork()
        if child == 0:
            good = gc.isenabled() and not collector._turn.locked()
            os._exit(0 if good else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_it_is_off_while_a_batch_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is stored is written with the collector off, a single record with it on."""
    ledger = woodrat.open(":memory:", agent="a")
    states: list[bool] = []
    monkeypatch.setattr("woodrat.ledger.transitions.advance", _noting(states))
    ledger.store([{"entity_type": "thing", "id": str(number)} for number in range(BATCH_MIN)])
    ledger.store({"entity_type": "thing", "id": "one more"})
    assert states == [False, True]
    assert gc.isenabled()


def _noting(states: list[bool]) -> object:
    from woodrat.ledger import transitions

    advance = transitions.advance

    def noted(*arguments: object, **given: object) -> object:
        states.append(gc.isenabled())
        return advance(*arguments, **given)  # type: ignore[arg-type]

    return noted


def test_something_long_gives_the_collector_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is off between the parts of something long, collects after some of them, and is on again afterwards."""
    turns: list[bool] = []
    monkeypatch.setattr(collector, "TURN_EVERY", 2)
    monkeypatch.setattr(gc, "collect", lambda: turns.append(gc.isenabled()))
    with collector.held_off_long() as part_is_done:
        for _ in range(5):
            assert not gc.isenabled()
            part_is_done()
    assert gc.isenabled()
    assert turns == [False, False]

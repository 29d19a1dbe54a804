"""Being told of decisions as they become stale: exactly those, once, after the write, whoever wrote it."""

from __future__ import annotations

import asyncio
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.test_reader import RULES, counted, decide, engine, ledger, opened, store

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.explain.stale import Stale
from woodrat.explain.workers import follower
from woodrat.runs.rules import Rule

__all__ = ["engine", "ledger"]  # fixtures


class Told:
    """A subscription, and what it was told, call by call."""

    def __init__(self, ledger: woodrat.Ledger | woodrat.AsyncLedger) -> None:
        self.calls: list[tuple[Stale, ...]] = []
        self.subscription = ledger.on_stale(self.calls.append)

    def take(self) -> list[tuple[str, Any]]:
        """Return the runs told of since the last time, with what would be decided now."""
        assert self.subscription.closed or self.subscription.flush()
        found = [(one.run, one.now.chosen) for call in self.calls for one in call]
        self.calls.clear()
        return found


def correct(ledger: woodrat.Ledger, score: int, number: int = 42) -> None:
    """Correct a credit score."""
    ledger.correct(f"loan/{number}", {"creditScore": score}, reason="mixed up")


def corrected(ledger: woodrat.Ledger, score: int, subscription: woodrat.Subscription) -> None:
    """Correct a credit score, and wait until that is reported."""
    correct(ledger, score)
    assert subscription.flush()


def test_a_correction_tells_of_what_it_makes_stale(ledger: woodrat.Ledger) -> None:
    """Each correction tells of the decisions it makes stale, and of none that were so already or no longer are."""
    store(ledger, creditScore=580)
    store(ledger, 43, creditScore=580)
    first, _ = decide(ledger), decide(ledger, 43)
    told = Told(ledger)
    with told.subscription as subscription:
        correct(ledger, 640)
        assert told.take() == [(first, "approved")]
        correct(ledger, 640)
        correct(ledger, 650)  # approved as before
        store(ledger, 44, creditScore=1)
        assert told.take() == []
        correct(ledger, 610)
        assert told.take() == [(first, "manual-review")]
        correct(ledger, 580)  # back to what was believed
        assert told.take() == []
        assert ledger.stale().items == ()
        correct(ledger, 640)
        assert told.take() == [(first, "approved")]
        assert not subscription.closed
    assert subscription.closed
    correct(ledger, 590)
    correct(ledger, 640)
    assert told.take() == []


def test_retraction_deletion_and_joining_tell_too(ledger: woodrat.Ledger) -> None:
    """Whatever changes belief tells: a retraction, a delete, a word about another entity that is the same."""
    said = store(ledger, creditScore=580)
    run = decide(ledger)
    told = Told(ledger)
    ledger.retract(said, reason="wrong")
    assert told.take() == [(run, None)]  # unknown: there is no score
    store(ledger, creditScore=500, note="x")
    assert told.take() == []  # rejected, as it was decided
    ledger.store({"entity_type": "loan", "id": "other", "creditScore": 700}, observed_at="2026-01-06T09:00:00Z")
    assert told.take() == []
    ledger.merge("loan/42", "loan/other")
    assert told.take() == [(run, "approved")]
    ledger.correct("loan/other", {"creditScore": 610}, reason="mixed up")
    assert told.take() == [(run, "manual-review")]
    ledger.correct("loan/other", {"creditScore": 510}, reason="mixed up")
    ledger.delete("loan/other")
    ledger.delete("loan/42")
    assert told.take() == [(run, None)]


def test_another_schema_tells_too(ledger: woodrat.Ledger) -> None:
    """A schema by which fields merge otherwise changes belief, and what leaned on it is told of."""
    store(ledger, creditScore=700)
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580}, observed_at="2026-01-06T09:00:00Z")
    run = decide(ledger)
    told = Told(ledger)
    highest = {"type": "object", "properties": {"creditScore": {"type": "integer", "x-woodrat-merge": "max"}}}
    ledger.schemas.register({**highest, "x-woodrat-identity": [["id"]]}, entity_type="loan")
    assert told.take() == [(run, "approved")]


def test_a_decision_can_be_born_stale(ledger: woodrat.Ledger) -> None:
    """A decision on what was read before a correction, and written after it, is told of when it is written."""
    store(ledger, creditScore=580)
    told = Told(ledger)
    with ledger.run("Approve?", subject="loan/42") as run:
        seen = run.show("loan/42")
        correct(ledger, 640)
        assert told.take() == []
        run.decide("classify-risk", seen, RULES)
        assert told.take() == [(run.id, "approved")]
    assert told.take() == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("cds"), st.integers(1, 3), st.sampled_from([580, 610, 640])), max_size=14))
def test_what_was_told_is_what_is_stale(acts: list[tuple[str, int, int]]) -> None:
    """Whoever keeps what he was told knows of every stale decision what it would come to now, and of no wrong one."""
    ledger = opened(InMemoryEngine())
    known: dict[int, Any] = {}
    subscription = ledger.on_stale(lambda found: known.update((one.decision.position, one.now.chosen) for one in found))
    for number in (1, 2, 3):
        store(ledger, number, creditScore=580)
    for act, number, score in acts:
        if act == "c":
            correct(ledger, score, number)
        elif act == "s":
            ledger.store({"entity_type": "loan", "id": str(number), "creditScore": score, "note": len(known)})
        else:
            decide(ledger, number)
    subscription.close()
    for one in ledger.stale(limit=100).items:
        assert known[one.decision.position] == one.now.chosen


def test_only_what_leans_on_it_is_looked_at(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a correction costs to tell of does not grow with the decisions on other entities."""
    for number in range(40, 80):
        store(ledger, number, creditScore=580)
        decide(ledger, number)
    ledger.why("loan/42")  # the index has caught up
    told = Told(ledger)
    read = counted(ledger.context.engine, monkeypatch)
    correct(ledger, 640)
    assert len(told.take()) == 1
    assert read() < 40, "a write tells of what it finds, and reads no more"


def test_nothing_is_told_of_what_was_not_written(ledger: woodrat.Ledger) -> None:
    """A dry run, a refused write, a repeated one and a replay tell of nothing; the agent does not matter."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    told = Told(ledger)
    ledger.correct("loan/42", {"creditScore": 640}, reason="x", dry_run=True)
    with pytest.raises(woodrat.Refused):
        ledger.correct("loan/42", {}, reason="x")
    assert told.take() == []
    ledger.as_agent("clerk").correct("loan/42", {"creditScore": 640}, reason="x", idempotency_key="one")
    assert told.take() == [(run, "approved")]
    ledger.as_agent("clerk").correct("loan/42", {"creditScore": 640}, reason="x", idempotency_key="one")
    ledger.runs.replay(run, lambda run: correct(ledger, 600))
    assert told.take() == []


def test_a_function_that_raises_breaks_no_write(ledger: woodrat.Ledger) -> None:
    """What a function raises is kept and warned of; the write stands, and the other functions are told."""
    store(ledger, creditScore=580)
    run = decide(ledger)

    def fail(found: tuple[Stale, ...]) -> None:
        raise ValueError("no mail server")

    failing = ledger.on_stale(fail)
    told = Told(ledger)
    with pytest.warns(woodrat.StaleWarning, match="The write stands.*ValueError: no mail server"):
        corrected(ledger, 640, failing)
    assert [str(problem) for problem in failing.problems] == ["no mail server"]
    assert told.take() == [(run, "approved")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corrected(ledger, 610, failing)
    assert ledger.show("loan/42").fields["creditScore"] == 610
    assert len(failing.problems) == 2
    with pytest.raises(woodrat.Refused, match="expected a function"):
        ledger.on_stale("mail")  # type: ignore[arg-type]


def test_a_function_may_write(ledger: woodrat.Ledger) -> None:
    """A write inside of the function neither waits for itself nor is told of before the function has returned."""
    store(ledger, creditScore=580)
    store(ledger, 43, creditScore=580)
    first, second = decide(ledger), decide(ledger, 43)
    seen: list[str] = []

    def chain(found: tuple[Stale, ...]) -> None:
        for one in found:
            seen.append(f"begin {one.run}")
            if one.run == first:
                correct(ledger, 640, 43)
            seen.append(f"end {one.run}")

    with ledger.run("A run that writes") as run, ledger.on_stale(chain):
        run.correct("loan/42", {"creditScore": 640}, reason="x")
    assert seen == [f"begin {first}", f"end {first}", f"begin {second}", f"end {second}"]


def test_threads_are_told_of_every_write_once(tmp_path: Path) -> None:
    """Whichever threads write, each decision is told of once, and never two at a time."""
    with woodrat.open(str(tmp_path / "one.db")) as ledger:
        for number in range(8):
            store(ledger, number, creditScore=580)
        runs = {decide(ledger, number) for number in range(8)}
        inside = threading.Lock()
        found: list[str] = []

        def note(told: tuple[Stale, ...]) -> None:
            assert inside.acquire(blocking=False)
            found.extend(one.run for one in told)
            inside.release()

        subscription = ledger.on_stale(note)
        threads = [threading.Thread(target=correct, args=(ledger, 640, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert subscription.flush()
        assert sorted(found) == sorted(runs)
        assert subscription.problems == []


def test_other_writers_are_followed(tmp_path: Path) -> None:
    """A follower tells of what any process writes, write by write, also where a later one sets it right again."""
    path = str(tmp_path / "one.db")
    with woodrat.open(path) as ledger, woodrat.open(path, agent="other") as other:
        store(ledger, creditScore=580)
        store(ledger, 43, creditScore=580)
        run = decide(ledger)
        start = ledger.position
        turns = iter([[(42, 640), (42, 580)], [(43, 1)], [(42, 610)]])

        def wait() -> bool:
            said = next(turns, None)
            for number, score in said or ():
                correct(other, score, number)
            return said is not None

        found = [(one.run, one.now.chosen) for one in ledger.follow_stale(wait=wait)]
        assert found == [(run, "approved"), (run, "manual-review")]
        again = [(one.run, one.now.chosen) for one in ledger.follow_stale(after=start, wait=lambda: False)]
        assert again == found
        with pytest.raises(woodrat.NotFound):
            ledger.follow_stale(after=10_000)


def test_a_long_write_is_followed_whole(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write longer than what is looked at in one go is one write."""
    monkeypatch.setattr(follower, "_WINDOW", 3)
    for number in range(10):
        store(ledger, number, creditScore=580)
    runs = [decide(ledger, number) for number in range(10)]
    start = ledger.position
    ledger.store([{"entity_type": "loan", "id": str(number), "creditScore": 640} for number in range(10)])
    correct(ledger, 610, 3)
    found = [(one.run, one.now.chosen) for one in ledger.follow_stale(after=start, wait=lambda: False)]
    assert found == [(run, "approved") for run in runs] + [(runs[3], "manual-review")]


def test_async_ledgers_are_told_and_follow(tmp_path: Path) -> None:
    """An async ledger subscribes and follows as well."""

    async def main() -> tuple[list[tuple[str, Any]], str]:
        async with await woodrat.aopen(str(tmp_path / "one.db")) as ledger:
            store(ledger.target, creditScore=580)
            run = decide(ledger.target)
            told = Told(ledger)
            start = ledger.position
            await ledger.correct("loan/42", {"creditScore": 640}, reason="x")
            async for one in ledger.follow_stale(after=start):
                assert (one.run, one.now.chosen) == (run, "approved")
                break
            return told.take(), run

    found, run = asyncio.run(main())
    assert found == [(run, "approved")]


def test_an_unknown_outcome_is_told_once(ledger: woodrat.Ledger) -> None:
    """A decision that needs the agent's code is told of as unknown, and not again while it is so."""
    store(ledger, creditScore=580)

    def low(facts: Any) -> bool:
        return bool(facts["creditScore"] < 600)

    run = decide(ledger, rules=[Rule("rejected", low, label="Low")])
    told = Told(ledger)
    correct(ledger, 640)
    correct(ledger, 650)
    assert told.take() == [(run, None)]

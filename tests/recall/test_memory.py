"""Memory: recall, inject and record as one turn; once for one key; sync and async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.ledger import entry_index
from woodrat.recall import memory as memory_module
from woodrat.recall.memory import ATTEMPTS_MAX, Memory, memory, turn_id
from woodrat.runs.recorder import current
from woodrat.runs.recorder.decisions import decide
from woodrat.runs.recorder.log import LocalLog
from woodrat.runs.recorder.steps import RecordingWarning
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

WHY = "Why was application #42 rejected?"
FRIDAY: dict[str, Any] = {"conversation": "app-42-followup", "principal": "bob"}


@pytest.fixture(params=[":memory:", "one.db"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> woodrat.Ledger:
    """A ledger with Monday's decision, on each engine."""
    db = request.param if request.param == ":memory:" else tmp_path / request.param
    found = woodrat.open(db, tenant="lending", agent="loan-officer", clock=FixedClock())
    with found.run(
        "Should we approve application #42?", subject="loan/42", conversation="app-42", principal="ann"
    ) as run:
        decide(
            "classify-risk", {"creditScore": 580}, [Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal")]
        )
        run.answer("Application #42: REJECTED. Credit (580) below floor (600).")
    return found


def small_model(prompt: str) -> str:
    """Answer from the prompt alone."""
    return "580 < 600" if "creditScore=580" in prompt else "I have no record of that."


def runs_of(ledger: woodrat.Ledger) -> list[Any]:
    """Return all run records, the first first."""
    return [ledger.runs.show(run.id) for run in ledger.runs.list(limit=1000).items][::-1]


def test_a_whole_turn(ledger: woodrat.Ledger) -> None:
    """A turn recalls, hands over what it recalled, and is recorded as a run that answers from memory."""
    with memory(ledger).turn(WHY, **FRIDAY) as turn:
        assert turn.recalled
        assert not turn.known
        assert turn.prompt == f"{turn.inject}\n\n{WHY}"
        reply = small_model(turn.inject)
        assert turn.answer(reply) == reply
        assert turn.reply == reply
    record = runs_of(ledger)[-1]
    assert (record.query, record.answer, record.status, record.recall) == (WHY, "580 < 600", "done", True)
    assert (record.conversation, record.principal) == ("app-42-followup", "bob")
    assert (record.reads[0].within, record.reads[0].args["question"]) == ("recall", WHY)
    assert [hit.run for hit in record.reads[0].recalled] == [runs_of(ledger)[0].id]
    assert turn.run is not None
    assert turn.run.id == record.id


def test_five_turns_all_answer_from_monday(ledger: woodrat.Ledger) -> None:
    """Turns never recall each other instead of the decision."""
    monday = runs_of(ledger)[0].id
    for _ in range(5):
        with memory(ledger).turn(WHY, **FRIDAY) as turn:
            assert turn.recalled is not None
            assert [hit.run for hit in turn.recalled.hits] == [monday]
            turn.answer(small_model(turn.inject))
    assert len(runs_of(ledger)) == 6


def test_nothing_is_injected_when_nothing_passes(ledger: woodrat.Ledger) -> None:
    """Below the threshold, out of scope, or about another number, the prompt is the question alone."""
    for found, question in (
        (memory(ledger, scope="conversation"), WHY),
        (memory(ledger, scope="principal"), WHY),
        (memory(ledger, threshold=1), WHY),
        (memory(ledger), "Why was application #43 rejected?"),
    ):
        with found.turn(question, **FRIDAY) as turn:
            assert turn.inject == ""
            assert turn.prompt == question
            assert turn.recalled is not None
            assert not turn.recalled
            assert "No earlier run is on record" in turn.messages[0]["content"]


def test_a_turn_as_chat_messages(ledger: woodrat.Ledger) -> None:
    """The same turn can be put to any chat model."""
    with memory(ledger).turn(WHY, **FRIDAY) as turn:
        system, user = turn.messages
    assert "creditScore=580, threshold=600" in system["content"]
    assert user == {"role": "user", "content": WHY}


def test_decisions_of_a_turn_are_part_of_it(ledger: woodrat.Ledger) -> None:
    """The turn is the current run inside its block."""
    with memory(ledger).turn(WHY, **FRIDAY) as turn:
        decide("escalate", {}, [], default="no")
        turn.answer("No.")
    assert [decision.stage for decision in runs_of(ledger)[-1].decisions] == ["escalate"]


def test_an_exception_ends_the_turn_as_an_error(ledger: woodrat.Ledger) -> None:
    """What the agent raises is recorded and goes on to the caller."""
    with pytest.raises(ZeroDivisionError), memory(ledger).turn(WHY, **FRIDAY):
        raise ZeroDivisionError
    assert runs_of(ledger)[-1].status == "error"


# Once for one key


def test_the_same_key_answers_from_the_record(ledger: woodrat.Ledger) -> None:
    """A turn that was taken is not taken again: its answer stands, and nothing is recorded."""
    with memory(ledger).turn(WHY, key="message-7", **FRIDAY) as turn:
        turn.answer("first")
        injected = turn.inject
    position = ledger.position
    with memory(ledger).turn(WHY, key="message-7", **FRIDAY) as again:
        assert again.known
        assert again.reply == "first"
        assert again.inject == injected
        assert again.answer("second") == "first"
        assert again.run is None
        assert again.record is not None
    assert ledger.position == position


def test_the_same_key_for_something_else_is_refused(ledger: woodrat.Ledger) -> None:
    """A key belongs to one question in one conversation for one principal."""
    with memory(ledger).turn(WHY, key="k", **FRIDAY) as turn:
        turn.answer("first")
    position = ledger.position
    for question, about in (
        ("Another question", FRIDAY),
        (WHY, {**FRIDAY, "principal": "eve"}),
        (WHY, {**FRIDAY, "conversation": "other"}),
        (WHY, {**FRIDAY, "subject": "loan/43"}),
    ):
        with (
            pytest.raises(woodrat.Refused, match="was used for another turn"),
            memory(ledger).turn(question, key="k", **about),
        ):
            pass
    assert ledger.position == position


def test_keys_of_other_agents_are_other_keys(ledger: woodrat.Ledger) -> None:
    """Two agents may use the same key for different turns."""
    for agent in ("one", "two"):
        with memory(ledger.as_agent(agent)).turn(WHY, key="k", **FRIDAY) as turn:
            assert not turn.known
            turn.answer(agent)


def test_a_turn_that_failed_is_taken_again(ledger: woodrat.Ledger) -> None:
    """After an error the same key tries again, and then its answer stands."""
    found = memory(ledger)
    with pytest.raises(ZeroDivisionError), found.turn(WHY, key="k", **FRIDAY):
        raise ZeroDivisionError
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        assert not turn.known
        turn.answer("second")
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        assert turn.reply == "second"
    assert [record.status for record in runs_of(ledger)[1:]] == ["error", "done"]


def test_a_turn_that_was_interrupted_is_carried_on(ledger: woodrat.Ledger) -> None:
    """A turn whose process died is finished by the next one with its key, as the same run."""
    id = turn_id(ledger.agent, "k", 1)
    ledger.run(WHY, id=id, recall=True, **FRIDAY).start()
    with memory(ledger).turn(WHY, key="k", **FRIDAY) as turn:
        assert turn.recalled
        turn.answer("late")
    assert [record.id for record in runs_of(ledger)][1:] == [id]
    assert ledger.runs.show(id).answer == "late"
    assert ledger.runs.show(id).status == "done"


def test_a_key_that_always_fails_is_refused_in_the_end(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a bound to how often one turn can fail."""
    assert ATTEMPTS_MAX > 1
    monkeypatch.setattr("woodrat.recall.memory.ATTEMPTS_MAX", 2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), memory(ledger).turn(WHY, key="k", **FRIDAY):
            raise ZeroDivisionError
    with pytest.raises(woodrat.Refused, match="2 turns with it failed"), memory(ledger).turn(WHY, key="k", **FRIDAY):
        pass


def test_two_threads_with_one_key_record_one_answer(ledger: woodrat.Ledger) -> None:
    """Of turns with one key at the same time one is taken; others are told to come again, or answer as it did."""
    found = memory(ledger)
    outcomes: list[object] = []
    together = threading.Barrier(4)

    def take(number: int) -> None:
        together.wait()
        try:
            with found.turn(WHY, key="k", **FRIDAY) as turn:
                outcomes.append(turn.answer(f"answer {number}"))
        except woodrat.Unavailable as told:
            outcomes.append(told)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        assert turn.known
        settled = turn.reply
    with ledger.context.engine.view(TenantId("lending")) as view:
        ends = [
            entry
            for entry in entry_index.run_entries(view, turn_id("loan-officer", "k", 1), ledger.position)
            if entry.kind == "run.ended"
        ]
    assert len(ends) == 1
    assert len(outcomes) == 4
    assert settled in outcomes


def test_a_turn_is_being_taken_until_its_end_is_on_record(
    ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends a key while the end of its turn is being written is told to come again."""
    found, told = memory(ledger), []
    end = LocalLog.end

    def meanwhile(log: LocalLog, *rest: Any) -> Any:
        with pytest.raises(woodrat.Unavailable) as busy:
            found.turn(WHY, key="k", **FRIDAY).__enter__()
        told.append(busy)
        return end(log, *rest)

    monkeypatch.setattr(LocalLog, "end", meanwhile)
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        turn.answer("Below the floor.")
    assert len(told) == 1
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        assert turn.known


def test_a_turn_that_ends_while_it_is_looked_for_is_known(
    ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that had no end when the log was read, and no recorder a moment later, has ended."""
    found = memory(ledger)
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        id = turn_id(ledger.agent, "k", 1)
        monkeypatch.setattr(current, "is_recorded", lambda run: False)
        stale = [memory_module.find_turn(ledger, id)]
        monkeypatch.undo()
        turn.answer("Below the floor.")
    assert [record and record.status for record in stale] == ["interrupted"]
    find = memory_module.find_turn
    monkeypatch.setattr(memory_module, "find_turn", lambda *given: stale.pop() if stale else find(*given))
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        assert turn.known
        assert turn.reply == "Below the floor."
    assert not stale


def test_of_two_who_go_on_with_an_interrupted_turn_one_is_told_to_wait(ledger: woodrat.Ledger) -> None:
    """A turn that broke off is taken up by one of those who send its key again."""
    found = memory(ledger)
    # In a context of its own, which ends with it: the turn stays open.
    broken = copy_context().run(found.turn(WHY, key="k", **FRIDAY).__enter__)
    assert broken.run is not None
    broken.run.release()
    outcomes: list[object] = []
    together = threading.Barrier(4)

    def take(number: int) -> None:
        together.wait()
        try:
            with found.turn(WHY, key="k", **FRIDAY) as turn:
                outcomes.append(turn.reply if turn.known else turn.answer(f"answer {number}"))
        except woodrat.Unavailable as told:
            outcomes.append(told)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = {outcome for outcome in outcomes if isinstance(outcome, str)}
    assert len(outcomes) == 4
    assert len(answers) == 1
    with found.turn(WHY, key="k", **FRIDAY) as turn:
        assert {turn.reply} == answers


def test_a_second_recorder_of_a_run_does_not_end_the_first(ledger: woodrat.Ledger) -> None:
    """Starting a run under an id that is being recorded is refused, and the first goes on being recorded."""
    with ledger.run("one", id="run_frgx7ifpvaz7nvcx2tfd2csfby") as run:
        with pytest.raises(woodrat.Refused, match="there is a run with this id"):
            ledger.run("two", id=run.id).start()
        assert current.recorder_of(run.id) is run
    assert not current.is_recorded(run.id)


# What can go wrong


@pytest.mark.parametrize(
    "given", [{"threshold": 2}, {"k": 0}, {"scope": "world"}, {"projection": "x"}, {"on_error": "ignore"}, {"ttl": -1}]
)
def test_bad_settings_are_refused_at_once(ledger: woodrat.Ledger, given: dict[str, Any]) -> None:
    """What is wrong with a memory is said when it is made."""
    with pytest.raises(woodrat.Refused, match=next(iter(given))):
        memory(ledger, **given)


@pytest.mark.parametrize(
    "given", [{"key": ""}, {"key": 3}, {"conversation": 3}, {"principal": 3}, {"question": ""}, {"question": None}]
)
def test_bad_turns_are_refused_before_anything_is_recorded(ledger: woodrat.Ledger, given: dict[str, Any]) -> None:
    """A turn needs a question, and a key of its own if any."""
    position = ledger.position
    with pytest.raises(woodrat.Refused), memory(ledger).turn(**{"question": WHY, **given}):
        pass
    assert ledger.position == position


def test_a_narrow_scope_needs_to_know_whose(ledger: woodrat.Ledger) -> None:
    """With the scope of a conversation every turn says which."""
    with pytest.raises(woodrat.Refused, match="conversation"):
        memory(ledger, scope="conversation").turn(WHY, principal="bob")


def test_answering_before_the_turn_begins_is_refused(ledger: woodrat.Ledger) -> None:
    """There is nothing to answer yet."""
    with pytest.raises(woodrat.Refused, match="has not begun"):
        memory(ledger).turn(WHY).answer("x")


class Away:
    """An embedder whose server is away."""

    id, dimension = "away", 3

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise woodrat.Unavailable("The embedder is away. Nothing was scored. Start it.")


def test_a_turn_goes_on_without_memory(ledger: woodrat.Ledger) -> None:
    """When nothing can be recalled the agent is not broken: it is warned, and the turn is recorded."""
    turn = memory(ledger, embedder=Away()).turn(WHY, **FRIDAY)
    with pytest.warns(RecordingWarning, match="away"):
        turn.__enter__()
    assert turn.inject == ""
    assert turn.prompt == WHY
    assert isinstance(turn.problem, woodrat.Unavailable)
    turn.answer(small_model(turn.prompt))
    turn.__exit__(None, None, None)
    assert runs_of(ledger)[-1].answer == "I have no record of that."


def test_a_turn_raises_when_asked_to(ledger: woodrat.Ledger) -> None:
    """With `on_error="raise"` what cannot be recalled is an error, and the run says so."""
    strict = memory(ledger, embedder=Away(), on_error="raise")
    with pytest.raises(woodrat.Unavailable, match="away"), strict.turn(WHY, **FRIDAY):
        pass
    assert runs_of(ledger)[-1].status == "error"


# Wrapping


def test_wrap_a_plain_function(ledger: woodrat.Ledger) -> None:
    """A function of a prompt becomes one that remembers and is recorded; what it does not know is handed on."""
    calls: list[tuple[str, str]] = []

    def agent(prompt: str, tone: str = "plain") -> str:
        """Answer."""
        calls.append((prompt, tone))
        return small_model(prompt)

    remembering = memory(ledger).wrap(agent)
    assert remembering(WHY, tone="kind", key="m-1", **FRIDAY) == "580 < 600"
    assert remembering(WHY, tone="kind", key="m-1", **FRIDAY) == "580 < 600"
    assert len(calls) == 1
    assert calls[0][0].endswith(WHY)
    assert calls[0][1] == "kind"
    assert (remembering.__name__, remembering.__doc__) == ("agent", "Answer.")
    assert runs_of(ledger)[-1].answer == "580 < 600"


def test_wrap_a_function_that_takes_memory(ledger: woodrat.Ledger) -> None:
    """A function with a parameter `memory` is given the question as it is, and what was recalled beside it."""

    def agent(question: str, memory: str) -> str:
        assert question == WHY
        return small_model(memory)

    assert memory(ledger).wrap(agent)(WHY) == "580 < 600"


def test_wrap_an_async_function(ledger: woodrat.Ledger) -> None:
    """Async agents are wrapped alike; turns at the same time do not mix."""

    async def agent(question: str, memory: str) -> str:
        await asyncio.sleep(0)
        decide("style", {}, [], default=question)
        return f"{question} {small_model(memory)}"

    async def story() -> list[str]:
        remembering = memory(ledger).wrap(agent)
        questions = [WHY, "Why was application #43 rejected?", "application #42"]
        return list(await asyncio.gather(*(remembering(question, **FRIDAY) for question in questions)))

    assert asyncio.run(story()) == [
        f"{WHY} 580 < 600",
        "Why was application #43 rejected? I have no record of that.",
        "application #42 580 < 600",
    ]
    for record in runs_of(ledger)[1:]:
        assert [decision.chosen for decision in record.decisions] == [record.query]


def test_async_turns(ledger: woodrat.Ledger) -> None:
    """`async with` does what `with` does, on a ledger of either kind."""

    async def story() -> None:
        from woodrat.api.aio import AsyncLedger

        for found in (memory(ledger), memory(AsyncLedger(ledger))):
            async with found.turn(WHY, key="k", **FRIDAY) as turn:
                turn.answer(small_model(turn.inject) if not turn.known else "again")
                assert turn.reply == "580 < 600"
        with pytest.raises(ZeroDivisionError):
            async with memory(ledger).turn(WHY, **FRIDAY):
                raise ZeroDivisionError
        with pytest.raises(woodrat.Refused, match="another turn"):
            async with memory(ledger).turn("Other", key="k"):
                pass

    asyncio.run(story())
    assert [record.status for record in runs_of(ledger)[1:]] == ["done", "error"]


def test_a_memory_recalls_without_recording(ledger: woodrat.Ledger) -> None:
    """Looking what a turn would be given writes nothing."""
    position = ledger.position
    assert Memory(ledger).recall(WHY)
    assert ledger.position == position

"""Forks: a new run that answers from a recording up to a step, where something is edited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.verifier.test_honest import Desk

import woodrat
from woodrat.errors import NotFound, Refused
from woodrat.runs import edits
from woodrat.runs.recorder.start import begin

RULES = [woodrat.Rule("rejected", {"score": {"lt": 600}}, label="Marginal credit")]


SENT = "notify approved: said 620 of 1000"


class Bank:
    """A ledger, and an agent whose tools count how often they are really called."""

    def __init__(self, ledger: woodrat.Ledger, score: Any = 620) -> None:
        self.ledger, self.score = ledger, score
        self.calls: list[str] = []
        ledger.store({"entity_type": "loan", "id": "42", "limit": 1000})

    def bureau(self, application: Any) -> Any:
        self.calls.append(f"bureau {application}")
        return {"score": self.score, "person": {"name": "Ana", "tags": ["a", "b"]}}

    def notify(self, text: str) -> Any:
        self.calls.append(f"notify {text}")
        return {"sent": text}

    def ask(self, messages: Any) -> Any:
        self.calls.append(f"model {messages[-1]['content']}")
        return {"content": f"said {messages[-1]['content']}"}

    def agent(self, run: Any) -> Any:
        limit = run.show("loan/42").fields["limit"]
        found = run.tool("bureau", self.bureau, run.inputs["application"]).result
        asked = [{"role": "system", "content": "be brief"}, {"role": "user", "content": f"{found['score']} of {limit}"}]
        said = run.model("small-1", self.ask, messages=asked).result
        verdict = run.decide("risk", {"score": found["score"]}, RULES, default="approved")
        run.decided("tone", said["content"], on={"content": said["content"]})
        run.store({"entity_type": "loan", "id": "42", "status": verdict.chosen})
        run.tool("notify", self.notify, f"{verdict.chosen}: {said['content']}")
        return verdict.chosen

    def record(self, agent: Callable[[Any], Any] | None = None, **about: Any) -> str:
        with self.ledger.run("Approve?", **{"subject": "loan/42", "inputs": {"application": 42}, **about}) as run:
            run.answer((agent or self.agent)(run))
        assert not run.problems
        self.calls.clear()
        return run.id

    def fork(self, run: str, at: int | str, set: dict[str, Any], agent: Any = None, **about: Any) -> Any:
        return self.ledger.runs.fork(run, agent or self.agent, at=at, set=set, **about)


@pytest.fixture
def bank() -> Bank:
    return Bank(woodrat.open(":memory:", agent="officer"))


def test_a_tool_result_is_edited_and_the_run_goes_on_live(bank: Bank) -> None:
    """Up to the step nothing is called; after it everything is, on the edited value."""
    run = bank.record()
    found = bank.fork(run, 2, {"result.score": 580})
    assert (found.status, found.answer, found.from_log, found.stopped) == ("done", "rejected", 2, None)
    assert bank.calls == ["model 580 of 1000", "notify rejected: said 580 of 1000"]
    record = bank.ledger.runs.show(found.run)
    assert record.forked_from is not None
    assert {name: record.forked_from[name] for name in ("run", "step", "what", "set", "was")} == {
        "run": run, "step": 2, "what": "tool bureau", "set": {"result.score": 580}, "was": {"result.score": 620},
    }  # fmt: skip
    assert [step.step for step in record.steps] == [step.step for step in bank.ledger.runs.show(run).steps]
    assert record.tool_calls[0].result == {"score": 580, "person": {"name": "Ana", "tags": ["a", "b"]}}
    assert record.reads[0].values["limit"] == 1000
    assert record.decisions[0].evidence["score"] == 580
    assert record.decisions[0].facts_origin["score"]["span"] == record.tool_calls[0].span
    assert record.decisions[1].chosen_by == {
        "model": "small-1",
        "span": record.models[0].span,
        "step": record.models[0].step,
    }
    copies = [entry for entry in bank.ledger.log.entries() if b'"copy_of"' in (entry.body or b"")]
    assert [entry.kind for entry in copies] == ["run.tool"]
    assert not record.problems


@pytest.mark.parametrize(
    ("at", "edited", "answer", "calls"),
    [
        (0, {"inputs.application": 43}, "approved", ["bureau 43", "model 620 of 1000", SENT]),
        (0, {"inputs": {"application": 44}, "query": "Really?"}, "approved", None),
        (1, {"fields.limit": 5}, "approved", ["bureau 42", "model 620 of 5", "notify approved: said 620 of 5"]),
        (2, {"result": {"score": 1}}, "rejected", ["model 1 of 1000", "notify rejected: said 1 of 1000"]),
        (2, {"result.person.tags[1]": "z"}, "approved", None),
        (2, {"result.person.tags.0": "z", "result.score": 599}, "rejected", None),
        (3, {"response.content": "hm"}, "approved", ["notify approved: hm"]),
        (3, {"response": {"content": "ok"}}, "approved", ["notify approved: ok"]),
        (3, {"prompt": "why?"}, "approved", ["model why?", "notify approved: said why?"]),
        (3, {"prompt[1].content": "how?"}, "approved", ["model how?", "notify approved: said how?"]),
        (3, {"prompt": [{"role": "user", "content": "x"}]}, "approved", ["model x", "notify approved: said x"]),
        (7, {"result.sent": "no"}, "approved", []),
    ],
)  # fmt: skip
def test_every_part_of_a_step_can_be_edited(
    bank: Bank, at: int, edited: dict[str, Any], answer: str, calls: list[str] | None
) -> None:
    """Inputs and the question, what was read, results, answers and prompts; whole, or a place inside."""
    run = bank.record()
    found = bank.fork(run, at, edited)
    assert (found.status, found.answer, found.stopped) == ("done", answer, None)
    assert calls is None or bank.calls == calls
    told = bank.ledger.runs.diff(run, found.run)
    assert told.edit is not None
    assert all(path in told.sentence for path in edited)
    assert told.same or told.sentence.startswith("The edit is the cause: in the second run, ")
    assert told.same or (told.cause is not None and told.cause.kind == "edit")


def test_a_read_that_was_edited_cites_no_observation(bank: Bank) -> None:
    """Nobody said the edited value, so nothing of the log is behind it; the other fields keep what is behind them."""
    run = bank.record()
    record = bank.ledger.runs.show(bank.fork(run, 1, {"fields.limit": 5}).run)
    (read,) = record.reads
    assert read.values["limit"] == 5
    assert read.behind("limit") == ()
    assert read.behind("id")


def test_a_tool_can_be_made_to_fail(bank: Bank) -> None:
    """An edited error is raised where the tool was called."""
    run = bank.record()
    found = bank.fork(run, 2, {"error": {"type": "TimeoutError", "message": "too slow"}})
    assert (found.status, found.stopped) == ("error", None)
    record = bank.ledger.runs.show(found.run)
    assert record.error == {"type": "TimeoutError", "message": "too slow"}
    assert record.tool_calls[0].errored

    def careful(again: Any) -> Any:
        try:
            return bank.agent(again)
        except TimeoutError:
            return "later"

    assert bank.fork(run, 2, {"error": "x"}, careful).status == "error"  # a RuntimeError, which it does not catch
    assert bank.fork(run, 2, {"error": {"type": "TimeoutError", "message": ""}}, careful).answer == "later"


def test_what_cannot_be_edited_is_said_with_what_can(bank: Bank) -> None:
    """Unknown runs, steps and paths are refused, all faults at once, and nothing is recorded."""
    run = bank.record()
    head = bank.ledger.position
    for at, edited, told in (
        (9, {"result": 1}, "has no step 9 (number). Name one of 0 start, 1 read of loan/42, 2 tool bureau"),
        (4, {"chosen": 1}, "step 4 is the decision risk, which cannot be edited"),
        (2, {"result.scor": 1}, "there is no such place: it has person, score"),
        (2, {"result.person.tags[2]": 1}, "person.tags has 2 items, counted from 0"),
        (2, {"result.score.x": 1}, "score has the value 620"),
        (2, {"inputs.x": 1}, 'there is no "inputs" (text) at this step. It has result.person, result.score, error.'),
        (2, {}, "nothing is edited"),
        (2, {"a..b": 1}, "it is not a path"),
        (2, {"result": 1, "result.score": 2}, "it is inside of what another one sets"),
        (0, {"inputs": 5}, "Send values by name."),
        (0, {"query": 5}, "Send the question as text."),
        (1, {"fields": 5}, "Send values by field."),
        (2, {"result.score": float("nan")}, "which JSON cannot say"),
        ("no-span", {"result": 1}, "has no step"),
    ):
        with pytest.raises(Refused) as refusal:
            bank.fork(run, at, edited)
        assert told in str(refusal.value), str(refusal.value)
        assert "Nothing was forked." in str(refusal.value)
    with pytest.raises(Refused) as refusal:
        bank.fork(run, 2, {"result.a": 1, "b": 2, "..": 3}, tools="none")
    assert len(refusal.value.faults) == 4
    with pytest.raises(NotFound):
        bank.fork("run_aaaaaaaaaaaaaaaaaaaaaaaaaa", 2, {"result": 1})
    assert bank.ledger.position == head
    assert not bank.calls


def test_a_step_can_be_named_by_its_span(bank: Bank) -> None:
    """A span names a step too."""
    run = bank.record()
    span = bank.ledger.runs.show(run).tool_calls[0].span
    assert bank.fork(run, span, {"result.score": 580}).answer == "rejected"


def test_hidden_and_cut_values_are_not_edited_from_within(bank: Bank) -> None:
    """Of a value that is not whole only the whole can be set; inputs that were hidden have to be set too."""
    bank.score = "x" * 400_000
    run = bank.record(lambda again: again.tool("bureau", bank.bureau, 1).result and "ok")
    with pytest.raises(Refused, match="hidden, cut or erased, so the rest of it is not known"):
        bank.fork(run, 1, {"result.score": 1}, lambda again: again.tool("bureau", bank.bureau, 1).result["score"])
    found = bank.fork(
        run, 1, {"result": {"score": 1}}, lambda again: again.tool("bureau", bank.bureau, 1).result["score"]
    )
    assert found.answer == 1
    bank.score = 620
    hidden = bank.record(redact=["application", "name"])
    with pytest.raises(Refused, match="its inputs were hidden, cut or erased"):
        bank.fork(hidden, 2, {"result": {"score": 1}})
    with pytest.raises(Refused, match="so the rest of it is not known"):
        bank.fork(hidden, 0, {"inputs.application": 7})
    found = bank.fork(hidden, 0, {"inputs": {"application": 7}})
    assert (found.answer, bank.calls[0]) == ("approved", "bureau 7")
    record = bank.ledger.runs.show(found.run)
    assert record.inputs == {"application": "[REDACTED]"}
    assert record.forked_from is not None
    assert "7" not in str(record.forked_from["set"])
    assert record.tool_calls[0].result["person"]["name"] == "[REDACTED]"  # type: ignore[index,call-overload]


def test_erased_values_are_refused_clearly(tmp_path: Path) -> None:
    """What was erased cannot be answered again, nor edited from within; a fork keeps nothing of it either."""
    desk = Desk(tmp_path)
    bank = Bank(desk.ledger)
    bank.ledger.store({"entity_type": "person", "id": "ana", "name": "Ana Rivera-Ibarra", "city": "Girona"})

    def agent(run: Any) -> Any:
        name = run.show("person/ana").fields["name"]
        return run.tool("greet", lambda text: {"said": f"Hello {text}"}, name).result["said"]

    run = bank.record(agent)
    forks = [
        bank.fork(run, 1, {"fields.city": "Barcelona"}, agent).run,
        bank.fork(run, 1, {"fields.name": "Bo"}, agent).run,
        bank.fork(run, 2, {"result.said": "Hi"}, agent).run,
    ]
    certificate = bank.ledger.erase("person/ana", reason="asked to")
    assert certificate.complete, certificate
    assert not any(b"Ibarra" in (entry.body or b"") for entry in bank.ledger.log.entries())
    for each in (run, *forks):
        for at, edited in ((1, {"fields.name": "x"}), (2, {"result.said": "x"})):
            try:
                found = bank.fork(each, at, edited, agent)
            except Refused as refusal:
                assert "Nothing was forked." in str(refusal)  # noqa: PT017
            else:
                assert found.stopped is not None or found.status == "error"


def test_the_agent_is_stopped_where_it_leaves_the_recording(bank: Bank) -> None:
    """Before the edit nothing is called for real; the fork ends and says what it asked for."""
    run = bank.record()

    def other(again: Any) -> Any:
        try:
            again.tool("transfer", lambda: bank.calls.append("transfer"))
        except Exception:
            return "caught"
        return bank.agent(again)

    found = bank.fork(run, 2, {"result.score": 580}, other)
    assert found.status == "error"
    assert found.stopped is not None
    assert f"tool transfer({{}}), which the recording of {run} does not hold before step 2" in found.stopped
    assert not bank.calls
    record = bank.ledger.runs.show(found.run)
    assert "does not hold before step 2" in str(record.error)
    for agent in (
        lambda again: again.model("large-9", lambda: 1),
        lambda again: again.show("loan/43"),
        lambda again: again.store({"entity_type": "x", "id": "1", "y": 1}),
        lambda again: [bank.ledger.run("inner").start()],
    ):
        found = bank.fork(run, 2, {"result.score": 580}, agent)
        assert found.stopped is not None, agent
    found = bank.fork(run, 2, {"result.score": 580}, lambda again: "nothing")
    assert found.stopped == "the agent never came to step 2 (tool bureau), so nothing was edited"
    assert found.status == "error"
    assert not bank.calls
    assert not bank.ledger.search("x").items


def test_a_function_that_takes_no_messages_cannot_be_given_an_edited_prompt(bank: Bank) -> None:
    """The fork is stopped before the model is asked; a block gets the edited messages as call.prompt."""

    def deaf(run: Any) -> Any:
        return run.model(
            "small-1", lambda: bank.calls.append("asked"), messages=[{"role": "user", "content": "a"}]
        ).result

    run = bank.record(deaf)
    found = bank.fork(run, 1, {"prompt": "b"}, deaf)
    assert found.stopped is not None
    assert "the edited prompt cannot reach model small-1, as its function takes no argument" in found.stopped
    assert not bank.calls

    def block(run: Any) -> Any:
        with run.model("small-1", messages=[{"role": "user", "content": "a"}]) as call:
            call.result = call.prompt[0]["content"]
        return call.result

    run = bank.record(block)
    assert bank.fork(run, 1, {"prompt": "b"}, block).answer == "b"

    def deaf_block(run: Any) -> Any:
        with run.model("small-1", messages=[{"role": "user", "content": "a"}]) as call:
            call.result = "a"
        return call.result

    run = bank.record(deaf_block)
    found = bank.fork(run, 1, {"prompt": "b"}, deaf_block)
    assert found.stopped is not None
    assert "its block did not ask for call.prompt" in found.stopped


def test_with_recorded_tools_only(bank: Bank) -> None:
    """Tools are answered from the rest of the recording, models are asked; without an answer the fork stops."""
    run = bank.record()
    found = bank.fork(run, 2, {"result.person.name": "Bo"}, tools="recorded")
    assert (found.status, found.answer, found.from_log) == ("done", "approved", 3)
    assert bank.calls == ["model 620 of 1000"]
    bank.calls.clear()
    found = bank.fork(run, 2, {"result.score": 580}, tools="recorded")
    assert found.status == "error"
    assert found.stopped is not None
    assert "tools are answered from the recording only, and it does not hold tool notify" in found.stopped
    assert bank.calls == ["model 580 of 1000"]


def test_effects_that_happened_are_not_repeated(bank: Bank) -> None:
    """A tool marked `once` is answered from the recording wherever it comes up, and writes before the edit too."""
    paid: list[int] = []

    @woodrat.tool(once=True)
    def pay(amount: int) -> Any:
        paid.append(amount)
        return {"paid": amount}

    def agent(run: Any) -> Any:
        first = run.store({"entity_type": "memo", "id": "1", "text": "begun"})
        found = run.tool("bureau", bank.bureau, 1).result
        pay(10 if found["score"] > 600 else 20)
        run.store({"entity_type": "memo", "id": "2", "text": str(found["score"])})
        return len(first.observations)

    run = bank.record(agent)
    assert bank.fork(run, 2, {"result.person.name": "Bo"}, agent).answer == 1
    assert paid == [10]
    found = bank.fork(run, 2, {"result.score": 5}, agent)
    assert paid == [10, 20]
    assert [write.entity for write in bank.ledger.runs.show(found.run).writes] == ["memo/2"]
    assert len(bank.ledger.observations("memo/1").items) == 1
    assert bank.ledger.show("memo/2").fields["text"] == "5"


def test_a_fork_of_a_fork(bank: Bank) -> None:
    """A fork is a run like any other: it is forked, replayed and shown, and leads to its parent."""
    run = bank.record()
    first = bank.fork(run, 2, {"result.score": 580})
    second = bank.fork(first.run, 3, {"response.content": "sorry"})
    assert (second.answer, second.parent) == ("rejected", first.run)
    record = bank.ledger.runs.show(second.run)
    assert record.tool_calls[0].result["score"] == 580  # type: ignore[index,call-overload]
    assert record.tool_calls[1].result == {"sent": "rejected: sorry"}
    assert bank.ledger.runs.replay(second.run, bank.agent).runs[0].same
    assert bank.ledger.runs.diff(run, second.run).edit is None
    assert bank.ledger.runs.diff(second.run, first.run).sentence.startswith("The edit is the cause: in the first run, ")
    with pytest.raises(NotFound):
        begin(bank.ledger.run_log(), "?", forked_from={"run": f"run_{'a' * 26}", "step": 0, "set": {}}).start()
    with pytest.raises(Refused, match="forked_from"):
        begin(bank.ledger.run_log(), "?", forked_from={"run": run})


def test_a_difference_before_the_edit_is_not_blamed_on_it(bank: Bank) -> None:
    """Where the fork behaved otherwise before the edited step, the edit is named beside the cause."""
    run = bank.record()

    def other(again: Any) -> Any:
        again.decide("early", {"x": 1}, [], default="y")
        return bank.agent(again)

    found = bank.fork(run, 2, {"result.score": 580}, other)
    told = bank.ledger.runs.diff(run, found.run)
    assert not told.sentence.startswith("The edit is the cause")
    assert "Later, in the second run, result.score was edited from 620 to 580" in told.sentence


def test_async_agents(bank: Bank) -> None:
    """An async function is forked in a loop of its own, or in the caller's."""

    async def bureau() -> Any:
        bank.calls.append("bureau")
        return {"score": 620}

    async def agent(run: Any) -> Any:
        call = await run.tool("bureau", bureau)
        await asyncio.gather(*(run.tool(f"t{number}", _echo, number) for number in range(3)))
        return call.result["score"]

    async def _echo(number: int) -> int:
        bank.calls.append(f"t{number}")
        return number

    async def work() -> tuple[str, Any]:
        async with bank.ledger.run("?") as run:
            run.answer(await agent(run))
        bank.calls.clear()
        return run.id, None

    run, _ = asyncio.run(work())
    found = bank.fork(run, 1, {"result.score": 1}, agent)
    assert (found.answer, sorted(bank.calls)) == (1, ["t0", "t1", "t2"])

    async def opened(path: str) -> Any:
        async with await woodrat.aopen(path, agent="officer") as ledger:

            async def aware(run: Any) -> Any:
                call = await run.tool("bureau", bureau)
                await run.decide("risk", {"score": call.result["score"]}, RULES, default="approved")
                return call.result["score"]

            async with ledger.run("?") as run:
                run.answer(await aware(run))
            first = await ledger.runs.fork(run.id, aware, at=1, set={"result.score": 5})
            second = await ledger.runs.fork(
                run.id, lambda again: again.tool("x", lambda: 1), at=1, set={"result.score": 5}
            )

            async def leaving(run: Any) -> Any:
                return await run.tool("other", bureau)

            third = await ledger.runs.fork(run.id, leaving, at=1, set={"result.score": 5})
            return first, second, third

    first, second, third = asyncio.run(opened(":memory:"))
    assert (first.status, first.answer) == ("done", 5)
    assert second.stopped is not None
    assert third.stopped is not None


def test_generators_and_recorded_functions(bank: Bank) -> None:
    """A tool that yields and an agent that yields are forked; `@recorded` functions get the edited inputs."""

    @woodrat.tool
    def lines(count: int) -> Any:
        bank.calls.append(f"lines {count}")
        yield from (f"line {number}" for number in range(count))

    @bank.ledger.recorded("Count {count}?")
    def counted(count: int) -> Any:
        for line in lines(count):
            yield f"{line};"

    assert "".join(counted(2)) == "line 0;line 1;"
    bank.calls.clear()
    run = bank.ledger.runs.list().items[0].id
    found = bank.fork(run, 1, {"result[1]": "edited"}, counted)
    assert bank.ledger.runs.show(found.run).answer == "line 0;edited;"
    assert not bank.calls
    found = bank.fork(run, 0, {"inputs.count": 1}, counted)
    assert (bank.ledger.runs.show(found.run).answer, bank.calls) == ("line 0;", ["lines 1"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads(bank: Bank) -> None:
    """Tools called from threads are answered by name and arguments, in whatever order they come."""

    def slow(number: int) -> int:
        bank.calls.append(f"slow {number}")
        return number

    def agent(run: Any) -> Any:
        bank_result = run.tool("bureau", bank.bureau, 1).result["score"]
        with run.executor(4) as pool:
            found = list(pool.map(lambda number: run.tool("slow", slow, number).result, range(4)))
        return [*found, run.tool("last", lambda: "live").result, bank_result]

    run = bank.record(agent)
    steps = bank.ledger.runs.show(run).tool_calls
    last = next(call for call in steps if call.name == "last")
    found = bank.fork(run, last.step, {"result": "edited"}, agent)
    assert (found.answer, found.from_log, bank.calls) == ([0, 1, 2, 3, "edited", 620], 6, [])
    found = bank.fork(run, 1, {"result.score": 1}, agent)
    assert (found.answer, sorted(bank.calls)) == ([0, 1, 2, 3, "live", 1], [f"slow {number}" for number in range(4)])

    def leaving(run: Any) -> Any:
        thread = run.thread(lambda: run.tool("unknown", lambda: bank.calls.append("unknown")))
        thread.start()
        thread.join()
        return run.tool("bureau", bank.bureau, 1).result

    bank.calls.clear()
    found = bank.fork(run, last.step, {"result": "edited"}, leaving)
    assert found.stopped is not None
    assert not bank.calls


def test_what_happened_inside_a_call_is_copied_with_it(bank: Bank) -> None:
    """The steps inside a tool that is answered are in the fork, under the call, with their origins."""

    @woodrat.tool
    def outer() -> Any:
        run = woodrat.current_run()
        assert run is not None
        inner = run.tool("inner", lambda: {"x": 1})
        run.decide("small", {"x": inner.fact("/x")}, [woodrat.Rule("one", {"x": 1})])
        run.show("loan/42")
        bank.calls.append("outer")
        return {"y": 2}

    def agent(run: Any) -> Any:
        outer()
        return run.tool("bureau", bank.bureau, 1).result["score"]

    run = bank.record(agent)
    step = bank.ledger.runs.show(run).tool_calls[-1].step
    found = bank.fork(run, step, {"result.score": 3}, agent)
    assert (found.answer, bank.calls) == (3, [])
    record = bank.ledger.runs.show(found.run)
    assert [call.name for call in record.tool_calls] == ["outer", "inner", "bureau"]
    around, inner, _ = record.tool_calls
    assert inner.under == around.span
    assert record.decisions[0].under == around.span
    assert record.decisions[0].facts_origin["x"]["span"] == inner.span
    assert bank.ledger.runs.diff(run, found.run).sentence.startswith("The edit is the cause")


def test_the_shape_of_values_is_that_of_the_recording(bank: Bank) -> None:
    """Key order, floats and dates come back as they were, in what is edited too."""

    def lookup(on: Any) -> Any:
        return {"z": 1.0, "when": on, "a": {"y": 2.0, "b": 3}}

    def agent(run: Any) -> Any:
        first = run.tool("first", lookup, run.inputs["on"]).result
        second = run.tool("second", lookup, first["when"]).result
        return f"{first} {second} {run.inputs}"

    run = bank.record(agent, inputs={"on": date(2026, 1, 5), "b": 1.0, "a": 2})
    answer = bank.ledger.runs.show(run).answer
    found = bank.fork(run, 2, {"result.a.b": 3}, agent)
    assert found.answer == answer
    found = bank.fork(run, 2, {"result.a.b": 4}, agent)
    assert isinstance(answer, str)
    assert found.answer == "'b': 4}".join(answer.rsplit("'b': 3}", 1))
    found = bank.fork(run, 0, {"inputs.a": 5}, agent)
    assert found.answer == "'a': 5}".join(answer.rsplit("'a': 2}", 1))


def test_blocks(bank: Bank) -> None:
    """The code of a block runs; what the call came to is the edited value, and after the block it holds."""

    def agent(run: Any) -> Any:
        with run.tool("bureau", application=1) as call:
            call.result = bank.bureau(1)
        with run.tool("later") as later:
            later.result = call.result["score"]
        return later.result

    run = bank.record(agent)
    found = bank.fork(run, 1, {"result.score": 7}, agent)
    assert (found.answer, found.stopped) == (7, None)
    assert bank.ledger.runs.show(found.run).tool_calls[0].result["score"] == 7  # type: ignore[index,call-overload]
    assert bank.fork(run, 2, {"result": 8}, agent).answer == 8


def test_runs_inside_are_forked_with_the_one_around_them(bank: Bank) -> None:
    """A run that was started inside before the edit is answered from its recording, as a new run."""

    def agent(run: Any) -> Any:
        with bank.ledger.run("inner") as inner:
            inner.answer(inner.tool("inside", lambda: bank.calls.append("inside")).result)
        return run.tool("bureau", bank.bureau, 1).result["score"]

    run = bank.record(agent)
    found = bank.fork(run, 1, {"result.score": 4}, agent)
    assert (found.answer, found.stopped, bank.calls) == (4, None, [])
    inner = [record for record in bank.ledger.runs.list() if record.parent is not None]
    assert [record.parent["run"] for record in inner if record.parent is not None] == [found.run, run]
    assert all(record.status == "done" for record in inner)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 700) | st.text('aé.\n"', max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc.", max_size=2), inner, max_size=3),
    max_leaves=6,
)


def twice(run: Any, tool: Callable[[], Any]) -> Any:
    """An agent that does what it does by what a tool returns."""
    first = run.tool("first", lambda: "f").result
    found = run.tool("source", tool).result
    run.model(
        "small-1", lambda messages: messages, messages=[{"role": "user", "content": json.dumps(found, sort_keys=True)}]
    )
    run.decide("kind", {"value": found}, [woodrat.Rule("number", {"value": {"in": list(range(700))}})], default="other")
    run.tool("again", lambda item: item, found)
    return [first, found]


@settings(max_examples=25, deadline=None)
@given(values, values)
def test_a_fork_equals_a_fresh_run_with_the_edited_value(recorded: Any, edited: Any) -> None:
    """Law: editing a result gives the run that a tool with that result gives; the same value gives the same run."""
    with woodrat.open(":memory:", agent="a") as ledger:
        with ledger.run("?") as run:
            run.answer(twice(run, lambda: recorded))
        with ledger.run("?") as fresh:
            fresh.answer(twice(fresh, lambda: edited))
        same = ledger.runs.fork(run.id, lambda again: twice(again, lambda: 1 / 0), at=2, set={"result": recorded})
        assert ledger.runs.diff(run.id, same.run).level == "none"
        forked = ledger.runs.fork(run.id, lambda again: twice(again, lambda: 1 / 0), at=2, set={"result": edited})
        assert (forked.status, forked.stopped) == ("done", None)
        assert ledger.runs.diff(fresh.id, forked.run).level == "none"
        assert ledger.runs.show(forked.run).answer == ledger.runs.show(fresh.id).answer


@given(values, st.data())
def test_an_edit_changes_its_place_and_nothing_else(value: Any, data: Any) -> None:
    """Law: after an edit the place holds the new value, and setting the old one again gives back the whole."""
    path, place = "result", value
    while isinstance(place, dict | list) and place and data.draw(st.booleans()):
        if isinstance(place, dict):
            name = data.draw(st.sampled_from(sorted(place)))
            path, place = f'{path}["{name}"]', place[name]
        else:
            number = data.draw(st.integers(0, len(place) - 1))
            path, place = f"{path}[{number}]", place[number]
    faults: list[Any] = []
    (edit,) = edits.parse({path: "new"}, faults)
    parts, was = edits.apply("run.tool", {"result": value}, (edit,), faults)
    assert not faults
    assert was == {path: place}
    (back,) = edits.parse({path: place}, faults)
    undone, old = edits.apply("run.tool", parts, (back,), faults)
    assert (undone, old, faults) == ({"result": value}, {path: "new"}, [])


def test_both_verifiers_take_a_fork(tmp_path: Path) -> None:
    """Capsules of a fork are consistent; an edited read says that nobody stands behind it."""
    desk = Desk(tmp_path)
    bank = Bank(desk.ledger)
    run = bank.record()
    for at, edited in (
        (2, {"result.score": 580}),
        (0, {"inputs.application": 1}),
        (3, {"prompt": "x"}),
        (1, {"fields.limit": 2}),
    ):
        found = bank.fork(run, at, edited)
        assert found.status == "done"
        assert desk.ask(found.run)["verdict"] != "refused"
        assert desk.ask(f"{found.run}#risk")["verdict"] != "refused"


def test_a_function_that_begins_its_run_itself() -> None:
    """The run that the function begins is the fork; where it begins none, nothing is recorded."""
    ledger = woodrat.open(":memory:", agent="loans")

    def agent(question: str, ledger: woodrat.Ledger) -> str:
        with ledger.run(question, subject="loan/1") as run:
            score = run.tool("score", lambda: {"score": 700}).result["score"]
            run.answer("yes" if score >= 600 else "no")
        return "done"

    agent("Loan?", ledger)
    (first,) = ledger.runs.list()
    made = ledger.runs.fork(first.id, agent, at=1, set={"result.score": 580})
    record = ledger.runs.show(made.run)
    assert (made.answer, made.stopped, record.answer, record.parent) == ("no", None, "no", None)
    assert record.forked_from is not None
    assert record.forked_from["run"] == first.id
    assert len(list(ledger.runs.list())) == 2
    with pytest.raises(Refused, match="was to begin the fork"):
        ledger.runs.fork(first.id, lambda question, ledger: question, at=1, set={"result.score": 580})
    with pytest.raises(ZeroDivisionError):
        ledger.runs.fork(first.id, lambda question, ledger: 1 / 0, at=1, set={"result.score": 580})
    assert len(list(ledger.runs.list())) == 2


def test_a_recall_before_the_edit_is_answered_from_the_recording() -> None:
    """It finds what it found, also when the present holds more; it is a read of the fork; after the edit it is live."""
    ledger = woodrat.open(":memory:")
    rules = [woodrat.Rule("rejected", {"score": {"lt": 600}}, label="Low")]

    def approve(score: int) -> str:
        with ledger.run("Approve loan #7?") as made:
            made.decide("risk", {"score": score}, rules, default="approved")
            made.answer(f"scored {score}")
        return str(made.id)

    def agent(run: Any) -> list[str]:
        first = run.recall("Approve loan #7?", k=5)
        run.decide("again", first.facts(), [], default="none")
        run.tool("look", lambda: 1)
        second = ledger.recall("Approve loan #7?", k=5)
        return [*sorted(hit.ref for hit in first.hits), "then", *sorted(hit.ref for hit in second.hits)]

    known = approve(500)
    with ledger.run("What do we know?") as run:
        run.answer(agent(run))
    later = approve(900)
    forked = ledger.runs.fork(run.id, agent, at=3, set={"result": 5})
    assert forked.stopped is None
    assert forked.answer == [known, "then", *sorted([known, later])]
    old, new = (ledger.runs.show(id) for id in (run.id, forked.run))
    assert [(read.as_of, read.recalled) for read in new.reads[:1]] == [
        (read.as_of, read.recalled) for read in old.reads[:1]
    ]
    assert len(new.reads) == 2
    assert new.decisions[0].facts_origin["risk"]["run"] == known


def test_a_recall_that_the_recording_does_not_hold_stops_the_fork() -> None:
    """Before the edit nothing is made up: a question that was not asked then is named."""
    ledger = woodrat.open(":memory:")

    def agent(run: Any, question: str = "Approve loan #7?") -> str:
        run.recall(question)
        return str(run.tool("look", lambda: 1).result)

    with ledger.run("What do we know?") as run:
        run.answer(agent(run))
    forked = ledger.runs.fork(run.id, lambda run: agent(run, "Something else?"), at=2, set={"result": 5})
    assert forked.stopped is not None
    assert "a recall" in forked.stopped


def test_a_fork_replays_as_the_same() -> None:
    """The agent is handed what it was handed in the fork: before the edit, the edited value itself, and after it."""
    calls: list[str] = []
    with woodrat.open(":memory:") as ledger:
        ledger.store({"entity_type": "loan", "id": "7", "score": 620})

        def look(name: str) -> dict[str, float]:
            calls.append(name)
            return {"z": float(len(calls)), "a": 89.0}

        def agent(run: Any) -> str:
            loan = run.show("loan/7")
            first = run.tool("look", look, "first").result
            run.store({"entity_type": "memo", "id": "0", "text": f"{first}"})
            known = run.recall("Approve loan #7?").text
            second = run.tool("look", look, "second").result
            chosen = run.decide("risk", {"score": second["z"], **loan.fields}, [], default="none").chosen
            run.store({"entity_type": "memo", "id": "1", "text": f"{second}"})
            third = run.tool("look", look, "third").result
            return json.dumps([first, known, second, chosen, third])

        with ledger.run("Go?") as run:
            run.answer(agent(run))
        forked = ledger.runs.fork(run.id, agent, at=5, set={"result.z": 0.5})
        assert '"z": 0.5' in forked.answer
        ledger.correct("loan/7", {"score": 1})
        made = list(calls)
        for id in (run.id, forked.run):
            found = ledger.runs.replay(id, agent)
            assert found.same, str(found.runs[0])
        assert calls == made

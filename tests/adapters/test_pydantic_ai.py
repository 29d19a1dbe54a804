"""The recorder of Pydantic AI, with the real framework and models that a test scripts."""

from __future__ import annotations

import asyncio
import io
import json
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

import woodrat

QUESTION = "Should we approve application #42?"
SCORES = {"creditScore": 580}
Reply = Callable[[list[ModelMessage], AgentInfo], ModelResponse]


def decides(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Look the score up, then decide by it."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        told: Any = last.content
        text = "Rejected." if told["creditScore"] < 600 else "Approved."
        return ModelResponse(parts=[TextPart(text)], usage=RequestUsage(input_tokens=7, output_tokens=3))
    call = ToolCallPart("bureau", {"application": 42})
    return ModelResponse(parts=[call], usage=RequestUsage(input_tokens=7, output_tokens=3))


async def decides_in_words(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    """The same, streamed."""
    (part,) = decides(messages, info).parts
    if isinstance(part, ToolCallPart):
        yield {0: DeltaToolCall(part.tool_name, '{"application": 42}', tool_call_id=part.tool_call_id)}
    else:
        assert isinstance(part, TextPart)
        for word in f"{part.content} It is so decided.".split():
            yield f"{word} "


def officer(ledger: woodrat.Ledger | None, reply: Reply = decides, stream: Any = decides_in_words, **about: Any) -> Any:
    """Return an agent that a capability records."""
    model = FunctionModel(reply, stream_function=stream, model_name="small-1")
    agent: Any = Agent(model, name="officer", capabilities=[woodrat.pydantic_ai.capability(ledger, **about)])

    def bureau(application: int) -> dict[str, int]:
        """Return what the credit bureau says."""
        return dict(SCORES)

    add_tool(agent, bureau)

    return agent


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """A ledger in memory; a problem of recording fails the test."""
    SCORES["creditScore"] = 580
    with warnings.catch_warnings():
        warnings.simplefilter("error", woodrat.RecordingWarning)
        yield woodrat.open(":memory:", agent="loan-officer")


def last_run(ledger: woodrat.Ledger) -> woodrat.RunRecord:
    """Return the run that was recorded last."""
    return ledger.runs.show(ledger.runs.list(limit=1).items[0].id)


def refuses(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that must not be asked."""
    raise AssertionError("the model was asked")


def add_tool(agent: Any, function: Callable[..., Any]) -> None:
    """Give an agent a tool."""
    agent.tool_plain(function)


def test_an_agent_is_a_run(ledger: woodrat.Ledger) -> None:
    """Question, models with tokens, the tool under its own name and the answer are recorded."""
    officer(ledger, subject="loan/42").run_sync(QUESTION)
    run = last_run(ledger)
    assert (run.query, run.answer, run.status, run.subject) == (QUESTION, "Rejected.", "done", "loan/42")
    assert [(call.name, call.args, call.result) for call in run.tool_calls] == [
        ("bureau", {"application": 42}, {"creditScore": 580})
    ]
    assert [model.model for model in run.models] == ["small-1", "small-1"]
    assert (run.models[0].input_tokens, run.models[0].output_tokens) == (7, 3)
    assert run.models[0].messages == [{"role": "user", "content": QUESTION}]


def test_a_changed_fact_is_named(ledger: woodrat.Ledger) -> None:
    """Of two runs whose tool returned something else, `runs diff` names that; two equal runs are the same."""
    agent = officer(ledger)
    ids = []
    for score in (580, 580, 640):
        SCORES["creditScore"] = score
        agent.run_sync(QUESTION)
        ids.append(last_run(ledger).id)
    assert ledger.runs.diff(ids[0], ids[1]).same
    sentence = ledger.runs.diff(ids[0], ids[2]).sentence
    assert "bureau" in sentence
    assert "creditScore=580" in sentence
    assert "creditScore=640" in sentence


def test_a_replay_is_answered_from_the_log(ledger: woodrat.Ledger) -> None:
    """No model and no tool is called again; a rule that changed in the code is found."""
    recorded = officer(None)

    async def agent(run: woodrat.Run) -> Any:
        return (await recorded.run(QUESTION)).output

    async def main() -> str:
        async with ledger.run(QUESTION) as run:
            run.answer(await agent(run))
        return run.id

    run = asyncio.run(main())
    SCORES["creditScore"] = 640
    recorded = officer(None, refuses)
    replayed = ledger.runs.replay(run, agent)
    assert replayed.same, replayed.table()

    async def shouting(run: woodrat.Run) -> Any:
        return str(await agent(run)).upper()

    assert not ledger.runs.replay(run, shouting).same


def test_streams_are_recorded_and_replayed(ledger: woodrat.Ledger) -> None:
    """A streamed run leaves the whole answer, and a replay streams it again without a model."""
    recorded = officer(None)

    async def agent(run: woodrat.Run) -> str:
        async with recorded.run_stream(QUESTION) as stream:
            return "".join([text async for text in stream.stream_text(delta=True)])

    async def main() -> str:
        async with ledger.run(QUESTION) as run:
            run.answer(await agent(run))
        return run.id

    run = asyncio.run(main())
    shown = ledger.runs.show(run)
    assert str(shown.answer).strip() == "Rejected. It is so decided."
    assert [(len(shown.models), call.name) for call in shown.tool_calls] == [(2, "bureau")]

    async def silent(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        raise AssertionError("the model was asked")
        yield ""

    recorded = officer(None, refuses, silent)
    replayed = ledger.runs.replay(run, agent)
    assert replayed.same, replayed.table()


def test_an_abandoned_stream_is_recorded_as_far_as_it_was_read(ledger: woodrat.Ledger) -> None:
    """A reader who leaves early leaves what was said so far, marked as abandoned, and no error."""
    SCORES["creditScore"] = 640

    async def main() -> None:
        agent = officer(ledger)
        async with agent.iter(QUESTION) as steps:
            async for node in steps:
                if Agent.is_model_request_node(node) and len(steps.ctx.state.message_history) > 1:
                    stream: Any
                    async with node.stream(steps.ctx) as stream:
                        async for _ in stream.stream_text(debounce_by=None):
                            raise GeneratorExit

    with pytest.raises(GeneratorExit):
        asyncio.run(main())
    run = last_run(ledger)
    assert run.status == "cancelled"
    response: Any = run.models[-1].response
    assert response["abandoned"] is True
    assert response["parts"][0]["content"].startswith("Approved.")
    assert "decided" not in response["parts"][0]["content"]


def test_parallel_tools_are_told_apart(ledger: woodrat.Ledger) -> None:
    """Two calls of one answer are two steps, each with its own arguments and result."""

    def twice(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("double", {"number": 1}), ToolCallPart("double", {"number": 2})])

    agent = officer(ledger, twice)

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    add_tool(agent, double)

    agent.run_sync(QUESTION)
    assert sorted((str(call.args), call.result) for call in last_run(ledger).tool_calls) == [
        ("{'number': 1}", 2),
        ("{'number': 2}", 4),
    ]


def test_an_agent_inside_a_tool_is_recorded_inside_that_step(ledger: woodrat.Ledger) -> None:
    """What a delegate does is part of the run, below the step of the tool that calls it."""

    def delegates(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"It says: {last.content}")])
        return ModelResponse(parts=[ToolCallPart("ask", {"question": QUESTION})])

    inner, outer = officer(ledger), officer(ledger, delegates)

    async def ask(question: str) -> str:
        return str((await inner.run(question)).output)

    add_tool(outer, ask)

    outer.run_sync(QUESTION)
    assert len(ledger.runs.list().items) == 1
    run = last_run(ledger)
    assert run.answer == "It says: Rejected."
    calls = {call.name: call for call in run.tool_calls}
    assert calls["bureau"].under == calls["ask"].span
    assert [model.under for model in sorted(run.models, key=lambda model: model.step)] == [
        None,
        calls["ask"].span,
        calls["ask"].span,
        None,
    ]


def test_retries_of_tools_are_recorded_and_replayed(ledger: woodrat.Ledger) -> None:
    """A tool that asks the model to try again is a call that failed, and does so again in a replay."""

    def tries(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 5:
            return ModelResponse(parts=[TextPart(messages[-1].parts[-1].content)])  # type: ignore[union-attr, arg-type]
        return ModelResponse(parts=[ToolCallPart("even", {"number": 1 if len(messages) == 1 else 2})])

    def made(reply: Reply) -> Any:
        agent = officer(None, reply)

        def even(number: int) -> str:
            if number % 2:
                raise ModelRetry("send an even number")
            return "thanks"

        add_tool(agent, even)

        return agent

    recorded = made(tries)

    async def agent(run: woodrat.Run) -> Any:
        return (await recorded.run(QUESTION)).output

    async def main() -> str:
        async with ledger.run(QUESTION) as run:
            run.answer(await agent(run))
        return run.id

    run = asyncio.run(main())
    shown = ledger.runs.show(run)
    assert [call.errored for call in shown.tool_calls] == [True, False]
    assert "send an even number" in str(shown.tool_calls[0].error)
    assert shown.answer == "thanks"
    recorded = made(refuses)
    replayed = ledger.runs.replay(run, agent)
    assert replayed.same, replayed.table()


def test_structured_answers_are_recorded(ledger: woodrat.Ledger) -> None:
    """The answer of a run is what the agent returns, as JSON."""

    class Verdict(BaseModel):
        approved: bool

    def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"approved": True})])

    agent = Agent(FunctionModel(answers), output_type=Verdict, capabilities=[woodrat.pydantic_ai.capability(ledger)])
    assert agent.run_sync(QUESTION).output == Verdict(approved=True)
    assert last_run(ledger).answer == {"approved": True}


def test_errors_reach_the_caller_unchanged(ledger: woodrat.Ledger) -> None:
    """An error of a tool and of a model is recorded with its step, ends the run and is raised as it was."""
    problem = ValueError("the bureau is closed")
    agent = officer(ledger, lambda messages, info: ModelResponse(parts=[ToolCallPart("closed", {})]))

    def closed() -> str:
        raise problem

    add_tool(agent, closed)

    with pytest.raises(ValueError, match="the bureau is closed") as caught:
        agent.run_sync(QUESTION)
    assert caught.value is problem
    run = last_run(ledger)
    assert (run.status, run.tool_calls[0].errored) == ("error", True)

    def fails(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise UnexpectedModelBehavior("nonsense")

    with pytest.raises(UnexpectedModelBehavior, match="nonsense"):
        officer(ledger, fails).run_sync(QUESTION)
    assert last_run(ledger).models[0].errored


def test_an_agent_behaves_the_same_when_recording_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that fails at every step changes no answer; the run names the problem."""
    SCORES["creditScore"] = 580
    ledger = woodrat.open(":memory:")

    def fails(*arguments: Any, **given: Any) -> Any:
        raise RuntimeError("the recorder is broken")

    with ledger.run(QUESTION) as run, warnings.catch_warnings():
        warnings.simplefilter("ignore", woodrat.RecordingWarning)
        for name in ("model", "tool"):
            monkeypatch.setattr(run, name, fails)
        assert officer(None).run_sync(QUESTION).output == "Rejected."
    assert "the recorder is broken" in str(run.problems[0])
    monkeypatch.setattr(woodrat.Run, "start", fails)
    with pytest.warns(woodrat.RecordingWarning, match="the recorder is broken"):
        assert officer(woodrat.open(":memory:")).run_sync(QUESTION).output == "Rejected."


def test_without_ledger_and_run_nothing_is_recorded(ledger: woodrat.Ledger) -> None:
    """A capability that has nowhere to record changes nothing."""
    assert officer(None).run_sync(QUESTION).output == "Rejected."
    assert ledger.runs.list().items == ()


def test_training_rows_hold_the_conversation(ledger: woodrat.Ledger) -> None:
    """The row of a run has the turns that the framework's model saw and said, and the tool as it was described."""
    officer(ledger).run_sync(QUESTION)
    out = io.StringIO()
    ledger.training.export("sft", out=out)
    row = json.loads(out.getvalue())
    turns = [
        (m["role"], m.get("content"), [c["function"]["name"] for c in m.get("tool_calls", ())]) for m in row["messages"]
    ]
    assert turns == [
        ("user", QUESTION, []),
        ("assistant", None, ["bureau"]),
        ("tool", '{"creditScore": 580}', []),
        ("assistant", "Rejected.", []),
    ]
    (tool,) = json.loads(row["tools"])
    assert tool["function"]["name"] == "bureau"
    assert tool["function"]["description"] == "Return what the credit bureau says."
    assert set(tool["function"]["parameters"]["properties"]) == {"application"}

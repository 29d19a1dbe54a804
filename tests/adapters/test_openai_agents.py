"""The recorder of the OpenAI Agents SDK, with the real framework and models that a test scripts."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    OutputGuardrail,
    RunHooks,
    Runner,
    function_tool,
    set_trace_processors,
    set_tracing_disabled,
)
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage

import woodrat

QUESTION = "Should we approve application #42?"
SCORES = {"creditScore": 580}


@pytest.fixture(autouse=True)
def offline() -> Iterator[None]:
    """Keep the SDK's own tracing from sending anything anywhere."""
    set_trace_processors([])
    set_tracing_disabled(True)
    SCORES["creditScore"] = 580
    yield
    set_tracing_disabled(True)


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """A ledger in memory; a problem of recording fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", woodrat.RecordingWarning)
        yield woodrat.open(":memory:", agent="loan-officer")


@function_tool
def bureau(application: int) -> dict[str, int]:
    """Return what the credit bureau says."""
    return dict(SCORES)


def calls(*called: tuple[str, dict[str, Any]]) -> ModelStep:
    """Return an answer that asks for tools, under ids that are new every time."""
    items = [function_call(name, given, call_id=f"call_{uuid.uuid4().hex}") for name, given in called]
    return ModelStep(output=items, usage=Usage(requests=1, input_tokens=7, output_tokens=3, total_tokens=10))


def says(text: str) -> ModelStep:
    """Return an answer of text."""
    return ModelStep(output=[assistant_message(text, item_id=f"msg_{uuid.uuid4().hex}")])


def decide(call: ModelCall) -> ModelStep:
    """Decide by the score that the tool returned."""
    items: Any = call.input
    return says("Rejected." if ast.literal_eval(items[-1]["output"])["creditScore"] < 600 else "Approved.")


def last_output(call: ModelCall) -> ModelStep:
    """Answer with what the last tool returned."""
    items: Any = call.input
    return says(f"It says: {items[-1]['output']}")


def scripted(*steps: ModelStep | Callable[[ModelCall], ModelStep]) -> ScriptedModel:
    """Return a model that answers by a script."""
    return ScriptedModel([step if isinstance(step, ModelStep) else ModelStep.respond(step) for step in steps])


def officer(*tools: Any, model: ScriptedModel | None = None, **given: Any) -> Agent[Any]:
    """Return an agent that looks the score up and decides."""
    script = scripted(calls(("bureau", {"application": 42})), decide) if model is None else model
    return Agent(name="officer", instructions="Be brief.", model=script, tools=list(tools) or [bureau], **given)


def desk() -> Agent[Any]:
    """Return an agent that hands over to the officer."""
    return Agent(name="desk", model=scripted(calls(("transfer_to_officer", {}))), handoffs=[officer()])


def last_run(ledger: woodrat.Ledger) -> woodrat.RunRecord:
    """Return the run that was recorded last."""
    return ledger.runs.show(ledger.runs.list(limit=1).items[0].id)


async def read_stream(recorder: Any, agent: Agent[Any]) -> None:
    """Run an agent streamed, and read all of it."""
    async for _ in recorder.run_streamed(agent, QUESTION).stream_events():
        pass


RUNNERS: list[Callable[[Any, Agent[Any]], Any]] = [
    lambda recorder, agent: recorder.run_sync(agent, QUESTION),
    lambda recorder, agent: asyncio.run(recorder.run(agent, QUESTION)),
    lambda recorder, agent: asyncio.run(read_stream(recorder, agent)),
]


@pytest.mark.parametrize("runner", RUNNERS, ids=["run_sync", "run", "run_streamed"])
def test_agents_are_a_run(ledger: woodrat.Ledger, runner: Any) -> None:
    """Question, models with tokens, tool, the handoff as a decision and the answer are recorded; the fact is named."""
    recorder = woodrat.openai_agents.recorder(ledger, subject="loan/42")
    ids = []
    for score in (580, 580, 640):
        SCORES["creditScore"] = score
        runner(recorder, desk())
        ids.append(last_run(ledger).id)
    run = ledger.runs.show(ids[0])
    assert (run.query, run.answer, run.status, run.subject) == (QUESTION, "Rejected.", "done", "loan/42")
    (call,) = run.tool_calls
    assert (call.name, call.args, call.result) == ("bureau", {"application": 42}, {"creditScore": 580})
    assert [model.model for model in run.models] == ["ScriptedModel"] * 3
    assert (run.models[0].input_tokens, run.models[0].output_tokens) == (7, 3)
    asked: Any = run.models[1].messages
    assert asked[0] == {"role": "system", "content": "Be brief."}
    (made,) = run.decisions
    assert made.chosen_by is not None
    assert made.chosen_by["model"] == run.models[0].model
    assert (made.stage, made.chosen, made.rationale) == ("handoff from desk", "officer", "by the model of desk")
    assert ledger.runs.diff(ids[0], ids[1]).same
    sentence = ledger.runs.diff(ids[0], ids[2]).sentence
    assert "bureau" in sentence
    assert "creditScore=580" in sentence
    assert "creditScore=640" in sentence


def guarded_officer(limit: int) -> Agent[Any]:
    """Return an agent with a guardrail for its input and one for its output."""

    async def polite(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput({"length": len(str(given))}, len(str(given)) > limit)

    async def short(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput({"words": 1}, False)

    first = InputGuardrail(polite, run_in_parallel=False)
    return officer(input_guardrails=[first], output_guardrails=[OutputGuardrail(short)])


def test_guardrails_are_decisions(ledger: woodrat.Ledger) -> None:
    """A guardrail that passes and one that trips are decisions, with what they went by; the exception stays."""
    recorder = woodrat.openai_agents.recorder(ledger)
    recorder.run_sync(guarded_officer(100), QUESTION)
    made = {decision.stage: decision for decision in last_run(ledger).decisions}
    assert {stage: decision.chosen for stage, decision in made.items()} == {
        "guardrail polite": "passed",
        "guardrail short": "passed",
    }
    assert made["guardrail polite"].facts == {"output_info": {"length": len(QUESTION)}}
    with pytest.raises(InputGuardrailTripwireTriggered):
        recorder.run_sync(guarded_officer(3), QUESTION)
    run = last_run(ledger)
    assert run.status == "error"
    assert [(decision.stage, decision.chosen) for decision in run.decisions] == [("guardrail polite", "tripped")]


def test_agents_inside_a_run_are_part_of_it(ledger: woodrat.Ledger) -> None:
    """Where a run is current the steps go there, with or without a ledger; nothing else is begun or ended."""
    with ledger.run("the whole") as run:
        woodrat.openai_agents.recorder(ledger).run_sync(officer(), QUESTION)
        woodrat.openai_agents.recorder().run_sync(officer(), QUESTION)
        run.answer("all of it")
    assert len(ledger.runs.list().items) == 1
    shown = ledger.runs.show(run.id)
    assert (shown.answer, len(shown.models), len(shown.tool_calls)) == ("all of it", 4, 2)


def test_without_ledger_and_run_nothing_is_recorded(ledger: woodrat.Ledger) -> None:
    """A recorder that has nowhere to record changes nothing."""
    assert woodrat.openai_agents.recorder().run_sync(officer(), QUESTION).final_output == "Rejected."
    assert ledger.runs.list().items == ()


def test_parallel_tools_are_told_apart(ledger: woodrat.Ledger) -> None:
    """Two calls of one answer are two steps, each with its own arguments and result."""

    @function_tool
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    model = scripted(calls(("double", {"number": 1}), ("double", {"number": 2})), says("done"))
    woodrat.openai_agents.recorder(ledger).run_sync(officer(double, model=model), QUESTION)
    found = sorted((str(call.args), str(call.result)) for call in last_run(ledger).tool_calls)
    assert found == [("{'number': 1}", "2"), ("{'number': 2}", "4")]


def test_an_agent_as_a_tool_is_recorded_inside_that_step(ledger: woodrat.Ledger) -> None:
    """What a nested agent does is below the step of the tool that it is, when it is given the recorder as hooks."""
    recorder = woodrat.openai_agents.recorder(ledger)
    ask = officer().as_tool("ask_officer", "Ask the officer.", hooks=recorder)
    model = scripted(calls(("ask_officer", {"input": QUESTION})), last_output)
    recorder.run_sync(Agent(name="desk", model=model, tools=[ask]), QUESTION)
    run = last_run(ledger)
    assert run.answer == "It says: Rejected."
    found = {call.name: call for call in run.tool_calls}
    assert found["bureau"].under == found["ask_officer"].span
    assert [model.under for model in sorted(run.models, key=lambda model: model.step)] == [
        None,
        found["ask_officer"].span,
        found["ask_officer"].span,
        None,
    ]


def test_hooks_of_the_caller_are_called_too(ledger: woodrat.Ledger) -> None:
    """The caller's own hooks hear all that they would hear without the recorder."""
    heard: list[str] = []

    class Listening(RunHooks[Any]):
        async def on_llm_start(self, *told: Any) -> None:
            heard.append("asked")

        async def on_tool_end(self, *told: Any) -> None:
            heard.append("called")

        async def on_agent_end(self, *told: Any) -> None:
            heard.append("ended")

    woodrat.openai_agents.recorder(ledger).run_sync(officer(), QUESTION, hooks=Listening())
    assert heard == ["asked", "called", "asked", "ended"]
    assert len(last_run(ledger).models) == 2


@pytest.mark.parametrize("traced", [True, False])
def test_a_tool_that_fails_is_recorded_as_such(ledger: woodrat.Ledger, traced: bool) -> None:
    """Where the model is told of the error and the agent goes on, the call of the tool is one that failed."""
    set_tracing_disabled(not traced)

    def closed(application: int) -> str:
        raise ValueError("the bureau is closed")

    tool = function_tool(closed, failure_error_function=lambda context, error: str(error)) if traced else None
    model = scripted(calls(("closed", {"application": 42})), says("Nobody knows."))
    woodrat.openai_agents.recorder(ledger).run_sync(officer(tool or function_tool(closed), model=model), QUESTION)
    run = last_run(ledger)
    assert (run.status, run.answer, run.tool_calls[0].errored) == ("done", "Nobody knows.", True)
    assert ("the bureau is closed" if traced else "An error occurred") in str(run.tool_calls[0].error)


def test_errors_reach_the_caller_unchanged(ledger: woodrat.Ledger) -> None:
    """An error of a tool or a model that ends the run is recorded with its step, and raised as it would be."""

    def closed(application: int) -> str:
        raise ValueError("the bureau is closed")

    tool = function_tool(closed, failure_error_function=None)
    broken = RuntimeError("no model today")
    for agent, expected in (
        (officer(tool, model=scripted(calls(("closed", {"application": 42})))), "the bureau is closed"),
        (officer(model=scripted(ModelStep.raise_error(broken))), "no model today"),
    ):
        with pytest.raises(Exception, match=expected) as plain:
            Runner.run_sync(Agent(**{**vars(agent), "model": scripted(*_steps_of(agent, broken))}), QUESTION)
        with pytest.raises(Exception, match=expected) as recorded:
            woodrat.openai_agents.recorder(ledger).run_sync(agent, QUESTION)
        assert type(recorded.value) is type(plain.value)
        run = last_run(ledger)
        assert run.status == "error"
        assert any([call.errored for call in run.tool_calls] + [model.errored for model in run.models])


def _steps_of(agent: Agent[Any], broken: Exception) -> list[ModelStep]:
    has_tool = any(tool.name == "closed" for tool in agent.tools)
    return [calls(("closed", {"application": 42}))] if has_tool else [ModelStep.raise_error(broken)]


def test_a_stream_that_is_cancelled_is_recorded_as_far_as_it_was_read(ledger: woodrat.Ledger) -> None:
    """What the reader saw of a model's answer is recorded, marked as abandoned; the run is cancelled."""
    words = "one two three four"

    async def main() -> None:
        gate = asyncio.Event()

        async def slowly(call: ModelCall) -> Any:
            source = ScriptedModel([ModelStep(output=[assistant_message(words)])])
            events = source.stream_response(
                None, "x", call.model_settings, [], None, [], call.tracing,
                previous_response_id=None, conversation_id=None, prompt=None,
            )  # fmt: skip
            async for event in events:
                yield event
                if event.type == "response.output_text.delta":
                    await gate.wait()

        model = ScriptedModel([ModelStep.stream(slowly)])
        result = woodrat.openai_agents.recorder(ledger).run_streamed(officer(model=model), QUESTION)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                result.cancel()

    asyncio.run(main())
    run = last_run(ledger)
    assert run.status == "cancelled"
    (model,) = run.models
    response: Any = model.response
    assert (model.errored, response["abandoned"]) == (False, True)
    assert response["output"][0]["content"][0]["text"].startswith("one")


def test_a_stream_that_is_left_is_recorded_when_its_agents_are_done(ledger: woodrat.Ledger) -> None:
    """The SDK goes on after the reader has left; the run has all that it did."""

    async def main() -> None:
        result = woodrat.openai_agents.recorder(ledger).run_streamed(officer(), QUESTION)
        events = result.stream_events()
        await anext(events)
        await events.aclose()
        await result.run_loop_task

    asyncio.run(main())
    run = last_run(ledger)
    assert (run.status, run.answer, len(run.models), len(run.tool_calls)) == ("done", "Rejected.", 2, 1)


def test_a_replay_runs_the_agents_again_and_compares(ledger: woodrat.Ledger) -> None:
    """Unchanged, it is the same; where a tool returns something else, the replay says so."""

    async def agent(run: woodrat.Run) -> Any:
        return (await woodrat.openai_agents.recorder().run(desk(), QUESTION)).final_output

    async def main() -> str:
        async with ledger.run(QUESTION) as run:
            run.answer(await agent(run))
        return run.id

    run = asyncio.run(main())
    replayed = ledger.runs.replay(run, agent)
    assert replayed.same, replayed.table()
    SCORES["creditScore"] = 640
    assert not ledger.runs.replay(run, agent).same


def test_agents_behave_the_same_when_recording_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that fails at every step changes no answer; the run names the problem."""
    ledger = woodrat.open(":memory:")

    def fails(*arguments: Any, **given: Any) -> Any:
        raise RuntimeError("the recorder is broken")

    with ledger.run(QUESTION) as run, warnings.catch_warnings():
        warnings.simplefilter("ignore", woodrat.RecordingWarning)
        for name in ("model", "tool", "decide", "decided"):
            monkeypatch.setattr(run, name, fails, raising=False)
        assert woodrat.openai_agents.recorder().run_sync(desk(), QUESTION).final_output == "Rejected."
    assert "the recorder is broken" in str(run.problems[0])
    monkeypatch.setattr(woodrat.Run, "start", fails)
    with pytest.warns(woodrat.RecordingWarning, match="the recorder is broken"):
        result = woodrat.openai_agents.recorder(woodrat.open(":memory:")).run_sync(desk(), QUESTION)
    assert result.final_output == "Rejected."


def test_training_rows_hold_the_conversation(ledger: woodrat.Ledger) -> None:
    """The row of a run has the turns that the framework's model saw and said, and the tool as it was described."""
    woodrat.openai_agents.recorder(ledger).run_sync(officer(), QUESTION)
    out = io.StringIO()
    ledger.training.export("sft", out=out)
    row = json.loads(out.getvalue())
    turns = [
        (m["role"], m.get("content"), [c["function"]["name"] for c in m.get("tool_calls", ())]) for m in row["messages"]
    ]
    assert turns == [
        ("system", "Be brief.", []),
        ("user", QUESTION, []),
        ("assistant", None, ["bureau"]),
        ("tool", "{'creditScore': 580}", []),
        ("assistant", "Rejected.", []),
    ]
    (tool,) = json.loads(row["tools"])
    assert tool["function"]["name"] == "bureau"
    assert tool["function"]["description"] == "Return what the credit bureau says."
    assert set(tool["function"]["parameters"]["properties"]) == {"application"}

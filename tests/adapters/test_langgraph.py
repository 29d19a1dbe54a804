"""The recorder of LangGraph, with the real framework and a model that a test scripts."""

from __future__ import annotations

import asyncio
import io
import json
import operator
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

import woodrat

QUESTION = "Should we approve application #42?"
SCORES = {"creditScore": 580}


class Scripted(BaseChatModel):
    """A model that answers by a function, word by word where it is streamed."""

    reply: Callable[[list[BaseMessage]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *given: Any, **about: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def _stream(self, messages: list[BaseMessage], *given: Any, **about: Any) -> Iterator[ChatGenerationChunk]:
        for word in str(self.reply(messages).content).split():
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))


def asks(*called: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return a message that asks for tools, under ids that are new every time."""
    return AIMessage(
        "",
        tool_calls=[{"name": name, "args": args, "id": f"call_{uuid.uuid4().hex}"} for name, args in called],
        usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
    )


def decides(messages: list[BaseMessage]) -> AIMessage:
    """Look the score up, then decide by it."""
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return AIMessage("Rejected." if "580" in str(last.content) else "Approved.")
    return asks(("bureau", {"application": 42}))


@tool
def bureau(application: int) -> dict[str, int]:
    """Return what the credit bureau says."""
    return dict(SCORES)


def agent_graph(reply: Callable[[list[BaseMessage]], AIMessage] = decides, *tools: Any) -> Any:
    """Return a graph that asks a model and calls its tools, in turn."""
    model = Scripted(reply=reply)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode(list(tools) or [bureau], handle_tool_errors=False))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile()


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """A ledger in memory; a problem of recording fails the test."""
    SCORES["creditScore"] = 580
    with warnings.catch_warnings():
        warnings.simplefilter("error", woodrat.RecordingWarning)
        yield woodrat.open(":memory:", agent="loan-officer")


def invoke(graph: Any, ledger: woodrat.Ledger | None, inputs: Any = None, **about: Any) -> Any:
    """Run a graph with a recorder."""
    given = {"messages": [HumanMessage(QUESTION)]} if inputs is None else inputs
    return graph.invoke(given, config={"callbacks": [woodrat.langgraph.callback(ledger, **about)]})


def last_run(ledger: woodrat.Ledger) -> woodrat.RunRecord:
    """Return the run that was recorded last."""
    return ledger.runs.show(ledger.runs.list(limit=1).items[0].id)


def test_a_graph_is_a_run(ledger: woodrat.Ledger) -> None:
    """Question, models with tokens, the tool under its own name, routes as decisions and the answer are recorded."""
    invoke(agent_graph(), ledger, subject="loan/42")
    run = last_run(ledger)
    assert (run.query, run.answer, run.status, run.subject) == (QUESTION, "Rejected.", "done", "loan/42")
    assert [(call.name, call.args, call.result) for call in run.tool_calls] == [
        ("bureau", {"application": 42}, {"creditScore": 580})
    ]
    assert [model.model for model in run.models] == ["Scripted", "Scripted"]
    assert (run.models[0].input_tokens, run.models[0].output_tokens) == (7, 3)
    assert run.models[0].messages == [{"role": "user", "content": QUESTION}]
    assert [(made.stage, made.chosen, made.rationale) for made in run.decisions] == [
        ("route from ask", "tools", "by tools_condition"),
        ("route from ask", "__end__", "by tools_condition"),
    ]
    assert run.decisions[0].facts == {"messages.last": ["bureau"]}
    assert [(made.chosen_by or {}).get("span") for made in run.decisions] == [call.span for call in run.models]


def test_a_changed_fact_is_named(ledger: woodrat.Ledger) -> None:
    """Of two runs whose tool returned something else, `runs diff` names that; two equal runs are the same."""
    graph = agent_graph()
    ids = []
    for score in (580, 580, 640):
        SCORES["creditScore"] = score
        invoke(graph, ledger)
        ids.append(last_run(ledger).id)
    assert ledger.runs.diff(ids[0], ids[1]).same
    sentence = ledger.runs.diff(ids[0], ids[2]).sentence
    assert "bureau" in sentence
    assert "creditScore=580" in sentence
    assert "creditScore=640" in sentence


def test_a_graph_inside_a_run_is_part_of_it(ledger: woodrat.Ledger) -> None:
    """Where a run is current the steps go there, with or without a ledger; nothing else is begun or ended."""
    with ledger.run("the whole") as run:
        invoke(agent_graph(), ledger)
        invoke(agent_graph(), None)
        run.answer("all of it")
    assert len(ledger.runs.list().items) == 1
    shown = ledger.runs.show(run.id)
    assert (shown.answer, len(shown.models), len(shown.tool_calls)) == ("all of it", 4, 2)


def test_without_ledger_and_run_nothing_is_recorded(ledger: woodrat.Ledger) -> None:
    """A callback that has nowhere to record changes nothing."""
    assert invoke(agent_graph(), None)["messages"][-1].content == "Rejected."
    assert ledger.runs.list().items == ()


class Loan(TypedDict, total=False):
    """A state of plain values."""

    score: int
    path: Annotated[list[str], operator.add]
    text: str


def test_commands_sends_and_mapped_routes_are_decisions(ledger: woodrat.Ledger) -> None:
    """Each way to go on is a decision: its stage is the node, its facts the values of the state."""

    def classify(state: Loan) -> Command[Any]:
        return Command(goto="low" if state["score"] < 600 else "high", update={"path": ["classify"]})

    def passed(name: str) -> Any:
        return lambda state: {"path": [name]}

    def fan_out(state: Loan) -> list[Send]:
        return [Send("letter", state), Send("mail", state)]

    graph = StateGraph(Loan)
    graph.add_node("classify", classify, destinations=("low", "high"))
    for name in ("low", "high", "letter", "mail"):
        graph.add_node(name, passed(name))
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("low", fan_out, ["letter", "mail"])
    graph.add_conditional_edges("high", lambda state: state["score"] > 800, {True: END, False: "mail"})
    compiled = graph.compile()
    invoke(compiled, ledger, {"score": 580})
    run = last_run(ledger)
    assert [(made.stage, made.chosen) for made in run.decisions] == [
        ("route from classify", "low"),
        ("route from low", ["letter", "mail"]),
    ]
    assert run.decisions[0].facts == {"path": ["classify"], "score": 580}
    assert run.decisions[0].facts_origin["score"]["kind"] == "input"
    invoke(compiled, ledger, {"score": 700})
    assert [made.chosen for made in last_run(ledger).decisions] == ["high", "False"]


class LoanModel(BaseModel):
    """A state that is a model."""

    score: int = 0
    text: str = ""


@dataclass
class LoanRecord:
    """A state that is a dataclass, with a value that is no JSON."""

    score: int = 0
    text: str = ""
    handle: object = field(default_factory=object)


@pytest.mark.parametrize("kind", [LoanModel, LoanRecord])
def test_states_of_any_kind_are_facts(ledger: woodrat.Ledger, kind: Any) -> None:
    """Routes over models and dataclasses have their values as facts, whatever those are."""
    graph: Any = StateGraph(kind)
    graph.add_node("look", lambda state: {"text": "seen"})
    graph.add_node("high", lambda state: Command(goto=END, update={"text": "high"}))
    graph.add_edge(START, "look")
    graph.add_conditional_edges("look", lambda state: "high" if state.score > 600 else END)
    invoke(graph.compile(), ledger, {"score": 700})
    first, second = last_run(ledger).decisions
    assert (first.chosen, first.facts["score"], first.facts["text"]) == ("high", 700, "seen")
    assert (second.chosen, second.facts["text"]) == ("__end__", "high")


def test_a_graph_that_waits_for_a_person_is_two_runs(ledger: woodrat.Ledger) -> None:
    """What comes before an interrupt is a run, and what a person's answer sets off is another."""
    graph: Any = StateGraph(Loan)
    graph.add_node("ask", lambda state: {"text": interrupt("sure?")})
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}, "callbacks": [woodrat.langgraph.callback(ledger)]}
    compiled.invoke({"score": 1}, config)
    compiled.invoke(Command(resume="yes"), config)
    second, first = (ledger.runs.show(run.id) for run in ledger.runs.list().items)
    assert (first.query, first.status, first.decisions) == ('{"score": 1}', "done", ())
    assert (second.inputs, second.answer) == ({"resume": "yes"}, {"path": [], "score": 1, "text": "yes"})
    assert [made.chosen for made in second.decisions] == ["__end__"]


def test_parts_of_a_node_are_no_routes(ledger: woodrat.Ledger) -> None:
    """A chain that is a node, with parts that return text, decides nothing."""
    model = Scripted(reply=lambda messages: AIMessage("fine"))
    shout: Any = RunnableLambda(lambda text: str(text).upper())
    chain = (
        RunnableLambda(lambda state: [HumanMessage("x")]) | model | StrOutputParser() | shout | (lambda t: {"text": t})
    )
    graph = StateGraph(Loan)
    graph.add_node("chain", chain)
    graph.add_edge(START, "chain")
    assert invoke(graph.compile(), ledger, {"score": 1})["text"] == "FINE"
    run = last_run(ledger)
    assert (run.decisions, len(run.models)) == ((), 1)


def test_parallel_tools_are_told_apart(ledger: woodrat.Ledger) -> None:
    """Two calls of one answer are two steps, each with its own arguments and result."""

    @tool
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    def twice(messages: list[BaseMessage]) -> AIMessage:
        done = isinstance(messages[-1], ToolMessage)
        return AIMessage("done") if done else asks(("double", {"number": 1}), ("double", {"number": 2}))

    invoke(agent_graph(twice, double), ledger)
    assert sorted((str(call.args), call.result) for call in last_run(ledger).tool_calls) == [
        ("{'number': 1}", "2"),
        ("{'number': 2}", "4"),
    ]


def test_a_graph_inside_a_tool_is_recorded_inside_that_step(ledger: woodrat.Ledger) -> None:
    """What a nested agent does is part of the run, below the step of the tool that it is."""

    @tool
    def officer(question: str) -> str:
        """Ask another agent."""
        return str(agent_graph().invoke({"messages": [HumanMessage(question)]})["messages"][-1].content)

    def delegates(messages: list[BaseMessage]) -> AIMessage:
        done = isinstance(messages[-1], ToolMessage)
        return AIMessage(f"It says: {messages[-1].content}") if done else asks(("officer", {"question": QUESTION}))

    invoke(agent_graph(delegates, officer), ledger)
    run = last_run(ledger)
    assert run.answer == "It says: Rejected."
    outer, inner = sorted(run.tool_calls, key=lambda call: call.name, reverse=True)
    assert (outer.name, inner.name, inner.under) == ("officer", "bureau", outer.span)
    assert [model.under for model in sorted(run.models, key=lambda model: model.step)] == [
        None,
        outer.span,
        outer.span,
        None,
    ]


def test_async_graphs_and_streams_are_recorded(ledger: woodrat.Ledger) -> None:
    """`ainvoke`, `stream` and `astream` leave the same run as `invoke`."""
    recorder = woodrat.langgraph.callback(ledger)
    given: Any = {"messages": [HumanMessage(QUESTION)]}

    async def read() -> None:
        await agent_graph().ainvoke(given, config={"callbacks": [recorder]})
        async for _ in agent_graph().astream(given, config={"callbacks": [recorder]}):
            pass

    invoke(agent_graph(), ledger)
    list(agent_graph().stream(given, config={"callbacks": [recorder]}))
    asyncio.run(read())
    runs = [run.id for run in ledger.runs.list().items]
    assert len(runs) == 4
    assert all(ledger.runs.diff(runs[0], other).same for other in runs[1:])


def test_a_replay_runs_the_graph_again_and_compares(ledger: woodrat.Ledger) -> None:
    """Unchanged, it is the same; where a tool returns something else, the replay says so."""

    def agent(run: woodrat.Run) -> Any:
        return invoke(agent_graph(), None)["messages"][-1].content

    with ledger.run(QUESTION) as run:
        run.answer(agent(run))
    replayed = ledger.runs.replay(run.id, agent)
    assert replayed.same, replayed.table()
    SCORES["creditScore"] = 640
    assert not ledger.runs.replay(run.id, agent).same


def test_many_graphs_at_once_share_a_recorder(ledger: woodrat.Ledger) -> None:
    """Each of several graphs that run at the same time has its own run, whole."""
    recorder = woodrat.langgraph.callback(ledger)
    graph = agent_graph()

    async def all_at_once() -> None:
        given: Any = {"messages": [HumanMessage(QUESTION)]}
        await asyncio.gather(*(graph.ainvoke(given, config={"callbacks": [recorder]}) for _ in range(5)))

    asyncio.run(all_at_once())
    runs = [ledger.runs.show(run.id) for run in ledger.runs.list().items]
    assert [(run.status, len(run.models), len(run.tool_calls)) for run in runs] == [("done", 2, 1)] * 5


def test_an_abandoned_stream_is_recorded(ledger: woodrat.Ledger) -> None:
    """Of a model whose words nobody reads on, those that were read are recorded; a graph left early is cancelled."""
    model = Scripted(reply=lambda messages: AIMessage("one two three four"))
    with ledger.run(QUESTION) as run:
        words = model.stream([HumanMessage("x")], config={"callbacks": [woodrat.langgraph.callback()]})
        assert next(words).content == "one "
        words.close()  # type: ignore[attr-defined]
    (called,) = ledger.runs.show(run.id).models
    assert called.response == {"role": "assistant", "content": "one ", "abandoned": True}
    steps = agent_graph().stream(
        {"messages": [HumanMessage(QUESTION)]}, config={"callbacks": [woodrat.langgraph.callback(ledger)]}
    )
    next(steps)
    steps.close()
    left = last_run(ledger)
    assert (left.status, len(left.models)) == ("cancelled", 1)


def test_errors_reach_the_caller_unchanged(ledger: woodrat.Ledger) -> None:
    """An error of a tool or a model is recorded with its step, ends the run, and is the very object that is raised."""
    problem = ValueError("the bureau is closed")

    @tool
    def closed(application: int) -> str:
        """Fail."""
        raise problem

    with pytest.raises(ValueError, match="the bureau is closed") as caught:
        invoke(agent_graph(lambda messages: asks(("closed", {"application": 42})), closed), ledger)
    assert caught.value is problem
    run = last_run(ledger)
    assert run.status == "error"
    assert run.tool_calls[0].errored

    def fails(messages: list[BaseMessage]) -> AIMessage:
        raise problem

    with pytest.raises(ValueError, match="the bureau is closed"):
        invoke(agent_graph(fails), ledger)
    assert last_run(ledger).models[0].errored


def test_a_graph_behaves_the_same_when_recording_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that fails at every step changes no answer and no error; the run names the problem."""
    SCORES["creditScore"] = 580
    ledger = woodrat.open(":memory:")

    def fails(*arguments: Any, **given: Any) -> Any:
        raise RuntimeError("the recorder is broken")

    with ledger.run(QUESTION) as run, warnings.catch_warnings():
        warnings.simplefilter("ignore", woodrat.RecordingWarning)
        for name in ("model", "tool", "decide", "decided"):
            monkeypatch.setattr(run, name, fails, raising=False)
        assert invoke(agent_graph(), None)["messages"][-1].content == "Rejected."
    assert "the recorder is broken" in str(run.problems[0])
    broken = woodrat.open(":memory:")
    monkeypatch.setattr(woodrat.Run, "start", fails)
    with pytest.warns(woodrat.RecordingWarning, match="the recorder is broken"):
        assert invoke(agent_graph(), broken)["messages"][-1].content == "Rejected."


def test_the_callback_is_one_of_langchain() -> None:
    """It can be given wherever LangChain takes a callback."""
    assert isinstance(woodrat.langgraph.callback(), BaseCallbackHandler)


def test_training_rows_hold_the_conversation(ledger: woodrat.Ledger) -> None:
    """The row of a run has the turns that the framework's model saw and said."""
    invoke(agent_graph(), ledger)
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

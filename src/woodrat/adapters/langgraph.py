"""LangGraph: a callback that records a graph as a run, and each of its routes as a decision.

    graph.invoke(inputs, config={"callbacks": [woodrat.langgraph.callback(ledger)]})

It also records LangChain calls without a graph. Ids that LangGraph generates for messages are not recorded, so that
they cause no divergence between two runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.types import Command, Send

import woodrat
from woodrat.adapters.step import RecordedCall, begun, call_name, choose, guarded, parsed, tool_step

_ROLES: Final = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
"""What everybody else calls the kinds of messages."""
_NO_PARAMETERS: Final = ("model", "model_name", "_type")
"""Members that describe a model besides its parameters."""


def callback(ledger: woodrat.Ledger | None = None, **about: Any) -> BaseCallbackHandler:
    """Return a callback that records graphs in the current run, or each graph in a separate run.

    A separate run needs a `ledger`; `about` is passed to `ledger.run` (`subject`, `conversation`, `principal`, …).
    One callback may serve any number of graphs at the same time.
    """
    return GraphRecorder(ledger, about)


class ChainCall:
    """One LangChain call and its place: its run, its parent call, and its step."""

    def __init__(self, run: woodrat.Run, around: ChainCall | None, name: str | None, inputs: Any) -> None:
        self.run = run
        self.around = around
        self.name = name
        """What LangChain calls it."""
        self.inputs = inputs
        """Its inputs."""
        self.node: str | None = None
        """The node of the graph that runs this code."""
        self.route_of: str | None = None
        """The node after which it chooses where to go."""
        self.step: RecordedCall | None = None
        """Its step, where it has one."""

    def step_around(self) -> RecordedCall | None:
        """Return the innermost step it is inside of."""
        place = self.around
        while place is not None and place.step is None:
            place = place.around
        return None if place is None else place.step


class GraphRecorder(BaseCallbackHandler):
    """Records LangChain's callback events."""

    def __init__(self, ledger: woodrat.Ledger | None, about: Mapping[str, Any]) -> None:
        super().__init__()
        self._ledger = ledger
        self._about = dict(about)
        self._places: dict[UUID, ChainCall] = {}
        self._owned: dict[UUID, woodrat.Run] = {}
        self._lock = threading.Lock()
        self.raise_error = about.get("on_error") == "raise"

    # -- places

    def _enter(self, run_id: UUID, parent: UUID | None, name: str | None, inputs: Any) -> ChainCall | None:
        """Record the start of a call; at top level, start a separate run."""
        with self._lock:
            around = self._places.get(parent) if parent is not None else None
        run = woodrat.current_run() if around is None else around.run
        if run is None:
            shown = said(inputs, None)
            given = shown if isinstance(shown, dict) else {"input": shown}
            run = begun(self._ledger, question_in(inputs), given, self._about)
            if run is None:
                return None
            self._owned[run_id] = run
        self.raise_error = self.raise_error or run.on_error == "raise"
        place = ChainCall(run, around, name, inputs)
        with self._lock:
            self._places[run_id] = place
        return place

    def _leave(self, run_id: UUID) -> ChainCall | None:
        with self._lock:
            return self._places.pop(run_id, None)

    def _end(self, run_id: UUID, answer: Any, error: BaseException | None) -> None:
        """End a separate run."""
        run = self._owned.pop(run_id, None)
        if run is not None:
            with guarded(run):
                if error is None:
                    run.answer(answer_in(answer))
                run.finish(error)

    # -- graphs, nodes and routes

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **about: Any,
    ) -> None:
        """A graph, a node or a part of one begins."""
        place = self._enter(run_id, parent_run_id, about.get("name"), inputs)
        node = (metadata or {}).get("langgraph_node")
        if place is None or not isinstance(node, str):
            return
        around = place.around
        if around is not None and around.node == node:
            if _comes_after_the_node(tags) and about.get("run_type") != "parser" and _is_state(inputs, around.inputs):
                place.route_of = node
        elif place.name == node:
            place.node = node

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **about: Any) -> None:
        """Record the end of a graph, a node or a part of one; a route or a `Command` returns its destination."""
        place = self._leave(run_id)
        if place is None:
            return
        with guarded(place.run):
            if place.route_of is not None:
                targets = targets_of(outputs)
                if targets:
                    self._choose(place, place.route_of, targets, f"by {place.name}", place.inputs)
            elif place.node is not None:
                for command in outputs if isinstance(outputs, list) else [outputs]:
                    targets = targets_of(command.goto) if isinstance(command, Command) else []
                    if targets:
                        state = _updated(place.inputs, command.update)
                        self._choose(place, place.node, targets, f"by a Command of {place.node}", state)
        self._end(run_id, outputs, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """Record the failure of a graph, a node or a part of one, or the end of reading it."""
        self._leave(run_id)
        self._end(run_id, None, error)

    def _choose(self, place: ChainCall, node: str, targets: list[str], because: str, state: Any) -> None:
        chosen = targets[0] if len(targets) == 1 else targets
        choose(place.run, f"route from {node}", chosen, because, facts_in(state))

    # -- models

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **about: Any,
    ) -> None:
        """Record the start of a chat model call."""
        asked = messages[0] if len(messages) == 1 else messages
        self._ask(serialized, asked, run_id, parent_run_id, metadata, about)

    def on_llm_start(
        self,
        serialized: Any,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **about: Any,
    ) -> None:
        """Record the start of a text completion."""
        asked = [{"role": "user", "content": prompt} for prompt in prompts]
        self._ask(serialized, asked, run_id, parent_run_id, metadata, about)

    def _ask(
        self,
        serialized: Any,
        asked: Any,
        run_id: UUID,
        parent: UUID | None,
        metadata: dict[str, Any] | None,
        about: Mapping[str, Any],
    ) -> None:
        place = self._enter(run_id, parent, None, asked)
        if place is None:
            return
        given = about.get("invocation_params") or {}
        model = model_name(serialized, given, metadata or {})
        parameters = {name: value for name, value in given.items() if name not in _NO_PARAMETERS and value is not None}
        run = place.run
        place.step = RecordedCall(
            run,
            lambda: run.model(model, messages=said(asked, run), parameters=said(parameters, run)),
            place.step_around(),
        ).open()

    def on_llm_end(self, response: Any, *, run_id: UUID, **about: Any) -> None:
        """A model has answered."""
        self._answer(run_id, response, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """Record the failure of a model, or a stream that is no longer read."""
        self._answer(run_id, about.get("response"), error)

    def _answer(self, run_id: UUID, response: Any, error: BaseException | None) -> None:
        place = self._leave(run_id)
        if place is None or place.step is None:
            return
        abandoned = isinstance(error, GeneratorExit)
        answer, usage = None, None
        with guarded(place.run):
            answer, usage = answered(response, place.run)
            if abandoned:
                answer = {**(answer if isinstance(answer, dict) else {"content": answer}), "abandoned": True}
        place.step.close(answer, usage=usage, error=None if abandoned else error)
        self._end(run_id, answer, error)

    # -- tools

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        **about: Any,
    ) -> None:
        """A tool is called."""
        self._call(serialized, "tool", input_str if inputs is None else inputs, run_id, parent_run_id, about)

    def on_tool_end(self, output: Any, *, run_id: UUID, **about: Any) -> None:
        """A tool has returned."""
        self._return(run_id, output, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """A tool has failed."""
        self._return(run_id, None, error)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **about: Any
    ) -> None:
        """Record the start of a retriever call; it is a tool like others."""
        self._call(serialized, "retriever", {"query": query}, run_id, parent_run_id, about)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **about: Any) -> None:
        """A retriever has found something."""
        found = [{"content": each.page_content, "metadata": each.metadata} for each in documents]
        self._return(run_id, found, None)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """A retriever has failed."""
        self._return(run_id, None, error)

    def _call(
        self, serialized: Any, kind: str, given: Any, run_id: UUID, parent: UUID | None, about: Mapping[str, Any]
    ) -> None:
        name = str(about.get("name") or (serialized or {}).get("name") or kind)
        place = self._enter(run_id, parent, name, given)
        if place is not None:
            place.step = tool_step(place.run, name, said(given, place.run), place.step_around()).open()

    def _return(self, run_id: UUID, output: Any, error: BaseException | None) -> None:
        place = self._leave(run_id)
        if place is None or place.step is None:
            return
        result = None
        with guarded(place.run):
            result = parsed(said(output.content, None)) if isinstance(output, ToolMessage) else said(output, place.run)
        place.step.close(result, error=error)
        self._end(run_id, result, error)


# -- reading LangChain's values ----------------------------------------------------------------------------------------


def said(value: Any, run: woodrat.Run | None) -> Any:
    """Return a value with its messages as plain objects, without the ids that are made up for them."""
    if isinstance(value, BaseMessage):
        return message_of(value, run)
    if isinstance(value, Command):
        parts = {"goto": targets_of(value.goto), "update": said(value.update, run), "resume": said(value.resume, run)}
        return {name: part for name, part in parts.items() if part}
    if isinstance(value, Mapping):
        return {str(name): said(item, run) for name, item in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return [said(item, run) for item in value]
    return value


def message_of(message: BaseMessage, run: woodrat.Run | None) -> dict[str, Any]:
    """Return a message as everybody else writes one; calls of tools have their numbers in the run as ids."""

    def named(call_id: Any) -> Any:
        return call_id if run is None else call_name(run, call_id)

    role = getattr(message, "role", None) or _ROLES.get(message.type, message.type)
    plain: dict[str, Any] = {"role": role, "content": said(message.content, run)}
    if message.name:
        plain["name"] = message.name
    calls = getattr(message, "tool_calls", None)
    if calls:
        plain["tool_calls"] = [{"name": call["name"], "args": call["args"], "id": named(call["id"])} for call in calls]
    if isinstance(message, ToolMessage):
        plain["tool_call_id"] = named(message.tool_call_id)
        if message.status == "error":
            plain["status"] = "error"
    return plain


def answered(response: Any, run: woodrat.Run) -> tuple[Any, dict[str, int] | None]:
    """Return a model's answer, and its token counts."""
    listed = [each for several in getattr(response, "generations", ()) for each in several]
    messages = [getattr(each, "message", None) for each in listed]
    answers = [
        each.text if message is None else message_of(message, run)
        for each, message in zip(listed, messages, strict=True)
    ]
    counts = (getattr(message, "usage_metadata", None) for message in messages)
    usages: list[Any] = [counted for counted in counts if counted]
    if not usages and isinstance(getattr(response, "llm_output", None), Mapping):
        usages = [response.llm_output.get("token_usage") or response.llm_output.get("usage") or {}]
    return answers[0] if len(answers) == 1 else answers, dict(usages[0]) if usages and usages[0] else None


def model_name(serialized: Any, given: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """Return the name of a model; default: its class."""
    names = (given.get("model"), given.get("model_name"), metadata.get("ls_model_name"))
    known = next((name for name in names if isinstance(name, str) and name), None)
    if known is not None:
        return known
    path = serialized.get("id") if isinstance(serialized, Mapping) else None
    return str(path[-1]) if isinstance(path, list) and path else "model"


def question_in(inputs: Any) -> str:
    """Return the question to a graph: the last message of a person, or its inputs as text."""
    plain = said(inputs, None)
    messages = plain.get("messages") if isinstance(plain, dict) else plain
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, list) and len(message) == 2:  # a pair of role and text
            message = {"role": message[0], "content": message[1]}
        if isinstance(message, dict) and message.get("role") in ("user", "human") and message.get("content"):
            return _text_of(message["content"])
        if isinstance(message, str):
            return message
    return plain if isinstance(plain, str) else _text_of(plain)


def answer_in(outputs: Any) -> Any:
    """Return the answer of a graph: the text of its last message, or its output unchanged."""
    plain = said(outputs, None)
    messages = plain.get("messages") if isinstance(plain, dict) else plain
    last = messages[-1] if isinstance(messages, list) and messages else plain
    return last["content"] if isinstance(last, dict) and "role" in last and last.get("content") else plain


def targets_of(chosen: Any) -> list[str]:
    """Return the nodes that a route names; empty if it names something else."""
    targets = [each.node if isinstance(each, Send) else each for each in _listed(chosen)]
    return [str(each) for each in targets] if all(isinstance(each, str | bool | int) for each in targets) else []


def facts_in(state: Any) -> dict[str, Any]:
    """Return the possible evidence of a route: the values of the state, with the last of its messages."""
    members = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    facts: dict[str, Any] = {}
    for name, value in said(members, None).items():
        if isinstance(value, list) and value and isinstance(value[-1], dict) and "role" in value[-1]:
            last = value[-1]
            facts[f"{name}.last"] = [call["name"] for call in last.get("tool_calls") or ()] or last.get("content")
        else:
            facts[name] = value
    return facts


def _comes_after_the_node(tags: list[str] | None) -> bool:
    """Tell whether a part of a node is run after its own code, as routes are."""
    return any(tag.startswith("seq:step:") and tag != "seq:step:1" for tag in tags or ())


def _is_state(inputs: Any, state: Any) -> bool:
    """Return True if a part of a node received the state, as routes do, and not the result of an earlier part."""
    return type(inputs) is type(state) and (not isinstance(state, Mapping) or set(inputs) >= set(state))


def _updated(state: Any, update: Any) -> Any:
    """Return a state with the changes of a command."""
    members = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    return {**members, **update} if isinstance(update, Mapping) else state


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set) else [value]


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = [part.get("text") for part in value if isinstance(part, dict)] if isinstance(value, list) else []
    texts = [text for text in parts if isinstance(text, str)]
    return " ".join(texts) if texts else json.dumps(value, ensure_ascii=False, default=str)

"""Pydantic AI: a capability that records an agent's runs, and answers a replay from the log.

    agent = Agent("openai:gpt-5", capabilities=[woodrat.pydantic_ai.capability(ledger)])

Requests to models and calls of tools are steps. An agent called from another agent's tool is recorded inside that step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_ai import ModelRetry
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolRetryError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

import woodrat
from woodrat.adapters.step import TaskStep, begun, guarded, tool_call

_VOLATILE: Final = frozenset({"timestamp", "run_id", "conversation_id", "provider_response_id"})
"""Members that are new in every message and carry no meaning."""
_ROLES: Final = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool", "retry-prompt": "user"}
"""The role of the parts of a request."""
_ANYTHING: Final = TypeAdapter(Any)


def capability(ledger: woodrat.Ledger | None = None, **about: Any) -> AbstractCapability[Any]:
    """Return a capability that records an agent in the current run, or each of its runs as a separate one.

    A separate run needs a `ledger`; `about` is passed to `ledger.run` (`subject`, `conversation`, `principal`, …).
    """
    return RunRecorder(ledger=ledger, about=about)


@dataclass
class RunRecorder(AbstractCapability[Any]):
    """Records an agent's work; outermost, so that it sees the real calls."""

    ledger: woodrat.Ledger | None = field(default=None, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = "woodrat"
    run: woodrat.Run | None = field(default=None, init=False, repr=False)
    """The run it records into; set for each run of the agent on a copy."""
    stream: StreamedResponse | None = field(default=None, init=False, repr=False)
    """The streamed part of the model's answer."""

    def get_ordering(self) -> CapabilityOrdering:
        """Wrap all other capabilities."""
        return CapabilityOrdering(position="outermost")

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Have no place in specs: a ledger cannot be spelled there."""
        return None

    async def for_run(self, ctx: Any) -> RunRecorder:
        """Return a copy for one run of the agent."""
        return replace(self)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Record a run of the agent, as a separate run if none is current."""
        self.run = woodrat.current_run()
        if self.run is not None:
            return await handler()
        name = ctx.agent.name if ctx.agent is not None else None
        about = {"attributes": {"agent": name}, **self.about} if name else self.about
        prompt = plain(ctx.prompt)
        query = prompt if isinstance(prompt, str) else _text_of(prompt)
        run = await asyncio.to_thread(begun, self.ledger, query, {"prompt": prompt}, about)
        if run is None:
            return await handler()
        self.run = run
        try:
            with run.current():
                result = await handler()
        except BaseException as error:
            with guarded(run):
                run.finish(error)
            raise
        with guarded(run):
            run.answer(plain(result.output))
            await asyncio.to_thread(run.finish, None)
        return result

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Observe a model's stream, so that its text is known if reading stops early."""
        return None if self.run is None else WatchedModel(model, self)

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
        """Record a request to a model, or answer it from the log."""
        run = self.run
        if run is None:
            response: ModelResponse = await handler(request_context)
            return response
        self.stream = None
        step = await TaskStep(run, lambda: _model_call(run, request_context)).enter()
        if step.recorded:
            recorded = await step.leave_replayed()
            return response_from(recorded)
        try:
            response = await handler(request_context)
        except BaseException as error:
            if isinstance(error, Exception) or self.stream is None:
                await step.leave(error=error)
            else:  # reading stopped: the reader got this part
                answer = None
                with guarded(run):
                    answer = {**response_of(self.stream.get()), "abandoned": True}
                await step.leave(answer, at_once=True)
            raise
        with guarded(run):
            usage = {"input": response.usage.input_tokens, "output": response.usage.output_tokens}
            await step.leave(response_of(response), usage=usage)
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Record a call of a tool, or answer it from the log."""
        run = self.run
        if run is None:
            return await handler(args)
        step = await TaskStep(run, lambda: tool_call(run, call.tool_name, plain(args))).enter()
        if step.recorded:
            try:
                return await step.leave_replayed()
            except (ModelRetry, ToolRetryError) as retry:
                # A recorded error lacks its parts; a new error with all parts makes the agent ask the model again.
                raise ModelRetry(str(retry.args[0]) if retry.args else "") from None
        try:
            result = await handler(args)
        except BaseException as error:
            await step.leave(error=error)
            raise
        with guarded(run):
            await step.leave(result)
        return result


class WatchedModel(WrapperModel):
    """A model with observable streams."""

    def __init__(self, wrapped: Model, recorder: RunRecorder) -> None:
        super().__init__(wrapped)
        self._recorder = recorder

    @asynccontextmanager
    async def request_stream(self, *given: Any, **about: Any) -> AsyncGenerator[StreamedResponse]:
        """Stream as the model does."""
        async with self.wrapped.request_stream(*given, **about) as stream:
            self._recorder.stream = stream
            yield stream


# -- reading Pydantic AI's values --------------------------------------------------------------------------------------


def _model_call(run: woodrat.Run, request: Any) -> Any:
    """Return the call of a model that a request is."""
    parameters = dict(request.model_settings or {})
    asked = request.model_request_parameters
    tools = [*asked.function_tools, *asked.output_tools]
    if tools:
        parameters["tools"] = [
            {"name": each.name, "parameters": each.parameters_json_schema}
            | ({"description": each.description} if each.description else {})
            for each in tools
        ]
    return run.model(request.model.model_name, messages=messages_of(request.messages), parameters=plain(parameters))


def messages_of(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Return messages as everybody else writes them."""
    listed: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            if message.instructions:
                listed.append({"role": "system", "content": message.instructions})
            listed.extend(_request_part(part) for part in message.parts)
        else:
            listed.append(_answer_message(message))
    return listed


def _request_part(part: Any) -> dict[str, Any]:
    kind = part.part_kind
    said: dict[str, Any] = {"role": _ROLES.get(kind, kind), "content": plain(part.content)}
    if getattr(part, "tool_name", None):
        said.update(role="tool", name=part.tool_name, tool_call_id=part.tool_call_id)
    return said


def _answer_message(message: ModelResponse) -> dict[str, Any]:
    texts = [part.content for part in message.parts if part.part_kind == "text"]
    calls = [
        {"name": part.tool_name, "args": part.args_as_dict(), "id": part.tool_call_id} for part in message.tool_calls
    ]
    said: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    return {**said, "tool_calls": calls} if calls else said


def response_of(response: ModelResponse) -> dict[str, Any]:
    """Return a response for the record: complete, except for members that change every time."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    whole: dict[str, Any] = _steadied(dumped)
    return whole


def response_from(record: Any) -> ModelResponse:
    """Return a recorded response as the object it was."""
    said = {name: value for name, value in record.items() if name != "abandoned"}
    (message,) = ModelMessagesTypeAdapter.validate_python([said])
    assert isinstance(message, ModelResponse)
    return message


def _steadied(value: Any) -> Any:
    if isinstance(value, dict):
        # empty members are defaults, and come back on loading
        return {name: _steadied(item) for name, item in value.items() if name not in _VOLATILE and item is not None}
    return [_steadied(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Return a value as JSON if Pydantic can serialize it; else unchanged."""
    try:
        return _ANYTHING.dump_python(value, mode="json")
    except Exception:
        return value


def _text_of(prompt: Any) -> str:
    parts = prompt if isinstance(prompt, list) else []
    texts = [part for part in parts if isinstance(part, str)]
    return " ".join(texts) if texts else "(no prompt)"

"""OpenAI Agents: runs of agents recorded, with handoffs and guardrails as decisions.

    recorder = woodrat.openai_agents.recorder(ledger)
    result = await recorder.run(agent, "Should we approve application #42?")

`run`, `run_sync` and `run_streamed` take the same arguments as in `agents.Runner`. The recorder is also a `RunHooks`:
pass it to `agent.as_tool(hooks=recorder)`, and that agent's work is recorded inside the step of the tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from agents import Agent, RunHooks, Runner, default_tool_error_function, get_current_span
from agents.models import get_default_model

import woodrat
from woodrat.adapters.openai import gathered_events
from woodrat.adapters.step import RecordedCall, begun, call_name, choose, guarded, parsed, tool_step

_HOOKS: Final = (
    *("on_llm_start", "on_llm_end", "on_agent_start", "on_agent_end"),
    *("on_handoff", "on_tool_start", "on_tool_end"),
)


class ToolFailed(Exception):
    """A tool raised an error, and the model received it as text: this text."""


def recorder(ledger: woodrat.Ledger | None = None, **about: Any) -> AgentRecorder:
    """Return a recorder that runs agents in the current run, or each in a separate run.

    A separate run needs a `ledger`; `about` is passed to `ledger.run` (`subject`, `conversation`, `principal`, …).
    """
    return AgentRecorder(ledger, about)


class RunnerCall:
    """The state of one call of a runner."""

    def __init__(self, run: woodrat.Run, owned: bool, model: Any) -> None:
        self.run = run
        self.owned = owned
        """Whether the run was begun for it, and ends with it."""
        self.model = model
        """The model for all agents, if the caller set one."""
        self.steps: dict[tuple[int, str], tuple[RecordedCall, object]] = {}
        """Open steps, by the context and the name that hooks receive; the context is kept with them."""
        self.tools: dict[str, RecordedCall] = {}
        """Steps of tools, by the id of the call."""
        self.inside: dict[str, RecordedCall | None] = {}
        """By the id of a call, the step in which a model requested it."""
        self.asked: dict[str, Any] = {}
        """By the name of a tool or handoff, the arguments that a model sent last."""
        self.events: list[Any] = []
        """The part of the stream read since the last model call."""
        self._is_over = False

    def open(self, context: object, name: str, step: RecordedCall) -> None:
        """Keep a step until its end event."""
        self.steps[id(context), name] = (step.open(), context)

    def take(self, context: object, name: str) -> RecordedCall | None:
        """Return the step of an end event."""
        found = self.steps.pop((id(context), name), None)
        return None if found is None else found[0]

    def finish(self, result: Any, error: BaseException | None) -> None:
        """Record the end of the call: guardrails, steps without an end event, and the run if it is a separate one."""
        if self._is_over:
            return
        self._is_over = True
        run = self.run
        with guarded(run):
            for name, chosen, facts in guardrails_of(result, error):
                choose(run, f"guardrail {name}", chosen, f"by guardrail {name}", facts)
        for step, _ in self.steps.values():
            self._abandon(step, error)
        self.steps.clear()
        if self.owned:
            with guarded(run):
                if error is None:
                    run.answer(result.final_output)
                run.finish(error)

    def _abandon(self, step: RecordedCall, error: BaseException | None) -> None:
        """Close a step without an end event: it failed, or its stream is no longer read."""
        if isinstance(error, Exception):
            step.close(error=error)
            return
        said: Any = None
        with guarded(self.run):
            events = [event.to_dict(warnings=False) for event in self.events if hasattr(event, "to_dict")]
            said = items_of(gathered_events(events).get("output"), self.run)
        step.close({"output": said, "abandoned": True})


_recording: ContextVar[RunnerCall | None] = ContextVar("woodrat_openai_agents", default=None)


class AgentRecorder(RunHooks[Any]):
    """Runs agents as `agents.Runner` does, and records their work."""

    def __init__(self, ledger: woodrat.Ledger | None, about: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._about = dict(about)

    # -- running

    async def run(self, starting_agent: Agent[Any], input: Any, **given: Any) -> Any:
        """Run an agent as `agents.Runner.run` does."""
        recording = await asyncio.to_thread(self._begin, starting_agent, input, given)
        if recording is None:
            return await Runner.run(starting_agent, input, **given)
        with self._running(recording):
            try:
                result = await Runner.run(starting_agent, input, **self._hooked(given))
            except BaseException as error:
                recording.finish(None, error)
                raise
        await asyncio.to_thread(recording.finish, result, None)
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **given: Any) -> Any:
        """Run an agent as `agents.Runner.run_sync` does."""
        recording = self._begin(starting_agent, input, given)
        if recording is None:
            return Runner.run_sync(starting_agent, input, **given)
        with self._running(recording):
            try:
                result = Runner.run_sync(starting_agent, input, **self._hooked(given))
            except BaseException as error:
                recording.finish(None, error)
                raise
        recording.finish(result, None)
        return result

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **given: Any) -> Any:
        """Run an agent as `agents.Runner.run_streamed` does; its run ends when its events were read."""
        recording = self._begin(starting_agent, input, given)
        if recording is None:
            return Runner.run_streamed(starting_agent, input, **given)
        with self._running(recording):
            try:
                result: Any = Runner.run_streamed(starting_agent, input, **self._hooked(given))
            except BaseException as error:
                recording.finish(None, error)
                raise
        result.stream_events = _watched(result, result.stream_events, recording)
        return result

    def _begin(self, agent: Agent[Any], input: Any, given: Mapping[str, Any]) -> RunnerCall | None:
        """Return the recording of a call; None without a run and a ledger."""
        config = given.get("run_config")
        model = config.get("model") if isinstance(config, Mapping) else getattr(config, "model", None)
        run = woodrat.current_run()
        if run is not None:
            return RunnerCall(run, False, model)
        about = {"attributes": {"agent": agent.name}, **self._about}
        said = items_of(input, None)
        run = begun(self._ledger, question_in(said), {"input": said}, about)
        return None if run is None else RunnerCall(run, True, model)

    @contextmanager
    def _running(self, recording: RunnerCall) -> Iterator[None]:
        """Make a recording the current one, and its run."""
        token = _recording.set(recording)
        try:
            if recording.owned:
                with recording.run.current():
                    yield
            else:
                yield
        finally:
            _recording.reset(token)

    def _hooked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a runner, with these hooks before the caller's."""
        theirs = given.get("hooks")
        return {**given, "hooks": self if theirs is None else _Both(self, theirs)}

    # -- events of the framework

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """Record the start of a model call."""
        recording = _recording.get()
        if recording is None:
            return
        run = recording.run
        recording.events.clear()

        def call() -> Any:
            messages = items_of(input_items, run)
            if system_prompt:
                messages = [{"role": "system", "content": system_prompt}, *messages]
            tools = [_described(tool) for tool in agent.tools]
            handoffs = [getattr(each, "agent_name", None) or each.name for each in agent.handoffs]
            known = {"agent": agent.name, "tools": tools, "handoffs": handoffs}
            parameters = {name: value for name, value in known.items() if value}
            return run.model(model_name(agent, recording.model), messages=messages, parameters=parameters)

        inside = recording.tools.get(getattr(context, "tool_call_id", ""))
        await asyncio.to_thread(recording.open, context, "", RecordedCall(run, call, inside))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """A model has answered."""
        recording = _recording.get()
        step = None if recording is None else recording.take(context, "")
        if recording is None or step is None:
            return
        inside = recording.tools.get(getattr(context, "tool_call_id", ""))
        answer, usage = None, None
        with guarded(recording.run):
            for item in response.output:
                if getattr(item, "type", None) == "function_call":
                    recording.inside[item.call_id] = inside
                    recording.asked[item.name] = parsed(item.arguments)
            answer = {"output": items_of(response.output, recording.run)}
            usage = {"input": response.usage.input_tokens, "output": response.usage.output_tokens}
        await asyncio.to_thread(step.close, answer, usage=usage)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is called."""
        recording = _recording.get()
        if recording is None:
            return
        call_id = getattr(context, "tool_call_id", None)
        arguments = parsed(getattr(context, "tool_arguments", None) or None)
        step = tool_step(recording.run, tool.name, arguments, recording.inside.get(call_id or ""))
        await asyncio.to_thread(recording.open, context, tool.name, step)
        if call_id is not None:
            recording.tools[call_id] = step

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        """Record a tool's result, or the error text that the model receives."""
        recording = _recording.get()
        step = None if recording is None else recording.take(context, tool.name)
        if step is None:
            return
        error = None
        with guarded(step.run):
            error = failure_of(context, result)
        await asyncio.to_thread(step.close, parsed(result), error=error)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Record a handover to another agent."""
        recording = _recording.get()
        if recording is None:
            return
        facts = {"to": to_agent.name}
        with guarded(recording.run):
            name = f"transfer_to_{to_agent.name.lower().replace(' ', '_')}"
            if recording.asked.get(name):
                facts["arguments"] = recording.asked[name]
        because = f"by the model of {from_agent.name}"
        await asyncio.to_thread(choose, recording.run, f"handoff from {from_agent.name}", to_agent.name, because, facts)


def failure_of(context: Any, result: object) -> ToolFailed | None:
    """Return the failure of a tool if the model receives it and the agents continue.

    The SDK hides the exception. The SDK's tracing reports errors; without tracing, the only sign is the default error
    text for the model.
    """
    span = get_current_span()
    if span is not None and span.error is not None:
        return ToolFailed(str(result))
    told = default_tool_error_function(context, Exception(""))
    return ToolFailed(told) if isinstance(result, str) and result.startswith(told) else None


class _Both(RunHooks[Any]):
    """The hooks of a recorder, then the caller's."""

    def __init__(self, first: RunHooks[Any], second: RunHooks[Any]) -> None:
        self.first, self.second = first, second


def _in_turn(name: str) -> Callable[..., Any]:
    async def both(self: _Both, *told: Any) -> None:
        await getattr(self.first, name)(*told)
        await getattr(self.second, name)(*told)

    return both


for _name in _HOOKS:
    setattr(_Both, _name, _in_turn(_name))


def _watched(result: Any, stream_events: Callable[[], AsyncIterator[Any]], recording: RunnerCall) -> Callable[[], Any]:
    """Return the events of a streamed run, which end its recording when they were read."""

    def left() -> None:
        """Nobody reads on. The agents continue until they finish or are cancelled."""
        task = result.run_loop_task
        if task is None or task.done():
            recording.finish(result, _ending(task))
        else:
            task.add_done_callback(lambda done: recording.finish(result, _ending(done)))

    async def watched() -> AsyncIterator[Any]:
        events: Any = stream_events()
        try:
            async for event in events:
                if event.type == "raw_response_event":
                    recording.events.append(event.data)
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            left()
            raise
        except BaseException as error:
            recording.finish(result, error)
            raise
        finally:
            await events.aclose()
        await asyncio.to_thread(recording.finish, result, _ending(result.run_loop_task))

    return watched


def _ending(task: Any) -> BaseException | None:
    """Return the reason why the agents stopped early."""
    if task is None or not task.done():
        return None
    if task.cancelled():
        return asyncio.CancelledError("the stream was cancelled")
    error: BaseException | None = task.exception()
    return error


# -- reading the framework's values ------------------------------------------------------------------------------------


def items_of(items: Any, run: woodrat.Run | None) -> Any:
    """Return input or output items as JSON, without the ids that are new every time; calls have numbers."""
    if isinstance(items, str) or not isinstance(items, list | tuple):
        return items
    return [_item_of(item, run) for item in items]


def _item_of(item: Any, run: woodrat.Run | None) -> Any:
    whole = item.model_dump(exclude_unset=True, mode="json") if hasattr(item, "model_dump") else item
    if not isinstance(whole, Mapping):
        return whole
    kept = {name: value for name, value in whole.items() if name not in ("id", "status") and value is not None}
    if "call_id" in kept and run is not None:
        kept["call_id"] = call_name(run, kept["call_id"])
    return kept


def question_in(said: Any) -> str:
    """Return the question to the agents: the text, or the last message of the user."""
    if isinstance(said, str):
        return said
    for item in reversed(said if isinstance(said, list) else []):
        if isinstance(item, Mapping) and item.get("role") == "user":
            content = item.get("content")
            parts = content if isinstance(content, list) else [content]
            texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
            words = " ".join(text for text in texts if isinstance(text, str))
            if words:
                return words
    return "(resumed)"


def model_name(agent: Any, override: Any) -> str:
    """Return the name of an agent's model; default: its class."""
    model = override if override is not None else agent.model
    if model is None:
        return get_default_model()
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return str(name) if name else type(model).__name__


def guardrails_of(result: Any, error: BaseException | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each guardrail that ran: its name, its result, and its evidence."""
    tripped = getattr(error, "guardrail_result", None)
    data = result if result is not None else getattr(error, "run_data", None)
    lists = ("input_guardrail_results", "output_guardrail_results")
    asked = [each for name in lists for each in getattr(data, name, None) or ()]
    if tripped is not None and not any(each is tripped for each in asked):
        asked.append(tripped)
    for each in asked:
        chosen = "tripped" if each.output.tripwire_triggered else "passed"
        yield each.guardrail.get_name(), chosen, {"output_info": each.output.output_info}
    for name in ("tool_input_guardrail_results", "tool_output_guardrail_results"):
        for each in getattr(data, name, None) or ():
            chosen = str(each.output.behavior["type"])
            yield each.guardrail.get_name(), chosen, {"output_info": each.output.output_info}


def _described(tool: Any) -> Any:
    """Return a tool as described to a model; a tool that OpenAI runs itself by its name alone."""
    schema = getattr(tool, "params_json_schema", None)
    if not isinstance(schema, Mapping):
        return tool.name
    return {"name": tool.name, "description": getattr(tool, "description", None) or "", "parameters": dict(schema)}

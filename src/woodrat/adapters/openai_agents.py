"""OpenAI Agents: runs of agents recorded, with handoffs and guardrails as decisions.

    recorder = woodrat.openai_agents.recorder(ledger)
    result = await recorder.run(agent, "Should we approve application #42?")

`run`, `run_sync` and `run_streamed` take what those of `agents.Runner` take. The recorder is a `RunHooks` too, to be
handed to `agent.as_tool(hooks=recorder)`: what that agent does is then recorded inside the step of the tool.
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
from woodrat.adapters.step import Step, begun, call_name, choose, guarded, parsed, tool_step

_HOOKS: Final = (
    *("on_llm_start", "on_llm_end", "on_agent_start", "on_agent_end"),
    *("on_handoff", "on_tool_start", "on_tool_end"),
)


class ToolFailed(Exception):
    """A tool raised something, and the model was told so; says what it was told."""


def recorder(ledger: woodrat.Ledger | None = None, **about: Any) -> AgentRecorder:
    """Return a recorder that runs agents in the current run, or each in a run of its own.

    A run of its own needs a `ledger`; `about` is handed to `ledger.run` (`subject`, `conversation`, `principal`, …).
    """
    return AgentRecorder(ledger, about)


class Recording:
    """What is under way in one call of a runner."""

    def __init__(self, run: woodrat.Run, owned: bool, model: Any) -> None:
        self.run = run
        self.owned = owned
        """Whether the run was begun for it, and ends with it."""
        self.model = model
        """The model that all agents use, where the caller said so."""
        self.steps: dict[tuple[int, str], tuple[Step, object]] = {}
        """Steps that have begun, by the context and the name that hooks are given; the context is kept with them."""
        self.tools: dict[str, Step] = {}
        """Steps of tools, by the id of the call."""
        self.inside: dict[str, Step | None] = {}
        """By the id of a call, the step inside of which a model asked for it."""
        self.asked: dict[str, Any] = {}
        """By the name of a tool or handoff, the arguments that a model sent last."""
        self.events: list[Any] = []
        """What the reader of a stream has read since the last model was asked."""
        self._is_over = False

    def open(self, context: object, name: str, step: Step) -> None:
        """Keep a step until its end is told."""
        self.steps[id(context), name] = (step.open(), context)

    def take(self, context: object, name: str) -> Step | None:
        """Return a step whose end is told."""
        found = self.steps.pop((id(context), name), None)
        return None if found is None else found[0]

    def finish(self, result: Any, error: BaseException | None) -> None:
        """Record how all of it ended: guardrails, steps whose end nobody told, and the run where it is its own."""
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

    def _abandon(self, step: Step, error: BaseException | None) -> None:
        """Close a step that nobody told the end of: it failed, or nobody reads on."""
        if isinstance(error, Exception):
            step.close(error=error)
            return
        said: Any = None
        with guarded(self.run):
            events = [event.to_dict(warnings=False) for event in self.events if hasattr(event, "to_dict")]
            said = items_of(gathered_events(events).get("output"), self.run)
        step.close({"output": said, "abandoned": True})


_recording: ContextVar[Recording | None] = ContextVar("woodrat_openai_agents", default=None)


class AgentRecorder(RunHooks[Any]):
    """Runs agents as `agents.Runner` does, and records what they do."""

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

    def _begin(self, agent: Agent[Any], input: Any, given: Mapping[str, Any]) -> Recording | None:
        """Return what is recorded of a call; none where there is no run and no ledger."""
        config = given.get("run_config")
        model = config.get("model") if isinstance(config, Mapping) else getattr(config, "model", None)
        run = woodrat.current_run()
        if run is not None:
            return Recording(run, False, model)
        about = {"attributes": {"agent": agent.name}, **self._about}
        said = items_of(input, None)
        run = begun(self._ledger, question_in(said), {"input": said}, about)
        return None if run is None else Recording(run, True, model)

    @contextmanager
    def _running(self, recording: Recording) -> Iterator[None]:
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
        """Return the arguments of a runner with these hooks, before those of the caller."""
        theirs = given.get("hooks")
        return {**given, "hooks": self if theirs is None else _Both(self, theirs)}

    # -- what the framework tells

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """A model is asked."""
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
        await asyncio.to_thread(recording.open, context, "", Step(run, call, inside))

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
        """A tool has returned, or the model is told that it failed."""
        recording = _recording.get()
        step = None if recording is None else recording.take(context, tool.name)
        if step is None:
            return
        error = None
        with guarded(step.run):
            error = failure_of(context, result)
        await asyncio.to_thread(step.close, parsed(result), error=error)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """A model hands over to another agent."""
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
    """Return the failure of a tool, where the model is told of it and the agents go on.

    The SDK hides what was raised. Its tracing says that something was; without tracing there are only the words that a
    model is told by default.
    """
    span = get_current_span()
    if span is not None and span.error is not None:
        return ToolFailed(str(result))
    told = default_tool_error_function(context, Exception(""))
    return ToolFailed(told) if isinstance(result, str) and result.startswith(told) else None


class _Both(RunHooks[Any]):
    """The hooks of a recorder and then those of the caller."""

    def __init__(self, first: RunHooks[Any], second: RunHooks[Any]) -> None:
        self.first, self.second = first, second


def _in_turn(name: str) -> Callable[..., Any]:
    async def both(self: _Both, *told: Any) -> None:
        await getattr(self.first, name)(*told)
        await getattr(self.second, name)(*told)

    return both


for _name in _HOOKS:
    setattr(_Both, _name, _in_turn(_name))


def _watched(result: Any, stream_events: Callable[[], AsyncIterator[Any]], recording: Recording) -> Callable[[], Any]:
    """Return the events of a streamed run, which end its recording when they were read."""

    def left() -> None:
        """Nobody reads on. The agents go on nevertheless, until they are done or cancelled."""
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
    """Return what ended the work of agents before its time."""
    if task is None or not task.done():
        return None
    if task.cancelled():
        return asyncio.CancelledError("the stream was cancelled")
    error: BaseException | None = task.exception()
    return error


# -- what the framework's values say ----------------------------------------------------------------------------------


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
    """Return what agents are asked: the text, or the last words of the user."""
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
    """Return what the model of an agent is called; its class where nothing says so."""
    model = override if override is not None else agent.model
    if model is None:
        return get_default_model()
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return str(name) if name else type(model).__name__


def guardrails_of(result: Any, error: BaseException | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each guardrail that was asked: its name, what it chose, and what it went by."""
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
    """Return a tool as a model is told of it; one that OpenAI runs itself by its name alone."""
    schema = getattr(tool, "params_json_schema", None)
    if not isinstance(schema, Mapping):
        return tool.name
    return {"name": tool.name, "description": getattr(tool, "description", None) or "", "parameters": dict(schema)}

"""The agent's function: how it is called for a run that is replayed or resumed, whichever way it was called first.

A function is given what its parameters ask for by name: the run, the ledger, an input of the run, or what was asked.
One that takes a single parameter of another name is given the run. A function that is not given the run begins it
itself, with `ledger.run`, `memory.turn` or a function made by `memory.wrap`, and goes on in place of the recorded one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, ismethod, signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.errors import Fault, Refused, shown
from woodrat.runs import values
from woodrat.runs.recorder.streams import drained

if TYPE_CHECKING:
    from woodrat.runs.recorder.run import Run

NOT_CALLED: Final = "The agent's function was not called."

_NAMED: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_OF_THE_RUN: Final = {
    "question": "query",
    "query": "query",
    "subject": "subject",
    "conversation": "conversation",
    "principal": "principal",
}
"""What a parameter is given by its name, where no input has that name."""


class NotKept(Refused):
    """An input that the function needs was hidden or cut when it was recorded."""

    def __init__(self, name: str, run: str) -> None:
        remedy = "Give the parameter a default, or replay a run whose inputs were kept."
        super().__init__([Fault(f"input {name}", f"{run} does not have it whole", remedy)], NOT_CALLED)
        self.input = name


class AgentCall(NamedTuple):
    """One call of the agent's function."""

    function: Callable[..., Any]
    """What is called."""
    arguments: tuple[Any, ...]
    """By place."""
    given: Mapping[str, Any]
    """By name."""
    begins_run: bool
    """Whether it begins the run itself."""

    def __call__(self) -> Any:
        """Call it; a generator is read to its end."""
        return drained(self.function(*self.arguments, **self.given))


def agent_call(agent: Callable[..., Any], run: Run, presented: Callable[[Run], Any] | None = None) -> AgentCall:
    """Return how an agent's function is called for a run; `presented` makes what it is given from the run."""
    function = getattr(agent, "recorded_function", None)
    if function is not None:
        called = function.__get__(agent.__self__) if ismethod(agent) else function
        return AgentCall(called, *_bound(signature(called), run.inputs, run), False)
    wrapped = getattr(agent, "wrapped_agent", None)
    if wrapped is not None:
        turn = {name: getattr(run.beginning, name) for name in ("conversation", "principal", "subject")}
        arguments, given = _bound(further_parameters(wrapped), run.inputs, run)
        return AgentCall(agent, (run.asked, *arguments), {**given, **turn}, True)
    try:
        shape = signature(agent)
    except (TypeError, ValueError):
        shape = None
    handed = run if presented is None else presented(run)
    if shape is None:
        return AgentCall(agent, (handed,), {}, False)
    named = [parameter for parameter in shape.parameters.values() if parameter.kind in _NAMED]
    required = [parameter for parameter in named if parameter.default is parameter.empty]
    known: dict[str, Any] = {name: getattr(run.beginning, part) for name, part in _OF_THE_RUN.items()}
    known = {name: value for name, value in known.items() if value is not None}
    known |= {"ledger": getattr(handed, "ledger", None), **run.inputs, "run": handed}
    lacking = [parameter.name for parameter in required if parameter.name not in known]
    by_place = [p for p in required if p.kind is not Parameter.KEYWORD_ONLY]
    if not lacking and (named or not _takes_any(shape)):
        wanted = {name: value for name, value in known.items() if name in shape.parameters or name in run.inputs}
        begins_run = not any(parameter.name == "run" for parameter in named)
        return AgentCall(agent, *_bound(shape, wanted, run), begins_run)
    if len(required) <= 1 and len(by_place) == len(required):
        return AgentCall(agent, (handed,), {}, False)
    raise _unknown(agent, lacking, run)


def further_parameters(agent: Callable[..., Any]) -> Signature:
    """Return what a function that `memory.wrap` wraps takes besides the question and what was recalled."""
    shape = signature(agent)
    first = next((p.name for p in shape.parameters.values() if p.kind in _NAMED[:2]), None)
    left = [p for p in shape.parameters.values() if p.name not in (first, "memory")]
    return shape.replace(parameters=left)


def _takes_any(shape: Signature) -> bool:
    return any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in shape.parameters.values())


def _bound(shape: Signature, known: Mapping[str, Any], run: Run) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call by place and by name; what was not kept whole is left to a default."""
    arguments: list[Any] = []
    given: dict[str, Any] = {}
    rest = dict(known)
    spread = next((p.name for p in shape.parameters.values() if p.kind is Parameter.VAR_POSITIONAL), None)
    items = rest.get(spread) if spread is not None else None
    by_place = isinstance(items, list) and bool(items)
    for name, parameter in shape.parameters.items():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            rest.pop(name, None)
            if by_place and isinstance(items, list):
                arguments += items
        elif parameter.kind is Parameter.VAR_KEYWORD:
            given |= {key: value for key, value in rest.items() if name != key and key not in ("run", "ledger")}
        elif name in rest:
            value = rest.pop(name)
            if isinstance(value, dict | list | str) and not values.is_whole(value):
                if parameter.default is parameter.empty:
                    raise NotKept(name, run.id)
                by_place = False
                continue
            if parameter.kind is Parameter.POSITIONAL_ONLY or (by_place and parameter.kind is _NAMED[1]):
                arguments.append(value)
            else:
                given[name] = value
        else:
            by_place = False
    return tuple(arguments), given


def _unknown(agent: Callable[..., Any], lacking: list[str], run: Run) -> Refused:
    named = getattr(agent, "__qualname__", None) or type(agent).__name__
    inputs = ", ".join(sorted(run.inputs)) or "none"
    problem = f"{shown(named)} needs {', '.join(lacking)}, which {run.id} does not have (its inputs: {inputs})"
    remedy = f"Name its parameters after the inputs of the run, or run, ledger, {', '.join(_OF_THE_RUN)}."
    return Refused([Fault("agent", problem, remedy)], NOT_CALLED)

"""Tools: functions whose calls are recorded in whatever run is current."""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, Signature, signature
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload
from weakref import WeakKeyDictionary

from woodrat.errors import Fault, Refused
from woodrat.records import dataclass
from woodrat.runs import values
from woodrat.runs.recorder.calls import Call, is_async
from woodrat.runs.recorder.steps import current_recorder
from woodrat.state.redaction import hiding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

    from woodrat.runs.recorder.steps import StepRecorder

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

NOT_CALLED = "The tool was not called."


@dataclass(frozen=True, slots=True)
class Recipe:
    """A function as a tool."""

    function: Callable[..., Any]
    """What is called."""
    name: str
    """What the tool is called by."""
    once: bool = False
    """Whether an acknowledged effect must never be repeated."""
    load: Callable[[Any], Any] | None = None
    """Makes a result from its JSON, when the log answers."""
    redact: frozenset[str] = values.NOTHING
    """Keys whose values are hidden."""


class ToolFunction(Protocol[P, R_co]):
    """A function as a tool."""

    def __call__(self, *arguments: P.args, **given: P.kwargs) -> R_co:
        """Call it."""

    def call(self, *arguments: P.args, **given: P.kwargs) -> Call:
        """Call it, and return the call: what it returned, and facts to decide on."""

    @overload
    def __get__(self, instance: None, owner: type) -> ToolFunction[P, R_co]: ...
    @overload
    def __get__(
        self: ToolFunction[Concatenate[Any, Q], R_co], instance: object, owner: type
    ) -> ToolFunction[Q, R_co]: ...


class AsyncToolFunction(Protocol[P, R_co]):
    """A coroutine function as a tool."""

    def __call__(self, *arguments: P.args, **given: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call it."""

    def call(self, *arguments: P.args, **given: P.kwargs) -> Coroutine[Any, Any, Call]:
        """Call it, and return the call: what it returned, and facts to decide on."""

    @overload
    def __get__(self, instance: None, owner: type) -> AsyncToolFunction[P, R_co]: ...
    @overload
    def __get__(
        self: AsyncToolFunction[Concatenate[Any, Q], R_co], instance: object, owner: type
    ) -> AsyncToolFunction[Q, R_co]: ...


class ToolMaker(Protocol):
    """What makes a tool of a function."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> AsyncToolFunction[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, T], /) -> ToolFunction[P, T]: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    once: bool = False,
    load: Callable[[Any], Any] | None = None,
    redact: Iterable[str] = (),
) -> ToolMaker: ...
@overload
def tool(  # type: ignore[overload-overlap]
    function: Callable[P, Coroutine[Any, Any, T]],
    /,
    *,
    name: str | None = None,
    once: bool = False,
    load: Callable[[Any], Any] | None = None,
    redact: Iterable[str] = (),
) -> AsyncToolFunction[P, T]: ...
@overload
def tool(
    function: Callable[P, T],
    /,
    *,
    name: str | None = None,
    once: bool = False,
    load: Callable[[Any], Any] | None = None,
    redact: Iterable[str] = (),
) -> ToolFunction[P, T]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    once: bool = False,
    load: Callable[[Any], Any] | None = None,
    redact: Iterable[str] = (),
) -> Any:
    """Make a function a tool: recorded when it is called inside a run, plain otherwise; sync, async and generators.

    `once` is for effects that must not happen twice: a payment, a message. When a run is resumed, such a call answers
    from the log whatever else changed, and one that began without a known end is not repeated. `load` makes the
    result from its JSON then, where the function returns something else (`load=Score.model_validate`). The function's
    `call` attribute calls it and returns the `Call`, whose `fact("/score")` a decision can be made on. A generator is
    recorded when it was read to its end, or closed, with the items it yielded.
    """
    if function is None:
        return lambda found: tool(found, name=name, once=once, load=load, redact=redact)
    called = name or getattr(function, "__name__", None) or type(function).__name__
    recipe = Recipe(function, called, once, load, hiding(values.NOTHING, redact, NOT_CALLED))
    shape = signature_of(function)

    def call(*arguments: Any, **given: Any) -> Any:
        args = arguments_of(shape, arguments, given)
        return perform(current_recorder(), recipe, args, arguments, given)

    call.__name__ = f"{called}.call"
    if is_async(function):

        @wraps(function)
        async def recorded_async(*arguments: Any, **given: Any) -> Any:
            if current_recorder() is None:
                return await function(*arguments, **given)
            return (await call(*arguments, **given)).result

        made: Any = recorded_async
    else:

        @wraps(function)
        def recorded(*arguments: Any, **given: Any) -> Any:
            if current_recorder() is None:
                return function(*arguments, **given)
            made_call = call(*arguments, **given)
            return made_call.result if isinstance(made_call, Call) else _result(made_call)

        made = recorded
    made.call = call
    made.recipe = recipe
    return made


def recipe_of(function: Callable[..., Any]) -> Recipe:
    """Return a function as a tool; one that is a tool already is not recorded twice."""
    found = getattr(function, "recipe", None)
    if isinstance(found, Recipe):
        return found
    if not callable(function):
        problem = f"expected a function, got {values.type_name(function)}"
        raise Refused([Fault("function", problem, "Send what is to be called, or leave it out.")], NOT_CALLED)
    return Recipe(function, getattr(function, "__name__", None) or type(function).__name__)


def signature_of(function: Callable[..., Any]) -> Signature | None:
    """Return how a function names its arguments; none where that is not to be had."""
    try:
        if type(function) is not FunctionType or function.__dict__:
            return signature(function)
        # Of a plain function it is kept, as long as it is the same code: some reload it in place.
        made_of = (function.__code__, function.__defaults__, function.__kwdefaults__)
        known = _signatures.get(function)
        if known is None or any(new is not old for new, old in zip(made_of, known[0], strict=True)):
            known = _signatures[function] = (made_of, signature(function))
        return known[1]
    except (TypeError, ValueError):
        return None


_signatures: WeakKeyDictionary[Callable[..., Any], tuple[tuple[Any, ...], Signature]] = WeakKeyDictionary()


def arguments_of(shape: Signature | None, arguments: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, as the function names them; `self` and `cls` left out."""
    try:
        bound = shape.bind(*arguments, **given).arguments if shape is not None else None
    except TypeError:  # a call that will fail by itself
        bound = None
    if shape is None or bound is None:
        return {**({"args": list(arguments)} if arguments else {}), **given}
    found: dict[str, Any] = {}
    for index, (name, value) in enumerate(bound.items()):
        kind = shape.parameters[name].kind
        if kind is Parameter.VAR_KEYWORD:
            found.update({key: item for key, item in value.items() if key not in found})
        elif index or name not in ("self", "cls"):
            found[name] = list(value) if kind is Parameter.VAR_POSITIONAL else value
    return found


def perform(
    run: StepRecorder | None,
    recipe: Recipe,
    args: Mapping[str, Any],
    arguments: tuple[Any, ...],
    given: Mapping[str, Any],
) -> Any:
    """Call a tool in a run and return the `Call`; of an async function an awaitable of it."""
    call = Call(run, recipe.name, args, once=recipe.once, redact=recipe.redact)
    return call.perform(recipe.function, arguments, given, recipe.load)


async def _result(call: Awaitable[Call]) -> Any:
    return (await call).result

"""The decorator: a function whose every call is a run."""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from woodrat.errors import Fault, Refused
from woodrat.runs.recorder.resume import answer_with
from woodrat.runs.recorder.start import begin
from woodrat.runs.recorder.steps import NOTHING_RECORDED
from woodrat.runs.recorder.streams import CLOSED, Items, makes_stream, streamed
from woodrat.runs.recorder.tools import arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.runs.recorder.run import Run
    from woodrat.runs.recorder.steps import RunLog

P = ParamSpec("P")
T = TypeVar("T")

_TEMPLATES = ("subject", "conversation", "principal", "session")


def recorded(log: RunLog, query: str | None, about: Mapping[str, Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return the decorator behind `Ledger.recorded`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        asked = function.__name__ if query is None else query
        shape = signature(function)

        def run_of(arguments: tuple[Any, ...], given: Mapping[str, Any]) -> Run:
            inputs = arguments_of(shape, arguments, given)
            for name, parameter in shape.parameters.items():
                if parameter.default is not parameter.empty:
                    inputs.setdefault(name, parameter.default)
            filled = {name: _filled(about[name], inputs, name) for name in _TEMPLATES if name in about}
            return begin(log, _filled(asked, inputs, "query"), **{"inputs": inputs, **about, **filled})

        if iscoroutinefunction(function):

            @wraps(function)
            async def recorded_async(*arguments: Any, **given: Any) -> Any:
                async with run_of(arguments, given) as run:
                    result = await function(*arguments, **given)
                    answer_with(run, result)
                    return result

            made: Any = recorded_async
        elif makes_stream(function):

            @wraps(function)
            def recorded_stream(*arguments: Any, **given: Any) -> Any:
                run, items = run_of(arguments, given), Items()

                def finish(error: BaseException | None, returned: object) -> None:
                    if error is None:
                        answer_with(run, items.answer if returned is None or returned is CLOSED else returned)
                    run.finish(error)

                return streamed(function(*arguments, **given), run.current, items, finish, run.start)

            made = recorded_stream
        else:

            @wraps(function)
            def recorded_sync(*arguments: Any, **given: Any) -> Any:
                with run_of(arguments, given) as run:
                    result = function(*arguments, **given)
                    answer_with(run, result)
                    return result

            made = recorded_sync
        made.recorded_function = function
        return cast("Callable[P, T]", made)

    return decorate


def _filled(template: object, inputs: Mapping[str, Any], name: str) -> Any:
    """Return a text with the arguments it names in braces filled in."""
    if not isinstance(template, str):
        return template
    try:
        return template.format(**inputs)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        problem = f"cannot fill in {template!r}: {type(error).__name__} {error}"
        remedy = "Name arguments of the function in braces; write a plain brace twice."
        raise Refused([Fault(name, problem, remedy)], NOTHING_RECORDED) from error

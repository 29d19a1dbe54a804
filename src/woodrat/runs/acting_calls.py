"""Acting calls: the tool calls by which a model decided something, in a run that says no more of its decisions.

A model's choice of a tool with its arguments is a decision of that model. Of all its calls those count that change
something, and those whose result was used. What a tool does is seldom recorded, so in this order it goes by: the mark
`once`; `readOnlyHint` and `destructiveHint`, as MCP describes a tool; the first word of its name (`CHANGING`). A result
was used where one of its values stands in the arguments of a later call or in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.records import dataclass
from woodrat.runs.conversation import answer_turn, spoken
from woodrat.runs.steps import ModelCall, ToolCall

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.runs.run_fields import RunFields

CHANGING: Final = frozenset(
    "accept add append apply approve assign authorize block book buy cancel change charge close commit confirm create"  # noqa: SIM905
    " delete deny deploy disable edit enable exchange execute grant insert invite issue make merge modify move order"
    " patch pay place post publish purchase push put refund register reject remove rename replace reply reschedule"
    " reserve reset return revoke save schedule send set share start stop store submit transfer update upgrade upload"
    " upsert withdraw write".split()
)
"""First words of the names of tools that change something."""
VALUES_MAX: Final = 2_000
"""How many values of a result are looked for later on."""
_CHARACTERS_MIN: Final = 4
"""Fewest characters of a text or number that is taken as the same value when it occurs again."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True, slots=True)
class ActingCall:
    """A tool call by which something was decided."""

    call: ToolCall
    """The call."""
    model: ModelCall | None
    """The model call that chose it, where that is on record."""
    changes: bool
    """Whether it changes something; its result was used where it does not."""

    def by(self) -> str:
        """Return in words who chose it."""
        if self.model is None:
            return "the agent"
        return "a model" if self.model.model is None else f"model {self.model.model}"


def acting_calls(record: RunFields) -> tuple[ActingCall, ...]:
    """Return the acting calls of a run in order.

    Calls that a model asked for count in every run; those of which nobody says who chose them only in a run without
    decisions.
    """
    inside = {call.span for call in record.tool_calls}
    hints = _hints(record)
    waiting: list[tuple[str, ModelCall]] = []
    chosen: list[tuple[ToolCall, ModelCall | None]] = []
    for step in record.steps:
        if step.under in inside:
            continue
        if isinstance(step, ModelCall) and not step.errored:
            said = answer_turn(step.response)
            waiting = [] if said is None else [(use.name, step) for use in said.calls]
        elif isinstance(step, ToolCall):
            place = next((place for place, (name, _) in enumerate(waiting) if name == step.name), None)
            model = None if place is None else waiting.pop(place)[1]
            if model is not None or not record.decisions:
                chosen.append((step, model))
    found: list[ActingCall] = []
    later: set[Json] = set()
    answer = spoken(record.answer) if record.answer is not None else ""
    for call, model in reversed(chosen):
        changes = call.once or hints.get(call.name, changes_by_name(call.name))
        given = set(_telling(call.args))
        if changes or (not call.errored and _is_used(set(_telling(call.result)) - given, later, answer)):
            found.append(ActingCall(call, model, changes))
        later |= given
    return tuple(reversed(found))


def changes_by_name(name: str) -> bool:
    """Return whether the first word of a tool's name says that it changes something."""
    bare = re.split(r"[.:/]|__", name)[-1]
    words = _WORD.findall(bare)
    return bool(words) and words[0].lower() in CHANGING


def _is_used(values: set[Json], later: set[Json], answer: str) -> bool:
    return not values.isdisjoint(later) or any(str(value) in answer for value in values)


def _telling(value: Any) -> Iterator[Json]:
    """Yield the values inside of a value that are long enough to be told by, of very many the first."""
    waiting, left = [value], VALUES_MAX
    while waiting and left:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += reversed(list(item.values()))
        elif isinstance(item, list):
            waiting += reversed(item)
        elif (isinstance(item, str) or type(item) in (int, float)) and len(str(item)) >= _CHARACTERS_MIN:
            left -= 1
            yield item


def _hints(record: RunFields) -> dict[str, bool]:
    """Return by name whether tools change something, as far as their descriptions say so."""
    found: dict[str, bool] = {}
    for listed in (record.attributes.get("tools"), *(call.parameters.get("tools") for call in record.models)):
        for tool in listed if isinstance(listed, list) else ():
            about: Any = tool.get("function", tool) if isinstance(tool, dict) else None
            name = about.get("name") if isinstance(about, dict) else None
            hints = about.get("annotations") if isinstance(about, dict) else None
            if isinstance(hints, dict) and isinstance(name, str):
                if type(hints.get("readOnlyHint")) is bool:
                    found[name] = not hints["readOnlyHint"]
                elif hints.get("destructiveHint") is True:
                    found[name] = True
    return found

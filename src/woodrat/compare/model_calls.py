"""Model calls: how two calls of models differ, in what they were asked and in what they did.

Prose is wording. Tools that a model asks for are behaviour, and so is data that it returns; where the run records the
calls of those tools as steps of their own, these steps say it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.contrast import NO_DIFFERENCES, Differences, Sides, classify, differing, pair_of
from woodrat.compare.noise import steady
from woodrat.compare.usage import marks, outputs_of
from woodrat.compare.value_difference import differences, opened
from woodrat.records import dataclass
from woodrat.runs import messages
from woodrat.runs.messages import without_call_ids
from woodrat.runs.steps import ModelCall, Part, Write

Matters = Callable[[Json, Json], bool]
"""Tells of two volatile values whether a run used either."""


def actions_of(call: ModelCall, tools: Collection[str]) -> Json:
    """Return what an answer comes to besides prose: tools asked for that are no steps, or data; none for prose."""
    if _asks_only_for(call.response, tools):
        return None
    called = messages.calls(call.response)
    if called:
        apart: list[Json] = [{"name": name, "args": args} for name, args in called if name not in tools]
        return apart or None
    text = messages.text_in(call.response)
    if text is not None:
        data = opened(text)
        return None if data is text else data
    plain = isinstance(call.response, dict | list) and not _is_message(call.response)
    return without_call_ids(call.response) if plain else None


def _asks_only_for(response: object, tools: Collection[str]) -> bool:
    """Return whether an answer in the neutral format, the common case, asks only for tools whose calls are steps."""
    if not isinstance(response, dict) or isinstance(response.get("content"), list):
        return False
    asked = response.get("tool_calls")
    return (
        bool(asked) and isinstance(asked, list) and all(isinstance(c, dict) and c.get("name") in tools for c in asked)
    )


def _is_message(response: object) -> bool:
    return isinstance(response, dict) and ("role" in response or "content" in response or "tool_calls" in response)


def action_differences(
    p: ModelCall, q: ModelCall, tools: tuple[Collection[str], Collection[str]], matters: Matters
) -> Differences:
    """Return in what two answers of models differ besides prose."""
    one, two = actions_of(p, tools[0]), actions_of(q, tools[1])
    if one is None and two is None:
        return NO_DIFFERENCES
    if (one is None or two is None) and not any(messages.calls(call.response) for call in (p, q)):
        return NO_DIFFERENCES
    return classify(one, two, matters)


def tool_results_differ(p: ModelCall, q: ModelCall) -> bool:
    """Return whether two models were handed other results of tools, which their messages alone tell of."""
    one, two = ([_result(message) for message in _listed(call.messages)] for call in (p, q))
    return len(one) == len(two) and any(
        x is not None and y is not None and not form.same(x, y) for x, y in zip(one, two, strict=True)
    )


def _listed(found: Json) -> list[Json]:
    return found if isinstance(found, list) else []


def _result(message: Json) -> Json:
    """Return the data in a message, which is what a tool returned; none where it is words."""
    if not isinstance(message, dict) or messages.calls(message):
        return None
    gist = messages.gist(message)
    data = opened(gist) if isinstance(gist, str) else gist
    if isinstance(data, dict | list) and data is not message:
        return steady(data)
    return steady(data) if message.get("role") in ("tool", "function") and data is not message else None


def failure_differs(p: ModelCall, q: ModelCall) -> bool:
    """Return whether one of two calls failed, or both did in another way."""
    return p.errored != q.errored or not form.same(p.error, q.error)


def request_differences(p: ModelCall, q: ModelCall, matters: Matters, *, parted: bool) -> tuple[bool, Differences]:
    """Return whether two requests differ in more than what every run makes up anew, and in what.

    Where the runs have parted already, requests with different digests differ; their messages need not be compared.
    """
    if differing(p.parameters, q.parameters) or p.model != q.model:
        return True, NO_DIFFERENCES
    if parted and p.request is not None and q.request is not None and p.request != q.request:
        return True, NO_DIFFERENCES
    if contrast.same_request(p, q):
        return False, NO_DIFFERENCES
    if p.messages is None or q.messages is None:
        return True, NO_DIFFERENCES
    found = classify(without_call_ids(p.messages), without_call_ids(q.messages), matters)
    return bool(found.behaviour or found.wording) or not found.set_aside, found


# What they were asked

_WRITERS: Final = {
    "system": ("system", "the system prompt"),
    "developer": ("system", "the system prompt"),
    "user": ("user", "the words of the user"),
    "human": ("user", "the words of the user"),
    "assistant": ("model", "what the model said before"),
    "ai": ("model", "what the model said before"),
    "model": ("model", "what the model said before"),
    "tool": ("tool", "what a tool returned"),
    "function": ("tool", "what a tool returned"),
}
"""By role where a message came from, for programs and in words."""

Earlier = Sequence[tuple[int, str, Part | Write | None, Part | Write | None]]
"""Rows that differ: number, label, and what both runs have there."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """The first message in which two requests differ."""

    text: str
    """All of it as a clause."""
    details: Mapping[str, Any]
    """`message` (from 1), `from` (`system`, `user`, `model`, `tool`, `read`, `unknown`), `from_step` and both sides."""


def prompt_part(p: ModelCall, q: ModelCall, earlier: Earlier, sides: Sides) -> PromptPart | None:
    """Return the first message in which two requests differ; none where the messages do not tell."""
    one, other = p.messages, q.messages
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    for number, (x, y) in enumerate(zip(one, other, strict=False), 1):
        if form.same(without_call_ids(x), without_call_ids(y)):
            continue
        source, words, step = _source(x, y, earlier)
        shown = _shown(x, y)
        text = f"message {number} of the request{words} was {sides.both(*shown)}"
        details = {"message": number, "from": source, "from_step": step, "first": x, "second": y}
        return PromptPart(text, details)
    if len(one) == len(other):
        return None
    number = min(len(one), len(other)) + 1
    extra = (one if len(one) > len(other) else other)[number - 1]
    source, _, step = _source(extra, extra, earlier)
    text = f"the request had {sides.both(f'{len(one)} messages', f'{len(other)}')}"
    return PromptPart(text, {"message": number, "from": source, "from_step": step, "first": None, "second": None})


def _shown(x: Json, y: Json) -> tuple[str, str]:
    one, two = messages.gist(without_call_ids(x)), messages.gist(without_call_ids(y))
    if form.same(one, two):
        return contrast.message(x, y), contrast.message(y, x)
    return pair_of(one, two)


def _source(x: Json, y: Json, earlier: Earlier) -> tuple[str, str, int | None]:
    """Return where the part of a message that differs came from: kind, words for it, and the row."""
    told = {mark for found in differences(x, y) for side in (found.first, found.second) for mark in _words(side)}
    for number, label, *parts in earlier:
        for part in parts:
            if part is not None and not told.isdisjoint(_words(outputs_of(part))):
                kind = label.partition(" ")[0]
                return ("read" if kind == "read" else "tool"), f", from the {label} of step {number},", number
    role = x.get("role", x.get("type")) if isinstance(x, dict) else None
    kind, words = _WRITERS.get(role, ("unknown", "")) if isinstance(role, str) else ("unknown", "")
    return kind, f" ({words})" if words else "", None


def _words(value: Json) -> set[str]:
    """Return what tells a value: its plain values that say much, and the words of its texts that do."""
    found = set(marks(value))
    return found | {word for mark in found for word in mark.split() if any(letter.isdigit() for letter in word)}

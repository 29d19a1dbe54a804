"""Prompt: which message of two requests differs first, in which words, and where that part came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.change import pair_of
from woodrat.compare.contrast import Sides
from woodrat.compare.usage import came_of, marks
from woodrat.compare.value_difference import differences
from woodrat.records import dataclass
from woodrat.runs import messages
from woodrat.runs.messages import without_call_ids
from woodrat.runs.steps import ModelCall, Part, Write

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
            if part is not None and not told.isdisjoint(_words(came_of(part))):
                kind = label.partition(" ")[0]
                return ("read" if kind == "read" else "tool"), f", from the {label} of step {number},", number
    role = x.get("role", x.get("type")) if isinstance(x, dict) else None
    kind, words = _WRITERS.get(role, ("unknown", "")) if isinstance(role, str) else ("unknown", "")
    return kind, f" ({words})" if words else "", None


def _words(value: Json) -> set[str]:
    """Return what tells a value: its plain values that say much, and the words of its texts that do."""
    found = set(marks(value))
    return found | {word for mark in found for word in mark.split() if any(letter.isdigit() for letter in word)}

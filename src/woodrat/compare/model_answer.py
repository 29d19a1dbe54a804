"""Model answer: what a call of a model did, beside what it said: tools asked for, data returned, a failure.

Prose is wording. Tools that a model asks for are behaviour, and so is data that it returns; where the run records the
calls of those tools as steps of their own, these steps say it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.change import NO_CHANGES, Changes, changes
from woodrat.compare.contrast import differing
from woodrat.compare.value_difference import opened
from woodrat.compare.volatile import steady
from woodrat.runs import messages
from woodrat.runs.messages import without_call_ids
from woodrat.runs.steps import ModelCall

Matters = Callable[[Json, Json], bool]
"""Tells of two volatile values whether a run used either."""


def did(call: ModelCall, tools: Collection[str]) -> Json:
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


def done_otherwise(
    p: ModelCall, q: ModelCall, tools: tuple[Collection[str], Collection[str]], matters: Matters
) -> Changes:
    """Return in what two answers of models differ besides prose."""
    one, two = did(p, tools[0]), did(q, tools[1])
    if one is None and two is None:
        return NO_CHANGES
    if (one is None or two is None) and not any(messages.calls(call.response) for call in (p, q)):
        return NO_CHANGES
    return changes(one, two, matters)


def told_otherwise(p: ModelCall, q: ModelCall) -> bool:
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


def failed_otherwise(p: ModelCall, q: ModelCall) -> bool:
    """Return whether one of two calls failed, or both did in another way."""
    return p.errored != q.errored or not form.same(p.error, q.error)


def asked_in_other_words(p: ModelCall, q: ModelCall, matters: Matters, *, parted: bool) -> tuple[bool, Changes]:
    """Return whether two requests differ in more than what every run makes up anew, and in what.

    Where the runs have parted already, requests with different digests differ; their messages need not be compared.
    """
    if differing(p.parameters, q.parameters) or p.model != q.model:
        return True, NO_CHANGES
    if parted and p.request is not None and q.request is not None and p.request != q.request:
        return True, NO_CHANGES
    if contrast.same_request(p, q):
        return False, NO_CHANGES
    if p.messages is None or q.messages is None:
        return True, NO_CHANGES
    found = changes(without_call_ids(p.messages), without_call_ids(q.messages), matters)
    return bool(found.behaviour or found.wording) or not found.set_aside, found

"""Wrappers: layers that agent frameworks put around messages, arguments and results when they write them into a span.

LangChain writes a message as its class and constructor arguments, as a type with data, or as its fields; others put
arguments beside their own. These functions remove known wrappers and return anything else unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from woodrat.runs import messages as speech
from woodrat.runs.chat_message import unwrapped

LEVELS_MAX: Final = 64
"""Deepest nesting of JSON in an attribute that is parsed; deeper JSON stays text."""
_SPEAKERS: Final = frozenset({"user", "human", "assistant", "ai", "system", "tool"})
_BESIDE: Final = frozenset({"inputs", "outputs", "tags", "metadata", "kwargs"})
"""What OpenLLMetry writes beside the inputs and outputs of a LangChain entity."""
_TASKS: Final = frozenset({"tasks_output", "expected_output"})
"""What CrewAI's output of a crew or of a task has beside its text."""
_ASKING: Final = ("query", "question", "input", "prompt", "task", "user_msg", "user_input", "message")
"""Names under which frameworks keep the question among the inputs of an agent."""


def parsed(value: Any) -> Any:
    """Return the value of text that is a JSON object or list, and anything else unchanged, including JSON nested too
    deeply.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        opened = value.count("{") + value.count("[")
        return found if opened <= LEVELS_MAX or _is_flat(found) else value
    return value


def loaded(text: str) -> Any:
    """Return the value of any JSON text; other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_flat(value: Any) -> bool:
    """Return whether a value has no more levels than are looked into."""
    level = [value]
    for _ in range(LEVELS_MAX):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


def message(value: Any) -> Any:
    """Return one message as its role, its content and the calls it makes."""
    if isinstance(value, list):
        pair = len(value) == 2 and all(isinstance(item, str) for item in value) and value[0] in _SPEAKERS
        return {"role": value[0], "content": value[1]} if pair else value
    inner = unwrapped(value)
    if inner is None:
        return value
    said, role = inner
    told: dict[str, Any] = {"role": role}
    if said.get("content") not in (None, "", []):
        told["content"] = said["content"]
    for name in ("tool_calls", "tool_call_id", "name"):
        if said.get(name):
            told[name] = said[name]
    return told


def messages(value: Any) -> list[Any] | None:
    """Return the messages of a value that has some: a list, a list of one list, or an object with them."""
    if isinstance(value, Mapping):
        generations = value.get("generations")
        if isinstance(generations, list):
            first = generations[0][0] if generations and isinstance(generations[0], list) and generations[0] else None
            inner = first.get("message", first.get("text")) if isinstance(first, Mapping) else first
            return None if inner is None else [message(inner)]
        if unwrapped(value) is not None:
            return [message(value)]
        for name in ("inputs", "outputs"):
            if isinstance(value.get(name), Mapping) and _BESIDE.issuperset(value):
                return messages(value[name])
        return messages(value["messages"]) if isinstance(value.get("messages"), list) else None
    if not isinstance(value, list):
        return None
    if len(value) == 1 and isinstance(value[0], list) and message(value[0]) is value[0]:
        return messages(value[0])
    told = [message(item) for item in value]
    # Text in place of messages is Python's representation of objects, with their ids: not a message.
    return told if not any(isinstance(item, str) for item in told) else None


def question(given: Any) -> str | None:
    """Return the question in an agent's inputs: the user's last message, or the input with such a name."""
    said = speech.question(messages(given))
    if said is None and isinstance(given, Mapping):
        said = next((given[name] for name in _ASKING if isinstance(given.get(name), str) and given[name]), None)
    return said


def tasks(given: Any) -> str | None:
    """Return the question to a crew from its tasks."""
    listed = given if isinstance(given, list) else []
    said = [task["description"] for task in listed if isinstance(task, Mapping) and "description" in task]
    return "\n".join(text for text in said if isinstance(text, str)) or None


def answer(found: Any) -> Any:
    """Return an agent's answer from its result: the text of the last message, if it is the agent's own."""
    if isinstance(found, Mapping) and isinstance(found.get("raw"), str) and _TASKS & found.keys():
        return found["raw"]
    listed = messages(found)
    last = listed[-1] if listed else found
    if not isinstance(last, Mapping) or last.get("role", "assistant") not in ("assistant", "ai"):
        return found
    said = speech.text_in(last)
    return said if said is not None else found


def arguments(given: Any) -> Any:
    """Return the arguments of a tool call."""
    if isinstance(given, Mapping):
        if "input_str" in given and isinstance(given.get("inputs"), Mapping):
            return given["inputs"]
        if not given.get("args") and isinstance(given.get("kwargs"), Mapping):
            return given["kwargs"]
    return given


def result(found: Any) -> tuple[Any, bool]:
    """Return a tool's result, and whether its message reports a failure."""
    inner = found
    if isinstance(found, Mapping) and {"raw_output", "is_error"} <= found.keys():
        return parsed(found["raw_output"]), found["is_error"] is True
    if isinstance(found, Mapping) and "output" in found and {"output", "kwargs"}.issuperset(found):
        inner = found["output"]
    wrapped = unwrapped(inner)
    if wrapped is None:
        return (inner if isinstance(inner, Mapping) and "kwargs" in found else found), False
    said = speech.words(wrapped[0])
    return parsed(said if said is not None else wrapped[0].get("content")), wrapped[0].get("status") == "error"

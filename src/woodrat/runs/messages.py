"""Speech: the words of messages, in whatever shape the maker of a model or of a framework gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_TEXTS: Final = ("content", "text", "parts", "contents", "message_content")
"""Where a message, or a part of one, has its text."""
_UNSPOKEN: Final = ("reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use", "tool-call", "function_call")
"""Types of parts that are no words to anybody."""
_WRAPS: Final = ("tool_call", "function", "toolUse", "function_call")
"""What a call of a tool may stand in."""
_ANSWERS: Final = ("toolResult", "function_response")
"""What a tool's answer may stand in."""
_USERS: Final = (None, "user", "human")
"""Whose messages are questions."""


def answered(response: Any) -> Any:
    """Return the message in a model's whole response, as its maker's interface returns it; a message as it is."""
    if isinstance(response, list) and len(response) == 1:
        return answered(response[0])
    if not isinstance(response, Mapping):
        return response
    choices, output = response.get("choices"), response.get("output")
    if isinstance(choices, list) and choices and "content" not in response:
        first = choices[0]
        return (
            first["message"] if isinstance(first, Mapping) and isinstance(first.get("message"), Mapping) else response
        )
    if isinstance(output, list) and "content" not in response and response.get("object") == "response":
        return {"role": "assistant", "content": output}
    return response


def words(message: Any) -> str | None:
    """Return the text of a message, however it is wrapped; `None` where it says more than text, or nothing."""
    message = answered(message)
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        said = [words(part) for part in message]
        return "\n".join(part for part in said if part is not None) if said and None not in said else None
    if not isinstance(message, Mapping) or message.get("type") in _UNSPOKEN:
        return None
    for name in _TEXTS:
        if message.get(name) is not None:
            return words(message[name])
    return None


def question(messages: Any) -> str | None:
    """Return what was asked in the messages a model was sent: the user's last words."""
    for message in reversed(messages if isinstance(messages, list) else []):
        if not isinstance(message, Mapping) or message.get("role") in _USERS:
            said = words(message)
            if said:
                return said
    return None


def text_in(message: Any) -> str | None:
    """Return the text of a message whatever else it says: the calls it makes and what it thought are left out."""
    message = answered(message)
    whole = words(message)
    if whole is not None or not isinstance(message, Mapping):
        return whole
    for name in _TEXTS:
        if isinstance(message.get(name), list):
            return "\n".join(said for part in message[name] if (said := words(part))) or None
    return None


def gist(message: Any) -> Any:
    """Return what a message comes to for a reader: its text, the tools it asks for, or what a tool answered.

    A message of any other shape is given back as it is.
    """
    called = [f"{name} {json.dumps(args, ensure_ascii=False)}" for name, args in calls(message)]
    said = text_in(message)
    if called:
        return (f"{said} " if said and said.strip() else "") + f"→ {', '.join(called)}"
    if said is not None:
        return said
    answers = [_answered(part) for part in _parts(message)]
    told = [answer for answer in answers if answer is not None]
    return told[0] if len(told) == 1 else told or message


def calls(message: Any) -> list[tuple[str, Any]]:
    """Return the tools that a model's message asks for, each with its arguments."""
    found = []
    for part in _parts(message):
        call = _call(part)
        if call is not None and call not in found:  # some tell a call as a part and in the list of calls
            found.append(call)
    return found


def _parts(message: Any) -> Iterator[Mapping[str, Any]]:
    message = answered(message)
    for name in (*_TEXTS, "tool_calls"):
        listed = message.get(name) if isinstance(message, Mapping) else None
        yield from (part for part in listed if isinstance(part, Mapping)) if isinstance(listed, list) else ()


def _call(part: Mapping[str, Any]) -> tuple[str, Any] | None:
    for name in _WRAPS:
        if isinstance(part.get(name), Mapping):
            return _call(part[name])
    name = part.get("name", part.get("toolName"))
    given = next((part[key] for key in ("arguments", "args", "input") if key in part), None)
    if not isinstance(name, str) or given is None:
        return None
    return name, _parsed(given)


def _answered(part: Mapping[str, Any]) -> Any:
    for name in _ANSWERS:
        if isinstance(part.get(name), Mapping):
            return _answered(part[name])
    if "response" in part or "result" in part:
        return _parsed(part.get("response", part.get("result")))
    output = part.get("output")
    if isinstance(output, Mapping) and "value" in output:
        return _parsed(output["value"])
    said = words(part.get("content"))
    return None if said is None else _parsed(said)


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
    except (ValueError, RecursionError):
        return value


# Call ids: what a model's provider calls each request for a tool. They are made up anew every time and say nothing, so
# they are left out wherever answers and messages of models are compared; the record keeps them.

_CALL_IDS: Final = frozenset({"tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "call_id"})
"""Members that are ids of calls wherever they stand."""
_CALL_TYPES: Final = frozenset(
    {"tool_call", "tool_call_response", "tool_use", "tool_result", "function", "function_call", "function_call_output"}
)
"""Types of objects whose `id` is one."""
_CALL_ARGUMENTS: Final = ("arguments", "args", "input")


def without_call_ids(value: Any) -> Any:
    """Return an answer or messages of a model without the ids of calls."""
    if isinstance(value, list):
        return [without_call_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    called = _is_call(value)
    return {
        name: without_call_ids(item)
        for name, item in value.items()
        if name not in _CALL_IDS and not (called and name == "id")
    }


def _is_call(value: dict[str, Any]) -> bool:
    """Tell whether an object is a request for a tool, or a tool's answer to one."""
    kind = value.get("type")
    if isinstance(kind, str) and kind in _CALL_TYPES:
        return True
    return isinstance(value.get("function"), dict) or (
        "name" in value and any(name in value for name in _CALL_ARGUMENTS)
    )

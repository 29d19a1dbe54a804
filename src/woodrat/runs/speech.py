"""Speech: the words of messages, in whatever shape the maker of a model or of a framework gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_TEXTS: Final = ("content", "text", "parts", "contents", "message_content")
"""Where a message, or a part of one, has its text."""
_UNSPOKEN: Final = ("reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use", "tool-call", "function_call")
"""Types of parts that are no words to anybody."""
_USERS: Final = (None, "user", "human")
"""Whose messages are questions."""


def words(message: Any) -> str | None:
    """Return the text of a message, however it is wrapped; `None` where it says more than text, or nothing."""
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
    whole = words(message)
    if whole is not None or not isinstance(message, Mapping):
        return whole
    for name in _TEXTS:
        if isinstance(message.get(name), list):
            return "\n".join(said for part in message[name] if (said := words(part))) or None
    return None

"""Speech: the words of messages in the shapes that makers of models and frameworks give them."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat.runs import messages as speech


@pytest.mark.parametrize(
    ("message", "whole", "text"),
    [
        ("Hi", "Hi", "Hi"),
        ({"role": "user", "content": "Hi"}, "Hi", "Hi"),
        (
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]},
            "Hi\nyou",
            "Hi\nyou",
        ),
        ({"parts": [{"type": "text", "content": "Hi"}]}, "Hi", "Hi"),
        ({"contents": [{"message_content": {"type": "text", "text": "Hi"}}]}, "Hi", "Hi"),
        ({"parts": [{"type": "text", "content": "So."}, {"type": "tool_call", "name": "f"}]}, None, "So."),
        ({"parts": [{"type": "tool_call", "name": "f"}]}, None, None),
        ({"parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "So."}]}, None, "So."),
        ({"role": "user"}, None, None),
        ({"role": ["user"], "type": {"a": 1}, "content": "Hi"}, "Hi", "Hi"),
        (42, None, None),
    ],
)
def test_words_are_found(message: Any, whole: str | None, text: str | None) -> None:
    """`words` is all of a message that is nothing but text, `text_in` the text of any."""
    assert (speech.words(message), speech.text_in(message)) == (whole, text)


def test_the_question_is_the_last_of_the_user() -> None:
    """Messages of others are passed over, and so are those of the user that say nothing."""
    messages = [
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "human", "parts": [{"text": "Second?"}]},
        {"role": "user"},
        {"role": "tool", "content": "paid"},
    ]
    assert speech.question(messages) == "Second?"
    assert speech.question([{"role": "system", "content": "Be brief."}]) is None
    assert speech.question("no list") is None
    assert speech.question([{"role": ["user"], "content": "Hi"}]) is None


CALL = [("lookup", {"order": "42"})]


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{"id": "c", "function": {"name": "lookup", "arguments": '{"order": "42"}'}}]},
        {"tool_calls": [{"tool_call": {"function": {"name": "lookup", "arguments": '{"order": "42"}'}}}]},
        {"tool_calls": [{"toolCallId": "c", "toolName": "lookup", "input": {"order": "42"}}]},
        {"tool_calls": [{"name": "lookup", "args": {"order": "42"}, "id": "c"}]},
        {"parts": [{"type": "tool_call", "id": "c", "name": "lookup", "arguments": {"order": "42"}}]},
        {"parts": [{"function_call": {"args": {"order": "42"}, "name": "lookup"}}]},
        {"content": [{"toolUse": {"toolUseId": "c", "name": "lookup", "input": {"order": "42"}}}]},
        {"content": [{"type": "tool_use", "id": "c", "name": "lookup", "input": {"order": "42"}}]},
    ],
)
def test_calls_are_found_in_the_shapes_of_their_makers(message: Any) -> None:
    """The tools a model asks for are told by name and arguments, with the words beside them."""
    assert speech.calls(message) == CALL
    assert speech.gist(message) == '→ lookup {"order": "42"}'


@pytest.mark.parametrize(
    ("message", "gist"),
    [
        ("So.", "So."),
        ({"role": "assistant", "content": "So."}, "So."),
        ({"parts": [{"text": "Hm."}, {"type": "tool_call", "name": "f", "arguments": {}}]}, "Hm. → f {}"),
        ({"parts": [{"type": "tool_call_response", "id": "c", "response": '{"paid": true}'}]}, {"paid": True}),
        ({"content": [{"toolResult": {"toolUseId": "c", "content": [{"text": '{"paid": true}'}]}}]}, {"paid": True}),
        ({"content": [{"type": "tool-result", "output": {"type": "json", "value": {"paid": True}}}]}, {"paid": True}),
        ({"parts": [{"function_response": {"name": "f", "response": {"paid": True}}}]}, {"paid": True}),
        ({"data": [{"embedding": [0.5]}]}, {"data": [{"embedding": [0.5]}]}),
        (None, None),
    ],
)
def test_the_gist_of_a_message_is_what_a_reader_looks_for(message: Any, gist: Any) -> None:
    """Words, calls and a tool's answer stand for the message; anything else stays as it is."""
    assert speech.gist(message) == gist

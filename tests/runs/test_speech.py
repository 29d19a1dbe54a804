"""Speech: the words of messages in the shapes that makers of models and frameworks give them."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat.runs import speech


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

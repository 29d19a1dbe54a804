"""Tokens: the same words on every machine, as docs/formats/search.md says."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon.ids import Ref
from woodrat.state import tokens

PAGE = (Path(__file__).parents[2] / "docs/formats/search.md").read_text("utf-8")


def block(name: str) -> str:
    """Return a fenced block of the format page."""
    found = re.search(rf"```{name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def ranges(name: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges a block of the format page lists."""
    numbers = [int(number, 16) for number in block(name).split()]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


EXAMPLES = [line.rpartition("->")[::2] for line in block("tokens").splitlines()]


@pytest.mark.parametrize(("text", "expected"), EXAMPLES, ids=lambda part: part.strip()[:20])
def test_examples_of_the_page_hold(text: str, expected: str) -> None:
    """Every worked example of the format page gives the tokens it shows."""
    assert list(tokens.tokens(json.loads(text))) == expected.split()


def test_the_page_lists_what_the_code_lists() -> None:
    """Separators and single characters are those of the format page, in order and without overlap."""
    assert ranges("separators") == tokens.SEPARATORS
    assert ranges("single") == tokens.SINGLE
    everything = sorted(tokens.SEPARATORS + tokens.SINGLE)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(everything))


def test_every_code_point_is_judged_by_the_rules() -> None:
    """A character alone is a token exactly when the rules of the page make it one, for every code point there is."""
    separating = {point for first, last in tokens.SEPARATORS for point in range(first, last + 1)}
    for point in range(0x110000):
        character = chr(point)
        if point < 0xC0:
            expected = [character.lower()] if character.isascii() and character.isalnum() else []
        else:
            expected = [] if point in separating else [character]
        assert list(tokens.tokens(character)) == expected, hex(point)


def test_a_long_word_is_cut() -> None:
    """Of a word longer than the limit its beginning counts, in a value as in a query."""
    assert list(tokens.tokens("A" * 100 + " b")) == ["a" * tokens.TOKEN_CHARACTERS_MAX, "b"]


@given(st.text(), st.text())
def test_tokens_of_a_text_with_a_space_are_those_of_its_parts(one: str, other: str) -> None:
    """A space separates, whatever stands around it."""
    assert list(tokens.tokens(f"{one} {other}")) == [*tokens.tokens(one), *tokens.tokens(other)]


@given(st.text())
def test_tokens_are_their_own_tokens(text: str) -> None:
    """Cutting a token again gives the token; none is empty, too long or holds NUL."""
    for token in tokens.tokens(text):
        assert list(tokens.tokens(token)) == [token]
        assert 0 < len(token) <= tokens.TOKEN_CHARACTERS_MAX
        assert "\0" not in token


def test_words_stand_in_the_fields_they_were_found_in() -> None:
    """A word knows its fields; one of the key alone stands in none, and marked fields alone count if there are any."""
    ref = Ref("contact", "Ana 1")
    fields = {"bio": {"b": ["Ana in Reus", 7], "a": "x"}, "city": "Reus", "age": 4}
    found = tokens.words([ref], ["Ana@x"], fields, frozenset())  # type: ignore[arg-type]
    assert found == {
        "\0ana 1\0": (),
        "\0ana@x\0": (),
        "ana": ("bio",),
        "1": (),
        "x": ("bio",),
        "in": ("bio",),
        "reus": ("bio", "city"),
    }
    marked = tokens.words([ref], ["Ana@x"], fields, frozenset({"city"}))  # type: ignore[arg-type]
    assert marked == {"\0ana 1\0": (), "\0ana@x\0": (), "ana": (), "1": (), "reus": ("city",)}


def test_the_words_of_one_entity_are_bounded() -> None:
    """Words beyond the limit are left out, those of the key never."""
    text = " ".join(f"w{number}" for number in range(tokens.TOKENS_MAX * 2))
    found = tokens.words([Ref("note", "the key")], [], {"text": text}, frozenset())
    assert len(found) == tokens.TOKENS_MAX
    assert {"the", "key", "w0"} <= found.keys()


def test_matching_asks_for_all_words_by_prefix() -> None:
    """Every wanted token must begin some word; the fields hit by any of them are returned."""
    words: tokens.Words = {"ana": ("name",), "rivera": ("name",), "reus": ("city",), "key": ()}
    assert tokens.matches(words, ["an", "r"]) == frozenset({"name", "city"})
    assert tokens.matches(words, ["key"]) == frozenset()
    assert tokens.matches(words, ["an", "x"]) is None


@given(st.text())
def test_spans_say_where_each_token_stands(text: str) -> None:
    """Spans are the tokens in their order, each where its word stands in the text."""
    found = list(tokens.spans(text))
    assert [token for token, _, _ in found] == list(tokens.tokens(text))
    for token, start, end in found:
        assert tokens.lowered(text)[start:end].startswith(token)

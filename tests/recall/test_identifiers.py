"""Identifiers: what a text names by number, as docs/formats/recall.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.recall import identifiers
from woodrat.recall.identifiers import named_in, naming, pairs_in
from woodrat.state.tokens import tokens

PAGE = (Path(__file__).parents[2] / "docs/formats/recall.md").read_text("utf-8")
BLOCK = re.search(r"```identifiers\n(.*?)```", PAGE, re.DOTALL)
assert BLOCK is not None
EXAMPLES = [line.rpartition("->")[::2] for line in BLOCK[1].splitlines()]


@pytest.mark.parametrize(("question", "expected"), EXAMPLES)
def test_examples_of_the_page_hold(question: str, expected: str) -> None:
    """Every question of the format page asks for what stands beside it."""
    found = naming(json.loads(question))
    assert ", ".join(map(str, found.hashed or found.coded or found.bare)) == expected.strip()


def test_a_text_names_what_is_written_as_an_identifier() -> None:
    """Where something is written as an identifier, plain numbers beside it name nothing."""
    assert named_in(["approve application #43 for 42 people"]) == {"43"}
    assert named_in(["approve application 43"]) == {"43"}
    assert named_in(["review INV-17 for application #42"]) == {"17", "inv-17", "42"}
    assert named_in(["ask ana.r+1@example.com of 10.0.0.1"]) == {"ana.r+1@example.com", "10.0.0.1"}
    assert named_in(["contact/bob@example.org, v1.2.3, 1234-ABC"]) == (
        {"bob@example.org", "v1", "v1.2.3", "1234", "1234-abc"}
    )
    assert named_in(["paid 42 dollars on 2026-01-05"]) == frozenset()


def test_pairs_are_all_numbers_after_a_word() -> None:
    """A number after a word is a pair, whatever it stands for."""
    assert pairs_in(["Credit (580) below floor (600), 43 %"]) == {"credit 580", "floor 600"}
    assert pairs_in(["a loan of $42", "loan/7"]) == {"loan 42", "loan 7"}


@given(st.text(alphabet="ab #1-2/.:%$ 20,é\n", max_size=40))
def test_every_token_with_a_digit_is_told_apart_once(text: str) -> None:
    """Each token with a digit is in exactly one list for each word it follows, and nothing else is in any."""
    found = naming(text)
    named = [each.token for kind in found for each in kind]
    assert set(named) == {token for token in tokens(text) if re.search("[0-9]", token)}


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    """Any text can be asked about."""
    naming(text)
    pairs_in([text])


def test_a_long_row_of_digits_takes_no_long_time() -> None:
    """Ten thousand characters made to confuse are read in one go."""
    for text in ("1" * 10_000, "1," * 5_000, "1." * 5_000, "1:" * 5_000, "2026-01-" * 1_250, "#1-" * 3_000):
        identifiers.naming.cache_clear()
        naming(text)

"""Words: which terms a text has."""

from __future__ import annotations

import pytest

from woodrat.recall import words


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("applications", "applic"),
        ("refunded", "refund"),
        ("deliveries", "deliveri"),
        ("delivery", "deliveri"),
        ("preferring", "prefer"),
        ("quickly", "quick"),
        ("happiness", "happi"),
        ("was", "was"),
        ("inv2026", "inv2026"),
        ("улицы", "улицы"),
    ],
)
def test_endings_are_those_of_the_english_stemmer(word: str, stem: str) -> None:
    """English words lose their endings; short ones, numbers and other scripts stay: another version may not differ."""
    assert words.stem(word) == stem


def test_a_term_after_a_negation_is_negated_where_it_has_an_opposite() -> None:
    """Within two words after a negation, a word that has an opposite is also a negated term."""
    assert list(words.passage_terms("It was not approved, and not large")) == [
        *("it", "was", "not", "approv", "!approv", "and", "not", "larg"),
    ]

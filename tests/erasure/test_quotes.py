"""Quoting: whose a text is, and where it is quoted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.erasure.quotes import FEW, Finder, Quoted, is_long_enough, leaves, texts

MANY = [f"filler-{number}" for number in range(FEW + 1)]
"""So many texts that they are looked for in another way."""


@pytest.mark.parametrize("more", [[], MANY], ids=["few", "many"])
@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        ("Anna", True),
        ("Anna.", True),
        ("call (Anna)", True),
        ("user_anna Anna_x", True),
        ("Annabelle", False),
        ("Hanna", False),
        ("ÉAnna", False),
        ("Annaé", False),
        ("anna", False),
        (json.dumps({"a": "x\nAnna"}), True),
        (json.dumps({"a": "x\u2014Anna"}), True),
        (json.dumps({"a": "éAnna"}), False),
        ("東京Anna東京", True),
        ("tel 5551234567", True),
        ("tel 55512345678", False),
        ("tel 15551234567", False),
        ("5551234567.5", False),
        ("-5551234567", True),
        ("see loan/42", True),
        ("loan/42, loan/43", True),
        ("loan/420", False),
        ("loan/42b", False),
        (json.dumps("Zoë Ångström"), True),
        ('["loan/42","x/y"]', True),
        ("东山太郎さん", True),
    ],
)
def test_a_text_is_quoted_as_a_whole_word(more: list[str], text: str, quotes: bool) -> None:
    """A name, a number or a reference is quoted where it stands by itself, also inside JSON that was kept as text."""
    quoted = Quoted(["Anna", "5551234567", "Zoë Ångström", "东山太郎", *more], ["loan/42"])
    assert quoted.is_in(text) is quotes
    assert ("[ERASED]" in quoted.taken_out(text)) is quotes
    assert not quoted.is_in(quoted.taken_out(text))
    if quotes:
        assert quoted.may_be_in("run.noted", form.serialise(text))
        assert quoted.may_be_in("source", text.encode())


@given(st.lists(st.text("abc", min_size=4, max_size=6), min_size=1, max_size=4), st.text("abc", max_size=30))
def test_finding_many_is_finding_each(sought: list[str], data: str) -> None:
    """Few or many, the same places are found, and of those that begin at one place the longest comes first."""
    expected = sorted(
        ((start, text) for text in set(sought) for start in range(len(data)) if data.startswith(text, start)),
        key=lambda found: (found[0], -len(found[1])),
    )
    for finder in (Finder(sought), Finder([*sought, *MANY])):
        assert list(finder.places(data)) == expected
        assert finder.finds(data) is bool(expected)


def test_what_is_too_short_is_not_looked_for() -> None:
    """Four characters or six digits are looked for; our own marks never."""
    assert [
        text for text in ("abc", "abcd", "12345", "123456", "1.2345", "12.3456", "-1e5") if is_long_enough(text)
    ] == [
        "abcd",
        "123456",
        "12.3456",
    ]
    assert not is_long_enough("[ERASED]")
    assert not is_long_enough("[REDACTED]")


def test_values_are_taken_apart() -> None:
    """Texts and numbers count at any depth; the keys of an object are stated, but are nobody's values."""
    value: Json = {"k": ["a", 1.5, {"b": "c", "n": None, "t": True}]}
    assert sorted(texts(value)) == ["1.5", "a", "c"]
    assert sorted(leaves(value)) == ["1.5", "a", "b", "c", "k", "n", "t"]


def test_what_stands_inside_longer_words_is_not_sought_in_files() -> None:
    """A spelling that surviving bodies hold inside a longer word would be found in the files for ever."""
    quoted = Quoted(["Anna", "Berta"])
    assert quoted.spellings() == {b"Anna", b"Berta"}
    assert quoted.spellings([("observation", b'{"name":"Annabelle"}')]) == {b"Berta"}

"""Patterns: they find what Python's finds, end always, and refuse what they do not know."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.runs import pattern
from woodrat.runs.pattern import PatternError, read

ATOMS = st.sampled_from(
    ["a", "b", "1", "_", " ", "é", ".", "[ab]", "[^a]", "[a-c1]", r"[\d-]", r"\d", r"\w", r"\s", r"\W", r"\D", r"\."]
)
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{1,}", "*?", "+?", "??"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, REPEATS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(st.sampled_from(["^", r"\b"]), inner).map("".join),
        st.tuples(inner, st.sampled_from(["$", r"\b"])).map("".join),
    ),
    max_leaves=8,
)
TEXTS = st.text(alphabet="abcABC1_ .\né", max_size=10)


@given(PATTERNS, TEXTS, st.booleans())
def test_a_pattern_finds_what_pythons_does(text: str, searched: str, ignores_case: bool) -> None:
    """Within the language, and with ASCII classes, a pattern is found exactly where Python's `re` finds it."""
    # Python's $ also matches before a last newline; ours means the end of the text.
    theirs = re.compile(text.replace("$", r"\Z"), re.ASCII | (re.IGNORECASE if ignores_case else 0))
    ours = read(("(?i)" if ignores_case else "") + text)
    assert ours.found_in(searched) is bool(theirs.search(searched))


@pytest.mark.parametrize("text", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)x", "a?" * 25 + "a" * 25 + "$"])
def test_no_pattern_takes_for_ever(text: str) -> None:
    """Patterns that make a backtracking search take years are answered at once."""
    assert read(text).found_in("a" * 10_000) is text.endswith("$")


@pytest.mark.parametrize(
    "text",
    [
        *("(?=a)", "(?P<n>a)", "(?i", r"(a)\1", r"\q", "\\", "\\x1"),
        *("[", "[]", "[b-a]", "[\\d-z]", "(", ")", "a{", "a{3,2}", "a**", "a*+", "*a", "^*"),
        *("a{99999}", "(a{100}){100}", "a" * 1001, "(" * 60 + ")" * 60),
    ],
)
def test_what_is_not_of_the_language_is_an_error(text: str) -> None:
    """References back, looking around, malformed and oversized patterns are refused, saying why."""
    with pytest.raises(PatternError, match=r"pattern|states"):
        read(text)


def test_a_search_beyond_its_limits_is_an_error() -> None:
    """A text that is too long, and a search of too many steps, are refused rather than cut."""
    with pytest.raises(PatternError, match="65536 is the limit"):
        read("a").found_in("b" * (pattern.TEXT_CHARACTERS_MAX + 1))
    with pytest.raises(PatternError, match="more than 2000000 steps"):
        read("(a?){300}[ab]{300}c").found_in("ab" * 30_000)


def test_the_number_of_steps_does_not_depend_on_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a search is within its limit is the same with and without moves kept from before."""
    monkeypatch.setattr(pattern, "STEPS_MAX", 100)
    monkeypatch.setattr(pattern, "MOVES_MAX", 1)
    with pytest.raises(PatternError):
        read("(?:ab)+c").found_in("ab" * 50)
    monkeypatch.setattr(pattern, "MOVES_MAX", 4_096)
    for _ in range(2):
        with pytest.raises(PatternError):
            read("(?:ab)+c").found_in("ab" * 50)

"""Locators: what one may say, what a source contradicts, and the words it points at."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.state import locator, observation
from woodrat.state.locator import Content
from woodrat.state.observation import ASSERT, say

REF = Ref("contact", "Ana")
SOURCE = "src_" + "a" * 52
TEXT = Content("\ufeffAna moved.\r\nShe lives in Olot.\rSince May.\n".encode())
JSON = Content(b'{"items": [{"a/b": 1, "m~n": null}], "": "empty"}')
PICTURE = Content(b"\x89PNG\xff\x00")


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"page": 1}, []),
        ({"line": 1, "end_line": 1}, []),
        ({"pointer": ""}, []),
        ({"pointer": "/items/0/a~1b", "quote": "x" * 4096, "page": 2**53 - 1}, []),
        ({}, [""]),
        (None, [""]),
        ([], [""]),
        ("page 3", [""]),
        ({"page": 0}, ["/page"]),
        ({"page": True}, ["/page"]),
        ({"page": 1.5}, ["/page"]),
        ({"page": None}, ["/page"]),
        ({"page": 2**53}, ["/page"]),
        ({"end_line": 2}, ["/end_line"]),
        ({"line": 3, "end_line": 2}, ["/end_line"]),
        ({"pointer": "items/0"}, ["/pointer"]),
        ({"pointer": "/~2"}, ["/pointer"]),
        ({"pointer": "/a~"}, ["/pointer"]),
        ({"pointer": 7}, ["/pointer"]),
        ({"pointer": "/" + "x" * 4096}, ["/pointer"]),
        ({"quote": ""}, ["/quote"]),
        ({"quote": "é" * 2049}, ["/quote"]),
        ({"quote": "a\0b"}, ["/quote"]),
        ({"paragraph": 3}, ["/paragraph"]),
        (
            {"page": 0, "line": -1, "x/y": 1, "quote": ["no"], "pointer": "no"},
            ["/x~1y", "/page", "/line", "/quote", "/pointer"],
        ),
    ],
)
def test_what_a_locator_may_say(value: Any, paths: list[str]) -> None:
    """A locator has at least one known part, each of its kind; all that is wrong is said at once."""
    assert [fault.path for fault in locator.faults(value, "")] == paths


def test_a_locator_leads_into_a_source() -> None:
    """An observation has one only with a source or an interpretation, and says it in its body and its name."""
    plain = say(REF, ASSERT, agent="a", observed_at="2026-01-05T09:00:00.000000Z", fields={"x": 1}, source=SOURCE)
    parts: Any = {**form.decode(plain.body), "locator": {"line": 2}}
    found = observation.admit(form.encode(parts))
    assert (found.optional["locator"], found.to_json()["locator"]) == ({"line": 2}, {"line": 2})
    assert found.digest != plain.digest
    observation.admit(form.encode({**{k: v for k, v in parts.items() if k != "source"}, "interpretation": "int_1"}))
    del parts["source"]
    with pytest.raises(Refused, match="/locator: a locator needs a source"):
        observation.admit(form.encode(parts))
    with pytest.raises(Refused, match="/locator/page"):
        observation.admit(form.encode({**parts, "source": SOURCE, "locator": {"page": 0}}))


@pytest.mark.parametrize(
    ("where", "content", "words", "paths"),
    [
        ({"line": 2}, TEXT, "She lives in Olot.", []),
        ({"line": 1, "end_line": 3}, TEXT, "Ana moved.\nShe lives in Olot.\nSince May.", []),
        ({"line": 4}, TEXT, None, ["/line"]),
        ({"line": 3, "end_line": 9}, TEXT, "Since May.", ["/end_line"]),
        ({"quote": "lives in Olot"}, TEXT, "lives in Olot", []),
        ({"quote": "lives in Vic", "page": 3}, TEXT, None, ["/quote"]),
        ({"page": 3}, TEXT, None, []),
        ({"pointer": "/x"}, TEXT, None, []),
        ({"pointer": "/items/0/a~1b"}, JSON, "1", []),
        ({"pointer": "/items/0/m~0n"}, JSON, "null", []),
        ({"pointer": "/"}, JSON, "empty", []),
        ({"pointer": "/items/00"}, JSON, None, ["/pointer"]),
        ({"pointer": "/items/1", "quote": "empty"}, JSON, "empty", ["/pointer"]),
        ({"pointer": "/items/-"}, JSON, None, ["/pointer"]),
        ({"line": 9, "quote": "x", "pointer": "/x"}, PICTURE, None, []),
        ({"line": 1}, Content(b""), "", []),
        ({"line": 2}, Content(b""), None, ["/line"]),
    ],
)
def test_the_words_of_a_source(where: Any, content: Content, words: str | None, paths: list[str]) -> None:
    """A source shows the words a locator points at, and says which parts of it lead nowhere."""
    assert locator.excerpt(where, content) == words
    assert [fault.path for fault in locator.mismatches(where, content, "")] == paths


def test_an_excerpt_is_cut() -> None:
    """However long the lines are, an excerpt has at most 500 characters."""
    found = locator.excerpt({"line": 1}, Content(b"x" * 100_000))
    assert found is not None
    assert (len(found), found[-1]) == (500, "…")


def test_large_and_odd_sources_are_left_alone() -> None:
    """Of a source too large to look through, or nested too deep, nothing is said."""
    large = Content(b"x" * (locator.CONTENT_BYTES_MAX + 1))
    assert (locator.excerpt({"line": 1}, large), locator.mismatches({"line": 9}, large, "")) == (None, [])
    deep = Content(b"[" * 200_000)
    assert locator.mismatches({"pointer": "/0"}, deep, "") == []


def test_in_words() -> None:
    """For people a locator is a few words."""
    where = {"page": 3, "line": 1, "end_line": 2, "pointer": "", "quote": "x" * 80}
    assert locator.words(where) == f"page 3, lines 1 to 2, at the whole document, “{'x' * 59}…”"
    assert locator.words({"line": 4, "end_line": 4}) == "line 4"

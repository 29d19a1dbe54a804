"""Levels: what is wording and what is behaviour, what is set aside, whose choice it was, where a prompt came from."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compare.test_divergence import model, other, ran, read, tool

from woodrat.compare.divergence import compare
from woodrat.compare.noise import around, is_prose, reworded

ONE, TWO = "0b7c1fb4-26f0-4f6e-a0a1-5b9b7f6f7c11", "9f1c55aa-0c1d-4f6e-b0a1-1b9b7f6f7c22"


def test_a_random_id_that_nobody_used_is_set_aside() -> None:
    """It is listed with its step, path and kind, and the runs are the same."""
    found = compare(
        ran(tool("book", {"id": ONE, "seat": "4A"})), other(tool("book", {"id": TWO, "seat": "4A"}), answer="No.")
    )
    assert (found.same, found.level) == (True, "none")
    assert [(aside.step, aside.path, aside.kind, aside.first) for aside in found.set_aside] == [
        (1, "result.id", "random id", ONE)
    ]
    assert found.sentence.endswith("; one value that every run makes up anew was set aside.")


def test_a_random_id_that_a_later_call_used_is_never_set_aside() -> None:
    """What one run handed to a later call is where they part, and the later call follows from it."""
    first = ran(tool("book", {"id": ONE}), tool("pay", booking=ONE))
    found = compare(first, other(tool("book", {"id": TWO}), tool("pay", booking=TWO), answer="No."))
    assert (found.level, found.step, found.set_aside) == ("behaviour", 1, ())
    assert found.cause is not None
    assert (found.cause.path, found.cause.first, found.cause.second) == ("id", ONE, TWO)
    assert found.rows[2].follows == 1


def test_what_was_read_from_the_ledger_is_never_set_aside() -> None:
    """A time that somebody stated is a fact."""
    found = compare(ran(read("2026-01-05T09:00:00Z")), other(read("2026-01-06T10:00:00Z"), answer="No."))
    assert (found.level, found.step) == ("behaviour", 1)


def test_the_choice_of_a_model_is_called_so() -> None:
    """Asked the same, the model called the tool with something else."""
    asked = [{"role": "user", "content": "Book a seat."}]
    first = ran(model("ok", messages=asked), tool("book", seat="4A"))
    found = compare(first, other(model("fine", messages=asked), tool("book", seat="9C"), answer="No."))
    assert found.cause is not None
    assert (found.step, found.cause.kind, found.cause.details["model_step"]) == (2, "output", 1)
    assert "called with seat=4A in the first run and seat=9C in the second, the model's choice" in found.sentence
    assert found.wording is not None
    assert found.wording.startswith(
        "Before that the wording differed, first at step 1, the model small-1: asked the same"
    )


@pytest.mark.parametrize(
    ("role", "source", "words"),
    [("system", "system", "the system prompt"), ("user", "user", "the words of the user")],
)
def test_a_prompt_that_differs_says_where_that_part_came_from(role: str, source: str, words: str) -> None:
    """Which message, which words of a long one, and whose they are."""
    long = "Answer in a friendly way and keep it short. " * 20
    first = ran(model("x", messages=[{"role": role, "content": f"{long}Be strict about refunds."}], request="a"))
    second = other(model("y", messages=[{"role": role, "content": f"{long}Be kind about refunds."}], request="b"))
    cause = compare(first, second).cause
    assert cause is not None
    assert (cause.kind, cause.details["prompt"]["from"], cause.details["prompt"]["message"]) == ("prompt", source, 1)
    assert f"message 1 of the request ({words}) was " in cause.text
    assert "Be strict about refunds." in cause.text
    assert len(cause.text) < 300


def test_the_same_tool_with_other_arguments_is_called_with() -> None:
    """An extra call of a tool that both call next is told by its arguments."""
    found = compare(
        ran(tool("get", 1, order="A1"), tool("get", 2, order="B2")), other(tool("get", 2, order="B2"), answer="No.")
    )
    assert "it was called with order=A1 in the first run and order=B2 in the second" in found.sentence
    assert "only the first run" not in found.sentence


def test_a_change_before_its_lookup_is_another_behaviour() -> None:
    """Two lookups may be swapped; what was paid before it was looked up may not."""
    look, again, pay = (
        tool("get_order", {"total": 5}, order="A17"),
        tool("get_rates", 3, day="Mon"),
        tool("pay", order="A17"),
    )
    assert compare(ran(look, again, pay), other(again, look, pay, answer="No.")).reordered != ()
    assert compare(ran(look, again, pay), other(again, look, pay, answer="No.")).level == "none"
    found = compare(ran(look, again, pay), other(pay, look, again, answer="No."))
    assert found.level == "behaviour"
    assert "earlier, before the tool" in found.sentence


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("The customer wants to have the order sent again.", "Please have it sent to the customer once more.", True),
        ("The refund of $1,200.00 goes to the card of the user.", "To the card of the user we refund 1200.", True),
        ("The refund of $50 goes to the card of the user.", "The refund of $40 goes to the card of the user.", False),
        (
            "We have sent it to Anna as she has asked us to do.",
            "We have sent it to Pere as he has asked us to do.",
            False,
        ),
        (
            "SELECT a FROM t WHERE the = 1 AND to = 2 OR is = 3",
            "SELECT b FROM t WHERE the = 1 AND to = 2 OR is = 3",
            False,
        ),
        ("443 Maple Drive, Suite 394", "12 Oak Street, Suite 1", False),
        ("no longer needed", "ordered by mistake", False),
    ],
)
def test_prose_in_other_words(first: str, second: str, same: bool) -> None:
    """Prose may be reworded as long as it names the same facts; addresses, codes and reasons from a list are data."""
    assert reworded(first, second) == reworded(second, first) == same


def test_long_texts_are_shown_where_they_differ() -> None:
    """Of two long texts the words around the first difference are shown, on one line."""
    words: Any = "all the same words again and again " * 500
    one, two = around(f"{words}north\nof here {words}", f"{words}south\nof here {words}")
    assert "north of here" in one
    assert "south of here" in two
    assert max(len(one), len(two)) < 100
    assert is_prose(words)

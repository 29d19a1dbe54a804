"""Passages: what of a run is embedded."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat.recall.passages import (
    ANSWERED,
    ASKED,
    DECIDED,
    PASSAGE_CHARACTERS_MAX,
    RECALLED,
    Passage,
    passage,
    start_of,
)

START: dict[str, Any] = {"query": "Should we approve application #42?", "subject": "loan/42", "inputs": {"amount": 9}}


def of(kind: str, body: dict[str, Any], start: dict[str, Any] | None = None) -> Passage:
    """Return the passage of an entry, which must have one."""
    found = passage(kind, body, start_of(START if start is None else start))
    assert found is not None
    return found


def test_what_was_asked() -> None:
    """A start gives its query and subject, and names what they name."""
    found = of("run.started", START)
    assert (found.kind, found.text) == (ASKED, "Should we approve application #42? loan/42")
    assert found.names == ("42",)
    assert found.pairs == ("amount 9", "application 42", "loan 42")


def test_inputs_name_where_nothing_else_does() -> None:
    """A run asked without a number is named by what it was given."""
    assert of("run.started", {"query": "Review it", "inputs": {"applicationId": 42}}).names == ("42",)
    assert of("run.started", START).names == ("42",)


def test_a_decision() -> None:
    """A decision gives its subject, stage, choice and rule, and the evidence of the rule that matched, as words."""
    rules = [
        {"label": "Fraud", "matched": False, "conditions": [{"key": "fraud", "actual": 1, "operand": 9}]},
        {"matched": True, "conditions": [{"key": "creditScore", "op": "lt", "actual": 580, "operand": 600}]},
    ]
    found = of(
        "run.decided", {"stage": "classify-risk", "chosen": "rejected", "rule": "Marginal credit", "rules": rules}
    )
    assert found.kind == DECIDED
    assert found.text == "loan/42 classify-risk rejected Marginal credit credit Score 580 threshold 600"
    assert found.names == ()
    assert found.pairs == ("score 580", "threshold 600")


def test_an_answer() -> None:
    """An answer gives its text; it names things only where the start names none."""
    body = {"answer": "Application #42: REJECTED. Credit (580) below floor (600)."}
    assert of("run.ended", body).names == ()
    assert of("run.ended", body, {"query": "Review it"}).names == ("42",)
    assert of("run.ended", body).kind == ANSWERED
    assert of("run.ended", {"answer": {"creditScore": 580, "ok": False}}).text == "credit Score 580 ok false loan/42"


@pytest.mark.parametrize("body", [{}, {"answer": None}, {"answer": ""}, {"status": "error"}])
def test_an_end_without_an_answer_has_no_passage(body: dict[str, Any]) -> None:
    """Nothing answered is nothing to look for."""
    assert passage("run.ended", body, start_of(START)) is None


def test_what_was_too_long_gives_its_beginning() -> None:
    """A value that was cut when it was recorded is read by its preview, any other up to the limit."""
    cut = {"$truncated": {"bytes": 99_999, "digest": "00", "preview": "Application #42"}}
    assert of("run.ended", {"answer": cut}).text == "Application #42 loan/42"
    assert len(of("run.ended", {"answer": "x" * 99_999}).text) == PASSAGE_CHARACTERS_MAX
    assert len(of("run.ended", {"answer": ["x" * 999] * 99_999}).text) == PASSAGE_CHARACTERS_MAX


def test_a_note_of_a_recall_names_the_runs() -> None:
    """The note a recall left in older logs is known again; other notes are nothing."""
    hits = [{"run": "run_a", "score": 0.8}, {"run": "run_b", "score": 0.7}]
    note = {"text": "recalled", "data": {"event": "recalled", "question": "Why?", "hits": hits}}
    assert of("run.noted", note) == Passage(RECALLED, "", runs=("run_a", "run_b"))
    assert passage("run.noted", {"text": "recalled"}, start_of(START)) is None
    assert passage("run.noted", {"text": "x", "data": {"event": "resumed"}}, start_of(START)) is None


def test_a_read_that_recalled_names_the_runs() -> None:
    """A recall recorded as a read is known; other reads, and a recall that failed, are nothing."""
    hit = {"run": "run_a", "score": 0.8, "passage": "decided", "at": 3}
    read = {"within": "recall", "found": True, "recalled": [hit]}
    assert of("run.read", read) == Passage(RECALLED, "", runs=("run_a",))
    assert passage("run.read", {**read, "within": "search"}, start_of(START)) is None
    assert passage("run.read", {**read, "error": {"type": "Unavailable"}}, start_of(START)) is None


@pytest.mark.parametrize("kind", ["run.started", "run.decided", "run.ended", "run.noted", "run.read", "run.tool"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": 1, "subject": [], "inputs": "x", "answer": [[], {}], "rules": 3, "stage": None, "data": []},
        {"rules": [None, {"matched": True, "conditions": [None, {}]}], "data": {"event": "recalled", "hits": [1]}},
    ],
)
def test_bodies_of_any_shape_are_taken(kind: str, body: dict[str, Any]) -> None:
    """A body that another recorder wrote in some other shape breaks nothing."""
    passage(kind, body, start_of(body))

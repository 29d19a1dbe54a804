"""Halving and walking a log: the flip found is one, and few states are folded for it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.bisect.search import (
    Bisected,
    Flip,
    FlipRange,
    LookedChange,
    flip_sentence,
    halve,
    no_flip_sentence,
    walk,
)
from woodrat.compare.cause import Statement
from woodrat.merge.diff import FieldChange


class Log:
    """Writes of given lengths, and the answer after each; the answer before all comes first."""

    def __init__(self, lengths: list[int], answers: list[bool]) -> None:
        self.ends = [-1, *(end - 1 for end in accumulate(lengths))]
        self.answers = dict(zip(self.ends, answers, strict=True))
        self.asked: list[int] = []

    def ask(self, position: int) -> bool:
        """Answer at the end of a write; a position inside one has no answer."""
        self.asked.append(position)
        return self.answers[position]

    def write_of(self, position: int) -> tuple[int, int]:
        """Return the write a position lies in."""
        number = bisect_right(self.ends, position - 1)
        return self.ends[number - 1] + 1, self.ends[number]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Return logs of short and long writes whose answer flips any number of times."""
    lengths = draw(st.lists(st.one_of(st.just(1), st.integers(1, 40)), min_size=1, max_size=40))
    answers = draw(st.lists(st.booleans(), min_size=len(lengths) + 1, max_size=len(lengths) + 1))
    return Log(lengths, answers)


@given(logs())
def test_what_halving_finds_is_a_flip(log: Log) -> None:
    """Where the ends differ, two neighbouring states with other answers are found, in about log2 of the positions."""
    low, high = log.ends[0], log.ends[-1]
    result = halve(low, high, log.ask, log.write_of)
    assert result.answers == (log.answers[low], log.answers[high])
    assert result.folds == len(log.asked)
    if result.high is None:
        assert log.answers[low] is log.answers[high]
        return
    assert log.ends.index(result.high) == log.ends.index(result.low) + 1
    assert log.answers[result.low] is log.answers[low]
    assert log.answers[result.high] is log.answers[high]
    assert result.folds <= (high - low).bit_length() + 2


@given(logs())
def test_walking_finds_the_first_flip(log: Log) -> None:
    """Asking every state in order finds the first one whose answer is another, or that there is none."""
    result = walk(-1, log.ends[1:], log.ask)
    first = next((pair for pair in pairwise(log.ends) if log.answers[pair[0]] is not log.answers[pair[1]]), None)
    assert (None if result.high is None else (result.low, result.high)) == first


@pytest.mark.parametrize("at", [0, 1, 4_711, 61_234, 99_998, 99_999])
def test_a_hundred_thousand_entries_take_about_seventeen_folds(at: int) -> None:
    """One flip among 100,000 writes is found by 17 folds between both ends, wherever it is."""
    asked: list[int] = []

    def ask(position: int) -> bool:
        asked.append(position)
        return position >= at

    told: list[tuple[int, int]] = []
    result = halve(-1, 99_999, ask, lambda position: (position, position), lambda *how: told.append(how))
    assert (result.low, result.high) == (at - 1, at)
    assert result.folds == len(asked) <= 2 + 17
    assert told == sorted(told)
    assert told[-1][0] <= told[-1][1]


def test_one_state_alone_is_asked_once() -> None:
    """Beginning and ending at the same state is an answer: there is no flip."""
    assert halve(4, 4, lambda _: True, lambda at: (at, at)) == FlipRange(4, None, (True, True), 1)


def statement(op: str = "assert", **parts: Any) -> Statement:
    """Return what somebody said of loan 42."""
    fields = parts.pop("fields", {"creditScore": 580})
    return Statement("obs_1", parts.pop("entity", "loan/42"), op, "crm", 5, None, fields, **parts)


def flip(*said: Statement, changes: tuple[LookedChange, ...] = (), **parts: Any) -> Flip:
    """Return a flip at position 5."""
    at = "2026-01-05T09:00:00.000000Z"
    chosen, schemas = parts.get("chosen"), parts.get("schemas", {})
    return Flip(5, 5, 4, at, (False, True), changes, chosen, said, schemas)


FELL = (LookedChange("loan/42", True, True, False, False, (FieldChange("creditScore", True, 710, True, 580),)),)


@pytest.mark.parametrize(
    ("flipped", "clause"),
    [
        (
            flip(statement(source="src_1", source_name="bureau.txt", run="run_1"), changes=FELL),
            "crm asserted creditScore 580 from bureau.txt in run_1; loan/42#creditScore was 710, is 580",
        ),
        (
            flip(statement("retract", fields={}, replaces=("obs_9",)), changes=FELL),
            "crm retracted obs_9 of loan/42; loan/42#creditScore was 710, is 580",
        ),
        (flip(statement("delete", fields={})), "crm deleted loan/42"),
        (flip(statement(fields={"from": "a/1"}, entity='same_as/["a/1","a/2"]')), 'crm joined ["a/1","a/2"]'),
        (flip(schemas={"loan": (1, 2)}), "schema loan went from version 1 to 2"),
        (
            flip(statement(), changes=FELL, chosen=("approved", "rejected")),
            "crm asserted creditScore 580; loan/42#creditScore was 710, is 580, so that rejected is chosen "
            "instead of approved",
        ),
    ],
)
def test_a_flip_is_told_in_a_sentence(flipped: Flip, clause: str) -> None:
    """It says what was asked, when it flipped, who said what, and in how many folds it was found."""
    assert flip_sentence("Q", flipped, first=False, folds=9) == (
        f"Q: false became true at position 5, recorded 2026-01-05T09:00:00Z: {clause} (a flip, found in 9 folds)."
    )


def test_the_statement_that_says_what_is_believed_now_is_told() -> None:
    """Of several statements of a write the one whose value holds now is named, not the one that merely came first."""
    other = statement(fields={"creditScore": 600})
    assert "asserted creditScore 580" in flip_sentence("Q", flip(other, statement(), changes=FELL), first=True, folds=2)


def test_no_flip_is_told_with_both_answers() -> None:
    """Where both ends agree both answers are said; a walk says that every state was asked."""
    assert no_flip_sentence("Q", -1, 9, (False, False), first=False).startswith(
        "Q: false before the first entry and false at position 9; "
    )
    assert no_flip_sentence("Q", 3, 9, (True, True), first=True) == (
        "Q: true at position 3 and in every state up to position 9; nothing flips."
    )


def test_an_outcome_is_true_when_there_is_a_flip() -> None:
    """`if ledger.bisect(…)` reads as it should, and JSON holds all of it."""
    outcome = Bisected("Q", -1, 9, (False, True), flip(statement(), changes=FELL), False, 6, "S.")
    assert outcome
    assert not Bisected("Q", -1, 9, (False, False), None, True, 6, "S.")
    shown = outcome.to_json()
    assert (shown["start"], shown["end"], shown["flip"]["position"], shown["folds"]) == (-1, 9, 5, 6)
    change = {"field": "creditScore", "had": True, "before": 710, "has": True, "after": 580, "part": False}
    assert shown["flip"]["changes"] == [
        {"entity": "loan/42", "existed": True, "exists": True, "was_deleted": False, "is_deleted": False}
        | {"fields": [change]}
    ]
    assert (shown["flip"]["chosen"], shown["flip"]["undecided"]) == (None, [None, None])

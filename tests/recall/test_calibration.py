"""The calibration: one threshold for few memories and for many, numbers that name something else, negations, times."""

from __future__ import annotations

from typing import Any

import pytest

import woodrat
from woodrat.recall import calibration
from woodrat.recall.calibration import Features
from woodrat.testing.clock import FixedClock

NOW = "2026-11-17T12:00:00.000000Z"
OTHERS = [
    f"The {colour} {thing} was counted again"
    for colour in ("red", "blue", "grey", "green", "white")
    for thing in ("crate", "ladder", "barrel", "basket", "trolley", "drum")
]


def told(*decisions: tuple[str, str, str, str], notes: tuple[str, ...] = ()) -> woodrat.Ledger:
    """Return a ledger with decisions (subject, asked, chosen, because) and notes."""
    ledger = woodrat.open(":memory:", agent="desk", clock=FixedClock("2026-11-16T09:00:00.000000Z"))
    for subject, asked, chosen, because in decisions:
        with ledger.run(asked, subject=subject) as run:
            run.decided("outcome", chosen, because=because)
    for text in notes:
        ledger.remember(text)
    return ledger


def subjects(found: Any) -> list[str]:
    """Return what the runs that were found are about."""
    return [hit.record.subject for hit in found.hits]


LOANS = tuple(
    (f"loan/{number}", f"Decide on the loan of {person}", chosen, because)
    for number, person, chosen, because in (
        (4107, "Dario Ferrari", "approved", "steady income"),
        (4112, "Signe Haug", "rejected", "instalments too high"),
        (4119, "Kwame Osei", "rejected", "no guarantor"),
        (4125, "Petra Novak", "approved", "house as security"),
    )
)


def test_a_number_that_names_nothing_stored_is_not_answered_with_another() -> None:
    """Loan 4999 is none of the loans there are; loan 4112 is one of them, and decides."""
    ledger = told(*LOANS)
    assert not ledger.recall("why was loan 4999 rejected?")
    assert subjects(ledger.recall("why was loan 4112 rejected?")) == ["loan/4112"]


def test_a_number_after_a_mere_word_excludes_nothing() -> None:
    """Errors that were returned are those that were thrown."""
    asked = "checkout returned 500 errors for an hour"
    ledger = told(*LOANS, ("service/checkout", asked, "expired-token", "the token ran out"))
    assert subjects(ledger.recall("why did checkout throw 500 errors?")) == ["service/checkout"]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("which loan was not approved?", {"loan/4112", "loan/4119"}),
        ("which loan was not rejected?", {"loan/4107", "loan/4125"}),
        ("which loan was approved?", {"loan/4107", "loan/4125"}),
    ],
)
def test_after_a_negation_the_opposite_comes_first(question: str, wanted: set[str]) -> None:
    """What was not approved was rejected."""
    assert set(subjects(told(*LOANS).recall(question, k=2, threshold=0))) == wanted


def test_what_was_not_renewed_is_said_so() -> None:
    """A record may say the opposite with a negation of its own."""
    ledger = told(
        ("contract/Elevix", "Maintenance contract with Elevix", "renewed", "quick call-outs"),
        ("contract/Inkwell", "Printer contract with Inkwell", "not renewed", "we hardly print"),
    )
    assert subjects(ledger.recall("which contract was not renewed?", k=1, threshold=0)) == ["contract/Inkwell"]
    assert subjects(ledger.recall("which contract was renewed?", k=1, threshold=0)) == ["contract/Elevix"]


@pytest.mark.parametrize("others", [0, 4, 30])
def test_one_threshold_holds_for_few_memories_and_for_more(others: int) -> None:
    """A paraphrase is found, and a question about nothing is not, however much else there is."""
    ledger = told(notes=("The spare badge for the car park lies under the coffee machine", *OTHERS[:others]))
    assert [hit.text for hit in ledger.recall("Where is the extra badge for the parking lot?").hits]
    nothing = ledger.recall("Which planet has the most moons?")
    assert not nothing
    assert nothing.rejected == () or nothing.rejected[0].score < 0.5


def test_a_month_that_a_memory_speaks_of_may_be_what_is_asked_about() -> None:
    """The decision about January was made in November; something else was said in January."""
    ledger = woodrat.open(":memory:", agent="desk", clock=FixedClock("2026-11-16T09:00:00.000000Z"))
    for text, day in (
        ("The kettle was cracked", "2026-01-12"),
        ("Raise the subscription price in January", "2026-10-30"),
    ):
        ledger.store({"entity_type": "note", "text": text, "$": {"key": day, "observed_at": f"{day}T09:00:00Z"}})
    assert ledger.recall("What was cracked in January?").hits[0].text == "The kettle was cracked"
    (hit,) = ledger.recall("Do we raise the subscription price in January?").hits
    assert "subscription" in hit.text


def test_what_follows_the_best_is_behind_it_by_half() -> None:
    """The best keeps its sum; what is ahead of nothing keeps its own."""
    assert calibration.behind(4.0, 4.0) == 4.0
    assert calibration.behind(-2.0, 4.0) == 1.0
    assert calibration.behind(5.0, 4.0) == 5.0


def test_every_weight_has_its_term() -> None:
    """Both sets of weights fit the terms, and without vectors nothing is taken from one."""
    features = Features(None, 0.5, 0.5, 0.5, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert len(calibration.terms(features)) == len(calibration.NAMES)
    assert len(calibration.HYBRID) == len(calibration.LEXICAL) == len(calibration.NAMES)
    by_name = dict(zip(calibration.NAMES, calibration.LEXICAL, strict=True))
    assert not any(by_name[name] for name in calibration.DENSE)

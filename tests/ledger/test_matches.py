"""Matches: what is named loosely is found where only one entity can be meant, and is never joined silently."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.errors import Forbidden, Refused
from woodrat.server.access import Caller, check
from woodrat.state.match import fold

ANA = {"entity_type": "contact", "name": "Ana Rivera", "email": "Ana@example.org"}
LOOSE = (
    {"entity_type": "contact", "name": "Ana Rivera", "city": "Reus"},
    {"entity_type": "contact", "name": "ana rivera"},
)


def opened() -> woodrat.Ledger:
    """Return a ledger in memory."""
    return woodrat.open(":memory:", agent="crm")


@given(st.text(alphabet=" \t\n\x0bAaZzÄä\u00a0\u2003ſİ", max_size=12))
def test_the_fold_touches_nothing_but_ascii(text: str) -> None:
    """A fold lowers A to Z and gathers ASCII spaces; other letters and spaces stay as they are, and twice is once."""
    expected = " ".join(text.translate({9: " ", 10: " ", 11: " "}).split(" "))
    while "  " in expected:
        expected = expected.replace("  ", " ")
    lower = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in expected.strip(" "))
    assert fold(text) == lower
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize("first", range(2))
def test_three_anas_are_one_contact(first: int) -> None:
    """With an e-mail, without and in lower case: one contact, where what can be meant is known."""
    ledger = opened()
    ledger.store(ANA)
    for record in (LOOSE[first], LOOSE[1 - first]):
        assert [match.entity for match in ledger.store(record, match="existing").matched] == ["contact/ana@example.org"]
    assert [str(found.entity) for found in ledger.query(entity_type="contact")] == ["contact/ana@example.org"]


def test_an_e_mail_that_comes_later_finds_the_name() -> None:
    """A record with more that identifies it is attached to the one that has less, since nothing says otherwise."""
    ledger = opened()
    ledger.store(LOOSE[0])
    report = ledger.store(ANA, match="existing")
    assert report.entities == ("contact/Ana Rivera",)
    assert ledger.show("contact/ana@EXAMPLE.org").entity.key == "Ana Rivera"


def test_records_of_one_call_know_each_other() -> None:
    """What comes earlier in a call is known to what comes later in it."""
    report = opened().store([ANA, *LOOSE], match="existing")
    assert report.entities == ("contact/ana@example.org",)


def test_without_the_word_nothing_is_matched() -> None:
    """Where a call does not ask for it, three records are three entities, which are listed as duplicates."""
    ledger = opened()
    ledger.store([ANA, *LOOSE])
    assert len(list(ledger.query(entity_type="contact"))) == 3
    assert [(found.rule, found.value) for found in ledger.duplicates()] == [("name", "ana rivera")]


def test_a_stated_key_is_not_matched() -> None:
    """A record that names its key means that entity."""
    ledger = opened()
    ledger.store(ANA)
    report = ledger.store({**LOOSE[0], "$": {"key": "another"}}, match="existing")
    assert report.entities == ("contact/another",)
    assert not report.matched


def test_merged_entities_are_one_candidate() -> None:
    """Entities that were said to be the same are not ambiguous."""
    ledger = opened()
    ledger.store([ANA, LOOSE[0]])
    with pytest.raises(Refused, match=r"2 entities have that name: contact/Ana Rivera, contact/ana@example\.org"):
        ledger.show("contact/ANA rivera")
    ledger.merge("contact/Ana Rivera", "contact/ana@example.org")
    assert ledger.show("contact/ANA rivera").matched is not None


def test_a_value_counts_while_it_holds() -> None:
    """What was corrected or deleted since no longer leads to an entity, and at an earlier moment it still does."""
    ledger = opened()
    ledger.store(ANA)
    before = ledger.position
    ledger.correct("contact/ana@example.org", {"name": "Ana Roca"}, reason="married")
    with pytest.raises(woodrat.NotFound):
        ledger.show("contact/ana rivera")
    assert ledger.show("contact/ana roca").matched is not None
    assert ledger.at(before).show("contact/ana rivera").entity.key == "ana@example.org"
    ledger.delete("contact/ana@example.org")
    with pytest.raises(woodrat.NotFound):
        ledger.show("contact/ana roca")


def test_a_key_repeats_the_report_with_its_match() -> None:
    """A repeated call gets the first report, the match included, and the request says how it was matched."""
    ledger = opened()
    ledger.store(ANA)
    first = ledger.store(LOOSE[0], match="existing", idempotency_key="k")
    assert ledger.store(LOOSE[0], match="existing", idempotency_key="k").matched == first.matched
    with pytest.raises(Refused, match="another request"):
        ledger.store(LOOSE[0], idempotency_key="k")


def test_matching_needs_the_right_to_read() -> None:
    """A key that may only write cannot ask what is known by matching."""
    sent = {"records": [LOOSE[0]], "match": "existing"}
    check(Caller("t", "a", frozenset({"write:contact", "read:contact"})), "write", sent)
    with pytest.raises(Forbidden, match="match"):
        check(Caller("t", "a", frozenset({"write:contact", "read:company"})), "write", sent)


def test_a_matched_observation_is_one_of_its_entity_everywhere(tmp_path: Path) -> None:
    """Observations with a match have the same state in any order, and are taken in by other ledgers as they are."""
    ledger = opened()
    ledger.store(ANA)
    ledger.store(LOOSE[0], match="existing")
    other = opened()
    ledger.log.export(tmp_path / "log.jsonl")
    other.log.import_(tmp_path / "log.jsonl")
    assert other.fingerprint() == ledger.fingerprint()
    ledger.prove_order(shuffles=5)
    ledger.verify()

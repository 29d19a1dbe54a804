"""Matches: what is named loosely is found where only one entity can be meant, and is never joined silently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.errors import Forbidden, Refused
from woodrat.server.access import Caller, check, take_exactly
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
    with pytest.raises(Refused, match=r"2 entities with that name: contact/Ana Rivera, contact/ana@example\.org"):
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


READS: dict[str, Callable[[woodrat.Ledger, str], Any]] = {
    "show": lambda ledger, ref: ledger.show(ref),
    "elements": lambda ledger, ref: ledger.elements(ref, "tags"),
    "observations": lambda ledger, ref: ledger.observations(ref),
    "history": lambda ledger, ref: ledger.history(ref),
    "blame": lambda ledger, ref: ledger.blame(ref),
    "related": lambda ledger, ref: ledger.related(ref),
    "diff": lambda ledger, ref: ledger.diff(0, "now", ref),
    "diff_against": lambda ledger, ref: ledger.diff_against([], ref),
    "why": lambda ledger, ref: ledger.why(ref),
    "lineage": lambda ledger, ref: ledger.lineage(f"{ref}#city"),
    "impact": lambda ledger, ref: ledger.impact(ref),
    "runs.list": lambda ledger, ref: ledger.runs.list(subject=ref),
    "bisect": lambda ledger, ref: ledger.bisect(ref, where={"city": "Reus"}),
    "reduce": lambda ledger, ref: ledger.reduce(ref, where={"city": "Reus"}),
    "what_if": lambda ledger, ref: ledger.what_if(set={f"{ref}#city": "Girona"}),
}
"""Every read that names an entity."""


def known() -> woodrat.Ledger:
    """Return a ledger that knows one Ana, and a run about her."""
    ledger = opened()
    ledger.schemas.register(
        {
            "title": "contact",
            "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}},
            "x-woodrat-identity": [["email"], ["name"]],
        }
    )
    ledger.store({**ANA, "city": "Reus", "tags": ["vip"]})
    with ledger.run("Call?", subject="contact/Ana@example.org") as run:
        snapshot = run.show("contact/Ana@example.org")
        woodrat.decide("call", snapshot, [woodrat.Rule("yes", {"city": {"eq": "Reus"}})], default="no")
    return ledger


@pytest.mark.parametrize("asked", ["contact/ana  RIVERA", "ana rivera", "ANA@example.ORG"])
@pytest.mark.parametrize("name", READS)
def test_every_read_takes_a_value_that_only_one_entity_has(name: str, asked: str) -> None:
    """With the type or without, now and as of a moment; the answer says what it was taken for, in JSON too."""
    ledger = known()
    rule = "email" if "@" in asked else "name"
    expected = {"asked": asked, "entity": "contact/Ana@example.org", "rule": rule}
    for past in (ledger, ledger.at(ledger.position)):
        answer = READS[name](past, asked)  # type: ignore[arg-type]
        matched = answer.to_json()["matched"]
        assert (matched[0] if isinstance(matched, list) else matched) == expected
    assert "matched" not in READS[name](ledger, "contact/Ana@example.org").to_json()


@pytest.mark.parametrize("name", READS)
def test_what_may_mean_several_is_refused_with_all_of_them(name: str) -> None:
    """No read guesses: it lists who may be meant."""
    ledger = known()
    ledger.store({"entity_type": "contact", "name": "Ana Rivera", "email": "other@example.org", "city": "Reus"})
    ledger.store({"entity_type": "company", "name": "ana rivera"})
    with pytest.raises(Refused, match=r"2 entities .*contact/Ana@example\.org, contact/other@example\.org"):
        READS[name](ledger, "contact/ana rivera")
    with pytest.raises(Refused, match=r"3 entities .*company/ana rivera, contact/Ana@example\.org"):
        READS[name](ledger, "ana rivera")


@pytest.mark.parametrize("name", READS)
def test_a_name_that_nothing_has_is_refused(name: str) -> None:
    """Without a type there is nothing to wait for."""
    with pytest.raises(Refused, match='nothing here is called "nobody"'):
        READS[name](known(), "nobody")


def test_a_condition_may_name_its_entity_loosely() -> None:
    """In the text of a condition, a reference needs its type."""
    (match,) = known().bisect(where=["contact/ana rivera#city=Reus"]).matched
    assert match.entity == "contact/Ana@example.org"


def test_two_loose_references_are_not_taken_at_once() -> None:
    """A list of runs states one match, so a second reference has to be a key."""
    ledger = known()
    ledger.store({"entity_type": "pipeline", "name": "Nightly"})
    with pytest.raises(Refused, match="several references are no keys"):
        ledger.runs.list(subject="ana rivera", pipeline="pipeline/nightly")


def test_a_name_is_not_looked_for_among_relations_and_notes() -> None:
    """A relation and a note are named by key alone."""
    ledger = known()
    ledger.store({"entity_type": "company", "name": "Acme"})
    ledger.relate("contact/Ana@example.org", "works_at", "company/Acme", fields={"title": "CTO"})
    ledger.remember("CTO", about="company/Acme")
    with pytest.raises(Refused, match="nothing here is called"):
        ledger.show("cto")


def test_a_loose_spelling_changes_no_value() -> None:
    """A value that only served to find the entity is left out; what else the record says is stored."""
    ledger = opened()
    ledger.store(LOOSE[0])
    report = ledger.store({"entity_type": "contact", "name": " ANA  rivera ", "city": "Girona"}, match="existing")
    assert [change.field for each in report.changes for change in each.fields] == ["city"]
    assert ledger.show("contact/Ana Rivera").fields == {"city": "Girona", "name": "Ana Rivera"}
    ledger.correct("contact/Ana Rivera", {"name": "ANA RIVERA"}, reason="as on her card")
    assert ledger.show("contact/Ana Rivera").fields["name"] == "ANA RIVERA"


def test_a_record_that_says_nothing_new_is_known() -> None:
    """Nothing is appended, and the report names what said it before."""
    ledger = opened()
    (said,) = ledger.store(LOOSE[0]).observations
    report = ledger.store(LOOSE[1], match="existing")
    assert (report.repeated, report.known, report.observations) == (True, (said,), (said,))
    assert ledger.observations().items[-1].observation.id == said
    assert [match.entity for match in report.matched] == ["contact/Ana Rivera"]


def test_what_is_new_is_no_news() -> None:
    """A record that shares nothing with anything known needs no hint."""
    assert opened().store(ANA, match="existing").hints == ()


def test_a_note_finds_its_subject_and_says_so() -> None:
    """The match is stated in the report and recorded in the note; without it the name is taken as it stands."""
    ledger = opened()
    ledger.store(LOOSE[0])
    report = ledger.remember("prefers calls", about="ana rivera")
    (match,) = report.matched
    assert (match.asked, match.entity) == ("ana rivera", "contact/Ana Rivera")
    note = ledger.observations(report.entities[0]).items[0].observation
    assert (note.fields["about"], note.optional["match"]) == (
        "contact/Ana Rivera",
        {"fold": "match-fold-1", "rule": "name"},
    )
    assert ledger.remember("prefers calls", about="contact/Ana Rivera").known == report.observations[:1]
    exact = ledger.remember("prefers calls", about="contact/ana rivera", match="never")
    assert not exact.matched
    assert exact.entities[0] != report.entities[0]


def test_a_note_about_several_is_refused() -> None:
    """A note waits for no one where several may be meant."""
    ledger = opened()
    ledger.store([ANA, LOOSE[0]])
    with pytest.raises(Refused, match=r"about: .*2 entities"):
        ledger.remember("prefers calls", about="ana rivera")


def test_a_key_that_may_not_read_has_its_notes_about_what_it_names() -> None:
    """What a name matches tells what is known, so it is not looked for."""
    for grants, match in ((["write"], "never"), (["write", "read"], None), (["write", "read:contact"], None)):
        given = {"text": "prefers calls", "about": "contact/ana rivera"}
        take_exactly(Caller("t", "a", frozenset(grants), key="k"), given)
        assert given.get("match") == match

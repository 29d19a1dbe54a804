"""Notes: a sentence is kept once for each agent, related to its subject, and goes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import woodrat
from woodrat.canon.ids import Ref
from woodrat.clock import SystemClock
from woodrat.errors import Refused
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.state.note import note_of, note_ref
from woodrat.state.relation import relation

ANA = Ref("contact", "Ana Rivera")
SENTENCE = "Ana prefers calls before noon"


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """Return a ledger that knows Ana."""
    made = woodrat.open(":memory:", agent="crm")
    made.store({"entity_type": "contact", "name": "Ana Rivera"})
    return made


def test_a_note_is_named_by_its_text_and_subject() -> None:
    """The key of a note is made of its text and its subject, and of nothing else."""
    assert note_ref(SENTENCE, ANA) == Ref("note", "5sae4imrla6exuv54dvlslhqui")
    assert len({note_ref(SENTENCE, ANA), note_ref(SENTENCE, None), note_ref(SENTENCE, Ref("contact", "Bob"))}) == 3


def test_a_relation_that_is_no_note_names_none() -> None:
    """Only an `about` relation from a note to the subject makes it a note about the subject."""
    note = note_ref(SENTENCE, ANA)
    assert note_of(relation(note, "about", ANA), ANA) == note
    assert note_of(relation(note, "mentions", ANA), ANA) is None
    assert note_of(relation(ANA, "about", note), note) is None


def test_a_withdrawn_note_can_be_said_again(ledger: woodrat.Ledger) -> None:
    """What was retracted is no longer known, so saying it again is a new observation."""
    first = ledger.remember(SENTENCE, about=ANA)
    ledger.retract(first.observations[0], reason="misheard")
    again = ledger.remember(SENTENCE, about=ANA)
    assert not again.known
    assert again.observations[0] != first.observations[0]
    assert ledger.show(first.entities[0]).fields["text"] == SENTENCE


def test_a_note_is_related_again_where_the_relation_was_deleted(ledger: woodrat.Ledger) -> None:
    """A known note whose relation is gone is related to its subject again."""
    first = ledger.remember(SENTENCE, about=ANA)
    ledger.delete(first.entities[1])
    assert not list(ledger.related(ANA))
    assert ledger.remember(SENTENCE, about=ANA).known
    assert [str(found.start) for found in ledger.related(ANA)] == [first.entities[0]]


def test_a_dry_run_of_a_note_keeps_nothing(ledger: woodrat.Ledger) -> None:
    """A dry run says what would be remembered."""
    assert ledger.remember(SENTENCE, about=ANA, dry_run=True).dry_run
    assert not list(ledger.related(ANA))


def test_a_key_stands_for_one_note(ledger: woodrat.Ledger) -> None:
    """The same idempotency key answers with the first report, and is refused for another sentence."""
    first = ledger.remember(SENTENCE, about=ANA, idempotency_key="k")
    assert ledger.remember(SENTENCE, about=ANA, idempotency_key="k").positions == first.positions
    with pytest.raises(Refused, match="another request"):
        ledger.remember("something else", about=ANA, idempotency_key="k")


@pytest.mark.parametrize("text", ["", " \n", None, 7, "a\x00b", "\ud800"])
def test_what_is_no_sentence_is_refused(ledger: woodrat.Ledger, text: object) -> None:
    """A note that is empty or cannot be stored is refused by the name of its argument."""
    with pytest.raises(Refused) as refusal:
        ledger.remember(text, about="contact/Ana Rivera")  # type: ignore[arg-type]
    assert [fault.path for fault in refusal.value.faults] == ["text"]


def test_a_note_of_a_run_names_it(ledger: woodrat.Ledger) -> None:
    """Inside a run, what is remembered is a step of it."""
    with ledger.run("What does Ana like?") as run:
        report = run.remember(SENTENCE, about=ANA)
    (stored,) = ledger.observations(report.entities[0])
    assert stored.observation.optional["run"] == run.id


def test_hidden_texts_stay_hidden_in_notes() -> None:
    """A ledger that hides a field hides it in a note and in its key."""
    ledger = woodrat.open(":memory:", agent="crm", redact=["text"])
    report = ledger.remember(SENTENCE)
    assert report.entities[0] != str(note_ref(SENTENCE, None))
    assert SENTENCE not in str([entry.body for entry in ledger.log.entries()])


def test_erasing_the_subject_erases_its_notes(tmp_path: Path) -> None:
    """With an entity go the notes about it, their corrections, and what quotes them; other notes stay."""
    make_keys(tmp_path, SystemClock())
    with woodrat.open(tmp_path / "ledger.db", agent="crm", keys=tmp_path) as ledger:
        ledger.store({"entity_type": "contact", "name": "Ana Rivera"})
        note = ledger.remember(SENTENCE, about=ANA).entities[0]
        ledger.correct(note, {"text": "Ana prefers calls in the evening"}, reason="she said so")
        other = ledger.remember("Bob is on leave until Monday", about="contact/Bob").entities[0]
        with ledger.run("When to call?") as run:
            run.show(note)
            run.answer("In the evening: Ana prefers calls in the evening")
        ledger.erase("contact/Ana Rivera", reason="asked to")
        with pytest.raises(woodrat.NotFound, match="erased"):
            ledger.show(note)
        bodies = b" ".join(entry.body or b"" for entry in ledger.log.entries())
        assert not [text for text in (b"calls", b"Ana", note.encode()) if text in bodies]
        assert ledger.show(other).fields["text"] == "Bob is on leave until Monday"
        ledger.verify()

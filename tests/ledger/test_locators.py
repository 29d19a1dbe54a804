"""Locators through the ledger: stored, refused, shown beside their words, and forgotten with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.canon import form, ids
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.erasure import rewrite
from woodrat.erasure.quotes import Quoted
from woodrat.erasure.rewrite import Names
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.state import observation
from woodrat.state.observation import Observation
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

NOTE = b"Ana moved.\nShe lives in Olot now.\n"
ANA = "contact/Ana"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """An empty ledger."""
    engine: Engine = InMemoryEngine()
    yield ledger_on(engine)
    engine.close()


def ana(where: Any, **about: Any) -> dict[str, Any]:
    """Return a record about Ana, read somewhere."""
    return {"entity_type": "contact", "name": "Ana", "city": "Olot", "$": {"locator": where, **about}}


def test_a_value_beside_the_words_it_was_read_from(ledger: Ledger) -> None:
    """Blame and lineage show the locator and the words; without being asked blame reads no source."""
    source = ledger.sources.add(NOTE, name="note.txt")
    with ledger.interpretations.start(source, model="small-1") as reading:
        report = reading.store([ana({"line": 2}), {"entity_type": "contact", "name": "Bo"}])
    said = ledger.observations(ANA).items[0].observation
    assert said.optional["locator"] == {"line": 2}
    assert "locator" not in ledger.observations("contact/Bo").items[0].observation.optional
    (verdict,) = ledger.blame(ANA, "city", excerpts=True)["city"]
    assert (verdict.locator, verdict.excerpt) == ({"line": 2}, "She lives in Olot now.")
    assert verdict.to_json()["excerpt"] == "She lives in Olot now."
    (plain,) = ledger.blame(ANA, "city")["city"]
    assert (plain.locator, plain.excerpt) == ({"line": 2}, None)
    (node,) = ledger.lineage(f"{ANA}#city").find("observation")
    assert (node.details["locator"], node.details["excerpt"]) == ({"line": 2}, "She lives in Olot now.")
    assert node.details["assigned"] is True
    assert "read at line 2: “She lives in Olot now.”" in node.label
    assert node.id == report.observations[0]


def test_a_record_of_its_own_source(ledger: Ledger) -> None:
    """The source may be the record's or the call's; a relation stated in the record has the locator too."""
    source = ledger.sources.add(b'{"items": [{"city": "Olot"}]}', name="list.json")
    ledger.store({"entity_type": "contact", "name": "Bo"})
    record = ana({"pointer": "/items/0/city"}, source=source, relate=[{"type": "knows", "to": "contact/Bo"}])
    ledger.store(record)
    assert ledger.blame(ANA, "city", excerpts=True)["city"][0].excerpt == "Olot"
    edge = ledger.related(ANA).items[0].relation
    assert ledger.observations(edge).items[0].observation.optional["locator"] == {"pointer": "/items/0/city"}
    ledger.store(ana({"page": 3}), source=source)
    assert ledger.observations(ANA).items[-1].observation.optional["locator"] == {"page": 3}


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"line": 3}, r"/\$/locator/line: the source has 2 lines, and 3 is past the last"),
        ({"quote": "lives in Vic"}, r'/\$/locator/quote: the source does not contain "lives in Vic"'),
        ({"page": 0, "colour": 1}, r"(?s)/\$/locator/colour: .*/\$/locator/page: got 0"),
        ([3], r"/\$/locator: expected an object"),
    ],
)
def test_what_is_refused(ledger: Ledger, where: Any, told: str) -> None:
    """A locator that is none, or that its source contradicts, is refused, and nothing is written."""
    source = ledger.sources.add(NOTE)
    before = ledger.position
    with pytest.raises(woodrat.Refused, match=told) as refused:
        ledger.store(ana(where), source=source)
    assert "Nothing was written." in str(refused.value)
    assert ledger.position == before


def test_all_faults_at_once(ledger: Ledger) -> None:
    """Every record's faults are told together, and one whose source is missing is told once."""
    source = ledger.sources.add(NOTE)
    records = [ana({"line": 9}, source=source), ana({"line": 1}), ana({"line": 1}, source="src_" + "a" * 26)]
    with pytest.raises(woodrat.Refused) as refused:
        ledger.store(records)
    assert [fault.path for fault in refused.value.faults] == ["/0/$/locator/line", "/1/$/locator", "/2/$/source"]


def test_import_does_not_ask_the_source(ledger: Ledger) -> None:
    """What another ledger took is taken, though its source never arrived; there is then nothing to show."""
    there = ledger_on(InMemoryEngine(), "there")
    there.store(ana({"line": 2}), source=there.sources.add(NOTE))
    said = there.observations(ANA).items[0].observation
    ledger.admit([("observation", said.body)])
    (verdict,) = ledger.blame(ANA, "city", excerpts=True)["city"]
    assert (verdict.locator, verdict.excerpt) == ({"line": 2}, None)
    assert ledger.lineage(said.id).find("observation")[0].details["locator"] == {"line": 2}


def test_a_past_knows_only_its_sources(ledger: Ledger) -> None:
    """As of a moment, the words are those of sources that were there."""
    there = ledger_on(InMemoryEngine(), "there")
    there.store(ana({"line": 2}), source=there.sources.add(NOTE))
    ledger.admit([("observation", there.observations(ANA).items[0].observation.body)])
    before = ledger.position
    ledger.sources.add(NOTE)
    assert ledger.blame(ANA, "city", excerpts=True)["city"][0].excerpt == "She lives in Olot now."
    assert ledger.at(before).blame(ANA, "city", excerpts=True)["city"][0].excerpt is None


def test_a_redacted_value_is_not_quoted() -> None:
    """Where a value is hidden, by key or by schema, the words it was read from are hidden too."""
    for redact in ("city", None):
        ledger = woodrat.open(":memory:", redact=redact)
        if redact is None:
            hidden = {"type": "string", "x-woodrat-redact": True}
            ledger.schemas.register({"type": "object", "properties": {"city": hidden}}, entity_type="contact")
        source = ledger.sources.add(NOTE)
        ledger.store(ana({"line": 2, "quote": "lives in Olot"}), source=source)
        ledger.store(ana({"quote": "lives in Olot"}), source=source, idempotency_key="k")
        ledger.store({"entity_type": "contact", "name": "Ana", "$": {"locator": {"quote": "Ana"}}}, source=source)
        found = [stored.observation for stored in ledger.observations(ANA)]
        assert [said.optional.get("locator") for said in found] == [{"line": 2}, None, {"quote": "Ana"}]
        assert not any(b"Olot" in said.body for said in found)


def _again(said: Observation, names: Names) -> dict[str, Any]:
    body = rewrite.observation_again(said, names)
    assert body is not None
    assert observation.admit(body).body == body
    found: dict[str, Any] = form.decode(body)
    return found


def test_erasure_takes_the_words_and_keeps_the_mark() -> None:
    """What is said again keeps its assigned time marked, and quotes neither an erased source nor an erased value."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store(ana({"line": 2, "quote": "lives in Olot"}), source=ledger.sources.add(NOTE))
    said = ledger.observations(ANA).items[0].observation
    source = ids.digest_of("source", str(said.optional["source"]))
    assert source is not None
    untouched = _again(said, Names(bytes(32)))
    assert (untouched["assigned"], untouched["locator"]) == (True, {"line": 2, "quote": "lives in Olot"})
    gone = Names(bytes(32))
    gone.note_source(source, None)
    without = _again(said, gone)
    assert without["assigned"] is True
    assert {"source", "locator"}.isdisjoint(without)
    rewritten = Names(bytes(32))
    rewritten.note_source(source, bytes(32))
    assert _again(said, rewritten)["locator"] == {"line": 2, "quote": "lives in Olot"}
    field = _again(said, Names(bytes(32), fields=[(said.entity, "city")]))
    assert (field["fields"], field["locator"]) == ({"name": "Ana"}, {"line": 2})
    quoted = _again(said, Names(bytes(32), quoted=Quoted(["lives in Olot"])))
    assert quoted["locator"] == {"line": 2}


def test_erasing_a_field_through_the_ledger(tmp_path: Path) -> None:
    """After a field is erased no observation quotes it, though its value is too short to be looked for elsewhere."""
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "t.db", keys=tmp_path / "keys") as ledger:
        record = {"entity_type": "contact", "name": "Ana", "pin": 42, "$": {"locator": {"line": 1, "quote": "PIN 42"}}}
        ledger.store(record, source=ledger.sources.add(b"Her PIN 42 is old.\n"))
        ledger.erase("contact/Ana#pin", reason="a request")
        (said,) = [stored.observation for stored in ledger.observations("contact/Ana")]
        assert (said.optional["locator"], said.assigned) == ({"line": 1}, True)


def test_ids_of_sources_are_full_names(ledger: Ledger) -> None:
    """A locator stands beside the full name of its source."""
    ledger.store(ana({"line": 1}), source=ledger.sources.add(NOTE))
    source = ledger.observations(ANA).items[0].observation.optional["source"]
    assert isinstance(source, str)
    assert ids.digest_of("source", source) is not None

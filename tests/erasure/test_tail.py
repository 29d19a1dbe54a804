"""What is written while an erasure searches the log: it is looked at before anything goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat import Ledger
from woodrat.erasure.reader import closure
from woodrat.erasure.verbs import erase as erasure_verbs
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

PERSON = "person/Zoe Zweigmann"


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    """A ledger that knows a person."""
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "a.db", agent="ann", keys=tmp_path / "keys", clock=FixedClock(seed="2")) as opened:
        opened.store({"entity_type": "person", "name": "Zoe Zweigmann", "city": "Reus"})
        yield opened


def erase(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> int:
    """Erase the person while something is written after each search but the last; return how many searches it took."""
    searches, search = 0, closure.close

    def searched(*given: Any) -> Any:
        nonlocal searches
        found = search(*given)
        searches += 1
        if searches < erasure_verbs.SEARCHES_MAX:
            meanwhile()
        return found

    monkeypatch.setattr(erasure_verbs, "close", searched)
    assert ledger.erase(PERSON, reason="a request").complete
    return searches


def held(ledger: Ledger) -> bytes:
    """Return all bodies of a log, and its receipts."""
    with ledger.context.engine.view(ledger.context.tenant) as view:
        bodies = [entry.body or b"" for entry in view.entries()]
        return b"\n".join([*bodies, *(receipt.report for _, _, receipt in view.receipts())])


def test_what_has_nothing_to_do_with_it_needs_no_second_search(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unrelated write between the search and the erasure costs no other search, and stays."""
    found = erase(ledger, monkeypatch, lambda: ledger.store({"entity_type": "dog", "name": "Rex"}))
    assert found == 1
    assert ledger.show("dog/Rex").fields["name"] == "Rex"
    assert b"Zweigmann" not in held(ledger)


@pytest.mark.parametrize("written", ["about them", "quoting them", "with a key that quotes"])
def test_what_concerns_it_goes_too(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    """What is said of them or quotes them between search and erasure is found: by another search, or as a receipt."""
    count = iter(range(9))

    def meanwhile() -> None:
        number = next(count)
        if written == "about them":
            ledger.store({"entity_type": "person", "name": "Zoe Zweigmann", "age": number})
        elif written == "quoting them":
            ledger.store({"entity_type": "memo", "id": str(number), "text": "call Zoe Zweigmann"})
        else:
            ledger.store({"entity_type": "dog", "name": f"Rex {number}"}, idempotency_key=f"Zoe Zweigmann {number}")

    found = erase(ledger, monkeypatch, meanwhile)
    assert found == (1 if written == "with a key that quotes" else erasure_verbs.SEARCHES_MAX)
    assert b"Zweigmann" not in held(ledger)
    with ledger.context.engine.view(ledger.context.tenant) as view:
        assert not any("Zweigmann" in key for _, key, _ in view.receipts())
    assert ledger.verify(deep=True).sound

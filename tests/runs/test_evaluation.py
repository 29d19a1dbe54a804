"""Evaluations: a run compared with a state that is known to be good."""

from __future__ import annotations

import pytest
from tests.runs.test_reader import opened

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger with a known good state, tagged."""
    made = opened(InMemoryEngine())
    made.store({"entity_type": "loan", "id": "42", "status": "rejected", "limit": 0})
    made.tag("known-good")
    return made


def ran(ledger: woodrat.Ledger, **fields: object) -> str:
    """Return a run that writes these fields of loan 42."""
    with ledger.run("Decide again", subject="loan/42") as run:
        if fields:
            run.store({"entity_type": "loan", "id": "42", **fields})
    return run.id


def test_a_run_that_reaches_the_known_good_state_passes(ledger: woodrat.Ledger) -> None:
    """Every field it wrote is compared with the tag, as it was when the run was over, whatever came later."""
    ledger.store({"entity_type": "loan", "id": "42", "status": "open"})
    run = ran(ledger, status="rejected", limit=0)
    ledger.store({"entity_type": "loan", "id": "42", "status": "open"})
    ledger.runs.evaluate(run, against="@known-good")
    found = ledger.runs.show(run)
    assert (found.verdict, found.judgements[0].against) == ("passed", "@known-good")
    shown = ledger.show(found.judgements[0].evaluation or "").fields
    assert (shown["cases"], shown["cases_passed"]) == (3, 3)


def test_a_run_that_does_not_fails_and_names_the_fields(ledger: woodrat.Ledger) -> None:
    """The fields that differ are listed; evaluated anew after a mend, those that no longer differ are taken out."""
    run = ran(ledger, status="approved", limit=0)
    ledger.runs.evaluate(run, against="@known-good", name="nightly", reason="release")
    found = ledger.runs.show(run)
    assert (found.verdict, found.judgements[0].reason) == ("failed", "release")
    ref = f'evaluation/["nightly","{run}"]'
    assert ledger.show(ref).fields["failures"] == ["loan/42#status"]
    ledger.store({"entity_type": "loan", "id": "42", "status": "approved"})
    ledger.tag("known-good")
    ledger.runs.evaluate(run, against="@known-good", name="nightly")
    assert ledger.runs.show(run).verdict == "passed"
    assert ledger.show(ref).fields["failures"] == []


def test_a_run_that_wrote_nothing_is_inconclusive(ledger: woodrat.Ledger) -> None:
    """There is nothing to compare, and the verdict says so."""
    run = ran(ledger)
    ledger.runs.evaluate(run, against="@known-good")
    assert ledger.runs.show(run).verdict == "inconclusive"


def test_what_is_unknown_is_not_found(ledger: woodrat.Ledger) -> None:
    """A run or a tag that there is not is named."""
    with pytest.raises(woodrat.NotFound, match="There is no run"):
        ledger.runs.evaluate("run_" + "a" * 26, against="@known-good")
    with pytest.raises(woodrat.NotFound, match="There is no tag"):
        ledger.runs.evaluate(ran(ledger), against="@lost")

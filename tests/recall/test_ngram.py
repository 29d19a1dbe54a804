"""ngram-v1: the same vector for the same text everywhere, as docs/formats/recall.md says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.recall import ngram, vectors
from woodrat.recall.embedders import Embedder

PAGE = (Path(__file__).parents[2] / "docs/formats/recall.md").read_text("utf-8")


def block(name: str) -> str:
    """Return a fenced block of the format page."""
    found = re.search(rf"```{name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def examples(name: str) -> list[tuple[str, str]]:
    """Return the examples of a block: a text, and what is said of it."""
    lines = [line.rpartition("->") for line in block(name).splitlines()]
    return [(json.loads(text), said.strip()) for text, _, said in lines]


def cosine(one: str, other: str) -> float:
    """Return the score of two texts."""
    first, second = ngram.vector(one), ngram.vector(other)
    return vectors.cosine(vectors.dot(first, second), vectors.square(first.tobytes()), vectors.square(second.tobytes()))


@pytest.mark.parametrize(("text", "said"), examples("vectors"))
def test_golden_vectors(text: str, said: str) -> None:
    """Every text of the format page has the vector whose digest stands beside it."""
    digest, square = said.split()
    vector = ngram.vector(text).tobytes()
    assert sha256(vector).hexdigest()[:32] == digest
    assert vectors.square(vector) == int(square)


@pytest.mark.parametrize(("text", "said"), examples("components"))
def test_golden_components(text: str, said: str) -> None:
    """The components of a short text are those the format page spells out."""
    found = [f"{place}:{value}" for place, value in enumerate(ngram.vector(text)) if value]
    assert found == said.split()


def test_the_little_words_of_the_page_are_those_of_the_code() -> None:
    """The page lists exactly the words that count little."""
    assert frozenset(block("little").split()) == ngram.LITTLE_WORDS


def test_it_is_an_embedder() -> None:
    """The built-in embedder answers as the protocol asks."""
    embedder: Embedder = ngram.Ngram()
    found = embedder.embed(["one", "two"])
    assert embedder.id == "ngram-v1"
    assert [len(vector) for vector in found] == [embedder.dimension, embedder.dimension]


@given(st.text())
def test_every_text_has_a_vector_of_whole_bytes(text: str) -> None:
    """Whatever the text, its vector packs to one byte for each component, unchanged."""
    vector = ngram.vector(text)
    assert vectors.pack(vector, ngram.DIMENSION) == vector.tobytes()
    assert len(vector) == ngram.DIMENSION


@given(st.text(), st.text())
def test_a_score_is_symmetric_and_within_bounds(one: str, other: str) -> None:
    """A score is the same both ways and lies from -1 to 1."""
    assert cosine(one, other) == cosine(other, one)
    assert -1 <= cosine(one, other) <= 1


def test_very_long_texts_are_cut_at_the_bounds_of_a_byte() -> None:
    """A text of thousands of words still has components of one byte."""
    vector = ngram.vector(" ".join(f"n{number}" for number in range(20_000)))
    assert max(vector) <= vectors.COMPONENT_MAX
    assert min(vector) >= -vectors.COMPONENT_MAX
    assert max(map(abs, vector)) == vectors.COMPONENT_MAX


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_hash_seed_locale_and_time_zone_do_not_show(seed: str) -> None:
    """Another process with another hash seed, locale and time zone gives the same bytes."""
    text = "Should we approve application #42? École ß İ"
    code = f"from woodrat.recall import ngram; print(ngram.vector({text!r}).tobytes().hex())"
    other = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONUTF8": "1"}
    found = subprocess.run([sys.executable, "-c", code], env=other, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ngram.vector(text).tobytes().hex()


def test_questions_about_a_loan_are_nearer_to_it_than_other_questions() -> None:
    """Words, and numbers above all, bring a question near; small talk stays far away."""
    asked = "Should we approve application #42? loan/42"
    assert cosine("Why was application #42 rejected?", asked) > 0.7
    assert cosine("Why was application #43 rejected?", asked) < 0.4
    assert cosine("What is the capital of France?", asked) < 0.2

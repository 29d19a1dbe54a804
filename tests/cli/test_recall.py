"""`recall` and `reindex` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import Cli

import woodrat
from woodrat.runs.recorder.decisions import decide
from woodrat.runs.rules import Rule

WHY = "Why was application #42 rejected?"


@pytest.fixture
def told(cli: Cli, db: Path) -> Cli:
    """The command line after Monday: applications 42 and 43 are decided about."""
    with woodrat.open(db, agent="loan-officer") as ledger:
        for number, score in ((42, 580), (43, 590)):
            with ledger.run(
                f"Should we approve application #{number}?",
                subject=f"loan/{number}",
                conversation=f"app-{number}",
                principal="ann",
            ) as run:
                decide("classify-risk", {"creditScore": score}, [Rule("rejected", {"creditScore": {"lt": 600}})])
                run.answer(f"Application #{number}: REJECTED. Credit ({score}) below floor (600).")
    return cli


def test_recall_gives_the_decision_asked_about(told: Cli) -> None:
    """The answer has the run, its score and its text, as JSON and for people."""
    found = told("recall", WHY).json
    assert found["found"] is True
    assert [hit["record"]["subject"] for hit in found["hits"]] == ["loan/42"]
    assert "creditScore=580, threshold=600" in found["text"]
    page = told("recall", WHY, "-o", "table")
    assert page.code == 0
    assert "evidence: creditScore=580, threshold=600" in page.out
    assert ", score " in page.out
    assert "said by" in page.out
    assert "loan/43" not in page.out


def test_recall_says_what_came_near(told: Cli) -> None:
    """Nothing found is an answer: exit code 0, with the nearest candidates and the reasons."""
    ran = told("recall", "Why was application #50 rejected?", "-o", "table")
    assert ran.code == 0
    assert "Nothing passes the threshold" in ran.out
    assert "it does not speak of application 50" in ran.out
    assert told("recall", WHY, "--threshold", "1").json["rejected"][0]["reason"] == (
        "its score is below the threshold 1"
    )


def test_recall_narrows_by_scope_moment_and_age(told: Cli) -> None:
    """Scope, moment, ttl and number of runs are those of the library."""
    assert not told("recall", WHY, "--scope", "conversation", "--conversation", "app-42-followup").json["found"]
    assert told("recall", WHY, "--scope", "principal", "--principal", "ann").json["found"]
    assert not told("recall", WHY, "--as-of", "2020-01-01T00:00:00Z").json["found"]
    assert told("recall", WHY, "--ttl", "3600").json["found"]
    assert len(told("recall", "applications 42 and 43", "--k", "2", "--threshold", "0").json["hits"]) == 2
    assert not told("recall", WHY, "--tenant", "other").json["found"]
    assert "began run run_" in told("recall", WHY, "--projection", "narrative", "--budget", "400").json["text"]


@pytest.mark.parametrize(
    "words",
    [
        ("recall",),
        ("recall", WHY, "--threshold", "2"),
        ("recall", WHY, "--threshold", "half"),
        ("recall", WHY, "--threshold", "nan"),
        ("recall", WHY, "--k", "0"),
        ("recall", WHY, "--scope", "world"),
        ("recall", WHY, "--scope", "conversation"),
        ("recall", WHY, "--projection", "summary"),
        ("recall", WHY, "--embedder", "word2vec"),
        ("recall", WHY, "--valid-at", "2026-01-01T00:00:00Z"),
        ("reindex", "--embedder", "word2vec"),
    ],
)
def test_bad_input_is_refused(told: Cli, words: tuple[str, ...]) -> None:
    """Every mistake is a refusal with exit code 2 and a remedy."""
    ran = told(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err


def test_an_embedder_that_is_away_is_unavailable(told: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that cannot be reached is exit code 4."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    ran = told("recall", WHY, "--embedder", "ollama:nomic-embed-text")
    assert ran.code == 4
    assert "no connection" in ran.err


def test_reindex_tells_what_it_made(told: Cli) -> None:
    """All runs are embedded again."""
    found = told("reindex").json
    assert (found["embedder"], found["runs"], found["passages"]) == ("none", 2, 6)
    assert "Indexed 6 passages of 2 runs with none." in told("reindex", "-o", "table").out
    assert told("recall", WHY).json["found"]

"""The examples of recorders run as they are, with the real frameworks and no network."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["openai_client", "langgraph_agent", "openai_agents", "pydantic_ai_agent"])
def test_an_example_names_the_changed_fact(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It runs twice with a scripted model, the second time with another score, and `runs diff` says so."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](str(tmp_path / "loans.db"))
    first, second, sentence = capsys.readouterr().out.strip().splitlines()
    assert (first, second) == ("Rejected.", "Approved.")
    assert "lookup_credit_bureau" in sentence
    assert "creditScore=580" in sentence
    assert "creditScore=640" in sentence

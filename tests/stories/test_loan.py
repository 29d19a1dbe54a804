"""The loan story: Monday decides, Friday asks why; as an example script, and on the command line."""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest

import woodrat
from woodrat.cli.main import main

SCRIPT = Path(__file__).parents[2] / "examples" / "loan_story.py"
HOMES = {
    "Rule": "runs.rules",
    "decide": "runs.recorder.decisions",
    "memory": "recall.memory",
    "tool": "runs.recorder.calls",
}
"""Where names of the front door come from that the script uses."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the script writes."""
    return tmp_path / "loans.db"


@pytest.fixture
def told(database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """The database the script leaves behind, and what it printed."""
    for name, home in HOMES.items():
        if not hasattr(woodrat, name):
            monkeypatch.setattr(woodrat, name, getattr(import_module(f"woodrat.{home}"), name), raising=False)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(database)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    return database, capsys.readouterr().out


def test_the_example_tells_the_story(told: tuple[Path, str]) -> None:
    """Five times Friday is answered from Monday's decision; narrower scopes and other tenants hear nothing."""
    _, out = told
    parts = out.split("\n\n")
    assert "Application #42: rejected." in parts[0]
    answers = parts[1].splitlines()[1:]
    assert len(answers) == 5
    for answer in answers:
        assert answer.startswith("  Its credit score was 580, below the floor of 600; decided at 2")
    assert "evidence: creditScore=580, threshold=600" in parts[2]
    assert "about loan/42" in parts[2]
    assert parts[3].splitlines()[1] == "  nothing"
    assert "it does not speak of application 50" in parts[4]
    assert parts[5].splitlines()[1] == "  nothing"


def test_the_command_line_tells_the_same(told: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the library recorded, `recall` finds on the command line, as #42 and not as one of its neighbours."""
    database, _ = told
    question = "Why was application #42 rejected?"
    where = ("--db", str(database), "--tenant", "lending", "-o", "table")
    assert main(["recall", question, *where]) == 0
    found = capsys.readouterr().out
    assert "about loan/42" in found
    assert "evidence: creditScore=580, threshold=600" in found
    assert main(["recall", question, "--scope", "conversation", "--conversation", "app-42-followup", *where]) == 0
    assert "Nothing passes the threshold" in capsys.readouterr().out
    assert main(["recall", question, "--db", str(database), "--tenant", "insurance", "-o", "table"]) == 0
    assert capsys.readouterr().out.startswith("Nothing passes the threshold of 0.5 in the scope tenant.\n")

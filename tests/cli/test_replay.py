"""Replay on the command line and as a pytest plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import Cli

import woodrat
from woodrat.runs.recorder.run import Run

AGENT = """
import woodrat

THRESHOLD = {threshold}


def approve(run):
    print("looking at", run.inputs["id"])
    loan = run.show("loan/" + run.inputs["id"])
    rules = [woodrat.Rule("rejected", {{"creditScore": {{"lt": THRESHOLD}}}}, label="Marginal credit")]
    return woodrat.decide("classify-risk", loan, rules, default="approved").chosen


def asks(run):
    return run.tool("bureau", lambda id: "asked", run.inputs["id"]).result
"""


def approve(run: Run) -> str:
    """Decide a loan as the agent of the module does before anybody changes it."""
    loan = run.show("loan/" + run.inputs["id"])
    rules = [woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]
    return str(woodrat.decide("classify-risk", loan, rules, default="approved").chosen)


@pytest.fixture
def runs(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three recorded runs of an agent, whose module is in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    with woodrat.open(db, agent="loan-officer") as ledger:
        for number, score in enumerate((580, 610, 700)):
            ledger.store({"entity_type": "loan", "id": str(number), "creditScore": score})
            about = {"subject": f"loan/{number}", "inputs": {"id": str(number)}}
            with ledger.run("Approve?", **about) as run:  # type: ignore[arg-type]
                run.answer(approve(run))
            found.append(run.id)
    return found


def agent(folder: Path, monkeypatch: pytest.MonkeyPatch, threshold: int) -> str:
    """Write the agent's module and return the function's name; each threshold has a module of its own."""
    name = f"agent_{threshold}"
    (folder / f"{name}.py").write_text(AGENT.format(threshold=threshold))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return f"{name}:approve"


def test_unchanged_code_exits_with_0(
    cli: Cli, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of unchanged code are the same; what the agent prints stays out of the answer; the log is as it was."""
    head = cli("log", "-o", "json").out
    ran = cli("runs", "replay", *runs, "--with", agent(tmp_path, monkeypatch, 600))
    assert ran.code == 0, ran.err
    assert ran.json["counts"] == {"runs": 3, "same": 3}
    assert "looking at 1" in ran.err
    assert cli("log", "-o", "json").out == head


def test_changed_code_exits_with_1(cli: Cli, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed threshold is told with the runs it decides otherwise, found by time and agent too."""
    function = agent(tmp_path, monkeypatch, 620)
    found = cli("runs", "replay", "--since", "2020-01-01T00:00:00Z", "--agent", "loan-officer", "--with", function)
    assert found.code == 1
    assert found.json["counts"] == {"runs": 3, "same": 2, "decision": 1}
    assert [run["run"] for run in found.json["runs"]] == runs
    table = cli("runs", "replay", *runs, "--with", function, "-o", "table")
    assert table.code == 1
    assert runs[1] in table.out
    assert (
        "approved became rejected; rule 1 (Marginal credit) was creditScore lt 600 and is creditScore lt 620"
        in " ".join(table.out.split())
    )
    assert table.out.rstrip().endswith("2 of 3 runs are the same; 1 differ (1 decision).")
    lines = cli("runs", "replay", *runs, "--with", function, "-o", "jsonl").out.splitlines()
    assert len(lines) == 3


def test_live_tools_run(cli: Cli, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that is not in the recording runs only when it is named."""
    module = agent(tmp_path, monkeypatch, 600).partition(":")[0]
    words = ("runs", "replay", runs[0], "--with", f"{module}:asks")
    assert cli(*words).json["runs"][0]["divergence"]["kind"] == "not_recorded"
    assert cli(*words, "--live", "bureau").json["runs"][0]["answer"] == "asked"


def test_several_processes_replay(cli: Cli, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--jobs` the answer is the same document, whatever the agent prints; odd numbers are refused."""
    function = agent(tmp_path, monkeypatch, 620)
    one = cli("runs", "replay", *runs, "--with", function)
    several = cli("runs", "replay", *runs, "--with", function, "--jobs", "2", "--timeout", "60")
    assert (several.code, several.json) == (1, one.json)
    refused = cli("runs", "replay", *runs, "--with", function, "--jobs", "0")
    assert (refused.code, "jobs: got 0" in refused.err) == (2, True)
    refused = cli("runs", "replay", *runs, "--with", function, "--timeout", "soon")
    assert (refused.code, 'expected seconds, got "soon"' in refused.err) == (2, True)


def test_bad_input_is_told(cli: Cli, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run, too many ways to name them, an unknown run and another tenant's are clear errors."""
    function = agent(tmp_path, monkeypatch, 600)
    for words, code, said in (
        ((), 2, "no runs to replay"),
        ((runs[0], "--agent", "loan-officer"), 2, "runs cannot be combined with --since or --agent"),
        (("run_nothing",), 3, "There is no run run_nothing here. Nothing was replayed."),
        ((runs[0], "--tenant", "other"), 3, f"There is no run {runs[0]} here."),
        ((runs[0], "--steps", "0"), 2, "steps_max"),
    ):
        ran = cli("runs", "replay", *words, "--with", function)
        assert (ran.code, said in " ".join(ran.err.split())) == (code, True), ran.err
    assert cli("runs", "replay", runs[0], "--with", "nowhere:f").code == 2
    assert cli("runs", "replay", "--agent", "nobody", "--with", function).json["counts"] == {"runs": 0, "same": 0}


PLUGIN = """
import pytest
from {module} import approve


@pytest.mark.woodrat_replay("woodrat.db", agent="loan-officer")
def test_loans(woodrat_replay):
    woodrat_replay(approve)
"""


def outcome_of(folder: Path, text: str) -> tuple[int, str]:
    """Run a test file with the plugin in a pytest of its own."""
    (folder / "test_recorded.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "--rootdir", "."]
    # Named here, so that the test does not depend on how Woodrat was installed.
    done = subprocess.run(
        [*command, "-p", "woodrat.testing.replay", "test_recorded.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_recorded_runs_are_test_cases(runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recorded run is a case; one that differs fails with the rule that does, and no traceback."""
    module = agent(tmp_path, monkeypatch, 600).partition(":")[0]
    code, out = outcome_of(tmp_path, PLUGIN.format(module=module))
    assert code == 0, out
    assert "3 passed" in out
    module = agent(tmp_path, monkeypatch, 620).partition(":")[0]
    code, out = outcome_of(tmp_path, PLUGIN.format(module=module))
    assert code == 1, out
    assert "1 failed, 2 passed" in out
    assert f"test_loans[{runs[1]}]" in out
    assert "approved became rejected; rule 1 (Marginal credit) was creditScore lt 600 and is creditScore lt 620" in out
    assert "(asked: Approve?, about loan/1)" in out
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("", "uses woodrat_replay and names no ledger"),
        ('@pytest.mark.woodrat_replay("nowhere.db")', "nowhere.db"),
        ('@pytest.mark.woodrat_replay("woodrat.db", colour="red")', "colour"),
    ],
)
def test_a_test_that_names_no_ledger_is_told(runs: list[str], tmp_path: Path, mark: str, said: str) -> None:
    """A mark that is missing, or names what is not there, is an error of that file with a sentence."""
    text = f"import pytest\n\n{mark}\ndef test_it(woodrat_replay):\n    woodrat_replay(print)\n"
    code, out = outcome_of(tmp_path, text)
    assert code == 2, out
    assert said in out


def test_the_plugin_is_cheap_to_load() -> None:
    """Every pytest of the environment loads the plugin, so it loads nothing of the ledger."""
    code = "import sys, woodrat.testing.replay; print(*(name for name in sys.modules if name.startswith('woodrat')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) == {"woodrat", "woodrat.testing", "woodrat.testing.replay"}

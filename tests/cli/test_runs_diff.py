"""`runs diff` on the command line: two ledgers, files, and crowds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli

TRACES = Path(__file__).parents[1] / "runs" / "traces"
TERMS = '{"entity_type":"contract","id":"kline","payment_terms":"%s"}'
RULES = [{"chosen": "standard", "when": {"payment_terms": "Net-30"}, "label": "Short terms"}]
TOLD: dict[str, Any] = {
    "query": "When is kline to pay?",
    "subject": "contract/kline",
    "agent": "contract-bot",
    "steps": [{"decide": {"stage": "terms", "facts": "contract/kline", "rules": RULES, "default": "escalate"}}],
}


def pipeline(cli: Cli, *words: str, **changed: Any) -> str:
    """Run the pipeline; return the run's id."""
    ran = cli("runs", "import", "-", *words, stdin=json.dumps({**TOLD, **changed}).encode())
    return str(ran.json["items"][0])


@pytest.fixture
def kline(cli: Cli) -> Cli:
    """The command line of a ledger that knows one contract."""
    assert cli("store", f"--json={TERMS % 'Net-30'}", "--as", "sales").code == 0
    return cli


def overwrite(cli: Cli, *words: str) -> None:
    """Let another agent state other terms."""
    assert cli("store", f"--json={TERMS % 'Net-45'}", "--as", "billing-bot", *words).code == 0


def test_runs_of_two_databases(kline: Cli, db: Path, tmp_path: Path) -> None:
    """A copy of the database went on by itself: what was written there is the cause, and its ledger is named."""
    first = pipeline(kline)
    copy = tmp_path / "copy.db"
    shutil.copy(db, copy)
    overwrite(kline, "--db", str(copy))
    second = pipeline(kline, "--db", str(copy))
    ran = kline("runs", "diff", first, second, "--other-db", str(copy), "--exit-code")
    assert ran.code == 1
    assert ran.json["sentence"].startswith(
        "They parted at step 1, the read of contract/kline: billing-bot wrote payment_terms Net-45 (was Net-30) at "
        "position"
    )
    assert "of the second ledger; the decision terms follows from it." in ran.json["sentence"]
    assert ran.json["cause"]["statement"]["ledger"] == "second"
    assert kline("runs", "diff", first, first, "--other-db", str(copy), "-o", "table").out.endswith(
        "They are one and the same run.\n"
    )
    assert kline("runs", "diff", first, second).code == 3
    assert kline("runs", "diff", first, second, "--other-db", str(tmp_path / "none.db")).code == 3
    assert not (tmp_path / "none.db").exists()


def test_without_runs_the_last_two_of_an_agent_are_compared(kline: Cli) -> None:
    """`runs diff` alone compares the latest run with the one before it of the same agent."""
    assert kline("runs", "diff").code == 3
    first = pipeline(kline)
    alone = kline("runs", "diff")
    assert alone.code == 3
    assert f"{first} is the only run of agent contract-bot" in alone.err
    pipeline(kline, "--as", "other-bot", agent="other-bot")
    overwrite(kline)
    second = pipeline(kline)
    assert kline("runs", "diff").json == kline("runs", "diff", first, second).json


def test_a_run_of_another_tenant(kline: Cli) -> None:
    """Another tenant's run is not found, unless that tenant is named."""
    first = pipeline(kline)
    kline("store", f"--json={TERMS % 'Net-60'}", "--tenant", "north")
    second = pipeline(kline, "--tenant", "north")
    refused = kline("runs", "diff", first, second)
    assert (refused.code, refused.err.split(" at position")[0]) == (3, f"There is no run {second}")
    assert (
        "payment_terms was Net-30" in kline("runs", "diff", first, second, "--other-tenant", "north").json["sentence"]
    )


def test_files_stand_for_runs(cli: Cli, kline: Cli, tmp_path: Path) -> None:
    """A file with a trajectory is compared without being recorded, with a run or with another file."""
    one, other = str(TRACES / "openai-net30.json"), str(TRACES / "openai-net45.json")
    assert "it returned payment_terms=Net-30" in cli("runs", "diff", one, other).json["sentence"]
    (run,) = cli("runs", "import", one).json["items"]
    assert "it returned payment_terms=Net-30" in cli("runs", "diff", run, other).json["sentence"]
    assert cli("runs", "list").json["items"][0]["id"] == run
    bad = tmp_path / "bad.json"
    bad.write_text('{"steps": [{"kind": "tool"}]}')
    refused = cli("runs", "diff", run, str(bad))
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        f'{bad}/steps/0: "name" is missing. Send "name" too.',
    )
    missing = cli("runs", "diff", run, "nowhere/trace.json")
    assert (missing.code, "There is no file nowhere/trace.json" in missing.err) == (3, True)
    bad.write_text(json.dumps(cli("runs", "show", run).json))
    assert cli("runs", "diff", run, str(bad)).json["same"] is True
    bad.write_text(json.dumps(cli("runs", "show", run, "--format", "snapshot").json))
    assert "shows results and responses only in part" in cli("runs", "diff", run, str(bad)).err


def test_files_need_no_database(cli: Cli, db: Path) -> None:
    """Where there is no database, files are compared with each other, and none is made; a run is not found."""
    one, other = str(TRACES / "openai-net30.json"), str(TRACES / "openai-net45.json")
    assert cli("runs", "diff", one, other).json["step"] == 2
    assert cli("runs", "group", str(TRACES / "minimal.jsonl")).json["total"] == 2
    assert cli("runs", "diff", one, "run_a").code == 3
    assert cli("runs", "group", one, "--subject", "loan/42").code == 3
    assert not db.exists()


def test_a_crowd_is_a_tree(kline: Cli) -> None:
    """`runs group` prints clusters with their cause and outcome, the inputs that differ, and the sentence last."""
    runs = [pipeline(kline, query="Other?"), *(pipeline(kline) for _ in range(3))]
    overwrite(kline)
    runs.append(pipeline(kline))
    ran = kline("runs", "group", *runs, "--exit-code")
    assert (ran.code, ran.json["main"]["agree"], ran.json["total"]) == (1, 4, 5)
    lines = kline("runs", "group", "--subject", "contract/kline", "-o", "table").out.splitlines()
    assert lines[0] == "4 of 5 runs took the main way"
    assert lines[1] == "  terms=standard; answer: (no answer)"
    assert lines[3] == "1 run parts at step 1, the read of contract/kline"
    assert lines[4].startswith("  billing-bot wrote payment_terms Net-45 (was Net-30) at position")
    assert "inputs that differ: query" in lines
    assert lines[-1] == ran.json["sentence"]
    assert lines[-1].startswith("4 of 5 runs agree; one parts at step 1")
    same = kline("runs", "group", "--same-inputs-as", runs[1], "--agent", "contract-bot").json
    assert (same["total"], same["differing_inputs"]) == (4, [])
    assert kline("runs", "group", "--query", "Other?", "--exit-code").code == 0


def test_what_separates_good_from_bad_is_a_table(cli: Cli, tmp_path: Path) -> None:
    """`runs group --attribute` prints what bad runs did and good ones did not, with counts; hints are marked."""
    path = tmp_path / "runs.jsonl"
    calls = [{"kind": "tool", "name": "refund", "args": {"method": method}, "result": 1} for method in ("card", "cash")]
    documents = [
        {
            "id": f"r{n}",
            "query": "Refund?",
            "steps": [calls[n % 3 == 0]],
            "task": 7,
            "reward": 0.2 if n % 3 == 0 else 0.8,
        }
        for n in range(24)
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    assert cli("runs", "import", str(path)).code == 0
    words = ("runs", "group", "--attribute", "task=7", "-o", "table")
    out = cli(*words, "--reward-min", "0.5").out
    assert "16 of 24 runs took the main way (16 good, 0 bad)" in out
    (row,) = [line.split() for line in out.splitlines() if line.strip().startswith("8/8")]
    assert (row[:3], " ".join(row[4:])) == (["8/8", "0/16", "1"], "called refund with method cash")
    assert "rewards lie between 0.2 and 0.8" in cli(*words).out
    few = cli(
        "runs",
        "group",
        *[run["id"] for run in cli("runs", "list", "--limit", "4").json["items"]],
        "--reward-min",
        "0.5",
        "-o",
        "table",
    ).out
    assert "chance could do all of this:" in few


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", "run_a"], "no run to compare with"),
        (["diff", "run_a", "run_b", "run_c"], 'unexpected argument "run_c"'),
        (["diff", "run_a", "run_b", "--query", "x"], "--query: unknown option"),
        (["diff", "--group"], "--group: unknown option. Did you mean `woodrat runs group`?"),
        (["group"], "no runs to group"),
        (["group", "run_a", "--other-db", "x.db"], "--other-db: unknown option"),
    ],
)
def test_what_does_not_go_together_is_refused(kline: Cli, words: list[str], said: str) -> None:
    """Too few, too many, or options that belong to the other form: said, with what to do."""
    ran = kline("runs", *words)
    assert ran.code == 2
    assert said in ran.err


def test_faults_of_a_file_of_lines_name_the_line(cli: Cli, tmp_path: Path) -> None:
    """A fault in JSONL has the file, the line and the JSON Pointer within it, all of them at once."""
    path = tmp_path / "runs.jsonl"
    good = (TRACES / "minimal.jsonl").read_text().splitlines()[0]
    path.write_text(f'{good}\n\n{{"steps": [{{"kind": "tool"}}]}}\n{{"steps": [{{"kind": "fly"}}]}}\n')
    ran = cli("runs", "import", str(path))
    assert ran.code == 2
    lines = ran.err.splitlines()
    assert lines[0].startswith(f"{path} line 3/steps/0: ")
    assert lines[1].startswith(f"{path} line 4/steps/0/kind: ")
    assert lines[-2:] == ["Nothing was recorded.", "See: woodrat runs import --help"]
    assert len(cli("runs", "import", str(TRACES / "spans.jsonl")).json["items"]) == 2

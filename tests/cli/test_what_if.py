"""What-if on the command line: a story of one loan, tables of many, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_runs import LOAN, RULES, record
from tests.commands import Cli


@pytest.fixture
def told(cli: Cli) -> Cli:
    """The command line of a ledger that knows loan 42."""
    assert cli("store", f"--json={LOAN}", "--observed-at", "2026-01-05T09:00:00Z", "--as", "crm").code == 0
    return cli


def test_what_if_the_score_had_been_another(told: Cli) -> None:
    """Monday rejected loan 42; Friday asks what a score, a missing observation or another rule would have done."""
    run = record(told)
    log = told("log").out
    found = told("what-if", run, "--set", "creditScore=710").json
    assert (found["flip"], found["decisions"][0]["now"]["chosen"]) == (1, "approved")
    page = told("what-if", run, "--set", "loan/42#creditScore=640", "-o", "table").out
    assert page.startswith("classify-risk=rejected would flip to manual-review\n")
    assert "  loan/42#creditScore: 580, from obs_" in page
    assert page.endswith("1 decision: 1 would flip, 0 would stay the same, 0 unknown.\n")
    observation = told("lineage", "loan/42#creditScore").json["nodes"][0]["id"]
    for without in (("--without", observation), ("--without-agent", "crm")):
        (gone,) = told("what-if", f"{run}#classify-risk", *without).json["decisions"]
        assert (gone["outcome"], gone["now"]["chosen"]) == ("unknown", None)
        assert gone["sentence"] == "unknown: rule Marginal credit cannot be decided: there is no fact creditScore"
    lower = told("what-if", run, "--threshold", "classify-risk.creditScore.lt=500").json
    assert lower["decisions"][0]["now"]["chosen"] == "manual-review"
    told("what-if", "--all", "--set", "creditScore=1", "--limit", "1")
    assert told("log").out == log, "nothing is written"


def test_a_sweep_is_a_table(told: Cli) -> None:
    """Neighbouring values that come to the same stand in one row; each row is a line for programs."""
    run = record(told)
    record(told, query="Once more?")
    page = told("what-if", "--all", "--sweep", "creditScore=598..701", "-o", "table").out
    assert [line.split() for line in page.splitlines()] == [
        ["creditScore", "rejected", "manual-review", "approved", "DIFFER", "UNKNOWN"],
        ["598..599", "2", "0", "0", "0", "0"],
        ["600..699", "0", "2", "0", "2", "0"],
        ["700..701", "0", "0", "2", "2", "0"],
        ["2", "decisions:", "2", "would", "flip,", "0", "would", "stay", "the", "same,", "0", "unknown."],
    ]
    one = told("what-if", run, "--sweep", "creditScore=550,650,750", "-o", "table").out
    assert "  550: rejected (as recorded)\n  650: manual-review\n  750: approved\n" in one
    lines = told("what-if", run, "--sweep", "creditScore=598..601", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["value"] for line in lines] == [598, 599, 600, 601]


def test_other_rules_come_from_a_file(told: Cli, tmp_path: Path) -> None:
    """An object has rules by stage; a list is for the stage that is asked about."""
    run = record(told)
    rules = [{"chosen": "maybe", "when": {"creditScore": {"gt": 1}}}, *RULES]
    by_stage, alone = tmp_path / "stages.json", tmp_path / "rules.json"
    by_stage.write_text(json.dumps({"classify-risk": rules}))
    alone.write_text(json.dumps(rules))
    for words in (
        (run, "--rules", str(by_stage)),
        (f"{run}#classify-risk", "--rules", str(alone)),
        ("--all", "--stage", "classify-risk", "--rules", str(alone)),
    ):
        assert told("what-if", *words).json["decisions"][0]["now"]["chosen"] == "maybe"
    assert "does not name its stage" in told("what-if", run, "--rules", str(alone)).err


def test_what_nobody_looked_at_is_said(told: Cli) -> None:
    """A supposition in vain is an answer."""
    run = record(told)
    page = told("what-if", run, "--set", "colour=red", "-o", "table").out
    assert "No decision looked at colour.\n" in page


def test_bad_input(told: Cli) -> None:
    """Command lines at fault have exit code 2 and name all faults; what is not there has 3."""
    run = record(told)
    for line, words in (
        ("what-if", "no decisions to ask about"),
        (f"what-if {run}", "nothing is changed"),
        (f"what-if {run} --all --set a=1", "--all cannot be combined with runs"),
        (f"what-if {run} --set a", "expected name=value"),
        (f"what-if {run} --sweep a=9..1", "contains no value"),
        (f"what-if {run} --threshold risk=1", "is not a threshold"),
        (f"what-if {run} --threshold classify-risk.age.lt=1", "has such a condition"),
        (f"what-if {run} --set a=1 --valid-at 2026-01-05T09:00:00Z", "--valid-at"),
        (f"what-if {run} --rules /none/such.json", "cannot read"),
    ):
        ran = told(*line.split())
        assert (ran.code, ran.out) == (2, ""), line
        assert words in ran.err
    both = told("what-if", "--set", "a", "--threshold", "b")
    assert both.err.count("expected name=value") == 2
    assert told("what-if", "run_none", "--set", "a=1").code == 3
    assert told("what-if", run, "--without", "obs_none").code == 3
    assert told("--tenant", "other", "what-if", run, "--set", "a=1").code == 3

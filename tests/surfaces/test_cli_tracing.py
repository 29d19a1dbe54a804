"""Lineage, impact and stale on the command line."""

from __future__ import annotations

import pytest
from tests.surfaces.conftest import Cli
from tests.surfaces.test_cli_runs import LOAN, record

CORRECT = ("correct", "loan/42", "--set", "creditScore=710", "--reason", "mixed up")


@pytest.fixture
def told(cli: Cli) -> Cli:
    """The command line of a ledger that knows loan 42."""
    assert cli("store", f"--json={LOAN}", "--observed-at", "2026-01-05T09:00:00Z", "--agent", "crm").code == 0
    return cli


def test_a_corrected_score_makes_a_decision_stale(told: Cli) -> None:
    """The rejection of loan 42 is listed with both beliefs and what would be decided now."""
    assert told("stale", "-o", "table").out == "No decision is stale.\n"
    run = record(told)
    assert told("stale").json["stale"] == []
    assert told(*CORRECT).code == 0
    (found,) = told("stale").json["stale"]
    assert (found["runId"], found["outcome"], found["chosenNow"]) == (run, "flip", "approved")
    assert (found["beliefs"][0]["before"], found["beliefs"][0]["now"]) == (580, 710)
    page = told("stale", "-o", "table").out
    assert page.startswith("classify-risk=rejected would flip to approved\n")
    assert "  loan/42#creditScore: believed 580 then, 710 now; corrected: " in page
    assert told("stale", "--as-of", "0", "-o", "table").out == "No decision is stale.\n"
    assert "rests on" in told("stale", "--same", "--as-of", "0", "-o", "table").out
    assert told("--tenant", "other", "stale").json["stale"] == []


def test_lineage_is_a_tree_a_document_or_a_graph(told: Cli) -> None:
    """A tree for people, JSON for programs, and a graph for documents, whatever the output is."""
    run = record(told)
    page = told("lineage", run, "-o", "table").out
    assert page.startswith("answer Application #42: REJECTED.")
    assert "└─ read of loan/42 at position" in page
    assert " by crm at 2026-01-05T09:00:00Z: " in page
    tree = told("lineage", "loan/42#creditScore").json
    assert (tree["kind"], tree["nodes"][0]["kind"]) == ("field", "observation")
    assert told("lineage", tree["nodes"][0]["id"]).json == tree["nodes"][0]
    assert told("lineage", f"{run}#classify-risk").json["kind"] == "decision"
    assert told("lineage", run, "--format", "dot").out.startswith("digraph woodrat {\n")
    assert told("lineage", run, "--format", "mermaid", "-o", "json").out.startswith("flowchart LR\n")


def test_impact_lists_what_leaned_on_it(told: Cli) -> None:
    """The fields it wins, and the runs that read it."""
    run = record(told)
    observation = told("lineage", "loan/42#creditScore").json["nodes"][0]["id"]
    found = told("impact", observation).json
    assert [leaned["runId"] for leaned in found["runs"]] == [run]
    assert [won["field"] for won in found["fields"]] == ["creditScore"]
    assert told("impact", "--by", "crm").json["observations"] == [observation]
    page = told("impact", observation, "-o", "table").out
    assert "├─ decided classify-risk = rejected on creditScore" in page
    assert page.endswith("1 observations; 1 fields now; 1 runs; 1 decisions\n")
    assert told("impact", observation, "--format", "dot").out.startswith("digraph woodrat {\n")


def test_what_is_not_there_has_exit_code_3(told: Cli) -> None:
    """Unknown ids and those of another tenant are not found; what names nothing is refused."""
    run = record(told)
    observation = told("lineage", "loan/42#creditScore").json["nodes"][0]["id"]
    for words in (
        ("lineage", run),
        ("lineage", observation),
        ("impact", observation),
        ("lineage", "loan/42#creditScore"),
    ):
        ran = told("--tenant", "other", *words)
        assert (ran.code, ran.out) == (3, "")
        assert "Nothing was changed." in ran.err
    for line in ("lineage loan/42", "impact", "impact x", f"impact {observation} --by crm"):
        assert told(*line.split()).code == 2
    assert told("stale", "--effective", "2026-01-05T09:00:00Z").code == 2

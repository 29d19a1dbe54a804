"""Lineage, impact and stale on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_runs import LOAN, record
from tests.commands import Cli

import woodrat
from woodrat.cli import maintenance

CORRECT = ("correct", "loan/42", "--set", "creditScore=710", "--reason", "mixed up")


@pytest.fixture
def told(cli: Cli) -> Cli:
    """The command line of a ledger that knows loan 42."""
    assert cli("store", f"--json={LOAN}", "--observed-at", "2026-01-05T09:00:00Z", "--as", "crm").code == 0
    return cli


def test_a_corrected_score_makes_a_decision_stale(told: Cli) -> None:
    """The rejection of loan 42 is listed with both beliefs and what would be decided now."""
    assert told("stale", "-o", "table").out.startswith("No decision is stale.\n")
    run = record(told)
    assert told("stale").json["items"] == []
    assert told(*CORRECT).code == 0
    (found,) = told("stale").json["items"]
    assert (found["run"], found["outcome"], found["now"]["chosen"]) == (run, "flip", "approved")
    assert (found["beliefs"][0]["before"], found["beliefs"][0]["now"]) == (580, 710)
    page = told("stale", "-o", "table").out
    assert page.startswith("classify-risk=rejected would flip to approved\n")
    assert "  loan/42#creditScore: was 580, is 710 now; corrected by " in page
    assert ", because " in page
    assert told("stale", "--as-of", "0", "-o", "table").out.startswith("No decision is stale.\n")
    assert "has evidence that changed" in told("stale", "--same", "--as-of", "0", "-o", "table").out
    assert told("--tenant", "other", "stale").json["items"] == []


def test_lineage_is_a_tree_a_document_or_a_graph(told: Cli) -> None:
    """A tree for people, JSON for programs, and a graph for documents, whatever the output is."""
    run = record(told)
    page = told("lineage", run, "-o", "table").out
    assert page.startswith("answer Application #42: REJECTED.")
    assert "└─ read of loan/42 at position" in page
    assert " by crm at 2026-01-05T09:00:00Z: " in page
    tree = told("lineage", "loan/42#creditScore").json
    assert (tree["kind"], tree["nodes"][0]["kind"]) == ("field", "observation")
    assert tree["nodes"][0].items() <= told("lineage", tree["nodes"][0]["id"]).json.items()
    assert told("lineage", f"{run}#classify-risk").json["kind"] == "decision"
    assert told("lineage", run, "--format", "dot").out.startswith("digraph woodrat {\n")
    assert told("lineage", run, "--format", "mermaid", "-o", "json").out.startswith("flowchart LR\n")


def test_impact_lists_what_leaned_on_it(told: Cli) -> None:
    """The fields it wins, and the runs that read it."""
    run = record(told)
    observation = told("lineage", "loan/42#creditScore").json["nodes"][0]["id"]
    found = told("impact", observation).json
    assert [leaned["run"] for leaned in found["runs"]] == [run]
    assert [won["field"] for won in found["fields"] if won["distance"] == 0] == ["creditScore"]
    assert {won["distance"] for won in found["fields"]} == {0, 1}, "the run wrote something from it"
    assert told("impact", "crm").json["observations"] == [observation]
    page = told("impact", observation, "-o", "table").out
    assert "├─ decided classify-risk = rejected on creditScore" in page
    assert page.endswith("1 observation; 3 current fields; 1 run; 1 decision; 0 exports\n")
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
    for line in ("lineage loan/42", "impact", f"impact {observation} --agent crm"):
        assert told(*line.split()).code == 2
    assert told("stale", "--valid-at", "2026-01-05T09:00:00Z").code == 2


def test_stale_is_followed_until_interrupted(told: Cli, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--follow` prints each decision as any process makes it stale, a line of JSON each, and Ctrl-C ends it well."""
    run = record(told)
    turns = iter([710, 580, 590, 640])

    def wait(milliseconds: int) -> None:
        score = next(turns, None)
        if score is None:
            raise KeyboardInterrupt
        with woodrat.open(str(db), agent="clerk") as ledger:
            ledger.correct("loan/42", {"creditScore": score}, reason="mixed up")

    monkeypatch.setattr(maintenance, "wait", wait)
    followed = told("stale", "--follow")
    assert (followed.code, followed.err) == (0, "")
    lines = [json.loads(line) for line in followed.out.splitlines()]
    assert [(line["run"], line["now"]["chosen"]) for line in lines] == [(run, "approved"), (run, "manual-review")]
    turns = iter([710])
    page = told("stale", "--follow", "-o", "table").out
    assert page.startswith("classify-risk=rejected would flip to approved\n")


def test_what_cannot_be_followed_is_refused(told: Cli) -> None:
    """What asks for an end, a page or a moment does not go with `--follow`, all of it told at once."""
    refused = told("stale", "--follow", "--same", "--limit", "3", "-o", "json")
    assert refused.code == 2
    for words in ("--same", "--limit", "-o jsonl"):
        assert words in refused.err


def test_exports_are_listed_with_what_leaned_on_them(told: Cli, tmp_path: Path) -> None:
    """An export is found by what its rows lean on, by the name of its file alone, unless it was not to be recorded."""
    record(told)
    observation = told("lineage", "loan/42#creditScore").json["nodes"][0]["id"]
    rows = str(tmp_path / "rows.jsonl")
    head = told("export", "training", "sft", "--out", rows, "--no-record").json["position"]
    assert told("impact", observation).json["exports"] == []
    done = told("export", "training", "sft", "--out", rows, "--as", "trainer").json
    (found,) = told("impact", observation).json["exports"]
    assert (found["id"], found["agent"], found["out"]) == (done["event"], "trainer", "rows.jsonl")
    assert (found["leaning"], found["rows"], found["sha256"]) == (1, 1, done["sha256"])
    assert told("export", "training", "sft", "--out", "-", "--as-of", str(head)).code == 0
    exports = told("impact", observation).json["exports"]
    assert [(one["as_of"], one["out"]) for one in exports] == [(head, "rows.jsonl"), (head, None)]
    page = told("impact", observation, "-o", "table").out
    assert "exported as sft to rows.jsonl by trainer: 1 of 1 rows" in page
    assert page.endswith("2 exports\n")


def test_why_tells_the_margin_and_a_correction_with_its_reason(told: Cli) -> None:
    """What would have flipped a decision, and who corrected its evidence since and why, is printed and in JSON."""
    record(told)
    assert told(*CORRECT).code == 0
    reason = told("why", "loan/42").json["items"][0]
    assert reason["decision"]["margin"]["outcome"] == "flips"
    (since,) = [item["since"] for item in reason["decision"]["looked_at"] if item["fact"] == "creditScore"]
    assert (since["change"], since["now"], since["because"]) == ("corrected", 710, "mixed up")
    page = told("why", "loan/42", "-o", "table").out
    assert "margin: with creditScore " in page
    assert "creditScore 580 was corrected since to 710" in page
    assert "because mixed up" in page


def test_one_step_of_a_run_is_printed_whole(told: Cli) -> None:
    """`runs show` numbers the steps in time order, and `--step` prints one; a number that is none is refused."""
    run = record(told)
    assert "STEP" in told("runs", "show", run, "-o", "table").out
    first = told("runs", "show", run, "--step", "1").json
    assert (first["run"], first["number"]) == (run, 1)
    assert told("runs", "show", run, "--step", "1", "-o", "table").out.startswith("Step 1, ")
    assert told("runs", "show", run, "--step", "99").code != 0


def corrected(db: Path) -> str:
    """Decide on a score from a document, and on a tool's answer; another agent corrects the score. Return the run."""

    @woodrat.tool
    def lookup_income(application: int) -> dict[str, int]:
        return {"income": 52000}

    rules = [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}, "income": {"lt": 90000}}, "label": "Marginal"}]
    with woodrat.open(str(db), agent="loan-officer") as ledger:
        mailroom = ledger.as_agent("mailroom")
        report = mailroom.sources.add(b"Applicant 42: score 580", name="bureau-report.txt")
        mailroom.store({"entity_type": "loan", "id": "42", "creditScore": 580}, source=report)
        with ledger.run("Approve #42?", subject="loan/42") as run:
            facts = {"creditScore": run.show("loan/42").fact("creditScore"), **lookup_income(application=42)}
            run.decide("risk", facts, rules, default="approved")
            run.answer("REJECTED")
        ledger.as_agent("ann").correct("loan/42", {"creditScore": 640}, reason="mixed up two people")
        return str(run.id)


BY_ANN = ("ann", "because mixed up two people")
TOOL = "lookup_income(application=42)"
MARGIN = "with creditScore 600 or more instead of 580, approved would have been chosen"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("show loan/42", BY_ANN),
        ("blame loan/42#creditScore", BY_ANN),
        ("history loan/42", BY_ANN),
        ("lineage loan/42#creditScore", BY_ANN),
        ("lineage RUN", ("bureau-report.txt from mailroom", f"{TOOL}, which returned ")),
        ("stale", (*BY_ANN, "was 580, is 640 now", "would flip to approved")),
        ("why loan/42", (*BY_ANN, "bureau-report.txt", "from mailroom", f"from {TOOL}", MARGIN)),
        ("runs show RUN", (*BY_ANN, "bureau-report.txt", "from mailroom", f"from {TOOL}", MARGIN)),
    ],
)
def test_a_correction_is_told_with_its_reason_everywhere(cli: Cli, db: Path, line: str, words: tuple[str, ...]) -> None:
    """Each table names who corrected a value and why; where a decision is shown, its document, call and margin too."""
    run = corrected(db)
    page = cli(*(run if word == "RUN" else word for word in line.split()), "-o", "table").out
    assert [text for text in words if text not in page] == []
    spans = [call["span"] for call in cli("runs", "show", run).json["tool_calls"]]
    assert not any(span in page for span in spans)

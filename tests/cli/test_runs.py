"""Runs on the command line: list, show, diff, record, judge, why, export."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli

LOAN = '{"entity_type":"loan","id":"42","creditScore":580}'
RULES = [
    {"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal credit"},
    {"chosen": "approved", "when": {"creditScore": {"gte": 700}}, "label": "Good credit"},
]
TOLD: dict[str, Any] = {
    "query": "Should we approve application #42?",
    "subject": "loan/42",
    "conversation": "app-42",
    "principal": "ann",
    "agent": "loan-officer",
    "steps": [
        {"tool": {"name": "bureau", "args": {"id": "42"}, "result": {"hits": 1}}},
        {"tool": {"name": "fraud", "error": "too slow"}},
        {"model": {"model": "small-1", "response": "Hm.", "usage": {"input": 10, "output": 1}}},
        {"decide": {"stage": "classify-risk", "facts": "loan/42", "rules": RULES, "default": "manual-review"}},
        {"store": [{"entity_type": "loan", "id": "42", "status": "rejected"}]},
        {"note": "told the applicant"},
    ],
    "answer": "Application #42: REJECTED. Credit (580) below floor (600).",
}


def record(cli: Cli, **changed: Any) -> str:
    """Record a run from standard input; return its id."""
    ran = cli("runs", "import", "-", stdin=json.dumps({**TOLD, **changed}).encode())
    return str(ran.json["items"][0])


@pytest.fixture
def told(cli: Cli) -> Cli:
    """The command line of a ledger that knows loan 42."""
    assert cli("store", f"--json={LOAN}").code == 0
    return cli


def test_a_snapshot_goes_to_another_ledger(told: Cli, tmp_path: Path) -> None:
    """A run is printed as a snapshot and imported elsewhere, alone or one a line; what was asked besides is refused."""
    run = record(told)
    told("runs", "judge", run, "good")
    shown = told("runs", "show", run, "--format", "snapshot")
    snapshot = shown.json
    assert (snapshot["runId"], snapshot["finalContent"]) == (run, TOLD["answer"])
    assert snapshot["toolCalls"][0]["resultPreview"] == '{"hits": 1}'
    assert json.loads(told("runs", "show", run, "--format", "snapshot", "-o", "table").out) == snapshot
    one, many = tmp_path / "one.json", tmp_path / "many.jsonl"
    one.write_text(json.dumps(snapshot))
    many.write_text("\n".join(json.dumps({**snapshot, "runId": id}) for id in (run, "trace-1")))
    elsewhere = ("--db", str(tmp_path / "elsewhere.db"))
    assert told("runs", "import", str(one), *elsewhere).json["items"] == [run]
    assert len(told("runs", "import", str(many), *elsewhere).json["items"]) == 2
    assert len(told("runs", "list", *elsewhere).json["items"]) == 2
    again = told("runs", "show", run, "--format", "snapshot", *elsewhere).json
    assert (again["decisions"][0]["rules"], again["verdict"]) == (snapshot["decisions"][0]["rules"], "good")
    page = told("runs", "show", run, "-o", "table", *elsewhere).out
    assert "from a snapshot: results and responses are previews" in page
    wrong = told("runs", "show", run, "--format", "snapshot", "--projection", "full", "--budget", "100")
    assert (wrong.code, wrong.err.count("--format snapshot prints the whole run")) == (2, 2)
    one.write_text(json.dumps({"finalContent": "x", "toolCalls": 5, "query": 1}))
    refused = told("runs", "import", str(one), *elsewhere)
    assert refused.code == 2
    assert all(f"{one}{path}: expected" in refused.err for path in ("/toolCalls", "/query"))


def test_several_files_are_imported_or_none(told: Cli, tmp_path: Path) -> None:
    """Files and folders in one call; the faults of all are told, each with its file and line."""
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"messages": [{"role": "user", "content": "Hi?"}]}))
    table = tmp_path / "b.csv"
    table.write_text("question,answer\nWhen?,Now\n")
    before = len(told("runs", "list").json["items"])
    assert len(told("runs", "import", str(folder), str(table)).json["items"]) == 2
    (folder / "c.jsonl").write_text('{"query": "?", "steps": [{"kind": "tool"}]}\n{"messages"')
    table.write_text("question,answer\nWhen?,Now\nWho?\n")
    refused = told("runs", "import", str(folder), str(table))
    assert refused.code == 2
    assert f"{folder}/c.jsonl line 2: " in refused.err
    assert f"{table} row 3: it has 1 cells" in refused.err
    assert len(told("runs", "list").json["items"]) == before + 2
    missing = told("runs", "import", "/gone.json", "/gone.csv")
    assert (missing.code, missing.err.count("cannot read")) == (2, 2)
    assert told("runs", "import", "-", str(table), stdin=b"{}").code == 2
    same = told("runs", "diff", str(folder / "a.json"), str(folder / "a.json"))
    assert same.json["same"] is True


def test_why_was_loan_42_rejected(told: Cli) -> None:
    """Monday's run, told from a file, answers Friday's question: the decision, its time, and what settled it."""
    run = record(told)
    found = told("why", "loan/42").json
    reason = found["items"][0]
    assert (reason["run"], reason["decision"]["chosen"]) == (run, "rejected")
    assert reason["decision"]["evidence"] == {"creditScore": 580, "threshold": 600}
    assert reason["answer"] == TOLD["answer"]
    assert reason["decided_at"].endswith("Z")
    page = told("why", "loan/42", "-o", "table").out
    assert page.startswith("classify-risk=rejected by rule Marginal credit\n  decided at ")
    for words in ("evidence: creditScore=580, threshold=600", "answer: "):
        assert words in page
    assert "creditScore: 580 is below 600, read from loan/42#creditScore (obs_" in page
    nothing = told("why", "loan/43", "-o", "table")
    assert (nothing.code, nothing.out) == (0, "No decision about loan/43 is recorded.\n")
    assert told("why", "loan/42", "--tenant", "other").json["items"] == []


def test_a_run_is_shown_whole(told: Cli) -> None:
    """`runs show` is the run record for programs and a page for people."""
    run = record(told)
    found = told("runs", "show", run).json
    assert (found["id"], found["status"], found["agent"]) == (run, "done", "loan-officer")
    assert [call["errored"] for call in found["tool_calls"]] == [False, True]
    assert [item["fields"]["status"] for item in found["writes"]] == ["rejected"]
    page = told("runs", "show", run, "-o", "table").out
    lines = page.splitlines()
    assert lines[2].startswith("  answer: ")
    table = lines[lines.index("Steps") + 1 : lines.index("Decisions")]
    assert table[0].split()[-2:] == ["KIND", "WHAT"]
    kinds = [line.split()[3 if line.split()[2] in ("ms", "s") else 1] for line in table[1:]]
    assert {"read", "tool", "model", "decision", "write", "note"} >= set(kinds) >= {"read", "tool", "decision", "write"}
    assert not {"Reads", "Tool calls", "Models", "Writes"} & set(lines)
    assert "rule Marginal credit" in page


def test_a_projection_is_printed_for_a_prompt(told: Cli) -> None:
    """`--projection` prints the lines alone for people, with their cost for programs; a budget leaves lines out."""
    run = record(told)
    found = told("runs", "show", run, "--projection", "decisions").json
    assert "creditScore=580, threshold=600" in found["text"]
    assert found["tokens"] > 50
    short = told("runs", "show", run, "--projection", "decisions", "--budget", "60", "-o", "table").out.splitlines()
    assert short[-1].startswith("… ")
    refused = told("runs", "show", run, "--projection", "everything")
    assert refused.code == 2
    assert "Send one of decisions, commits, narrative, full." in refused.err
    assert told("runs", "show", run, "--budget", "60").code == 2


def test_runs_are_listed_and_found(told: Cli) -> None:
    """The latest comes first; filters and pages as in the library."""
    first = record(told)
    second = record(told, query="And #43?", subject="loan/43", conversation="app-43", steps=[], agent="clerk")
    assert [run["id"] for run in told("runs", "list").json["items"]] == [second, first]
    assert [run["id"] for run in told("runs", "list", "--agent", "clerk").json["items"]] == [second]
    assert [run["id"] for run in told("runs", "list", "--subject", "loan/42").json["items"]] == [first]
    page = told("runs", "list", "--limit", "1").json
    following = told("runs", "list", "--limit", "1", "--cursor", page["cursor"]).json
    assert [run["id"] for run in following["items"]] == [first]
    table = told("runs", "list", "-o", "table").out
    assert "classify-risk=rejected" in table
    assert first in table
    assert told("runs", "list", "--status", "error", "-o", "table").out == "No runs.\n"
    lines = told("runs", "list", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [second, first]


def test_a_moment_of_the_past_is_answered(told: Cli) -> None:
    """With `--as-of` only what was known then is told, and a run is itself a moment: the end of the log before it."""
    run = record(told)
    assert told("why", "loan/42", "--as-of", "0").json["items"] == []
    assert told("runs", "show", run, "--as-of", "0").code == 3
    assert told("show", "loan/42", "--as-of", run).json["fields"] == {"creditScore": 580, "id": "42"}
    assert told("why", "loan/42", "--valid-at", "2026-01-01T00:00:00Z").code == 2


def test_a_run_is_judged(told: Cli) -> None:
    """A verdict, a better answer and who says so are recorded, and shown with the run."""
    run = record(told)
    ran = told("runs", "judge", run, "bad", "--preferred", "Rejected.", "--by", "ann", "--score", "0.2")
    assert (ran.json["verdict"], ran.json["preferred"], ran.json["by"], ran.json["score"]) == (
        "bad",
        "Rejected.",
        "ann",
        0.2,
    )
    assert told("runs", "list", "--verdict", "bad").json["items"][0]["verdict"] == "bad"
    assert "  judged bad by ann" in told("runs", "show", run, "-o", "table").out


def test_a_run_is_compared_with_a_known_good_state(told: Cli) -> None:
    """`--against` without a verdict compares what the run wrote with a tag, and stores an evaluation."""
    run = record(told)
    told("tag", "known-good")
    assert told("runs", "judge", run, "--against", "@known-good").json["verdict"] == "passed"
    again = record(told, steps=[{"store": [{"entity_type": "loan", "id": "42", "status": "approved"}]}])
    found = told("runs", "judge", again, "--against", "@known-good").json
    assert (found["verdict"], found["against"]) == ("failed", "@known-good")
    assert told("show", found["evaluation"]).json["fields"]["failures"] == ["loan/42#status"]


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "judge", "RUN"),
        ("runs", "judge", "RUN", "bad", "--score", "much"),
        ("runs", "judge", "RUN", "--against", "@known-good", "--by", "ann"),
        ("runs", "list", "--status", "asleep"),
        ("runs", "list", "--since", "soon"),
        ("runs", "import", "/nonexistent.json"),
        ("why", "loan"),
        ("export", "training", "ppo", "--out", "-"),
        ("export", "training", "sft", "--out", "/nonexistent/rows.jsonl"),
        ("export", "training", "sft", "--flavour", "gemini", "--out", "-"),
    ],
)
def test_input_at_fault_is_refused(told: Cli, words: tuple[str, ...]) -> None:
    """Exit code 2, and a message that says what to do."""
    run = record(told)
    ran = told(*(run if word == "RUN" else word for word in words))
    assert ran.code == 2, ran.out
    assert ran.err.count("\n") >= 2


@pytest.mark.parametrize("words", [("runs", "show"), ("runs", "diff", "run_z"), ("runs", "judge", "RUN", "good")])
def test_an_unknown_run_is_not_found(told: Cli, words: tuple[str, ...]) -> None:
    """Exit code 3."""
    unknown = "run_" + "a" * 26
    named = [unknown if word == "RUN" else word for word in words]
    ran = told(*(named if "RUN" in words else [*named, unknown]))
    assert ran.code == 3
    assert "There is no run" in ran.err


def test_two_runs_are_compared(told: Cli) -> None:
    """Side by side for people, with the sentence last; JSON when piped; `--exit-code` tells whether they differ."""
    first = record(told)
    told("store", "--json", '{"entity_type":"loan","id":"42","creditScore":640}', "--as", "bureau-bot")
    second = record(told, answer="Application #42 goes to a person.")
    found = told("runs", "diff", first, second).json
    assert (found["first"], found["second"], found["same"], found["step"]) == (first, second, False, 4)
    assert found["cause"]["statement"]["agent"] == "bureau-bot"
    page = told("runs", "diff", first, second, "-o", "table").out.splitlines()
    assert page[0].split() == ["STEP", "WHAT", "FIRST", "SECOND"]
    assert page[5].split()[:5] == ["|", "4", "read", "of", "loan/42"]
    assert page[-1] == found["sentence"]
    assert page[-1].startswith(
        "They parted at step 4, the read of loan/42: bureau-bot wrote creditScore 640 (was 580) at position "
    )
    assert told("runs", "diff", first, second, "--exit-code").code == 1
    assert told("runs", "diff", first, first, "--exit-code", "-o", "table").code == 0
    assert told("runs", "diff", first, second, "--as-of", second).code == 3
    assert told("runs", "diff", first, second, "--tenant", "other").code == 3
    assert told("runs", "diff", first).code == 2


def test_training_rows_are_written(told: Cli, tmp_path: Path) -> None:
    """A file with one row a line; what was left out is listed with the reason."""
    good, bad = record(told), record(told, answer="No.")
    told("runs", "judge", good, "good")
    told("runs", "judge", bad, "bad")
    path = tmp_path / "rows.jsonl"
    found = told("export", "training", "kto", "--out", str(path)).json
    assert (found["rows"], found["runs"], found["out"]) == (2, 2, str(path))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["label"] for row in rows] == [True, False]
    page = told("export", "training", "sft", "--out", str(path), "-o", "table").out
    assert f"Wrote 1 rows of 1 runs to {path}; excluded 1 runs." in page
    assert f"excluded {bad}: it was judged bad" in page
    streamed = told("export", "training", "sft", "--flavour", "openai", "--no-metadata", "--out", "-")
    assert list(json.loads(streamed.out)) == ["messages", "tools"]
    assert "Wrote 1 rows" in streamed.err


def test_withdrawn_evidence_is_told(told: Cli, tmp_path: Path) -> None:
    """A run that read what was retracted is left out, and the observation is named."""
    record(told)
    observation = told("observations", "list", "loan/42").json["items"][0]["id"]
    told("retract", observation, "--reason", "another applicant")
    found = told("export", "training", "sft", "--out", str(tmp_path / "rows.jsonl")).json
    assert found["rows"] == 0
    assert found["left_out"][0]["observations"] == [observation]


def test_nothing_recorded_can_drive_the_terminal(told: Cli) -> None:
    """Control characters in what a run says are shown as escapes."""
    run = record(told, query="\x1b[31mred", answer="a\x1b[2Jb", steps=[{"note": "\x07"}])
    assert "\x1b" not in told("runs", "show", run, "-o", "table").out
    assert "\x1b" not in told("runs", "list", "-o", "table").out
    other = record(told, query="red", answer="a", steps=[{"tool": {"name": "\x1b[2J", "result": "\x1b[31m"}}])
    assert "\x1b" not in told("runs", "diff", run, other, "-o", "table").out


AGENT = """
import os, signal, sys, woodrat

RULES = [woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]


@woodrat.tool(once=True)
def pay(amount):
    with open("effects", "a") as file:
        file.write("paid\\n")
    if sys.argv[1:] == ["die paying"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return amount


def approve(run):
    loan = run.show("loan/42")
    pay(100)
    if len(sys.argv) > 1 and sys.argv[1] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return woodrat.decide("classify-risk", loan, RULES, default="manual-review").chosen


if __name__ == "__main__":
    ledger = woodrat.open(os.environ["WOODRAT_DB"], agent="loan-officer")
    with ledger.run("Should we approve application #42?", subject="loan/42") as run:
        print(run.id, flush=True)
        run.answer(approve(run))
"""


def test_a_killed_run_is_resumed(told: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose process was killed reads as interrupted; resumed it ends, and what was paid is not paid again."""
    (tmp_path / "loan_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    died = subprocess.run([sys.executable, "loan_agent.py", "die"], capture_output=True, text=True, timeout=60)
    assert died.returncode == -9, died.stderr
    run = died.stdout.strip()
    assert told("runs", "show", run).json["status"] == "interrupted"
    words = ("runs", "resume", run, "--with", "loan_agent:approve")
    refused = told(*words)
    assert (refused.code, "belongs to agent 'loan-officer'" in refused.err) == (7, True)
    resumed = told(*words, "--as", "loan-officer").json
    assert (resumed["status"], resumed["result"], resumed["from_log"]) == ("done", "rejected", 2)
    assert (tmp_path / "effects").read_text() == "paid\n"
    assert told("runs", "show", run).json["status"] == "done"
    assert told(*words, "--as", "loan-officer").code == 2


def test_a_refused_resume_changes_nothing(told: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash inside a `once` tool the advice of the refusal works, and `last` names the run."""
    (tmp_path / "payer.py").write_text(AGENT + "\n\ndef other(cargo, weight):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    died = subprocess.run([sys.executable, "payer.py", "die paying"], capture_output=True, text=True, timeout=60)
    assert died.returncode == -9, died.stderr
    before = told("log").out
    words = ("runs", "resume", "last", "--as", "loan-officer", "--with")
    retry = ("--on-unknown", "retry")
    for more, problem in (
        (("payer:approve",), "(--on-unknown retry)"),
        (("payer:other", *retry), "needs cargo, weight"),
        (("payer:missing", *retry), "missing"),
        (("no_such_module:approve", *retry), "no_such_module"),
    ):
        refused = told(*words, *more)
        assert (refused.code, problem in refused.err) == (2, True), refused.err
    assert told("log").out == before
    resumed = told(*words, "payer:approve", *retry).json
    assert (resumed["run"], resumed["status"]) == (died.stdout.strip(), "done")
    assert (tmp_path / "effects").read_text() == "paid\n" * 2


FORKED = """
import woodrat

def approve(run):
    print("thinking")
    score = run.tool("bureau", lambda id: {"score": 640, "note": "a=b"}, run.inputs["id"]).result["score"]
    chosen = run.decide("risk", {"score": score}, [woodrat.Rule("no", {"score": {"lt": 600}})], default="yes").chosen
    run.tool("notify", lambda text: open("sent", "a").write(text), chosen)
    return chosen
"""


def test_a_run_is_forked(told: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the recording to the edit, live after it; the fork is shown with its parent, and diff names the edit."""
    (tmp_path / "fork_agent.py").write_text(FORKED)
    monkeypatch.chdir(tmp_path)
    run = record(
        told,
        inputs={"id": "42"},
        steps=[
            {"tool": {"name": "bureau", "args": {"id": "42"}, "result": {"score": 640, "note": "a=b"}}},
            {"decide": {"stage": "risk", "facts": {"score": 640}, "rules": [NO], "default": "yes"}},
            {"tool": {"name": "notify", "args": {"text": "yes"}, "result": 3}},
        ],
        answer="yes",
    )
    words = ("runs", "fork", run, "--at", "1", "--with", "fork_agent:approve")
    ran = told(*words, "--set", "result.score=580", "--set", 'result.note="c=d"')
    assert (ran.code, ran.json["answer"], ran.json["from_log"]) == (0, "no", 1)
    assert ran.json["set"] == {"result.score": 580, "result.note": "c=d"}
    assert "thinking" in ran.err
    assert (tmp_path / "sent").read_text() == "no"
    fork = ran.json["run"]
    assert told("runs", "show", fork).json["forked_from"]["run"] == run
    page = told("runs", "show", fork, "-o", "table").out
    assert f"{run} at step 1 (tool bureau): result.note = c=d (was a=b), result.score = 580 (was 640)" in page
    listed = told("runs", "list").json["items"]
    assert [item["forked_from"] is not None for item in listed] == [True, False]
    assert "fork of" in told("runs", "list", "-o", "table").out
    assert told("runs", "diff", run, fork).json["sentence"].startswith("The edit is the cause: in the second run, ")
    paper = told(*words, "--set", "result.score=1", "-o", "table")
    assert "1 steps were answered from the recording" in paper.out
    stopped = told(*words, "--set", "result.score=580", "--tools", "recorded", "-o", "table")
    assert (stopped.code, "it does not hold tool notify" in stopped.out) == (1, True)
    for wrong, told_why in (
        (("--set", "result.scor=580"), "it has note, score"),
        (("--set", "score"), "expected name=value"),
        (("--set", "x=1", "--set", "x=2"), "x is set twice"),
    ):
        refused = told(*words, *wrong)
        assert (refused.code, told_why in refused.err) == (2, True), refused.err
    missing = told("runs", "fork", run, "--at", "7", "--set", "result=1", "--with", "fork_agent:approve")
    assert (missing.code, "Name one of 0 start, 1 tool bureau, 3 tool notify" in missing.err) == (2, True)


NO: dict[str, Any] = {"chosen": "no", "when": {"score": {"lt": 600}}}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("nowhere", "expected MODULE:FUNCTION"),
        ("no_such_module:f", "module no_such_module"),
        ("json:nothing", "has no attribute 'nothing'"),
        ("json:__name__", "is not a function"),
    ],
)
def test_an_agent_that_is_not_there_is_refused(told: Cli, function: str, words: str) -> None:
    """What `--with` names has to be a function that can be imported."""
    ran = told("runs", "resume", record(told), "--with", function)
    assert ran.code == 2
    assert words in ran.err


def test_a_run_shows_which_fact_its_rules_lacked(told: Cli) -> None:
    """A faulty rule is refused with all that is wrong; what a decision lacked stands in the run, in words."""
    loan = '{"entity_type":"loan","id":"43","name":"Ana"}'
    assert told("store", f"--json={loan}").code == 0
    decide = {"stage": "classify-risk", "facts": "loan/43", "rules": RULES, "default": "manual-review"}
    faulty = {
        **decide,
        "rules": [{"chosen": "x", "when": {"creditScore": {"below": 600}}}, {"chosen": "y", "when": {}}],
    }
    ran = told("runs", "import", "-", stdin=json.dumps({**TOLD, "steps": [{"decide": faulty}]}).encode())
    assert ran.code == 2
    assert 'unknown operator "below"; use lt' in ran.err
    assert "Did you mean lt?" in ran.err
    assert "the rule has no condition" in ran.err
    before = len(told("runs", "list").json["items"])
    ran = told("runs", "import", "-", stdin=json.dumps({**TOLD, "steps": [{"decide": decide}]}).encode())
    assert ran.code == 2
    assert "rule Marginal credit is unknown: there is no fact creditScore" in ran.err
    failed = told("runs", "list").json["items"]
    assert (len(failed), failed[0]["status"]) == (before + 1, "error")
    page = told("runs", "show", failed[0]["id"], "-o", "table").out
    assert (
        "  problem: classify-risk was not decided: rule Marginal credit is unknown: there is no fact creditScore"
        in page
    )
    run = record(told, steps=[{"decide": {**decide, "on_missing": "skip"}}])
    page = told("runs", "show", run, "-o", "table").out
    assert "  problem: classify-risk: rule Marginal credit was skipped: there is no fact creditScore" in page
    assert "    rule Marginal credit could not be decided" in page
    assert "      creditScore: lt 600: unknown, read from loan/43#creditScore (it had no value) (" in page
    narrative = told("runs", "show", run, "--projection", "narrative", "-o", "table").out
    assert "classify-risk: rule Marginal credit was skipped: there is no fact creditScore" in narrative

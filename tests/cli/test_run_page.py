"""The page of a run for people: what came of it, its steps in time order, one step whole."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import Cli

import woodrat

MESSAGES = [
    {"role": "system", "content": "You decide on loans."},
    {"role": "user", "content": "Income of 42?\nBe quick."},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "income", "arguments": '{"id": 42}'}}]},
]


def recorded(db: Path) -> str:
    """Record a run with a call in a call, a model and a decision of the model; return its id."""

    @woodrat.tool
    def lookup(application: int) -> dict[str, int]:
        return {"income": income(application)}

    @woodrat.tool
    def income(id: int) -> int:
        return 52000

    with woodrat.open(str(db), agent="loan-officer") as ledger:
        with ledger.run("Approve #42?", subject="loan/42") as run:
            found = lookup(application=42)
            with run.model("small-1", messages=MESSAGES) as call:
                call.result = "The income is 52000."
            run.decided("tone", "formal", because="the letter is official", on={"income": found["income"]})
            run.store({"entity_type": "loan", "id": "42", "status": "open"})
            run.answer("Asked for more.")
        ledger.runs.judge(run.id, "good", by="ann", reason="as told")
        return str(run.id)


def test_a_run_is_told_in_time_order_and_nothing_twice(cli: Cli, db: Path) -> None:
    """What came of it is said first; a line for each step; steps in a call are indented; no step is told twice."""
    run = recorded(db)
    page = cli("runs", "show", run, "-o", "table").out
    lines = page.splitlines()
    assert lines[:3] == ["Approve #42?", f"  {run}, done", "  answer: Asked for more."]
    assert lines[3].startswith("  judged good by ann at ")
    table = lines[lines.index("Steps") + 2 : lines.index("Decisions")]
    assert [line.split()[0] for line in table] == ["1", "2", "3", "4", "5"]
    assert table[0].endswith('tool      lookup(application=42) → {"income": 52000}')
    assert table[1].endswith("tool        income(id=42) → 52000")
    assert table[2].endswith("model     small-1 → The income is 52000.")
    assert table[3].endswith("decision  tone=formal by model small-1 in step 3")
    assert "write     loan/42: " in table[4]
    assert page.count("lookup(application=42) → ") == 1
    assert "    margin: unknown: it was decided by model small-1 in step 3, and no rules are on record" in lines
    assert "    rationale: the letter is official" in lines


def test_a_step_is_printed_whole(cli: Cli, db: Path) -> None:
    """`--step` prints each message with its role, arguments and result, and no span; JSON has all that is recorded."""
    run = recorded(db)
    page = cli("runs", "show", run, "--step", "3", "-o", "table").out
    for words in (
        "\n  system\n    You decide on loans.\n",
        "\n  user\n    Income of 42?\n    Be quick.\n",
        '\n  assistant\n    → income {"id": 42}\n',
        "\nResponse\n  The income is 52000.\n",
    ):
        assert words in page
    told = cli("runs", "show", run, "--step", "3").json
    assert (told["number"], told["kind"], told["messages"]) == (3, "model", MESSAGES)
    assert told["request_digest"] == told["request"] is not None
    assert told["span"] not in page
    inside = cli("runs", "show", run, "--step", "2", "-o", "table").out
    assert "inside       step 1" in inside
    assert 'Arguments\n  {\n    "id": 42\n  }\nResult\n  52000\n' in inside
    writes = cli("runs", "show", run, "--step", "5").json
    assert [write["entity"] for write in writes["writes"]] == ["loan/42"]
    missing = cli("runs", "show", run, "--step", "9")
    assert (missing.code, "has no step 9; it has steps 1 to 5" in missing.err) == (2, True)


def test_steps_of_a_run_in_a_projection_name_no_span(cli: Cli, db: Path) -> None:
    """What came from a tool names the call, in every text about the run."""
    run = recorded(db)
    spans = {part["span"] for part in cli("runs", "show", run).json["tool_calls"]}
    texts = [cli("runs", "show", run, "--projection", name).json["text"] for name in ("decisions", "narrative")]
    texts += [cli(verb, what, "-o", "table").out for verb, what in (("why", "loan/42"), ("lineage", run))]
    assert spans
    assert not [text for text in texts if any(span in text for span in spans)]
    decisions, _, why, lineage = texts
    assert all("lookup(application=42)" in text for text in (decisions, why, lineage))


def test_steps_of_several_agents_name_them(cli: Cli, tmp_path: Path) -> None:
    """A transcript of several agents has a column that says whose step it is."""
    turns = [("Planner", "Look it up, Searcher."), ("Searcher", "It is 7."), ("Planner", "So 7.")]
    history = [{"role": "human", "content": "How many?"}, *({"role": who, "content": said} for who, said in turns)]
    file = tmp_path / "history.json"
    file.write_text(json.dumps({"question": "How many?", "history": history}))
    (run,) = cli("runs", "import", str(file)).json["items"]
    page = cli("runs", "show", run, "-o", "table").out
    assert "STEP  AGENT" in page
    assert [line.split()[1] for line in page.splitlines() if line.startswith("  ") and line.split()[0].isdigit()] == [
        who for who, _ in turns
    ]

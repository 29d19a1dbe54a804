"""Exporting training rows: which runs, in which order, where to; and that they load elsewhere unchanged."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.runs.story import Said, at, body, loan, write, write_entry
from tests.runs.test_reader import named, opened

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.training import reader as training_reader
from woodrat.training import rows as making
from woodrat.training.exports import Exported


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return opened(InMemoryEngine())


def judge(ledger: woodrat.Ledger, run: str, verdict: str, **said: Any) -> None:
    """Judge a run."""
    write_entry(ledger, "run.judged", body(90, run, verdict=verdict, **said))


def hasty(run: str, **began: Any) -> list[Said]:
    """Return a run with Monday's input that does not ask the bureau."""
    return [item for item in loan(run, **began) if item[0] != "run.tool"]


def exported(ledger: woodrat.Past, kind: str, **given: Any) -> tuple[list[Any], Exported]:
    """Return the rows of an export, and what it came to."""
    out = io.StringIO()
    found = ledger.training.export(kind, out=out, **given)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(rows) == found.rows
    return rows, found


def runs_of(rows: list[Any]) -> list[list[str]]:
    """Return the runs each row is from."""
    return [row["metadata"]["runs"] for row in rows]


def test_sft_has_every_run_that_went_well_oldest_first(ledger: woodrat.Ledger) -> None:
    """Runs judged bad, mixed or not ended well are left out and listed; a stated verdict asks for exactly that."""
    for number in range(1, 6):
        write(ledger, loan(named(number)) if number != 4 else loan(named(number))[:3])
    judge(ledger, named(2), "bad")
    judge(ledger, named(3), "good")
    judge(ledger, named(5), "good", by="a")
    judge(ledger, named(5), "bad", by="b")
    rows, found = exported(ledger, "sft")
    assert runs_of(rows) == [[named(1)], [named(3)]]
    assert (found.runs, found.left_out_count) == (2, 3)
    assert {item.run: item.reason for item in found.left_out} == {
        named(2): "it was judged bad",
        named(4): "it did not end well (interrupted)",
        named(5): "it was judged mixed",
    }
    assert runs_of(exported(ledger, "sft", verdict="bad")[0]) == [[named(2)]]


def test_rows_are_filtered_by_agent_and_time(ledger: woodrat.Ledger) -> None:
    """`agent`, `since` and `until` choose the runs."""
    write(ledger, loan(named(1)))
    later = [(kind, {**given, "started_at": at(given["step"] + 120)}) for kind, given in loan(named(2))]
    write(ledger, [(kind, {**given, "agent": "clerk"}) for kind, given in later])
    assert runs_of(exported(ledger, "sft", agent="clerk")[0]) == [[named(2)]]
    assert runs_of(exported(ledger, "sft", since=at(100))[0]) == [[named(2)]]
    assert runs_of(exported(ledger, "sft", until=at(100))[0]) == [[named(1)]]


def test_kto_has_the_judged_runs(ledger: woodrat.Ledger) -> None:
    """Runs nobody judged make no row and are no miss; a word that is neither good nor bad is listed."""
    for number in range(1, 5):
        write(ledger, loan(named(number)))
    judge(ledger, named(2), "bad")
    judge(ledger, named(3), "passed")
    judge(ledger, named(4), "interesting")
    rows, found = exported(ledger, "kto")
    assert [(row["metadata"]["runs"], row["label"]) for row in rows] == [([named(2)], False), ([named(3)], True)]
    assert [item.run for item in found.left_out] == [named(4)]


def test_dpo_pairs_runs_with_the_same_input_and_other_verdicts(ledger: woodrat.Ledger) -> None:
    """A bad run is paired with the good run of the same input that goes along with it for longest."""
    write(ledger, loan(named(1)))
    write(ledger, hasty(named(2)))
    other = loan(named(3))
    other[-1][1]["answer"] = "No."
    write(ledger, other)
    write(ledger, loan(named(4), number=43))
    judge(ledger, named(1), "good")
    judge(ledger, named(2), "good")
    judge(ledger, named(3), "bad")
    judge(ledger, named(4), "bad")
    rows, found = exported(ledger, "dpo")
    assert runs_of(rows) == [[named(1), named(3)]]
    assert len(rows[0]["prompt"]) == 5
    assert rows[0]["chosen"] != rows[0]["rejected"]
    assert [(item.run, item.reason) for item in found.left_out] == [
        (named(4), "no run of the same input was judged good, and no better answer is stated")
    ]


def chat(task: int, reward: int, *said: str) -> dict[str, Any]:
    """Return a chat of a task in which user and assistant speak in turn, and its reward."""
    messages = [{"role": ("user", "assistant")[number % 2], "content": words} for number, words in enumerate(said)]
    return {"task_id": task, "reward": reward, "messages": [{"role": "system", "content": "s"}, *messages]}


def test_dpo_pairs_runs_by_what_the_caller_names(ledger: woodrat.Ledger) -> None:
    """Runs of one task are paired though they were asked in other words.

    Where they part at a choice the pair is cut there; else the prompt goes on to the good run's next choice.
    """
    document = [
        chat(1, 1, "Hello", "Who?", "I am A", "Booked"),
        chat(1, 0, "Hello", "Who?", "It is A", "Refused"),
        chat(1, 0, "Hello", "No"),
        chat(2, 0, "Hello", "Who?"),
    ]
    ids = list(ledger.runs.import_(document))
    assert exported(ledger, "dpo")[1].rows == 1  # that with the same input which parts at a choice
    rows, found = exported(ledger, "dpo", pair_by="task_id")
    assert runs_of(rows) == [[ids[0], ids[1]], [ids[0], ids[2]]]
    assert [m["content"] for m in rows[0]["prompt"]] == ["s", "Hello", "Who?", "I am A"]
    assert (rows[0]["chosen"][0]["content"], rows[0]["rejected"][0]["content"]) == ("Booked", "Refused")
    assert [m["content"] for m in rows[1]["prompt"]] == ["s", "Hello"]
    assert (rows[1]["chosen"], rows[1]["rejected"]) == (
        [{"role": "assistant", "content": "Who?"}],
        [{"role": "assistant", "content": "No"}],
    )
    assert [item.reason for item in found.left_out] == [
        "no run of the same task_id was judged good, and no better answer is stated"
    ]
    rows, found = exported(ledger, "dpo", pair_by="task_id", flavour="openai")
    assert [row["preferred_output"][0]["content"] for row in rows] == ["Booked", "Who?"]
    assert [row["non_preferred_output"][0]["content"] for row in rows] == ["Refused", "No"]
    with pytest.raises(woodrat.Refused, match="rows of kind sft have no pairs"):
        exported(ledger, "sft", pair_by="task_id")


def test_dpo_takes_preferred_answers(ledger: woodrat.Ledger) -> None:
    """A judge's better answer makes a pair by itself, good run or bad."""
    write(ledger, loan(named(1)))
    judge(ledger, named(1), "good", preferred="Rejected, politely.")
    rows, _ = exported(ledger, "dpo")
    assert rows[0]["chosen"] == [{"role": "assistant", "content": "Rejected, politely."}]
    assert runs_of(rows) == [[named(1)]]


def test_process_rows_label_steps(ledger: woodrat.Ledger) -> None:
    """A bad run beside a good one is labelled from where they part; an unknown turning point is listed."""
    write(ledger, loan(named(1)))
    write(ledger, hasty(named(2)))
    write(ledger, loan(named(3), number=43))
    judge(ledger, named(1), "good")
    judge(ledger, named(2), "bad")
    judge(ledger, named(3), "bad")
    rows, found = exported(ledger, "process-rl")
    assert [row["labels"] for row in rows] == [[True, True, True], [True, False]]
    assert [item.run for item in found.left_out] == [named(3)]


def scored(ledger: woodrat.Ledger, score: int) -> tuple[str, str]:
    """Store the score of loan 42; return the observation and the log's name."""
    report = ledger.store({"entity_type": "loan", "id": "42", "creditScore": score})
    with ledger.context.engine.view(ledger.tenant) as view:
        return report.observations[0], str(view.head().log)


def test_runs_that_lean_on_withdrawn_observations_are_left_out(ledger: woodrat.Ledger) -> None:
    """A retraction takes the runs that read the observation out of every kind; withdrawing it brings them back."""
    observation, _ = scored(ledger, 580)
    for number in (1, 2):
        write(ledger, loan(named(number), observation=observation))
        judge(ledger, named(number), "good", preferred="Better.")
    assert all(exported(ledger, kind)[0] for kind in ("sft", "dpo", "kto", "process-rl"))
    then = ledger.position
    retraction = ledger.retract(observation, reason="another applicant").observations[0]
    for kind in ("sft", "dpo", "kto", "process-rl"):
        rows, found = exported(ledger, kind)
        assert rows == []
        assert {item.run: item.observations for item in found.left_out} == {
            named(1): (observation,),
            named(2): (observation,),
        }
    assert exported(ledger.at(then), "sft")[0]
    ledger.retract(retraction, reason="it was the right one")
    assert len(exported(ledger, "sft")[0]) == 2


def test_an_observation_that_is_gone_counts_only_where_it_should_be(ledger: woodrat.Ledger) -> None:
    """What this log read and no longer has was erased; what another log read cannot be told."""
    observation, log = scored(ledger, 580)
    missing = "obs_" + "z" * 26
    write(ledger, loan(named(1), observation=missing))
    write(ledger, loan(named(2), observation=missing, basis={"log": log, "position": 0}))
    rows, found = exported(ledger, "sft")
    assert runs_of(rows) == [[named(1)]]
    assert [item.run for item in found.left_out] == [named(2)]
    assert observation != missing


def test_a_corrected_observation_still_stands(ledger: woodrat.Ledger) -> None:
    """A correction changes what is believed, not what was read; the run stays."""
    observation, _ = scored(ledger, 580)
    write(ledger, loan(named(1), observation=observation))
    ledger.correct("loan/42", {"creditScore": 590}, reason="typo")
    assert runs_of(exported(ledger, "sft")[0]) == [[named(1)]]


def test_tools_are_described_by_the_configuration_in_force(ledger: woodrat.Ledger) -> None:
    """A `tool_config` that a run began with gives its schema, as it was then."""
    schema = {"type": "object", "properties": {"application_id": {"type": "string", "minLength": 1}}}
    stated = {"entity_type": "tool_config", "name": "lookup_credit_bureau", "description": "Asks the bureau."}
    version = ledger.store({**stated, "input_schema": schema}).position
    using = {"tool_config": [{"entity": "tool_config/lookup_credit_bureau", "version": version}]}
    write(ledger, loan(named(1), using=using))
    ledger.store({**stated, "description": "Changed later."})
    tools = json.loads(exported(ledger, "sft")[0][0]["tools"])
    assert tools[0]["function"] == {
        "name": "lookup_credit_bureau",
        "description": "Asks the bureau.",
        "parameters": schema,
    }


# Where rows go


def test_a_file_appears_whole_or_not_at_all(
    ledger: woodrat.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there stays until the export is done; a failure leaves it, and nothing else."""
    write(ledger, loan(named(1)))
    path = tmp_path / "rows.jsonl"
    path.write_text("old", "utf-8")

    def fails(*_: Any) -> Any:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(making, "sft_row", fails)
        with pytest.raises(RuntimeError):
            ledger.training.export("sft", out=path)
    assert path.read_text("utf-8") == "old"
    found = ledger.training.export("sft", out=str(path))
    assert (found.out, len(path.read_text("utf-8").splitlines())) == (str(path), 1)
    assert list(tmp_path.iterdir()) == [path]


def test_rows_go_to_files_that_are_open(ledger: woodrat.Ledger) -> None:
    """A text file gets text, a binary one bytes, the same."""
    write(ledger, loan(named(1)))
    text, data = io.StringIO(), io.BytesIO()
    ledger.training.export("sft", out=text)
    ledger.training.export("sft", out=data)
    assert data.getvalue().decode() == text.getvalue()


@pytest.mark.parametrize("out", ["/nonexistent/rows.jsonl", "a\0b", 7, None])
def test_a_place_that_cannot_be_written_is_refused(ledger: woodrat.Ledger, out: Any) -> None:
    """The refusal names the place, and nothing was exported."""
    with pytest.raises(woodrat.Refused, match=r"out: .*\nNothing was exported"):
        ledger.training.export("sft", out=out)


def test_unknown_kinds_are_refused_before_a_file_is_made(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """Nothing is created for a question at fault."""
    with pytest.raises(woodrat.Refused, match="there is no kind"):
        ledger.training.export("grpo", out=tmp_path / "rows.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told_up_to_the_end(ledger: woodrat.Ledger) -> None:
    """The callback hears how much of the log is done, never less than before, and at last all of it."""
    for number in range(3):
        write(ledger, loan(named(number)))
    for kind in ("sft", "dpo"):
        told: list[tuple[int, int]] = []

        def tell(done: int, whole: int, told: list[tuple[int, int]] = told) -> None:
            told.append((done, whole))

        ledger.training.export(kind, out=io.StringIO(), progress=tell)
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1]


def test_a_row_is_one_line_for_every_reader(ledger: woodrat.Ledger) -> None:
    """Separators that some readers take for the end of a line are escaped."""
    said = plain(named(1), 1)
    said[-1][1]["answer"] = "a\u2028b\u2029c\x85d"
    write(ledger, said)
    rows, _ = exported(ledger, "sft")
    assert rows[0]["messages"][-1]["content"] == "a\u2028b\u2029c\x85d"


def test_metadata_can_be_left_out(ledger: woodrat.Ledger) -> None:
    """Readers that take no further keys get none."""
    write(ledger, loan(named(1)))
    out = io.StringIO()
    ledger.training.export("sft", out=out, metadata=False, flavour="openai")
    assert list(json.loads(out.getvalue())) == ["messages", "tools"]


# Shapes


def plain(run: str, number: int) -> list[Said]:
    """Return a run without reads and tools."""
    return [
        ("run.started", body(0, run, agent="a", query=f"What is {number}? " + "x" * 200)),
        ("run.ended", body(1, run, agent="a", status="done", answer=f"It is {number}.")),
    ]


def test_a_row_of_another_shape_leads(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all that is held back looks alike, the first row that does not comes before it; none is lost or repeated."""
    monkeypatch.setattr(training_reader, "HELD_BYTES", 2_000)
    for number in range(20):
        write(ledger, plain(named(number), number))
    write(ledger, loan(named(90)))
    write(ledger, loan(named(91)))
    expected = [[named(90)], *([named(number)] for number in range(20)), [named(91)]]
    assert runs_of(exported(ledger, "sft")[0]) == expected


def test_calls_of_one_shape_are_varied(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every completion is a call without words, one of them says so, which is the same and looks different."""
    monkeypatch.setattr(training_reader, "HELD_BYTES", 2_000)
    for number in range(6):
        good, bad = loan(named(number * 2), number), loan(named(number * 2 + 1), number)
        bad[2][1]["name"] = "guess"
        write(ledger, good)
        write(ledger, bad)
        judge(ledger, named(number * 2), "good")
        judge(ledger, named(number * 2 + 1), "bad")
    rows, _ = exported(ledger, "dpo")
    assert len(rows) == 6
    assert {frozenset(row["chosen"][0]) for row in rows} == {
        frozenset({"role", "tool_calls"}),
        frozenset({"role", "tool_calls", "content"}),
    }


ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"application_id": "42"},
    {"application_id": 42, "deep": True},
    {"filters": [{"field": "score", "op": "lt", "value": 600}, "all"], "limit": None},
    {},
    {"when": "2026-01-05T09:00:00Z", "nested": {"a": {"b": [1, 2.5, "c", None]}}},
    {"text": 'line\n"quoted" \u2028 </tag> é 日本 😀'},
)


def varied(ledger: woodrat.Ledger) -> None:
    """Write judged runs in pairs, with tools of different shapes and without any."""
    for number in range(24):
        for side, verdict in enumerate(("good", "bad")):
            run = named(number * 2 + side)
            said = plain(run, number) if number % 4 == 0 else loan(run, number)
            for kind, given in said:
                if kind == "run.tool":
                    given["name"], given["args"] = f"tool_{number % 6}", ARGUMENTS[number % 6]
                    given["result"] = [None, 1, "text", {"a": [1]}, True, [{"x": None}]][number % 6]
                if kind == "run.ended" and side:
                    given["answer"] = "2026-01-05T09:00:00Z" if number % 2 else "wrong"
            write(ledger, said)
            judge(ledger, run, verdict, preferred=f"better {number}")


LOADED = """
import json, sys, tempfile, datasets
datasets.disable_progress_bars()
for path in sys.argv[1:]:
    rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    found = datasets.load_dataset("json", data_files=path, split="train", cache_dir=tempfile.mkdtemp())
    assert len(rows) == len(found) > 0, path
    for row, loaded in zip(rows, found):
        assert row == loaded, f"{path}:\\n{row}\\n{loaded}"
print(datasets.__version__)
"""


def python_with_datasets() -> str | None:
    """Return a Python that has Hugging Face's `datasets`: WOODRAT_DATASETS_PYTHON, or this one."""
    for python in (os.environ.get("WOODRAT_DATASETS_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import datasets"], capture_output=True).returncode == 0:
            return python
    return None


@pytest.mark.parametrize("flavour", ["trl", "openai"])
@pytest.mark.parametrize("held", [training_reader.HELD_BYTES, 2_000])
def test_rows_load_with_datasets_unchanged(
    ledger: woodrat.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str, held: int
) -> None:
    """Tools and results of different shapes come back from `datasets` exactly as they were written.

    Opt-in: name a Python that has `datasets` (4.7 or newer) in WOODRAT_DATASETS_PYTHON.
    """
    python = python_with_datasets()
    if python is None:
        pytest.skip("no Python with datasets; name one in WOODRAT_DATASETS_PYTHON")
    monkeypatch.setattr(training_reader, "HELD_BYTES", held)
    varied(ledger)
    paths = []
    for kind in ("sft", "dpo", "kto", "process-rl"):
        paths.append(str(tmp_path / f"{kind}.jsonl"))
        assert ledger.training.export(kind, out=paths[-1], flavour=flavour).rows > 20
    done = subprocess.run([python, "-c", LOADED, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_large_files_load_with_datasets_too(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """A file of several chunks whose first has no tool call at all loads unchanged. Opt-in as above."""
    python = python_with_datasets()
    if python is None:
        pytest.skip("no Python with datasets; name one in WOODRAT_DATASETS_PYTHON")
    for number in range(80):
        said = plain(named(number), number)
        said[0][1]["query"] += "y" * 60_000
        write(ledger, said)
    path = tmp_path / "sft.jsonl"
    write(ledger, loan(named(900)))
    other = loan(named(901))
    other[2][1]["args"] = {"filters": ["x", 1]}
    write(ledger, other)
    ledger.training.export("sft", out=path)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    assert '"tool_calls"' in lines[0]
    # The middle again and again, until the rows after it lie beyond the first chunk of 10 MiB.
    path.write_text("".join([lines[0], *(lines[1:-1] * 4), lines[-1]]), "utf-8")
    assert path.stat().st_size > 12 * 1_048_576
    done = subprocess.run([python, "-c", LOADED, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]

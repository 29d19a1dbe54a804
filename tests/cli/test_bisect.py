"""Bisect and reduce on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_runs import RULES, record
from tests.commands import Cli

SCORES = (710, 690, 580, 640, 590)
LOW = ("--where", "creditScore lt 600")


@pytest.fixture
def told(cli: Cli) -> Cli:
    """The command line of a ledger that heard five scores of loan 42."""
    for day, score in enumerate(SCORES, 1):
        loan = f'{{"entity_type":"loan","id":"42","creditScore":{score}}}'
        at = f"2026-01-0{day}T09:00:00Z"
        assert cli("store", f"--json={loan}", "--observed-at", at, "--as", "crm").code == 0
    return cli


def test_a_flip_is_a_sentence_a_page_and_a_document(told: Cli) -> None:
    """One sentence first, then the write with values and observations; JSON for programs."""
    found = told("bisect", "loan/42", *LOW).json
    assert (found["flip"]["position"], found["answers"], found["folds"]) == (2, [False, True], 4)
    page = told("bisect", "loan/42", *LOW, "-o", "table")
    assert page.code == 0
    assert page.out.startswith("loan/42#creditScore lt 600: false became true at position 2, recorded ")
    assert "  loan/42#creditScore: 690 → 580" in page.out
    assert f"  {found['flip']['statements'][0]['observation']} by crm: assert loan/42 " in page.out
    first = told("bisect", "loan/42", *LOW, "--from", "2", "--first").json
    assert (first["flip"]["position"], first["first"]) == (3, True)
    assert told("--tenant", "other", "bisect", "loan/42", *LOW).code == 3


def test_no_flip_exits_with_1_and_says_both_answers(told: Cli) -> None:
    """Where both ends agree there is nothing to halve; the page says so, and how to go on."""
    ran = told("bisect", "loan/42", *LOW, "--to", "1", "-o", "table")
    assert ran.code == 1
    assert ran.out.startswith("loan/42#creditScore lt 600: false before the first entry and false at position 1; ")
    assert told("bisect", "loan/42", *LOW, "--as-of", "1").json["flip"] is None


def test_a_decision_on_record_is_asked_again(told: Cli, tmp_path: Path) -> None:
    """`RUN#stage` with another branch, or rules from a file, find when it would have been chosen."""
    run = record(told)
    found = told("bisect", f"{run}#classify-risk", "--chosen", "approved", "--from", "0", "--first").json
    assert (found["flip"]["position"], found["flip"]["chosen"]) == (1, ["approved", "manual-review"])
    page = told("bisect", f"{run}#classify-risk", "-o", "table").out
    assert "classify-risk chooses rejected: false became true" in page
    assert "  chosen: manual-review → rejected" in page
    (tmp_path / "rules.json").write_text(json.dumps(RULES), "utf-8")
    rules = ("--rules", str(tmp_path / "rules.json"), "--default", "manual-review", "--chosen", "approved")
    assert told("bisect", "loan/42", *rules, "--from", "0", "--first").json["flip"]["position"] == 1


def test_deleting_and_being_are_asked_by_switches(told: Cli) -> None:
    """`--deleted` and `--exists` ask about the entity itself."""
    assert told("delete", "loan/42").code == 0
    page = told("bisect", "loan/42", "--deleted", "-o", "table").out
    assert "loan/42 is deleted: false became true at position 5" in page
    assert "  loan/42 was deleted" in page
    page = told("bisect", "loan/42", "--exists", "-o", "table").out
    assert "  loan/42 became known" in page


def test_a_set_is_written_and_checked_elsewhere(told: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file holds without the database that it was made from; one that is changed is refused."""
    file = tmp_path / "low.jsonl"
    ran = told("reduce", "loan/42", *LOW, "--out", str(file))
    assert [member["fields"]["creditScore"] for member in ran.json["members"]] == [590]
    page = told("reduce", "loan/42", *LOW, "--out", str(file), "-o", "table").out
    assert page.startswith("loan/42#creditScore lt 600: 1 of 5 observations shows it by itself (")
    assert f"Written to {file}; " in page
    monkeypatch.setenv("WOODRAT_DB", str(tmp_path / "nothing.db"))
    checked = told("reduce", "--check", str(file))
    assert (checked.code, checked.json["same"]) == (0, True)
    page = told("reduce", "--check", str(file), "-o", "table").out
    assert page.startswith("loan/42#creditScore lt 600: it holds on this one observation alone, and no longer ")
    assert not (tmp_path / "nothing.db").exists()
    assert told("reduce", "--check", "-", stdin=file.read_bytes()).json["same"] is True
    file.write_bytes(file.read_bytes().replace(b"590", b"591"))
    changed = told("reduce", "--check", str(file))
    assert changed.code == 2
    assert "the bytes are not those that were written" in changed.err


def test_a_set_that_can_be_smaller_exits_with_1(told: Cli, tmp_path: Path) -> None:
    """A file that somebody padded is well formed, and still not what it should be."""
    from woodrat.bisect.reduction import parse
    from woodrat.records import replace

    files = [tmp_path / "low.jsonl", tmp_path / "high.jsonl"]
    told("reduce", "loan/42", *LOW, "--out", str(files[0]))
    told("reduce", "loan/42", "--where", "creditScore=640", "--as-of", "3", "--out", str(files[1]))
    low, high = (parse(file.read_bytes()) for file in files)
    files[0].write_bytes(replace(low, members=low.members + high.members).to_bytes())
    ran = told("reduce", "--check", str(files[0]))
    assert (ran.code, ran.json["removable"]) == (1, [high.members[0].id])
    assert "it holds, but it would without" in told("reduce", "--check", str(files[0]), "-o", "table").out


def test_a_set_goes_to_standard_output(told: Cli) -> None:
    """`--out -` prints the bytes of the file and nothing else."""
    from woodrat.bisect.reduction import parse

    ran = told("reduce", "loan/42", *LOW, "--out", "-")
    assert (ran.code, ran.err) == (0, "")
    assert len(parse(ran.out.encode())) == 1


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("bisect", "loan/42"), 2, "it has no condition"),
        (("bisect",), 2, "it has no condition"),
        (("bisect", "loan/43", "--exists"), 3, "not known up to position"),
        (("bisect", "loan/42", "--where", "creditScore < 600"), 2, "expected a condition"),
        (("bisect", "loan/42", "--where", "a lt 1", "--where", "b=2", "--from", "99"), 3, "There is no position"),
        (("bisect", "loan/42", "--chosen", "x"), 2, "it needs a decision or rules"),
        (("bisect", "loan/42", "--rules", "nowhere.json", "--chosen", "x"), 2, "cannot read"),
        (("bisect", "run_" + "a" * 26 + "#x"), 3, "There is no run"),
        (
            ("reduce", "loan/42", "--where", "creditScore gt 600"),
            2,
            "does not hold at position 4: loan/42#creditScore is 590",
        ),
        (("reduce", "loan/42", *LOW, "--folds", "1"), 2, "after 1 folds"),
        (("reduce", "loan/42", *LOW, "--out", "no/such/folder/f"), 2, "cannot write"),
        (("reduce", "loan/42", "--check", "f"), 2, "--check: it cannot be combined with REF"),
        (("reduce", "--check", "nowhere.jsonl"), 2, "cannot read"),
    ],
)
def test_bad_calls_say_what_to_do(told: Cli, words: tuple[str, ...], code: int, problem: str) -> None:
    """Each has its exit code and names what is wrong."""
    ran = told(*words)
    assert (ran.code, ran.out) == (code, "")
    assert problem in ran.err

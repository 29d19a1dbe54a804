"""Files of many records: stored in batches, summed up, and carried on with after an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli, cli, db

import woodrat
from woodrat.cli import record_lines
from woodrat.cli.facts import _Storing
from woodrat.ledger.report import Report

__all__ = ["cli", "db"]

TEN = [{"entity_type": "contact", "name": f"Person {number}", "age": number} for number in range(10)]


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch be full with three records."""
    monkeypatch.setattr(record_lines, "BATCH_RECORDS", 3)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of ten records, one a line: four batches."""
    return written(tmp_path, TEN)


def written(folder: Path, records: list[Any], name: str = "records.jsonl") -> Path:
    """Return a file with one record, or line of text, a line."""
    path = folder / name
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def ages(db: Path) -> list[Any]:
    """Return the `age` of every observation stored, in the order of the log."""
    with woodrat.open(db, readonly=True) as ledger:
        return [stored.observation.fields.get("age") for stored in ledger.observations(limit=1_000)]


def test_a_long_file_is_summed_up(cli: Cli, db: Path, file: Path) -> None:
    """A file of several batches is stored whole; the answer counts what came of it instead of repeating it."""
    summary = cli("store", "--file", str(file)).json
    assert summary == {
        "file": str(file),
        "records": 10,
        "batches": 4,
        "known": 0,
        "repeated": 0,
        "first_position": 0,
        "position": 10,
        "conflict_count": 0,
        "conflicts": [],
        "by_arrival_count": 0,
        "by_arrival": [],
        "hints": [],
        "dry_run": False,
    }
    assert ages(db) == list(range(10))


def test_standard_input_is_stored_in_batches_too(cli: Cli, db: Path, file: Path) -> None:
    """Lines that come through a pipe, without a name that says so, are batches as well."""
    assert cli("store", "--file", "-", stdin=file.read_bytes()).json["batches"] == 4
    assert ages(db) == list(range(10))


def test_people_read_what_was_stored(cli: Cli, tmp_path: Path) -> None:
    """On a terminal the summary is a few lines: how many, where, what is known and what is in conflict."""
    stated = [{**record, "$": {"observed_at": "2026-01-05T09:00:00Z"}} for record in TEN]
    file = written(tmp_path, stated)
    said = cli("store", "--file", str(file), "-o", "table", "--as", "crm").out
    assert said == f"Stored 10 records of {file} in 4 batches, at positions 0 to 10.\n"
    assert "Nothing new: 10 records" in cli("store", "--file", str(file), "-o", "table", "--as", "crm").out
    other = written(tmp_path, [{**record, "age": 99} for record in stated], "other.jsonl")
    said = cli("store", "--file", str(other), "-o", "table", "--as", "web").out
    assert "10 fields in conflict now, such as contact/Person 0#age; `woodrat conflicts` lists them" in said
    summary = cli("store", "--file", str(file), "--as", "crm").json
    assert (summary["known"], summary["first_position"]) == (10, None)


def test_one_batch_is_one_call(cli: Cli, tmp_path: Path) -> None:
    """A file of one batch is answered with its report, as records on the command line are."""
    report = cli("store", "--file", str(written(tmp_path, TEN[:3]))).json
    assert report["entities"] == ["contact/Person 0", "contact/Person 1", "contact/Person 2"]


def test_details_are_the_reports(cli: Cli, file: Path) -> None:
    """With --details every batch is answered with its report: a line each in a pipe, and text for people."""
    lines = cli("store", "--file", str(file), "--details").out.splitlines()
    assert [len(json.loads(line)["observations"]) for line in lines] == [3, 3, 3, 1]
    said = cli("store", "--file", str(file), "--details", "-o", "table").out
    assert said.count("Stored at position") == 4
    assert "Stored 10 records" in said


def test_a_json_list_is_one_call(cli: Cli, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is one JSON value is stored whole or not at all, however long; a long one is summed up as well."""
    monkeypatch.setattr("woodrat.cli.facts.BATCH_RECORDS", 3)
    path = tmp_path / "records.json"
    path.write_text(json.dumps([*TEN, {"entity_type": "contact"}]), "utf-8")
    assert cli("store", "--file", str(path)).code == 2
    path.write_text(json.dumps(TEN), "utf-8")
    summary = cli("store", "--file", str(path)).json
    assert (summary["records"], summary["batches"]) == (10, 1)
    assert len(cli("store", "--file", str(path), "--details").json["observations"]) == 10


@pytest.mark.parametrize("stored_first", [False, True], ids=["before the batch", "after the batch"])
def test_an_interrupted_file_is_carried_on_with(
    cli: Cli, db: Path, file: Path, monkeypatch: pytest.MonkeyPatch, stored_first: bool
) -> None:
    """Ctrl-C in the third batch, then the same command with the same key: nothing is stored twice, and nothing lost."""
    words = ("store", "--file", str(file), "--idempotency-key", "crm-42")
    _interrupt(monkeypatch, 3, stored_first=stored_first)
    ran = cli(*words)
    assert (ran.code, ran.out) == (130, "")
    assert "Interrupted. Lines 1 to 6 are stored. Lines 7 to 9 are stored whole or not at all" in ran.err
    assert "Run the same command again with the same idempotency key" in ran.err
    assert ages(db) == list(range(9 if stored_first else 6))
    summary = cli(*words).json
    assert ages(db) == list(range(10))
    assert (summary["records"], summary["repeated"]) == (10, 9 if stored_first else 6)
    again = cli(*words, "-o", "table").out
    assert "Stored earlier with this idempotency key: 10 records" in again
    assert ages(db) == list(range(10))


def _interrupt(monkeypatch: pytest.MonkeyPatch, number: int, *, stored_first: bool) -> None:
    """Have Ctrl-C pressed once, in the batch of this number."""
    plain: Callable[..., Report] = _Storing.store
    count = 0

    def store(storing: _Storing, *arguments: Any) -> Report:
        nonlocal count
        count += 1
        report = plain(storing, *arguments) if count != number or stored_first else None
        if count == number:
            raise KeyboardInterrupt
        assert report is not None
        return report

    monkeypatch.setattr(_Storing, "store", store)


def test_without_a_key_the_line_to_go_on_from_is_named(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was interrupted without a key can be carried on with from the line that is named."""
    _interrupt(monkeypatch, 2, stored_first=False)
    ran = cli("store", "--file", str(file))
    assert "Lines 1 to 3 are stored." in ran.err
    assert "To continue, store the file from line 4 on." in ran.err


def test_a_process_that_was_killed_is_carried_on_with(tmp_path: Path) -> None:
    """A process that is killed while it stores leaves whole batches; the same command stores the rest, once."""
    many = [{"entity_type": "thing", "name": f"thing {number}", "age": number} for number in range(6_000)]
    file, db = written(tmp_path, many), tmp_path / "killed.db"
    words = [sys.executable, "-m", "woodrat", "--db", str(db), "store", "--file", str(file), "--idempotency-key", "k"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if db.exists() and _count(db):
            process.send_signal(signal.SIGKILL)
            break
    process.wait(60)
    assert _count(db) % 1_000 == 0
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ}, check=True)
    assert json.loads(done.stdout)["records"] == 6_000
    with woodrat.open(db, readonly=True) as ledger:
        stated = [stored.observation.fields["age"] for stored in ledger.observations(limit=1_000)]
    assert stated == list(range(6_000))


def _count(db: Path) -> int:
    try:
        with woodrat.open(db, readonly=True) as ledger:
            return ledger.position + 1
    except woodrat.WoodratError:
        return 0


def test_lines_that_are_no_json_are_found_before_the_first_write(cli: Cli, db: Path, tmp_path: Path) -> None:
    """A file is read to its end before anything is stored: every line that is no JSON is named, and nothing written."""
    file = written(tmp_path, [*TEN[:7], "{", *TEN[7:], '{"a":1,"a":2}'])
    ran = cli("store", "--file", str(file))
    assert ran.code == 2
    assert f"{file}: not JSON at line 8" in ran.err
    assert f"{file} line 12/a: the key" in ran.err
    assert "Nothing was written." in ran.err
    assert not db.exists()


def test_bad_records_end_the_file_at_their_batch(cli: Cli, db: Path, tmp_path: Path) -> None:
    """A record that is refused is named by its line, with all others to the end; earlier batches are there."""
    bad = {"name": "no type"}
    file = written(tmp_path, ["", *TEN[:4], bad, *TEN[4:7], bad, *TEN[7:]])
    ran = cli("store", "--file", str(file), "--idempotency-key", "k")
    assert ran.code == 2
    assert f"{file} line 6/entity_type" in ran.err
    assert f"{file} line 10/entity_type" in ran.err
    assert "Lines 1 to 4 were stored, up to position 3; nothing after them was written." in ran.err
    assert ages(db) == [0, 1, 2]
    written(tmp_path, ["", *TEN[:4], TEN[8], *TEN[4:7], TEN[9], *TEN[7:8]])
    assert cli("store", "--file", str(file), "--idempotency-key", "k").json["repeated"] == 3
    assert sorted(ages(db)) == list(range(10))


def test_bad_lines_of_a_pipe(cli: Cli, db: Path) -> None:
    """Standard input is read once: lines before the batch of a bad one are stored, and the error says which."""
    lines = [json.dumps(record) for record in TEN]
    ran = cli("store", "--file", "-", stdin="\n".join([*lines[:4], "nonsense", *lines[4:]]).encode())
    assert ran.code == 2
    assert "standard input: not JSON at line 5" in ran.err
    assert "Lines 1 to 3 were stored, up to position 3" in ran.err
    assert "To continue, store the file from line 4 on." in ran.err
    assert ages(db) == [0, 1, 2]


def test_faults_are_bounded(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a number of faults the rest is not looked at, and the error says so."""
    for module in ("record_lines", "bulk_store"):
        monkeypatch.setattr(f"woodrat.cli.{module}.FAULTS_MAX", 2)
    ran = cli("store", "--file", str(written(tmp_path, [{"name": "no type"}] * 10)))
    assert "Lines after 3 were not looked at. Nothing was written." in ran.err
    ran = cli("store", "--file", str(written(tmp_path, [*TEN[:1], *["{"] * 9])))
    assert "Nothing was written. Lines after 1 were not looked at." in ran.err


def test_a_key_that_stands_for_other_lines(cli: Cli, db: Path, file: Path) -> None:
    """A key whose batches were other lines is refused; lines added after whole batches are stored."""
    words = ("store", "--file", str(file), "--idempotency-key", "k")
    written(file.parent, TEN[:6])
    assert cli(*words).json["records"] == 6
    written(file.parent, TEN[:9])
    assert cli(*words).json["repeated"] == 6
    written(file.parent, [*TEN[:5], *TEN[7:9]])
    ran = cli(*words)
    assert ran.code == 2
    assert "idempotency" in ran.err
    assert "Lines 1 to 3 were stored" in ran.err
    assert ages(db) == list(range(9))


def test_what_batches_do_not_take(cli: Cli, db: Path, file: Path) -> None:
    """A condition on versions, and a key without room for numbers, are refused before anything is stored."""
    assert "--if-version: the file has more than" in cli("store", "--file", str(file), "--if-version", "new").err
    assert "--idempotency-key: 250 bytes" in cli("store", "--file", str(file), "--idempotency-key", "k" * 250).err
    assert not db.exists()


def test_a_dry_run_of_batches(cli: Cli, db: Path, file: Path) -> None:
    """A dry run tries every batch and writes nothing."""
    assert cli("store", f"--json={json.dumps(TEN[0])}").code == 0
    summary = cli("store", "--file", str(file), "--dry-run").json
    assert (summary["records"], summary["dry_run"]) == (10, True)
    assert "nothing was written" in cli("store", "--file", str(file), "--dry-run", "-o", "table").out
    assert ages(db) == [0]


def test_relations_point_at_earlier_lines(cli: Cli, db: Path, tmp_path: Path) -> None:
    """A relation may point at an entity of an earlier line, in a dry run too; at one of a later batch it may not."""
    link = {"$": {"relate": [{"type": "knows", "to": "contact/Person 0"}]}}
    file = written(tmp_path, [*TEN[:5], {**TEN[5], **link}])
    assert cli("store", "--file", str(file), "--dry-run").code == 0
    assert cli("store", "--file", str(file)).code == 0
    ran = cli(
        "store",
        "--file",
        str(written(tmp_path, [{**TEN[9], "$": {"relate": [{"type": "knows", "to": "contact/Z"}]}}, *TEN])),
    )
    assert "contact/Z is not known, nor stated in this call" in ran.err
    assert "line 1/$/relate/0/to" in ran.err


def test_a_source_of_batches(cli: Cli, db: Path, file: Path, tmp_path: Path) -> None:
    """The source of a long file is added once, before its first batch, and every record names it."""
    source = tmp_path / "mail.txt"
    source.write_text("These are our people.", "utf-8")
    words = ("store", "--file", str(file), "--source", str(source), "--idempotency-key", "k")
    for _ in range(2):
        assert cli(*words).json["records"] == 10
    with woodrat.open(db, readonly=True) as ledger:
        assert len(list(ledger.sources.list())) == 1
        named = {stored.observation.optional.get("source") for stored in ledger.observations(limit=100)}
    assert len(named) == 1
    assert None not in named


def test_a_long_line_is_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line beyond the limit is named, and the lines after it are still read as what they are."""
    monkeypatch.setattr(record_lines, "LINE_BYTES_MAX", 100)
    long = {"entity_type": "contact", "name": "x" * 250}
    ran = cli("store", "--file", str(written(tmp_path, [*TEN[:4], long, *TEN[4:], "{"])))
    assert "line 5: the line has more than 100 bytes" in ran.err
    assert "not JSON at line 12" in ran.err

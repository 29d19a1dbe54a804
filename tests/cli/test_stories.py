"""What users do at the command line, typed as they type it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import BARCELONA, SAN_FRANCISCO, Cli

import woodrat

ANA = "contact/Ana Rivera"


def typed(command: str, db: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own, `woodrat` being this checkout."""
    words = shlex.split(command)
    assert words[0] == "woodrat"
    environment = {**os.environ, "WOODRAT_DB": str(db), **variables}
    return subprocess.run(
        [sys.executable, "-m", "woodrat", *words[1:]], env=environment, capture_output=True, text=True, encoding="utf-8"
    )


def test_the_story_for_people(ana: Cli) -> None:
    """As a table, one hit shows the snapshot, why each claim won or lost, and every observation."""
    text = ana("entities", "search", "--query", "Ana Rivera", "--entity-type", "contact", "-o", "table").out
    assert "San Francisco" in text
    assert "observed later" in text
    assert "observed earlier" in text
    assert "Observations, all 2 preserved" in text
    assert "in conflict: city" in text


def test_options_stand_before_or_after_the_verb(ana: Cli, db: Path, tmp_path: Path) -> None:
    """Global options mean the same on both sides of the verb, and come before the environment."""
    other = str(tmp_path / "other.db")
    assert ana("--db", other, "show", ANA).code == 3
    assert ana("show", ANA, "--db", other).code == 3
    assert ana("--db", str(db), "-o", "jsonl", "show", ANA).out == ana("show", "-o", "jsonl", ANA).out
    assert ana("--db", f"sqlite:///{db}", "show", ANA).code == 0
    assert ana("show", "-o", "json", "--", ANA).code == 0
    assert ana("diff", "--from", "1", ANA, "--to", "2").out == ana("diff", ANA, "--from", "1", "--to", "2").out
    assert ana("--tenant", "acme", "show", ANA).code == 3
    assert ana("show", ANA, "--tenant=acme").code == 3


def test_the_environment_names_tenant_and_agent(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """WOODRAT_TENANT and WOODRAT_AGENT are used unless an option says otherwise; the agent is cli without them."""
    cli("store", f"--json={BARCELONA}")
    assert cli("observations", "list").json["items"][0]["agent"] == "cli"
    monkeypatch.setenv("WOODRAT_TENANT", "acme")
    monkeypatch.setenv("WOODRAT_AGENT", "crm")
    cli("store", f"--json={BARCELONA}")
    assert [o["agent"] for o in cli("observations", "list").json["items"]] == ["crm"]
    cli("store", f"--json={SAN_FRANCISCO}", "--as", "web")
    assert [o["agent"] for o in cli("observations", "list", ANA).json["items"]] == ["crm", "web"]


def test_records_come_from_files_and_standard_input(cli: Cli, tmp_path: Path) -> None:
    """JSON, JSON lines and standard input are taken alike, by name or by look."""
    record = '{"entity_type":"contact","name":"%s"}'
    (tmp_path / "list.json").write_text(f"[{record % 'A'},\n {record % 'B'}]", "utf-8")
    (tmp_path / "one.json").write_text(json.dumps(json.loads(record % "C"), indent=2), "utf-8")
    (tmp_path / "lines.jsonl").write_text(f"{record % 'D'}\r\n\n{record % 'E'}\n", "utf-8")
    for name, count in (("list.json", 2), ("one.json", 1), ("lines.jsonl", 2)):
        assert len(cli("store", "--file", str(tmp_path / name)).json["observations"]) == count
    lines = f"{record % 'F'}\n{record % 'G'}\n".encode()
    assert cli("store", "--file", "-", stdin=lines).json["entities"] == ["contact/F", "contact/G"]
    assert cli("store", "--file", "-", stdin=(record % "H").encode()).json["entities"] == ["contact/H"]


def test_a_key_makes_a_retry_safe(cli: Cli) -> None:
    """The same call with the same key is answered again and writes nothing; other content is refused."""
    words = ("store", f"--json={BARCELONA}", "--idempotency-key", "crm-42")
    first, again = cli(*words).json, cli(*words).json
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["observations"] == again["observations"]
    assert "Nothing was written now." in cli(*words, "-o", "table").out
    assert cli("store", f"--json={SAN_FRANCISCO}", "--idempotency-key", "crm-42").code == 2


def test_a_dry_run_leaves_nothing_behind(cli: Cli, db: Path, tmp_path: Path) -> None:
    """A dry run reports what would happen; where there is no database it does not even make one."""
    report = cli("store", f"--json={BARCELONA}", "--dry-run").json
    assert report["dry_run"] is True
    assert report["changes"][0]["entity"] == ANA
    assert not db.exists()
    cli("store", f"--json={BARCELONA}")
    before = cli("log").out
    (tmp_path / "note.txt").write_text("a note", "utf-8")
    assert cli("store", f"--json={SAN_FRANCISCO}", "--dry-run", "--source", str(tmp_path / "note.txt")).code == 0
    assert "Dry run: nothing was written." in cli("delete", ANA, "--dry-run", "-o", "table").out
    assert cli("log").out == before


def test_a_source_is_added_first_and_named_by_what_it_says(cli: Cli, tmp_path: Path) -> None:
    """`store --source` adds the file, and its observations lead to it; a refused record leaves no source behind."""
    note = tmp_path / "note.txt"
    note.write_text("Ana moved to Girona.\n\x1b[31mred", "utf-8")
    wrong = '[{"entity_type":"contact","name":42}]'
    assert cli("store", f"--json={wrong}", "--source", str(note)).code == 2
    assert cli("sources", "list").json["items"] == []
    words = ("store", f"--json={BARCELONA}", "--source", str(note), "--idempotency-key", "k")
    assert cli(*words).code == 0
    assert cli(*words).json["repeated"] is True
    [delivery] = cli("sources", "list").json["items"]
    assert delivery["name"] == "note.txt"
    verdict = cli("blame", f"{ANA}#city").json["claims"]["city"][0]
    assert verdict["source"] == delivery["source"]
    shown = cli("sources", "show", delivery["source"]).json
    assert shown["text"] == note.read_text("utf-8")
    assert shown["deliveries"] == [delivery]
    table = cli("sources", "show", delivery["source"], "-o", "table").out
    assert "\\u001b[31mred" in table
    copy = tmp_path / "copy.txt"
    assert cli("sources", "show", delivery["source"], "--out", str(copy)).code == 0
    assert copy.read_bytes() == note.read_bytes()


def test_sources_that_are_not_text_come_back_byte_for_byte(cli: Cli, tmp_path: Path) -> None:
    """A binary source is shown as base64 and written to standard output as it is."""
    data = bytes(range(256))
    (tmp_path / "scan.bin").write_bytes(data)
    added = cli("sources", "add", str(tmp_path / "scan.bin"), "--media-type", "image/x").json
    assert added["bytes"] == 256
    assert "base64" in cli("sources", "show", added["source"]).json
    assert "scan.bin" in cli("sources", "list", "-o", "table").out
    done = subprocess.run(
        [sys.executable, "-m", "woodrat", "sources", "show", added["source"], "--out", "-"], capture_output=True
    )
    assert done.stdout == data


def test_values_on_the_command_line_are_json_where_they_are_json(cli: Cli) -> None:
    """`--set` reads numbers, booleans, lists and quoted text as JSON; everything else is text as typed."""
    cli("store", '--json={"entity_type":"thing","name":"x"}')
    given = {
        "number=42": 42,
        'quoted="42"': "42",
        "yes=true": True,
        "nothing=null": None,
        "list=[1, 2]": [1, 2],
        "plain=Girona": "Girona",
        "zip=08001": "08001",
        "nan=NaN": "NaN",
        "note=[draft]": "[draft]",
        "formula=a=b": "a=b",
        "empty=": "",
        "big=12345678901234567890": "12345678901234567890",
    }
    sets = [word for pair in given for word in ("--set", pair)]
    assert cli("correct", "thing/x", *sets, "--reason", "all kinds").code == 0
    found = cli("show", "thing/x").json["fields"]
    assert {name.partition("=")[0]: wanted for name, wanted in given.items()} | {"name": "x"} == found
    table = cli("show", "thing/x", "-o", "table").out
    assert '"42"' in table
    assert " 42 " in table


def test_elements_are_taken_out_of_collections(cli: Cli, tmp_path: Path) -> None:
    """`--remove` takes elements out of a union and leaves the others."""
    schema = {"title": "memo", "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}}}
    (tmp_path / "note.json").write_text(json.dumps(schema), "utf-8")
    assert cli("schemas", "check", str(tmp_path / "note.json")).code == 0
    assert cli("schemas", "register", str(tmp_path / "note.json")).code == 0
    cli("store", '--json={"entity_type": "memo","name":"n","tags":["a","b","c"]}')
    words = ("--remove", "tags=a", "--remove", "tags=b", "--reason", "wrong")
    assert cli("correct", "memo/n", *words).code == 0
    assert cli("show", "memo/n").json["fields"]["tags"] == ["c"]


def test_a_key_may_hold_the_mark_before_a_field(cli: Cli) -> None:
    """`REF#field` splits at the last #; a key with one can still be asked about."""
    cli("store", '--json={"entity_type":"issue","$":{"key":"org/repo#42"},"state":"open"}')
    assert set(cli("blame", "issue/org/repo#42#state").json["claims"]) == {"state"}
    assert set(cli("blame", "issue/org/repo#42").json["claims"]) == {"state"}
    assert cli("show", "issue/org/repo#42").json["fields"] == {"state": "open"}


def test_the_log_is_lines(ana: Cli) -> None:
    """Piped, the log is one entry a line; `--after` and `--as-of` bound it; the log name and bodies are all there."""
    lines = [json.loads(line) for line in ana("log").out.splitlines()]
    assert [entry["position"] for entry in lines] == [0, 1, 2]
    assert [entry["kind"] for entry in lines] == ["schema", "observation", "observation"]
    assert [json.loads(line)["position"] for line in ana("log", "--after", "1").out.splitlines()] == [2]
    assert [entry["position"] for entry in ana("log", "--as-of", "0", "-o", "json").json] == [0]
    assert "observation" in ana("log", "-o", "table").out
    assert ana("log", "--after", "99", "-o", "table").out == "No entries.\n"


def test_order_is_proved_on_the_users_own_data(ana: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prove-order` exits with 0 when order does not matter and with 1, naming the seeds, when it does."""
    assert ana("prove-order", "--shuffles", "5").json["holds"] is True
    from woodrat.api.ledger import Ledger
    from woodrat.verify.report import OrderProof

    monkeypatch.setattr(Ledger, "prove_order", lambda self, shuffles, progress: OrderProof(2, shuffles, "fp_x", (3,)))
    ran = ana("prove-order", "--shuffles", "5", "-o", "table")
    assert ran.code == 1
    assert "seeds: 3" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        ("observations", "list"),
        ("observations", "list", "thing/1"),
        ("history", "thing/1"),
        ("timeline",),
        ("conflicts", "--arrival"),
        ("related", "thing/1"),
        ("entities", "list", "--duplicates"),
        ("sources", "list"),
        ("interpretations", "list"),
        ("schemas", "list"),
    ],
)
def test_lists_are_whole_unless_a_limit_is_given(cli: Cli, db: Path, words: tuple[str, ...]) -> None:
    """A command prints all of a list; with --limit a page of it, and its cursor goes on as of the first page."""
    with woodrat.open(db, agent="a") as ledger:
        for n in range(3):
            ledger.store({"entity_type": "thing", "$": {"key": "1"}, **dict.fromkeys(("x", "y", "z"), n)})
            names = [{"entity_type": "contact", "name": f"Ana {n}", "$": {"key": f"{n}{side}"}} for side in "ab"]
            ledger.store(names)
            ledger.relate("thing/1", "near", f"contact/{n}a")
            ledger.schemas.register({"title": f"boat{n}", "properties": {}})
            ledger.interpretations.begin(ledger.sources.add(str(n).encode()), model="m")
    whole = cli(*words, "--db", str(db)).json
    rows = [row for row in whole["items"] if row.get("origin") != "built in"]
    assert whole["cursor"] is None
    assert len(rows) >= 3
    seen: list[Any] = []
    further: tuple[str, ...] = ()
    for _ in range(len(rows)):
        page = cli(*words, "--db", str(db), "--limit", "2", *further).json
        assert page["position"] == whole["position"]
        assert len(page["items"]) <= 2
        seen += page["items"]
        if page["cursor"] is None:
            break
        cli("store", '--json={"entity_type":"thing","$":{"key":"1"},"x":99}', "--db", str(db))
        further = ("--cursor", page["cursor"])
    assert seen == rows
    assert "More: add --cursor " in cli(*words, "--db", str(db), "--limit", "2", "-o", "table").out
    refused = cli(*words, "--db", str(db), "--limit", "0", "--cursor", "zz")
    assert (refused.code, "limit: " in refused.err, "cursor: " in refused.err) == (2, True, True)


def test_a_long_list_is_printed_whole(cli: Cli) -> None:
    """Without --limit all of a list is printed, however many pages it has."""
    records = [{"entity_type": "thing", "name": f"thing {number}"} for number in range(1_100)]
    cli("store", f"--json={json.dumps(records)}")
    assert len(cli("observations", "list").json["items"]) == 1_100
    assert len(cli("observations", "list", "-o", "jsonl").out.splitlines()) == 1_100


def test_duplicates_are_shown_and_not_joined(cli: Cli) -> None:
    """Entities that share an identifying value are listed together."""
    cli("store", '--json={"entity_type":"contact","email":"ana@example.com","name":"Ana Rivera"}')
    cli("store", '--json={"entity_type":"contact","name":"Ana Rivera"}')
    ran = cli("entities", "list", "--duplicates", "--entity-type", "contact")
    assert "contact/ana@example.com" in ran.out
    assert "contact/Ana Rivera" in ran.out
    assert "contact/Ana Rivera" in cli("entities", "list", "--duplicates", "-o", "table").out
    assert cli("entities", "list", "--duplicates", "--where", "a=b").code == 2
    assert cli("entities", "list", "--duplicates-of", "contact/Ana Rivera", "-o", "json").out == ran.out
    assert "--duplicates-of can only" in cli("entities", "list", "--duplicates-of", "contact/Ana Rivera", "--all").err
    cli("store", "--json", '[{"entity_type":"contact","name":"Nobody Else"}]')
    alone = cli("entities", "list", "--duplicates-of", "contact/Nobody Else", "-o", "table")
    assert "No other entity shares an identifying value." in alone.out


def test_rebuild_changes_no_state(ana: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making everything derived again ends in the same fingerprint; what had to be put right is named, with exit 1."""
    before = ana("fingerprint").json["fingerprint"]
    found = ana("rebuild").json
    assert (found["fingerprint"], found["agreed"]) == (before, True)
    assert "Everything derived agreed with the log." in ana("rebuild", "-o", "table").out
    assert ana("fingerprint").json["fingerprint"] == before
    from woodrat.api.ledger import Ledger
    from woodrat.ledger.rebuild import Rebuilt

    monkeypatch.setattr(Ledger, "rebuild", lambda self, progress: Rebuilt(2, 3, 2, 1, (ANA,), "fp_x"))
    ran = ana("rebuild", "-o", "table")
    assert ran.code == 1
    assert f"repaired: {ANA}" in ran.out


def test_doctor_names_everything_it_uses(cli: Cli, db: Path) -> None:
    """The engine, its version, every file with its size, and no outgoing address; also before there is a database."""
    early = cli("doctor").json
    assert (early["files"], early["outgoing_addresses"], early["problem"]) == ([], [], None)
    assert not db.exists()
    cli("store", f"--json={BARCELONA}")
    found = cli("doctor").json
    assert found["engine"] == "sqlite"
    assert found["settings"]["layout"] >= 1
    assert found["settings"]["sqlite"].startswith("3.")
    files = {Path(file["path"]).name: file["bytes"] for file in found["files"]}
    assert set(files) >= {"woodrat.db", "woodrat.db-queue"}
    assert files["woodrat.db"] == db.stat().st_size
    text = cli("doctor", "-o", "table").out
    assert "outgoing addresses: none" in text
    assert str(db) in text


def test_migrate_says_the_layout(ana: Cli, db: Path, tmp_path: Path) -> None:
    """A database of this version stays as it is, and its layout is named; an empty file gets its tables."""
    found = ana("migrate").json
    assert found["before"] == found["layout"]
    assert f"{db} already has layout {found['layout']}. Nothing was changed." in ana("migrate", "-o", "table").out
    new = tmp_path / "new.db"
    new.touch()
    assert f"Made the tables of {new}, layout {found['layout']}." in ana("migrate", "--db", str(new), "-o", "table").out


def test_the_demonstration_tells_its_story(cli: Cli, db: Path) -> None:
    """`woodrat demo` tells of two agents, a late arrival and a correction, proves that order does not matter, and
    leaves nothing behind."""
    ran = cli("demo")
    assert ran.code == 0
    assert "the value is San Francisco." in ran.out
    assert "It came last, it was not seen last: still San Francisco." in ran.out
    assert "The correction holds: Girona." in ran.out
    assert "one fingerprint" in ran.out
    assert "seen 1 Mar 2026, 12:00 UTC" in ran.out
    assert not db.exists()


def test_the_demonstration_tells_of_two_runs(cli: Cli) -> None:
    """The second story shows two runs side by side and ends in the sentence; either story can be told alone."""
    both, agents, runs = cli("demo"), cli("demo", "--story", "agents"), cli("demo", "--story", "runs")
    sentence = (
        "They parted at step 2, the read of contract/kline: billing-bot wrote payment_terms Net-45 (was Net-30) at "
        "position 9 from invoice.pdf; the decision payment-terms and the answer follow from it."
    )
    assert sentence in both.out.splitlines()
    assert sentence in runs.out.splitlines()
    assert "|  2     read of contract/kline  payment_terms=Net-30" in runs.out
    assert "kline" not in agents.out
    assert "Ana Rivera" not in runs.out
    assert {ran.out.splitlines()[-1] for ran in (both, agents, runs)} == {"  woodrat --help"}


def test_the_demonstration_ends_with_what_to_type_next(cli: Cli, db: Path) -> None:
    """The last lines of the demonstration are commands that work as they stand."""
    ran = cli("demo")
    assert f"These write to {db}; use --db FILE for another file." in ran.out
    commands = [line.strip() for line in ran.out.splitlines() if line.startswith("  woodrat ")]
    assert len(commands) >= 5
    assert ran.out.rstrip().endswith(commands[-1])
    for command in commands:
        words = shlex.split(command)[1:]
        assert cli(*words).code == 0, command
    assert "Girona" in cli("show", ANA).out
    for bad in ("postgresql://db.example/x", ":memory:"):
        assert "--db FILE" in cli("demo", "--db", bad).out


def test_a_reader_that_goes_away_ends_the_command_quietly(ana: Cli, db: Path) -> None:
    """`woodrat log | head` leaves no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "woodrat", "log"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_interrupt_says_what_is_safe(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends in 130, and in a sentence about the write if there may have been one."""

    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("woodrat.cli.inputs.document", interrupt)
    ran = cli("store", f"--json={BARCELONA}")
    assert ran.code == 130
    assert ran.err.startswith("\nInterrupted. Acknowledged writes are safe. An unacknowledged write is there whole or")
    monkeypatch.setattr("woodrat.cli.entities.show", interrupt)
    ran = cli("show", ANA)
    assert (ran.code, ran.err) == (130, "\nInterrupted. Nothing was changed.\n")

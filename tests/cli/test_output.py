"""What the command line prints, to the letter."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli

import woodrat
from woodrat.cli import tables
from woodrat.cli.tables import BOLD, GREEN, Paper, comparison, time, value
from woodrat.engines.sqlite import compaction, write_ahead_log
from woodrat.merge.diff import FieldChange
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

ANA = "contact/Ana Rivera"
CRM, WEB = "obs_d2fjsh5trd3wfuioa2iscubxg2", "obs_pmlsgx2mhscnae7ltvxes62wyn"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_show_as_a_table(ana: Cli) -> None:
    """A snapshot names the entity, and per field the value and where it came from."""
    assert (
        ana("show", ANA, "-o", "table").out
        == f"""\
contact/Ana Rivera
  ent_e6kwyelbgdqvrqexhppy7t5lmf, version 2, read at position 2
  FIELD  VALUE          AGENT  OBSERVED AT            POLICY  CLAIMS  OBSERVATION
  city   San Francisco  web    1 Mar 2026, 12:00 UTC  latest  2       {WEB}
  name   Ana Rivera     web    1 Mar 2026, 12:00 UTC  latest  2       {WEB}
  in conflict: city: Barcelona (crm), San Francisco (web)
"""
    )


def test_show_as_json(ana: Cli) -> None:
    """Piped, a snapshot is one JSON object; as JSON lines it is the same on one line."""
    origin = {
        "observation": WEB,
        "agent": "web",
        "observed_at": "2026-03-01T12:00:00.000000Z",
        "priority": 0,
        "policy": "latest",
        "claims": 2,
        "misfits": 0,
        "corrected": False,
        "observations": [WEB],
        "by_arrival": False,
        "because": None,
    }
    ran = ana("show", ANA)
    assert ran.json == {
        "entity": ANA,
        "entity_id": "ent_e6kwyelbgdqvrqexhppy7t5lmf",
        "entity_type": "contact",
        "members": [ANA],
        "deleted": False,
        "fields": {"city": "San Francisco", "name": "Ana Rivera"},
        "more": {},
        "problem": None,
        "schema": "sch_fchln3crj5fdag2jpak7vd5hbue6jnjpv4frbj33bghdbovurrfq",
        "blame": {"city": origin, "name": origin},
        "conflicts": [
            {
                "field": "city",
                "claims": [
                    {
                        "observation": CRM,
                        "agent": "crm",
                        "observed_at": "2026-01-05T09:00:00.000000Z",
                        "assigned": False,
                        "value": "Barcelona",
                        "corrects": False,
                        "removed": [],
                    },
                    {
                        "observation": WEB,
                        "agent": "web",
                        "observed_at": "2026-03-01T12:00:00.000000Z",
                        "assigned": False,
                        "value": "San Francisco",
                        "corrects": False,
                        "removed": [],
                    },
                ],
                "by_arrival": False,
            }
        ],
        "position": 2,
        "version": 2,
        "digest": "DIGEST",
    } | {"digest": ran.json["digest"]}
    assert ana("show", ANA, "-o", "json").out == ran.out
    lines = ana("show", ANA, "-o", "jsonl").out
    assert lines.count("\n") == 1
    assert json.loads(lines) == ran.json


def test_elements_in_every_output(cli: Cli) -> None:
    """The elements of a collection come one a line, with how many there are and how to go on; as JSON with a cursor."""
    record = {"entity_type": "contact", "name": "Ana Rivera", "tags": [f"tag {number}" for number in range(4)]}
    cli("store", f"--json={json.dumps([record])}")
    first = cli("elements", f"{ANA}#tags", "--limit", "3").json
    assert (first["elements"], first["total"]) == (["tag 0", "tag 1", "tag 2"], 4)
    read = f"read at position {first['position']}"
    ran = cli("elements", f"{ANA}#tags", "--limit", "3", "-o", "table")
    assert ran.out == f"tag 0\ntag 1\ntag 2\n3 of 4 elements, {read}; more: add --cursor {first['cursor']}\n"
    ran = cli("elements", f"{ANA}#tags", "--cursor", first["cursor"], "-o", "table")
    assert ran.out == f"tag 3\n1 of 4 elements, {read}\n"
    assert cli("elements", f"{ANA}#tags", "-o", "jsonl").out == '"tag 0"\n"tag 1"\n"tag 2"\n"tag 3"\n'
    ran = cli("elements", ANA)
    assert (ran.code, "names no field" in ran.err) == (2, True)


def test_blame_in_every_output(ana: Cli) -> None:
    """Blame shows each claim with its outcome and the reason; as JSON lines one claim a line."""
    assert (
        ana("blame", f"{ANA}#city", "-o", "table").out
        == f"""\
  FIELD  CLAIM  VALUE          AGENT  OBSERVED AT            OBSERVATION                     REASON
  city   wins   San Francisco  web    1 Mar 2026, 12:00 UTC  {WEB}  observed later
  city   loses  Barcelona      crm    5 Jan 2026, 09:00 UTC  {CRM}  observed earlier
"""
    )
    winner: dict[str, Any] = {
        "observation": WEB,
        "entity": ANA,
        "op": "assert",
        "agent": "web",
        "observed_at": "2026-03-01T12:00:00.000000Z",
        "assigned": False,
        "priority": 0,
        "value": "San Francisco",
        "wins": True,
        "reason": "observed later",
        "by_arrival": False,
        "removed": [],
        **dict.fromkeys(("source", "interpretation", "run", "locator", "excerpt", "because")),
    }
    loser = {
        **winner,
        "observation": CRM,
        "agent": "crm",
        "observed_at": "2026-01-05T09:00:00.000000Z",
        "value": "Barcelona",
        "wins": False,
        "reason": "observed earlier",
    }
    assert ana("blame", f"{ANA}#city").json == {
        "entity": ANA,
        "claims": {"city": [winner, loser]},
        "position": 2,
    }
    lines = ana("blame", f"{ANA}#city", "-o", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [{"field": "city", **winner}, {"field": "city", **loser}]


def test_diff_in_every_output(ana: Cli) -> None:
    """A diff names both positions and each change; `--exit-code` turns a difference into 1."""
    table = ana("diff", "--from", "1", "--to", "2", "-o", "table")
    changed, compared = table.out.rstrip("\n").rsplit("\n", 1)
    assert (table.code, changed) == (0, "changed contact/Ana Rivera\n  city: Barcelona → San Francisco")
    date = r"\d+ [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC"
    assert re.fullmatch(rf"\(from position 1, recorded {date}; to position 2, recorded {date}\)", compared)
    change = {
        "entity": ANA,
        "kind": "changed",
        "members_before": [ANA],
        "members_after": [ANA],
        "was_deleted": False,
        "is_deleted": False,
        "fields": [FieldChange("city", True, "Barcelona", True, "San Francisco").to_json()],
    }
    assert ana("diff", ANA, "--from", "1", "--to", "2").json == {"before": 1, "after": 2, "changes": [change]}
    assert json.loads(ana("diff", "--from", "1", "-o", "jsonl", ANA).out) == change
    assert ana("diff", "--from", "1", "--to", "2", "--exit-code").code == 1
    assert ana("diff", "--from", "2", "--to", "now", "--exit-code").code == 0
    assert ana("diff", "--from", "1", "--as-of", "1", "--exit-code").code == 0
    same = ana("diff", "--from", "2", "--to", "2", "-o", "table").out
    assert same.startswith("No difference.\n(from position 2, ")
    added = ana("diff", "--from", "0", "--to", "1", "-o", "table").out
    assert added.startswith("added contact/Ana Rivera\n  city: (nothing) → Barcelona\n  name: (nothing) → Ana Rivera\n")
    assert ana("diff", "--from", "1", "--valid-at", "2026-02-01T00:00:00Z").json["changes"] == []


def test_a_write_as_a_table(cli: Cli) -> None:
    """A write says where it went, what it changed, what is in conflict now."""
    record = '--json={"entity_type":"contact","name":"Ana Rivera","city":"%s"}'
    cli("store", record % "Barcelona", "--as", "crm", "--observed-at", "2026-01-05T09:00:00Z")
    words = ("store", record % "San Francisco", "--as", "web", "--observed-at", "2026-03-01T12:00:00Z")
    assert (
        cli(*words, "-o", "table").out
        == f"""\
Stored at position 2.
  contact/Ana Rivera
    city: Barcelona → San Francisco
  {WEB}
  in conflict now: contact/Ana Rivera#city; `woodrat blame 'contact/Ana Rivera#city'` shows all claims and the reasons
"""
    )
    assert "(already known)" in cli(*words, "-o", "table").out


def test_a_terminal_gets_a_table_that_fits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the widest columns are cut until a row fits, wide letters counted as two."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    Paper(terminal).table(("A", "B"), [("x" * 60, "short"), ("北京" * 20, "é")])
    lines = terminal.getvalue().splitlines()
    assert all(len(line) + sum(c in "北京" for c in line) <= 40 for line in lines)
    assert "x…  short" in lines[1]
    assert "\033" not in terminal.getvalue()


def test_ids_are_short_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows the beginning of an id, and cuts text before it; in a pipe ids are whole."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        Paper(stream).table(("VALUE", "OBSERVATION"), [("San Francisco", WEB), ("x" * 50, CRM)])
    short = ["San Francisco           obs_pmlsgx2mhs", "x" * 21 + "…  obs_d2fjsh5trd"]
    assert terminal.getvalue().splitlines()[1:] == [f"  {line}" for line in short]
    assert [line.split()[-1] for line in pipe.getvalue().splitlines()[1:]] == [WEB, CRM]
    assert (Paper(terminal).id(WEB), Paper(pipe).id(WEB)) == (WEB[:14], WEB)
    assert Paper(terminal).id("contact/obs_pmlsgx2mhscnae7ltvxes62wyn") == "contact/obs_pmlsgx2mhscnae7ltvxes62wyn"


def test_a_table_leaves_out_what_no_row_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a column without any value is left out, dates stay whole, and the last column goes below."""
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    row = ("run_agq6ocvl75lznitihxdzwagjcu", time("2026-11-16T15:56:01.000000Z"), "", "rejected by hand", "Why? " * 9)
    Paper(terminal).table(("RUN", "STARTED AT", "VERDICT", "DECIDED", "QUESTION"), [row])
    assert terminal.getvalue().splitlines() == [
        "  RUN             STARTED AT",
        "  run_agq6ocvl75  16 Nov 2026, 15:56 UTC",
        "    rejected by hand  " + ("Why? " * 5) + "Wh…",
    ]


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-11-16T15:56:01.000000Z", "16 Nov 2026, 15:56 UTC"),
        ("2026-01-05T09:00:00Z", "5 Jan 2026, 09:00 UTC"),
        (None, ""),
        ("time 12", "time 12"),
    ],
)
def test_dates_are_readable(moment: str | None, shown: str) -> None:
    """People see a day, a month by its name, a year and a time of day in UTC."""
    assert time(moment) == shown


@pytest.mark.parametrize(
    ("op", "operand", "holds", "shown"),
    [
        ("lt", 600, True, "580 is below 600"),
        ("lt", 500, False, "580 is not below 500"),
        ("gte", 700, False, "580 is below 700"),
        ("lte", 580, True, "580 is at most 580"),
        ("eq", 580, True, "580 is 580"),
        ("in", [1, 2], False, "580 is none of [1, 2]"),
        ("exists", True, True, "exists"),
        ("exists", False, True, "does not exist"),
        ("lt", "x", None, "580 lt x: unknown"),
    ],
)
def test_comparisons_are_sentences(op: str, operand: object, holds: bool | None, shown: str) -> None:
    """What a rule compared reads as a sentence says it."""
    assert comparison(580, op, operand, holds) == shown


def test_csv_has_a_header_and_flat_columns(ana: Cli) -> None:
    """Lists are rows under their keys, records one row; lists and objects within are JSON; text keeps its commas."""
    ana("store", '--json={"entity_type":"contact","name":"Rivera, Ana","tags":["a"]}')
    listed = list(csv.DictReader(io.StringIO(ana("entities", "list", "-o", "csv").out)))
    assert [row["entity"] for row in listed] == [ANA, "contact/Rivera, Ana"]
    assert (listed[1]["fields.name"], listed[1]["fields.tags"]) == ("Rivera, Ana", '["a"]')
    assert (listed[0]["fields.city"], listed[1]["fields.city"]) == ("San Francisco", "")
    assert json.loads(listed[0]["members"]) == [ANA]
    assert listed[1]["deleted"] == "false"
    (shown,) = csv.DictReader(io.StringIO(ana("show", ANA, "-o", "csv").out))
    assert (shown["entity"], shown["version"]) == (ANA, "2")
    tags = ana("elements", "contact/Rivera, Ana#tags", "-o", "csv").out
    assert tags == "value\na\n"
    entries = list(csv.DictReader(io.StringIO(ana("log", "-o", "csv").out)))
    assert [entry["position"] for entry in entries] == [str(number) for number in range(len(entries))]
    assert "erased_at" in entries[0]


@pytest.mark.parametrize("words", ["lineage contact/a#city", "runs diff a b", "doctor", "demo", "export log", "verify"])
def test_what_is_no_table_is_no_csv(ana: Cli, words: str) -> None:
    """An answer that is neither a list nor a record is refused as CSV before anything is done."""
    ran = ana(*words.split(), "-o", "csv")
    assert (ran.code, ran.out) == (2, "")
    assert "it cannot be CSV. Use -o json" in ran.err
    assert "Nothing was done." in ran.err


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour appears on a terminal, and neither in a pipe nor with NO_COLOR nor on a dumb terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def printed(stream: io.StringIO) -> str:
        Paper(stream).line("text", GREEN)
        return stream.getvalue()

    assert printed(Terminal()) == "\033[32mtext\033[0m\n"
    assert printed(io.StringIO()) == "text\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed(Terminal()) == "text\n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert printed(Terminal()) == "text\n"
    assert BOLD != GREEN


def test_a_terminal_gets_a_table_unless_asked_otherwise(ana: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -o a terminal gets a table; with -o json it gets JSON."""
    monkeypatch.setenv("NO_COLOR", "1")
    for words, start in ((("show", ANA), "contact/Ana Rivera\n"), (("show", ANA, "-o", "json"), "{\n")):
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        from woodrat.cli.main import main

        assert main(words) == 0
        assert terminal.getvalue().startswith(start)


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ("Girona", "Girona"),
        ("42", '"42"'),
        (42, "42"),
        ("true", '"true"'),
        (True, "true"),
        (None, "null"),
        ("null", '"null"'),
        ("", '""'),
        (" x", '" x"'),
        ("2026-01-05", "2026-01-05"),
        ("[draft]", "[draft]"),
        (["é"], '["é"]'),
    ],
)
def test_text_is_told_from_other_values(found: object, shown: str) -> None:
    """Text stands bare unless it could be taken for a number, a boolean or null."""
    assert value(found) == shown


def test_output_that_lacks_letters_stays_valid(ana: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a stream without UTF-8, JSON escapes what the stream lacks, and a table does not fail."""
    ana("store", '--json={"entity_type":"thing","name":"Zoë 北"}')
    from woodrat.cli.main import main

    for output in ("json", "table"):
        buffer = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(buffer, encoding="ascii"))
        assert main(["show", "thing/Zoë 北", "-o", output]) == 0
        text = buffer.getvalue().decode("ascii")
        if output == "json":
            assert json.loads(text)["entity"] == "thing/Zoë 北"


def test_a_full_disk_behind_the_output_is_told(ana: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that cannot be written ends in exit code 4 and says that what was acknowledged is safe."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    from woodrat.cli.main import main

    stream = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115 - closing it fails by design
    monkeypatch.setattr("sys.stdout", stream)
    assert main(["show", ANA]) == 4
    with contextlib.suppress(OSError):
        stream.close()


@pytest.mark.parametrize("character", ["a", "é", "日", "e\u0301"])
def test_a_cell_as_long_as_a_prompt_is_cut(character: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of any length and script is cut to what the terminal shows, by work that its length hardly adds to."""
    measured: list[int] = []

    def width(text: str) -> int:
        measured.append(len(text))
        return honest(text)

    honest = tables._width
    monkeypatch.setattr(tables, "_width", width)
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    Paper(stream).table(("AGENT", "ASKED", "ID"), [("cli", character * 20_000, "run_1")])
    shown = stream.getvalue().splitlines()[1]
    assert "…" in shown
    assert honest(shown) <= 60
    assert sum(measured) < 20 * 20_000 * len(character)


def test_doctor_tells_of_a_long_write_ahead_log(db: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` says nothing of a write-ahead log of the usual size, and of a large one why it is and what to do."""
    with woodrat.open(db) as ledger:
        ledger.store({"entity_type": "memo", "id": "1"})
        assert cli("doctor").json["write_ahead_log"] is None
        size = Path(f"{db}-wal").stat().st_size
        monkeypatch.setattr(write_ahead_log, "LARGE_BYTES", size)
        notice = cli("doctor").json["write_ahead_log"]
        assert f"{db}-wal has grown to {size} bytes" in notice
        assert "No data is at risk. End long reads" in notice
        assert f"write-ahead log: {notice}" in cli("doctor", "-o", "table").out


def test_doctor_tells_of_an_interrupted_erasure(db: Path, cli: Cli, tmp_path: Path, monkeypatch: Any) -> None:
    """`doctor` names an erasure that did not come to its end, until `erase --finish` has finished it."""
    make_keys(tmp_path / "keys", FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    monkeypatch.setattr(compaction, "PATIENCE_SECONDS", 0)
    with woodrat.open(db) as ledger:
        ledger.store({"entity_type": "memo", "id": "1", "text": "a text that goes"})
        assert cli("doctor").json["erasure"] is None
        with ledger.context.engine.view(ledger.tenant):
            position = ledger.erase("memo/1", reason="a request").position
            assert "still in the files" in cli("doctor").json["erasure"]
    assert "woodrat erase --finish" in cli("doctor", "-o", "table").out
    finished = cli("erase", "--finish").json
    assert [one["position"] for one in finished["certificates"]] == [position]
    assert finished["certificates"][0]["complete"]
    assert cli("doctor").json["erasure"] is None


def test_doctor_tells_which_types_are_merged_again(db: Path, cli: Cli) -> None:
    """After a schema that merges otherwise `doctor` says how far its type is, and `verify` agrees meanwhile."""
    with woodrat.open(db) as ledger:
        ledger.store({"entity_type": "memo", "id": "1", "tags": ["a"]})
        union = {"type": "array", "x-woodrat-merge": "union"}
        report = ledger.schemas.register({"title": "memo", "properties": {"tags": union}})
        assert "reads of them fold on demand" in report.hints[0]
        waiting = {"type": "memo", "position": report.position, "last": "", "done": 0}
        assert cli("doctor").json["refolding"] == [waiting]
        assert (
            "0 entities of memo done since the schema at 1; the others fold when read"
            in cli("doctor", "-o", "table").out
        )
        assert ledger.verify(deep=True).sound
        with ledger.context.engine.transaction(ledger.tenant) as write:
            write.set_meta("refold", b"[1]")
        assert "the note refold cannot be read" in {one.problem for one in ledger.verify().damage}
        assert ledger.rebuild().agreed
        assert cli("doctor").json["refolding"] == []
        assert ledger.verify().sound

"""Every way in which the command line says no: the exit code, the sentence, and what became of the data."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.commands import BARCELONA, Cli

from woodrat import errors
from woodrat.cli.command import Invocation
from woodrat.cli.main import main
from woodrat.server import wire

ANA = "contact/Ana Rivera"
RECORD = '{"entity_type":"contact","name":"A"}'


def test_every_error_has_an_exit_code_of_its_own() -> None:
    """Each class of error maps to one exit code, as the surface promises."""
    classes = errors.WoodratError.__subclasses__()
    assert {kind.code: wire.EXIT_CODES[kind.code] for kind in classes} == {
        "refused": 2,
        "not_found": 3,
        "unavailable": 4,
        "corrupt": 5,
        "outdated": 6,
        "forbidden": 7,
    }


@pytest.mark.parametrize(
    "kind", [errors.Forbidden, errors.Unavailable, errors.Corrupt, errors.Outdated, errors.NotFound]
)
def test_an_error_prints_its_own_message_and_exits_with_its_code(
    ana: Cli, monkeypatch: pytest.MonkeyPatch, kind: type[errors.WoodratError]
) -> None:
    """Whatever a verb raises on purpose is told in its own words, as text or as JSON, on standard error."""

    def fail(_: Invocation) -> None:
        raise kind("contact/a: not now.\nNothing was written.", {"entity": "contact/a"})

    monkeypatch.setattr("woodrat.cli.entities.show", fail)
    ran = ana("show", "contact/a")
    assert (ran.code, ran.out, ran.err) == (
        wire.EXIT_CODES[kind.code],
        "",
        "contact/a: not now.\nNothing was written.\nSee: woodrat show --help\n",
    )
    for words in (
        ("-o", "json", "show", "contact/a"),
        ("show", "contact/a", "-ojsonl"),
        ("show", "x", "--output=json"),
    ):
        assert json.loads(ana(*words).err) == {
            "code": kind.code,
            "message": "contact/a: not now.\nNothing was written.",
            "details": {"entity": "contact/a"},
            "help": "woodrat show --help",
        }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("store", '--json=[{"entity_type":"contact",]'), "--json: not JSON at line 1 column 27: "),
        (("store", "--json=[\n{]"), "--json: not JSON at line 2 column 2: "),
        (("store", "--json="), "--json: not JSON at line 1 column 1: expected a value, got the end of the text"),
        (("store", "--json=[]"), "the list is empty"),
        (("store", '--json="text"'), "expected a list of records or one record"),
        (("store", "--json=[42]"), "/0: expected an object, got 42 (number)"),
        (("store", '--json=[{"entity_type":"contact","name":NaN}]'), "--json/0/name: NaN is not a JSON number"),
        (
            ("store", '--json=[{"entity_type":"contact","name":"a","name":"b"}]'),
            'the key "name" (text) appears more than',
        ),
        (("store", '--json=[{"name":"a"}]'), "/0/entity_type: missing"),
        (("store", '--json=[{"entity_type":"contact","name":42}]'), "contact.name: expected text, got 42 (number)"),
        (("store",), "Send records with either --json or --file"),
        (("store", f"--json={RECORD}", "--file", "x"), "--json and --file are both given"),
        (("store", "--file", "/nowhere/at/all.json"), "--file: cannot read"),
        (("store", "--file", "/"), "--file: cannot read"),
        (("store", "--file", "-"), "standard input: it is empty"),
        (("store", f"--json={RECORD}", "--observed-at", "some day"), "--observed-at: "),
        (("store", f"--json={RECORD}", "--observed-at", "2999-01-01T00:00:00Z"), "--observed-at: "),
        (("store", f"--json={RECORD}", "--valid-from", "soon"), "--valid-from: "),
        (("store", f"--json={RECORD}", "--priority", "high"), '--priority takes a whole number, got "high"'),
        (("store", f"--json={RECORD}", "--priority", "1_0"), '--priority takes a whole number, got "1_0"'),
        (("store", f"--json={RECORD}", "--run", "nonsense"), "--run: "),
        (("store", f"--json={RECORD}", "--source", "/nowhere"), "--source: cannot read"),
        (("store", f"--json={RECORD}", "--tenant", "a b"), "tenant: "),
        (("store", f"--json={RECORD}", "--as", ""), "agent: "),
        (("show",), "missing: REF"),
        (("show", "nonsense"), 'REF: nothing here is called "nonsense"'),
        (("show", ANA, "extra"), 'unexpected argument "extra"'),
        (("show", ANA, "--as-of", "once upon a time"), "--as-of: "),
        (("show", ANA, "--valid-at", "2026-13-01T00:00:00Z"), "--valid-at: "),
        (("show", ANA, "-o", "xml"), '-o/--output must be one of table, json, jsonl, csv, got "xml"'),
        (("shwo", ANA, "show"), 'unknown command "shwo". Did you mean `woodrat show`?'),
        (("entities", "find"), 'unknown command "find". Did you mean `woodrat entities search`?'),
        (("entities", "list", "--where", "city"), "--where/0: expected field=value"),
        (("entities", "list", "--limit", "0"), "--limit: "),
        (("entities", "list", "--cursor", "x"), "--cursor: "),
        (("entities", "search", "--query", "…"), "--query: there is no word"),
        (("entities", "search"), "missing: --query"),
        (("diff",), "nothing to compare with. Add either --from M or --against FILE."),
        (("diff", "--from", "0", "--against", "x"), "--from and --against are both given"),
        (("diff", "--against", "/nowhere/at/all.json"), "--against: cannot read"),
        (("diff", "--against", "-"), "standard input: it is empty"),
        (("diff", ANA, "--from", "0", "--entity-type", "contact"), "Name an entity or a type, not both."),
        (("diff", "--from", "0", "--entity-type", "Contact"), "is not a type"),
        (("log", "--follow", "--as-of", "1"), "--follow never ends, so it cannot be combined with --as-of 1"),
        (("entities", "list", "--all", "--limit", "5"), "--all cannot be combined with --limit or --cursor"),
        (("entities", "list", "--all", "--duplicates"), "--duplicates can only be combined with --entity-type"),
        (("diff", "--from", "0", "--to", "1", "--as-of", "2"), "name two different moments"),
        (("correct", ANA, "--set", "city=X"), "missing: --reason"),
        (("correct", ANA, "--reason", "x"), "nothing to correct"),
        (("correct", ANA, "--set", "city", "--reason", "x"), "--set: expected name=value"),
        (("correct", ANA, "--set", "=x", "--set", "y", "--reason", "x"), '--set: expected name=value, got "y" (text)'),
        (("correct", ANA, "--set", "city=a", "--set", "city=b", "--reason", "x"), "city is set twice"),
        (("correct", ANA, "--set", 'city={"a":1,"a":2}', "--reason", "x"), "--set city/a: the key"),
        (("correct", ANA, "--set", "$=x", "--reason", "x"), "reserved"),
        (("retract", "--reason", "x"), "missing: OBS"),
        (("retract", "nonsense", "--reason", "x"), "OBS"),
        (("relate", ANA, "Works At", ANA), "TYPE: "),
        (("related", ANA, "--depth", "0"), "--depth: "),
        (("merge", ANA, ANA), "is named twice"),
        (("tag", "a b"), "NAME: not a tag"),
        (("tag", "early", "2000-01-01T00:00:00Z"), "nothing was recorded by then"),
        (("log", "--after", "-5"), "--after: got -5"),
        (("log", "--limit", "0"), "--limit: got 0"),
        (("runs", "list", "--limit", "0"), "--limit: got 0"),
        (("diff", "--from", "once upon a time"), "--from: "),
        (("tag", "early", "once upon a time"), "M: "),
        (("recall", "x", "--threshold", "half"), '--threshold takes a number, got "half"'),
        (("correct", ANA, "--set", "city=X", "--reason", "x", "--if-version", "old"), "takes a whole number, known"),
        (("log", "--valid-at", "2026-01-01T00:00:00Z"), "--valid-at does not apply to the log"),
        (("timeline", "--since", "x"), "--since: "),
        (("prove-order", "--shuffles", "0"), "--shuffles: "),
        (("schemas", "check", "/nowhere"), "FILE: cannot read"),
        (("schemas", "register", "-"), "-: not JSON at line 1 column 1"),
        (("sources", "add", "/nowhere"), "FILE: cannot read"),
        (("completion", "powershell"), "shell must be one of bash, zsh, fish"),
        (("--db", "mysql://ann:secret@db.example/x", "show", ANA), "there is no engine for mysql://"),
        (("--db", "", "show", ANA), "db: expected a path or an address"),
        (("--db", "/", "show", ANA), "is a directory"),
        (("--db", "/nowhere/at/all.db", "store", f"--json={RECORD}"), "does not exist"),
    ],
)
def test_bad_input_is_refused_by_name(ana: Cli, words: tuple[str, ...], says: str) -> None:
    """A refusal exits with 2, names the thing and the value, says that nothing was done, and nothing was."""
    before = ana("log").out
    ran = ana(*words)
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert "secret" not in ran.err
    assert "Nothing was " in ran.err
    assert (
        json.loads(ana(*words, "-o", "json").err if "-o" not in words else '{"code": "refused"}')["code"] == "refused"
    )
    assert ana("log").out == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "contact/nobody"), "contact/nobody: not known"),
        (("show", "ent_" + "a" * 26), "There is no entity ent_"),
        (("show", ANA, "--as-of", "99"), "There is no position"),
        (("show", ANA, "--as-of", "9" * 5000), "There is no position"),
        (("show", ANA, "--as-of", "@nothing"), "There is no tag @nothing"),
        (("history", "contact/nobody"), "not known at position"),
        (("observations", "list", "contact/nobody"), "not known at position"),
        (("blame", f"{ANA}#nothing"), "there is no such field"),
        (("blame", "contact/nobody#city"), "not known at position"),
        (("retract", "obs_" + "a" * 26, "--reason", "x"), "there is no observation"),
        (("correct", "contact/nobody", "--set", "city=X", "--reason", "x"), "contact/nobody"),
        (("delete", "contact/nobody"), "contact/nobody"),
        (("relate", ANA, "knows", "contact/nobody"), "contact/nobody"),
        (("sources", "show", "src_x"), "There is no source src_x here. Nothing was changed. `sources list` lists them"),
        (("interpretations", "show", "int_x"), "Nothing was changed. `interpretations list` lists them"),
        (("interpretations", "diff", "int_x", "int_y"), "There is no interpretation int_x here"),
        (("schemas", "show", "nothing"), "no schema"),
        (("tag", "later", "99"), "There is no position"),
    ],
)
def test_what_is_not_there_is_not_found(ana: Cli, words: tuple[str, ...], says: str) -> None:
    """Asking for what is not there exits with 3 and says what to do."""
    ran = ana(*words)
    assert (ran.code, ran.out) == (3, ""), ran.err
    assert says in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("show", ANA),
        ("entities", "list"),
        ("entities", "search", "--query", "x"),
        ("observations", "list"),
        ("log",),
        ("fingerprint",),
        ("fingerprint", "--provenance"),
        ("rebuild",),
        ("verify",),
        ("prove-order",),
        ("schemas", "list"),
        ("sources", "list"),
        ("correct", ANA, "--set", "city=X", "--reason", "x"),
        ("delete", ANA),
        ("tag", "x"),
        ("migrate",),
        ("show", ANA, "--db", "/nowhere/at/all.db"),
    ],
)
def test_reading_does_not_make_a_database(cli: Cli, db: Path, words: tuple[str, ...]) -> None:
    """On a database that is not there yet, reads and changes say so and create nothing."""
    ran = cli(*words)
    assert ran.code == 3
    assert "There is no database at" in ran.err
    assert "`woodrat store`" in ran.err
    assert list(db.parent.iterdir()) == []


def test_one_bad_line_refuses_the_whole_file(cli: Cli, db: Path, tmp_path: Path) -> None:
    """Every bad line of a JSONL file is named with its own number; nothing of the file is stored."""
    file = tmp_path / "records.jsonl"
    file.write_text(f'{RECORD}\n{{"entity_type":}}\n\n{RECORD}\n{{"a":1,"a":2}}\n', "utf-8")
    ran = cli("store", "--file", str(file))
    assert ran.code == 2
    assert f"{file}: not JSON at line 2 column 16" in ran.err
    assert f"{file} line 5/a: the key" in ran.err
    assert not db.exists()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xef\xbb\xbf[]", b"[" * 100])
def test_bytes_that_are_no_json_are_refused(cli: Cli, data: bytes) -> None:
    """Wrong encodings, byte order marks and bottomless brackets are refused with the reason."""
    ran = cli("store", "--file", "-", stdin=data)
    assert ran.code == 2
    assert ran.err.startswith("standard input")


def test_a_file_of_another_program_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    """A text file and another program's database are refused and not changed."""
    text = tmp_path / "notes.txt"
    text.write_bytes(b"These are my notes. " * 100)
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    for file in (text, other):
        before = file.read_bytes()
        for words in (("show", ANA), ("store", f"--json={RECORD}"), ("doctor",)):
            ran = cli("--db", str(file), *words)
            assert ran.code == 2
            assert str(file) in ran.err + ran.out
        assert file.read_bytes() == before


@pytest.mark.parametrize("number", [8, 99])
def test_another_layout_asks_for_the_version_that_wrote_it(ana: Cli, db: Path, number: int) -> None:
    """A database that another version wrote is refused, by every verb, with what to do."""
    connection = sqlite3.connect(db)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    for words in (("show", ANA), ("migrate",), ("store", f"--json={RECORD}")):
        ran = ana(*words)
        assert ran.code == 2
        assert f"has layout {number}" in ran.err
        assert "Use the version that wrote it, or run `woodrat export log`" in ran.err
        assert "Nothing was changed." in ran.err
    assert f"layout {number}" in json.loads(ana("doctor").out)["problem"]


def test_a_damaged_file_is_corrupt(ana: Cli, db: Path) -> None:
    """Pages that were overwritten end in exit code 5 and the advice to stop."""
    with db.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 20)
    ran = ana("show", ANA)
    assert ran.code == 5
    assert "Stop writing" in ran.err


def test_what_the_system_refuses_is_unavailable(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the operating system exits with 4, without a traceback."""
    (tmp_path / "file").touch()
    monkeypatch.delenv("WOODRAT_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    ran = cli("store", f"--json={RECORD}")
    assert ran.code == 4
    assert "Not a directory" in ran.err
    assert "Traceback" not in ran.err


def test_the_default_database_is_made_on_the_first_write(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --db and WOODRAT_DB the database is in the folder for user data, made with its folder when needed."""
    monkeypatch.setenv("WOODRAT_DB", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert cli("show", ANA).code == 3
    assert not (tmp_path / "data").exists()
    assert cli("store", f"--json={RECORD}").code == 0
    assert (tmp_path / "data" / "woodrat" / "woodrat.db").exists()
    assert cli("doctor").json["db_from"] == "default"


def test_a_condition_that_no_longer_holds_is_outdated(ana: Cli) -> None:
    """`--if-version` lets exactly one of two writers through; the other exits with 6."""
    version = str(ana("show", ANA).json["version"])
    words = ("correct", ANA, "--set", "city=Girona", "--reason", "x", "--if-version", version)
    assert ana(*words).code == 0
    assert ana(*words).code == 6
    assert ana("store", f"--json={BARCELONA}", "--if-version", version).code == 6
    assert ana("store", f"--json={BARCELONA}", "--if-version", "new").code == 6
    assert ana("store", f"--json={BARCELONA}", "--if-version", "known").code == 0
    assert ana("store", f"--json={BARCELONA}", "--if-version", "soon").code == 2


def test_no_verb_prints_the_help_and_is_refused(cli: Cli) -> None:
    """`woodrat` alone, or a group alone, prints its verbs on standard error and exits with 2."""
    for words, verb in (((), "store"), (("entities",), "search"), (("schemas",), "register")):
        ran = cli(*words)
        assert (ran.code, ran.out) == (2, "")
        assert verb in ran.err


def test_stored_text_cannot_drive_a_terminal(cli: Cli) -> None:
    """Control characters in values are printed as escapes in tables; JSON keeps them as JSON writes them."""
    nasty = "\x1b]0;owned\x07\u202e"
    cli("store", f"--json={json.dumps({'entity_type': 'thing', 'name': 'x', 'note': nasty})}")
    for words in (("show", "thing/x"), ("blame", "thing/x"), ("log",), ("timeline",), ("observations", "list")):
        text = cli(*words, "-o", "table").out
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
    assert cli("show", "thing/x").json["fields"]["note"] == nasty


def test_a_closed_standard_output_does_no_harm(ana: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is nothing to print to, the command still does its work."""
    monkeypatch.setattr("sys.stdout", None)
    assert main(["store", f"--json={RECORD}"]) == 0

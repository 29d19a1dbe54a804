"""Export, import, sync, copy and backup as they are typed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from tests.commands import Cli

import woodrat
from woodrat.cli.main import main


def fill(cli: Cli, *names: str) -> None:
    """Store contacts."""
    for name in names:
        assert cli("store", "--json", json.dumps({"entity_type": "contact", "name": name})).code == 0


def test_a_log_is_exported_and_imported(cli: Cli, tmp_path: Path) -> None:
    """An import into a new database gives the same fingerprint and the same export, and again changes nothing."""
    fill(cli, "Ana", "Bob")
    out, clone = str(tmp_path / "log.jsonl"), str(tmp_path / "clone.db")
    wrote = cli("export", "log", "--out", out).json
    found = cli("import", "log", out, "--db", clone).json
    assert (found["cloned"], found["root"]) == (wrote["entries"], wrote["root"])
    assert cli("fingerprint", "--db", clone).json["fingerprint"] == cli("fingerprint").json["fingerprint"]
    assert cli("export", "log", "--db", clone).out == Path(out).read_text("utf-8")
    again = cli("import", "log", out, "--db", clone).json
    assert not again["changed"]
    assert "known already" in cli("import", "log", out, "--db", clone, "-o", "table").out
    fill(cli, "Cyd")
    assert cli("export", "log", "--out", out).code == 2
    assert cli("export", "log", "--out", out, "--resume").json["entries"] == 1
    news = cli("export", "log", "--after", str(wrote["through"]))
    assert news.err.startswith("Wrote 1 entries, through position")
    assert cli("import", "log", "-", "--db", clone, stdin=news.out.encode()).json["cloned"] == 1
    assert cli("import", "log", out, "--db", clone).json["known"] == wrote["entries"] + 1


def test_two_databases_are_synced(cli: Cli, tmp_path: Path) -> None:
    """Both hold the same afterwards, and one direction can be asked for alone."""
    fill(cli, "Ana")
    other = str(tmp_path / "other.db")
    cli("store", "--db", other, "--json", '{"entity_type":"contact","name":"Bob"}')
    assert cli("sync", other, "--pull").json["pushed"] is None
    assert cli("sync", other, "--push").json["pulled"] is None
    found = cli("sync", other).json
    assert found["same"]
    assert not found["pulled"]["changed"]
    assert "Both hold the same state." in cli("sync", other, "-o", "table").out
    for words, code, said in (
        (("sync", "https://example.com?key=1"), 2, "Send the key with"),
        (("sync", other, "--key", "wrat_1"), 2, "only a server accepts a key"),
        (("sync", str(tmp_path / "none.db")), 3, "There is no file"),
        (("sync", str(tmp_path / "woodrat.db")), 2, "this ledger itself"),
        (("import", "log", other), 2, "is a database"),
    ):
        ran = cli(*words)
        assert (ran.code, said in ran.err) == (code, True), ran.err


def test_a_backup_is_written_and_restored(cli: Cli, tmp_path: Path) -> None:
    """`backup` and `copy` are told in tables and JSON, replace nothing, and restore any moment."""
    fill(cli, "Ana")
    cli("tag", "then")
    then = cli("fingerprint", "--as-of", "@then").json["fingerprint"]
    fill(cli, "Bob")
    backup, restored = str(tmp_path / "backup.db"), str(tmp_path / "restored.db")
    assert "1 tenants" in cli("backup", "create", backup, "-o", "table").out
    assert cli("backup", "create", backup).code == 2
    assert cli("backup", "create", backup, "--force").json["tenants"]["default"]["size"] == 4
    found = cli("copy", "--from", backup, "--to", restored, "--through", "@then").json
    assert found["fingerprint"] == then == cli("fingerprint", "--db", restored).json["fingerprint"]
    longer = cli("copy", "--from", backup, "--to", restored).json  # what is there is the beginning of it
    assert longer["fingerprint"] == cli("fingerprint").json["fingerprint"]
    assert "Copied 4 entries" in cli("copy", "--from", backup, "--to", str(tmp_path / "c.db"), "-o", "table").out


def test_a_damaged_export_ends_in_corrupt(cli: Cli, tmp_path: Path) -> None:
    """A line whose body was changed exits with 5 and names the line."""
    fill(cli, "Ana")
    out = tmp_path / "log.jsonl"
    cli("export", "log", "--out", str(out))
    out.write_text(out.read_text("utf-8").replace('"name":"Ana"', '"name":"Eve"'), "utf-8")
    ran = cli("import", "log", str(out), "--db", str(tmp_path / "clone.db"))
    assert ran.code == 5
    assert "line 2" in ran.err


def test_lines_reach_a_pipe_as_bytes(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the encoding of standard output, an export is UTF-8."""
    with woodrat.open(db) as ledger:
        ledger.store({"entity_type": "contact", "name": "Ürgell"})
        whole = io.BytesIO()
        ledger.log.export(whole)
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding="ascii"))
    assert main(["export", "log"]) == 0
    assert held.getvalue() == whole.getvalue()


def test_a_backup_is_verified_and_restored(cli: Cli, tmp_path: Path) -> None:
    """`backup verify` checks every tenant of a backup; `backup restore` makes a new file of all of them, or nothing."""
    backup, restored = str(tmp_path / "b.db"), tmp_path / "r.db"
    for tenant in ("default", "lending"):
        assert cli("store", '--json={"entity_type":"thing","name":"x"}', "--tenant", tenant).code == 0
    assert cli("backup", "create", backup).code == 0
    checked = cli("backup", "verify", backup, "--deep")
    assert (checked.code, set(checked.json["tenants"])) == (0, {"default", "lending"})
    assert "lending: sound, " in cli("backup", "verify", backup, "-o", "table").out
    made = cli("backup", "restore", backup, "--db", str(restored))
    assert set(made.json["tenants"]) == {"default", "lending"}
    for tenant in ("default", "lending"):
        words = ("fingerprint", "--tenant", tenant)
        assert cli(*words, "--db", str(restored)).json == cli(*words).json
    again = cli("backup", "restore", backup, "--db", str(restored))
    assert (again.code, "exists already" in again.err, "Nothing was restored." in again.err) == (2, True, True)
    assert cli("backup", "restore", "/nowhere.db", "--db", str(tmp_path / "n.db")).code == 3
    assert sorted(path.name for path in tmp_path.iterdir() if "restoring" in path.name) == []


def test_a_damaged_backup_is_found(cli: Cli, tmp_path: Path) -> None:
    """Bytes that were changed in a backup end in exit code 5."""
    import apsw

    backup = str(tmp_path / "b.db")
    cli("store", '--json={"entity_type":"thing","name":"x"}')
    cli("backup", "create", backup)
    raw = apsw.Connection(backup)
    raw.execute("DROP TRIGGER body_no_update; UPDATE body SET body = x'7b7d'")
    raw.close()
    ran = cli("backup", "verify", backup)
    assert (ran.code, cli("backup", "verify", "/nowhere.db").code) == (5, 3)

"""`woodrat open`: a ledger file in the inspector, for this machine alone, until Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli

import woodrat
from woodrat.cli.inspect import has_screen


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agents.db"
    with woodrat.open(path, tenant="lending", agent="crm") as ledger:
        ledger.store({"entity_type": "contact", "name": "Ana", "city": "Olot"})
    return path


def test_a_file_is_served_until_interrupted(file: Path) -> None:
    """The address is printed, the file's only tenant is shown there, and Ctrl-C ends it well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WOODRAT_")}
    environment["WOODRAT_DB"] = str(file.with_name("another.db"))
    command = [sys.executable, "-m", "woodrat", "open", str(file), "--no-browser"]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"(.+) is open at (http://127\.0\.0\.1:\d+/) \(tenant lending\)\. Ctrl-C stops\.\n", line)
        assert found is not None, line
        assert found[1] == str(file)
        session = json.load(_get(found[2] + "session"))
        shown = json.load(_get(found[2] + "v1/entities/contact/Ana"))
        assert _get(found[2]).headers["content-type"] == "text/html; charset=utf-8"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert (session["tenant"], session["keys_required"]) == ("lending", False)
    assert shown["fields"]["city"] == "Olot"
    assert not file.with_name("another.db").exists()


def _get(url: str) -> Any:
    """Return an answer, as soon as the server takes calls."""
    for attempt in range(300):
        try:
            return urllib.request.urlopen(url, timeout=30)
        except OSError:
            if attempt == 299:
                raise
            threading.Event().wait(0.1)
    raise AssertionError("unreachable")


def test_what_is_no_ledger_is_refused(cli: Cli, tmp_path: Path, file: Path) -> None:
    """A file that is missing, empty, of another program, or no file is said so, and nothing is created."""
    (tmp_path / "text.db").write_text("not a ledger")
    (tmp_path / "empty.db").touch()
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE other (a)")
    for name, code, words in (
        ("missing.db", 3, "There is no file"),
        ("text.db", 2, "is not a SQLite database"),
        ("empty.db", 2, "is empty"),
        ("other.db", 2, "a database of another program"),
        (".", 2, "is a directory"),
    ):
        ran = cli("open", str(tmp_path / name), "--no-browser")
        assert (ran.code, words in ran.err) == (code, True), ran.err
    assert "is not a file" in cli("open", "https://ledger.example", "--no-browser").err
    assert not (tmp_path / "missing.db").exists()
    assert not (tmp_path / "empty.db").stat().st_size
    both = cli("open", str(file), "--port", "70000", "--db", str(file))
    assert both.code == 2
    assert "--port: got 70000" in both.err
    assert "--db: got " in both.err


def test_several_tenants_have_to_be_told_apart(cli: Cli, file: Path) -> None:
    """Where a file has several tenants and none is the default one, the user names the one to show."""
    with woodrat.open(file, tenant="sales") as ledger:
        ledger.store({"entity_type": "contact", "name": "Bob"})
    ran = cli("open", str(file), "--no-browser")
    assert ran.code == 2
    assert "lending, sales" in ran.err


def test_a_browser_is_started_where_it_has_a_window() -> None:
    """Without a screen no browser is started, which might run in the terminal and take it over."""
    assert not has_screen("linux", {})
    assert has_screen("linux", {"DISPLAY": ":0"})
    assert has_screen("linux", {"BROWSER": "firefox"})
    assert has_screen("darwin", {})

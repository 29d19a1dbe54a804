"""`conflicts --arrival`, what show and reports say of it, and `blame --excerpts`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import Cli

ANA = "contact/Ana"
BY_ARRIVAL = "arrived later; no observation time was given"


def store(cli: Cli, city: str, *more: str) -> str:
    """Store where Ana lives; return what is printed for people."""
    record = json.dumps([{"entity_type": "contact", "name": "Ana", "city": city}])
    ran = cli("store", f"--json={record}", *more, "-o", "table")
    assert ran.code == 0, ran.err
    return ran.out


def test_people_are_told(cli: Cli) -> None:
    """The report, the snapshot, blame and the list say in plain words that only arrival decided."""
    assert "arrival" not in store(cli, "Vic")
    assert f"contact/Ana#city is decided by arrival alone: a value {BY_ARRIVAL}" in store(cli, "Olot")
    shown = cli("show", ANA, "-o", "table").out
    assert f"city: {BY_ARRIVAL}" in shown
    assert f"name: {BY_ARRIVAL}" not in shown
    assert BY_ARRIVAL in cli("blame", f"{ANA}#city", "-o", "table").out
    listed = cli("conflicts", "--arrival", "-o", "table").out
    assert "contact/Ana#city" in listed
    assert "Olot" in listed
    assert BY_ARRIVAL in listed
    assert "(arrival)" in listed
    assert cli("conflicts", "-o", "table").out == "No agents disagree.\n"
    (found,) = cli("conflicts", "--arrival").json["items"]
    assert (found["entity"], found["field"], found["by_arrival"]) == (ANA, "city", True)
    assert cli("conflicts", "--arrival", "--entity-type", "task").json["items"] == []
    assert cli("show", ANA).json["blame"]["city"]["by_arrival"] is True


def test_a_stated_time_is_not_arrival(cli: Cli) -> None:
    """With stated times nothing is listed."""
    store(cli, "Vic", "--observed-at", "2020-01-05T09:00:00Z")
    assert "arrival" not in store(cli, "Olot", "--observed-at", "2020-01-06T09:00:00Z")
    assert cli("conflicts", "--arrival", "-o", "table").out == "No field was decided by arrival alone.\n"


def test_the_words_beside_a_value(cli: Cli, tmp_path: Path) -> None:
    """Blame names the place in the source, and with `--excerpts` shows the words."""
    note = tmp_path / "note.txt"
    note.write_text("Ana moved.\nShe lives in Olot.\n")
    record = {"entity_type": "contact", "name": "Ana", "city": "Olot", "$": {"locator": {"line": 2}}}
    ran = cli("store", f"--json={json.dumps([record])}", "--source", str(note))
    assert ran.code == 0, ran.err
    wrong = {**record, "$": {"locator": {"line": 3}}}
    refused = cli("store", f"--json={json.dumps([wrong])}", "--source", str(note))
    assert (refused.code, "/0/$/locator/line: the source has 2 lines" in refused.err) == (2, True)
    plain = cli("blame", f"{ANA}#city", "-o", "table").out
    assert "line 2" in plain
    assert "She lives" not in plain
    assert "| She lives in Olot." in cli("blame", f"{ANA}#city", "--excerpts", "-o", "table").out
    (claim,) = cli("blame", f"{ANA}#city", "--excerpts").json["claims"]["city"]
    assert (claim["locator"], claim["excerpt"]) == ({"line": 2}, "She lives in Olot.")
    assert "read at line 2" in cli("observations", "list", ANA, "-o", "table").out
    assert "She lives in Olot." in cli("lineage", f"{ANA}#city", "-o", "table").out

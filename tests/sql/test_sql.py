"""SQL: one SELECT over documented tables of one tenant, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import Cli

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.api.remote import RemoteLedger
from woodrat.api.verb import verbs_of
from woodrat.errors import Refused
from woodrat.sql import reader

PAGE = Path(__file__).parents[2] / "docs/reference/sql.md"


def tell(ledger: Ledger) -> str:
    """Store two contacts, correct one, delete a third, record a run that decides; return the run."""
    contacts = [("Ana", "Barcelona"), ("Bo", "Girona"), ("Cy", "Lyon")]
    ledger.store([{"entity_type": "contact", "name": name, "city": city, "age": 40} for name, city in contacts])
    ledger.correct("contact/Ana", {"city": "Sitges"}, reason="moved")
    ledger.delete("contact/Cy")
    with ledger.run("Visit Ana?", subject="contact/Ana", conversation="trips") as run:
        ana = run.show("contact/Ana")
        woodrat.decide("visit", ana, [woodrat.Rule("yes", {"city": {"eq": "Sitges"}}, label="near")], default="no")
        run.answer("yes")
    return run.id


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger on each engine, beside another tenant with data of its own."""
    where = {"memory": ":memory:", "sqlite": str(tmp_path / "agents.db")}.get(request.param)
    where = where or request.getfixturevalue("postgres_url")
    with woodrat.open(where, tenant="lending", agent="crm") as opened:
        if request.param != "memory":
            with woodrat.open(where, tenant="other", agent="spy") as other:
                other.store([{"entity_type": "contact", "name": "Ana", "city": "SECRET"}])
        yield opened


def test_every_table_answers_at_one_position(ledger: Ledger) -> None:
    """All five tables show this tenant's data as of one position, alike on every engine."""
    run = tell(ledger)
    cities = ledger.sql("SELECT key, fields ->> 'city' AS city FROM entities WHERE type = 'contact' ORDER BY key")
    assert cities.columns == ("key", "city")
    assert cities.rows == (("Ana", "Sitges"), ("Bo", "Girona"))
    assert [row["city"] for row in cities] == ["Sitges", "Girona"]
    assert (cities.truncated, cities.position) == (False, ledger.position)
    asked = "SELECT value, agent, corrected, conflict FROM field_values WHERE entity = 'contact/Ana' AND field = 'city'"
    assert ledger.sql(asked).rows == (("Sitges", "crm", 1, 0),)
    ops = "SELECT op, count(*) FROM observations WHERE type = 'contact' GROUP BY op ORDER BY op"
    assert ledger.sql(ops).rows == (("assert", 3), ("correct", 1), ("delete", 1))
    assert ledger.sql("SELECT id, answer, decisions FROM runs WHERE conversation = 'trips'").rows == ((run, "yes", 1),)
    joined = "SELECT stage, chosen, evidence ->> 'city' FROM decisions JOIN runs ON runs.id = decisions.run"
    assert ledger.sql(joined).rows == (("visit", "yes", "Sitges"),)
    assert ledger.at(3).sql("SELECT fields ->> 'city' FROM entities WHERE entity = 'contact/Ana'").rows == (
        ("Barcelona",),
    )
    twice = "SELECT count(*) FROM observations AS a, decisions, observations AS b"
    assert ledger.sql(twice).rows == ((len(ledger.observations().items) ** 2,),)
    everything = [ledger.sql(f"SELECT * FROM {table}").rows for table in reader.TABLES]
    assert all(everything)
    assert "SECRET" not in json.dumps(everything)


@pytest.mark.parametrize("table", reader.TABLES)
def test_a_narrowed_read_returns_what_a_whole_one_does(table: str) -> None:
    """Comparing a keyed column with `=` returns exactly the rows that a full read has of that value."""
    with woodrat.open(":memory:", agent="crm") as ledger:
        tell(ledger)
        ledger.merge("contact/Ana", "contact/Bo")
        columns = reader.TABLES[table].columns
        for name in reader.TABLES[table].keyed:
            rows = ledger.sql(f"SELECT * FROM {table}").rows
            for value in {row[columns.index(name)] for row in rows} | {"nobody", "contact/nobody", "", 7, None}:
                narrowed = ledger.sql(f"SELECT * FROM {table} WHERE {name} = ?", [value]).rows  # type: ignore[list-item]
                assert narrowed == tuple(row for row in rows if value is not None and row[columns.index(name)] == value)


REFUSED = [
    ("SELECT * FROM entry", "no such table: entry"),
    ("SELECT * FROM main.body", "no such table: main.body"),
    ("DELETE FROM entities", "does more than read"),
    ("INSERT INTO runs (id) VALUES (1)", "does more than read"),
    ("CREATE TABLE mine (a)", "does more than read"),
    ("CREATE TEMP VIEW mine AS SELECT 1", "does more than read"),
    ("ATTACH 'agents.db' AS raw", "does more than read"),
    ("PRAGMA writable_schema = 1", "does more than read"),
    ("VACUUM INTO 'copy.db'", "does more than read"),
    ("SELECT load_extension('evil')", "does more than read"),
    ("SELECT * FROM pragma_database_list", "does more than read"),
    ("SELECT 1; SELECT 2", "more than one statement"),
    ("SELECT length(zeroblob(20000000))", "more than 10,000,000 bytes"),
    ("SELEC 1", "syntax error"),
    ("SELECT ?", "bindings"),
    ("", "expected a SELECT statement"),
]
"""Queries, and why each is refused."""


def test_a_query_that_is_not_one_plain_select_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is no single SELECT over the tables is refused with the reason, and changes nothing."""
    monkeypatch.chdir(tmp_path)
    with woodrat.open("agents.db", agent="crm") as ledger:
        tell(ledger)
        before = ledger.fingerprint(), {path.name for path in tmp_path.iterdir()}
        for query, problem in REFUSED:
            with pytest.raises(Refused, match=re.escape(problem)):
                ledger.sql(query)
        assert (ledger.fingerprint(), {path.name for path in tmp_path.iterdir()}) == before


def test_rows_and_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query returns at most `limit` rows and says so; one that takes too long is stopped, in SQL or in a table."""
    with woodrat.open(":memory:", agent="crm") as ledger:
        tell(ledger)
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        found = ledger.sql(endless + "SELECT x FROM n", limit=3)
        assert (found.rows, found.truncated) == (((1,), (2,), (3,)), True)
        for limit in (0, 100_001, True, "5"):
            with pytest.raises(Refused, match="expected a number of rows"):
                ledger.sql("SELECT 1", limit=limit)  # type: ignore[arg-type]
        ticks = iter(range(0, 10**9, 7))
        monkeypatch.setattr(reader, "monotonic", lambda: float(next(ticks)))
        for query in (endless + "SELECT max(x) FROM n", "SELECT count(*) FROM observations"):
            with pytest.raises(Refused, match="longer than 30 seconds"):
                ledger.sql(query)


def test_the_page_lists_every_column() -> None:
    """The reference names the tables and columns that there are, in their order."""
    text = PAGE.read_text("utf-8")
    parts = re.findall(r"\*\*(\w+)\*\*:.*?Columns: (.*?)\n\n", text, re.DOTALL)
    listed = {
        name: tuple(re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", columns, flags=re.DOTALL)))
        for name, columns in parts
    }
    assert listed == {name: table.columns for name, table in reader.TABLES.items()}


def test_the_command_prints_rows(ana: Cli) -> None:
    """`woodrat sql` prints a table for people, and JSON, JSON lines and CSV for programs."""
    query = "SELECT key, json FROM field_values WHERE field = 'city'"
    assert ana("sql", query, "-o", "json").json["columns"] == ["key", "json"]
    assert ana("sql", query, "-o", "csv").out.splitlines()[0] == "key,json"
    assert json.loads(ana("sql", query, "-o", "jsonl").out.splitlines()[0])["key"] == "Ana Rivera"
    assert "Ana Rivera" in ana("sql", query, "-o", "table").out
    refused = ana("sql", "SELECT * FROM body")
    assert (refused.code, refused.out) == (2, "")
    assert "The tables are entities, field_values, observations, runs, decisions." in refused.err


def test_sql_is_not_offered_over_http() -> None:
    """A ledger behind a server refuses SQL and says where it can be run; no route has it."""
    assert "/v1/sql" not in {verb.declaration.path for verb in verbs_of(Ledger)}
    with pytest.raises(Refused, match="not available through a server"):
        RemoteLedger.sql(object.__new__(RemoteLedger), "SELECT 1")

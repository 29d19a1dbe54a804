"""The command line on a PostgreSQL server, from an empty database to a proof."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest
from tests import postgres
from tests.commands import Cli

from woodrat.engines.postgres.connection import LAYOUT


@pytest.fixture
def empty(postgres_server: str) -> Iterator[str]:
    """The address of a database without anything in it."""
    name = "woodrat_cli_story"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        yield postgres.of(postgres_server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_story_on_a_server(cli: Cli, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database is set up once; then verbs do there what they do on a file, and the layout is said once more."""
    monkeypatch.setenv("WOODRAT_DB", empty)
    refused = cli("show", "contact/Ana Rivera")
    assert refused.code == 2
    assert "woodrat migrate --db" in refused.err
    migrated = cli("migrate").json
    assert (migrated["before"], migrated["layout"]) == (0, LAYOUT)
    assert migrated["pgvector"].startswith(("used", "not used: "))
    again = cli("migrate", "-o", "table").out
    assert f"already has layout {LAYOUT}." in again
    assert f"pgvector: {migrated['pgvector']}." in again

    def store(record: object, *more: str) -> int:
        return int(cli("store", f"--json={json.dumps(record)}", *more).json["position"])

    ana = {"entity_type": "contact", "name": "Ana Rivera"}
    assert store([{**ana, "city": "Barcelona"}], "--idempotency-key", "1") == 1
    assert store([{**ana, "city": "Barcelona"}], "--idempotency-key", "1") == 1
    assert store([{**ana, "city": "San Francisco"}]) == 2
    assert cli("show", "contact/Ana Rivera").json["fields"]["city"] == "San Francisco"
    assert cli("show", "contact/Ana Rivera", "--as-of", "1").json["fields"]["city"] == "Barcelona"
    assert cli("entities", "search", "--query", "francisco").json["entity"] == "contact/Ana Rivera"
    assert store([{**ana, "city": "Girona"}], "--tenant", "other") == 1
    assert cli("verify").json["entries"] == 3
    doctor = cli("doctor").json
    assert (doctor["engine"], doctor["problem"]) == ("postgres", None)
    assert "woodrat_cli_story" in doctor["db"]
    settings = doctor["settings"]
    assert (settings["role"], settings["login"]) == ("woodrat_reader", "postgres")
    assert (settings["synchronous_commit"], settings["fsync"]) == ("on", "off")
    assert (settings["statement_timeout"], settings["lock_timeout"]) == ("5min", "10s")
    assert (settings["layout"], settings["row_level_security"]) == (LAYOUT, "forced on every table")
    assert (settings["pgvector"] == "not used") is (migrated["pgvector"] != "used")
    assert settings["pool"].endswith("32 at most")
    assert settings["position"] == 2
    assert {index["name"]: index["lacking"] for index in doctor["indexes"]}["state"] == 0

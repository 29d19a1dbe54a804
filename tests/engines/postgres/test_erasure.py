"""Erasure on PostgreSQL: nothing is left in any row, nor in any file of the database, and who may do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from psycopg import errors
from tests import postgres
from tests.faults.test_erasure import PERSON, THEIRS, TOKENS, hits, tell

import woodrat
from woodrat import Ledger
from woodrat.engines.postgres.connection import ERASER
from woodrat.engines.postgres.migration import migrate
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock


@pytest.fixture
def ledger(postgres_database: Callable[[], str], tmp_path: Path) -> Iterator[Ledger]:
    make_keys(tmp_path / "keys", FixedClock())
    url = postgres_database()
    with woodrat.open(url, keys=tmp_path / "keys", agent="crm", clock=FixedClock()) as opened:
        yield opened


def url_of(ledger: Ledger) -> str:
    url: str = ledger.context.engine.url  # type: ignore[attr-defined]
    return url


def rows_holding(url: str, text: str) -> list[str]:
    """Return the tables with a row that holds a text in any column, bytes included; the catalogue's statistics too."""
    found = []
    with psycopg.connect(url) as connection:
        connection.execute("ANALYZE")
        tables = connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE relkind IN ('r', 'm') AND (nspname = 'woodrat' OR relname = 'pg_statistic')"
        ).fetchall()
        for (table,) in tables:
            asked = f"SELECT 1 FROM {table} AS r WHERE r::text LIKE %s OR r::text LIKE %s LIMIT 1"
            if connection.execute(asked, (f"%{text}%", f"%{text.encode().hex()}%")).fetchone():
                found.append(table)
        connection.rollback()
    return found


def files_of(url: str) -> Path:
    """Return the folder of a database, all of it on the disk."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        assert row is not None
    return Path(parse_qs(urlsplit(url).query)["host"][0]) / "data" / "base" / str(row[0])


def test_nothing_is_left_in_rows_and_files(ledger: Ledger) -> None:
    """All that a person's values stood in is searched, before the erasure too, so that the search can fail."""
    tell(ledger)
    url, words = url_of(ledger), ("Zweigmann", "Quittenallee", "Zahnarzthelferin")
    for word in words:
        assert {"woodrat.body", "woodrat.entity"} <= set(rows_holding(url, word))
    assert "woodrat.index_row" in rows_holding(url, "zweigmann")
    folder = files_of(url)
    if folder.exists():  # not where another machine's server is used
        assert {text for text in THEIRS if "\\" not in text} | set(TOKENS) <= set().union(*hits(folder).values())
    certificate = ledger.erase(PERSON, reason="a request under article 17")
    assert (certificate.complete, certificate.hits, certificate.scanned) == (True, {}, ())
    for word in (*words, *map(str.lower, words)):
        assert rows_holding(url, word) == []
    assert not files_of(url).exists() or hits(files_of(url)) == {}
    assert ledger.verify(deep=True).sound
    with psycopg.connect(url) as connection:
        shown = connection.execute("SELECT key, fields->>'city' FROM woodrat.state WHERE type = 'contact'").fetchall()
    assert shown == [("bob@example.com", "Dresden")]


STEPS = Path(__file__).parents[3] / "docs" / "reference" / "postgresql.md"
"""The page with the statements to run after an erasure."""


def run(url: str, *statements: str) -> None:
    """Run statements as a superuser, each by itself."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_the_documented_steps_leave_nothing_in_the_data_directory(tmp_path: Path) -> None:
    """Values stay in recycled segments of the write-ahead log, until the statements of the page were run."""
    code = STEPS.read_text("utf-8").partition("```sql\n")[2].partition("```")[0]
    block = code.index("DO $$")
    end = code.index("END $$;") + len("END $$;")
    before, after = (re.findall(r"[^;]+;", part) for part in (code[:block], code[end:]))
    make_keys(tmp_path / "keys", FixedClock())
    with postgres.Own(full_page_writes="on", min_wal_size="128MB") as own:
        migrate(own.url)
        with woodrat.open(own.url, keys=tmp_path / "keys", agent="crm", clock=FixedClock()) as ledger:
            tell(ledger)
            for number in range(3):
                run(own.url, f"CREATE TABLE filler_{number} ()", "SELECT pg_switch_wal()")
            run(own.url, "CHECKPOINT")
            assert ledger.erase(PERSON, reason="a request under article 17").complete
        run(own.url, "SELECT pg_switch_wal()", "CHECKPOINT")
        left = hits(own.data)
        assert left, "a checkpoint recycles segments"
        assert all((own.data / "pg_wal" / name).is_file() for name in left)
        run(own.url, *before, code[block:end], *after)
        assert hits(own.data) == {}
        with psycopg.connect(own.url) as connection:
            assert connection.execute("SHOW wal_recycle").fetchone() == ("on",)


def test_the_certificate_says_what_the_server_still_holds(ledger: Ledger) -> None:
    """Write-ahead log, archives, backups and replicas are named, with what to do, in a dry run too."""
    ledger.store({"entity_type": "contact", "email": "eve@example.com"})
    for dry_run in (True, False):
        stays = ledger.erase("contact/eve@example.com", reason="asked", dry_run=dry_run).stays
        told = "\n".join(f"{one.what}: {one.why}" for one in stays)
        for word in (
            "write-ahead log up to",
            "wal_recycle to off",
            "docs/reference/postgresql.md",
            "archive_mode is off",
            "base backups",
            "replicas",
        ):
            assert word in told
        assert "the server's own log" not in told


def test_the_eraser_only_empties_bodies(ledger: Ledger) -> None:
    """The role takes bodies, nonces and receipts away, of its tenant, and can neither add nor read anything else."""
    ledger.store({"entity_type": "contact", "email": "eve@example.com"})
    with psycopg.connect(url_of(ledger), autocommit=True) as connection:
        connection.execute(f"SET ROLE {ERASER}")
        connection.execute("SET search_path = woodrat")
        assert connection.execute("UPDATE body SET body = NULL, nonce = NULL").rowcount == 0, "there is no tenant"
        for statement in (
            "SELECT 1 FROM entry",
            "DELETE FROM body",
            "UPDATE body SET id = 7",
            "INSERT INTO receipt VALUES ('default', 'a', 'k', '', '', '')",
            "DELETE FROM entry",
            "UPDATE head SET size = 0",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement)

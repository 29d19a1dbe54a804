"""The layout of a PostgreSQL database: what distributed PostgreSQL asks of it, who may do what, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import errors
from tests import postgres

from woodrat import Refused, Unavailable
from woodrat.canon.ids import TenantId
from woodrat.engines.postgres import vectors
from woodrat.engines.postgres.connection import LAYOUT, ROLES, WRITER
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.migration import migrate
from woodrat.testing.ledgers import ledger_on, told_on

LOG = ("entry", "body", "origin", "clone", "log", "receipt", "head")
"""Tables that nothing is derived from."""


@pytest.fixture
def empty(postgres_server: str) -> Iterator[Callable[[], str]]:
    """What makes databases without anything in them."""
    names: list[str] = []
    with psycopg.connect(postgres_server, autocommit=True) as connection:

        def make() -> str:
            names.append(f"woodrat_empty_{connection.info.backend_pid}_{len(names)}")
            connection.execute(f"CREATE DATABASE {names[-1]} TEMPLATE template0")
            return postgres.of(postgres_server, names[-1])

        yield make
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def tables(url: str) -> list[str]:
    found = rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'woodrat' AND tablename <> 'layout'")
    return sorted(name for (name,) in found)


def catalogue(url: str) -> list[tuple[Any, ...]]:
    """Return all that makes up the layout: columns, indexes, policies, privileges and owners."""
    return [
        row
        for statement in (
            "SELECT table_name, column_name, udt_name, is_nullable, collation_name, generation_expression "
            "FROM information_schema.columns WHERE table_schema = 'woodrat' ORDER BY 1, 2",
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'woodrat' ORDER BY 1",
            "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies "
            "WHERE schemaname = 'woodrat' ORDER BY 1, 2",
            "SELECT relname, relrowsecurity, relforcerowsecurity, relacl::text, relowner::regrole::text FROM pg_class "
            "WHERE relnamespace = 'woodrat'::regnamespace ORDER BY 1",
            "SELECT proname, pg_get_functiondef(oid), proowner::regrole::text FROM pg_proc "
            "WHERE pronamespace = 'woodrat'::regnamespace ORDER BY 1",
            "SELECT number, made_at FROM woodrat.layout ORDER BY 1",
        )
        for row in rows(url, statement)
    ]


@pytest.mark.parametrize("pgvector", [True, False])
def test_a_database_is_set_up_once(empty: Callable[[], str], pgvector: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set-up says what it made; a second time changes nothing."""
    if not pgvector:
        monkeypatch.setattr(vectors, "_IS_AVAILABLE", "SELECT 1 WHERE false")
    url = empty()
    done = migrate(url)
    assert (done.before, done.after) == (0, LAYOUT)
    made = catalogue(url)
    assert (("index_row", "vector", "halfvec") in [row[:3] for row in made]) is (done.pgvector == "used")
    assert pgvector or done.pgvector == "not used: the server does not have it"
    again = migrate(url)
    assert (again.before, again.after, again.roles) == (LAYOUT, LAYOUT, ())
    assert catalogue(url) == made


@pytest.mark.parametrize("number", [0, 1, LAYOUT - 1, LAYOUT + 1])
def test_another_layout_is_refused(empty: Callable[[], str], number: int) -> None:
    """A database of an older or a newer version is refused with both layouts and what to do, and left as it is."""
    url = empty()
    migrate(url)
    engine = PostgresEngine(url)
    ledger_on(engine, "t").store({"entity_type": "memo", "id": "1", "x": 1})
    engine.close()
    set_layout(url, f"UPDATE woodrat.layout SET number = {number}")
    made = catalogue(url)
    tries: tuple[Callable[[], object], ...] = (
        lambda: PostgresEngine(url),
        lambda: PostgresEngine(url, readonly=True),
        lambda: migrate(url),
    )
    for opened in tries:
        with pytest.raises(Refused, match=f"has layout {number}, and .* knows layout {LAYOUT} alone") as refused:
            opened()
        for words in ("the version that wrote it", "woodrat export log", "woodrat import log", "Nothing was changed."):
            assert words in str(refused.value)
    assert catalogue(url) == made
    set_layout(url, f"UPDATE woodrat.layout SET number = {LAYOUT}")
    engine = PostgresEngine(url)
    assert ledger_on(engine, "t").show("memo/1").fields["x"] == 1
    engine.close()


def set_layout(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_tables_of_others_are_refused(empty: Callable[[], str]) -> None:
    """A schema of our name with tables that do not say their layout is refused, and left as it is."""
    url = empty()
    set_layout(url, "CREATE SCHEMA woodrat", "CREATE TABLE woodrat.entry (name text)")
    tries: tuple[Callable[[], object], ...] = (lambda: PostgresEngine(url), lambda: migrate(url))
    for opened in tries:
        with pytest.raises(Refused, match=r"has layout 0[\s\S]*Nothing was changed\."):
            opened()
    assert tables(url) == ["entry"]


def test_a_set_up_that_is_cut_off_leaves_nothing(empty: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A set-up whose connection is ended after its last table leaves no schema; the next one makes it all."""
    url = empty()

    def cut(connection: psycopg.Connection[Any]) -> str:
        connection.execute("RESET ROLE")
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return "never"

    with monkeypatch.context() as patch:
        patch.setattr(vectors, "add", cut)
        with pytest.raises(Unavailable, match=r"Nothing was changed\."):
            migrate(url)
    assert rows(url, "SELECT to_regnamespace('woodrat')") == [(None,)]
    with pytest.raises(Refused, match="has no tables of woodrat"):
        PostgresEngine(url)
    assert migrate(url).before == 0


def test_two_that_set_up_at_once(empty: Callable[[], str]) -> None:
    """Of two that set one database up at the same time one makes the tables, and the other finds them."""
    url = empty()
    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(migrate, (url, url)))
    assert sorted((each.before, each.after) for each in done) == [(0, LAYOUT), (LAYOUT, LAYOUT)]


def test_a_database_without_tables_is_refused(empty: Callable[[], str]) -> None:
    """Opening makes no tables: it says which command does."""
    with pytest.raises(Refused, match=r"has no tables of woodrat.*woodrat migrate"):
        PostgresEngine(empty())


@pytest.fixture
def two_tenants(postgres_url: str) -> Iterator[str]:
    """A database in which two tenants have said much."""
    engine = PostgresEngine(postgres_url)
    told_on(engine)
    ledger_on(engine, "u").store([{"entity_type": "memo", "id": str(n), "x": n} for n in range(20)])
    ledger_on(engine, "u").search("memo")
    yield postgres_url
    engine.close()


def as_writer(url: str, tenant: str | None) -> psycopg.Connection[tuple[Any, ...]]:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(f"SET ROLE {WRITER}")
    connection.execute("SET search_path = woodrat")
    if tenant is not None:
        connection.execute("SELECT set_config('woodrat.tenant', %s, false)", (tenant,))
    return connection


def test_raw_sql_of_one_tenant_sees_nothing_of_another(two_tenants: str) -> None:
    """Whatever the application's role asks under one tenant, rows of another do not exist; without one none do."""
    held = {
        name: rows(two_tenants, f"SELECT count(*) FROM woodrat.{name} WHERE tenant = 'u'")
        for name in tables(two_tenants)
    }
    assert sum(count[0][0] > 0 for count in held.values()) >= 8
    with as_writer(two_tenants, "t") as mine, as_writer(two_tenants, None) as nobody:
        for name in held:
            for condition in (
                "tenant = 'u'",
                "tenant <> 't'",
                "tenant IN ('t', 'u') AND tenant > 't'",
                "tenant = 'u' OR (SELECT true)",
                "tenant LIKE '%u%' OR pg_backend_pid() > 0",
            ):
                found = mine.execute(f"SELECT DISTINCT tenant FROM {name} WHERE {condition}").fetchall()
                assert found in ([], [("t",)])
                assert nobody.execute(f"SELECT count(*) FROM {name} WHERE {condition}").fetchone() == (0,)
            joined = mine.execute(
                f"SELECT count(*) FROM {name} AS one, {name} AS other WHERE one.tenant <> other.tenant"
            )
            assert joined.fetchone() == (0,)
        for name in ("entity", "index_row", "meta", "node"):
            changed = mine.execute(f"DELETE FROM {name} WHERE tenant = 'u'")
            assert changed.rowcount == 0
        with pytest.raises(errors.InsufficientPrivilege):
            mine.execute("INSERT INTO meta (tenant, name, value) VALUES ('u', 'x', 'y')")
        with pytest.raises(errors.InsufficientPrivilege):
            mine.execute("UPDATE entity SET tenant = 'u'")
    engine = PostgresEngine(two_tenants)
    assert ledger_on(engine, "u").verify(deep=True).sound
    engine.close()


@pytest.mark.parametrize("table", [name for name in LOG if name != "head"])
def test_the_log_can_only_grow(two_tenants: str, table: str) -> None:
    """The application's role can neither change nor delete nor empty what the log is made of."""
    with as_writer(two_tenants, "t") as mine:
        column = {"receipt": "report = ''", "body": "body = NULL", "log": "name = ''"}.get(table, "id = id + 1000")
        for statement in (
            f"UPDATE {table} SET {column}",
            f"DELETE FROM {table}",
            f"TRUNCATE {table}",
            f"DROP TABLE {table}",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                mine.execute(statement)
        with pytest.raises(errors.InsufficientPrivilege):
            mine.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")


def test_a_login_without_the_role_is_refused(postgres_url: str, postgres_server: str) -> None:
    """Who may not act as the writer is told what an administrator has to grant; then reading and writing work."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS woodrat_test_login")
        connection.execute("CREATE ROLE woodrat_test_login LOGIN")
        url = postgres.of(postgres_url, postgres_url.split("/")[3].split("?")[0], "woodrat_test_login")
        try:
            with pytest.raises(Refused, match='GRANT woodrat_writer TO "woodrat_test_login"'):
                PostgresEngine(url)
            connection.execute("GRANT woodrat_writer TO woodrat_test_login")
            engine = PostgresEngine(url)
            assert ledger_on(engine).store({"entity_type": "memo", "id": "1"}).position == 0
            with pytest.raises(Refused, match="grant"):
                engine.tenants()
            engine.close()
        finally:
            with psycopg.connect(postgres_url, autocommit=True) as there:
                there.execute("DROP OWNED BY woodrat_test_login")
            connection.execute("DROP ROLE woodrat_test_login")
    assert set(ROLES) == {"woodrat_owner", "woodrat_writer", "woodrat_reader", "woodrat_eraser"}


def test_a_reader_only_reads(two_tenants: str) -> None:
    """An engine that was opened read-only acts as the reader, and takes no write."""
    engine = PostgresEngine(two_tenants, readonly=True)
    with engine.view(TenantId("u")) as view:
        assert view.head().size == 20
    assert engine.tenants() == ["t", "u"]
    with pytest.raises(Exception, match="read-only"):
        engine.transaction(TenantId("u"))
    engine.close()

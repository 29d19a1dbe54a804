"""What distributed PostgreSQL asks of the layout, over the real catalogue, and of the statements, and planted faults.

Citus itself is in no package that tests could install, so the statements are checked and not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from tests.commands import Cli

from woodrat.engines.postgres import distribution
from woodrat.engines.postgres.commit import set_tenant
from woodrat.engines.postgres.statements import named

PLANTED = {
    "CREATE TABLE memo (id bigint PRIMARY KEY)": "memo has no column tenant",
    "CREATE TABLE memo (tenant text NOT NULL, id bigint)": "memo has no primary key",
    "CREATE TABLE memo (tenant text NOT NULL, id bigint, PRIMARY KEY (id, tenant))": "does not begin with the tenant",
    "CREATE UNIQUE INDEX by_key ON entity (type, key)": "does not begin with the tenant: by_key",
    "CREATE UNIQUE INDEX by_words ON entity (lower(key), tenant)": "does not begin with the tenant: by_words",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; "
    "CREATE TRIGGER t BEFORE UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION f()": "entry has a trigger: t",
    "CREATE RULE r AS ON DELETE TO body DO INSTEAD NOTHING": "body has a rewrite rule: r",
    "ALTER TABLE said ADD CONSTRAINT f FOREIGN KEY (tenant, id) REFERENCES entry": "said has a foreign key: f",
    "ALTER TABLE log ADD COLUMN n bigserial": "log_n_seq is a sequence",
    "CREATE TABLE memo () INHERITS (meta)": "memo is a part of another table",
    "CREATE TABLE memo (tenant text PRIMARY KEY)": "memo does not force row-level security",
    "CREATE POLICY open ON entity USING (true)": "does not ask for the tenant: open",
}


@pytest.fixture
def connection(postgres_database: Callable[[], str]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database()) as connection:
        connection.execute("SET LOCAL search_path = woodrat")
        yield connection
        connection.rollback()


def test_the_layout_can_be_distributed(connection: psycopg.Connection[Any]) -> None:
    """Nothing in the catalogue stands in the way, and every table of a tenant is spread."""
    assert list(distribution.violations(connection)) == []


def test_planted_violations_are_found(connection: psycopg.Connection[Any]) -> None:
    """Each rule finds a layout that breaks it, by the name of what breaks it."""
    for statement, problem in PLANTED.items():
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
            assert problem in "\n".join(distribution.violations(connection)), statement


ACROSS = {"tenants", "purge_due", "purge_done", "other_tenant", "layout"}
"""Statements of the owner, who looks at all tenants on purpose."""
TABLES = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(?!unnest|chain|LATERAL|SELECT)([a-z_]+)(?:\s+(?:AS\s+)?(?!WHERE|SET|ON)([a-z_]+))?"
)


@pytest.mark.parametrize("file", ["queries.sql", "comparison.sql"])
def test_statements_stay_with_one_tenant(file: str, connection: psycopg.Connection[Any]) -> None:
    """Every table of every statement is asked for the tenant by a value, so that it goes to one node."""
    asked = "SELECT relname FROM pg_class WHERE relnamespace = 'woodrat'::regnamespace AND relkind = 'r'"
    tables = {name for (name,) in connection.execute(asked)}
    seen = 0
    for name, text in named(file).items():
        mentions = [found[1] for found in TABLES.finditer(text) if found[1] in tables]
        if name not in ACROSS:
            assert text.count(":tenant") >= len(mentions), f"{name}: a table without its tenant\n{text}"
            seen += len(mentions)
    assert seen > 30


def test_a_tenant_is_said_by_a_statement_that_nodes_hear_of() -> None:
    """It is `SET LOCAL`, whatever the tenant is called."""
    assert set_tenant("t").part == "SET LOCAL woodrat.tenant = 't'"
    assert set_tenant("it's").part == "SET LOCAL woodrat.tenant = 'it''s'"


def test_the_command_prints_the_statements(cli: Cli, postgres_database: Callable[[], str]) -> None:
    """`migrate --distributed` prints SQL for every table, and changes nothing; what stands in the way is refused."""
    url = postgres_database()
    printed = cli("migrate", "--distributed", "--db", url).out
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'woodrat'").fetchall()
        spread = set(re.findall(r"create_(?:distributed|reference)_table\('woodrat\.([a-z_]+)'", printed))
        assert spread == {name for (name,) in found}
        assert printed.count("colocate_with => 'woodrat.head'") == len(found) - 2
        assert "citus.propagate_set_commands = 'local'" in printed
        connection.execute("CREATE UNIQUE INDEX planted ON woodrat.entity (type, key, tenant)")
        try:
            refused = cli("migrate", "--distributed", "--db", url)
            assert (refused.code, refused.out) == (2, "")
            assert "does not begin with the tenant: planted" in refused.err
        finally:
            connection.execute("DROP INDEX woodrat.planted")
    refused = cli("migrate", "--distributed")
    assert refused.code == 2
    assert "--db postgresql://" in refused.err

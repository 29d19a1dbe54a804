"""Connections: how a database is reached, and what errors of its driver mean.

Every connection acts as one of the roles that `migrate` makes, whoever logged in: what row-level security and
privileges forbid is then forbidden to woodrat itself.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

import psycopg
from psycopg import errors
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper, StrBinaryDumper
from psycopg_pool import PoolClosed, PoolTimeout

from woodrat.engines import layout as layouts
from woodrat.engines import statements as files
from woodrat.engines.cache import Memories
from woodrat.engines.postgres.wire import Connection
from woodrat.errors import Corrupt, Fault, Refused, Unavailable, WoodratError

SCHEMA: Final = "woodrat"
"""The schema that all tables are in."""
OWNER: Final = "woodrat_owner"
WRITER: Final = "woodrat_writer"
READER: Final = "woodrat_reader"
ERASER: Final = "woodrat_eraser"
ROLES: Final = (OWNER, WRITER, READER, ERASER)
"""Who owns the tables, who adds to the log, who only reads, and who removes what is to be erased."""
REPLICA: Final = "replica"
"""The parameter of an address that names a replica."""
LAYOUT: Final = 6
"""The number of the tables in `tables.sql`; a database has it in `layout`."""

CONNECT_SECONDS: Final = 10
"""How long to wait for a server to answer."""
LOCK_SECONDS: Final = 10
"""How long to wait for another writer of the same tenant in another process."""
STATEMENT_SECONDS: Final = 300
"""How long one statement may take."""
IDLE_SECONDS: Final = 600
"""How long a transaction may stand still before the server ends it: it holds up all other writers of its tenant."""


def shown_address(url: str) -> str:
    """Return an address as it may be shown: without password and parameters."""
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    host = parts.hostname or quote(dict(parse_qsl(parts.query)).get("host", ""), safe="")
    port = f":{parts.port}" if parts.port else ""
    return f"postgresql://{user}{f'[{host}]' if ':' in host else host}{port}{parts.path}"


def addresses(url: str) -> tuple[str, str | None]:
    """Return an address without the parameter that is ours, and that one: the address of a replica."""
    base, _, query = url.partition("?")
    replicas = [value for name, value in parse_qsl(query) if name == REPLICA]
    if not replicas:
        return url, None
    if len(replicas) > 1 or not replicas[0].lower().startswith(("postgresql://", "postgres://")):
        problem = f"{REPLICA} in the address is not the address of one replica"
        remedy = f"Write {REPLICA}=postgresql%3A%2F%2F… once; that address may name several hosts."
        raise Refused([Fault("db", problem, remedy)], "Nothing was opened.")
    rest = "&".join(part for part in query.split("&") if part.partition("=")[0] != REPLICA)
    return f"{base}?{rest}" if rest else base, replicas[0]


def arguments() -> dict[str, Any]:
    """Return how every connection is opened."""
    return {
        "autocommit": True,
        "prepare_threshold": 0,
        "connect_timeout": CONNECT_SECONDS,
        "keepalives": 1,
        "keepalives_idle": 30,
        "application_name": "woodrat",
    }


def configure(connection: psycopg.Connection[Any], role: str) -> None:
    """Have a connection act as a role, with the settings that all statements are written for."""
    # Every access goes by a key, and a plan made once is the right one for all values. Joins go from the few rows that
    # a statement is given to those they name; without it the planner would now and then read a whole table. A bitmap
    # has no order: for a page of a list it would read and sort all there is.
    connection.execute(
        f"SET search_path = {SCHEMA}; SET role = {role}; SET statement_timeout = '{STATEMENT_SECONDS}s'; "
        f"SET lock_timeout = '{LOCK_SECONDS}s'; SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'; "
        "SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off; "
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off; SET bytea_output = hex; "
        "SET client_encoding = 'UTF8'",
        prepare=False,
    )
    adapters = connection.adapters
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(str, StrBinaryDumper)
    adapters.register_dumper(bytes, BytesBinaryDumper)
    if isinstance(connection, Connection):
        connection.memories = Memories(reads=True)


def check(connection: psycopg.Connection[Any], url: str, role: str) -> None:
    """Refuse a database that woodrat cannot use, and say why: its encoding, its layout, who logged in."""
    shown = shown_address(url)
    encoding, user, version = _one(
        connection,
        "SELECT pg_encoding_to_char(encoding), current_user, current_setting('server_version_num')::int "
        "FROM pg_database WHERE datname = current_database()",
    )
    faults = []
    if encoding != "UTF8":
        problem = f"the database at {shown} has the encoding {encoding}, where UTF8 is needed"
        faults.append(Fault("db", problem, "Make a database with ENCODING 'UTF8'."))
    if version < 150000:
        faults.append(Fault("db", f"{shown} runs PostgreSQL {version // 10000}", "Use PostgreSQL 15 or newer."))
    remedy = f"Run `woodrat migrate --db {shown}` as someone who may create roles and schemas."
    without = Fault("db", f"the database at {shown} has no tables of woodrat", remedy)
    if _one(connection, f"SELECT to_regnamespace('{SCHEMA}')")[0] is None:
        faults.append(without)
    elif not _one(connection, f"SELECT pg_has_role(current_user, '{role}', 'MEMBER')")[0]:
        problem = f"{user} is not a member of {role} at {shown}"
        faults.append(Fault("db", problem, f'Have an administrator run `GRANT {role} TO "{user}"`.'))
    else:
        connection.execute(f"SET ROLE {role}")
        number = layout(connection)
        if number is None:
            faults.append(without)
        elif number != LAYOUT:
            faults.append(layouts.other(shown, number, LAYOUT))
    if faults:
        raise Refused(faults, "Nothing was changed.")


def layout(connection: psycopg.Connection[Any]) -> int | None:
    """Return the layout of a database, 0 where its tables do not say; none where there are no tables."""
    tables = "SELECT count(*), count(*) FILTER (WHERE relname = 'layout' AND relkind = 'r') FROM pg_class"
    there, say = _one(connection, f"{tables} WHERE relnamespace = to_regnamespace('{SCHEMA}')")
    if not say:
        return 0 if there else None
    return int(_one(connection, f"SELECT coalesce(max(number), 0) FROM {SCHEMA}.layout")[0])


def _one(connection: psycopg.Connection[Any], statement: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(statement, prepare=False).fetchone()
    assert row is not None, "one row is asked for"
    return row


def sql(name: str) -> str:
    """Return one of the engine's SQL files."""
    return files.text("postgres", name)


def translation(
    error: BaseException, url: str, outcome: str = "Nothing of this call was written."
) -> WoodratError | None:
    """Return what one of the driver's exceptions means; `None` for a mistake of our own."""
    shown = shown_address(url)
    found = {"path": shown}
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    match error:
        case psycopg.ProgrammingError() if error.sqlstate is None:
            remedy = "Write it as postgresql://user@host:port/database."
            return Refused([Fault("db", "the address of the database cannot be read", remedy)], outcome)
        case PoolClosed():
            return Unavailable("The ledger is closed. Nothing was written. Open it again.")
        case PoolTimeout():
            return Unavailable(
                f"{shown}: no connection could be had within {CONNECT_SECONDS} seconds ({said}). {outcome} "
                "Check that the server runs and takes more connections, and send the same call again.",
                found,
            )
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return Corrupt(
                f"{shown}: the database is damaged ({said}). Stop writing and restore a backup.",
                found,
            )
        case (
            errors.UndefinedTable() | errors.UndefinedColumn() | errors.UndefinedFunction() | errors.InvalidSchemaName()
        ):
            problem = f"a part of the layout is missing at {shown} ({said})"
            return Refused([Fault("db", problem, f"Run `woodrat migrate --db {shown}`.")], outcome)
        case errors.InsufficientPrivilege():
            problem = f"the server at {shown} does not permit it ({said})"
            remedy = "Have an administrator grant the role that docs/reference/postgresql.md names for it."
            return Refused([Fault("db", problem, remedy)], outcome)
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification() | errors.InvalidCatalogName():
            return Refused([Fault("db", f"{shown}: {said}", "Check the address, the user and the password.")], outcome)
        case errors.RaiseException():  # our own layout raises none
            return Unavailable(
                f"{shown}: a trigger or function that woodrat did not make hindered this call ({said}). {outcome} "
                "Look at the triggers of the tables, drop it, and run `woodrat verify`.",
                found,
            )
        case errors.DiskFull():
            return Unavailable(
                f"{shown}: the disk of the server is full ({said}). {outcome} All earlier writes are safe. Free some "
                "space and send the same call again.",
                found,
            )
        case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.SerializationFailure():
            return Unavailable(
                f"{shown}: another writer was in the way ({said}). {outcome} Send the same call again.", found
            )
        case errors.ReadOnlySqlTransaction():
            return Unavailable(
                f"{shown}: the server takes no writes, as a standby ({said}). {outcome} Send the same call again; name "
                "all servers in the address, with target_session_attrs=read-write, so that the leader is found.",
                found,
            )
        case errors.QueryCanceled():
            return Unavailable(
                f"{shown}: a statement was ended after {STATEMENT_SECONDS} seconds or by an administrator ({said}). "
                f"{outcome} Send the same call again.",
                found,
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return Unavailable(
                f"{shown}: the server cannot be reached, or ended the connection ({said}). {outcome} All that was "
                "acknowledged is safe. Send the same call again.",
                found,
            )
    return None

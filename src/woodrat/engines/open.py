"""Opening: from what a user names a ledger by to the engine that keeps it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from woodrat.errors import Fault, Refused, Unavailable, shown

if TYPE_CHECKING:
    from woodrat.engines.engine import Engine

MEMORY: Final = ":memory:"
"""What names a ledger that is kept in memory and forgotten."""
NOT_OPENED: Final = "Nothing was opened."


def default_path() -> str:
    """Return the file a ledger is in unless the user names one: in the platform's folder for user data."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Application Support")
    elif sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        folder = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return os.path.join(folder, "woodrat", "woodrat.db")


def is_postgres(db: object) -> bool:
    """Return whether a ledger is named by the address of a PostgreSQL server."""
    return isinstance(db, str) and db.lower().startswith(("postgresql://", "postgres://"))


def path_of(db: str | os.PathLike[str] | None) -> str | None:
    """Return the file that `db` names: a path or `sqlite:///path`; nothing means the default file.

    What is kept in memory or on a server is in no file. Whatever names no engine we have is refused.
    """
    if db is None:
        return default_path()
    if not isinstance(db, str | os.PathLike) or not os.fspath(db):
        problem = f"expected a path or an address, got {shown(db)}"
        raise Refused([Fault("db", problem, "Name a file, or :memory:.")], NOT_OPENED)
    text = os.fspath(db)
    if text == MEMORY or is_postgres(text):
        return None
    if "://" not in text:
        return os.path.expanduser(text)
    from urllib.parse import unquote, urlsplit

    address = urlsplit(text)
    if address.scheme == "sqlite":
        # sqlite:///relative and sqlite:////absolute, as other libraries write it.
        return unquote(text.removeprefix("sqlite://").removeprefix("/")) or "."
    # Only scheme and host: the rest of an address may hold a password.
    problem = f"there is no engine for {address.scheme}://{address.hostname or ''} here"
    remedy = "Use a path, sqlite:///path, postgresql://…, :memory:, or http(s)://… of a server."
    raise Refused([Fault("db", problem, remedy)], NOT_OPENED)


def engine_for(db: str | os.PathLike[str] | None, *, readonly: bool = False) -> Engine:
    """Return the engine that `db` names; see `path_of`."""
    if is_postgres(db):
        return _postgres(str(db), readonly=readonly)
    path = path_of(db)
    if path is None:
        from woodrat.engines.sqlite.in_memory import InMemoryEngine

        return InMemoryEngine()
    if db is None and not readonly:
        from woodrat.engines import private

        folder = os.path.dirname(path)
        try:
            private.make_folder(folder)
        except OSError as error:
            raise Unavailable(
                f"{folder}: cannot be made ({error.strerror}). {NOT_OPENED} Name another file.", {"path": folder}
            ) from error
    from woodrat.engines.sqlite.engine import SqliteEngine

    return SqliteEngine(path, readonly=readonly)


def check_driver() -> None:
    """Refuse what needs PostgreSQL where its driver is not installed."""
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        remedy = "Install it: pip install 'woodrat[postgres]'."
        raise Refused([Fault("db", "the driver for PostgreSQL is not installed", remedy)], NOT_OPENED) from error


def _postgres(url: str, *, readonly: bool) -> Engine:
    check_driver()
    from woodrat.engines.postgres.engine import PostgresEngine

    return PostgresEngine(url, readonly=readonly)

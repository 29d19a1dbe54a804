"""Opening: from what a user names a ledger by to an engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from woodrat.clock import Clock, SystemClock
from woodrat.engines.memory import MemoryEngine
from woodrat.engines.port import Engine
from woodrat.errors import Fault, Refused, Unavailable, shown
from woodrat.ledger.ledger import Ledger
from woodrat.ledger.policies import registry
from woodrat.state.policy import Policy

NOT_OPENED = "Nothing was opened."


def default_path() -> Path:
    """Return the file a ledger is in unless the user names one: in the platform's folder for user data."""
    home = Path.home()
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "woodrat" / "woodrat.db"


def engine_for(db: str | os.PathLike[str] | None, *, readonly: bool = False) -> Engine:
    """Return the engine that `db` names: a path, `sqlite:///path` or `:memory:`; nothing means the default file."""
    if db is None:
        path = default_path()
        if not readonly:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Unavailable(
                    f"{path.parent}: cannot be made ({error.strerror}). {NOT_OPENED} Name another file.",
                    {"path": str(path.parent)},
                ) from error
        return _sqlite(path, readonly=readonly)
    if not isinstance(db, str | os.PathLike) or not os.fspath(db):
        problem = f"expected a path or an address, got {shown(db)}"
        raise Refused([Fault("db", problem, "Name a file, or :memory:.")], NOT_OPENED)
    text = os.fspath(db)
    if text == ":memory:":
        return MemoryEngine()
    scheme = urlsplit(text).scheme if "://" in text else ""
    if not scheme:
        return _sqlite(Path(text).expanduser(), readonly=readonly)
    if scheme == "sqlite":
        # sqlite:///relative and sqlite:////absolute, as other libraries write it.
        return _sqlite(Path(unquote(text.removeprefix("sqlite://").removeprefix("/"))), readonly=readonly)
    # Only scheme and host: the rest of an address may hold a password.
    problem = f"there is no engine for {scheme}://{urlsplit(text).hostname or ''} here"
    raise Refused([Fault("db", problem, "Use a path, sqlite:///path, or :memory:.")], NOT_OPENED)


def _sqlite(path: Path, *, readonly: bool) -> Engine:
    from woodrat.engines.sqlite.engine import SqliteEngine

    return SqliteEngine(path, readonly=readonly)


def open_ledger(
    db: str | os.PathLike[str] | None = None,
    *,
    tenant: str = "default",
    agent: str = "library",
    policies: Iterable[Policy] = (),
    strict: bool = False,
    readonly: bool = False,
    clock: Clock | None = None,
) -> Ledger:
    """Open a ledger for one tenant, written to by one agent.

    `db` is a path, `sqlite:///path` or `:memory:`; left out, it is a file in the platform's folder for user data.
    `policies` are merge policies of your own that schemas here may name; `strict` refuses types without a schema;
    `readonly` refuses every write.
    """
    return Ledger(
        engine_for(db, readonly=readonly),
        tenant=tenant,
        agent=agent,
        clock=clock or SystemClock(),
        policies=registry(policies),
        strict=strict,
    )

"""Opening: from what a user names a ledger by to an engine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

from woodrat.errors import Fault, Refused, Unavailable, shown
from woodrat.state import redaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine
    from woodrat.merge import Policy

MEMORY = ":memory:"
"""What names a ledger that is kept in memory and forgotten."""
NOT_OPENED = "Nothing was opened."


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


def keys_folder(given: str | os.PathLike[str] | None = None) -> str:
    """Return the folder of keys: the one given, else `WOODRAT_SIGNING_KEYS`, else one in the user's configuration."""
    named = os.fspath(given) if given is not None else os.environ.get("WOODRAT_SIGNING_KEYS")
    if named:
        return os.path.expanduser(named)
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Application Support")
    elif sys.platform == "win32":
        folder = os.environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(folder, "woodrat", "keys")


def keys_for(db: str | os.PathLike[str] | None, given: str | os.PathLike[str] | None) -> str | None:
    """Return the folder of keys a ledger is signed by, or None.

    One that is named must be there. The default one counts where there is a signer in it, for ledgers in files: what is
    kept in memory is signed only by keys that were handed to it.
    """
    if given is not None:
        return keys_folder(given)
    if db is not None and os.fspath(db) == MEMORY:
        return None
    folder = keys_folder()
    named = bool(os.environ.get("WOODRAT_SIGNING_KEYS"))
    return folder if named or os.path.exists(os.path.join(folder, "signer.pub")) else None


def _warn(text: str) -> None:
    import warnings

    from woodrat.api.maintenance import CheckpointWarning

    warnings.warn(text, CheckpointWarning, stacklevel=_LEVELS)


_LEVELS = 6
"""How far above a warning the caller of `open` stands."""


def path_of(db: str | os.PathLike[str] | None) -> str | None:
    """Return the file that `db` names: a path or `sqlite:///path`; nothing means the default file.

    What is kept in memory is in no file. Whatever names no engine we have is refused.
    """
    if db is None:
        return default_path()
    if not isinstance(db, str | os.PathLike) or not os.fspath(db):
        problem = f"expected a path or an address, got {shown(db)}"
        raise Refused([Fault("db", problem, "Name a file, or :memory:.")], NOT_OPENED)
    text = os.fspath(db)
    if text == MEMORY:
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
    raise Refused(
        [Fault("db", problem, "Use a path, sqlite:///path, :memory:, or http(s)://… of a server.")], NOT_OPENED
    )


def engine_for(db: str | os.PathLike[str] | None, *, readonly: bool = False) -> Engine:
    """Return the engine that `db` names; see `path_of`."""
    path = path_of(db)
    if path is None:
        from woodrat.engines.memory import MemoryEngine

        return MemoryEngine()
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


def open_ledger(
    db: str | os.PathLike[str] | None = None,
    *,
    tenant: str = "default",
    agent: str = "library",
    policies: Iterable[Policy] = (),
    strict: bool = False,
    readonly: bool = False,
    clock: Clock | None = None,
    key: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    redact: Iterable[str] | None = None,
    erase_again: bool = False,
) -> Ledger:
    """Open a ledger for one tenant, written to by one agent.

    `db` is a path, `sqlite:///path` or `:memory:`; left out, it is a file in the platform's folder for user data.
    `policies` are merge policies of your own that schemas here may name; `strict` refuses types without a schema;
    `readonly` refuses every write. `keys` is the folder that `woodrat init` made; left out, it is
    `WOODRAT_SIGNING_KEYS`, or the user's own if there is one. With keys a checkpoint is signed every
    `checkpoint_every` entries (1,000) and at close. `redact` are keys whose values never reach the log, such as
    `["password", "*_token"]`; left out, they are those of `WOODRAT_REDACT`, with commas between them. A file that
    holds what was erased in it, because an older copy was put back, is not opened, unless `erase_again` has it
    erased there too. `http://host:port` is a ledger behind a server, opened with a `key`, which says for which
    tenant and agent. What is to be redacted is never sent there.
    """
    if isinstance(db, str) and db.startswith(("http://", "https://")):
        further = bool(tuple(policies)) or strict or readonly or clock is not None or keys is not None or erase_again
        hidden = redaction.hidden(os.environ.get("WOODRAT_REDACT") if redact is None else redact)
        return _remote(db, key, tenant, agent, hidden, further or checkpoint_every is not None)
    if key is not None:
        remedy = "Leave it out, or name a server such as http://localhost:8787."
        raise Refused([Fault("key", f"only a server takes a key, and db is {shown(db)}", remedy)], NOT_OPENED)
    from woodrat.api.ledger import Ledger
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry

    folder = keys_for(db, keys)
    if readonly and folder is not None:
        from woodrat.api.maintenance import check_there

        check_there(folder, path_of(db), tenant)
    engine = engine_for(db, readonly=readonly)
    clock = clock or SystemClock()
    try:
        signing = None
        if folder is not None:
            from woodrat.api.maintenance import signing_for

            signing = signing_for(engine, tenant, folder, clock, every=checkpoint_every, tell=_warn)
        if not erase_again:
            from woodrat.api.maintenance import check_put_back

            check_put_back(engine, tenant, keys)
        opened = Ledger(
            engine,
            tenant=tenant,
            agent=agent,
            clock=clock,
            policies=registry(policies),
            strict=strict,
            signing=signing,
            keys=keys,
            redact=os.environ.get("WOODRAT_REDACT") if redact is None else redact,
        )
        if erase_again:
            opened.erased_again = opened.erase_again()
        return opened
    except BaseException:
        engine.close()
        raise


def _remote(db: str, key: str | None, tenant: str, agent: str, hidden: frozenset[str], further: bool) -> Ledger:
    from woodrat.api.remote import open_remote

    faults = []
    if tenant != "default" or agent != "library":
        faults.append(Fault("tenant", "the key says for whom and as whom", "Leave tenant and agent out."))
    if further:
        faults.append(Fault("db", "a server has its own policies, rules, clock and keys", "Leave these arguments out."))
    if faults:
        raise Refused(faults, NOT_OPENED)
    # It has the verbs of a ledger without being one: what it cannot do is not among its attributes.
    return cast("Ledger", open_remote(db, key, hidden))

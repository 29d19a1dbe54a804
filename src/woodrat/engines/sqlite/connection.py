"""Connections: a file opened so that what was acknowledged is durable and the log can only grow.

Everything unsafe is refused by name before a byte is written: versions of SQLite with a known corruption bug,
settings that lose acknowledged writes, network file systems whose locks cannot be trusted, files of others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

import apsw

from woodrat.engines import layout, private, statements
from woodrat.engines.sqlite.readonly_file import ReadonlyFile
from woodrat.engines.sqlite.write_stop import is_flush
from woodrat.errors import Corrupt, Fault, Refused, Unavailable, WoodratError, shown
from woodrat.merge.packing import UNREADABLE

APPLICATION_ID = 0x57524154
"""`WRAT`: marks a file as ours."""
LAYOUT = 12
"""The number of the tables in `tables.sql` and of the rows they hold; a file has it as `user_version`."""
ROOM_BYTES = 65_536
"""What SQLite needs beside a file to read it: its shared memory of 32 KiB, and some."""
QUERIES = "queries.sql"
"""The file that holds the SQL of views and writes."""
BUSY_MILLISECONDS = 10_000
"""How long to wait for another process before giving up."""
CACHE_KIBIBYTES = 65_536
"""Page cache of one connection."""
WAL_PAGES = 1_000
"""Size of the write-ahead log at which it is taken over into the file."""

_FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph", "glusterfs", "lustre"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse"}
)
_PROTECTED = frozenset({"entry", "body", "tenant", "log", "receipt", "origin", "clone"})
_OWN_TRIGGERS = frozenset(f"{table}_no_{verb}" for table in (*_PROTECTED, "purge") for verb in ("update", "delete"))
_CHANGING = frozenset({apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE})
_QUIET_PRAGMAS = frozenset({"data_version", "wal_checkpoint", "integrity_check", "quick_check", "page_count"})


def check_version(version: str = apsw.sqlite_lib_version()) -> None:
    """Refuse versions of SQLite whose write-ahead log can lose what was committed."""
    parts = tuple(int(part) for part in version.split(".")[:3])
    for fixed in _FIXED:
        if parts[:2] == fixed[:2] and parts >= fixed:
            return
    if parts >= _FIXED[0]:
        return
    problem = f"SQLite {version} can corrupt a database when its write-ahead log is reset"
    raise Refused([Fault("sqlite", problem, "Install a newer apsw.")], outcome="Nothing was opened.")


def check_place(path: str) -> None:
    """Refuse what cannot be a file of ours: directories, devices, and file systems on which locks do not hold."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unavailable(
            f"{path}: cannot be accessed ({error.strerror}). Nothing was opened. Check the permissions.",
            {"path": path},
        ) from error
    if os.path.isdir(path):
        problem = f"{path} is a directory"
        raise Refused([Fault("db", problem, "Name a file in it.")], outcome="Nothing was opened.")
    if os.path.exists(path) and not os.path.isfile(path):
        problem = f"{path} is not a file"
        raise Refused([Fault("db", problem, "Name a file.")], outcome="Nothing was opened.")
    folder = os.path.dirname(os.path.realpath(path))  # of the file itself, where the path is a link to it
    if not os.path.isdir(folder):
        problem = f"{folder} does not exist"
        raise Refused([Fault("db", problem, "Create the folder first.")], outcome="Nothing was opened.")
    kind = _file_system(folder)
    if kind in _NETWORK:
        problem = f"{folder} is on a network file system ({kind}), where SQLite's locks do not hold"
        remedy = "Put the file on a local disk, or use PostgreSQL to share it."
        raise Refused([Fault("db", problem, remedy)], outcome="Nothing was opened.")


def _mounts() -> str:
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        return file.read()


def _file_system(folder: str) -> str | None:
    """Return the type of the file system a folder is on, where the system tells."""
    try:
        mounts = _mounts().splitlines()
    except OSError:
        return None
    best, kind = "", None
    real = os.path.realpath(folder)
    for line in mounts:
        parts = line.split()
        if len(parts) >= 3:
            point = parts[1].replace("\\040", " ")
            if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, kind = point, parts[2]
    return kind


def connect(
    path: str, *, readonly: bool = False, vfs: str | None = None, readonly_file: ReadonlyFile | None = None
) -> apsw.Connection:
    """Open a connection with the one set of settings that is safe, and close every way around them.

    `vfs` names another way to the disk than the system's own: tests record what is written, or let it fail.
    `readonly_file` is the file where it is on a read-only medium.
    """
    if readonly and not os.path.exists(path):
        problem = f"{path} does not exist"
        raise Refused([Fault("db", problem, "Open it for writing once.")], outcome="Nothing was opened.")
    if not readonly and vfs is None and not os.path.lexists(path):
        private.make(path)  # SQLite gives the files beside it the same mode
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(path, flags=flags, vfs=vfs) if readonly_file is None else readonly_file.connect()
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        if not readonly:
            _is_set_up(connection, path)  # before the mode is set, which would change a file of another program
            _keep_log(connection, path)
        set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_log(connection: apsw.Connection, path: str) -> None:
    """Have a file keep a write-ahead log that is flushed at every commit."""
    mode = connection.execute("PRAGMA journal_mode = WAL").get
    if mode != "wal":
        problem = f"{path} cannot keep a write-ahead log (journal mode {mode})"
        raise Refused([Fault("db", problem, "Put the file on a local disk.")], outcome="Nothing was opened.")
    connection.execute("PRAGMA synchronous = FULL")


def set_up(connection: apsw.Connection) -> None:
    """Give a connection the settings that all have, and close every way around them."""
    # Without it each new bound of a range makes SQLite plan the statement again, which costs more than running it.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    run = connection.execute
    run("PRAGMA secure_delete = ON")  # what is freed is overwritten, from the first write on
    run("PRAGMA recursive_triggers = ON")
    run("PRAGMA trusted_schema = OFF")
    run("PRAGMA temp_store = MEMORY")
    run(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
    run("PRAGMA wal_autocheckpoint = 0")  # it would keep a failed flush to itself: the engine takes the log over
    connection.authorizer = authorize


def bound_caches(size: int) -> None:
    """Have all connections of this process keep no more than so many bytes of pages together."""
    apsw.soft_heap_limit(size)


def _is_set_up(connection: apsw.Connection, path: str) -> bool:
    """Return whether a file has our tables, and not nothing; refuse one that is not ours or has another layout."""
    tables, application, version = connection.execute(_MARKS).get
    if not (tables or application or version):
        return False
    if application != APPLICATION_ID:
        problem = f"{path} is a database of another program"
        raise Refused([Fault("db", problem, "Name another file.")], outcome="Nothing was changed.")
    if version != LAYOUT:
        raise Refused([layout.other(path, version, LAYOUT)], outcome="Nothing was changed.")
    return True


_MARKS = """
SELECT (SELECT count(*) FROM sqlite_schema), (SELECT application_id FROM pragma_application_id),
    (SELECT user_version FROM pragma_user_version)
"""
"""In one statement, so that they are of one moment: another process may be setting the file up."""


def authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    """Deny whatever would change the log other than by adding to it, or weaken what protects it."""
    if action in (apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE) and first in _PROTECTED:
        return apsw.SQLITE_DENY
    if action in _CHANGING and (first == "purge" or (trigger is not None and trigger not in _OWN_TRIGGERS)):
        return apsw.SQLITE_DENY
    if action == apsw.SQLITE_PRAGMA and (first not in _QUIET_PRAGMAS or second is not None):
        return apsw.SQLITE_DENY
    if action in _STRUCTURAL:
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK


_STRUCTURAL = frozenset(
    {
        apsw.SQLITE_ALTER_TABLE,
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_CREATE_INDEX,
        apsw.SQLITE_CREATE_TABLE,
        apsw.SQLITE_CREATE_TEMP_INDEX,
        apsw.SQLITE_CREATE_TEMP_TABLE,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
        apsw.SQLITE_CREATE_TEMP_VIEW,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_CREATE_VIEW,
        apsw.SQLITE_CREATE_VTABLE,
        apsw.SQLITE_DROP_INDEX,
        apsw.SQLITE_DROP_TABLE,
        apsw.SQLITE_DROP_TRIGGER,
        apsw.SQLITE_DROP_VIEW,
        apsw.SQLITE_DROP_VTABLE,
    }
)


class erasing:
    """Open the one way by which bodies, nonces and receipts go, as a context; triggers still guard the rest."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.authorizer = _authorize_erasing

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._connection.authorizer = authorize


def _authorize_erasing(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    lawful = {(apsw.SQLITE_UPDATE, "body", "body"), (apsw.SQLITE_UPDATE, "body", "nonce")}
    if (action, first, second) in lawful or (action, first) in (
        (apsw.SQLITE_DELETE, "receipt"),
        (apsw.SQLITE_INSERT, "purge"),
    ):
        return apsw.SQLITE_OK
    return authorize(action, first, second, database, trigger)


def is_purged(connection: apsw.Connection) -> bool:
    """Return True if no erasure waits for the write-ahead log to be truncated."""
    return connection.execute("SELECT 1 FROM purge").get is None


def prepare(connection: apsw.Connection, path: str, *, readonly: bool) -> None:
    """Make the tables of a file that has none; refuse one that is not ours or has another layout."""
    run = connection.execute
    connection.authorizer = None
    try:
        is_set_up = _is_set_up(connection, path)
        if not readonly and (foreign := _foreign_triggers(connection)):
            raise _hindered(path, foreign)
        if is_set_up:
            return
        if readonly:
            problem = f"{path} has no tables yet"
            raise Refused([Fault("db", problem, "Open it for writing once.")], outcome="Nothing was changed.")
        run("BEGIN IMMEDIATE")
        try:
            if not _is_set_up(connection, path):  # another process may have been first
                run(sql(layout.TABLES))
                run(f"PRAGMA application_id = {APPLICATION_ID}")
                run(f"PRAGMA user_version = {LAYOUT}")
            run("COMMIT")
        except BaseException:
            if not connection.getautocommit():  # a full disk has undone it already
                run("ROLLBACK")
            raise
    finally:
        connection.authorizer = authorize


def _foreign_triggers(connection: apsw.Connection) -> list[str]:
    """Return the triggers of a file that somebody else made: they run inside our writes and change or skip rows."""
    return sorted({name for (name,) in connection.execute(_TRIGGERS)} - _OWN_TRIGGERS)


_TRIGGERS = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"


def _hindered(path: str, triggers: Iterable[str], error: apsw.Error | None = None) -> Unavailable:
    why = "" if error is None else f", which hindered this write ({error})"
    named = ", ".join(map(shown, triggers))
    return Unavailable(
        f"{path}: the file has triggers that woodrat did not make: {named}{why}. Nothing of this call was written. "
        "Look at them in sqlite_schema, drop them (DROP TRIGGER), and run `woodrat verify`; reading goes on.",
        {"path": path, "triggers": list(triggers)},
    )


def sql(name: str) -> str:
    """Return one of the engine's SQL files."""
    return statements.text("sqlite", name)


@cache
def queries(name: str = QUERIES) -> dict[str, str]:
    """Return the named queries of one of the engine's SQL files, and those that all SQL engines share."""
    shared = statements.text("", name) if name in statements.SHARED else ""
    plain = {one: _for_row(rows) for one, rows in statements.FOR_ROWS.items()} if name == QUERIES else {}
    return plain | statements.named(shared + sql(name))


def _for_row(rows: statements.ForRows) -> str:
    """Return a statement that adds or removes one row, whose values it takes by place."""
    if rows.verb == "remove":
        return f"DELETE FROM {rows.table} WHERE {' AND '.join(f'{column} = ?' for column in rows.columns)}"
    adds = {"add": "INSERT", "add or keep": "INSERT OR IGNORE", "add or replace": "INSERT OR REPLACE"}[rows.verb]
    places = ", ".join("?" * len(rows.columns))
    return f"{adds} INTO {rows.table} ({', '.join(rows.columns)}) VALUES ({places})"


class translated:
    """Turn the driver's exceptions into ours, as a context; they stay as the cause."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, apsw.Error) and (ours := translation(error, self._path)) is not None:
            raise ours from error


_READING = (
    __name__.rpartition(".")[0] + ".",
    *(f"woodrat.engines.{name}" for name in ("codec", "entity", "entry", "index", "node", "observation", "receipt")),
    *(f"woodrat.engines.{name}" for name in ("state", "tables", "transaction", "view")),
    *(
        f"woodrat.merge.{name}"
        for name in (
            *("by_key", "claim", "elements", "fold", "incremental", "packed_state", "packing", "policy"),
            *("ranked", "rules", "slots", "snapshot", "terms", "union"),
        )
    ),
    "woodrat.state.fingerprint",
)
"""Modules that are given nothing but what the tables hold, and what was checked before."""
_CALLED = ("woodrat.canon.", "woodrat.log.", "woodrat.runs.", "woodrat.state.meaning")
"""Modules that are called with whatever others have: it is who called them that counts."""


def unreadable(error: BaseException | None, path: str, *, asserted: bool = True) -> Corrupt | None:
    """Return what an exception of Python means that came up while rows were read; `None` if it came up elsewhere.

    All that the engine is asked with was checked before, so it is the rows that are at fault. Without `asserted`, what
    an assertion says counts as a mistake of our own: a write asserts what it is given.
    """
    if not isinstance(error, UNREADABLE) or (isinstance(error, AssertionError) and not asserted):
        return None
    trace, where = error.__traceback__, ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        where = where if name.startswith(_CALLED) else name
        trace = trace.tb_next
    if not where.startswith(_READING):
        return None
    return Corrupt(
        f"{path}: a row of the database cannot be read ({type(error).__name__}: {error}). Nothing was changed. Run "
        "`woodrat verify`: it says whether the log is damaged, or only what is derived from it, which "
        "`woodrat rebuild` makes again.",
        {"path": path},
    )


def translation(error: apsw.Error, path: str) -> WoodratError | None:
    """Return what one of the driver's exceptions means; `None` for a mistake of our own."""
    found = {"path": path}
    if isinstance(error, apsw.AuthError | apsw.ConstraintError | apsw.SQLError) and (triggers := _triggers_of(path)):
        return _hindered(path, triggers, error)
    match error:
        case apsw.NotADBError():
            problem = f"{path} is not a SQLite database"
            return Refused([Fault("db", problem, "Name another file.")], outcome="Nothing was changed.")
        case apsw.CorruptError():
            problem = f"{path}: the file is damaged ({error})"
            return Corrupt(f"{problem}. Stop writing, copy the file, and restore a backup.", found)
        case apsw.SQLError() if str(error).startswith("no such "):
            problem = f"{path}: a part of the file is missing ({error})"
            return Corrupt(f"{problem}. Stop writing, copy the file, and restore a backup.", found)
        case apsw.ConnectionClosedError() | apsw.ThreadingViolationError():
            return Unavailable("The ledger was closed. Nothing of this call was written. Open it again.")
        case apsw.FullError():
            return Unavailable(
                f"{path}: the disk is full. Nothing of this call was written, and all earlier writes are safe. "
                "Free some space and send the same call again.",
                found,
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return Unavailable(
                f"{path}: the file cannot be written. Nothing of this call was written. "
                "Make it writable, or open it read-only.",
                found,
            )
        case apsw.BusyError() | apsw.LockedError():
            return Unavailable(
                f"{path}: another process locked the file for {BUSY_MILLISECONDS // 1000} seconds. "
                "Nothing of this call was written. Send the same call again.",
                found,
            )
        case apsw.IOError() if is_flush(error):
            return Unavailable(
                f"{path}: a flush to the disk failed ({error}). It is not known whether this call was written: it is "
                "there whole or not at all. All that was acknowledged is safe, and reads go on, but no more writes are "
                "taken here. Check the disk, close the ledger and open it again; sent again under its idempotency key, "
                "the same call is stored once.",
                {**found, "fenced": True},
            )
        case apsw.CantOpenError() | apsw.IOError() if _is_full(path):
            return Unavailable(
                f"{path}: the disk is full, and there is no room even to read ({error}). Nothing of this call was "
                "written, and all earlier writes are safe. Free some space and send the same call again.",
                found,
            )
        case apsw.CantOpenError() if os.path.exists(path) and not _can_write_beside(path):
            return Unavailable(
                f"{path}: SQLite makes files beside a ledger to read or write it, and this user may not write to "
                f"{os.path.dirname(os.path.realpath(path))}. Nothing of this call was read or written. Make the folder "
                "writable for this user, or copy the file, with its -wal if there is one, and open the copy.",
                found,
            )
        case apsw.CantOpenError() | apsw.IOError():
            return Unavailable(
                f"{path}: cannot be read or written ({error}). Nothing of this call was written. Check the disk.",
                found,
            )
    return None


def _triggers_of(path: str) -> list[str]:
    """Return the triggers that somebody else made in a file while it was open here; none where it cannot be read."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return _foreign_triggers(connection)
        finally:
            connection.close()
    except apsw.Error:
        return []


def _can_write_beside(path: str) -> bool:
    return os.access(os.path.dirname(os.path.realpath(path)), os.W_OK)


def _is_full(path: str) -> bool:
    """Return whether the disk has no room left for the little that reading needs."""
    try:
        disk = os.statvfs(os.path.dirname(os.path.realpath(path)))
    except (AttributeError, OSError):
        return False
    return disk.f_bavail * disk.f_frsize < ROOM_BYTES


def pid() -> int:
    """Return the process that asks; a connection must not outlive a fork."""
    return os.getpid()

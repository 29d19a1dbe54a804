"""Backup: a file with every tenant's log at one moment, made while others write.

A backup is a ledger's file and can be opened. It is marked as a copy: writes to it begin under a new log name, so a
restored ledger is never mistaken for the original.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.errors import Corrupt, Fault, Refused
from woodrat.exchange.verbs import files
from woodrat.exchange.verbs.export import root_at
from woodrat.log.tree import Frontier
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress

NO_BACKUP: Final = "Nothing was backed up."
BESIDE: Final = ("", "-wal", "-shm", "-queue", "-journal")
"""Ends of the names of the files that make up a database."""


@dataclass(frozen=True, slots=True)
class Backup(Record):
    """The contents of a backup."""

    path: str
    """The file."""
    written_bytes: int
    """How large it is."""
    tenants: Mapping[str, Mapping[str, Any]]
    """For each tenant the `size` of its log and the `root` of its tree, in hex."""


def backup(context: Context, out: object, *, force: bool, progress: Progress | None) -> Backup:
    """Write a backup, look at it, and put it in its place."""
    from woodrat.engines.sqlite.engine import SqliteEngine

    engine = context.engine
    path = files.path_in(out, "out", NO_BACKUP)
    if not isinstance(engine, SqliteEngine) or engine.name != SqliteEngine.name:
        problem = f"a ledger of the {engine.name} engine is not in a file"
        raise Refused([Fault("backup", problem, "Export its log, or copy it into a file.")], NO_BACKUP)
    if same_file(path, engine.path):
        raise Refused([Fault("out", f"{path} is the ledger itself", "Name another file.")], NO_BACKUP)
    files.check_free(path, "out", NO_BACKUP, force=force)
    from woodrat.engines.sqlite import backup as sqlite_backup

    partial = f"{path}.part"
    remove(partial)
    try:
        try:
            sqlite_backup.copy_pages(engine, partial, progress)
            found = _checked(engine, partial)
            size = os.path.getsize(partial)
            files.put(partial, path)
        finally:
            remove(partial)
    except OSError as error:
        raise files.unwritable(path, error, NO_BACKUP) from error
    return Backup(path, size, found)


def _checked(engine: Engine, partial: str) -> dict[str, dict[str, Any]]:
    """Mark a copy as one, and return its contents after comparing them with the ledger."""
    from woodrat.engines.sqlite import backup as sqlite_backup
    from woodrat.engines.sqlite.engine import SqliteEngine

    wrong = sqlite_backup.check_pages(partial)
    if wrong is not None:
        raise _damaged(partial, wrong)
    found: dict[str, dict[str, Any]] = {}
    copy = SqliteEngine(partial)
    try:
        for name in copy.tenants():
            tenant = TenantId(name)
            with copy.transaction(tenant) as write:
                size = write.head().size
                if size:
                    write.note_clone()
            with copy.view(tenant) as view:
                root = Frontier().extend(view.leaves(size)).root().hex()
            with engine.view(tenant) as view:
                if root_at(view, size) != root:
                    raise _damaged(partial, f"the log of {name} has another root than the ledger's at size {size}")
            found[name] = {"size": size, "root": root}
    finally:
        copy.close()
    return found


def _damaged(path: str, what: str) -> Corrupt:
    return Corrupt(
        f"{path}: the copy differs from the original ({what}). {NO_BACKUP} Check the disk, and verify the ledger.",
        {"path": path},
    )


def same_file(one: str, other: str) -> bool:
    """Return True if two paths lead to one file."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.abspath(one) == os.path.abspath(other)


def remove(path: str) -> None:
    """Remove a database that is not in use, with the files beside it."""
    for end in BESIDE:
        with suppress(FileNotFoundError):
            os.unlink(path + end)

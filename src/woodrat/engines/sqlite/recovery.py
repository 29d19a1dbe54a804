"""Recovery: commits that went into a write-ahead log which somebody deleted are brought into the file at the path.

The old connection still sees them, so its database is saved beside the file. A log is written by one process at a time,
and entries are never changed: if the saved database has every entry of the file, it is the file and what came after.
Then it is taken over whole, with positions, times, nonces, bodies and receipts as they were. If the file went on
without these commits, positions are used twice; the saved database stays, and somebody has to decide.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Final

import apsw

from woodrat.engines import private

SUFFIX: Final = "-saved"
"""What the name of a saved database ends in, after that of the ledger; a number follows."""
_COUNTED: Final[int | None] = getattr(apsw, "SQLITE_CHECKPOINT_NOOP", None)
_HAS_MORE: Final = """
SELECT EXISTS (SELECT 1 FROM {one}.entry LEFT JOIN {other}.entry AS same USING (id, leaf) WHERE same.id IS NULL)
    OR EXISTS (SELECT 1 FROM {one}.tenant LEFT JOIN {other}.tenant AS same USING (id, name) WHERE same.id IS NULL)
    OR EXISTS (SELECT 1 FROM {one}.receipt LEFT JOIN {other}.receipt AS same USING (tenant, agent, key, request)
               WHERE same.tenant IS NULL)
"""


def save(connection: apsw.Connection, path: str) -> str | None:
    """Save the database that a connection sees; None if all of its commits are in the file already."""
    if _COUNTED is not None:
        frames, done = connection.wal_checkpoint(mode=_COUNTED)
        if frames == done:
            return None
    saved = next(name for number in count(1) if not os.path.lexists(name := f"{path}{SUFFIX}-{number}"))
    private.make(saved)
    target = apsw.Connection(saved)
    try:
        _copy(connection, target)
        target.execute("PRAGMA journal_mode = DELETE")
    finally:
        target.close()
    return saved


def bring(saved: str, connection: apsw.Connection) -> bool:
    """Bring a saved database into the file of a connection; return False if the file went on without it."""
    authorizer, connection.authorizer = connection.authorizer, None
    try:
        connection.execute("ATTACH ? AS saved", (saved,))
        try:
            file_has_more = connection.execute(_HAS_MORE.format(one="main", other="saved")).get
            saved_has_more = connection.execute(_HAS_MORE.format(one="saved", other="main")).get
        finally:
            connection.execute("DETACH saved")
    finally:
        connection.authorizer = authorizer
    if saved_has_more and file_has_more:
        return False
    if saved_has_more:
        source = apsw.Connection(saved, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            _copy(source, connection)
        finally:
            source.close()
    os.unlink(saved)
    return True


def _copy(source: apsw.Connection, target: apsw.Connection) -> None:
    with target.backup("main", source, "main") as backup:
        backup.step()

"""Storage: what a narrow change to a wide entity costs on disk and in its past, and who waits for a compaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import apsw

import woodrat
from bench.raw import file_bytes
from bench.rows import PAST_READS, READS, Row
from bench.stage import Stage
from bench.timing import Figure, take_turns

WIDTHS = (5, 50, 500)
"""How many fields an entity has."""
CHANGES_MIN, CHANGES_MAX = 400, 4_000
"""How often one field of it is changed."""
AT_ONCE = 50
"""How many changes are written at once."""
BEFORE = 20
"""How many writes a bystander has made before a compaction."""
LOG = ("entry", "body", "entry_kind")
"""The tables that are the log, with the index of one."""


def _wide(fields: dict[str, str], second: int) -> dict[str, Any]:
    at = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    return {"entity_type": "wide", "id": "1", **fields, "$": {"observed_at": at}}


def _changed(path: Path, width: int, changes: int) -> woodrat.Ledger:
    """Return a ledger with one entity, stated whole and then changed field by field."""
    ledger = woodrat.open(path, agent="bench")
    ledger.store(_wide({f"field {number}": f"value {number}" for number in range(width)}, 0))
    _change(ledger, width, range(1, 1 + width))
    _change(ledger, width, range(1 + width, 1 + width + changes))
    return ledger


def _change(ledger: woodrat.Ledger, width: int, numbers: range) -> None:
    for start in numbers[::AT_ONCE]:
        several = range(start, min(start + AT_ONCE, numbers.stop))
        ledger.store([_wide({f"field {number * 7 % width}": f"changed {number}"}, number) for number in several])


def _log_bytes(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = ", ".join(f"'{name}'" for name in LOG)
        return int(connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({names})").get)
    finally:
        connection.close()


def disk(width: int, stage: Stage) -> Figure:
    """Growth of the file for each change of one field, against that of the log's own tables."""
    changes = max(CHANGES_MIN, min(stage.scale.long, CHANGES_MAX))
    sizes = []
    for number, count in enumerate((0, changes)):
        path = stage.folder / f"wide-{width}-{number}.db"
        _changed(path, width, count).close()
        sizes.append((file_bytes(path), _log_bytes(path)))
    (before, log_before), (after, log_after) = sizes
    return Figure((after - before) / changes, (log_after - log_before) / changes, "B")


def as_of(stage: Stage) -> Figure:
    """Reads of a wide entity anywhere in its past, against reads of the present."""
    width = WIDTHS[-1]
    random = Random(0)
    ledger = _changed(stage.folder / "wide-past.db", width, min(stage.scale.long, CHANGES_MAX))
    try:
        head = ledger.position

        def turns() -> Iterator[list[list[int]]]:
            while True:
                yield [[random.randrange(head // 4, head + 1) for _ in range(PAST_READS)]]

        return take_turns(
            turns(),
            lambda positions: [ledger.at(position).show("wide/1") for position in positions],
            lambda positions: [ledger.show("wide/1") for _ in range(READS)],
            per=PAST_READS,
            per_against=READS,
            warm=1,
            seconds=stage.scale.seconds,
        )
    finally:
        ledger.close()


def bystander(stage: Stage) -> Figure:
    """The longest store of somebody else while the file is compacted, against a plain `VACUUM` of it."""
    path = stage.folder / "compacted.db"
    width, changes = WIDTHS[-1], max(CHANGES_MIN, min(stage.scale.long, CHANGES_MAX))
    with _changed(path, width, changes) as ledger:
        waits, done = [0.0], threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set():
                number += 1
                start = perf_counter()
                ledger.store({"entity_type": "bystander", "id": f"{number}"})
                waits.append(perf_counter() - start)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            while len(waits) < BEFORE:
                done.wait(0.001)
            ledger.finish_erasure(compact=True)
        finally:
            done.set()
            thread.join()
    raw = apsw.Connection(str(path))
    start = perf_counter()
    raw.execute("VACUUM")
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    plain = perf_counter() - start
    raw.close()
    return Figure(1_000_000 * max(waits), 1_000_000 * plain, "µs")


def rows() -> tuple[Row, ...]:
    """Return what is measured of wide entities and of a compaction."""
    title = "bytes on disk of one field changed in {width} / of its entry in the log"
    return (
        *(Row(f"disk-{width}", title.replace("{width}", str(width)), 3, partial(disk, width)) for width in WIDTHS),
        Row("as-of-wide", f"as-of of an entity of {WIDTHS[-1]} fields / current show", 5, as_of),
        Row("compact-bystander", "longest store of a bystander during a compaction / a plain VACUUM", 3, bystander),
    )

"""CSV: lists and records as a header line and rows; a value that is itself a list or an object is JSON in its cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

VALUE = "value"
"""The column of a list whose items are plain values."""


def write(rows: Iterable[Any], columns: Sequence[str] | None, stream: TextIO, *, flush: bool = False) -> None:
    """Print rows under their columns: those stated, else every key that any row has, in the order they come up."""
    if columns is None:
        rows = [_row(row) for row in rows]
        columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(item) for name, item in _row(row).items()})
        if flush:
            stream.flush()


def _row(row: Any) -> Mapping[str, Any]:
    return row if isinstance(row, Mapping) else {VALUE: row}


def _cell(item: Any) -> Any:
    """Return a value for a cell: text as it is, nothing for null, everything else as JSON."""
    if item is None or isinstance(item, str):
        return item
    return json.dumps(item, ensure_ascii=False)

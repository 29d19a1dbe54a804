"""CSV: lists and records as a header line and rows; a value that is itself a list or an object is JSON in its cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

VALUE = "value"
"""The column of a list whose items are plain values."""
FIELDS = "fields"
"""The key whose values get columns of their own."""


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
    """Return what stands in a row by its column: of an entity each field in a column of its own, `fields.city`."""
    if not isinstance(row, Mapping):
        return {VALUE: row}
    if not isinstance(row.get(FIELDS), Mapping):
        return row
    flat: dict[str, Any] = {}
    for name, item in row.items():
        flat.update({f"{FIELDS}.{field}": value for field, value in item.items()} if name == FIELDS else {name: item})
    return flat


def _cell(item: Any) -> Any:
    """Return a value for a cell: text as it is, nothing for null, everything else as JSON."""
    if item is None or isinstance(item, str):
        return item
    return json.dumps(item, ensure_ascii=False)

"""Results: the rows of a run in the order they were measured, so that one that ended early can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import woodrat
from bench.growth.case import Case
from bench.growth.row import Row

FILE = "rows.jsonl"


class Results:
    """Measured rows in a folder, one line of JSON each; those of other code are not taken."""

    def __init__(self, folder: Path, *, fresh: bool) -> None:
        self._path = folder / FILE
        self._stamp = _stamp()
        self._rows: dict[str, dict[str, Any]] = {}
        if fresh:
            self._path.unlink(missing_ok=True)
        elif self._path.exists():
            for line in self._path.read_text().splitlines():
                told = json.loads(line)
                if told["stamp"] == self._stamp:
                    self._rows[told["name"]] = told

    def find(self, case: Case, sizes: Sequence[int]) -> Row | None:
        """Return the row of a case as it was measured at the same sizes."""
        told = self._rows.get(case.name)
        return Row.of_json(case, told) if told is not None and told["sizes"] == list(sizes) else None

    def add(self, row: Row) -> None:
        """Keep a row that was measured."""
        with self._path.open("a") as out:
            out.write(json.dumps({**row.to_json(), "stamp": self._stamp}) + "\n")


def _stamp() -> str:
    """Return a digest of the library and of this bench: a row is that of the code it was measured with."""
    digest = hashlib.sha256()
    for folder in (Path(woodrat.__file__).parent, Path(__file__).parent):
        for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.sql")]):
            digest.update(file.read_bytes())
    return digest.hexdigest()

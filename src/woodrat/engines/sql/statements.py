"""Statements: SQL in files, each statement with a name and a line of purpose."""

from __future__ import annotations

import os
from typing import Final

SHARED: Final = ("queries.sql", "comparison.sql")
"""Files of an engine that those of the same name here belong to."""


def text(engine: str, name: str) -> str:
    """Return one of the SQL files of an engine, or of what they share (`sql`)."""
    # As importlib.resources would; but that is slow to import, and every command reads one of these files.
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), engine, name)
    data: bytes = __loader__.get_data(path)  # type: ignore[name-defined]
    return data.decode("utf-8")


def named(content: str) -> dict[str, str]:
    """Return the statements of SQL files, by name."""
    found: dict[str, str] = {}
    for part in content.split("-- name: ")[1:]:
        head, _, body = part.partition("\n")
        statement = "\n".join(line for line in body.splitlines() if not line.startswith("--"))
        assert head.strip() not in found, "a statement is written once"
        found[head.strip()] = statement.strip().rstrip(";")
    return found

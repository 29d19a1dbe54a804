"""Statements: SQL in files, each with a name and a line of purpose.

Those that only add or remove rows are declared here by their columns, once for both engines.
"""

from __future__ import annotations

import os
from typing import Final, Literal, NamedTuple

SHARED: Final = ("queries.sql", "comparison.sql")
"""Files of an engine that those of the same name here belong to."""

Verb = Literal["add", "add or keep", "add or replace", "remove"]
"""Whether rows are added or removed, and which one counts where another has the same key."""


class ForRows(NamedTuple):
    """A statement that is run for each of many rows."""

    verb: Verb
    table: str
    columns: dict[str, str]
    """The columns of a row in their order, with their types. The tenant is none of a table where ids have it."""
    key: int
    """How many of them are the key."""


def _for_rows(verb: Verb, table: str, columns: str, key: int = 0) -> ForRows:
    return ForRows(verb, table, dict(column.split(" ") for column in columns.split(", ")), key)


_ENTRY: Final = (
    "id bigint, log bigint, recorded_at bigint, kind bigint, write bigint, length bigint, "
    "request bytea, commitment bytea, leaf bytea"
)
_INDEX_ROW: Final = "tenant text, name text, key bytea, since bigint, value bytea"
_INDEX_PAST: Final = "tenant text, name text, key bytea, since bigint, until bigint, value bytea"
_ELEMENT: Final = "entity bigint, field text, key bytea, position bigint, part bytea"
FOR_ROWS: Final = {
    "add_entry": _for_rows("add", "entry", _ENTRY),
    "add_body": _for_rows("add", "body", "id bigint, nonce bytea, body bytea"),
    "add_origin": _for_rows("add", "origin", "id bigint, log bigint, position bigint"),
    "add_node": _for_rows("add", "node", "tenant text, height bigint, place bigint, hash bytea"),
    "add_said": _for_rows("add", "said", "id bigint, entity bigint, previous bigint, digest bigint"),
    "add_naming": _for_rows("add or keep", "naming", "target bigint, id bigint", 2),
    "add_late": _for_rows("add", "late", "entity bigint, valid_from text, id bigint"),
    "add_anchor": _for_rows("add", "anchor", "entity bigint, position bigint"),
    "add_kept": _for_rows("add", "kept", "entity bigint, position bigint, last bigint, until text, state bytea"),
    "add_element": _for_rows("add or replace", "element", _ELEMENT, 4),
    "add_index_row": _for_rows("add or keep", "index_row", _INDEX_ROW, 3),
    "add_index_past": _for_rows("add or replace", "index_past", _INDEX_PAST, 4),
    "erase_receipt": _for_rows("remove", "receipt", "tenant text, agent text, key text"),
    "drop_index_row": _for_rows("remove", "index_row", "tenant text, name text, key bytea"),
    "drop_said": _for_rows("remove", "said", "id bigint"),
    "drop_naming": _for_rows("remove", "naming", "target bigint, id bigint"),
    "drop_kept": _for_rows("remove", "kept", "entity bigint"),
    "drop_elements": _for_rows("remove", "element", "entity bigint"),
    "drop_anchors": _for_rows("remove", "anchor", "entity bigint"),
    "drop_late": _for_rows("remove", "late", "entity bigint"),
    "drop_entity": _for_rows("remove", "entity", "id bigint"),
}
"""By name the statements that only add or remove rows; each engine words them as it runs them fastest."""
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    **{name: tuple(rows.columns) for name, rows in FOR_ROWS.items()},
    "erase_body": ("id",),
    "add_entity": ("id", "tenant", "type", "key", "digest", "first", "last", "until", "state_at", "state"),
    "set_entity": ("first", "last", "until", "state_at", "state", "id"),
    "end_index_row": ("until", "tenant", "name", "key", "before"),
}
"""By statement the columns of its rows. SQLite takes them by place, PostgreSQL each as an array by its name."""


def text(engine: str, name: str) -> str:
    """Return one of the SQL files of an engine, or with no engine of those that all share."""
    # As importlib.resources would; but that is slow to import, and every command reads one of these files.
    path = os.path.join(os.path.dirname(__file__), engine, name)
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

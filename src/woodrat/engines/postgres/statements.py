"""Statements as the server takes them, and columns of many rows as the arrays they are sent in."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from woodrat.engines import statements

QUERIES: Final = "queries.sql"
"""The file that holds the SQL of views and writes."""
_PLACE = re.compile(r"(?<![:\w]):([a-z_]+)(::(bigint|bytea|text)\[\])?")
_INT8, _BYTEA, _TEXT = 20, 17, 25
_HEADER: Final = struct.Struct("!iiiii").pack
_LENGTH: Final = struct.Struct("!i").pack
_NUMBER: Final = struct.Struct("!iq").pack
_NULL: Final = _LENGTH(-1)


class Column:
    """Values of one column of many rows, packed as PostgreSQL's binary form of an array."""

    __slots__ = ("data", "oid")

    def __init__(self, element: int, array: int, packed: list[bytes], has_null: bool) -> None:
        self.oid = array
        self.data = b"".join((_HEADER(1, has_null, element, len(packed), 1), *packed))


class NumberColumn(Column):
    """A column of numbers."""

    __slots__ = ()

    def __init__(self, values: Sequence[int | None]) -> None:
        packed = [_NULL if value is None else _NUMBER(8, value) for value in values]
        super().__init__(_INT8, 1016, packed, None in values)


class BytesColumn(Column):
    """A column of bytes."""

    __slots__ = ()

    def __init__(self, values: Sequence[bytes | None]) -> None:
        packed = [_NULL if value is None else _LENGTH(len(value)) + value for value in values]
        super().__init__(_BYTEA, 1001, packed, None in values)


class TextColumn(Column):
    """A column of text."""

    __slots__ = ()

    def __init__(self, values: Sequence[str | None]) -> None:
        encoded = [None if value is None else value.encode() for value in values]
        packed = [_NULL if value is None else _LENGTH(len(value)) + value for value in encoded]
        super().__init__(_TEXT, 1009, packed, None in values)


_COLUMNS: Final[dict[str, Callable[[Any], Column]]] = {
    "bigint": NumberColumn,
    "bytea": BytesColumn,
    "text": TextColumn,
}


class Part:
    """One statement as it is sent; there is one object for each, however often it is sent."""

    __slots__ = ("names", "text")

    def __init__(self, text: str) -> None:
        self.names = tuple(dict.fromkeys(found[0] for found in _PLACE.findall(text)))
        """The names of its values, in the order of their numbers."""
        self.text = _PLACE.sub(lambda found: f"${self.names.index(found[1]) + 1}{found[2] or ''}", text)


class Statement(NamedTuple):
    """A statement that has a name in the files."""

    parts: tuple[Part, ...]
    """What it consists of; mostly one."""
    columns: dict[str, Callable[[Any], Column]]
    """By name what makes an array of each column it takes."""

    def arrays(self, values: dict[str, Sequence[Any]]) -> dict[str, Column]:
        """Return columns of values as it takes them."""
        return {name: make(values[name]) for name, make in self.columns.items()}


def compiled(text: str) -> Statement:
    """Return a statement of the files as it is sent: `:name` becomes the number of a parameter."""
    columns = {name: _COLUMNS[kind] for name, _, kind in _PLACE.findall(text) if kind}
    parts = (part.strip() for part in text.split(";\n"))
    return Statement(tuple(Part(part) for part in parts if part), columns)


@cache
def named(name: str = QUERIES) -> dict[str, str]:
    """Return the statements of one of the engine's files and of the shared one, as they are written."""
    plain = {one: _for_rows(rows) for one, rows in statements.FOR_ROWS.items()} if name == QUERIES else {}
    return plain | statements.named(statements.text("", name) + statements.text("postgres", name))


def _for_rows(rows: statements.ForRows) -> str:
    """Return a statement that adds or removes many rows, whose columns it takes as arrays."""
    table, columns = rows.table, {name: kind for name, kind in rows.columns.items() if name != "tenant"}
    arrays = ", ".join(f":{name}::{kind}[]" for name, kind in columns.items())
    names = ", ".join(columns)
    if rows.verb == "remove" and len(columns) == 1:
        return f"DELETE FROM {table} WHERE tenant = :tenant AND {names} = ANY({arrays})"
    if rows.verb == "remove":  # as `queries.sql` says of keys of more columns
        same = " AND ".join(f"{name} = sought.{name}" for name in columns)
        return (
            f"DELETE FROM {table} USING (\n"
            f"    SELECT found.place FROM unnest({arrays}) WITH ORDINALITY AS sought ({names}, n)\n"
            f"    CROSS JOIN LATERAL (\n"
            f"        SELECT ctid AS place FROM {table} WHERE tenant = :tenant AND {same} OFFSET 0\n"
            f"    ) AS found\n    WHERE n BETWEEN 1 AND 1000000000\n"
            f") AS gone\nWHERE {table}.tenant = :tenant AND {table}.ctid = gone.place"
        )
    adds = f"INSERT INTO {table} (tenant, {names})\nSELECT :tenant, * FROM unnest({arrays})"
    if rows.verb == "add":
        return adds
    key = [name for name in list(rows.columns)[: rows.key] if name != "tenant"]
    others = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    does = "NOTHING" if rows.verb == "add or keep" else f"UPDATE SET {others}"
    return f"{adds}\nON CONFLICT (tenant, {', '.join(key)}) DO {does}"


@cache
def all_compiled(name: str = QUERIES) -> dict[str, Statement]:
    """Return the same as they are sent."""
    return {key: compiled(text) for key, text in named(name).items()}

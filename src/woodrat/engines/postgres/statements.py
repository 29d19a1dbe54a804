"""Statements as psycopg takes them, and columns of many rows as the arrays they are sent in."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from psycopg.adapt import Dumper
from psycopg.pq import Format

from woodrat.engines.sql import statements

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


class _ColumnDumper(Dumper):
    """Sends a column as it is packed. psycopg's own encoder takes 14 microseconds for each value."""

    format = Format.BINARY

    def dump(self, obj: Column) -> bytes:
        return obj.data


class NumberDumper(_ColumnDumper):
    """Sends a column of numbers."""

    oid = 1016


class BytesDumper(_ColumnDumper):
    """Sends a column of bytes."""

    oid = 1001


class TextDumper(_ColumnDumper):
    """Sends a column of text."""

    oid = 1009


_COLUMNS: Final[dict[str, Callable[[Any], Column]]] = {
    "bigint": NumberColumn,
    "bytea": BytesColumn,
    "text": TextColumn,
}


class Statement(NamedTuple):
    """A statement that has a name in the files."""

    parts: tuple[str, ...]
    """What it consists of; mostly one."""
    columns: dict[str, Callable[[Any], Column]]
    """By name what makes an array of each column it takes."""

    def arrays(self, values: dict[str, Sequence[Any]]) -> dict[str, Column]:
        """Return columns of values as it takes them."""
        return {name: make(values[name]) for name, make in self.columns.items()}


def compiled(text: str) -> Statement:
    """Return a statement of the files as psycopg takes it: `:name` becomes a parameter that is sent in binary form."""
    columns = {name: _COLUMNS[kind] for name, _, kind in _PLACE.findall(text) if kind}
    parts = [_PLACE.sub(r"%(\1)b\2", part.strip()) for part in text.split(";\n")]
    return Statement(tuple(part for part in parts if part), columns)


@cache
def named(name: str = "queries.sql") -> dict[str, str]:
    """Return the statements of one of the engine's files and of the shared one, as they are written."""
    return statements.named(statements.text("sql", name) + statements.text("postgres", name))


@cache
def all_compiled(name: str = "queries.sql") -> dict[str, Statement]:
    """Return the same as psycopg takes them."""
    return {key: compiled(text) for key, text in named(name).items()}

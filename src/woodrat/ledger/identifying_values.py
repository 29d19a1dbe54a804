"""Identifying values: which entities were ever said to have which, so that a write can name others that share one.

    sharing    type, rule, value, key    every identifying value an entity was said to have, under the rules in force

Rows are put in the transaction of the write that says a value first. When a schema changes a rule of a type, the
values by that rule are put anew in steps (`refold.py`). They speak of the present alone, and so are all true
from the first position on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.canon.ids import Ref
from woodrat.engines.records import Find, IndexRow
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View
from woodrat.merge.packing import garbled
from woodrat.state import identity, relation
from woodrat.state.observation import STATING

if TYPE_CHECKING:
    from woodrat.ledger.read import Reader
    from woodrat.state.asof import Stored
    from woodrat.state.schema import Schema

SHARING: Final = "sharing"
NOBODY: Final = ""
"""A key that no entity has."""

_make: Final = tuple.__new__

Values = Sequence[tuple[str, str]]
"""Identifying values, as (rule, value)."""


def rows(ref: Ref, values: Iterable[tuple[str, str]]) -> list[IndexRow]:
    """Return the rows that the identifying values of an entity ask for."""
    key = ref.key.encode()
    # As `IndexRow(…)`, in half the time.
    return [
        _make(IndexRow, (SHARING, b"%b%b\0" % (_prefix(ref.type, rule, value), key), 0, b"", None))
        for rule, value in values
    ]


def note(write: Transaction, values: Iterable[tuple[Ref, Values]]) -> None:
    """Note the identifying values said of entities; those that are noted already stay."""
    found = [row for ref, pairs in values for row in rows(ref, pairs)]
    if found:
        write.put(found)


def forget_rule(write: Transaction, type: str, rule: str) -> None:
    """Forget the identifying values noted for a type by a rule, which it no longer has or which has changed."""
    write.drop(SHARING, prefix_of_rule(type, rule))


def forget(write: Transaction, values: Iterable[tuple[Ref, Values]]) -> None:
    """Forget these identifying values of entities."""
    for ref, pairs in values:
        for row in rows(ref, pairs):
            write.drop(SHARING, row.key)


def sharing(
    view: View, values: Iterable[tuple[Ref, Values]], *, about_to: bool = False, limit: int | None = None
) -> Mapping[tuple[str, str, str], Sequence[Ref]]:
    """Return the entities of a type that were said to have identifying values, by (type, rule, value), by key.

    They are given with the entity they are asked for; those that no other entity has are left out. With `about_to` the
    answer is what it will be once they are noted: to ask before costs less, since mostly nobody has any of them. With
    `limit` it names at most so many entities for each value.
    """
    asking: dict[tuple[str, str, str], set[str]] = {}
    for ref, pairs in values:
        for rule, value in pairs:
            asking.setdefault((ref.type, rule, value), set()).add(ref.key)
    if not asking:
        return {}
    prefixes = {_prefix(*asked): asked for asked in asking}
    having: dict[tuple[str, str, str], dict[str, None]] = {}
    for found, _ in view.find(SHARING, list(prefixes), limit=limit):
        beginning, _, key = found[:-1].rpartition(b"\0")
        known = prefixes.get(beginning + b"\0")
        if known is not None:  # else it is a longer value, which holds the byte 0
            having.setdefault(known, {})[_text(key)] = None
    if about_to:
        for asked, keys in asking.items():
            if asked in having or len(keys) > 1:
                having[asked] = dict.fromkeys(sorted({*keys, *having.get(asked, ())}, key=str.encode))
    return {
        asked: [Ref(asked[0], key) for key in keys]
        for asked, keys in having.items()
        if len(keys) > 1 or asking[asked] != keys.keys()
    }


def look_up(values: Iterable[tuple[Ref, Values]], limit: int) -> Find | None:
    """Return what `sharing` looks for with a limit; none without values."""
    prefixes = dict.fromkeys(_prefix(ref.type, *pair) for ref, pairs in values for pair in pairs)
    return Find(SHARING, list(prefixes), limit) if prefixes else None


def said_values(reader: Reader, ref: Ref) -> Values:
    """Return every identifying value that was ever said of an entity, as (rule, value)."""
    return values_of(ref, reader.rules(ref.type).schema, reader.stored((ref,)))


def values_of(ref: Ref, schema: Schema, stored: Iterable[Stored]) -> Values:
    """Return the identifying values that observations of an entity say, each once; a relation has none."""
    if relation.endpoints(ref) is not None:
        return []
    found = dict[tuple[str, str], None]()
    for one in stored:
        if one.observation.op in STATING:
            found.update(dict.fromkeys(identity.shared_values(schema, one.observation.fields)))
    return list(found)


def prefix_of_rule(type: str, rule: str) -> bytes:
    """Return what the keys of all values of a type by one rule begin with."""
    return b"%b\0%b\0" % (type.encode(), rule.encode())


def _prefix(type: str, rule: str, value: str) -> bytes:
    return b"%b\0%b\0%b\0" % (type.encode(), rule.encode(), value.encode())


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except ValueError as error:
        raise garbled(f"The index {SHARING}") from error

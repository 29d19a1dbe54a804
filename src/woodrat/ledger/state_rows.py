"""State rows: which rows of the ordered indexes the state of an entity asks for.

One table says it, for whoever makes the rows and for whoever checks them:

    field      type, field, value, key     every field with a value; of indexed ones also those without, last
    element    type, field, element, key   every element of an indexed collection
    conflict   type, key, field            every field in conflict
    arrival    type, key, field            every field that was decided only by arrival
    identity   type, rule, value, key      every identifying value
    duplicate  type, rule, value           an identifying value that several entities have (made from `identity`)
    unspoken   type, key                   a group whose smallest entity nobody ever spoke of

A group stands under its smallest entity. What is deleted or does not exist has no rows. Long values stand in `field`
and `element` by their beginnings, very long collections by a mark: whoever reads such a row looks at the state too.

A field is indexed if its schema says so (`x-woodrat-index`). Of the others no elements are listed: collections have no
rows, and arrays and objects one with a mark. A schema that says `false` keeps a field out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_bytes
from woodrat.ledger.state_index import Fold, Rows, StateIndex
from woodrat.merge import fold, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import garbled
from woodrat.merge.rules import Rules
from woodrat.state import relation
from woodrat.state.schema import Schema
from woodrat.state.schema_keywords import COLLECTIONS
from woodrat.state.schema_keywords import INDEX as KEYWORD

FIELD, ELEMENT, CONFLICT, ARRIVAL = "field", "element", "conflict", "arrival"
IDENTITY, DUPLICATE = "identity", "duplicate"
UNSPOKEN = "unspoken"
INDEXES: Final = (FIELD, ELEMENT, CONFLICT, ARRIVAL, IDENTITY, DUPLICATE, UNSPOKEN)
"""The indexes of state; the keys of all begin with the type."""
VALUE_BYTES_MAX: Final = 128
"""How much of a value stands in a row."""
ELEMENTS_MAX: Final = 1_000
"""Collections of more elements stand in a row by a mark alone."""
CUT: Final = b"\xff"
"""Ends what is only the beginning of a value."""
ABSENT: Final = b"\x08"
"""Stands for the value of a field that has none; it sorts after all values."""
ARRAY: Final = b"\x06"
"""What the bytes of every array begin with."""
LARGE: Final = ARRAY + CUT
"""Stands for a collection of too many elements, and for any array in a field that is not indexed."""
OBJECT: Final = b"\x07" + CUT
"""Stands for any object in a field that is not indexed."""
MAY_BE: Final = b"?"
"""The value of a row that says less than the fold: whoever finds it looks."""


def type_prefix(type: str) -> bytes:
    """Return what the keys of all rows of a type begin with."""
    return b"%b\0" % type.encode()


def field_prefix(type: str, name: str) -> bytes:
    """Return what the keys of a field in `field` and `element` begin with."""
    return b"%b\0%b\0" % (type.encode(), name.encode())


def value_bytes(value: Json) -> bytes:
    """Return how a value stands in a row: the order of these bytes is that of the values, as far as they go."""
    whole = order_bytes(value)
    return whole if len(whole) <= VALUE_BYTES_MAX else whole[:VALUE_BYTES_MAX] + CUT


def is_cut(value: bytes) -> bool:
    """Return whether the bytes of a value in a row are only its beginning."""
    return len(value) > VALUE_BYTES_MAX or value in (LARGE, OBJECT)


def entry_key(prefix: bytes, value: bytes, key: str) -> bytes:
    """Return the key of a row of `field`, `element` or `identity`; the value's bytes begin no other's."""
    return b"%b%b\0%b\0" % (prefix, value, key.encode())


def split_entry(row: bytes, prefix: bytes) -> tuple[bytes, str]:
    """Return the value's bytes and the entity's key, given what comes before them."""
    value, _, key = row[len(prefix) : -1].rpartition(b"\0")
    return value, text_of(key)


def conflict_key(type: str, key: str, name: str = "") -> bytes:
    """Return the key of a row of `conflict` or `arrival`, or without a field what those of an entity begin with."""
    entity = b"%b\0%b\0" % (type.encode(), key.encode())
    return b"%b%b\0" % (entity, name.encode()) if name else entity


def duplicate_key(type: str, rule: str, value: str) -> bytes:
    """Return the key of a row of `duplicate`: what those of the value in `identity` begin with."""
    return b"%b\0%b\0%b\0" % (type.encode(), rule.encode(), value.encode())


def unspoken_key(ref: Ref) -> bytes:
    """Return the key of a row of `unspoken`."""
    return b"%b\0%b\0" % (ref.type.encode(), ref.key.encode())


def unspoken_ref(row: bytes) -> Ref:
    """Return the entity that a row of `unspoken` names."""
    names = tuple(map(text_of, row[:-1].split(b"\0")))
    if len(names) != 2:
        raise garbled("A row of the state index")
    return Ref(*names)


def value_prefix(row: bytes) -> bytes:
    """Return the key of the row of `duplicate` that belongs to a row of `identity`."""
    return row[:-1].rpartition(b"\0")[0]


def split_names(row: bytes) -> tuple[str, ...]:
    """Return the three names that the key of a row of `conflict`, `arrival` or `duplicate` is made of."""
    names = tuple(map(text_of, row[:-1].split(b"\0")))
    if len(names) != 3:
        raise garbled("A row of the state index")
    return names


def text_of(name: bytes) -> str:
    """Return a name that stands in a row; `Corrupt` if it is none."""
    try:
        return name.decode()
    except ValueError as error:
        raise garbled("A row of the state index") from error


def identifying_values(root: Ref, state: MergeState, rules: Rules) -> set[tuple[str, str]]:
    """Return the identifying values of a fold, as (rule, value); a relation has none."""
    if not state.exists or state.deleted or relation.endpoints(root) is not None:
        return set()
    return set(rules.checker.shared_values(fold.values(state, rules, rules.identifying)))


def is_listed(rules: Rules, name: str) -> bool:
    """Return whether every value of a field that is not indexed has a row."""
    schema = rules.schema
    return schema.policy_of(name).name not in COLLECTIONS and name not in _unlisted(schema)


@lru_cache(maxsize=256)
def _unlisted(schema: Schema) -> frozenset[str]:
    """Return the fields that a schema keeps out."""
    described = schema.properties.items()
    return frozenset(name for name, how in described if isinstance(how, Mapping) and how.get(KEYWORD) is False)


def rows_of(found: Fold) -> Rows:
    """Return the rows that a fold asks for; `duplicate` and `unspoken` follow from those of others."""
    root, state, rules = found.root, found.state, found.rules
    if not found.is_shown:
        return {}
    type, key, rows = root.type, root.key, dict[tuple[str, bytes], bytes]()
    schema = rules.schema
    indexed = schema.indexed
    large = _large(state, rules)
    values = found.values if not large else fold.values(state, rules, state.names.difference(large))
    for name in indexed:
        _add_field(rows, field_prefix(type, name), key, schema.policy_of(name).name in COLLECTIONS, name, values)
    for name, value in values.items():
        if name not in indexed and is_listed(rules, name):
            rows[FIELD, entry_key(field_prefix(type, name), unindexed_bytes(value), key)] = b""
    for name in indexed.intersection(large):
        entry = entry_key(field_prefix(type, name), LARGE, key)
        rows.pop((FIELD, entry_key(field_prefix(type, name), ABSENT, key)), None)
        rows[FIELD, entry] = rows[ELEMENT, entry] = b""
    for name in snapshot.contested(state, rules):
        rows[CONFLICT, conflict_key(type, key, name)] = b""
    for name in fold.by_arrival(state, rules):
        rows[ARRIVAL, conflict_key(type, key, name)] = MAY_BE if name in large else b""
    if relation.endpoints(root) is None:
        if not rules.identifying.isdisjoint(large):
            values = fold.values(state, rules, rules.identifying)
        for rule, value in rules.checker.shared_values(values):
            rows[IDENTITY, entry_key(duplicate_key(type, rule, value), b"", key)] = b""
    return rows


def unindexed_bytes(value: Json) -> bytes:
    """Return how a value stands in a row of a field that is not indexed."""
    if isinstance(value, list):
        return LARGE
    return OBJECT if isinstance(value, dict) else value_bytes(value)


def _alike(one: Rules, other: Rules) -> bool:
    before, after = one.schema, other.schema
    return (one.merging, before.identity, before.properties) == (other.merging, after.identity, after.properties)


INDEX: Final = StateIndex("state", INDEXES, rows_of, _alike, lists_absent=True)
"""What queries, conflicts and duplicates are answered from."""


def _large(state: MergeState, rules: Rules) -> list[str]:
    """Return the collections that have too many parts to look at each time."""
    return [
        name
        for name, held in state.held.items()
        if len(getattr(held, "parts", ())) > ELEMENTS_MAX and rules.schema.policy_of(name).name in COLLECTIONS
    ]


def _add_field(
    rows: dict[tuple[str, bytes], bytes],
    prefix: bytes,
    key: str,
    collects: bool,
    name: str,
    values: Mapping[str, Json],
) -> None:
    """Add the rows of one indexed field."""
    if name not in values:
        rows[FIELD, entry_key(prefix, ABSENT, key)] = b""
        return
    value = values[name]
    if isinstance(value, list) and len(value) > ELEMENTS_MAX:
        rows[FIELD, entry_key(prefix, LARGE, key)] = b""
        if collects:
            rows[ELEMENT, entry_key(prefix, LARGE, key)] = b""
        return
    rows[FIELD, entry_key(prefix, value_bytes(value), key)] = b""
    if collects and isinstance(value, list):
        for element in value:
            rows[ELEMENT, entry_key(prefix, value_bytes(element), key)] = b""

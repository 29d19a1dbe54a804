"""State rows: which rows of the ordered indexes the state of an entity asks for.

One table says it, for steps, rebuilds and checks:

    shown      type, key                   every entity that lists show
    field      type, field, value, key     every field with a value; of indexed ones also those without, last
    element    type, field, element, key   every element of an indexed collection
    conflict   type, key, field            every field in conflict
    arrival    type, key, field            every field that was decided only by arrival
    identity   type, rule, value, key      every identifying value
    duplicate  type, rule, value           an identifying value that several entities have (made from `identity`)
    word       word, type, id              every word of the keys and text values, with the fields it stands in
    root       id                          a group by its smallest entity, of which nothing may ever have been said

A group stands under its smallest entity. What is deleted or does not exist has no rows. Long values stand in `field`
and `element` by their beginnings, very long collections by a mark: whoever reads such a row looks at the state too.
Words of relations, whose keys repeat those of both ends, stand in an index of their own.

A field is indexed if its schema says so (`x-woodrat-index`). Of the others no elements are listed: collections have no
rows, and arrays and objects one with a mark. A schema that says `false` keeps a field out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_bytes
from woodrat.ledger.state_index import Fold, Place, Rows
from woodrat.merge import fold, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import garbled
from woodrat.merge.rules import Rules
from woodrat.state import relation, tokens
from woodrat.state.schema import Schema
from woodrat.state.schema_keywords import COLLECTIONS
from woodrat.state.schema_keywords import INDEX as KEYWORD
from woodrat.state.tokens import Words

SHOWN, FIELD, ELEMENT, CONFLICT, ARRIVAL = "shown", "field", "element", "conflict", "arrival"
IDENTITY, DUPLICATE = "identity", "duplicate"
WORD, RELATION_WORD, ROOT = "word", "word.relation", "root"
INDEXES: Final = (SHOWN, FIELD, ELEMENT, CONFLICT, ARRIVAL, IDENTITY, DUPLICATE, WORD, RELATION_WORD, ROOT)
"""The indexes of state."""
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


def shown_key(ref: Ref) -> bytes:
    """Return the key of a row of `shown`."""
    return b"%b\0%b\0" % (ref.type.encode(), ref.key.encode())


def shown_ref(row: bytes) -> Ref:
    """Return the entity that a row of `shown` names."""
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
    found = Fold(root, state, rules)
    return set(_identifying(found)) if found.is_shown else set()


def lists_all(schema: Schema, name: str) -> bool:
    """Return whether every value of a field that is not indexed has a row."""
    return schema.policy_of(name).name not in COLLECTIONS and name not in _unlisted(schema)


@lru_cache(maxsize=256)
def _unlisted(schema: Schema) -> frozenset[str]:
    """Return the fields that a schema keeps out."""
    described = schema.properties.items()
    return frozenset(name for name, how in described if isinstance(how, Mapping) and how.get(KEYWORD) is False)


def _value_rows(found: Fold, identifying: Sequence[tuple[str, str]]) -> dict[Place, bytes]:
    """Return the rows that a fold asks for, those of its words aside; `duplicate` follows from `identity`."""
    root, state, rules = found.root, found.state, found.rules
    type, key, rows = root.type, root.key, {(SHOWN, shown_key(root)): b""}
    schema = rules.schema
    indexed = schema.indexed
    large = _large(state, rules)
    values = found.values if not large else fold.values(state, rules, state.names.difference(large))
    for name in indexed:
        _add_field(rows, field_prefix(type, name), key, schema.policy_of(name).name in COLLECTIONS, name, values)
    listed, end = _listed_fields(schema), b"\0%b\0" % key.encode()
    for name, value in values.items():
        prefix = listed[name] if name in listed else listed.setdefault(name, _listed_prefix(schema, name))
        if prefix is not None:
            rows[FIELD, prefix + unindexed_bytes(value) + end] = b""
    for name in indexed.intersection(large):
        entry = entry_key(field_prefix(type, name), LARGE, key)
        rows.pop((FIELD, entry_key(field_prefix(type, name), ABSENT, key)), None)
        rows[FIELD, entry] = rows[ELEMENT, entry] = b""
    for name in snapshot.contested(state, rules):
        rows[CONFLICT, conflict_key(type, key, name)] = b""
    for name in fold.by_arrival(state, rules):
        rows[ARRIVAL, conflict_key(type, key, name)] = MAY_BE if name in large else b""
    for rule, value in identifying:
        rows[IDENTITY, entry_key(duplicate_key(type, rule, value), b"", key)] = b""
    return rows


@lru_cache(maxsize=256)
def _listed_fields(schema: Schema) -> dict[str, bytes | None]:
    """Return what `_listed_prefix` says of the fields that were met so far."""
    return {}


def _listed_prefix(schema: Schema, name: str) -> bytes | None:
    """Return what the rows of a field that is not indexed begin with; None if it has none."""
    is_listed = name not in schema.indexed and lists_all(schema, name)
    return field_prefix(schema.type, name) if is_listed else None


def unindexed_bytes(value: Json) -> bytes:
    """Return how a value stands in a row of a field that is not indexed."""
    if isinstance(value, list):
        return LARGE
    if isinstance(value, dict):
        return OBJECT
    whole = order_bytes(value)
    return whole if len(whole) <= VALUE_BYTES_MAX else whole[:VALUE_BYTES_MAX] + CUT


def are_alike(one: Rules, other: Rules) -> bool:
    """Return whether entities of a type have the same rows under two sets of rules."""
    before, after = one.schema, other.schema
    return (one.merging, before.identity, before.properties) == (other.merging, after.identity, after.properties)


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


# Words


def words_of(found: Fold) -> Words:
    """Return the tokens of a fold; one that is deleted or does not exist has none, nor does a deleted member's key."""
    return _words(found, _identifying(found)) if found.is_shown else {}


def _identifying(found: Fold) -> Sequence[tuple[str, str]]:
    """Return the identifying values of a fold, as (rule, value); a relation has none."""
    rules = found.rules
    if not rules.identifying or relation.endpoints(found.root) is not None:
        return ()
    return rules.checker.shared_values(found.values)


def _words(found: Fold, identifying: Sequence[tuple[str, str]]) -> Words:
    state = found.state
    members = [member for member in state.members if not fold.is_deleted(state, member)] if state.markers else None
    names = [value for rule, value in identifying if "+" not in rule]  # values of one field are what people type
    return tokens.words(members or state.members, names, found.values, found.rules.schema.searchable)


def _word_rows(found: Fold, identifying: Sequence[tuple[str, str]]) -> dict[Place, bytes]:
    """Return the rows that a fold asks for because of its words."""
    root = found.root
    index = WORD if relation.endpoints(root) is None else RELATION_WORD
    end = b"\0%b\0%b" % (root.type.encode(), id_bytes(root.id))
    words = _words(found, identifying).items()
    rows = {(index, token.encode() + end): _fields_bytes(fields) for token, fields in words}
    if len(found.state.members) > 1:
        rows[ROOT, id_bytes(root.id)] = str(root).encode()
    return rows


@lru_cache(maxsize=4_096)
def _fields_bytes(fields: tuple[str, ...]) -> bytes:
    return "\0".join(fields).encode()


@lru_cache(maxsize=4_096)
def fields_of(value: bytes) -> frozenset[str]:
    """Return the fields that a word stands in, given the value of its row."""
    return frozenset(text_of(value).split("\0")) if value else frozenset()


def _have_same_words(one: Fold, other: Fold) -> bool:
    """Return whether two folds of a lone entity, both shown, have the same words for certain."""
    if one.rules is not other.rules:
        return False
    before, after = one.values, other.values
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old is not new and old != new and not (type(old) in _WORDLESS and type(new) in _WORDLESS):
            return False
    return True


_WORDLESS: Final = frozenset({int, float, bool, type(None)})


class FoldRows:
    """The rows that a fold asks for; words that an earlier fold of the entity has too are taken from there."""

    __slots__ = ("fold", "values", "words")

    def __init__(self, found: Fold, before: FoldRows | None = None, *, words: bool = True) -> None:
        self.fold = found
        self.values: Rows = {}
        """The rows of its values, and whatever else is no word."""
        self.words: Rows = {}
        """The rows of its words."""
        if found.is_shown:
            identifying = _identifying(found)
            self.values = _value_rows(found, identifying)
            if not words:
                return
            has_same = before is not None and before.fold.is_shown and _have_same_words(before.fold, found)
            self.words = before.words if before is not None and has_same else _word_rows(found, identifying)


# Ids of entities, as bytes that sort as ids do

ID_PREFIX: Final = "ent_"
"""What ids of entities begin with; rows leave it out."""
ID_BYTES: Final = 17
"""How many bytes the id of an entity takes in a row."""
_ID_CHARACTERS: Final = 26
_ID_SHIFT: Final = ID_BYTES * 8 - _ID_CHARACTERS * 5
# Texts sort digits before letters, base32 counts them after: rows sort as the texts do.
_CHARACTERS: Final = "234567abcdefghijklmnopqrstuvwxyz"
_TO_DIGITS: Final = str.maketrans(_CHARACTERS, "0123456789abcdefghijklmnopqrstuv")
_PAIRS: Final = [one + other for one in _CHARACTERS for other in _CHARACTERS]
_PLACES: Final = range(5 * _ID_CHARACTERS - 10, -10, -10)


def id_bytes(id: str) -> bytes:
    """Return the id of an entity as it stands in a row."""
    return (int(id[len(ID_PREFIX) :].translate(_TO_DIGITS), 32) << _ID_SHIFT).to_bytes(ID_BYTES, "big")


def id_text(id: bytes) -> str:
    """Return the id of an entity, given how it stands in a row."""
    number = int.from_bytes(id, "big") >> _ID_SHIFT
    return ID_PREFIX + "".join([_PAIRS[number >> at & 1023] for at in _PLACES])

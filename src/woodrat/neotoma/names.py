"""Naming: maps Neotoma's names of types and entities to names here.

An entity of a type without a schema is identified by an identifying value, if its record has one. Otherwise the record
is a separate entity, identified by all its values, until a merge: two things that happen to share a value are never
treated as one. The order of names in a record plays no part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form, ids, moment
from woodrat.canon.digest import base32, digest
from woodrat.canon.ids import ID_CHARACTERS
from woodrat.errors import NotFound, Refused, shown
from woodrat.ledger import redaction
from woodrat.neotoma import types
from woodrat.state import packs
from woodrat.state.identity import quick_key
from woodrat.state.identity_rules import key_by
from woodrat.state.redaction import REDACTED
from woodrat.state.schema import OPEN

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.state.schema import Schema

IDS: Final = ("id", "uuid", "external_id")
"""Fields that identify an entity of any type."""
NAMES: Final = ("email", "name", "full_name", "title", "url")
"""Fields that identify an entity of a type with names."""
TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "tool_invocation": ("turn_key", "tool_name", "invoked_at"),
    "tool_invocation_failure": ("turn_key", "tool_name", "error_class", "observed_at"),
    "context_event": ("turn_key", "event", "observed_at"),
}
"""Types of its hooks that several fields identify together, if present."""
FRAGMENTS: Final = "raw_fragments"
"""The field for values with another type than in the pack."""
FIRST: Final[Mapping[str, tuple[str, ...]]] = {"conversation": ("conversation_id", "session_id")}
"""Types of its hooks that one of these fields identifies, before a title that many share."""
ISSUERS: Final = ("vendor_name", "vendor", "merchant_name", "merchant", "supplier", "seller", "issuer", "account_id")
"""Fields that name the issuer of a number, since issuers reuse numbers: the first one present belongs to the key."""
UNNAMED: Final = frozenset(
    {"bank_transaction", "expense", "invoice", "order", "payment", "purchase", "receipt", "transaction", "transfer"}
)
"""Types whose things have no name: names, titles and addresses in them describe, and many share them."""
DELIVERY: Final = frozenset(
    {
        *("data_source", "extracted_at", "idempotency_key", "import_date", "import_source_file", "imported_at"),
        *("ingested_at", "interpretation_id", "interpreted_at", "observation_source", "provenance", "recorded_at"),
        *("schema_version", "source_file", "source_id", "source_priority", "specificity_score", "stored_at", "user_id"),
    }
)
"""Fields about the origin of a record, not about its subject."""
NOTHING: Final = frozenset(
    {"", "-", "?", "n/a", "na", "nil", "no name", "none", "null", "tbd", "undefined", "unknown", "unnamed", "untitled"}
)
"""Texts that mean "no value"; none of them identifies anything."""

FOREIGN_ID: Final = "neotoma_id"
"""The field that holds the id an imported entity had in Neotoma."""

TYPES_MAX: Final = 1_024
"""Size of the cache of type names in their form here."""

_APART = re.compile(r"[^a-z0-9]+")
_FOREIGN = re.compile(r"ent_[0-9a-f]{24}")
_LISTS: Final = ("entities", "relationships")
_ENTITIES: Final = ("entity_id", "source_entity_id", "target_entity_id", "from_entity_id", "to_entity_id", "node_id")
_IDS: Final = (*_ENTITIES, "identifier", "target_id", "target_index")
"""Arguments that name an entity by its id."""
_NAMING: Final = frozenset(_IDS)


class Named(NamedTuple):
    """A record with its key, and how that was found."""

    record: Any
    """What is stored."""
    basis: str | None = None
    """`target_id`, `stated`, `schema_rule`, `identifier` or `record`; empty for a refused record."""
    rule: str | None = None
    """The fields whose values make the key, if any."""
    misfits: tuple[str, ...] = ()
    """Fields whose values have another type than in the pack, and so are kept separately."""

    def identity(self) -> dict[str, str]:
        """Return how the key was found, for an answer."""
        told = {"identity_basis": self.basis, "identity_rule": self.rule}
        return {name: value for name, value in told.items() if value is not None}


@lru_cache(maxsize=TYPES_MAX)
def type_of(stated: str) -> str:
    """Return a type in its form here: in lower case, with `_` between its words."""
    return _APART.sub("_", stated.lower()).strip("_") or stated


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with types in their form here."""
    told = dict(given)
    if isinstance(told.get("entity_type"), str):
        told["entity_type"] = type_of(told["entity_type"])
    if isinstance(told.get("entities"), list):
        told["entities"] = [_typed(entity) for entity in told["entities"]]
    return told


def known(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments; an id that can be of no entity is not found."""
    for name in _ENTITIES:
        stated = given.get(name)
        if name == "node_id" and given.get("node_type") == "source":
            continue
        if isinstance(stated, str) and not ids.is_id("entity", stated) and "/" not in stated:
            remedy = "`entities/query` lists them."
            raise NotFound(f"{name} {shown(stated)}: unknown entity. Nothing was done. {remedy}")
    return given


def has_foreign_ids(given: Mapping[str, Any]) -> bool:
    """Return whether arguments name an entity by the id it had in Neotoma."""
    return any(_is_foreign(part[name]) for part in _naming(given) for name in _NAMING & part.keys())


def resolved(past: Past, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with Woodrat's ids for imported entities; other ids unchanged."""

    def ours(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        found = {
            name: past.query(where={FOREIGN_ID: part[name]}, limit=1) for name in _IDS if _is_foreign(part.get(name))
        }
        return {**part, **{name: page.items[0].entity.id for name, page in found.items() if page.items}}

    lists = {name: [ours(part) for part in given[name]] for name in _LISTS if isinstance(given.get(name), list)}
    told: dict[str, Any] = {**ours(dict(given)), **lists}
    return told


def _naming(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield arguments, and the records and relationships among them."""
    yield given
    for name in _LISTS:
        yield from (part for part in given.get(name) or () if isinstance(part, dict))


def _is_foreign(stated: Any) -> bool:
    return isinstance(stated, str) and _FOREIGN.fullmatch(stated) is not None


def _typed(entity: Any) -> Any:
    if isinstance(entity, dict) and isinstance(entity.get("entity_type"), str):
        return {**entity, "entity_type": type_of(entity["entity_type"])}
    return entity


def record(ledger: Ledger, entity: Any) -> Named:
    """Return a record with its key, where Neotoma finds one by other fields than we do."""
    if not isinstance(entity, dict) or not isinstance(entity.get("entity_type"), str):
        return Named(entity)  # the ledger says what is wrong with it
    # What the ledger hides is hidden before anything looks at it: a key would tell of it.
    said: dict[str, Any] = dict(redaction.sent(entity, ledger.context.hidden))  # type: ignore[call-overload]
    kind = said["entity_type"]
    target = said.pop("target_id", None)
    stated: dict[str, Any] = said["$"] if isinstance(said.get("$"), dict) else {}
    if isinstance(target, str):
        return Named({**said, "$": {**stated, "key": ledger.show(target).entity.key}}, "target_id")
    schema = types.of_pack(ledger, kind)
    if (when := said.get("observed_at")) is not None and "observed_at" not in stated and _is_time(when):
        # It is the time of the observation; a few published types have it as a field, too.
        if schema is None or "observed_at" not in schema.properties:
            del said["observed_at"]
        stated = {**stated, "observed_at": when}
        said["$"] = stated
    own = types.own_schema(ledger, kind)
    if own is not None:
        # Callers send null for "no value"; a schema has no null unless it says so.
        said = {name: value for name, value in said.items() if value is not None}
        fitting = [each.text for each in own.identity if key_by(each, said) is not None]
        if "key" in stated:
            return Named(said, "stated")
        if fitting:
            return Named(said, "schema_rule", fitting[0])
    fields = {name: value for name, value in said.items() if name not in ("entity_type", "$")}
    key, basis, rule = ("", "stated", None) if "key" in stated else _identity(kind, fields)
    if basis is None:
        return Named(said)
    apart: dict[str, Any] = {}
    if schema is not None:
        apart = misfits(schema, fields)
        said = {name: value for name, value in said.items() if value is not None and name not in apart}
        said |= {FRAGMENTS: apart} if apart else {}
    if basis != "stated":
        # The ledger mostly finds the same key, and is fast for a record without one.
        rules = OPEN(kind) if own is None and schema is None else schema
        if stated or rules is None or quick_key(rules, said) != key:
            said = {**said, "$": {**stated, "key": key}}
    return Named(said, basis, rule, tuple(sorted(apart)))


def key_of(ledger: Past, kind: str, fields: Mapping[str, Any]) -> str | None:
    """Return the key of a record from its fields alone; None for an empty record."""
    own = types.own_schema(ledger, kind)
    for rule in () if own is None else own.identity:
        if (key := key_by(rule, fields)) is not None and not ids.ref_faults(kind, key):
            return key
    return _identity(kind, fields)[0] or None


def _is_time(value: Any) -> bool:
    """Return whether a value is a time that an observation can have."""
    return isinstance(value, str) and moment.fault(value) is None


def _identity(kind: str, fields: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """Return the key of a record, the method and the fields; no method for an empty record."""
    for rule in packs.identity(packs.NEOTOMA).get(kind, ()):
        names = [part.field for part in rule.parts]
        key = key_by(rule, {name: fields[name] for name in names if name in fields and _identifies(fields[name])})
        if key is not None and not ids.ref_faults(kind, key):
            return key, "schema_rule", rule.text
    found = identifying(kind, fields)
    if found is not None:
        return found[0], "identifier", found[1]
    own = record_key(fields)
    return ("", None, None) if own is None else (own, "record", None)


def misfits(schema: Schema, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with another type than in the pack's schema: they are kept separately."""
    found: dict[str, Any] = {}
    if schema.takes(fields):
        return found  # if the record is valid, every field is
    for name, value in fields.items():
        if value is not None and name in schema.properties:
            one = str(schema.policy_of(name)) in packs.COLLECTIONS and not isinstance(value, list)
            if schema.claim_fault(name, [value] if one else value) is not None:
                found[name] = value
    return found


def identifying(kind: str, fields: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key that an identifying value makes of a record of a type without a schema, and its fields.

    A value that cannot be a key, such as text of several lines, does not identify.
    """
    sound = {name: value for name, value in fields.items() if _identifies(value)}
    return next(((key, rule) for key, rule in _keys(kind, sound) if not ids.ref_faults(kind, key)), None)


def _keys(kind: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys that values make, each with its fields, in order of preference."""
    together = [name for name in TOGETHER.get(kind, ()) if name in fields]
    if len(together) > 1:
        yield form.serialise([fields[name] for name in together]).decode(), "+".join(together)
    is_turn = kind in ("message", "turn") or kind.endswith(("_message", "_turn"))
    for name in ("canonical_name", *FIRST.get(kind, (f"{kind}_id",)), *(("turn_key", "message_id") if is_turn else ())):
        if name in fields:
            yield _text(fields[name]), name
    for name in IDS:
        if name in fields:
            yield (_text(fields[name]) if name == "id" else _spelled(name, fields[name])), name
    for name in (f"{kind}_number", "number") if kind in UNNAMED else (f"{kind}_number",):
        if name in fields:
            issuer = next((each for each in ISSUERS if each in fields), None)
            if issuer is not None:
                yield _spelled(name, fields[name], fields[issuer]), f"{name}+{issuer}"
            else:
                yield _spelled(name, fields[name]), name
    for name in () if is_turn or kind in UNNAMED else NAMES:
        if name in fields:
            yield (_spelled(name, fields[name]) if name in ("full_name", "url") else _text(fields[name])), name


def record_key(fields: Mapping[str, Any]) -> str | None:
    """Return the key of a record without identity: a digest of its content, whatever its origin.

    None for an empty record, or one that a ledger would refuse.
    """
    said = {name: value for name, value in fields.items() if name not in DELIVERY and value is not None}
    try:
        return f"record:{base32(digest('neotoma_record', form.encode(said)))[:ID_CHARACTERS]}" if said else None
    except Refused:
        return None  # the ledger reports its faults


def _identifies(value: Any) -> bool:
    """Return True if a value can identify anything: a number, or text that means a value."""
    if isinstance(value, str):
        return value != REDACTED and value.strip().lower() not in NOTHING
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    """Return the key from one value, by the same rules as elsewhere in Woodrat."""
    return value if isinstance(value, str) else form.serialise(value).decode()


def _spelled(name: str, *values: Any) -> str:
    """Return a key with the name of its field, so that the same text in another field makes another key."""
    return form.serialise([name, *values]).decode()

"""Ids: names of things, and the references that people type.

A *name* is a prefix and all 52 base32 characters of a digest; an *id* is the prefix and the first 26 of them, for
people. Tables and equality use the digest itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, NewType

import orjson

from woodrat.canon.digest import base32, digest, unbase32
from woodrat.canon.form import serialise
from woodrat.errors import Fault, Refused, shown

ObservationId = NewType("ObservationId", str)
EntityId = NewType("EntityId", str)
SourceId = NewType("SourceId", str)
SchemaId = NewType("SchemaId", str)
RunId = NewType("RunId", str)
InterpretationId = NewType("InterpretationId", str)
TenantId = NewType("TenantId", str)
Position = NewType("Position", int)
Digest = NewType("Digest", bytes)

PREFIXES: Final[Mapping[str, str]] = MappingProxyType(
    {"observation": "obs_", "source": "src_", "schema": "sch_", "entity": "ent_"}
)
"""The prefix of each kind that is named by its content."""

DIGEST_BYTES: Final = 32
NAME_CHARACTERS: Final = 52
"""Base32 characters of a whole digest."""
ID_CHARACTERS: Final = 26
"""Base32 characters of an id: 130 bits, enough to be unique, short enough to read."""

TYPE_CHARACTERS_MAX: Final = 64
"""Longest entity type."""
KEY_BYTES_MAX: Final = 1024
"""Longest entity key, in UTF-8."""
TENANT_BYTES_MAX: Final = 128
"""Longest tenant."""
AGENT_BYTES_MAX: Final = 256
"""Longest agent, in UTF-8."""
REFS_MAX: Final = 20_000
"""Number of entity digests that a process caches."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [one + other for one in _LETTERS for other in _LETTERS]
"""Two characters of base32 by their 10 bits: ids are spelled so often that going by single characters shows."""
_DIGITS_LAST = str.maketrans("234567", "{|}~\x7f\x80")
_PLACES = tuple(range(5 * ID_CHARACTERS - 10, -1, -10))

_TYPE = re.compile("[a-z][a-z0-9_]*")
_TENANT = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*")
_ID = re.compile("[a-z2-7]{26}")
# C0, DEL and C1 by code point: Unicode tables differ between Python versions, these ranges never will.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def name(kind: str, digest: bytes) -> str:
    """Return the full name of a digest: the prefix of its kind and 52 characters."""
    assert len(digest) == DIGEST_BYTES, f"a digest has {DIGEST_BYTES} bytes, not {len(digest)}"
    return PREFIXES[kind] + base32(digest)


def id_of(kind: str, digest: bytes) -> str:
    """Return the id of a digest: the prefix of its kind and the first 26 characters of its name."""
    assert len(digest) == DIGEST_BYTES, f"a digest has {DIGEST_BYTES} bytes, not {len(digest)}"
    bits = int.from_bytes(digest[:17], "big") >> 6  # 26 characters of 5 bits each
    return PREFIXES[kind] + "".join([_PAIRS[bits >> place & 1023] for place in _PLACES])


def digest_order(id: str) -> str:
    """Return the sort key that puts ids in the order of their digests: in base32 digits come after letters."""
    return id.translate(_DIGITS_LAST)


def digest_of(kind: str, name: str) -> bytes | None:
    """Return the digest that a full name spells, or None when it is not exactly a name of that kind."""
    prefix = PREFIXES[kind]
    if len(name) != len(prefix) + NAME_CHARACTERS or not name.startswith(prefix):
        return None
    return unbase32(name[len(prefix) :])


def is_id(kind: str, text: str) -> bool:
    """Return True if `text` has the shape of an id of this kind; a full name has not."""
    prefix = PREFIXES[kind]
    return text.startswith(prefix) and _ID.fullmatch(text, len(prefix)) is not None


class Ref(NamedTuple):
    """One entity, as people write it: `contact/ada@example.com`. Constructed by `parse_ref` or `ref_faults` after their
    checks.
    """

    type: str
    """The entity type, such as `contact`."""
    key: str
    """The key of the entity within its type; may itself hold `/`."""

    @property
    def digest(self) -> Digest:
        """The digest of kind `entity` over canonical `{"key","type"}`."""
        return _entity_digest(self)

    @property
    def id(self) -> EntityId:
        """The id people see, `ent_` and 26 characters."""
        return _entity_id(self)

    def to_json(self) -> dict[str, str]:
        """Return the reference as bodies of the log state it; elsewhere it is its text."""
        return {"key": self.key, "type": self.type}

    def __str__(self) -> str:
        return f"{self.type}/{self.key}"


@lru_cache(maxsize=REFS_MAX)
def _entity_id(ref: Ref) -> EntityId:
    return EntityId(id_of("entity", ref.digest))


@lru_cache(maxsize=REFS_MAX)
def _entity_digest(ref: Ref) -> Digest:
    type, key = ref
    try:
        body = orjson.dumps({"key": key, "type": type})  # nothing but text, in the order of RFC 8785
    except orjson.JSONEncodeError:
        body = serialise(ref.to_json())
    return Digest(digest("entity", body))


@lru_cache(maxsize=REFS_MAX)
def _quick_ref(text: str) -> Ref | None:
    """Return the reference a text writes, or None when something is wrong with it."""
    kind, slash, key = text.partition("/")
    return Ref(kind, key) if slash and not ref_faults(kind, key) else None


def parse_ref(text: object, path: str = "") -> Ref:
    """Return the reference that `text` writes as type, `/`, key; raise `Refused` with everything wrong with it.

    The first `/` separates them: types contain none, keys may contain many.
    """
    if type(text) is str and (quick := _quick_ref(text)) is not None:
        return quick
    if type(text) is not str:
        raise Refused([Fault(path, f"expected text, got {shown(text)}", "Send a reference as TYPE/KEY.")])
    kind, slash, key = text.partition("/")
    if not slash:
        problem = f"expected TYPE/KEY, got {shown(text)}"
        raise Refused([Fault(path, problem, "Write the type, a slash and the key, such as contact/ada.")])
    if found := ref_faults(kind, key, path):
        raise Refused(found)
    return Ref(kind, key)


def ref_faults(type: object, key: object, path: str = "") -> list[Fault]:
    """Return everything wrong with an entity's type and key; the faults lie at `/type` and `/key` under `path`."""
    return type_faults(type, path + "/type") + text_faults(key, path + "/key", KEY_BYTES_MAX, "key")


def type_faults(type: object, path: str = "") -> list[Fault]:
    """Return everything wrong with an entity type."""
    remedy = "Use a lower-case letter, then lower-case letters, digits and _, such as tool_config."
    if not isinstance(type, str):
        return [Fault(path, f"expected a type as text, got {shown(type)}", remedy)]
    found = []
    if not _TYPE.fullmatch(type):
        found.append(Fault(path, f"{shown(type)} is not a type", remedy))
    if len(type) > TYPE_CHARACTERS_MAX:
        problem = f"the type has {len(type)} characters, where {TYPE_CHARACTERS_MAX} is the limit"
        found.append(Fault(path, problem, "Use a shorter type."))
    return found


def tenant_faults(tenant: object, path: str = "tenant") -> list[Fault]:
    """Return everything wrong with a tenant."""
    remedy = "Use a letter or digit of ASCII, then letters, digits, '.', '_' and '-', such as acme-eu."
    if not isinstance(tenant, str):
        return [Fault(path, f"expected a tenant as text, got {shown(tenant)}", remedy)]
    found = []
    if not _TENANT.fullmatch(tenant):
        found.append(Fault(path, f"{shown(tenant)} is not a tenant", remedy))
    if len(tenant) > TENANT_BYTES_MAX:  # a tenant within the pattern is ASCII, so characters are bytes
        problem = f"the tenant has {len(tenant)} characters, where {TENANT_BYTES_MAX} is the limit"
        found.append(Fault(path, problem, "Use a shorter tenant."))
    return found


def agent_faults(agent: object, path: str = "agent") -> list[Fault]:
    """Return everything wrong with an agent."""
    return text_faults(agent, path, AGENT_BYTES_MAX, "agent")


def text_faults(text: object, path: str, bytes_max: int, what: str) -> list[Fault]:
    if not isinstance(text, str):
        return [Fault(path, f"expected the {what} as text, got {shown(text)}", f"Send the {what} as text.")]
    if not text:
        article = "an" if what[0] in "aeio" else "a"
        return [Fault(path, f"the {what} is empty", f"Send {article} {what} of at least one character.")]
    found = []
    if control := _CONTROL.search(text):
        problem = f"the {what} {shown(text)} holds the control character U+{ord(control[0]):04X}"
        found.append(Fault(path, problem, "Send it without control characters."))
    if _SURROGATE.search(text):
        problem = f"the {what} {shown(text)} holds half a surrogate pair, which is not a character"
        found.append(Fault(path, problem, "Send whole characters."))
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > bytes_max:
        problem = f"the {what} has {size} bytes in UTF-8, where {bytes_max} is the limit"
        found.append(Fault(path, problem, f"Use a shorter {what}."))
    return found

"""Packs: sets of schemas that a ledger adds by name, such as the types that another product publishes.

A pack is a file of facts: fields by type, identity rules, and merge policies other than `latest`. The JSON Schemas are
made from them here. If a built-in type has the name, the pack's version extends it: every built-in field keeps its
type, collections stay collections, formats are not checked, and the pack's policies apply to the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from ...canon import form
from .. import builtin
from ..identity_rules import IdentityRule, parse_rules
from ..schema import Schema, stored

NEOTOMA: Final = "neotoma"
"""The types that Neotoma publishes."""
NAMES: Final = (NEOTOMA,)
"""Every pack; each has a file of its name beside this one."""

COLLECTIONS: Final = frozenset({"union", "append"})
"""Policies of fields that hold several elements."""
_ADDRESSES: Final = frozenset({"email", "reporter_email"})
"""Identifying fields without regard to letter case."""
_TYPES: Final[Mapping[str, Any]] = {"date": ["string", "integer"]}
"""Types of the facts under their JSON Schema names, if these differ: a date may be given in seconds."""
_UNIDENTIFIED: Final = [["id"]]
"""The rule of types without identity of their own: on Woodrat's surfaces a record of them states an id or a key."""


@lru_cache(maxsize=len(NAMES))
def facts(pack: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the facts of a pack, by type."""
    from importlib import resources  # slow to import, and few commands need a pack

    text = resources.files(__package__).joinpath(f"{pack}.json").read_bytes()
    found: dict[str, Any] = form.parse(text)  # type: ignore[assignment]
    return MappingProxyType(found)


@lru_cache(maxsize=len(NAMES))
def schemas(pack: str) -> Mapping[str, Schema]:
    """Return the schemas of a pack by type; a test checks every one of them, so they are trusted like built-in ones."""
    return MappingProxyType(
        {type: stored(form.encode({"schema": document(pack, type), "type": type})) for type in facts(pack)}
    )


@lru_cache(maxsize=len(NAMES))
def identity(pack: str) -> Mapping[str, tuple[IdentityRule, ...]]:
    """Return the identity rules by type: the pack's own, also for built-in types."""
    found = {}
    for type, said in facts(pack).items():
        rules, faults = parse_rules([_parts(rule) for rule in said["identity"] or _UNIDENTIFIED], "")
        assert not faults, f"the rules of {type} are sound"
        found[type] = rules
    return MappingProxyType(found)


def document(pack: str, type: str) -> dict[str, Any]:
    """Return the JSON Schema of one type of a pack."""
    said = facts(pack)[type]
    policies = said.get("merge", {})
    rules = [_parts(rule) for rule in said["identity"] or _UNIDENTIFIED]
    found: dict[str, Any] = {"title": type, "type": "object", "properties": {}, "x-woodrat-version": 1}
    if type in builtin.TYPES:
        found = _extensible(builtin.document(type))
        rules = found["x-woodrat-identity"] + [rule for rule in rules if rule not in found["x-woodrat-identity"]]
    properties = found["properties"]
    for kind, names in said["fields"].items():
        for name in names:
            properties.setdefault(name, {"type": _TYPES.get(kind, kind)})
    for name, policy in policies.items():
        described = properties[name]
        if described.get("x-woodrat-merge") not in COLLECTIONS:
            described["x-woodrat-merge"] = policy
            if policy in COLLECTIONS:
                described["type"] = "array"
    return {**found, "x-woodrat-identity": rules}


@lru_cache(maxsize=len(NAMES))
def text_collections(pack: str) -> Mapping[str, frozenset[str]]:
    """Return the fields that are text in the pack and collections in a built-in type of the name."""
    found = {}
    for type in facts(pack).keys() & set(builtin.TYPES):
        texts = facts(pack)[type]["fields"].get("string", ())
        held = builtin.schemas()[type]
        found[type] = frozenset(name for name in texts if str(held.policy_of(name)) in COLLECTIONS)
    return MappingProxyType(found)


def _parts(rule: list[str]) -> list[Any]:
    fold = ["trim-1", "ascii-lower-1"]
    return [{"field": name, "fold": fold} if name in _ADDRESSES else name for name in rule]


def _extensible(document: dict[str, Any]) -> dict[str, Any]:
    """Return a built-in schema as the version after it, without formats."""
    found = {**document, "x-woodrat-version": document["x-woodrat-version"] + 1}
    found["properties"] = {
        name: {keyword: value for keyword, value in described.items() if keyword != "format"}
        for name, described in document["properties"].items()
    }
    return found

"""Naming: how Neotoma's clients name types and entities, and what that is called here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import NotFound, WoodratError, shown

if TYPE_CHECKING:
    from woodrat.ledger.ledger import Ledger

NAMING: Final = ("id", "email", "name", "title")
"""Fields that identify an entity of a type without a schema."""
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "tool_invocation": ("turn_key", "tool_name", "invoked_at"),
    "tool_invocation_failure": ("turn_key", "tool_name", "error_class", "observed_at"),
    "context_event": ("turn_key", "event", "observed_at"),
}
"""Types of its hooks that several fields identify together, as far as they are there."""
_FIRST: Final[Mapping[str, tuple[str, ...]]] = {"conversation": ("conversation_id", "session_id")}
"""Types of its hooks that one of these fields identifies, before a title that many share."""
_APART = re.compile(r"[^a-z0-9]+")
_ENTITIES: Final = ("entity_id", "source_entity_id", "target_entity_id", "from_entity_id", "to_entity_id")


def type_of(stated: str) -> str:
    """Return a type as it is written here: in lower case, with `_` between its words."""
    return _APART.sub("_", stated.lower()).strip("_") or stated


def known(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with types as they are written here; an id that can be of no entity is not found."""
    told = dict(given)
    for name in _ENTITIES:
        stated = told.get(name)
        if isinstance(stated, str) and not ids.is_id("entity", stated) and "/" not in stated:
            remedy = "`entities/query` shows those there are."
            raise NotFound(f"{name} {shown(stated)}: there is no such entity. Nothing was done. {remedy}")
    if isinstance(told.get("entity_type"), str):
        told["entity_type"] = type_of(told["entity_type"])
    if isinstance(told.get("entities"), list):
        told["entities"] = [_typed(entity) for entity in told["entities"]]
    return told


def _typed(entity: Any) -> Any:
    if isinstance(entity, dict) and isinstance(entity.get("entity_type"), str):
        return {**entity, "entity_type": type_of(entity["entity_type"])}
    return entity


def record(ledger: Ledger, entity: Any) -> Any:
    """Return a record with its key, where Neotoma finds one by other fields than we do."""
    if not isinstance(entity, dict) or not isinstance(entity.get("entity_type"), str):
        return entity  # the ledger says what is wrong with it
    said = dict(entity)
    kind = said["entity_type"]
    target = said.pop("target_id", None)
    stated: dict[str, Any] = said["$"] if isinstance(said.get("$"), dict) else {}
    if isinstance(target, str):
        return {**said, "$": {**stated, "key": ledger.show(target).entity.key}}
    if _has_schema(ledger, kind):
        # By null its callers mean that there is nothing to say; a schema has no null unless it says so.
        return {name: value for name, value in said.items() if value is not None}
    key = None if "key" in stated else _key(kind, said)
    return said if key is None else {**said, "$": {**stated, "key": key}}


def _key(kind: str, said: Mapping[str, Any]) -> str | None:
    """Return what identifies an entity of a type without a schema, where our own rules would not find it."""
    together = [said[name] for name in _TOGETHER.get(kind, ()) if isinstance(said.get(name), str) and said[name]]
    if len(together) > 1:
        return form.serialise(together).decode()
    for name in ("canonical_name", *_FIRST.get(kind, (f"{kind}_id",)), "turn_key"):
        if isinstance(said.get(name), str) and said[name]:
            return str(said[name])
    if any(said.get(name) for name in NAMING):
        return None
    return next((value for value in said.values() if isinstance(value, str) and value != kind), None)


def _has_schema(ledger: Ledger, entity_type: str) -> bool:
    try:
        ledger.schema(entity_type)
    except WoodratError:
        return False
    return True

"""Schemas: registering them, and those in force."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index, refold
from woodrat.ledger.arguments import Arguments
from woodrat.ledger.facts import write
from woodrat.ledger.moments import open_reader
from woodrat.merge import known_policy
from woodrat.state import builtin, packs
from woodrat.state import schema as schema_form
from woodrat.state.schema_keywords import VERSION, PolicyName, PolicyTraits

if TYPE_CHECKING:
    from collections.abc import Collection

    from woodrat.context import Context
    from woodrat.ledger.arguments import Within
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft
    from woodrat.state.schema import Schema
    from woodrat.state.schema_keywords import PolicyName, PolicyTraits


def register(
    context: Context,
    model: object,
    *,
    entity_type: str | None = None,
    version: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Register a schema: a JSON Schema, or a dataclass, Pydantic model or msgspec struct.

    A version left out is the highest plus one; the same schema again is known and writes nothing.
    """
    from woodrat.state import models

    document, named = models.document_of(model)
    kind = entity_type or named
    arguments = Arguments(within)
    given = arguments.mapping("schema", document)
    arguments.check()
    arguments.given.update({"entity_type": kind} if kind else {}, **({"version": version} if version else {}))

    def parse(number: int | None) -> Schema:
        return schema_form.parse_schema(given, kind, policies=partial(_traits, context), version=number)

    def plan(draft: Draft) -> None:
        stated = version if version is not None else given.get(VERSION)
        first = parse(1 if stated is None else version)
        earlier = list(entry_index.schemas(draft.view, first.type, draft.before.asof.position))
        if not earlier and first.type in builtin.schemas():
            earlier = [builtin.schemas()[first.type]]
        highest = schema_form.winning(earlier)
        chosen = first if stated is not None else parse(highest.version + 1 if highest else 1)
        draft.id = chosen.id
        for other in earlier:
            if other == chosen or (stated is None and other == highest and other == parse(other.version)):
                draft.id = other.id
                draft.hints.append(f"This is version {other.version} of {other.type}, which is registered already.")
                return
            if other.version == chosen.version:
                problem = f"version {chosen.version} of {chosen.type} is registered with other content"
                raise Refused([Fault(f"/{VERSION}", problem, "State a higher version, or leave it out.")])
        draft.add("schema", chosen.body, chosen)
        if refold.merges_otherwise(draft.before, schema_form.winning([*earlier, chosen]) or chosen):
            draft.hints.append(
                f"What is known of {chosen.type} is merged by version {chosen.version} from now on. Kept states are "
                "made anew in the background; until then, reads of them fold on demand."
            )

    return write(context, "register", arguments, plan, idempotency_key, dry_run)


def add_pack(
    context: Context,
    pack: str,
    *,
    types: Collection[str] | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    within: Within | None = None,
) -> Report:
    """Register the schemas of a pack, or those of some of its types, in one write.

    A type with a schema of its own stays as it is, and a hint names it; adding a pack again writes nothing.
    """
    arguments = Arguments(within)
    arguments.given["pack"] = pack
    if pack not in packs.NAMES:
        raise Refused([Fault("pack", f"there is no pack {shown(pack)}", f"Name one of: {', '.join(packs.NAMES)}.")])
    chosen = [schema for name, schema in packs.schemas(pack).items() if types is None or name in types]
    if types is not None:
        arguments.given["types"] = ", ".join(sorted(types))

    def plan(draft: Draft) -> None:
        own = []
        known = 0
        for schema in chosen:
            earlier = list(entry_index.schemas(draft.view, schema.type, draft.before.asof.position))
            if schema in earlier:
                known += 1
            elif any(other != builtin.schemas().get(schema.type) for other in earlier):
                own.append(schema.type)
            else:
                draft.add("schema", schema.body, schema)
        if known:
            draft.hints.append(f"{known} of {len(chosen)} schemas were registered already.")
        if own:
            draft.hints.append(f"Kept as they are, because this ledger has schemas of its own: {', '.join(own)}.")

    return write(context, "add_pack", arguments, plan, idempotency_key, dry_run)


def _traits(context: Context, name: PolicyName) -> PolicyTraits | None:
    found = known_policy(name, context.policies)
    return found.traits if found is not None else None


def schema(context: Context, entity_type: str) -> Schema:
    """Return the schema in force for a type, a built-in one included."""
    with open_reader(context) as reader:
        found = reader.rules(entity_type).schema
        found = builtin.schemas().get(entity_type, found) if found.is_open else found
        if found.is_open:
            raise NotFound(
                f"{entity_type}: no schema. Nothing was changed. Types without one accept any fields.",
                {"entity_type": entity_type},
            )
        return found


def schemas(context: Context) -> tuple[Schema, ...]:
    """Return the schema in force of every type that has one in the log, by type."""
    with open_reader(context) as reader:
        types = entry_index.schema_types(reader.view, reader.asof.position)
        return tuple(reader.rules(entity_type).schema for entity_type in types)

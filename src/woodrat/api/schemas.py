"""Schemas: the fields, checks and merge policies of entity types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.api.verb import MANAGE, verb
from woodrat.ledger import reads
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from woodrat.api.namespace import ReadableLedger, WritableLedger
    from woodrat.api.parameters import (
        Cursor,
        DescribedType,
        DryRun,
        EntityType,
        IdempotencyKey,
        Limit,
        PackName,
        SchemaModel,
        SchemaVersion,
    )
    from woodrat.ledger.pages import Page
    from woodrat.ledger.progress import Progress
    from woodrat.ledger.report import Report
    from woodrat.state.schema import Schema


class PastSchemas:
    """The verbs of schemas that read, at one moment."""

    def __init__(self, ledger: ReadableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(get="/v1/schemas/{entity_type}/infer", command="schemas infer T", tool="schemas")
    def infer(self, entity_type: EntityType, *, progress: Progress | None = None) -> dict[str, Any]:
        """Infer a JSON Schema from the stored entities of a type.

        Everything stored of the type fits it: edit the suggestion, then `register` it. A field that every entity has is
        required; an array whose elements repeat from claim to claim merges by `union`. Every observation of the type is
        read; `progress` is called with the number of entities that are done and the total.
        """
        return reads.infer(self.context, entity_type, progress=progress)

    @verb(get="/v1/schemas/{entity_type}", command="schemas show T", tool="schemas")
    def show(self, entity_type: EntityType) -> Schema:
        """Show the schema of a type.

        Returns the schema in force, which may be a built-in one.
        """
        from woodrat.ledger import schemas

        return schemas.schema(self.context, entity_type)

    @verb(get="/v1/schemas", command="schemas list", tool="schemas")
    def list(self, *, limit: Limit = 100, cursor: Cursor | None = None) -> Page[Schema]:
        """List the schemas in force.

        Covers the types that have a schema in the log, in order of type.
        """
        from woodrat.ledger import lists

        return lists.schemas(self.context, limit=limit, cursor=cursor)


class Schemas(PastSchemas):
    """The verbs of schemas."""

    ledger: WritableLedger

    def __init__(self, ledger: WritableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(
        post="/v1/schemas",
        command="schemas register FILE",
        tool="schemas",
        grant=MANAGE,
        example={"schema": {"title": "loan", "properties": {"creditScore": {"type": "integer"}}}},
    )
    def register(
        self,
        model: SchemaModel,
        *,
        entity_type: DescribedType | None = None,
        version: SchemaVersion | None = None,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Register a JSON Schema as the next version for a type.

        Also takes a dataclass, Pydantic model or msgspec struct. `version` defaults to the highest version plus one.
        Registering the same schema again writes nothing.
        """
        from woodrat.ledger import schemas

        return schemas.register(
            current.write_context(self.context),
            model,
            entity_type=entity_type,
            version=version,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )

    @verb(command="schemas check FILE", grant=MANAGE)
    def check(self, model: SchemaModel, *, entity_type: DescribedType | None = None) -> Report:
        """Check a JSON Schema without registering it.

        Returns the report of `register` with `dry_run`: its faults, or the effect of registering it. Nothing
        is written.
        """
        return self.register(model, entity_type=entity_type, dry_run=True)

    @verb(
        post="/v1/schemas/packs/{pack}",
        command="schemas add-pack NAME",
        grant=MANAGE,
        example={},
    )
    def add_pack(
        self,
        pack: PackName,
        *,
        idempotency_key: IdempotencyKey | None = None,
        dry_run: DryRun = False,
    ) -> Report:
        """Register all schemas of a pack.

        `neotoma` has the types that Neotoma publishes. Types with a schema of their own stay unchanged; built-in types
        of the same name are extended. Adding a pack again writes nothing.
        """
        from woodrat.ledger import schemas

        return schemas.add_pack(
            current.write_context(self.context), pack, idempotency_key=idempotency_key, dry_run=dry_run
        )

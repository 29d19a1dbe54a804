"""Past: the verbs that read, at one moment on two clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.api.questions import Questions
from woodrat.api.verb import READ, verb
from woodrat.ledger import reads
from woodrat.ledger.moments import Moment, open_reader, resolve_moment, timestamp
from woodrat.records import replace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from woodrat.api.interpretations import PastInterpretations
    from woodrat.api.log import PastLog
    from woodrat.api.namespace import Home
    from woodrat.api.parameters import (
        ByArrival,
        Cursor,
        Depth,
        Descending,
        Excerpts,
        FieldArg,
        FromMoment,
        IdPrefix,
        KnownState,
        Limit,
        LooseRef,
        OfType,
        OnlyField,
        OnlyInterpretation,
        OnlyRelation,
        OnlySource,
        SeenSince,
        SeenUntil,
        SortField,
        Time,
        ToMoment,
        Where,
        WithProvenance,
        Words,
    )
    from woodrat.api.runs import PastRuns
    from woodrat.api.schemas import PastSchemas
    from woodrat.api.sources import PastSources
    from woodrat.api.training import Training
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.find import Duplicate, Hit
    from woodrat.ledger.pages import Page
    from woodrat.ledger.read import Reader
    from woodrat.ledger.reads import EntityConflict, Related
    from woodrat.merge.blame import Blame
    from woodrat.merge.diff import Changes, Values
    from woodrat.merge.snapshot import Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.runs.reader.run_reader import RunReader
    from woodrat.runs.recorder.reads import RunPast
    from woodrat.state.asof import Stored

# What only some verbs need is imported by them: a program that shows one entity does not wait for the rest.


class PastState:
    """Verbs that read state, at one moment on two clocks."""

    def __init__(self, context: Context) -> None:
        self.context = context
        """The context for the rooms below."""
        self._moment_of: Home | None = None
        self._reached = -1
        """A position that the log is known to have reached."""
        self._erased: reads.ErasedPositions | None = None

    def _reader(self) -> AbstractContextManager[Reader]:
        return open_reader(self.context)

    def _run_reads(self) -> RunPast | None:
        """Return the reads of the current run, where that is recorded in this log; none elsewhere."""
        from woodrat.runs.recorder import current

        frame = current.current_frame()
        if frame is None or frame.run.ended:
            return None
        from woodrat.runs.recorder.log import LocalLog, LocalReads
        from woodrat.runs.recorder.reads import RunPast

        context = self.context
        if not frame.run.log.is_same(LocalLog(context)):
            return None
        return RunPast(frame.run, LocalReads(context), None if context.moment == "now" else self.position)

    def __repr__(self) -> str:
        context = self.context
        where = context.engine.location or "in memory"
        parts = [f"tenant {context.tenant}", *([f"agent {context.agent}"] if context.agent else ())]
        parts += [] if context.moment == "now" else [f"as of {context.moment}"]
        parts += [] if context.valid_at is None else [f"valid at {context.valid_at}"]
        return f"<woodrat ledger {where}, {', '.join(parts)}>"

    @property
    def tenant(self) -> TenantId:
        """The tenant."""
        return self.context.tenant

    @property
    def position(self) -> int:
        """The log position reads are answered at; −1 before the first entry."""
        with self._reader() as reader:
            return reader.asof.position

    @property
    def runs(self) -> PastRuns:
        """Runs of agents."""
        from woodrat.api.runs import PastRuns

        return PastRuns(self)

    @property
    def schemas(self) -> PastSchemas:
        """Schemas: the fields, checks and merge policies of types."""
        from woodrat.api.schemas import PastSchemas

        return PastSchemas(self)

    @property
    def sources(self) -> PastSources:
        """Sources: content as received."""
        from woodrat.api.sources import PastSources

        return PastSources(self)

    @property
    def interpretations(self) -> PastInterpretations:
        """Interpretations: readings of sources."""
        from woodrat.api.interpretations import PastInterpretations

        return PastInterpretations(self)

    @property
    def log(self) -> PastLog:
        """The log: its entries."""
        from woodrat.api.log import PastLog

        return PastLog(self)

    @property
    def training(self) -> Training:
        """Recorded runs as training data."""
        from woodrat.api.training import Training

        return Training(self)

    @verb(get="/v1/entities/{ref}", command="show REF", tool="show")
    def show(self, ref: LooseRef) -> Snapshot:
        """Show an entity: its values, and where each came from.

        Raises `NotFound` if no live observation is about the entity. Inside a run that is recorded here, this is a
        read of the run, as `run.show` is; so are `search` and `query`.
        """
        run = self._run_reads()
        return reads.show(self.context, ref) if run is None else run.show(ref)

    @verb(get="/v1/elements/{ref}", command="elements REF#FIELD", tool="show")
    def elements(
        self, ref: LooseRef, field: FieldArg, *, limit: Limit = 1_000, cursor: Cursor | None = None
    ) -> Elements:
        """List the elements of a collection, page by page.

        Works for collections (`union`, `by_key`, `append`), in their order. Later pages are read as of the position of
        the first. The cost depends on the page, not on the size of the collection.
        """
        return reads.elements(self.context, ref, field, limit=limit, cursor=cursor)

    @verb(get="/v1/search", command="entities search", tool="search")
    def search(
        self, query: Words, *, entity_type: OfType | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[Hit]:
        """Find entities by words, each matched by prefix.

        Every word of the query must begin a word in the key or a text value. An entity whose key is the query comes
        first, then those with more matching fields, then by entity id. Deleted entities are omitted, and so are
        relations unless you pass their type. Searches of the present use an index; searches at an effective time
        (`valid_at`) merge every entity.
        """
        from woodrat.ledger import lists

        run = self._run_reads()
        if run is not None:
            asked = {"entity_type": entity_type, "limit": None if limit == 20 else limit, "cursor": cursor}
            return run.search(query, **_stated_arguments(asked))
        return lists.search(self.context, query, entity_type=entity_type, limit=limit, cursor=cursor)

    @verb(get="/v1/entities", command="entities list", tool="search")
    def query(
        self,
        *,
        entity_type: OfType | None = None,
        where: Where | None = None,
        sort: SortField | None = None,
        descending: Descending = False,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Snapshot]:
        """List entities by type and field values.

        They are ordered by type and key, or by a field, with entities that lack it last. Deleted entities are omitted.

        `where` holds values by field, or texts `field=value`, whose value is read as JSON where possible. Other
        conditions are `{"age": {"gte": 18}}` or the text `age gte 18`, with the operators `eq`, `in`, `lt`, `lte`,
        `gt`, `gte`, `prefix` and `exists`; all must hold. A collection (`union`, `by_key`, `append`) matches when it
        contains a value that does.

        With a condition on a text, number, boolean or null, or sorted by a field, the cost depends on the page only.
        For elements of collections the schema has to index the field (`x-woodrat-index`); otherwise a page costs the
        entities it passes. With `valid_at` it costs all.
        """
        from woodrat.ledger import lists

        run = self._run_reads()
        if run is not None:
            asked = {"entity_type": entity_type, "where": where, "sort": sort, "descending": descending or None}
            return run.query(**_stated_arguments({**asked, "limit": None if limit == 100 else limit, "cursor": cursor}))
        return lists.query(
            self.context,
            entity_type=entity_type,
            where=where,
            sort=sort,
            descending=descending,
            limit=limit,
            cursor=cursor,
        )

    @verb(get="/v1/duplicates")
    def duplicates(
        self,
        entity_type: OfType | None = None,
        *,
        ref: LooseRef | None = None,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Duplicate]:
        """List entities that share an identifying value.

        Lists pairs that are not merged yet, by type, rule and value. Only current values count. With `ref`, lists the
        shared values of this entity. With `valid_at`, every entity is merged.
        """
        from woodrat.ledger import lists

        return lists.duplicates(self.context, entity_type, ref=ref, limit=limit, cursor=cursor)

    @verb(get="/v1/observations", command="observations list [REF]", tool="history")
    def observations(
        self,
        ref: LooseRef | None = None,
        *,
        source: OnlySource | None = None,
        interpretation: OnlyInterpretation | None = None,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Stored]:
        """List the observations of an entity, or all of them, in log order.

        Includes the observations of the entities it is merged with. `source` and `interpretation` select observations
        read from a source, or in one interpretation of it.
        """
        from woodrat.ledger import lists

        return lists.observations(
            self.context, ref, source=source, interpretation=interpretation, limit=limit, cursor=cursor
        )

    @verb(get="/v1/history/{ref}", command="history REF", tool="history")
    def history(
        self, ref: LooseRef, field: OnlyField | None = None, *, limit: Limit = 100, cursor: Cursor | None = None
    ) -> Page[Step]:
        """Show how the state of an entity changed with each observation.

        With `field`, returns only the observations that state or change that field.
        """
        from woodrat.ledger import lists

        return lists.history(self.context, ref, field, limit=limit, cursor=cursor)

    @verb(get="/v1/timeline", command="timeline", tool="history")
    def timeline(
        self,
        *,
        since: SeenSince | None = None,
        until: SeenUntil | None = None,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Event]:
        """List observations by time, across all entities.

        Returns observations from `since` to before `until`, by time of observation.
        """
        from woodrat.ledger import lists

        return lists.timeline(self.context, since=since, until=until, limit=limit, cursor=cursor)

    @verb(get="/v1/blame/{ref}", command="blame REF[#field]", tool="history")
    def blame(self, ref: LooseRef, field: OnlyField | None = None, *, excerpts: Excerpts = False) -> Blame:
        """Show every claim on a field, which one won, and why.

        Covers one field or, by default, all of them; the result is a mapping by field. `excerpts` adds the words of the
        source that a claim points at.
        """
        return reads.blame(self.context, ref, field, excerpts=excerpts)

    @verb(get="/v1/conflicts", command="conflicts", tool="conflicts")
    def conflicts(
        self,
        entity_type: OfType | None = None,
        *,
        arrival: ByArrival = False,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[EntityConflict]:
        """List fields on which agents disagree, or fields decided only by arrival.

        A conflict is a field on which the latest values of two agents differ, and neither had seen the other's. They
        are listed by entity.

        With `arrival`, lists instead the fields that were decided by arrival alone: the winner states no observation
        time and wins because it arrived later, whoever stated the other value (docs/formats/merge.md has the exact
        rule).
        """
        from woodrat.ledger import lists

        return lists.conflicts(self.context, entity_type, arrival=arrival, limit=limit, cursor=cursor)

    @verb(get="/v1/diff", command="diff [REF]", tool="diff")
    def diff(
        self,
        before: FromMoment,
        after: ToMoment = "now",
        ref: LooseRef | None = None,
        *,
        entity_type: OfType | None = None,
    ) -> Changes:
        """Show what changed between two moments.

        Covers one entity, all entities of a type, or all. The result states the positions of the two moments; iterate
        over it for the changes.
        """
        return reads.diff(self.context, before, after, ref, entity_type=entity_type)

    @verb(post="/v1/diff-against", grant=READ, at_moment=True, example={"known": []})
    def diff_against(
        self, known: KnownState, ref: LooseRef | None = None, *, entity_type: OfType | None = None
    ) -> Changes:
        """Compare a state that was written down with the current one.

        `known` comes first, the current state second. It is a list of snapshots, or of objects as `Snapshot.to_json`
        returns them, and covers all entities, or all of `entity_type`: an entity missing from the list did not exist
        then. A single snapshot covers its own entity only. An entity that is deleted here and missing there is not a
        difference.
        """
        return reads.diff_against(self.context, known, ref, entity_type=entity_type)

    @verb(get="/v1/values", wide=True)
    def values(self) -> dict[str, Values]:
        """Return the values of everything that exists, by reference and without provenance.

        `diff` compares such lists.
        """
        return reads.values(self.context)

    @verb(get="/v1/related/{ref}", command="related REF", tool="related", wide=True)
    def related(
        self,
        ref: LooseRef,
        *,
        type: OnlyRelation | None = None,
        depth: Depth = 1,
        limit: Limit = 100,
        cursor: Cursor | None = None,
    ) -> Page[Related]:
        """Show the relations of an entity.

        Relations count from either end. With a `depth` above 1, it also returns the relations of the entities at the
        other ends. With a `type`, only relations of that type are followed.
        """
        from woodrat.ledger import lists

        return lists.related(self.context, ref, type=type, depth=depth, limit=limit, cursor=cursor)

    def erased_at(self, position: int) -> int | None:
        """Return the erasure of the body at a position, according to the log; independent of the moment of this read.

        None if the log records no erasure of it: the body exists then, or its loss is damage.
        """
        if self._erased is None:
            self._erased = reads.ErasedPositions(self.context)
        return self._erased.erased_at(position)

    @verb(get="/v1/ids/{prefix}", wide=True)
    def ids(self, prefix: IdPrefix) -> tuple[str, ...]:
        """List the ids that begin with a prefix.

        Covers runs, observations, sources, interpretations and entities, and returns at most eleven ids. For `last`,
        returns the id of the run with the latest entry. Commands use it to complete the ids that people type.
        """
        from woodrat.ledger import short_ids

        return short_ids.candidates(self.context, prefix)

    @verb(get="/v1/fingerprint", command="fingerprint")
    def fingerprint(self, *, provenance: WithProvenance = False) -> str:
        """Compute one digest of the whole state.

        It is the same for the same set of observations, in any order of arrival.
        """
        return reads.fingerprint(self.context, provenance=provenance)

    @property
    def home(self) -> Home | None:
        """The ledger that this is a moment of, if it can be written to."""
        return self._moment_of

    def _run_reader(self) -> AbstractContextManager[RunReader]:
        from woodrat.runs.reader.run_reader import open_runs

        return open_runs(self.context)


class Past(Questions, PastState):
    """Read-only verbs, at one moment on two clocks; a ledger reads at the present."""

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> Past:
        """Return the ledger at another moment, or another valid time.

        The moment limits the read to observations *known* by then, and `valid_at` to values *true* by then. Timestamps
        need an offset. Days, and words such as `yesterday`, are in the ledger's time zone, else UTC.
        """
        position: int | str = self.context.moment
        if type(moment) is int and 0 <= moment <= self._reached:
            position = moment  # a log only grows
        elif moment is not None:
            with self.context.engine.view(self.tenant) as view:
                position = resolve_moment(view, moment, clock=self.context.clock)
                self._reached = view.head().position
        chosen = (
            self.context.valid_at if valid_at is None else timestamp(valid_at, "valid_at", clock=self.context.clock)
        )
        found = Past(self.context.at(position, chosen))
        found._moment_of = self.home
        return found

    def _as_it_was(self, position: int) -> Past:
        return Past(replace(self.context, moment=position, erasures=None))


def _stated_arguments(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a caller stated: a run records no others."""
    return {name: value for name, value in asked.items() if value is not None}

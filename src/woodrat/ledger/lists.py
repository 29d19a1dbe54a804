"""Lists: what the ledger answers page by page, at the moment of a context.

Every question is checked as a whole: what is wrong with its arguments, with `limit` and with `cursor` is said at once.
Where `reads.py` has a list of the same name, that one is whole, for rooms that need all of it.
"""

from __future__ import annotations

from functools import update_wrapper
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from woodrat.canon import ids
from woodrat.canon.ids import Ref
from woodrat.clock import monotonic
from woodrat.engines.records import BEFORE_ALL, NOTHING_ASKED, Asks, Scan
from woodrat.errors import Fault, Refused, Unavailable, shown
from woodrat.ledger import reads, spoken_times
from woodrat.ledger.matches import find_ref, ref_faults
from woodrat.ledger.moments import open_reader, timestamp
from woodrat.ledger.pages import ListItem, Page, page_request, ranked_page, read_list, walked_page
from woodrat.records import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from woodrat.canon.form import Json
    from woodrat.canon.moment_words import Time
    from woodrat.context import Context
    from woodrat.ledger.find import Duplicate, Hit
    from woodrat.ledger.pages import PageRequest
    from woodrat.ledger.query import Query
    from woodrat.ledger.read import Reader
    from woodrat.ledger.reads import EntityConflict, Related
    from woodrat.merge.snapshot import Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.state.asof import Stored
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery

T = TypeVar("T", bound=ListItem)

P = ParamSpec("P")

LIMIT = 100
"""How many items a page has where nobody says."""
SCHEMA_SECONDS = 1.0
"""How long a list on a server takes part in taking in a new schema before it is `Unavailable`."""


def _from_one_view(
    scans: Callable[..., Sequence[Scan]] | None = None, *, indexed: bool = True
) -> Callable[[Callable[Concatenate[Context, P], Page[T]]], Callable[Concatenate[Context, P], Page[T]]]:
    """Have a list answered from one view; `scans` says where it will look first.

    Not if it is `indexed` by the state index and this has to be brought on first.
    """

    def decorated(answer: Callable[Concatenate[Context, P], Page[T]]) -> Callable[Concatenate[Context, P], Page[T]]:
        def from_one_view(context: Context, /, *given: P.args, **named: P.kwargs) -> Page[T]:
            if context.opened is None and not context.engine.reads_elsewhere:
                from woodrat.ledger import state_steps

                asks = NOTHING_ASKED if scans is None else Asks(scans=scans(*given, **named))
                with context.engine.view(context.tenant, asks) as view:
                    if not indexed or context.valid_at is not None or not state_steps.is_behind(view):
                        return answer(context.within(view), *given, **named)
            return answer(context, *given, **named)

        update_wrapper(from_one_view, answer)
        return from_one_view

    return decorated


def _search_scans(query: object, *, entity_type: object = None, **_: object) -> Sequence[Scan]:
    from woodrat.ledger import search

    return search.first_scans(query, entity_type)


def _query_scans(
    *,
    entity_type: object = None,
    where: object = None,
    sort: object = None,
    descending: object = False,
    cursor: object = None,
    **_: object,
) -> Sequence[Scan]:
    from woodrat.ledger import query as queries

    return queries.first_scans(entity_type, where, sort, descending, cursor)


@_from_one_view(_search_scans)
def search(
    context: Context, query: str, *, entity_type: str | None = None, limit: int = 20, cursor: str | None = None
) -> Page[Hit]:
    """Return the entities in whose key and text values every word of the query begins a word.

    One whose key or identifying value is the query comes first, then the others by entity id. Deleted ones are left
    out, and relations unless their type is asked for. An index answers; at an effective time every entity is
    folded. An index that lacks very much is not waited for: the answer is then as of the page's `position`.
    """
    from woodrat.ledger import find, search

    asked = find.ask_search(context, query, entity_type, limit, cursor)
    asked = replace(asked, page=_brought_on(context, asked.page, asked.type))

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Hit]]:
        hits = search.search(reader, asked, place)
        while some := list(islice(hits, asked.page.limit + 1)):
            reader.gather(hit.ref for hit in some)
            yield from ((hit.rank, hit.show(reader)) for hit in some)

    return walked_page(context, asked.page, (bool, str), walk)


@_from_one_view(_query_scans)
def query(
    context: Context,
    *,
    entity_type: str | None = None,
    where: Mapping[str, Any] | Sequence[str] | None = None,
    sort: str | None = None,
    descending: bool = False,
    limit: int = LIMIT,
    cursor: str | None = None,
) -> Page[Snapshot]:
    """Return entities by type and key, or sorted by a field with those that lack it last; deleted ones left out.

    `where` holds values by field, or texts `field=value` whose value is JSON where it reads as JSON. A collection
    (`union`, `by_key`, `append`) fulfils a condition when it holds the value. Other conditions are objects of
    operators, or texts `field operator value`: `eq`, `in`, `lt`, `lte`, `gt`, `gte`, `prefix`, `exists`. With a
    condition on a field whose values are listed, or sorted by one, a page costs what it returns (`state_rows.py`).
    Otherwise a page without `sort` costs what it passes over on the way, and one with `sort` folds every entity of the
    type, or of the ledger. So does `valid_at`.
    """
    from woodrat.ledger import query as queries

    return _query_page(context, queries.ask_query(context, entity_type, where, sort, descending, limit, cursor))


def _query_page(context: Context, asked: Query) -> Page[Snapshot]:
    from woodrat.ledger import query as queries

    asked = replace(asked, page=_brought_on(context, asked.page, asked.type))

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Snapshot]]:
        found = queries.Answer(reader, asked, None if place is None else Ref(*place)).snapshots()
        return (((ref.type, ref.key), snapshot) for ref, snapshot in found)

    def reopen() -> AbstractContextManager[Reader]:
        return open_reader(asked.page.pin(context.within(None)))

    def show(refs: Sequence[Ref], reader: Reader) -> tuple[Snapshot, ...]:
        return tuple(map(reader.snapshot, refs))

    place = asked.page.place_of(str, str)
    with open_reader(asked.page.pin(context)) as reader:
        answer = queries.Answer(reader, asked, None if place is None else Ref(*place))
        if answer.is_walked():
            return walked_page(context, asked.page, (str, str), walk, reader)
        # Everything is folded, so what is found serves the pages that follow too, as far as it fits into memory.
        count = asked.page.limit * max(1, queries.SORTED_MAX // asked.page.limit)
        ranked = answer.first(count + 1)

        def ask_again(after: Sequence[Any]) -> Page[Snapshot]:
            return _query_page(context.within(None), replace(asked, page=replace(asked.page, place=tuple(after))))

        return ranked_page(
            reader, reopen, asked.page, ranked, show, lambda ref: (ref.type, ref.key), more=(count, ask_again)
        )


def _brought_on(context: Context, page: PageRequest, type: str | None) -> PageRequest:
    """Bring the state index on to where a page of a type, or of all, is read; return which page to answer.

    New schemas of the type are taken in to the end. On a server, which does that in the background, a list waits for
    them only a moment: then it is `Unavailable`, and says how far that is. Of the rest of the log only a bounded part
    is taken in. When the index then still lacks more than a read folds, the first page of the present is answered as of
    the end of the index, and its `position` says so.
    """
    from woodrat.ledger import state_index, state_steps

    if page.valid_at is not None or context.opened is not None:
        return page
    engine, tenant = context.engine, context.tenant
    deadline = monotonic() + SCHEMA_SECONDS if context.served else None
    lacking = state_steps.catch_up(
        engine,
        tenant,
        context.policies,
        through=page.position,
        entries_max=state_steps.CATCH_UP_ENTRIES,
        types=() if context.served else None if type is None else (type,),
        deadline=deadline,
    )
    if lacking and deadline is not None and monotonic() >= deadline:
        _check_schemas(context, page, type)
    if lacking <= state_index.LAID_OVER_MAX or page.place is not None or not is_present(context):
        return page
    with engine.view(tenant) as view:
        reached = state_index.reached(view)
    return page if reached == BEFORE_ALL else replace(page, position=reached)


def _check_schemas(context: Context, page: PageRequest, type: str | None) -> None:
    """Raise `Unavailable`, with the progress, if the state index lacks a new schema of a type, or of any."""
    from woodrat.ledger import refold, state_index
    from woodrat.ledger.state_rows import SHOWN, type_prefix

    with context.engine.view(context.tenant) as view:
        known = state_index.progress_of(view)
        for position, name in state_index.schemas_between(view, known.position, page.position):
            if type not in (None, name):
                continue
            whole = view.count(SHOWN, type_prefix(name), through=known.position)
            merged = next((one.done for one in refold.waiting(view) if one.type == name), whole)
            indexed = next((done for filled, _, done in known.filling if filled == name), 0)
            raise Unavailable(
                f"{name}: lists wait for its schema at {position}. Of {whole} entities {merged} are merged anew and "
                f"{indexed} are indexed. Nothing was changed. Ask again later; reads of one entity answer now.",
                {"entity_type": name, "position": position, "entities": whole, "merged": merged, "indexed": indexed},
            )


def is_present(context: Context) -> bool:
    """Return whether a context is at the end of the log, whenever it is asked."""
    return context.moment == "now" and context.valid_at is None


@_from_one_view()
def duplicates(
    context: Context,
    entity_type: str | None = None,
    *,
    ref: str | Ref | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
) -> Page[Duplicate]:
    """Return entities that share an identifying value and are not joined, by type, rule and value.

    With `ref`, only values that this entity has: then a page costs what it returns, however many others there are.
    """
    from woodrat.ledger import state_lists

    faults = [*_type_faults(entity_type), *([] if ref is None else ref_faults(ref))]
    question: list[Json] = ["duplicates", entity_type, None if ref is None else str(ref)]
    request = page_request(context, question, limit, cursor, faults)
    named = ref.partition("/")[0] if isinstance(ref, str) and "/" in ref else getattr(ref, "type", entity_type)
    request = _brought_on(context, request, named)

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Duplicate]]:
        if ref is not None:
            return state_lists.duplicates_of(reader, find_ref(reader, ref), entity_type, place)
        return state_lists.duplicates(reader, entity_type, place)

    return walked_page(context, request, (str, str, str), walk)


@_from_one_view(indexed=False)
def observations(
    context: Context,
    ref: str | Ref | None = None,
    *,
    source: str | None = None,
    interpretation: str | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
) -> Page[Stored]:
    """Return observations by position: all, or those of an entity and of those it is joined with.

    `source` and `interpretation` select those that were read from one; an index finds them, so that a page costs what
    it returns.
    """
    from woodrat.ledger import history as entity_history
    from woodrat.ledger import source_index, sources
    from woodrat.state.entry_rows import SAID_FROM

    faults = [
        *([] if ref is None else ref_faults(ref)),
        *sources.id_faults(source=source, interpretation=interpretation),
    ]
    question: list[Json] = ["observations", None if ref is None else str(ref), source, interpretation]
    request = page_request(context, question, limit, cursor, faults)

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Stored]]:
        after = BEFORE_ALL if place is None else place[0]
        origin = sources.origin_names(reader, source, interpretation)
        if ref is not None:
            found = entity_history.observations_after(reader, reads.spoken_of(reader, find_ref(reader, ref)), after)
        elif origin:
            # A reading says less than its source does.
            term = SAID_FROM + (origin.get("interpretation") or origin["source"])
            walked = source_index.said_after(reader.view, reader.asof.position, term, after)
            found = (stored for stored in walked if reader.asof.selects(stored))
        else:
            found = reads.stored_after(reader, after)
        for stored in found:
            stated = stored.observation.optional
            if all(stated.get(key) == name for key, name in origin.items()):
                yield (stored.position,), stored

    return walked_page(context, request, (int,), walk)


@_from_one_view(indexed=False)
def history(
    context: Context, ref: str | Ref, field: str | None = None, *, limit: int = LIMIT, cursor: str | None = None
) -> Page[Step]:
    """Return how belief about an entity, or one field of it, changed with each observation.

    A page costs what it passes over. The history of entities that were joined, or by a valid time, is folded whole.
    """
    from woodrat.ledger import history as entity_history

    faults = ref_faults(ref)
    if field is not None and not isinstance(field, str):
        faults.append(Fault("field", f"expected a field, got {shown(field)}", "Send the field's name as text."))
    request = page_request(context, ["history", str(ref), field], limit, cursor, faults)

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Step]]:
        after = BEFORE_ALL if place is None else place[0]
        entity = find_ref(reader, ref)
        if entity_history.can_walk(reader, entity):
            reads.spoken_of(reader, entity)
            steps: Iterable[Step] = entity_history.history_after(reader, entity, field, after)
        else:
            steps = (step for step in reads.history_of(reader, entity, field) if step.position > after)
        for step in steps:
            yield (step.position,), step

    return walked_page(context, request, (int,), walk)


@_from_one_view(indexed=False)
def timeline(
    context: Context,
    *,
    since: Time | None = None,
    until: Time | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
) -> Page[Event]:
    """Return what was seen from `since` to before `until`, across all entities, in the order of seeing.

    A page costs what it returns, found by an index of observed time; with a valid time also what it passes over.
    """
    from woodrat.ledger import observed_time

    faults: list[Fault] = []
    asked, told = spoken_times.resolved({"since": since, "until": until}, context.clock)
    begin, end = (_time(name, value, faults) for name, value in asked.items())
    request = page_request(context, ["timeline", begin, end], limit, cursor, faults)
    page = walked_page(
        context, request, (str, str), lambda reader, place: observed_time.walk(reader, begin, end, place)
    )
    return spoken_times.with_times(page, told)


@_from_one_view()
def conflicts(
    context: Context,
    entity_type: str | None = None,
    *,
    arrival: bool = False,
    limit: int = LIMIT,
    cursor: str | None = None,
) -> Page[EntityConflict]:
    """Return every field on which two agents differ without having seen each other, by entity.

    With `arrival`, every field that was decided only by arrival instead: the winner states no observation time and
    wins because it arrived later, whoever said the other value (docs/formats/merge.md has the exact rule).
    """
    from woodrat.ledger import state_lists

    faults = _type_faults(entity_type)
    if type(arrival) is not bool:
        faults.append(Fault("arrival", f"expected true or false, got {shown(arrival)}", "Send a boolean."))
    request = page_request(context, ["conflicts", entity_type, arrival], limit, cursor, faults)
    request = _brought_on(context, request, entity_type)

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], EntityConflict]]:
        return state_lists.conflicts(reader, entity_type, place, arrival=arrival)

    return walked_page(context, request, (str, str, str), walk)


@_from_one_view(indexed=False)
def related(
    context: Context,
    ref: str | Ref,
    *,
    type: str | None = None,
    depth: int = 1,
    limit: int = LIMIT,
    cursor: str | None = None,
) -> Page[Related]:
    """Return the relations, of a type, that begin or end at an entity, and those of their other ends, up to `depth`."""
    from woodrat.ledger import history as entity_history

    faults = ref_faults(ref) + reads.depth_faults(depth) + ([] if type is None else ids.type_faults(type, "type"))
    request = page_request(context, ["related", str(ref), type, depth], limit, cursor, faults)
    return walked_page(
        context,
        request,
        (int, str),
        lambda reader, place: entity_history.related_after(reader, ref, type, depth, place),
    )


@_from_one_view(indexed=False)
def deliveries(context: Context, *, limit: int = LIMIT, cursor: str | None = None) -> Page[Delivery]:
    """Return every delivery of a source, by position."""
    from woodrat.ledger import sources

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Delivery]]:
        for position, delivery in sources.deliveries_after(reader, BEFORE_ALL if place is None else place[0]):
            yield (position,), delivery

    return walked_page(context, page_request(context, ["deliveries"], limit, cursor), (int,), walk)


@_from_one_view(indexed=False)
def interpretations(context: Context, *, limit: int = LIMIT, cursor: str | None = None) -> Page[Interpretation]:
    """Return every reading of a source, by position."""
    from woodrat.ledger import sources

    request = page_request(context, ["interpretations"], limit, cursor)

    def walk(reader: Reader, place: tuple[Any, ...] | None) -> Iterator[tuple[tuple[Any, ...], Interpretation]]:
        for position, reading in sources.interpretations_after(reader, BEFORE_ALL if place is None else place[0]):
            yield (position,), reading

    return walked_page(context, request, (int,), walk)


@_from_one_view(indexed=False)
def schemas(context: Context, *, limit: int = LIMIT, cursor: str | None = None) -> Page[Schema]:
    """Return the schema in force of every type that has one in the log, by type."""
    from woodrat.ledger import schemas

    return read_list(context, page_request(context, ["schemas"], limit, cursor), schemas.schemas)


def _type_faults(entity_type: object) -> list[Fault]:
    return [] if entity_type is None else ids.type_faults(entity_type, "entity_type")


def _time(name: str, value: object, faults: list[Fault]) -> str | None:
    try:
        return None if value is None else timestamp(value, name)
    except Refused as refusal:
        faults += refusal.faults
        return None

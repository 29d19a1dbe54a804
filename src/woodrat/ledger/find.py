"""Finding: what a search and a query ask for, queries by value, entities that may be one, the shape of what is stored.

Order never depends on the engine or on how much else there is. A cursor of a search or a query holds the place of the
last item (`pages.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.errors import Fault, NotFound, Refused, pointer_part, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.pages import PageRequest, page_request
from woodrat.ledger.read import Reader
from woodrat.merge import inference, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state import identity, observation, relation, tokens

if TYPE_CHECKING:
    from woodrat.context import Context

QUERY_BYTES_MAX: Final = ids.KEY_BYTES_MAX
"""Longest query, in UTF-8; as long as a key, so that every key can be looked for."""
CONDITIONS_MAX: Final = 100
"""Most conditions of one query."""
READER_FOLDS: Final = 1_000
"""After so many folds a walk begins with a fresh reader, since a reader keeps all it has folded."""
WALK_ENTITIES: Final = 128
"""How many entities a walk asks the engine for at first; each time it asks for twice as many, up to `READER_FOLDS`."""

_UNION, _APPEND = "union", "append"


@dataclass(frozen=True, slots=True)
class Hit(Record):
    """One entity that a search found."""

    snapshot: Snapshot
    """What is believed about it."""
    exact: bool
    """Whether the query is its key, but for the case of A to Z and spaces at the ends."""
    fields: tuple[str, ...]
    """Fields in which any of the query's words begins a word, by name; a hit on the key alone has none."""


@dataclass(frozen=True, slots=True)
class Duplicate(Record):
    """An identifying value that several entities have, which are not joined."""

    type: str
    """Their type."""
    rule: str
    """The identity rule, such as `email` or `name+company`."""
    value: str
    """The key the rule makes of their values."""
    entities: tuple[Ref, ...]
    """The entities, by key; `merge` joins two of them."""


# What was asked


@dataclass(frozen=True, slots=True)
class Search:
    """A search, checked."""

    wanted: tuple[str, ...]
    """Tokens that all must match, sorted."""
    whole: str
    """What stands for the query as a whole key."""
    type: str | None
    page: PageRequest
    """Which page; its place is the rank of the last item of the page before."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, checked."""

    type: str | None
    where: tuple[tuple[str, Json], ...]
    """Fields and the values they must have; all of them must hold."""
    sort: str | None
    descending: bool
    page: PageRequest
    """Which page; its place is the last item of the page before."""


@dataclass(frozen=True, slots=True)
class RankedHit:
    """An entity that a search found, and its place among them."""

    rank: tuple[bool, int, str]
    """Those whose key is the query first, then those with more fields hit, then by entity id."""
    ref: Ref
    """The entity."""
    fields: frozenset[str]
    """Fields in which a word of the query begins a word."""

    def show(self, reader: Reader) -> Hit:
        """Return the hit with what is believed about the entity."""
        return Hit(reader.snapshot(self.ref), not self.rank[0], tuple(sorted(self.fields)))


def ask_search(context: Context, query: object, entity_type: object, limit: object, cursor: object) -> Search:
    """Return a search once everything about it is in order; `Refused` says all that is not."""
    faults = _type_faults(entity_type)
    wanted: list[str] = []
    text = query if isinstance(query, str) else ""
    if not isinstance(query, str):
        faults.append(Fault("query", f"expected text, got {shown(query)}", "Send the words to look for as text."))
    elif wrong := form.faults(query, "query"):
        faults += wrong
    elif len(query.encode()) > QUERY_BYTES_MAX:
        problem = f"the query has {len(query.encode())} bytes in UTF-8, where {QUERY_BYTES_MAX} is the limit"
        faults.append(Fault("query", problem, "Look for fewer words."))
    else:
        wanted = sorted(set(tokens.tokens(query)))
        if not wanted:
            problem = f"there is no word in {shown(query)}"
            faults.append(Fault("query", problem, "Send at least one letter or digit."))
    whole = tokens.whole(text)
    page = page_request(context, ["search", [*wanted], whole, _plain(entity_type)], limit, cursor, faults)
    return Search(tuple(wanted), whole, _type(entity_type), page)


def ask_query(
    context: Context,
    entity_type: object,
    where: object,
    sort: object,
    descending: object,
    limit: object,
    cursor: object,
) -> Query:
    """Return a query once everything about it is in order; `Refused` says all that is not."""
    faults = _type_faults(entity_type)
    conditions = _conditions(where, faults)
    if sort is not None:
        if isinstance(sort, str):
            faults += observation.field_name_faults(sort, "sort")
        else:
            faults.append(Fault("sort", f"expected a field, got {shown(sort)}", "Send the field's name as text."))
    if not isinstance(descending, bool):
        faults.append(Fault("descending", f"got {shown(descending)}", "Send true or false."))
    asked: list[Json] = [[name, value] for name, value in conditions]
    question: list[Json] = ["query", _plain(entity_type), asked, _plain(sort), descending is True]
    page = page_request(context, question, limit, cursor, faults)
    return Query(_type(entity_type), tuple(conditions), _type(sort), descending is True, page)


def check_type(entity_type: object, *, optional: bool = True) -> str | None:
    """Return an entity type that is in order; `Refused` otherwise."""
    if not (optional and entity_type is None):
        _check(ids.type_faults(entity_type, "entity_type"))
    return _type(entity_type)


def _type_faults(entity_type: object) -> list[Fault]:
    return [] if entity_type is None else ids.type_faults(entity_type, "entity_type")


def _conditions(where: object, faults: list[Fault]) -> list[tuple[str, Json]]:
    """Return what must hold, as (field, value): given as values by field, or as texts `field=value`."""
    found: list[tuple[object, object, str]] = []
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        found = [(name, value, f"where/{pointer_part(str(name))}") for name, value in where.items()]
    elif isinstance(where, list | tuple):
        for number, text in enumerate(where):
            name, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
            if equals:
                found.append((name, _literal(value), f"where/{number}"))
            else:
                problem = f"expected field=value, got {shown(text)}"
                faults.append(Fault(f"where/{number}", problem, "Write the field, = and the value: city=Barcelona."))
    elif where is not None:
        problem = f"expected values by field, got {shown(where)}"
        faults.append(Fault("where", problem, "Send an object, or a list of texts such as city=Barcelona."))
    if len(found) > CONDITIONS_MAX:
        faults.append(Fault("where", f"{len(found)} conditions", f"Send at most {CONDITIONS_MAX}."))
    conditions: list[tuple[str, Json]] = []
    for field, stated, path in found[:CONDITIONS_MAX]:
        wrong = form.faults(stated, path)
        if not isinstance(field, str):
            wrong.append(Fault(path, f"expected a field, got {shown(field)}", "Send the field's name as text."))
        else:
            wrong += observation.field_name_faults(field, path)
        faults += wrong
        if not wrong:
            conditions.append((str(field), form.normal(stated)))
    return conditions


def _literal(text: str) -> Json:
    """Return the value a condition's text writes: JSON where it is, else the text itself."""
    try:
        return form.parse(text)
    except Refused:
        return text


def _plain(value: object) -> Json:
    return value if isinstance(value, str) else None


def _type(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _check(faults: list[Fault]) -> None:
    if faults:
        raise Refused(faults, outcome=NO_READ)


# Walking over everything


def folds(reader: Reader, type: str | None) -> Iterator[tuple[Ref, MergeState]]:
    """Yield every fold that exists, as `Reader.roots` does, without keeping what was yielded."""
    done: set[Ref] = set()
    for fresh, refs in _batches(reader, reader.view.entities(type, reader.asof.position)):
        for ref in refs:
            members = fresh.group(ref)
            if len(members) > 1:
                if members[0] in done:
                    continue
                done.add(members[0])
            state = fresh.state(ref)
            if state.exists:
                yield members[0], state


def folds_in_order(
    reader: Reader, type: str | None, after: Ref | None = None, *, reverse: bool = False
) -> Iterator[tuple[Ref, MergeState, Reader]]:
    """Yield every fold that exists, by the type and key of its smallest entity, from after one on, and who read it.

    It costs what was yielded so far, and keeps a bounded part of it.
    """
    count = WALK_ENTITIES
    while True:
        refs = reader.view.entities(type, reader.asof.position, after=after, limit=count, reverse=reverse)
        fresh = Reader(reader.view, reader.asof, reader.policies)
        for ref in refs:
            if fresh.group(ref)[0] == ref:  # the others of a group are shown under it
                state = fresh.state(ref)
                if state.exists:
                    yield ref, state, fresh
        if len(refs) < count:
            return
        after, count = refs[-1], min(2 * count, READER_FOLDS)


def _batches(reader: Reader, refs: Iterable[Ref]) -> Iterator[tuple[Reader, list[Ref]]]:
    """Yield entities some at a time, each time with a fresh reader at the same as-of."""
    everything = list(refs)
    for start in range(0, len(everything), READER_FOLDS):
        yield Reader(reader.view, reader.asof, reader.policies), everything[start : start + READER_FOLDS]


# Queries


class _Turned:
    """A value that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __lt__(self, other: _Turned) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Turned) and other.key == self.key

    __hash__ = None  # type: ignore[assignment]


def walk(reader: Reader, asked: Query, after: Ref | None) -> Iterator[Ref]:
    """Yield the entities that fulfil all conditions of a query that is not sorted by a field, from after one on.

    They are folded one after the other, by type and key: it costs what was passed on the way.
    """
    for ref, state, fresh in folds_in_order(reader, asked.type, after, reverse=asked.descending):
        if not state.deleted and _holds(state, fresh.rules(ref.type), asked.where):
            yield ref


def query(reader: Reader, asked: Query) -> list[Ref]:
    """Return the entities that fulfil all conditions, in order, after the page before; every one is folded for it."""
    rank = _ranking(asked)
    after: Any = None
    if asked.page.place is not None:
        last = Ref(*asked.page.place)
        after = rank(last, reader.state(last), reader.rules(last.type))
    ranked: list[tuple[Any, Ref]] = []
    for ref, state in folds(reader, asked.type):
        rules = reader.rules(ref.type)
        if not state.deleted and _holds(state, rules, asked.where):
            place = rank(ref, state, rules)
            if after is None or after < place:
                ranked.append((place, ref))
    ranked.sort(key=lambda item: item[0])
    return [ref for _, ref in ranked]


def _ranking(asked: Query) -> Callable[[Ref, MergeState, Rules], tuple[Any, ...]]:
    """Return what gives an entity its place: by the field asked for, those without it last, then by type and key."""

    def rank(ref: Ref, state: MergeState, rules: Rules) -> tuple[Any, ...]:
        name = ref.type.encode(), ref.key.encode()
        if asked.sort is None:
            return (_Turned(name) if asked.descending else name,)
        found = snapshot.fields_of(state, rules, (asked.sort,))
        if asked.sort not in found:
            return True, (), name
        key = order_key(found[asked.sort])
        return False, _Turned(key) if asked.descending else key, name

    return rank


def _holds(state: MergeState, rules: Rules, where: Iterable[tuple[str, Json]]) -> bool:
    conditions = list(where)
    values = snapshot.fields_of(state, rules, {name for name, _ in conditions})
    return all(name in values and _fulfils(values[name], wanted, rules, name) for name, wanted in conditions)


def _fulfils(value: Json, wanted: Json, rules: Rules, name: str) -> bool:
    """Return whether a value is the one wanted or, where the field is a collection, holds it."""
    key = order_key(wanted)  # equal exactly when the canonical bytes are
    if order_key(value) == key:
        return True
    collects = rules.schema.policy_of(name).name in (_UNION, _APPEND)
    return collects and isinstance(value, list) and any(order_key(element) == key for element in value)


# Entities that may be one


def duplicates(reader: Reader, type: str | None) -> tuple[Duplicate, ...]:
    """Return the identifying values that several entities are believed to have which are not joined."""
    sharing: dict[tuple[str, str, str], list[Ref]] = {}
    for ref, state in folds(reader, type):
        if state.deleted or relation.endpoints(ref) is not None:
            continue
        rules = reader.rules(ref.type)
        fields = {part.field for rule in rules.schema.identity for part in rule.parts}
        for rule, value in identity.shared_values(rules.schema, snapshot.fields_of(state, rules, fields)):
            sharing.setdefault((ref.type, rule, value), []).append(ref)
    return tuple(
        Duplicate(*names, tuple(sorted(set(refs), key=lambda ref: ref.key.encode())))
        for names, refs in sorted(sharing.items())
        if len(set(refs)) > 1
    )


# The shape of what is stored


def infer(reader: Reader, type: str, progress: Callable[[int, int], object] | None = None) -> dict[str, Any]:
    """Return a schema that everything stored of a type fits; `NotFound` when nothing is."""
    rules = reader.rules(type)
    shown = (
        (snapshot.fields_of(state, rules), [s.observation for s in reader.stored(state.members)])
        for _, state in _told(folds(reader, type), len(reader.view.entities(type, reader.asof.position)), progress)
        if not state.deleted
    )
    found = inference.infer(shown, rules)
    if found is None:
        raise NotFound(
            f"{type}: there is nothing of this type. Nothing was changed. Store some records first.",
            {"entity_type": type},
        )
    return found


def _told(
    found: Iterable[tuple[Ref, MergeState]], whole: int, progress: Callable[[int, int], object] | None
) -> Iterator[tuple[Ref, MergeState]]:
    """Yield folds, telling how many there were; entities that are joined make fewer folds than the whole."""
    for done, fold in enumerate(found, 1):
        yield fold
        if progress is not None and done < whole:
            progress(done, whole)
    if progress is not None:
        progress(whole, whole)

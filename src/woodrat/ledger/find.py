"""Finding: search by pinned tokens, queries by value, entities that may be one, the shape of what is stored.

Order never depends on the engine or on how much else there is. A cursor holds the place of the last item rather than
a count, so pages stay in step whatever is written between them.

The search index trails the log. Before the present is searched it is brought up to date in a transaction of its own;
whatever it does not cover (a read-only ledger, an earlier moment) is folded instead, and the answer is the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from woodrat.canon import form, ids
from woodrat.canon.digest import base32, digest, unbase32
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.canon.order import order_key
from woodrat.engines.port import Engine, Transaction, View
from woodrat.errors import Fault, NotFound, Refused, Unavailable, pointer_part, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.read import PAGE_MAX as PAGE_MAX
from woodrat.ledger.read import Reader, changed
from woodrat.merge import Policy, inference, snapshot
from woodrat.merge import fold as merge
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.merge.snapshot import Snapshot
from woodrat.records import dataclass, replace
from woodrat.records import field as record_field
from woodrat.state import identity, observation, relation, tokens
from woodrat.state.asof import AsOf
from woodrat.state.tokens import Words

QUERY_BYTES_MAX: Final = ids.KEY_BYTES_MAX
"""Longest query, in UTF-8; as long as a key, so that every key can be looked for."""
CONDITIONS_MAX: Final = 100
"""Most conditions of one query."""
INDEX_ENTRIES: Final = 10_000
"""How much of the log one transaction brings into the search index at most; writers wait no longer than that."""
READER_FOLDS: Final = 1_000
"""After so many folds a walk begins with a fresh reader, since a reader keeps all it has folded."""

_CHECK_BYTES = 8
_UNION, _APPEND = "union", "append"


class _Item(Protocol):
    def to_json(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=_Item)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of the items found, in order. Iterating goes on to the pages that follow, and asks for them as it does."""

    items: tuple[T, ...]
    """The items."""
    cursor: str | None
    """What to ask with for the items that follow; `None` when there are none."""
    further: Callable[[str], Page[T]] | None = record_field(default=None, compare=False, repr=False)
    """Asks for the page at a cursor, as this one was asked for; None where nobody can."""

    def __iter__(self) -> Iterator[T]:
        page = self
        while True:
            yield from page.items
            if page.cursor is None or page.further is None:
                return
            page = page.further(page.cursor)

    def asked_by(self, further: Callable[[str], Page[T]]) -> Page[T]:
        """Return the page with how the next is asked for."""
        return self if self.cursor is None else replace(self, further=further)

    def to_json(self) -> dict[str, Any]:
        """Return the page as plain JSON."""
        return {"items": [item.to_json() for item in self.items], "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class Hit:
    """One entity that a search found."""

    snapshot: Snapshot
    """What is believed about it."""
    exact: bool
    """Whether the query is its key, but for the case of A to Z and spaces at the ends."""
    fields: tuple[str, ...]
    """Fields in which any of the query's words begins a word, by name; a hit on the key alone has none."""

    def to_json(self) -> dict[str, Any]:
        """Return the hit as plain JSON."""
        return {"snapshot": self.snapshot.to_json(), "exact": self.exact, "fields": list(self.fields)}


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An identifying value that several entities have, which are not joined."""

    type: str
    """Their type."""
    rule: str
    """The identity rule, such as `email` or `name+company`."""
    value: str
    """The key the rule makes of their values."""
    entities: tuple[Ref, ...]
    """The entities, by key; `merge` joins two of them."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain JSON."""
        return {
            "type": self.type,
            "rule": self.rule,
            "value": self.value,
            "entities": [str(ref) for ref in self.entities],
        }


# What was asked


@dataclass(frozen=True, slots=True)
class Search:
    """A search, checked."""

    wanted: tuple[str, ...]
    """Tokens that all must match, sorted."""
    whole: str
    """What stands for the query as a whole key."""
    type: str | None
    limit: int
    question: bytes
    """What a cursor belongs to."""
    after: tuple[Any, ...] | None
    """The rank of the last item of the page before."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, checked."""

    type: str | None
    where: tuple[tuple[str, Json], ...]
    """Fields and the values they must have; all of them must hold."""
    sort: str | None
    descending: bool
    limit: int
    question: bytes
    """What a cursor belongs to."""
    after: tuple[int, Ref] | None
    """The last item of the page before, and the position it was read at."""


def ask_search(query: object, entity_type: object, limit: object, cursor: object) -> Search:
    """Return a search once everything about it is in order; `Refused` says all that is not."""
    faults = _common_faults(entity_type, limit)
    wanted: list[str] = []
    text = query if isinstance(query, str) else ""
    if not isinstance(query, str):
        faults.append(Fault("query", f"expected text, got {shown(query)}", "Send the words to look for as text."))
    elif found := form.faults(query, "query"):
        faults += found
    elif len(query.encode()) > QUERY_BYTES_MAX:
        problem = f"the query has {len(query.encode())} bytes in UTF-8, where {QUERY_BYTES_MAX} is the limit"
        faults.append(Fault("query", problem, "Look for fewer words."))
    else:
        wanted = sorted(set(tokens.tokens(query)))
        if not wanted:
            problem = f"there is no word in {shown(query)}"
            faults.append(Fault("query", problem, "Send at least one letter or digit."))
    whole = tokens.whole(text)
    question = form.serialise(["search", wanted, whole, _plain(entity_type)]) if not faults else b""
    place = read_cursor(cursor, question, faults)
    _check(faults)
    assert isinstance(limit, int)
    return Search(tuple(wanted), whole, _type(entity_type), limit, question, None if place is None else tuple(place))


def ask_query(
    entity_type: object, where: object, sort: object, descending: object, limit: object, cursor: object
) -> Query:
    """Return a query once everything about it is in order; `Refused` says all that is not."""
    faults = _common_faults(entity_type, limit)
    conditions = _conditions(where, faults)
    if sort is not None:
        if isinstance(sort, str):
            faults += observation.field_name_faults(sort, "sort")
        else:
            faults.append(Fault("sort", f"expected a field, got {shown(sort)}", "Send the field's name as text."))
    if not isinstance(descending, bool):
        faults.append(Fault("descending", f"got {shown(descending)}", "Send true or false."))
    asked = [[name, value] for name, value in conditions]
    question = b"" if faults else form.serialise(["query", _plain(entity_type), asked, _plain(sort), descending])
    place = read_cursor(cursor, question, faults)
    _check(faults)
    assert isinstance(limit, int) and isinstance(descending, bool)
    after = None if place is None else (place[0], Ref(place[1], place[2]))
    return Query(_type(entity_type), tuple(conditions), _type(sort), descending, limit, question, after)


def check_type(entity_type: object, *, optional: bool = True) -> str | None:
    """Return an entity type that is in order; `Refused` otherwise."""
    if not (optional and entity_type is None):
        _check(ids.type_faults(entity_type, "entity_type"))
    return _type(entity_type)


def _common_faults(entity_type: object, limit: object) -> list[Fault]:
    faults = [] if entity_type is None else ids.type_faults(entity_type, "entity_type")
    if type(limit) is not int or not 1 <= limit <= PAGE_MAX:
        faults.append(Fault("limit", f"got {shown(limit)}", f"Send 1 to {PAGE_MAX}; a cursor leads to the rest."))
    return faults


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


# Cursors


def make_cursor(question: bytes, place: list[Json]) -> str:
    """Return a place in the answer to a question as text; it fits no other question."""
    body = form.serialise(place)
    return base32(digest("cursor", question + b"\n" + body)[:_CHECK_BYTES] + body)


def read_cursor(cursor: object, question: bytes, faults: list[Fault]) -> list[Any] | None:
    """Return the place a cursor holds; one that is broken or belongs to another question is a fault."""
    if cursor is None or faults:
        return None
    data = unbase32(cursor) if isinstance(cursor, str) else None
    if data is None or digest("cursor", question + b"\n" + data[_CHECK_BYTES:])[:_CHECK_BYTES] != data[:_CHECK_BYTES]:
        remedy = "Send the cursor of a page as it was given, with the same question; or none, to begin again."
        faults.append(Fault("cursor", f"{shown(cursor)} is no cursor of this question", remedy))
        return None
    place: Any = form.decode(data[_CHECK_BYTES:])
    assert isinstance(place, list), "a cursor with the right check holds what we wrote"
    return place


# Search


def search(reader: Reader, asked: Search) -> Page[Hit]:
    """Return the entities whose key and text values match every word of the query by prefix.

    The index answers for what was not touched since the earlier of its own position and the as-of; the rest is folded.
    """
    found: dict[Ref, tuple[bool, frozenset[str]]] = {}
    if reader.asof.effective is not None:
        for ref, state in folds(reader, asked.type):
            _judge(ref, words_of(state, reader.rules(ref.type)), asked, found)
    else:
        floor = min(reader.asof.position, reader.view.indexed())
        touched = stale(reader.view, floor, reader.view.head().position, reader.policies)
        _look_up(reader.view, asked, touched, found)
        for ref in _roots(reader, touched, asked.type):
            _judge(ref, words_of(reader.state(ref), reader.rules(ref.type)), asked, found)
    if asked.type is None:
        # A relation repeats the keys of both its ends; it is found by asking for its type.
        found = {ref: hit for ref, hit in found.items() if relation.endpoints(ref) is None}
    ranked = (((not exact, -len(fields), ref.id), ref) for ref, (exact, fields) in found.items())
    following = (item for item in ranked if asked.after is None or item[0] > asked.after)
    best = heapq.nsmallest(asked.limit + 1, following, key=lambda item: item[0])
    hits = []
    for _, ref in best[: asked.limit]:
        exact, fields = found[ref]
        hits.append(Hit(reader.snapshot(ref), exact, tuple(sorted(fields))))
    more = len(best) > asked.limit
    return Page(tuple(hits), make_cursor(asked.question, list(best[asked.limit - 1][0])) if more else None)


def _judge(ref: Ref, words: Words, asked: Search, found: dict[Ref, tuple[bool, frozenset[str]]]) -> None:
    hit = tokens.matches(words, asked.wanted)
    if hit is not None:
        found[ref] = (asked.whole in words, hit)


def _look_up(view: View, asked: Search, stale: set[Ref], found: dict[Ref, tuple[bool, frozenset[str]]]) -> None:
    """Find what the index answers for."""
    hits: dict[Ref, frozenset[str]] | None = None
    for prefix in sorted(asked.wanted, key=len, reverse=True):
        having = view.matching(prefix, asked.type)
        if hits is None:
            hits = {ref: fields for ref, fields in having.items() if ref not in stale}
        else:
            hits = {ref: fields | having[ref] for ref, fields in hits.items() if ref in having}
        if not hits:
            return
    exact = view.matching(asked.whole, asked.type)
    found.update({ref: (ref in exact, fields) for ref, fields in (hits or {}).items()})


def words_of(state: MergeState, rules: Rules) -> Words:
    """Return the tokens of a fold; one that is deleted or does not exist has none, nor does a deleted member's key."""
    if state.deleted or not state.exists:
        return {}
    members = [member for member in state.members if not merge.is_deleted(state, member)]
    return tokens.words(members, snapshot.fields_of(state, rules), rules.schema.searchable)


def stale(view: View, after: int, through: int, policies: Mapping[str, Policy]) -> set[Ref]:
    """Return every entity whose fold may have changed between two positions, those of its group included."""
    spoken = changed(view, after, through)
    before = Reader(view, AsOf(after), policies)
    now = Reader(view, AsOf(view.head().position), policies)
    return {member for ref in spoken for member in (*before.group(ref), *now.group(ref))}


def _roots(reader: Reader, refs: Iterable[Ref], type: str | None) -> set[Ref]:
    return {reader.group(ref)[0] for ref in refs if type in (None, ref.type)}


def catch_up(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> None:
    """Bring the search index up to date, in transactions of bounded length, if it is behind.

    An index that cannot be written to now stays behind: what it lacks is folded by each search.
    """
    with engine.view(tenant) as view:
        if not changed(view, view.indexed(), view.head().position):
            return
    behind = True
    while behind:
        try:
            with engine.transaction(tenant) as write:
                behind = index(write, policies) < write.head().position
        except Unavailable:
            return


def index(write: Transaction, policies: Mapping[str, Policy]) -> int:
    """Bring the next part of the log into the search index; return the position it is then true for.

    Tokens are taken from the present state. Where that lies ahead of the position, what was touched in between is
    indexed again with its own part of the log.
    """
    head, before = write.head().position, write.indexed()
    position = min(head, before + INDEX_ENTRIES)
    touched = stale(write, before, position, policies)
    words: dict[Ref, Words] = {ref: {} for ref in touched}
    for reader, refs in _batches(Reader(write, AsOf(head), policies), touched):
        for root in _roots(reader, refs, None):
            words[root] = words_of(reader.state(root), reader.rules(root.type))
    write.index(position, words)
    return position


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


def query(reader: Reader, asked: Query) -> Page[Snapshot]:
    """Return the entities that fulfil all conditions, in order; every entity of the type is folded for it."""
    rank = _ranking(asked)
    after: Any = None
    if asked.after is not None:
        position, last = asked.after
        if position > reader.view.head().position:
            remedy = "Send the cursor to the ledger that gave it; or none, to begin again."
            _check([Fault("cursor", f"it was given at position {position}, which is not here", remedy)])
        # The place is that of the last item as the page before showed it, whatever became of it since.
        then = Reader(reader.view, AsOf(position, reader.asof.effective), reader.policies)
        after = rank(last, then.state(last), then.rules(last.type))

    def following() -> Iterator[tuple[Any, Ref]]:
        for ref, state in folds(reader, asked.type):
            rules = reader.rules(ref.type)
            if not state.deleted and _holds(state, rules, asked.where):
                place = rank(ref, state, rules)
                if after is None or after < place:
                    yield place, ref

    best = heapq.nsmallest(asked.limit + 1, following(), key=lambda item: item[0])
    items = tuple(reader.snapshot(ref) for _, ref in best[: asked.limit])
    if len(best) <= asked.limit:
        return Page(items, None)
    last = best[asked.limit - 1][1]
    return Page(items, make_cursor(asked.question, [reader.asof.position, last.type, last.key]))


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
            f"{type}: nothing is stored of this type. Nothing was changed. Store some records first.",
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

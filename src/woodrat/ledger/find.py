"""Finding: what a search asks for, entities that may be one, the shape of what is stored.

Order never depends on the engine or on how much else there is. A cursor of a search holds the place of the last item
(`pages.py`); queries are in `query.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.pages import PageRequest, page_request
from woodrat.ledger.read import LAST_KEY, Reader
from woodrat.ledger.state_index import Coverage, coverage
from woodrat.ledger.state_rows import SHOWN, shown_key, shown_ref, type_prefix
from woodrat.merge import inference, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state import identity, relation, tokens

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.view import View

T = TypeVar("T")
QUERY_BYTES_MAX: Final = ids.KEY_BYTES_MAX
"""Longest query, in UTF-8; as long as a key, so that every key can be looked for."""
WAITING_FOLDS_MAX: Final = 100_000
"""How many entities of a type a list folds at most because the index lacks the type's new schema."""
READER_FOLDS: Final = 1_000
"""After so many folds a walk begins with a fresh reader, since a reader keeps all it has folded."""
GATHERED: Final = 64
"""How many entities are looked up at once: a page of the usual length and a few more."""
RELATION_BEGINS: Final = b'["'
"""What the key of a relation begins with; so do keys that identity rules make of several values."""
WALK_ENTITIES: Final = 128
"""How many entities a walk asks the engine for at first; each time it asks for twice as many, up to `READER_FOLDS`."""


@dataclass(frozen=True, slots=True)
class Hit(Record):
    """One entity that a search found."""

    COMPACT: ClassVar = ("snapshot", "exact", "fields")
    """What a list shows of it."""

    snapshot: Snapshot
    """What is believed about it."""
    exact: bool
    """Whether the query is its key or an identifying value, but for the case of A to Z and for spaces."""
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
class RankedHit:
    """An entity that a search found, and its place among them."""

    rank: tuple[bool, str]
    """Exact matches first, then by entity id."""
    ref: Ref
    """The entity."""
    fields: frozenset[str]
    """Fields in which a word of the query begins a word."""

    def show(self, reader: Reader) -> Hit:
        """Return the hit with what is believed about the entity."""
        return Hit(reader.snapshot(self.ref), not self.rank[0], tuple(sorted(self.fields)))


def ask_search(context: Context, query: object, entity_type: object, limit: object, cursor: object) -> Search:
    """Return a search once everything about it is in order; `Refused` says all that is not."""
    faults = type_faults(entity_type)
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
    page = page_request(context, ["search", [*wanted], whole, text_or_none(entity_type)], limit, cursor, faults)
    return Search(tuple(wanted), whole, text_or_none(entity_type), page)


def check_type(entity_type: object, *, optional: bool = True) -> str | None:
    """Return an entity type that is in order; `Refused` otherwise."""
    if not (optional and entity_type is None):
        _check(ids.type_faults(entity_type, "entity_type"))
    return text_or_none(entity_type)


def type_faults(entity_type: object) -> list[Fault]:
    """Return what is wrong with an entity type that may be left out."""
    return [] if entity_type is None else ids.type_faults(entity_type, "entity_type")


def text_or_none(value: object) -> str | None:
    """Return a value that is text, or none."""
    return value if isinstance(value, str) else None


def _check(faults: list[Fault]) -> None:
    if faults:
        raise Refused(faults, outcome=NO_READ)


# Walking over everything


def entity_pages(view: View, type: str | None, through: int) -> Iterator[Sequence[Ref]]:
    """Yield every entity anything was ever said of, by type and key, some at a time."""
    last: Ref | None = None
    while refs := view.entities(type, through, after=last, limit=READER_FOLDS):
        yield refs
        last = refs[-1]


def folds(reader: Reader, type: str | None) -> Iterator[tuple[Ref, MergeState]]:
    """Yield every fold that exists, as `Reader.roots` does, without keeping what was yielded."""
    done: set[Ref] = set()
    for refs in entity_pages(reader.view, type, reader.asof.position):
        fresh = Reader(reader.view, reader.asof, reader.policies)
        for ref in gathered(fresh, refs):
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
    """Yield every fold that lists show, by the type and key of its smallest entity, from after one on, and its reader.

    It costs what was yielded so far, and keeps a bounded part of it.
    """
    rows = coverage(reader)
    for name in types_in_order(reader, type, reverse=reverse):
        last = after if after is not None and after.type == name else None
        if last is None and after is not None and (name.encode() > after.type.encode()) is reverse:
            continue  # the whole type comes before it
        if rows is not None and rows.covers(name):
            refs = _listed(reader, rows, name, last, reverse)
        else:
            refs = _said(reader, name, last, reverse)
            refs = refs if rows is None else at_most(name, refs)
        while some := list(islice(refs, GATHERED)):
            fresh = Reader(reader.view, reader.asof, reader.policies)  # a reader keeps all it has folded
            fresh.gather(some)
            for ref in some:
                state = fresh.state(ref)
                if state.exists and not state.deleted and fresh.group(ref)[0] == ref:
                    yield ref, state, fresh


def at_most(type: str, found: Iterable[T]) -> Iterator[T]:
    """Yield what a list folds of a type whose new schema the index lacks; `Unavailable` where that is too much."""
    for number, each in enumerate(found):
        if number >= WAITING_FOLDS_MAX:
            raise Unavailable(
                f"{type}: the index lacks its new schema, and this list would fold more than {number} entities. "
                "Nothing was changed. Open the ledger for writing once and list again, or list as of a moment before "
                "the schema. Reads of one entity answer now.",
                {"entity_type": type},
            )
        yield each


def _listed(reader: Reader, rows: Coverage, type: str, after: Ref | None, reverse: bool) -> Iterator[Ref]:
    """Yield the entities of a type that rows list, and those laid over them, by key."""
    over = [root for root in rows.roots if root.type == type and _follows(root, after, reverse)]
    start = None if after is None else shown_key(after)
    listed = (
        ref
        for key, _ in scan_all(reader, rows, SHOWN, type_prefix(type), start, reverse=reverse)
        if (ref := shown_ref(key)) not in rows.laid_over
    )
    return merge(listed, sorted(over, key=_order, reverse=reverse), key=_order, reverse=reverse)


def scan_all(
    reader: Reader, rows: Coverage, index: str, prefix: bytes, after: bytes | None = None, *, reverse: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows that begin with a prefix, from after one on, reading some at a time."""
    count = GATHERED
    while True:
        found = reader.view.scan(index, prefix, through=rows.through, after=after, reverse=reverse, limit=count)
        yield from found
        if len(found) < count:
            return
        after, count = found[-1][0], min(2 * count, READER_FOLDS)


def count_shown(reader: Reader, type: str | None) -> int:
    """Return how many entities lists show, of a type or of all."""
    rows, view = coverage(reader), reader.view
    types = list(types_in_order(reader, type))
    if rows is None or not all(map(rows.covers, types)):
        return sum(1 for _ in folds_in_order(reader, type))
    found = sum(view.count(SHOWN, type_prefix(name), through=rows.through) for name in types)
    keys = [shown_key(ref) for ref in rows.laid_over if ref.type in types]
    found -= sum(view.count(SHOWN, key, through=rows.through) for key in keys)
    states = (reader.state(root) for root in rows.roots if root.type in types)
    return found + sum(1 for state in states if state.exists and not state.deleted)


def count_relations(reader: Reader, type: str) -> int:
    """Return how many of the entities that lists show of a type are relations: their keys name two entities."""
    rows = coverage(reader)
    if rows is None or not rows.covers(type):
        return sum(1 for ref, _, _ in folds_in_order(reader, type) if relation.endpoints(ref) is not None)
    listed = (shown_ref(key) for key, _ in scan_all(reader, rows, SHOWN, type_prefix(type) + RELATION_BEGINS))
    found = sum(1 for ref in listed if ref not in rows.laid_over and relation.endpoints(ref) is not None)
    roots = (root for root in rows.roots if root.type == type and relation.endpoints(root) is not None)
    return found + sum(1 for state in map(reader.state, roots) if state.exists and not state.deleted)


def _said(reader: Reader, type: str, after: Ref | None, reverse: bool) -> Iterator[Ref]:
    """Yield the entities of a type that anything was said of, and the smallest of groups that nothing was said of."""
    unspoken = sorted(_unspoken_roots(reader, type), key=_order, reverse=reverse)
    following = (ref for ref in unspoken if _follows(ref, after, reverse))
    return merge(_walked(reader, type, after, reverse), following, key=_order, reverse=reverse)


def _walked(reader: Reader, type: str, after: Ref | None, reverse: bool) -> Iterator[Ref]:
    count = WALK_ENTITIES
    while True:
        refs = reader.view.entities(type, reader.asof.position, after=after, limit=count, reverse=reverse)
        yield from refs
        if len(refs) < count:
            return
        after, count = refs[-1], min(2 * count, READER_FOLDS)


def gathered(reader: Reader, refs: Iterable[Ref]) -> Iterator[Ref]:
    """Yield entities that a reader is to read each at a time, after it has looked some of them up at once."""
    for some in chunks(refs):
        reader.gather(some)
        yield from some


def chunks(refs: Iterable[Ref]) -> Iterator[list[Ref]]:
    """Yield entities in parts that are looked up at once."""
    left = iter(refs)
    while some := list(islice(left, GATHERED)):
        yield some


def _order(ref: Ref) -> tuple[bytes, bytes]:
    return ref.type.encode(), ref.key.encode()


def _follows(ref: Ref, after: Ref | None, reverse: bool) -> bool:
    """Return whether an entity comes after another in the order of a walk."""
    return after is None or (_order(ref) > _order(after)) is not reverse


def _unspoken_roots(reader: Reader, type: str) -> set[Ref]:
    """Return the smallest entities of groups of a type that nothing was ever said of.

    An import or an erasure can leave such a group: what joins its members names an entity that nothing is said of.
    """
    view, position = reader.view, reader.asof.position
    ends = (end for edge in view.entities(relation.SAME_AS, position) for end in relation.joined(edge) or ())
    roots = {reader.group(end)[0] for end in ends if end.type == type and view.version(end.digest, position) is None}
    return {root for root in roots if view.version(root.digest, position) is None}


def types_in_order(reader: Reader, type: str | None, *, reverse: bool = False) -> Iterator[str]:
    """Yield the types of all entities in order, or the one that is asked for; each costs the same."""
    if type is not None:
        yield type
        return
    after: Ref | None = None
    while refs := reader.view.entities(None, reader.asof.position, after=after, limit=1, reverse=reverse):
        yield refs[0].type
        after = Ref(refs[0].type, "" if reverse else LAST_KEY)


# Entities that may be one


def duplicates(reader: Reader, found: Iterable[tuple[Ref, MergeState]]) -> tuple[Duplicate, ...]:
    """Return the identifying values that several of some folds are believed to have."""
    sharing: dict[tuple[str, str, str], list[Ref]] = {}
    for ref, state in found:
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

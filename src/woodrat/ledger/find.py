"""Finding: search by pinned tokens, entities that may be one, the shape of what is stored.

Order never depends on the engine or on how much else there is. A cursor of a search holds the place of the last item
(`pages.py`); queries are in `query.py`.

The search index trails the log. Before the present is searched it is brought up to date in a transaction of its own;
whatever it does not cover (a read-only ledger, an earlier moment) is folded instead, and the answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import Engine, Transaction, View
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.pages import PageRequest, page_request
from woodrat.ledger.read import Reader, changed
from woodrat.merge import Policy, inference, snapshot
from woodrat.merge import fold as merge
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state import identity, relation, tokens
from woodrat.state.asof import AsOf
from woodrat.state.tokens import Words

if TYPE_CHECKING:
    from woodrat.context import Context

QUERY_BYTES_MAX: Final = ids.KEY_BYTES_MAX
"""Longest query, in UTF-8; as long as a key, so that every key can be looked for."""
INDEX_ENTRIES: Final = 10_000
"""How much of the log one transaction brings into the search index at most; writers wait no longer than that."""
READER_FOLDS: Final = 1_000
"""After so many folds a walk begins with a fresh reader, since a reader keeps all it has folded."""
WALK_ENTITIES: Final = 128
"""How many entities a walk asks the engine for at first; each time it asks for twice as many, up to `READER_FOLDS`."""
LAST_KEY: Final = "\U0010ffff" * (ids.KEY_BYTES_MAX // 4 + 1)
"""Sorts after every key."""


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


# Search


def search(reader: Reader, asked: Search) -> list[RankedHit]:
    """Return the entities whose key and text values match every word of the query by prefix, after the page before.

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
    ranked = (RankedHit((not exact, -len(fields), ref.id), ref, fields) for ref, (exact, fields) in found.items())
    after = asked.page.place
    return sorted((hit for hit in ranked if after is None or hit.rank > after), key=lambda hit: hit.rank)


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


def types_in_order(reader: Reader, type: str | None, *, reverse: bool = False) -> Iterator[str]:
    """Yield the types of all entities in order, or the one that is asked for; each costs the same."""
    if type is not None:
        yield type
        return
    after: Ref | None = None
    while refs := reader.view.entities(None, reader.asof.position, after=after, limit=1, reverse=reverse):
        yield refs[0].type
        after = Ref(refs[0].type, "" if reverse else LAST_KEY)


def _batches(reader: Reader, refs: Iterable[Ref]) -> Iterator[tuple[Reader, list[Ref]]]:
    """Yield entities some at a time, each time with a fresh reader at the same as-of."""
    everything = list(refs)
    for start in range(0, len(everything), READER_FOLDS):
        yield Reader(reader.view, reader.asof, reader.policies), everything[start : start + READER_FOLDS]


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

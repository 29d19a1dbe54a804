"""Searching: what an index and, where that does not reach, folds find for the words of a query, in order.

The search index trails the log. Before the present is searched it is brought on, by a bounded part of the log; whatever
it does not cover (a read-only ledger, the inside of a write, what is still to come) is folded instead, and the answer
is the same. A page reads the beginning of one list of the index where the words allow it, and else all rows of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.ids import Ref
from woodrat.ledger import index as log_index
from woodrat.ledger import search_index, trailing
from woodrat.ledger.find import RankedHit, Search, folds
from woodrat.ledger.read import Reader
from woodrat.ledger.search_index import words_of
from woodrat.merge.packing import garbled
from woodrat.records import replace
from woodrat.state import relation, tokens
from woodrat.state.tokens import Words

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.port import Engine
    from woodrat.ledger.pages import PageRequest
    from woodrat.merge import Policy

CATCH_UP_ENTRIES: Final = 200_000
"""How much of the log a search brings into its index before it answers."""
FOLDED_ENTRIES: Final = 10_000
"""How much of the log that its index lacks a search folds; beyond that it answers as of where the index ends."""
EVALUATED_MAX: Final = 64
"""How many entities a search folds rather than read long lists of the index."""


def search(reader: Reader, asked: Search, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
    """Yield the entities whose key and text values match every word of the query by prefix, in order, after a rank.

    The index answers for what it covers; what changed since is folded. At an effective time everything is.
    """
    if reader.asof.effective is not None:
        found = (
            _judged(ref, words_of(state, reader.rules(ref.type)), asked) for ref, state in folds(reader, asked.type)
        )
        yield from _from(after, found)
        return
    base, changed = trailing.uncovered(reader.view, search_index.INDEX, reader.policies, reader.asof.position)
    through = None if base == reader.view.head().position else base
    folded = (_evaluated(reader, ref, asked) for ref in {reader.group(ref)[0] for ref in changed})
    indexed = _Indexed(reader, asked, through)
    ids = {ref.id for ref in changed}
    rest = (hit for hit in indexed.hits(after) if hit.rank[2] not in ids)
    yield from heapq.merge(_from(after, folded), rest, key=lambda hit: hit.rank)


def _from(after: tuple[Any, ...] | None, found: Iterable[RankedHit | None]) -> list[RankedHit]:
    """Return hits in order, those after a rank."""
    hits = [hit for hit in found if hit is not None and (after is None or hit.rank > after)]
    return sorted(hits, key=lambda hit: hit.rank)


def _judged(ref: Ref, words: Words, asked: Search) -> RankedHit | None:
    """Return the hit that an entity is by its words; none where it is none."""
    if asked.type is None and relation.endpoints(ref) is not None:
        return None  # a relation repeats the keys of both its ends; it is found by asking for its type
    fields = tokens.matches(words, asked.wanted)
    return None if fields is None else RankedHit((asked.whole not in words, -len(fields), ref.id), ref, fields)


def _evaluated(reader: Reader, ref: Ref, asked: Search) -> RankedHit | None:
    """Return the hit that an entity is, from its fold."""
    if asked.type not in (None, ref.type):
        return None
    return _judged(ref, words_of(reader.state(ref), reader.rules(ref.type)), asked)


class _Indexed:
    """What the search index finds, as it was at a position."""

    def __init__(self, reader: Reader, asked: Search, through: int | None) -> None:
        self._reader, self._view, self._asked, self._through = reader, reader.view, asked, through
        self._names = (search_index.WORDS,) if asked.type is None else (search_index.WORDS, search_index.RELATION_WORDS)
        self._exact = self._all(asked.whole) or {}

    def hits(self, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
        """Yield hits in order, from after a rank on."""
        if len(self._asked.wanted) == 1:
            in_order = self._in_order(self._asked.wanted[0], after)
            if in_order is not None:
                yield from in_order
                return
        few: list[Mapping[bytes, frozenset[str]]] = []
        many: list[str] = []
        for word in sorted(self._asked.wanted, key=len, reverse=True):  # long words mostly stand in few entities
            some = self._all(word, search_index.ROWS_MAX)
            if some is None:
                many.append(word)
            elif len(some) <= EVALUATED_MAX:
                yield from _from(after, map(self._evaluate, some))
                return
            else:
                few.append(some)
        found: Mapping[bytes, frozenset[str]] = few[0] if few else self._every(many.pop())
        for other in few[1:]:
            found = search_index.both(found, other)
        if many and len(found) <= EVALUATED_MAX:
            yield from _from(after, map(self._evaluate, found))
            return
        for word in many:
            found = search_index.both(found, self._every(word))
        ranked = sorted((id not in self._exact, -len(fields), id.decode()) for id, fields in found.items())
        for not_exact, count, id in ranked:
            rank = (not_exact, count, search_index.PREFIX + id)
            if after is None or rank > after:
                yield self._hit(rank, found[id.encode()])

    def _all(self, word: str, limit: int | None = None) -> dict[bytes, frozenset[str]] | None:
        found: dict[bytes, frozenset[str]] = {}
        for name in self._names:
            some = search_index.all_postings(self._view, name, word, self._asked.type, self._through, limit)
            if some is None:
                return None
            found.update(some)
        return found

    def _every(self, word: str) -> dict[bytes, frozenset[str]]:
        return self._all(word) or {}

    def _in_order(self, word: str, after: tuple[Any, ...] | None) -> Iterator[RankedHit] | None:
        """Return hits by the order of one long list, where all others under the word's beginning are short."""
        lists: list[search_index.List] = []
        for name in self._names:
            some = search_index.lists(self._view, name, word, self._asked.type, self._through)
            if some is None:
                return None
            lists += some
        apart = set(self._exact)
        long: list[search_index.List] = []
        for one in lists:
            ids = search_index.first_ids(self._view, one, self._through, EVALUATED_MAX)
            if ids is None:
                long.append(one)
            else:
                apart.update(ids)
        if (
            len(long) != 1
            or len(apart) > EVALUATED_MAX
            or not search_index.is_ordered(self._view, long[0], self._through)
        ):
            return None
        place = None if after is None or not after[0] else search_index.rank_bytes(-after[1], after[2])
        postings = search_index.postings(self._view, long[0], self._through, place)
        rest = (
            self._hit((True, -len(posting.fields), posting.id), posting.fields)
            for posting in postings
            if posting.rank[1:] not in apart
        )
        return heapq.merge(_from(after, map(self._evaluate, apart)), rest, key=lambda hit: hit.rank)

    def _evaluate(self, id: bytes) -> RankedHit | None:
        return _evaluated(self._reader, self._ref(id), self._asked)

    def _hit(self, rank: tuple[bool, int, str], fields: frozenset[str]) -> RankedHit:
        return RankedHit(rank, self._ref(rank[2].removeprefix(search_index.PREFIX).encode()), fields)

    def _ref(self, id: bytes) -> Ref:
        found = search_index.ref_of(self._view, id, self._through)
        if found is None:
            raise garbled("The search index")
        return found


def catch_up(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> int:
    """Bring the search index up to date as far as a search waits for; return how many entries it lacks then."""
    return trailing.catch_up(engine, tenant, search_index.INDEX, policies, CATCH_UP_ENTRIES)


def reachable(context: Context, page: PageRequest) -> PageRequest:
    """Return which page to answer: as of the end of the index, where that lacks more than a search folds."""
    with context.engine.view(context.tenant) as view:
        covered = log_index.covered(view, search_index.INDEX.name)
    return page if page.position - covered <= FOLDED_ENTRIES or covered < 0 else replace(page, position=covered)

"""Searching: what an index and, where that does not reach, folds find for the words of a query, in order.

The search index trails the log. It is brought on before it is searched, by a bounded part of the log; whatever it does
not cover (a read-only ledger, the inside of a write, what is still to come) is folded instead, and the answer is the
same. A page costs the rows of the lists of its words that it passes. Only a beginning that very many words share
(`LISTS_MAX`) reads all rows of these.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from math import prod
from typing import Any, Final, NamedTuple

from woodrat.canon.ids import Ref
from woodrat.ledger import search_index
from woodrat.ledger.find import RankedHit, Search, folds
from woodrat.ledger.read import Reader
from woodrat.ledger.search_index import List, ListStream, Stream, UnionStream, words_of
from woodrat.ledger.state_index import coverage
from woodrat.merge.packing import garbled
from woodrat.state import relation, tokens
from woodrat.state.tokens import Words

EVALUATED_MAX: Final = 64
"""How many entities a search folds rather than read long lists of the index."""
EVALUATED_ROWS: Final = 4_000
"""How many rows are read to see how few entities a word leads to."""
JOINS_MAX: Final = 64
"""How many lists, one of each word, are joined; with more ways to choose them all rows are read."""


def search(reader: Reader, asked: Search, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
    """Yield the entities whose key and text values match every word of the query by prefix, in order, after a rank.

    The index answers for what it covers; what changed since is folded. At an effective time everything is.
    """
    rows = coverage(reader, search_index.INDEX)
    if rows is None:
        found = (
            _judged(ref, words_of(state, reader.rules(ref.type)), asked) for ref, state in folds(reader, asked.type)
        )
        yield from _from(after, found)
        return
    new = set(rows.uncovered())
    if new:  # a new schema of theirs is still being taken in
        more = (reader.group(ref) for type in new for ref in reader.view.entities(type, reader.asof.position))
        rows.laid_over.update(chain.from_iterable(more))
    folded = (_evaluated(reader, ref, asked) for ref in {reader.group(ref)[0] for ref in rows.laid_over})
    ids = {search_index.id_bytes(ref.id) for ref in rows.laid_over}
    indexed = _Indexed(reader, asked, rows.through, ids)
    yield from heapq.merge(_from(after, folded), indexed.hits(after), key=lambda hit: hit.rank)


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
    """What the search index finds, as it was at a position, without some entities."""

    def __init__(self, reader: Reader, asked: Search, through: int | None, without: set[bytes]) -> None:
        self._reader, self._view, self._asked, self._through = reader, reader.view, asked, through
        self._names = (search_index.WORDS,) if asked.type is None else (search_index.WORDS, search_index.RELATION_WORDS)
        exact = self._all(asked.whole) or {}
        self._exact = [id for id in exact if id not in without]
        self._apart = without.union(exact)
        """Ids that are not to be found by lists: those whose key is the query come first, others are folded."""

    def hits(self, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
        """Yield hits in order, from after a rank on."""
        if after is None or not after[0]:
            yield from _from(after, map(self._evaluate, self._exact))
            after = None
        lists = [self._lists(word) for word in self._asked.wanted]
        if any(some is not None and not some for some in lists):
            return
        joins = _joins([some for some in lists if some is not None]) if None not in lists else None
        if joins is not None:
            yield from self._joined(joins, after)
        else:
            yield from self._ranked(after)

    def _lists(self, word: str) -> list[List] | None:
        """Return the lists of the words that begin so; none where they are too many."""
        found: list[List] = []
        for name in self._names:
            some = search_index.lists(self._view, name, word, self._asked.type, self._through)
            if some is None:
                return None
            found += some
        return found

    def _joined(self, joins: Mapping[int, Sequence[Join]], after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
        """Yield hits by joining lists: those with more fields first, each of these by id."""
        for count in sorted(joins, reverse=True):
            if after is not None and -after[1] < count:
                continue
            place = search_index.id_bytes(after[2]) if after is not None and -after[1] == count else None
            last: bytes | None = None
            for id, join in heapq.merge(*(self._ids(join, place) for join in joins[count]), key=lambda found: found[0]):
                if id == last or id in self._apart:
                    continue
                last = id
                if join.is_sure:
                    text = search_index.id_text(id)
                    yield RankedHit((True, -count, text), self._ref(id, text), join.fields)
                    continue
                hit = self._evaluate(id)
                # One with more fields than these lists tell has come before.
                if hit is not None and hit.rank[1] == -count:
                    yield hit

    def _ids(self, join: Join, after: bytes | None) -> Iterator[tuple[bytes, Join]]:
        streams: list[Stream] = []
        for lists in join.parts:
            several: list[Stream] = [ListStream(self._view, one, self._through) for one in lists]
            streams.append(several[0] if len(several) == 1 else UnionStream(several))
        return ((id, join) for id in search_index.joined(streams, after))

    def _ranked(self, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
        """Yield hits by reading all rows of the words, those of few first."""
        few: list[Mapping[bytes, frozenset[str]]] = []
        many: list[str] = []
        for word in sorted(self._asked.wanted, key=len, reverse=True):  # long words mostly stand in few entities
            some = self._all(word, EVALUATED_ROWS)
            if some is None:
                many.append(word)
            elif len(some) <= EVALUATED_MAX:
                yield from _from(after, map(self._evaluate, some.keys() - self._apart))
                return
            else:
                few.append(some)
        found: Mapping[bytes, frozenset[str]] = few[0] if few else self._all(many.pop()) or {}
        for other in few[1:]:
            found = search_index.both(found, other)
        if many and len(found) <= EVALUATED_MAX:
            yield from _from(after, map(self._evaluate, found.keys() - self._apart))
            return
        for word in many:
            found = search_index.both(found, self._all(word) or {})
        place = None if after is None else (after[1], search_index.id_bytes(after[2]))
        ranks = ((-len(fields), id) for id, fields in found.items() if id not in self._apart)
        for count, id in sorted(rank for rank in ranks if place is None or rank > place):
            text = search_index.id_text(id)
            yield RankedHit((True, count, text), self._ref(id, text), found[id])

    def _all(self, word: str, limit: int | None = None) -> dict[bytes, frozenset[str]] | None:
        found: dict[bytes, frozenset[str]] = {}
        for name in self._names:
            some = search_index.all_postings(self._view, name, word, self._asked.type, self._through, limit)
            if some is None:
                return None
            found.update(some)
        return found

    def _evaluate(self, id: bytes) -> RankedHit | None:
        return _evaluated(self._reader, self._ref(id, search_index.id_text(id)), self._asked)

    def _ref(self, id: bytes, text: str) -> Ref:
        found = search_index.ref_of(self._view, id, text, self._through)
        if found is None:
            raise garbled("The search index")
        return found


class Join(NamedTuple):
    """A way in which entities can have all words of a query: those that stand in all parts have them so."""

    parts: tuple[Sequence[List], ...]
    """Lists; of each part any."""
    fields: frozenset[str]
    """The fields that any of the words stands in then."""
    is_sure: bool
    """Whether an entity that stands in all parts can stand in no other list of the words."""


def _joins(words: Sequence[Sequence[List]]) -> dict[int, list[Join]] | None:
    """Return the ways in which entities can have all words, by how many fields these stand in; none if too many.

    Under a beginning that several words share an entity may have several of them, in different fields. So each way to
    choose some of the sets of fields that such words stand in is looked for.
    """
    found: dict[int, list[Join]] = {}
    for type in set.intersection(*({one.type for one in lists} for lists in words)):
        chosen: list[list[tuple[Sequence[List], ...]]] = []
        is_sure = True
        for lists in words:
            by_fields: dict[frozenset[str], list[List]] = {}
            for one in lists:
                if one.type == type:
                    by_fields.setdefault(one.fields, []).append(one)
            sets = list(by_fields.values())
            if len({one.token for several in sets for one in several}) == 1:
                chosen.append([(several,) for several in sets])
                continue
            is_sure = is_sure and len(sets) == 1
            if len(sets) > JOINS_MAX.bit_length():
                return None
            chosen.append([some for size in range(1, len(sets) + 1) for some in combinations(sets, size)])
        if prod(map(len, chosen)) > JOINS_MAX:
            return None
        for choice in product(*chosen):
            parts = tuple(part for several in choice for part in several)
            fields = frozenset[str]().union(*(part[0].fields for part in parts))
            found.setdefault(len(fields), []).append(Join(parts, fields, is_sure))
    return found

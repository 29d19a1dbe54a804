"""Searching: the entities that have all words of a query, in order.

Exact matches come first, and then all others by id. The rows of words answer (`search_index.py`). Entities that the
rows do not cover (of a read-only ledger, inside a write, still to come) are folded instead, and the answer is the same.
A page costs the rows that it passes; only a beginning that very many words share costs more.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

from woodrat.canon.ids import Ref
from woodrat.engines.records import Scan
from woodrat.ledger import find, search_index
from woodrat.ledger.find import QUERY_BYTES_MAX, RankedHit, Search, folds
from woodrat.ledger.read import Reader
from woodrat.ledger.search_index import Fields, ListStream, SortedStream, Stream, UnionStream
from woodrat.ledger.state_index import Fold, coverage
from woodrat.ledger.state_rows import RELATION_WORD, WORD, id_bytes, id_text, words_of
from woodrat.merge.fold import MergeState
from woodrat.state import relation, tokens

WORD_ROWS_MAX: Final = 4_000
"""How many rows of one word are read at once; of one with more rows each candidate is looked at instead."""


def first_scans(query: object, entity_type: object) -> Sequence[Scan]:
    """Return where a search will look first."""
    if not isinstance(query, str) or len(query) > QUERY_BYTES_MAX:
        return ()
    words = dict.fromkeys([tokens.whole(query), *sorted(set(tokens.tokens(query)))])
    return [scan for index in _indexes(entity_type) for scan in search_index.first_scans(index, words)]


def _indexes(entity_type: object) -> tuple[str, ...]:
    """Return the indexes of words to look in: relations are found by asking for their type."""
    return (WORD,) if entity_type is None else (WORD, RELATION_WORD)


def search(reader: Reader, asked: Search, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
    """Yield the entities whose key and text values match every word of the query by prefix, in order, after a rank."""
    rows = coverage(reader)
    if rows is None:
        found = (_judged(reader, ref, state, asked) for ref, state in folds(reader, asked.type))
        yield from _in_order(after, found)
        return
    more = (reader.group(ref) for type in sorted(rows.uncovered) for ref in _uncovered(reader, type))
    laid_over = rows.laid_over.union(chain.from_iterable(more))
    folded = (_evaluated(reader, ref, asked) for ref in {reader.group(ref)[0] for ref in laid_over})
    indexed = _Indexed(reader, asked, rows.through, {id_bytes(ref.id) for ref in laid_over})
    yield from heapq.merge(_in_order(after, folded), indexed.hits(after), key=lambda hit: hit.rank)


def _uncovered(reader: Reader, type: str) -> Iterator[Ref]:
    """Yield the entities of a type whose new schema the rows lack."""
    return find.at_most(type, chain.from_iterable(find.entity_pages(reader.view, type, reader.asof.position)))


def _in_order(after: tuple[Any, ...] | None, found: Iterable[RankedHit | None]) -> list[RankedHit]:
    """Return hits in order, those after a rank."""
    hits = [hit for hit in found if hit is not None and (after is None or hit.rank > after)]
    return sorted(hits, key=lambda hit: hit.rank)


def _judged(reader: Reader, ref: Ref, state: MergeState, asked: Search) -> RankedHit | None:
    """Return the hit that an entity is; None if it does not match."""
    if asked.type is None and relation.endpoints(ref) is not None:
        return None  # a relation repeats the keys of both its ends; it is found by asking for its type
    words = words_of(Fold(ref, state, reader.rules(ref.type)))
    is_exact, fields = asked.whole in words, tokens.matches(words, asked.wanted)
    return RankedHit((not is_exact, ref.id), ref, fields or Fields()) if is_exact or fields is not None else None


def _evaluated(reader: Reader, ref: Ref, asked: Search) -> RankedHit | None:
    """Return the hit that an entity is, from its fold."""
    return _judged(reader, ref, reader.state(ref), asked) if asked.type in (None, ref.type) else None


class _Indexed:
    """What the rows of words find, as they were at a position, without some entities."""

    def __init__(self, reader: Reader, asked: Search, through: int | None, without: set[bytes]) -> None:
        self._reader, self._view, self._asked, self._through = reader, reader.view, asked, through
        self._indexes = _indexes(asked.type)
        words = list(dict.fromkeys([asked.whole, *asked.wanted]))
        self._ends = {index: search_index.ends(self._view, index, words, through) for index in self._indexes}
        exact = self._rows(asked.whole) or {}
        self._exact = exact.keys() - without
        self._apart = without.union(exact)
        """Ids that the lists of words are not asked about."""

    def hits(self, after: tuple[Any, ...] | None) -> Iterator[RankedHit]:
        """Yield hits in order, from after a rank on."""
        if after is None or not after[0]:
            yield from _in_order(after, map(self._evaluate, self._refs(self._exact).values()))
            after = None
        streams = {word: self._stream(word) for word in self._asked.wanted}
        narrow = [stream for stream in streams.values() if stream is not None]
        if not narrow:  # every word is the beginning of very many: the rows of the longest are read
            word = max(streams, key=len)
            streams[word] = stream = SortedStream(self._rows(word) or {})
            narrow = [stream]
        is_sure = None not in streams.values()
        ids = search_index.joined(narrow, None if after is None else id_bytes(after[1]))
        found = (
            (id, Fields().union(*(stream.fields(id) for stream in narrow)) if is_sure else None)
            for id in ids
            if id not in self._apart
        )
        while some := list(islice(found, self._asked.page.limit + 1)):
            refs = self._refs([id for id, _ in some])
            for id, fields in some:
                if fields is not None:
                    yield RankedHit((True, id_text(id)), refs[id], fields)
                elif (hit := self._evaluate(refs[id])) is not None:
                    yield hit

    def _stream(self, word: str) -> Stream | None:
        """Return the ids of entities with a word that begins so; None if they have very many rows of many words."""
        lists: list[Stream] = []
        for index in self._indexes:
            ends = self._ends[index][word]
            if ends.is_all:
                lists.append(SortedStream(search_index.fields_by_id(ends.first, self._asked.type)))
                continue
            prefixes = search_index.list_prefixes(self._view, index, word, self._asked.type, self._through, ends)
            if prefixes is None:
                rows = self._rows(word, WORD_ROWS_MAX)
                return None if rows is None else SortedStream(rows)
            lists += [ListStream(self._view, index, prefix, self._through, ends.first) for prefix in prefixes]
        return lists[0] if len(lists) == 1 else UnionStream(lists)

    def _rows(self, word: str, limit: int | None = None) -> dict[bytes, Fields] | None:
        found: dict[bytes, Fields] = {}
        for index in self._indexes:
            ends = self._ends[index][word]
            if ends.is_all:
                found.update(search_index.fields_by_id(ends.first, self._asked.type))
                continue
            rows = search_index.all_rows(self._view, index, word, self._asked.type, self._through, limit)
            if rows is None:
                return None
            found.update(rows)
        return found

    def _evaluate(self, ref: Ref) -> RankedHit | None:
        return _evaluated(self._reader, ref, self._asked)

    def _refs(self, ids: Collection[bytes]) -> dict[bytes, Ref]:
        return search_index.refs_of(self._view, ids, self._through)

"""The history of one entity, a part at a time: its observations, how belief about it changed, and its relations."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.records import BEFORE_ALL
from woodrat.ledger import entry_index, find, reads
from woodrat.ledger.before import Before
from woodrat.ledger.matches import find_ref
from woodrat.ledger.read import Reader
from woodrat.merge import fold
from woodrat.merge.timeline import shown_fields, step_between
from woodrat.records import replace
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from woodrat.canon.form import Json
    from woodrat.ledger.reads import Related
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules
    from woodrat.merge.timeline import Step
    from woodrat.state.asof import Stored

WHOLE_MAX: Final = 512
"""Up to how many observations of an entity are read at once, whatever part of them is asked for."""
_PART: Final = 128
"""About how many observations of a longer history are read at a time."""


def observations_after(reader: Reader, members: Sequence[Ref], after: int) -> Iterator[Stored]:
    """Yield the observations of entities after a position that count at the as-of, by position, part by part."""
    after, last = max(after, BEFORE_ALL), _last(reader, members, reader.asof.position)
    count = reader.state(members[0]).observations if reader.asof.effective is None else 0
    if count <= WHOLE_MAX:
        yield from reader.stored(members, after)
        return
    after = max(after, min(_first(reader, ref, last) for ref in members) - 1)
    size = max(1, (last - after) * _PART // count)
    while after < last:
        cancellation.check()
        through = min(after + size, last)
        if _last(reader, members, through) > after:
            while size > _PART and _last(reader, members, after + size // 2) > after:
                size //= 2  # they stand closer together here
            through = min(after + size, last)
            yield from Reader(reader.view, AsOf(through), reader.policies).stored(members, after)
        after, size = through, size * 2


def _first(reader: Reader, ref: Ref, last: int) -> int:
    """Return the position of the first observation of an entity, which is not after one; else the position after it."""
    known = reader.view.entity
    return bisect_left(range(last + 1), True, key=lambda position: known(ref.digest, position) is not None)


def _last(reader: Reader, members: Sequence[Ref], through: int) -> int:
    """Return the position of the last observation of entities through a position; the one before all without any."""
    versions = (reader.view.version(ref.digest, through) for ref in members)
    return max((version for version in versions if version is not None), default=BEFORE_ALL)


def history_after(reader: Reader, ref: Ref, field: str | None, after: int) -> Iterator[Step]:
    """Yield how belief about an entity that was never joined with another changed after a position, by position.

    What it was there is read as of then, so that a page costs what it passes over and no more.
    """
    view, policies = reader.view, reader.policies
    state: MergeState | None = None
    rules: Rules | None = None
    before: dict[str, Json] = {}
    for position, said in observations_after(reader, (ref,), after):
        now = Reader(view, AsOf(position), policies).rules(ref.type)
        if state is None or rules is None or rules.schema.digest != now.schema.digest:
            # Its rules were in force before it: what was believed is folded by them too.
            state = Reader(view, AsOf(position - 1), policies).state(ref)
            before = shown_fields(state, now)
        rules = now
        state = fold.extend(state, said, rules, Before(view, (ref,), position - 1))
        if state is None:  # only a whole fold can tell
            state = Reader(view, AsOf(position), policies).state(ref)
        after_it = shown_fields(state, rules)
        step = step_between(position, said, before, after_it, state.deleted, field)
        before = after_it
        if step is not None:
            yield step


def can_walk(reader: Reader, ref: Ref) -> bool:
    """Return whether the history of an entity can be read from anywhere: no other was joined, no time asked for."""
    return reader.asof.effective is None and not entry_index.joined(reader.view, ref.digest)


def related_after(
    reader: Reader, ref: str | Ref, type: str | None, depth: int, place: tuple[Any, ...] | None
) -> Iterator[tuple[tuple[int, str], Related]]:
    """Yield the relations at an entity and those of their other ends, after a place, each with its own.

    Those of the last level are found in the order they are shown in, so that a page of them costs what it returns. Of
    the levels before it all are read: they lead to the next.
    """
    start = find_ref(reader, ref)
    reader.snapshot(start)
    known: set[Ref] = set()
    seen, ends = {start}, [start]
    for level in range(1, depth + 1):
        after = _relation_at(place, level) if level == depth else None
        listed = entry_index.relations_in_order(reader.view, ends, type, reader.asof.position, after)
        ends, passed = [], set[Ref]()
        for edge in find.gathered(reader, (edge for edge in listed if edge not in known)):
            passed.add(edge)
            at = (level, str(edge))
            is_shown = place is None or at > place
            link = reads.link_of(reader, edge) if is_shown or level < depth else None
            if link is None:
                continue
            ends += [end for end in (link.start, link.end) if end not in seen]
            seen.update((link.start, link.end))
            if is_shown:
                yield at, replace(link, depth=level)
        known |= passed


def _relation_at(place: tuple[Any, ...] | None, level: int) -> Ref | None:
    """Return the relation of a level that a page ended with; none where it ended in another level, or nowhere."""
    if place is None or place[0] != level:
        return None
    type, slash, key = place[1].partition("/")
    return Ref(type, key) if slash else None

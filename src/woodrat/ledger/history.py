"""The history of one entity, a part at a time: its observations, how belief about it changed, and its relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.engines import cancellation
from woodrat.engines.port import BEFORE_ALL
from woodrat.ledger import reads
from woodrat.ledger.before import Before
from woodrat.ledger.moments import resolve_ref
from woodrat.ledger.read import Reader
from woodrat.merge import fold
from woodrat.merge.timeline import shown_fields, step_between
from woodrat.records import replace
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.ledger.reads import Related
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules
    from woodrat.merge.timeline import Step
    from woodrat.state.asof import Stored

_POSITIONS_MIN: Final = 256
"""How much of the log is looked through for the next observations of an entity at first; more the fewer there are."""


def observations_after(reader: Reader, members: Sequence[Ref], after: int) -> Iterator[Stored]:
    """Yield the observations of entities after a position that count at the as-of, by position, part by part."""
    end, size = reader.asof.position, _POSITIONS_MIN
    versions = (reader.view.version(ref.digest, end) for ref in members)
    last = max((version for version in versions if version is not None), default=BEFORE_ALL)
    after = max(after, BEFORE_ALL)
    while after < last:
        cancellation.check()
        through = min(after + size, last)
        window = Reader(reader.view, AsOf(through, reader.asof.effective), reader.policies)
        yield from window.stored(members, after)
        after, size = through, size * 2


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
    return reader.asof.effective is None and not reader.view.joined(ref.digest)


def related_after(
    reader: Reader, ref: str | Ref, depth: int, place: tuple[Any, ...] | None
) -> Iterator[tuple[tuple[int, str], Related]]:
    """Yield the relations at an entity and those of their other ends, after a place, each with its own.

    Relations of the last level that come before the place are not folded again.
    """
    start = resolve_ref(reader, ref)
    reader.snapshot(start)
    known: set[Ref] = set()
    seen, ends = {start}, [start]
    for level in range(1, depth + 1):
        listed = {edge for entity in ends for edge in reader.view.relations(entity.digest, None, reader.asof.position)}
        ends = []
        for name, edge in sorted((str(edge), edge) for edge in listed - known):
            at = (level, name)
            is_shown = place is None or at > place
            link = reads.link_of(reader, edge) if is_shown or level < depth else None
            if link is None:
                continue
            ends += [end for end in (link.start, link.end) if end not in seen]
            seen.update((link.start, link.end))
            if is_shown:
                yield at, replace(link, depth=level)
        known |= listed

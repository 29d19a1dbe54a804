"""Bisecting: where the answer about state became another, from as-of reads of one log, and what the log says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.bisect import search
from woodrat.bisect.reader import Asking, all_concerned, look_at, predicate_of
from woodrat.bisect.search import Between, Bisected, Change, Flip
from woodrat.canon import form
from woodrat.compare.reader import LogLineage
from woodrat.engines.port import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger.moments import NO_READ, resolve_moment
from woodrat.ledger.read import Reader
from woodrat.merge.diff import field_changes
from woodrat.runs.inquiry import predicate_name
from woodrat.runs.reader import Recounter
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.bisect.predicate import Predicate
    from woodrat.canon.ids import Ref
    from woodrat.compare.statement import Statement
    from woodrat.engines.port import View
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.rebuild import Progress

STATEMENTS_MAX: Final = 100
"""How many observations of a write a flip lists at most."""

Code = Callable[["Past"], object]
"""A predicate that is code: it is given the ledger as of a moment, and answers yes or no."""


class Span(NamedTuple):
    """From where to where a log is asked; both are ends of writes."""

    low: int
    """The earlier."""
    high: int
    """The later."""


def bisect_by(
    reader: Reader,
    asking: Asking,
    at: Callable[[int], Past],
    *,
    before: Moment | None,
    after: Moment | None,
    first: object,
    progress: Progress | None,
) -> Bisected:
    """Return a flip, or the first one; `at` gives the ledger as of a position, for predicates that are code."""
    if not isinstance(first, bool):
        raise Refused([Fault("first", f"expected true or false, got {shown(first)}", "Send a boolean.")], NO_READ)
    span = _span(reader, before, after)
    asked = _Code(reader, asking.what, at) if callable(asking.what) else _Data(reader, asking, span.high)
    if first:
        ends = asked.ends(span)
        found = search.walk(span.low, ends, asked.holds, progress, len(ends))
    else:
        found = search.halve(span.low, span.high, asked.holds, lambda at: write_of(reader.view, at), progress)
    flip = None if found.high is None else _flip(asked, found, found.high)
    question = asked.text
    if flip is None:
        choice = asked.predicate.choice if isinstance(asked, _Data) else None
        why = None if choice is None else choice.undecided(look_at(asked.at(span.high)))
        sentence = search.none(question, *span, found.answers, first=first, undecided=why)
    else:
        sentence = search.found(question, flip, first=first, folds=found.folds)
    return Bisected(question, *span, found.answers, flip, first, found.folds, sentence)


# The log


def write_of(view: View, position: int) -> tuple[int, int]:
    """Return the first and the last position of the write that a position lies in."""
    entry = view.entry(position)
    assert entry is not None, "a log has no gaps"
    start = entry if entry.envelope.length is not None else view.entry(entry.envelope.write)
    assert start is not None and start.envelope.length is not None, "a write's first entry states its length"
    return start.position, start.position + start.envelope.length - 1


def last_whole(view: View, position: int) -> int:
    """Return the end of the last write that was whole by a position; the position before all if there is none."""
    if position <= BEFORE_ALL:
        return BEFORE_ALL
    start, end = write_of(view, position)
    return position if position == end else start - 1


def _span(reader: Reader, before: Moment | None, after: Moment | None) -> Span:
    view, through = reader.view, reader.asof.position
    low = BEFORE_ALL if before is None else resolve_moment(view, before)
    high = through if after is None else resolve_moment(view, after)
    faults = [
        Fault(name, f"position {position} is later than the moment read at, {through}", "Name an earlier moment.")
        for name, position in (("before", low), ("after", high))
        if position > through
    ]
    if low > high:
        faults.append(Fault("before", f"position {low} is later than position {high}", "Begin before it ends."))
    if faults:
        raise Refused(faults, NO_READ)
    return Span(last_whole(view, low), last_whole(view, high))


# What is asked


class _Asked:
    """A question that can be asked at positions of a log."""

    text: str

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.view = reader.view

    def at(self, position: int) -> Reader:
        """Return a reader of the state at a position."""
        return Reader(self.view, AsOf(position, self.reader.asof.effective), self.reader.policies)

    def holds(self, position: int) -> bool:
        """Return the answer at a position."""
        raise NotImplementedError

    def ends(self, span: Span) -> list[int]:
        """Return the ends of the writes at which the answer can become another, in order."""
        raise NotImplementedError

    def touched(self, low: int, high: int) -> list[Ref]:
        """Return the entities between two positions that bear on the answer."""
        raise NotImplementedError


class _Data(_Asked):
    """A predicate that is data: what it looks at is known."""

    def __init__(self, reader: Reader, asking: Asking, through: int) -> None:
        super().__init__(reader)
        self.predicate: Predicate = predicate_of(reader, asking)
        self.text = self.predicate.text
        self._concerned = all_concerned(self.view, self.predicate, through)

    def holds(self, position: int) -> bool:
        return self.predicate.holds(look_at(self.at(position)))

    def ends(self, span: Span) -> list[int]:
        types = {ref.type for ref in self._concerned}
        spoken = {s.position for ref in self._concerned for s in self.view.observations(ref.digest, *span)}
        for entry in self.view.entries(*span, {"schema"}):
            if entry.body is not None and form.decode(entry.body)["type"] in types:
                spoken.add(entry.position)
        return sorted({write_of(self.view, position)[1] for position in spoken})

    def touched(self, low: int, high: int) -> list[Ref]:
        return sorted(self._concerned.keys() & set(self.view.touched(low, high)), key=str)

    def changes(self, low: int, high: int) -> tuple[Change, ...]:
        """Return what became of the entities it looks at."""
        looks = look_at(self.at(low)), look_at(self.at(high))
        found = []
        for ref, names in self.predicate.looked.items():
            a, b = (look(ref) for look in looks)
            fields = field_changes(*({name: x.fields[name] for name in names if name in x.fields} for x in (a, b)))
            if fields or (a.exists, a.deleted) != (b.exists, b.deleted):
                found.append(Change(str(ref), (a.exists, b.exists), (a.deleted, b.deleted), fields))
        return tuple(found)

    def schemas(self, lineage: LogLineage, low: int, high: int) -> dict[str, tuple[int, int]]:
        """Return the types whose schema became another."""
        by_type = {ref.type: ref for ref in self._concerned}
        found: dict[str, tuple[int, int]] = {}
        for type, ref in sorted(by_type.items()):
            before, after = (lineage.schema(str(ref), position) or 0 for position in (low, high))
            if before != after:
                found[type] = (before, after)
        return found


class _Code(_Asked):
    """A predicate that is code: every write may matter to it."""

    def __init__(self, reader: Reader, predicate: Code, at: Callable[[int], Past]) -> None:
        super().__init__(reader)
        self._predicate, self._past = predicate, at
        self.text = predicate_name(predicate)

    def holds(self, position: int) -> bool:
        try:
            said = self._predicate(self._past(position))
        except NotFound:
            return False  # what it asks about is not there yet, or no longer
        if isinstance(said, Awaitable):
            close: Any = getattr(said, "close", None)
            if callable(close):
                close()
            problem = f"{self.text} has to be awaited"
            raise Refused([Fault("predicate", problem, "Send a function that answers at once.")], NO_READ)
        return bool(said)

    def ends(self, span: Span) -> list[int]:
        entries = self.view.entries(*span)
        begun = [entry for entry in entries if entry.envelope.length is not None]
        return [entry.position + (entry.envelope.length or 1) - 1 for entry in begun]

    def touched(self, low: int, high: int) -> list[Ref]:
        return sorted(self.view.touched(low, high), key=str)


# What was found


def _flip(asked: _Asked, found: Between, high: int) -> Flip:
    # The last state that was asked about may lie further back; between it and this write nothing that counts was said.
    begins, _ = write_of(asked.view, high)
    low = begins - 1
    lineage = LogLineage(Recounter(asked.at(high)))
    statements: dict[str, Statement] = {}
    for ref in asked.touched(low, high)[:STATEMENTS_MAX]:
        for statement in lineage.between(str(ref), low, high):
            statements[statement.observation] = statement
    ordered = sorted(statements.values(), key=lambda statement: statement.position)
    start = asked.view.entry(begins)
    assert start is not None, "a log has no gaps"
    data = asked if isinstance(asked, _Data) else None
    choice = None if data is None else data.predicate.choice
    sides = [look_at(asked.at(position)) for position in (low, high)]
    undecided = (None, None) if choice is None else (choice.undecided(sides[0]), choice.undecided(sides[1]))
    chosen = None
    if choice is not None:
        was, now = (None if why else choice.choose(side) for why, side in zip(undecided, sides, strict=True))
        chosen = (was, now)
    return Flip(
        position=high,
        write=begins,
        before=low,
        recorded_at=start.recorded_at,
        answers=(found.answers[0], not found.answers[0]),
        changes=() if data is None else data.changes(low, high),
        chosen=chosen,
        statements=tuple(ordered[:STATEMENTS_MAX]),
        schemas={} if data is None else data.schemas(lineage, low, high),
        undecided=undecided,
    )

"""The verbs `bisect` and `reduce`: the write that changed an answer, and the fewest observations that show one.

`bisect` compares as-of reads of one log and reports the write that it finds. `reduce` puts the observations into a file
that shows the same elsewhere, and `check_reduction` tries such a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import woodrat.explain.index  # noqa: F401 - it declares what writes list of their entries
from woodrat.bisect import reduce as minimal
from woodrat.bisect import reduction, search
from woodrat.bisect.reader import Asking, all_concerned, look_at, predicate_of
from woodrat.bisect.reduction import Reduction, ReductionCheck, ReductionOrigin
from woodrat.bisect.search import Bisected, Flip, FlipRange, LookedChange
from woodrat.bisect.subset import Subset
from woodrat.canon import form
from woodrat.canon.ids import TenantId
from woodrat.compare.contrast import short
from woodrat.compare.reader import LogLineage
from woodrat.context import Context
from woodrat.engines import private
from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger.moments import NO_READ, last_whole, open_reader, resolve_moment, write_of
from woodrat.ledger.read import Reader
from woodrat.merge.diff import field_changes
from woodrat.merge.rules import rules_of
from woodrat.runs.predicates import predicate_name
from woodrat.runs.reader.run_reader import RunReader
from woodrat.state import schema
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from woodrat.bisect.predicate import Predicate
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.compare.cause import Statement
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.progress import Progress
    from woodrat.merge import Policy
    from woodrat.merge.rules import Rules

STATEMENTS_MAX: Final = 100
"""How many observations of a write a flip lists at most."""

Code = Callable[[Any], object]
"""A predicate that is code: it is given the ledger as of a moment, and answers yes or no."""
LedgerAt = Callable[[int], Any]
"""Gives a predicate that is code the ledger as of a position."""

NO_FILE: Final = "No file was written."
FILE_BYTES_MAX: Final = 256 * 1_048_576
"""Longest file that is read."""


class PositionRange(NamedTuple):
    """From where to where a log is asked; both are ends of writes."""

    low: int
    """The earlier."""
    high: int
    """The later."""


# Bisect


def bisect(
    context: Context,
    asking: Asking,
    at: LedgerAt,
    *,
    before: Moment | None,
    after: Moment | None,
    first: object,
    progress: Progress | None,
) -> Bisected:
    """Return a flip, or the first one."""
    with open_reader(context) as reader:
        return _bisected(reader, asking, at, before, after, first, progress)


def _bisected(
    reader: Reader,
    asking: Asking,
    at: LedgerAt,
    before: Moment | None,
    after: Moment | None,
    first: object,
    progress: Progress | None,
) -> Bisected:
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
        choice = asked.predicate.decision if isinstance(asked, _Data) else None
        why = None if choice is None else choice.undecided(look_at(asked.at(span.high)))
        sentence = search.no_flip_sentence(question, *span, found.answers, first=first, undecided=why)
    else:
        sentence = search.flip_sentence(question, flip, first=first, folds=found.folds)
    return Bisected(question, *span, found.answers, flip, first, found.folds, sentence, tuple(reader.matches.values()))


def _span(reader: Reader, before: Moment | None, after: Moment | None) -> PositionRange:
    view, through = reader.view, reader.asof.position
    low = BEFORE_ALL if before is None else resolve_moment(view, before)
    high = through if after is None else resolve_moment(view, after)
    faults = [
        Fault(name, f"position {position} is later than the moment read at, {through}", "Name an earlier moment.")
        for name, position in (("before", low), ("after", high))
        if position > through
    ]
    if low > high:
        faults.append(Fault("before", f"position {low} is later than position {high}", "Name an earlier moment."))
    if faults:
        raise Refused(faults, NO_READ)
    return PositionRange(last_whole(view, low), last_whole(view, high))


# What bisect asks


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

    def ends(self, span: PositionRange) -> list[int]:
        """Return the ends of the writes at which the answer can become another, in order."""
        raise NotImplementedError

    def touched(self, low: int, high: int) -> list[Ref]:
        """Return the entities between two positions that bear on the answer."""
        raise NotImplementedError


class _Data(_Asked):
    """A predicate that is data, so that its fields are known."""

    def __init__(self, reader: Reader, asking: Asking, through: int) -> None:
        super().__init__(reader)
        self.predicate: Predicate = predicate_of(reader, asking)
        self.text = self.predicate.text
        self._concerned = all_concerned(self.view, self.predicate, through)

    def holds(self, position: int) -> bool:
        return self.predicate.holds(look_at(self.at(position)))

    def ends(self, span: PositionRange) -> list[int]:
        types = {ref.type for ref in self._concerned}
        spoken = {s.position for ref in self._concerned for s in self.view.observations(ref.digest, *span)}
        for entry in self.view.entries(*span, {"schema"}):
            if entry.body is not None and form.decode(entry.body)["type"] in types:
                spoken.add(entry.position)
        return sorted({write_of(self.view, position)[1] for position in spoken})

    def touched(self, low: int, high: int) -> list[Ref]:
        # Asked one by one: a write may speak of thousands of others.
        return sorted((ref for ref in self._concerned if self.view.observations(ref.digest, low, high)), key=str)

    def changes(self, low: int, high: int) -> tuple[LookedChange, ...]:
        """Return the changes of the entities that it looks at."""
        looks = look_at(self.at(low)), look_at(self.at(high))
        found = []
        for ref, names in self.predicate.looked.items():
            a, b = (look(ref) for look in looks)
            fields = field_changes(*({name: x.fields[name] for name in names if name in x.fields} for x in (a, b)))
            if fields or (a.exists, a.deleted) != (b.exists, b.deleted):
                found.append(LookedChange(str(ref), a.exists, b.exists, a.deleted, b.deleted, fields))
        return tuple(found)

    def schemas(self, lineage: LogLineage, low: int, high: int) -> dict[str, tuple[int, int]]:
        """Return the types whose schema changed."""
        by_type = {ref.type: ref for ref in self._concerned}
        found: dict[str, tuple[int, int]] = {}
        for type, ref in sorted(by_type.items()):
            before, after = (lineage.schema(str(ref), position) or 0 for position in (low, high))
            if before != after:
                found[type] = (before, after)
        return found


class _Code(_Asked):
    """A predicate that is code: every write may matter to it."""

    def __init__(self, reader: Reader, predicate: Code, at: LedgerAt) -> None:
        super().__init__(reader)
        self._predicate, self._ledger_at = predicate, at
        self.text = predicate_name(predicate)

    def holds(self, position: int) -> bool:
        try:
            said = self._predicate(self._ledger_at(position))
        except NotFound:
            return False  # what it asks about is not there yet, or no longer
        if isinstance(said, Awaitable):
            close: Any = getattr(said, "close", None)
            if callable(close):
                close()
            problem = f"{self.text} is asynchronous"
            raise Refused([Fault("predicate", problem, "Send a synchronous function.")], NO_READ)
        return bool(said)

    def ends(self, span: PositionRange) -> list[int]:
        entries = self.view.entries(*span)
        begun = [entry for entry in entries if entry.envelope.length is not None]
        return [entry.position + (entry.envelope.length or 1) - 1 for entry in begun]

    def touched(self, low: int, high: int) -> list[Ref]:
        return sorted(self.view.touched(low, high), key=str)


# What bisect found


def _flip(asked: _Asked, found: FlipRange, high: int) -> Flip:
    # The last state that was asked about may lie further back; between it and this write nothing that counts was said.
    begins, _ = write_of(asked.view, high)
    low = begins - 1
    lineage = LogLineage(RunReader(asked.at(high)))
    statements: dict[str, Statement] = {}
    for ref in asked.touched(low, high)[:STATEMENTS_MAX]:
        for statement in lineage.between(str(ref), low, high):
            statements[statement.observation] = statement
    ordered = sorted(statements.values(), key=lambda statement: statement.position)
    start = asked.view.entry(begins)
    assert start is not None, "a log has no gaps"
    data = asked if isinstance(asked, _Data) else None
    choice = None if data is None else data.predicate.decision
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


# Reduce


def reduce(
    context: Context,
    asking: Asking,
    *,
    folds_max: object = None,
    out: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Reduction:
    """Return a 1-minimal set that shows the predicate at the context's moment, and write it to a file if one is named.

    The ledger is not written to.
    """
    with open_reader(context) as reader:
        reduced = _reduced(reader, asking, minimal.FOLDS_MAX if folds_max is None else folds_max, progress)
    if out is not None:
        write_reduction(reduced, out)
    return reduced


def _reduced(reader: Reader, asking: Asking, folds_max: object, progress: Progress | None) -> Reduction:
    if type(folds_max) is not int or folds_max < 1:
        raise Refused([Fault("folds_max", f"got {shown(folds_max)}", "Send a number above 0.")], NO_READ)
    if callable(asking.what):
        problem = "a function cannot be written to a file"
        raise Refused([Fault("what", problem, "State it as conditions, or as rules and a branch.")], NO_READ)
    predicate = predicate_of(reader, asking)
    refs = all_concerned(reader.view, predicate, reader.asof.position)
    observations = [stored.observation for stored in reader.stored(refs)]
    try:
        found = minimal.reduce(observations, predicate, reader.rules, folds_max=folds_max, tell=progress)
    except minimal.NotShown:
        raise _not_shown(reader, predicate) from None
    subset = Subset(found.members, reader.rules)
    types = sorted({ref.type for ref in predicate.looked} | {member.entity.type for member in found.members})
    schemas = (reader.rules(type).schema for type in types)
    return Reduction(
        predicate=predicate,
        members=found.members,
        schemas=tuple(found for found in schemas if not found.is_open),
        believed=_believed(predicate, subset),
        fingerprint=subset.fingerprint(),
        origin=ReductionOrigin(reader.view.head().log, reader.asof.position, reader.asof.effective, len(observations)),
        folds=found.folds,
        matched=tuple(reader.matches.values()),
    )


def _believed(predicate: Predicate, subset: Subset) -> dict[str, dict[str, Json]]:
    found: dict[str, dict[str, Json]] = {}
    for ref, names in predicate.looked.items():
        fields = subset.look(ref).fields
        found[str(ref)] = {name: fields[name] for name in names if name in fields}
    return found


def _not_shown(reader: Reader, predicate: Predicate) -> Refused:
    look = look_at(reader)
    told = []
    for ref, names in predicate.looked.items():
        fields = look(ref).fields
        told += [f"{ref}#{name} is {short(fields[name]) if name in fields else 'nothing'}" for name in names]
        told += [f"{ref} is deleted"] if look(ref).deleted else []
    values = f": {', '.join(told[:10])}" if told else ""
    problem = f"{predicate.text} does not hold at position {reader.asof.position}{values}"
    return Refused([Fault("predicate", problem, "Ask at a moment at which it holds; `bisect` finds one.")], NO_FILE)


def write_reduction(found: Reduction, out: str | PathLike[str]) -> None:
    """Write a reduction to a file, whole or not at all."""
    import os

    if not isinstance(out, str | os.PathLike):
        raise Refused([Fault("out", f"expected a path, got {shown(out)}", "Name a file.")], NO_FILE)
    path = os.fspath(out)
    # What is no plain file (a pipe, a device) cannot be put in place of another.
    partial = path if os.path.exists(path) and not os.path.isfile(path) else f"{path}.part"
    try:
        with open(partial, "wb", opener=private.opener) as file:
            file.write(found.to_bytes())
        if partial != path:
            os.replace(partial, path)
    except (OSError, ValueError) as error:
        if partial != path and os.path.exists(partial):
            os.unlink(partial)
        problem = f"cannot write {shown(path)}: {getattr(error, 'strerror', None) or error}"
        raise Refused([Fault("out", problem, "Name a file that can be written.")], NO_FILE) from error


def check_reduction(file: str | PathLike[str] | bytes, *, policies: Iterable[Policy] = ()) -> ReductionCheck:
    """Fold a reduction on an empty ledger in memory, and report whether it shows the result that the file states.

    `file` is a path, or the bytes themselves. A file with one changed byte is refused; so is one of another format. A
    merge policy of your own has to be passed, since a ledger without its code cannot fold the types that use it.
    """
    from woodrat.clock import SystemClock
    from woodrat.engines.sqlite.in_memory import InMemoryEngine
    from woodrat.ledger.own_policy import registry
    from woodrat.ledger.plans import admit
    from woodrat.ledger.write import Writer
    from woodrat.state import fingerprint

    found = reduction.parse(file if isinstance(file, bytes) else _read(file))
    known = registry(policies)
    engine, tenant = InMemoryEngine(), TenantId("reduction")
    # The same door that another log's entries come in by.
    Writer(Context(engine, tenant, known, SystemClock(), "reduce")).write(
        "admit", {}, lambda draft: admit(draft, [*found.schemas, *found.members])
    )
    with engine.view(tenant) as view:
        reader = Reader(view, AsOf(view.head().position), known)
        holds = found.predicate.holds(look_at(reader))
        tree = reader.fingerprint()
    rules = _rules(found, known)
    spare = minimal.removable(found.members, found.predicate, rules) if holds else ()
    return ReductionCheck(found, holds, fingerprint.text(tree.root()), tuple(str(one.id) for one in spare))


def _rules(found: Reduction, policies: Mapping[str, Policy]) -> Callable[[str], Rules]:
    known = found.rules_of(policies)

    def rules(type: str) -> Rules:
        return known.get(type) or rules_of(schema.OPEN(type), policies)

    return rules


def _read(file: object) -> bytes:
    import os

    if not isinstance(file, str | os.PathLike):
        problem = f"expected a path or bytes, got {shown(file)}"
        raise Refused([Fault("file", problem, "Name a file that `woodrat reduce --out` wrote.")], reduction.OUTCOME)
    try:
        with open(file, "rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        problem = f"cannot read {shown(os.fspath(file))}: {getattr(error, 'strerror', None) or error}"
        raise Refused([Fault("file", problem, "Name a file that can be read.")], reduction.OUTCOME) from error
    if len(data) > FILE_BYTES_MAX:
        problem = f"{shown(os.fspath(file))} has more than {FILE_BYTES_MAX} bytes"
        raise Refused([Fault("file", problem, "Send a smaller reduction.")], reduction.OUTCOME)
    return data

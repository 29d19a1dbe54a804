"""Moments and references: what people write, and the position or entity it means."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from datetime import date
from typing import TYPE_CHECKING, Any

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.engines.records import BEFORE_ALL, NOTHING_ASKED, Asks
from woodrat.engines.view import View
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.read import Reader
from woodrat.log import erasure
from woodrat.log.entry import Entry
from woodrat.state.asof import AsOf
from woodrat.state.record import parse_moment
from woodrat.state.run_owner import owned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from woodrat.canon.moment_words import Time
    from woodrat.clock import Clock
    from woodrat.context import Context

Moment = int | str | date
"""A position, a timestamp, a date or `datetime`, words such as `yesterday`, `2d` or `last monday`, `now`, a tag as
`@name`, or a run: its basis, the end of the log when it began."""

NO_READ = "Nothing was read."
_A_MOMENT = (
    "Send a position, a time with its offset such as 2024-05-01T14:00:00Z, a date, now, yesterday, 2d, last monday, "
    "a tag as @name, or a run."
)


@contextmanager
def open_reader(context: Context, asks: Asks = NOTHING_ASKED) -> Iterator[Reader]:
    """Give a reader at the context's moment; what is not there because it was erased is said to be."""
    with _view(context, asks) as view:
        try:
            position = resolve_moment(view, context.moment, clock=context.clock)
            yield Reader(view, AsOf(position, context.valid_at), context.policies)
        except NotFound as missing:
            if context.erasures is None:
                raise
            from woodrat.ledger.erasures import told

            raise told(view, context.erasures, missing) from None


def _view(context: Context, asks: Asks) -> AbstractContextManager[View]:
    """Return a view to read at a context's moment: of a position it may lack the latest entries."""
    if context.opened is not None:
        return nullcontext(context.opened)
    if isinstance(context.moment, int) and context.engine.reads_elsewhere:
        return context.engine.view_at(context.tenant, context.moment)
    return context.engine.view(context.tenant, asks)


def at(context: Context, moment: Moment | None = None, *, valid_at: Time | None = None) -> Context:
    """Return the context at another moment, pinned to its position, or with what was true by another time."""
    position: int | str = context.moment
    if moment is not None:
        with context.engine.view(context.tenant) as view:
            position = resolve_moment(view, moment, clock=context.clock)
    chosen = context.valid_at if valid_at is None else timestamp(valid_at, "valid_at", clock=context.clock)
    return context.at(position, chosen)


def resolve_moment(view: View, moment: object, outcome: str = NO_READ, clock: Clock | None = None) -> int:
    """Return the position a moment means, words by the clock's time; `Refused` or `NotFound` when it means none."""
    head = view.head().position
    if moment == "now":
        return head
    text = moment if isinstance(moment, str) else None
    if text == str(BEFORE_ALL):
        return BEFORE_ALL  # where a log without entries stands, and what a caller from afar says for it
    if type(moment) is int or (text and text.isascii() and text.isdigit()):
        # A position is never longer than its log's; more digits than that need no reading.
        number = moment if type(moment) is int else int(text[:20]) if text and len(text) <= 20 else head + 1
        assert isinstance(number, int)
        if BEFORE_ALL <= number <= head:
            return number
        raise NotFound(
            f"There is no position {shown(moment)}; the log ends at {head}. Nothing was changed. "
            "Read at a position that exists, or at now.",
            {"head": head},
        )
    if text is not None and text.startswith("@"):
        return _tagged(view, text[1:])
    if text is not None and text.startswith("run_"):
        return _basis(view, text)
    spoken = in_time(moment, clock)
    if spoken is not moment:
        return view.position_at(str(spoken))
    if text is not None and not text[:1].isdigit():
        raise Refused([Fault("moment", f"{shown(text)} is not a moment", _A_MOMENT)], outcome)
    return view.position_at(timestamp(moment, "moment", outcome))


def in_time(value: object, clock: Clock | None) -> object:
    """Return the time that words, a date or a `datetime` mean by a clock, as text; anything else as it is."""
    if value is None or type(value) is int or (isinstance(value, str) and value[10:11] in ("T", "t")):
        return value
    from woodrat.canon import moment_words
    from woodrat.clock import SystemClock, zone_of

    clock = clock or SystemClock()
    return moment_words.spoken(value, clock.now() if isinstance(value, str) else "", zone_of(clock))


def timestamp(value: object, path: str, outcome: str = NO_READ, clock: Clock | None = None) -> str:
    """Return a time in fixed width: a timestamp, a date, a `datetime`, or words by a clock."""
    faults: list[Fault] = []
    fixed = parse_moment(in_time(value, clock), path, faults)
    if fixed is None:
        if not faults:
            faults.append(Fault(path, f"expected a moment, got {shown(value)}", _A_MOMENT))
        raise Refused(faults, outcome)
    return fixed


def here(view: View, log: object, position: object) -> int | None:
    """Return a position that was said of a log by its name, where that is this ledger's log when it was that long.

    A clone goes on under a new name and keeps its positions, so those of the names before are its own too.
    """
    if type(position) is not int or position < BEFORE_ALL:
        return None
    last = reach(view, log)
    return position if last is not None and position <= last else None


def reach(view: View, log: object) -> int | None:
    """Return the last position of this ledger's log while it went by a name; none where it never did."""
    head = view.head()
    if head.log is not None and log == head.log:
        return head.position
    last = view.cloned()
    start = 0
    while start <= last:
        # The entries of one name stand together, so where it ends is found by halves.
        name, low, high = _log_at(view, start), start, last
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if _log_at(view, middle) == name else (low, middle - 1)
        if name == log:
            return low
        start = low + 1
    return None


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


def erased_here(view: View, entry: Entry) -> list[tuple[int, int]]:
    """Return the positions of this log that an erasure which stands in it names, as ranges, first and last included."""
    assert entry.kind == erasure.KIND and entry.body is not None
    found = erasure.stored(entry.body)
    origin = entry.envelope.origin
    return erasure.named(found.positions, found.log, entry.log, entry.position, origin, lambda log: reach(view, log))


def placed(view: View, log: object, position: object) -> int | None:
    """Return where a position that was said of a log stands here: its own, or where that entry was merged in."""
    found = here(view, log, position)
    if found is not None or not isinstance(log, str) or type(position) is not int:
        return found
    came = view.merged(log, position)
    return None if came is None else came[1]


def _log_at(view: View, position: int) -> str:
    entry = view.entry(position)
    assert entry is not None, "a log has no gaps"
    return entry.log


def _tagged(view: View, name: str) -> int:
    found = None
    for entry in view.entries(kinds={"tag"}):
        if entry.body is None:
            continue
        body: Any = form.decode(entry.body)
        found = body if body["name"] == name else found
    if found is None:
        raise NotFound(f"There is no tag @{name} here. Nothing was changed. Create it with `tag`.", {"tag": name})
    position = placed(view, found["log"], found["position"])
    if position is None:
        raise NotFound(
            f"@{name} names position {found['position']} of another log, {found['log']}, which this ledger does "
            "not have that far. Nothing was changed. Import that log, or read at a moment of this one.",
            {"tag": name, "log": found["log"], "position": found["position"]},
        )
    return position


def _basis(view: View, run: str) -> int:
    """Return the end of the log when a run began: as its beginning states it, else just before the run itself."""
    head = view.head()
    entries = [
        entry for entry in owned(run, entry_index.run_entries(view, run, head.position)) if entry.body is not None
    ]
    for entry in entries:
        body: Any = form.decode(entry.body or b"null")
        basis = body.get("basis") if entry.kind == "run.started" else None
        if isinstance(basis, dict) and type(basis.get("position")) is int:
            position = placed(view, basis.get("log"), basis["position"])
            if position is not None:
                return position
            raise NotFound(
                f"{run} read another log, {basis.get('log')}. Nothing was changed. Read at a moment of this log.",
                {"run": run, "log": basis.get("log")},
            )
    if not entries:
        raise NotFound(f"There is no run {run} here. Nothing was changed. `runs` lists them.", {"run": run})
    return entries[0].position - 1


def resolve_ref(reader: Reader, text: object, outcome: str = NO_READ) -> Ref:
    """Return the entity a reference or an entity id means."""
    if isinstance(text, Ref):
        return text
    if isinstance(text, str) and ids.is_id("entity", text):
        found = reader.view.entity(text)
        if found is None or reader.view.entity(found.digest, reader.asof.position) is None:
            raise NotFound(f"There is no entity {text} here. Nothing was changed. Search for it.", {"entity": text})
        return found
    try:
        return ids.parse_ref(text, "ref")
    except Refused as refusal:
        raise Refused(refusal.faults, outcome) from None

"""Reader: the log, checked row by row and copied to a scratch database, with everything derived from it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.engines.records import Mismatch
from woodrat.engines.sqlite.scratch import ScratchEngine, check_space, folder_beside
from woodrat.engines.view import View
from woodrat.errors import Corrupt, Unavailable
from woodrat.ledger.derive import derive_again
from woodrat.ledger.read import Reader
from woodrat.log import check as log_check
from woodrat.log.check import PART, Joined, Row, Walk
from woodrat.merge import LATEST, Policy
from woodrat.merge.rules import find_policy
from woodrat.state import observation, schema
from woodrat.state.asof import AsOf
from woodrat.state.meaning import step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.canon.ids import Ref
    from woodrat.context import Context
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules

LOADED_ROWS: Final = 250
"""Entries copied at a time."""
PAGE_ENTITIES: Final = 500
"""Most entities folded by one reader, since it caches all of them."""

UNREADABLE: Final = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    Corrupt,
)
"""What reading data of the wrong shape may raise."""


def scratch_for(context: Context, view: View, size: int) -> ScratchEngine:
    """Open a database for everything derived from a log; `Unavailable` if there is too little disk space."""
    folder = folder_beside(context.engine.location)
    check_space(folder, size, view.body_bytes())
    return ScratchEngine(folder)


def check_log(
    view: View,
    size: int,
    sizes: Sequence[int],
    tell: Callable[[int], object],
    load: Callable[[Sequence[Row]], object] = lambda rows: None,
) -> tuple[Joined, list[Mismatch]]:
    """Check the log from its first entry to its last; the sound part so far is loaded, part by part.

    Return the log, whose roots are known at some sizes, and the faults of its bodies.
    """
    walk = Walk(0, size, sizes)
    wrong: list[Mismatch] = []

    def body(row: Row) -> None:
        assert row.body is not None
        is_said = row.kind == "observation"
        try:
            if is_said:
                value = form.decode(row.body)
                observation.stored(row.body, value)
                is_canonical = observation.is_canonical(row.body, value)
            else:
                is_canonical = log_check.canonical(row.kind, row.body)
                if row.kind == "schema":
                    schema.stored(row.body)
                else:
                    step_of(row.kind, row.body)
            if not is_canonical:
                wrong.append(Mismatch("canonical", row.position, None, "the body is not in canonical form", log=True))
        except UNREADABLE as error:
            why = "no observation" if is_said else f"not that of a {row.kind} ({type(error).__name__}: {error})"
            wrong.append(Mismatch("body", row.position, None, f"the body is {why}", log=True))

    def passed(rows: Iterator[Row]) -> Iterator[Row]:
        """Yield rows to check, and load the checked ones."""
        some: list[Row] = []
        for row in rows:
            yield row
            some.append(row)
            if len(some) == LOADED_ROWS:
                load_sound(some)
                some.clear()
        load_sound(some)

    def load_sound(rows: Sequence[Row]) -> None:
        if rows and not walk.found.damage and not wrong:
            load(rows)

    while walk.found.end < size:
        first = walk.found.end
        walk.part(passed(view.rows(first - 1, min(first + PART, size) - 1)), body)
        tell(walk.found.end - first)
    return log_check.joined([walk.found]), wrong


# What is derived


def derive(context: Context, progress: Callable[[int, int], object]) -> bytes:
    """Derive everything that writes do from the log of a scratch database; return the root of the fingerprint."""
    with context.engine.transaction(context.tenant) as write:
        _, root = derive_again(write, context.policies, progress)
    return root


def repeated(view: View) -> Iterator[Mismatch]:
    """Yield duplicate observations of the log, according to its derived rows."""
    known: dict[bytes, int] = {}
    for position in view.repeated():
        _, body = view.bodies([position])[position]
        first = known.setdefault(body, position)
        if first != position:
            problem = f"the observation at {first} is in the log again"
            yield Mismatch("repeated", position, None, problem, log=True)


def stand_ins(view: View, policies: Mapping[str, Policy]) -> tuple[Mapping[str, Policy], dict[str, str]]:
    """Return policies with placeholders for those that are not loaded, and the missing one by type.

    The states of such a type cannot be compared; all else can.
    """
    lacking: dict[str, str] = {}
    found = dict(policies)
    for entry in view.entries(kinds={"schema"}):
        registered = schema.stored(entry.body) if entry.body is not None else None
        for name in () if registered is None else registered.policies.values():
            try:
                find_policy(name, policies)
            except Unavailable as error:
                assert registered is not None
                lacking[registered.type] = str(error)
                other: Any = copy(LATEST)
                other.name = name
                found[str(name)] = other
    return (found, lacking) if lacking else (policies, lacking)


def shown_folds(
    view: View, policies: Mapping[str, Policy], refs: Iterator[Ref]
) -> Iterator[tuple[Ref, MergeState | None, Rules | None, int]]:
    """Yield entities; the smallest of each fold with its state and the last position of that state."""
    asof = AsOf(view.head().position)
    reader = Reader(view, asof, policies)
    for number, ref in enumerate(refs):
        if number % PAGE_ENTITIES == 0:
            reader = Reader(view, asof, policies)
        is_root = reader.group(ref)[0] == ref
        state, rules = (reader.state(ref), reader.rules(ref.type)) if is_root else (None, None)
        yield ref, state, rules, reader.version(ref) if is_root else -1

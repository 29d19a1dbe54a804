"""Bisect: where in a log the answer to a question flips, found by asking few of its states.

Only the ends of writes are states: a write is accepted whole, so nothing between its entries was ever believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from woodrat.canon.form import Json
from woodrat.compare.cause import Statement
from woodrat.compare.contrast import short
from woodrat.merge.diff import FieldChange
from woodrat.record_json import WHEN_SET, Record
from woodrat.records import dataclass, field
from woodrat.state.match import Match
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RESTORE, RETRACT
from woodrat.state.relation import SAME_AS

Ask = Callable[[int], bool]
"""Answers the question at a position, the end of a write."""
WriteOf = Callable[[int], tuple[int, int]]
"""Answers the first and the last position of the write that a position lies in."""
Tell = Callable[[int, int], object]
"""Called with the amount done, and the maximum."""


class FlipRange(NamedTuple):
    """The result of a search."""

    low: int
    """The last tested position with the first answer."""
    high: int | None
    """The end of the very next write, with the other answer; None if no flip was found."""
    answers: tuple[bool, bool]
    """The answers at the beginning and at the end of the range."""
    folds: int
    """How often the question was asked."""


def halve(low: int, high: int, ask: Ask, write_of: WriteOf, tell: Tell | None = None) -> FlipRange:
    """Return a flip between two ends of writes whose answers differ, by bisection; of several flips, any one.

    It asks at most two more times than the range can be halved.
    """
    assert low <= high, "a log is asked in its own order"
    first = ask(low)
    other = first if high == low else ask(high)
    folds = 1 if high == low else 2
    if first is other:
        return FlipRange(low, None, (first, other), folds)
    # Positions above `low` and up to `ceiling` are open; the write after `ceiling` ends at `high`.
    ceiling = write_of(high)[0] - 1
    most = folds + (ceiling - low).bit_length()
    while ceiling > low:
        begins, ends = write_of((low + ceiling + 1) // 2)
        folds += 1
        if ask(ends) is first:
            low = ends
        else:
            high, ceiling = ends, begins - 1
        if tell is not None:
            tell(min(folds, most), most)
    return FlipRange(low, high, (first, other), folds)


def walk(low: int, ends: Iterable[int], ask: Ask, tell: Tell | None = None, count: int = 0) -> FlipRange:
    """Return the first flip after `low` among ends of writes, given in order: every one is asked until one differs."""
    first = ask(low)
    folds = 1
    for number, end in enumerate(ends, 1):
        folds += 1
        if tell is not None:
            tell(number, max(number, count))
        if ask(end) is not first:
            return FlipRange(low, end, (first, not first), folds)
        low = end
    return FlipRange(low, None, (first, first), folds)


@dataclass(frozen=True, slots=True)
class LookedChange(Record):
    """One entity before and after the flip, as far as the question looks."""

    entity: str
    """The entity."""
    existed: bool
    """Whether it existed before."""
    exists: bool
    """Whether it exists after."""
    was_deleted: bool
    """Whether it was deleted before."""
    is_deleted: bool
    """Whether it is deleted after."""
    fields: tuple[FieldChange, ...]
    """Fields looked at that differ."""


@dataclass(frozen=True, slots=True)
class Flip(Record):
    """A write with which an answer became another."""

    position: int
    """The last position of the write: the first moment with the new answer."""
    write: int
    """The first position of the write."""
    before: int
    """The end of the write before: the last moment with the old answer."""
    recorded_at: str
    """When the log took the write."""
    answers: tuple[bool, bool]
    """The answer before and after."""
    changes: tuple[LookedChange, ...]
    """The changes of the entities that the question looks at."""
    chosen: tuple[Json, Json] | None
    """The choices of the decision before and after, if the question is a decision."""
    statements: tuple[Statement, ...]
    """The write's observations of these entities, by position."""
    schemas: Mapping[str, tuple[int, int]]
    """Types whose schema changed with the write: version before and after."""
    undecided: tuple[str | None, str | None] = (None, None)
    """Why nothing can be decided before and after, where a rule is unknown there; `chosen` has null for it."""


@dataclass(frozen=True, slots=True)
class Bisected(Record):
    """The result of a bisect."""

    question: str
    """The question, in words."""
    start: int
    """The position it begins at, an end of a write."""
    end: int
    """The position it ends at, an end of a write."""
    answers: tuple[bool, bool]
    """The answers at both; where the first flip was looked for, the second is that after it."""
    flip: Flip | None
    """The flip; None if both answers are the same, or if the first flip was asked for and there is none."""
    first: bool
    """True if it is the first flip; otherwise it is one of several."""
    folds: int
    """How many states were folded to find it."""
    sentence: str
    """The result, in a sentence."""
    matched: tuple[Match, ...] = field(default=(), metadata=WHEN_SET)
    """How entities were found that were asked about by values that identify them."""

    def __bool__(self) -> bool:
        return self.flip is not None


# The sentence


def flip_sentence(question: str, flip: Flip, *, first: bool, folds: int) -> str:
    """Return a sentence about the flip: its time, its agent and its statement."""
    was, now = (str(answer).lower() for answer in flip.answers)
    at = f"at position {flip.position}, recorded {flip.recorded_at.replace('.000000Z', 'Z')}"
    which = "the first flip" if first else "a flip, found"
    counted = f"{which} in {folds} folds" if not first else f"{which}, after {folds} folds"
    return f"{question}: {was} became {now} {at}: {_cause(flip)} ({counted})."


def no_flip_sentence(
    question: str, start: int, end: int, answers: tuple[bool, bool], *, first: bool, undecided: str | None = None
) -> str:
    """Return in a sentence that there is no flip to tell of; `undecided` is why nothing can be decided at the end."""
    was, now = (str(answer).lower() for answer in answers)
    why = "" if undecided is None else f" (nothing can be decided there: {undecided})"
    if first:
        return f"{question}: {was} {_at(start)} and in every state up to position {end}{why}; nothing flips."
    return (
        f"{question}: {was} {_at(start)} and {now} {_at(end)}{why}; with the same answer at both ends "
        "there is nothing to halve. Begin or end elsewhere, or look for the first flip between them."
    )


def _at(position: int) -> str:
    return "before the first entry" if position < 0 else f"at position {position}"


_ACTS = {RETRACT: "retracted", DELETE: "deleted", RESTORE: "restored", ASSERT: "asserted", CORRECT: "corrected"}


def _cause(flip: Flip) -> str:
    said = _telling(flip)
    changed = [(change.entity, field) for change in flip.changes for field in change.fields]
    if said is None:
        types = "; ".join(f"schema {type} went from version {a} to {b}" for type, (a, b) in flip.schemas.items())
        what = types or "nothing was said of what is asked about"
    else:
        stated = [field for _, field in changed if field.field in said.fields]
        if stated and said.op in (ASSERT, CORRECT):
            what = f"{said.agent} {_ACTS[said.op]} {stated[0].field} {short(said.fields[stated[0].field])}"
        elif said.op == RETRACT:
            what = f"{said.agent} retracted {', '.join(said.replaces)} of {said.entity}"
        elif said.op in (ASSERT, CORRECT) and said.entity.startswith(f"{SAME_AS}/"):
            what = f"{said.agent} joined {said.entity.removeprefix(SAME_AS + '/')}"
        elif said.op in (ASSERT, CORRECT):
            what = f"{said.agent} {_ACTS[said.op]} {', '.join(sorted(said.fields)) or said.entity}"
        else:
            what = f"{said.agent} {_ACTS[said.op]} {said.entity}"
        what += _from(said)
    told = ", ".join(f"{entity}#{_moved(field)}" for entity, field in changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    chosen = "" if flip.chosen is None else _choices(flip, flip.chosen)
    return f"{what}{f'; {told}{more}' if told else ''}{chosen}"


def _choices(flip: Flip, chosen: tuple[Json, Json]) -> str:
    """Return the choices before and after, or the reason why no decision is possible."""
    if not any(flip.undecided):
        return f", so that {short(chosen[1])} is chosen instead of {short(chosen[0])}"
    then, now = (
        f"nothing can be decided ({why})" if why is not None else f"{short(what)} is chosen"
        for why, what in zip(flip.undecided, chosen, strict=True)
    )
    return f", so that {now} where before {then}"


def _moved(field: FieldChange) -> str:
    before = short(field.before) if field.had else "nothing"
    return f"{field.field} was {before}, is {short(field.after) if field.has else 'nothing'}"


def _from(said: Statement) -> str:
    source = "" if said.source is None else f" from {short(said.source_name or said.source)}"
    return f"{source}{'' if said.run is None else f' in {said.run}'}"


def _telling(flip: Flip) -> Statement | None:
    """Return the observation that most likely made the difference: one with the current value, or a marker."""

    def weight(said: Statement) -> int:
        fields = [field for change in flip.changes for field in change.fields]
        if any(
            field.has and field.field in said.fields and said.fields[field.field] == field.after for field in fields
        ):
            return 4
        if said.op in (RETRACT, DELETE, RESTORE) or said.entity.startswith(f"{SAME_AS}/"):
            return 3
        return 2 if any(field.field in said.fields for field in fields) else 1

    return max(reversed(flip.statements), key=weight, default=None) if flip.statements else None

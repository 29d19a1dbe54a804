"""Steps of a run: what happened in it, in the order in which it happened, one numbered step after the other.

Reads, calls, decisions, notes and writes are steps; judgements are said about a run and are none. A step has the number
that its recorder gave it, which is also what a fork is told, as long as these numbers tell the steps apart; imports may
have none, and then steps are counted from 1.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs.steps import Decision, Judgement, ModelCall, Note, Part, Read, ToolCall, Write, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.runs.run_fields import RunFields

STEP_KINDS: Final = ("read", "tool", "model", "decision", "note", "write")
"""What kinds of steps there are."""
DEPTH_MAX: Final = 8
"""How many calls that lie inside each other are told apart."""
_KINDS: Final[Mapping[type[Part], str]] = {
    Read: "read",
    ToolCall: "tool",
    ModelCall: "model",
    Decision: "decision",
    Note: "note",
}


@dataclass(frozen=True, slots=True)
class RunStep(Record):
    """One step of a run; of what happened in it, the one field that its kind names is set."""

    number: int
    """What the step is called by, in `runs show --step` and in a fork."""
    kind: str
    """`read`, `tool`, `model`, `decision`, `note` or `write`."""
    agent: str | None
    """Which of several agents took it, where that is recorded."""
    depth: int
    """Inside how many calls it happened."""
    inside: int | None
    """Number of the call inside which it happened."""
    read: Read | None
    """What was read."""
    tool: ToolCall | None
    """The tool that was called."""
    model: ModelCall | None
    """The model that was called."""
    decision: Decision | None
    """What was decided."""
    note: Note | None
    """What was remarked."""
    writes: tuple[Write, ...]
    """What was written, all of it in one step."""

    @property
    def part(self) -> Part | tuple[Write, ...]:
        """What happened: a part of the record, or all that was written in one step."""
        return next(filter(None, (self.read, self.tool, self.model, self.decision, self.note)), self.writes)

    @property
    def started_at(self) -> str | None:
        """When it began, where that is recorded."""
        return self.part.started_at if isinstance(self.part, Part) else None

    @property
    def position(self) -> int | None:
        """Where its entry stands in the log; of several writes, the first. None for writes of another log."""
        return self.part.position if isinstance(self.part, Part) else self.part[0].position


def numbered_steps(record: RunFields) -> tuple[RunStep, ...]:
    """Return the steps of a run in time order, each with its number."""
    parts: list[Part | tuple[Write, ...]] = []
    for _, together in groupby(enumerate(happened(record)), key=_write_step):
        items = [item for _, item in together]
        writes = tuple(item for item in items if isinstance(item, Write))
        parts += [writes] if writes else [item for item in items if isinstance(item, Part)]
    numbers = [part.step if isinstance(part, Part) else part[0].step or 0 for part in parts]
    if len(set(numbers)) < len(numbers) or 0 in numbers:
        numbers = list(range(1, len(parts) + 1))
    places = {part.span: place for place, part in enumerate(parts) if isinstance(part, Part) and part.span}
    found: list[RunStep] = []
    for number, part in zip(numbers, parts, strict=True):
        outer = list(_outer(part, parts, places))
        agent = text(part.attributes.get("agent")) if isinstance(part, Part) else None
        kind = _KINDS[type(part)] if isinstance(part, Part) else "write"
        field = kind if isinstance(part, Part) else "writes"
        told: dict[str, Any] = {**dict.fromkeys(_KINDS.values()), "writes": (), field: part}
        found.append(RunStep(number, kind, agent, len(outer), numbers[outer[0]] if outer else None, **told))
    return tuple(found)


def _write_step(placed: tuple[int, Part | Write]) -> tuple[str, int]:
    """Return what writes of one step have in common; everything else stands alone."""
    place, item = placed
    return ("step", item.step) if isinstance(item, Write) and item.step is not None else ("place", place)


def _outer(
    part: Part | tuple[Write, ...], parts: Sequence[Part | tuple[Write, ...]], places: dict[str, int]
) -> Iterator[int]:
    """Yield the places of the calls inside which a step happened, the nearest first."""
    seen: set[int] = set()
    while isinstance(part, Part) and part.under is not None and len(seen) < DEPTH_MAX:
        place = places.get(part.under)
        if place is None or place in seen:
            return
        seen.add(place)
        yield place
        part = parts[place]


def happened(record: RunFields) -> Iterator[Part | Write]:
    """Yield steps and writes in order; a write stands after the last step that was taken before it."""
    steps = [step for step in record.steps if not isinstance(step, Judgement)]
    after: dict[int, list[Write]] = {}
    for write in record.writes:
        last = max((place for place, step in enumerate(steps, 1) if precedes(step, write)), default=0)
        after.setdefault(last, []).append(write)
    yield from after.get(0, ())
    for place, step in enumerate(steps, 1):
        yield step
        yield from after.get(place, ())


def precedes(step: Part, write: Write) -> bool:
    """Return whether a step was taken before something was written."""
    if write.step is not None:
        return step.step <= write.step
    return write.position is None or step.position < write.position

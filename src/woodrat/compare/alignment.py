"""Alignment: the steps of two runs, each beside the one it corresponds to.

Steps that ask the same (kind, name and arguments) are put side by side first, as many as order allows; between those,
steps of the same kind and name. Insertions and loops leave steps without a partner. Which of two runs is named first
makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from woodrat.canon import form
from woodrat.compare.align import Pair, align
from woodrat.compare.contrast import without_call_ids
from woodrat.records import dataclass
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Part, Read, ToolCall, Write


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """One step of a run, as alignment sees it."""

    kind: str
    """`read`, `tool`, `model`, `decision` or `write`."""
    label: str
    """What it is called in a sentence, such as `read of loan/42`."""
    name: tuple[str, ...]
    """What two steps must share to stand side by side."""
    asked: tuple[str, ...]
    """The same with all that was asked: two steps that share it asked the same."""
    part: Part | Write
    """What the record holds of it."""


def steps_of(record: RunRecord) -> tuple[ComparedStep, ...]:
    """Return what a run did, in order: reads, calls, decisions and writes.

    Notes and judgements are said about a run, and take no part. A write stands after the step it was said in.
    """
    parts = _in_order([part for part in record.steps if isinstance(part, Read | ToolCall | ModelCall | Decision)])
    after: dict[int, list[Write]] = {}
    last: dict[int, int] = {}
    for place, part in enumerate(parts):
        last[part.step] = place
    known = sorted(last)
    for write in record.writes:
        after.setdefault(_place(write, known, last, len(parts)), []).append(write)
    found: list[ComparedStep] = [_step(write) for write in after.get(-1, ())]
    for place, part in enumerate(parts):
        found.append(_step(part))
        found += (_step(write) for write in after.get(place, ()))
    return tuple(found)


def _in_order(parts: list[Part]) -> list[Part]:
    """Return parts with what one search found by entity: the log has no order for these."""
    found: list[Part] = []
    for _, together in groupby(parts, key=lambda part: (part.started_at, part.step, part.span)):
        same = list(together)
        reads = all(isinstance(part, Read) for part in same)
        found += sorted(same, key=lambda part: getattr(part, "entity", None) or "") if reads else same
    return found


def _place(write: Write, known: Sequence[int], last: dict[int, int], count: int) -> int:
    """Return the place of the part a write comes after; −1 before all of them."""
    from bisect import bisect_right

    if write.step is None:
        return count - 1
    before = bisect_right(known, write.step)
    return last[known[before - 1]] if before else -1


def _step(part: Part | Write) -> ComparedStep:
    name: tuple[str, ...]
    if isinstance(part, Read):
        label = f"{part.within or 'read'} of {part.entity}" if part.entity else part.within or "read"
        name = ("read", part.entity or "", part.within or "")
        return ComparedStep("read", label, name, (*name, _spelled(part.args), part.effective or ""), part)
    if isinstance(part, ToolCall):
        name = ("tool", part.name)
        return ComparedStep("tool", f"tool {part.name}", name, (*name, _spelled(part.args)), part)
    if isinstance(part, ModelCall):
        name = ("model",)
        asked = (part.model or "", part.request or _spelled(without_call_ids(part.messages)), _spelled(part.parameters))
        return ComparedStep("model", f"model {part.model}" if part.model else "model", name, (*name, *asked), part)
    if isinstance(part, Decision):
        name = ("decision", part.stage)
        return ComparedStep("decision", f"decision {part.stage}", name, name, part)
    assert isinstance(part, Write)
    name = ("write", part.entity, part.op)
    return ComparedStep(
        "write", f"write of {part.entity}", name, (*name, _spelled(part.fields), _spelled(part.remove)), part
    )


def _spelled(value: Any) -> str:
    return form.serialise(value).decode()


def side_by_side(
    a: Sequence[ComparedStep], b: Sequence[ComparedStep]
) -> list[tuple[ComparedStep | None, ComparedStep | None]]:
    """Return the steps of two runs side by side, in order; swapping the runs swaps the sides and nothing else."""
    swapped = [step.asked for step in b] < [step.asked for step in a]
    first, second = (b, a) if swapped else (a, b)
    found: list[tuple[ComparedStep | None, ComparedStep | None]] = []
    for i, j in _both(first, second):
        left, right = None if i is None else first[i], None if j is None else second[j]
        found.append((right, left) if swapped else (left, right))
    return found


def _both(a: Sequence[ComparedStep], b: Sequence[ComparedStep]) -> list[Pair]:
    """Return places side by side: by all that was asked, and by name alone where that leaves gaps."""
    found: list[Pair] = []
    gap_a: list[int] = []
    gap_b: list[int] = []

    def close() -> None:
        for i, j in align([a[place].name for place in gap_a], [b[place].name for place in gap_b]):
            found.append((None if i is None else gap_a[i], None if j is None else gap_b[j]))
        gap_a.clear()
        gap_b.clear()

    for i, j in align([step.asked for step in a], [step.asked for step in b]):
        if i is not None and j is not None:
            close()
            found.append((i, j))
        elif i is not None:
            gap_a.append(i)
        elif j is not None:
            gap_b.append(j)
    close()
    return found

"""Alignment: the steps of two runs, each beside the one it corresponds to.

Behaviour is aligned first: reads, calls of tools, decisions and writes that ask the same (kind, name and arguments,
without what is prose or made up anew by every run), as many as order allows; then steps that were taken in another
order where that makes no difference; between those, steps of the same kind and name. Calls of models find their place
in between. Insertions and loops leave steps without a partner. Which of two runs is named first makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any, Final

from woodrat.canon import form
from woodrat.compare.noise import NAMED_PROSE_WORDS_MIN, is_prose, steady_text
from woodrat.compare.usage import Usage, bound_by_effect
from woodrat.compare.value_difference import align
from woodrat.records import dataclass
from woodrat.runs.messages import without_call_ids
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Part, Read, ToolCall, Write

MOVED_STEPS_MAX: Final = 3
"""How many steps one of the same name may have passed to be the same step with other arguments."""


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
    key: tuple[str, ...] = ()
    """What was asked without prose and without what every run makes up anew: what alignment goes by."""
    place: int = 0
    """Where it stands among the steps of its run, from 0."""


def steps_of(record: RunRecord) -> tuple[ComparedStep, ...]:
    """Return the steps of a run in order, as they are compared."""
    return tuple(_step(part, place) for place, part in enumerate(parts_of(record)))


def parts_of(record: RunRecord) -> list[Part | Write]:
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
    found: list[Part | Write] = [*after.get(-1, ())]
    for place, part in enumerate(parts):
        found += (part, *after.get(place, ()))
    return found


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


def _step(part: Part | Write, place: int) -> ComparedStep:
    name: tuple[str, ...]
    key: tuple[str, ...]
    asked: tuple[str, ...]
    if isinstance(part, Read):
        label = f"{part.within or 'read'} of {part.entity}" if part.entity else part.within or "read"
        name, entity = ("read", part.entity or "", part.within or ""), _steady(part.entity or "")
        args = _spelled(part.args)
        key = ("read", entity, part.within or "", _steady(args), part.effective or "")
        return ComparedStep("read", label, key[:3], (*name, args, part.effective or ""), part, key, place)
    if isinstance(part, ToolCall):
        name, args = ("tool", part.name), _spelled(part.args)
        return ComparedStep("tool", f"tool {part.name}", name, (*name, args), part, (*name, _steady(args)), place)
    if isinstance(part, ModelCall):
        name = ("model",)
        asked = (part.model or "", part.request or _spelled(without_call_ids(part.messages)), _spelled(part.parameters))
        label = f"model {part.model}" if part.model else "model"
        return ComparedStep("model", label, name, (*name, *asked), part, name, place)
    if isinstance(part, Decision):
        name = ("decision", part.stage)
        return ComparedStep("decision", f"decision {part.stage}", name, name, part, name, place)
    assert isinstance(part, Write)
    name, said = ("write", _steady(part.entity), part.op), (_spelled(part.fields), _spelled(part.remove))
    key = (*name, *map(_steady, said))
    asked = ("write", part.entity, part.op, *said)
    return ComparedStep("write", f"write of {part.entity}", name, asked, part, key, place)


def _spelled(value: Any) -> str:
    return form.serialise(value).decode()


_TEXT: Final = re.compile(r'(?:"([^"\\]*)":)?"((?:[^"\\]|\\.){12,})"')


def _steady(spelled: str) -> str:
    """Return a value spelled as JSON without prose and without what every run makes up anew."""
    found = steady_text(spelled)
    return _TEXT.sub(_without_prose, found) if found.count(" ") >= NAMED_PROSE_WORDS_MIN - 1 else found


def _without_prose(found: re.Match[str]) -> str:
    return '"prose"' if is_prose(found[2], found[1] or "") else found.group()


Row = tuple[ComparedStep | None, ComparedStep | None]
"""Two steps side by side; none where one has no partner."""


def side_by_side(a: Sequence[ComparedStep], b: Sequence[ComparedStep], usages: tuple[Usage, Usage]) -> list[Row]:
    """Return the steps of two runs side by side; swapping the runs swaps the sides and nothing else.

    Rows are in the order of either run, but for steps that were taken in another order where that makes no difference.
    """
    swapped = [step.asked for step in b] < [step.asked for step in a]
    if swapped:
        return [(right, left) for left, right in _Alignment(b, a, usages[::-1]).rows()]
    return _Alignment(a, b, usages).rows()


class _Alignment:
    """Two runs being put side by side."""

    def __init__(self, a: Sequence[ComparedStep], b: Sequence[ComparedStep], usages: Sequence[Usage]) -> None:
        self.a, self.b, self.usages = a, b, usages
        self.acts = [step for step in a if step.kind != "model"], [step for step in b if step.kind != "model"]
        self.partner: dict[int, int] = {}
        """Places of the steps of the second run by those of the first."""
        self.moved: set[int] = set()
        """Places in the first run of steps that the second took in another order."""

    def rows(self) -> list[Row]:
        """Return all steps of both."""
        one, two = self.acts
        for i, j in align([step.key for step in one], [step.key for step in two]):
            if i is not None and j is not None:
                self.partner[one[i].place] = two[j].place
        self._pair_moved(lambda step: step.key, len(self.a) + len(self.b))
        for gap_a, gap_b in self._gaps(*self.acts):
            self._pair_gap(gap_a, gap_b, lambda step: step.name)
        self._pair_moved(lambda step: step.name, MOVED_STEPS_MAX)
        for gap_a, gap_b in self._gaps(self.a, self.b):
            models = ([step for step in gap if step.kind == "model"] for gap in (gap_a, gap_b))
            self._pair_models(*models)
        return self._merged()

    def _ordered(self) -> list[tuple[int, int]]:
        """Return the pairs that both runs have in one order."""
        return [(i, j) for i, j in sorted(self.partner.items()) if i not in self.moved]

    def _gaps(
        self, a: Sequence[ComparedStep], b: Sequence[ComparedStep]
    ) -> list[tuple[list[ComparedStep], list[ComparedStep]]]:
        """Return the steps without a partner between pairs that are in order."""
        pairs = [*self._ordered(), (len(self.a), len(self.b))]
        taken = set(self.partner.values())
        found: list[tuple[list[ComparedStep], list[ComparedStep]]] = [([], []) for _ in pairs]
        for side, (steps, known) in enumerate(((a, set(self.partner)), (b, taken))):
            number = 0
            for step in steps:
                while step.place > pairs[number][side]:
                    number += 1
                if step.place not in known:
                    found[number][side].append(step)
        return [gap for gap in found if gap[0] or gap[1]]

    def _pair_gap(
        self, gap_a: Sequence[ComparedStep], gap_b: Sequence[ComparedStep], key: Callable[[ComparedStep], Hashable]
    ) -> None:
        if gap_a and gap_b:
            for i, j in align([key(step) for step in gap_a], [key(step) for step in gap_b]):
                if i is not None and j is not None:
                    self.partner[gap_a[i].place] = gap_b[j].place

    def _pair_models(self, gap_a: Sequence[ComparedStep], gap_b: Sequence[ComparedStep]) -> None:
        """Pair calls of models between two pairs: those asked the same, then those that led to what follows."""
        if not gap_a or not gap_b:
            return
        pairs = [
            (i, j)
            for i, j in align([s.asked for s in gap_a], [s.asked for s in gap_b])
            if i is not None and j is not None
        ]
        before = (-1, -1)
        for after in [*pairs, (len(gap_a), len(gap_b))]:
            rest = gap_a[before[0] + 1 : after[0]], gap_b[before[1] + 1 : after[1]]
            for left, right in zip(*rest, strict=False):
                self.partner[left.place] = right.place
            before = after
        for i, j in pairs:
            self.partner[gap_a[i].place] = gap_b[j].place

    # Another order

    def _pair_moved(self, key: Callable[[ComparedStep], Hashable], most: int) -> None:
        """Pair steps of one key that the two runs took in another order, where that makes no difference."""
        taken = set(self.partner.values())
        waiting: dict[Hashable, list[ComparedStep]] = {}
        for step in self.acts[1]:
            if step.place not in taken:
                waiting.setdefault(key(step), []).append(step)
        for left in self.acts[0] if waiting else ():
            others = waiting.get(key(left)) if left.place not in self.partner else None
            for right in others or ():
                passed = self._passed(left, right)
                if len(passed) <= most and not any(self._bound(left, right, *pair) for pair in passed):
                    self.partner[left.place] = right.place
                    self.moved.add(left.place)
                    assert others is not None
                    others.remove(right)
                    break

    def _passed(self, left: ComparedStep, right: ComparedStep) -> list[tuple[ComparedStep, ComparedStep]]:
        """Return the pairs that stand before a step in one run and after it in the other."""
        return [
            (self.a[i], self.b[j])
            for i, j in self.partner.items()
            if self.a[i].kind != "model" and (i < left.place) != (j < right.place)
        ]

    def _bound(self, left: ComparedStep, right: ComparedStep, beside: ComparedStep, opposite: ComparedStep) -> bool:
        """Return whether the order of a step and one that it passed makes a difference."""
        if bound_by_effect(left.part, beside.part):
            return True
        for usage, step, other in zip(self.usages, (left, right), (beside, opposite), strict=True):
            earlier, later = sorted((step, other), key=lambda found: found.place)
            if usage.takes_from(earlier.place, later.part):
                return True
        return False

    def _merged(self) -> list[Row]:
        """Return the rows: between two pairs in order the steps of the second run alone, then those of the first.

        Steps taken in another order have their row where the first of the two runs took them.
        """
        found: list[Row] = []
        waiting: list[Row] = []
        moved = {self.partner[i]: i for i in self.moved}
        shown: set[int] = set()
        j = 0

        def pass_over(end: int) -> None:
            for right in self.b[j:end]:
                place = moved.get(right.place)
                if place is None:
                    found.append((None, right))
                elif place not in shown:
                    shown.add(place)
                    found.append((self.a[place], right))

        for step in self.a:
            other = self.partner.get(step.place)
            if other is None:
                waiting.append((step, None))
            elif step.place not in self.moved:
                pass_over(other)
                found += [*waiting, (step, self.b[other])]
                waiting, j = [], other + 1
            elif step.place not in shown:
                shown.add(step.place)
                waiting.append((step, self.b[other]))
        pass_over(len(self.b))
        return [*found, *waiting]

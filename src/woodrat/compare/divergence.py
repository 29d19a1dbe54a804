"""Divergence: two runs side by side, where they part, and why; ending in one plain sentence.

Runs differ at levels: in wording, in behaviour, in outcome. The sentence is about the first difference in behaviour,
whatever was worded otherwise before it. Times, durations, ids, notes and judgements take no part, nor does which
observation shows a value that is the same, nor what every run makes up anew and none uses; the latter is listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.alignment import ComparedStep, Row, side_by_side, steps_of
from woodrat.compare.cause import (
    BEHAVIOUR,
    NONE,
    OUTCOME,
    WORDING,
    Cause,
    Lineage,
    Logs,
    OneLog,
    TwoLogs,
)
from woodrat.compare.contrast import RUNS, Sides, part_texts, short
from woodrat.compare.difference_level import SetAside
from woodrat.compare.explanation import Explanation
from woodrat.compare.usage import Usage
from woodrat.compare.value_difference import align, differences
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.runs.record import RunRecord

SAME, DIFFERS, FIRST_ONLY, SECOND_ONLY = "same", "differs", "first", "second"
"""How the two sides of a row compare."""

NAMED_MAX: Final = 3
"""How many decisions a sentence names, how many causes, and how many changes of one edit."""


@dataclass(frozen=True, slots=True)
class StepPair(Record):
    """One step of both runs, or of one of them."""

    step: int
    """Its place: 0 is the start, then the steps, and the answer last."""
    kind: str
    """`start`, `read`, `tool`, `model`, `decision`, `write` or `answer`."""
    label: str
    """What it is called."""
    mark: str
    """`same`, `differs`, or `first` or `second` for a step of that run alone."""
    first: str | None
    """What the first run did, in short; none where it has no such step."""
    second: str | None
    """What the second run did."""
    positions: tuple[int | None, int | None]
    """Where the entries stand, each in its own log."""
    cause: Cause | None = None
    """Why it differs, where that is a cause of its own."""
    follows: int | None = None
    """The row it follows from, where it differs because that does."""
    level: str = NONE
    """At which level it differs: `none`, `wording`, `behaviour` or `outcome`."""


@dataclass(frozen=True, slots=True)
class Divergence(Record):
    """Two runs side by side: where they part, and why."""

    first: str
    """Id of the first run."""
    second: str
    """Id of the second."""
    same: bool
    """Whether they did the same and came to the same: the level is `none` or `wording`."""
    step: int | None
    """The row at which they part; none when nothing differs or they have nothing in common."""
    cause: Cause | None
    """Why they part there; none when nothing differs."""
    rows: tuple[StepPair, ...]
    """Both runs, side by side."""
    sentence: str
    """All of it in one sentence."""
    level: str = NONE
    """`behaviour` where they did something else, `outcome` where only what came of it differs, `wording`, or `none`."""
    wording: str | None = None
    """That the wording differed before the row at which they part, and where first; none where it did not."""
    set_aside: tuple[SetAside, ...] = ()
    """Values that every run makes up anew and that neither run used, row by row."""
    reordered: tuple[int, ...] = ()
    """Rows of steps that the two runs took in another order, which makes no difference."""
    edit: Mapping[str, Any] | None = None
    """Where one run is a fork of the other, what was edited: as `forked_from` of the fork."""
    total: int = 0
    """How many rows there are in all."""
    differing: int = 0
    """How many of them differ."""
    skipped: int = 0
    """How many rows stand before those of this page; of those that differ, where only these were asked for."""


def compare(
    a: RunRecord, b: RunRecord, lineage: Lineage | None = None, other: Lineage | None = None, sides: Sides = RUNS
) -> Divergence:
    """Return where two runs part and why; `lineage` tells who said what they read.

    `other` is the lineage of the second run where it is of another ledger. `sides` is what sentences call the two. The
    cost grows with the steps of the two runs, not with the log.
    """
    one, two = steps_of(a), steps_of(b)
    usages = (Usage(a, [step.part for step in one]), Usage(b, [step.part for step in two]))
    steps = side_by_side(one, two, usages)
    logs: Logs = OneLog(lineage) if lineage is None or other is None else TwoLogs(lineage, other)
    return _Comparison(a, b, steps, Explanation(a, b, logs, steps, sides, usages), sides).divergence()


class _Comparison:
    """Two runs being compared."""

    def __init__(
        self, a: RunRecord, b: RunRecord, steps: Sequence[Row], explanation: Explanation, sides: Sides
    ) -> None:
        self.a, self.b, self.steps, self.sides = a, b, steps, sides
        self.explanation, self.levels = explanation, explanation.levels
        self.causes, self.follows, self.chosen = explanation.causes, explanation.follows, explanation.chosen

    def divergence(self) -> Divergence:
        """Return what came of it."""
        a, b = self.a, self.b
        if self._nothing_in_common():
            text = "no step of one has the kind and the name of a step of the other"
            cause, sentence = Cause("nothing_in_common", text, {}), f"They have nothing in common: {text}."
            rows = self._rows()
            return Divergence(
                first=a.id,
                second=b.id,
                same=False,
                step=None,
                cause=cause,
                rows=tuple(rows),
                sentence=sentence,
                level=BEHAVIOUR,
                total=len(rows),
                differing=_differing(rows),
            )
        self.explanation.explain()
        rows = self._rows()
        level = self._level()
        roots = self._roots(level)
        step = roots[0] if roots else None
        return Divergence(
            first=a.id,
            second=b.id,
            same=level in (NONE, WORDING),
            step=step,
            cause=None if step is None else self.causes[step],
            rows=tuple(rows),
            sentence=self._sentence(level, roots, rows),
            level=level,
            wording=self._wording(step, rows) if level == BEHAVIOUR else None,
            set_aside=tuple(self.levels.set_aside),
            reordered=tuple(self._reordered()),
            total=len(rows),
            differing=_differing(rows),
        )

    def _nothing_in_common(self) -> bool:
        """Return whether both did something, and neither a step nor a search of one is like one of the other."""
        if self.a.query is not None and self.a.query == self.b.query:
            return False
        paired = any(left is not None and right is not None for left, right in self.steps)
        searches = self.explanation.searches
        paired = paired or bool({*searches[0]} & {*searches[1]})
        return not paired and all(any(row[side] is not None for row in self.steps) for side in (0, 1))

    def _level(self) -> str:
        levels = {self.levels.of(number) for number in range(len(self.steps) + 2)}
        return next((level for level in (BEHAVIOUR, OUTCOME, WORDING) if level in levels), NONE)

    def _roots(self, level: str) -> list[int]:
        """Return the rows with a cause of their own that the sentence is about, in order."""
        if level != BEHAVIOUR:
            return sorted(self.causes)
        return sorted(number for number, cause in self.causes.items() if cause.level != WORDING)

    def _reordered(self) -> list[int]:
        """Return the rows of steps that the two runs took in another order, as few as possible."""
        paired = [
            (number, left.place, right.place)
            for number, (left, right) in enumerate(self.steps, 1)
            if left is not None and right is not None and left.kind != "model"
        ]
        found: set[int] = set()
        for side in (1, 2):
            places = [row[side] for row in paired]
            if places != sorted(places):
                ordered = sorted(range(len(paired)), key=places.__getitem__)
                kept = {i for i, j in align(range(len(paired)), ordered) if i is not None and j is not None}
                found |= {paired[i][0] for i in range(len(paired)) if i not in kept}
        return sorted(found)

    # Rows

    def _rows(self) -> list[StepPair]:
        a, b = self.a, self.b
        last = len(self.steps) + 1
        rows = [
            self._row(0, "start", "start", (contrast.request_text(a), contrast.request_text(b)), (a.start, b.start))
        ]
        for number, (left, right) in enumerate(self.steps, 1):
            step = left or right
            assert step is not None
            p, q = (None if side is None else side.part for side in (left, right))
            sides = contrast.both_done(p, q)
            places = (None if p is None else p.position, None if q is None else q.position)
            rows.append(self._row(number, step.kind, step.label, sides, places, self._alone(left, right)))
        rows.append(self._row(last, "answer", "answer", (contrast.ending(a), contrast.ending(b)), (a.end, b.end)))
        return rows

    def _alone(self, left: ComparedStep | None, right: ComparedStep | None) -> str:
        return SECOND_ONLY if left is None else FIRST_ONLY if right is None else DIFFERS

    def _row(
        self,
        number: int,
        kind: str,
        label: str,
        sides: tuple[str | None, str | None],
        places: tuple[int | None, int | None],
        mark: str = DIFFERS,
    ) -> StepPair:
        cause, follows, level = self.causes.get(number), self.follows.get(number), self.levels.of(number)
        mark = SAME if level is None else mark
        if mark == DIFFERS and sides[0] == sides[1]:
            sides = self._told_apart(number) or sides
        return StepPair(number, kind, label, mark, *sides, places, cause, follows, level or NONE)

    def _told_apart(self, number: int) -> tuple[str, str] | None:
        """Return the first part in which the two sides of a row differ, where what they did reads the same in short."""
        first: Mapping[str, Json]
        second: Mapping[str, Json]
        if 1 <= number <= len(self.steps):
            left, right = self.steps[number - 1]
            first, second = (contrast.compared(step.part) for step in (left, right) if step is not None)
        elif number == 0:
            first, second = ({"query": run.query, "inputs": dict(run.inputs)} for run in (self.a, self.b))
        else:
            first, second = ({"answer": r.answer, "error": r.error, "verdict": r.verdict} for r in (self.a, self.b))
        for name in contrast.differing(first, second):
            found = differences(first.get(name), second.get(name))
            if found:
                return part_texts(name, found[0])
        return None

    # The sentence

    def _sentence(self, level: str, roots: Sequence[int], rows: Sequence[StepPair]) -> str:
        if level == NONE:
            return self._alike()
        if level == WORDING:
            return self._reworded(roots[0], rows)
        said = [f"They parted at {where(rows[roots[0]])}: {self.causes[roots[0]].text}"]
        said += self._followers(roots[0], rows)
        telling = [root for root in roots[1:] if root in self.chosen or self._followers(root, rows)]
        for root in telling[: NAMED_MAX - 1]:
            said.append(f"apart from that, at {where(rows[root])}, {self.causes[root].text}")
            said += self._followers(root, rows)
        rest = len(roots) - 1 - len(telling[: NAMED_MAX - 1])
        if rest:
            said.append("one more step differs by itself" if rest == 1 else f"{rest} more steps differ by themselves")
        if rows[-1].mark == SAME and self.a.answer is not None:
            said.append("the answer is the same")
        if self.a.verdict is not None and self.b.verdict is not None and self.a.verdict != self.b.verdict:
            judged = self.sides.pair(self.a.verdict, self.b.verdict)
            said += (
                [] if self.levels.only_verdict_differs and roots[0] == len(rows) - 1 else [f"the verdict was {judged}"]
            )
        return _closed("; ".join(said))

    def _followers(self, root: int, rows: Sequence[StepPair]) -> list[str]:
        """Return the clause that names what follows from a row: decisions and the answer."""
        decided = [
            rows[n].label.removeprefix("decision ") for n in self.chosen if n != root and self.follows.get(n) == root
        ]
        decided = list(dict.fromkeys(decided))
        if len(decided) > NAMED_MAX:
            decided = [*decided[:NAMED_MAX], f"{len(decided) - NAMED_MAX} more"]
        named = [f"the decision{'s' if len(decided) > 1 else ''} {contrast.listed(decided)}"] if decided else []
        if self.follows.get(len(rows) - 1) == root and not self.levels.only_verdict_differs:
            named.append("the answer")
        many = len(named) > 1 or len(decided) > 1
        return [f"{contrast.listed(named)} follow{'' if many else 's'} from it"] if named else []

    def _wording(self, step: int | None, rows: Sequence[StepPair]) -> str | None:
        """Return that the wording differed before a row, and where first."""
        if step is None:
            return None
        first = next((row for row in rows[:step] if row.level == WORDING), None)
        if first is None:
            return None
        about = "" if first.cause is None else f": {first.cause.text}"
        return _closed(f"Before that the wording differed, first at {where(first)}{about}")

    def _reworded(self, root: int, rows: Sequence[StepPair]) -> str:
        count = sum(step.kind != "model" for row in self.steps if (step := row[0] or row[1]) is not None)
        steps = "no step but asking models" if not count else "one step" if count == 1 else f"{count} steps"
        did = f"They did the same ({steps}{self._order()})"
        answer = " and gave the same answer" if rows[-1].mark == SAME else ""
        text = self.causes[root].text
        return _closed(f"{did}{answer}; only the wording differs, first at {where(rows[root])}: {text}{self._aside()}")

    def _alike(self) -> str:
        a, b, count = self.a, self.b, len(self.steps)
        if a.id == b.id:
            return "They are one and the same run."
        steps = "without a step" if not count else "in their one step" if count == 1 else f"in all {count} steps"
        though = ""
        if a.code is not None and b.code is not None and a.code != b.code:
            though = f", though their code differs: {self.sides.pair(a.code, b.code)}"
        silent = sum(call.response is None and not call.errored for call in (*a.models, *b.models))
        if silent:
            though += f"; of {'one model call' if silent == 1 else f'{silent} model calls'} no answer is recorded"
        return f"They are the same {steps} and in the answer{self._order()}{though}{self._aside()}."

    def _order(self) -> str:
        count = len(self._reordered())
        steps = "one step" if count == 1 else f"{count} steps"
        return f", {steps} in another order that makes no difference" if count else ""

    def _aside(self) -> str:
        count = len(self.levels.set_aside)
        if not count:
            return ""
        return (
            "; one value that every run makes up anew was set aside"
            if count == 1
            else f"; {count} values that every run makes up anew were set aside"
        )


def _differing(rows: Sequence[StepPair]) -> int:
    return sum(row.mark != SAME for row in rows)


def _closed(text: str) -> str:
    """Return a sentence with its full stop; what it ends with may have one."""
    return text if text.endswith(".") else f"{text}."


def where(row: StepPair) -> str:
    """Return what a sentence calls a row."""
    if row.kind == "start":
        return "the start"
    return "the answer" if row.kind == "answer" else f"step {row.step}, the {row.label}"


# A fork beside its parent


def with_edit(found: Divergence, a: RunRecord, b: RunRecord) -> Divergence:
    """Return how two runs compare, with the edit as the cause where one is a fork of the other.

    A difference in behaviour before the edited step has another cause; then the edit is only named beside it.
    """
    for parent, fork, side in ((a, b, 0), (b, a, 1)):
        told = fork.forked_from
        if told is not None and told.get("run") == parent.id and parent is not fork:
            return _edited(found, parent, told, side)
    return found


def completed(fork: RunRecord, parent: RunRecord) -> RunRecord:
    """Return a fork with what the run it was made from wrote before the edit: that was not written again."""
    told = fork.forked_from
    if told is None or told.get("run") != parent.id or parent is fork:
        return fork
    step = told.get("step")
    before = [write for write in parent.writes if type(step) is int and write.step is not None and write.step < step]
    return replace(fork, writes=(*before, *fork.writes))


def _edited(found: Divergence, parent: RunRecord, told: Mapping[str, Any], side: int) -> Divergence:
    new, was = _object(told.get("set")), _object(told.get("was"))
    ours = "the second run" if side == 0 else "the first run"
    changes = [f"{path} was edited from {short(was.get(path))} to {short(value)}" for path, value in new.items()]
    more = f" and {len(changes) - NAMED_MAX} more" if len(changes) > NAMED_MAX else ""
    what = told.get("what") or "step"
    text = f"{', '.join(changes[:NAMED_MAX])}{more} at step {told.get('step')}, the {what}"
    row = _row_of(found.rows, parent, told, side)
    if found.same:
        return replace(found, edit=told, sentence=f"In {ours}, {text}, and it did the same. {found.sentence}")
    if found.step is not None and row is not None and found.step < row and found.level == BEHAVIOUR:
        return replace(found, edit=told, sentence=f"{found.sentence} Later, in {ours}, {text}.")
    path = next(iter(new), None)
    first, second = (was.get(path), new.get(path)) if path is not None else (None, None)
    sides = (first, second) if side == 0 else (second, first)
    cause = Cause(
        "edit",
        f"in {ours}, {text}",
        {"run": parent.id, "step": told.get("step"), "set": new, "was": was},
        level=found.level,
        path=path,
        other_path=path,
        first=sides[0],
        second=sides[1],
    )
    return replace(
        found, edit=told, cause=cause, sentence=f"The edit is the cause: in {ours}, {text}. {found.sentence}"
    )


def _row_of(rows: tuple[StepPair, ...], parent: RunRecord, told: Mapping[str, Any], side: int) -> int | None:
    """Return the row of the step that was edited."""
    positions = {part.position for part in parent.steps if part.span == told.get("span")}
    return next((row.step for row in rows if row.positions[side] in positions), None)


def _object(value: object) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


# Pages of rows


class RowPage(NamedTuple):
    """Which rows of a comparison are asked for."""

    skip: int | None
    """How many rows to leave out, the first ones; none where the page with the row at which they part is meant."""
    limit: int | None
    """How many rows at most; none for all that are left."""
    differing: bool
    """Whether only rows that differ are listed, and counted by `skip`."""


def page_of(found: Divergence, page: RowPage) -> Divergence:
    """Return a comparison with the rows of a page, and with what was set aside and reordered in these alone."""
    rows = [row for row in found.rows if not (page.differing and row.mark == SAME)]
    skip = page.skip
    if skip is None:
        parting = next((place for place, row in enumerate(rows) if row.step == found.step), 0)
        skip = 0 if page.limit is None else parting - parting % page.limit
    shown_rows = rows[skip : None if page.limit is None else skip + page.limit]
    steps = {row.step for row in shown_rows}
    return replace(
        found,
        rows=tuple(shown_rows),
        skipped=min(skip, len(rows)),
        set_aside=tuple(aside for aside in found.set_aside if aside.step in steps),
        reordered=tuple(step for step in found.reordered if step in steps),
    )

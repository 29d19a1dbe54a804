"""Divergence: two runs side by side, where they part, and why; ending in one plain sentence.

Steps that differ are explained in order. One that was asked the same and was answered otherwise has a cause of its own;
one whose values came from an earlier difference follows from that, and so does one after it whose values nobody
recorded the origin of. Times, durations, ids, notes and judgements take no part, nor does which observation shows a
value that is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.compare import contrast
from woodrat.compare.alignment import ComparedStep, side_by_side, steps_of
from woodrat.compare.cause import KINDS, NO_LINEAGE, Cause, Lineage
from woodrat.compare.contrast import RUNS, Sides, differing, short, without_call_ids
from woodrat.compare.logs import Logs, OneLog, TwoLogs
from woodrat.compare.shift import Shift
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs.account import DONE
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall, Write

__all__ = ["KINDS", "Cause", "Divergence", "StepPair", "compare", "where"]

SAME, DIFFERS, FIRST_ONLY, SECOND_ONLY = "same", "differs", "first", "second"
"""How the two sides of a row compare."""

NAMED_MAX: Final = 3
"""How many decisions a sentence names, and how many causes."""


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


@dataclass(frozen=True, slots=True)
class Divergence(Record):
    """Two runs side by side: where they part, and why."""

    first: str
    """Id of the first run."""
    second: str
    """Id of the second."""
    same: bool
    """Whether nothing differs."""
    step: int | None
    """The row at which they part; none when they are the same or have nothing in common."""
    cause: Cause | None
    """Why they part there; none when they are the same."""
    rows: tuple[StepPair, ...]
    """Both runs, side by side."""
    sentence: str
    """All of it in one sentence."""


def compare(
    a: RunRecord, b: RunRecord, lineage: Lineage = NO_LINEAGE, other: Lineage | None = None, sides: Sides = RUNS
) -> Divergence:
    """Return where two runs part and why; `lineage` tells who said what they read.

    `other` is the lineage of the second run where it is of another ledger. `sides` is what sentences call the two. The
    cost grows with the steps of the two runs, not with the log.
    """
    steps = side_by_side(steps_of(a), steps_of(b))
    logs: Logs = OneLog(lineage) if other is None else TwoLogs(lineage, other)
    return _Comparison(a, b, logs, steps, sides).divergence()


_VERBS: Final = {"read": "read it", "tool": "called it", "model": "asked it", "decision": "made it"}
_SIDES: Final = ("first", "second")


class _Comparison:
    """Two runs being compared."""

    def __init__(
        self,
        a: RunRecord,
        b: RunRecord,
        logs: Logs,
        steps: Sequence[tuple[ComparedStep | None, ComparedStep | None]],
        sides: Sides,
    ) -> None:
        self.a, self.b, self.steps, self.sides = a, b, steps, sides
        self.both, self.pair = sides.both, sides.pair
        named = {a.id: sides.first, b.id: sides.second} if sides is RUNS and a.id != b.id else {}
        self.shift = Shift(logs, named)
        self.causes: dict[int, Cause] = {}
        self.follows: dict[int, int] = {}
        self.fields: dict[tuple[str, str], int] = {}
        """Rows of reads that differ, by entity and field."""
        self.spans: dict[tuple[int, str], int] = {}
        """Rows of calls that differ, by side and span."""
        self.written: dict[str, int] = {}
        """Rows of writes that differ, by observation."""
        self.searches = tuple({_search(part): part for part in reversed(run.reads) if part.within} for run in (a, b))
        """What each run searched for, with the first read of it."""
        self.leaned = self._leaned()
        self.chosen: list[int] = []
        """Rows of decisions that chose otherwise."""

    def _leaned(self) -> set[tuple[str, str]]:
        """Return the fields, with their entities, that decisions which differ looked at."""
        found: set[tuple[str, str]] = set()
        for left, right in self.steps:
            p, q = (None if side is None else side.part for side in (left, right))
            if isinstance(p, Decision) and isinstance(q, Decision):
                for name in contrast.evidence(p, q):
                    for decision in (p, q):
                        origin = contrast.looked_at(decision)[name][1]
                        found.add((str(origin.get("entity")), str(origin.get("field"))))
        return found

    def divergence(self) -> Divergence:
        """Return what came of it."""
        a, b = self.a, self.b
        paired = any(left is not None and right is not None for left, right in self.steps)
        paired = paired or bool({*self.searches[0]} & {*self.searches[1]})
        apart = not paired and all(any(sides[side] is not None for sides in self.steps) for side in (0, 1))
        marks = [_mark(left, right) for left, right in self.steps]
        last = len(self.steps) + 1
        begun, ended = self._start(), self._ended()
        if not apart:
            if begun is not None:
                self.causes[0] = begun
            for number, ((left, right), mark) in enumerate(zip(self.steps, marks, strict=True), 1):
                if mark != SAME:
                    self._explain(number, left, right)
            if ended is not None:
                self._settle(last, self._decisive(), ended)
        rows = [
            self._row(
                0,
                "start",
                "start",
                DIFFERS if begun else SAME,
                (contrast.asked(a), contrast.asked(b)),
                (a.start, b.start),
            )
        ]
        for number, ((left, right), mark) in enumerate(zip(self.steps, marks, strict=True), 1):
            step = left or right
            assert step is not None
            p, q = (None if side is None else side.part for side in (left, right))
            sides = (None if p is None else contrast.done(p, q), None if q is None else contrast.done(q, p))
            places = (None if p is None else p.position, None if q is None else q.position)
            rows.append(self._row(number, step.kind, step.label, mark, sides, places))
        mark = DIFFERS if ended else SAME
        rows.append(self._row(last, "answer", "answer", mark, (contrast.ending(a), contrast.ending(b)), (a.end, b.end)))
        if apart:
            text = "no step of one has the kind and the name of a step of the other"
            asked = ", though they were asked the same" if a.query is not None and a.query == b.query else ""
            sentence = f"They have nothing in common: {text}{asked}."
            return Divergence(a.id, b.id, False, None, Cause("nothing_in_common", text, {}), tuple(rows), sentence)
        step_number = min(self.causes, default=None)
        cause = None if step_number is None else self.causes[step_number]
        return Divergence(a.id, b.id, cause is None, step_number, cause, tuple(rows), self._sentence(rows))

    def _row(
        self,
        number: int,
        kind: str,
        label: str,
        mark: str,
        sides: tuple[str | None, str | None],
        places: tuple[int | None, int | None],
    ) -> StepPair:
        cause, follows = self.causes.get(number), self.follows.get(number)
        return StepPair(number, kind, label, mark, *sides, places, cause, follows)

    # Causes

    def _settle(self, number: int, root: int | None, cause: Cause) -> None:
        """Note that a row follows from an earlier one, or else has a cause of its own."""
        if root is None:
            self.causes[number] = cause
        else:
            self.follows[number] = root

    def _earliest(self) -> int | None:
        """Return where the runs parted so far: what comes after and does not say where it came from follows."""
        return min(self.causes, default=None)

    def _decisive(self) -> int | None:
        """Return what later steps follow from: the cause of the last choice that differs, or else the first of all."""
        if self.chosen:
            return self.follows.get(self.chosen[-1], self.chosen[-1])
        return self._earliest()

    def _unexplained(self, kind: str, text: str, details: Mapping[str, Any]) -> Cause:
        """Return the cause of what nothing read, given or returned explains: other code, or other versions in force."""
        a, b = self.a, self.b
        if a.code is not None and b.code is not None and a.code != b.code:
            text = f"{text}, and their code differs: {self.pair(a.code, b.code)}"
            return Cause("code", text, {**details, "code": [a.code, b.code]})
        versions: list[dict[str, Any]] = [
            {str(used.get("entity")): used.get("version") for used in run.in_force} for run in (a, b)
        ]
        for name in differing(versions[0], versions[1]):
            which = self.both(*(f"version {short(found[name])}" if name in found else "absent" for found in versions))
            return Cause("in_force", f"{text}, and {name} was {which}", {**details, "inForce": name})
        return Cause(kind, text, details)

    def _start(self) -> Cause | None:
        a, b = self.a, self.b
        names = differing(a.inputs, b.inputs)
        if names:
            one, other = (
                short(run.inputs[names[0]]) if names[0] in run.inputs else "not given" for run in (self.a, self.b)
            )
            text = f"the input {names[0]} was {self.both(one, other)}{contrast.more(len(names) - 1, 'input')}"
            given = {"name": names[0], "first": a.inputs.get(names[0]), "second": b.inputs.get(names[0])}
            return Cause("input", text, given)
        for what, first, second in (("was asked", a.query, b.query), ("was about", a.subject, b.subject)):
            if first != second:
                one, other = ("nothing" if found is None else short(found) for found in (first, second))
                text = f"{self.sides.first} {what} {one} and {self.sides.again} {other}"
                return Cause("input", text, {"first": first, "second": second})
        return None

    def _ended(self) -> Cause | None:
        a, b = self.a, self.b
        if a.status == b.status and contrast.same_all(((a.answer, b.answer), (a.error, b.error))):
            return None
        what = "it was" if a.status == b.status else "the end was"
        text = f"{what} {self.both(contrast.ending(a), contrast.ending(b))}, and nothing recorded before it differs"
        return self._unexplained("unrecorded", text, {"first": a.answer, "second": b.answer})

    def _explain(self, number: int, left: ComparedStep | None, right: ComparedStep | None) -> None:
        if left is None or right is None:
            root = self._decisive()
            if root is None:
                self.causes[number] = self._alone(number, left, right)
            else:
                self.follows[number] = root
            self._remember(number, left, right)
            return
        p, q = left.part, right.part
        if isinstance(p, Read) and isinstance(q, Read):
            self._settle(number, *self._read(p, q))
        elif isinstance(p, ToolCall) and isinstance(q, ToolCall):
            self._settle(number, *self._called(p, q))
        elif isinstance(p, ModelCall) and isinstance(q, ModelCall):
            self._settle(number, *self._asked(p, q))
        elif isinstance(p, Decision) and isinstance(q, Decision):
            self._settle(number, *self._decided(p, q))
            if contrast.chose_otherwise(p, q):
                self.chosen.append(number)
        elif isinstance(p, Write) and isinstance(q, Write):
            names = differing(p.fields, q.fields)
            said = self.both(
                contrast.values({n: p.fields.get(n) for n in names}),
                contrast.values({n: q.fields.get(n) for n in names}),
            )
            text = f"it said {said}, and nothing recorded before it differs"
            self._settle(number, self._decisive(), self._unexplained("unrecorded", text, {"fields": names}))
        self._remember(number, left, right)

    def _remember(self, number: int, left: ComparedStep | None, right: ComparedStep | None) -> None:
        """Note what a row that differs gave to later steps."""
        sides = [(which, side.part) for which, side in enumerate((left, right)) if side is not None]
        reads = [part for _, part in sides if isinstance(part, Read)]
        names = contrast.shown_otherwise(*reads) if len(reads) == 2 else [n for r in reads for n in r.fields]
        for read in reads:
            self.fields.update({(read.entity or "", name): number for name in names})
        for which, part in sides:
            if isinstance(part, Write):
                self.written[part.observation] = number
            elif isinstance(part, ToolCall | ModelCall):
                self.spans[which, part.span] = number

    def _root(self, number: int) -> int:
        return self.follows.get(number, number)

    def _alone(self, number: int, left: ComparedStep | None, right: ComparedStep | None) -> Cause:
        """Return why only one run took a step."""
        which = 0 if left is not None else 1
        step, lacking = left or right, 1 - which
        assert step is not None
        only = self.sides.name(which)
        if isinstance(step.part, Read) and (found := self._found(step.part, which)) is not None:
            return found
        stopped = (self.a, self.b)[lacking]
        rest = [both_sides[lacking] for both_sides in self.steps[number:]]
        if stopped.status != DONE and not any(rest):
            text = f"{self.sides.name(lacking)} stopped before it ({contrast.ending(stopped)})"
            return Cause("step", text, {"only": _SIDES[which]})
        following = rest[0] if rest else None
        if following is not None and self.steps[number][which] is None:
            names = (step.label, following.label) if lacking else (following.label, step.label)
            text = f"{self.sides.first} went on with the {names[0]} and {self.sides.again} with the {names[1]}"
        elif any(
            sides[which] is None and beside.asked == step.asked for sides in self.steps if (beside := sides[lacking])
        ):
            text = f"both {_VERBS.get(step.kind, 'said it')}, {only} earlier"
        else:
            text = f"only {only} {_VERBS.get(step.kind, 'said it')}"
        return self._unexplained("step", text, {"only": _SIDES[which]})

    def _found(self, read: Read, which: int) -> Cause | None:
        """Return why a search found an entity in one run alone, where both asked it; else none."""
        other = self.searches[1 - which].get(_search(read))
        if other is None or read.within is None:
            return None
        entity, text = read.entity, f"only {self.sides.name(which)} found it"
        if entity is None:
            entity, text = other.entity or "", f"only {self.sides.name(which)} found nothing"
        said = Cause("state", text, {"entity": entity, "only": _SIDES[which]})
        p, q = (other, read) if which else (read, other)
        return self.shift.of_search(said, entity, p, q)

    def _called(self, p: ToolCall, q: ToolCall) -> tuple[int | None, Cause]:
        if form.same(p.args, q.args):
            text = f"called with the same arguments it {contrast.came_apart(p, q, 'returned', self.sides)}"
            return None, Cause("tool", text, {"tool": p.name, "first": p.result, "second": q.result})
        text = f"it was given {contrast.apart(p.args, q.args, self.sides)}, and nothing recorded before it differs"
        cause = self._unexplained("unrecorded", text, {"tool": p.name, "first": p.args, "second": q.args})
        return self._decisive(), cause

    def _asked(self, p: ModelCall, q: ModelCall) -> tuple[int | None, Cause]:
        if p.model != q.model:
            text = f"the model was {self.pair(p.model, q.model)}"
            return None, Cause("model", text, {"first": p.model, "second": q.model})
        names = differing(p.parameters, q.parameters)
        if names:
            one, other = p.parameters.get(names[0]), q.parameters.get(names[0])
            more = contrast.more(len(names) - 1, "parameter")
            text = f"the parameter {names[0]} was {self.pair(one, other)}{more}"
            return None, Cause("parameters", text, {"parameter": names[0], "first": one, "second": other})
        if not contrast.same_request(p, q):
            text = "the request differs, and nothing recorded before it does"
            return self._earliest(), self._prompt(text, p, q)
        if p.request is None and p.messages is None:
            text = f"it {contrast.came_apart(p, q, 'answered', self.sides)}, and what it was asked is not recorded"
            return self._earliest(), Cause("output", text, {"first": p.response, "second": q.response})
        text = f"asked the same it {contrast.came_apart(p, q, 'answered', self.sides)}"
        return None, Cause("output", text, {"request": p.request, "first": p.response, "second": q.response})

    def _prompt(self, text: str, p: ModelCall, q: ModelCall) -> Cause:
        one, other = p.messages, q.messages
        if isinstance(one, list) and isinstance(other, list):
            for number, (x, y) in enumerate(zip(one, other, strict=False), 1):
                if not form.same(without_call_ids(x), without_call_ids(y)):
                    told = (contrast.message(x, y), contrast.message(y, x))
                    text = f"message {number} of the request was {self.both(*told)}"
                    break
            else:
                text = f"the request had {self.both(f'{len(one)} messages', f'{len(other)}')}"
        found = self._unexplained("prompt", text, {"first": p.request, "second": q.request})
        return Cause("prompt", found.text, found.details)

    def _decided(self, p: Decision, q: Decision) -> tuple[int | None, Cause]:
        rule = contrast.rule_change(p, q, self.sides)
        if rule is not None:
            return None, Cause("rule", rule[0], {"stage": p.stage, **rule[1]})
        names = contrast.evidence(p, q)
        one, other = contrast.looked_at(p), contrast.looked_at(q)
        for name in names:
            for which, found in enumerate((one, other)):
                parent = self._parent(which, found[name][1])
                if parent is not None:
                    return self._root(parent), Cause("unrecorded", "", {})
        if names:
            first, second = one[names[0]][0], other[names[0]][0]
            text = f"{names[0]} was {self.pair(first, second)}, and nothing recorded says where from"
            if first == second:
                text = f"{names[0]} is hidden, and what it chose was {self.pair(p.chosen, q.chosen)}"
            details = {"stage": p.stage, "key": names[0], "first": first, "second": second}
            return self._earliest(), self._unexplained("unrecorded", text, details)
        text = f"on the same evidence it chose {self.pair(p.chosen, q.chosen)}"
        cause = self._unexplained("rule", text, {"stage": p.stage, "first": p.chosen, "second": q.chosen})
        return None, cause

    def _parent(self, which: int, origin: Mapping[str, Any]) -> int | None:
        """Return the row that differs from which a value came."""
        match origin.get("kind"):
            case "read":
                return self.fields.get((str(origin.get("entity")), str(origin.get("field"))))
            case "tool" | "model":
                return self.spans.get((which, str(origin.get("span"))))
            case "input":
                name = origin.get("name")
                given = (
                    [{name: run.inputs.get(name)} for run in (self.a, self.b)] if isinstance(name, str) else [{}, {}]
                )
                return 0 if 0 in self.causes and differing(given[0], given[1]) else None
        return None

    # State

    def _read(self, p: Read, q: Read) -> tuple[int | None, Cause]:
        entity = p.entity or ""
        names = contrast.shown_otherwise(p, q)
        names.sort(key=lambda name: ((entity, name) not in self.leaned, name))
        if not names:
            known = self.both(*("known" if read.found else "not known" for read in (p, q)))
            return None, self.shift.of_entity(Cause("state", f"{entity} was {known}", {"entity": entity}), None, p, q)
        name = names[0]
        shown = [contrast.shown(read, name) for read in (p, q)]
        for id, _ in (item for item in shown if item is not None):
            if id in self.written:
                return self._root(self.written[id]), Cause("state", "", {})
        one, other = (
            short(item[1]) if item else "not there" if read.found else "not known"
            for item, read in zip(shown, (p, q), strict=True)
        )
        values = [None if item is None else item[1] for item in shown]
        found = {"entity": entity, "field": name, "first": values[0], "second": values[1]}
        cause = Cause("state", f"{name} was {self.both(one, other)}", found)
        return None, self.shift.of_field(cause, name, p, q, shown, len(names) - 1)

    # The sentence

    def _sentence(self, rows: Sequence[StepPair]) -> str:
        if not self.causes:
            return self._alike()
        roots = sorted(self.causes)
        said = [f"They parted at {where(rows[roots[0]])}: {self.causes[roots[0]].text}"]
        said += self._followers(roots[0], rows)
        telling = [root for root in roots[1:] if root in self.chosen or self._followers(root, rows)]
        for root in telling[: NAMED_MAX - 1]:
            said.append(f"apart from that, at {where(rows[root])}, {self.causes[root].text}")
            said += self._followers(root, rows)
        rest = len(roots) - 1 - len(telling[: NAMED_MAX - 1])
        if rest:
            said.append("one more step differs by itself" if rest == 1 else f"{rest} more steps differ by themselves")
        if rows[-1].mark == SAME:
            said.append("the answer is the same")
        return "; ".join(said) + "."

    def _followers(self, root: int, rows: Sequence[StepPair]) -> list[str]:
        """Return the clause that names what follows from a row: decisions and the answer."""
        decided = [
            rows[n].label.removeprefix("decision ") for n in self.chosen if n != root and self.follows.get(n) == root
        ]
        decided = list(dict.fromkeys(decided))
        if len(decided) > NAMED_MAX:
            decided = [*decided[:NAMED_MAX], f"{len(decided) - NAMED_MAX} more"]
        named = [f"the decision{'s' if len(decided) > 1 else ''} {contrast.listed(decided)}"] if decided else []
        if self.follows.get(len(rows) - 1) == root:
            named.append("the answer")
        many = len(named) > 1 or len(decided) > 1
        return [f"{contrast.listed(named)} follow{'' if many else 's'} from it"] if named else []

    def _alike(self) -> str:
        a, b, count = self.a, self.b, len(self.steps)
        if a.id == b.id:
            return "They are one and the same run."
        steps = "without a step" if not count else "in their one step" if count == 1 else f"in all {count} steps"
        though = ""
        if a.code is not None and b.code is not None and a.code != b.code:
            though = f", though their code differs: {self.pair(a.code, b.code)}"
        silent = sum(call.response is None and not call.errored for call in (*a.models, *b.models))
        if silent:
            though += f"; of {'one model call' if silent == 1 else f'{silent} model calls'} no answer is recorded"
        return f"They are the same {steps} and in the answer{though}."


def _mark(left: ComparedStep | None, right: ComparedStep | None) -> str:
    if left is None or right is None:
        return SECOND_ONLY if left is None else FIRST_ONLY
    return SAME if contrast.same_step(left.part, right.part) else DIFFERS


def _search(read: Read) -> tuple[str, bytes]:
    return read.within or "", form.serialise(read.args)


def where(row: StepPair) -> str:
    """Return what a sentence calls a row."""
    if row.kind == "start":
        return "the start"
    return "the answer" if row.kind == "answer" else f"step {row.step}, the {row.label}"

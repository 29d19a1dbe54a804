"""Difference level: at which level the two sides of a row differ, and what is set aside on the way.

Wording is what was said in prose, and how models were asked. Behaviour is what was done: tools called, arguments,
results, reads, decisions, writes, handovers, and what the run was given. Outcome is how it ended: answer, status and
verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.alignment import ComparedStep, Row
from woodrat.compare.cause import BEHAVIOUR, OUTCOME, WORDING
from woodrat.compare.contrast import NO_DIFFERENCES, Differences, classify
from woodrat.compare.model_calls import (
    Matters,
    action_differences,
    actions_of,
    failure_differs,
    request_differences,
    tool_results_differ,
)
from woodrat.compare.noise import reworded
from woodrat.compare.usage import START, Usage
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs import messages
from woodrat.runs.messages import without_call_ids
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall, Write

_ASKS_A_PERSON: Final = re.compile(
    r"(?i)(?:ask|prompt|message|reply|respond|talk)_?(?:to_?)?(?:the_?)?(?:user|human|customer)|(?:human|user)_?input"
)
"""Names of tools whose results are the words of a person."""

SMALL_NUMBER_MAX: Final = 10_000
"""Below this a number, such as a duration, may turn up again by chance."""


@dataclass(frozen=True, slots=True)
class SetAside(Record):
    """A value that differs because every run makes it up anew, and that neither run used."""

    step: int
    """The row it stands in; 0 is the start."""
    path: str
    """Where it stands: `args`, `result`, `messages`, `inputs` or `fields`, and the path within."""
    kind: str
    """`random id`, `time` or `duration`."""
    first: Json
    """What the first run has there."""
    second: Json
    """What the second run has there."""


class Levels:
    """At which level each row of two runs differs; row 0 is the start, and the answer has the last."""

    def __init__(self, a: RunRecord, b: RunRecord, steps: Sequence[Row], usages: tuple[Usage, Usage]) -> None:
        self._a, self._b, self._steps, self._usages = a, b, steps, usages
        self._tools = tuple({call.name for call in run.tool_calls} for run in (a, b))
        self._arguments: dict[int, Differences] = {}
        self._results: dict[int, Differences] = {}
        self._result_differs: set[int] = set()
        self._request_differs: set[int] = set()
        self.only_verdict_differs = False
        """Whether of the end only the verdict differs."""
        self.set_aside: list[SetAside] = []
        """What takes no part, row by row."""
        self.inputs = NO_DIFFERENCES
        """In what the inputs differ."""
        self._levels: list[str | None] = [self._start()]
        self._parted = self._levels[0] is not None
        for number, row in enumerate(steps, 1):
            self._levels.append(self._step(number, *row))
            self._parted = self._parted or self._levels[-1] is not None
        self._levels.append(self._end())

    def of(self, row: int) -> str | None:
        """Return the level at which a row differs; none where it does not."""
        return self._levels[row]

    def arguments(self, row: int) -> Differences:
        """Return in what the arguments of two calls, or the fields of two writes, differ."""
        return self._arguments.get(row, NO_DIFFERENCES)

    def result(self, row: int) -> Differences:
        """Return in what the results of two calls differ; of models what they did, prose left out."""
        return self._results.get(row, NO_DIFFERENCES)

    def result_differs(self, row: int) -> bool:
        """Return whether what came of two calls of a tool differs in behaviour."""
        return row in self._result_differs

    def request_differs(self, row: int) -> bool:
        """Return whether two calls of models were asked something else, or in other words."""
        return row in self._request_differs

    def passes_value(
        self, side: int, pair: tuple[ComparedStep, ComparedStep], other: tuple[ComparedStep, ComparedStep]
    ) -> bool:
        """Return whether one of two steps was handed what the other was the first to return; `side` has the first."""
        for usage, one, two in zip((self._usages[side], self._usages[1 - side]), pair, other, strict=True):
            earlier, later = sorted((one, two), key=lambda step: step.place)
            if usage.takes_from(earlier.place, later.part):
                return True
        return False

    def _take(self, row: int, where: str, found: Differences) -> Differences:
        for part, kind in found.set_aside:
            path = part.path or ""
            full = f"{where}{path}" if path.startswith("[") or not path else f"{where}.{path}"
            self.set_aside.append(SetAside(row, full, kind, part.first, part.second))
        return found

    def _matters(self, places: tuple[int, int], *, handed: bool) -> Matters:
        """Return what tells of two volatile values whether a run used either; one handed on came from somewhere."""
        one, two = self._usages

        def matters(first: Json, second: Json) -> bool:
            used = (
                usage.used_after(place, value) or (handed and usage.known_before(place, value))
                for usage, place, value in ((one, places[0], first), (two, places[1], second))
            )
            # A small number is met again by chance; that both runs do so is none.
            return all(used) if _is_small(first) or _is_small(second) else any(used)

        return matters

    # Rows

    def _start(self) -> str | None:
        a, b = self._a, self._b
        if contrast.differing(a.inputs, b.inputs):
            found = classify(dict(a.inputs), dict(b.inputs), self._matters((START, START), handed=False))
            self.inputs = self._take(0, "inputs", found)
        if self.inputs.behaviour or a.subject != b.subject:
            return BEHAVIOUR
        return WORDING if self.inputs.wording or a.query != b.query else None

    def _step(self, number: int, one: ComparedStep | None, two: ComparedStep | None) -> str | None:
        if one is None or two is None:
            step = one or two
            assert step is not None
            if not isinstance(step.part, ModelCall):
                return BEHAVIOUR
            side = 0 if one is not None else 1
            asks = bool(messages.calls(step.part.response)) and actions_of(step.part, self._tools[side]) is not None
            return BEHAVIOUR if asks else WORDING
        p, q, places = one.part, two.part, (one.place, two.place)
        if isinstance(p, Read) and isinstance(q, Read):
            return None if contrast.same_step(p, q) else BEHAVIOUR
        if isinstance(p, ToolCall) and isinstance(q, ToolCall):
            return self._tool(number, p, q, places, one.asked == two.asked)
        if isinstance(p, ModelCall) and isinstance(q, ModelCall):
            return self._model(number, p, q, places)
        if isinstance(p, Decision) and isinstance(q, Decision):
            return self._decision(p, q)
        assert isinstance(p, Write)
        assert isinstance(q, Write)
        if one.asked == two.asked:
            return None
        found = classify(_stated(p), _stated(q), self._matters(places, handed=True))
        self._take(number, "fields", found)
        self._arguments[number] = found
        return BEHAVIOUR if found.behaviour else WORDING if found.wording else None

    def _tool(self, number: int, p: ToolCall, q: ToolCall, places: tuple[int, int], same_args: bool) -> str | None:
        if not same_args:
            found = classify(p.args, q.args, self._matters(places, handed=True))
            self._arguments[number] = self._take(number, "args", found)
        if p.begun != q.begun or p.errored != q.errored:
            self._result_differs.add(number)
            return BEHAVIOUR
        one, two = (call.error if call.errored else call.result for call in (p, q))
        if one != two or not form.same(one, two):
            prose = _ASKS_A_PERSON.search(p.name) is not None
            found = classify(one, two, self._matters(places, handed=False), prose=prose)
            self._results[number] = self._take(number, "error" if p.errored else "result", found)
            if found.behaviour:
                self._result_differs.add(number)
        both = (self.arguments(number), self.result(number))
        if any(found.behaviour for found in both):
            return BEHAVIOUR
        return WORDING if any(found.wording for found in both) else None

    def _model(self, number: int, p: ModelCall, q: ModelCall, places: tuple[int, int]) -> str | None:
        matters = self._matters(places, handed=False)
        otherwise, request = request_differences(p, q, matters, parted=self._parted)
        if otherwise and self._follows_set_aside(p, q, request):
            otherwise = False
        handed = False
        if otherwise:
            self._request_differs.add(number)
            handed = not any(self._tools) and tool_results_differ(p, q)
        else:
            self._take(number, "messages", request)
        failed = failure_differs(p, q)
        if otherwise:
            answer = self._take(number, "response", action_differences(p, q, (self._tools[0], self._tools[1]), matters))
            self._results[number] = answer
            return BEHAVIOUR if answer.behaviour or failed or handed else WORDING
        answers = (without_call_ids(p.response), without_call_ids(q.response))
        if answers[0] == answers[1] and form.same(*answers) and not failed:
            return None
        answer = action_differences(p, q, (self._tools[0], self._tools[1]), matters)
        self._results[number] = self._take(number, "response", answer)
        if answer.behaviour or failed:
            return BEHAVIOUR
        prose = classify(*answers, matters)
        if not prose.behaviour and not prose.wording:
            self._take(number, "response", prose)
            return None
        return WORDING

    def _follows_set_aside(self, p: ModelCall, q: ModelCall, request: Differences) -> bool:
        """Return whether two digests of requests differ only because of what was set aside before."""
        if p.model != q.model or contrast.differing(p.parameters, q.parameters) or p.messages is None:
            return False
        if not self.set_aside or self._parted:
            return False
        return not request.behaviour and not request.wording

    def _decision(self, p: Decision, q: Decision) -> str | None:
        if contrast.same_step(p, q):
            return None
        if contrast.choice_differs(p, q) or contrast.rule_change(p, q) is not None:
            return BEHAVIOUR
        one, two = contrast.facts_looked_at(p), contrast.facts_looked_at(q)
        prose = (reworded(one[name][0], two[name][0], name) for name in contrast.evidence(p, q))
        return WORDING if all(prose) else BEHAVIOUR

    def _end(self) -> str | None:
        a, b = self._a, self._b
        judged = a.verdict is not None and b.verdict is not None and a.verdict != b.verdict
        if a.status == b.status and contrast.same_all(((a.answer, b.answer), (a.error, b.error))):
            self.only_verdict_differs = judged
            return OUTCOME if judged else None
        last = len(self._steps) + 1
        if judged or a.status != b.status or not form.same(a.error, b.error):
            return OUTCOME
        found = classify(a.answer, b.answer, self._matters((len(self._steps), len(self._steps)), handed=False))
        if not found.behaviour and not found.wording:
            self._take(last, "answer", found)
            return None
        # The last words of a model to the user are prose; anything else is what the run was for.
        spoken = all(_spoken(run) for run in (a, b))
        return WORDING if spoken else OUTCOME


def _is_small(value: Json) -> bool:
    return isinstance(value, int) and abs(value) < SMALL_NUMBER_MAX


def _stated(write: Write) -> Json:
    """Return all that a write says."""
    return {**write.fields, **({"remove": dict(write.remove)} if write.remove else {})}


def _spoken(run: RunRecord) -> bool:
    """Return whether the answer of a run is what a model said last, in words and not as data or in a word."""
    if not run.models or not isinstance(run.answer, str) or len(run.answer.split()) < 3:
        return False
    said = messages.text_in(run.models[-1].response)
    return said is not None and said.strip() == run.answer.strip()

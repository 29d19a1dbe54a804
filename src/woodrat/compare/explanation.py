"""Explanation: why the rows of two runs side by side differ, each by a cause of its own or by an earlier row.

Steps that differ are explained in order. One that was asked the same and was answered otherwise has a cause of its own;
one whose values came from an earlier difference follows from that, and so does one after it whose values nobody
recorded the origin of. A difference in behaviour never follows from one in wording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.alignment import ComparedStep, Row
from woodrat.compare.cause import BEHAVIOUR, OUTCOME, WORDING, Cause, Logs, StateChange
from woodrat.compare.contrast import RUNS, Sides, classify, difference_text, differing, pair_of, short
from woodrat.compare.difference_level import Levels
from woodrat.compare.model_calls import PromptPart, failure_differs, prompt_part
from woodrat.compare.noise import is_prose, is_volatile
from woodrat.compare.usage import Usage, bound_by_effect
from woodrat.compare.value_difference import ADDED, REMOVED, Difference, differences, joined
from woodrat.records import replace
from woodrat.runs import messages
from woodrat.runs.record import RunRecord
from woodrat.runs.run_fields import DONE
from woodrat.runs.steps import Decision, ModelCall, Part, Read, ToolCall, Write

_VERBS: Final = {"read": "read it", "tool": "called it", "model": "asked it", "decision": "made it"}
_SIDES: Final = ("first", "second")
INSTEAD_STEPS_MAX: Final = 8
"""How many rows after a step of one run another tool with the same arguments may stand to be called in its place."""


class Explanation:
    """Why two runs differ, row by row; row 0 is the start, and the answer has the last."""

    def __init__(
        self, a: RunRecord, b: RunRecord, logs: Logs, steps: Sequence[Row], sides: Sides, usages: tuple[Usage, Usage]
    ) -> None:
        self.a, self.b, self.steps, self.sides = a, b, steps, sides
        self.both, self.pair = sides.both, sides.pair
        named = {a.id: sides.first, b.id: sides.second} if sides is RUNS and a.id != b.id else {}
        self.state_change = StateChange(logs, named)
        self.levels = Levels(a, b, steps, usages)
        self.causes: dict[int, Cause] = {}
        """By row why it differs, where that is a cause of its own."""
        self.follows: dict[int, int] = {}
        """By row the one it follows from."""
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

    def explain(self) -> None:
        """Find the cause of every row that differs, in order."""
        last = len(self.steps) + 1
        for number in range(last + 1):
            level = self.levels.of(number)
            if level is None or number in self.causes or number in self.follows:
                continue
            if number == 0:
                self.causes[0] = self._start()
            elif number == last:
                self._settle(last, self._decisive(OUTCOME), self._ended())
            else:
                self._explain(number, level, *self.steps[number - 1])

    @property
    def earlier(self) -> list[tuple[int, str, Any, Any]]:
        """Rows of steps that differ so far."""
        found = []
        for number in sorted({*self.causes, *self.follows}):
            if 0 < number <= len(self.steps):
                left, right = self.steps[number - 1]
                step = left or right
                assert step is not None
                if step.kind != "model":
                    found.append((number, step.label, left and left.part, right and right.part))
        return found

    def _leaned(self) -> set[tuple[str, str]]:
        """Return the fields, with their entities, that decisions which differ looked at."""
        found: set[tuple[str, str]] = set()
        for left, right in self.steps:
            p, q = (None if side is None else side.part for side in (left, right))
            if isinstance(p, Decision) and isinstance(q, Decision):
                for name in contrast.evidence(p, q):
                    for decision in (p, q):
                        origin = contrast.facts_looked_at(decision)[name][1]
                        found.add((str(origin.get("entity")), str(origin.get("field"))))
        return found

    # What follows from what

    def _settle(self, number: int, root: int | None, cause: Cause) -> None:
        """Note that a row follows from an earlier one, or else has a cause of its own."""
        if root is None:
            self.causes[number] = cause
        else:
            self.follows[number] = root

    def _earliest(self, level: str = WORDING) -> int | None:
        """Return where the runs parted so far; for a difference in behaviour only those in behaviour count."""
        behaviour = (number for number, cause in self.causes.items() if cause.level == BEHAVIOUR)
        return min(behaviour, default=None if level == BEHAVIOUR else min(self.causes, default=None))

    def _decisive(self, level: str = BEHAVIOUR) -> int | None:
        """Return what later steps follow from: the cause of the last choice that differs, or else the first of all."""
        if self.chosen:
            return self.follows.get(self.chosen[-1], self.chosen[-1])
        return self._earliest(level)

    def _root(self, number: int) -> int:
        return self.follows.get(number, number)

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

    def _remember(self, number: int, left: ComparedStep | None, right: ComparedStep | None) -> None:
        """Note what a row that differs gave to later steps."""
        sides = [(which, side.part) for which, side in enumerate((left, right)) if side is not None]
        reads = [part for _, part in sides if isinstance(part, Read)]
        names = contrast.changed_fields(*reads) if len(reads) == 2 else [n for r in reads for n in r.fields]
        for read in reads:
            self.fields.update({(read.entity or "", name): number for name in names})
        for which, part in sides:
            if isinstance(part, Write):
                self.written[part.observation] = number
            elif isinstance(part, ToolCall | ModelCall):
                self.spans[which, part.span] = number

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

    def _unprompted(self, number: int, kind: str, text: str, details: Mapping[str, Any]) -> Cause:
        """Return the cause of what a run did and nothing it read, was given or was returned explains.

        Where a model was asked before it, that is the model's choice, or goes back to what the model was asked.
        """
        asked = self._asked_before(number)
        if asked is not None:
            row, p, q = asked
            if not self.levels.request_differs(row):
                text = f"{text}, the model's choice: asked the same (step {row}), it answered otherwise"
                return Cause("output", text, {**details, "chosen_by": p.model or "model", "model_step": row})
            part = prompt_part(p, q, (), self.sides)
            found = {**details, "model_step": row, "prompt": None if part is None else dict(part.details)}
            return self._unexplained("prompt" if part is not None else kind, text, found)
        if not self.causes and kind == "unrecorded":
            text = f"{text}, and nothing recorded before it differs"
        return self._unexplained(kind, text, details)

    def _asked_before(self, number: int) -> tuple[int, ModelCall, ModelCall] | None:
        """Return the calls of a model that stand before a row side by side, where no call of one run alone does."""
        for row in range(number - 1, 0, -1):
            p, q = (None if side is None else side.part for side in self.steps[row - 1])
            if isinstance(p, ModelCall) and isinstance(q, ModelCall):
                return row, p, q
            if isinstance(p, ModelCall) or isinstance(q, ModelCall):
                return None
        return None

    # Start and end

    def _start(self) -> Cause:
        a, b = self.a, self.b
        found = self.levels.inputs
        parts = found.behaviour or (() if a.query != b.query else found.wording)
        if not parts and a.subject == b.subject and a.query == b.query:
            raise AssertionError("the start differs in something")
        level = self.levels.of(0) or WORDING
        if parts:
            part = parts[0]
            name = (part.path or part.other_path or "").split(".")[0].split("[")[0]
            one, other = _given(part)
            more = contrast.more(len({_top(item) for item in parts} - {name}), "input")
            text = f"the input {part.path or part.other_path} was {self.both(one, other)}{more}"
            if part.path is not None and part.other_path is not None and part.path != part.other_path:
                text = f"the input was {difference_text(part, self.sides)}{more}"
            details = {"name": name, "first": a.inputs.get(name), "second": b.inputs.get(name)}
            return _at(part, Cause("input", text, details, level=level))
        what, first, second = "was about", a.subject, b.subject
        if level == WORDING:
            what, first, second = "was asked", a.query, b.query
        one, other = ("nothing" if asked is None else short(asked) for asked in (first, second))
        if first is not None and second is not None:
            one, other = pair_of(first, second)
        text = f"{self.sides.first} {what} {one} and {self.sides.again} {other}"
        return Cause("input", text, {"first": first, "second": second}, level=level, first=first, second=second)

    def _ended(self) -> Cause:
        a, b = self.a, self.b
        last = len(self.steps) + 1
        level = self.levels.of(last) or OUTCOME
        if self.levels.only_verdict_differs:
            text = f"the verdict was {self.pair(a.verdict, b.verdict)}, and nothing recorded before it differs"
            return Cause("unrecorded", text, {"first": a.verdict, "second": b.verdict}, level=level)
        what = "it was" if a.status == b.status else "the end was"
        one, other = contrast.ending(a), contrast.ending(b)
        if a.status == b.status == DONE and isinstance(a.answer, str) and isinstance(b.answer, str):
            one, other = pair_of(a.answer, b.answer)
        text = f"{what} {self.both(one, other)}, and nothing recorded before it differs"
        found = self._unexplained("unrecorded", text, {"first": a.answer, "second": b.answer})
        return replace(found, level=level, first=a.answer, second=b.answer)

    # Steps

    def _explain(self, number: int, level: str, left: ComparedStep | None, right: ComparedStep | None) -> None:
        root: int | None
        if left is None or right is None:
            root = self._decisive(level)
            if root is None:
                self.causes[number] = replace(self._alone(number, left, right), level=level)
            else:
                self.follows[number] = root
            self._remember(number, left, right)
            return
        p, q = left.part, right.part
        if isinstance(p, Read) and isinstance(q, Read):
            root, cause = self._read(p, q)
        elif isinstance(p, ToolCall) and isinstance(q, ToolCall):
            inside = self._explain_inside(number, p, q) if form.same(p.args, q.args) else None
            root, cause = self._called(number, p, q)
            root = root if inside is None else inside
        elif isinstance(p, ModelCall) and isinstance(q, ModelCall):
            root, cause = self._asked(number, p, q)
        elif isinstance(p, Decision) and isinstance(q, Decision):
            root, cause = self._decided(number, p, q)
            if contrast.choice_differs(p, q):
                self.chosen.append(number)
        else:
            assert isinstance(p, Write)
            assert isinstance(q, Write)
            root, cause = self._wrote(number, p, q)
        if root is not None and level == BEHAVIOUR and self.levels.of(root) != BEHAVIOUR:
            root = None
        self._settle(number, root, cause if root is not None else replace(cause, level=level))
        self._remember(number, left, right)

    def _explain_inside(self, number: int, p: ToolCall, q: ToolCall) -> int | None:
        """Explain the steps inside two calls that were made alike; return the row that their results follow from."""
        roots: list[int] = []
        spans = ({p.span}, {q.span})
        for row, sides in enumerate(self.steps[number:], number + 1):
            parts = [(which, side.part) for which, side in enumerate(sides) if side is not None]
            inner = [(which, part) for which, part in parts if isinstance(part, Part) and part.under in spans[which]]
            if not inner:
                continue
            for which, part in inner:
                spans[which].add(part.span)
            level = self.levels.of(row)
            if level is None:
                continue
            if row not in self.causes and row not in self.follows:
                self._explain(row, level, *sides)
            if level == BEHAVIOUR:
                roots.append(self._root(row))
        return min(roots, default=None)

    def _alone(self, number: int, left: ComparedStep | None, right: ComparedStep | None) -> Cause:
        """Return why only one run took a step."""
        which = 0 if left is not None else 1
        step, lacking = left or right, 1 - which
        assert step is not None
        only = self.sides.name(which)
        if isinstance(step.part, Read) and (found := self._found(step.part, which)) is not None:
            return found
        stopped = (self.a, self.b)[lacking]
        if stopped.status != DONE and not any(row[lacking] for row in self.steps[number:]):
            text = f"{self.sides.name(lacking)} stopped before it ({contrast.ending(stopped)})"
            return Cause("step", text, {"only": _SIDES[which]})
        # What the other run did at this point, and whether that is something of its own as well.
        following = self._next(number, lacking, step)
        details = {"only": _SIDES[which], **({"args": step.part.args} if isinstance(step.part, ToolCall) else {})}
        passed = self._passed(which, step)
        if passed is not None:
            earlier = self.sides.name(which if passed[0] else lacking)
            text = f"both {_VERBS.get(step.kind, 'said it')}, {earlier} earlier, before the {passed[1]}"
            return self._unprompted(number, "step", text, {**details, "before": passed[1]})
        if following is not None and following[0].name == step.name and isinstance(step.part, ToolCall):
            return self._instead(number, step, following[0], which)
        if following is not None and following[1]:
            names = [_with_args(item) for item in ((step, following[0]) if lacking else (following[0], step))]
            text = f"{self.sides.first} went on with the {names[0]} and {self.sides.again} with the {names[1]}"
            return self._unprompted(number, "step", text, {**details, "instead": following[0].label})
        args = f", with {_args(step)}" if _args(step) else ""
        text = f"only {only} {_VERBS.get(step.kind, 'said it')}{args}"
        return self._unprompted(number, "step", text, details)

    def _passed(self, which: int, step: ComparedStep) -> tuple[bool, str] | None:
        """Return whether the run of a step took it before the other run did, and before what that the other took first.

        Of the steps in between the one that it depends on is named, or that depends on it; none where the other run
        did not take the step, or where both took it at one point.
        """
        lacking = 1 - which
        alone = [found for row in self.steps if row[which] is None and (found := row[lacking]) is not None]
        other = next((found for found in alone if found.key == step.key), None)
        if other is None or step.kind == "model":
            return None
        crossed = [
            (own, theirs)
            for row in self.steps
            if (own := row[which]) is not None and (theirs := row[lacking]) is not None and own.kind != "model"
            if (step.place < own.place) != (other.place < theirs.place)
        ]
        handed = (pair for pair in crossed if self.levels.passes_value(which, (step, other), pair))
        bound = (pair for pair in crossed if bound_by_effect(step.part, pair[0].part))
        named = next((pair for found in (handed, bound, crossed) for pair in found), None)
        return None if named is None else (step.place < named[0].place, named[0].label)

    def _next(self, number: int, side: int, step: ComparedStep) -> tuple[ComparedStep, bool] | None:
        """Return what a side did in place of a step, and whether that is a step of its own.

        That is another tool soon after with the same arguments, or else the next step; of a model a model's.
        """
        for row in self.steps[number : number + INSTEAD_STEPS_MAX]:
            found = row[side]
            if found is not None and row[1 - side] is None and _args(step) and _same_args(found, step):
                return found, True
        for row in self.steps[number:]:
            found = row[side]
            if found is not None and (found.kind == "model") == (step.kind == "model"):
                return found, row[1 - side] is None
            if found is None and row[1 - side] is not None and step.kind == "model":
                return None
        return None

    def _instead(self, number: int, step: ComparedStep, other: ComparedStep, which: int) -> Cause:
        """Return that one tool was called with other arguments, where only one of the two calls has no partner."""
        pair = (other, step) if which else (step, other)
        p, q = (item.part for item in pair)
        assert isinstance(p, ToolCall)
        assert isinstance(q, ToolCall)
        parts = classify(p.args, q.args, lambda _, __: False).behaviour
        details = {"tool": p.name, "first": p.args, "second": q.args, "only": _SIDES[which]}
        if not parts:
            args = f", with {_args(step)}" if _args(step) else ""
            text = f"{self.sides.name(which)} called it once more{args}"
            return self._unprompted(number, "step", text, details)
        if parts[0].kind not in (ADDED, REMOVED):
            what = f"{difference_text(parts[0], self.sides)}{contrast.more(len(parts) - 1, 'part')}"
        else:  # the two calls have little in common: all that they were handed tells more
            what = self.both(*(_args(item) or "nothing" for item in pair))
        text = f"it was called with {what}, which {self.sides.name(which)} did next"
        return _at(parts[0], self._unprompted(number, "step", text, details))

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
        return self.state_change.of_search(said, entity, p, q)

    def _called(self, number: int, p: ToolCall, q: ToolCall) -> tuple[int | None, Cause]:
        args, result = self.levels.arguments(number), self.levels.result(number)
        parts = args.behaviour or (() if self.levels.result_differs(number) else args.wording)
        if parts:
            text = f"it was called with {difference_text(parts[0], self.sides)}{contrast.more(len(parts) - 1, 'part')}"
            details = {"tool": p.name, "first": p.args, "second": q.args}
            if not args.behaviour:
                return self._earliest(), _at(parts[0], Cause("wording", text, details))
            return self._decisive(), _at(parts[0], self._unprompted(number, "unrecorded", text, details))
        same = "called with the same arguments it "
        if p.errored or q.errored or p.begun or q.begun:
            text = f"{same}{self.both(contrast.came(p, 'returned'), contrast.came(q, 'returned'))}"
            details = {"tool": p.name, "first": p.error or p.result, "second": q.error or q.result}
            cause = Cause("tool", text, details)
            return None, replace(cause, first=details["first"], second=details["second"], path="", other_path="")
        parts = result.behaviour or result.wording
        text = f"{same}returned {difference_text(parts[0], self.sides)}{contrast.more(len(parts) - 1, 'part')}"
        return None, _at(parts[0], Cause("tool", text, {"tool": p.name, "first": p.result, "second": q.result}))

    def _asked(self, number: int, p: ModelCall, q: ModelCall) -> tuple[int | None, Cause]:
        if p.model != q.model:
            text = f"the model was {self.pair(p.model, q.model)}"
            return None, Cause("model", text, {"first": p.model, "second": q.model}, first=p.model, second=q.model)
        names = differing(p.parameters, q.parameters)
        if names:
            one, other = p.parameters.get(names[0]), q.parameters.get(names[0])
            more = contrast.more(len(names) - 1, "parameter")
            text = f"the parameter {names[0]} was {self.pair(one, other)}{more}"
            found = Cause("parameters", text, {"parameter": names[0], "first": one, "second": other})
            return None, replace(found, path=names[0], other_path=names[0], first=one, second=other)
        earliest = self._earliest()
        if earliest is not None and self.levels.of(number) == WORDING and self.levels.request_differs(number):
            return earliest, Cause("prompt", "", {})
        answered = self._answered(number, p, q)
        details: dict[str, Any] = {"request": p.request, "first": p.response, "second": q.response}
        if self.levels.request_differs(number):
            part = prompt_part(p, q, self.earlier, self.sides)
            answers = self.levels.result(number).behaviour or failure_differs(p, q)
            if self.levels.of(number) == BEHAVIOUR and answers:
                details["prompt"] = None if part is None else dict(part.details)
                return self._decisive(), replace(answered, kind="prompt", text=f"it {answered.text}", details=details)
            return self._earliest(self.levels.of(number) or WORDING), self._prompt(part, p, q)
        if p.request is None and p.messages is None:
            text = f"it {answered.text}, and what it was asked is not recorded"
            return self._earliest(self.levels.of(number) or WORDING), replace(answered, text=text, details=details)
        return None, replace(answered, text=f"asked the same it {answered.text}", details=details)

    def _answered(self, number: int, p: ModelCall, q: ModelCall) -> Cause:
        """Return what two models answered, as the rest of a clause: the data that differs, or else the words."""
        parts = self.levels.result(number).behaviour
        if parts:
            more = contrast.more(len(parts) - 1, "part")
            return _at(parts[0], Cause("output", f"answered {difference_text(parts[0], self.sides)}{more}", {}))
        if p.errored or q.errored:
            return Cause("output", contrast.results_text(p, q, "answered", self.sides), {})
        one, other = (messages.gist(call.response) for call in (p, q))
        text = contrast.results_text(p, q, "answered", self.sides)
        if isinstance(one, str) and isinstance(other, str) and one != other:
            text = f"answered {self.both(*pair_of(one, other))}"
        return Cause("output", text, {}, first=p.response, second=q.response)

    def _prompt(self, part: PromptPart | None, p: ModelCall, q: ModelCall) -> Cause:
        text = "the request differs, and nothing recorded before it does" if part is None else part.text
        details = {"first": p.request, "second": q.request, **({} if part is None else {"prompt": dict(part.details)})}
        found = self._unexplained("prompt", text, details)
        sides = (None, None) if part is None else (part.details["first"], part.details["second"])
        return Cause("prompt", found.text, found.details, first=sides[0], second=sides[1])

    def _decided(self, number: int, p: Decision, q: Decision) -> tuple[int | None, Cause]:
        rule = contrast.rule_change(p, q, self.sides)
        if rule is not None:
            first, second = rule[1].get("first"), rule[1].get("second")
            return None, Cause("rule", rule[0], {"stage": p.stage, **rule[1]}, first=first, second=second)
        names = contrast.evidence(p, q)
        one, other = contrast.facts_looked_at(p), contrast.facts_looked_at(q)
        for name in names:
            for which, found in enumerate((one, other)):
                parent = self._parent(which, found[name][1])
                if parent is not None:
                    return self._root(parent), Cause("unrecorded", "", {})
        for which, made in enumerate((p, q)):
            if made.chosen_by is not None:
                parent = self._parent(which, {"kind": "model", "span": made.chosen_by.get("span")})
                if parent is not None:
                    return self._root(parent), self._model_chose(p, q)
        if names:
            first, second = one[names[0]][0], other[names[0]][0]
            parts = differences(first, second)
            details = {"stage": p.stage, "key": names[0], "first": first, "second": second}
            if not parts:
                text = f"{names[0]} is hidden, and what it chose was {self.pair(p.chosen, q.chosen)}"
                return self._earliest(BEHAVIOUR), self._unexplained("unrecorded", text, details)
            was = _was(names[0], parts[0], self.sides)
            text = f"{was}, and nothing recorded says where from"
            return self._earliest(BEHAVIOUR), _at(parts[0], self._unexplained("unrecorded", text, details), names[0])
        text = f"on the same evidence it chose {self.both(*pair_of(p.chosen, q.chosen))}"
        if form.same(p.chosen, q.chosen):
            text = f"on the same evidence it chose {short(p.chosen)} {self.both(*(_by(made) for made in (p, q)))}"
        details = {"stage": p.stage, "first": p.chosen, "second": q.chosen}
        cause = (
            self._unprompted(number, "rule", text, details) if not p.rules else self._unexplained("rule", text, details)
        )
        return None, replace(cause, path="chosen", other_path="chosen", first=p.chosen, second=q.chosen)

    def _model_chose(self, p: Decision, q: Decision) -> Cause:
        """Return the cause of a choice that a model made after it had answered otherwise, in whatever words."""
        chose = self.both(*pair_of(p.chosen, q.chosen))
        text = f"it was chosen {_by(p)}, which answered otherwise: {chose}"
        details = {"stage": p.stage, "first": p.chosen, "second": q.chosen}
        return Cause("output", text, details, path="chosen", other_path="chosen", first=p.chosen, second=q.chosen)

    def _wrote(self, number: int, p: Write, q: Write) -> tuple[int | None, Cause]:
        found = self.levels.arguments(number)
        parts = found.behaviour or found.wording
        details = {"fields": sorted({_top(part) for part in parts}), "first": dict(p.fields), "second": dict(q.fields)}
        text = f"it said {difference_text(parts[0], self.sides)}{contrast.more(len(parts) - 1, 'part')}"
        if not found.behaviour:
            return self._earliest(), _at(parts[0], Cause("wording", text, details))
        return self._decisive(), _at(parts[0], self._unprompted(number, "unrecorded", text, details))

    def _read(self, p: Read, q: Read) -> tuple[int | None, Cause]:
        entity = p.entity or ""
        names = contrast.changed_fields(p, q)
        names.sort(key=lambda name: ((entity, name) not in self.leaned, name))
        if not names:
            known = self.both(*("known" if read.found else "not known" for read in (p, q)))
            return None, self.state_change.of_entity(
                Cause("state", f"{entity} was {known}", {"entity": entity}), None, p, q
            )
        name = names[0]
        shown = [contrast.shown(read, name) for read in (p, q)]
        for id, _ in (item for item in shown if item is not None):
            if id in self.written:
                return self._root(self.written[id]), Cause("state", "", {})
        values = [None if item is None else item[1] for item in shown]
        details = {"entity": entity, "field": name, "first": values[0], "second": values[1]}
        parts = () if None in shown else differences(values[0], values[1])
        if parts:
            text = _was(name, parts[0], self.sides)
        else:
            one, other = (
                short(item[1]) if item else "not there" if read.found else "not known"
                for item, read in zip(shown, (p, q), strict=True)
            )
            text = f"{name} was {self.both(one, other)}"
        part = parts[0] if parts and (parts[0].path or parts[0].other_path or _is_long(values)) else None
        cause = self.state_change.of_field(Cause("state", text, details), name, p, q, shown, len(names) - 1, part)
        if parts:
            return None, _at(parts[0], cause, name)
        return None, replace(cause, path=name, other_path=name, first=values[0], second=values[1])


def _at(part: Difference, cause: Cause, within: str = "") -> Cause:
    """Return a cause with the part that it speaks of."""
    paths = (None if path is None else under(within, path) for path in (part.path, part.other_path))
    path, other = paths
    return replace(cause, change=part.kind, path=path, other_path=other, first=part.first, second=part.second)


def under(name: str, path: str) -> str:
    """Return a path within what stands under a name."""
    if not name or not path:
        return joined("", name) if name else path
    return f"{joined('', name)}{path}" if path.startswith("[") else f"{joined('', name)}.{path}"


def _was(name: str, part: Difference, sides: Sides) -> str:
    """Return that a value by name differs between two runs, with the path inside it."""
    if part.kind in ("changed", "retyped") and part.path == part.other_path:
        return f"{under(name, part.path or '')} was {sides.both(*pair_of(part.first, part.second))}"
    inside = (None if path is None else under(name, path) for path in (part.path, part.other_path))
    path, other = inside
    return f"it had {difference_text(replace(part, path=path, other_path=other), sides)}"


def _given(part: Difference) -> tuple[str, str]:
    """Return two values of an input in short, or that it was not given."""
    if part.path is None or part.other_path is None:
        return (
            "not given" if part.path is None else short(part.first),
            "not given" if part.other_path is None else short(part.second),
        )
    return pair_of(part.first, part.second)


def _top(part: Difference) -> str:
    return (part.path or part.other_path or "").split(".")[0].split("[")[0]


def _by(made: Decision) -> str:
    return made.by(short)


def _is_long(values: Sequence[Json]) -> bool:
    return any(isinstance(value, str) and len(value) > contrast.VALUE_CHARACTERS_MAX for value in values)


def _args(step: ComparedStep) -> str:
    """Return the arguments of a tool in short; nothing where there are none."""
    return short(contrast.values(telling)) if (telling := _telling_args(step)) else ""


def _telling_args(step: ComparedStep) -> dict[str, Json]:
    """Return the arguments of a tool without prose and without what every run makes up anew, where there are others."""
    args = step.part.args if isinstance(step.part, ToolCall) else None
    if not isinstance(args, dict):
        return {}
    telling = {
        name: value for name, value in args.items() if not is_prose(value, name) and not is_volatile(name, value)
    }
    return telling or args


def _same_args(step: ComparedStep, other: ComparedStep) -> bool:
    """Return whether two calls of tools were handed the same, but for prose and what every run makes up anew."""
    return form.same(_telling_args(step), _telling_args(other))


def _with_args(step: ComparedStep) -> str:
    """Return what a step is called, with the arguments of a tool."""
    return f"{step.label} ({_args(step)})" if _args(step) else step.label


def _search(read: Read) -> tuple[str, bytes]:
    return read.within or "", form.serialise(read.args)

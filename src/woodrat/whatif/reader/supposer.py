"""The supposer: recorded decisions, made again under a supposition.

Reads are answered from the overlay. A value that a tool, a model or the agent gave after a changed input is *open*,
with the reason; so are the run's later writes, and reads of these by other runs. A sweep has many cases, one for each
value: the cases that something holds in are bits of a number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.explain import references
from woodrat.explain.reader.stale import read_by
from woodrat.explain.references import read_ref
from woodrat.explain.remake import SAME, UNKNOWN, UNMOVED, DecisionNow, Remade, Threshold, is_whole
from woodrat.records import replace
from woodrat.runs import steps
from woodrat.runs.steps import Decision, ModelCall, Part, Read, ToolCall
from woodrat.runs.values import REDACTED
from woodrat.state.fact import STATED
from woodrat.whatif.reader.overlay import KEPT_MAX, BeliefPair, Overlay
from woodrat.whatif.result import FactChange, Supposed, joined, overall, segments
from woodrat.whatif.supposition import Supposition

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.runs.record import RunRecord

_WHOLE: Final = frozenset({"history", "blame", "observations", "related", "diff", "conflicts", "timeline"})
"""Reads that show more than the values that hold."""


Doubt = tuple[int, str]
"""The cases in which something is not known, as bits, and why."""


class _Event(NamedTuple):
    """A changed input of a run."""

    order: int
    """Which step it is, counted from 0; −1 where it was so from the beginning."""
    position: int
    cases: int
    """In which cases, as bits."""
    what: str
    """Its description, in a clause."""
    kind: str
    """`read`, `decision`, or `fact` if it is supposed for one fact of a decision, so that the others stay."""
    keys: tuple[str, ...] = ()
    """The fact that is supposed."""


class _Run:
    """A run, as far as it was followed."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self._places = {(step.position, step.span): number for number, step in enumerate(record.steps)}
        self.waiting = sorted(record.steps, key=lambda step: step.position)
        self.done = 0
        self.events: list[_Event] = []
        self.calls = {
            step.span: (number, step)
            for number, step in enumerate(record.steps)
            if isinstance(step, ToolCall | ModelCall) and step.span
        }

    def place(self, step: Part) -> int:
        """Return which step of the run it is, counted from 0; one that is not in it comes after all."""
        return self._places.get((step.position, step.span), len(self.record.steps))

    def within(self, order: int) -> set[str]:
        """Return the spans of the calls inside which a step happened."""
        found: set[str] = set()
        under = self.record.steps[order].under if order >= 0 else None
        while under is not None and under not in found:
            found.add(under)
            call = self.calls.get(under)
            under = None if call is None else call[1].under
        return found

    def before(self, position: int) -> Doubt | None:
        """Return the cases with a changed input before a position, and the first such input."""
        return _together((event.cases, event.what) for event in self.events if event.position < position)


def _together(found: Iterable[Doubt]) -> Doubt | None:
    cases, first = 0, ""
    for some, what in found:
        if some:
            cases, first = cases | some, first or what
    return (cases, first) if cases else None


class _Fact(NamedTuple):
    """A fact of a decision under the supposition."""

    change: FactChange | None
    swept: bool
    doubt: Doubt | None


_AS_IT_WAS: Final = _Fact(None, False, None)


class RunBeginning(NamedTuple):
    """How a run began."""

    agent: str | None
    subject: str | None


class Chosen(NamedTuple):
    """A decision that is asked about."""

    run: str
    begun: RunBeginning
    decision: Decision


class Supposer:
    """Makes decisions again under one supposition."""

    def __init__(self, tracer: Tracer, supposition: Supposition) -> None:
        self.tracer = tracer
        self.supposition = supposition
        self.met: set[str] = set()
        """Suppositions that some decision looks at."""
        sweep = supposition.sweep
        self.sweep = sweep
        self.ascending = sweep is not None and sweep.ascending
        self.cases = 1 if sweep is None else len(sweep.values)
        self.every = (1 << self.cases) - 1
        self.swept_fact = None if sweep is None or "#" in sweep.name else sweep.name
        self.overlay = Overlay(tracer, supposition)
        self._runs: dict[str, _Run] = {}

    def _doubt(
        self, look: BeliefPair, before: int, field: str | None
    ) -> Generator[tuple[str, int], Doubt | None, Doubt | None]:
        """Return the cases in which a field, or any, rests on an uncertain write of a run."""
        found: list[Doubt] = []
        for position, said in look.written:
            if position < before and (field is None or not said.stated or field in said.stated):
                run = str(said.optional["run"])
                shaken = yield run, position
                if shaken is not None:
                    found.append((shaken[0], f"{run} wrote {said.id} after {shaken[1]}"))
        return _together(found)

    # Runs

    def _drive(self, work: Generator[tuple[str, int], Doubt | None, Any]) -> Any:
        """Carry out work that asks about runs, which may ask about further ones; as deep as it goes."""
        stack: list[Generator[tuple[str, int], Doubt | None, Any]] = [work]
        answer: Any = None
        while stack:
            try:
                run, position = stack[-1].send(answer)
                stack.append(self._follow(run, position))
                answer = None
            except StopIteration as stop:
                stack.pop()
                answer = stop.value
        return answer

    def _run(self, id: str) -> _Run:
        found = self._runs.get(id)
        if found is None:
            found = self._runs[id] = _Run(self.tracer.run_reader.bare(id))
            for decision in found.record.decisions:
                found.events += self._supposed_facts(found, decision)
        return found

    def _supposed_facts(self, run: _Run, decision: Decision) -> Iterator[_Event]:
        """Yield the directly supposed facts of a decision, each as old as its origin."""
        facts = self.supposition.facts
        if not facts and self.swept_fact is None:
            return
        values = decision.known_facts
        for key, origin in _origins(decision).items():
            if key not in facts and key != self.swept_fact:
                continue
            options = [facts[key]] if key in facts else list(self.sweep.values if self.sweep is not None else ())
            cases = sum(
                1 << number
                for number, value in enumerate(options)
                if key not in values or not form.same(values[key], value)
            )
            if key in facts and cases:
                cases = self.every
            kind, order, position = origin.get("kind"), -1, -1
            if kind in ("tool", "model"):
                call = run.calls.get(str(origin.get("span")))
                order, position = (-1, -1) if call is None else (call[0], call[1].position)
            elif kind == "read" and isinstance(origin.get("field"), str):
                read = read_by(run.record, origin)
                order, position = (-1, -1) if read is None else (run.place(read), read.position)
            yield _Event(order, position, cases, f"{key}, which would be otherwise", "fact", (key,))

    def _follow(self, id: str, before: int) -> Generator[tuple[str, int], Doubt | None, Doubt | None]:
        """Return the cases in which a run would have met a changed input before a position, and that input."""
        run = self._run(id)
        while run.done < len(run.waiting) and run.waiting[run.done].position < before:
            step = run.waiting[run.done]
            order = run.place(step)
            if isinstance(step, Read):
                doubt = yield from self._read(step)
                if doubt is not None:
                    run.events.append(_Event(order, step.position, *doubt, "read"))
            elif isinstance(step, Decision):
                stretches = (yield from self._made(id, step))[1]
                cases = 0
                for start, stop, again in stretches:
                    if again.outcome != SAME:
                        cases |= (1 << stop) - (1 << start)
                if cases:
                    what = f"it decided {step.stage}, which might have come out otherwise"
                    run.events.append(_Event(order, step.position, cases, what, "decision"))
            run.done += 1
        return run.before(before)

    def _read(self, read: Read) -> Generator[tuple[str, int], Doubt | None, Doubt | None]:
        """Return in which cases a read would have shown something else."""
        if read.recalled:
            return (yield from self._recalled(read, [hit.run for hit in read.recalled]))
        what = f"it read {read.entity or read.within}, which would have been otherwise"
        if read.entity is None:
            return (self.every, what) if read.within in _WHOLE and self.overlay.moves_state else None
        ref = read_ref({"kind": "read", "entity": read.entity, "field": ""})
        if ref is None or read.as_of is None:
            return None
        look = self.overlay.look(ref, read.as_of, read.effective)
        if look is None:
            return None
        was = {} if look.was is None else look.was.fields
        now = {**({} if look.now is None else look.now.fields), **look.supposed}
        if read.within in _WHOLE and (look.now is not look.was or look.supposed or look.swept):
            return self.every, what
        if (look.was is None) is not (look.now is None) or not form.same(dict(was), dict(now)):
            return self.every, what
        found: list[Doubt] = []
        if look.swept is not None:
            found.append((self._swept_cases(look.swept in was, was.get(look.swept)), what))
        doubt = yield from self._doubt(look, read.position, None)
        return _together([*found, *([doubt] if doubt is not None else [])])

    def _recalled(self, read: Read, runs: Iterable[str]) -> Generator[tuple[str, int], Doubt | None, Doubt | None]:
        """Return the cases in which recalled runs might have ended differently."""
        found: list[Doubt] = []
        for run in runs:
            shaken = yield run, read.position if read.as_of is None else read.as_of + 1
            if shaken is not None:
                found.append((shaken[0], f"it recalled {run}, where {shaken[1]}"))
        return _together(found)

    def _swept_cases(self, there: bool, before: Json) -> int:
        assert self.sweep is not None
        cases = (
            1 << number for number, value in enumerate(self.sweep.values) if not there or not form.same(value, before)
        )
        return sum(cases)

    # Decisions

    def made(self, chosen: Chosen) -> tuple[Supposed, list[tuple[int, int, DecisionNow]]]:
        """Return the outcomes of a decision, with their cases."""
        if len(self._runs) >= KEPT_MAX:
            self._runs.clear()  # between decisions, as nobody is on the way through a run then
        changes, stretches, concerned = self._drive(self._made(chosen.run, chosen.decision))
        ranges = joined(self.sweep, stretches) if self.sweep is not None and concerned else ()
        now = overall(ranges) if ranges else stretches[0][2]
        run, (agent, subject), decision = chosen
        return Supposed(run, agent, subject, decision, changes, now, ranges), stretches

    def _made(
        self, run: str, decision: Decision
    ) -> Generator[
        tuple[str, int], Doubt | None, tuple[tuple[FactChange, ...], list[tuple[int, int, DecisionNow]], bool]
    ]:
        """Return the changed facts, the outcomes with their cases, and whether a sweep concerns it."""
        remade = self._remade(decision)
        values, origins = decision.known_facts, _origins(decision)
        keys = remade.keys if remade.no_rules is None else {*origins, *values, *self.supposition.facts}
        changes: list[FactChange] = []
        doubts: dict[str, Doubt] = {}
        swept: list[str] = []
        now = dict(values)
        moved: set[str] = set()
        for key in sorted(keys.union(origins)):
            looked = key in keys
            found = yield from self._fact(run, decision, key, origins.get(key), values, looked)
            if found.doubt is not None and looked:
                doubts[key] = found.doubt
            if found.swept and looked:
                swept.append(key)
            change = found.change
            if change is not None:
                changes.append(change)
                if change.missing:
                    moved.update({key} if now.pop(key, change) is not change else ())
                elif key not in values or not form.same(values[key], change.now):
                    now[key] = change.now
                    moved.add(key)
        if remade.no_rules is not None:
            unknown = yield from self._without_rules(run, decision)
            if unknown is not None or moved or swept or doubts:
                again = DecisionNow(UNKNOWN, None, None, unknown or remade.no_rules)
                return self._shown(changes), [(0, self.cases, again)], True
        stretches = [
            (start, stop, self._case(remade, start, now, moved, swept, values, doubts))
            for start, stop in self._stretches(remade, swept, values, doubts)
        ]
        concerned = bool(swept) or any(again.outcome != SAME for _, _, again in stretches)
        return self._shown(changes), stretches, concerned

    @staticmethod
    def _shown(changes: Iterable[FactChange]) -> tuple[FactChange, ...]:
        """Return changes for display: redacted values stay hidden, except the caller's own suppositions."""
        return tuple(replace(c, now=REDACTED) if c.before == REDACTED and c.observations_now else c for c in changes)

    def _without_rules(self, run: str, decision: Decision) -> Generator[tuple[str, int], Doubt | None, str | None]:
        """Return the reason why a choice without recorded rules may differ; None if it would not.

        The inputs of a run that was recorded elsewhere are not all known, and a direct supposition is not an input of
        any run. Otherwise the reason is a changed input before it.
        """
        problem = Remade(decision).no_rules
        supposed = self.supposition
        if decision.chosen_by is None or supposed.facts or supposed.rules or supposed.thresholds or self.swept_fact:
            return problem
        shaken = yield run, decision.position
        return None if shaken is None else f"{problem}; before, {shaken[1]}"

    def _remade(self, decision: Decision) -> Remade:
        stage = decision.stage
        rules = self.supposition.rules.get(stage)
        if rules is not None:
            self.met.add(f"rules {stage}")
        names: list[str] = []
        thresholds: list[Threshold] = []
        for name, value in self.supposition.thresholds.items():
            rest, _, op = name.rpartition(".")
            if rest.startswith(stage + "."):
                names.append(name)
                thresholds.append((rest[len(stage) + 1 :], op, value))
        remade = Remade(decision, rules, thresholds)
        self.met.update(f"threshold {names[number]}" for number in remade.met)
        return remade

    def _stretches(
        self, remade: Remade, swept: Sequence[str], values: Mapping[str, Json], doubts: Mapping[str, Doubt]
    ) -> list[tuple[int, int]]:
        if self.sweep is None:
            return [(0, 1)]
        partial = [cases for cases, _ in doubts.values() if cases != self.every]
        if not swept and not partial:
            return [(0, self.cases)]
        points = [point for key in swept for point in remade.operands(key)]
        points += [values[key] for key in swept if key in values]
        found = segments(self.sweep, self.ascending, points)
        if not partial:
            return found
        cuts = {start for start, _ in found} | {self.cases}
        for cases in partial:
            edges = cases ^ (cases << 1)
            cuts.update(number for number in range(self.cases) if edges >> number & 1)
        ordered = sorted(cuts)
        return list(pairwise(ordered))

    def _case(
        self,
        remade: Remade,
        case: int,
        now: Mapping[str, Json],
        moved: set[str],
        swept: Sequence[str],
        values: Mapping[str, Json],
        doubts: Mapping[str, Doubt],
    ) -> DecisionNow:
        if swept:
            assert self.sweep is not None
            value = self.sweep.values[case]
            now = {**now, **dict.fromkeys(swept, value)}
            moved = moved.union(key for key in swept if key not in values or not form.same(values[key], value))
        open = {key: why for key, (cases, why) in doubts.items() if cases >> case & 1}
        if not (moved or open or remade.altered):
            return DecisionNow(SAME, remade.decision.chosen, remade.decision.rule, UNMOVED)
        return remade.by(now, moved, open)

    def _fact(
        self,
        run: str,
        decision: Decision,
        key: str,
        origin: Mapping[str, Any] | None,
        values: Mapping[str, Json],
        looked: bool,
    ) -> Generator[tuple[str, int], Doubt | None, _Fact]:
        """Return a fact under the supposition."""
        if key == self.swept_fact:
            self.met.update({key} if looked else ())
            return _Fact(None, True, None)
        if key in self.supposition.facts:
            self.met.update({key} if looked else ())
            return _Fact(_set(key, origin or {}, values, self.supposition.facts[key]), False, None)
        if origin is None:
            doubt = self._unrecorded(decision, key)
            if doubt is not None or not looked:
                return _Fact(None, False, doubt)
            origin = STATED
        kind = origin.get("kind")
        if kind == "read":
            return (yield from self._read_fact(run, decision, key, origin, values))
        if kind == "recall":
            reads = [read for read in self._run(run).record.reads if read.span == origin.get("span")]
            doubt = (yield from self._recalled(reads[0], [str(origin.get("run"))])) if reads else None
            return _Fact(None, False, doubt) if doubt is not None else _AS_IT_WAS
        if not looked or kind not in ("tool", "model", "stated"):
            return _AS_IT_WAS
        return (yield from self._said_fact(run, decision, key, origin, key in values))

    def _unrecorded(self, decision: Decision, key: str) -> Doubt | None:
        """Return the reason why an unrecorded fact may exist: supposed rules may look at one.

        Of a snapshot only the used fields are on record. The decision may have got the whole snapshot or a few of its
        values; but if the entity has no such field, or the facts cannot be a snapshot, there was no such fact.
        """
        origins = _origins(decision)
        places = {(o.get("entity"), o.get("position")) for o in origins.values()}
        if any(o.get("kind") != "read" or o.get("field") != name for name, o in origins.items()) or len(places) > 1:
            return None
        unknown = (self.every, f"{key} is not on record among the facts of the decision; set it too")
        if not places:
            return None if decision.facts else unknown
        entity, position = places.pop()
        ref = read_ref({"kind": "read", "entity": entity, "field": key})
        if ref is None or type(position) is not int or self.overlay.look(ref, position, None) is not None:
            return unknown
        snapshot = self.overlay.reader(position, None, False).find(ref)
        return unknown if snapshot is not None and key in snapshot.fields else None

    def _read_fact(
        self, run: str, decision: Decision, key: str, origin: Mapping[str, Any], values: Mapping[str, Json]
    ) -> Generator[tuple[str, int], Doubt | None, _Fact]:
        ref, position = read_ref(origin), origin.get("position")
        if ref is None or type(position) is not int:
            return _AS_IT_WAS
        field = str(origin["field"])
        effective = None
        if self.overlay.look(ref, position, None) is not None:
            # Which effective time it was read by is told by the read alone.
            read = read_by(self._run(run).record, origin)
            effective = None if read is None else read.effective
        look = self.overlay.look(ref, position, effective)
        if look is None:
            return _AS_IT_WAS
        name = f"{ref}#{field}"
        if look.swept == field:
            self.met.add(name)
            return _Fact(None, True, None)
        was = tuple(id for id in origin.get("observations") or () if isinstance(id, str))
        if field in look.supposed:
            self.met.add(name)
            return _Fact(_set(key, origin, values, look.supposed[field]), False, None)
        doubt = yield from self._doubt(look, decision.position, field)
        if look.now is look.was:
            return _Fact(None, False, doubt)
        before = None if look.was is None else look.was.fact(field)
        after = None if look.now is None else look.now.fact(field)
        names_before = [] if before is None else list(before.origin["observations"])
        names_after = [] if after is None else list(after.origin["observations"])
        gone = after is None or after.missing
        value = None if after is None else after.value
        equal = form.same(None if before is None else before.value, value)
        if (before is None or before.missing) is gone and names_before == names_after and equal:
            return _Fact(None, False, doubt)
        hidden = not is_whole(values.get(key))
        if hidden and not gone and before is not None and form.same(before.value, value):
            return _Fact(None, False, doubt)  # it stays what it was, and that was hidden
        change = FactChange(key, str(ref), field, values.get(key), value, gone, was, tuple(names_after))
        return _Fact(change, False, doubt)

    def _said_fact(
        self, run: str, decision: Decision, key: str, origin: Mapping[str, Any], there: bool
    ) -> Generator[tuple[str, int], Doubt | None, _Fact]:
        """Return a fact from a tool, a model or the agent: open after a changed input."""
        state = self._run(run)
        yield run, decision.position
        place = state.place(decision)
        kind = origin.get("kind")
        found: list[Doubt] = []
        if kind == "stated":
            # A value that was missing may have been looked for in what was read; nothing else would have given it.
            how = "was stated by the agent" if there else "was not given by the agent"
            counted = ("read", "decision") if there else ("read",)
            for event in state.events:
                if event.order < place and event.kind in counted:
                    found.append((event.cases, f"{key} {how} after {event.what}; set it too"))
            return _Fact(None, False, _together(found))
        span = str(origin.get("span"))
        call = state.calls.get(span)
        name = "" if call is None else call[1].name if isinstance(call[1], ToolCall) else call[1].model or ""
        for event in state.events:
            if call is None or event.order < call[0] or span in state.within(event.order):
                found.append((event.cases, f"needs {kind} {name}: it gave {key} after {event.what}"))
                # What came before a call counts as looked at, even where no rule looks at it.
                self.met.update(event.keys)
        return _Fact(None, False, _together(found))


def _origins(decision: Decision) -> dict[str, Mapping[str, Any]]:
    found = {key: origin for key, origin in decision.facts_origin.items() if isinstance(origin, dict)}
    return {**found, **references.evidence(decision)}


def _set(key: str, origin: Mapping[str, Any], values: Mapping[str, Json], value: Json) -> FactChange:
    is_read = origin.get("kind") == "read"
    entity, name = (steps.text(origin.get(part)) if is_read else None for part in ("entity", "field"))
    named = tuple(id for id in origin.get("observations") or () if isinstance(id, str))
    return FactChange(key, entity, name, values.get(key), value, False, named, ())

"""Replaying: today's code on yesterday's recording, compared step by step; nothing is written.

Reads are answered as of the positions they were recorded at, tools and models from the recording, writes with the
reports they were given; decisions are made anew. What the recording does not hold is never made up: there the agent is
stopped. Everything that the agent would write is compared with what its run wrote and then dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

from woodrat.canon import form
from woodrat.engines.port import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.frozen import dataclass, replace
from woodrat.ledger import lending
from woodrat.ledger import report as reports
from woodrat.ledger.answering import (
    Body,
    Recording,
    answer_with,
    begun_again,
    begun_with,
    equal,
    in_order,
    invoke,
    is_answerable,
    rule_said,
    same_facts,
    spelled,
)
from woodrat.ledger.reading import Reader
from woodrat.ledger.report import Report
from woodrat.ledger.running import ERROR, ended_by
from woodrat.ledger.writing import Draft, Redact, Writer, request_of
from woodrat.runs import bounding, rule
from woodrat.runs.rule import Verdict
from woodrat.runs.run import RunRecord
from woodrat.views.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from woodrat.canon.form import Json
    from woodrat.engines.port import Transaction, View
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.past import Past
    from woodrat.ledger.rebuilding import Progress
    from woodrat.ledger.running import Run
    from woodrat.log.entry import Entry
    from woodrat.runs.fact import Facts
    from woodrat.runs.rule import Rule

NOTHING_REPLAYED = "Nothing was replayed."

STEPS_MAX: Final = 10_000
"""How many steps an agent may take in one run before it is stopped, unless the caller says otherwise."""
DIVERGENCES_MAX: Final = 20
"""How many divergences of one run are kept; the first is always among them."""
UNKNOWN_SAID_MAX: Final = 5
"""How many unknown runs an error names."""

DECISION, NOT_RECORDED, NOT_KEPT = "decision", "not_recorded", "not_kept"
MISSING, EXTRA, RESULT, ANSWER, RAISED, STEPS = "missing", "extra", "result", "answer", "raised", "steps"
KINDS: Final = (DECISION, NOT_RECORDED, NOT_KEPT, MISSING, EXTRA, RESULT, ANSWER, RAISED, STEPS)
"""How a replay can part from its recording."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule that is not what it was, or that answers otherwise."""

    number: int
    """Which rule of the decision, from 1."""
    label: str | None
    """What it is called, now or else then."""
    old: Json
    """The rule as it was recorded; none when it is new."""
    new: Json
    """The rule as it is; none when it is gone."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain JSON."""
        return {"number": self.number, "label": self.label, "old": self.old, "new": self.new}

    def __str__(self) -> str:
        named = f"rule {self.number}" + (f" ({self.label})" if self.label is not None else "")
        if self.old is None:
            return f"{named} is new: {_condition(self.new)}"
        if self.new is None:
            return f"{named} is gone: {_condition(self.old)}"
        old, new = _condition(self.old), _condition(self.new)
        if old != new:
            return f"{named} was {old} and is {new}"
        return f"{named} answers otherwise" if equal(self.old, self.new) else f"{named} leads elsewhere"


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between a recorded run and its replay."""

    kind: str
    """What sort of difference: one of `KINDS`."""
    what: str
    """The step, such as `decision classify-risk` or `tool bureau`."""
    step: int | None
    """Number of the recorded step; none where there is none."""
    old: Json
    """What was recorded."""
    new: Json
    """What came now."""
    rule: RuleChange | None = None
    """Of a decision, the rule that differs."""
    facts: Mapping[str, Json] | None = None
    """Of a decision, the facts that differ: by name `{"old", "new"}`."""

    def to_json(self) -> dict[str, Any]:
        """Return the divergence as plain JSON."""
        found: dict[str, Any] = {"kind": self.kind, "what": self.what, "step": self.step}
        found.update(old=self.old, new=self.new)
        if self.rule is not None:
            found["rule"] = self.rule.to_json()
        if self.facts:
            found["facts"] = dict(self.facts)
        return {**found, "sentence": str(self)}

    def __str__(self) -> str:
        old, new = _glimpse(self.old), _glimpse(self.new)
        match self.kind:
            case "decision":
                return f"{self.what}: {old} became {new}; {self._why()}"
            case "not_recorded":
                before = f" (recorded: {old})" if self.old is not None else ""
                return f"{self.what}: not in the recording with {new}{before}"
            case "not_kept":
                return f"{self.what}: {new}, so the recording cannot answer"
            case "missing":
                return f"{self.what}: recorded at step {self.step}, and not asked for any more"
            case "extra":
                return f"{self.what}: not recorded, and asked for now"
            case "result":
                return f"{self.what}: its block came to {new}; {old} was recorded"
            case "answer":
                return f"{self.what}: {old} became {new}"
            case "raised":
                return f"{self.what}: raised {_error(self.new)}; recorded was {_error(self.old)}"
        return f"{self.what}: stopped after {new} steps; {old} were recorded"

    def _why(self) -> str:
        if self.rule is not None:
            return str(self.rule)
        if self.facts:
            told = (f"{name} was {_side(item, 'old')} and is {_side(item, 'new')}" for name, item in self.facts.items())
            return ", ".join(told)
        return "the rules tried are the same; what is chosen without one is not"


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """What came of replaying one run."""

    run: str
    """Id of the run."""
    agent: str | None
    """Who ran."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity it was about."""
    interrupted: bool
    """Whether the recording has no end: it is compared as far as it goes."""
    steps: int
    """How many steps the agent took."""
    answer: Json
    """What it answers now."""
    divergences: tuple[Divergence, ...]
    """How it differs, in the order of the steps; the agent goes on for as long as the recording answers."""

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.divergences

    @property
    def divergence(self) -> Divergence | None:
        """The first difference."""
        return self.divergences[0] if self.divergences else None

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON."""
        return {
            "run": self.run,
            "agent": self.agent,
            "query": self.query,
            "subject": self.subject,
            "same": self.same,
            "interrupted": self.interrupted,
            "steps": self.steps,
            "answer": self.answer,
            "divergence": None if self.divergence is None else self.divergence.to_json(),
            "divergences": [each.to_json() for each in self.divergences],
        }

    def __str__(self) -> str:
        if self.same:
            return f"{self.run}: same" + (", as far as it was recorded" if self.interrupted else "")
        told = [f"{self.run}: differs at {self.divergences[0]}"]
        told += [f"  then {each}" for each in self.divergences[1:]]
        return "\n".join(told)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of replaying runs."""

    runs: tuple[ReplayedRun, ...]
    """Each of them, in the order they were named."""

    @property
    def same(self) -> bool:
        """Whether none differs."""
        return all(run.same for run in self.runs)

    @property
    def differing(self) -> tuple[ReplayedRun, ...]:
        """Those that differ."""
        return tuple(run for run in self.runs if not run.same)

    @property
    def counts(self) -> dict[str, int]:
        """How many runs there are, how many are the same, and how many differ first by which kind."""
        found = {"runs": len(self.runs), "same": sum(run.same for run in self.runs)}
        first = [run.divergence.kind for run in self.runs if run.divergence is not None]
        return found | {kind: first.count(kind) for kind in KINDS if kind in first}

    def table(self) -> str:
        """Return a line for each run that differs, and one that counts."""
        lines = [f"{run.run}  {run.divergence}" for run in self.differing]
        return "\n".join([*lines, self.summary()])

    def summary(self) -> str:
        """Return how many are the same, and how many differ by what."""
        counts = self.counts
        told = f"{counts.pop('same')} of {counts.pop('runs')} runs are the same"
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        return f"{told}; {len(self.differing)} differ ({kinds})." if kinds else f"{told}."

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"same": self.same, "counts": self.counts, "runs": [run.to_json() for run in self.runs]}


# -- while it goes on -------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """Ends an agent whose recording has no answer; no `except Exception` of the agent keeps it going."""


class _Around(NamedTuple):
    """What the log says of runs besides their own entries."""

    kin: Mapping[str, Sequence[str]]
    """By run the runs it started, in the order the log heard of them."""
    writes: Mapping[str, Mapping[int, int]]
    """By run its writes: the position of each one's first entry, and of the first observation in it."""


class _Session:
    """One replay of one run, those inside of it included."""

    def __init__(self, live: frozenset[str], steps_max: int, around: _Around) -> None:
        self.live = live
        self.around = around
        self.divergences: list[Divergence] = []
        self.playbacks: list[Playback] = []
        self.steps = 0
        self.stopped = False
        self._steps_max = steps_max
        self._lock = threading.Lock()

    def step(self, recorded: int) -> None:
        """Count a step; after the last one allowed, and after the end, there is none."""
        with self._lock:
            if not self.stopped:
                self.steps += 1
                if self.steps <= self._steps_max:
                    return
                self.steps -= 1
                self.divergences.append(Divergence(STEPS, "steps", None, recorded, self._steps_max))
                self.stopped = True
        raise Stopped

    def note(self, divergence: Divergence) -> None:
        """Keep a difference; the agent goes on."""
        with self._lock:
            if len(self.divergences) < DIVERGENCES_MAX and not self.stopped:
                self.divergences.append(divergence)

    def stop(self, divergence: Divergence | None) -> NoReturn:
        """End the replay, with a difference or at the end of what was recorded."""
        if divergence is not None:
            self.note(divergence)
        self.stopped = True
        raise Stopped


class Playback(Recording):
    """What the log holds of a run, answering its replay."""

    replays = True

    def __init__(self, ledger: Ledger, entries: Sequence[Entry], session: _Session) -> None:
        steps = in_order(entries)
        super().__init__(steps)
        self._home = ledger
        self._session = session
        self._run: Run | None = None
        self.ended: Body | None = next((body for kind, body in steps if kind == "run.ended"), None)
        self.has_ended = False  # the replay of a run that has ended is going on
        self._writes = dict(session.around.writes.get(str(self.started.get("run")), {}))
        self._at = _basis(self.started)
        self._inside: list[Playback] | None = None
        session.playbacks.append(self)

    # -- what is asked for

    def cut(self) -> None:
        """Nothing ever becomes live."""

    def tool(self, name: str, args: Json, *, once: bool) -> Body | None:
        return self._call("tool", name, ("run.tool", name, spelled(args)), args)

    def model(self, model: str, request: str) -> Body | None:
        return self._call("model", model, ("run.model", model, request), {"request": request})

    def _call(self, kind: str, name: str, key: tuple[Any, ...], asked: Json) -> Body | None:
        self._step()
        what = f"{kind} {name}"
        if name in self._session.live:
            if self._next(key) is None:
                self._next_named(kind, name)
            return None
        found = self._next(key, fits=is_answerable)
        if found is not None:
            return found
        unkept = self._next(key)
        if unkept is not None:
            if unkept.get("begun") is True and self.ended is None:
                self._session.stop(None)  # this is where the run was interrupted
            problem = "its end is not known" if unkept.get("begun") is True else "its result was not kept whole"
            self._session.stop(Divergence(NOT_KEPT, what, _step_of(unkept), None, problem))
        self._check_end()
        instead = self._next_named(kind, name)
        old = (
            None if instead is None else instead.get("args") if kind == "tool" else {"request": instead.get("request")}
        )
        self._session.stop(Divergence(NOT_RECORDED, what, _step_of(instead), old, asked))

    def differed(self, kind: str, name: str, recorded: Mapping[str, Json], now: Mapping[str, Json]) -> None:
        old, new = (each.get("error") or each.get("result", each.get("response")) for each in (recorded, now))
        self._session.note(Divergence(RESULT, f"{kind} {name}", _step_of(recorded), old, new))

    def read(self, verb: str, args: Mapping[str, Json], as_of: int | None, effective: str | None) -> int | None:
        self._step()
        asked = args["ref"] if verb == "show" else spelled(dict(args))
        body = self._next(("run.read", verb, asked, as_of, effective))
        what = f"read {args['ref']}" if "ref" in args else verb
        if body is None:
            self._check_end()
            self._session.note(Divergence(EXTRA, what, None, None, dict(args)))
            return self._at if as_of is None else as_of
        position, log = body.get("position"), body.get("log")
        if type(position) is not int or (log is not None and log != self._log_name()):
            problem = "it was read from another log" if log is not None else "it does not say at which position"
            self._session.stop(Divergence(NOT_KEPT, what, _step_of(body), None, problem))
        self._at = max(self._at, position)
        return position

    def _log_name(self) -> str | None:
        with self._home._engine.view(self._home.tenant) as view:
            return view.head().log

    def note(self, said: Mapping[str, Json]) -> bool:
        self._step()
        self._next(("run.noted", spelled(dict(said))))
        return True  # a remark changes nothing, so it is not compared

    def wrote(self, repeated: bool) -> None:
        """Writes were compared when they were made."""

    def decision(
        self, stage: str, mode: str, facts: Facts, rules: Sequence[Rule], default: object, hidden: Container[str]
    ) -> Verdict | None:
        """Decide anew, and compare what is chosen with what was."""
        self._step()
        made = replace(rule.evaluate(facts, rules, default, mode, hidden=cast("frozenset[str]", hidden)), stage=stage)
        now = rule.body_of(made, facts, hidden)
        key = ("run.decided", bounding.text(stage), mode)

        def fits(body: Body) -> bool:
            given = body.get("facts")
            return isinstance(given, dict) and same_facts(given, facts, hidden)

        then = self._next(key, fits) or self._next(key)
        if then is None:
            self._check_end()
            self._session.note(Divergence(EXTRA, f"decision {stage}", None, None, now["chosen"]))
            return replace(made, span=self.started.get("span"))
        if not equal(then.get("chosen"), now["chosen"]):
            changes = _fact_changes(then.get("facts"), now["facts"], partial=facts.partial)
            change = _rule_change(then, now, [rule_said(each.to_json(), hidden) for each in rules], changes)
            told = (then.get("chosen"), now["chosen"], change, changes or None)
            self._session.note(Divergence(DECISION, f"decision {stage}", _step_of(then), *told))
        return replace(made, rationale=then.get("rationale"), span=then.get("span"))

    def write(
        self,
        writer: Writer,
        verb: str,
        arguments: Mapping[str, Any],
        plan: Callable[[Draft], None],
        key: str | None,
    ) -> Report:
        """Return the report that a write of the run was given; nothing is written."""
        if verb.startswith("run.") or verb in ("judge", "interpretation.ended"):
            return _nothing(self._at)
        self._step()
        said = {name: form.decode(bytes(item)) if isinstance(item, bytes) else item for name, item in arguments.items()}
        if key is None:
            problem = f"it writes past the run; write with run.{verb}"
            self._session.stop(Divergence(NOT_KEPT, f"write {verb}", None, None, problem))
        with writer.engine.view(writer.tenant) as view:
            receipt = view.receipt(writer.agent, key)
            if receipt is not None and receipt.request == request_of(verb, arguments):
                found = reports.from_bytes(receipt.report)
                self._written(view, found.positions)
                self._at = max(self._at, found.position)
                return found
            # What said nothing new left no trace in the log; it is planned once more, and nobody appends the plan.
            before = Reader(view, AsOf(self._at), writer.policies)
            now, log = view.head().recorded_at or writer.clock.now(), view.head().log or ""
            draft = Draft(cast("Transaction", view), before, now, writer.agent, writer.clock, log)
            plan(draft)
            draft.settle()
            if not draft.items:
                return writer._nothing_new(draft)
        self._check_end()
        left = next(iter(self._unwritten()), None)
        old = None if left is None else self._said(left)
        self._session.stop(Divergence(NOT_RECORDED, f"write {verb}", None, old, bounding.bounded(said)))

    def _written(self, view: View, positions: Iterable[int]) -> None:
        for position in positions:
            entry = view.entry(position)
            if entry is not None:
                with self._lock:
                    self._writes.pop(entry.envelope.write, None)

    def _unwritten(self) -> list[int]:
        """Return the first position of each recorded write that was not made again."""
        with self._lock:
            return sorted(self._writes.values())

    def _said(self, position: int) -> dict[str, Any]:
        """Return what a recorded observation said."""
        from woodrat.state import observation

        with self._home._engine.view(self._home.tenant) as view:
            entry = view.entry(position)
        assert entry is not None and entry.body is not None
        found = observation.stored(entry.body)
        return {"entity": str(found.entity), "fields": dict(found.fields), "step": found.optional.get("step")}

    # -- runs inside of it

    def child(self, ledger: Ledger, beginning: Mapping[str, Json]) -> Playback:
        self._step()
        if ledger._engine is self._home._engine and ledger.tenant == self._home.tenant:
            wanted = spelled(begun_with(beginning))
            for found in self.inside():
                if found._run is None and spelled(begun_with(found.started)) == wanted:
                    return found
        self._check_end()
        asked = {name: beginning[name] for name in ("agent", "query", "inputs") if name in beginning}
        self._session.stop(Divergence(NOT_RECORDED, "run inside", None, None, asked))

    def inside(self) -> list[Playback]:
        """Return the recordings of the runs that this one started, in the order they began."""
        if self._inside is None:
            with self._home._engine.view(self._home.tenant) as view:
                through = view.head().position
                named = self._session.around.kin.get(str(self.started.get("run")), ())
                self._inside = [Playback(self._home, view.run(id, through), self._session) for id in named]
        return self._inside

    def take_over(self, run: Run) -> None:
        super().take_over(run)
        self._run = run
        run._ledger = copy(run._ledger)
        writer = run._ledger._writer
        run._ledger._writer = _Dropping(
            writer.engine, writer.tenant, writer.clock, writer.agent, writer.policies, writer.erasures, self
        )

    # -- what is left

    def _step(self) -> None:
        self._session.step(len(self._steps))

    def _next(self, key: tuple[Any, ...], fits: Callable[[Body], bool] | None = None) -> Body | None:
        """Return the next recorded step of this name that fits."""
        with self._lock:
            queue = self._waiting.get(key, ())
            for body in list(queue):
                if body.get("span") not in self._left_out and (fits is None or fits(body)):
                    cast("Any", queue).remove(body)
                    self.answered += 1
                    return body
        return None

    def _next_named(self, kind: str, name: str) -> Body | None:
        """Return the next recorded call of this name, whatever it was given."""
        for at, body in self._left():
            if at == f"run.{kind}" and body.get("name" if kind == "tool" else "model") == name:
                with self._lock:
                    for queue in self._waiting.values():
                        with suppress(ValueError):
                            queue.remove(body)
                return body
        return None

    def _left(self) -> list[tuple[str, Body]]:
        """Return the recorded steps that nobody asked for, in their order; remarks do not count."""
        with self._lock:
            waiting = {id(body) for queue in self._waiting.values() for body in queue}
            return [
                (kind, body)
                for kind, body in self._steps
                if id(body) in waiting and body.get("span") not in self._left_out and kind != "run.noted"
            ]

    def _check_end(self) -> None:
        """Stop, without a difference, where an interrupted run stopped."""
        if self.ended is None and not self._left() and not self._unwritten():
            self._session.stop(None)

    def compare_end(self, error: BaseException | None) -> None:
        """Compare how the run ended, and what was left out, once the agent is done."""
        raised = None if error is None else bounding.error(error)
        recorded = None if self.ended is None else self.ended.get("error")
        if not equal(recorded, raised):
            self._session.note(Divergence(RAISED, "agent", _step_of(self.ended), recorded, raised))
        if raised is None or recorded is not None:
            self._compare_steps()
        if raised is None:
            self._compare_answer("answer")

    def _compare_steps(self) -> None:
        """Compare what was asked for with what was recorded, also of the runs inside."""
        note = self._session.note
        for kind, body in self._left():
            note(Divergence(MISSING, _named(kind, body), _step_of(body), _asked(kind, body), None))
        for position in self._unwritten():
            said = self._said(position)
            note(Divergence(MISSING, f"write {said['entity']}", said["step"], said, None))
        for inside in self.inside():
            inside._compare_as_inner()

    def _compare_as_inner(self) -> None:
        run, note, query = self._run, self._session.note, self.started.get("query")
        if run is None:
            note(Divergence(MISSING, f"run inside ({query})", _step_of(self.started), query, None))
            return
        # An error inside was for the agent around it to see; that there was one is all that is known of it here.
        then = None if self.ended is None else self.ended.get("status")
        if then is not None and run.status is not None and (then == ERROR) != (run.status == ERROR):
            note(Divergence(ANSWER, f"end of the run inside ({query})", _step_of(self.ended), then, run.status))
            return
        self._compare_steps()
        if run.status != ERROR:
            self._compare_answer(f"answer of the run inside ({query})")

    def _compare_answer(self, what: str) -> None:
        if self.ended is None or self._run is None:
            return
        old, new = self.ended.get("answer"), answer_of(self._run)
        if not equal(old, new):
            self._session.note(Divergence(ANSWER, what, _step_of(self.ended), old, new))


@dataclass(frozen=True, slots=True)
class _Dropping(Writer):
    """Writes nothing: what a run says while it is replayed is compared and dropped."""

    playback: Playback

    def write(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        plan: Callable[[Draft], None],
        *,
        key: str | None = None,
        dry_run: bool = False,
        redact: Redact | None = None,
    ) -> Report:
        if redact is not None:
            with self.engine.view(self.tenant) as view:
                arguments, key = redact(view) or (arguments, key)
        return self.playback.write(self, verb, arguments, plan, key)


def answer_of(run: Run) -> Json:
    """Return what a run answers, as its end would record it."""
    return None if run._answer is None else bounding.bounded(run._answer[0], hidden=run._hidden)


def _nothing(position: int) -> Report:
    none: tuple[Any, ...] = ()
    return Report(
        position=position, positions=none, observations=none, known=none, entities=none, changes=none, conflicts=none,
        hints=none,
    )  # fmt: skip


# -- telling it -------------------------------------------------------------------------------------------------------


def _fact_changes(then: Json, now: Json, *, partial: bool) -> dict[str, Json]:
    """Return the facts that differ, by name; a side that has none leaves it out.

    Of `partial` facts only those that were looked at are recorded: one that stands on one side alone says nothing.
    """
    old, new = (each if isinstance(each, dict) else {} for each in (then, now))
    found: dict[str, Json] = {}
    for name in sorted(old.keys() & new.keys() if partial else old.keys() | new.keys()):
        if name not in old or name not in new or not equal(old[name], new[name]):
            sides = (("old", old), ("new", new))
            found[name] = {side: values[name] for side, values in sides if name in values}
    return found


def _rule_change(then: Body, now: Body, rules: Sequence[Json], facts: Mapping[str, Json]) -> RuleChange | None:
    """Return the first rule that differs from the recorded one, or the first that answers otherwise by itself."""
    listed, untried = _objects(then.get("rules")), _objects(then.get("untried"))
    known: list[Json] = [rule_said(each, ()) for each in (*listed, *untried)]
    for index, old in enumerate(known):
        new = rules[index] if index < len(rules) else None
        if new is None or not equal(old, new):
            return _change(index, old, new)
    if (then.get("default") is True or "untried" in then) and len(rules) > len(known) and "omitted" not in then:
        return _change(len(known), None, rules[len(known)])
    if not facts:
        for index, (one, other) in enumerate(zip(listed, now["rules"], strict=False)):
            if one.get("matched") != other.get("matched"):
                return _change(index, known[index], rules[index])
    return None


def _objects(value: Json) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _change(index: int, old: Any, new: Any) -> RuleChange:
    label = next((each["label"] for each in (new, old) if each is not None and each["label"] is not None), None)
    sides = [None if each is None else {name: v for name, v in each.items() if v is not None} for each in (old, new)]
    return RuleChange(index + 1, label, sides[0], sides[1])


def _condition(said: Any) -> str:
    when = said.get("when")
    if isinstance(when, dict):
        told = []
        for key, wanted in when.items():
            if isinstance(wanted, dict):
                told += [f"{key} {op} {_glimpse(operand)}" for op, operand in wanted.items()]
            else:
                told.append(f"{key} eq {_glimpse(wanted)}")
        return " and ".join(told)
    return str(said.get("predicate") or "a rule without a name")


def _glimpse(value: Json) -> str:
    if isinstance(value, str):
        return bounding.text(value, 200)
    return bounding.text(form.serialise(value).decode(), 200)


def _side(item: Any, side: str) -> str:
    return _glimpse(item[side]) if side in item else "not there"


def _error(error: Any) -> str:
    if not isinstance(error, dict):
        return "no error"
    return f"{error.get('type')}: {_glimpse(error['message'])}" if "message" in error else str(error.get("type"))


def _step_of(body: Mapping[str, Any] | None) -> int | None:
    step = None if body is None else body.get("step")
    return step if type(step) is int else None


def _named(kind: str, body: Body) -> str:
    """Return a recorded step in words."""
    match kind:
        case "run.tool":
            return f"tool {body.get('name')}"
        case "run.model":
            return f"model {body.get('model')}"
        case "run.decided":
            return f"decision {body.get('stage')}"
    return f"read {body.get('entity')}" if body.get("within") is None else str(body["within"])


def _asked(kind: str, body: Body) -> Json:
    match kind:
        case "run.tool" | "run.read":
            return cast("Json", body.get("args"))
        case "run.model":
            return {"request": body.get("request")}
    return cast("Json", body.get("chosen"))


# -- the verb ---------------------------------------------------------------------------------------------------------


def replay(
    ledger: Ledger,
    runs: str | RunRecord | Iterable[str | RunRecord],
    agent: Callable[..., Any],
    *,
    live: Iterable[str] = (),
    progress: Progress | None = None,
    steps_max: int = STEPS_MAX,
    presented: Callable[[Run], Any] | None = None,
) -> Replayed:
    """Run an agent's function again on recorded runs and return how each compares; nothing is written.

    `presented` makes what the function is given from the run.
    """
    ids = _ids(runs)
    allowed = frozenset([live] if isinstance(live, str) else live)
    faults = [Fault("live", f"got {shown(name)}", "Name tools as text.") for name in allowed if type(name) is not str]
    if not callable(agent):
        problem = f"expected a function, got {bounding.type_name(agent)}"
        faults.append(Fault("agent", problem, "Send the agent's function."))
    if type(steps_max) is not int or steps_max < 1:
        faults.append(Fault("steps_max", f"got {shown(steps_max)}", "Send a number above 0."))
    if faults:
        raise Refused(faults, NOTHING_REPLAYED)
    around = _look_around(ledger, _first_basis(ledger, ids))
    found: list[ReplayedRun] = []
    lending.begin()
    try:
        for id in ids:
            if progress is not None:
                progress(len(found), len(ids))
            found.append(_replay_one(ledger, id, agent, _Session(allowed, steps_max, around), presented))
    finally:
        lending.finish()
    if progress is not None:
        progress(len(found), len(ids))
    return Replayed(tuple(found))


def outer_runs(past: Past, **asked: Any) -> list[str]:
    """Return the runs that `Past.runs` finds, the first recorded first; those inside others are replayed with them."""
    from woodrat.ledger.finding import PAGE_MAX

    found: list[str] = []
    cursor: str | None = None
    while True:
        page = past.runs(**asked, limit=PAGE_MAX, cursor=cursor)
        found += [record.id for record in page.items if record.parent is None]
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


def _ids(runs: object) -> list[str]:
    """Return the runs to be replayed by id, each once."""
    given = [runs] if isinstance(runs, str | RunRecord) else runs
    if not isinstance(given, Iterable):
        problem = f"expected a run's id or several, got {shown(runs)}"
        raise Refused([Fault("runs", problem, "Send ids as text, or run records.")], NOTHING_REPLAYED)
    found: dict[str, None] = {}
    for item in given:
        id = item.id if isinstance(item, RunRecord) else item
        if not isinstance(id, str):
            problem = f"expected a run's id, got {shown(id)}"
            raise Refused([Fault("runs", problem, "Send it as text.")], NOTHING_REPLAYED)
        found[id] = None
    return list(found)


def _first_basis(ledger: Ledger, ids: Sequence[str]) -> int:
    """Return the earliest position any of these runs began at; refuse those that are not here."""
    first: int | None = None
    unknown: list[str] = []
    faults: list[Fault] = []
    with ledger._engine.view(ledger.tenant) as view:
        through = view.head().position
        for id in ids:
            steps = in_order(view.run(id, through))
            if not steps:
                unknown.append(id)
            elif steps[0][0] != "run.started":
                faults.append(Fault(f"run {id}", "its beginning is not in the log", "Leave it out."))
            else:
                position = _basis(steps[0][1])
                first = position if first is None else min(first, position)
    if unknown:
        named = ", ".join(bounding.text(id, 64) for id in unknown[:UNKNOWN_SAID_MAX]) + (
            " …" if len(unknown) > UNKNOWN_SAID_MAX else ""
        )
        told = f"There is no run {named} here" if len(unknown) == 1 else f"There are no runs {named} here"
        raise NotFound(f"{told}. {NOTHING_REPLAYED} `runs list` shows those there are.", {"runs": unknown})
    if faults:
        raise Refused(faults, NOTHING_REPLAYED)
    return BEFORE_ALL if first is None else first


def _basis(started: Body) -> int:
    basis = started.get("basis")
    position = basis.get("position") if isinstance(basis, dict) else None
    return position if type(position) is int else BEFORE_ALL


def _look_around(ledger: Ledger, after: int) -> _Around:
    """Read the log once from where the first of the runs began."""
    kin: dict[str, list[str]] = {}
    writes: dict[str, dict[int, int]] = {}
    with ledger._engine.view(ledger.tenant) as view:
        for entry in view.entries(after, kinds={"run.started", "observation"}):
            if entry.kind == "observation" and entry.body is not None and b'"run":"' in entry.body:
                run = form.decode(entry.body).get("run")
                if isinstance(run, str):
                    writes.setdefault(run, {}).setdefault(entry.envelope.write, entry.position)
            elif entry.kind == "run.started" and entry.body is not None and b'"parent"' in entry.body:
                body = form.decode(entry.body)
                parent = body.get("parent")
                if isinstance(parent, dict) and isinstance(parent.get("run"), str):
                    kin.setdefault(parent["run"], []).append(body["run"])
    return _Around(kin, writes)


def _replay_one(
    ledger: Ledger, id: str, agent: Callable[..., Any], session: _Session, presented: Callable[[Run], Any] | None
) -> ReplayedRun:
    with ledger._engine.view(ledger.tenant) as view:
        playback = Playback(ledger, view.run(id, view.head().position), session)
    started = playback.started
    run = begun_again(ledger, id, started, "note")
    playback.take_over(run)
    error: BaseException | None = None
    try:
        with run:
            result = _settled(invoke(agent, run if presented is None else presented(run)))
            answer_with(run, result)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        error = ended_by(problem)[1]
    if not session.stopped:
        playback.compare_end(error)
        session.stopped = True  # a thread that goes on is stopped at its next step
    return ReplayedRun(
        id,
        agent=_text(started.get("agent")),
        query=_text(started.get("query")),
        subject=_text(started.get("subject")),
        interrupted=playback.ended is None,
        steps=session.steps,
        answer=answer_of(run),
        divergences=tuple(session.divergences),
    )


def _settled(result: Any) -> Any:
    """Return what an agent's function came to; of a coroutine, in a loop of its own."""
    from inspect import iscoroutine

    if not iscoroutine(result):
        return result
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result)
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    with ThreadPoolExecutor(1) as pool:  # this thread's loop is busy calling us
        return pool.submit(copy_context().run, asyncio.run, result).result()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

"""The replay reader: a recording that answers the replay of its run, and compares; nothing runs live or is written.

Reads are answered as of their recorded positions, tools and models from the recording, writes with their recorded
reports; decisions are made again. Missing answers are never invented: the agent is stopped there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

from woodrat.canon import form
from woodrat.engines.records import BEFORE_ALL
from woodrat.ledger import entry_index, receipts
from woodrat.ledger.moments import here
from woodrat.ledger.read import Reader
from woodrat.ledger.report import Report
from woodrat.ledger.write import Call, Draft, nothing_new, request_of
from woodrat.records import replace
from woodrat.replay.comparison import (
    asked_by,
    beginning_divergence,
    decision_words,
    fact_changes,
    prompt_words,
    rule_change,
    step_number,
    step_words,
    value_words,
    write_words,
)
from woodrat.replay.result import (
    ANSWER,
    DECISION,
    EXTRA,
    MISSING,
    NOT_KEPT,
    NOT_RECORDED,
    RAISED,
    RESULT,
    STEPS,
    Divergence,
    ReplayedRun,
)
from woodrat.runs import missing_facts
from woodrat.runs import rules as rule
from woodrat.runs import values as run_values
from woodrat.runs.recorder.agent_function import NotKept, agent_call
from woodrat.runs.recorder.log import LocalLog
from woodrat.runs.recorder.recalls import RECALL, RecordedRecall, recorded_recall
from woodrat.runs.recorder.recording import (
    Body,
    Recording,
    beginning_changes,
    begun_alike,
    begun_with,
    choice_key,
    choice_of,
    in_order,
    is_answerable,
    same_facts,
    spelled,
    start_of,
    undecided_key,
)
from woodrat.runs.recorder.resume import answer_with, begun_again
from woodrat.runs.recorder.run import ERROR, Run, ended_by
from woodrat.runs.recorder.steps import UnrestoredValue
from woodrat.runs.rules import Verdict, rule_said
from woodrat.runs.steps import recalled_runs
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from woodrat.canon.form import Json
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry
    from woodrat.replay.result import RuleChange
    from woodrat.runs.facts import Facts
    from woodrat.runs.recorder.recording import InnerRuns
    from woodrat.runs.rules import Rule

DIVERGENCES_MAX: Final = 20
"""Most stored divergences of one run; the first is always among them."""


class ReplayStopped(BaseException):
    """Ends an agent whose recording has no answer; no `except Exception` of the agent catches it."""


class RelatedRuns(NamedTuple):
    """Facts about runs in the log besides their own entries."""

    kin: Mapping[str, Sequence[str]]
    """By run its child runs, in the order of the log."""
    writes: Mapping[str, Mapping[int, int]]
    """By run its writes: the position of each one's first entry, and of the first observation in it."""


class ReplaySession:
    """One replay of one run, with its child runs."""

    def __init__(self, live: frozenset[str], steps_max: int, around: RelatedRuns) -> None:
        self.live = live
        self.around = around
        self.divergences: list[Divergence] = []
        self.playbacks: list[Playback] = []
        self.steps = 0
        self.stopped = False
        self.is_over = False  # the function continues after the end of its run
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
        raise ReplayStopped

    def note(self, divergence: Divergence) -> None:
        """Record a difference; the agent continues."""
        with self._lock:
            if len(self.divergences) < DIVERGENCES_MAX and not self.stopped:
                self.divergences.append(divergence)

    def stop(self, divergence: Divergence | None) -> NoReturn:
        """End the replay, with a difference or at the end of the recording."""
        if divergence is not None:
            self.note(divergence)
        self.stopped = True
        raise ReplayStopped

    def leave(self) -> NoReturn:
        """End the agent's function when its run is over: later actions are no part of the run."""
        self.is_over = True
        raise ReplayStopped


class Playback(Recording):
    """The record of a run, answering its replay."""

    replays = True

    def __init__(
        self, log: LocalLog, entries: Sequence[Entry], session: ReplaySession, *, is_inner: bool = False
    ) -> None:
        steps = in_order(entries)
        super().__init__(steps)
        self.is_inner = is_inner
        """Whether it was started inside another run."""
        self._log = log
        self._session = session
        self.run: Run | None = None
        """The run it replays, once known."""
        self.ended: Body | None = next((body for kind, body in steps if kind == "run.ended"), None)
        self.has_ended = False  # the replay of a run that has ended is going on
        self._writes = dict(session.around.writes.get(str(self.started.get("run")), {}))
        self._at = basis_of(self.started)
        self._inside: list[Playback] | None = None
        session.playbacks.append(self)

    # -- calls of the agent

    def cut(self) -> None:
        """Nothing ever becomes live."""

    def tool(self, name: str, args: Json, *, once: bool) -> Body | None:
        return self._call("tool", name, ("run.tool", name, spelled(args)), args)

    def model(self, model: str, request: str, messages: Json = None, parameters: Json = None) -> Body | None:
        asked: Json = {"messages": messages, "parameters": parameters}
        return self._call("model", model, ("run.model", model, request), asked)

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
            problem = "its end is not known" if unkept.get("begun") is True else "its result was not stored whole"
            self._session.stop(Divergence(NOT_KEPT, what, step_number(unkept), None, problem))
        self._check_end()
        instead = self._next_named(kind, name)
        if kind == "model":
            said = asked if isinstance(asked, dict) else {}
            old, new, words = prompt_words(instead or {}, said.get("messages"), said.get("parameters"))
            words = None if instead is None else words
        else:
            old, new = None if instead is None else instead.get("args"), asked
            words = value_words(old, new)
        self._session.stop(Divergence(NOT_RECORDED, what, step_number(instead), old, new, difference=words))

    def differed(self, kind: str, name: str, recorded: Mapping[str, Json], now: Mapping[str, Json]) -> None:
        old, new = (each.get("error") or each.get("result", each.get("response")) for each in (recorded, now))
        words = value_words(old, new)
        self._session.note(Divergence(RESULT, f"{kind} {name}", step_number(recorded), old, new, difference=words))

    def read_on(self, kind: str, name: str, body: Mapping[str, Json]) -> None:
        problem = "its reader stopped before the end when it was recorded, and reads on now"
        self._session.stop(Divergence(NOT_KEPT, f"{kind} {name}", step_number(body), None, problem))

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
        if type(position) is not int or (log is not None and not self._is_here(log, position)):
            problem = "it was read from another log" if log is not None else "it does not say at which position"
            self._session.stop(Divergence(NOT_KEPT, what, step_number(body), None, problem))
        self._at = max(self._at, position)
        return position

    def recall(self, args: Json, as_of: int | None) -> RecordedRecall:
        self._step()
        body = self._next(("run.read", RECALL, spelled(args), as_of, None))
        if body is None:
            self._check_end()
            self._session.note(Divergence(EXTRA, "recall", None, None, args))
            return RecordedRecall(self._at if as_of is None else as_of, None)
        position, log = body.get("position"), body.get("log")
        if type(position) is not int or (log is not None and not self._is_here(log, position)):
            problem = "it now reads another log" if log is not None else "it does not say at which position"
            self._session.stop(Divergence(NOT_KEPT, "recall", step_number(body), None, problem))
        with self._log.context.engine.view(self._log.context.tenant) as view:
            gone = [
                hit.run
                for hit in recalled_runs(body.get("recalled"))
                if not entry_index.has_run(view, hit.run, position)
            ]
        if gone:
            problem = f"it found {gone[0]}, which is not in the log any more"
            self._session.stop(Divergence(NOT_KEPT, "recall", step_number(body), None, problem))
        self._at = max(self._at, position)
        return recorded_recall(body)

    def _is_here(self, log: object, position: int) -> bool:
        with self._log.context.engine.view(self._log.context.tenant) as view:
            return here(view, log, position) is not None

    def note(self, said: Mapping[str, Json]) -> bool:
        self._step()
        self._next(("run.noted", spelled(dict(said))))
        return True  # a remark changes nothing, so it is not compared

    def wrote(self, repeated: bool) -> None:
        """Writes were compared when they were made."""

    def decision(
        self,
        stage: str,
        mode: str,
        facts: Facts,
        rules: Sequence[Rule],
        default: object,
        hidden: Collection[str],
        on_missing: str,
    ) -> Verdict | None:
        """Decide again, and compare the choices; a decision that fails now is `Refused`, as live."""
        self._step()
        made = rule.attempt(facts, rules, default, mode, hidden=hidden, stage=stage, on_missing=on_missing)
        refusal = rule.refusal_of(made)
        now = rule.body_of(made, facts, hidden)
        if refusal is not None:
            if self._take_undecided(made) is not None:
                raise refusal
            said = missing_facts.undecided(run_values.text(stage), mode, missing_facts.gaps_of(made.rules))
            now["chosen"] = {missing_facts.UNDECIDED: said["text"]}
        key = ("run.decided", run_values.text(stage), mode)

        def fits(body: Body) -> bool:
            given = body.get("facts")
            return isinstance(given, dict) and same_facts(given, facts, hidden)

        then = self._next(key, fits) or self._next(key)
        if then is None:
            note = self._next(undecided_key(run_values.text(stage), mode))
            if note is not None:
                old: Json = {missing_facts.UNDECIDED: note.get("text")}
                self._note_decision(stage, note, old, now["chosen"], None, {})
            else:
                self._check_end()
                self._session.note(Divergence(EXTRA, f"decision {stage}", None, None, now["chosen"]))
            if refusal is not None:
                raise refusal
            return replace(made, span=self.started.get("span"))
        if not form.same(then.get("chosen"), now["chosen"]):
            changes = fact_changes(then.get("facts"), now["facts"], partial=facts.partial)
            change = rule_change(then, now, [rule_said(each.to_json(), hidden) for each in rules], changes)
            self._note_decision(stage, then, then.get("chosen"), now["chosen"], change, changes)
        if refusal is not None:
            raise refusal
        return replace(made, rationale=then.get("rationale"), span=then.get("span"))

    def choice(self, stage: str, made: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> Verdict | None:
        """Compare an agent's own choice with the recorded one; the run continues with the agent's."""
        self._step()
        what, key = f"decision {stage}", choice_key(stage)

        def fits(body: Body) -> bool:
            given = body.get("facts")
            return isinstance(given, dict) and same_facts(given, facts, hidden)

        then = self._next(key, lambda body: fits(body) and form.same(body.get("chosen"), made["chosen"]))
        then = then or self._next(key, fits) or self._next(key)
        if then is None:
            self._check_end()
            self._session.note(Divergence(EXTRA, what, None, None, made["chosen"]))
            return choice_of({**made, "stage": stage, "span": self.started.get("span")})
        if not form.same(then.get("chosen"), made["chosen"]):
            changes = fact_changes(then.get("facts"), cast("Any", made["facts"]), partial=False)
            self._note_decision(stage, then, then.get("chosen"), made["chosen"], None, changes)
        return choice_of(then)

    def _note_decision(
        self, stage: str, then: Body, old: Json, new: Json, change: RuleChange | None, facts: Mapping[str, Json]
    ) -> None:
        words = decision_words(old, new, change, facts)
        what, step = f"decision {stage}", step_number(then)
        self._session.note(Divergence(DECISION, what, step, old, new, change, facts or None, words))

    def take(self, call: Call) -> Report:
        """Return the recorded report of a write of the run; nothing is written."""
        context, verb = call.context, call.verb
        if call.redact is not None:
            with context.engine.view(context.tenant) as view:
                call.hide(view)
        arguments, key = call.arguments, call.key
        if verb.startswith("run.") or verb in ("judge", "interpretation.ended"):
            return _nothing(self._at)
        if key is None and self._is_awaited:
            return self._planned(call)[1]
        if key is None:
            self._stop_write(verb, f"it writes past the run; write with run.{verb}")
        self._step()
        said = {name: form.decode(bytes(item)) if isinstance(item, bytes) else item for name, item in arguments.items()}
        with context.engine.view(context.tenant) as view:
            receipt = view.receipt(context.agent, key)
            if receipt is not None and receipt.request == request_of(verb, arguments):
                found = receipts.report_again(view, context.policies, receipt).but(repeated=False)
                self._written(view, found.positions)
                self._at = max(self._at, found.position)
                return found
        is_new, report = self._planned(call)
        if not is_new:  # a write without new values left no trace in the log
            return report
        self._check_end()
        left = next(iter(self._unwritten()), None)
        old, new = None if left is None else self._recorded_observation(left), run_values.bounded(said)
        words = write_words(old, new)
        self._session.stop(Divergence(NOT_RECORDED, f"write {verb}", None, old, new, difference=words))

    def report(self, key: str) -> Report | None:
        """Return the report of a write that a fork has from its parent, before the edit."""
        context, fork, known = self._log.context, self.started, set[object]()
        with context.engine.view(context.tenant) as view:
            while isinstance(place := fork.get("forked_from"), dict) and place.get("run") not in known:
                known.add(place.get("run"))
                if view.receipt(str(fork.get("agent")), f"{fork.get('run')}.{key}") is not None:
                    return None
                parent = in_order(entry_index.run_entries(view, str(place.get("run")), view.head().position))
                fork = start_of(parent)
                receipt = view.receipt(str(fork.get("agent")), f"{fork.get('run')}.{key}")
                if receipt is not None:
                    found = receipts.report_again(view, context.policies, receipt)
                    is_before = all(
                        self._recorded_observation(at)["step"] < place["step"] for at in found.positions[:1]
                    )
                    return found if is_before else None
        return None

    @property
    def _is_awaited(self) -> bool:
        """True if the agent's function has not started its run yet: earlier writes are no part of it."""
        return self.run is not None and self.run.is_aside and self.run.successor is None

    def _planned(self, call: Call) -> tuple[bool, Report]:
        """Plan a write without appending it; return whether it has new statements, and its report."""
        context = call.context
        with context.engine.view(context.tenant) as view:
            before = Reader(view, AsOf(self._at), context.policies)
            now, log = view.head().recorded_at or context.clock.now(), view.head().log or ""
            draft = Draft(cast("Transaction", view), before, now, context.agent, context.clock, log)
            call.plan(draft)
            draft.settle()
            if not draft.items:
                return False, nothing_new(draft)
            entities = tuple(str(ref) for ref in dict.fromkeys(said.entity for said in draft.said))
            observations = tuple(said.id for said in draft.said)
            return True, _nothing(self._at).but(observations=observations, entities=entities, id=draft.id)

    def refuse_write(self, what: str) -> None:
        self._stop_write(what, "it writes past the run, to a server")

    def _stop_write(self, what: str, problem: str) -> NoReturn:
        """Stop at a write that the run is not part of; after the end of the run it is no part of the replay either."""
        if self.run is not None and self.run.ended:
            self._session.leave()
        self._step()
        self._session.stop(Divergence(NOT_KEPT, f"write {what}", None, None, problem))

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

    def _recorded_observation(self, position: int) -> dict[str, Any]:
        """Return a recorded observation."""
        from woodrat.state import observation

        with self._log.context.engine.view(self._log.context.tenant) as view:
            entry = view.entry(position)
        assert entry is not None and entry.body is not None
        found = observation.stored(entry.body)
        return {"entity": str(found.entity), "fields": dict(found.fields), "step": found.optional.get("step")}

    # -- the run itself, where the agent's function begins it, and runs inside of it

    def is_begun_by(self, told: Mapping[str, Json], *, certain: bool) -> bool:
        """Return True if a starting run is this one; another start is a divergence."""
        changes = beginning_changes(self.started, told)
        if not certain:
            untouched = self._session.steps == 0 and not self.is_inner
            return untouched and not changes and self._find_inside(told) is None
        for name in changes:
            self._session.note(beginning_divergence(name, self.started.get(name), told.get(name)))
        return True

    def passed(self) -> None:
        if self.run is not None and self.run.ended:
            self._session.leave()
        problem = "the function begins several runs, and this is not the replayed one"
        self._session.stop(Divergence(NOT_KEPT, "run beside", None, None, problem))

    def awaits(self, told: Mapping[str, Json]) -> bool:
        """Return True if such a run is on record and has not been started again yet."""
        return self._find_inside(told) is not None or self.is_begun_by(told, certain=False)

    def _find_inside(self, told: Mapping[str, Json]) -> Playback | None:
        wanted = spelled(begun_with(told))
        left = [found for found in self.inside() if found.run is None]
        exact = (found for found in left if spelled(begun_with(found.started)) == wanted)
        return next(exact, None) or next((found for found in left if begun_alike(found.started, told)), None)

    def child(self, log: InnerRuns, beginning: Mapping[str, Json]) -> Playback:
        self._step()
        found = self._find_inside(beginning)
        if found is not None:
            return found
        self._check_end()
        asked = {name: beginning[name] for name in ("agent", "query", "inputs") if name in beginning}
        left = next((found.started for found in self.inside() if found.run is None), None)
        old = None if left is None else {name: left[name] for name in asked if name in left}
        new, words = cast("Json", asked), value_words(old, cast("Json", asked))
        self._session.stop(Divergence(NOT_RECORDED, "run inside", step_number(left), old, new, difference=words))

    def inside(self) -> list[Playback]:
        """Return the recordings of the runs that this one started, in the order they began."""
        if self._inside is None:
            with self._log.context.engine.view(self._log.context.tenant) as view:
                through = view.head().position
                named = self._session.around.kin.get(str(self.started.get("run")), ())
                self._inside = [
                    Playback(self._log, entry_index.run_entries(view, id, through), self._session, is_inner=True)
                    for id in named
                ]
        return self._inside

    def joined(self, run: object) -> None:
        """Receive the entries of the run, in place of the log."""
        assert isinstance(run, Run) and isinstance(run.log, LocalLog), "a replay is of a log of this process"
        self.run = run
        run.log.redirect(self)

    # -- remaining records

    def _step(self) -> None:
        self._session.step(len(self._steps))

    def _next(self, key: tuple[Any, ...], fits: Callable[[Body], bool] | None = None) -> Body | None:
        """Return the next recorded step of this name that fits."""
        with self._lock:
            return self._find(key, fits)

    def _answer(self, key: tuple[Any, ...], fits: Callable[[Body], bool]) -> Body | None:
        return self._next(key, fits)

    def _next_named(self, kind: str, name: str) -> Body | None:
        """Return the next recorded call of this name, with any arguments."""
        for at, body in self._left():
            if at == f"run.{kind}" and body.get("name" if kind == "tool" else "model") == name:
                with self._lock:
                    for queue in self._waiting.values():
                        with suppress(ValueError):
                            queue.remove(body)
                return body
        return None

    def _left(self) -> list[tuple[str, Body]]:
        """Return the unused recorded steps, in order; notes do not count."""
        with self._lock:
            waiting = {id(body) for queue in self._waiting.values() for body in queue}
            return [
                (kind, body)
                for kind, body in self._steps
                if id(body) in waiting and body.get("span") not in self._left_out and kind != "run.noted"
            ]

    def decisions_not_made(self) -> int:
        """Return the number of recorded decisions inside tools that the recording answered."""
        with self._lock:
            return sum(kind == "run.decided" and body.get("span") in self._left_out for kind, body in self._steps)

    def _check_end(self) -> None:
        """Stop, without a difference, where an interrupted run stopped."""
        if self.ended is None and not self._left() and not self._unwritten():
            self._session.stop(None)

    def compare_end(self, error: BaseException | None) -> None:
        """Compare the end of the run, and list missing steps, once the agent is done."""
        raised = None if error is None else run_values.error(error)
        recorded = None if self.ended is None else self.ended.get("error")
        if not form.same(recorded, raised):
            words = value_words(recorded, raised)
            step = step_number(self.ended)
            self._session.note(Divergence(RAISED, "agent", step, recorded, raised, difference=words))
        if raised is None or recorded is not None:
            self._compare_steps()
        if raised is None:
            self._compare_answer("answer")

    def _compare_steps(self) -> None:
        """Compare requests with recorded ones, also of child runs."""
        note = self._session.note
        for kind, body in self._left():
            note(Divergence(MISSING, step_words(kind, body), step_number(body), asked_by(kind, body), None))
        for position in self._unwritten():
            said = self._recorded_observation(position)
            note(Divergence(MISSING, f"write {said['entity']}", said["step"], said, None))
        for inside in self.inside():
            inside.compare_as_inner()

    def compare_as_inner(self) -> None:
        """Compare a run inside another; the agent around it has seen its end."""
        run, note, query = self.run, self._session.note, self.started.get("query")
        if run is None:
            note(Divergence(MISSING, f"run inside ({query})", step_number(self.started), query, None))
            return
        # An inner error was for the surrounding agent to handle; only the fact of an error is known here.
        then = None if self.ended is None else self.ended.get("status")
        if then is not None and run.status is not None and (then == ERROR) != (run.status == ERROR):
            note(Divergence(ANSWER, f"end of the run inside ({query})", step_number(self.ended), then, run.status))
            return
        self._compare_steps()
        if run.status != ERROR:
            self._compare_answer(f"answer of the run inside ({query})")

    def _compare_answer(self, what: str) -> None:
        if self.ended is None or self.run is None:
            return
        old, new = self.ended.get("answer"), answer_of(self.run)
        if not form.same(old, new):
            words = value_words(old, new)
            self._session.note(Divergence(ANSWER, what, step_number(self.ended), old, new, difference=words))


def answer_of(run: Run) -> Json:
    """Return the answer of a run, as its end would record it."""
    return None if run.answered is None else run_values.bounded(run.answered, hidden=run.hidden)


def _nothing(position: int) -> Report:
    none: tuple[Any, ...] = ()
    return Report(
        position=position, positions=none, observations=none, known=none, entities=none, changes=none, conflicts=none,
        by_arrival=none, hints=none,
    )  # fmt: skip


def replay_one(
    log: LocalLog, id: str, agent: Callable[..., Any], session: ReplaySession, presented: Callable[[Run], Any] | None
) -> ReplayedRun:
    """Replay one run and return the comparison."""
    with log.context.engine.view(log.context.tenant) as view:
        playback = Playback(log, entry_index.run_entries(view, id, view.head().position), session)
    started = playback.started
    run = begun_again(log, id, started, "note")
    run.take_over(playback)
    error: BaseException | None = None
    try:
        call = agent_call(agent, run, presented)
        run.is_aside = call.begins_run
        with run:
            result = _settled(call())
            answer_with(run, result)
    except KeyboardInterrupt:
        raise
    except NotKept as missing:
        session.note(Divergence(NOT_KEPT, f"input {missing.input}", 0, None, "it was not stored whole"))
        session.stopped = True
    except BaseException as problem:
        error = ended_by(problem)[1]
    began = playback.run
    assert began is not None, "a playback answers a run"
    if not session.stopped:
        if began is not run and began.ended:
            error = began.error  # the function's later work, and anything after its run, is not part of the run
        if run.is_aside and began is run and error is None:
            session.note(Divergence(MISSING, "beginning of the run", 0, started.get("query"), None))
        else:
            playback.compare_end(error)
        session.stopped = True  # a remaining thread is stopped at its next step
    return ReplayedRun(
        id,
        agent=_text(started.get("agent")),
        query=_text(started.get("query")),
        subject=_text(started.get("subject")),
        interrupted=playback.ended is None,
        steps=session.steps,
        answer=answer_of(began),
        divergences=tuple(session.divergences),
        problems=unrestored_values(playback.run for playback in session.playbacks),
        not_made_again=sum(playback.decisions_not_made() for playback in session.playbacks),
    )


def unrestored_values(runs: Iterable[Run | None]) -> tuple[str, ...]:
    """Return the recorded values that the agent got in another form, in order of use."""
    problems = (problem for run in runs if run is not None for problem in run.problems)
    return tuple(str(problem) for problem in problems if isinstance(problem, UnrestoredValue))


def _settled(result: Any) -> Any:
    """Return the result of an agent's function; a coroutine runs in a separate event loop."""
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


def basis_of(started: Body) -> int:
    """Return the position a run began at; before all where its beginning does not say."""
    basis = started.get("basis")
    position = basis.get("position") if isinstance(basis, dict) else None
    return position if type(position) is int else BEFORE_ALL

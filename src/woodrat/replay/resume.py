"""Answering: an interrupted run carried on, its recorded steps answered from the log.

A step is recognised by its kind, name and arguments; equal ones are answered in the order they were recorded. The first
step that the log does not hold ends the answering: from there on everything is done live, but for tools marked `once`,
whose recorded effects are never repeated wherever they come up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.ownership import check_owner, unknown_run
from woodrat.ledger.write import Writer
from woodrat.records import dataclass
from woodrat.runs import current, gaps, values
from woodrat.runs.owner import is_part, owner_of
from woodrat.runs.rules import RAISE, Verdict, all_chosen, attempt, refusal_of, shown_when
from woodrat.runs.steps import Decision, part_of
from woodrat.runs.streams import drained

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from woodrat.api.ledger import Ledger
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.log.entry import Entry
    from woodrat.runs.facts import Facts
    from woodrat.runs.recorder import Begun, Run
    from woodrat.runs.rules import Rule

FAIL, RETRY = "fail", "retry"
"""What becomes of a `once` call that began and whose end nobody knows: it is refused, or made again."""

OnUnknown = str | Callable[[str, Any], Any]
"""`fail`, `retry`, or a function of a tool's name and arguments that finds out the result and returns it."""

Body = dict[str, Any]
_MARKS: Final = (values.TRUNCATED, values.UNSERIALISABLE)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What came of carrying on a run."""

    run: str
    """Id of the run."""
    status: str
    """How it ended."""
    answer: Any
    """What it answered."""
    result: Any
    """What the agent's function returned."""
    from_log: int
    """How many steps the log answered."""
    unused: int
    """How many recorded steps the agent's function did not ask for again."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "run": self.run,
            "status": self.status,
            "answer": values.plain(self.answer),
            "result": values.plain(self.result),
            "from_log": self.from_log,
            "unused": self.unused,
        }


Steps = Sequence[tuple[str, Body]]
"""The entries of a run as (kind, body), in their order."""


class Recording:
    """What the log holds of a run, handed out step by step."""

    replays: ClassVar[bool] = False
    """Whether the run is only replayed: what the log does not hold is not done, and nothing is written."""

    def __init__(self, steps: Steps, on_unknown: OnUnknown = FAIL, *, live: bool = False) -> None:
        self._steps = steps
        self._on_unknown = on_unknown
        self._lock = threading.Lock()
        self._live = live
        self._waiting: dict[tuple[Any, ...], deque[Body]] = {}
        self._left_out: set[str] = set()
        self._children: list[Recording] | None = None
        self.answered = 0
        """How many steps were answered."""
        self.has_ended = any(kind == "run.ended" for kind, _ in steps)
        """Whether the run came to its end; it is then only carried on as part of another."""
        done = {body.get("span") for kind, body in steps if kind == "run.tool" and body.get("begun") is not True}
        spans: set[tuple[str, Any]] = set()
        for kind, body in steps:
            if kind == "run.tool" and body.get("begun") is True and body.get("span") in done:
                continue
            if kind == "run.read":
                if (kind, body.get("span")) in spans:
                    continue  # a search is one step, however many entities it found
                spans.add((kind, body.get("span")))
            key = _key(kind, body)
            # A part that was recorded elsewhere in another shape is none that a step of here could ask for.
            if key is not None and not any(isinstance(part, dict | list) for part in key):
                self._waiting.setdefault(key, deque()).append(body)

    @classmethod
    def of_family(cls, told: Sequence[Steps], on_unknown: OnUnknown) -> Recording:
        """Return the recording of the first of these runs; the others were started inside of it, at any depth."""
        made = [cls(steps, on_unknown) for steps in told]
        for one in made:
            one._children = [other for other in made if _parent(other.started) == one.started.get("run")]
        return made[0]

    @property
    def started(self) -> Body:
        """What the run was begun with."""
        return _start_of(self._steps)

    @property
    def unused(self) -> int:
        """How many recorded steps nobody asked for."""
        with self._lock:
            return sum(body.get("span") not in self._left_out for queue in self._waiting.values() for body in queue)

    def cut(self) -> None:
        """From here on everything is done live, but for tools marked `once`."""
        with self._lock:
            self._live = True

    def _take(
        self, key: tuple[Any, ...], *, fits: Callable[[Body], bool] | None = None, once: bool = False
    ) -> Body | None:
        """Return the next recorded step of this name that fits; there being none, everything is live from now on."""
        with self._lock:
            if self._live and not once:
                return None
            queue = self._waiting.get(key, deque())
            for body in list(queue):
                if body.get("span") in self._left_out:
                    queue.remove(body)
                elif fits is None or fits(body):
                    queue.remove(body)
                    self.answered += 1
                    return body
            self._live = True
            return None

    def _leave_out(self, span: object) -> None:
        """What happened inside a call that is answered does not happen again."""
        inside = [span]
        while inside:
            around = inside.pop()
            for _, body in self._steps:
                if body.get("under") == around and body.get("span") not in self._left_out:
                    self._left_out.add(str(body.get("span")))
                    inside.append(body.get("span"))

    def tool(self, name: str, args: Json, *, once: bool) -> Body | None:
        """Return the recorded call of a tool, if it can be answered.

        One that has only begun comes back so (`begun`): with a result that is to be recorded, or without one, to be
        called again in its old place.
        """
        key = ("run.tool", name, spelled(args))
        body = self._take(key, fits=None if once else is_answerable, once=once)
        if body is None:
            return None
        if body.get("begun") is True:
            return self._unknown(name, args, body, "it began, and whether it took effect is not known", retries=True)
        if not is_answerable(body):
            told = "it took effect, but its result could not be kept whole"
            return self._unknown(name, args, body, told, retries=False)
        return body

    def _unknown(self, name: str, args: Json, body: Body, problem: str, *, retries: bool) -> Body:
        """Settle a `once` call whose result the log does not hold: never by calling it, unless asked to."""
        if callable(self._on_unknown):
            found = values.bounded(self._on_unknown(name, args))
            return {**body, "errored": False, "result": found}
        if self._on_unknown == RETRY and retries:
            self.cut()
            return body
        remedy = "Find out what came of it and resume with on_unknown=function, which returns the result"
        remedy += ", or with on_unknown='retry' to call it again." if retries else "."
        raise Refused(
            [Fault(f"tool {name}", f"{problem} (span {body.get('span')})", remedy)], "It was not called again."
        )

    def model(self, model: str, request: str) -> Body | None:
        """Return the recorded call of a model, if it can be answered."""
        return self._take(("run.model", model, request), fits=is_answerable)

    def answered_whole(self, body: Mapping[str, Json]) -> None:
        """Take note that a call is answered without being made; of a block the steps inside happen again."""
        with self._lock:
            self._leave_out(body.get("span"))

    def differed(self, kind: str, name: str, recorded: Mapping[str, Json], now: Mapping[str, Json]) -> None:
        """Take note of a block that came out differently from what is recorded."""
        self.cut()

    def read(self, verb: str, args: Mapping[str, Json], as_of: int | None, effective: str | None) -> int | None:
        """Return the position a recorded read was answered at."""
        asked = args["ref"] if verb == "show" else spelled(dict(args))
        body = self._take(("run.read", verb, asked, as_of, effective))
        return None if body is None else int(body["position"])

    def note(self, said: Mapping[str, Json]) -> bool:
        """Return whether a remark is recorded already."""
        return self._take(("run.noted", spelled(dict(said)))) is not None

    def wrote(self, repeated: bool) -> None:
        """Take note of a write; one that was new was not recorded."""
        with self._lock:
            if repeated:
                self.answered += 1
            else:
                self._live = True

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
        """Return the verdict of a recorded decision that was made on the same facts by the same rules.

        One that was not made then, for the same reason, is `Refused` as it was.
        """
        if self._waiting.get(undecided_key(values.text(stage), mode)):
            made_now = attempt(facts, rules, default, mode, hidden=hidden, stage=stage, on_missing=on_missing)
            refusal = refusal_of(made_now)
            if refusal is not None and self._take_undecided(made_now) is not None:
                raise refusal
        wanted = [rule_said(rule.to_json(), hidden) for rule in rules]

        def fits(body: Body) -> bool:
            tried = [rule_said(each) for each in body.get("rules", ())]
            same = "omitted" not in body and len(tried) <= len(wanted)
            same = same and body.get("on_missing", RAISE) == on_missing
            return same and equal(tried, wanted[: len(tried)]) and same_facts(body.get("facts", {}), facts, hidden)

        body = self._take(("run.decided", values.text(stage), mode), fits=fits)
        if body is None:
            return None
        made = part_of("run.decided", 0, body)
        assert isinstance(made, Decision)
        matched = tuple(index for index, tried in enumerate(made.rules) if tried.matched)
        labels = tuple(made.rules[index].label for index in matched)
        chosen: Any = [rules[index].chosen for index in matched]
        if mode == "select":
            chosen = all_chosen(chosen, default)
        else:
            chosen = chosen[0] if chosen else default
        about: dict[str, Any] = {"stage": stage, "rationale": made.rationale, "span": body.get("span")}
        about["on_missing"] = on_missing
        return Verdict(mode, chosen, matched, labels, made.rules, **about)

    def _take_undecided(self, verdict: Verdict) -> Body | None:
        """Return the note of a decision that was not made then as it is not made now."""
        stage = values.text(verdict.stage)
        said = gaps.undecided(stage, verdict.mode, gaps.gaps_of(verdict.rules))
        queue = self._waiting.get(undecided_key(stage, verdict.mode), ())
        if not any(equal(body.get("data"), said["data"]) for body in queue):
            return None
        return self._answer(undecided_key(stage, verdict.mode), lambda body: equal(body.get("data"), said["data"]))

    def _answer(self, key: tuple[Any, ...], fits: Callable[[Body], bool]) -> Body | None:
        """Return the next recorded step of this name that fits, where there is one."""
        return self._take(key, fits=fits)

    # -- runs inside of it

    def child(self, ledger: Ledger, beginning: Mapping[str, Json]) -> Recording | None:
        """Return the recording of a run that was started inside of this one with the same beginning."""
        with self._lock:
            if self._children is None:
                self._children = [Recording(steps, self._on_unknown) for steps in _inside(ledger, self.started)]
            wanted = spelled(begun_with(beginning))
            for found in self._children:
                if spelled(begun_with(found.started)) == wanted:
                    self._children.remove(found)
                    found._live = self._live
                    self.answered += 1
                    return found
            self._live = True
            return None

    def take_over(self, run: Run) -> None:
        """Put a run where the recorded one stopped."""
        started = self.started
        run.id, run.span = str(started["run"]), str(started["span"])
        # A beginning that says only that there was one leaves the time to the first step.
        timed = (str(body["started_at"]) for _, body in self._steps if "started_at" in body)
        run.started_at = str(started["started_at"]) if "started_at" in started else min(timed, default="")
        run._shared = True
        run._next_step = 1 + max(body["step"] for _, body in self._steps if type(body.get("step")) is int)
        run._last_at = max(str(body.get("started_at", "")) for _, body in self._steps)
        basis = started.get("basis")
        if isinstance(basis, dict):
            run._log, run.basis = basis.get("log"), basis.get("position")
        trace = started.get("trace")
        run._trace = trace.split("-")[1] if isinstance(trace, str) and current.traced(trace) else None
        run._state = "running"
        if not self.replays:
            run._live()
        run._note_inputs()
        run.recording = self


def check_id(run: object) -> str:
    """Return a run's id, if it can be one."""
    from woodrat.runs.recorder import NOTHING_RECORDED

    if not isinstance(run, str):
        raise Refused([Fault("run", f"expected a run's id, got {shown(run)}", "Send it as text.")], NOTHING_RECORDED)
    return run


def steps_of(ledger: Ledger, run: object) -> list[tuple[str, Body]]:
    """Return the entries of a run as (kind, body), in the order of its steps; `NotFound` when there are none."""
    run = check_id(run)
    with ledger.context.engine.view(ledger.tenant) as view:
        found = in_order(view.run(run, view.head().position))
    if not found:
        raise unknown_run(run)
    return found


def in_order(entries: Iterable[Entry]) -> list[tuple[str, Body]]:
    """Return the entries of one run as (kind, body), each body once, in the order that docs/formats/runs.md gives them.

    What other agents said is no part of it.
    """
    found: dict[tuple[Any, ...], tuple[str, Body]] = {}
    for entry in entries:
        if entry.body is None or not entry.kind.startswith("run."):
            continue
        body = form.decode(entry.body)
        if isinstance(body, dict):
            rank = {"run.started": 0, "run.ended": 2}.get(entry.kind, 1)
            at = (str(body.get("started_at")), body["step"] if type(body.get("step")) is int else 0)
            found[(rank, *at, str(body.get("span")), digest(entry.kind, entry.body))] = (entry.kind, body)
    steps = [found[key] for key in sorted(found)]
    agent = owner_of(str(steps[0][1].get("run")) if steps else "", steps)
    return [(kind, body) for kind, body in steps if is_part(kind, body, agent)]


def family(ledger: Ledger, run: str) -> list[Steps]:
    """Return the steps of a run, and after it those of all runs that were started inside of it, at any depth."""
    found: list[Steps] = [steps_of(ledger, run)]
    for steps in found:  # it grows meanwhile
        found += _inside(ledger, _start_of(steps))
    return found


def _inside(ledger: Ledger, started: Body) -> list[Steps]:
    """Return the steps of the runs that a run started, in the order they began."""
    basis = started.get("basis")
    after = basis["position"] if isinstance(basis, dict) and type(basis.get("position")) is int else -1
    found: list[Steps] = []
    with ledger.context.engine.view(ledger.tenant) as view:
        for entry in view.entries(after, kinds={"run.started"}):
            body = form.decode(entry.body) if entry.body is not None else {}
            if _parent(body) == started.get("run"):
                found.append(in_order(view.run(body["run"], view.head().position)))
    return found


def _start_of(steps: Steps) -> Body:
    """Return what a run was begun with; nothing where its beginning is missing."""
    return next((body for kind, body in steps if kind == "run.started"), {})


def _parent(started: Body) -> object:
    """Return the run that a run was started inside of, by its beginning."""
    parent = started.get("parent")
    return parent.get("run") if isinstance(parent, dict) else None


_BEGINNING: Final = frozenset({"agent", "query", "subject", "principal", "conversation", "inputs", "code", "recall"})


def begun_with(body: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a run inside another is recognised by."""
    return {name: value for name, value in body.items() if name in _BEGINNING}


def _key(kind: str, body: Body) -> tuple[Any, ...] | None:
    """Return what a recorded step is recognised by."""
    match kind:
        case "run.tool":
            return (kind, body.get("name"), spelled(body.get("args")))
        case "run.model":
            return (kind, body.get("model"), body.get("request"))
        case "run.decided":
            return (kind, body.get("stage"), body.get("mode"))
        case "run.read":
            verb, args = body.get("within", "show"), body.get("args")
            asked = (args or {}).get("ref", body.get("entity")) if verb == "show" else spelled(args)
            return (kind, verb, asked, body.get("as_of"), body.get("effective"))
        case "run.noted":
            data = body.get("data")
            if isinstance(data, dict) and data.get("event") in ("resumed", "continued"):
                return None
            if isinstance(data, dict) and gaps.is_undecided(data):
                return undecided_key(data.get("stage"), data.get("mode"))
            return (kind, spelled({name: body[name] for name in ("data", "text") if name in body}))
    return None


def undecided_key(stage: object, mode: object) -> tuple[Any, ...]:
    """Return what the note of a decision that was not made is recognised by."""
    return (gaps.UNDECIDED, stage, mode)


def is_answerable(body: Body) -> bool:
    """Return whether what a call came to is there whole."""
    if body.get("begun") is True:
        return False
    return bool(body.get("errored")) or values.is_whole(body.get("result", body.get("response")))


def spelled(value: object) -> bytes:
    """Return a value as the bytes it is recognised by."""
    return form.serialise(value)


def equal(one: object, other: object) -> bool:
    """Return whether two values have the same canonical form."""
    return form.serialise(one) == form.serialise(other)


def rule_said(said: Mapping[str, Any], hidden: Collection[str] = values.NOTHING) -> dict[str, Json]:
    """Return what tells rules apart, within the bounds that a record of them has."""
    return {
        "label": said.get("label"),
        "chosen": values.bounded(said.get("chosen"), values.ITEM_BYTES_MAX, hidden),
        "when": values.bounded(shown_when(said.get("when"), hidden), values.VALUE_BYTES_MAX),
        "predicate": said.get("predicate"),
    }


def same_facts(recorded: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> bool:
    """Return whether a decision was recorded with these facts, as far as a record shows them."""
    if not facts.partial and set(recorded) != set(facts.values):
        return False
    for name, value in recorded.items():
        if name not in facts.values:
            return False
        if name in hidden:
            continue
        if not equal(value, values.bounded(facts.values[name], values.ITEM_BYTES_MAX, hidden)):
            return False
    return True


# -- the verbs --------------------------------------------------------------------------------------------------------


def carried_on(ledger: Ledger, run_id: str, *, on_unknown: OnUnknown = FAIL, on_error: str = "note") -> Run:
    """Return an interrupted run, its recorded steps ready to answer; it has taken note of being resumed."""
    check_on_unknown(on_unknown)
    steps = steps_of(ledger, run_id)
    check_owner(ledger.agent, run_id, owner_of(run_id, steps), "Nothing was resumed.")
    if _is_recorded(ledger, run_id):
        problem = "this process is recording it"
        raise Refused([Fault(f"run {run_id}", problem, "End it, or let it end.")], "Nothing was resumed.")
    recording = Recording(steps, on_unknown)
    if recording.has_ended:
        status = next(body.get("status") for kind, body in steps if kind == "run.ended")
        problem = f"it has ended ({status})"
        remedy = "Only a run without an end is resumed; start another."
        raise Refused([Fault(f"run {run_id}", problem, remedy)], "Nothing was resumed.")
    run = begun_again(ledger, run_id, recording.started, on_error)
    recording.take_over(run)
    begun = run._begun()
    said: dict[str, Json] = {"text": "The run was resumed.", "data": {"event": "resumed", "recorded": len(steps)}}
    try:
        _claim(run, "resume", begun, said, steps)
    except Refused as refusal:
        problem = "somebody else has resumed it at the same moment"
        raise Refused(
            [Fault(f"run {run_id}", problem, "See what comes of that first.")], "Nothing was resumed."
        ) from refusal
    return run


def check_on_unknown(on_unknown: object) -> None:
    """Refuse what says nothing about a call whose end nobody knows."""
    if not callable(on_unknown) and on_unknown not in (FAIL, RETRY):
        remedy = "Use fail, retry, or a function of the tool's name and arguments."
        raise Refused([Fault("on_unknown", f"got {shown(on_unknown)}", remedy)], "Nothing was resumed.")


def _claim(run: Run, verb: str, begun: Begun, said: dict[str, Json], steps: Steps) -> None:
    """Note that a run is taken over here. Of two who do so after the same entries, one is refused."""
    from woodrat.state.meaning import Step

    if not run._is_living:
        raise Refused([Fault(f"run {run.id}", "this process is recording it", "End it, or let it end.")])
    event = _event("run.noted", said)
    times = sum(_event(kind, body) == event for kind, body in steps)
    body = values.fit({**begun.body(run.id), **said, "agent": run.agent})
    arguments: dict[str, Json] = {"run": run.id, "span": begun.span}
    try:
        # The key is the same for whoever comes after the same entries, in another process too.
        Writer(current.write_context(run.ledger.context)).write(
            verb, arguments, lambda draft: draft.add("run.noted", body, Step(run.id)), key=f"{run.id}.{verb}.{times}"
        )
    except BaseException:
        run._leave()
        raise


def _is_recorded(ledger: Ledger, run_id: str) -> bool:
    from woodrat.runs.recorder import Run

    return Run.is_recorded(ledger, run_id)


def continued(
    ledger: Ledger, run_id: str | None = None, *, ends: bool = False, on_error: str = "note", alone: bool = False
) -> Run:
    """Return a run of another process, to be recorded into from here as well; `alone` is refused to all but one."""
    from woodrat.runs.recorder import NOTHING_RECORDED

    if run_id is None:
        place, trace = current.named_by_environment()
        place = place or current.traced(trace)
        if place is None:
            problem = f"neither an id nor {current.RUN_VARIABLE} names one"
            remedy = "Send the run's id, or start this process with the variables of run.environment()."
            raise Refused([Fault("run", problem, remedy)], NOTHING_RECORDED)
    else:
        place = current.traced(run_id) or current.place_of(run_id) if isinstance(run_id, str) else None
    steps = steps_of(ledger, run_id if place is None else place.run)
    assert place is not None
    check_owner(ledger.agent, place.run, owner_of(place.run, steps), NOTHING_RECORDED)
    recording = Recording(steps, live=True)
    if recording.has_ended:
        raise Refused([Fault(f"run {place.run}", "it has ended", "Judge it, or start another.")], NOTHING_RECORDED)
    run = begun_again(ledger, place.run, recording.started, on_error)
    recording.take_over(run)
    run.recording = None
    run._ends = ends
    run._under = place.span if place.span != run.span else None
    remember(run, steps)
    begun = run._begun()
    # Keys of this process are its own: what it writes is not a repetition of what another wrote.
    run._recorder = f"{begun.span}."
    said: dict[str, Json] = {"text": "The run was continued in another process.", "data": {"event": "continued"}}
    if alone:
        _claim(run, "continue", begun, said, steps)
    else:
        run._record("run.noted", begun, {**begun.body(run.id), **said})
    return run


def _event(kind: str, body: Body) -> object:
    data = body.get("data") if kind == "run.noted" else None
    return data.get("event") if isinstance(data, dict) else None


def begun_again(ledger: Ledger, run_id: str, started: Body, on_error: str) -> Run:
    """Return a run as its beginning in the log describes it."""
    from woodrat.runs.start import begin

    if not started:
        problem = "its beginning is not in the log"
        raise Refused([Fault(f"run {run_id}", problem, "Start another run.")], "Nothing was resumed.")
    return begin(
        ledger,
        started.get("query", ""),
        subject=started.get("subject"),
        conversation=started.get("conversation"),
        principal=started.get("principal"),
        inputs=started.get("inputs") if not values.is_mark(started.get("inputs")) else None,
        agent=started.get("agent"),
        code=started.get("code"),
        redact=started.get("redact", ()),
        on_error=on_error,
        recall=started.get("recall") is True,
    )


def remember(run: Run, steps: Steps) -> None:
    """Let a run know what it has read and been answered in another process."""
    from woodrat.canon.ids import parse_ref

    for kind, body in steps:
        if kind == "run.tool" and "result" in body:
            run._called("tool", str(body.get("span")), body["result"])
        elif kind == "run.model" and "response" in body:
            run._called("model", str(body.get("span")), body["response"])
        elif kind == "run.read" and isinstance(body.get("fields"), dict) and isinstance(body.get("entity"), str):
            with suppress(Refused):  # what a recorder elsewhere calls an entity may be none
                remember_read(run, parse_ref(body["entity"]), body)


def remember_read(run: Run, entity: Ref, body: Body) -> None:
    """Let a run know what it has read of an entity in another process."""
    from woodrat.runs.links import READS

    for name, item in body["fields"].items():
        told = item.get("observations", [item.get("observation")]) if isinstance(item, dict) else []
        named = [id for id in told if isinstance(id, str)] if isinstance(told, list) else []
        if not named:
            continue
        origin = {"kind": "read", "entity": body["entity"], "field": name, "observations": named}
        if values.is_whole(item.get("value")):
            run._links.add(READS, name, item["value"], {**origin, "position": body.get("position")})
        run._links.see(entity, named)


def resume(
    ledger: Ledger, run_id: str, agent: Callable[..., Any], *, on_unknown: OnUnknown = FAIL, on_error: str = "note"
) -> Resumed:
    """Carry on an interrupted run with the agent's function; of an async function, in a loop of its own."""
    from inspect import iscoroutine

    run = ledger._carry_on(run_id, on_unknown=on_unknown, on_error=on_error)
    with run:
        result = invoke(agent, run)
        if iscoroutine(result):
            import asyncio

            result = asyncio.run(result)
        answer_with(run, result)
    return resumed(run, result)


def invoke(agent: Callable[..., Any], run: Any) -> Any:
    """Call an agent's function with its run; one that `ledger.recorded` made is given its inputs again.

    A generator is read to its end.
    """
    function = getattr(agent, "recorded_function", None)
    return drained(agent(run) if function is None else function(**run.inputs))


def answer_with(run: Run, result: object) -> None:
    """Take what the agent's function returned as the answer, unless the run has one."""
    if run.answered is None and result is not None and not run.ended:
        run.answer(result)


def resumed(run: Run, result: object) -> Resumed:
    """Return what came of a run that was carried on."""
    assert run.recording is not None and run.status is not None
    return Resumed(run.id, run.status, run.answered, result, run.recording.answered, run.recording.unused)

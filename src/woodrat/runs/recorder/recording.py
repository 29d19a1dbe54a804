"""Recordings: what the log holds of a run, answering its steps when it is carried on.

A step is recognised by its kind, name and arguments; equal ones are answered in the order they were recorded. The first
step that the log does not hold ends the answering: from there on everything is done live, but for tools marked `once`,
whose recorded effects are never repeated wherever they come up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from woodrat.canon import form, ids
from woodrat.canon.digest import digest
from woodrat.errors import Fault, Refused, shown
from woodrat.runs import missing_facts, values
from woodrat.runs.recorder import current
from woodrat.runs.recorder.recalls import RECALL, RecordedRecall, recorded_recall
from woodrat.runs.recorder.restoration import restored
from woodrat.runs.rules import RAISE, Verdict, all_chosen, attempt, refusal_of, rule_said, verdict_of
from woodrat.runs.shape import SHAPE
from woodrat.runs.steps import decision_of
from woodrat.state.run_owner import is_part, owner_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from woodrat.canon.form import Json
    from woodrat.ledger.report import Report
    from woodrat.log.entry import Entry
    from woodrat.runs.facts import Facts
    from woodrat.runs.rules import Rule

_STEPS: Final = frozenset({"run.read", "run.tool", "run.model", "run.decided", "run.noted"})

FAIL, RETRY, RESOLVE = "fail", "retry", "resolve"
"""What becomes of a `once` call that began and whose end nobody knows: the run is not resumed, the call is made again,
or whoever resumes the run finds out the result."""

OnUnknown = str | Callable[[str, Any], Any]
"""`fail`, `retry`, or a function of a tool's name and arguments that finds out the result and returns it."""


NOT_REPEATED: Final = "It was not called again."
_BEGUN: Final = "it began, and whether it took effect is not known"
_CUT: Final = "it took effect, but its result could not be kept whole"


class UnknownOutcome(Refused):
    """A `once` call has no result in the log, and may have taken effect; its run stays interrupted."""


Body = dict[str, Any]
Steps = Sequence[tuple[str, Body]]
"""The entries of a run as (kind, body), in their order."""


class InnerRuns(Protocol):
    """A log that runs are started in from inside of others."""

    def runs_inside(self, started: Body) -> Sequence[Steps]:
        """Return the steps of the runs that a run started, in the order they began."""


class Recording:
    """What the log holds of a run, handed out step by step."""

    replays: ClassVar[bool] = False
    """Whether the run is only replayed: what the log does not hold is not done, and nothing is written."""

    copies: ClassVar[bool] = False
    """Whether it answers another run than the recorded one, which records what it is answered as steps of its own."""

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
        self._run = str(self.started.get("run"))
        self._start = str(self.started.get("span"))
        self._before, self.latest = _predecessors(steps, self._start)

    @classmethod
    def of_family(cls, told: Sequence[Steps], on_unknown: OnUnknown) -> Recording:
        """Return the recording of the first of these runs; the others were started inside of it, at any depth."""
        made = [cls(steps, on_unknown) for steps in told]
        for one in made:
            one.adopt(other for other in made if parent_of(other.started) == one.started.get("run"))
        return made[0]

    def adopt(self, inner: Iterable[Recording]) -> None:
        """Take the recordings of the runs that this one started; they are not looked for in the log then."""
        self._children = list(inner)

    @property
    def started(self) -> Body:
        """What the run was begun with."""
        return start_of(self._steps)

    @property
    def began_at(self) -> str:
        """When the run began; a beginning that says only that there was one leaves it to the first step."""
        timed = (str(body["started_at"]) for _, body in self._steps if "started_at" in body)
        return str(self.started["started_at"]) if "started_at" in self.started else min(timed, default="")

    @property
    def last_at(self) -> str:
        """When its last step began."""
        return max(str(body.get("started_at", "")) for _, body in self._steps)

    @property
    def next_step(self) -> int:
        """The number of the step after those that are recorded."""
        return 1 + max(int(body["step"]) for _, body in self._steps if type(body.get("step")) is int)

    def joined(self, run: object) -> None:
        """Hear which run it answers from now on."""

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
        """Return the recorded step of this name that fits; there being none, everything is live from now on.

        Of several equal ones it is the one that came after the same step in its thread or task, or else the first. Once
        everything is live, a step still answers where its thread or task has taken the recorded steps so far; and so
        does a model, which is not paid twice for the same request.
        """
        with self._lock:
            body = self._find(key, fits, in_place=self._live and not once and key[0] != "run.model")
            if body is not None:
                return body
            self._live = True
        current.mark_step(self._run, current.LIVE)
        return None

    def _find(
        self, key: tuple[Any, ...], fits: Callable[[Body], bool] | None, *, in_place: bool = False
    ) -> Body | None:
        """Return the recorded step of this name that fits and take it out; `in_place` wants the one that comes next."""
        queue = self._waiting.get(key)
        if not queue:
            return None
        last = current.last_step(self._run, self._start)
        first: Body | None = None
        chosen: Body | None = None
        for body in list(queue):
            if body.get("span") in self._left_out:
                continue
            is_next = self._before.get(str(body.get("span"))) == last
            if (is_next or first is None) and (fits is None or fits(body)):
                first = first or body
                if is_next:
                    chosen = body
                    break
        if chosen is None and not in_place:
            chosen = first
        if chosen is not None:
            queue.remove(chosen)
            self.answered += 1
            current.mark_step(self._run, str(chosen.get("span")))
        return chosen

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
            return self._unknown(name, args, body, _BEGUN, retries=True)
        return body if is_answerable(body) else self._unknown(name, args, body, _CUT, retries=False)

    def _unknown(self, name: str, args: Json, body: Body, problem: str, *, retries: bool) -> Body:
        """Settle a `once` call whose result the log does not hold: never by calling it, unless asked to."""
        if callable(self._on_unknown):
            try:
                found = values.bounded(self._on_unknown(name, args), values.RESULT_BYTES_MAX)
            except Exception as error:
                told = f"{problem}, and on_unknown failed ({type(error).__name__}: {error})"
                raise UnknownOutcome([_unknown_fault(body, told, retries=retries)], NOT_REPEATED) from error
            return {**body, "errored": False, "result": found}
        if self._on_unknown == RETRY and retries:
            self.cut()
            return body
        raise UnknownOutcome([_unknown_fault(body, problem, retries=retries)], NOT_REPEATED)

    def check_settled(self) -> None:
        """Refuse to go on where `once` calls, in runs inside too, can be neither answered nor made again."""
        faults = self._unsettled()
        if faults:
            raise UnknownOutcome(faults, "Nothing was resumed; the run stays interrupted.")

    def _unsettled(self) -> list[Fault]:
        if callable(self._on_unknown) or self._on_unknown == RESOLVE:
            return []
        faults = [fault for inner in self._children or () for fault in inner._unsettled()]  # noqa: SLF001 - one class
        for body in (body for key, queue in self._waiting.items() if key[0] == "run.tool" for body in queue):
            if body.get("begun") is True:
                if self._on_unknown != RETRY:
                    faults.append(_unknown_fault(body, _BEGUN, retries=True))
            elif body.get("once") is True and not is_answerable(body):
                faults.append(_unknown_fault(body, _CUT, retries=False))
        return faults

    def model(self, model: str, request: str, messages: Json = None, parameters: Json = None) -> Body | None:
        """Return the recorded call of a model, if it can be answered."""
        return self._take(("run.model", model, request), fits=is_answerable)

    def prompt(self, model: str, request: str) -> Json:
        """Return the messages that a call of a model sends in place of its own, in a fork; none otherwise."""
        return None

    def stop(self, statement: str) -> None:
        """End a fork that cannot go on."""

    def is_edited(self, body: Mapping[str, Json]) -> bool:
        """Return whether an answer was edited, in a fork."""
        return False

    def answering(self, reads: Any) -> Any:
        """Return the reads that answer the read that was asked for last; in a fork they may show what was edited."""
        return reads

    def report(self, key: str) -> Report | None:
        """Return what a write of the recorded run was answered, in a fork; it is not written again then."""
        return None

    def copied(self, body: Mapping[str, Json], begun: Any, run: str) -> dict[str, Json]:
        """Return the entry of another run that a recorded step becomes, in a fork."""
        raise NotImplementedError

    def copy_inside(self, run: Any, span: object, new: str) -> None:
        """Copy what happened inside a call that is answered whole, in a fork."""

    def answered_whole(self, body: Mapping[str, Json]) -> None:
        """Take note that a call is answered without being made; of a block the steps inside happen again."""
        with self._lock:
            self._leave_out(body.get("span"))

    def read_on(self, kind: str, name: str, body: Mapping[str, Json]) -> None:
        """Refuse to read a stream further than it was read when it was recorded: its rest is nowhere."""
        problem = "it is read further than when it was recorded, where its reader stopped"
        fault = Fault(f"{kind} {name}", problem, "Stop at the same item, or start another run.")
        raise Refused([fault], "Nothing was read.")

    def differed(self, kind: str, name: str, recorded: Mapping[str, Json], now: Mapping[str, Json]) -> None:
        """Take note of a block that came out differently from what is recorded."""
        self.cut()

    def read(self, verb: str, args: Mapping[str, Json], as_of: int | None, effective: str | None) -> int | None:
        """Return the position a recorded read was answered at."""
        asked = args["ref"] if verb == "show" else spelled(dict(args))
        body = self._take(("run.read", verb, asked, as_of, effective))
        return None if body is None else int(body["position"])

    def recall(self, args: Json, as_of: int | None) -> RecordedRecall | None:
        """Return a recorded recall."""
        body = self._take(("run.read", RECALL, spelled(args), as_of, None))
        return None if body is None else recorded_recall(body)

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

    def refuse_write(self, what: str) -> None:
        """Stop the agent before it writes to a server, in a replay."""

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
            same = same and form.serialise(tried) == form.serialise(wanted[: len(tried)])
            return same and same_facts(body.get("facts", {}), facts, hidden)

        body = self._take(("run.decided", values.text(stage), mode), fits=fits)
        if body is None:
            return None
        made = decision_of(body)
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

    def choice(self, stage: str, made: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> Verdict | None:
        """Return the verdict of a recorded choice without rules: the same was chosen, on the same facts."""

        def fits(body: Body) -> bool:
            return form.same(body.get("chosen"), made["chosen"]) and same_facts(body.get("facts", {}), facts, hidden)

        body = self._take(choice_key(stage), fits=fits)
        return None if body is None else choice_of(body)

    def _take_undecided(self, verdict: Verdict) -> Body | None:
        """Return the note of a decision that was not made then as it is not made now."""
        stage = values.text(verdict.stage)
        said = missing_facts.undecided(stage, verdict.mode, missing_facts.gaps_of(verdict.rules))
        queue = self._waiting.get(undecided_key(stage, verdict.mode), ())
        if not any(form.same(body.get("data"), said["data"]) for body in queue):
            return None
        return self._answer(undecided_key(stage, verdict.mode), lambda body: form.same(body.get("data"), said["data"]))

    def _answer(self, key: tuple[Any, ...], fits: Callable[[Body], bool]) -> Body | None:
        """Return the next recorded step of this name that fits, where there is one."""
        return self._take(key, fits=fits)

    # -- the run itself, where the agent's function begins it, and runs inside of it

    def is_begun_by(self, told: Mapping[str, Json], *, certain: bool) -> bool:
        """Return whether a run that is being begun is this one; `certain` says that the function begins it itself."""
        if certain and not begun_alike(self.started, told):
            problem = f"the function began another run, {shown(told.get('query'))} with other inputs or another subject"
            remedy = "Resume it with the function that began it."
            fault = Fault(f"run {self.started.get('run')}", problem, remedy)
            raise Refused([fault], "The run was not resumed.")
        return certain

    def passed(self) -> None:
        """Hear that the agent's function begins a run after this one, or beside it."""

    def child(self, log: InnerRuns, beginning: Mapping[str, Json]) -> Recording | None:
        """Return the recording of a run that was started inside of this one with the same beginning."""
        with self._lock:
            if self._children is None:
                self._children = [Recording(steps, self._on_unknown) for steps in log.runs_inside(self.started)]
            wanted = spelled(begun_with(beginning))
            for found in self._children:
                if spelled(begun_with(found.started)) == wanted:
                    self._children.remove(found)
                    if self._live:
                        found.cut()
                    self.answered += 1
                    return found
            self._live = True
            return None


def _unknown_fault(body: Body, problem: str, *, retries: bool) -> Fault:
    remedy = "Find out what came of it and resume with on_unknown=function, which returns the result"
    remedy += ", or with on_unknown='retry' (--on-unknown retry) to call it again." if retries else "."
    return Fault(f"tool {body.get('name')}", f"{problem} (span {body.get('span')})", remedy)


def _predecessors(steps: Steps, start: str) -> tuple[dict[str, str], dict[str | None, str]]:
    """Return by step the one before it in its thread or task: the one it names, or else the one before it in the run.

    Also return the last step inside each call.
    """
    found: dict[str, str] = {}
    latest: dict[str | None, str] = {}
    for kind, body in steps:
        span, under = body.get("span"), body.get("under")
        under = under if isinstance(under, str) else None
        if kind in _STEPS and isinstance(span, str) and span not in found:
            after = body.get("after")
            found[span] = after if isinstance(after, str) else latest.get(under, under or start)
            latest[under] = span
    return found, latest


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


def start_of(steps: Steps) -> Body:
    """Return what a run was begun with; nothing where its beginning is missing."""
    return next((body for kind, body in steps if kind == "run.started"), {})


def parent_of(started: Body) -> object:
    """Return the run that a run was started inside of, by its beginning."""
    parent = started.get("parent")
    return parent.get("run") if isinstance(parent, dict) else None


_BEGINNING: Final = frozenset({"agent", "query", "subject", "principal", "conversation", "inputs", "code", "recall"})


def begun_with(body: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a run inside another is recognised by."""
    return {name: value for name, value in body.items() if name in _BEGINNING}


def begun_alike(recorded: Mapping[str, Json], told: Mapping[str, Json]) -> bool:
    """Return whether a run is begun as one that is on record was; another version of its code makes no other run."""
    return not beginning_changes(recorded, told)


def beginning_changes(recorded: Mapping[str, Json], told: Mapping[str, Json]) -> list[str]:
    """Return what a run is begun with that differs from one on record, by name."""
    names = sorted(_BEGINNING - {"code", "agent"})
    changes = [name for name in names if not form.same(recorded.get(name), told.get(name))]
    subject = told.get("subject")
    if "subject" in changes and isinstance(subject, str) and ids.is_id("entity", subject):
        changes.remove("subject")  # on record is its reference
    return changes


def _key(kind: str, body: Body) -> tuple[Any, ...] | None:
    """Return what a recorded step is recognised by."""
    match kind:
        case "run.tool":
            return (kind, body.get("name"), spelled(body.get("args")))
        case "run.model":
            return (kind, body.get("model"), body.get("request"))
        case "run.decided" if "chosen_by" in body:
            return choice_key(body.get("stage"))
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
            if isinstance(data, dict) and missing_facts.is_undecided(data):
                return undecided_key(data.get("stage"), data.get("mode"))
            return (kind, spelled({name: body[name] for name in ("data", "text") if name in body}))
    return None


def undecided_key(stage: object, mode: object) -> tuple[Any, ...]:
    """Return what the note of a decision that was not made is recognised by."""
    return (missing_facts.UNDECIDED, stage, mode)


def choice_key(stage: object) -> tuple[Any, ...]:
    """Return what a choice without rules is recognised by."""
    return ("chosen_by", values.text(stage) if isinstance(stage, str) else stage)


def choice_of(body: Body) -> Verdict:
    """Return the verdict that a recorded choice was."""
    return verdict_of(decision_of(body), str(body.get("run")))


def is_answerable(body: Body) -> bool:
    """Return whether what a call came to is there whole."""
    if body.get("begun") is True:
        return False
    if body.get("errored") and "stream" not in body:
        return True
    kept = body.get("result", body.get("response"))
    # What JSON cannot say may still be there whole, in the shape beside it.
    return values.is_whole(kept) or (SHAPE in body and restored(kept, body[SHAPE]).is_whole)


def spelled(value: object) -> bytes:
    """Return a value as the bytes it is recognised by."""
    return form.serialise(value)


def same_facts(recorded: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> bool:
    """Return whether a decision was recorded with these facts, as far as a record shows them."""
    if not facts.partial and set(recorded) != set(facts.values):
        return False
    for name, value in recorded.items():
        if name not in facts.values:
            return False
        if name in hidden:
            continue
        if not form.same(value, values.bounded(facts.values[name], values.ITEM_BYTES_MAX, hidden)):
            return False
    return True

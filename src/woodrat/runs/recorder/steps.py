"""Steps: a run's steps numbered, timed and handed to its log, whatever the run does in them.

Recording never breaks the agent: what cannot be recorded is kept in `problems` and warned of, unless the run was asked
to raise (`on_error="raise"`). Where the entries go is for the log to say (`RunLog`): to an engine of this process
(`log.py`) or to a server.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager, suppress
from inspect import currentframe
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from woodrat.canon import moment
from woodrat.clock import not_before
from woodrat.errors import Fault, Refused
from woodrat.runs import trace, values
from woodrat.runs.facts import INPUTS, READS, Links
from woodrat.runs.recorder import current
from woodrat.state.redaction import hiding
from woodrat.state.run_owner import fresh_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.canon.moment_words import Time
    from woodrat.clock import Clock
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.report import Report
    from woodrat.merge.snapshot import Snapshot
    from woodrat.runs.recorder.beginning import Beginning
    from woodrat.runs.recorder.recording import Body, Recording, Steps
    from woodrat.state.fact import Origin

NOTE, RAISE = "note", "raise"
"""What becomes of a recording problem: it is kept and warned of, or it is raised."""
NEW, RUNNING, ENDED = "new", "running", "ended"
"""The states of a recorder."""

PROBLEMS_MAX: Final = 100
"""How many problems a run keeps."""

NOTHING_RECORDED = "Nothing was recorded."


class RecordingWarning(UserWarning):
    """A step of a run could not be recorded; the agent went on."""


class MissingFact(Exception):
    """A fact that a rule asked for was missing or could not be compared; among the problems of a run."""


class UnrestoredValue(Exception):
    """A value that a replay cannot hand to the agent as it was; among the problems of a run."""


class Begun(NamedTuple):
    """A step that has begun: its number, what tells it apart, when, and who records it."""

    step: int
    span: str
    at: str
    under: str | None
    agent: str
    after: str | None = None
    """The step before it in its thread or task, where that is not the one before it in the run."""

    def body(self, run: str) -> dict[str, Json]:
        """Return what every body says."""
        said: dict[str, Json] = {
            "run": run,
            "agent": self.agent,
            "step": self.step,
            "span": self.span,
            "started_at": self.at,
        }
        if self.after is not None:
            said["after"] = self.after
        return said if self.under is None else {**said, "under": self.under}


class Reads(Protocol):
    """The verbs that read, at one moment of a log."""

    @property
    def position(self) -> int:
        """The position reads are answered at."""

    @property
    def valid_at(self) -> str | None:
        """What was true by this time alone counts; None: whenever it was true."""

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> Reads:
        """Return the reads as of another moment, or as it was true by another time."""

    def ask(self, verb: str, *arguments: Any, **given: Any) -> Any:
        """Return the answer of a reading verb."""


class RunLog(Protocol):
    """Where one run is recorded: its entries go here, and its reads are answered from here."""

    @property
    def agent(self) -> str:
        """Who records."""

    @property
    def clock(self) -> Clock:
        """The time of the log, and chance."""

    @property
    def hidden(self) -> frozenset[str]:
        """Keys whose values are redacted before anything is recorded."""

    @property
    def ledger(self) -> Any:
        """What the caller opened; None where nobody did."""

    @property
    def reads(self) -> Reads:
        """The verbs that read, at the present."""

    @property
    def is_waiting(self) -> bool:
        """Whether entries wait for a log that could not be reached."""

    def by(self, agent: str | None) -> RunLog:
        """Return the same log for another run, of another agent or of this one."""

    def is_same(self, other: object) -> bool:
        """Return whether another is the same log; a run never names one of another tenant."""

    def hold(self, run: StepRecorder) -> bool:
        """Let others know that a run is being recorded here; return whether it was nobody else's."""

    def release(self, run: StepRecorder) -> None:
        """Let others know that it is not any more."""

    def start(self, run: StepRecorder) -> None:
        """Record the beginning of a run."""

    def adopted(self, around: RunLog) -> None:
        """Hear that the run takes the place of one that is on record, inside another that is carried on."""

    def append(self, run: StepRecorder, kind: str, begun: Begun, bodies: Sequence[dict[str, Json]]) -> Exception | None:
        """Record the entries of one step and return what went wrong; what could not be sent waits for the next one."""

    def end(self, run: StepRecorder, begun: Begun, body: dict[str, Json]) -> Exception | None:
        """Record the end of a run and return what went wrong."""

    def flush(self, run: StepRecorder) -> Exception | None:
        """Try once more to record what waits, and return what went wrong."""

    def write(self, step: WriteStep, verb: str, arguments: Sequence[Any], about: Mapping[str, Any]) -> Report:
        """Carry out a verb of the library that writes, as a step of a run."""

    def interpretation(self, step: WriteStep, source: str, about: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Read a source, as a step of a run."""

    def judge(self, run: str, verdict: str, hidden: frozenset[str], about: Mapping[str, Any]) -> Report:
        """Say what is thought of a run."""

    def schema_at(self, entity: str, position: int) -> str | None:
        """Return the full name of the schema in force for an entity's type at a position, where that is known here."""

    def runs_inside(self, started: Body) -> Sequence[Steps]:
        """Return the steps of the runs that a run started, in the order they began."""


class WriteStep(Protocol):
    """A step of a run that writes."""

    run: str
    """Id of the run."""
    step: int
    """Number of the step."""
    counter: str
    """Who counts equal requests of the run; empty for the process that began it."""
    hidden: frozenset[str]
    """Keys whose values the run hides."""

    def saw(self, entities: Iterable[Ref]) -> Sequence[str]:
        """Return the observations of these entities that the run has read."""

    def key(self, verb: str, given: Mapping[str, object]) -> str:
        """Return the idempotency key of a call that states none: the same when the run is resumed and says it again."""


class ModelPlace(NamedTuple):
    """A call of a model, by which a choice can be told to be that model's."""

    model: str
    span: str
    step: int


class StepRecorder:
    """The steps of one run, recorded one after the other; what the verbs of a run are made of."""

    def __init__(
        self,
        log: RunLog,
        beginning: Beginning,
        *,
        id: str | None = None,
        redact: Iterable[str] = (),
        on_error: str = NOTE,
    ) -> None:
        self.log = log
        """Where it is recorded."""
        self.beginning = beginning
        """What it was begun with."""
        self.hidden = hiding(log.hidden, redact)
        """Keys whose values are hidden in what it records."""
        self.on_error = on_error
        """What becomes of recording problems."""
        self.has_stated_id = id is not None
        """Whether the caller chose the id."""
        self.lock = threading.RLock()
        """Guards what threads share: numbers, links and counts."""
        self.state = NEW
        """Whether it is new, running or ended."""
        self.is_held = False
        """Whether this process is known to record it."""
        self.ends = True
        """Whether it ends with its block; not where it is only continued."""
        self.next_step = 0
        """The number of the next step."""
        self.last_at: str | None = None
        """When its last step began: the next begins no earlier."""
        self.unrecorded: set[int] = set()
        """The numbers of steps that have left nothing so far."""
        self.is_shared = False
        """Whether others have recorded steps of it, so that the log is asked which numbers left nothing."""
        self.links = Links()
        """Where values may have come from."""
        self.usage = {"input": 0, "output": 0}
        """Tokens spent so far."""
        self.models: dict[str, ModelPlace] = {}
        """The last call of a model inside each span, and of all under the empty one."""
        self.called: dict[str, int] = {}
        """How often each tool was called, by its name, answered from the log or not."""
        self.written: dict[str, int] = {}
        """How often each request was written, by its name."""
        self.latest: dict[str | None, str] = {}
        """By the call inside which they are, the step that began last."""
        self.forks: dict[str, int] = {}
        """By the step they come after, how many threads were begun."""
        self.counter = ""
        """Who counts equal requests; empty for the process that began the run."""
        self.counted: tuple[str, int] | None = None
        """While a step of another process is written: the process that counts equal requests, and its count before."""
        self.log_name: str | None = None
        """The name of the log it began on."""
        self.trace: str | None = None
        """The trace id it was begun with, where that is not its own."""
        self.under: str | None = None
        """The step of the run inside which it is continued here."""
        self.recording: Recording | None = None
        """What the log answers while the run is resumed; none otherwise."""
        self.inherited: Recording | None = None
        """What answers from the recording of another run, once this one has started; none but in a fork."""
        self.problems: list[Exception] = []
        """What could not be recorded, which facts rules asked for and did not get (`MissingFact`), and which values a
        replay cannot hand out as they were (`UnrestoredValue`)."""
        self._spans: Iterator[str] | None = None
        self.span: str = self.fresh_span()
        """The span of its beginning."""
        self.id: str = id if id is not None else fresh_run(log.clock.now(), self.agent, self.span)
        """The run's id; final once it has started."""
        self.started_at: str | None = None
        """When it began."""
        self.basis: int | None = None
        """The position of the log it began at; `pinned()` reads there."""
        self.status: str | None = None
        """How it ended; none while it runs."""
        self.is_aside = False
        """Whether it only stands in, while replayed or resumed, for a run that the agent's function begins itself."""
        self.successor: StepRecorder | None = None
        """The run that the agent's function began itself in its place."""

    @property
    def agent(self) -> str:
        """Who runs."""
        return self.log.agent

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended, and takes no further steps; a replay keeps hold of what outlives it."""
        return self.state == ENDED and not (self.recording is not None and self.recording.replays)

    # -- whether this process records it

    def hold(self) -> None:
        """Let others know that the run is being recorded here."""
        if self.log.hold(self):
            self.is_held = True

    def release(self) -> None:
        """Record it here no longer, without an end: another process may continue it."""
        if self.is_held:
            self.log.release(self)
            self.is_held = False

    def take_over(self, recording: Recording) -> None:
        """Go on where a recorded run stopped, its recorded steps answered from the recording."""
        started = recording.started
        self.id, self.span = str(started["run"]), str(started["span"])
        self.started_at, self.last_at = recording.began_at or None, recording.last_at
        self.is_shared, self.next_step = True, recording.next_step
        basis = started.get("basis")
        if isinstance(basis, dict):
            self.log_name, self.basis = basis.get("log"), basis.get("position")
        traceparent = started.get("trace")
        self.trace = trace.trace_of(traceparent) if trace.traced(traceparent) else None
        self.state = RUNNING
        if not recording.replays:
            self.hold()
        self.note_inputs()
        self.recording, self.latest = recording, dict(recording.latest)
        recording.joined(self)

    def hand_over(self, successor: StepRecorder) -> None:
        """Let a run that the agent's function began itself go on in the place of this one, in the same log."""
        assert self.recording is not None, "only what is replayed or resumed has a place to give"
        self.release()
        self.state, self.is_aside, self.successor = ENDED, True, successor
        successor.move_to(self.log)
        successor.take_over(self.recording)

    def move_to(self, log: RunLog) -> None:
        """Be recorded in another log than the one it was made for, before it starts."""
        self.log = log.by(self.agent)

    # -- one step

    def place(self) -> str:
        """Return the span the caller is inside of."""
        frame = current.current_frame()
        return frame.span if frame is not None and frame.run is self else self.under or self.span

    def fresh_span(self) -> str:
        """Return the span of the next step."""
        return self.log.clock.random(8).hex() if self._spans is None else next(self._spans)

    @contextmanager
    def spanned(self, spans: Iterator[str] | None) -> Iterator[None]:
        """Take the spans of the steps recorded inside a block from here; none leaves them to chance."""
        self._spans = spans
        try:
            yield
        finally:
            self._spans = None

    def count_on(self, step: int) -> None:
        """Number the steps that follow from here on, where others have recorded some meanwhile."""
        with self.lock:
            self.is_shared = True
            self.next_step = max(self.next_step, step)

    def take_number(self, span: str | None = None) -> Begun:
        """Take the next step number, whatever state the run is in."""
        with self.lock:
            step = self.next_step
            self.next_step += 1
            self.unrecorded.add(step)
            self.last_at = not_before(self.log.clock.now(), self.last_at)
            place = self.place()
            under = None if place == self.span else place
            return Begun(step, span or self.fresh_span(), self.last_at, under, self.log.agent)

    def begin_step(self) -> Begun | None:
        """Begin a step; none when the run cannot take one, which is a problem."""
        with self.lock:
            over = self.recording is not None and self.recording.has_ended
            if self.state == RUNNING and not over:
                return self._placed(self.take_number())
            ended = over or self.state == ENDED
        if ended:
            self.settle(refused(self.id, "it has ended", "Record before its end, or start another run."))
        else:
            self.settle(refused(self.id, "it has not started", "Use it as a context manager, or call start()."))
        return None

    def _placed(self, begun: Begun) -> Begun:
        """Return a step that says what it comes after in its thread or task, where that does not go without saying."""
        before, last = self.latest.get(begun.under, begun.under or self.span), current.last_step(self.id, self.span)
        self.latest[begun.under] = begun.span
        current.mark_step(self.id, begun.span)
        return begun if last in (before, current.LIVE) else begun._replace(after=last)

    def fork(self) -> str:
        """Return what the first step of another thread comes after: the last step here, and which thread it is."""
        last = current.last_step(self.id, self.span)
        with self.lock:
            number = self.forks[last] = self.forks.get(last, -1) + 1
        return f"{last}/{number}"

    def record_step(self, kind: str, begun: Begun, *bodies: dict[str, Json]) -> None:
        """Record the entries of one step."""
        self.settle(self.log.append(self, kind, begun, bodies))

    def settle(self, problem: Exception | None) -> None:
        """Raise a problem or keep it, as the run was asked to."""
        if problem is None:
            return
        if self.on_error == RAISE:
            raise problem
        self.keep_problem(problem)

    def keep_problem(self, problem: Exception) -> None:
        """Keep a problem and warn of it."""
        with self.lock:
            if len(self.problems) < PROBLEMS_MAX:
                self.problems.append(problem)
        # Warnings may be errors in this process; a recording problem still must not break the agent.
        with suppress(Warning):
            warnings.warn(f"{self.id}: {problem}", RecordingWarning, stacklevel=_levels_to_the_agent())

    def keep_missing(self, problems: Iterable[str]) -> None:
        """Keep what rules asked for and did not get among the problems of the run, each once."""
        self._keep_once(map(MissingFact, problems))

    def keep_unrestored(self, what: str, step: object, problems: Iterable[str]) -> None:
        """Keep which values of a step no replay can hand out as they were among the problems, each once."""
        place = f"{what}, step {step}" if type(step) is int else what
        self._keep_once(UnrestoredValue(f"{place}: cannot be restored: {problem}") for problem in problems)

    def _keep_once(self, problems: Iterable[Exception]) -> None:
        """Keep problems that are the agent's to know of and need no warning, each once."""
        for problem in problems:
            with self.lock:
                known = any(type(each) is type(problem) and str(each) == str(problem) for each in self.problems)
                if not known and len(self.problems) < PROBLEMS_MAX:
                    self.problems.append(problem)

    # -- what it hides

    def hiding(self, redact: Iterable[str], outcome: str = NOTHING_RECORDED) -> frozenset[str]:
        """Return the keys that a step hides: those of the run and its own."""
        return hiding(self.hidden, redact, outcome)

    def hidden_further(self, hidden: frozenset[str]) -> list[Json]:
        """Return the keys that one step hides beyond those of the run; its entry says them."""
        return [] if hidden is self.hidden else [*sorted(set(hidden).difference(self.hidden))]

    # -- where values came from

    def link(self, name: str, value: Json) -> Origin | None:
        """Return where a plain value of this name came from, as far as the run has met it."""
        with self.lock:
            return self.links.find(name, value)

    def note_inputs(self) -> None:
        """Remember what the run was given."""
        for name, value in self.beginning.inputs.items():
            self.links.add(INPUTS, str(name), values.plain(value), {"kind": "input", "name": str(name)})

    def note_snapshot(self, snapshot: Snapshot, origins: Mapping[str, Origin]) -> None:
        """Remember what a snapshot showed."""
        with self.lock:
            for name, origin in origins.items():
                if origin["kind"] != "read":
                    continue  # edited, in a fork
                self.links.add(READS, name, snapshot.fields[name], origin)
                self.links.see(snapshot.entity, origin["observations"])

    def note_result(self, kind: str, span: str, result: Json) -> None:
        """Remember what a call returned."""
        if not values.is_mark(result):
            with self.lock:
                self.links.add_result(kind, span, result)

    def note_model(self, call: ModelPlace, *spans: str) -> None:
        """Remember a call of a model as the last one inside some spans."""
        with self.lock:
            self.models.update(dict.fromkeys(spans, call))

    def latest_model(self) -> ModelPlace | None:
        """Return the call of a model that the caller is in, or the last one inside the same step, or of the run."""
        with self.lock:
            return self.models.get(self.place()) or self.models.get("")

    def note_usage(self, usage: Mapping[str, Json]) -> None:
        """Add up what a call cost."""
        with self.lock:
            for name in self.usage:
                count = usage.get(name)
                self.usage[name] += count if type(count) is int else 0


def current_recorder() -> StepRecorder | None:
    """Return the run that decisions and tools record into here; none outside of one."""
    frame = current.current_frame()
    recorder: StepRecorder | None = None if frame is None else frame.run
    return recorder


def refused(run: str, problem: str, remedy: str, outcome: str = NOTHING_RECORDED) -> Refused:
    """Return the error for something that a run cannot do."""
    return Refused([Fault(f"run {run}", problem, remedy)], outcome)


def milliseconds(start: str, end: str) -> int:
    """Return how long something took; never less than nothing, whatever the clock did."""
    if start[:20] == end[:20]:  # mostly within one second: two moments that nobody else asks about are not read whole
        micros = int(end[20:26]) - int(start[20:26])
    else:
        micros = moment.to_micros(end) - moment.to_micros(start)
    return max(0, micros) // 1_000


def _levels_to_the_agent() -> int:
    """Return how many frames of ours lie between a warning and the agent's code, which it should point at."""
    frame, level = currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("woodrat."):
        frame, level = frame.f_back, level + 1
    return level

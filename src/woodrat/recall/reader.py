"""The recall reader: runs of a ledger that a question is about. Finding none is an answer, with its reasons."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from woodrat.canon import form, moment
from woodrat.errors import Fault, Refused, WoodratError, shown
from woodrat.ledger.moments import NO_READ, open_reader
from woodrat.ledger.read import Reader
from woodrat.merge.packing import garbled
from woodrat.recall import embedders
from woodrat.recall import index as recall_index
from woodrat.recall.identifiers import asked_for
from woodrat.recall.search import Match, Matches, Question, search
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, replace
from woodrat.runs import projection as projections
from woodrat.runs.account import INTERRUPTED, RUNNING
from woodrat.runs.index import catch_up
from woodrat.runs.index.listing import ANCESTORS_MAX
from woodrat.runs.reader import Recounter
from woodrat.runs.record import RunRecord
from woodrat.runs.recorder.recalls import RecallFound, RecordedRecall
from woodrat.runs.steps import RecalledRun
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.context import Context
    from woodrat.engines.port import View
    from woodrat.recall.embedders import Embedder
    from woodrat.state.fact import Fact

TENANT, PRINCIPAL, CONVERSATION = "tenant", "principal", "conversation"
SCOPES: Final = (TENANT, PRINCIPAL, CONVERSATION)
"""Among whose runs a recall looks."""

QUESTION_BYTES_MAX: Final = 65_536
"""Longest question, in UTF-8; only its beginning is embedded."""
K_MAX: Final = 100
"""Most runs one recall returns."""


@dataclass(frozen=True, slots=True)
class Recalled(Record):
    """One run that a recall found."""

    run: str
    """The run."""
    score: float
    """Cosine of the question and the run's nearest passage."""
    passage: str
    """Which passage that is: `asked`, `decided` or `answered`."""
    position: int
    """The entry it comes from."""
    record: RunRecord
    """What the log holds about the run, as of the moment asked at."""

    def facts(self) -> dict[str, Fact]:
        """Return what the run decided as facts that a decision can be based on, by stage."""
        return self.record.facts()


@dataclass(frozen=True, slots=True)
class NearMiss(Record):
    """One run that came near and was not recalled."""

    run: str
    """The run."""
    score: float
    """Cosine of the question and the run's nearest passage."""
    reason: str
    """Why it was not recalled."""
    query: str | None
    """What the run was asked."""
    started_at: str | None
    """When it began."""


@dataclass(frozen=True, slots=True)
class Recall(Record):
    """The answer to a recall; false when nothing passed."""

    question: str
    """What was asked."""
    hits: tuple[Recalled, ...]
    """The runs recalled: those that decided something first, then by score, then by id."""
    rejected: tuple[NearMiss, ...]
    """The nearest of those that were not, when fewer were found than wanted; follow-up questions last."""
    text: str
    """The hits under the projection asked for; empty when there are none."""
    inject: str
    """The same as a block for a prompt, which marks it as data; empty when there are none."""
    projection: str
    """The projection."""
    scope: str
    """Among whose runs it looked."""
    threshold: float
    """The least score."""
    embedder: str
    """Id of the embedder."""
    position: int
    """The position it was asked at."""

    @derived
    def found(self) -> bool:
        """Whether anything passed."""
        return bool(self.hits)

    def __bool__(self) -> bool:
        return self.found

    def facts(self) -> dict[str, Fact]:
        """Return what the hits decided as facts that a decision can be based on; of one stage the best hit's counts."""
        return {name: fact for hit in reversed(self.hits) for name, fact in hit.facts().items()}


# What was asked


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A recall, checked."""

    question: str
    k: int
    threshold: float
    projection: str
    budget: int | None
    scope: str
    principal: str | None
    conversation: str | None
    ttl_micros: int | None
    embedder: Embedder

    def args(self) -> dict[str, Any]:
        """Return it as a run records it; what was left out is left out."""
        said: dict[str, Any] = {
            "question": self.question,
            "k": self.k,
            "threshold": self.threshold,
            "projection": self.projection,
            "budget": self.budget,
            "scope": self.scope,
            "principal": self.principal,
            "conversation": self.conversation,
            "ttl_micros": self.ttl_micros,
            "embedder": self.embedder.id,
        }
        return {name: value for name, value in said.items() if value is not None}


def ask(
    question: object,
    k: object,
    threshold: object,
    projection: object,
    budget: object,
    scope: object,
    principal: object,
    conversation: object,
    ttl: object,
    embedder: object,
) -> RecallRequest:
    """Return a recall once everything about it is in order; `Refused` says all that is not."""
    faults = question_faults(question)
    if type(k) is not int or not 1 <= k <= K_MAX:
        faults.append(Fault("k", f"got {shown(k)}", f"Send a number of runs, 1 to {K_MAX}."))
    if type(threshold) not in (int, float) or not -1 <= threshold <= 1:  # type: ignore[operator]
        faults.append(Fault("threshold", f"got {shown(threshold)}", "Send a number from -1 to 1, such as 0.5."))
    if projection not in projections.PROJECTIONS:
        known = ", ".join(projections.PROJECTIONS)
        faults.append(Fault("projection", f"there is no projection {shown(projection)}", f"Send one of {known}."))
    if budget is not None and (type(budget) is not int or budget < projections.BUDGET_MIN):
        remedy = f"Send a number of tokens, {projections.BUDGET_MIN} or more, or none."
        faults.append(Fault("budget", f"got {shown(budget)}", remedy))
    faults += scope_faults(scope, principal, conversation)
    age = _micros(ttl, faults)
    if faults:
        raise Refused(faults, NO_READ)
    assert isinstance(question, str) and isinstance(k, int) and isinstance(threshold, int | float)
    assert isinstance(projection, str) and isinstance(scope, str) and (budget is None or isinstance(budget, int))
    return RecallRequest(
        question,
        k,
        float(threshold),
        projection,
        budget,
        scope,
        principal if scope == PRINCIPAL and isinstance(principal, str) else None,
        conversation if scope == CONVERSATION and isinstance(conversation, str) else None,
        age,
        embedders.check(embedder),
    )


def question_faults(question: object) -> list[Fault]:
    """Return what is wrong with a question."""
    if not isinstance(question, str):
        return [Fault("question", f"expected text, got {shown(question)}", "Send the question as text.")]
    found = form.faults(question, "question")
    if not found and not question.strip():
        found = [Fault("question", "it is empty", "Send the question as text.")]
    if not found and len(question.encode()) > QUESTION_BYTES_MAX:
        problem = f"it has {len(question.encode())} bytes in UTF-8, where {QUESTION_BYTES_MAX} is the limit"
        found = [Fault("question", problem, "Send the question alone, without what it is about.")]
    return found


def scope_faults(scope: object, principal: object, conversation: object) -> list[Fault]:
    """Return what is wrong with a scope; it is explicit, so the one meant must be named."""
    if scope not in SCOPES:
        return [Fault("scope", f"there is no scope {shown(scope)}", f"Send one of {', '.join(SCOPES)}.")]
    faults = []
    for name, value in ((PRINCIPAL, principal), (CONVERSATION, conversation)):
        if value is None and scope == name:
            faults.append(
                Fault(name, f"the scope is {name}, and no {name} is named", f"Say which {name}, or widen the scope.")
            )
        elif value is not None and not isinstance(value, str):
            faults.append(Fault(name, f"expected text, got {shown(value)}", f"Send the {name} as text."))
    return faults


def _micros(ttl: object, faults: list[Fault]) -> int | None:
    """Return how old a run may be, from seconds or a `timedelta`."""
    if ttl is None:
        return None
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        faults.append(Fault("ttl", f"got {shown(ttl)}", "Send seconds, 0 or more, or a timedelta."))
        return None
    return round(seconds * 1_000_000)


# Recall


class AskingRun(Protocol):
    """A run that recalls, recorded into the log that is asked."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def ended(self) -> bool:
        """Whether it has ended."""

    def recorded_recall(self, args: Mapping[str, Any], as_of: int | None) -> RecordedRecall | None:
        """Return what its recording holds of a recall, where it is replayed or resumed; none where that is live."""

    def record_recall(self, args: Mapping[str, Any], as_of: int | None, found: RecallFound) -> None:
        """Record a recall as a read."""

    def repeat_recall(
        self, args: Mapping[str, Any], as_of: int | None, known: RecordedRecall, found: RecallFound
    ) -> None:
        """Take note of a recall that its recording answered."""


def recall(context: Context, asked: RecallRequest, now: str | None = None, run: AskingRun | None = None) -> Recall:
    """Answer a recall at the context's moment; `now` is what the age of a run is counted from.

    Without one it is counted from the last entry there was. A recall inside a run is a read of it, and the run is not
    among the answers. When the run is replayed or resumed, its recording answers.
    """
    if run is None or run.ended:
        return _recall(context, asked, now, run)
    args, as_of = asked.args(), _position(context)
    known = run.recorded_recall(args, as_of)
    if known is not None and known.found is not None:
        answer = remake(context, asked, known.found)
        run.repeat_recall(args, as_of, known, found_by(answer))
        return answer
    if known is not None:  # nobody asked this then: it is answered as of then, and not recorded
        return _recall(context.at(known.position, None), asked, None, run)
    try:
        answer = _recall(context, asked, now, run)
    except Refused:
        raise
    except WoodratError as problem:
        with open_reader(context) as reader:
            run.record_recall(args, as_of, RecallFound(reader.asof.position, error=problem))
        raise
    run.record_recall(args, as_of, found_by(answer))
    return answer


def found_by(answer: Recall) -> RecallFound:
    """Return what an answer found, as a run records it."""
    return RecallFound(
        answer.position,
        tuple(RecalledRun(hit.run, hit.score, hit.passage, hit.position) for hit in answer.hits),
        tuple({"run": near.run, "score": near.score, "reason": near.reason} for near in answer.rejected),
        running=frozenset(hit.run for hit in answer.hits if hit.record.status == RUNNING),
        decisions={hit.run: {made.stage: made.chosen for made in hit.record.decisions} for hit in answer.hits},
    )


class FoundRuns(Protocol):
    """The runs of a log at one position, of which an answer tells."""

    @property
    def through(self) -> int:
        """The position."""

    def find(self, id: str) -> RunRecord | None:
        """Return a run's record; none when no entry is part of it."""

    def began(self, id: str) -> Mapping[str, Any]:
        """Return what a run was begun with; nothing where that is not known."""


class LocalRuns(Recounter):
    """The runs of a log of this process."""

    def began(self, id: str) -> Mapping[str, Any]:
        """Return what a run was begun with."""
        return recall_index.started(self.view, id, self.through) or {}


class _RunsThen:
    """The runs of a log as they were shown then: whether one is being recorded now is no matter."""

    def __init__(self, runs: FoundRuns, running: frozenset[str]) -> None:
        self._runs, self._running = runs, running
        self.through = runs.through

    def find(self, id: str) -> RunRecord | None:
        """Return a run's record, with the status it had."""
        record = self._runs.find(id)
        if record is None or record.status not in (RUNNING, INTERRUPTED):
            return record
        return replace(record, status=RUNNING if id in self._running else INTERRUPTED)

    def began(self, id: str) -> Mapping[str, Any]:
        """Return what a run was begun with."""
        return self._runs.began(id)


def remake(context: Context, asked: RecallRequest, found: RecallFound) -> Recall:
    """Return the answer to a recall from what was found then: no embedder is asked, and nothing is searched."""
    with open_reader(context) as reader:
        return remade(LocalRuns(Reader(reader.view, AsOf(found.position), reader.policies)), asked, found)


def remade(runs: FoundRuns, asked: RecallRequest, found: RecallFound) -> Recall:
    """Return the answer to a recall that found these runs."""
    if found.error is not None:
        raise found.error
    hits = tuple(Match(hit.run, hit.score, hit.passage, hit.at) for hit in found.hits)
    near = tuple(Match(each["run"], each["score"], "", 0, each["reason"]) for each in found.rejected)
    return _answer(_RunsThen(runs, found.running), asked, Matches(hits, near))


def _position(context: Context) -> int | None:
    """Return the position of a moment that was asked for; none for the present."""
    if context.moment == "now":
        return None
    with open_reader(context) as reader:
        return reader.asof.position


def _recall(context: Context, asked: RecallRequest, now: str | None, run: AskingRun | None) -> Recall:
    if context.valid_at is not None:
        remedy = "Ask at a moment instead: runs happened when they happened."
        raise Refused([Fault("valid_at", "recall has no valid time", remedy)], NO_READ)
    if context.moment == "now":
        catch_up(context.engine, context.tenant)
    vector = embedders.embed(asked.embedder, [asked.question])[0]
    cached = recall_index.cached_index(context, asked.embedder)
    with cached.lock:
        recall_index.follow(context, asked.embedder, cached)
        with open_reader(context) as reader:
            # The view may show more than the index knows; what came in between is asked about next time.
            position = min(reader.asof.position, cached.index.position)
            question = Question(
                vector=vector,
                identifiers=asked_for(asked.question),
                k=asked.k,
                threshold=asked.threshold,
                through=position,
                principal=asked.principal,
                conversation=asked.conversation,
                since=None if asked.ttl_micros is None else _now(reader.view, position, now) - asked.ttl_micros,
                without=frozenset() if run is None else _asking(reader.view, run.id),
            )
            found = search(cached.index, question)
            return _answer(LocalRuns(Reader(reader.view, AsOf(position), reader.policies)), asked, found)


def _now(view: View, position: int, now: str | None) -> int:
    if now is None:
        last = view.entry(position)
        return 0 if last is None else moment.to_micros(last.recorded_at)
    return moment.to_micros(now)


def _asking(view: View, run: str) -> frozenset[str]:
    """Return the runs that ask: this one and those it was started by. A question is not its own answer."""
    asking: set[str] = set()
    above: object = run
    while isinstance(above, str) and above not in asking and len(asking) < ANCESTORS_MAX:
        asking.add(above)
        parent = (recall_index.started(view, above, view.head().position) or {}).get("parent")
        above = parent.get("run") if isinstance(parent, dict) else None
    return frozenset(asking)


def _answer(runs: FoundRuns, asked: RecallRequest, found: Matches) -> Recall:
    hits = []
    for match in found.hits:
        record = runs.find(match.run)
        if record is None:
            raise garbled(f"{match.run}: the index of runs")
        hits.append(Recalled(match.run, match.score, match.passage, match.position, record))
    records = [hit.record for hit in hits]
    lines = projections.within(projections.lines_of(records, asked.projection), asked.budget)
    return Recall(
        question=asked.question,
        hits=tuple(hits),
        rejected=tuple(_rejected(runs, match) for match in found.rejected),
        text="\n".join(lines),
        inject=projections.injected(records, asked.projection, asked.budget),
        projection=asked.projection,
        scope=asked.scope,
        threshold=asked.threshold,
        embedder=asked.embedder.id,
        position=runs.through,
    )


def _rejected(runs: FoundRuns, match: Match) -> NearMiss:
    assert match.reason is not None
    began = runs.began(match.run)
    query, started_at = began.get("query"), began.get("started_at")
    return NearMiss(
        match.run,
        match.score,
        match.reason,
        query if isinstance(query, str) else None,
        started_at if isinstance(started_at, str) else None,
    )

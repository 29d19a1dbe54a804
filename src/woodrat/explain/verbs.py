"""The verbs of explain: lineage, impact and stale decisions of a ledger, at the moment of a context."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, NotFound, shown
from woodrat.explain.reader import searches
from woodrat.explain.reader import stale as stale_reader
from woodrat.explain.reader.impact import ImpactSearch, direct_place, impact_page
from woodrat.explain.reader.lineage import PLACE, LineageSearch, cut_of, lineage_page, reaches
from woodrat.explain.reader.stale import later_change, was_believed
from woodrat.explain.reader.tracer import Tracer, depth_faults, open_tracer, text_faults
from woodrat.explain.references import evidence, named_observations
from woodrat.ledger.moments import here
from woodrat.ledger.pages import page_request
from woodrat.ledger.read import Reader
from woodrat.records import replace
from woodrat.runs.evidence import Evidence
from woodrat.runs.flip_search import margin_of, origin_sources
from woodrat.runs.margin import FactSource
from woodrat.runs.origin import origin_words
from woodrat.runs.reader.run_reader import RunReader, open_runs, run_record
from woodrat.runs.reader.why import why_page
from woodrat.runs.step_order import STEP_KINDS, numbered_steps
from woodrat.runs.step_page import steps_page
from woodrat.runs.steps import Read
from woodrat.runs.values import REDACTED
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import LineageTree
    from woodrat.explain.stale import Stale
    from woodrat.ledger.pages import Page
    from woodrat.runs.evidence import Document, LaterChange
    from woodrat.runs.reader.why import Reason
    from woodrat.runs.record import RunRecord
    from woodrat.runs.step_page import RunSteps
    from woodrat.runs.steps import Decision


def lineage(context: Context, what: object, *, depth: object, limit: object, cursor: object) -> LineageTree:
    """Return the way back from a run (its answer), `RUN#stage`, an observation or `REF#field`.

    A page costs what it shows. A cursor holds where the search can go on by itself, if there is such a point; the
    search is remembered besides, and begun again where neither helps.
    """
    faults = [*text_faults(what=what), *depth_faults(depth)]
    question: Any = ["lineage", what, depth]
    request = page_request(context, question, limit, cursor, faults)
    assert depth is None or isinstance(depth, int)
    cut = cut_of(request.place_of(*PLACE))
    with open_tracer(context, request.position) as tracer:
        answer = None
        search = None if request.place is None else searches.find(context, tracer, request, LineageSearch)
        with suppress(searches.RanOut):
            if (search is None or not reaches(search, request)) and cut is not None:
                search = LineageSearch(tracer, what, depth, cut)
            if search is not None and reaches(search, request):
                answer = lineage_page(tracer, search, request)
        if search is None or answer is None:
            search = LineageSearch(tracer, what, depth)
            answer = lineage_page(tracer, search, request)
        if answer.cursor is not None:
            searches.keep(context, tracer, request, search)

    def following() -> LineageTree:
        return lineage(context, what, depth=depth, limit=limit, cursor=answer.cursor)

    return answer.followed_by(following)


def impact(
    context: Context,
    what: object,
    agent: object,
    *,
    depth: object,
    limit: object,
    cursor: object,
) -> Impact:
    """Return what leaned on an observation, a source, an interpretation, an entity, a run or all an agent said.

    A page costs what it shows while it shows runs that leaned on it directly. What is further away is found distance by
    distance, and shown from what was found, also when it is asked for by a cursor, as long as the search is remembered.
    """
    faults = [*text_faults(what=what, agent=agent), *depth_faults(depth)]
    question: Any = ["impact", what, agent, depth]
    request = page_request(context, question, limit, cursor, faults)
    assert depth is None or isinstance(depth, int)
    with open_tracer(context, request.position) as tracer:
        search = None if request.place is None else searches.find(context, tracer, request, ImpactSearch)
        answer = None
        after = None if search is not None else direct_place(request)
        if after is not None:
            with suppress(searches.RanOut):
                rest = ImpactSearch(tracer, what, agent, depth)
                rest.begin_after(after)
                answer = impact_page(tracer, rest, request)
        if answer is None:
            search = ImpactSearch(tracer, what, agent, depth) if search is None else search
            answer = impact_page(tracer, search, request)
            if answer.cursor is not None:
                searches.keep(context, tracer, request, search)

    def following() -> Impact:
        return impact(context, what, agent, depth=depth, limit=limit, cursor=answer.cursor)

    return answer.followed_by(following)


Evidenced = tuple[Any, Any, tuple[str, ...]]
"""Entity, field and the observations behind the value that was read; of any other origin only the observations."""


class EvidenceLookup:
    """The documents behind the facts of decisions, and later changes of these; looked up once for equal evidence."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._documents: dict[Evidenced, tuple[Document, ...]] = {}
        self._changes: dict[Evidenced, LaterChange | None] = {}
        self._open: dict[Evidenced, bool] = {}
        """Which evidence is not what the log says now, so that it is looked up what it said then."""
        self._unchecked: dict[tuple[Evidenced, Any], bool] = {}
        """By evidence and position, whether the log does not show it there."""

    def _look_up(self, origin: Mapping[str, Any]) -> Evidenced:
        """Look up what belongs to an origin; return what that is kept by."""
        place = (origin.get("entity"), origin.get("field")) if origin.get("kind") == "read" else (None, None)
        key: Evidenced = (*place, named_observations(origin))
        if key not in self._changes:
            self._documents[key] = tuple(self._tracer.documents(origin))
            change = self._changes[key] = later_change(self._tracer, origin)
            said = [self._tracer.observation(id) for id in key[2]]
            self._open[key] = origin.get("kind") == "read" and (change is not None or not said or None in said)
        at = origin.get("position")
        if self._open[key] and (key, at) not in self._unchecked:
            self._unchecked[key, at] = not was_believed(self._tracer, origin)
        return key

    def __call__(self, decision: Decision) -> Decision:
        """Return a decision with its margin, the documents behind it and what became of its evidence."""
        values, looked = decision.known_facts, evidence(decision)
        told: list[Evidence] = []
        sources = origin_sources(decision)
        for fact, origin in decision.fact_origins.items():
            key = self._look_up(origin)
            documents = self._documents[key]
            if documents:
                # What several observations say that came from one document is wrong together.
                named = [FactSource("document", item.source, item.name or item.source) for item in documents]
                inside = {item.observation for item in documents}
                rest = [source for source in sources[fact] if source.id not in inside]
                sources[fact] = (*dict.fromkeys(named), *rest)
            if fact in looked:
                since = self._since(key, values.get(fact))
                unchecked = self._unchecked.get((key, origin.get("position")), False)
                told.append(Evidence(fact, values.get(fact), origin_words(origin), documents, since, unchecked))
        return replace(decision, margin=margin_of(decision, sources), looked_at=tuple(told))

    def _since(self, key: Evidenced, before: Json) -> LaterChange | None:
        change = self._changes[key]
        return change if change is None or before != REDACTED else replace(change, now=REDACTED)


def why(context: Context, ref: object, *, limit: object, cursor: object) -> Page[Reason]:
    """Return the decisions about a subject, each with its margin, the documents behind it and what became of them."""
    return why_page(context, ref, limit=limit, cursor=cursor, explain=lambda found: EvidenceLookup(_tracer(found)))


def run(context: Context, id: object) -> RunRecord:
    """Return a run, its decisions with their margins, the documents behind them and what became of these since."""
    with open_runs(context) as run_reader:
        record = run_record(run_reader, id)
        lookup = EvidenceLookup(_tracer(run_reader))
        decisions = tuple(map(lookup, record.decisions))
        reads = tuple(_told_of_log(run_reader, read) for read in record.reads)
    return replace(record, decisions=decisions, reads=reads) if decisions or reads else record


def run_steps(context: Context, id: object, *, kind: object, skip: object, step: object, limit: object) -> RunSteps:
    """Return some steps of a run in order, of one kind or of all; the decisions among them as `run` returns them."""
    request = page_request(context, ["steps"], limit, None, _step_faults(kind, skip, step))
    assert type(skip) is int
    with open_runs(context) as run_reader:
        record = run_record(run_reader, id)
        steps = [each for each in numbered_steps(record) if kind is None or each.kind == kind]
        if step is not None:
            skip = next((place for place, each in enumerate(steps) if each.number == step), -1)
            if skip < 0:
                of_kind = "" if kind is None else f" of kind {kind}"
                there = f"it has steps {steps[0].number} to {steps[-1].number}" if steps else "it has none"
                raise NotFound(
                    f"{record.id} has no step {step}{of_kind}; {there}. Nothing was changed. Read it without `step`.",
                    {"run": record.id, "step": step},
                )
        lookup = EvidenceLookup(_tracer(run_reader))
        page = [
            replace(
                each,
                decision=None if each.decision is None else lookup(each.decision),
                read=None if each.read is None else _told_of_log(run_reader, each.read),
            )
            for each in steps[skip : skip + request.limit]
        ]
    return steps_page(record, len(steps), min(skip, len(steps)), page)


def _told_of_log(run_reader: RunReader, read: Read) -> Read:
    """Return a read that says so where it is of another log."""
    if read.log is None or here(run_reader.view, read.log, read.as_of) is not None:
        return read
    return replace(read, unchecked="log")


def _step_faults(kind: object, skip: object, step: object) -> list[Fault]:
    faults: list[Fault] = []
    if kind is not None and kind not in STEP_KINDS:
        faults.append(Fault("kind", f"there is no kind of step {shown(kind)}", f"Send one of {', '.join(STEP_KINDS)}."))
    if type(skip) is not int or skip < 0:
        faults.append(Fault("skip", f"expected a whole number from 0 on, got {shown(skip)}", "Send a count of steps."))
    if step is not None and type(step) is not int:
        faults.append(Fault("step", f"expected the number of a step, got {shown(step)}", "Send a whole number."))
    elif step is not None and skip:
        faults.append(Fault("step", "skip and step both say where to begin", "Send one of them."))
    return faults


def _tracer(run_reader: RunReader) -> Tracer:
    """Return a tracer without an effective time, which neither runs have nor what became of their evidence."""
    found = run_reader.reader
    if found.asof.effective is not None:
        run_reader = RunReader(Reader(found.view, AsOf(found.asof.position, None), found.policies))
    return Tracer(run_reader)


def stale(context: Context, *, same: object, limit: object, cursor: object) -> Page[Stale]:
    """Return decisions whose evidence is believed otherwise now, the latest in the log first."""
    faults: list[Fault] = []
    if type(same) is not bool:
        faults.append(Fault("same", f"expected true or false, got {shown(same)}", "Send a boolean."))
    request = page_request(context, ["stale", same is True], limit, cursor, faults)
    with open_tracer(context, request.position) as tracer:
        page = stale_reader.stale(tracer, request, same=same is True)
    return page.followed_by(lambda: stale(context, same=same, limit=limit, cursor=page.cursor))

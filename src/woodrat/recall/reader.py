"""The recall reader: what a ledger remembers that answers a question. Finding nothing is an answer too."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from woodrat.canon import ids, moment
from woodrat.errors import Fault, Refused, WoodratError
from woodrat.ledger import entry_index
from woodrat.ledger.moments import NO_READ, open_reader
from woodrat.ledger.read import Reader
from woodrat.merge.packing import garbled
from woodrat.recall import embedders, times, vectors
from woodrat.recall import index as recall_index
from woodrat.recall.index import log_passages
from woodrat.recall.passages import DOCUMENT, FACT, NOTE, document_pieces, document_text
from woodrat.recall.query import query_of
from woodrat.recall.request import QUESTION_CHARACTERS, RecallRequest
from woodrat.recall.search import MemorySearch, RecallMatch, RecallMatches, RecallQuestion, narrowed, search
from woodrat.recall.times import TimeWords
from woodrat.record_json import WHEN_SET, Record, derived
from woodrat.records import dataclass, field, replace
from woodrat.runs import projection as projections
from woodrat.runs import words
from woodrat.runs.index.listing import ANCESTORS_MAX
from woodrat.runs.reader.run_reader import RunReader
from woodrat.runs.record import RunRecord
from woodrat.runs.recorder.recalls import RecallFound, RecordedRecall
from woodrat.runs.run_fields import INTERRUPTED, RUNNING
from woodrat.runs.steps import RecalledRun
from woodrat.state import source as source_form
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.canon.ids import Ref
    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.merge.snapshot import Origin
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.passage_index import PassageIndex
    from woodrat.state.fact import Fact

LATE_MAX: Final = 32
"""How many candidates without a vector a question has embedded: those with most of its words."""
TEXT_CHARACTERS_MAX: Final = 500
"""How long the text of a hit is that is no run."""
NEAR_CHARACTERS_MAX: Final = 160
"""How long the text of a near miss is."""
OBSERVATIONS_MAX: Final = 200
"""Who else said the same is looked up for entities with no more observations than this."""
LINEAGE_MAX: Final = 32
"""How many observations a hit names."""
MARK_CHARACTERS: Final = 4
"""How much of a digest tells the lines of one entity apart."""

EMPTY: Final = "The question is empty, so nothing was looked for. Send the question as text."
"""What an answer to an empty question says."""
BY_WORDS: Final = 'Compared by words alone; `pip install "woodrat[recall]"` adds a model that compares meaning.'
"""What the base install says about an answer."""


@dataclass(frozen=True, slots=True)
class Recalled(Record):
    """One thing that a recall found: a run, what is believed of an entity, a note, or a piece of a document."""

    kind: str
    """`run`, `fact`, `note` or `document`."""
    ref: str
    """What it is: a run's id, an entity's reference, or a source's id with the number of the piece."""
    run: str | None
    """The run, of a run; of a fact or a note the run it was written in."""
    score: float
    """How sure it is that this answers the question, 0 to 1."""
    passage: str
    """Which passage came nearest: of a run `asked`, `decided` or `answered`, else the kind."""
    position: int
    """The entry it comes from."""
    text: str
    """What it says, as one line that nothing in it can break out of."""
    at: str | None
    """When it was said (UTC)."""
    agent: str | None
    """Who said so."""
    priority: int | None
    """With which priority; none for runs and documents, which state none."""
    confirmed_by: tuple[str, ...]
    """Who else said the same, corrected it to this, or judged the run good; empty where nobody did."""
    lineage: tuple[str, ...]
    """What it rests on: observations, the run, or the source."""
    record: RunRecord | None = None
    """Of a run, what the log holds about it as of the moment asked at."""

    @derived
    def confirmed(self) -> bool:
        """Whether anybody confirmed it."""
        return bool(self.confirmed_by)

    def facts(self) -> dict[str, Fact]:
        """Return what a run decided as facts that a decision can be based on, by stage."""
        return {} if self.record is None else self.record.facts()


@dataclass(frozen=True, slots=True)
class NearMiss(Record):
    """One thing that came near and was not recalled."""

    kind: str
    """`run`, `fact`, `note` or `document`."""
    ref: str
    """What it is."""
    score: float
    """How sure it is that this answers the question, 0 to 1."""
    reason: str
    """Why it was not recalled."""
    text: str
    """The passage that came nearest, cut short; of a run, what it was asked."""
    at: str | None
    """When it was said (UTC)."""


@dataclass(frozen=True, slots=True)
class Recall(Record):
    """The answer to a recall; false when nothing passed."""

    question: str
    """What was asked."""
    hits: tuple[Recalled, ...]
    """What was recalled, by score; a question about a decision comes after the decision."""
    rejected: tuple[NearMiss, ...]
    """The nearest of what was not, when less was found than wanted; follow-up questions last."""
    text: str
    """The hits under the projection asked for; empty when there are none."""
    inject: str
    """The same as a block for a prompt, which marks it as data; empty when there are none."""
    projection: str
    """The projection."""
    scope: str
    """Among whose memories it looked."""
    threshold: float
    """The least score."""
    embedder: str
    """Id of the embedder with its version; `none` where words alone were compared."""
    position: int
    """The position it was asked at."""
    understood: TimeWords | None = None
    """How the question's words about time were understood; none where it has none."""
    remark: str | None = None
    """What to know about the answer: why it is empty, what an extra would add, what was not compared by meaning."""
    lacking: int = field(default=0, metadata=WHEN_SET)
    """How many entries up to the moment asked at are not indexed yet, by their words or by meaning; the remark says
    what that means."""
    times: Mapping[str, str] = field(default=MappingProxyType({}), metadata=WHEN_SET)
    """What times that were asked for in words turned out to be, by argument."""

    @derived
    def found(self) -> bool:
        """Whether anything passed."""
        return bool(self.hits)

    def __bool__(self) -> bool:
        return self.found

    def facts(self) -> dict[str, Fact]:
        """Return what the hits decided as facts that a decision can be based on; of one stage the best hit's counts."""
        return {name: fact for hit in reversed(self.hits) for name, fact in hit.facts().items()}


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
    runs = [hit for hit in answer.hits if hit.record is not None]
    return RecallFound(
        answer.position,
        tuple(RecalledRun(hit.ref, hit.score, hit.passage, hit.position) for hit in runs),
        tuple(
            {"kind": near.kind, "of": near.ref, "score": near.score, "reason": near.reason}
            | ({} if near.kind == "run" else {"mark": _mark(near.text), "time": near.at})
            for near in answer.rejected
        ),
        running=frozenset(hit.ref for hit in runs if hit.record is not None and hit.record.status == RUNNING),
        decisions={
            hit.ref: {made.stage: made.chosen for made in hit.record.decisions}
            for hit in runs
            if hit.record is not None
        },
        others=tuple(
            {
                "kind": hit.kind,
                "of": hit.ref,
                "score": hit.score,
                "passage": hit.passage,
                "at": hit.position,
                "rank": rank,
                "mark": _mark(hit.text),
                "observations": list(hit.lineage) if hit.kind in (FACT, NOTE) else [],
            }
            for rank, hit in enumerate(answer.hits)
            if hit.record is None
        ),
        understood=None if answer.understood is None else answer.understood.to_json(),
        embedder=answer.embedder,
        remark=answer.remark,
    )


def _mark(text: str) -> str:
    """Return what tells one line of an entity from its others, and too little to tell what it says."""
    return sha256(text.encode()).hexdigest()[:MARK_CHARACTERS]


class FoundRuns(Protocol):
    """The runs of a log at one position, of which an answer tells."""

    @property
    def through(self) -> int:
        """The position."""

    def find(self, id: str) -> RunRecord | None:
        """Return a run's record; none when no entry is part of it."""

    def began(self, id: str) -> Mapping[str, Any]:
        """Return what a run was begun with; nothing where that is not known."""

    def said(self, id: str, position: int) -> str:
        """Return the passage that a run's entry has; empty where that is not known."""


class LocalRuns(RunReader):
    """The runs of a log of this process."""

    def began(self, id: str) -> Mapping[str, Any]:
        """Return what a run was begun with."""
        return log_passages.started(self.view, id, self.through) or {}

    def said(self, id: str, position: int) -> str:
        """Return the passage that a run's entry has."""
        return log_passages.said_by_run(self.view, id, position)


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

    def said(self, id: str, position: int) -> str:
        """Return the passage that a run's entry has."""
        return self._runs.said(id, position)


def remake(context: Context, asked: RecallRequest, found: RecallFound) -> Recall:
    """Return the answer to a recall from what was found then: no embedder is asked, and nothing is searched."""
    with open_reader(context) as reader:
        there = Reader(reader.view, AsOf(found.position), reader.policies)
        return remade(LocalRuns(there), asked, found, LocalMemories(there, left_out=frozenset(asked.not_from)))


def remade(runs: FoundRuns, asked: RecallRequest, found: RecallFound, memories: FoundMemories | None = None) -> Recall:
    """Return the answer to a recall that found these."""
    if found.error is not None:
        raise found.error
    known = memories or NoMemories()
    hits: list[RecallMatch] = [
        RecallMatch("run", hit.run, hit.score, hit.passage, hit.at, runs.said(hit.run, hit.at), 0) for hit in found.hits
    ]
    for other in found.others:
        match = RecallMatch(other["kind"], other["of"], other["score"], other["passage"], other["at"], "", 0)
        hits.insert(min(int(other["rank"]), len(hits)), known.marked(match, other.get("mark")))
    near = []
    for each in found.rejected:
        kind, of, time = each.get("kind", "run"), each.get("of", each.get("run", "")), each.get("time")
        at = moment.to_micros(time) if isinstance(time, str) else 0
        match = RecallMatch(kind, of, each["score"], "", 0, "", at, each["reason"])
        near.append(match if kind == "run" else known.marked(match, each.get("mark")))
    understood = None if found.understood is None else TimeWords(**found.understood)
    then, matches = _RunsThen(runs, found.running), RecallMatches(tuple(hits), tuple(near))
    answer = _answer(then, asked, matches, known, understood, found.remark)
    return answer if found.embedder is None else replace(answer, embedder=found.embedder)


def _position(context: Context) -> int | None:
    """Return the position of a moment that was asked for; none for the present."""
    if context.moment == "now":
        return None
    with open_reader(context) as reader:
        return reader.asof.position


def _recall(context: Context, asked: RecallRequest, now: str | None, run: AskingRun | None) -> Recall:
    if context.valid_at is not None:
        remedy = "Ask at a moment instead: what was said was said when it was."
        raise Refused([Fault("valid_at", "recall has no valid time", remedy)], NO_READ)
    if not asked.question.strip():
        with open_reader(context) as reader:
            return _answer(LocalRuns(reader), asked, RecallMatches((), ()), NoMemories(), None, EMPTY)
    embedder = asked.embedder
    text = asked.question[:QUESTION_CHARACTERS]
    cached = recall_index.cached_index(context, embedder)
    with cached.lock:
        if context.served:
            is_followed = recall_index.follow_briefly(context, embedder, cached)
        else:
            recall_index.follow(context, embedder, cached)
            is_followed = True
        index = cached.index
        packed = b"" if embedder is None else embedders.embed(embedder, [text])[0]
        vector = vectors.as_numpy(packed) if packed else None
        held = recall_index.held_products(context, embedder, cached, packed)
        with open_reader(context) as reader:
            # The view may show more than the index knows; what came in between is asked about next time.
            position = min(reader.asof.position, index.position)
            present = _now(reader.view, position, now)
            said = times.understood(text, moment.from_micros(present)) if present else None
            narrow = narrowed(text, said, index)
            question = RecallQuestion(
                query=query_of(narrow.text, index, index.rows_until(position)),
                vector=vector,
                square=0.0 if vector is None else float(vector @ vector),
                held=held,
                scale=_same if embedder is None else embedders.scale_of(embedder),
                k=asked.k,
                threshold=asked.threshold,
                through=position,
                principal=asked.principal,
                conversation=asked.conversation,
                since=_first(asked, present),
                until=None if asked.until is None else moment.to_micros(asked.until),
                window=narrow.window,
                window_terms=narrow.terms,
                not_from=frozenset(asked.not_from),
                readable=_readable(asked.entity_types) if asked.entity_types else None,
                without=frozenset() if run is None else _asking(reader.view, run.id),
            )
            found = _found(index, question, embedder) if is_followed else search(index, question)
            there = Reader(reader.view, AsOf(position), reader.policies)
            memories = LocalMemories(there, index, frozenset(asked.not_from))
            unknown = reader.asof.position - position
            remark = _remark(index, embedder, said if narrow.window is None else None, unknown)
            answer = _answer(LocalRuns(there), asked, found, memories, said, remark)
            return replace(answer, lacking=_entries_lacking(reader, index, embedder, position))


def _found(index: PassageIndex, question: RecallQuestion, embedder: Embedder | None) -> RecallMatches:
    """Search; where candidates have no vectors yet, those with most of the question's words are embedded first."""
    if embedder is not None and index.unembedded:
        first = MemorySearch(index, question)
        lacking = [
            row
            for each in first.scored()[:LATE_MAX]
            for row in each.memory.rows
            if row < first.rows and row in index.unembedded
        ][:LATE_MAX]
        if lacking:
            recall_index.embed_rows(index, embedder, lacking)
    return search(index, question)


def _entries_lacking(reader: Reader, index: PassageIndex, embedder: Embedder | None, position: int) -> int:
    """Return how many entries up to a reader's moment an index does not have, or has without vectors."""
    without_vector = [] if embedder is None else recall_index.lacking(index)
    if without_vector:
        position = min(position, log_passages.write_floor(reader.view, index.positions[without_vector[0]] - 1))
    return max(reader.asof.position - position, 0)


def _readable(types: tuple[str, ...]) -> Callable[[str, str], bool]:
    """Return what tells whether a memory is a fact or a note of one of these types."""
    return lambda kind, of: kind in (FACT, NOTE) and of.partition("/")[0] in types


def _same(cosine: float) -> float:
    return cosine


def _first(asked: RecallRequest, present: int) -> int | None:
    """Return the moment from which on things count, from `since` and from how old they may be."""
    found = [] if asked.since is None else [moment.to_micros(asked.since)]
    if asked.ttl_micros is not None:
        found.append(present - asked.ttl_micros)
    return max(found, default=None)


def _remark(index: PassageIndex, embedder: Embedder | None, said: TimeWords | None, unknown: int) -> str | None:
    remarks = []
    if unknown:
        entries, say = ("1 entry is", "it says") if unknown == 1 else (f"{unknown} entries are", "they say")
        remarks.append(f"{entries} not indexed yet, so nothing {say} was looked at. Ask again in a moment.")
    if said is not None:
        remarks.append(f"Nothing was said in the time that {said.words!r} means, so all times were searched.")
    if embedder is None:
        remarks.append(BY_WORDS)
    elif count := len(recall_index.lacking(index)):
        remarks.append(f"{count} passages have no vector yet and were compared by words alone.")
    return " ".join(remarks) or None


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
        parent = (log_passages.started(view, above, view.head().position) or {}).get("parent")
        above = parent.get("run") if isinstance(parent, dict) else None
    return frozenset(asking)


# The answer


class FoundMemories(Protocol):
    """What is known of facts, notes and documents of which an answer tells."""

    def told(self, match: RecallMatch) -> Recalled:
        """Return a match as a hit."""

    def marked(self, match: RecallMatch, mark: str | None) -> RecallMatch:
        """Return a match of then with the text it had, by the mark of what was shown."""


class NoMemories:
    """Where only runs are known."""

    def told(self, match: RecallMatch) -> Recalled:
        """Return a match with what it says itself."""
        at = moment.from_micros(match.at) if match.at else None
        text = words.safe(match.text)[:TEXT_CHARACTERS_MAX]
        return Recalled(
            match.kind, match.of, None, match.score, match.passage, match.position, text, at, None, None, (), ()
        )

    def marked(self, match: RecallMatch, mark: str | None) -> RecallMatch:
        """Return a match as it is."""
        return match


class LocalMemories:
    """Facts, notes and documents of a log of this process."""

    def __init__(
        self, reader: Reader, index: PassageIndex | None = None, left_out: frozenset[str] = frozenset()
    ) -> None:
        self._reader, self._index, self._left_out = reader, index, left_out

    def told(self, match: RecallMatch) -> Recalled:
        """Return a match as a hit, with who said so and who confirmed it."""
        return self._document(match) if match.kind == DOCUMENT else self._entity(match)

    def marked(self, match: RecallMatch, mark: str | None) -> RecallMatch:
        """Return a match with the line, or the piece of a document, that was nearest then."""
        if match.kind == DOCUMENT:
            return replace(match, text=self._piece(match))
        ref = ids.parse_ref(match.of)
        rows = [row for row in log_passages.rows_of_entity(self._reader, ref) if row.agent not in self._left_out]
        found = [replace(match, text=row.text) for row in rows]
        shown = (_near_text(each.text) if match.reason else self._entity(each).text for each in found)
        return next((each for each, text in zip(found, shown, strict=True) if _mark(text) == mark), match)

    def _entity(self, match: RecallMatch) -> Recalled:
        ref = ids.parse_ref(match.of)
        rows = [row for row in log_passages.rows_of_entity(self._reader, ref) if row.agent not in self._left_out]
        shown = self._reader.find(ref)
        if not rows or shown is None:
            return NoMemories().told(match)
        near = next((row for row in rows if row.text == match.text), rows[0])
        lines = [near.text, *(row.text for row in rows if row is not near)]
        head = f"{near.text.partition(': ')[0]}: "
        said = "; ".join(line.removeprefix(head) if place else line for place, line in enumerate(lines))
        own = [origin for origin in shown.blame.values() if origin.agent not in self._left_out]
        chief = max((o for o in own if o.agent == near.agent), key=lambda o: o.observed_at, default=own[0])
        lineage = tuple(dict.fromkeys(str(id) for origin in own for id in origin.observations))
        return Recalled(
            match.kind,
            match.of,
            near.run,
            match.score,
            match.passage,
            match.position,
            words.safe(said)[:TEXT_CHARACTERS_MAX],
            chief.observed_at,
            chief.agent,
            chief.priority,
            self._confirmed(ref, chief, shown.fields),
            lineage[:LINEAGE_MAX],
        )

    def _confirmed(self, ref: Ref, chief: Origin, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Return who else said what is shown: the same value of the same field."""
        state = self._reader.state(ref)
        if state.observations > OBSERVATIONS_MAX:
            return ()
        others = set()
        for stored in self._reader.stored(self._reader.group(ref)):
            observation = stored.observation
            if observation.agent != chief.agent and observation.agent not in self._left_out:
                stated = observation.fields
                if stated and all(fields.get(name) == value for name, value in stated.items()):
                    others.add(observation.agent)
        return tuple(sorted(others))

    def _document(self, match: RecallMatch) -> Recalled:
        source_id, _, _ = match.of.partition("#")
        entry = self._reader.view.entry(match.position)
        delivery = None if entry is None or entry.body is None else source_form.stored(entry.body)
        text = match.text or self._piece(match)
        named = f"{delivery.name}: {text}" if delivery is not None else text
        return Recalled(
            match.kind,
            match.of,
            None,
            match.score,
            match.passage,
            match.position,
            words.safe(named)[: TEXT_CHARACTERS_MAX + 100],
            None if delivery is None else delivery.received_at,
            None if delivery is None else delivery.agent,
            None,
            (),
            (source_id,),
        )

    def _piece(self, match: RecallMatch) -> str:
        """Return a piece of a document from its source, where no index is at hand."""
        source_id, _, number = match.of.partition("#")
        digest = ids.digest_of("source", source_id) or entry_index.source_by_id(self._reader.view, source_id)
        at = None if digest is None else entry_index.source_position(self._reader.view, digest)
        entry = None if at is None else self._reader.view.entry(at)
        text = None if entry is None or entry.body is None else document_text(entry.body, "", None)
        pieces = [] if text is None else list(document_pieces(text))
        return pieces[int(number)] if number.isdigit() and int(number) < len(pieces) else ""


def _answer(
    runs: FoundRuns,
    asked: RecallRequest,
    found: RecallMatches,
    memories: FoundMemories,
    understood: TimeWords | None,
    remark: str | None = None,
) -> Recall:
    hits: list[Recalled] = []
    lines: list[projections.ProjectionLine] = []
    count = max(len(found.hits), 1)
    for number, match in enumerate(found.hits):
        hit = _run_hit(runs, match) if match.kind == "run" else memories.told(match)
        hits.append(hit)
        start = len(lines)
        if hit.record is not None:
            own = projections.lines_of([hit.record], asked.projection)
        else:
            own = [
                projections.ProjectionLine(
                    f"{hit.kind.capitalize()} {words.safe(hit.ref)}: {hit.text}", hit.position, 0
                )
            ]
        own.append(projections.ProjectionLine(f"  {_said_by(hit)}", hit.position, 1, 0))
        for line in own:
            under = None if line.under is None else line.under + start
            lines.append(projections.ProjectionLine(line.text, line.position, line.weight * count + number, under))
    if hits and understood is not None:
        first, after = understood.since[:10], understood.until[:10]
        said = f"{words.safe(understood.words)!r} was understood as {first} to before {after}"
        lines.insert(0, projections.ProjectionLine(said, None, 0))
        lines[1:] = [
            projections.ProjectionLine(x.text, x.position, x.weight, None if x.under is None else x.under + 1)
            for x in lines[1:]
        ]
    return Recall(
        question=asked.question,
        hits=tuple(hits),
        rejected=tuple(_rejected(runs, match) for match in found.rejected),
        text="\n".join(projections.within(lines, asked.budget)),
        inject=projections.block(lines, asked.budget) if hits else "",
        projection=asked.projection,
        scope=asked.scope,
        threshold=asked.threshold,
        embedder=asked.embedder_id,
        position=runs.through,
        understood=understood,
        remark=remark,
    )


def _said_by(hit: Recalled) -> str:
    """Return who said something, with which priority, and whether anyone confirmed it."""
    who = "nobody that is known" if hit.agent is None else words.name(hit.agent)
    priority = "" if hit.priority is None else f", priority {hit.priority}"
    confirmed = (
        f"confirmed by {', '.join(map(words.name, hit.confirmed_by))}" if hit.confirmed_by else "confirmed by nobody"
    )
    return f"said by {who} at {words.time(hit.at)}{priority}, {confirmed}"


def _run_hit(runs: FoundRuns, match: RecallMatch) -> Recalled:
    record = runs.find(match.of)
    if record is None:
        raise garbled(f"{match.of}: the index of runs")
    judged = {each.by for each in record.judgements if each.verdict == "good" and each.by not in (None, record.agent)}
    return Recalled(
        "run",
        match.of,
        match.of,
        match.score,
        match.passage,
        match.position,
        words.safe(match.text or record.query or "")[:TEXT_CHARACTERS_MAX],
        record.started_at,
        record.agent,
        None,
        tuple(sorted(str(by) for by in judged)),
        (match.of,),
        record,
    )


def _rejected(runs: FoundRuns, match: RecallMatch) -> NearMiss:
    assert match.reason is not None
    text, at = match.text, moment.from_micros(match.at) if match.at else None
    if match.kind == "run":
        began = runs.began(match.of)
        query, started_at = began.get("query"), began.get("started_at")
        text = query if isinstance(query, str) else text
        at = started_at if isinstance(started_at, str) else at
    return NearMiss(match.kind, match.of, match.score, match.reason, _near_text(text), at)


def _near_text(text: str) -> str:
    return words.safe(text)[:NEAR_CHARACTERS_MAX]

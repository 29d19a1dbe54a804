"""What the log has to recall: the passages of runs, documents and facts between two positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.ledger import entry_index
from woodrat.ledger.plans import find_observation
from woodrat.ledger.read import Reader, changed
from woodrat.recall import passages
from woodrat.recall.identifiers import named_in, pairs_in
from woodrat.recall.passage_index import PassageIndex, PassageRow, row_of
from woodrat.recall.passages import DOCUMENT, GONE, KIND_OF, READ, RECALL_MARK, STARTED, RunStart, Stated, start_of
from woodrat.state import relation, source
from woodrat.state.asof import AsOf
from woodrat.state.meaning import leaves
from woodrat.state.note import ABOUT
from woodrat.state.run_owner import is_bound, is_part, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.merge import Policy

UNSPOKEN: Final = frozenset({relation.SAME_AS, ABOUT})
"""Relations that are no facts to recall: which entities are one, and what a note is about, which it says itself."""
RECEIVED: Final = "received"


class Placed(NamedTuple):
    """A passage and its place."""

    position: int
    """Position of the entry it comes from."""
    ordinal: int
    """Which of the passages of that entry it is; that of a run has 0."""
    row: PassageRow
    """The passage."""


def fresh_rows(view: View, index: PassageIndex, policies: Mapping[str, Policy], through: int) -> list[Placed]:
    """Return the passages between what an index knows and a position at which a write ends."""
    after = index.position
    found = [
        *_run_rows(view, index, after, through),
        *_document_rows(view, index, after, through),
        *_fact_rows(view, index, policies, after, through),
    ]
    return sorted(found, key=lambda placed: placed[:2])


def _run_rows(view: View, index: PassageIndex, after: int, through: int) -> Iterator[Placed]:
    starts: dict[str, RunStart] = {}
    agents: dict[str, str] = {}
    taken: dict[tuple[str, str], int] = {}
    speakers: dict[str, set[str]] = {}
    anew: set[str] = set()
    for entry in view.entries(after, through, KIND_OF):
        if entry.kind == READ and (entry.body is None or RECALL_MARK not in entry.body):
            continue
        body: Any = None if entry.body is None else form.decode(entry.body)
        run = body.get("run") if isinstance(body, dict) else None
        if not isinstance(run, str) or leaves(body, "started_at"):
            continue  # a start that says no more than that there is such a run has no word to look for
        if entry.kind == STARTED and is_bound(run, body):
            agents[run] = body["agent"]
        elif entry.kind != STARTED and not is_part(entry.kind, body, _owner(view, run, entry.position, agents)):
            continue  # what another agent says of a run is no part of it
        kind, agent = KIND_OF[entry.kind], _speaker(body)
        heard = speakers[run] if run in speakers else speakers.setdefault(run, index.speakers(run))
        if kind == passages.ASKED and heard - {agent} and (_owner(view, run, entry.position, agents) or "") == agent:
            # Until now the run looked like somebody else's; its owner's beginning ends what they said of it.
            heard.clear()
            anew.add(run)
            starts.pop(run, None)
            taken = {of: count for of, count in taken.items() if of[0] != run}
        before = taken.get((run, kind), 0)
        if not index.takes(run, kind, before, anew=run in anew):
            continue
        if entry.kind == STARTED and (run not in starts or not leaves(body, "query")):
            starts[run] = start_of(body)
        elif run not in starts:
            starts[run] = start_of(started(view, run, entry.position) or {})
        said = passages.passage(entry.kind, body, starts[run])
        if said is not None:
            yield Placed(entry.position, 0, row_of(run, said, body))
            heard.add(agent)
            taken[run, kind] = before + 1


def _speaker(body: Mapping[str, Any]) -> str:
    """Return who says an entry, as its passage keeps it; empty where it names nobody."""
    agent = body.get("agent")
    return agent if isinstance(agent, str) else ""


def _document_rows(view: View, index: PassageIndex, after: int, through: int) -> Iterator[Placed]:
    """Yield the pieces of documents; a source that was delivered before is known."""
    delivered: set[str] = set()
    for entry in view.entries(after, through, {RECEIVED}):
        if entry.body is None:
            continue
        delivery = source.stored(entry.body)
        id = str(delivery.source)
        if id in delivered or f"{id}#0" in index.current:
            continue
        at = entry_index.source_position(view, delivery.source_digest)
        kept = None if at is None else view.entry(at)
        if kept is None or kept.body is None:
            continue
        text = passages.document_text(kept.body, delivery.name, delivery.media_type)
        if text is None:
            continue
        delivered.add(id)
        for number, piece in enumerate(passages.document_pieces(text)):
            row = PassageRow(
                f"{id}#{number}",
                DOCUMENT,
                piece,
                delivery.agent,
                delivery.received_at,
                tuple(sorted(named_in((piece,)))),
                tuple(sorted(pairs_in((piece,)))),
            )
            yield Placed(entry.position, number + 1, row)


def _fact_rows(
    view: View, index: PassageIndex, policies: Mapping[str, Policy], after: int, through: int
) -> Iterator[Placed]:
    """Yield what is believed of entities, from write to write, where that is not what was believed before."""
    if not changed(view, after, through):
        return
    known: dict[str, list[tuple[str, str]]] = {}
    for first, last in writes_between(view, after, through):
        spoken = changed(view, first - 1, last)
        if not spoken:
            continue
        before, now = Reader(view, AsOf(first - 1), policies), Reader(view, AsOf(last), policies)
        stale = {member for ref in spoken for member in (*before.group(ref), *now.group(ref))}
        ordinal = 0
        for ref in sorted(stale, key=str):
            name = str(ref)
            rows = [] if ref.type in UNSPOKEN else list(rows_of_entity(now, ref))
            said = [(row.text, row.agent) for row in rows]
            if name in known:
                was = known[name]
            else:
                memory = index.current.get(name)
                was = [] if memory is None else [(index.texts[row], index.agents[row]) for row in memory.rows]
            known[name] = said
            if said == was:
                continue
            for row in rows or [PassageRow(name, GONE)]:
                ordinal += 1
                yield Placed(last, ordinal, row)


def rows_of_entity(reader: Reader, ref: Ref) -> Iterator[PassageRow]:
    """Yield the passages of what is believed of an entity at a reader's moment; of a group, its smallest has them."""
    if reader.group(ref)[0] != ref:
        return
    shown = reader.find(ref)
    if shown is None or shown.deleted:
        return
    stated = {
        name: Stated(value, shown.blame[name].agent, shown.blame[name].observed_at)
        for name, value in shown.fields.items()
        if name in shown.blame
    }
    ends = relation.endpoints(ref)
    named = None if ends is None else (str(ends[0]), str(ends[1]))
    for line in passages.lines_of(ref.type, ref.key, named, stated):
        observation = shown.blame[line.fields[0]].observation if line.fields else None
        yield PassageRow(
            str(ref),
            line.kind,
            line.text,
            line.agent,
            line.at,
            line.names,
            line.pairs,
            run=None if observation is None else _run_of(reader, observation),
        )


def _run_of(reader: Reader, observation: str) -> str | None:
    """Return the run in which an observation was written."""
    stored = find_observation(reader, observation)
    run = None if stored is None else stored.observation.optional.get("run")
    return run if isinstance(run, str) else None


def started(view: View, run: str, through: int) -> Mapping[str, Any] | None:
    """Return what a run's `run.started` says, if it has come; of several the first that leaves the question to none."""
    found: Mapping[str, Any] | None = None
    starts = _starts(view, run, through)
    owner = owner_of(run, [(STARTED, body) for body in starts])
    for body in starts:
        if is_part(STARTED, body, owner):
            if not leaves(body, "query"):
                return body
            found = found or body
    return found


def said_by_run(view: View, run: str, position: int) -> str:
    """Return the text of the passage that a run's entry has; empty where it has none."""
    entry = view.entry(position)
    body: Any = None if entry is None or entry.body is None else form.decode(entry.body)
    if entry is None or not isinstance(body, dict) or body.get("run") != run:
        return ""
    said = passages.passage(entry.kind, body, start_of(started(view, run, position) or {}))
    return "" if said is None else said.text


def _owner(view: View, run: str, through: int, known: dict[str, str]) -> str | None:
    """Return who owns a run, by what the log held of it at a position; those whose ids are made from them are known."""
    if run in known:
        return known[run]
    starts = _starts(view, run, through)
    for body in starts:
        if is_bound(run, body):
            known[run] = body["agent"]
            return known[run]
    entries = [
        (entry.kind, form.decode(entry.body))
        for entry in entry_index.run_entries(view, run, through)
        if entry.body is not None
    ]
    return owner_of(run, [(kind, body) for kind, body in entries if isinstance(body, dict)])


def _starts(view: View, run: str, through: int) -> list[Mapping[str, Any]]:
    bodies = [
        form.decode(e.body)
        for e in entry_index.run_entries(view, run, through)
        if e.kind == STARTED and e.body is not None
    ]
    return [body for body in bodies if isinstance(body, dict)]


def write_floor(view: View, position: int) -> int:
    """Return the last position not after one at which a write ends; the one before all if there is none."""
    following = view.entry(position + 1)
    return position if following is None or following.envelope.write > position else following.envelope.write - 1


def writes_between(view: View, after: int, through: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last position of each write between two ends of writes."""
    first = last = after + 1
    for row in view.rows(after, through):
        if row.write != first:
            yield first, last
            first = row.position
        last = row.position
    if first <= through:
        yield first, last

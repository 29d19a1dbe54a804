"""Listing: under which terms a run is listed, from which position on, and until which.

What lists ask of a run changes when it begins, ends or is judged: by an entry, or by an `evaluation`, which is merged
like every entity. What they say of one that has ended, its line, changes with every step that comes later, too. Each
such change is worked out from the log as it was at that position, by the same functions that
make a record, and compared with what was listed before it. So append, rebuild and verify agree by construction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger import entry_index
from woodrat.ledger.log_rows import STANDING, Listed
from woodrat.ledger.read import Reader
from woodrat.ledger.state_redo import component
from woodrat.merge import BUILTIN
from woodrat.runs import trace
from woodrat.runs.index.candidates import run_in
from woodrat.runs.index.terms import (
    BEGAN,
    EVALUATION,
    EVERY,
    INSIDE,
    JUDGED,
    LINE,
    LISTS,
    STATUS,
    SUBJECT,
    TALK,
    UNSETTLED,
    subject_term,
    value_term,
)
from woodrat.runs.record import OUTLINED, Outline, RunStatement, outline_of, statements
from woodrat.runs.steps import Judgement
from woodrat.runs.summary import ENTRIES_MAX, row_of
from woodrat.state import observation, relation
from woodrat.state.asof import AsOf
from woodrat.state.entry_rows import position_key, position_of, term_key, text_prefix
from woodrat.state.meaning import RUN_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry

ANCESTORS_MAX: Final = 16
"""How far up a run looks for the pipeline it is a step of."""


AT_HAND_MAX: Final = 10_000
"""Of how many runs it is remembered what they are about, and that they have no line yet."""
STARTED: Final = "run.started"
STEPS: Final = RUN_KINDS - OUTLINED
"""The kinds of entries of a run that change nothing but its line."""

ListRow = tuple[str, int, bytes]
"""A row of a list: the term, the place of the run, and what the row says."""


def _made(row: ListRow, since: int, until: int | None) -> IndexRow:
    return IndexRow(LISTS, term_key(row[0], row[1]), since, row[2], until)


def rows(entry: Listed) -> Iterator[IndexRow]:
    """Yield the rows that an entry makes by itself: by them it is known which runs an entry may list otherwise."""
    position, at = entry.position, position_key(entry.position)
    if entry.kind == STARTED:
        parent, subject = beginning(entry)[0], getattr(entry.meaning, "subject", None)
        if parent:
            yield IndexRow(LISTS, text_prefix(INSIDE + parent) + at, position)
        if subject is not None:
            yield IndexRow(LISTS, text_prefix(f"{SUBJECT}{entry.run}") + at, position, subject.id.encode())
    elif entry.kind == "observation" and entry.said.entity.type == EVALUATION:
        run = entry.said.fields.get("subject")
        if isinstance(run, str):
            yield IndexRow(LISTS, text_prefix(JUDGED + run) + at, position)


def beginning(entry: Listed) -> tuple[str | None, str | None]:
    """Return the run that started a run, and the id of its trace, by its beginning."""
    if b'"parent"' not in entry.body and b'"trace"' not in entry.body:
        return None, None
    parent = entry.value.get("parent")
    above = parent.get("run") if isinstance(parent, dict) else None
    return above if isinstance(above, str) else None, trace.trace_of(entry.value.get("trace"))


def subjects_of(view: View, run: str, through: int) -> dict[str, int]:
    """Return the entities that a run was said to be about by a position, by id, and where each was said first."""
    at_hand = view.at_hand(LISTS)
    known: list[tuple[int, str]] | None = at_hand.get((SUBJECT, run))
    if known is None:
        found = view.scan(LISTS, text_prefix(SUBJECT + run))
        known = [(position_of(key), run_in(value)) for key, value in found]
        _note(at_hand, (SUBJECT, run), known)
    subjects: dict[str, int] = {}
    for position, id in known:
        if position <= through:
            subjects.setdefault(id, position)
    return subjects


def concerned(view: View, entries: Sequence[Listed]) -> Sequence[Listed]:
    """Return those of some new entries that `follow` has to see: a step changes no list while its run lasts."""
    return [entry for entry in entries if _changes_lists(view, entry)]


def _changes_lists(view: View, entry: Listed) -> bool:
    if entry.kind not in STEPS:
        return True
    run = entry.run
    at_hand = view.at_hand(LISTS)
    if run is None or (LINE, run) in at_hand:
        return False
    if view.scan(LISTS, text_prefix(LINE + run), limit=1):
        return True
    _note(at_hand, (LINE, run), False)
    return False


def _note(at_hand: dict[Any, Any], key: tuple[str, str], found: object) -> None:
    if len(at_hand) >= AT_HAND_MAX:
        at_hand.clear()
    at_hand[key] = found


def follow(view: View, after: int, through: int, entries: Iterable[Listed]) -> Iterator[IndexRow]:
    """Yield the rows of lists that begin or end with some entries."""
    changes = Changes(view, through)
    touched: dict[str, list[int]] = {}
    outlined: set[str] = set()
    for entry in entries:
        for id in changes.touched_by(entry):
            touched.setdefault(id, []).append(entry.position)
            if entry.kind not in STEPS:
                outlined.add(id)
    for id, positions in touched.items():
        # A step changes nothing but a line; a run that goes on is not read for each part of the log.
        if id in outlined or view.scan(LISTS, text_prefix(LINE + id), through=after, limit=1):
            yield from changes.of(id, after, positions)


def touched_runs(view: View, through: int, entries: Iterable[Entry], judging: Iterable[Ref]) -> set[str]:
    """Return the runs that some entries may list otherwise, or evaluations among some entities."""
    changes = Changes(view, through)
    evaluations = [ref for ref in judging if ref.type == EVALUATION]
    found = {id for entry in entries for id in changes.touched_by(Listed.of(entry))}
    return found | changes.subjects(evaluations, through)


def lives(view: View, runs: Iterable[str], through: int) -> Iterator[IndexRow]:
    """Yield every row of some runs in lists up to a position, those that ended too, as the log has them now.

    The rows of the entries themselves are listed.
    """
    changes = Changes(view, through)
    for id in runs:
        yield from changes.of(id, BEFORE_ALL, changes.moments(id))


class Changes:
    """How the rows of runs change with some entries of a log, up to a position."""

    def __init__(self, view: View, through: int) -> None:
        self._view = view
        self._through = through
        self._listings: dict[str, list[int]] = {}
        self._histories: dict[str, list[RunStatement]] = {}
        self._told: dict[str, list[Entry]] = {}
        """The entries of runs as far as a line is made of them, and one more."""
        self._kinds: dict[str, bool] = {}

    def _listed(self, term: str) -> list[int]:
        kind = term[: term.index("/") + 1]
        if kind not in self._kinds:
            self._kinds[kind] = bool(self._view.scan(LISTS, kind.encode(), limit=1))
        if not self._kinds[kind]:
            return []  # asked once, instead of run by run: most logs have none
        if term not in self._listings:
            self._listings[term] = [position_of(key) for key, _ in self._view.scan(LISTS, text_prefix(term))]
        return self._listings[term]

    def _entries(self, term: str, position: int) -> Iterator[Entry]:
        """Yield the entries listed under a term, through a position, that are not erased."""
        for at in self._listed(term):
            entry = self._view.entry(at) if at <= position else None
            if entry is not None and entry.body is not None:
                yield entry

    # Which runs an entry may list otherwise

    def touched_by(self, entry: Listed) -> Iterable[str]:
        """Return the runs that may be listed otherwise because of an entry."""
        if entry.kind in RUN_KINDS:
            if entry.run is None:
                return ()
            return (entry.run, *self._below(entry.run, entry.position)) if entry.kind == STARTED else (entry.run,)
        if b'"evaluation' not in entry.body:
            return ()
        if entry.kind == "schema":
            return self._judged_at_all() if b'"evaluation"' in entry.body else ()
        if entry.kind != "observation":
            return ()
        ref = entry.said.entity
        named = relation.joined(ref) or (ref,)
        return self.subjects(named, entry.position) if named[0].type == EVALUATION else ()

    def _below(self, run: str, position: int) -> list[str]:
        """Return the runs that a run started, and those that these started: they may inherit its pipeline."""
        below: dict[str, None] = {}
        waiting = [run]
        for _ in range(ANCESTORS_MAX):
            children = [child for above in waiting for child in self._inside(above, position)]
            waiting = [child for child in children if child not in below and child != run]
            if not waiting:
                break
            below.update(dict.fromkeys(waiting))
        return list(below)

    def _inside(self, run: str, position: int) -> Iterator[str]:
        for entry in self._entries(INSIDE + run, position):
            assert entry.body is not None
            child = form.decode(entry.body).get("run")
            if isinstance(child, str):
                yield child

    def subjects(self, refs: Iterable[Ref], position: int) -> set[str]:
        """Return the runs that evaluations, and those they were or are joined with, ever named."""
        members: set[Ref] = set()
        for at in (position - 1, position):
            reader = Reader(self._view, AsOf(at), BUILTIN)
            members.update(member for ref in refs for member in reader.group(ref))
        stated = (one.observation for ref in members for one in self._view.observations(ref.digest, -1, position))
        named = (said.fields.get("subject") for said in stated)
        return {subject for subject in named if isinstance(subject, str)}

    def _judged_at_all(self) -> set[str]:
        keys = (key for key, _ in self._view.scan(LISTS, JUDGED.encode(), through=self._through))
        return {key[len(JUDGED) : -9].decode() for key in keys}

    # How a run is listed

    def moments(self, id: str) -> list[int]:
        """Return the positions at which a run may come to be listed otherwise, in order."""
        found: set[int] = set()
        above: str | None = id
        for _ in range(ANCESTORS_MAX + 1):
            if above is None:
                break
            found.update(said.position for said in self._history(above))
            if above == id:
                found.update(entry.position for entry in self._told[id])
            outline = self._outline(above, self._through)
            above = None if outline is None else outline.parent
        judging = {member for ref in self._evaluations(id, self._through) for member in self._ever_joined(ref)}
        for ref in judging:
            found.update(said.position for said in self._view.observations(ref.digest, BEFORE_ALL, self._through))
        if judging:
            schemas = self._view.entries(through=self._through, kinds={"schema"})
            found.update(
                entry.position for entry in schemas if entry.body is not None and b'"evaluation"' in entry.body
            )
        return sorted(at for at in found if at <= self._through)

    def _ever_joined(self, ref: Ref) -> set[Ref]:
        if not entry_index.joined(self._view, ref.digest):
            return {ref}
        members, edges = component(self._view, ref, self._through)
        return members | edges

    def of(self, id: str, after: int, positions: Iterable[int]) -> Iterator[IndexRow]:
        """Yield the rows of a run that begin or end at some positions after one, in order.

        One that was listed at `after` and ends is marked as `STANDING`.
        """
        live = dict.fromkeys(self.rows(id, after), STANDING)
        ended = min((item.position for item in self._history(id) if item.kind == "run.ended"), default=None)
        steps = {entry.position for entry in self._told[id] if entry.kind not in OUTLINED}
        for position in positions:
            if position in steps and (ended is None or position < ended):
                continue  # lists do not ask for steps, and there is no line yet
            rows = self.rows(id, position)
            for row in [row for row in live if row not in rows]:
                since = live.pop(row)
                if since != position:
                    yield _made(row, since, position)
            for row in rows:
                live.setdefault(row, position)
        yield from (_made(row, since, None) for row, since in live.items() if since != STANDING)

    def rows(self, id: str, position: int) -> set[ListRow]:
        """Return the rows by which a run is listed at a position."""
        if not any(item.position <= position for item in self._history(id)):
            return set()
        judgements = self._judgements(id, position)
        outline = self._outline(id, position, judgements or ())
        if outline is None:
            return set()
        problems = {"verdict"} if judgements is None else set()
        run, place = id.encode(), outline.place
        terms = {value_term("agent", agent) for agent in outline.agents}
        pipeline = self._pipeline(outline, position, problems)
        texts = {
            "query": outline.query,
            "principal": outline.principal,
            "conversation": outline.conversation,
            TALK: outline.conversation if outline.session is None else None,
            "session": outline.session,
            "pipeline": pipeline,
            "verdict": outline.verdict,
        }
        terms.update(value_term(name, value) for name, value in texts.items() if value is not None)
        if outline.subject is not None:
            terms.add(subject_term(outline.subject.digest))
        terms.add(STATUS + outline.status)
        terms.add(BEGAN + (outline.started_at or ""))
        terms.update(UNSETTLED + name for name in outline.unsettled | problems)
        line = None if judgements is None or "agent" in outline.unsettled else self._line(id, position, judgements)
        return {
            *((term, place, run) for term in terms),
            (EVERY, place, run + b"\0" + (outline.started_at or "").encode()),
            *(() if line is None else ((LINE + id, place, line),)),
        }

    def _line(self, id: str, position: int, judgements: Sequence[Judgement]) -> bytes | None:
        """Return the line of a run at a position; none where it has to be read."""
        if not any(item.kind == "run.ended" and item.position <= position for item in self._history(id)):
            return None
        return row_of(id, [entry for entry in self._told[id] if entry.position <= position], judgements)

    def _outline(self, id: str, position: int, judgements: Sequence[Judgement] = ()) -> Outline | None:
        said = [item for item in self._history(id) if item.position <= position]
        return outline_of(id, said, judgements) if said else None

    def _judgements(self, id: str, position: int) -> list[Judgement] | None:
        """Return what evaluations say of a run at a position; none where a policy is missing that merges them."""
        refs = self._evaluations(id, position)
        if not refs:
            return []
        try:
            reader = Reader(self._view, AsOf(position), BUILTIN)
            return [found for ref in refs for found in Judgement.of_evaluation(ref, reader.find(ref), id)]
        except Unavailable:
            return None

    def _history(self, id: str) -> list[RunStatement]:
        """Return what is said of how a run began, ended and was judged, in order, as far as the log is read."""
        said = self._histories.get(id)
        if said is None:
            entries = entry_index.run_entries(self._view, id, self._through)
            said = self._histories[id] = statements(id, entries)
            self._told[id] = entries[: ENTRIES_MAX + 1]
        return said

    def _evaluations(self, id: str, position: int) -> list[Ref]:
        listed = self._entries(JUDGED + id, position)
        return list(dict.fromkeys(observation.stored(entry.body).entity for entry in listed if entry.body is not None))

    def _pipeline(self, outline: Outline, position: int, problems: set[str]) -> str | None:
        """Return the pipeline that a run is a step of, by itself or by the runs above it."""
        above: Outline | None = outline
        for _ in range(ANCESTORS_MAX):
            if above is None or above.pipeline is not None:
                break
            parent = above.parent
            above = None if parent is None else self._outline(parent, position)
            if above is not None and "agent" in above.unsettled:
                problems.add("pipeline")
        return None if above is None else above.pipeline

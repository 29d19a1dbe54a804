"""The run reader: run records, and what indexes tell of runs, of one tenant at one as-of.

Everything here is exact and needs no model. What a run wrote, who evaluated it, and whose values a decision leaned on
is found by the rows that were put with the entries.
"""

from __future__ import annotations

from contextlib import contextmanager
from heapq import merge
from typing import TYPE_CHECKING, cast

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Lookup
from woodrat.ledger.matches import find_ref, ref_faults
from woodrat.ledger.moments import NO_READ, open_reader
from woodrat.merge.packing import garbled
from woodrat.runs import index, trace
from woodrat.runs.index.candidates import Candidate
from woodrat.runs.index.terms import (
    ABOUT,
    JUDGED,
    LINE,
    LISTS,
    NAME,
    TRACED,
)
from woodrat.runs.record import RunRecord, record_of
from woodrat.runs.recorder import current
from woodrat.runs.steps import Judgement, Write
from woodrat.runs.summary import SummaryRow, read_row
from woodrat.state import observation
from woodrat.state.entry_rows import position_of, term_key, text_prefix
from woodrat.state.run_owner import owned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.ledger.read import Reader
    from woodrat.log.entry import Entry


class RunReader:
    """Run records of one tenant at one as-of."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.view: View = reader.view
        self.through = reader.asof.position
        self.index = Lookup(self.view, self.through, NAME)
        self.lists = Lookup(self.view, self.through, LISTS)

    def find(self, id: str) -> RunRecord | None:
        """Return a run's record; `None` when no entry is part of it."""
        entries = entry_index.run_entries(self.view, id, self.through)
        return self.record(id, entries) if entries else None

    def record(self, id: str, entries: Iterable[Entry] | None = None) -> RunRecord:
        """Return the record of a run, with what it wrote and who evaluated it; `entries` are its own."""
        writes, judgements = self._writes(id), self._evaluations(id)
        told = entry_index.run_entries(self.view, id, self.through) if entries is None else entries
        return record_of(id, told, writes, judgements, recording=current.is_recorded(id), linked=self._linked)

    def bare(self, id: str, entries: Iterable[Entry] | None = None) -> RunRecord:
        """Return a run's record without what it wrote and who evaluated it, which is quicker; `entries` are its own."""
        told = entry_index.run_entries(self.view, id, self.through) if entries is None else entries
        return record_of(id, told, recording=current.is_recorded(id))

    def _linked(self, id: str, traceparent: str | None) -> set[str]:
        """Return the other runs of a run's trace: what an index says, and the run that the trace's own id spells."""
        found: set[str] = set()
        for name in {trace.trace_id(id), trace.trace_of(traceparent)} - {None}:
            began = (form.decode(entry.body or b"{}").get("run") for entry in self.index.entries(f"{TRACED}{name}"))
            found.update(run for run in began if isinstance(run, str))
        if (named := trace.trace_of(traceparent)) is not None:
            spelled = trace.run_of(named)
            found.update({spelled} if entry_index.has_run(self.view, spelled, self.through) else ())
        return found - {id}

    def _writes(self, id: str) -> Iterator[Write]:
        for entry in index.written(self.view, id, self.through):
            if entry.body is not None:
                yield Write.of(entry.position, observation.stored(entry.body))

    def _evaluations(self, id: str) -> Iterator[Judgement]:
        """Yield what each `evaluation` of the run says now."""
        refs: dict[Ref, None] = {}
        for position in self.index.positions(JUDGED + id):
            entry = self.view.entry(position)
            if entry is not None and entry.body is not None:
                refs[observation.stored(entry.body).entity] = None
        for ref in refs:
            yield from Judgement.of_evaluation(ref, self.reader.find(ref), id)

    def decided(self, members: Iterable[Ref], after: tuple[str, int] | None) -> Iterator[tuple[str, int]]:
        """Yield time and position of the decisions that may be about entities, from after one on, the latest first."""
        beginnings = [f"{ABOUT}{ref.id}/" for ref in members]
        yield from merge(*(self._decided(beginning, after) for beginning in beginnings), reverse=True)

    def _decided(self, beginning: str, after: tuple[str, int] | None) -> Iterator[tuple[str, int]]:
        """Yield time and position of the decisions listed under terms that begin so."""
        prefix, size = beginning.encode(), WALK_ROWS_MIN
        last = None if after is None else term_key(beginning + after[0], max(0, min(after[1], self.through)))
        while True:
            rows = self.index.scan(prefix, after=last, reverse=True, limit=size)
            for key, _ in rows:
                yield key[len(prefix) : -9].decode(), position_of(key)
            if len(rows) < size:
                return
            last, size = rows[-1][0], min(size * 4, WALK_ROWS)

    def candidates(self, ids: Iterable[str]) -> Iterator[Candidate]:
        """Yield runs with their places in lists, those of which a beginning is known."""
        for id in ids:
            entries = (
                entry for entry in entry_index.run_entries(self.view, id, self.through) if entry.kind == "run.started"
            )
            began = [entry.position for entry in owned(id, (entry for entry in entries if entry.body is not None))]
            if began:
                yield Candidate(min(began), id)

    def rows(self, runs: Iterable[str]) -> dict[str, SummaryRow]:
        """Return the summary rows of runs, by id, of those that have one which holds at the as-of."""
        if self.reader.asof.effective is not None:
            return {}
        prefixes = sorted({text_prefix(LINE + id) for id in runs})
        if self.lists.through is None:
            rows = self.view.find(LISTS, prefixes)
        else:
            rows = [row for prefix in prefixes for row in self.lists.scan(prefix, limit=1)]
        try:
            found = [read_row(value) for _, value in rows]
        except (TypeError, ValueError) as error:
            raise garbled(f"The index {LISTS}") from error
        return {row.summary.id: row for row in found}

    def members(self, ref: str | Ref, path: str = "ref") -> tuple[Ref, ...]:
        """Return an entity with all that it is joined with, by whatever names it; it need not be known."""
        return self.reader.group(find_ref(self.reader, ref, path=path))


@contextmanager
def open_runs(context: Context, position: int | None = None) -> Iterator[RunReader]:
    """Give the run records of a tenant at the context's moment.

    With a `position`, as of that one: a page of a list that began there.
    """
    with open_reader(context if position is None else context.at(position, context.valid_at)) as reader:
        yield RunReader(reader)


def run_record(run_reader: RunReader, id: object) -> RunRecord:
    """Return the record of a run; `NotFound` when there is none."""
    if not isinstance(id, str):
        problem = f"expected a run's id, got {shown(id)}"
        raise Refused([Fault("run", problem, "Send it as text, such as run_….")], NO_READ)
    found = run_reader.find(id)
    if found is None:
        raise NotFound(
            f"There is no run {id} at position {run_reader.through}. Nothing was changed. `runs list` lists them.",
            {"run": id, "position": run_reader.through},
        )
    return found


def named_ref(name: str, value: object, faults: list[Fault]) -> str | Ref | None:
    wrong = [] if value is None else ref_faults(value, name)
    faults += wrong
    return None if wrong else cast("str | Ref | None", value)

"""Impact runs: what an impact asks of runs that need not be read as a whole, found for many of them at once.

The row of a run (`runs/summary.py`) says where its reads and decisions stand, if each is as its own entry says, in the
order in which a record has them. The rest stands in the row.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from woodrat.canon import form
from woodrat.runs import steps
from woodrat.runs.index.terms import WROTE
from woodrat.runs.steps import Decision, Read, Write
from woodrat.state import observation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from woodrat.engines.records import KindedBody
    from woodrat.runs.reader.run_reader import RunReader
    from woodrat.runs.summary import SummaryRow

OBSERVATION: Final = "observation"


class ImpactRun:
    """What an impact asks of a run. Its steps are made when they are asked for, without asking an engine."""

    def __init__(self, row: SummaryRow, written: Sequence[int], bodies: Mapping[int, KindedBody]) -> None:
        run = row.summary
        self.id, self.agent, self.query = run.id, run.agent, run.query
        self.subject, self.status, self.answer = run.subject, run.status, run.answer
        reads, decisions = row.parts or ((), ())
        self.places: tuple[int, ...] = (*reads, *decisions)
        """Where its reads and decisions stand."""
        self._reads = [(at, *bodies[at]) for at in reads]
        self._decisions = [(at, *bodies[at]) for at in decisions]
        self._written = [(at, *bodies[at]) for at in written]

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """What it read."""
        return tuple(part for part in map(_part, self._reads) if isinstance(part, Read))

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What it decided."""
        return tuple(part for part in map(_part, self._decisions) if isinstance(part, Decision))

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """What it wrote, by position; what another agent wrote in its name is not its own."""
        writes = (Write.of(at, observation.stored(body)) for at, kind, body in self._written if kind == OBSERVATION)
        return tuple(write for write in writes if write.agent == self.agent)


def _part(entry: tuple[int, str, bytes]) -> steps.Part | None:
    position, kind, data = entry
    return steps.part_of(kind, position, form.decode(data))


def impact_runs(run_reader: RunReader, runs: Collection[str], bodies: Mapping[int, KindedBody]) -> Iterator[ImpactRun]:
    """Yield those of some runs that need not be read as a whole; `bodies` are at hand already."""
    if not runs:
        return
    rows = {id: row for id, row in run_reader.rows(runs).items() if row.parts is not None and not row.summary.cut}
    written = run_reader.index.positions_under(WROTE, rows) if rows else {}
    sought = {at for row in rows.values() for listed in row.parts or () for at in listed}.union(*written.values())
    known = {**bodies, **run_reader.view.bodies(sought.difference(bodies))}
    for id, row in rows.items():
        yield ImpactRun(row, [at for at in written.get(id, ()) if at in known], known)

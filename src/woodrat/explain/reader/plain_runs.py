"""Plain runs: what an impact asks of runs that need not be read as a whole, found for many of them at once.

Of a run with a plain line (`runs/summary.py`) each entry is a part as it stands. So its reads and decisions are those
of their own entries, in the order in which a record has them, and the rest stands in the line.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.runs import steps
from woodrat.runs.account import WRITES
from woodrat.runs.index.terms import WROTE
from woodrat.runs.steps import Decision, Read, Write
from woodrat.state import observation
from woodrat.state.entry_rows import POSITION_BYTES, RUN, position_of, text_prefix

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from woodrat.canon.form import Json
    from woodrat.engines.port import KindedBody
    from woodrat.runs.reader import Recounter
    from woodrat.runs.summary import Line

OBSERVATION: Final = "observation"
_KINDS: Final = frozenset({"run.started", "run.read", "run.decided", OBSERVATION})
_SPAN: Final = b'"span"'
"""Stands once in a decision, for its own, unless an origin or a value has such a member too."""
_ELSEWHERE: Final = f'"{WRITES}"'.encode()


class PlainRun:
    """What an impact asks of a run. Its steps are made when they are asked for, without asking an engine."""

    def __init__(self, line: Line, entries: list[tuple[int, str, bytes]]) -> None:
        self.id: str = line["id"]
        self.agent: str | None = line["agent"]
        self.query: str | None = line["query"]
        self.subject: str | None = line["subject"]
        self.status: str = line["status"]
        self.answer: Json = line["answer"]
        self._entries = entries
        """Its reads and decisions and what it wrote: position, kind and body."""

    @property
    def first(self) -> int:
        """Where the first of its reads and decisions stands."""
        return min(position for position, kind, _ in self._entries if kind != OBSERVATION)

    @cached_property
    def _parts(self) -> list[Read | Decision]:
        """Its reads and decisions, in the order of its record."""
        parts: list[tuple[tuple[str, int, str, bytes], Read | Decision]] = []
        for position, kind, data in self._entries:
            part = None if kind == OBSERVATION else steps.part_of(kind, position, form.decode(data))
            if isinstance(part, Read | Decision):
                parts.append(((part.started_at or "", part.step, part.span, bytes(digest(kind, data))), part))
        return [part for _, part in sorted(parts, key=lambda item: item[0])]

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """What it read."""
        return tuple(part for part in self._parts if isinstance(part, Read))

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What it decided."""
        return tuple(part for part in self._parts if isinstance(part, Decision))

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """What it wrote, by position; what another agent wrote in its name is not its own."""
        said = [(position, data) for position, kind, data in self._entries if kind == OBSERVATION]
        writes = (Write.of(position, observation.stored(data)) for position, data in sorted(said))
        return tuple(write for write in writes if write.agent == self.agent)


def plain_runs(recounter: Recounter, runs: Collection[str]) -> dict[str, PlainRun]:
    """Return those of some runs that need not be read as a whole, by id."""
    if not runs or not recounter.has_lines:
        return {}
    lines = {id: line for id, line in recounter.lines(runs).items() if line.plain and not line["cut"]}
    places = _places(recounter, lines)
    bodies = recounter.view.bodies([at for each in places.values() for at in each], _KINDS)
    found = ((id, _plain_run(line, places[id], bodies)) for id, line in lines.items())
    return {id: run for id, run in found if run is not None}


def _places(recounter: Recounter, runs: Iterable[str]) -> dict[str, list[int]]:
    """Return the positions of the entries of runs, and of the observations that carry them."""
    places: dict[str, list[int]] = {}
    prefixes = {text_prefix(id): id for id in runs}
    for key, _ in recounter.view.find(RUN, sorted(prefixes)) if prefixes else ():
        id, position = prefixes.get(key[:-POSITION_BYTES]), position_of(key)
        if id is not None and position <= recounter.through:
            places.setdefault(id, []).append(position)
    for id, positions in recounter.index.positions_under(WROTE, prefixes.values()).items():
        places.setdefault(id, []).extend(positions)
    return places


def _plain_run(line: Line, places: Iterable[int], bodies: Mapping[int, KindedBody]) -> PlainRun | None:
    """Return a run by its line and its entries; none where it has to be read as a whole after all."""
    entries: list[tuple[int, str, bytes]] = []
    for position in places:
        kind, data = bodies.get(position, ("", b""))
        if kind == "run.started":
            if _ELSEWHERE in data:
                return None  # it was imported, and wrote in another log
        elif kind:
            if kind == "run.decided" and data.count(_SPAN) > 1:
                return None  # a value may have come from a call, and is told with the call then
            entries.append((position, kind, data))
    return PlainRun(line, entries)

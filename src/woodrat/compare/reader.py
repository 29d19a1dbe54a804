"""The run comparer: where recorded runs part, two or many, with what the log knows of the observations they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import ids
from woodrat.canon.ids import Ref
from woodrat.compare import contrast
from woodrat.compare.cause import Statement
from woodrat.compare.divergence import Divergence, compare
from woodrat.compare.groups import Crowd, gather
from woodrat.errors import Fault, NotFound, Refused
from woodrat.ledger.moments import NO_READ, here
from woodrat.records import replace
from woodrat.runs import reader as run_reader
from woodrat.runs.reader import open_recounter
from woodrat.state import source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.context import Context
    from woodrat.runs.reader import Recounter, Runs
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored


RUNS_MAX: Final = 10_000
"""Most runs of one crowd."""


def runs_diff(context: Context, first: object, second: object, other: Context | None = None) -> Divergence:
    """Return where two runs part and why; `NotFound` when either is not here, or the second not in `other`.

    A run is an id, or a document that holds one run in the neutral format. `other` at another moment of the same log
    is of no account.
    """
    with open_recounter(context) as recounter:
        if other is None or (other.engine is context.engine and other.tenant == context.tenant):
            return _compared(recounter, first, second, None)
        with open_recounter(other) as elsewhere:
            return _compared(recounter, first, second, elsewhere)


def _compared(recounter: Recounter, first: object, second: object, other: Recounter | None) -> Divergence:
    a = _record(recounter, first, "first")
    b = a if other is None and first == second else _record(other or recounter, second, "second")
    if other is None or isinstance(second, dict | list):
        return compare(a, b, LogLineage(recounter))
    return compare(a, b, LogLineage(recounter), LogLineage(other))


def runs_group(context: Context, runs: Sequence[object] | None, like: object, asked: Runs | None) -> Crowd:
    """Return runs clustered by where they part: those named, those a question fits, or those with the inputs of one."""
    with open_recounter(context) as recounter:
        return gather(_all_meant(recounter, runs, like, asked), LogLineage(recounter))


def _all_meant(
    recounter: Recounter, runs: Sequence[object] | None, like: object, asked: Runs | None
) -> list[RunRecord]:
    found: list[RunRecord] = []
    if runs is not None:
        for number, run in enumerate(runs):
            found += _records(recounter, run, f"runs/{number}")
    if asked is not None:
        model = None if like is None else run_reader.run_record(recounter, like)
        if model is not None:
            asked = _like(asked, model)
        for _, record in run_reader.matching(recounter, asked):
            if model is None or contrast.same_start(record, model):
                found.append(record)
            if len(found) > RUNS_MAX:
                break
    if len(found) > RUNS_MAX:
        remedy = "Narrow it with since and until, or name the runs."
        raise Refused([Fault("runs", f"there are more than {RUNS_MAX:,} runs", remedy)], NO_READ)
    if not found:
        raise NotFound(
            f"There is no run to compare at position {recounter.through}. Nothing was changed. `runs list` lists them.",
            {"position": recounter.through},
        )
    return found


def _like(asked: Runs, model: RunRecord) -> Runs:
    """Return a question for runs, narrowed by the index of subjects to those with the subject of a run."""
    equal = {**asked.equal, **({} if model.query is None else {"query": model.query})}
    return replace(asked, equal=equal, subject=asked.subject or _ref(model.subject or ""))


def _record(recounter: Recounter, run: object, name: str) -> RunRecord:
    found = _records(recounter, run, name)
    if len(found) != 1:
        problem, remedy = f"there are {len(found)} runs in it", "Send one run; `runs.group` compares many."
        raise Refused([Fault(name, problem, remedy)], NO_READ)
    return found[0]


def _records(recounter: Recounter, run: object, name: str) -> tuple[RunRecord, ...]:
    if not isinstance(run, dict | list):
        return (run_reader.run_record(recounter, run),)
    from woodrat.runs.verbs import documents as document

    try:
        return document.read(run)
    except Refused as refusal:
        raise Refused((fault.under(name) for fault in refusal.faults), NO_READ) from None


class LogLineage:
    """What one log knows at one as-of of the observations that runs read; observations are found by their ids."""

    def __init__(self, recounter: Recounter) -> None:
        self._reader, self._view, self._through = recounter.reader, recounter.view, recounter.through
        self.log = recounter.view.head().log

    def place(self, log: str | None, position: int | None) -> int | None:
        """Return a position of a read where the log it names is this one; none where it is another."""
        return here(self._view, log, position)

    def statement(self, observation: str) -> Statement | None:
        """Return an observation by its id; none where it is not here, or came later."""
        found = self._view.observation_by_id(observation)
        return None if found is None or found.position > self._through else self._told(found)

    def between(self, entity: str, after: int, through: int) -> Sequence[Statement]:
        """Return what was said of an entity, and of those it is joined with, after one position and up to another."""
        ref = _ref(entity)
        if ref is None:
            return ()
        found = self._reader.stored(self._reader.group(ref), after)
        return [self._told(stored) for stored in found if stored.position <= through]

    def schema(self, entity: str, position: int) -> int | None:
        """Return the version of the schema in force for an entity at a position, 0 without one; none for no entity."""
        ref = _ref(entity)
        if ref is None:
            return None
        found = self._view.schema(ref.type, min(position, self._through))
        return 0 if found is None else found.version

    def _told(self, stored: Stored) -> Statement:
        said, entry = stored.observation, self._view.entry(stored.position)
        named, run = said.optional.get("source"), said.optional.get("run")
        digest = ids.digest_of("source", named) if isinstance(named, str) else None
        return Statement(
            observation=said.id,
            entity=str(said.entity),
            op=said.op,
            agent=said.agent,
            position=stored.position,
            recorded_at=None if entry is None else entry.recorded_at,
            fields=dict(said.fields),
            replaces=tuple(sorted(ids.id_of("observation", digest) for digest in said.replaces)),
            source=None if digest is None else ids.id_of("source", digest),
            source_name=None if digest is None else self._called(digest),
            run=run if isinstance(run, str) else None,
            log=self.log,
        )

    def _called(self, digest: bytes) -> str | None:
        """Return what a source was called when it first came: its delivery is in the same write as its content."""
        position = self._view.source(digest)
        if position is None:
            return None
        for entry in self._view.entries(position, min(position + 1, self._through), {"received"}):
            if entry.body is not None and (delivery := source.stored(entry.body)).source_digest == digest:
                return delivery.name
        return None


def _ref(text: str) -> Ref | None:
    try:
        return ids.parse_ref(text)
    except Refused:
        return None

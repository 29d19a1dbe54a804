"""Writes: the verbs that write, each a step of a run.

What is written carries the run and the step, and names the claims that the run has read of the entities it speaks of.
Each call has an idempotency key even where the caller states none: the same call of a resumed run is stored once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.errors import Unavailable
from woodrat.ledger.arguments import request_name
from woodrat.runs.recorder.steps import ENDED, RUNNING, StepRecorder, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from woodrat.canon.ids import Ref
    from woodrat.ledger.report import Report


class RunWrites(StepRecorder):
    """The writing half of a run."""

    def store(self, records: Sequence[Mapping[str, Any]] | Mapping[str, Any], **about: Any) -> Report:
        """Store records as `Ledger.store` does, as a step of this run."""
        return self._write("store", records, **about)

    def remember(self, text: str, **about: Any) -> Report:
        """Remember a sentence as `Ledger.remember` does, as a step of this run."""
        return self._write("remember", text, **about)

    def correct(self, ref: str | Ref, fields: Mapping[str, Any] | None = None, **about: Any) -> Report:
        """Correct fields of an entity as `Ledger.correct` does, as a step of this run."""
        return self._write("correct", ref, fields, **about)

    def retract(self, observations: str | Sequence[str], **about: Any) -> Report:
        """Withdraw observations as `Ledger.retract` does, as a step of this run."""
        return self._write("retract", observations, **about)

    def delete(self, ref: str | Ref, **about: Any) -> Report:
        """Mark an entity as deleted as `Ledger.delete` does, as a step of this run."""
        return self._write("delete", ref, **about)

    def restore(self, ref: str | Ref, **about: Any) -> Report:
        """Bring an entity back as `Ledger.restore` does, as a step of this run."""
        return self._write("restore", ref, **about)

    def relate(self, start: str | Ref, type: str, end: str | Ref, **about: Any) -> Report:
        """Relate two entities as `Ledger.relate` does, as a step of this run."""
        return self._write("relate", start, type, end, **about)

    def merge(self, one: str | Ref, other: str | Ref, **about: Any) -> Report:
        """Say that two entities are one as `Ledger.merge` does, as a step of this run."""
        return self._write("merge", one, other, **about)

    def split(self, ref: str | Ref, other: str | Ref | None = None, **about: Any) -> Report:
        """Part an entity from others as `Ledger.split` does, as a step of this run."""
        return self._write("split", ref, other, **about)

    def interpretation(self, source_id: str, **about: Any) -> AbstractContextManager[Any]:
        """Read a source as `ledger.interpretations.start` does; what is stored inside is part of this run."""
        return self.log.interpretation(self._begin_write(), source_id, about)

    def _write(self, verb: str, *arguments: Any, **about: Any) -> Report:
        """Write as a step of this run. Faults are the caller's: a write that fails always raises."""
        step = self._begin_write()
        try:
            report = self.log.write(step, verb, arguments, about)
        except _Answered as known:
            return known.report
        except Unavailable:
            step.give_back()  # the same call again is a retry, and must have the same key
            raise
        if report.observations and not report.repeated and not report.dry_run:
            self.unrecorded.discard(step.step)
        if self.recording is not None:
            self.recording.wrote(report.repeated)
        return report

    def _begin_write(self) -> RunWriteStep:
        with self.lock:
            if self.state != RUNNING:
                problem = "it has ended" if self.state == ENDED else "it has not started"
                raise refused(self.id, problem, "Write through the ledger instead.", "Nothing was written.")
            return RunWriteStep(self, self.take_number().step)


class _Answered(Exception):
    """Ends a write that a run of which this one is a fork has made already."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


class RunWriteStep:
    """One step of a run that writes."""

    def __init__(self, recorder: StepRecorder, step: int) -> None:
        self._recorder = recorder
        self._taken: list[str] = []
        self.run = recorder.id
        self.step = step
        self.counter = recorder.counter
        self.hidden = recorder.hidden

    def saw(self, entities: Iterable[Ref]) -> Sequence[str]:
        """Return the observations of these entities that the run has read."""
        with self._recorder.lock:
            return self._recorder.links.seen(entities)

    def key(self, verb: str, given: Mapping[str, object]) -> str:
        """Return the key of a call: the run, the request, and how many equal requests came before it."""
        name = request_name(verb, given)
        recorder = self._recorder
        if recorder.counted is not None:
            counter, count = recorder.counted
            return f"{self.run}.{counter}{name}.{count}"
        with recorder.lock:
            count = recorder.written.get(name, 0)
            recorder.written[name] = count + 1
            self._taken.append(name)
        if recorder.recording is not None and (report := recorder.recording.report(f"{name}.{count}")) is not None:
            raise _Answered(report)
        return f"{self.run}.{recorder.counter}{name}.{count}"

    def give_back(self) -> None:
        """Let the next equal request be the same one again."""
        with self._recorder.lock:
            for name in self._taken:
                self._recorder.written[name] -= 1

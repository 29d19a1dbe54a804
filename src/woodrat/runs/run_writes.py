"""Run writes: the verbs that write, each a step of a run.

What is written carries the run and the step, and names the claims that the run has read of the entities it speaks of.
Each call has an idempotency key even where the caller states none: the same call of a resumed run is stored once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.errors import Unavailable
from woodrat.ledger import facts
from woodrat.ledger.arguments import request_name
from woodrat.runs import current

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from woodrat.api.ledger import Ledger
    from woodrat.canon.ids import Ref
    from woodrat.ledger.report import Report
    from woodrat.ledger.sources import Reading
    from woodrat.runs.recorder import Run


class RunWrites:
    """The writing half of a run."""

    _ledger: Ledger

    def _writing(self) -> Writing:
        """Begin a step that writes."""
        raise NotImplementedError

    def _wrote(self, report: Report, step: int) -> None:
        """Take note of what a step has written."""
        raise NotImplementedError

    def store(self, records: Sequence[Mapping[str, Any]] | Mapping[str, Any], **about: Any) -> Report:
        """Store records as `Ledger.store` does, as a step of this run."""
        return self._write("store", records, **about)

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

    def interpretation(self, source_id: str, **about: Any) -> AbstractContextManager[Reading]:
        """Read a source as `Ledger.interpretation` does; what is stored inside is part of this run."""
        from woodrat.ledger import sources

        context = current.write_context(self._ledger.context)
        return sources.interpretation(context, source_id, within=self._writing(), **about)

    def _write(self, verb: str, *arguments: Any, **about: Any) -> Report:
        """Write as a step of this run. Faults are the caller's: a write that fails always raises."""
        writing = self._writing()
        try:
            context = current.write_context(self._ledger.context)
            report: Report = getattr(facts, verb)(context, *arguments, within=writing, **about)
        except Unavailable:
            writing.give_back()  # the same call again is a retry, and must have the same key
            raise
        self._wrote(report, writing.step)
        return report


class Writing:
    """One step of a run that writes."""

    def __init__(self, run: Run, step: int) -> None:
        self._run = run
        self._taken: list[str] = []
        self.run = run.id
        self.step = step

    def saw(self, entities: Iterable[Ref]) -> Sequence[str]:
        """Return the observations of these entities that the run has read."""
        with self._run._lock:
            return self._run._links.seen(entities)

    def key(self, verb: str, given: Mapping[str, object]) -> str:
        """Return the key of a call: the run, the request, and how many equal requests came before it."""
        name = request_name(verb, given)
        if self._run.counted is not None:
            recorder, count = self._run.counted
            return f"{self.run}.{recorder}{name}.{count}"
        with self._run._lock:
            count = self._run._written.get(name, 0)
            self._run._written[name] = count + 1
            self._taken.append(name)
        return f"{self.run}.{self._run._recorder}{name}.{count}"

    def give_back(self) -> None:
        """Let the next equal request be the same one again."""
        with self._run._lock:
            for name in self._taken:
                self._run._written[name] -= 1

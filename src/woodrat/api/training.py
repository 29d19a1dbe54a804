"""Training: recorded runs as training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import verb
from woodrat.ledger import spoken_times
from woodrat.ledger.moments import timestamp
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from os import PathLike
    from typing import IO

    from woodrat.api.namespace import ReadableLedger
    from woodrat.api.parameters import Flavour, OfAgent, OfVerdict, PairBy, StartedSince, StartedUntil, TrainingKind
    from woodrat.ledger.progress import Progress
    from woodrat.training.exports import Exported


class Training:
    """The verbs of training that read, at one moment."""

    def __init__(self, ledger: ReadableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(command="export training KIND", at_moment=True)
    def export(
        self,
        kind: TrainingKind,
        *,
        out: str | PathLike[str] | IO[str] | IO[bytes],
        flavour: Flavour = "trl",
        pair_by: PairBy = "input",
        agent: OfAgent | None = None,
        since: StartedSince | None = None,
        until: StartedUntil | None = None,
        verdict: OfVerdict | None = None,
        metadata: bool = True,
        record: bool = True,
        progress: Progress | None = None,
    ) -> Exported:
        """Write recorded runs as training data.

        `kind` is `sft`, `dpo`, `kto` or `process-rl`; each row is a JSON object on a line.

        Rows of kind `dpo` set a bad run against a good one of the same `pair_by`: `input` (question, subject and
        inputs together), `query`, `subject`, `conversation`, or the name of an attribute such as `task_id`.

        Runs that depend on retracted or deleted observations are excluded and listed. `metadata` adds the runs and
        entries of each row. `progress` gets the numbers of processed and of all entries. A writable
        ledger stores an `audit_event` of the export, by which `impact` finds it, unless `record` is false.
        """
        from woodrat.training.verbs import export_training

        home = self.ledger.home
        times, told = spoken_times.resolved({"since": since, "until": until}, self.context.clock)
        exported = export_training(
            current.write_context(self.context),
            kind,
            out=out,
            flavour=flavour,
            pair_by=pair_by,
            filters={
                "agent": agent,
                **{name: None if time is None else timestamp(time, name) for name, time in times.items()},
                "verdict": verdict,
            },
            metadata=metadata,
            store=home.store if record and home is not None else None,
            progress=progress,
        )
        return spoken_times.with_times(exported, told)

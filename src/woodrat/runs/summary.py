"""Summaries: what a list says of one run, and the row in which an index keeps it.

A summary is made of a run's record, and kept as a row, so that a page of a list reads rows instead of whole runs. A run
without a row is read; what is listed is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.record_json import Record
from woodrat.records import dataclass, fields_of
from woodrat.runs import steps as run_steps
from woodrat.runs.duplicate_spans import came_as_span
from woodrat.runs.record import RunRecord, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from woodrat.log.entry import Entry
    from woodrat.runs.steps import Decision, Judgement

VALUE_BYTES_MAX: Final = 1_000
"""Up to which length a summary has a question, an answer or an error as it is; of longer ones it has a preview."""
CHOICE_BYTES_MAX: Final = 200
"""Up to which length it has what was chosen as it is."""
CHOICES_MAX: Final = 8
"""How many of its decisions a summary names."""
ENTRIES_MAX: Final = 256
"""Up to how many entries a run has a row. A step that comes after the end of its run makes the row anew."""
PARTS_MAX: Final = 64
"""Up to how many reads and decisions together a row says where they stand."""
_SPAN: Final = b'"span"'
"""Stands once in a decision, for its own, unless an origin or a value has such a member too."""


@dataclass(frozen=True, slots=True)
class RunChoice(Record):
    """What a run decided at one stage."""

    stage: str
    """What was decided."""
    chosen: Json
    """The branch taken, a list under `select`; a preview of one that is long."""


@dataclass(frozen=True, slots=True)
class StepCounts(Record):
    """How many steps a run has, by kind."""

    decisions: int
    """What it decided."""
    tool_calls: int
    """The tools it called."""
    models: int
    """The models it called."""
    reads: int
    """What it read."""


@dataclass(frozen=True, slots=True)
class RunSummary(Record):
    """One run of a list; `runs.show` has all of it."""

    id: str
    """The run."""
    status: str
    """`done`, `error`, `cancelled`, `interrupted` or `running`."""
    agent: str | None
    """Who ran: the owner of the run, who recorded all of it."""
    names: tuple[str, ...]
    """What agents inside call themselves, sorted."""
    query: str | None
    """What was asked; a preview where `cut` says so."""
    subject: str | None
    """The entity it is about, as a reference."""
    principal: str | None
    """On whose behalf."""
    conversation: str | None
    """Which conversation it is part of."""
    session: str | None
    """The session it is part of, as a reference."""
    pipeline: str | None
    """The pipeline it is a step of, as a reference."""
    parent: Mapping[str, Any] | None
    """The step of another run that started it: `{"run", "span"}`."""
    forked_from: Mapping[str, Any] | None
    """The run and step it is a fork of: `{"run", "step"}`."""
    started_at: str | None
    """When it began; the time of the first step when no beginning is known."""
    ended_at: str | None
    """When it ended."""
    duration_ms: int | float | None
    """How long it took."""
    verdict: str | None
    """What its judges think of the whole run."""
    answer: Json
    """What it answered; a preview where `cut` says so."""
    error: Json
    """What ended it, where that was an error; a preview where `cut` says so."""
    cut: tuple[str, ...]
    """Which of `query`, `answer` and `error` are longer than what is shown here."""
    input_tokens: int
    """Tokens its models read."""
    output_tokens: int
    """Tokens its models wrote."""
    choices: tuple[RunChoice, ...]
    """What it decided, in order; the first of them where there are many."""
    counts: StepCounts
    """How many steps it has."""


def summary_of(record: RunRecord) -> RunSummary:
    """Return what a list says of a run."""
    cut: list[str] = []

    def short(name: str, value: Any) -> Any:
        if _is_short(value, VALUE_BYTES_MAX):
            return value
        cut.append(name)
        return run_steps.preview(value)

    shortened = {name: short(name, getattr(record, name)) for name in ("query", "answer", "error")}
    fork = record.forked_from
    made = {
        "forked_from": None if fork is None else {name: fork[name] for name in ("run", "step") if name in fork},
        "choices": tuple(map(_choice, record.decisions[:CHOICES_MAX])),
        "counts": StepCounts(len(record.decisions), len(record.tool_calls), len(record.models), len(record.reads)),
        "cut": tuple(cut),
    }
    same = {name: getattr(record, name) for name in fields_of(RunSummary) if name not in made}
    return RunSummary(**{**same, **shortened, **made})


def _is_short(value: Json, bytes_max: int) -> bool:
    return value is None or len(form.serialise(value)) <= bytes_max


def _choice(made: Decision) -> RunChoice:
    chosen = made.chosen
    return RunChoice(made.stage, chosen if _is_short(chosen, CHOICE_BYTES_MAX) else run_steps.preview(chosen))


class SummaryRow(NamedTuple):
    """What an index keeps of a run that has ended: its summary, and whether its steps can be read one by one."""

    plain: bool
    """Whether each of its entries is a part of it as it stands: none came twice, as a span, from another agent, or is
    erased."""
    parts: list[list[int]] | None
    """Where its reads stand, and where its decisions do, in order; none where these entries and what it wrote here do
    not say all that its record says of them."""
    summary: RunSummary
    """What a list says of it."""


def row_of(id: str, entries: Sequence[Entry], judgements: Iterable[Judgement]) -> bytes | None:
    """Return the row of a run by all its entries, and by what evaluations say of it; none where it has to be read.

    A run has a row once it has ended, if it was begun once, by an agent that is known, and is not very long. No step
    that comes later gives it one.
    """
    if len(entries) > ENTRIES_MAX or not any(entry.kind == "run.ended" for entry in entries):
        return None
    if sum(entry.kind == "run.started" for entry in entries) != 1:
        return None
    record = record_of(id, entries, judgements=judgements)
    if record.end is None or record.start is None:
        return None
    plain = _is_plain(entries, record)
    fields = summary_of(record).to_json()
    fields["choices"] = [[choice["stage"], choice["chosen"]] for choice in fields["choices"]]
    fields["counts"] = list(fields["counts"].values())
    return form.serialise([plain, _parts(entries, record) if plain else None, *fields.values()])


def _is_plain(entries: Sequence[Entry], record: RunRecord) -> bool:
    if record.erased or record.foreign or len({(entry.kind, entry.body) for entry in entries}) < len(entries):
        return False
    bodies = (entry.body for entry in entries if entry.body is not None and b'"otel"' in entry.body)
    return not any(came_as_span(form.decode(body)) for body in bodies)


def _parts(entries: Sequence[Entry], record: RunRecord) -> list[Json] | None:
    """Return where the reads and the decisions of a plain run stand."""
    if len(record.reads) + len(record.decisions) > PARTS_MAX:
        return None
    if any(write.position is None for write in record.writes):
        return None  # it was imported, and wrote in another log
    if any(entry.kind == "run.decided" and (entry.body or b"").count(_SPAN) > 1 for entry in entries):
        return None  # a value may have come from a call, and is told with the call then
    return [[read.position for read in record.reads], [made.position for made in record.decisions]]


def read_row(data: bytes) -> SummaryRow:
    """Return a row that was kept. What is wrong with it is a TypeError or a ValueError."""
    plain, parts, *values = form.decode(data)
    fields: dict[str, Any] = dict(zip(fields_of(RunSummary), values, strict=True))
    fields["names"], fields["cut"] = tuple(fields["names"]), tuple(fields["cut"])
    fields["choices"] = tuple(RunChoice(stage, chosen) for stage, chosen in fields["choices"])
    fields["counts"] = StepCounts(*fields["counts"])
    return SummaryRow(plain, parts, RunSummary(**fields))

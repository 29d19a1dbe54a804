"""Run: the set of a run's entries becomes one run record.

The record depends on the set alone. Entries are ordered by (started_at, step, span, digest of the body), so the order
of arrival, repetition and late spans cannot show through; where they stand in the log is only cited. A run whose
beginning is missing, which ended several times, or of which parts were erased still has a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from woodrat.canon import form, moment
from woodrat.canon.digest import digest
from woodrat.record_json import derived
from woodrat.records import dataclass
from woodrat.runs import messages
from woodrat.runs import steps as run_steps
from woodrat.runs.duplicate_spans import MODEL, TOOL, came_as_span, retold
from woodrat.runs.origin import with_calls
from woodrat.runs.run_fields import CANCELLED, DONE, ERROR, INTERRUPTED, RUNNING, WRITES, RunFields, verdict_of
from woodrat.runs.steps import Decision, Judgement, ModelCall, Note, Part, Read, ToolCall, Write
from woodrat.state import run_owner
from woodrat.state.meaning import FALLBACK, RUN_KINDS, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.log.entry import Entry


@dataclass(frozen=True, slots=True)
class RunRecord(RunFields):
    """What the log holds about one execution of an agent."""

    COMPACT: ClassVar = (
        "id",
        "status",
        "agent",
        "query",
        "subject",
        "started_at",
        "ended_at",
        "verdict",
        "answer",
        "error",
        "decisions",
    )
    """What a list shows of it."""

    @derived
    def narrative(self) -> str:
        """What happened, told from the log: the same bytes every time."""
        from woodrat.runs.projection import project

        return project(self, "narrative")

    def snapshot(self) -> dict[str, Any]:
        """Return the run in the snapshot format, with camelCase keys and previews of results; `import_` reads it."""
        from woodrat.runs.snapshot_format import write

        return write(self)

    def followup(self, question: str, **given: Any) -> list[dict[str, str]]:
        """Return the messages with which a small model answers a question about this run (`followup`)."""
        from woodrat.runs.projection import followup

        return followup(self, question, **given)


_TEXTS: Final = ("query", "subject", "principal", "conversation", "code", "trace")
"""What a beginning says as text."""
_PARTS: Final[Mapping[str, type[Part]]] = {
    "tool_calls": ToolCall,
    "models": ModelCall,
    "reads": Read,
    "notes": Note,
    "judgements": Judgement,
}


def record_of(
    id: str,
    entries: Iterable[Entry],
    writes: Iterable[Write] = (),
    judgements: Iterable[Judgement] = (),
    *,
    recording: bool = False,
    linked: Callable[[str, str | None], Iterable[str]] | None = None,
) -> RunRecord:
    """Return the record that these entries of a run make; duplicates count once, entries of other runs not at all.

    Entries of other agents than the run's owner are no part of it, judgements aside; the record says where they stand.
    `writes` are the observations that carry the run, `judgements` those of an `evaluation` that no entry of the run
    speaks of. `recording` says that its recorder lives: without an end it is `running` then, else `interrupted`.
    `linked` finds the other runs of a run's trace.
    """
    said, places, erased = _said(id, entries)
    agent = run_owner.owner_of(id, [(item.kind, item.body) for item in said])
    foreign = {place for item in said if not run_owner.is_part(item.kind, item.body, agent) for place in item.positions}
    said = [item for item in said if run_owner.is_part(item.kind, item.body, agent)]
    wrote = {write.observation: write for write in writes}.values()
    foreign.update(write.position for write in wrote if write.agent != agent and write.position is not None)
    ends = [item for item in said if item.kind == "run.ended"]
    ended = ends[-1] if ends else None
    steps = _steps(said, judgements)
    begun = _begun((item.body for item in said if item.kind == "run.started"), steps)
    started_at = run_steps.text(begun.get("started_at")) or next((s.started_at for s in steps if s.started_at), None)
    # Of ends that a trace tells of, the one that knows the answer counts, and the last one says when it was over.
    over = max(reversed(ends), key=_over_at) if ends else None
    ended_at = (_over_at(over) or None) if over is not None else None
    tokens = _usage(ended, steps)
    attributes, elsewhere = _elsewhere(run_steps.mapping(begun.get("attributes")), {w.observation for w in wrote})

    by_kind: dict[type[Part], list[Any]] = {}
    for step in steps:
        by_kind.setdefault(type(step), []).append(step)
    told: dict[str, Any] = {name: run_steps.text(begun.get(name)) for name in _TEXTS}
    told |= {name: run_steps.mapping(begun.get(name)) for name in ("inputs", "using")}
    told |= {name: run_steps.mapping(begun.get(name)) or None for name in ("basis", "parent", "forked_from")}
    told |= {name: tuple(by_kind.get(kind, ())) for name, kind in _PARTS.items()}
    return RunRecord(
        id=id,
        status=_status(ended, recording),
        agent=agent,
        names=_names(item.body for item in said if item.kind == "run.started"),
        **told,
        linked=() if linked is None else tuple(sorted(linked(id, run_steps.text(begun.get("trace"))))),
        recall=begun.get("recall") is True,
        attributes=attributes,
        started_at=started_at,
        ended_at=ended_at,
        duration_ms=_duration(over, started_at, ended_at),
        answer=None if ended is None else _answer(ended.body, steps),
        error=None if ended is None else ended.body.get("error"),
        noted_problems=_texts(None if ended is None else ended.body.get("problems")),
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        decisions=with_calls(by_kind.get(Decision, ()), [*by_kind.get(ToolCall, ()), *by_kind.get(ModelCall, ())]),
        writes=(*elsewhere, *sorted((write for write in wrote if write.agent == agent), key=lambda w: w.position or 0)),
        start=_start(said),
        end=None if ended is None else ended.position,
        positions=tuple(sorted(places - foreign)),
        erased=tuple(sorted(erased)),
        foreign=tuple(sorted(foreign)),
    )


def _elsewhere(attributes: dict[str, Any], here: Collection[str]) -> tuple[dict[str, Any], tuple[Write, ...]]:
    """Return the attributes of a run, and what it wrote in the log that it was imported from, which stands in one."""
    told = attributes.get(WRITES)
    written = [Write.elsewhere(item) for item in told] if isinstance(told, list) else []
    if not written or None in written:
        return attributes, ()
    rest = {name: value for name, value in attributes.items() if name != WRITES}
    return rest, tuple(write for write in written if write is not None and write.observation not in here)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in run_steps.listed(value) if isinstance(text, str))


def status_of(id: str, entries: Iterable[Entry], *, recording: bool = False) -> str:
    """Return how a run stands, as its record says, without reading more than how it began and ended."""
    told = run_owner.owned(id, (entry for entry in entries if entry.kind in ("run.started", "run.ended")))
    ends = _said(id, (entry for entry in told if entry.kind == "run.ended"))[0]
    return _status(ends[-1] if ends else None, recording)


OUTLINED: Final = frozenset({"run.started", "run.ended", "run.judged"})
"""The kinds of entry an outline is made of."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What lists ask of a run, as far as how it began, ended and was judged tells it."""

    place: int
    """Where the log first heard how it began; lists are in this order."""
    agents: frozenset[str]
    """Its owner, and what agents inside call themselves."""
    query: str | None
    subject: Ref | None
    """The entity that its beginning there says it is about."""
    principal: str | None
    conversation: str | None
    session: str | None
    pipeline: str | None
    parent: str | None
    """The run that started it."""
    started_at: str | None
    status: str
    """How it stands if nobody records it any more."""
    verdict: str | None
    unsettled: frozenset[str]
    """What its steps may tell otherwise: `agent` (and so everything), `query`, `started_at`."""


def statements(id: str, entries: Iterable[Entry]) -> list[RunStatement]:
    """Return what entries of a run say of how it began, ended and was judged, each once and in order.

    Of those through a position, the statements that first stand there or before are the same.
    """
    return _said(id, (entry for entry in entries if entry.kind in OUTLINED))[0]


def outline_of(id: str, said: Sequence[RunStatement], judgements: Sequence[Judgement] = ()) -> Outline | None:
    """Return what lists ask of a run, by its statements; none while no beginning of it is known.

    What its record says is the same, but for what is unsettled.
    """
    starts = [item for item in said if item.kind == "run.started"]
    if not starts:
        return None
    owner = run_owner.owner_of(id, [(item.kind, item.body) for item in starts])
    starts = [item for item in starts if item.body.get("agent") == owner]
    begun = _begun((item.body for item in starts), ())
    ends = [item for item in said if item.kind == "run.ended" and item.body.get("agent") == owner]
    using, parent = run_steps.mapping(begun.get("using")), run_steps.mapping(begun.get("parent"))
    judging = [item for item in said if item.kind == run_owner.JUDGED]
    judged = _steps(judging, judgements) if judging or judgements else ()
    started_at = run_steps.text(begun.get("started_at"))
    first = min(starts, key=lambda item: item.position)
    unsettled = {
        "agent": owner is None,
        "query": any("query" in run_steps.listed(item.body.get(FALLBACK)) for item in starts),
        "started_at": not started_at,
    }
    return Outline(
        place=first.position,
        agents=frozenset(filter(None, (owner, *_names(item.body for item in starts)))),
        query=run_steps.text(begun.get("query")),
        subject=run_steps.ref(first.body.get("subject")),
        principal=run_steps.text(begun.get("principal")),
        conversation=run_steps.text(begun.get("conversation")),
        session=run_steps.text(using.get("agent_session")),
        pipeline=run_steps.text(using.get("pipeline")),
        parent=run_steps.text(parent.get("run")),
        started_at=started_at,
        status=_status(ends[-1] if ends else None, recording=False),
        verdict=verdict_of(part for part in judged if isinstance(part, Judgement)),
        unsettled=frozenset(name for name, is_open in unsettled.items() if is_open),
    )


@dataclass(frozen=True, slots=True)
class RunStatement:
    """What one entry of a run says, wherever it stands."""

    position: int
    kind: str
    body: dict[str, Any]
    order: tuple[str, int, str, bytes]
    positions: set[int]
    """Everywhere it stands; it may have come several times."""


def _said(id: str, entries: Iterable[Entry]) -> tuple[list[RunStatement], set[int], set[int]]:
    """Return what the entries say, each body once and in order, all their positions, and those of erased ones."""
    found: dict[bytes, RunStatement] = {}
    places: set[int] = set()
    erased: set[int] = set()
    for entry in entries:
        if entry.kind not in RUN_KINDS:
            continue
        if entry.body is None:
            places.add(entry.position)
            erased.add(entry.position)
            continue
        body = form.decode(entry.body)
        if not isinstance(body, dict) or body.get("run") != id:
            continue
        places.add(entry.position)
        name = digest(entry.kind, entry.body)
        known = found.get(name)
        if known is not None:
            known.positions.add(entry.position)
        if known is None or entry.position < known.position:
            order = (
                run_steps.text(body.get("started_at")) or "",
                run_steps.whole(body.get("step")) or 0,
                run_steps.text(body.get("span")) or "",
                bytes(name),
            )
            everywhere: set[int] = {entry.position} if known is None else known.positions
            found[name] = RunStatement(entry.position, entry.kind, body, order, everywhere)
    return sorted(found.values(), key=lambda item: item.order), places, erased


def _steps(said: Sequence[RunStatement], judgements: Iterable[Judgement]) -> tuple[Part, ...]:
    """Return the steps in order; a tool call whose result is known needs no beginning."""
    settled = {
        run_steps.text(item.body.get("span"))
        for item in said
        if item.kind == "run.tool" and item.body.get("begun") is not True
    }
    said = _accounts(said)
    again = retold((item.kind, item.body) for item in said)
    found: list[tuple[tuple[str, int, str, bytes], Part]] = []
    for item in said:
        if item.kind in (MODEL, TOOL) and item.body.get("span") in again:
            continue
        part = run_steps.part_of(item.kind, item.position, item.body)
        if part is not None and not (isinstance(part, ToolCall) and part.begun and part.span in settled):
            found.append((item.order, part))
    entered = {part.evaluation for _, part in found if isinstance(part, Judgement)}
    outside = {judgement.evaluation: judgement for judgement in judgements if judgement.evaluation not in entered}
    for name, judgement in outside.items():
        found.append(((*judgement.order, (name or "").encode()), judgement))
    return tuple(part for _, part in sorted(found, key=lambda item: item[0]))


def _accounts(said: Sequence[RunStatement]) -> list[RunStatement]:
    """Return entries, of several accounts of one span the one that lasted longest and says most.

    A span may come twice with other attributes: by two ways, or while it was going on and when it had ended.
    """
    best: dict[tuple[str, str], RunStatement] = {}
    for item in said:
        key = (item.kind, item.order[2])
        if key not in best or _weight(item) > _weight(best[key]):
            best[key] = item
    return [item for item in said if not came_as_span(item.body) or item is best[item.kind, item.order[2]]]


def _weight(item: RunStatement) -> tuple[int | float, int, tuple[str, int, str, bytes]]:
    return run_steps.number(item.body.get("duration_ms")) or 0, len(item.body), item.order


def _start(said: Iterable[RunStatement]) -> int | None:
    """Return where the beginning of a run stands; one that says when it was, before one that says only that it was."""
    starts = [item for item in said if item.kind == "run.started"]
    return next((item.position for item in starts if "started_at" in item.body), starts[0].position if starts else None)


def _begun(starts: Iterable[Mapping[str, Any]], steps: Iterable[Part]) -> dict[str, Any]:
    """Return how a run began: the first start that says a thing counts, one that says it as a fallback last of all."""
    begun: dict[str, Any] = {}
    fallbacks: dict[str, Any] = {}
    left: list[Any] = []
    for body in starts:
        giving_way = run_steps.listed(body.get(FALLBACK))
        left += giving_way
        for name, value in body.items():
            (fallbacks if name in giving_way else begun).setdefault(name, value)
    if "query" not in begun and "query" in left:
        asked = (messages.question(step.messages) for step in steps if isinstance(step, ModelCall))
        fallbacks["query"] = next((said for said in asked if said), fallbacks.get("query"))
    return {**fallbacks, **begun}


def _names(starts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    bodies = list(starts)
    found = {name for body in bodies if (name := run_steps.text(body.get("name")))}
    return tuple(sorted(found.union(*(_texts(body.get("names")) for body in bodies))))


def _answer(ended: Mapping[str, Any], steps: Iterable[Part]) -> Json:
    """Return what a run answered; where its end leaves that to others, the words of the last model it called."""
    if "answer" in ended or not leaves(ended, "answer"):
        return ended.get("answer")
    last = next((step for step in reversed(tuple(steps)) if isinstance(step, ModelCall)), None)
    return last.response if last is not None and isinstance(last.response, str) else None


def _status(ended: RunStatement | None, recording: bool) -> str:
    if ended is None:
        return RUNNING if recording else INTERRUPTED
    said = ended.body.get("status")
    if said in (DONE, ERROR, CANCELLED):
        return str(said)
    return DONE if ended.body.get("error") is None else ERROR


def _over_at(ended: RunStatement) -> str:
    """Return when a run was over, as an end says; an end told earlier than that says it apart."""
    return run_steps.text(ended.body.get("ended_at")) or run_steps.text(ended.body.get("started_at")) or ""


def _duration(ended: RunStatement | None, started_at: str | None, ended_at: str | None) -> int | float | None:
    stated = None if ended is None else run_steps.number(ended.body.get("duration_ms"))
    if stated is not None or not started_at or not ended_at:
        return stated
    if not (moment.is_fixed(started_at) and moment.is_fixed(ended_at)):
        return None
    return max(0, moment.to_micros(ended_at) - moment.to_micros(started_at)) // 1_000


def _usage(ended: RunStatement | None, steps: Iterable[Part]) -> tuple[int, int]:
    """Return tokens read and written: as the end states them, else as the model calls add up."""
    stated = {} if ended is None else run_steps.mapping(ended.body.get("usage"))
    calls = [step for step in steps if isinstance(step, ModelCall)]
    read, written = run_steps.whole(stated.get("input")), run_steps.whole(stated.get("output"))
    return (
        sum(call.input_tokens for call in calls) if read is None else read,
        sum(call.output_tokens for call in calls) if written is None else written,
    )

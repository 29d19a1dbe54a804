"""Formats: what a document is, by what it says, and the runs that it holds.

A document is one run, a list of them, or an object around such a list. Every format has a file of its own beside this
one and a line in the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.errors import Fault, pointer_part, shown
from woodrat.records import dataclass, field
from woodrat.runs import snapshot_format, trajectory, values
from woodrat.runs.foreign import (
    agent_traces,
    langsmith,
    message,
    run_json,
    span_entries,
    span_files,
    spans,
    table,
    transcript,
)
from woodrat.runs.foreign.fields import time_of
from woodrat.state.meaning import RUN_KINDS
from woodrat.state.run_owner import run_of_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from woodrat.runs.foreign.span_tree import Placed
    from woodrat.runs.foreign.spans import Span

LISTS: Final = (
    *("runs", "simulations", "traces", "trajectories", "data", "items", "results", "records", "rows", "samples"),
    *("spans", "conversations", "entries", "episodes", "observations"),
)
"""Members of an object that may hold a list of runs, or of parts of runs."""
SHARED: Final = "document"
"""The attribute that holds what a document says beside its list of runs."""
_SHARED_BYTES_MAX: Final = 16_384
_FINAL: Final = ("final_output", "final_answer")
"""What stands beside the spans of one run and is its answer."""
_TOLD: Final = frozenset({"query", "steps", "answer"})


@dataclass(frozen=True, slots=True)
class Translation:
    """The runs of a document, as what they are recorded from."""

    trajectories: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """Runs in the neutral format, each with its place in the document."""
    snapshots: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """Runs in the snapshot format."""
    records: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """Run records in JSON."""
    spans: list[Span] = field(default_factory=list)
    """Spans of traces."""
    judged: list[dict[str, Any]] = field(default_factory=list)
    """What was thought of traces and their spans."""
    bare: bool = False
    """Whether the document is the steps of one run."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What the document says beside its runs."""

    @property
    def is_empty(self) -> bool:
        """Whether the document holds no run."""
        return not (self.trajectories or self.snapshots or self.records or self.spans)

    def entries(self, agent: str, *, named: bool) -> list[dict[str, Any]]:
        """Return the entries that the spans make; with `named` it is believed what agents call themselves."""
        made = [*span_entries.beginnings(self.spans, agent), *span_entries.entries(self.spans, agent, named=named)]
        over: dict[str, int] = {}
        for span in self.spans:
            over[span.trace] = max(over.get(span.trace, 0), span.end_ns)
        made += (_judged(each, agent, over) for each in self.judged)
        answer = next((self.shared[name] for name in _FINAL if name in self.shared), None)
        if len(over) == 1 and answer is not None and not any("answer" in entry for entry in made):
            made.append(_answered(answer, self.spans[0].trace, agent, over))
        return made


def _answered(answer: Any, trace: str, agent: str, over: Mapping[str, int]) -> dict[str, Any]:
    """Return the end of a run whose answer stands beside its spans."""
    span = sha256(trace.encode()).hexdigest()[:16]
    place = {"run": run_of_trace(trace, agent), "agent": agent, "step": 0, "span": span}
    began = {"started_at": moment.from_micros(over[trace] // 1_000)}
    return {"kind": "run.ended", **place, **began, "status": "done", "answer": values.bounded(answer)}


def _judged(said: Mapping[str, Any], agent: str, over: Mapping[str, int]) -> dict[str, Any]:
    trace = str(said["trace"])
    about = {name: value for name, value in said.items() if name != "trace"}
    span = sha256(f"{trace} {about.get('by')} {about.get('about')}".encode()).hexdigest()[:16]
    place = {"run": run_of_trace(trace, agent), "agent": agent, "step": 0, "span": span}
    if trace in over:
        place["started_at"] = moment.from_micros(over[trace] // 1_000)
    return {"kind": "run.judged", **place, **about}


def translate(document: Any, faults: list[Fault]) -> Translation | None:
    """Return the runs of a document that other tools wrote, or that we exported; none for told runs and entries."""
    items, shared = _items(document)
    if not items or any(_is_entry(item) for item, _ in items):
        return None
    if any(_is_step(item) for item, _ in items):
        return Translation([({"steps": [item for item, _ in items]}, "")], bare=True)
    for fits, reader in _WHOLE:
        if all(fits(item) for item, _ in items):
            made = Translation(shared=shared)
            reader(items, made, faults)
            return made
    if not any(_reader_of(item) for item, _ in items):
        return None
    made = Translation(shared=shared)
    for item, path in items:
        read = _reader_of(item)
        if read is None:
            problem = f"expected a run, got {shown(item)}"
            faults.append(Fault(path, problem, "Send an object with steps or messages."))
        else:
            read(item, path, made, faults)
    return made


def is_alone(item: Any) -> bool:
    """Return whether an item is a run by itself, whatever stands beside it in a list."""
    if _is_entry(item) or _is_step(item) or _reader_of(item) is None:
        return False
    return "resourceSpans" not in item and not any(fits(item) for fits, _ in _WHOLE)


def _is_entry(item: Any) -> bool:
    kind = item.get("kind") if isinstance(item, dict) else None
    return isinstance(kind, str) and kind in RUN_KINDS


def _items(document: Any) -> tuple[list[Placed], dict[str, Any]]:
    """Return what a document lists, each item with its place, and what stands beside the list."""
    if isinstance(document, list):
        listed = [(item, f"/{number}") for number, item in enumerate(document)]
        batches = [_items(item) if _is_list(item) else None for item in document]
        if listed and all(batch is not None for batch in batches):  # one page of an API a line, say
            inner = [(place, batch[0]) for (_, place), batch in zip(listed, batches, strict=True) if batch is not None]
            return [(item, f"{place}{path}") for place, items in inner for item, path in items], {}
        return listed, {}
    if not isinstance(document, dict) or not _is_list(document):
        return [(document, "")], {}
    lists = [name for name in LISTS if _holds_runs(document.get(name))]
    if not lists and _is_by_name(document):
        return [(run, f"/{pointer_part(name)}") for name, run in document.items()], {}
    if not lists:  # spans by what they show
        return [(span, f"/{name}/{n}") for name, listed in document.items() for n, span in enumerate(listed)], {}
    name = lists[0]
    beside = {key: value for key, value in document.items() if key != name and not isinstance(value, list)}
    small = {key: value for key, value in beside.items() if value is not None and len(str(value)) <= _SHARED_BYTES_MAX}
    return [(item, f"/{name}/{number}") for number, item in enumerate(document[name])], small


def _is_list(document: Any) -> bool:
    """Return whether an object only stands around runs, or parts of runs."""
    if not isinstance(document, dict) or _reader_of(document) is not None:
        return False
    if any(_holds_runs(document.get(name)) for name in LISTS) or _is_by_name(document):
        return True
    lists = list(document.values())
    return bool(lists) and all(isinstance(each, list) and each and all(map(span_files.is_span, each)) for each in lists)


def _is_by_name(document: Mapping[str, Any]) -> bool:
    """Return whether an object has nothing but runs, each by its name: a parent and its child, say."""
    return bool(document) and all(is_alone(run) for run in document.values())


def _holds_runs(listed: Any) -> bool:
    if not isinstance(listed, list) or not listed:
        return False
    return all(any(fits(item) for fits, _ in _WHOLE) or _reader_of(item) is not None for item in listed)


# ------------------------------------------------------------------------------- formats of a list that is one whole


def _langsmith(items: Sequence[Placed], made: Translation, faults: list[Fault]) -> None:
    made.trajectories.extend(langsmith.trajectories(items, faults))


def _agents(items: Sequence[Placed], made: Translation, faults: list[Fault]) -> None:
    made.trajectories.extend(agent_traces.agents_trajectories(items, faults))


def _span_files(items: Iterable[Placed], made: Translation, faults: list[Fault]) -> None:
    listed, judged = span_files.spans(items, faults)
    made.spans.extend(listed)
    made.judged.extend(judged)


def _observations(items: Iterable[Placed], made: Translation, faults: list[Fault]) -> None:
    by_trace: dict[str, list[Placed]] = {}
    for item, path in items:
        by_trace.setdefault(str(item["traceId"]), []).append((item, path))
    traces = [({"id": name}, listed, listed[0][1]) for name, listed in by_trace.items()]
    listed, judged = span_files.observations(traces, faults)
    made.spans.extend(listed)
    made.judged.extend(judged)


def _messages(items: Sequence[Placed], made: Translation, faults: list[Fault]) -> None:
    for document, path in table.conversations(items):
        before = len(faults)
        read = transcript.trajectory_of(document, path, faults)
        if path == "":  # the list is the messages
            for number in range(before, len(faults)):
                fault = faults[number]
                faults[number] = Fault(fault.path.removeprefix("/messages"), fault.problem, fault.remedy)
        if read is not None:
            made.trajectories.append((read, path))


def _is_step(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("kind"), str) and item["kind"] in trajectory.STEP_KINDS


def _is_bare_message(item: Any) -> bool:
    return message.looks_like(item) and _reader_of(item) is None and not _TOLD & item.keys()


_WHOLE: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Translation, list[Fault]], None]], ...]] = (
    (langsmith.is_run, _langsmith),
    (agent_traces.is_agents_item, _agents),
    (span_files.is_observation, _observations),
    (span_files.is_span, _span_files),
    (_is_bare_message, _messages),
)
"""Formats whose items are parts of runs: what an item is known by, and what reads all of them."""


# --------------------------------------------------------------------------------------- formats of one run by itself


def _reader_of(item: Any) -> Callable[[Any, str, Translation, list[Fault]], None] | None:
    if not isinstance(item, dict):
        return None
    return next((reader for fits, reader in _ALONE if fits(item)), None)


def _read_record(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    made.records.append((item, path))


def _read_snapshot(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    made.snapshots.append((item, path))


def _read_memory(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    made.snapshots.append((_with_memory(item), f"{path}/value"))


def _with_memory(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the snapshot of an entry of a causal memory, with the conversation that it is from and its times.

    An entry is created when its run is over, so that is when a run ended that does not say so itself.
    """
    source = item.get("source") if isinstance(item.get("source"), dict) else {}
    identity = source.get("identity") if isinstance(source, dict) else None
    conversation = identity.get("conversationId") if isinstance(identity, dict) else None
    stated = {"conversation": conversation} if isinstance(conversation, str) else {}
    stated |= {name: item[name] for name in ("createdAt", "updatedAt") if item.get(name) is not None}
    value = item["value"]
    created = time_of(item.get("createdAt"))
    if created is not None and value.get("startedAt") is None and value.get("endedAt") is None:
        lasted = value.get("durationMs")
        over = moment.to_micros(moment.parse(created))
        began = over - int(lasted * 1_000) if type(lasted) in (int, float) and lasted >= 0 else over
        stated["startedAt"] = moment.from_micros(began)
        if value.get("status") not in ("interrupted", "running"):
            stated["endedAt"] = moment.from_micros(over)
    return {**stated, **{name: said for name, said in value.items() if said is not None}}


def _read_otlp(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    batch = spans.from_documents([item])
    made.spans.extend(batch.spans)
    faults.extend(Fault(f"{path} {fault.path}".strip(), fault.problem, fault.remedy) for fault in batch.rejected)


def _read_langfuse(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    trace = item["trace"] if isinstance(item.get("trace"), dict) else item
    where = f"{path}/observations"
    observed: list[Placed] = []
    for number, each in enumerate(item["observations"]):
        if isinstance(each, dict):
            observed.append((each, f"{where}/{number}"))
        else:
            remedy = "Send the trace with its observations, as an export has it."
            faults.append(Fault(f"{where}/{number}", f"expected an observation, got {shown(each)}", remedy))
    about = {name: value for name, value in trace.items() if name != "observations"}
    listed, judged = span_files.observations([(about, observed, path)], faults)
    made.spans.extend(listed)
    made.judged.extend(judged)


def _read_batch(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    before = len(faults)
    runs = langsmith.batch_runs(item, faults)
    if len(faults) == before:
        made.trajectories.extend(langsmith.trajectories([(run, f"{path}{at}") for run, at in runs], faults))


def _read_langsmith(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    made.trajectories.extend(langsmith.trajectories([(item, path)], faults))


def _read_atif(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    read = agent_traces.atif_trajectory(item, path, faults)
    if read is not None:
        made.trajectories.append((read, path))


def _read_transcript(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    read = transcript.trajectory_of(item, path, faults)
    if read is not None:
        made.trajectories.append((read, path))


def _read_trajectory(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    made.trajectories.append((item, path))


def _read_answer(item: Any, path: str, made: Translation, faults: list[Fault]) -> None:
    made.trajectories.append((table.answer_run(item), path))


def _is_memory(item: Any) -> bool:
    return "value" in item and snapshot_format.is_snapshot(item["value"])


def _is_snapshot(item: Any) -> bool:
    return snapshot_format.is_snapshot(item) and not trajectory.is_trajectory(item)


def _is_trajectory(item: Any) -> bool:
    return "messages" not in item and trajectory.is_trajectory(item)


def _is_otlp(item: Any) -> bool:
    return "resourceSpans" in item


def _is_transcript(item: Any) -> bool:
    if "messages" in item and isinstance(item.get("kind"), str):
        return False  # a step of a run
    return transcript.place_of(item) is not None or transcript.is_responses(item)


def _is_answer(item: Any) -> bool:
    return table.is_answer_row(item) and bool("query" not in item or set(item) & _BEYOND_TOLD)


_BEYOND_TOLD: Final = frozenset({"reward", "score", "success", "passed", "correct", "is_correct", "resolved"})

_ALONE: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, str, Translation, list[Fault]], None]], ...]] = (
    (run_json.is_run_record, _read_record),
    (_is_memory, _read_memory),
    (agent_traces.is_atif, _read_atif),
    (_is_trajectory, _read_trajectory),
    (_is_snapshot, _read_snapshot),
    (_is_otlp, _read_otlp),
    (span_files.is_langfuse_trace, _read_langfuse),
    (langsmith.is_batch, _read_batch),
    (langsmith.is_run, _read_langsmith),
    (_is_transcript, _read_transcript),
    (_is_answer, _read_answer),
)
"""Formats that are a run by themselves: what a document is known by, and what reads it."""

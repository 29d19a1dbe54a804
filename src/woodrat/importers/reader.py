"""The reader: detects the format of a document by its content, and reads its runs.

A document is one run, a list of them, or an object around such a list. Its objects are offered to every format in this
table; the format that recognises them reads them.
"""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, pointer_part, shown
from woodrat.importers.format import Format, ParsedDocument
from woodrat.runs import json_values, trajectory
from woodrat.runs.recordings import EMPTY, Recordings
from woodrat.state.meaning import RUN_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.runs.recordings import Placed

FORMATS: Final = (
    *("woodrat_json", "causal_memory", "atif", "otlp", "langsmith", "openai_agents", "langfuse", "span_files"),
    *("transcript", "table"),
)
"""The modules of formats, in order of detection."""
LISTS: Final = (
    *("runs", "simulations", "traces", "trajectories", "data", "items", "results", "records", "rows", "samples"),
    *("spans", "conversations", "entries", "episodes", "observations"),
)
"""Members of an object that may hold a list of runs, or of parts of runs."""
_SHARED_BYTES_MAX: Final = 16_384


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats."""
    return tuple(format for name in FORMATS for format in import_module(f"{__package__}.{name}").FORMATS)


def read(document: object) -> Recordings:
    """Return the runs of a document from another tool, or from an export of ours; else the document unchanged."""
    faults: list[Fault] = []
    plain = json_values.keepable(document, faults)
    if not faults and plain == []:
        faults.append(EMPTY)
    return Recordings(faults=tuple(faults)) if faults else _recordings(plain)


def is_alone(item: Any) -> bool:
    """Return True if an item is a run on its own, whatever its neighbours in a list."""
    if _is_entry(item) or _is_step(item) or (format := _format_of(item)) is None:
        return False
    return format.name != "OTLP" and not any(_is_part(format, item) for format in formats())


def _recordings(document: Any) -> Recordings:
    items, shared = _items(document)
    if not items or any(_is_entry(item) for item, _ in items):
        return Recordings((document,))
    if any(_is_step(item) for item, _ in items):
        return Recordings(trajectories=[({"steps": [item for item, _ in items]}, "")], is_steps=True)
    reading = ParsedDocument()
    whole = _format_of_parts([item for item, _ in items])
    if whole is not None:
        whole.read(items, reading)
    elif not any(_format_of(item) for item, _ in items):
        return Recordings((document,))
    else:
        for item, path in items:
            format = _format_of(item)
            if format is None:
                problem = f"expected a run, got {shown(item)}"
                reading.faults.append(Fault(path, problem, "Send an object with steps or messages."))
            else:
                format.read([(item, path)], reading)
    return _handed_over(reading, shared)


def _handed_over(reading: ParsedDocument, shared: dict[str, Any]) -> Recordings:
    entries = None
    if reading.spans:
        from woodrat.importers.span_entries import recorded

        for span in reading.spans:
            reading.faults += json_values.long_values(span.attributes, f"span {span.id}")
        entries = partial(recorded, reading.spans, reading.judged, shared)
    return Recordings(
        trajectories=reading.trajectories,
        snapshots=reading.snapshots,
        records=reading.records,
        entries=entries,
        shared=shared,
        faults=tuple(reading.faults),
    )


# Recognising an object


def _format_of(item: Any) -> Format | None:
    """Return the format in which an object is a complete run."""
    if not isinstance(item, dict):
        return None
    return next((format for format in formats() if not format.parts and format.fits(item)), None)


def _format_of_parts(items: Sequence[Any]) -> Format | None:
    """Return the one format of all these objects."""
    return next((format for format in formats() if format.parts and _are_parts(format, items)), None)


def _are_parts(format: Format, items: Sequence[Any]) -> bool:
    fitting = False
    for item in items:
        if _is_part(format, item):
            fitting = True
        elif format.beside is None or not isinstance(item, dict) or not format.beside(item):
            return False
    return fitting


def _is_part(format: Format, item: Any) -> bool:
    if not (format.parts and isinstance(item, dict) and format.fits(item)):
        return False
    return not format.weak or _format_of(item) is None


def _is_entry(item: Any) -> bool:
    kind = item.get("kind") if isinstance(item, dict) else None
    return isinstance(kind, str) and kind in RUN_KINDS


def _is_step(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("kind"), str) and item["kind"] in trajectory.STEP_KINDS


# Lists of objects


def _items(document: Any) -> tuple[list[Placed], dict[str, Any]]:
    """Return the items of a document, each with its place, and the other members."""
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
    if not lists:  # spans by their members
        return [(span, f"/{name}/{n}") for name, listed in document.items() for n, span in enumerate(listed)], {}
    name = lists[0]
    beside = {key: value for key, value in document.items() if key != name and not isinstance(value, list)}
    small = {key: value for key, value in beside.items() if value is not None and len(str(value)) <= _SHARED_BYTES_MAX}
    return [(item, f"/{name}/{number}") for number, item in enumerate(document[name])], small


def _is_list(document: Any) -> bool:
    """Return True if an object is only a container of runs, or of parts of runs."""
    if not isinstance(document, dict) or _format_of(document) is not None:
        return False
    if any(_holds_runs(document.get(name)) for name in LISTS) or _is_by_name(document):
        return True
    from woodrat.importers.span_files import is_span

    lists = list(document.values())
    return bool(lists) and all(isinstance(each, list) and each and all(map(is_span, each)) for each in lists)


def _is_by_name(document: Mapping[str, Any]) -> bool:
    """Return True if an object consists of runs by name: a parent and its child, say."""
    return bool(document) and all(is_alone(run) for run in document.values())


def _holds_runs(listed: Any) -> bool:
    if not isinstance(listed, list) or not listed:
        return False
    return _format_of_parts(listed) is not None or all(
        _format_of(item) is not None or any(_is_part(format, item) for format in formats()) for item in listed
    )

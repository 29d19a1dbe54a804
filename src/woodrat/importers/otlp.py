"""OTLP: exports of traces in JSON. Protobuf becomes the same document (`spans.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault
from woodrat.importers import spans
from woodrat.importers.format import Format

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed


def _is_export(item: Mapping[str, Any]) -> bool:
    return "resourceSpans" in item


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    for item, path in items:
        batch = spans.from_documents([item])
        reading.spans += batch.spans
        reading.faults += (Fault(f"{path} {each.path}".strip(), each.problem, each.remedy) for each in batch.rejected)


FORMATS: Final = (Format("OTLP", _is_export, _read),)

"""Causal memory: its entries, each with a snapshot as its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.importers.fields import time_of
from woodrat.importers.format import Format
from woodrat.runs import snapshot_format

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed


def _is_entry(item: Mapping[str, Any]) -> bool:
    return "value" in item and snapshot_format.is_snapshot(item["value"])


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.snapshots += ((_snapshot(item), f"{path}/value") for item, path in items)


def _snapshot(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the snapshot of an entry, with the conversation that it is from and its times.

    An entry is created after its run, so its time is the default for the end of the run.
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


FORMATS: Final = (Format("causal memory", _is_entry, _read),)

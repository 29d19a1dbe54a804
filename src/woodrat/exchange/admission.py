"""Admission: checks bodies from elsewhere before they enter the log; their contents need not fit a schema."""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, Refused, shown
from woodrat.log import erasure
from woodrat.log.entry import Entry
from woodrat.state import observation, schema
from woodrat.state.meaning import RUN_KINDS, Meaning, step_of

_REMEDY: Final = "Send the entry as exported."
_TEXTS: Final = {
    "received": ("agent", "name", "received_at", "source"),
    "interpretation.started": ("agent", "interpretation", "source", "started_at"),
    "interpretation.ended": ("ended_at", "interpretation", "status"),
    "tag": ("agent", "log", "name"),
}
"""Members of a body that must be text, by kind."""


def meaning_of(entry: Entry) -> Meaning:
    """Return the meaning of an entry from elsewhere, for the indexes; `Refused` if its body has another shape."""
    kind, body = entry.kind, entry.body
    if body is None or kind == "source":
        return None
    if kind == "observation":
        return observation.admit(body)
    if kind == "schema":
        return schema.admit(body)
    if kind == erasure.KIND:
        erasure.stored(body)  # a malformed one would stop every later write
        return None
    value: Any = form.parse(body)
    if not isinstance(value, dict):
        raise Refused([Fault("/body", f"expected an object, got {shown(value)}", _REMEDY)])
    wanted = ("run",) if kind in RUN_KINDS else _TEXTS.get(kind, ())
    faults = [
        Fault(f"/body/{name}", f"expected text, got {shown(value.get(name))}", _REMEDY)
        for name in wanted
        if not isinstance(value.get(name), str)
    ]
    if "source" in wanted and not faults and ids.digest_of("source", value["source"]) is None:
        faults.append(
            Fault("/body/source", f"expected the full name of a source, got {shown(value['source'])}", _REMEDY)
        )
    if kind == "tag" and type(value.get("position")) is not int:
        faults.append(Fault("/body/position", f"expected a position, got {shown(value.get('position'))}", _REMEDY))
    if faults:
        raise Refused(faults)
    return step_of(kind, body)


def stored_meaning(entry: Entry) -> Meaning:
    """Return the meaning of a stored entry, whose body was checked before."""
    kind, body = entry.kind, entry.body
    if body is None or kind == "source":
        return None
    if kind == "observation":
        return observation.stored(body)
    return schema.stored(body) if kind == "schema" else step_of(kind, body)

"""Moments and references: what people write, and the position or entity it means."""

from __future__ import annotations

from typing import Any

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, View
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger.reading import Reader
from woodrat.state.record import parse_moment

Moment = int | str
"""A position, a timestamp, `now`, a tag as `@name`, or a run: its basis, the end of the log when it began."""

NO_READ = "Nothing was read."


def resolve_moment(view: View, moment: object, outcome: str = NO_READ) -> int:
    """Return the position a moment means; `Refused` or `NotFound` when it means none."""
    head = view.head().position
    if moment == "now":
        return head
    text = moment if isinstance(moment, str) else None
    if type(moment) is int or (text and text.isascii() and text.isdigit()):
        # A position is never longer than its log's; more digits than that need no reading.
        number = moment if type(moment) is int else int(text[:20]) if text and len(text) <= 20 else head + 1
        assert isinstance(number, int)
        if BEFORE_ALL <= number <= head:
            return number
        raise NotFound(
            f"There is no position {shown(moment)}; the log ends at {head}. Nothing was changed. "
            "Read at a position that exists, or at now.",
            {"head": head},
        )
    if text is not None and text.startswith("@"):
        return _tagged(view, text[1:])
    if text is not None and text.startswith("run_"):
        return _basis(view, text)
    return view.position_at(timestamp(moment, "moment", outcome))


def timestamp(value: object, path: str, outcome: str = NO_READ) -> str:
    """Return a timestamp in fixed width."""
    faults: list[Fault] = []
    fixed = parse_moment(value, path, faults)
    if fixed is None:
        if not faults:
            remedy = "Send a position, a timestamp with an offset, now, a tag as @name, or a run."
            faults.append(Fault(path, f"expected a moment, got {shown(value)}", remedy))
        raise Refused(faults, outcome)
    return fixed


def _tagged(view: View, name: str) -> int:
    found = None
    for entry in view.entries(kinds={"tag"}):
        if entry.body is None:
            continue
        body: Any = form.decode(entry.body)
        found = body["position"] if body["name"] == name else found
    if found is None:
        raise NotFound(f"There is no tag @{name} here. Nothing was changed. `tag` makes one.", {"tag": name})
    return int(found)


def _basis(view: View, run: str) -> int:
    """Return the end of the log when a run began: as its beginning states it, else just before the run itself."""
    head = view.head()
    entries = [entry for entry in view.run(run, head.position) if entry.body is not None]
    for entry in entries:
        body: Any = form.decode(entry.body or b"null")
        basis = body.get("basis") if entry.kind == "run.started" else None
        if isinstance(basis, dict) and type(basis.get("position")) is int:
            if basis.get("log") == head.log and BEFORE_ALL <= basis["position"] <= head.position:
                return int(basis["position"])
            raise NotFound(
                f"{run} read another log, {basis.get('log')}. Nothing was changed. Read at a moment of this log.",
                {"run": run, "log": basis.get("log")},
            )
    if not entries:
        raise NotFound(f"There is no run {run} here. Nothing was changed. `runs` lists them.", {"run": run})
    return entries[0].position - 1


def resolve_ref(reader: Reader, text: object, outcome: str = NO_READ) -> Ref:
    """Return the entity a reference or an entity id means."""
    if isinstance(text, Ref):
        return text
    if isinstance(text, str) and ids.is_id("entity", text):
        found = reader.view.entity_by_id(text)
        if found is None or reader.view.entity(found.digest, reader.asof.position) is None:
            raise NotFound(
                f"There is no entity {text} here. Nothing was changed. Look for it with a search.", {"entity": text}
            )
        return found
    try:
        return ids.parse_ref(text, "ref")
    except Refused as refusal:
        raise Refused(refusal.faults, outcome) from None

"""Step gaps: the step numbers of a run under which the log holds nothing.

A recorder numbers its steps from 0. Its end says which numbers left neither an entry nor an observation (a write that
was refused, say), so that whoever sees the run later can tell that from a step that was left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form

if TYPE_CHECKING:
    from woodrat.engines.port import View

GAPS_MAX: Final = 10_000
"""Most numbers that an end lists; beyond these it does not say that its steps are numbered."""


def step_gaps(view: View, run: str, through: int, end: int) -> list[int] | None:
    """Return the numbers below `end` under which the log holds nothing of a run; `None` for one no recorder began."""
    owner: Any = None
    start: int | None = None
    taken: set[int] = set()
    for entry in view.run(run, through):
        body: Any = form.decode(entry.body) if entry.body is not None else {}
        if entry.kind == "run.started" and start is None:
            owner, start = body.get("agent"), entry.position
            if "basis" not in body:
                return None  # imported: whoever made it counted otherwise
        if entry.kind != "run.judged" and body.get("agent") == owner and type(body.get("step")) is int:
            taken.add(body["step"])
    if start is None or end - len(taken) > GAPS_MAX:
        return None
    missing = {number for number in range(end) if number not in taken}
    if missing:
        # Only where a step left no entry of the run: then it wrote something, or nothing at all.
        mark = form.serialise({"run": run})[1:-1]
        for entry in view.entries(start, through, {"observation"}):
            if entry.body is not None and mark in entry.body:
                body = form.decode(entry.body)
                if body.get("run") == run and body["agent"] == owner:
                    missing.discard(body.get("step"))
    return sorted(missing)


def accounted(body: dict[str, Any], gaps: list[int] | None) -> dict[str, Any]:
    """Return the body of an end that says which numbers left nothing, where that is known."""
    if gaps is None:
        return body
    return {**body, "numbered": True, **({"skipped": gaps} if gaps else {})}

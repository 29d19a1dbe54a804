"""Recalls: what a run recalled, recorded as a read at its position, so that a replay finds the same.

What was found is recorded with the read, run by run. A replay makes the answer from that and asks no embedder, which
may be another by then, or gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.runs import values
from woodrat.runs.recorder.recorded_errors import recorded_error
from woodrat.runs.steps import RecalledRun, recalled_runs

if TYPE_CHECKING:
    from woodrat.canon.form import Json


RECALL: Final = "recall"
"""What a read that recalled says it is `within`."""


class RecallFound(NamedTuple):
    """What a recall found."""

    position: int
    """The position it was answered at."""
    hits: tuple[RecalledRun, ...] = ()
    """The runs it found, best first."""
    rejected: tuple[Mapping[str, Any], ...] = ()
    """What came near: `{"kind", "of", "score", "reason"}`, and of what is no run `{"mark", "time"}`."""
    error: Exception | None = None
    """What went wrong, where nothing could be looked for."""
    running: frozenset[str] = frozenset()
    """Which of the runs it found had not ended, and were being recorded."""
    decisions: Mapping[str, Mapping[str, Json]] = {}
    """By run what it decided: by stage what was chosen."""
    others: tuple[Mapping[str, Any], ...] = ()
    """What it found that is no run: `{"kind", "of", "score", "passage", "at", "rank", "mark", "observations"}`."""
    understood: Mapping[str, Any] | None = None
    """How words about time were understood."""
    embedder: str | None = None
    """Id of the embedder that compared, which the one of later need not be."""
    remark: str | None = None
    """What the answer said about itself."""


class RecordedRecall(NamedTuple):
    """What the recording of a run says about a recall."""

    position: int
    """The position to answer at, where nothing is recorded."""
    found: RecallFound | None
    """What was found then; none where nobody asked this then."""
    span: str = ""
    """The span of the recorded read."""


def recorded_recall(body: Mapping[str, Any]) -> RecordedRecall:
    """Return the recall that a read records."""
    return RecordedRecall(int(body["position"]), found_in(body), str(body.get("span")))


def recall_body(args: Mapping[str, Any], as_of: int | None, found: RecallFound) -> dict[str, Json]:
    """Return what the entry of a recall says."""
    body: dict[str, Json] = {
        "position": found.position,
        "found": bool(found.hits or found.others),
        "within": RECALL,
        "args": values.bounded(dict(args)),
        "recalled": [_hit_body(hit, found) for hit in found.hits],
    }
    if found.others:
        body["remembered"] = [dict(other) for other in found.others]
        body["fields"] = {
            f"{other['of']}": {"observations": other["observations"]} for other in found.others if other["observations"]
        }
    if found.understood is not None:
        body["understood"] = dict(found.understood)
    for name in ("embedder", "remark"):
        if (said := getattr(found, name)) is not None:
            body[name] = said
    if found.rejected:
        body["rejected"] = [dict(near) for near in found.rejected]
    if found.error is not None:
        body["error"] = values.error(found.error)
    if as_of is not None:
        body["as_of"] = as_of
    return body


def _hit_body(hit: RecalledRun, found: RecallFound) -> dict[str, Json]:
    body: dict[str, Json] = {"run": hit.run, "score": hit.score, "passage": hit.passage, "at": hit.at}
    return {**body, "running": True} if hit.run in found.running else body


def found_in(body: Mapping[str, Any]) -> RecallFound:
    """Return what the entry of a recall found."""
    near = body.get("rejected")
    rejected = [each for each in near if isinstance(each, dict)] if isinstance(near, list) else []
    error = recorded_error(body["error"]) if "error" in body else None
    recalled = body.get("recalled")
    named = [each for each in recalled if isinstance(each, dict)] if isinstance(recalled, list) else []
    running = frozenset(str(each.get("run")) for each in named if each.get("running") is True)
    others, understood = body.get("remembered"), body.get("understood")
    return RecallFound(
        int(body["position"]),
        recalled_runs(recalled),
        tuple(rejected),
        error,
        running,
        others=tuple(each for each in others if isinstance(each, dict)) if isinstance(others, list) else (),
        understood=understood if isinstance(understood, dict) else None,
        embedder=body.get("embedder"),
        remark=body.get("remark"),
    )

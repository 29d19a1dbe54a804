"""Codec: what a verb returns, over the wire.

The form is that of `record_json`. What a verb returns is named by its annotation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Refused, Unavailable
from woodrat.ledger.find import Hit
from woodrat.ledger.pages import Page
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import form_of
from woodrat.records import replace

if TYPE_CHECKING:
    from woodrat.api.verb import Verb

MEDIA_TYPE: Final = "application/vnd.woodrat.whole+json"
"""What a request accepts that asks for the whole form, and what its answer is."""


def write(kind: Any, value: Any) -> Any:
    """Return a value of a type, such as `Page[Reason]`, as plain JSON from which nothing is cut."""
    return form_of(kind).write(whole(value))


def whole(value: Any) -> Any:
    """Return what a verb returns, with whole snapshots."""
    if isinstance(value, Snapshot):
        return value.whole()
    if isinstance(value, Hit):
        return replace(value, snapshot=value.snapshot.whole())
    if isinstance(value, Page) and isinstance(next(iter(value.items), None), Snapshot | Hit):
        return replace(value, items=tuple(map(whole, value.items)))
    return value


def read(kind: Any, value: Any) -> Any:
    """Return the value of a type that `write` told; `Unavailable` when something it must have is not there."""
    try:
        return form_of(kind).read(value)
    except (KeyError, TypeError, ValueError, AttributeError, Refused) as error:
        name = getattr(kind, "__name__", kind)
        raise Unavailable(
            f"The server's answer is no {name} as this version knows it ({type(error).__name__}: {error}). "
            "Nothing is known of the call. Use the same version of Woodrat on both sides.",
            {"record": str(name)},
        ) from error


def returned(verb: Verb) -> Any:
    """Return the type of what a verb of the library returns."""
    return _returned(verb.function)


@cache
def _returned(function: Callable[..., Any]) -> Any:
    return eval(function.__annotations__["return"], {}, _Names(function.__module__))


class _Names(dict[str, Any]):
    """What the annotations of verbs speak of, which modules import for type checkers alone."""

    def __init__(self, module: str) -> None:
        super().__init__(vars(sys.modules[module]))

    def __missing__(self, name: str) -> Any:
        if name in _ELSEWHERE:
            from importlib import import_module

            return getattr(import_module(_ELSEWHERE[name]), name)
        raise KeyError(name)

    def __getitem__(self, name: str) -> Any:
        return _ALWAYS[name] if name in _ALWAYS else super().__getitem__(name)


_ALWAYS: Final[Mapping[str, Any]] = {"Json": Any, "Mapping": Mapping, "tuple": tuple}
"""What these names mean in an annotation, wherever it stands; `Json` is not looked into."""
_ELSEWHERE: Final = {
    "Bisected": "woodrat.bisect.search",
    "Capsule": "woodrat.proofs.capsule",
    "Certificate": "woodrat.erasure.certificate",
    "Changes": "woodrat.merge.diff",
    "Checkpoint": "woodrat.log.checkpoint",
    "Conflict": "woodrat.merge.snapshot",
    "ConsistencyProof": "woodrat.proofs.proof",
    "Crowd": "woodrat.compare.groups",
    "Delivery": "woodrat.state.source",
    "Divergence": "woodrat.compare.divergence",
    "Duplicate": "woodrat.ledger.find",
    "Elements": "woodrat.ledger.elements",
    "EntityChange": "woodrat.merge.diff",
    "EntityConflict": "woodrat.ledger.reads",
    "Entry": "woodrat.log.entry",
    "Event": "woodrat.merge.timeline",
    "Exported": "woodrat.training.exports",
    "Finished": "woodrat.erasure.verbs.byte_scan",
    "Hit": "woodrat.ledger.find",
    "Impact": "woodrat.explain.impact",
    "Interpretation": "woodrat.state.interpretation",
    "Node": "woodrat.explain.lineage",
    "OrderProof": "woodrat.verify.report",
    "Page": "woodrat.ledger.pages",
    "Proof": "woodrat.proofs.proof",
    "ReadingsDiff": "woodrat.ledger.known_state",
    "Related": "woodrat.ledger.reads",
    "Reason": "woodrat.runs.reader",
    "Rebuilt": "woodrat.ledger.rebuild",
    "Recall": "woodrat.recall.reader",
    "Reduction": "woodrat.bisect.reduction",
    "Reindexed": "woodrat.recall.index",
    "Report": "woodrat.ledger.report",
    "RunRecord": "woodrat.runs.record",
    "Schema": "woodrat.state.schema",
    "Signed": "woodrat.proofs.proof",
    "Snapshot": "woodrat.merge.snapshot",
    "Stale": "woodrat.explain.stale",
    "Step": "woodrat.merge.timeline",
    "Stored": "woodrat.state.asof",
    "Values": "woodrat.merge.diff",
    "Verdict": "woodrat.merge.blame",
    "Verified": "woodrat.verify.report",
    "WhatIf": "woodrat.whatif.result",
}
"""Where records come from that annotations name for type checkers alone, and imports by verbs that need them."""

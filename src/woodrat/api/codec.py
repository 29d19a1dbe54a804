"""Codec: what a verb returns, as the JSON that is sent for it, and back.

A record is its own object (`record_json`), and so is a mapping. A list is `{"items": […]}`, and a plain value stands
under the name of its verb: `{"fingerprint": "…"}`; both have the `position` beside them where they were read at a
moment. What a verb returns is named by its annotation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_origin

from woodrat.compact_json import compact_form
from woodrat.errors import Refused, Unavailable
from woodrat.ledger.find import Hit
from woodrat.ledger.pages import Page
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import form_of
from woodrat.records import replace

if TYPE_CHECKING:
    from woodrat.api.verb import Verb

_PLAIN: Final = (str, int, float, bool)


class AnswerForm(NamedTuple):
    """What the answers of one verb look like."""

    kind: Any
    """The type that the verb returns."""
    name: str
    """What the value stands under; empty where it is an object by itself."""
    at_moment: bool
    """Whether the position it was read at stands beside it."""

    @property
    def has_details(self) -> bool:
        """Whether an answer is short unless everything is asked for: lists, and what holds large collections."""
        return get_origin(self.kind) is Page or self.kind is Snapshot

    def write(self, value: Any, position: Callable[[], int], *, details: bool = True) -> Any:
        """Return what a verb returned as plain JSON; `position` says where it was read.

        With `details` everything is there. Without, a list shows what `compact_json` does, and of a large collection
        the first elements are there.
        """
        is_list = get_origin(self.kind) is Page
        form = compact_form(self.kind) if is_list and not details else form_of(self.kind)
        written = form.write(whole(value) if details else value)
        if not self.name:
            return written
        return {self.name: written, **({"position": position()} if self.at_moment else {})}

    def read(self, answer: Any) -> Any:
        """Return what the verb returned on the other side; `Unavailable` when a part that must be there is missing."""
        with reading(getattr(self.kind, "__name__", str(self.kind))):
            return form_of(self.kind).read(answer[self.name] if self.name else answer)

    def schema(self, described: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of an answer, given that of the type."""
        if not self.name:
            return described
        properties = {self.name: described}
        if self.at_moment:
            properties["position"] = {"type": "integer", "description": "The log position it was read at."}
        return {"type": "object", "required": list(properties), "properties": properties}


def write(kind: Any, value: Any) -> Any:
    """Return a value of a type, such as `Page[Reason]`, as plain JSON from which nothing is cut."""
    return form_of(kind).write(whole(value))


def read(kind: Any, value: Any) -> Any:
    """Return the value of a type that `write` wrote; `Unavailable` when a part that must be there is missing."""
    with reading(getattr(kind, "__name__", str(kind))):
        return form_of(kind).read(value)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Read an answer that is a record of this name; what is missing or wrong in it is `Unavailable`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, Refused) as error:
        raise Unavailable(
            f"The server's answer is not a {name} that this version can read ({type(error).__name__}: {error}). "
            "The outcome of the call is unknown. Use the same version of Woodrat on both sides.",
            {"record": name},
        ) from error


def answer_of(verb: Verb) -> AnswerForm:
    """Return what the answers of a verb look like."""
    return answer_form(verb.function, at_moment=verb.declaration.at_moment)


@cache
def answer_form(function: Callable[..., Any], *, at_moment: bool) -> AnswerForm:
    """Return what the answers of a function look like that returns what its annotation says."""
    kind = _returned(function)
    name = "items" if get_origin(kind) is tuple else function.__name__ if kind in _PLAIN else ""
    return AnswerForm(kind, name, at_moment)


def returned(verb: Verb) -> Any:
    """Return the type of what a verb of the library returns."""
    return _returned(verb.function)


@cache
def _returned(function: Callable[..., Any]) -> Any:
    return eval(function.__annotations__["return"], {}, _Names(function.__module__))


def plain(value: Any) -> Any:
    """Return records as plain JSON, wherever they stand."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def whole(value: Any) -> Any:
    """Return what a verb returned, with snapshots that are written with every element of large collections."""
    if isinstance(value, Snapshot):
        return value.whole()
    if isinstance(value, Hit):
        return replace(value, snapshot=value.snapshot.whole())
    if isinstance(value, Page) and isinstance(next(iter(value.items), None), Snapshot | Hit):
        return replace(value, items=tuple(map(whole, value.items)))
    return value


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
    "Blame": "woodrat.merge.blame",
    "Bisected": "woodrat.bisect.search",
    "Capsule": "woodrat.proofs.proof",
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
    "LineageTree": "woodrat.explain.lineage",
    "Newly": "woodrat.explain.workers.follower",
    "OrderProof": "woodrat.verify.report",
    "Overview": "woodrat.ledger.overview",
    "Page": "woodrat.ledger.pages",
    "Proof": "woodrat.proofs.proof",
    "ReadingsDiff": "woodrat.ledger.known_state",
    "Related": "woodrat.ledger.reads",
    "Reason": "woodrat.runs.reader.why",
    "Rebuilt": "woodrat.ledger.rebuild",
    "Recall": "woodrat.recall.reader",
    "Reduction": "woodrat.bisect.reduction",
    "Reindexed": "woodrat.recall.index",
    "Report": "woodrat.ledger.report",
    "RunRecord": "woodrat.runs.record",
    "RunSteps": "woodrat.runs.step_page",
    "RunSummary": "woodrat.runs.summary",
    "Schema": "woodrat.state.schema",
    "Signed": "woodrat.proofs.proof",
    "Snapshot": "woodrat.merge.snapshot",
    "SqlRows": "woodrat.sql.reader",
    "Stale": "woodrat.explain.stale",
    "Step": "woodrat.merge.timeline",
    "Stored": "woodrat.state.asof",
    "Values": "woodrat.merge.diff",
    "Verdict": "woodrat.merge.blame",
    "Verified": "woodrat.verify.report",
    "WhatIf": "woodrat.whatif.result",
}
"""Where records come from that annotations name for type checkers alone, and imports by verbs that need them."""

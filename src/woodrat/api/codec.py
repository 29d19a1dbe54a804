"""Codec: results of verbs as JSON, and back.

A record is its own object (`record_json`), and so is a mapping. A list is `{"items": […]}`, and a plain value has the
name of its verb as its key: `{"fingerprint": "…"}`; both have `position` beside them if they were read at a moment. The
annotation of a verb names the type of its result.
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
    """The shape of one verb's answers."""

    kind: Any
    """The type that the verb returns."""
    name: str
    """The key of the value; empty if the answer is the object itself."""
    at_moment: bool
    """Whether `position` is beside it."""

    @property
    def has_details(self) -> bool:
        """Whether an answer is short unless the caller wants details: lists, and values with large collections."""
        return get_origin(self.kind) is Page or self.kind is Snapshot

    def write(self, value: Any, position: Callable[[], int], *, details: bool = True) -> Any:
        """Return the result of a verb as plain JSON; `position` says where it was read.

        With `details` it is complete. Without, a list has the members that `compact_json` keeps, and a large collection
        only its first elements.
        """
        is_list = get_origin(self.kind) is Page
        form = compact_form(self.kind) if is_list and not details else form_of(self.kind)
        written = form.write(whole(value) if details else value)
        if not self.name:
            return written
        return {self.name: written, **({"position": position()} if self.at_moment else {})}

    def read(self, answer: Any) -> Any:
        """Return the result that the verb returned on the server; `Unavailable` if a required part is missing."""
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
    """Return a value of a type, such as `Page[Reason]`, as complete plain JSON."""
    return form_of(kind).write(whole(value))


def read(kind: Any, value: Any) -> Any:
    """Return the value of a type from the JSON that `write` made; `Unavailable` if a required part is missing."""
    with reading(getattr(kind, "__name__", str(kind))):
        return form_of(kind).read(value)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Read an answer as a record with this name; missing or invalid parts raise `Unavailable`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, Refused) as error:
        raise Unavailable(
            f"The server's answer is not a {name} that this version can read ({type(error).__name__}: {error}). "
            "The outcome of the call is unknown. Use the same version of Woodrat on both sides.",
            {"record": name},
        ) from error


def answer_of(verb: Verb) -> AnswerForm:
    """Return the shape of a verb's answers."""
    return answer_form(verb.function, at_moment=verb.declaration.at_moment)


@cache
def answer_form(function: Callable[..., Any], *, at_moment: bool) -> AnswerForm:
    """Return the shape of a function's answers, by its return annotation."""
    kind = _returned(function)
    name = "items" if get_origin(kind) is tuple else function.__name__ if kind in _PLAIN else ""
    return AnswerForm(kind, name, at_moment)


def returned(verb: Verb) -> Any:
    """Return the result type of a verb of the library."""
    return _returned(verb.function)


@cache
def _returned(function: Callable[..., Any]) -> Any:
    return eval(function.__annotations__["return"], {}, _AnnotationNames(function.__module__))


def plain(value: Any) -> Any:
    """Return records nested anywhere in a value as plain JSON."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def whole(value: Any) -> Any:
    """Return the result of a verb with snapshots that serialize every element of large collections."""
    if isinstance(value, Snapshot):
        return value.whole()
    if isinstance(value, Hit):
        return replace(value, snapshot=value.snapshot.whole())
    if isinstance(value, Page) and isinstance(next(iter(value.items), None), Snapshot | Hit):
        return replace(value, items=tuple(map(whole, value.items)))
    return value


class _AnnotationNames(dict[str, Any]):
    """Names in the annotations of verbs, which modules import for type checkers only."""

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
"""The meaning of these names in any annotation; `Json` is not resolved further."""
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
"""Modules of records that annotations name for type checkers only."""

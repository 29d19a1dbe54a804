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

from woodrat.canon import form
from woodrat.errors import Refused, Unavailable
from woodrat.ledger.find import Hit, Page
from woodrat.ledger.report import Report
from woodrat.ledger.report import from_json as report
from woodrat.log.entry import Entry
from woodrat.merge.snapshot import TOLD_MAX, Conflict, Origin, Snapshot
from woodrat.record_json import Describe, Form, form_of, own_forms
from woodrat.records import replace
from woodrat.state import observation, schema
from woodrat.state.asof import Stored
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema

if TYPE_CHECKING:
    from woodrat.api.verb import Verb

SHORTENED: Final = frozenset({"show", "search", "query"})
"""Verbs whose answers hold snapshots, which show large collections in part unless all of them is asked for."""
_PLAIN: Final = (str, int, float, bool)


class AnswerForm(NamedTuple):
    """What the answers of one verb look like."""

    kind: Any
    """The type that the verb returns."""
    name: str
    """What the value stands under; empty where it is an object by itself."""
    at_moment: bool
    """Whether the position it was read at stands beside it."""

    def write(self, value: Any, position: Callable[[], int]) -> Any:
        """Return what a verb returned as plain JSON; `position` says where it was read."""
        written = form_of(self.kind).write(value)
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


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Read an answer that is a record of this name; what is missing or wrong in it is `Unavailable`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, Refused) as error:
        raise Unavailable(
            f"The server's answer is no {name} as this version knows it ({type(error).__name__}: {error}). "
            "Nothing is known of the call. Use the same version of Woodrat on both sides.",
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
    kind: Any = type(value)
    if kind in own_forms:
        return own_forms[kind].write(value)
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def whole(result: Any) -> Any:
    """Return what a verb of `SHORTENED` returned, written with every element of large collections."""
    if isinstance(result, Page):
        return replace(result, items=tuple(map(whole, result.items)))
    if isinstance(result, Hit):
        snapshot: Any = _Whole(result.snapshot)
        return replace(result, snapshot=snapshot)
    return _Whole(result)


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
    "Checkpoint": "woodrat.log.checkpoint",
    "Conflict": "woodrat.merge.snapshot",
    "Crowd": "woodrat.compare.groups",
    "Delivery": "woodrat.state.source",
    "Divergence": "woodrat.compare.divergence",
    "Duplicate": "woodrat.ledger.find",
    "Elements": "woodrat.ledger.elements",
    "EntityChange": "woodrat.merge.diff",
    "Entry": "woodrat.log.entry",
    "Event": "woodrat.merge.timeline",
    "Exported": "woodrat.training.exports",
    "Finished": "woodrat.erasure.verbs.byte_scan",
    "Growth": "woodrat.proofs.proof",
    "Hit": "woodrat.ledger.find",
    "Impact": "woodrat.explain.impact",
    "Interpretation": "woodrat.state.interpretation",
    "Newly": "woodrat.explain.workers",
    "Node": "woodrat.explain.lineage",
    "OrderProof": "woodrat.verify.report",
    "Page": "woodrat.ledger.find",
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


# Records that are more than their fields


class _Whole:
    """A snapshot that is written with every element of large collections."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.version = snapshot, snapshot.version

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot as plain JSON."""
        return _snapshot_json(self)


def _snapshot_json(value: Snapshot | _Whole) -> dict[str, Any]:
    cut = not isinstance(value, _Whole)
    snapshot = value.snapshot if isinstance(value, _Whole) else value
    written = {**snapshot.to_json(), "conflicts": _CONFLICTS.write(snapshot.conflicts)}
    if not cut and "more" in written:
        written["fields"] = dict(snapshot.fields)
        del written["more"]
    for name, origin in snapshot.blame.items():
        written["blame"][name]["observations"] = list(origin.observations[:TOLD_MAX] if cut else origin.observations)
    return written


def _snapshot_schema(describe: Describe) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "entity": {"type": "string", "description": "The entity, as type/key."},
        "entity_id": {"type": "string", "description": "Its id."},
        "entity_type": {"type": "string", "description": "Its type."},
        "members": {"type": "array", "items": {"type": "string"}, "description": "All entities merged into it."},
        "deleted": {"type": "boolean", "description": "Whether it is deleted; it then shows no fields."},
        "fields": {"type": "object", "description": "The value of each field."},
        "blame": {"type": "object", "additionalProperties": describe(Origin), "description": "Where each came from."},
        "conflicts": {"type": "array", "items": describe(Conflict), "description": "The fields in conflict."},
        "position": {"type": "integer", "description": "The log position it was read at."},
        "version": {"type": "integer", "description": "Position of the last entry that touched it."},
        "digest": {"type": "string", "description": "Digest of its values."},
    }
    more = {
        "more": {"type": "object", "description": "Collections shown in part, and how many elements they have."},
        "problem": {"type": "string", "description": "Why nothing is shown: nothing fits the schema in force."},
    }
    return {"type": "object", "required": list(properties), "properties": {**properties, **more}}


def _object(_: Describe) -> dict[str, Any]:
    return {"type": "object"}


def _stored(value: Mapping[str, Any]) -> Stored:
    body = {name: part for name, part in value.items() if name not in ("position", "id")}
    return Stored(value["position"], observation.stored(form.encode(body)))


_CONFLICTS: Final = form_of(tuple[Conflict, ...])
_OWN: Final[Mapping[Any, Form]] = {
    Report: Form(lambda value: value.to_json(), report, _object),
    Snapshot: Form(_snapshot_json, Snapshot.from_json, _snapshot_schema),
    Entry: Form(lambda value: value.to_json(), Entry.from_json, _object),
    Observation: Form(
        lambda value: value.to_json(),
        lambda value: observation.stored(form.encode({name: value[name] for name in value if name != "id"})),
        _object,
    ),
    Stored: Form(lambda value: {"position": value.position, **value.observation.to_json()}, _stored, _object),
    Schema: Form(
        lambda value: value.to_json(),
        lambda value: schema.stored(form.encode({"schema": value["schema"], "type": value["type"]})),
        _object,
    ),
}
own_forms.update(_OWN)

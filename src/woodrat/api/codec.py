"""Whole: records as JSON with nothing left out, and back.

`to_json` of a record is for people and other programs: it leaves out what few look at, shortens results to previews and
works out sentences. The whole form has every field of a record under its name in the library, so that a program on
the other side of a server holds the very record. What a field may hold is read from the class itself: a record that
gains a field gains it here.

A tuple is an array, bytes are base64, a reference is its text, a mapping whose keys are no text is an array of pairs.
Where a field may hold records of several classes, `record` names the class. A field that a newer server adds is
passed over; one that an older server does not know has its default.
"""

from __future__ import annotations

import sys
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union, get_args, get_origin

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.errors import Unavailable
from woodrat.ledger.pages import Page
from woodrat.ledger.report import Report
from woodrat.ledger.report import from_json as report
from woodrat.log.entry import Entry
from woodrat.merge.snapshot import Snapshot
from woodrat.state import observation, schema
from woodrat.state.asof import Stored
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema

if TYPE_CHECKING:
    from woodrat.api.verb import Verb

MEDIA_TYPE: Final = "application/vnd.woodrat.whole+json"
"""What a request accepts that asks for the whole form, and what its answer is."""

_TAG: Final = "record"
_FIELDS: Final = "__woodrat_fields__"
_PLAIN: Final = (str, int, float, bool, type(None), Any, object)


class Form(NamedTuple):
    """How values of one type are written and read."""

    write: Callable[[Any], Any]
    """Returns a value as plain JSON."""
    read: Callable[[Any], Any]
    """Returns the value that plain JSON tells."""


def write(kind: Any, value: Any) -> Any:
    """Return a value of a type, such as `Page[Reason]`, as plain JSON."""
    return form_of(kind).write(value)


def read(kind: Any, value: Any) -> Any:
    """Return the value of a type that `write` told; `Unavailable` when something it must have is not there."""
    try:
        return form_of(kind).read(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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


@cache
def form_of(kind: Any) -> Form:
    """Return how values of a type are written and read."""
    found = _OWN.get(kind)
    if found is not None:
        return found
    if kind in _PLAIN:
        return Form(_same, float) if kind is float else _AS_IT_IS
    if hasattr(kind, "__supertype__"):
        return form_of(kind.__supertype__)
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inside)
    if origin is tuple:
        return _tuple(inside)
    if origin is Page:
        items = _tuple((inside[0], ...))
        return Form(
            lambda page: {"items": items.write(page.items), "cursor": page.cursor, "position": page.position},
            lambda value: Page(items.read(value["items"]), value["cursor"], value["position"]),
        )
    if origin in (dict, Mapping):
        return _mapping(*inside)
    assert hasattr(kind, _FIELDS), f"{kind} has a form"
    kinds = [other for other in kind.__subclasses__() if hasattr(other, _FIELDS)]
    return _one_of(tuple(kinds)) if kinds else _record(kind)


def _same(value: Any) -> Any:
    return value


_AS_IT_IS: Final = Form(_same, _same)


def _record(kind: Any) -> Form:
    forms: dict[str, Form] = {}

    def fields() -> dict[str, Form]:
        # When it is first used, since records may hold records of their own class.
        if not forms:
            names = _Names(kind.__module__)
            for name, about in getattr(kind, _FIELDS).items():
                forms[name] = form_of(eval(about.annotation, {}, names))
        return forms

    def told(value: Any) -> dict[str, Any]:
        return {name: part.write(getattr(value, name)) for name, part in fields().items()}

    def made(value: Mapping[str, Any]) -> Any:
        return kind(**{name: part.read(value[name]) for name, part in fields().items() if name in value})

    return Form(told, made)


class _Names(dict[str, Any]):
    """What the annotations of a module speak of, also where only a type checker imports it."""

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
    "Contender": "woodrat.merge.snapshot",
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
    "Growth": "woodrat.proofs.proof",
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


def _one_of(kinds: tuple[Any, ...]) -> Form:
    records = {kind.__name__: kind for kind in kinds if hasattr(kind, _FIELDS)}
    others = [kind for kind in kinds if kind is not type(None) and kind.__name__ not in records] if records else []
    assert not others, "records share a field with nothing but other records and none"
    if not records:
        inner = [kind for kind in kinds if kind is not type(None)]
        if len(inner) > 1:
            assert all(kind in _PLAIN for kind in inner), f"{kinds} are told apart by themselves"
            return _AS_IT_IS
        return _optional(form_of(inner[0]))
    if len(records) == 1:
        return _optional(form_of(next(iter(records.values()))))
    forms = {name: form_of(kind) for name, kind in records.items()}

    def told(value: Any) -> Any:
        name = type(value).__name__
        return {_TAG: name, **forms[name].write(value)}

    return _optional(Form(told, lambda value: forms[value[_TAG]].read(value)))


def _optional(inner: Form) -> Form:
    return Form(
        lambda value: None if value is None else inner.write(value),
        lambda value: None if value is None else inner.read(value),
    )


def _tuple(inside: tuple[Any, ...]) -> Form:
    if inside[-1] is ...:
        one = form_of(inside[0])
        if one is _AS_IT_IS:
            return Form(list, tuple)
        return Form(lambda items: [one.write(item) for item in items], lambda value: tuple(map(one.read, value)))
    each = tuple(map(form_of, inside))
    return Form(
        lambda items: [form.write(item) for form, item in zip(each, items, strict=True)],
        lambda value: tuple(form.read(item) for form, item in zip(each, value, strict=True)),
    )


def _mapping(key: Any, held: Any) -> Form:
    inner = form_of(held)
    if key is not str:
        keys = form_of(key)
        return Form(
            lambda value: [[keys.write(name), inner.write(item)] for name, item in value.items()],
            lambda value: {keys.read(name): inner.read(item) for name, item in value},
        )
    if inner is _AS_IT_IS:
        return Form(dict, _same)
    return Form(
        lambda value: {name: inner.write(item) for name, item in value.items()},
        lambda value: {name: inner.read(item) for name, item in value.items()},
    )


# Records that are more than their fields


def _snapshot_told(value: Snapshot) -> dict[str, Any]:
    found = {**value.to_json(), "fields": dict(value.fields), "more": dict(value.more)}
    for name, origin in value.blame.items():
        found["blame"][name]["observations"] = list(origin.observations)
    return found


_OWN: Final[Mapping[Any, Form]] = {
    bytes: Form(lambda value: b64encode(value).decode("ascii"), lambda value: b64decode(value, validate=True)),
    Ref: Form(str, ids.parse_ref),
    Report: Form(lambda value: value.to_json(), report),
    Snapshot: Form(_snapshot_told, Snapshot.from_json),
    Entry: Form(lambda value: value.to_json(), Entry.from_json),
    Observation: Form(lambda value: form.decode(value.body), lambda value: observation.stored(form.encode(value))),
    Stored: Form(
        lambda value: {"position": value.position, "observation": form.decode(value.observation.body)},
        lambda value: Stored(value["position"], observation.stored(form.encode(value["observation"]))),
    ),
    Schema: Form(lambda value: form.decode(value.body), lambda value: schema.stored(form.encode(value))),
}

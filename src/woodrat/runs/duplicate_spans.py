"""Retold: calls of a traced run that two instrumentations tell, each in a span of its own.

A framework tells of a model call, and the model's own client tells of it again inside, or beside, with the same id of
the answer. It happened once, so one of them is shown and counted: the one that says its tokens, of several the outer
one. What is hidden stays in the log. Only steps that came as spans are looked at; a recorder tells nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

MODEL, TOOL, NOTE = "run.model", "run.tool", "run.noted"
LEVELS_MAX: Final = 16
"""How many spans up another telling of a call is looked for."""
_RESPONSE_ID: Final = "gen_ai.response.id"
"""The attribute by which the maker of a model names its answer."""


def retold(entries: Iterable[tuple[str, Mapping[str, Any]]]) -> frozenset[str]:
    """Return the spans of the calls among a run's entries that others tell as well."""
    calls: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for kind, body in entries:
        span = body.get("span")
        if kind in (MODEL, TOOL, NOTE) and isinstance(span, str) and came_as_span(body):
            calls[span] = (kind, body)
    hidden = _of_one_answer(calls)
    around = {span: _around(calls, span) for span, (kind, _) in calls.items() if kind != NOTE}
    for span in around:
        kind, body = calls[span]
        for outer in around[span] if span not in hidden else ():
            if span in around[outer]:
                continue  # each inside the other: nobody can tell which is the outer one
            other = calls[outer][1]
            if kind == TOOL:
                if not _same_call(body, other):
                    break
                hidden.add(span if _says(other) or not _says(body) else outer)
            else:
                hidden.add(outer if "usage" in body and "usage" not in other else span)
    return frozenset(hidden)


def came_as_span(body: Mapping[str, Any]) -> bool:
    """Return whether an entry was made from a span of a trace."""
    attributes = body.get("attributes")
    return isinstance(attributes, dict) and "otel" in attributes


def _around(calls: Mapping[str, tuple[str, Mapping[str, Any]]], span: str) -> list[str]:
    """Return the calls of its kind that a call happened inside of, from the nearest on, up to one of the other kind."""
    kind, body = calls[span]
    seen, found = {span}, []
    above = body.get("under")
    while isinstance(above, str) and above in calls and above not in seen and len(seen) <= LEVELS_MAX:
        seen.add(above)
        if calls[above][0] == kind:
            found.append(above)
        elif calls[above][0] != NOTE:
            break
        above = calls[above][1].get("under")
    return found


def _of_one_answer(calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> set[str]:
    """Return the spans of model calls whose answer another tells of as well, and says more about."""
    told: dict[str, list[str]] = {}
    for span, (kind, body) in calls.items():
        named = body["attributes"].get(_RESPONSE_ID)
        if kind == MODEL and isinstance(named, str) and named:
            told.setdefault(named, []).append(span)
    hidden: set[str] = set()
    for spans in told.values():
        best = min(spans, key=lambda span: _rank(span, calls[span][1]))
        hidden.update(span for span in spans if span != best)
    return hidden


def _rank(span: str, body: Mapping[str, Any]) -> tuple[bool, bool, str, str]:
    """Return what orders tellings of one call, the fullest first and then the earliest."""
    return not _says(body), "usage" not in body, str(body.get("started_at")), span


def _says(body: Mapping[str, Any]) -> bool:
    """Return whether a call says what came of it."""
    return any(body.get(name) is not None for name in ("response", "result", "error"))


def _same_call(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Return whether a tool inside another can be the same call: of its name, with its arguments or with none told."""
    args = (inner.get("args"), outer.get("args"))
    return inner.get("name") == outer.get("name") and (args[0] == args[1] or not all(args))

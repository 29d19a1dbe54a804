"""Usage: where a run got a value from and what it used it for, and which steps depend on others for that.

Only values that are unlikely to be met twice by chance are followed. The index is made when the first question comes:
most comparisons have none.

A step depends on another where it was handed an identifier that the other returned first, or where one of them changes
something and both name the same thing, or one changes what the other looked up; where one only looks, plain words such
as a city's name do not count. Looking up twice, or changing two different things, may happen in any order. Choices keep
their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare.noise import volatile_tokens
from woodrat.compare.value_difference import opened, says_much
from woodrat.runs import messages, trace
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, Part, Read, ToolCall, Write

START: Final = -1
"""The place of what a run was given."""
IDENTIFIER_CHARACTERS_MIN: Final = 3
"""How long an identifier is at least."""
TOKEN_CHARACTERS_MIN: Final = 10
"""How long a text is at least that holds an id or a time besides other words."""
_OPENING: Final = ("{", "[", " ", "\n")
_IDENTIFIER: Final = re.compile(r"(?!\d{4}-\d\d-\d\d)(?=.*\d)(?!-?\d{1,4}(?:\.\d+)?$)(?!-?\d+\.\d+$)\S+")


def marks(value: Json) -> Iterator[str]:
    """Yield what a value can be recognised by: its plain values that say much, and the ids and times in its texts."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            if item[:1] in _OPENING and (held := opened(item)) is not item:
                todo.append(held)
            elif len(item) > 2:
                yield item
                if len(item) > TOKEN_CHARACTERS_MIN:
                    yield from volatile_tokens(item)
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        elif says_much(item):
            yield str(item)


def inputs_of(part: Part | Write) -> Json:
    """Return what a step was handed: arguments, facts, or the values of a write."""
    if isinstance(part, ToolCall):
        return part.args
    if isinstance(part, Read):
        return [part.entity, dict(part.args)]
    if isinstance(part, Decision):
        return [dict(part.facts), [condition.actual for condition in part.conditions]]
    return [part.entity, dict(part.fields), dict(part.remove)] if isinstance(part, Write) else None


def outputs_of(part: Part | Write) -> Json:
    """Return what a step gave to later ones: a result, or what was read or chosen."""
    if isinstance(part, ToolCall):
        return part.result
    if isinstance(part, Read):
        return part.values
    return part.chosen if isinstance(part, Decision) else None


class Usage:
    """What one run used, and where it had it from."""

    def __init__(self, record: RunRecord, parts: Sequence[Part | Write]) -> None:
        self._record, self._parts = record, parts

    @cached_property
    def _own(self) -> frozenset[str]:
        """What the recorder calls the run and its steps, which is new every time and leads to nothing."""
        spans = (part.span for part in self._record.steps)
        return frozenset({self._record.id, trace.trace_id(self._record.id), *spans})

    def _told(self, value: Json) -> set[str]:
        """Return what a value can be recognised by, names of the run and its steps aside."""
        found = {*marks(value), *([str(value)] if isinstance(value, int | float) else [])}
        return {mark for mark in found if not ({*volatile_tokens(mark)} or {mark}) <= self._own}

    @cached_property
    def _last_use(self) -> dict[str, int]:
        return {mark: place for place, part in enumerate(self._parts) for mark in marks(inputs_of(part))}

    @cached_property
    def _first_source(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for mark in marks([dict(self._record.inputs), self._record.query]):
            found.setdefault(mark, START)
        for place, part in enumerate(self._parts):
            for mark in marks(outputs_of(part)):
                found.setdefault(mark, place)
        return found

    @cached_property
    def _user_texts(self) -> str:
        texts = [self._record.query or ""]
        for call in self._record.models:
            for message in call.messages if isinstance(call.messages, list) else []:
                if isinstance(message, dict) and message.get("role") in ("user", "human", "system", "developer"):
                    texts.append(messages.text_in(message) or "")
        return "\n".join(texts)

    def takes_from(self, place: int, part: Part | Write) -> bool:
        """Return whether a step was handed an identifier that the step at `place` was the first to return."""
        return any(
            self._first_source.get(mark) == place and identifies(mark) and mark not in self._user_texts
            for mark in marks(inputs_of(part))
        )

    def used_after(self, place: int, value: Json) -> bool:
        """Return whether a later call, decision or write was handed a value, or an id or time in it."""
        return any(self._last_use.get(mark, START) > place for mark in self._told(value))

    def known_before(self, place: int, value: Json) -> bool:
        """Return whether the run was given a value, or an earlier step returned it."""
        return any(self._first_source.get(mark, place) < place for mark in self._told(value))


def identifies(mark: str) -> bool:
    """Return whether a value names one thing, such as an order number: dates, amounts and plain words do not."""
    return "@" in mark or (len(mark) >= IDENTIFIER_CHARACTERS_MIN and _IDENTIFIER.fullmatch(mark) is not None)


# Order

_LOOKUPS_TEXT: Final = (
    "get list search find read lookup look fetch check verify validate query show view describe count calculate compute"
    " estimate is has retrieve load think plan see inspect browse compare measure know"
)
_LOOKUPS: Final = frozenset(_LOOKUPS_TEXT.split())
"""First words of the names of tools that change nothing."""


def only_looks(part: Part | Write) -> bool:
    """Return whether a step changes nothing, as far as its kind and its name tell."""
    if isinstance(part, ToolCall):
        words = re.findall(r"[A-Z]?[a-z]+", part.name)
        return bool(words) and words[0].lower() in _LOOKUPS
    return isinstance(part, Read)


def bound_by_effect(part: Part | Write, other: Part | Write) -> bool:
    """Return whether the order of two steps matters for what they change, or for what they choose."""
    if isinstance(part, Decision) or isinstance(other, Decision):
        return True
    if only_looks(part) and only_looks(other):
        return False
    shared = {*marks(_names(part))}.intersection(marks(_names(other)))
    if any(identifies(mark) for mark in shared) or (shared and not only_looks(part) and not only_looks(other)):
        return True
    return _acts_on(part, other) or _acts_on(other, part)


def _acts_on(part: Part | Write, other: Part | Write) -> bool:
    """Return whether a step changes something by an identifier that another, which only looks, returned."""
    if only_looks(part) or not only_looks(other):
        return False
    returned = {*marks(outputs_of(other))}
    return any(identifies(mark) and mark in returned for mark in marks(inputs_of(part)))


def _names(part: Part | Write) -> Json:
    if isinstance(part, Read | Write):
        return part.entity
    return inputs_of(part)

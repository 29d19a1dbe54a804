"""Noise: which values say nothing about the behaviour of the runs of a group, and runs without them.

Of a place with many values only those count that many runs share, and prose counts only where it is always the same.
Where the runs were given different inputs, values that hardly two runs share are taken to follow from these; in a large
group, so are three values or more of which none is that of every second run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.compare.features import (
    ARGUMENT,
    BEHAVIOUR,
    INPUT,
    READ,
    RESULT,
    FeatureTable,
    Slot,
    is_prose,
    value_of,
)
from woodrat.compare.value_difference import joined, opened, says_much
from woodrat.compare.volatile import steady
from woodrat.records import replace
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Read, ToolCall

VALUES_MAX: Final = 8
"""How many values of one place tell runs apart; where there are more, only those that many runs share."""
COMMON: Final = 0.25
"""How large a part of the runs must share one of many values, for it to tell them apart."""
RUNS_MIN: Final = 20
"""From how many runs on values of which none is that of every second run are taken to vary by chance."""
HIDDEN: Final = "(differs from run to run)"
"""What stands where a value is noise."""


class Noise:
    """What is noise among the runs of one table."""

    def __init__(self, table: FeatureTable) -> None:
        self._table = table
        self.differing_inputs = _differing_inputs(table)
        """Which inputs not all runs have the same value of, sorted."""
        self.telling = self._telling()
        """Of each feature whether it tells the behaviour of runs apart: 1, or 0 for noise."""

    def _telling(self) -> bytearray:
        table, varied = self._table, bool(self.differing_inputs)
        telling = bytearray(b"\1" * len(table.features))
        for slot, values in table.slots.items():
            if slot.kind not in BEHAVIOUR:
                continue
            if slot.kind == READ and "/" in slot.name and table.is_one_of_many(slot.name):
                for number in values:
                    telling[number] = 0  # the same is followed under its type
                continue
            sizes = [len(table.places[number].runs) for number in values]
            many = len(values) > VALUES_MAX or slot in table.overflow
            scattered = len(values) > 2 and (
                (varied and len(values) > sum(sizes) / 2)
                or (len(table.tracks) >= RUNS_MIN and max(sizes) < sum(sizes) / 2)
            )
            prose = len(values) > 1 and any(is_prose(table.features[number].value) for number in values)
            if many or scattered or prose:
                least = COMMON * len(table.tracks)
                for number, size in zip(values, sizes, strict=True):
                    telling[number] = not prose and not scattered and size >= least
        return telling

    def without(self, record: RunRecord, like: RunRecord) -> RunRecord:
        """Return a run as if it had been asked and given what another was, without its models and other noise."""
        given = {value for value in _plain_values(dict(record.inputs)) if says_much(value)}
        if record.subject is not None:
            given.update((record.subject, record.subject.partition("/")[2]))
        return replace(
            record,
            query=like.query,
            inputs=like.inputs,
            subject=like.subject,
            models=(),
            tool_calls=tuple(self._tool_call(call, given) for call in record.tool_calls),
            reads=tuple(self._read(part, record, like, given) for part in record.reads),
            writes=tuple(
                replace(write, entity=self._entity(write.entity, record, like, given)) for write in record.writes
            ),
        )

    def _entity(self, entity: str, record: RunRecord, like: RunRecord, given: set[Json]) -> str:
        """Return what stands for an entity: the subject of the other run for the run's own, no name for one of many."""
        if entity == record.subject and like.subject is not None:
            return like.subject
        kind, _, key = entity.partition("/")
        return f"{kind}/{HIDDEN}" if key in given or self._table.is_one_of_many(entity) else entity

    def _tool_call(self, call: ToolCall, given: set[Json]) -> ToolCall:
        args = self._value(call.args, Slot(ARGUMENT, call.name, ""), given)
        result = self._value(call.result, Slot(RESULT, call.name, ""), given)
        return replace(call, args=args, result=result)

    def _read(self, part: Read, record: RunRecord, like: RunRecord, given: set[Json]) -> Read:
        if not part.entity:
            return part
        entity = self._entity(part.entity, record, like, given)
        whole = entity != part.entity or part.entity == record.subject
        name = part.entity.split("/", 1)[0] if whole else part.entity
        fields = {
            field: item
            for field, item in part.fields.items()
            if isinstance(item, dict)
            and self._value(shown := item.get("value"), Slot(READ, name, field), given) == shown
        }
        return replace(part, entity=entity, fields=fields)

    def _value(self, value: Any, slot: Slot, given: set[Json]) -> Json:
        """Return a value with whatever is noise in it hidden."""
        value = opened(value)
        if isinstance(value, dict):
            inner: Mapping[str, Json] = value
            return {
                name: self._value(item, slot._replace(path=joined(slot.path, name)), given)
                for name, item in inner.items()
            }
        if isinstance(value, list):
            return [self._value(item, slot._replace(path=f"{slot.path}[]"), given) for item in value]
        if value is None:
            return None
        if says_much(value) and value in given:
            return HIDDEN
        number = self._table.known(slot, value)
        return value_of(steady(value)) if number is not None and self.telling[number] else HIDDEN


def _differing_inputs(table: FeatureTable) -> tuple[str, ...]:
    total = len(table.tracks)
    return tuple(
        sorted(
            slot.path
            for slot, values in table.slots.items()
            if slot.kind == INPUT and (len(values) > 1 or len(table.places[values[0]].runs) < total)
        )
    )


def _plain_values(value: Json) -> list[Json]:
    """Return the plain values inside a value."""
    found: list[Json] = []
    todo: list[Json] = [value]
    while todo:
        item = opened(todo.pop())
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        else:
            found.append(item)
    return found

"""Prechecks: records are compared with the rules of their types before their write has its turn.

Writers take turns, and a check needs none: while one write waits for the disk, the records of the next can be checked.
The rules are those that the last write of the log saw. The plan looks whether they are still in force (`entities`) and
checks again what was checked by others, so a precheck never decides anything by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.context import Context
from woodrat.merge.rules import Rules
from woodrat.state import relation
from woodrat.state.record import Record
from woodrat.state.relation import SAME_AS

LOGS_MAX: Final = 256
"""Of how many logs a process remembers the rules that were last in force."""
VALUES_MAX: Final = 64
"""Of how many records the identifying values are worked out before their write has its turn."""
TYPES_MAX: Final = 1_024
"""Of how many types of each."""

_last: dict[tuple[int, str], dict[str, Rules]] = {}
"""By engine and tenant. Another engine may come by the same number; its plans notice."""


class Precheck:
    """The entities that the records of one call speak of, as far as some rules tell."""

    __slots__ = ("_entities", "_records", "_rules")

    def __init__(self, context: Context, records: Sequence[Record]) -> None:
        known = _last.get((id(context.engine), context.tenant))
        self._rules: dict[str, Rules] = {}
        self._records = records
        self._entities: list[Ref | None] | None = None
        if known is None:
            return
        checks: dict[str, Callable[[Mapping[str, Json]], Ref | None] | None] = {}
        entities: list[Ref | None] = []
        for record in records:
            type, entity = record.type, None
            if record.spelled is not None:
                if type not in checks:
                    rules = known.get(type)
                    if rules is not None:
                        self._rules[type] = rules
                    checks[type] = (
                        None
                        if rules is None or not is_plain(rules, "types" in context.strict)
                        else rules.checker.entity
                    )
                check = checks[type]
                if check is not None:
                    entity = check(record.fields)
            entities.append(entity)
        self._entities = entities

    @property
    def about(self) -> Sequence[Ref]:
        """The entities that are known so far."""
        return [entity for entity in self._entities or () if entity is not None]

    def values(self) -> list[tuple[Ref, Sequence[tuple[str, str]]]]:
        """Return the identifying values of the entities that are known so far, of few records."""
        if len(self._records) > VALUES_MAX:
            return []
        pairs = zip(self._entities or (), self._records, strict=False)
        return [
            (entity, self._rules[entity.type].checker.shared_values(record.fields))
            for entity, record in pairs
            if entity is not None and relation.endpoints(entity) is None
        ]

    def entities(self, rules: Callable[[str], Rules], count: int) -> Sequence[Ref | None]:
        """Return the entities of so many records, each unless its type now has other rules than it was checked by."""
        if self._entities is None:
            return [None] * count
        changed = [type for type, checked_by in self._rules.items() if rules(type) is not checked_by]
        if changed:
            return [None if entity is None or entity.type in changed else entity for entity in self._entities]
        return self._entities


def is_plain(rules: Rules, strict: bool) -> bool:
    """Return whether a type takes plain records whose checker alone can say that they are sound."""
    return rules.schema.type != SAME_AS and not (strict and rules.schema.is_open)


def remember(context: Context, rules: Rules) -> None:
    """Note the rules in force of a type, for the records that come next."""
    log = (id(context.engine), context.tenant)
    known = _last.get(log)
    if known is None:
        if len(_last) >= LOGS_MAX:
            _last.clear()
        known = _last[log] = {}
    elif len(known) >= TYPES_MAX:
        known.clear()
    known[rules.schema.type] = rules

"""Questions that are asked along with the beginning of a view or a write, so that they cost no round trip of their own.

Of a write they are asked once the tenant is locked, so that an answer holds until the write changes the tables. A
question that turns out otherwise is asked again; one that was asked in vain costs the server a look at an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from woodrat.engines import codec
from woodrat.engines.cache import Memory
from woodrat.engines.index import ranges, within
from woodrat.engines.postgres.statements import BytesColumn, NumberColumn, Part, all_compiled
from woodrat.engines.postgres.wire import Command, Key, Rows
from woodrat.engines.records import Asks
from woodrat.engines.tables import ALL

_STANDING: Final = ("cloned", "joins", "last_of_kind", "log", "meta", "named", "scan")
"""Statements that a write runs that knows nothing of its tenant, mostly with the same values whatever it writes."""
HABITS_MAX: Final = 16
"""How many questions are asked along because they were asked before."""
VAIN_MAX: Final = 8
"""After so many times in vain a question is no longer asked along."""
LATE_MAX: Final = 8
"""After so many readers who knew a tenant, the next is expected to know it too."""
ROWS_MAX: Final = 64
"""A question with more rows than this is not asked along because it was asked before."""

Answers = dict[Key, Rows]
"""Rows by question."""


@cache
def _standing() -> frozenset[Part | str]:
    return frozenset(all_compiled()[name].parts[0] for name in _STANDING)


def is_standing(question: Command) -> bool:
    """Return whether a question is about the tenant, and not about what is written."""
    part, values = question.part, question.values or {}
    # One entry stays what it is, as a schema does.
    return part in _standing() or (part is all_compiled()["entries"].parts[0] and values["low"] == values["high"])


Questions = Mapping[Key, Command]
"""Questions by what they are known by: each once."""


def by_key(questions: Iterable[Command]) -> Questions:
    """Return each of some questions once."""
    return {question.key: question for question in questions}


def answers_to(questions: Questions, rows: Sequence[Rows]) -> Answers:
    """Return the answers to questions."""
    return dict(zip(questions, rows, strict=True))


class Habit:
    """What views or writes of a tenant ask each time, whatever they do.

    A question that two of them asked one after the other is asked along with the beginning from then on.
    """

    def __init__(self) -> None:
        self.questions: Sequence[Command] = ()
        self._vain: dict[Key, int] = {}
        self._last: Questions = {}

    def learn(self, asked: Questions) -> None:
        """Take in what one of them asked."""
        last, kept, vain = self._last, list[Command](), dict[Key, int]()
        for question in self.questions:
            key = question.key
            times = 0 if key in asked else self._vain.get(key, 0) + 1
            if times < VAIN_MAX:
                kept.append(question)
                vain[key] = times
        kept += [question for key, question in asked.items() if key in last and key not in vain]
        # Any thread may do so at any time: each replaces what the one before knew.
        self.questions, self._vain, self._last = tuple(kept[:HABITS_MAX]), vain, asked


def columns_of(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
    """Return pairs of keys, from the first to before the last, as a query takes many."""
    firsts, lasts = [first for first, _ in pairs], [last for _, last in pairs]
    return {"firsts": BytesColumn(firsts), "lasts": BytesColumn(lasts)}


def _question(tenant: str, query: str, **values: Any) -> Command:
    return Command(all_compiled()[query].parts[0], {"limit": ALL, **values, "tenant": tenant})


def first_questions(tenant: str, asks: Asks, memory: Memory | None) -> list[Command]:
    """Return what a view or a write will ask, as far as it is not known."""
    found: list[Command] = []
    if asks.key is not None:
        found.append(_question(tenant, "receipt", agent=asks.key[0], key=asks.key[1]))
    known = {} if memory is None else memory.entities
    unknown = sorted({codec.head(ref.digest) for ref in asks.entities if ref.digest not in known})
    if len(unknown) == 1:
        found.append(_question(tenant, "entity", digest=unknown[0]))
    elif unknown:
        found.append(_question(tenant, "entities_by_digest", digests=NumberColumn(unknown)))
    if unknown and asks.find is not None and (sought := asks.find()) is not None:
        if len(sought.prefixes) == 1:
            found.append(_question(tenant, "scan", name=sought.name, limit=sought.limit, **within(sought.prefixes[0])))
        else:
            pairs = ranges(sought.prefixes)
            found.append(_question(tenant, "find_some", name=sought.name, limit=sought.limit, **columns_of(pairs)))
    for scan in asks.scans:
        query = "scan_reversed" if scan.reverse else "scan"
        keys = within(scan.prefix, scan.after, reverse=scan.reverse)
        found.append(_question(tenant, query, name=scan.name, limit=scan.limit, **keys))
    return found


class Readers:
    """Those who read a tenant, and what they will ask."""

    def __init__(self) -> None:
        self._habits = Habit(), Habit()
        self._late = 0

    @property
    def are_late(self) -> bool:
        """Whether one of the last few knew nothing of the tenant, since somebody had written: so may the next."""
        return self._late > 0

    def questions(self, *, late: bool) -> Sequence[Command]:
        """Return what one asks that knows the tenant, or with `late` one that may not."""
        known, unknown = (habit.questions for habit in self._habits)
        return [*unknown, *known] if late else known

    def learn(self, asked: Questions, *, late: bool) -> None:
        """Take in what one of them asked."""
        self._late = LATE_MAX if late else max(0, self._late - 1)
        self._habits[late].learn(asked)

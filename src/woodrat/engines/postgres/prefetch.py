"""Questions: what a write will ask, asked along with its beginning, so that it costs no round trip of its own.

They are asked once the tenant is locked, so that an answer holds until this write changes the tables. A question that
turns out otherwise is asked again; one that was asked in vain costs the server a look at an index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.engines.postgres.statements import Column, all_compiled

if TYPE_CHECKING:
    from woodrat.engines.postgres.connection import Connection

_STANDING: Final = ("cloned", "joins", "last_of_kind", "log", "meta", "named", "scan")
"""Statements that a write runs that knows nothing of its tenant, mostly with the same values whatever it writes."""

Key = tuple[Any, ...]
"""What a question is known by: its statement and values."""
Answers = dict[Key, list[tuple[Any, ...]]]
"""Rows by question."""


class Question(NamedTuple):
    """One statement with its values."""

    part: str
    values: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """What it is known by."""
        values = self.values
        return self.part, *(
            (name, value.data if isinstance(value, Column) else value) for name, value in sorted(values.items())
        )


@cache
def _standing() -> frozenset[str]:
    return frozenset(all_compiled()[name].parts[0] for name in _STANDING)


def is_standing(part: str) -> bool:
    """Return whether a statement asks about the tenant, and not about what is written."""
    return part in _standing()


def ask_all(connection: Connection, questions: Sequence[Question]) -> list[tuple[Question, Any]]:
    """Ask questions within a pipeline; return each with the cursor that will have its rows."""
    return [(one, connection.execute(one.part, dict(one.values), binary=True)) for one in questions]


def answers_to(asked: Sequence[tuple[Question, Any]]) -> Answers:
    """Return the answers to what was asked, once the pipeline is over."""
    return {question.key: cursor.fetchall() for question, cursor in asked}


Queue = list[tuple[str, dict[str, Any] | None]]
"""Statements with their values, in the order in which they are to be sent."""


def send(connection: Connection, queue: Queue) -> None:
    """Send statements; within a pipeline nothing is waited for."""
    for part, values in queue:
        connection.execute(part, values, binary=True)

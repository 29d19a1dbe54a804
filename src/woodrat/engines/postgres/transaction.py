"""Write: one write of one tenant.

What it adds is queued, and goes to the server with the next question, or with the commit: a write that asks nothing
after its first look takes two round trips.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.postgres import state_columns
from woodrat.engines.postgres.connection import ERASER, WRITER
from woodrat.engines.postgres.prefetch import Answers, is_standing
from woodrat.engines.postgres.statements import all_compiled
from woodrat.engines.postgres.tenant_writer import end_of
from woodrat.engines.postgres.view import PostgresView
from woodrat.engines.postgres.wire import Command, Rows
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.statements import COLUMNS, FOR_ROWS
from woodrat.engines.transaction import Transaction
from woodrat.state import relation
from woodrat.state.observation import Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.cache import Known
    from woodrat.engines.postgres.statements import Part
    from woodrat.engines.postgres.tenant_writer import TenantWriter
    from woodrat.engines.postgres.wire import Connection
    from woodrat.engines.records import Kept
    from woodrat.log.entry import Write
    from woodrat.merge.rules import Rules
    from woodrat.state.meaning import Meaning

_LOG: Final = frozenset({"add_entry", "add_body", "add_origin", "add_said", "add_node"})
"""Statements that only add what a write says: no question that is asked at its beginning has another answer then."""
QUEUE_MAX: Final = 64
"""After so many statements a queue is sent, so that memory does not grow with a write."""
_ENTITY: Final = {"add_entity": 0, "set_entity": -1}
"""Statements that write entities, and at which place of a row the entity's number stands."""
_COLUMNS: Final = COLUMNS | {query: (*COLUMNS[query], *state_columns.COLUMNS) for query in _ENTITY}


@cache
def _changed_tables(query: str) -> re.Pattern[str]:
    """Return a pattern that is found in statements which name a table that a statement changes."""
    changed = {name for part in all_compiled()[query].parts for name in _CHANGED.findall(part.text)}
    assert changed, f"{query} changes a table"
    return re.compile(rf"\b(?:{'|'.join(sorted(changed))})\b")


_CHANGED: Final = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)")


class PostgresTransaction(Transaction, PostgresView):
    """One write of one tenant."""

    def __init__(
        self,
        connection: Connection,
        tenant: TenantId,
        place: TenantWriter,
        found: tuple[Any, ...] | None,
        sound: set[TenantId],
        answers: Answers,
    ) -> None:
        PostgresView.__init__(self, connection, tenant, place.memory, found, answers)
        self._place = place
        self._queue: list[Command] = []
        self.sent = False
        """Whether anything was sent that changes the tables."""
        self.first_leaf: tuple[int, bytes] | None = None
        """The first entry that it appended, by position and leaf."""
        # By number, entities whose state changed: the rules it is read under, and the version where that is not plain.
        self._shown: dict[int, tuple[Known, Rules | None, int | None]] = {}
        self.begin_write(sound)

    @property
    def has_changed(self) -> bool:
        """Whether it changed anything, in the tables or of what is known."""
        return self.has_noted or self.sent or bool(self._queue)

    def ask(self, part: Part, values: dict[str, Any]) -> Rows:
        question = Command(part, values)
        is_habit = self._place.is_shared and is_standing(question)
        if is_habit or self._answers:
            key = question.key
            if is_habit:
                self.asked[key] = question
            if (answer := self._answers.pop(key, None)) is not None:
                return answer
        return self.exchange(question)[-1]

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        self.flush()
        return super().comparing(query, **values)

    def exchange(self, *commands: Command) -> list[Rows]:
        return super().exchange(*self.hand_over(), *commands)

    def hand_over(self) -> list[Command]:
        """Return what is queued, which whoever asks will send."""
        queue, self._queue = self._queue, []
        self.sent = self.sent or bool(queue)
        return queue

    def _add(self, part: Part | str, values: dict[str, Any] | None = None) -> None:
        self._queue.append(Command(part, values))
        if len(self._queue) >= QUEUE_MAX:
            self.exchange()

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        rows = list(rows)
        if not rows:
            return
        if query not in _LOG and self._answers:
            changed = _changed_tables(query)
            self._answers = {known: rows for known, rows in self._answers.items() if not changed.search(known[0].text)}
        plain = FOR_ROWS.get(query)
        if plain is not None and plain.verb == "add or replace":  # of two rows with one key the last counts
            rows = list({row[: plain.key]: row for row in rows}.values())
        elif (place := _ENTITY.get(query)) is not None:
            rows = [(*row, *self._columns(row[place])) for row in rows]
        statement = self._statements[query]
        (part,) = statement.parts
        values: dict[str, Any] = statement.arrays(dict(zip(_COLUMNS[query], zip(*rows, strict=True), strict=True)))
        self._add(part, {"tenant": self.name, **values})

    def run(self, query: str, **values: Any) -> None:
        self._answers.clear()
        values["tenant"] = self.name
        for part in self._statements[query].parts:
            self._add(part, values)

    def set_meta(self, name: str, value: bytes | None) -> None:
        self.memory.notes.pop(name, None)
        super().set_meta(name, value)

    def keep(self, folds: Iterable[tuple[Kept, Rules, bool]]) -> None:
        folds = list(folds)
        super().keep(folds)
        versions, noted = self._versions() if self._joins() else None, self._shown
        for (_, state), rules, _ in folds:
            members = state.members
            root = self._entity(members[0])
            assert root is not None, "its state was just kept"
            if versions is None:  # nobody ever joined anything
                noted[root.number] = root, rules, None
                continue
            version = max(versions.get(ref, BEFORE_ALL) for ref in members)
            noted[root.number] = root, rules, None if version == BEFORE_ALL else version
            for ref in members[1:]:
                if (member := self._entity(ref)) is not None:
                    noted[member.number] = member, None, None
                    self._changed[member.number] = member

    def _entity(self, ref: Ref) -> Known | None:
        return self.memory.entities.get(ref.digest) or self.known_entity(ref.digest)

    def _versions(self) -> dict[Ref, int]:
        """Return the last position of this write that touches each entity, by itself or through a `same_as`."""
        found: dict[Ref, int] = {}
        for first, meanings in self._said:
            for position, meaning in enumerate(meanings, first):
                if isinstance(meaning, Observation):
                    for ref in (meaning.entity, *(relation.joined(meaning.entity) or ())):
                        found[ref] = position
        return found

    def _columns(self, number: int) -> state_columns.Columns:
        """Return what the table shows of an entity from now on."""
        known, rules, version = self._shown.pop(number, (None, None, None))
        if known is None:
            return state_columns.AS_BEFORE
        return state_columns.columns(known.state, rules, version)

    def enrol(self) -> None:
        raise AssertionError("a tenant is called by its name")

    def append(self, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
        if self.first_leaf is None and writes:
            self.first_leaf = writes[0].first, writes[0].leaves[0]
        super().append(writes, meanings)

    @contextmanager
    def erasing(self) -> Iterator[None]:
        self.run("due")
        self._add(f"SET LOCAL ROLE {ERASER}")
        yield
        self._add(f"SET LOCAL ROLE {WRITER}")

    def drop_tables(self) -> None:
        self._shown.clear()
        self.run("drop_derived")

    def finish(self, *, note_end: bool = True) -> bool:
        """Queue all that is left, and mostly the new end of the log; return whether anything changed."""
        if self._place.is_shared:
            self._place.habit.learn(self.asked)
        if not self.has_changed:
            return False
        self.flush()
        self.head()  # it is in memory then
        if note_end:
            self.run("set_head", **end_of(self.name, self.memory))
        return True

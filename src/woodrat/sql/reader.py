"""The SQL reader: one SELECT over five virtual tables of one tenant, all at one position of the log.

The query runs in an empty in-memory SQLite database whose virtual tables are filled by the ledger's own reads. It
therefore sees one tenant and one moment, changes nothing, and means the same on every engine. A query cannot name the
ledger's own tables, and the documented columns do not depend on how a ledger is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import apsw

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.clock import monotonic
from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index, lists, reads
from woodrat.ledger.moments import NO_READ, at, open_reader
from woodrat.ledger.read import PAGE_MAX
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs import steps
from woodrat.runs.reader.lists import runs_page
from woodrat.runs.steps import Decision

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.merge.snapshot import Snapshot

Cell = str | int | float | None
"""One value of a row."""
Bindings = Sequence[Cell] | Mapping[str, Cell]
"""Values for `?` or `:name` in a query."""

ROWS_MAX: Final = 100_000
"""Most rows of a query."""
SECONDS_MAX: Final = 30
"""Time limit of a query."""
VALUE_BYTES_MAX: Final = 10_000_000
"""Longest value that a query may compute."""
QUERY_BYTES_MAX: Final = 100_000
"""Longest query."""
DECIDED: Final = "run.decided"
"""The kind of entry that holds a decision."""
_STEPS: Final = 10_000
"""SQLite instructions between two checks of the time."""


@dataclass(frozen=True, slots=True)
class SqlRows(Record):
    """The answer to an SQL query; iterating gives each row as a dictionary."""

    columns: tuple[str, ...]
    """The names of the columns, in order."""
    rows: tuple[tuple[Json, ...], ...]
    """The rows, each with a value per column; bytes are shown as hexadecimal text."""
    truncated: bool
    """Whether there were more rows than the limit."""
    position: int
    """The log position the query was answered at."""

    def __iter__(self) -> Iterator[dict[str, Json]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class QueryTable:
    """One table that queries can name."""

    columns: tuple[str, ...]
    """The names of its columns, in order."""
    keyed: tuple[str, ...]
    """The columns that narrow the read when a query compares them with `=`, the narrowest first."""
    rows: Callable[[Context, str | None, Any], Iterator[tuple[Cell, ...]]]
    """Reads the rows, narrowed to one value of a keyed column or not."""


def sql(context: Context, query: str, bindings: Bindings | None = None, *, limit: int) -> SqlRows:
    """Return the rows of one SELECT, at most `limit` of them."""
    _check(query, limit)
    pinned = at(context, context.moment)
    assert isinstance(pinned.moment, int), "a context at a moment is pinned to its position"
    database = apsw.Connection(":memory:")
    try:
        return _answer(database, pinned, pinned.moment, query, bindings, limit)
    finally:
        database.close()


def _check(query: object, limit: object) -> None:
    faults: list[Fault] = []
    if not isinstance(query, str) or not query.strip():
        faults.append(Fault("query", f"expected a SELECT statement, got {shown(query)}", "Send SQL as text."))
    elif len(query) > QUERY_BYTES_MAX:
        faults.append(Fault("query", f"has {len(query)} characters", f"Send at most {QUERY_BYTES_MAX:,}."))
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= ROWS_MAX:
        remedy = f"Send a number from 1 to {ROWS_MAX:,}."
        faults.append(Fault("limit", f"expected a number of rows, got {shown(limit)}", remedy))
    if faults:
        raise Refused(faults, outcome=NO_READ)


def _answer(
    database: apsw.Connection, context: Context, position: int, query: str, bindings: Bindings | None, limit: int
) -> SqlRows:
    deadline = monotonic() + SECONDS_MAX
    database.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
    database.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    for name, table in TABLES.items():
        database.create_module(name, _Module(table, context, deadline), eponymous_only=True, read_only=True)
    database.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
    cursor = database.cursor()
    cursor.exec_trace = statement = _OneStatement()
    database.authorizer = _authorize
    rows: list[tuple[Json, ...]] = []
    truncated = False
    try:
        for row in cursor.execute(query, bindings):
            if len(rows) == limit:
                truncated = True
                break
            rows.append(tuple(map(_json_value, row)))
    except (apsw.Error, ValueError, TypeError, OverflowError) as error:
        raise _refusal(error) from error
    return SqlRows(statement.columns or (), tuple(rows), truncated, position)


def _json_value(cell: Any) -> Json:
    """Return a value as JSON can have it."""
    if isinstance(cell, bytes):
        return cell.hex()
    return cell if not isinstance(cell, float) or isfinite(cell) else str(cell)


class _OneStatement:
    """Lets the first statement of a query run, and none after it."""

    def __init__(self) -> None:
        self.columns: tuple[str, ...] | None = None
        """The columns of the statement."""

    def __call__(self, cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        first = self.columns is None
        if first:
            self.columns = tuple(name for name, _ in cursor.get_description())
        return first


_ALLOWED: Final = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE})


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action not in _ALLOWED or (action == apsw.SQLITE_FUNCTION and second == "load_extension"):
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK


def _refusal(error: Exception) -> Refused:
    """Return the refusal that corresponds to an exception of SQLite."""
    tables = ", ".join(TABLES)
    match error:
        case apsw.InterruptError():
            problem = f"took longer than {SECONDS_MAX} seconds and was stopped"
            remedy = "Narrow it: compare entity, type or run with `=`, or ask for fewer rows."
        case apsw.SQLError() if "may not be modified" in str(error) or "not authorized" in str(error):
            problem, remedy = "does more than read", f"Send one SELECT over the tables {tables}."
        case apsw.AuthError():
            problem, remedy = "does more than read", f"Send one SELECT over the tables {tables}."
        case apsw.ExecTraceAbort():
            problem, remedy = "has more than one statement", "Send one SELECT at a time."
        case apsw.TooBigError():
            problem = f"makes a value of more than {VALUE_BYTES_MAX:,} bytes"
            remedy = "Ask for less of it, with substr() or fewer rows."
        case apsw.SQLError() if str(error).startswith("no such table"):
            problem, remedy = str(error), f"The tables are {tables}."
        case _:
            problem = str(error)
            remedy = f"It is read as SQLite's SQL, over the tables {tables}."
    return Refused([Fault("query", problem, remedy)], outcome=NO_READ)


class _Module:
    """Offers one table to SQLite."""

    def __init__(self, table: QueryTable, context: Context, deadline: float) -> None:
        self.table = table
        self.context = context
        self.deadline = deadline

    def Connect(self, connection: apsw.Connection, module: str, database: str, name: str, *_: Any) -> tuple[str, Any]:
        columns = ", ".join(f'"{column}"' for column in self.table.columns)
        return f"CREATE TABLE ignored ({columns})", self

    Create = Connect

    def BestIndex(self, constraints: Sequence[tuple[int, int]], orders: object) -> Any:
        """Choose the narrowest column that the query compares for equality."""
        equal = {
            column: place for place, (column, op) in enumerate(constraints) if op == apsw.SQLITE_INDEX_CONSTRAINT_EQ
        }
        for rank, name in enumerate(self.table.keyed):
            place = equal.get(self.table.columns.index(name))
            if place is not None:
                used = [0 if each == place else None for each in range(len(constraints))]
                return used, rank, name, False, 10.0 ** (rank + 1)
        return None, 0, None, False, 1e6

    def Open(self) -> _Cursor:
        return _Cursor(self)

    def Disconnect(self) -> None:
        """There is nothing to close."""

    Destroy = Disconnect

    def ShadowName(self, suffix: str) -> bool:
        """No table here has shadow tables."""
        return False


class _Cursor:
    """Reads the rows of one table."""

    def __init__(self, module: _Module) -> None:
        self._module = module
        self._rows: Iterator[tuple[Cell, ...]] = iter(())
        self._row: tuple[Cell, ...] | None = None
        self._number = -1

    def Filter(self, rank: int, column: str | None, arguments: Sequence[Any] | None) -> None:
        value = arguments[0] if column is not None and arguments else None
        # a value that is not text matches no name, and a comparison with null matches no row
        narrowed = column is not None
        self._rows = (
            iter(())
            if narrowed and not isinstance(value, str)
            else self._module.table.rows(self._module.context, column, value)
        )
        self._number = -1
        self.Next()

    def Eof(self) -> bool:
        return self._row is None

    def Rowid(self) -> int:
        return self._number

    def Column(self, number: int) -> Cell:
        assert self._row is not None
        return self._number if number < 0 else self._row[number]

    def Next(self) -> None:
        if monotonic() > self._module.deadline:
            raise apsw.InterruptError("the time limit is over")
        self._row = next(self._rows, None)
        self._number += 1

    def Close(self) -> None:
        self._rows = iter(())


# The tables


def _cell(value: Json) -> Cell:
    """Return a JSON value as SQL has it: collections as JSON text, true and false as 1 and 0."""
    if value is None or isinstance(value, (str, int, float)):
        return int(value) if isinstance(value, bool) else value
    return _json(value)


def _json(value: Any) -> str:
    return form.encode(value).decode()


def _snapshots(context: Context, column: str | None, value: str) -> Iterator[Snapshot]:
    if column == "entity":
        try:
            snapshot = reads.show(context, value)
        except (NotFound, Refused):
            return
        if str(snapshot.entity) == value and not snapshot.deleted:
            yield snapshot
        return
    try:
        page = lists.query(context, entity_type=value if column == "type" else None, limit=PAGE_MAX)
    except Refused:  # no type is called that
        return
    yield from page


def _entities(context: Context, column: str | None, value: str) -> Iterator[tuple[Cell, ...]]:
    for snapshot in _snapshots(context, column, value):
        ref = snapshot.entity
        yield str(ref), str(ref.id), ref.type, ref.key, snapshot.version, _json(dict(snapshot.fields))


def _field_values(context: Context, column: str | None, value: str) -> Iterator[tuple[Cell, ...]]:
    for snapshot in _snapshots(context, column, value):
        ref, disputed = snapshot.entity, {conflict.field for conflict in snapshot.conflicts}
        for field, origin in snapshot.blame.items():
            stated = snapshot.fields[field]
            yield (
                *(str(ref), ref.type, ref.key, field, _cell(stated), _json(stated)),
                *(str(origin.observation), origin.agent, origin.observed_at, origin.policy, origin.claims),
                *(int(origin.corrected), int(field in disputed)),
            )


def _observations(context: Context, column: str | None, value: str) -> Iterator[tuple[Cell, ...]]:
    with open_reader(context) as reader:
        for stored in reads.stored_after(reader, BEFORE_ALL) if column is None else _stored_about(context, value):
            said, ref = stored.observation, stored.observation.entity
            optional = said.optional
            yield (
                *(str(said.id), stored.position, str(ref), ref.type, ref.key, said.op, said.agent),
                *(said.observed_at, said.valid_from, said.priority, _json(dict(said.fields))),
                *(_cell(optional.get(name)) for name in _OPTIONAL),
            )


def _stored_about(context: Context, entity: str) -> Iterator[Any]:
    try:
        page = lists.observations(context, entity, limit=PAGE_MAX)
    except (NotFound, Refused):
        return
    yield from (stored for stored in page if str(stored.observation.entity) == entity)


_OPTIONAL: Final = ("run", "source", "interpretation", "confidence", "reason")


def _runs(context: Context, column: str | None, value: str) -> Iterator[tuple[Cell, ...]]:
    narrowed = {} if column is None else {column: value}
    try:
        page = runs_page(context, limit=PAGE_MAX, cursor=None, **narrowed)
    except Refused:
        return
    for run in page:
        yield (
            *(run.id, run.agent, run.status, run.query, _cell(run.answer), _cell(run.error), run.subject),
            *(run.principal, run.conversation, run.started_at, run.ended_at, run.duration_ms, run.verdict),
            *(run.counts.decisions, run.counts.tool_calls, run.counts.models, run.counts.reads),
            *(run.input_tokens, run.output_tokens),
        )


def _decisions(context: Context, column: str | None, value: str) -> Iterator[tuple[Cell, ...]]:
    with open_reader(context) as reader:
        through = reader.asof.position
        for entry in (
            reader.view.entries(BEFORE_ALL, through, {DECIDED})
            if column is None
            else entry_index.run_entries(reader.view, value, through)
        ):
            if entry.kind != DECIDED or entry.body is None:
                continue
            body = form.decode(entry.body)
            part = steps.part_of(DECIDED, entry.position, body)
            if isinstance(part, Decision):
                yield (
                    *(_cell(body.get("run")), part.step, entry.position, _cell(body.get("agent")), part.started_at),
                    *(part.stage, _cell(part.chosen), _cell(part.rule), int(part.default)),
                    *(_json(part.evidence), part.rationale),
                )


TABLES: Final[Mapping[str, QueryTable]] = {
    "entities": QueryTable(
        ("entity", "id", "type", "key", "version", "fields"),
        ("entity", "type"),
        _entities,
    ),
    "field_values": QueryTable(
        (
            *("entity", "type", "key", "field", "value", "json", "observation", "agent", "observed_at", "policy"),
            *("claims", "corrected", "conflict"),
        ),
        ("entity", "type"),
        _field_values,
    ),
    "observations": QueryTable(
        (
            *("id", "position", "entity", "type", "key", "op", "agent", "observed_at", "valid_from", "priority"),
            *("fields", *_OPTIONAL),
        ),
        ("entity",),
        _observations,
    ),
    "runs": QueryTable(
        (
            *("id", "agent", "status", "query", "answer", "error", "subject", "principal", "conversation"),
            *("started_at", "ended_at", "duration_ms", "verdict", "decisions", "tool_calls", "models", "reads"),
            *("input_tokens", "output_tokens"),
        ),
        ("conversation", "subject", "agent"),
        _runs,
    ),
    "decisions": QueryTable(
        (
            *("run", "step", "position", "agent", "decided_at", "stage", "chosen", "rule", "is_default"),
            *("evidence", "rationale"),
        ),
        ("run",),
        _decisions,
    ),
}
"""The tables by name."""

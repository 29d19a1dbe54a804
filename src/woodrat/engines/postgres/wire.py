"""Wire: a connection, and how statements go over it: several together, in one round trip.

A cursor of psycopg takes 30 to 60 microseconds of the processor for each statement, and a write has a dozen of them. So
statements are prepared here, and sent and read through psycopg's wrapper of libpq.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.waiting import Ready, Wait

from woodrat.engines.postgres.statements import Column, Part

if TYPE_CHECKING:
    from psycopg import abc
    from psycopg.pq.abc import PGconn, PGresult

    from woodrat.engines.cache import Memories

PLANNED_SIZE: Final = 100
"""Up to twice this size of a log any plan will do."""
_INT8, _BYTEA, _TEXT = 20, 17, 25
_NUMBER: Final = Struct("!q").pack
_BINARY: Final = pq.Format.BINARY
_BAD: Final = pq.ConnStatus.BAD
_FAILED: Final = pq.ExecStatus.FATAL_ERROR
_OUT_OF_PIPELINE: Final = pq.PipelineStatus.OFF
_SKIPPED: Final = pq.ExecStatus.PIPELINE_ABORTED
_SYNCED: Final = pq.ExecStatus.PIPELINE_SYNC
_WITH_ROWS: Final = pq.ExecStatus.TUPLES_OK

Rows = list[tuple[Any, ...]]


Key = tuple[Any, ...]
"""What a question is known by: its statement and values."""


class Command(NamedTuple):
    """One statement with its values; one that is plain text has none."""

    part: Part | str
    values: Mapping[str, Any] | None = None

    @property
    def key(self) -> Key:
        """What it is known by."""
        values = self.values or {}
        return self.part, *(value.data if isinstance(value, Column) else value for value in map(values.get, self.names))

    @property
    def names(self) -> Sequence[str]:
        """The names of its values."""
        return () if isinstance(self.part, str) else self.part.names


Prepared = tuple[Part, tuple[int, ...]]
"""A statement as the server has it: with the types of its values."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection, and what is known of tenants through it while it reads."""

    memories: Memories
    planned_size: int = PLANNED_SIZE
    """The size of the log that its statements were last planned for."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.uses = 0
        """How often it was used."""
        self._statements: dict[Prepared, bytes] = {}
        """Names of the statements that the server has."""
        self._names = 0
        self._owed = 0
        """How often the server will say that it is ready before it answers what is sent next."""
        self._reading: abc.Transformer | None = None

    def exchange(self, commands: Sequence[Command]) -> list[Rows]:
        """Carry out statements in one round trip; return the rows of each, or raise the first error.

        After an error the server skips all statements that follow it.
        """
        try:
            preparing = self._send(commands)
            (*_, results) = self._waited_for(self._owed + 1)
        except BaseException:
            self.close()  # nobody knows what it would answer next
            raise
        return self._read(preparing, results)

    def send(self, command: str) -> None:
        """Send a statement that ends something, and do not wait for its answer; nobody hears of an error."""
        try:
            self._send((Command(command),))
            self._owed += 1
            self.pgconn.flush()
        except psycopg.Error:
            self.close()

    def settle(self) -> None:
        """Wait for what was not waited for, so that psycopg can use the connection."""
        if self._owed:
            try:
                self._waited_for(self._owed)
            except BaseException:
                self.close()
                raise

    def plan_for(self, size: int) -> None:
        """Have statements planned anew once a log has doubled.

        Plans are kept as long as a connection. One that was made while the tables were empty reads all of a tenant's
        rows for each that a batch changes.
        """
        if size >= 2 * self.planned_size:
            self.exchange((Command("DISCARD PLANS"),))
            self.planned_size = size

    def _send(self, commands: Sequence[Command]) -> list[tuple[Prepared, bytes] | None]:
        """Send statements; return for each answer to come which statement it prepares under which name, if any."""
        pgconn, prepared = self.pgconn, self._statements
        if pgconn.pipeline_status == _OUT_OF_PIPELINE:
            pgconn.enter_pipeline_mode()
        preparing: list[tuple[Prepared, bytes] | None] = []
        new: dict[Prepared, bytes] = {}
        for part, values in commands:
            if isinstance(part, str):
                pgconn.send_query_params(part.encode(), None, result_format=_BINARY)
            else:
                types, dumped = _dumped([] if values is None else [values[name] for name in part.names])
                name = prepared.get((part, types)) or new.get((part, types))
                if name is None:
                    self._names += 1
                    name = new[part, types] = b"w%d" % self._names
                    pgconn.send_prepare(name, part.text.encode(), types)
                    preparing.append(((part, types), name))
                pgconn.send_query_prepared(name, dumped, (_BINARY,) * len(dumped), _BINARY)
            preparing.append(None)
        pgconn.pipeline_sync()
        return preparing

    def _waited_for(self, times: int) -> list[list[PGresult]]:
        """Wait until the server was ready so many times; return what it answered each time."""
        results = self.wait(_answers(self.pgconn, times))
        self._owed = 0
        if self.pgconn.status != _BAD:
            self.pgconn.exit_pipeline_mode()
        return results

    def _read(self, preparing: Sequence[tuple[Prepared, bytes] | None], results: Sequence[PGresult]) -> list[Rows]:
        reading = self._reading
        if reading is None:
            reading = self._reading = Transformer(self)
        found: list[Rows] = []
        failed: PGresult | None = None
        for prepares, result in zip(preparing, results, strict=False):  # one that ends the connection is the last
            status = result.status
            if status == _WITH_ROWS and (count := result.ntuples):
                reading.set_pgresult(result, format=_BINARY)
                found.append(reading.load_rows(0, count, tuple))
            elif status == _FAILED:
                failed = failed or result
            elif status == _SKIPPED:
                pass
            elif prepares is None:
                found.append([])
            else:
                self._statements[prepares[0]] = prepares[1]
        if failed is not None:
            raise error_from_result(failed)
        return found


def _dumped(values: Iterable[Any]) -> tuple[tuple[int, ...], list[bytes | None]]:
    """Return the types of values, and the values in binary form."""
    types: list[int] = []
    dumped: list[bytes | None] = []
    for value in values:
        if isinstance(value, str):
            types.append(_TEXT)
            dumped.append(value.encode())
        elif isinstance(value, int):
            types.append(_INT8)
            dumped.append(_NUMBER(value))
        elif isinstance(value, bytes):
            types.append(_BYTEA)
            dumped.append(value)
        elif isinstance(value, Column):
            types.append(value.oid)
            dumped.append(value.data)
        else:
            assert value is None, "values are text, numbers, bytes, or columns of them"
            types.append(0)
            dumped.append(None)
    return tuple(types), dumped


def _answers(pgconn: PGconn, times: int) -> Generator[Wait, Ready | int, list[list[PGresult]]]:
    """Send what is left and receive answers until the server was ready so many times."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    found: list[list[PGresult]] = [[]]
    while True:
        try:
            while pgconn.is_busy():
                yield Wait.R
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                if pgconn.status == _BAD:
                    raise psycopg.OperationalError("the server closed the connection")
                continue  # the next statement's answer follows
        except psycopg.OperationalError:
            if any(result.status == _FAILED for result in found[-1]):
                return found  # it said why
            raise
        if result.status != _SYNCED:
            found[-1].append(result)
        elif len(found) == times:
            return found
        else:
            found.append([])

"""Round trips: how often a process waits for a PostgreSQL server, and what it asked before, by what libpq traces."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Any

import psycopg

from woodrat.engines.postgres.wire import Command, Connection, Rows

_PARSE = re.compile(r'^F\t\d+\tParse\t "(\w*)" "(.*)" \d', re.DOTALL)
_BIND = re.compile(r'^F\t\d+\tBind\t "\w*" "(\w*)"')
_QUERY = re.compile(r'^F\t\d+\tQuery\t "(.*)"$', re.DOTALL)


def cut_commit(monkeypatch: Any, until: Callable[[], object] | None) -> list[bool]:
    """Have the connection of the next commit cut, before it arrives or, with `until`, once that has happened.

    Return a list that is not empty once it was cut.
    """
    exchange, cut = Connection.exchange, list[bool]()

    def cutting(self: Connection, commands: Sequence[Command]) -> list[Rows]:
        if cut or not commands or commands[-1] != Command("COMMIT"):
            return exchange(self, commands)
        cut.append(True)
        if until is not None:
            self._send(commands)
            while self.pgconn.flush():
                pass
            until()
        self.close()
        raise psycopg.OperationalError("the connection was cut")

    monkeypatch.setattr(Connection, "exchange", cutting)
    return cut


class RoundTrips:
    """Counts what all connections of engines wait for from now on; `install` it with pytest's monkeypatch."""

    def __init__(self) -> None:
        self._traces: list[_Trace] = []

    def install(self, monkeypatch: Any) -> RoundTrips:
        """Have every connection that is opened from now on traced."""
        connect = Connection.connect.__func__  # type: ignore[attr-defined]

        def traced(cls: type[Connection], *given: Any, **options: Any) -> Any:
            connection = connect(cls, *given, **options)
            trace = tempfile.TemporaryFile()  # noqa: SIM115 - it is read as long as the connection lasts
            connection.pgconn.trace(trace.fileno())
            connection.pgconn.set_trace_flags(psycopg.pq.Trace.SUPPRESS_TIMESTAMPS)
            self._traces.append(_Trace(trace))
            return connection

        monkeypatch.setattr(Connection, "connect", classmethod(traced))
        return self

    def clear(self) -> None:
        """Forget what was counted."""
        self.taken()

    def taken(self) -> list[list[str]]:
        """Return for each round trip since this was last asked the statements that were sent before it.

        A round trip is a wait that ends with the server being ready. What is sent and not waited for, such as the end
        of a read, counts with the next wait.
        """
        found: list[list[str]] = []
        ctypes.CDLL(None).fflush(None)  # libpq's traces are files of C
        for trace in self._traces:
            names, was_ready = trace.names, False
            sent: list[str] = []
            for message in trace.messages():
                if message.startswith("F"):
                    if was_ready:
                        found.append(sent)
                        sent, was_ready = [], False
                    if (parse := _PARSE.match(message)) is not None:
                        names[parse[1]] = parse[2]
                    elif (bind := _BIND.match(message)) is not None:
                        sent.append(names.get(bind[1], bind[1]))
                    elif (query := _QUERY.match(message)) is not None:
                        sent.append(query[1])
                elif "\tReadyForQuery" in message:
                    was_ready = True
            if was_ready:
                found.append(sent)
        return found


class _Trace:
    """What one connection sent and was sent."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._read = file, 0
        self.names: dict[str, str] = {}
        """Statements by the names they are prepared under."""

    def messages(self) -> list[str]:
        """Return the messages since the last time."""
        size = os.fstat(self._file.fileno()).st_size
        data = os.pread(self._file.fileno(), size - self._read, self._read)  # libpq writes at the file's own place
        self._read = size
        return re.split(r"\n(?=[FB]\t)", data.decode(errors="replace").strip("\n")) if data else []

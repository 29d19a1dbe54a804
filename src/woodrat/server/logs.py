"""Logs: the events of the server, one line of JSON each. They carry ids, never contents."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any, Final

import orjson

ERROR: Final = logging.ERROR
LEVELS: Final = ("debug", "info", "warning", "error")
NAME: Final = "woodrat.http"
OTHERS: Final = ("mcp",)
"""Loggers of libraries that answer some requests; their errors are reported in our format."""
_LOG = logging.getLogger(NAME)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time, level, event and its details."""

    def format(self, record: logging.LogRecord) -> str:
        from datetime import UTC, datetime

        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "event": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__  # no more of it, as its message may hold contents
        return orjson.dumps({**told, **getattr(record, "told", {})}).decode()


def configure(level: str) -> None:
    """Write the server's log to standard error, from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for log in (_LOG, *map(logging.getLogger, OTHERS)):
        log.handlers = [handler]
        log.propagate = False
        log.setLevel(max(logging.getLevelName(level.upper()), logging.NOTSET if log is _LOG else logging.WARNING))


def is_enabled(level: int = logging.INFO) -> bool:
    """Return True if events of this level are logged."""
    return _LOG.isEnabledFor(level)


def event(name: str, level: int = logging.INFO, **told: Any) -> None:
    """Log an event with ids and numbers, never with data of callers."""
    if _LOG.isEnabledFor(level):
        _LOG.log(level, name, extra={"told": told})


def failed(error: BaseException, **told: Any) -> None:
    """Log a failure of the server itself: class and place of the error, without its message, which may hold data."""
    places = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-8:]]
    event("failed", logging.ERROR, error=type(error).__name__, where=places, **told)

"""Peers: what others take to keep the same values durably, where they are installed. Their rows have no goal.

LangGraph's SQLite saver keeps the state of a graph after each step. It records neither who said what nor when, proves
nothing and merges nothing: how close a single store comes to it is what all of that costs.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import UUID

from bench.raw import page_bytes
from bench.rows import Row
from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.engines.sqlite.connection import WAL_PAGES

SAVER = "langgraph.checkpoint.sqlite"


def rows() -> list[Row]:
    """Return the rows of those peers that are installed."""
    if not _is_installed(SAVER):
        return []
    return [Row("single-langgraph", "one put of LangGraph's SQLite saver / one raw commit", None, _langgraph)]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a package that it stands in is not there
        return False


def _langgraph(stage: Stage) -> Figure:
    """One checkpoint that holds the fields of a record, in a file with the settings of a ledger."""
    pair = stage.few
    path = stage.folder / "langgraph.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        for setting in (
            f"page_size = {page_bytes(pair.path)}",
            "journal_mode = WAL",
            "synchronous = FULL",
            f"wal_autocheckpoint = {WAL_PAGES}",
        ):
            connection.execute(f"PRAGMA {setting}")
        saver = import_module(SAVER).SqliteSaver(connection)
        saver.setup()
        _grow(connection, page_bytes(pair.path))
        numbers = iter(range(1, 1_000_000))

        def put(fields: dict[str, Any], observed_at: str) -> None:
            thread = {"configurable": {"thread_id": str(fields.get("id") or fields["email"]), "checkpoint_ns": ""}}
            checkpoint = {
                "v": 4,
                "id": str(UUID(int=next(numbers))),
                "ts": observed_at,
                "channel_values": fields,
                "channel_versions": dict.fromkeys(fields, 1),
                "versions_seen": {},
                "updated_channels": None,
            }
            saver.put(thread, checkpoint, {"source": "loop", "step": 1, "parents": {}}, dict.fromkeys(fields, 1))

        return take_turns(
            pair.said(1, turns=550),
            lambda said: put(said.batch.records[0], said.batch.observed_at),
            lambda said: pair.raw.add(said.rows[0]),
            warm=50,
            seconds=stage.scale.seconds,
        )


def _grow(connection: sqlite3.Connection, size: int) -> None:
    """Grow the write-ahead log to where it is taken over, as on the raw side."""
    connection.execute("CREATE TABLE filling (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    connection.executemany("INSERT INTO filling (body) VALUES (?)", [(bytes(size // 2),)] * (3 * WAL_PAGES))
    connection.commit()

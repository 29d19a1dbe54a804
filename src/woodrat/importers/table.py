"""Tables: rows of a file, one run each or one message each.

A row that has messages in a column is a run. Rows that are messages are runs by the column that names their
conversation, or all of one run without such a column. Any other row with a question or an answer is a run without
steps. Other columns are kept as attributes.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault
from woodrat.importers.format import Format
from woodrat.importers.wrappers import parsed
from woodrat.runs.rewards import REWARDS, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed

CELL_CHARACTERS_MAX: Final = 64 * 1_048_576
"""Longest cell of a CSV file."""
GROUPS: Final = (
    *("run_id", "conversation_id", "session_id", "thread_id", "trace_id", "dialog_id", "dialogue_id", "chat_id"),
    *("conversation", "session", "thread", "episode", "run"),
)
"""Columns that name the conversation a message is part of."""
_QUESTIONS: Final = ("query", "question", "prompt", "input")
_ANSWERS: Final = ("answer", "response", "completion", "output")
_VERDICTS: Final = frozenset({"reward", "score", "success", "passed", "correct", "is_correct", "resolved"})
COLUMNS: Final = frozenset(
    {*GROUPS, *_QUESTIONS, *_ANSWERS, *REWARDS, "messages", "role", "content", "traj", "history"}
)
"""Columns that identify a table of recordings."""


def rows(text: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | tuple[Fault, ...]]]:
    """Yield the rows of CSV by their numbers, the header being row 1; or the fault of one."""
    reader = csv.reader(text, strict=True)
    header = [name.removeprefix("\ufeff") for name in next(reader, [])]
    named = [
        Fault(f"column {number}", f"the name {name!r} is empty or appears twice", "Give each column a name of its own.")
        for number, name in enumerate(header, 1)
        if not name or name in header[: number - 1]
    ]
    if named:
        yield 0, tuple(named)
    for number, row in enumerate(reader, 2):
        if row and len(row) != len(header):
            problem = f"it has {len(row)} cells, and the header has {len(header)}"
            yield number, (Fault("", problem, "Send a cell for every column; was the file cut off?"),)
        elif row:
            yield number, {name: _cell(name, cell) for name, cell in zip(header, row, strict=True) if cell != ""}


def _cell(name: str, cell: str) -> Any:
    if name in REWARDS:
        read = verdict(cell, binary=True)
        return read["score"] if read is not None and "score" in read else cell
    return parsed(cell)


def conversations(rows: Sequence[Placed]) -> list[tuple[dict[str, Any], str]]:
    """Return documents with messages, one for each conversation that rows are part of, with the place of the first."""
    column = next((name for name in GROUPS if all(isinstance(row.get(name), str | int) for row, _ in rows)), None)
    if column is None:
        return [({"messages": [row for row, _ in rows]}, "")]
    found: dict[str, list[Placed]] = {}
    for row, path in rows:
        found.setdefault(str(row[column]), []).append((row, path))
    made = []
    for name, listed in found.items():
        said = [{key: value for key, value in row.items() if key not in (column, *REWARDS)} for row, _ in listed]
        about = {key: row[key] for row, _ in listed for key in REWARDS if row.get(key) is not None}
        made.append(({"id": name, "messages": said, **about}, listed[0][1]))
    return made


def _is_answer_row(item: Mapping[str, Any]) -> bool:
    """Return True if a row has a question and an answer but no steps; a run in Woodrat's format has a `query`."""
    if {"steps", "kind", "messages"} & item.keys() or ("query" in item and not _VERDICTS & item.keys()):
        return False
    return any(isinstance(item.get(name), str) for name in _QUESTIONS) and any(name in item for name in _ANSWERS)


def _answer_run(row: dict[str, Any]) -> dict[str, Any]:
    """Return the run of a row with a question and an answer."""
    asked = next(name for name in _QUESTIONS if isinstance(row.get(name), str))
    answered = next(name for name in _ANSWERS if name in row)
    rest = {name: value for name, value in row.items() if name not in (asked, answered, "id")}
    own = {"id": row["id"]} if isinstance(row.get("id"), str) else {}
    return {**own, "query": row[asked], "answer": row[answered], "steps": [], "attributes": rest}


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.trajectories += ((_answer_run(item), path) for item, path in items)


FORMATS: Final = (Format("question and answer", _is_answer_row, _read),)

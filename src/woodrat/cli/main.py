"""Main: from the words typed to an exit code. Nothing a user can do ends in a traceback."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, TextIO

from woodrat import __version__
from woodrat.cli.command import CommandResult, Invocation
from woodrat.cli.fast_parser import command_of, match
from woodrat.errors import Fault, Refused, Unavailable, WoodratError
from woodrat.server import wire

NOTHING_CHANGED = "Nothing was changed."
NOTHING_DONE = "Nothing was done."
WHOLE_OR_NOT = (
    "Acknowledged writes are safe. An unacknowledged write is there whole or not at all: check with `woodrat log`, "
    "or send it again with the same --idempotency-key."
)
CSV_VALUE, CSV_FIELDS = "value", "fields"
"""The column of a list of plain values, and the key whose members get columns of their own."""
GARBAGE_OBJECTS = 50_000
"""Threshold of the garbage collector during a command; Python's default is 700."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    if arguments is None:
        return _alone(sys.argv[1:])
    words = list(arguments)
    _open_streams()
    try:
        try:
            code = _run(words)
        finally:
            # Here and not at the interpreter's end, where a reader that went away would show as a traceback.
            sys.stdout.flush()
        return code
    except WoodratError as error:
        return _print_error(error, words)
    except BrokenPipeError:
        _forget_output()
        return wire.PIPE_CLOSED
    except KeyboardInterrupt:
        _print(f"\nInterrupted. {NOTHING_DONE}")
        return wire.INTERRUPTED
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else "input or output"
        return _print_error(
            Unavailable(
                f"{name}: {error.strerror or error}. What was acknowledged is safe. "
                "Fix it and send the same call again.",
                {"path": name},
            ),
            words,
        )


def _alone(words: Sequence[str]) -> int:
    """Run the one command of a process with rare garbage collection, which otherwise takes a tenth of its time."""
    gc.set_threshold(GARBAGE_OBJECTS)
    try:
        return main(words)
    finally:
        gc.freeze()  # the process ends now, so the rest needs no cleanup


def _open_streams() -> None:
    """Make printing safe: closed streams are redirected to nowhere, unencodable characters are escaped."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _run(words: list[str]) -> int:
    if "--version" in words and not command_of(words):
        print(f"woodrat {__version__}")
        return wire.DONE
    given: Any = match(words)
    if given is None:
        from woodrat.cli import parser

        try:
            given = parser.parse(words)
        except SystemExit as exit:  # --help
            return exit.code if isinstance(exit.code, int) else wire.DONE
        if given.command is None:
            getattr(given, "group", parser.build()).print_help(sys.stderr)
            return wire.EXIT_CODES[Refused.code]
    module, _, function = given.command.run.partition(":")
    follows = False
    if given.output == "csv" and not given.command.rows:
        remedy = "Use -o json, or -o table for people."
        problem = "its answer is neither a list nor a record, so it cannot be CSV"
        raise Refused([Fault("--output", problem, remedy)], NOTHING_DONE)
    try:
        with Invocation(given) as call:
            call.prepare()
            answer: CommandResult = getattr(import_module(f"woodrat.cli.{module}"), function)(call)
            follows = answer.follows
            _answer(answer, given.output, sys.stdout, call)
            return answer.code
    except KeyboardInterrupt as interrupt:
        if follows:
            return wire.DONE
        # a command that tracks its own progress reports it itself
        outcome = interrupt.args[0] if interrupt.args else NOTHING_CHANGED if given.command.reads else WHOLE_OR_NOT
        _print(f"\nInterrupted. {outcome}")
        return wire.INTERRUPTED


def _answer(answer: CommandResult, output: str | None, stream: TextIO, call: Invocation) -> None:
    """Print an answer: for people on a terminal, as JSON when piped, unless another format is requested.

    The requested moment is stated with it: below a table, and beside other output.
    """
    if answer.plain:
        output = "table"
    elif output is None:
        output = "table" if stream.isatty() else "jsonl" if answer.streams else "json"
    if output == "table":
        from woodrat.cli.tables import DIM, YELLOW, Paper, match_line

        paper = Paper(stream)
        for match in call.matches:
            paper.line(match_line(match), YELLOW)
        answer.text(paper)
        if not answer.plain and call.moment is not None:
            paper.line(f"({call.moment})", DIM)
        return
    if call.is_spoken and call.moment is not None:
        _print(f"({call.moment})")
    lines = (answer.json,) if answer.lines is None else answer.lines
    if output == "csv":
        _write_csv(lines, answer.columns, stream, flush=answer.follows)
        if answer.note is not None:
            stream.flush()
            _print(answer.note)
    elif output == "jsonl":
        for line in lines:
            stream.write(_json(line, stream) + "\n")
            if answer.follows:
                stream.flush()
        if answer.note is not None:
            stream.flush()
            _print(answer.note)
    else:
        whole: Any = list(lines) if answer.streams else answer.json
        if isinstance(whole, Mapping):
            whole = {**call.stated, **whole}
        stream.write(_json(whole, stream, indented=True) + "\n")


def _json(value: Any, stream: TextIO, *, indented: bool = False) -> str:
    """Return a value as JSON that a stream can take."""
    utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
    if utf8 and indented:
        import orjson

        try:
            return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
        except TypeError:
            pass  # such as half a surrogate pair in the user's input
    import json

    return json.dumps(value, ensure_ascii=not utf8, indent=2 if indented else None)


def _write_csv(rows: Iterable[Any], columns: Sequence[str] | None, stream: TextIO, *, flush: bool) -> None:
    """Print rows under their columns: the declared ones, else every key of any row, in order of appearance."""
    import csv

    if columns is None:
        rows = [_row(row) for row in rows]
        columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(item) for name, item in _row(row).items()})
        if flush:
            stream.flush()


def _row(row: Any) -> Mapping[str, Any]:
    """Return the cells of a row by column; each field of an entity has its own column, `fields.city`."""
    if not isinstance(row, Mapping):
        return {CSV_VALUE: row}
    if not isinstance(row.get(CSV_FIELDS), Mapping):
        return row
    flat: dict[str, Any] = {}
    for name, item in row.items():
        own = {f"{CSV_FIELDS}.{field}": value for field, value in item.items()} if name == CSV_FIELDS else {name: item}
        flat.update(own)
    return flat


def _cell(item: Any) -> Any:
    """Return a value for a cell: text unchanged, nothing for null, everything else as JSON."""
    if item is None or isinstance(item, str):
        return item
    import json

    return json.dumps(item, ensure_ascii=False)


def _print_error(error: WoodratError, words: list[str]) -> int:
    """Print an error in the requested format; return its exit code."""
    see = f"woodrat {command_of(words)}".strip() + " --help"
    if _asks_for_json(words):
        import json

        _print(json.dumps({**error.to_json(), "help": see}))
    else:
        from woodrat.cli.tables import clean

        _print("\n".join(clean(line) for line in f"{error}\nSee: {see}".split("\n")))
    return wire.exit_code(error)


def _asks_for_json(words: list[str]) -> bool:
    """Return True if `-o json` or `-o jsonl` was typed, even on an invalid command line."""
    following = dict(pairwise(words))
    asked = {following.get("-o", ""), following.get("--output", "")}
    asked |= {word.removeprefix(start) for word in words for start in ("-o", "--output=") if word.startswith(start)}
    return not asked.isdisjoint({"json", "jsonl"})


def _print(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # the reader has gone


def _forget_output() -> None:
    """Discard buffered output, so that the interpreter exits quietly."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass

"""Inputs: records, schemas and single values, typed or read from files."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.cli.progress import bar
from woodrat.cli.verbs.declaration import FILE, is_pairs
from woodrat.errors import Fault, Refused, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from woodrat.api.verb import Parameter

NOTHING_WRITTEN = "Nothing was written."
INPUT_BYTES_MAX = 256 * 1_048_576
"""Longest input that is read into memory at once."""
MANY_LINES = 10_000
"""Number of lines from which reading them shows progress."""
LINES_SUFFIXES = (".jsonl", ".ndjson")
"""Suffixes of files with one record per line, whatever their first line."""


def document(text: str | bytes, name: str, outcome: str = NOTHING_WRITTEN) -> Json:
    """Return the value of JSON text; faults name where it came from."""
    try:
        return form.parse(text)
    except Refused as refusal:
        raise Refused((fault.under(name) for fault in refusal.faults), outcome) from None


def read(path: str, what: str, outcome: str = NOTHING_WRITTEN) -> bytes:
    """Return the bytes of a file, or of standard input for `-`."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(INPUT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, what, error, outcome) from error
    if len(data) > INPUT_BYTES_MAX:
        problem = f"{shown(path)} has more than {INPUT_BYTES_MAX} bytes"
        raise Refused([Fault(what, problem, "Send it in several calls.")], outcome)
    return data


def unreadable(path: str, what: str, error: Exception, outcome: str = NOTHING_WRITTEN) -> Refused:
    """Return the refusal of a file that cannot be read."""
    reason = getattr(error, "strerror", None) or error
    problem = f"cannot read {shown(path)}: {reason}"
    return Refused([Fault(what, problem, "Name a file that can be read, or - for standard input.")], outcome)


def records(path: str, what: str, outcome: str) -> Json:
    """Return the objects of a file: a JSON list, one JSON object, or one object a line."""
    data = read(path, what, outcome)
    name = "standard input" if path == "-" else path
    if not data.strip():
        remedy = "Send a JSON list of records, or one record per line."
        raise Refused([Fault(name, "it is empty", remedy)], outcome)
    if path.endswith(LINES_SUFFIXES) or _is_lines(data):
        return _lines(data, name, outcome)
    return document(data, name, outcome)


def recording(path: str, what: str, outcome: str) -> Any:
    """Return a file of recorded runs as one document."""
    from pathlib import Path

    from woodrat.importers import files

    check_readable([] if path == "-" else [path], what, outcome)
    try:
        return files.one_document(sys.stdin.buffer if path == "-" else Path(path))
    except Refused as refusal:
        raise Refused(refusal.faults, outcome) from None


def check_readable(paths: Iterable[str], what: str, outcome: str) -> None:
    """Raise `Refused` for all files that cannot be opened, before any other work."""
    faults: list[Fault] = []
    for path in paths:
        try:
            if os.path.isfile(path) or not os.path.exists(path):  # a pipe can be opened once
                open(path, "rb").close()
        except (OSError, ValueError) as error:
            faults += unreadable(path, what, error, outcome).faults
    if faults:
        raise Refused(faults, outcome)


def _is_lines(data: bytes) -> bool:
    """Return True if the first object is followed by other objects on lines of their own."""
    start = data.lstrip()
    first, _, rest = start.partition(b"\n")
    if not start.startswith(b"{") or not rest.strip():
        return False
    try:
        form.parse(first)
    except Refused:
        return False
    return True


def _lines(data: bytes, name: str, outcome: str) -> Json:
    found: list[Json] = []
    faults: list[Fault] = []
    lines = data.split(b"\n")
    with bar("Reading", "lines") if len(lines) >= MANY_LINES else nullcontext() as tell:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    found.append(form.parse(line.strip(b"\r")))
                except Refused as refusal:
                    faults += [on_line(fault, name, number) for fault in refusal.faults]
            if tell is not None:
                tell(number, len(lines))
    if faults:
        raise Refused(faults, outcome)
    return found


def on_line(fault: Fault, name: str, number: int) -> Fault:
    """Return a fault of one line with the file's line number: to the parser every line is line 1."""
    if "line 1 " in fault.problem:
        return Fault(f"{name}{fault.path}", fault.problem.replace("line 1 ", f"line {number} ", 1), fault.remedy)
    return Fault(f"{name} line {number}{fault.path}", fault.problem, fault.remedy)


def single(text: str, where: str) -> Json:
    """Return a value typed on the command line: JSON where it is JSON, else the text itself.

    An array or object that JSON allows and Woodrat refuses (a duplicate key, say) is an error, not text.
    """
    try:
        return form.parse(text)
    except Refused as refusal:
        import json

        try:
            meant = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(meant, dict | list):
            raise Refused(fault.under(where) for fault in refusal.faults) from None
        return text


def pairs(given: Iterable[str], option: str) -> list[tuple[str, Json]]:
    """Return `name=value` arguments, every fault at once."""
    found: list[tuple[str, Json]] = []
    faults: list[Fault] = []
    for text in given:
        name, equals, rest = text.partition("=")
        if not equals or not name:
            remedy = f"Write {option} name=value, such as {option} city=Girona."
            faults.append(Fault(option, f"expected name=value, got {shown(text)}", remedy))
            continue
        try:
            found.append((name, single(rest, f"{option} {name}")))
        except Refused as refusal:
            faults += refusal.faults
    if faults:
        raise Refused(faults)
    return found


def once(given: Iterable[str], option: str) -> dict[str, Any]:
    """Return `name=value` arguments as a mapping; each name at most once."""
    found: dict[str, Any] = {}
    for name, item in pairs(given, option):
        if name in found:
            problem = f"{name} is set twice"
            raise Refused([Fault(option, problem, "Set each field once; a list is one value, such as tags='[1, 2]'.")])
        found[name] = item
    return found


def several(given: Iterable[str], option: str) -> dict[str, list[Any]]:
    """Return `name=value` arguments as lists; names may repeat."""
    found: dict[str, list[Any]] = {}
    for name, item in pairs(given, option):
        found.setdefault(name, []).append(item)
    return found


def value_of(parameter: Parameter, typed: Any, option: str, outcome: str) -> Any:
    """Return the typed value of a verb's parameter, as the library takes it."""
    schema, metavar = parameter.kind.schema, parameter.kind.metavar
    if is_pairs(schema, metavar):
        return several(typed, option) if "additionalProperties" in schema else once(typed, option)
    if metavar == FILE:
        return document(read(typed, option, outcome), option, outcome)
    return single(typed, option) if not schema else typed


def function(text: str, option: str) -> Callable[..., Any]:
    """Return the function that `module:function` names; modules of the working directory are found too."""
    from importlib import import_module

    module, colon, name = text.partition(":")
    if not module or not colon or not name:
        problem = f'expected MODULE:FUNCTION, got "{text}"'
        raise Refused([Fault(option, problem, "Name the module as in an import, a colon, and the function.")])
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        problem = f'module {error.name}, needed for "{text}", does not exist'
        raise Refused([Fault(option, problem, "Run it in a folder from which the module can be imported.")]) from error
    except AttributeError as error:
        raise Refused([Fault(option, f"{error}", "Name a function of that module.")]) from error
    if not callable(found):
        raise Refused([Fault(option, f'"{text}" is not a function', "Name the function that receives the run.")])
    return cast("Callable[..., Any]", found)

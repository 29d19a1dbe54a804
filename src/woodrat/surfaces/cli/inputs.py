"""Inputs: records, schemas and single values as they are typed or kept in files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, shown

INPUT_BYTES_MAX = 256 * 1_048_576
"""Longest input that is read into memory at once."""
LINES_SUFFIXES = (".jsonl", ".ndjson")
"""Names of files that hold one record a line, whatever their first line looks like."""


def document(text: str | bytes, name: str, outcome: str = "Nothing was written.") -> Json:
    """Return the value of JSON text; faults name where it came from."""
    try:
        return form.parse(text)
    except Refused as refusal:
        raise Refused((fault.under(name) for fault in refusal.faults), outcome) from None


def read(path: str, what: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(INPUT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot read {shown(path)}: {reason}"
        raise Refused([Fault(what, problem, "Name a file that can be read, or - for standard input.")]) from error
    if len(data) > INPUT_BYTES_MAX:
        problem = f"{shown(path)} has more than {INPUT_BYTES_MAX} bytes"
        raise Refused([Fault(what, problem, "Send it in several calls.")])
    return data


def records(path: str) -> Json:
    """Return the records of a file: a JSON list, one JSON object, or one object a line."""
    data = read(path, "--file")
    name = "standard input" if path == "-" else path
    if not data.strip():
        raise Refused([Fault(name, "there is nothing in it", "Send a JSON list of records, or one record a line.")])
    if path.endswith(LINES_SUFFIXES) or _is_lines(data):
        return _lines(data, name)
    return document(data, name)


def _is_lines(data: bytes) -> bool:
    """Return whether data that starts with an object goes on with further ones on lines of their own."""
    start = data.lstrip()
    first, _, rest = start.partition(b"\n")
    if not start.startswith(b"{") or not rest.strip():
        return False
    try:
        form.parse(first)
    except Refused:
        return False
    return True


def _lines(data: bytes, name: str) -> Json:
    found: list[Json] = []
    faults: list[Fault] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                found.append(form.parse(line.strip(b"\r")))
            except Refused as refusal:
                # Every line is line 1 to the parser; the number of the file's own line is what helps.
                faults += [
                    Fault(f"{name}{f.path}", f.problem.replace("line 1 ", f"line {number} ", 1), f.remedy)
                    if "line 1 " in f.problem
                    else Fault(f"{name} line {number}{f.path}", f.problem, f.remedy)
                    for f in refusal.faults
                ]
    if faults:
        raise Refused(faults)
    return found


def single(text: str, where: str) -> Json:
    """Return a value typed on the command line: JSON where it is JSON, else the text itself.

    An array or object that JSON has and we do not take (a key twice, say) is refused, not taken for text.
    """
    try:
        return form.parse(text)
    except Refused as refusal:
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
    """Return `name=value` arguments as a mapping; a name may come once."""
    found: dict[str, Any] = {}
    for name, item in pairs(given, option):
        if name in found:
            problem = f"{name} is given twice"
            raise Refused([Fault(option, problem, "Give each field once; a list is one value, such as tags='[1, 2]'.")])
        found[name] = item
    return found


def several(given: Iterable[str], option: str) -> dict[str, list[Any]]:
    """Return `name=value` arguments as lists; a name may come again."""
    found: dict[str, list[Any]] = {}
    for name, item in pairs(given, option):
        found.setdefault(name, []).append(item)
    return found

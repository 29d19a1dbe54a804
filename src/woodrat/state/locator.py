"""Locator: the place in its source where a statement was read, and the words there.

A locator has any of `page`, `line` with `end_line`, `pointer` and `quote`. Its target can be shown for sources that are
text (lines, quotes) or JSON (pointers); for any other source it is stored and shown unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.errors import Fault, pointer_part, shown

QUOTE_BYTES_MAX: Final = 4_096
"""Longest quote, in UTF-8 bytes."""
POINTER_BYTES_MAX: Final = 4_096
"""Longest JSON Pointer, in UTF-8 bytes."""
EXCERPT_CHARACTERS_MAX: Final = 500
"""Longest excerpt of a source beside a value."""
CONTENT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest source that is searched for the target of a locator."""

_NUMBERS: Final = ("page", "line", "end_line")
_PARTS: Final = frozenset({*_NUMBERS, "pointer", "quote"})
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


def faults(value: object, path: str) -> list[Fault]:
    """Return everything wrong with a locator."""
    known = "page, line, end_line, pointer and quote"
    if not isinstance(value, dict):
        problem = f"expected an object, got {shown(value)}"
        return [Fault(path, problem, f'Send an object such as {{"page": 3}}, with any of {known}.')]
    if not value:
        return [Fault(path, "empty", f"Send any of {known}, or leave it out.")]
    found = [
        Fault(f"{path}/{pointer_part(str(key))}", "unknown part of a locator", f"Use {known}.")
        for key in sorted(map(str, value.keys() - _PARTS))
    ]
    for name in _NUMBERS:
        number = value.get(name, 1)
        if type(number) is not int or not 1 <= number <= form.INTEGER_MAX:
            found.append(Fault(f"{path}/{name}", f"got {shown(number)}", "Send a whole number, counted from 1."))
    first, last = value.get("line"), value.get("end_line")
    if "end_line" in value and "line" not in value:
        found.append(Fault(f"{path}/end_line", "the source has no line", "Send the first line as line."))
    elif type(first) is int and type(last) is int and last < first:
        problem = f"{last} is before line {first}"
        found.append(Fault(f"{path}/end_line", problem, "Send the last line, at or after the first."))
    for name, least, most in (("pointer", 0, POINTER_BYTES_MAX), ("quote", 1, QUOTE_BYTES_MAX)):
        if name in value:
            found += _text_faults(value[name], f"{path}/{name}", least, most)
    pointer = value.get("pointer")
    if isinstance(pointer, str) and not _POINTER.fullmatch(pointer):
        remedy = "Send a JSON Pointer (RFC 6901) such as /items/0/price."
        found.append(Fault(f"{path}/pointer", f"{shown(pointer)} is not a JSON Pointer", remedy))
    return found


def _text_faults(value: object, path: str, least: int, most: int) -> list[Fault]:
    if not isinstance(value, str):
        return [Fault(path, f"expected text, got {shown(value)}", f"Send text of {least} to {most} bytes.")]
    found = form.faults(value, path)
    if not found and not least <= len(value.encode()) <= most:
        problem = f"it has {len(value.encode())} bytes"
        found = [Fault(path, problem, f"Send text of {least} to {most} bytes.")]
    return found


class Content:
    """A source for locators: as text with lines and as JSON, if it is either."""

    def __init__(self, content: bytes) -> None:
        self.text: str | None = None
        """The source as text; `None` for bytes that are no text, or too many to look through."""
        if len(content) <= CONTENT_BYTES_MAX:
            try:
                self.text = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                self.text = None
        if self.text is not None and "\0" in self.text:
            self.text = None
        self._lines: list[str] | None = None
        self._json: tuple[Any] | None = None
        self._parsed = False

    @property
    def lines(self) -> list[str]:
        """Return the lines of a text; a final line end adds no empty line."""
        if self._lines is None:
            found = _LINE_END.split(self.text or "")
            self._lines = found[:-1] if len(found) > 1 and not found[-1] else found
        return self._lines

    @property
    def json(self) -> tuple[Any] | None:
        """Return the JSON value of a text, in a tuple; `None` if it is not JSON."""
        if not self._parsed:
            self._parsed = True
            if self.text is not None:
                try:
                    self._json = (json.loads(self.text),)
                except (ValueError, RecursionError):
                    self._json = None
        return self._json


def mismatches(locator: Mapping[str, Any], content: Content, path: str) -> list[Fault]:
    """Return the parts of a locator that its source lacks, if that can be checked."""
    found: list[Fault] = []
    if content.text is None:
        return found
    last = locator.get("end_line", locator.get("line"))
    if last is not None and last > len(content.lines):
        name = "end_line" if "end_line" in locator else "line"
        problem = f"the source has {len(content.lines)} lines, and {last} is past the last"
        found.append(Fault(f"{path}/{name}", problem, "Count lines from 1, as the source has them."))
    if "quote" in locator and locator["quote"] not in content.text:
        problem = f"the source does not contain {shown(locator['quote'])}"
        found.append(Fault(f"{path}/quote", problem, "Copy the words from the source exactly, or leave it out."))
    if "pointer" in locator and content.json is not None and follow(content.json[0], locator["pointer"]) is None:
        problem = f"the source has nothing at {shown(locator['pointer'])}"
        found.append(Fault(f"{path}/pointer", problem, "Point at a value that the source has, such as /items/0."))
    return found


def follow(value: Json, pointer: str) -> tuple[Json] | None:
    """Return the value at a JSON Pointer, in a tuple; `None` if there is none."""
    for part in pointer.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return (value,)


def excerpt(locator: Mapping[str, Any], content: Content) -> str | None:
    """Return the words at a locator, cut at a named length; None if the source cannot show them.

    Lines come first, then the target of a pointer, then the quote if the source has it.
    """
    found: str | None = None
    if content.text is None:
        return None
    first = locator.get("line")
    pointed = None
    if first is not None and first <= len(content.lines):
        found = "\n".join(content.lines[first - 1 : locator.get("end_line", first)])
    elif "pointer" in locator and content.json is not None:
        pointed = follow(content.json[0], locator["pointer"])
    if pointed is not None:
        value = pointed[0]
        found = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if found is None and "quote" in locator and locator["quote"] in content.text:
        found = locator["quote"]
    if found is None or len(found) <= EXCERPT_CHARACTERS_MAX:
        return found
    return found[: EXCERPT_CHARACTERS_MAX - 1] + "…"


def words(locator: Mapping[str, Any]) -> str:
    """Return a locator in a few words, for people."""
    parts = []
    if "page" in locator:
        parts.append(f"page {locator['page']}")
    if "line" in locator:
        last = locator.get("end_line", locator["line"])
        first = locator["line"]
        parts.append(f"line {first}" if last == first else f"lines {first} to {last}")
    if "pointer" in locator:
        parts.append(f"at {locator['pointer'] or 'the whole document'}")
    if "quote" in locator:
        quote = locator["quote"]
        parts.append(f"“{quote if len(quote) <= 60 else quote[:59] + '…'}”")
    return ", ".join(parts)

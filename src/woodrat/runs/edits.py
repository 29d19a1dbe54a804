"""Edits: what a fork changes at one step of a recorded run, by paths into what the step came to.

An edit is a path and a value: `result.score` and 580. The first part of a path names what is edited, which depends on
the kind of step; the rest leads into it as `runs diff` writes paths: `result.items[0].name`, `result["a.b"]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.errors import Fault, shown
from woodrat.runs import values

if TYPE_CHECKING:
    from woodrat.canon.form import Json

    Body = Mapping[str, Any]
    Path = tuple[str | int, ...]

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run.started": ("inputs", "query"),
    "run.tool": ("result", "error"),
    "run.model": ("response", "prompt"),
    "run.read": ("fields",),
}
"""What can be edited at a step of each kind."""

NAMED_MAX: Final = 12
"""How many names an error lists."""

_TOKEN: Final = re.compile(r'\.?([^.\[\]"]+)|\[([0-9]{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')


class Edit(NamedTuple):
    """One change: where, and to what."""

    text: str
    """The path, as the caller wrote it."""
    part: str
    """What is edited: its first part."""
    path: Path
    """Where in it."""
    value: Json


def parse(given: object, faults: list[Fault]) -> tuple[Edit, ...]:
    """Return the edits that a caller states, by path; what is wrong with them goes into `faults`."""
    if not isinstance(given, Mapping) or not given:
        problem = "nothing is edited" if not given else f"expected values by path, got {shown(given)}"
        faults.append(Fault("set", problem, 'Send what to change, such as {"result.score": 580}.'))
        return ()
    found: list[Edit] = []
    for text, value in given.items():
        path = _path(text) if isinstance(text, str) else None
        if path is None or not isinstance(path[0], str):
            remedy = 'Write it as result.score, result.items[0] or result["a.b"].'
            faults.append(Fault(f"set {text}", "it is not a path", remedy))
            continue
        plain = values.plain(value)
        if not values.is_whole(plain):
            faults.append(Fault(f"set {text}", f"got {shown(value)}, which JSON cannot say", "Send a JSON value."))
            continue
        found.append(Edit(text, path[0], path[1:], plain))
    for edit in found:
        around = [each.text for each in found if each is not edit and each.part == edit.part]
        inside = [each for each in found if each is not edit and each.part == edit.part]
        if any(each.path == edit.path[: len(each.path)] for each in inside):
            problem = f"it is inside of what another one sets ({', '.join(around)})"
            faults.append(Fault(f"set {edit.text}", problem, "Set one of the two."))
    return tuple(found)


def names_in(text: str) -> list[str]:
    """Return the names that a path leads through, what is edited left out."""
    return [step for step in (_path(text) or ())[1:] if isinstance(step, str)]


def _path(text: str) -> Path | None:
    found: list[str | int] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or (at == 0 and text[0] == "."):
            return None
        name, index, quoted = token.groups()
        found.append(name if name is not None else int(index) if index is not None else json.loads(quoted))
        at = token.end()
    return tuple(found) or None


def parts_of(kind: str, body: Body) -> dict[str, Json]:
    """Return what can be edited at a recorded step, by name."""
    if kind == "run.read":
        fields = body.get("fields")
        shown_fields = fields.items() if isinstance(fields, dict) and not values.is_mark(fields) else ()
        return {"fields": {name: item.get("value") for name, item in shown_fields if isinstance(item, dict)}}
    names = {"prompt": "messages"}
    return {part: body.get(names.get(part, part)) for part in PARTS.get(kind, ())}


def apply(
    kind: str, body: Body, edits: tuple[Edit, ...], faults: list[Fault]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the parts of a step that change, as they become, and what stood at each path before."""
    known = parts_of(kind, body)
    changed: dict[str, Json] = {}
    before: dict[str, Json] = {}
    for edit in edits:
        if edit.part not in known:
            there = ", ".join(_named(known, part) for part in known)
            problem = f"there is no {shown(edit.part)} at this step"
            faults.append(Fault(f"set {edit.text}", problem, f"It has {there}."))
            continue
        whole = changed.get(edit.part, known[edit.part])
        if edit.part == "prompt" and not edit.path and isinstance(edit.value, str):
            edit = edit._replace(path=_last_words(whole), value=edit.value)
            if not edit.path:
                edit = edit._replace(value=[{"role": "user", "content": edit.value}])
        if edit.path and not values.is_whole(known[edit.part]):
            problem = "what was recorded there was hidden, cut or erased, so the rest of it is not known"
            faults.append(Fault(f"set {edit.text}", problem, f"Set all of it: {edit.part}=…"))
            continue
        if edit.part == "fields" and not edit.path and not isinstance(edit.value, dict):
            faults.append(Fault(f"set {edit.text}", f"got {shown(edit.value)}", "Send values by field."))
            continue
        if edit.part == "inputs" and not edit.path and not isinstance(edit.value, dict):
            faults.append(Fault(f"set {edit.text}", f"got {shown(edit.value)}", "Send values by name."))
            continue
        if edit.part == "query" and not (isinstance(edit.value, str) and not edit.path):
            faults.append(Fault(f"set {edit.text}", f"got {shown(edit.value)}", "Send the question as text."))
            continue
        found, old, problem = _at(whole, edit.path)
        if not found:
            faults.append(Fault(f"set {edit.text}", f"there is no such place: {problem}", "Set one that is there."))
            continue
        before[edit.text] = old
        changed[edit.part] = replaced(whole, edit.path, edit.value)
    return changed, before


def _last_words(messages: Json) -> Path:
    """Return the path to the text of the last message of the user, where there is one."""
    listed = messages if isinstance(messages, list) else []
    for number in range(len(listed) - 1, -1, -1):
        message = listed[number]
        if isinstance(message, dict) and message.get("role") == "user" and isinstance(message.get("content"), str):
            return (number, "content")
    return ()


def _named(known: Mapping[str, Json], part: str) -> str:
    """Return what a part of a step is called, with the names in it."""
    value = known[part]
    if isinstance(value, dict) and value and not values.is_mark(value):
        names = [f"{part}.{name}" for name in list(value)[:NAMED_MAX]]
        return ", ".join(names) + (" …" if len(value) > NAMED_MAX else "")
    return part


def _at(value: Json, path: Path) -> tuple[bool, Json, str]:
    """Return whether a path leads anywhere, to what, and else what is there instead."""
    done = ""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str) and step in value:
            value = value[step]
        elif isinstance(value, list) and str(step).isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False, None, f"{done.lstrip('.') or 'it'} has {_inside(value)}"
        done += f".{step}" if isinstance(step, str) else f"[{step}]"
    return True, value, ""


def _inside(value: Json) -> str:
    if isinstance(value, dict):
        names = ", ".join(list(value)[:NAMED_MAX]) + (" …" if len(value) > NAMED_MAX else "")
        return names or "nothing in it"
    if isinstance(value, list):
        return f"{len(value)} items, counted from 0"
    return f"the value {shown(value)}"


def replaced(value: Any, path: Path, new: Json) -> Any:
    """Return a value with another one at a path that leads somewhere in it."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, list):
        number = int(step)
        return [replaced(item, rest, new) if place == number else item for place, item in enumerate(value)]
    assert isinstance(value, dict)
    return {name: replaced(item, rest, new) if name == step else item for name, item in value.items()}

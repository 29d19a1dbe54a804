"""Change: what differs between two values of two runs, sorted by what it means, and the words for it.

A part that differs is a difference in *behaviour*, unless it is prose in other words (*wording*) or made up anew by
every run and used nowhere (*set aside*).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare import volatile
from woodrat.compare.contrast import Sides, short
from woodrat.compare.value_difference import (
    ADDED,
    CHANGED,
    MOVED,
    REMOVED,
    RENAMED,
    REORDERED,
    RETYPED,
    Difference,
    differences,
    opened,
)
from woodrat.compare.wording import around, reworded
from woodrat.records import dataclass

PATH_CHARACTERS_MAX: Final = 400
"""How much of a path a sentence shows, its end."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The parts in which two values differ, by what they mean."""

    behaviour: tuple[Difference, ...]
    """What may have made a difference, in the order of the first value."""
    wording: tuple[Difference, ...]
    """Prose in other words, and data spelled otherwise."""
    set_aside: tuple[tuple[Difference, str], ...]
    """What every run makes up anew, with its kind."""


NO_CHANGES: Final = Changes((), (), ())


def changes(
    first: Json, second: Json, matters: Callable[[Json, Json], bool], *, prose: bool = True, within: str = ""
) -> Changes:
    """Return in what two values differ; `matters` tells of two volatile values whether a run used either.

    Without `prose` texts are data: what a tool returned counts word for word. `within` is what they stand under.
    """
    behaviour: list[Difference] = []
    wording: list[Difference] = []
    aside: list[tuple[Difference, str]] = []
    for found in differences(first, second):
        name = found.path or within
        kind = _volatile(found, name)
        if kind is not None and (volatile.names_span(name) or not matters(found.first, found.second)):
            aside.append((found, kind))
        elif found.kind == CHANGED and (_spelled_otherwise(found) or (prose and _reworded(found, name))):
            wording.append(found)
        else:
            behaviour.append(found)
    return Changes(tuple(behaviour), tuple(wording), tuple(aside))


def _volatile(found: Difference, name: str) -> str | None:
    if found.kind == CHANGED:
        return volatile.volatile(name, found.first, found.second)
    if found.kind == RENAMED and volatile.steady(found.path) == volatile.steady(found.other_path):
        same = isinstance(found.first, dict | list) or found.first == found.second
        return volatile.RANDOM_ID if same else volatile.volatile(name, found.first, found.second)
    return None


def _reworded(found: Difference, name: str) -> bool:
    return reworded(found.first, found.second, name.rpartition(".")[2].split("[")[0])


def _spelled_otherwise(found: Difference) -> bool:
    """Return whether two texts hold the same data in other spelling."""
    one, two = opened(found.first), opened(found.second)
    return one is not found.first and two is not found.second and not differences(one, two)


# Words


def told(found: Difference, sides: Sides) -> str:
    """Return in words what the two sides have in one place, with the path and both values."""
    path, other = _path(found.path), _path(found.other_path)
    match found.kind:
        case "renamed" | "moved" if _same(found):
            if isinstance(found.first, dict | list):
                return f"{sides.both(path, other)}, with the same content"
            return f"{sides.both(path, other)}, with the same value {short(found.first)}"
        case "added":
            return sides.both(f"no {other}", f"{other}={short(found.second)}")
        case "removed":
            return sides.both(f"{path}={short(found.first)}", f"no {path}")
        case "reordered":
            one, two = _first_apart(found.first, found.second)
            return f"{path or 'the items'} in another order: {sides.both(one, two)}"
    one, two = pair_of(found.first, found.second)
    return sides.both(_named(path, one), _named(other, two))


def part_texts(name: str, found: Difference) -> tuple[str, str]:
    """Return what each side has in one part of a value of this name, with its path."""

    def side(path: str | None, text: str) -> str:
        if path is None:
            return f"{name}: nothing there"
        place = f"{name}{path}" if path.startswith("[") else f"{name}.{path}" if path else name
        return f"{_path(place)}: {text}"

    one, two = pair_of(found.first, found.second)
    return side(found.path, one), side(found.other_path, two)


def pair_of(first: Json, second: Json) -> tuple[str, str]:
    """Return two values that differ in short; of long texts the words that differ, and a type where that tells."""
    if isinstance(first, str) and isinstance(second, str) and first and second:
        return around(first, second)
    one, two = short(first), short(second)
    if one != two:
        return one, two
    if type(first) is not type(second) or not isinstance(first, dict | list):
        return _json(first), _json(second)
    return around(_json(first), _json(second))


def _same(found: Difference) -> bool:
    return type(found.first) is type(found.second) and not differences(found.first, found.second)


def _first_apart(first: Json, second: Json) -> tuple[str, str]:
    if isinstance(first, list) and isinstance(second, list):
        for place, (one, two) in enumerate(zip(first, second, strict=False)):
            if differences(one, two):
                pair = pair_of(one, two)
                return f"[{place}]={pair[0]}", f"[{place}]={pair[1]}"
    return pair_of(first, second)


def _named(path: str, value: str) -> str:
    return f"{path}={value}" if path else value


def _path(path: str | None) -> str:
    found = path or ""
    return found if len(found) <= PATH_CHARACTERS_MAX else f"…{found[-PATH_CHARACTERS_MAX:]}"


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


KINDS: Final = (CHANGED, ADDED, REMOVED, RENAMED, MOVED, REORDERED, RETYPED)
"""What can become of a part."""

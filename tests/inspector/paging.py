"""Whether pages paint from paged reads: what they asked for and were given, against what the API says of each route."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from woodrat.server.openapi import document

ITEMS_MAX: Final = 200
"""Most items that a page of the app asks for at once, and most elements of any list inside an answer."""
ANSWER_BYTES_MAX: Final = 512 * 1024
COUNTS: Final = ("limit", "k", "days")
"""How routes call the number of items they return at most."""


@dataclass(frozen=True)
class Call:
    """One call of a page, with its answer."""

    method: str
    path: str
    """Without the query."""
    asked: Mapping[str, Any]
    """What the query and the body say."""
    answer: Any
    bytes: int


@cache
def _routes() -> list[tuple[str, re.Pattern[str], str, str | None]]:
    """Return every route: its method, what its paths match, its name, and how it calls the number of items."""
    found = []
    for path, methods in document("0")["paths"].items():
        pattern = re.compile("/".join("[^?]+" if part.startswith("{") else re.escape(part) for part in path.split("/")))
        for method, operation in methods.items():
            if method not in ("get", "post"):
                continue
            names = {parameter.get("name") for parameter in operation.get("parameters", ())}
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            names |= set(body.get("properties", ()))
            found.append((method.upper(), pattern, path, next((name for name in COUNTS if name in names), None)))
    # One with fewer parameters is meant where several match: `/v1/log/leaves` is no `/v1/log/{…}`.
    return sorted(found, key=lambda route: (route[2].count("{"), -route[2].count("/")))


def violations(calls: Iterable[Call]) -> Iterator[str]:
    """Yield what no page may do: ask for a list without saying how much of it, or be given more than a page of it."""
    for call in calls:
        known = next((r for r in _routes() if r[0] == call.method and r[1].fullmatch(call.path)), None)
        if known is None:
            yield f"{call.method} {call.path}: the API has no such route"
            continue
        _, _, name, count = known
        most = ITEMS_MAX
        if count is not None:
            if count not in call.asked:
                yield f"{call.method} {name}: asked without `{count}`"
            most = int(call.asked.get(count, ITEMS_MAX))
            if most > ITEMS_MAX:
                yield f"{call.method} {name}: asked for {most} items, more than {ITEMS_MAX}"
        for place, length, is_item_list in _lists(call.answer):
            if length > (most if is_item_list and count == "limit" else ITEMS_MAX):
                yield f"{call.method} {name}: {length} elements in `{place}`"
        if call.bytes > ANSWER_BYTES_MAX:
            yield f"{call.method} {name}: {call.bytes} bytes"


def _lists(answer: Any, place: str = "") -> Iterator[tuple[str, int, bool]]:
    """Yield the lists inside an answer: where, how long, and whether it is the list that was asked for."""
    if isinstance(answer, list):
        yield place, len(answer), place in ("items", "rows", "")
        for item in answer:
            yield from _lists(item, f"{place}[]")
    elif isinstance(answer, dict):
        for name, item in answer.items():
            yield from _lists(item, f"{place}.{name}".lstrip("."))

"""Short ids: the beginning of an id, and the id it is unique for.

People type and see ids cut short. What a read is asked for may be any unique prefix of an id, or `last` for the latest
run; a write needs the whole id, so that nothing is changed by a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, Refused
from woodrat.ledger.moments import NO_READ, open_reader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from woodrat.context import Context
    from woodrat.engines.port import View

LAST: Final = "last"
"""What stands for the latest run."""
CANDIDATES_MAX: Final = 10
"""How many ids are named when a prefix is that of several."""
_KINDS: Final = {"run_": "run", "int_": "interpretation", **{prefix: kind for kind, prefix in ids.PREFIXES.items()}}
_BEGINNINGS: Final = {"run": ("run.started", "run"), "interpretation": ("interpretation.started", "interpretation")}
"""Kinds of id that are not made of a digest: the entry that first names one, and the key it stands under."""
_SHORT = re.compile(f"[a-z]{{3}}_[a-z2-7]{{1,{ids.ID_CHARACTERS - 1}}}")
_WINDOW: Final = 1_024
"""How many entries are looked through at first for the latest run; then twice as many, and so on."""


def is_short(text: str, kinds: Collection[str]) -> bool:
    """Return whether a text can be the beginning of an id of one of these kinds, or `last` where runs are."""
    head = text.partition("#")[0]
    if head == LAST:
        return "run" in kinds
    return _KINDS.get(head[:4]) in kinds and _SHORT.fullmatch(head) is not None


def find(view: View, prefix: str, through: int, limit: int) -> list[str]:
    """Return the ids that begin with a prefix such as `obs_d2f`, at most `limit` of them."""
    kind = _KINDS[prefix[:4]]
    if kind not in _BEGINNINGS:
        return view.ids(kind, prefix, limit)
    entry_kind, key = _BEGINNINGS[kind]
    mark = f'"{key}":"{prefix}'.encode()
    named: set[str] = set()
    for entry in view.entries(through=through, kinds={entry_kind}):
        if entry.body is not None and mark in entry.body:
            body: Any = form.decode(entry.body)
            if isinstance(body.get(key), str) and body[key].startswith(prefix):
                named.add(body[key])
    return sorted(named)[:limit]


def latest_run(view: View, through: int) -> str | None:
    """Return the run that the log heard of last; None where there is none."""
    high, window = through, _WINDOW
    while high >= 0:
        low = max(-1, high - window)
        for entry in reversed(list(view.entries(low, high, {"run.started"}))):
            if entry.body is not None:
                body: Any = form.decode(entry.body)
                return str(body["run"])
        high, window = low, window * 2
    return None


def candidates(context: Context, text: str) -> Iterator[str]:
    """Yield what a short id can mean at the context's moment, each with what follows a `#` in the text."""
    head, mark, rest = text.partition("#")
    with open_reader(context) as reader:
        view, through = reader.view, reader.asof.position
        if head == LAST:
            run = latest_run(view, through)
            named = [] if run is None else [run]
        elif head.startswith("run_") and view.run(head, through):
            named = [head]  # a run that was told of may go by a short name
        else:
            named = find(view, head, through, CANDIDATES_MAX + 1)
    yield from (f"{id}{mark}{rest}" for id in named)


def complete(context: Context, text: str, path: str, *, writes: bool = False, outcome: str = NO_READ) -> str:
    """Return the whole id that a short one is unique for; the text itself where nothing begins so.

    Raises `Refused` where several ids begin so, and, before a write, wherever the text is not the whole id.
    """
    named = list(candidates(context, text))
    if not named or named == [text]:
        return text
    if len(named) > 1:
        listed = ", ".join(named[:CANDIDATES_MAX])
        more = "" if len(named) <= CANDIDATES_MAX else ", and more"
        problem = f'"{text}" is the beginning of several ids: {listed}{more}'
        raise Refused([Fault(path, problem, "Type more of the id.")], outcome)
    if writes:
        short = "stands for the latest run" if text.partition("#")[0] == LAST else "is only the beginning of an id"
        raise Refused([Fault(path, f'"{text}" {short}, and a write needs the whole id', f"Send {named[0]}.")], outcome)
    return named[0]

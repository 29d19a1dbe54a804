"""Short ids: the beginning of an id, and the id it is unique for.

People type and see ids cut short. What a read is asked for may be any unique prefix of an id, or `last` for the latest
run; a write needs the whole id, so that nothing is changed by a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.moments import NO_READ, open_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from woodrat.context import Context
    from woodrat.engines.view import View

LAST: Final = "last"
"""What stands for the latest run."""
CANDIDATES_MAX: Final = 10
"""How many ids are named when a prefix is that of several."""
_INDEXED: Final = ("observation", "entity", "source")
"""Kinds of id that are made of a digest, which engines index."""
_KINDS: Final = {"run_": "run", "int_": "interpretation", **{ids.PREFIXES[kind]: kind for kind in _INDEXED}}
"""The kind of an id, by how it begins."""
_BEGINNINGS: Final = {"run": ("run.started", "run"), "interpretation": ("interpretation.started", "interpretation")}
"""Kinds of id that are not made of a digest: the entry that first names one, and the key it stands under."""
_SHORT = re.compile(f"[a-z]{{3}}_[a-z2-7]{{1,{ids.ID_CHARACTERS - 1}}}")
_BEGINNING = re.compile(f"[a-z]{{3}}_[a-z2-7]{{1,{ids.ID_CHARACTERS}}}")
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
    if kind == "source":
        return entry_index.source_ids(view, prefix, limit)
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


def candidates(context: Context, prefix: str) -> tuple[str, ...]:
    """Return the ids that a short one can mean at the context's moment: all, or one more than a refusal names."""
    if not isinstance(prefix, str) or not (prefix == LAST or _is_beginning(prefix)):
        remedy = f"Send the prefix of its kind ({', '.join(sorted(_KINDS))}) and some of what follows, or `last`."
        raise Refused([Fault("prefix", f"expected the beginning of an id, got {shown(prefix)}", remedy)], NO_READ)
    with open_reader(context) as reader:
        view, through = reader.view, reader.asof.position
        if prefix == LAST:
            run = latest_run(view, through)
            return () if run is None else (run,)
        if prefix.startswith("run_") and entry_index.has_run(view, prefix, through):
            return (prefix,)  # a run that was told of may go by a short name
        return tuple(find(view, prefix, through, CANDIDATES_MAX + 1))


def _is_beginning(text: str) -> bool:
    return text[:4] in _KINDS and _BEGINNING.fullmatch(text) is not None


def complete(
    text: str, find: Callable[[str], Iterable[str]], path: str, *, writes: bool = False, outcome: str = NO_READ
) -> str:
    """Return the whole id that a short one is unique for; the text itself where nothing begins so.

    `find` returns the ids that begin so; what follows a `#` stays. Raises `Refused` where several ids begin so, and,
    before a write, wherever the text is not the whole id.
    """
    head, mark, rest = text.partition("#")
    named = [f"{id}{mark}{rest}" for id in find(head)]
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

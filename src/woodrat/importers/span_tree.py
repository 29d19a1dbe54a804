"""Span trees: spans with ids and parents, gathered by trace, without circles and each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.canon import form
from woodrat.errors import Fault, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from woodrat.runs.recordings import Placed


def each_once(spans: Iterable[Placed], id: str, faults: list[Fault]) -> list[Placed]:
    """Return spans, each id once; two different spans with one id are a fault."""
    found: dict[str, Placed] = {}
    nameless: list[Placed] = []
    for span, path in spans:
        name = span.get(id)
        if name is None:
            nameless.append((span, path))
            continue
        known = found.setdefault(str(name), (span, path))
        if known[0] is not span and not form.same(known[0], span):
            problem = f"{shown(name)} is also the {id} of {known[1] or 'another'}, with other content"
            faults.append(Fault(f"{path}/{id}", problem, "Send each span once, in its final state."))
    return [*found.values(), *nameless]


def check_parents(spans: Sequence[Placed], id: str, parent: str, faults: list[Fault]) -> None:
    """Add a fault for every circle of parents among spans."""
    above = {str(span[id]): span.get(parent) for span, _ in spans if span.get(id) is not None}
    places = {str(span[id]): path for span, path in spans if span.get(id) is not None}
    settled: set[str] = set()
    for start in above:
        trail: dict[str, None] = {}
        name: str | None = start
        while name is not None and name in above and name not in settled:
            if name in trail:
                circle = [*trail][[*trail].index(name) :]
                problem = f"it is inside itself, through {' > '.join(shown(each) for each in circle[:4])}"
                faults.append(Fault(f"{places[name]}/{parent}", problem, "Send the span that each one is inside of."))
                break
            trail[name] = None
            outer = above[name]
            name = None if outer is None else str(outer)
        settled.update(trail)


def by_trace(spans: Iterable[Placed], names: Sequence[str]) -> list[list[Placed]]:
    """Return spans grouped by the first of these members that they have, in order of first appearance."""
    found: dict[str, list[Placed]] = {}
    for span, path in spans:
        trace = next((span[name] for name in names if span.get(name) is not None), "")
        found.setdefault(str(trace), []).append((span, path))
    return list(found.values())


def text_of(item: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these members that is non-empty text."""
    return next((item[name] for name in names if isinstance(item.get(name), str) and item[name]), None)

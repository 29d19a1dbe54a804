"""Grounds: what a decision was made on, kept as a line, so that lists of decisions look it up without reading them.

A line is a function of the decision's entry alone. It names every piece of evidence by a text: entity, field and the
observations behind the value that was read. Decisions on the same evidence have the same text, so whatever is looked up
for it is looked up once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from woodrat.canon import form
from woodrat.merge.packing import garbled
from woodrat.runs import steps
from woodrat.runs.index.terms import GROUNDS, NAME
from woodrat.state.entry_rows import position_of, term_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.ledger.index import Lookup
    from woodrat.runs.steps import DecisionOrigins


class Grounds(NamedTuple):
    """What a decision was made on."""

    run: str
    """Its run."""
    agent: str | None
    """Who recorded it."""
    has_calls: bool
    """Whether a value came from a call, with which it is told."""
    entities: list[str]
    """The entities that values were read from, as references."""
    texts: list[str]
    """The evidence, each piece once, as text: that of `evidence_text`."""


def evidence_text(origin: Mapping[str, Any]) -> str | None:
    """Return the evidence that an origin names, as text; none where it names nothing that could be looked up."""
    listed = origin.get("observations")
    named = [id for id in listed if isinstance(id, str)] if isinstance(listed, list) else []
    if origin.get("kind") == "read":
        return form.serialise([origin.get("entity"), origin.get("field"), named]).decode()
    return form.serialise([None, None, named]).decode() if named else None


def origin_named(text: str) -> dict[str, Any]:
    """Return what a piece of evidence says of its origin."""
    entity, field, named = form.decode(text.encode())
    if entity is None and field is None:
        return {"kind": "stated", "observations": named}
    found = {"kind": "read", "entity": entity, "field": field, "observations": named}
    return {name: value for name, value in found.items() if value is not None}


def line_of(body: Any, origins: DecisionOrigins) -> bytes | None:
    """Return what a row says of a decision, by its body and where its facts came from; none of one without a run."""
    run = body.get("run")
    if not isinstance(run, str):
        return None
    texts = dict.fromkeys(text for origin in origins.all if (text := evidence_text(origin)) is not None)
    has_calls = any("span" in origin for origin in origins.all)
    return form.serialise([run, steps.text(body.get("agent")), has_calls, sorted(origins.entities), list(texts)])


def grounds_at(lookup: Lookup, positions: Iterable[int]) -> dict[int, Grounds]:
    """Return what the decisions at some positions were made on."""
    found: dict[int, Grounds] = {}
    for key, value in lookup.find(sorted(term_key(GROUNDS, at) for at in positions)):
        try:
            line = Grounds(*form.decode(value))
        except (TypeError, ValueError) as error:
            raise garbled(f"The index {NAME}") from error
        if type(line.run) is not str or type(line.entities) is not list or type(line.texts) is not list:
            raise garbled(f"The index {NAME}")
        found[position_of(key)] = line
    return found

"""Grounds: what a decision was made on, kept as a line, so that lists of decisions look it up without reading them.

A line is a function of the decision's entry alone. It names every piece of evidence by a text: entity, field and the
observations behind the value that was read. Decisions on the same evidence have the same text, so whatever is looked up
for it is looked up once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.ledger.index import term_key
from woodrat.merge.packing import garbled
from woodrat.runs import steps
from woodrat.runs.index.terms import GROUNDS, NAME
from woodrat.state.entry_rows import position_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from woodrat.ledger.index import Lookup
    from woodrat.log.entry import Entry

KIND: Final = "run.decided"


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


def pairs(entry: Entry) -> Iterator[tuple[bytes, bytes]]:
    """Yield the row of a decision."""
    found = None if entry.body is None or entry.kind != KIND else grounds_in(form.decode(entry.body))
    if found is not None:
        yield term_key(GROUNDS, entry.position), form.serialise(list(found))


def grounds_in(body: Any) -> Grounds | None:
    """Return what the body of a decision says it was made on."""
    run = body.get("run") if isinstance(body, dict) else None
    if not isinstance(run, str):
        return None
    origins = steps.decision_origins(body)
    texts = dict.fromkeys(text for origin in origins.all if (text := evidence_text(origin)) is not None)
    has_calls = any("span" in origin for origin in origins.all)
    return Grounds(run, steps.text(body.get("agent")), has_calls, sorted(origins.entities), list(texts))


def grounds_at(lookup: Lookup, positions: Collection[int]) -> dict[int, Grounds]:
    """Return what the decisions at some positions were made on, as far as they are on record."""
    found: dict[int, Grounds] = {}
    sought = [at for at in positions if at <= lookup.covered]
    for key, value in lookup.find(sorted(term_key(GROUNDS, at) for at in sought)):
        try:
            line = Grounds(*form.decode(value))
        except (TypeError, ValueError) as error:
            raise garbled(f"The index {NAME}") from error
        if type(line.run) is not str or type(line.entities) is not list or type(line.texts) is not list:
            raise garbled(f"The index {NAME}")
        found[position_of(key)] = line
    if len(sought) < len(positions):
        for entry in lookup.tail:
            if entry.kind == KIND and entry.position in positions and entry.body is not None:
                made = grounds_in(form.decode(entry.body))
                if made is not None:
                    found[entry.position] = made
    return found

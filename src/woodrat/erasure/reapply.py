"""Again: what was erased stays erased in copies of the ledger that are older, such as a backup that was restored.

The keys folder remembers every erasure as its entry says it: MACs, positions and the reason, and nothing of what went.
A copy that still holds the records is asked, by these MACs, what the scope must have been, and it is erased there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from woodrat.canon import ids
from woodrat.engines.port import View
from woodrat.log import erasure
from woodrat.log.erasure import Erasure
from woodrat.state import relation
from woodrat.state.observation import Observation
from woodrat.state.source import source_digest


def scopes(view: View, known: Erasure, key: bytes) -> Iterator[dict[str, Any]]:
    """Yield what an erasure was asked for by, as far as this ledger still holds it, as arguments of `erase`."""
    held = list(_held(view, known, key))
    if known.scope in ("entity", "subject"):
        named = "what" if known.scope == "entity" else "subject"
        gone = {said.entity for said, link in held if not isinstance(link, str)}
        for ref in sorted(gone):
            if relation.endpoints(ref) is None and erasure.name_mac(key, str(ref)) in known.names:
                yield {named: ref}
    elif known.scope == "agent":
        gone_agents = {said.agent for said, link in held if not isinstance(link, str)}
        for agent in sorted(gone_agents):
            yield {"agent": agent}
    elif known.scope == "field":
        stated = {(said.entity, field) for said, _ in held for field in said.stated}
        for ref, field in sorted(stated):
            if erasure.name_mac(key, erasure.field_name(ref, field)) in known.names:
                yield {"what": f"{ref}#{field}"}
    elif known.scope == "source":
        for entry in view.entries(kinds={"source"}):
            if entry.body is not None and erasure.record_mac(key, "source", entry.body) in known.macs:
                yield {"what": ids.name("source", source_digest(entry.body))}


def _held(view: View, known: Erasure, key: bytes) -> Iterator[tuple[Observation, erasure.Link]]:
    """Yield the observations of an erasure that are still here, each with what stands for it."""
    head = view.head().position
    links: Mapping[str, erasure.Link] = known.links
    for ref in view.entities(None, head):
        for stored in view.observations(ref.digest, -1, head):
            link = links.get(erasure.digest_mac(key, stored.observation.digest))
            if link is not None:
                yield stored.observation, link

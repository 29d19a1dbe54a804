"""Erasure memory: the keys folder's list of erasures, which every copy of a ledger has to apply.

    erased/LOG.jsonl    a line for every erasure made in that log: the body of its entry, so MACs and positions alone

An older copy of a database contains data that was erased since, and no sign of the erasure; the folder outside does.
The memory of one log applies only to that log, to copies of it, and to entries that began in it: equal records of
unrelated ledgers do not affect each other. A copy that still contains the records is searched by their MACs for the
original scope, which is then erased there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import ids
from woodrat.errors import Refused, Unavailable
from woodrat.log import erasure
from woodrat.log.entry import Entry
from woodrat.log.erasure import Erasure
from woodrat.state import relation
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import ErasureKeys
    from woodrat.engines.engine import Engine
    from woodrat.engines.view import View
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.state.observation import Observation

# Canonical JSON escapes every quotation mark inside a text, so no reason can pass for the member.
_ERASED_AT: Final = re.compile(rb'"erased_at":"([^"]*)"')


class PutBack(NamedTuple):
    """Data that a log still holds although the keys folder remembers its erasure."""

    erasure: Erasure
    """The erasure."""
    position: int
    """The first position of it that still has a body."""


def put_back(view: View, keys: Keys) -> PutBack | None:
    """Return the erased data that a log still holds, if it is a restored older copy; None if it is not.

    A log with the latest of its erasures has them all, so this takes a few look-ups for any number of erasures.
    """
    log = view.head().log
    lines = [] if log is None else keys.remembered_of(log)
    if not lines:
        return None
    key = keys.erasure
    for line in sorted(lines, key=_erased_at, reverse=True):
        try:
            known = erasure.stored(line)
        except (ValueError, Refused):
            continue  # a crash cut it short
        if _has_erasure(view, known, line):
            return None
        position = _first_position_held(view, known, key)
        if position is not None:
            return PutBack(known, position)
    return None


def _erased_at(line: bytes) -> str:
    found = _ERASED_AT.search(line)
    return "" if found is None else found[1].decode()


def _has_erasure(view: View, known: Erasure, body: bytes) -> bool:
    """Return True if an erasure was written to this log, and was the first to remove its data."""
    last = view.entry(view.position_at(known.erased_at))
    first = None if last is None else view.entry(last.envelope.write)
    if first is None or first.body != body:
        return False
    gone = view.entry(known.positions[0][0]) if known.positions else None
    return gone is None or gone.body is None


def _first_position_held(view: View, known: Erasure, key: bytes | None) -> int | None:
    """Return the first position of an erasure whose record is still here; without the key, the first with any body."""
    size, macs = view.head().size, frozenset(known.macs)
    for first, last in known.positions:
        for position in range(first, min(last + 1, size)):
            entry = view.entry(position)
            if entry is None or entry.body is None:
                continue
            if key is None or erasure.record_mac(key, entry.kind, entry.body) in macs:
                return position
    return None


def check(engine: Engine, tenant: TenantId, keys: Keys) -> None:
    """Refuse a ledger that holds data erased in it: an older copy of the file was put in its place."""
    if not keys.remembers:
        return
    with engine.view(tenant) as view:
        found = put_back(view, keys)
    if found is None:
        return
    known, position = found
    remedy = "Erase it here too with `woodrat erase --again`, or open it with erase_again=True"
    if keys.erasure is None:
        remedy = f"Put erasure.key back into {keys.folder}, then run `woodrat erase --again`"
    raise Unavailable(
        f"{known.log}: the entry at {position} was erased on {known.erased_at} and is here again: an older copy of the "
        f"database was put back. Nothing was read or written. {remedy}; or put the newer database back.",
        {"log": known.log, "position": position, "erased_at": known.erased_at},
    )


class Remembered:
    """The erasures that the keys folder remembers, by the log they were made in."""

    def __init__(self, keys: ErasureKeys | None) -> None:
        self._key = None if keys is None else keys.erasure
        self._macs: dict[str, set[str]] = {}
        if keys is not None and self._key is not None:
            for known in keys.erasures():
                self._macs.setdefault(known.log, set()).update(known.macs)

    def __bool__(self) -> bool:
        return bool(self._macs)

    def holds(self, entry: Entry) -> bool:
        """Return True if the record of an entry was erased in the log it was written under, or first written in."""
        if self._key is None or entry.body is None:
            return False
        origin = entry.envelope.origin
        logs = (entry.log,) if origin is None else (entry.log, origin.log)
        found = [self._macs[log] for log in logs if log in self._macs]
        if not found:
            return False
        mac = erasure.record_mac(self._key, entry.kind, entry.body)
        return any(mac in macs for macs in found)


def of_lineage(view: View, keys: ErasureKeys) -> Iterator[Erasure]:
    """Yield the remembered erasures of this log, of its former names, and of the logs that it copied or imported."""
    known = list(keys.erasures())
    wanted = {one.log for one in known}
    found = {log for log in (view.head().log,) if log is not None}
    if not wanted <= found:
        for entry in view.entries():
            origin = entry.envelope.origin
            found.update((entry.log,) if origin is None else (entry.log, origin.log))
            if wanted <= found:
                break
    return (one for one in known if one.log in found)


def is_own_name(view: View, log: str) -> bool:
    """Return True if a log had a name, so that idempotency keys used under it were accepted here."""
    return any(entry.log == log and entry.envelope.origin is None for entry in view.entries())


# The request behind an erasure, in a ledger that still contains some of it


def scopes(view: View, known: Erasure, key: bytes) -> Iterator[dict[str, Any]]:
    """Yield the scopes of an erasure that this ledger still holds, as arguments of `erase`."""
    held = list(_observations_held(view, known, key))
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


def _observations_held(view: View, known: Erasure, key: bytes) -> Iterator[tuple[Observation, erasure.Link]]:
    """Yield the observations of an erasure that are still here, each with its replacement."""
    head = view.head().position
    links: Mapping[str, erasure.Link] = known.links
    for ref in view.entities(None, head):
        for stored in view.observations(ref.digest, -1, head):
            link = links.get(erasure.digest_mac(key, stored.observation.digest))
            if link is not None:
                yield stored.observation, link

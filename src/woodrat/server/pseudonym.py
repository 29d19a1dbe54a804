"""Pseudonyms: what the read audit writes down in place of the entity, run or source that somebody asked about.

A name in the audit would outlive its erasure, and a read of what was erased would write it down again. So the audit
holds the type and an HMAC under the erasure key, which is outside the database: whoever has the key can ask who looked
at somebody, and sees the names of all that still exists. What was erased has no name any more. Without an erasure key
nothing can be erased, and names stand in the audit as they are.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from woodrat.canon import ids
from woodrat.errors import Refused
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.engines.port import View

MARK: Final = "~"
"""What a pseudonym begins with, after the type or the prefix of the id it stands for."""
HEX_DIGITS: Final = 32

_ID: Final = re.compile(r"(?:obs|src|ent|int|run|sch)_")
_PSEUDONYM: Final = re.compile(rf"(?:^|[/_]){MARK}[0-9a-f]{{{HEX_DIGITS}}}$")


def pseudonym(key: bytes, tenant: str, target: str) -> str:
    """Return what stands for something that was asked about: its type or prefix, and an HMAC of tenant and name."""
    mac = hmac.digest(key, f"read\n{tenant}\n{target}".encode("utf-8", "surrogatepass"), "sha256").hex()[:HEX_DIGITS]
    prefix = _ID.match(target)
    if prefix is not None:
        return f"{prefix[0]}{MARK}{mac}"
    try:
        return f"{ids.parse_ref(target).type}/{MARK}{mac}"
    except Refused:
        return f"{MARK}{mac}"


def is_pseudonym(target: str | None) -> bool:
    """Return whether a target of the audit is a pseudonym."""
    return target is not None and _PSEUDONYM.search(target) is not None


def names(view: View, key: bytes, tenant: str, wanted: Collection[str]) -> dict[str, str]:
    """Return the names that some pseudonyms stand for, as far as the tenant's log still holds them. It is walked."""
    found: dict[str, str] = {}
    for name in _names(view):
        if len(found) == len(wanted):
            break
        known = pseudonym(key, tenant, name)
        if known in wanted:
            found[known] = name
    return found


def _names(view: View) -> Iterator[str]:
    head = view.head().position
    refs = view.entities(None, head)
    for ref in refs:
        yield str(ref)
        yield ref.id
    for entry in view.entries(kinds={"source"}):
        if entry.body is not None:
            yield ids.id_of("source", source_digest(entry.body))
    for entry in view.entries(kinds={"run.started"}):
        if entry.body is not None:
            from woodrat.state.meaning import step_of

            step = step_of(entry.kind, entry.body)
            if step is not None:
                yield step.run
    for ref in refs:
        for stored in view.observations(ref.digest, -1, head):
            yield stored.observation.id

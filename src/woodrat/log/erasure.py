"""Erasure: the entry that records lawful forgetting, without naming the erased data.

A holder of the erasure key can test whether a record or a name was erased; others learn positions, numbers, the agent
and the reason. The bytes are specified in docs/formats/erasure.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.errors import Fault, Refused, shown
from woodrat.log.entry import Origin
from woodrat.records import dataclass

KIND: Final = "erasure"
ERASED: Final = "[ERASED]"
"""Placeholder of an erased value in a rewritten entry."""
SCOPES: Final = ("entity", "field", "source", "agent", "subject")
"""Scopes of an erasure."""
LATE: Final = "late"
"""The scope of an erasure entry for records that arrived after an erasure, named erased data, and were rewritten."""

Link = str | tuple[str, ...]
"""The replacement of an erased observation: the full name of the rewritten one, or those it replaced."""
KEY_BYTES: Final = 32
"""Length of an erasure key."""

_REQUIRED = frozenset({"agent", "erased_at", "log", "macs", "names", "positions", "reason", "scope"})
_OPTIONAL = frozenset({"keys", "links"})


def record_mac(key: bytes, kind: str, body: bytes) -> str:
    """Return the MAC of a record: HMAC-SHA256 of the digest of its body, in hex."""
    return digest_mac(key, digest(kind, body))


def digest_mac(key: bytes, record: bytes) -> str:
    """Return the MAC of a record's digest."""
    return _hmac(key, record)


def name_mac(key: bytes, name: str) -> str:
    """Return the MAC of a name: HMAC-SHA256 of an id or a reference as text, in hex."""
    return _hmac(key, name.encode())


def idempotency_mac(key: bytes, agent: str, idempotency_key: str) -> str:
    """Return the MAC of an idempotency key: HMAC-SHA256 of `key`, the agent and the key as lines."""
    return _hmac(key, f"key\n{agent}\n{idempotency_key}".encode())


def field_name(ref: object, field: str) -> str:
    """Return the name under which an erasure lists a field of an entity; distinct from every reference."""
    return f"{ref}\n{field}"


def _hmac(key: bytes, data: bytes) -> str:
    import hmac  # only a log that holds an erasure needs it

    return hmac.digest(key, data, "sha256").hex()


def ranges(positions: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return positions as ranges, first and last included, sorted and as few as can be."""
    found: list[tuple[int, int]] = []
    for position in sorted(set(positions)):
        if found and found[-1][1] == position - 1:
            found[-1] = (found[-1][0], position)
        else:
            found.append((position, position))
    return tuple(found)


def named(
    positions: Iterable[tuple[int, int]],
    of: str,
    log: str,
    position: int,
    origin: Origin | None,
    reach: Callable[[str], int | None],
) -> list[tuple[int, int]]:
    """Return, as ranges, the positions of an erasure that apply to its own log.

    `of` is the log that its body names; `log`, `position` and `origin` are those of its entry. An erasure written here
    names earlier entries. A merged or copied erasure names positions of another log, which apply here only while this
    log had that name: `reach` returns the last such position.
    """
    end = position - 1 if origin is None and of == log else reach(of)
    return [] if end is None else [(first, min(last, end)) for first, last in positions if first <= end]


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure, as its entry records it."""

    agent: str
    """The requester."""
    erased_at: str
    """When (fixed-width UTC): the log's time of the write."""
    log: str
    """The log whose positions it names."""
    scope: str
    """One of `SCOPES`."""
    reason: str
    """The reason. It names nothing erased."""
    positions: tuple[tuple[int, int], ...]
    """Positions with removed bodies and nonces, as inclusive ranges."""
    macs: tuple[str, ...]
    """`record_mac` of every record that is gone, sorted."""
    names: tuple[str, ...]
    """`name_mac` of every id and reference that is gone, sorted."""
    links: Mapping[str, Link] = MappingProxyType({})
    """Replacements of erased observations where others named them, by `digest_mac`."""
    keys: tuple[str, ...] = ()
    """`idempotency_mac` of every idempotency key with a removed receipt, sorted; a retry with one is refused."""

    def body(self) -> bytes:
        """Return the canonical body of the entry."""
        value: dict[str, Any] = {
            "agent": self.agent,
            "erased_at": self.erased_at,
            "log": self.log,
            "macs": list(self.macs),
            "names": list(self.names),
            "positions": [list(pair) for pair in self.positions],
            "reason": self.reason,
            "scope": self.scope,
        }
        if self.keys:
            value["keys"] = list(self.keys)
        if self.links:
            value["links"] = {mac: link if isinstance(link, str) else list(link) for mac, link in self.links.items()}
        return form.serialise(value)

    def holds(self, position: int) -> bool:
        """Return True if a position is among the erased ones."""
        return any(first <= position <= last for first, last in self.positions)


def stored(body: bytes) -> Erasure:
    """Return the erasure with this body; `Refused` if it is malformed."""
    value: Any = form.decode(body)
    faults = _faults(value)
    if faults:
        raise Refused(faults, "The entry is unchanged.")
    return Erasure(
        agent=value["agent"],
        erased_at=value["erased_at"],
        log=value["log"],
        scope=value["scope"],
        reason=value["reason"],
        positions=tuple((first, last) for first, last in value["positions"]),
        macs=tuple(value["macs"]),
        names=tuple(value["names"]),
        links={mac: link if isinstance(link, str) else tuple(link) for mac, link in value.get("links", {}).items()},
        keys=tuple(value.get("keys", ())),
    )


def _faults(value: object) -> list[Fault]:
    remedy = "Send the entry as exported."
    if not isinstance(value, dict) or not _REQUIRED <= value.keys() <= _REQUIRED | _OPTIONAL:
        return [Fault("", f"expected the body of an erasure, got {shown(value)}", remedy)]
    faults = []
    for name in ("agent", "erased_at", "log", "reason", "scope"):
        if not isinstance(value[name], str):
            faults.append(Fault(f"/{name}", f"expected text, got {shown(value[name])}", remedy))
    for name in ("macs", "names", "keys"):
        if not _are_texts(value.get(name, [])):
            faults.append(Fault(f"/{name}", f"expected a list of texts, got {shown(value[name])}", remedy))
    if not _are_ranges(value["positions"]):
        problem = f"expected ranges of positions, in order, got {shown(value['positions'])}"
        faults.append(Fault("/positions", problem, remedy))
    links = value.get("links", {})
    if not isinstance(links, dict) or not all(isinstance(link, str) or _are_texts(link) for link in links.values()):
        faults.append(Fault("/links", f"expected names and lists of names, got {shown(links)}", remedy))
    return faults


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_ranges(value: object) -> bool:
    """Return True if these are pairs of positions, first and last, sorted, with a gap between any two."""
    if not isinstance(value, list):
        return False
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or any(type(end) is not int for end in pair):
            return False
        if not 0 <= pair[0] <= pair[1]:
            return False
    return all(one[1] + 1 < two[0] for one, two in pairwise(value))

"""Log routes: entries of the log, its position, and the comparison of two logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.api.parameters import FLAG, OBJECTS, TEXT, TEXTS, WHOLE
from woodrat.errors import Fault, Refused, shown
from woodrat.exchange.verbs.importer import Imported
from woodrat.ledger.moments import NO_READ
from woodrat.log.entry import Entry
from woodrat.record_json import Describe, Record
from woodrat.records import dataclass
from woodrat.server.access import ANYONE, MANAGE
from woodrat.server.route import Route, in_body, in_query

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.report import Report

PAGE_ENTRIES_MAX: Final = 1_000
"""Most entries of one page of the log."""
LEAVES_MAX: Final = 64
"""Most leaf hashes in one request."""


@dataclass(frozen=True, slots=True)
class KeyOwner(Record):
    """The tenant that a key opens, and its agent."""

    tenant: str
    """The tenant."""
    agent: str
    """The agent."""


@dataclass(frozen=True, slots=True)
class LogPosition(Record):
    """The end of the log at a moment."""

    position: int
    """Position of its last entry; −1 before the first."""


@dataclass(frozen=True, slots=True)
class TakenLog(Record):
    """How much of another log was imported."""

    position: int
    """Its last imported position."""
    leaf: str
    """The leaf hash there, in hex."""


@dataclass(frozen=True, slots=True)
class LogLeaves(Record):
    """The end of the log at a moment, and leaf hashes of it."""

    format: int
    """The format of its entries."""
    log: str | None
    """Its name; None while it is empty."""
    position: int
    """Position of its last entry; −1 before the first."""
    root: str
    """Root of its tree, in hex."""
    leaves: tuple[str | None, ...]
    """The leaf hash at each requested position, in hex; None if the position has no entry."""
    taken: TakenLog | None
    """Imported position of the other log; None if it was not imported."""


class LoggedEntry:
    """An entry of the log; an erased one names the entry of its erasure.

    Every other entry has its export form, ready to send to another log.
    """

    def __init__(self, entry: Entry, erased_at: int | None = None) -> None:
        self.entry, self.erased_at = entry, erased_at

    def to_json(self) -> dict[str, Any]:
        """Return the entry as plain JSON."""
        written = self.entry.to_json()
        return written if self.entry.body is not None else {**written, "erased_at": self.erased_at}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LoggedEntry:
        """Return the entry that `to_json` wrote."""
        entry = {name: part for name, part in value.items() if name != "erased_at"}
        return cls(Entry.from_json(entry), value.get("erased_at"))

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of an entry."""
        erased = {"type": ["integer", "null"], "description": "Position of the entry that says its body was erased."}
        more = {"type": "object", "properties": {"erased_at": erased}}
        return {"allOf": [describe(Entry), more]}


def caller(ledger: Ledger) -> KeyOwner:
    """Return the tenant and the agent of the caller."""
    return KeyOwner(ledger.tenant, ledger.agent)


def position(past: Past) -> LogPosition:
    """Return the end of the log at a moment."""
    return LogPosition(past.position)


def entries(past: Past, *, after: int = -1, limit: int = 100) -> tuple[LoggedEntry, ...]:
    """Return entries of the log after a position."""
    check_page(after, limit)
    return tuple(logged(past, entry) for entry in past.log.entries(after=after, limit=limit))


def check_page(after: object, limit: object) -> None:
    """Refuse an invalid range of the log; `limit` is optional."""
    faults = []
    if type(after) is not int or after < -1:
        faults.append(Fault("after", f"got {shown(after)}", "Send a position, 0 or more."))
    if limit is not None and (type(limit) is not int or not 1 <= limit <= PAGE_ENTRIES_MAX):
        faults.append(Fault("limit", f"got {shown(limit)}", f"Send 1 to {PAGE_ENTRIES_MAX}."))
    if faults:
        raise Refused(faults, NO_READ)


def logged(past: Past, entry: Entry) -> LoggedEntry:
    """Return an entry with the position of its erasure."""
    return LoggedEntry(entry, None if entry.body is not None else past.erased_at(entry.position))


def leaves(past: Past, *, position: list[str] | None = None, log: str | None = None) -> LogLeaves:
    """Return the end of the log at a moment, and leaf hashes of it."""
    from woodrat.exchange.relay import peers

    wanted = position or []
    faults = [
        Fault("position", f"got {shown(text)}", "Send a position, 0 or more.")
        for text in wanted
        if not (text.isascii() and text.isdigit() and len(text) <= 16)
    ]
    if len(wanted) > LEAVES_MAX:
        faults.append(Fault("position", f"{len(wanted)} positions were requested", f"Ask for {LEAVES_MAX} at most."))
    if faults:
        raise Refused(faults, NO_READ)
    end = past.position
    with past.context.engine.view(past.tenant) as view:
        standing = peers.standing(view, end, [int(text) for text in wanted], log)
    taken = standing["taken"]
    return LogLeaves(**{**standing, "leaves": tuple(standing["leaves"]), "taken": taken and TakenLog(**taken)})


def import_entries(ledger: Ledger, entries: Any, **about: Any) -> Imported:
    """Import a part of another log."""
    from woodrat.exchange.relay.receiver import receive

    try:
        return receive(ledger.context, entries, **about)
    finally:
        if hasattr(entries, "close"):
            entries.close()


def admit(ledger: Ledger, bodies: Any) -> Report:
    """Import observations and schemas of another log."""
    from woodrat.canon import form

    faults = [] if isinstance(bodies, list) else [Fault("/bodies", f"got {shown(bodies)}", "Send a list.")]
    for number, item in enumerate(bodies if isinstance(bodies, list) else ()):
        if not isinstance(item, dict) or item.keys() != {"kind", "body"}:
            remedy = 'Send {"kind": "observation", "body": {…}}.'
            faults.append(Fault(f"/bodies/{number}", f"got {shown(item)}", remedy))
    faults += form.faults(bodies, "/bodies")
    if faults:
        raise Refused(faults)
    return ledger.admit((item["kind"], form.encode(item["body"])) for item in bodies)


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/v1/caller",
        "caller",
        caller,
        "Show which tenant and agent the key belongs to.",
        ANYONE,
        moment=False,
    ),
    Route("GET", "/v1/position", "position", position, "Return the position at which the log ends at a moment."),
    Route(
        "POST",
        "/v1/log",
        "log_import",
        import_entries,
        "Import entries of another log, in whole writes, as exported; known entries change nothing.",
        MANAGE,
        (
            in_body("entries", OBJECTS, "the entries, in order", required=True),
            in_query("log", TEXT, "the name of their log, under which the server remembers the last imported position"),
            in_query("after", WHOLE, "the position of that log before the first entry"),
            in_query("leaf", TEXT, "the leaf hash of that log at this position, in hex"),
            in_query("held", FLAG, "whether this server already holds all of that log up to this position"),
        ),
        moment=False,
        example={"entries": []},
        alone=True,
        lines=True,
    ),
    Route(
        "GET",
        "/v1/log/leaves",
        "log_leaves",
        leaves,
        "Return where the log ends and some of its leaf hashes, so that another log can find their common prefix.",
        params=(
            in_query("position", TEXTS, "a position whose leaf hash to return; may be repeated"),
            in_query("log", TEXT, "the other log; the answer says up to which position it was imported"),
        ),
    ),
    Route(
        "POST",
        "/v1/admit",
        "admit",
        admit,
        "Import observations and schemas of another log unchanged, whoever wrote them.",
        MANAGE,
        (in_body("bodies", OBJECTS, "objects with kind and body", required=True),),
        moment=False,
        example={"bodies": []},
    ),
)
"""All of them."""

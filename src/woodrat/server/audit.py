"""Audit: which key read what. Reads leave no trace in the log they read, so a separate tenant records the keys and
their reads.

An event keeps the verb, the moment and the target: a type by name; an entity, run or source by a pseudonym, which
outlives an erasure and reveals nothing. It never keeps answers or the words of a question. Equal reads within a second
are counted once, and all reads of a key by one verb within a second are one event, because an event costs far more than
a read. Events are written in batches, outside of requests: a crash loses at most the last second. If a batch fails,
each event is written separately; an event that still fails is dropped and counted.
"""

from __future__ import annotations

import hmac
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import ids
from woodrat.canon.ids import TenantId
from woodrat.clock import fresh_id
from woodrat.errors import Refused, Unavailable
from woodrat.ledger import reads
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.clock import Clock
    from woodrat.engines.view import View
    from woodrat.server.access import Caller


AUDIT_TENANT: Final = "woodrat.audit"
"""The tenant of the audit; no key opens it."""
EVENT_TYPE: Final = "audit_event"
WAITING_MAX: Final = 1_000
"""Most different reads between two flushes; further reads are counted under "others"."""
OTHERS: Final = "(others)"
MALFORMED: Final = "(malformed)"
"""Placeholder for a target or a moment that cannot exist."""
SUCCESS, DENIED, FAILURE = "success", "denied", "failure"
"""Outcomes of a read in the schema of `audit_event`: answered; denied for lack of a grant; failed."""
TARGET_BYTES_MAX: Final = 2_048
"""Longest recorded target or moment."""
TOGETHER_MAX: Final = 250
"""Most different reads in one event."""

_NAMED: Final = ("ref", "entity_type", "run", "id", "what", "subject", "agent", "first")
"""Arguments that name the target of a read."""
_Seen = tuple[str, str, str, str, str | None, str | None, str]
_About = tuple[str, str, str, str, str | None, str]
"""Key, tenant, agent, verb, moment and outcome of some reads."""
_Read = tuple[str | None, int, str, str, str]
"""Target, count, first and last time, and the first request."""


class Audit:
    """Collects reads, and writes them on request. Thread-safe."""

    def __init__(
        self, ledger: Ledger, clock: Clock, dropping: Callable[[Exception], None] = lambda error: None
    ) -> None:
        """`dropping` is called with the reason when an event is dropped."""
        assert ledger.tenant == AUDIT_TENANT, "the audit has a tenant of its own"
        self.ledger, self._clock, self._dropping = ledger, clock, dropping
        self._lock = threading.Lock()
        self._seen: dict[_Seen, list[Any]] = {}
        self._key = _erasure_key(ledger)
        self._failing = False
        self.dropped = 0
        """Number of lost events."""

    @property
    def problem(self) -> str | None:
        """The fault of the audit, if any: lost events since the start, or a failing write."""
        if self._failing:
            return "The read audit cannot be written now; reads go on, and writing is retried. See the log."
        if self.dropped:
            return f"The read audit lost {self.dropped} events since the server started; reads go on. See the log."
        return None

    def note(self, caller: Caller, verb: str, given: Mapping[str, Any], request: str, outcome: str) -> None:
        """Record a read by a key, and its outcome."""
        assert outcome in (SUCCESS, DENIED, FAILURE), "the schema of an event has no other outcomes"
        named = next((name for name in _NAMED if isinstance(given.get(name), str)), None)
        target = None if named is None else _sound(given[named])
        if target is not None and target != MALFORMED and named != "entity_type" and self._key is not None:
            target = pseudonym(self._key, caller.tenant, target)
        moment = _sound(given.get("as_of"))
        seen: _Seen = (caller.key, caller.tenant, caller.agent, verb, target, moment, outcome)
        at = self._clock.now()
        with self._lock:
            if seen not in self._seen and len(self._seen) >= WAITING_MAX:
                seen = (caller.key, caller.tenant, caller.agent, verb, OTHERS, None, outcome)
            told = self._seen.setdefault(seen, [0, at, at, request])
            told[0] += 1
            told[2] = at

    def flush(self) -> int:
        """Write the recorded reads; return the number of different ones.

        While the engine is unavailable, all of them wait. An event that fails on its own is dropped and counted; all
        others are written.
        """
        with self._lock:
            seen, self._seen = self._seen, {}
        if self._key is None:  # another server may have made it since
            self._key = _erasure_key(self.ledger)
        if not seen:
            return 0
        events = [self._event(*one) for one in _gathered(seen)]
        try:
            self._write(events)
        except Unavailable:
            self._failing = True
            with self._lock:
                for each, told in seen.items():
                    mine = self._seen.setdefault(each, [0, *told[1:]])
                    mine[0] += told[0]
            raise
        self._failing = False
        return len(seen)

    def _write(self, events: Sequence[dict[str, Any]]) -> None:
        """Write events in one batch, or one by one if the batch fails; drop events that fail alone."""
        try:
            self.ledger.store(list(events))
        except Unavailable:
            raise
        except Exception as error:
            if len(events) > 1:
                for event in events:
                    self._write([event])
                return
            self.dropped += 1
            self._dropping(error)

    def _event(self, about: _About, reads: Sequence[_Read]) -> dict[str, Any]:
        key, tenant, agent, verb, moment, outcome = about
        target, count, _, last, request = reads[0]
        details: dict[str, Any] = {"key": key, "tenant": tenant, "as_of": moment}
        if len(reads) == 1:
            details |= {"count": count, "last_at": last}
        else:
            details["reads"] = [list(read) for read in reads]
        return {
            "entity_type": EVENT_TYPE,
            "id": fresh_id(self._clock, "aud_"),
            "action": f"read.{verb}",
            "actor": agent,
            "actor_kind": "agent",
            "category": "access",
            "outcome": outcome,
            "at": min(read[2] for read in reads),
            "request_id": request,
            "details": details,
            **({"target": target} if target is not None and len(reads) == 1 else {}),
        }


def _erasure_key(ledger: Ledger) -> bytes | None:
    """Return the key for pseudonyms; None if there is no erasure key, so that nothing can be erased."""
    return None if ledger.context.erasures is None else ledger.context.erasures.keys.erasure


def _sound(text: object) -> str | None:
    """Return text that the audit can store: the text itself, or a placeholder. No input of a caller may break it."""
    if text is None:
        return None
    if not isinstance(text, str):
        text = str(text)
    try:
        if len(text.encode()) <= TARGET_BYTES_MAX and not _CONTROL.search(text):
            return text
    except UnicodeEncodeError:
        pass
    return MALFORMED


_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
"""A character that no name contains."""


def _gathered(seen: Mapping[_Seen, Sequence[Any]]) -> Iterator[tuple[_About, Sequence[_Read]]]:
    """Yield the targets of one key's reads by one verb at one moment, in parts of bounded length."""
    about: dict[_About, list[_Read]] = {}
    for (key, tenant, agent, verb, target, moment, outcome), (count, first, last, request) in seen.items():
        reads = about.setdefault((key, tenant, agent, verb, moment, outcome), [])
        reads.append((target, count, first, last, request))
    for asked, reads in about.items():
        for start in range(0, len(reads), TOGETHER_MAX):
            yield asked, reads[start : start + TOGETHER_MAX]


@dataclass(frozen=True, slots=True)
class Looked(Record):
    """One read by a key."""

    at: str
    """Time of the first read."""
    last_at: str
    """Time of the last read."""
    count: int
    """Number of reads between the two."""
    key: str
    """The key."""
    tenant: str
    """The tenant."""
    agent: str
    """The agent."""
    verb: str
    """The verb."""
    target: str | None
    """The target: an entity, a type, a run or a source; a pseudonym if it is unknown or erased."""
    as_of: str | None
    """The moment that was read; None for the present."""
    outcome: str
    """`success`; `denied` if the key lacks the grant; `failure` if it was allowed and got no answer."""
    request: str
    """The first of the requests."""


def looked(audit: Past, key: str | None = None) -> Iterator[Looked]:
    """Yield the reads of one key, or of all, in the order of writing. It walks the whole audit."""
    for stored in reads.observations(audit.context):
        said: Any = stored.observation.fields
        if stored.observation.entity.type != EVENT_TYPE or (key is not None and said["details"]["key"] != key):
            continue
        details = said["details"]
        alone = (said.get("target"), details.get("count"), said["at"], details.get("last_at"), said["request_id"])
        for target, count, first, last, request in details.get("reads", (alone,)):
            yield Looked(
                at=first,
                last_at=last,
                count=count,
                key=details["key"],
                tenant=details["tenant"],
                agent=said["actor"],
                verb=said["action"].removeprefix("read."),
                target=target,
                as_of=details["as_of"],
                outcome=said["outcome"],
                request=request,
            )


def named(audit: Past, found: Sequence[Looked]) -> list[Looked]:
    """Return reads with names in place of pseudonyms for targets that still exist; this needs the erasure key."""
    key = None if audit.context.erasures is None else audit.context.erasures.keys.erasure
    wanted: dict[str, set[str]] = {}
    for one in found:
        if key is not None and one.target is not None and is_pseudonym(one.target):
            wanted.setdefault(one.tenant, set()).add(one.target)
    known: dict[tuple[str, str], str] = {}
    for tenant, targets in wanted.items():
        assert key is not None, "only then is anything wanted"
        with audit.context.engine.view(TenantId(tenant)) as view:
            for target, name in names(view, key, tenant, targets).items():
                known[tenant, target] = name
    return [replace(one, target=known.get((one.tenant, one.target or ""), one.target)) for one in found]


MARK: Final = "~"
"""Prefix of a pseudonym, after the type or the prefix of the id that it replaces."""
HEX_DIGITS: Final = 32

_ID: Final = re.compile(r"(?:obs|src|ent|int|run|sch)_")
_PSEUDONYM: Final = re.compile(rf"(?:^|[/_]){MARK}[0-9a-f]{{{HEX_DIGITS}}}$")


def pseudonym(key: bytes, tenant: str, target: str) -> str:
    """Return the pseudonym of a target: its type or prefix, and an HMAC of tenant and name."""
    mac = hmac.digest(key, f"read\n{tenant}\n{target}".encode("utf-8", "surrogatepass"), "sha256").hex()[:HEX_DIGITS]
    prefix = _ID.match(target)
    if prefix is not None:
        return f"{prefix[0]}{MARK}{mac}"
    try:
        return f"{ids.parse_ref(target).type}/{MARK}{mac}"
    except Refused:
        return f"{MARK}{mac}"


def is_pseudonym(target: str | None) -> bool:
    """Return True if a target of the audit is a pseudonym."""
    return target is not None and _PSEUDONYM.search(target) is not None


def names(view: View, key: bytes, tenant: str, wanted: Collection[str]) -> dict[str, str]:
    """Return the names behind pseudonyms that the tenant's log still holds. It walks the log."""
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

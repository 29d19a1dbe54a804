"""Access: who calls, for which tenant, as which agent, and what they may do.

A key binds a tenant, an agent and grants; the caller says none of these. Keys are entities of a tenant of their own, so
who made one and who revoked it is on record. What is kept of a secret is its SHA-256: it has 160 random bits, which no
list of passwords holds.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from woodrat.canon import ids, moment
from woodrat.canon.digest import base32
from woodrat.clock import fresh_id
from woodrat.errors import Fault, Forbidden, NotFound, Refused, shown
from woodrat.ledger.ownership import ForeignRun
from woodrat.ledger.report import Report
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock

T = TypeVar("T")

KEYS_TENANT: Final = "woodrat.keys"
"""The tenant that keys are kept in; no key is for it."""
OWN_TENANTS: Final = "woodrat."
"""What the tenants begin with that a server keeps for itself; no key is for them."""
KEY_TYPE: Final = "api_key"
PREFIX: Final = "wrat_"
"""What a key begins with, so that a leaked one is recognised."""
SECRET_BYTES: Final = 20

READ, WRITE, CORRECT, RUN, MANAGE = "read", "write", "correct", "run", "manage"
METRICS: Final = "metrics"
GRANTS: Final = (READ, WRITE, CORRECT, RUN, MANAGE, METRICS)
"""What a key may be granted: reading; stating; correcting and withdrawing; recording runs; schemas, tags and
what other agents have said: told runs, and entries of other logs. `metrics` is for the operator: it opens `/metrics`,
which is about all tenants, and `*` does not include it."""
ANYONE: Final = "any"
"""What is open to whoever has a key, whatever it carries."""
EVERYTHING: Final = "*"
NOTHING_DONE: Final = "Nothing was done."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: what their key says, never what they say."""

    tenant: str
    """Whose ledger."""
    agent: str
    """What provenance shows."""
    grants: frozenset[str] = frozenset({EVERYTHING})
    """What they may do: a verb, or `verb:entity_type`."""
    priority_max: int | None = None
    """The highest priority they may state."""
    key: str = ""
    """The id of the key; empty where none is needed."""

    def may(self, grant: str, types: Iterable[str] | None) -> bool:
        """Return whether this may be done to entities of these types; `None` stands for all types there are."""
        if EVERYTHING in self.grants or grant in self.grants:
            return True
        return types is not None and all(f"{grant}:{type}" in self.grants for type in types)

    def holds(self, grant: str, *, wide: bool = False) -> bool:
        """Return whether this may be done to anything at all; to which types is seen when the call was read.

        What is `wide` may tell of all types, and needs the grant for all.
        """
        if grant == ANYONE or EVERYTHING in self.grants or grant in self.grants:
            return True
        return not wide and any(own.startswith(f"{grant}:") for own in self.grants)


class Access(Protocol):
    """Tells callers apart."""

    def caller(self, token: str | None) -> Caller | None:
        """Return who calls by the token they sent, or `None` for nobody we know."""

    def refresh(self) -> None:
        """Take in what changed elsewhere."""


class Open:
    """One tenant, one agent, everything allowed: for a server that only this machine can reach."""

    def __init__(self, tenant: str, agent: str) -> None:
        self._caller = Caller(tenant, agent)

    def caller(self, token: str | None) -> Caller | None:
        return self._caller

    def refresh(self) -> None:
        """Nothing changes."""


class OpenAtFirst:
    """One tenant and everything allowed while there is no key; from the first key on, keys alone count.

    A key that was revoked is one: a server whose last key is gone stays shut.
    """

    def __init__(self, keys: Keyring, tenant: str, agent: str) -> None:
        self._keys, self._open = keys, Open(tenant, agent)

    def caller(self, token: str | None) -> Caller | None:
        return (self._keys if self._keys.any else self._open).caller(token)

    def refresh(self) -> None:
        self._keys.refresh()


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without its secret."""

    id: str
    """Its id, which is no secret."""
    tenant: str
    """Whose ledger it opens."""
    agent: str
    """As whom its holder writes."""
    grants: tuple[str, ...]
    """What its holder may do, sorted."""
    name: str | None
    """What it is for."""
    priority_max: int | None
    """The highest priority its holder may state."""
    expires_at: str | None
    """When it ends by itself."""
    created_at: str
    """When it was made."""
    revoked: bool
    """Whether it was revoked."""

    def to_json(self) -> dict[str, Any]:
        """Return the key as plain JSON."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "agent": self.agent,
            "grants": list(self.grants),
            "name": self.name,
            "priority_max": self.priority_max,
            "expires_at": self.expires_at,
            "created_at": self.created_at,
            "revoked": self.revoked,
        }


class Keyring:
    """The keys of a server. What is revoked elsewhere counts as soon as `refresh` is called."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        assert ledger.tenant == KEYS_TENANT, "keys are kept in a tenant of their own"
        self._ledger, self._clock = ledger, clock
        self._position: int | None = None
        self._known: dict[str, tuple[bytes, Key, Caller]] = {}

    def create(
        self,
        tenant: str,
        agent: str,
        grants: Iterable[str],
        *,
        name: str | None = None,
        priority_max: int | None = None,
        expires_at: str | None = None,
    ) -> tuple[Key, str]:
        """Make a key; return it with its secret, which is shown this once."""
        chosen = tuple(sorted(set(grants)))
        faults = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent") + grant_faults(chosen)
        if isinstance(tenant, str) and tenant.startswith(OWN_TENANTS):
            faults.append(Fault("tenant", f"{tenant} holds what the server keeps for itself", "Name another tenant."))
        if priority_max is not None and type(priority_max) is not int:
            faults.append(Fault("priority_max", f"got {shown(priority_max)}", "Send a whole number."))
        if expires_at is not None:
            try:
                expires_at = moment.parse(expires_at)
            except Refused as refusal:
                faults += [Fault("expires_at", fault.problem, fault.remedy) for fault in refusal.faults]
        if faults:
            raise Refused(faults, outcome="No key was made.")
        id = fresh_id(self._clock, "key_")
        secret = f"{PREFIX}{id.removeprefix('key_')}_{base32(self._clock.random(SECRET_BYTES))}"
        fields: dict[str, Any] = {
            "hash": hashlib.sha256(secret.encode()).hexdigest(),
            "tenant": tenant,
            "agent": agent,
            "grants": list(chosen),
            "created_at": self._clock.now(),
            "name": name,
            "priority_max": priority_max,
            "expires_at": expires_at,
        }
        said = {field: value for field, value in fields.items() if value is not None}
        self._ledger.store({"entity_type": KEY_TYPE, **said, "$": {"key": id}})
        self.refresh()
        return self._known[id][1], secret

    def all(self) -> tuple[Key, ...]:
        """Return all keys, revoked ones too, by id; those made later come later."""
        self.refresh()
        return tuple(key for _, key, _ in sorted(self._known.values(), key=lambda item: item[1].id))

    @property
    def any(self) -> bool:
        """Whether there are keys, as of the last `refresh`; revoked ones count."""
        return bool(self._known)

    def revoke(self, id: str, reason: str | None = None) -> Key:
        """Revoke a key; it opens nothing from now on."""
        self.refresh()
        if id not in self._known:
            raise NotFound(f"{shown(id)}: there is no such key. Nothing was changed. See `woodrat keys list`.")
        if not self._known[id][1].revoked:
            self._ledger.delete(f"{KEY_TYPE}/{id}", reason=reason)
            self.refresh()
        return self._known[id][1]

    def refresh(self) -> None:
        """Take in what was made or revoked since."""
        position = self._ledger.position
        if position == self._position:
            return
        known: dict[str, tuple[bytes, Key, Caller]] = {}
        made: dict[str, Mapping[str, Any]] = {}
        for stored in self._ledger.observations():
            if stored.observation.entity.type == KEY_TYPE and stored.observation.fields:
                made.setdefault(stored.observation.entity.key, stored.observation.fields)
        for id, fields in made.items():
            key = Key(
                id,
                fields["tenant"],
                fields["agent"],
                tuple(fields["grants"]),
                fields.get("name"),
                fields.get("priority_max"),
                fields.get("expires_at"),
                fields["created_at"],
                self._ledger.show(f"{KEY_TYPE}/{id}").deleted,
            )
            caller = Caller(key.tenant, key.agent, frozenset(key.grants), key.priority_max, id)
            known[id] = (bytes.fromhex(fields["hash"]), key, caller)
        self._known, self._position = known, position

    def caller(self, token: str | None) -> Caller | None:
        """Return who holds a key; the work is the same whether the key is unknown, revoked or wrong."""
        text = token or ""
        found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        id = "key_" + text.removeprefix(PREFIX).partition("_")[0]
        kept, key, caller = self._known.get(id) or _NOBODY
        good = hmac.compare_digest(found, kept)
        over = key.revoked or (key.expires_at is not None and self._clock.now() >= key.expires_at)
        return caller if good and not over else None


_NOBODY: Final = (
    bytes(32),
    Key("", "", "", (), None, None, None, "", True),
    Caller("", "", frozenset()),
)


def grant_faults(grants: Iterable[str]) -> list[Fault]:
    """Return everything wrong with grants."""
    remedy = f"Grant {', '.join(GRANTS)}, one of them for a type as in write:contact, or * for everything."
    listed = tuple(grants)
    found = [] if listed else [Fault("grants", "a key is made for something, and none are named", remedy)]
    for grant in listed:
        verb, colon, type = grant.partition(":")
        if grant != EVERYTHING and (verb not in GRANTS or (colon and (verb == METRICS or ids.type_faults(type)))):
            found.append(Fault("grants", f"{shown(grant)} is no grant", remedy))
    return found


def check(caller: Caller, grant: str, given: Mapping[str, Any]) -> None:
    """Raise `Forbidden` unless a caller may do this with these arguments of a verb."""
    carried = grant == ANYONE or EVERYTHING in caller.grants or grant in caller.grants
    if not carried and not caller.may(grant, types := _types(given)):
        about = "" if types is None else f" for {', '.join(sorted(types))}"
        raise Forbidden(
            f"This key may not {_DOING[grant]}{about}. {NOTHING_DONE} Ask for a key with the grant {grant!r}, "
            "or name a type that it carries.",
            {"grant": grant},
        )
    if EVERYTHING not in caller.grants and READ not in caller.grants:
        _check_sources(given)
    if caller.priority_max is not None:
        stated = [given.get("priority"), *(_said(record).get("priority") for record in _records(given))]
        high = [priority for priority in stated if type(priority) is int and priority > caller.priority_max]
        if high:
            raise Forbidden(
                f"priority: {max(high)} is more than the {caller.priority_max} this key may state. {NOTHING_DONE} "
                "State a lower one.",
                {"priority_max": caller.priority_max},
            )


def _check_sources(given: Mapping[str, Any]) -> None:
    """Raise `Forbidden` where a call would tell a caller who may not read everything what a source says.

    A locator is compared with its source, and excerpts are parts of it.
    """
    pointed = any("locator" in _said(record) for record in _records(given))
    if pointed or given.get("excerpts") is True:
        what = "locator: it points into a source" if pointed else "excerpts: they are parts of sources"
        raise Forbidden(
            f"{what}, and this key may not read sources. {NOTHING_DONE} Leave it out, or ask for a key with the grant "
            "'read'.",
            {"grant": READ},
        )


def check_telling(caller: Caller, verb: str, given: Mapping[str, Any]) -> None:
    """Raise `Forbidden` unless a caller may tell of these runs: they are its own, and so is what their steps do.

    A key that may `manage` takes in runs of other agents too.
    """
    if verb == "run_step":
        _check_step(caller, given.get("step"))
    elif verb == "evaluate":
        check(caller, READ, {})  # it tells where a run and a moment differ
    elif verb == "record":
        document = given.get("document")
        for told in document if isinstance(document, list) else [document]:
            if not isinstance(told, Mapping):
                continue
            agent = told.get("agent")
            if agent is not None and agent != caller.agent and not caller.may(MANAGE, None):
                raise Forbidden(
                    f"agent: {shown(agent)} is not the agent of this key, which is {caller.agent!r}. {NOTHING_DONE} "
                    "Leave the agent out, or ask for a key with the grant 'manage'.",
                    {"grant": MANAGE},
                )
            steps = told.get("steps")
            for step in steps if isinstance(steps, list) else ():
                _check_step(caller, step)


def told(caller: Caller, given: Mapping[str, Any], answer: Any) -> Any:
    """Return the answer to a write as far as its caller may read: what was believed before is not for the others.

    A report says it of every field that a write changes, and a dry run would say it without a trace.
    """
    if EVERYTHING in caller.grants or READ in caller.grants:
        return answer
    step = given.get("step")
    about = [about for _, about in step_needs(step)] if isinstance(step, Mapping) else [given]
    if all(caller.may(READ, _types(one)) for one in about):
        return answer
    if isinstance(answer, Report):
        return answer.but(**_UNTOLD)
    return _untold(answer) if isinstance(answer, dict) else answer


async def discreet(caller: Caller, work: Awaitable[T]) -> T:
    """Wait for work; of another agent's run a caller who may not read hears what is said of a run that is not there."""
    try:
        return await work
    except ForeignRun as error:
        if caller.may(READ, None):
            raise
        raise error.hidden() from None


_UNTOLD: Final[Mapping[str, Any]] = {"changes": (), "conflicts": (), "by_arrival": (), "hints": ()}
"""What a report says of the state that it met, and what to say instead."""


def _untold(answer: dict[str, Any]) -> dict[str, Any]:
    report = {"report": _untold(answer["report"])} if isinstance(answer.get("report"), dict) else {}
    return {name: list(_UNTOLD[name]) if name in _UNTOLD else value for name, value in answer.items()} | report


def _check_step(caller: Caller, step: Any) -> None:
    """Raise `Forbidden` unless a caller may read and write what a step of a run reads and writes."""
    for grant, about in step_needs(step):
        check(caller, grant, about)


def step_needs(step: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what a key needs for what a step of a run reads or writes besides being told of."""
    for kind, about in step.items() if isinstance(step, Mapping) else ():
        named = about if isinstance(about, Mapping) else {}
        if kind == "store":
            yield WRITE, {"records": about}
        elif kind == "read":
            yield READ, ({} if named.get("verb") == "related" else named) if named else {"ref": about}
        elif kind == "change":
            yield WRITE if named.get("verb") in ("store", "relate") else CORRECT, named
        elif kind in ("decide", "select"):
            yield from decision_needs(named)


def decision_needs(decision: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what a key needs for a decision on what is read of an entity."""
    if isinstance(decision.get("facts"), str):
        yield READ, {"ref": decision["facts"]}


_DOING: Final = {
    READ: "read",
    WRITE: "write",
    CORRECT: "correct, withdraw or delete",
    RUN: "record runs",
    MANAGE: "change schemas or tags, or take in a log",
}


def _types(given: Mapping[str, Any]) -> set[str] | None:
    """Return the types a call is about; `None` where it may be about all there are."""
    found: set[str] = set()
    refs = [given.get(name) for name in ("ref", "start", "end", "one", "other", "subject")]
    # Whether a condition holds says something of the entity it is about, and so does whether it can be related to.
    conditions = given.get("if_version")
    refs += conditions if isinstance(conditions, Mapping) else ()
    for record in _records(given):
        found.add(str(record.get("entity_type")))
        related = _said(record).get("relate")
        for item in related if isinstance(related, list) else ():
            if isinstance(item, Mapping):
                found.add(str(item.get("type")))
                refs.append(item.get("to"))
    if isinstance(given.get("entity_type"), str):
        found.add(given["entity_type"])
    for ref in refs:
        if isinstance(ref, str):
            type, slash, _ = ref.partition("/")
            if not slash:
                return None  # an id says nothing of its type
            found.add(type)
    if "start" in given and isinstance(given.get("type"), str):
        found.add(given["type"])
    return found or None


def _records(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    records = given.get("records")
    several = records if isinstance(records, list) else [records]
    return [record for record in several if isinstance(record, Mapping)]


def _said(record: Mapping[str, Any]) -> Mapping[str, Any]:
    said = record.get("$")
    return said if isinstance(said, Mapping) else {}

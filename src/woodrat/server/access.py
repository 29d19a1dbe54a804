"""Access: the calls that a caller may make, and the answers that they may see.

A key (`keys.py`) binds a tenant, an agent and grants; the caller states none of these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from woodrat.api.verb import CORRECT as CORRECT
from woodrat.api.verb import MANAGE as MANAGE
from woodrat.api.verb import READ as READ
from woodrat.api.verb import RUN as RUN
from woodrat.api.verb import WRITE as WRITE
from woodrat.canon import ids
from woodrat.errors import Fault, Forbidden, WoodratError, shown
from woodrat.ledger.arguments import EXISTING, NEVER
from woodrat.ledger.ownership import ForeignRun
from woodrat.ledger.report import Report
from woodrat.records import dataclass, fields_of, is_record, replace
from woodrat.runs.verbs.citation import Misread
from woodrat.server.problems import NOTHING_DONE
from woodrat.state.note import NOTE
from woodrat.state.relation import SAME_AS, endpoints

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

T = TypeVar("T")

OWN_TENANTS: Final = "woodrat."
"""Prefix of the tenants that a server keeps for itself; no key opens them."""
METRICS: Final = "metrics"
GRANTS: Final = (READ, WRITE, CORRECT, RUN, MANAGE, METRICS)
"""The grants of a key: read; write; correct and withdraw; record runs; manage schemas, tags and statements in another
agent's name (imported runs, entries of other logs). `metrics` is for the operator: it opens `/metrics`, which covers
all tenants, and `*` does not include it.
"""
ANYONE: Final = "any"
"""Operations open to every key, whatever its grants."""
EVERYTHING: Final = "*"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, as the key states it and never as the request does."""

    tenant: str
    """The tenant."""
    agent: str
    """The agent that provenance shows."""
    grants: frozenset[str] = frozenset({EVERYTHING})
    """The grants: a verb, or `verb:entity_type`."""
    priority_max: int | None = None
    """The highest priority they may state."""
    key: str = ""
    """The id of the key; empty if the server needs none."""

    def may(self, grant: str, types: Iterable[str] | None) -> bool:
        """Return True if the grant covers these entity types; `None` stands for all types."""
        if EVERYTHING in self.grants or grant in self.grants:
            return True
        return types is not None and all(f"{grant}:{type}" in self.grants for type in types)

    def types(self, grant: str) -> list[str]:
        """Return the entity types that the grant covers; None if it covers all."""
        return sorted(own.partition(":")[2] for own in self.grants if own.startswith(f"{grant}:"))

    def holds(self, grant: str, *, wide: bool = False) -> bool:
        """Return True if the caller has the grant for any type; the type itself is checked once the call is parsed.

        A `wide` call may reveal all types, and needs the grant for all.
        """
        if grant == ANYONE or EVERYTHING in self.grants or grant in self.grants:
            return True
        return not wide and any(own.startswith(f"{grant}:") for own in self.grants)


def grant_faults(grants: Iterable[str]) -> list[Fault]:
    """Return everything wrong with grants."""
    remedy = f"Grant {', '.join(GRANTS)}, one of them for a type as in write:contact, or * for everything."
    listed = tuple(grants)
    found = [] if listed else [Fault("grants", "missing; a key needs at least one grant", remedy)]
    for grant in listed:
        verb, colon, type = grant.partition(":")
        if grant != EVERYTHING and (verb not in GRANTS or (colon and (verb == METRICS or ids.type_faults(type)))):
            found.append(Fault("grants", f"{shown(grant)} is not a grant", remedy))
    return found


def check(caller: Caller, grant: str, given: Mapping[str, Any]) -> None:
    """Raise `Forbidden` unless the caller may call a verb with these arguments.

    A relation needs the grant for its type and for the types of both ends. A relation of type `same_as` is a merge and
    needs `correct` for the ends.
    """
    if grant == WRITE and _joins(given):
        grant = CORRECT
    carried = grant == ANYONE or EVERYTHING in caller.grants or grant in caller.grants
    if not carried and not caller.may(grant, types := _types(given)):
        about = "" if types is None else f" for {', '.join(sorted(types))}"
        raise Forbidden(
            f"This key may not {_DOING[grant]}{about}. {NOTHING_DONE} Ask for a key with the grant {grant!r}, "
            "or name a type that this key covers.",
            {"grant": grant},
        )
    if EVERYTHING not in caller.grants and READ not in caller.grants:
        _check_sources(given)
        if given.get("match") == EXISTING and not caller.may(READ, _types(given)):
            raise Forbidden(
                f"match: it reveals stored values, which this key may not read. {NOTHING_DONE} Leave it out, or ask "
                f"for a key with the grant 'read'.",
                {"grant": READ},
            )
    if caller.priority_max is not None:
        stated = [given.get("priority"), *(_said(record).get("priority") for record in _records(given))]
        high = [priority for priority in stated if type(priority) is int and priority > caller.priority_max]
        if high:
            raise Forbidden(
                f"priority: {max(high)} is more than the {caller.priority_max} this key may state. {NOTHING_DONE} "
                "State a lower one.",
                {"priority_max": caller.priority_max},
            )


def narrow(caller: Caller, verb: str, given: dict[str, Any]) -> None:
    """Limit a recall that names no types to the types that its caller may read."""
    if verb == "recall" and given.get("entity_type") is None and not caller.may(READ, None):
        given["entity_type"] = caller.types(READ) or None


def take_exactly(caller: Caller, given: dict[str, Any]) -> None:
    """Match the subject of a note exactly if its caller may not read: a loose match would reveal stored entities."""
    about = given.get("about")
    is_open = isinstance(given.get("text"), str) and about is not None and "match" not in given
    if is_open and not caller.may(READ, _types({"ref": about})):
        given["match"] = NEVER


def _check_sources(given: Mapping[str, Any]) -> None:
    """Raise `Forbidden` if a call would reveal the content of a source to a caller who may not read everything.

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
    """Raise `Forbidden` unless the caller may record these runs, which must be its own.

    A key with `manage` may also import runs of other agents.
    """
    if verb == "runs_step":
        _check_step(caller, given.get("step"))
    elif verb == "runs_evaluate":
        check(caller, READ, {})  # it reveals where a run and a moment differ
    elif verb == "runs_import":
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


def may_hear(caller: Caller, given: Mapping[str, Any]) -> bool:
    """Return True if a caller may read every type that a write touches, and so gets the whole report."""
    if EVERYTHING in caller.grants or READ in caller.grants:
        return True
    return all(caller.may(READ, _types(one)) for one in _abouts(given))


def told(caller: Caller, given: Mapping[str, Any], answer: Any) -> Any:
    """Return the answer to a write, cut to the caller's grants: reports hide old values from keys without `read`.

    A report shows old values of every field that a write changes, and a dry run would reveal them without a trace. An
    entity that the caller did not name by type and key is shown by its id.
    """
    if may_hear(caller, given):
        return answer
    if isinstance(answer, Report):
        return answer.but(**_UNTOLD, entities=tuple(_named(given, answer.entities)))
    if isinstance(answer, dict):
        return _untold(given, answer)
    names = fields_of(type(answer)) if is_record(type(answer)) else {}
    hidden = {name: value for name, value in _UNTOLD.items() if name in names}
    if "report" in names and isinstance(answer.report, dict):
        hidden["report"] = _untold(given, answer.report)
    return replace(answer, **hidden) if hidden else answer


async def discreet(caller: Caller, ledger: Ledger, work: Awaitable[T], *given: Mapping[str, Any]) -> T:
    """Wait for a write with these arguments; its errors reveal no more than its answer would.

    A run of another agent is reported as unknown. An entity that the caller named by id is shown by that id.
    """
    try:
        return await work
    except (ForeignRun, Misread) as error:
        if caller.may(READ, None):
            raise
        raise error.hidden() from None
    except WoodratError as error:
        if not all(may_hear(caller, one) for one in given):
            _hide_names(ledger, error, given)
        raise


def _hide_names(ledger: Ledger, error: WoodratError, given: Iterable[Mapping[str, Any]]) -> None:
    """Name entities in an error by the ids that the caller sent."""
    sent = {ref for one in given for about in _abouts(one) for ref in _refs(about) if ids.is_id("entity", ref)}
    if not sent:
        return
    with ledger.context.engine.view(ledger.tenant) as view:
        names = {str(ref): id for id in sorted(sent) if (ref := view.entity(id)) is not None}

    def renamed(part: Any) -> Any:
        if isinstance(part, str):
            for name, id in names.items():
                part = part.replace(name, id)
        elif isinstance(part, dict):
            part = {key: renamed(value) for key, value in part.items()}
        elif isinstance(part, list):
            part = [renamed(item) for item in part]
        return part

    error.args, error.details = (renamed(str(error)),), renamed(error.details)


_UNTOLD: Final[Mapping[str, Any]] = {"changes": (), "conflicts": (), "by_arrival": (), "hints": ()}
"""Members of a report that reveal the state before a write, with the text that replaces them."""


def _untold(given: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return a report as plain JSON without the state before the write."""
    hidden: dict[str, Any] = {name: list(value) for name, value in _UNTOLD.items() if name in answer}
    if isinstance(answer.get("report"), dict):
        hidden["report"] = _untold(given, answer["report"])
    if "entities" in answer:
        hidden["entities"] = list(_named(given, answer["entities"]))
    return answer | hidden


def _named(given: Mapping[str, Any], entities: Iterable[str]) -> Iterator[str]:
    """Yield the entities of a report: by reference where the caller's own words make it, else by id."""
    abouts, refs = _abouts(given), [ids.parse_ref(ref) for ref in entities]
    known = {ref for about in abouts for ref in _refs(about)}
    if any("records" in about or "text" in about for about in abouts):  # keys derive from the sent values
        known |= {str(ref) for ref in refs if endpoints(ref) is None}
    for ref in refs:
        ends = endpoints(ref) or (ref,)
        yield str(ref) if str(ref) in known or {str(end) for end in ends} <= known else ref.id


def _abouts(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the arguments of a write that grants are checked against; for a step, the arguments of its action."""
    step = given.get("step")
    return [about for _, about in step_needs(step)] if isinstance(step, Mapping) else [given]


def _check_step(caller: Caller, step: Any) -> None:
    """Raise `Forbidden` unless the caller may read and write the entities of a run's step."""
    change = step.get("change") if isinstance(step, dict) else None
    if isinstance(change, dict) and change.get("verb") == "remember":
        take_exactly(caller, change)
    for grant, about in step_needs(step):
        check(caller, grant, about)


def step_needs(step: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the grants that a step of a run needs for its reads and writes."""
    for kind, about in step.items() if isinstance(step, Mapping) else ():
        named = about if isinstance(about, Mapping) else {}
        if kind == "store":
            yield WRITE, {"records": about}
        elif kind == "read":
            yield READ, ({} if named.get("verb") == "related" else named) if named else {"ref": about}
        elif kind == "change":
            yield WRITE if named.get("verb") in ("store", "remember", "relate") else CORRECT, named
        elif kind in ("decide", "select"):
            yield from decision_needs(named)
        elif kind == "decided":
            on = named.get("on")
            for item in on if isinstance(on, list) else [on]:
                if isinstance(item, str):
                    yield READ, {"ref": item}


def decision_needs(decision: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the grants that a decision needs to read an entity."""
    if isinstance(decision.get("facts"), str):
        yield READ, {"ref": decision["facts"]}


_DOING: Final = {
    READ: "read",
    WRITE: "write",
    CORRECT: "correct, withdraw or delete",
    RUN: "record runs",
    MANAGE: "change schemas or tags, or import a log",
}


def _joins(given: Mapping[str, Any]) -> bool:
    """Return True if a relation joins two entities into one."""
    return "start" in given and given.get("type") == SAME_AS


def _types(given: Mapping[str, Any]) -> set[str] | None:
    """Return the entity types of a call; None if it may touch every type."""
    found = {str(record.get("entity_type")) for record in _records(given)}
    found |= {str(link.get("type")) for link in _links(given)}
    types = given.get("entity_type")
    if types is not None:
        found.update(map(str, types if isinstance(types, list | tuple) else (types,)))
    for ref in _refs(given):
        type, slash, _ = ref.partition("/")
        if not slash:
            return None  # an id does not reveal its type
        found.add(type)
    if isinstance(given.get("text"), str):
        found.add(NOTE)  # only `remember` takes a text
    if "start" in given and isinstance(given.get("type"), str) and not _joins(given):
        found.add(given["type"])
    return found or None


def _refs(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the entities that a call names.

    A condition reveals something about its entity, and so does the possibility of a relation to it.
    """
    conditions = given.get("if_version")
    named = [given.get(name) for name in ("ref", "start", "end", "one", "other", "subject", "about")]
    named += [*(conditions if isinstance(conditions, Mapping) else ()), *(link.get("to") for link in _links(given))]
    yield from (ref for ref in named if isinstance(ref, str))


def _links(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the relations that records state."""
    for record in _records(given):
        related = _said(record).get("relate")
        yield from (link for link in (related if isinstance(related, list) else ()) if isinstance(link, Mapping))


def _records(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    records = given.get("records")
    several = records if isinstance(records, list) else [records]
    return [record for record in several if isinstance(record, Mapping)]


def _said(record: Mapping[str, Any]) -> Mapping[str, Any]:
    said = record.get("$")
    return said if isinstance(said, Mapping) else {}

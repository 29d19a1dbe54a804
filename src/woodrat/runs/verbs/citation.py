"""Citation: what a run entry that was made elsewhere may cite, checked before it is appended.

An entry may name observations of the entity it says it read, and none that came after the position it read at. A
position beyond the end of the log is refused. The library's own recorder cites what it has just read, so it needs none
of this; what another log says stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import ids
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.ledger.moments import placed
from woodrat.ledger.read import Reader
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.ledger.write import Draft

RECALL: Final = "recall"
"""What a read is `within` that recalled."""
CITING: Final = frozenset({"run.started", "run.read", "run.decided"})
"""The kinds of entry that cite anything."""


class _Cited(NamedTuple):
    """Observations that an entry names at one place, and what it says of them."""

    path: str
    entity: object
    """Whom they are said to speak of."""
    observations: object
    log: object
    position: object
    """As of which they were read; the end of the log where the entry does not say."""
    name: str
    """What the observations are called there."""


def faults(
    draft: Draft, kind: str, body: Mapping[str, Any], path: str, *, own: bool, log: object = None
) -> list[Fault]:
    """Return what is wrong with all that an entry cites.

    What it read of a log that is not here cannot be checked: with `own` that is refused too, as only an import brings
    what was recorded elsewhere. `log` is the one that the run read, where the entry names none.
    """
    found: list[Fault] = []
    readers: dict[int, Reader] = {}
    head = draft.before.asof.position
    for cited in _cited(kind, body):
        here = f"{path}{cited.path}"
        position = head
        if cited.position is not None and type(cited.position) is not int:
            # In what comes from elsewhere a value of another shape counts as left out.
            if own:
                found.append(Fault(f"{here}/position", f"got {shown(cited.position)}", "Send a position of the log."))
                continue
        elif cited.position is not None:
            named = log if cited.log is None else cited.log
            stands = _stands(draft, named, cited.position)
            if stands is None:
                if own:
                    problem = f"{cited.position} is a position of {shown(named)}, which is not this log"
                    remedy = "Leave log out, or have it imported with a key that carries the grant 'manage'."
                    found.append(Fault(f"{here}/log", problem, remedy))
                continue
            position = stands
        if position > head:
            remedy = f"Send the position it was read at, {head} at most."
            found.append(Fault(f"{here}/position", f"{position} is beyond the end of the log, {head}", remedy))
            continue
        if cited.observations is not None:
            if position not in readers:
                readers[position] = Reader(draft.view, AsOf(position), draft.before.policies)
            found += _observation_faults(readers[position], cited, here, own)
    return found


def _stands(draft: Draft, log: object, position: int) -> int | None:
    """Return where a position of a log stands here; none where that log is not here."""
    if log is None or log == draft.log:
        return position
    return placed(draft.view, log, position)


def _observation_faults(reader: Reader, cited: _Cited, path: str, own: bool) -> Iterator[Fault]:
    named = cited.observations if isinstance(cited.observations, list) else [cited.observations]
    named = [id for id in named if id is not None and (own or isinstance(id, str))]
    if not named:
        return
    group = _group(reader, cited.entity)
    if group is None:
        if not own:
            return
        problem = f"{shown(cited.entity)} is not an entity, and observations of it are cited"
        yield Fault(f"{path}/entity", problem, "Send it as type/key.")
        return
    from woodrat.ledger.plans import find_observation

    for id in named:
        stored = find_observation(reader, id)
        if stored is None:
            problem = f"there is no observation {shown(id)} at position {reader.asof.position}"
            yield Fault(f"{path}/{cited.name}", problem, "Cite what was there when it was read.")
        elif stored.observation.entity not in group:
            problem = f"{shown(id)} is about {stored.observation.entity}, not {cited.entity}"
            yield Fault(f"{path}/{cited.name}", problem, "Cite observations of the entity that was read.")


def _group(reader: Reader, entity: object) -> tuple[Ref, ...] | None:
    try:
        return reader.group(ids.parse_ref(entity, "entity"))
    except Refused:
        return None


# ------------------------------------------------------------------------------------------------- what an entry cites


def _cited(kind: str, body: Mapping[str, Any]) -> Iterator[_Cited]:
    if kind == "run.read":
        yield from _read(body)
    elif kind == "run.decided":
        yield from _decided(body)
    elif kind == "run.started":
        yield from _started(body)


def _read(body: Mapping[str, Any]) -> Iterator[_Cited]:
    log, position, entity = body.get("log"), body.get("position"), body.get("entity")
    yield _Cited("", entity, None, log, position, "")
    if body.get("as_of") is not None:
        yield _Cited("", entity, None, log, body["as_of"], "")
    for field, item in _object(body.get("fields")).items():
        about = field if body.get("within") == RECALL else entity  # a recall names each entity that it found
        for name in ("observation", "observations"):
            named = _object(item).get(name)
            if named is not None:
                path = f"/fields/{pointer_part(str(field))}"
                yield _Cited(path, about, named, log, position, name)


def _decided(body: Mapping[str, Any]) -> Iterator[_Cited]:
    for name, origin in _object(body.get("facts_origin")).items():
        yield from _origin(origin, f"/facts_origin/{pointer_part(str(name))}")
    for number, origin in enumerate(_list(body.get("on"))):
        yield from _origin(origin, f"/on/{number}")
        yield from _origin(_object(origin).get("origin"), f"/on/{number}/origin")
    for number, tried in enumerate(_list(body.get("rules"))):
        for place, condition in enumerate(_list(_object(tried).get("conditions"))):
            yield from _origin(_object(condition).get("origin"), f"/rules/{number}/conditions/{place}/origin")


def _origin(origin: object, path: str) -> Iterator[_Cited]:
    told = _object(origin)
    if told.get("kind") == "read":
        yield _Cited(
            path, told.get("entity"), told.get("observations"), told.get("log"), told.get("position"), "observations"
        )


def _started(body: Mapping[str, Any]) -> Iterator[_Cited]:
    basis, using = _object(body.get("basis")), _object(body.get("using"))
    yield _Cited("/basis", None, None, basis.get("log"), basis.get("position"), "")
    for kind in ("runbook", "tool_config"):
        for number, item in enumerate(_list(using.get(kind))):
            told = _object(item)
            path, version = f"/using/{kind}/{number}", told.get("version")
            yield _Cited(path, told.get("entity"), told.get("observation"), basis.get("log"), version, "observation")


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

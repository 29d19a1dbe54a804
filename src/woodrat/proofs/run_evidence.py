"""Run evidence: the entries that a capsule of a run or of one decision is made of.

All entries of the run are in it, so that a step that was left out shows. Of what it read there are the observations
that its reads and the origins of its facts name, the relations that made them one with the entity read, and the schemas
in force at the reads. docs/formats/capsule.md says what a verifier asks of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.canon import form, ids
from woodrat.errors import NotFound, Refused, shown
from woodrat.ledger.read import Reader
from woodrat.proofs.capsule import NOTHING, missing
from woodrat.runs.owner import owned
from woodrat.state.asof import AsOf
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.canon.ids import Ref
    from woodrat.log.entry import Entry
    from woodrat.proofs.capsule import Gathered

Bodies = list[tuple["Entry", dict[str, Any]]]
"""Entries of a run with their bodies, by position."""


def gather_run(gathered: Gathered, what: str) -> dict[str, Any]:
    """Gather a run, or one stage of it named as RUN#stage, and return the claim."""
    id, mark, stage = what.partition("#")
    tracer = gathered.tracer
    bodies = _bodies(id, tracer.view.run(id, tracer.through))
    if not bodies:
        raise missing("run", id, tracer.through, "`runs list` shows those there are.")
    decided = [(entry, body) for entry, body in bodies if entry.kind == "run.decided"]
    claimed = [body for _, body in decided if not mark or body.get("stage") == stage]
    if mark and not claimed:
        stages = ", ".join(dict.fromkeys(str(body.get("stage")) for _, body in decided))
        raise NotFound(
            f"{id} did not decide {shown(stage)}. {NOTHING} It decided {stages or 'nothing'}.",
            {"run": id, "stage": stage},
        )
    gathered.add(entry.position for entry, _ in bodies)
    origins = [origin for body in claimed for origin in _origins(body) if origin.get("kind") == "read"]
    wanted = {(_place(origin), origin.get("field")) for origin in origins}
    places: set[bytes] = set()
    for entry, body in bodies:
        if entry.kind == "run.read":
            places.add(_place(body))
            fields = _mapping(body.get("fields"))
            named = [_mapping(item) for name, item in fields.items() if not mark or (_place(body), name) in wanted]
            if named:
                _read(gathered, body, [id for item in named for id in _named(item)], entry)
    for origin in origins:
        if _place(origin) not in places:
            _read_outside(gathered, origin)
    for written in tracer.recounter.written(id):
        found = tracer.observation(ids.name("observation", _digest(written)))
        if found is not None:
            gathered.said(found)
    _erased_writes(gathered, id, bodies)
    return {"kind": "decision", "run": id, "stage": stage} if mark else {"kind": "run", "run": id}


def _bodies(run: str, entries: Iterable[Entry]) -> Bodies:
    """Return the entries that are part of the run and have a body."""
    bodies = [(entry, form.decode(entry.body)) for entry in owned(run, entries) if entry.body is not None]
    return [(entry, body) for entry, body in bodies if isinstance(body, dict)]


def _read(gathered: Gathered, body: dict[str, Any], names: list[str], entry: Entry) -> None:
    """Add what one read names: observations, relations and the schema in force."""
    found = [stored for name in names if (stored := gathered.tracer.observation(name)) is not None]
    for stored in found:
        gathered.said(stored)
    entity = _ref(body.get("entity"))
    if entity is None:
        return  # it was erased, and nobody can say what the schema was of
    gathered.schema(body.get("schema") if isinstance(body.get("schema"), str) else None)
    if all(stored.observation.entity == entity for stored in found):
        return
    position, effective = body.get("position"), body.get("effective")
    here = type(position) is int and entry.envelope.origin is None
    through = position if here and type(position) is int else gathered.tracer.through
    gathered.joins(_reader(gathered, through, effective if isinstance(effective, str) else None), entity)


def _read_outside(gathered: Gathered, origin: dict[str, Any]) -> None:
    """Add what a fact rests on that was read without the run recording it."""
    entity, position = _ref(origin.get("entity")), origin.get("position")
    if entity is None or type(position) is not int or position > gathered.tracer.through:
        return
    reader = _reader(gathered, position, None)
    for name in _list(origin.get("observations")):
        stored = gathered.tracer.observation(name) if isinstance(name, str) else None
        if stored is not None:
            gathered.said(stored)
            if stored.observation.entity != entity:
                gathered.joins(reader, entity)
    gathered.schema(schema_name(reader.rules(entity.type).schema))


def _reader(gathered: Gathered, position: int, effective: str | None) -> Reader:
    reader = gathered.tracer.reader
    return Reader(reader.view, AsOf(position, effective), reader.policies)


def _erased_writes(gathered: Gathered, id: str, bodies: Bodies) -> None:
    """Add blank observations for numbered steps of the run whose writes were erased, one for each at most."""
    ended = [body for entry, body in bodies if entry.kind == "run.ended"]
    start = min((entry.position for entry, _ in bodies), default=0)
    if len(ended) != 1 or ended[0].get("numbered") is not True or type(ended[0].get("step")) is not int:
        return
    tracer = gathered.tracer
    taken = {body.get("step") for entry, body in bodies if entry.kind != "run.judged"}
    taken.update(
        form.decode(entry.body).get("step") for entry in tracer.recounter.written(id) if entry.body is not None
    )
    taken.update(_list(ended[0].get("skipped")))
    count = sum(number not in taken for number in range(ended[0]["step"] + 1))
    if not count:
        return
    basis = _mapping(bodies[0][1].get("basis")).get("position")
    after = min(start, basis) if type(basis) is int else start
    writes: set[int] = set()
    for entry in tracer.view.entries(after, tracer.through, {"observation"}):
        if entry.body is None and entry.envelope.write not in writes and len(writes) < count:
            writes.add(entry.envelope.write)
            gathered.add([entry.position])


def _origins(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the origins of a decision: of its facts, and of its conditions."""
    yield from map(_mapping, _mapping(body.get("facts_origin")).values())
    for rule in map(_mapping, _list(body.get("rules"))):
        for condition in map(_mapping, _list(rule.get("conditions"))):
            yield _mapping(condition.get("origin"))


def _named(item: dict[str, Any]) -> list[str]:
    names = _list(item.get("observations")) or [item.get("observation")]
    return [name for name in names if isinstance(name, str)]


def _place(body: dict[str, Any]) -> bytes:
    """Return what a read and an origin that names it have in common."""
    return form.serialise([body.get("entity"), body.get("position")])


def _ref(text: object) -> Ref | None:
    try:
        return ids.parse_ref(text) if isinstance(text, str) else None
    except Refused:
        return None


def _digest(entry: Entry) -> bytes:
    from woodrat.canon.digest import digest

    assert entry.body is not None, "what a shelf names is there"
    return digest("observation", entry.body)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

"""Proof reader: collects the entries of a proof or a capsule.

A run comes with all its entries, so that an omitted step shows. Its reads come with the observations that they and the
origins of facts name, the losing claims, the relations that joined entities, and the schemas in force at the reads.
docs/formats/capsule.md lists the checks of a verifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.digest import digest as digest_of
from woodrat.errors import Corrupt, Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.matches import find_ref
from woodrat.ledger.read import Reader
from woodrat.log import erasure, tree
from woodrat.merge import BUILTIN, claim_of, known_policy
from woodrat.proofs.proof import NO_CAPSULE, NOT_PROVEN, Proof
from woodrat.runs import index
from woodrat.state.asof import AsOf
from woodrat.state.observation import STATING
from woodrat.state.relation import SAME_AS, joined
from woodrat.state.run_owner import owned
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.log.entry import Entry
    from woodrat.merge.snapshot import Snapshot
    from woodrat.proofs.proof import Signed
    from woodrat.state.asof import Stored
    from woodrat.state.observation import Observation

ENTRIES_MAX: Final = 10_000
"""Most entries a capsule holds."""
SOURCE_BYTES_MAX: Final = 1_048_576
"""Longest content of a source in a capsule; of a longer one only its deliveries are included."""
MERGED_MAX: Final = 1_000
"""Most observations in a capsule of a run that one read merged; above that, only the named ones are included."""

Bodies = list[tuple["Entry", dict[str, Any]]]
"""Entries of a run with their bodies, by position."""


def position_of(view: View, what: object) -> int:
    """Return the position of an observation's id or name, or of a position itself."""
    remedy = "Name an observation (obs_…) or a position of the log."
    if isinstance(what, bool) or not isinstance(what, int | str):
        raise Refused([Fault("what", f"got {shown(what)}", remedy)], NOT_PROVEN)
    if isinstance(what, str) and what.isascii() and what.isdigit() and len(what) < 17:
        what = int(what)
    if isinstance(what, int):
        if not 0 <= what < view.head().size:
            problem = f"There is no entry {what}: the log has {view.head().size}. {NOT_PROVEN} {remedy}"
            raise NotFound(problem, {"position": what})
        return what
    digest = ids.digest_of("observation", what)
    if digest is None and not ids.is_id("observation", what):
        raise Refused([Fault("what", f"{shown(what)} is neither", remedy)], NOT_PROVEN)
    head = view.head().position
    found = view.observation(what) if digest is None else view.observation(digest, head)
    if found is None:
        problem = f"There is no observation {what} here. {NOT_PROVEN} `observations list` lists them."
        raise NotFound(problem, {"observation": what})
    return found.position


def proof_of(view: View, position: int, signed: Signed) -> Proof:
    """Return the proof of one entry; checked before it is returned."""
    entry = view.entry(position)
    size = signed.checkpoint.size
    assert entry is not None and position < size, "the checkpoint covers the entry"
    hashes = tree.inclusion_proof(view.nodes(), position, size)
    if not tree.verify_inclusion(entry.leaf(), position, size, hashes, signed.checkpoint.root):
        raise Corrupt(
            f"entry {position}: it does not lead to the root of its checkpoint, {signed.checkpoint.root.hex()}. "
            f"{NOT_PROVEN} Stop writing and verify the ledger.",
            {"position": position, "damage": "leaf"},
        )
    return Proof(entry, hashes, signed)


class CapsuleEntries:
    """The positions of the entries that a claim needs."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.positions: set[int] = set()
        self._schemas: list[Entry] | None = None

    def add(self, positions: Iterable[int]) -> None:
        """Add entries by position, within the bound."""
        self.positions.update(positions)
        if len(self.positions) > ENTRIES_MAX:
            problem = f"more than {ENTRIES_MAX} entries are behind it"
            remedy = "Name one decision as RUN#stage, or single observations."
            raise Refused([Fault("what", problem, remedy)], NO_CAPSULE)

    def said(self, stored: Stored) -> None:
        """Add an observation and where it came from."""
        behind = self.tracer.entries_behind(stored)
        self.add([stored.position])
        self.add(e.position for e in behind if e.kind != "source" or len(e.body or b"") <= SOURCE_BYTES_MAX)

    def schema(self, name: str | None) -> int | None:
        """Add a schema by its full name, where the log first has it; return its position."""
        if name is None:
            return None
        if self._schemas is None:
            self._schemas = list(self.tracer.view.entries(through=self.tracer.through, kinds={"schema"}))
        digest = ids.digest_of("schema", name)
        for entry in self._schemas:
            if entry.body is not None and digest_of("schema", entry.body) == digest:
                self.add([entry.position])
                return entry.position
        return None

    def joins(self, reader: Reader, ref: Ref) -> None:
        """Add the observations of the relations that join a group, as a reader sees it."""
        members = set(reader.group(ref))
        edges: dict[Ref, None] = {}
        for member in members if len(members) > 1 else ():
            edges.update(
                dict.fromkeys(entry_index.relations(reader.view, member.digest, SAME_AS, reader.asof.position))
            )
        for edge in edges:
            if set(joined(edge) or ()) <= members:
                for stored in reader.stored((edge,)):
                    self.said(stored)

    def erasures(self) -> None:
        """Add the erasures that explain blank or rewritten entries."""
        view, through = self.tracer.view, self.tracer.through
        known = [
            (entry, erasure.stored(entry.body)) for entry in view.entries(-1, through, {erasure.KIND}) if entry.body
        ]
        entries = [view.entry(position) for position in sorted(self.positions)] if known else []
        for entry in entries:
            if entry is not None and entry.kind != erasure.KIND:
                self.add(made.position for made, told in known if _explains(made, told, entry))

    def observation(self, id: str) -> dict[str, Any]:
        """Gather one observation."""
        found = self.tracer.observation(id)
        if found is None:
            raise _missing("observation", id, self.tracer.through, "`observations list` lists them.")
        self.said(found)
        return {"kind": "observation", "observation": found.observation.name}

    def field(self, entity: str, name: str) -> dict[str, Any]:
        """Gather everything that was stated of a field, and all that could undo it."""
        reader = self.tracer.reader
        ref = find_ref(reader, entity, NO_CAPSULE, path="what")
        snapshot = reader.snapshot(ref)
        if name not in snapshot.fields:
            known = ", ".join(snapshot.fields) or "no field"
            raise NotFound(
                f"{ref}#{name}: it has no value at position {self.tracer.through}. {NO_CAPSULE} "
                f"The entity has {known}.",
                {"entity": str(ref), "field": name, "position": self.tracer.through},
            )
        rules = reader.rules(ref.type)
        policy = rules.schema.policy_of(name)
        if known_policy(policy, BUILTIN) is None:
            problem = f"{ref}#{name} is merged by {policy}, whose code verifiers lack"
            raise Refused([Fault("what", problem, "Make capsules of the observations that `blame` shows.")], NO_CAPSULE)
        misfits: list[int] = []
        for item in _merged(reader.stored(snapshot.members), {name}):
            said = item.observation
            self.said(item)
            states = said.op in STATING and name in said.stated
            if states and rules.misfit(name, claim_of(said, name), name in said.fields) is not None:
                misfits.append(item.position)
        self.joins(reader, ref)
        claim = {"kind": "field", "entity": str(ref), "field": name, "value": snapshot.fields[name]}
        position = self.schema(schema_name(rules.schema))
        return {**claim, "misfits": sorted(misfits), **({} if position is None else {"schema": position})}


def _merged(stored: Iterable[Stored], names: Collection[str]) -> list[Stored]:
    """Return the observations that affect some fields: they state one, may undo such a statement, or are replaced."""
    known = {item.observation.digest: item for item in stored}
    waiting = [item for item in known.values() if _counts(item.observation, names)]
    found: dict[bytes, Stored] = {}
    while waiting:
        item = waiting.pop()
        if item.observation.digest not in found:
            found[item.observation.digest] = item
            waiting += [known[digest] for digest in item.observation.replaces if digest in known]
    return list(found.values())


def _counts(said: Observation, names: Collection[str]) -> bool:
    """Return True if an observation matters to some fields by itself: it states one, or may undo such a statement."""
    return said.op not in STATING or any(name in said.stated for name in names)


def _explains(made: Entry, told: erasure.Erasure, entry: Entry) -> bool:
    """Return True if an erasure explains a blank entry, or is the one whose write rewrote it."""
    if entry.body is not None:
        return made.envelope.write == entry.envelope.write and made.position < entry.position
    if not any(first <= entry.position <= last for first, last in told.positions):
        return False
    return (told.log == made.log and entry.position < made.position) or told.log == entry.log


def _missing(kind: str, id: str, position: int, remedy: str) -> NotFound:
    """Return the error for something the log does not have."""
    return NotFound(f"There is no {kind} {id} at position {position}. {NO_CAPSULE} {remedy}", {kind: id})


# A run, or one decision of it


def gather_run(gathered: CapsuleEntries, what: str) -> dict[str, Any]:
    """Gather a run, or one stage of it named as RUN#stage, and return the claim."""
    id, mark, stage = what.partition("#")
    tracer = gathered.tracer
    bodies = _bodies(id, entry_index.run_entries(tracer.view, id, tracer.through))
    if not bodies:
        raise _missing("run", id, tracer.through, "`runs list` lists them.")
    decided = [(entry, body) for entry, body in bodies if entry.kind == "run.decided"]
    claimed = [body for _, body in decided if not mark or body.get("stage") == stage]
    if mark and not claimed:
        stages = ", ".join(dict.fromkeys(str(body.get("stage")) for _, body in decided))
        raise NotFound(
            f"{id} has no decision {shown(stage)}. {NO_CAPSULE} It decided {stages or 'nothing'}.",
            {"run": id, "stage": stage},
        )
    gathered.add(entry.position for entry, _ in bodies)
    origins = [origin for body in claimed for origin in _origins(body) if origin.get("kind") == "read"]
    # An entry from another log may have anything in place of a field's name; no read returned such a field.
    wanted = {(_place(origin), field) for origin in origins if isinstance(field := origin.get("field"), str)}
    places: set[bytes] = set()
    reads: list[tuple[Entry, dict[str, Any], dict[str, dict[str, Any]]]] = []
    for entry, body in bodies:
        if entry.kind == "run.read":
            places.add(_place(body))
            fields = _mapping(body.get("fields"))
            items = {
                name: _mapping(item) for name, item in fields.items() if not mark or (_place(body), name) in wanted
            }
            if items:
                reads.append((entry, body, items))
                _read(gathered, body, [id for item in items.values() for id in _named(item)], entry)
    for origin in origins:
        if _place(origin) not in places:
            _read_outside(gathered, origin)
    for written in index.written(tracer.view, id, tracer.through):
        assert written.body is not None, "entries that an index names exist"
        found = tracer.observation(ids.name("observation", digest_of("observation", written.body)))
        if found is not None:
            gathered.said(found)
    _erased_writes(gathered, id, bodies)
    claim = {"kind": "decision", "run": id, "stage": stage} if mark else {"kind": "run", "run": id}
    left_out = [entry.position for entry, body, items in reads if not _lost(gathered, entry, body, items)]
    return {**claim, "left_out": left_out}


def _lost(gathered: CapsuleEntries, entry: Entry, body: dict[str, Any], items: dict[str, dict[str, Any]]) -> bool:
    """Add the other observations that a read merged; return False if they are too many, or gone from the log."""
    entity, position = _ref(body.get("entity")), body.get("position")
    if entity is None or type(position) is not int or entry.envelope.origin is not None or "effective" in body:
        return True  # its merge was not requested
    if body.get("log") != entry.log:
        return False
    reader = _reader(gathered, position, None)
    try:
        snapshot = reader.find(entity)
    except Refused:  # a policy of the user's own that is not known here
        return False
    if snapshot is None:
        return False
    if not all(_is_as_read(snapshot, name, item) for name, item in items.items()):
        return False  # a merged observation was erased since
    merged = _merged(reader.stored(snapshot.members), items)
    if len(merged) > MERGED_MAX or len(gathered.positions) + len(merged) > ENTRIES_MAX:
        return False
    gathered.add(item.position for item in merged)
    gathered.joins(reader, entity)
    return True


def _is_as_read(snapshot: Snapshot, name: str, item: dict[str, Any]) -> bool:
    """Return True if a field equals the value recorded by a read of the same moment, in the parts that both show."""
    if name not in snapshot.fields:
        return False
    named = _named(item)
    if snapshot.fact(name).origin["observations"][: len(named)] != named:
        return False
    recorded = form.serialise(item.get("value"))
    whole = not any(mark in recorded for mark in (b'"$truncated"', b'"$unserialisable"', b'"[REDACTED]"'))
    return not whole or recorded == form.serialise(snapshot.fields[name])


def _bodies(run: str, entries: Iterable[Entry]) -> Bodies:
    """Return the entries of the run that have a body."""
    bodies = [(entry, form.decode(entry.body)) for entry in owned(run, entries) if entry.body is not None]
    return [(entry, body) for entry, body in bodies if isinstance(body, dict)]


def _read(gathered: CapsuleEntries, body: dict[str, Any], names: list[str], entry: Entry) -> None:
    """Add the entries that one read names: observations, relations and the schema in force."""
    found = [stored for name in names if (stored := gathered.tracer.observation(name)) is not None]
    for stored in found:
        gathered.said(stored)
    entity = _ref(body.get("entity"))
    if entity is None:
        return  # it was erased, so its schema is unknown
    gathered.schema(body.get("schema") if isinstance(body.get("schema"), str) else None)
    if all(stored.observation.entity == entity for stored in found):
        return
    position, effective = body.get("position"), body.get("effective")
    here = type(position) is int and entry.envelope.origin is None
    through = position if here and type(position) is int else gathered.tracer.through
    gathered.joins(_reader(gathered, through, effective if isinstance(effective, str) else None), entity)


def _read_outside(gathered: CapsuleEntries, origin: dict[str, Any]) -> None:
    """Add the entries behind a fact that was read without a recorded read."""
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


def _reader(gathered: CapsuleEntries, position: int, effective: str | None) -> Reader:
    reader = gathered.tracer.reader
    return Reader(reader.view, AsOf(position, effective), reader.policies)


def _erased_writes(gathered: CapsuleEntries, id: str, bodies: Bodies) -> None:
    """Add blank observations for numbered steps of the run whose writes were erased, at most one for each."""
    ended = [body for entry, body in bodies if entry.kind == "run.ended"]
    start = min((entry.position for entry, _ in bodies), default=0)
    if len(ended) != 1 or ended[0].get("numbered") is not True or type(ended[0].get("step")) is not int:
        return
    tracer = gathered.tracer
    taken = {body.get("step") for entry, body in bodies if entry.kind != "run.judged"}
    taken.update(
        form.decode(entry.body).get("step")
        for entry in index.written(tracer.view, id, tracer.through)
        if entry.body is not None
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
    """Return the key that a read shares with an origin that names it."""
    return form.serialise([body.get("entity"), body.get("position")])


def _ref(text: object) -> Ref | None:
    try:
        return ids.parse_ref(text) if isinstance(text, str) else None
    except Refused:
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

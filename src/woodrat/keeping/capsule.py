"""Capsule: one file that proves an observation, a field or a decision to somebody who has nothing of ours.

It holds entries of the log with their inclusion proofs, the checkpoint they lead to, and what is claimed of them. Who
reads it needs the signer's public key and one of the two stand-alone verifiers, which work the claim out again from the
entries. Nothing is in it that they do not check. The format is in docs/formats/capsule.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.canon.digest import FORMAT
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.frozen import dataclass
from woodrat.keeping import proving
from woodrat.ledger.moments import resolve_ref
from woodrat.runs.owner import owned
from woodrat.state.observation import STATING
from woodrat.state.policy import BUILTIN, claim_of
from woodrat.state.relation import SAME_AS, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.ids import Ref
    from woodrat.keeping.proving import Proof
    from woodrat.keeping.signing import Signed, Signing
    from woodrat.ledger.past import Past
    from woodrat.ledger.tracing import Tracer
    from woodrat.log.entry import Entry
    from woodrat.views.asof import Stored

ENTRIES_MAX: Final = 10_000
"""Most entries a capsule holds."""
SOURCE_BYTES_MAX: Final = 1_048_576
"""Longest content of a source that goes into a capsule; of a longer one only its deliveries do."""

_WHAT: Final = "Name a run, a decision as RUN#stage, an observation (obs_…), or a field as type/key#field."
_NOTHING: Final = "No capsule was made."


@dataclass(frozen=True, slots=True)
class Capsule:
    """What is claimed, and the entries that show it."""

    claim: Mapping[str, Any]
    """What the verifiers work out again."""
    proofs: tuple[Proof, ...]
    """The entries with their proofs, by position."""
    checkpoint: Signed
    """The checkpoint they lead to."""

    def to_json(self) -> dict[str, Any]:
        """Return the capsule as the document that both verifiers read."""
        entries = [{**proof.entry.to_json(), "proof": [item.hex() for item in proof.hashes]} for proof in self.proofs]
        return {
            "woodrat": "capsule",
            "format": FORMAT,
            "claim": {**self.claim, "positions": [proof.entry.position for proof in self.proofs]},
            "checkpoint": self.checkpoint.note,
            "entries": entries,
        }

    def to_bytes(self) -> bytes:
        """Return the document as it is written to a file, where every byte counts."""
        return proving.written(self.to_json())


def make(ledger: Past, signing: Signing, what: object) -> Capsule:
    """Return a capsule of a run, a decision, an observation or a field, as of the checkpoint that it ends in."""
    if not isinstance(what, str):
        raise Refused([Fault("what", f"expected text, got {shown(what)}", _WHAT)], _NOTHING)
    if not what.startswith(("run_", "obs_")) and (not what.partition("#")[0] or "#" not in what):
        raise Refused([Fault("what", f"{shown(what)} names no field", _WHAT)], _NOTHING)
    signed = _latest(signing)
    with ledger.at(signed.checkpoint.size - 1)._tracer() as tracer:
        gathered = _Gathered(tracer)
        if what.startswith("run_"):
            claim = gathered.run(what)
        elif what.startswith("obs_"):
            claim = gathered.observation(what)
        else:
            claim = gathered.field(*what.rsplit("#", 1))
        proofs = tuple(proving.proof_of(tracer.view, position, signed) for position in sorted(gathered.positions))
    return Capsule(claim, proofs, signed)


def _latest(signing: Signing) -> Signed:
    """Return a checkpoint of now; the last one there is where none can be signed here."""
    try:
        return signing.sign()
    except (Unavailable, Refused):
        return signing.covering(0)


class _Gathered:
    """The positions of the entries that a claim needs."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self.positions: set[int] = set()

    def _add(self, positions: Iterable[int]) -> None:
        self.positions.update(positions)
        if len(self.positions) > ENTRIES_MAX:
            problem = f"more than {ENTRIES_MAX} entries lie behind it"
            remedy = "Name one decision as RUN#stage, or single observations."
            raise Refused([Fault("what", problem, remedy)], _NOTHING)

    def _said(self, stored: Stored) -> None:
        """Add an observation and where it came from."""
        behind = self._tracer.entries_behind(stored)
        self._add([stored.position])
        self._add(e.position for e in behind if e.kind != "source" or len(e.body or b"") <= SOURCE_BYTES_MAX)

    def observation(self, id: str) -> dict[str, Any]:
        """Gather one observation."""
        found = self._tracer.observation(id)
        if found is None:
            raise _missing("observation", id, self._tracer.through, "`observations list` shows those there are.")
        self._said(found)
        return {"kind": "observation", "observation": found.observation.name}

    def field(self, entity: str, name: str) -> dict[str, Any]:
        """Gather everything that was said of a field, and all that could undo it."""
        tracer = self._tracer
        ref = resolve_ref(tracer.reader, entity)
        snapshot = tracer.reader.snapshot(ref)
        if name not in snapshot.fields:
            known = ", ".join(snapshot.fields) or "no field"
            raise NotFound(
                f"{ref}#{name}: nothing is believed of it at position {tracer.through}. {_NOTHING} "
                f"The entity has {known}.",
                {"entity": str(ref), "field": name, "position": tracer.through},
            )
        rules = tracer.reader.rules(ref.type)
        policy = rules.schema.policy_of(name)
        if policy.name not in BUILTIN or policy.version is not None:
            problem = f"{ref}#{name} is merged by {policy}, whose code no verifier has"
            raise Refused([Fault("what", problem, "Make capsules of the observations that `blame` shows.")], _NOTHING)
        misfits: list[int] = []
        for stored in tracer.reader.stored(snapshot.members):
            said = stored.observation
            states = said.op in STATING and name in said.stated
            if states or said.op not in STATING:
                self._said(stored)
            if states and rules.misfit(name, claim_of(said, name), name in said.fields) is not None:
                misfits.append(stored.position)
        self._joins(snapshot.members)
        self._schema(ref.type)
        value = snapshot.fields[name]
        return {"kind": "field", "entity": str(ref), "field": name, "value": value, "misfits": misfits}

    def _joins(self, members: tuple[Ref, ...]) -> None:
        """Add what was said of the relations that make a group one."""
        tracer = self._tracer
        edges: dict[Ref, None] = {}
        for member in members if len(members) > 1 else ():
            edges.update(dict.fromkeys(tracer.view.relations(member.digest, SAME_AS, tracer.through)))
        for edge in edges:
            if set(joined(edge) or ()) <= set(members):
                for stored in tracer.reader.stored((edge,)):
                    self._said(stored)

    def run(self, what: str) -> dict[str, Any]:
        """Gather a run, or one stage of it, with what it read and where that came from."""
        id, mark, stage = what.partition("#")
        entries = owned(id, self._tracer.view.run(id, self._tracer.through))
        if not entries:
            raise _missing("run", id, self._tracer.through, "`runs list` shows those there are.")
        bodies = [(entry, form.decode(entry.body)) for entry in entries if entry.body is not None]
        if mark:
            bodies = _of_stage(id, bodies, stage)
            self._add(entry.position for entry, _ in bodies)
        else:
            self._add(entry.position for entry in entries)
        # What was recorded elsewhere may have any shape; what has not its own counts as left out.
        read: set[str] = set()
        types: set[str] = set()
        for entry, body in bodies:
            if entry.kind == "run.read" and isinstance(body, dict):
                types.add(str(body.get("entity")).partition("/")[0])
                for item in _mapping(body.get("fields")).values():
                    told = _mapping(item)
                    names = _list(told.get("observations")) or [told.get("observation")]
                    read.update(name for name in names if isinstance(name, str))
        for name in sorted(read):
            found = self._tracer.observation(name)
            if found is not None:
                self._said(found)
        for type in sorted(types):
            self._schema(type)
        return {"kind": "decision", "run": id, "stage": stage} if mark else {"kind": "run", "run": id}

    def _schema(self, type: str) -> None:
        """Add the schema in force for a type; a type without one has no entry."""
        found = self._tracer.view.schema(type, self._tracer.through)
        if found is None or found.is_open:
            return
        for entry in self._tracer.view.entries(through=self._tracer.through, kinds={"schema"}):
            if entry.body == found.body:
                self._add([entry.position])
                return


def _of_stage(id: str, bodies: list[tuple[Entry, Any]], stage: str) -> list[tuple[Entry, Any]]:
    """Return the entries that one stage rests on: the run's ends, its decisions, and what their facts came from."""
    said = [(entry, body) for entry, body in bodies if entry.kind == "run.decided"]
    decided = [(entry, body) for entry, body in said if body.get("stage") == stage]
    if not decided:
        stages = ", ".join(dict.fromkeys(str(body.get("stage")) for _, body in said))
        raise NotFound(
            f"{id} did not decide {shown(stage)}. {_NOTHING} It decided {stages or 'nothing'}.",
            {"run": id, "stage": stage},
        )
    origins = [
        _mapping(condition.get("origin"))
        for _, body in decided
        for rule in map(_mapping, _list(body.get("rules")))
        for condition in map(_mapping, _list(rule.get("conditions")))
    ]
    spans = {_named(origin, "span") for origin in origins if origin.get("kind") in ("tool", "model")}
    reads = {_named(origin, "entity", "position") for origin in origins if origin.get("kind") == "read"}

    def needed(entry: Entry, body: Any) -> bool:
        if entry.kind in ("run.tool", "run.model"):
            return _named(body, "span") in spans
        if entry.kind == "run.read":
            return _named(body, "entity", "position") in reads
        return entry.kind in ("run.started", "run.ended")

    chosen = {entry.position for entry, _ in decided}
    return [(entry, body) for entry, body in bodies if entry.position in chosen or needed(entry, body)]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _named(body: dict[str, Any], *parts: str) -> bytes:
    return form.serialise([body.get(part) for part in parts])


def _missing(kind: str, id: str, position: int, remedy: str) -> NotFound:
    return NotFound(f"There is no {kind} {id} at position {position}. {_NOTHING} {remedy}", {kind: id})

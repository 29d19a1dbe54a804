"""Capsule: one file that proves an observation, a field or a decision to somebody who has nothing of ours.

It holds entries of the log with their inclusion proofs, the checkpoint they lead to, and what is claimed of them. Who
reads it needs the signer's public key and one of the two stand-alone verifiers, which work the claim out again from the
entries. Nothing is in it that they do not check. The format is in docs/formats/capsule.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import ids
from woodrat.canon.digest import FORMAT
from woodrat.canon.digest import digest as digest_of
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.ledger.moments import resolve_ref
from woodrat.log import erasure
from woodrat.merge import BUILTIN, claim_of
from woodrat.proofs import proof as proofs_proof
from woodrat.records import dataclass
from woodrat.state.observation import STATING
from woodrat.state.relation import SAME_AS, joined
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.api.past import Past
    from woodrat.canon.ids import Ref
    from woodrat.explain.reader import Tracer
    from woodrat.ledger.read import Reader
    from woodrat.log.entry import Entry
    from woodrat.proofs.proof import Proof
    from woodrat.proofs.verbs.signer import Signed, Signing
    from woodrat.state.asof import Stored
    from woodrat.state.observation import Observation

ENTRIES_MAX: Final = 10_000
"""Most entries a capsule holds."""
SOURCE_BYTES_MAX: Final = 1_048_576
"""Longest content of a source that goes into a capsule; of a longer one only its deliveries do."""

_WHAT: Final = "Name a run, a decision as RUN#stage, an observation (obs_…), or a field as type/key#field."
NOTHING: Final = "No capsule was made."


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
        return proofs_proof.written(self.to_json())


def make(ledger: Past, signing: Signing, what: object) -> Capsule:
    """Return a capsule of a run, a decision, an observation or a field, as of the checkpoint that it ends in."""
    if not isinstance(what, str):
        raise Refused([Fault("what", f"expected text, got {shown(what)}", _WHAT)], NOTHING)
    if not what.startswith(("run_", "obs_")) and (not what.partition("#")[0] or "#" not in what):
        raise Refused([Fault("what", f"{shown(what)} names no field", _WHAT)], NOTHING)
    signed = _latest(signing)
    with ledger.at(signed.checkpoint.size - 1)._tracer() as tracer:
        gathered = Gathered(tracer)
        if what.startswith("run_"):
            from woodrat.proofs.run_evidence import gather_run

            claim = gather_run(gathered, what)
        elif what.startswith("obs_"):
            claim = gathered.observation(what)
        else:
            claim = gathered.field(*what.rsplit("#", 1))
        gathered.erasures()
        proofs = tuple(proofs_proof.proof_of(tracer.view, position, signed) for position in sorted(gathered.positions))
    return Capsule(claim, proofs, signed)


def _latest(signing: Signing) -> Signed:
    """Return a checkpoint of now; the last one there is where none can be signed here."""
    try:
        return signing.sign()
    except (Unavailable, Refused):
        return signing.covering(0)


class Gathered:
    """The positions of the entries that a claim needs."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.positions: set[int] = set()
        self._schemas: list[Entry] | None = None

    def add(self, positions: Iterable[int]) -> None:
        """Add entries by position, within the bound."""
        self.positions.update(positions)
        if len(self.positions) > ENTRIES_MAX:
            problem = f"more than {ENTRIES_MAX} entries lie behind it"
            remedy = "Name one decision as RUN#stage, or single observations."
            raise Refused([Fault("what", problem, remedy)], NOTHING)

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
        """Add what was stated of the relations that make a group one, as a reader sees it."""
        members = set(reader.group(ref))
        edges: dict[Ref, None] = {}
        for member in members if len(members) > 1 else ():
            edges.update(dict.fromkeys(reader.view.relations(member.digest, SAME_AS, reader.asof.position)))
        for edge in edges:
            if set(joined(edge) or ()) <= members:
                for stored in reader.stored((edge,)):
                    self.said(stored)

    def erasures(self) -> None:
        """Add the erasures that say why an entry is blank, or was said again."""
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
            raise missing("observation", id, self.tracer.through, "`observations list` shows those there are.")
        self.said(found)
        return {"kind": "observation", "observation": found.observation.name}

    def field(self, entity: str, name: str) -> dict[str, Any]:
        """Gather everything that was stated of a field, and all that could undo it."""
        reader = self.tracer.reader
        ref = resolve_ref(reader, entity)
        snapshot = reader.snapshot(ref)
        if name not in snapshot.fields:
            known = ", ".join(snapshot.fields) or "no field"
            raise NotFound(
                f"{ref}#{name}: nothing is believed of it at position {self.tracer.through}. {NOTHING} "
                f"The entity has {known}.",
                {"entity": str(ref), "field": name, "position": self.tracer.through},
            )
        rules = reader.rules(ref.type)
        policy = rules.schema.policy_of(name)
        if policy.name not in BUILTIN or policy.version is not None:
            problem = f"{ref}#{name} is merged by {policy}, whose code no verifier has"
            raise Refused([Fault("what", problem, "Make capsules of the observations that `blame` shows.")], NOTHING)
        misfits: list[int] = []
        stored = {item.observation.digest: item for item in reader.stored(snapshot.members)}
        waiting = [item for item in stored.values() if _counts(item.observation, name)]
        while waiting:
            item = waiting.pop()
            said = item.observation
            if item.position in self.positions:
                continue
            self.said(item)
            states = said.op in STATING and name in said.stated
            if states and rules.misfit(name, claim_of(said, name), name in said.fields) is not None:
                misfits.append(item.position)
            waiting += [stored[digest] for digest in said.replaces if digest in stored]
        self.joins(reader, ref)
        claim = {"kind": "field", "entity": str(ref), "field": name, "value": snapshot.fields[name]}
        position = self.schema(schema_name(rules.schema))
        return {**claim, "misfits": sorted(misfits), **({} if position is None else {"schema": position})}


def _counts(said: Observation, name: str) -> bool:
    """Return whether an observation takes part in a field by itself: it states it, or may undo what does."""
    return said.op not in STATING or name in said.stated


def _explains(made: Entry, told: erasure.Erasure, entry: Entry) -> bool:
    """Return whether an erasure says why an entry is blank, or is the one in whose write it was said again."""
    if entry.body is not None:
        return made.envelope.write == entry.envelope.write and made.position < entry.position
    if not any(first <= entry.position <= last for first, last in told.positions):
        return False
    return (told.log == made.log and entry.position < made.position) or told.log == entry.log


def missing(kind: str, id: str, position: int, remedy: str) -> NotFound:
    """Return the error for something the log does not have."""
    return NotFound(f"There is no {kind} {id} at position {position}. {NOTHING} {remedy}", {kind: id})

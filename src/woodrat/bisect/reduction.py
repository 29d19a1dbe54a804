"""Reduction: a minimal set of observations with the result it shows, as one file that replays anywhere.

The file is canonical JSON, one object per line: the result, schemas, observations, and last the digest of all bytes
before it. docs/formats/reduction.md specifies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from woodrat.bisect.predicate import Predicate, predicate_from_json
from woodrat.canon import form, ids
from woodrat.canon.digest import FORMAT, base32, digest
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, shown
from woodrat.merge import Policy
from woodrat.merge.rules import Rules, rules_of
from woodrat.record_json import WHEN_SET, Record, derived
from woodrat.records import dataclass, field
from woodrat.state import observation, schema
from woodrat.state.match import Match
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema

KIND: Final = "reduction"
LINES_MAX: Final = 100_002
"""Most lines of one file."""
OUTCOME: Final = "Nothing was checked."

_HEAD: Final = frozenset({"format", "kind", "predicate", "question", "fingerprint", "believed", "origin"})


@dataclass(frozen=True, slots=True)
class ReductionOrigin(Record):
    """Where a reduction was made."""

    log: str | None
    """Name of the log; none of an empty one."""
    position: int
    """The position that was read at."""
    valid_at: str | None
    """The effective time of the question; None if all known observations count."""
    observations: int
    """How many observations were there to choose from."""

    def document(self) -> dict[str, Any]:
        """Return the origin as the file has it."""
        return {
            "log": self.log,
            "position": self.position,
            "effective": self.valid_at,
            "observations": self.observations,
        }


@dataclass(frozen=True, slots=True)
class Reduction(Record):
    """A 1-minimal set of observations that shows a predicate, with all that is needed to fold it elsewhere."""

    predicate: Predicate
    """The predicate that it shows."""
    members: tuple[Observation, ...]
    """The observations; leaving out any one of them loses it."""
    schemas: tuple[Schema, ...]
    """The schemas they are merged under, by type; types without one have none."""
    believed: Mapping[str, Mapping[str, Json]]
    """The state of the entities in question under the set alone, by reference: the fields in question."""
    fingerprint: str
    """The fingerprint of a ledger that holds this set and nothing else."""
    origin: ReductionOrigin
    """Where it was made."""
    folds: int = 0
    """How many sets were folded to find it; not part of the file."""
    matched: tuple[Match, ...] = field(default=(), compare=False, metadata=WHEN_SET)
    """How entities were found that were asked about by values that identify them; not part of the file."""

    def __len__(self) -> int:
        return len(self.members)

    @derived
    def question(self) -> str:
        """The result that it shows, in words."""
        return self.predicate.text

    @derived
    def sentence(self) -> str:
        """The result, in a sentence."""
        question, count = self.question, self.origin.observations
        if not self.members:
            return f"{question}: it holds on an empty ledger, so it needs no observation."
        if len(self.members) == 1:
            return f"{question}: 1 of {count} observations shows it by itself ({self.folds} folds)."
        kept = f"{len(self.members)} of {count} observations"
        return f"{question}: {kept} show it by themselves, and none can be left out ({self.folds} folds)."

    def rules_of(self, policies: Mapping[str, Policy]) -> dict[str, Rules]:
        """Return the rules of its types; types without a schema are open."""
        return {found.type: rules_of(found, policies) for found in self.schemas}

    def to_bytes(self) -> bytes:
        """Return the file; equal reductions give equal bytes."""
        head = {
            "format": FORMAT,
            "kind": KIND,
            "question": self.question,
            "predicate": self.predicate.document(),
            "believed": {entity: dict(fields) for entity, fields in self.believed.items()},
            "fingerprint": self.fingerprint,
            "origin": self.origin.document(),
        }
        lines = [form.encode(head)]
        lines += [_line("schema", found.digest, found.body) for found in self.schemas]
        lines += [_line("observation", member.digest, member.body) for member in self.members]
        data = b"\n".join(lines) + b"\n"
        return data + form.serialise({"digest": _sealed(data)}) + b"\n"


def _line(kind: str, of: bytes, body: bytes) -> bytes:
    return b'{"body":%b,"kind":"%b","name":"%b"}' % (body, kind.encode(), ids.name(kind, of).encode())


def _sealed(data: bytes) -> str:
    return base32(digest(KIND, data))


def parse(data: bytes) -> Reduction:
    """Return the reduction that a file holds, or refuse it: another format, a changed byte, anything out of shape."""
    if not isinstance(data, bytes) or not data.strip():
        raise _refused("", "it is empty", "Send a file that `woodrat reduce --out` wrote.")
    lines = data.split(b"\n")
    if lines[-1] != b"" or not 3 <= len(lines) <= LINES_MAX + 1:
        problem = f"{len(lines) - 1} whole lines" if lines[-1] == b"" else "the last line is incomplete"
        raise _refused("", problem, "Send the file whole, as `woodrat reduce --out` wrote it.")
    head = _read(lines[0], 1)
    stated = head.get("format")
    if head.get("kind") != KIND:
        raise _refused("line 1", f"it is no reduction: kind is {shown(head.get('kind'))}", "Send a reduction.")
    if type(stated) is not int or stated != FORMAT:
        remedy = f"This version reads format {FORMAT}; use the Woodrat that wrote the file."
        raise _refused("line 1/format", f"got {shown(stated)}", remedy)
    if _read(lines[-2], len(lines) - 1) != {"digest": _sealed(data[: -len(lines[-2]) - 1])}:
        problem = "the bytes are not those that were written"
        raise _refused("", problem, "Send the file as it was written; not one byte may differ.")
    faults: list[Fault] = []
    schemas: list[Schema] = []
    members: list[Observation] = []
    for number, line in enumerate(lines[1:-2], 2):
        _body(line, number, schemas, members, faults)
    if faults:
        raise Refused(faults, OUTCOME)
    return _headed(head, schemas, members)


def _refused(path: str, problem: str, remedy: str) -> Refused:
    return Refused([Fault(path, problem, remedy)], OUTCOME)


def _read(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = form.parse(line)
    except Refused as refusal:
        faults = [fault.under(f"line {number}") for fault in refusal.faults]
        raise Refused(faults, OUTCOME) from None
    if not isinstance(value, dict) or form.serialise(value) != line:
        problem = "expected one object in canonical form"
        raise _refused(f"line {number}", problem, "Send the file as it was written.")
    return value


def _body(line: bytes, number: int, schemas: list[Schema], members: list[Observation], faults: list[Fault]) -> None:
    value = _read(line, number)
    kind, name = value.get("kind"), value.get("name")
    if value.keys() != {"body", "kind", "name"} or kind not in ("schema", "observation"):
        problem = f"expected a schema or an observation, got kind {shown(kind)}"
        faults.append(Fault(f"line {number}", problem, "Send the file as it was written."))
        return
    body = form.serialise(value["body"])
    try:
        found: Schema | Observation = schema.admit(body) if kind == "schema" else observation.admit(body)
    except Refused as refusal:
        faults += [fault.under(f"line {number}/body") for fault in refusal.faults]
        return
    if ids.name(kind, found.digest) != name:
        problem = f"{shown(name)} is not the name of this body"
        faults.append(Fault(f"line {number}/name", problem, "Send the file as it was written."))
    elif isinstance(found, Schema):
        schemas.append(found)
    else:
        members.append(found)


def _headed(head: Mapping[str, Any], schemas: Sequence[Schema], members: Sequence[Observation]) -> Reduction:
    missing = sorted(_HEAD - head.keys())
    faults = [Fault(f"line 1/{name}", "missing", "Send the file as it was written.") for name in missing]
    origin, believed = head.get("origin"), head.get("believed")
    if not isinstance(origin, dict) or origin.keys() != {"log", "position", "effective", "observations"}:
        faults.append(Fault("line 1/origin", f"got {shown(origin)}", "Send the file as it was written."))
    if not isinstance(believed, dict) or not all(isinstance(fields, dict) for fields in believed.values()):
        faults.append(Fault("line 1/believed", f"got {shown(believed)}", "Send the file as it was written."))
    types = [found.type for found in schemas]
    if len(types) != len(set(types)):
        faults.append(Fault("", "a type has several schemas", "Send the file as it was written."))
    if faults:
        raise Refused(faults, OUTCOME)
    assert isinstance(origin, dict) and isinstance(believed, dict)
    predicate = predicate_from_json(head["predicate"], "line 1/predicate", OUTCOME)
    made = ReductionOrigin(origin["log"], origin["position"], origin["effective"], origin["observations"])
    return Reduction(predicate, tuple(members), tuple(schemas), believed, str(head["fingerprint"]), made)


@dataclass(frozen=True, slots=True)
class ReductionCheck(Record):
    """The result of folding a reduction on an empty ledger."""

    reduction: Reduction
    """The reduction."""
    holds: bool
    """Whether the predicate holds."""
    fingerprint: str
    """The fingerprint of that ledger."""
    removable: tuple[str, ...]
    """Ids of members without which it would still be shown; empty when the set is 1-minimal."""

    @derived
    def same(self) -> bool:
        """Whether all is as the file says: the predicate holds, the state is the same, and no member can go."""
        return self.holds and not self.removable and self.fingerprint == self.reduction.fingerprint

    @derived
    def sentence(self) -> str:
        """The result, in a sentence."""
        question, count = self.reduction.question, len(self.reduction.members)
        these = "this one observation" if count == 1 else f"these {count} observations"
        if not self.holds:
            return f"{question}: it does not hold on {these}."
        if self.removable:
            return f"{question}: it holds, but it would without {', '.join(self.removable)} too."
        if not self.same:
            return f"{question}: it holds, but on another state: {self.fingerprint}, not {self.reduction.fingerprint}."
        return f"{question}: it holds on {these} alone, and no longer with any one left out."

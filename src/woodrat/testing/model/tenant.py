"""Tenant: the entries of one log in order, and everything they say at a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.log.entry import Entry
from woodrat.state import fingerprint, identity, match, observation, relation, schema, tokens
from woodrat.state.asof import Stored
from woodrat.state.note import NOTE
from woodrat.state.schema import Schema
from woodrat.state.schema_keywords import COLLECTIONS
from woodrat.testing.model import provenance
from woodrat.testing.model.merge import ModelFold

STATING = ("assert", "correct")
"""Ops that state values."""


class Model:
    """A tenant: the entries that were accepted, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.erased: dict[int, int] = {}
        """Positions with erased bodies, each with the position of its erasure."""

    def append(self, entries: Iterable[Entry]) -> None:
        """Add accepted entries; they follow the last one, without duplicates."""
        for entry in entries:
            assert entry.position == len(self.entries), f"entry {entry.position} came after {len(self.entries) - 1}"
            if self.entries:
                last = self.entries[-1]
                same_write = entry.envelope.write == last.envelope.write
                assert (entry.recorded_at == last.recorded_at) if same_write else entry.recorded_at > last.recorded_at
            if entry.kind in ("observation", "schema"):
                held = (e for e in self.entries if e.position not in self.erased)
                twice = [e.position for e in held if e.kind == entry.kind and e.body == entry.body]
                assert not twice, f"entries {twice} and {entry.position} are equal"
            if entry.kind == "erasure" and entry.envelope.origin is None:
                body: Any = form.decode(entry.body or b"{}")
                for first, last in body["positions"]:
                    self.erased.update((position, entry.position) for position in range(first, last + 1))
            self.entries.append(entry)

    def erased_at(self, ref: Ref) -> int | None:
        """Return the position of the last erasure after which an entity had no observations."""
        said = {e.position: e for e in self.entries if e.kind == "observation"}
        spoken = [at for at, e in said.items() if observation.stored(e.body or b"").entity == ref]
        for erasure in sorted(set(self.erased.values()), reverse=True):
            write = self.entries[erasure].envelope.write
            said_again = any(said[at].envelope.write == write for at in spoken)  # without the erased names and quotes
            taken = [self.erased.get(at, len(self.entries)) for at in spoken if at < erasure]
            if erasure in taken and max(taken) <= erasure and not said_again:
                return erasure
        return None

    @property
    def spoken(self) -> list[Ref]:
        """Every entity that was ever mentioned, erased or not, by type and key."""
        said = (observation.stored(e.body) for e in self.entries if e.kind == "observation" and e.body is not None)
        return sorted({one.entity for one in said}, key=_name)

    @property
    def position(self) -> int:
        """The position of the last entry; -1 without any."""
        return len(self.entries) - 1

    def position_at(self, time: str) -> int:
        """Return the last position that was recorded by a time, as fixed-width UTC text."""
        return max((entry.position for entry in self.entries if entry.recorded_at <= time), default=-1)

    def at(self, position: int | None = None, valid_at: str | None = None) -> ModelPast:
        """Return the state of the log at a position and a valid time."""
        return ModelPast(self, self.position if position is None else position, valid_at)


class ModelPast:
    """The state of a log at one moment on two clocks."""

    def __init__(self, model: Model, position: int, valid_at: str | None) -> None:
        self.model = model
        self.position = position
        self.valid_at = valid_at
        self._folds: dict[frozenset[Ref], ModelFold] = {}

    # What counts

    @cached_property
    def entries(self) -> list[Entry]:
        """The entries up to the position that were not erased since."""
        return [e for e in self.model.entries[: self.position + 1] if e.position not in self.model.erased]

    @cached_property
    def known(self) -> list[Stored]:
        """Every observation up to the position."""
        return [
            Stored(entry.position, observation.stored(entry.body))
            for entry in self.entries
            if entry.kind == "observation" and entry.body is not None
        ]

    @cached_property
    def observations(self) -> list[Stored]:
        """The observations that count: at an effective time those true by then, and all retractions."""
        time = self.valid_at
        return [
            s for s in self.known if time is None or s.observation.op == "retract" or s.observation.valid_from <= time
        ]

    @cached_property
    def schemas(self) -> list[Schema]:
        """Every schema up to the position."""
        return [schema.stored(e.body) for e in self.entries if e.kind == "schema" and e.body is not None]

    def schema(self, type: str) -> Schema:
        """Return the schema in force of a type: the highest version, then the highest digest."""
        found = [one for one in self.schemas if one.type == type]
        return max(found, key=lambda one: (one.version, one.digest), default=schema.OPEN(type))

    @cached_property
    def entities(self) -> list[Ref]:
        """Every entity with an observation that counts, by type and key."""
        return sorted({stored.observation.entity for stored in self.observations}, key=_name)

    def stored(self, members: Iterable[Ref]) -> list[Stored]:
        """Return the observations of some entities that count, by position."""
        some = set(members)
        return [stored for stored in self.observations if stored.observation.entity in some]

    # Folds

    def fold(self, members: Iterable[Ref]) -> ModelFold:
        """Return the meaning of some entities of one type together."""
        group = frozenset(members)
        if group not in self._folds:
            self._folds[group] = fold(self.stored(group), group, self.schema(next(iter(group)).type))
        return self._folds[group]

    @cached_property
    def joins(self) -> list[tuple[Ref, Ref]]:
        """The pairs that a `same_as` which exists and is not deleted joins."""
        edges = [(edge, ends) for edge in self.entities if (ends := relation.joined(edge)) is not None]
        return [ends for edge, ends in edges if self.fold([edge]).exists and not self.fold([edge]).deleted]

    def group(self, ref: Ref) -> list[Ref]:
        """Return an entity with all that it is joined with, by digest."""
        found = {ref}
        while more := {end for ends in self.joins if found & {*ends} for end in ends} - found:
            found |= more
        return sorted(found, key=lambda member: member.digest)

    def believed(self, ref: Ref) -> ModelFold:
        """Return the meaning of an entity with all entities that it is joined with."""
        return self.fold(self.group(ref))

    @cached_property
    def roots(self) -> list[Ref]:
        """The smallest entity of every fold that exists, by type and key."""
        return sorted({self.group(ref)[0] for ref in self.entities if self.believed(ref).exists}, key=_name)

    # One entity

    def version(self, ref: Ref) -> int:
        """Return the position of the last entry that touched an entity, its group or a `same_as` of that."""
        members = set(self.group(ref))
        return max(
            (
                position
                for position, said in self.known
                if said.entity in members
                or (said.entity.type == relation.SAME_AS and members & {*(relation.endpoints(said.entity) or ())})
            ),
            default=-1,
        )

    def show(self, ref: Ref) -> dict[str, Any] | None:
        """Return the state of an entity; None if it has no live observation."""
        found = self.believed(ref)
        if not found.exists:
            return None
        in_force = self.schema(ref.type)
        return {
            "entity": str(ref),
            "entity_id": ref.id,
            "entity_type": ref.type,
            "members": [str(member) for member in self.group(ref)],
            "deleted": found.deleted,
            "fields": found.values,
            "more": {},
            "blame": {name: provenance.origin(field) for name, field in found.fields.items()},
            "conflicts": _conflicts(found),
            "problem": in_force.beyond,
            "schema": None if in_force.is_open else ids.name("schema", in_force.digest),
            "position": self.position,
            "version": self.version(ref),
            "digest": self._digest(ref).hex(),
        }

    def blame(self, ref: Ref) -> dict[str, list[dict[str, Any]]]:
        """Return the fate of every claim on every field."""
        found = self.believed(ref)
        return {name: provenance.blame(found, name) for name in found.names}

    def history(self, ref: Ref) -> list[dict[str, Any]]:
        """Return the changes of each observation, merged under the schema in force at its position."""
        members = self.group(ref)
        stored = self.stored(members)
        steps = []
        for count, (position, said) in enumerate(stored):
            in_force = self.model.at(position).schema(ref.type)
            before, after = (fold(stored[:some], members, in_force) for some in (count, count + 1))
            changes = field_changes(before.values, after.values)
            steps.append({"position": position, "observation": said, "deleted": after.deleted, "changes": changes})
        return steps

    # Lists

    def values(self) -> dict[str, dict[str, Any]]:
        """Return the values of everything that exists, by the reference of its smallest entity."""
        found = {}
        for root in self.roots:
            shown = self.believed(root)
            members = [str(member) for member in self.group(root)]
            found[str(root)] = {"members": members, "deleted": shown.deleted, "fields": shown.values}
        return found

    def timeline(self) -> list[Stored]:
        """Return the observations in the order of seeing; equal times by digest."""
        return sorted(self.observations, key=lambda s: (s.observation.observed_at, s.observation.digest))

    def conflicts(self, type: str | None = None) -> list[dict[str, Any]]:
        """Return the fields in conflict, by entity."""
        shown = [root for root in self.roots if type in (None, root.type)]
        return [{"entity": str(root), **found} for root in shown for found in _conflicts(self.believed(root))]

    def arrivals(self, type: str | None = None) -> list[tuple[str, str]]:
        """Return the entities and fields that were decided only by arrival."""
        shown = [root for root in self.roots if type in (None, root.type)]
        fields = [(root, name, field) for root in shown for name, field in self.believed(root).fields.items()]
        return [(str(root), name) for root, name, field in fields if provenance.by_arrival(field)]

    def query(
        self,
        type: str | None = None,
        where: Iterable[tuple[str, str, Json]] = (),
        sort: str | None = None,
        descending: bool = False,
    ) -> list[Ref]:
        """Return the entities that fulfil all conditions (field, operator, operand), in order."""
        shown = [root for root in self.roots if type in (None, root.type) and not self.believed(root).deleted]
        conditions = list(where)
        found = [root for root in shown if all(self._holds(root, *condition) for condition in conditions)]
        if sort is None:
            return found[::-1] if descending else found
        having = [root for root in found if sort in self.believed(root).fields]
        having.sort(key=lambda root: order_key(self.believed(root).values[sort]), reverse=descending)
        return having + [root for root in found if root not in having]

    def _holds(self, root: Ref, name: str, op: str, operand: Json) -> bool:
        """Return whether a condition holds of a value, or of an element of a collection."""
        values = self.believed(root).values
        if op == "exists":
            return (name in values) is operand
        if name not in values:
            return False
        value = values[name]
        candidates = [value]
        if isinstance(value, list) and self.schema(root.type).policy_of(name).name in COLLECTIONS:
            candidates += value
        return any(OPERATORS[op](candidate, operand) for candidate in candidates)

    def search(self, query: str, type: str | None = None) -> dict[str, list[str]]:
        """Return the entities that a query names, or whose words start with all its words, in order, with the matching
        fields.
        """
        wanted = set(tokens.tokens(query))
        found: dict[tuple[bool, str], tuple[str, list[str]]] = {}
        for root in self.roots:
            shown, is_relation = self.believed(root), relation.endpoints(root) is not None
            if shown.deleted or (is_relation if type is None else root.type != type):
                continue
            members = [member for member in self.group(root) if member not in shown.deleted_members]
            names = [] if is_relation else [value for rule, value in self._identifying(root) if "+" not in rule]
            words = tokens.words(members, names, shown.values, self.schema(root.type).searchable)
            is_exact = tokens.whole(query) in words
            hit: set[str] = set()
            if all(any(word.startswith(token) for word in words) for token in wanted):
                hit = {name for word, names in words.items() if word.startswith(tuple(wanted)) for name in names}
            elif not is_exact:
                continue
            found[not is_exact, root.id] = str(root), sorted(hit)
        return dict(found[rank] for rank in sorted(found))

    def duplicates(self, type: str | None = None) -> list[dict[str, Any]]:
        """Return the identifying values that several entities have which are not joined, by type, rule and value."""
        sharing: dict[tuple[str, str, str], list[Ref]] = {}
        for root in self.roots:
            if type in (None, root.type) and not self.believed(root).deleted and relation.endpoints(root) is None:
                for rule, value in self._identifying(root):
                    sharing.setdefault((root.type, rule, value), []).append(root)
        return [
            {
                "type": names[0],
                "rule": names[1],
                "value": names[2],
                "entities": [str(ref) for ref in dict.fromkeys(refs)],
            }
            for names, refs in sorted(sharing.items())
            if len({*refs}) > 1
        ]

    def _identifying(self, ref: Ref) -> list[tuple[str, str]]:
        """Return the identifying values of an entity by rule, folded as matches compare them."""
        return identity.shared_values(self.schema(ref.type), self.believed(ref).values)

    def related(self, ref: Ref, depth: int = 1) -> list[dict[str, Any]]:
        """Return the relations at an entity and at their other ends, the nearest first."""
        found: dict[Ref, dict[str, Any]] = {}
        seen = {ref}
        for level in range(1, depth + 1):
            reached = set(seen)
            for edge in self.entities:
                link = self._link(edge)
                if link is not None and edge not in found and seen & {link[0], link[1]}:
                    start, end, fields = link
                    found[edge] = {
                        "relation": str(edge),
                        "type": edge.type,
                        "start": str(start),
                        "end": str(end),
                        "depth": level,
                        "fields": fields,
                    }
                    reached |= {start, end}
            seen = reached
        return sorted(found.values(), key=lambda each: (each["depth"], each["relation"]))

    def _link(self, edge: Ref) -> tuple[Ref, Ref, dict[str, Json]] | None:
        """Return the ends and the fields of an existing relation; its fields must state its ends."""
        ends = relation.endpoints(edge)
        if ends is None or not self.believed(edge).exists:
            return None
        values = self.believed(edge).values
        if values.get("from") != str(ends[0]) or values.get("to") != str(ends[1]):
            return None
        return *ends, {name: value for name, value in values.items() if name not in ("from", "to")}

    # Names

    def meant(self, name: str) -> list[Ref]:
        """Return the entities that a reference means, or a name without a type: several where it is ambiguous."""
        asked = match.fold(name)
        if "/" in name:
            ref = ids.parse_ref(name)
            if any(said.entity == ref for _, said in self.known):
                return [ref]
            return self._having(ref.type, match.fold(ref.key)) or [ref]
        found: list[Ref] = []
        types = sorted({said.entity.type for _, said in self.known} | {one.type for one in self.schemas})
        for type in types:
            exact = Ref(type, name)
            if type == NOTE:
                continue
            if any(said.entity == exact for _, said in self.known) and self.believed(exact).exists:
                found.append(exact)
                continue
            found += [ref for ref in self._having(type, asked) if relation.endpoints(ref) is None]
        return found

    def _having(self, type: str, asked: str) -> list[Ref]:
        """Return the entities of a type with an observation of an identifying value, that have it now or have it as
        key.
        """
        found: list[Ref] = []
        for rule in self.schema(type).identity:
            named = [
                said.entity
                for _, said in self.known
                if said.entity.type == type
                and said.op in STATING
                and (rule.text, asked) in identity.shared_values(self.schema(type), said.fields)
            ]
            for ref in sorted(set(named), key=_name):
                shown = self.believed(ref)
                if not shown.exists or shown.deleted or any(member in found for member in self.group(ref)):
                    continue
                if match.fold(ref.key) == asked or (rule.text, asked) in self._identifying(ref):
                    found.append(ref)
        return found

    # Fingerprint

    def _digest(self, ref: Ref, with_winners: bool = False) -> bytes:
        """Return the digest of the values of an entity with all that it is joined with."""
        found, fields = self.believed(ref), {}
        for name, field in found.fields.items():
            entry: dict[str, Any] = {"policy": str(field.policy), "value": field.value}
            if with_winners:
                entry["observations"] = sorted({o.name for o in provenance.winners(field)})
            fields[name] = entry
        entities = [{"key": member.key, "type": member.type} for member in self.group(ref)]
        state: Any = {"deleted": found.deleted, "entities": entities, "fields": fields}
        return fingerprint.value_digest(state)

    def fingerprint(self, *, with_winners: bool = False) -> str:
        """Return one digest of the whole state."""
        leaves = [(root.digest, self._digest(root, with_winners)) for root in self.roots]
        return fingerprint.text(fingerprint.Tree.build(leaves).root())


def fold(stored: Iterable[Stored], members: Iterable[Ref], in_force: Schema) -> ModelFold:
    """Return the meaning of observations of some entities under a schema."""
    return ModelFold(
        (each.observation for each in stored),
        lambda name: str(in_force.policy_of(name)),
        lambda name, value: in_force.claim_fault(name, value) is None,
        members,
    )


def field_changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[dict[str, Any]]:
    """Return the fields whose values differ, by name; absent differs from null, and 1 from true."""
    return [
        {
            "field": name,
            "had": name in before,
            "before": before.get(name),
            "has": name in after,
            "after": after.get(name),
            "part": False,
        }
        for name in sorted({*before, *after})
        if (name in before) != (name in after) or form.serialise(before[name]) != form.serialise(after[name])
    ]


def _conflicts(found: ModelFold) -> list[dict[str, Any]]:
    """Return the fields of a fold that are in conflict, by name."""
    return [
        {
            "field": name,
            "claims": [provenance.contender(field, o) for o in provenance.contenders(field)],
            "by_arrival": provenance.by_arrival(field),
        }
        for name, field in found.fields.items()
        if provenance.contenders(field)
    ]


def _name(ref: Ref) -> tuple[bytes, bytes]:
    return ref.type.encode(), ref.key.encode()


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Json, Any], bool]:
    """Return a range, which holds for numbers against a number and texts against a text alone."""

    def holds(value: Json, operand: Json) -> bool:
        kinds: tuple[type, ...] = (str,) if isinstance(operand, str) else (int, float)
        return type(value) in kinds and compare(value, operand)

    return holds


OPERATORS: Mapping[str, Callable[[Json, Any], bool]] = {
    "eq": lambda value, operand: order_key(value) == order_key(operand),
    "in": lambda value, operand: any(order_key(value) == order_key(each) for each in operand),
    "prefix": lambda value, operand: isinstance(value, str) and value.startswith(operand),
    "lt": _ordered(lambda a, b: a < b),
    "lte": _ordered(lambda a, b: a <= b),
    "gt": _ordered(lambda a, b: a > b),
    "gte": _ordered(lambda a, b: a >= b),
}
"""The operators of a query's conditions; `exists` applies to the field itself."""

"""Overlay: state under a supposition, without some observations or with other values of fields.

State is folded again from the remaining observations, at the as-of it was read at, with the groups, corrections,
retractions and the schema of that position. A supposed value acts like a correction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from woodrat.engines.records import Standing
from woodrat.errors import Fault, NotFound, Refused
from woodrat.explain.reader.tracer import observations_named
from woodrat.ledger import entry_index
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.read import Reader
from woodrat.state.asof import AsOf
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.merge.rules import Rules
    from woodrat.merge.snapshot import Snapshot
    from woodrat.state.asof import Stored
    from woodrat.whatif.supposition import Supposition


KEPT_MAX: Final = 10_000
"""Number of cached readers and answers."""


class _Without:
    """A view in which some observations were never said; merge state that others keep does not count in it."""

    def __init__(self, view: View, gone: frozenset[bytes]) -> None:
        self._view, self._gone = view, gone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def _left(self, found: Sequence[Stored]) -> list[Stored]:
        return [stored for stored in found if stored.observation.digest not in self._gone]

    def observations(self, entity: bytes, after: int, through: int) -> list[Stored]:
        return self._left(self._view.observations(entity, after, through))

    def namers(self, digest: bytes, through: int) -> list[Stored]:
        return self._left(self._view.namers(digest, through))

    def named(self, digests: Sequence[bytes], through: int) -> set[bytes]:
        return {digest for digest in digests if self.namers(digest, through)}

    def observation(self, name: bytes | str, through: int | None = None) -> Stored | None:
        found = self._view.observation(name, through)
        return None if found is None or found.observation.digest in self._gone else found

    def kept(self, root: Ref, through: int, rules: Rules) -> None:
        return None

    def standings(self, refs: Sequence[Ref], through: int, rules: Mapping[str, Rules]) -> list[Standing | None]:
        # A version is where the observations left end.
        ends = [[stored.position for stored in self.observations(ref.digest, -1, through)] for ref in refs]
        return [Standing(positions[-1], None) if positions else None for positions in ends]

    def current(self, ref: Ref, through: int, rules: Rules) -> None:
        return None

    def kept_by(self, root: Ref, effective: str, through: int, rules: Rules) -> None:
        return None


class BeliefPair(NamedTuple):
    """The entity's state at one as-of, recorded and supposed; None if they are equal."""

    was: Snapshot | None
    now: Snapshot | None
    supposed: dict[str, Json]
    """Values of fields that are supposed outright."""
    swept: str | None
    """The field that a sweep supposes, if it is one of this entity."""
    written: tuple[Stored, ...]
    """The observations of runs about it that count."""


class Overlay:
    """One tenant's state under a supposition."""

    def __init__(self, tracer: Tracer, supposition: Supposition) -> None:
        self._tracer = tracer
        self._view = tracer.view
        self._supposition = supposition
        self._take_away()
        self._put_in_place()
        self._readers: dict[tuple[int, str | None, bool], Reader] = {}
        self._looks: dict[tuple[Ref, int, str | None], BeliefPair | None] = {}
        self._writers: dict[Ref, tuple[Stored, ...]] = {}

    def _take_away(self) -> None:
        missing: list[NotFound] = []
        said: list[Stored] = []
        named = [(id, None) for id in self._supposition.without]
        for what, agent in (*named, *((None, agent) for agent in self._supposition.without_agents)):
            try:
                said += observations_named(self._tracer, what, agent)[2]
            except NotFound as problem:
                missing.append(problem)
        if missing:
            details = {name: value for problem in missing for name, value in problem.details.items()}
            raise NotFound("\n".join(str(problem) for problem in missing), details)
        gone = frozenset(stored.observation.digest for stored in said)
        self._touched = {stored.observation.entity for stored in said}
        self._without = cast("View", _Without(self._view, gone))
        self._gone = gone

    def _put_in_place(self) -> None:
        faults: list[Fault] = []
        sweep = self._supposition.sweep
        self._fields: dict[Ref, dict[str, Json]] = {}
        self.swept_field: tuple[Ref, str] | None = None
        supposed = [(ref, name, [value]) for ref, name, value in self._supposition.field_values()]
        if sweep is not None:
            ref, mark, name = sweep.name.rpartition("#")
            if mark:
                supposed.append((ref, name, list(sweep.values)))
        for ref, name, values in supposed:
            argument = "sweep" if sweep is not None and f"{ref}#{name}" == sweep.name else "set"
            found = find_ref(self._tracer.reader, ref, path=argument)
            schema = self._tracer.reader.rules(found.type).schema
            wrong = {value_fault for value in values if (value_fault := schema.claim_fault(name, value)) is not None}
            faults += [
                Fault(f"{ref}#{name}", problem, f"Suppose a value that fits schema {found.type}.")
                for problem in sorted(wrong)
            ]
            if sweep is not None and f"{ref}#{name}" == sweep.name:
                self.swept_field = found, name
            else:
                self._fields.setdefault(found, {})[name] = values[0]
        if faults:
            raise Refused(faults, NO_READ)
        self.moves_state = bool(self._gone or self._fields or self.swept_field)

    def reader(self, position: int, effective: str | None, supposed: bool) -> Reader:
        key = (position, effective, supposed)
        if key not in self._readers:
            if len(self._readers) >= KEPT_MAX:
                self._readers.clear()
            view = self._without if supposed else self._view
            self._readers[key] = Reader(view, AsOf(position, effective), self._tracer.reader.policies)
        return self._readers[key]

    def look(self, ref: Ref, position: int, effective: str | None) -> BeliefPair | None:
        """Return the state of an entity at an as-of; None if it is as recorded whatever runs would write."""
        key = (ref, position, effective)
        if key not in self._looks:
            if len(self._looks) >= KEPT_MAX:
                self._looks.clear()
            self._looks[key] = self._looked(ref, position, effective)
        return self._looks[key]

    def _looked(self, ref: Ref, position: int, effective: str | None) -> BeliefPair | None:
        members: set[Ref] = {ref}
        spoken = {ref}
        joined = entry_index.joined(self._view, ref.digest)
        if joined:
            for supposed in (False, True):
                members.update(self.reader(position, effective, supposed).group(ref))
            for member in members:
                spoken.update((member, *entry_index.relations(self._view, member.digest, SAME_AS, position)))
        asof = AsOf(position, effective)
        written = tuple(s for item in spoken for s in self._written(item) if asof.selects(s))
        fields = {name: value for member in members for name, value in self._fields.get(member, {}).items()}
        swept = self.swept_field[1] if self.swept_field is not None and self.swept_field[0] in members else None
        moved = not self._touched.isdisjoint(spoken)
        if not (moved or fields or swept or written):
            return None
        if not (moved or fields or swept):
            return BeliefPair(None, None, {}, None, written)
        was = self.reader(position, effective, False).find(ref)
        now = self.reader(position, effective, True).find(ref) if moved else was
        if now is not None and now.deleted:
            fields, swept = {}, None  # a correction does not bring it back
        return BeliefPair(was, now, fields, swept, written)

    def _written(self, ref: Ref) -> tuple[Stored, ...]:
        """Return the observations of runs about an entity, without the removed ones."""
        if ref not in self._writers:
            if len(self._writers) >= KEPT_MAX:
                self._writers.clear()
            self._writers[ref] = tuple(
                stored
                for stored in self._without.observations(ref.digest, -1, self._tracer.through)
                if isinstance(stored.observation.optional.get("run"), str)
            )
        return self._writers[ref]

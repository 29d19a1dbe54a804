"""The search for newly stale decisions: those that come out otherwise after some writes than before them.

Only decisions with evidence from a field that these writes can have changed are looked at. They are made again as
belief stood before the writes and after them, and compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import form
from woodrat.state.observation import RETRACT, STATING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.canon.ids import Ref
    from woodrat.context import Context
    from woodrat.engines.view import View
    from woodrat.explain.stale import Stale
    from woodrat.ledger.read import Reader
    from woodrat.state.observation import Observation

KINDS: Final = frozenset({"observation", "schema", "run.decided"})
"""Kinds of entries that can make a decision stale, or be one that is."""
RUNS_READ_MAX: Final = 16
"""How many decisions are compared by reading their runs; for more, indexes tell of the runs."""
COMPARED_TOGETHER: Final = 100
"""For how many decisions is looked up together what they are compared by."""

Fields = set[str] | None
"""Fields of an entity; none: any of them."""


class StaleSearch:
    """The decisions that the writes from one position to another made stale.

    A decision that was stale before is among them only if it would come out otherwise than it would have before.
    """

    def __init__(self, context: Context, first: int, last: int, *, present: int | None = None) -> None:
        """`present` is where belief after the writes is read: the last of them, unless later ones are known already."""
        self._context = context
        self._first = first
        self._last = last
        self._present = last if present is None else max(last, present)

    def candidates(self) -> list[int]:
        """Return the positions of the decisions that have to be compared: their evidence may have changed."""
        with self._context.engine.view(self._context.tenant) as view:
            return self._candidates(view)

    def _candidates(self, view: View) -> list[int]:
        from woodrat.ledger.index import Lookup
        from woodrat.ledger.read import Reader
        from woodrat.runs.index import leaning_positions
        from woodrat.runs.index.terms import NAME
        from woodrat.state.asof import AsOf

        changed = ChangedFields(view, self._last)
        # A decision can be stale as soon as it is written: its run had begun before what was corrected meanwhile.
        positions: set[int] = set()
        for entry in view.entries(self._first - 1, self._last, KINDS):
            if entry.kind == "run.decided":
                positions.add(entry.position)
            elif entry.body is not None:
                changed.add(entry.kind, entry.body)
        if changed.by_entity:
            policies = self._context.policies
            readers = [Reader(view, AsOf(position), policies) for position in (self._first - 1, self._present)]
            evidence = Lookup(view, self._last, NAME)
            for ref, fields in changed.with_groups(readers).items():
                positions |= leaning_positions(evidence, ref, fields)
        return sorted(positions)

    def compare(self, positions: Iterable[int]) -> Iterator[Stale]:
        """Yield those of the decisions at these positions that the writes made stale."""
        with self._context.engine.view(self._context.tenant) as view:
            yield from self._compare(view, list(positions))

    def _compare(self, view: View, positions: Sequence[int]) -> Iterator[Stale]:
        from woodrat.explain.reader.stale import Beliefs, compare, recorded_decision
        from woodrat.explain.reader.tracer import Tracer
        from woodrat.explain.remake import SAME
        from woodrat.ledger.read import Reader
        from woodrat.runs.reader.run_reader import RunReader
        from woodrat.state.asof import AsOf

        policies = self._context.policies
        now = Beliefs(Tracer(RunReader(Reader(view, AsOf(self._present), policies))))
        then = Beliefs(Tracer(RunReader(Reader(view, AsOf(self._first - 1), policies))), now)
        for start in range(0, len(positions), COMPARED_TOGETHER):
            some = positions[start : start + COMPARED_TOGETHER]
            bodies = view.bodies(some)
            recorded = (recorded_decision(position, *bodies[position]) for position in some if position in bodies)
            found = [made for made in recorded if made is not None]
            if len(positions) > RUNS_READ_MAX:
                now.gather(found)
                then.gather(made for made in found if made.position < self._first)
            for made in found:
                comparison = compare(now, made)
                if comparison is None or comparison.now.outcome == SAME:
                    continue
                before = compare(then, made) if made.position < self._first else None
                if (
                    before is None
                    or before.now.outcome != comparison.now.outcome
                    or not form.same(before.now.chosen, comparison.now.chosen)
                ):
                    yield comparison.stale(now)


def newly_stale(context: Context, first: int, last: int) -> tuple[Stale, ...]:
    """Return the decisions that a write, by its first and last position, made stale, by position."""
    search = StaleSearch(context, first, last)
    positions = search.candidates()
    return tuple(search.compare(positions)) if positions else ()


class ChangedFields:
    """The fields of entities that belief may have changed about, by some entries; never too few of them."""

    def __init__(self, view: View, through: int) -> None:
        self._view = view
        self._through = through
        self.by_entity: dict[Ref, Fields] = {}
        """The fields, by the entity that was spoken of."""

    def add(self, kind: str, body: bytes) -> None:
        """Take in an observation or a schema."""
        from woodrat.state import observation, relation, schema

        if kind == "schema":
            # Its fields may merge otherwise, or no longer fit, in everything of the type.
            for ref in self._view.entities(schema.admit(body).type, self._through):
                self.by_entity[ref] = None
            return
        stated = observation.stored(body)
        self._add(stated.entity, self._fields(stated))
        for end in relation.joined(stated.entity) or ():
            self._add(end, None)

    def _add(self, ref: Ref, fields: Fields) -> None:
        known = self.by_entity.get(ref, fields)
        self.by_entity[ref] = None if known is None or fields is None else known | fields

    def _fields(self, stated: Observation) -> Fields:
        """Return the fields that an observation speaks of: itself, or by what it withdraws."""
        fields: set[str] = set()
        waiting, seen = [stated], {stated.digest}
        while waiting:
            one = waiting.pop()
            if one.op in STATING:
                fields |= one.stated
            elif one.op != RETRACT:
                return None  # a delete or a restore hides or shows all of them
            else:
                # What it names may itself be a retraction, of something that counts again then.
                for digest in one.replaces - seen:
                    seen.add(digest)
                    known = self._view.observation(digest, self._through)
                    waiting += [] if known is None else [known.observation]
        return fields

    def with_groups(self, readers: Iterable[Reader]) -> dict[Ref, Fields]:
        """Return the fields by entity, also for the entities that are the same as one spoken of, at several moments."""
        everywhere = ChangedFields(self._view, self._through)
        for reader in readers:
            for ref, fields in self.by_entity.items():
                for member in reader.group(ref):
                    everywhere._add(member, fields)
        return everywhere.by_entity

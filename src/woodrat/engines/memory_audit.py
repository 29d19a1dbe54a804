"""Memory audit: what the memory engine derived, compared with the log it was derived from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from woodrat.canon.ids import Ref
from woodrat.engines import elements
from woodrat.engines.memory_tables import MemoryTables, Versions
from woodrat.engines.port import BEFORE_ALL, IndexRow, Keeping, Kept, Mismatch, Told
from woodrat.merge.fold import MergeState
from woodrat.merge.packed_state import same_state
from woodrat.merge.rules import Rules
from woodrat.state.asof import Stored


class MemoryAudit:
    """Compares what is derived of one tenant with its log. Entities are numbered in the order of their digests."""

    def __init__(self, tables: MemoryTables, size: int | None) -> None:
        self._tables = tables
        self.size = len(tables.entries) if size is None else size
        self.wrong: list[Mismatch] = []
        self.seen: dict[str, int] = {}
        self._told: set[int] = set()

    def _amiss(self, part: str, position: int | None, entity: Ref | None, problem: str) -> None:
        self.wrong.append(Mismatch(part, position, entity, problem))

    def _has(
        self, table: str, there: bool, position: int | None, entity: Ref | None, what: str, part: str = "index"
    ) -> None:
        if there:
            self.seen[table] = self.seen.get(table, 0) + 1
        else:
            self._amiss(part, position, entity, f"{table} does not have {what}")

    def structure(self) -> None:
        t = self._tables
        if t.in_order and t.in_order[-1].position >= len(t.entries):
            problem = "observations speaks of a position after the end of the log"
            self.wrong.append(Mismatch("truncated", len(t.entries), None, problem, log=True))
        merged: dict[str, dict[int, int]] = {}
        for entry in t.entries:
            if (origin := entry.envelope.origin) is not None:
                merged.setdefault(origin.log, {})[origin.position] = entry.position
        if merged != {log: places for log, places in t.merged.items() if places}:
            self._amiss("index", None, None, "merged is not what the entries say of where they come from")

    def subtrees(self, height: int, place: int, roots: Sequence[bytes]) -> None:
        """Compare nothing: there are no subtrees here, but for the frontier."""

    def slices(self, count: int) -> Sequence[tuple[int, int]]:
        return [(0, len(self._entities()))]

    def _entities(self) -> list[bytes]:
        return sorted({*self._tables.by_entity, *self._tables.current, *self._tables.lasting})

    def told(self, within: tuple[int, int], ahead: Callable[[Sequence[Ref]], object] | None = None) -> Iterator[Told]:
        t = self._tables
        for digest in self._entities()[within[0] : within[1]]:
            states = [*t.lasting.get(digest, ()), *filter(None, [t.current.get(digest)])]
            said = t.by_entity.get(digest, [])
            ref = said[0].observation.entity if said else states[0].state.members[0]
            compared = elements.Comparison(_rows(t.elements.get(digest, {})))
            keepings = [Keeping(kept.position, self._agrees(ref, kept, compared)) for kept in states]
            between = set(compared.positions).difference(kept.position for kept in states)
            keepings += [Keeping(at, self._agrees(ref, None, compared, at)) for at in between]
            yield Told(ref, self._observations(ref, said), sorted(keepings, key=lambda keeping: keeping.position))

    def _agrees(
        self, ref: Ref, kept: Kept | None, compared: elements.Comparison, position: int = BEFORE_ALL
    ) -> Callable[[MergeState, Rules, int], bool]:
        """Return what compares a state that is kept, if any is, and the parts kept one by one as of its position."""
        at = position if kept is None else kept.position

        def agrees(state: MergeState, rules: Rules, last: int) -> bool:
            amiss = compared.amiss(state, at)
            if amiss is not None:
                self._amiss("element", at, ref, elements.wording(*amiss))
            return kept is None or same_state(kept.state, state, rules, apart=True)

        return agrees

    def _observations(self, ref: Ref, said: Sequence[Stored]) -> Iterator[Stored]:
        t = self._tables
        for stored in said:
            position, found = stored
            self._told.add(position)
            entry = t.entries[position] if position < len(t.entries) else None
            if entry is None or entry.body != found.body or found.entity != ref:
                self._amiss("index", position, ref, "by_entity has an observation that the log does not")
                continue
            self._has("observations", t.observations.get(found.digest) == stored, position, ref, "the observation")
            for name in found.replaces:
                self._has("namers", stored in t.namers.get(name, ()), position, ref, "what the observation names")
            yield stored
        self.seen["said"] = self.seen.get("said", 0) + sum(stored.position < self.size for stored in said)

    def listed(self, row: IndexRow, entity: Ref | None = None, part: str = "index") -> None:
        index = self._tables.indexes.get(row.name)
        there = () if index is None else index.lives.get(row.key, ())
        self._has("index_row", row in there, row.since, entity, f"a row of the index {row.name}", part)

    def indexes(self) -> Sequence[str]:
        return sorted(name for name, index in self._tables.indexes.items() if index.keys)

    def notes(self) -> Mapping[str, bytes]:
        return dict(self._tables.meta)

    def pass_over(self, name: str) -> None:
        index = self._tables.indexes.get(name)
        count = 0 if index is None else sum(map(len, index.lives.values()))
        self.seen["index_row"] = self.seen.get("index_row", 0) + count

    def unnoted(self) -> int | None:
        said = (e.position for e in self._tables.entries if e.kind == "observation" and e.body is not None)
        return next((position for position in said if position not in self._told), None)

    def surplus(self, seen: Mapping[str, int]) -> None:
        t = self._tables
        counts = {
            "observations": len(t.observations),
            "namers": sum(map(len, t.namers.values())),
            "index_row": sum(len(lives) for index in t.indexes.values() for lives in index.lives.values()),
        }
        for part, count in counts.items():
            if count > seen.get(part, 0):
                self._amiss(
                    "surplus", None, None, f"{part} has {count - seen.get(part, 0)} that the log does not speak of"
                )


def _rows(kept: Mapping[str, Mapping[bytes, Versions]]) -> list[elements.Row]:
    """Return the parts of the collections of a fold, by position."""
    found = [
        elements.Row(position, name, key, packed)
        for name, parts in kept.items()
        for key, versions in parts.items()
        for position, packed in versions
    ]
    return sorted(found, key=lambda row: row.position)

"""Shift: why two reads of one entity showed something else, followed to whoever said so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.cause import Cause, Statement
from woodrat.compare.contrast import short
from woodrat.compare.logs import FIRST, SECOND, Logs
from woodrat.compare.value_difference import Difference
from woodrat.runs.steps import Read
from woodrat.state.observation import RETRACT

OPS: Final = {"retract": "withdrew a statement about", "delete": "deleted", "restore": "restored"}

Shown = Sequence[tuple[str, Json] | None]
"""By side the observation that a field was read from and the value it showed; none where there was no such field."""


class Shift:
    """What moved between the reads of two runs."""

    def __init__(self, logs: Logs, runs: Mapping[str, str]) -> None:
        self._logs = logs
        self._runs = runs
        """What the runs that are compared are called, by id."""

    def of_field(
        self, said: Cause, name: str, p: Read, q: Read, shown: Shown, more: int, part: Difference | None = None
    ) -> Cause:
        """Return who changed a field between two reads, where a log tells; else what the records say.

        `part` is where inside the field the reads differ, where that is not all of it.
        """
        stated = [None if item is None else self._logs.statement(side, item[0]) for side, item in enumerate(shown)]
        if shown[0] and shown[1] and shown[0][0] == shown[1][0]:
            return self.of_entity(said, name, p, q)
        newer = self._logs.newer(stated, [item is not None for item in shown], p, q)
        if len(newer) == 2:
            return self._apart(said, stated, shown, p)
        if not newer:
            changed = self.of_entity(said, name, p, q)
            known = [found for found in stated if found is not None]
            later = max(known, key=lambda found: found.position, default=None)
            if changed is said and later is not None and None not in stated and later.entity != p.entity:
                return Cause(
                    "state", f"{said.text}, since {p.entity} is joined with {later.entity}", said.details, later
                )
            return changed
        side = newer[0]
        later, item, before = stated[side], shown[side], shown[1 - side]
        assert later is not None
        assert item is not None
        verb = "corrected" if later.op == "correct" else "wrote"
        became = form.same(later.fields.get(name), item[1])
        wrote = f"{verb} {name} {short(item[1])}" if became else f"{verb} {name}, which made it {short(item[1])}"
        was = f" (was {short(before[1])})" if before is not None else " (there was none before)"
        further = contrast.more(more, "field")
        if part is not None and became:
            wrote, was = f"{verb} {name}", f", so that {said.text},"
        if p.found != q.found:
            wrote, was, further = f"wrote {later.entity}", ", of which nothing was known,", ""
        text = f"{later.agent} {wrote}{was} {self._place(later)}{further}"
        return Cause("state", text, {**said.details, "newer": (FIRST, SECOND)[side]}, later)

    def of_entity(self, said: Cause, name: str | None, p: Read, q: Read) -> Cause:
        """Return what else changed between two reads: something withdrawn or deleted, another schema, or a part."""
        entity = p.entity or ""
        between = self._logs.between(entity, p, q)
        if between is None:
            return said
        read = p.observations | q.observations
        acts = [found for found in between if found.op in OPS]
        # A retraction of something that neither run read explains a difference only where nothing else does.
        telling = [found for found in acts if found.op != RETRACT or not read.isdisjoint(found.replaces)]
        versions = self._logs.schemas(entity, p, q)
        if telling or (acts and versions is None):
            act = (telling or acts)[-1]
            return self._acted(said, act, f"{OPS[act.op]} {entity}")
        if versions is not None:
            kind = entity.split("/", 1)[0]
            how = f"went from version {versions[0]} to {versions[1]}"
            if self._logs.two:
                how = f"is version {versions[0]} in the first ledger and {versions[1]} in the second"
            text = f"schema {kind} {how}, so that {said.text}"
            return Cause("schema", text, {**said.details, "schema": kind, "versions": list(versions)})
        # A collection shows one of the observations behind it, which may be the same before and after.
        parts = [found for found in between if name in found.fields]
        return self._acted(said, parts[-1], f"wrote {name} {short(parts[-1].fields[name or ''])}") if parts else said

    def of_search(self, said: Cause, entity: str, p: Read, q: Read) -> Cause:
        """Return why a search found an entity at one read alone, where a log tells."""
        between = self._logs.between(entity, p, q)
        if not between:
            return said
        return self._acted(said, between[-1], f"{OPS.get(between[-1].op, 'wrote')} {entity}")

    def _apart(self, said: Cause, stated: Sequence[Statement | None], shown: Shown, p: Read) -> Cause:
        """Return what each of two ledgers was told, where neither knew the other's word."""
        told = []
        for found, item in zip(stated, shown, strict=True):
            assert found is not None
            assert item is not None
            verb = "corrected it to" if found.op == "correct" else "wrote"
            told.append(f"{found.agent} {verb} {short(item[1])} {self._place(found)}")
        text = f"{said.text}, since {told[0]} and {told[1]}"
        both = [found.to_json() for found in stated if found is not None]
        return Cause("state", text, {**said.details, "statements": both}, stated[1])

    def _acted(self, said: Cause, act: Statement, what: str) -> Cause:
        text = f"{act.agent} {what} {self._place(act)}, so that {said.text}"
        return Cause("state", text, said.details, act)

    def _place(self, found: Statement) -> str:
        """Return where a statement stands and where it came from."""
        place = f"at position {found.position}"
        if found.ledger is not None:
            place += f" of the {found.ledger} ledger"
        if found.source is not None:
            return f"{place} from {short(found.source_name or found.source)}"
        return place if found.run is None else f"{place} in {self._runs.get(found.run, found.run)}"

"""Cause: why two runs differ at one step, as a clause for people and as data for programs.

Where the log holds the observation that changed what was read, the cause leads to it: a statement. A *lineage* is what
a log knows of such observations. One log tells by positions what was said between two reads; of two ledgers it is what
one knew and the other did not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare.contrast import more, short
from woodrat.compare.value_difference import Difference
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.runs.steps import Read
from woodrat.state.observation import RETRACT

KINDS: Final = (
    "edit",
    "input",
    "state",
    "schema",
    "tool",
    "output",
    "model",
    "prompt",
    "parameters",
    "rule",
    "code",
    "in_force",
    "step",
    "wording",
    "unrecorded",
    "nothing_in_common",
)
"""The classes of causes."""

NONE, WORDING, BEHAVIOUR, OUTCOME = "none", "wording", "behaviour", "outcome"
"""The levels at which runs differ: what was said in prose and how models were asked; what was done; what came of it."""


@dataclass(frozen=True, slots=True)
class Statement(Record):
    """An observation as a log holds it."""

    observation: str
    """Its id."""
    entity: str
    """Whom it speaks of, as a reference."""
    op: str
    """`assert`, `correct`, `retract`, `delete` or `restore`."""
    agent: str
    """Who said so."""
    position: int
    """Where it stands in the log."""
    recorded_at: str | None
    """When the log took it."""
    fields: Mapping[str, Json]
    """The values stated."""
    replaces: tuple[str, ...] = ()
    """Ids of the observations it names: those a retraction withdraws."""
    source: str | None = None
    """Id of the source it names."""
    source_name: str | None = None
    """What the source was called when it was first delivered."""
    run: str | None = None
    """The run it was said in."""
    log: str | None = None
    """Name of the log that holds it."""
    ledger: str | None = None
    """`first` or `second` where runs of two ledgers are compared."""


@dataclass(frozen=True, slots=True)
class Cause(Record):
    """Why two runs differ at one step."""

    kind: str
    """One of `KINDS`."""
    text: str
    """The cause as a clause."""
    details: Mapping[str, Any]
    """What the clause speaks of, for programs."""
    statement: Statement | None = None
    """The observation that changed what was read, where the log has it."""
    level: str = BEHAVIOUR
    """`wording`, `behaviour` or `outcome`."""
    change: str | None = None
    """What became of the part: `changed`, `added`, `removed`, `renamed`, `moved`, `reordered` or `retyped`."""
    path: str | None = None
    """Where the first run has that part, within the arguments, the result or the fields; none where it has none."""
    other_path: str | None = None
    """Where the second run has it."""
    first: Json = None
    """What the first run has there, whole."""
    second: Json = None
    """What the second run has there, whole."""


class Lineage(Protocol):
    """What a log knows of the observations that runs read."""

    def place(self, log: str | None, position: int | None) -> int | None:
        """Return a position of a read where the log it names is this one; those of other logs mean nothing here."""

    def statement(self, observation: str) -> Statement | None:
        """Return an observation by its id; none where it is not here."""

    def between(self, entity: str, after: int, through: int) -> Sequence[Statement]:
        """Return what was said of an entity after one position and up to another, by position."""

    def schema(self, entity: str, position: int) -> int | None:
        """Return the version of the schema in force for an entity at a position, 0 without one; none for no entity."""


Stated = Sequence[Statement | None]
"""The observation that each of two reads showed, where it is known."""

FIRST, SECOND = "first", "second"
"""What the two sides are called."""


class OneLog:
    """Two reads that one log knows about; positions say what came between them."""

    two = False

    def __init__(self, lineage: Lineage | None) -> None:
        self._lineage = lineage
        """None for runs whose log is not here: their records alone speak."""

    def statement(self, side: int, observation: str) -> Statement | None:
        """Return an observation by its id; none where it is not known."""
        return None if self._lineage is None else self._lineage.statement(observation)

    def _span(self, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the positions of two reads in order, where both are of the log that is here."""
        if self._lineage is None:
            return None
        one, other = (self._lineage.place(read.log, read.as_of) for read in (p, q))
        return None if one is None or other is None else (min(one, other), max(one, other))

    def between(self, entity: str, p: Read, q: Read) -> Sequence[Statement] | None:
        """Return what was said after the earlier read and up to the later one; none where nobody can say."""
        span = self._span(p, q)
        return None if span is None or self._lineage is None else self._lineage.between(entity, *span)

    def schemas(self, entity: str, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the versions in force at the earlier and at the later read, where they differ."""
        span = self._span(p, q)
        if span is None or self._lineage is None:
            return None
        return _unequal(*(self._lineage.schema(entity, position) for position in span))

    def newer(self, stated: Stated, shown: Sequence[bool], p: Read, q: Read) -> Sequence[int]:
        """Return the side with the later statement, unless it was there before the earlier read already.

        `shown` tells which of the reads showed anything.
        """
        found = [(said.position, side) for side, said in enumerate(stated) if said is not None]
        if not found:
            return ()
        position, side = max(found)
        span = self._span(p, q)
        unknown = shown[1 - side] and stated[1 - side] is None
        return () if unknown or (span is not None and position <= span[0]) else (side,)


class TwoLogs:
    """Two reads, each known to a ledger of its own.

    The two share no positions: what lies between is what one knew when it was read and the other did not, observation
    by observation, since equal statements have one id everywhere.
    """

    two = True

    def __init__(self, first: Lineage, second: Lineage) -> None:
        self._lineages = (first, second)

    def statement(self, side: int, observation: str) -> Statement | None:
        """Return an observation as the ledger of that side tells of it."""
        found = self._lineages[side].statement(observation)
        return None if found is None else _of(side, found)

    def between(self, entity: str, p: Read, q: Read) -> Sequence[Statement] | None:
        """Return what one ledger knew when it was read and the other did not, by the time it was recorded."""
        places = self._places(p, q)
        if places is None:
            return None
        known = [{said.observation: said for said in log.between(entity, -1, place)} for log, place in places]
        alone = [_of(s, said) for s in (0, 1) for id, said in known[s].items() if id not in known[1 - s]]
        return sorted(alone, key=lambda said: (said.recorded_at or "", said.observation))

    def schemas(self, entity: str, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the versions in force in the first ledger and in the second, where they differ."""
        places = self._places(p, q)
        return None if places is None else _unequal(*(log.schema(entity, place) for log, place in places))

    def _places(self, p: Read, q: Read) -> list[tuple[Lineage, int]] | None:
        """Return the position of each read in its log; none where one was of another log."""
        pairs = zip(self._lineages, (p, q), strict=True)
        places = [(log, place) for log, read in pairs if (place := log.place(read.log, read.as_of)) is not None]
        return places if len(places) == 2 else None

    def newer(self, stated: Stated, shown: Sequence[bool], p: Read, q: Read) -> Sequence[int]:
        """Return the sides whose statement the other ledger did not know when it was read: none, one or both."""
        found = []
        for side, said in enumerate(stated):
            if said is not None:
                lineage, read = self._lineages[1 - side], (q, p)[side]
                known = lineage.statement(said.observation)
                bound = lineage.place(read.log, read.as_of)
                if known is None or (bound is not None and known.position > bound):
                    found.append(side)
        return found


def _unequal(one: int | None, other: int | None) -> tuple[int, int] | None:
    """Return two versions where both are known and differ."""
    return None if one is None or other is None or one == other else (one, other)


Logs = OneLog | TwoLogs
"""What is known of what two reads showed, the first of each pair that of the first run."""


def _of(side: int, said: Statement) -> Statement:
    return replace(said, ledger=SECOND if side else FIRST)


OPS: Final = {"retract": "withdrew a statement about", "delete": "deleted", "restore": "restored"}

Shown = Sequence[tuple[str, Json] | None]
"""By side the observation that a field was read from and the value it showed; none where there was no such field."""


class StateChange:
    """Why two reads of one entity showed something else, followed to whoever said so."""

    def __init__(self, logs: Logs, runs: Mapping[str, str]) -> None:
        self._logs = logs
        self._runs = runs
        """What the runs that are compared are called, by id."""

    def of_field(
        self, said: Cause, name: str, p: Read, q: Read, shown: Shown, others: int, part: Difference | None = None
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
        further = more(others, "field")
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

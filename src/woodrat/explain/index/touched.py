"""Touched evidence: which decisions something was said about since, so that only these can be stale.

A decision whose evidence is what is believed when it is written is listed as untouched, by the entities and fields that
it was read from. Whatever may change belief about one of them (an observation that states the field, a retraction, a
merge, a new schema) moves it to the touched ones, once. So a write costs the decisions that it touches first, and a
list of stale decisions looks at touched ones alone. Being touched is not being stale: whoever reads the list looks.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.explain.references import fact_origins, named_observations, read_ref
from woodrat.explain.remake import is_whole
from woodrat.ledger import entry_index
from woodrat.ledger.index import Lookup
from woodrat.ledger.log_rows import STANDING, Listed, is_empty
from woodrat.ledger.read import Reader
from woodrat.ledger.state_redo import component
from woodrat.merge import BUILTIN
from woodrat.runs import steps
from woodrat.runs.steps import Read
from woodrat.state import observation, relation, schema
from woodrat.state.asof import AsOf
from woodrat.state.entry_rows import POSITION_BYTES, position_key, position_of, term_key, text_prefix
from woodrat.state.observation import STATING
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.merge.snapshot import Snapshot

NAME: Final = "evidence"
"""Of the index; nothing but these decisions is in it."""
TOUCHED: Final = "touched"
"""Decisions whose evidence may be believed otherwise than when they were made."""
UNTOUCHED: Final = "untouched/"
"""Decisions whose evidence is believed as it was; type, a slash and id of the entity follow. Rows hold the fields."""
EFFECTIVE: Final = "effective"
"""The index of reads of what was true by a time, by run."""
_MARKS: Final = {"run.read": b'"effective"', "run.decided": b'"kind":"read"'}
"""By kind what is in the body of a step of a run that `follow` has to see."""


def concerned(view: View, entries: Sequence[Listed]) -> Sequence[Listed]:
    """Return those of some new entries of one kind that may touch the evidence of decisions."""
    if entries[0].kind != "observation":
        return [entry for entry in entries if _MARKS.get(entry.kind, b"") in entry.body]
    found: list[Listed] = []
    asking: dict[bytes, list[Listed]] = {}
    for entry in entries:
        ref = entry.said.entity
        if ref.type == SAME_AS or relation.joined(ref) is not None or entry_index.joined(view, ref.digest):
            found.append(entry)
        elif _has_untouched(view, ref.type):
            asking.setdefault(_prefix(ref.type, ref.id), []).append(entry)
    for key, _ in view.find(NAME, list(asking), limit=1) if asking else ():
        found += asking[key[:-POSITION_BYTES]]
    return sorted(found, key=lambda entry: entry.position)


def _prefix(type: str, id: str | None) -> bytes:
    """Return the key prefix of the untouched decisions that rest on an entity, or on any of a type."""
    return f"{UNTOUCHED}{type}/".encode() if id is None else text_prefix(f"{UNTOUCHED}{type}/{id}")


def _has_untouched(view: View, type: str) -> bool:
    """Return whether any untouched decision rests on an entity of a type."""
    at_hand = view.at_hand(NAME)
    found: bool | None = at_hand.get(type)
    if found is None:
        found = at_hand[type] = bool(view.scan(NAME, _prefix(type, None), limit=1))
    return found


def follow(view: View, after: int, through: int, entries: Sequence[Listed]) -> Iterator[IndexRow]:
    """Yield the rows of decisions that begin or end with some entries."""
    changes = _Changes(view, after)
    for entry in entries:
        changes.add(entry)
    return changes.rows()


def lives(view: View, decided: Iterable[int], through: int) -> Iterator[IndexRow]:
    """Yield every row of some decisions up to a position, those that ended too, as the log has them now.

    They are followed along everything that was said of what they were read from. The rows of the entries themselves
    are listed.
    """
    found = {at: entry for at in decided if at <= through and (entry := view.entry(at)) is not None}
    entries = {at: Listed.of(entry) for at, entry in found.items() if entry.body is not None}
    refs: set[Ref] = set()
    for made in list(entries.values()):
        if made.kind != "run.decided" or made.run is None:
            continue
        origins = fact_origins(made.once(steps.decision_of)).values()
        refs.update(ref for origin in origins if (ref := read_ref(origin)) is not None)
        for other in entry_index.run_entries(view, made.run, through):
            if other.kind == "run.read" and other.body is not None:
                entries[other.position] = Listed.of(other)
    for ref in refs:
        parts = component(view, ref, through) if entry_index.joined(view, ref.digest) else ({ref},)
        for one in {member for part in parts for member in part}:
            for said in view.observations(one.digest, -1, through):
                stated = said.observation
                entries.setdefault(said.position, Listed(said.position, "observation", stated.body, stated))
    types = {ref.type for ref in refs}
    for registered in view.entries(through=through, kinds={"schema"}) if types else ():
        if registered.body is not None and schema.stored(registered.body).type in types:
            entries[registered.position] = Listed.of(registered)
    ordered = [entries[position] for position in sorted(entries)]
    return (row for row in follow(view, BEFORE_ALL, through, ordered) if position_of(row.key) in found)


class _Changes:
    """What becomes of decisions with each entry after a position."""

    def __init__(self, view: View, after: int) -> None:
        self._view = view
        self._after = after
        self._untouched: dict[str, dict[str, dict[bytes, IndexRow]]] = {}
        """Rows of untouched decisions that began and did not end: by type, by entity and by key."""
        self._standing: dict[str, bool] = {}
        """Whether any row was listed before, by type."""
        self._gone: set[bytes] = set()
        self._touched: dict[int, int] = {}
        """Decisions that were touched, with the position that did."""
        self._ended: list[IndexRow] = []
        self._snapshots: dict[Ref, Snapshot | None] = {}
        self._effective: dict[str, bool] = {}

    def rows(self) -> Iterator[IndexRow]:
        """Yield what began or ended."""
        yield from self._ended
        for entities in self._untouched.values():
            for rows in entities.values():
                yield from rows.values()
        yield from (IndexRow(NAME, term_key(TOUCHED, made), since) for made, since in self._touched.items())

    def add(self, entry: Listed) -> None:
        """Note what becomes of decisions with an entry."""
        if _MARKS.get(entry.kind, b"") not in entry.body:
            return
        if entry.kind == "run.decided":
            self._decided(entry)
        elif entry.kind == "run.read":
            self._read(entry.position, entry.value)
        elif entry.kind == "schema":
            self._snapshots.clear()
            self._touch(schema.stored(entry.body).type, None, None, entry.position)
        elif entry.kind == "observation" and (self._untouched or self._snapshots or self._has_rows):
            self._said(entry.position, entry.said)

    @cached_property
    def _has_rows(self) -> bool:
        """Whether any decision was untouched before: in a log without any, an observation costs nothing here."""
        return bool(self._view.scan(NAME, UNTOUCHED.encode(), through=self._after, limit=1))

    # Decisions

    def _decided(self, entry: Listed) -> None:
        run, position = entry.run, entry.position
        if run is None:
            return
        made = entry.once(steps.decision_of)
        origins = fact_origins(made)
        read = {key: (ref, origin) for key, origin in origins.items() if (ref := read_ref(origin)) is not None}
        if not read:
            return
        if self._is_effective(run, position) or not self._is_believed(made.known_facts, read, position):
            self._touched.setdefault(position, position)
            return
        fields: dict[Ref, set[str]] = {}
        for ref, origin in read.values():
            fields.setdefault(ref, set()).add(origin["field"])
        for ref, names in fields.items():
            key, value = _prefix(ref.type, ref.id) + position_key(position), "\0".join(sorted(names)).encode()
            rows = self._untouched.setdefault(ref.type, {}).setdefault(ref.id, {})
            rows[key] = IndexRow(NAME, key, position, value)

    def _is_believed(
        self, values: Mapping[str, Json], read: Mapping[str, tuple[Ref, Mapping[str, Any]]], position: int
    ) -> bool:
        """Return whether all that a decision was read from is believed as it was, at its own position."""
        try:
            for key, (ref, origin) in read.items():
                snapshot, name = self._snapshot(ref, position), origin["field"]
                fields = {} if snapshot is None else snapshot.fields
                current = () if snapshot is None else snapshot.behind(name)
                if set(current) != set(named_observations(origin)) or type(origin.get("position")) is not int:
                    return False
                before = values.get(key)
                if is_whole(before) and (
                    (key in values) != (name in fields) or not form.same(before, fields.get(name))
                ):
                    return False
        except Unavailable:
            return False  # a policy is not loaded here; whoever asks has it
        return True

    def _snapshot(self, ref: Ref, position: int) -> Snapshot | None:
        if ref not in self._snapshots:
            self._snapshots[ref] = Reader(self._view, AsOf(position), BUILTIN).find(ref)
        return self._snapshots[ref]

    def _read(self, position: int, body: Any) -> None:
        """Touch the decisions of a run that read what was true by a time: belief by that time is not followed."""
        read = steps.part_of("run.read", position, body) if isinstance(body, dict) and "effective" in body else None
        run = body.get("run") if isinstance(body, dict) else None
        if not isinstance(read, Read) or read.effective is None or not isinstance(run, str):
            return
        self._effective[run] = True
        for entry in entry_index.run_entries(self._view, run, position):
            if entry.kind == "run.decided" and entry.body is not None:
                self._note_touched(entry.position, position)

    def _is_effective(self, run: str, position: int) -> bool:
        if is_empty(self._view, EFFECTIVE):
            return False  # as it mostly is: hardly any run asks for such a time
        if run not in self._effective:
            rows = self._view.scan(EFFECTIVE, text_prefix(run), limit=1)
            self._effective[run] = bool(rows) and position_of(rows[0][0]) <= position
        return self._effective[run]

    # What touches them

    def _said(self, position: int, said: observation.Observation) -> None:
        ends = relation.joined(said.entity)
        refs: tuple[Ref, ...] = ends or (said.entity,)
        if ends is not None or said.entity.type == SAME_AS or entry_index.joined(self._view, said.entity.digest):
            self._snapshots.clear()
            readers = [Reader(self._view, AsOf(at), BUILTIN) for at in (position - 1, position)]
            refs = tuple({member for reader in readers for ref in refs for member in reader.group(ref)})
        whole = ends is not None or said.op not in STATING or said.replaces
        for ref in refs:
            self._snapshots.pop(ref, None)
            self._touch(ref.type, ref.id, None if whole else said.stated, position)

    def _touch(self, type: str, id: str | None, fields: frozenset[str] | None, position: int) -> None:
        """Move the untouched decisions that rest on an entity, or on any of its type, to the touched ones.

        With `fields`, those that rest on one of these.
        """
        if type not in self._standing:
            self._standing[type] = bool(self._view.scan(NAME, _prefix(type, None), through=self._after, limit=1))
        began = self._untouched.get(type, {})
        if not began and not self._standing[type]:
            return  # as most do
        places = list(began.values()) if id is None else [began.get(id, {})]
        rows = [row for place in places for row in place.values()]
        if self._standing[type]:
            listed = self._view.scan(NAME, _prefix(type, id), through=self._after)
            rows += [IndexRow(NAME, key, STANDING, value) for key, value in listed if key not in self._gone]
        for row in sorted(rows):
            if fields is not None and fields.isdisjoint(row.value.decode().split("\0")):
                continue
            self._gone.add(row.key)
            if row.since != position:
                self._ended.append(row._replace(until=position))
            self._note_touched(position_of(row.key), position)
        for place in places:
            for key in self._gone.intersection(place):
                del place[key]

    def _note_touched(self, made: int, position: int) -> None:
        if made in self._touched:
            return
        if made <= self._after and self._view.scan(NAME, term_key(TOUCHED, made), through=self._after, limit=1):
            return
        self._touched[made] = position


def touched_before(view: View, through: int, before: int) -> Iterator[int]:
    """Yield the positions, before one, of decisions touched through a position, the latest first."""
    return Lookup(view, through, NAME).walk_back(TOUCHED, before)

"""Reads: what the ledger answers about entities and the log, at the moment of a context.

Lists are returned whole here; `lists.py` cuts them into pages for callers outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from woodrat.canon.ids import Ref, parse_ref
from woodrat.engines.records import BEFORE_ALL, NOTHING_ASKED, Asks
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.matches import find_ref
from woodrat.ledger.moments import NO_READ, open_reader, resolve_moment, resolve_ref, timestamp
from woodrat.ledger.read import Reader
from woodrat.merge.packing import garbled
from woodrat.merge.snapshot import Contender
from woodrat.record_json import Record
from woodrat.records import Deferrable, dataclass, replace
from woodrat.state.asof import AsOf, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry
    from woodrat.merge.blame import Blame
    from woodrat.merge.diff import Changes, Values
    from woodrat.merge.snapshot import Snapshot
    from woodrat.merge.timeline import Event, Step

# What only some reads need is imported by them: a program that shows one entity does not wait for the rest.

DEPTH_MAX = 16
"""How far `related` walks at most."""


@dataclass(frozen=True, slots=True)
class Related(Record):
    """One relation found from an entity."""

    relation: Ref
    """The entity that stands for the relation."""
    type: str
    """Its type."""
    start: Ref
    """Where it begins."""
    end: Ref
    """Where it leads."""
    depth: int
    """How many relations lie between the entity asked about and this one, itself included."""
    fields: Mapping[str, Json]
    """What is said about the relation."""


@dataclass(frozen=True, slots=True)
class EntityConflict(Deferrable, Record):
    """A conflict (`Conflict`) with the entity it is in."""

    COMPACT: ClassVar = ("entity", "field", "claims", "by_arrival")
    """What a list shows of it."""

    entity: Ref
    """The entity, or the one that stands for those it is joined with."""
    field: str
    """The field."""
    claims: tuple[Contender, ...]
    """The claims in conflict; of a field decided only by arrival, the winner first."""
    by_arrival: bool = False
    """Whether the field was decided only by arrival: no observation time was given."""


def asks_about(ref: object) -> Asks:
    """Return what a read of an entity asks first, where it is named by its type and key."""
    try:
        return Asks(entities=[parse_ref(ref)] if isinstance(ref, str) else [ref] if isinstance(ref, Ref) else [])
    except Refused:
        return NOTHING_ASKED


def show(context: Context, ref: str | Ref) -> Snapshot:
    """Return what is believed about an entity; `NotFound` when nothing live is said of it."""
    with open_reader(context, asks_about(ref)) as reader:
        return reader.snapshot(find_ref(reader, ref)).matched_by(reader.matched)


def show_soon(context: Context, ref: str | Ref) -> Snapshot | None:
    """Return what `show` returns where that is kept as it is; `None` where `show` takes longer, or refuses."""
    with open_reader(context, asks_about(ref)) as reader:
        try:
            entity = resolve_ref(reader, ref)
        except (NotFound, Refused):
            return None
        return reader.soon(entity)


def elements(
    context: Context, ref: str | Ref, field: str, *, limit: int = 1_000, cursor: str | None = None
) -> Elements:
    """Return the elements of a collection (`union`, `by_key`, `append`), some at a time, in its order.

    The pages that follow are read as of the position of the first. A page costs what it holds, not what the
    collection has.
    """
    from woodrat.ledger import elements as element_pages

    with open_reader(context) as reader:
        return element_pages.elements(reader, ref, field, limit, cursor)


def infer(context: Context, entity_type: str, *, progress: Progress | None = None) -> dict[str, Any]:
    """Return a JSON Schema that everything stored of a type fits: a suggestion to edit and `register`.

    It describes what was seen: a field every entity has is required, an array whose elements repeat from claim to
    claim merges by `union`. Every observation of the type is read for it; `progress` is called with how many
    entities are done and how many there are.
    """
    from woodrat.ledger import find as finder

    finder.check_type(entity_type, optional=False)
    with open_reader(context) as reader:
        return finder.infer(reader, entity_type, progress)


def observations(context: Context, ref: str | Ref | None = None) -> tuple[Stored, ...]:
    """Return the observations of an entity and of those it is joined with, or all of them, by position."""
    with open_reader(context) as reader:
        return tuple(stored_about(reader, ref))


def history(context: Context, ref: str | Ref, field: str | None = None) -> tuple[Step, ...]:
    """Return how belief about an entity, or one field of it, changed with each observation."""
    with open_reader(context) as reader:
        return history_of(reader, find_ref(reader, ref), field)


def history_of(reader: Reader, ref: Ref, field: str | None) -> tuple[Step, ...]:
    """Return how belief about an entity changed with each observation, folded from the first of them on."""
    from woodrat.merge import timeline

    members = spoken_of(reader, ref)

    def rules_at(position: int) -> Any:
        return Reader(reader.view, AsOf(position), reader.policies).rules(ref.type)

    return timeline.history(reader.stored(members), members, rules_at, field)


def timeline(context: Context, *, since: str | None = None, until: str | None = None) -> tuple[Event, ...]:
    """Return what was seen from `since` to before `until`, across all entities, in the order of seeing."""
    from woodrat.merge import timeline

    begin = None if since is None else timestamp(since, "since", clock=context.clock)
    end = None if until is None else timestamp(until, "until", clock=context.clock)
    with open_reader(context) as reader:
        return timeline.timeline(stored_about(reader, None), begin, end)


def blame(context: Context, ref: str | Ref, field: str | None = None, *, excerpts: bool = False) -> Blame:
    """Return what became of every claim on one field or all fields: who won, who lost, and why.

    With `excerpts`, the words of its source that a claim points at stand beside it.
    """
    from woodrat.ledger.excerpts import Excerpts
    from woodrat.merge import blame

    with open_reader(context) as reader:
        found = find_ref(reader, ref)
        members = spoken_of(reader, found)
        rules = reader.rules(found.type)
        observations = [stored.observation for stored in reader.stored(members)]
        names = sorted({name for o in observations for name in o.stated})
        if field is not None and field not in names:
            raise NotFound(
                f"{found}#{field}: there is no such field. Nothing was changed. It has {', '.join(names)}.",
                {"entity": str(found), "field": field},
            )
        asked, position = names if field is None else [field], reader.asof.position
        if excerpts:
            claims = blame.blame_fields(observations, members, rules, asked, Excerpts(reader.view, position).of)
        else:
            claims = blame.blame_fields(observations, members, rules, asked)
        return blame.Blame(found, claims, position, reader.matched)


def conflicts_of(reader: Reader, ref: Ref, arrival: bool) -> list[EntityConflict]:
    """Return the conflicts of a fold, under its smallest entity, by field."""
    taken = reader.take(ref, reader.state(ref))
    return [
        EntityConflict(ref, conflict.field, conflict.claims, conflict.by_arrival)
        for conflict in (taken.arrivals() if arrival else taken.conflicts)
    ]


def listed_conflicts_of(reader: Reader, ref: Ref, fields: Iterable[str], arrival: bool) -> list[EntityConflict]:
    """Return the conflicts of a fold on fields that are known to be in conflict; who claims what is deferred."""
    taken = reader.take(ref, reader.state(ref))

    def deferred(field: str) -> EntityConflict:
        def work_out(_: str) -> dict[str, Any]:
            for conflict in taken.arrivals() if arrival else taken.conflicts:
                if conflict.field == field:
                    return {"claims": conflict.claims, "by_arrival": conflict.by_arrival}
            raise garbled("The index of conflicts")

        return EntityConflict.deferred(work_out, entity=ref, field=field)

    return [deferred(field) for field in fields]


def diff(
    context: Context, before: Moment, after: Moment, ref: str | Ref | None = None, *, entity_type: str | None = None
) -> Changes:
    """Return what differs between two moments: in one entity, in those of a type, or everywhere."""
    from woodrat.ledger.state_diff import changes_between
    from woodrat.merge.diff import Changes, Values, diff

    _check_one(ref, entity_type)
    with context.engine.view(context.tenant) as view:
        first, last = (
            Reader(view, AsOf(resolve_moment(view, when, clock=context.clock), context.valid_at), context.policies)
            for when in (before, after)
        )
        if ref is None:
            changes = changes_between(first, last, entity_type)
        else:
            # What it means at the later moment counts; at the earlier one, where it was gone by then.
            entity = find_ref(last, ref)
            if last.find(entity) is None:
                entity = find_ref(first, ref)
            found = (reader.find(entity) for reader in (first, last))
            sides = [{} if snapshot is None else {str(entity): Values.of(snapshot)} for snapshot in found]
            changes = diff(*sides)
        return Changes(first.asof.position, last.asof.position, changes, last.matched or first.matched)


def diff_against(
    context: Context, known: object, ref: str | Ref | None = None, *, entity_type: str | None = None
) -> Changes:
    """Return what differs between a state that was written down and what is believed here: `known`, then now.

    `known` is a list of snapshots, or of objects such as `Snapshot.to_json` gives, and stands for everything, or
    for everything of `entity_type`: what it leaves out was not there. One snapshot alone stands for its entity
    alone. An entity that is deleted here and left out there is no difference.
    """
    from woodrat.ledger.known_state import is_one, known_values
    from woodrat.ledger.state_diff import changes_since
    from woodrat.merge.diff import Changes, Values, diff

    _check_one(ref, entity_type)
    before = known_values(known)
    with open_reader(context) as reader:
        position = reader.asof.position
        asked = None if ref is None else find_ref(reader, ref)
        if asked is None and not is_one(known):
            if entity_type is not None:
                before = {name: values for name, values in before.items() if name.startswith(f"{entity_type}/")}
            return Changes(None, position, changes_since(before, reader, entity_type))
        if asked is not None:
            before = {str(asked): values for values in before.values() if str(asked) in values.members}
        after = {}
        for name in before or [str(asked)]:
            snapshot = reader.find(resolve_ref(reader, name))
            if snapshot is not None and (before or not snapshot.deleted):
                after[name] = Values.of(snapshot)
        return Changes(None, position, diff(before, after), reader.matched)


def values(context: Context) -> dict[str, Values]:
    """Return the values of everything that exists, by reference: what `diff` compares."""
    from woodrat.ledger.state_diff import all_values

    with open_reader(context) as reader:
        return all_values(reader)


def related(context: Context, ref: str | Ref, *, depth: int = 1) -> tuple[Related, ...]:
    """Return the relations that begin or end at an entity, and those of their other ends, up to `depth`."""
    if faults := depth_faults(depth):
        raise Refused(faults, outcome=NO_READ)
    with open_reader(context) as reader:
        start = find_ref(reader, ref)
        reader.check_exists(start)
        found: dict[Ref, Related] = {}
        seen, edge_of = {start}, [start]
        for level in range(1, depth + 1):
            following: list[Ref] = []
            for entity in edge_of:
                for link in _links(reader, entity):
                    found.setdefault(link.relation, replace(link, depth=level))
                    following += [end for end in (link.start, link.end) if end not in seen]
                    seen.update((link.start, link.end))
            edge_of = following
        return tuple(sorted(found.values(), key=lambda r: (r.depth, str(r.relation))))


def depth_faults(depth: object) -> list[Fault]:
    """Return what is wrong with how far `related` is to walk."""
    if type(depth) is int and 1 <= depth <= DEPTH_MAX:
        return []
    return [Fault("depth", f"got {shown(depth)}", f"Send 1 to {DEPTH_MAX}.")]


def entries(context: Context, *, after: int = BEFORE_ALL, limit: int | None = None) -> tuple[Entry, ...]:
    """Return entries of the log after a position, in order, as far as this moment reaches."""
    from itertools import islice

    with open_reader(context) as reader:
        return tuple(islice(reader.view.entries(after, reader.asof.position), limit))


class ErasedPositions:
    """Which positions of a log were erased, and where it says so; what was read once is kept."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._erasures: tuple[tuple[int, list[tuple[int, int]]], ...] = ()
        """The erasures up to a position of the log, and the positions that each names."""
        self._through = BEFORE_ALL

    def erased_at(self, position: int) -> int | None:
        """Return where the log says that the body at a position was erased; None where it says so nowhere."""
        from woodrat.ledger.moments import erased_here
        from woodrat.log.erasure import KIND

        with self._context.engine.view(self._context.tenant) as view:
            head = view.head().position
            for entry in view.entries(self._through, head, {KIND}):
                if entry.body is not None:
                    self._erasures += ((entry.position, erased_here(view, entry)),)
            self._through = head
        for at, ranges in self._erasures:
            if any(first <= position <= last for first, last in ranges):
                return at
        return None


def fingerprint(context: Context, *, provenance: bool = False) -> str:
    """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came."""
    from woodrat.state import fingerprint

    with open_reader(context) as reader:
        return fingerprint.text(reader.fingerprint(provenance=provenance).root())


def followed_fingerprint(context: Context) -> str:
    """Return the fingerprint of now, brought up to date from the entities that changed since it was last asked for.

    Where nothing can be written, it is made from all of them and not kept.
    """
    from woodrat.ledger import fingerprint_index
    from woodrat.state import fingerprint as fingerprints

    root = fingerprint_index.followed(context.engine, context.tenant, context.policies)
    return fingerprint(context) if root is None else fingerprints.text(root)


def _check_one(ref: object, entity_type: object) -> None:
    """Refuse to narrow a question in two ways at once, or to a type that cannot be one."""
    if entity_type is None:
        return
    from woodrat.canon import ids

    faults = ids.type_faults(entity_type, "entity_type")
    if ref is not None:
        faults.append(Fault("entity_type", "an entity is named as well", "Name an entity or a type, not both."))
    if faults:
        raise Refused(faults, outcome=NO_READ)


def spoken_of(reader: Reader, ref: Ref) -> tuple[Ref, ...]:
    """Return an entity with all it is joined with; `NotFound` when nothing was ever said of them."""
    members = reader.group(ref)
    if reader.asof.effective is None:
        spoken = any(reader.view.version(member.digest, reader.asof.position) is not None for member in members)
    else:
        spoken = bool(reader.stored(members))
    if not spoken:
        reader.check_exists(ref)
    return members


def stored_about(reader: Reader, ref: str | Ref | None) -> list[Stored]:
    """Return the observations of an entity and of those it is joined with, or all of them, by position."""
    if ref is not None:
        return reader.stored(spoken_of(reader, find_ref(reader, ref)))
    return list(stored_after(reader, BEFORE_ALL))


def stored_after(reader: Reader, after: int) -> Iterator[Stored]:
    """Yield all observations that count at the as-of, by position, from after one on."""
    from woodrat.state import observation

    for entry in reader.view.entries(after, reader.asof.position, {"observation"}):
        if entry.body is not None:
            stored = Stored(entry.position, observation.stored(entry.body))
            if reader.asof.selects(stored):
                yield stored


def _links(reader: Reader, entity: Ref) -> Iterator[Related]:
    """Yield the live relations at an entity."""
    for edge in entry_index.relations(reader.view, entity.digest, None, reader.asof.position):
        link = link_of(reader, edge)
        if link is not None:
            yield link


def link_of(reader: Reader, edge: Ref) -> Related | None:
    """Return a relation that is live. A key of two references alone does not make one: it must say so itself."""
    from woodrat.state import relation

    ends = relation.endpoints(edge)
    snapshot = reader.find(edge)
    if ends is None or snapshot is None or snapshot.deleted:
        return None
    if snapshot.fields.get("from") != str(ends[0]) or snapshot.fields.get("to") != str(ends[1]):
        return None
    said = {name: value for name, value in snapshot.fields.items() if name not in ("from", "to")}
    return Related(edge, edge.type, ends[0], ends[1], 0, said)

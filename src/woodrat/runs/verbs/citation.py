"""Citation: what a run entry that was made elsewhere may cite, checked before it is appended.

A read of this log is compared with what the log says at the position it names: found or not, the same fields, each with
the same observations and value. What else names observations may name those of its entity, and none that came after
the position. A position beyond the end of the log is refused. The library's own recorder cites what it has just read,
so it needs none of this. What another log says, what was read by an effective time and what is erased by now cannot be
compared: it is kept, and is *unchecked* (`runs/record.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import ids
from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.ledger.moments import here, placed
from woodrat.ledger.ownership import NOTHING_RECORDED
from woodrat.ledger.read import Reader
from woodrat.log.erasure import ERASED
from woodrat.merge import fold, snapshot
from woodrat.runs import values
from woodrat.runs.recorder.reads import OBSERVATIONS_MAX
from woodrat.runs.steps import listed, mapping
from woodrat.state.asof import AsOf
from woodrat.state.redaction import NOTHING, Hidden
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.context import Erasures
    from woodrat.ledger.write import Draft

RECALL: Final = "recall"
"""What a read is `within` that recalled."""
CITING: Final = frozenset({"run.started", "run.read", "run.decided"})
"""The kinds of entry that cite anything."""
ELEMENTS_MAX: Final = 1_000
"""Up to how many elements a collection that was read is compared; of a larger one only what it cites is looked up."""


class ReadDifference(Fault):
    """A fault that tells what the log says; whoever may not read hears of it in other words."""

    def under(self, prefix: str) -> ReadDifference:
        """Return this fault with `prefix` put before its path."""
        return ReadDifference(prefix + self.path, self.problem, self.remedy)

    def hidden(self) -> Fault:
        """Return what is said to callers who may not read."""
        remedy = "Send what was read; a key with the grant 'read' is told what differs."
        return Fault(self.path, "it does not agree with the log", remedy)


class Misread(Refused):
    """Entries of a run cite what they cannot have read. Nothing was recorded; send what was read."""

    def hidden(self) -> Refused:
        """Return what is said to callers who may not read."""
        told = [fault.hidden() if isinstance(fault, ReadDifference) else fault for fault in self.faults]
        return Refused(dict.fromkeys(told), NOTHING_RECORDED)


class _Cited(NamedTuple):
    """Observations that an entry names at one place, and what it says of them."""

    path: str
    entity: object
    """Whom they are said to speak of."""
    observations: object
    log: object
    position: object
    """As of which they were read; the end of the log where the entry does not say."""
    name: str
    """What the observations are called there."""


class _Shown(NamedTuple):
    """What the log says of an entity at a position."""

    found: bool
    """Whether anything is known of it."""
    values: Mapping[str, Json]
    """Its values, by field; those of large collections aside."""
    observations: Mapping[str, tuple[str, ...]]
    """By the same fields, the observations that set them."""
    large: frozenset[str]
    """Fields that are large collections."""


class Citations:
    """Checks what entries cite, for one write.

    What was read of a log that is not here cannot be checked: with `own` that is refused too, as only an import brings
    what was recorded elsewhere. `beginning` returns how a run began.
    """

    def __init__(
        self,
        draft: Draft,
        *,
        own: bool,
        erasures: Erasures | None = None,
        beginning: Callable[[str], Mapping[str, Any]] = lambda run: {},
    ) -> None:
        self._draft, self._own, self._erasures, self._beginning = draft, own, erasures, beginning
        self._head = draft.before.asof.position
        self._readers: dict[int, Reader] = {}
        self._shown: dict[tuple[int, Ref], _Shown] = {}

    def faults(self, kind: str, body: Mapping[str, Any], path: str = "", log: object = None) -> list[Fault]:
        """Return what is wrong with all that an entry cites; `log` is the one its run read, where it names none."""
        found: list[Fault] = []
        read = self._compared(body, log) if kind == "run.read" else None
        if read is not None:
            ref, position = read
            return [fault.under(path) for fault in self._read_faults(ref, position, body)]
        for cited in _cited(kind, body):
            place = f"{path}{cited.path}"
            position = self._head
            if cited.position is not None and type(cited.position) is not int:
                # In what comes from elsewhere a value of another shape counts as left out.
                if self._own:
                    problem = f"got {shown(cited.position)}"
                    found.append(Fault(f"{place}/position", problem, "Send a position of the log."))
                    continue
            elif cited.position is not None:
                named = log if cited.log is None else cited.log
                stands = self._stands(named, cited.position)
                if stands is None:
                    if self._own:
                        problem = f"{cited.position} is a position of {shown(named)}, which is not this log"
                        remedy = "Leave log out, or have it imported with a key that carries the grant 'manage'."
                        found.append(Fault(f"{place}/log", problem, remedy))
                    continue
                position = stands
            if not BEFORE_ALL <= position <= self._head:
                found.append(self._beyond(position).under(place))
                continue
            if cited.observations is not None:
                found += self._observation_faults(self._reader(position), cited, place)
        return found

    def _beyond(self, position: int) -> Fault:
        where = f"beyond the end of the log, {self._head}" if position > self._head else "not a position of the log"
        return Fault("/position", f"{position} is {where}", f"Send the position it was read at, {self._head} at most.")

    def _erased(self, observation: object) -> bool:
        """Return whether an observation was erased."""
        erasures = self._erasures
        return (
            isinstance(observation, str)
            and erasures is not None
            and erasures.follow(self._draft.view)
            and erasures.name(observation) is not None
        )

    def is_gone(self, item: object) -> bool:
        """Return whether a field of a read shows what was erased."""
        named = _named(item)
        return any(map(self._erased, named)) if named else mapping(item).get("value") == ERASED

    def kept(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the body of a read as an erasure would have left it; none where nothing that it read was erased."""
        fields = mapping(body.get("fields"))
        gone = {name: {"value": ERASED} for name, item in fields.items() if _named(item) and self.is_gone(item)}
        return {**body, "fields": {**fields, **gone}} if gone else None

    def _stands(self, log: object, position: int) -> int | None:
        """Return where a position of a log stands here; none where that log is not here."""
        if log is None or log == self._draft.log:
            return position
        return placed(self._draft.view, log, position)

    def _reader(self, position: int) -> Reader:
        if position not in self._readers:
            self._readers[position] = Reader(self._draft.view, AsOf(position), self._draft.before.policies)
        return self._readers[position]

    # -- reads of this log

    def _compared(self, body: Mapping[str, Any], log: object) -> tuple[Ref, int] | None:
        """Return the entity and the position of a read that can be compared; none of any other."""
        position, named = body.get("position"), body.get("log")
        if type(position) is not int or not BEFORE_ALL <= position <= self._head:
            return None
        if isinstance(body.get("effective"), str):
            return None
        named = named if isinstance(named, str) else log
        if named is not None and named != self._draft.log and here(self._draft.view, named, position) is None:
            return None
        try:
            return ids.parse_ref(body.get("entity"), "entity"), position
        except Refused:
            return None

    def _read_faults(self, ref: Ref, position: int, body: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield where a read says anything else than the log at its position."""
        reader, about = self._reader(position), f"run.read of {ref} at {position}"
        log, fields, as_of = self._what(reader, ref), body.get("fields"), body.get("as_of")
        if type(as_of) is int and as_of > self._head:
            yield self._beyond(as_of)
        elif as_of is not None and as_of != position and self._own:
            yield Fault("/as_of", f"{about}: got {shown(as_of)}", "Send the position it read at, or leave it out.")
        gone = {name for name, item in mapping(fields).items() if self.is_gone(item)}
        found = body.get("found", True) is True
        if found is not log.found and not gone:
            known, remedy = ("known", "found") if log.found else ("not known", "not found")
            yield ReadDifference("/found", f"{about}: it was {known} there", f"Say that it was {remedy}.")
            return
        schema = body.get("schema")
        if schema is not None and schema != schema_name(reader.rules(ref.type).schema):
            problem = f"{about}: {shown(schema)} was not the schema in force"
            yield ReadDifference("/schema", problem, "Leave it out; the server states it.")
        edited = body.get("edited")
        if edited is not None and self._own and "forked_from" not in self._beginning(str(body.get("run"))):
            remedy = "Leave it out, or start the run with forked_from."
            yield Fault("/edited", f"{about}: only a fork has fields that were edited", remedy)
        if values.is_cut(fields):
            return
        listed = mapping(fields)
        hidden: frozenset[str] | None = None
        for name, item in listed.items():
            if name in gone:
                continue
            path = f"/fields/{pointer_part(str(name))}"
            named = _named(item)
            if name in log.large:
                yield from self._observation_faults(
                    reader, _Cited(path, str(ref), named, None, None, "observations"), ""
                )
            elif not named and (name in log.values or not _is_nothing(item)):
                # Where nobody said it, it was edited or recorded elsewhere.
                if self._own:
                    yield Fault(path, f"{about}: it names no observation", "Send the one that it was read from.")
            elif name not in log.values:
                if not _is_nothing(item):
                    yield ReadDifference(path, f"{about}: {name} had no value, not {_told(item)}", _REMEDY)
            else:
                value = log.values[name]
                agrees = _agree(item, log.observations[name])
                if agrees and "value" in item and not values.shows(item["value"], value):
                    hidden = self._hidden(body) if hidden is None else hidden
                    agrees = _shows_hidden(item["value"], value, hidden)
                if not agrees:
                    was = _told({"value": value, "observations": list(log.observations[name])})
                    yield ReadDifference(path, f"{about}: {name} was {was}, not {_told(item)}", _REMEDY)
        aside = listed.keys() | mapping(edited).keys()
        if not values.is_cut(edited):
            for name in sorted((log.values.keys() | log.large) - aside):
                problem = f"{about}: {name} had a value, and is left out"
                yield ReadDifference("/fields", problem, "Send every field that the entity had.")

    def _what(self, reader: Reader, ref: Ref) -> _Shown:
        """Return what the log says of an entity, worked out once for a write."""
        key = reader.asof.position, ref
        if key not in self._shown:
            state, rules = reader.state(ref), reader.rules(ref.type)
            spread = {} if state.deleted else fold.spread(state)
            large = frozenset(name for name, held in spread.items() if held.parts.count > ELEMENTS_MAX)
            if spread:
                kept = {name: held for name, held in state.held.items() if name not in large}
                state = fold.in_memory(state._replace(held=kept))
            shown_values = snapshot.fields_of(state, rules, state.names - large if large else None)
            observations: dict[str, tuple[str, ...]] = {}
            for name in shown_values:
                field = state.field(name)
                assert field is not None, "a field with a value has claims"
                digests = rules.policy(name).show(field.held).observations
                observations[name] = tuple(ids.id_of("observation", digest) for digest in digests)
            self._shown[key] = _Shown(state.exists, shown_values, observations, large)
        return self._shown[key]

    def _hidden(self, body: Mapping[str, Any]) -> frozenset[str]:
        """Return the keys that the run of an entry hides."""
        stated = self._beginning(str(body.get("run"))).get("redact")
        return Hidden(key for key in stated if isinstance(key, str)) if isinstance(stated, list) else NOTHING

    # -- whatever else names observations

    def _observation_faults(self, reader: Reader, cited: _Cited, path: str) -> Iterator[Fault]:
        named = cited.observations if isinstance(cited.observations, list) else [cited.observations]
        named = [id for id in named if id is not None and (self._own or isinstance(id, str))]
        if not named:
            return
        path = path or cited.path
        group = _group(reader, cited.entity)
        if group is None:
            if not self._own:
                return
            problem = f"{shown(cited.entity)} is not an entity, and observations of it are cited"
            yield Fault(f"{path}/entity", problem, "Send it as type/key.")
            return
        from woodrat.ledger.plans import find_observation

        for id in named:
            stored = find_observation(reader, id)
            if stored is None:
                problem = f"there is no observation {shown(id)} at position {reader.asof.position}"
                yield Fault(f"{path}/{cited.name}", problem, "Cite what was there when it was read.")
            elif stored.observation.entity not in group:
                problem = f"{shown(id)} is about {stored.observation.entity}, not {cited.entity}"
                yield ReadDifference(f"{path}/{cited.name}", problem, "Cite observations of the entity that was read.")


_REMEDY: Final = "Send what was read at that position, or the position it was read at."


def _named(item: object) -> list[object]:
    """Return the observations that a field of a read names, each once."""
    told = mapping(item)
    named = [told.get("observation"), *listed(told.get("observations"))]
    return list({id: None for id in named if isinstance(id, str)})


def _is_nothing(item: object) -> bool:
    """Return whether a field of a read says that there is no value."""
    return item is None or (isinstance(item, dict) and not _named(item) and item.get("value") is None)


def _agree(item: object, observations: tuple[str, ...]) -> bool:
    """Return whether a field of a read names the observations that set its value; one of several may stand for all."""
    told = mapping(item)
    one, several = told.get("observation"), told.get("observations")
    if one is not None and _id(one) not in observations:
        return False
    return several is None or {_id(id) for id in listed(several)} == set(observations[:OBSERVATIONS_MAX])


def _id(name: object) -> object:
    """Return the id of an observation, also where it is named in full."""
    digest = ids.digest_of("observation", name) if isinstance(name, str) else None
    return name if digest is None else ids.id_of("observation", digest)


def _shows_hidden(recorded: Json, value: Json, hidden: frozenset[str]) -> bool:
    """Return whether a field of a read shows a value as a run that hides keys records it."""
    plain = values.plain(value, hidden) if hidden else value
    # The digest of a value that was cut after parts of it were hidden is not known here.
    return values.shows(recorded, plain) or (values.is_cut(recorded) and plain != value)


def _told(item: object) -> str:
    """Return a field of a read in words: its value and the observations."""
    named = [str(id) for id in _named(item)]
    ids_told = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
    value = shown(mapping(item).get("value")).rsplit(" (", 1)[0]
    return f"{value} ({ids_told})" if named else value


def _group(reader: Reader, entity: object) -> tuple[Ref, ...] | None:
    try:
        return reader.group(ids.parse_ref(entity, "entity"))
    except Refused:
        return None


# ------------------------------------------------------------------------------------------------- what an entry cites


def _cited(kind: str, body: Mapping[str, Any]) -> Iterator[_Cited]:
    if kind == "run.read":
        yield from _read(body)
    elif kind == "run.decided":
        yield from _decided(body)
    elif kind == "run.started":
        yield from _started(body)


def _read(body: Mapping[str, Any]) -> Iterator[_Cited]:
    log, position, entity = body.get("log"), body.get("position"), body.get("entity")
    yield _Cited("", entity, None, log, position, "")
    if body.get("as_of") is not None:
        yield _Cited("", entity, None, log, body["as_of"], "")
    for field, item in mapping(body.get("fields")).items():
        recalls = body.get("within") == RECALL and entity is None
        about = field if recalls else entity  # a recall names each entity that it found
        for name in ("observation", "observations"):
            named = mapping(item).get(name)
            if named is not None:
                path = f"/fields/{pointer_part(str(field))}"
                yield _Cited(path, about, named, log, position, name)


def _decided(body: Mapping[str, Any]) -> Iterator[_Cited]:
    for name, origin in mapping(body.get("facts_origin")).items():
        yield from _origin(origin, f"/facts_origin/{pointer_part(str(name))}")
    for number, origin in enumerate(listed(body.get("on"))):
        yield from _origin(origin, f"/on/{number}")
        yield from _origin(mapping(origin).get("origin"), f"/on/{number}/origin")
    for number, tried in enumerate(listed(body.get("rules"))):
        for place, condition in enumerate(listed(mapping(tried).get("conditions"))):
            yield from _origin(mapping(condition).get("origin"), f"/rules/{number}/conditions/{place}/origin")


def _origin(origin: object, path: str) -> Iterator[_Cited]:
    told = mapping(origin)
    if told.get("kind") == "read":
        yield _Cited(
            path, told.get("entity"), told.get("observations"), told.get("log"), told.get("position"), "observations"
        )


def _started(body: Mapping[str, Any]) -> Iterator[_Cited]:
    basis, using = mapping(body.get("basis")), mapping(body.get("using"))
    yield _Cited("/basis", None, None, basis.get("log"), basis.get("position"), "")
    for kind in ("runbook", "tool_config"):
        for number, item in enumerate(listed(using.get(kind))):
            told = mapping(item)
            path, version = f"/using/{kind}/{number}", told.get("version")
            yield _Cited(path, told.get("entity"), told.get("observation"), basis.get("log"), version, "observation")

"""Features: what a run did, as small facts that runs can share: steps, arguments, results, facts and choices.

Wording takes no part: what models and users write is left out, and ids and times that every run makes up anew count as
one value. Records are read one at a time, and only their features stay; how many values of one slot and how many
features in all are followed is bounded. A value that is followed was counted from the first run that has it, so every
count is exact; a slot with too many values says so (`FeatureSlot.overflow`).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from woodrat.canon.form import Json
from woodrat.compare.alignment import parts_of
from woodrat.compare.contrast import short
from woodrat.compare.noise import steady
from woodrat.compare.value_difference import joined, opened, says_much
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall, Write

VALUES_MAX: Final = 256
"""How many values of one slot are followed; those that come later are not."""
FEATURES_MAX: Final = 200_000
"""How many features are followed in all."""
ENTITIES_MAX: Final = 8
"""How many entities of one type tell runs apart; where there are more, it is the type that counts."""
LEAVES_MAX: Final = 200
"""How many plain values of one argument list or result are looked at."""
DEPTH_MAX: Final = 32
"""How deep values are looked into."""
VALUE_CHARACTERS_MAX: Final = 200
"""How much of a text stands for it; of a longer one its beginning and a digest."""
PROSE_WORDS: Final = 8
"""From how many words on a text is prose."""
NUMBER_MAX: Final = 1e300
"""Up to which size numbers are compared with bounds."""
REPEATS: Final = (2, 3, 5, 10)
"""How many calls of one tool are worth a feature."""
START: Final = 0
"""The step of what was known before the first one."""

STEP, ARGUMENT, RESULT, ERROR, READ, DECISION, FACT, WRITE = (
    "step",
    "argument",
    "result",
    "error",
    "read",
    "decision",
    "fact",
    "write",
)
INPUT, MODEL, PARAMETER, AGENT, CODE = "input", "model", "parameter", "agent", "code"
GIVEN, ORIGIN, REPEAT, ORDER, NUMBER, ENDING = "given", "origin", "repeat", "order", "number", "ending"
READ_STEP: Final = "read of"
"""The kind of the feature that stands for a read as a step; those of other steps are `tool`, `decision`, `write of`."""
BEHAVIOUR: Final = frozenset({ARGUMENT, RESULT, ERROR, READ, DECISION, WRITE, ENDING})
"""Kinds of slots whose values tell the behaviour of two runs apart."""


class FeatureSlot(NamedTuple):
    """A place that has one value or another in each run."""

    kind: str
    """What kind of place: an argument, a result, an input …"""
    name: str
    """The tool, entity, stage or model."""
    path: str
    """Where in it."""


class Feature(NamedTuple):
    """One small fact about a run."""

    kind: str
    """What kind of fact."""
    name: str
    """The tool, entity, stage or model it is about."""
    path: str
    """Which argument, member or field; for an order the step that comes after."""
    value: Json
    """The value; for an origin where it came from, for a repeat how often."""

    @property
    def slot(self) -> FeatureSlot:
        """The slot whose value it states."""
        return FeatureSlot(self.kind, self.name, self.path)


class FeatureRuns:
    """In which runs a feature is found, and at which step first."""

    __slots__ = ("runs", "steps")

    def __init__(self) -> None:
        self.runs = array("I")
        """Numbers of the runs, ascending."""
        self.steps = array("I")
        """The first step in each of them."""


class Track:
    """One run as the table keeps it."""

    __slots__ = ("id", "order", "started_at", "steps")

    def __init__(self, id: str, started_at: str) -> None:
        self.id = id
        self.started_at = started_at
        self.steps = array("I")
        """Its behaviour: of each step its block, level, name, how many features, and these."""
        self.order: list[tuple[int, int]] = []
        """Its different steps with the number of the first of each, in order."""


class FeatureTable:
    """Features of many runs."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.features: list[Feature] = []
        self.places: list[FeatureRuns] = []
        self.slots: dict[FeatureSlot, list[int]] = {}
        """The features of each slot that has values."""
        self.overflow: set[FeatureSlot] = set()
        """Slots with more values than are followed."""
        self.numbers: dict[FeatureSlot, tuple[array[int], array[float], array[int]]] = {}
        """By slot the runs with a number there, the first number of each, and its step."""
        self.full = False
        """Whether there were more features than are followed."""
        self._known: dict[Feature, int] = {}
        self._entities: dict[str, set[str]] = {}

    def add(self, record: RunRecord) -> None:
        """Take in one run."""
        _Reading(self, len(self.tracks), record).take_in()

    def numbers_of(self, slot: tuple[str, str, str]) -> tuple[array[int], array[float], array[int]]:
        """Return the numbers of a slot, to add to."""
        known = self.numbers.get(slot)  # type: ignore[call-overload]
        if known is None:
            known = self.numbers[FeatureSlot(*slot)] = (array("I"), array("d"), array("I"))
        return known  # type: ignore[no-any-return]

    def known(self, slot: FeatureSlot, value: Json) -> int | None:
        """Return the number of the feature that a slot has a value; none where it is not followed."""
        return self._known.get(Feature(*slot, _plain(value)))

    def number_of(self, feature: tuple[str, str, str, Json], valued: bool) -> int | None:
        """Return the number of a feature; none for one that is not followed. Any tuple of its members will do."""
        number = self._known.get(feature)  # type: ignore[call-overload]
        return self._follow(Feature(*feature), valued) if number is None else number

    def _follow(self, feature: Feature, valued: bool) -> int | None:
        if len(self.features) >= FEATURES_MAX:
            self.full = True
            self.overflow.add(feature.slot)
            return None
        if valued:
            values = self.slots.setdefault(feature.slot, [])
            if len(values) >= VALUES_MAX:
                self.overflow.add(feature.slot)
                return None
            values.append(len(self.features))
        number = self._known[feature] = len(self.features)
        self.features.append(feature)
        self.places.append(FeatureRuns())
        return number

    def is_one_of_many(self, entity: str) -> bool:
        """Tell whether the runs have to do with more entities of a type than tell them apart."""
        return len(self._entities.get(entity.split("/", 1)[0], ())) > ENTITIES_MAX

    def entity_names(self, entity: str, subject: str | None) -> tuple[str, ...]:
        """Return under which names an entity is followed: itself, unless there are many like it, and its type."""
        kind = entity.split("/", 1)[0]
        if entity == subject:
            return (kind,)
        known = self._entities.setdefault(kind, set())
        if entity not in known:
            if len(known) >= VALUES_MAX:
                return (kind,)
            known.add(entity)
        return (entity, kind)


class _Reading:
    """One run being taken in."""

    def __init__(self, table: FeatureTable, run: int, record: RunRecord) -> None:
        self._table, self._run, self._record = table, run, record
        self._track = Track(record.id, record.started_at or "")
        self._origins: dict[Json, tuple[str, int, bool]] = {}
        """By value where it was first met, at which level, and whether it was an input."""
        self._counts: dict[int, int] = {}
        self._seen: set[int] = set()
        self._block = 0

    def take_in(self) -> None:
        record, table = self._record, self._table
        table.tracks.append(self._track)
        for kind, text in ((AGENT, record.agent), (CODE, record.code)):
            if text is not None:
                self._note((kind, "", "", text), START, True)
        for path, value in leaves({"query": record.query, "principal": record.principal, **record.inputs}):
            if value is not None:
                self._value((INPUT, "", path, value), START)
                self._origin(value, INPUT, path, "", 0)
        if record.subject is not None:
            for text in (record.subject, record.subject.partition("/")[2]):
                self._origin(text, INPUT, "", "", 0)
        last = 0
        for number, part in enumerate(parts_of(record), 1):
            last = number
            if isinstance(part, ModelCall):
                self._model(part, number)
            elif isinstance(part, ToolCall):
                self._tool(part, number)
            elif isinstance(part, Read):
                self._read(part, number)
            elif isinstance(part, Decision):
                self._decision(part, number)
            elif isinstance(part, Write):
                self._write(part, number)
        answer = [(ENDING, record.status, path, value) for path, value in leaves(record.answer)]
        self._finish((ENDING, record.status, ""), answer, last + 1, 0)

    # The kinds of steps

    def _model(self, part: ModelCall, number: int) -> None:
        if part.model is not None:
            self._note((MODEL, "", "", part.model), number, True)
        for path, value in leaves(dict(part.parameters)):
            self._value((PARAMETER, "", path, value), number)

    def _tool(self, part: ToolCall, number: int) -> None:
        level, name = 0, part.name
        values: list[tuple[str, str, str, Json]] = []
        for path, value in leaves(part.args):
            self._note((GIVEN, name, path, None), number, False)
            origin = self._origins.get(value)
            if origin is not None:
                level = max(level, origin[1] + 1)
                self._note((ORIGIN, name, path, origin[0]), number, True)
            elif says_much(value):
                self._note((ORIGIN, name, path, None), number, True)
            values.append((ARGUMENT, name, path, value))
        self._step(f"tool {name}", number)
        if part.errored:
            values += ((ERROR, name, path, value) for path, value in leaves(part.error))
            self._note((ERROR, name, "", None), number, False)
        for path, value in leaves(part.result):
            values.append((RESULT, name, path, value))
            self._origin(value, RESULT, path, name, level)
        self._block += part.once
        self._finish(("tool", name, ""), values, number, level)
        self._block += part.once

    def _read(self, part: Read, number: int) -> None:
        values: list[tuple[str, str, str, Json]] = []
        entity = part.entity or ""
        given = self._origins.get(entity.partition("/")[2])
        subject = entity if given is not None and given[2] else self._record.subject
        names = self._table.entity_names(entity, subject) if entity else ("",)
        self._step(f"read of {names[-1]}" if entity else part.within or "read", number)
        for field, shown in part.values.items():
            for path, value in leaves(shown):
                place = f"{field}{'.' if path and path[0] != '[' else ''}{path}"
                values += ((READ, name, place, value) for name in names)
                self._origin(value, READ, place, names[-1], 0)
        if not part.found:
            values += ((READ, name, "", None) for name in names)
        self._table.number_of(
            (READ_STEP, names[-1], "", None), False
        )  # where there are many, it is the type that counts
        self._finish((READ_STEP, names[0], ""), values, number, 0)

    def _decision(self, part: Decision, number: int) -> None:
        self._step(f"decision {part.stage}", number)
        for condition in part.conditions:
            for path, value in leaves(condition.actual):
                self._value((FACT, part.stage, condition.key + path, value), number)
        if part.chosen_by is not None:
            for name, fact in part.facts.items():
                for path, value in leaves(fact):
                    self._value((FACT, part.stage, name + path, value), number)
        rule = "default" if part.default else part.rule
        chosen = [(DECISION, part.stage, path, value) for path, value in leaves(part.chosen)]
        self._value((DECISION, part.stage, "rule", rule), number)
        self._barrier(("decision", part.stage, ""), chosen, number)

    def _write(self, part: Write, number: int) -> None:
        name = self._table.entity_names(part.entity, self._record.subject)[-1]
        self._step(f"write of {name}" if part.op == "assert" else f"{part.op} of {name}", number)
        values = [(WRITE, name, path, value) for path, value in leaves(dict(part.fields))]
        self._barrier(("write of", name, part.op), values, number)

    # What is kept

    def _barrier(self, name: tuple[str, str, str], values: list[tuple[str, str, str, Json]], number: int) -> None:
        """Keep a step that nothing may be moved across."""
        self._block += 1
        self._finish(name, values, number, 0)
        self._block += 1

    def _finish(
        self, name: tuple[str, str, str], values: Iterable[tuple[str, str, str, Json]], number: int, level: int
    ) -> None:
        """Keep a step with its values; a value that is an input of the run counts as that input."""
        held = []
        for item in values:
            feature = self._value(item, number)
            origin = self._origins.get(item[3])
            if origin is not None and origin[2]:
                feature = self._table.number_of((f"{item[0]} as given", item[1], item[2], origin[0]), False)
            if feature is not None:
                held.append(feature)
        step = self._table.number_of((*name, None), False)
        if step is not None:
            held.sort()
            self._track.steps.extend((self._block, level, step, len(held), *held))

    def _step(self, label: str, number: int) -> None:
        step = self._note((STEP, label, "", None), number, False)
        if step is None:
            return
        count = self._counts[step] = self._counts.get(step, 0) + 1
        if count == 1:
            self._track.order.append((step, number))
        if count in REPEATS:
            self._note((REPEAT, label, "", count), number, False)

    def _value(self, item: tuple[str, str, str, Json], number: int) -> int | None:
        """Keep that a slot has a value; `item` is the slot and the value."""
        kind, name, path, value = item
        if type(value) in (int, float):
            runs, numbers, steps = self._table.numbers_of((kind, name, path))
            if (not runs or runs[-1] != self._run) and abs(value) < NUMBER_MAX:  # type: ignore[arg-type]
                runs.append(self._run)
                numbers.append(value)  # type: ignore[arg-type]
                steps.append(number)
            return self._note(item, number, True)
        return self._note((kind, name, path, _plain(value)), number, True)

    def _note(self, feature: tuple[str, str, str, Json], number: int, valued: bool) -> int | None:
        found = self._table.number_of(feature, valued)
        if found is not None and found not in self._seen:
            self._seen.add(found)
            places = self._table.places[found]
            places.runs.append(self._run)
            places.steps.append(number)
        return found

    def _origin(self, value: Json, kind: str, path: str, name: str, level: int) -> None:
        """Keep where a value was first met."""
        if value not in self._origins and says_much(value):
            self._origins[value] = (_origin_words(kind, path, name), level, kind == INPUT)


@lru_cache(maxsize=65_536)
def _origin_words(kind: str, path: str, name: str) -> str:
    if kind == INPUT:
        return f"the input {path}" if path else "the subject"
    return f"{path or 'the result'} of {name}"


_joined = lru_cache(maxsize=65_536)(joined)


def leaves(value: Json) -> Iterator[tuple[str, Json]]:
    """Yield the plain values inside a value with their paths, in which all items of a list stand at one place."""
    value = opened(value)
    if not isinstance(value, dict | list):
        if value is not None:
            yield "", value
        return
    left = LEAVES_MAX
    todo: list[tuple[str, Json, int]] = [("", value, 0)]
    while todo and left:
        path, item, depth = todo.pop()
        if isinstance(item, str):
            item = opened(item)
        if isinstance(item, dict):
            if depth < DEPTH_MAX:
                todo.extend((_joined(path, name), inner, depth + 1) for name, inner in reversed(item.items()))
        elif isinstance(item, list):
            left -= 1
            yield f"{path}.length" if path else "length", len(item)
            if depth < DEPTH_MAX:
                todo.extend((f"{path}[]", inner, depth + 1) for inner in reversed(item[:left]))
        else:
            left -= 1
            yield path, item


def _plain(value: Any) -> Json:
    """Return what stands for a value: a text without what is volatile in it, of a number the number alone."""
    if isinstance(value, str):
        return _steady(value)
    if isinstance(value, bool):
        return _BOOLEANS[value]
    if isinstance(value, list | dict):
        return str(value)
    return value  # type: ignore[no-any-return]


def value_of(plain: Json) -> Json:
    """Return the value that stands in a feature, as a person would read it."""
    if isinstance(plain, str):
        if plain in _BOOLEANS:
            return plain == _BOOLEANS[True]
        return _MARKS.sub(lambda mark: f"({'time' if mark[1] == 'time' else 'random id'})", plain.partition("…\0")[0])
    return plain


_BOOLEANS: Final = ("\1false", "\1true")
"""What stands for false and true, which are 0 and 1 to a dictionary."""
_MARKS: Final = re.compile("\0(time|id)\0")
"""What stands for something volatile in a text."""


@lru_cache(maxsize=65_536)
def _steady(text: str) -> str:
    plain = str(steady(text)) if len(text) <= 20_000 else text
    if len(plain) <= VALUE_CHARACTERS_MAX:
        return plain
    return (
        f"{plain[:VALUE_CHARACTERS_MAX]}…\0{blake2b(plain.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
    )


def is_long_text(value: Json) -> bool:
    """Tell whether a value is a text of many words, which says the same in many ways."""
    return isinstance(value, str) and (len(value.split()) >= PROSE_WORDS or len(value) > VALUE_CHARACTERS_MAX)


# Clauses

_STEPS: Final = {
    "tool ": ("called", "call"),
    "read of ": ("read", "read"),
    "decision ": ("decided", "decide"),
    "write of ": ("wrote", "write"),
}


def clause(feature: Feature, present: bool) -> str:
    """Return what runs that have a feature did, in the past tense; or, not present, what the others did not do."""
    did, do = _phrases(feature)
    return did if present else f"did not {do}"


def _phrases(feature: Feature) -> tuple[str, str]:
    """Return a feature as a verb in the past tense, and in the plain form."""
    kind, name, path, plain = feature
    value = short(value_of(plain))
    match kind:
        case "step":
            return _step(name)
        case "given":
            what = f"{name} with {path or 'an argument'}"
            return f"called {what}", f"call {what}"
        case "origin":
            came = "that no input and no earlier result holds" if plain is None else f"taken from {value}"
            what = f"{name} with {path or 'an argument'} {came}"
            return f"called {what}", f"call {what}"
        case "error" if plain is None:
            return f"had {name} fail", f"have {name} fail"
        case "read" if plain is None and not path:
            return f"read nothing known of {name}", f"read nothing known of {name}"
        case "decision" if path == "rule":
            return f"decided {name} by {value}", f"decide {name} by {value}"
        case "decision":
            what = f"{name}{f' {path}' if path else ''}: {value}"
            return f"decided {what}", f"decide {what}"
        case "repeat":
            did, do = _step(name)
            return f"{did} {value} times or more", f"{do} {value} times or more"
        case "order":
            (did, do), (later, _) = _step(name), _step(path)
            return f"{did} before they {later}", f"{do} before they {later}"
        case "number":
            slot, _, name = name.partition(" ")
            return _with_value(slot, name, f"{path or 'a number'} of {value} or more")
        case "agent":
            return f"were runs of {value}", f"run as {value}"
        case "code":
            return f"ran the code {value}", f"run the code {value}"
    return _with_value(kind, name, f"{path} {value}" if path else value)


def _with_value(kind: str, name: str, value: str) -> tuple[str, str]:
    """Return that a slot of this kind and name has a value, which is given in words with its path."""
    match kind:
        case "argument":
            return f"called {name} with {value}", f"call {name} with {value}"
        case "result":
            return f"got {value} from {name}", f"get {value} from {name}"
        case "error":
            return f"had {name} fail with {value}", f"have {name} fail with {value}"
        case "read":
            return f"read {value} of {name}", f"read {value} of {name}"
        case "fact":
            return f"decided {name} on {value}", f"decide {name} on {value}"
        case "write":
            return f"wrote {value} to {name}", f"write {value} to {name}"
        case "model":
            return f"asked the model {value}", f"ask the model {value}"
        case "parameter":
            return f"asked a model with {value}", f"ask a model with {value}"
    return f"were given {value}", f"get the input {value}"


def _step(label: str) -> tuple[str, str]:
    for prefix, (did, do) in _STEPS.items():
        if label.startswith(prefix):
            name = label.removeprefix(prefix)
            return f"{did} {name}", f"{do} {name}"
    return f"made a {label}", f"make a {label}"
